-- Variables, and expressions in their place, as TVM has them: the counterparts of its
-- test_pass_vars.py and test_ir_bind.py, by name. Lists are in TVM's order.

local pl = require "perilune"

local ir = pl.ir
local int32 = pl.type "int32"

local function expect(list, expected)
  assert.equal(#expected, #list)
  for i, var in ipairs(expected) do assert.equal(var, list[i]) end
end

describe("variables of expressions", function()
  local x, y, z, a = pl.var "x", pl.var "y", pl.var "z", pl.var "a"

  it("test_free_vars: a let and a function bind theirs", function()
    local v = pl.var("v", int32)
    expect(pl.free_vars(v), { v })
    expect(pl.free_vars(pl.let(v, pl.const(10, "int32"), v)), {})
    expect(pl.free_vars(pl.func({ v }, v, int32)), {})
  end)

  it("test_free_vars_tuple: each once", function()
    local t = pl.var "t"
    expect(pl.free_vars(pl.tuple { t, t }), { t })
    expect(pl.free_vars(ir.TupleGetItem(t, 123)), { t })
  end)

  it("test_bound_vars: parameters, then lets; what is free is not bound", function()
    local f = pl.func({ x, y, z }, pl.let(a, x, pl.tuple {}))
    expect(pl.bound_vars(f), { x, y, z, a })
    expect(pl.bound_vars(pl.tuple { x, y, z, a }), {})
    expect(pl.bound_vars(pl.func({ x, y }, pl.tuple { x, y, z, a })), { x, y })
  end)

  it("test_match_vars: those of patterns, arm by arm", function()
    local cons = ir.Constructor "Cons"
    local list = ir.Constructor "Nil"
    local function at(...) return ir.PatternConstructor("Cons", { ... }) end
    local one = ir.Match(ir.Call(list, {}), {
      { ir.PatternConstructor "Nil", z },
      { at(ir.PatternVar(x), ir.PatternVar(y)), ir.Call(cons, { x, y }) },
    })
    expect(pl.bound_vars(one), { x, y })
    expect(pl.free_vars(one), { z })
    expect(pl.all_vars(one), { z, x, y })
    local two = ir.Match(ir.Call(list, {}), {
      { at(ir.PatternWildcard(), ir.PatternVar(x)), y },
      { ir.PatternWildcard(), z },
    })
    expect(pl.bound_vars(two), { x })
    expect(pl.free_vars(two), { y, z })
    expect(pl.all_vars(two), { x, y, z })
  end)

  it("test_all_vars: in the order in which they are met", function()
    expect(pl.all_vars(pl.func({ x, y }, z)), { x, y, z })
    expect(pl.all_vars(pl.func({ x }, pl.let(y, pl.tuple {}, z))), { x, y, z })
    expect(pl.all_vars(pl.func({ x }, pl.tuple { y, z })), { x, y, z })
    expect(pl.all_vars(pl.tuple { x, y, z }), { x, y, z })
  end)
end)

describe("type variables", function()
  local a, b, c = ir.TypeVar "a", ir.TypeVar "b", ir.TypeVar "c"

  it("test_free_type_vars: of the types that variables have", function()
    local x, y = pl.var("x", ir.TupleType { a, int32 }), pl.var "y"
    local let = pl.let(x, y, x)
    expect(pl.free_vars(let), { y })
    expect(pl.free_type_vars(let), { a })
  end)

  it("test_bound_type_vars: of function types and generic functions", function()
    expect(pl.bound_type_vars(ir.FuncType({ a }, b, { a, b })), { a, b })
    expect(pl.bound_type_vars(ir.FuncType({}, c, { a })), { a })
    expect(pl.bound_type_vars(ir.TupleType { a, b, c }), {})
    local unit = pl.tuple {}
    expect(pl.bound_type_vars(pl.func({}, unit, nil, nil, { a, b })), { a, b })
    expect(pl.bound_type_vars(pl.func({}, pl.var "v", c)), {})
    local x = pl.var("x", a)
    expect(pl.bound_type_vars(pl.let(x, pl.var "v", x)), {})
    local g = pl.var "g"
    expect(pl.bound_type_vars(pl.let(g, pl.func({}, unit, nil, nil, { b, c }), g)), { b, c })
  end)

  it("test_all_type_vars: bound ones of a function first", function()
    expect(pl.all_type_vars(ir.FuncType({ b }, c, { a })), { a, b, c })
    expect(pl.all_type_vars(ir.FuncType({}, ir.TupleType { a, b, c })), { a, b, c })
    local w, x = pl.var "w", pl.var("x", a)
    local y, z = pl.var("y", b), pl.var("z", c)
    expect(pl.all_type_vars(pl.func({ x }, y, b, nil, { a })), { a, b })
    expect(pl.all_type_vars(pl.func({ x }, pl.let(pl.var("u", b), pl.var "v", z))), { a, b, c })
    expect(pl.all_type_vars(pl.func({}, pl.tuple { x, y, z })), { a, b, c })
    expect(pl.all_type_vars(pl.func({ w }, pl.tuple {}, nil, nil, { a, b, c })), { a, b, c })
    expect(pl.all_type_vars(pl.func({ w }, w)), {})
  end)
end)

describe("bind", function()
  it("test_bind_params: a constant for a parameter, a variable for a variable", function()
    local x, y = pl.var "x", pl.var "y"
    local z = x + y
    local bound = pl.bind(pl.func({ x, y }, z), { [x] = pl.const(1, "float32") })
    pl.assert_equal(bound, pl.func({ y }, pl.const(1, "float32") + y))
    pl.assert_equal(pl.bind(z, { [y] = x }), x + x)
  end)
end)
