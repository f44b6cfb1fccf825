-- Visits: pl.visitor, pl.post_order.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

-- "<Call" when entered, "Call" when left.
local function trace(subject)
  local seen = {}
  pl.visitor {
    enter = function(node) seen[#seen + 1] = "<" .. node.kind end,
    leave = function(node) seen[#seen + 1] = node.kind end,
  } (subject)
  return table.concat(seen, " ")
end

local function kinds(subject)
  local seen = {}
  for node in pl.post_order(subject) do seen[#seen + 1] = node.kind end
  return table.concat(seen, " ")
end

describe("a visitor", function()
  local x = pl.var("x", f32(2))
  local tanh, relu = pl.op.tanh, pl.op.nn.relu

  it("calls a function after all that the node is made of", function()
    local seen = {}
    pl.visitor {
      Call = function(call) seen[#seen + 1] = call.op.name end,
      Var = function(var) seen[#seen + 1] = var.name end,
    } (pl.func({ x }, relu(tanh(x) + x)))
    assert.same({ "x", "tanh", "add", "nn.relu" }, seen)
  end)

  it("enters before and leaves after", function()
    assert.equal("<Function <Var Var <Call <Call Call <Constant Constant Call Function",
      trace(pl.func({ x }, tanh(x) + 1)))
  end)

  it("leaves out what enter refuses", function()
    local seen = {}
    pl.visitor {
      enter = function(node) return node.kind ~= "Call" or node.op ~= tanh end,
      leave = function(node) seen[#seen + 1] = node.kind end,
    } (pl.func({}, relu(tanh(x) + 1)))
    assert.same({ "Constant", "Call", "Call", "Function" }, seen)
  end)

  it("takes enter and leave of one kind, and of all others", function()
    local seen = {}
    pl.visitor {
      leave = function(node) seen[#seen + 1] = node.kind end,
      Call = { enter = function(call) seen[#seen + 1] = call.op.name end },
    } (tanh(x) + 1)
    assert.same({ "add", "tanh", "Var", "Constant" }, seen)
  end)

  it("visits a shared node once: a hundred doublings are a hundred calls", function()
    local e = x
    for _ = 1, 100 do e = e + e end
    local calls = 0
    pl.visitor { Call = function() calls = calls + 1 end } (e)
    assert.equal(100, calls)
  end)

  it("goes into branches and nested functions", function()
    local c = pl.var("c", "bool")
    assert.equal("<If <Var Var <Call <Var Var Call <Call <Constant Constant Call If",
      trace(pl.if_(c, tanh(x), x + 1)))
    local y = pl.var("y", f32(2))
    assert.equal("Var Function Var Call", kinds(pl.func({ y }, y)(x)))
  end)

  it("enters a run of lets in order and leaves it in reverse", function()
    local a, b = pl.var("a", f32(2)), pl.var("b", f32(2))
    local lets = {}
    pl.visitor { Let = {
      enter = function(let) lets[#lets + 1] = "<" .. let.var.name end,
      leave = function(let) lets[#lets + 1] = let.var.name end,
    } } (pl.let(a, tanh(x), pl.let(b, a + a, b)))
    assert.same({ "<a", "<b", "b", "a" }, lets)
  end)

  it("sees references", function()
    local r = pl.ir.RefCreate(x)
    assert.equal("Var RefCreate RefRead", kinds(pl.ir.RefRead(r)))
    assert.equal("Var RefCreate Constant RefWrite",
      kinds(pl.ir.RefWrite(r, pl.const({ 1, 2 }, "float32"))))
  end)

  it("sees the functions of a module", function()
    local mod = pl.module { a = pl.func({ x }, tanh(x)), b = pl.func({ x }, relu(x)) }
    local seen = {}
    pl.visitor { Call = function(call) seen[#seen + 1] = call.op.name end } (mod)
    table.sort(seen)
    assert.same({ "nn.relu", "tanh" }, seen)
  end)

  it("visits later what it is asked to, once", function()
    local helper = pl.func({ x }, tanh(x))
    local mod = pl.module { helper = helper, rest = pl.func({ x }, relu(x)) }
    local main = pl.func({ x }, pl.global("helper")(x) + pl.global("helper")(x))
    local seen = {}
    pl.visitor {
      GlobalVar = function(g, visit) visit(mod.functions[g.name]) end,
      Call = function(call) seen[#seen + 1] = call.op and call.op.name or "apply" end,
    } (main)
    assert.same({ "apply", "apply", "add", "tanh" }, seen)
  end)

  it("gives handles of the function itself", function()
    local mod = pl.module { main = pl.func({ x }, tanh(x)) }
    local body
    pl.visitor { Call = function(call) body = call end } (mod)
    assert.is_true(rawequal(mod.main.body, body))
  end)

  it("takes a part of a function", function()
    local mod = pl.module { main = pl.func({ x }, relu(tanh(x)) + 1) }
    assert.equal("Var Call", kinds(mod.main.body[1][1]))
  end)

  it("visits the types of variables and functions, each once, parts first", function()
    local t = pl.var("t", "(Tensor[(2), float32], int32)")
    local seen = {}
    pl.visitor {
      TensorType = function(type) seen[#seen + 1] = tostring(type) end,
      TupleType = function(type) seen[#seen + 1] = type.kind end,
      FuncType = function(type) seen[#seen + 1] = type.kind end,
    } (pl.func({ t, x }, t:get(0) + x))
    assert.same({ "Tensor[(2), float32]", "int32", "tuple", "func" }, seen)
  end)

  it("lets errors through, and can be used again", function()
    local fail = true
    local v = pl.visitor { Call = function() if fail then error "oops" end end }
    local ok, got = pcall(v, tanh(x))
    assert.is_false(ok)
    assert.is_truthy(tostring(got):find "visitor_spec.lua:%d+: oops")
    fail = false
    v(tanh(x))
  end)

  it("refuses unknown kinds, and what is no function", function()
    local ok, message = pcall(pl.visitor, { Cal = print })
    assert.is_false(ok)
    assert.is_truthy(message:find("did you mean 'Call'", 1, true))
    assert.has_error(function() pl.visitor { Call = 1 } end)
    assert.has_error(function() pl.visitor { Call = { before = print } } end)
    assert.has_error(function() pl.visitor { enter = true } end)
    assert.has_error(function() pl.visitor {} (1) end)
  end)
end)

describe("post_order", function()
  local x = pl.var("x", f32(2))

  it("is an iterator, or calls a function", function()
    local f = pl.func({ x }, pl.op.tanh(x))
    assert.equal("Var Call Function", kinds(f))
    local seen = {}
    pl.post_order(f, function(node) seen[#seen + 1] = node.kind end)
    assert.same({ "Var", "Call", "Function" }, seen)
  end)

  it("goes through all functions of a module", function()
    local mod = pl.module { a = pl.func({ x }, x), b = pl.func({ x }, pl.op.tanh(x)) }
    assert.equal("Var Function Var Call Function", kinds(mod))
    assert.equal("", kinds(pl.module {}))
  end)

  it("may be left early, nested, and collected at any time", function()
    local f = pl.func({ x }, pl.op.tanh(x))
    for _ in pl.post_order(f) do
      for node in pl.post_order(f) do
        if node.kind == "Call" then break end
      end
      collectgarbage()
    end
    local step = pl.post_order(f)
    for _ = 1, 3 do assert.is_truthy(step()) end
    assert.is_nil(step())
    assert.is_nil(step())
  end)

  it("takes no stack: deep chains, lets, branches, functions", function()
    local n = 20000
    local c = pl.var("c", "bool")
    local e = x
    for _ = 1, n do e = e + x end
    for _ = 1, n do e = pl.let(pl.var("v", f32(2)), x, e) end
    for _ = 1, n do e = pl.if_(c, e, x) end
    for _ = 1, n do e = pl.func({}, e) end
    local count = 0
    for _ in pl.post_order(e) do count = count + 1 end
    assert.is_true(count >= 5 * n)
  end)
end)

describe("the fields of lets", function()
  it("are read in linear time where values of lets hold lets", function()
    local function seconds(n)
      local x = pl.var("x", "Tensor[(2), float32]")
      local value = x
      for i = 1, n do
        local v = pl.var("v" .. i, "Tensor[(2), float32]")
        value = pl.op.abs(pl.let(v, value, pl.op.tanh(v)))
      end
      local fn = pl.func({ x }, value)
      local began, lets = os.clock(), 0
      for node in fn:nodes() do
        if node.kind == "Let" and node.body.kind == "Call" then lets = lets + 1 end
      end
      assert.equal(n, lets)
      return os.clock() - began
    end
    assert.is_true(seconds(20000) < 30 * seconds(2000) + 0.02)
  end)
end)
