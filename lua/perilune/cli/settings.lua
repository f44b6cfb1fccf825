--- What `--set KEY=VALUE` means, in this order: an option of a pass (KEY is
-- Pass.option), a config key, an argument of the pipeline script, an option or a
-- key that the script has brought along.

local core = require "perilune.core"
local host = require "perilune.cli.host"
local registry = require "perilune.cli.registry"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local settings = {}

-- What the text of a script's argument looks like.
local function value_of(text)
  if text == "true" then return true end
  if text == "false" then return false end
  return tonumber(text) or text
end

-- Every key that may be set without a script, for "did you mean".
local function known_keys()
  local keys = {}
  for _, pass in ipairs(registry.passes()) do
    for _, row in ipairs(pass.option_rows) do keys[#keys + 1] = pass.name .. "." .. row.name end
  end
  for _, row in ipairs(core.config_rows()) do
    keys[#keys + 1] = row.name
    for _, field in ipairs(row.fields or {}) do keys[#keys + 1] = row.name .. "." .. field.name end
  end
  return keys
end

-- Puts what a key of the config or an option of a pass is set to into `config`;
-- false when nothing is called so.
local function set(config, key, text)
  local ok, read = pcall(core.config_parse, key, text)
  if not ok and read.code == "name" then
    stop.usage("--set %s: %s%s", key, (read.message:gsub("; .*", "")),
      core.suggest(key, known_keys()))
  end
  if not ok then stop.usage("--set %s: %s", key, read.message or read) end
  if not read then return false end
  config[key] = read[key]
  return true
end

-- arguments -> the config beside them, and the texts they come from.
local origins = setmetatable({}, { __mode = "k" })

--- Splits the texts into the context's config and what is left for a script:
-- config, arguments. What a script brings along gets into the config later.
function settings.read(texts)
  local config, arguments, given = {}, {}, {}
  for _, text in ipairs(texts) do
    local key, value = text:match "^([^=]+)=(.*)$"
    if not key then stop.usage("--set %s: expected KEY=VALUE", text) end
    if not set(config, key, value) then
      arguments[key], given[key] = value_of(value), value
    end
  end
  origins[arguments] = { config = config, texts = given }
  host.time_limit(config["limit.seconds"] or 0)
  return config, arguments
end

-- A key that ends in this one, as "FoldConstant.fold" does in "fold".
local function with_prefix(key, names)
  for _, name in ipairs(names) do
    if name:sub(-#key - 1) == "." .. key then return ("; did you mean '%s'?"):format(name) end
  end
  return ""
end

-- What the script has asked for, of which there are few; the rest is listed elsewhere.
local function elsewhere(asked)
  local list = {}
  for name in pairs(asked) do list[#list + 1] = tostring(name) end
  table.sort(list)
  local own = #list > 0 and "; the script asks for " .. table.concat(list, ", ") or ""
  return own .. "; perilune passes lists options and config keys"
end

local function complain(key, asked)
  local names = known_keys()
  for name in pairs(asked) do names[#names + 1] = tostring(name) end
  table.sort(names)
  local near = core.suggest(key, names)
  if near == "" then near = with_prefix(key, names) end
  if near == "" then near = elsewhere(asked) end
  stop.usage("--set %s: no option, config key or script argument has this name%s", key, near)
end

--- The arguments as a script sees them: reading one tells that it exists.
-- Returns the table for the script, and a function that complains about those
-- that the script did not ask for and that are nothing it has registered.
function settings.arguments(given)
  local asked = {}
  local function ask(_, key)
    asked[key] = true
    return given[key]
  end
  local origin = origins[given]
  local function check()
    for key in pairs(given) do
      local known = asked[key] or origin and set(origin.config, key, origin.texts[key])
      if not known then complain(key, asked) end
    end
  end
  return setmetatable({}, { __index = ask }), check
end

--- The option for limits, of commands that run no pipeline.
function settings.option(parser)
  parser:option("--set", "Sets a limit: limit.seconds, limit.memory, limit.steps or limit.depth.")
    :argname "KEY=VALUE":count "*"
end

--- The context that the texts of that option mean; kernels use up to `threads` threads.
function settings.context(texts, threads)
  local config, arguments = settings.read(texts)
  local _, check = settings.arguments(arguments)
  check()
  for key in pairs(config) do
    if not key:find "^limit%." then
      stop.usage("--set %s: this command runs no passes; only limit.* can be set", key)
    end
  end
  config.threads = threads
  local ok, context = pcall(require "perilune".context, { config = config })
  if not ok then stop.usage("--set: %s", tostring(context)) end
  return context
end

return settings
