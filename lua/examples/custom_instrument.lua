--- An instrument of one's own: it watches how many calls each pass leaves, refuses
-- to run what is not wanted, and stops a run that makes the model larger.
--
--     lua5.4 custom_instrument.lua
--
-- A function in pl.instruments makes it known by name.

local pl = require "perilune"

local function calls(mod)
  local n = 0
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      if node.kind == "Call" then n = n + 1 end
    end
  end
  return n
end

function pl.instruments.budget(options)
  local before = {}
  local self = { name = "budget", log = {} }

  function self.enter() self.log[1] = "enter" end
  function self.exit() self.log[#self.log + 1] = "exit" end

  function self.should_run(_, info) return info.name ~= options.skip end

  function self.before(mod) before[#before + 1] = calls(mod) end

  function self.after(mod, info)
    local was, is = table.remove(before), calls(mod)
    self.log[#self.log + 1] = ("%-24s %d -> %d calls"):format(info.name, was, is)
    if is > was then error(info.name .. " makes the model larger", 0) end
  end

  return self
end

pl.passes.Unroll = { kind = "function", doc = "Makes x * 3 longer.", run = pl.mutator {
  Call = function(call)
    if call.op == pl.op.multiply then return call[1] + call[1] + call[1] end
  end,
} }

local x = pl.var("x", "Tensor[(4), float32]")
local mod = pl.module { main = pl.func({ x }, pl.op.exp(x) + pl.op.exp(x) * 3.0) }

local budget = pl.instruments.budget { skip = "SimplifyExpr" }
local context = pl.context { opt_level = 3, instruments = { budget } }
local ok, diag = pcall(pl.with, context,
  pl.pipeline "SimplifyExpr,EliminateCommonSubexpr,Unroll,DeadCodeElimination", mod)

print(table.concat(budget.log, "\n"))
print(ok, diag.message)
for _, note in ipairs(diag.notes) do print(note.text) end
