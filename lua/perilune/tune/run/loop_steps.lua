--- loop_steps(mod): how many stores the PrimFuncs of a module run, at the most. Loops whose extent
-- is no number count once.
--
-- Operands precede users in a function and a loop follows its body: in a sweep backward a loop's
-- variable ends it.

require "perilune.core".internal() -- errors name the scripts of others

local lowered = require "perilune.tune.lowered"

local function extent_of(loop)
  return loop.extent.kind == "IntImm" and math.max(1, loop.extent.value) or 1
end

-- Sums go beyond integers for hostile extents: they are floats.
local function steps_of(fn)
  local order = {}
  for node in fn:nodes() do order[#order + 1] = node end
  local loops, around, sum = {}, { [0] = 1.0 }, 0.0
  for i = #order, 1, -1 do
    local node = order[i]
    if node.kind == "For" then
      loops[#loops + 1] = node.loop_var
      around[#loops] = around[#loops - 1] * extent_of(node)
    elseif #loops > 0 and node == loops[#loops] then
      loops[#loops] = nil
    elseif node.kind == "BufferStore" then
      sum = sum + around[#loops]
    end
  end
  return sum
end

return function(mod)
  local sum = 0.0
  for _, fn in pairs(lowered(mod)) do
    if fn.kind == "PrimFunc" then sum = sum + steps_of(fn) end
  end
  return sum
end
