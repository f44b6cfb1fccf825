--- perilune db import: records from lines of JSON.

require "perilune.core".internal() -- diagnostics point at the scripts of others

local import = { description = "Puts records that `perilune db export` or TVM wrote into a file." }

function import.arguments(parser)
  parser:argument("file", "The file of records, which is made if it is not there."):argname "FILE"
  parser:argument("folder", "The folder of workload.json, tuning_record.json and "
    .. "measurement_record.json, or of MetaSchedule's database_workload.json and "
    .. "database_tuning_record.json; or a file: a log of AutoTVM."):argname "DIR|FILE"
end

function import.run(options)
  local db <close> = require "perilune".tune.database { path = options.file }
  io.stdout:write(("%d new records\n"):format(db:import(options.folder)))
end

return import
