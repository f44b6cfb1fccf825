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

-- The numbers of the files PREFIX_N.pb, as keys, and the greatest, or -1.
local function numbers(folder, prefix)
  local names, reason = host.list(folder)
  if not names then return nil, reason end
  local found, last = {}, -1
  for _, name in ipairs(names) do
    local number = math.tointeger(tonumber(name:match("^" .. prefix .. "_(%d+)%.pb$")))
    if number then found[number], last = true, math.max(last, number) end
  end
  return found, last
end

-- One value a row of `rows`, what default(row) gives where there is no file; a
-- list with its length in n.
local function read(folder, prefix, rows, default)
  local found, last = numbers(folder, prefix)
  if not found then return nil, last end
  if last >= #rows then
    return nil, ("%s/%s_%d.pb: the model has %d %ss"):format(folder, prefix, last, #rows, prefix)
  end
  local values = { n = #rows }
  for i, row in ipairs(rows) do
    local path = ("%s/%s_%d.pb"):format(folder, prefix, i - 1)
    local value, diag
    if found[i - 1] then value, diag = pl.onnx.load_value(path, row.type)
    else value, diag = default(row) end
    if diag then return nil, diag.message end
    if value == nil and not found[i - 1] then
      return nil, ("%s is missing: '%s'"):format(path, row.name)
    end
    values[i] = value
  end
  return values
end

--- What to run a model on, from files and the model's own defaults; a list of
-- values with its length in n, or nil and the reason. The rows are those of
-- perilune.cli.signature.
function dataset.inputs(folder, rows, module)
  return read(folder, "input", rows, function(row) return pl.onnx.default(module, row.name) end)
end

--- What should come out, likewise.
function dataset.outputs(folder, rows)
  return read(folder, "output", rows, function() end)
end

return dataset
