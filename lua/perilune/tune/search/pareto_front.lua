--- Of several costs: what no other candidate is at least as good as in all of them.

require "perilune.core".internal() -- errors name the scripts of others

-- Whether a is no worse in any cost and better in one.
local function dominates(a, b)
  local better = false
  for name, x in pairs(a) do
    if x > b[name] then return false end
    better = better or x < b[name]
  end
  return better
end

--- The trials with `costs` (a table by metric) that no other one dominates, in order; of those with
-- equal costs the first.
return function(list)
  local front = {}
  for _, trial in ipairs(list) do
    local keep = trial.costs ~= nil and next(trial.costs) ~= nil
    for _, other in ipairs(front) do
      if not keep then break end
      local same = not dominates(trial.costs, other.costs)
      for name, x in pairs(trial.costs) do same = same and x == other.costs[name] end
      keep = not (same or dominates(other.costs, trial.costs))
    end
    if keep then
      local left = {}
      for _, other in ipairs(front) do
        if not dominates(trial.costs, other.costs) then left[#left + 1] = other end
      end
      left[#left + 1] = trial
      front = left
    end
  end
  return front
end
