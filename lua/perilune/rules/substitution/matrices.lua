--- Rules of graph substitution, as `perilune rules generate` wrote them: lua/perilune/rule/generate
-- says how they are found and proved. The reason is the equation; another run gives the same file.

return {
  { "generated_bottom_concat_rows: split(concatenate(?x:static, ?y:static, axis=0), "
    .. "split=?r, axis=0).1 => ?y where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "bottom(concat_rows(x, y)) = y", proof = "exact", source = "generated", grows = true },
  { "generated_left_concat_columns: split(concatenate(?x:static, ?y:static, axis=1), "
    .. "split=?s, axis=1).0 => ?x where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "left(concat_columns(x, y)) = x",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_concat_columns: split(concatenate(?x:static, ?y:static, axis=1), "
    .. "split=?s, axis=1).1 => ?y where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "right(concat_columns(x, y)) = y",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_concat_rows: split(concatenate(?x:static, ?y:static, axis=0), "
    .. "split=?r, axis=0).0 => ?x where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "top(concat_rows(x, y)) = x", proof = "exact", source = "generated", grows = true },
  { "generated_transpose_transpose: transpose(transpose(?x:static, axes=[1, 0]), "
    .. "axes=[1, 0]) => ?x where ?x.rank == 2",
    reason = "transpose(transpose(x)) = x", proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_left_right: concatenate(split(?x:static, split=?s, "
    .. "axis=1).0, split(?x:static, split=?s, axis=1).1, axis=1) => ?x where ?x.rank == 2 "
    .. "and len(?s) == 2",
    reason = "concat_columns(left(x), right(x)) = x",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_top_bottom: concatenate(split(?x:static, split=?r, axis=0).0, "
    .. "split(?x:static, split=?r, axis=0).1, axis=0) => ?x where ?x.rank == 2 and len(?r) "
    .. "== 2",
    reason = "concat_rows(top(x), bottom(x)) = x",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_multiply: nn.relu(multiply(?x:static, ?x:static)) => multiply(?x, "
    .. "?x) where ?x.rank == 2",
    reason = "relu(multiply(x, x)) = multiply(x, x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_relu: nn.relu(nn.relu(?x:static)) => nn.relu(?x) where ?x.rank == 2",
    reason = "relu(relu(x)) = relu(x)", proof = "exact", source = "generated", grows = true },
  { "generated_sum_columns_sum_columns: sum(sum(?x:static, axis=[1], keepdims=1), "
    .. "axis=[1], keepdims=1) => sum(?x, axis=[1], keepdims=1) where ?x.rank == 2",
    reason = "sum_columns(sum_columns(x)) = sum_columns(x)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_sum_rows: sum(sum(?x:static, axis=[0], keepdims=1), axis=[0], "
    .. "keepdims=1) => sum(?x, axis=[0], keepdims=1) where ?x.rank == 2",
    reason = "sum_rows(sum_rows(x)) = sum_rows(x)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_bottom_matmul_concat_rows: split(nn.matmul(concatenate(?x:static, "
    .. "?y:static, axis=0), ?z:static, transpose_a=0, transpose_b=0), split=?r, axis=0).1 "
    .. "=> nn.matmul(?y, ?z) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 and "
    .. "len(?r) == 2",
    reason = "bottom(matmul(concat_rows(x, y), z)) = matmul(y, z)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_concat_columns_concat_columns: concatenate(?x:static, "
    .. "concatenate(?y:static, ?z:static, axis=1), axis=1) => concatenate(concatenate(?x, "
    .. "?y, axis=1), ?z, axis=1) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2",
    reason = "concat_columns(x, concat_columns(y, z)) = concat_columns(concat_columns(x, y), z)",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_concat_columns_2: concatenate(concatenate(?x:static, "
    .. "?y:static, axis=1), ?z:static, axis=1) => concatenate(?x, concatenate(?y, ?z, "
    .. "axis=1), axis=1) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2",
    reason = "concat_columns(concat_columns(x, y), z) = concat_columns(x, concat_columns(y, z))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_concat_rows: concatenate(?x:static, concatenate(?y:static, "
    .. "?z:static, axis=0), axis=0) => concatenate(concatenate(?x, ?y, axis=0), ?z, axis=0) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2",
    reason = "concat_rows(x, concat_rows(y, z)) = concat_rows(concat_rows(x, y), z)",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_concat_rows_2: concatenate(concatenate(?x:static, ?y:static, "
    .. "axis=0), ?z:static, axis=0) => concatenate(?x, concatenate(?y, ?z, axis=0), axis=0) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2",
    reason = "concat_rows(concat_rows(x, y), z) = concat_rows(x, concat_rows(y, z))",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_matmul_concat_columns: split(nn.matmul(?x:static, "
    .. "concatenate(?y:static, ?z:static, axis=1), transpose_a=0, transpose_b=0), split=?s, "
    .. "axis=1).0 => nn.matmul(?x, ?y) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 "
    .. "and len(?s) == 2",
    reason = "left(matmul(x, concat_columns(y, z))) = matmul(x, y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_right_matmul_concat_columns: split(nn.matmul(?x:static, "
    .. "concatenate(?y:static, ?z:static, axis=1), transpose_a=0, transpose_b=0), split=?s, "
    .. "axis=1).1 => nn.matmul(?x, ?z) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 "
    .. "and len(?s) == 2",
    reason = "right(matmul(x, concat_columns(y, z))) = matmul(x, z)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_top_matmul_concat_rows: split(nn.matmul(concatenate(?x:static, ?y:static, "
    .. "axis=0), ?z:static, transpose_a=0, transpose_b=0), split=?r, axis=0).0 => "
    .. "nn.matmul(?x, ?z) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 and len(?r) "
    .. "== 2",
    reason = "top(matmul(concat_rows(x, y), z)) = matmul(x, z)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_matmul: nn.matmul(?x:static, nn.matmul(?y:static, ?z:static, "
    .. "transpose_a=0, transpose_b=0), transpose_a=0, transpose_b=0) => "
    .. "nn.matmul(nn.matmul(?x, ?y), ?z) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == "
    .. "2",
    reason = "matmul(x, matmul(y, z)) = matmul(matmul(x, y), z)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_matmul_2: nn.matmul(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), ?z:static, transpose_a=0, transpose_b=0) => nn.matmul(?x, "
    .. "nn.matmul(?y, ?z)) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2",
    reason = "matmul(matmul(x, y), z) = matmul(x, matmul(y, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_scale_matmul: multiply(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), ?c) => nn.matmul(?x, multiply(?y, ?c)) where ?x.rank == 2 and "
    .. "?y.rank == 2 and ?c.rank == 0",
    reason = "scale(matmul(x, y), c) = matmul(x, scale(y, c))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_scale: nn.matmul(?x:static, multiply(?y:static, ?c), "
    .. "transpose_a=0, transpose_b=0) => multiply(nn.matmul(?x, ?y), ?c) where ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?c.rank == 0",
    reason = "matmul(x, scale(y, c)) = scale(matmul(x, y), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_scale_matmul_2: multiply(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), ?c) => nn.matmul(multiply(?x, ?c), ?y) where ?x.rank == 2 and "
    .. "?y.rank == 2 and ?c.rank == 0",
    reason = "scale(matmul(x, y), c) = matmul(scale(x, c), y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_scale_2: nn.matmul(multiply(?x:static, ?c), ?y:static, "
    .. "transpose_a=0, transpose_b=0) => multiply(nn.matmul(?x, ?y), ?c) where ?x.rank == 2 "
    .. "and ?c.rank == 0 and ?y.rank == 2",
    reason = "matmul(scale(x, c), y) = scale(matmul(x, y), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_scale_multiply: multiply(multiply(?x:static, ?y:static), ?c) => "
    .. "multiply(?x, multiply(?y, ?c)) where ?x.rank == 2 and ?y.rank == 2 and ?c.rank == 0 "
    .. "and ?x.shape == ?y.shape",
    reason = "scale(multiply(x, y), c) = multiply(x, scale(y, c))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_multiply_scale: multiply(?x:static, ?p1@multiply(?y:static, ?c)) => "
    .. "multiply(multiply(?x, ?y), ?c) where ?x.rank == 2 and ?y.rank == 2 and ?c.rank == 0 "
    .. "and ?x.shape == ?p1.shape",
    reason = "multiply(x, scale(y, c)) = scale(multiply(x, y), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_right_scale_concat_columns: split(multiply(concatenate(?x:static, "
    .. "?y:static, axis=1), ?c), split=?s, axis=1).1 => multiply(?y, ?c) where ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?c.rank == 0 and len(?s) == 2",
    reason = "right(scale(concat_columns(x, y), c)) = scale(y, c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_left_bottom_concat_columns: split(split(concatenate(?x:static, ?y:static, "
    .. "axis=1), split=?r, axis=0).1, split=?s, axis=1).0 => (split(?x, constant(?r), "
    .. "axis=0, n_results=2)).1 where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2 and "
    .. "len(?s) == 2",
    reason = "left(bottom(concat_columns(x, y))) = bottom(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_bottom_concat_columns: split(split(concatenate(?x:static, "
    .. "?y:static, axis=1), split=?r, axis=0).1, split=?s, axis=1).1 => (split(?y, "
    .. "constant(?r), axis=0, n_results=2)).1 where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?r) == 2 and len(?s) == 2",
    reason = "right(bottom(concat_columns(x, y))) = bottom(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_left_concat_rows: split(split(concatenate(?x:static, ?y:static, "
    .. "axis=0), split=?s, axis=1).0, split=?r, axis=0).1 => (split(?y, constant(?s), "
    .. "axis=1, n_results=2)).0 where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2 and "
    .. "len(?s) == 2",
    reason = "bottom(left(concat_rows(x, y))) = left(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_matmul: split(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), split=?r, axis=0).1 => nn.matmul((split(?x, constant(?r), axis=0, "
    .. "n_results=2)).1, ?y) where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "bottom(matmul(x, y)) = matmul(bottom(x), y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_bottom: nn.matmul(split(?x:static, split=?r, axis=0).1, ?y:static, "
    .. "transpose_a=0, transpose_b=0) => (split(nn.matmul(?x, ?y), constant(?r), axis=0, "
    .. "n_results=2)).1 where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "matmul(bottom(x), y) = bottom(matmul(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_bottom_relu_concat_rows: split(nn.relu(concatenate(?x:static, ?y:static, "
    .. "axis=0)), split=?r, axis=0).1 => nn.relu(?y) where ?x.rank == 2 and ?y.rank == 2 "
    .. "and len(?r) == 2",
    reason = "bottom(relu(concat_rows(x, y))) = relu(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_right_concat_rows: split(split(concatenate(?x:static, ?y:static, "
    .. "axis=0), split=?s, axis=1).1, split=?r, axis=0).1 => (split(?y, constant(?s), "
    .. "axis=1, n_results=2)).1 where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2 and "
    .. "len(?s) == 2",
    reason = "bottom(right(concat_rows(x, y))) = right(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_scale: split(multiply(?x:static, ?c), split=?r, axis=0).1 => "
    .. "multiply((split(?x, constant(?r), axis=0, n_results=2)).1, ?c) where ?x.rank == 2 "
    .. "and ?c.rank == 0 and len(?r) == 2",
    reason = "bottom(scale(x, c)) = scale(bottom(x), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_scale_bottom: multiply(split(?x:static, split=?r, axis=0).1, ?c) => "
    .. "(split(multiply(?x, ?c), constant(?r), axis=0, n_results=2)).1 where ?x.rank == 2 "
    .. "and ?c.rank == 0 and len(?r) == 2",
    reason = "scale(bottom(x), c) = bottom(scale(x, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_sum_columns_concat_rows: split(sum(concatenate(?x:static, "
    .. "?y:static, axis=0), axis=[1], keepdims=1), split=?r, axis=0).1 => sum(?y, axis=[1], "
    .. "keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "bottom(sum_columns(concat_rows(x, y))) = sum_columns(y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_bottom_tanh_concat_rows: split(tanh(concatenate(?x:static, ?y:static, "
    .. "axis=0)), split=?r, axis=0).1 => tanh(?y) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?r) == 2",
    reason = "bottom(tanh(concat_rows(x, y))) = tanh(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_transpose_concat_columns: split(transpose(concatenate(?x:static, "
    .. "?y:static, axis=1), axes=[1, 0]), split=?r, axis=0).1 => transpose(?y, axes=[1, 0]) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "bottom(transpose(concat_columns(x, y))) = transpose(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_left_concat_rows: split(split(concatenate(?x:static, ?y:static, "
    .. "axis=0), split=?s, axis=1).0, split=?r, axis=0).0 => (split(?x, constant(?s), "
    .. "axis=1, n_results=2)).0 where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2 and "
    .. "len(?s) == 2",
    reason = "top(left(concat_rows(x, y))) = left(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_matmul: split(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), split=?s, axis=1).0 => nn.matmul(?x, (split(?y, constant(?s), "
    .. "axis=1, n_results=2)).0) where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "left(matmul(x, y)) = matmul(x, left(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_left: nn.matmul(?x:static, split(?y:static, split=?s, axis=1).0, "
    .. "transpose_a=0, transpose_b=0) => (split(nn.matmul(?x, ?y), constant(?s), axis=1, "
    .. "n_results=2)).0 where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "matmul(x, left(y)) = left(matmul(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_left_relu_concat_columns: split(nn.relu(concatenate(?x:static, ?y:static, "
    .. "axis=1)), split=?s, axis=1).0 => nn.relu(?x) where ?x.rank == 2 and ?y.rank == 2 "
    .. "and len(?s) == 2",
    reason = "left(relu(concat_columns(x, y))) = relu(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_scale: split(multiply(?x:static, ?c), split=?s, axis=1).0 => "
    .. "multiply((split(?x, constant(?s), axis=1, n_results=2)).0, ?c) where ?x.rank == 2 "
    .. "and ?c.rank == 0 and len(?s) == 2",
    reason = "left(scale(x, c)) = scale(left(x), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_scale_left: multiply(split(?x:static, split=?s, axis=1).0, ?c) => "
    .. "(split(multiply(?x, ?c), constant(?s), axis=1, n_results=2)).0 where ?x.rank == 2 "
    .. "and ?c.rank == 0 and len(?s) == 2",
    reason = "scale(left(x), c) = left(scale(x, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_sum_rows_concat_columns: split(sum(concatenate(?x:static, ?y:static, "
    .. "axis=1), axis=[0], keepdims=1), split=?s, axis=1).0 => sum(?x, axis=[0], "
    .. "keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "left(sum_rows(concat_columns(x, y))) = sum_rows(x)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_left_tanh_concat_columns: split(tanh(concatenate(?x:static, ?y:static, "
    .. "axis=1)), split=?s, axis=1).0 => tanh(?x) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?s) == 2",
    reason = "left(tanh(concat_columns(x, y))) = tanh(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_top_concat_columns: split(split(concatenate(?x:static, ?y:static, "
    .. "axis=1), split=?r, axis=0).0, split=?s, axis=1).0 => (split(?x, constant(?r), "
    .. "axis=0, n_results=2)).0 where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2 and "
    .. "len(?s) == 2",
    reason = "left(top(concat_columns(x, y))) = top(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_transpose_concat_rows: split(transpose(concatenate(?x:static, "
    .. "?y:static, axis=0), axes=[1, 0]), split=?s, axis=1).0 => transpose(?x, axes=[1, 0]) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "left(transpose(concat_rows(x, y))) = transpose(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_matmul_add: nn.matmul(?x:static, add(?y:static, ?y:static), "
    .. "transpose_a=0, transpose_b=0) => nn.matmul(add(?x, ?x), ?y) where ?x.rank == 2 and "
    .. "?y.rank == 2",
    reason = "matmul(x, add(y, y)) = matmul(add(x, x), y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_add_2: nn.matmul(add(?x:static, ?x:static), ?y:static, "
    .. "transpose_a=0, transpose_b=0) => nn.matmul(?x, add(?y, ?y)) where ?x.rank == 2 and "
    .. "?y.rank == 2",
    reason = "matmul(add(x, x), y) = matmul(x, add(y, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_right_matmul: split(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), split=?s, axis=1).1 => nn.matmul(?x, (split(?y, constant(?s), "
    .. "axis=1, n_results=2)).1) where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "right(matmul(x, y)) = matmul(x, right(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_right: nn.matmul(?x:static, split(?y:static, split=?s, axis=1).1, "
    .. "transpose_a=0, transpose_b=0) => (split(nn.matmul(?x, ?y), constant(?s), axis=1, "
    .. "n_results=2)).1 where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "matmul(x, right(y)) = right(matmul(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_matmul: sum(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), axis=[1], keepdims=1) => nn.matmul(?x, sum(?y, axis=[1], "
    .. "keepdims=1)) where ?x.rank == 2 and ?y.rank == 2",
    reason = "sum_columns(matmul(x, y)) = matmul(x, sum_columns(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_sum_columns: nn.matmul(?x:static, sum(?y:static, axis=[1], "
    .. "keepdims=1), transpose_a=0, transpose_b=0) => sum(nn.matmul(?x, ?y), axis=[1], "
    .. "keepdims=1) where ?x.rank == 2 and ?y.rank == 2",
    reason = "matmul(x, sum_columns(y)) = sum_columns(matmul(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_matmul: sum(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), axis=[0], keepdims=1) => nn.matmul(sum(?x, axis=[0], keepdims=1), "
    .. "?y) where ?x.rank == 2 and ?y.rank == 2",
    reason = "sum_rows(matmul(x, y)) = matmul(sum_rows(x), y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_sum_rows: nn.matmul(sum(?x:static, axis=[0], keepdims=1), "
    .. "?y:static, transpose_a=0, transpose_b=0) => sum(nn.matmul(?x, ?y), axis=[0], "
    .. "keepdims=1) where ?x.rank == 2 and ?y.rank == 2",
    reason = "matmul(sum_rows(x), y) = sum_rows(matmul(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_top_matmul: split(nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), split=?r, axis=0).0 => nn.matmul((split(?x, constant(?r), axis=0, "
    .. "n_results=2)).0, ?y) where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "top(matmul(x, y)) = matmul(top(x), y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_top: nn.matmul(split(?x:static, split=?r, axis=0).0, ?y:static, "
    .. "transpose_a=0, transpose_b=0) => (split(nn.matmul(?x, ?y), constant(?r), axis=0, "
    .. "n_results=2)).0 where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "matmul(top(x), y) = top(matmul(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_right_relu_concat_columns: split(nn.relu(concatenate(?x:static, "
    .. "?y:static, axis=1)), split=?s, axis=1).1 => nn.relu(?y) where ?x.rank == 2 and "
    .. "?y.rank == 2 and len(?s) == 2",
    reason = "right(relu(concat_columns(x, y))) = relu(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_relu_concat_rows: split(nn.relu(concatenate(?x:static, ?y:static, "
    .. "axis=0)), split=?r, axis=0).0 => nn.relu(?x) where ?x.rank == 2 and ?y.rank == 2 "
    .. "and len(?r) == 2",
    reason = "top(relu(concat_rows(x, y))) = relu(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_right_concat_rows: split(split(concatenate(?x:static, ?y:static, "
    .. "axis=0), split=?s, axis=1).1, split=?r, axis=0).0 => (split(?x, constant(?s), "
    .. "axis=1, n_results=2)).1 where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2 and "
    .. "len(?s) == 2",
    reason = "top(right(concat_rows(x, y))) = right(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_scale: split(multiply(?x:static, ?c), split=?s, axis=1).1 => "
    .. "multiply((split(?x, constant(?s), axis=1, n_results=2)).1, ?c) where ?x.rank == 2 "
    .. "and ?c.rank == 0 and len(?s) == 2",
    reason = "right(scale(x, c)) = scale(right(x), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_scale_right: multiply(split(?x:static, split=?s, axis=1).1, ?c) => "
    .. "(split(multiply(?x, ?c), constant(?s), axis=1, n_results=2)).1 where ?x.rank == 2 "
    .. "and ?c.rank == 0 and len(?s) == 2",
    reason = "scale(right(x), c) = right(scale(x, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_sum_rows_concat_columns: split(sum(concatenate(?x:static, "
    .. "?y:static, axis=1), axis=[0], keepdims=1), split=?s, axis=1).1 => sum(?y, axis=[0], "
    .. "keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "right(sum_rows(concat_columns(x, y))) = sum_rows(y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_right_tanh_concat_columns: split(tanh(concatenate(?x:static, ?y:static, "
    .. "axis=1)), split=?s, axis=1).1 => tanh(?y) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?s) == 2",
    reason = "right(tanh(concat_columns(x, y))) = tanh(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_transpose_concat_rows: split(transpose(concatenate(?x:static, "
    .. "?y:static, axis=0), axes=[1, 0]), split=?s, axis=1).1 => transpose(?y, axes=[1, 0]) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "right(transpose(concat_rows(x, y))) = transpose(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_sum_columns_scale: sum(multiply(?x:static, ?c), axis=[1], keepdims=1) => "
    .. "multiply(sum(?x, axis=[1], keepdims=1), ?c) where ?x.rank == 2 and ?c.rank == 0",
    reason = "sum_columns(scale(x, c)) = scale(sum_columns(x), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_scale_sum_columns: multiply(sum(?x:static, axis=[1], keepdims=1), ?c) => "
    .. "sum(multiply(?x, ?c), axis=[1], keepdims=1) where ?x.rank == 2 and ?c.rank == 0",
    reason = "scale(sum_columns(x), c) = sum_columns(scale(x, c))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_scale: sum(multiply(?x:static, ?c), axis=[0], keepdims=1) => "
    .. "multiply(sum(?x, axis=[0], keepdims=1), ?c) where ?x.rank == 2 and ?c.rank == 0",
    reason = "sum_rows(scale(x, c)) = scale(sum_rows(x), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_scale_sum_rows: multiply(sum(?x:static, axis=[0], keepdims=1), ?c) => "
    .. "sum(multiply(?x, ?c), axis=[0], keepdims=1) where ?x.rank == 2 and ?c.rank == 0",
    reason = "scale(sum_rows(x), c) = sum_rows(scale(x, c))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_top_scale: split(multiply(?x:static, ?c), split=?r, axis=0).0 => "
    .. "multiply((split(?x, constant(?r), axis=0, n_results=2)).0, ?c) where ?x.rank == 2 "
    .. "and ?c.rank == 0 and len(?r) == 2",
    reason = "top(scale(x, c)) = scale(top(x), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_scale_top: multiply(split(?x:static, split=?r, axis=0).0, ?c) => "
    .. "(split(multiply(?x, ?c), constant(?r), axis=0, n_results=2)).0 where ?x.rank == 2 "
    .. "and ?c.rank == 0 and len(?r) == 2",
    reason = "scale(top(x), c) = top(scale(x, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_transpose_scale: transpose(multiply(?x:static, ?c), axes=[1, 0]) => "
    .. "multiply(transpose(?x, axes=[1, 0]), ?c) where ?x.rank == 2 and ?c.rank == 0",
    reason = "transpose(scale(x, c)) = scale(transpose(x), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_scale_transpose: multiply(transpose(?x:static, axes=[1, 0]), ?c) => "
    .. "transpose(multiply(?x, ?c), axes=[1, 0]) where ?x.rank == 2 and ?c.rank == 0",
    reason = "scale(transpose(x), c) = transpose(scale(x, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_sum_columns_concat_rows: split(sum(concatenate(?x:static, ?y:static, "
    .. "axis=0), axis=[1], keepdims=1), split=?r, axis=0).0 => sum(?x, axis=[1], "
    .. "keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "top(sum_columns(concat_rows(x, y))) = sum_columns(x)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_add: sum(add(?x:static, ?y:static), axis=[1], keepdims=1) => "
    .. "sum(concatenate(?x, ?y, axis=1), axis=[1], keepdims=1) where ?x.rank == 2 and "
    .. "?y.rank == 2 and ?x.shape == ?y.shape",
    reason = "sum_columns(add(x, y)) = sum_columns(concat_columns(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_concat_columns: sum(concatenate(?x:static, ?y:static, "
    .. "axis=1), axis=[1], keepdims=1) => sum(add(?x, ?y), axis=[1], keepdims=1) where "
    .. "?x.rank == 2 and ?y.rank == 2 and ?x.shape == ?y.shape",
    reason = "sum_columns(concat_columns(x, y)) = sum_columns(add(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_add: sum(add(?x:static, ?y:static), axis=[0], keepdims=1) => "
    .. "sum(concatenate(?x, ?y, axis=0), axis=[0], keepdims=1) where ?x.rank == 2 and "
    .. "?y.rank == 2 and ?x.shape == ?y.shape",
    reason = "sum_rows(add(x, y)) = sum_rows(concat_rows(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_concat_rows: sum(concatenate(?x:static, ?y:static, axis=0), "
    .. "axis=[0], keepdims=1) => sum(add(?x, ?y), axis=[0], keepdims=1) where ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?x.shape == ?y.shape",
    reason = "sum_rows(concat_rows(x, y)) = sum_rows(add(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_top_tanh_concat_rows: split(tanh(concatenate(?x:static, ?y:static, "
    .. "axis=0)), split=?r, axis=0).0 => tanh(?x) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?r) == 2",
    reason = "top(tanh(concat_rows(x, y))) = tanh(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_transpose_concat_columns: split(transpose(concatenate(?x:static, "
    .. "?y:static, axis=1), axes=[1, 0]), split=?r, axis=0).0 => transpose(?x, axes=[1, 0]) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "top(transpose(concat_columns(x, y))) = transpose(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_left: split(split(?x:static, split=?s, axis=1).0, split=?r, "
    .. "axis=0).1 => (split((split(?x, constant(?r), axis=0, n_results=2)).1, constant(?s), "
    .. "axis=1, n_results=2)).0 where ?x.rank == 2 and len(?r) == 2 and len(?s) == 2",
    reason = "bottom(left(x)) = left(bottom(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_bottom: split(split(?x:static, split=?r, axis=0).1, split=?s, "
    .. "axis=1).0 => (split((split(?x, constant(?s), axis=1, n_results=2)).0, constant(?r), "
    .. "axis=0, n_results=2)).1 where ?x.rank == 2 and len(?r) == 2 and len(?s) == 2",
    reason = "left(bottom(x)) = bottom(left(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_bottom: nn.relu(split(?x:static, split=?r, axis=0).1) => "
    .. "(split(nn.relu(?x), constant(?r), axis=0, n_results=2)).1 where ?x.rank == 2 and "
    .. "len(?r) == 2",
    reason = "relu(bottom(x)) = bottom(relu(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_relu: split(nn.relu(?x:static), split=?r, axis=0).1 => "
    .. "nn.relu((split(?x, constant(?r), axis=0, n_results=2)).1) where ?x.rank == 2 and "
    .. "len(?r) == 2",
    reason = "bottom(relu(x)) = relu(bottom(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_right: split(split(?x:static, split=?s, axis=1).1, split=?r, "
    .. "axis=0).1 => (split((split(?x, constant(?r), axis=0, n_results=2)).1, constant(?s), "
    .. "axis=1, n_results=2)).1 where ?x.rank == 2 and len(?r) == 2 and len(?s) == 2",
    reason = "bottom(right(x)) = right(bottom(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_bottom: split(split(?x:static, split=?r, axis=0).1, split=?s, "
    .. "axis=1).1 => (split((split(?x, constant(?s), axis=1, n_results=2)).1, constant(?r), "
    .. "axis=0, n_results=2)).1 where ?x.rank == 2 and len(?r) == 2 and len(?s) == 2",
    reason = "right(bottom(x)) = bottom(right(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_tanh_bottom: tanh(split(?x:static, split=?r, axis=0).1) => "
    .. "(split(tanh(?x), constant(?r), axis=0, n_results=2)).1 where ?x.rank == 2 and "
    .. "len(?r) == 2",
    reason = "tanh(bottom(x)) = bottom(tanh(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_tanh: split(tanh(?x:static), split=?r, axis=0).1 => "
    .. "tanh((split(?x, constant(?r), axis=0, n_results=2)).1) where ?x.rank == 2 and "
    .. "len(?r) == 2",
    reason = "bottom(tanh(x)) = tanh(bottom(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_transpose_right: transpose(split(?x:static, split=?s, axis=1).1, axes=[1, "
    .. "0]) => (split(transpose(?x, axes=[1, 0]), constant(?s), axis=0, n_results=2)).1 "
    .. "where ?x.rank == 2 and len(?s) == 2",
    reason = "transpose(right(x)) = bottom(transpose(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_transpose: split(transpose(?x:static, axes=[1, 0]), split=?r, "
    .. "axis=0).1 => transpose((split(?x, constant(?r), axis=1, n_results=2)).1, axes=[1, "
    .. "0]) where ?x.rank == 2 and len(?r) == 2",
    reason = "bottom(transpose(x)) = transpose(right(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_left: nn.relu(split(?x:static, split=?s, axis=1).0) => "
    .. "(split(nn.relu(?x), constant(?s), axis=1, n_results=2)).0 where ?x.rank == 2 and "
    .. "len(?s) == 2",
    reason = "relu(left(x)) = left(relu(x))", proof = "exact", source = "generated", grows = true },
  { "generated_left_relu: split(nn.relu(?x:static), split=?s, axis=1).0 => "
    .. "nn.relu((split(?x, constant(?s), axis=1, n_results=2)).0) where ?x.rank == 2 and "
    .. "len(?s) == 2",
    reason = "left(relu(x)) = relu(left(x))", proof = "exact", source = "generated", grows = true },
  { "generated_sum_rows_left: sum(split(?x:static, split=?s, axis=1).0, axis=[0], "
    .. "keepdims=1) => (split(sum(?x, axis=[0], keepdims=1), constant(?s), axis=1, "
    .. "n_results=2)).0 where ?x.rank == 2 and len(?s) == 2",
    reason = "sum_rows(left(x)) = left(sum_rows(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_left_sum_rows: split(sum(?x:static, axis=[0], keepdims=1), split=?s, "
    .. "axis=1).0 => sum((split(?x, constant(?s), axis=1, n_results=2)).0, axis=[0], "
    .. "keepdims=1) where ?x.rank == 2 and len(?s) == 2",
    reason = "left(sum_rows(x)) = sum_rows(left(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_tanh_left: tanh(split(?x:static, split=?s, axis=1).0) => (split(tanh(?x), "
    .. "constant(?s), axis=1, n_results=2)).0 where ?x.rank == 2 and len(?s) == 2",
    reason = "tanh(left(x)) = left(tanh(x))", proof = "exact", source = "generated", grows = true },
  { "generated_left_tanh: split(tanh(?x:static), split=?s, axis=1).0 => tanh((split(?x, "
    .. "constant(?s), axis=1, n_results=2)).0) where ?x.rank == 2 and len(?s) == 2",
    reason = "left(tanh(x)) = tanh(left(x))", proof = "exact", source = "generated", grows = true },
  { "generated_top_left: split(split(?x:static, split=?s, axis=1).0, split=?r, axis=0).0 "
    .. "=> (split((split(?x, constant(?r), axis=0, n_results=2)).0, constant(?s), axis=1, "
    .. "n_results=2)).0 where ?x.rank == 2 and len(?r) == 2 and len(?s) == 2",
    reason = "top(left(x)) = left(top(x))", proof = "exact", source = "generated", grows = true },
  { "generated_left_top: split(split(?x:static, split=?r, axis=0).0, split=?s, axis=1).0 "
    .. "=> (split((split(?x, constant(?s), axis=1, n_results=2)).0, constant(?r), axis=0, "
    .. "n_results=2)).0 where ?x.rank == 2 and len(?r) == 2 and len(?s) == 2",
    reason = "left(top(x)) = top(left(x))", proof = "exact", source = "generated", grows = true },
  { "generated_transpose_top: transpose(split(?x:static, split=?r, axis=0).0, axes=[1, "
    .. "0]) => (split(transpose(?x, axes=[1, 0]), constant(?r), axis=1, n_results=2)).0 "
    .. "where ?x.rank == 2 and len(?r) == 2",
    reason = "transpose(top(x)) = left(transpose(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_transpose: split(transpose(?x:static, axes=[1, 0]), split=?s, "
    .. "axis=1).0 => transpose((split(?x, constant(?s), axis=0, n_results=2)).0, axes=[1, "
    .. "0]) where ?x.rank == 2 and len(?s) == 2",
    reason = "left(transpose(x)) = transpose(top(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_right: nn.relu(split(?x:static, split=?s, axis=1).1) => "
    .. "(split(nn.relu(?x), constant(?s), axis=1, n_results=2)).1 where ?x.rank == 2 and "
    .. "len(?s) == 2",
    reason = "relu(right(x)) = right(relu(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_relu: split(nn.relu(?x:static), split=?s, axis=1).1 => "
    .. "nn.relu((split(?x, constant(?s), axis=1, n_results=2)).1) where ?x.rank == 2 and "
    .. "len(?s) == 2",
    reason = "right(relu(x)) = relu(right(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_top: nn.relu(split(?x:static, split=?r, axis=0).0) => "
    .. "(split(nn.relu(?x), constant(?r), axis=0, n_results=2)).0 where ?x.rank == 2 and "
    .. "len(?r) == 2",
    reason = "relu(top(x)) = top(relu(x))", proof = "exact", source = "generated", grows = true },
  { "generated_top_relu: split(nn.relu(?x:static), split=?r, axis=0).0 => "
    .. "nn.relu((split(?x, constant(?r), axis=0, n_results=2)).0) where ?x.rank == 2 and "
    .. "len(?r) == 2",
    reason = "top(relu(x)) = relu(top(x))", proof = "exact", source = "generated", grows = true },
  { "generated_transpose_relu: transpose(nn.relu(?x:static), axes=[1, 0]) => "
    .. "nn.relu(transpose(?x, axes=[1, 0])) where ?x.rank == 2",
    reason = "transpose(relu(x)) = relu(transpose(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_transpose: nn.relu(transpose(?x:static, axes=[1, 0])) => "
    .. "transpose(nn.relu(?x), axes=[1, 0]) where ?x.rank == 2",
    reason = "relu(transpose(x)) = transpose(relu(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_sum_rows_right: sum(split(?x:static, split=?s, axis=1).1, axis=[0], "
    .. "keepdims=1) => (split(sum(?x, axis=[0], keepdims=1), constant(?s), axis=1, "
    .. "n_results=2)).1 where ?x.rank == 2 and len(?s) == 2",
    reason = "sum_rows(right(x)) = right(sum_rows(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_right_sum_rows: split(sum(?x:static, axis=[0], keepdims=1), split=?s, "
    .. "axis=1).1 => sum((split(?x, constant(?s), axis=1, n_results=2)).1, axis=[0], "
    .. "keepdims=1) where ?x.rank == 2 and len(?s) == 2",
    reason = "right(sum_rows(x)) = sum_rows(right(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_tanh_right: tanh(split(?x:static, split=?s, axis=1).1) => "
    .. "(split(tanh(?x), constant(?s), axis=1, n_results=2)).1 where ?x.rank == 2 and "
    .. "len(?s) == 2",
    reason = "tanh(right(x)) = right(tanh(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_tanh: split(tanh(?x:static), split=?s, axis=1).1 => tanh((split(?x, "
    .. "constant(?s), axis=1, n_results=2)).1) where ?x.rank == 2 and len(?s) == 2",
    reason = "right(tanh(x)) = tanh(right(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_right: split(split(?x:static, split=?s, axis=1).1, split=?r, "
    .. "axis=0).0 => (split((split(?x, constant(?r), axis=0, n_results=2)).0, constant(?s), "
    .. "axis=1, n_results=2)).1 where ?x.rank == 2 and len(?r) == 2 and len(?s) == 2",
    reason = "top(right(x)) = right(top(x))", proof = "exact", source = "generated", grows = true },
  { "generated_right_top: split(split(?x:static, split=?r, axis=0).0, split=?s, "
    .. "axis=1).1 => (split((split(?x, constant(?s), axis=1, n_results=2)).1, constant(?r), "
    .. "axis=0, n_results=2)).0 where ?x.rank == 2 and len(?r) == 2 and len(?s) == 2",
    reason = "right(top(x)) = top(right(x))", proof = "exact", source = "generated", grows = true },
  { "generated_transpose_bottom: transpose(split(?x:static, split=?r, axis=0).1, "
    .. "axes=[1, 0]) => (split(transpose(?x, axes=[1, 0]), constant(?r), axis=1, "
    .. "n_results=2)).1 where ?x.rank == 2 and len(?r) == 2",
    reason = "transpose(bottom(x)) = right(transpose(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_transpose: split(transpose(?x:static, axes=[1, 0]), split=?s, "
    .. "axis=1).1 => transpose((split(?x, constant(?s), axis=0, n_results=2)).1, axes=[1, "
    .. "0]) where ?x.rank == 2 and len(?s) == 2",
    reason = "right(transpose(x)) = transpose(bottom(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_sum_rows_sum_columns: sum(sum(?x:static, axis=[1], keepdims=1), axis=[0], "
    .. "keepdims=1) => sum(sum(?x, axis=[0], keepdims=1), axis=[1], keepdims=1) where "
    .. "?x.rank == 2",
    reason = "sum_rows(sum_columns(x)) = sum_columns(sum_rows(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_sum_rows: sum(sum(?x:static, axis=[0], keepdims=1), axis=[1], "
    .. "keepdims=1) => sum(sum(?x, axis=[1], keepdims=1), axis=[0], keepdims=1) where "
    .. "?x.rank == 2",
    reason = "sum_columns(sum_rows(x)) = sum_rows(sum_columns(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_transpose_sum_rows: transpose(sum(?x:static, axis=[0], keepdims=1), "
    .. "axes=[1, 0]) => sum(transpose(?x, axes=[1, 0]), axis=[1], keepdims=1) where ?x.rank "
    .. "== 2",
    reason = "transpose(sum_rows(x)) = sum_columns(transpose(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_transpose: sum(transpose(?x:static, axes=[1, 0]), axis=[1], "
    .. "keepdims=1) => transpose(sum(?x, axis=[0], keepdims=1), axes=[1, 0]) where ?x.rank "
    .. "== 2",
    reason = "sum_columns(transpose(x)) = transpose(sum_rows(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_transpose_sum_columns: transpose(sum(?x:static, axis=[1], keepdims=1), "
    .. "axes=[1, 0]) => sum(transpose(?x, axes=[1, 0]), axis=[0], keepdims=1) where ?x.rank "
    .. "== 2",
    reason = "transpose(sum_columns(x)) = sum_rows(transpose(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_transpose: sum(transpose(?x:static, axes=[1, 0]), axis=[0], "
    .. "keepdims=1) => transpose(sum(?x, axis=[1], keepdims=1), axes=[1, 0]) where ?x.rank "
    .. "== 2",
    reason = "sum_rows(transpose(x)) = transpose(sum_columns(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_tanh_top: tanh(split(?x:static, split=?r, axis=0).0) => (split(tanh(?x), "
    .. "constant(?r), axis=0, n_results=2)).0 where ?x.rank == 2 and len(?r) == 2",
    reason = "tanh(top(x)) = top(tanh(x))", proof = "exact", source = "generated", grows = true },
  { "generated_top_tanh: split(tanh(?x:static), split=?r, axis=0).0 => tanh((split(?x, "
    .. "constant(?r), axis=0, n_results=2)).0) where ?x.rank == 2 and len(?r) == 2",
    reason = "top(tanh(x)) = tanh(top(x))", proof = "exact", source = "generated", grows = true },
  { "generated_transpose_tanh: transpose(tanh(?x:static), axes=[1, 0]) => "
    .. "tanh(transpose(?x, axes=[1, 0])) where ?x.rank == 2",
    reason = "transpose(tanh(x)) = tanh(transpose(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_tanh_transpose: tanh(transpose(?x:static, axes=[1, 0])) => "
    .. "transpose(tanh(?x), axes=[1, 0]) where ?x.rank == 2",
    reason = "tanh(transpose(x)) = transpose(tanh(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_transpose_left: transpose(split(?x:static, split=?s, axis=1).0, axes=[1, "
    .. "0]) => (split(transpose(?x, axes=[1, 0]), constant(?s), axis=0, n_results=2)).0 "
    .. "where ?x.rank == 2 and len(?s) == 2",
    reason = "transpose(left(x)) = top(transpose(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_transpose: split(transpose(?x:static, axes=[1, 0]), split=?r, "
    .. "axis=0).0 => transpose((split(?x, constant(?r), axis=1, n_results=2)).0, axes=[1, "
    .. "0]) where ?x.rank == 2 and len(?r) == 2",
    reason = "top(transpose(x)) = transpose(left(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_matmul_add_3: nn.matmul(?x:static, add(?y:static, ?z:static), "
    .. "transpose_a=0, transpose_b=0) => add(nn.matmul(?x, ?y), nn.matmul(?x, ?z)) where "
    .. "?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 and ?y.shape == ?z.shape",
    reason = "matmul(x, add(y, z)) = add(matmul(x, y), matmul(x, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_add_matmul_matmul: add(?p1@nn.matmul(?x:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), ?p2@nn.matmul(?x:static, ?z:static, transpose_a=0, transpose_b=0)) "
    .. "=> nn.matmul(?x, add(?y, ?z)) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 "
    .. "and ?p1.shape == ?p2.shape",
    reason = "add(matmul(x, y), matmul(x, z)) = matmul(x, add(y, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_add_4: nn.matmul(add(?x:static, ?z:static), ?y:static, "
    .. "transpose_a=0, transpose_b=0) => add(nn.matmul(?x, ?y), nn.matmul(?z, ?y)) where "
    .. "?x.rank == 2 and ?z.rank == 2 and ?y.rank == 2 and ?x.shape == ?z.shape",
    reason = "matmul(add(x, z), y) = add(matmul(x, y), matmul(z, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_add_matmul_matmul_2: add(?p1@nn.matmul(?x:static, ?y:static, "
    .. "transpose_a=0, transpose_b=0), ?p2@nn.matmul(?z:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0)) => nn.matmul(add(?x, ?z), ?y) where ?x.rank == 2 and ?y.rank == 2 "
    .. "and ?z.rank == 2 and ?p1.shape == ?p2.shape",
    reason = "add(matmul(x, y), matmul(z, y)) = matmul(add(x, z), y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_multiply_add: multiply(?x:static, ?p1@add(?y:static, ?z:static)) => "
    .. "add(multiply(?x, ?y), multiply(?x, ?z)) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "?z.rank == 2 and ?y.shape == ?z.shape and ?x.shape == ?p1.shape",
    reason = "multiply(x, add(y, z)) = add(multiply(x, y), multiply(x, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_add_multiply_multiply: add(?p1@multiply(?x:static, ?y:static), "
    .. "?p2@multiply(?x:static, ?z:static)) => multiply(?x, add(?y, ?z)) where ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?z.rank == 2 and ?x.shape == ?y.shape and ?x.shape == ?z.shape "
    .. "and ?p1.shape == ?p2.shape",
    reason = "add(multiply(x, y), multiply(x, z)) = multiply(x, add(y, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_concat_columns: nn.matmul(?x:static, concatenate(?y:static, "
    .. "?z:static, axis=1), transpose_a=0, transpose_b=0) => concatenate(nn.matmul(?x, ?y), "
    .. "nn.matmul(?x, ?z), axis=1) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2",
    reason = "matmul(x, concat_columns(y, z)) = concat_columns(matmul(x, y), matmul(x, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_concat_columns_matmul_matmul: concatenate(nn.matmul(?x:static, ?y:static, "
    .. "transpose_a=0, transpose_b=0), nn.matmul(?x:static, ?z:static, transpose_a=0, "
    .. "transpose_b=0), axis=1) => nn.matmul(?x, concatenate(?y, ?z, axis=1)) where ?x.rank "
    .. "== 2 and ?y.rank == 2 and ?z.rank == 2",
    reason = "concat_columns(matmul(x, y), matmul(x, z)) = matmul(x, concat_columns(y, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_scale_concat_columns: multiply(concatenate(?x:static, ?y:static, axis=1), "
    .. "?c) => concatenate(multiply(?x, ?c), multiply(?y, ?c), axis=1) where ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?c.rank == 0",
    reason = "scale(concat_columns(x, y), c) = concat_columns(scale(x, c), scale(y, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_scale_scale: concatenate(multiply(?x:static, ?c), "
    .. "multiply(?y:static, ?c), axis=1) => multiply(concatenate(?x, ?y, axis=1), ?c) where "
    .. "?x.rank == 2 and ?c.rank == 0 and ?y.rank == 2",
    reason = "concat_columns(scale(x, c), scale(y, c)) = scale(concat_columns(x, y), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_matmul_concat_rows: nn.matmul(concatenate(?x:static, ?z:static, axis=0), "
    .. "?y:static, transpose_a=0, transpose_b=0) => concatenate(nn.matmul(?x, ?y), "
    .. "nn.matmul(?z, ?y), axis=0) where ?x.rank == 2 and ?z.rank == 2 and ?y.rank == 2",
    reason = "matmul(concat_rows(x, z), y) = concat_rows(matmul(x, y), matmul(z, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_concat_rows_matmul_matmul: concatenate(nn.matmul(?x:static, ?y:static, "
    .. "transpose_a=0, transpose_b=0), nn.matmul(?z:static, ?y:static, transpose_a=0, "
    .. "transpose_b=0), axis=0) => nn.matmul(concatenate(?x, ?z, axis=0), ?y) where ?x.rank "
    .. "== 2 and ?y.rank == 2 and ?z.rank == 2",
    reason = "concat_rows(matmul(x, y), matmul(z, y)) = matmul(concat_rows(x, z), y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_scale_concat_rows: multiply(concatenate(?x:static, ?y:static, axis=0), "
    .. "?c) => concatenate(multiply(?x, ?c), multiply(?y, ?c), axis=0) where ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?c.rank == 0",
    reason = "scale(concat_rows(x, y), c) = concat_rows(scale(x, c), scale(y, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_scale_scale: concatenate(multiply(?x:static, ?c), "
    .. "multiply(?y:static, ?c), axis=0) => multiply(concatenate(?x, ?y, axis=0), ?c) where "
    .. "?x.rank == 2 and ?c.rank == 0 and ?y.rank == 2",
    reason = "concat_rows(scale(x, c), scale(y, c)) = scale(concat_rows(x, y), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_matmul_add_5: nn.matmul(?x:static, add(?y:static, ?z:static), "
    .. "transpose_a=0, transpose_b=0) => nn.matmul(concatenate(?x, ?x, axis=1), "
    .. "concatenate(?y, ?z, axis=0)) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 "
    .. "and ?y.shape == ?z.shape",
    reason = "matmul(x, add(y, z)) = matmul(concat_columns(x, x), concat_rows(y, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_concat_columns_concat_rows: nn.matmul(concatenate(?x:static, "
    .. "?x:static, axis=1), concatenate(?y:static, ?z:static, axis=0), transpose_a=0, "
    .. "transpose_b=0) => nn.matmul(?x, add(?y, ?z)) where ?x.rank == 2 and ?y.rank == 2 "
    .. "and ?z.rank == 2",
    reason = "matmul(concat_columns(x, x), concat_rows(y, z)) = matmul(x, add(y, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_add_6: nn.matmul(add(?x:static, ?y:static), ?z:static, "
    .. "transpose_a=0, transpose_b=0) => nn.matmul(concatenate(?x, ?y, axis=1), "
    .. "concatenate(?z, ?z, axis=0)) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 "
    .. "and ?x.shape == ?y.shape",
    reason = "matmul(add(x, y), z) = matmul(concat_columns(x, y), concat_rows(z, z))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_concat_columns_concat_rows_2: nn.matmul(concatenate(?x:static, "
    .. "?y:static, axis=1), concatenate(?z:static, ?z:static, axis=0), transpose_a=0, "
    .. "transpose_b=0) => nn.matmul(add(?x, ?y), ?z) where ?x.rank == 2 and ?y.rank == 2 "
    .. "and ?z.rank == 2",
    reason = "matmul(concat_columns(x, y), concat_rows(z, z)) = matmul(add(x, y), z)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_transpose_add_transpose: transpose(add(?x:static, "
    .. "?p1@transpose(?y:static, axes=[1, 0])), axes=[1, 0]) => add(?y, transpose(?x, "
    .. "axes=[1, 0])) where ?x.rank == 2 and ?y.rank == 2 and ?x.shape == ?p1.shape",
    reason = "transpose(add(x, transpose(y))) = add(y, transpose(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_add: split(add(?x:static, ?y:static), split=?r, axis=0).1 => "
    .. "add((split(?x, constant(?r), axis=0, n_results=2)).1, (split(?y, constant(?r), "
    .. "axis=0, n_results=2)).1) where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2 and "
    .. "?x.shape == ?y.shape",
    reason = "bottom(add(x, y)) = add(bottom(x), bottom(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_add: split(add(?x:static, ?y:static), split=?s, axis=1).0 => "
    .. "add((split(?x, constant(?s), axis=1, n_results=2)).0, (split(?y, constant(?s), "
    .. "axis=1, n_results=2)).0) where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2 and "
    .. "?x.shape == ?y.shape",
    reason = "left(add(x, y)) = add(left(x), left(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_add_left_left: add(?p1@split(?x:static, split=?s, axis=1).0, "
    .. "?p2@split(?y:static, split=?s, axis=1).0) => (split(add(?x, ?y), constant(?s), "
    .. "axis=1, n_results=2)).0 where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2 and "
    .. "?p1.shape == ?p2.shape",
    reason = "add(left(x), left(y)) = left(add(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_add: split(add(?x:static, ?y:static), split=?s, axis=1).1 => "
    .. "add((split(?x, constant(?s), axis=1, n_results=2)).1, (split(?y, constant(?s), "
    .. "axis=1, n_results=2)).1) where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2 and "
    .. "?x.shape == ?y.shape",
    reason = "right(add(x, y)) = add(right(x), right(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_add_right_right: add(?p1@split(?x:static, split=?s, axis=1).1, "
    .. "?p2@split(?y:static, split=?s, axis=1).1) => (split(add(?x, ?y), constant(?s), "
    .. "axis=1, n_results=2)).1 where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2 and "
    .. "?p1.shape == ?p2.shape",
    reason = "add(right(x), right(y)) = right(add(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_add_2: sum(add(?x:static, ?y:static), axis=[1], keepdims=1) "
    .. "=> add(sum(?x, axis=[1], keepdims=1), sum(?y, axis=[1], keepdims=1)) where ?x.rank "
    .. "== 2 and ?y.rank == 2 and ?x.shape == ?y.shape",
    reason = "sum_columns(add(x, y)) = add(sum_columns(x), sum_columns(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_add_sum_columns_sum_columns: add(?p1@sum(?x:static, axis=[1], "
    .. "keepdims=1), ?p2@sum(?y:static, axis=[1], keepdims=1)) => sum(add(?x, ?y), "
    .. "axis=[1], keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and ?p1.shape == "
    .. "?p2.shape and ?x.shape == ?y.shape",
    reason = "add(sum_columns(x), sum_columns(y)) = sum_columns(add(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_add_2: sum(add(?x:static, ?y:static), axis=[0], keepdims=1) => "
    .. "add(sum(?x, axis=[0], keepdims=1), sum(?y, axis=[0], keepdims=1)) where ?x.rank == "
    .. "2 and ?y.rank == 2 and ?x.shape == ?y.shape",
    reason = "sum_rows(add(x, y)) = add(sum_rows(x), sum_rows(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_add_sum_rows_sum_rows: add(?p1@sum(?x:static, axis=[0], keepdims=1), "
    .. "?p2@sum(?y:static, axis=[0], keepdims=1)) => sum(add(?x, ?y), axis=[0], keepdims=1) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and ?p1.shape == ?p2.shape and ?x.shape == "
    .. "?y.shape",
    reason = "add(sum_rows(x), sum_rows(y)) = sum_rows(add(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_top_add: split(add(?x:static, ?y:static), split=?r, axis=0).0 => "
    .. "add((split(?x, constant(?r), axis=0, n_results=2)).0, (split(?y, constant(?r), "
    .. "axis=0, n_results=2)).0) where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2 and "
    .. "?x.shape == ?y.shape",
    reason = "top(add(x, y)) = add(top(x), top(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_concat_columns: split(concatenate(?x:static, ?y:static, axis=1), "
    .. "split=?r, axis=0).1 => concatenate((split(?x, constant(?r), axis=0, "
    .. "n_results=2)).1, (split(?y, constant(?r), axis=0, n_results=2)).1, axis=1) where "
    .. "?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "bottom(concat_columns(x, y)) = concat_columns(bottom(x), bottom(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_bottom_multiply: split(multiply(?x:static, ?y:static), split=?r, "
    .. "axis=0).1 => multiply((split(?x, constant(?r), axis=0, n_results=2)).1, (split(?y, "
    .. "constant(?r), axis=0, n_results=2)).1) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?r) == 2 and ?x.shape == ?y.shape",
    reason = "bottom(multiply(x, y)) = multiply(bottom(x), bottom(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_transpose: concatenate(?x:static, transpose(?y:static, "
    .. "axes=[1, 0]), axis=1) => transpose(concatenate(transpose(?x, axes=[1, 0]), ?y, "
    .. "axis=0), axes=[1, 0]) where ?x.rank == 2 and ?y.rank == 2",
    reason = "concat_columns(x, transpose(y)) = transpose(concat_rows(transpose(x), y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_transpose_concat_rows_transpose: "
    .. "transpose(concatenate(transpose(?x:static, axes=[1, 0]), ?y:static, axis=0), "
    .. "axes=[1, 0]) => concatenate(?x, transpose(?y, axes=[1, 0]), axis=1) where ?x.rank "
    .. "== 2 and ?y.rank == 2",
    reason = "transpose(concat_rows(transpose(x), y)) = concat_columns(x, transpose(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_concat_columns: nn.relu(concatenate(?x:static, ?y:static, axis=1)) "
    .. "=> concatenate(nn.relu(?x), nn.relu(?y), axis=1) where ?x.rank == 2 and ?y.rank == 2",
    reason = "relu(concat_columns(x, y)) = concat_columns(relu(x), relu(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_relu_relu: concatenate(nn.relu(?x:static), "
    .. "nn.relu(?y:static), axis=1) => nn.relu(concatenate(?x, ?y, axis=1)) where ?x.rank "
    .. "== 2 and ?y.rank == 2",
    reason = "concat_columns(relu(x), relu(y)) = relu(concat_columns(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_sum_rows_concat_columns: sum(concatenate(?x:static, ?y:static, axis=1), "
    .. "axis=[0], keepdims=1) => concatenate(sum(?x, axis=[0], keepdims=1), sum(?y, "
    .. "axis=[0], keepdims=1), axis=1) where ?x.rank == 2 and ?y.rank == 2",
    reason = "sum_rows(concat_columns(x, y)) = concat_columns(sum_rows(x), sum_rows(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_concat_columns_sum_rows_sum_rows: concatenate(sum(?x:static, axis=[0], "
    .. "keepdims=1), sum(?y:static, axis=[0], keepdims=1), axis=1) => sum(concatenate(?x, "
    .. "?y, axis=1), axis=[0], keepdims=1) where ?x.rank == 2 and ?y.rank == 2",
    reason = "concat_columns(sum_rows(x), sum_rows(y)) = sum_rows(concat_columns(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_tanh_concat_columns: tanh(concatenate(?x:static, ?y:static, axis=1)) => "
    .. "concatenate(tanh(?x), tanh(?y), axis=1) where ?x.rank == 2 and ?y.rank == 2",
    reason = "tanh(concat_columns(x, y)) = concat_columns(tanh(x), tanh(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_tanh_tanh: concatenate(tanh(?x:static), tanh(?y:static), "
    .. "axis=1) => tanh(concatenate(?x, ?y, axis=1)) where ?x.rank == 2 and ?y.rank == 2",
    reason = "concat_columns(tanh(x), tanh(y)) = tanh(concat_columns(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_top_concat_columns: split(concatenate(?x:static, ?y:static, axis=1), "
    .. "split=?r, axis=0).0 => concatenate((split(?x, constant(?r), axis=0, "
    .. "n_results=2)).0, (split(?y, constant(?r), axis=0, n_results=2)).0, axis=1) where "
    .. "?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "top(concat_columns(x, y)) = concat_columns(top(x), top(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_transpose_2: concatenate(transpose(?x:static, axes=[1, "
    .. "0]), ?y:static, axis=1) => transpose(concatenate(?x, transpose(?y, axes=[1, 0]), "
    .. "axis=0), axes=[1, 0]) where ?x.rank == 2 and ?y.rank == 2",
    reason = "concat_columns(transpose(x), y) = transpose(concat_rows(x, transpose(y)))",
    proof = "exact", source = "generated", grows = true },
  { "generated_transpose_concat_rows_transpose_2: transpose(concatenate(?x:static, "
    .. "transpose(?y:static, axes=[1, 0]), axis=0), axes=[1, 0]) => "
    .. "concatenate(transpose(?x, axes=[1, 0]), ?y, axis=1) where ?x.rank == 2 and ?y.rank "
    .. "== 2",
    reason = "transpose(concat_rows(x, transpose(y))) = concat_columns(transpose(x), y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_concat_rows: split(concatenate(?x:static, ?y:static, axis=0), "
    .. "split=?s, axis=1).0 => concatenate((split(?x, constant(?s), axis=1, "
    .. "n_results=2)).0, (split(?y, constant(?s), axis=1, n_results=2)).0, axis=0) where "
    .. "?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "left(concat_rows(x, y)) = concat_rows(left(x), left(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_concat_rows: nn.relu(concatenate(?x:static, ?y:static, axis=0)) => "
    .. "concatenate(nn.relu(?x), nn.relu(?y), axis=0) where ?x.rank == 2 and ?y.rank == 2",
    reason = "relu(concat_rows(x, y)) = concat_rows(relu(x), relu(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_relu_relu: concatenate(nn.relu(?x:static), "
    .. "nn.relu(?y:static), axis=0) => nn.relu(concatenate(?x, ?y, axis=0)) where ?x.rank "
    .. "== 2 and ?y.rank == 2",
    reason = "concat_rows(relu(x), relu(y)) = relu(concat_rows(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_concat_rows: split(concatenate(?x:static, ?y:static, axis=0), "
    .. "split=?s, axis=1).1 => concatenate((split(?x, constant(?s), axis=1, "
    .. "n_results=2)).1, (split(?y, constant(?s), axis=1, n_results=2)).1, axis=0) where "
    .. "?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "right(concat_rows(x, y)) = concat_rows(right(x), right(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_right_right: concatenate(split(?x:static, split=?s, "
    .. "axis=1).1, split(?y:static, split=?s, axis=1).1, axis=0) => (split(concatenate(?x, "
    .. "?y, axis=0), constant(?s), axis=1, n_results=2)).1 where ?x.rank == 2 and ?y.rank "
    .. "== 2 and len(?s) == 2",
    reason = "concat_rows(right(x), right(y)) = right(concat_rows(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_sum_columns_concat_rows: sum(concatenate(?x:static, ?y:static, axis=0), "
    .. "axis=[1], keepdims=1) => concatenate(sum(?x, axis=[1], keepdims=1), sum(?y, "
    .. "axis=[1], keepdims=1), axis=0) where ?x.rank == 2 and ?y.rank == 2",
    reason = "sum_columns(concat_rows(x, y)) = concat_rows(sum_columns(x), sum_columns(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_concat_rows_sum_columns_sum_columns: concatenate(sum(?x:static, axis=[1], "
    .. "keepdims=1), sum(?y:static, axis=[1], keepdims=1), axis=0) => sum(concatenate(?x, "
    .. "?y, axis=0), axis=[1], keepdims=1) where ?x.rank == 2 and ?y.rank == 2",
    reason = "concat_rows(sum_columns(x), sum_columns(y)) = sum_columns(concat_rows(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_tanh_concat_rows: tanh(concatenate(?x:static, ?y:static, axis=0)) => "
    .. "concatenate(tanh(?x), tanh(?y), axis=0) where ?x.rank == 2 and ?y.rank == 2",
    reason = "tanh(concat_rows(x, y)) = concat_rows(tanh(x), tanh(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_tanh_tanh: concatenate(tanh(?x:static), tanh(?y:static), "
    .. "axis=0) => tanh(concatenate(?x, ?y, axis=0)) where ?x.rank == 2 and ?y.rank == 2",
    reason = "concat_rows(tanh(x), tanh(y)) = tanh(concat_rows(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_transpose_concat_columns: transpose(concatenate(?x:static, ?y:static, "
    .. "axis=1), axes=[1, 0]) => concatenate(transpose(?x, axes=[1, 0]), transpose(?y, "
    .. "axes=[1, 0]), axis=0) where ?x.rank == 2 and ?y.rank == 2",
    reason = "transpose(concat_columns(x, y)) = concat_rows(transpose(x), transpose(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_transpose_transpose: concatenate(transpose(?x:static, "
    .. "axes=[1, 0]), transpose(?y:static, axes=[1, 0]), axis=0) => "
    .. "transpose(concatenate(?x, ?y, axis=1), axes=[1, 0]) where ?x.rank == 2 and ?y.rank "
    .. "== 2",
    reason = "concat_rows(transpose(x), transpose(y)) = transpose(concat_columns(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_left_multiply: split(multiply(?x:static, ?y:static), split=?s, axis=1).0 "
    .. "=> multiply((split(?x, constant(?s), axis=1, n_results=2)).0, (split(?y, "
    .. "constant(?s), axis=1, n_results=2)).0) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?s) == 2 and ?x.shape == ?y.shape",
    reason = "left(multiply(x, y)) = multiply(left(x), left(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_multiply_left_left: multiply(?p1@split(?x:static, split=?s, axis=1).0, "
    .. "?p2@split(?y:static, split=?s, axis=1).0) => (split(multiply(?x, ?y), constant(?s), "
    .. "axis=1, n_results=2)).0 where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2 and "
    .. "?p1.shape == ?p2.shape",
    reason = "multiply(left(x), left(y)) = left(multiply(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_transpose_matmul_transpose: transpose(nn.matmul(?x:static, "
    .. "transpose(?y:static, axes=[1, 0]), transpose_a=0, transpose_b=0), axes=[1, 0]) => "
    .. "nn.matmul(?y, transpose(?x, axes=[1, 0])) where ?x.rank == 2 and ?y.rank == 2",
    reason = "transpose(matmul(x, transpose(y))) = matmul(y, transpose(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_transpose_matmul_transpose_2: transpose(nn.matmul(transpose(?x:static, "
    .. "axes=[1, 0]), ?y:static, transpose_a=0, transpose_b=0), axes=[1, 0]) => "
    .. "nn.matmul(transpose(?y, axes=[1, 0]), ?x) where ?x.rank == 2 and ?y.rank == 2",
    reason = "transpose(matmul(transpose(x), y)) = matmul(transpose(y), x)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_transpose_multiply_transpose: transpose(multiply(?x:static, "
    .. "?p1@transpose(?y:static, axes=[1, 0])), axes=[1, 0]) => multiply(?y, transpose(?x, "
    .. "axes=[1, 0])) where ?x.rank == 2 and ?y.rank == 2 and ?x.shape == ?p1.shape",
    reason = "transpose(multiply(x, transpose(y))) = multiply(y, transpose(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_right_multiply: split(multiply(?x:static, ?y:static), split=?s, axis=1).1 "
    .. "=> multiply((split(?x, constant(?s), axis=1, n_results=2)).1, (split(?y, "
    .. "constant(?s), axis=1, n_results=2)).1) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?s) == 2 and ?x.shape == ?y.shape",
    reason = "right(multiply(x, y)) = multiply(right(x), right(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_multiply_right_right: multiply(?p1@split(?x:static, split=?s, axis=1).1, "
    .. "?p2@split(?y:static, split=?s, axis=1).1) => (split(multiply(?x, ?y), constant(?s), "
    .. "axis=1, n_results=2)).1 where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2 and "
    .. "?p1.shape == ?p2.shape",
    reason = "multiply(right(x), right(y)) = right(multiply(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_top_multiply: split(multiply(?x:static, ?y:static), split=?r, axis=0).0 "
    .. "=> multiply((split(?x, constant(?r), axis=0, n_results=2)).0, (split(?y, "
    .. "constant(?r), axis=0, n_results=2)).0) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "len(?r) == 2 and ?x.shape == ?y.shape",
    reason = "top(multiply(x, y)) = multiply(top(x), top(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_relu_add: nn.relu(add(?x:static, ?x:static)) => add(nn.relu(?x), "
    .. "nn.relu(?x)) where ?x.rank == 2",
    reason = "relu(add(x, x)) = add(relu(x), relu(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_add_relu_relu: add(?p1@nn.relu(?x:static), ?p2@nn.relu(?x:static)) => "
    .. "nn.relu(add(?x, ?x)) where ?x.rank == 2 and ?p1.shape == ?p2.shape",
    reason = "add(relu(x), relu(x)) = relu(add(x, x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_multiply_relu: multiply(?x:static, ?p1@nn.relu(?x:static)) => "
    .. "multiply(nn.relu(?x), nn.relu(?x)) where ?x.rank == 2 and ?x.shape == ?p1.shape",
    reason = "multiply(x, relu(x)) = multiply(relu(x), relu(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_multiply_relu_relu: multiply(?p1@nn.relu(?x:static), "
    .. "?p2@nn.relu(?x:static)) => multiply(?x, nn.relu(?x)) where ?x.rank == 2 and "
    .. "?p1.shape == ?p2.shape",
    reason = "multiply(relu(x), relu(x)) = multiply(x, relu(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_relu_sum_columns: sum(nn.relu(sum(?x:static, axis=[1], "
    .. "keepdims=1)), axis=[1], keepdims=1) => nn.relu(sum(?x, axis=[1], keepdims=1)) where "
    .. "?x.rank == 2",
    reason = "sum_columns(relu(sum_columns(x))) = relu(sum_columns(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_relu_sum_columns_multiply: nn.relu(sum(multiply(?x:static, ?x:static), "
    .. "axis=[1], keepdims=1)) => sum(multiply(?x, ?x), axis=[1], keepdims=1) where ?x.rank "
    .. "== 2",
    reason = "relu(sum_columns(multiply(x, x))) = sum_columns(multiply(x, x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_relu_sum_columns_relu: nn.relu(sum(nn.relu(?x:static), axis=[1], "
    .. "keepdims=1)) => sum(nn.relu(?x), axis=[1], keepdims=1) where ?x.rank == 2",
    reason = "relu(sum_columns(relu(x))) = sum_columns(relu(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_relu_sum_rows: sum(nn.relu(sum(?x:static, axis=[0], "
    .. "keepdims=1)), axis=[0], keepdims=1) => nn.relu(sum(?x, axis=[0], keepdims=1)) where "
    .. "?x.rank == 2",
    reason = "sum_rows(relu(sum_rows(x))) = relu(sum_rows(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_relu_sum_rows_multiply: nn.relu(sum(multiply(?x:static, ?x:static), "
    .. "axis=[0], keepdims=1)) => sum(multiply(?x, ?x), axis=[0], keepdims=1) where ?x.rank "
    .. "== 2",
    reason = "relu(sum_rows(multiply(x, x))) = sum_rows(multiply(x, x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_relu_sum_rows_relu: nn.relu(sum(nn.relu(?x:static), axis=[0], "
    .. "keepdims=1)) => sum(nn.relu(?x), axis=[0], keepdims=1) where ?x.rank == 2",
    reason = "relu(sum_rows(relu(x))) = sum_rows(relu(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_tanh_sum_columns: sum(tanh(sum(?x:static, axis=[1], "
    .. "keepdims=1)), axis=[1], keepdims=1) => tanh(sum(?x, axis=[1], keepdims=1)) where "
    .. "?x.rank == 2",
    reason = "sum_columns(tanh(sum_columns(x))) = tanh(sum_columns(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_tanh_sum_rows: sum(tanh(sum(?x:static, axis=[0], keepdims=1)), "
    .. "axis=[0], keepdims=1) => tanh(sum(?x, axis=[0], keepdims=1)) where ?x.rank == 2",
    reason = "sum_rows(tanh(sum_rows(x))) = tanh(sum_rows(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_add_concat_columns_concat_columns: add(?p1@concatenate(?x:static, "
    .. "?z:static, axis=1), ?p2@concatenate(?y:static, ?w:static, axis=1)) => "
    .. "concatenate(add(?x, ?y), add(?z, ?w), axis=1) where ?x.rank == 2 and ?z.rank == 2 "
    .. "and ?y.rank == 2 and ?w.rank == 2 and ?p1.shape == ?p2.shape and ?x.shape == "
    .. "?z.shape and ?x.shape == ?y.shape and ?x.shape == ?w.shape",
    reason = "add(concat_columns(x, z), concat_columns(y, w)) = concat_columns(add(x, y), add(z, "
    .. "w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_add_add: concatenate(add(?x:static, ?y:static), "
    .. "add(?z:static, ?w:static), axis=1) => add(concatenate(?x, ?z, axis=1), "
    .. "concatenate(?y, ?w, axis=1)) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 "
    .. "and ?w.rank == 2 and ?x.shape == ?y.shape and ?z.shape == ?w.shape",
    reason = "concat_columns(add(x, y), add(z, w)) = add(concat_columns(x, z), concat_columns(y, "
    .. "w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_add_concat_rows_concat_rows: add(?p1@concatenate(?x:static, ?z:static, "
    .. "axis=0), ?p2@concatenate(?y:static, ?w:static, axis=0)) => concatenate(add(?x, ?y), "
    .. "add(?z, ?w), axis=0) where ?x.rank == 2 and ?z.rank == 2 and ?y.rank == 2 and "
    .. "?w.rank == 2 and ?p1.shape == ?p2.shape and ?x.shape == ?z.shape and ?x.shape == "
    .. "?y.shape and ?x.shape == ?w.shape",
    reason = "add(concat_rows(x, z), concat_rows(y, w)) = concat_rows(add(x, y), add(z, w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_add_add: concatenate(add(?x:static, ?y:static), "
    .. "add(?z:static, ?w:static), axis=0) => add(concatenate(?x, ?z, axis=0), "
    .. "concatenate(?y, ?w, axis=0)) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 "
    .. "and ?w.rank == 2 and ?x.shape == ?y.shape and ?z.shape == ?w.shape",
    reason = "concat_rows(add(x, y), add(z, w)) = add(concat_rows(x, z), concat_rows(y, w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_add_matmul_matmul_3: add(?p1@nn.matmul(?x:static, ?z:static, "
    .. "transpose_a=0, transpose_b=0), ?p2@nn.matmul(?y:static, ?w:static, transpose_a=0, "
    .. "transpose_b=0)) => nn.matmul(concatenate(?x, ?y, axis=1), concatenate(?z, ?w, "
    .. "axis=0)) where ?x.rank == 2 and ?z.rank == 2 and ?y.rank == 2 and ?w.rank == 2 and "
    .. "?p1.shape == ?p2.shape",
    reason = "add(matmul(x, z), matmul(y, w)) = matmul(concat_columns(x, y), concat_rows(z, w))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_matmul_concat_columns_concat_rows_3: nn.matmul(concatenate(?x:static, "
    .. "?y:static, axis=1), concatenate(?z:static, ?w:static, axis=0), transpose_a=0, "
    .. "transpose_b=0) => add(nn.matmul(?x, ?z), nn.matmul(?y, ?w)) where ?x.rank == 2 and "
    .. "?y.rank == 2 and ?z.rank == 2 and ?w.rank == 2",
    reason = "matmul(concat_columns(x, y), concat_rows(z, w)) = add(matmul(x, z), matmul(y, w))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_concat_rows_concat_columns_concat_columns: "
    .. "concatenate(concatenate(?x:static, ?z:static, axis=1), concatenate(?y:static, "
    .. "?w:static, axis=1), axis=0) => concatenate(concatenate(?x, ?y, axis=0), "
    .. "concatenate(?z, ?w, axis=0), axis=1) where ?x.rank == 2 and ?z.rank == 2 and "
    .. "?y.rank == 2 and ?w.rank == 2",
    reason = "concat_rows(concat_columns(x, z), concat_columns(y, w)) = "
    .. "concat_columns(concat_rows(x, y), concat_rows(z, w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_concat_rows_concat_rows: "
    .. "concatenate(concatenate(?x:static, ?y:static, axis=0), concatenate(?z:static, "
    .. "?w:static, axis=0), axis=1) => concatenate(concatenate(?x, ?z, axis=1), "
    .. "concatenate(?y, ?w, axis=1), axis=0) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "?z.rank == 2 and ?w.rank == 2",
    reason = "concat_columns(concat_rows(x, y), concat_rows(z, w)) = "
    .. "concat_rows(concat_columns(x, z), concat_columns(y, w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_multiply_concat_columns_concat_columns: "
    .. "multiply(?p1@concatenate(?x:static, ?z:static, axis=1), ?p2@concatenate(?y:static, "
    .. "?w:static, axis=1)) => concatenate(multiply(?x, ?y), multiply(?z, ?w), axis=1) "
    .. "where ?x.rank == 2 and ?z.rank == 2 and ?y.rank == 2 and ?w.rank == 2 and ?p1.shape "
    .. "== ?p2.shape and ?x.shape == ?z.shape and ?x.shape == ?y.shape and ?x.shape == "
    .. "?w.shape",
    reason = "multiply(concat_columns(x, z), concat_columns(y, w)) = concat_columns(multiply(x, "
    .. "y), multiply(z, w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_columns_multiply_multiply: concatenate(multiply(?x:static, "
    .. "?y:static), multiply(?z:static, ?w:static), axis=1) => multiply(concatenate(?x, ?z, "
    .. "axis=1), concatenate(?y, ?w, axis=1)) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "?z.rank == 2 and ?w.rank == 2 and ?x.shape == ?y.shape and ?z.shape == ?w.shape",
    reason = "concat_columns(multiply(x, y), multiply(z, w)) = multiply(concat_columns(x, z), "
    .. "concat_columns(y, w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_multiply_concat_rows_concat_rows: multiply(?p1@concatenate(?x:static, "
    .. "?z:static, axis=0), ?p2@concatenate(?y:static, ?w:static, axis=0)) => "
    .. "concatenate(multiply(?x, ?y), multiply(?z, ?w), axis=0) where ?x.rank == 2 and "
    .. "?z.rank == 2 and ?y.rank == 2 and ?w.rank == 2 and ?p1.shape == ?p2.shape and "
    .. "?x.shape == ?z.shape and ?x.shape == ?y.shape and ?x.shape == ?w.shape",
    reason = "multiply(concat_rows(x, z), concat_rows(y, w)) = concat_rows(multiply(x, y), "
    .. "multiply(z, w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_concat_rows_multiply_multiply: concatenate(multiply(?x:static, "
    .. "?y:static), multiply(?z:static, ?w:static), axis=0) => multiply(concatenate(?x, ?z, "
    .. "axis=0), concatenate(?y, ?w, axis=0)) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "?z.rank == 2 and ?w.rank == 2 and ?x.shape == ?y.shape and ?z.shape == ?w.shape",
    reason = "concat_rows(multiply(x, y), multiply(z, w)) = multiply(concat_rows(x, z), "
    .. "concat_rows(y, w))",
    proof = "exact", source = "generated", grows = true },
  { "generated_sum_columns_add_add: sum(add(?x:static, ?p1@add(?y:static, ?z:static)), "
    .. "axis=[1], keepdims=1) => sum(concatenate(?x, concatenate(?y, ?z, axis=1), axis=1), "
    .. "axis=[1], keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 and "
    .. "?y.shape == ?z.shape and ?x.shape == ?p1.shape",
    reason = "sum_columns(add(x, add(y, z))) = sum_columns(concat_columns(x, concat_columns(y, "
    .. "z)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_concat_columns_concat_columns: sum(concatenate(?x:static, "
    .. "concatenate(?y:static, ?z:static, axis=1), axis=1), axis=[1], keepdims=1) => "
    .. "sum(add(?x, add(?y, ?z)), axis=[1], keepdims=1) where ?x.rank == 2 and ?y.rank == 2 "
    .. "and ?z.rank == 2 and ?x.shape == ?y.shape and ?x.shape == ?z.shape",
    reason = "sum_columns(concat_columns(x, concat_columns(y, z))) = sum_columns(add(x, add(y, "
    .. "z)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_add_add: sum(add(?x:static, ?p1@add(?y:static, ?z:static)), "
    .. "axis=[0], keepdims=1) => sum(concatenate(?x, concatenate(?y, ?z, axis=0), axis=0), "
    .. "axis=[0], keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and ?z.rank == 2 and "
    .. "?y.shape == ?z.shape and ?x.shape == ?p1.shape",
    reason = "sum_rows(add(x, add(y, z))) = sum_rows(concat_rows(x, concat_rows(y, z)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_concat_rows_concat_rows: sum(concatenate(?x:static, "
    .. "concatenate(?y:static, ?z:static, axis=0), axis=0), axis=[0], keepdims=1) => "
    .. "sum(add(?x, add(?y, ?z)), axis=[0], keepdims=1) where ?x.rank == 2 and ?y.rank == 2 "
    .. "and ?z.rank == 2 and ?x.shape == ?y.shape and ?x.shape == ?z.shape",
    reason = "sum_rows(concat_rows(x, concat_rows(y, z))) = sum_rows(add(x, add(y, z)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_relu_multiply_multiply: nn.relu(multiply(?x:static, "
    .. "?p1@multiply(?x:static, ?y:static))) => multiply(?x, multiply(?x, nn.relu(?y))) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and ?x.shape == ?y.shape and ?x.shape == "
    .. "?p1.shape",
    reason = "relu(multiply(x, multiply(x, y))) = multiply(x, multiply(x, relu(y)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_multiply_multiply_relu: multiply(?x:static, ?p2@multiply(?x:static, "
    .. "?p1@nn.relu(?y:static))) => nn.relu(multiply(?x, multiply(?x, ?y))) where ?x.rank "
    .. "== 2 and ?y.rank == 2 and ?x.shape == ?p1.shape and ?x.shape == ?p2.shape",
    reason = "multiply(x, multiply(x, relu(y))) = relu(multiply(x, multiply(x, y)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_relu_multiply_relu: nn.relu(multiply(?x:static, ?p1@nn.relu(?y:static))) "
    .. "=> multiply(nn.relu(?x), nn.relu(?y)) where ?x.rank == 2 and ?y.rank == 2 and "
    .. "?x.shape == ?p1.shape",
    reason = "relu(multiply(x, relu(y))) = multiply(relu(x), relu(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_multiply_relu_relu_2: multiply(?p1@nn.relu(?x:static), "
    .. "?p2@nn.relu(?y:static)) => nn.relu(multiply(?x, nn.relu(?y))) where ?x.rank == 2 "
    .. "and ?y.rank == 2 and ?p1.shape == ?p2.shape",
    reason = "multiply(relu(x), relu(y)) = relu(multiply(x, relu(y)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_concat_columns_left: sum(concatenate(?y:static, "
    .. "split(?x:static, split=?s, axis=1).0, axis=1), axis=[1], keepdims=1) => "
    .. "sum(concatenate((split(?x, constant(?s), axis=1, n_results=2)).0, ?y, axis=1), "
    .. "axis=[1], keepdims=1) where ?y.rank == 2 and ?x.rank == 2 and len(?s) == 2",
    reason = "sum_columns(concat_columns(y, left(x))) = sum_columns(concat_columns(left(x), y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_concat_columns_left_2: sum(concatenate(split(?x:static, "
    .. "split=?s, axis=1).0, ?y:static, axis=1), axis=[1], keepdims=1) => "
    .. "sum(concatenate(?y, (split(?x, constant(?s), axis=1, n_results=2)).0, axis=1), "
    .. "axis=[1], keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "sum_columns(concat_columns(left(x), y)) = sum_columns(concat_columns(y, left(x)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_concat_columns_right: sum(concatenate(?y:static, "
    .. "split(?x:static, split=?s, axis=1).1, axis=1), axis=[1], keepdims=1) => "
    .. "sum(concatenate((split(?x, constant(?s), axis=1, n_results=2)).1, ?y, axis=1), "
    .. "axis=[1], keepdims=1) where ?y.rank == 2 and ?x.rank == 2 and len(?s) == 2",
    reason = "sum_columns(concat_columns(y, right(x))) = sum_columns(concat_columns(right(x), y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_columns_concat_columns_right_2: sum(concatenate(split(?x:static, "
    .. "split=?s, axis=1).1, ?y:static, axis=1), axis=[1], keepdims=1) => "
    .. "sum(concatenate(?y, (split(?x, constant(?s), axis=1, n_results=2)).1, axis=1), "
    .. "axis=[1], keepdims=1) where ?x.rank == 2 and ?y.rank == 2 and len(?s) == 2",
    reason = "sum_columns(concat_columns(right(x), y)) = sum_columns(concat_columns(y, right(x)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_concat_rows_bottom: sum(concatenate(?y:static, split(?x:static, "
    .. "split=?r, axis=0).1, axis=0), axis=[0], keepdims=1) => sum(concatenate((split(?x, "
    .. "constant(?r), axis=0, n_results=2)).1, ?y, axis=0), axis=[0], keepdims=1) where "
    .. "?y.rank == 2 and ?x.rank == 2 and len(?r) == 2",
    reason = "sum_rows(concat_rows(y, bottom(x))) = sum_rows(concat_rows(bottom(x), y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_concat_rows_bottom_2: sum(concatenate(split(?x:static, split=?r, "
    .. "axis=0).1, ?y:static, axis=0), axis=[0], keepdims=1) => sum(concatenate(?y, "
    .. "(split(?x, constant(?r), axis=0, n_results=2)).1, axis=0), axis=[0], keepdims=1) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "sum_rows(concat_rows(bottom(x), y)) = sum_rows(concat_rows(y, bottom(x)))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_concat_rows_top: sum(concatenate(?y:static, split(?x:static, "
    .. "split=?r, axis=0).0, axis=0), axis=[0], keepdims=1) => sum(concatenate((split(?x, "
    .. "constant(?r), axis=0, n_results=2)).0, ?y, axis=0), axis=[0], keepdims=1) where "
    .. "?y.rank == 2 and ?x.rank == 2 and len(?r) == 2",
    reason = "sum_rows(concat_rows(y, top(x))) = sum_rows(concat_rows(top(x), y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_sum_rows_concat_rows_top_2: sum(concatenate(split(?x:static, split=?r, "
    .. "axis=0).0, ?y:static, axis=0), axis=[0], keepdims=1) => sum(concatenate(?y, "
    .. "(split(?x, constant(?r), axis=0, n_results=2)).0, axis=0), axis=[0], keepdims=1) "
    .. "where ?x.rank == 2 and ?y.rank == 2 and len(?r) == 2",
    reason = "sum_rows(concat_rows(top(x), y)) = sum_rows(concat_rows(y, top(x)))",
    proof = "reassociates", source = "generated", grows = true },
}
