-- Computes of reductions.

local core = require "perilune.core"
core.internal()

local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local reduction = require "perilune.topi.reduction"

local compute = {}

-- The axes that are reduced over (a list) and whether they are kept, or nil and a reason.
local function read(attrs, inputs, args)
  local axes, rank = attrs.axes or attrs.axis, inputs[1].ndim
  if inputs[2] and not args[2].constant then return nil, "axes that are not constant" end
  if inputs[2] then axes = args[2].constant:to_table() end
  if type(axes) == "number" then axes = { axes } end
  if axes and #axes == 0 then axes = nil end
  local excluded = {}
  if attrs.exclude == 1 and axes then
    for _, axis in ipairs(axes) do excluded[axis % rank] = true end
    axes = {}
    for i = 0, rank - 1 do
      if not excluded[i] then axes[#axes + 1] = i end
    end
  end
  if not axes then
    axes = {}
    for i = 0, rank - 1 do axes[i + 1] = i end
    if attrs.noop_with_empty_axes == 1 then axes = {} end
  end
  return axes
end

-- `prepare` and `finish` are applied to elements and results.
local function define(name, reducer, prepare, finish)
  compute[name] = function(attrs, inputs, out_type, args)
    local axes, reason = read(attrs, inputs, args)
    if not axes then return nil, reason end
    local x = inputs[1]
    if x.dtype == "bool" and reducer ~= "all" and reducer ~= "any" then return nil, "of bools" end
    if prepare then x = prepare(x) end
    local result = reduction[reducer](x, axes, out_type.rank == x.ndim)
    if finish then result = finish(result, inputs[1], axes) end
    return result
  end
end

local function count(x, axes, dtype)
  return dims.size(reduction.reduced_count(x, axes), dtype)
end

local function square(x) return broadcast.multiply(x, x) end

local function mean(result, x, axes)
  return broadcast.divide(result, count(x, axes, result.dtype))
end

for _, name in ipairs { "sum", "max", "min", "prod", "all", "any" } do define(name, name) end
define("mean", "sum", nil, mean)
define("reduce_l1", "sum", elementwise.abs)
define("reduce_l2", "sum", square, function(result) return elementwise.sqrt(result) end)
define("reduce_sum_square", "sum", square)
define("reduce_log_sum", "sum", nil, function(result) return elementwise.log(result) end)

-- The mean of squared distances from the given mean.
compute.variance = function(attrs, inputs, out_type)
  local x, axes = inputs[1], read(attrs, { inputs[1] }, {})
  if inputs[2].ndim ~= x.ndim then return nil, "a mean of another rank" end
  local sum = reduction.sum(square(broadcast.subtract(x, inputs[2])), axes,
    out_type.rank == x.ndim)
  local n = reduction.reduced_count(x, axes) - (attrs.unbiased == 1 and 1 or 0)
  return broadcast.divide(sum, dims.size(n, x.dtype))
end

-- log(sum(exp(x - max))) + max.
compute.logsumexp = function(attrs, inputs, out_type, args)
  local axes, reason = read(attrs, inputs, args)
  if not axes then return nil, reason end
  local x = inputs[1]
  local most = reduction.max(x, axes, true)
  local sum = reduction.sum(elementwise.exp(broadcast.subtract(x, most)), axes, true)
  local result = broadcast.add(elementwise.log(sum), most)
  if out_type.rank == x.ndim then return result end
  return require "perilune.topi.transform".reshape(result, out_type.shape)
end

for _, name in ipairs { "argmax", "argmin" } do
  compute[name] = function(attrs, inputs, out_type)
    local axes = attrs.axis
    if type(axes) == "table" and #axes ~= 1 then return nil, "over several axes" end
    if attrs.exclude == 1 then return nil, "exclude" end
    if type(axes) == "table" then axes = axes[1] end
    return reduction[name](inputs[1], axes or 0, out_type.rank == inputs[1].ndim,
      attrs.select_last_index == 1, out_type.dtype)
  end
end

return compute
