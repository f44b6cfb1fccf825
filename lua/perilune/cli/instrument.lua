--- What `--instrument` names: NAME{option=value} of pl.instruments, or a script that
-- returns an instrument or a function that makes one.

local host = require "perilune.cli.host"
local pl = require "perilune"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local instrument = {}

local function from_script(path)
  local chunk, reason = loadfile(path)
  if not chunk then stop.failure("%s", reason) end
  host.guard_begin()
  local value = chunk()
  if type(value) == "function" then value = value() end
  host.guard_end()
  if type(value) == "table" then return value end
  stop.failure("%s: a script for --instrument returns an instrument, this one returned a %s", path,
    type(value))
end

local function known_names()
  local names = {}
  for name in pairs(pl.instruments) do names[#names + 1] = name end
  return names
end

local function from_text(text)
  local name, options = text:match "^%s*([%w_.]+)%s*(.*)$"
  local constructor = name and pl.instruments[name]
  if not constructor then
    stop.usage("--instrument %s: no instrument is called '%s'%s", text, name or text,
      require "perilune.core".suggest(name or text, known_names()))
  end
  local ok, made = pcall(constructor.make, constructor, options)
  if not ok then stop.usage("--instrument %s: %s", text, tostring(made)) end
  return made
end

--- The instrument that the text means.
function instrument.find(text)
  if text:find "%.lua$" then return from_script(text) end
  return from_text(text)
end

--- What the instruments have to tell when the passes are done.
function instrument.show(list, out)
  host.guard_begin()
  for _, each in ipairs(list) do
    local class = getmetatable(each)
    if type(class) == "table" and class.__tostring then out:write(tostring(each), "\n") end
  end
  host.guard_end()
end

return instrument
