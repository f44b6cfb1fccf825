-- Computes of operators that replace elements, sum to a smaller shape, or look positions up.

local core = require "perilune.core"
core.internal()

local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local loops = require "perilune.topi.compute.loops"
local operand = require "perilune.tir.operand"
local reduction = require "perilune.topi.reduction"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"

local compute = {}

local function copy(list) return table.move(list, 1, #list, 1, {}) end

local function both(a, b) return a and tir.logical_and(a, b) or b end

-- ------------------------------------------------------------------- slices

-- Integer i of a constant operand, its element, or the default where it has fewer.
local function bound(input, arg, i, default)
  local list = arg.constant and arg.constant:to_table()
  if type(list) == "table" then return list[i] or default end
  if list ~= nil then return i == 1 and list or default end
  local count = dims.of(input)[1]
  if type(count) == "number" and i > count then return default end
  return operand.cast("int32", input[{ i - 1 }])
end

-- The place where a slice begins: negative ones count from the end.
local function first_of(at, extent)
  if type(at) == "number" and type(extent) == "number" then
    if at < 0 then at = at + extent end
    return math.max(0, math.min(at, extent))
  end
  at = dims.expr(at, "int32")
  at = tir.Select(tir.lt(at, 0), at + extent, at)
  return tir.max(tir.min(at, extent), 0)
end

-- (data, update, begin, end, strides): the extents of the update say where the slice ends.
compute.strided_set = function(_, inputs, _, args)
  local x, update = inputs[1], inputs[2]
  local shape, slice, first, steps = dims.of(x), dims.of(update), {}, {}
  for i, dim in ipairs(shape) do
    first[i] = first_of(bound(inputs[3], args[3], i, 0), dim)
    steps[i] = bound(inputs[5], args[5], i, 1)
    if type(steps[i]) == "number" and steps[i] < 1 then return nil, "a stride below 1" end
  end
  return dims.compute(shape, function(index)
    local own, condition = {}, nil
    for i, at in ipairs(index) do
      local distance = at - first[i]
      own[i] = tir.floordiv(distance, steps[i])
      condition = both(both(condition, tir.ge(distance, 0)), tir.lt(own[i], slice[i]))
      if steps[i] ~= 1 then
        condition = both(condition, tir.eq(tir.floormod(distance, steps[i]), 0))
      end
    end
    if not condition then return update[own] end
    return tir.if_then_else(condition, update[own], x[index])
  end, "T_strided_set", "injective")
end

-- The first elements of each axis.
compute.slice_like = function(_, inputs, out_type)
  return dims.compute(out_type.shape, function(index) return inputs[1][index] end, "T_slice_like",
    "injective")
end

-- ---------------------------------------------------------------- diagonals

-- Diagonals k1 to k2 of matrices, those above the main one positive. A row of the diagonals has
-- each of them, the uppermost first, aligned to its begin or end.
compute.matrix_set_diag = function(attrs, inputs)
  local x, diagonal = inputs[1], inputs[2]
  local k1, k2, shape = attrs.k1 or 0, attrs.k2 or 0, dims.of(x)
  local rows, columns = shape[#shape - 1], shape[#shape]
  local width = dims.of(diagonal)[diagonal.ndim]
  local upper = (attrs.super_diag_right_align or 1) ~= 0
  local lower = (attrs.sub_diag_right_align or 0) ~= 0
  return dims.compute(shape, function(index)
    local row, column = index[#index - 1], index[#index]
    local k = column - row
    local length = tir.min(rows + tir.min(k, 0), columns - tir.max(k, 0))
    local aligned = operand.const(upper and lower, "bool")
    if upper ~= lower then aligned = upper and tir.ge(k, 0) or tir.le(k, 0) end
    local own = table.move(index, 1, #index - 2, 1, {})
    if k1 ~= k2 then own[#own + 1] = k2 - k end
    own[#own + 1] = tir.min(row, column) + tir.Select(aligned, width - length, 0)
    return tir.if_then_else(tir.logical_and(tir.ge(k, k1), tir.le(k, k2)), diagonal[own], x[index])
  end, "T_matrix_set_diag", "injective")
end

-- Ones on a diagonal.
compute.eye_like = function(attrs, _, out_type)
  local dtype = out_type.dtype
  return dims.compute(out_type.shape, function(index)
    return tir.Select(tir.eq(index[1] + (attrs.k or 0), index[2]), operand.const(1, dtype),
      operand.const(0, dtype))
  end, "T_eye", "injective")
end

-- ------------------------------------------------------------------- sparse

-- (indices, values, default): each value is stored at its index, the last one stays.
compute.sparse_to_dense = function(_, inputs, out_type)
  local indices, values, shape = inputs[1], inputs[2], out_type.shape
  local count = dims.of(indices)[1] or 1
  local function place(ins, i)
    local own = {}
    for k, dim in ipairs(shape) do
      local at = ({ [0] = {}, { i }, { i, k - 1 } })[indices.ndim]
      own[k] = dims.position(tir.BufferLoad(ins[1], at), dim, "strict")
    end
    return own
  end
  local sources = { indices, values, inputs[3] or nil }
  return te.extern(shape, sources, function(ins, outs)
    local function fill(index)
      local default = operand.const(0, values.dtype)
      if ins[3] then
        default = tir.BufferLoad(ins[3], ins[3].shape[1] and { 0 } or {})
      end
      return tir.BufferStore(outs[1], default, index)
    end
    return loops.seq(loops.nest(shape, "i", fill), loops.over(count, "v", function(i)
      return tir.BufferStore(outs[1], tir.BufferLoad(ins[2], values.ndim == 0 and {} or { i }),
        place(ins, i))
    end))
  end, { name = "T_sparse_to_dense", dtype = values.dtype })
end

-- How many bits the numbers 0 to n have.
local function bits_of(n)
  local bits = 0
  while n >> bits > 0 do bits = bits + 1 end
  return bits
end

-- How many elements of a sorted row are less, or with `right` not greater: the bits of that number
-- from the highest on.
compute.searchsorted = function(attrs, inputs, out_type)
  local sorted, values = inputs[1], inputs[2]
  local n = dims.of(sorted)[sorted.ndim]
  if type(n) ~= "number" then return nil, "rows of a symbolic extent" end
  if sorted.dtype ~= values.dtype then return nil, "of two dtypes" end
  local over = attrs.right and attrs.right ~= 0 and tir.le or tir.lt
  return te.extern(out_type.shape, { sorted, values }, function(ins, outs)
    return loops.nest(out_type.shape, "i", function(index)
      local lead = sorted.ndim == 1 and {} or table.move(index, 1, #index - 1, 1, {})
      return loops.allocate(1, "int32", "found", function(found)
        local function element(at)
          local own = copy(lead)
          own[#own + 1] = at
          return tir.BufferLoad(ins[1], own)
        end
        local list = { tir.BufferStore(found, operand.const(0, "int32"), { 0 }) }
        for bit = bits_of(n) - 1, 0, -1 do
          local now = tir.BufferLoad(found, { 0 })
          local next_ = now + (1 << bit)
          local holds = over(element(tir.min(next_, n) - 1), tir.BufferLoad(ins[2], index))
          list[#list + 1] = tir.BufferStore(found, tir.Select(tir.logical_and(tir.le(next_, n),
            holds), next_, now), { 0 })
        end
        list[#list + 1] = tir.BufferStore(outs[1],
          operand.cast(out_type.dtype, tir.BufferLoad(found, { 0 })), index)
        return loops.seq(table.unpack(list))
      end)
    end)
  end, { name = "T_searchsorted", dtype = out_type.dtype })
end

-- --------------------------------------------------------------------- sums

-- Summed over the axes that broadcasting had added or made longer.
local function collapse_sum(_, inputs, out_type)
  local x, shape = inputs[1], out_type.shape
  local own, axes, lead = dims.of(x), {}, x.ndim - #shape
  for i, dim in ipairs(own) do
    if i <= lead or shape[i - lead] == 1 and dim ~= 1 then axes[#axes + 1] = i - 1 end
  end
  local sum = #axes > 0 and reduction.sum(x, axes, true) or x
  return elementwise.cast(transform.reshape(sum, shape), out_type.dtype)
end
compute.collapse_sum_like = collapse_sum
compute.collapse_sum_to = collapse_sum

compute.mean_n = function(_, inputs)
  local sum = inputs[1]
  for i = 2, #inputs do sum = broadcast.add(sum, inputs[i]) end
  return broadcast.divide(sum, operand.const(#inputs + 0.0, sum.dtype))
end

-- The number of elements.
local function size(_, inputs, out_type)
  return elementwise.full(out_type.shape, out_type.dtype,
    dims.size(dims.product(dims.of(inputs[1])), out_type.dtype))
end
compute.size = size
compute.ndarray_size = size

return compute
