--- Folders of data for a model, as ONNX ships them: input_N.pb and output_N.pb
-- are the Nth input and output of the model, from 0.

local host = require "perilune.cli.host"
local pl = require "perilune"
require "perilune.core".internal()

local dataset = {}

--- The data sets beside a model, by their numbers: { name, path }.
function dataset.sets(folder)
  local sets = {}
  for _, name in ipairs(host.list(folder) or {}) do
    local number = name:match "^test_data_set_(%d+)$"
    if number then
      sets[#sets + 1] = { name = name, path = folder .. "/" .. name, number = tonumber(number) }
    end
  end
  table.sort(sets, function(a, b) return a.number < b.number end)
  return sets
end

-- The numbers of the files PREFIX_N.pb.
local function numbers(folder, prefix)
  local names, reason = host.list(folder)
  if not names then return nil, reason end
  local found = {}
  for _, name in ipairs(names) do
    local number = name:match("^" .. prefix .. "_(%d+)%.pb$")
    if number then found[#found + 1] = math.tointeger(tonumber(number)) end
  end
  table.sort(found)
  return found
end

-- One value a row of `rows`; a list with its length in n.
local function read(folder, prefix, rows)
  local found, reason = numbers(folder, prefix)
  if not found then return nil, reason end
  local last = found[#found] or -1
  if last >= #rows then
    return nil, ("%s/%s_%d.pb: the model has %d %ss"):format(folder, prefix, last, #rows, prefix)
  end
  local values = { n = #rows }
  for i, row in ipairs(rows) do
    if found[i] ~= i - 1 then
      return nil, ("%s/%s_%d.pb is missing: '%s'"):format(folder, prefix, i - 1, row.name)
    end
    local path = ("%s/%s_%d.pb"):format(folder, prefix, i - 1)
    local value, diag = pl.onnx.load_value(path, row.type)
    if diag then return nil, diag.message end
    values[i] = value
  end
  return values
end

--- What to run a model on, and what should come out: lists of values with
-- their lengths in n; or nil and the reason. The names are those of
-- perilune.cli.signature.
function dataset.inputs(folder, inputs) return read(folder, "input", inputs) end

function dataset.outputs(folder, outputs) return read(folder, "output", outputs) end

return dataset
