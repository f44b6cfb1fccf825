--- Why a candidate has no measurement: a kind and a sentence. Kinds: "error" (it raised), "build",
-- "deadline" (building takes longer than what is left), "timeout", "crash", "status" (of a
-- command), "output" (too much, or none that can be read), "wrong result".

require "perilune.core".internal() -- errors name the scripts of others

local failure = {}

local class = { __name = "failure", __tostring = function(self)
  return ("%s: %s"):format(self.kind, self.message)
end }

--- A failure of that kind. The text of a diagnostic begins with "error: ", which the kind says.
function failure.new(kind, format, ...)
  local message = format:format(...):gsub("^error: ", "")
  return setmetatable({ kind = kind, message = message }, class)
end

--- Whether an error says that the user stopped the work (Ctrl-C): it is none of a candidate's.
function failure.is_interrupt(err)
  local kind = type(err)
  return (kind == "userdata" or kind == "table") and err.code == "interrupted"
end

--- Whether a value is a failure.
function failure.is(x) return getmetatable(x) == class end

return failure
