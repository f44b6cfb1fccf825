-- How fast what is wrong is found: tries of a reduction a second on programs of about
-- twenty nodes, a program of 2,000 nodes under 12 passes, 100 passes searched.
--
--     LUA_CPATH='BUILD/lua/?.so' lua5.4 spec/bench/reduce.lua

package.path = "lua/?.lua;lua/?/init.lua;./?.lua;" .. package.path

local pl = require "perilune"
local clock = require "perilune.core".clock
local random_graph = require "spec.random.graph"

local function turn(name, from, make)
  return pl.function_pass { name = name, run = pl.mutator { Call = function(call)
    if call.op.name == from then return make(call) end
  end } }
end

local wrong = turn("Wrong", "abs", function(call) return -call.args[1] end)

local function idle(i)
  return turn("Idle" .. i, "tan", function(call) return pl.op.tan(call.args[1]) end)
end

local function pipeline(n)
  local list = {}
  for i = 1, n do list[i] = i == n // 2 and wrong or idle(i) end
  return pl.sequential(list)
end

-- Well is what has no call of the operator.
local function lacks(name)
  return function(mod)
    for node in pl.post_order(mod) do
      if node.kind == "Call" and node.op.name == name then return false end
    end
    return true
  end
end

local function tries_a_second(what, question, options)
  local tries, seconds = 0, 0
  for seed = 1, 300 do
    local small = pl.reduce((random_graph(seed)), question, options)
    tries = tries + (small and small.tries or 0)
    seconds = seconds + (small and small.seconds or 0)
  end
  print(("reduce, %-26s %8.0f tries/s (1000)"):format(what, tries / seconds))
end

local function large(n)
  local x = pl.var("x", "Tensor[(4, 4), float32]")
  local left, right = x, x
  for i = 1, n // 4 do
    left, right = pl.op.tanh(left + right), i == n // 8 and pl.op.abs(right) or pl.op.sin(right)
  end
  return pl.module { main = pl.func({ x }, pl.tuple { left, right }) }
end

tries_a_second("a predicate in Lua", lacks "add", nil)
tries_a_second("one pass and a predicate", lacks "negative", { pipeline = wrong })
tries_a_second("one pass and the evaluator", "oracle", { pipeline = wrong })

local mod = large(2700)
local small = assert(pl.reduce(mod, "oracle", { pipeline = pipeline(12) }))
print(("reduce, %d nodes, 12 passes: to %d nodes, %d pass %8.2f s"):format(small.nodes_before,
  small.nodes, small.passes, small.seconds))

local start = clock()
local found = assert(pl.bisect(pipeline(100), mod, lacks "negative"))
print(("bisect, %d nodes, 100 passes: run %d, application %d %8.2f s"):format(small.nodes_before,
  found.run, found.application, clock() - start))
