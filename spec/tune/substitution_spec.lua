-- Graph substitution as a space of pl.tune.search, and the backtracking search over single
-- applications of rules.

local matmul_chain = require "spec.rule.matmul_chain"
local pl = require "perilune"

local associative, chain = { matmul_chain.associative }, matmul_chain.module

-- It is cheap from the right.
local mod = chain { 80, 60, 70, 2, 3 }

describe("pl.tune.backtracking_search", function()
  it("finds the cheap order by single applications", function()
    local result = pl.tune.backtracking_search { mod = mod, rules = associative, cost = "flops",
      alpha = 2 }
    assert.equal(2 * (60 * 70 * 2 + 80 * 60 * 2 + 80 * 2 * 3), result.cost)
    assert.equal("exhausted", result.state)
    assert.equal(pl.tune.measure.flops(result.mod), result.cost)
    assert.is_true(pl.equal(result.mod, pl.pipeline(result.text)(mod)))
    assert.is_true(result.cost < result.base_cost)
  end)

  it("takes a step that costs more only with an alpha that allows it", function()
    -- Distribution costs more until what is left cancels.
    local x = pl.var("x", "Tensor[(8), float32]")
    local y = pl.var("y", "Tensor[(8), float32]")
    local op = pl.op
    local sum = op.subtract(op.multiply(x, op.add(y, x)), op.multiply(x, y))
    local program = pl.module { main = pl.func({ x, y }, sum) }
    local rules = { "multiply(?a, add(?b, ?c)) => add(multiply(?a, ?b), multiply(?a, ?c))",
      "subtract(add(?a, ?b), ?a) => ?b" }
    local function cost(alpha)
      return pl.tune.backtracking_search { mod = program, rules = rules, cost = "nodes",
        alpha = alpha }.cost
    end
    assert.equal(4, cost(1))
    assert.equal(1, cost(1.5))
  end)

  it("keeps to its budget", function()
    local result = pl.tune.backtracking_search { mod = chain { 2, 3, 4, 5, 6, 7, 8 },
      rules = associative, alpha = 100, budget = 5 }
    assert.equal(5, result.candidates)
    assert.equal("done", result.state)
  end)

  it("does not take what computes something else", function()
    local x = pl.var("x", "Tensor[(8), float32]")
    local program = pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.exp(x))) }
    local result = pl.tune.backtracking_search { mod = program, cost = "nodes",
      rules = { "tanh(exp(?x)) => exp(?x)" } }
    assert.equal(program, result.mod)
    assert.truthy(result.reason)
  end)

  it("takes costs of functions and of models", function()
    local seen = 0
    pl.tune.backtracking_search { mod = mod, rules = associative, cost = function(m)
      seen = seen + 1
      return pl.tune.measure.flops(m)
    end }
    assert.is_true(seen > 2)
    local model = pl.tune.cost_model { kind = "roofline",
      machine = { flops = 1e9, bandwidth = 1e9, overhead = 0 } }
    local result = pl.tune.backtracking_search { mod = mod, rules = associative, cost = model,
      alpha = 2 }
    assert.is_true(result.cost < result.base_cost)
  end)

  it("says what is wrong with its options", function()
    for message, options in pairs {
      ["mod: a module expected"] = {},
      ["alpha: a number from 1 on"] = { mod = mod, alpha = 0.5 },
      ["there is no cost 'flop'"] = { mod = mod, cost = "flop" },
      ["rule 1"] = { mod = mod, rules = { 3 } },
      ["cost: a number expected"] = { mod = mod, cost = function() return "x" end },
    } do
      local ok, err = pcall(pl.tune.backtracking_search, options)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(message, 1, true), tostring(err))
    end
  end)
end)

describe("the space of substitutions", function()
  it("is searched by measuring", function()
    local result = pl.tune.search { mod = mod, base = "SimplifyExpr",
      space = pl.tune.space.substitution { rules = associative }, strategy = "exhaustive",
      metrics = { "flops" } }
    assert.equal("faster", result.verdict)
    assert.is_true(pl.tune.measure.flops(result.mod) < pl.tune.measure.flops(mod) / 2)
    assert.truthy(result.text:find("EqualitySaturation", 1, true))
    assert.is_true(pl.equal(result.mod, pl.pipeline(result.text)(mod)))
  end)

  it("decides whether it comes before the base pipeline", function()
    -- The pipeline makes a product and a sum one nn.gemm, which no rule matches.
    local x = pl.var("x", "Tensor[(4, 32), float32]")
    local y = pl.var("y", "Tensor[(4, 32), float32]")
    local function w(seed) return pl.const(pl.tensor.random({ 32, 32 }, "float32",
      { seed = seed, low = -0.1, high = 0.1 })) end
    local a = w(1)
    local sum = pl.op.add(pl.op.nn.matmul(x, a), pl.op.nn.matmul(y, a))
    local program = pl.module { main = pl.func({ x, y }, sum) }
    local base = pl.rules { "add(nn.matmul(?x, ?w), ?c) => nn.gemm(?x, ?w, ?c)" }
    pl.passes["substitution_spec.Gemm"] = { kind = "function", run = base }
    local function run(space)
      return pl.tune.search { mod = program, base = "substitution_spec.Gemm", trials = 20,
        space = space, metrics = { "flops" }, strategy = "random" }
    end
    local result = run "substitution"
    assert.equal("faster", result.verdict)
    assert.is_true(result.ratio < 0.6, tostring(result.ratio))
    assert.matches("^EqualitySaturation", result.text)
    assert.matches("substitution_spec.Gemm$", result.text)
    assert.is_true(pl.equal(result.mod, pl.pipeline(result.text)(program)))
    assert.is_true(run "pipeline+substitution".ratio < 0.6)
  end)

  it("joins other spaces, and is replayed from records", function()
    local database = pl.tune.database()
    local function run(replay)
      return pl.tune.search { mod = mod, base = "SimplifyExpr", space = "pipeline+substitution",
        substitution = { rules = associative }, trials = 12, metrics = { "flops" },
        database = database, replay = replay }
    end
    local first = run()
    assert.equal("faster", first.verdict)
    assert.equal(first.text, run(true).text)
    assert.is_true(pl.equal(first.mod, (pl.tune.apply_best(mod, { database = database,
      space = "pipeline+substitution", metrics = { "flops" } }))))
  end)

  it("has rules of its own that hold", function()
    local rules = require "perilune.tune.search.substitution_rules"
    local w = function(seed) return pl.const(pl.tensor.random({ 32, 16 }, "float32",
      { seed = seed, high = 0.1 })) end
    local x = pl.var("x", "Tensor[(4, 32), float32]")
    local op = pl.op
    local shared = op.nn.matmul(x, w(1))
    local program = pl.module { main = pl.func({ x }, op.add(
      op.multiply(shared, op.nn.matmul(x, w(2))), op.multiply(shared, op.nn.matmul(x, w(3))))) }
    for _, cost in ipairs { "time", "nodes", "flops", "bytes" } do
      local out = pl.passes.EqualitySaturation { rules = rules, cost = cost } (program)
      assert(pl.check(program, out, { rounds = 2, rtol = 1e-3, atol = 1e-3 }))
    end
    local out = pl.passes.EqualitySaturation { rules = rules, cost = "flops" } (program)
    assert.is_true(pl.tune.measure.flops(out) < pl.tune.measure.flops(program) * 0.8)
  end)

  -- Two convolutions of one image; the weights are constants.
  local function convolutions(sizes, attrs)
    local x, results = pl.var("x", "Tensor[(1, 64, 14, 14), float32]"), {}
    for i, size in ipairs(sizes) do
      local w = pl.tensor.random({ 8, 64, size, size }, "float32", { seed = i, high = 0.1 })
      local given = { kernel_size = { size, size }, padding = { size // 2, size // 2, size // 2,
        size // 2 } }
      for name, value in pairs(attrs or {}) do given[name] = value end
      results[i] = pl.op.nn.relu(pl.op.nn.conv2d(x, pl.const(w), given))
    end
    return pl.module { main = pl.func({ x }, pl.tuple(results)) }
  end

  it("merges convolutions of one image, also of 1x1 and 3x3 after it enlarged the first", function()
    local rules = require "perilune.tune.search.substitution_rules"
    local pass = pl.passes.EqualitySaturation { rules = rules, cost = "bytes" }
    for case, program in ipairs { convolutions { 3, 3 }, convolutions { 3, 1 },
      convolutions({ 3, 3 }, { strides = { 2, 2 } }), convolutions({ 3, 3 }, { dilation = { 2, 2 },
        padding = { 2, 2, 2, 2 } }) } do
      local out = pass(program)
      assert.equal(case <= 2 and 1 or 2, pl.list_op_freqs(out)["nn.conv2d"], case)
      assert(pl.check(program, out, { rounds = 2, rtol = 1e-3, atol = 1e-3 }))
    end
  end)

  -- Three steps of eight gates, each of two products, whose calls cost by their weights.
  it("merges the products of all gates of a recurrent network", function()
    local op, n, seed, params = pl.op, 16, 0, {}
    local function product(x)
      seed = seed + 1
      return op.nn.matmul(x, pl.const(pl.tensor.random({ n, n }, "float32",
        { seed = seed, low = -0.1, high = 0.1 })))
    end
    for i = 1, 4 do params[i] = pl.var("x" .. i, ("Tensor[(1, %d), float32]"):format(n)) end
    local state = params[1]
    for i = 2, 4 do
      local step
      for gate = 1, 8 do
        local sum = op.add(product(state), product(params[i]))
        sum = gate % 2 == 0 and op.tanh(sum) or op.sigmoid(sum)
        step = step and op.maximum(step, sum) or sum
      end
      state = step
    end
    local program = pl.module { main = pl.func(params, state) }
    local costs = pl.tune.call_costs { seconds = 0 }
    costs.ask = function(_, question)
      if question.op ~= "nn.matmul" then return 2 end
      local shape = question.types[2].shape
      return 40 + 50 * shape[1] * shape[2] / (n * n)
    end
    local scope <close> = costs:enter()
    local out = pl.passes.EqualitySaturation { cost = "measured", generated_rules = true,
      rules = require "perilune.tune.search.substitution_rules" } (program)
    assert.equal(1, pl.report()[1].counts.saturated)
    assert.equal(48, pl.list_op_freqs(program)["nn.matmul"])
    -- Both products of two gates are one of the state and the input together.
    assert.equal(12, pl.list_op_freqs(out)["nn.matmul"])
    assert(pl.check(program, out, { rounds = 2, rtol = 1e-4, atol = 1e-4 }))
  end)

  it("tells wrong rules before it measures", function()
    local ok, err = pcall(pl.tune.search, { mod = mod, substitution = { rules = { "add(?x" } } })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("expected", 1, true), tostring(err))
  end)
end)
