--- Files that say what became of a task: they appear complete or not at all.

require "perilune.core".internal() -- errors name the scripts of others

local stop = require "perilune.cli.stop"

local result_file = {}

--- Writes a line of text to a file. Ends the command if it cannot.
function result_file.write(path, text)
  local beside = path .. ".part"
  local file, reason = io.open(beside, "wb")
  if not file then stop.failure("%s", reason) end
  local written, failed = file:write(text, "\n")
  local closed, not_closed = file:close()
  local ok = written and closed
  if ok then ok, reason = os.rename(beside, path) end
  if ok then return end
  os.remove(beside)
  stop.failure("%s: %s", path, failed or not_closed or reason)
end

return result_file
