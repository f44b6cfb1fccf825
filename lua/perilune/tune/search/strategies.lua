--- How a space is searched. A strategy is a function of a search: it proposes points by
-- search:costs_of(points), which gives their costs (math.huge: it failed) and ends the strategy
-- when the budget is spent, and search:choose(make), which may prefer one of several points that
-- make() gives. Points that are proposed together may be measured side by side: search.width is how
-- many are wanted. All that is random comes from search.random.

local argument = require "perilune.argument"
local enumeration = require "perilune.tune.search.enumeration"
require "perilune.core".internal() -- errors name the scripts of others

local strategies = {}

local sizes = { beam = 4, neighbours = 6, parents = 16, first = 16 }

--- All decisions, the last one varies fastest.
function strategies.exhaustive(search)
  local points = {}
  for point in enumeration.points(search.space) do
    points[#points + 1] = point
    if #points == search.width then
      search:costs_of(points)
      points = {}
    end
  end
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

-- The numbers of MetaSchedule's evolutionary search, but of the points that are measured at a time,
-- 64 there.
local evolution = { generations = 4, from_best = 0.2, mutation = 0.85, random = 0.05, batch = 16 }

-- The best of what was measured: parents of what comes next.
local function best_measured(measured, n)
  return best_of(table.move(measured, 1, #measured, 1, {}), n)
end

local function child_of(search, parents)
  local random, space = search.random, search.space
  local parent = tournament(search, parents)
  if random:chance(evolution.mutation) then return space:mutate(parent.point, random) end
  return space:crossover(parent.point, tournament(search, parents).point, random)
end

-- Children of the best measured points, a few at random.
local function propose_children(search, measured, n)
  local share = math.ceil(#measured * evolution.from_best)
  local parents, points = best_measured(measured, math.max(sizes.parents, share)), {}
  for i = 1, n do
    points[i] = search:choose(function()
      if search.random:chance(evolution.random) then return search.space:random(search.random) end
      return child_of(search, parents)
    end)
  end
  return points
end

-- Appends points with their expected costs to a population, each once.
local function add_expected(search, population, seen, point)
  local text = search.space:text(point)
  if seen[text] then return end
  seen[text] = true
  search.serial = search.serial + 1
  population[#population + 1] = { point = point, cost = search:expected_cost(point),
    index = search.serial }
end

-- A population that a cost model has seen grow over generations, the best first: a fifth of the
-- first one are measured points, the others at random.
local function evolve(search, measured)
  local size, seen, population = search.population, {}, {}
  for _, one in ipairs(best_measured(measured, math.ceil(size * evolution.from_best))) do
    add_expected(search, population, seen, one.point)
  end
  for _ = #population + 1, size do
    add_expected(search, population, seen, search.space:random(search.random))
  end
  for _ = 1, evolution.generations do
    local parents = best_of(population, size)
    population = table.move(parents, 1, #parents, 1, {})
    for _ = 1, size do add_expected(search, population, seen, child_of(search, parents)) end
    search:check_time()
  end
  return best_of(population, size)
end

-- The best of the population that nobody has measured, a few at random.
local function propose_evolved(search, measured, n)
  local points = {}
  for _, one in ipairs(evolve(search, measured)) do
    if #points == n then break end
    if search.random:chance(evolution.random) then
      points[#points + 1] = search.space:random(search.random)
    elseif not search:is_known(one.point) then
      points[#points + 1] = one.point
    end
  end
  if #points == 0 then points[1] = search.space:random(search.random) end
  return points
end

--- Evolution by MetaSchedule's numbers. With a cost model that has learnt enough, populations of
-- search.population points evolve for four generations between measurements; without one the
-- measured points are the population.
function strategies.evolutionary(search)
  local measured, batch = first_points(search), math.max(evolution.batch, search.width)
  local missing = batch - #measured
  while true do
    local propose = search:can_expect() and propose_evolved or propose_children
    add_measured(search, measured, propose(search, measured, missing))
    measured = best_of(measured, search.population)
    missing = batch
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
