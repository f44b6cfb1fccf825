-- Computes of ONNX Runtime's operators, com.microsoft: each is composed of core operators.

local core = require "perilune.core"
core.internal()

local activation = require "perilune.topi.nn.activation"
local broadcast = require "perilune.topi.broadcast"
local dense = require "perilune.topi.nn.dense"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local norm = require "perilune.topi.nn.norm"
local operand = require "perilune.tir.operand"
local transform = require "perilune.topi.transform"
local attention = require "perilune.topi.compute.attention".attention

local compute = {}

local function sum_of(x, bias) return bias and broadcast.add(x, bias) or x end

compute["microsoft.gelu"] = function(_, inputs) return activation.gelu(inputs[1]) end

compute["microsoft.bias_gelu"] = function(_, inputs)
  return activation.gelu(sum_of(inputs[1], inputs[2]))
end

compute["microsoft.fast_gelu"] = function(_, inputs)
  return activation.gelu_tanh(sum_of(inputs[1], inputs[2]))
end

compute["microsoft.quick_gelu"] = function(attrs, inputs)
  return activation.silu(inputs[1], attrs.alpha or 1.70200002193450927734375)
end

compute["microsoft.bias_add"] = function(_, inputs)
  return broadcast.add(broadcast.add(inputs[1], inputs[2]), inputs[3])
end

compute["microsoft.fused_matmul"] = function(attrs, inputs)
  if attrs.transBatchA == 1 or attrs.transBatchB == 1 then return nil, "batches as rows" end
  local result = dense.matmul(inputs[1], inputs[2], attrs.transA == 1, attrs.transB == 1)
  local alpha = attrs.alpha or 1
  return alpha == 1 and result or broadcast.multiply(result, operand.const(alpha, result.dtype))
end

-- --------------------------------------------------------------------- norms

-- Result 1 alone, or all: statistics are zeros, then the sum.
local function norm_results(y, sum, out_type)
  if out_type.kind ~= "tuple" then return y end
  local results = { y }
  for i = 2, #out_type.parts do
    local part = out_type.parts[i]
    results[i] = i == 4 and elementwise.identity(sum)
      or elementwise.full(part.shape, part.dtype, 0)
  end
  return results
end

local function skip_norm(n_bias, f)
  return function(attrs, inputs, out_type)
    local x, skip = inputs[1], inputs[2]
    if skip.ndim > x.ndim then return nil, "a skip of a higher rank" end
    local sum = sum_of(broadcast.add(x, skip), inputs[n_bias])
    return norm_results(f(sum, inputs, attrs.epsilon or 9.999999960041972e-13), sum, out_type)
  end
end

compute["microsoft.skip_layer_normalization"] = skip_norm(5, function(sum, inputs, epsilon)
  return norm.layer_norm(sum, inputs[3], inputs[4] or nil, { sum.ndim - 1 }, epsilon)
end)

compute["microsoft.skip_simplified_layer_normalization"] = skip_norm(4,
  function(sum, inputs, epsilon)
    return norm.rms_norm(sum, inputs[3], { sum.ndim - 1 }, epsilon)
  end)

-- ----------------------------------------------------------------- attention

local function settings_of(attrs)
  local scale = attrs.scale
  if scale == 0 then scale = nil end
  return { q_num_heads = attrs.num_heads, kv_num_heads = attrs.num_heads, scale = scale,
    is_causal = attrs.unidirectional }
end

-- Columns first to before last of the last axis.
local function columns(x, first, last)
  return transform.strided_slice(x, { first }, { last }, { 1 }, { x.ndim - 1 })
end

-- (query, key, value, bias, key padding, scores' bias, past key, past value).
compute["microsoft.multi_head_attention"] = function(attrs, inputs, out_type)
  local q, k, v, bias = inputs[1], inputs[2], inputs[3], inputs[4]
  if not k or not v or q.ndim ~= 3 or k.ndim ~= 3 or v.ndim ~= 3 then
    return nil, "packed operands"
  end
  if inputs[5] or inputs[9] or inputs[10] then return nil, "a mask of keys" end
  if bias then
    local n, m = dims.of(q)[3], dims.of(k)[3]
    q = broadcast.add(q, columns(bias, 0, n))
    k = broadcast.add(k, columns(bias, n, n + m))
    v = broadcast.add(v, columns(bias, n + m, dims.of(bias)[1]))
  end
  return attention(settings_of(attrs), { q, k, v, inputs[6], inputs[7], inputs[8] }, out_type)
end

-- (x, weights, bias): query, key and value are thirds of the columns of a product.
compute["microsoft.attention"] = function(attrs, inputs, out_type)
  local sizes, width = attrs.qkv_hidden_sizes, dims.of(inputs[2])[2]
  if attrs.do_rotary == 1 or inputs[4] or inputs[5] or inputs[7]
    or out_type.kind == "tuple" and #out_type.parts > 1 then
    return nil, "a mask, a past or rotations"
  end
  if not sizes or #sizes == 0 then sizes = { width // 3, width // 3, width // 3 } end
  local all = sum_of(dense.matmul(inputs[1], inputs[2]), inputs[3])
  local q, k = sizes[1], sizes[1] + sizes[2]
  return attention(settings_of(attrs), { columns(all, 0, q), columns(all, q, k),
    columns(all, k, width), inputs[6] }, out_type)
end

return compute
