-- Models of the zoo as generated C, beside the evaluator and ONNX Runtime with all optimisations,
-- in turns, one thread each; the least time of a run, of the processor.
--
--     PERILUNE_BUILD=build lua5.4 spec/bench/compiled.lua [--kernels] [NAME]
--     PERILUNE_BUILD=build lua5.4 spec/bench/compiled.lua [--kernels] model.onnx [DIM=SIZE...]
--
-- --kernels shows for each function how often the model calls it, its time (called again and again
-- on the same data, so that this is in the cache), and what share of the model's time that is.
-- ONNX Runtime is the one of BUILD/venv; without it the column is empty.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;./?.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"
local core = require "perilune.core"
local zoo = require "perilune.zoo"
local compare = require "spec.codegen.compare"

local TURNS, SECONDS = 3, 0.5

local with_kernels = arg[1] == "--kernels"
if with_kernels then table.remove(arg, 1) end
local only = table.remove(arg, 1)

-- What is run without arguments: title, model of the zoo, its parameters.
local cases = {
  { "ResNet-50", "resnet50", { batch = 1 } },
  { "MobileNetV2", "mobilenetv2", { batch = 1 } },
  { "BERT-tiny, 128 tokens", "bert",
    { layers = 2, hidden = 128, heads = 2, intermediate = 512, batch = 1, sequence = 128 } },
  { "BERT-base, 128 tokens", "bert", { batch = 1, sequence = 128 } },
  { "LSTM, 128 tokens", "lstm", { batch = 1, sequence = 128 } },
}

local peer = [[
import sys, time
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.log_severity_level = 4
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds, random = {}, numpy.random.default_rng(0)
for i in session.get_inputs():
  floats = i.type == "tensor(float)"
  feeds[i.name] = random.standard_normal(i.shape, dtype=numpy.float32) if floats \
    else random.integers(0, 2, i.shape).astype(i.type[7:-1])
best, end = 1e9, time.perf_counter() + float(sys.argv[2])
while time.perf_counter() < end:
  start = time.thread_time()
  session.run(None, feeds)
  best = min(best, time.thread_time() - start)
print(best)
]]

local function arguments(mod)
  local args = {}
  for i, param in ipairs(mod.functions.main.params) do
    local float = param.type.dtype:find "float" ~= nil
    args[i] = pl.tensor.random(param.type.shape, "float32", { seed = i, low = float and -1 or 0,
      high = float and 1 or 2 })
    if param.type.dtype ~= "float32" then
      args[i] = pl.eval(pl.op.cast(pl.const(args[i]), { dtype = param.type.dtype }))
    end
  end
  return args
end

local function peer_seconds(path, script)
  local pipe <close> = assert(io.popen(("%s/venv/bin/python3 %s %s %g 2> /dev/null"):format(build,
    script, path, SECONDS)))
  return pipe:read "n"
end

local function evaluator_seconds(mod, args)
  local best, finish = math.huge, os.clock() + SECONDS
  repeat
    local begin = os.clock()
    pl.eval(mod, table.unpack(args))
    best = math.min(best, os.clock() - begin)
  until os.clock() > finish
  return best
end

local function least(a, b) return b and math.min(a or b, b) or a end

local function milliseconds(seconds)
  return seconds and ("%9.3f ms"):format(seconds * 1e3) or ("%12s"):format "-"
end

-- Called functions of a model, by the time that they take together.
local function show_kernels(mod, options)
  local model = require "perilune.codegen.model"
  local plan = model.plan(mod, { vector_bytes = core.c_native_vector_bytes() })
  local calls, functions, only_kernels = {}, {}, {}
  for _, call in ipairs(plan.calls) do calls[call.name] = (calls[call.name] or 0) + 1 end
  for i, name in ipairs(plan.names) do
    if calls[name] then functions[name] = plan.functions[i] end
  end
  for name, fn in pairs(functions) do only_kernels[name] = fn end
  local built = pl.build(pl.module(only_kernels), options)
  local rows, total = {}, 0
  for name, fn in pairs(functions) do
    local args = compare.arguments(fn, {}, 7)
    local seconds = built:time(name, args, { least = 0.05 })
    local shapes = {}
    for i, a in ipairs(args) do shapes[i] = table.concat(a.shape, "x") end
    rows[#rows + 1] = { name = name, seconds = seconds, all = seconds * calls[name],
      shapes = table.concat(shapes, " ") }
    total = total + seconds * calls[name]
  end
  table.sort(rows, function(a, b) return a.all > b.all end)
  for _, row in ipairs(rows) do
    print(("  %3d x %9.1f us %5.1f%%  %s  %s"):format(calls[row.name], row.seconds * 1e6,
      row.all / total * 100, row.name:gsub("^tvmgen_default_fused_", ""), row.shapes))
  end
end

local function load_model(path, sizes)
  local mod = assert(pl.onnx.load(path))
  for _, param in ipairs(mod.functions.main.params) do
    local shape, open = param.type.shape, false
    for i, dim in ipairs(shape) do
      if math.type(dim) ~= "integer" then
        shape[i], open = sizes[tostring(dim)] or 1, true
      end
    end
    if open then mod = assert(mod:fix_shape(param.name, shape)) end
  end
  return pl.pipelines.default(mod)
end

local function run(title, path, sizes, script)
  local mod = load_model(path, sizes)
  assert(pl.onnx.save(mod, path))
  local options = { run = "process" }
  local built, args = pl.build(mod, options), arguments(mod)
  built.main(table.unpack(args))
  local ours, evaluator, theirs
  for _ = 1, TURNS do
    ours = least(ours, (built:time("main", args, { least = SECONDS })))
    evaluator = least(evaluator, evaluator_seconds(mod, args))
    theirs = least(theirs, peer_seconds(path, script))
  end
  print(("%-24s %s %s %s %6s"):format(title, milliseconds(ours), milliseconds(evaluator),
    milliseconds(theirs), theirs and ("%.2f"):format(ours / theirs) or "-"))
  if with_kernels then show_kernels(mod, options) end
end

local script, file = os.tmpname(), os.tmpname()
do
  local out <close> = assert(io.open(script, "w"))
  out:write(peer)
end
print(("%-24s %12s %12s %12s %6s"):format("model", "compiled", "evaluator", "ONNX Runtime",
  "ratio"))
if only and only:find "%.onnx$" then
  local sizes = {}
  for _, word in ipairs(arg) do
    local name, size = word:match "^(%w+)=(%d+)$"
    sizes[assert(name, "DIM=SIZE is expected")] = math.tointeger(size)
  end
  assert(os.execute(("cp '%s' %s"):format(only, file)))
  run(only, file, sizes, script)
else
  for _, case in ipairs(cases) do
    if not only or case[1]:lower():find(only:lower(), 1, true) then
      assert(assert(zoo.build(case[2], case[3])):save(file))
      run(case[1], file, {}, script)
    end
  end
end
os.remove(script)
os.remove(file)
