-- A function for each builtin of TIR, by TVM's names without "tir.":
-- tir.exp(x), tir.call_extern("int32", "f", x), tir.tvm_struct_get(a, 0, 1, "int32").
--
-- perilune.tir takes them over, but for those that compute constants, which are
-- in perilune.tir.math. Where the dtype stands, and what it is without one, are facts of
-- engine/ir/tir/builtins.def.

local core = require "perilune.core"
core.internal()

local operand = require "perilune.tir.operand"

-- The dtype of what a builtin gives when its call does not say.
local function result_dtype(result, args)
  if result == "second" then return operand.value(args[2]).dtype end
  if result and result ~= "first" and result ~= "bool" then return result end
  if #args == 0 then return result == "bool" and "bool" or "handle" end
  local first = operand.value(args[1]).dtype
  return result == "bool" and operand.vector("bool", operand.lanes(first)) or first
end

local builtin = {}

for number, name in ipairs(core.builtins()) do
  local _, _, _, place, result = core.builtin_row(number)
  builtin[name] = function(...)
    local args = { ... }
    if place == "first" then
      return operand.call(args[1], name, table.move(args, 2, #args, 1, {}))
    end
    if place == "last" then return operand.call(table.remove(args), name, args) end
    return operand.call(result_dtype(result, args), name, args)
  end
end

return builtin
