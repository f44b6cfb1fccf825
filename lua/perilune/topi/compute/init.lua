-- What operators become: a table from an operator's name to a function
--     (attrs, inputs, out_type, args) -> tensor or list of tensors, or nil and a reason
-- which is the operator's attribute FTVMCompute (pl.op_attr) unless a script sets its own. `inputs`
-- are te.Tensors (false: omitted), out_type is the type of the call, args[i].constant is the tensor
-- of a short list of numbers that is constant, and args[i].pack(axes), which constant operands of
-- the call have, gives the operand with its axes permuted ahead of time. Where LowerTE calls,
-- args[i].table(tensor) is a te.Tensor of constants. Attributes have the names that `perilune ops`
-- shows; those that are not set are nil.

local core = require "perilune.core"
core.internal()

local compute = {}

for _, name in ipairs {
  "elementwise", "reduction", "transform", "nn", "quantize", "cumulative", "recurrent", "einsum",
  "sort", "scatter", "indexing",
  "attention", "microsoft", "assignment", "norm", "loss", "sampling", "gradient", "ml",
} do
  for op, f in pairs(require("perilune.topi.compute." .. name)) do compute[op] = f end
end

-- A script's attribute has a higher level.
for op, f in pairs(compute) do core.op_attr_set(op, "FTVMCompute", f, 0) end

return compute
