--- time_limit(deadline, f, ...): the results of pcall(f, ...), whose passes and runs end at that
-- time of the clock with a diagnostic of the code "limit"; math.huge: at their own limits.

local core = require "perilune.core"
core.internal()

return function(deadline, f, ...)
  if deadline == math.huge then return pcall(f, ...) end
  return core.within_seconds(deadline - core.clock(), f, ...)
end
