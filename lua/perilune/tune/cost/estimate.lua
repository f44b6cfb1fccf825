--- Costs of a module by estimates, as the pass EqualitySaturation has them: "nodes" (calls),
-- "flops", "bytes" (read and written) and "time" (the roofline of an ordinary core); and by
-- measuring each call (pl.tune.call_costs). Calls of
-- constants alone count a thousandth: FoldConstant computes them.

local argument = require "perilune.argument"
local bytes_of = require "perilune.tune.cost.tensor_bytes"
local core = require "perilune.core"
local cost_model = require "perilune.tune.cost"
core.internal()

local estimate = {}

local PEAK, BANDWIDTH, START, CONSTANT = 5e10, 1e10, 5e-7, 1e-3

local views = { reshape = true, squeeze = true, expand_dims = true, flatten = true }

local function flops(call)
  local _, n = core.cost(call)
  return math.type(n) == "integer" and n or 0
end

local function bytes(call)
  if views[call.op.name] then return 0 end
  local sum = bytes_of(call.type) or 0
  for _, arg in ipairs(call.args) do sum = sum + (bytes_of(arg.type) or 0) end
  return sum
end

local of_call = {
  nodes = function() return 1 end,
  flops = flops,
  bytes = bytes,
  time = function(call) return START + math.max(flops(call) / PEAK, bytes(call) / BANDWIDTH) end,
}

-- Values that are computed of constants alone.
local function note_constant(constant, node)
  if node.kind == "Constant" then
    constant[node] = true
  elseif node.kind == "Call" or node.kind == "Tuple" then
    local operands = node.args or node.fields
    local all = #operands > 0
    for _, operand in ipairs(operands) do all = all and constant[operand] end
    constant[node] = all or nil
  elseif node.kind == "TupleGetItem" then
    constant[node] = constant[node.tuple]
  end
end

local function sum_of(mod, f)
  local sum = 0
  for _, fn in pairs(mod) do
    local constant = {}
    for node in fn:nodes() do
      for _, operand in ipairs(node.args or node.fields or {}) do
        if operand.kind == "Constant" then constant[operand] = true end
      end
      note_constant(constant, node)
      if node.kind == "Call" and node.op then
        sum = sum + f(node, constant) * (constant[node] and CONSTANT or 1)
      end
    end
  end
  return sum
end

--- The sum of what calls cost by measuring (perilune.tune.cost.calls); "time" is what those cost
-- that cannot be measured, and those of constants.
function estimate.measured(mod, costs)
  return sum_of(mod, function(node, constant)
    local cost = constant[node] and math.huge or costs:of_call(node, constant)
    return cost < math.huge and cost or of_call.time(node)
  end)
end

--- A function from a module to its cost, of a name, a cost model (whose costs are relative to
-- `base`) or such a function.
function estimate.of(cost, base, where)
  if cost_model.is(cost) then return function(mod) return cost:predict(mod, base) end end
  if type(cost) == "function" then
    return function(mod)
      local x = cost(mod)
      if type(x) ~= "number" or x ~= x then
        argument.fail(("%s: cost: a number expected, got %s"):format(where, tostring(x)))
      end
      return x
    end
  end
  if type(cost) == "table" and require "perilune.tune.cost.calls".is(cost) then
    return function(mod) return cost:of_module(mod) end
  end
  local f = of_call[argument.string(cost, where, "cost")]
  if not f then
    argument.fail(("%s: there is no cost '%s'%s"):format(where, cost,
      argument.near(cost, of_call)))
  end
  return function(mod) return sum_of(mod, f) end
end

return estimate
