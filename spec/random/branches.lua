--- random_branches(seed): a program of what graph substitution works on, made at random: products
-- of matrices and convolutions that share operands, separable ones, chains and sums of them,
-- averages, scalings, activations, concatenations and halves. Attributes are given as their
-- defaults, or left out.
--
-- Returns the module. Elements are float32; images are 1 x C x 5 x 5, matrices M x K.

local ir = require "perilune.ir"
local pl = require "perilune"
local seeded_random = require "spec.random.seeded"

local op = pl.op

local branches = {} -- state of one generation: random, values, seed
branches.__index = branches

function branches:below(n) return self.random(1, n) end
function branches:pick(list) return list[self.random(1, #list)] end

function branches:weight(...)
  self.seed = self.seed + 1
  return pl.const(pl.tensor.random({ ... }, "float32",
    { seed = self.seed, low = -0.5, high = 0.5 }))
end

-- A value of the same shape as x, x itself if there is no other one.
function branches:like(x)
  local list = {}
  for _, value in ipairs(self.values) do
    if tostring(value.type) == tostring(x.type) then list[#list + 1] = value end
  end
  return self:pick(list)
end

local steps = {}

function steps.unary(self, x) return self:pick { op.nn.relu, op.tanh, op.sigmoid } (x) end
function steps.sum(self, x) return op.add(x, self:like(x)) end
function steps.product(self, x) return op.multiply(x, self:like(x)) end
function steps.scale(_, x) return op.multiply(x, pl.const(0.5, "float32")) end

function steps.concatenate(self, x)
  if x.type.shape[2] > 8 then return op.nn.relu(x) end
  return op.concatenate({ x, self:like(x) }, { axis = 1 })
end

function steps.half(self, x)
  local n = x.type.shape[2]
  if n % 2 == 1 then return op.tanh(x) end
  local sizes = pl.const(pl.tensor({ n // 2, n // 2 }, "int64"))
  return ir.TupleGetItem(op.split(x, sizes, { axis = 1, n_results = 2 }), self:below(2) - 1)
end

-- Layers: a product or a convolution by weights.
local function convolution(self, x)
  local k, c, out = self:pick { 1, 1, 3, 3 }, x.type.shape[2], self:pick { 2, 4 }
  local groups = c % 4 == 0 and out == 4 and self:pick { 1, 2, 4 } or c % 2 == 0
    and self:pick { 1, 1, 2 } or 1
  local given = self:below(2) == 1
  return op.nn.conv(x, self:weight(out, c // groups, k, k),
    self:below(3) == 1 and self:weight(out) or nil, { group = groups > 1 and groups or given and 1
      or nil, kernel_shape = given and { k, k } or nil, strides = given and { 1, 1 } or nil,
      pads = (given or k > 1) and { k // 2, k // 2, k // 2, k // 2 } or nil })
end

-- One weight for each channel, then a convolution of 1x1.
local function separable(self, x, out)
  local c = x.type.shape[2]
  local y = op.nn.conv(x, self:weight(c, 1, 3, 3), { group = c, pads = { 1, 1, 1, 1 } })
  return op.nn.conv(y, self:weight(out, c, 1, 1), {})
end

function steps.separable(self, x)
  if #x.type.shape ~= 4 then return op.nn.relu(x) end
  return op.add(separable(self, x, 4), separable(self, self:like(x), 4))
end

function steps.average(self, x)
  if #x.type.shape ~= 4 then return op.tanh(x) end
  return op.nn.avg_pool(x, { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 },
    count_include_pad = self:pick { 0, 1 } })
end

function steps.layer(self, x)
  if #x.type.shape == 4 then return convolution(self, x) end
  return op.nn.matmul(x, self:weight(x.type.shape[2], self:pick { 2, 4, 6 }))
end

local names = { "layer", "layer", "layer", "layer", "layer", "unary", "sum", "product", "scale",
  "concatenate", "half", "average", "separable" }

return function(seed)
  local self = setmetatable({ random = seeded_random(seed), values = {}, seed = seed * 100 },
    branches)
  local x = self:below(2) == 1 and pl.var("x", "Tensor[(3, 4), float32]")
    or pl.var("x", "Tensor[(1, 4, 5, 5), float32]")
  self.values[1] = x
  for _ = 1, self:below(9) + 2 do
    self.values[#self.values + 1] = steps[self:pick(names)](self, self:pick(self.values))
  end
  local n = #self.values
  return pl.module { main = pl.func({ x }, pl.tuple { self.values[n], self.values[n - 1],
    self.values[math.max(2, n - 2)] }) }
end
