-- Kinds of nodes by name, from ir/graph/kinds.def, and how a statement of a kind is made.

local core = require "perilune.core"
core.internal()

local kinds = { number = {}, class = {}, fields = {}, has_attrs = {}, names = {} }
for number, row in ipairs(core.kinds()) do
  kinds.names[number] = row.name
  kinds.number[row.name], kinds.class[row.name] = number, row.class
  kinds.fields[row.name], kinds.has_attrs[row.name] = row.fields, row.attrs
end

--- Whether a kind is of the loop level: a PrimExpr, a statement or PrimFunc.
function kinds.is_loop_level(kind)
  local class = kinds.class[kind]
  return class == "prim" or class == "stmt" or kind == "PrimFunc"
end

--- A statement of its operands and attributes, the variables that it binds, and its bodies.
function kinds.stmt(name, operands, attrs, params, body, more, other)
  return core.loop_stmt(kinds.number[name], operands, nil, attrs, params, body, more, other)
end

--- A list of statements is a SeqStmt.
function kinds.as_stmt(body)
  if type(body) ~= "table" then return body end
  if #body == 1 then return body[1] end
  return core.seq(body)
end

return kinds
