--- How a space is searched. A strategy is a function of a search: it proposes points by
-- search:costs_of(points), which gives their costs (math.huge: it failed) and ends the strategy
-- when the budget is spent, and search:choose(make), which may prefer one of several points that
-- make() gives. Points that are proposed together may be measured side by side: search.width is how
-- many are wanted. All that is random comes from search.random.

local argument = require "perilune.argument"
require "perilune.core".internal() -- errors name the scripts of others

local strategies = {}

local sizes = { beam = 4, neighbours = 6, population = 16, first = 16 }

--- All decisions, the last one varies fastest.
function strategies.exhaustive(search)
  local choices, decisions, points = search.space:choices(), {}, {}
  for i in ipairs(choices) do decisions[i] = 1 end
  repeat
    points[#points + 1] = search.space:of_decisions(decisions)
    if #points == search.width then
      search:costs_of(points)
      points = {}
    end
    local i = #choices
    while i > 0 and decisions[i] == choices[i] do
      decisions[i] = 1
      i = i - 1
    end
    if i > 0 then decisions[i] = decisions[i] + 1 end
  until i == 0
  search:costs_of(points)
end

--- Points at random.
function strategies.random(search)
  local function any() return search.space:random(search.random) end
  while true do
    local points = {}
    for i = 1, search.width do points[i] = search:choose(any) end
    search:costs_of(points)
  end
end

local function by_cost(a, b)
  if a.cost ~= b.cost then return a.cost < b.cost end
  return a.index < b.index
end

-- The best `n` of a list of { point, cost, index }.
local function best_of(list, n)
  table.sort(list, by_cost)
  return table.move(list, 1, math.min(n, #list), 1, {})
end

-- Measures points and appends them to a list of { point, cost, index }.
local function add_measured(search, list, points, effort)
  local costs = search:costs_of(points, effort)
  for i, point in ipairs(points) do
    search.serial = search.serial + 1
    list[#list + 1] = { point = point, cost = costs[i], index = search.serial }
  end
  return list
end

local function first_points(search) return add_measured(search, {}, search.space:start()) end

--- Beam search: of all neighbours of the best points the best are kept.
function strategies.beam(search)
  local beam = best_of(first_points(search), sizes.beam)
  while true do
    local list, points = table.move(beam, 1, #beam, 1, {}), {}
    for _, one in ipairs(beam) do
      for _ = 1, math.max(sizes.neighbours, search.width // sizes.beam) do
        points[#points + 1] = search:choose(function()
          return search.space:mutate(one.point, search.random)
        end)
      end
    end
    beam = best_of(add_measured(search, list, points), sizes.beam)
  end
end

-- The better of two.
local function tournament(search, population)
  local a, b = search.random:element(population), search.random:element(population)
  return by_cost(a, b) and a or b
end

local function child_of(search, population)
  local random, space = search.random, search.space
  if random:chance(0.05) then return space:random(random) end
  local parent = tournament(search, population)
  if random:chance(0.85) then return space:mutate(parent.point, random) end
  return space:crossover(parent.point, tournament(search, population).point, random)
end

--- Evolution, with the mutation probability and the share of random points of MetaSchedule.
function strategies.evolutionary(search)
  local population, size = first_points(search), math.max(sizes.population, search.width)
  local missing = size - #population
  while true do
    local list, points = table.move(population, 1, #population, 1, {}), {}
    for i = 1, missing do
      points[i] = search:choose(function() return child_of(search, population) end)
    end
    population = best_of(add_measured(search, list, points), size)
    missing = size
  end
end

-- What a point costs more than another one, relative to that; infinite where that is 0.
local function loss(cost, other)
  if cost == other then return 0 end
  return other > 0 and (cost - other) / other or math.huge
end

--- Simulated annealing: the temperature falls from 0.1, a tenth of the cost, to 0.
function strategies.annealing(search)
  local now = best_of(first_points(search), 1)[1]
  while true do
    local other = add_measured(search, {}, { search.space:mutate(now.point, search.random) })[1]
    local temperature = 0.1 * (1 - search:progress())
    local accept = search.random:number() -- taken in any case: a replay takes the same
    local chance = math.exp(-loss(other.cost, now.cost) / math.max(temperature, 1e-9))
    if other.cost <= now.cost or accept < chance then now = other end
  end
end

--- Successive halving (Jamieson, Talwalkar 2016): many points with few blocks, the better half
-- with twice as many, and so on.
function strategies.halving(search)
  while true do
    local list, effort = {}, 1 / 8
    for _, point in ipairs(search.space:start()) do list[#list + 1] = { point = point } end
    while #list < math.max(sizes.first, search.width) do
      list[#list + 1] = { point = search.space:random(search.random) }
    end
    while #list > 1 do
      local points = {}
      for i, one in ipairs(list) do points[i] = one.point end
      list = best_of(add_measured(search, {}, points, effort), (#list + 1) // 2)
      effort = math.min(1, effort * 2)
    end
    search:cost(list[1].point)
  end
end

--- Parts of a program that can be measured by themselves, the kernels of a model, one after the
-- other, then all together.
function strategies.separate(search) search.space:separate(search) end

-- ---------------------------------------------------------------------- bandit

-- The choice with the least lower confidence bound (UCB1, Auer 2002).
local function choose(arms, n, random)
  local best, least
  for _, k in ipairs(random:shuffled(arms.order)) do
    local arm = arms[k]
    if arm.n == 0 then return k end
    local bound = arm.sum / arm.n - 0.1 * math.sqrt(2 * math.log(n) / arm.n)
    if not least or bound < least then best, least = k, bound end
  end
  return best
end

local function new_arms(choices)
  local knobs = {}
  for i, n in ipairs(choices) do
    knobs[i] = { order = {} }
    for k = 1, n do knobs[i][k], knobs[i].order[k] = { n = 0, sum = 0 }, k end
  end
  return knobs
end

-- What a failure counts as, relative to the first point that was measured: the base, where there is
-- one. What costs more counts as this, too.
local FAILED = 2
-- The share of points at random.
local EXPLORATION = 0.1

--- A bandit for each knob, which learns what its choices cost on average.
function strategies.bandit(search)
  local knobs, n, first = new_arms(search.space:choices()), 1, nil
  while true do
    local decisions = {}
    local explore = search.random:chance(EXPLORATION)
    for i, arms in ipairs(knobs) do
      decisions[i] = explore and search.random:integer(#arms) or choose(arms, n, search.random)
    end
    local cost = search:cost(search.space:of_decisions(decisions))
    if not first and cost > 0 and cost < math.huge then first = cost end
    cost = math.min(first and cost / first or cost, FAILED)
    for i, arms in ipairs(knobs) do
      local arm = arms[decisions[i]]
      arm.n, arm.sum = arm.n + 1, arm.sum + cost
    end
    n = n + 1
  end
end

--- The name of a strategy; raises when there is none of that name.
local function check(name, where)
  if not strategies[argument.string(name, where, "strategy")] then
    argument.fail(("%s: there is no strategy '%s'%s"):format(where, name,
      argument.near(name, strategies)))
  end
  return name
end

return { by_name = strategies, check = check }
