-- pl.topi.nn: pooling, by TVM's names, of tensors with batch and channels first.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local broadcast = require "perilune.topi.broadcast"
local conv = require "perilune.topi.nn.conv"
local dims = require "perilune.topi.dims"
local layout = require "perilune.topi.layout"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local reduction = require "perilune.topi.reduction"
local te = require "perilune.te"
local tir = require "perilune.tir"

local nn = {}

local function extent(size, window, stride, ceil_mode)
  local steps = size - window
  if ceil_mode then steps = steps + stride - 1 end
  return steps // stride + 1
end

-- What lies behind the last window is not read; what a window reads beyond it is padded.
local function padded(x, plan, value)
  local shape = dims.of(x)
  local before, after, any = { 0, 0 }, { 0, 0 }, false
  for i = 1, plan.n do
    local reach = (plan.out[i + 2] - 1) * plan.strides[i] + plan.window[i]
    before[i + 2] = plan.before[i]
    local more = reach - plan.before[i] - shape[i + 2]
    -- Of extents that are not known as far as a window may reach.
    if type(more) ~= "number" then
      more = plan.after[i] + (plan.ceil_mode and plan.strides[i] - 1 or 0)
    end
    after[i + 2] = math.max(0, more)
    any = any or before[i + 2] > 0 or after[i + 2] > 0
  end
  return any and pad.pad(x, before, after, value, "pad_temp") or x
end

-- A reduction of the elements of each window; of a blocked tensor by blocks.
local function over_windows(x, plan, reduce, name)
  local axes = {}
  for i = 1, plan.n do axes[i] = te.reduce_axis({ 0, plan.kernel[i] }, "r" .. ("dhw"):sub(i, i)) end
  local blocked, block = layout.of(x)
  local source, shape = blocked or x, blocked and layout.shape(plan.out, block) or plan.out
  local result = dims.compute(shape, function(index)
    local own = { index[1], index[2] }
    for i = 1, plan.n do
      own[i + 2] = index[i + 2] * plan.strides[i] + axes[i].var * plan.dilation[i]
    end
    own[#own + 1] = blocked and index[5]
    return reduce(source[own], axes)
  end, name, blocked and "blocked_window" or name)
  return blocked and layout.view(result) or result
end

-- NaN is not greater than any number, as in the evaluator's kernel.
local greatest = te.comm_reducer(function(a, b)
  return tir.Select(tir.gt(b, a), b, a)
end, dims.least, "max")

local function max_pool(x, plan)
  return over_windows(padded(x, plan, dims.least(x.dtype)), plan, greatest, "pool_max")
end

-- Of pairs of a position, -1 where there is none, and a value: the first greatest.
local first_greatest = te.comm_reducer(function(a, b)
  local better = tir.logical_and(tir.ge(b[1], 0), tir.logical_or(tir.lt(a[1], 0),
    tir.gt(b[2], a[2])))
  return { tir.Select(better, b[1], a[1]), tir.Select(better, b[2], a[2]) }
end, function(position, value) return { operand.const(-1, position), dims.least(value) } end,
  "argmax")

-- Whether the place along each axis is inside, and its number in memory: row-major, or with the
-- axes of space in the opposite order.
local function position_at(own, shape, column_major)
  local inside, at = nil, own[1] * shape[2] + own[2]
  for k = 3, #shape do
    local holds = tir.logical_and(tir.ge(own[k], 0), tir.lt(own[k], shape[k]))
    inside = inside and tir.logical_and(inside, holds) or holds
    local i = column_major and #shape + 3 - k or k
    at = at * shape[i] + own[i]
  end
  return inside, at
end

-- How many elements of the tensor (or of its padding) a window has along an axis. As in TVM, all
-- elements count with the padding, those that ceil_mode adds, too; ONNX, which has the extents of
-- the result, leaves those out.
local function counted(at, i, plan, shape)
  local step = plan.dilation[i]
  local borders = plan.before[i] > 0 or plan.after[i] > 0 or plan.ceil_mode
  if plan.count_include_pad and not plan.has_out or step ~= 1 and not borders then
    return plan.kernel[i]
  end
  local first = at * plan.strides[i] - plan.before[i]
  local last = tir.min(first + plan.window[i],
    shape[i + 2] + (plan.count_include_pad and plan.after[i] or 0))
  if step == 1 then return last - (plan.count_include_pad and first or tir.max(first, 0)) end
  local count = tir.floordiv(last - first + (step - 1), step)
  if plan.count_include_pad then return count end
  return count - tir.floordiv(tir.max(-first, 0) + (step - 1), step)
end

local function avg_pool(x, plan)
  local shape, dtype = dims.of(x), x.dtype
  local sum = over_windows(padded(x, plan, 0), plan, te.sum, "pool_sum")
  return dims.compute(plan.out, function(index)
    local count = 1
    for i = 1, plan.n do count = count * counted(index[i + 2], i, plan, shape) end
    return sum[index] / operand.cast(dtype, count)
  end, "pool_avg", "injective")
end

-- The windows of a call, checked.
local function plan_of(x, pool_type, options, where)
  local shape = dims.of(dims.tensor(x, where))
  local n = #shape - 2
  if n < 1 or n > 3 then argument.fail(where .. ": a tensor of rank 3 to 5 is expected") end
  if pool_type ~= "max" and pool_type ~= "avg" then
    argument.fail(where .. ': pool_type: "max" or "avg" expected')
  end
  local plan = { n = n, kernel = dims.list(options.kernel, n, where, "kernel"),
    strides = dims.list(options.strides or 1, n, where, "strides"),
    dilation = dims.list(options.dilation or 1, n, where, "dilation"),
    count_include_pad = options.count_include_pad, has_out = options.out ~= nil,
    ceil_mode = options.ceil_mode or options.out ~= nil, window = {}, out = { shape[1], shape[2] } }
  plan.before, plan.after = conv.split_padding(options.padding, n, where)
  for i = 1, n do
    plan.window[i] = (plan.kernel[i] - 1) * plan.dilation[i] + 1
    plan.out[i + 2] = options.out and options.out[i + 2] or extent(
      shape[i + 2] + plan.before[i] + plan.after[i], plan.window[i], plan.strides[i],
      options.ceil_mode)
  end
  return plan
end

--- Pooling over all axes but the first two. options: kernel, strides, dilation, padding, ceil_mode,
-- count_include_pad, out (the extents of the result, if they are given).
function nn.pool_nd(x, pool_type, options, where)
  local plan = plan_of(x, pool_type, options, where or "topi.nn.pool_nd")
  return (pool_type == "max" and max_pool or avg_pool)(x, plan)
end

--- The greatest elements of windows and where they are in the tensor, as ONNX's MaxPool numbers
-- them (storage_order 1: column_major); options as pool_nd has them, with `out`.
function nn.max_pool_with_positions(x, options, column_major)
  local where = "topi.nn.max_pool_with_positions"
  local shape = dims.of(dims.tensor(x, where))
  argument.table(options, where, "options")
  local plan = plan_of(x, "max", options, where)
  local axes = {}
  for i, size in ipairs(plan.kernel) do axes[i] = te.reduce_axis({ 0, size }, "r" .. i) end
  local positions, values = te.compute(plan.out, function(...)
    local index = { ... }
    local own = { index[1], index[2] }
    for i = 1, plan.n do
      own[i + 2] = index[i + 2] * plan.strides[i] + axes[i].var * plan.dilation[i]
        - plan.before[i]
    end
    local inside, at = position_at(own, shape, column_major)
    local value = tir.if_then_else(inside, x[own], dims.least(x.dtype))
    at = tir.Select(inside, operand.cast("int64", at), operand.const(-1, "int64"))
    return { first_greatest({ at, value }, axes) }
  end, "pool_max", { tag = "comm_reduce_idx" })
  local function copy(tensor, name)
    return dims.compute(plan.out, function(index) return tensor[index] end, name, "injective")
  end
  return copy(values, "T_pool_max"), copy(positions, "T_pool_position")
end

for n = 1, 3 do
  local where = ("topi.nn.pool%dd"):format(n)
  nn[("pool%dd"):format(n)] = function(x, kernel, strides, dilation, padding, pool_type, ceil_mode,
    count_include_pad)
    if dims.tensor(x, where).ndim ~= n + 2 then
      argument.fail(("%s: a tensor of rank %d expected"):format(where, n + 2))
    end
    return nn.pool_nd(x, pool_type, { kernel = kernel, strides = strides, dilation = dilation,
      padding = padding, ceil_mode = ceil_mode, count_include_pad = count_include_pad }, where)
  end
end

--- The maximum or mean over all axes but the first two, which are kept with extent 1.
function nn.global_pool(x, pool_type)
  local axes, where = {}, "topi.nn.global_pool"
  for i = 2, dims.tensor(x, where).ndim - 1 do axes[#axes + 1] = i end
  if #axes == 0 then argument.fail(where .. ": a tensor of rank 3 or more is expected") end
  if layout.of(x) then
    local shape = dims.of(x)
    return nn.pool_nd(x, pool_type, { kernel = { shape[3], shape[4] } })
  end
  if pool_type == "max" then return reduction.max(x, axes, true) end
  return broadcast.divide(reduction.sum(x, axes, true),
    dims.size(reduction.reduced_count(x, axes), x.dtype))
end

return nn
