--- Sums of products with constants.

-- The constants are added in float32 or float64: sums of halves would be rounded once more.
local floats = " and (?x.dtype == float32 or ?x.dtype == float64)"
local form = "transA=?s, transB=?t, alpha=?a"
local reason = "x a + x b = x (a + b)"

local rules = {
  { "sum_of_gemms: add(?p@nn.gemm(?x, ?w:const, ?b:const, " .. form .. ", beta=1), "
    .. "?q@nn.gemm(?x, ?v:const, ?c:const, " .. form .. ", beta=1)) => nn.gemm(?x, add(?w, ?v), "
    .. "add(?b, ?c), **?p) where ?p.uses == 1 and ?q.uses == 1 and ?w.shape == ?v.shape and "
    .. "?b.shape == ?c.shape" .. floats, proof = "reassociates", reason = reason },
  { "gemm_of_gemm: nn.gemm(?x, ?w:const, ?q@nn.gemm(?x, ?v:const, ?b:optional, " .. form
    .. ", beta=1), " .. form .. ", beta=1) => nn.gemm(?x, add(?w, ?v), ?b, **?q) where "
    .. "?q.uses == 1 and ?w.shape == ?v.shape" .. floats, proof = "reassociates",
    reason = reason },
  { "chain_of_gemms: add(?p@nn.gemm(?x, ?w, ?b:const, beta=1), ?q@nn.gemm(?y, ?v, ?c:const, "
    .. "beta=1)) => nn.gemm(?x, ?w, nn.gemm(?y, ?v, add(?b, ?c), **?q), **?p) where "
    .. "?p.uses == 1 and ?q.uses == 1 and ?p.shape == ?q.shape and ?b.shape == ?c.shape"
    .. floats, proof = "reassociates", reason = "a product takes in what is added to it" },
  { "sum_of_matmuls: add(?p@nn.matmul(?x, ?w:const), ?q@nn.matmul(?x, ?v:const)) => "
    .. "nn.matmul(?x, add(?w, ?v)) where ?p.uses == 1 and ?q.uses == 1 and ?w.shape == ?v.shape"
    .. floats, proof = "reassociates", reason = reason },
}

-- A factor of such a chain goes into all its constants.
for _, op in ipairs { "multiply", "divide" } do
  local rule = "%s_chain: %s(?p@nn.gemm(?x, ?w:const, ?q@nn.gemm(?y, ?v:const, ?b:const, beta=1), "
    .. "beta=1), ?c:const:scalar) => nn.gemm(?x, %s(?w, ?c), nn.gemm(?y, %s(?v, ?c), %s(?b, ?c), "
    .. "**?q), **?p) where ?p.uses == 1 and ?q.uses == 1 and ?c.rank == 0 and scalar(?c) > 1e-3 "
    .. "and scalar(?c) < 1e3"
  rules[#rules + 1] = { rule:format(op, op, op, op, op) .. floats, proof = "reassociates",
    grows = true, reason = "a sum is scaled by scaling what is added" }
end

return rules
