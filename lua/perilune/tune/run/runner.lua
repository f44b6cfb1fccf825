--- pl.tune.runner: measures what a builder made, in child processes with limits.
--
--     local runner = pl.tune.runner { seconds = 10, memory = 1 << 30 }
--     local result, why = runner:compare(candidate, incumbent)
--     if result and result.verdict == "faster" then print(result.ratio, result.confidence) end
--
-- A candidate that crashes, hangs, uses too much memory, prints what cannot be read or computes
-- something else is a failure with a kind and a message; this process goes on.

local argument = require "perilune.argument"
local child = require "perilune.tune.run.child"
local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
local inputs = require "perilune.tune.run.inputs"
local json = require "perilune.json"
local loop_steps = require "perilune.tune.run.loop_steps"
local lowered = require "perilune.tune.lowered"
local statistics = require "perilune.tune.run.statistics"
core.internal()

local runner = {}

local methods = {}
local class = { __name = "runner", __index = methods }

-- What a runner has, with defaults: limits of a child, how long a block lasts, how results are
-- compared; then what statistics.race takes.
local defaults = {
  seconds = 30, comparison_seconds = math.huge, memory = 4 << 30, output = 1 << 20,
  pinned = true, block = 200e-6,
  rounds = 3, rtol = 1e-3, atol = 1e-5,
  pairs = statistics.defaults.pairs, error = statistics.defaults.error,
  difference = statistics.defaults.difference, drop = statistics.defaults.drop,
  warm_up = statistics.defaults.warm_up, seed = statistics.defaults.seed,
}

-- A program of more steps is not interpreted, which takes some 50 ns a step.
local MOST_INTERPRETED = 1 << 24

-- How much of the time limit of a child the blocks may take.
local SHARE_OF_BLOCKS = 0.5

-- What a child may take: the time limit, and no more than is left until the deadline.
local function seconds_of(self)
  return math.min(self.seconds, math.max(self.deadline - core.clock(), 0.001))
end

local function limits_of(self)
  return { seconds = seconds_of(self), memory = self.memory, output = self.output,
    pinned = self.pinned }
end

local function race_options(self)
  return { pairs = self.pairs, error = self.error,
    difference = self.difference, drop = self.drop, warm_up = self.warm_up, seed = self.seed,
    seconds = math.min(seconds_of(self) * SHARE_OF_BLOCKS, self.comparison_seconds),
    patient = self.patient }
end

-- What a child wrote, as a table.
local function decoded(text, why)
  if not text then return nil, why end
  local row = json.decode(text)
  if type(row) == "table" then return row end
  return nil, failure.new("output", "its result cannot be read: %q", text:sub(1, 80))
end

local function in_child(self, f)
  return decoded(child.call(function() return json.encode(f()) end, limits_of(self)))
end

-- Raises the failure of a command.
local function command_block(self, runnable)
  local result, why = child.run(runnable.words, limits_of(self))
  local seconds
  if result then seconds, why = runnable.seconds_of(result) end
  if not seconds then error(why, 0) end
  return seconds
end

local function guarded(f, ...)
  local ok, result = pcall(f, ...)
  if ok then return result end
  if failure.is(result) then return nil, result end
  error(result, 0)
end

-- ------------------------------------------------------------------- measuring

local function check_runnable(x, where)
  if type(x) ~= "table" or (x.where ~= "process" and x.where ~= "command") then
    argument.fail(("%s: what a builder made is expected, got a %s"):format(where,
      argument.kind_of(x)))
  end
  return x
end

--- Measures by itself: { min =, median =, n = } in seconds of a run; nil and a failure.
function methods.run(self, runnable)
  check_runnable(runnable, "runner:run")
  local options = race_options(self)
  if runnable.where == "command" then
    return guarded(statistics.repeated, function() return command_block(self, runnable) end,
      core.clock, options)
  end
  return in_child(self, function()
    local block = runnable.open()
    return statistics.repeated(function() return block(self.block) end, core.clock, options)
  end)
end

local function compare_commands(self, pair)
  local current
  local result, why = guarded(statistics.race, function(side)
    current = side
    return command_block(self, pair[side])
  end, core.clock, race_options(self))
  return result, why, why and current == 2
end

local function compare_in_process(self, pair)
  local result, why = in_child(self, function()
    local shared = {}
    local blocks = { pair[1].open(shared), pair[2].open(shared) }
    return statistics.race(function(side) return blocks[side](self.block) end, core.clock,
      race_options(self))
  end)
  if result then return result end
  if core.clock() >= self.deadline then return nil, why end
  -- Which of the two it was.
  local alone, reason = self:run(pair[1])
  return nil, reason or why, alone ~= nil
end

--- Compares the candidate with the incumbent, which alternate in one process: the result of
-- perilune.tune.run.statistics, with verdict, confidence and ratio. nil, a failure, and
-- whether the candidate is not to blame for it.
function methods.compare(self, candidate, incumbent)
  check_runnable(candidate, "runner:compare")
  check_runnable(incumbent, "runner:compare")
  if candidate.where ~= incumbent.where then
    argument.fail "runner:compare: both are made by one builder"
  end
  local compare = candidate.where == "command" and compare_commands or compare_in_process
  return compare(self, { candidate, incumbent })
end

-- -------------------------------------------------------------------- checking

local function is_loop_level(mod) return require "perilune.tir.check".is_loop_level(mod) end

local function flatten(value, into)
  if type(value) ~= "table" then
    into[#into + 1] = value
  else
    for _, field in ipairs(value) do flatten(field, into) end
  end
  return into
end

-- What the buffers of a PrimFunc are after a call, as the interpreter says, or, where that takes
-- too long, its C as it is written.
local function buffers_of(mod, fn, name, args)
  if loop_steps(mod) <= MOST_INTERPRETED then
    return require "perilune.tir.run".run(fn, args)
  end
  local built = require "perilune.codegen"(lowered(mod), { run = "process" })
  return built:run(name, table.unpack(args, 1, args.n))
end

-- The same; the outputs of a model, as the evaluator says.
local function expected_of(mod, fn, name, args)
  if fn.kind == "PrimFunc" then return buffers_of(mod, fn, name, args) end
  return flatten(core.eval_in(mod, fn, table.unpack(args, 1, args.n)), {})
end

local function arguments_of(self, fn, round) return inputs.make(fn, self.seed * 1000003 + round) end

-- The shapes of what a PrimFunc leaves are those of its arguments: their bytes tell all.
local function bytes_of(list)
  local parts = {}
  for i, tensor in ipairs(list) do parts[i] = tensor:to_bytes() end
  return table.concat(parts)
end

local function of_bytes(bytes, args)
  local list, at = {}, 1
  for i = 1, args.n do
    local tensor = args[i]
    list[i] = core.tensor_bytes(bytes:sub(at, at + tensor.bytes - 1), tensor.shape, tensor.dtype)
    at = at + tensor.bytes
  end
  return list
end

-- What an original PrimFunc computes, in a child with limits, once for each round: the
-- interpreter takes its time. nil and a failure.
local function remember(self, original, fn, name, round)
  local known = self.expected[original] or {}
  self.expected[original] = known
  if known[round] then return true end
  local args, limits = arguments_of(self, fn, round), limits_of(self)
  for i = 1, args.n do limits.output = limits.output + args[i].bytes end
  local bytes, why = child.call(function()
    return bytes_of(expected_of(original, fn, name, args))
  end, limits)
  if not bytes then return nil, why end
  known[round] = of_bytes(bytes, args)
  return true
end

local function remember_all(self, original)
  local fn, name = inputs.entry(original, "runner:check")
  for round = 1, fn.kind == "PrimFunc" and self.rounds or 0 do
    local ok, why = remember(self, original, fn, name, round)
    if not ok then return nil, why end
  end
  return true
end

-- What a compiled function leaves in its buffers, or a compiled model gives.
local function compare_built(self, original, runnable)
  local fn, name = inputs.entry(original, "runner:check")
  local tolerance = { rtol = self.rtol, atol = self.atol, scaled = true }
  local difference = require "perilune.check.tensor_difference"
  local what = fn.kind == "PrimFunc" and "buffer" or "output"
  for round = 1, self.rounds do
    local args, known = arguments_of(self, fn, round), self.expected[original]
    local expected = known and known[round] or expected_of(original, fn, name, args)
    local got = runnable.built:run(runnable.name, table.unpack(args, 1, args.n))
    for i, tensor in ipairs(expected) do
      local how = difference(got[i], tensor, tolerance)
      if how then return ("round %d: %s %d%s"):format(round, what, i, how) end
    end
  end
  return ""
end

-- "" or what differs.
local function difference_of(self, original, runnable)
  if runnable.built then return compare_built(self, original, runnable) end
  local pl = require "perilune"
  local options = { rounds = self.rounds, seed = self.seed, rtol = self.rtol, atol = self.atol }
  local same, diag
  if is_loop_level(original) then
    same, diag = pl.tir.check(original, runnable.mod, options)
  else
    options.units = 4
    same, diag = pl.check(original, runnable.mod, options)
  end
  return same and "" or diag.message
end

--- Whether the runnable computes what the module does, as the evaluator says: true; nil and a
-- failure ("wrong result").
function methods.check(self, original, runnable)
  check_runnable(runnable, "runner:check")
  if argument.kind_of(original) ~= "Module" then
    argument.fail("runner:check: a module expected, got " .. argument.kind_of(original))
  end
  if original == runnable.mod and not runnable.built then return true end
  if runnable.built then
    local ok, reason = remember_all(self, original)
    if not ok then return nil, reason end
  end
  local text, why = child.call(function() return difference_of(self, original, runnable) end,
    limits_of(self))
  if not text then return nil, why end
  if text ~= "" then return nil, failure.new("wrong result", "%s", text) end
  return true
end

--- A runner with other options. What original programs compute is known to both.
function methods.with(self, options)
  local all = {}
  for name in pairs(defaults) do all[name] = self[name] end
  for name, value in pairs(options) do all[name] = value end
  local other = runner.new(all)
  other.expected, other.deadline = self.expected, self.deadline
  return other
end

--- The same runner, whose children end at that time of the clock.
function methods.before(self, deadline)
  local other = self:with {}
  other.deadline = deadline
  return other
end

-- ---------------------------------------------------------------- constructor

local where = "pl.tune.runner"

local integers = { memory = 0, output = 1, pairs = 1, warm_up = 0, seed = math.mininteger,
  rounds = 1 }

local function check_option(name, value)
  local default = defaults[name]
  if integers[name] then
    if math.type(value) ~= "integer" or value < integers[name] then
      argument.fail(("%s: %s: an integer from %d on expected"):format(where, name, integers[name]))
    end
  elseif type(value) ~= type(default) then
    argument.fail(("%s: %s: a %s expected, got %s"):format(where, name, type(default), type(value)))
  elseif type(value) == "number" and (value ~= value or value < 0) then
    argument.fail(("%s: %s: a number that is not negative expected"):format(where, name))
  end
end

local names = {}
for name in pairs(defaults) do names[#names + 1] = name end
table.sort(names)

--- A runner. Limits of each child: seconds (30), memory (bytes beyond this process's, 4 GiB),
-- output (bytes), pinned (to a processor). A comparison: comparison_seconds (what its blocks take,
-- at most half of seconds), block (seconds), pairs, warm_up, error
-- (probability of a wrong verdict), difference (what is less is none), drop, seed. Checks: rounds,
-- rtol, atol.
function runner.new(options)
  local self = { expected = setmetatable({}, { __mode = "k" }), deadline = math.huge }
  for name, value in pairs(defaults) do self[name] = value end
  for name, value in pairs(argument.options(options, where, names)) do
    check_option(name, value)
    self[name] = value
  end
  return setmetatable(self, class)
end

--- Whether a value is a runner.
function runner.is(x) return getmetatable(x) == class end

return runner
