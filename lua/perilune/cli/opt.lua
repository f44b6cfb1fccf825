--- perilune opt: reads a model, runs a pipeline over it, writes the result.

local host = require "perilune.cli.host"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local opt = {
  description = "Optimises a model: reads IN, runs a pipeline, writes OUT.",
}

function opt.arguments(parser)
  parser:argument("input", "The model to read: NAME.relay is Relay text, all else ONNX.")
    :argname "IN"
  parser:option("-o --output",
    "Where to write the result: Relay text to NAME.relay, else ONNX; may be IN itself. "
    .. "A device or a pipe is written as it is; '-' is standard output.")
    :argname "OUT":count(1)
  parser:option("-p --pipeline",
    "Passes in a row, as Name,Name{option=value}, or a script that returns a pipeline. "
    .. "Without it the default pipeline runs; '' runs no pass."):argname "TEXT|FILE.lua"
  parser:option("--set",
    "Sets an option of a pass (Pass.option), a config key, or an argument of the script.")
    :argname "X=VALUE":count "*"
  parser:option("--disable", "Passes that do not run; NAME:2 is the second time that NAME comes.")
    :argname "NAMES":count "*"
  parser:option("--only", "Runs no other passes than these; NAME:2 as above.")
    :argname "NAMES":count "*"
  parser:option("--dim", "Fixes a symbolic dim: N=1."):argname "NAME=SIZE":count "*"
  parser:flag("--check", "Before it writes, runs the result and what was read on made-up inputs, "
    .. "and fails when they differ; see perilune check.")
  require "perilune.cli.check".options(parser)
  parser:option("--stats", "What passes and their rules did: a table (with -v also the rules that "
    .. "were never applied), or one last line of JSON."):choices { "text", "json" }
  parser:flag("--time", "Shows how long each pass took.")
  parser:flag("--diff", "Shows what each pass changed.")
  parser:flag("--oracle", "Evaluates the model before and after each pass on made-up inputs; a "
    .. "pass that changes what is computed fails.")
  parser:option("--dump", "Writes a file of text for each pass that changed something.")
    :argname "FOLDER"
  parser:option("--trace", "Writes the times of passes for chrome://tracing.")
    :argname "FILE"
  parser:mutex(
    parser:flag("-q --quiet", "Says nothing unless something fails."),
    parser:flag("-v --verbose", "Says more: warnings, what each pass counted."))
end

-- What is wrong with a file is said before any work is done.
local function check_input(path)
  local kind, reason = host.stat(path)
  if not kind then stop.failure("%s", reason) end
  if kind == "directory" then stop.failure("%s: is a directory", path) end
end

local function fix_dims(module, dims)
  for _, dim in ipairs(dims) do
    local fixed, diag = module:fix_dim(dim.name, dim.size)
    if not fixed then
      stop.failure("--dim %s=%d: %s", dim.name, dim.size, diag.message)
    end
    module = fixed
  end
  return module
end

-- Tells which pass is at work.
local function progress()
  local line = require "perilune.cli.progress"()
  local instrument = { name = "progress" }
  function instrument.before(_, info) line.show(info.name) end
  return instrument, line.clear
end

-- Standard output of `--stats json` ends with one line and has no other; that
-- of a model has nothing else.
local function out_of(options)
  return (options.stats == "json" or options.output == "-") and io.stderr or io.stdout
end

local function save(module, path)
  local pl = require "perilune"
  if path ~= "-" then assert(pl.save(module, path)) return end
  local ok, reason = io.stdout:write(assert(pl.onnx.tostring(module)))
  if not (ok and io.stdout:flush()) then stop.failure("cannot write: %s", reason or "-") end
end

local function write_trace(timing, path)
  local file, reason = io.open(path, "w")
  local ok = file and file:write(timing:trace(), "\n")
  if not (ok and file:close()) then stop.failure("--trace: %s", reason or path) end
end

-- The instruments that options ask for. Those of the trace write when the
-- context is left.
local function watchers(options, statistics)
  local shipped, list = require "perilune.instruments", {}
  list[1] = statistics
  if options.diff then
    local out = out_of(options)
    list[#list + 1] = shipped.diff { colour = options.stats ~= "json" and host.terminal "stdout",
      write = function(text) out:write(text, "\n") end }
  end
  if options.dump then
    local made, reason = host.make_folder(options.dump)
    if not made then stop.failure("--dump: %s", reason) end
    list[#list + 1] = shipped.dump(options.dump)
  end
  if options.trace then
    local timing = shipped.timing()
    function timing.exit() write_trace(timing, options.trace) end
    list[#list + 1] = timing
  end
  if options.oracle then list[#list + 1] = shipped.oracle() end
  return list
end

-- Names from texts such as "FoldConstant,SimplifyExpr:2".
local function names(texts)
  local list = {}
  for _, text in ipairs(texts) do
    for name in text:gmatch "[^,]+" do list[#list + 1] = name end
  end
  return list
end

-- The context of the run, and what to call when the passes are done. Settings
-- of the wrong type are wrong usage.
local function make_context(config, options, statistics)
  local pl = require "perilune"
  local instruments, finish = watchers(options, statistics), function() end
  if host.terminal() and not options.quiet then
    instruments[#instruments + 1], finish = progress()
  end
  local spec = { opt_level = 3, config = config, instruments = instruments,
    disabled = names(options.disable), only = names(options.only) }
  local ok, context = pcall(pl.context, spec)
  if ok then return context, finish end
  local what = tostring(context):match "only: " and "--only"
    or tostring(context):match "disabled: " and "--disable" or "--set"
  stop.usage("%s: %s", what, tostring(context))
end

local function run_passes(context, finish, pass, module)
  local pl = require "perilune"
  host.catch_interrupt()
  local ok, result = pcall(pl.with, context, pass, module)
  finish()
  if ok then return result end
  if type(result) == "table" and result.code == "interrupted" then
    io.stderr:write(("perilune: %s; nothing is written\n"):format(result.message))
    host.end_by_interrupt()
  end
  error(result, 0)
end

-- What the comparison says; nothing is written when the result is another.
local function check(source, module, options)
  local text, reason = require "perilune.cli.check".compare(source, module, options)
  if not text then stop.failure("--check: %s; nothing is written", reason) end
  return text
end

function opt.run(options)
  local started = host.clock()
  if options.output == "/dev/stdout" then options.output = "-" end
  local dims = require "perilune.cli.numbers".dims(options.dim)
  check_input(options.input)
  local summary = require "perilune.cli.summary"
  local config, arguments = require "perilune.cli.settings".read(options.set)
  local pass = require "perilune.cli.pipeline".find(options.pipeline, arguments)
  local statistics = options.stats
    and require "perilune.instruments".statistics { unused = options.verbose }
  local context, finish = make_context(config, options, statistics or nil)

  local pl = require "perilune"
  local module = assert(pl.load(options.input))
  if not options.quiet then summary.warnings(options.verbose) end
  local before = summary.measure(options.input, module)
  local source = fix_dims(module, dims)
  module = run_passes(context, finish, pass, source)
  local report = require "perilune.core".report()
  local checked = options.check and check(source, module, options)
  save(module, options.output)

  summary.show(options, {
    before = before, after = summary.measure(options.output, module), report = report,
    statistics = statistics, checked = checked, seconds = host.clock() - started,
    peak = host.peak_rss(), out = out_of(options),
  })
end

return opt
