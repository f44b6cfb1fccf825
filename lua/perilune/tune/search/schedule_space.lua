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

local function schedule(mod, options) return require "perilune.tir.schedule"(mod, options) end

local function decisions_of(sch)
  local list = {}
  for _, entry in ipairs(sch.trace.entries) do
    if entry.row.samples then list[#list + 1] = entry.decision end
  end
  return list
end

-- Runs the function, with these decisions (false: a new one) in order; nil and a failure.
local function run(self, seed, decisions)
  local sch = schedule(self.mod, { seed = seed, decisions = decisions })
  local ok, why = pcall(self.rule, sch, self.info)
  if not ok then
    if failure.is_interrupt(why) then error(why, 0) end
    return nil, why
  end
  return { decisions = decisions_of(sch), text = sch.trace:as_json() }
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
function methods.apply(_, mod, point) return space.apply(mod, point.text) end

--- The points to begin with: the program as it is.
function methods.start(self)
  return { { decisions = {}, text = schedule(self.mod).trace:as_json() } }
end

--- Any point.
function methods.random(self, random)
  return try(self, random, function() return {} end)
end

--- A point that differs in one decision, and in those that no longer fit.
function methods.mutate(self, point, random)
  if #point.decisions == 0 then return self:random(random) end
  return try(self, random, function()
    local decisions = table.move(point.decisions, 1, #point.decisions, 1, {})
    decisions[random:integer(#decisions)] = false
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
