-- The analyzer: facts of variables and conditions, and what follows of them.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local iter_map = require "perilune.arith.iter_map"
local linear = require "perilune.arith.linear"
local operand = require "perilune.tir.operand"
local region = require "perilune.arith.region"

local Analyzer = {}
Analyzer.__index = Analyzer
Analyzer.__name = "perilune.Analyzer"

--- A value that no integer exceeds, as TVM has it; its negative is the other infinity.
local infinity = math.maxinteger

local strengths = { default = 0, symbolic_bound = 1 }
local extensions = {
  transitively_prove_inequalities = 1, convert_boolean_to_and_of_ors = 2,
  apply_constraints_to_boolean_branches = 4,
}

local function make(_)
  return setmetatable({ core = core.analyzer() }, Analyzer)
end

local function is_node(of) return getmetatable(of) == "perilune.Node" end

--- The term of a node or a number; `like` gives a number its dtype.
function Analyzer:term(of, like)
  if not is_node(of) then of = operand.expr(of, is_node(like) and like.dtype or nil) end
  if not is_node(of) then argument.expected("a PrimExpr", of) end
  return self.core:import(of)
end

--- The terms of a list of Vars; `where` and `what` name the argument that it is.
function Analyzer:var_terms(list, where, what)
  local out = {}
  for i, var in ipairs(argument.table(list, where, what)) do
    argument.node(var, where, what)
    if var.kind ~= "Var" and var.kind ~= "SizeVar" then
      argument.fail(("%s: %s: a Var expected, got a %s"):format(where, what, var.kind))
    end
    out[i] = self:term(var)
  end
  return out
end

--- min <= expr <= max for all values of its variables, as a table.
function Analyzer:const_int_bound(expr)
  local min, max = self.core:const_int_bound(self:term(expr))
  return { min_value = min, max_value = max }
end

--- expr = coeff * k + base, as a table; coeff 0: expr is base.
function Analyzer:modular_set(expr)
  local coeff, base = self.core:modular_set(self:term(expr))
  return { coeff = coeff, base = base }
end

--- The expression rewritten by rules.
function Analyzer:rewrite_simplify(expr)
  return self.core:export(self.core:rewrite_simplify(self:term(expr)))
end

--- The expression in normal form: a sum of (x % upper // lower) * scale.
function Analyzer:canonical_simplify(expr)
  return self.core:export(self.core:canonical_simplify(self:term(expr)))
end

--- The normal form, then rules and normal form in turns, `steps` times (2).
function Analyzer:simplify(expr, steps)
  return self.core:export(self.core:simplify(self:term(expr), steps))
end

--- True if the condition holds for all values; false says nothing. Strength "default" or
-- "symbolic_bound" (0 or 1).
function Analyzer:can_prove(condition, strength)
  return self.core:can_prove(self:term(condition),
    argument.choice(strength, "can_prove", "strength", strengths))
end

--- True if the two are equal for all values.
function Analyzer:can_prove_equal(a, b)
  local x, y = self:term(a, b), self:term(b, a)
  return self.core:can_prove_equal(x, y)
end

--- True if expr >= lower_bound is proved; if expr < upper_bound is.
function Analyzer:can_prove_greater_equal(expr, lower_bound)
  argument.node(expr, "can_prove_greater_equal", "expr")
  return self:can_prove(operand.node("GE", { expr, operand.expr(lower_bound, expr.dtype) }))
end

function Analyzer:can_prove_less(expr, upper_bound)
  argument.node(expr, "can_prove_less", "expr")
  return self:can_prove(operand.node("LT", { expr, operand.expr(upper_bound, expr.dtype) }))
end

--- From here on the variable is one of a Range ({ first, last } or a node), or equal to a value.
function Analyzer:bind(var, expr, allow_override)
  local term = self:term(argument.node(var, "bind", "var"))
  if type(expr) == "table" then
    local first = operand.expr(expr[1], var.dtype)
    expr = operand.node("Range",
      { first, operand.folded("Sub", operand.expr(expr[2], var.dtype), first) })
  end
  if is_node(expr) and expr.kind == "Range" then
    self.core:bind_range(term, self:term(expr[1]), self:term(expr[2]), allow_override)
  else
    self.core:bind(term, self:term(expr, var), allow_override)
  end
end

--- Says something else of a variable: { min_value =, max_value = }, { coeff =, base = } or a value.
function Analyzer:update(var, info, override)
  local term = self:term(argument.node(var, "update", "var"))
  if type(info) ~= "table" then return self:bind(var, info, override) end
  argument.options(info, "update", { "min_value", "max_value", "coeff", "base" })
  if next(info) == nil then argument.fail "update: a bound or a modular set expected, got {}" end
  if info.base and not info.coeff then argument.fail "update: base without coeff" end
  if info.coeff then
    self.core:update_modular(term, info.coeff, info.base or 0, override)
  else
    self.core:update_bound(term, info.min_value or -infinity, info.max_value or infinity, override)
  end
end

--- Enters a scope that never ends: from here on the condition holds.
function Analyzer:enter(condition) self.core:enter(self:term(condition)) end

--- Calls `body` while the condition is known to hold, and gives its results. Without `body`: a
-- scope that ends when it is closed (`local scope <close> = ...`).
function Analyzer:constraint_scope(condition, body)
  if body ~= nil then argument.callable(body, "constraint_scope", "body") end
  local mark = self.core:enter(self:term(condition))
  local scope = setmetatable({}, { __close = function() self.core:leave(mark) end })
  if not body then return scope end
  local guard <close> = scope -- luacheck: ignore 211
  return body(self)
end

local infinite = { neg_inf = 0xfffffffe, pos_inf = 0xffffffff }

-- An end of a set: a node, a number or "neg_inf" or "pos_inf".
function Analyzer:end_term(of, like)
  return infinite[of] or self:term(of, like)
end

function Analyzer:end_node(term)
  if term == infinite.pos_inf then return "pos_inf" end
  if term == infinite.neg_inf then return "neg_inf" end
  return self.core:export(term)
end

--- The ends of a set, { min_value =, max_value = }, as terms; `where` is what asks.
function Analyzer:ends(set, where, like)
  argument.options(argument.table(set, where, "a set"), where, { "min_value", "max_value" })
  if set.min_value == nil or set.max_value == nil then
    argument.fail(where .. ": a set has min_value and max_value")
  end
  return self:end_term(set.min_value, like or set.max_value),
    self:end_term(set.max_value, like or set.min_value)
end

--- { [var] = { min_value =, max_value = } or a Range } as a flat list, in the order of the terms.
function Analyzer:domains(map)
  local out = {}
  for var, set in pairs(map and argument.table(map, "arith", "domains") or {}) do
    local row = { self:term(argument.node(var, "arith", "a variable of the domains")) }
    if is_node(set) and set.kind == "Range" then
      row[2] = self:term(set[1])
      row[3] = self:term(operand.folded("Sub", operand.folded("Add", set[1], set[2]),
        operand.const(1, set[1].dtype)))
    elseif is_node(set) or type(set) == "number" then
      row[2] = self:term(set, var)
      row[3] = row[2]
    else
      row[2], row[3] = self:ends(set, "arith", var)
    end
    out[#out + 1] = row
  end
  table.sort(out, function(a, b) return a[1] < b[1] end)
  local flat = {}
  for _, row in ipairs(out) do table.move(row, 1, 3, #flat + 1, flat) end
  return flat
end

local function interval(self, min, max)
  return { min_value = self:end_node(min), max_value = self:end_node(max) }
end

--- The values of an expression as { min_value =, max_value = }: nodes, "neg_inf", "pos_inf".
-- `dom_map`: the sets of variables; without it, bound variables run over their ranges.
function Analyzer:int_set(expr, dom_map)
  local term, domains = self:term(expr), self:domains(dom_map)
  return interval(self, self.core:int_set(term, domains, dom_map == nil))
end

--- See perilune.arith.
function Analyzer:deduce_bound(var, condition, hint_map, relax_map)
  local hints, relaxed = self:domains(hint_map), self:domains(relax_map)
  return interval(self, self.core:deduce_bound(self:term(var), self:term(condition), hints,
    relaxed))
end

local function terms(self, list)
  local out = {}
  for i, item in ipairs(argument.table(list, "arith", "equations")) do out[i] = self:term(item) end
  return out
end

local function nodes(self, list)
  local out = {}
  for i, term in ipairs(list or {}) do out[i] = term and self.core:export(term) end
  return out
end

--- See perilune.arith.
function Analyzer:detect_linear_equation(expr, vars)
  local term = self:term(expr)
  return nodes(self, self.core:linear_equation(term,
    self:var_terms(vars, "detect_linear_equation", "vars")))
end

--- See perilune.arith.
function Analyzer:detect_clip_bound(condition, vars)
  local term = self:term(condition)
  return nodes(self, self.core:clip_bound(term,
    self:var_terms(vars, "detect_clip_bound", "vars")))
end

--- See perilune.arith.
function Analyzer:narrow_predicate_expression(condition, ranges)
  local term = self:term(condition)
  return self.core:export(self.core:narrow_predicate(term, self:domains(ranges)))
end

--- See perilune.arith.
function Analyzer:solve_linear_equations(equations, variables, ranges)
  local relations = terms(self, equations)
  local vars = self:var_terms(variables or {}, "solve_linear_equations", "variables")
  local solution, new, to_old, min, max, rest =
    self.core:solve_equations(relations, vars, self:domains(ranges))
  if not solution then return nil end
  local out = { variables = nodes(self, new), relations = nodes(self, rest), ranges = {},
    src_to_dst = {}, dst_to_src = {} }
  for i, var in ipairs(variables or {}) do out.src_to_dst[var] = self.core:export(solution[i]) end
  for i, var in ipairs(out.variables) do
    out.dst_to_src[var] = self.core:export(to_old[i])
    out.ranges[var] = interval(self, min[i], max[i])
  end
  return out
end

--- See perilune.arith.
Analyzer.detect_iter_map = iter_map.detect
Analyzer.iter_map_simplify = iter_map.simplify
Analyzer.normalize_to_iter_sum = iter_map.normalize_to_sum
Analyzer.normalize_iter_map_to_expr = iter_map.to_expr
Analyzer.subspace_divide = iter_map.subspace_divide
Analyzer.inverse_affine_iter_map = iter_map.inverse
Analyzer.solve_linear_inequalities = linear.solve_inequalities
Analyzer.solve_inequalities_as_bounds = linear.solve_as_bounds
Analyzer.estimate_region_strict_bound = region.strict
Analyzer.estimate_region_lower_bound = region.lower
Analyzer.estimate_region_upper_bound = region.upper
Analyzer.union = region.union
Analyzer.union_lower_bound = region.union_lower_bound
Analyzer.intersect = region.intersect
Analyzer.domain_touched = region.domain_touched
Analyzer.eval_set = region.eval_set

--- Subexpressions that occur `threshold` times or more, with their counts, the outermost first:
-- { { expr =, count = }, ... }.
function Analyzer:detect_common_subexpr(expr, threshold)
  local out, found, counts = {}, self.core:common_subexprs(self:term(expr), threshold)
  for i, term in ipairs(found) do
    out[i] = { expr = self.core:export(term), count = counts[i] }
  end
  return out
end

--- Optional parts of simplification, by name: transitively_prove_inequalities,
-- convert_boolean_to_and_of_ors, apply_constraints_to_boolean_branches.
function Analyzer:set_enabled_extensions(...)
  local mask = 0
  for _, name in ipairs { ... } do
    if not extensions[name] then argument.fail(("no extension '%s'"):format(name)) end
    mask = mask | extensions[name]
  end
  self.core:set_extensions(mask)
end

return setmetatable({ infinity = infinity }, { __call = make })
