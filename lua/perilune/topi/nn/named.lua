-- pl.topi.nn: convolutions whose names tell the layouts, by TVM's names and order of arguments.
--
--     topi.nn.conv2d_nhwc(x, w, { 1, 1 }, { 1, 1, 1, 1 }, { 1, 1 }) -- weights HWIO
--
-- Where channels are last, axes are permuted around the convolution whose channels are first.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local conv = require "perilune.topi.nn.conv"
local dims = require "perilune.topi.dims"
local transform = require "perilune.topi.transform"

local nn = {}

local FIRST, LAST = { "ncw", "nchw", "ncdhw" }, { "nwc", "nhwc", "ndhwc" }

-- Axes of the layout with channels first, of data (N, ..., C), of weights (..., I, O), and back.
local function permutations(n)
  local data, weight, back = { 0, n + 1 }, { n + 1, n }, { 0 }
  for i = 1, n do
    data[i + 2], weight[i + 2], back[i + 1] = i, i - 1, i + 1
  end
  back[n + 2] = 1
  return data, weight, back
end

local function check_rank(x, w, rank, where)
  if dims.tensor(x, where, "data").ndim ~= rank or dims.tensor(w, where, "weight").ndim ~= rank then
    argument.fail(("%s: data and weights of rank %d are expected"):format(where, rank))
  end
end

local function channels_last(n, where)
  local to_first, weights, back = permutations(n)
  return function(x, w, strides, padding, dilation, groups, out_dtype)
    check_rank(x, w, n + 2, where)
    local result = conv[("conv%dd"):format(n)](transform.transpose(x, to_first),
      transform.transpose(w, weights), strides, padding, dilation, groups, out_dtype)
    return transform.transpose(result, back)
  end
end

-- As f, without groups.
local function of_one_group(f)
  return function(x, w, strides, padding, dilation, out_dtype)
    return f(x, w, strides, padding, dilation, 1, out_dtype)
  end
end

for n = 1, 3 do
  local first, last = ("conv%dd_%s"):format(n, FIRST[n]), ("conv%dd_%s"):format(n, LAST[n])
  local grouped, grouped_last = conv[("conv%dd"):format(n)], channels_last(n, "topi.nn." .. last)
  nn["group_" .. first], nn["group_" .. last] = grouped, grouped_last
  -- Those over three axes take groups by this name, too.
  nn[first] = n == 3 and grouped or of_one_group(grouped)
  nn[last] = n == 3 and grouped_last or of_one_group(grouped_last)
  local transposed = conv[("conv%dd_transpose"):format(n)]
  nn[("conv%dd_transpose_%s"):format(n, FIRST[n])] = function(x, w, strides, padding, out_dtype,
    output_padding)
    return transposed(x, w, strides, padding, output_padding, 1, 1, out_dtype)
  end
end
-- TVM has these over two axes, and ncw and nwc, alone.
nn.group_conv3d_ncdhw, nn.group_conv3d_ndhwc = nil, nil

--- Data (H, W, C, N), weights (H, W, I, O): the result is (H, W, O, N).
function nn.conv2d_hwcn(x, w, strides, padding, dilation, out_dtype)
  check_rank(x, w, 4, "topi.nn.conv2d_hwcn")
  local result = conv.conv2d(transform.transpose(x, { 3, 2, 0, 1 }),
    transform.transpose(w, { 3, 2, 0, 1 }), strides, padding, dilation, 1, out_dtype)
  return transform.transpose(result, { 2, 3, 1, 0 })
end

--- Data (N, H, W, C), weights (H, W, C, multiplier): C * multiplier channels.
function nn.depthwise_conv2d_nhwc(x, w, strides, padding, dilation, out_dtype)
  check_rank(x, w, 4, "topi.nn.depthwise_conv2d_nhwc")
  local shape = dims.of(w)
  local weights = transform.reshape(transform.transpose(w, { 2, 3, 0, 1 }),
    { shape[3] * shape[4], 1, shape[1], shape[2] })
  local result = conv.conv2d(transform.transpose(x, { 0, 3, 1, 2 }), weights, strides, padding,
    dilation, shape[3], out_dtype)
  return transform.transpose(result, { 0, 2, 3, 1 })
end

--- The axes behind the first one as one.
nn.flatten = transform.flatten

return nn
