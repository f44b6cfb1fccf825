--- Comparisons, selections and limits.

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
    .. "(?c.dtype == uint8 and ?a >= 0 and ?b <= 255) or (?c.dtype == int8 and ?a >= -128 and "
    .. "?b <= 127) or (?c.dtype == uint16 and ?a >= 0 and ?b <= 65535) or (?c.dtype == int16 and "
    .. "?a >= -32768 and ?b <= 32767)",
    reason = "integers within the limits of a dtype pass through it unchanged",
    source = "TVM SimplifyClipAndConsecutiveCast" },
  { "clip_uint8: clip(?x, a_min=?a, a_max=?b) => ?x where ?x.dtype == uint8 and ?a <= 0 "
    .. "and ?b >= 255",
    reason = "the limits are those of the dtype", source = "TVM SimplifyCastClip" },
  { "clip_int8: clip(?x, a_min=?a, a_max=?b) => ?x where ?x.dtype == int8 and ?a <= -128 "
    .. "and ?b >= 127",
    reason = "the limits are those of the dtype", source = "TVM SimplifyCastClip" },
}
