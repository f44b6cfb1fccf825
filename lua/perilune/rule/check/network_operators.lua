--- Legal calls of operators of neural networks; rows as in operators.lua.

require "perilune.core".internal()
local shapes = require "perilune.rule.check.shapes"

local rows = {}

local function like(want, shape) return { dtype = want.dtype, shape = shape or want.shape } end

-- ---------------------------------------------------------------- convolutions

-- The shape of the data operand: the known one, or one that gives the wanted extents
-- for windows of that size without padding.
local function image(g, want, known, windows, strides, channels)
  if known[1] then return known[1].shape end
  local shape = { want.shape[1], channels }
  for i = 3, #want.shape do
    local extent = want.shape[i]
    if extent == 0 then g:reject() end
    shape[i] = (extent - 1) * strides[i - 2] + windows[i - 2]
  end
  return shape
end

local function spatial(g, n, most)
  local list = {}
  for i = 1, n do list[i] = 1 + g.choices:below(most) end
  return list
end

local function check_rank(g, want, known)
  local rank = #(known[1] and known[1].shape or want.shape)
  if rank < 3 then g:reject() end
  return rank
end

local function convolution(transposed)
  return function(g, want, known, _, count)
    local c = g.choices
    local rank = check_rank(g, want, known)
    local has_bias = count == 3 or count ~= 2 and c:chance(50)
    local windows, strides = spatial(g, rank - 2, 2), spatial(g, rank - 2, transposed and 1 or 2)
    local inputs = known[1] and known[1].shape[2] or 1 + c:below(3)
    local outputs = known[1] and 1 + c:below(3) or want.shape[2]
    local x = image(g, want, known, windows, strides, inputs)
    if transposed and not known[1] then
      for i = 3, rank do x[i] = want.shape[i] - windows[i - 2] + 1 end
    end
    local w = transposed and { inputs, outputs } or { outputs, inputs }
    table.move(windows, 1, #windows, 3, w)
    return { operands = { like(want, x), like(want, w), has_bias and like(want, { outputs }) },
      attrs = { strides = strides } }
  end
end

rows["nn.conv"], rows["nn.conv_transpose"] = convolution(false), convolution(true)

local function pool(g, want, known)
  local rank = check_rank(g, want, known)
  local windows, strides = spatial(g, rank - 2, 2), spatial(g, rank - 2, 2)
  local x = image(g, want, known, windows, strides, want.shape[2])
  return { operands = { like(want, x) }, attrs = { kernel_shape = windows, strides = strides } }
end

for _, name in ipairs { "nn.max_pool", "nn.avg_pool", "nn.lp_pool" } do rows[name] = pool end

local function global_pool(g, want, known)
  local rank = check_rank(g, want, known)
  local shape = known[1] and known[1].shape or shapes.copy(want.shape)
  for i = 3, known[1] and 2 or rank do shape[i] = 1 + g.choices:below(3) end
  return { operands = { like(want, shape) } }
end

for _, name in ipairs { "nn.global_avg_pool", "nn.global_max_pool" } do rows[name] = global_pool end

-- --------------------------------------------------------------- normalisation

rows["nn.batch_norm"] = function(g, want, known)
  local shape = known[1] and known[1].shape or want.shape
  if #shape < 2 then g:reject() end
  local channels = { shape[2] }
  local variance = like(want, channels)
  variance.positive = true
  return { operands = { like(want, shape), like(want, channels), like(want, channels),
    like(want, channels), variance } }
end

local function over_last_axis(with_bias)
  return function(g, want, known, _, count)
    local shape = known[1] and known[1].shape or want.shape
    if #shape == 0 then g:reject() end
    local last = { shape[#shape] }
    return { operands = { like(want, shape), like(want, last),
      with_bias and (count == 3 or g.choices:chance(60)) and like(want, last) or nil } }
  end
end

rows["nn.layer_norm"], rows["nn.rms_norm"] = over_last_axis(true), over_last_axis(false)

-- ------------------------------------------------------------ products, biases

rows["nn.dense"] = function(g, want, known)
  local shape = known[1] and known[1].shape or shapes.copy(want.shape)
  if #shape == 0 or not known[1] and #want.shape == 0 then g:reject() end
  local k = known[1] and shape[#shape] or shapes.extent(g.choices)
  local units = want.shape[#want.shape] or 1
  if not known[1] then shape[#shape] = k end
  return { operands = { like(want, shape), like(want, { units, k }) } }
end

rows["nn.bias_add"] = function(g, want, known)
  local shape = known[1] and known[1].shape or want.shape
  if #shape == 0 then g:reject() end
  local axis = g.choices:below(#shape)
  return { operands = { like(want, shape), like(want, { shape[axis + 1] }) },
    attrs = { axis = axis } }
end

rows["nn.batch_matmul"] = function(g, want)
  if #want.shape ~= 3 then g:reject() end
  local b, m, n = want.shape[1], want.shape[2], want.shape[3]
  local k = shapes.extent(g.choices)
  return { operands = { like(want, { b, m, k }), like(want, { b, n, k }) } }
end

-- ---------------------------------------------------------------- along an axis

local function arg_extreme(g, want, known, fixed)
  local c = g.choices
  local from = known[1] and known[1].shape or shapes.copy(want.shape)
  local keepdims = fixed.keepdims or c:below(2)
  local axis
  if known[1] or keepdims == 1 then
    if #from == 0 then g:reject() end
    axis = c:below(#from) + 1
    if not known[1] then from[axis] = 1 + c:below(3) end
  else
    axis = c:below(#from + 1) + 1
    table.insert(from, axis, 1 + c:below(3))
  end
  return { operands = { { dtype = g:number_dtype(), shape = from } },
    attrs = { axis = fixed.axis or axis - 1, keepdims = keepdims } }
end

rows.argmax, rows.argmin = arg_extreme, arg_extreme

local function running(g, want, known, fixed)
  local rank = #(known[1] and known[1].shape or want.shape)
  if rank == 0 then g:reject() end
  return { operands = { want }, parameters = { axis = fixed.axis or g.choices:below(rank) },
    attrs = { exclusive = fixed.exclusive or g.choices:below(2),
      reverse = fixed.reverse or g.choices:below(2) } }
end

rows.cumsum, rows.cumprod = running, running

function rows.shape_of(g)
  return { operands = { { dtype = g:any_dtype "float32", shape = shapes.random(g.choices) } } }
end

return rows
