--- The choices that a generated program depends on: pseudorandom ones, recorded, or a
-- list of recorded ones that is replayed. A program is a function of its choices, so
-- that it is made again, or made smaller, by replaying them (Hypothesis: internal
-- test-case reduction). The lower a choice, the simpler what it stands for.

require "perilune.core".internal()

local choices = {}
local class = {}
class.__index = class

-- SplitMix64 (Steele, Lea, Flood 2014), which is the same on every machine.
local function next_bits(self)
  self.state = self.state + 0x9E3779B97F4A7C15
  local z = self.state
  z = (z ~ (z >> 30)) * 0xBF58476D1CE4E5B9
  z = (z ~ (z >> 27)) * 0x94D049BB133111EB
  return z ~ (z >> 31)
end

--- An integer from 0 to n - 1.
function class:below(n)
  local at = #self + 1
  self[at] = self.given and math.min(self.given[at] or 0, n - 1)
    or (next_bits(self) >> 1) % n
  return self[at]
end

--- An element of a list, whose first ones are the simplest.
function class:pick(list) return list[self:below(#list) + 1] end

--- True in so many of a hundred cases; false is the simpler answer.
function class:chance(percent) return self:below(100) >= 100 - percent end

--- A permutation of 1 ... n; the identity is the simplest.
function class:permutation(n)
  local list = {}
  for i = 1, n do list[i] = i end
  for i = 1, n - 1 do
    local k = i + self:below(n - i + 1)
    list[i], list[k] = list[k], list[i]
  end
  return list
end

--- Choices at random; equal seeds give equal ones.
function choices.random(seed) return setmetatable({ state = seed }, class) end

--- The recorded choices of a list; 0 behind its end.
function choices.replay(list) return setmetatable({ given = list }, class) end

return choices
