--- Rules of graph substitution for ONNX's convolutions, beside those that merge parallel ones:
-- sums over channels that are taken apart or put together, averages before or behind a convolution
-- of 1x1, groups, and separable convolutions of one image that are added. Weights are cut, padded
-- and interleaved by operators, so that FoldConstant computes them once.

require "perilune.core".internal() -- errors name the scripts of others

local rules = {}

local function add(name, text, ...) rules[#rules + 1] = name .. ": " .. text:format(...) end

local windows = "auto_pad=NOTSET"
local pointwise = "group=1, kernel_shape=[1, 1], strides=[1, 1], dilations=[1, 1], "
  .. "pads=[0, 0, 0, 0], " .. windows

-- The windows of two convolutions are the same.
local same = "?c.strides == ?d.strides and ?c.pads == ?d.pads and ?c.dilations == ?d.dilations"

-- A sum over channels. Of two images: one convolution of both, behind each other.
add("join_conv_inputs", "add(?c@nn.conv(?x, ?a, group=1, %s), ?d@nn.conv(?y, ?b, group=1, %s)) => "
  .. "nn.conv(concatenate(?x, ?y, axis=1), concatenate(?a, ?b, axis=1), **?c) where ?a.rank == 4 "
  .. "and ?b.rank == 4 and ?x.shape[0] == ?y.shape[0] and ?x.shape[2] == ?y.shape[2] and "
  .. "?x.shape[3] == ?y.shape[3] and ?a.shape[0] == ?b.shape[0] and ?a.shape[2] == ?b.shape[2] and "
  .. "?a.shape[3] == ?b.shape[3] and %s", windows, windows, same)

-- The other way round, which saves the concatenation; the bias is added once.
for _, bias in ipairs { "", ", ?p" } do
  add("split_conv_inputs" .. (bias ~= "" and "_bias" or ""),
    "?c@nn.conv(concatenate(?x, ?y, axis=1), ?w%s, group=1, %s) => add(nn.conv(?x, "
      .. "(?s@split(?w, constant([?x.shape[1], ?y.shape[1]]), axis=1, n_results=2)).0%s, **?c), "
      .. "nn.conv(?y, ?s.1, **?c)) where ?w.rank == 4", bias, windows, bias)
end

-- Averages are sums with equal weights along other axes than those of a convolution of 1x1. Where
-- the average is of fewer elements at the border, a bias stays what it is.
for _, bias in ipairs { "", ", ?b" } do
  local suffix = bias ~= "" and "_bias" or ""
  local given = bias ~= "" and ", count_include_pad=0" or ""
  add("conv_of_average" .. suffix, "nn.conv(?p@nn.avg_pool(?x%s), ?w%s, %s) => "
    .. "nn.avg_pool(nn.conv(?x, ?w%s), **?p) where ?w.rank == 4", given, bias, pointwise, bias)
  add("average_of_conv" .. suffix, "?p@nn.avg_pool(nn.conv(?x, ?w%s, %s)%s) => "
    .. "nn.conv(nn.avg_pool(?x, **?p), ?w%s) where ?w.rank == 4", bias, pointwise, given, bias)
end

-- Half as many groups, of twice the channels, whose other weights are zero: fewer and larger
-- products of matrices.
local halved = "reshape(?w, constant([?g // 2, 2, ?w.shape[0] // ?g, ?w.shape[1], ?w.shape[2], "
  .. "?w.shape[3]]))"
local function padded(part, before, behind)
  return ("nn.pad(%s, constant([0, 0, 0, %s, 0, 0, 0, 0, 0, %s, 0, 0]))"):format(part, before,
    behind)
end

for _, bias in ipairs { "", ", ?b" } do
  add("halve_groups" .. (bias ~= "" and "_bias" or ""),
    "?c@nn.conv(?x, ?w%s, group=?g, %s) => nn.conv(?x, reshape(concatenate(%s, %s, axis=1), "
      .. "constant([?w.shape[0], 2 * ?w.shape[1], ?w.shape[2], ?w.shape[3]]))%s, **?c, "
      .. "group=?g // 2) where ?w.rank == 4 and ?g > 1 and ?g %% 2 == 0 and ?w.shape[1] > 1",
    bias, windows,
    padded(("(?h@split(%s, constant([1, 1]), axis=1, n_results=2)).0"):format(halved), "0",
      "?w.shape[1]"),
    padded("?h.1", "?w.shape[1]", "0"), bias)
end

-- Two separable convolutions of one image, which are added: one of twice the channels in between.
add("merge_separable_conv", "add(nn.conv(?c@nn.conv(?x, ?a, group=?g, %s), ?p, %s), "
  .. "nn.conv(?d@nn.conv(?x, ?b, group=?g, %s), ?q, %s)) => nn.conv(nn.conv(?x, "
  .. "reshape(concatenate(?a, ?b, axis=1), constant([2 * ?g, 1, ?a.shape[2], ?a.shape[3]])), "
  .. "**?c), "
  .. "reshape(concatenate(reshape(?p, constant([?p.shape[0], ?g, 1, 1])), "
  .. "reshape(?q, constant([?p.shape[0], ?g, 1, 1])), axis=2), "
  .. "constant([?p.shape[0], 2 * ?g, 1, 1]))) where ?a.rank == 4 and ?a.shape == ?b.shape and "
  .. "?a.shape[0] == ?g and ?a.shape[1] == 1 and ?p.shape == ?q.shape and %s", windows, pointwise,
  windows, pointwise, same)

return rules
