--- pl.tune.tuning_pass: a module pass that decides by measuring.
--
--     local layout = pl.tune.tuning_pass { name = "TuneLayout",
--       knobs = { pl.tune.knob("layout", { NHWC = to_nhwc, NCHW = to_nchw }) },
--       measure = pl.tune.measure.time(),
--       eval_passes = { "FoldConstant" } }
--     local out = layout(mod)
--
-- It takes all combinations of decisions, has the eval passes work on each, measures, and
-- returns the best module; the trace of the context grows by the decisions. Tuning passes in
-- a sequential add up what they measure; as eval passes they multiply it.
-- `parameters` are the options of the pass, by keyword and in pipeline text.

local argument = require "perilune.argument"
local core = require "perilune.core"
local candidates = require "perilune.tune.candidates"
local pass = require "perilune.pass"
local trace = require "perilune.tune.trace"
local tracing = require "perilune.tune.tracing"
core.internal()

local tuning = {}

local fields = { "name", "opt_level", "required", "doc", "parameters", "knobs", "eval_passes",
  "measure", "run" }

local function knobs_of(body, mod, ctx)
  local knobs = body.knobs
  if type(knobs) == "function" then knobs = knobs(mod, ctx) end
  return argument.table(knobs or {}, body.name, "knobs")
end

local function note_failures(ctx, reasons)
  if #reasons > 0 then ctx:note("candidates left out", #reasons) end
end

-- What a tuning pass does unless it has a `run` of its own.
local function search(body, from, ctx)
  local list, reasons = candidates.generate_candidates(knobs_of(body, from.out_mod, ctx), from,
    body.eval_passes)
  note_failures(ctx, reasons)
  candidates.evaluate(list, { measure = body.measure })
  return candidates.select_best_candidate(list)
end

local function best_trace(body, from, ctx)
  local best = body.search(body, from, ctx)
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

local function total_of_tuning(body, mod)
  local n = 1
  for _, k in ipairs(knobs_of(body, mod)) do n = n * #k.decisions end
  local inner, measured = total_of_list(body.eval_passes, mod)
  return n * (inner + (measured and 0 or 1)), true
end

function total(one, mod)
  local body = one.tuning_body
  if body then return total_of_tuning(body, mod) end
  if one.kind == "sequential" then return total_of_list(one.passes, mod) end
  return 0, false
end

--- The measurements of a pass when every constraint holds: 0 without tuning passes. `mod` is
-- what knobs that are a function get.
function tuning.total_num_evals(one, mod)
  if argument.kind_of(one) ~= "Pass" then
    argument.fail("pl.tune.total_num_evals: a pass expected, got " .. argument.kind_of(one))
  end
  return (total(one, mod))
end

-- ---------------------------------------------------------------- constructor

local function check(spec)
  argument.string(spec.name, "pl.tune.tuning_pass", "name")
  if spec.run ~= nil then
    argument.callable(spec.run, "pl.tune.tuning_pass", "run")
  else
    argument.callable(spec.measure, "pl.tune.tuning_pass", "measure")
  end
  if spec.knobs ~= nil and type(spec.knobs) ~= "function" then
    argument.table(spec.knobs, "pl.tune.tuning_pass", "knobs")
  end
end

-- Elements of a sequential as passes.
local function passes_of(list)
  return pass.sequential(table.move(list, 1, #list, 1, {})).passes
end

--- A tuning pass. `knobs`: a list, or a function of the module and the context that gives one.
-- `measure`: what is minimised (pl.tune.measure). `eval_passes`: passes that work on each
-- candidate before it is measured. `run(trace, ctx, self)`, in place of the search: gives the
-- best trace that it finds.
function tuning.tuning_pass(spec)
  spec = argument.options(spec, "pl.tune.tuning_pass", fields)
  check(spec)
  local body = { name = spec.name, knobs = spec.knobs, measure = spec.measure,
    eval_passes = passes_of(argument.table(spec.eval_passes or {}, spec.name, "eval_passes")) }
  body.search = spec.run and function(self, from, ctx) return spec.run(from, ctx, self) end
    or search
  body.tuning_body = body
  return pass.module_pass { name = spec.name, opt_level = spec.opt_level,
    required = spec.required, traceable = true, options = spec.parameters,
    doc = spec.doc or "Decide by measuring.",
    run = setmetatable(body, { __call = run }) }
end

return tuning
