--- pl.topi: tensor operators as tensor expressions, by TVM's names.
--
--     local topi, te = pl.topi, pl.te
--     local x = te.placeholder({ 4, 8 }, "float32", "x")
--     local y = topi.nn.softmax(topi.nn.relu(x), -1)
--     local s = topi.generic.schedule_injective(y)
--     print(pl.lower(s, { args = { x, y } }))
--
-- Functions take and give te.Tensors. `topi.generic` has default schedules. What an operator of
-- Relay or ONNX becomes is its attribute FTVMCompute (compute/init.lua). LowerTE uses both.

local core = require "perilune.core"
core.internal()

local topi = {
  nn = {}, image = require "perilune.topi.image", generic = require "perilune.topi.generic",
}
require "perilune.topi.compute"

local function take(to, name)
  for key, value in pairs(require("perilune.topi." .. name)) do to[key] = value end
end

for _, name in ipairs { "elementwise", "broadcast", "reduction", "transform" } do
  take(topi, name)
end
for _, name in ipairs { "activation", "pad", "dense", "conv", "pool", "softmax", "norm",
  "named" } do
  take(topi.nn, "nn." .. name)
end
local operator = require "perilune.topi.operator"
for name, f in pairs(operator.topi) do topi[name] = f end
for name, f in pairs(operator.nn) do topi.nn[name] = f end
for name, f in pairs(operator.image) do topi.image[name] = f end

-- Helpers of this part.
for _, name in ipairs {
  "define", "define_float", "broadcast_shape", "broadcast_element", "reduced_count",
} do
  topi[name] = nil
end
topi.nn.split_padding, topi.nn.pool_nd = nil, nil

return topi
