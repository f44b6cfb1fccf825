--- Rules of graph substitution, as `perilune rules generate` wrote them: lua/perilune/rule/generate
-- says how they are found and proved. The reason is the equation; another run gives the same file.

local function example(domain, text)
  return function(g) return require "perilune.rule.generate.example".of_text(domain, text)(g) end
end

return {
  { "generated_relay_bottom_concat_rows: split(concatenate(?x:static, ?y:static, "
    .. "axis=0), indices_or_sections=2, axis=0).1 => ?y where ?x.dtype == float32 and "
    .. "?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "bottom(concat_rows(x, y))"),
    reason = "bottom(concat_rows(x, y)) = y",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_concat_columns: split(concatenate(?x:static, ?y:static, "
    .. "axis=1), indices_or_sections=2, axis=1).0 => ?x where ?x.dtype == float32 and "
    .. "?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "left(concat_columns(x, y))"),
    reason = "left(concat_columns(x, y)) = x",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_concat_columns: split(concatenate(?x:static, ?y:static, "
    .. "axis=1), indices_or_sections=2, axis=1).1 => ?y where ?x.dtype == float32 and "
    .. "?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "right(concat_columns(x, y))"),
    reason = "right(concat_columns(x, y)) = y",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_concat_rows: split(concatenate(?x:static, ?y:static, axis=0), "
    .. "indices_or_sections=2, axis=0).0 => ?x where ?x.dtype == float32 and ?x.rank == 2 "
    .. "and ?y.rank == 2",
    example = example("dense", "top(concat_rows(x, y))"),
    reason = "top(concat_rows(x, y)) = x",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_columns_left_right: concatenate(split(?x:static, "
    .. "indices_or_sections=2, axis=1).0, split(?x:static, indices_or_sections=2, "
    .. "axis=1).1, axis=1) => ?x where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "concat_columns(left(x), right(x))"),
    reason = "concat_columns(left(x), right(x)) = x",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_rows_top_bottom: concatenate(split(?x:static, "
    .. "indices_or_sections=2, axis=0).0, split(?x:static, indices_or_sections=2, "
    .. "axis=0).1, axis=0) => ?x where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "concat_rows(top(x), bottom(x))"),
    reason = "concat_rows(top(x), bottom(x)) = x",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_relu_relu: nn.relu(nn.relu(?x:static)) => nn.relu(?x) where "
    .. "?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "relu(relu(x))"),
    reason = "relu(relu(x)) = relu(x)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_dense_concat_rows: split(nn.dense(concatenate(?x:static, "
    .. "?y:static, axis=0), ?w:static), indices_or_sections=2, axis=0).1 => nn.dense(?y, "
    .. "?w) where ?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and ?w.rank == 2",
    example = example("dense", "bottom(dense(concat_rows(x, y), w))"),
    reason = "bottom(dense(concat_rows(x, y), w)) = dense(y, w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_scale_concat_rows: split(multiply(concatenate(?x:static, "
    .. "?y:static, axis=0), ?c), indices_or_sections=2, axis=0).1 => multiply(?y, ?c) where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and ?c.rank == 0",
    example = example("dense", "bottom(scale(concat_rows(x, y), c))"),
    reason = "bottom(scale(concat_rows(x, y), c)) = scale(y, c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_columns_concat_columns: concatenate(?x:static, "
    .. "concatenate(?y:static, ?z:static, axis=1), axis=1) => concatenate(concatenate(?x, "
    .. "?y, axis=1), ?z, axis=1) where ?x.dtype == float32 and ?x.rank == 2 and ?y.rank == "
    .. "2 and ?z.rank == 2",
    example = example("dense", "concat_columns(x, concat_columns(y, z))"),
    reason = "concat_columns(x, concat_columns(y, z)) = concat_columns(concat_columns(x, y), z)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_columns_concat_columns_2: concatenate(concatenate(?x:static, "
    .. "?y:static, axis=1), ?z:static, axis=1) => concatenate(?x, concatenate(?y, ?z, "
    .. "axis=1), axis=1) where ?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and "
    .. "?z.rank == 2",
    example = example("dense", "concat_columns(concat_columns(x, y), z)"),
    reason = "concat_columns(concat_columns(x, y), z) = concat_columns(x, concat_columns(y, z))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_outputs_concat_outputs: concatenate(?w:static, "
    .. "concatenate(?v:static, ?u:static, axis=0), axis=0) => concatenate(concatenate(?w, "
    .. "?v, axis=0), ?u, axis=0) where ?w.dtype == float32 and ?w.rank == 2 and ?v.rank == "
    .. "2 and ?u.rank == 2",
    example = example("dense", "concat_outputs(w, concat_outputs(v, u))"),
    reason = "concat_outputs(w, concat_outputs(v, u)) = concat_outputs(concat_outputs(w, v), u)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_outputs_concat_outputs_2: concatenate(concatenate(?w:static, "
    .. "?v:static, axis=0), ?u:static, axis=0) => concatenate(?w, concatenate(?v, ?u, "
    .. "axis=0), axis=0) where ?w.dtype == float32 and ?w.rank == 2 and ?v.rank == 2 and "
    .. "?u.rank == 2",
    example = example("dense", "concat_outputs(concat_outputs(w, v), u)"),
    reason = "concat_outputs(concat_outputs(w, v), u) = concat_outputs(w, concat_outputs(v, u))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_dense: multiply(nn.dense(?x:static, ?w:static), ?c) => "
    .. "nn.dense(?x, multiply(?w, ?c)) where ?x.dtype == float32 and ?x.rank == 2 and "
    .. "?w.rank == 2 and ?c.rank == 0",
    example = example("dense", "scale(dense(x, w), c)"),
    reason = "scale(dense(x, w), c) = dense(x, scale(w, c))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_scale: nn.dense(?x:static, multiply(?w:static, ?c)) => "
    .. "multiply(nn.dense(?x, ?w), ?c) where ?x.dtype == float32 and ?x.rank == 2 and "
    .. "?w.rank == 2 and ?c.rank == 0",
    example = example("dense", "dense(x, scale(w, c))"),
    reason = "dense(x, scale(w, c)) = scale(dense(x, w), c)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_left_dense_concat_outputs: split(nn.dense(?x:static, "
    .. "concatenate(?w:static, ?v:static, axis=0)), indices_or_sections=2, axis=1).0 => "
    .. "nn.dense(?x, ?w) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == 2 and "
    .. "?v.rank == 2",
    example = example("dense", "left(dense(x, concat_outputs(w, v)))"),
    reason = "left(dense(x, concat_outputs(w, v))) = dense(x, w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_right_dense_concat_outputs: split(nn.dense(?x:static, "
    .. "concatenate(?w:static, ?v:static, axis=0)), indices_or_sections=2, axis=1).1 => "
    .. "nn.dense(?x, ?v) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == 2 and "
    .. "?v.rank == 2",
    example = example("dense", "right(dense(x, concat_outputs(w, v)))"),
    reason = "right(dense(x, concat_outputs(w, v))) = dense(x, v)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_top_dense_concat_rows: split(nn.dense(concatenate(?x:static, "
    .. "?y:static, axis=0), ?w:static), indices_or_sections=2, axis=0).0 => nn.dense(?x, "
    .. "?w) where ?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and ?w.rank == 2",
    example = example("dense", "top(dense(concat_rows(x, y), w))"),
    reason = "top(dense(concat_rows(x, y), w)) = dense(x, w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_dense_2: multiply(nn.dense(?x:static, ?w:static), ?c) => "
    .. "nn.dense(multiply(?x, ?c), ?w) where ?x.dtype == float32 and ?x.rank == 2 and "
    .. "?w.rank == 2 and ?c.rank == 0",
    example = example("dense", "scale(dense(x, w), c)"),
    reason = "scale(dense(x, w), c) = dense(scale(x, c), w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_scale_2: nn.dense(multiply(?x:static, ?c), ?w:static) => "
    .. "multiply(nn.dense(?x, ?w), ?c) where ?x.dtype == float32 and ?x.rank == 2 and "
    .. "?c.rank == 0 and ?w.rank == 2",
    example = example("dense", "dense(scale(x, c), w)"),
    reason = "dense(scale(x, c), w) = scale(dense(x, w), c)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_left_scale_concat_columns: split(multiply(concatenate(?x:static, "
    .. "?y:static, axis=1), ?c), indices_or_sections=2, axis=1).0 => multiply(?x, ?c) where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and ?c.rank == 0",
    example = example("dense", "left(scale(concat_columns(x, y), c))"),
    reason = "left(scale(concat_columns(x, y), c)) = scale(x, c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_scale_concat_columns: split(multiply(concatenate(?x:static, "
    .. "?y:static, axis=1), ?c), indices_or_sections=2, axis=1).1 => multiply(?y, ?c) where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and ?c.rank == 0",
    example = example("dense", "right(scale(concat_columns(x, y), c))"),
    reason = "right(scale(concat_columns(x, y), c)) = scale(y, c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_scale_concat_rows: split(multiply(concatenate(?x:static, "
    .. "?y:static, axis=0), ?c), indices_or_sections=2, axis=0).0 => multiply(?x, ?c) where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and ?c.rank == 0",
    example = example("dense", "top(scale(concat_rows(x, y), c))"),
    reason = "top(scale(concat_rows(x, y), c)) = scale(x, c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_bottom_concat_columns: split(split(concatenate(?x:static, "
    .. "?y:static, axis=1), indices_or_sections=2, axis=0).1, indices_or_sections=2, "
    .. "axis=1).0 => (split(?x, indices_or_sections=2, axis=0, n_results=2)).1 where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "left(bottom(concat_columns(x, y)))"),
    reason = "left(bottom(concat_columns(x, y))) = bottom(x)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_bottom_concat_columns: split(split(concatenate(?x:static, "
    .. "?y:static, axis=1), indices_or_sections=2, axis=0).1, indices_or_sections=2, "
    .. "axis=1).1 => (split(?y, indices_or_sections=2, axis=0, n_results=2)).1 where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "right(bottom(concat_columns(x, y)))"),
    reason = "right(bottom(concat_columns(x, y))) = bottom(y)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_dense: split(nn.dense(?x:static, ?w:static), "
    .. "indices_or_sections=2, axis=0).1 => nn.dense((split(?x, indices_or_sections=2, "
    .. "axis=0, n_results=2)).1, ?w) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank "
    .. "== 2",
    example = example("dense", "bottom(dense(x, w))"),
    reason = "bottom(dense(x, w)) = dense(bottom(x), w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_left_concat_rows: split(split(concatenate(?x:static, "
    .. "?y:static, axis=0), indices_or_sections=2, axis=1).0, indices_or_sections=2, "
    .. "axis=0).1 => (split(?y, indices_or_sections=2, axis=1, n_results=2)).0 where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "bottom(left(concat_rows(x, y)))"),
    reason = "bottom(left(concat_rows(x, y))) = left(y)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_relu_concat_rows: split(nn.relu(concatenate(?x:static, "
    .. "?y:static, axis=0)), indices_or_sections=2, axis=0).1 => nn.relu(?y) where ?x.dtype "
    .. "== float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "bottom(relu(concat_rows(x, y)))"),
    reason = "bottom(relu(concat_rows(x, y))) = relu(y)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_right_concat_rows: split(split(concatenate(?x:static, "
    .. "?y:static, axis=0), indices_or_sections=2, axis=1).1, indices_or_sections=2, "
    .. "axis=0).1 => (split(?y, indices_or_sections=2, axis=1, n_results=2)).1 where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "bottom(right(concat_rows(x, y)))"),
    reason = "bottom(right(concat_rows(x, y))) = right(y)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_scale: split(multiply(?x:static, ?c), indices_or_sections=2, "
    .. "axis=0).1 => multiply((split(?x, indices_or_sections=2, axis=0, n_results=2)).1, "
    .. "?c) where ?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0",
    example = example("dense", "bottom(scale(x, c))"),
    reason = "bottom(scale(x, c)) = scale(bottom(x), c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_bottom: multiply(split(?x:static, indices_or_sections=2, "
    .. "axis=0).1, ?c) => (split(multiply(?x, ?c), indices_or_sections=2, axis=0, "
    .. "n_results=2)).1 where ?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0",
    example = example("dense", "scale(bottom(x), c)"),
    reason = "scale(bottom(x), c) = bottom(scale(x, c))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_add: nn.dense(?x:static, add(?w:static, ?w:static)) => "
    .. "nn.dense(add(?x, ?x), ?w) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == "
    .. "2",
    example = example("dense", "dense(x, add(w, w))"),
    reason = "dense(x, add(w, w)) = dense(add(x, x), w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_add_2: nn.dense(add(?x:static, ?x:static), ?w:static) => "
    .. "nn.dense(?x, add(?w, ?w)) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == "
    .. "2",
    example = example("dense", "dense(add(x, x), w)"),
    reason = "dense(add(x, x), w) = dense(x, add(w, w))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_top_dense: split(nn.dense(?x:static, ?w:static), "
    .. "indices_or_sections=2, axis=0).0 => nn.dense((split(?x, indices_or_sections=2, "
    .. "axis=0, n_results=2)).0, ?w) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank "
    .. "== 2",
    example = example("dense", "top(dense(x, w))"),
    reason = "top(dense(x, w)) = dense(top(x), w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_top: nn.dense(split(?x:static, indices_or_sections=2, "
    .. "axis=0).0, ?w:static) => (split(nn.dense(?x, ?w), indices_or_sections=2, axis=0, "
    .. "n_results=2)).0 where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == 2",
    example = example("dense", "dense(top(x), w)"),
    reason = "dense(top(x), w) = top(dense(x, w))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_top_left_concat_rows: split(split(concatenate(?x:static, ?y:static, "
    .. "axis=0), indices_or_sections=2, axis=1).0, indices_or_sections=2, axis=0).0 => "
    .. "(split(?x, indices_or_sections=2, axis=1, n_results=2)).0 where ?x.dtype == float32 "
    .. "and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "top(left(concat_rows(x, y)))"),
    reason = "top(left(concat_rows(x, y))) = left(x)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_relu_concat_columns: split(nn.relu(concatenate(?x:static, "
    .. "?y:static, axis=1)), indices_or_sections=2, axis=1).0 => nn.relu(?x) where ?x.dtype "
    .. "== float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "left(relu(concat_columns(x, y)))"),
    reason = "left(relu(concat_columns(x, y))) = relu(x)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_scale: split(multiply(?x:static, ?c), indices_or_sections=2, "
    .. "axis=1).0 => multiply((split(?x, indices_or_sections=2, axis=1, n_results=2)).0, "
    .. "?c) where ?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0",
    example = example("dense", "left(scale(x, c))"),
    reason = "left(scale(x, c)) = scale(left(x), c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_left: multiply(split(?x:static, indices_or_sections=2, "
    .. "axis=1).0, ?c) => (split(multiply(?x, ?c), indices_or_sections=2, axis=1, "
    .. "n_results=2)).0 where ?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0",
    example = example("dense", "scale(left(x), c)"),
    reason = "scale(left(x), c) = left(scale(x, c))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_top_concat_columns: split(split(concatenate(?x:static, "
    .. "?y:static, axis=1), indices_or_sections=2, axis=0).0, indices_or_sections=2, "
    .. "axis=1).0 => (split(?x, indices_or_sections=2, axis=0, n_results=2)).0 where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "left(top(concat_columns(x, y)))"),
    reason = "left(top(concat_columns(x, y))) = top(x)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_relu_concat_columns: split(nn.relu(concatenate(?x:static, "
    .. "?y:static, axis=1)), indices_or_sections=2, axis=1).1 => nn.relu(?y) where ?x.dtype "
    .. "== float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "right(relu(concat_columns(x, y)))"),
    reason = "right(relu(concat_columns(x, y))) = relu(y)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_relu_concat_rows: split(nn.relu(concatenate(?x:static, "
    .. "?y:static, axis=0)), indices_or_sections=2, axis=0).0 => nn.relu(?x) where ?x.dtype "
    .. "== float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "top(relu(concat_rows(x, y)))"),
    reason = "top(relu(concat_rows(x, y))) = relu(x)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_right_concat_rows: split(split(concatenate(?x:static, "
    .. "?y:static, axis=0), indices_or_sections=2, axis=1).1, indices_or_sections=2, "
    .. "axis=0).0 => (split(?x, indices_or_sections=2, axis=1, n_results=2)).1 where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "top(right(concat_rows(x, y)))"),
    reason = "top(right(concat_rows(x, y))) = right(x)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_scale: split(multiply(?x:static, ?c), indices_or_sections=2, "
    .. "axis=1).1 => multiply((split(?x, indices_or_sections=2, axis=1, n_results=2)).1, "
    .. "?c) where ?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0",
    example = example("dense", "right(scale(x, c))"),
    reason = "right(scale(x, c)) = scale(right(x), c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_right: multiply(split(?x:static, indices_or_sections=2, "
    .. "axis=1).1, ?c) => (split(multiply(?x, ?c), indices_or_sections=2, axis=1, "
    .. "n_results=2)).1 where ?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0",
    example = example("dense", "scale(right(x), c)"),
    reason = "scale(right(x), c) = right(scale(x, c))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_top_concat_columns: split(split(concatenate(?x:static, "
    .. "?y:static, axis=1), indices_or_sections=2, axis=0).0, indices_or_sections=2, "
    .. "axis=1).1 => (split(?y, indices_or_sections=2, axis=0, n_results=2)).0 where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "right(top(concat_columns(x, y)))"),
    reason = "right(top(concat_columns(x, y))) = top(y)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_scale: split(multiply(?x:static, ?c), indices_or_sections=2, "
    .. "axis=0).0 => multiply((split(?x, indices_or_sections=2, axis=0, n_results=2)).0, "
    .. "?c) where ?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0",
    example = example("dense", "top(scale(x, c))"),
    reason = "top(scale(x, c)) = scale(top(x), c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_top: multiply(split(?x:static, indices_or_sections=2, "
    .. "axis=0).0, ?c) => (split(multiply(?x, ?c), indices_or_sections=2, axis=0, "
    .. "n_results=2)).0 where ?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0",
    example = example("dense", "scale(top(x), c)"),
    reason = "scale(top(x), c) = top(scale(x, c))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_left: split(split(?x:static, indices_or_sections=2, "
    .. "axis=1).0, indices_or_sections=2, axis=0).1 => (split((split(?x, "
    .. "indices_or_sections=2, axis=0, n_results=2)).1, indices_or_sections=2, axis=1, "
    .. "n_results=2)).0 where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "bottom(left(x))"),
    reason = "bottom(left(x)) = left(bottom(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_bottom: split(split(?x:static, indices_or_sections=2, "
    .. "axis=0).1, indices_or_sections=2, axis=1).0 => (split((split(?x, "
    .. "indices_or_sections=2, axis=1, n_results=2)).0, indices_or_sections=2, axis=0, "
    .. "n_results=2)).1 where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "left(bottom(x))"),
    reason = "left(bottom(x)) = bottom(left(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_relu_bottom: nn.relu(split(?x:static, indices_or_sections=2, "
    .. "axis=0).1) => (split(nn.relu(?x), indices_or_sections=2, axis=0, n_results=2)).1 "
    .. "where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "relu(bottom(x))"),
    reason = "relu(bottom(x)) = bottom(relu(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_relu: split(nn.relu(?x:static), indices_or_sections=2, "
    .. "axis=0).1 => nn.relu((split(?x, indices_or_sections=2, axis=0, n_results=2)).1) "
    .. "where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "bottom(relu(x))"),
    reason = "bottom(relu(x)) = relu(bottom(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_right: split(split(?x:static, indices_or_sections=2, "
    .. "axis=1).1, indices_or_sections=2, axis=0).1 => (split((split(?x, "
    .. "indices_or_sections=2, axis=0, n_results=2)).1, indices_or_sections=2, axis=1, "
    .. "n_results=2)).1 where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "bottom(right(x))"),
    reason = "bottom(right(x)) = right(bottom(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_bottom: split(split(?x:static, indices_or_sections=2, "
    .. "axis=0).1, indices_or_sections=2, axis=1).1 => (split((split(?x, "
    .. "indices_or_sections=2, axis=1, n_results=2)).1, indices_or_sections=2, axis=0, "
    .. "n_results=2)).1 where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "right(bottom(x))"),
    reason = "right(bottom(x)) = bottom(right(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_relu_left: nn.relu(split(?x:static, indices_or_sections=2, "
    .. "axis=1).0) => (split(nn.relu(?x), indices_or_sections=2, axis=1, n_results=2)).0 "
    .. "where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "relu(left(x))"),
    reason = "relu(left(x)) = left(relu(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_relu: split(nn.relu(?x:static), indices_or_sections=2, "
    .. "axis=1).0 => nn.relu((split(?x, indices_or_sections=2, axis=1, n_results=2)).0) "
    .. "where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "left(relu(x))"),
    reason = "left(relu(x)) = relu(left(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_left: split(split(?x:static, indices_or_sections=2, axis=1).0, "
    .. "indices_or_sections=2, axis=0).0 => (split((split(?x, indices_or_sections=2, "
    .. "axis=0, n_results=2)).0, indices_or_sections=2, axis=1, n_results=2)).0 where "
    .. "?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "top(left(x))"),
    reason = "top(left(x)) = left(top(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_top: split(split(?x:static, indices_or_sections=2, axis=0).0, "
    .. "indices_or_sections=2, axis=1).0 => (split((split(?x, indices_or_sections=2, "
    .. "axis=1, n_results=2)).0, indices_or_sections=2, axis=0, n_results=2)).0 where "
    .. "?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "left(top(x))"),
    reason = "left(top(x)) = top(left(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_relu_top: nn.relu(split(?x:static, indices_or_sections=2, "
    .. "axis=0).0) => (split(nn.relu(?x), indices_or_sections=2, axis=0, n_results=2)).0 "
    .. "where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "relu(top(x))"),
    reason = "relu(top(x)) = top(relu(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_relu: split(nn.relu(?x:static), indices_or_sections=2, "
    .. "axis=0).0 => nn.relu((split(?x, indices_or_sections=2, axis=0, n_results=2)).0) "
    .. "where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "top(relu(x))"),
    reason = "top(relu(x)) = relu(top(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_right: split(split(?x:static, indices_or_sections=2, axis=1).1, "
    .. "indices_or_sections=2, axis=0).0 => (split((split(?x, indices_or_sections=2, "
    .. "axis=0, n_results=2)).0, indices_or_sections=2, axis=1, n_results=2)).1 where "
    .. "?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "top(right(x))"),
    reason = "top(right(x)) = right(top(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_top: split(split(?x:static, indices_or_sections=2, axis=0).0, "
    .. "indices_or_sections=2, axis=1).1 => (split((split(?x, indices_or_sections=2, "
    .. "axis=1, n_results=2)).1, indices_or_sections=2, axis=0, n_results=2)).0 where "
    .. "?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "right(top(x))"),
    reason = "right(top(x)) = top(right(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_add_3: nn.dense(?x:static, add(?w:static, ?v:static)) => "
    .. "add(nn.dense(?x, ?w), nn.dense(?x, ?v)) where ?x.dtype == float32 and ?x.rank == 2 "
    .. "and ?w.rank == 2 and ?v.rank == 2 and ?w.shape == ?v.shape",
    example = example("dense", "dense(x, add(w, v))"),
    reason = "dense(x, add(w, v)) = add(dense(x, w), dense(x, v))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_add_dense_dense: add(?p1@nn.dense(?x:static, ?w:static), "
    .. "?p2@nn.dense(?x:static, ?v:static)) => nn.dense(?x, add(?w, ?v)) where ?x.dtype == "
    .. "float32 and ?x.rank == 2 and ?w.rank == 2 and ?v.rank == 2 and ?p1.shape == "
    .. "?p2.shape",
    example = example("dense", "add(dense(x, w), dense(x, v))"),
    reason = "add(dense(x, w), dense(x, v)) = dense(x, add(w, v))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_add_4: nn.dense(add(?x:static, ?y:static), ?w:static) => "
    .. "add(nn.dense(?x, ?w), nn.dense(?y, ?w)) where ?x.dtype == float32 and ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?w.rank == 2 and ?x.shape == ?y.shape",
    example = example("dense", "dense(add(x, y), w)"),
    reason = "dense(add(x, y), w) = add(dense(x, w), dense(y, w))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_add_dense_dense_2: add(?p1@nn.dense(?x:static, ?w:static), "
    .. "?p2@nn.dense(?y:static, ?w:static)) => nn.dense(add(?x, ?y), ?w) where ?x.dtype == "
    .. "float32 and ?x.rank == 2 and ?w.rank == 2 and ?y.rank == 2 and ?p1.shape == "
    .. "?p2.shape",
    example = example("dense", "add(dense(x, w), dense(y, w))"),
    reason = "add(dense(x, w), dense(y, w)) = dense(add(x, y), w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_add: multiply(add(?x:static, ?y:static), ?c) => "
    .. "add(multiply(?x, ?c), multiply(?y, ?c)) where ?x.dtype == float32 and ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?c.rank == 0 and ?x.shape == ?y.shape",
    example = example("dense", "scale(add(x, y), c)"),
    reason = "scale(add(x, y), c) = add(scale(x, c), scale(y, c))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_add_scale_scale: add(?p1@multiply(?x:static, ?c), "
    .. "?p2@multiply(?y:static, ?c)) => multiply(add(?x, ?y), ?c) where ?x.dtype == float32 "
    .. "and ?x.rank == 2 and ?c.rank == 0 and ?y.rank == 2 and ?p1.shape == ?p2.shape",
    example = example("dense", "add(scale(x, c), scale(y, c))"),
    reason = "add(scale(x, c), scale(y, c)) = scale(add(x, y), c)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_concat_outputs: nn.dense(?x:static, concatenate(?w:static, "
    .. "?v:static, axis=0)) => concatenate(nn.dense(?x, ?w), nn.dense(?x, ?v), axis=1) "
    .. "where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == 2 and ?v.rank == 2",
    example = example("dense", "dense(x, concat_outputs(w, v))"),
    reason = "dense(x, concat_outputs(w, v)) = concat_columns(dense(x, w), dense(x, v))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_columns_dense_dense: concatenate(nn.dense(?x:static, "
    .. "?w:static), nn.dense(?x:static, ?v:static), axis=1) => nn.dense(?x, concatenate(?w, "
    .. "?v, axis=0)) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == 2 and "
    .. "?v.rank == 2",
    example = example("dense", "concat_columns(dense(x, w), dense(x, v))"),
    reason = "concat_columns(dense(x, w), dense(x, v)) = dense(x, concat_outputs(w, v))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_concat_columns: multiply(concatenate(?x:static, ?y:static, "
    .. "axis=1), ?c) => concatenate(multiply(?x, ?c), multiply(?y, ?c), axis=1) where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and ?c.rank == 0",
    example = example("dense", "scale(concat_columns(x, y), c)"),
    reason = "scale(concat_columns(x, y), c) = concat_columns(scale(x, c), scale(y, c))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_columns_scale_scale: concatenate(multiply(?x:static, ?c), "
    .. "multiply(?y:static, ?c), axis=1) => multiply(concatenate(?x, ?y, axis=1), ?c) where "
    .. "?x.dtype == float32 and ?x.rank == 2 and ?c.rank == 0 and ?y.rank == 2",
    example = example("dense", "concat_columns(scale(x, c), scale(y, c))"),
    reason = "concat_columns(scale(x, c), scale(y, c)) = scale(concat_columns(x, y), c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_scale_concat_outputs: multiply(concatenate(?w:static, ?v:static, "
    .. "axis=0), ?c) => concatenate(multiply(?w, ?c), multiply(?v, ?c), axis=0) where "
    .. "?w.dtype == float32 and ?w.rank == 2 and ?v.rank == 2 and ?c.rank == 0",
    example = example("dense", "scale(concat_outputs(w, v), c)"),
    reason = "scale(concat_outputs(w, v), c) = concat_outputs(scale(w, c), scale(v, c))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_outputs_scale_scale: concatenate(multiply(?w:static, ?c), "
    .. "multiply(?v:static, ?c), axis=0) => multiply(concatenate(?w, ?v, axis=0), ?c) where "
    .. "?w.dtype == float32 and ?w.rank == 2 and ?c.rank == 0 and ?v.rank == 2",
    example = example("dense", "concat_outputs(scale(w, c), scale(v, c))"),
    reason = "concat_outputs(scale(w, c), scale(v, c)) = scale(concat_outputs(w, v), c)",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_concat_rows: nn.dense(concatenate(?x:static, ?y:static, "
    .. "axis=0), ?w:static) => concatenate(nn.dense(?x, ?w), nn.dense(?y, ?w), axis=0) "
    .. "where ?x.dtype == float32 and ?x.rank == 2 and ?y.rank == 2 and ?w.rank == 2",
    example = example("dense", "dense(concat_rows(x, y), w)"),
    reason = "dense(concat_rows(x, y), w) = concat_rows(dense(x, w), dense(y, w))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_rows_dense_dense: concatenate(nn.dense(?x:static, "
    .. "?w:static), nn.dense(?y:static, ?w:static), axis=0) => nn.dense(concatenate(?x, ?y, "
    .. "axis=0), ?w) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == 2 and "
    .. "?y.rank == 2",
    example = example("dense", "concat_rows(dense(x, w), dense(y, w))"),
    reason = "concat_rows(dense(x, w), dense(y, w)) = dense(concat_rows(x, y), w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_add_5: nn.dense(?x:static, add(?w:static, ?v:static)) => "
    .. "nn.dense(concatenate(?x, ?x, axis=1), concatenate(?w, ?v, axis=1)) where ?x.dtype "
    .. "== float32 and ?x.rank == 2 and ?w.rank == 2 and ?v.rank == 2 and ?w.shape == "
    .. "?v.shape",
    example = example("dense", "dense(x, add(w, v))"),
    reason = "dense(x, add(w, v)) = dense(concat_columns(x, x), concat_inputs(w, v))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_concat_columns_concat_inputs: nn.dense(concatenate(?x:static, "
    .. "?x:static, axis=1), concatenate(?w:static, ?v:static, axis=1)) => nn.dense(?x, "
    .. "add(?w, ?v)) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank == 2 and "
    .. "?v.rank == 2",
    example = example("dense", "dense(concat_columns(x, x), concat_inputs(w, v))"),
    reason = "dense(concat_columns(x, x), concat_inputs(w, v)) = dense(x, add(w, v))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_add_6: nn.dense(add(?x:static, ?y:static), ?w:static) => "
    .. "nn.dense(concatenate(?x, ?y, axis=1), concatenate(?w, ?w, axis=1)) where ?x.dtype "
    .. "== float32 and ?x.rank == 2 and ?y.rank == 2 and ?w.rank == 2 and ?x.shape == "
    .. "?y.shape",
    example = example("dense", "dense(add(x, y), w)"),
    reason = "dense(add(x, y), w) = dense(concat_columns(x, y), concat_inputs(w, w))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_concat_columns_concat_inputs_2: "
    .. "nn.dense(concatenate(?x:static, ?y:static, axis=1), concatenate(?w:static, "
    .. "?w:static, axis=1)) => nn.dense(add(?x, ?y), ?w) where ?x.dtype == float32 and "
    .. "?x.rank == 2 and ?y.rank == 2 and ?w.rank == 2",
    example = example("dense", "dense(concat_columns(x, y), concat_inputs(w, w))"),
    reason = "dense(concat_columns(x, y), concat_inputs(w, w)) = dense(add(x, y), w)",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_bottom_add: split(add(?x:static, ?y:static), indices_or_sections=2, "
    .. "axis=0).1 => add((split(?x, indices_or_sections=2, axis=0, n_results=2)).1, "
    .. "(split(?y, indices_or_sections=2, axis=0, n_results=2)).1) where ?x.dtype == "
    .. "float32 and ?x.rank == 2 and ?y.rank == 2 and ?x.shape == ?y.shape",
    example = example("dense", "bottom(add(x, y))"),
    reason = "bottom(add(x, y)) = add(bottom(x), bottom(y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_add_bottom_bottom: add(?p1@split(?x:static, indices_or_sections=2, "
    .. "axis=0).1, ?p2@split(?y:static, indices_or_sections=2, axis=0).1) => (split(add(?x, "
    .. "?y), indices_or_sections=2, axis=0, n_results=2)).1 where ?x.dtype == float32 and "
    .. "?x.rank == 2 and ?y.rank == 2 and ?p1.shape == ?p2.shape",
    example = example("dense", "add(bottom(x), bottom(y))"),
    reason = "add(bottom(x), bottom(y)) = bottom(add(x, y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_left_add: split(add(?x:static, ?y:static), indices_or_sections=2, "
    .. "axis=1).0 => add((split(?x, indices_or_sections=2, axis=1, n_results=2)).0, "
    .. "(split(?y, indices_or_sections=2, axis=1, n_results=2)).0) where ?x.dtype == "
    .. "float32 and ?x.rank == 2 and ?y.rank == 2 and ?x.shape == ?y.shape",
    example = example("dense", "left(add(x, y))"),
    reason = "left(add(x, y)) = add(left(x), left(y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_add_left_left: add(?p1@split(?x:static, indices_or_sections=2, "
    .. "axis=1).0, ?p2@split(?y:static, indices_or_sections=2, axis=1).0) => (split(add(?x, "
    .. "?y), indices_or_sections=2, axis=1, n_results=2)).0 where ?x.dtype == float32 and "
    .. "?x.rank == 2 and ?y.rank == 2 and ?p1.shape == ?p2.shape",
    example = example("dense", "add(left(x), left(y))"),
    reason = "add(left(x), left(y)) = left(add(x, y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_right_add: split(add(?x:static, ?y:static), indices_or_sections=2, "
    .. "axis=1).1 => add((split(?x, indices_or_sections=2, axis=1, n_results=2)).1, "
    .. "(split(?y, indices_or_sections=2, axis=1, n_results=2)).1) where ?x.dtype == "
    .. "float32 and ?x.rank == 2 and ?y.rank == 2 and ?x.shape == ?y.shape",
    example = example("dense", "right(add(x, y))"),
    reason = "right(add(x, y)) = add(right(x), right(y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_add_right_right: add(?p1@split(?x:static, indices_or_sections=2, "
    .. "axis=1).1, ?p2@split(?y:static, indices_or_sections=2, axis=1).1) => (split(add(?x, "
    .. "?y), indices_or_sections=2, axis=1, n_results=2)).1 where ?x.dtype == float32 and "
    .. "?x.rank == 2 and ?y.rank == 2 and ?p1.shape == ?p2.shape",
    example = example("dense", "add(right(x), right(y))"),
    reason = "add(right(x), right(y)) = right(add(x, y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_top_add: split(add(?x:static, ?y:static), indices_or_sections=2, "
    .. "axis=0).0 => add((split(?x, indices_or_sections=2, axis=0, n_results=2)).0, "
    .. "(split(?y, indices_or_sections=2, axis=0, n_results=2)).0) where ?x.dtype == "
    .. "float32 and ?x.rank == 2 and ?y.rank == 2 and ?x.shape == ?y.shape",
    example = example("dense", "top(add(x, y))"),
    reason = "top(add(x, y)) = add(top(x), top(y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_add_top_top: add(?p1@split(?x:static, indices_or_sections=2, "
    .. "axis=0).0, ?p2@split(?y:static, indices_or_sections=2, axis=0).0) => (split(add(?x, "
    .. "?y), indices_or_sections=2, axis=0, n_results=2)).0 where ?x.dtype == float32 and "
    .. "?x.rank == 2 and ?y.rank == 2 and ?p1.shape == ?p2.shape",
    example = example("dense", "add(top(x), top(y))"),
    reason = "add(top(x), top(y)) = top(add(x, y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_relu_concat_columns: nn.relu(concatenate(?x:static, ?y:static, "
    .. "axis=1)) => concatenate(nn.relu(?x), nn.relu(?y), axis=1) where ?x.dtype == float32 "
    .. "and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "relu(concat_columns(x, y))"),
    reason = "relu(concat_columns(x, y)) = concat_columns(relu(x), relu(y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_columns_relu_relu: concatenate(nn.relu(?x:static), "
    .. "nn.relu(?y:static), axis=1) => nn.relu(concatenate(?x, ?y, axis=1)) where ?x.dtype "
    .. "== float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "concat_columns(relu(x), relu(y))"),
    reason = "concat_columns(relu(x), relu(y)) = relu(concat_columns(x, y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_relu_concat_rows: nn.relu(concatenate(?x:static, ?y:static, "
    .. "axis=0)) => concatenate(nn.relu(?x), nn.relu(?y), axis=0) where ?x.dtype == float32 "
    .. "and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "relu(concat_rows(x, y))"),
    reason = "relu(concat_rows(x, y)) = concat_rows(relu(x), relu(y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_concat_rows_relu_relu: concatenate(nn.relu(?x:static), "
    .. "nn.relu(?y:static), axis=0) => nn.relu(concatenate(?x, ?y, axis=0)) where ?x.dtype "
    .. "== float32 and ?x.rank == 2 and ?y.rank == 2",
    example = example("dense", "concat_rows(relu(x), relu(y))"),
    reason = "concat_rows(relu(x), relu(y)) = relu(concat_rows(x, y))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_relu_add: nn.relu(add(?x:static, ?x:static)) => add(nn.relu(?x), "
    .. "nn.relu(?x)) where ?x.dtype == float32 and ?x.rank == 2",
    example = example("dense", "relu(add(x, x))"),
    reason = "relu(add(x, x)) = add(relu(x), relu(x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_add_relu_relu: add(?p1@nn.relu(?x:static), ?p2@nn.relu(?x:static)) "
    .. "=> nn.relu(add(?x, ?x)) where ?x.dtype == float32 and ?x.rank == 2 and ?p1.shape == "
    .. "?p2.shape",
    example = example("dense", "add(relu(x), relu(x))"),
    reason = "add(relu(x), relu(x)) = relu(add(x, x))",
    proof = "exact", source = "generated", grows = true, relay = true },
  { "generated_relay_add_dense_dense_3: add(?p1@nn.dense(?x:static, ?w:static), "
    .. "?p2@nn.dense(?y:static, ?v:static)) => nn.dense(concatenate(?x, ?y, axis=1), "
    .. "concatenate(?w, ?v, axis=1)) where ?x.dtype == float32 and ?x.rank == 2 and ?w.rank "
    .. "== 2 and ?y.rank == 2 and ?v.rank == 2 and ?p1.shape == ?p2.shape",
    example = example("dense", "add(dense(x, w), dense(y, v))"),
    reason = "add(dense(x, w), dense(y, v)) = dense(concat_columns(x, y), concat_inputs(w, v))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
  { "generated_relay_dense_concat_columns_concat_inputs_3: "
    .. "nn.dense(concatenate(?x:static, ?y:static, axis=1), concatenate(?w:static, "
    .. "?v:static, axis=1)) => add(nn.dense(?x, ?w), nn.dense(?y, ?v)) where ?x.dtype == "
    .. "float32 and ?x.rank == 2 and ?y.rank == 2 and ?w.rank == 2 and ?v.rank == 2",
    example = example("dense", "dense(concat_columns(x, y), concat_inputs(w, v))"),
    reason = "dense(concat_columns(x, y), concat_inputs(w, v)) = add(dense(x, w), dense(y, v))",
    proof = "reassociates", source = "generated", grows = true, relay = true },
}
