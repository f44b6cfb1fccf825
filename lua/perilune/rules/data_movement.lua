--- Transposes, pads, slices, broadcasts, concatenations and takes.

-- An example for `perilune rules check`: the new shape has an extent of the operand's.
local function computed(g)
  local a, b = g:size(), g:size()
  local x = g:var("float32", { a, g:pick { b, 1 } })
  local own = g.op.take(g.op.shape_of(x), g:ints(0), { axis = 0 })
  return g.op.broadcast_to(x, g.op.concatenate({ own, g:ints(b) }, { axis = 0 }))
end

-- A position of an axis behind a transpose.
local function transposed(g)
  local moved = g.op.transpose(g:var("float32", { g:size(), g:size(), g:size() }),
    { axes = g:pick { { 0, 2, 1 }, { 2, 0, 1 }, { 1, 2, 0 }, { 1, 0, 2 } } })
  local axis = g:below(3)
  return g.op.take(moved, g:number(g:below(moved.type.shape[axis + 1]), "int64"), { axis = axis })
end

return {
  { "same_transpose: transpose(...)", native = "same_transpose",
    reason = "the permutation is the identity", source = "ONNX eliminate_nop_transpose" },
  { "merge_transpose: transpose(...)", native = "merge_transpose",
    reason = "two permutations are one", source = "ONNX fuse_consecutive_transposes" },
  { "no_pad: ?r@nn.pad(?x) => ?x where every(?r.pads, 0)",
    reason = "nothing is added", source = "ONNX eliminate_nop_pad" },
  { "full_slice: strided_slice(...)", native = "full_slice",
    reason = "every element is kept in order", source = "ONNX Runtime EliminateSlice" },
  { "same_expand: ?r@broadcast_to(?x) => ?x where ?r.shape == ?x.shape",
    reason = "the operand has the shape already", source = "ONNX eliminate_nop_expand" },
  { "ones_expand: broadcast_to(?x, shape=?s) => ?x where every(?s, 1) and len(?s) <= ?x.rank",
    reason = "extents of 1 broadcast to the operand's own", source = "ONNX eliminate_nop_expand" },
  { "fold_broadcast_shape: broadcast_to(...)", native = "fold_broadcast_shape",
    reason = "a computed shape is written as a constant with 1 for the operand's own extents",
    example = computed },
  { "no_tile: tile(?x, reps=?r) => ?x where every(?r, 1) and len(?r) <= ?x.rank",
    reason = "each axis is repeated once", source = "ONNX eliminate_nop_tile" },
  { "single_concat: concatenate(...)", native = "single_concat",
    reason = "one operand, or operands without elements", source = "ONNX eliminate_nop_concat" },
  { "merge_concat: concatenate(...)", native = "merge_concat",
    reason = "a concatenation in a concatenation of integers",
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
  { "take_all: take(...)", native = "take_all", reason = "every position is taken in order" },
  { "take_through_transpose: take(...)", native = "take_through_transpose",
    reason = "a position of a transposed axis is one of the axis itself", example = transposed },
}
