-- Maps of indices: which element of a buffer another index of it is.
--
--     local map = tir.IndexMap.from_func(function(i) return i // 4, i % 4 end, 1)
--     map:map_indices { 7 }     -- 1, 3
--     map:map_shape { 16 }      -- 4, 4

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local walks = require "perilune.tir.walk"

local IndexMap = {}
IndexMap.__index = IndexMap

-- Between two indices of a map: the dimensions before and behind it are flattened apart.
local AXIS_SEPARATOR = setmetatable({}, { __name = "perilune.AxisSeparator",
  __tostring = function() return "AXIS_SEPARATOR" end })

--- A map from its variables (a list of Vars) to indices (PrimExprs of them); the map back may
-- be told, when it is known.
function IndexMap.new(initial_indices, final_indices, inverse_index_map)
  for _, var in ipairs(initial_indices) do
    if type(var) ~= "userdata" or var.kind ~= "Var" then
      argument.fail("IndexMap: its variables are Vars")
    end
  end
  return setmetatable({
    initial_indices = initial_indices, final_indices = operand.exprs(final_indices),
    inverse_index_map = inverse_index_map,
  }, IndexMap)
end

-- The variables and the indices (separators among them) of a Lua function of `ndim` variables,
-- which returns the indices, or a list of them.
local function called(mapping, ndim)
  local vars = {}
  argument.callable(mapping, "tir.IndexMap", "mapping")
  if math.type(ndim) ~= "integer" or ndim < 0 or ndim > 32 then
    argument.fail "tir.IndexMap: ndim is an integer from 0 to 32"
  end
  for i = 1, ndim do vars[i] = core.var(("i%d"):format(i - 1), operand.type "int32") end
  local indices = { mapping(table.unpack(vars, 1, ndim)) }
  local only = indices[1]
  if #indices == 1 and type(only) == "table" and getmetatable(only) == nil then indices = only end
  return vars, indices
end

--- The map that a Lua function of `ndim` variables gives.
function IndexMap.from_func(mapping, ndim, inverse_index_map)
  local vars, indices = called(mapping, ndim)
  for _, index in ipairs(indices) do
    if index == AXIS_SEPARATOR then
      argument.fail("tir.IndexMap.from_func: the map has an axis separator; it is for"
        .. " from_func_with_separators")
    end
  end
  return IndexMap.new(vars, indices, inverse_index_map)
end

--- The same, and the numbers of the indices before which AXIS_SEPARATOR stands among the results.
function IndexMap.from_func_with_separators(mapping, ndim, inverse_index_map)
  local vars, results = called(mapping, ndim)
  local indices, separators = {}, {}
  for _, index in ipairs(results) do
    local list = index == AXIS_SEPARATOR and separators or indices
    list[#list + 1] = index == AXIS_SEPARATOR and #indices or index
  end
  return IndexMap.new(vars, indices, inverse_index_map), separators
end

local arithmetic = {
  Add = true, Sub = true, Mul = true, Div = true, Mod = true, FloorDiv = true, FloorMod = true,
  Min = true, Max = true,
}

-- What a rebuilt expression comes to.
local function computed(node)
  local kind = node.kind
  return arithmetic[kind] and operand.folded(kind, node.a, node.b) or nil
end

local function check_count(map, list, what)
  if #list ~= #map.initial_indices then
    argument.fail(("IndexMap: %d %s expected, got %d"):format(#map.initial_indices, what, #list))
  end
end

--- The indices that these are mapped to: Lua's integers where they are constant.
function IndexMap:map_indices(indices)
  check_count(self, indices, "indices")
  local values = {}
  for i, var in ipairs(self.initial_indices) do
    values[var] = operand.expr(indices[i], var.dtype)
  end
  local out = {}
  for i, index in ipairs(self.final_indices) do
    local mapped = walks.transform(walks.substitute(index, values), nil, computed)
    out[i] = mapped.kind == "IntImm" and mapped.value or mapped
  end
  return out
end

--- The same map over indices of another dtype of integers.
function IndexMap:with_dtype(dtype)
  local vars, out = {}, {}
  for i, var in ipairs(self.initial_indices) do
    vars[i] = core.var(var.name, operand.type(dtype))
  end
  local function typed(node)
    for i, var in ipairs(self.initial_indices) do
      if node == var then return vars[i] end
    end
    return node.kind == "IntImm" and operand.const(node.value, dtype) or nil
  end
  for i, index in ipairs(self.final_indices) do
    out[i] = walks.transform(index, typed, nil, { "Var", "IntImm" })
  end
  return IndexMap.new(vars, out)
end

-- ------------------------------------------------------------------- shapes

-- The least and the greatest value of an expression, of those of its operands.
local bounds = {
  Add = function(a, b) return a[1] + b[1], a[2] + b[2] end,
  Sub = function(a, b) return a[1] - b[2], a[2] - b[1] end,
  Min = function(a, b) return math.min(a[1], b[1]), math.min(a[2], b[2]) end,
  Max = function(a, b) return math.max(a[1], b[1]), math.max(a[2], b[2]) end,
  Mul = function(a, b)
    local products = { a[1] * b[1], a[1] * b[2], a[2] * b[1], a[2] * b[2] }
    return math.min(table.unpack(products)), math.max(table.unpack(products))
  end,
  FloorDiv = function(a, b)
    if b[1] ~= b[2] or b[1] <= 0 then return nil end
    return a[1] // b[1], a[2] // b[1]
  end,
  FloorMod = function(a, b)
    if b[1] ~= b[2] or b[1] <= 0 then return nil end
    if a[1] // b[1] == a[2] // b[1] then return a[1] % b[1], a[2] % b[1] end
    return 0, b[1] - 1
  end,
}

local function no_bounds(node)
  error(("IndexMap: the range of %s is unknown"):format(tostring(node)), 0)
end

local function range_of(root, known)
  walks.post_order(root, function(node)
    local kind = node.kind
    if known[node] then return end
    if kind == "IntImm" then
      known[node] = { node.value, node.value }
    elseif bounds[kind] then
      local low, high = bounds[kind](known[node.a], known[node.b])
      if not low then no_bounds(node) end
      known[node] = { low, high }
    else
      for var, range in pairs(known.vars) do
        if node == var then known[node] = range end
      end
      if not known[node] then no_bounds(node) end
    end
  end)
  return known[core.seal(root)]
end

--- The shape that holds every index a shape is mapped to; both of constants.
function IndexMap:map_shape(shape)
  check_count(self, shape, "extents")
  local vars, out = {}, {}
  for i, var in ipairs(self.initial_indices) do
    local extent = shape[i]
    if type(extent) == "userdata" and extent.kind == "IntImm" then extent = extent.value end
    if math.type(extent) ~= "integer" or extent < 1 then
      argument.fail("IndexMap: extents are positive integers")
    end
    vars[var] = { 0, extent - 1 }
  end
  for i, index in ipairs(self.final_indices) do
    out[i] = range_of(index, { vars = vars })[2] + 1
  end
  return out
end

--- Whether another map gives the same indices, whatever its variables are called.
function IndexMap:is_equivalent_to(other)
  if #self.initial_indices ~= #other.initial_indices
      or #self.final_indices ~= #other.final_indices then
    return false
  end
  local mine, theirs = self:map_indices(self.initial_indices),
    other:map_indices(self.initial_indices)
  for i, index in ipairs(mine) do
    local a, b = operand.expr(index), operand.expr(theirs[i])
    if not core.node_equal(core.seal(a), core.seal(b), false) then return false end
  end
  return true
end

function IndexMap:__tostring()
  local vars, indices = {}, {}
  for i, var in ipairs(self.initial_indices) do vars[i] = tostring(var) end
  for i, index in ipairs(self.final_indices) do indices[i] = tostring(index) end
  return ("T.index_map(lambda %s: (%s%s))"):format(table.concat(vars, ", "),
    table.concat(indices, ", "), #indices == 1 and "," or "")
end

--- True for a map of indices.
local function is_map(value) return getmetatable(value) == IndexMap end

return setmetatable({
  from_func = IndexMap.from_func, is_map = is_map, AXIS_SEPARATOR = AXIS_SEPARATOR,
  from_func_with_separators = IndexMap.from_func_with_separators,
}, {
  __call = function(_, ...) return IndexMap.new(...) end,
})
