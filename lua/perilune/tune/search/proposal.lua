--- Points that a cost model thinks well of: of several proposals the one is measured that is
-- expected to be the cheapest. The model learns from the trials of the search.

local cost_model = require "perilune.tune.cost"
local quality = require "perilune.tune.cost.quality"
require "perilune.core".internal() -- errors name the scripts of others

local proposal = {}

local methods = {}
local class = { __index = methods }

-- So many proposals for each trial; so many trials before the model is asked.
local PROPOSALS, LEAST = 6, 8
-- Trials at random keep the model from seeing only what it likes.
local EXPLORATION = 0.1

-- Before it learns a cost, the model says what it expects.
local function note_prediction(self, mod, cost)
  if self.n < LEAST then return end
  local known, x = pcall(self.model.predict, self.model, mod, self.base)
  if not known then return end
  self.predicted[#self.predicted + 1], self.measured[#self.measured + 1] = x, cost
end

--- How well the model ordered the trials before it knew them: { rank_correlation =, recall = (of
-- the k best), k =, n = }; nil when there were less than two.
function methods.quality(self)
  local n = #self.measured
  if n < 2 then return nil end
  local k = math.max(1, math.min(10, n // 2))
  return { rank_correlation = quality.rank_correlation(self.predicted, self.measured), k = k,
    recall = quality.recall(self.predicted, self.measured, k), n = n }
end

--- Learns what a module costs. Failures teach nothing.
function methods.learn(self, mod, cost)
  if not mod or not cost or not (cost > 0 and cost < math.huge) then return end
  note_prediction(self, mod, cost)
  local ok = pcall(self.model.update, self.model, { { mod = mod, cost = cost, base = self.base } })
  if ok then self.n = self.n + 1 end
end

--- Whether the model has learnt from enough trials to be asked.
function methods.is_ready(self) return self.n >= LEAST end

--- What the model expects that a point costs; math.huge for one that cannot be made.
function methods.expected(self, search, point)
  local ok, mod = pcall(search.space.apply, search.space, search.mod, point)
  if not ok then return math.huge end
  local known, cost = pcall(self.model.predict, self.model, mod, self.base)
  return known and cost or math.huge
end

--- The point of those that make() gives which is expected to be the best.
function methods.choose(self, search, make)
  local best = make()
  if not self:is_ready() or search:is_known(best) or search.random:chance(EXPLORATION) then
    return best
  end
  local least = self:expected(search, best)
  for _ = 2, PROPOSALS do
    local point = make()
    local cost = search:is_known(point) and math.huge or self:expected(search, point)
    if cost < least then best, least = point, cost end
  end
  return best
end

--- A chooser by a model of that kind ("trees", "ridge") for programs that are changed from `base`.
function proposal.new(kind, base)
  return setmetatable({ model = cost_model.new(kind), base = base, n = 0, predicted = {},
    measured = {} }, class)
end

return proposal
