-- Random modules are printed, read and printed again: the same text, and equal structures.
-- PERILUNE_SEED and PERILUNE_MODULES set the first seed and the number.

local pl = require "perilune"
local amount = require "spec.random.amount"
local random = require "spec.tir.script.random_module"

local first = tonumber(os.getenv "PERILUNE_SEED" or 1)
local number = amount("PERILUNE_MODULES", 200)

describe("random modules", function()
  it("are read as they were printed", function()
    for seed = first, first + number - 1 do
      local module = random.module(seed)
      local text = module:text()
      local where = ("seed %d\n%s"):format(seed, text)
      local again, diag = pl.tir.parse(text, "text")
      assert.is_truthy(again, where .. tostring(diag))
      assert.are.equal(text, again:text(), where)
      assert.is_true(pl.equal(module, again, { map_free_vars = true }), where)
    end
  end)
end)
