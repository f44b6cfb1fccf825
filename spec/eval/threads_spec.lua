-- Kernels share their work among threads: results have the same bits with any number.

local pl = require "perilune"
local op = pl.op

local function uniform(shape, dtype)
  local values = op.random_uniform { shape = shape, low = -2.0, high = 2.0, seed = 7.0 }
  return pl.eval(dtype and op.cast(values, { dtype = dtype }) or values)
end

-- The bits of each result, by number of threads.
local function bits(fn, args, threads)
  local results = table.pack(pl.eval { fn, table.unpack(args) })
  if threads then
    local call = { fn, table.unpack(args) }
    call.threads = threads
    results = table.pack(pl.eval(call))
  end
  for i = 1, results.n do results[i] = results[i]:to_bytes() end
  return table.concat(results)
end

local function same_with_threads(build, ...)
  local args, params = {}, {}
  for i, shape in ipairs { ... } do
    args[i] = uniform(shape, shape.dtype)
    params[i] = pl.var("x" .. i, args[i].type)
  end
  local fn = pl.func(params, build(table.unpack(params)))
  local alone = bits(fn, args)
  for _, threads in ipairs { 2, 3, 8 } do
    assert.is_true(alone == bits(fn, args, threads), ("%d threads: %s"):format(threads, fn))
  end
end

describe("with threads, the same bits come from", function()
  it("products of matrices", function()
    local function gemm(name)
      return function(a, b) return op.nn.gemm(a, b, { [name] = 1 }) end
    end
    for _, size in ipairs {
      { 256, 256, 256 }, { 33, 700, 129 }, { 700, 33, 300 }, { 3, 4001, 900 }, { 1, 5000, 700 },
      { 5000, 1, 700 }, { 8, 3000, 257 }, { 2000, 700, 1 },
    } do
      local m, n, k = table.unpack(size)
      same_with_threads(op.nn.matmul, { m, k }, { k, n })
      same_with_threads(gemm "transB", { m, k }, { n, k })
      same_with_threads(gemm "transA", { k, m }, { k, n })
    end
    same_with_threads(op.nn.matmul, { 2, 3, 128, 64 }, { 2, 3, 64, 128 })
  end)

  it("convolutions", function()
    local function conv(attrs) return function(x, w, b) return op.nn.conv(x, w, b, attrs) end end
    same_with_threads(conv { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 } },
      { 1, 16, 40, 41 }, { 37, 16, 3, 3 }, { 37 })
    same_with_threads(conv { kernel_shape = { 1, 1 } }, { 1, 64, 30, 30 }, { 65, 64, 1, 1 }, { 65 })
    same_with_threads(conv { kernel_shape = { 3, 3 }, strides = { 2, 2 } },
      { 4, 8, 33, 33 }, { 12, 8, 3, 3 }, { 12 })
    same_with_threads(conv { kernel_shape = { 3, 3 }, group = 32, pads = { 1, 1, 1, 1 } },
      { 1, 32, 50, 50 }, { 32, 1, 3, 3 }, { 32 })
    same_with_threads(conv { kernel_shape = { 3 }, dilations = { 2 } },
      { 2, 12, 5000 }, { 24, 12, 3 }, { 24 })
  end)

  it("element by element operators", function()
    for _, name in ipairs { "tanh", "exp", "erf", "sigmoid", "abs" } do
      same_with_threads(op[name], { 70001 })
    end
    same_with_threads(op.tanh, { 50000, dtype = "float16" })
    same_with_threads(op.nn.relu, { 3, 40001 })
    for _, name in ipairs { "add", "multiply", "power", "less" } do
      same_with_threads(op[name], { 100, 1, 701 }, { 100, 3, 1 })
      same_with_threads(op[name], { 90001 }, { 90001 })
      same_with_threads(op[name], { 90001 }, {})
    end
    same_with_threads(op.add, { 300, 301, dtype = "float16" }, { 301, dtype = "float16" })
  end)

  it("softmax and normalisations", function()
    same_with_threads(function(x) return op.nn.softmax(x, { axis = -1 }) end, { 12, 77, 131 })
    same_with_threads(function(x) return op.nn.softmax(x, { axis = 1 }) end, { 12, 77, 131 })
    same_with_threads(function(x) return op.nn.log_softmax(x, { axis = 2 }) end, { 5, 999, 31 })
    same_with_threads(function(x, s, b)
      return op.nn.layer_norm(x, s, b, { axis = -1 })
    end, { 700, 131 }, { 131 }, { 131 })
  end)
end)

describe("pl.eval with options", function()
  local x = pl.var("x", "Tensor[(40000), int64]")
  local zeros = pl.eval(op.zeros { shape = { 40000 }, dtype = "int64" })

  it("refuses what it does not know", function()
    assert.has_error(function() pl.eval { op.abs(pl.const(1)), thread = 2 } end)
    local _, message = pcall(pl.eval, { op.abs(pl.const(1)), thread = 2 })
    assert.matches("pl.eval has no option 'thread'; did you mean 'threads'?", tostring(message),
      1, true)
    assert.has_error(function() pl.eval { op.abs(pl.const(1)), threads = -1 } end)
    assert.has_error(function() pl.eval { op.abs(pl.const(1)), threads = "two" } end)
  end)

  it("reports what has no result as one thread does", function()
    local fn = pl.func({ x }, op.divide(x, x))
    local function reason(threads)
      local ok, diag = pcall(pl.eval, { fn, zeros, threads = threads })
      assert.is_false(ok)
      return tostring(diag)
    end
    assert.are.equal(reason(1), reason(4))
  end)

  it("keeps the limits of the current context", function()
    local ctx = pl.context { config = { ["limit.steps"] = 1 } }
    local fn = pl.func({ x }, op.abs(op.abs(x)))
    local ok, diag = pcall(pl.with, ctx, pl.eval, { fn, zeros, threads = 2 })
    assert.is_false(ok)
    assert.matches("limit.steps", tostring(diag), 1, true)
  end)
end)
