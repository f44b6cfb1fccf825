--- Random numbers that a seed decides: the same on every machine, and apart from those of
-- math.random. SplitMix64 (Steele, Lea, Flood 2014).

require "perilune.core".internal() -- errors name the scripts of others

local methods = {}
local class = { __index = methods }

local function next_bits(self)
  self.state = self.state + 0x9e3779b97f4a7c15
  local z = self.state
  z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * 0x94d049bb133111eb
  return z ~ (z >> 31)
end

--- A number from 0 on, below 1.
function methods.number(self) return (next_bits(self) >> 11) * 2.0 ^ -53 end

--- An integer from 1 to n.
function methods.integer(self, n) return 1 + math.floor(self:number() * n) end

--- An element of a list.
function methods.element(self, list) return list[self:integer(#list)] end

--- True with that probability.
function methods.chance(self, probability) return self:number() < probability end

--- The list in random order, a new one.
function methods.shuffled(self, list)
  local out = table.move(list, 1, #list, 1, {})
  for i = #out, 2, -1 do
    local k = self:integer(i)
    out[i], out[k] = out[k], out[i]
  end
  return out
end

--- A generator of random numbers.
return function(seed) return setmetatable({ state = seed }, class) end
