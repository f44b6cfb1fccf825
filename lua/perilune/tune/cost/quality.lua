--- How well predictions order candidates: Spearman's rank correlation with what was measured, and
-- how many of the k best are among the k that are predicted to be best.

require "perilune.core".internal() -- errors name the scripts of others

local quality = {}

-- Numbers of a list in ascending order of their values.
local function order_of(list)
  local order = {}
  for i = 1, #list do order[i] = i end
  table.sort(order, function(a, b)
    if list[a] ~= list[b] then return list[a] < list[b] end
    return a < b
  end)
  return order
end

-- Ranks, the mean rank for ties.
local function ranks_of(list)
  local order, ranks, i = order_of(list), {}, 1
  while i <= #order do
    local k = i
    while k < #order and list[order[k + 1]] == list[order[i]] do k = k + 1 end
    for j = i, k do ranks[order[j]] = (i + k) / 2 end
    i = k + 1
  end
  return ranks
end

--- Spearman's rank correlation, from -1 to 1; 0 where one of the lists does not vary.
function quality.rank_correlation(a, b)
  local x, y, mean = ranks_of(a), ranks_of(b), (#a + 1) / 2
  local xy, xx, yy = 0, 0, 0
  for i = 1, #a do
    local dx, dy = x[i] - mean, y[i] - mean
    xy, xx, yy = xy + dx * dy, xx + dx * dx, yy + dy * dy
  end
  return xx > 0 and yy > 0 and xy / math.sqrt(xx * yy) or 0
end

--- The part of the k least of `measured` that is among the k least of `predicted`.
function quality.recall(predicted, measured, k)
  k = math.min(k, #measured)
  local best, n = {}, 0
  for i, at in ipairs(order_of(measured)) do if i <= k then best[at] = true end end
  for i, at in ipairs(order_of(predicted)) do
    if i <= k and best[at] then n = n + 1 end
  end
  return k > 0 and n / k or 0
end

return quality
