-- The compute of attention, as ONNX defines it: products of queries and keys, a softmax over the
-- keys that a query may see, and the sum of their values by these weights.

local core = require "perilune.core"
core.internal()

local dense = require "perilune.topi.nn.dense"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local operand = require "perilune.tir.operand"
local reduction = require "perilune.topi.reduction"
local softmax = require "perilune.topi.nn.softmax"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"

local compute = {}

-- (batch, steps, heads * size) as (batch, heads, steps, size).
local function by_heads(x, heads)
  if x.ndim == 4 then return x end
  local shape = dims.of(x)
  if not heads or heads < 1 or shape[3] % heads ~= 0 then return nil end
  return transform.transpose(transform.reshape(x, { shape[1], shape[2], heads,
    shape[3] // heads }), { 0, 2, 1, 3 })
end

-- Each head of keys or values for all the heads of queries that share it.
local function shared(x, heads)
  local own = dims.of(x)[2]
  if own == heads then return x end
  return transform.repeat_(x, heads // own, 1)
end

local function joined(past, x)
  return past and transform.concatenate({ past, x }, 2) or x
end

-- The mask's element: its axes are aligned from the last.
local function mask_at(mask, index)
  local own, shape = {}, dims.of(mask)
  for i, dim in ipairs(shape) do own[i] = dim == 1 and 0 or index[#index - #shape + i] end
  return mask[own]
end

-- Whether a query may see a key: causality, and a window around it; nil where it may see all.
local function visible(attrs, past, index)
  local query, key, condition = index[3] + past, index[4], nil
  local function also(more) condition = condition and tir.logical_and(condition, more) or more end
  if attrs.is_causal == 1 then also(tir.le(key, query)) end
  local left, right = attrs.left_window_size or -1, attrs.right_window_size or -1
  if left >= 0 then also(tir.ge(key, query - left)) end
  if right >= 0 then also(tir.le(key, query + right)) end
  return condition
end

local function scores_of(attrs, products, mask, past)
  local dtype = products.dtype
  local none = operand.FloatImm(dtype, -math.huge)
  return dims.compute(dims.of(products), function(index)
    local value = products[index] * operand.const(attrs.factor, dtype)
    if (attrs.softcap or 0) ~= 0 then
      local cap = operand.const(attrs.softcap, dtype)
      value = tir.tanh(value / cap) * cap
    end
    if mask and mask.dtype == "bool" then
      value = tir.Select(mask_at(mask, index), value, none)
    elseif mask then
      value = value + mask_at(mask, index)
    end
    local condition = visible(attrs, past, index)
    return condition and tir.Select(condition, value, none) or value
  end, "T_scores", "injective")
end

-- Weights of the keys; a query that sees none has zeros.
local function weights_of(scores)
  local most, weights = reduction.max(scores, -1, true), softmax.softmax(scores, -1)
  local none = operand.FloatImm(scores.dtype, -math.huge)
  return dims.compute(dims.of(scores), function(index)
    local row = most[{ index[1], index[2], index[3], 0 }]
    return tir.Select(tir.eq(row, none), operand.const(0, scores.dtype), weights[index])
  end, "T_weights", "injective")
end

-- What is not lowered, or nil.
local function refused(inputs, out_type)
  local dtype = inputs[1].dtype
  if dtype ~= "float32" and dtype ~= "float64" then return "of " .. dtype end
  if inputs[7] then return "lengths of keys" end
  if (inputs[5] and not inputs[6]) or (inputs[6] and not inputs[5]) then return "half a past" end
  if out_type.kind == "tuple" and #out_type.parts > 3 then return "scores as a result" end
  local mask = inputs[4]
  if mask and mask.dtype ~= "bool" and mask.dtype ~= dtype then
    return "a mask of " .. mask.dtype
  end
end

compute.attention = function(attrs, inputs, out_type)
  local reason = refused(inputs, out_type)
  if reason then return nil, reason end
  local q = by_heads(inputs[1], attrs.q_num_heads)
  local k, v = by_heads(inputs[2], attrs.kv_num_heads), by_heads(inputs[3], attrs.kv_num_heads)
  if not q or not k or not v then return nil, "these heads" end
  local past = inputs[5] and dims.of(inputs[5])[3] or 0
  k, v = joined(inputs[5], k), joined(inputs[6], v)
  local heads, size = dims.of(q)[2], dims.of(q)[4]
  local mask = inputs[4]
  if mask and dims.of(mask)[mask.ndim] ~= dims.of(k)[3] and dims.of(mask)[mask.ndim] ~= 1 then
    return nil, "a mask of fewer keys"
  end
  local settings = setmetatable({ factor = attrs.scale or 1 / math.sqrt(math.max(size, 1)) },
    { __index = attrs })
  local products = dense.matmul(q, shared(k, heads), false, true)
  local weights = weights_of(scores_of(settings, products, mask, past))
  local y = dense.matmul(weights, shared(v, heads))
  local parts = out_type.kind == "tuple" and out_type.parts or { out_type }
  if inputs[1].ndim == 3 then
    y = transform.reshape(transform.transpose(y, { 0, 2, 1, 3 }), parts[1].shape)
  end
  return table.move({ y, elementwise.identity(k), elementwise.identity(v) }, 1, #parts, 1, {})
end

-- The row of the tables that a step of a batch has: a list of indices without the last one.
local function table_row(tables, positions, batch, step)
  if not positions then return { batch, step } end
  local at = operand.cast("int32", positions[{ batch, step }])
  return { tir.max(tir.min(at, dims.of(tables)[1] - 1), 0) }
end

-- Element `at` of a head, rotated: its pair is half of the rotated elements apart, or adjacent.
local function rotated(plan, element, table_at, at)
  local pairs_of = plan.n // 2
  local pair, second, first_at, second_at
  if plan.interleaved then
    pair, second = tir.floordiv(at, 2), tir.eq(tir.floormod(at, 2), 1)
    first_at, second_at = pair * 2, pair * 2 + 1
  else
    pair, second = tir.floormod(at, pairs_of), tir.ge(at, pairs_of)
    first_at, second_at = pair, pair + pairs_of
  end
  local cos, sin = table_at(plan.cos, pair), table_at(plan.sin, pair)
  local a, b = element(first_at), element(second_at)
  return tir.Select(second, sin * a + cos * b, cos * a - sin * b)
end

-- The first n elements of each head rotated by an angle that depends on the step. Definition: ONNX,
-- RotaryEmbedding.
local function rotate(x, plan)
  local width = dims.of(x)[4]
  return dims.compute(dims.of(x), function(index)
    local row = table_row(plan.cos, plan.positions, index[1], index[3])
    local function element(at) return x[{ index[1], index[2], index[3], at }] end
    local function table_at(tables, pair)
      local own = table.move(row, 1, #row, 1, {})
      own[#own + 1] = pair
      return tables[own]
    end
    if plan.n == width then return rotated(plan, element, table_at, index[4]) end
    return tir.if_then_else(tir.lt(index[4], plan.n),
      rotated(plan, element, table_at, tir.min(index[4], plan.n - 1)), element(index[4]))
  end, "T_rotary_embedding", "injective")
end

compute.rotary_embedding = function(attrs, inputs)
  local x = by_heads(inputs[1], attrs.num_heads)
  local n = attrs.rotary_embedding_dim or 0
  if not x or type(dims.of(x)[4]) ~= "number" then return nil, "this rank or number of heads" end
  if n == 0 then n = dims.of(x)[4] end
  if n < 2 or n % 2 ~= 0 or n > dims.of(x)[4] then return nil, "these rotated elements" end
  local result = rotate(x, { cos = inputs[2], sin = inputs[3], positions = inputs[4], n = n,
    interleaved = attrs.interleaved == 1 })
  if inputs[1].ndim == 4 then return result end
  return transform.reshape(transform.transpose(result, { 0, 2, 1, 3 }), dims.of(inputs[1]))
end

return compute
