-- Regions of buffers, and sets: { min_value =, max_value = }.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local iter_map = require "perilune.arith.iter_map"
local operand = require "perilune.tir.operand"
local walk = require "perilune.tir.walk"

local region = {}

local bounds = { strict = 0, lower = 1, upper = 2 }
local operations = { intersect = 0, union = 1, union_lower_bound = 2 }

local function interval(analyzer, min, max)
  return { min_value = analyzer:end_node(min), max_value = analyzer:end_node(max) }
end

for name, bound in pairs(bounds) do
  --- The interval of each dimension of a region (Ranges), when the variables run over their ranges
  -- and the predicate holds; nil if it is not known. Strict and lower ones are exact, upper ones
  -- contain the region.
  region[name] = function(analyzer, ranges, var_dom, predicate)
    local where = ("estimate_region_%s_bound"):format(name)
    local dims, out = {}, {}
    for _, range in ipairs(argument.table(ranges, where, "region")) do
      if argument.node(range, where, "a range").kind ~= "Range" then
        argument.fail(("%s: a Range expected, got a %s"):format(where, range.kind))
      end
      local min = analyzer:term(range[1])
      table.move({ min, min, analyzer:term(range[2]) }, 1, 3, #dims + 1, dims)
    end
    if predicate == nil or predicate == true then predicate = false end
    local ends = analyzer.core:estimate_region(dims, iter_map.ranges(analyzer, var_dom),
      predicate and analyzer:term(predicate) or 0, bound)
    for i = 1, ends and #ends or 0, 2 do
      out[#out + 1] = interval(analyzer, ends[i], ends[i + 1])
    end
    return ends and out
  end
end

for name, operation in pairs(operations) do
  --- What sets have in common, an interval that contains them all, or one that they cover.
  region[name] = function(analyzer, sets)
    local ends = {}
    for _, set in ipairs(argument.table(sets, name, "sets")) do
      table.move({ analyzer:ends(set, name) }, 1, 2, #ends + 1, ends)
    end
    return interval(analyzer, analyzer.core:combine_sets(operation, ends))
  end
end

-- The values of a Range: from those of its first one to those of its last one, which is simplified
-- before, because the two may share variables.
local function range_set(analyzer, range, dom_map)
  local last = operand.folded("Sub", operand.folded("Add", range[1], range[2]),
    operand.const(1, range[1].dtype))
  return { min_value = analyzer:int_set(range[1], dom_map).min_value,
    max_value = analyzer:int_set(analyzer:simplify(last), dom_map).max_value }
end

--- The values of a PrimExpr, of a Range, or of each of a list of them, when the variables of
-- `dom_map` run over their sets.
function region.eval_set(analyzer, of, dom_map)
  local function one(item)
    local is_range = argument.kind_of(item) == "Node" and item.kind == "Range"
    return is_range and range_set(analyzer, item, dom_map) or analyzer:int_set(item, dom_map)
  end
  if type(of) ~= "table" then return one(of) end
  local out = {}
  for i, item in ipairs(of) do out[i] = one(item) end
  return out
end

-- ------------------------------------------------------------ domain_touched

local function extend(touched, i, set)
  local known = touched[i]
  touched[i] = known and { min = operand.folded("Min", known.min, set.min),
    max = operand.folded("Max", known.max, set.max) } or set
end

-- Sealed statements have buffers of their own; the pointer tells which one it is.
local function same(x, y) return x == y or x.data == y.data and x.name == y.name end

-- The loops that enclose what is visited: variables and their intervals.
local function record(analyzer, touched, access, loops)
  local buffer = access.buffer
  for i = 1, #buffer.shape do
    local index = access.indices[i]
    local set = analyzer:int_set(index, loops)
    local first, last = set.min_value, set.max_value
    -- An index of which nothing is known may be any of the dimension.
    if type(first) == "string" then first = operand.const(0, buffer.shape[i].dtype) end
    if type(last) == "string" then
      last = operand.folded("Sub", buffer.shape[i], operand.const(1, buffer.shape[i].dtype))
    end
    extend(touched, i, { min = first, max = last })
  end
end

--- The region of a buffer that a statement reads (`consider_loads`) or writes (`consider_stores`),
-- as Ranges; {}: it does neither.
function region.domain_touched(analyzer, stmt, buffer, consider_loads, consider_stores)
  argument.node(stmt, "domain_touched", "stmt")
  argument.node(buffer, "domain_touched", "buffer")
  local touched, loops, out = {}, {}, {}
  local kinds = { BufferLoad = consider_loads ~= false, BufferStore = consider_stores ~= false }
  walk.pre_order(stmt, function(node)
    if node.kind == "For" then
      local last = operand.folded("Sub", operand.folded("Add", node.min, node.extent),
        operand.const(1, node.min.dtype))
      loops[node.loop_var] = { min_value = node.min, max_value = last }
    elseif kinds[node.kind] and same(node.buffer, buffer) then
      record(analyzer, touched, node, loops)
    end
  end)
  for i, set in ipairs(touched) do
    local extent = operand.folded("Add", operand.folded("Sub", set.max, set.min),
      operand.const(1, set.min.dtype))
    out[i] = operand.node("Range", { analyzer:simplify(set.min), analyzer:simplify(extent) })
  end
  return out
end

return region
