--- Comparisons, selections and limits.

-- The limits of a clip are among the numbers of the dtype that it is cast to.
local within = "?a <= ?b and ((?c.dtype == uint8 and ?a >= 0 and ?b <= 255) or "
  .. "(?c.dtype == int8 and ?a >= -128 and ?b <= 127) or "
  .. "(?c.dtype == uint16 and ?a >= 0 and ?b <= 65535) or "
  .. "(?c.dtype == int16 and ?a >= -32768 and ?b <= 32767))"

-- Integers of 8 bits times a positive number that neither overflows nor vanishes.
local dequantized = "?q.dtype == float32 and (?x.dtype == int8 or ?x.dtype == uint8) "
  .. "and ?s.rank == 0 and ?z.rank == 0 and scalar(?s) > 1e-30 and scalar(?s) < 1e30"

return {
  { "not_not: logical_not(logical_not(?x)) => ?x", reason = "not not x = x" },
  { "negative_negative: negative(negative(?x)) => ?x", reason = "-(-x) = x" },
  { "idempotent: ?f@{nn.relu|abs|ceil|floor|round|sign|trunc}(?r@{nn.relu|abs|ceil|floor|round"
    .. "|sign|trunc}(_)) => ?r where ?f.op == ?r.op",
    reason = "applying it twice changes nothing more",
    source = "ONNX eliminate_consecutive_idempotent_ops" },
  { "where_not: where(logical_not(?c), ?x, ?y) => where(?c, ?y, ?x)",
    reason = "the operands change places",
    source = "ONNX rewrite_where; ONNX Runtime NotWhereFusion" },
  { "where_same: ?r@where(_, ?x, ?x) => ?x where ?r.shape == ?x.shape",
    reason = "both choices are the same" },
  { "where_true: ?r@where(true, ?x, _) => ?x where ?r.shape == ?x.shape",
    reason = "always the first" },
  { "where_false: ?r@where(false, _, ?x) => ?x where ?r.shape == ?x.shape",
    reason = "always the second" },
  { "drop_tautology: {where|add|subtract|multiply|logical_and|logical_or}(...)",
    native = "drop_tautology", grows = true,
    reason = "a position is never negative; the condition that is left is broadcast by its user" },
  { "where_true_broadcast: ?r@where(?c@broadcast_to(?t:splat, ...), ?x, _) => broadcast_to(?x, "
    .. "**?c) where scalar(?t) == 1 and ?r.shape == ?c.shape",
    reason = "always the first, of the same shape" },
  { "where_false_broadcast: ?r@where(?c@broadcast_to(?t:splat, ...), _, ?x) => broadcast_to(?x, "
    .. "**?c) where scalar(?t) == 0 and ?r.shape == ?c.shape",
    reason = "always the second, of the same shape" },
  { "select_number: multiply(?k@cast(?b), ?c:const) => where(?b, ?c, constant(0, "
    .. "?c.dtype)) where ?b.dtype == bool "
    .. "and (?k.dtype == int64 or ?k.dtype == int32) and ?k.uses == 1 and ?c.size == 1 and "
    .. "?c.rank <= ?b.rank",
    reason = "a truth value selects the factor or 0" },
  { "relu_max: maximum(?x:float, 0) => nn.relu(?x)", reason = "max(x, 0)",
    source = "onnxscript min_max_to_clip" },
  { "clip_clip: clip(?c@clip(?x, a_min=?a, a_max=?b), a_min=?d, a_max=?e) => clip(?x, "
    .. "a_min=larger(?a, ?d), a_max=smaller(?b, ?e)) where larger(?a, ?d) <= smaller(?b, ?e)",
    reason = "the narrower limits hold", source = "TVM SimplifyClip; onnxscript fuse_relus_clips" },
  { "relu_clip: nn.relu(clip(?x, a_min=?a, a_max=?b)) => clip(?x, a_min=larger(?a, 0), a_max=?b) "
    .. "where ?b >= 0", reason = "relu is a lower limit of 0",
    source = "ONNX Runtime FuseReluClip; onnxscript fuse_relus_clips" },
  { "clip_relu: clip(nn.relu(?x), a_min=?a, a_max=?b) => clip(?x, a_min=larger(?a, 0), a_max=?b) "
    .. "where ?b >= 0", reason = "relu is a lower limit of 0",
    source = "ONNX Runtime FuseReluClip; onnxscript fuse_relus_clips" },
  { "clip_cast: ?r@cast(?c@cast(?k@clip(?x:int, a_min=?a, a_max=?b))) => cast(?k, **?r) where "
    .. within, reason = "integers within the limits of a dtype pass through it unchanged",
    source = "TVM SimplifyClipAndConsecutiveCast" },
  { "clip_cast_float: ?r@cast(?c@cast(?k@clip(?x:float, a_min=?a, a_max=?b))) => cast(?k, **?r) "
    .. "where not onnx and (?r.dtype == int16 or ?r.dtype == int32 or ?r.dtype == int64) and "
    .. "contains(?r.dtype, ?c.dtype) and " .. within, proof = "approximates",
    reason = "numbers within the limits of a dtype are truncated alike; a NaN is no integer",
    source = "TVM SimplifyClipAndConsecutiveCast",
    example = "fn (%x: Tensor[(3, 5), float32]) { cast(cast(clip(%x, a_min=0f, a_max=255f), "
      .. "dtype=\"uint8\"), dtype=\"int32\") }" },
  { "clip_cast_clip: clip(?c@cast(clip(?x:int, a_min=?a, a_max=?b)), a_min=?d, a_max=?e) => "
    .. "cast(clip(?x, a_min=larger(?a, ?d), a_max=smaller(?b, ?e)), **?c) where "
    .. "larger(?a, ?d) <= smaller(?b, ?e) and " .. within,
    reason = "the narrower limits hold, and a cast within them keeps the order",
    source = "TVM SimplifyClip" },
  { "argsort_dequantized: ?r@argsort(?q@qnn.dequantize(?x, ?s:const, ?z)) => "
    .. "argsort(?x, **?r) where " .. dequantized,
    reason = "dequantisation keeps the order of elements", source = "TVM SimplifyDQArgSort",
    example = "fn (%x: Tensor[(2, 7), int8]) { argsort(qnn.dequantize(%x, 0.5f, 3), axis=1) }" },
  { "arg_dequantized: ?r@?f{argmax|argmin}(?q@qnn.dequantize(?x, ?s:const, ?z)) => "
    .. "?f(?x, **?r) where " .. dequantized, relay = true,
    reason = "dequantisation keeps the order of elements",
    source = "TVM SimplifyDQArgMax, SimplifyDQArgMin",
    example = "fn (%x: Tensor[(2, 7), int8]) { argmax(qnn.dequantize(%x, 0.5f, 3), axis=[1]) }" },
  { "clip_uint8: clip(?x, a_min=?a, a_max=?b) => ?x where ?x.dtype == uint8 and ?a <= 0 "
    .. "and ?b >= 255",
    reason = "the limits are those of the dtype", source = "TVM SimplifyCastClip" },
  { "clip_int8: clip(?x, a_min=?a, a_max=?b) => ?x where ?x.dtype == int8 and ?a <= -128 "
    .. "and ?b >= 127",
    reason = "the limits are those of the dtype", source = "TVM SimplifyCastClip" },
}
