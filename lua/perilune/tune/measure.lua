--- What tuning passes minimise: functions from a module to a number, or to a list of numbers
-- (seconds of runs, say), whose mean counts.
--
--     pl.tune.measure.nodes(mod)             -- calls, in all functions
--     pl.tune.measure.flops(mod)             -- operations of all calls, each counted once
--     pl.tune.measure.time { runs = 5 }(mod) -- seconds of the evaluator, on random inputs

local argument = require "perilune.argument"
local core = require "perilune.core"
local inputs = require "perilune.tune.run.inputs"
core.internal()

local measure = {}

local function each_call(mod, where, visit)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail(("%s: a module expected, got %s"):format(where, argument.kind_of(mod)))
  end
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      if node.kind == "Call" then visit(node) end
    end
  end
end

--- The calls in all functions of the module.
function measure.nodes(mod)
  local n = 0
  each_call(mod, "pl.tune.measure.nodes", function() n = n + 1 end)
  return n
end

--- The operations of all calls by their definition (pl.cost), each counted once. Raises when
-- dims are open.
function measure.flops(mod)
  local sum = 0
  each_call(mod, "pl.tune.measure.flops", function(node)
    local _, flops = core.cost(node)
    if math.type(flops) ~= "integer" then
      argument.fail(("pl.tune.measure.flops: the operations of %s are not known: %s"):format(
        tostring(node.op), tostring(node.type)))
    end
    sum = sum + flops
  end)
  return sum
end

--- A measure of time: the seconds of `runs` (5) runs of @main by the evaluator, after one that is
-- not counted, on inputs that are random by `seed` (1). Dims of inputs must be numbers.
function measure.time(options)
  options = argument.options(options, "pl.tune.measure.time", { "runs", "seed" })
  return function(mod)
    local main = mod.functions.main
    if not main then argument.fail "pl.tune.measure.time: the module has no function @main" end
    local args, seconds = inputs.make(main, options.seed or 1), {}
    for i = 0, options.runs or 5 do
      local begun = core.clock()
      core.eval(mod, table.unpack(args, 1, args.n))
      if i > 0 then seconds[i] = core.clock() - begun end
    end
    return seconds
  end
end

return measure
