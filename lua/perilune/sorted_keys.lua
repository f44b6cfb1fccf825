--- The keys of a table in order, so that what is told about it is the same at every run.
require "perilune.core".internal()

return function(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end
