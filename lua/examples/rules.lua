--- Applications of rules: counted and timed by name, limited by number: the way to
-- the one that does harm.
--
--     lua5.4 rules.lua
--
-- A mutator's rules are its keys; other passes name theirs with ctx:rule(name).

local pl = require "perilune"

pl.passes.Tanh = { kind = "function", run = pl.mutator {
  Call = function(call)
    if call.op == pl.op.exp then return pl.op.tanh(call[1]) end
  end,
} }

local x = pl.var("x", "Tensor[(4), float32]")
local mod = pl.module { main = pl.func({ x }, pl.op.exp(pl.op.exp(x + 0.0)) * 1.0) }
local pipeline = pl.pipeline "SimplifyExpr,Tanh"

local function run(config)
  local out = pl.with(pl.context { opt_level = 3, config = config }, pipeline, mod)
  for _, row in ipairs(pl.rule_report()) do
    print(("%-14s %-14s tried %d, applied %d, refused %d"):format(row.pass, row.rule, row.tried,
      row.applied, row.refused))
  end
  print(out.main.body)
end

run {}
run { ["bisect.passes"] = 2, ["bisect.applications"] = 1 } -- one in the second run
run { ["bisect.passes"] = 1 } -- no second run
