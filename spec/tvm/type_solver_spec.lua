-- What TVM's tests of its solver of types (tests/python/relay/test_type_solver.py)
-- pin, each named after the test. What its tests ask of the solver alone is asked
-- of Type:unify, relations of functions that are under them.

local pl = require "perilune"
local ir, op = pl.ir, pl.op

local function f32(...) return ir.TensorType({ ... }, "float32") end
local function hole() return ir.IncompleteType() end
local function tuple(...) return ir.TupleType { ... } end

-- The type of a call of `fn [vars](params) -> ret where relations` with arguments.
local function solved(vars, params, ret, relations, args)
  local f = pl.var("f", ir.FuncType(params, ret, vars, relations))
  local nodes = {}
  for i, arg in ipairs(args) do
    nodes[i] = type(arg) == "table" and arg or pl.var("x" .. i, arg)
  end
  return assert(pl.infer_type(pl.call(f, nodes))).type
end

local function relation(name, ...)
  local args = { ... }
  return ir.TypeRelation(name, args, #args - 1)
end

local function vars(n)
  local list = {}
  for i = 1, n do list[i] = ir.TypeVar(("abcdef"):sub(i, i)) end
  return list, table.unpack(list)
end

describe("test_type_solver", function()
  it("test_bcast: broadcasts and identities in a row", function()
    local all, a, b, c, d, e, t = vars(6)
    assert.equal(tuple(f32(10, 20), f32(10, 10, 20)), solved(all, { a, b, c }, tuple(d, t), {
      relation("Broadcast", a, b, d), relation("Identity", d, e), relation("Broadcast", e, c, t),
    }, { f32(10, 20), f32(10, 1), f32(10, 1, 1) }))
  end)

  it("test_backward_solving: an identity tells its input", function()
    local all, a, b, c = vars(3)
    assert.equal(f32(10, 10, 20), solved(all, { a }, c,
      { relation("Broadcast", a, b, c), relation("Identity", b, f32(10, 1, 1)) }, { f32(10, 20) }))
  end)

  it("test_unify_tuple: field by field", function()
    assert.equal(tuple(f32(10, 20), f32(10, 20)),
      tuple(hole(), hole()):unify(tuple(f32(10, 20), f32(10, 20))))
  end)

  it("test_unify_global_type_var, test_unify_invalid_global_typevars: the same name", function()
    local gtv = ir.GlobalTypeVar "gtv"
    assert.equal(gtv, gtv:unify(gtv))
    assert.is_nil(gtv:unify(ir.GlobalTypeVar "other"))
    assert.is_nil(gtv:unify(ir.GlobalTypeVar("gtv", "Type")))
  end)

  it("test_unify_typecall: argument by argument", function()
    local t = f32(10, 20)
    assert.equal(ir.TypeCall("gtv", { t, t }),
      ir.TypeCall("gtv", { hole(), hole() }):unify(ir.TypeCall("gtv", { t, t })))
  end)

  it("test_unify_functype: parameters and result", function()
    local wanted = ir.FuncType({ f32(10, 20), f32(10) }, tuple())
    assert.equal(wanted, ir.FuncType({ hole(), hole() }, hole()):unify(wanted))
  end)

  it("test_recursive_unify: what is inside of what is inside", function()
    local a, b, c = hole(), hole(), hole()
    local x, y, z = f32(10, 10, 20), f32(10, 20), f32(10)
    local wanted = ir.FuncType({ tuple(tuple(x, y), y), z }, z)
    assert.equal(wanted, ir.FuncType({ tuple(tuple(a, b), b), c }, c):unify(wanted))
  end)

  it("test_unify_vars_under_tuples: two that are one", function()
    local a, b = hole(), hole()
    assert.equal(tuple(a, a), tuple(a, a):unify(tuple(a, a)))
    local both = tuple(a, b):unify(tuple(b, a))
    assert.is_true(both == tuple(a, a) or both == tuple(b, b))
  end)

  it("test_binding_over_typevars: an incomplete type becomes a bound variable", function()
    local a, b, c, d = ir.TypeVar "a", ir.TypeVar "b", ir.TypeVar "c", ir.TypeVar "d"
    local both = ir.FuncType({ hole() }, hole(), { c, d }):unify(ir.FuncType({ a }, b, { a, b }))
    assert.is_true(pl.equal(ir.FuncType({ c }, d, { c, d }), both))
  end)

  it("test_recursive_backward_solving: an identity of tuples", function()
    local wanted = tuple(tuple(f32(10, 20), f32(10, 1, 1)), f32(10))
    local all, a, b, c = vars(3)
    assert.equal(wanted, solved(all, {}, tuple(tuple(a, b), c),
      { relation("Identity", wanted, tuple(tuple(a, b), c)) }, {}))
  end)

  it("test_backward_solving_after_child_update: what is found later is found everywhere", function()
    local all, a, b, c, d, e = vars(5)
    local both = tuple(f32(10, 20), f32(10, 1, 1))
    assert.equal(tuple(both, both), solved(all, {}, tuple(d, e), {
      relation("Identity", tuple(a, b), d), relation("Identity", tuple(a, c), e),
      relation("Identity", d, e),
      relation("Identity", a, f32(10, 20)), relation("Identity", b, f32(10, 1, 1)),
    }, {}))
  end)

  it("test_unify_quantified_funcs: up to names, the less general wins", function()
    local a, b, c = ir.TypeVar "a", ir.TypeVar "b", ir.TypeVar "c"
    local less = ir.FuncType({ a, a }, a, { a })
    assert.is_true(pl.equal(less, ir.FuncType({ a, b }, c, { a, b, c }):unify(less)))
    local id = ir.FuncType({ a }, a, { a })
    assert.is_true(pl.equal(id, id:unify(ir.FuncType({ b }, c, { b, c }))))
  end)

  it("test_unify_quantified_func_and_concrete: a result that is known", function()
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    local less = ir.FuncType({ b }, tuple(), { b })
    assert.is_true(pl.equal(less, ir.FuncType({ a }, b, { a, b }):unify(less)))
  end)

  it("test_unify_quantified_funcs_nesting: variables inside of tuples", function()
    local a, b, c = ir.TypeVar "a", ir.TypeVar "b", ir.TypeVar "c"
    local less = ir.FuncType({ a, tuple(a, a) }, tuple(a, a, a), { a })
    local more = ir.FuncType({ a, tuple(b, c) }, tuple(a, b, c), { a, b, c })
    assert.is_true(pl.equal(less, more:unify(less)))
  end)

  it("test_unify_quantified_funcs_var_order: as many as are left, in their order", function()
    local a, b, c = ir.TypeVar "a", ir.TypeVar "b", ir.TypeVar "c"
    local more = ir.FuncType({ a, tuple(b, c) }, tuple(a, b, c), { a, b, c })
    local less = ir.FuncType({ a, tuple(a, c) }, tuple(a, a, c), { a, c })
    assert.is_true(pl.equal(less, more:unify(less)))
    assert.is_true(pl.equal(less, less:unify(more)))
  end)

  it("test_incompatible_tuple_unification: one that would be two", function()
    local a = hole()
    assert.is_nil(tuple(tuple(a, a), hole()):unify(
      tuple(tuple(f32(1, 2, 3), f32(2, 3)), f32(3))))
  end)

  it("test_bad_recursive_unification: one that contains itself", function()
    local a = hole()
    local ok, both = pcall(a.unify, a, tuple(a, a))
    assert.is_true(not ok or both == nil)
  end)

  it("test_incompatible_typecall_var_unification, _args_: other names, other arguments", function()
    local a = hole()
    assert.is_nil(ir.TypeCall("gtv1", { hole() }):unify(ir.TypeCall("gtv2", { hole() })))
    assert.is_nil(ir.TypeCall("gtv1", { tuple(a, a), hole() }):unify(
      ir.TypeCall("gtv1", { tuple(f32(1, 2, 3), f32(2, 3)), f32(3) })))
  end)

  it("test_incompatible_quantified_func_unification: a variable is no tuple", function()
    local a, b, c = ir.TypeVar "a", ir.TypeVar "b", ir.TypeVar "c"
    assert.is_nil(ir.FuncType({ a, b }, c, { a, b, c }):unify(
      ir.FuncType({ b, c }, tuple(a), { a, b, c })))
  end)
end)

describe("what a result tells of operands", function()
  local function type_of(expr) return tostring(assert(pl.infer_type(expr)).type) end

  it("of operators that keep the type, in a row", function()
    local x = pl.var "x"
    assert.equal("fn (Tensor[(3), float32]) -> Tensor[(3), float32]",
      type_of(pl.func({ x }, op.negative(op.tanh(op.nn.relu(x))), f32(3))))
  end)

  it("through functions, branches and tuples", function()
    local x, y, c = pl.var "x", pl.var "y", pl.var "c"
    local f = pl.func({ y }, op.exp(y))
    assert.equal("fn (bool, float32) -> float32",
      type_of(pl.func({ c, x }, pl.if_(c, pl.call(f, { x }), pl.const(1.0)))))
    local pair = ir.TupleType { ir.TensorType({ 2 }, "int8") }
    assert.equal("fn (Tensor[(2), int8]) -> (Tensor[(2), int8],)",
      type_of(pl.func({ x }, pl.tuple { op.abs(x) }, pair)))
  end)

  it("not of operators that broadcast", function()
    local x, y = pl.var "x", pl.var "y"
    assert.equal("fn (_, _) -> Tensor[(3), float32]",
      type_of(pl.func({ x, y }, op.add(x, y), f32(3))))
  end)
end)
