-- The engine's half of kernels.py. For each line of input, "MODEL COUNT FEED...",
-- prints the least seconds that the model takes on the tensors of those files.

package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = (arg[1] or "build") .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"
local clock = require "perilune.core".clock

-- In memory of its own, as the peer has it: not mapped.
local function read_tensor(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "a"
  file:close()
  return assert(pl.tensor.parse_npy(bytes))
end

local function measure(path, count, feeds)
  local model, operands = assert(pl.onnx.load(path)), {}
  for feed in feeds:gmatch "%S+" do operands[#operands + 1] = read_tensor(feed) end
  local best = math.huge
  for _ = 1, count do
    local start = clock()
    local results = { pl.eval(model, table.unpack(operands)) }
    best = math.min(best, clock() - start)
    for _, result in ipairs(results) do result:close() end
  end
  return ("%.9f"):format(best)
end

for line in io.lines() do
  local path, count, feeds = line:match "(%S+) (%d+)(.*)"
  local _, answer = pcall(measure, path, math.tointeger(count), feeds)
  print((tostring(answer):gsub("\n", " ")))
  io.flush()
end
