-- FoldExplicitPadding on Relay's own operators.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local pass = pl.passes.FoldExplicitPadding()

local function becomes(params, before, after)
  golden.becomes(pass, ("def @main(%s) { %s }"):format(params, before),
    ("def @main(%s) { %s }"):format(params, after))
end

local function stays(params, body)
  golden.stays(pass, ("def @main(%s) { %s }"):format(params, body))
end

local SPACE = { "W", "HW", "DHW" }

-- What a convolution of `n` spatial axes needs, channels first or last.
local function conv(n, last)
  local extents, window = (", 7"):rep(n), (", 3"):rep(n)
  local pads = (", [1, 2]"):rep(n)
  if last then
    return ("%%x: Tensor[(1%s, 3), float32], %%w: Tensor[(%s, 3, 4), float32]"):format(extents,
      window:sub(3)), ("[[0, 0]%s, [0, 0]]"):format(pads),
      (', data_layout="N%sC", kernel_layout="%sIO"'):format(SPACE[n], SPACE[n])
  end
  return ("%%x: Tensor[(1, 3%s), float32], %%w: Tensor[(4, 3%s), float32]"):format(extents, window),
    ("[[0, 0], [0, 0]%s]"):format(pads), ""
end

describe("FoldExplicitPadding of Relay's operators", function()
  it("adds borders of zeros to the padding of convolutions", function()
    for n = 1, 3 do
      for _, last in ipairs { false, true } do
        local params, widths, layouts = conv(n, last)
        local own, both = (", 2"):rep(n) .. (", 0"):rep(n), (", 3"):rep(n) .. (", 2"):rep(n)
        becomes(params, ("nn.conv%dd(nn.pad(%%x, 0f, pad_width=%s), %%w, padding=[%s]%s)"):format(n,
          widths, own:sub(3), layouts), ("nn.conv%dd(%%x, %%w, padding=[%s]%s)"):format(n,
          both:sub(3), layouts))
      end
    end
  end)

  it("joins nested pads", function()
    becomes("%x: Tensor[(1, 2, 5), float32], %w: Tensor[(3, 2, 3), float32]",
      "nn.conv1d(nn.pad(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 0]]), 0f, "
      .. "pad_width=[[0, 0], [0, 0], [0, 2]]), %w)", "nn.conv1d(%x, %w, padding=[1, 2])")
  end)

  it("adds borders of the zero point to the padding of qnn.conv2d", function()
    local params = "%x: Tensor[(1, 5, 5, 4), int8], %w: Tensor[(3, 3, 4, 6), int8]"
    local attrs = ', channels=6, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO", '
      .. 'out_dtype="int32")'
    local pad = "nn.pad(%%x, %d, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]])"
    becomes(params, ("qnn.conv2d(%s, %%w, 10, 1, 1f, 1f, padding=[0, 0, 0, 0]%s"):format(
      pad:format(10), attrs), "qnn.conv2d(%x, %w, 10, 1, 1f, 1f, padding=[1, 1, 1, 1]" .. attrs)
    stays(params, ("qnn.conv2d(%s, %%w, 10, 1, 1f, 1f, padding=[0, 0, 0, 0]%s"):format(
      pad:format(0), attrs))
  end)

  it("lets averages count the borders, and maxima pass over them", function()
    for n = 1, 3 do
      local params = ("%%x: Tensor[(1, 2%s), float32]"):format((", 6"):rep(n))
      local window = ("pool_size=[%s], strides=[%s]"):format((", 3"):rep(n):sub(3),
        (", 2"):rep(n):sub(3))
      local widths = ("[[0, 0], [0, 0]%s]"):format((", [1, 1]"):rep(n))
      local none, ones = (", 0"):rep(2 * n):sub(3), (", 1"):rep(2 * n):sub(3)
      becomes(params, ("nn.avg_pool%dd(nn.pad(%%x, 0f, pad_width=%s), %s, padding=[%s])"):format(n,
        widths, window, none), ("nn.avg_pool%dd(%%x, %s, padding=[%s], "
        .. "count_include_pad=True)"):format(n, window, ones))
      local function max(value)
        return ("nn.max_pool%dd(nn.pad(%%x, %s, pad_width=%s), %s, padding=[%s])"):format(n, value,
          widths, window, none)
      end
      becomes(params, max "-3.4028235e38f",
        ("nn.max_pool%dd(%%x, %s, padding=[%s])"):format(n, window, ones))
      stays(params, max "0f")
    end
  end)

  it("leaves other modes, values, axes and averages with padding of their own", function()
    local params = "%x: Tensor[(1, 2, 6, 6), float32], %w: Tensor[(2, 2, 3, 3), float32]"
    for _, pad in ipairs { "nn.pad(%x, 1f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])",
      'nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]], pad_mode="edge")' } do
      stays(params, ("nn.conv2d(%s, %%w)"):format(pad))
    end
    stays("%x: Tensor[(1, 1, 6, 6), float32], %w: Tensor[(2, 2, 3, 3), float32]",
      "nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 1], [1, 1], [1, 1]]), %w)")
    stays("%x: Tensor[(1, 2, 6, 6), float32]",
      "nn.avg_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[3, 3], "
      .. "padding=[1, 1, 1, 1])")
  end)
end)
