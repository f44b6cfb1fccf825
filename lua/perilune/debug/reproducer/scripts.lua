--- The scripts that the passes of a pipeline come from: found when a reproducer is
-- written, run for their passes when it is replayed.

local core = require "perilune.core"
core.internal()

local scripts = {}

-- Arguments of scripts, by chunk name.
local known_arguments = {}

--- Tells what the script of a chunk was given, for reproducers.
function scripts.given(chunk, arguments) known_arguments[chunk] = arguments end

-- ------------------------------------------------------------------- finding

-- Passes inside and required, each once, in order.
local function all_passes(pass)
  local list, seen = { pass }, {}
  local at = 1
  local function add(passes)
    for _, inner in ipairs(passes or {}) do list[#list + 1] = inner end
  end
  while list[at] do
    local each = list[at]
    add(each.passes)
    add(each.otherwise)
    for _, name in ipairs(each.required) do
      local required = not seen[name] and core.registered(name)
      seen[name] = true
      if required then list[#list + 1] = required end
    end
    at = at + 1
  end
  return list
end

local function script_of(chunk)
  local path = chunk:match "^@(.*)$"
  if not path then
    return chunk:sub(1, 1) ~= "=" and { name = "script", source = chunk } or nil
  end
  local source = require "perilune.read_file"(path)
  return source and { name = path, source = source, arguments = known_arguments[chunk] } or nil
end

--- The scripts of a pass and of those in it: { name, source, arguments }. What
-- comes with the library is not among them.
function scripts.of(pass)
  local list, seen = {}, {}
  for _, each in ipairs(all_passes(pass)) do
    local chunk = each.source
    if chunk and not seen[chunk] then
      seen[chunk] = true
      list[#list + 1] = script_of(chunk)
    end
  end
  return list
end

-- ------------------------------------------------------------------- running

-- Runs `f` and gives the passes that are made meanwhile by name; the first ones
-- keep theirs. Applying a pass ends it.
local function watch(made, f, ...)
  local make = core.pass
  function core.pass(spec)
    local pass = make(spec)
    made[pass.name] = made[pass.name] or pass
    return pass
  end
  local ok, result = core.hold(f, ...)
  core.pass = make
  return ok, result
end

local function is_pass(value)
  return type(value) == "userdata" and getmetatable(value).__name == "perilune.Pass"
end

-- Applying a pass is where a script has made what it has to make.
local function ended_early(failure)
  return type(failure) == "table" and failure.code == "interrupted"
end

-- What the script gives; of a file of rules, a pipeline of them.
local function as_pass(chunk, arguments, name)
  local result = require "perilune.rule".load(name, chunk, arguments)
  local sets = require "perilune.rule.file".sets(result, name)
  return sets and require "perilune.pass".sequential(sets) or result
end

-- What the script gives and makes; nil and a message when it fails.
local function run(script, made, overrides)
  local environment = setmetatable({ arg = { [0] = script.name } }, { __index = _G })
  local chunk, reason = load(script.source, "@" .. script.name, "t", environment)
  if not chunk then return nil, reason end
  local arguments = setmetatable({}, { __index = function(_, key)
    if overrides[key] ~= nil then return overrides[key] end
    return (script.arguments or {})[key]
  end })
  local ok, result = watch(made, as_pass, chunk, arguments, script.name)
  if ok then return is_pass(result) and result or false end
  if ended_early(result) then return false end
  return nil, type(result) == "table" and result.text or tostring(result)
end

-- Those that come with the library and are registered nowhere.
local function add_shipped(made)
  for _, row in ipairs(require "perilune.pipelines") do
    if made[row.name] == nil and not row.registered then
      local ok, pass = pcall(require "perilune.pipelines".chunk(row.name), {})
      made[row.name] = ok and is_pass(pass) and pass or nil
    end
  end
end

-- Calls f with the passes of `made` registered under their names.
local function registered(made, f, ...)
  local added = {}
  for name, pass in pairs(made) do
    if not core.registered(name) and pcall(core.register_object, name, pass) then
      added[#added + 1] = name
    end
  end
  local ok, result = pcall(f, ...)
  for _, name in ipairs(added) do core.unregister(name) end
  return ok, result
end

--- Runs scripts and gives the pipeline of this text: what a script returned, or
-- a new one of the passes that scripts made; nil and an error otherwise. The
-- third result lists what scripts failed with.
function scripts.pipeline(list, text, overrides)
  local made, problems = {}, {}
  for _, script in ipairs(list) do
    local pass, reason = run(script, made, overrides)
    if pass == nil then problems[#problems + 1] = reason end
    if pass and tostring(pass) == text then return pass, nil, problems end
  end
  add_shipped(made)
  local ok, result = registered(made, core.pipeline, text)
  if ok then return result, nil, problems end
  return nil, result, problems
end

return scripts
