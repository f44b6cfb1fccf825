-- What the parts of perilune.tir share: dtypes, immediates, operands whose
-- dtypes are matched as TVM matches them.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local operand = {}

local kind_number = {}
for number, row in ipairs(core.kinds()) do kind_number[row.name] = number end

-- ------------------------------------------------------------------- dtypes

local types = {}
local tvm_names = { e4m3_float8 = "float8_e4m3fn", e5m2_float8 = "float8_e5m2" }

local function text(dtype)
  if type(dtype) ~= "string" then argument.expected("a dtype", dtype) end
  return dtype
end

--- A dtype by the library's name of it.
function operand.dtype(dtype)
  text(dtype)
  for theirs, ours in pairs(tvm_names) do
    if dtype:sub(1, #theirs) == theirs then return ours .. dtype:sub(#theirs + 1) end
  end
  return dtype
end

--- The type of a dtype: "int32", "float32x4", "bool", "handle", "void"; types as they are.
function operand.type(dtype)
  if type(dtype) ~= "string" then return dtype end
  local known = types[dtype]
  if known then return known end
  local base, lanes = operand.dtype(dtype), 1
  if not pcall(core.prim_type, base) then
    local head, tail = base:match "^([%w_]-)x(%d+)$"
    if head then base, lanes = head, math.tointeger(tail) end
  end
  known = base == "void" and core.type "()" or core.prim_type(base, lanes)
  types[dtype] = known
  return known
end

--- The type of a pointer to elements of that dtype ("void": of none) in a storage scope.
function operand.PointerType(element, scope)
  return core.pointer_type(operand.type(element), scope or "global")
end

--- One lane of a dtype, how many there are, and how many bits one has.
function operand.scalar(dtype) return (text(dtype):gsub("x%d+$", "")) end

function operand.lanes(dtype) return math.tointeger(text(dtype):match "x(%d+)$" or 1) end

function operand.bits(dtype) return math.tointeger(text(dtype):match "(%d+)" or 1) end

--- "int32x4" of "int32" and 4.
function operand.vector(dtype, lanes)
  return lanes > 1 and ("%sx%d"):format(dtype, lanes) or dtype
end

function operand.is_float(dtype) return text(dtype):find "^b?float" ~= nil end

function operand.is_signed(dtype) return text(dtype):find "^int" ~= nil end

--- Integers and bools.
function operand.is_integer(dtype)
  return text(dtype):find "^u?int" ~= nil or operand.scalar(dtype) == "bool"
end

local is_float, scalar, lanes_of, bits_of =
  operand.is_float, operand.scalar, operand.lanes, operand.bits

-- --------------------------------------------------------------- immediates

--- A node of TIR that owns no scope.
function operand.node(name, operands, data, count, type_, attrs)
  return core.loop_node(kind_number[name], operands, data, count, type_, attrs)
end

local node = operand.node

--- An integer of a dtype: tir.IntImm("int32", 4).
function operand.IntImm(dtype, number)
  if number == true then number = 1 elseif number == false then number = 0 end
  return core.int_imm(operand.type(dtype), number)
end

--- A number of a floating-point dtype.
function operand.FloatImm(dtype, number) return core.float_imm(operand.type(dtype), number) end

operand.StringImm = core.string_imm

--- A vector of one value.
function operand.Broadcast(of, lanes) return node("Broadcast", { operand.expr(of) }, lanes) end

--- A Lua value as a constant of a dtype; without one int32, float32 or bool.
function operand.const(number, dtype)
  if dtype and lanes_of(dtype) > 1 then
    return operand.Broadcast(operand.const(number, scalar(dtype)), lanes_of(dtype))
  end
  if type(number) == "boolean" and not dtype then dtype = "bool" end
  if dtype == nil then dtype = math.type(number) == "integer" and "int32" or "float32" end
  if is_float(dtype) then
    if type(number) == "boolean" then number = number and 1 or 0 end
    return operand.FloatImm(dtype, number)
  end
  return operand.IntImm(dtype, type(number) == "number" and math.tointeger(number) or number)
end

--- A PrimExpr of a Lua value; `dtype` is that of a number.
function operand.expr(of, dtype)
  local kind = type(of)
  if kind == "number" or kind == "boolean" then return operand.const(of, dtype) end
  if kind == "string" then return operand.StringImm(of) end
  return of
end

local expr = operand.expr

--- The same of what has to be there; an axis stands for its variable.
function operand.value(of, dtype)
  of = expr(of, dtype)
  if getmetatable(of) ~= "perilune.Node" then argument.expected("a PrimExpr", of) end
  return of.kind == "IterVar" and of.var or of
end

local value = operand.value

--- PrimExprs of a list. nil has no place in a list of operands: it would end it.
function operand.exprs(list, dtype)
  local out = {}
  if type(list) ~= "table" then argument.expected("a list", list) end
  for i = 1, #list do out[i] = expr(list[i], dtype) end
  return out
end

--- The same, in which an axis stands for its variable.
function operand.values(list)
  local out = operand.exprs(list)
  for i, one in ipairs(out) do
    local has_kind = type(one) == "userdata" or type(one) == "table"
    if has_kind and one.kind == "IterVar" then out[i] = one.var end
  end
  return out
end

--- A call of a builtin by its name without "tir.", which is one.
function operand.call(dtype, name, args)
  return node("PrimCall", operand.exprs(args), core.builtin(name), nil, operand.type(dtype))
end

--- The number of an immediate, or nil.
function operand.number(of)
  local kind = of.kind
  if kind == "IntImm" or kind == "FloatImm" then return of.value end
  return nil
end

-- -------------------------------------------------------------------- casts

--- A value of another dtype, as a node.
function operand.Cast(dtype, of)
  return node("Cast", { operand.value(of) }, nil, nil, operand.type(dtype))
end

-- An immediate of another dtype; nil when the number is none of that dtype.
local function cast_number(dtype, number)
  if is_float(dtype) then return operand.FloatImm(dtype, number) end
  local whole = number
  if math.type(number) == "float" then
    whole = math.tointeger(number < 0 and math.ceil(number) or math.floor(number))
  end
  local ok, result = pcall(operand.IntImm, dtype, whole)
  return ok and result or nil
end

local function cast_scalar(dtype, of)
  if of.dtype == "handle" then argument.fail("a handle has no value of another dtype") end
  local number = operand.number(of)
  return number and cast_number(dtype, number) or operand.Cast(dtype, of)
end

-- Lanes stay what they are: only their dtype changes.
local function cast_vector(dtype, of)
  local lane = scalar(dtype)
  if of.kind == "Broadcast" then
    return operand.Broadcast(operand.cast(lane, of.value), lanes_of(dtype))
  end
  if of.kind == "Ramp" and not is_float(lane) then
    return node("Ramp", { operand.cast(lane, of.base), operand.cast(lane, of.stride) },
      lanes_of(dtype))
  end
  return operand.Cast(dtype, of)
end

--- Cast, but nothing when the dtype is right, immediates are converted, and one value of a
-- vector's dtype is repeated.
function operand.cast(dtype, of)
  of = value(of)
  if of.dtype == dtype then return of end
  local lanes = lanes_of(dtype)
  if lanes == 1 and lanes_of(of.dtype) == 1 then return cast_scalar(dtype, of) end
  if lanes_of(of.dtype) == 1 then
    return operand.Broadcast(operand.cast(scalar(dtype), of), lanes)
  end
  return cast_vector(dtype, of)
end

-- ----------------------------------------------------------------- matching

-- Which of two kinds of number takes in the other: of different kinds the first.
local classes = { "^float%d+$", "^bfloat", "^float8" }

local function class_of(dtype)
  for i, pattern in ipairs(classes) do
    if dtype:find(pattern) then return i end
  end
  return #classes + 1
end

-- The dtype that values of two are brought to: a float's, else that of more bits; of a signed
-- and an unsigned integer of as many bits the unsigned one.
local function common(a, b)
  local x, y = class_of(a), class_of(b)
  if x ~= y then return x < y and a or b end
  if bits_of(a) ~= bits_of(b) then return bits_of(a) > bits_of(b) and a or b end
  return operand.is_signed(a) and b or a
end

-- A Lua number takes the dtype of the other operand; one with a fraction that of a float.
local function taken(number, other)
  if math.type(number) == "float" and not is_float(other) then return operand.const(number) end
  return operand.const(number, scalar(other))
end

--- Both operands as PrimExprs of one dtype, as TVM matches them.
function operand.matched(a, b)
  if type(a) == "number" and type(b) == "userdata" and b.dtype then a = taken(a, b.dtype) end
  if type(b) == "number" and type(a) == "userdata" and a.dtype then b = taken(b, a.dtype) end
  a, b = value(a), value(b)
  local x, y = a.dtype, b.dtype
  if x == y or x == nil or y == nil or x == "handle" or y == "handle" then return a, b end
  local lanes = math.max(lanes_of(x), lanes_of(y))
  local dtype = operand.vector(common(scalar(x), scalar(y)), lanes)
  return operand.cast(dtype, a), operand.cast(dtype, b)
end

--- A node of that kind, or what it comes to.
function operand.folded(name, a, b) return core.folded(kind_number[name], a, b) end

return operand
