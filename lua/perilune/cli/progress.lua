--- A line about the work at hand, on a terminal, when the work takes longer
-- than a second.

local host = require "perilune.cli.host"

return function()
  local started, shown, on = host.clock(), false, host.terminal()
  local progress = {}

  --- Replaces the line.
  function progress.show(text)
    if not on or host.clock() - started < 1 then return end
    io.stderr:write("\r\27[K", text)
    shown = true
  end

  --- Takes it away: something else is to be printed.
  function progress.clear()
    if shown then io.stderr:write "\r\27[K" end
    shown = false
  end

  return progress
end
