-- Operators of Relay's: their attributes as text has them.

local pl = require "perilune"

-- The call in the text of a function that returns it, without types.
local function text(call)
  local lines = {}
  for line in tostring(pl.func({}, call)):gsub("/%*.-%*/", ""):gmatch "[^\n]+" do
    if not line:find "^fn" and not line:find "^}" and not line:find "free_var" then
      lines[#lines + 1] = line:gsub("^%s+", ""):gsub("%s+$", "")
    end
  end
  return table.concat(lines, "\n")
end

local op = pl.op
local x = pl.var("x", "Tensor[(2, 3, 4), float32]")
local w = pl.var("w", "Tensor[(8, 4), float32]")
local image = pl.var("image", "Tensor[(1, 8, 6, 6), float32]")
local kernel = pl.var("kernel", "Tensor[(8, 1, 3, 3), float32]")

describe("attributes of Relay's operators", function()
  it("print where they differ from TVM's defaults", function()
    assert.equal("nn.conv2d(%image, %kernel, padding=[1, 1, 1, 1], groups=8)",
      text(op.nn.conv2d(image, kernel, { padding = { 1, 1, 1, 1 }, groups = 8, strides = { 1, 1 },
        data_layout = "NCHW" })))
    assert.equal("nn.max_pool2d(%image, pool_size=[2, 2])",
      text(op.nn.max_pool2d(image, { pool_size = { 2, 2 } })))
    assert.equal("nn.leaky_relu(%x, alpha=0.2f)", text(op.nn.leaky_relu(x, { alpha = 0.2 })))
    assert.equal("nn.leaky_relu(%x)", text(op.nn.leaky_relu(x, { alpha = 0.25 })))
  end)

  it("always print without default", function()
    assert.equal("nn.dense(%x, %w, units=None)", text(op.nn.dense(x, w)))
    assert.equal("nn.dense(%x, %w, units=8, out_dtype=\"float32\")",
      text(op.nn.dense(x, w, { units = 8, out_dtype = "float32" })))
    assert.equal("transpose(%x, axes=None)", text(op.transpose(x)))
    assert.equal("transpose(%x, axes=[2, 0, 1])", text(op.transpose(x, { axes = { 2, 0, 1 } })))
  end)

  it("have Relay's names, kinds and order", function()
    assert.equal("nn.batch_matmul(%x, %x, transpose_b=True)",
      text(op.nn.batch_matmul(x, x, { transpose_b = true })))
    assert.equal("cast(%x, dtype=\"int64\")", text(op.cast(x, { to = 7 })))
    assert.equal("sum(%x, axis=[1])", text(op.sum(x, { axes = { 1 }, keepdims = 0 })))
    assert.equal("nn.mirror_pad(%x, pad_width=[[1, 2], [3, 4], [5, 6]])",
      text(op.nn.mirror_pad(x, { pad_width = { { 1, 2 }, { 3, 4 }, { 5, 6 } } })))
    assert.equal("expand_dims(%x, axis=1)", text(op.expand_dims(x, { axes = { 1 } })))
    assert.equal("clip(%x, a_min=0f, a_max=6f)", text(op.clip(x, { a_min = 0, a_max = 6 })))
  end)

  it("say what ONNX's form means otherwise", function()
    assert.equal("sum(%x, keepdims=True)", text(op.sum(x)))
    assert.equal("argmax(%x, axis=[0], keepdims=True, index_dtype=\"int64\")", text(op.argmax(x)))
    assert.equal("expand_dims(%x, axis=[0, 2])", text(op.expand_dims(x, { axes = { 0, 2 } })))
    assert.equal("split(%x, axis=1, split=[1, 2], n_results=2)",
      text(op.split(x, { axis = 1, split = { 1, 2 }, n_results = 2 })))
  end)

  it("count the parts of a split", function()
    assert.equal("split(%x, indices_or_sections=2, axis=2)",
      text(op.split(x, { indices_or_sections = 2, axis = 2, n_results = 2 })))
  end)
end)

describe("types of Relay's operators", function()
  -- The type of a call as text.
  local function type_of(call) return tostring(call.type) end

  it("of layouts follow the letters", function()
    local nhwc = pl.var("nhwc", "Tensor[(2, 6, 6, 8), float32]")
    local hwio = pl.var("hwio", "Tensor[(3, 3, 8, 16), float32]")
    assert.equal("Tensor[(2, 4, 4, 16), float32]", type_of(op.nn.conv2d(nhwc, hwio,
      { kernel_size = { 3, 3 }, channels = 16, data_layout = "NHWC", kernel_layout = "HWIO" })))
    assert.equal("Tensor[(1, 2, 6, 6, 4), float32]",
      type_of(op.layout_transform(image, { src_layout = "NCHW", dst_layout = "NCHW4c" })))
    assert.equal("Tensor[(1, 8, 3, 3), float32]",
      type_of(op.nn.max_pool2d(image, { pool_size = { 2, 2 }, strides = { 2, 2 } })))
    assert.equal("Tensor[(1, 8, 1, 1), float32]", type_of(op.nn.global_avg_pool2d(image)))
    assert.has_error(function()
      op.layout_transform(image, { src_layout = "NCHW", dst_layout = "4cNHW" })
    end)
  end)

  it("of reshapes follow Relay's codes", function()
    for _, case in ipairs {
      { { 0, -1 }, "(2, 12)" }, { { -2 }, "(2, 3, 4)" }, { { -3, 0 }, "(6, 4)" }, { { 0, -3 },
        "(2, 12)" },
      { { -4, 1, 2, -2 }, "(1, 2, 3, 4)" }, { { 0, 0, -4, -1, 2 }, "(2, 3, 2, 2)" }, { { 4, -1,
        3 }, "(4, 2, 3)" },
    } do
      assert.equal("Tensor[" .. case[2] .. ", float32]", type_of(op.reshape(x,
        { newshape = case[1] })))
    end
    assert.equal("Tensor[(6, 4), float32]", type_of(op.contrib_reverse_reshape(x,
      { newshape = { -1, 0 } })))
    assert.has_error(function() op.reshape(x, { newshape = { -3, -3 } }) end)
  end)

  it("of joined and cut tensors take tuples and bounds", function()
    local pair = pl.tuple { x, x }
    local given = pl.var("given", pair.type)
    for _, both in ipairs { pair, given } do
      assert.equal("Tensor[(2, 6, 4), float32]", type_of(op.concatenate(both, { axis = 1 })))
      assert.equal("Tensor[(2, 2, 3, 4), float32]", type_of(op.stack(both)))
    end
    local parts = op.split(x, { indices_or_sections = { 1, 3 }, axis = 2, n_results = 3 })
    assert.equal(
      "(Tensor[(2, 3, 1), float32], Tensor[(2, 3, 2), float32], Tensor[(2, 3, 1), float32])",
      type_of(parts))
    assert.has_error(function() op.split(x, { indices_or_sections = 2, axis = 1,
      n_results = 2 }) end)
  end)

  it("of slices have one step for all, sizes and missing bounds", function()
    local m = pl.var("m", "Tensor[(4, 4), float32]")
    local function slice(attrs) return type_of(op.strided_slice(m, attrs)) end
    assert.equal("Tensor[(3, 3), float32]", slice { starts = { 0, 1 }, ends = { 3, 4 },
      strides = { 1 } })
    assert.equal("Tensor[(2, 3), float32]", slice { starts = { 0, 3 }, ends = { 4, 0 },
      strides = { 2, -1 } })
    assert.equal("Tensor[(4, 2), float32]",
      slice { starts = { 1 }, ends = { 2 }, strides = { 1 }, slice_mode = "size", axes = { 1 } })
  end)

  it("of products and reductions", function()
    assert.equal("Tensor[(2, 3, 8), float32]", type_of(op.nn.dense(x, w)))
    assert.equal("Tensor[(2, 3, 3), float32]", type_of(op.nn.batch_matmul(x, x,
      { transpose_b = true })))
    assert.equal("Tensor[(2), float32]", type_of(op.mean(x, { axes = { 0 }, exclude = 1,
      keepdims = 0 })))
    assert.equal("Tensor[(2, 4), bool]", type_of(op.all(op.greater(x, x), { axis = { 1 } })))
    assert.has_error(function() op.nn.dense(x, pl.var("w", "Tensor[(8, 5), float32]")) end)
  end)
end)

describe("kernels of Relay's operators", function()
  local function run(call) return pl.eval(pl.func({}, call)):to_table() end
  local a = pl.const(pl.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, "float32"))

  it("fill, repeat, turn about and reshape", function()
    assert.same({ { 1, 1 }, { 1, 1 } }, run(op.ones { shape = { 2, 2 }, dtype = "float32" }))
    assert.same({ { 1, 1, 2, 2, 3, 3 }, { 4, 4, 5, 5, 6, 6 } },
      run(op["repeat"](a, { repeats = 2, axis = 1 })))
    assert.same({ { 4, 5, 6 }, { 1, 2, 3 } }, run(op.reverse(a, { axis = 0 })))
    assert.same({ 1, 2, 3, 4, 5, 6 }, run(op.reshape(a, { newshape = { -3 } })))
    assert.same({ 1, 3, 6, 10, 15, 21 }, run(op.cumsum(a)))
  end)

  it("take as Relay's modes say", function()
    local at = pl.const(pl.tensor({ -1, 7 }, "int32"))
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, run(op.take(a, at, { axis = 0, mode = "clip" })))
    assert.same({ { 3, 2 }, { 6, 5 } }, run(op.take(a, at, { axis = 1, mode = "wrap" })))
  end)

  it("reduce all axes but those named", function()
    assert.same({ 5, 7, 9 }, run(op.sum(a, { axes = { 1 }, exclude = 1, keepdims = 0 })))
  end)

  it("bring elements to another layout and back", function()
    local whole = { { { { 1, 2 } }, { { 3, 4 } }, { { 5, 6 } }, { { 7, 8 } } } }
    local plain = pl.const(pl.tensor(whole, "float32"))
    local blocked = op.layout_transform(plain, { src_layout = "NCHW", dst_layout = "NCHW2c" })
    assert.same({ { { { { 1, 3 }, { 2, 4 } } }, { { { 5, 7 }, { 6, 8 } } } } }, run(blocked))
    assert.same(whole,
      run(op.layout_transform(blocked, { src_layout = "NCHW2c", dst_layout = "NCHW" })))
    assert.same({ { { { 1, 3, 5, 7 }, { 2, 4, 6, 8 } } } },
      run(op.layout_transform(plain, { src_layout = "NCHW", dst_layout = "NHWC" })))
  end)

  it("pad by pairs of widths and slice by sizes", function()
    local zero = pl.const(pl.tensor(9, "float32"))
    assert.same({ { 9, 1, 2, 3 }, { 9, 4, 5, 6 }, { 9, 9, 9, 9 } },
      run(op.nn.pad(a, zero, { pad_width = { { 0, 1 }, { 1, 0 } } })))
    assert.same({ { 2, 3 } }, run(op.strided_slice(a, { starts = { 0, 1 }, ends = { 1, -1 },
      slice_mode = "size" })))
  end)
end)

describe("Relay's form of an operator that ONNX has as well", function()
  local at = pl.var("at", "Tensor[(), int64]")
  local rows = pl.var("rows", "Tensor[(1, 4), float32]")
  local function main(call) return pl.module { main = pl.func({ rows, at }, call) } end

  it("is left alone by rules that hold of ONNX's", function()
    local mod = main(op.take(op.transpose(rows, { axes = { 1, 0 } }), at, { axis = 1,
      mode = "clip" }))
    assert.equal(mod, pl.passes.SimplifyExpr()(mod))
  end)

  it("is refused by export", function()
    local ok, diag = pl.onnx.save(main(op.take(rows, at, { axis = 1, mode = "clip" })),
      os.tmpname())
    assert.is_nil(ok)
    assert.truthy(tostring(diag):find("the Relay form of 'take' cannot be expressed in ONNX", 1,
      true))
  end)
end)

describe("attributes of functions", function()
  local function attrs(list)
    return tostring(pl.func({ x }, x, nil, list)):match "%*/, (.-)%) %->"
  end

  it("may be booleans, lists of lists and of different values", function()
    assert.equal("Inline=True", attrs { Inline = true })
    assert.equal("a=[[1, 2], [], [3]]", attrs { a = { { 1, 2 }, {}, { 3 } } })
    assert.equal("a=[True, \"x\", 1.5f]", attrs { a = { true, "x", 1.5 } })
  end)

  it("come back as they were", function()
    local f = pl.func({ x }, x, nil,
      { on = true, rows = { { 1, 2 }, { 3 } }, any = { false, "b" } })
    assert.is_true(f.attrs.on)
    assert.same({ { 1, 2 }, { 3 } }, f.attrs.rows)
    assert.same({ false, "b" }, f.attrs.any)
  end)

  it("of equal values are one dictionary, whatever the order of names", function()
    local function of(list) return pl.func({ x }, x, nil, list).attrs end
    assert.equal(of { l = { { 1 }, { "x" } }, b = true }, of { b = true, l = { { 1 }, { "x" } } })
    assert.not_equal(of { l = { { 1 }, { "x" } } }, of { l = { { "x" }, { 1 } } })
  end)
end)
