--- Covers the calls of a function by parts of the least sum: dynamic programming over the calls in
-- order.
--
-- A state says which later calls the parts that were taken have covered already and, where
-- boundaries cost something, which backends made the values that later calls use, and which
-- parts wait for a value that is not made yet; of equal states the cheapest is kept. At a call that
-- is not covered each part that begins there and covers nothing twice gives a state. With more
-- than max_states states the dearest are dropped, and the cover may not be the least one.

require "perilune.core".internal() -- errors name the scripts of others

local function key_of(state)
  local key = table.concat(state.ahead, ",")
  if not state.live[1] and not state.waiting[1] then return key end
  local list = { key }
  for _, one in ipairs(state.live) do list[#list + 1] = one.place .. one.backend.name end
  for _, one in ipairs(state.waiting) do list[#list + 1] = "?" .. one.place .. one.backend.name end
  return table.concat(list, ";")
end

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
  local key = key_of(state)
  local known = states[key]
  if not known then
    states[#states + 1] = key
    states[key] = state
  elseif state.cost < known.cost then
    states[key] = state
  end
end

-- ------------------------------------------------------------------- boundaries

local function is_covered(state, at, place)
  if at < place then return true end
  for _, other in ipairs(state.ahead) do
    if other == at then return true end
  end
  return false
end

local function producer_of(self, state, at)
  for _, one in ipairs(state.live) do
    if one.place == at then return one.backend end
  end
  return self.host
end

local function move(self, bytes, from, to)
  return from == to and 0 or self.boundary.cost(bytes, from, to)
end

-- Entries sorted by place, so that equal states have equal keys.
local function sorted(list)
  table.sort(list, function(a, b)
    if a.place ~= b.place then return a.place < b.place end
    return a.backend.name < b.backend.name
  end)
  return list
end

-- What the part takes from others: the cost, and what it waits for.
local function take(self, state, one, place, waiting)
  local cost = 0
  for _, input in ipairs(one.inputs) do
    if not input.place then
      cost = cost + move(self, input.bytes, self.host, one.backend)
    elseif is_covered(state, input.place, place) then
      cost = cost + move(self, input.bytes, producer_of(self, state, input.place), one.backend)
    else
      waiting[#waiting + 1] = { place = input.place, backend = one.backend, bytes = input.bytes }
    end
  end
  return cost
end

-- What parts that were waiting take from this one, and what the function's caller gets.
local function give(self, state, one, waiting)
  local own, cost = {}, 0
  for _, at in ipairs(one.places) do own[at] = true end
  for _, entry in ipairs(state.waiting) do
    if own[entry.place] then
      cost = cost + move(self, entry.bytes, one.backend, entry.backend)
    else
      waiting[#waiting + 1] = entry
    end
  end
  for _, bytes in ipairs(one.results) do cost = cost + move(self, bytes, one.backend, self.host) end
  return cost
end

-- The producers of values with later uses; the host's are not listed.
local function live_of(self, state, one, place)
  local live = {}
  for _, entry in ipairs(state.live) do
    if self.boundary.last_use[entry.place] > place then live[#live + 1] = entry end
  end
  if one.backend == self.host then return live end
  for _, at in ipairs(one.places) do
    if (self.boundary.last_use[at] or 0) > place then
      live[#live + 1] = { place = at, backend = one.backend }
    end
  end
  return sorted(live)
end

local none = {}

-- The state's producers and waiting parts behind a part, and what is moved for it.
local function cross(self, state, one, place)
  if not self.boundary then return none, none, 0 end
  local waiting = {}
  local cost = give(self, state, one, waiting) + take(self, state, one, place, waiting)
  return live_of(self, state, one, place), sorted(waiting), cost
end

-- ------------------------------------------------------------------- the states

-- What comes after a call for one state.
local function advance(self, states, state, place, candidates)
  if state.ahead[1] == place then
    keep(states, { cost = state.cost, moved = state.moved, last = state.last, live = state.live,
      waiting = state.waiting, ahead = table.move(state.ahead, 2, #state.ahead, 1, {}) })
    return
  end
  local any = false
  for _, one in ipairs(candidates) do
    local ahead = join(state.ahead, one.places, place)
    if ahead then
      any = true
      local live, waiting, moved = cross(self, state, one, place)
      keep(states, { cost = state.cost + one.cost + moved, moved = state.moved + moved,
        ahead = ahead, live = live, waiting = waiting,
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

--- { chosen = candidates in order, cost =, moved = (what of the cost is boundaries), base_cost =,
-- exact = }. boundary: what placement.boundary makes, or nil.
return function(order, candidates, max_states, host, boundary)
  local self, states = { host = host, boundary = boundary }, {}
  keep(states, { cost = 0, moved = 0, ahead = {}, live = none, waiting = none })
  local exact = true
  for place, node in ipairs(order) do
    if node.kind == "Call" then
      local following = {}
      for _, key in ipairs(states) do
        advance(self, following, states[key], place, candidates[place] or {})
      end
      local dropped
      states, dropped = prune(following, max_states)
      exact = exact and not dropped
    end
  end
  local best = states[prune(states, 1)[1]]
  return { chosen = chosen_of(best.last), cost = best.cost, moved = best.moved, exact = exact,
    base_cost = host_cost(order, candidates, host) }
end
