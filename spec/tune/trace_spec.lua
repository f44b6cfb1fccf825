-- Traces: the counterparts of test_trace and test_trace_wrapper of TVM's
-- test_tuning_api.py, replay, and what is wrong.

local pl = require "perilune"
local tune = pl.tune

local function program()
  local x = pl.var("x", "Tensor[(4), float32]")
  return pl.module { main = pl.func({ x }, pl.op.nn.relu(x * 1) + pl.op.nn.relu(x)) }
end

tune.functions["trace_spec.count"] = function(mod, n)
  return mod:with_attrs { count = (mod.attrs.count or 0) + n }
end

local function counts(n)
  return tune.choice { transform = "trace_spec.count", args = { n } }
end

local knob = tune.knob("MockTuningInst1", { choice1 = counts(1), choice3 = counts(3) })

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("test_trace", function()
  it("begins empty, or with decisions", function()
    local mod = program()
    assert.equal(0, tune.trace(mod).size)
    local trace = tune.trace(mod, { knob, knob }, { "choice3", "choice1" })
    assert.equal(2, trace.size)
    assert.equal(mod, trace.in_mod)
    assert.equal(4, trace.out_mod.attrs.count)
    assert.equal("Trace length: 2\n[1] MockTuningInst1: choice3\n[2] MockTuningInst1: choice1",
      tostring(trace))
    assert.is_true(trace:verify())
  end)

  it("grows by decisions, and is unmeasured then", function()
    local trace = tune.trace(program())
    assert.equal(-1, trace.perf)
    trace:set_perf(0.5)
    local out = trace:add(knob, "choice3")
    assert.equal(3, out.attrs.count)
    assert.equal(out, trace.out_mod)
    assert.equal(-1, trace.perf)
    assert.equal(1, trace.size)
  end)

  it("is as it was after a decision that fails", function()
    local trace = tune.trace(program(), { knob }, { "choice1" })
    local out = trace.out_mod
    assert.matches("has no choice 'choice2'", message(trace.add, trace, knob, "choice2"))
    local bad = tune.knob("bad", { tune.choice { transform = function() error "no" end } })
    assert.matches("no", message(trace.add, trace, bad, 0))
    assert.equal(1, trace.size)
    assert.equal(out, trace.out_mod)
  end)

  it("has as many knobs as decisions", function()
    assert.matches("1 knobs and 0 decisions", message(tune.trace, program(), { knob }, {}))
  end)

  it("is written as JSON and read again, with its module or for a given one", function()
    local trace = tune.trace(program(), { knob, knob }, { "choice3", "choice1" })
    local again = tune.trace_from_json(trace:as_json())
    assert.is_true(pl.equal(trace.in_mod, again.in_mod))
    assert.is_true(pl.equal(trace.out_mod, again.out_mod))
    assert.equal(tostring(trace), tostring(again))
    local short = trace:as_json(false)
    assert.is_nil(short:find("module", 1, true))
    assert.equal(4, tune.trace_from_json(short, program()).out_mod.attrs.count)
    assert.matches("written without its module", message(tune.trace_from_json, short))
  end)

  it("keeps arguments of every kind in JSON", function()
    local got
    tune.functions["trace_spec.keep"] = function(mod, ...) got = { ... } return mod end
    local args = { 1, 0.1, 1 / 0, "a\"\\\n\u{1F600}", true, { 1, { x = 2.5, y = {} } },
      program() }
    local one = tune.knob("keep", { tune.choice { transform = "trace_spec.keep", args = args } })
    local trace = tune.trace(program(), { one }, { 0 })
    tune.trace_from_json(trace:as_json())
    assert.is_true(pl.equal(args[7], got[7]))
    args[7], got[7] = nil, nil
    assert.same(args, got)
    assert.equal("float", math.type(got[2]))
  end)
end)

describe("a copy of a trace", function()
  it("shares the decisions, and has its own from then on", function()
    local trace = tune.trace(program(), { knob }, { "choice1" })
    local copy = trace:copy()
    copy:add(knob, "choice3")
    assert.equal(1, trace.size)
    assert.equal(2, copy.size)
    assert.equal(1, trace.out_mod.attrs.count)
    assert.equal(4, copy.out_mod.attrs.count)
  end)

  it("applies no decision anew", function()
    local calls = 0
    local one = tune.knob("k", { tune.choice { transform = function(mod)
      calls = calls + 1
      return mod
    end } })
    local trace = tune.trace(program())
    for _ = 1, 100 do
      trace = trace:copy()
      trace:add(one, 0)
    end
    assert.equal(100, calls)
    assert.equal(100, #trace.decisions)
  end)
end)

describe("reading a trace", function()
  local json = tune.trace(program(), { knob }, { "choice1" }):as_json()

  it("names the step that cannot be replayed", function()
    local text = json:gsub('"decision":"choice1"', '"decision":"choice7"')
    assert.matches("step 1, knob 'MockTuningInst1', decision 'choice7': .*has no choice",
      message(tune.trace_from_json, text))
  end)

  it("refuses a function that is another one now", function()
    tune.functions["trace_spec.changes"] = function(mod) return mod end
    local one = tune.knob("k", { tune.choice { transform = "trace_spec.changes" } })
    local text = tune.trace(program(), { one }, { 0 }):as_json()
    tune.functions["trace_spec.changes"] = function(mod) return mod:with_attrs { x = 1 } end
    assert.matches("'trace_spec.changes'.*is not the one that the trace was made with",
      message(tune.trace_from_json, text))
  end)

  it("refuses what is malformed, with its place", function()
    assert.matches("malformed trace: line 1, column 2", message(tune.trace_from_json, "{x}"))
    assert.matches("malformed trace", message(tune.trace_from_json, "[1"))
    assert.matches("malformed trace", message(tune.trace_from_json, "7"))
    assert.matches("version 2, and this library reads version 1",
      message(tune.trace_from_json, (json:gsub('"version":1', '"version":2'))))
    assert.matches("it has no list of decisions", message(tune.trace_from_json,
      '{"version":1,"knobs":[]}'))
    assert.matches("decisions: a list is expected", message(tune.trace_from_json,
      '{"version":1,"knobs":[],"decisions":{"a":1}}'))
    assert.matches("step 1 is no object", message(tune.trace_from_json,
      '{"version":1,"knobs":[],"decisions":[3]}', program()))
    local deep = ("["):rep(100000)
    assert.matches("nested too deep", message(tune.trace_from_json, deep))
    for i = 1, #json - 1, 7 do message(tune.trace_from_json, json:sub(1, i)) end
  end)
end)

describe("test_trace_wrapper", function()
  it("makes a trace of modules and functions", function()
    local mod = program()
    local trace = tune.trace(mod)
    assert.equal(trace, tune.get_trace(trace))
    assert.equal(mod, tune.get_trace(mod).in_mod)
    assert.is_true(pl.equal(mod.functions.main, tune.get_trace(mod.functions.main).in_mod.main))
    assert.matches("a trace, module or function expected, got number",
      message(tune.get_trace, 1))
  end)
end)

describe("the trace of a context", function()
  local pipeline = pl.sequential { "SimplifyExpr", "EliminateCommonSubexpr",
    'FoldConstant{fold="all"}' }

  local function traced(pass, options)
    local mod = program()
    options.trace = options.trace or mod
    options.opt_level = 3
    return pl.with(pl.context(options), function()
      local out = pass(mod)
      local trace = tune.current():get_current_trace()
      assert.equal(out, trace.out_mod)
      return trace
    end)
  end

  it("records passes with their options, and replays them", function()
    local trace = traced(pipeline, { config = { ["SimplifyExpr.skip"] = nil } })
    assert.equal("Trace length: 3\n[1] SimplifyExpr: Applied\n[2] EliminateCommonSubexpr: Applied\n"
      .. "[3] FoldConstant: Applied", tostring(trace))
    local text = trace:as_json()
    assert.matches('FoldConstant{fold=\\"all\\"}', text, 1, true)
    assert.is_true(pl.equal(trace.out_mod, tune.trace_from_json(text).out_mod))
  end)

  it("records options that the context gives", function()
    local trace = traced(pl.sequential { "FoldConstant" },
      { config = { FoldConstant = { fold = "all" } } })
    assert.matches('FoldConstant{fold=\\"all\\"}', trace:as_json(), 1, true)
  end)

  it("records passes that work function by function as one, with the level they ran at", function()
    local trace = traced(pl.pipeline "functions{SimplifyExpr,EliminateCommonSubexpr}", {})
    assert.equal(1, trace.size)
    assert.is_true(pl.equal(trace.out_mod, tune.trace_from_json(trace:as_json()).out_mod))
  end)

  it("forgets what a failing try undid", function()
    local failing = pl.module_pass { name = "Fails", run = function() error "no" end }
    local trace = traced(pl.sequential { pl.try { "SimplifyExpr", failing },
      "EliminateCommonSubexpr" }, {})
    assert.equal("Trace length: 1\n[1] EliminateCommonSubexpr: Applied", tostring(trace))
  end)

  it("records the pass, not what its body runs", function()
    pl.passes.RunsOthers = { kind = "module", run = function(mod)
      return pl.passes.SimplifyExpr()(mod)
    end }
    local trace = traced(pl.sequential { "RunsOthers" }, {})
    assert.equal("Trace length: 1\n[1] RunsOthers: Applied", tostring(trace))
    assert.is_true(pl.equal(trace.out_mod, tune.trace_from_json(trace:as_json()).out_mod))
    pl.passes.RunsOthers = nil
  end)

  it("says why a pass that has no name in the registry cannot be replayed", function()
    local mine = pl.module_pass { name = "Mine", run = function(mod)
      return mod:with_attrs { x = 1 }
    end }
    local text = traced(mine, {}):as_json()
    assert.matches("step 1, knob 'Mine', decision 'Applied': the pass 'Mine' is not registered",
      message(tune.trace_from_json, text))
  end)

  it("records the passes of make_traceable only", function()
    local trace = traced(pipeline, { make_traceable = { "FoldConstant" } })
    assert.equal(1, trace.size)
    assert.equal("FoldConstant", trace.knobs[1].name)
    assert.equal(0, traced(pipeline, { make_traceable = {} }).size)
  end)

  it("says that passes which it does not record came in between", function()
    local trace = traced(pl.sequential { "FoldConstant", "SimplifyExpr" },
      { make_traceable = { "FoldConstant" } })
    assert.matches("step 1, knob 'FoldConstant'.*passes that the trace does not record",
      message(tune.trace_from_json, trace:as_json()))
  end)
end)

describe("test_pass_context", function()
  it("has a stack of traces", function()
    local mod = program()
    pl.with(pl.context { trace = tune.trace(mod) }, function()
      local state = tune.current()
      assert.equal(1, state:get_trace_stack_size())
      state:push_trace(tune.trace(mod))
      assert.equal(2, #state:get_trace_stack())
      assert.equal(state:get_trace_stack()[2], state:pop_trace())
      state:pop_trace()
      assert.equal(0, state:get_trace_stack_size())
      assert.matches("the stack of traces is empty", message(state.pop_trace, state))
    end)
    assert.is_nil(tune.current())
  end)
end)
