--- Conversions of dtypes.

return {
  { "same_cast: ?r@cast(?x) => ?x where ?r.dtype == ?x.dtype",
    reason = "a cast to the operand's own dtype", source = "ONNX eliminate_nop_cast" },
  { "same_cast_like: ?r@cast_like(?x, _) => ?x where ?r.dtype == ?x.dtype",
    reason = "a cast to the operand's own dtype", source = "ONNX eliminate_nop_cast" },
  { "merge_cast: ?r@cast(?c@cast(?x)) => cast(?x, **?r) where contains(?c.dtype, ?x.dtype)",
    reason = "a cast to a wider dtype in between loses nothing",
    source = "TVM SimplifyConsecutiveCast" },
  { "narrow_cumsum: ?r@cast(?s@cumsum(?c@cast(?x), ?axis)) => cumsum(cast(?x, **?r), ?axis, **?s) "
    .. "where ?x.dtype == bool and ?c.dtype == int64 and ?r.dtype == int32 and ?s.uses == 1",
    reason = "a running sum of zeros and ones is the same modulo 2^32" },
}
