-- DenseToSparse, Conv2dToSparse, Conv2dToSparse2 and SimplifyFCTranspose: golden pairs of Relay
-- text, values where there is a kernel, and what is refused.

local golden = require "spec.transform.golden"
local pl = require "perilune"

local function becomes(pass, before, after) return golden.becomes(pass, before, after, false) end

-- Of the rows of a matrix in blocks of r x c: data, indices, indptr.
local function bsr(matrix, r, c)
  local data, indices, indptr = {}, {}, { 0 }
  for row = 0, #matrix // r - 1 do
    for column = 0, #matrix[1] // c - 1 do
      local block, any = {}, false
      for i = 1, r do
        block[i] = {}
        for j = 1, c do
          block[i][j] = matrix[row * r + i][column * c + j]
          any = any or block[i][j] ~= 0
        end
      end
      if any then data[#data + 1], indices[#indices + 1] = block, column end
    end
    indptr[#indptr + 1] = #indices
  end
  return pl.tensor(data, "float32"), pl.tensor(indices, "int32"), pl.tensor(indptr, "int32")
end

local function equal_values(a, b)
  local x, y = a:to_table(), b:to_table()
  for i = 1, #x do
    for j = 1, #x[i] do assert.near(x[i][j], y[i][j], 1e-5) end
  end
end

describe("DenseToSparse", function()
  local pass = pl.passes.DenseToSparse { weight_name = { "w" },
    weight_shape = { { 2, 2, 1, 2, 3 } } }
  local text = [[
def @main(%w: Tensor[(4, 3), float32], %y: Tensor[(2, 4), float32], %x: Tensor[(2, 3), float32]) {
  add(nn.relu(nn.dense(%x, %w, units=None)), %y)
}]]

  it("replaces a weight by three, behind the parameters in order of use", function()
    becomes(pass, text, [[
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 4), float32],
    %w_data: Tensor[(2, 2, 1), float32], %w_indices: Tensor[(2), int32],
    %w_indptr: Tensor[(3), int32]) {
  add(nn.relu(nn.sparse_dense(%x, %w_data, %w_indices, %w_indptr)), %y)
}]])
  end)

  it("names the parameters after the weight", function()
    local names = {}
    for i, param in ipairs(pass(golden.module(text)).main.params) do names[i] = param.name end
    assert.same({ "x", "y", "w.data", "w.indices", "w.indptr" }, names)
  end)

  it("computes the same from the same weights", function()
    local w = { { 0, 1, 0 }, { 0, 2, 0 }, { 0, 0, -3 }, { 0, 0, 4 } }
    local x = pl.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, "float32")
    local y = pl.tensor.full(1, { 2, 4 }, "float32")
    local mod = golden.module(text)
    equal_values(pl.eval(mod, pl.tensor(w, "float32"), y, x),
      pl.eval(pass(mod), x, y, bsr(w, 2, 1)))
  end)

  it("keeps a weight that is used otherwise too, and lets", function()
    becomes(pass, [[
def @main(%w: Tensor[(4, 3), float32], %x: Tensor[(2, 3), float32]) {
  let %a = nn.dense(%x, %w, units=None);
  let %b = sum(%w);
  multiply(%a, %b)
}]], [[
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32],
    %w_data: Tensor[(2, 2, 1), float32], %w_indices: Tensor[(2), int32],
    %w_indptr: Tensor[(3), int32]) {
  let %a = nn.sparse_dense(%x, %w_data, %w_indices, %w_indptr);
  let %b = sum(%w);
  multiply(%a, %b)
}]])
  end)

  it("leaves other weights alone", function()
    local other = { weight_name = { "v" }, weight_shape = { { 1, 1, 1, 1, 5 } } }
    golden.stays(pl.passes.DenseToSparse(other), text)
    golden.stays(pl.passes.DenseToSparse(), text)
    golden.stays(pass, [[
def @main(%x: Tensor[(2, 3), float32], %v: Tensor[(4, 3), float32]) {
  let %w = tanh(%v);
  nn.dense(%x, %w, units=None)
}]])
  end)

  it("refuses shapes that do not fit", function()
    local mod = golden.module(text)
    for _, case in ipairs {
      { { { 2, 2, 1, 2 } }, "'weight_shape' needs lists of 5 to 5 positive integers" },
      { { { 2, 2, 1, 2, 0 } }, "'weight_shape' needs lists of 5 to 5 positive integers" },
      { {}, "'weight_shape' needs a list for each name" },
      { { { 2, 3, 1, 2, 3 } }, "the shape of 'w' does not give a result" },
    } do
      local bad = pl.passes.DenseToSparse { weight_name = { "w" }, weight_shape = case[1] }
      local ok, diag = pcall(bad, mod)
      assert.is_false(ok)
      assert.truthy(tostring(diag):find(case[2], 1, true), tostring(diag))
    end
    assert.has_error(function() pl.passes.DenseToSparse { weight_shape = { 1, 2 } } end)
    assert.has_error(function() pl.passes.DenseToSparse { weight_shape = { { "a" } } } end)
    assert.has_error(function() pl.passes.DenseToSparse { weight_name = 3 } end)
  end)

  it("is written as text and read back", function()
    local written = 'DenseToSparse{weight_name=["w"],weight_shape=[[2,2,1,2,3]]}'
    assert.equal(written, tostring(pl.pipeline(written)))
    local mod = golden.module(text)
    local again = pl.with(pl.context { opt_level = 4 }, pl.pipeline(written), mod)
    assert.truthy(pl.equal(pass(mod), again))
    for _, bad in ipairs { "[[2,", "[2]", '[["a"]]', "[[2]" } do
      assert.has_error(function() pl.pipeline("DenseToSparse{weight_shape=" .. bad .. "}") end)
    end
  end)

  it("is at level 4, and requires dead code to be gone", function()
    assert.equal(4, pass.info.opt_level)
    assert.same({ "DeadCodeElimination" }, pass.info.required)
  end)
end)

describe("Conv2dToSparse", function()
  it("replaces the weight of a convolution", function()
    becomes(pl.passes.Conv2dToSparse { weight_name = { "w" }, weight_shape = { { 3, 2, 1, 3, 3 } },
      layout = "NHWC", kernel_size = 1 }, [[
def @main(%x: Tensor[(1, 5, 5, 8), float32], %w: Tensor[(1, 1, 8, 4), float32]) {
  nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=4, kernel_size=[1, 1], data_layout="NHWC",
    kernel_layout="HWIO")
}]], [[
def @main(%x: Tensor[(1, 5, 5, 8), float32], %w_data: Tensor[(3, 2, 1), float32],
    %w_indices: Tensor[(3), int32], %w_indptr: Tensor[(3), int32]) {
  nn.sparse_conv2d(%x, %w_data, %w_indices, %w_indptr)
}]])
  end)

  it("leaves convolutions alone that nn.sparse_conv2d cannot compute", function()
    local pass = pl.passes.Conv2dToSparse { weight_name = { "w" },
      weight_shape = { { 3, 1, 3, 5 } }, layout = "NCHW", kernel_size = 3 }
    for _, attrs in ipairs { "", "padding=[1, 1], strides=[2, 2], ",
      "padding=[1, 1], dilation=[2, 2], " } do
      golden.stays(pass, ([[
def @main(%%x: Tensor[(1, 4, 7, 7), float32], %%w: Tensor[(4, 4, 3, 3), float32]) {
  nn.conv2d(%%x, %%w, %schannels=4, kernel_size=[3, 3])
}]]):format(attrs))
    end
  end)
end)

describe("Conv2dToSparse2", function()
  local head = "def @main(%x: Tensor[(1, 2, 5, 5), float32]) {\n" ..
    "nn.conv2d(%x, meta[relay.Constant][0], "
  local function module(weight, attrs)
    return assert(pl.parse('#[version = "0.0.5"]\n' .. head .. attrs .. ") }",
      { init_meta = { ["relay.Constant"] = { weight } } }))
  end
  local weight = pl.tensor({ { { { 1 } }, { { 0 } } }, { { { 2 } }, { { 0 } } },
    { { { 0 } }, { { 3 } } }, { { { 0 } }, { { 0 } } } }, "float32")
  local attrs = "channels=4, kernel_size=[1, 1]"
  local pass = pl.passes.Conv2dToSparse2 { layout = "NCHW", kernel_size = 1, blocksize = { 2, 1 },
    sparsity_threshold = 0.5 }

  it("keeps the blocks of a constant weight that are not zero", function()
    local out = pass(module(weight, attrs))
    assert(pl.verify(out))
    local call = out.main.body
    assert.equal("nn.sparse_conv2d", call.op.name)
    assert.equal("NCHW", call.attrs.layout)
    assert.same({ { { 1 }, { 2 } }, { { 3 }, { 0 } } }, call.args[2].data:to_table())
    assert.same({ 0, 1 }, call.args[3].data:to_table())
    assert.same({ 0, 1, 2 }, call.args[4].data:to_table())
    assert.equal(out, pass(out))
  end)

  it("leaves weights alone that are not sparse enough, or that blocks do not divide", function()
    local mod = module(weight, attrs)
    for _, options in ipairs {
      { layout = "NCHW", blocksize = { 2, 1 }, sparsity_threshold = 0.6 },
      { layout = "NCHW", blocksize = { 3, 1 }, sparsity_threshold = 0 },
      { layout = "NHWC", blocksize = { 2, 1 }, sparsity_threshold = 0 },
      { layout = "NCHW", blocksize = { 2, 1 }, sparsity_threshold = 0, kernel_size = 3 },
    } do
      assert.equal(mod, pl.passes.Conv2dToSparse2(options)(mod))
    end
    mod = module(weight, "strides=[2, 2], " .. attrs)
    assert.equal(mod, pass(mod))
  end)

  it("is at level 5, and needs two extents of a block", function()
    assert.equal(5, pass.info.opt_level)
    local bad = pl.passes.Conv2dToSparse2 { blocksize = { 4 } }
    assert.has_error(function() bad(module(weight, attrs)) end)
    assert.has_error(function() pl.passes.Conv2dToSparse2 { layout = "NCHW16c" } end)
    assert.has_error(function() pl.passes.Conv2dToSparse2 { sparsity_threshold = 2 } end)
  end)
end)

describe("SimplifyFCTranspose", function()
  local pass = pl.passes.SimplifyFCTranspose { target_weight_name = { "w" } }

  it("takes the transposed weight", function()
    becomes(pass, [[
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 4), float32], %v: Tensor[(4, 5), float32]) {
  nn.dense(nn.dense(%x, transpose(%w, axes=[1, 0]), units=None), transpose(%v, axes=[1, 0]),
    units=None)
}]], [[
def @main(%x: Tensor[(2, 3), float32], %v: Tensor[(4, 5), float32],
    %w_T: Tensor[(4, 3), float32]) {
  nn.dense(nn.dense(%x, %w_T, units=None), transpose(%v, axes=[1, 0]), units=None)
}]])
  end)

  it("leaves what is not a transposed parameter alone", function()
    golden.stays(pass, [[
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  nn.dense(%x, %w, units=None)
}]])
    golden.stays(pl.passes.SimplifyFCTranspose(), [[
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 4), float32]) {
  nn.dense(%x, transpose(%w, axes=[1, 0]), units=None)
}]])
  end)

  it("fails when the module still calls the function with the old weight", function()
    local mod = golden.module [[
def @layer(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 4), float32]) -> Tensor[(2, 4), float32] {
  nn.dense(%x, transpose(%w, axes=[1, 0]), units=None)
}
def @main(%x: Tensor[(2, 3), float32], %v: Tensor[(3, 4), float32]) { @layer(%x, %v) }]]
    assert.has_error(function() pass(mod) end)
  end)
end)
