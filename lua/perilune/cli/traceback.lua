--- A traceback of a user's mistake: the lines of scripts, without those of the command
-- and of the library that lie between and below.

local core = require "perilune.core"
core.internal() -- errors name the scripts of others

-- "function 'helper'", "main chunk"
local function name_of(info)
  if info.what == "main" then return "main chunk" end
  if info.name then return ("function '%s'"):format(info.name) end
  return ("function <%s:%d>"):format(info.short_src, info.linedefined)
end

-- The lines of scripts, innermost first.
local function lines_of_scripts(level)
  local lines = {}
  while true do
    local info = debug.getinfo(level, "Sln")
    if not info then return lines end
    if info.what ~= "C" and not core.is_internal(info.source)
      and not info.short_src:find "argparse" then
      lines[#lines + 1] = ("\t%s:%d: in %s"):format(info.short_src, info.currentline,
        name_of(info))
    end
    level = level + 1
  end
end

--- The message, and the lines when there are more than the one it begins with. A mistake
-- in the command itself, in which no script takes part, is shown with all its lines.
return function(message)
  local lines = lines_of_scripts(3)
  if #lines == 0 then return debug.traceback(message, 2) end
  if #lines == 1 then return message end
  return ("%s\nstack traceback:\n%s"):format(message, table.concat(lines, "\n"))
end
