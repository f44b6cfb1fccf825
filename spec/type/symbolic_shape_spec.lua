-- What inference knows of dims that depend on the sizes of the inputs.

local pl = require "perilune"
local op = pl.op

local function parse(text) return pl.parse('#[version = "0.0.5"]\n' .. text) end

local function type_of(text) return tostring(parse(text).functions.main.body.type) end

local function zeros(...) return pl.eval(op.zeros { shape = { ... }, dtype = "float32" }) end

local function shape_of(text, ...) return table.concat(pl.eval(parse(text), ...).shape, ",") end

describe("dims of a result", function()
  it("are those that a division towards zero gives", function()
    local text = [[
def @main(%x: Tensor[(n), float32]) {
  %0 = add(divide(subtract(shape_of(%x, dtype="int64"), 1i64), 8i64), 1i64);
  broadcast_to(0f, %0)
}]]
    assert.are.equal("Tensor[(max(floordiv(n+7, 8), 1)), float32]", type_of(text))
    for _, n in ipairs { 0, 1, 8, 9 } do
      assert.are.equal(n == 9 and "2" or "1", shape_of(text, zeros(n)))
    end
  end)

  it("are known where one extent is the other one, or 1", function()
    local text = [[
def @main(%x: Tensor[(n), float32]) {
  %0 = nn.max_pool(reshape(%x, newshape=[1, 1, -1]), kernel_shape=[1], strides=[8]);
  %1 = add(divide(subtract(shape_of(%x, dtype="int64"), 1i64), 8i64), 1i64);
  add(reshape(%0, newshape=[-1]), broadcast_to(0f, %1))
}]]
    assert.are.equal("Tensor[(floordiv(n+7, 8)), float32]", type_of(text))
    for _, n in ipairs { 0, 1, 7, 8, 9, 17 } do
      assert.are.equal(tostring((n + 7) // 8), shape_of(text, zeros(n)))
    end
  end)

  it("of a resize come from factors that are put together", function()
    local x = pl.var("x", "Tensor[(1, 2, height, width), float32]")
    local call = op.image.resize(x, op.concatenate(pl.const { 1.0, 1.0 }, pl.const { 2.0, 0.5 }))
    assert.are.equal("Tensor[(1, 2, 2*height, floordiv(width, 2)), float32]", tostring(call.type))
  end)

  it("of a padding come from pads that are reversed as a matrix", function()
    -- As exporters write torch's pads (last axis first) in ONNX's order.
    local x = pl.var("x", "Tensor[(n, m), float32]")
    local extents = op.shape_of(x, { dtype = "int64" })
    local function ints(i) return pl.const({ i }, "int64") end
    local function extent(i) return op.take(extents, ints(i), { axis = 0, mode = "strict" }) end
    local torch = op.concatenate(extent(1), ints(0), ints(2), extent(0))
    local pairs_of = op.reshape(torch, { newshape = { -1, 2 } })
    local reversed = op.strided_slice(pairs_of,
      { begin = { -1 }, ["end"] = { -100 }, strides = { -1 }, axes = { 0 } })
    local pads = op.reshape(op.transpose(reversed, { axes = { 1, 0 } }), { newshape = { -1 } })
    assert.are.equal("Tensor[(2*n+2, 2*m), float32]", tostring(op.nn.pad(x, pads).type))
    local fn = pl.func({ x }, op.nn.pad(x, pads))
    assert.are.same({ 8, 10 }, pl.eval(fn, zeros(3, 5)).shape)
  end)
end)

describe("a carried value of a loop", function()
  local function loop(body)
    return type_of(([[
def @main(%%x: Tensor[(batch, 8), float32], %%n: int64) {
  %%0 = fn (%%i: int64, %%go: bool, %%a: Tensor[(rows, columns), float32]) {
    %s
  };
  loop(%%n, True, %%x, %%0, n_results=1)
}]]):format(body))
  end

  it("keeps the extents that each iteration returns as they are", function()
    assert.are.equal("(Tensor[(batch, 8), float32],)", loop "(%go, tanh(%a))")
  end)

  it("has unknown extents where an iteration changes them", function()
    assert.are.equal("(Tensor[(?, 8), float32],)", loop "(%go, concatenate(%a, %a, axis=0))")
    assert.are.equal("(Tensor[(?, ?), float32],)", loop "(%go, transpose(%a, axes=[1, 0]))")
  end)
end)

describe("the name of a dim with a slash", function()
  it("is read back in a type alone, where a slash divides", function()
    local named = pl.type 'Tensor[("If/n", a/b, 2*"If/n"), float32]'
    local text = 'Tensor[("If/n", floordiv(a, b), 2*"If/n"), float32]'
    assert.are.equal(text, tostring(named))
    assert.are.equal(named, pl.type(text))
    assert.are.equal('"If/n"', named.shape[1])
  end)

  it("is read back in a program", function()
    local program = '#[version = "0.0.5"]\n' ..
      'def @main(%x: Tensor[("If/n", 3), float32]) -> Tensor[("If/n", 3), float32] {\n' ..
      "  exp(%x)\n}\n"
    local mod = assert(pl.parse(program))
    assert.is_true(pl.equal(mod, assert(pl.parse(tostring(mod)))))
    assert.are.equal('"If/n"', mod.functions.main.params[1].type.shape[1])
  end)
end)
