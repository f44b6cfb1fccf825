--- perilune db tasks: what became of the tasks of a batch.

require "perilune.core".internal() -- diagnostics point at the scripts of others

local tasks = { description = "Shows the tasks of a batch in the file DIR/batch.db: state (new, "
  .. "done or failed), command and model, seconds, where it ran, how often it was tried, and why "
  .. "it failed." }

function tasks.arguments(parser)
  parser:argument("file", "The file of records."):argname "FILE"
  parser:flag("--output", "Shows what they printed, too.")
end

local function line_of(row)
  local parts = { ("%-6s %s"):format(row.state, row.name) }
  if row.seconds then parts[#parts + 1] = ("%.3f s"):format(row.seconds) end
  if row.host then parts[#parts + 1] = "on " .. row.host end
  if (row.tries or 1) > 1 then parts[#parts + 1] = ("%d tries"):format(row.tries) end
  if row.why then parts[#parts + 1] = row.why end
  return table.concat(parts, ", ")
end

function tasks.run(options)
  local db <close> = require "perilune".tune.database { path = options.file, readonly = true }
  for _, row in ipairs(require "perilune.tune.record.tasks".list(db)) do
    print(line_of(row))
    if options.output and row.output and row.output ~= "" then
      print((row.output:gsub("\n*$", "")))
    end
  end
end

return tasks
