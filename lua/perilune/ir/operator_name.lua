--- Operators by name: the core's, and what ONNX calls them. Used by pl.op, by nodes
-- that scripts make, and by `perilune ops`.

local core = require "perilune.core"
core.internal()

local operator_name = {}

--- What ONNX has of that type or "domain::Type": { { domain, type, since, core name }, ... }.
function operator_name.of_onnx(name)
  local domain, type_ = name:match "^(.*)::(.*)$"
  local found = {}
  for _, row in ipairs(core.onnx_operators()) do
    if row[2] == (type_ or name) and (not domain or row[1] == domain) then
      found[#found + 1] = row
    end
  end
  return found
end

--- The operator, or nil. "domain::Type" of ONNX is the operator that import makes of
-- it; one that nobody here knows is made when it is first asked for.
function operator_name.find(name)
  local op = core.op(name)
  if op or not name:find "^[%w._-]+::[%w._]+$" then return op end
  local row = operator_name.of_onnx(name)[1]
  if row then return core.op(row[4]) end
  return core.opaque_op(name)
end

local function all_names()
  local names = core.ops()
  for _, row in ipairs(core.onnx_operators()) do names[#names + 1] = row[2] end
  return names
end

--- The message for a name that nothing has.
function operator_name.unknown(name)
  local row = operator_name.of_onnx(name)[1]
  if row then
    return ("no operator is called '%s'; ONNX's %s is '%s' here"):format(name, row[2], row[4])
  end
  local near = core.suggest(name, all_names())
  row = operator_name.of_onnx(near:match "'(.*)'" or "")[1]
  if row then near = near:gsub("%?$", (" (ONNX), '%s' here?"):format(row[4])) end
  return ("no operator is called '%s'%s"):format(name, near)
end

return operator_name
