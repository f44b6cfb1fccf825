--- Arithmetic of integer expressions of TIR, by TVM's names.
--
--     local analyzer = pl.arith.Analyzer()
--     analyzer:bind(i, tir.Range(0, 16))
--     print(analyzer:simplify((i * 8 + j) // 8))
--     analyzer:constraint_scope(tir.GT(n, 4), function()
--       return analyzer:can_prove(tir.GT(n, 0))
--     end)
--
-- Lua numbers and booleans stand for expressions.

local core = require "perilune.core"
core.internal()

local iter_map = require "perilune.arith.iter_map"
local linear = require "perilune.arith.linear"

local arith = {
  Analyzer = require "perilune.arith.analyzer",
}

--- The values of `var` for which a comparison holds, for all values of the variables of
-- `relax_map`: { min_value =, max_value = }; "pos_inf", "neg_inf" when it is not known.
-- `hint_map` gives the signs of factors. The maps are as those of int_set.
function arith.deduce_bound(var, condition, hint_map, relax_map)
  return arith.Analyzer():deduce_bound(var, condition, hint_map, relax_map)
end

--- The coefficients of the variables and the rest of a linear expression; {} if it is none.
function arith.detect_linear_equation(expr, vars)
  return arith.Analyzer():detect_linear_equation(expr, vars)
end

--- The least and greatest value of each variable, by a conjunction of comparisons; false where none
-- is known; {} when a part is not linear.
function arith.detect_clip_bound(condition, vars)
  return arith.Analyzer():detect_clip_bound(condition, vars)
end

--- The solutions of linear equations in variables whose ranges may be known, by integers: nil if
-- there are none, else { variables =, ranges =, relations =, src_to_dst =, dst_to_src = }: the old
-- variables by new ones, the new ones by the old ones, and what must hold besides.
function arith.solve_linear_equations(equations, variables, ranges)
  return arith.Analyzer():solve_linear_equations(equations, variables, ranges)
end

--- The ranges of variables where inequalities (or IntConstraints) hold, as IntConstraints; with
-- `deskew_range` in new variables that begin with 0, as IntConstraintsTransform. Without a solution
-- the relations are { false }.
function arith.solve_linear_inequalities(equations, variables, ranges, deskew_range)
  return arith.Analyzer():solve_linear_inequalities(equations, variables, ranges, deskew_range)
end

--- The bounds of each variable by the later ones, { [var] = IntGroupBounds }, and the other
-- relations.
function arith.solve_inequalities_as_bounds(equations, variables, ranges)
  return arith.Analyzer():solve_inequalities_as_bounds(equations, variables, ranges)
end

arith.IntGroupBounds, arith.IntConstraints, arith.IntConstraintsTransform =
  linear.IntGroupBounds, linear.IntConstraints, linear.IntConstraintsTransform

--- The interval of each dimension of a region (Ranges), when the variables of `var_dom` run over
-- their ranges and the predicate holds: exactly, or nil.
function arith.estimate_region_strict_bound(region, var_dom, predicate)
  return arith.Analyzer():estimate_region_strict_bound(region, var_dom, predicate)
end

--- The same: intervals that the region surely has, or nil.
function arith.estimate_region_lower_bound(region, var_dom, predicate)
  return arith.Analyzer():estimate_region_lower_bound(region, var_dom, predicate)
end

--- The same: intervals that contain the region.
function arith.estimate_region_upper_bound(region, var_dom, predicate)
  return arith.Analyzer():estimate_region_upper_bound(region, var_dom, predicate)
end

--- The values of a PrimExpr or Range, or of each of a list of them, when the variables of `dom_map`
-- run over their sets: { min_value =, max_value = }.
function arith.eval_set(of, dom_map) return arith.Analyzer():eval_set(of, dom_map or {}) end

--- An interval that contains all of the sets; one that they cover; what they have in common.
function arith.union(sets) return arith.Analyzer():union(sets) end

function arith.union_lower_bound(sets) return arith.Analyzer():union_lower_bound(sets) end

function arith.intersect(sets) return arith.Analyzer():intersect(sets) end

--- The region of a buffer that a statement reads and writes, as Ranges; {}: it does neither.
function arith.domain_touched(stmt, buffer, consider_loads, consider_stores)
  return arith.Analyzer():domain_touched(stmt, buffer, consider_loads, consider_stores)
end

--- Subexpressions that occur `threshold` times or more: { { expr =, count = }, ... }.
function arith.detect_common_subexpr(expr, threshold)
  return arith.Analyzer():detect_common_subexpr(expr, threshold)
end

--- A condition without the variables of `ranges`, which implies the given one for all their values.
function arith.narrow_predicate_expression(condition, ranges)
  return arith.Analyzer():narrow_predicate_expression(condition, ranges)
end

--- An iterator, a part of one, and a sum of such parts: see perilune.arith.iter_map.
arith.IterMark, arith.IterSplitExpr, arith.IterSumExpr =
  iter_map.IterMark, iter_map.IterSplitExpr, iter_map.IterSumExpr

--- Writes indices over iterators with ranges as sums of at most one split each, of independent
-- iterators: { indices = IterSumExprs ({}: there is no such form), errors = strings,
-- padding_predicate = }. `check_level`: "surjective", "bijective", "no_check".
function arith.detect_iter_map(indices, input_iters, predicate, check_level,
    simplify_trivial_iterators)
  return arith.Analyzer():detect_iter_map(indices, input_iters, predicate, check_level,
    simplify_trivial_iterators)
end

--- The indices as the detected form has them, as PrimExprs; unchanged if there is none.
function arith.iter_map_simplify(indices, input_iters, predicate, check_level,
    simplify_trivial_iterators)
  return arith.Analyzer():iter_map_simplify(indices, input_iters, predicate, check_level,
    simplify_trivial_iterators)
end

--- An index as an IterSumExpr, the largest scale first; no checks are made.
function arith.normalize_to_iter_sum(index, input_iters)
  return arith.Analyzer():normalize_to_iter_sum(index, input_iters)
end

--- The PrimExpr of an IterSumExpr or IterSplitExpr.
function arith.normalize_iter_map_to_expr(expr)
  return arith.Analyzer():normalize_iter_map_to_expr(expr)
end

--- Divides bindings into outer and inner iterators, where `sub_iters` make the inner ones: a list
-- of { outer IterMark, inner IterMark } with binding = outer * extent of inner + inner; the
-- extents of the last pair are conditions. {}: they cannot be divided.
function arith.subspace_divide(bindings, input_iters, sub_iters, predicate, check_level,
    simplify_trivial_iterators)
  return arith.Analyzer():subspace_divide(bindings, input_iters, sub_iters, predicate, check_level,
    simplify_trivial_iterators)
end

--- The iterators as functions of the outputs of a detected, bijective map: { [var] = expr }.
function arith.inverse_affine_iter_map(map, outputs)
  return arith.Analyzer():inverse_affine_iter_map(map, outputs)
end

--- The rules of rewrite_simplify: a list of { lhs =, rhs =, guard =, order = }.
function arith.rules() return core.arith_rules() end

return arith
