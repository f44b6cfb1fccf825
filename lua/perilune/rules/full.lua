--- Tensors filled with one value, and operators that take a shape or dtype from another
-- tensor.

return {
  { "zeros_like: zeros_like(?x:static) => zeros(shape=?x.shape, dtype=?x.dtype)",
    reason = "the shape is known", source = "TVM ConcretizeZerosLike" },
  { "ones_like: ones_like(?x:static) => ones(shape=?x.shape, dtype=?x.dtype)",
    reason = "the shape is known", source = "TVM ConcretizeOnesLike" },
  { "full_like: full_like(?x:static, ?v) => full(?v, shape=?x.shape, dtype=?x.dtype)",
    reason = "the shape is known", source = "TVM ConcretizeFullLike" },
  { "reshape_like: ?r@reshape_like(?x, _) => "
    .. "reshape(?x, newshape=nonzero(?r.shape)) where product(?r.shape) >= 0",
    reason = "the shape is known", source = "TVM ConcretizeReshapeLike" },
  { "broadcast_to_like: broadcast_to_like(?x, ?y:static) => broadcast_to(?x, shape=?y.shape)",
    reason = "the shape is known", source = "TVM ConcretizeBroadcastToLike" },
  { "collapse_sum_like: collapse_sum_like(?x, ?y:static) => collapse_sum_to(?x, shape=?y.shape)",
    reason = "the shape is known", source = "TVM ConcretizeCollapseSumLike" },
  { "cast_like: cast_like(?x, ?y, saturate=1, round_mode=\"up\") => cast(?x, dtype=?y.dtype)",
    reason = "the dtype is known", source = "TVM ConcretizeCastLike" },
  { "add_zeros: ?r@{add|subtract}(?x, zeros(...) | zeros_like(...)) => ?x "
    .. "where ?r.shape == ?x.shape", reason = "x + 0 = x", source = "TVM FullElementwise" },
  { "multiply_ones: ?r@{multiply|divide}(?x, ones(...) | ones_like(...)) => ?x "
    .. "where ?r.shape == ?x.shape", reason = "x * 1 = x", source = "TVM FullElementwise" },
  { "zeros_add: ?r@add(zeros(...) | zeros_like(...), ?x) => ?x where ?r.shape == ?x.shape",
    reason = "0 + x = x", source = "TVM FullElementwise" },
  { "ones_multiply: ?r@multiply(ones(...) | ones_like(...), ?x) => ?x "
    .. "where ?r.shape == ?x.shape",
    reason = "1 * x = x", source = "TVM FullElementwise" },
  { "zeros_right: ?f{multiply|divide}(?x, ?z@zeros(...)) => ?f(?x, constant(0, ?z.dtype)) "
    .. "where ?x.dtype == ?z.dtype and ?f.shape == ?x.shape",
    reason = "the operator broadcasts the value itself", source = "TVM FullElementwise" },
  { "zeros_left: ?f{subtract|multiply|divide}(?z@zeros(...), ?x) => ?f(constant(0, ?z.dtype), ?x) "
    .. "where ?x.dtype == ?z.dtype and ?f.shape == ?x.shape",
    reason = "the operator broadcasts the value itself", source = "TVM FullElementwise" },
  { "ones_right: ?f{add|subtract}(?x, ?z@ones(...)) => ?f(?x, constant(1, ?z.dtype)) "
    .. "where ?x.dtype == ?z.dtype and ?f.shape == ?x.shape",
    reason = "the operator broadcasts the value itself", source = "TVM FullElementwise" },
  { "ones_left: ?f{add|subtract|divide}(?z@ones(...), ?x) => ?f(constant(1, ?z.dtype), ?x) "
    .. "where ?x.dtype == ?z.dtype and ?f.shape == ?x.shape",
    reason = "the operator broadcasts the value itself", source = "TVM FullElementwise" },
  { "full_right: ?f{add|subtract|multiply|divide}(?x, full(?v)) => ?f(?x, ?v) "
    .. "where ?x.dtype == ?v.dtype and ?f.shape == ?x.shape",
    reason = "the operator broadcasts the value itself", source = "TVM FullElementwise" },
  { "full_left: ?f{add|subtract|multiply|divide}(full(?v), ?x) => ?f(?v, ?x) "
    .. "where ?x.dtype == ?v.dtype and ?f.shape == ?x.shape",
    reason = "the operator broadcasts the value itself", source = "TVM FullElementwise" },
  { "full_constant_right: ?f{add|subtract|multiply|divide}(?x:dynamic, ?c:splat) => "
    .. "?f(?x, constant(scalar(?c), ?c.dtype)) where ?c.size > 1 and ?c.shape == ?x.shape",
    reason = "the operator broadcasts the value itself", source = "TVM FullElementwise" },
  { "full_constant_left: ?f{add|subtract|multiply|divide}(?c:splat, ?x:dynamic) => "
    .. "?f(constant(scalar(?c), ?c.dtype), ?x) where ?c.size > 1 and ?c.shape == ?x.shape",
    reason = "the operator broadcasts the value itself", source = "TVM FullElementwise" },
  { "double: add(?x, ?x) => multiply(?x, 2)", reason = "x + x = 2 * x",
    source = "TVM SimplifyAdd" },
}
