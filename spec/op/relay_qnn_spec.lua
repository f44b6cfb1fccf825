-- What Relay's operators on quantised tensors compute, as TVM lowers them, on
-- numbers that can be checked by hand.

local pl = require "perilune"

local computes, refuses = require "spec.op.computed" (it)

local function ints(values) return { "int32", values } end
local function longs(values) return { "int64", values } end
local function floats(values) return { "float32", values } end
local function bytes(values) return { "uint8", values } end
local function chars(values) return { "int8", values } end

describe("numbers", function()
  computes("are quantised, halves away from zero", [[
      (qnn.quantize(%a, 0.5f, 10, out_dtype="uint8"),
       qnn.quantize(%a, 0.5f, 0, out_dtype="int8"))]],
    { floats { 0.25, -0.25, 100, 1000 } }, { 11, 9, 210, 255 }, { 1, -1, 127, 127 })
  computes("are quantised by channel and brought back", [[
      %0 = qnn.quantize(%a, %b, %c, out_dtype="int8", axis=0);
      (%0, qnn.dequantize(%0, %b, %c, axis=0))]],
    { floats { { 1, 2 }, { 1, 2 } }, floats { 1, 0.5 }, ints { 0, -1 } },
    { { 1, 2 }, { 1, 3 } }, { { 1, 2 }, { 1, 2 } })
  refuses("that are none are not quantised", "qnn.quantize(%a, 0.5f, 0, out_dtype=\"int8\")",
    { floats { 0 / 0 } }, "'qnn.quantize': an element has no defined result")
  refuses("have a scale each or one for all", [[
      qnn.quantize(%a, %b, 0, out_dtype="int8")]], { floats { 1, 2 }, floats { 1, 2, 3 } },
    "'qnn.quantize': a scale or zero point does not match the operand")
  computes("are requantised, halves up or away from zero", [[
      (qnn.requantize(%a, 0.5f, 0, 1f, 0, out_dtype="int8"),
       qnn.requantize(%a, 0.5f, 0, 1f, 0, out_dtype="int8", rounding="TONEAREST"),
       qnn.requantize(%a, 1f, 1, 1f, 2, out_dtype="uint8"))]],
    { ints { 100, -100, 3, -3, 1000 } }, { 50, -50, 2, -1, 127 }, { 50, -50, 2, -2, 127 },
    { 101, 0, 4, 0, 255 })
  refuses("are not requantised beyond all ranges", [[
      qnn.requantize(%a, 1f, 0, 0f, 0, out_dtype="int8")]], { ints { 1 } },
    "'qnn.requantize': a scale or a product is out of range")
  computes("are multiplied by fixed point", [[
      (fixed_point_multiply(%a, multiplier=1073741824, shift=1),
       fixed_point_multiply(%a, multiplier=1073741824, shift=-1))]],
    { ints { 10, -10 } }, { 10, -10 }, { 3, -2 })
end)

describe("quantised arithmetic", function()
  local a, b = bytes { 10, 20 }, bytes { 1, 2 }
  computes("is of the result's scale", [[
      (qnn.add(%a, %b, 1f, 0, 1f, 0, 2f, 5), qnn.subtract(%a, %b, 1f, 0, 1f, 0, 2f, 5),
       qnn.mul(%a, %b, 1f, 0, 1f, 0, 2f, 5))]], { a, b }, { 11, 16 }, { 9, 14 }, { 10, 25 })
  computes("sums products in int32", [[
      (qnn.dense(%a, %b, 1, 2, 1f, 1f, units=1), qnn.batch_matmul(%c, %d, 1, 2, 1f, 1f,
        transpose_b=True))]],
    { chars { { 1, 2 } }, chars { { 3, 4 } }, chars { { { 1, 2 } } }, chars { { { 3, 4 } } } },
    { { 2 } }, { { { 2 } } })
  computes("of functions goes through floats", [[
      (qnn.abs(%a, 0.5f, 1, 0.5f, 1), qnn.sigmoid(%a, 0.5f, 1, 0.00390625f, -128),
       qnn.rsqrt(%b, 1f, 0, 0.125f, 0))]], { chars { -3, 1 }, chars { 4, 16 } },
    { 5, 1 }, { -97, 0 }, { 4, 2 })
end)

describe("quantised kernels", function()
  it("fold constants", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main() { qnn.quantize(2f, 0.5f, 1, out_dtype="int8") }]])
    local body = pl.passes.FoldConstant { fold_qnn = true } (mod).main.body
    assert.equal("Constant", body.kind)
    assert.equal(5, body.data:to_table())
  end)
end)

describe("qnn.concatenate", function()
  local text = "qnn.concatenate((%a, %b), (0.5f, 1f), (0, 1), 0.5f, 0, axis=1)"
  local inputs = { chars { { 2, -4 } }, chars { { 3 } } }
  computes("brings its tensors to one scale", text, inputs, { { 2, -4, 4 } })
  computes("takes tuples that a function returns", [[
      let %pair = (fn (%x, %y) { (%x, %y) })(%a, %b);
      qnn.concatenate(%pair, (0.5f, 1f), (0, 1), 0.5f, 0, axis=1)]], inputs, { { 2, -4, 4 } })
  refuses("needs a scale for each tensor",
    "qnn.concatenate((%a, %b), (0.5f, 1f, 2f), (0, 1), 0.5f, 0, axis=1)", inputs,
    "'qnn.concatenate', operand 1: expected 2 fields, got 3")

  it("folds with fold_qnn only", function()
    local x = pl.const(pl.tensor({ 3 }, "int8"))
    local call = pl.op.qnn.concatenate(pl.tuple { x }, pl.tuple { pl.const(1.) },
      pl.tuple { pl.const(0, "int32") }, pl.const(0.5), pl.const(0, "int32"))
    local mod = pl.module { main = pl.func({}, call) }
    assert.equal("Call", pl.passes.FoldConstant()(mod).main.body.kind)
    local folded = pl.passes.FoldConstant { fold_qnn = true } (mod).main.body
    assert.same({ 6 }, folded.data:to_table())
  end)
end)

describe("fixed_point_multiply", function()
  refuses("is of int32", "fixed_point_multiply(%a, multiplier=1, shift=0)", { longs { 1 } },
    "'fixed_point_multiply' is not implemented for int64")
end)

describe("simulated quantisation of annotations", function()
  local x = { "float32", { -2.6, 0.75, 1.25, 9 } }
  computes("rounds to multiples of the scale, halves away from zero",
    "relay.op.annotation.simulated_quantize(%a, 0.5f, -4f, 5f, kind=1)", { x },
    { -2, 1, 1.5, 2.5 })
  computes("keeps what is marked as it is",
    "relay.op.annotation.simulated_quantize(%a, 0.5f, -4f, 5f, kind=0)", { x }, x[2])
  refuses("is defined for signed numbers",
    "relay.op.annotation.simulated_quantize(%a, 0.5f, -4f, 5f, kind=1, sign=False)", { x },
    "sign=True")
end)
