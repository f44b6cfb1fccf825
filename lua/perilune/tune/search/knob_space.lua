--- The space of knobs: a choice for each. A point is a list of numbers of choices, from 1 on.

local argument = require "perilune.argument"
local core = require "perilune.core"
local knob = require "perilune.tune.knob"
local trace = require "perilune.tune.trace"
core.internal()

local space = {}

local methods = {}
local class = { __name = "knob space", __index = methods }

local function decisions_of(self, point)
  local names = {}
  for i, k in ipairs(self.knobs) do names[i] = k.decisions[point[i]] end
  return names
end

--- The text of a point: decisions as JSON of a trace are long; names of knobs and choices do.
function methods.text(self, point)
  local parts = {}
  for i, name in ipairs(decisions_of(self, point)) do
    parts[i] = ("%s=%s"):format(self.knobs[i].name, name)
  end
  return table.concat(parts, ",")
end

--- The trace of the point.
function methods.trace(self, mod, point)
  return trace.new(mod, self.knobs, decisions_of(self, point))
end

--- The module that the point makes. A choice whose constraint does not hold is an error.
function methods.apply(self, mod, point)
  local one = trace.new(mod)
  for i, name in ipairs(decisions_of(self, point)) do
    if not self.knobs[i].choices[name]:check_constr(one.out_mod) then
      argument.fail(("knob '%s', decision '%s': its constraint does not hold"):format(
        self.knobs[i].name, name))
    end
    one:add(self.knobs[i], name)
  end
  return one.out_mod
end

--- The points to begin with: the first choice of each knob.
function methods.start(self)
  local point = {}
  for i in ipairs(self.knobs) do point[i] = 1 end
  return { point }
end

--- A point that differs in one decision.
function methods.mutate(self, point, random)
  local out = table.move(point, 1, #point, 1, {})
  local i = random:integer(#self.knobs)
  out[i] = random:integer(#self.knobs[i].decisions)
  return out
end

--- Each decision from one of two points.
function methods.crossover(_, a, b, random)
  local out = {}
  for i in ipairs(a) do out[i] = random:chance(0.5) and a[i] or b[i] end
  return out
end

--- Any point.
function methods.random(self, random)
  local out = {}
  for i, k in ipairs(self.knobs) do out[i] = random:integer(#k.decisions) end
  return out
end

--- The numbers of choices.
function methods.choices(self)
  local list = {}
  for i, k in ipairs(self.knobs) do list[i] = #k.decisions end
  return list
end

--- Decisions are the point.
function methods.of_decisions(_, decisions) return table.move(decisions, 1, #decisions, 1, {}) end

--- The space of a list of knobs.
function space.new(knobs, where)
  argument.table(knobs, where, "knobs")
  for i, k in ipairs(knobs) do
    if not knob.is(k) then
      argument.fail(("%s: knob %d is a %s"):format(where, i, argument.kind_of(k)))
    end
  end
  return setmetatable({ kind = "knobs", knobs = knobs }, class)
end

return space
