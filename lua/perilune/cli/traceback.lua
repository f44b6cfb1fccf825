--- A traceback of a user's mistake: the lines of scripts, without those of the command
-- and of the library that lie between and below.

local core = require "perilune.core"
core.internal() -- errors name the scripts of others

--- The message, and the lines when there are more than the one it begins with. A mistake
-- in the command itself, in which no script takes part, is shown with all its lines.
return function(message)
  local text, lines = core.traceback()
  if lines == 0 then return debug.traceback(message, 2) end
  return lines == 1 and message or message .. "\n" .. text
end
