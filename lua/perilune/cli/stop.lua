--- What a command raises to end with a message and an exit status.

require "perilune.core".internal() -- errors name the scripts of others

local stop = { class = { __name = "perilune.cli.stop" } }
stop.class.__tostring = function(self) return self.message end

local function raise(status, format, ...)
  error(setmetatable({ status = status, message = format:format(...) }, stop.class), 0)
end

--- The arguments make no sense: status 2.
function stop.usage(format, ...) raise(2, format, ...) end

--- The work failed: status 1.
function stop.failure(format, ...) raise(1, format, ...) end

return stop
