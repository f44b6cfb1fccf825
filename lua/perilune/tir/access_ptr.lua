-- Addresses of Buffers for the functions of a program, as TVM's Buffer.access_ptr.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"

local masks = { r = 1, w = 2, rw = 3, wr = 3 }

local function extent_of(buffer)
  local dims = buffer.shape
  if #buffer.strides > 0 then return operand.folded("Mul", buffer.strides[1], dims[1]) end
  local extent = operand.const(1, dims[1] and dims[1].dtype or "int32")
  for _, dim in ipairs(dims) do extent = operand.folded("Mul", extent, dim) end
  return extent
end

-- A call of tvm_access_ptr(type, data, offset, extent, mask).
return function(buffer, mask, options)
  if buffer.kind ~= "Buffer" then argument.expected("a Buffer", buffer) end
  local number = masks[mask] or math.type(mask) == "integer" and mask
  if not number then argument.fail('access_ptr: a mask is "r", "w" or "rw"') end
  options = argument.options(options, "access_ptr", { "offset", "extent" })
  local offset = buffer.elem_offset
  if options.offset then
    offset = operand.folded("Add", offset, operand.value(options.offset))
  end
  return operand.call("handle", "tvm_access_ptr", {
    operand.call(buffer.dtype, "type_annotation", {}), buffer.data, offset,
    options.extent and operand.value(options.extent) or extent_of(buffer),
    operand.const(number, "int32"),
  })
end
