--- The space of pipelines: order, presence and options of passes.
--
-- A point is a list of elements (pipeline texts) that run in rounds until nothing changes, or
-- the text of a whole pipeline. The space begins at a base pipeline; further passes come
-- from a pool.

local argument = require "perilune.argument"
local core = require "perilune.core"
core.internal()

local space = {}

local methods = {}
local class = { __name = "pipeline space", __index = methods }

local MOST_ROUNDS = 20

-- Passes that keep what a model computes, beside those of the base pipeline.
local graph_pool = {
  "SimplifyExpr", "FoldConstant", 'FoldConstant{fold="all"}', "CanonicalizeOps", "CanonicalizeCast",
  "CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul",
  "CombineParallelOps", "ForwardFoldScaleAxis", "BackwardFoldScaleAxis", "SimplifyInference",
  "FoldExplicitPadding", "FuseOnnxOps", "EliminateCommonSubexpr", "DeadCodeElimination",
  "DynamicToStatic", "SlicesToSplit", "FlattenRows",
}
local loop_pool = {
  "tir.Simplify", "tir.LoopPartition", "tir.UnrollLoop", "tir.VectorizeLoop", "tir.RemoveNoOp",
  "tir.HoistIfThenElse", "tir.HoistExpression", "tir.CommonSubexprElimTIR", "tir.StorageRewrite",
}

-- ------------------------------------------------------------------- elements

-- The primitive passes of a pass, in order, as texts, each once.
local function add_elements(pass, list, seen)
  if pass.form == "primitive" then
    local text = tostring(pass)
    if not seen[text] then
      seen[text] = true
      list[#list + 1] = text
    end
  end
  for _, element in ipairs(pass.passes or {}) do add_elements(element, list, seen) end
end

local function is_known(text)
  local name = text:match "^[%w_.]+"
  return name ~= nil and core.registered(name)
end

-- Other texts of an element: booleans that flip, choices that change, numbers within bounds.
local function values_of(row, value)
  if row.type == "boolean" then return { not value } end
  local list = {}
  for choice in (row.choices or ""):gmatch "[^|]+" do
    if choice ~= value then list[#list + 1] = choice end
  end
  if row.type == "integer" and row.least and row.most then
    for _, x in ipairs { value // 2, value * 2, value - 1, value + 1 } do
      if x ~= value and x >= row.least and x <= row.most then list[#list + 1] = x end
    end
  end
  return list
end

local function pass_of(text)
  local pass = core.pipeline(text)
  while pass.form ~= "primitive" do pass = pass.passes[1] end
  return pass
end

-- Every text that differs from the element in one option.
local function variants_of(text)
  local ok, pass = pcall(pass_of, text)
  local list = {}
  if not ok or not core.registered(pass.name) then return list end
  local given = {}
  for _, row in ipairs(pass.option_rows) do
    local value = pass.options[row.name]
    if value ~= nil then given[row.name] = value end
  end
  for _, row in ipairs(pass.option_rows) do
    local value = given[row.name]
    if value == nil then value = row.default end
    for _, other in ipairs(values_of(row, value)) do
      local options = {}
      for name, x in pairs(given) do options[name] = x end
      options[row.name] = other
      local made, variant = pcall(core.make, pass.name, options)
      if made then list[#list + 1] = tostring(variant) end
    end
  end
  return list
end

local function variants(self, text)
  self.variants[text] = self.variants[text] or variants_of(text)
  return self.variants[text]
end

-- --------------------------------------------------------------------- points

--- The text of a point: a pipeline, "" for none.
function methods.text(_, point)
  if point.text then return point.text end
  local list = table.concat(point.elements, ",")
  if #point.elements == 0 or point.rounds == 1 then return list end
  return ("fixpoint(%d){%s}"):format(point.rounds, list)
end

--- The module that the point makes.
function methods.apply(self, mod, point) return space.apply(mod, self:text(point)) end

-- Passes that a space tries on purpose: they run whatever the context's opt_level is.
local asked_for = { ConvertLayout = true, AlterOpLayout = true, CombineParallelConv2D = true,
  CombineParallelDense = true, CombineParallelBatchMatmul = true, CombineParallelOps = true }

-- The current context, in which those of the text run too unless they are disabled.
local function context_for(text)
  local now, settings, required, known = core.current(), {}, {}, {}
  for _, list in ipairs { now.required, now.disabled } do
    for _, name in ipairs(list) do known[name] = true end
  end
  for name in text:gmatch "%a[%w_.]*" do
    if asked_for[name] and not known[name] then
      required[#required + 1], known[name] = name, true
    end
  end
  if #required == 0 then return now end
  table.move(now.required, 1, #now.required, #required + 1, required)
  for key, value in pairs(now.config) do settings[key] = value end
  return core.context { opt_level = now.opt_level, required = required,
    disabled = now.disabled, only = #now.only > 0 and now.only or nil,
    instruments = now.instruments, config = settings }
end

--- The module that the text of a point makes.
function space.apply(mod, text)
  if text == "" then return mod end
  local pass = core.pipeline(text)
  local scope <close> = context_for(text):enter()
  return pass(mod)
end

--- The points to begin with: the base pipeline, nothing, and the base's passes in rounds.
function methods.start(self)
  local list = { { text = self.base_text }, { elements = {}, rounds = 1 } }
  if #self.elements > 0 then list[3] = { elements = self.elements, rounds = MOST_ROUNDS } end
  return list
end

local function copy(self, point)
  local elements = point.elements or self.elements
  return { elements = table.move(elements, 1, #elements, 1, {}), rounds = point.rounds
    or MOST_ROUNDS }
end

local mutations = {
  drop = function(_, point, random)
    if #point.elements > 0 then table.remove(point.elements, random:integer(#point.elements)) end
  end,
  insert = function(self, point, random)
    table.insert(point.elements, random:integer(#point.elements + 1), random:element(self.pool))
  end,
  move = function(_, point, random)
    local n = #point.elements
    if n < 2 then return end
    table.insert(point.elements, random:integer(n), table.remove(point.elements, random:integer(n)))
  end,
  option = function(self, point, random)
    local n = #point.elements
    if n == 0 then return end
    local i = random:integer(n)
    local others = variants(self, point.elements[i])
    if #others > 0 then point.elements[i] = random:element(others) end
  end,
  rounds = function(_, point, random)
    point.rounds = random:element { 1, 2, 3, MOST_ROUNDS }
  end,
}
local mutation_names = { "drop", "drop", "insert", "insert", "move", "option", "rounds" }

--- A point that differs from this one a little.
function methods.mutate(self, point, random)
  local out = copy(self, point)
  for _ = 1, random:integer(2) do mutations[random:element(mutation_names)](self, out, random) end
  return out
end

--- The beginning of one point and the end of another.
function methods.crossover(self, a, b, random)
  local x, y = copy(self, a), copy(self, b)
  local cut, elements = random:integer(#x.elements + 1) - 1, {}
  table.move(x.elements, 1, cut, 1, elements)
  table.move(y.elements, math.min(cut, #y.elements) + 1, #y.elements, #elements + 1, elements)
  return { elements = elements, rounds = random:element { x.rounds, y.rounds } }
end

--- Any point: some of the pool's passes in any order.
function methods.random(self, random)
  local order, elements = random:shuffled(self.pool), {}
  for _, text in ipairs(order) do
    if random:chance(0.5) then elements[#elements + 1] = text end
  end
  return { elements = elements, rounds = random:element { 1, MOST_ROUNDS } }
end

-- ------------------------------------------------------------------ decisions

--- The numbers of choices of decisions: each pass of the pool is there or not.
function methods.choices(self)
  local list = {}
  for i in ipairs(self.pool) do list[i] = 2 end
  return list
end

--- The point of decisions: numbers from 1 on, 1: the pass is there.
function methods.of_decisions(self, decisions)
  local elements = {}
  for i, text in ipairs(self.pool) do
    if decisions[i] == 1 then elements[#elements + 1] = text end
  end
  return { elements = elements, rounds = MOST_ROUNDS }
end

-- ---------------------------------------------------------------- constructor

--- The space around a pass (the base pipeline); `pool`: texts of further passes, otherwise those
-- that fit the kind of module.
function space.new(mod, base, pool)
  local self = setmetatable({ kind = "pipeline", base_text = tostring(base), elements = {},
    pool = {}, variants = {} }, class)
  local ok, reason = pcall(core.pipeline, self.base_text)
  if not ok then
    argument.fail("the base pipeline has no text that makes it anew: " .. tostring(reason))
  end
  local seen = {}
  add_elements(base, self.elements, seen)
  table.move(self.elements, 1, #self.elements, 1, self.pool)
  local loops = require "perilune.tir.check".is_loop_level(mod)
  for _, text in ipairs(pool or (loops and loop_pool or graph_pool)) do
    if not pool and not is_known(text) then goto continue end
    core.pipeline(text) -- raises when it is none
    if not seen[text] then
      seen[text] = true
      self.pool[#self.pool + 1] = text
    end
    ::continue::
  end
  if #self.pool == 0 then argument.fail "the space has no passes" end
  return self
end

return space
