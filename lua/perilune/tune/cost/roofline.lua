--- The analytic cost model: a call takes as long as its operations at the machine's peak, or as its
-- bytes at the bandwidth of memory, whichever is longer (Williams, Waterman, Patterson 2009).

local argument = require "perilune.argument"
local bytes_of = require "perilune.tune.cost.tensor_bytes"
local core = require "perilune.core"
core.internal()

local roofline = {}

-- What a call reads and writes, each operand once.
local function traffic(call)
  local sum = bytes_of(call.type)
  for _, arg in ipairs(call.args) do
    local n = bytes_of(arg.type)
    sum = sum and n and sum + n
  end
  return sum
end

--- The operations and the bytes of a call of an operator. Raises where an extent is not known.
function roofline.call(call)
  local _, flops = core.cost(call)
  local bytes = traffic(call)
  if math.type(flops) ~= "integer" or not bytes then
    argument.fail(("the cost of %s is not known: %s"):format(call.op.name, tostring(call.type)))
  end
  return flops, bytes
end

--- The seconds of a module on a machine (machine.limits()): the sum over its calls.
function roofline.seconds(mod, limits)
  local sum = 0
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      if node.kind == "Call" and node.op then
        local flops, bytes = roofline.call(node)
        sum = sum + limits.overhead + math.max(flops / limits.flops, bytes / limits.bandwidth)
      end
    end
  end
  return sum
end

return roofline
