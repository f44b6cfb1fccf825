--- Options of passes and instruments, and config keys, as scripts give them.
--
--     options = { depth = 3, { name = "mode", default = "fast", choices = { "fast", "small" } } }
--     options = { limit = { default = 8, least = 0, most = 64, doc = "How many." } }
--     options = { loops = { doc = "A table.", fields = { step = 0, explicit = true } } }

local argument = require "perilune.argument"
require "perilune.core".internal() -- errors name the scripts of others

local option = {}

-- Whether the value describes an option, and is not its default.
local function is_row(value)
  return type(value) == "table" and (value.default ~= nil or value.fields ~= nil)
end

local function copy_row(row, name)
  local copy = {}
  for field, value in pairs(row) do copy[field] = value end
  copy.name = name or row.name
  if type(copy.choices) == "table" then copy.choices = table.concat(copy.choices, "|") end
  if type(copy.fields) == "table" then copy.fields = option.rows(copy.fields) end
  return copy
end

--- One row: a copy of `value` when that is a row, else one whose default it is.
function option.row(name, value)
  return copy_row(is_row(value) and value or { default = value }, name)
end

--- Rows in order, then those given as name = row or name = default by name.
function option.rows(options)
  if type(options) ~= "table" then
    argument.fail(("options are a table, got a %s"):format(type(options)))
  end
  local rows, names = {}, {}
  for i, row in ipairs(options) do
    if type(row) ~= "table" then
      argument.fail(("option %d: a table { name =, default = } expected, got a %s"):format(i,
        type(row)))
    end
    rows[i] = copy_row(row)
  end
  for name in pairs(options) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do rows[#rows + 1] = option.row(name, options[name]) end
  return rows
end

return option
