--- Several spaces at once: what a point of the first makes is changed by a point of the second, and
-- so on. One that is a pipeline among pipelines may come before the others (comes_first).
--
-- A point has a point of each part. A part whose points depend on the program (rebase) gets it as
-- the parts before leave it. The text of a point is that of one pipeline if all parts have
-- pipelines, else a list of texts as JSON.

local core = require "perilune.core"
local enumeration = require "perilune.tune.search.enumeration"
local json = require "perilune.json"
local pipeline_space = require "perilune.tune.search.pipeline_space"
local time_limit = require "perilune.tune.run.time_limit"
core.internal()

local space = {}

local methods = {}
local class = { __name = "joint space", __index = methods }

-- What a part makes of a module. Those without a method have pipelines.
local function apply_part(part, mod, point)
  if part.apply then return part:apply(mod, point) end
  return pipeline_space.apply(mod, part:text(point))
end

-- ---------------------------------------------------------------------- points

-- The numbers of the parts in the order in which they work.
local function order_of(self, points)
  local order, rest = {}, {}
  for i, part in ipairs(self.parts) do
    local first = self.pipelines and part.comes_first and part:comes_first(points[i])
    table.insert(first and order or rest, i)
  end
  return table.move(rest, 1, #rest, #order + 1, order)
end

local function text_of(self, points)
  local texts = {}
  for _, i in ipairs(order_of(self, points)) do
    local part = self.parts[i]
    local text = part:text(points[i])
    if text ~= "" or not self.pipelines then texts[#texts + 1] = text end
  end
  return self.pipelines and table.concat(texts, ",") or json.encode(json.list(texts))
end

-- The place of the last part that is made for what those before it make; 0: there is none.
local function last_rebased(self, order)
  for at = #order, 2, -1 do
    if self.parts[order[at]].rebase then return at end
  end
  return 0
end

-- The point of points, each for the program that those before it make. One that fails does so again
-- when it is applied.
local function join(self, points)
  local list, mod = {}, self.mod
  local ok, why = time_limit(self.deadline or math.huge, function()
    local order = order_of(self, points)
    local last = last_rebased(self, order)
    for at, i in ipairs(order) do
      local part = self.parts[i]
      list[i] = at > 1 and part.rebase and part:rebase(mod, points[i]) or points[i]
      -- What nobody asks for is not made here.
      if at < last then mod = apply_part(part, mod, list[i]) end
    end
  end)
  for i = 1, #self.parts do list[i] = list[i] or points[i] end
  return { points = list, failure = not ok and why or nil, text = text_of(self, list) }
end

local function each(self, f)
  local points = {}
  for i, part in ipairs(self.parts) do points[i] = f(part, i) end
  return join(self, points)
end

--- The text of a point.
function methods.text(_, point) return point.text end

--- The module that a point makes.
function methods.apply(self, mod, point)
  if point.failure then error(point.failure, 0) end
  for _, i in ipairs(order_of(self, point.points)) do
    mod = apply_part(self.parts[i], mod, point.points[i])
  end
  return mod
end

--- The trace of the one part that has traces.
function methods.trace(self, mod, point)
  for i, part in ipairs(self.parts) do
    if part.trace then return part:trace(mod, point.points[i]) end
    mod = apply_part(part, mod, point.points[i])
  end
end

--- The points to begin with: all parts as they are, and what one part begins with.
function methods.start(self)
  local first = {}
  for i, part in ipairs(self.parts) do first[i] = part:start() end
  local list = { each(self, function(_, i) return first[i][1] end) }
  for i in ipairs(self.parts) do
    for k = 2, #first[i] do
      list[#list + 1] = each(self, function(_, j) return first[j][j == i and k or 1] end)
    end
  end
  return list
end

-- A part that has more than one point.
local function any_part(self, random)
  return self.changing[random:integer(#self.changing)]
end

--- A point that differs in one part.
function methods.mutate(self, point, random)
  local chosen = any_part(self, random)
  return each(self, function(part, i)
    return i == chosen and part:mutate(point.points[i], random) or point.points[i]
  end)
end

--- Each part from one of two points, and one of them is crossed over.
function methods.crossover(self, a, b, random)
  local chosen = any_part(self, random)
  return each(self, function(part, i)
    if i == chosen then return part:crossover(a.points[i], b.points[i], random) end
    return random:chance(0.5) and a.points[i] or b.points[i]
  end)
end

--- Any point.
function methods.random(self, random)
  return each(self, function(part) return part:random(random) end)
end

-- --------------------------------------------------------------- parts by themselves

--- Whether the last part is one that strategy 'separate' can measure by parts.
function methods.last_is_separate(self) return self.parts[#self.parts].separate ~= nil end

-- The share of the trials for parts before the kernels.
local SHARE_OF_PARTS = 0.3

-- The best point, or the base.
local function best_of(self, search)
  return search.best and search.best.point or self:start()[1]
end

-- Tries points that differ from the best one in a part before the last.
local function search_parts(self, search)
  local last = self.parts[#self.parts]
  local tries = math.floor(search.trials * SHARE_OF_PARTS)
  local deadline = search.begun + search.seconds * SHARE_OF_PARTS
  for _ = 1, #self.changing > 1 and tries or 0 do
    if not search.replay and core.clock() > deadline then return end
    local best = best_of(self, search)
    local point
    repeat
      point = self:mutate(best, search.random)
    until last:text(point.points[#self.parts]) == last:text(best.points[#self.parts])
    if not search:costs_in_time { point } then return end
  end
end

--- Searches the parts before the last one, then the kernels of the best program, each by itself.
function methods.separate(self, search)
  search_parts(self, search)
  local best, n = best_of(self, search), #self.parts
  local mod = self.mod
  for _, i in ipairs(order_of(self, best.points)) do
    if i < n then mod = apply_part(self.parts[i], mod, best.points[i]) end
  end
  local last = require "perilune.tune.search.kernel_space".new(mod, "pl.tune.search")
  require "perilune.tune.search.kernel_search".run(search, last, function(schedules, effort)
    local point = each(self, function(_, i)
      return i == n and last:make(schedules) or best.points[i]
    end)
    search:costs_of({ point }, effort)
  end)
end

-- ------------------------------------------------------------------- decisions

--- The numbers of choices of all parts.
function methods.choices(self)
  local list = {}
  for _, part in ipairs(self.parts) do
    for _, n in ipairs(part:choices()) do list[#list + 1] = n end
  end
  return list
end

--- An iterator over the points of all parts; those of the last part vary fastest.
function methods.points(self)
  local nexts, now = {}, {}
  return function()
    local i = #now == 0 and 1 or #self.parts
    while i >= 1 do
      nexts[i] = nexts[i] or enumeration.points(self.parts[i])
      now[i] = nexts[i]()
      if not now[i] then
        nexts[i], i = nil, i - 1
      elseif i == #self.parts then
        return join(self, table.move(now, 1, i, 1, {}))
      else
        i = i + 1
      end
    end
    nexts, now = {}, {}
    return nil
  end
end

--- The point of all decisions.
function methods.of_decisions(self, decisions)
  local begin = 1
  return each(self, function(part)
    local n = #part:choices()
    local own = table.move(decisions, begin, begin + n - 1, 1, {})
    begin = begin + n
    return part:of_decisions(own)
  end)
end

-- ---------------------------------------------------------------- constructors

-- A pipeline that is always the same.
local fixed = { __index = {
  text = function(self) return self.pipeline end,
  start = function() return { {} } end,
  random = function() return {} end,
  choices = function() return {} end,
  of_decisions = function() return {} end,
  mutate = function(_, point) return point end,
  crossover = function(_, point) return point end,
} }

--- A part with one point: the pipeline of that text.
function space.fixed(text) return setmetatable({ pipeline = text }, fixed) end

--- The space of parts, which work on `mod` one after the other; `kind` is its name in records.
function space.new(mod, parts, kind)
  local self = setmetatable({ kind = kind, mod = mod, parts = parts, changing = {},
    pipelines = true }, class)
  for i, part in ipairs(parts) do
    if getmetatable(part) ~= fixed then self.changing[#self.changing + 1] = i end
    self.pipelines = self.pipelines and part.kind ~= "knobs" and part.kind ~= "schedule"
  end
  return self
end

--- The module that the text of a point makes; `kinds`: the names of its parts.
function space.apply(mod, text, kinds)
  local texts = json.decode(text)
  if type(texts) ~= "table" or #texts ~= #kinds then
    core.raise(core.diag("unsupported", "the record of a joint space has not one text for each "
      .. "of its spaces"))
  end
  for i, kind in ipairs(kinds) do
    local apply = kind == "schedule" and require "perilune.tune.search.schedule_space".apply
      or pipeline_space.apply
    mod = apply(mod, texts[i])
  end
  return mod
end

return space
