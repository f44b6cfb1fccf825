-- Operators of com.microsoft that are forms of others: those that ONNX Runtime
-- computes on other devices only, by hand; operands that are refused.
-- spec/cross/contrib.py compares the others with ONNX Runtime.

local pl = require "perilune"

local function tensor(values, dtype) return pl.tensor(values, dtype or "float32") end

-- The results of the call on constants; false is an omitted operand.
local function evaluate(name, operands, attributes)
  local params, values, args = {}, {}, {}
  for i, t in ipairs(operands) do
    if t then
      params[#params + 1] = pl.var("x" .. i, tostring(pl.const(t).type))
      values[#values + 1] = t
    end
    args[i] = t and params[#params] or pl.ir.Absent()
  end
  args[#args + 1] = attributes
  local call = pl.op["com.microsoft::" .. name](table.unpack(args))
  return pl.eval(pl.func(params, call), table.unpack(values))
end

local function assert_near(wanted, got)
  if type(wanted) ~= "table" then return assert.near(wanted, got, 1e-5) end
  assert.equal(#wanted, #got)
  for i = 1, #wanted do assert_near(wanted[i], got[i]) end
end

local function refuses(message, name, operands, attributes)
  local ok, why = pcall(evaluate, name, operands, attributes)
  assert.is_false(ok)
  assert.matches(message, tostring(why), 1, true)
end

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end

describe("of com.microsoft", function()
  -- Groups of channels {1, 3} and {2, 6}: means 2 and 4, deviations 1 and 2.
  local image = tensor { { { { 1, 3, 2, 6 } } } }
  local gamma, beta = tensor { 1, 1, 2, 2 }, tensor { 0, 0, 1, 0 }
  local groups = { groups = 2, activation = 0, epsilon = 0. }

  it("GroupNorm normalises groups of channels, which are last", function()
    assert_near({ { { { -1, 1, -1, 2 } } } }, evaluate("GroupNorm", { image, gamma, beta },
      groups):to_table())
  end)

  it("GroupNorm takes channels second, and ends in silu", function()
    local attributes = { groups = 2, activation = 1, epsilon = 0., channels_last = 0 }
    local x = tensor { { { { 1 } }, { { 3 } }, { { 2 } }, { { 6 } } } }
    local got = evaluate("GroupNorm", { x, gamma, beta }, attributes):to_table()
    for i, y in ipairs { -1, 1, -1, 2 } do
      assert.near(y * sigmoid(y), got[1][i][1][1], 1e-5)
    end
  end)

  it("SkipGroupNorm gives the sum too", function()
    local skip, bias = tensor { { 0, 1, 0, 3 } }, tensor { 0, -1, 0, -3 }
    local y, sum = evaluate("SkipGroupNorm", { image, gamma, beta, skip, bias }, groups)
    assert_near({ { { { -1, 1, -1, 2 } } } }, y:to_table())
    assert.is_nil(sum)
  end)

  it("GroupNorm needs groups, and a scale for each channel", function()
    refuses("groups is 0, not positive", "GroupNorm", { image, gamma, beta }, { activation = 0 })
    refuses("activation is 2, not 0 or 1", "GroupNorm", { image, gamma, beta },
      { activation = 2, groups = 2 })
    refuses("operand 1", "GroupNorm", { image, tensor { 1, 1 }, beta }, groups)
    refuses("expected rank 4", "GroupNorm", { tensor { 1 }, gamma, beta }, groups)
  end)

  it("GemmFastGelu activates a product", function()
    local y = evaluate("GemmFastGelu", { tensor { { 1, 2 } }, tensor { { 0.5 }, { 0.25 } },
      tensor { 0.5 } }):to_table()[1][1]
    assert.near(1.5 * 0.5 * (1 + (function(z)
      return (math.exp(2 * z) - 1) / (math.exp(2 * z) + 1)
    end)(math.sqrt(2 / math.pi) * (1.5 + 0.044715 * 1.5 ^ 3))), y, 1e-5)
  end)

  it("TorchEmbedding takes rows", function()
    local table_ = tensor { { 1, 2 }, { 3, 4 } }
    assert.same({ { { 3, 4 }, { 1, 2 } } }, evaluate("TorchEmbedding", { table_,
      tensor({ { 1, 0 } }, "int64") }):to_table())
    refuses("index 2", "TorchEmbedding", { table_, tensor({ 2 }, "int64") })
  end)

  it("MulInteger and ReduceSumInteger widen", function()
    local a, b = tensor({ 100, -100 }, "int8"), tensor({ { 3 }, { 127 } }, "int8")
    assert.same({ { 198, -202 }, { 12474, -12726 } }, evaluate("MulInteger",
      { a, tensor(1, "int8"), b, tensor(1, "int8") }):to_table())
    assert.same({ { 300, -300 }, { 12700, -12700 } },
      evaluate("MulInteger", { a, false, b }):to_table())
    local sum = evaluate("ReduceSumInteger", { b }, { axes = { 0 }, keepdims = 0 })
    assert.equal("int32", sum.dtype)
    assert.same({ 130 }, sum:to_table())
  end)

  it("Unique keeps the order of first occurrences", function()
    local y, places, counts = evaluate("Unique", { tensor { 3, 1, 3 } })
    assert.same({ 3, 1 }, y:to_table())
    assert.is_nil(places or counts)
    refuses("expected rank 1, got 2", "Unique", { tensor { { 1 } } })
  end)

  it("UnfoldTensor has windows that fit", function()
    assert.same({ { 1, 2 }, { 3, 4 } }, evaluate("UnfoldTensor", { tensor { 1, 2, 3, 4, 5 } },
      { size = 2, step = 2 }):to_table())
    refuses("size 3 exceeds the extent 2", "UnfoldTensor", { tensor { 1, 2 } }, { size = 3 })
    refuses("size is 0 and step is 1", "UnfoldTensor", { tensor { 1, 2 } })
    refuses("axis 1", "UnfoldTensor", { tensor { 1, 2 } }, { size = 1, dim = 1 })
  end)

  it("NGramRepeatBlock needs a score for each id", function()
    local ids, scores = tensor({ { 5, 1, 5 } }, "int64"), tensor { { 0, 0 } }
    assert.same({ { 0, -math.huge } }, evaluate("NGramRepeatBlock", { ids, scores },
      { ngram_size = 2 }):to_table())
    refuses("an id has no score", "NGramRepeatBlock", { ids, scores }, { ngram_size = 1 })
    refuses("ngram_size is 0", "NGramRepeatBlock", { ids, scores })
    refuses("expected integers, got float32", "NGramRepeatBlock", { tensor { { 1.5 } }, scores },
      { ngram_size = 1 })
  end)

  it("MurmurHash3 is that of its author", function()
    local texts = tensor({ "", "hello", "hello, world" }, "string")
    assert.same({ 0, 0x248bfa47, 0x149bbb7f }, evaluate("MurmurHash3", { texts }):to_table())
    refuses("bool", "MurmurHash3", { tensor({ true }, "bool") })
  end)

  it("Range counts by one if nothing else is said", function()
    local two, five = tensor(2, "int64"), tensor(5, "int64")
    assert.same({ 2, 3, 4 }, evaluate("Range", { two, five }):to_table())
    refuses("rank 1 or less", "Range", { tensor { { 2 } }, tensor { { 5 } } })
  end)

  it("CropAndResize has a size of two", function()
    local boxes, images = tensor { { 0, 0, 1, 1 } }, tensor({ 0 }, "int32")
    refuses("expected 2 elements, got 1", "CropAndResize", { image, boxes, images,
      tensor({ 2 }, "int32") })
    refuses("mode is neither", "CropAndResize", { image, boxes, images, tensor({ 2, 2 }, "int32") },
      { mode = "cubic" })
  end)

  it("ConvTransposeWithDynamicPads has pads for each axis", function()
    local x, w = tensor { { { { 1 } } } }, tensor { { { { 1, 2 }, { 3, 4 } } } }
    assert.same({ { { { 4 } } } }, evaluate("ConvTransposeWithDynamicPads", { x, w,
      tensor({ 1, 1, 0, 0 }, "int64") }):to_table())
    refuses("the pads do not match", "ConvTransposeWithDynamicPads",
      { x, w, tensor({ 1 }, "int64") })
  end)

  it("QEmbedLayerNormalization and DynamicQuantizeLSTM need scales", function()
    local ids, table_ = tensor({ { 0 } }, "int32"), tensor({ { 1, 2 } }, "uint8")
    refuses("is missing", "QEmbedLayerNormalization", { ids, false, table_, table_ })
    local x, w = tensor { { { 1 } } }, tensor({ { { 1, 2, 3, 4 } } }, "uint8")
    refuses("operand 8: is missing", "DynamicQuantizeLSTM", { x, w, w })
    local scale, zero = tensor { 1, 2 }, tensor({ 1, 2 }, "uint8")
    refuses("weights, scales and zero points do not match", "DynamicQuantizeLSTM",
      { x, w, w, false, false, false, false, false, scale, zero, scale, zero })
  end)
end)
