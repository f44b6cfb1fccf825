--- perilune db merge: the records of several files in one.

require "perilune.core".internal() -- diagnostics point at the scripts of others

local merge = { description = "Puts the records of other files into FILE; those that it has "
  .. "already are passed over." }

function merge.arguments(parser)
  parser:argument("file", "The file of records, which is made if it is not there."):argname "FILE"
  parser:argument("others", "Files of records."):argname "OTHER":args "+"
end

function merge.run(options)
  local database = require "perilune".tune.database
  for _, path in ipairs(options.others) do -- before FILE is made
    local other <close> = database { path = path, readonly = true } -- luacheck: ignore other
  end
  local db <close> = database { path = options.file }
  for _, path in ipairs(options.others) do
    io.stdout:write(("%s: %d new records\n"):format(path, db:merge(path)))
  end
end

return merge
