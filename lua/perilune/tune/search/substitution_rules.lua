--- The rules of pl.tune.space.substitution and pl.tune.backtracking_search when none are given:
-- equations of sums and products, of products of matrices, and calls that can be computed
-- together because they share an operand. They hold of real numbers; sums are rounded in another
-- order. The shipped rules, which are exact, are used beside them.

require "perilune.core".internal() -- errors name the scripts of others

-- Products of matrices as they are written: nothing is transposed.
local function product(a, b)
  return ("nn.matmul(%s, %s, transpose_a=0, transpose_b=0)"):format(a, b)
end
local function built(a, b) return ("nn.matmul(%s, %s)"):format(a, b) end

-- An equation whose sides are built of products, as rules for each direction.
local function both(list, name, left, right, where)
  list[#list + 1] = ("%s: %s => %s where %s"):format(name, left(product), right(built), where)
  list[#list + 1] = ("%s_reversed: %s => %s where %s"):format(name, right(product), left(built),
    where)
end

local float = "?x.dtype == float32"

local rules = {
  "group_add: add(add(?x, ?y), ?z) <=> add(?x, add(?y, ?z)) where " .. float,
  "group_multiply: multiply(multiply(?x, ?y), ?z) <=> multiply(?x, multiply(?y, ?z)) where "
    .. float,
  "factor: add(multiply(?x, ?y), multiply(?x, ?z)) <=> multiply(?x, add(?y, ?z)) where " .. float,
  "divide_multiply: divide(multiply(?x, ?a), ?b) <=> multiply(?x, divide(?a, ?b)) where " .. float,
}

both(rules, "group_matmul",
  function(matmul) return matmul(matmul("?x", "?y"), "?z") end,
  function(matmul) return matmul("?x", matmul("?y", "?z")) end,
  "?x.rank >= 2 and ?y.rank >= 2 and ?z.rank >= 2")
both(rules, "factor_matmul_left",
  function(matmul) return ("add(%s, %s)"):format(matmul("?x", "?y"), matmul("?x", "?z")) end,
  function(matmul) return matmul("?x", "add(?y, ?z)") end,
  "?y.shape == ?z.shape and ?x.rank >= 2 and ?y.rank >= 2")
both(rules, "factor_matmul_right",
  function(matmul) return ("add(%s, %s)"):format(matmul("?y", "?x"), matmul("?z", "?x")) end,
  function(matmul) return matmul("add(?y, ?z)", "?x") end,
  "?y.shape == ?z.shape and ?x.rank >= 2 and ?y.rank >= 2")

-- Two calls that share their first operand become one, whose result is split.
local function merge(name, call, result, axis_of_weights, axis, where)
  rules[#rules + 1] = ("%s: %s, %s => (?s@split(%s, indices_or_sections=2, axis=%d, "
    .. "n_results=2)).0, ?s.1 where %s"):format(name, call("?a"), call("?b"),
    result(("concatenate(?a, ?b, axis=%d)"):format(axis_of_weights)), axis, where)
end

merge("merge_matmul", function(w) return product("?x", w) end,
  function(w) return built("?x", w) end, 1, -1,
  "?a.shape == ?b.shape and ?a.rank == 2 and ?x.rank >= 2")
merge("merge_dense", function(w) return ("nn.dense(?x, %s)"):format(w) end,
  function(w) return ("nn.dense(?x, %s)"):format(w) end, 0, -1,
  "?a.shape == ?b.shape and ?a.rank == 2")

-- Convolutions of stride and dilation 1, which their extents tell.
local conv = "nn.conv2d(?x, %s, groups=1, data_layout=NCHW, kernel_layout=OIHW)"
local function dense(c, w)
  local parts = {}
  for axis = 0, 1 do
    parts[axis + 1] = ("%s.shape[%d] > 1 and %s.shape[%d] == ?x.shape[%d] + %s.padding[%d] + "
      .. "%s.padding[%d] - %s.shape[%d] + 1"):format(c, axis + 2, c, axis + 2, axis + 2, c, axis, c,
      axis + 2, w, axis + 2)
  end
  return table.concat(parts, " and ")
end

rules[#rules + 1] = ("merge_conv2d: ?c@%s, ?d@%s => (?s@split(nn.conv2d(?x, "
  .. "concatenate(?a, ?b, axis=0), kernel_size=?c.kernel_size, padding=?c.padding), "
  .. "indices_or_sections=2, axis=1, n_results=2)).0, ?s.1 where ?a.shape == ?b.shape and "
  .. "?c.padding == ?d.padding and %s and %s"):format(conv:format "?a", conv:format "?b",
  dense("?c", "?a"), dense("?d", "?b"))
-- A convolution of 1x1 is one of 3x3 whose other weights are zero: it can be merged with one.
rules[#rules + 1] = ("enlarge_conv2d: ?c@%s => nn.conv2d(?x, "
  .. "nn.pad(?w, constant([0, 0, 1, 1, 0, 0, 1, 1])), kernel_size=[3, 3], padding=[1, 1, 1, 1]) "
  .. "where ?w.shape[2] == 1 and ?w.shape[3] == 1 and ?c.padding == [0, 0, 0, 0] and %s"):format(
  conv:format "?w", dense("?c", "?w"))

-- ONNX's convolutions, with and without a bias; those of the same windows become one, whatever
-- their channels.
local same = "?a.shape[1] == ?b.shape[1] and ?a.shape[2] == ?b.shape[2] and ?a.shape[3] == "
  .. "?b.shape[3] and ?c.strides == ?d.strides and ?c.pads == ?d.pads and ?c.dilations == "
  .. "?d.dilations"
local windows = ", group=1, auto_pad=NOTSET"

for _, bias in ipairs { false, true } do
  local function given(w, b) return bias and w .. ", " .. b or w end
  local suffix = bias and "_bias" or ""
  rules[#rules + 1] = ("merge_onnx_conv%s: ?c@nn.conv(?x, %s%s), ?d@nn.conv(?x, %s%s) => "
    .. "(?s@split(nn.conv(?x, %s, **?c), constant([?a.shape[0], ?b.shape[0]]), axis=1, "
    .. "n_results=2)).0, ?s.1 where ?a.rank == 4 and ?b.rank == 4 and %s"):format(suffix,
    given("?a", "?p"), windows, given("?b", "?q"), windows,
    given("concatenate(?a, ?b, axis=0)", "concatenate(?p, ?q, axis=0)"), same)
  rules[#rules + 1] = ("enlarge_onnx_conv%s: nn.conv(?x, %s%s, kernel_shape=[1, 1], "
    .. "strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0]) => nn.conv(?x, %s, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1])"):format(suffix, given("?w", "?p"), windows,
    given("nn.pad(?w, constant([0, 0, 1, 1, 0, 0, 1, 1]))", "?p"))
end

for _, rule in ipairs(require "perilune.tune.search.convolution_rules") do
  rules[#rules + 1] = rule
end

return rules
