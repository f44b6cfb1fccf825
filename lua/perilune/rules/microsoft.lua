--- Computations that ONNX Runtime has one operator of its own domain for (FuseOnnxOps with
-- fusions="com.microsoft"). `microsoft` is true when they are asked for.

-- erf(x / sqrt(2)) + 1, and tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) + 1, for opsets
-- without Gelu.
local erf = "add(erf(divide(?x, 1.4142135623730951) | multiply(?x, 0.7071067811865476)), 1)"
local cube = "(power(?x, 3) | multiply(?x, multiply(?x, ?x)))"
local tanh = ("add(tanh(multiply(add(?x, multiply(%s, 0.044715)), 0.7978845608028654)), 1)")
  :format(cube)
local half_times = { "multiply(multiply(?x, 0.5), %s)", "multiply(multiply(?x, %s), 0.5)",
  "multiply(?x, multiply(%s, 0.5))" }

-- A bias along the last axis of x.
local biased = "microsoft and ?s.uses == 1 and ?b.rank == 1 and ?x.rank >= 2 "
  .. "and ?b.shape[0] == ?x.shape[-1] and ?b.shape[0] > 0 and ?x.dtype == float32"

local rules = {
  { "bias_gelu: nn.gelu(?s@add(?x:float, ?b:const), approximate='none') | "
    .. "microsoft.gelu(?s@add(?x:float, ?b:const)) => "
    .. "microsoft.bias_gelu(?x, ?b) where " .. biased, proof = "approximates",
    reason = "Gelu of a sum with a bias", source = "ONNX Runtime BiasGeluFusion" },
  { "bias_fast_gelu: nn.gelu(?s@add(?x:float, ?b:const), approximate='tanh') | "
    .. "microsoft.fast_gelu(?s@add(?x:float, ?b:const)) => "
    .. "microsoft.fast_gelu(?x, ?b) where " .. biased, proof = "approximates",
    reason = "Gelu by tanh of a sum with a bias", source = "ONNX Runtime BiasGeluFusion" },
  { "quick_gelu: multiply(?x:float, sigmoid(multiply(?x, ?a:scalar))) => "
    .. "microsoft.quick_gelu(?x, alpha=scalar(?a)) where microsoft and ?x.dtype == float32 "
    .. "and ?a.rank == 0 and scalar(?a) > -1e30 and scalar(?a) < 1e30", proof = "approximates",
    reason = "x * sigmoid(alpha * x)", source = "ONNX Runtime QuickGeluFusion" },
  { "quick_gelu_one: multiply(?x:float, sigmoid(?x)) => microsoft.quick_gelu(?x, alpha=1) "
    .. "where microsoft and ?x.dtype == float32 and opset < 24", proof = "approximates",
    reason = "x * sigmoid(x)", source = "ONNX Runtime QuickGeluFusion" },
}

for i, form in ipairs(half_times) do
  rules[#rules + 1] = { ("microsoft_gelu_%d: %s => microsoft.gelu(?x) where microsoft and "
    .. "opset < 20 and ?x.dtype == float32"):format(i, form:format(erf)), proof = "approximates",
    reason = "the exact Gaussian error linear unit", source = "ONNX Runtime GeluFusion" }
  rules[#rules + 1] = { ("fast_gelu_%d: %s => microsoft.fast_gelu(?x) where microsoft and "
    .. "opset < 20 and ?x.dtype == float32"):format(i, form:format(tanh)), proof = "approximates",
    reason = "the Gaussian error linear unit by tanh", source = "ONNX Runtime FastGeluFusion" }
end

-- ------------------------------------------------------------- normalisations

local function add(rule) rules[#rules + 1] = rule end

-- Both operands of the sum have the shape of the result.
local skipped = "microsoft and ?x.dtype == float32 and ?s.uses == 1 and ?g.rank == 1 "
  .. "and ?x.rank == 3 and ?x.shape == ?s.shape and ?y.shape == ?s.shape"
local sums = { { "skip_layer_norm", "?s@add(?x:float, ?y)", "" },
  { "skip_layer_norm_bias", "?s@(add(?y, add(?x:float, ?c:const)))", ", ?c" } }
for i, row in ipairs(sums) do
  local where = skipped .. (i == 2 and " and ?c.rank == 1 and ?c.shape == ?g.shape" or "")
  add { ("%s: nn.layer_norm(%s, ?g, ?b, axis=?a, epsilon=?e) => "
    .. "microsoft.skip_layer_normalization(?x, ?y, ?g, ?b%s, epsilon=?e) where %s and "
    .. "normalize(?a, 3) == 2"):format(row[1], row[2], row[3], where),
    proof = "approximates", reason = "LayerNormalization of a sum",
    source = "ONNX Runtime SkipLayerNormFusion" }
end
add { "skip_rms_norm: nn.rms_norm(?s@add(?x:float, ?y), ?g, axis=?a, epsilon=?e) => "
  .. "microsoft.skip_simplified_layer_normalization(?x, ?y, ?g, epsilon=?e) where " .. skipped
  .. " and normalize(?a, 3) == 2", proof = "approximates",
  reason = "RMSNormalization of a sum", source = "ONNX Runtime SkipLayerNormFusion" }

-- Embeddings of words and positions, perhaps of segments. ONNX Runtime takes ids of int32.
local function ids(name) return ("cast(?%s, to=6)"):format(name) end
local embedded = "microsoft and ?e1.uses == 1 and ?w.dtype == float32 and ?i.rank == 2 "
  .. "and ?w.rank == 2 and ?p.rank == 2 and ?g.rank == 1 and ?n.rank == 2 and ?n.shape == ?i.shape"
add { "embed_layer_norm: nn.layer_norm(?e1@add(take(?w:const, ?i, axis=0), "
  .. "take(?p:const, ?n, axis=0)), ?g, ?b, axis=?a, epsilon=?e) => "
  .. ("microsoft.embed_layer_normalization(%s, none, ?w, ?p, none, ?g, ?b, none, %s, epsilon=?e)")
    :format(ids "i", ids "n") .. " where " .. embedded .. " and normalize(?a, 3) == 2",
  proof = "approximates", grows = true, reason = "LayerNormalization of two embeddings",
  source = "ONNX Runtime EmbedLayerNormFusion" }
add { "embed_layer_norm_segments: nn.layer_norm(?e1@(add(add(take(?w:const, ?i, axis=0), "
  .. "take(?t:const, ?k, axis=0)), take(?p:const, ?n, axis=0))), ?g, ?b, axis=?a, epsilon=?e) => "
  .. ("microsoft.embed_layer_normalization(%s, %s, ?w, ?p, ?t, ?g, ?b, none, %s, epsilon=?e)")
    :format(ids "i", ids "k", ids "n") .. " where " .. embedded
  .. " and ?t.rank == 2 and ?k.shape == ?i.shape and normalize(?a, 3) == 2",
  proof = "approximates", grows = true, reason = "LayerNormalization of three embeddings",
  source = "ONNX Runtime EmbedLayerNormFusion" }

-- ------------------------------------------------------------------- products

-- The scores of the standard Attention keep their factor.
local scaled = "microsoft and ?a.dtype == float32 and ?a.rank >= 2 and ?b.rank >= 2 "
  .. "and ?c.rank == 0 and ?m.uses == 1 and (opset < 23 or ?a.rank ~= 4) "
  .. "and scalar(?c) > 1e-30 and scalar(?c) < 1e30"
local swapped = "microsoft and ?a.dtype == float32 and ?t.uses == 1 and ?a.rank >= 2 "
  .. "and ?b.rank >= 2 and ?p == iota(%s.rank - 2) + [%s.rank - 1, %s.rank - 2]"
add { "matmul_scale: multiply(?m@nn.matmul(?a:float, ?b), ?c:scalar) => "
  .. "microsoft.fused_matmul(?a, ?b, alpha=scalar(?c)) where " .. scaled,
  proof = "reassociates", reason = "the factor of a product is an attribute",
  source = "ONNX Runtime MatMulScaleFusion" }
add { "matmul_divisor: divide(?m@nn.matmul(?a:float, ?b), ?c:scalar) => "
  .. "microsoft.fused_matmul(?a, ?b, alpha=1 / scalar(?c)) where " .. scaled,
  proof = "reassociates", reason = "the divisor of a product is an attribute",
  source = "ONNX Runtime MatMulScaleFusion" }
add { "matmul_transposed_right: nn.matmul(?a:float, ?t@transpose(?b, axes=?p)) => "
  .. "microsoft.fused_matmul(?a, ?b, transB=1) where " .. swapped:gsub("%%s", "?b")
  .. " and (opset < 23 or ?a.rank ~= 4)",
  proof = "reassociates", reason = "the product transposes its operand itself",
  source = "ONNX Runtime MatmulTransposeFusion" }
add { "matmul_transposed_left: nn.matmul(?t@transpose(?a:float, axes=?p), ?b) => "
  .. "microsoft.fused_matmul(?a, ?b, transA=1) where " .. swapped:gsub("%%s", "?a"),
  proof = "reassociates", reason = "the product transposes its operand itself",
  source = "ONNX Runtime MatmulTransposeFusion" }

-- A convolution and what follows it.
local conv = "?c@nn.conv(?x:float, ?w, ?b:optional)"
local activations = { relu = { "nn.relu(%s)", "'Relu'" }, sigmoid = { "sigmoid(%s)", "'Sigmoid'" },
  tanh = { "tanh(%s)", "'Tanh'" } }
for _, name in ipairs { "relu", "sigmoid", "tanh" } do
  local form, activation = table.unpack(activations[name])
  add { ("conv_%s: %s => microsoft.fused_conv(?x, ?w, ?b, **?c, activation=%s) where microsoft "
    .. "and ?x.dtype == float32 and ?c.uses == 1"):format(name, form:format(conv), activation),
    proof = "reassociates", reason = "a convolution and its activation",
    source = "ONNX Runtime ConvActivationFusion" }
end
add { ("conv_add_relu: nn.relu(?s@add(%s, ?z)) => microsoft.fused_conv(?x, ?w, ?b, ?z, **?c, "
  .. "activation='Relu') where microsoft and ?x.dtype == float32 and ?c.uses == 1 "
  .. "and ?s.uses == 1 and ?z.shape == ?c.shape and ?x.rank == 4 "
  .. "and not is_const(?z)"):format(conv),
  proof = "reassociates", reason = "a convolution, a sum and its activation",
  source = "ONNX Runtime ConvAddActivationFusion" }

-- ------------------------------------------------------------------ attention

-- Queries, keys and values of shape (batch, length, heads * size), split into heads. Scores
-- have their factor as the attribute of a product, see above.
local heads = "microsoft and ?q.dtype == float32 and ?q.rank == 3 and ?k.rank == 3 and "
  .. "?v.rank == 3 and ?o.rank == 3 and ?rq.rank == 4 and ?rk.rank == 4 and ?rv.rank == 4 and "
  .. "?rq.shape[2] > 0 and "
  .. "sublist(?rq.shape, 0, 2) == sublist(?q.shape, 0, 2) and "
  .. "sublist(?rk.shape, 0, 2) == sublist(?k.shape, 0, 2) and "
  .. "sublist(?rv.shape, 0, 2) == sublist(?k.shape, 0, 2) and "
  .. "sublist(?v.shape, 0, 2) == sublist(?k.shape, 0, 2) and ?k.shape[0] == ?q.shape[0] and "
  .. "sublist(?rk.shape, 2, 4) == sublist(?rq.shape, 2, 4) and ?rv.shape[2] == ?rq.shape[2] and "
  .. "sublist(?o.shape, 0, 2) == sublist(?q.shape, 0, 2) and normalize(?a, 4) == 3"
local biases = " and ?m.rank == 4 and ?m.dtype == float32 and "
  .. "sublist(?m.shape, 2, 4) == [?q.shape[1], ?k.shape[1]] and "
  .. "(?m.shape[0] == 1 or ?m.shape[0] == ?q.shape[0]) and "
  .. "(?m.shape[1] == 1 or ?m.shape[1] == ?rq.shape[2])"
local queries = "transpose(?rq@reshape(?q:float), axes=[0, 2, 1, 3])"
local keys = "transpose(?rk@reshape(?k), axes=[0, 2, 3, 1])"
local values = "transpose(?rv@reshape(?v), axes=[0, 2, 1, 3])"
local scores = { { ("nn.matmul(%s, %s)"):format(queries, keys), "1" },
  { ("microsoft.fused_matmul(%s, %s, alpha=?f, transA=0, transB=0, transBatchA=0, transBatchB=0)")
    :format(queries, keys), "?f" } }
for i, form in ipairs(scores) do
  local function attention(name, logits, operand, where)
    add { ("%s_%d: ?o@reshape(transpose(nn.matmul(nn.softmax(%s, axis=?a), %s), "
      .. "axes=[0, 2, 1, 3])) => microsoft.multi_head_attention(?q, ?k, ?v%s, "
      .. "num_heads=?rq.shape[2], scale=%s) where %s"):format(name, i, logits, values, operand,
        form[2], where), proof = "approximates",
      reason = "attention of queries, keys and values whose heads are side by side",
      source = "ONNX Runtime's MultiHeadAttention fusion" }
  end
  attention("multi_head_attention_biased", ("add(%s, ?m)"):format(form[1]),
    ", none, none, ?m", heads .. biases)
  attention("multi_head_attention", form[1], "", heads)
end

-- Projections of one operand are part of the operator.
local function projection(name)
  return ("?p%s@add(nn.matmul(?x, ?w%s:const), ?b%s:const)"):format(name, name, name)
end
local projected = "microsoft and ?pq.uses == 1 and ?pk.uses == 1 and ?pv.uses == 1 and "
  .. "?wq.rank == 2 and ?wk.shape == ?wq.shape and ?wv.shape == ?wq.shape and ?bq.rank == 1 "
  .. "and ?bk.shape == ?bq.shape and ?bv.shape == ?bq.shape and ?bq.shape[0] == ?wq.shape[1]"
add { ("packed_attention: microsoft.multi_head_attention(%s, %s, %s, num_heads=?n, "
  .. "scale=?f) => microsoft.attention(?x, concatenate(?wq, ?wk, ?wv, axis=1), "
  .. "concatenate(?bq, ?bk, ?bv, axis=0), num_heads=?n, scale=?f) where %s"):format(
    projection "q", projection "k", projection "v", projected), proof = "approximates",
  grows = true, reason = "the operator projects its operand itself",
  source = "ONNX Runtime AttentionFusion" }

return rules
