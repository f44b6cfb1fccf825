--- random_graph(seed[, closed]): a module made at random, the same for the same
-- seed; closed: of constants in place of parameters. Also tells whether results
-- depend on products, whose last bits passes on weights may change.
--
-- Static and symbolic shapes, several results, dead code; what operators there
-- are is said in random_operators.lua. All of them have kernels, so the
-- evaluator can be the judge.

local pl = require "perilune"
local seeded_random = require "spec.random.seeded"
local makers = require "spec.random.operators"

local graph = {} -- state of one generation: random, values, params
graph.__index = graph

-- In [1, n]; in 1 .. #list.
function graph:below(n) return self.random(1, n) end
function graph:pick(list) return list[self.random(1, #list)] end
function graph:chance(p) return self.random() < p end

local function shape_of(node)
  local type_ = node.type
  return type_ and type_.kind == "tensor" and type_.shape or nil
end

local function is_static(shape)
  for _, dim in ipairs(shape) do if math.type(dim) ~= "integer" then return false end end
  return true
end

-- A value of that dtype and of a known shape that `fits`, and the shape; nil
-- when there is none. What is made of a rough value is rough.
function graph:value(dtype, fits)
  local fit = {}
  for _, node in ipairs(self.values) do
    local shape = node.type and node.type.dtype == dtype and shape_of(node)
    if shape and not (self.exact_only and self.rough[node])
      and (not fits or fits(shape)) then fit[#fit + 1] = node end
  end
  if #fit == 0 then return nil end
  local node = self:pick(fit)
  self.touched = self.touched or self.rough[node]
  return node, shape_of(node)
end

-- The same in numbers, of at least that rank.
function graph:static(dtype, rank)
  return self:value(dtype, function(shape) return #shape >= (rank or 0) and is_static(shape) end)
end

-- A float32 constant of that shape, its elements by element().
local function filled(shape, element)
  local function fill(axis)
    if axis > #shape then return element() end
    local row = {}
    for i = 1, shape[axis] do row[i] = fill(axis + 1) end
    return row
  end
  return pl.const(pl.tensor(fill(1), "float32"))
end

function graph:constant(shape)
  return filled(shape, function()
    return self:pick { 0.0, 1.0, -1.0, 0.5, 2.0, -3.25, self.random() }
  end)
end

-- Weights, as small as those of networks: in [from, from + 1).
function graph:weight(shape, from)
  return filled(shape, function() return self.random() + (from or -0.5) end)
end

function graph:permutation(rank)
  local perm = {}
  for i = 1, rank do perm[i] = i - 1 end
  for i = rank, 2, -1 do
    local k = self:below(i)
    perm[i], perm[k] = perm[k], perm[i]
  end
  return perm
end

local names = {}
for name in pairs(makers) do names[#names + 1] = name end
table.sort(names)

local params = {
  { "x", { 2, 3 } }, { "y", { "N", 3 } }, { "z", { 2, "N", 2 } }, { "w", { 1, 2, 5, 4 } },
}

function graph:param(name, shape, n)
  if not n then return pl.var(name, pl.type { shape = shape, dtype = "float32" }) end
  local dims = {}
  for i, dim in ipairs(shape) do dims[i] = dim == "N" and n or dim end
  return filled(dims, function() return self.random() * 4 - 2 end)
end

local function new(seed, closed)
  local random = seeded_random(seed)
  local self = setmetatable({ random = random, params = {}, rough = {} }, graph)
  for i, row in ipairs(params) do
    self.params[i] = self:param(row[1], row[2], closed and 1 + seed % 3)
  end
  self.values = { table.unpack(self.params) }
  return self
end

-- One more value, or several; what could not be made is no matter.
function graph:grow()
  local maker = makers[self:pick(names)]
  self.touched, self.exact_only = false, maker.jumps
  local made = table.pack(maker.make(self))
  for i = 1, made.n do
    self.values[#self.values + 1] = made[i]
    if made[i] then self.rough[made[i]] = self.touched or maker.product end
  end
end

return function(seed, closed)
  local self = new(seed, closed)
  for _ = 1, 4 + self:below(16) do self:grow() end
  local results, rough = {}, false
  for i = 1, self:below(3) do
    results[i] = self:pick(self.values)
    rough = rough or self.rough[results[i]]
  end
  return pl.module { main = pl.func(closed and {} or self.params, pl.tuple(results)) }, rough
end
