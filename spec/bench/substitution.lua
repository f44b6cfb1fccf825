-- What graph substitution gains on the benchmarks of TASO and Tensat, under the analytic cost
-- model.
--
--     perilune spec/bench/substitution.lua [SECONDS [tune | measured [MODEL]]]
--
-- Blocks of the models, built by hand with random weights as ONNX's operators. `before`, `e-graph`
-- and `search` are the estimates of the roofline in microseconds, of the default pipeline's result,
-- without and with EqualitySaturation (e-graph) or pl.tune.backtracking_search (alpha 1.05), with
-- all rules, before it. The last columns are the speed-ups in per cent that TASO and Tensat quote
-- for the whole models on a GPU. With 'tune' the search of the space of substitutions measures
-- with the evaluator for so many seconds, and what it finds over the default pipeline is printed.
-- With 'measured' the e-graph's costs are what calls take (pl.tune.call_costs), and the result as a
-- whole is compared with that of the default pipeline alone.

local pl = require "perilune"

local clock = require "perilune.core".clock
local op = pl.op
local limit = tonumber(arg[1]) or 20
local seed = 0

local function weights(...)
  seed = seed + 1
  return pl.const(pl.tensor.random({ ... }, "float32", { seed = seed, low = -0.1, high = 0.1 }))
end

local function image(name, c, n)
  return pl.var(name or "x", ("Tensor[(1, %d, %d, %d), float32]"):format(c, n, n))
end

local function channels(x) return x.type.shape[2] end

local function conv(x, out, k, options)
  options = options or {}
  local groups, pad = options.group or 1, (k - 1) // 2
  return op.nn.conv(x, weights(out, channels(x) // groups, k, k), { kernel_shape = { k, k },
    pads = { pad, pad, pad, pad }, group = groups, strides = options.strides })
end

local function conv_relu(x, out, k, options) return op.nn.relu(conv(x, out, k, options)) end

local function pool(x, kind)
  return op.nn[kind](x, { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 }, strides = { 1, 1 } })
end

local function module(params, body) return pl.module { main = pl.func(params, body) } end

local models = {}

-- Attention and the two dense layers behind it, of 64 tokens.
local function bert_layer(x, hidden)
  local function projected() return op.nn.matmul(x, weights(hidden, hidden)) end
  local q, k, v = projected(), projected(), projected()
  local scores = op.nn.softmax(op.nn.matmul(q, op.transpose(k, { axes = { 1, 0 } })), { axis = -1 })
  local attended = op.add(x, op.nn.matmul(op.nn.matmul(scores, v), weights(hidden, hidden)))
  local inner = op.nn.relu(op.nn.matmul(attended, weights(hidden, 4 * hidden)))
  return op.add(attended, op.nn.matmul(inner, weights(4 * hidden, hidden)))
end

-- Eight layers of 1024, as TASO's bert.
function models.bert()
  local hidden, tokens, layers = 1024, 64, 8
  local x = pl.var("x", ("Tensor[(%d, %d), float32]"):format(tokens, hidden))
  local y = x
  for _ = 1, layers do y = bert_layer(y, hidden) end
  return module({ x }, y)
end

-- TASO's nasrnn: five steps of eight gates of the state and an input, each with weights of its own.
local function nas_step(state, x, n)
  local gates = {}
  for i = 1, 8 do
    gates[i] = op.add(op.nn.matmul(state, weights(n, n)), op.nn.matmul(x, weights(n, n)))
  end
  local function gate(i, f) return f(gates[i]) end
  local a = op.multiply(gate(1, op.nn.relu), gate(4, op.sigmoid))
  local b = op.add(gate(2, op.sigmoid), gate(3, op.tanh))
  local c = op.multiply(gate(5, op.tanh), gate(6, op.sigmoid))
  local d = op.multiply(gate(7, op.sigmoid), gate(8, op.nn.relu))
  return op.tanh(op.multiply(op.tanh(op.add(a, b)), op.tanh(op.multiply(c, d))))
end

function models.nasrnn()
  local n, steps, params = 512, 5, {}
  for i = 0, steps do params[i + 1] = pl.var("x" .. i, ("Tensor[(1, %d), float32]"):format(n)) end
  local state = params[1]
  for i = 1, steps do state = nas_step(state, params[i + 1], n) end
  return module(params, state)
end

-- A normal cell: separable convolutions and pools of two images, joined by sums.
function models.nasnet()
  local a, b = image("a", 32, 28), image("b", 32, 28)
  local function separable(x, k)
    return conv(conv(op.nn.relu(x), channels(x), k, { group = channels(x) }), channels(x), 1)
  end
  local parts = { op.add(separable(a, 3), a), op.add(separable(b, 3), separable(a, 5)),
    op.add(pool(a, "avg_pool"), b), op.add(pool(b, "avg_pool"), pool(b, "avg_pool")),
    op.add(separable(b, 5), separable(b, 3)) }
  return module({ a, b }, op.concatenate(parts, { axis = 1 }))
end

function models.resnext50()
  local x = image("x", 256, 28)
  local inner = conv_relu(conv_relu(x, 128, 1), 128, 3, { group = 32 })
  return module({ x }, op.nn.relu(op.add(conv(inner, 256, 1), x)))
end

function models.inception()
  local x = image("x", 192, 28)
  local double = conv_relu(conv_relu(conv_relu(x, 64, 1), 96, 3), 96, 3)
  local parts = { conv_relu(x, 64, 1), conv_relu(conv_relu(x, 48, 1), 64, 5), double,
    conv_relu(pool(x, "avg_pool"), 32, 1) }
  return module({ x }, op.concatenate(parts, { axis = 1 }))
end

function models.squeezenet()
  local input = image("x", 128, 28)
  local x = input
  for _, n in ipairs { 16, 32 } do
    local squeezed = conv_relu(x, n, 1)
    x = op.concatenate({ conv_relu(squeezed, 4 * n, 1), conv_relu(squeezed, 4 * n, 3) },
      { axis = 1 })
  end
  return module({ input }, x)
end

function models.vgg()
  local x = image("x", 64, 28)
  return module({ x }, conv_relu(conv_relu(conv_relu(x, 128, 3), 128, 3), 128, 3))
end

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

local function saturated(mod)
  local pass = pl.passes.EqualitySaturation { rules = rules, cost = "time", generated_rules = true,
    time_limit = limit, node_limit = 20000 }
  local begun = os.clock()
  local out = pass(mod)
  return finished(out), os.clock() - begun
end

local function searched(mod)
  local begun = os.clock()
  local result = pl.tune.backtracking_search { mod = mod, cost = cost, alpha = 1.05, budget = 200,
    seconds = limit }
  return finished(result.mod), os.clock() - begun
end

local function tuned(name)
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

-- The first report of the pass, and what it made.
local function saturated_by_calls(mod, costs)
  local pass = pl.passes.EqualitySaturation { rules = rules, cost = "measured",
    generated_rules = true, time_limit = limit, node_limit = 5000 }
  local scope <close> = costs:enter()
  local begun = clock()
  local out = pass(mod)
  return out, pl.report()[1].counts or {}, clock() - begun
end

local function by_calls(row)
  local builder, runner = pl.tune.builder(), pl.tune.runner { pairs = 80, comparison_seconds = 20 }
  local costs = pl.tune.call_costs { builder = builder, seconds = limit }
  local mod = pl.passes.FoldConstant { fold = "all" } (models[row[1]]())
  local out, counts, seconds = saturated_by_calls(mod, costs)
  local before, after = costs:of_module(mod), costs:of_module(out)
  local result = assert(runner:compare(builder:build(finished(out)), builder:build(finished(mod))))
  assert(pl.check(mod, out, { rounds = 1, rtol = 1e-3, atol = 1e-3 }))
  print(("%-11s %7d %7d %6d %7.1f %9.1f %9.1f %7.1f %9.1f %9s %6.2f"):format(row[1],
    counts["e-nodes"] or 0, counts["e-classes"] or 0, costs.count.measured, seconds, 1e6 * before,
    1e6 * after, percent(before, after), 100 * (1 / result.ratio - 1), result.verdict,
    100 * result.confidence))
  io.stdout:flush()
end

if arg[2] == "measured" then
  print(("%-11s %7s %7s %6s %7s %9s %9s %7s %9s %9s %6s"):format("model", "e-nodes", "classes",
    "calls", "s", "before us", "after us", "gain %", "measured %", "verdict", "conf."))
  for _, row in ipairs(rows) do
    if not arg[3] or arg[3] == row[1] then by_calls(row) end
  end
  return
end

if arg[2] == "tune" then
  for _, row in ipairs(rows) do tuned(row[1]) end
  return
end

print(("%-11s %9s %9s %7s %7s %9s %7s %7s  %6s %6s"):format("model", "before", "e-graph", "gain %",
  "s", "search", "gain %", "s", "TASO", "Tensat"))
for _, row in ipairs(rows) do
  local mod = models[row[1]]()
  local graph, graph_seconds = saturated(mod)
  local best, seconds = searched(mod)
  assert(pl.check(mod, graph, { rounds = 1, rtol = 1e-3, atol = 1e-3 }))
  assert(pl.check(mod, best, { rounds = 1, rtol = 1e-3, atol = 1e-3 }))
  local before, a, b = estimate(finished(mod)), estimate(graph), estimate(best)
  print(("%-11s %9.2f %9.2f %7.1f %7.2f %9.2f %7.1f %7.2f  %6.1f %6.1f"):format(row[1],
    1e6 * before, 1e6 * a, percent(before, a), graph_seconds, 1e6 * b, percent(before, b), seconds,
    row[2], row[3]))
  io.stdout:flush()
end
