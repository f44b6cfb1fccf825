--- perilune db merge: the records of several files in one.

require "perilune.core".internal() -- diagnostics point at the scripts of others

local merge = { description = "Puts the records of other files into FILE; those that it has "
  .. "already are passed over." }

function merge.arguments(parser)
  parser:argument("file", "The file of records, which is made if it is not there."):argname "FILE"
  parser:argument("others", "Files of records."):argname "OTHER":args "+"
end

-- The other files, open: none is missing or something else when FILE is made.
local function open_all(paths, database)
  local list = setmetatable({}, { __close = function(self)
    for _, db in ipairs(self) do db:close() end
  end })
  for i, path in ipairs(paths) do
    local ok, db = pcall(database, { path = path, readonly = true })
    if not ok then
      getmetatable(list).__close(list)
      error(db, 0)
    end
    list[i] = db
  end
  return list
end

function merge.run(options)
  local database = require "perilune".tune.database
  local others <close> = open_all(options.others, database)
  local db <close> = database { path = options.file }
  for i, path in ipairs(options.others) do
    io.stdout:write(("%s: %d new records\n"):format(path, db:merge(others[i])))
  end
end

return merge
