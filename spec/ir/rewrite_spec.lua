-- Rewriting at once: pl.rewrite, and types in mutators.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

describe("rewrite", function()
  local x, y = pl.var("x", f32(2)), pl.var("y", f32(2))
  local tanh, relu = pl.op.tanh, pl.op.nn.relu

  it("gives each node as it was and as it is rewritten", function()
    local seen = {}
    local out = pl.rewrite(tanh(x) + y, { Call = function(pre, post)
      seen[#seen + 1] = pre.op.name .. "/" .. (post[1].op and post[1].op.name or post[1].kind)
      if pre.op == tanh then return relu(post[1]) end
    end })
    assert.same({ "tanh/Var", "add/nn.relu" }, seen)
    assert.is_true(pl.equal(out, relu(x) + y))
  end)

  it("looks at a shared node once: a hundred doublings are linear", function()
    local e, wanted, calls = x, y, 0
    for _ = 1, 100 do e, wanted = e + e, wanted + wanted end
    local out = pl.rewrite(e, {
      Call = function() calls = calls + 1 end,
      Var = function() return y end,
    })
    assert.equal(100, calls)
    assert.is_true(pl.equal(out, wanted))
  end)

  it("gives the very same expression when nothing changes", function()
    local mod = pl.module { main = pl.func({ x }, tanh(x)) }
    assert.is_true(rawequal(mod.main, pl.rewrite(mod.main, { Call = function() end })))
    assert.equal(mod, pl.rewrite(mod, { Call = function(_, post) return post end }))
  end)

  it("takes one function for every kind", function()
    local seen = {}
    pl.rewrite(pl.func({ x }, tanh(x)), function(pre) seen[#seen + 1] = pre.kind end)
    assert.same({ "Var", "Call", "Function" }, seen)
  end)

  it("goes through lets, branches, references and tuples", function()
    local c, v = pl.var("c", "bool"), pl.var("v", f32(2))
    local function build(f)
      local r = pl.ir.RefCreate(f(x))
      return pl.func({ c, x }, pl.let(v, f(x), pl.tuple(pl.if_(c, f(v), v),
        pl.ir.RefRead(r), pl.tuple(f(x), x):get(0))))
    end
    local out = pl.rewrite(build(tanh), { Call = function(_, post) return relu(post[1]) end })
    assert.is_true(pl.equal(out, build(relu)))
    assert(pl.verify(out))
  end)

  it("takes no stack: a chain, lets, nested branches and functions", function()
    local n, e = 20000, x
    local c = pl.var("c", "bool")
    for _ = 1, n do e = tanh(e) end
    for _ = 1, n do e = pl.let(pl.var("v", f32(2)), x, e) end
    for _ = 1, n do e = pl.if_(c, e, x) end
    for _ = 1, n do e = pl.func({}, e)() end
    local calls = 0
    local out = pl.rewrite(e, { Call = function(pre, post)
      if pre.op then
        calls = calls + 1
        return relu(post[1])
      end
    end })
    assert.equal(n, calls)
    assert(pl.verify(out))
  end)

  it("refuses unknown kinds", function()
    local ok, message = pcall(pl.rewrite, x, { Cal = print })
    assert.is_false(ok)
    assert.is_truthy(tostring(message):find("did you mean 'Call'", 1, true))
    assert.has_error(function() pl.rewrite(x, 1) end)
    assert.has_error(function() pl.rewrite(1, {}) end)
  end)
end)

describe("a mutator of types", function()
  local x = pl.var("x", f32(2))

  it("is given the types of variables; what depends on them is typed anew", function()
    local double = pl.mutator { TensorType = function(type)
      return pl.type { shape = { type.shape[1] * 2 }, dtype = type.dtype }
    end }
    local f = double(pl.func({ x }, pl.op.tanh(x)))
    assert.equal(f32(4), f.params[1].type)
    assert.equal(f32(4), f.body.type)
    assert.equal(pl.type "fn (Tensor[(4), float32]) -> Tensor[(4), float32]", f.type)
    assert(pl.verify(f))
  end)

  it("gives a function whose parts, taken one by one, have its types", function()
    local double = pl.mutator { TensorType = function() return f32(4) end }
    local f = double(pl.func({ x }, pl.op.tanh(x)))
    assert.equal(x, f.params[1])
    pl.assert_equal(f, pl.func(f.params, f.body))
    pl.assert_equal(f, pl.func(pl.free_vars(pl.op.nn.relu(f.body)), f.body))
    assert.equal(f32(2), x.type)
    local n = pl.var("n", pl.type "Tensor[(N, 1), float32]")
    local fixed = pl.module { main = pl.func({ n }, n + n) }:fix_dim("N", 3).main
    pl.assert_equal(fixed, pl.func(fixed.params, fixed.body))
  end)

  it("gives parts before what is made of them", function()
    local seen = {}
    local t = pl.var("t", "(Tensor[(2), float32], int32)")
    pl.mutator {
      TensorType = function(type) seen[#seen + 1] = tostring(type) end,
      TupleType = function(type) seen[#seen + 1] = type.kind end,
    } (pl.func({ t }, t:get(0)))
    assert.same({ "Tensor[(2), float32]", "int32", "tuple" }, seen)
  end)

  it("that changes nothing gives the very same function", function()
    local mod = pl.module { main = pl.func({ x }, pl.op.tanh(x)) }
    assert.equal(mod, pl.mutator { TensorType = function() end } (mod))
  end)

  it("that raises, or answers with no type, raises", function()
    assert.has_error(function() pl.mutator { TensorType = function() error "no" end } (x) end)
    assert.has_error(function() pl.mutator { TensorType = function() return 1 end } (x) end)
  end)
end)
