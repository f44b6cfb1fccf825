--- The example of TVM's tutorials: a vector sum of any length, its loop split, and what it is
-- lowered to; a tree of its loops for Graphviz, made by a walk with two callbacks.
--
--     lua5.4 tensor_expression.lua

local pl = require "perilune"
local te = pl.te

local n = te.var "n"
local A, B = te.placeholder({ n }, "float32", "A"), te.placeholder({ n }, "float32", "B")
local C = te.compute({ n }, function(i) return A[{ i }] + B[{ i }] end, "C")

local s = te.create_schedule(C.op)
print(s:to_module({ A, B, C }, "add"))

-- The length need not be a multiple of 64: the inner loop has a guard, which is likely to hold. The
-- default lowering cuts it off: whole blocks run without it, the rest behind them.
local outer = s[C]:split(C.op.axis[1], 64)
s[C]:parallel(outer)
print(s)
print(pl.lower(s, { args = { A, B, C }, name = "add", simple_mode = true }))
local mod = pl.lower(s, { args = { A, B, C }, name = "add" })
print(mod)

-- A statement is a node below the statement around it: pre-order opens, post-order closes it.
local open, lines, count = {}, { "digraph loops {" }, 0
local function enter(node)
  count = count + 1
  local label = node.kind == "For" and node.loop_var.name or node.kind
  lines[#lines + 1] = ('  n%d [label="%s"];'):format(count, label)
  if #open > 0 then lines[#lines + 1] = ("  n%d -> n%d;"):format(open[#open], count) end
  open[#open + 1] = count
end
local function leave() open[#open] = nil end
local kinds = { "tir.For", "tir.IfThenElse", "tir.BufferStore" }
pl.tir.transform(mod.functions.add, enter, leave, kinds)
print(table.concat(lines, "\n") .. "\n}")

-- Every length is computed right; pl.build(mod) does the same by C.
local x, y = {}, {}
for i = 1, 100 do x[i], y[i] = i, 1 end
local result = pl.tir.run(mod, { x, y, y })[3]:to_table()
print(result[1], result[64], result[65], result[100])

-- The last step is taken back; the trace is data.
print(s:undo():to_json())
