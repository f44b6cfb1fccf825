-- Values of Relay's operators where they differ from ONNX's, and of calls whose operand is no
-- tensor. The expected values are what TVM 0.14 computes.

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end
local function T(elements, dtype) return pl.tensor(elements, dtype) end
local function value(text, ...)
  local result = pl.eval(parse(text), ...)
  return result:to_table(), result
end

describe("Calls that mark a place", function()
  local marks = { "annotation.stop_fusion", "annotation.checkpoint", "annotation.bitpack_start",
    "annotation.bitpack_end", "annotation.cast_hint", "annotation.compiler_begin",
    "annotation.compiler_end" }
  local attributes = { ["annotation.compiler_begin"] = ', compiler="c"',
    ["annotation.compiler_end"] = ', compiler="c"', ["annotation.cast_hint"] = ', dtype="int8"' }

  it("give all fields of a tuple", function()
    for _, name in ipairs(marks) do
      local text = "def @main(%%x: float32, %%y: float32) { %s((%%x, %%y)%s) }"
      local first, second = pl.eval(parse(text:format(name, attributes[name] or "")), 1.0, 2.0)
      assert.same({ 1.0, 2.0 }, { first:to_table(), second:to_table() }, name)
    end
  end)

  it("give references and values of data types", function()
    assert.equal(3.0, (value([[
def @main(%x: float32) {
  let %r = annotation.stop_fusion(ref(%x));
  let %u = ref_write(%r, 3f);
  ref_read(%r)
}]], 1.0)))
    assert.equal(4.0, (value([[
type Box { Box(float32, float32) }
def @main(%x: float32, %y: float32) -> float32 {
  match (annotation.stop_fusion(Box(%x, %y))) { Box(%a, %b) => %b }
}]], 1.0, 4.0)))
  end)

  it("are not folded to the first field", function()
    local mod = parse "def @main() { annotation.stop_fusion((1f, 2f)) }"
    local out = pl.passes.FoldConstant()(mod)
    local first, second = pl.eval(out)
    assert.same({ 1.0, 2.0 }, { first:to_table(), second:to_table() })
  end)
end)

describe("round", function()
  it("rounds halves away from zero in Relay", function()
    for _, dtype in ipairs { "float32", "float64", "float16" } do
      assert.same({ 1.0, 2.0, -3.0, 3.0, -0.0, 0.0 }, (value(
        ("def @main(%%x: Tensor[(6), %s]) { round(%%x) }"):format(dtype),
        T({ 0.5, 1.5, -2.5, 2.5, -0.25, 0.25 }, dtype))))
    end
  end)

  it("rounds halves to even in ONNX", function()
    local model = require "perilune.zoo.model"
    local m = model.new { name = "round" }
    m:input("x", "float32", { 4 })
    m:output(m:node("Round", { "x" }, nil, "y"), "float32", { 4 })
    local mod = assert(pl.onnx.parse(m:tostring()))
    assert.same({ 0.0, 2.0, -2.0, 2.0 },
      pl.eval(mod, T({ 0.5, 1.5, -2.5, 2.5 }, "float32")):to_table())
    local again = assert(pl.parse(tostring(mod)))
    assert.same({ 0.0, 2.0, -2.0, 2.0 },
      pl.eval(again, T({ 0.5, 1.5, -2.5, 2.5 }, "float32")):to_table())
  end)

  it("prints as TVM does", function()
    assert.matches("round%(%%x%) /%*", tostring(parse "def @main(%x: float32) { round(%x) }"))
  end)
end)

describe("Arithmetic on booleans", function()
  it("is that of integers of one bit", function()
    local x, y = T({ true, true, false, false }, "bool"), T({ true, false, true, false }, "bool")
    local expected = { add = { false, true, true, false }, subtract = { false, true, true, false },
      multiply = { true, false, false, false }, maximum = { true, true, true, false },
      minimum = { true, false, false, false } }
    for name, wanted in pairs(expected) do
      assert.same(wanted, (value(
        ("def @main(%%x: Tensor[(4), bool], %%y: Tensor[(4), bool]) { %s(%%x, %%y) }"):format(name),
        x, y)), name)
    end
  end)
end)

describe("Relay's operators", function()
  it("pad with a value of another dtype", function()
    assert.same({ 7, 1, 2, 7 }, (value(
      "def @main(%x: Tensor[(2), int32]) { nn.pad(%x, 7.5f, pad_width=[[1, 1]]) }",
      T({ 1, 2 }, "int32"))))
    assert.same({ 3.0, 1.0, 3.0 }, (value(
      "def @main(%x: Tensor[(1), float32], %v: int64) { nn.pad(%x, %v, pad_width=[[1, 1]]) }",
      T({ 1 }, "float32"), T(3, "int64"))))
  end)

  it("normalise batches along any axis", function()
    local one, two = T({ 0, 0 }, "float32"), T({ 1, 1 }, "float32")
    local function along(axis)
      return (value(([[
def @main(%%x: Tensor[(2, 2), float32], %%g: Tensor[(2), float32], %%m: Tensor[(2), float32],
          %%v: Tensor[(2), float32]) {
  nn.batch_norm(%%x, %%g, %%m, %%m, %%v, axis=%d, epsilon=0f).0
}]]):format(axis), T({ { 1, 2 }, { 3, 4 } }, "float32"), T({ 10, 100 }, "float32"), one, two))
    end
    assert.same({ { 10, 20 }, { 300, 400 } }, along(0))
    assert.same({ { 10, 200 }, { 30, 400 } }, along(1))
    assert.same({ { 10, 200 }, { 30, 400 } }, along(-1))
  end)

  it("multiply short integers as the result's dtype", function()
    for _, dtype in ipairs { "int8", "uint8", "int16" } do
      assert.same({ { 100 * 100 * 2, 100 } }, (value(([[
def @main(%%x: Tensor[(1, 2), %s], %%w: Tensor[(2, 2), %s]) {
  nn.dense(%%x, %%w, units=2, out_dtype="int32")
}]]):format(dtype, dtype), T({ { 100, 100 } }, dtype), T({ { 100, 100 }, { 0, 1 } }, dtype))))
    end
  end)

  it("subtract a zero point for each channel of the weight", function()
    local x, w = T({ { 1, 2 }, { 3, 4 } }, "int8"), T({ { 1, 2 }, { 3, 4 } }, "int8")
    assert.same({ { 1, 2 }, { 3, 8 } }, (value([[
def @main(%x: Tensor[(2, 2), int8], %w: Tensor[(2, 2), int8], %z: Tensor[(2), int32],
          %s: Tensor[(2), float32]) {
  qnn.dense(%x, %w, 1, %z, 1f, %s, units=2, out_dtype="int32")
}]], x, w, T({ 1, 2 }, "int32"), T({ 1, 1 }, "float32"))))
    for layout, shape in pairs { OIHW = "(2, 1, 1, 1)", HWIO = "(1, 1, 1, 2)" } do
      local weight = pl.tensor({ 5, 7 }, "int8")
      assert.same({ { { { 4 } }, { { 5 } } } }, (value(([[
def @main(%%x: Tensor[(1, 1, 1, 1), int8], %%w: Tensor[(2), int8], %%z: Tensor[(2), int32],
          %%s: Tensor[(2), float32]) {
  qnn.conv2d(%%x, reshape(%%w, newshape=%s), 1, %%z, 1f, %%s, channels=2, kernel_size=[1, 1],
    padding=[0, 0, 0, 0], kernel_layout="%s", out_dtype="int32")
}]]):format(shape:gsub("%(", "["):gsub("%)", "]"), layout), T({ { { { 2 } } } }, "int8"), weight,
        T({ 1, 2 }, "int32"), T({ 1, 1 }, "float32"))), layout)
    end
  end)

  it("refuse zero points that match no channels", function()
    local ok, diag = pcall(pl.eval, parse [[
def @main(%x: Tensor[(1, 2), int8], %w: Tensor[(2, 2), int8], %z: Tensor[(3), int32]) {
  qnn.dense(%x, %w, 1, %z, 1f, 1f, units=2, out_dtype="int32")
}]], T({ { 1, 2 } }, "int8"), T({ { 1, 2 }, { 3, 4 } }, "int8"), T({ 1, 2, 3 }, "int32"))
    assert.is_false(ok)
    assert.matches("zero point", tostring(diag))
  end)

  it("give dropout's mask the operand's dtype", function()
    local y, mask = pl.eval(parse "def @main(%x: Tensor[(3), float32]) { nn.dropout(%x) }",
      T({ 1, 2, 3 }, "float32"))
    assert.same({ { 1, 2, 3 }, { 1, 1, 1 } }, { y:to_table(), mask:to_table() })
  end)

  it("slice from the beginning of axes without one", function()
    local x = T({ { 1, 2, 3 }, { 4, 5, 6 } }, "float32")
    assert.same({ { 4, 5 } }, (value([[
def @main(%x: Tensor[(2, 3), float32]) { strided_slice(%x, begin=[1], end=[2, 2], strides=[1]) }]],
      x)))
    assert.same({ { 4, 5, 6 } }, (value([[
def @main(%x: Tensor[(2, 3), float32]) { strided_slice(%x, begin=[1], end=[2], strides=[1]) }]],
      x)))
  end)
end)

describe("Numbers of 16 bits in Relay text", function()
  it("are at most 65504", function()
    assert.equal(65504.0, (value "def @main() { 65504f16 }"))
    local mod, diag = pl.parse '#[version = "0.0.5"]\ndef @main() { 65505f16 }'
    assert.is_nil(mod)
    assert.matches("this number does not fit in float16", tostring(diag))
  end)
end)
