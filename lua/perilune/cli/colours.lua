--- Whether a stream gets colours: a terminal does, unless the variable NO_COLOR of the
-- environment is set and not empty (no-color.org).

local core = require "perilune.core"
core.internal() -- errors name the scripts of others

--- "stdout" or "stderr".
return function(stream)
  return core.terminal(stream) and (os.getenv "NO_COLOR" or "") == ""
end
