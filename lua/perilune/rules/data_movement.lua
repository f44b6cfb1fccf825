--- Transposes, pads, slices, broadcasts, concatenations and takes.

return {
  { "same_transpose: transpose(...)", native = "same_transpose",
    reason = "the permutation is the identity", source = "ONNX eliminate_nop_transpose" },
  { "merge_transpose: transpose(...)", native = "merge_transpose",
    reason = "two permutations are one", source = "ONNX fuse_consecutive_transposes" },
  { "same_layout: layout_transform(...)", native = "same_layout",
    reason = "both layouts are the same", source = "TVM SimplifyNoOpTranspose",
    example = "fn (%x: Tensor[(2, 3, 4), float32]) { layout_transform(%x, src_layout=\"NCW\", "
      .. "dst_layout=\"NCW\") }" },
  { "merge_layout: {layout_transform|transpose}(...)", native = "merge_layout",
    reason = "two changes of layout, or one and a permutation, are one",
    source = "TVM SimplifyTranspose" },
  { "merge_behind: transpose(...)", native = "merge_behind",
    reason = "axes that are merged between two transposes are merged behind one" },
  { "no_pad: ?r@nn.pad(?x) => ?x where every(?r.pads, 0)",
    reason = "nothing is added", source = "ONNX eliminate_nop_pad" },
  { "full_slice: strided_slice(...)", native = "full_slice",
    reason = "every element is kept in order", source = "ONNX Runtime EliminateSlice" },
  { "same_expand: ?r@broadcast_to(?x) => ?x where ?r.shape == ?x.shape",
    reason = "the operand has the shape already", source = "ONNX eliminate_nop_expand" },
  { "ones_expand: broadcast_to(?x, shape=?s) => ?x where every(?s, 1) and len(?s) <= ?x.rank",
    reason = "extents of 1 broadcast to the operand's own", source = "ONNX eliminate_nop_expand" },
  { "fold_broadcast_shape: broadcast_to(...)", native = "fold_broadcast_shape",
    reason = "a computed shape is written as a constant with 1 for the operand's own extents" },
  { "no_tile: tile(?x, reps=?r) => ?x where every(?r, 1) and len(?r) <= ?x.rank",
    reason = "each axis is repeated once", source = "ONNX eliminate_nop_tile" },
  { "single_concat: concatenate(...)", native = "single_concat",
    reason = "one operand, or operands without elements", source = "ONNX eliminate_nop_concat" },
  { "merge_concat: concatenate(...)", native = "merge_concat",
    reason = "a concatenation in a concatenation along the same axis",
    source = "ONNX fuse_consecutive_concats" },
  { "rejoin: concatenate(...)", native = "rejoin",
    reason = "all parts of a Split, joined again" },
  { "join_inside: concatenate(...)", native = "join_inside",
    reason = "what is concatenated gets its new axis at once" },
  { "join_extents: concatenate(...)", native = "join_extents",
    reason = "extents of one tensor that follow each other are read at once" },
  { "single_split: ?r@split(?x) => ?x where ?r.shape == ?x.shape",
    reason = "one part", source = "ONNX eliminate_nop_split" },
  { "take_repeated: reshape(...)", native = "take_repeated",
    reason = "elements that are broadcast along a new axis are repeated" },
  { "take_permuted: reshape(...)", native = "take_permuted",
    reason = "reshapes around a transpose that permute positions of one axis are a take" },
  { "take_pieces: concatenate(...)", native = "take_pieces",
    reason = "slices of one tensor that are concatenated are taken at once" },
  { "move_signs: multiply(...)", native = "move_signs", grows = true,
    reason = "(-a, b) * t = (a, b) * (-t1, t2); products with the same t share its signs" },
  { "join_factors: concatenate(multiply(?p, ?c:const), multiply(?p, ?d:const), axis=?a) => "
    .. "multiply(?p, concatenate(?c, ?d, axis=-1)) where ?p.shape[-1] == 1 and ?c.rank == 1 "
    .. "and ?d.rank == 1 and (?a == -1 or ?a == ?p.rank - 1)",
    reason = "products with a column are one product with all their factors" },
  { "take_enumeration: take(...)", native = "take_enumeration",
    reason = "indices that are computed enumerate all positions in order" },
  { "gather_grid: gather_nd(...)", native = "gather_grid",
    reason = "coordinates that are computed enumerate all positions in order" },
  { "take_rows_of_slice: take(?w:const, ?s@strided_slice(?i:const, ?b, ?e, ?a:const, "
    .. "?rest...), axis=0) => strided_slice(take(?w, ?i, axis=0), ?b, ?e, ?a, ?rest..., **?s) "
    .. "where ?s.uses == 1 and ?w.uses == 1 and ?i.rank >= 1 and ?i.size <= ?w.shape[0] and "
    .. "in_range(?i, 0, ?w.shape[0]) and sorted(?a.value)[0] >= 0",
    reason = "rows at constant positions are constant; some of them are a slice" },
  { "take_before_new_axis: take(?w:const, ?e@expand_dims(?i, axes=?a), axis=0) => "
    .. "expand_dims(take(?w, ?i, axis=0), axes=normalize(?a, ?e.rank)) where ?i.rank >= 1 and "
    .. "?e.uses == 1",
    reason = "a new axis comes behind a take, where operators broadcast without it" },
  { "take_of_take: take(?w:const, ?t@take(?c:const, ?i, axis=0), axis=0) => "
    .. "take(take(?w, ?c, axis=0), ?i, axis=0) where ?c.rank == 1 and ?w.rank == 2 and "
    .. "?t.uses == 1 and in_range(?c, 0, ?w.shape[0]) and ?c.size * ?w.shape[1] <= 16384",
    reason = "rows of a constant that a constant selects are a constant" },
  { "gather_of_row: gather(?b@broadcast_to(?c:const, ...), ?i, axis=1) => "
    .. "take(squeeze(?c, axes=[0]), ?i, axis=0) where ?c.rank == 2 and ?c.shape[0] == 1 and "
    .. "?b.rank == 2 and ?b.shape[1] == ?c.shape[1] and ?i.rank == 2 and "
    .. "?i.shape[0] == ?b.shape[0]",
    reason = "elements of equal rows are elements of the one row" },
  { "offset_arange: add(?r@arange(0, ?n, 1), ?p@squeeze(shape_of(_)) | ?p@take(shape_of(_), _)) "
    .. "=> arange(?p, add(?p, ?n), constant(1, ?r.dtype)) where ?r.uses == 1 and ?r.dtype == int64 "
    .. "and ?p.rank == 0 and ?p.dtype == int64",
    reason = "positions that begin behind an extent" },
  { "topk_extent: ?s@shape_of(topk(?x, ?k).0 | topk(?x, ?k).1) => ?k "
    .. "where ?x.rank == 1 and ?k.dtype == ?s.dtype and ?s.shape == [1]",
    reason = "as many elements are left as the operator is asked for" },
  { "take_all: take(...)", native = "take_all", reason = "every position is taken in order" },
  { "take_through_transpose: take(...)", native = "take_through_transpose",
    reason = "a position of a transposed axis is one of the axis itself" },
  { "join_calls: concatenate(...)", native = "join_calls",
    reason = "the same operator on parts of the same tensors works on all of them at once" },
  { "join_heads: concatenate(...)", native = "join_heads",
    reason = "channels of feature maps that are concatenated move behind their pixels at once" },
  { "feature_take: ml.array_feature_extractor(?x, ?i:const) => take(?x, ?i, axis=-1) where "
    .. "?x.rank >= 2 and ?i.rank == 1",
    reason = "features of rows are a take along the last axis" },
  { "take_blocks: {reshape|flatten|squeeze|transpose|concatenate|take}(...)",
    native = "take_blocks",
    reason = "operators that only move blocks of one tensor are one take of them" },
}
