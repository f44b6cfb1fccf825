-- Linear inequalities: the results that TVM has, and the solvers.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local iter_map = require "perilune.arith.iter_map"
local operand = require "perilune.tir.operand"

local linear = {}

local IntGroupBounds = { __name = "perilune.IntGroupBounds" }
local IntConstraints = { __name = "perilune.IntConstraints" }
local IntConstraintsTransform = { __name = "perilune.IntConstraintsTransform" }
for _, class in ipairs { IntGroupBounds, IntConstraints, IntConstraintsTransform } do
  class.__index = class
end

--- coef * var >= each of lower, = each of equal, <= each of upper.
function linear.IntGroupBounds(coef, lower, equal, upper)
  return setmetatable({ coef = coef, lower = lower, equal = equal, upper = upper }, IntGroupBounds)
end

--- Variables with ranges, { [var] = Range }, and relations that hold besides.
function linear.IntConstraints(variables, ranges, relations)
  return setmetatable({ variables = variables or {}, ranges = ranges or {},
    relations = relations or {} }, IntConstraints)
end

--- Constraints `dst` that mean the same as `src`, and the variables of each by those of the other.
function linear.IntConstraintsTransform(src, dst, src_to_dst, dst_to_src)
  return setmetatable({ src = src, dst = dst, src_to_dst = src_to_dst, dst_to_src = dst_to_src },
    IntConstraintsTransform)
end

local function terms(analyzer, list, what)
  local out = {}
  for i, item in ipairs(argument.table(list, "solve_linear_inequalities", what)) do
    out[i] = analyzer:term(item)
  end
  return out
end

local function nodes(analyzer, list)
  local out = {}
  for i, term in ipairs(list) do out[i] = analyzer.core:export(term) end
  return out
end

-- Relations, variables and ranges, or IntConstraints.
local function system(analyzer, equations, variables, ranges)
  local src = equations
  if getmetatable(equations) ~= IntConstraints then
    src = linear.IntConstraints(variables, ranges, equations)
  end
  return src, terms(analyzer, src.relations, "equations"),
    analyzer:var_terms(src.variables, "solve_linear_inequalities", "variables"),
    iter_map.ranges(analyzer, src.ranges)
end

local function range_map(analyzer, flat)
  local out = {}
  for i = 1, #flat, 3 do
    out[analyzer.core:export(flat[i])] = operand.node("Range",
      { analyzer.core:export(flat[i + 1]), analyzer.core:export(flat[i + 2]) })
  end
  return out
end

local function unsolvable(src, deskew)
  local none = linear.IntConstraints({}, {}, { operand.const(false, "bool") })
  return deskew and linear.IntConstraintsTransform(src, none, {}, {}) or none
end

--- The ranges of variables where inequalities hold; see perilune.arith.
function linear.solve_inequalities(analyzer, equations, variables, ranges, deskew_range)
  local src, relations, vars, flat = system(analyzer, equations, variables, ranges)
  local found = analyzer.core:solve_to_range(relations, vars, flat, deskew_range or false)
  if not found then return unsolvable(src, deskew_range) end
  local rest = nodes(analyzer, found.relations)
  local known = range_map(analyzer, found.ranges)
  if not deskew_range then return linear.IntConstraints(src.variables, known, rest) end
  local new, old = nodes(analyzer, found.new_vars), nodes(analyzer, found.to_old)
  local forth, back = {}, {}
  for i, node in ipairs(nodes(analyzer, found.to_new)) do forth[src.variables[i]] = node end
  for i, var in ipairs(new) do back[var] = old[i] end
  return linear.IntConstraintsTransform(src, linear.IntConstraints(new, known, rest), forth, back)
end

--- The bounds of each variable by the later ones, { [var] = IntGroupBounds }, and what they do not
-- say.
function linear.solve_as_bounds(analyzer, equations, variables, ranges)
  local src, relations, vars, flat = system(analyzer, equations, variables, ranges)
  local groups, rest = analyzer.core:solve_inequalities(relations, vars, flat)
  local out = {}
  for i, g in ipairs(groups) do
    out[src.variables[i]] = linear.IntGroupBounds(analyzer.core:export(g.coef),
      nodes(analyzer, g.lower), nodes(analyzer, g.equal), nodes(analyzer, g.upper))
  end
  return out, nodes(analyzer, rest)
end

return linear
