--- Numbers as people read them.

require "perilune.core".internal() -- errors name the scripts of others

local units = {}

--- 25557032 -> "25.6 MB"
function units.bytes(n)
  local names, i = { "B", "kB", "MB", "GB", "TB" }, 1
  while n >= 1000 and i < #names do n, i = n / 1000, i + 1 end
  return (i == 1 and "%d %s" or n < 10 and "%.2f %s" or "%.1f %s"):format(n, names[i])
end

--- 0.00123 -> "1.23 ms"
function units.seconds(s)
  if s < 1e-3 then return ("%.1f us"):format(s * 1e6) end
  if s < 1 then return ("%.2f ms"):format(s * 1e3) end
  return ("%.2f s"):format(s)
end

return units
