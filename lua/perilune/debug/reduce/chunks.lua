--- A list made short: what may go goes in large pieces first.

require "perilune.core".internal()

-- The list without `size` of its entries from `at` on.
local function without(list, at, size)
  local rest = table.move(list, 1, at - 1, 1, {})
  return table.move(list, at + size, #list, at, rest)
end

--- Calls keep(rest) with lists that lack a piece of what is left: first all, then
-- halves, at last single entries. Gives the shortest that keep() said yes to
-- (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002).
return function(list, keep)
  local size = #list
  while size >= 1 do
    local at = 1
    while at <= #list do
      local rest = without(list, at, size)
      if #rest < #list and keep(rest) then list = rest else at = at + size end
    end
    size = math.min(size // 2, #list)
  end
  return list
end
