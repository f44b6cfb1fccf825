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

local steps = {
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
