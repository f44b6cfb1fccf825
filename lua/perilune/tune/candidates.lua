--- What tuning passes are made of, by the names of TVM's tuning_api: candidates of all
-- decisions, passes that are tried on each, measurements, the best one.
--
--     local candidates = pl.tune.generate_candidates({ knob }, pl.tune.trace(mod))
--     pl.tune.evaluate(candidates, { measure = pl.tune.measure.nodes })
--     local best = pl.tune.select_best_candidate(candidates)

local argument = require "perilune.argument"
local core = require "perilune.core"
local knob = require "perilune.tune.knob"
local database = require "perilune.tune.database"
local trace = require "perilune.tune.trace"
local tracing = require "perilune.tune.tracing"
core.internal()

local candidates = {}

-- A copy of the trace with one decision more; nil where the choice's constraint does not hold.
local function extended(one, k, decision)
  if not k.choices[decision]:check_constr(one.out_mod) then return nil end
  local copy = one:copy()
  copy:add(k, decision)
  return copy
end

local function add_decisions(list, k, one, reasons)
  for _, decision in ipairs(k.decisions) do
    local ok, copy = pcall(extended, one, k, decision)
    local place = ("knob '%s', decision '%s'"):format(k.name, decision)
    if not ok then
      reasons[#reasons + 1] = ("%s: %s"):format(place, tostring(copy))
    elseif copy then
      list[#list + 1] = copy
    else
      reasons[#reasons + 1] = place .. ": its constraint does not hold"
    end
  end
end

local function fail_all(what, reasons)
  argument.fail(("%s:\n  %s"):format(what, table.concat(reasons, "\n  ")))
end

--- All combinations of decisions that constraints admit, a list of traces; the first knob
-- varies slowest. Then consider_eval_passes. A choice that fails is left out, and said in the
-- second result, a list of texts; when nothing is left the reasons are an error.
function candidates.generate_candidates(knobs, from, eval_passes)
  argument.table(knobs, "pl.tune.generate_candidates", "knobs")
  local list, reasons = { trace.get(from):copy() }, {}
  for i, k in ipairs(knobs) do
    if not knob.is(k) then
      argument.fail(("pl.tune.generate_candidates: knob %d is a %s"):format(i,
        argument.kind_of(k)))
    end
    local longer = {}
    for _, one in ipairs(list) do add_decisions(longer, k, one, reasons) end
    list = longer
  end
  if #list == 0 then fail_all("no candidate is left", reasons) end
  return candidates.consider_eval_passes(list, eval_passes), reasons
end

--- Each candidate as the passes leave it, which run on it one after the other: tuning passes
-- among them give the best that they find. As many candidates as before.
function candidates.consider_eval_passes(list, eval_passes)
  argument.table(list, "pl.tune.consider_eval_passes", "candidates")
  argument.table(eval_passes or {}, "pl.tune.consider_eval_passes", "eval_passes")
  if not eval_passes or #eval_passes == 0 then return list end
  local pass = require "perilune.pass".sequential(
    table.move(eval_passes, 1, #eval_passes, 1, { name = "eval_passes" }))
  local state = tracing.current()
  local out = {}
  for i, one in ipairs(list) do out[i] = candidates.apply(pass, one, state) end
  return out
end

--- The trace that a pass makes of a trace; `state`: the tracing that the context has. In a
-- context that has none measurements are counted in one of its own.
function candidates.apply(pass, from, state)
  if not state then return tracing.with(tracing.new(), function()
    return candidates.apply(pass, from, tracing.current())
  end) end
  local depth, one = #state.stack, trace.get(from):copy()
  state:push_trace(one)
  local ok, result = pcall(pass, one.out_mod)
  local top = state.stack[depth + 1]
  table.move({}, 1, #state.stack - depth, depth + 1, state.stack)
  if not ok then error(result, 0) end
  if not top then argument.fail "a pass took a trace from the stack and put none back" end
  if top.out_mod ~= result then top:set_out_mod(result) end
  return top
end

local function check_traces(list, where)
  for i, one in ipairs(argument.table(list, where, "candidates")) do
    if not trace.is(one) then
      argument.fail(("%s: candidate %d is a %s, no trace"):format(where, i, argument.kind_of(one)))
    end
  end
  return list
end

-- ---------------------------------------------------------------- measurement

local function mean(seconds)
  local sum = 0
  for _, x in ipairs(seconds) do sum = sum + x end
  return sum / #seconds
end

local function is_cost(x) return type(x) == "number" and x >= 0 end

-- A measure's answer as a list of numbers.
local function costs_of(answer)
  local list = is_cost(answer) and { answer } or answer
  if type(list) ~= "table" or #list == 0 then
    error(("the measure gave %s, and a number or a list of numbers is expected"):format(
      type(answer) == "number" and tostring(answer) or type(answer)), 0)
  end
  for _, x in ipairs(list) do
    if not is_cost(x) then
      error(("the measure gave %s, and numbers that are not negative are expected"):format(
        tostring(x)), 0)
    end
  end
  return list
end

--- What a measure gives of a module: the mean of its numbers.
function candidates.mean_cost(measure, mod) return mean(costs_of(measure(mod))) end

-- The decisions of a candidate with their knobs.
local function decisions_text(one)
  local knobs, parts = one.knobs, {}
  for i, decision in ipairs(one.decisions) do
    parts[i] = ("knob '%s', decision '%s'"):format(knobs[i].name, decision)
  end
  return #parts > 0 and table.concat(parts, "; ") or "no decision"
end

local function measure_costs(measure, mod) return costs_of(measure(mod)) end

-- The numbers of the database, or new ones, which it gets; nil and why there are none.
local function measured(one, options, db, count)
  local workload = db and db:commit_workload(one.out_mod)
  if workload and db:has_measurement_record(workload, options.target) then
    count "num_cache_hits"
    return db:get_measurement_record(workload, options.target)
  end
  count "num_evals"
  local ok, costs = pcall(measure_costs, options.measure, one.out_mod)
  if not ok then return nil, costs end
  if workload then db:commit_measurement_record(workload, options.target, costs) end
  return costs
end

-- What a measure raises is of the candidate, what the database raises of all: it ends the work.
local function evaluate_one(one, options, db, count)
  local ok, costs, why = pcall(measured, one, options, db, count)
  if not ok then
    argument.fail(("%s: its record cannot be read or kept: %s"):format(decisions_text(one),
      tostring(costs)))
  end
  one.failure = not costs and tostring(why) or nil
  if not costs then return end
  local fine, perf = pcall(options.combine or mean, costs)
  if fine then one:set_perf(perf) else one.failure = tostring(perf) end
end

local function evaluate_options(options)
  options = argument.options(options, "pl.tune.evaluate", { "measure", "database", "target",
    "combine" })
  argument.callable(options.measure, "pl.tune.evaluate", "measure")
  if options.database and not database.is(options.database) then
    argument.fail "pl.tune.evaluate: database: what pl.tune.database() makes is expected"
  end
  if options.combine ~= nil then
    argument.callable(options.combine, "pl.tune.evaluate", "combine")
  end
  return { measure = options.measure, database = options.database, combine = options.combine,
    target = options.target or "evaluator" }
end

--- Measures the candidates that were not measured yet, and sets their perf: the mean of what
-- `measure` gives of out_mod, or what `combine` makes of that list. One that fails keeps its
-- reason in `failure` and stays without a perf. With a `database` (that of the context unless it is
-- given) what was measured of an equal module for `target` is not measured again.
function candidates.evaluate(list, options)
  options = evaluate_options(options)
  local state = tracing.current()
  local db = options.database or state and state.database
  local function count(field)
    if state then state[field] = state[field] + 1 end
  end
  for _, one in ipairs(check_traces(list, "pl.tune.evaluate")) do
    if one.perf == trace.UNMEASURED then evaluate_one(one, options, db, count) end
  end
end

--- Why a candidate has no perf, with its decisions.
function candidates.reason_of(one)
  return ("%s: %s"):format(decisions_text(one), one.failure or "it was not measured")
end

--- The candidate with the lowest perf, the first of equal ones. One that was not measured never
-- wins; when none was, that is an error with the reasons.
function candidates.select_best_candidate(list)
  local best, reasons = nil, {}
  for _, one in ipairs(check_traces(list, "pl.tune.select_best_candidate")) do
    if one.perf == trace.UNMEASURED then
      reasons[#reasons + 1] = candidates.reason_of(one)
    elseif not best or one.perf < best.perf then
      best = one
    end
  end
  if not best then fail_all("no candidate could be measured", reasons) end
  return best
end

return candidates
