-- pl.topi: reductions over axes, by TVM's names.
--
--     topi.sum(x, 1, true), topi.max(x, { 0, -1 }), topi.argmax(x, 1)
--
-- nil as axis are all axes. A maximum or minimum is NaN if an element is; argmax counts NaN as the
-- greatest, argmin as the smallest. Of nothing the maximum is the least value of its dtype.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"

local topi = {}

local function constant(number) return function(dtype) return operand.const(number, dtype) end end

local reducers = {
  sum = te.sum,
  prod = te.comm_reducer(tir.multiply, constant(1), "prod"),
  max = te.comm_reducer(function(a, b)
    return tir.Select(dims.keeps_greater(a, b), a, b)
  end, dims.least, "max"),
  min = te.comm_reducer(function(a, b)
    return tir.Select(dims.keeps_less(a, b), a, b)
  end, dims.greatest, "min"),
  all = te.comm_reducer(tir.logical_and, constant(true), "all"),
  any = te.comm_reducer(tir.logical_or, constant(false), "any"),
}

-- The shape of the result, the axes that are reduced over (in order), and a function from the
-- indices of a result and of the reduction to those of the operand.
local function plan(x, axis, keepdims, where)
  local shape = dims.of(dims.tensor(x, where))
  local reduced, out, axes = dims.axis_set(axis, #shape, where), {}, {}
  for i, dim in ipairs(shape) do
    if reduced[i] then axes[#axes + 1] = te.reduce_axis({ 0, dim }, "k" .. #axes) end
    if keepdims or not reduced[i] then out[#out + 1] = reduced[i] and 1 or dim end
  end
  local function source(index)
    local own, at, k = {}, 1, 1
    for i in ipairs(shape) do
      if reduced[i] then
        own[i], k = axes[k].var, k + 1
        if keepdims then at = at + 1 end
      else
        own[i], at = index[at], at + 1
      end
    end
    return own
  end
  return out, axes, source
end

--- The reduction of f(element) by a reducer (te.comm_reducer); f may be nil.
function topi.comm_reduce(x, axis, keepdims, reducer, f, name)
  local out, axes, source = plan(x, axis, keepdims, "topi." .. (name or "comm_reduce"))
  return dims.compute(out, function(index)
    local value = x[source(index)]
    if f then value = f(value) end
    if #axes == 0 then return value end
    return reducer(value, axes)
  end, "T_" .. (name or "comm_reduce"), "comm_reduce")
end

for name, reducer in pairs(reducers) do
  topi[name] = function(x, axis, keepdims)
    return topi.comm_reduce(x, axis, keepdims, reducer, nil, name)
  end
end

--- The number of elements that each result is reduced from.
function topi.reduced_count(x, axis)
  local shape, count = dims.of(x), 1
  for i in pairs(dims.axis_set(axis, #shape, "topi.mean")) do count = count * shape[i] end
  return count
end

-- The element with its index, which is greater (or less); of equal ones the first, or the last.
local function arg_reducer(name, over, identity, last)
  return te.comm_reducer(function(a, b)
    local i, x, j, y = a[1], a[2], b[1], b[2]
    local equal = tir.eq(x, y)
    if operand.is_float(x.dtype) then
      equal = tir.logical_or(equal, tir.logical_and(tir.ne(x, x), tir.ne(y, y)))
    end
    local earlier = last and tir.gt(i, j) or tir.lt(i, j)
    local valid = tir.logical_or(tir.lt(j, operand.const(0, j.dtype)),
      tir.logical_or(over(x, y), tir.logical_and(equal, earlier)))
    local keep = tir.logical_and(tir.ge(i, operand.const(0, i.dtype)), valid)
    return { tir.Select(keep, i, j), tir.Select(keep, x, y) }
  end, function(index_dtype, dtype)
    return { operand.const(-1, index_dtype), identity(dtype) }
  end, name)
end

-- A number is over NaN never; NaN over every number.
local function greater(x, y)
  if not operand.is_float(x.dtype) then return tir.gt(x, y) end
  return tir.logical_or(tir.gt(x, y), tir.logical_and(tir.ne(x, x), tir.eq(y, y)))
end

local function less(x, y)
  if not operand.is_float(x.dtype) then return tir.lt(x, y) end
  return tir.logical_or(tir.lt(x, y), tir.logical_and(tir.ne(x, x), tir.eq(y, y)))
end

-- Positions among the elements that are reduced, in row-major order.
local function position(x, axis, axes)
  local shape, k, at = dims.of(x), 1, 0
  local reduced = dims.axis_set(axis, #shape, "topi.argmax")
  for i, dim in ipairs(shape) do
    if reduced[i] then
      at = at == 0 and axes[k].var or at * dim + axes[k].var
      k = k + 1
    end
  end
  return at
end

for name, row in pairs { argmax = { greater, dims.least }, argmin = { less, dims.greatest } } do
  topi[name] = function(x, axis, keepdims, select_last_index, index_dtype)
    local reducer = arg_reducer(name, row[1], row[2], select_last_index)
    local out, axes, source = plan(x, axis, keepdims, "topi." .. name)
    local dtype = index_dtype or "int32"
    if #axes == 0 then
      return dims.compute(out, function() return operand.const(0, dtype) end, "T_" .. name)
    end
    local index = te.compute(out, function(...)
      return { reducer({ operand.cast(dtype, position(x, axis, axes)), x[source { ... }] }, axes) }
    end, "T_" .. name .. "_red", { tag = "comm_reduce_idx" })
    return dims.compute(out, function(at) return index[at] end, "T_" .. name, "injective")
  end
end

return topi
