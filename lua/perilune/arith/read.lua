-- Reads a PrimExpr in TVMScript's syntax, as tir prints it: `T.min(x, y * 2) // 4`.
--
-- Names are looked up in a table of Vars and Buffers. Precedence is Python's. A stack of operands
-- and one of operators replace recursion.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local read = {}

local binary = {
  ["or"] = { 1, "Or" }, ["and"] = { 2, "And" },
  ["=="] = { 4, "EQ" }, ["!="] = { 4, "NE" }, ["<"] = { 4, "LT" }, ["<="] = { 4, "LE" },
  [">"] = { 4, "GT" }, [">="] = { 4, "GE" },
  ["+"] = { 5, "Add" }, ["-"] = { 5, "Sub" },
  ["*"] = { 6, "Mul" }, ["//"] = { 6, "FloorDiv" }, ["/"] = { 6, "Div" }, ["%"] = { 6, "FloorMod" },
}

-- ------------------------------------------------------------------- tokens

local patterns = {
  { "number", "^(%d+%.?%d*[eE][+-]?%d+)" }, { "number", "^(%d+%.%d*)" }, { "number", "^(%d+)" },
  { "name", "^([%a_][%w_.]*)" }, { "string", '^"([^"]*)"' },
  { "sign", "^(//)" }, { "sign", "^([<>=!]=)" }, { "sign", "^([-+*/%%<>()%[%],={}:])" },
}

local function next_token(text, at)
  at = text:find("%S", at)
  if not at then return nil, nil, #text + 1 end
  for _, row in ipairs(patterns) do
    local first, last, found = text:find(row[2], at)
    if first then return row[1], found, last + 1 end
  end
  argument.fail(("TVMScript: unexpected '%s'"):format(text:sub(at, at + 10)))
end

-- -------------------------------------------------------------------- calls

local function negative(of)
  local number = operand.number(of)
  if not number then return operand.folded("Sub", operand.const(0, of.dtype), of) end
  return operand.const(-number, of.dtype)
end

local dtype_of_call = { int = "int32", float = "float32" }

-- T.int32(5), T.float32(1.5), T.bool(True)
local function constant(name, args)
  local dtype, value = dtype_of_call[name] or name, args[1]
  local number = type(value) == "userdata" and operand.number(value) or value
  if operand.is_float(dtype) then return operand.FloatImm(dtype, number) end
  return operand.IntImm(dtype, number)
end

local nodes = {
  Add = 2, Sub = 2, Mul = 2, Div = 2, Mod = 2, FloorDiv = 2, FloorMod = 2, EQ = 2, NE = 2, LT = 2,
  LE = 2, GT = 2, GE = 2, And = 2, Or = 2, Select = 3,
}
local renamed = { truncmod = "Mod", truncdiv = "Div", min = "Min", max = "Max",
  floordiv = "FloorDiv", floormod = "FloorMod" }

local function let(args)
  local out = args[1]
  for i = #args.where, 1, -1 do out = tir.Let(args.where[i][1], args.where[i][2], out) end
  return out
end

local calls = {
  Cast = function(args) return tir.Cast(args[1], args[2]) end,
  Ramp = function(args) return tir.Ramp(args[1], args[2], operand.number(args[3])) end,
  Broadcast = function(args) return tir.Broadcast(args[1], operand.number(args[2])) end,
  Not = function(args) return tir.Not(args[1]) end,
  Any = function() return tir.Any() end,
  Let = let,
  likely = function(args) return tir.Call("bool", "likely", args) end,
  if_then_else = function(args) return tir.Call(args[2].dtype, "if_then_else", args) end,
}

local function call(name, args)
  local short = name:match "^T%.(.*)$"
  if not short then argument.fail(("TVMScript: no function is called '%s'"):format(name)) end
  if calls[short] then return calls[short](args) end
  short = renamed[short] or short
  if nodes[short] or short == "Min" or short == "Max" then
    return tir[short](table.unpack(args))
  end
  if core.builtin(short) then return tir.Call(args[1].dtype, short, args) end
  return constant(short, args)
end

-- --------------------------------------------------------------- the reader

local function name_value(self, name)
  if name == "True" then return tir.const(true, "bool") end
  if name == "False" then return tir.const(false, "bool") end
  local value = self.names[name]
  if value == nil then argument.fail(("TVMScript: '%s' is not declared"):format(name)) end
  return value
end

local function apply(self)
  local op = table.remove(self.operators)
  local b = table.remove(self.operands)
  if op.sign == "not" then
    self.operands[#self.operands + 1] = tir.Not(b)
  elseif op.sign == "neg" then
    self.operands[#self.operands + 1] = negative(b)
  else
    local a = table.remove(self.operands)
    self.operands[#self.operands + 1] = tir[op.kind](a, b)
  end
end

-- Applies what binds at least as tightly, down to the last opening bracket.
local function reduce(self, level)
  local top = self.operators[#self.operators]
  while top and not top.open and top.level >= level do
    apply(self)
    top = self.operators[#self.operators]
  end
end

local function open(self, kind, name)
  self.operators[#self.operators + 1] =
    { open = kind, name = name, args = {}, depth = #self.operands }
end

local function take_argument(self)
  reduce(self, 0)
  local top = self.operators[#self.operators]
  if not top or not top.open then argument.fail "TVMScript: a bracket is missing" end
  if #self.operands > top.depth then
    local value = table.remove(self.operands)
    if top.key then
      top.args.where = top.args.where or {}
      table.insert(top.args.where, { top.key, value })
      top.key = nil
    else
      top.args[#top.args + 1] = value
    end
  end
  return top
end

local function close(self)
  local top = take_argument(self)
  table.remove(self.operators)
  local out
  if top.open == "call" then
    out = call(top.name, top.args)
  elseif top.open == "index" then
    out = tir.BufferLoad(top.name, top.args)
  elseif top.open == "map" then
    self.operators[#self.operators].args.where = top.args.where
    return
  else
    out = top.args[1]
  end
  self.operands[#self.operands + 1] = out
end

-- A name in front of ":" inside of { }, the variable of a let.
local function is_key(self, text, after)
  local top = self.operators[#self.operators]
  return top and top.open == "map" and text:find("^%s*:", after)
end

local function declare_key(self, name)
  local top = self.operators[#self.operators]
  self.names[name] = self.names[name] or tir.Var(name, "int32")
  top.key = self.names[name]
end

local function starts_operand(self, token, found, text, after)
  if token == "number" then
    local integer = math.tointeger(tonumber(found))
    local top = self.operators[#self.operators]
    if integer == 0x80000000 and top and top.sign == "neg" then
      table.remove(self.operators)
      self.operands[#self.operands + 1] = operand.const(-integer, "int32")
      return false
    end
    self.operands[#self.operands + 1] = found:find "[.eE]" and operand.FloatImm("float32",
      tonumber(found) + 0.0) or operand.const(integer, integer > 0x7fffffff and "int64" or "int32")
    return false
  elseif token == "string" then
    self.operands[#self.operands + 1] = found
    return false
  elseif token == "name" and (found == "not") then
    self.operators[#self.operators + 1] = { sign = "not", level = 3 }
    return true
  elseif token == "name" and text:find("^%(", after) then
    open(self, "call", found)
    return true, after + 1
  elseif token == "name" and text:find("^=", after) and not text:find("^==", after) then
    return true, after + 1
  elseif token == "name" and is_key(self, text, after) then
    declare_key(self, found)
    return true, text:find(":", after) + 1
  elseif token == "name" then
    self.operands[#self.operands + 1] = name_value(self, found)
    return false
  elseif found == "(" then
    open(self, "group")
    return true
  elseif found == "{" then
    open(self, "map")
    return true
  elseif found == "-" then
    self.operators[#self.operators + 1] = { sign = "neg", level = 7 }
    return true
  elseif found == ")" then
    close(self)
    return false
  end
  argument.fail(("TVMScript: unexpected '%s'"):format(found))
end

local function follows_operand(self, found)
  local row = binary[found]
  if row then
    reduce(self, row[1])
    self.operators[#self.operators + 1] = { sign = found, level = row[1], kind = row[2] }
    return true
  elseif found == "," then
    take_argument(self)
    return true
  elseif found == "[" then
    open(self, "index", table.remove(self.operands))
    return true
  elseif found == ")" or found == "]" or found == "}" then
    close(self)
    return false
  end
  argument.fail(("TVMScript: unexpected '%s'"):format(found))
end

--- The PrimExpr of a text. `names`: the Vars and Buffers in it, by name.
function read.expr(text, names)
  local self = { names = names or {}, operands = {}, operators = {} }
  local at, expects = 1, true
  while true do
    local token, found, after = next_token(text, at)
    if not token then break end
    local skip
    if expects then
      expects, skip = starts_operand(self, token, found, text, after)
    else
      expects = follows_operand(self, found)
    end
    at = skip or after
  end
  reduce(self, 0)
  if #self.operands ~= 1 or #self.operators > 0 then
    argument.fail "TVMScript: the text is no expression"
  end
  return self.operands[1]
end

return read
