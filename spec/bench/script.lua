-- What a pass written in Lua costs: walks over all nodes, a mutator that
-- changes nothing, an empty pass; and what a node costs in a run.
--
--     LUA_CPATH='BUILD/lua/?.so' lua5.4 spec/bench/script.lua BUILD

package.path = "lua/?.lua;lua/?/init.lua;spec/bench/?.lua;" .. package.path

local build = arg[1] or "build"
local pl = require "perilune"
local clock = require "perilune.core".clock

os.execute("mkdir -p " .. build .. "/bench")
local path = build .. "/bench/script.onnx"
local n = 160000
require "graphs".chain(n, path)
local module = assert(pl.onnx.load(path))
os.remove(path)

local function show(name, wanted, count, body)
  body()
  local best = math.huge
  for _ = 1, 5 do
    local start = clock()
    body()
    best = math.min(best, clock() - start)
  end
  print(("%-34s %8.1f ns  (wanted: %s)"):format(name, best / count * 1e9, wanted))
end

show("a node visited by fn:nodes()", "-", n, function()
  local calls = 0
  for node in module.functions.main:nodes() do
    if node.kind == "Call" then calls = calls + 1 end
  end
  assert(calls > n)
end)

show("a node of pl.post_order", "150 ns", n, function()
  local nodes = 0
  for _ in pl.post_order(module.functions.main) do nodes = nodes + 1 end
  assert(nodes > n)
end)

local count = 0
local visit = pl.visitor { Call = function() count = count + 1 end }
show("a node through a Lua visitor", "300 ns", n, function() visit(module) end)

local unchanged = pl.mutator { Call = function() end }
show("a node through a Lua mutator", "300 ns", n, function()
  assert(unchanged(module) == module)
end)

local x = pl.tensor.random({ 16, 16 }, "float32")
show("a 16x16 node run by pl.eval", "300 ns", n, function() pl.eval(module, x) end)

local nothing = pl.module_pass { name = "Nothing", run = function(mod) return mod end }
local passes = {}
for i = 1, 1000 do passes[i] = nothing end
local sequential = pl.sequential(passes)
show("an empty Lua pass in a sequential", "2 us", 1000, function() sequential(module) end)
