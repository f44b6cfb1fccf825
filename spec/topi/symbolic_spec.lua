-- Models with symbolic dims through generated C: built once, they give at every size what the
-- evaluator gives; sizes that cannot be are refused by input, dimension and value.

local pl = require "perilune"
local zoo = require "perilune.zoo"

local function relay(body) return assert(pl.parse("#[version = \"0.0.5\"]\n" .. body)) end

local function random(shape, dtype, seed)
  local float = dtype == "float32"
  local tensor = pl.tensor.random(shape, "float32", { seed = seed or 1, low = float and -1 or 0,
    high = float and 1 or 2 })
  return float and tensor or pl.eval(pl.op.cast(pl.const(tensor), { dtype = dtype }))
end

-- What the built model and the evaluator give for inputs of these shapes.
local function same(built, mod, shapes)
  local args = {}
  for i, param in ipairs(mod.functions.main.params) do
    args[i] = random(shapes[i], param.type.dtype, i)
  end
  local expected = table.pack(pl.eval(mod, table.unpack(args)))
  local results = built.main(table.unpack(args))
  assert.equal(expected.n, #results)
  for i, result in ipairs(results) do
    local equal, how = result:compare(expected[i], { rtol = 1e-4, atol = 1e-4, scaled = true })
    assert.is_true(equal, not equal and ("result %d: %s, expected %s"):format(i,
      tostring(how.got), tostring(how.expected)))
  end
end

local function agrees(mod, list, options)
  local built = pl.build(mod, options)
  for _, shapes in ipairs(list) do same(built, mod, shapes) end
  return built
end

local function fails(text, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(text, tostring(err), 1, true)
end

describe("built models with symbolic dims", function()
  it("run at every size, whether dims have names or not", function()
    local mod = relay [[
def @main(%x: Tensor[(n, s, 8), float32], %w: Tensor[(n, 16, 8), float32],
    %b: Tensor[(?, 3), float32]) {
  %0 = nn.relu(nn.batch_matmul(%x, %w, transpose_b=True));
  %1 = nn.softmax(%0);
  (reshape(nn.softmax(%1), newshape=[-1, 16]), concatenate((%b, %b), axis=0), shape_of(%x))
}]]
    local built = agrees(mod, { { { 1, 1, 8 }, { 1, 16, 8 }, { 2, 3 } },
      { { 3, 7, 8 }, { 3, 16, 8 }, { 1, 3 } }, { { 2, 40, 8 }, { 2, 16, 8 }, { 9, 3 } } })
    assert.equal("Tensor[(n*s, 16), float32]", tostring(built:model().outputs[1]))
  end)

  it("run with threads, in this process and without vectors", function()
    local mod = relay [[
def @main(%x: Tensor[(n, 33), float32]) { nn.log_softmax(exp(transpose(%x, axes=[1, 0]))) }]]
    for _, options in ipairs { { threads = 2 }, { run = "process" }, { vector_bytes = 16 } } do
      agrees(mod, { { { 5, 33 } }, { { 64, 33 } } }, options)
    end
  end)

  it("take nested tables", function()
    local built = pl.build(relay "def @main(%x: Tensor[(n), float32]) { add(%x, 1f) }")
    assert.same({ 2, 3, 4 }, built.main({ 1, 2, 3 })[1]:to_table())
    assert.same({ 6 }, built.main({ 5 })[1]:to_table())
  end)

  it("run with an extent of 0", function()
    agrees(relay "def @main(%x: Tensor[(n, 4), float32]) { nn.relu(exp(%x)) }",
      { { { 0, 4 } }, { { 3, 4 } } })
  end)

  it("move elements", function()
    local mod = relay [[
def @main(%x: Tensor[(n, s, 12), float32]) {
  %0 = reshape(%x, newshape=[0, 0, 3, 4]);
  %1 = transpose(%0, axes=[0, 2, 1, 3]);
  %2 = split(%x, indices_or_sections=3, axis=2);
  (%1, reshape(%1, newshape=[-1, 4]), %2.1, reverse(%x, axis=1), expand_dims(%x, axis=1),
    tile(%x, reps=[1, 2, 1]), repeat(%x, repeats=2, axis=1), reshape(%x, newshape=[-1]))
}]]
    agrees(mod, { { { 1, 1, 12 } }, { { 2, 5, 12 } }, { { 3, 8, 12 } } })
  end)

  it("reduce over symbolic axes", function()
    local mod = relay [[
def @main(%x: Tensor[(n, s, 6), float32]) {
  (mean(%x, axis=[1]), max(%x, axis=[0, 1], keepdims=True), sum(%x), argmax(%x, axis=[1]),
    nn.softmax(%x, axis=1))
}]]
    agrees(mod, { { { 1, 1, 6 } }, { { 4, 3, 6 } }, { { 2, 33, 6 } } })
  end)

  it("convolve and pool images of any size", function()
    local mod = relay [[
def @main(%x: Tensor[(n, 3, h, w), float32], %k: Tensor[(8, 3, 3, 3), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %k, strides=[2, 2], padding=[1, 1, 1, 1], channels=8,
    kernel_size=[3, 3]));
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  (nn.avg_pool2d(%1, pool_size=[3, 3], padding=[1, 1, 1, 1]), nn.global_avg_pool2d(%1))
}]]
    agrees(mod, { { { 1, 3, 16, 16 }, { 8, 3, 3, 3 } }, { { 2, 3, 17, 30 }, { 8, 3, 3, 3 } } })
  end)

  it("slice and pad by what the shapes tell", function()
    local x = pl.var("x", "Tensor[(n, s, 4), float32]")
    local shape = pl.op.shape_of(x, { dtype = "int64" })
    local size = pl.op.take(shape, pl.const(pl.tensor({ 1 }, "int64")), { axis = 0 })
    local one = pl.const(pl.tensor({ 1 }, "int64"))
    local table_of = pl.const(pl.tensor.random({ 20, 4 }, "float32", { seed = 3 }))
    local zero = pl.const(pl.tensor({ 0 }, "int64"))
    local rows = pl.op.strided_slice(table_of, zero, size, zero, one)
    local last = pl.op.strided_slice(x, pl.const(pl.tensor({ -1 }, "int64")),
      pl.const(pl.tensor({ 1 << 40 }, "int64")), one, one)
    agrees(pl.module { main = pl.func({ x }, pl.tuple { pl.op.add(x, rows), last }) },
      { { { 2, 5, 4 } }, { { 1, 20, 4 } } })
  end)

  it("of the zoo give what the evaluator gives", function()
    local path = os.tmpname()
    assert(assert(zoo.build("bert", { layers = 2, hidden = 32, heads = 2, intermediate = 64,
      vocabulary = 50, positions = 32 })):save(path))
    local mod = pl.pipelines.default(assert(pl.onnx.load(path)))
    os.remove(path)
    local list = {}
    for i, size in ipairs { { 1, 8 }, { 3, 5 }, { 2, 32 } } do list[i] = { size, size, size } end
    local built = agrees(mod, list)
    assert.is_true(built:model().calls > 10)
    fails("the sizes", built.main, random({ 1, 33 }, "int64"), random({ 1, 33 }, "int64"),
      random({ 1, 33 }, "int64"))
  end)

  it("use memory again when a value is not needed any more", function()
    local lines = { "def @main(%x: Tensor[(n, 64), float32]) {" }
    for i = 0, 9 do
      lines[#lines + 1] = ("  %%%d = nn.softmax(%s);"):format(i, i == 0 and "%x" or "%" .. i - 1)
    end
    lines[#lines + 1] = "  nn.softmax(%9)\n}"
    local built = agrees(relay(table.concat(lines, "\n")), { { { 5, 64 } } })
    local _, slots = built:source():gsub("const int64_t at%d+ = ", "")
    assert.is_true(slots <= 2 * 2) -- two, in both variants
  end)
end)

describe("sizes that cannot be", function()
  local mod = relay [[
def @main(%x: Tensor[(n, 4), float32], %y: Tensor[(n, m), float32]) {
  concatenate((%x, %y), axis=1)
}]]

  it("are refused by input, dimension and both values", function()
    local built = pl.build(mod)
    fails("input 'y': dimension 0 (n) is 3, but dimension 0 of input 'x' is 2", built.main,
      random({ 2, 4 }, "float32"), random({ 3, 1 }, "float32"))
    fails("input 'x': dimension 1 is 5, but 4 is expected", built.main,
      random({ 2, 5 }, "float32"), random({ 2, 1 }, "float32"))
    fails("input 'y': a tensor of rank 2 expected, got rank 1", built.main,
      random({ 2, 4 }, "float32"), random({ 2 }, "float32"))
  end)

  it("are refused by the entry that a C program calls", function()
    local built = pl.build(mod)
    local entry = built["tvmgen_default___tvm_main__"]
    fails("dimension 0 is not the declared one", entry, random({ 2, 4 }, "float32"),
      random({ 3, 1 }, "float32"), random({ 2, 5 }, "float32"))
    local small = pl.build(relay [[
def @main(%x: Tensor[(4, n), float32], %y: Tensor[(m, 4), float32]) { nn.matmul(%x, %y) }]])
    fails("the sizes n and m are to be equal", small["tvmgen_default___tvm_main__"],
      random({ 4, 2 }, "float32"), random({ 3, 4 }, "float32"), random({ 4, 4 }, "float32"))
    fails("are to be equal, but are 2 and 3", small.main, random({ 4, 2 }, "float32"),
      random({ 3, 4 }, "float32"))
  end)

  it("are refused where a C program gives a negative extent", function()
    local source = pl.build(mod):source()
    local entry = source:match "int32_t tvmgen_default___tvm_main___call%b()%s*%b{}"
    assert.matches("if (args[0].shape[0] < 0)", entry, 1, true)
  end)

  it("are refused where a size is negative or too large", function()
    local window = relay [[
def @main(%x: Tensor[(1, 1, h, 9), float32], %k: Tensor[(1, 1, 5, 5), float32]) {
  nn.conv2d(%x, %k, channels=1, kernel_size=[5, 5])
}]]
    local built = pl.build(window)
    same(built, window, { { 1, 1, 7, 9 }, { 1, 1, 5, 5 } })
    fails("is -2: it is negative", built.main, random({ 1, 1, 2, 9 }, "float32"),
      random({ 1, 1, 5, 5 }, "float32"))
    local wide = pl.build(relay [[
def @main(%x: Tensor[(n, 1), float32], %y: Tensor[(1, m), float32]) { add(%x, %y) }]])
    fails("has more than 2147483647 elements", wide.main,
      pl.tensor.full(0, { 1 << 20, 1 }, "float32"), pl.tensor.full(0, { 1, 1 << 20 }, "float32"))
  end)

  it("are refused when they are not known at all", function()
    fails("'argwhere': the shape of its result", pl.build,
      relay "def @main(%x: Tensor[(n, 4), float32]) { argwhere(%x) }")
    fails("the shape of Tensor[(?), float32] is not known", pl.build,
      relay "def @main(%x: Tensor[(n), float32], %y: Tensor[(m), float32]) { add(%x, %y) }")
    fails("is no dimension of an input", pl.build,
      relay "def @main(%x: Tensor[(2*n), float32]) { exp(%x) }")
    fails("a value of type Tensor[*", pl.build,
      relay "def @main(%x: Tensor[*, float32]) { exp(%x) }")
  end)
end)
