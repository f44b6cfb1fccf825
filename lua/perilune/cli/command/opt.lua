--- perilune opt: reads a model, runs a pipeline over it, writes the result.

local host = require "perilune.cli.host"
local load = require "perilune.cli.load"
local save = require "perilune.cli.save"
local stop = require "perilune.cli.stop"
local core = require "perilune.core"
core.internal() -- diagnostics point at the scripts of others

local opt = {
  description = "Optimises a model: reads IN, runs a pipeline, writes OUT.",
}

function opt.arguments(parser)
  parser:argument("input", "The model to read: NAME.relay is Relay text, NAME.tir and NAME.py "
    .. "TVMScript, all else ONNX; '-' is standard input.")
    :argname "IN"
  parser:option("-o --output",
    "Where to write the result: Relay text to NAME.relay, TVMScript to NAME.tir and NAME.py, else "
    .. "ONNX; may be IN itself. "
    .. "A device or a pipe is written as it is; '-' is standard output.")
    :argname "OUT":count(1)
  require "perilune.cli.work".options(parser)
  parser:flag("--value-info", "Writes the known types of all values (value_info) of "
    .. "an ONNX model. Without it only graphs that had value_info get it.")
  parser:flag("--check", "Compares the result with IN before OUT is written: "
    .. "evaluates both on generated inputs. When they differ, nothing is written and the status "
    .. "is 1; see perilune check.")
  require "perilune.cli.command.check".options(parser)
  parser:option("--stats", "Shows what passes and their rules did, as a table (with "
    .. "-v also the rules that were never applied) or as one last line of JSON.")
    :choices { "text", "json" }
  parser:option("--history", "Writes for each node of the result which passes and "
    .. "rules made it, and from which source: JSON to NAME.json, else text; '-' is standard "
    .. "output."):argname "FILE"
  parser:flag("--time", "Shows how long each pass took.")
  parser:flag("--diff", "Shows what each pass changed.")
  parser:flag("--oracle", "Evaluates the model before and after each pass, on "
    .. "generated inputs or those of --data. A pass fails when its result computes something "
    .. "else or cannot be evaluated.")
  parser:option("--dump", "Writes the module as text to a file in FOLDER after each "
    .. "pass that changed it.")
    :argname "FOLDER"
  parser:option("--reproducer", "When a pass fails, writes a file that `perilune "
    .. "replay` runs: the module before that pass (--set reproducer.from=input: before all "
    .. "passes), the pipeline, settings and scripts."):argname "FILE"
  parser:option("--instrument", "Attaches a pass instrument: one that `perilune "
    .. "passes` lists, with its options, or a script that returns one. Its report comes at the "
    .. "end.")
    :argname "NAME{X=VALUE}|FILE.lua":count "*"
  parser:option("--trace", "Writes the times of passes as a Chrome trace "
    .. "(chrome://tracing).")
    :argname "FILE"
  parser:mutex(
    parser:flag("-q --quiet", "Prints nothing unless something fails."),
    parser:flag("-v --verbose", "Prints warnings and what each pass counted too."))
end

-- Standard output of `--stats json` ends with one line and has no other; that
-- of a model has nothing else.
local function out_of(options)
  return options.stats == "json" and io.stderr or save.messages(options.output)
end

-- Nothing is written when what came before it got lost.
local function check_output()
  local ok, reason = io.stdout:flush()
  if not ok then stop.failure("standard output: %s", reason) end
end

local function write_history(module, options)
  if not options.history then return end
  local write = require "perilune.cli.history".write
  local ok, reason = write(module, options.history, out_of(options))
  if not ok then stop.failure("--history: %s", reason or options.history) end
end

local function write_trace(timing, path)
  local file, reason = io.open(path, "w")
  local ok = file and file:write(timing:trace(), "\n")
  if not (ok and file:close()) then stop.failure("--trace: %s", reason or path) end
end

-- The instruments that options ask for. Those of the trace write when the
-- context is left.
local function watchers(options, statistics, comparison)
  local shipped, list = require "perilune.instruments", {}
  list[1] = statistics
  if options.diff then
    local out = out_of(options)
    local colours = require "perilune.cli.colours"
    list[#list + 1] = shipped.diff { colour = options.stats ~= "json" and colours "stdout",
      write = function(text) out:write(text, "\n") end }
  end
  if options.dump then
    local made, reason = host.make_folder(options.dump)
    if not made then stop.failure("--dump: %s", reason) end
    local dump = shipped.dump(options.dump)
    list[#list + 1], list.dump = dump, dump
  end
  if options.trace then
    local timing = shipped.timing()
    function timing.exit() write_trace(timing, options.trace) end
    list[#list + 1] = timing
  end
  if options.oracle then list[#list + 1] = shipped.oracle(comparison) end
  return list
end

-- All instruments of the run, those of --instrument, and what to call when the
-- passes are done.
local function instruments_of(options, statistics, comparison)
  local list, finish = watchers(options, statistics, comparison), function() end
  local asked = {}
  for i, text in ipairs(options.instrument) do
    asked[i] = require "perilune.cli.instrument".find(text)
    list[#list + 1] = asked[i]
  end
  if not options.quiet then
    list[#list + 1] = require "perilune.instruments".progress()
    finish = list[#list].clear
  end
  return list, asked, finish
end

-- The module that a reader of the output gets, or nil and why there is none.
local function read_back(module, options)
  local pl = require "perilune"
  if options.output:find "%.relay$" then return pl.parse(module:text()) end
  if load.names_script(options.output) then return pl.tir.parse(module:text()) end
  local bytes, reason = pl.onnx.tostring(module, save.form(options.output, options.value_info))
  if not bytes then return nil, reason end
  return pl.onnx.parse(bytes, options.input:match "^(.*)/[^/]*$" or ".")
end

-- What the comparison says; nothing is written when the result is another.
-- The limits of the passes hold for it too.
local function check(source, module, options, comparison, context)
  local checker = require "perilune.cli.command.check"
  local written, unread = read_back(module, options)
  if not written then
    stop.failure("--check: what would be written cannot be read: %s; nothing is written", unread)
  end
  if not options.quiet then checker.show_progress(options.input, options.output) end
  local limits = require "perilune.debug.run_record".inside(context, {})
  local text, reason = require "perilune".with(limits, checker.compare, source, written, comparison)
  host.end_progress()
  if not text then stop.failure("--check: %s; nothing is written", reason) end
  return text
end

function opt.run(options)
  local started = host.clock()
  if options.output == "/dev/stdout" then options.output = "-" end
  local summary, work = require "perilune.cli.summary", require "perilune.cli.work"
  local statistics = options.stats
    and require "perilune.instruments".statistics { unused = options.verbose }
  local comparison = require "perilune.cli.command.check".comparison(options)
  local asked, finish, list
  local pass, context = work.prepare(options, function()
    list, asked, finish = instruments_of(options, statistics or nil, comparison)
    return list
  end)

  local pl = require "perilune"
  local module = assert(load.model(options.input))
  if not options.quiet then summary.warnings(options.verbose) end
  local before = summary.measure(options.input, module, load.bytes(options.input))
  local source = work.fix_dims(module, options)
  if options.check or options.oracle then
    require "perilune.cli.command.check".add_data(comparison, options, options.input, source)
  end
  module = work.interruptible(finish, pl.with, context, pass, source)
  if not options.quiet then summary.warnings(options.verbose) end
  if list.dump and list.dump.failure then stop.failure("--dump: %s", list.dump.failure) end
  if #asked > 0 then require "perilune.cli.instrument".show(asked, out_of(options)) end
  local report = core.report()
  local checked = options.check and check(source, module, options, comparison, context)
  write_history(module, options)
  check_output()
  save.module(module, options.output, options.value_info)
  host.work_done()

  summary.show(options, {
    before = before, after = summary.measure(options.output, module), report = report,
    statistics = statistics, checked = checked, seconds = host.clock() - started,
    peak = host.peak_rss(), out = out_of(options),
  })
end

return opt
