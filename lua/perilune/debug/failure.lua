--- What scripts of the library ask of an error that they have caught.

local core = require "perilune.core"
core.internal()

local failure = {}

--- Whether it stops the work as a whole (Ctrl-C, no memory), so that whoever catches
-- it has to raise it again.
function failure.stops(err)
  return getmetatable(err) == "perilune.Diag"
    and (err.code == "interrupted" or err.code == "memory")
end

--- The error as a diagnostic.
function failure.diag(err)
  if getmetatable(err) == "perilune.Diag" then return err end
  return core.diag("callback", tostring(err))
end

--- f(...), as pcall gives it, but what stops the work is raised.
function failure.catch(f, ...)
  local results = table.pack(pcall(f, ...))
  if not results[1] and failure.stops(results[2]) then core.raise(results[2]) end
  return table.unpack(results, 1, results.n)
end

return failure
