--- perilune db list: workloads and targets of a file of records.

require "perilune.core".internal() -- diagnostics point at the scripts of others

local list = { description = "Lists the workloads and targets of a file of records." }

function list.arguments(parser)
  parser:argument("file", "The file of records."):argname "FILE"
end

function list.run(options)
  local db <close> = require "perilune".tune.database { path = options.file, readonly = true }
  for _, row in ipairs(db:list()) do
    io.stdout:write(("%d  %s  %s: %d records, %d failed, best %s, last %s\n"):format(row.workload,
      row.shash, row.target, row.trials, row.failed,
      row.best and ("%.4g"):format(row.best) or "none", os.date("!%Y-%m-%d %H:%M", row.at)))
  end
end

return list
