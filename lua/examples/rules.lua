--- Rewrite rules: as text, with a condition, with a replacement in Lua; as a pass in a
-- pipeline, and what each rule did; checked by evaluation.

local pl = require "perilune"

local algebra = pl.rules "algebra" {
  { "silu: multiply(?x, sigmoid(?x)) => nn.silu(?x)", reason = "the definition of silu",
    proof = "approximates" },
  { "distribute: multiply(add(?x, ?a:const), ?b:const) => add(multiply(?x, ?b), multiply(?a, ?b))",
    proof = "reassociates" },
  "transposes: transpose(transpose(?x, axes=?p), axes=?q) => transpose(?x, axes=compose(?p, ?q))",
  "same: transpose(?x, axes=?p) => ?x where ?p == iota(len(?p))",
  -- what text does not say, a function may: the match has the variables by their names
  { "nn.leaky_relu(?x:float, alpha=?a)",
    function(m) if m.a == 0 then return pl.op.nn.relu(m.x) end end,
    name = "flat", proof = "reassociates" }, -- 0 times infinity is NaN
}

local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = multiply(%x, sigmoid(%x));
  %1 = transpose(transpose(%0, axes=[1, 0]), axes=[1, 0]);
  nn.leaky_relu(multiply(add(%1, 1f), 3f), alpha=0f)
}
]])

-- a set stands for a pass
print(pl.sequential { algebra, "DeadCodeElimination" }(mod))

local _, counts = algebra:apply(mod)
for _, count in ipairs(counts) do
  print(count.name, count.tried .. " tried", count.applied .. " applied")
end

-- do they keep what programs compute? Two that do not:
local results, passed = algebra:check { cases = 50 }
assert(passed, results)
print((pl.rules {
  "square: sqrt(multiply(?x, ?x)) => ?x",
  "sum: multiply(add(?x, ?a), ?b) => add(multiply(?x, ?b), ?a)",
}:check()))
