-- Types that nobody wrote down are found by unification: parameters of closures,
-- recursive functions, branches, cells; what is known is not inferred again.

local pl = require "perilune"
local op = pl.op

local function type_of(expr, mod)
  return tostring(assert(pl.infer_type(expr, mod)).type)
end

local function refused(expr, mod)
  local typed, diag = pl.infer_type(expr, mod)
  assert.is_nil(typed)
  return diag.message
end

describe("InferType", function()
  it("types a parameter by the call of its function", function()
    local x = pl.var "x"
    local fn = pl.func({ x }, op.add(x, pl.const(1.0)))
    assert.equal("fn (_) -> Tensor[*, float32]", tostring(fn.type))
    local call = pl.call(fn, { pl.var("y", "Tensor[(2, 3), float32]") })
    assert.equal("Tensor[(2, 3), float32]", type_of(call))
    local typed = assert(pl.infer_type(call))
    assert.equal("fn (Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32]",
      tostring(typed.callee.type))
  end)

  it("types what a match takes apart by its patterns", function()
    for _, body in ipairs {
      "match (Nil) { %l: List[int32] => { 2 } }",
      "match (Nil) { Cons(%x: int32, _) => { 1 }, Nil => { 2 } }",
      "let %y = Nil; match (%y) { Cons(_, %l: List[int32]) => { 1 }, Nil => { 2 } }",
    } do
      local mod = assert(pl.parse(([[#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @main() { %s }]]):format(body)))
      assert.is_nil(tostring(mod):find("[_]", 1, true), body)
    end
  end)

  it("types what a let binds, monomorphically", function()
    local f, x, y = pl.var "f", pl.var "x", pl.var("y", "float32")
    local body = pl.let(f, pl.func({ x }, op.negative(x)), pl.call(f, { y }))
    assert.equal("float32", type_of(pl.func({ y }, body)):match "-> (.*)")
  end)

  it("types one operator, two in a row, and one that broadcasts", function()
    local x, y = pl.var "x", pl.var "y"
    local f = pl.func({ x, y }, op.log(op.add(x, y)))
    local call = pl.call(f, { pl.var("a", "Tensor[(10, 4), float32]"),
      pl.var("b", "Tensor[(5, 10, 1), float32]") })
    assert.equal("Tensor[(5, 10, 4), float32]", type_of(call))
  end)

  it("types a recursive let by what it returns elsewhere", function()
    local f, n = pl.var "f", pl.var "n"
    local one = pl.const(1, "int32")
    local body = pl.if_(op.less(n, one), one, pl.call(f, { op.subtract(n, one) }))
    local x = pl.var("x", "int32")
    local main = pl.func({ x }, pl.let(f, pl.func({ n }, body), pl.call(f, { x })))
    assert.equal("fn (int32) -> int32", type_of(main))
  end)

  it("leaves open what nothing tells", function()
    local f = pl.var("f", "fn (_) -> _")
    assert.equal("_", type_of(pl.call(f, { pl.var "x" })))
    local x = pl.var "x"
    assert.equal("fn (_) -> _", type_of(pl.func({ x }, x)))
  end)

  it("types functions that are given functions", function()
    local f, x = pl.var "f", pl.var "x"
    local twice = pl.func({ f, x }, pl.call(f, { pl.call(f, { x }) }))
    local y = pl.var "y"
    local call = pl.call(twice, { pl.func({ y }, op.tanh(y)),
      pl.var("a", "Tensor[(4), float32]") })
    assert.equal("Tensor[(4), float32]", type_of(call))
    local typed = assert(pl.infer_type(call))
    local t = "Tensor[(4), float32]"
    assert.equal(("fn (fn (%s) -> %s, %s) -> %s"):format(t, t, t, t), tostring(typed.callee.type))
  end)

  it("types functions that return functions", function()
    local x, y = pl.var "x", pl.var "y"
    local adder = pl.func({ x }, pl.func({ y }, op.add(x, y)))
    local a = pl.var("a", "Tensor[(4), float32]")
    assert.equal("Tensor[(4), float32]", type_of(pl.call(pl.call(adder, { a }), { a })))
  end)

  it("types fields of tuples that come later", function()
    local t = pl.var "t"
    local f = pl.func({ t }, op.add(t:get(0), t:get(1)))
    local a = pl.var("a", "Tensor[(4), float32]")
    local call = pl.call(f, { pl.tuple { a, pl.const(1.0) } })
    assert.equal("Tensor[(4), float32]", type_of(call))
    assert.matches("field 1 of a tuple of 1", refused(pl.call(f, { pl.tuple { a } })))
  end)

  it("types cells", function()
    local r, x = pl.var "r", pl.var "x"
    local write = pl.ir.RefWrite(r, op.add(pl.ir.RefRead(r), x))
    local body = pl.let(pl.var "_", write, pl.ir.RefRead(r))
    local f = pl.func({ r, x }, body)
    local call = pl.call(f, { pl.ir.RefCreate(pl.const(1.0)), pl.var("y", "float32") })
    assert.equal("float32", type_of(call))
    local typed = assert(pl.infer_type(call))
    assert.equal("fn (ref(float32), float32) -> float32", tostring(typed.callee.type))
  end)

  it("types an operator that is a value by what it is given", function()
    local f, x = pl.var "f", pl.var "x"
    local apply = pl.func({ f, x }, pl.call(f, { x }))
    local call = pl.call(apply, { pl.ir.Op "tanh", pl.var("a", "Tensor[(2), float32]") })
    assert.equal("Tensor[(2), float32]", type_of(call))
  end)

  it("types the condition and joins the branches", function()
    local c, x = pl.var "c", pl.var "x"
    local f = pl.func({ c, x }, pl.if_(c, x, pl.var("y", "float32")))
    assert.equal("fn (bool, float32) -> float32", type_of(f))
  end)

  it("types a module: callers, callees, and those that call each other", function()
    local n = pl.var("n", "int32")
    local zero, one = pl.const(0, "int32"), pl.const(1, "int32")
    local function half(other, answer)
      local k = pl.var "k"
      return pl.func({ k }, pl.if_(op.equal(k, zero), answer,
        pl.call(pl.global(other), { op.subtract(k, one) })))
    end
    local mod = pl.module {
      main = pl.func({ n }, pl.call(pl.global "even", { n })),
      even = half("odd", pl.const(true)),
      odd = half("even", pl.const(false)),
      unused = pl.func({ pl.var("x", "float32") }, pl.const(2.0)),
    }
    local typed = assert(pl.infer_type(mod))
    for name, wanted in pairs { main = "fn (int32) -> bool", unused = "fn (float32) -> float32" } do
      assert.equal(wanted, tostring(typed.functions[name].type))
    end
    assert.equal("fn (_) -> bool", tostring(typed.functions.even.type))
    assert.equal(typed.functions.unused, mod.functions.unused)
    assert.is_true(pl.verify(typed))
    local passed = pl.passes.InferType()(mod)
    assert.equal(tostring(typed), tostring(passed))
    assert.equal(typed, (pl.infer_type(typed)))
  end)

  it("gives back the very same when all is known", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local fn = pl.func({ x }, op.tanh(x))
    assert.equal(fn, pl.infer_type(fn))
    local mod = pl.module { main = fn }
    assert.is_true(rawequal(mod, (pl.infer_type(mod))))
    local typed = assert(pl.infer_type(pl.call(pl.func({ pl.var "y" }, pl.const(1)), { x })))
    assert.equal(typed, pl.infer_type(typed))
  end)

  it("says which node contradicts, and how", function()
    local f = pl.func({ pl.var("x", "float32") }, pl.const(1.0))
    local y = pl.var "y"
    local z = pl.var("z", "Tensor[(2), int8]")
    local g = pl.func({ y }, pl.tuple { pl.call(f, { y }), op.add(y, z) })
    assert.matches("add.*in add%(%%y: float32, %%z: Tensor%[%(2%), int8%]%)", refused(g))
    assert.matches("of @main$", refused(pl.module { main = g }))
    local h = pl.var "h"
    local itself = pl.func({ h }, pl.call(h, { h }))
    assert.matches("infinite", refused(itself))
  end)

  it("refuses at once what is known to be wrong", function()
    local f = pl.func({ pl.var("x", "float32") }, pl.const(1.0))
    assert.error_matches(function() pl.call(f, { pl.var("y", "Tensor[(2), int8]") }) end,
      "argument 1 must be float32, got Tensor%[%(2%), int8%]: in Function%(%%y: Tensor")
    assert.error_matches(function() pl.call(f, {}) end, "the function takes 1 argument, got 0")
    assert.error_matches(function() pl.call(pl.const(1), {}) end, "the callee is not a function")
    assert.error_matches(function() pl.func({}, pl.const(1.0), "int8") end,
      "declared to return int8, but returns float32")
    assert.error_matches(function()
      pl.let(pl.var("v", "int8"), pl.const(1.0), pl.const(1))
    end, "value of another type")
  end)

  it("takes linear time over a chain of lets and a DAG of doublings", function()
    local x = pl.var "x"
    local vars, value = {}, x
    for i = 1, 2000 do vars[i] = pl.var("v" .. i) end
    local body = vars[2000]
    for i = 2000, 1, -1 do
      body = pl.let(vars[i], op.tanh(i == 1 and x or vars[i - 1]), body)
    end
    assert.equal("float32", type_of(pl.call(pl.func({ x }, body), { pl.const(1.0) })))
    for _ = 1, 1000 do value = pl.tuple { value, value } end
    assert.is_truthy(pl.infer_type(pl.call(pl.func({ x }, value), { pl.const(1.0) })))
  end)

  it("types the callers of a function whose signature changed, and theirs", function()
    local function given(shape)
      local x = pl.var("x", "Tensor[(2, 3), float32]")
      return pl.func({ x }, op.reshape(x, pl.const({ shape }, "int64")))
    end
    local function caller(name)
      local x = pl.var("x", "Tensor[(2, 3), float32]")
      return pl.func({ x }, pl.call(pl.global(name), { x }))
    end
    local mod = assert(pl.infer_type(pl.module {
      a = given(6), b = caller "a", c = caller "b", other = given(-1) }))
    assert.matches("-> Tensor%[%(6%)", tostring(mod.functions.c.type))
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local changed = mod:with { a = pl.func({ x }, op.exp(x)) }
    for _, name in ipairs { "b", "c" } do
      assert.matches("-> Tensor%[%(2, 3%)", tostring(changed.functions[name].type))
    end
    assert.equal(mod.functions.other, changed.functions.other)
    assert.is_true(pl.verify(changed))
  end)

  it("types what a function calls itself with when its signature changes", function()
    local function rec(type)
      local x = pl.var("x", type)
      return pl.func({ x }, pl.call(pl.global "f", { x }), type)
    end
    local mod = assert(pl.infer_type(pl.module { f = rec "float32" }))
    local changed = mod:with { f = rec "int8" }
    assert.is_true(pl.verify(assert(pl.infer_type(changed))))
  end)

  it("takes linear time over deep tuples of what is not known", function()
    local x = pl.var "x"
    local value = op.add(x, pl.const(1.0))
    for _ = 1, 20000 do value = pl.tuple { value } end
    assert.is_truthy(pl.infer_type(pl.func({ x }, value)))
  end)
end)

describe("Operands of which nobody says a type", function()
  local function types(text)
    local mod = assert(pl.parse('#[version = "0.0.5"]\n' .. text))
    local list = {}
    for i, param in ipairs(mod.main.params) do list[i] = tostring(param.type) end
    return table.concat(list, "; ")
  end

  it("have the type that a layer gives its weights", function()
    assert.equal("Tensor[(1, 3, 8, 8), float32]; Tensor[(16, 3, 3, 3), float32]; "
      .. "Tensor[(16), float32]; Tensor[(16), float32]; Tensor[(16), float32]; "
      .. "Tensor[(16), float32]; Tensor[(10, 1024), float32]; Tensor[(10), float32]", types [[
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w, %g, %b, %m, %v, %d, %c) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %1 = nn.batch_norm(%0, %g, %b, %m, %v);
  nn.bias_add(nn.dense(nn.batch_flatten(%1.0), %d, units=10), %c)
}]])
  end)

  it("have it in the layout of the weight, and by group", function()
    assert.equal("Tensor[(1, 8, 8, 6), float16]; Tensor[(5, 5, 3, 4), float16]", types [[
def @main(%x: Tensor[(1, 8, 8, 6), float16], %w) {
  nn.conv2d(%x, %w, groups=2, channels=4, kernel_size=[5, 5], data_layout="NHWC",
    kernel_layout="HWIO")
}]])
  end)

  it("have the operand's channels first in a transposed convolution", function()
    assert.equal("Tensor[(1, 6, 8, 8), float32]; Tensor[(6, 2, 5, 5), float32]", types [[
def @main(%x: Tensor[(1, 6, 8, 8), float32], %w) {
  nn.conv2d_transpose(%x, %w, groups=2, channels=4, kernel_size=[5, 5])
}]])
    assert.equal("Tensor[(1, 6, 8), float32]; Tensor[(5, 4, 6), float32]", types [[
def @main(%x: Tensor[(1, 6, 8), float32], %w) {
  nn.conv1d_transpose(%x, %w, channels=4, kernel_size=[5], kernel_layout="WOI")
}]])
  end)

  it("are a channel's in a normalisation, an index's in a slope", function()
    local norms = "Tensor[(2, 6, 4), float32]; Tensor[(6), float32]; Tensor[(6), float32]"
    for _, call in ipairs { "nn.layer_norm(%x, %g, %b, axis=1)", "nn.instance_norm(%x, %g, %b)",
      "nn.group_norm(%x, %g, %b, num_groups=2)" } do
      assert.equal(norms, types("def @main(%x: Tensor[(2, 6, 4), float32], %g, %b) { "
        .. call .. " }"))
    end
    assert.equal("Tensor[(2, 6), float16]; Tensor[(6), float16]", types [[
def @main(%x: Tensor[(2, 6), float16], %s) { nn.prelu(%x, %s) }]])
  end)

  it("have a column for each unit of a product", function()
    assert.equal("Tensor[(2, 4), float32]; Tensor[(4, 10), float32]", types [[
def @main(%x: Tensor[(2, 4), float32], %w) { nn.matmul(%x, %w, units=10) }]])
    assert.equal("Tensor[(4, 2), float32]; Tensor[(10, 4), float32]", types [[
def @main(%x: Tensor[(4, 2), float32], %w) {
  nn.matmul(%x, %w, units=10, transpose_a=True, transpose_b=True)
}]])
  end)

  it("are blocks of gates in a recurrent layer", function()
    local x, w, r, b = pl.var("x", "Tensor[(7, 2, 5), float32]"), pl.var "w", pl.var "r", pl.var "b"
    local call = op.lstm(x, w, r, b, { hidden_size = 3, direction = "bidirectional" })
    local params = assert(pl.infer_type(pl.func({ x, w, r, b }, call[0] or call))).params
    assert.equal("Tensor[(2, 12, 5), float32]", tostring(params[2].type))
    assert.equal("Tensor[(2, 12, 3), float32]", tostring(params[3].type))
    assert.equal("Tensor[(2, 24), float32]", tostring(params[4].type))
  end)

  it("are not told of weights that were transformed", function()
    assert.equal("Tensor[(1, 2, 8, 8), float32]; ?", (types [[
def @main(%x: Tensor[(1, 2, 8, 8), float32], %w) {
  nn.contrib_conv2d_winograd_without_weight_transform(%x, %w, tile_size=4, channels=4,
    kernel_size=[3, 3])
}]]:gsub("_$", "?")))
  end)

  it("wait for the input of the layer", function()
    assert.equal("Tensor[(4, 64), float32]; Tensor[(10, 64), float32]", types [[
def @main(%x: Tensor[(4, 64), float32], %w) {
  let %f = fn (%a) { nn.dense(%a, %w, units=10) };
  %f(%x)
}]])
  end)

  it("stay open when the attributes do not tell", function()
    assert.equal("Tensor[(4, 64), float32]; ?", (types [[
def @main(%x: Tensor[(4, 64), float32], %w) { nn.dense(%x, %w, units=None) }]]:gsub("_$", "?")))
  end)
end)

describe("InferType finds what an operator of unknown operands gives", function()
  local function main_type(body)
    local text = '#[version = "0.0.5"]\ndef @main() { ' .. body .. " }"
    return tostring(assert(pl.parse(text)).main.type)
  end

  it("in a function that a let binds, by its calls", function()
    for _, body in ipairs {
      "let %f = fn (%x, %y) { %x + %y }; %f(1, 2)",
      "let %f = fn (%x, %y) { %x + %y }; let %g = %f; %g(1, 2)",
      "let %f = fn (%x) { match (%x) { (%a, %b) => %a + %b } }; %f((1, 2))",
      "let %f = fn (%x) { fn (%y) { %x + %y } }; %f(1)(2)",
      "let %f = fn (%n, %a) { if (%n == 0) { %a + %a } else { %f(%n - 1, %a) } }; %f(3, 1)",
      "let %p = (fn (%x, %y) { %x + %y }, 1); %p.0(1, 2)",
      "let %r = ref(fn (%x, %y) { %x + %y }); ref_read(%r)(1, 2)",
    } do
      assert.equal("fn () -> int32", main_type(body), body)
    end
  end)

  it("of a tuple whose fields are not known", function()
    assert.equal("fn () -> Tensor[(4, 3), float32]", main_type [[
      let %f = fn (%x) { concatenate((%x, %x), axis=0) };
      %f(zeros(shape=[2, 3], dtype="float32"))]])
  end)

  it("in functions that call each other, whatever was guessed where they were read", function()
    for _, text in ipairs {
      [[def @f(%x: int32, %n: int32) {
          if (%n == 0) { %x - %n } else { @g(%x, %n) - %n } }
        def @g(%x: int32, %n: int32) { @f(%x, %n) }]],
      [[def @g(%x, %n) { @f(%x, %n) }
        def @f(%x: int32, %n: int32) { if (%n == 0) { %x } else { %n - @g(%x, %n) } }]],
      [[type Nest[A] { N(A, Nest[(A, A)]), Z }
        def @h[A](%x: Nest[A]) { match (%x) { N(_, %r) => 1 + @h(%r), Z => 0 } }
        def @f(%x: Nest[int32], %n: int32) { @h(%x) }
        def @g(%x: int32, %n: int32) { @f(N(%x, Z), %n) }]],
    } do
      local mod = assert(pl.parse('#[version = "0.0.5"]\n' .. text))
      assert.matches("%-> int32$", tostring(mod.f.type))
      assert.equal("fn (int32, int32) -> int32", tostring(mod.g.type))
      assert(pl.verify(mod))
      assert.equal(mod, (pl.infer_type(mod)))
    end
  end)
end)
