-- Convolutions that are named by layouts compute what Relay's operators of these layouts do.

local pl = require "perilune"

local topi, te = pl.topi, pl.te

local function random(shape, seed) return pl.tensor.random(shape, "float32", { seed = seed }) end

-- name: of topi.nn; op, attrs: of Relay; the rest of the arguments follows data and weights.
local function check(name, op, attrs, data, weight, ...)
  local a, b = random(data, 1), random(weight, 2)
  local expected = pl.eval(pl.op[op](pl.const(a), pl.const(b), attrs))
  local x, w = te.placeholder(data, "float32", "x"), te.placeholder(weight, "float32", "w")
  local y = topi.nn[name](x, w, ...)
  local lowered = pl.lower(topi.generic.schedule_injective(y), { args = { x, w, y } })
  local results = pl.build(lowered).main(a, b, random(expected.shape, 3))
  local got = results[3]
  local same, why = got:compare(expected, { atol = 1e-5, rtol = 1e-5 })
  assert.is_true(same, name .. ": " .. tostring(why))
end

describe("topi.nn by layout", function()
  it("has channels first", function()
    check("conv2d_nchw", "nn.conv2d", { padding = { 1, 1, 1, 1 }, strides = { 2, 1 } },
      { 1, 3, 7, 6 }, { 4, 3, 3, 3 }, { 2, 1 }, 1, 1)
    check("group_conv2d_nchw", "nn.conv2d", { groups = 2 }, { 1, 4, 5, 6 }, { 6, 2, 3, 3 }, 1, 0,
      1, 2)
  end)

  it("has channels last", function()
    check("conv2d_nhwc", "nn.conv2d", { data_layout = "NHWC", kernel_layout = "HWIO",
      padding = { 1, 0, 1, 0 }, dilation = { 2, 1 } }, { 2, 7, 6, 3 }, { 3, 2, 3, 4 }, 1,
      { 1, 0 }, { 2, 1 })
    check("group_conv2d_nhwc", "nn.conv2d", { data_layout = "NHWC", kernel_layout = "HWIO",
      groups = 2 }, { 1, 5, 6, 4 }, { 3, 3, 2, 6 }, 1, 0, 1, 2)
  end)

  it("has one axis and three", function()
    check("conv1d_ncw", "nn.conv1d", { padding = { 1, 1 } }, { 1, 3, 7 }, { 4, 3, 3 }, 1, 1, 1)
    check("conv1d_nwc", "nn.conv1d", { data_layout = "NWC", kernel_layout = "WIO",
      strides = { 2 } }, { 1, 7, 3 }, { 3, 3, 4 }, 2, 0, 1)
    check("conv3d_ndhwc", "nn.conv3d", { data_layout = "NDHWC", kernel_layout = "DHWIO" },
      { 1, 4, 5, 6, 3 }, { 2, 3, 2, 3, 4 }, 1, 0, 1)
  end)

  it("has transposed ones, whose dtype comes before their output padding", function()
    check("conv2d_transpose_nchw", "nn.conv2d_transpose", { strides = { 2, 2 },
      padding = { 1, 1, 1, 1 }, output_padding = { 1, 0 } }, { 1, 3, 4, 5 }, { 3, 2, 3, 3 },
      { 2, 2 }, { 1, 1 }, nil, { 1, 0 })
  end)

  it("has batches last, and multipliers of channels", function()
    local a, b = random({ 6, 5, 3, 2 }, 1), random({ 3, 2, 3, 4 }, 2)
    local function relaid(x, axes) return pl.op.transpose(x, { axes = axes }) end
    local plain = pl.op.nn.conv2d(relaid(pl.const(a), { 3, 2, 0, 1 }),
      relaid(pl.const(b), { 3, 2, 0, 1 }), { padding = { 1, 0, 1, 0 }, strides = { 2, 1 } })
    local want = pl.eval(relaid(plain, { 2, 3, 1, 0 }))
    local x, w = te.placeholder(a.shape, "float32", "x"), te.placeholder(b.shape, "float32", "w")
    local y = topi.nn.conv2d_hwcn(x, w, { 2, 1 }, { 1, 0 }, 1)
    local lowered = pl.lower(topi.generic.schedule(y), { args = { x, w, y } })
    local got = pl.build(lowered).main(a, b, random(want.shape, 3))[3]
    assert.is_true((got:compare(want, { atol = 1e-5, rtol = 1e-5 })))
    check("depthwise_conv2d_nhwc", "nn.conv2d", { data_layout = "NHWC", kernel_layout = "HWOI",
      groups = 3, padding = { 1, 1, 1, 1 }, channels = 6, kernel_size = { 3, 3 } },
      { 2, 6, 5, 3 }, { 3, 3, 3, 2 }, 1, 1, 1)
  end)

  it("refuses other ranks", function()
    local x, w = te.placeholder({ 1, 3, 4 }, "float32", "x"), te.placeholder({ 4, 4 }, "float32")
    assert.error_matches(function() topi.nn.conv2d_nhwc(x, w, 1, 0, 1) end,
      "topi.nn.conv2d_nhwc: data and weights of rank 4 are expected", 1, true)
  end)
end)
