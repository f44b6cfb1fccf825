-- Symbolic dims of types as expressions: what `type.shape` gives as text, such as
-- "2*floordiv(height, 4)", is read, evaluated with numbers and made an expression of the loop
-- level. Called by LowerTE and by the entry of compiled models.
--
-- A dim is an integer, or a table { op =, text =, ... }: op "symbol" has a name; "sum" a constant
-- and a list of terms { coefficient, factors }; others ("floordiv", "truncdiv", "floormod", "min",
-- "max", and "add", "sub", "mul" of what is no dim of a type) two dims a and b. The engine bounds
-- how deep and how long they are.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local symbolic_dim = {}

-- Sizes up to this one are exact where they are computed as floats.
local MOST = 1 << 53

-- --------------------------------------------------------------------- reading

local Reader = {}
Reader.__index = Reader

function Reader:take(pattern)
  local found = self.text:match("^" .. pattern, self.at)
  if found then self.at = self.at + #found end
  return found
end

local escapes = { n = "\n", t = "\t", r = "\r" }

-- A name in quotes; its text stays as it is printed.
function Reader:quoted()
  local first, at = self.at, self.at + 1
  while self.text:sub(at, at) ~= '"' and at <= #self.text do
    at = at + (self.text:sub(at, at) == "\\" and 2 or 1)
  end
  self.at = at + 1
  return self.text:sub(first + 1, at - 1):gsub("\\(.)", function(c) return escapes[c] or c end)
end

function Reader:atom()
  local first = self.at
  if self.text:sub(first, first) == '"' then
    local name = self:quoted()
    return { op = "symbol", name = name, text = self.text:sub(first, self.at - 1) }
  end
  local name = self:take "[^%s%(%)%*%+,%-]+"
  if not name then argument.fail(("the dim '%s' cannot be read"):format(self.text)) end
  if not self:take "%(" then return { op = "symbol", name = name, text = name } end
  local a = self:sum()
  self:take ",%s*"
  local b = self:sum()
  self:take "%)"
  return { op = name, a = a, b = b, text = self.text:sub(first, self.at - 1) }
end

-- coefficient * atom * atom ...
function Reader:term(sign)
  local term = { coefficient = sign, factors = {} }
  repeat
    local number = self:take "%d+"
    if number then
      term.coefficient = term.coefficient * math.tointeger(tonumber(number))
    else
      table.insert(term.factors, self:atom())
    end
  until not self:take "%*"
  return term
end

function Reader:sum()
  local first, sum = self.at, { op = "sum", constant = 0, terms = {} }
  repeat
    local sign = self:take "[%+%-]"
    local term = self:term(sign == "-" and -1 or 1)
    if #term.factors == 0 then
      sum.constant = sum.constant + term.coefficient
    else
      table.insert(sum.terms, term)
    end
  until not self.text:find("^[%+%-]", self.at)
  sum.text = self.text:sub(first, self.at - 1)
  local only = sum.terms[1]
  if not only then return sum.constant end
  if sum.constant == 0 and not sum.terms[2] and only.coefficient == 1 and #only.factors == 1 then
    return only.factors[1]
  end
  return sum
end

--- The dim of an integer or a text; nil of "?".
function symbolic_dim.parse(dim)
  if type(dim) ~= "string" then return dim end
  if dim == "?" then return nil end
  return setmetatable({ text = dim, at = 1 }, Reader):sum()
end

-- ------------------------------------------------------------------ evaluation

local calls = {
  add = function(a, b) return a + b end,
  sub = function(a, b) return a - b end,
  mul = function(a, b) return a * b end,
  floordiv = function(a, b) return b ~= 0 and a // b or nil end,
  truncdiv = function(a, b)
    if b == 0 then return nil end
    local quotient = math.abs(a) // math.abs(b)
    return (a < 0) == (b < 0) and quotient or -quotient
  end,
  floormod = function(a, b) return b ~= 0 and a % b or nil end,
  min = math.min,
  max = math.max,
}

local evaluate

local function sum_of(dim, values)
  local sum = dim.constant
  for _, term in ipairs(dim.terms) do
    local product = term.coefficient
    for _, factor in ipairs(term.factors) do
      local value, reason = evaluate(factor, values)
      if not value then return nil, reason end
      if math.abs(product * 1.0 * value) > MOST then return nil, dim.text .. " overflows" end
      product = product * value
    end
    sum = sum + product
    if math.abs(sum) > MOST then return nil, dim.text .. " overflows" end
  end
  return sum
end

--- The integer that a dim is for these sizes of symbols (by name); nil and a reason.
function evaluate(dim, values)
  if math.type(dim) == "integer" then return dim end
  if dim.op == "symbol" then
    local value = values[dim.name]
    if not value then return nil, ("the size of %s is not known"):format(dim.text) end
    return value
  end
  if dim.op == "sum" then return sum_of(dim, values) end
  local a, reason = evaluate(dim.a, values)
  if not a then return nil, reason end
  local b, other = evaluate(dim.b, values)
  if not b then return nil, other end
  if math.abs(1.0 * a * b) > MOST then return nil, dim.text .. " overflows" end
  local result = calls[dim.op](a, b)
  if not result then return nil, ("%s divides by zero"):format(dim.text) end
  return result
end
symbolic_dim.evaluate = evaluate

-- ----------------------------------------------------------------- expressions

local builders = {
  add = tir.add, sub = tir.subtract, mul = tir.multiply,
  floordiv = tir.floordiv, truncdiv = tir.truncdiv, floormod = tir.floormod, min = tir.min,
  max = tir.max,
}

local function times(a, b) return a == 1 and b or b == 1 and a or a * b end

local expression

local function sum_expression(dim, known, dtype)
  local sum
  for _, term in ipairs(dim.terms) do
    local product = 1
    for _, factor in ipairs(term.factors) do
      local value = expression(factor, known, dtype)
      if not value then return nil end
      product = times(product, value)
    end
    if term.coefficient ~= 1 then product = product * operand.const(term.coefficient, dtype) end
    sum = sum and sum + product or product
  end
  return dim.constant == 0 and sum or sum + operand.const(dim.constant, dtype)
end

--- The dim as an expression. known(text) gives what is known of a part by its text, else nil; an
-- integer stays one. nil: a symbol is not known.
function expression(dim, known, dtype)
  if math.type(dim) == "integer" then return dim end
  local found = known(dim.text)
  if found ~= nil then return found end
  if dim.op == "symbol" then return nil end
  if dim.op == "sum" then return sum_expression(dim, known, dtype) end
  local a, b = expression(dim.a, known, dtype), expression(dim.b, known, dtype)
  if not a or not b then return nil end
  if type(a) == "number" then a = operand.const(a, dtype) end
  if type(b) == "number" then b = operand.const(b, dtype) end
  return builders[dim.op](a, b)
end
symbolic_dim.expression = expression

--- The names of the symbols of a dim, added to a set.
function symbolic_dim.symbols(dim, into)
  if math.type(dim) == "integer" then return into end
  if dim.op == "symbol" then
    into[dim.name] = true
  elseif dim.op == "sum" then
    for _, term in ipairs(dim.terms) do
      for _, factor in ipairs(term.factors) do symbolic_dim.symbols(factor, into) end
    end
  else
    symbolic_dim.symbols(dim.a, into)
    symbolic_dim.symbols(dim.b, into)
  end
  return into
end

--- Whether a type, or a part of it, has a dim that is no integer.
function symbolic_dim.is_symbolic(type_)
  for _, part in ipairs(type_.kind == "tuple" and type_.parts or { type_ }) do
    if part.kind == "tuple" then
      if symbolic_dim.is_symbolic(part) then return true end
    elseif part.kind == "tensor" then
      for _, dim in ipairs(part.shape or {}) do
        if math.type(dim) ~= "integer" then return true end
      end
    end
  end
  return false
end

return symbolic_dim
