-- Lets and free variables of one graph used in another keep what binds them.

local pl = require "perilune"

local vector = pl.type "Tensor[(2), float32]"

describe("a block of lets", function()
  local x, v = pl.var("x", vector), pl.var("v", vector)
  local block = pl.let(v, pl.op.tanh(x), v + v)

  local function check(f, wanted)
    assert(pl.verify(f))
    assert.equal(0, #pl.free_vars(f))
    assert.same({ 0, 0 }, pl.eval(f, { 0, 0 }):to_table())
    if wanted then assert.is_true(pl.equal(f, wanted)) end
  end

  local function run(body)
    local pass = pl.function_pass { name = "p", run = function(fn)
      return fn:with { body = body() }
    end }
    return pass(pl.module { main = pl.func({ x }, x) }).main
  end

  it("is a value of a variable", function()
    local y = pl.var("y", vector)
    check(pl.func({ x }, pl.bind(y * 2, { [y] = block })), pl.func({ x }, block * 2))
    check(pl.bind(pl.func({ y }, y * 2), { [y] = block }), pl.func({ x }, block * 2))
  end)

  it("is the answer of a mutator", function()
    local f = pl.func({ x }, pl.op.sin(x) * 2)
    check(pl.rewrite(f, { Call = function(pre)
      if pre.op == pl.op.sin then return block end
    end }), pl.func({ x }, block * 2))
  end)

  it("is built into a function by a pass", function()
    check(run(function() return block end), pl.func({ x }, block))
    check(run(function() return block * 2 end), pl.func({ x }, block * 2))
    check(run(function() return pl.func({}, block)() end), pl.func({ x }, pl.func({}, block)()))
  end)

  it("is part of another expression after it was rewritten", function()
    local other = pl.rewrite(block, { Call = function(pre, post)
      if pre.op == pl.op.tanh then return pl.op.sin(post[1]) end
    end })
    check(pl.func({ x }, other * 2), pl.func({ x }, pl.let(v, pl.op.sin(x), v + v) * 2))
  end)

  it("holds blocks and functions of its own", function()
    local w, u, t = pl.var("w", vector), pl.var("u", vector), pl.var("t", vector)
    local c = pl.var("c", "bool")
    local nested = pl.let(u, pl.let(w, x + x, w), pl.if_(c, block, pl.func({ t }, t * u)(u)))
    local inner = pl.module { main = pl.func({ c }, nested) }.main.body
    local f = pl.func({ c, x }, inner * 1.0)
    assert.equal(0, #pl.free_vars(f))
  end)
end)

describe("a free variable", function()
  it("inside a function of a module is bound where the function is used", function()
    local x = pl.var("x", vector)
    local inner = pl.module { main = pl.func({}, x + 1) }.main
    local f = pl.func({ x }, inner())
    assert.equal(0, #pl.free_vars(f))
    assert.same({ 2, 3 }, pl.eval(f, { 1, 2 }):to_table())
  end)
end)
