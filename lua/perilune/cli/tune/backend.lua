--- Reads a script that returns a backend of pl.tune.placement, as a table; `option` is the one that
-- names it.

local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

return function(path, option)
  local chunk, reason = loadfile(path)
  if not chunk then stop.failure("%s: %s", option, reason) end
  local backend = chunk()
  if type(backend) ~= "table" then
    stop.failure("%s: %s: it returns a %s, and a backend (a table) is expected", option, path,
      type(backend))
  end
  return backend
end
