--- Lowers an addition whose loop is split by 64, and draws its tree of loops: a DOT graph that
-- pre- and post-order callbacks build.
--
--     lua5.4 loop_tree.lua | dot -Tsvg > loops.svg

local pl = require "perilune"
local tir = pl.tir

local n = tir.SizeVar "n"
local A, B, C = tir.decl_buffer({ n }, "float32", "A"), tir.decl_buffer({ n }, "float32", "B"),
  tir.decl_buffer({ n }, "float32", "C")
local outer, inner = tir.Var "i.outer", tir.Var "i.inner"
local i = outer * 64 + inner
local add = tir.PrimFunc({ A, B, C }, tir.For(outer, 0, (n + 63) // 64, "serial",
  tir.For(inner, 0, 64, "serial", tir.IfThenElse(tir.likely(tir.LT(i, n)),
    C:store(A:load(i) + B:load(i), i)))))

-- What is drawn of a statement.
local labels = {
  For = function(loop)
    return ("for %s in %s"):format(loop.loop_var.name, tostring(loop.extent))
  end,
  IfThenElse = function(stmt) return "if " .. tostring(stmt.condition) end,
  BufferStore = function(stmt) return stmt.buffer.name .. " = " .. tostring(stmt.value) end,
}

-- The statements of a function as a tree: an edge from each to what it runs.
local function draw(fn)
  local lines, open, count = { "digraph loops {" }, { 0 }, 0
  tir.transform(fn, function(stmt)
    count = count + 1
    lines[#lines + 1] = ('  n%d [label="%s"];'):format(count, labels[stmt.kind](stmt))
    if #open > 1 then lines[#lines + 1] = ("  n%d -> n%d;"):format(open[#open], count) end
    open[#open + 1] = count
  end, function() open[#open] = nil end, { "tir.For", "tir.IfThenElse", "tir.BufferStore" })
  lines[#lines + 1] = "}"
  return table.concat(lines, "\n")
end

print(draw(pl.lower(add, { name = "add", simple_mode = true }).functions.add))
