--- Reads the file of `perilune tune --substitution-rules`: a rule of graph substitution a line.

local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

--- The option `substitution` of pl.tune.search for a file; nil without one.
return function(path)
  if not path then return nil end
  local file, why = io.open(path, "r")
  if not file then stop.failure("%s", why) end
  local rules = {}
  for line in file:lines() do
    local text = line:match "^%s*(.-)%s*$"
    if text ~= "" and text:sub(1, 1) ~= "#" then rules[#rules + 1] = text end
  end
  file:close()
  if #rules == 0 then stop.failure("%s has no rules", path) end
  return { rules = rules }
end
