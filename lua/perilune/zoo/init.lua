--- Models that are made here, to try things on: perilune zoo NAME -o FILE.
--
--     local zoo = require "perilune.zoo"
--     local m = assert(zoo.build("bert", { layers = 2, batch = 1 }))
--     assert(m:save "bert.onnx")
--
-- A family is a module with `name`, `doc`, `parameters` (rows of name, default
-- and doc; `choices`, or `least` and `most`), `presets` (pairs of a name and
-- values), `build(model, values)` and, where values must suit each other,
-- `check(values)`, which gives the two names of which the first is to be a
-- multiple of the second. Sizes are the papers' by default, names of dims (N,
-- S) stand for what is only known when the model runs.

require "perilune.core".internal() -- errors name the scripts of others

local suggest = require "perilune.core".suggest
local model = require "perilune.zoo.model"

local zoo = {}

--- In order: what `perilune zoo` lists.
zoo.families = {}
for i, name in ipairs { "resnet", "mobilenetv2", "bert", "gpt2", "vit", "lstm" } do
  zoo.families[i] = require("perilune.zoo." .. name)
end

--- What every family takes as well.
zoo.parameters = {
  { name = "seed", default = 0, least = math.mininteger, most = math.maxinteger,
    doc = "of the weights" },
  { name = "opset", default = 17, least = 14, most = 22,
    doc = "ONNX operator set; from 17, 18 and 20 on exporters write other operators" },
}

--- Every name that zoo.build takes.
function zoo.names()
  local names = {}
  for _, family in ipairs(zoo.families) do
    names[#names + 1] = family.name
    for _, preset in ipairs(family.presets) do names[#names + 1] = preset[1] end
  end
  return names
end

-- Papers, exporters and shells write ViT-B/16 in as many ways.
local function bare(name) return (name:lower():gsub("[-_/ ]", "")) end

-- The family of that name, and the values that the name stands for.
local function find(name)
  local wanted = bare(name)
  for _, family in ipairs(zoo.families) do
    if bare(family.name) == wanted then return family, {} end
    for _, preset in ipairs(family.presets) do
      if bare(preset[1]) == wanted then return family, preset[2] end
    end
  end
  local names = zoo.names()
  local near = suggest(name, names)
  if near == "" then near = "; there is: " .. table.concat(names, ", ") end
  return nil, ("no model '%s' in the zoo%s"):format(name, near)
end

-- ------------------------------------------------------------------ parameters

local function number_problem(row, value)
  local least, most = row.least or 1, row.most or 1000000
  local integer = math.type(row.default) == "integer" or type(row.default) == "string"
  if integer and math.type(value) ~= "integer" then return "an integer" end
  if value < least or value > most then return ("from %s to %s"):format(least, most) end
end

local function choice_problem(row, value)
  for _, choice in ipairs(row.choices) do
    if choice == value then return end
  end
  return "one of " .. table.concat(row.choices, ", ")
end

-- What a value is expected to be, when it is not.
local function problem(row, value)
  if row.choices then return choice_problem(row, value) end
  if type(value) == "number" then return number_problem(row, value) end
  if type(row.default) ~= "string" then return "a number" end
  if type(value) ~= "string" or not value:find "^[%a_][%w_]*$" then
    return "a number, or a name as of a variable"
  end
end

local function each_row(family)
  local rows = table.move(family.parameters, 1, #family.parameters, 1, {})
  return table.move(zoo.parameters, 1, #zoo.parameters, #rows + 1, rows)
end

local function find_unknown(family, rows, options)
  local names, known = {}, {}
  for i, row in ipairs(rows) do names[i], known[row.name] = row.name, true end
  for name in pairs(options) do
    if not known[name] then
      local near = suggest(tostring(name), names)
      if near == "" then near = "; there is: " .. table.concat(names, ", ") end
      return ("%s has no parameter '%s'%s"):format(family.name, name, near)
    end
  end
end

-- The values of all parameters, or nil and what is wrong.
local function values_of(family, preset, options)
  local rows, values = each_row(family), {}
  local unknown = find_unknown(family, rows, options)
  if unknown then return nil, unknown end
  for _, row in ipairs(rows) do
    local value = options[row.name]
    if value == nil then value = preset[row.name] end
    if value == nil then value = row.default end
    local wanted = problem(row, value)
    if wanted then
      return nil, ("%s=%s: %s is expected"):format(row.name, value, wanted)
    end
    values[row.name] = value
  end
  return values
end

--- The model of that name (upper case, '-' and '_' do not count), ready to be
-- saved; nil and what is wrong.
function zoo.build(name, options)
  local family, preset = find(name)
  if not family then return nil, preset end
  local values, reason = values_of(family, preset, options or {})
  if not values then return nil, reason end
  if family.check then
    local multiple, of = family.check(values)
    if multiple then
      return nil, ("%s=%s is not a multiple of %s=%s"):format(multiple, values[multiple], of,
        values[of])
    end
  end
  local m = model.new { name = family.name, opset = values.opset, seed = values.seed,
    ir_version = values.opset < 19 and 8 or values.opset < 21 and 9 or 10 }
  family.build(m, values)
  return m
end

return zoo
