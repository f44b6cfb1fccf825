--- perilune db best: the best candidate of each workload and target.

require "perilune.core".internal() -- diagnostics point at the scripts of others

local best = { description = "Shows the best candidate of each workload and target whose results "
  .. "are right." }

function best.arguments(parser)
  parser:argument("file", "The file of records."):argname "FILE"
end

function best.run(options)
  local db <close> = require "perilune".tune.database { path = options.file, readonly = true }
  for _, row in ipairs(db:list_best()) do
    io.stdout:write(("%d  %s  %s  %s: cost %.4g%s\n   %s\n"):format(row.workload, row.shash,
      row.target, row.kind, row.cost,
      row.confidence and (", confidence %.2f %%"):format(100 * row.confidence) or "",
      row.text == "" and "(no pass)" or row.text))
  end
end

return best
