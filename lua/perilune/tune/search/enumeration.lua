--- All points of a space, one after the other.

require "perilune.core".internal() -- errors name the scripts of others

local enumeration = {}

-- Numbers of the next choices, the last one varies fastest; false behind the last ones.
local function advance(decisions, choices)
  for i = #choices, 1, -1 do
    if decisions[i] < choices[i] then
      decisions[i] = decisions[i] + 1
      return true
    end
    decisions[i] = 1
  end
  return false
end

--- An iterator over the points of a space: its own, or all combinations of its choices.
function enumeration.points(space)
  if space.points then return space:points() end
  local choices, decisions = space:choices(), {}
  for i in ipairs(choices) do decisions[i] = 1 end
  local more = true
  return function()
    if not more then return nil end
    local point = space:of_decisions(decisions)
    more = advance(decisions, choices)
    return point
  end
end

return enumeration
