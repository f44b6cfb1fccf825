--- Instruments that come with the library: what each pass changed, in what time,
-- how often, whether it was right; and a file for each step.
--
--     lua5.4 shipped_instruments.lua FOLDER

local pl = require "perilune"

local folder = assert(..., "a folder for the dump is needed")

local x = pl.var("x", "Tensor[(4), float32]")
local function twice() return pl.op.tanh(x * 1.0) end
local mod = pl.module { main = pl.func({ x }, twice() + twice()) }

local timing, changes = pl.instruments.timing(), pl.instruments.changes()
local statistics, nodes = pl.instruments.statistics(), pl.instruments.nodes()
local dump, oracle = pl.instruments.dump(folder), pl.instruments.oracle()

local scope <close> = pl.context { opt_level = 3, instruments = { timing, changes, statistics,
  nodes, dump, oracle, pl.instruments.verify(), pl.instruments.diff() } }:enter()
pl.pipeline "fixpoint(3){SimplifyExpr,EliminateCommonSubexpr},DeadCodeElimination" (mod)

print("-- timing\n" .. tostring(timing))
print("-- statistics\n" .. tostring(statistics))
print("-- nodes")
for _, row in ipairs(nodes.rows) do print(row.name, row.before, row.after) end
print("-- changes")
for _, row in ipairs(changes.rows) do print(row.name, table.concat(row.functions, " ")) end
print("-- dump\n" .. table.concat(dump.files, "\n"))
print(("-- oracle\n%d compared, %d passed over"):format(oracle.compared, #oracle.skipped))
