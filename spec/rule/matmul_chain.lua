--- Products of matrices in a row, as specs of graph substitution regroup them.

local pl = require "perilune"

local matmul_chain = {}

--- The rule by which they are regrouped, both ways.
matmul_chain.associative =
  "assoc: nn.matmul(nn.matmul(?a, ?b), ?c) <=> nn.matmul(?a, nn.matmul(?b, ?c))"

--- A module of the product of matrices with these extents, grouped from the left.
function matmul_chain.module(extents)
  local params, out = {}, nil
  for i = 1, #extents - 1 do
    params[i] = pl.var("a" .. i, pl.type { shape = { extents[i], extents[i + 1] },
      dtype = "float32" })
    out = out and pl.op.nn.matmul(out, params[i]) or params[i]
  end
  return pl.module { main = pl.func(params, out) }
end

return matmul_chain
