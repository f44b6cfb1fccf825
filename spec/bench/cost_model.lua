-- How well cost models order what was measured.
--
--     perilune spec/bench/cost_model.lua [SCHEDULES] [SEED] [MODEL.onnx]...
--
-- Schedules of two products of matrices are measured as compiled C; the learned models get half of
-- those of the first, and order the other half, and those of the second product, which they have
-- never seen. The roofline orders the models (by the evaluator's seconds; otherwise models of the
-- zoo, and layers of several sizes).

local pl = require "perilune"
local quality = require "perilune.tune.cost.quality"
local random = require "perilune.tune.random"
local schedule_space = require "perilune.tune.search.schedule_space"

local n_schedules, seed = tonumber(arg[1]) or 60, tonumber(arg[2]) or 1

-- ------------------------------------------------------------------- schedules

local function product(m, n, k)
  local a = pl.te.placeholder({ m, k }, "float32", "A")
  local b = pl.te.placeholder({ k, n }, "float32", "B")
  local axis = pl.te.reduce_axis({ 0, k }, "k")
  local c = pl.te.compute({ m, n }, function(i, j)
    return pl.te.sum(a[{ i, axis.var }] * b[{ axis.var, j }], axis)
  end, "C")
  return pl.module { main = pl.te.create_prim_func { a, b, c } }
end

local builder = pl.tune.builder "c"
local runner = pl.tune.runner { seconds = 20, pairs = 5 }

-- Random schedules with the seconds of a run relative to those of the loops as they are written.
local function measured(program, n)
  local space, rng, list = schedule_space.new(program, true, 1, "bench"), random(seed), {}
  local base = assert(runner:run(assert(builder:build(program)))).min
  local seen = {}
  for _ = 1, 3 * n do
    local point = space:random(rng)
    if #list < n and not seen[point.text] then
      seen[point.text] = true
      local mod = space:apply(program, point)
      local runnable = builder:build(mod)
      local result = runnable and runner:run(runnable)
      if result then
        list[#list + 1] = { mod = mod, base = program, cost = result.min / base }
      end
    end
  end
  return list
end

local function row(name, model, what, samples, begun)
  local q = model:evaluate(samples)
  print(("%-9s %-34s n %3d  rank correlation %5.2f  top-%d recall %.2f  %.2f s"):format(name, what,
    q.n, q.rank_correlation, q.k, q.recall, os.clock() - begun))
end

local function bench_schedules()
  local begun = os.clock()
  local first, second = measured(product(128, 128, 128), n_schedules),
    measured(product(64, 256, 96), n_schedules // 2)
  print(("%d and %d schedules measured in %.1f s of this process"):format(#first, #second,
    os.clock() - begun))
  local half = #first // 2
  local train = table.move(first, 1, half, 1, {})
  local test = table.move(first, half + 1, #first, 1, {})
  for _, kind in ipairs { "ridge", "trees" } do
    begun = os.clock()
    local model = pl.tune.cost_model { kind = kind, samples = train }
    row(kind, model, "other schedules of 128x128x128", test, begun)
    begun = os.clock()
    row(kind, model, "schedules of 64x256x96", second, begun)
  end
end

-- ---------------------------------------------------------------------- models

local function layer(channels, image, window)
  local x = pl.var("x", ("Tensor[(1, %d, %d, %d), float32]"):format(channels, image, image))
  local w = pl.tensor.random({ channels, channels, window, window }, "float32")
  local p = window // 2
  local conv = pl.op.nn.conv(x, pl.const(w), { pads = { p, p, p, p } })
  return pl.module { main = pl.func({ x }, pl.op.nn.relu(conv)) }
end

local function chain(n, length)
  local x = pl.var("x", ("Tensor[(%d, %d), float32]"):format(n, n))
  local y = x
  for _ = 1, length do y = pl.op.tanh(pl.op.add(y, x)) end
  return pl.module { main = pl.func({ x }, y) }
end

local function programs()
  local list = {}
  for i = 3, #arg do list[#list + 1] = pl.pipelines.default(assert(pl.load(arg[i]))) end
  if #list > 0 then return list end
  for _, row_ in ipairs { { 16, 56, 3 }, { 64, 56, 1 }, { 64, 28, 3 }, { 128, 28, 3 },
    { 256, 14, 1 }, { 256, 14, 3 }, { 512, 7, 3 } } do
    list[#list + 1] = layer(table.unpack(row_))
  end
  for _, row_ in ipairs { { 64, 10 }, { 256, 4 }, { 512, 10 }, { 1024, 3 } } do
    list[#list + 1] = chain(table.unpack(row_))
  end
  return list
end

local function bench_roofline()
  local limits = require "perilune.tune.cost.machine".limits()
  print(("this machine: %.1f GFLOP/s, %.1f GB/s, %.2f us a call"):format(limits.flops / 1e9,
    limits.bandwidth / 1e9, limits.overhead * 1e6))
  local model, predicted, seconds = pl.tune.cost_model "roofline", {}, {}
  local evaluator = pl.tune.builder "evaluator"
  for i, mod in ipairs(programs()) do
    predicted[i] = model:predict(mod)
    seconds[i] = assert(runner:run(assert(evaluator:build(mod)))).min
    print(("  predicted %9.1f us, measured %9.1f us"):format(predicted[i] * 1e6, seconds[i] * 1e6))
  end
  print(("%-9s %-34s n %3d  rank correlation %5.2f  top-3 recall %.2f"):format("roofline",
    "programs of operators", #seconds, quality.rank_correlation(predicted, seconds),
    quality.recall(predicted, seconds, 3)))
end

bench_roofline()
bench_schedules()
