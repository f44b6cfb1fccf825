--- perilune run: runs a model and shows, or writes, what comes out.

local host = require "perilune.cli.host"
local load = require "perilune.cli.load"
local stop = require "perilune.cli.stop"
local core = require "perilune.core"
core.internal() -- diagnostics point at the scripts of others

local run = {
  description = "Runs a model. Inputs are files or random numbers; those with a default may be "
    .. "left out. Prints each output with its type and first elements, row by row.",
}

function run.arguments(parser)
  parser:argument("model", "The model to run."):argname "MODEL"
  parser:option("--input", "An input by name: an .npy or .pb file, or random numbers "
    .. "(floats from -1 to 1, integers 0 and 1). 'random[:SEED]' without a name is for all other "
    .. "inputs."):argname "NAME=FILE|NAME=random[:SEED]":count "*"
  parser:option("--data", "Reads the inputs from input_N.pb in a folder such as "
    .. "test_data_set_0.")
    :argname "DIR"
  require "perilune.cli.shapes".options(parser)
  parser:option("-o --output", "Writes output_0.pb, output_1.pb, ... into a folder."):argname "DIR"
  parser:flag("--npy", "Writes them as .npy.")
  parser:flag("--time", "Shows how long loading and running the model took.")
  parser:option("--repeat", "Runs the model N times; --time shows the fastest run."):argname "N"
    :default "1":target "rounds":convert(require "perilune.cli.numbers".count)
  parser:flag("--profile", "Shows what each operator and node took: time, operations, bytes.")
  parser:option("--trace", "Writes the times of nodes as a Chrome trace "
    .. "(chrome://tracing, Perfetto).")
    :argname "FILE"
  parser:option("--threads", "The number of threads that kernels use; 0: one for each "
    .. "processor. The results have the same bits with any number."):argname "N":default "1"
    :convert(require "perilune.cli.numbers".threads)
  require "perilune.cli.settings".option(parser)
  parser:option("--seed", "The seed of random operators: runs with one seed give the "
    .. "same numbers.")
    :argname "N":default "0":convert(require "perilune.cli.numbers".seed)
end

local function must(value, diag)
  if diag then error(diag, 0) end
  return value
end

local function read_inputs(options, module, rows)
  local inputs = require "perilune.cli.inputs"
  if options.data then
    if #options.input > 0 then stop.usage "--data and --input cannot be used together" end
    local values, reason = require "perilune.cli.dataset".inputs(options.data, rows, module)
    if not values then stop.failure("%s", reason) end
    return values
  end
  local given, rest = inputs.parse(options.input, rows)
  return inputs.make(module, rows, given, rest)
end

local SHOWN = 6

local function elements(tensor)
  local text = require "perilune.core".element_text
  local parts = {}
  for i = 1, math.min(tensor.size, SHOWN) do parts[i] = text(tensor, i) end
  if tensor.size > SHOWN then parts[#parts + 1] = "..." end
  return "[" .. table.concat(parts, ", ") .. "]"
end

-- { 1: 0.25, 2: 0.75 }
local function entries(map)
  local keys, parts = require "perilune.sorted_keys" (map), {}
  for i = 1, math.min(#keys, SHOWN) do parts[i] = ("%s: %s"):format(keys[i], map[keys[i]]) end
  if #keys > SHOWN then parts[#parts + 1] = "..." end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function described(value, kind)
  if kind == "map" then return "map " .. entries(value) end
  return ("%s %s"):format(value, elements(value))
end

local function show(name, value, type_of_value)
  local kind = type_of_value and type_of_value.kind
  if value == nil then
    print(name .. ": nothing")
  elseif type(value) == "userdata" or kind == "map" then
    print(("%s: %s"):format(name, described(value, kind)))
  else
    print(("%s: a sequence of %d"):format(name, #value))
    local element = type_of_value and type_of_value.element
    for _, item in ipairs(value) do
      print("  " .. described(item, element and element.kind))
    end
  end
end

local function save(options, i, row, value)
  local path = ("%s/output_%d.%s"):format(options.output, i - 1, options.npy and "npy" or "pb")
  if not options.npy then
    must(require "perilune".onnx.save_value(value, path, row.type, row.name))
  elseif type(value) == "userdata" then
    must(value:save_npy(path))
  else
    stop.failure("output '%s' is not a tensor: an .npy file cannot hold it", row.name)
  end
end

-- Runs it; the results, and the seconds and the profile of the fastest run.
local function measure(module, values, options)
  local pl = require "perilune"
  local best, fastest = math.huge, nil
  for i = 1, options.rounds do
    if i > 1 then collectgarbage() end -- what the round before gave
    local call = { module, n = values.n + 1 }
    table.move(values, 1, values.n, 2, call)
    if options.profile or options.trace then call.profile = pl.profile() end
    local started = host.clock()
    local results = table.pack(pl.eval(call))
    local seconds = host.clock() - started
    if seconds < best then best, fastest = seconds, call.profile end
    if i == options.rounds then return results, best, fastest end
  end
end

local function write_trace(profile, path)
  local file, reason = io.open(path, "w")
  local ok = file and file:write(profile:trace(), "\n")
  if not (ok and file:close()) then stop.failure("--trace: %s", reason or path) end
end

local function check_options(options)
  if options.npy and not options.output then stop.usage "--npy requires -o DIR" end
  if not options.output then return end
  local ok, reason = host.make_folder(options.output)
  if not ok then stop.failure("%s", reason) end
end

local function measure_within(context, ...)
  return require "perilune".with(context, measure, ...)
end

function run.run(options)
  local started = host.clock()
  local context = require "perilune.cli.settings".context(options.set, options.threads)
  options.fixed = require "perilune.cli.shapes".parse(options)
  check_options(options)
  local module = must(load.model(options.model))
  module = require "perilune.cli.shapes".fix(module, options.fixed)
  local rows, outputs = require "perilune.cli.signature"(module)
  local loaded = host.clock() - started
  local values = read_inputs(options, module, rows)
  require "perilune".seed(options.seed)
  if core.terminal "stderr" then host.show_progress("running " .. options.model) end
  local results, seconds, profile = measure_within(context, module, values, options)
  host.end_progress()
  for i, row in ipairs(outputs) do
    show(row.name, results[i], row.type)
    if options.output then save(options, i, row, results[i]) end
  end
  if options.trace then write_trace(profile, options.trace) end
  if options.profile then print(profile) end
  if options.time then
    local text = require "perilune.cli.units".seconds
    print(("load %s, run %s, total %s"):format(text(loaded), text(seconds),
      text(host.clock() - started)))
  end
  return 0
end

return run
