--- The default pipeline: what `perilune opt` runs when it is not told otherwise.
-- Each pass leaves work for others, so they go round until nothing changes:
-- optimising twice changes nothing.

local pl = require "perilune"

return pl.sequential { name = "default",
  "DeadCodeElimination", -- what no output needs is not worth a look
  "SimplifyExpr", -- local identities; shape arithmetic becomes constants
  "FoldConstant", -- computes what is known, within the budget
  "EliminateCommonSubexpr", -- one node for equal computations
  "SimplifyExpr", -- identities that folded and merged operands gave rise to
  "FoldConstant", -- and what these made constant
  "EliminateCommonSubexpr", -- and what these made equal
  "DeadCodeElimination", -- leaves nothing behind
}
