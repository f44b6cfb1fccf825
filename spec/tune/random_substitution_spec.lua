-- Graph substitution keeps what random programs compute, in both modes, with all rules.

local amount = require "spec.random.amount"
local pl = require "perilune"
local random_branches = require "spec.random.branches"

describe("graph substitution", function()
  local rules = require "perilune.tune.search.substitution_rules"
  local first = tonumber(os.getenv "PERILUNE_SEED") or 1
  local graphs = amount("PERILUNE_GRAPHS", 16)

  local function check(seed, what, mod, out)
    local ok, why = pl.verify(out)
    if ok then
      ok, why = pl.check(mod, out, { rounds = 2, rtol = 1e-4, atol = 1e-4, scaled = true })
    end
    if not ok then error(("seed %d, %s: %s"):format(seed, what, tostring(why)), 0) end
  end

  -- Costs that are random by the text of a call make extraction take what estimates never do.
  local function random_cost(seed)
    local known, random = {}, require "spec.random.seeded"(seed)
    return function(_, question)
      local key = question.op .. tostring(question.attrs) .. tostring(question.types[1])
        .. tostring(question.types[2])
      known[key] = known[key] or random()
      return known[key]
    end
  end

  it("keeps what random programs compute, out of an e-graph", function()
    local changed = 0
    for seed = first, first + graphs - 1 do
      local mod = random_branches(seed)
      local costs = pl.tune.call_costs()
      costs.ask = random_cost(seed)
      local scope <close> = costs:enter()
      for _, cost in ipairs { "measured", "time", "flops", "bytes" } do
        local out = pl.passes.EqualitySaturation { rules = rules, generated_rules = true,
          cost = cost, node_limit = 600, iter_limit = 4 } (mod)
        if out ~= mod then changed = changed + 1 end
        check(seed, cost, mod, out)
      end
    end
    assert.is_true(changed > graphs)
  end)

  it("keeps what random programs compute, by single applications", function()
    local changed = 0
    for seed = first, first + graphs - 1 do
      local mod = random_branches(seed)
      local result = pl.tune.backtracking_search { mod = mod, rules = rules, alpha = 1.5,
        cost = seed % 2 == 0 and "time" or "bytes", budget = 12, check = false }
      if result.mod ~= mod then changed = changed + 1 end
      check(seed, result.text, mod, result.mod)
    end
    assert.is_true(changed >= graphs / 4)
  end)
end)
