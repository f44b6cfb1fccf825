-- The engine's half of kernels.py. For each line of input, "MODEL FEEDS COUNT",
-- prints the least seconds that the model takes on the results of FEEDS.

package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = (arg[1] or "build") .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"
local clock = require "perilune.core".clock

local function measure(path, feeds, count)
  local model, given = assert(pl.onnx.load(path)), assert(pl.onnx.load(feeds))
  local operands = table.pack(pl.eval(given))
  local best = math.huge
  for _ = 1, count do
    local start = clock()
    local result = pl.eval(model, table.unpack(operands))
    best = math.min(best, clock() - start)
    result:close()
  end
  return ("%.9f"):format(best)
end

for line in io.lines() do
  local path, feeds, count = line:match "(%S+) (%S+) (%d+)"
  local _, answer = pcall(measure, path, feeds, math.tointeger(count))
  print((tostring(answer):gsub("\n", " ")))
  io.flush()
end
