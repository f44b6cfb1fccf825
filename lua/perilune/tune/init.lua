--- pl.tune: passes that decide by measuring. Choices and knobs say what may be decided, traces
-- what was decided; tuning passes try, measure and take the best. After the tuning API of Relax
-- (TVM), with these differences: a pass that a trace records is replayed with its options, an
-- error names the step that cannot be replayed, candidates that could not be measured never win,
-- and copies of traces share what they have in common.

local argument = require "perilune.argument"
local candidates = require "perilune.tune.candidates"
local choice = require "perilune.tune.choice"
local core = require "perilune.core"
local knob = require "perilune.tune.knob"
local trace = require "perilune.tune.trace"
local tracing = require "perilune.tune.tracing"
local tuning_pass = require "perilune.tune.tuning_pass"
core.internal()

-- Parts that most scripts do not use are loaded at their first use.
local function later(path, field)
  return function(...) return require(path)[field](...) end
end

local tune = {
  functions = require "perilune.tune.functions".registry,
  choice = choice.new,
  knob = knob.new,
  instruction = knob.new,
  trace = trace.new,
  trace_from_json = trace.from_json,
  get_trace = trace.get,
  tracing = tracing.new,
  current = tracing.current,
  tuning_pass = tuning_pass.tuning_pass,
  total_num_evals = tuning_pass.total_num_evals,
  generate_candidates = candidates.generate_candidates,
  consider_eval_passes = candidates.consider_eval_passes,
  evaluate = candidates.evaluate,
  select_best_candidate = candidates.select_best_candidate,
  database = require "perilune.tune.database".new,
  measure = require "perilune.tune.measure",
  builder = later("perilune.tune.run.builder", "new"),
  runner = later("perilune.tune.run.runner", "new"),
  queue = later("perilune.tune.queue", "new"),
  extract_subgraph = later("perilune.tune.subgraph", "extract"),
  extract_subgraphs = later("perilune.tune.subgraph", "extract_all"),
  tune_subgraphs = later("perilune.tune.subgraph", "tune"),
  substitute = later("perilune.tune.subgraph", "substitute"),
  search = later("perilune.tune.search", "run"),
  backtracking_search = function(options)
    return require "perilune.tune.search.backtracking"(options)
  end,
  generate_rules = later("perilune.rule.generate", "rules"),
  placement = function(options) return require "perilune.tune.placement"(options) end,
  space = {
    substitution = function(options)
      return require "perilune.tune.search.substitution_space".check(options,
        "pl.tune.space.substitution")
    end,
  },
  default_schedule = later("perilune.tune.search.schedule_rules", "default"),
  apply_best = later("perilune.tune.search", "apply_best"),
  features = later("perilune.tune.cost", "features"),
  cost_model = later("perilune.tune.cost", "new"),
  call_costs = later("perilune.tune.cost.calls", "new"),
  cost_model_of_records = later("perilune.tune.cost", "from_records"),
  query_cost_model = later("perilune.tune.cost", "query"),
  predict = later("perilune.tune.cost", "predict"),
}

--- What a pass makes of a trace: a new trace, with what it decided. With a module it is
-- that of the module.
function tune.apply(pass, from)
  if argument.kind_of(pass) ~= "Pass" then
    argument.fail("pl.tune.apply: a pass expected, got " .. argument.kind_of(pass))
  end
  return candidates.apply(pass, from, tracing.current())
end

return tune
