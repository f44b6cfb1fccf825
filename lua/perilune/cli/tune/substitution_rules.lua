--- The options of `perilune tune` that are of the space "substitution": costs, and a file of rules,
-- a rule of graph substitution a line.

local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local function read_rules(path)
  local file, why = io.open(path, "r")
  if not file then stop.failure("%s", why) end
  local rules = {}
  for line in file:lines() do
    local text = line:match "^%s*(.-)%s*$"
    if text ~= "" and text:sub(1, 1) ~= "#" then rules[#rules + 1] = text end
  end
  file:close()
  if #rules == 0 then stop.failure("%s has no rules", path) end
  return rules
end

--- The option `substitution` of pl.tune.search for a file and a list of costs; nil without both.
return function(path, costs)
  if not path and #costs == 0 then return nil end
  return { rules = path and read_rules(path) or nil, costs = #costs > 0 and costs or nil }
end
