-- Cost models: what they see of programs, what they learn, and how their predictions are used.

local boosted_trees = require "perilune.tune.cost.boosted_trees"
local pl = require "perilune"
local quality = require "perilune.tune.cost.quality"
local random = require "perilune.tune.random"
local ridge = require "perilune.tune.cost.ridge"
local tune = pl.tune

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

local function near(a, b, tolerance)
  assert.is_true(math.abs(a - b) <= (tolerance or 1e-9) * math.max(1, math.abs(b)),
    ("%s is not near %s"):format(a, b))
end

-- Rows of random features, and a target of each.
local function rows_of(n, columns, f, seed)
  local rng, rows, targets = random(seed), {}, {}
  for i = 1, n do
    rows[i] = {}
    for k = 1, columns do rows[i][k] = 10 * rng:number() end
    targets[i] = f(rows[i])
  end
  return rows, targets
end

local function predictions(model, rows)
  local list = {}
  for i, row in ipairs(rows) do list[i] = model:predict(row) end
  return list
end

describe("ridge regression", function()
  it("finds a linear function, and ignores features that do not vary", function()
    local function f(row) return 3 * row[1] - 2 * row[2] + 5 end
    local rows, targets = rows_of(200, 4, f, 1)
    for _, row in ipairs(rows) do row[4] = 7 end
    local model = ridge.fit(rows, targets)
    assert.equal(0, model.scales[4])
    local others, wanted = rows_of(50, 4, f, 2)
    for i, x in ipairs(predictions(model, others)) do
      assert.is_true(math.abs(x - wanted[i]) < 0.5, x .. " " .. wanted[i])
    end
  end)
end)

describe("boosted trees", function()
  -- A step and a product, which no linear function has.
  local function f(row) return (row[1] < 5 and 0 or 20) + row[2] * row[3] / 4 end

  it("find what a linear function cannot", function()
    local rows, targets = rows_of(300, 5, f, 3)
    local others, wanted = rows_of(100, 5, f, 4)
    local trees = quality.rank_correlation(predictions(boosted_trees.fit(rows, targets), others),
      wanted)
    local linear = quality.rank_correlation(predictions(ridge.fit(rows, targets), others), wanted)
    assert.is_true(trees > 0.95, tostring(trees))
    assert.is_true(trees > linear, tostring(linear))
  end)

  it("are the same for the same samples, and give the mean where nothing varies", function()
    local rows, targets = rows_of(60, 3, f, 5)
    assert.same(predictions(boosted_trees.fit(rows, targets), rows),
      predictions(boosted_trees.fit(rows, targets), rows))
    local flat = boosted_trees.fit({ { 1 }, { 1 }, { 1 } }, { 2, 4, 6 })
    near(flat:predict { 1 }, 4)
  end)
end)

describe("the quality of predictions", function()
  it("is Spearman's correlation and the recall of the best", function()
    near(quality.rank_correlation({ 1, 2, 3, 4 }, { 10, 20, 30, 40 }), 1)
    near(quality.rank_correlation({ 1, 2, 3, 4 }, { 9, 7, 5, 1 }), -1)
    near(quality.rank_correlation({ 1, 2, 3, 4 }, { 1, 3, 2, 4 }), 0.8)
    -- Ties have their mean rank: 1.5 and 1.5.
    near(quality.rank_correlation({ 1, 1, 2 }, { 1, 2, 3 }), 1.5 / math.sqrt(1.5 * 2))
    assert.equal(0, quality.rank_correlation({ 1, 1 }, { 1, 2 }))
    assert.equal(0.5, quality.recall({ 1, 9, 2, 8 }, { 1, 2, 8, 9 }, 2))
    assert.equal(1, quality.recall({ 1, 2 }, { 1, 2 }, 5))
  end)
end)

local function chain(n, length)
  local x = pl.var("x", ("Tensor[(%d, %d), float32]"):format(n, n))
  local y = x
  for _ = 1, length do y = pl.op.add(y, x) end
  return pl.module { main = pl.func({ x }, y) }
end

local function dense(n, k)
  local x = pl.var("x", ("Tensor[(%d, %d), float32]"):format(n, k))
  local w = pl.var("w", ("Tensor[(%d, %d), float32]"):format(n, k))
  return pl.module { main = pl.func({ x, w }, pl.op.nn.dense(x, w)) }
end

describe("a roofline", function()
  local machine = { flops = 1e9, bandwidth = 1e9, overhead = 1e-6 }
  local model = tune.cost_model { kind = "roofline", machine = machine }

  it("takes the longer of computing and moving", function()
    -- 12 bytes for each operation; two operations for each product.
    near(model:predict(chain(64, 1)), 1e-6 + 12 * 64 * 64 / 1e9)
    near(model:predict(chain(64, 3)), 3 * (1e-6 + 12 * 64 * 64 / 1e9))
    near(model:predict(dense(32, 128)), 1e-6 + 2 * 32 * 32 * 128 / 1e9)
  end)

  it("measures the machine unless it is told", function()
    local seconds = tune.cost_model "roofline":predict(dense(64, 64))
    assert.is_true(seconds > 1e-7 and seconds < 1e-2, tostring(seconds))
  end)

  it("is refused where it knows nothing", function()
    local x = pl.var("x", "Tensor[(?), float32]")
    local open = pl.module { main = pl.func({ x }, pl.op.tanh(x)) }
    assert.matches("the cost of tanh is not known", message(model.predict, model, open))
    assert.matches("a roofline learns nothing", message(model.update, model, {}))
    assert.matches("machine: flops", message(tune.cost_model, { kind = "roofline",
      machine = { flops = 0, bandwidth = 1, overhead = 0 } }))
  end)
end)

describe("a learned cost model", function()
  local function samples(sizes)
    local list = {}
    for _, n in ipairs(sizes) do
      for length = 1, 3 do
        list[#list + 1] = { mod = chain(n, length), cost = n * n * length * 1e-9 }
      end
    end
    return list
  end

  for _, kind in ipairs { "ridge", "trees" } do
    it("orders programs that it has not seen: " .. kind, function()
      local model = tune.cost_model { kind = kind, samples = samples { 8, 16, 32, 64, 128, 256 } }
      local q = model:evaluate(samples { 12, 48, 200 }, 4)
      assert.is_true(q.rank_correlation > 0.8, tostring(q.rank_correlation))
      assert.is_true(q.recall >= 0.5)
      assert.equal(9, q.n)
      assert.equal(4, q.k)
    end)
  end

  it("sets the perf of candidates that were not measured", function()
    local model = tune.cost_model { samples = samples { 8, 32, 128 } }
    local list = { tune.trace(chain(128, 3)), tune.trace(chain(8, 1)), tune.trace(chain(32, 1)) }
    list[3]:set_perf(1)
    tune.query_cost_model(list, { model = model })
    assert.is_true(list[2].perf < list[1].perf)
    assert.equal(1, list[3].perf)
    assert.equal(list[2], tune.select_best_candidate(list))
  end)

  it("sees what differs from a base", function()
    local list = {}
    for length = 1, 8 do
      list[length] = { mod = chain(64, length), base = chain(64, 4), cost = length / 4 }
    end
    local model = tune.cost_model { kind = "ridge", samples = list }
    -- Of another size: as many times the base.
    near(model:predict(chain(64, 6), chain(64, 4)), 1.5, 0.2)
    near(model:predict(chain(32, 6), chain(32, 4)), 1.5, 0.2)
  end)

  it("says what it cannot learn from", function()
    local model = tune.cost_model {}
    assert.matches("0 samples, and 4 are needed", message(model.predict, model, chain(4, 1)))
    assert.matches("cost is a positive number", message(model.update, model, { { mod = chain(4, 1),
      cost = 0 } }))
    assert.matches("a sample's mod: a module expected", message(model.update, model,
      { { cost = 1 } }))
    assert.matches("did you mean 'trees'", message(tune.cost_model, "tree"))
    assert.matches("model: what pl.tune.cost_model makes", message(tune.query_cost_model, {},
      { model = {} }))
    assert.matches("candidate 1 is a number", message(tune.query_cost_model, { 1 },
      { model = model }))
  end)
end)

-- ------------------------------------------------------------- the loop level

local function product(n)
  local a = pl.te.placeholder({ n, n }, "float32", "A")
  local b = pl.te.placeholder({ n, n }, "float32", "B")
  local k = pl.te.reduce_axis({ 0, n }, "k")
  local c = pl.te.compute({ n, n }, function(i, j)
    return pl.te.sum(a[{ i, k.var }] * b[{ k.var, j }], k)
  end, "C")
  return pl.module { main = pl.te.create_prim_func { a, b, c } }
end

-- In the order of perilune.tune.cost.program_features.
local FLOAT, INTEGER, STORES, VECTOR, LANES, DEPTH, LOOPS = 1, 2, 3, 4, 5, 11, 13
local NONE, UNIT, FAR = 17, 18, 19

local function count(x) return math.floor(2 ^ x - 1 + 0.5) end

describe("the features of a loop program", function()
  it("count what it computes and how it walks over memory", function()
    local f = tune.features(product(16))
    local n = 16 ^ 3
    assert.equal(2 * n, count(f[FLOAT])) -- a product and a sum
    assert.equal(2 * n, count(f[STORES])) -- the first one sets the element to 0
    assert.equal(0, count(f[VECTOR]))
    assert.equal(3, count(f[DEPTH]))
    assert.equal(3, count(f[LOOPS]))
    -- C is read and twice written in place, A is read along a row, B along a column.
    assert.equal(3 * n, count(f[NONE]))
    assert.equal(n, count(f[UNIT]))
    assert.equal(n, count(f[FAR]))
    assert.is_true(count(f[INTEGER]) >= 0)
  end)

  it("see vectors and unrolled loops", function()
    local sch = pl.tir.Schedule(product(16))
    local block = sch:get_block "C"
    local loops = sch:get_loops(block)
    sch:reorder(loops[1], loops[3], loops[2])
    sch:vectorize(sch:split(loops[2], { -1, 8, n = 2 })[2])
    sch:decompose_reduction(block, loops[3])
    local f = tune.features(sch.mod)
    assert.equal(16 ^ 3 * 2, count(f[FLOAT]))
    assert.equal((16 ^ 3 + 16 ^ 2) / 8, count(f[VECTOR]))
    assert.equal(16 ^ 3 + 16 ^ 2, count(f[LANES]))
    assert.is_true(count(f[FAR]) == 0)
    assert.equal(#tune.features(product(4)), #f)
  end)

  it("are of one level", function()
    local model = tune.cost_model {}
    model:update { { mod = chain(4, 1), cost = 1 } }
    assert.matches("all of operators or all of the loop level", message(model.update, model,
      { { mod = product(4), cost = 1 } }))
    assert.matches("a program of the same level", message(model.update, model,
      { { mod = product(4), cost = 1, base = chain(4, 1) } }))
  end)
end)

describe("pl.tune.predict", function()
  -- What counts here are the stores that are not of vectors.
  local function cost(mod)
    local f = tune.features(mod)
    return 1 + count(f[STORES]) - count(f[VECTOR])
  end

  local function search(db, n)
    return tune.search { mod = product(n), schedule = true, strategy = "random", trials = 16,
      metrics = { { cost, name = "stores" } }, database = db, runner = tune.runner { rounds = 1 } }
  end

  for _, place in ipairs { "memory", "file" } do
    it("learns from the records of the nearest workload, in " .. place, function()
      local path = place == "file" and os.tmpname() or nil
      do
        local db <close> = tune.database { path = path }
        search(db, 8)
        local result = search(db, 32)
        local base = product(24)
        local model, about = tune.cost_model_of_records { base = product(32), database = db }
        assert.equal(0, about.distance)
        assert.is_true(about.samples >= 8, tostring(about.samples))
        assert.is_true(model:predict(result.mod, product(32)) < 0.5)
        local _, other = tune.predict(base, { base = base, database = db })
        assert.is_true(other.distance > 0 and other.distance < 5)
        assert.matches("has no such records", message(tune.predict, base, { base = base,
          database = db, target = "none" }))
        assert.matches("knobs have no functions", message(tune.predict, base, { base = base,
          database = db, space = "knobs" }))
      end
      if path then os.execute(("rm -f %s %s-wal %s-shm"):format(path, path, path)) end
    end)
  end
end)
