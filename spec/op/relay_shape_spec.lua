-- What Relay's operators on shapes, places and images compute, by their
-- definitions, on numbers that can be checked by hand.

local pl = require "perilune"

local computes, refuses = require "spec.op.computed" (it)

local function ints(values) return { "int32", values } end
local function longs(values) return { "int64", values } end
local function floats(values) return { "float32", values } end

local six = floats { { 1, 2, 3 }, { 4, 5, 6 } }

describe("in the shape of another operand", function()
  computes("elements are broadcast and summed back", [[
      (broadcast_to_like(%a, %b), collapse_sum_like(%b, %a), collapse_sum_to(%b, shape=[2, 1]))]],
    { floats { { 1, 2, 3 } }, six },
    { { 1, 2, 3 }, { 1, 2, 3 } }, { { 5, 7, 9 } }, { { 6 }, { 15 } })
  computes("the first ones are kept", "(slice_like(%a, %b), slice_like(%a, %b, axes=[1]))",
    { six, floats { { 0, 0 } } }, { { 1, 2 } }, { { 1, 2 }, { 4, 5 } })
  refuses("a sum to a shape that does not broadcast", "collapse_sum_to(%a, shape=[2])", { six },
    "'collapse_sum_to': the shapes do not match each other")
  computes("a buffer forgets as many as are new", "nn.fifo_buffer(%a, %b)",
    { floats { 9 }, floats { 1, 2, 3 } }, { 2, 3, 9 })
  computes("bits stay where they are", "reinterpret(%a, dtype=\"int32\")", { floats { 1, -2 } },
    { 1065353216, -1073741824 })
end)

describe("images", function()
  local line = floats { { { 0, 10 } } }
  computes("are resampled by lines", [[
      (image.resize1d(%a, size=[4]),
       image.resize1d(%a, size=[3], coordinate_transformation_mode="align_corners"),
       image.resize1d(%a, size=[4], method="nearest_neighbor", rounding_method="floor",
                      coordinate_transformation_mode="asymmetric"))]], { line },
    { { { 0, 2.5, 7.5, 10 } } }, { { { 0, 5, 10 } } }, { { { 0, 0, 10, 10 } } })
  computes("are resampled in any layout and dtype", [[
      image.resize2d(%a, size=[1, 3], layout="NHWC", out_dtype="int32",
                     coordinate_transformation_mode="align_corners")]],
    { floats { { { { 1, 2 }, { 3, 6 } } } } }, { { { { 1, 2 }, { 2, 4 }, { 3, 6 } } } })
  computes("are resampled by cubics of Relay's coefficient", [[
      image.resize1d(%a, size=[4], method="cubic", coordinate_transformation_mode="asymmetric")]],
    { floats { { { 0, 16 } } } }, { { { 0, 8, 16, 17 } } })
  computes("are resampled by factors", [[
      (nn.upsampling(%a, scale_h=1f, scale_w=2f),
       nn.upsampling(%a, scale_h=1f, scale_w=2f, method="bilinear"),
       nn.upsampling(%a, scale_h=2f, scale_w=1f, layout="NHWC"))]],
    { floats { { { { 0, 10 } } } } }, { { { { 0, 0, 10, 10 } } } }, { { { { 0, 5, 10, 10 } } } },
    { { { { 0, 10 } }, { { 0, 10 } } } })
  computes("are resampled as operands say", [[
      (dyn.image.resize2d(%a, %b, %c, coordinate_transformation_mode="align_corners"),
       dyn.nn.upsampling(%a, %d, %e))]],
    { floats { { { { 0, 10 } } } }, longs { 1, 3 }, floats { 0 }, floats(1), floats(2) },
    { { { { 0, 5, 10 } } } }, { { { { 0, 0, 10, 10 } } } })
  computes("of three axes are resampled", [[
      nn.upsampling3d(%a, scale_d=1f, scale_h=1f, scale_w=2f,
                      coordinate_transformation_mode="asymmetric")]],
    { floats { { { { { 0, 10 } } } } } }, { { { { { 0, 0, 10, 10 } } } } })
  refuses("are not resampled to other modes", [[
      image.resize1d(%a, size=[4], coordinate_transformation_mode="tf_crop_and_resize")]], { line },
    "'image.resize1d': this mode is not implemented")
end)

describe("places", function()
  computes("of what is not zero", "argwhere(%a)", { ints { { 0, 1 }, { 1, 0 } } },
    { { 0, 1 }, { 1, 0 } })
  computes("are coordinates of flat indices", "unravel_index(%a, %b)",
    { ints { 5, 2 }, ints { 2, 3 } }, { { 1, 0 }, { 2, 2 } })
  refuses("outside of the shape have no coordinates", "unravel_index(%a, %b)",
    { ints { 6 }, ints { 2, 3 } }, "'unravel_index': an index lies outside of the shape")
  computes("of a permutation are inverted", "invert_permutation(%a)", { ints { 2, 0, 1 } },
    { 1, 2, 0 })
  refuses("twice in a permutation", "invert_permutation(%a)", { ints { 0, 0 } },
    "'invert_permutation': the operand is not a permutation")
  computes("in sorted rows", [[
      (searchsorted(%a, %b), searchsorted(%a, %b, right=True, dtype="int64"),
       searchsorted(%c, %d))]],
    { floats { 1, 3, 3, 5 }, floats { 3, 0, 6 }, ints { { 1, 2 }, { 5, 6 } },
      ints { { 2 }, { 7 } } }, { 1, 0, 4 }, { 3, 0, 4 }, { { 1 }, { 2 } })
  computes("of sparse values", [[
      (sparse_to_dense(%a, %b, %c, output_shape=[2, 2]),
       dyn.sparse_to_dense(%a, %d, %b, %c, output_shape=[]))]],
    { ints { { 0, 1 }, { 1, 0 } }, floats { 5, 6 }, floats(-1), longs { 2, 2 } },
    { { -1, 5 }, { 6, -1 } }, { { -1, 5 }, { 6, -1 } })
  refuses("of sparse values outside of the shape", [[
      sparse_to_dense(%a, %b, %c, output_shape=[2])]],
    { ints { 2 }, floats { 5 }, floats(0) },
    "'sparse_to_dense': an index lies outside of the shape")
  computes("by one tensor of indices an axis", [[
      %0 = (%a, %b, %c);
      adv_index(%0)]],
    { six, longs { { 0 }, { 1 } }, longs { 0, -1 } }, { { 1, 3 }, { 4, 6 } })
end)

describe("parts", function()
  computes("behind the end of a sequence are masked", [[
      (sequence_mask(%a, %b, mask_value=-1f), sequence_mask(%a, %c, axis=1))]],
    { floats { { 1, 2 }, { 3, 4 }, { 5, 6 } }, ints { 1, 3 }, ints { 0, 1, 2 } },
    { { 1, 2 }, { -1, 4 }, { -1, 6 } }, { { 0, 0 }, { 3, 0 }, { 5, 6 } })
  computes("are replaced", "strided_set(%a, %b, %c, %d, %e)",
    { floats { { 1, 2, 3 }, { 4, 5, 6 } }, floats { { 70, 90 } }, ints { -1, 0 }, ints { 2, 9 },
      ints { 1, 2 } }, { { 1, 2, 3 }, { 70, 5, 90 } })
  refuses("of another shape are not replaced", "strided_set(%a, %b, %c, %d, %e)",
    { six, floats { { 70 } }, ints { 0, 0 }, ints { 1, 2 }, ints { 1, 1 } },
    "'strided_set': the operands do not match each other")
  computes("on diagonals are replaced", [[
      (matrix_set_diag(%a, %b), matrix_set_diag(%a, %c, k1=-1, k2=1))]],
    { six, floats { 8, 9 }, floats { { 0, 10 }, { 20, 30 }, { 40, 0 } } },
    { { 8, 2, 3 }, { 4, 9, 6 } }, { { 20, 0, 3 }, { 40, 30, 10 } })
  refuses("on diagonals that are not there", "matrix_set_diag(%a, %b, k1=3, k2=3)",
    { six, floats { 8 } }, "'matrix_set_diag': the operands do not match each other")
  computes("stand apart", "nn.dilate(%a, strides=[1, 2], dilation_value=9f)", { six },
    { { 1, 9, 2, 9, 3 }, { 4, 9, 5, 9, 6 } })
  computes("are windows that slide", [[
      sliding_window(%a, axis=1, window_shape=[2], strides=[1])]], { six },
    { { { 1, 2 }, { 2, 3 } }, { { 4, 5 }, { 5, 6 } } })
  computes("of space become batches and come back", [=[
      %0 = nn.space_to_batch_nd(%a, block_shape=[2], paddings=[[1, 0]], pad_value=0f);
      (%0, nn.batch_to_space_nd(%0, block_shape=[2], crops=[[1, 0]]))]=],
    { floats { { { 1 }, { 2 }, { 3 } } } },
    { { { 0 }, { 2 } }, { { 1 }, { 3 } } }, { { { 1 }, { 2 }, { 3 } } })
  refuses("that are no whole blocks", "nn.space_to_batch_nd(%a, block_shape=[2], paddings=[])",
    { six }, "'nn.space_to_batch_nd': the blocks do not match the operand")
end)

describe("grids", function()
  local two, three = floats { 1, 2 }, floats { 3, 4, 5 }
  computes("have a tensor for each vector", "meshgrid((%a, %b))", { two, three },
    { { 1, 1, 1 }, { 2, 2, 2 } }, { { 3, 4, 5 }, { 3, 4, 5 } })
  computes("run along the second axis first", 'meshgrid((%a, %b), indexing="xy")', { two, three },
    { { 1, 2 }, { 1, 2 }, { 1, 2 } }, { { 3, 3 }, { 4, 4 }, { 5, 5 } })
  computes("take numbers as vectors of one", "(meshgrid((%a, %b, %a))).1",
    { floats(7), two }, { { { 1 }, { 2 } } })
  computes("take a tuple that a variable is bound to", "let %t = (%a, %b); meshgrid(%t)",
    { two, floats { 3 } }, { { 1 }, { 2 } }, { { 3 }, { 3 } })
  refuses("take vectors", "meshgrid((%a, %b))", { two, floats { { 1 } } },
    "'meshgrid', operand 1: expected rank 1 or less, got 2")

  it("are folded, and projected", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main() { let %v = cast(2f, dtype="int32"); (meshgrid((%v, 3))).0 }]])
    local body = pl.passes.FoldConstant()(mod).main.body
    assert.equal("Constant", body.kind)
    assert.same({ { 2 } }, body.data:to_table())
    local whole = pl.passes.FoldConstant()(assert(pl.parse [[
#[version = "0.0.5"]
def @main() { meshgrid((2, 3)) }]])).main.body
    assert.equal("Tuple", whole.kind)
  end)

  it("are evaluated by PartialEvaluate", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main() { meshgrid((2, 3)) }]])
    local x, y = pl.eval(pl.passes.PartialEvaluate()(mod))
    assert.same({ { 2 } }, x:to_table())
    assert.same({ { 3 } }, y:to_table())
  end)
end)

describe("shapes that operands say", function()
  computes("fill", "(dyn.zeros(%a, shape=[], dtype=\"int32\"), dyn.ones(%a, shape=[]))",
    { longs { 2 } }, { 0, 0 }, { 1, 1 })
  computes("cut, repeat and pad", [[
      (dyn.strided_slice(%a, %b, %c, %d, begin=[], end=[], strides=[], axes=[]),
       dyn.tile(%e, %f, reps=[]), dyn.nn.pad(%e, %g, %h, pad_width=[]))]],
    { six, longs { 0, 2 }, longs { 1, -4 }, longs { 1, -2 }, floats { 1, 2 }, longs { 2, 1 },
      longs { { 1, 0 } }, floats(7) },
    { { 3, 1 } }, { { 1, 2 }, { 1, 2 } }, { 7, 1, 2 })
  computes("add axes and take them away", [[
      (dyn.expand_dims(%a, %b), dyn.squeeze(%c, %d, axis=[]))]],
    { floats { 1, 2 }, longs(1), floats { { { 3 } } }, longs { 0, 2 } },
    { { 1 }, { 2 } }, { 3 })
  computes("light indices", "dyn.one_hot(%a, %b, %c, %d, depth=0, dtype=\"float32\")",
    { ints { 0, 2 }, floats(1), floats(0), longs(3) }, { { 1, 0, 0 }, { 0, 0, 1 } })
end)

describe("kernels of shapes", function()
  it("fold constants", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main() { broadcast_to_like(2f, broadcast_to(1f, shape=[2, 2])) }]])
    assert.equal("Constant", pl.passes.FoldConstant()(mod).main.body.kind)
  end)
end)

describe("on the host", function()
  computes("the shape is that of shape_of", "vm.shape_of(%a, dtype=\"int32\")", { six }, { 2, 3 })
  refuses("a scalar has none", "vm.shape_of(%a)", { floats(3) }, "a scalar has no extents")
end)
