--- A pass written in Lua: x * sigmoid(x) becomes nn.silu(x).
--
--     lua5.4 pass_in_lua.lua
--
-- The pass is a mutator: a function for each kind of node it cares about, which
-- gives nil (leave it) or what to use instead. Assigning it to pl.passes
-- registers it; from then on pipelines know it by name.

local pl = require "perilune"

local multiply, sigmoid = pl.op.multiply, pl.op.sigmoid

-- x when the call is x * sigmoid(x) or sigmoid(x) * x.
local function silu_argument(call)
  if call.op ~= multiply then return nil end
  local a, b = call[1], call[2]
  if b.op == sigmoid and b[1] == a then return a end
  if a.op == sigmoid and a[1] == b then return b end
end

local fuse = pl.mutator {
  Call = function(call)
    local x = silu_argument(call)
    return x and pl.op.nn.silu(x)
  end,
}

pl.passes.FuseSilu = { kind = "function", opt_level = 2, run = fuse,
  doc = "x * sigmoid(x) becomes nn.silu(x)." }

-- The other way to write a pass: a function of the function, the module and
-- the context. What it notes is in the report; it gives `fn` back, unchanged.
pl.passes.CountCalls = { kind = "function", doc = "Counts calls by operator.",
  run = function(fn, _, ctx)
    for node in fn:nodes() do
      if node.op then ctx:note(node.op.name) end
    end
    return fn
  end }

local x = pl.var("x", "Tensor[(1, 8), float32]")
local y = x * pl.op.sigmoid(x)
local mod = pl.module { main = pl.func({ x }, y + y) }

local pipeline = pl.pipeline "CountCalls,FuseSilu,DeadCodeElimination,CountCalls"
local out = pipeline(mod)

print(out)
for _, row in ipairs(pl.report()) do
  for operator, n in pairs(row.counts) do print(row.name, operator, n) end
end
