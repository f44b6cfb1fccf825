-- The shipped rules pass their check. PERILUNE_CASES says how many comparisons are made for
-- each rule, PERILUNE_SEED which programs come first.

local pl = require "perilune"
local amount = require "spec.random.amount"
local check = require "perilune.rule.check"
local library = require "perilune.rule.library"
local passes = require "perilune.rule.check.passes"
local shipped = require "perilune.rule.check.shipped"

local cases = amount("PERILUNE_CASES", 40)
local seed = tonumber(os.getenv "PERILUNE_SEED" or 1)

describe("the check of the shipped rules", function()
  local rows = {}
  for _, row in ipairs(library.rules()) do
    -- Generated ones: spec/tune/rule_generation_spec.lua.
    if row.pass ~= "GraphSubstitution" then rows[#rows + 1] = row end
  end
  local rules = shipped.prepare(rows)
  local results, passed = check.all(rules, { cases = cases, seed = seed })

  it("passes", function()
    assert.equal(#rows, #results)
    for _, result in ipairs(results) do
      assert.equal("passed", result.status, check.text(result))
    end
    assert.is_true(passed)
  end)

  it("makes enough comparisons for each rule", function()
    for _, result in ipairs(results) do
      assert.is_true(result.fired >= math.min(cases, 20), check.text(result))
    end
  end)

  it("passes for passes whose rewrites are functions in C", function()
    local all = passes.prepare()
    assert.equal(#passes.names(), #all)
    for _, result in ipairs((check.all(all, { cases = cases, seed = seed }))) do
      assert.equal("passed", result.status, check.text(result))
      assert.is_true(result.fired >= math.min(cases, 20), check.text(result))
    end
  end)

  -- A rule whose replacement is in C is applied by its pass, alone.
  it("applies a native rule alone", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  add(transpose(transpose(%x, axes=[1, 0]), axes=[1, 0]), 0f)
}
]])
    local function simplified(only)
      local ctx = pl.context { config = { ["rules.only"] = only } }
      return tostring(pl.with(ctx, pl.passes.SimplifyExpr(), mod).main.body)
    end
    assert.matches("add%(%%x, 0f", simplified { "merge_transpose", "same_transpose" })
    assert.matches("%%1 = transpose", simplified { "add_constants" })
    assert.matches("axes=%[1, 0%].*axes=%[1, 0%]", simplified { "add_zero" })
    assert.not_matches("add", simplified { "add_zero" })
    assert.matches("^free_var[^\n]*\n%%x", simplified {})
  end)
end)
