--- Threads: function passes take the functions of a module in several at once; what
-- comes out does not depend on how many.
--
--     lua5.4 threads.lua

local pl = require "perilune"

local function chain(n)
  local x = pl.var("x", "Tensor[(4), float32]")
  local y = x
  for _ = 1, n do y = pl.op.tanh(y + 0.0) end
  return pl.func({ x }, y)
end

local functions = {}
for i = 1, 8 do functions["f" .. i] = chain(2000 + i) end
local mod = pl.module(functions)
local pipeline = pl.pipeline "functions{SimplifyExpr,EliminateCommonSubexpr},DeadCodeElimination"

local function run(threads)
  local context = pl.context { opt_level = 3, config = { threads = threads } }
  return pl.with(context, pipeline, mod)
end

local alone = run(1)
for _, threads in ipairs { 2, 4, 0 } do -- 0: as many as there are cores
  print(threads, tostring(run(threads)) == tostring(alone) and "the same text" or "ANOTHER TEXT")
end
