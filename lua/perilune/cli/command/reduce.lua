--- perilune reduce: a model and a pipeline made small while what is wrong stays wrong.

local host = require "perilune.cli.host"
local save = require "perilune.cli.save"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local reduce = {
  description = "Reduces MODEL and the pipeline while the failure stays: the pipeline "
    .. "fails, or the predicate does not hold for its result. Prints the reduced pipeline. "
    .. "Ctrl-C keeps the best result so far. Exit status: 0 done, 1 there is no failure or the "
    .. "work failed, 2 wrong usage.",
}

local function seconds(text)
  local number = tonumber(text)
  if not number or number <= 0 then return nil, ("'%s' is not a number of seconds"):format(text) end
  return number
end

function reduce.arguments(parser)
  parser:argument("input", "The model to read: NAME.relay is Relay text, all else ONNX; or a "
    .. "reproducer, which has a pipeline and a context of its own."):argname "MODEL"
  parser:option("-o --output", "Where to write the reduced model: Relay text to NAME.relay, "
    .. "else ONNX; '-' is standard output."):argname "OUT":count(1)
  require "perilune.cli.work".options(parser)
  require "perilune.cli.predicate".options(parser)
  parser:option("--seconds", "Stops after N seconds and keeps the best result so far."):argname "N"
    :convert(seconds)
  parser:flag("-q --quiet", "Prints nothing unless something fails.")
end

-- Tells how far it is.
local function progress()
  local line = require "perilune.instruments".progress()
  return function(job)
    line.show(("%d nodes after %d tries"):format(
      require "perilune.core".module_nodes(job.module), job.tries))
  end, line.clear
end

function reduce.run(options)
  local work, pl = require "perilune.cli.work", require "perilune"
  local question, comparison = require "perilune.cli.predicate".of(options)
  local module, pipeline, context = work.read(options)
  if comparison then
    require "perilune.cli.command.check".add_data(comparison, options, options.input, module)
  end
  local show, clear = progress()
  host.grace_period(2) -- the best so far is given
  local small, diag = work.interruptible(clear, pl.reduce, module, question, {
    pipeline = pipeline, context = context, seconds = options.seconds, progress = show })
  if not small then stop.failure("%s: %s", options.input, diag.message) end
  save.module(small.module, options.output)
  if not options.quiet then
    save.messages(options.output):write(tostring(small), "\npipeline: ",
      tostring(small.pipeline), "\n"):flush()
  end
  if small.stopped == "interrupted" then host.end_by_interrupt() end
end

return reduce
