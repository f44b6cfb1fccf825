--- Files that say what became of a task: they appear complete or not at all.

require "perilune.core".internal() -- errors name the scripts of others

local stop = require "perilune.cli.stop"

local result_file = {}

--- Writes a line of text to a file. Ends the command if it cannot.
function result_file.write(path, text)
  local ok, reason = require "perilune.replace_file"(path, text .. "\n")
  if not ok then stop.failure("%s", reason) end
end

return result_file
