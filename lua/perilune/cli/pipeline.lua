--- The pipeline that `opt` runs: from a text, a script file, or the default.

local core = require "perilune.core"
local host = require "perilune.cli.host"
local pl = require "perilune"
local settings = require "perilune.cli.settings"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local pipeline = {}

-- A script may return a pass, or what stands for one in a sequential.
local function as_pass(value, path)
  local ok, pass = pcall(pl.sequential, { value })
  if value ~= nil and ok then return type(value) == "userdata" and value or pass end
  stop.failure("%s: a pipeline script returns a pipeline, this one returned a %s%s", path,
    type(value), ok and "" or ": " .. tostring(pass))
end

local function from_script(chunk, path, given)
  local view, check = settings.arguments(given)
  require "perilune.debug.reproducer.scripts".given("@" .. path, given)
  host.guard_begin()
  local value = chunk(view)
  host.guard_end()
  check()
  return as_pass(value, path)
end

local function from_text(text, given)
  local _, check = settings.arguments(given)
  check()
  local ok, pass = pcall(core.pipeline, text)
  if not ok then stop.usage("%s", tostring(pass)) end
  return pass
end

--- `what`: nil for the default, FILE.lua, or a text. `given`: the arguments of
-- a script by name; one that nobody asks for is an error.
function pipeline.find(what, given)
  if not what then
    local chunk = require "perilune.pipelines".chunk "default"
    return from_script(chunk, "default.lua", given)
  end
  if what:find "%.lua$" then
    local chunk, reason = loadfile(what)
    if not chunk then stop.failure("%s", reason) end
    return from_script(chunk, what, given)
  end
  return from_text(what, given)
end

return pipeline
