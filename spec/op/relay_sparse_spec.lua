-- Relay's operators on sparse matrices, regions of images and displaced windows,
-- on numbers that can be checked by hand.

local pl = require "perilune"

local computes, refuses = require "spec.op.computed" (it)

local function ints(values) return { "int32", values } end
local function floats(values) return { "float32", values } end

-- [[0, 5], [6, 0], [0, 0]]
local values, columns, begins = floats { 5, 6 }, ints { 1, 0 }, ints { 0, 1, 2, 2 }

describe("sparse matrices", function()
  computes("are multiplied from either side", [[
      (nn.sparse_dense(%a, %b, %c, %d), nn.sparse_dense(%a, %b, %c, %d, sparse_lhs=True))]],
    { floats { { 1, 10 } }, values, columns, begins },
    { { 50, 6, 0 } }, { { 50 }, { 6 }, { 0 } })
  computes("of blocks are multiplied", "nn.sparse_dense(%a, %b, %c, %d)",
    { floats { { 1, 10, 100, 1000 } }, floats { { { 1, 2 } }, { { 3, 4 } } }, ints { 1, 0 },
      ints { 0, 1, 2 } }, { { 2100, 43 } })
  computes("are added", "nn.sparse_add(%a, %b, %c, %d)",
    { floats { { 1, 1 }, { 1, 1 }, { 1, 1 } }, values, columns, begins },
    { { 1, 6 }, { 7, 1 }, { 1, 1 } })
  refuses("with a column outside are refused", "nn.sparse_dense(%a, %b, %c, %d)",
    { floats { { 1, 10 } }, values, ints { 2, 0 }, begins },
    "'nn.sparse_dense': an index lies outside of the matrix")
  refuses("with rows that end before they begin are refused", "nn.sparse_dense(%a, %b, %c, %d)",
    { floats { { 1, 10 } }, values, columns, ints { 2, 1 } },
    "'nn.sparse_dense': an index lies outside of the matrix")

  it("have the types that TVM tells", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(7, 2), float32], %v: Tensor[(5), float32], %c: Tensor[(5), int32],
          %b: Tensor[(4), int32], %i: Tensor[(5, 2), int64], %s: Tensor[(2), int64],
          %n: Tensor[(3), int64]) {
  (nn.sparse_dense(%x, %v, %c, %b), nn.sparse_transpose(%v, %c, %b), sparse_reshape(%i, %s, %n),
   sparse_fill_empty_rows(%i, %v, %s, 0f))
}]])
    assert.equal("(Tensor[(7, 3), float32], (Tensor[(5), float32], Tensor[(5), int32], "
      .. "Tensor[(4), int32]), (Tensor[(5, 3), int64], Tensor[(3), int64]), "
      .. "(Tensor[(?, 2), int64], Tensor[(?), float32], Tensor[(?), int64]))",
      tostring(mod.main.body.type))
  end)
end)

describe("regions of images", function()
  local image = floats { { { { 0, 10 }, { 20, 30 } } } }
  computes("are cropped and resampled", [[
      (image.crop_and_resize(%a, %b, %c, crop_size=[1, 3]),
       image.crop_and_resize(%a, %b, %c, crop_size=[2, 2], method="nearest_neighbor"))]],
    { image, floats { { 0, 0, 0, 1 }, { 0.5, 0, 0.5, 2 } }, ints { 0, 0 } },
    { { { { 0, 5, 10 } } }, { { { 10, 20, 0 } } } },
    { { { { 0, 10 }, { 0, 10 } } }, { { { 20, 0 }, { 20, 0 } } } })
  refuses("of images that are not there are refused", [[
      image.crop_and_resize(%a, %b, %c, crop_size=[1, 3])]],
    { image, floats { { 0, 0, 1, 1 } }, ints { 1 } },
    "'image.crop_and_resize': there is no such image")
end)

describe("displaced windows", function()
  computes("sample between elements", [[
      nn.deformable_conv2d(%a, %b, %c, kernel_size=[1, 1], channels=1)]],
    { floats { { { { 0, 10 }, { 20, 30 } } } },
      floats { { { { 0, 0.5 }, { 0, 0 } }, { { 0.5, 0 }, { 0, 0 } } } },
      floats { { { { 2 } } } } }, { { { { 10, 40 }, { 40, 60 } } } })
end)
