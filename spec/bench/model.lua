-- Runs a model on random inputs again and again; run by models.py.
--
--     perilune spec/bench/model.lua MODEL FOLDER SECONDS DIM=SIZE...
--
-- Inputs and results go to FOLDER as input_N.npy and output_N.npy. Prints the
-- seconds of the fastest run.

local pl = require "perilune"
local clock = require "perilune.core".clock

local path, folder, seconds = arg[1], arg[2], tonumber(arg[3])
local dims = {}
for i = 4, #arg do
  local name, size = arg[i]:match "^(.-)=(%d+)$"
  dims[name] = math.tointeger(size)
end

local module = assert(pl.onnx.load(path))

-- Tokens 0 and 1: every vocabulary has them, and a mask may be made of them.
local function input(type)
  local shape = {}
  for i, dim in ipairs(type.shape) do shape[i] = dims[dim] or dim end
  return pl.tensor.random(type.dtype, shape,
    type.dtype == "int64" and { low = 0, high = 1 } or { mean = 0, deviation = 1 })
end

local inputs = {}
for i, param in ipairs(module.main.params) do
  inputs[i] = input(param.type)
  assert(inputs[i]:save_npy(("%s/input_%d.npy"):format(folder, i)))
end

local function run()
  collectgarbage()
  local start = clock()
  local results = table.pack(pl.eval(module, table.unpack(inputs)))
  return clock() - start, results
end

local best, results = run()
for i = 1, results.n do
  assert(results[i]:save_npy(("%s/output_%d.npy"):format(folder, i)))
end
results = nil -- luacheck: ignore (let go, so that two runs' results are never held)
local stop = clock() + seconds
while clock() < stop do best = math.min(best, (run())) end
print(best)
