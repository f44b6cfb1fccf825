--- pl.tune.tuning_pass: a module pass that decides by measuring.
--
--     local layout = pl.tune.tuning_pass { name = "TuneLayout",
--       knobs = { pl.tune.knob("layout", { NHWC = to_nhwc, NCHW = to_nchw }) },
--       measure = pl.tune.measure.time(),
--       eval_passes = { "FoldConstant" } }
--     local out = layout(mod)
--
--     local many = pl.tune.tuning_pass { name = "TuneMany", knobs = knobs,
--       metric = { "time", { "bytes", weight = 0.1 } },
--       search = { strategy = "evolutionary", trials = 64, seconds = 30, seed = 1 } }
--     pl.passes.TuneMany = many              -- "TuneMany{trials=200}" in pipeline text
--
-- It decides for its knobs, has the eval passes work on each candidate, measures, and returns the
-- best module; the trace of the context grows by the decisions. Without `search` it takes all
-- combinations. Ctrl-C and limit.seconds end it with the best so far. Tuning passes in a sequential
-- add up what they measure; as eval passes they multiply it. `parameters` are the options of the
-- pass, by keyword and in pipeline text; a pass with `search` has strategy, trials, seconds (0: no
-- limit) and seed among them.

local argument = require "perilune.argument"
local core = require "perilune.core"
local candidate_search = require "perilune.tune.search.candidate_search"
local metric_list = require "perilune.tune.metric"
local option = require "perilune.pass.option"
local pass = require "perilune.pass"
local strategies = require "perilune.tune.search.strategies"
local trace = require "perilune.tune.trace"
local tracing = require "perilune.tune.tracing"
core.internal()

local tuning = {}

local fields = { "name", "opt_level", "required", "doc", "parameters", "knobs", "eval_passes",
  "measure", "metric", "select", "search", "target", "run", "handles", "unhandled" }

local function knobs_of(body, mod, ctx)
  local knobs = body.knobs
  if type(knobs) == "function" then knobs = knobs(mod, ctx) end
  return argument.table(knobs or {}, body.name, "knobs")
end

-- ----------------------------------------------------------------------- search

-- All combinations, unless the pass has `search`.
local everything = { strategy = "exhaustive", trials = math.huge, seconds = math.huge, seed = 1 }

-- The settings of a search as options of the pass.
local function settings_of(body, option_of)
  if not body.defaults then return everything end
  local seconds = option_of "seconds"
  return { strategy = option_of "strategy", trials = option_of "trials",
    seconds = seconds > 0 and seconds or math.huge, seed = option_of "seed" }
end

local function fail_all(what, reasons)
  argument.fail(("%s:\n  %s"):format(what, table.concat(reasons, "\n  ")))
end

local function note_search(ctx, state)
  if #state.reasons > 0 then ctx:note("candidates left out", #state.reasons) end
  if state.state ~= "exhausted" then ctx:note("trials", state.trials_made) end
  if state.state == "interrupted" then ctx:note("interrupted: the best so far is taken", 1) end
  if state.state == "limit" then ctx:note("limit.seconds: the best so far is taken", 1) end
  if #state.metrics > 1 then ctx:note("candidates not dominated", #state.front) end
end

-- What a tuning pass does unless it has a `run` of its own.
local function search(body, from, ctx)
  local settings = settings_of(body, function(name) return ctx:option(name) end)
  settings.name, settings.from, settings.knobs = body.name, from, knobs_of(body, from.out_mod, ctx)
  settings.eval_passes, settings.metrics = body.eval_passes, body.metrics
  settings.target, settings.select = body.target, body.select
  local best, state = candidate_search.run(settings)
  note_search(ctx, state)
  if best then return best end
  fail_all(state.n_candidates == 0 and "no candidate is left" or "no candidate could be measured",
    state.reasons)
end

-- A stop of this pass stops those around it; what comes behind them goes on.
local function search_within(state, body, from, ctx)
  state.searches = state.searches + 1
  local ok, best = pcall(body.search, body, from, ctx)
  state.searches = state.searches - 1
  if state.searches == 0 then state.stopped = nil end
  if not ok then error(best, 0) end
  return best
end

local function best_trace(body, from, ctx)
  local best = search_within(tracing.current(), body, from, ctx)
  if not trace.is(best) then
    argument.fail(("tuning pass '%s': run returns a trace, got %s"):format(body.name,
      argument.kind_of(best)))
  end
  return best
end

-- The trace on the top of the stack, as one whose out_mod is the module.
local function pop(state, mod)
  local top = state:pop_trace()
  if top.out_mod ~= mod then top:set_out_mod(mod) end
  return top
end

local function run(body, mod, ctx)
  local state = tracing.current()
  if not state then
    return tracing.with(tracing.new { trace = mod }, run, body, mod, ctx)
  end
  if #state.stack == 0 then return best_trace(body, trace.new(mod), ctx).out_mod end
  local from = pop(state, mod)
  local ok, best = pcall(best_trace, body, from, ctx)
  state:push_trace(ok and best or from)
  if not ok then error(best, 0) end
  return best.out_mod
end

-- ----------------------------------------------------------- number of measurements

local total

-- Of passes in a row: what they measure, and whether the last one leaves what is measured.
local function total_of_list(list, mod)
  local sum, measured = 0, false
  for _, element in ipairs(list) do
    local n, is_measured = total(element, mod)
    sum, measured = sum + n, is_measured
  end
  return sum, measured
end

-- What an option of the pass is when it runs.
local function option_value(one, name)
  local value = one.options[name]
  if value == nil then value = core.current().config[one.name .. "." .. name] end
  for _, row in ipairs(value == nil and one.option_rows or {}) do
    if row.name == name then value = row.default end
  end
  return value
end

local function total_of_tuning(one, body, mod)
  local n = 1
  for _, k in ipairs(knobs_of(body, mod)) do n = n * #k.decisions end
  n = math.min(n, settings_of(body, function(name) return option_value(one, name) end).trials)
  local inner, measured = total_of_list(body.eval_passes, mod)
  return n * (inner + (measured and 0 or 1)), true
end

function total(one, mod)
  local body = one.tuning_body
  if body then return total_of_tuning(one, body, mod) end
  if one.kind == "sequential" then return total_of_list(one.passes, mod) end
  return 0, false
end

--- The measurements of a pass when every constraint holds: 0 without tuning passes. Of a pass that
-- searches a part of its space, the most. `mod` is what knobs that are a function get.
function tuning.total_num_evals(one, mod)
  if argument.kind_of(one) ~= "Pass" then
    argument.fail("pl.tune.total_num_evals: a pass expected, got " .. argument.kind_of(one))
  end
  return (total(one, mod))
end

-- ---------------------------------------------------------------- constructor

-- What counts: the measure, or metrics.
local function metrics_of(spec, where)
  if spec.measure ~= nil and spec.metric ~= nil then
    argument.fail(where .. ": measure and metric are two ways to say one thing; leave one out")
  elseif spec.metric == nil then
    argument.callable(spec.measure, where, "measure")
    return metric_list.list(spec.measure, where)
  end
  local list = metric_list.list(spec.metric, where .. ": metric")
  for _, one in ipairs(list) do
    if one.measure == "time" then one.measure = metric_list.measure "time" end
  end
  return list
end

local function check(spec, where)
  argument.string(spec.name, where, "name")
  for _, field in ipairs { "run", "select" } do
    if spec[field] ~= nil then argument.callable(spec[field], where, field) end
  end
  if spec.target ~= nil then argument.string(spec.target, where, "target") end
  if spec.knobs ~= nil and type(spec.knobs) ~= "function" then
    argument.table(spec.knobs, where, "knobs")
  end
end

-- ----------------------------------------------------------- options of a search

local search_fields = { "strategy", "trials", "seconds", "seed" }

local function check_search(given, where)
  if type(given) == "string" then given = { strategy = given } end
  argument.options(argument.table(given, where, "search"), where .. ": search", search_fields)
  local trials, seconds, seed = given.trials or 100, given.seconds or 0, given.seed or 1
  if math.type(trials) ~= "integer" or trials < 1 then
    argument.fail(where .. ": search: trials: an integer from 1 on expected")
  elseif type(seconds) ~= "number" or seconds ~= seconds or seconds < 0 then
    argument.fail(where .. ": search: seconds: a number from 0 on expected")
  elseif math.type(seed) ~= "integer" then
    argument.fail(where .. ": search: seed: an integer expected")
  end
  local strategy = strategies.check(given.strategy or "evolutionary", where)
  if strategy == "separate" then
    argument.fail(where .. ": search: the strategy 'separate' is of kernels (pl.tune.search)")
  end
  return { strategy = strategy, trials = trials, seconds = seconds + 0.0, seed = seed }
end

-- Rows of options for the settings that `parameters` has not.
local function search_options(defaults)
  local names = {}
  for name in pairs(strategies.by_name) do
    if name ~= "separate" then names[#names + 1] = name end
  end
  table.sort(names)
  return {
    { name = "strategy", default = defaults.strategy, choices = names,
      doc = "How the space is searched." },
    { name = "trials", default = defaults.trials, least = 1, doc = "The most candidates." },
    { name = "seconds", default = defaults.seconds, least = 0,
      doc = "The most seconds; 0: no limit." },
    { name = "seed", default = defaults.seed, doc = "The seed of the search." },
  }
end

local function options_of(spec, defaults)
  local rows, known = option.rows(spec.parameters or {}), {}
  for _, row in ipairs(rows) do known[row.name] = true end
  for _, row in ipairs(defaults and search_options(defaults) or {}) do
    if not known[row.name] then rows[#rows + 1] = row end
  end
  return rows
end

-- Elements of a sequential as passes.
local function passes_of(list)
  return pass.sequential(table.move(list, 1, #list, 1, {})).passes
end

--- A tuning pass. `knobs`: a list, or a function of the module and the context that gives one.
-- `measure`: what is minimised (pl.tune.measure); or `metric`: a name, a function, or a list of
-- such and of { metric, weight =, name = }, whose sum, relative to the module before tuning, is
-- minimised: the best trace's `costs` has each of them, `front` the traces that no other one
-- dominates, and `select(front)` takes one of these instead. `search`: a strategy, or { strategy =
-- "evolutionary", trials = 100, seconds =, seed = 1 }. `eval_passes`: passes that work on each
-- candidate before it is measured. `handles`, `unhandled`: the features of programs it handles, as
-- of every pass. `target`: what records of measurements are kept for.
-- `run(trace, ctx, self)`, in place of the search: gives the best trace that it finds.
function tuning.tuning_pass(spec)
  local where = "pl.tune.tuning_pass"
  spec = argument.options(spec, where, fields)
  check(spec, where)
  local body = { name = spec.name, knobs = spec.knobs, measure = spec.measure,
    metrics = spec.run == nil and metrics_of(spec, where) or nil, select = spec.select,
    defaults = spec.search ~= nil and check_search(spec.search, where) or nil,
    eval_passes = passes_of(argument.table(spec.eval_passes or {}, spec.name, "eval_passes")) }
  body.target = spec.target or body.metrics and metric_list.target(body.metrics)
  body.search = spec.run and function(self, from, ctx) return spec.run(from, ctx, self) end
    or search
  body.tuning_body = body
  return pass.module_pass { name = spec.name, opt_level = spec.opt_level,
    required = spec.required, handles = spec.handles, unhandled = spec.unhandled,
    traceable = true, options = options_of(spec, body.defaults),
    doc = spec.doc or "Decide by measuring.",
    run = setmetatable(body, { __call = run }) }
end

return tuning
