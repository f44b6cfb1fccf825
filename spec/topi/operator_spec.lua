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

-- ------------------------------------------------------------ parts of tensors

row("strided_set", { random { 5, 4 }, random({ 2, 2 }, 2), ints { 1, 0 }, ints { 4, 3 },
  ints { 2, 2 } }, function(f, x, v) return f(x, v, { 1, 0 }, { 4, 3 }, { 2, 2 }) end,
  "strided_set", nil, { read = 2 })
row("matrix_set_diag", { random { 2, 3, 4 }, random({ 2, 2, 3 }, 2) }, function(f, x, d)
  return f(x, d, -1, 0, true, false)
end, "matrix_set_diag", { k1 = -1, k2 = 0 })
row("searchsorted", { pl.tensor({ -0.5, 0, 0, 0.75 }, "float32"), random { 3, 5 } },
  function(f, a, v) return f(a, v, true, "int32") end, "searchsorted",
  { right = 1, dtype = "int32" })
row("collapse_sum", { random { 2, 3, 4 } }, function(f, x) return f(x, { 3, 1 }) end,
  "collapse_sum_to", { shape = { 3, 1 } })

-- ------------------------------------------------------------ windows, losses

row("nn.pool_grad", { random { 1, 2, 3, 4 }, random({ 1, 2, 6, 8 }, 2) }, function(f, g, x)
  return f(g, x, { 2, 2 }, { 2, 2 }, { 0, 0, 0, 0 }, "max")
end, "nn.max_pool2d_grad", { pool_size = { 2, 2 }, strides = { 2, 2 } })
row("nn.pool_grad", { random { 1, 2, 4, 4 }, random({ 1, 2, 5, 5 }, 2) }, function(f, g, x)
  return f(g, x, { 2, 2 }, { 1, 1 }, { 0, 0, 0, 0 }, "avg")
end, "nn.avg_pool2d_grad", { pool_size = { 2, 2 }, count_include_pad = true })
row("nn.upsampling3d", { random { 1, 2, 3, 4, 2 } }, function(f, x) return f(x, 2, 1, 3) end,
  "nn.upsampling3d", { scale_d = 2.0, scale_h = 1.0, scale_w = 3.0 })
row("nn.correlation_nchw", { random { 1, 2, 6, 7 }, random({ 1, 2, 6, 7 }, 2) }, function(f, a, b)
  return f(a, b, 1, 2, 1, 1, 2, true)
end, "nn.correlation", { max_displacement = 2, padding = { 2, 2 } })
row("nn.deformable_conv2d_nchw", { random { 1, 2, 5, 5 }, random({ 1, 18, 5, 5 }, 2),
  random({ 3, 2, 3, 3 }, 3) }, function(f, x, o, w) return f(x, o, w, 1, 1, 1, 1, 1) end,
  "nn.deformable_conv2d", { padding = { 1, 1 }, kernel_size = { 3, 3 }, channels = 3 })
row("nn.nll_loss", { random { 3, 4 }, ints { 1, 0, 3 }, random({ 4 }, 2) }, function(f, p, t, w)
  return f(p, t, w, "mean", 0)
end, "nn.nll_loss", { reduction = "mean", ignore_index = 0 })

-- ------------------------------------------------------------------- images

for n, layout in ipairs { "NWC", "NHWC", "NDHWC" } do
  local shape, size, roi = { 1 }, {}, {}
  for i = 1, n do shape[i + 1], size[i], roi[i], roi[n + i] = 3 + i, 6, 0, 0 end
  shape[n + 2] = 2
  local name = ("image.resize%dd"):format(n)
  row(name, { random(shape) }, function(f, x)
    return f(x, roi, size, layout, "linear", "align_corners")
  end, name, { size = size, layout = layout, method = "linear",
    coordinate_transformation_mode = "align_corners" })
end
row("image.resize2d", { random { 1, 2, 5, 6 } }, function(f, x)
  return f(x, { 10, 3 }, "nearest_neighbor", "asymmetric", "floor")
end, "image.resize2d", { size = { 10, 3 }, method = "nearest_neighbor",
  coordinate_transformation_mode = "asymmetric", rounding_method = "floor" })
row("image.affine_grid", { random { 2, 2, 3 } }, function(f, x) return f(x, { 3, 4 }) end,
  "image.affine_grid", { target_shape = { 3, 4 } })
row("image.grid_sample", { random { 1, 2, 5, 4 }, random({ 1, 2, 3, 3 }, 2) }, function(f, x, g)
  return f(x, g)
end, "image.grid_sample", { relay = 1, method = "bilinear" })
row("image.crop_and_resize", { random { 2, 3, 5, 4 },
  pl.tensor({ { 0, 0.1, 0.8, 1 }, { 0.2, 0, 0.5, 0.5 } }, "float32"), ints({ 1, 0 }, "int32") },
  function(f, x, b, i) return f(x, b, i, { 3, 3 }) end, "image.crop_and_resize",
  { crop_size = { 3, 3 } })
row("image.dilation2d_nchw", { random { 1, 3, 6, 5 }, random({ 3, 2, 3 }, 2) }, function(f, x, k)
  return f(x, k, { 1, 2 }, 1, 1)
end, "image.dilation2d", { strides = { 1, 2 }, padding = { 1, 1 } })
row("image.dilation2d_nhwc", { random { 1, 6, 5, 3 }, random({ 2, 3, 3 }, 2) }, function(f, x, k)
  return f(x, k, 1, 0, { 2, 1 })
end, "image.dilation2d", { dilations = { 2, 1 }, data_layout = "NHWC", kernel_layout = "HWI" })

local function function_of(name)
  local part, own = name:match "^(%l+)%.(.*)"
  return part and topi[part][own] or topi[name]
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

  -- What a function makes of tensors; `out` is the shape of the result.
  local function results(f, out, ...)
    local operands, holders, args = { ... }, {}, {}
    for i, x in ipairs(operands) do holders[i] = te.placeholder(x.shape, x.dtype, "x" .. i) end
    local y = f(table.unpack(holders))
    table.move(holders, 1, #holders, 1, args)
    args[#args + 1] = y
    operands[#operands + 1] = pl.tensor.full(0, out, y.dtype)
    local lowered = pl.lower(topi.generic.schedule(y), { args = args })
    return pl.build(lowered).main(table.unpack(operands))[#args]
  end

  local function check(got, want)
    local same, why = got:compare(want, { rtol = 1e-5, atol = 1e-6 })
    assert.is_true(same, tostring(why))
  end

  it("sums products of tensors over axes", function()
    local a, b = random { 2, 3, 4 }, random({ 3, 4, 5 }, 2)
    local function einsum(equation, x, y)
      return pl.eval(pl.ir.Call("einsum", { pl.ir.Tuple { pl.const(x), pl.const(y) } },
        { equation = equation }))
    end
    check(results(function(x, y) return topi.tensordot(x, y, 2) end, { 2, 5 }, a, b),
      einsum("abc,bcd->ad", a, b))
    check(results(function(x, y) return topi.tensordot(x, y, { { 2, 1 }, { 1, 0 } }) end,
      { 2, 5 }, a, b), einsum("abc,bcd->ad", a, b))
    check(results(function(x, y) return topi.tensordot(x, y, { 1, 0 }) end, { 2, 4, 4, 5 }, a, b),
      einsum("abc,bde->acde", a, b))
    check(results(function(x, y) return topi.tensordot(x, y, 0) end, { 2, 3 }, random { 2 },
      random({ 3 }, 2)), einsum("a,b->ab", random { 2 }, random({ 3 }, 2)))
    assert.error_matches(function()
      topi.tensordot(te.placeholder({ 2, 3 }, "float32"), te.placeholder({ 2, 3 }, "float32"), 1)
    end, "topi.tensordot: axis 1 of a and axis 0 of b differ", 1, true)
  end)

  it("inserts axes as long as those of another tensor", function()
    local x, like = random { 3 }, random { 2, 3, 4 }
    local wide = pl.op.broadcast_to(pl.op.reshape(pl.const(x), { newshape = { 1, 3, 1 } }),
      { shape = { 2, 3, 4 } })
    local holder = te.placeholder(like.shape, "float32", "like")
    check(results(function(a) return topi.expand_like(a, holder, { 0, 2 }) end, { 2, 3, 4 }, x),
      pl.eval(wide))
    assert.error_matches(function()
      topi.expand_like(te.placeholder({ 3 }, "float32"), holder, { 0 })
    end, "topi.expand_like", 1, true)
  end)

  it("adds exponentials without overflow", function()
    local x = pl.tensor({ 0, 1000, -1000, math.huge, -math.huge, -math.huge }, "float32")
    local y = pl.tensor({ 1, 1000, 3, 5, -math.huge, 2 }, "float32")
    check(results(topi.log_add_exp, { 6 }, x, y), pl.tensor({ math.log(1 + math.exp(1)),
      1000 + math.log(2), 3, math.huge, -math.huge, 2 }, "float32"))
  end)

  it("rounds logarithms up", function()
    local x = pl.tensor({ 1, 2, 3, 4, 1023, 1024, 1025 }, "int32")
    assert.same({ 0, 1, 2, 2, 10, 10, 11 }, results(topi.ceil_log2, { 7 }, x):to_table())
    assert.equal("int32", topi.ceil_log2(5).dtype)
  end)

  it("makes dense tensors of sparse values", function()
    local indices, values = ints { 0, 3 }, random { 2 }
    local got = results(function(i, v) return topi.sparse_to_dense(i, { 5 }, v, 0.5) end, { 5 },
      indices, values)
    check(got, pl.eval(pl.op.sparse_to_dense(pl.const(indices), pl.const(values), pl.const(0.5),
      { output_shape = { 5 } })))
  end)

  -- ONNX's resize has regions; the evaluator's resize2d has none.
  it("resamples a region of an image", function()
    local x, none = random { 1, 2, 5, 6 }, pl.const(pl.tensor({}, "float32"))
    local roi = { 0.15, 0.05, 0.9, 1.2 }
    for method, mode in pairs { linear = "linear", nearest_neighbor = "nearest" } do
      for _, size in ipairs { { 3, 4 }, { 1, 7 } } do
        local want = pl.eval(pl.op.image.resize(pl.const(x), pl.const(pl.tensor(roi, "float32")),
          none, pl.const(pl.tensor(size, "int64")), { mode = mode, axes = { 2, 3 },
          extrapolation_value = 0.25, coordinate_transformation_mode = "tf_crop_and_resize",
          nearest_mode = "floor" }))
        check(results(function(data)
          return topi.image.resize2d(data, roi, size, "NCHW", method, "tf_crop_and_resize",
            "floor", -0.5, 0, 0.25)
        end, want.shape, x), want)
      end
    end
  end)

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
