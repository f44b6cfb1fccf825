--- The table pl.instruments: constructors of instruments by name.
--
--     pl.instruments.mine = function(...) return { before = ... } end
--     pl.instruments.counter = { doc = "Counts.", options = { step = 1 },
--       make = function(options) return { before = ... } end }
--     pl.instruments.log = { before = function(mod, info) print(info.name) end }
--     for name, constructor in pairs(pl.instruments) do print(name, constructor.doc) end
--     pl.instruments.mine = nil
--
-- What indexing gives is a constructor: callable, with name, doc and options
-- (rows as those of passes). constructor:make(options) takes a table, or text such
-- as "{names=[a,b]}", as a command line has it. Assigning anew replaces a script's
-- instrument; the ones made before stay as they are.

local core = require "perilune.core"
local argument = require "perilune.argument"
local option = require "perilune.pass.option"
core.internal()

local registry = {}

local hooks = { enter = true, exit = true, should_run = true, before = true, after = true }

local function is_callable(value)
  local meta = getmetatable(value)
  return type(value) == "function" or type(meta) == "table" and meta.__call ~= nil
end

local constructor_class = { __name = "instrument constructor" }
constructor_class.__index = constructor_class
function constructor_class.__tostring(self) return self.name end

-- A script's that has options takes them in a table, checked; all others get the
-- arguments as they are.
function constructor_class.__call(self, ...)
  if self.checks then return self:make((...)) end
  return self.build(...)
end

--- The instrument for options that a table or a text gives, each checked.
function constructor_class.make(self, options)
  local values = {}
  local checked = core.options_check(("instrument '%s'"):format(self.name),
    option.rows(self.options), options or {})
  for name, value in pairs(checked) do values[name] = value end
  return (self.from or self.build)(values)
end

-- The constructor that an assigned value means; the level of the caller's caller.
local function read(name, value)
  local self = { name = name, doc = "", options = {} }
  if type(value) == "function" then
    self.build = value
  elseif type(value) ~= "table" then
    argument.fail(("an instrument is a function or a table, got a %s"):format(type(value)))
  elseif value.make ~= nil then
    for field in pairs(value) do
      if field ~= "make" and field ~= "doc" and field ~= "options" then
        argument.fail(("instrument '%s' has no field '%s'%s"):format(name, tostring(field),
          core.suggest(tostring(field), { "make", "doc", "options" })))
      end
    end
    if not is_callable(value.make) then
      argument.fail(("instrument '%s': 'make' is a %s, no function"):format(name, type(value.make)))
    end
    self.build, self.doc, self.checks = value.make, value.doc or "", true
    self.options = core.option_rows(option.rows(value.options or {}))
  else
    local any = false
    for hook in pairs(hooks) do any = any or value[hook] ~= nil end
    if not any and not is_callable(value) then
      argument.fail(("instrument '%s' has neither a hook nor 'make'"):format(name))
    end
    self.build = is_callable(value) and value or function() return value end
  end
  return setmetatable(self, constructor_class)
end

local function position(list, name)
  for i, row in ipairs(list) do
    if row.name == name then return i end
  end
end

local function assign(list, name, value)
  if type(name) ~= "string" then argument.fail("instruments are registered under names") end
  local i = position(list, name)
  if i and list[i].built_in then
    argument.fail(("instrument '%s' is built in; register another name"):format(name))
  end
  if value == nil then
    if i then table.remove(list, i) end
    return
  end
  list[i or #list + 1] = read(name, value)
end

-- Those that have no description come last, by name.
local function built_in(functions, described)
  local list, names = {}, {}
  for _, row in ipairs(described) do
    list[#list + 1] = setmetatable({ name = row.name, doc = row.doc, built_in = true,
      build = functions[row.name], from = row.from,
      options = core.option_rows(option.rows(row.options or {})) },
      constructor_class)
  end
  for name in pairs(functions) do
    if not position(list, name) then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    list[#list + 1] = setmetatable({ name = name, doc = "", built_in = true,
      build = functions[name], options = {} }, constructor_class)
  end
  return list
end

--- The table of those functions; `described` is a list of { name, doc, options, from }:
-- from(options) is the function with its options in a table.
function registry.of(functions, described)
  local list = built_in(functions, described)
  return setmetatable({}, {
    __name = "perilune.instruments",
    __index = function(_, name) return list[position(list, name)] end,
    __newindex = function(_, name, value) assign(list, name, value) end,
    __pairs = function()
      local i = 0
      return function()
        i = i + 1
        if list[i] then return list[i].name, list[i] end
      end
    end,
  })
end

return registry
