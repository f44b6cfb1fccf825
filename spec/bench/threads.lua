-- Function passes in one thread and in two: a module of 64 functions of 10,000
-- nodes, and smaller ones, to see from where on a second thread pays.
--
--     LUA_CPATH='BUILD/lua/?.so' lua5.4 spec/bench/threads.lua

package.path = "lua/?.lua;lua/?/init.lua;" .. package.path

local pl = require "perilune"
local clock = require "perilune.core".clock
local op = pl.op

local function chain(length)
  local x = pl.var("x", pl.type { shape = { 2, 4 }, dtype = "float32" })
  local y = x
  for i = 1, length do
    y = i % 2 == 0 and op.add(y, pl.const(0.0, "float32")) or op.tanh(y)
  end
  return pl.func({ x }, y)
end

local function module(functions, length)
  local made = {}
  for i = 1, functions do made[("f%02d"):format(i)] = chain(length) end
  return pl.module(made)
end

local function best(pass, mod, threads)
  local context = pl.context { opt_level = 3, config = { threads = threads } }
  local least = math.huge
  for _ = 1, 5 do
    collectgarbage()
    local start = clock()
    pl.with(context, pass, mod)
    least = math.min(least, clock() - start)
  end
  return least
end

-- Done sooner than lent: a second thread must cost nothing.
local at_home = { DeadCodeElimination = 1 }

local function show(what, text, mod)
  local pass = pl.pipeline(text)
  local one, two = best(pass, mod, 1), best(pass, mod, 2)
  print(("%-26s %-20s one thread %8.2f ms, two %8.2f ms: %.2f times as fast (wanted %s)")
    :format(text, what, one * 1e3, two * 1e3, one / two, at_home[text] or 1.5))
end

local passes = { "SimplifyExpr", "EliminateCommonSubexpr", "FuseOps", "DeadCodeElimination" }
table.insert(passes, "functions{" .. table.concat(passes, ",") .. "}")

for _, size in ipairs { { 64, 10000 }, { 64, 1000 }, { 64, 100 } } do
  local mod = module(size[1], size[2])
  for _, text in ipairs(passes) do
    show(("%d x %d nodes"):format(size[1], size[2]), text, mod)
  end
end
