--- random_graph(seed): a module made at random, the same for the same seed.
--
-- Static and symbolic shapes, broadcasting, shape arithmetic, constants, neutral
-- and repeated operations, casts, reductions, branches, several results, dead
-- code. Every operator used has a kernel, so the evaluator can be the judge.

local pl = require "perilune"

local op = pl.op

local graph = {} -- state of one generation: random, values, params
graph.__index = graph

-- In [1, n]; in 1 .. #list.
function graph:below(n) return self.random(1, n) end
function graph:pick(list) return list[self.random(1, #list)] end
function graph:chance(p) return self.random() < p end

local function ints(...) return pl.const(pl.tensor({ ... }, "int64")) end

local function shape_of(node)
  local type_ = node.type
  return type_ and type_.kind == "tensor" and type_.shape or nil
end

local function is_static(shape)
  for _, dim in ipairs(shape) do if math.type(dim) ~= "integer" then return false end end
  return true
end

local function is_empty(shape)
  for _, dim in ipairs(shape) do if dim == 0 then return true end end
  return false
end

local function extent(shape)
  local n = 1
  for _, dim in ipairs(shape) do n = n * dim end
  return n
end

-- A value of that dtype whose shape is known; `static`: in numbers.
function graph:value(dtype, static)
  local fit = {}
  for _, node in ipairs(self.values) do
    local shape = node.type and node.type.dtype == dtype and shape_of(node)
    if shape and (not static or is_static(shape)) then fit[#fit + 1] = node end
  end
  return self:pick(fit)
end

function graph:constant(shape)
  local function fill(axis)
    if axis > #shape then return self:pick { 0.0, 1.0, -1.0, 0.5, 2.0, -3.25, self.random() } end
    local row = {}
    for i = 1, shape[axis] do row[i] = fill(axis + 1) end
    return row
  end
  return pl.const(pl.tensor(fill(1), "float32"))
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

local unary = { "tanh", "negative", "abs", "sigmoid", "copy", "floor", "nn.relu" }
local binary = { "add", "subtract", "multiply", "maximum", "minimum" }

-- Each gives a node, or nil when what it needs is not there.
local makers = {}

function makers:unary() return op[self:pick(unary)](self:value "float32") end

function makers:binary()
  local x = self:value "float32"
  local shape = shape_of(x)
  for _ = 1, 4 do
    local y = self:value "float32"
    local other = shape_of(y)
    local same = #other == #shape
    for i, dim in ipairs(shape) do same = same and other[i] == dim end
    if same then return op[self:pick(binary)](x, y) end
  end
  return op[self:pick(binary)](x, self:constant {})
end

function makers:neutral()
  local x = self:value "float32"
  local zero, one = pl.const(0, "float32"), pl.const(1, "float32")
  return self:pick { op.add(x, zero), op.subtract(x, zero), op.multiply(one, x), op.divide(x, one) }
end

function makers:constant_chain()
  local x = self:constant { 2, self:below(3) }
  for _ = 1, self:below(3) do x = op[self:pick(unary)](x) end
  return x
end

function makers:transpose()
  local x = self:value "float32"
  return op.transpose(x, { perm = self:permutation(#shape_of(x)) })
end

function makers:reshape()
  local x = self:value("float32", true)
  local n = extent(shape_of(x))
  if n == 0 then return end -- a 0 in a new shape is a copy
  local first = self:below(n)
  while n % first ~= 0 do first = first - 1 end
  return op.reshape(x, self:chance(0.5) and ints(first, -1) or ints(n // first, first))
end

-- A reshape by the shape itself: it melts.
function makers:reshape_by_shape()
  local x = self:value "float32"
  local rank = #shape_of(x)
  if rank == 0 or is_empty(shape_of(x)) then return end -- -1 has no answer then
  local shape, parts = op.shape_of(x), {}
  for i = 1, rank do
    parts[i] = op.expand_dims(op.take(shape, pl.const(i - 1, "int64")), ints(0))
  end
  if self:chance(0.5) then parts[self:below(rank)] = ints(-1) end
  return op.reshape(op[self:pick(unary)](x), op.concatenate(parts, { axis = 0 }))
end

function makers:unsqueeze()
  local x = self:value "float32"
  local axis = self:below(#shape_of(x) + 1) - 1
  local wide = op.expand_dims(x, ints(axis))
  return self:chance(0.5) and op.squeeze(op[self:pick(unary)](wide), ints(axis)) or wide
end

function makers:slice()
  local x = self:value("float32", true)
  local shape = shape_of(x)
  if #shape == 0 then return end
  local axis = self:below(#shape)
  local start = self:below(shape[axis] + 1) - 1
  local stop = self:chance(0.5) and math.maxinteger or self:below(shape[axis] + 1)
  return op.strided_slice(x, ints(start), ints(stop), ints(axis - 1), ints(self:pick { 1, 1, 2 }))
end

function makers:join()
  local x = self:value "float32"
  local rank = #shape_of(x)
  if rank == 0 then return end
  return op.concatenate({ x, op[self:pick(unary)](x) }, { axis = self:below(rank) - 1 })
end

function makers:reduce()
  local x = self:value "float32"
  local rank = #shape_of(x)
  if rank == 0 then return end
  return op.max(x, { axes = { self:below(rank) - 1 }, keepdims = self:below(2) - 1 })
end

function makers:cast()
  local x = self:value "float32"
  return op.cast(op.cast(x, { to = self:pick { 11, 1 } }), { to = 1 })
end

function makers:select()
  local x = self:value "float32"
  return op.where(op.less(x, self:constant {}), x, op.negative(x))
end

-- The same computation again: a duplicate.
function makers:twice()
  local x, name = self:value "float32", self:pick(unary)
  return op.add(op[name](x), op[name](x))
end

function makers:branch()
  local x = self:value "float32"
  local inside, other = op[self:pick(unary)](x), op.multiply(x, x)
  local cond = self:chance(0.3) and pl.const(self:chance(0.5), "bool")
    or op.less(op.max(self.params[1], { keepdims = 0 }), pl.const(0.5, "float32"))
  return pl.ir.If(cond, op.add(inside, inside), self:chance(0.5) and other or inside)
end

local names = {}
for name in pairs(makers) do names[#names + 1] = name end
table.sort(names)

local function new(seed)
  local state = seed * 2654435761 % 4294967296
  local function random(low, high)
    state = (state * 1664525 + 1013904223) % 4294967296
    local unit = (state >> 8) / 16777216
    return low and low + math.floor(unit * (high - low + 1)) or unit
  end
  local params = {
    pl.var("x", pl.type "Tensor[(2, 3), float32]"),
    pl.var("y", pl.type "Tensor[(N, 3), float32]"),
    pl.var("z", pl.type "Tensor[(2, N, 2), float32]"),
  }
  return setmetatable({ random = random, params = params,
    values = { table.unpack(params) } }, graph)
end

return function(seed)
  local self = new(seed)
  for _ = 1, 4 + self:below(16) do
    self.values[#self.values + 1] = makers[self:pick(names)](self)
  end
  local results = {}
  for i = 1, self:below(3) do results[i] = self:pick(self.values) end
  return pl.module { main = pl.func(self.params, pl.tuple(results)) }
end
