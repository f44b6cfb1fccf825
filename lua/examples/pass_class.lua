--- A pass as a class: arguments of its constructor, methods, state that lives from
-- run to run.
--
--     lua5.4 pass_class.lua
--
-- What can be called can be a pass's body; an object's state is its own.

local pl = require "perilune"

-- Gives calls of one operator to another, `most` of them at the most.
local Replace = {}
Replace.__index = Replace

function Replace.new(from, to, most)
  return setmetatable({ from = pl.op[from], to = pl.op[to], left = most or math.huge, log = {} },
    Replace)
end

function Replace:visit(call)
  if call.op ~= self.from or self.left == 0 then return nil end
  self.left = self.left - 1
  self.log[#self.log + 1] = call.op.name
  return self.to(table.unpack(call.args))
end

function Replace:__call(fn)
  local visit = function(call) return self:visit(call) end
  return pl.mutator { Call = visit } (fn)
end

-- The object is the body; others ask it what it did.
local once = Replace.new("tanh", "sigmoid", 1)
local all = Replace.new("exp", "tanh")

local pipeline = pl.sequential { name = "replace",
  pl.function_pass { name = "TanhOnce", run = once },
  pl.function_pass { name = "ExpAlways", run = all },
}

local x = pl.var("x", "Tensor[(4), float32]")
local mod = pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.exp(pl.op.tanh(pl.op.exp(x))))) }

for round = 1, 2 do
  mod = pipeline(mod)
  print(("round %d: %d tanh, %d exp replaced so far"):format(round, #once.log, #all.log))
end
print(mod)
