--- random_network(seed): a model as networks are, made at random: convolutions with groups,
-- dilation and borders of several widths, products, norms, pools, reshapes, joined branches.
--
-- Returns the module, a shape of its operand and its dtype. The batch is 1 or 3, or a symbol.
-- Elements are float32, float64, float16, int32 or int8; products of integers are int32, limited.

local pl = require "perilune"
local seeded_random = require "spec.random.seeded"

local op = pl.op

local network = {} -- state of one generation: random, dtype, x, kept
network.__index = network

function network:below(n) return self.random(1, n) end
function network:pick(list) return list[self.random(1, #list)] end
function network:chance(p) return self.random() < p end

local function is_float(dtype) return dtype:find "^float" ~= nil end

-- Weights of the dtype, small so that sums of integers do not overflow.
function network:weight(shape, low, high)
  local size = 1
  for _, dim in ipairs(shape) do size = size * dim end
  local flat = {}
  for i = 1, size do
    local value = self.random()
    flat[i] = is_float(self.dtype) and (low or -0.5) + value * ((high or 0.5) - (low or -0.5))
      or math.floor(value * 5) - 2
  end
  local tensor = pl.tensor(flat, is_float(self.dtype) and "float64" or "int64")
  local node = op.cast(op.reshape(pl.const(tensor), { newshape = shape }), { dtype = self.dtype })
  return pl.const(pl.eval(node))
end

local function shape_of(node) return node.type.shape end

local layers = {}

-- Pads around two axes, each below the extent of the window.
function network:pads(window)
  local pads = {}
  for i = 1, 4 do pads[i] = self:below(math.max(1, window[(i - 1) % 2 + 1])) - 1 end
  return pads
end

-- The extent of a window that fits along an axis.
function network:window(extent, dilation)
  return math.min(self:below(3), (extent - 1) // dilation + 1)
end

function layers.conv(self)
  local shape = shape_of(self.x)
  local groups = self:pick { 1, 1, 2, shape[2] }
  if shape[2] % groups ~= 0 then groups = 1 end
  local dilation = { self:below(2), self:below(2) }
  local window = { self:window(shape[3], dilation[1]), self:window(shape[4], dilation[2]) }
  local out = groups * self:pick { 1, 2, 3, 8 }
  if groups == 1 then out = self:pick { 1, 3, 8, 16, 17 } end
  local weight = self:weight { out, shape[2] // groups, window[1], window[2] }
  local integers = not is_float(self.dtype)
  self.x = op.nn.conv2d(self.x, weight, { strides = { self:below(2), self:below(2) },
    padding = self:pads(window), dilation = dilation, groups = groups, channels = out,
    kernel_size = window, out_dtype = integers and "int32" or nil })
  if integers then self:narrow() end
end

-- Integers back in the range of the dtype.
function network:narrow()
  self.x = op.cast(op.clip(self.x, { a_min = -40.0, a_max = 40.0 }), { dtype = self.dtype })
end

function layers.conv_transpose(self)
  if not is_float(self.dtype) then return layers.conv(self) end
  local shape = shape_of(self.x)
  if shape[3] * shape[4] > 200 then return layers.conv(self) end
  local window = { self:below(3), self:below(3) }
  local out = self:pick { 1, 3, 8 }
  self.x = op.nn.conv2d_transpose(self.x, self:weight { shape[2], out, window[1], window[2] },
    { strides = { self:below(2), self:below(2) }, channels = out, kernel_size = window })
end

function layers.bias(self)
  self.x = op.nn.bias_add(self.x, self:weight { shape_of(self.x)[2] }, { axis = 1 })
end

function layers.activation(self)
  if not is_float(self.dtype) then
    self.x = op.nn.relu(self.x)
    return
  end
  local name = self:pick { "relu", "leaky_relu", "hard_swish", "silu", "gelu", "elu", "sigmoid",
    "clip", "tanh" }
  if name == "clip" then
    self.x = op.clip(self.x, { a_min = 0.0, a_max = 6.0 })
  elseif name == "sigmoid" or name == "tanh" then
    self.x = op[name](self.x)
  else
    self.x = op.nn[name](self.x)
  end
end

function layers.norm(self)
  if not is_float(self.dtype) then return layers.bias(self) end
  local channels = shape_of(self.x)[2]
  local function vector(low) return self:weight({ channels }, low or 0.5, 1.5) end
  local kind = self:pick { "batch", "instance", "group", "lrn" }
  if kind == "batch" then
    self.x = op.nn.batch_norm(self.x, vector(), vector(-0.5), vector(-0.5), vector())[1]
  elseif kind == "instance" then
    self.x = op.nn.instance_norm(self.x, vector(), vector(-0.5), { epsilon = 1e-2 })
  elseif kind == "group" then
    local groups = channels % 2 == 0 and 2 or 1
    self.x = op.nn.group_norm(self.x, vector(), vector(-0.5), { num_groups = groups,
      epsilon = 1e-2 })
  else
    self.x = op.nn.lrn(self.x, { size = 3 })
  end
end

function layers.pool(self)
  local shape = shape_of(self.x)
  local window = { self:window(shape[3], 1), self:window(shape[4], 1) }
  local strides = { self:below(2), self:below(2) }
  -- A last window that would begin behind the image is refused.
  local ceil = window[1] >= strides[1] and window[2] >= strides[2] and self:chance(0.3)
  local attrs = { pool_size = window, strides = strides, ceil_mode = ceil,
    padding = ceil and { 0, 0, 0, 0 } or self:pads(window) }
  if is_float(self.dtype) and self:chance(0.5) then
    attrs.count_include_pad = self:chance(0.5)
    self.x = op.nn.avg_pool2d(self.x, attrs)
  else
    self.x = op.nn.max_pool2d(self.x, attrs)
  end
end

-- The sum with an earlier value of the shape, or both as channels.
function layers.join(self)
  local shape = table.concat(shape_of(self.x), ",")
  for _, other in ipairs(self.kept) do
    if table.concat(shape_of(other), ",") == shape then
      if self:chance(0.5) then
        self.x = op.add(self.x, other)
      else
        self.x = op.concatenate(pl.ir.Tuple { self.x, other }, { axis = 1 })
      end
      return
    end
  end
  self.kept[#self.kept + 1] = self.x
end

function layers.move(self)
  local shape = shape_of(self.x)
  local kind = self:pick { "pad", "slice", "transpose", "resize", "shuffle" }
  if kind == "pad" then
    self.x = op.nn.pad(self.x, { pad_width = { { 0, 0 }, { 0, 0 }, { self:below(3) - 1, 1 },
      { 0, self:below(3) - 1 } } })
  elseif kind == "slice" and shape[3] > 2 then
    self.x = op.strided_slice(self.x, { begin = { 1 }, ["end"] = { shape[3] },
      strides = { self:below(2) }, axes = { 2 } })
  elseif kind == "transpose" then
    self.x = op.transpose(self.x, { axes = { 0, 1, 3, 2 } })
  elseif kind == "resize" and self.dtype:find "^float[13]" and shape[3] * shape[4] < 100 then
    -- Loops have positions in float32, as in TVM.
    self.x = op.image.resize2d(self.x, { size = { shape[3] * 2, shape[4] + 1 },
      method = "linear" })
  elseif shape[2] % 2 == 0 and math.type(shape[1]) == "integer" then
    local split = op.reshape(self.x, { newshape = { shape[1], 2, shape[2] // 2, shape[3],
      shape[4] } })
    self.x = op.reshape(op.transpose(split, { axes = { 0, 2, 1, 3, 4 } }), { newshape = shape })
  end
end

local spatial = { "conv", "conv", "conv", "bias", "activation", "activation", "norm", "pool",
  "join", "move", "conv_transpose" }

-- A matrix of the images, and products.
local function head(self)
  local shape = shape_of(self.x)
  if is_float(self.dtype) and self:chance(0.5) then
    self.x = op.nn.global_avg_pool2d(self.x)
  end
  self.x = op.nn.batch_flatten(self.x)
  local columns = shape_of(self.x)[2]
  if math.type(columns) ~= "integer" or columns > 4000 then return shape end
  local out = self:pick { 1, 5, 10, 16, 33 }
  local integers = not is_float(self.dtype)
  self.x = op.nn.dense(self.x, self:weight { out, columns }, { units = out,
    out_dtype = integers and "int32" or nil })
  if integers then return end
  if self:chance(0.5) then self.x = op.nn.bias_add(self.x, self:weight { out }, { axis = 1 }) end
  local kind = self:pick { "softmax", "log_softmax", "layer_norm", "relu", "sum" }
  if kind == "layer_norm" then
    self.x = op.nn.layer_norm(self.x, self:weight({ out }, 0.5, 1.5), self:weight { out },
      { epsilon = 1e-2 })
  elseif kind == "sum" then
    self.x = op.sum(self.x, { axis = { 1 }, keepdims = true })
  else
    self.x = op.nn[kind](self.x)
  end
end

return function(seed)
  local random = seeded_random(seed)
  local self = setmetatable({ random = random, kept = {} }, network)
  self.dtype = self:pick { "float32", "float32", "float32", "float64", "float16", "int32", "int8" }
  local batch = self:pick { "1", "3", "n" }
  local shape = { batch, self:pick { 1, 3, 4, 8, 16, 18 }, self:below(12) + 1, self:below(12) + 1 }
  local x = pl.var("x", ("Tensor[(%s), %s]"):format(table.concat(shape, ", "), self.dtype))
  self.x = x
  for _ = 1, self:below(8) do layers[self:pick(spatial)](self) end
  if self:chance(0.6) then head(self) end
  local results = { self.x }
  if #self.kept > 0 and self:chance(0.3) then results[2] = op.nn.relu(self.kept[1]) end
  local body = #results > 1 and pl.ir.Tuple(results) or self.x
  shape[1] = batch == "n" and 2 or math.tointeger(tonumber(batch))
  return pl.module { main = pl.func({ x }, body) }, shape, self.dtype
end
