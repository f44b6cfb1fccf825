-- Tuning passes: how often they measure (the numbers of the proposal for Relax's tuning API), and
-- the counterparts of test_database, test_default_functions, test_module_pass, test_sequential and
-- test_passes_with_mixed_granularities of TVM's test_tuning_api.py.

local pl = require "perilune"
local tune = pl.tune

local function program()
  local x = pl.var("x", "Tensor[(4), float32]")
  return pl.module { main = pl.func({ x }, pl.op.nn.relu(x * 1) + pl.op.nn.relu(x)) }
end

-- A decision leaves its mark: no two candidates are the same module.
tune.functions["tuning_pass_spec.mark"] = function(mod, name, cost)
  return mod:with_attrs { [name] = cost, cost = (mod.attrs.cost or 100) + cost }
end

local function measure(mod) return mod.attrs.cost or 100 end

local serial = 0

-- A tuning pass over one knob; each choice adds its cost.
local function tuning(name, choices, eval_passes, more)
  serial = serial + 1
  local by_name = {}
  for decision, cost in pairs(choices) do
    by_name[decision] = tune.choice { transform = "tuning_pass_spec.mark",
      args = { name .. serial, cost } }
  end
  local spec = { name = name, knobs = { tune.knob(name, by_name) }, measure = measure,
    eval_passes = eval_passes }
  for field, value in pairs(more or {}) do spec[field] = value end
  return tune.tuning_pass(spec)
end

local function parallel(eval_passes)
  return tuning("ParallelConv2d", { On = -2, Off = 0 }, eval_passes)
end

local function layout(eval_passes)
  return tuning("Layout", { NHWC = -1, NCHW = -3, NoApply = 0 }, eval_passes)
end

local function mock(eval_passes)
  return tuning("Mock", { a = 5, b = 4, c = 3, d = 2, e = 1 }, eval_passes)
end

local function heuristic() return pl.passes.FoldConstant() end

-- Runs the pass; the trace and the state of the context.
local function traced(pass, options)
  local mod = program()
  options = options or {}
  options.trace = mod
  return pl.with(pl.context(options), function()
    local state = tune.current()
    local out = pass(mod)
    assert.equal(1, state:get_trace_stack_size())
    assert.equal(out, state:get_current_trace().out_mod)
    return state:get_current_trace(), state
  end)
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("the number of measurements", function()
  local function seq(...) return pl.sequential { ... } end
  local rows = {
    { "one pass with a choice of two", parallel(), 2, 1 },
    { "one pass with a choice of three", layout(), 3, 1 },
    { "a heuristic eval pass", layout { heuristic() }, 3, 2 },
    { "one after the other", seq(parallel(), layout()), 2 + 3, 2 },
    { "the other way round", seq(layout(), parallel()), 3 + 2, 2 },
    { "nested", parallel { layout() }, 2 * 3, 2 },
    { "nested the other way round", layout { parallel() }, 3 * 2, 2 },
    { "nested twice", layout { parallel { mock() } }, 3 * 2 * 5, 3 },
    { "two eval passes", layout { parallel(), mock() }, 3 * (2 + 5), 3 },
    { "a heuristic behind a nested one", layout { parallel(), heuristic() }, 3 * (2 + 1), 3 },
    { "nested and then another", seq(parallel { parallel { parallel() } }, parallel()),
      2 * 2 * 2 + 2, 4 },
    { "heuristics in between", seq(parallel(), heuristic(), parallel(), heuristic()), 2 + 2, 4 },
    { "only heuristics", seq(heuristic(), heuristic()), 0, 2 },
  }
  for _, row in ipairs(rows) do
    it("of " .. row[1], function()
      assert.equal(row[3], tune.total_num_evals(row[2]))
      local trace, state = traced(row[2])
      assert.equal(row[3], state.num_evals)
      assert.equal(row[4], trace.size)
    end)
  end

  it("takes knobs that depend on the module", function()
    local pass = tune.tuning_pass { name = "PerFunction", measure = measure, knobs = function(mod)
      local knobs = {}
      for i, name in ipairs(mod.names) do
        knobs[i] = tune.knob(name, { tune.choice {}, tune.choice {} })
      end
      return knobs
    end }
    assert.equal(2, tune.total_num_evals(pass, program()))
  end)
end)

describe("a tuning pass", function()
  it("returns the best module, and its decisions in the trace", function()
    local trace = traced(pl.sequential { layout(), parallel() })
    assert.equal("Trace length: 2\n[1] Layout: NCHW\n[2] ParallelConv2d: On", tostring(trace))
    assert.equal(95, trace.out_mod.attrs.cost)
    assert.equal(95, trace.perf)
    assert.is_true(pl.equal(trace.out_mod, tune.trace_from_json(trace:as_json()).out_mod))
  end)

  it("optimises jointly what is nested", function()
    -- Alone NCHW is best; with what the eval pass can make of it, NHWC is.
    tune.functions["tuning_pass_spec.bonus"] = function(mod)
      return mod:with_attrs { cost = mod.attrs.layout == "NHWC" and 10 or 90 }
    end
    tune.functions["tuning_pass_spec.layout"] = function(mod, name, cost)
      return mod:with_attrs { layout = name, cost = cost }
    end
    local bonus = tune.tuning_pass { name = "Bonus", measure = measure,
      knobs = { tune.knob("bonus", { on = tune.choice { transform = "tuning_pass_spec.bonus" },
        off = tune.choice {} }) } }
    local function layouts(eval_passes)
      local function choice(...)
        return tune.choice { transform = "tuning_pass_spec.layout", args = { ... } }
      end
      return tune.tuning_pass { name = "Layouts", measure = measure, eval_passes = eval_passes,
        knobs = { tune.knob("layout", { NHWC = choice("NHWC", 60), NCHW = choice("NCHW", 50) }) } }
    end
    assert.equal(50, traced(layouts()).perf)
    assert.equal(10, traced(layouts { bonus }).perf)
    assert.equal(50, traced(pl.sequential { layouts(), bonus }).perf)
  end)

  it("runs in a context without a trace, on a module or on a trace", function()
    local out = layout()(program())
    assert.equal(97, out.attrs.cost)
    local first = tune.apply(layout(), program())
    local trace = tune.apply(parallel(), first)
    assert.equal("Trace length: 2\n[1] Layout: NCHW\n[2] ParallelConv2d: On", tostring(trace))
    assert.equal(1, first.size)
  end)

  it("has parameters by keyword and in text", function()
    pl.passes.TuneTrials = tune.tuning_pass { name = "TuneTrials", parameters = { trials = 64 },
      run = function(trace, ctx)
        trace = trace:copy()
        trace:add(tune.knob("trials", { tune.choice { transform = "tuning_pass_spec.mark",
          args = { "trials", ctx:option "trials" } } }), 0)
        return trace
      end }
    assert.equal(64, pl.pipeline "TuneTrials" (program()).attrs.trials)
    assert.equal(8, pl.pipeline "TuneTrials{trials=8}" (program()).attrs.trials)
    pl.passes.TuneTrials = nil
  end)

  it("takes the first of equal candidates", function()
    local trace = traced(tuning("Tie", { b = 1, a = 1, c = 1 }))
    assert.same({ "a" }, trace.decisions)
  end)

  it("never takes a candidate that could not be measured", function()
    local trace = traced(tuning("Some", { a = -50, b = 0 }, nil, { measure = function(mod)
      if measure(mod) < 100 then error "crashed" end
      return measure(mod)
    end }))
    assert.same({ "b" }, trace.decisions)
  end)

  it("fails with the reasons when none could be measured, and leaves the trace", function()
    local pass = tuning("None", { a = 1, b = 2 }, nil, { measure = function() return 0 / 0 end })
    local mod = program()
    pl.with(pl.context { trace = mod }, function()
      local text = message(pass, mod)
      assert.matches("no candidate could be measured", text)
      assert.matches("knob 'None', decision 'a': the measure gave %-?nan", text)
      assert.matches("knob 'None', decision 'b': the measure gave", text)
      assert.equal(0, tune.current():get_current_trace().size)
      assert.equal(1, tune.current():get_trace_stack_size())
    end)
  end)

  it("names pass, knob and decision of choices that fail", function()
    local pass = tune.tuning_pass { name = "Fails", measure = measure, knobs = {
      tune.knob("how", { x = tune.choice { transform = function() error "broken" end } }) } }
    assert.matches("knob 'how', decision 'x': .*broken", message(pass, program()))
    pass = tune.tuning_pass { name = "Refuses", measure = measure, knobs = {
      tune.knob("how", { x = tune.choice { constraint = function() return false end } }) } }
    local raising = tune.tuning_pass { name = "Raising", measure = measure, knobs = {
      tune.knob("how", { x = tune.choice { constraint = function() error "no idea" end } }) } }
    local said = message(raising, program())
    assert.matches("Raising", said)
    assert.matches("knob 'how', decision 'x': .*no idea", said)
    assert.matches("knob 'how', decision 'x': its constraint does not hold",
      message(pass, program()))
  end)

  it("leaves a candidate out on which an eval pass fails", function()
    local picky = pl.module_pass { name = "Picky", run = function(mod)
      if measure(mod) < 100 then error "too cheap" end
      return mod
    end }
    local trace = traced(tuning("Some", { a = -50, b = 0 }, { picky }))
    assert.same({ "b", "Applied" }, trace.decisions)
    assert.matches("knob 'None', decision 'a': .*Picky.*too cheap", message(tuning("None",
      { a = -50 }, { picky }), program()))
  end)

  it("fails where the database fails, which is no candidate's fault", function()
    local path = os.tmpname()
    local db = tune.database { path = path }
    local pass = tuning("Kept", { a = 1, b = 2 })
    pl.with(pl.context { instruments = { tune.tracing { tuning_api_database = db } } }, function()
      db:close()
      assert.matches("knob 'Kept', decision 'a': its record cannot be read or kept: .*closed",
        message(pass, program()))
    end)
    os.remove(path)
  end)

  it("refuses what is no trace of a body of its own", function()
    local pass = tune.tuning_pass { name = "Own", run = function() return 1 end }
    assert.matches("tuning pass 'Own': run returns a trace, got number", message(pass, program()))
    assert.matches("measure: a function expected", message(tune.tuning_pass, { name = "x" }))
  end)
end)

describe("test_default_functions", function()
  local two = tune.knob("two", { tune.choice { transform = "tuning_pass_spec.mark",
    args = { "t", 1 } }, tune.choice {} })

  it("combines decisions, and measures once", function()
    local mod = program()
    pl.with(pl.context { trace = mod }, function()
      local state = tune.current()
      local list = tune.generate_candidates({ two }, tune.trace(mod))
      assert.equal(2, #list)
      tune.evaluate(list, { measure = measure })
      assert.equal(2, state.num_evals)
      tune.evaluate(list, { measure = measure })
      assert.equal(2, state.num_evals)
      assert.equal(100, tune.select_best_candidate(list).perf)
      local four = tune.generate_candidates({ two, two }, mod)
      assert.equal(4, #four)
      state:set_num_evals(0)
      local four_again = tune.generate_candidates({ two }, mod, { parallel() })
      assert.equal(2, #four_again)
      assert.equal(4, state.num_evals)
      state:set_num_evals(0)
      assert.equal(2, #tune.generate_candidates({ two }, mod, { heuristic() }))
      assert.equal(0, state.num_evals)
    end)
    pl.with(pl.context { trace = mod }, function() assert.equal(0, tune.current().num_evals) end)
  end)
end)

describe("test_database", function()
  it("keeps workloads, measurements and traces", function()
    local db, mod = tune.database(), program()
    assert.is_false(db:has_workload(mod))
    local workload = db:commit_workload(mod)
    assert.equal(workload, db:commit_workload(program()))
    assert.is_true(db:has_workload(program()))
    assert.is_false(db:has_measurement_record(workload, "llvm"))
    assert.same({}, db:get_measurement_record(workload, "llvm"))
    assert.is_false(db:has_measurement_record(workload, "llvm"))
    assert.is_true(db:commit_measurement_record(workload, "llvm", { 0.1, 0.3 }))
    assert.is_false(db:commit_measurement_record(workload, "llvm", { 9 }))
    assert.same({ 0.1, 0.3 }, db:get_measurement_record(workload, "llvm"))
    assert.same({}, db:get_measurement_record(workload, "cuda"))

    local trace = tune.trace(mod)
    db:commit_tuning_record(workload, "llvm", trace)
    db:commit_tuning_record(workload, "llvm", trace, { 0.3 })
    db:commit_tuning_record(workload, "llvm", trace, { 0.1 })
    assert.same({ 0.1 }, db:get_top_k(workload, "llvm", 1)[1].run_secs)
    assert.equal(3, #db:get_top_k(workload, "llvm", 9))
    assert.same({}, db:get_top_k(workload, "llvm", 0))
    assert.matches("top_k must be non%-negative", message(db.get_top_k, db, workload, "llvm", -1))
    assert.matches("is none of this database",
      message(db.get_top_k, tune.database(), workload, "llvm", 1))
  end)

  it("counts what it knew apart from what was measured", function()
    local db, pass = tune.database(), layout()
    local _, state = traced(pass, { tuning_api_database = db })
    assert.equal(3, state.num_evals)
    assert.equal(0, state.num_cache_hits)
    _, state = traced(pass, { tuning_api_database = db })
    assert.equal(0, state.num_evals)
    assert.equal(3, state.num_cache_hits)
  end)
end)

describe("test_passes_with_mixed_granularities", function()
  it("leaves one trace on the stack", function()
    local seen = 0
    local traceable = { traceable = true }
    function traceable.run(fn)
      local state = tune.current()
      state:push_trace(state:pop_trace())
      seen = seen + 1
      return fn
    end
    local per_function = pl.function_pass { name = "F", traceable = true, run = traceable.run }
    local per_module = pl.module_pass { name = "M", traceable = true, run = traceable.run }
    local trace = traced(pl.sequential { per_function, per_module, "FoldConstant" },
      { make_traceable = {} })
    assert.equal(0, trace.size)
    assert.equal(2, seen)
  end)
end)

describe("the measures", function()
  it("count calls and operations, and take the time", function()
    local mod = program()
    assert.equal(4, tune.measure.nodes(mod))
    assert.equal(16, tune.measure.flops(mod))
    local seconds = tune.measure.time { runs = 3 } (mod)
    assert.equal(3, #seconds)
    for _, x in ipairs(seconds) do assert.is_true(x >= 0) end
    local x = pl.var("x", "Tensor[(?), float32]")
    local open = pl.module { main = pl.func({ x }, pl.op.nn.relu(x)) }
    assert.matches("no argument can be made of type", message(tune.measure.time(), open))
    assert.matches("are not known", message(tune.measure.flops, open))
  end)

  it("let a heuristic class be a pass among others", function()
    local class = pl.pass_class { name = "Halves", kind = "module", heuristic = true,
      run = function(_, mod) return mod:with_attrs { cost = measure(mod) / 2 } end }
    assert.is_false(class().info.traceable)
    local trace = traced(layout { class() })
    assert.equal(48.5, trace.perf)
  end)
end)

-- Choices of several knobs that add to two costs.
local function two_costs(more)
  tune.functions["tuning_pass_spec.both"] = function(mod, x, y)
    return mod:with_attrs { x = (mod.attrs.x or 10) + x, y = (mod.attrs.y or 10) + y }
  end
  local knobs = {}
  for i, rows in ipairs { { { 0, 0 }, { -4, 2 }, { -5, 5 } }, { { 0, 0 }, { 1, -3 } },
    { { 0, 0 }, { 3, 3 } }, { { 0, 0 }, { 0, 0 } } } do
    local choices = {}
    for k, args in ipairs(rows) do
      choices[k] = tune.choice { transform = "tuning_pass_spec.both", args = args }
    end
    knobs[i] = tune.knob("k" .. i, choices)
  end
  local spec = { name = "TwoCosts", knobs = knobs }
  for field, value in pairs(more or {}) do spec[field] = value end
  return tune.tuning_pass(spec)
end

local function x_of(mod) return mod.attrs.x or 10 end
local function y_of(mod) return mod.attrs.y or 10 end
local both = { { x_of, name = "x" }, { y_of, name = "y", weight = 1.5 } }

describe("a tuning pass with a search", function()
  for _, strategy in ipairs { "exhaustive", "random", "beam", "evolutionary", "annealing",
    "halving", "bandit" } do
    it("finds the best: " .. strategy, function()
      local trace = traced(two_costs { measure = x_of, search = { strategy = strategy,
        trials = 200 } })
      assert.equal(5, trace.perf)
      assert.equal(5, trace.out_mod.attrs.x)
      assert.equal(4, trace.size)
    end)
  end

  it("goes the same way whatever the unit of costs is", function()
    for _, strategy in ipairs { "beam", "evolutionary", "annealing", "halving", "bandit" } do
      local function ways(unit)
        local list = {}
        traced(two_costs { search = { strategy = strategy, trials = 30, seed = 3 },
          measure = function(mod)
            list[#list + 1] = x_of(mod)
            return x_of(mod) * unit
          end })
        return list
      end
      assert.same(ways(1), ways(1024), strategy)
      assert.same(ways(1), ways(1 / 1024), strategy)
    end
  end)

  it("leaves where the first point fails", function()
    local one = tune.choice { transform = "tuning_pass_spec.mark", args = { "x", -1 } }
    local broken = tune.choice { transform = function() error "broken" end }
    local knobs = { tune.knob("k", { broken, one }), tune.knob("j", { broken, one }) }
    for i = 3, 12 do knobs[i] = tune.knob("k" .. i, { tune.choice {}, one }) end
    local trace = traced(tune.tuning_pass { name = "Broken", knobs = knobs, measure = measure,
      search = { strategy = "annealing", trials = 400, seed = 2 } })
    assert.equal(88, trace.perf)
  end)

  it("ends when its trials or seconds are spent, and is decided by its seed", function()
    local function decisions(search)
      local trace, state = traced(two_costs { measure = x_of, search = search })
      return table.concat(trace.decisions, " "), state.num_evals
    end
    local _, n = decisions { strategy = "random", trials = 5 }
    assert.equal(5, n)
    local texts, all = {}, {}
    for seed = 1, 8 do
      all[seed] = decisions { strategy = "random", trials = 2, seed = seed }
      assert.equal(all[seed], (decisions { strategy = "random", trials = 2, seed = seed }))
      texts[all[seed]] = true
    end
    assert.is_not_nil(next(texts, next(texts)))
    local slow = two_costs { search = { strategy = "random", trials = 1000, seconds = 1e-9 },
      measure = function(mod)
        local begun = os.clock()
        repeat until os.clock() > begun + 1e-3
        return x_of(mod)
      end }
    assert.equal(1, select(2, traced(slow)).num_evals)
  end)

  it("has its budget as options, which count in the number of measurements", function()
    pl.passes.TuneSpecSearch = two_costs { measure = x_of, search = "exhaustive" }
    assert.equal(24, tune.total_num_evals(pl.pipeline "TuneSpecSearch".passes[1]))
    local pass = pl.pipeline "TuneSpecSearch{trials=7}".passes[1]
    assert.equal(7, tune.total_num_evals(pass))
    assert.equal(7, select(2, traced(pass)).num_evals)
    local config = { ["TuneSpecSearch.trials"] = 3 }
    assert.equal(3, select(2, traced(pl.passes.TuneSpecSearch(), { config = config })).num_evals)
    assert.matches("hill", message(pl.pipeline, 'TuneSpecSearch{strategy="hill"}'))
    pl.passes.TuneSpecSearch = nil
    local nested = layout { two_costs { measure = x_of, search = { trials = 4,
      strategy = "random" } } }
    assert.equal(3 * 4, tune.total_num_evals(nested))
    assert.equal(3 * 4, select(2, traced(nested)).num_evals)
  end)

  it("gives a part of the effort to measures by successive halving", function()
    local efforts = {}
    traced(two_costs { search = { strategy = "halving", trials = 30 },
      measure = function(mod, effort)
        efforts[effort] = (efforts[effort] or 0) + 1
        return x_of(mod)
      end })
    assert.is_true(efforts[1 / 8] > efforts[1])
  end)

  it("keeps records of times for a processor, and those of counts for all", function()
    local function target(spec)
      spec.metric = spec.metric or "nodes"
      return two_costs(spec).tuning_body.target
    end
    assert.equal("nodes + flops", target { metric = { "nodes", "flops" } })
    assert.matches("^time on .*, %d+ cores?$", target { metric = "time" })
    assert.equal("board", target { metric = "time", target = "board" })
  end)

  it("says which features it handles", function()
    local pass = two_costs { measure = x_of, handles = { "control flow" } }
    local let = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { let %y = tanh(%x); %y }]])
    assert.matches("does not handle the feature 'let'", message(pass, let))
    assert.is_nil((pl.validate(pl.sequential { pass }, let)))
    pass = two_costs { measure = x_of, handles = {}, unhandled = "skip" }
    assert.equal(let, pass(let))
  end)

  it("says what is wrong with its arguments", function()
    assert.matches("'separate' is of kernels", message(two_costs, { measure = x_of,
      search = "separate" }))
    assert.matches("did you mean 'beam'", message(two_costs, { measure = x_of, search = "beem" }))
    assert.matches("there is no option 'trial'", message(two_costs, { measure = x_of,
      search = { trial = 1 } }))
    assert.matches("leave one out", message(two_costs, { measure = x_of, metric = "nodes" }))
    assert.matches("there is no metric 'node'", message(two_costs, { metric = "node" }))
    assert.matches("a weight is a positive number", message(two_costs, { metric = { "nodes",
      weight = -1 } }))
    assert.matches("two metrics are called 'x'", message(two_costs, { metric = { both[1],
      both[1] } }))
    assert.matches("list is empty", message(two_costs, { metric = {} }))
    assert.has_error(function() two_costs { measure = x_of, search = { trials = 0 } } end)
    assert.has_error(function() two_costs { measure = x_of, search = { seed = "x" } } end)
  end)
end)

describe("a tuning pass with several metrics", function()
  it("minimises their weighted sum, relative to the module before", function()
    local trace = traced(two_costs { metric = both })
    assert.equal(0.7 + 1.5 * 0.9, trace.perf)
    assert.same({ x = 0.7, y = 0.9 }, trace.costs)
    assert.equal(7, trace.out_mod.attrs.x)
  end)

  it("tells the candidates that none dominates, of which `select` takes one", function()
    local trace = traced(two_costs { metric = both, search = { strategy = "random",
      trials = 200 } })
    local seen = {}
    for i, one in ipairs(trace.front) do
      seen[i] = ("%d %d"):format(one.out_mod.attrs.x, one.out_mod.attrs.y)
    end
    table.sort(seen)
    assert.same({ "11 7", "5 15", "6 12", "7 9" }, seen)
    trace = traced(two_costs { metric = both, select = function(front)
      table.sort(front, function(a, b) return a.costs.x < b.costs.x end)
      return front[1]
    end })
    assert.equal(5, trace.out_mod.attrs.x)
    assert.equal(4, #trace.front)
  end)

  it("compares the candidates of eval passes with the same module", function()
    local function inner() return two_costs { metric = both } end
    local trace, state = traced(two_costs { metric = both, eval_passes = { inner() } })
    assert.equal(24 * 24, state.num_evals)
    assert.equal(0.4 + 1.5 * 0.8, trace.perf)
  end)

  it("finds all values in the database", function()
    local db, pass = tune.database(), two_costs { metric = both }
    local first, state = traced(pass, { tuning_api_database = db })
    -- The fourth knob changes nothing, and two pairs of the others give the same: those are known.
    assert.equal(10, state.num_evals)
    local again
    again, state = traced(pass, { tuning_api_database = db })
    assert.equal(0, state.num_evals)
    assert.equal(first.perf, again.perf)
    assert.same(first.costs, again.costs)
  end)

  it("knows built-in metrics by name", function()
    local trace = traced(two_costs { metric = { "nodes", { x_of, name = "x", weight = 0.5 } } })
    assert.equal(1 + 0.5 * 0.5, trace.perf)
    assert.equal(4, traced(two_costs { metric = "nodes" }).perf)
    assert.is_true(traced(layout { pl.passes.FoldConstant() }, {}).perf < 100)
    trace = traced(tune.tuning_pass { name = "Timed", metric = "time", knobs = {} })
    assert.is_true(trace.perf > 0 and trace.perf < 1)
  end)

  it("fails with the metric that the module before has not", function()
    local pass = two_costs { metric = { { x_of, name = "x" }, { function(mod)
      if not mod.attrs.y then error "no y" end
      return mod.attrs.y
    end, name = "y" } } }
    assert.matches("the metric 'y' of the module before tuning: .*no y", message(pass, program()))
  end)
end)
