-- pl.topi: functions that move elements, by TVM's names: another shape, order, part or place.
--
--     topi.transpose(x, { 0, 2, 1 }), topi.reshape(x, { 4, -1 }), topi.take(x, indices, 0)
--
-- Axes count from 0, negative ones from the end.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local dims = require "perilune.topi.dims"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local topi = {}

local function moved(shape, x, source, name)
  return dims.compute(shape, function(index) return x[source(index)] end, name, "injective")
end

--- Axes permuted; reversed without a permutation.
function topi.transpose(x, axes)
  local shape, out, from = dims.of(dims.tensor(x, "topi.transpose")), {}, {}
  local rank = #shape
  if axes ~= nil then dims.list(axes, rank, "topi.transpose", "axes") end
  for i = 1, rank do
    local axis = axes and dims.axis(axes[i], rank, "topi.transpose") + 1 or rank + 1 - i
    if from[axis] then argument.fail("topi.transpose: axes: an axis is given twice") end
    out[i], from[axis] = shape[axis], i
  end
  return moved(out, x, function(index)
    local own = {}
    for i = 1, rank do own[i] = index[from[i]] end
    return own
  end, "T_transpose")
end

-- The shape with its -1 found: an extent that makes as many elements as there are.
local function complete(shape, count, where)
  local out, missing = {}, nil
  for i, dim in ipairs(shape) do
    if dim == -1 and missing then argument.fail(where .. ": newshape: -1 stands twice") end
    if dim == -1 then missing = i end
    out[i] = dim
  end
  if missing then
    out[missing] = 1
    local rest = dims.product(out)
    if rest == 1 then
      out[missing] = count
    elseif rest ~= 0 then
      out[missing] = count // rest
    end
  end
  local product = dims.product(out)
  if type(product) == "number" and type(count) == "number" and product ~= count then
    argument.fail(("%s: %s elements are no tensor of %s"):format(where, count, product))
  end
  return out
end

-- Neighbouring axes of two shapes that have as many elements: { first, last, first, last }.
local function regions(from, to)
  local list, i, k = {}, 1, 1
  while i <= #from or k <= #to do
    local first, second = i, k
    local a, b = from[i] or 1, to[k] or 1
    i, k = i + 1, k + 1
    while not dims.may_equal(a, b) and (i <= #from or k <= #to) do
      local x, y = dims.samples(a), dims.samples(b)
      local grows = i <= #from and (k > #to or not x or not y or x[3] < y[3])
      if grows then
        a, i = a * from[i], i + 1
      else
        b, k = b * to[k], k + 1
      end
    end
    if not dims.agree(a, b) then argument.fail "topi.reshape: the numbers of elements differ" end
    list[#list + 1] = { first, i - 1, second, k - 1 }
  end
  return list
end

-- The index in `from` of an index in `to`, where extents are expressions: axes that are not changed
-- keep their own, and only what is between them is divided.
local function reshaped_index(from, to)
  local list = regions(from, to)
  return function(index)
    local own = {}
    for _, at in ipairs(list) do
      local part = table.move(to, at[3], at[4], 1, {})
      local into = table.move(from, at[1], at[2], 1, {})
      local flat = dims.flatten(table.move(index, at[3], at[4], 1, {}), part)
      table.move(dims.unflatten(flat, into), 1, #into, at[1], own)
    end
    return own
  end
end

local function is_open(shape)
  for _, dim in ipairs(shape) do
    if type(dim) ~= "number" then return true end
  end
  return false
end

--- The same elements in another shape; one extent may be -1.
function topi.reshape(x, newshape)
  local shape = dims.of(dims.tensor(x, "topi.reshape"))
  dims.list(newshape, nil, "topi.reshape", "newshape")
  local out = complete(newshape, dims.product(shape), "topi.reshape")
  if is_open(shape) or is_open(out) then
    return moved(out, x, reshaped_index(shape, out), "T_reshape")
  end
  local function is_empty(index) return #index > 0 and dims.product(out) == 0 end
  return moved(out, x, function(index)
    if is_empty(index) then return dims.unflatten(0, shape) end
    return dims.unflatten(dims.flatten(index, out), shape)
  end, "T_reshape")
end

--- A matrix: the first axis, and all others.
function topi.flatten(x)
  local shape = dims.of(dims.tensor(x, "topi.flatten"))
  return topi.reshape(x, { shape[1] or 1, dims.product(shape, 2) })
end

--- Without axes of extent 1: those of `axis`, or all.
function topi.squeeze(x, axis)
  local shape, out = dims.of(dims.tensor(x, "topi.squeeze")), {}
  local set = axis ~= nil and dims.axis_set(axis, #shape, "topi.squeeze")
  for i, dim in ipairs(shape) do
    if set and set[i] and dim ~= 1 then
      argument.fail(("topi.squeeze: axis %d has the extent %s"):format(i - 1, dim))
    end
    if not (dim == 1 and (not set or set[i])) then out[#out + 1] = dim end
  end
  return topi.reshape(x, out)
end

--- With new axes of extent 1 before `axis`.
function topi.expand_dims(x, axis, num_newaxis)
  local shape = dims.of(dims.tensor(x, "topi.expand_dims"))
  local n = dims.integer(num_newaxis, 1, "topi.expand_dims", "num_newaxis")
  axis = dims.axis(axis, #shape + 1, "topi.expand_dims")
  local out = table.move(shape, 1, axis, 1, {})
  for _ = 1, n do out[#out + 1] = 1 end
  table.move(shape, axis + 1, #shape, #out + 1, out)
  return topi.reshape(x, out)
end

local function check_tensors(list, where)
  for i, x in ipairs(argument.table(list, where, "tensors")) do
    dims.tensor(x, where, "tensor " .. i)
  end
  if #list == 0 then argument.fail(where .. ": a tensor is needed") end
  return list
end

--- Tensors one after the other along an axis.
function topi.concatenate(list, axis)
  local shapes, ends, total = {}, {}, 0
  for i, x in ipairs(check_tensors(list, "topi.concatenate")) do shapes[i] = dims.of(x) end
  local at = dims.axis(axis or 0, #shapes[1], "topi.concatenate") + 1
  for i, shape in ipairs(shapes) do
    if #shape ~= #shapes[1] then argument.fail "topi.concatenate: tensors of several ranks" end
    total = total + shape[at]
    ends[i] = total
  end
  local out = table.move(shapes[1], 1, #shapes[1], 1, {})
  for i = 1, #out do
    for _, shape in ipairs(shapes) do
      if i ~= at and type(out[i]) ~= "number" then out[i] = shape[i] end
      if i ~= at then dims.agree(out[i], shape[i]) end
    end
  end
  out[at] = total
  return dims.compute(out, function(index)
    local result
    for i = #list, 1, -1 do
      local own = table.move(index, 1, #index, 1, {})
      if i > 1 then own[at] = index[at] - ends[i - 1] end
      local value = list[i][own]
      result = result and tir.if_then_else(tir.lt(index[at], ends[i]), value, result) or value
    end
    return result
  end, "T_concat", "injective")
end

--- Tensors one after the other along a new axis.
function topi.stack(list, axis)
  local rank = #dims.of(check_tensors(list, "topi.stack")[1])
  axis = dims.axis(axis or 0, rank + 1, "topi.stack")
  local wide = {}
  for i, x in ipairs(list) do wide[i] = topi.expand_dims(x, axis) end
  return topi.concatenate(wide, axis)
end

--- Parts along an axis: as many equal ones, or cut at indices. A list of tensors.
function topi.split(x, indices_or_sections, axis)
  local shape = dims.of(dims.tensor(x, "topi.split"))
  local at = dims.axis(axis or 0, #shape, "topi.split") + 1
  local cuts = indices_or_sections
  if type(cuts) ~= "number" then dims.list(cuts, nil, "topi.split", "indices_or_sections") end
  if type(cuts) == "number" then
    if math.type(cuts) ~= "integer" or cuts < 1 or shape[at] % cuts ~= 0 then
      argument.fail(("topi.split: %s is no number of equal parts of %s"):format(cuts, shape[at]))
    end
    local size = shape[at] // cuts
    cuts = {}
    for i = 1, shape[at] // size - 1 do cuts[i] = i * size end
  end
  local parts = {}
  for i = 0, #cuts do
    local first, last = cuts[i] or 0, cuts[i + 1] or shape[at]
    local out = table.move(shape, 1, #shape, 1, {})
    out[at] = last - first
    parts[i + 1] = moved(out, x, function(index)
      local own = table.move(index, 1, #index, 1, {})
      own[at] = index[at] + first
      return own
    end, "T_split")
  end
  return parts
end

-- The first element of an axis of n, the step, and the number of elements.
local function bounds(first, last, step, n)
  local low, high = 0, n
  if step < 0 then low, high = -1, n - 1 end
  local function clamped(value)
    if value < 0 then value = value + n end
    return math.max(low, math.min(high, value))
  end
  first, last = clamped(first), clamped(last)
  local distance = step > 0 and last - first or first - last
  return first, math.max(0, (distance + math.abs(step) - 1) // math.abs(step))
end

-- Where a slice of `count` elements of an axis of n begins: `first` is an integer, or an expression
-- of what is known when it runs, which is limited so that no memory besides the tensor is read.
local function open_start(first, n, step, count)
  if type(first) ~= "number" then
    first = operand.cast("int32", tir.Select(tir.lt(first, operand.const(0, first.dtype)),
      first + dims.size(n, first.dtype), first))
    return tir.max(tir.min(first, n - count), 0)
  end
  local least = step > 0 and 0 or -1
  if type(n) == "number" then
    first = first < 0 and first + n or first
    return math.max(least, math.min(first, step > 0 and n or n - 1))
  end
  if first < 0 then return tir.max(n + first, least) end
  return step > 0 and first or tir.min(first, n - 1)
end

--- A slice whose result has a known shape: it begins at `begin`, integers or expressions, and goes
-- by steps along `axes`.
function topi.dynamic_strided_slice(x, begin, strides, axes, out_shape)
  local where = "topi.dynamic_strided_slice"
  local shape, start, steps = dims.of(dims.tensor(x, where)), {}, {}
  for i, first in ipairs(begin) do
    local at = dims.axis(axes and axes[i] or i - 1, #shape, where) + 1
    steps[at] = strides and strides[i] or 1
    if type(first) ~= "number" and steps[at] ~= 1 then
      argument.fail(where .. ": a step other than 1 from a place that is not constant")
    end
    if steps[at] == 0 then argument.fail(where .. ": a step of 0") end
    start[at] = open_start(first, shape[at], steps[at], out_shape[at])
  end
  return moved(out_shape, x, function(index)
    local own = table.move(index, 1, #index, 1, {})
    for i, first in pairs(start) do
      if steps[i] ~= 1 then own[i] = index[i] * steps[i] end
      if first ~= 0 then own[i] = own[i] + first end
    end
    return own
  end, "T_dynamic_strided_slice")
end

--- Elements from `begin` to before `last` by steps, along `axes` (the first ones). With
-- slice_mode "size" `last` has sizes; -1 is the rest.
function topi.strided_slice(x, begin, last, strides, axes, slice_mode)
  local where = "topi.strided_slice"
  local shape = dims.of(dims.tensor(x, where))
  local out, first, steps = table.move(shape, 1, #shape, 1, {}), {}, {}
  dims.list(begin, nil, where, "begin")
  for what, list in pairs { last = last or {}, strides = strides or {}, axes = axes or {} } do
    dims.list(list, nil, where, what)
  end
  for i = 1, #begin do
    local at = axes and dims.axis(axes[i], #shape, where) + 1 or i
    local n, step = shape[at], strides and (strides[i] or strides[#strides]) or 1
    if type(n) ~= "number" then argument.fail(where .. ": the extent of an axis is not known") end
    local stop = last and last[i] or (step > 0 and n or -n - 1)
    if slice_mode == "size" then
      step = 1
      stop = stop < 0 and n or (begin[i] < 0 and begin[i] + n or begin[i]) + stop
    end
    if step == 0 then argument.fail(where .. ": a step of 0") end
    first[at], out[at] = bounds(begin[i], stop, step, n)
    steps[at] = step
  end
  return moved(out, x, function(index)
    local own = {}
    for i = 1, #shape do
      own[i] = index[i]
      if first[i] then own[i] = index[i] * steps[i] + first[i] end
    end
    return own
  end, "T_strided_slice")
end

--- Repeated along each axis.
function topi.tile(x, reps)
  local shape = dims.of(dims.tensor(x, "topi.tile"))
  dims.list(reps, nil, "topi.tile", "reps")
  local rank, out = math.max(#shape, #reps), {}
  for i = 0, rank - 1 do
    out[rank - i] = (shape[#shape - i] or 1) * (reps[#reps - i] or 1)
  end
  return moved(out, x, function(index)
    local own = {}
    for i, dim in ipairs(shape) do
      own[i] = dim == 1 and 0 or tir.indexmod(index[rank - #shape + i], dim)
    end
    return own
  end, "T_tile")
end

--- Each element `repeats` times along an axis.
function topi.repeat_(x, repeats, axis)
  local shape = dims.of(dims.tensor(x, "topi.repeat_"))
  local at = dims.axis(axis or 0, #shape, "topi.repeat_") + 1
  local out = table.move(shape, 1, #shape, 1, {})
  out[at] = shape[at] * dims.integer(repeats, nil, "topi.repeat_", "repeats")
  return moved(out, x, function(index)
    local own = table.move(index, 1, #index, 1, {})
    own[at] = tir.indexdiv(index[at], repeats)
    return own
  end, "T_repeat")
end

--- The elements of an axis in the opposite order.
function topi.flip(x, axis)
  local shape = dims.of(dims.tensor(x, "topi.flip"))
  local at = dims.axis(axis or 0, #shape, "topi.flip") + 1
  return moved(shape, x, function(index)
    local own = table.move(index, 1, #index, 1, {})
    own[at] = shape[at] - 1 - index[at]
    return own
  end, "T_reverse")
end

-- ------------------------------------------------------------------ by index

--- Slices along an axis by index; of the flat tensor when axis is nil. mode: "clip" (the default),
-- "wrap", "strict" (negative indices count from the end).
function topi.take(x, indices, axis, mode)
  local shape = dims.of(dims.tensor(x, "topi.take"))
  local picks = dims.of(dims.tensor(indices, "topi.take", "indices"))
  if axis == nil then
    x, shape, axis = topi.reshape(x, { dims.product(shape) }), { dims.product(shape) }, 0
  end
  local at = dims.axis(axis, #shape, "topi.take") + 1
  local out = table.move(shape, 1, at - 1, 1, {})
  table.move(picks, 1, #picks, at, out)
  table.move(shape, at + 1, #shape, #out + 1, out)
  return moved(out, x, function(index)
    local own = table.move(index, 1, at - 1, 1, {})
    local pick = indices[table.move(index, at, at + #picks - 1, 1, {})]
    own[at] = dims.position(pick, shape[at], mode or "clip")
    return table.move(index, at + #picks, #index, at + 1, own)
  end, "T_take")
end

--- Elements along an axis by index: the result has the shape of `indices`.
function topi.gather(x, axis, indices)
  local shape = dims.of(dims.tensor(x, "topi.gather"))
  local out = dims.of(dims.tensor(indices, "topi.gather", "indices"))
  local at = dims.axis(axis, #shape, "topi.gather") + 1
  if #out ~= #shape then argument.fail "topi.gather: indices of another rank" end
  return moved(out, x, function(index)
    local own = table.move(index, 1, #index, 1, {})
    own[at] = dims.position(indices[index], shape[at], "strict")
    return own
  end, "T_gather")
end

--- Slices by index vectors along the first axis of `indices`, as Relay has them.
function topi.gather_nd(x, indices)
  local shape = dims.of(dims.tensor(x, "topi.gather_nd"))
  local picks = dims.of(dims.tensor(indices, "topi.gather_nd", "indices"))
  local n = picks[1]
  if math.type(n) ~= "integer" or n > #shape then
    argument.fail "topi.gather_nd: index vectors longer than the rank"
  end
  local out = table.move(picks, 2, #picks, 1, {})
  table.move(shape, n + 1, #shape, #out + 1, out)
  return moved(out, x, function(index)
    local own = {}
    for i = 1, n do
      local pick = indices[table.move(index, 1, #picks - 1, 2, { i - 1 })]
      own[i] = dims.position(pick, shape[i], "strict")
    end
    return table.move(index, #picks, #index, n + 1, own)
  end, "T_gather_nd")
end

--- on_value at the index along a new axis of `depth`, else off_value.
function topi.one_hot(indices, on_value, off_value, depth, axis, dtype)
  local shape = dims.of(dims.tensor(indices, "topi.one_hot", "indices"))
  if axis == nil or axis == -1 then axis = #shape end
  local at = dims.axis(axis, #shape + 1, "topi.one_hot") + 1
  local out = table.move(shape, 1, at - 1, 1, {})
  out[at] = dims.integer(depth, nil, "topi.one_hot", "depth")
  argument.string(dtype, "topi.one_hot", "dtype")
  table.move(shape, at, #shape, at + 1, out)
  return dims.compute(out, function(index)
    local own = table.move(index, 1, at - 1, 1, {})
    table.move(index, at + 1, #index, at, own)
    local hot = tir.eq(operand.cast(indices.dtype, index[at]), indices[own])
    return tir.Select(hot, dims.expr(on_value, dtype), dims.expr(off_value, dtype))
  end, "T_one_hot", "injective")
end

--- start, start + step, ... before stop.
function topi.arange(start, stop, step, dtype)
  local where = "topi.arange"
  start, stop = dims.number(start, nil, where, "start"), dims.number(stop, nil, where, "stop")
  step, dtype = dims.number(step, 1, where, "step"), dtype or "float32"
  argument.string(dtype, where, "dtype")
  local count = math.tointeger(math.max(0, math.ceil((stop - start) / step)))
  if step == 0 or not count then argument.fail(where .. ": steps that do not end") end
  return dims.compute({ count }, function(index)
    return operand.cast(dtype, index[1]) * dims.expr(step, dtype) + dims.expr(start, dtype)
  end, "T_arange", "injective")
end

--- The upper or lower triangle of matrices: elements on the other side of diagonal k are 0.
function topi.trilu(x, k, upper)
  local shape = dims.of(dims.tensor(x, "topi.trilu"))
  if type(k) ~= "table" and type(k) ~= "userdata" then k = dims.integer(k, 0, "topi.trilu", "k") end
  if #shape < 2 then argument.fail "topi.trilu: a tensor of rank 2 or more is expected" end
  return dims.compute(shape, function(index)
    local distance = index[#index] - index[#index - 1]
    local keeps = upper and tir.ge(distance, k) or tir.le(distance, k)
    return tir.Select(keeps, x[index], operand.const(0, x.dtype))
  end, "T_trilu", "injective")
end

return topi
