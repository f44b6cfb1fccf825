--- What `--set KEY=VALUE` means, in this order: an option of a pass (KEY is
-- Pass.option), a config key, an argument of the pipeline script.

local core = require "perilune.core"
local registry = require "perilune.cli.registry"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local settings = {}

-- The type that the option or key declares decides; nothing declared: what the
-- text looks like.
local function value_of(text, row)
  if row and row.type == "string" then return text end
  if text == "true" then return true end
  if text == "false" then return false end
  return tonumber(text) or text
end

local function find_row(rows, name)
  for _, row in ipairs(rows) do
    if row.name == name then return row end
  end
end

-- Every key that may be set without a script, for "did you mean".
local function known_keys()
  local keys = {}
  for _, pass in ipairs(registry.passes()) do
    for _, row in ipairs(pass.option_rows) do keys[#keys + 1] = pass.name .. "." .. row.name end
  end
  for _, row in ipairs(core.config_rows()) do keys[#keys + 1] = row.name end
  return keys
end

local function declared(key)
  local name, option = key:match "^([^.]+)%.(.+)$"
  local pass = name and registry.find(name)
  if not pass then return find_row(core.config_rows(), key) end
  local row = find_row(pass.option_rows, option)
  if not row then
    stop.usage("--set %s: pass '%s' has no option '%s'%s", key, name, option,
      core.suggest(key, known_keys()))
  end
  return row
end

--- Splits the texts into the context's config and what is left for a script:
-- config, arguments.
function settings.read(texts)
  local config, arguments = {}, {}
  for _, text in ipairs(texts) do
    local key, value = text:match "^([^=]+)=(.*)$"
    if not key then stop.usage("--set %s: expected KEY=VALUE", text) end
    local row = declared(key)
    if row then config[key] = value_of(value, row) else arguments[key] = value_of(value) end
  end
  return config, arguments
end

local function complain(key, asked)
  local names = known_keys()
  for name in pairs(asked) do names[#names + 1] = tostring(name) end
  table.sort(names)
  local near = core.suggest(key, names)
  if near == "" then near = "; there is: " .. table.concat(names, ", ") end
  stop.usage("--set %s: no option, config key or script argument is called so%s", key, near)
end

--- The arguments as a script sees them: reading one tells that it exists.
-- Returns the table for the script, and a function that complains about those
-- the script did not ask for.
function settings.arguments(given)
  local asked = {}
  local function ask(_, key)
    asked[key] = true
    return given[key]
  end
  local function check()
    for key in pairs(given) do
      if not asked[key] then complain(key, asked) end
    end
  end
  return setmetatable({}, { __index = ask }), check
end

return settings
