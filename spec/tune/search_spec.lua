-- Searches: every strategy finds what there is to be found, seeds decide, records are replayed, and
-- what is wrong or fails never wins.

local foldable = require "spec.tune.foldable"
local pl = require "perilune"
local pareto_front = require "perilune.tune.search.pareto_front"
local tune = pl.tune

local function program()
  local x = pl.var("x", "Tensor[(4), float32]")
  return pl.module { main = pl.func({ x }, pl.op.tanh(x)) }
end

tune.functions["search_spec.add"] = function(mod, cost)
  return mod:with_attrs { cost = (mod.attrs.cost or 100) + cost }
end

-- Knobs whose choices add costs.
local function knobs(rows)
  local list = {}
  for i, costs in ipairs(rows) do
    local choices = {}
    for k, cost in ipairs(costs) do
      choices[k] = tune.choice { transform = "search_spec.add", args = { cost } }
    end
    list[i] = tune.knob("k" .. i, choices)
  end
  return list
end

local function cost_of(mod) return mod.attrs.cost end

local rows = { { 0, -3, 5 }, { 0, 7, -11 }, { 2, 0, -5 }, { 0, 1 } }

local function run(options)
  local spec = { mod = program(), knobs = knobs(rows), metrics = { cost_of }, trials = 150,
    seed = 3 }
  for name, value in pairs(options or {}) do spec[name] = value end
  return tune.search(spec)
end

local function texts(result)
  local list = {}
  for i, trial in ipairs(result.list) do list[i] = trial.text .. " " .. tostring(trial.cost) end
  return table.concat(list, "\n")
end

describe("a search", function()
  local strategies = { "exhaustive", "random", "beam", "evolutionary", "annealing", "halving",
    "bandit" }

  for _, strategy in ipairs(strategies) do
    it("finds the best choices: " .. strategy, function()
      local result = run { strategy = strategy }
      assert.equal("faster", result.verdict)
      assert.equal("k1=1,k2=2,k3=2,k4=0", result.text)
      assert.is_true(math.abs(result.ratio - (100 - 3 - 11 - 5) / 102) < 1e-9)
      assert.equal(81, result.mod.attrs.cost)
      assert.equal(81, result.trace.out_mod.attrs.cost)
      assert.equal(4, result.trace.size)
    end)

    it("is decided by its seed: " .. strategy, function()
      local a = run { strategy = strategy, trials = 20 }
      local b = run { strategy = strategy, trials = 20 }
      assert.equal(texts(a), texts(b))
      if strategy ~= "exhaustive" then
        assert.not_equal(texts(a), texts(run { strategy = strategy, trials = 20, seed = 4 }))
      end
    end)
  end

  it("ends when the space is searched, when trials or seconds are spent", function()
    assert.equal("exhausted", run { strategy = "exhaustive", trials = 1000 }.state)
    assert.equal("exhausted", run { strategy = "random", trials = 1000 }.state)
    local result = run { trials = 7 }
    assert.equal("done", result.state)
    assert.equal(7, result.trials)
    assert.equal(7, #result.list)
    assert.is_true(run { seconds = 0 }.trials <= 1)
  end)

  it("ends a measurement when the seconds are spent, and makes no record of it", function()
    tune.functions["search_spec.negative"] = function(mod)
      local x = pl.var("x", "Tensor[(4), float32]")
      return mod:with { main = pl.func({ x }, pl.op.negative(x)) }
    end
    local knob = tune.knob("k", { tune.choice {},
      tune.choice { transform = "search_spec.negative" } })
    local text = "if grep -q negative {}; then sleep 30; fi"
    local begun = os.time()
    local result = tune.search { mod = program(), knobs = { knob }, strategy = "exhaustive",
      seconds = 2, builder = tune.builder { kind = "command", command = text,
      suffix = ".relay" } }
    local now = os.time()
    assert.is_true(now - begun < 10, ("%g s"):format(now - begun))
    assert.same({ "done", "undecided", 0 }, { result.state, result.verdict, result.failed })
  end)

  -- The candidate has a pass, in Lua or in C, that would take minutes.
  local endless = { ["in Lua"] = "SearchSpecEndless", ["one after the other"] =
    "try{SearchSpecEndless}else{SearchSpecEndless}", ["in C"] =
    'EqualitySaturation{rules=["add(?a, ?b) => add(?b, ?a)","add(add(?a, ?b), ?c) => '
    .. 'add(?a, add(?b, ?c))"],node_limit=1000000,iter_limit=1000,time_limit=600}' }
  for name, text in pairs(endless) do
    it("ends passes when the seconds are spent: " .. name, function()
      pl.passes.SearchSpecEndless = { kind = "function", run = function() while true do end end }
      tune.functions["search_spec.endless"] = function(mod) return pl.pipeline(text)(mod) end
      local x = pl.var("x", "Tensor[(4), float32]")
      local y = x
      for i = 1, 60 do y = pl.op.add(y, pl.op.power(x, i + 0.5)) end
      local knob = tune.knob("k", { tune.choice {},
        tune.choice { transform = "search_spec.endless" } })
      local begun = os.time()
      local result = tune.search { mod = pl.module { main = pl.func({ x }, y) }, knobs = { knob },
        strategy = "exhaustive", seconds = 0.4, metrics = { function() return 1 end } }
      assert.is_true(os.time() - begun < 10)
      assert.same({ "done", "undecided", 0 }, { result.state, result.verdict, result.failed })
    end)
  end

  it("keeps the base when nothing is better", function()
    local result = run { knobs = knobs { { 0, 1, 2 } } }
    assert.equal("undecided", result.verdict)
    assert.equal(100, result.mod.attrs.cost)
    assert.is_string(result.reason)
  end)

  it("goes on with what fails", function()
    tune.functions["search_spec.fail"] = function() error "no such layout" end
    local list = knobs { { 0, -5 } }
    list[2] = tune.knob("broken", { tune.choice {}, tune.choice { transform = "search_spec.fail" },
      tune.choice { constraint = function() return false end } })
    local result = run { knobs = list, strategy = "exhaustive" }
    assert.equal(4, result.failed)
    assert.equal("k1=1,broken=0", result.text)
    local reasons = {}
    for _, trial in ipairs(result.list) do reasons[#reasons + 1] = trial.failure end
    assert(table.concat(reasons):find "no such layout")
    assert(table.concat(reasons):find "constraint does not hold")
  end)

  it("measures equal modules once", function()
    local n = 0
    local function counted(mod)
      n = n + 1
      return mod.attrs.cost
    end
    run { knobs = knobs { { 0, 0, 0, 0, -1 } }, strategy = "exhaustive", metrics = { counted } }
    assert.equal(3, n) -- the base, the other one, and that against the base at the end
  end)

  it("weighs metrics, and tells what none dominates", function()
    local function size(mod) return 1000 - mod.attrs.cost end
    local result = run { metrics = { cost_of, { size, weight = 0.001, name = "size" } },
      strategy = "exhaustive" }
    assert.equal(81, result.mod.attrs.cost)
    assert.is_true(#result.front > 3)
    assert.has_error(function() run { metrics = { { cost_of, weight = 0 } } } end)
    assert.has_error(function() run { metrics = { "speed" } } end)
  end)

  it("says what arguments it takes", function()
    assert.error_matches(function() tune.search {} end, "mod: a module expected")
    assert.error_matches(function() run { strategy = "beem" } end, "did you mean 'beam'")
    assert.error_matches(function() run { knobs = {} } end, "list is empty")
    assert.error_matches(function() run { trials = 0 } end, "trials")
    assert.error_matches(function() run { database = {} } end, "database")
    assert.error_matches(function() run { replay = true } end, "no search of these settings")
    assert.error_matches(function()
      tune.search { mod = program(), base = "NoSuchPass" }
    end, "NoSuchPass")
  end)
end)

describe("a Pareto front", function()
  it("has what no other one dominates", function()
    local a, b = { costs = { x = 1, y = 3 } }, { costs = { x = 2, y = 2 } }
    local worse, same = { costs = { x = 2, y = 3 } }, { costs = { x = 1, y = 3 } }
    assert.same({ a, b }, pareto_front { worse, a, { failure = "" }, same, b, worse })
  end)
end)

describe("a recorded search", function()
  it("is replayed without measuring, and gives the same", function()
    local db = tune.database()
    for _, strategy in ipairs { "evolutionary", "annealing", "bandit", "halving" } do
      local first = run { database = db, strategy = strategy, trials = 30, target = strategy }
      local again = run { database = db, strategy = strategy, replay = true, target = strategy,
        trials = 30,
        metrics = { function() error "it measured" end } }
      assert.equal(texts(first), texts(again))
      assert.equal(first.text, again.text)
      assert.equal(first.ratio, again.ratio)
      assert.equal(0, again.measured)
      assert.equal(first.mod:text(), again.mod:text())
    end
  end)

  it("goes on where it was", function()
    local db = tune.database()
    assert.equal(10, run { database = db, trials = 10 }.measured)
    local result = run { database = db, trials = 30 }
    assert.equal(10, result.cached)
    assert.equal(texts(run { trials = 30 }), texts(result))
  end)
end)

-- ------------------------------------------------------------------ cost model

describe("a search with a cost model", function()
  local function product()
    local a = pl.te.placeholder({ 32, 32 }, "float32", "A")
    local k = pl.te.reduce_axis({ 0, 32 }, "k")
    local b = pl.te.compute({ 32, 32 }, function(i, j)
      return pl.te.sum(a[{ i, k.var }] * a[{ k.var, j }], k)
    end, "B")
    return pl.module { main = pl.te.create_prim_func { a, b } }
  end

  -- What the model can learn: vectors and unrolled loops are good.
  local function cost(mod)
    local f = tune.features(mod)
    return 1 + f[3] - f[4] + f[13]
  end

  local function schedules(options)
    local spec = { mod = product(), schedule = true, trials = 20, seed = 2, strategy = "random",
      metrics = { { cost, name = "cost" } }, runner = tune.runner { rounds = 1 } }
    for name, value in pairs(options) do spec[name] = value end
    return tune.search(spec)
  end

  local function mean_after(result, n)
    local sum, count = 0, 0
    for i = n, #result.list do
      sum, count = sum + (result.list[i].cost or 0), count + 1
    end
    return sum / count
  end

  it("measures better candidates than one without", function()
    local plain = mean_after(schedules {}, 10)
    for _, kind in ipairs { "trees", "ridge" } do
      local guided = mean_after(schedules { cost_model = kind }, 10)
      assert.is_true(guided < plain, ("%s: %g, %g without"):format(kind, guided, plain))
    end
  end)

  it("tells how well it ordered the trials before it knew them", function()
    local model = schedules({ cost_model = "trees" }).model
    assert.is_true(model.n >= 2 and model.n <= 12)
    assert.is_true(model.rank_correlation >= -1 and model.rank_correlation <= 1)
    assert.is_true(model.k >= 1 and model.recall >= 0 and model.recall <= 1)
    assert.is_nil(schedules({}).model)
    assert.is_nil(schedules({ cost_model = "trees", trials = 3 }).model)
  end)

  it("is decided by its seed, and is replayed", function()
    local spec = { cost_model = "trees", strategy = "evolutionary", database = tune.database() }
    local first = schedules(spec)
    spec.replay = true
    assert.equal(texts(first), texts(schedules(spec)))
  end)

  it("learns nothing from programs that it cannot see, and goes on", function()
    local x = pl.var("x", "Tensor[(?), float32]")
    local open = pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.tanh(x))) }
    local result = tune.search { mod = open, cost_model = "trees", strategy = "random",
      trials = 10, metrics = { "nodes" }, pool = { "SimplifyExpr", "FoldConstant" },
      base = "DeadCodeElimination" }
    assert.is_true(result.trials > 1)
    assert.matches("did you mean 'trees'", select(2, pcall(schedules, { cost_model = "tree" })))
  end)
end)

-- ------------------------------------------------------------------- pipelines

pl.passes.SearchSpecWrong = { kind = "function", doc = "Computes something else, and fast.",
  run = function(fn) return pl.func(fn.params, fn.params[1]) end }
pl.passes.SearchSpecFails = { kind = "function", doc = "Fails.",
  run = function() error "broken" end }

describe("a search of pipelines", function()
  local function search(options)
    local spec = { mod = foldable(), base = "DeadCodeElimination", trials = 12, seed = 1,
      pool = { 'FoldConstant{fold="all"}', "SearchSpecWrong", "SearchSpecFails" },
      strategy = "exhaustive", runner = tune.runner { pairs = 40, seconds = 10 } }
    for name, value in pairs(options or {}) do spec[name] = value end
    return tune.search(spec)
  end

  it("finds a faster one whose results are right", function()
    local path = os.tmpname()
    local db <close> = tune.database { path = path }
    local result = search { database = db }
    assert.equal("faster", result.verdict)
    assert(result.text:find "FoldConstant", result.text)
    assert(not result.text:find "Wrong", result.text)
    assert.is_true(result.ratio < 0.7, tostring(result.ratio))
    assert.is_true(result.confidence > 0.99)
    assert(pl.check(foldable(), result.mod, { rtol = 1e-3, units = 4 }))
    local reasons = {}
    for _, trial in ipairs(result.list) do reasons[#reasons + 1] = trial.failure end
    local all = table.concat(reasons, "\n")
    assert(all:find "wrong result", all)
    assert(all:find "broken", all)

    local again = search { database = db, replay = true }
    assert.equal(result.text, again.text)
    assert.equal(0, again.measured)
    assert.equal(result.mod:text(), again.mod:text())

    local best, record = tune.apply_best(foldable(), { database = db })
    assert.equal(result.text, record.text)
    assert.equal(result.mod:text(), best:text())
    assert.is_nil(tune.apply_best(program(), { database = db }))
    os.execute(("rm -f %s %s-wal %s-shm"):format(path, path, path))
  end)

  it("tries order, presence and options at random", function()
    local result = search { strategy = "evolutionary", metrics = { "nodes" }, trials = 40,
      pool = { "FoldConstant", "SimplifyExpr", "EliminateCommonSubexpr" } }
    local seen = {}
    for _, trial in ipairs(result.list) do
      assert.is_nil(seen[trial.text])
      seen[trial.text] = true
    end
    local all = texts(result)
    assert(all:find "{[%a_]+=", all)
    assert(all:find "fixpoint%(")
    assert.equal(1, pl.tune.measure.nodes(result.mod))
    assert.equal("faster", result.verdict)
  end)

  it("cannot begin where the base cannot be measured", function()
    local x = pl.var("x", "Tensor[(?), float32]")
    local open = pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.tanh(x))) }
    local ok, err = pcall(search, { mod = open, pool = { 'SearchSpecWrong' } })
    assert.is_false(ok)
    assert(tostring(err):find "base cannot be measured", tostring(err))
  end)
end)
