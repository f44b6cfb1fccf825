--- Passes that decide by measuring, after Relax's tuning API.
--
--     lua5.4 tuning_pass.lua
--
-- Here the cost is the number of calls, so that the result does not depend on the machine;
-- pl.tune.measure.time() takes the evaluator's time.

local pl = require "perilune"
local tune = pl.tune

local mod = assert(pl.parse [[#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {
  %0 = transpose(%w, axes=[1, 0]);
  %1 = nn.dense(%x, %0);
  %2 = transpose(%w, axes=[1, 0]);
  %3 = nn.dense(%x, %2);
  nn.relu(add(%1, %3))
}]])

-- A knob has named choices; each is a function that is registered by a name.
tune.functions.run_passes = function(program, text) return pl.pipeline(text)(program) end

local function choice(text) return tune.choice { transform = "run_passes", args = { text } } end

local sharing = tune.tuning_pass { name = "TuneSharing", measure = tune.measure.nodes,
  knobs = { tune.knob("sharing", {
    once = choice "EliminateCommonSubexpr", no = tune.choice {} }) } }

-- The eval passes work on each candidate before it is measured: measurements multiply.
local joint = tune.tuning_pass { name = "TuneSimplify", measure = tune.measure.nodes,
  eval_passes = { sharing },
  knobs = { tune.knob("simplify", { yes = choice "SimplifyExpr", no = tune.choice {} }) } }

print("measurements: " .. tune.total_num_evals(joint))

local trace
pl.with(pl.context { opt_level = 3, trace = mod }, function()
  joint(mod)
  trace = tune.current():get_current_trace()
end)
print(trace)
print("calls: " .. tune.measure.nodes(mod) .. " -> " .. math.tointeger(trace.perf))

-- The decisions, taken again from their text: in another process, on another program.
local again = pl.with(pl.context { opt_level = 3 }, tune.trace_from_json, trace:as_json())
print("replayed: " .. tostring(pl.equal(again.out_mod, trace.out_mod)))
