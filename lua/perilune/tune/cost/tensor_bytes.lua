--- The bytes of values, by their types.

require "perilune.core".internal() -- errors name the scripts of others
local bits = require "perilune.tir.operand".bits

local function of_tensor(type_)
  local n = math.max(8, bits(type_.dtype)) // 8
  for _, dim in ipairs(type_.shape or { false }) do
    if math.type(dim) ~= "integer" then return nil end
    n = n * dim
  end
  return n
end

--- The bytes of a tensor, or of the tensors of a tuple; nil where an extent is not known. Tuples in
-- tuples count as nothing.
return function(type_)
  if type_.kind == "tensor" then return of_tensor(type_) end
  local sum = 0
  for _, field in ipairs(type_.kind == "tuple" and type_.parts or {}) do
    local n = field.kind == "tensor" and of_tensor(field) or 0
    if not n then return nil end
    sum = sum + n
  end
  return sum
end
