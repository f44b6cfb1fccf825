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

  -- A point of two channels, [1, 10], times [[2, 0], [0, 3]] and [[0, 4], [0, 0]].
  local blocks = { floats { { { 2, 0 }, { 0, 3 } }, { { 0, 4 }, { 0, 0 } } }, ints { 0, 0 },
    ints { 0, 1, 2 } }
  computes("convolve points with channels last", "nn.sparse_conv2d(%a, %b, %c, %d)",
    { floats { { { { 1, 10 } } } }, table.unpack(blocks) }, { { { { 2, 30, 40, 0 } } } })
  computes("convolve points with channels first",
    "nn.sparse_conv2d(%a, %b, %c, %d, layout=\"NCHW\")",
    { floats { { { { 1 } }, { { 10 } } } }, table.unpack(blocks) },
    { { { { 2 } }, { { 30 } }, { { 40 } }, { { 0 } } } })
  computes("convolve by blocks of one column", "nn.sparse_conv2d(%a, %b, %c, %d)",
    { floats { { { { 1, 10 } } } }, floats { { 2, 3 } }, ints { 1 }, ints { 0, 1 } },
    { { { { 20, 30 } } } })
  refuses("convolve with windows that divide into blocks", "nn.sparse_conv2d(%a, %b, %c, %d)",
    { floats { { { { 1, 10, 100 } } } }, table.unpack(blocks) },
    "'nn.sparse_conv2d': the blocks do not match the operand")
  refuses("convolve with columns inside", "nn.sparse_conv2d(%a, %b, %c, %d)",
    { floats { { { { 1, 10 } } } }, blocks[1], ints { 0, 1 }, blocks[3] },
    "'nn.sparse_conv2d': an index lies outside of the matrix")

  local function coordinates(list) return { "int64", list } end
  local filled = "sparse_fill_empty_rows(%a, %b, %c, %d)"
  computes("get a value in each empty row", filled,
    { coordinates { { 0, 1 }, { 0, 3 }, { 2, 0 }, { 3, 1 } }, floats { 1, 2, 3, 4 },
      coordinates { 5, 6 }, { "float32", 10 } },
    { { 0, 1 }, { 0, 3 }, { 1, 0 }, { 2, 0 }, { 3, 1 }, { 4, 0 } }, { 1, 2, 10, 3, 4, 10 },
    { 0, 1, 0, 0, 1 })
  refuses("are filled if rows ascend", filled,
    { coordinates { { 2, 1 }, { 0, 3 } }, floats { 1, 2 }, coordinates { 5, 6 }, { "float32", 1 } },
    "'sparse_fill_empty_rows': rows do not ascend, or one lies outside of the shape")
  refuses("are filled if rows are those of the shape", filled,
    { coordinates { { 2, 1 }, { 5, 3 } }, floats { 1, 2 }, coordinates { 5, 6 }, { "float32", 1 } },
    "'sparse_fill_empty_rows': rows do not ascend, or one lies outside of the shape")
  refuses("are filled if the shape has the rank of the indices", filled,
    { coordinates { { 2, 1 } }, floats { 1 }, coordinates { 5, 6, 7 }, { "float32", 1 } },
    "'sparse_fill_empty_rows': the operands do not match each other")

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

describe("Conv2dToSparse2", function()
  it("computes the same in both layouts, with windows too", function()
    for _, form in ipairs { { "NHWC", "HWIO", 1 }, { "NHWC", "HWIO", 3 }, { "NCHW", "OIHW", 1 },
      { "NCHW", "OIHW", 3 } } do
      local layout, kernel, window = table.unpack(form)
      local last, number = layout == "NHWC", 0
      local function fill(n, ...)
        if not n then
          number = number * 5 + 3 & 0xff
          return number % 3 == 0 and number - 100 or 0
        end
        local list = {}
        for i = 1, n do list[i] = fill(...) end
        return list
      end
      local w = last and fill(window, window, 4, 8) or fill(8, 4, window, window)
      local x = pl.tensor(last and fill(2, 5, 6, 4) or fill(2, 4, 5, 6), "float32")
      local weight = pl.const(pl.tensor(w, "float32"))
      local call = pl.op.nn.conv2d(pl.var("x", pl.const(x).type), weight, {
        data_layout = layout, kernel_layout = kernel, kernel_size = { window, window },
        channels = 8, padding = { window // 2, window // 2 } })
      local f = pl.func({ call.args[1] }, call)
      local mod = pl.module { main = f }
      local sparse = pl.passes.Conv2dToSparse2 { layout = layout, kernel_size = window,
        blocksize = { 2, 1 }, sparsity_threshold = 0. }(mod)
      assert.equal("nn.sparse_conv2d", sparse.main.body.op.name)
      assert.same(pl.eval(mod, x):to_table(), pl.eval(sparse, x):to_table())
    end
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
