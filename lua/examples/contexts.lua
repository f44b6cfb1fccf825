--- Contexts choose what of a pipeline runs: by level, by name, and by how often a
-- run has come to a pass.
--
--     lua5.4 contexts.lua

local pl = require "perilune"

local pipeline = pl.pipeline [[
  SimplifyExpr, FoldConstant,
  fixpoint(2) { EliminateCommonSubexpr, FoldConstant },
  if changed { DeadCodeElimination }
]]
print(pipeline)

local x = pl.var("x", "Tensor[(4), float32]")
local mod = pl.module { main = pl.func({ x }, pl.op.exp(x) + pl.op.exp(x) * (pl.const(2.0) + 1.0)) }

-- What ran, and what changed something (*).
local function run(what, spec)
  pl.with(pl.context(spec), pipeline, mod)
  local ran = {}
  for i, row in ipairs(pl.report()) do ran[i] = row.name .. (row.changed and "*" or "") end
  print(("%-28s %s"):format(what, table.concat(ran, " ")))
end

run("opt_level = 3", { opt_level = 3 })
run("opt_level = 0", { opt_level = 0 })
run("0, but it is required", { opt_level = 0, required = { "FoldConstant" } })
run("disabled", { opt_level = 3, disabled = { "SimplifyExpr", "FoldConstant" } })
run("disabled the second time", { opt_level = 3, disabled = { "FoldConstant:2" } })
run("only", { opt_level = 3, only = { "FoldConstant:2", "DeadCodeElimination" } })
