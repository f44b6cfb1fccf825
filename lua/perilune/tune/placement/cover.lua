--- Covers the calls of a function by parts of the least sum: dynamic programming over the calls in
-- order.
--
-- A state says which later calls the parts that were taken have covered already; of equal states
-- the cheapest is kept. At a call that is not covered each part that begins there and covers
-- nothing twice gives a state. With more than max_states states the dearest are dropped, and the
-- cover may not be the least one.

require "perilune.core".internal() -- errors name the scripts of others

local function key_of(ahead) return table.concat(ahead, ",") end

-- The places ahead of `place`, with those of a part; nil where one is covered already.
local function join(ahead, places, place)
  local out, i = {}, 1
  for _, other in ipairs(places) do
    if other > place then
      while ahead[i] and ahead[i] < other do
        out[#out + 1] = ahead[i]
        i = i + 1
      end
      if ahead[i] == other then return nil end
      out[#out + 1] = other
    end
  end
  return table.move(ahead, i, #ahead, #out + 1, out)
end

local function keep(states, state)
  local key = key_of(state.ahead)
  local known = states[key]
  if not known then
    states[#states + 1] = key
    states[key] = state
  elseif state.cost < known.cost then
    states[key] = state
  end
end

-- What comes after a call for one state.
local function advance(states, state, place, candidates)
  if state.ahead[1] == place then
    keep(states, { cost = state.cost, last = state.last,
      ahead = table.move(state.ahead, 2, #state.ahead, 1, {}) })
    return
  end
  local any = false
  for _, one in ipairs(candidates) do
    local ahead = join(state.ahead, one.places, place)
    if ahead then
      any = true
      keep(states, { cost = state.cost + one.cost, ahead = ahead,
        last = { one = one, before = state.last } })
    end
  end
  -- What nobody could measure stays with the host; all covers have it.
  if not any then keep(states, state) end
end

-- The cheapest states; whether some were dropped.
local function prune(states, most)
  if #states <= most then return states, false end
  local list = {}
  for i, key in ipairs(states) do list[i] = { key = key, cost = states[key].cost, i = i } end
  table.sort(list, function(a, b)
    if a.cost ~= b.cost then return a.cost < b.cost end
    return a.i < b.i
  end)
  local out = {}
  for i = 1, most do
    out[i] = list[i].key
    out[list[i].key] = states[list[i].key]
  end
  return out, true
end

local function chosen_of(last)
  local list = {}
  while last do
    list[#list + 1], last = last.one, last.before
  end
  local n = #list
  for i = 1, n // 2 do list[i], list[n + 1 - i] = list[n + 1 - i], list[i] end
  return list
end

-- All by single calls of the host.
local function host_cost(order, candidates, host)
  local sum = 0
  for place in ipairs(order) do
    for _, one in ipairs(candidates[place] or {}) do
      if one.backend == host and #one.places == 1 then sum = sum + one.cost end
    end
  end
  return sum
end

--- { chosen = candidates in order, cost =, base_cost =, exact = }.
return function(order, candidates, max_states, host)
  local states = {}
  keep(states, { cost = 0, ahead = {} })
  local exact = true
  for place, node in ipairs(order) do
    if node.kind == "Call" then
      local following = {}
      for _, key in ipairs(states) do
        advance(following, states[key], place, candidates[place] or {})
      end
      local dropped
      states, dropped = prune(following, max_states)
      exact = exact and not dropped
    end
  end
  local best = states[prune(states, 1)[1]]
  return { chosen = chosen_of(best.last), cost = best.cost, exact = exact,
    base_cost = host_cost(order, candidates, host) }
end
