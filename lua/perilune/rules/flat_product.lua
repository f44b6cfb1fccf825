--- Products of flattened rows without an addend, as exporters write them that leave out a bias of
-- zeros (with one: batched_gemm).

local flat = "?i@reshape(?x), ?w:const"
local function restores(n)
  return ("?i.uses == 1 and ?i.rank == 2 and ?w.rank == 2 and ?o.rank > 2 and ?o.shape[-1] == "
    .. "?w.shape[%d] and ?w.shape[%d] > 0"):format(n, n)
end
local batch = "reshape(?x, newshape=nonzero(sublist(?o.shape, 0, -1) + [?i.shape[-1]]))"

local function rule(name, product, w, n)
  return { ("%s: ?o@reshape(%s) => nn.matmul(%s, %s) where %s"):format(name, product, batch, w,
      restores(n)), proof = "reassociates",
    reason = "leading axes are batch axes of a product already",
    source = "onnxscript broadcast_to_matmul" }
end

return {
  rule("flat_matmul", ("nn.matmul(%s)"):format(flat), "?w", 1),
  rule("flat_gemm", ("nn.gemm(%s, alpha=1, transA=0, transB=0)"):format(flat), "?w", 1),
  rule("flat_gemm_transposed", ("nn.gemm(%s, alpha=1, transA=0, transB=1)"):format(flat),
    "transpose(?w, axes=[1, 0])", 0),
  { "gemm_without_addend: ?g@nn.gemm(?a, ?b, ?c:const) => nn.gemm(?a, ?b, **?g) where "
    .. "scalar(?c) == 0", reason = "x + 0 = x", source = "ONNX eliminate_nop_with_unit" },
}
