-- Random programs of the loop level, each pass: what it makes computes the same, by the
-- interpreter. PERILUNE_SEED and PERILUNE_GRAPHS set the first seed and the number.

local pl = require "perilune"

local first_seed = tonumber(os.getenv "PERILUNE_SEED" or 1)
local number = tonumber(os.getenv "PERILUNE_GRAPHS" or 150)

local passes = {
  { "tir.Simplify" }, { "tir.RemoveNoOp" }, { "tir.UnrollLoop" }, { "tir.VectorizeLoop" },
  { "tir.LoopPartition" }, { "tir.CommonSubexprElimTIR" }, { "tir.RenormalizeSplitPattern" },
  { "tir.StorageRewrite" }, { "tir.FlattenBuffer" }, { "tir.RewriteUnsafeSelect" },
  { "tir.NarrowDataType" }, { "tir.lower" },
  { "tir.CommonSubexprElimTIR{identify_equiv_terms=true}" },
  { "tir.ReduceBranchingThroughOvercompute" },
  { "tir.InjectVirtualThread" }, { "tir.ConvertForLoopsToSerial" },
  { "tir.InsertHoistIfThenElse" }, { "tir.HoistIfThenElse" }, { "tir.HoistExpression" },
  { "tir.ConvertSSA" }, { 'tir.BindTarget{target="c"}', "tir.LowerIntrin" },
  { "tir.Simplify", "tir.HoistExpression", 'tir.BindTarget{target="c"}', "tir.LowerIntrin" },
  { "tir.LoopPartition", "tir.VectorizeLoop", "tir.StorageRewrite", "tir.UnrollLoop",
    "tir.RenormalizeSplitPattern", "tir.Simplify", "tir.RemoveNoOp", "tir.CommonSubexprElimTIR" },
}

local random_program = require "spec.tir.random_program".text

local constant = pl.context { config = { ["tir.LoopPartition.partition_const_loop"] = true } }

local extended = pl.context { config = {
  ["tir.Simplify.transitively_prove_inequalities"] = true,
  ["tir.Simplify.convert_boolean_to_and_of_ors"] = true,
  ["tir.Simplify.apply_constraints_to_boolean_branches"] = true,
} }

describe("passes over PrimFuncs", function()
  it("keep what random programs compute under every option of tir.Simplify", function()
    for seed = first_seed, first_seed + number - 1 do
      local text = random_program(seed)
      local before = assert(pl.tir.parse(text))
      local after = pl.with(extended, pl.passes["tir.Simplify"](), before)
      local same, diag = pl.tir.check(before, after, { rounds = 1, seed = seed, rtol = 0,
        atol = 0 })
      assert.is_true(same ~= nil, ("seed %d\n%s%s\n%s"):format(seed, text, tostring(diag),
        tostring(after)))
    end
  end)

  it("keep what random programs compute", function()
    local compared = 0
    for seed = first_seed, first_seed + number - 1 do
      local text = random_program(seed)
      local before = assert(pl.tir.parse(text))
      for _, names in ipairs(passes) do
        local where = ("seed %d, %s\n%s"):format(seed, table.concat(names, ","), text)
        local ok, after = pcall(pl.with, constant, pl.sequential(names), before)
        assert.is_true(ok, where .. tostring(after))
        if not rawequal(before, after) then
          local same, diag = pl.tir.check(before, after, { rounds = 1, seed = seed, rtol = 0,
            atol = 0 })
          assert.is_true(same ~= nil, where .. tostring(diag) .. "\n" .. tostring(after))
          compared = compared + 1
        end
      end
    end
    assert.is_true(compared > number)
  end)
end)
