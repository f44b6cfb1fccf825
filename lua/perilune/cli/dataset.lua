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
  local defaults, diag = pl.onnx.defaults(module)
  if not defaults then return nil, tostring(diag) end
  return read(folder, "input", rows, function(row) return defaults[row.name] end)
end

--- What should come out, likewise.
function dataset.outputs(folder, rows)
  return read(folder, "output", rows, function() end)
end

-- Whether the folder has inputs itself.
local function has_inputs(folder)
  local _, last = numbers(folder, "input")
  return type(last) == "number" and last >= 0
end

local function by_name(values, rows)
  local set = {}
  for i, row in ipairs(rows) do set[row.name] = values[i] end
  return set
end

--- The inputs in a folder such as test_data_set_0, or in all such folders inside of it:
-- a list of sets by name of the input; or nil and the reason.
function dataset.named_inputs(folder, rows, module)
  local folders, sets = { { path = folder } }, {}
  if not has_inputs(folder) then folders = dataset.sets(folder) end
  if #folders == 0 then
    return nil, ("%s: there is neither input_0.pb nor test_data_set_0"):format(folder)
  end
  for i, each in ipairs(folders) do
    local values, reason = dataset.inputs(each.path, rows, module)
    if not values then return nil, reason end
    sets[i] = by_name(values, rows)
  end
  return sets
end

-- The shape of a value, or nil.
local function shape_of(value)
  if type(value) == "table" then value = value[1] end
  return type(value) == "userdata" and value.shape or nil
end

--- The shapes of the inputs in the first data set beside a model, by name; nil when
-- there is none, or it is not of this model.
function dataset.example(path, rows, module)
  local folder = path:match "^(.*)/[^/]*$" or "."
  local first = dataset.sets(folder)[1]
  local values = first and dataset.inputs(first.path, rows, module)
  if not values then return nil end
  local shapes = {}
  for i, row in ipairs(rows) do shapes[row.name] = shape_of(values[i]) end
  return shapes
end

return dataset
