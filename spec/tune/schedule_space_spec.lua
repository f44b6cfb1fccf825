-- Schedules as a space of search: what is found computes the same, is made again from its trace,
-- and is recorded.

local pl = require "perilune"
local tune = pl.tune

local matmul = [[
@T.prim_func
def main(A: T.Buffer((%d, %d), "float32"), B: T.Buffer((%d, %d), "float32"),
         C: T.Buffer((%d, %d), "float32")):
    for i, j, k in T.grid(%d, %d, %d):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
]]

local function product(m, n, k)
  return assert(pl.tir.parse(matmul:format(m, k, k, n, m, n, m, n, k)))
end

local function of_tensors(...)
  return pl.module { main = pl.te.create_prim_func { ... } }
end

local c, quick = tune.builder "c", tune.runner { rounds = 1, pairs = 20 }

local function search(options)
  local spec = { schedule = true, builder = c, runner = quick, trials = 12, seed = 5 }
  for name, value in pairs(options) do spec[name] = value end
  return tune.search(spec)
end

describe("a search of schedules", function()
  it("makes a product of matrices several times as fast", function()
    local mod = product(128, 128, 128)
    local result = search { mod = mod }
    assert.equal("faster", result.verdict, result.reason)
    assert.is_true(result.ratio < 0.4, tostring(result.ratio))
    assert.is_true(result.confidence > 0.99)
    assert.is_true(pl.tir.check(mod, result.mod))
    local again = pl.tir.Schedule(mod):apply_json(result.text)
    assert.is_true(pl.equal(again.mod, result.mod))
    assert.equal(tostring(again.trace), tostring(result.trace))
    assert(tostring(result.trace):find("sample_perfect_tile", 1, true))
  end)

  it("records, goes on from records and replays them", function()
    local mod, db = product(32, 64, 16), tune.database()
    local first = search { mod = mod, database = db, trials = 6 }
    assert.equal(0, first.cached)
    local second = search { mod = mod, database = db, trials = 6 }
    assert.equal(0, second.measured)
    local replayed = search { mod = mod, database = db, trials = 6, replay = true }
    assert.equal(first.text, replayed.text)
    assert.is_true(pl.equal(first.mod, replayed.mod))
    local best = tune.apply_best(mod, { database = db, builder = c, runner = quick,
      space = "schedule" })
    assert.equal("faster", first.verdict, first.reason)
    assert.is_true(pl.equal(first.mod, best))
    assert.is_nil(tune.apply_best(mod, { database = db, builder = c }))
  end)

  it("takes a function that schedules", function()
    local mod, widths = product(16, 64, 16), {}
    local result = search { mod = mod, trials = 3, strategy = "random",
      schedule = function(sch, info)
        local block = sch:get_block("C", info.func_name)
        local loops = sch:get_loops(block)
        local lanes = sch:sample_categorical({ 4, 8, 16 }, { 0.3, 0.3, 0.4 })
        widths[sch:get(lanes)] = true
        sch:vectorize(sch:split(loops[2], { -1, lanes, n = 2 })[2])
      end }
    assert.equal(0, result.failed, result.list[1] and result.list[1].failure)
    assert.equal("exhausted", result.state == "done" and "exhausted" or result.state)
    assert.is_true(next(widths) ~= nil)
    local function broken() error "no such loop" end
    assert.error_matches(function() search { mod = mod, schedule = broken } end, "no such loop")
    assert.error_matches(function() search { mod = mod, schedule = function() end } end,
      "it decides nothing")
    assert.error_matches(function() search { mod = mod, schedule = 3 } end, "schedule")
    assert.error_matches(function() search { mod = mod, knobs = {} } end, "the list is empty")
    local x = pl.var("x", "Tensor[(4), float32]")
    assert.error_matches(function() search { mod = pl.module { main = pl.func({ x }, x) } } end,
      "a program of PrimFuncs expected")
  end)
end)

describe("the space of a schedule", function()
  local schedule_space = require "perilune.tune.search.schedule_space"

  -- Alternatives of the second decision depend on the first one.
  local function rule(sch)
    local loops = sch:get_loops(sch:get_block "C")
    local width = sch:sample_categorical({ 2, 8 }, { 0.5, 0.5 })
    local outer = sch:split(loops[1], { -1, width, n = 2 })[1]
    sch:split(outer, { n = 2, table.unpack(sch:sample_perfect_tile(outer, 2, 4)) })
  end

  local function decisions(point)
    return ("%d %d"):format(point.decisions[1], point.decisions[2][2])
  end

  it("is enumerated, each point once", function()
    local space, seen = schedule_space.new(product(16, 16, 16), rule, 1, "spec"), {}
    for point in space:points() do seen[#seen + 1] = decisions(point) end
    assert.same({ "0 1", "0 2", "0 4", "1 1", "1 2" }, seen)
    assert.same({ 2, 3 }, space:choices())
    assert.equal("1 1", decisions(space:of_decisions { 2, 3 }))
  end)

  it("is searched by strategies that enumerate decisions", function()
    local function cost(m) -- the second alternative of the first decision, 2 of the second one
      local text = m:text()
      return (text:find("T.grid(1, 2, 8", 1, true) and 0 or 1) + 1
    end
    for _, strategy in ipairs { "exhaustive", "bandit" } do
      local result = search { mod = product(16, 16, 16), schedule = rule, strategy = strategy,
        trials = 40, metrics = { { cost, name = "cost" } } }
      assert.equal("exhausted", result.state)
      assert.equal(5, result.trials, strategy)
      assert.equal(1, cost(result.mod), tostring(result.mod))
    end
  end)

  it("mutates tiles at MetaSchedule's rate, and moves divisors within them", function()
    local space = schedule_space.new(product(16, 16, 16), rule, 1, "spec")
    local random = require "perilune.tune.random"(3)
    local point, changed = space:of_decisions { 1, 2 }, 0
    for _ = 1, 300 do
      local other = space:mutate(point, random)
      assert.is_true(other.decisions[2][2] <= 4)
      if other.decisions[1] ~= point.decisions[1] then changed = changed + 1 end
    end
    -- Of 0.05 / 0.95 one in two stays what it was.
    assert.is_true(changed >= 1 and changed <= 25, tostring(changed))
  end)
end)

describe("the default space of schedules", function()
  -- Samples compute what the program does.
  local function check(mod, pattern, threads)
    local tiled = 0
    for seed = 1, 6 do
      local sch = pl.tir.Schedule(mod, { seed = seed })
      tune.default_schedule(sch, { threads = threads })
      local text = tostring(sch.mod)
      if text:find(pattern, 1, true) then tiled = tiled + 1 end
      local same, diag = pl.tir.check(mod, sch.mod, { rounds = 1 })
      assert(same, ("seed %d: %s\n%s"):format(seed, diag and diag.message or "", text))
    end
    assert.is_true(tiled > 0, pattern)
  end

  it("tiles products of matrices, of sizes that no vector divides too", function()
    check(product(16, 32, 8), "C_update")
    check(product(16, 32, 8), "T.vectorized")
    check(product(16, 32, 8), "T.parallel", 2)
    check(product(15, 21, 7), "C_update")
    check(product(1, 16, 5), "C_update")
  end)

  it("tiles convolutions", function()
    local x = pl.te.placeholder({ 1, 4, 10, 10 }, "float32", "x")
    local w = pl.te.placeholder({ 8, 4, 3, 3 }, "float32", "w")
    check(of_tensors(x, w, pl.topi.nn.conv2d(x, w, { 1, 1 }, { 0, 0, 0, 0 }, { 1, 1 })), "_update")
  end)

  it("makes vectors of blocks without a reduction", function()
    local x = pl.te.placeholder({ 4, 24 }, "float32", "x")
    check(of_tensors(x, pl.topi.tanh(x)), "T.vectorized")
  end)

  it("runs outer tiles in threads", function()
    local mod = product(32, 32, 32)
    local sch = pl.tir.Schedule(mod)
    tune.default_schedule(sch, { threads = 2 })
    local threads = tune.builder { kind = "c", threads = 2 }
    assert.is_true(quick:check(mod, assert(threads:build(sch.mod))))
  end)

  it("takes back what a block is refused", function()
    local mod = product(16, 16, 16)
    local sch = pl.tir.Schedule(mod)
    local block = sch:get_block "C"
    sch:fuse(table.unpack(sch:get_loops(block), 1, 2))
    local before = sch.mod
    tune.default_schedule(sch)
    assert.is_true(pl.equal(before, sch.mod))
  end)
end)

describe("decisions of a schedule", function()
  it("are given in order", function()
    local function rule(sch)
      local loops = sch:get_loops(sch:get_block "C")
      sch:split(loops[1], { n = 2, table.unpack(sch:sample_perfect_tile(loops[1], 2, 16)) })
      sch:sample_categorical({ 1, 2, 3 }, { 0.3, 0.3, 0.4 })
      return sch
    end
    local mod = product(16, 16, 16)
    local a = rule(pl.tir.Schedule(mod, { decisions = { { 8, 2 }, 2 } }))
    assert(tostring(a.trace):find("decision=[8, 2]", 1, true), tostring(a.trace))
    assert(tostring(a.trace):find("decision=2", 1, true))
    local free = rule(pl.tir.Schedule(mod, { seed = 9, decisions = { false, 1 } }))
    assert(tostring(free.trace):find("decision=1", 1, true))
    assert.error_matches(function()
      rule(pl.tir.Schedule(mod, { decisions = { { 8, 3 } } }))
    end, "product 24")
    assert.error_matches(function() pl.tir.Schedule(mod, { decisions = 4 }) end, "decisions")
  end)
end)

describe("pl.tune.default_schedule of a product", function()
  local function program_of(m, n, depth)
    local a, b = pl.te.placeholder({ m, depth }, "float32", "A"),
      pl.te.placeholder({ depth, n }, "float32", "B")
    local k = pl.te.reduce_axis({ 0, depth }, "k")
    local out = pl.te.compute({ m, n }, function(i, j)
      return pl.te.sum(a[{ i, k.var }] * b[{ k.var, j }], k)
    end, "C")
    return pl.module { main = pl.te.create_prim_func { a, b, out } }
  end

  it("packs the operand that all rows read, or not, and computes the same", function()
    local mod, packed = program_of(24, 32, 20), { [true] = 0, [false] = 0 }
    for seed = 1, 12 do
      local sch = pl.tir.Schedule(mod, { seed = seed * 7919 })
      pl.tune.default_schedule(sch)
      assert(pl.tir.check(mod, sch.mod))
      local text = tostring(sch.mod)
      local is_packed = text:find('T.block("B_global")', 1, true) ~= nil
      packed[is_packed] = packed[is_packed] + 1
      assert.is_nil(text:find('T.block("A_global")', 1, true))
    end
    assert.is_true(packed[true] > 0 and packed[false] > 0)
  end)

  it("has no more accumulators than registers", function()
    for seed = 1, 12 do
      local sch = pl.tir.Schedule(program_of(64, 64, 16), { seed = seed * 7919 })
      pl.tune.default_schedule(sch)
      local body = tostring(sch.mod):match "for k_0.-C_update"
      local floats = 1
      for n in body:gmatch "T%.unroll%((%d+)%)" do floats = floats * tonumber(n) end
      floats = floats * tonumber(body:match "T%.vectorized%((%d+)%)" or 1)
      assert.is_true(floats * 4 <= 32 * 64, body)
    end
  end)

  it("prefers register tiles of many multiply-adds a load", function()
    local mod, good = program_of(512, 512, 512), 0
    local lanes = require "perilune.core".c_native_vector_bytes() // 4
    for seed = 1, 40 do
      local sch = pl.tir.Schedule(mod, { seed = seed * 7919 })
      pl.tune.default_schedule(sch)
      local body = tostring(sch.mod):match "for k_0.-C_update"
      local rows, vectors = body:match "T%.unroll%((%d+)%).-T%.unroll%((%d+)%)"
      rows, vectors = tonumber(rows), tonumber(vectors)
      local own = tonumber(body:match "T%.vectorized%((%d+)%)") / lanes
      local columns = math.max(1, vectors * own)
      if own >= 1 and rows * columns / (rows + 3 * columns) >= 0.7 then good = good + 1 end
    end
    assert.is_true(good >= 24, tostring(good))
  end)
end)
