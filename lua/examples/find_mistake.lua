--- A pass is wrong somewhere in a pipeline: which, by which application of a rule, and
-- the smallest program that shows it.
--
--     lua5.4 find_mistake.lua
--
-- `perilune bisect MODEL -p PIPELINE.lua --oracle` and `perilune reduce ... -o OUT` do
-- the same for files.

local pl = require "perilune"

-- x - x is 0, and x - y is not.
local cancel = pl.function_pass { name = "Cancel", run = pl.mutator { name = "cancel",
  Call = function(call)
    if call.op.name ~= "subtract" then return end
    local a, b = call.args[1], call.args[2]
    if a.kind == b.kind then return pl.const(pl.tensor.full(0, "float32", { 4 })) end
  end } }

local pipeline = pl.sequential { name = "deploy", "SimplifyExpr",
  pl.fixpoint { rounds = 3, "EliminateCommonSubexpr", cancel }, "DeadCodeElimination" }

local x, y = pl.var("x", "Tensor[(4), float32]"), pl.var("y", "Tensor[(4), float32]")
local a, b = pl.op.tanh(x), pl.op.tanh(y)
local model = pl.module { main = pl.func({ x, y },
  pl.tuple { pl.op.exp(a - pl.op.tanh(x)), pl.op.nn.relu(a * (a - b)), pl.op.abs(b * 1) }) }

-- The evaluator is the judge: a module is well when it computes what the model does.
local context = pl.context { opt_level = 3 }
local found = assert(pl.bisect(pipeline, model, "oracle", { context = context }))
print(found)

-- The same question, of ever smaller models and pipelines.
local small = assert(pl.reduce(model, "oracle", { pipeline = pipeline, context = context }))
print(("\n%d nodes of %d, %d pass of %d: %s"):format(small.nodes, small.nodes_before,
  small.passes, small.passes_before, small.pipeline))
print(small.module)
