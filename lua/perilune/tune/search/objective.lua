--- What a search minimises: the cost of a module relative to that of the base, which is 1.
--
-- Metrics are "time", which a runner compares, or functions from a module to a number
-- (pl.tune.measure); several have weights. Time counts for a decision only where the
-- comparison is sure.

local candidates = require "perilune.tune.candidates"
local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
local metric_list = require "perilune.tune.metric"
local with_effort = require "perilune.tune.run.effort"
core.internal()

local objective = {}

local methods = {}
local class = { __index = methods }

local function fail(message) core.raise(core.diag("unsupported", message)) end

-- The least change of a cost that is one.
local EPSILON = 1e-12

local function value_of(metric, mod)
  local ok, x = pcall(function() return candidates.mean_cost(metric.measure, mod) end)
  if ok then return x end
  if failure.is_interrupt(x) then error(x, 0) end
  return nil, failure.is(x) and x or failure.new("error", "%s", tostring(x))
end

local function runnable_of(self, one)
  if not one.runnable then
    local why
    one.runnable, why = self.builder:build(one.mod)
    if not one.runnable then return nil, why end
  end
  return one.runnable
end

-- Seconds of a run, from one block.
local function base_seconds(self)
  local runnable, why = runnable_of(self, self.incumbent)
  if not runnable then return nil, why end
  local once = setmetatable({ pairs = 1 }, { __index = self.runner })
  local result, wrong = once:run(runnable)
  return result and result.min, wrong
end

--- Says what the base is; raises when it cannot be measured, a failure of the kind "deadline" when
-- there is no time for it. `untimed`: its time is not asked for.
function methods.start(self, mod, untimed)
  self.incumbent = { mod = mod, cost = 1, time = 1 }
  for _, metric in ipairs(self.metrics) do
    local x, why
    if metric.measure == "time" then
      if untimed then x = 1 else x, why = base_seconds(self) end
    else
      x, why = value_of(metric, mod)
    end
    if not x and failure.is(why) and why.kind == "deadline" then error(why, 0) end
    if not x then fail("the base cannot be measured: " .. tostring(why)) end
    metric.base = x
  end
end

-- Compares with the incumbent; nil, a failure. Raises when it is the incumbent that fails.
local function compare_time(self, one, effort)
  local incumbent, reason = runnable_of(self, self.incumbent)
  if not incumbent then fail("the incumbent cannot be measured: " .. tostring(reason)) end
  local runnable, why = runnable_of(self, one)
  if not runnable then return nil, why end
  local result, wrong, blameless = with_effort(self.runner, effort):compare(runnable,
    incumbent)
  if result then return result end
  if blameless then fail("the incumbent cannot be measured: " .. tostring(wrong)) end
  return nil, wrong
end

local function add_metric(self, metric, one, effort, sums)
  if metric.measure == "time" then
    local result, why = compare_time(self, one, effort)
    if not result then return nil, why end
    sums.time, one.time = result, self.incumbent.time * result.ratio
    local sure = result.verdict == "undecided" and self.incumbent.time or one.time
    sums.cost, sums.sure = sums.cost + metric.weight * one.time, sums.sure + metric.weight * sure
    sums.costs[metric.name] = one.time
  else
    local x, why = value_of(metric, one.mod)
    if not x then return nil, why end
    local cost = metric_list.relative(x, metric.base)
    sums.cost, sums.sure = sums.cost + metric.weight * cost, sums.sure + metric.weight * cost
    sums.costs[metric.name] = cost
  end
  return true
end

--- Measures { mod = } : { cost =, costs =, verdict =, confidence =, seconds = }; nil and a
-- failure. verdict is against the incumbent.
function methods.measure(self, one, effort)
  local sums = { cost = 0.0, sure = 0.0, costs = {} }
  for _, metric in ipairs(self.metrics) do
    local ok, why = add_metric(self, metric, one, effort, sums)
    if not ok then return nil, why end
  end
  local verdict = "undecided"
  if sums.sure < self.incumbent.cost - EPSILON then verdict = "faster" end
  if sums.sure > self.incumbent.cost + EPSILON then verdict = "slower" end
  return { cost = sums.cost, costs = sums.costs, verdict = verdict,
    confidence = sums.time and sums.time.confidence or 1,
    seconds = sums.time and sums.time.candidate, base_seconds = sums.time and sums.time.incumbent,
    ratio = sums.time and sums.time.ratio }
end

-- So many runs of the base a comparison can be sure with: six pairs and their warm-up.
local LEAST_RUNS = 16

--- Keeps each comparison to that many seconds, or to what the base needs.
function methods.limit_comparisons(self, seconds)
  local least = 0
  for _, metric in ipairs(self.metrics) do
    if metric.measure == "time" then least = LEAST_RUNS * (metric.base or 0) end
  end
  local most = math.max(seconds, least)
  if most < self.runner.comparison_seconds then
    self.runner = self.runner:with { comparison_seconds = most }
  end
end

--- Ends builds and runs at that time of the clock; math.huge: at their own limits.
function methods.set_deadline(self, deadline)
  self.builder, self.runner = self.builder:before(deadline), self.runner:before(deadline)
end

--- Whether what was measured computes what the original does: true; nil and a failure.
function methods.check(self, original, one)
  local runnable, why = runnable_of(self, one)
  if not runnable then return nil, why end
  return self.runner:check(original, runnable)
end

--- The candidate becomes the incumbent.
function methods.accept(self, one, cost)
  self.incumbent = { mod = one.mod, runnable = one.runnable, cost = cost, time = one.time or cost }
end

--- A text of all that costs depend on.
function methods.target(self)
  return metric_list.target(self.metrics, self.builder:target())
end

--- An objective of { metrics = a list of metrics or { metric, weight =, name = }, builder =,
-- runner = }.
function objective.new(options, where)
  local metrics = metric_list.list(options.metrics or "time", where .. ": metrics",
    options)
  return setmetatable({ metrics = metrics, builder = options.builder, runner = options.runner },
    class)
end

return objective
