--- perilune test: runs models on the data that lies beside them.

local numbers = require "perilune.cli.numbers"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local test = {
  description = "Runs models on recorded inputs and compares with the recorded "
    .. "outputs. Each DIR holds model.onnx and folders test_data_set_0, _1, ... with files "
    .. "input_N.pb and output_N.pb (TensorProto, SequenceProto or OptionalProto). The last line "
    .. "is 'N passed, N failed, N skipped'; a model is skipped when it has an operator without a "
    .. "kernel.",
}

function test.arguments(parser)
  parser:argument("dirs", "A folder with a model and its data."):argname "DIR":args "*"
  parser:option("--from", "Reads more DIRs from FILE, one a line."):argname "FILE"
  parser:option("--rtol", "The relative tolerance of floats.")
    :argname "X":default "1e-3":convert(numbers.tolerance)
  parser:option("--atol", "The absolute tolerance of floats.")
    :argname "X":default "1e-7":convert(numbers.tolerance)
  parser:flag("--scaled",
    "Multiplies --atol by the largest magnitude of the expected tensor, at least 1.")
  parser:option("-j --jobs", "Runs N processes at the same time."):argname "N":default "1"
    :convert(numbers.count)
  parser:flag("--opt", "Optimises first; --opt=TEXT|FILE.lua with this pipeline.")
  parser:option("-p --pipeline", "The same as --opt=TEXT|FILE.lua."):argname "TEXT|FILE.lua"
  parser:option("--set",
    "Sets an option of a pass (Pass.option), a config key, or an argument of the script.")
    :argname "X=VALUE":count "*"
  require "perilune.cli.pipeline".rule_options(parser)
  parser:option("--float16", "'emulate' computes float16 operators in float32, as the "
    .. "runtimes that recorded the outputs did; 'exact' rounds after each operator.")
    :choices { "emulate", "exact" }:default "emulate"
  parser:option("--bfloat16", "'emulate' computes bfloat16 operators step by step and rounds "
    .. "after each, as ONNX's reference implementation does; 'exact' rounds once per operator.")
    :choices { "emulate", "exact" }:default "emulate"
  parser:flag("--worker"):hidden(true)
end

--- `--opt=TEXT`, which the parser does not know: a flag has no value.
function test.rewrite(arguments)
  for i, argument in ipairs(arguments) do
    local text = argument:match "^%-%-opt=(.*)$"
    if text then arguments[i] = "--pipeline=" .. text end
  end
  return arguments
end

local function read_list(path)
  local text, reason = require "perilune.read_file"(path)
  if not text then stop.failure("%s", reason) end
  local dirs = {}
  for line in text:gmatch "[^\n]+" do dirs[#dirs + 1] = line end
  return dirs
end

local function directories(options)
  local dirs = options.dirs
  if options.from then
    local more = read_list(options.from)
    table.move(more, 1, #more, #dirs + 1, dirs)
  end
  if #dirs == 0 then stop.usage "a folder is needed: perilune test DIR..." end
  for i, dir in ipairs(dirs) do
    if dir:find "\n" then stop.usage("a folder's name has no line break: %s", dir) end
    if require "perilune.cli.host".stat(dir) == "file" then
      stop.usage("%s is a file; test takes folders with model.onnx and test_data_set_N", dir)
    end
    dirs[i] = #dir > 1 and dir:gsub("/+$", "") or dir
  end
  return dirs
end

-- The passes to run on a model, if any, and the context for them and for the runs.
local function optimiser(options)
  if not options.opt and not options.pipeline then
    if options.exact or #options.rules > 0 then
      stop.usage "--exact and --rules choose rules for --opt or --pipeline, which is missing"
    end
    return nil, require "perilune.cli.settings".context(options.set)
  end
  local config, arguments = require "perilune.cli.settings".read(options.set)
  if options.exact then config["rules.exact"] = true end
  local pl = require "perilune"
  local pass = require "perilune.cli.pipeline".find(options.pipeline, arguments, options.rules)
  local ok, context = pcall(pl.context, { opt_level = 3, config = config })
  if not ok then stop.usage("--set: %s", tostring(context)) end
  return pass, context
end

-- The passes that make a module round as the runtimes did that recorded the outputs.
local function emulation(options)
  local passes = {}
  for _, dtype in ipairs { "float16", "bfloat16" } do
    if options[dtype] == "emulate" then
      passes[#passes + 1] = require "perilune.pipelines".chunk("emulate_" .. dtype) {}
    end
  end
  return passes
end

local words = { failed = "FAIL", skipped = "SKIP" }

local function show(dir, verdict, problems)
  for _, problem in ipairs(problems) do
    print(("%s %s: %s"):format(words[verdict], dir, (problem:gsub("%s*\n%s*", " "))))
  end
end

-- The options that a worker is given; it reads its DIRs.
local function worker_command(options)
  local command = { options.program, "test", "--worker", "--rtol", tostring(options.rtol),
    "--atol", tostring(options.atol), "--float16", options.float16,
    "--bfloat16", options.bfloat16 }
  local function add(...)
    for _, word in ipairs { ... } do command[#command + 1] = word end
  end
  if options.scaled then add "--scaled" end
  if options.opt then add "--opt" end
  if options.exact then add "--exact" end
  if options.pipeline then add("--pipeline=" .. options.pipeline) end
  for _, path in ipairs(options.rules) do add("--rules", path) end
  for _, text in ipairs(options.set) do add("--set", text) end
  return command
end

-- A function from a folder to its verdict and problems.
local function tester(options)
  local pass, context = optimiser(options)
  local emulate = emulation(options)
  local trial = require "perilune.cli.trial"
  local tolerance = { rtol = options.rtol, atol = options.atol, scaled = options.scaled }
  return function(dir)
    return require "perilune".with(context, trial, dir, { tolerance = tolerance, pass = pass,
      emulate = emulate })
  end
end

-- The answers of processes come in any order, and are given in that of the folders.
local function run_in_processes(options, dirs, answer)
  local process_pool = require "perilune.process_pool"
  local pool <close> = process_pool.new(math.min(options.jobs, #dirs), worker_command(options))
  for _, dir in ipairs(dirs) do pool:submit(dir) end
  local answers, shown = {}, 0
  for _ = 1, #dirs do
    local i, verdict, lines, why = pool:wait()
    answers[i] = { verdict or "failed", verdict and lines or { why } }
    while answers[shown + 1] do
      shown = shown + 1
      answer(shown, answers[shown][1], answers[shown][2])
    end
  end
end

-- Calls answer(i, verdict, problems) for each folder in order.
local function run_all(options, dirs, answer)
  local run = tester(options) -- what is wrong with the options is told here
  if options.jobs > 1 and #dirs > 1 then return run_in_processes(options, dirs, answer) end
  for i, dir in ipairs(dirs) do answer(i, run(dir)) end
end

-- What perilune.process_pool starts.
local function work(options)
  local run = tester(options)
  for dir in io.lines() do
    local verdict, problems = run(dir)
    for _, problem in ipairs(problems) do print((problem:gsub("%s*\n%s*", " "))) end
    require "perilune.process_pool".answer(verdict)
  end
  return 0
end

function test.run(options)
  if options.worker then return work(options) end
  local dirs = directories(options)
  local progress = require "perilune.instruments".progress()
  local counts = { passed = 0, failed = 0, skipped = 0 }
  run_all(options, dirs, function(i, verdict, problems)
    counts[verdict] = counts[verdict] + 1
    progress.clear()
    show(dirs[i], verdict, problems)
    progress.show(("%d of %d"):format(i, #dirs))
  end)
  progress.clear()
  print(("%d passed, %d failed, %d skipped"):format(counts.passed, counts.failed, counts.skipped))
  return counts.failed > 0 and 1 or 0
end

return test
