--- Tables of rows that positions or tokens select, and normalised rows (FuseOnnxOps).

local rules = {
  { "rows_by_one_index: gather_nd(?w, ?e@expand_dims(?i, axes=?a), batch_dims=0) => take(?w, "
    .. "expand_dims(?i, axes=without(sorted(normalize(?a, ?e.rank)), [len(?a) - 1])), axis=0) "
    .. "where opset >= 11 and ?w.rank >= 1 and ?i.rank >= 0 and len(?a) >= 2 and "
    .. "?i.dtype == int64 and sublist(sorted(normalize(?a, ?e.rank)), -1, len(?a)) == "
    .. "[?e.rank - 1]",
    reason = "coordinates along one axis only are positions", source = "ONNX GatherND" },
  { "rows_by_column: gather_nd(?w, ?e@expand_dims(?i, axes=?a), batch_dims=0) => take(?w, ?i, "
    .. "axis=0) where opset >= 11 and ?w.rank >= 1 and ?i.rank >= 0 and ?i.dtype == int64 and "
    .. "normalize(?a, ?e.rank) == [?e.rank - 1]",
    reason = "coordinates along one axis only are positions", source = "ONNX GatherND" },
  { "rows_at_constant: gather_nd(?w, ?i:const, batch_dims=0) => take(?w, squeeze(?i, axes=[-1]), "
    .. "axis=0) where opset >= 11 and ?w.rank >= 1 and ?i.rank >= 2 and ?i.shape[-1] == 1",
    reason = "coordinates along one axis only are positions", source = "ONNX GatherND" },
  { "sum_behind_broadcast: ?f{add|subtract|multiply}(?b@broadcast_to(?x:int, ?s), ?c:scalar) => "
    .. "broadcast_to(?f(?x, ?c), ?s) where opset >= 8 and ?b.uses == 1 and ?c.rank == 0 and "
    .. "not is_const(?x)",
    reason = "what is equal stays equal, and is computed once" },
  { "row_in_table: ?f{add|subtract|multiply|divide}(?t@take(?w:const, ?i, axis=0), ?c:const) "
    .. "=> take(?f(?w, ?c), ?i, axis=0) where opset >= 1 and ?w.uses == 1 and ?t.uses == 1 and "
    .. "?w.rank == 2 and ?c.rank <= 1 and (?c.size == 1 or ?c.size == ?w.shape[1]) and "
    .. "?i.rank >= 1 and (?w.dtype == float32 or ?w.dtype == float64) and ?w.size <= 16777216",
    reason = "a constant for each row is part of the table" },
}

-- A factor of one hides the quotient from root_mean_square; the product behind it takes the factor
-- of this form as well.
rules[#rules + 1] = { "root_mean_square_product: nn.matmul(?d@divide(?x, sqrt(add(mean(power(?x, "
  .. "2) | multiply(?x, ?x), axes=[-1], keepdims=1), ?e:scalar))), ?w:const) => "
  .. "nn.matmul(divide(?x, sqrt(add(reduce_sum_square(?x, axes=[-1], keepdims=1), multiply(?e, "
  .. "constant(?x.shape[-1], ?w.dtype))))), multiply(?w, sqrt(constant(?x.shape[-1], ?w.dtype)))) "
  .. "where opset >= 1 and ?x.dtype == float32 and ?x.shape[-1] >= 1 and ?d.uses == 1 and "
  .. "?w.uses == 1 and ?w.rank == 2", proof = "reassociates", grows = true,
  reason = "x / sqrt(s / n + e) = sqrt(n) * x / sqrt(s + n * e); the product takes the factor",
  source = "ONNX ReduceSumSquare" }

return rules
