--- Kept results: what passes gave is given again for functions they have seen. A
-- tool that edits a module and optimises it again pays for what it edited only.
--
--     lua5.4 cache.lua

local pl = require "perilune"

local function layer(k)
  local x = pl.var("x", "Tensor[(4), float32]")
  return pl.func({ x }, pl.op.nn.relu(pl.op.nn.relu(x + 0.0)) * (k + 0.0))
end

local mod = pl.module { a = layer(1), b = layer(2), c = layer(3) }

-- A pass of a script says that its function, its options and its source decide.
pl.passes.ReluToAbs = { kind = "function", cache = true, run = pl.mutator {
  Call = function(call)
    if call.op.name == "nn.relu" then return pl.op.abs(call.args[1]) end
  end } }

local context = pl.context { opt_level = 3, config = { cache = 10000000 } }
local pipeline = pl.pipeline "SimplifyExpr,FoldConstant,ReluToAbs"

local function optimise(what, module)
  local before = pl.cache_stats()
  local result = pl.with(context, pipeline, module)
  local after = pl.cache_stats()
  print(("%s: %d results found, %d made"):format(what, after.hits - before.hits,
    after.misses - before.misses))
  return result
end

local first = optimise("at first", mod)
local again = optimise("again", mod)
optimise("one function edited", mod:with { b = layer(20) })
assert(first.functions.a == again.functions.a) -- the very same graph
for _, row in ipairs(pl.report()) do print(row.name, row.counts.cached or 0) end
pl.cache_clear()
print(pl.cache_stats().results, "results are left")
