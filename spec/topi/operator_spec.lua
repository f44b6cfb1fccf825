-- Functions of pl.topi that are operators of Relay give what the evaluator's kernels do: the loops
-- of their default schedule, interpreted or built.

local pl = require "perilune"

local topi, te = pl.topi, pl.te

local function random(shape, seed)
  return pl.tensor.random(shape, "float32", { seed = seed or 1, low = -1, high = 1 })
end

local function ints(rows, dtype) return pl.tensor(rows, dtype or "int64") end

-- { name, operands, make(topi function, placeholders), op, attrs,
-- tuple =, read = how many operands the loops read }
local rows = {}

local function row(name, operands, make, op, attrs, options)
  rows[#rows + 1] = { name = name, operands = operands, make = make, op = op, attrs = attrs,
    tuple = options and options.tuple, read = options and options.read or #operands }
end

for _, name in ipairs { "cumsum", "cumprod" } do
  row(name, { random { 3, 4 } }, function(f, x) return f(x, 1, nil, true) end, name,
    { axis = 1, exclusive = 1 })
  row(name, { random { 3, 4 } }, function(f, x) return f(x) end, name)
end
row("sort", { random { 3, 7 } }, function(f, x) return f(x, 0, 0) end, "sort",
  { axis = 0, is_ascend = 0 })
row("argsort", { random { 3, 7 } }, function(f, x) return f(x, nil, 1) end, "argsort",
  { axis = 1, dtype = "float32" })
row("topk", { random { 3, 7 } }, function(f, x) return f(x, 2, 1) end, "topk",
  { k = 2, axis = 1, dtype = "int64" })
row("topk", { random { 3, 7 } }, function(f, x) return f(x, 2, 0, "indices", true, "int32") end,
  "topk", { k = 2, axis = 0, ret_type = "indices", is_ascend = 1, dtype = "int32" })
row("scatter_elements", { random { 3, 4 }, ints { { 0, 2 }, { 1, 1 } }, random({ 2, 2 }, 2) },
  function(f, x, i, u) return f(x, i, u, 1, "add") end, "scatter_elements",
  { axis = 1, reduction = "add" })
row("scatter_nd", { random { 3, 4 }, ints { { 0, 2, 1 }, { 3, 1, 0 } }, random({ 3 }, 2) },
  function(f, x, i, u) return f(x, i, u, "add") end, "scatter_nd",
  { reduction = "add", relay = 1 })
row("repeat", { random { 2, 3 } }, function(f, x) return f(x, 3, 1) end, "repeat",
  { repeats = 3, axis = 1 })
row("shape", { random { 2, 3 } }, function(f, x) return f(x) end, "shape_of", { dtype = "int32" },
  { read = 0 })
row("ndarray_size", { random { 2, 3 } }, function(f, x) return f(x) end, "ndarray_size",
  { dtype = "int32" }, { read = 0 })
row("matmul", { random { 4, 3 }, random({ 5, 4 }, 2) }, function(f, x, y)
  return f(x, y, true, true)
end, "nn.matmul", { transpose_a = 1, transpose_b = 1 })
row("unravel_index", { ints { 22, 0, 7 }, ints { 2, 3, 4 } }, function(f, x)
  return f(x, ints { 2, 3, 4 })
end, "unravel_index", nil, { read = 1 })
row("layout_transform", { random { 1, 8, 3, 2 } }, function(f, x)
  return f(x, "NCHW", "NCHW4c")
end, "layout_transform", { src_layout = "NCHW", dst_layout = "NCHW4c" })
row("einsum", { random { 3, 4 }, random({ 4, 5 }, 2) }, function(f, x, y)
  return f("ij,jk->ki", x, y)
end, "einsum", { equation = "ij,jk->ki" })
row("fixed_point_multiply", { ints({ 5, -700, 90 }, "int32") }, function(f, x)
  return f(x, 1717986854, -3)
end, "fixed_point_multiply", { multiplier = 1717986854, shift = -3 })
row("reverse_sequence", { random { 3, 5 }, ints { 2, 5, 1 } }, function(f, x, n)
  return f(x, n)
end, "reverse_sequence", { time_axis = 1, batch_axis = 0 })
row("sequence_mask", { random { 5, 3 }, ints({ 2, 5, 0 }, "int32") }, function(f, x, n)
  return f(x, n, -2)
end, "sequence_mask", { mask_value = -2.0, axis = 0 })
row("meshgrid", { random { 3 }, random({ 4 }, 2) }, function(f, x, y)
  return f({ x, y }, "xy")
end, "meshgrid", { indexing = "xy" }, { tuple = true })
row("sliding_window", { random { 6, 7 } }, function(f, x)
  return f(x, 0, { 2, 3 }, { 2, 1 })
end, "sliding_window", { axis = 0, window_shape = { 2, 3 }, strides = { 2, 1 } })
row("adv_index", { random { 4, 5, 3 }, ints { { 0 }, { 3 } }, ints { 4, 2 } },
  function(f, x, i, k) return f(x, { i, k }) end, "adv_index", nil, { tuple = true })
row("invert_permutation", { ints({ 3, 0, 2, 1 }, "int32") }, function(f, x) return f(x) end,
  "invert_permutation")

row("nn.prelu", { random { 2, 3, 4 }, random({ 3 }, 2) }, function(f, x, s) return f(x, s) end,
  "nn.prelu", { axis = 1 })
row("nn.bias_add", { random { 2, 3, 4 }, random({ 4 }, 2) }, function(f, x, b)
  return f(x, b, -1)
end, "nn.bias_add", { axis = -1 })
row("nn.fast_softmax", { random { 3, 8 } }, function(f, x) return f(x) end, "nn.softmax")
row("nn.depth_to_space", { random { 1, 8, 2, 3 } }, function(f, x)
  return f(x, 2, "NCHW", "CRD")
end, "nn.depth_to_space", { block_size = 2, mode = "CRD" })
row("nn.space_to_depth", { random { 1, 2, 4, 6 } }, function(f, x) return f(x, 2) end,
  "nn.space_to_depth", { block_size = 2 })
row("nn.space_to_batch_nd", { random { 1, 3, 4, 2 } }, function(f, x)
  return f(x, { 2, 2 }, { 1, 0 }, { 0, 2 }, 0.5)
end, "nn.space_to_batch_nd", { block_shape = { 2, 2 }, paddings = { { 1, 0 }, { 0, 2 } },
  pad_value = 0.5 })
row("nn.batch_to_space_nd", { random { 4, 3, 4, 2 } }, function(f, x)
  return f(x, { 2, 2 }, { 1, 0 }, { 0, 2 })
end, "nn.batch_to_space_nd", { block_shape = { 2, 2 }, crops = { { 1, 0 }, { 0, 2 } } })
row("nn.adaptive_pool", { random { 1, 3, 8, 6 } }, function(f, x)
  return f(x, { 2, 3 }, "avg")
end, "nn.adaptive_avg_pool2d", { output_size = { 2, 3 } })
row("nn.adaptive_pool1d", { random { 1, 3, 8 } }, function(f, x) return f(x, { 4 }, "max") end,
  "nn.adaptive_max_pool1d", { output_size = { 4 } })
row("nn.adaptive_pool3d", { random { 1, 3, 4, 6, 2 } }, function(f, x)
  return f(x, { 2, 3, 1 }, "max")
end, "nn.adaptive_max_pool3d", { output_size = { 2, 3, 1 } })
row("nn.upsampling", { random { 1, 2, 3, 4 } }, function(f, x) return f(x, 2, 3) end,
  "nn.upsampling", { scale_h = 2.0, scale_w = 3.0 })

local function function_of(name)
  local own = name:match "^nn%.(.*)"
  return own and topi.nn[own] or topi[name]
end

local function evaluated(one)
  local nodes = {}
  for i, x in ipairs(one.operands) do nodes[i] = pl.const(x) end
  if one.tuple then nodes = { pl.ir.Tuple(nodes) } end
  return { pl.eval(pl.ir.Call(one.op, nodes, one.attrs or {})) }
end

-- The results of the loops; operands that are not read are no arguments.
local function built(one, expected)
  local holders = {}
  for i, x in ipairs(one.operands) do
    holders[i] = te.placeholder(x.shape, x.dtype, "x" .. i)
  end
  local outs = one.make(function_of(one.name), table.unpack(holders))
  if outs.op then outs = { outs } end
  local args, values = {}, {}
  table.move(holders, 1, one.read, 1, args)
  table.move(one.operands, 1, one.read, 1, values)
  for i, out in ipairs(outs) do
    args[#args + 1] = out
    values[#values + 1] = pl.eval(pl.ir.Call("zeros_like", { pl.const(expected[i]) }))
  end
  local lowered = pl.lower(topi.generic.schedule_injective(outs), { args = args })
  local results = pl.build(lowered).main(table.unpack(values))
  return table.move(results, #args - #outs + 1, #args, 1, {})
end

describe("operators of pl.topi", function()
  for i, one in ipairs(rows) do
    it(("%s #%d"):format(one.name, i), function()
      local expected = evaluated(one)
      local results = built(one, expected)
      assert.equal(#expected, #results)
      for k, want in ipairs(expected) do
        local same, why = results[k]:compare(want, { rtol = 1e-5, atol = 1e-6 })
        assert.is_true(same, tostring(why))
      end
    end)
  end

  it("scales and shifts channels", function()
    for name, channels in pairs { scale_shift_nchw = { 3, 1, 1 }, scale_shift_nhwc = { 3 } } do
      local shape = name == "scale_shift_nchw" and { 2, 3, 4, 5 } or { 2, 4, 5, 3 }
      local x, a, b = random(shape), random({ 3 }, 2), random({ 3 }, 3)
      local function along(v) return pl.op.reshape(pl.const(v), { newshape = channels }) end
      local want = pl.eval(pl.op.add(pl.op.multiply(pl.const(x), along(a)), along(b)))
      local got = built({ name = "nn." .. name, operands = { x, a, b }, read = 3,
        make = function(f, ...) return f(...) end }, { want })
      assert.is_true((got[1]:compare(want, { atol = 1e-6 })))
    end
  end)

  it("refuses what the operator does", function()
    local x = te.placeholder({ 2, 3 }, "float32", "x")
    local ok, why = pcall(topi.cumsum, x, 5)
    assert.is_false(ok)
    assert.matches("cumsum", tostring(why), 1, true)
    assert.error_matches(function() topi.nn.adaptive_pool(x, { 1 }, "sum") end,
      "topi.nn.adaptive_pool: pool_type", 1, true)
  end)
end)
