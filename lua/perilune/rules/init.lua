--- The shipped rules: which files make up the rules of which pass, in the order
-- in which they are tried. Compiled into the engine when it is built
-- (engine/rule/table.lua); a file returns a list of rules:
--
--     { "name: pattern => replacement where condition",
--       reason = "why it is right", source = "where it is known from",
--       proof = "exact" | "reassociates" | "approximates",   -- exact by default
--       grows = true,                  -- may make more calls than it removes
--       relay = true,                  -- holds for calls in Relay's form, too
--       native = "name",               -- the replacement is a function in C
--       example = "fn (%x: ...) { ... }" }   -- for `perilune rules check`, see pl.rules

-- `saturates`: the rules are generated (`perilune rules generate`), and undo each other: e-graphs
-- and searches apply them, no sweep does.

return {
  { pass = "SimplifyExpr", files = { "identity", "arithmetic", "cast", "reshape", "flat_product",
    "data_movement", "selection", "linear", "fill", "reduction", "recurrent", "logic", "full" } },
  { pass = "FuseOnnxOps", files = { "fusion", "embedding", "rotary", "microsoft" } },
  { pass = "GraphSubstitution", files = { "substitution/matrices", "substitution/images",
    "substitution/convolutions", "substitution/dense" }, saturates = true },
}
