--- perilune fmt: prints a model as Relay text, in the one form that text has.

local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local fmt = {
  description = "Prints the model FILE (ONNX, or NAME.relay) as Relay text on standard output.",
}

function fmt.arguments(parser)
  parser:argument("file", "The model to read."):argname "FILE"
end

function fmt.run(options)
  local pl = require "perilune"
  local module, diag = pl.load(options.file)
  if not module then error(diag, 0) end
  local ok, reason = io.stdout:write(tostring(module))
  if not ok then stop.failure("standard output: %s", reason) end
  return 0
end

return fmt
