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

  it("pools and batch normalisation", function()
    local window = { kernel_shape = { 3, 3 }, strides = { 2, 2 }, pads = { 1, 1, 1, 1 } }
    for _, name in ipairs { "max_pool", "avg_pool", "lp_pool" } do
      same_with_threads(function(x) return op.nn[name](x, window) end, { 2, 19, 57, 41 })
      same_with_threads(function(x) return op.nn[name](x, window) end, { 1, 300, 7, 7 })
    end
    for _, name in ipairs { "global_max_pool", "global_avg_pool", "global_lp_pool" } do
      same_with_threads(op.nn[name], { 3, 67, 31, 33 })
    end
    for _, shape in ipairs { { 2, 19, 57, 41 }, { 700, 130 } } do
      same_with_threads(op.nn.batch_norm, shape, { shape[2] }, { shape[2] }, { shape[2] },
        { shape[2] })
    end
  end)

  it("reductions", function()
    for _, name in ipairs { "sum", "mean", "max", "prod", "reduce_l2", "logsumexp" } do
      for _, axes in ipairs { { 0 }, { 1 }, { 2 }, { 0, 1 }, { 0, 2 }, { 1, 2 }, { 0, 1, 2 } } do
        same_with_threads(function(x) return op[name](x, { axes = axes }) end, { 37, 61, 83 })
      end
    end
    same_with_threads(function(x) return op.sum(x, { axes = { 1 } }) end,
      { 301, 401, dtype = "float16" })
    same_with_threads(function(x) return op.sum(x, { axes = { 0 } }) end,
      { 40, 9001, dtype = "int32" })
  end)

  it("copies", function()
    for _, axes in ipairs { { 2, 1, 0 }, { 1, 0, 2 }, { 0, 2, 1 }, { 2, 0, 1 } } do
      same_with_threads(function(x) return op.transpose(x, { axes = axes }) end, { 97, 61, 83 })
      same_with_threads(function(x) return op.transpose(x, { axes = axes }) end, { 3, 701, 303 })
      same_with_threads(function(x) return op.transpose(x, { axes = axes }) end,
        { 703, 301, 3, dtype = "int8" })
    end
    for axis = 0, 2 do
      local function join(x, y, z) return op.concatenate(x, y, z, { axis = axis }) end
      local other = { 61, 73, 83 }
      other[axis + 1] = 17
      same_with_threads(join, { 61, 73, 83 }, other, { 61, 73, 83 })
    end
    local function indices(shape)
      local numbers = op.random_uniform { shape = shape, low = -60.0, high = 60.0, seed = 3.0 }
      return pl.const(pl.eval(op.cast(numbers, { dtype = "int64" })))
    end
    local rows, places = indices { 300 }, indices { 61, 73, 83 }
    for axis = 0, 2 do
      same_with_threads(function(x) return op.take(x, rows, { axis = axis }) end, { 61, 73, 83 })
    end
    for axis = 0, 2 do
      same_with_threads(function(x) return op.gather(x, places, { axis = axis }) end,
        { 61, 73, 83 })
    end
    same_with_threads(function(x) return op.broadcast_to(x, { shape = { 40, 70, 90 } }) end,
      { 70, 1 })
  end)

  it("attention", function()
    local shapes = { { 2, 6, 77, 32 }, { 2, 3, 131, 32 }, { 2, 3, 131, 48 } }
    same_with_threads(op.attention, table.unpack(shapes))
    same_with_threads(function(q, k, v)
      return op.attention(q, k, v, { is_causal = 1 })
    end, table.unpack(shapes))
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

  it("reports the first index outside as one thread does", function()
    local data = pl.var("data", "Tensor[(9, 20000), float32]")
    local at = pl.var("at", "Tensor[(200), int64]")
    local fn = pl.func({ data, at }, op.take(data, at, { axis = 0 }))
    local list = {}
    for i = 1, 200 do list[i] = i % 9 end
    list[120], list[199] = 9, 77
    local args = { uniform { 9, 20000 }, pl.tensor(list, "int64") }
    local function reason(threads)
      local ok, diag = pcall(pl.eval, { fn, args[1], args[2], threads = threads })
      assert.is_false(ok)
      return tostring(diag)
    end
    assert.are.equal(reason(1), reason(3))
  end)

  it("keeps the limits of the current context", function()
    local ctx = pl.context { config = { ["limit.steps"] = 1 } }
    local fn = pl.func({ x }, op.abs(op.abs(x)))
    local ok, diag = pcall(pl.with, ctx, pl.eval, { fn, zeros, threads = 2 })
    assert.is_false(ok)
    assert.matches("limit.steps", tostring(diag), 1, true)
  end)
end)
