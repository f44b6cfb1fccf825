--- Takes and gathers at constant positions; selections that decide nothing.

return {
  { "gather_rows: gather_nd(?x, ?i:const, batch_dims=0, relay=0) => take(?x, squeeze(?i, "
    .. "axes=[-1]), axis=0) where ?i.rank >= 2 and ?i.shape[-1] == 1 and ?x.rank >= 1 and "
    .. "?i.dtype == int64", grows = true,
    reason = "an index of one axis selects rows", source = "ONNX GatherND" },
  { "gather_new_axis: gather_nd(?x, ?e@expand_dims(?i, axes=?a), batch_dims=0, relay=0) => "
    .. "take(?x, ?i, axis=0) where ?i.rank >= 1 and ?x.rank >= 1 and len(?a) == 1 and "
    .. "normalize(?a, ?e.rank)[0] == ?e.rank - 1",
    reason = "an index of one axis selects rows", source = "ONNX GatherND" },
  { "reshape_positions: ?r@reshape(?t@take(?w, ?i:const, axis=0)) => take(?w, reshape(?i, "
    .. "newshape=nonzero(sublist(?r.shape, 0, ?r.rank - ?w.rank + 1))), axis=0) where ?t.uses == 1 "
    .. "and ?i.rank >= 1 and ?w.rank >= 2 and ?r.rank > ?w.rank and ?i.size > 0 and "
    .. "sublist(?r.shape, ?r.rank - ?w.rank + 1, ?r.rank) == sublist(?w.shape, 1, ?w.rank) and "
    .. "product(sublist(?r.shape, 0, ?r.rank - ?w.rank + 1)) == ?i.size",
    reason = "positions have the shape that the axes of a table get behind the take" },
  { "take_columns: transpose(?t@take(?w:const, ?i:const, axis=0), axes=?p) => take(transpose(?w, "
    .. "axes=[1, 0]), ?i, axis=1) where ?t.uses == 1 and ?w.rank == 2 and ?i.rank >= 1 and "
    .. "?p == [?t.rank - 1] + iota(?t.rank - 1)",
    reason = "the rows of a table are the columns of its transpose" },
  { "softplus_threshold: ?r@where(greater(?x, ?t:scalar), ?x, ?s@nn.softplus(?x)) => ?s where "
    .. "scalar(?t) >= 17 and ?x.dtype == float32 and ?r.shape == ?x.shape", proof = "approximates",
    reason = "log(1 + exp(x)) is x beyond the threshold, in float32", source = "torch softplus",
    example = "fn (%x: Tensor[(3, 5), float32]) { where(greater(%x, 20f), %x, nn.softplus(%x)) }" },
  { "where_where: ?r@where(?c, ?x, where(?c, _, ?y)) => where(?c, ?x, ?y) where "
    .. "?c.shape == ?r.shape",
    reason = "the second selection by one condition is decided by the first" },
  { "where_where_first: ?r@where(?c, where(?c, ?x, _), ?y) => where(?c, ?x, ?y) where "
    .. "?c.shape == ?r.shape",
    reason = "the second selection by one condition is decided by the first" },
}
