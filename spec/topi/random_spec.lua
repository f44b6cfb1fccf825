-- On graphs made at random, with infinities and no numbers among their inputs, loops compute what
-- the evaluator's kernels compute; what has no compute is left to those.
--
-- PERILUNE_GRAPHS says how many graphs, PERILUNE_SEED which come first.

local pl = require "perilune"
local compare = require "spec.random.compare"
local random_graph = require "spec.random.graph"

local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local graphs = tonumber(os.getenv "PERILUNE_GRAPHS") or 300

local lowering = pl.sequential { "InferType", "FuseOps",
  pl.passes.LowerTE { unsupported = "keep" } }

local function count(mod)
  local n = 0
  for _, fn in pairs(mod) do
    if fn.kind == "PrimFunc" then n = n + 1 end
  end
  return n
end

describe("LowerTE on graphs made at random", function()
  it("keeps what is computed", function()
    local lowered = 0
    for seed = first, first + graphs - 1 do
      local mod = random_graph(seed)
      local ok, after = pcall(lowering, mod)
      assert(ok, ("seed %d: %s"):format(seed, tostring(after)))
      assert(pl.verify(after))
      lowered = lowered + count(after)
      -- A sum in another order may be rounded to another half.
      local near = tostring(mod):find "float16" and 1e-2 or 1e-4
      local same, diag = compare(mod, after, { seed = seed, rounds = 1, rtol = near, atol = near,
        scaled = true })
      assert(same, ("seed %d: %s"):format(seed, tostring(diag)))
    end
    assert.is_true(lowered > graphs, lowered)
  end)
end)
