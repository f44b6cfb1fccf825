--- Legal calls of operators: which operands and attributes give a result of a wanted
-- dtype and shape.
--
-- A row is called as row(g, want, known, fixed): the generator, { dtype =, shape = }, the
-- operands that are known by number, and the attributes that a pattern fixes by name. It
-- gives { operands = { { dtype =, shape = }, ... }, attrs = { name = value }, parameters =
-- { name = value } }: parameters are attributes that may be operands as well. Operators
-- without a row take operands of the wanted type, or ones that broadcast to it. Whether
-- the call is legal is for type inference to say.

local core = require "perilune.core"
local shapes = require "perilune.rule.check.shapes"
local values = require "perilune.rule.check.values"
core.internal()

local operators = {}
local rows = require "perilune.rule.check.network_operators"

local function like(want, shape) return { dtype = want.dtype, shape = shape or want.shape } end

-- Axes as attributes count from 0, and may count from behind.
local function axis_of(g, axis, rank)
  return g.choices:chance(40) and axis - 1 - rank or axis - 1
end

-- ------------------------------------------------------------------- elements

local function broadcast(g, want, count, dtype)
  local operands = {}
  for i, shape in ipairs(shapes.together(g.choices, want.shape, count)) do
    operands[i] = { dtype = dtype or want.dtype, shape = shape }
  end
  return { operands = operands, attrs = {} }
end

local variadic = { maximum = true, minimum = true, add_n = true, mean_n = true }

for name in pairs(variadic) do
  rows[name] = function(g, want, _, _, count)
    return broadcast(g, want, count or 1 + g.choices:below(3))
  end
end

for _, name in ipairs { "equal", "not_equal", "greater", "greater_equal", "less", "less_equal" } do
  rows[name] = function(g, want) return broadcast(g, want, 2, g:number_dtype()) end
end

for _, name in ipairs { "logical_and", "logical_or", "logical_xor" } do
  rows[name] = function(g, want) return broadcast(g, want, 2, "bool") end
end

function rows.logical_not(_, want)
  return { operands = { { dtype = "bool", shape = want.shape } } }
end

for _, name in ipairs { "isnan", "isinf", "isfinite" } do
  rows[name] = function(g, want)
    return { operands = { { dtype = g:float_dtype(), shape = want.shape } } }
  end
end

function rows.where(g, want)
  local row = broadcast(g, want, 3)
  row.operands[1].dtype = "bool"
  return row
end

function rows.power(g, want)
  local row = broadcast(g, want, 2)
  if g.choices:chance(15) then row.operands[2].dtype = g:number_dtype() end
  return row
end

function rows.cast(g, want, known, fixed)
  local dtype = fixed.dtype or want.dtype
  local from = known[1] and known[1].dtype or g:any_dtype(dtype)
  return { operands = { { dtype = from, shape = want.shape } }, attrs = { dtype = dtype } }
end

function rows.cast_like(g, want)
  return { operands = { { dtype = g:any_dtype(want.dtype), shape = want.shape },
    { dtype = want.dtype, shape = shapes.random(g.choices) } } }
end

local limits = { 0, 1, -1, 6, 3, -2, 255, 127, -128, 100 }
local bounds = { int8 = { -128, 127 }, uint8 = { 0, 255 } }

local function limit(g, dtype, which)
  if g.choices:chance(15) then return nil end
  if bounds[dtype] and g.choices:chance(40) then return bounds[dtype][which] end
  local value = g.choices:pick(limits)
  if dtype:find "^uint" and value < 0 then value = 0 end
  -- No element could be beyond such a limit; one that is not reached is none.
  if dtype == "int8" and (which == 1 and value > 127 or which == 2 and value < -128) then
    value = 127
  end
  return value
end

function rows.clip(g, want, _, fixed)
  return { operands = { want }, parameters = { a_min = fixed.a_min or limit(g, want.dtype, 1),
    a_max = fixed.a_max or limit(g, want.dtype, 2) } }
end

-- ------------------------------------------------------------ order is kept

-- A shape as reshape takes it: with 0 for an extent of the operand's, or one -1.
local function shape_codes(g, to, from)
  local codes, c = shapes.copy(to), g.choices
  if values.count_of(to) == 0 then return codes end
  for i = 1, #to do
    if to[i] == from[i] and c:chance(15) then codes[i] = 0 end
  end
  if #to > 0 and c:chance(40) then codes[c:below(#to) + 1] = -1 end
  return codes
end

local function result_shape(known, want)
  local from = known[1] and known[1].shape
  if not from or values.count_of(from) == values.count_of(want.shape) then return want.shape end
end

function rows.reshape(g, want, known, fixed)
  local to = result_shape(known, want)
  local from = known[1] and known[1].shape or shapes.reshaped(g.choices, want.shape)
  to = to or shapes.reshaped(g.choices, from)
  local zeros = values.count_of(to) == 0
  return { operands = { like(want, from) }, attrs = { allowzero = zeros and 1 or nil },
    parameters = { newshape = fixed.newshape or shape_codes(g, to, from) } }
end

function rows.flatten(g, want, known)
  local c = g.choices
  if known[1] then
    return { operands = { want }, attrs = { axis = c:below(#known[1].shape + 1) } }
  end
  if #want.shape ~= 2 then g:reject() end
  local from = { want.shape[1] }
  if c:chance(50) then from = { shapes.factors(c, want.shape[1]) } end
  local axis = #from
  from[axis + 1], from[axis + 2] = shapes.factors(c, want.shape[2])
  return { operands = { like(want, from) }, attrs = { axis = axis } }
end

rows["nn.batch_flatten"] = function(g, want)
  if #want.shape ~= 2 then g:reject() end
  local a, b = shapes.factors(g.choices, want.shape[2])
  return { operands = { like(want, { want.shape[1], a, b }) } }
end

local function unit_axes(shape)
  local axes = {}
  for i, dim in ipairs(shape) do if dim == 1 then axes[#axes + 1] = i end end
  return axes
end

-- Some of them, at least one, as axes from 0.
local function some_axes(g, axes, rank)
  local list = {}
  for i, axis in ipairs(axes) do
    if g.choices:chance(60) or i == #axes and #list == 0 then
      list[#list + 1] = axis_of(g, axis, rank)
    end
  end
  return list
end

function rows.squeeze(g, want, known)
  local c = g.choices
  if known[1] then
    local axes = unit_axes(known[1].shape)
    return { operands = { want }, parameters = { axes = some_axes(g, axes, #known[1].shape) } }
  end
  local from, added = shapes.copy(want.shape), {}
  for _ = 0, c:below(2) do
    local axis = c:below(#from + 1) + 1
    table.insert(from, axis, 1)
    for i, other in ipairs(added) do if other >= axis then added[i] = other + 1 end end
    added[#added + 1] = axis
  end
  table.sort(added)
  local axes = {}
  for i, axis in ipairs(added) do axes[i] = axis_of(g, axis, #from) end
  local all = #unit_axes(from) == #added and c:chance(25)
  return { operands = { like(want, from) }, parameters = { axes = not all and axes or nil } }
end

function rows.expand_dims(g, want, known)
  local rank, c = #want.shape, g.choices
  if known[1] then
    rank = #known[1].shape + 1
    return { operands = { want }, parameters = { axes = { axis_of(g, c:below(rank) + 1, rank) } } }
  end
  local axes = some_axes(g, unit_axes(want.shape), rank)
  if #axes == 0 then g:reject() end
  local gone, from = {}, {}
  for _, axis in ipairs(axes) do gone[axis % rank + 1] = true end
  for i, dim in ipairs(want.shape) do if not gone[i] then from[#from + 1] = dim end end
  return { operands = { like(want, from) }, parameters = { axes = axes } }
end

-- ------------------------------------------------------------------- movement

function rows.transpose(g, want, known, fixed)
  local rank = known[1] and #known[1].shape or #want.shape
  local axes = fixed.axes
  if axes and #axes ~= rank then g:reject() end
  if not axes then
    axes = g.choices:permutation(rank)
    for i, axis in ipairs(axes) do axes[i] = axis_of(g, axis, rank) end
  end
  local from = {}
  for i, axis in ipairs(axes) do from[axis % rank + 1] = want.shape[i] or 1 end
  return { operands = { like(want, from) }, attrs = { axes = axes } }
end

-- `extent` as a sum of `n`.
local function parts_of(g, extent, n)
  local list = {}
  for i = 1, n - 1 do
    list[i] = g.choices:below(extent + 1)
    extent = extent - list[i]
  end
  list[n] = extent
  return list
end

function rows.concatenate(g, want, _, fixed, count)
  local rank, c = #want.shape, g.choices
  if rank == 0 then g:reject() end
  local axis = fixed.axis and fixed.axis % rank + 1 or c:below(rank) + 1
  local operands = {}
  for i, part in ipairs(parts_of(g, want.shape[axis], count or 1 + c:below(3))) do
    operands[i] = like(want, shapes.copy(want.shape))
    operands[i].shape[axis] = part
  end
  return { operands = operands, attrs = { axis = fixed.axis or axis_of(g, axis, rank) } }
end

function rows.split(g, want, known, _, _, results)
  local c, shape = g.choices, known[1] and known[1].shape or shapes.copy(want.shape)
  if #shape == 0 then g:reject() end
  local axis = c:below(#shape) + 1
  local n = results and results + c:below(3) or 1
  if not known[1] and n > 1 then shape[axis] = shape[axis] + c:below(4) end
  local parts = parts_of(g, shape[axis], n)
  return { operands = { like(want, shape) }, parameters = { split = parts },
    attrs = { axis = axis - 1, n_results = results and n or nil } }
end

function rows.strided_slice(g, want)
  local c, from = g.choices, shapes.copy(want.shape)
  local starts, ends, axes, strides = {}, {}, {}, {}
  for i, extent in ipairs(want.shape) do
    if c:chance(70) then
      local before, after = c:below(2), c:below(2)
      local step = extent > 1 and c:chance(20) and 2 or 1
      from[i] = before + (extent > 0 and (extent - 1) * step + 1 or 0) + after
      starts[#starts + 1] = before
      ends[#ends + 1] = after == 0 and c:chance(30) and math.maxinteger or from[i] - after
      axes[#axes + 1], strides[#strides + 1] = axis_of(g, i, #want.shape), step
    end
  end
  return { operands = { like(want, from) }, parameters = { starts = starts, ends = ends,
    axes = axes, strides = strides } }
end

rows["nn.pad"] = function(g, want)
  local c, from, pads = g.choices, shapes.copy(want.shape), {}
  local rank = #from
  local none = c:chance(35)
  for i, extent in ipairs(from) do
    local before = none and 0 or math.min(c:below(3), extent)
    local after = none and 0 or math.min(c:below(2), extent - before)
    from[i], pads[i], pads[rank + i] = extent - before - after, before, after
  end
  return { operands = { like(want, from) }, parameters = { pads = pads },
    attrs = { pad_mode = c:pick { "constant", "constant", "edge", "reflect" } } }
end

function rows.broadcast_to(g, want)
  local c = g.choices
  local from = shapes.narrower(c, want.shape)
  local shape, offset = shapes.copy(want.shape), #want.shape - #from
  for i in ipairs(shape) do
    if i > offset and from[i - offset] == shape[i] and c:chance(30) then shape[i] = 1 end
  end
  if c:chance(25) then shape = shapes.copy(from); for i in ipairs(shape) do shape[i] = 1 end end
  return { operands = { like(want, from) }, parameters = { shape = shape } }
end

function rows.tile(g, want)
  local from, reps, once = shapes.copy(want.shape), {}, g.choices:chance(40)
  for i, extent in ipairs(from) do
    if once then reps[i] = 1 else reps[i], from[i] = shapes.factors(g.choices, extent) end
  end
  return { operands = { like(want, from) }, parameters = { reps = reps } }
end

-- Positions of an axis of that extent: some, or all in order.
local function positions(g, shape, extent)
  local list, c, count = {}, g.choices, values.count_of(shape)
  local all = count == extent and c:chance(60)
  for i = 1, count do
    list[i] = all and i - 1 or c:below(extent)
    if c:chance(15) then list[i] = list[i] - extent end
  end
  return list
end

function rows.take(g, want, known, fixed)
  local c = g.choices
  local shape = known[1] and known[1].shape or want.shape
  local index_rank = known[1] and c:below(2) or math.min(c:below(3), #shape)
  local from, index = shapes.copy(shape), {}
  local axis
  if known[1] then
    if #shape == 0 then g:reject() end
    axis = fixed.axis and fixed.axis % #shape + 1 or c:below(#shape) + 1
    if index_rank == 1 then index[1] = 2 end
  else
    axis = c:below(#shape - index_rank + 1) + 1
    for i = 1, index_rank do index[i] = table.remove(from, axis) or i end
    table.insert(from, axis, index_rank == 1 and c:chance(50) and index[1] or 1 + c:below(3))
  end
  if from[axis] == 0 and values.count_of(index) > 0 then g:reject() end
  return { operands = { like(want, from),
      { dtype = "int64", shape = index, value = positions(g, index, from[axis]) } },
    attrs = { axis = fixed.axis or axis_of(g, axis, #from) } }
end

-- --------------------------------------------------------- shapes and fillings

function rows.zeros(_, want)
  return { operands = {}, attrs = { shape = want.shape, dtype = want.dtype } }
end
rows.ones = rows.zeros

function rows.full(_, want)
  return { operands = { like(want, {}) }, attrs = { shape = want.shape, dtype = want.dtype } }
end

function rows.full_like(_, want) return { operands = { want, like(want, {}) } } end

function rows.reshape_like(g, want)
  return { operands = { like(want, shapes.reshaped(g.choices, want.shape)),
    { dtype = g:any_dtype(want.dtype), shape = want.shape } } }
end

function rows.broadcast_to_like(g, want)
  return { operands = { like(want, shapes.narrower(g.choices, want.shape)),
    { dtype = g:any_dtype(want.dtype), shape = want.shape } } }
end

function rows.collapse_sum_like(g, want)
  local from = shapes.copy(want.shape)
  for i, dim in ipairs(from) do
    if dim == 1 then from[i] = shapes.extent(g.choices) end
  end
  if g.choices:chance(30) then table.insert(from, 1, shapes.extent(g.choices)) end
  return { operands = { like(want, from), like(want, want.shape) } }
end

-- ------------------------------------------------------------------ reductions

-- What is reduced to the wanted shape, and over which axes.
local function expanded(g, want, keepdims)
  local c, from, axes = g.choices, shapes.copy(want.shape), {}
  local single = c:chance(30)
  local function extent() return single and 1 or shapes.extent(c) end
  if keepdims then
    for i, dim in ipairs(from) do
      if dim == 1 and c:chance(70) then
        from[i], axes[#axes + 1] = extent(), i
      end
    end
    return from, axes
  end
  for _ = 0, c:below(2) do
    local axis = c:below(#from + 1) + 1
    table.insert(from, axis, extent())
    for i, other in ipairs(axes) do if other >= axis then axes[i] = other + 1 end end
    axes[#axes + 1] = axis
  end
  table.sort(axes)
  return from, axes
end

-- Axes of an operand that is known: the last one, or some.
local function chosen_axes(g, rank)
  if rank == 0 then return {} end
  if g.choices:chance(50) then return { rank } end
  local axes = {}
  for i = 1, rank do if g.choices:chance(50) then axes[#axes + 1] = i end end
  return #axes > 0 and axes or { rank }
end

local function reduce(g, want, known, fixed)
  local c = g.choices
  local keepdims = fixed.keepdims
  if keepdims == nil then keepdims = c:below(2) end
  local from, axes
  if known[1] then
    from = known[1].shape
    axes = chosen_axes(g, #from)
  else
    from, axes = expanded(g, want, keepdims == 1)
  end
  for i, axis in ipairs(axes) do axes[i] = axis_of(g, axis, #from) end
  if #axes == #from and c:chance(fixed.is_bound.axes and 5 or 20) then axes = nil end
  if axes and #axes == 0 and not fixed.axes then g:reject() end
  return { operands = { like(want, from) }, attrs = { keepdims = keepdims },
    parameters = { axes = fixed.axes or axes } }
end

for _, name in ipairs { "sum", "mean", "max", "min", "prod", "reduce_l1", "reduce_l2",
  "reduce_log_sum", "logsumexp", "reduce_sum_square" } do
  rows[name] = reduce
end

local function along_axis(g, want, known, fixed)
  local rank = #(known[1] and known[1].shape or want.shape)
  if rank == 0 then g:reject() end
  local axis = fixed.axis or axis_of(g, g.choices:chance(40) and rank
    or g.choices:below(rank) + 1, rank)
  return { operands = { want }, attrs = { axis = axis } }
end

for _, name in ipairs { "nn.softmax", "nn.log_softmax", "nn.hardmax" } do
  rows[name] = along_axis
end

-- -------------------------------------------------------------------- products

rows["nn.matmul"] = function(g, want, known)
  local c, shape = g.choices, want.shape
  local k = known[1] and known[1].shape[#known[1].shape] or shapes.extent(c)
  if #shape < 2 then g:reject() end
  local a, b = shapes.copy(shape), shapes.copy(shape)
  a[#a], b[#b - 1] = k, k
  if c:chance(30) then table.move(b, #b - 1, #b, 1, b); for i = #b, 3, -1 do b[i] = nil end end
  return { operands = { like(want, a), like(want, b) } }
end

rows["nn.gemm"] = function(g, want, _, fixed)
  local c, shape = g.choices, want.shape
  if #shape ~= 2 then g:reject() end
  local m, n, k = shape[1], shape[2], shapes.extent(c)
  local trans_a = fixed.transA or c:below(2)
  local trans_b = fixed.transB or c:below(2)
  local bias = c:pick { { n }, { m, n }, {}, { 1, n } }
  return { operands = { like(want, trans_a == 1 and { k, m } or { m, k }),
      like(want, trans_b == 1 and { n, k } or { k, n }), like(want, bias) },
    attrs = { transA = trans_a, transB = trans_b } }
end

-- ---------------------------------------------------------------------- others

-- The call with an operand as it is, in inference.
rows["nn.dropout"] = function(g, want, _, _, _, results)
  return { operands = { want }, attrs = { n_results = results or g.choices:below(2) + 1 } }
end

-- Directions, number of directions.
local directions = { { "forward", 1 }, { "reverse", 1 }, { "bidirectional", 2 } }

-- ONNX's RNN, GRU and LSTM: the sequence, weights, recurrent weights, biases, lengths, and
-- one or two initial states.
local function recurrent(gates, states)
  return function(g, want, _, _, _, results)
    local c = g.choices
    local steps, batch, input, hidden = 1 + c:below(2), 1 + c:below(2), 1 + c:below(2),
      1 + c:below(2)
    local direction = c:pick(directions)
    local n = direction[2]
    local operands = { like(want, { steps, batch, input }),
      like(want, { n, gates * hidden, input }), like(want, { n, gates * hidden, hidden }),
      c:chance(50) and like(want, { n, 2 * gates * hidden }), false }
    for i = 1, states do
      operands[5 + i] = c:chance(80) and like(want, { n, batch, hidden })
      if operands[5 + i] and c:chance(70) then operands[5 + i].zeros = true end
    end
    return { operands = operands, attrs = { hidden_size = hidden, direction = direction[1],
      n_results = results or c:below(states + 1) + 1 } }
  end
end

rows.rnn, rows.gru, rows.lstm = recurrent(1, 1), recurrent(3, 1), recurrent(4, 2)

-- ------------------------------------------------------------------- the others

local numbers = { 0, 1, 0.5, 2, -1, 0.25 }

-- A value for an attribute that a pattern binds and no row knows of.
function operators.value(g, kind)
  if kind == "float" then return g.choices:pick(numbers) end
  if kind == "int" then return g.choices:below(3) end
end

--- The kinds of an operator's attributes by name.
function operators.kinds(op)
  local kinds = {}
  for name, kind in op.attrs:gmatch "(%S+):(%a+)" do kinds[name:match "[^>]*$"] = kind end
  return kinds
end

local function default(g, want, _, _, count, op)
  if op.traits.broadcast then return broadcast(g, want, math.max(op.min_args, count or 0)) end
  local operands = {}
  for i = 1, math.max(op.min_args, count or 0) do operands[i] = want end
  return { operands = operands }
end

--- Operands and attributes for a call of `op`; see above. `count`: how many operands a
-- pattern takes, nil: any number; `results`: how many results it needs, nil: one.
function operators.plan(g, op, want, known, fixed, count, results)
  local row = rows[op.name]
  local plan
  if row then
    plan = row(g, want, known, fixed, count, results)
  else
    plan = default(g, want, known, fixed, count, op)
  end
  plan.attrs, plan.parameters = plan.attrs or {}, plan.parameters or {}
  return plan
end

return operators
