-- What graph substitution gains on the models of TASO and Tensat, in their sizes
-- (substitution_models.lua).
--
--     perilune spec/bench/substitution.lua [SECONDS [analytic | tune | measured [MODEL]]]
--
-- analytic: the estimates of the roofline in microseconds of the default pipeline's result,
-- without and with EqualitySaturation (e-graph) or pl.tune.backtracking_search (alpha 1.05), with
-- all rules, before it. `rules`: those that were searched for, and those that matched.
-- measured: the e-graph's costs are what calls take (pl.tune.call_costs), each distinct one
-- measured once. `calls %`: the gain by their sum; `given %`: of the program as a whole beside the
-- program as it is given, both without any other pass, which is what the papers compare;
-- `pipeline %`: behind the default pipeline beside that pipeline alone. Below: the rules whose
-- calls were taken.
-- tune: the search of the space of substitutions measures with the evaluator for so many seconds,
-- and what it finds over the default pipeline is printed.
-- The last columns are the speed-ups in per cent that TASO and Tensat quote on a GPU.

local pl = require "perilune"

local clock = require "perilune.core".clock
local models = dofile((arg[0]:gsub("[^/]*$", "")) .. "substitution_models.lua")
local limit, mode, only = tonumber(arg[1]) or 20, arg[2] or "analytic", arg[3]

local rows = { { "bert", 8.5, 9.2 }, { "nasrnn", 45, 69 }, { "nasnet", 1.9, 7.3 },
  { "resnext50", 5.5, 8.8 }, { "inception", 6.3, 10.0 }, { "squeezenet", 6.7, 24.5 },
  { "vgg", 8.9, 8.9 } }

local function finished(mod)
  return pl.pipelines.default(pl.passes.FoldConstant { fold = "all" } (mod))
end

local function percent(before, after) return 100 * (before / after - 1) end

local rules = require "perilune.tune.search.substitution_rules"
local cost = pl.tune.cost_model { kind = "roofline" }

local function estimate(mod) return cost:predict(mod) end

-- What the pass made, the counts of its report, and its seconds.
local function saturated(mod, options)
  local given = { rules = rules, generated_rules = true, time_limit = limit }
  for name, value in pairs(options) do given[name] = value end
  local pass = pl.passes.EqualitySaturation(given)
  local begun = clock()
  local out = pass(mod)
  return out, pl.report()[1].counts or {}, clock() - begun
end

local function searched(mod)
  local begun = clock()
  local result = pl.tune.backtracking_search { mod = mod, cost = cost, alpha = 1.05, budget = 100,
    seconds = limit, check = false }
  return finished(result.mod), clock() - begun
end

local function same(mod, out)
  assert(pl.check(mod, out, { rounds = 1, rtol = 1e-3, atol = 1e-3, scaled = true }))
end

local function columns(counts)
  return ("%5d %5d %7d"):format(counts.rules or 0, counts["rules tried"] or 0,
    counts["e-nodes"] or 0)
end

local modes, titles = {}, {}

titles.analytic = ("%-11s %5s %5s %7s %9s %9s %7s %7s %9s %7s %7s %6s %6s"):format("model", "rules",
  "tried", "e-nodes", "before", "e-graph", "gain %", "s", "search", "gain %", "s", "TASO", "Tensat")

function modes.analytic(row)
  local mod = models[row[1]]()
  local out, counts, graph_seconds = saturated(mod, { cost = "time", node_limit = 20000 })
  local best, seconds = searched(mod)
  same(mod, out)
  same(mod, best)
  local before, a, b = estimate(finished(mod)), estimate(finished(out)), estimate(best)
  print(("%-11s %s %9.2f %9.2f %7.1f %7.2f %9.2f %7.1f %7.2f %6.1f %6.1f"):format(row[1],
    columns(counts), 1e6 * before, 1e6 * a, percent(before, a), graph_seconds, 1e6 * b,
    percent(before, b), seconds, row[2], row[3]))
end

titles.tune = "the search of the space of substitutions"

function modes.tune(row)
  local name = row[1]
  local result = pl.tune.search { mod = pl.passes.FoldConstant { fold = "all" } (models[name]()),
    space = "substitution", strategy = "random", seconds = limit,
    runner = pl.tune.runner { rtol = 1e-3, atol = 1e-3 } }
  local place = result.text:find "^EqualitySaturation" and "before" or "behind"
  local found = result.verdict == "faster" and (", confidence %.2f %%, %s the pipeline"):format(
    100 * result.confidence, place) or ""
  print(("%-11s %4d trials in %5.1f s: cost %.3f%s"):format(name, result.trials, result.seconds,
    result.ratio, found))
  io.stdout:flush()
end

titles.measured = ("%-11s %5s %5s %7s %6s %6s %9s %9s %7s %8s %6s %10s %6s %6s %6s"):format(
  "model", "rules", "tried", "e-nodes", "calls", "s", "before us", "after us", "calls %", "given %",
  "conf.", "pipeline %", "conf.", "TASO", "Tensat")

-- The gain of one module over another one, measured, and the confidence that there is one.
local function compared(before, after)
  local builder, runner = pl.tune.builder(), pl.tune.runner { pairs = 80, comparison_seconds = 15 }
  local result = assert(runner:compare(builder:build(after), builder:build(before)))
  return ("%8.1f %6.2f"):format(100 * (1 / result.ratio - 1), 100 * result.confidence)
end

local not_rules = { iterations = true, matches = true, refused = true, rules = true,
  saturated = true }

local function is_rule(name) return name:find "^[%w_]+$" and not not_rules[name] end

function modes.measured(row)
  local costs = pl.tune.call_costs { seconds = limit }
  local mod = pl.passes.FoldConstant { fold = "all" } (models[row[1]]())
  local scope <close> = costs:enter()
  local out, counts, seconds = saturated(mod, { cost = "measured", node_limit = 10000 })
  local before, after = costs:of_module(mod), costs:of_module(out)
  same(mod, out)
  local folded = pl.passes.FoldConstant { fold = "all" } (out)
  print(("%-11s %s %6d %6.1f %9.1f %9.1f %7.1f %s   %s %6.1f %6.1f"):format(row[1],
    columns(counts), costs.count.measured, seconds, 1e6 * before, 1e6 * after,
    percent(before, after), compared(mod, folded), compared(finished(mod), finished(folded)),
    row[2], row[3]))
  local taken = {}
  for name, n in pairs(counts) do
    if is_rule(name) then taken[#taken + 1] = name .. " " .. n end
  end
  table.sort(taken)
  print("            " .. table.concat(taken, ", "))
end

assert(modes[mode], "analytic, tune or measured expected")
print(titles[mode])
for _, row in ipairs(rows) do
  if not only or only == row[1] then
    modes[mode](row)
    io.stdout:flush()
  end
end
