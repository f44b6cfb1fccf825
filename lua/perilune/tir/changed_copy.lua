-- node:with { field = value } of the loop level: a copy with other fields. Called by
-- node:with and pl.ir.fields (perilune.ir).

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local ir = require "perilune.ir"
local kinds = require "perilune.tir.kinds"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local expr, exprs, node = operand.expr, operand.exprs, operand.node
local stmt, as_stmt = kinds.stmt, kinds.as_stmt

local copy = {}

-- Variables that a statement binds, by the name of the field.
local bound = {
  LetStmt = "var", For = "loop_var", Allocate = "buffer_var", AllocateConst = "buffer_var",
  Block = "params",
}
local bodies = { body = true, then_case = true, else_case = true, block = true }

-- Fields of kinds that are not made of operands in the order of ir/graph/kinds.def, and how
-- such a node is made of them.
local constructors = {
  IntImm = { "dtype value", function(now) return tir.IntImm(now.dtype, now.value) end },
  FloatImm = { "dtype value", function(now) return tir.FloatImm(now.dtype, now.value) end },
  StringImm = { "value", function(now) return tir.StringImm(now.value) end },
  Cast = { "dtype value", function(now) return tir.Cast(now.dtype, now.value) end },
  Ramp = { "base stride lanes", function(now)
    return tir.Ramp(now.base, now.stride, now.lanes)
  end },
  Broadcast = { "value lanes", function(now) return tir.Broadcast(now.value, now.lanes) end },
  PrimLet = { "var value body", function(now) return tir.Let(now.var, now.value, now.body) end },
  PrimCall = { "dtype builtin args", function(now)
    if now.builtin then return tir.Call(now.dtype, now.builtin, now.args) end
    return tir.Call(now.dtype, now.args[1], { table.unpack(now.args, 2) })
  end },
  Shuffle = { "vectors indices", function(now) return tir.Shuffle(now.vectors, now.indices) end },
  CommReducer = { "lhs rhs result identity_element", function(now)
    return tir.CommReducer(now.lhs, now.rhs, now.result, now.identity_element)
  end },
  Reduce = { "combiner source axis condition value_index init", function(now)
    return tir.Reduce(now.combiner, now.source, now.axis, now.condition, now.value_index,
      now.init)
  end },
  IterVar = { "var dom iter_type attrs", function(now)
    return tir.IterVar(now.dom[1], now.var, now.iter_type, now.attrs.thread_tag)
  end },
  Buffer = { "data dtype shape strides elem_offset name attrs", function(now)
    return tir.Buffer(now.data, now.dtype, now.shape, now.strides, now.elem_offset, now.name,
      now.attrs)
  end },
  SeqStmt = { "seq", function(now) return core.seq(now.seq) end },
  PrimFunc = { "params body ret_type attrs", function(now)
    return core.loop_stmt(kinds.number.PrimFunc, {}, tir.type(now.ret_type), now.attrs, now.params,
      as_stmt(now.body))
  end },
}

-- A node of the kind's own operands, in order, and bodies.
local function make_of(kind, now)
  local operands, own = {}, {}
  for name, star in kinds.fields[kind]:gmatch "([%w_]+)(%*?)" do
    local value = now[name]
    if bodies[name] then
      own[#own + 1] = as_stmt(value)
    elseif star == "*" then
      table.move(exprs(value), 1, #value, #operands + 1, operands)
    else
      operands[#operands + 1] = expr(value)
    end
  end
  if #own == 0 then return node(kind, operands, nil, nil, nil, now.attrs) end
  local vars = bound[kind] and now[bound[kind]] or {}
  if type(vars) ~= "table" then vars = { vars } end
  return stmt(kind, operands, now.attrs, vars, own[1], own[2] and {} or nil, own[2])
end

local settable = {}

-- The fields that a changed copy may have other values of, in order.
function copy.fields(kind)
  if settable[kind] then return settable[kind] end
  local names = {}
  local text = constructors[kind] and constructors[kind][1]
    or table.concat({ bound[kind] or "", kinds.fields[kind]:gsub("%*", ""),
      kinds.has_attrs[kind] and "attrs" or "" }, " ")
  for name in text:gmatch "%S+" do names[#names + 1] = name end
  settable[kind] = names
  return names
end

local function merged(old, changes)
  local attrs = {}
  for name, value in pairs(old) do attrs[name] = value end
  for name, value in pairs(changes or {}) do attrs[name] = value end
  return attrs
end

local function same_list(old, value)
  if #old ~= #value then return false end
  for i, item in ipairs(old) do
    if not rawequal(item, value[i]) then return false end
  end
  return true
end

local function same_attr(old, value)
  return old == value
    or type(old) == "table" and type(value) == "table" and same_list(old, value)
end

-- Whether a field has that value already.
local function has_value(node_, name, value)
  local old = node_[name]
  if name == "attrs" then
    for key, attr in pairs(value) do
      if not same_attr(old[key], attr) then return false end
    end
    return true
  end
  if type(old) ~= "table" or type(value) ~= "table" then
    -- Several statements of a scope are a SeqStmt that is made when asked for.
    return rawequal(old, value) or type(value) == "userdata" and type(old) == "userdata"
      and old.kind == "SeqStmt" and value.kind == "SeqStmt" and core.node_equal(old, value)
  end
  return same_list(old, value)
end

-- What of `changes` is no value that the node has; nil when there is nothing.
local function changed_fields(node_, changes)
  local known, left = {}, {}
  argument.table(changes, "node:with", "changes")
  if #copy.fields(node_.kind) == 0 then
    argument.fail(("a %s has no changed copies"):format(node_.kind))
  end
  for _, name in ipairs(copy.fields(node_.kind)) do known[name] = true end
  for name, value in pairs(changes) do
    if not known[name] then
      argument.fail(("a %s has no field '%s'; it has: %s"):format(node_.kind, tostring(name),
        table.concat(copy.fields(node_.kind), ", ")))
    end
    if not has_value(node_, name, value) then left[name] = value end
  end
  return next(left) ~= nil and left or nil
end

function copy.with(node_, changes)
  local kind = node_.kind
  local left = changed_fields(node_, changes)
  if not left then return node_ end
  local source, now = core.seal(node_), {}
  for _, name in ipairs(copy.fields(kind)) do
    local old, value = source[name], left[name]
    if value == nil then value = old end
    -- A number in the place of a PrimExpr has its dtype.
    now[name] = ir.kind_of(old) == "Node" and expr(value, old.dtype) or value
  end
  if now.attrs then now.attrs = merged(source.attrs, left.attrs) end
  if constructors[kind] then return constructors[kind][2](now) end
  return make_of(kind, now)
end

return copy
