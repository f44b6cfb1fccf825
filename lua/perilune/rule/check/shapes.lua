--- Shapes of operands, made from the shape that a result shall have.

require "perilune.core".internal()
local count_of = require "perilune.rule.check.values".count_of

local shapes = {}

-- Extents and ranks, the simplest first; those that are more frequent stand twice.
local extents = { 1, 2, 3, 2, 4, 3, 1, 2, 3, 5, 2, 1, 0 }
local ranks = { 1, 2, 0, 3, 2, 3, 4, 2 }

function shapes.extent(c) return c:pick(extents) end

function shapes.random(c, rank)
  local shape = {}
  for i = 1, rank or c:pick(ranks) do shape[i] = shapes.extent(c) end
  return shape
end

function shapes.copy(shape) return table.move(shape, 1, #shape, 1, {}) end

function shapes.equal(a, b)
  if #a ~= #b then return false end
  for i, dim in ipairs(a) do if dim ~= b[i] then return false end end
  return true
end

--- A copy with `extent` inserted as axis `axis`, from 1.
function shapes.inserted(shape, axis, extent)
  local new = shapes.copy(shape)
  table.insert(new, axis, extent)
  return new
end

--- A shape that broadcasts to `shape`: itself, a scalar, its last axes, 1 for some axes.
function shapes.narrower(c, shape)
  local how = c:below(5)
  if how == 1 then return {} end
  local narrow = shapes.copy(shape)
  if how == 2 and #shape > 0 then
    return table.move(shape, #shape - c:below(#shape), #shape, 1, {})
  end
  for i = 1, how > 2 and #shape or 0 do
    if how == 3 or c:chance(50) then narrow[i] = 1 end
  end
  return narrow
end

--- `n` shapes that broadcast to `shape` together.
function shapes.together(c, shape, n)
  local list = {}
  for i = 1, n do list[i] = shapes.copy(shape) end
  local how = c:below(n > 1 and 4 or 2)
  if how == 0 or n == 1 and not c:chance(5) then return list end
  if how == 3 then -- each axis is stretched in one of them
    for axis = 1, #shape do
      local one = c:below(n) + 1
      if c:chance(50) then list[one][axis] = 1 end
    end
    return list
  end
  local full = c:below(n) + 1
  for i = 1, n do
    if i ~= full then list[i] = shapes.narrower(c, shape) end
  end
  return list
end

--- Two extents whose product is `extent`.
function shapes.factors(c, extent)
  if extent == 0 then return shapes.extent(c), 0 end
  local divisors = {}
  for i = 1, extent do if extent % i == 0 then divisors[#divisors + 1] = i end end
  local first = c:pick(divisors)
  return first, extent // first
end

local function merge(c, shape)
  if #shape < 2 then return shape end
  local axis = c:below(#shape - 1) + 1
  local new = shapes.copy(shape)
  new[axis] = new[axis] * table.remove(new, axis + 1)
  return new
end

local function split(c, shape)
  if #shape == 0 then return { 1 } end
  local axis = c:below(#shape) + 1
  local new = shapes.copy(shape)
  local first, second = shapes.factors(c, shape[axis])
  new[axis] = first
  table.insert(new, axis + 1, second)
  return new
end

-- All axes but the last as one.
local function flat(_, shape)
  if #shape == 0 then return { 1 } end
  local last = shape[#shape]
  return { count_of(table.move(shape, 1, #shape - 1, 1, {})), last }
end

local function spread(c, shape)
  if #shape == 0 then return { 1, 1 } end
  return split(c, shape)
end

local function ones(c, shape)
  return shapes.inserted(shape, c:below(#shape + 1) + 1, 1)
end

local function squeezed(_, shape)
  local new = {}
  for _, dim in ipairs(shape) do if dim ~= 1 then new[#new + 1] = dim end end
  return new
end

local ways = { merge, split, flat, spread, ones, squeezed, function(_, shape) return shape end,
  function(_, shape) return { count_of(shape) } end }

--- Another shape with as many elements, where axes are merged, split, added or dropped.
function shapes.reshaped(c, shape)
  local new = c:pick(ways)(c, shape)
  if c:chance(40) then new = c:pick(ways)(c, new) end
  return #new <= 5 and new or shape
end

return shapes
