--- A pipeline script: a file that returns a pipeline. What `--set` gives that is
-- no option and no config key is its argument; asking for one makes it known.
--
--     perilune opt in.onnx -o out.onnx -p deploy.lua --set rounds=3 --set fold=all

local pl = require "perilune"

local given = ... or {}
local rounds, fold = given.rounds or 10, given.fold or "budget"

-- Each function by itself goes through both before the next one does.
local tidy = pl.functions { "SimplifyExpr", pl.passes.FoldConstant { fold = fold } }

return pl.sequential { name = "deploy", opt_level = 1,
  pl.try { "FoldBatchNorm", "FoldConvBias", otherwise = { "SimplifyExpr" } },
  pl.fixpoint { rounds = rounds, tidy, "EliminateCommonSubexpr" },
  pl.if_changed { "DeadCodeElimination" }, -- nothing new is dead otherwise
}
