-- What tuning gains over the default pipeline on well-known models.
--
--     perilune spec/bench/tuned_models.lua [SECONDS] [TRIALS] [MEASURE] [SPACE] [NAME=MODEL]...
--
-- MEASURE: evaluator (the default) or c; SPACE: pipeline (the default), kernels (of c), and others
-- that `perilune tune --space` has, or placement:BACKENDS as `perilune tune --placement`, the host
-- first. Without models: ResNet-50, MobileNetV2 and a BERT of two layers of the zoo, and
-- SqueezeNet of ../shared/models where that is. One thread. `cost` is the time of the best
-- candidate relative to the default pipeline's result, 1 where none is faster with confidence; of
-- placement that of the sums of measured parts.

local pl = require "perilune"
local clock = require "perilune.core".clock
local zoo = require "perilune.zoo"

local seconds, trials = tonumber(arg[1]) or 60, tonumber(arg[2]) or 100
local measure, space = arg[3] or "evaluator", arg[4] or "pipeline"

local function of_zoo(name, settings)
  local path = os.tmpname()
  assert(assert(zoo.build(name, settings)):save(path))
  local mod = assert(pl.onnx.load(path))
  os.remove(path)
  return mod
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

local squeezenet = (os.getenv "PERILUNE_SHARED" or "../shared")
  .. "/models/light_squeezenet/model.onnx"

local models = {
  { "ResNet-50", function() return of_zoo("resnet50", { batch = 1 }) end },
  { "MobileNetV2", function() return of_zoo("mobilenetv2", { batch = 1 }) end },
  { "BERT-tiny", function() return of_zoo("bert", { batch = 1, sequence = 64, layers = 2,
    hidden = 128, heads = 2, intermediate = 512 }) end },
}
if exists(squeezenet) then
  models[4] = { "SqueezeNet", function() return assert(pl.load(squeezenet)) end }
end

-- Those of the command line in place of these.
if #arg > 4 then models = {} end
for i = 5, #arg do
  local name, path = arg[i]:match "^([^=]+)=(.*)$"
  models[#models + 1] = { name or arg[i], function() return assert(pl.load(path or arg[i])) end }
end

local function place(mod)
  local backends = {}
  for name in space:match "^placement:(.*)$":gmatch "[^,]+" do backends[#backends + 1] = name end
  local result = pl.tune.placement { mod = pl.pipelines.default(mod), backends = backends,
    seconds = seconds }
  local parts, names = {}, {}
  for _, part in ipairs(result.parts) do
    parts[part.backend] = (parts[part.backend] or 0) + 1
  end
  for _, name in ipairs(backends) do
    names[#names + 1] = ("%s %d parts"):format(name, parts[name] or 0)
  end
  return { trials = result.measured, measured = result.measured, verdict = "faster",
    ratio = result.cost / result.base_cost, text = table.concat(names, ", ") }
end

local function search(mod)
  local kernels = space:find "kernels$" ~= nil
  return pl.tune.search { mod = mod, space = space, trials = trials, seconds = seconds,
    strategy = kernels and "separate" or nil, builder = pl.tune.builder(measure),
    runner = pl.tune.runner { seconds = 120, difference = kernels and 0.02 or nil } }
end

print(("%-12s %-9s %-16s %6s %8s %7s %6s  %-10s %s"):format("model", "measure", "space", "trials",
  "measured", "seconds", "cost", "confidence", "best"))
for _, row in ipairs(models) do
  local context = pl.context { opt_level = 3 }
  local begin = clock()
  local result = pl.with(context, space:find "^placement:" and place or search, row[2]())
  print(("%-12s %-9s %-16s %6d %8d %7.1f %6.3f  %-10s %s"):format(row[1], measure, space,
    result.trials, result.measured, clock() - begin, result.ratio,
    result.confidence and result.verdict == "faster"
      and ("%.2f %%"):format(100 * result.confidence) or "-",
    result.verdict == "faster" and (result.text == "" and "the model as it is" or result.text)
      or "the default pipeline"))
  io.stdout:flush()
end
