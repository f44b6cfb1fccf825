--- pl.op_attr: attributes of operators, which passes ask for. Semantics: TVM's
-- register_op_attr, except that a value of the same level replaces the former one.
--
--     pl.op_attr("nn.conv2d", "target.dnnl", true)                   -- sets
--     pl.op_attr("nn.conv2d", "target.dnnl", function(expr) ... end)
--     pl.op_attr("add", "TOpPattern")                                 --> 1, asks
--     pl.op_attr("nn.conv2d", "target.dnnl", nil)                     -- removes
--
-- A function gets what TVM's gets under that key: FTVMLegalize(attrs, inputs, types),
-- target.NAME(expr), FTVMMixedPrecisionConversionType(call, dtype), ...

local core = require "perilune.core"
local argument = require "perilune.argument"
core.internal()

--- Asks for the attribute `key` of an operator: its value and level, nil when there is
-- none. With a value (a boolean, number, string or function) sets it, unless one of a
-- higher level is there; true when it was set. With nil as value removes it. The level
-- is 10 unless it is given.
local function op_attr(op, key, ...)
  if type(op) ~= "string" and argument.kind_of(op) ~= "Op" then
    argument.fail("pl.op_attr: an operator or its name expected, got " .. argument.kind_of(op))
  end
  argument.string(key, "pl.op_attr", "key")
  if select("#", ...) == 0 then return core.op_attr_get(op, key) end
  local value, level = ...
  if value == nil then return core.op_attr_reset(op, key) end
  return core.op_attr_set(op, key, value, level)
end

return op_attr
