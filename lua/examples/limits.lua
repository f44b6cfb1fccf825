--- Limits: what a pass may take. One that takes more fails as if it had raised: the
-- module is as it was, and the pipeline says where it was.
--
--     lua5.4 limits.lua

local pl = require "perilune"

local x = pl.var("x", "Tensor[(4), float32]")
local mod = pl.module { main = pl.func({ x }, pl.op.tanh(x) + 0.0) }

local passes = {
  Endless = function() while true do pcall(error) end end, -- no pcall saves it
  Hungry = function() return pl.tensor.random({ 4096, 4096 }, "float32") and nil end,
  Growing = function(fn) return pl.func(fn.params, fn.body + pl.op.exp(fn.body) + fn.body) end,
  Busy = pl.mutator { Call = function(call) return pl.op.exp(call[1]) end },
}
for name, run in pairs(passes) do pl.passes[name] = { kind = "function", run = run } end

local function try(pipeline, config)
  local ok, result = pcall(pl.with, pl.context { opt_level = 3, config = config },
    pl.pipeline(pipeline), mod)
  if ok then return print(pipeline, result == mod and "nothing happened" or "done") end
  print(result.code .. ": " .. result.message:gsub("%d%d%d%d+", "..."))
  for _, note in ipairs(result.notes) do print(note.text) end
end

try("SimplifyExpr,Endless", { ["limit.seconds"] = 0.05 })
try("Hungry", { ["limit.memory"] = pl.memory() + 1000000 })
try("Growing", { ["limit.growth"] = 1.5 })
try("Growing", { ["limit.nodes"] = 6 })
try("Busy", { ["limit.rewrites"] = 1 })

-- A try undoes what fails, and goes on.
try("try{Endless}else{SimplifyExpr}", { ["limit.seconds"] = 0.05 })
