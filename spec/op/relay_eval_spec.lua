-- Programs of Relay's are computed: operators that ONNX's kernels serve, and
-- what they are given as tuples.

local pl = require "perilune"

local op = pl.op

local function parse(text) return assert(pl.parse("#[version = \"0.0.5\"]\n" .. text)) end

-- A tensor of small integers that count on.
local function counting(dims, dtype, from)
  local n, next_value = 1, (from or 1) - 1
  for _, dim in ipairs(dims) do n = n * dim end
  local function fill(axis)
    local list = {}
    for i = 1, dims[axis] do
      if axis < #dims then
        list[i] = fill(axis + 1)
      else
        next_value = next_value + 1
        list[i] = next_value % 7 - 3
      end
    end
    return list
  end
  return pl.tensor(fill(1), dtype or "float32")
end

local function run(text, ...) return pl.eval(parse(text), ...) end

-- What the call gives of constants.
local function by_hand(call) return pl.eval(pl.func({}, call)):to_table() end

describe("products of Relay's", function()
  local x, w = counting { 2, 3 }, counting({ 4, 3 }, "float32", 3)
  local wt = op.transpose(pl.const(w), { axes = { 1, 0 } })

  it("transpose the weight of a dense layer", function()
    assert.same(by_hand(op.nn.matmul(pl.const(x), wt)), run([[
      def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
        nn.dense(%x, %w, units=None)
      }]], x, w):to_table())
  end)

  it("take rows of any rank", function()
    local rows = counting { 2, 2, 3 }
    assert.same(by_hand(op.nn.matmul(pl.const(rows), wt)), run([[
      def @main(%x: Tensor[(2, 2, 3), float32], %w: Tensor[(4, 3), float32]) {
        nn.dense(%x, %w, units=4)
      }]], rows, w):to_table())
  end)

  it("multiply stacks of matrices, transposed or not", function()
    local a, b = counting { 2, 2, 3 }, counting({ 2, 4, 3 }, "float32", 2)
    local turned = op.transpose(pl.const(b), { axes = { 0, 2, 1 } })
    assert.same(by_hand(op.nn.matmul(pl.const(a), turned)), run([[
      def @main(%x: Tensor[(2, 2, 3), float32], %y: Tensor[(2, 4, 3), float32]) {
        nn.batch_matmul(%x, %y, transpose_b=True)
      }]], a, b):to_table())
  end)
end)

describe("convolutions and pooling of Relay's", function()
  local image, kernel = counting { 1, 4, 5, 5 }, counting({ 4, 2, 3, 3 }, "float32", 2)
  local x = pl.const(image)

  it("are ONNX's with other names", function()
    assert.same(by_hand(op.nn.conv(x, pl.const(kernel),
      { group = 2, pads = { 1, 0, 1, 0 }, strides = { 2, 2 }, kernel_shape = { 3, 3 } })), run([[
      def @main(%x: Tensor[(1, 4, 5, 5), float32], %w: Tensor[(4, 2, 3, 3), float32]) {
        nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 0], groups=2, kernel_size=[3, 3])
      }]], image, kernel):to_table())
    assert.same(by_hand(op.nn.max_pool(x, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })), run([[
      def @main(%x: Tensor[(1, 4, 5, 5), float32]) {
        nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])
      }]], image):to_table())
    assert.same(by_hand(op.nn.avg_pool(x,
      { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 }, count_include_pad = 1 })), run([[
      def @main(%x: Tensor[(1, 4, 5, 5), float32]) {
        nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True)
      }]], image):to_table())
    assert.same(by_hand(op.nn.global_avg_pool(x)), run([[
      def @main(%x: Tensor[(1, 4, 5, 5), float32]) { nn.global_avg_pool2d(%x) }]],
      image):to_table())
  end)
end)

describe("normalisation of Relay's", function()
  it("infers, and hands on what it was given", function()
    local x, ones = counting { 1, 2, 3 }, pl.tensor({ 1, 1 }, "float32")
    local mean, variance = pl.tensor({ 1, 2 }, "float32"), pl.tensor({ 4, 4 }, "float32")
    local text = [[
      def @main(%x: Tensor[(1, 2, 3), float32], %g: Tensor[(2), float32], %b: Tensor[(2), float32],
                %m: Tensor[(2), float32], %v: Tensor[(2), float32]) {
        %0 = nn.batch_norm(%x, %g, %b, %m, %v, epsilon=0f, center=False);
        (%0.0, %0.1, %0.2)
      }]]
    local out, m, v = pl.eval(parse(text), x, ones, ones, mean, variance)
    assert.same({ { { -1.5, -1, -0.5 }, { -0.5, 0, 0.5 } } }, out:to_table())
    assert.same({ 1, 2 }, m:to_table())
    assert.same({ 4, 4 }, v:to_table())
  end)
end)

describe("tuples that are joined", function()
  local a, b = counting { 2, 2 }, counting({ 2, 2 }, "float32", 4)

  it("are taken apart", function()
    local text = [[
      def @main(%a: Tensor[(2, 2), float32], %b: Tensor[(2, 2), float32]) {
        %0 = (%a, %b);
        JOIN
      }]]
    assert.same(by_hand(op.concatenate(pl.const(a), pl.const(b), { axis = 1 })),
      run(text:gsub("JOIN", "concatenate(%%0, axis=1)"), a, b):to_table())
    assert.same({ a:to_table(), b:to_table() },
      run(text:gsub("JOIN", "stack(%%0)"), a, b):to_table())
  end)

  it("of constants are folded", function()
    local mod = parse "def @main() { %0 = (1f, 2f); stack(%0) }"
    local body = pl.passes.FoldConstant()(mod).main.body
    assert.equal("Constant", body.kind)
    assert.same({ 1, 2 }, pl.eval(pl.func({}, body)):to_table())
  end)
end)

describe("Relay's operators element by element", function()
  local function of(call, ...)
    return run("def @main(%a: Tensor[(4), int32], %b: Tensor[(4), int32]) { " .. call .. " }",
      ...):to_table()
  end
  local a, b = pl.tensor({ -7, 7, -7, 7 }, "int32"), pl.tensor({ 2, -2, -2, 2 }, "int32")

  it("tell divisions apart", function()
    assert.same({ -3, -3, 3, 3 }, of("trunc_divide(%a, %b)", a, b))
    assert.same({ -1, 1, -1, 1 }, of("trunc_mod(%a, %b)", a, b))
    assert.same({ 1, -1, -1, 1 }, of("floor_mod(%a, %b)", a, b))
    assert.same({ true, true, true, true }, of("not_equal(%a, %b)", a, b))
  end)

  it("add a bias along an axis", function()
    assert.same({ { 1, 2 }, { 13, 14 } }, run([[
      def @main(%x: Tensor[(2, 2), float32], %b: Tensor[(2), float32]) {
        nn.bias_add(%x, %b, axis=0)
      }]], pl.tensor({ { 1, 2 }, { 3, 4 } }, "float32"),
      pl.tensor({ 0, 10 }, "float32")):to_table())
  end)

  it("reduce truths", function()
    local x = pl.tensor({ { true, false }, { true, true } }, "bool")
    local text = "def @main(%x: Tensor[(2, 2), bool]) { CALL }"
    assert.same({ false, true }, run(text:gsub("CALL", "all(%%x, axis=[1])"), x):to_table())
    assert.same(true, run(text:gsub("CALL", "any(%%x)"), x):to_table())
  end)

  it("limit half floats by an operand and an attribute", function()
    local x = pl.tensor({ 0.25, 0.5, 3 }, "float16")
    local text = "def @main(%x: Tensor[(3), float16]) { clip(%x, 0.375f16, a_max=0.75f) }"
    assert.same({ 0.375, 0.5, 0.75 }, run(text, x):to_table())
  end)

  it("limit integers by floats, as far as the dtype goes", function()
    local x = pl.tensor({ -100, 3, 100 }, "int8")
    local text = "def @main(%x: Tensor[(3), int8]) { clip(%x, a_min=LOW, a_max=HIGH) }"
    local function clipped(low, high)
      return run(text:gsub("LOW", low):gsub("HIGH", high), x):to_table()
    end
    assert.same({ 0, 3, 6 }, clipped("0f", "6f"))
    assert.same({ -100, 3, 6 }, clipped("-300f", "6f"))
    assert.same({ 1, 3, 100 }, clipped("1f", "300f"))
  end)
end)
