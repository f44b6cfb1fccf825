-- The engine's pool keeps the blocks of tensors between evaluations.

local pl = require "perilune"

local double = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(1024, 256), float32]) { add(exp(%x), exp(%x)) }]])

local function run()
  local x = pl.tensor.random({ 1024, 256 }, "float32", { seed = 1 })
  local y = pl.eval(double, x)
  local first = y:get(1, 1)
  x:close()
  y:close()
  return first
end

-- How many allocations a second run makes.
local function allocations()
  run()
  local before = select(3, pl.memory())
  run()
  return select(3, pl.memory()) - before
end

describe("The pool of memory", function()
  it("has 256 MiB after the first evaluation, and what a script says", function()
    run()
    assert.equal(256 << 20, pl.memory_pool())
    assert.equal(0, pl.memory_pool(0))
    run()
    assert.equal(0, pl.memory_pool())
    assert.equal(1 << 20, pl.memory_pool(1 << 20))
  end)

  it("saves allocations, is not counted, and changes no result", function()
    pl.memory_pool(0)
    local value, without = run(), allocations()
    pl.memory_pool(64 << 20)
    local with = allocations()
    if (os.getenv "PERILUNE_SANITIZE" or "") == "" then assert.is_true(with < without) end
    assert.equal(value, run())
    local used = pl.memory()
    pl.memory_pool(0)
    assert.equal(used, (pl.memory()))
  end)

  it("refuses what is no number of bytes", function()
    assert.has_error(function() pl.memory_pool(-1) end)
    assert.has_error(function() pl.memory_pool "much" end)
  end)
end)
