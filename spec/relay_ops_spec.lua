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

describe("attributes of Relay's operators", function()
  it("print where they differ from TVM's defaults", function()
    assert.equal("nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=8, data_layout=\"NHWC\")",
      text(op.nn.conv2d(x, w, { padding = { 1, 1, 1, 1 }, groups = 8, strides = { 1, 1 },
        data_layout = "NHWC" })))
    assert.equal("nn.max_pool2d(%x, pool_size=[2, 2])",
      text(op.nn.max_pool2d(x, { pool_size = { 2, 2 } })))
    assert.equal("nn.leaky_relu(%x, alpha=0.2f)", text(op.nn.leaky_relu(x, { alpha = 0.2 })))
    assert.equal("nn.leaky_relu(%x)", text(op.nn.leaky_relu(x, { alpha = 0.25 })))
  end)

  it("always print without default", function()
    assert.equal("nn.dense(%x, %w, units=None)", text(op.nn.dense(x, w)))
    assert.equal("nn.dense(%x, %w, units=8, out_dtype=\"float32\")",
      text(op.nn.dense(x, w, { units = 8, out_dtype = "float32" })))
    assert.equal("transpose(%x, axes=None)", text(op.transpose(x)))
    assert.equal("transpose(%x, axes=[2, 0, 1])", text(op.transpose(x, { perm = { 2, 0, 1 } })))
  end)

  it("have Relay's names, kinds and order", function()
    assert.equal("nn.batch_matmul(%x, %w, transpose_b=True)",
      text(op.nn.batch_matmul(x, w, { transpose_b = true })))
    assert.equal("cast(%x, dtype=\"int64\")", text(op.cast(x, { to = 7 })))
    assert.equal("sum(%x, axis=[1])", text(op.sum(x, { axes = { 1 }, keepdims = 0 })))
    assert.equal("nn.mirror_pad(%x, pad_width=[[1, 2], [3, 4], [5, 6]])",
      text(op.nn.mirror_pad(x, { pad_width = { { 1, 2 }, { 3, 4 }, { 5, 6 } } })))
    assert.equal("expand_dims(%x, axis=1)", text(op.expand_dims(x, { axes = { 1 } })))
    assert.equal("clip(%x, a_min=0f, a_max=6f)", text(op.clip(x, { min = 0, max = 6 })))
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

describe("attributes of functions", function()
  local function attrs(list)
    return tostring(pl.func({ x }, x, list)):match "%*/, (.-)%) %->"
  end

  it("may be booleans, lists of lists and of different values", function()
    assert.equal("Inline=True", attrs { Inline = true })
    assert.equal("a=[[1, 2], [], [3]]", attrs { a = { { 1, 2 }, {}, { 3 } } })
    assert.equal("a=[True, \"x\", 1.5f]", attrs { a = { true, "x", 1.5 } })
  end)

  it("come back as they were", function()
    local f = pl.func({ x }, x, { on = true, rows = { { 1, 2 }, { 3 } }, any = { false, "b" } })
    assert.is_true(f.attrs.on)
    assert.same({ { 1, 2 }, { 3 } }, f.attrs.rows)
    assert.same({ false, "b" }, f.attrs.any)
  end)

  it("of equal values are one dictionary, whatever the order of names", function()
    local function of(list) return pl.func({ x }, x, list).attrs end
    assert.equal(of { l = { { 1 }, { "x" } }, b = true }, of { b = true, l = { { 1 }, { "x" } } })
    assert.not_equal(of { l = { { 1 }, { "x" } } }, of { l = { { "x" }, { 1 } } })
  end)
end)
