--- perilune db prune: the best records only.

local numbers = require "perilune.cli.numbers"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local prune = { description = "Deletes all but the best records of each workload, target and kind "
  .. "of candidate." }

function prune.arguments(parser)
  parser:argument("file", "The file of records."):argname "FILE"
  parser:option("--keep", "How many are kept."):argname "N":default "10":convert(numbers.count)
end

function prune.run(options)
  local database = require "perilune".tune.database
  -- A file that is not there is an error; opened for writing it would be made.
  database { path = options.file, readonly = true }:close()
  local db <close> = database { path = options.file }
  io.stdout:write(("%d records deleted\n"):format(db:prune(options.keep)))
end

return prune
