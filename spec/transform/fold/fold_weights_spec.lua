-- Folding into the weights of a product: what goes in, what comes out, that both
-- compute the same, and what must stay as it is.

local pl = require "perilune"
local zoo = require "perilune.zoo.model"

local op = pl.op

-- Numbers that repeat after a while, none of them 0.
local function number(i) return ((i * 37 % 29) - 14.5) / 8 end

-- A constant of that shape. `value`: a number, or a function of the index.
local function constant(shape, value, dtype)
  local i = 0
  local function fill(axis)
    if axis > #shape then
      i = i + 1
      if type(value) == "number" then return value end
      return (value or number)(i)
    end
    local row = {}
    for k = 1, shape[axis] do row[k] = fill(axis + 1) end
    return row
  end
  return pl.const(pl.tensor(fill(1), dtype or "float32"))
end

local function var(name, shape, dtype)
  return pl.var(name, pl.type { shape = shape, dtype = dtype or "float32" })
end
local function ints(...) return pl.const(pl.tensor({ ... }, "int64")) end

local function module(vars, body) return pl.module { main = pl.func(vars, body) } end

local function calls(mod)
  local names = {}
  for node in mod.main:nodes() do
    if node.kind == "Call" then names[#names + 1] = node.op.name end
  end
  return table.concat(names, " ")
end

-- Applies a pipeline; the result is valid, computes the same, and is final.
local function run(pipeline, mod, tolerance)
  local pass = pl.pipeline(pipeline)
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { rtol = tolerance, atol = tolerance }))
  assert.equal(out, pass(out))
  return out
end

local function unchanged(pass, vars, body)
  local mod = module(vars, body)
  assert.equal(mod, pl.pipeline(pass)(mod))
end

local x = var("x", { "N", 4, 6, 5 })

-- A batch normalisation of n channels. `with` replaces constants and attributes.
local function normalise(y, n, with)
  with = with or {}
  local dtype = with.dtype or "float32"
  local function positive(i) return (i % 5 + 1) / 2 end
  return op.nn.batch_norm(y, with.scale or constant({ n }, number, dtype),
    with.bias or constant({ n }, function(i) return number(i + 3) end, dtype),
    with.mean or constant({ n }, function(i) return number(i + 9) end, dtype),
    with.variance or constant({ n }, positive, dtype), with.attrs or { epsilon = 1e-3 })
end

local function conv(weight, bias, attrs) return op.nn.conv(x, weight, bias, attrs or {}) end

describe("FoldBatchNorm folds into", function()
  local function fold(vars, body, tolerance)
    return run("FoldBatchNorm{halves=true}", module(vars, body), tolerance)
  end
  local w, b = constant { 3, 4, 3, 3 }, constant { 3 }

  it("a convolution with bias", function()
    local out = fold({ x }, normalise(conv(w, b), 3))
    assert.equal("nn.conv", calls(out))
  end)

  it("a convolution without, which gets one", function()
    local out = fold({ x }, normalise(op.nn.conv(x, w, { pads = { 1, 1, 1, 1 } }), 3))
    assert.equal("nn.conv", calls(out))
    assert.equal(3, #out.main.body.args)
    assert.same({ 1, 1, 1, 1 }, out.main.body.attrs.pads)
  end)

  it("numbers that can be done by hand", function()
    local y = op.nn.conv(var("z", { 1, 1, 2 }), constant({ 2, 1, 1 }, 3), constant({ 2 }, 1))
    local z = y.args[1]
    local out = fold({ z }, normalise(y, 2, { scale = pl.const(pl.tensor({ 2, 4 }, "float32")),
      bias = constant({ 2 }, 5), mean = constant({ 2 }, 2), variance = constant({ 2 }, 4),
      attrs = { epsilon = 0 } }))
    assert.same({ { { 3 } }, { { 6 } } }, out.main.body.args[2].data:to_table())
    assert.same({ 4, 3 }, out.main.body.args[3].data:to_table())
  end)

  it("a convolution in groups", function()
    local y = op.nn.conv(x, constant { 6, 2, 3, 3 }, { group = 2 })
    assert.equal("nn.conv", calls(fold({ x }, normalise(y, 6))))
  end)

  it("a transposed convolution, in groups or not", function()
    for _, group in ipairs { 1, 2, 4 } do
      local y = op.nn.conv_transpose(x, constant { 4, 3, 2, 2 }, constant { 3 * group },
        { group = group, strides = { 2, 2 } })
      assert.equal("nn.conv_transpose", calls(fold({ x }, normalise(y, 3 * group))))
    end
  end)

  it("a gemm", function()
    local a = var("a", { "N", 4 })
    for _, bias in ipairs { constant { 3 }, constant { 1, 3 }, constant({ 1 }, 2) } do
      local y = op.nn.gemm(a, constant { 4, 3 }, bias, { alpha = 0.5, beta = 2 })
      local out = fold({ a }, normalise(y, 3))
      assert.equal("nn.gemm", calls(out))
      assert.is_nil(out.main.body.attrs.beta)
    end
    local y = op.nn.gemm(a, constant { 3, 4 }, { transB = 1 })
    assert.equal("nn.gemm", calls(fold({ a }, normalise(y, 3))))
  end)

  it("a product of two matrices, which becomes a gemm", function()
    local a = var("a", { "N", 4 })
    assert.equal("nn.gemm", calls(fold({ a }, normalise(op.nn.matmul(a, constant { 4, 3 }), 3))))
  end)

  it("one that has been folded into before", function()
    assert.equal("nn.conv", calls(fold({ x }, normalise(normalise(conv(w, b), 3), 3))))
  end)

  it("products of other dtypes", function()
    for dtype, tolerance in pairs { float64 = 1e-12, float16 = 2e-2, bfloat16 = 2e-1 } do
      local z = var("z", { 2, 4, 3, 3 }, dtype)
      local y = op.nn.conv(z, constant({ 3, 4, 2, 2 }, number, dtype))
      local out = fold({ z }, normalise(y, 3, { dtype = dtype }), tolerance)
      assert.equal("nn.conv", calls(out))
      assert.equal(dtype, out.main.body.args[2].data.dtype)
    end
  end)

  it("halves, with statistics in float32", function()
    local z = var("z", { 2, 4, 3, 3 }, "float16")
    local y = op.nn.conv(z, constant({ 3, 4, 2, 2 }, number, "float16"))
    local out = fold({ z }, op.nn.batch_norm(y, constant({ 3 }, 1, "float16"),
      constant({ 3 }, 1, "float16"), constant { 3 }, constant({ 3 }, 2)), 2e-2)
    assert.equal("nn.conv", calls(out))
  end)

  it("a convolution of the same branch", function()
    local p = pl.var("p", "bool")
    local branch = pl.if_(p, normalise(conv(w, b), 3), normalise(conv(w, b), 3))
    assert.equal("nn.conv nn.conv", calls(fold({ p, x }, branch)))
  end)
end)

describe("FoldBatchNorm keeps", function()
  local w, b = constant { 3, 4, 3, 3 }, constant { 3 }
  local v = var("v", { 3 })

  local function keeps(vars, body) unchanged("FoldBatchNorm", vars, body) end

  it("a convolution that something else uses", function()
    local y = conv(w, b)
    keeps({ x }, pl.tuple(normalise(y, 3), y))
    keeps({ x }, op.add(normalise(y, 3), op.nn.relu(y)))
  end)

  it("what is not constant", function()
    local u = var("u", { 3, 4, 3, 3 })
    keeps({ x, u }, normalise(conv(u, b), 3))
    keeps({ x, v }, normalise(conv(w, v), 3))
    for _, operand in ipairs { "scale", "bias", "mean", "variance" } do
      keeps({ x, v }, normalise(conv(w, b), 3, { [operand] = v }))
    end
  end)

  it("weights of 16 bits, when it is not told otherwise", function()
    for _, dtype in ipairs { "float16", "bfloat16" } do
      local z = var("z", { 2, 4, 3, 3 }, dtype)
      local y = op.nn.conv(z, constant({ 3, 4, 2, 2 }, number, dtype))
      keeps({ z }, normalise(y, 3, { dtype = dtype }))
    end
  end)

  it("training", function()
    keeps({ x }, normalise(conv(w, b), 3, { attrs = { training_mode = 1 } }))
    local trained = normalise(conv(w, b), 3, { attrs = { n_results = 3 } })
    keeps({ x }, pl.ir.TupleGetItem(trained, 0))
  end)

  it("normalisation by element", function()
    keeps({ x }, op.nn.batch_norm(op.nn.conv(x, constant { 3, 4, 6, 5 }), constant { 3, 1, 1 },
      constant { 3, 1, 1 }, constant { 3, 1, 1 }, constant({ 3, 1, 1 }, 1), { spatial = 0 }))
  end)

  it("channels of another number", function()
    local m = zoo.new { name = "channels", opset = 13 }
    m:input("x", "float32", { 1, 4, 6, 5 })
    local y = m:node("Conv", { "x", m:initializer("w", "float32", { 3, 4, 1, 1 }, ("\0"):rep(48)) },
      nil, "y")
    for _, name in ipairs { "scale", "bias", "mean", "variance" } do
      m:initializer(name, "float32", { 4 }, ("\0"):rep(16))
    end
    m:output(m:node("BatchNormalization", { y, "scale", "bias", "mean", "variance" },
      nil, "z"), "float32")
    local mod = assert(pl.onnx.parse((m:tostring())))
    assert.equal(mod, pl.pipeline "FoldBatchNorm" (mod))
  end)

  it("factors and weights that are not finite", function()
    keeps({ x }, normalise(conv(w, b), 3, { variance = constant({ 3 }, -1) }))
    keeps({ x }, normalise(conv(w, b), 3,
      { variance = constant({ 3 }, 0), attrs = { epsilon = 0 } }))
    keeps({ x }, normalise(conv(constant({ 3, 4, 3, 3 }, 1e30), b), 3,
      { scale = constant({ 3 }, 1e30) }))
    local z = var("z", { 2, 4, 3, 3 }, "float16")
    local y = op.nn.conv(z, constant({ 3, 4, 2, 2 }, 60000, "float16"))
    unchanged("FoldBatchNorm{halves=true}", { z }, normalise(y, 3,
      { dtype = "float16", variance = constant({ 3 }, 0.01, "float16") }))
  end)

  it("a product of more than two axes", function()
    local a = var("a", { 2, 3, 4 })
    keeps({ a }, normalise(op.nn.matmul(a, constant { 4, 3 }), 3))
  end)

  it("a gemm with a bias by row", function()
    local a = var("a", { 3, 4 })
    keeps({ a }, normalise(op.nn.gemm(a, constant { 4, 3 }, constant { 3, 1 }), 3))
    keeps({ a }, normalise(op.nn.gemm(a, constant { 4, 3 }, constant { 3, 3 }), 3))
  end)

  it("a convolution computed outside of the branch", function()
    local build = pl.builder()
    local scope = build:open()
    local p = build:param("p", "bool")
    local z = build:param("z", pl.type { shape = { 1, 4, 6, 5 }, dtype = "float32" })
    build:run(function()
      local y = op.nn.conv(z, w)
      local yes = build:open()
      build:finish(yes, normalise(y, 3))
      local no = build:open()
      build:finish(no, constant { 1, 3, 4, 3 })
      build:finish(scope, build:if_(p, yes, no))
    end)
    local mod = pl.module { main = build:seal(build:func(scope)) }
    assert.equal(mod, pl.passes.FoldBatchNorm()(mod))
  end)
end)

describe("FoldConvBias folds", function()
  local function fold(vars, body) return run("FoldConvBias", module(vars, body)) end
  local w = constant { 3, 4, 3, 3 }

  it("a constant by channel into a convolution, from either side", function()
    local k = constant { 3, 1, 1 }
    local out = fold({ x }, op.add(op.nn.conv(x, w), k))
    assert.equal("nn.conv", calls(out))
    assert.same({ number(1), number(2), number(3) }, out.main.body.args[3].data:to_table())
    assert.equal("nn.conv", calls(fold({ x }, op.add(k, op.nn.conv(x, w)))))
    assert.equal("nn.conv", calls(fold({ x }, op.add(constant { 1, 3, 1, 1 }, op.nn.conv(x, w)))))
  end)

  it("one number", function()
    for _, k in ipairs { pl.const(2.5), constant({ 1 }, 2.5), constant({ 1, 1, 1, 1 }, 2.5) } do
      local out = fold({ x }, op.add(op.nn.conv(x, w), k))
      assert.same({ 2.5, 2.5, 2.5 }, out.main.body.args[3].data:to_table())
    end
  end)

  it("into a bias that is there", function()
    local out = fold({ x }, op.add(op.nn.conv(x, w, constant { 3 }), constant { 3, 1, 1 }))
    assert.same({ 2 * number(1), 2 * number(2), 2 * number(3) },
      out.main.body.args[3].data:to_table())
  end)

  it("what is subtracted", function()
    local out = fold({ x }, op.subtract(op.nn.conv(x, w, constant { 3 }), constant { 3, 1, 1 }))
    assert.same({ 0, 0, 0 }, out.main.body.args[3].data:to_table())
  end)

  it("into a convolution whose weight is not constant", function()
    local u = var("u", { 3, 4, 3, 3 })
    assert.equal("nn.conv", calls(fold({ x, u }, op.add(op.nn.conv(x, u), constant { 3, 1, 1 }))))
  end)

  it("into transposed convolutions and gemms", function()
    local y = op.nn.conv_transpose(x, constant { 4, 3, 2, 2 }, { group = 2 })
    assert.equal("nn.conv_transpose", calls(fold({ x }, op.add(y, constant { 6, 1, 1 }))))
    local a = var("a", { "N", 4 })
    y = op.nn.gemm(a, constant { 4, 3 }, constant { 3 }, { beta = 2, alpha = 3 })
    assert.equal("nn.gemm", calls(fold({ a }, op.add(y, constant { 3 }))))
    y = op.nn.matmul(a, constant { 4, 3 })
    assert.equal("nn.gemm", calls(fold({ a }, op.subtract(y, constant { 1, 3 }))))
  end)

  it("one after the other", function()
    local k = constant { 3, 1, 1 }
    assert.equal("nn.conv", calls(fold({ x }, op.add(op.add(op.nn.conv(x, w), k), k))))
  end)
end)

describe("FoldConvBias keeps", function()
  local function keeps(vars, body) unchanged("FoldConvBias", vars, body) end
  local w = constant { 3, 4, 3, 3 }

  it("constants along other axes", function()
    keeps({ x }, op.add(op.nn.conv(x, w), constant { 3 }))
    keeps({ x }, op.add(op.nn.conv(x, w), constant { 4, 1 }))
    keeps({ x }, op.add(op.nn.conv(x, w), constant { 3, 4, 1 }))
    keeps({ x }, op.add(op.nn.conv(x, w), constant { 2, 1, 1, 1 }))
  end)

  it("constants that make the result larger", function()
    keeps({ x }, op.add(op.nn.conv(x, w), constant { 1, 1, 3, 1, 1 }))
    keeps({ x }, op.add(op.nn.conv(x, constant { 1, 4, 3, 3 }), constant { 3, 1, 1 }))
  end)

  it("what is not constant, or used elsewhere", function()
    local v, y = var("v", { 3, 1, 1 }), op.nn.conv(x, w)
    keeps({ x, v }, op.add(op.nn.conv(x, w), v))
    keeps({ x, v }, op.add(op.nn.conv(x, w, op.squeeze(v, ints(1, 2))), constant { 3, 1, 1 }))
    keeps({ x }, pl.tuple(op.add(y, constant { 3, 1, 1 }), y))
  end)

  it("a constant from which the convolution is subtracted", function()
    keeps({ x }, op.subtract(constant { 3, 1, 1 }, op.nn.conv(x, w)))
  end)
end)

local function pad(y, ...) return op.nn.pad(y, ints(...)) end

describe("FoldExplicitPadding folds", function()
  local function fold(vars, body) return run("FoldExplicitPadding", module(vars, body)) end
  local w = constant { 3, 4, 3, 3 }

  local function pads_of(out, name)
    assert.equal(name or "nn.conv", calls(out))
    return out.main.body.attrs.pads
  end

  it("into a convolution", function()
    local y = op.nn.conv(pad(x, 0, 0, 1, 2, 0, 0, 3, 0), w, constant { 3 })
    assert.same({ 1, 2, 3, 0 }, pads_of(fold({ x }, y)))
  end)

  it("onto padding that is there", function()
    local y = op.nn.conv(pad(x, 0, 0, 1, 2, 0, 0, 3, 0), w, { pads = { 1, 1, 0, 2 } })
    assert.same({ 2, 3, 3, 2 }, pads_of(fold({ x }, y)))
  end)

  it("into a convolution told to be valid", function()
    local out = fold({ x }, op.nn.conv(pad(x, 0, 0, 1, 1, 0, 0, 1, 1), w, { auto_pad = "VALID" }))
    assert.same({ 1, 1, 1, 1 }, pads_of(out))
    assert.is_nil(out.main.body.attrs.auto_pad)
  end)

  it("pads given as attribute, with axes, or with a value", function()
    local y = op.nn.pad(x, { pads = { 0, 0, 1, 1, 0, 0, 1, 1 }, value = 0.0 })
    assert.same({ 1, 1, 1, 1 }, pads_of(fold({ x }, op.nn.conv(y, w))))
    y = op.nn.pad(x, ints(1, 2), nil, ints(-1))
    assert.same({ 0, 1, 0, 2 }, pads_of(fold({ x }, op.nn.conv(y, w))))
    y = op.nn.pad(x, ints(0, 0, 1, 1, 0, 0, 1, 1), pl.const(0.0))
    assert.same({ 1, 1, 1, 1 }, pads_of(fold({ x }, op.nn.conv(y, w))))
  end)

  it("one behind the other", function()
    local y = pad(pad(x, 0, 0, 1, 1, 0, 0, 1, 1), 0, 0, 1, 0, 0, 0, 0, 0)
    assert.same({ 2, 1, 1, 1 }, pads_of(fold({ x }, op.nn.conv(y, w))))
  end)

  it("and leaves the pad to others", function()
    local y = pad(x, 0, 0, 1, 1, 0, 0, 1, 1)
    local out = fold({ x }, pl.tuple(op.nn.conv(y, w), y))
    assert.equal("nn.pad nn.conv", calls(out))
  end)

  it("into a mean over windows, which then counts zeros", function()
    local y = op.nn.avg_pool(pad(x, 0, 0, 1, 1, 0, 0, 1, 0), { kernel_shape = { 2, 3 } })
    local out = fold({ x }, y)
    assert.same({ 1, 1, 1, 0 }, pads_of(out, "nn.avg_pool"))
    assert.equal(1, out.main.body.attrs.count_include_pad)
    y = op.nn.avg_pool(pad(x, 0, 0, 1, 1, 0, 0, 1, 1),
      { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 }, count_include_pad = 1 })
    assert.same({ 2, 2, 2, 2 }, pads_of(fold({ x }, y), "nn.avg_pool"))
  end)
end)

describe("FoldExplicitPadding keeps", function()
  local function keeps(vars, body) unchanged("FoldExplicitPadding", vars, body) end
  local w = constant { 3, 4, 3, 3 }
  local around = { 0, 0, 1, 1, 0, 0, 1, 1 }

  it("other values than 0", function()
    keeps({ x }, op.nn.conv(op.nn.pad(x, ints(table.unpack(around)), pl.const(1.0)), w))
    keeps({ x }, op.nn.conv(op.nn.pad(x, { pads = around, value = 0.5 }), w))
    local v = var("v", {})
    keeps({ x, v }, op.nn.conv(op.nn.pad(x, ints(table.unpack(around)), v), w))
  end)

  it("other modes", function()
    for _, mode in ipairs { "reflect", "edge", "wrap" } do
      keeps({ x }, op.nn.conv(op.nn.pad(x, ints(table.unpack(around)), { pad_mode = mode }), w))
    end
  end)

  it("padding of batch or channels, and cropping", function()
    keeps({ x }, op.nn.conv(pad(x, 1, 0, 1, 1, 0, 0, 1, 1), w))
    keeps({ x }, op.nn.conv(pad(x, 0, 0, 1, 1, 0, 1, 1, 1), constant { 3, 5, 3, 3 }))
    keeps({ x }, op.nn.conv(pad(x, 0, 0, -1, 1, 0, 0, 1, 1), w))
    keeps({ x }, op.nn.conv(op.nn.pad(x, ints(1, 0), nil, ints(-4)), w))
  end)

  it("pads that are not known", function()
    local v = var("v", { 8 }, "int64")
    keeps({ x, v }, op.nn.conv(op.nn.pad(x, v), w))
  end)

  it("padding before a convolution that pads to the same size", function()
    keeps({ x }, op.nn.conv(pad(x, table.unpack(around)), w, { auto_pad = "SAME_UPPER" }))
  end)

  it("padding before a maximum", function()
    keeps({ x }, op.nn.max_pool(pad(x, table.unpack(around)), { kernel_shape = { 3, 3 } }))
  end)

  it("padding before a mean that would change", function()
    local function mean(attrs) keeps({ x }, op.nn.avg_pool(pad(x, table.unpack(around)), attrs)) end
    mean { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 } }
    mean { kernel_shape = { 3, 3 }, strides = { 2, 2 }, ceil_mode = 1 }
    mean { kernel_shape = { 1, 1 } }
  end)
end)

describe("MatMulAddToGemm", function()
  local a, b = var("a", { "N", 4 }), var("b", { 4, 3 })
  local function merge(vars, body) return run("MatMulAddToGemm", module(vars, body)) end
  local function keeps(vars, body) unchanged("MatMulAddToGemm", vars, body) end

  it("merges what broadcasts to the product, from either side", function()
    for _, shape in ipairs { {}, { 1 }, { 3 }, { 1, 1 }, { 1, 3 }, { "N", 1 }, { "N", 3 } } do
      local c = var("c", shape)
      assert.equal("nn.gemm", calls(merge({ a, b, c }, op.add(op.nn.matmul(a, b), c))))
      assert.equal("nn.gemm", calls(merge({ a, b, c }, op.add(c, op.nn.matmul(a, b)))))
    end
  end)

  it("gives a gemm what it adds", function()
    local out = merge({ a, b }, op.add(op.nn.gemm(a, b, { alpha = 2, beta = 3 }), constant { 3 }))
    assert.equal("nn.gemm", calls(out))
    assert.is_nil(out.main.body.attrs.beta)
    assert.equal(2, out.main.body.attrs.alpha)
  end)

  it("keeps what makes the product larger, or may", function()
    for _, shape in ipairs { { "N", 1, 3 }, { "M", 3 }, { "?", 3 }, { 5, 3 } } do
      local c = var("c", shape)
      keeps({ a, b, c }, op.add(op.nn.matmul(a, b), c))
    end
    local column = var("column", { 4, 1 })
    keeps({ a, column }, op.add(op.nn.matmul(a, column), constant { 3 }))
  end)

  it("keeps other products", function()
    local x3, v = var("x3", { 2, 5, 4 }), var("v", { 4 })
    keeps({ x3, b }, op.add(op.nn.matmul(x3, b), constant { 3 }))
    keeps({ a, v }, op.add(op.nn.matmul(a, v), pl.const(1.0)))
    local i, k = var("i", { 2, 4 }, "int32"), var("k", { 4, 3 }, "int32")
    keeps({ i, k }, op.add(op.nn.matmul(i, k), constant({ 3 }, 1, "int32")))
    local y = op.nn.matmul(a, b)
    keeps({ a, b }, op.add(y, y))
    keeps({ a, b }, pl.tuple(op.add(y, constant { 3 }), y))
    keeps({ a, b }, op.add(op.nn.gemm(a, b, constant { 3 }), constant { 3 }))
  end)
end)

describe("The budget of FoldBatchNorm", function()
  local big = constant { 65, 64, 2, 2 } -- 66,560 bytes
  local y = var("y", { 1, 64, 3, 3 })

  it("lets a weight of one user go", function()
    local out = run("FoldBatchNorm", module({ y }, normalise(op.nn.conv(y, big), 65)), 1e-4)
    assert.equal("nn.conv", calls(out))
  end)

  it("copies a shared weight only when told to", function()
    local function both()
      return op.add(normalise(op.nn.conv(y, big), 65), op.nn.relu(op.nn.conv(y, big)))
    end
    unchanged("FoldBatchNorm", { y }, both())
    local out = run('FoldBatchNorm{fold="all"}', module({ y }, both()), 1e-4)
    assert.equal("nn.conv nn.conv nn.relu add", calls(out))
  end)

  it("lets a shared weight go with the last of its users", function()
    local small = op.nn.conv(y, big)
    local first = normalise(small, 65)
    local mod = module({ y }, op.add(first, normalise(op.nn.conv(y, big), 65)))
    unchanged("FoldBatchNorm", { y }, mod.main.body)
  end)

  it("copies a small weight", function()
    local w = constant { 3, 4, 3, 3 }
    local out = run("FoldBatchNorm", module({ x }, op.add(normalise(op.nn.conv(x, w), 3),
      op.nn.conv(x, w))))
    assert.equal("nn.conv nn.conv add", calls(out))
  end)

  local function filled(shape, value)
    return op.constant_of_shape(ints(table.unpack(shape)),
      { value = pl.tensor({ value }, "float32") })
  end
  local even = { scale = constant({ 65 }, 3), variance = constant({ 65 }, 1),
    attrs = { epsilon = 0 } }

  it("leaves a weight filled with one value filled", function()
    local mod = module({ y }, normalise(op.nn.conv(y, filled({ 65, 64, 2, 2 }, 0.5)), 65, even))
    local out = run("FoldBatchNorm", mod, 1e-4)
    assert.equal("constant_of_shape nn.conv", calls(out))
    assert.same({ 1.5 }, out.main.body.args[2].attrs.value:to_table())
    -- A Constant of one element, when it was one.
    out = run('FoldConstant{fold="all"},FoldBatchNorm', mod, 1e-4)
    assert.is_true(out.main.body.args[2].data.splat)
  end)

  it("writes it out only when told to", function()
    local mod = module({ y }, normalise(op.nn.conv(y, filled({ 65, 64, 2, 2 }, 0.5)), 65))
    assert.equal(mod, pl.passes.FoldBatchNorm()(mod))
    assert.equal("nn.conv", calls(run('FoldBatchNorm{fold="all"}', mod, 1e-4)))
  end)
end)
