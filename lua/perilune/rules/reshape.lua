--- Operators that keep the order of elements: reshape, flatten, squeeze,
-- expand_dims.

-- A matrix product between reshapes that only flatten and restore the leading axes.
local flat = "?o@reshape(nn.gemm(?i@reshape(?x), ?w:const, ?b, transA=0, transB=%d, alpha=1, "
  .. "beta=1))"
local restores = "?i.uses == 1 and ?i.rank == 2 and ?b.rank == 1 and ?o.rank > 2 "
  .. "and ?o.shape[-1] == ?b.shape[0] and ?b.shape[0] > 0"
local batch = "reshape(?x, newshape=nonzero(sublist(?o.shape, 0, -1) + [?i.shape[-1]]))"
local flattens = "leading axes are batch axes of a product already"

-- Examples for `perilune rules check`. Axes that are merged, moved and split again:
local function factored(g)
  local a, b, c = g:size(), g:size(), g:size()
  local first = g:pick { true, false }
  local x = g.op.reshape(g:var("float32", { a, b, c }),
    { newshape = first and { a * b, c } or { a, b * c } })
  local moved = g.op.transpose(x, { axes = { 1, 0 } })
  return g.op.reshape(moved, { newshape = first and { c, a, b } or { b, c, a } })
end

-- The new shape has an extent of the operand's, and another one.
local function computed(g)
  local a, b, c = g:size(), g:size(), g:size()
  local x = g:var("float32", { a, b, c })
  local own = g.op.take(g.op.shape_of(x), g:ints(g:pick { 0, 0, 1, 2 }), { axis = 0 })
  return g.op.reshape(x, g.op.concatenate({ own, g:ints(g:pick { -1, b * c }) }, { axis = 0 }))
end

-- Axes that are split behind a transpose.
local function split_late(g)
  local a, b, c, d = g:size(), g:size(), g:size(), g:size()
  local x = g.op.reshape(g:var("float32", { a * b * c, d }), { newshape = { a, b * c, d } })
  local moved = g.op.transpose(x, { axes = { 1, 0, 2 } })
  return g.op.reshape(moved, { newshape = { b, c, a, d } })
end

-- One position of an axis, which is removed, and restored for a vector of positions.
local function position(g)
  local x, axis = g:var(g:any_dtype "float32", { g:size(), g:size(), g:size() }), g:below(3)
  local at = g:below(x.type.shape[axis + 1])
  return x, axis, at
end

local function one(g)
  local x, axis, at = position(g)
  if g:below(4) == 3 then at = -1 end
  local stop = at == -1 and math.maxinteger or at + 1
  local slice = g.op.strided_slice(x, g:ints(at), g:ints(stop), g:ints(axis), g:ints(1))
  return g.op.squeeze(slice, g:ints(axis))
end

local function vector(g)
  local x, axis, at = position(g)
  local taken = g.op.take(x, g:number(at, "int64"), { axis = axis })
  return g.op.expand_dims(taken, g:ints(axis))
end

-- A reduction whose axes are restored behind it.
local function restored(g)
  local x = g:var("float32", g:shape(3))
  local axis = g:below(3)
  local name = g:pick { "sum", "max", "mean", "min", "prod", "reduce_l2", "argmax" }
  local attrs = name == "argmax" and { axis = axis, keepdims = 0 }
    or { axes = { axis }, keepdims = 0 }
  return g.op.expand_dims(g.op[name](x, attrs), g:ints(axis))
end

-- A product of the flattened leading axes, with weights as they are or transposed.
local function flattened(trans_b)
  return function(g)
    local op, a, b, k, n = g.op, g:extent(), g:extent(), g:extent(), g:size()
    local x = op.reshape(g:var("float32", { a, b, k }), { newshape = { a * b, k } })
    local w = g:constant("float32", trans_b == 1 and { n, k } or { k, n })
    local product = op.nn.gemm(x, w, g:var("float32", { n }), { transB = trans_b })
    return op.reshape(product, { newshape = { a, b, n } })
  end
end

-- Batch axes in the wrong order before a product, and put right behind it.
local function transposed(g)
  local rows, n_batch, heads, width, n = g:extent(), g:extent(), g:extent(), g:extent(), g:extent()
  local y = g:var("float32", { n_batch, rows, heads, width })
  local t = g.op.transpose(y, { axes = { 1, 0, 2, 3 } })
  local r = g.op.reshape(t, { newshape = { rows, n_batch, heads * width } })
  local product = g.op.nn.matmul(r, g:constant("float32", { heads * width, n }))
  return g.op.transpose(g.op.add(product, g:constant("float32", { n })), { axes = { 1, 0, 2 } })
end

-- The same, where the transpose behind the product restores the order.
local function batch_first(g)
  local rows, n_batch, heads, width = g:extent(), g:extent(), g:extent(), g:extent()
  local x = g.op.transpose(g:var("float32", { n_batch, rows, width }), { axes = { 1, 0, 2 } })
  local product = g.op.nn.matmul(x, g:constant("float32", { width, heads * 2 }))
  local sum = g.op.add(product, g:constant("float32", { heads * 2 }))
  local split = g.op.reshape(sum, { newshape = { rows, n_batch, heads, 2 } })
  return g.op.transpose(split, { axes = g:pick { { 1, 2, 0, 3 }, { 1, 0, 2, 3 }, { 1, 2, 3, 0 } } })
end

-- An axis that is split, and moves as a whole.
local function split_early(g)
  local a, b, c, d = g:size(), g:size(), g:size(), g:size()
  local x = g.op.reshape(g:var("float32", { a, b * c, d }), { newshape = { a, b, c, d } })
  local moved = g.op.transpose(x, { axes = { 0, 3, 1, 2 } })
  return g.op.reshape(moved, { newshape = { a, d * b, c } })
end

-- An axis that is removed before an elementwise operator and restored behind it.
local function around(g)
  local x = g:var("float32", { g:size(), 1, g:size() })
  local y = g.op.squeeze(x, g:ints(1))
  y = g:pick { g.op.multiply(y, g:number(2, "float32")), g.op.tanh(y) }
  return g.op.expand_dims(y, g:ints(1))
end

return {
  { "batched_gemm: " .. flat:format(0) .. " => add(nn.matmul(" .. batch .. ", ?w), ?b) where "
    .. restores, proof = "reassociates", reason = flattens,
    source = "onnxscript broadcast_to_matmul", example = flattened(0) },
  { "batched_gemm_transposed: " .. flat:format(1) .. " => add(nn.matmul(" .. batch
    .. ", transpose(?w, axes=[1, 0])), ?b) where " .. restores, proof = "reassociates",
    reason = flattens, source = "onnxscript broadcast_to_matmul", example = flattened(1) },
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
    source = "ONNX Runtime TransposeOptimizer", example = transposed },
  { "transposed_batch: transpose(?r@reshape(add(nn.matmul(transpose(?x, axes=[1, 0, 2]), "
    .. "?w:const), ?b:const)), axes=?p) => transpose(reshape(add(nn.matmul(?x, ?w), ?b), "
    .. "newshape=nonzero([?r.shape[1], ?r.shape[0]] + sublist(?r.shape, 2, ?r.rank))), "
    .. "axes=compose([1, 0, 2, 3], ?p)) where ?r.rank == 4 and ?w.rank == 2 and ?b.rank == 1 "
    .. "and ?p[0] == 1 and ?r.shape[0] == ?x.shape[1] and ?r.shape[1] == ?x.shape[0]",
    reason = "batch axes change places in the transpose behind the product",
    source = "ONNX Runtime TransposeOptimizer", example = batch_first },
  { "same_reshape: {reshape|flatten|squeeze|expand_dims}(...)", native = "same_reshape",
    reason = "the result has the shape of what the chain began with",
    source = "ONNX eliminate_nop_reshape; TVM SimplifyReshape" },
  { "merge_reshape: reshape(...)", native = "merge_reshape",
    reason = "the last of several reshapes alone gives the shape",
    source = "TVM SimplifyReshape" },
  { "fold_reshape_shape: reshape(...)", native = "fold_reshape_shape",
    reason = "a computed shape is written as a constant with 0 and -1", example = computed,
    source = "ONNX Runtime ReshapeFusion" },
  { "merge_squeeze: squeeze(...)", native = "merge_squeeze",
    reason = "axes of both are removed at once", source = "ONNX fuse_consecutive_squeezes" },
  { "merge_unsqueeze: expand_dims(...)", native = "merge_unsqueeze",
    reason = "axes of both are added at once", source = "ONNX fuse_consecutive_unsqueezes" },
  { "take_one: squeeze(...)", native = "take_one",
    reason = "a slice of one position whose axis is removed is a take", example = one },
  { "take_vector: expand_dims(...)", native = "take_vector",
    reason = "an axis that is removed and restored is kept instead", example = vector },
  { "factor_reshape: {reshape|flatten|squeeze|expand_dims}(...)",
    native = "factor_reshape", example = factored,
    reason = "reshapes around a transpose that merge and split the same axes cancel out" },
  { "sink_reshape: reshape(...)", native = "sink_reshape",
    reason = "a reshape behind a transpose that splits axes moves before it",
    example = split_late },
  { "split_behind: reshape(...)", native = "split_behind", example = split_early,
    reason = "an axis that is split moves as a whole, and is split behind the transpose" },
  { "reshape_around: {reshape|flatten|squeeze|expand_dims}(...)", native = "reshape_around",
    example = around, reason = "reshapes around an elementwise operator cancel out" },
  { "keep_axes: {reshape|expand_dims}(...)", native = "keep_axes",
    reason = "a reduction keeps the axes that are restored behind it",
    source = "ONNX fuse_consecutive_reduce_unsqueeze", example = restored },
}
