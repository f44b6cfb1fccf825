-- How two programs are compared: with a machine that is simulated, so that what the specs say of
-- errors is counted, and does not depend on what else runs.

local random = require "perilune.tune.random"
local statistics = require "perilune.tune.run.statistics"

-- A machine on which other work comes and goes: a block lasts its time, longer by up to 10 % as a
-- rule, and by 1.2 to 2.5 times while other work runs, which lasts for some blocks.
local function machine(seed, candidate, incumbent)
  local source, now, busy = random(seed), 0, 0
  local seconds = { candidate, incumbent }
  local function block(side)
    if busy == 0 and source:chance(0.1) then busy = source:integer(12) end
    local factor = 1 + 0.1 * source:number()
    if busy > 0 then
      busy, factor = busy - 1, 1.2 + 1.3 * source:number()
    end
    local x = seconds[side] * factor
    now = now + 200e-6
    return x
  end
  return block, function() return now end
end

-- How often each verdict comes out in so many comparisons.
local function verdicts(n, candidate, incumbent, options)
  local count = { faster = 0, slower = 0, undecided = 0 }
  for seed = 1, n do
    local block, clock = machine(seed, candidate, incumbent)
    local result = statistics.race(block, clock, options)
    count[result.verdict] = count[result.verdict] + 1
  end
  return count
end

describe("a comparison", function()
  it("leaves equal programs undecided", function()
    local count = verdicts(500, 1, 1)
    assert.is_true(count.undecided >= 495, ("%d of 500"):format(count.undecided))
  end)

  it("finds a difference of 20 % in 95 of 100 runs", function()
    local count = verdicts(100, 1, 1.2)
    assert.is_true(count.faster >= 95, ("%d of 100"):format(count.faster))
    assert.equal(0, count.slower)
    count = verdicts(100, 1.2, 1)
    assert.is_true(count.slower >= 95, ("%d of 100"):format(count.slower))
    assert.equal(0, count.faster)
  end)

  it("does not call a difference below its threshold one", function()
    local count = verdicts(100, 1, 1.005)
    assert.is_true(count.undecided >= 99)
  end)

  it("is over after six pairs when all blocks are much shorter", function()
    local block, clock = machine(1, 1, 4)
    local result = statistics.race(block, clock)
    assert.equal("faster", result.verdict)
    assert.equal(6, result.pairs)
    assert.is_true(result.confidence > 0.998)
  end)

  it("drops what is 1.3 times as slow after three pairs", function()
    local block, clock = machine(1, 3, 1)
    local result = statistics.race(block, clock)
    assert.equal("slower", result.verdict)
    assert.is_true(result.dropped)
    assert.equal(3, result.pairs)
  end)

  it("ends when its time is over", function()
    local block, clock = machine(1, 1, 1)
    local result = statistics.race(block, clock, { seconds = 20 * 200e-6, pairs = 80 })
    assert.is_true(result.pairs < 15)
    assert.equal("undecided", result.verdict)
  end)

  it("tells ratio, confidence and times", function()
    local result = statistics.race(function(side) return side == 1 and 0.8 or 1 end, os.clock)
    assert.equal("faster", result.verdict)
    assert.equal(0.8, result.ratio)
    assert.is_true(math.abs(result.median_ratio - 0.8) < 1e-12)
    assert.is_true(result.confidence > 0.99)
    assert.same({ min = 0.8, median = 0.8, n = 10 }, result.candidate)
  end)

  it("refuses blocks of one program that are no times", function()
    for _, x in ipairs { -1, 0, 0 / 0, math.huge, "1" } do
      local ok, err = pcall(statistics.repeated, function() return x end, os.clock)
      assert.is_false(ok)
      assert.matches("a positive number is expected", err)
    end
  end)

  it("refuses blocks that are no times", function()
    for _, x in ipairs { 0, -1, 0 / 0, math.huge } do
      assert.has_error(function() statistics.race(function() return x end, os.clock) end)
    end
  end)
end)

describe("the signed-rank test", function()
  it("has the probabilities of its tables", function()
    -- n = 10, sum of negative ranks 8: two-sided 0.049 exactly.
    local p = statistics.signed_rank { 1, 2, -3, 4, -5, 6, 7, 8, 9, 10 }
    assert.is_true(math.abs(p - 0.049) < 0.004, tostring(p))
    assert.equal(1, statistics.signed_rank { 1, 2, 3 })
    assert.is_true(statistics.signed_rank { 1, -1, 2, -2, 3, -3, 4, -4 } > 0.9)
  end)
end)

describe("random numbers", function()
  it("depend on the seed alone", function()
    local a, b = random(7), random(7)
    for _ = 1, 100 do assert.equal(a:number(), b:number()) end
    assert.not_equal(random(7):number(), random(8):number())
  end)

  it("cover what they may be", function()
    local source, seen = random(1), {}
    for _ = 1, 1000 do seen[source:integer(10)] = true end
    for i = 1, 10 do assert.is_true(seen[i]) end
    assert.is_nil(seen[0] or seen[11])
    local list = source:shuffled { 1, 2, 3, 4, 5 }
    table.sort(list)
    assert.same({ 1, 2, 3, 4, 5 }, list)
  end)
end)
