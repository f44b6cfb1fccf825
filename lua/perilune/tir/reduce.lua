-- Reductions: combiners, and the functions that reduce an expression over axes
-- as TVM's do. Its functions are perilune.tir's.
--
--     tir.sum(A:load(i, k), k)          -- over the IterVar k
--     tir.max(a, b)                     -- without an axis: of the values

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local arithmetic = require "perilune.tir.math"
local operand = require "perilune.tir.operand"

local expr, exprs, node = operand.expr, operand.exprs, operand.node

local reduce = {}

--- A commutative combiner: as many lhs and rhs variables, results, identities.
function reduce.CommReducer(lhs, rhs, result, identity_element)
  local operands = {}
  for _, list in ipairs { lhs, rhs, result, identity_element } do
    table.move(exprs(list), 1, #list, #operands + 1, operands)
  end
  return node("CommReducer", operands)
end

--- A reduction over the axes `rdom`; value `value_index` of the combiner's.
function reduce.Reduce(combiner, src, rdom, condition, value_index, init)
  local operands = { combiner, expr(condition == nil and true or condition) }
  for _, list in ipairs { src, init or {}, rdom } do
    table.move(exprs(list), 1, #list, #operands + 1, operands)
  end
  return node("Reduce", operands, value_index or 0, #(init or {}))
end

local function is_axis(value)
  return type(value) == "table" or type(value) == "userdata" and value.kind == "IterVar"
end

local comm_reduce = 2

-- The axes as a list.
local function axes_of(name, axis)
  local list = type(axis) == "table" and axis or { axis }
  for _, iter in ipairs(list) do
    if argument.node(iter, name, "an axis").kind ~= "IterVar" or iter.iter_type ~= comm_reduce then
      argument.fail(("%s: an axis is an IterVar of type CommReduce"):format(name))
    end
  end
  if #list == 0 then argument.fail(("%s: an axis is needed"):format(name)) end
  return list
end

-- A list of values as it is; one value as a list of one.
local function listed(value) return type(value) == "table" and value or { value } end

local function combined(name, combine, identity, values)
  local lhs, rhs, dtypes = {}, {}, {}
  local tuple = #values > 1
  for i, value in ipairs(values) do
    local at = tuple and "_" .. i - 1 or ""
    dtypes[i] = value.dtype
    lhs[i] = core.var("x" .. at, operand.type(value.dtype))
    rhs[i] = core.var("y" .. at, operand.type(value.dtype))
  end
  local result, neutral
  if tuple then
    result, neutral = combine(lhs, rhs), identity(table.unpack(dtypes))
  else
    result, neutral = combine(lhs[1], rhs[1]), identity(dtypes[1])
  end
  result, neutral = listed(result), listed(neutral)
  if #result ~= #values or #neutral ~= #values then
    argument.fail(("%s: of %d values it has %d results and %d identities"):format(name, #values,
      #result, #neutral))
  end
  return reduce.CommReducer(lhs, rhs, result, neutral)
end

-- One Reduce a value.
local function over(name, combine, identity, value, axis, where, init)
  local values = {}
  for i, one in ipairs(listed(value)) do values[i] = operand.value(one) end
  if #values == 0 then argument.fail(("%s: a value is needed"):format(name)) end
  local axes = axes_of(name, axis)
  local combiner = combined(name, combine, identity, values)
  if init ~= nil then init = listed(init) end
  local outputs = {}
  for i = 1, #values do
    outputs[i] = reduce.Reduce(combiner, values, axes, where, i - 1, init)
  end
  return table.unpack(outputs)
end

--- A function that reduces: f(value, axis, where, init) over an IterVar or a list of them, or
-- f(a, b, ...) of values at once. fcombine(x, y) combines two values, fidentity(dtype) gives
-- what changes nothing. Of a list of values fcombine is given lists and gives one, fidentity is
-- given all dtypes, and there are as many results.
function reduce.comm_reducer(fcombine, fidentity, name)
  argument.callable(fcombine, "tir.comm_reducer", "fcombine")
  argument.callable(fidentity, "tir.comm_reducer", "fidentity")
  name = name or "reduce"
  return function(value, axis, ...)
    if is_axis(axis) then return over(name, fcombine, fidentity, value, axis, ...) end
    if axis == nil then argument.fail(name .. ": an axis or another value is expected, got nil") end
    for _, other in ipairs { axis, ... } do value = fcombine(value, other) end
    return value
  end
end

local function constant(number)
  return function(dtype) return operand.const(number, dtype) end
end

--- The sum, the product, the least and the greatest over axes, or of values.
reduce.sum = reduce.comm_reducer(arithmetic.add, constant(0), "tir.sum")
reduce.prod = reduce.comm_reducer(arithmetic.multiply, constant(1), "tir.prod")
reduce.min = reduce.comm_reducer(arithmetic.min, arithmetic.max_value, "tir.min")
reduce.max = reduce.comm_reducer(arithmetic.max, arithmetic.min_value, "tir.max")

return reduce
