-- Numbers at random that are the same for the same seed, on every machine:
-- random() is in [0, 1), random(low, high) an integer of that range.

return function(seed)
  local state = seed * 2654435761 % 4294967296
  return function(low, high)
    state = (state * 1664525 + 1013904223) % 4294967296
    local unit = (state >> 8) / 16777216
    return low and low + math.floor(unit * (high - low + 1)) or unit
  end
end
