--- The search of a tuning pass: decisions for its knobs, which eval passes work on and which are
-- measured, each as a trace.
--
-- Strategies see it as they see perilune.tune.search: points of a space, and their costs.

local candidates = require "perilune.tune.candidates"
local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
local knob_space = require "perilune.tune.search.knob_space"
local metric_list = require "perilune.tune.metric"
local pareto_front = require "perilune.tune.search.pareto_front"
local random = require "perilune.tune.random"
local strategies = require "perilune.tune.search.strategies"
local trace = require "perilune.tune.trace"
local tracing = require "perilune.tune.tracing"
core.internal()

local search = {}

local methods = {}
local class = { __index = methods }

-- So many points in a row that were measured already: the space is searched.
local MOST_REPEATED = 2000

-- What ends a strategy.
local stop = {}

local function end_search(self, state)
  self.state = state
  error(stop, 0)
end

-- ------------------------------------------------------------------- candidates

-- Traces of the first decisions of the last point, which the next point may begin with as well:
-- path[0] is the trace that the pass got; path.failed is how many decisions failed.
local function shared_length(self, decisions)
  local n = 0
  while n < #self.path and self.path[n + 1].choice == decisions[n + 1] do n = n + 1 end
  return n
end

local function try_decision(from, k, decision)
  if not k.choices[decision]:check_constr(from.out_mod) then
    return nil, "its constraint does not hold"
  end
  local copy = from:copy()
  copy:add(k, decision)
  return copy
end

local function take_decision(self, depth, choice)
  local k, from = self.space.knobs[depth], self.path[depth - 1].trace
  local decision = k.decisions[choice]
  local ok, one, why = pcall(try_decision, from, k, decision)
  if not ok then one, why = nil, tostring(one) end
  self.path[depth] = { choice = choice, trace = one }
  if not one then
    self.reasons[#self.reasons + 1] = ("knob '%s', decision '%s': %s"):format(k.name, decision, why)
  end
  return one
end

-- The trace of a point; nil when a decision cannot be taken. Why is in self.reasons, once for all
-- points that begin so.
local function decide(self, point)
  local decisions = point.decisions
  local shared = shared_length(self, decisions)
  for i = #self.path, shared + 1, -1 do self.path[i] = nil end
  if not self.path[shared].trace then return nil end
  for depth = shared + 1, #decisions do
    if not take_decision(self, depth, decisions[depth]) then return nil end
  end
  return self.path[#decisions].trace:copy()
end

-- ---------------------------------------------------------------------- measuring

-- The value of a metric for the module before any decision, measured once for all passes.
local function base_of(self, metric)
  local mod = self.from.in_mod
  return tracing.current():base_value(mod, metric.measure, function()
    local ok, x = pcall(candidates.mean_cost, metric.measure, mod)
    if ok then return x end
    error(("the metric '%s' of the module before tuning: %s"):format(metric.name, tostring(x)), 0)
  end)
end

-- The weighted sum of values relative to those of the module before tuning.
local function combine(self, values, one)
  local sum, costs = 0, {}
  for i, metric in ipairs(self.metrics) do
    costs[metric.name] = metric_list.relative(values[i], base_of(self, metric))
    sum = sum + metric.weight * costs[metric.name]
  end
  one.costs = costs
  return sum
end

local function values_of(self, mod, effort)
  local values = {}
  for i, metric in ipairs(self.metrics) do
    values[i] = candidates.mean_cost(function(x) return metric.measure(x, effort) end, mod)
  end
  return values
end

local function evaluate(self, one, effort)
  local target = effort == 1 and self.target or ("%s/%g"):format(self.target, effort)
  local options = { target = target }
  if #self.metrics == 1 then
    function options.measure(mod) return self.metrics[1].measure(mod, effort) end
  else
    function options.measure(mod) return values_of(self, mod, effort) end
    function options.combine(values) return combine(self, values, one) end
  end
  candidates.evaluate({ one }, options)
end

local function note(self, one, effort)
  if one.perf == trace.UNMEASURED then
    self.reasons[#self.reasons + 1] = candidates.reason_of(one)
    return math.huge
  end
  if effort == 1 then
    if #self.metrics > 1 then self.list[#self.list + 1] = one end
    if not self.best or one.perf < self.best.perf then self.best = one end
  end
  return one.perf
end

local function measure(self, point, effort)
  local one = decide(self, point)
  if not one then return math.huge end
  self.n_candidates = self.n_candidates + 1
  local ok, list = pcall(candidates.consider_eval_passes, { one }, self.eval_passes)
  if ok then
    one = list[1]
    evaluate(self, one, effort)
  else
    if failure.is_interrupt(list) then error(list, 0) end
    one.failure = tostring(list)
  end
  return note(self, one, effort)
end

-- One candidate is tried whatever the budget is.
local function check_budget(self)
  if self.trials_made == 0 then return end
  if tracing.current().stopped then end_search(self, tracing.current().stopped) end
  if self.trials_made >= self.trials or core.clock() - self.begun > self.seconds then
    end_search(self, "done")
  end
end

--- The cost of a point; math.huge when it has none. `effort`, from 0 to 1, is the second argument
-- of the measure.
function methods.cost(self, point, effort)
  effort = effort or 1
  local key = ("%s/%g"):format(table.concat(point.decisions, ","), effort)
  local known = self.costs[key]
  if known then
    self.repeated = self.repeated + 1
    if self.repeated > MOST_REPEATED then end_search(self, "exhausted") end
    return known
  end
  check_budget(self)
  self.repeated, self.trials_made = 0, self.trials_made + 1
  self.costs[key] = measure(self, point, effort)
  return self.costs[key]
end

--- The costs of points, one after the other.
function methods.costs_of(self, points, effort)
  local costs = {}
  for i, point in ipairs(points) do costs[i] = self:cost(point, effort) end
  return costs
end

--- There is no cost model.
function methods.can_expect() return false end

--- A point of those that make() proposes.
function methods.choose(_, make) return make() end

--- The part of the trials that is spent, from 0 to 1.
function methods.progress(self)
  return self.trials < math.huge and self.trials_made / self.trials
    or math.min(1, (core.clock() - self.begun) / self.seconds)
end

-- ---------------------------------------------------------------------- running

local function stop_diagnostic(why)
  return core.diag(why, why == "limit" and "limit.seconds ended before a candidate was measured"
    or "interrupted before a candidate was measured")
end

-- Ctrl-C and limit.seconds end the search; what was found so far counts.
local function run_strategy(self, strategy)
  local why, ok, err = core.until_stopped(strategies.by_name[strategy], self)
  if why then
    if not self.best then error(stop_diagnostic(why), 0) end
    self.state, tracing.current().stopped = why, why
  elseif ok then
    self.state = "exhausted"
  elseif err ~= stop then
    error(err, 0)
  end
end

-- The front of several metrics, and the one of it that is taken.
local function choose(self)
  if #self.metrics == 1 then return self.best end
  local front = pareto_front(self.list)
  self.front = front
  local best = self.best
  if best and self.select then best = self.select(table.move(front, 1, #front, 1, {})) end
  if best and trace.is(best) then best.front = front end
  return best
end

--- Searches { name = (of the pass), knobs =, from = (a trace), eval_passes =, metrics = (a list of
-- perilune.tune.metric), strategy =, trials =, seconds =, seed =, target =, select = } : the best
-- trace, or nil, and the search, with reasons (texts that tell what was left out), trials_made,
-- n_candidates and state ("done", "exhausted", "interrupted", "limit").
function search.run(options)
  local self = setmetatable({ space = knob_space.new(options.knobs, options.name),
    from = options.from, eval_passes = options.eval_passes, metrics = options.metrics,
    trials = options.trials, seconds = options.seconds, target = options.target,
    select = options.select, random = random(options.seed),
    path = { [0] = { trace = options.from } }, reasons = {},
    costs = {}, list = {}, width = 1, population = 512,
    serial = 0, repeated = 0, trials_made = 0, n_candidates = 0,
    begun = core.clock() }, class)
  -- Without knobs there is one point, which only enumeration finds.
  run_strategy(self, #options.knobs == 0 and "exhaustive" or options.strategy)
  return choose(self), self
end

return search
