--- Conversions of dtypes.

return {
  { "same_cast: ?r@cast(?x) => ?x where ?r.dtype == ?x.dtype",
    reason = "a cast to the operand's own dtype", source = "ONNX eliminate_nop_cast" },
  { "same_cast_like: ?r@cast_like(?x, _) => ?x where ?r.dtype == ?x.dtype",
    reason = "a cast to the operand's own dtype", source = "ONNX eliminate_nop_cast" },
  { "merge_cast: ?r@cast(?c@cast(?x)) => cast(?x, **?r) where contains(?c.dtype, ?x.dtype)",
    reason = "a cast to a wider dtype in between loses nothing",
    source = "TVM SimplifyConsecutiveCast" },
}
