-- Networks made at random, compiled to C, give what the evaluator gives.
--
-- PERILUNE_NETWORKS says how many networks, PERILUNE_SEED which come first.

local pl = require "perilune"
local random_network = require "spec.random.network"

local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local networks = tonumber(os.getenv "PERILUNE_NETWORKS") or 20

local tolerances = { float16 = 2e-2, float64 = 1e-7 }

local function operand(shape, dtype, seed)
  local most = dtype:find "float" and 1 or 20
  local x = pl.tensor.random(shape, "float32", { seed = seed, low = -most, high = most })
  return dtype == "float32" and x or pl.eval(pl.op.cast(pl.const(x), { dtype = dtype }))
end

-- Compiled with few optimisations, and not kept.
local function differs(seed)
  local mod, shape, dtype = random_network(seed)
  local x, near = operand(shape, dtype, seed), tolerances[dtype] or 1e-4
  local expected = table.pack(pl.eval(mod, x))
  local built = pl.build(mod, { flags = "-O1 -march=native", cache = "" })
  for i, result in ipairs(built.main(x)) do
    local same, how = result:compare(expected[i], { rtol = near, atol = near, scaled = true })
    if not same then
      return ("result %d of %s: %s, expected %s"):format(i, dtype, how.got, how.expected)
    end
  end
end

describe("networks made at random", function()
  it("compute the same by generated C", function()
    for seed = first, first + networks - 1 do
      local ok, why = pcall(differs, seed)
      assert.is_nil(why, ("seed %d: %s"):format(seed, tostring(why)))
      assert.is_true(ok)
    end
  end)
end)
