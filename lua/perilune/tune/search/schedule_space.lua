--- The space of schedules: a function that schedules a program, with sampled decisions.
--
-- A point is { decisions =, text = }: what was decided, in order, and the trace as JSON, which
-- makes the program without the function. The base is the program as it is.

local argument = require "perilune.argument"
local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
local inputs = require "perilune.tune.run.inputs"
core.internal()

local space = {}

local methods = {}
local class = { __name = "schedule space", __index = methods }

-- So many samples of a space are tried for one that no primitive refuses.
local MOST_TRIES = 20
local MOST_SEED = 2147483646
-- Of factors beyond this no divisor is looked for.
local MOST_FACTOR = 1 << 16

local function schedule(mod, options) return require "perilune.tir.schedule"(mod, options) end

-- The decisions of a schedule, and the primitives that took them: { name, most }, where most is the
-- largest innermost factor of a tile.
local function decisions_of(sch)
  local list, kinds = {}, {}
  for _, entry in ipairs(sch.trace.entries) do
    if entry.row.samples then
      local most = entry.args.max_innermost_factor or -1
      list[#list + 1] = entry.decision
      kinds[#kinds + 1] = { name = entry.row.name, most = most < 0 and math.huge or most }
    end
  end
  return list, kinds
end

-- Runs the function, with these decisions (false, and one that does not fit: a new one), or with a
-- function that takes them; nil and a failure.
local function run(self, seed, decisions)
  local sch = schedule(self.mod, { seed = seed, decisions = decisions, refit = true })
  local ok, why = pcall(self.rule, sch, self.info)
  if not ok then
    if failure.is_interrupt(why) then error(why, 0) end
    return nil, why
  end
  local list, kinds = decisions_of(sch)
  return { decisions = list, kinds = kinds, text = sch.trace:as_json() }
end

local function try(self, random, decisions_for)
  local point, why
  for _ = 1, MOST_TRIES do
    point, why = run(self, random:integer(MOST_SEED), decisions_for())
    if point then return point end
  end
  argument.fail(("the schedule failed %d times in a row: %s"):format(MOST_TRIES, tostring(why)))
end

--- The trace as JSON.
function methods.text(_, point) return point.text end

--- The trace of a point, a pl.tir.Trace.
function methods.trace(_, mod, point) return schedule(mod):apply_json(point.text).trace end

--- The module that a point makes.
function methods.apply(_, mod, point)
  if point.failure then error(point.failure, 0) end
  return space.apply(mod, point.text)
end

--- The points to begin with: the program as it is.
function methods.start(self)
  return { { decisions = {}, kinds = {}, text = schedule(self.mod).trace:as_json() } }
end

--- Any point.
function methods.random(self, random)
  return try(self, random, function() return {} end)
end

-- How often a decision of each primitive is mutated: MetaSchedule's rates of its mutators of tiles,
-- of locations, and of unrolled and parallel loops together.
local RATES = { sample_perfect_tile = 0.9, sample_compute_location = 0.05,
  sample_categorical = 0.05 }

-- The number of a decision: a primitive by its rate, then one of its decisions.
local function any_decision(kinds, random)
  local by_kind, names, total = {}, {}, 0
  for i, kind in ipairs(kinds) do
    local name = kind.name
    if not by_kind[name] then
      by_kind[name], names[#names + 1], total = {}, name, total + RATES[name]
    end
    table.insert(by_kind[name], i)
  end
  local left = random:number() * total
  for i, name in ipairs(names) do
    left = left - RATES[name]
    if left < 0 or i == #names then return random:element(by_kind[name]) end
  end
end

-- Divisors above 1 of a factor.
local function divisors_of(n)
  local list = {}
  for d = 2, n do
    if n % d == 0 then list[#list + 1] = d end
  end
  return list
end

-- A tile in which a divisor of one factor went to another one, as MetaSchedule mutates tiles; false
-- (a new one) where there is none. `most`: the largest innermost factor.
local function moved_tile(tile, most, random)
  local movable = {}
  for i, factor in ipairs(tile) do
    if factor > 1 and factor <= MOST_FACTOR then movable[#movable + 1] = i end
  end
  if #movable == 0 or #tile < 2 then return false end
  local out = table.move(tile, 1, #tile, 1, {})
  local from, to = random:element(movable), random:integer(#tile - 1)
  if to >= from then to = to + 1 end
  local d = random:element(divisors_of(out[from]))
  out[from], out[to] = out[from] // d, out[to] * d
  return out[#out] <= most and out
end

--- A point that differs in one decision, and in those that no longer fit. Of two tiles one is
-- sampled anew.
function methods.mutate(self, point, random)
  if #point.decisions == 0 then return self:random(random) end
  return try(self, random, function()
    local decisions = table.move(point.decisions, 1, #point.decisions, 1, {})
    local i = any_decision(point.kinds, random)
    local tile = decisions[i]
    decisions[i] = type(tile) == "table" and random:chance(0.5)
      and moved_tile(tile, point.kinds[i].most, random) or false
    return decisions
  end)
end

--- Each decision from one of two points.
function methods.crossover(self, a, b, random)
  if #a.decisions ~= #b.decisions then return self:mutate(a, random) end
  local tries = 0
  return try(self, random, function()
    tries = tries + 1
    local decisions = {}
    for i, decision in ipairs(a.decisions) do
      decisions[i] = random:chance(0.5) and decision or b.decisions[i]
    end
    -- Decisions that do not go together are made anew.
    return tries < MOST_TRIES and decisions or {}
  end)
end

-- --------------------------------------------------------------- enumeration

-- The alternatives of these numbers, 1 for those that have none: the point, or nil and a failure;
-- how many alternatives each decision has.
local function run_alternatives(self, numbers)
  local counts = {}
  local point, why = run(self, 1, function(i, n)
    counts[i] = n
    return ((numbers[i] or 1) - 1) % n + 1
  end)
  return point, why, counts
end

--- The numbers of alternatives where the first one of each is taken: later ones may have others.
function methods.choices(self)
  local _, _, counts = run_alternatives(self, {})
  return counts
end

--- The point of alternatives, counted anew from the first one where there are less of them.
function methods.of_decisions(self, numbers)
  local point, why = run_alternatives(self, numbers)
  if point then return point end
  return { decisions = {}, kinds = {}, failure = why,
    text = "alternatives " .. table.concat(numbers, ",") }
end

-- The numbers of the next alternatives, the last decision varies fastest; nil behind the last ones.
local function next_numbers(numbers, counts)
  for i = #counts, 1, -1 do
    local k = numbers[i] or 1
    if k < counts[i] then
      local out = table.move(numbers, 1, i - 1, 1, {})
      for j = #out + 1, i - 1 do out[j] = 1 end
      out[i] = k + 1
      return out
    end
  end
end

--- An iterator over all points, also where alternatives depend on those before them.
function methods.points(self)
  local numbers = {}
  return function()
    while numbers do
      local point, _, counts = run_alternatives(self, numbers)
      numbers = next_numbers(numbers, counts)
      if point then return point end
    end
  end
end

--- The same decisions, as far as they fit, for another program, which an earlier space of a joint
-- one makes.
function methods.rebase(self, mod, point)
  if #point.decisions == 0 then return point end
  local other, why = run(setmetatable({ mod = mod }, { __index = self }), 1, point.decisions)
  return other or error(why, 0)
end

--- The module that the text of a point makes.
function space.apply(mod, text) return schedule(mod):apply_json(text).mod end

--- The space of a function rule(sch, info), where info has func_name and threads; true: the
-- rules for blocks by their kind.
function space.new(mod, rule, threads, where)
  if rule == true then rule = require "perilune.tune.search.schedule_rules".default end
  argument.callable(rule, where, "schedule")
  local fn, name = inputs.entry(mod, where)
  if fn.kind ~= "PrimFunc" then
    argument.fail(("%s: schedule: a program of PrimFuncs expected, and @%s is a %s"):format(where,
      name, fn.kind))
  end
  local self = setmetatable({ kind = "schedule", mod = mod, rule = rule,
    info = { func_name = name, threads = threads } }, class)
  local first, why = run(self, 1, {})
  if not first then argument.fail(("%s: schedule: %s"):format(where, tostring(why))) end
  if #first.decisions == 0 then
    argument.fail(where .. ": schedule: it decides nothing: no block has loops that can be tiled")
  end
  return self
end

return space
