-- Computes of losses. Classes are axis 1 of the scores; labels have the other axes. A label that is
-- no class reads the nearest one.

local core = require "perilune.core"
core.internal()

local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local operand = require "perilune.tir.operand"
local reduction = require "perilune.topi.reduction"
local softmax = require "perilune.topi.nn.softmax"
local tir = require "perilune.tir"

local compute = {}

-- A value for each label that is not ignored, 0 for others.
local function by_label(labels, ignored, dtype, f, name)
  return dims.compute(dims.of(labels), function(index)
    local label = labels[index]
    if not ignored then return f(label, index) end
    local kept = tir.ne(label, operand.const(ignored, label.dtype))
    return tir.Select(kept, f(label, index), operand.const(0, dtype))
  end, name, "injective")
end

-- Minus the weighted scores of the labels, their sum or mean.
local function negative_likelihood(attrs, scores, labels, weights)
  local dtype, classes = scores.dtype, dims.of(scores)[2]
  local function weight(label)
    if not weights then return operand.const(1, dtype) end
    return weights[{ dims.position(label, classes, "clip") }]
  end
  local each = by_label(labels, attrs.ignore_index, dtype, function(label, index)
    local own = { index[1], dims.position(label, classes, "clip") }
    return operand.const(0, dtype) - weight(label)
      * scores[table.move(index, 2, #index, 3, own)]
  end, "nll_loss")
  local how = attrs.reduction or "mean"
  if how == "none" then return each end
  local sum = reduction.sum(each)
  if how == "sum" then return sum end
  return broadcast.divide(sum, reduction.sum(by_label(labels, attrs.ignore_index, dtype, weight,
    "nll_loss_weight")))
end

-- Computed in float32 where the scores are shorter floats.
local function of_floats(f)
  return function(attrs, inputs, out_type)
    local dtype = inputs[1].dtype
    if dtype ~= "float16" and dtype ~= "bfloat16" then return f(attrs, inputs, out_type) end
    local wide = table.move(inputs, 1, #inputs, 1, {})
    wide[1] = elementwise.cast(inputs[1], "float32")
    wide[3] = inputs[3] and elementwise.cast(inputs[3], "float32")
    local results = f(attrs, wide, out_type)
    if results.op then return elementwise.cast(results, dtype) end
    for i, result in ipairs(results) do results[i] = elementwise.cast(result, dtype) end
    return results
  end
end

compute["nn.nll_loss"] = of_floats(function(attrs, inputs)
  return negative_likelihood(attrs, inputs[1], inputs[2], inputs[3])
end)

compute["nn.softmax_cross_entropy"] = of_floats(function(attrs, inputs, out_type)
  local logs = softmax.log_softmax(inputs[1], 1)
  local loss = negative_likelihood(attrs, logs, inputs[2], inputs[3])
  if out_type.kind ~= "tuple" then return loss end
  return { loss, out_type.parts[2] and logs }
end)

-- Minus the mean over rows of the sums of scores times targets.
local function cross_entropy(f)
  return function(_, inputs)
    local x = inputs[1]
    local sum = reduction.sum(broadcast.multiply(f(x), inputs[2]))
    return broadcast.divide(sum, operand.const(0, x.dtype) - dims.size(dims.of(x)[1], x.dtype))
  end
end

compute["nn.cross_entropy"] = cross_entropy(elementwise.log)
compute["nn.cross_entropy_with_logits"] = cross_entropy(function(x) return x end)

return compute
