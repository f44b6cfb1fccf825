--- Operators that keep the order of elements: reshape, flatten, squeeze,
-- expand_dims.

-- A matrix product between reshapes that only flatten and restore the leading axes.
local flat = "?o@reshape(nn.gemm(?i@reshape(?x), ?w:const, ?b, transA=0, transB=%d, alpha=1, "
  .. "beta=1))"
local restores = "?i.uses == 1 and ?i.rank == 2 and ?b.rank == 1 and ?o.rank > 2 "
  .. "and ?o.shape[-1] == ?b.shape[0] and ?b.shape[0] > 0"
local batch = "reshape(?x, newshape=nonzero(sublist(?o.shape, 0, -1) + [?i.shape[-1]]))"
local flattens = "leading axes are batch axes of a product already"

return {
  { "batched_gemm: " .. flat:format(0) .. " => add(nn.matmul(" .. batch .. ", ?w), ?b) where "
    .. restores, proof = "reassociates", reason = flattens,
    source = "onnxscript broadcast_to_matmul" },
  { "batched_gemm_transposed: " .. flat:format(1) .. " => add(nn.matmul(" .. batch
    .. ", transpose(?w, axes=[1, 0])), ?b) where " .. restores, proof = "reassociates",
    reason = flattens, source = "onnxscript broadcast_to_matmul" },
  { "split_before_take: ?o@reshape(?g@take(?r@reshape(?x), ?k:const, axis=?a)) => take(reshape(?x, "
    .. "newshape=nonzero(sublist(?r.shape, 0, ?a + 1) + sublist(?o.shape, ?a, ?o.rank))), ?k, "
    .. "**?g) where ?k.rank == 0 and ?a >= 0 and sublist(?o.shape, 0, ?a) == "
    .. "sublist(?r.shape, 0, ?a)",
    reason = "the reshape before the take splits the axes, once for all takes" },
  { "transposed_product: transpose(add(nn.matmul(?r@reshape(?t@transpose(?y, axes=?p)), ?w:const), "
    .. "?b:const), axes=[1, 0, 2]) => add(nn.matmul(reshape(transpose(?y, axes=[?p[1], ?p[0]] + "
    .. "sublist(?p, 2, len(?p))), newshape=nonzero([?r.shape[1], ?r.shape[0], ?r.shape[2]])), ?w), "
    .. "?b) where ?r.rank == 3 and ?w.rank == 2 and ?b.rank == 1 and sublist(?r.shape, 0, 2) == "
    .. "sublist(?t.shape, 0, 2)",
    reason = "batch axes change places in the transpose before the product",
    source = "ONNX Runtime TransposeOptimizer" },
  { "transposed_batch: transpose(?r@reshape(add(nn.matmul(transpose(?x, axes=[1, 0, 2]), "
    .. "?w:const), ?b:const)), axes=?p) => transpose(reshape(add(nn.matmul(?x, ?w), ?b), "
    .. "newshape=nonzero([?r.shape[1], ?r.shape[0]] + sublist(?r.shape, 2, ?r.rank))), "
    .. "axes=compose([1, 0, 2, 3], ?p)) where ?r.rank == 4 and ?w.rank == 2 and ?b.rank == 1 "
    .. "and ?p[0] == 1 and ?r.shape[0] == ?x.shape[1] and ?r.shape[1] == ?x.shape[0]",
    reason = "batch axes change places in the transpose behind the product",
    source = "ONNX Runtime TransposeOptimizer" },
  { "same_reshape: {reshape|flatten|squeeze|expand_dims}(...)", native = "same_reshape",
    reason = "the result has the shape of what the chain began with",
    source = "ONNX eliminate_nop_reshape; TVM SimplifyReshape" },
  { "merge_reshape: reshape(...)", native = "merge_reshape",
    reason = "the last of several reshapes alone gives the shape",
    source = "TVM SimplifyReshape" },
  { "merge_reverse_reshape: ?r@contrib_reverse_reshape({reshape|contrib_reverse_reshape}(?x)) => "
    .. "reshape(?x, newshape=nonzero(?r.shape)) where product(?r.shape) >= 0",
    reason = "the last of several reshapes alone gives the shape",
    source = "TVM SimplifyReshape",
    example = "fn (%x: Tensor[(2, 3, 4), float32]) { contrib_reverse_reshape(reshape(%x, "
      .. "newshape=[6, 4]), newshape=[-1, 4]) }" },
  { "fold_reshape_shape: reshape(...)", native = "fold_reshape_shape",
    reason = "a computed shape is written as a constant with 0 and -1",
    source = "ONNX Runtime ReshapeFusion" },
  { "merge_squeeze: squeeze(...)", native = "merge_squeeze",
    reason = "axes of both are removed at once", source = "ONNX fuse_consecutive_squeezes" },
  { "merge_unsqueeze: expand_dims(...)", native = "merge_unsqueeze",
    reason = "axes of both are added at once", source = "ONNX fuse_consecutive_unsqueezes" },
  { "reshape_at_once: {expand_dims|squeeze|flatten}(...)", native = "reshape_at_once",
    reason = "a reshape gives the shape of what follows it too", source = "TVM SimplifyReshape" },
  { "pad_behind: {reshape|expand_dims|squeeze}(...)", native = "pad_behind",
    reason = "a pad comes after axes of extent 1 are added or removed, before a window" },
  -- Not of halves: ONNX Runtime computes elementwise operators that follow each other in float32,
  -- so that a new axis between two of them decides where it rounds.
  { "new_axis_first: expand_dims(?u@?f{elementwise}(?x), axes=?a) => ?f(expand_dims(?x, "
    .. "axes=?a), **?u) where ?u.uses == 1 and ?u.dtype ~= float16 and ?u.dtype ~= bfloat16",
    reason = "a new axis comes before an elementwise operator, where it may join another one" },
  { "removed_axis_first: squeeze(?u@cast(?x), axes=?a) => cast(squeeze(?x, axes=?a), **?u) where "
    .. "?u.uses == 1 and ?u.dtype ~= float16 and ?u.dtype ~= bfloat16",
    reason = "an axis is removed before a cast, where it may cancel a new one" },
  { "new_axis_before_product: ?r@expand_dims(?u@multiply(?x, ?w:const), axes=?a) => "
    .. "multiply(expand_dims(?x, axes=?a), ?w) where ?u.uses == 1 and ?w.rank == 1 and "
    .. "?u.dtype ~= float16 and ?u.dtype ~= bfloat16 and "
    .. "?x.rank >= 1 and ?r.rank >= 1 and sublist(sorted(normalize(?a, ?r.rank)), -1, len(?a)) "
    .. "~= [?r.rank - 1]",
    reason = "a new axis comes before a product along the last axis" },
  { "squeezed_reshape: ?o@squeeze(?r@reshape(?x)) => reshape(?x, newshape=nonzero(?o.shape)) where "
    .. "?r.uses == 1 and ?o.rank >= 1",
    reason = "the last of several reshapes alone gives the shape", source = "TVM SimplifyReshape" },
  { "moved_unit_axes: ?o@{reshape|flatten|squeeze|expand_dims}(?t@transpose(?x, axes=?p)) => "
    .. "reshape(?x, newshape=nonzero(?o.shape)) where ?t.uses == 1 and "
    .. "without(?p, ones(?t.shape)) == sorted(without(?p, ones(?t.shape)))",
    reason = "a transpose that only moves axes of extent 1 keeps the order of the elements" },
  { "unit_axes_moved: ?t@transpose(?o@{reshape|flatten|squeeze|expand_dims}(?x), axes=?p) => "
    .. "reshape(?x, newshape=nonzero(?t.shape)) where ?o.uses == 1 and "
    .. "without(?p, ones(?t.shape)) == sorted(without(?p, ones(?t.shape)))",
    reason = "a transpose that only moves axes of extent 1 keeps the order of the elements" },
  { "take_one: squeeze(...)", native = "take_one",
    reason = "a slice or part of one position whose axis is removed is a take" },
  { "take_vector: expand_dims(...)", native = "take_vector",
    reason = "an axis that is removed and restored is kept instead" },
  { "factor_reshape: {reshape|flatten|squeeze|expand_dims}(...)",
    native = "factor_reshape",
    reason = "reshapes around a transpose that merge and split the same axes cancel out" },
  { "sink_reshape: reshape(...)", native = "sink_reshape",
    reason = "a reshape behind a transpose that splits axes moves before it" },
  { "split_behind: reshape(...)", native = "split_behind",
    reason = "an axis that is split moves as a whole, and is split behind the transpose" },
  { "reshape_around: {reshape|flatten|squeeze|expand_dims}(...)", native = "reshape_around",
    reason = "reshapes around an elementwise operator cancel out" },
  { "keep_axes: {reshape|expand_dims}(...)", native = "keep_axes",
    reason = "a reduction keeps the axes that are restored behind it",
    source = "ONNX fuse_consecutive_reduce_unsqueeze" },
  { "drop_axes: {reshape|flatten|squeeze}(...)", native = "drop_axes",
    reason = "a reduction does not keep the axes that are removed behind it" },
  { "pooled_vector: ?r@{reshape|flatten|squeeze}(?p@nn.global_avg_pool(?x:float)) => "
    .. "mean(?x, axes=sublist(iota(?x.rank), 2, ?x.rank), keepdims=0) where ?x.rank > 2 and "
    .. "?r.shape == sublist(?x.shape, 0, 2) and ?p.uses == 1", proof = "reassociates",
    reason = "a pooled vector is a mean without the spatial axes" },
  { "pooled_transpose: transpose(?p@nn.global_avg_pool(?x:float), axes=?a) => transpose(mean(?x, "
    .. "axes=sublist(iota(?x.rank), 2, ?x.rank), keepdims=1), axes=?a) where ?p.uses == 1 and "
    .. "?x.rank > 2", proof = "reassociates",
    reason = "a transpose moves before a mean, but not before a pool" },
}
