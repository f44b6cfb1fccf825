--- Computes bfloat16 operators that consist of several steps one step after the other, and
-- rounds after each, sums included. So does ONNX's reference implementation, which made the
-- expected outputs of most bfloat16 models, because few runtimes compute bfloat16 on CPUs.
-- What is combined with a float attribute, such as epsilon, is float32 from there on. The
-- evaluator itself rounds once per operator.
--
--     nn.softmax(%x)
--     =>  %e = exp(subtract(%x, max(%x))); divide(%e, the sum of %e, rounded at each element)

local pl = require "perilune"

local op = pl.op

local function is_bfloat16(type)
  return type.kind == "tensor" and type.dtype == "bfloat16"
end

local FLOAT, BFLOAT16 = 1, 16 -- as TensorProto numbers them

local function number(value)
  return pl.const(pl.tensor(value, "bfloat16"))
end

-- An attribute of a call, in float32.
local function parameter(call, name, default)
  return pl.const(pl.tensor(call.attrs[name] or default, "float32"))
end

local function wide(x)
  return op.cast(x, { to = FLOAT })
end

local function narrow(x)
  return op.cast(x, { to = BFLOAT16 })
end

local function rank_of(x)
  return x.type.rank
end

-- The sum along one axis, which is kept with extent 1: a Scan that adds up slices.
local function sum_along(x, axis)
  local first = op.take(x, pl.const(0), { axis = axis })
  local sum, element = pl.var("sum", first.type), pl.var("element", first.type)
  local body = pl.func({ sum, element }, pl.tuple { sum + element })
  local scan = op.scan(op.zeros_like(first), x, body,
    { num_scan_inputs = 1, scan_input_axes = { axis }, n_results = 1 })
  return op.expand_dims(scan:get(0), { axis = axis })
end

-- The number of elements along an axis, in bfloat16.
local function extent_along(x, axis)
  return narrow(op.take(op.shape_of(x), pl.const(axis), { axis = 0 }))
end

local function mean_along(x, axis)
  return sum_along(x, axis) / extent_along(x, axis)
end

-- x with all axes from `axis` on as one; and back, where these axes of a result are 1.
local function flatten_from(x, axis)
  if axis == rank_of(x) - 1 then return x end
  local shape = {}
  for i = 1, axis do shape[i] = 0 end
  shape[axis + 1] = -1
  return op.reshape(x, { newshape = shape })
end

local function unflatten(y, axis, rank)
  local missing = rank - axis - 1
  return missing == 0 and y or op.expand_dims(y, { axis = axis + 1, num_newaxis = missing })
end

-- A vector along axis 1.
local function along_channels(vector, rank)
  return rank == 2 and vector or op.expand_dims(vector, { axis = 1, num_newaxis = rank - 2 })
end

local function inverse_root(call, variance)
  return op.reciprocal(op.sqrt(wide(variance) + parameter(call, "epsilon", 1e-5)))
end

local function exponentials(x, axis)
  local e = op.exp(x - op.max(x, { axes = { axis }, keepdims = 1 }))
  return e / sum_along(e, axis)
end

-- The axes of a reduction, none for all of them: an attribute, or an operand; nil when the
-- operand cannot be computed.
local function axes_of(call)
  local operand = call.args[2]
  if not operand or operand.kind == "Absent" then return call.attrs.axes or {} end
  local ok, axes = pcall(pl.eval, pl.func({}, operand))
  return ok and axes:to_table() or nil
end

-- The first of the reduced axes, if they are the last ones of x; else nil.
local function trailing_axes(call, rank)
  local given = axes_of(call)
  if type(given) == "number" then given = { given } end
  if not given or call.attrs.exclude == 1 then return nil end
  if #given == 0 then return call.attrs.noop_with_empty_axes ~= 1 and 0 or nil end
  local reduced, first = {}, rank
  for _, axis in ipairs(given) do
    axis = axis % rank
    reduced[axis], first = true, math.min(first, axis)
  end
  for axis = first, rank - 1 do
    if not reduced[axis] then return nil end
  end
  return first
end

-- A sum or mean over the last axes.
local function reduction(along)
  return function(call, x)
    local rank = rank_of(x)
    local axis = trailing_axes(call, rank)
    if not axis then return nil end
    local kept = unflatten(along(flatten_from(x, axis), axis), axis, rank)
    if call.attrs.keepdims ~= 0 then return kept end
    local axes = {}
    for i = axis, rank - 1 do axes[#axes + 1] = i end
    return op.squeeze(kept, { axis = axes })
  end
end

local function one_result(call, y)
  return call.n_results == 0 and y or call.n_results == 1 and pl.tuple { y } or nil
end

-- ------------------------------------------------------------------------------- attention

local function integers(list)
  return pl.const(pl.tensor(list, "int64"))
end

-- (batch, heads, steps, size) of an operand of three axes; what has four stays.
local function split_heads(x, count)
  if rank_of(x) == 4 then return x end
  return op.transpose(op.reshape(x, { newshape = { 0, 0, count, -1 } }), { axes = { 0, 2, 1, 3 } })
end

local function fixed(type, axis)
  local dim = type.shape and type.shape[axis]
  return math.type(dim) == "integer" and dim or nil
end

-- Keys and values for each head of queries, where several heads share one.
local function for_each_head(x, n)
  local own = fixed(x.type, 2)
  if not own or own == 0 or n % own ~= 0 then return nil end
  if own == n then return x end
  local heads = {}
  for h = 0, n - 1 do heads[h + 1] = h // (n // own) end
  return op.take(x, integers(heads), { axis = 1 })
end

-- Which of `keys` keys each of `queries` queries may see, as (1 or batch, 1, queries, keys); nil
-- when it may see all. `lengths` has the number of keys of each batch without padding.
local function visible(call, queries, keys, lengths)
  local left = call.attrs.left_window_size or -1
  local right = call.attrs.is_causal == 1 and 0 or call.attrs.right_window_size or -1
  local rows, columns = {}, {}
  for i = 1, queries do rows[i] = i - 1 end
  for j = 1, keys do columns[j] = j - 1 end
  local at, seen = op.expand_dims(integers(rows), { axis = 1 }), nil
  columns = integers(columns)
  local function only(condition) seen = seen and op.logical_and(seen, condition) or condition end
  if lengths then
    local length = op.reshape(lengths, { newshape = { -1, 1, 1, 1 } })
    only(op.less(columns, length))
    at = at + (length - integers(queries))
  end
  if right >= 0 then only(op.less_equal(columns, at + integers(right))) end
  if left >= 0 then only(op.greater_equal(columns, at - integers(left))) end
  return seen
end

-- A mask of fewer keys excludes the others; nil when its extents are unknown.
local function pad_mask(mask, keys)
  local shape = {}
  for i = 1, rank_of(mask) do shape[i] = fixed(mask.type, i) end
  local width = shape[rank_of(mask)]
  if #shape < rank_of(mask) then return nil end
  shape[#shape] = keys - width
  if width == keys then return mask end
  local rest = op.broadcast_to(number(-math.huge), integers(shape))
  return op.concatenate(mask, rest, { axis = -1 })
end

-- What is added to the scores, nil when it is nothing; and whether that is unknown.
local function bias_of(call, queries, keys)
  local mask = call.args[4]
  if mask and mask.kind == "Absent" then mask = nil end
  if mask and mask.type.dtype == "bool" then
    mask = op.where(mask, number(0), number(-math.huge))
  end
  if mask then
    mask = is_bfloat16(mask.type) and pad_mask(mask, keys)
    if not mask then return nil, true end
  end
  local lengths = call.args[7]
  if lengths and lengths.kind == "Absent" then lengths = nil end
  local seen = visible(call, queries, keys, lengths)
  return seen and op.where(seen, mask or number(0), number(-math.huge)) or mask
end

-- Rows whose keys are all excluded have weights of 0.
local function weights_of(call, scores, bias)
  local precision = call.attrs.softmax_precision
  local p
  if precision and precision ~= BFLOAT16 then
    p = narrow(op.nn.softmax(op.cast(scores, { to = precision }), { axis = -1 }))
  else
    p = exponentials(scores, 3)
  end
  if not bias then return p end
  local closed = op.equal(op.max(bias, { axes = { -1 }, keepdims = 1 }), number(-math.huge))
  return op.where(closed, number(0), p)
end

-- Attention (ONNX) without past keys and without results but the first, for known extents.
local function attention(call, q)
  local attrs, past, flat = call.attrs, call.args[5], rank_of(q) == 3
  if past and past.kind ~= "Absent" or call.n_results > 1 then return nil end
  q = split_heads(q, attrs.q_num_heads)
  local n, queries, size = fixed(q.type, 2), fixed(q.type, 3), fixed(q.type, 4)
  local k = n and for_each_head(split_heads(call.args[2], attrs.kv_num_heads), n)
  local v = n and for_each_head(split_heads(call.args[3], attrs.kv_num_heads), n)
  local keys = k and fixed(k.type, 3)
  if not (queries and size and keys and v) then return nil end
  local bias, unknown = bias_of(call, queries, keys)
  if unknown then return nil end
  local root = number(math.sqrt(attrs.scale or 1 / math.sqrt(size)))
  local scores = op.nn.matmul(q * root, op.transpose(k, { axes = { 0, 1, 3, 2 } }) * root)
  local cap = attrs.softcap or 0
  if cap > 0 then scores = number(cap) * op.tanh(scores / number(cap)) end
  local y = op.nn.matmul(weights_of(call, bias and scores + bias or scores, bias), v)
  if flat then
    y = op.reshape(op.transpose(y, { axes = { 0, 2, 1, 3 } }), { newshape = { 0, 0, -1 } })
  end
  return one_result(call, y)
end

local steps = {
  [op.attention] = attention,
  [op.sum] = reduction(sum_along),
  [op.mean] = reduction(mean_along),

  [op.nn.softmax] = function(call, x)
    if call.attrs.coerce_2d == 1 then return nil end
    return exponentials(x, (call.attrs.axis or -1) % rank_of(x))
  end,

  [op.nn.log_softmax] = function(call, x)
    if call.attrs.coerce_2d == 1 then return nil end
    return op.log(exponentials(x, (call.attrs.axis or -1) % rank_of(x)))
  end,

  [op.nn.gelu] = function(call, x)
    local half, one = number(0.5) * x, number(1)
    if call.attrs.approximate == "tanh" then
      local cubed = number(0.044715) * op.power(x, number(3))
      return half * (one + op.tanh(op.sqrt(number(0.63661975)) * (x + cubed)))
    end
    return half * (one + op.erf(x / op.sqrt(number(2))))
  end,

  [op.nn.layer_norm] = function(call, x)
    if call.attrs.one_axis == 1 then return nil end
    local rank, scale, bias = rank_of(x), call.args[2], call.args[3]
    local axis = (call.attrs.axis or -1) % rank
    local rows = flatten_from(x, axis)
    local mean = unflatten(mean_along(rows, axis), axis, rank)
    local off = x - mean
    local variance = mean_along(flatten_from(off * off, axis), axis)
    local inverse = inverse_root(call, variance)
    inverse = unflatten(inverse, axis, rank)
    local y = wide(off) * inverse * wide(scale)
    y = narrow(bias and y + wide(bias) or y)
    if call.n_results == 0 then return y end
    -- Mean and inverse deviation have the type of the attribute stash_type.
    if call.attrs.stash_type == BFLOAT16 then inverse = narrow(inverse) else mean = wide(mean) end
    return pl.tuple(table.move({ y, mean, inverse }, 1, call.n_results, 1, {}))
  end,

  [op.nn.rms_norm] = function(call, x)
    local rank = rank_of(x)
    local axis = (call.attrs.axis or -1) % rank
    local square = mean_along(flatten_from(x * x, axis), axis)
    local inverse = unflatten(inverse_root(call, square), axis, rank)
    return narrow(wide(x) * inverse * wide(call.args[2]))
  end,

  [op.nn.batch_norm] = function(call, x)
    local rank, attrs = rank_of(x), call.attrs
    if rank < 2 or attrs.training_mode == 1 or attrs.relay == 1 or attrs.spatial == 0 then
      return nil
    end
    local p = {}
    for i = 2, 5 do p[i] = along_channels(call.args[i], rank) end
    local deviation = op.sqrt(wide(p[5]) + parameter(call, "epsilon", 1e-5))
    return one_result(call, narrow(wide(p[2] * (x - p[4])) / deviation + wide(p[3])))
  end,

  [op.nn.gemm] = function(call, a)
    local b, c, attrs = call.args[2], call.args[3], call.attrs
    if attrs.transA == 1 then a = op.transpose(a, { axes = { 1, 0 } }) end
    if attrs.transB == 1 then b = op.transpose(b, { axes = { 1, 0 } }) end
    local y = wide(op.nn.matmul(a, b)) * parameter(call, "alpha", 1)
    return narrow(c and y + wide(c) * parameter(call, "beta", 1) or y)
  end,
}

local function pass(fn)
  return pl.mutator {
    Call = function(_, rebuild)
      local call = rebuild()
      local expand, x = steps[call.op], call.args[1]
      if not expand or not is_bfloat16(x.type) or not rank_of(x) or rank_of(x) == 0 then
        return call
      end
      local new = expand(call, x)
      return new and new.type == call.type and new or call
    end,
    TupleGetItem = function(_, rebuild)
      local get = rebuild()
      local tuple = get.tuple
      return tuple.kind == "Tuple" and tuple.fields[get.index + 1] or get
    end,
  }(fn)
end

return pl.function_pass { name = "emulate_bfloat16", run = pass,
  doc = "Compute bfloat16 operators step by step, rounding after each." }
