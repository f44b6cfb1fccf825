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

-- Examples for `perilune rules check`. Parts of a tensor that are joined again:
local function parts(g)
  local a, b = g:size(), g:size()
  local x = g:var("float32", { g:size(), a + b, g:size() })
  return x, a, b
end

local function split_and_joined(g)
  local x, a, b = parts(g)
  local one, two = g.op.split(x, g:ints(a, b), { axis = 1, n_results = 2 }):unpack()
  return g.op.concatenate({ one, two }, { axis = g:pick { 1, -2 } })
end

local function slices_joined(g)
  local x, a = parts(g)
  local function slice(from, to)
    return g.op.strided_slice(x, g:ints(from), g:ints(to), g:ints(1), g:ints(1))
  end
  return g.op.concatenate({ slice(a, math.maxinteger), slice(0, a) }, { axis = 1 })
end

-- Operands that get the same new axis; along it, or along another one.
local function new_axes(g)
  local n, along = g:size(), g:pick { true, false }
  local function operand()
    return g.op.expand_dims(g:var("float32", { n, along and 1 or g:size() }), g:ints(2))
  end
  return g.op.concatenate({ operand(), operand(), operand() }, { axis = along and 2 or 1 })
end

local function extents(g)
  local x = g:var("float32", g:shape(3))
  local first = g.op.shape_of(x, { start = 0, ["end"] = 1 })
  local rest = g.op.shape_of(x, { start = 1, ["end"] = g:pick { 2, 3 } })
  return g.op.concatenate({ first, rest, g:ints(2) }, { axis = 0 })
end

-- Heads that are repeated by a broadcast along a new axis.
local function repeated(g)
  local a, b, c, times = g:extent(), g:extent(), g:extent(), g:below(3) + 2
  local x = g.op.expand_dims(g:var("float32", { a, b, c }), g:ints(2))
  local spread = g.op.broadcast_to(x, g:ints(a, b, times, c))
  return g.op.reshape(spread, { newshape = { a, b * times, c } })
end

-- Half of a vector is negated, as in rotary embeddings.
local function half_negated(g)
  local rows, n, m = g:size(), g:extent(), g:extent()
  local minus = g.op.negative(g:var("float32", { rows, n }))
  local rotated = g.op.concatenate({ minus, g:var("float32", { rows, m }) }, { axis = -1 })
  return g.op.multiply(rotated, g:var("float32", g:pick { { n + m }, { rows, n + m } }))
end

-- Indices and coordinates that enumerate all positions.
local function positions(g, n, ...)
  local range = g.op.arange(g:number(0, "int64"), g:number(n, "int64"), g:number(1, "int64"))
  return g.op.expand_dims(range, g:ints(...))
end

local function all_taken(g)
  local n, m = g:extent(), g:extent()
  local rows = g.op.multiply(positions(g, n, 1), g:number(m, "int64"))
  local x = g:var("float32", { n * m, g:size() })
  return g.op.take(x, g.op.add(rows, positions(g, m, 0)), { axis = 0 })
end

local function all_gathered(g)
  local n, m = g:extent(), g:extent()
  local function coordinate(y)
    return g.op.expand_dims(g.op.broadcast_to(y, g:ints(n, m)), g:ints(2))
  end
  local grid = g.op.concatenate({ coordinate(positions(g, n, 1)),
    coordinate(positions(g, m, 0)) }, { axis = 2 })
  return g.op.gather_nd(g:var("float32", { n, m, g:size() }), grid)
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
  { "rejoin: concatenate(...)", native = "rejoin", example = split_and_joined,
    reason = "all parts of a Split, joined again" },
  { "join_inside: concatenate(...)", native = "join_inside", example = new_axes,
    reason = "what is concatenated gets its new axis at once" },
  { "join_extents: concatenate(...)", native = "join_extents", example = extents,
    reason = "extents of one tensor that follow each other are read at once" },
  { "single_split: ?r@split(?x) => ?x where ?r.shape == ?x.shape",
    reason = "one part", source = "ONNX eliminate_nop_split" },
  { "take_repeated: reshape(...)", native = "take_repeated", example = repeated,
    reason = "elements that are broadcast along a new axis are repeated" },
  { "take_pieces: concatenate(...)", native = "take_pieces", example = slices_joined,
    reason = "slices of one tensor that are concatenated are taken at once" },
  { "move_signs: multiply(...)", native = "move_signs", grows = true, example = half_negated,
    reason = "(-a, b) * t = (a, b) * (-t1, t2); products with the same t share its signs" },
  { "join_factors: concatenate(multiply(?p, ?c:const), multiply(?p, ?d:const), axis=?a) => "
    .. "multiply(?p, concatenate(?c, ?d, axis=-1)) where ?p.shape[-1] == 1 and ?c.rank == 1 "
    .. "and ?d.rank == 1 and (?a == -1 or ?a == ?p.rank - 1)",
    reason = "products with a column are one product with all their factors" },
  { "take_enumeration: take(...)", native = "take_enumeration", example = all_taken,
    reason = "indices that are computed enumerate all positions in order" },
  { "gather_grid: gather_nd(...)", native = "gather_grid", example = all_gathered,
    reason = "coordinates that are computed enumerate all positions in order" },
  { "take_all: take(...)", native = "take_all", reason = "every position is taken in order" },
  { "take_through_transpose: take(...)", native = "take_through_transpose",
    reason = "a position of a transposed axis is one of the axis itself", example = transposed },
}
