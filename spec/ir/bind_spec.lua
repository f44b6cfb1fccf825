-- Variables and what stands in their place: pl.bind, pl.free_vars, ...

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

local function names(list)
  local texts = {}
  for i, var in ipairs(list) do texts[i] = var.name end
  return table.concat(texts, " ")
end

describe("variables", function()
  local x, y, v = pl.var("x", f32(2)), pl.var("y", f32(2)), pl.var("v", f32(2))

  it("are free, or bound by functions and lets", function()
    assert.equal("x", names(pl.free_vars(x)))
    local f = pl.func({ x }, pl.let(v, x + y, v * v))
    assert.equal("x v y", names(pl.all_vars(f)))
    assert.equal("x v", names(pl.bound_vars(f)))
    assert.equal("y", names(pl.free_vars(f)))
  end)

  it("of a tuple are those of its fields, each once", function()
    local t = pl.var("t", "(Tensor[(2), float32], Tensor[(2), float32])")
    assert.equal("x y", names(pl.free_vars(pl.tuple(x, y, x))))
    assert.equal("t", names(pl.free_vars(t:get(1))))
    assert.equal("", names(pl.bound_vars(t:get(1))))
  end)

  it("are the very handles that the expression was made of", function()
    assert.is_true(rawequal(x, pl.free_vars(x + y)[1]))
    local mod = pl.module { main = pl.func({ x }, x) }
    assert.is_true(rawequal(mod.main.params[1], pl.bound_vars(mod.main)[1]))
  end)

  it("that a branch binds are bound", function()
    local c = pl.var("c", "bool")
    local e = pl.if_(c, pl.let(v, x, v), y)
    assert.equal("c x y", names(pl.free_vars(e)))
    assert.equal("v", names(pl.bound_vars(e)))
  end)

  it("refuse what is no expression", function()
    assert.has_error(function() pl.free_vars(1) end)
    assert.has_error(function() pl.free_type_vars(print) end)
  end)
end)

describe("type variables", function()
  local a, b, c = pl.ir.TypeVar "a", pl.ir.TypeVar "b", pl.ir.TypeVar "c"

  it("are bound by function types, else free", function()
    local f = pl.ir.FuncType({ a }, b, { a, b })
    assert.same({ a, b }, pl.bound_type_vars(f))
    assert.same({}, pl.free_type_vars(f))
    local g = pl.ir.FuncType({ b }, c, { a })
    assert.equal(3, #pl.all_type_vars(g))
    assert.same({ a }, pl.bound_type_vars(g))
    assert.equal(2, #pl.free_type_vars(g))
  end)

  it("are found in the types of variables and functions", function()
    local x = pl.var("x", pl.ir.TupleType { a, "int32" })
    local y, z = pl.var "y", pl.var("z", a)
    assert.same({ a }, pl.free_type_vars(pl.let(y, x, y)))
    local f = pl.func({ z }, z, nil, nil, { a })
    assert.same({ a }, pl.bound_type_vars(f))
    assert.same({}, pl.free_type_vars(f))
    assert.same({ a }, pl.all_type_vars(f))
  end)

  it("are given another type by a mutator", function()
    local z = pl.var("z", pl.ir.TupleType { a, a })
    local out = pl.mutator { TypeVar = function() return b end } (pl.func({ z }, z:get(0)))
    assert.same({ b }, pl.free_type_vars(out))
    assert.equal(b, out.body.type)
    local f = pl.func({ z }, z, nil, nil, { a })
    out = pl.mutator { TypeVar = function() return b end } (f)
    assert.same({ b }, out.type_params)
    assert(pl.verify(out))
  end)
end)

describe("bind", function()
  local x, y, z = pl.var("x", f32(2)), pl.var("y", f32(2)), pl.var("z", f32(2))
  local tanh = pl.op.tanh

  it("puts expressions in place of free variables", function()
    assert.is_true(pl.equal(pl.bind(x + z, { [x] = y }), y + z))
    assert.is_true(pl.equal(pl.bind(x + z, { [x] = 2 }), pl.const(2, "float32") + z))
    local value = tanh(y)
    assert.is_true(pl.equal(pl.bind(x + x, { [x] = value }), value + value))
  end)

  it("puts them in at once", function()
    assert.is_true(pl.equal(pl.bind(x - y, { [x] = y, [y] = x }), y - x))
  end)

  it("takes parameters from a function", function()
    local f = pl.func({ x, y }, x - y)
    assert.is_true(pl.equal(pl.bind(f, { [y] = pl.const({ 1, 2 }, "float32") }),
      pl.func({ x }, x - pl.const({ 1, 2 }, "float32"))))
    local bound = pl.bind(f, { [x] = tanh(z) })
    assert.equal("y z", names(bound.params))
    assert.equal("", names(pl.free_vars(bound)))
    assert(pl.verify(bound))
    local less = pl.bind(f, { [y] = pl.const({ 1, 1 }, "float32") })
    assert.same({ 1, 2 }, pl.eval(less, { 2, 3 }):to_table())
  end)

  it("takes the parameters of a module's function by its own handles", function()
    local mod = pl.module { main = pl.func({ x, y }, x * y) }
    local bound = pl.bind(mod.main, { [mod.main.params[2]] = pl.tensor { 3.0, 4.0 } })
    assert.equal(1, #bound.params)
    assert(pl.verify(mod:with { main = bound }))
  end)

  it("gives the very same expression when there is nothing to bind", function()
    local mod = pl.module { main = pl.func({ x }, tanh(x)) }
    assert.is_true(rawequal(mod.main, pl.bind(mod.main, { [y] = 1 })))
    assert.is_true(rawequal(mod.main, pl.bind(mod.main, {})))
  end)

  it("refuses variables that are bound inside", function()
    local function refused(e, pattern)
      local ok, message = pcall(pl.bind, e, { [y] = 1 })
      assert.is_false(ok)
      assert.is_truthy(tostring(message):find(pattern))
    end
    refused(pl.let(y, x, y), "cannot bind 'y': it is bound by a let")
    refused(pl.func({ x }, pl.func({ y }, y)), "cannot bind 'y': it is bound by a function inside")
  end)

  it("refuses what is no variable", function()
    assert.has_error(function() pl.bind(x, { [tanh(x)] = 1 }) end)
    assert.has_error(function() pl.bind(x, { x = 1 }) end)
    assert.has_error(function() pl.bind(x, { [x] = print }) end)
    assert.has_error(function() pl.bind(x) end)
  end)

  it("types what depends on the value anew", function()
    local u = pl.var("u", pl.type "Tensor[(N), float32]")
    local f = pl.bind(pl.func({ u }, tanh(u)), { [u] = pl.const({ 1, 2, 3 }, "float32") })
    assert.equal(f32(3), f.body.type)
    assert.equal(0, #f.params)
  end)
end)
