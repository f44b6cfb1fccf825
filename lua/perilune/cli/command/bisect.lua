--- perilune bisect: which run of a pass breaks a model.

local core = require "perilune.core"
local load = require "perilune.cli.load"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local bisect = {
  description = "Binary-searches for the first pass that breaks the model, and in "
    .. "that pass for the first rule application that does. A pass breaks the model when it "
    .. "fails, or when the predicate does not hold for its result. Exit status: 0 found, 1 no "
    .. "pass breaks the model or the work failed, 2 wrong usage.",
}

function bisect.arguments(parser)
  parser:argument("input", "The model to read: NAME.relay is Relay text, all else ONNX; or a "
    .. "reproducer, which has a pipeline and a context of its own."):argname "MODEL"
  require "perilune.cli.work".options(parser)
  require "perilune.cli.predicate".options(parser)
  parser:flag("--every", "Checks after each pass that changed something, to find what "
    .. "is broken and fixed again.")
  parser:flag("--json", "Prints JSON.")
  parser:option("-o --output", "Writes the model before and after that pass to "
    .. "BASE.before.relay and BASE.after.relay, or .onnx when MODEL is ONNX."):argname "BASE"
end

local function show_json(found)
  local json = require "perilune.json"
  print(json.encode(json.object {
    { "pass", found.pass }, { "nth", found.nth }, { "place", found.place and found.place.message },
    { "run", found.run }, { "runs", found.runs }, { "message", found.message },
    { "rule", found.rule }, { "application", found.application },
    { "applications", found.applications }, { "node_before", found.node_before },
    { "node_after", found.node_after },
    { "failed", found.failure ~= nil }, { "functions", json.list(found.functions) },
    { "mended", found.mended }, { "asked", found.asked }, { "pipelines", found.pipelines },
    { "diff", found.bad and require "perilune.text_diff" (found.good, found.bad) },
  }))
end

local function write(found, options)
  local pl, suffix = require "perilune", load.names_text(options.input)
    and options.input:match "%.%w+$" or ".onnx"
  for name, module in pairs { before = found.good, after = found.bad } do
    assert(pl.save(module, ("%s.%s%s"):format(options.output, name, suffix)))
  end
end

function bisect.run(options)
  local work, pl = require "perilune.cli.work", require "perilune"
  local question, comparison = require "perilune.cli.predicate".of(options)
  local module, pipeline, context = work.read(options)
  if comparison then
    require "perilune.cli.command.check".add_data(comparison, options, options.input, module)
  end
  local found, diag = work.interruptible(function() end, pl.bisect, pipeline, module, question,
    { context = context, every = options.every })
  if not found then stop.failure("%s: %s", options.input, diag.message) end
  if options.output then write(found, options) end
  if options.json then
    show_json(found)
  else
    print(found:describe { colour = require "perilune.cli.colours" "stdout" })
  end
end

return bisect
