-- Operators of com.microsoft: values worked out by hand, what is refused, and
-- that a model with them is written as it was read. spec/cross/contrib.py
-- compares all of them with ONNX Runtime.

local pl = require "perilune"
local onnx = require "spec.onnx.bytes"

local op = pl.op.microsoft

local function tensor(values, dtype) return pl.tensor(values, dtype or "float32") end

-- The call on constants, evaluated.
local function evaluate(name, operands, attributes)
  local params, values = {}, {}
  for i, t in ipairs(operands) do
    params[i] = pl.var("x" .. i, tostring(pl.const(t).type))
    values[i] = t
  end
  local args = { table.unpack(params) }
  args[#args + 1] = attributes
  return pl.eval(pl.func(params, op[name](table.unpack(args))), table.unpack(values))
end

local function is_near(wanted, got)
  if type(wanted) ~= "table" then
    assert.is_true(math.abs(wanted - got) < 1e-5, ("expected %s, got %s"):format(wanted, got))
    return
  end
  assert.equal(#wanted, #got)
  for i = 1, #wanted do is_near(wanted[i], got[i]) end
end

local function gives(wanted, name, operands, attributes)
  is_near(wanted, evaluate(name, operands, attributes):to_table())
end

local function refuses(message, name, operands, attributes)
  local ok, why = pcall(evaluate, name, operands, attributes)
  assert.is_false(ok)
  assert.matches(message, tostring(why), 1, true)
end

describe("an operator of com.microsoft", function()
  it("multiplies transposed matrices by a factor", function()
    local a, b = tensor { { 1, 2 }, { 3, 4 } }, tensor { { 1, 0 }, { 0, 2 } }
    gives({ { 0.5, 3 }, { 1, 4 } }, "fused_matmul", { a, b }, { transA = 1, alpha = 0.5 })
  end)

  it("adds what a convolution is fused with before it activates", function()
    local x, w = tensor { { { 1, -2, 3 } } }, tensor { { { 2 } } }
    local bias, summand = tensor { 1 }, tensor { { { -4, 0, 1 } } }
    gives({ { { 0, 0, 8 } } }, "fused_conv", { x, w, bias, summand }, { activation = "Relu" })
    refuses("activation 'Swirl' is not known", "fused_conv", { x, w }, { activation = "Swirl" })
  end)

  it("unpacks weights of four bits", function()
    -- One row of sixteen weights: 9 twice, then 8, which is the zero point.
    local packed = { 0x99 }
    for i = 2, 8 do packed[i] = 0x88 end
    local x = {}
    for i = 1, 16 do x[i] = i end
    gives({ { 1.5 } }, "matmul_n_bits",
      { tensor { x }, tensor({ { packed } }, "uint8"), tensor { { 0.5 } } },
      { N = 1, K = 16, bits = 4, block_size = 16 })
  end)

  it("normalises a sum and gives the sum", function()
    local norm, _, _, sum = evaluate("skip_simplified_layer_normalization",
      { tensor { { { 1, 2 } } }, tensor { { { 2, 2 } } }, tensor { 1, 2 } }, { n_results = 4 })
    assert.same({ { { 3, 4 } } }, sum:to_table())
    is_near({ { { 3 / math.sqrt(12.5), 8 / math.sqrt(12.5) } } }, norm:to_table())
  end)

  it("counts positions from an offset", function()
    local x, at = tensor { { { 1, 0 }, { 1, 0 } } }, tensor({ 1 }, "int64")
    local cosines, sines = tensor { { 1 }, { 0 }, { -1 } }, tensor { { 0 }, { 1 }, { 0 } }
    gives({ { { 0, 1 }, { -1, 0 } } }, "rotary_embedding", { x, at, cosines, sines })
  end)

  it("writes new keys behind those that each batch uses", function()
    local function heads(...) return tensor { { { ... } }, { { ... } } } end
    local past = heads({ 1 }, { 2 }, { 3 })
    local now = tensor { { { 9 } }, { { 9 } } }
    local _, key = evaluate("group_query_attention",
      { now, now, now, past, past, tensor({ 1, 3 }, "int32"), tensor(4, "int32") },
      { num_heads = 1, kv_num_heads = 1, n_results = 3 })
    assert.same({ { { { 1 }, { 9 }, { 0 }, { 0 } } }, { { { 1 }, { 2 }, { 3 }, { 9 } } } },
      key:to_table())
  end)

  it("leaves out the keys that a mask excludes", function()
    local x = tensor { { { 0, 1 }, { 0, 3 } } }
    local weights = tensor { { 1, 1, 0 }, { 0, 0, 1 } }
    gives({ { { 1 }, { 1 } } }, "attention",
      { x, weights, tensor { 0, 0, 0 }, tensor({ 1 }, "int32") }, { num_heads = 1 })
  end)

  it("inverts, and has no inverse of a singular matrix in a fold", function()
    gives({ { 0, 0.5 }, { 1, 0 } }, "inverse", { tensor { { 0, 1 }, { 2, 0 } } })
    local call = op.inverse(pl.const(tensor { { 1, 2 }, { 2, 4 } }))
    local mod = pl.module { main = pl.func({}, call) }
    assert.equal(mod, pl.passes.FoldConstant()(mod))
  end)

  it("says which number of an attribute or operand is wrong", function()
    local x = tensor { { 1, 2 } }
    refuses("N is 0 and K is 2", "matmul_n_bits",
      { x, tensor({ 1 }, "uint8"), x }, { N = 0, K = 2 })
    refuses("operand 1 is not of 8 bytes", "matmul_n_bits",
      { tensor { { 1, 2, 3, 4 } }, tensor({ 1 }, "uint8"), tensor { 1 } },
      { N = 1, K = 4, block_size = 16 })
    refuses("num_heads is 0", "multi_head_attention", { tensor { { { 1, 2 } } } },
      { num_heads = 0 })
    local zero = tensor({ { 0 } }, "int32")
    refuses("its operands do not fit together (in 'add')", "embed_layer_normalization",
      { zero, zero, x, tensor { { 1, 2, 3 } }, x, tensor { 1, 2 }, tensor { 1, 2 } }, {})
  end)

  it("is exported as it was imported, and with a changed operand", function()
    local nodes = { onnx.node("Relu", "x", "r"),
      onnx.node("FusedMatMul", "r y", "z", { onnx.int("transB", 1) },
        { domain = "com.microsoft" }) }
    local bytes = onnx.model { opset = 17, domains = { ["com.microsoft"] = 1 }, graph = onnx.graph {
      inputs = { onnx.value("x", 1, { 2, 4 }), onnx.value("y", 1, { 3, 4 }) }, nodes = nodes,
      outputs = { onnx.value("z", 1, { 2, 3 }) } } }
    local mod = assert(pl.onnx.parse(bytes))
    assert.equal("microsoft.fused_matmul", mod.functions.main.body.op.name)
    assert.is_true(bytes == pl.onnx.tostring(mod))
    local mutator = pl.mutator { Call = function(call)
      if call.op.name == "nn.relu" then return pl.op.tanh(call.args[1]) end
    end }
    local changed = mod:with { main = mutator(mod.functions.main) }
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(changed))))
    assert.is_true(pl.equal(changed.functions.main, again.functions.main))
  end)
end)
