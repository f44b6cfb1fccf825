--- Searches for a better pipeline by measuring, keeps the records in a file, and applies them.
--
--     lua5.4 search.lua
--
-- The metric is the number of calls here, so that the result does not depend on the machine;
-- { "time" } has a runner compare candidates with the best one so far, in child processes.

local pl = require "perilune"

local mod = assert(pl.parse [[#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = nn.dense(%x, %w);
  nn.relu(nn.relu(add(%0, %1)))
}]])

local scope <close> = pl.context { opt_level = 3 }:enter() -- EliminateCommonSubexpr is of level 3
local path = os.tmpname()
local db <close> = pl.tune.database { path = path }
local result = pl.tune.search { mod = mod, base = "DeadCodeElimination",
  pool = { "EliminateCommonSubexpr", "SimplifyExpr" }, strategy = "exhaustive",
  metrics = { "nodes" }, database = db }
print(("%s: %s, cost %.2f of the base after %d trials"):format(result.text, result.verdict,
  result.ratio, result.trials))

-- Another process does this with the same file.
local tuned, record = pl.tune.apply_best(mod, { database = db, metrics = { "nodes" } })
print(tuned)
print(record.text)
os.remove(path)
