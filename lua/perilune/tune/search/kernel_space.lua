--- The space of kernels: how the fused functions of a model become generated C, each by itself:
-- Winograd's transforms, tiles, panels of weights, the order of loops, the compiler and its level.
--
-- What there is to decide is what LowerTE asks for (perilune.topi.decision); it depends on what was
-- decided before: a convolution that is transformed has other tiles. The text of a point is a
-- pipeline of AnnotateSchedules, "" for the defaults.

local argument = require "perilune.argument"
local core = require "perilune.core"
local decision = require "perilune.topi.decision"
local pipeline_space = require "perilune.tune.search.pipeline_space"
core.internal()

local space = {}

local methods = {}
local class = { __name = "kernel space", __index = methods }

-- Kernels of the module that FuseOps made, as LowerTE makes them by these decisions. only: a key,
-- or true for all.
local function kernels_of(fused, schedules, only)
  local list = {}
  require "perilune.topi.lower_te"(fused, { layout = "NCHWc", winograd = "on", only = only,
    vector_bytes = core.c_native_vector_bytes(), schedules = schedules,
    on_kernel = function(kernel) list[#list + 1] = kernel end })
  return list
end

--- The kernel of that key by these decisions: { name, key, fn, decisions }.
function methods.lower(self, key, chosen)
  return kernels_of(self.fused, { [key] = chosen }, key)[1]
end

-- ---------------------------------------------------------------------- points

--- A point of decisions by key and name.
function methods.make(_, schedules)
  local text = decision.text(schedules)
  return { schedules = schedules,
    text = text == "" and "" or ('AnnotateSchedules{decisions="%s"}'):format(text) }
end

--- The pipeline of a point.
function methods.text(_, point) return point.text end

--- The points to begin with: the defaults.
function methods.start(self) return { self:make {} } end

local function copy(schedules)
  local out = {}
  for key, own in pairs(schedules) do
    out[key] = {}
    for name, text in pairs(own) do out[key][name] = text end
  end
  return out
end

local function decide(schedules, row, choice)
  local own = schedules[row.key] or {}
  schedules[row.key] = own
  own[row.name] = choice > 1 and row.candidates[choice] or nil
end

--- A point that differs in one decision.
function methods.mutate(self, point, random)
  local schedules, row = copy(point.schedules), random:element(self.rows)
  decide(schedules, row, random:integer(#row.candidates))
  return self:make(schedules)
end

--- Each kernel from one of two points.
function methods.crossover(self, a, b, random)
  local schedules = {}
  for _, kernel in ipairs(self.kernels) do
    local from = random:chance(0.5) and a or b
    schedules[kernel.key] = from.schedules[kernel.key]
  end
  return self:make(copy(schedules))
end

--- Any point.
function methods.random(self, random)
  local schedules = {}
  for _, row in ipairs(self.rows) do decide(schedules, row, random:integer(#row.candidates)) end
  return self:make(schedules)
end

--- The numbers of choices of decisions that the defaults ask for.
function methods.choices(self)
  local list = {}
  for i, row in ipairs(self.rows) do list[i] = #row.candidates end
  return list
end

--- The point of these decisions.
function methods.of_decisions(self, decisions)
  local schedules = {}
  for i, choice in ipairs(decisions) do decide(schedules, self.rows[i], choice) end
  return self:make(schedules)
end

--- The same decisions for another program: those for kernels that it does not have do nothing.
function methods.rebase(_, _, point) return point end

--- Whether the last part is one that strategy 'separate' can measure by parts.
function methods.last_is_separate() return true end

--- Tunes each kernel by itself, then what was found together.
function methods.separate(self, search)
  require "perilune.tune.search.kernel_search".run(search, self, function(schedules, effort)
    search:costs_of({ self:make(schedules) }, effort)
  end)
end

--- The module of a point.
function methods.apply(_, mod, point) return pipeline_space.apply(mod, point.text) end

-- ---------------------------------------------------------------- constructor

local function check_model(mod, where)
  local model = require "perilune.codegen.model"
  if not model.is_model(mod) then
    argument.fail(where .. ": space: kernels: a model expected: a program with a function @main of "
      .. "Relay's operators")
  end
  return model
end

--- The space of the kernels of a model.
function space.new(mod, where)
  local model = check_model(mod, where)
  local self = setmetatable({ kind = "kernels", fused = model.fused(mod), rows = {},
    bytes = require "perilune.tune.measure".bytes(mod) }, class)
  self.kernels = kernels_of(self.fused, {}, true)
  for _, kernel in ipairs(self.kernels) do
    for _, row in ipairs(kernel.decisions) do
      self.rows[#self.rows + 1] = { key = kernel.key, name = row.name, candidates = row.candidates }
    end
  end
  if #self.rows == 0 then
    argument.fail(where .. ": space: kernels: nothing is to be decided: there are no kernels")
  end
  return self
end

return space
