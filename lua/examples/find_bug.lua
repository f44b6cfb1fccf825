--- Finds a bug of a pass: which run of which pass, which application of which rule;
-- then makes the model and the pipeline as small as they still show it.
--
--     lua5.4 find_bug.lua
--
-- `perilune bisect` and `perilune reduce` do the same.

local pl = require "perilune"

-- A rule with a mistake among those that are right: x - x is 0, not x.
pl.passes.Clean = { kind = "function", run = pl.mutator {
  Call = function(call)
    if call.op == pl.op.negative and call[1].op == pl.op.negative then return call[1][1] end
    if call.op == pl.op.subtract and call[1] == call[2] then return call[1] end
  end,
} }

local x = pl.var("x", "Tensor[(4), float32]")
local y = pl.op.tanh(pl.op.negative(pl.op.negative(x)))
for _ = 1, 5 do y = pl.op.exp(pl.op.negative(pl.op.negative(y))) end
local z = pl.op.sigmoid(y)
local mod = pl.module { main = pl.func({ x }, pl.op.tanh(z - z) * y) }

local pipeline = pl.pipeline [[
  SimplifyExpr, EliminateCommonSubexpr, FoldConstant, Clean,
  fixpoint(3) { SimplifyExpr, DeadCodeElimination }
]]

local found = assert(pl.bisect(pipeline, mod, "oracle"))
print(("%s, run %d of %d: application %d of %d, rule %s"):format(found.pass, found.run, found.runs,
  found.application, found.applications, found.rule))
print(found.node_before, "became", found.node_after)

local small = assert(pl.reduce(mod, "oracle", { pipeline = pipeline }))
print(small.pipeline)
print(small.module)
