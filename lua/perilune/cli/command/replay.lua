--- perilune replay: runs a reproducer again.

local numbers = require "perilune.cli.numbers"
local save = require "perilune.cli.save"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local replay = {
  description = "Runs a reproducer: a file that a failing pass leaves with `opt "
    .. "--reproducer FILE` or the config key 'reproducer'. It holds the module, the pipeline, "
    .. "the context and the scripts of the passes. Exit status: 1 with the diagnostic when it "
    .. "fails again, 0 when it passes now.",
}

function replay.arguments(parser)
  parser:argument("file", "The reproducer."):argname "FILE"
  parser:option("--set", "Sets an option of a pass (Pass.option), a config key, or an argument of "
    .. "a script, instead of what the file says."):argname "X=VALUE":count "*"
  parser:option("--to", "Runs no more than the first N passes (the config key bisect.passes).")
    :argname "N":convert(numbers.count)
  parser:option("-o --output", "Where to write the module when it passes; '-' is standard "
    .. "output."):argname "OUT"
end

-- What the diagnostic says, without the notes.
local function text_of(failure)
  return type(failure) == "table" and failure.text or tostring(failure)
end

local function first_lines(text, like)
  local _, n = like:gsub("\n", "")
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if #lines <= n then lines[#lines + 1] = line end
  end
  return table.concat(lines, "\n")
end

-- Whether it is the failure that the file tells of.
local function as_before(what, failure)
  local text = text_of(failure)
  return what.failure and what.failure.text and first_lines(what.failure.text, text) == text
end

local function say(format, ...) io.stderr:write("perilune: ", format:format(...), "\n") end

local function fail(what, failure)
  if what.failure and what.failure.text and not as_before(what, failure) then
    say("it fails in another way than it did:\n%s\n", what.failure.text)
  end
  error(failure, 0)
end

function replay.run(options)
  local config, arguments = require "perilune.cli.settings".read(options.set)
  if options.to then config["bisect.passes"] = options.to end
  local pl = require "perilune"
  local what = assert(pl.reproducer.read(options.file))
  local ok, result, remarks = pl.reproducer.replay(what, { config = config,
    arguments = arguments })
  for _, remark in ipairs(remarks) do say("%s", remark) end
  if not ok then fail(what, result) end
  if options.output then save.module(result, options.output) end
  save.messages(options.output):write("it passes", what.failure and " now" or "", "\n")
  return 0
end

return replay
