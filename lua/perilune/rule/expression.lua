--- pl.rule_expression: patterns and replacements of rules as expressions of Lua.
--
--     local e = pl.rule_expression
--     local x, a, b = e.var "x", e.var("a", "const"), e.var("b", "const")
--     pl.rules {
--       { (x + a) * b, x * b + a * b, reason = "multiplication distributes" },
--       { e.op.nn.relu(e.op.nn.relu(x)), e.op.nn.relu(x) },
--       { e.op.reshape(x, { newshape = e.var "s" }), e.op.reshape(x, { newshape = x.shape }) },
--     }
--
-- An expression is immutable, and tostring gives its text in the language of rules
-- (engine/rule/README.md). Variables are the same where their names are. Operators of
-- Lua stand for add, subtract, multiply, divide and negative on nodes, for arithmetic on
-- values (extents, attributes), and | for alternatives of a pattern.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local expression = {} -- pl.rule_expression
local internal = { public = expression }

local texts = setmetatable({}, { __mode = "k" }) -- by expression
local is_value = setmetatable({}, { __mode = "k" })

local class = { __name = "rule expression" }

local function make(text, value)
  local self = setmetatable({}, class)
  texts[self], is_value[self] = text, value
  return self
end

--- Whether a value is an expression.
function internal.is_expression(value) return getmetatable(value) == class end

--- The text of a pattern, and that of a replacement, where variables have no constraints.
function internal.pattern_text(self) return texts[self] end
function internal.replacement_text(self)
  return (texts[self]:gsub("(%?[%w_]+):[%w_]+", "%1"))
end

local function number_text(x)
  if math.type(x) == "integer" then return tostring(x) end
  if x ~= x then argument.fail("a rule cannot say NaN") end
  if x == math.huge then return "inf" end
  if x == -math.huge then return "-inf" end
  local text = ("%.17g"):format(x)
  return text:find "[.e]" and text or text .. ".0"
end

-- The text of an operand or of an attribute's value. Lists are flat.
local function text_of(value, where, in_list)
  local kind = type(value)
  if internal.is_expression(value) then return texts[value] end
  if kind == "number" then return number_text(value) end
  if kind == "boolean" then return tostring(value) end
  if kind == "string" then
    if value:find "['?\n]" then argument.fail(where .. ": a string has no ', ? or line end") end
    return ("'%s'"):format(value)
  end
  if kind ~= "table" or getmetatable(value) or in_list then
    argument.fail(("%s: an expression, a number, a boolean, a string or a list expected, got %s")
      :format(where, argument.kind_of(value)))
  end
  local items = {}
  for i = 1, #value do items[i] = text_of(value[i], where, true) end
  return ("[%s]"):format(table.concat(items, ", "))
end

local function check_name(name, where)
  argument.string(name, where, "name")
  if not name:match "^[%a_][%w_]*$" then
    argument.fail(("%s: a name has letters, digits and _, not '%s'"):format(where, name))
  end
  return name
end

--- A variable: it matches any node, or those that fulfil a constraint such as "const".
-- In an attribute it binds the attribute's value.
function expression.var(name, constraint)
  local text = "?" .. check_name(name, "var")
  if constraint ~= nil then text = text .. ":" .. check_name(constraint, "var") end
  return make(text)
end

--- Matches any node.
function expression.any() return make "_" end

--- Binds what an expression matches or builds to a name: name@(pattern).
function expression.bind(name, pattern)
  return make(("?%s@%s"):format(check_name(name, "bind"), text_of(pattern, "bind")))
end

--- A constant of these integers, or of a number.
function expression.constant(value)
  return make(("constant(%s)"):format(text_of(value, "constant")))
end

-- A plain table with a name in it has attributes.
local function is_attrs(value)
  return type(value) == "table" and not getmetatable(value) and type(next(value)) == "string"
end

local function attrs_text(attrs, parts, where)
  local names = {}
  for name in pairs(attrs) do names[#names + 1] = check_name(name, where) end
  table.sort(names)
  for _, name in ipairs(names) do
    parts[#parts + 1] = ("%s=%s"):format(name, text_of(attrs[name], where .. ": " .. name))
  end
end

local function call_text(name, ...)
  local parts, n = {}, select("#", ...)
  for i = 1, n do
    local value = select(i, ...)
    if i == n and is_attrs(value) then
      attrs_text(value, parts, name)
    else
      parts[i] = text_of(value, ("%s: operand %d"):format(name, i))
    end
  end
  return ("%s(%s)"):format(name, table.concat(parts, ", "))
end

local operator = { __name = "operator of rule expressions" }

function operator.__index(self, key)
  local name = rawget(self, 1) and rawget(self, 1) .. "." .. key or key
  return setmetatable({ name }, operator)
end

function operator.__call(self, ...) return make(call_text(rawget(self, 1), ...)) end

--- Calls of operators: op.NAME(operands..., attributes).
expression.op = setmetatable({}, operator)

--- Functions of conditions and attributes (functions.def): fn.NAME(...).
expression.fn = setmetatable({}, { __index = function(_, name)
  return function(...) return make(call_text(name, ...), true) end
end })

-- --------------------------------------------------------------- metamethods

function class:__tostring() return texts[self] end

function class.__newindex() argument.fail "an expression of a rule is immutable" end

-- x.shape, x.rank, ...: a value; v[i]: its element, from 0 on.
function class:__index(key)
  if math.type(key) == "integer" then return make(("%s[%d]"):format(texts[self], key), true) end
  local name = texts[self]:match "^%?[%w_]+" or argument.fail(
    ("only a variable has '%s'; bind what it is of to a name"):format(tostring(key)))
  return make(("%s.%s"):format(name, check_name(key, "a field")), true)
end

local function binary(symbol, name)
  return function(a, b)
    local left, right = text_of(a, name), text_of(b, name)
    if is_value[a] or is_value[b] then
      return make(("(%s %s %s)"):format(left, symbol, right), true)
    end
    if not name then argument.fail(("'%s' is not for nodes"):format(symbol)) end
    return make(("%s(%s, %s)"):format(name, left, right))
  end
end

class.__add, class.__sub = binary("+", "add"), binary("-", "subtract")
class.__mul, class.__div = binary("*", "multiply"), binary("/", "divide")
class.__idiv, class.__mod = binary("//"), binary("%")

function class:__unm()
  return make((is_value[self] and "(-%s)" or "negative(%s)"):format(texts[self]), is_value[self])
end

function class.__bor(a, b)
  return make(("(%s | %s)"):format(text_of(a, "|"), text_of(b, "|")))
end

return internal
