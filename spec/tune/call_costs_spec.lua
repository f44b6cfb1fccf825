-- Costs of calls by measuring, and what is decided by them.

local pl = require "perilune"

local op = pl.op

-- A runner that tells what the spec says; it counts what it measures.
local function runner_of(seconds)
  local runner = pl.tune.runner()
  runner.n = 0
  runner.run = function(self, runnable)
    self.n = self.n + 1
    return { min = seconds(runnable.mod) }
  end
  return runner
end

local function weights(seed, ...)
  return pl.const(pl.tensor.random({ ... }, "float32", { seed = seed, high = 0.1 }))
end

-- Two products of one operand.
local function products()
  local x = pl.var("x", "Tensor[(4, 32), float32]")
  local function product(seed) return op.nn.matmul(x, weights(seed, 32, 8)) end
  return pl.module { main = pl.func({ x }, pl.tuple { op.nn.relu(product(1)),
    op.tanh(product(2)) }) }
end

-- A call of that operator takes so much, and others 1 us.
local function takes(name, seconds)
  return function(mod)
    local body = mod.main.body
    return body.kind == "Call" and body.op.name == name and seconds or 1e-6
  end
end

local function saturate(mod)
  return pl.passes.EqualitySaturation { cost = "measured",
    rules = require "perilune.tune.search.substitution_rules" } (mod)
end

describe("pl.tune.call_costs", function()
  it("measures each distinct call once, and none of a second run", function()
    local runner, database = runner_of(takes("nn.matmul", 1e-3)), pl.tune.database()
    local costs = pl.tune.call_costs { runner = runner, database = database }
    local sum = costs:of_module(products())
    assert.is_true(sum > 1.9e-3 and sum < 2.1e-3, tostring(sum))
    -- A product, relu, tanh, and the chains that tell the overhead.
    assert.equal(5, runner.n)
    assert.same({ measured = 5, recorded = 0, failed = 0, unmeasured = 0 }, costs.count)
    local again = pl.tune.call_costs { runner = runner, database = database, seconds = 0 }
    assert.equal(sum, again:of_module(products()))
    assert.same({ measured = 0, recorded = 5, failed = 0, unmeasured = 0 }, again.count)
    assert.equal(5, runner.n)
  end)

  it("decides what EqualitySaturation takes, the same from records", function()
    local database, mod = pl.tune.database(), products()
    local function run(seconds, limit)
      local costs = pl.tune.call_costs { runner = runner_of(seconds), database = database,
        seconds = limit }
      local scope <close> = costs:enter()
      return saturate(mod), costs
    end
    local merged = run(takes("nn.matmul", 1e-3))
    assert.equal(1, pl.list_op_freqs(merged)["nn.matmul"])
    assert(pl.check(mod, merged, { rounds = 1, rtol = 1e-4, atol = 1e-4 }))
    local replayed, costs = run(function() error "measured" end, 0)
    assert.equal(tostring(merged), tostring(replayed))
    assert.equal(0, costs.count.unmeasured)
    database = pl.tune.database()
    assert.equal(mod, (run(takes("split", 1))))
  end)

  it("takes weights that are put together for constants", function()
    local seen = {}
    local runner = runner_of(function(checked)
      for node in checked.main:nodes() do
        if node.kind == "Call" then seen[node.op.name] = #checked.main.params end
      end
      return 1e-6
    end)
    local scope <close> = pl.tune.call_costs { runner = runner }:enter()
    saturate(products())
    assert.equal(1, seen["nn.matmul"])
    assert.is_nil(seen.concatenate)
  end)

  it("measures calls of tuples, whose bytes count", function()
    local x = pl.var("x", "Tensor[(2, 6), float32]")
    local mod = pl.module { main = pl.func({ x }, op.concatenate(pl.tuple { x, op.nn.relu(x) },
      { axis = 0 })) }
    local costs = pl.tune.call_costs { runner = runner_of(takes("concatenate", 1)) }
    assert.is_true(costs:of_module(mod) > 0.9)
    local machine = { flops = 1e30, bandwidth = 1, overhead = 0 }
    local roofline = require "perilune.tune.cost.roofline"
    assert.equal(2 * 48 + 96 + 96, roofline.seconds(mod, machine))
  end)

  it("returns one element of a large result, but of no compiled call", function()
    local x = pl.var("x", "Tensor[(1, 64, 32, 32), float32]")
    local sizes = pl.const(pl.tensor({ 16, 48 }, "int64"))
    for kind, small in pairs { evaluator = true, c = false } do
      local builder, types = pl.tune.builder(kind), {}
      builder.build = function(_, mod) return { mod = mod } end
      local costs = pl.tune.call_costs { builder = builder, runner = runner_of(function(one)
        types[#types + 1] = tostring(one.main.body.type)
        return 1e-6
      end) }
      local y = op.split(x, sizes, { axis = 1, n_results = 2 })
      costs:of_module(pl.module { main = pl.func({ x }, y) })
      costs:of_module(pl.module { main = pl.func({ x }, op.nn.relu(x)) })
      local one = "Tensor[(1, 1, 1, 1), float32]"
      assert.equal(small and one or "(Tensor[(1, 16, 32, 32), float32], "
        .. "Tensor[(1, 48, 32, 32), float32])", types[1])
      assert.equal(small and one or "Tensor[(1, 64, 32, 32), float32]", types[4])
    end
  end)

  it("measures a call that reads weights above all with several of them", function()
    local function seconds_of_one(rows)
      local n, x = nil, pl.var("x", ("Tensor[(%d, 512), float32]"):format(rows))
      local mod = pl.module { main = pl.func({ x }, op.nn.matmul(x, weights(1, 512, 512))) }
      local costs = pl.tune.call_costs { runner = runner_of(function(one)
        n = n or pl.list_op_freqs(one)["nn.matmul"]
        return pl.list_op_freqs(one)["nn.matmul"] and 1 or 0
      end) }
      return costs:of_module(mod), n
    end
    local seconds, n = seconds_of_one(1)
    assert.equal(64, n)
    assert.equal(1 / 64, seconds)
    seconds, n = seconds_of_one(512)
    assert.equal(1, n)
    assert.equal(1, seconds)
  end)

  it("asks for no call that takes longer than the program, but of constants", function()
    -- A product of weights is larger than what the program does, and is free.
    local x, seen = pl.var("x", "Tensor[(1, 64), float32]"), {}
    local y = op.nn.matmul(op.nn.matmul(x, weights(1, 64, 256)), weights(2, 256, 64))
    local mod = pl.module { main = pl.func({ x }, y) }
    local scope <close> = pl.tune.call_costs { runner = runner_of(function(one)
      for _, param in ipairs(one.main.params) do seen[#seen + 1] = tostring(param.type) end
      return takes("nn.matmul", 2e-6)(one)
    end) }:enter()
    local out = saturate(mod)
    assert.equal(1, pl.list_op_freqs(pl.passes.FoldConstant { fold = "all" } (out))["nn.matmul"])
    for _, type_ in ipairs(seen) do assert.is_nil(type_:find "256, 64") end
  end)

  it("estimates what cannot be measured", function()
    local x = pl.var("x", "Tensor[(N, 8), float32]")
    local mod = pl.module { main = pl.func({ x }, op.nn.relu(x)) }
    local costs = pl.tune.call_costs { runner = runner_of(function() return 1 end) }
    assert.is_true(costs:of_module(mod) < 1e-5)
    local spent = pl.tune.call_costs { seconds = 0 }
    assert.is_true(spent:of_module(products()) < 1e-4)
    assert.is_true(spent.count.unmeasured > 0)
  end)

  it("serves backtracking search", function()
    local mod = products()
    local costs = pl.tune.call_costs { runner = runner_of(takes("nn.matmul", 1e-3)) }
    local result = pl.tune.backtracking_search { mod = mod, cost = costs, budget = 40,
      generated_rules = false, rules = require "perilune.tune.search.substitution_rules" }
    assert.equal(1, pl.list_op_freqs(result.mod)["nn.matmul"])
    assert.is_true(result.cost < 0.6 * result.base_cost)
  end)

  it("measures by the evaluator, and takes operands that are shapes by their values", function()
    local x = pl.var("x", "Tensor[(200, 600), float32]") -- far longer than what is subtracted
    local sizes = pl.const(pl.tensor({ 200, 400 }, "int64"))
    local mod = pl.module { main = pl.func({ x }, op.split(x, sizes, { axis = 1, n_results = 2 })) }
    local costs = pl.tune.call_costs()
    assert.is_true(costs:of_module(mod) > 0)
    assert.equal(0, costs.count.failed)
    assert.is_true(costs:overhead().call + costs:overhead().run > 0)
  end)

  it("is what a search starts with, beside the estimates", function()
    local database, mod = pl.tune.database(), products()
    local options = { mod = mod, base = "SimplifyExpr", space = "substitution", trials = 3,
      strategy = "random", database = database, runner = pl.tune.runner { pairs = 6 },
      substitution = { costs = { "measured" }, generated_rules = false } }
    local result = pl.tune.search(options)
    assert.is_true(#result.list > 0)
    assert.matches('cost="measured"', result.list[1].text)
    options.replay = true
    assert.equal(result.text, pl.tune.search(options).text)
  end)

  it("says what is wrong", function()
    local function fails(message, f, ...)
      local ok, err = pcall(f, ...)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(message, 1, true), tostring(err))
    end
    fails("one of 'evaluator' or 'c'", pl.tune.call_costs, { builder = "c" })
    fails("seconds: a number", pl.tune.call_costs, { seconds = -1 })
    fails("database", pl.tune.call_costs, { database = 3 })
    fails("a module expected", pl.tune.call_costs().of_module, pl.tune.call_costs(), 3)
    fails("pl.tune.call_costs", saturate, products())
    fails("there is no cost 'mesured'", pl.tune.space.substitution, { costs = { "mesured" } })
    fails("the list is empty", pl.tune.space.substitution, { costs = {} })
    fails("cost 'measured': a search for time", pl.tune.search, { mod = products(),
      metrics = { "flops" }, substitution = { costs = { "measured" } } })
  end)
end)
