--- Arguments of public functions, checked where they come in: what is wrong is told
-- at the line outside of the library that the call came from.
--
--     argument.table(values, "pl.bind", "values")
--     -> script.lua:7: pl.bind: values: a table expected, got number

local core = require "perilune.core"
core.internal()

local argument = {}

-- What the sources of the library's own chunks begin with.
local own = debug.getinfo(1, "S").source:match "^(.-)argument"

--- "Module", "Node", "Tensor", "Type", "Op", "Pass", ... for objects of the
-- library, else what type() says.
function argument.kind_of(value)
  local class = getmetatable(value)
  if type(class) ~= "string" then return type(value) end
  return class:match "^perilune%.(%w+)$" or type(value)
end

local kind_of = argument.kind_of

-- The level, for its caller's error, of the innermost line that is not the library's; 0:
-- there is none.
local function outer_level()
  local level, info = 3, debug.getinfo(3, "S")
  while info and (info.what == "C" or info.source:sub(1, #own) == own) do
    level = level + 1
    info = debug.getinfo(level, "S")
  end
  return info and level - 1 or 0
end

--- Raises at the innermost line that is not the library's.
function argument.fail(message) error(message, outer_level()) end

--- Likewise, naming the function that was called there: "floordiv: a PrimExpr expected, got nil".
function argument.expected(wanted, value)
  local level = outer_level()
  local name = level > 1 and debug.getinfo(level - 1, "n").name
  error(("%s%s expected, got %s"):format(name and name .. ": " or "", wanted,
    argument.kind_of(value)), level)
end

local function wrong(where, what, wanted, value)
  argument.fail(("%s: %s%s expected, got %s"):format(where, what and what .. ": " or "", wanted,
    kind_of(value)))
end

--- A table, string, number or function, or what can be called; `what` is the argument's name.
function argument.table(value, where, what)
  if type(value) ~= "table" then wrong(where, what, "a table", value) end
  return value
end

function argument.string(value, where, what)
  if type(value) ~= "string" then wrong(where, what, "a string", value) end
  return value
end

function argument.callable(value, where, what)
  local meta = getmetatable(value)
  if type(value) ~= "function" and not (type(meta) == "table" and meta.__call) then
    wrong(where, what, "a function", value)
  end
  return value
end

--- A node of the program.
function argument.node(value, where, what)
  if kind_of(value) ~= "Node" then wrong(where, what, "a node", value) end
  return value
end

--- "; did you mean 'x'?" for a name that is none of a set's, or "".
function argument.near(name, set)
  local names = {}
  for known in pairs(set) do names[#names + 1] = tostring(known) end
  table.sort(names)
  return core.suggest(tostring(name), names)
end

--- The number of a name, or the number itself, of a table of numbers by name; nil is 0.
function argument.choice(value, where, what, numbers)
  if value == nil then return 0 end
  if numbers[value] then return numbers[value] end
  for _, number in pairs(numbers) do if value == number then return number end end
  argument.fail(("%s: there is no %s '%s'%s"):format(where, what, tostring(value),
    argument.near(value, numbers)))
end

--- A table of options, or an empty one. Those that are none of `names`, a list, are
-- errors when it is given.
function argument.options(value, where, names)
  if value == nil then return {} end
  argument.table(value, where, "options")
  local known = {}
  for _, name in ipairs(names or {}) do known[name] = true end
  for name in pairs(names and value or {}) do
    if not known[name] then
      argument.fail(("%s: there is no option '%s'%s"):format(where, tostring(name),
        core.suggest(tostring(name), names)))
    end
  end
  return value
end

return argument
