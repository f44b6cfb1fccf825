--- What spaces of independent decisions have in common. A point has a list of decisions, numbers
-- from 1 on, in `decisions`; `n_choices` of the space has how many choices each of them has.
--
-- A space adds make(decisions), which gives a point, and the methods text and apply.

require "perilune.core".internal() -- errors name the scripts of others

local choices = {}

--- The point of decisions.
function choices.of_decisions(self, decisions)
  return self:make(table.move(decisions, 1, #decisions, 1, {}))
end

--- The numbers of choices.
function choices.choices(self)
  return table.move(self.n_choices, 1, #self.n_choices, 1, {})
end

--- The points to begin with: the first choice of each decision.
function choices.start(self)
  local decisions = {}
  for i in ipairs(self.n_choices) do decisions[i] = 1 end
  return { self:make(decisions) }
end

--- A point that differs in one decision.
function choices.mutate(self, point, random)
  local out = table.move(point.decisions, 1, #point.decisions, 1, {})
  local i = random:integer(#out)
  out[i] = random:integer(self.n_choices[i])
  return self:make(out)
end

--- Each decision from one of two points.
function choices.crossover(self, a, b, random)
  local out = {}
  for i, decision in ipairs(a.decisions) do
    out[i] = random:chance(0.5) and decision or b.decisions[i]
  end
  return self:make(out)
end

--- Any point.
function choices.random(self, random)
  local out = {}
  for i, n in ipairs(self.n_choices) do out[i] = random:integer(n) end
  return self:make(out)
end

--- The class of a space with these methods and those of choices.
function choices.class(name, methods)
  for key, method in pairs(choices) do
    if key ~= "class" and not methods[key] then methods[key] = method end
  end
  return { __name = name, __index = methods }
end

return choices
