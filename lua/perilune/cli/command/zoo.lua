--- perilune zoo: makes models to try things on.

require "perilune.core".internal() -- errors name the scripts of others

local save = require "perilune.cli.save"
local stop = require "perilune.cli.stop"

local command = { description = "Lists the models that can be generated, or writes "
  .. "one." }

function command.arguments(parser)
  parser:argument("name", "The model to generate."):args "?"
  parser:option("-o --output", "Where to write the model; '-' is standard output."):argname "FILE"
  parser:option("--set", "Sets a parameter of the model: layers=2, batch=1."):argname "NAME=VALUE"
    :count "*"
end

local function parameter_rows(parameters)
  local rows = {}
  for i, row in ipairs(parameters) do
    local doc = row.doc
    if row.choices then doc = ("%s: %s"):format(doc, table.concat(row.choices, ", ")) end
    rows[i] = { ("    %s=%s"):format(row.name, row.default), doc }
  end
  return require "perilune.columns"(rows)
end

-- "resnet18: depth=18"
local function preset_line(preset)
  local values = {}
  for name, value in pairs(preset[2]) do values[#values + 1] = ("%s=%s"):format(name, value) end
  table.sort(values)
  if #values == 0 then values[1] = "the parameters above" end
  return ("  %s: %s\n"):format(preset[1], table.concat(values, ", "))
end

local function list(zoo)
  for _, family in ipairs(zoo.families) do
    io.stdout:write(family.name, "\n  ", family.doc, "\n", parameter_rows(family.parameters))
    for _, preset in ipairs(family.presets) do io.stdout:write(preset_line(preset)) end
  end
  io.stdout:write("all of them\n", parameter_rows(zoo.parameters))
end

local function read_values(texts)
  local values = {}
  for _, text in ipairs(texts) do
    local name, value = text:match "^([^=]+)=(.+)$"
    if not name then stop.usage("--set %s: expected NAME=VALUE", text) end
    values[name] = tonumber(value) or value
  end
  return values
end

function command.run(options)
  local zoo = require "perilune.zoo"
  if not options.name then
    if options.output then stop.usage "-o requires the name of a model" end
    if options.set[1] then stop.usage "--set requires the name of a model" end
    list(zoo)
    return 0
  end
  local model, reason = zoo.build(options.name, read_values(options.set))
  if not model then stop.usage("%s", reason) end
  if not options.output then stop.usage "give the output file with -o FILE" end
  if options.output == "-" then
    save.bytes(model:tostring())
    return 0
  end
  local ok
  ok, reason = model:save(options.output)
  if not ok then stop.failure("%s", reason) end
  return 0
end

return command
