--- perilune db export: records as lines of JSON.

local host = require "perilune.cli.host"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local export = { description = "Writes all records as lines of JSON, in the form of TVM's "
  .. "JSONDatabase: workload.json, tuning_record.json and measurement_record.json." }

function export.arguments(parser)
  parser:argument("file", "The file of records."):argname "FILE"
  parser:argument("folder", "The folder, which is made if it is not there."):argname "DIR"
end

function export.run(options)
  local made, reason = host.make_folder(options.folder)
  if not made then stop.failure("%s", reason) end
  local db <close> = require "perilune".tune.database { path = options.file, readonly = true }
  io.stdout:write(("%d records\n"):format(db:export(options.folder)))
end

return export
