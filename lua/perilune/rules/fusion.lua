--- Computations that the model's opset has one operator for (FuseOnnxOps).

-- erf(x / sqrt(2)) + 1, and tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) + 1
local erf = "add(erf(divide(?x, 1.4142135623730951) | multiply(?x, 0.7071067811865476)), 1)"
local cube = "(power(?x, 3) | multiply(?x, multiply(?x, ?x)))"
local tanh = ("add(tanh(multiply(add(?x, multiply(%s, 0.044715)), 0.7978845608028654)), 1)")
  :format(cube)

-- x / 2 * e in all orders.
local half_times = { "multiply(multiply(?x, 0.5), %s)", "multiply(multiply(?x, %s), 0.5)",
  "multiply(?x, multiply(%s, 0.5))" }

-- (x - mean) / sqrt(variance + epsilon) over the last axis
local centred = "?d@subtract(?x, mean(?x, axes=?a, keepdims=1))"
local deviation = "sqrt(add(mean(power(?d, 2) | multiply(?d, ?d), axes=?a, keepdims=1), "
  .. "?e:scalar))"
local normal = ("(divide(%s, %s))"):format(centred, deviation)
local last = "?a == [-1] and ?g.rank == 1 and ?g.shape == sublist(?x.shape, -1, ?x.rank)"
local root_mean_square = "add(mean(power(?x, 2) | multiply(?x, ?x), axes=[-1], keepdims=1), "
  .. "?e:scalar)"

-- Of two constants one has the shape of their sum. Sums and products of floats overflow
-- or cancel otherwise in another order, so these rules run when associative_math is on.
local one_shape = "?a.rank >= 0 and ?b.rank >= 0 and "
  .. "(broadcasts(?a.shape, ?b.shape) or broadcasts(?b.shape, ?a.shape))"

local rules = {
  { "layer_norm: add(multiply(" .. normal .. ", ?g:const), ?b:const) => nn.layer_norm(?x, ?g, ?b, "
    .. "axis=-1, epsilon=scalar(?e)) where opset >= 17 and ?b.shape == ?g.shape and " .. last,
    proof = "approximates", reason = "the definition of LayerNormalization",
    source = "ONNX LayerNormalization; ONNX Runtime LayerNormFusion" },
  { "layer_norm_without_bias: multiply(" .. normal .. ", ?g:const) => nn.layer_norm(?x, ?g, "
    .. "axis=-1, epsilon=scalar(?e)) where opset >= 17 and " .. last,
    proof = "approximates", reason = "the definition of LayerNormalization",
    source = "ONNX LayerNormalization" },
  { "rms_norm: multiply(divide(?x, sqrt(" .. root_mean_square .. ")) | multiply(?x, "
    .. "reciprocal(sqrt(" .. root_mean_square .. "))), ?g:const) => "
    .. "nn.rms_norm(?x, ?g, axis=-1, epsilon=scalar(?e)) "
    .. "where opset >= 23 and ?g.rank == 1 and ?g.shape == sublist(?x.shape, -1, ?x.rank)",
    proof = "approximates", reason = "the definition of RMSNormalization",
    source = "ONNX RMSNormalization; ONNX Runtime SimplifiedLayerNormFusion" },
  -- Before the next rule, which would keep the factor.
  { "unit_gain: ?r@multiply(?d@divide(_, sqrt(_)), ?g:const) => ?d where opset >= 1 and "
    .. "scalar(?g) == 1 and ?r.shape == ?d.shape",
    reason = "x * 1 = x", source = "ONNX eliminate_nop_with_unit" },
  { "root_mean_square: multiply(?g:const, divide(?x, sqrt(" .. root_mean_square .. "))) => "
    .. "multiply(multiply(?g, sqrt(constant(?x.shape[-1], ?g.dtype))), divide(?x, sqrt(add("
    .. "reduce_sum_square(?x, axes=[-1], keepdims=1), multiply(?e, constant(?x.shape[-1], "
    .. "?g.dtype)))))) where opset >= 1 and ?x.dtype == float32 "
    .. "and ?x.shape[-1] >= 1",
    proof = "reassociates", grows = true,
    reason = "x / sqrt(s / n + e) = sqrt(n) * x / sqrt(s + n * e)",
    source = "ONNX ReduceSumSquare" },
  { "extents_slice: ?r@strided_slice(?s@shape_of(?x), starts=?a, ends=?b, axes=[0]) => "
    .. "shape_of(?x, start=?a[0], end=smaller(?b[0], ?x.rank)) where opset >= 15 "
    .. "and ?s.shape == [?x.rank] and ?a[0] >= 0 and ?b[0] > ?a[0] and ?r.shape[0] == "
    .. "smaller(?b[0], ?x.rank) - ?a[0]",
    reason = "some extents of a tensor, read by the operator itself", source = "ONNX Shape" },
  { "extent_take: take(?s@shape_of(?x), ?k:const, axis=0) => shape_of(?x, start=?k.value[0], "
    .. "end=?k.value[0] + 1) where opset >= 15 and ?s.shape == [?x.rank] and ?k.rank == 1 "
    .. "and ?k.size == 1 and ?k.value[0] >= 0",
    reason = "one extent of a tensor, read by the operator itself", source = "ONNX Shape" },
  { "take_of_rows: take(?r@reshape(?x), ?k:const, axis=1) => strided_slice(?x, constant([0]), "
    .. "constant([9007199254740991]), constant([0]), constant([?r.shape[1]])) where opset >= 10 "
    .. "and ?k.rank == 0 and scalar(?k) == 0 and ?r.uses == 1 and ?r.rank == ?x.rank + 1 and "
    .. "?r.rank >= 3 and ?r.shape[1] > 1 and ?x.shape[0] == ?r.shape[0] * ?r.shape[1] and "
    .. "sublist(?r.shape, 2, ?r.rank) == sublist(?x.shape, 1, ?x.rank)",
    reason = "the first position of an axis that was split off is the first row of each block",
    source = "ONNX Slice" },
  { "merge_slices: strided_slice(?s@strided_slice(?x, starts=?b, ends=?e, axes=?a, strides=?t), "
    .. "starts=?c, ends=?f, axes=?d, strides=?u) => strided_slice(?x, constant(?b + ?c), "
    .. "constant(?e + ?f), constant(?a + ?d), constant(?t + ?u)) where opset >= 10 and "
    .. "?s.uses == 1 and len(?d) == 1 and len(?a) == len(?b) and len(?t) == len(?b) and "
    .. "len(?u) == 1 and not (normalize(?d, ?x.rank)[0] in normalize(?a, ?x.rank))",
    reason = "slices of different axes are one slice", source = "ONNX fuse_consecutive_slices" },
  { "relu_minimum: ?r@minimum(nn.relu(?x), ?c:scalar) => clip(?x, constant(0, ?x.dtype), "
    .. "constant(scalar(?c), ?x.dtype)) where opset >= 12 and scalar(?c) >= 0 and ?r.shape == "
    .. "?x.shape", reason = "a limit on both sides", source = "onnxscript min_max_to_clip" },
  { "element_count: prod(?s@shape_of(?x), keepdims=0) => size(?x) where opset >= 1 and "
    .. "?s.shape == [?x.rank]", reason = "the number of elements", source = "ONNX Size" },
  { "least_extent: ?r@min(concatenate(?a:int, ?b), keepdims=1) => minimum(?a, ?b) where "
    .. "opset >= 12 and ?r.shape == [1] and ?a.shape == [1] and ?b.shape == [1]",
    reason = "the least of two numbers", source = "ONNX Min" },
  { "greatest_extent: ?r@max(concatenate(?a:int, ?b), keepdims=1) => maximum(?a, ?b) where "
    .. "opset >= 12 and ?r.shape == [1] and ?a.shape == [1] and ?b.shape == [1]",
    reason = "the greatest of two numbers", source = "ONNX Max" },
  { "selected_rows: gather_nd(?x, transpose(nonzero(?c), axes=[1, 0]), batch_dims=0) => "
    .. "compress(?x, ?c, axis=0) where opset >= 11 and ?c.rank == 1 and ?c.dtype == bool and "
    .. "?x.rank >= 1 and ?x.shape[0] == ?c.shape[0]",
    reason = "rows at the positions where a mask holds", source = "ONNX Compress" },
  { "selected_positions: take(?x, ?i@{squeeze|reshape}(nonzero(?c)), axis=?a) => "
    .. "compress(?x, ?c, axis=normalize(?a, ?x.rank)) where opset >= 11 and ?c.rank == 1 and "
    .. "?c.dtype == bool and ?i.rank == 1 and ?x.shape[normalize(?a, ?x.rank)] == ?c.shape[0]",
    reason = "positions of an axis where a mask holds", source = "ONNX Compress" },
  { "add_constants_float: add(add(?x:float, ?a:const), ?b:const) => add(?x, add(?a, ?b)) "
    .. "where associative_math and " .. one_shape, proof = "reassociates",
    reason = "(x + a) + b = x + (a + b)", source = "TVM SimplifyConsecutiveAdd" },
  { "multiply_constants_float: multiply(multiply(?x:float, ?a:const), ?b:const) => "
    .. "multiply(?x, multiply(?a, ?b)) where associative_math and " .. one_shape,
    proof = "reassociates", reason = "(x * a) * b = x * (a * b)" },
  { "add_multiples_float: add(multiply(?x:float, ?a:const), multiply(?x, ?b:const)) => "
    .. "multiply(?x, add(?a, ?b)) where associative_math and " .. one_shape,
    proof = "reassociates", reason = "x * a + x * b = x * (a + b)" },
  { "scaled_linear: multiply(add(multiply(?x:float, ?a:const), ?c:const), ?b:const) => "
    .. "add(multiply(?x, multiply(?a, ?b)), multiply(?c, ?b)) where associative_math and "
    .. one_shape .. " and (broadcasts(?c.shape, ?b.shape) or broadcasts(?b.shape, ?c.shape))",
    proof = "reassociates", reason = "(x * a + c) * b = x * (a * b) + c * b" },
  { "layer_norm_bias: add(?n@nn.layer_norm(?x, ?s, ?b:const), ?c:const) => "
    .. "nn.layer_norm(?x, ?s, add(?b, ?c), **?n) where opset >= 1 and ?n.uses == 1 "
    .. "and ?b.rank == 1 and ?c.shape == ?b.shape", proof = "reassociates",
    reason = "a bias behind a normalisation is part of its own" },
  { "instance_norm_bias: add(?n@nn.instance_norm(?x, ?s, ?b:const), ?c:const) => "
    .. "nn.instance_norm(?x, ?s, add(?b, reshape(?c, newshape=[-1])), **?n) where opset >= 1 "
    .. "and ?n.uses == 1 and ?c.rank == ?x.rank - 1 and ?c.shape[0] == ?b.shape[0] "
    .. "and ?c.size == ?b.shape[0]", proof = "reassociates", grows = true,
    reason = "a bias behind a normalisation is part of its own" },
  { "silu: multiply(?x, sigmoid(?x)) => nn.silu(?x) where opset >= 24", proof = "approximates",
    reason = "the definition of Swish", source = "ONNX Swish; onnxsim fuse_swish" },
  { "hard_swish: multiply(?x, nn.hard_sigmoid(?x, alpha=0.16666667, beta=0.5)) => "
    .. "nn.hard_swish(?x) where opset >= 14", proof = "approximates",
    reason = "the definition of HardSwish",
    source = "ONNX HardSwish; onnxscript hardswish" },
  { "hard_swish_clip: divide(multiply(?x:float, clip(add(?x, 3), a_min=0, a_max=6)), 6)"
    .. " | multiply(?x:float, divide(clip(add(?x, 3), a_min=0, a_max=6), 6)) => nn.hard_swish(?x)"
    .. " where opset >= 14", proof = "approximates", reason = "x * clip(x + 3, 0, 6) / 6",
    source = "ONNX HardSwish; onnxsim fuse_hardswish" },
  { "hard_sigmoid: divide(clip(add(?x:float, 3), a_min=0, a_max=6), 6) => "
    .. "nn.hard_sigmoid(?x, alpha=0.16666667, beta=0.5) where opset >= 6", proof = "approximates",
    reason = "clip(x + 3, 0, 6) / 6", source = "ONNX HardSigmoid" },
  { "scaled_product: nn.matmul(multiply(?q, ?s:scalar), multiply(?k, ?t:scalar)) => "
    .. "multiply(nn.matmul(?q, ?k), multiply(?s, ?t)) where opset >= 1 and ?s.rank <= 1 "
    .. "and ?t.rank <= 1 and ?q.rank >= 2 and ?k.rank >= 2", proof = "reassociates",
    reason = "two factors around a product are one", source = "ONNX Runtime MatMulScaleFusion" },
  { "gemm_transposed: nn.matmul(?x:float, ?t@transpose(?w, axes=[1, 0])) => nn.gemm(?x, ?w, "
    .. "transB=1) where opset >= 11 and ?x.rank == 2 and ?w.rank == 2 and ?t.uses == 1",
    proof = "reassociates", reason = "the product transposes its operand itself",
    source = "onnxscript fuse transpose into Gemm" },
  { "quotient: multiply(?x:float, reciprocal(?y) | divide(1, ?y)) => divide(?x, ?y) "
    .. "where opset >= 1", proof = "reassociates",
    reason = "x * (1 / y) = x / y, rounded once",
    source = "ONNX Runtime DivMulFusion" },
  -- A power of two is exact in float32 and wider, but for quotients that underflow.
  { "scaled_quotient: multiply(divide(?x:float, ?a:scalar), ?b:scalar) => divide(?x, divide(?a, "
    .. "?b)) where opset >= 7 and (?x.dtype == float32 or ?x.dtype == float64) and ?a.rank == 0 "
    .. "and ?b.rank == 0 and scalar(?b) in [2, 4, 8, 16, 32, 64, 128]", proof = "reassociates",
    reason = "x / a * b = x / (a / b)", source = "ONNX Runtime DivMulFusion" },
  { "softplus: log(add(exp(?x), 1)) => nn.softplus(?x) where opset >= 1", proof = "approximates",
    reason = "the definition of Softplus, without overflow", source = "ONNX Softplus" },
  { "mish: multiply(?x, tanh(nn.softplus(?x))) => nn.mish(?x) where opset >= 18",
    proof = "approximates", reason = "the definition of Mish",
    source = "ONNX Mish; onnxsim fuse_mish" },
  { "softsign: divide(?x:float, add(abs(?x), 1)) => nn.softsign(?x) where opset >= 1",
    proof = "approximates", reason = "the definition of Softsign", source = "ONNX Softsign" },
  { "log_softmax: log(?s@nn.softmax(?x)) => nn.log_softmax(?x, **?s) where opset >= 13",
    proof = "approximates", reason = "the logarithm without rounding to zero first",
    source = "ONNX fuse_consecutive_log_softmax" },
  { "reduce_sum_square: ?r@sum(power(?x:float, 2) | multiply(?x, ?x)) => "
    .. "reduce_sum_square(?x, **?r) where opset >= 1", proof = "reassociates",
    reason = "the sum of squares", source = "ONNX ReduceSumSquare" },
  { "reduce_l2: sqrt(?r@reduce_sum_square(?x:float)) => reduce_l2(?x, **?r) where opset >= 1",
    proof = "reassociates", reason = "the Euclidean norm", source = "ONNX ReduceL2" },
  { "reduce_l1: ?r@sum(abs(?x)) => reduce_l1(?x, **?r) where opset >= 1", proof = "reassociates",
    reason = "the sum of absolute values", source = "ONNX ReduceL1" },
  { "reduce_log_sum_exp: log(?r@sum(exp(?x))) => logsumexp(?x, **?r) where opset >= 1",
    proof = "approximates", reason = "the logarithm of the sum of exponentials, without overflow",
    source = "ONNX ReduceLogSumExp" },
  { "reduce_log_sum: log(?r@sum(?x:float)) => reduce_log_sum(?x, **?r) where opset >= 1",
    proof = "reassociates", reason = "the logarithm of the sum", source = "ONNX ReduceLogSum" },
}

-- The scores of attention: a product, perhaps scaled, perhaps with a mask of finite
-- numbers added. The guard turns a row of NaN into zeros, and such a row comes of an
-- infinite score or of NaN; so it may go only where no computed value is either.
local scores = "(nn.matmul(_, _) | multiply(nn.matmul(_, _), ?k:const) | "
  .. "microsoft.fused_matmul(_, _))"
local guard = "where(isnan(?s@nn.softmax(%s)), 0, ?s) => ?s where finite_math "
  .. "and ?s.dtype == float32"
local finite = "scalar(%s) >= -3.4028235e38 and scalar(%s) <= 3.4028235e38"
local mask = " and " .. finite:format("?b", "?b") .. " and (not is_const(?a) or "
  .. finite:format("?a", "?a") .. ")"
for i, form in ipairs { guard:format(scores),
  guard:format("add(" .. scores .. ", where(_, ?a, ?b:const))") .. mask } do
  rules[#rules + 1] = { ("guarded_softmax_%d: %s"):format(i, form), proof = "approximates",
    reason = "a softmax of finite scores is never NaN",
    source = "PyTorch's _safe_softmax guards rows of which all scores are -inf" }
end

-- Of x * (erf(x * c) + 1) the factor moves into the weights that make x, and 1 / c to
-- the product behind it. Where there is Gelu, its factor stays for that.
local linear = "?x@(add(nn.matmul(_, ?w:const), ?b:const) | nn.gemm(_, ?w:const, ?b:const) "
  .. "| nn.conv(_, ?w:const, ?b:const) | nn.conv(_, ?w:const))"
for _, ops in ipairs { { "multiply", "divide", 0.7071 }, { "divide", "multiply", 1.4142 } } do
  rules[#rules + 1] = { ("scaled_erf_%s: multiply(?x, add(erf(?d@%s(%s, ?c:scalar)), 1)) => "
    .. "%s(multiply(?d, add(erf(?d), 1)), ?c) where opset >= 1 and (opset < 20 and not microsoft "
    .. "or scalar(?c) < %.4f or scalar(?c) > %.4f) and ?x.uses == 2 and ?d.uses == 1 "
    .. "and ?x.dtype == float32 and scalar(?c) ~= 0"):format(ops[1], ops[1], linear, ops[2],
      ops[3], ops[3] + 1e-4),
    proof = "reassociates", grows = true,
    reason = "x * (erf(x * c) + 1) = (y * (erf(y) + 1)) / c with y = x * c",
    source = "ONNX Runtime GeluFusion knows the same form" }
end

for i, form in ipairs(half_times) do
  rules[#rules + 1] = { ("gelu_%d: %s => nn.gelu(?x) where opset >= 20")
    :format(i, form:format(erf)),
    proof = "approximates", reason = "the exact Gaussian error linear unit",
    source = "ONNX Gelu; ONNX Runtime GeluFusion" }
  rules[#rules + 1] = { ("gelu_tanh_%d: %s => nn.gelu(?x, approximate='tanh') where opset >= 20")
    :format(i, form:format(tanh)), proof = "approximates",
    reason = "the Gaussian error linear unit by tanh",
    source = "ONNX Gelu; ONNX Runtime GeluFusion" }
end

-- 1 + tanh(z) = 2 / (1 + exp(-2 z)). Where there is Gelu, this is it.
local logistic = "multiply(?z, multiply(?c, 2))"
for i, form in ipairs(half_times) do
  rules[#rules + 1] = { ("logistic_tanh_%d: %s => multiply(?x, sigmoid(%s)) where opset >= 1 and "
    .. "not microsoft and ?x.dtype == float32"):format(i,
      form:format "add(tanh(multiply(?z, ?c:scalar)), 1)", logistic),
    proof = "approximates", reason = "x / 2 * (1 + tanh(z)) = x * sigmoid(2 z)",
    source = "ONNX Runtime FastGeluFusion knows the left form" }
end

-- Of x * sigmoid((x + x^3 * k) * c) the factor c moves into the weights that make x, as above.
rules[#rules + 1] = { "scaled_logistic: multiply(" .. linear .. ", sigmoid(multiply(add(?x, "
  .. "multiply(power(?x, 3), ?k:scalar)), ?c:scalar))) => divide(multiply(?y@multiply(?x, ?c), "
  .. "sigmoid(add(?y, multiply(power(?y, 3), divide(?k, multiply(?c, ?c)))))), ?c) where "
  .. "opset >= 1 and not microsoft and ?x.uses == 3 and ?x.dtype == float32 and "
  .. "scalar(?c) > 1e-3 and scalar(?c) < 1e3", proof = "reassociates", grows = true,
  reason = "x * sigmoid((x + x^3 k) c) = y * sigmoid(y + y^3 k / c^2) / c with y = x * c" }

-- Attention of queries, keys and values of shape (batch, heads, length, size): the scores
-- are scaled or not, with a mask or not. The keys come transposed. A mask whose last dim is
-- shorter means something else to Attention, and ONNX Runtime takes only masks that have a
-- row for each query.
local positive = " and scalar(?c) > 1e-30 and scalar(?c) < 1e30"
local of_scores = { { "?p@nn.matmul(?q, ?t)", "1", "" },
  { "multiply(?p@nn.matmul(?q, ?t), ?c:scalar)", "scalar(?c)", positive },
  { "divide(?p@nn.matmul(?q, ?t), ?c:scalar)", "1 / scalar(?c)", positive } }
local heads = "opset >= 23 and ?q.rank == 4 and ?t.rank == 4 and ?v.rank == 4 and "
  .. "?q.shape[1] > 0 and normalize(?a, 4) == 3 and "
  .. "sublist(?q.shape, 0, 2) == sublist(?t.shape, 0, 2) and "
  .. "sublist(?v.shape, 0, 3) == [?q.shape[0], ?q.shape[1], ?t.shape[3]]"
local masked = " and ?m.rank >= 2 and ?m.dtype == ?q.dtype and broadcasts(?m.shape, ?p.shape) and "
  .. "sublist(?m.shape, -2, ?m.rank) == sublist(?p.shape, 2, 4)"
for i, form in ipairs(of_scores) do
  local function attention(name, logits, operand, where)
    rules[#rules + 1] = { ("%s_%d: nn.matmul(nn.softmax(%s, axis=?a), ?v) => attention(?q, "
      .. "transpose(?t, axes=[0, 1, 3, 2]), ?v%s, scale=%s) where %s"):format(name, i, logits,
        operand, form[2], where .. form[3]),
      proof = "approximates", reason = "softmax(Q K^T / sqrt(size) + mask) V",
      source = "ONNX Attention; ONNX Runtime AttentionFusion" }
  end
  attention("masked_attention", ("add(%s, ?m)"):format(form[1]), ", ?m", heads .. masked)
  attention("attention", form[1], "", heads)
end

-- Heads of keys and values that several heads of queries share are not repeated.
rules[#rules + 1] = { "grouped_attention: ?o@attention(?q, take(?k, ?i:const, axis=1), "
  .. "take(?v, ?j:const, axis=1), ?rest...) => attention(?q, ?k, ?v, ?rest..., **?o) where "
  .. "opset >= 23 and ?q.rank == 4 and ?k.rank == 4 and ?v.rank == 4 and ?i.rank == 1 and "
  .. "?j.rank == 1 and ?q.shape[1] > ?k.shape[1] and ?k.shape[1] > 0 and "
  .. "?v.shape[1] == ?k.shape[1] and ?q.shape[1] % ?k.shape[1] == 0 and "
  .. "?i.value == repeated(iota(?k.shape[1]), ?q.shape[1] // ?k.shape[1]) and "
  .. "?j.value == ?i.value",
  proof = "approximates", reason = "the operator repeats heads of keys and values itself",
  source = "ONNX Attention; ONNX Runtime GroupQueryAttention" }

-- A constant row that is broadcast and concatenated, such as a class token, is part of the
-- constant that is added behind it: what it is added to is padded with zeros.
for i, form in ipairs { { "?b@broadcast_to(?c:const, ...), ?x", "?n", "0", "0", "?m" },
  { "?x, ?b@broadcast_to(?c:const, ...)", "0", "?n", "?m", "0" } } do
  local function pads(before, after)
    return ("constant(list(?axis, 0) + [%s] + list(?x.rank - 1, 0) + [%s] + "
      .. "list(?x.rank - ?axis - 1, 0))"):format(before, after)
  end
  local text = ("constant_row_%d: ?r@add(?j@concatenate(%s, axis=?a), ?p:const) => add(nn.pad(?x, "
    .. "%s), add(?p, nn.pad(?c, %s))) where opset >= 13 and ?x.rank >= 2 and ?c.rank == ?x.rank "
    .. "and ?p.rank <= ?x.rank and ?r.shape == ?j.shape and "
    .. "?b.shape[?axis] == ?c.shape[?axis] and ?c.shape[?axis] >= 0 "
    .. "and ?m >= 0 and sublist(?j.shape, 0, ?axis) == sublist(?x.shape, 0, ?axis) and "
    .. "sublist(?j.shape, ?axis + 1, ?j.rank) == sublist(?x.shape, ?axis + 1, ?x.rank)")
    :format(i, form[1], pads(form[2], form[3]), pads(form[4], form[5]))
  text = text:gsub("%?m", "(?j.shape[?axis] - ?c.shape[?axis])"):gsub("%?n", "?c.shape[?axis]")
    :gsub("%?axis", "normalize(?a, ?x.rank)")
  rules[#rules + 1] = { text, grows = true,
    reason = "a row of a sum with a constant is constant where one of the other operand is",
    source = "vision transformers' class token" }
end

-- PyTorch's exporters make an InstanceNormalization of the groups.
rules[#rules + 1] = { "group_norm: add(multiply(?y@reshape(nn.instance_norm(?z@reshape(?x), 1, 0, "
  .. "epsilon=?e)), ?w:const), ?b:const) => nn.group_norm(?x, reshape(?w, newshape=[?x.shape[1]]), "
  .. "reshape(?b, newshape=[?x.shape[1]]), num_groups=?z.shape[1], epsilon=?e) where opset >= 21 "
  .. "and ?z.rank == 3 and ?y.shape == ?x.shape and ?z.shape[0] == ?x.shape[0] and ?x.shape[1] > 0 "
  .. "and ?w.rank == ?x.rank - 1 and ?w.shape[0] == ?x.shape[1] and ?w.size == ?x.shape[1] "
  .. "and ?b.rank == ?x.rank - 1 and ?b.shape[0] == ?x.shape[1] and ?b.size == ?x.shape[1]",
  proof = "approximates", reason = "the normalisation of groups of channels",
  source = "ONNX GroupNormalization" }

return rules
