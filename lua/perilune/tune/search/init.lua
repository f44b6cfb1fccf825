--- pl.tune.search: looks for what makes a module cheaper, by measuring.
--
--     local result = pl.tune.search { mod = model, base = pl.pipelines.default, trials = 100,
--       seconds = 60, strategy = "evolutionary", database = pl.tune.database { path = "tune.db" } }
--     print(result.verdict, result.ratio, result.confidence)
--     pl.save(result.mod, "tuned.onnx")
--
-- What is found is never slower than the base beyond what measurements can tell: a candidate
-- becomes the incumbent when it is faster with confidence and computes what the original
-- does, and at the end it is compared with the base once more. Given the measurements the search
-- is decided by its settings: what the database has is not measured again, so that a search that
-- was killed goes on where it was, and `replay` repeats it without measuring.

local argument = require "perilune.argument"
local builder = require "perilune.tune.run.builder"
local core = require "perilune.core"
local database = require "perilune.tune.database"
local failure = require "perilune.tune.run.failure"
local objective = require "perilune.tune.search.objective"
local pareto_front = require "perilune.tune.search.pareto_front"
local random = require "perilune.tune.random"
local runner = require "perilune.tune.run.runner"
local spaces = require "perilune.tune.search.spaces"
local strategies = require "perilune.tune.search.strategies"
local tasks = require "perilune.tune.search.tasks"
local text_hash = require "perilune.tune.text_hash"
local time_limit = require "perilune.tune.run.time_limit"
core.internal()

local search = {}

local where = "pl.tune.search"

local function fail(message) core.raise(core.diag("unsupported", message)) end

-- So many points in a row that were measured already: the space is searched.
local MOST_REPEATED = 2000
-- A comparison with the base has so many times the pairs of one with the incumbent.
local CONFIRMING = 2

-- The part of the seconds that one comparison takes at most; and measuring single calls, where
-- candidates are made by what those cost.
local SHARE_OF_COMPARISON, SHARE_OF_CALLS = 0.1, 0.4

local methods = {}
local class = { __index = methods }

-- What ends a strategy.
local stop = {}

local function end_search(self, state)
  self.state = state
  error(stop, 0)
end

-- ------------------------------------------------------------------- candidates

local function module_text(mod) return mod:text { constants = "brief", hash_references = true } end

-- What the passes make of the module before that time of the clock; nil and a failure. Passes that
-- fail leave no trace.
local function make(self, point, deadline)
  local ok, mod = time_limit(deadline or math.huge, self.space.apply, self.space, self.mod, point)
  if ok then return { mod = mod } end
  if failure.is_interrupt(mod) then error(mod, 0) end
  return nil, failure.new("error", "%s", tostring(mod))
end

local function failed(why) return { failure = tostring(why), checked = false } end

-- The trial of what failed. What the deadline ended is none: the budget is spent.
local function failed_in_time(self, why)
  local too_long = failure.is(why) and why.kind == "deadline"
  self.is_too_long = too_long and core.clock() < self.deadline
  if too_long or core.clock() >= self.deadline then end_search(self, "done") end
  return failed(why)
end

-- Results are compared before a candidate may win.
local function check_winner(self, one, trial)
  if trial.verdict ~= "faster" then return trial end
  local ok, why = self.objective:check(self.original, one)
  if not ok then return failed_in_time(self, why) end
  trial.checked = true
  return trial
end

local function measure_module(self, one, effort)
  local result, why = self.objective:measure(one, effort)
  if not result then return failed_in_time(self, why) end
  return check_winner(self, one, { cost = result.cost, costs = result.costs,
    verdict = result.verdict, confidence = result.confidence, seconds = result.seconds,
    checked = false })
end

-- Equal modules are measured once.
local function measure_point(self, point, effort, key)
  local one, why = make(self, point, self.deadline)
  if not one then return failed_in_time(self, why) end
  local module_key = ("%s/%g"):format(text_hash(module_text(one.mod)), effort)
  local known = self.by_module[module_key]
  if known then
    local copy = { verdict = "undecided", checked = known.checked, cost = known.cost,
      costs = known.costs, failure = known.failure, seconds = known.seconds,
      confidence = known.confidence, note = "the same module as of another candidate" }
    return copy, one
  end
  local trial = measure_module(self, one, effort)
  self.by_module[module_key] = trial
  self.count.measured = self.count.measured + 1
  trial.key = key
  return trial, one
end

-- ----------------------------------------------------------------------- trials

local function kind_of(self, effort)
  return effort == 1 and self.space.kind or ("%s/%g"):format(self.space.kind, effort)
end

local function recorded(self, kind, text)
  if self.unrecorded then return nil end
  local trial = self.database:get_trial(self.workload, self.target, kind, text)
  if trial then
    self.count.cached = self.count.cached + 1
  elseif self.replay then
    fail(("%s: replay: there is no record of the candidate '%s'"):format(where, text))
  end
  return trial
end

-- Why records are not kept any more. That ends the search: all would be measured again.
local function note_unrecorded(self, why, what)
  if failure.is_interrupt(why) then error(why, 0) end
  self.unrecorded = ("%s; %s"):format(type(why) ~= "string" and why.message or tostring(why), what)
end

local function commit(self, kind, text, trial)
  if self.unrecorded then return end
  local ok, why = pcall(self.database.commit_trial, self.database, self.workload, self.target, {
    kind = kind, text = text, cost = trial.cost, checked = trial.checked, verdict = trial.verdict,
    confidence = trial.confidence, seconds = trial.seconds, failure = trial.failure,
    note = trial.note })
  if not ok then
    note_unrecorded(self, why, ("the record of the %s candidate '%s' is not kept"):format(
      self.space.kind, text))
  end
end

local function note_progress(self)
  if self.replay or self.unrecorded then return end
  local ok, why = pcall(self.database.commit_search, self.database, self.workload, self.target,
    self.settings, { trials = self.count.trials, state = self.state or "running" })
  if not ok then note_unrecorded(self, why, "how far the search came is not kept") end
end

local function accept(self, point, text, trial, one)
  if trial.verdict ~= "faster" or not trial.checked then return end
  -- Several may have been compared with one incumbent.
  if self.best and trial.cost >= self.best.cost then return end
  one = one or make(self, point)
  if not one then return end
  self.best = { point = point, text = text, mod = one.mod, runnable = one.runnable,
    cost = trial.cost,
    confidence = trial.confidence, trial = self.count.trials }
  one.time = one.time or trial.costs and trial.costs.time
  self.objective:accept(one, trial.cost)
end

local function note_trial(self, point, text, trial, one)
  trial.text = text
  self.list[#self.list + 1] = trial
  if trial.failure then self.count.failed = self.count.failed + 1 end
  accept(self, point, text, trial, one)
  note_progress(self)
  if self.on_trial then self.on_trial(self, trial) end
end

local function check_budget(self)
  self:check_time()
  if self.count.trials >= self.trials then end_search(self, "done") end
end

-- -------------------------------------------------------------- trials as tasks

-- What tasks compare with: the best so far, or the base.
local function incumbent_of(self)
  local best = self.best
  return { text = best and best.text or self.tasks.base, cost = best and best.cost or 1,
    time = best and self.objective.incumbent.time or 1 }
end

-- The item of a point whose module nobody has measured yet, or nil.
local function item_of(self, point, effort, modules)
  local text, kind = self.space:text(point), kind_of(self, effort)
  local key = kind .. "/" .. text
  if self.costs[key] or self.fetched[key]
    or self.database:get_trial(self.workload, self.target, kind, text) then return nil end
  local one = make(self, point, self.deadline)
  local module_key = one and ("%s/%g"):format(text_hash(module_text(one.mod)), effort)
  if not one or self.by_module[module_key] or modules[module_key] then return nil end
  modules[module_key] = true
  return { text = text, effort = effort, incumbent = incumbent_of(self), on_trial = function(trial)
    self.fetched[key] = { trial = trial, one = one, module_key = module_key }
    commit(self, kind, text, trial)
  end }
end

-- Has the points measured by tasks: what comes of it is taken from self.fetched.
local function fetch(self, points, effort)
  local items, modules, room = {}, {}, self.trials - self.count.trials
  for _, point in ipairs(points) do
    if #items >= room then break end
    items[#items + 1] = item_of(self, point, effort, modules)
  end
  local seconds = self.begun + self.seconds - core.clock()
  if not self.tasks:measure(items, seconds) then end_search(self, "done") end
end

local function take_fetched(self, key)
  local fetched = self.fetched[key]
  if not fetched then return nil end
  self.fetched[key] = nil
  self.by_module[fetched.module_key] = fetched.trial
  self.count.measured = self.count.measured + 1
  fetched.trial.key = key
  return fetched.trial, fetched.one
end

-- --------------------------------------------------------------- costs of points

-- The trial of a point, and what was made of it where that was needed.
local function trial_of(self, point, effort, text, kind)
  local key = kind .. "/" .. text
  local trial, one = take_fetched(self, key)
  if trial then return trial, one end
  trial = recorded(self, kind, text)
  if trial then return trial end
  trial, one = measure_point(self, point, effort, key)
  commit(self, kind, text, trial)
  return trial, one
end

-- math.huge when it failed.
local function cost_of(self, point, effort)
  local text, kind = self.space:text(point), kind_of(self, effort)
  local key = kind .. "/" .. text
  if self.costs[key] then
    self.repeated = self.repeated + 1
    if self.repeated > MOST_REPEATED then end_search(self, "exhausted") end
    return self.costs[key]
  end
  check_budget(self)
  self.repeated = 0
  local trial, one = trial_of(self, point, effort, text, kind)
  self.count.trials = self.count.trials + 1
  self.costs[key] = trial.cost or math.huge
  if self.proposal and effort == 1 then
    one = one or (trial.cost and make(self, point))
    self.proposal:learn(one and one.mod, trial.cost)
  end
  note_trial(self, point, text, trial, one)
  if self.unrecorded then end_search(self, "unrecorded") end
  return self.costs[key]
end

--- The costs of points, 1 for the base; math.huge for one that failed. `effort` (1): the part of
-- the pairs of blocks that are measured.
function methods.costs_of(self, points, effort)
  effort = effort or 1
  if self.tasks and not self.replay then
    check_budget(self)
    fetch(self, points, effort)
  end
  local costs = {}
  for i, point in ipairs(points) do costs[i] = cost_of(self, point, effort) end
  return costs
end

--- The same; nil where building one takes longer than what is left: others may take less.
function methods.costs_in_time(self, points)
  local ok, costs = pcall(self.costs_of, self, points)
  if ok then return costs end
  if costs ~= stop or self.state ~= "done" or not self.is_too_long then error(costs, 0) end
  self.state, self.is_too_long = nil, nil
  return nil
end

--- The cost of a point.
function methods.cost(self, point, effort) return self:costs_of({ point }, effort)[1] end

-- ------------------------------------------------------------- trials of parts

local function part_kind(self) return self.space.kind .. "/part" end

--- The recorded trial of a part of the program, or nil.
function methods.recorded_part(self, text)
  if self.unrecorded then return nil end
  local trial = self.database:get_trial(self.workload, self.target, part_kind(self), text)
  if trial then self.count.cached = self.count.cached + 1 end
  return trial
end

--- Records the trial of a part.
function methods.commit_part(self, text, trial)
  self.count.measured = self.count.measured + 1
  commit(self, part_kind(self), text, trial)
end

--- Counts a trial of a part; ends the search when that is asked for.
function methods.note_part(self, text, trial)
  if core.interrupted() then end_search(self, "interrupted") end
  trial.text, trial.part = text, true
  self.count.trials = self.count.trials + 1
  self.list[#self.list + 1] = trial
  if trial.failure then self.count.failed = self.count.failed + 1 end
  note_progress(self)
  if self.on_trial then self.on_trial(self, trial) end
end

--- Whether a point was measured with all of the effort.
function methods.is_known(self, point)
  return self.costs[kind_of(self, 1) .. "/" .. self.space:text(point)] ~= nil
end

--- A point of those that propose() gives: with a cost model the one that it expects to be the best.
function methods.choose(self, propose)
  if not self.proposal then return propose() end
  return self.proposal:choose(self, propose)
end

--- Whether expected_cost knows something.
function methods.can_expect(self) return self.proposal ~= nil and self.proposal:is_ready() end

--- What the cost model expects of a point.
function methods.expected_cost(self, point) return self.proposal:expected(self, point) end

--- Ends the search when it is interrupted or its time is spent.
function methods.check_time(self)
  if core.interrupted() then end_search(self, "interrupted") end
  if not self.replay and core.clock() > self.deadline then end_search(self, "done") end
end

--- Whether an error ends the search because of Ctrl-C.
function methods.is_interrupted(self, why)
  return failure.is_interrupt(why) or why == stop and self.state == "interrupted"
end

--- The time of the clock at which measurements end.
function methods.set_deadline(self, deadline)
  self.deadline, self.space.deadline = deadline, deadline
  self.objective:set_deadline(deadline)
end

--- Ends the search because of Ctrl-C, after a function that measures a last time, whatever the
-- budget.
function methods.end_interrupted(self, f, ...)
  self.trials = math.huge
  self:set_deadline(math.huge)
  local stopped, ok, why = core.until_stopped(f, ...)
  if not ok and not stopped and why ~= stop and not failure.is_interrupt(why) then
    error(why, 0)
  end
  end_search(self, "interrupted")
end

--- The part of the trials that is spent, from 0 to 1.
function methods.progress(self)
  return self.count.trials / self.planned
end

-- ------------------------------------------------------------------ the winner

-- The least cost of a candidate whose results are right, or nil.
local function least_cost(self)
  local least
  for _, trial in ipairs(self.list) do
    local cost = not trial.part and not trial.failure and trial.cost or math.huge
    if cost < (least or math.huge) then least = cost end
  end
  return least
end

-- The base again, when the winner is not faster than it is.
local function give_up(self, why)
  self.best = nil
  return { verdict = "undecided", ratio = 1, confidence = 0, reason = why }
end

local function fetch_winner(self)
  local trial
  self.tasks:measure({ { text = self.best.text, effort = CONFIRMING, incumbent = { cost = 1,
    time = 1, text = self.tasks.base }, on_trial = function(fetched) trial = fetched end } },
    math.huge)
  trial.checked = trial.verdict == "faster"
  return trial
end

local function measure_winner(self)
  if self.tasks then return fetch_winner(self) end
  local winner = { mod = self.best.mod, runnable = self.best.runnable }
  self.objective:set_deadline(math.huge)
  self.objective:accept({ mod = self.base_mod, runnable = self.base_runnable }, 1)
  self.objective.incumbent.time = 1
  local result, why = self.objective:measure(winner, CONFIRMING)
  if not result then return failed(why) end
  local trial = { cost = result.cost, verdict = result.verdict, confidence = result.confidence,
    seconds = result.seconds, checked = result.verdict == "faster" }
  return trial
end

-- Why nothing was measured.
local function unmeasured(self)
  return ("no candidate was measured: %.0f s of the %g went by until the base was built and "
    .. "measured, and the rest is less than a candidate takes"):format(self.base_end - self.begun,
    self.seconds)
end

-- Compares what was found with the base; what the database has of it is taken.
local function confirm(self)
  if not self.best then
    local least = least_cost(self)
    if self.count.trials == 0 and self.state == "done" and self.base_end then
      return give_up(self, unmeasured(self))
    end
    return give_up(self, "no candidate was better with confidence" .. (least
      and ("; the least measured cost is %.3f of the base"):format(least) or ""))
  end
  local kind, text = self.space.kind .. "/winner", self.best.text
  local trial = not self.unrecorded
    and self.database:get_trial(self.workload, self.target, kind, text)
  if not trial then
    if self.replay then fail(where .. ": replay: the winner was not compared") end
    trial = measure_winner(self)
    commit(self, kind, text, trial)
  end
  if trial.verdict ~= "faster" then
    return give_up(self, trial.failure or ("the best candidate, compared once more, is not better "
      .. "with confidence: its cost is %.3f of the base"):format(trial.cost))
  end
  return { verdict = "faster", ratio = trial.cost, confidence = trial.confidence,
    seconds = trial.seconds }
end

local function finish(self)
  if self.state == "interrupted" or self.was_interrupted then
    return self.best and { verdict = "faster", ratio = self.best.cost,
      confidence = self.best.confidence } or give_up(self, "interrupted")
  end
  return confirm(self)
end

-- ---------------------------------------------------------------------- running

local function run_strategy(self, strategy)
  local stopped, ok, err = core.until_stopped(function()
    self:costs_of(self.space:start())
    strategy(self)
  end)
  if ok then
    self.state = "exhausted"
  elseif stopped == "interrupted" or failure.is_interrupt(err) then
    self.state = "interrupted"
  elseif err ~= stop then
    error(err, 0)
  end
end

local function result_of(self, final)
  local best = self.best
  local mod = best and best.mod or self.base_mod
  return { mod = mod, base = self.base_mod, point = best and best.point,
    text = best and best.text or self.space:text(self.space:start()[1]),
    trace = best and self.space.trace and self.space:trace(self.mod, best.point) or nil,
    verdict = final.verdict, ratio = final.ratio, confidence = final.confidence,
    reason = final.reason, state = self.state, unrecorded = self.unrecorded,
    trials = self.count.trials,
    measured = self.count.measured, cached = self.count.cached, failed = self.count.failed,
    model = self.proposal and self.proposal:quality(), target = self.target,
    list = self.list, front = #self.objective.metrics > 1 and pareto_front(self.list) or nil,
    seconds = core.clock() - self.begun }
end

-- A text of the settings that decide how a search goes.
local function settings_text(options)
  local width = options.width > 1 and ("width=%d,"):format(options.width) or ""
  local model = options.cost_model and (",cost_model=%s,population=%d"):format(options.cost_model,
    options.population) or ""
  return ("strategy=%s,seed=%d,trials=%d,%sbase=%s%s"):format(options.strategy, options.seed,
    options.trials, width, options.space:text(options.space:start()[1]), model)
end

local function most_trials(self, options)
  if not options.replay then return options.trials end
  local row = self.database:get_search(self.workload, self.target, self.settings)
  if not row then
    fail(where .. ": replay: the database has no search of these settings")
  end
  self.was_interrupted = row.state == "interrupted"
  return math.min(options.trials, row.trials)
end

local function new_search(options)
  local self = setmetatable({ mod = options.mod, original = options.original or options.mod,
    space = options.space, objective = options.objective, random = random(options.seed),
    database = options.database, on_trial = options.on_trial, replay = options.replay,
    seconds = options.seconds, planned = options.trials, settings = settings_text(options),
    width = options.width, population = options.population,
    fetched = {}, serial = 0, repeated = 0, by_module = {}, costs = {},
    list = {}, begun = options.begun, deadline = math.huge,
    rebuild_seconds = 0,
    count = { trials = 0, measured = 0, cached = 0, failed = 0 } }, class)
  self.target = options.target or self.objective:target()
  self.workload = self.database:commit_workload(options.mod)
  if options.cost_model then
    self.proposal = require "perilune.tune.search.proposal".new(options.cost_model, options.mod)
  end
  self.trials = most_trials(self, options)
  -- What was found is compared with the base within the budget.
  if not self.replay then
    self.deadline = self.begun + self.seconds * (1 - SHARE_OF_COMPARISON)
  end
  if options.queue then
    self.tasks = tasks.new { queue = options.queue, command = options.command,
      seconds = options.task_seconds, kind = self.space.kind,
      base = self.space:text(self.space:start()[1]) }
  end
  return self
end

-- Builds and measures the base, within the budget.
local function measure_base(self, mod)
  local begun = core.clock()
  self:set_deadline(self.deadline)
  local ok, why = pcall(self.objective.start, self.objective, mod)
  local now = core.clock()
  if not ok and failure.is_interrupt(why) then error(why, 0) end
  if not ok and (now >= self.deadline or failure.is(why) and why.kind == "deadline") then
    fail(("%s: the base cannot be built and measured within %g s; a search needs several times "
      .. "what that takes: %s"):format(where, self.seconds, why.message or tostring(why)))
  end
  if not ok then error(why, 0) end
  local runnable = self.objective.incumbent.runnable
  local compile_time = runnable and runnable.compile_time or 0
  self.base_runnable, self.base_end = runnable, now
  self.rebuild_seconds = math.max(now - begun - compile_time, 0)
  self.objective:limit_comparisons(self.seconds * SHARE_OF_COMPARISON)
  self:set_deadline(self.deadline)
end

-- The base pipeline is no candidate: it is what candidates are compared with.
local function start(self)
  local point = self.space:start()[1]
  local one, why = make(self, point)
  if not one then fail(("%s: the base fails: %s"):format(where, tostring(why))) end
  self.base_mod = one.mod
  if self.replay or self.tasks then
    self.objective.incumbent = { time = 1 }
  else
    measure_base(self, one.mod)
  end
  local kind = self.space.kind
  self.costs[kind .. "/" .. self.space:text(point)] = 1.0
  self.by_module[("%s/%g"):format(text_hash(module_text(one.mod)), 1)] = { cost = 1.0,
    checked = true, verdict = "undecided", costs = {} }
end

-- ---------------------------------------------------------------------- options

local names = { "mod", "original", "base", "pool", "space", "knobs", "schedule", "substitution",
  "strategy", "trials", "seconds", "seed", "metrics", "builder", "runner", "database", "target",
  "on_trial", "replay", "queue", "command", "width", "task_seconds", "cost_model", "population" }
-- MetaSchedule's population. What is measured less often needs no more points to choose from.
local MOST_POPULATION = 512

local function check_number(options, name, default, least)
  local x = options[name]
  if x == nil then return default end
  if not (type(x) == "number" and x >= least) then
    argument.fail(("%s: %s: a number from %g on expected"):format(where, name, least))
  end
  return x
end

local function module_option(options, name)
  if argument.kind_of(options[name]) ~= "Module" then
    argument.fail(("%s: %s: a module expected, got %s"):format(where, name,
      argument.kind_of(options[name])))
  end
  return options[name]
end

local function strategy_of(options)
  return strategies.check(options.strategy or "evolutionary", where)
end

local function checked_tools(options)
  local made = { builder = options.builder or builder.new(), runner = options.runner
    or runner.new() }
  if not builder.is(made.builder) then
    argument.fail(where .. ": builder: pl.tune.builder makes one")
  end
  if not runner.is(made.runner) then
    argument.fail(where .. ": runner: pl.tune.runner makes one")
  end
  made.metrics = options.metrics
  return made
end

-- Those of trials that are tasks.
local function check_tasks(options, out)
  out.width = math.tointeger(check_number(options, "width", options.queue and 16 or 1, 1))
    or argument.fail(where .. ": width: an integer expected")
  if options.queue == nil then return end
  if not require "perilune.tune.queue".is(options.queue) then
    argument.fail(where .. ": queue: what pl.tune.queue makes is expected")
  elseif options.knobs then
    argument.fail(where .. ": queue: knobs are decided in this process")
  end
  out.queue, out.command = options.queue, argument.table(options.command, where, "command")
  out.task_seconds = check_number(options, "task_seconds", 3600, 1)
end

-- Models that learn from the trials.
local learning = { trees = true, ridge = true, xgboost = true }

local function cost_model_of(options)
  local kind = options.cost_model
  if kind ~= nil and not learning[argument.string(kind, where, "cost_model")] then
    argument.fail(("%s: there is no cost_model '%s'%s"):format(where, kind,
      argument.near(kind, learning)))
  end
  if kind == "xgboost" then require "perilune.tune.cost.xgboost".check() end
  return kind
end

local function checked(options)
  options = argument.options(options, where, names)
  module_option(options, "mod")
  local out = { mod = options.mod, replay = options.replay and true or false,
    original = options.original ~= nil and module_option(options, "original") or nil,
    strategy = strategy_of(options), trials = options.trials or 100,
    seconds = check_number(options, "seconds", math.huge, 0), seed = options.seed or 1,
    database = options.database or database.new() }
  check_tasks(options, out)
  out.population = math.tointeger(check_number(options, "population",
    math.max(16, math.min(MOST_POPULATION, out.trials)), 2))
    or argument.fail(where .. ": population: an integer expected")
  if math.type(out.seed) ~= "integer" then argument.fail(where .. ": seed: an integer expected") end
  if math.type(out.trials) ~= "integer" or out.trials < 1 then
    argument.fail(where .. ": trials: an integer from 1 on expected")
  end
  if not database.is(out.database) then
    argument.fail(where .. ": database: what pl.tune.database() makes is expected")
  end
  if options.on_trial ~= nil then argument.callable(options.on_trial, where, "on_trial") end
  if options.target ~= nil then argument.string(options.target, where, "target") end
  out.on_trial, out.target = options.on_trial, options.target
  out.cost_model = cost_model_of(options)
  local tools = checked_tools(options)
  out.objective = objective.new(tools, where)
  out.space = spaces.of(options, tools.builder.threads, where)
  spaces.check(out.space, out.strategy, tools.builder, where)
  return out
end

-- --------------------------------------------------------------------- public

--- Searches: { mod =, base = "pipeline" or a pass, pool = texts of passes } or { mod =, knobs = }
-- or { mod =, schedule = function(sch, info) or true }, or { mod =, substitution = { rules = } or
-- true }, with space ("pipeline", "layout", "combine", "substitution", "knobs", "schedule", or
-- several in the order in which they work: "pipeline+layout"),
-- strategy ("evolutionary", "exhaustive", "random", "beam", "annealing", "halving", "bandit"),
-- trials (100), seconds, seed (1), metrics ({ "time" }), builder, runner, database, target,
-- original (what results are compared with: mod), on_trial(search, trial), replay,
-- cost_model ("trees", "ridge", "xgboost": which of several points is measured; it learns from the
-- trials), population (of evolution: 512, or as many as trials). The result:
-- mod, text, verdict, ratio (to the base), confidence, reason, state, unrecorded (why records are
-- not kept, which ends the search), trials, measured, cached,
-- failed, list, front (of several metrics), trace (of knobs or a schedule), target, and of a cost
-- model how well it ordered the trials before it knew them: model = { rank_correlation =, recall =
-- (of the k best), k =, n = }.
--
-- `width` (1) points are proposed at a time, where the strategy allows that. With `queue`
-- (pl.tune.queue) their trials are tasks, 16 at a time, each with a time limit (task_seconds).
-- command: the arguments of `perilune tune` that say what builder, runner and metrics say here:
-- { "tune", { input = "model.onnx", cached = true }, "--measure", "c" }.
function search.run(options)
  local begun = core.clock()
  local given = options
  options = checked(options)
  options.begun = begun
  local scope <close> = spaces.enter_costs(options.space.kind, { builder = given.builder,
    metrics = given.metrics, queue = given.queue, database = options.database },
    options.replay and 0 or options.seconds * SHARE_OF_CALLS)
  local self = new_search(options)
  start(self)
  run_strategy(self, strategies.by_name[options.strategy])
  note_progress(self)
  local final = finish(self)
  if self.unrecorded and not self.best then fail(self.unrecorded) end
  return result_of(self, final)
end

--- The module of the best record of `mod` in a database, and the record; nil and the target that it
-- looked for when there is none.
-- Nothing is measured. Options: database, target, builder, runner, metrics, space ("pipeline": what
-- was searched), check (true).
function search.apply_best(mod, options)
  local name = "pl.tune.apply_best"
  options = argument.options(options, name, { "database", "target", "builder", "runner", "metrics",
    "space", "check" })
  local kind = options.space or "pipeline"
  local kinds, seen = spaces.names(kind, name)
  if seen.knobs then argument.fail(name .. ": space: records of knobs have no functions") end
  module_option({ mod = mod }, "mod")
  if not database.is(options.database) then
    argument.fail(name .. ": database: what pl.tune.database() makes is expected")
  end
  local tools = checked_tools(options)
  local target = options.target or objective.new(tools, name):target()
  if not options.database:has_workload(mod) then return nil, target end
  local workload = options.database:commit_workload(mod)
  local best = options.database:best(workload, target, kind .. "/winner")
  if not best or best.verdict ~= "faster" then return nil, target end
  local scope <close> = spaces.enter_costs(kind, { builder = tools.builder,
    metrics = options.metrics, database = options.database }, 0)
  local out = spaces.apply(mod, best.text, kinds)
  if options.check == false then return out, best end
  local ok, why = tools.runner:check(mod, assert(tools.builder:build(out)))
  if not ok then fail(("%s: %s"):format(name, tostring(why))) end
  return out, best
end

return search
