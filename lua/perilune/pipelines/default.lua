--- The default pipeline: what `perilune opt` runs when it is not told otherwise.
-- Each pass leaves work for the others, so they go round until nothing changes:
-- optimising twice changes nothing.

local pl = require "perilune"

local round = { name = "round",
  "SimplifyExpr", -- local identities; shape arithmetic becomes constants
  "FoldConstant", -- computes what is known, within the budget
  "CanonicalizeShapes", -- what is left of shape arithmetic, in one form
  "SequenceToSplit", -- parts of a sequence are tensors of known extents
  "FuseOnnxOps", -- one operator for what several compute, where the opset has it
  "FoldExplicitPadding", -- pads, too, may have been computed
  "FoldBatchNorm", -- constants beside a product: now they are known to be
  "FoldConstantScale", -- factors around products, likewise
  "MatMulAddToGemm", -- makes a product that can take more in
  "FoldConvBias", -- likewise; what is not normalised has its bias
  "EliminateCommonSubexpr", -- one node for equal computations
  "DeadCodeElimination", -- leaves nothing behind that the others set free
}

-- Sets of the user's rules come behind SimplifyExpr.
local _, _, rules = ...
for i, set in ipairs(rules or {}) do table.insert(round, 1 + i, set) end

-- More rounds than any model was seen to need; each costs little when little
-- is left to do.
local rounds = pl.fixpoint { rounds = 20, pl.sequential(round) }

-- These look at more than a node and its operands. They come last: what is left
-- then is in one form, so that parallel computations look alike.
local large = pl.sequential { name = "large",
  "EliminateBroadcast",
  "SinkTransposes",
  "SlicesToSplit",
  "CombineParallelOps",
  "SinkElementwise",
  "FlattenRows",
  rounds,
}

return pl.sequential { name = "default",
  "DeadCodeElimination", -- what no output needs is not worth a look
  rounds,
  pl.fixpoint { rounds = 20, large },
}
