--- The predicate that options ask for: of `bisect` and `reduce`.

local pl = require "perilune"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local predicate = {}

--- The options; those of the evaluator are the ones of `check`.
function predicate.options(parser)
  parser:mutex(
    parser:flag("--oracle", "The predicate holds when the module computes what the "
      .. "model computes; see perilune check."),
    parser:flag("--verify", "The predicate holds when the module is well-formed."),
    parser:option("--predicate", "The predicate is a function that the script "
      .. "returns. It gets the module and returns true, or false and a reason."):argname "FILE.lua",
    parser:option("--shell", "The predicate holds when the command exits with status "
      .. "0; {} in it stands for a file with the module. Status 125 means undecided.")
      :argname "COMMAND")
  require "perilune.cli.command.check".options(parser)
end

local function shell(options)
  local ok, made = pcall(pl.predicate, { shell = options.shell,
    format = options.input:find "%.relay$" and "relay" or "onnx" })
  if not ok then stop.usage("--shell: the command must contain {} for the model's file") end
  return made
end

--- Nil when the options name none. Of the oracle also its comparison, to which
-- perilune.cli.check adds data once the model is read.
function predicate.of(options)
  if options.oracle then
    -- What `check` allows is no difference here either.
    local comparison = require "perilune.cli.command.check".comparison(options)
    return pl.predicate("oracle", comparison), comparison
  end
  if options.verify then return pl.predicate "verify" end
  if options.shell then return shell(options) end
  if not options.predicate then return nil end
  local ok, made = pcall(pl.predicate, options.predicate)
  if ok then return made end
  stop.failure("--predicate: %s", type(made) == "string" and made or made.message)
end

return predicate
