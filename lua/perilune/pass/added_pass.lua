--- The value of the config key tir.add_lower_pass, whose entries are texts "PHASE:PASS" in the
-- engine: Lua gives { phase, pass } too, as TVM does.
--
-- A pass that no text describes is registered: under its name, or with a number behind it where
-- another pass has that name.

local argument = require "perilune.argument"
local core = require "perilune.core"
core.internal()

-- The names under which passes were registered here.
local names = setmetatable({}, { __mode = "k" })

local function register(pass)
  local name, n = pass.info.name, 1
  while core.registered(name) do
    n = n + 1
    name = ("%s#%d"):format(pass.info.name, n)
  end
  core.register_object(name, pass)
  names[pass] = name
  return name
end

-- The text of a registered pass with its options; nil for others.
local function text_of(pass)
  return core.is_registered(pass) and tostring(pass) or nil
end

local function name_of(value, make)
  if type(value) == "string" then return value end
  local pass = make(value)
  return names[pass] or text_of(pass) or register(pass)
end

local function entry_text(entry, i, make)
  if type(entry) == "string" then return entry end
  if type(entry) ~= "table" or math.type(entry[1]) ~= "integer" or entry[1] < 0
    or entry[2] == nil then
    argument.fail(("tir.add_lower_pass: entry %d: { phase, pass } with a phase from 0 to 3 "
      .. "expected"):format(i))
  end
  return ("%d:%s"):format(entry[1], name_of(entry[2], make))
end

--- The texts of a list of entries; `make` gives the pass that a value stands for.
return function(list, make)
  if type(list) ~= "table" then
    argument.fail("tir.add_lower_pass: a list of { phase, pass } expected, got "
      .. argument.kind_of(list))
  end
  local texts = {}
  for i, entry in ipairs(list) do texts[i] = entry_text(entry, i, make) end
  return texts
end
