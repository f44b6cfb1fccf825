-- What TVM's tests of type inference (tests/python/relay/test_type_infer.py) pin,
-- each named after the test: of programs, written as text where they can be.

local pl = require "perilune"
local ir, op = pl.ir, pl.op

local HEAD = '#[version = "0.0.5"]\n'
local BOX = HEAD .. "type Box[A] { Put(A) }\n"

-- The type of a function of a module, or of main.
local function typed(text, name)
  return tostring(assert(pl.parse(HEAD .. text)).functions[name or "main"].type)
end

local function type_of(expr, mod)
  return tostring(assert(pl.infer_type(expr, mod)).type)
end

describe("test_type_infer", function()
  it("test_monomorphic_let: a let is of its body's type", function()
    assert.equal("fn () -> float64", typed "def @main() { let %x = 1f64; %x }")
    local x = pl.var("x", "float64")
    assert.equal("float64", type_of(pl.let(x, pl.const(1.0, "float64"), x)))
  end)

  it("test_single_op, test_decl: an operator of a parameter", function()
    assert.equal("fn (float32) -> float32", typed "def @main(%x: float32) { log(%x) }")
    assert.equal("fn (Tensor[(10, 10), float32]) -> Tensor[(10, 10), float32]",
      typed "def @main(%x: Tensor[(10, 10), float32]) { log(%x) }")
  end)

  it("test_add_broadcast_op: shapes that are broadcast", function()
    assert.equal("fn (Tensor[(10, 4), float32], Tensor[(5, 10, 1), float32]) -> "
      .. "Tensor[(5, 10, 4), float32]",
      typed "def @main(%x: Tensor[(10, 4), float32], %y: Tensor[(5, 10, 1), float32]) { %x + %y }")
  end)

  it("test_dual_op: lets in a row", function()
    assert.equal("fn (Tensor[(10, 10), float32]) -> Tensor[(10, 10), float32]", typed [[
      def @main(%x: Tensor[(10, 10), float32]) {
        let %t1 = log(%x); let %t2 = add(%t1, %x); %t2 }]])
  end)

  it("test_recursion: a function that calls itself, its result not declared", function()
    local text = [[def @f(%n: int32, %data: float32) {
      if (%n == 0) { %data } else { @f(%n - 1, log(%data)) } }]]
    assert.equal("fn (int32, float32) -> float32", typed(text, "f"))
    assert.matches("@f%(%%1, %%2%)", tostring(pl.parse(HEAD .. text)))
  end)

  it("test_incomplete_call: what is called is a function of what it is given", function()
    local x, f = pl.var("x", "int32"), pl.var "f"
    assert.equal("fn (int32, fn (int32) -> int32) -> int32",
      type_of(pl.func({ x, f }, pl.call(f, { x }), "int32")))
  end)

  it("test_higher_order_argument: a generic function as argument of one", function()
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    local x, f, y = pl.var("x", a), pl.var("f", ir.FuncType({ b }, b)), pl.var("y", b)
    local id = pl.func({ x }, x, a, nil, { a })
    local apply = pl.func({ f, y }, pl.call(f, { y }), b, nil, { b })
    assert.equal("int32", type_of(pl.call(apply, { id, pl.const(0, "int32") })))
  end)

  it("test_higher_order_return: a generic function as result of one", function()
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    local x = pl.var("x", a)
    local id = pl.func({ x }, x, a, nil, { a })
    local nested = pl.func({}, id, ir.FuncType({ b }, b), nil, { b })
    local wanted = ir.FuncType({}, ir.FuncType({ b }, b), { b })
    assert.is_true(pl.equal(wanted, assert(pl.infer_type(nested)).type))
  end)

  it("test_higher_order_nested: one of two functions, one of them generic", function()
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    local x, z = pl.var("x", a), pl.var "z"
    local choice = pl.type "fn () -> bool"
    local f = pl.var("f", choice)
    local id = pl.func({ x }, x, a, nil, { a })
    local top = pl.func({ f }, pl.if_(pl.call(f, {}), id, pl.func({ z }, z)),
      ir.FuncType({ b }, b), nil, { b })
    local wanted = ir.FuncType({ choice }, ir.FuncType({ b }, b), { b })
    assert.is_true(pl.equal(wanted, assert(pl.infer_type(top)).type))
  end)

  it("test_tuple: of what its fields are", function()
    local x = pl.var("x", "Tensor[(10), float32]")
    assert.equal("(Tensor[(10), float32], Tensor[(10), float32])", type_of(pl.tuple { x, x }))
  end)

  it("test_ref: a cell, what is read from it, what writing gives", function()
    local x, y = pl.var("x", "float32"), pl.var("y", "float32")
    local r = ir.RefCreate(x)
    assert.equal("ref(float32)", type_of(r))
    assert.equal("float32", type_of(ir.RefRead(r)))
    assert.equal("()", type_of(ir.RefWrite(r, y)))
  end)

  it("test_free_expr: free variables stay themselves", function()
    local x = pl.var("x", "float32")
    local y = assert(pl.infer_type(op.add(x, x)))
    assert.equal("float32", tostring(y.type))
    assert.is_true(y.args[1] == x)
    local z = pl.var "z"
    y = assert(pl.infer_type(op.add(z, x)))
    assert.is_true(pl.equal(y.args[1], z) or y.args[1].name == "z")
  end)

  it("test_global_var_recursion: a global that calls itself, declared", function()
    assert.equal("fn (float32) -> float32",
      typed "def @main(%x: float32) -> float32 { @main(%x) }")
  end)

  it("test_equal: a comparison is boolean", function()
    assert.equal("fn (int32) -> bool", typed "def @main(%i: int32) { equal(%i, 0) }")
  end)

  it("test_constructor_type: a constructor is a generic function", function()
    local mod = assert(pl.parse(BOX .. "def @main[A](%x: A) -> Box[A] { Put(%x) }"))
    local a = ir.TypeVar "A"
    assert.is_true(pl.equal(ir.FuncType({ a }, ir.TypeCall("Box", { a }), { a }), mod.main.type))
    assert.is_true(pl.equal(mod.main.type, assert(pl.infer_type(ir.Constructor "Put", mod)).type))
  end)

  it("test_constructor_call: of what it was given", function()
    local mod = assert(pl.parse(BOX .. "def @main() { (Put(()), Put(0f)) }"))
    assert.equal("fn () -> (Box[()], Box[float32])", tostring(mod.main.type))
  end)

  it("test_adt_match: of what its arms are, redundant ones as well", function()
    local mod = assert(pl.parse(BOX .. [[def @main() {
      match (Put(0f)) { Put(%v: float32) => { () }, _ => { () } } }]]))
    assert.equal("fn () -> ()", tostring(mod.main.type))
  end)

  it("test_adt_match_type_annotations: a pattern's variable tells what the data is", function()
    local mod = assert(pl.parse(BOX .. [[def @main(%x) {
      match (Put(%x)) { Put(%mv: Tensor[(2, 2), float32]) => { () } } }]]))
    assert.equal("fn (Tensor[(2, 2), float32]) -> ()", tostring(mod.main.type))
  end)

  it("test_let_polymorphism: a generic function is called at several types", function()
    local id, xt = pl.var "id", ir.TypeVar "xt"
    local x = pl.var("x", xt)
    local body = pl.tuple { pl.call(id, { pl.const(1, "int32") }), pl.call(id, { pl.tuple {} }) }
    assert.equal("(int32, ())", type_of(pl.let(id, pl.func({ x }, x, xt, nil, { xt }), body)))
    assert.equal("fn () -> (int32, ())",
      typed "def @main() { let %id = fn [A](%x: A) -> A { %x }; (%id(1), %id(())) }")
  end)

  it("test_dynamic_function: a known shape fits an unknown one, and stays known", function()
    local x = pl.var("x", "Tensor[(?), float32]")
    local y = pl.var("y", "Tensor[(10), float32]")
    local f = pl.func({ x }, op.add(x, x))
    local main = assert(pl.infer_type(pl.func({ y }, pl.call(f, { y }))))
    assert.equal("Tensor[(10), float32]", tostring(main.params[1].type))
    assert.matches("^fn %(Tensor%[%(%?, %?, %?, %?%), float32%]%) %-> Tensor", typed [[
      def @main(%d: Tensor[(?, ?, ?, ?), float32]) {
        let %w: Tensor[(16, 8, 3, 3), float32] = zeros(shape=[16, 8, 3, 3], dtype="float32");
        nn.conv2d(%d, %w, channels=16, kernel_size=[3, 3], groups=2, padding=[0, 0, 0, 0]) }]])
  end)

  it("test_argreduce_infer_return_type: the place of the largest and of the smallest", function()
    for _, name in ipairs { "argmax", "argmin" } do
      assert.equal("fn (Tensor[(1, 1), float32]) -> Tensor[(1), int32]", typed(
        "def @main(%x: Tensor[(1, 1), float32]) { %0 = broadcast_to(%x, shape=[1, 1]); "
          .. name .. "(%0, axis=[1]) }"))
    end
  end)
end)
