--- What tuning passes minimise: functions from a module to a number, or to a list of numbers
-- (seconds of runs, say), whose mean counts. Some searches (halving) give a part of the effort,
-- from 0 to 1, as the second argument.
--
--     pl.tune.measure.nodes(mod)             -- calls, in all functions
--     pl.tune.measure.flops(mod)             -- operations of all calls, each counted once
--     pl.tune.measure.bytes(mod)             -- of constants
--     pl.tune.measure.time { runs = 5 }(mod) -- seconds of the evaluator, on random inputs
--     pl.tune.measure.run { runner = runner }(mod)   -- the same in a child process
--     pl.tune.measure.peak_memory()(mod)     -- bytes that the evaluator needs at once
--     pl.tune.measure.peak_memory { builder = builder }(mod)   -- that its code or command needs
--     pl.tune.measure.energy()(mod)          -- joules of a run, where RAPL can be read

local argument = require "perilune.argument"
local child = require "perilune.tune.run.child"
local core = require "perilune.core"
local inputs = require "perilune.tune.run.inputs"
local with_effort = require "perilune.tune.run.effort"
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

--- The bytes of constants in all functions, each tensor counted once.
function measure.bytes(mod)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail("pl.tune.measure.bytes: a module expected, got " .. argument.kind_of(mod))
  end
  local sum, seen = 0, {}
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      local data = node.kind == "Constant" and node.data
      if data and not seen[data] then
        seen[data] = true
        sum = sum + data.bytes
      end
    end
  end
  return sum
end

local function evaluator_peak(mod, seed, limits)
  local fn = inputs.entry(mod, "pl.tune.measure.peak_memory")
  local args = inputs.make(fn, seed)
  return child.call(function()
    collectgarbage "stop"
    core.reset_memory_peak()
    local before = core.memory()
    core.eval_in(mod, fn, table.unpack(args, 1, args.n))
    return select(2, core.memory()) - before
  end, limits)
end

-- A number of the kernel's on this process, in bytes.
local function resident(name)
  local file <close> = assert(io.open "/proc/self/status")
  return tonumber(file:read "a":match(name .. ":%s*(%d+) kB")) << 10
end

-- What a runnable needs: a command by itself, generated code beyond the process that opens it.
local function runnable_peak(runnable, limits)
  if runnable.where == "command" then
    local result, why = child.run(runnable.words, limits)
    return result and result.resident, why
  end
  return child.call(function()
    collectgarbage "stop"
    local before = resident "VmRSS"
    runnable.open()(1e-9)
    return math.max(0, resident "VmHWM" - before)
  end, limits)
end

-- Checks builder and runner; the limits of a child.
local function limits_of(options, where)
  local builders, runners = require "perilune.tune.run.builder", require "perilune.tune.run.runner"
  local builder, runner = options.builder, options.runner
  if builder ~= nil and not builders.is(builder) or runner ~= nil and not runners.is(runner) then
    argument.fail(where .. ": what pl.tune.builder and pl.tune.runner make is expected")
  end
  return runner and { seconds = runner.seconds, memory = runner.memory, output = runner.output }
    or {}
end

--- A measure of memory: the most bytes that a run holds at once, in a child process, on inputs that
-- are random by `seed` (1). Of the evaluator: what it holds beyond the program. Of what a `builder`
-- compiles: what stays resident, constants that it reads among it. Of a builder's command: the
-- resident memory of its process. runner: has the limits.
function measure.peak_memory(options)
  local where = "pl.tune.measure.peak_memory"
  options = argument.options(options, where, { "seed", "builder", "runner" })
  local builder, limits = options.builder, limits_of(options, where)
  return function(mod)
    local text, why
    if not builder or builder.kind == "evaluator" then
      text, why = evaluator_peak(mod, options.seed or builder and builder.seed or 1, limits)
    else
      local runnable, reason = builder:build(mod)
      if not runnable then error(reason, 0) end
      text, why = runnable_peak(runnable, limits)
    end
    if not text then error(why, 0) end
    return tonumber(text)
  end
end

--- A measure of time by a builder and a runner, in child processes: the seconds of the shortest
-- block. What crashes, hangs or cannot be built is an error.
function measure.run(options)
  options = argument.options(options, "pl.tune.measure.run", { "builder", "runner" })
  local builders, runners = require "perilune.tune.run.builder", require "perilune.tune.run.runner"
  local builder, runner = options.builder or builders.new(), options.runner or runners.new()
  if not builders.is(builder) or not runners.is(runner) then
    argument.fail "pl.tune.measure.run: what pl.tune.builder and pl.tune.runner make is expected"
  end
  return function(mod, effort)
    local runnable, why = builder:build(mod)
    if not runnable then error(why, 0) end
    local result, wrong = with_effort(runner, effort or 1):run(runnable)
    if not result then error(wrong, 0) end
    return result.min
  end
end

--- A measure of energy by RAPL: the joules of a run, from runs that last `seconds` (0.5) together,
-- in a child process. options: builder, seconds, folder (of the counters: /sys/class/powercap).
-- Raises where the counters cannot be read.
function measure.energy(options)
  local where = "pl.tune.measure.energy"
  options = argument.options(options, where, { "builder", "seconds", "folder" })
  local energy, builders = require "perilune.tune.run.energy", require "perilune.tune.run.builder"
  local builder, seconds = options.builder or builders.new(), options.seconds or 0.5
  if not builders.is(builder) or builder.kind == "command" then
    argument.fail(where .. ": builder: one of 'evaluator' or 'c' is expected")
  elseif type(seconds) ~= "number" or not (seconds > 0 and seconds <= 3600) then
    argument.fail(where .. ": seconds: a number from 0 to 3600 expected")
  end
  energy.required(options.folder, where)
  return function(mod, effort)
    local runnable, why = builder:build(mod)
    if not runnable then error(why, 0) end
    local text, wrong = child.call(function()
      local block = runnable.open()
      local once = block(1e-9)
      local runs, meter = 0, energy.required(options.folder, where)
      local finish = core.clock() + math.max(seconds * (effort or 1), once)
      repeat
        block(1e-9)
        runs = runs + 1
      until core.clock() >= finish
      return ("%.17g"):format(meter() / runs)
    end, { seconds = 60 + 2 * seconds })
    if not text then error(wrong, 0) end
    return tonumber(text)
  end
end

--- A measure of time: the seconds of `runs` (5) runs of @main by the evaluator, after one that is
-- not counted, on inputs that are random by `seed` (1). Dims of inputs must be numbers.
function measure.time(options)
  options = argument.options(options, "pl.tune.measure.time", { "runs", "seed" })
  return function(mod, effort)
    local main = mod.functions.main
    if not main then argument.fail "pl.tune.measure.time: the module has no function @main" end
    local args, seconds = inputs.make(main, options.seed or 1), {}
    for i = 0, math.max(1, math.ceil((options.runs or 5) * (effort or 1))) do
      local begun = core.clock()
      core.eval(mod, table.unpack(args, 1, args.n))
      if i > 0 then seconds[i] = core.clock() - begun end
    end
    return seconds
  end
end

return measure
