-- Forms of ONNX's operators that generated C has: each gives what the evaluator gives.

local pl = require "perilune"
local models = dofile "spec/topi/models.lua"

local op = pl.op

local function floats(list) return pl.const(pl.tensor(list, "float32")) end

-- One model of all values.
local function agree(params, values)
  models.agrees(pl.module { main = pl.func(params, pl.tuple(values)) })
end

local modes = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
  "asymmetric", "tf_half_pixel_for_nn" }

describe("generated C", function()
  it("resizes by factors that are not quotients of extents", function()
    local x = pl.var("x", "Tensor[(1, 2, 7, 5), float32]")
    local values = {}
    for i, coordinates in ipairs(modes) do
      for k, mode in ipairs { "nearest", "linear", "cubic" } do
        local scales = floats { 1, 1, ({ 0.6, 1.7, 2.3 })[k], ({ 1.5, 0.8 })[i % 2 + 1] }
        values[#values + 1] = op["image.resize"](x, pl.ir.Absent(), scales,
          { mode = mode, coordinate_transformation_mode = coordinates, nearest_mode = "floor" })
      end
    end
    values[#values + 1] = op["image.resize"](x, pl.ir.Absent(), floats { 1.7, 0.6 },
      { mode = "cubic", axes = { 3, 2 }, exclude_outside = 1, cubic_coeff_a = -0.5 })
    agree({ x }, values)
  end)

  it("has means of dilated windows over borders", function()
    local x = pl.var("x", "Tensor[(2, 3, 9, 11), float32]")
    local values = {}
    for _, ceil_mode in ipairs { 0, 1 } do
      for _, count_include_pad in ipairs { 0, 1 } do
        values[#values + 1] = op["nn.avg_pool"](x, { kernel_shape = { 3, 2 }, strides = { 2, 3 },
          dilations = { 2, 3 }, pads = { 1, 2, 2, 1 }, ceil_mode = ceil_mode,
          count_include_pad = count_include_pad })
      end
    end
    agree({ x }, values)
  end)

  it("gives the moments of a layer_norm", function()
    local x = pl.var("x", "Tensor[(3, 4, 5), float32]")
    local scale = pl.var("scale", "Tensor[(4, 5), float32]")
    local norm = op["nn.layer_norm"](x, scale, { axis = 1, epsilon = 0.01 })
    agree({ x, scale }, { norm[1], norm[2], norm[3] })
  end)

  it("transposes convolutions to given extents", function()
    local x = pl.var("x", "Tensor[(1, 2, 4, 5), float32]")
    local w = pl.var("w", "Tensor[(2, 3, 3, 3), float32]")
    local values = {}
    for _, extents in ipairs { { 12, 15 }, { 10, 13 }, { 8, 16 } } do
      values[#values + 1] = op["nn.conv_transpose"](x, w, { strides = { 3, 3 },
        output_shape = extents })
    end
    for _, auto_pad in ipairs { "SAME_UPPER", "SAME_LOWER" } do
      values[#values + 1] = op["nn.conv_transpose"](x, w,
        { strides = { 2, 3 }, auto_pad = auto_pad })
    end
    agree({ x, w }, values)
  end)

  it("has bools as results, infinities of one sign, shifted bits", function()
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local some = pl.const(pl.tensor({ 1 / 0, -1 / 0, 0 / 0, 1.0 }, "float32"))
    local bits = pl.const(pl.tensor({ 1, 200, 255, 7 }, "uint8"))
    local by = pl.const(pl.tensor({ 0, 1, 7, 9 }, "uint8"))
    agree({ x }, { op.greater(x, pl.const(0.0)), op.logical_not(op.less(x, pl.const(0.5))),
      op.isinf(some, { detect_negative = 0 }), op.isinf(some, { detect_positive = 0 }),
      op.isinf(some, { detect_positive = 0, detect_negative = 0 }),
      op.bit_shift(bits, by, { direction = "LEFT" }),
      op.bit_shift(bits, by, { direction = "RIGHT" }) })
  end)

  it("has constants and results without elements", function()
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local empty = pl.const(pl.tensor.full(0, { 0, 3 }, "float32"))
    agree({ x }, { empty, op.strided_slice(x, { begin = { 0 }, ["end"] = { 0 }, axes = { 0 } }) })
  end)

  it("has positions of greatest elements", function()
    local x = pl.var("x", "Tensor[(2, 2, 6, 7), float32]")
    local values = {}
    for _, storage_order in ipairs { 0, 1 } do
      local pool = op["nn.max_pool"](x, { kernel_shape = { 3, 2 }, strides = { 2, 1 },
        pads = { 1, 1, 1, 0 }, dilations = { 1, 2 }, storage_order = storage_order })
      table.move({ pool[1], pool[2] }, 1, 2, #values + 1, values)
    end
    agree({ x }, values)
  end)

  it("has borders of a value, triangles and hot elements that operands say", function()
    local x = pl.var("x", "Tensor[(4, 5), float32]")
    local value, k = pl.var("value", "float32"), pl.var("k", "int64")
    local ints = pl.const(pl.tensor({ 0, -1, 7, 2 }, "int64"))
    local values = pl.const(pl.tensor({ 0.5, 2.0 }, "float32"))
    agree({ x, value, k }, {
      op["nn.pad"](x, pl.const(pl.tensor({ 1, 0, 2, 3 }, "int64")), value),
      op.trilu(x, k), op.trilu(x, k, { upper = 0 }),
      op.one_hot(ints, pl.const(pl.tensor(4, "int64")), values, { axis = 0 }),
    })
  end)

  it("has powers of integers", function()
    local i = pl.var("i", "Tensor[(3), int32]")
    agree({ i }, { op.power(i, pl.const(pl.tensor(5, "int32"))),
      op.power(i, pl.const(pl.tensor({ 0.5, 2.0, 3.0 }, "float32"))) })
  end)

  it("rotates heads by position", function()
    local x = pl.var("x", "Tensor[(2, 3, 4, 8), float32]")
    local rows = pl.var("rows", "Tensor[(2, 4, 12), float32]")
    local tables = { pl.var("cos", "Tensor[(5, 3), float32]"),
      pl.var("sin", "Tensor[(5, 3), float32]") }
    local positions = pl.const(pl.tensor({ { 0, 4, 1, 2 }, { 3, 3, 0, 1 } }, "int64"))
    local values = {}
    for _, interleaved in ipairs { 0, 1 } do
      values[#values + 1] = op.rotary_embedding(x, tables[1], tables[2], positions,
        { interleaved = interleaved, rotary_embedding_dim = 6 })
      values[#values + 1] = op.rotary_embedding(rows, tables[1], tables[2], positions,
        { interleaved = interleaved, num_heads = 2 })
    end
    agree({ x, rows, tables[1], tables[2] }, values)
  end)
end)
