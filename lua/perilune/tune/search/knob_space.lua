--- The space of knobs: a choice for each.

local argument = require "perilune.argument"
local choice_space = require "perilune.tune.search.choice_space"
local core = require "perilune.core"
local knob = require "perilune.tune.knob"
local trace = require "perilune.tune.trace"
core.internal()

local space = {}

local methods = {}

--- A point of decisions: numbers of choices.
function methods.make(_, decisions) return { decisions = decisions } end

local function names_of(self, point)
  local names = {}
  for i, k in ipairs(self.knobs) do names[i] = k.decisions[point.decisions[i]] end
  return names
end

--- The text of a point: decisions as JSON of a trace are long; names of knobs and choices do.
function methods.text(self, point)
  local parts = {}
  for i, name in ipairs(names_of(self, point)) do
    parts[i] = ("%s=%s"):format(self.knobs[i].name, name)
  end
  return table.concat(parts, ",")
end

--- The trace of the point.
function methods.trace(self, mod, point)
  return trace.new(mod, self.knobs, names_of(self, point))
end

--- The module that the point makes. A choice whose constraint does not hold is an error.
function methods.apply(self, mod, point)
  local one = trace.new(mod)
  for i, name in ipairs(names_of(self, point)) do
    if not self.knobs[i].choices[name]:check_constr(one.out_mod) then
      argument.fail(("knob '%s', decision '%s': its constraint does not hold"):format(
        self.knobs[i].name, name))
    end
    one:add(self.knobs[i], name)
  end
  return one.out_mod
end

local class = choice_space.class("knob space", methods)

--- The space of a list of knobs.
function space.new(knobs, where)
  local counts = {}
  for i, k in ipairs(argument.table(knobs, where, "knobs")) do
    if not knob.is(k) then
      argument.fail(("%s: knob %d is a %s"):format(where, i, argument.kind_of(k)))
    end
    counts[i] = #k.decisions
  end
  return setmetatable({ kind = "knobs", knobs = knobs, n_choices = counts }, class)
end

return space
