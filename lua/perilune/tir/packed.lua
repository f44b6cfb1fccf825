-- Calls of functions by name, whose arguments may be Buffers. Its functions are perilune.tir's.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"

local packed = {}

-- A Buffer as the descriptor of an array that the function is given.
local function packed_buffer(buffer)
  local shape = operand.call("handle", "tvm_stack_make_shape", buffer.shape)
  local strides = #buffer.strides > 0
    and operand.call("handle", "tvm_stack_make_shape", buffer.strides) or operand.const(0, "int32")
  return operand.call("handle", "tvm_stack_make_array", {
    buffer.data, shape, strides, operand.const(#buffer.shape, "int32"),
    operand.const(0, buffer.dtype), buffer.elem_offset,
  })
end

--- A call of a packed function: tir.call_packed("name", A, 1, x). Buffers become descriptors of
-- arrays.
function packed.call_packed(name, ...)
  argument.string(name, "tir.call_packed", "name")
  local args = { operand.StringImm(name) }
  for i, value in ipairs { ... } do
    local is_buffer = type(value) == "userdata" and value.kind == "Buffer"
    args[i + 1] = is_buffer and packed_buffer(value) or operand.value(value)
  end
  return operand.call("int32", "tvm_call_packed", args)
end

return packed
