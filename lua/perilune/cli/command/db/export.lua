--- perilune db export: records as lines of JSON.

local file_exists = require "perilune.file_exists"
local host = require "perilune.cli.host"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local export = { description = "Writes all records as lines of JSON, in the form of TVM's "
  .. "JSONDatabase: workload.json, tuning_record.json and measurement_record.json." }

function export.arguments(parser)
  parser:argument("file", "The file of records."):argname "FILE"
  parser:argument("folder", "The folder, which is made if it is not there."):argname "DIR"
end

local function write(db, folder)
  local made, reason = host.make_folder(folder)
  if not made then stop.failure("%s", reason) end
  return db:export(folder)
end

function export.run(options)
  local db <close> = require "perilune".tune.database { path = options.file, readonly = true }
  local was_there = file_exists(options.folder)
  local ok, result = pcall(write, db, options.folder)
  if not ok then
    if not was_there then os.remove(options.folder) end -- fails where something is in it
    error(result, 0)
  end
  io.stdout:write(("%d records\n"):format(result))
end

return export
