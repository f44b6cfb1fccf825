--- What specs of SimplifyExpr build, and how they look at what came out.

local pl = require "perilune"

local simplified = {}

function simplified.var(name, shape, dtype)
  return pl.var(name, pl.type { shape = shape, dtype = dtype or "float32" })
end

function simplified.ints(...) return pl.const(pl.tensor({ ... }, "int64")) end

function simplified.module(vars, body) return pl.module { main = pl.func(vars, body) } end

--- The names of a module's calls in order, with spaces between.
function simplified.calls(mod)
  local names = {}
  for node in mod.main:nodes() do
    if node.kind == "Call" then names[#names + 1] = node.op.name end
  end
  return table.concat(names, " ")
end

--- Asserts that SimplifyExpr leaves the function as it is.
function simplified.keeps(vars, body)
  local mod = simplified.module(vars, body)
  assert(pl.passes.SimplifyExpr()(mod) == mod, "SimplifyExpr changed what it must leave")
end

return simplified
