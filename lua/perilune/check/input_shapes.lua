--- Sizes for the dims of a function's parameters that its operators admit.
--
--     local search = sizes.new(types, fn, module, { dims = { N = 1 } })
--     local base = search:base()        -- nil: none was found
--     search:shapes(search:near(base, sizes.wanted(search, 3)))
--
-- Nothing is computed: the function is typed for numbers in place of its symbols
-- (core.try_types), which says at which node they do not fit. From there the
-- search climbs: it changes one size, or several alike, until an operator further
-- down is reached. Numbers come from what the node works with (channels of
-- weights, constants of a Reshape, kernels) and from a ladder of small ones, least
-- first. The result is the same on every machine: work is counted in nodes typed.

local core = require "perilune.core"
core.internal()

local sizes = {}
local class = {}
class.__index = class

-- Nodes typed in one search, at 0.5 us or so each.
local BUDGET = 1000000
-- No tensor of more elements is asked for on the way.
local MOST = 1 << 24
-- Sizes that a round wants do not make arguments larger than this.
local LARGE = 1 << 19
-- The most variables, and the most numbers, that are tried in pairs.
local FEW = 8

local ladder = {}
for size = 1, 64 do ladder[#ladder + 1] = size end
for size = 72, 512, 8 do ladder[#ladder + 1] = size end
for _, size in ipairs { 640, 768, 1024, 1536, 2048, 3000, 4096, 8192, 16000, 16384 } do
  ladder[#ladder + 1] = size
end

-- A parameter of unknown rank: the ranks in the order in which they are tried.
local ranks = { 2, 1, 3, 4, 0, 5 }

-- ------------------------------------------------------------------ variables

local function tensor_of(type_)
  while type_ and (type_.kind == "optional" or type_.kind == "sequence") do
    type_ = type_.parts[1]
  end
  return type_ and type_.kind == "tensor" and type_ or nil
end

-- Images and the like: their last axes want more than two or three elements.
local function is_spatial(rank, axis) return rank >= 4 and axis >= 3 end

local function add(self, var)
  self.vars[#self.vars + 1] = var
  return #self.vars
end

local function add_named(self, names)
  local rank = #names
  for axis, name in ipairs(names) do
    if name and not self.named[name] and not self.fixed[name] then
      self.named[name] = add(self, { name = name, axis = axis, spatial = is_spatial(rank, axis) })
    end
  end
end

-- What the symbols do not tell: `?`, and expressions of symbols that are nowhere
-- alone.
local function add_unnamed(self, i, type_, known)
  local shape, given = core.type_sizes(type_, known), self.given[i] or {}
  for axis, dim in ipairs(shape) do
    if type(dim) ~= "number" and type(given[axis]) ~= "number" then
      self.at[i][axis] = add(self, { param = i, axis = axis, spatial = is_spatial(#shape, axis) })
    end
  end
end

local function add_open(self, i)
  self.rank_of[i] = add(self, { param = i, is_rank = true })
  for axis = 1, 5 do self.at[i][axis] = add(self, { param = i, axis = axis, open = true }) end
end

local function add_variables(self)
  for _, type_ in ipairs(self.tensors) do
    if type_ then add_named(self, core.type_symbols(type_) or {}) end
  end
  local known = {}
  for name in pairs(self.named) do known[name] = 2 end
  for name, size in pairs(self.fixed) do known[name] = size end
  for i, type_ in ipairs(self.tensors) do
    if type_ and type_.shape then
      add_unnamed(self, i, type_, known)
    elseif type_ and not self.given[i] then
      add_open(self, i)
    end
  end
end

-- Which variables stand in a parameter's shape.
local function find_uses(self)
  for i, type_ in ipairs(self.tensors) do
    local used = {}
    for _, name in ipairs(type_ and core.type_symbols(type_) or {}) do
      if name and self.named[name] then used[self.named[name]] = true end
    end
    for _, v in pairs(self.at[i]) do used[v] = true end
    if self.rank_of[i] then used[self.rank_of[i]] = true end
    self.used[i] = used
  end
end

--- The variables of the parameters' types. `options.dims`: sizes of named dims that
-- stay; `options.shapes`: of parameters by position, "?" for dims that are open. Without
-- a function nothing is tried.
function sizes.new(types, fn, module, options)
  local self = setmetatable({ types = types, fn = fn, module = module, vars = {}, named = {},
    fixed = options and options.dims or {}, given = options and options.shapes or {},
    tensors = {}, at = {}, rank_of = {}, used = {},
    known = {}, spent = 0 }, class)
  for i, type_ in ipairs(types) do
    self.tensors[i], self.at[i] = tensor_of(type_) or false, {}
  end
  add_variables(self)
  find_uses(self)
  return self
end

--- The names of the variables that are symbolic dims.
function class.names(self)
  local names = {}
  for _, var in ipairs(self.vars) do names[#names + 1] = var.name end
  return names
end

-- --------------------------------------------------------------------- shapes

local function sizes_by_name(self, x)
  local known = {}
  for name, size in pairs(self.fixed) do known[name] = size end
  for name, v in pairs(self.named) do known[name] = x[v] end
  return known
end

local function shape_of(self, i, known, x)
  local type_, shape = self.tensors[i], {}
  if self.rank_of[i] then
    for axis = 1, x[self.rank_of[i]] do shape[axis] = x[self.at[i][axis]] end
    return shape
  end
  shape = core.type_sizes(type_, known) or {}
  for axis, size in ipairs(self.given[i] or {}) do
    if type(size) == "number" then shape[axis] = size end
  end
  for axis, v in pairs(self.at[i]) do shape[axis] = x[v] end
  return shape
end

--- The shapes of the parameters for such sizes (a list, one a variable); false for
-- what is no tensor.
function class.shapes(self, x)
  local known, shapes = sizes_by_name(self, x), {}
  for i, type_ in ipairs(self.tensors) do
    shapes[i] = type_ and shape_of(self, i, known, x)
  end
  return shapes
end

-- The elements of all parameters.
local function elements(shapes)
  local total = 0.0
  for _, shape in ipairs(shapes) do
    local count = 1.0
    for _, dim in ipairs(shape or {}) do
      if type(dim) ~= "number" or dim < 0 then return math.huge end
      count = count * dim
    end
    total = total + count
  end
  return total
end

local function typed(type_, shape)
  if type_.kind == "optional" or type_.kind == "sequence" then
    return core.type_make(type_.kind, nil, { typed(type_.parts[1], shape) })
  end
  return core.type(("Tensor[(%s), %s]"):format(table.concat(shape, ", "), type_.dtype or "?"))
end

-- --------------------------------------------------------------------- trials

local impossible = { failed = -1, message = "the arguments are too large", numbers = {},
  params = {} }

local function try_types(self, shapes)
  local types = {}
  for i, type_ in ipairs(self.types) do
    types[i] = shapes[i] and typed(type_, shapes[i]) or type_
  end
  local trial = core.try_types(self.fn, types, self.module)
  self.spent = self.spent + trial.typed
  return trial
end

--- What typing for these sizes comes to: see core.try_types.
function class.try(self, x)
  local key = table.concat(x, ",")
  local trial = self.known[key]
  if not trial then
    local shapes = self:shapes(x)
    trial = elements(shapes) <= MOST and try_types(self, shapes) or impossible
    self.known[key] = trial
  end
  return trial
end

-- How far typing gets; infinite when all fits. What is empty fits, at least.
local function reach(trial)
  return math.min(trial.failed or math.huge, trial.empty and trial.empty + 0.5 or math.huge)
end

-- --------------------------------------------------------------------- climbing

local function copy(x) return table.move(x, 1, #x, 1, {}) end

local function with(x, group, size)
  local y = copy(x)
  for _, v in ipairs(group) do y[v] = size end
  return y
end

-- Variables, other than ranks, of the parameters that the trial tells of.
local function involved(self, trial)
  local list, seen = {}, {}
  for i, used in ipairs(self.used) do
    for v in pairs(trial.params[i] and used or {}) do
      if not seen[v] then list[#list + 1], seen[v] = v, true end
    end
  end
  table.sort(list)
  return list
end

local function select_from(self, list, wanted)
  local group = {}
  for _, v in ipairs(list) do
    if wanted(self.vars[v]) then group[#group + 1] = v end
  end
  return group
end

-- Groups of variables that may have to change together.
local function groups_of(self, list)
  local groups = { select_from(self, list, function(var) return var.spatial end) }
  for axis = 1, 6 do
    groups[#groups + 1] = select_from(self, list, function(var) return var.axis == axis end)
  end
  groups[#groups + 1] = select_from(self, list, function(var) return not var.is_rank end)
  return groups
end

local function over(self) return self.spent > BUDGET end

-- What a trial complains of, whatever the numbers.
local function complaint(trial)
  local text = (trial.message or ""):gsub(": in .*", ""):gsub("%-?%d+", "#")
  return ("%d: %s"):format(trial.failed or -1, text)
end

-- Keeps in `best` what reaches further than anything before; beside it what comes as
-- far, but is refused for a reason that is new: a node may ask for several things.
local function offer(self, best, y)
  local trial = self:try(y)
  if reach(trial) > best.reach then
    best.x, best.trial, best.reach = y, trial, reach(trial)
  elseif reach(trial) == best.before and not best.aside and not best.seen[complaint(trial)] then
    best.aside = { x = y, trial = trial }
  end
  return best.reach == math.huge or over(self)
end

-- The first step of the ladder with which a group reaches further.
local function climb_ladder(self, best, x, group)
  local before = best.reach
  for _, size in ipairs(#group > 0 and ladder or {}) do
    if offer(self, best, with(x, group, size)) or best.reach > before then return end
  end
end

local function climb_ranks(self, best, x, list)
  for _, v in ipairs(list) do
    for _, rank in ipairs(self.vars[v].is_rank and ranks or {}) do
      if offer(self, best, with(x, { v }, rank)) then return end
    end
  end
end

-- What the node works with, as the size of each variable.
local function climb_numbers(self, best, x, list, numbers)
  for _, v in ipairs(list) do
    for _, number in ipairs(self.vars[v].is_rank and {} or numbers) do
      if offer(self, best, with(x, { v }, number)) then return end
    end
  end
end

local function multiples(numbers)
  local list, seen = {}, {}
  for i = 1, math.min(#numbers, 2 * FEW) do
    for _, size in ipairs { numbers[i] - 1, numbers[i] + 1, 2 * numbers[i], 4 * numbers[i],
      8 * numbers[i], 16 * numbers[i], 32 * numbers[i], 64 * numbers[i] } do
      if not seen[size] and size > 0 then list[#list + 1], seen[size] = size, true end
    end
  end
  return list
end

local function climb_pairs(self, best, x, list, numbers)
  if #list > FEW then return end
  for a = 1, #list - 1 do
    for b = a + 1, #list do
      for i = 1, math.min(#numbers, FEW) do
        for k = 1, math.min(#numbers, FEW) do
          local y = with(x, { list[a] }, numbers[i])
          y[list[b]] = numbers[k]
          if offer(self, best, y) then return end
        end
      end
    end
  end
end

-- Sizes that reach further than `x`, those of the first kind of change that does.
local function steps(self, best, x, trial)
  local list, numbers = involved(self, trial), trial.numbers
  local plain = select_from(self, list, function(var) return not var.is_rank end)
  local function done() return best.reach > best.before or best.aside or over(self) end
  climb_ranks(self, best, x, list)
  if not done() then climb_numbers(self, best, x, list, numbers) end
  for _, group in ipairs(done() and {} or groups_of(self, list)) do
    if done() then return end
    climb_ladder(self, best, x, group)
  end
  for _, v in ipairs(plain) do
    if done() then return end
    climb_ladder(self, best, x, { v })
  end
  if not done() then climb_numbers(self, best, x, list, multiples(numbers)) end
  if not done() then climb_pairs(self, best, x, plain, numbers) end
end

local function climb(self, x)
  local trial, seen = self:try(x), {}
  while reach(trial) < math.huge and not over(self) do
    seen[complaint(trial)] = true
    local best = { reach = reach(trial), before = reach(trial), seen = seen }
    steps(self, best, x, trial)
    local next_one = best.x and best or best.aside
    if not next_one then break end
    x, trial = next_one.x, next_one.trial
  end
  return x, trial
end

-- ----------------------------------------------------------------------- base

local function default(self)
  local x = {}
  for v, var in ipairs(self.vars) do
    x[v] = var.spatial and 16 or var.open and var.axis + 1 or 2
  end
  return x
end

--- The sizes that shapes by parameter (nil: not known) tell; others are taken from
-- `otherwise` or are small.
function class.of_shapes(self, shapes, otherwise)
  local x = copy(otherwise or default(self))
  for i, type_ in ipairs(self.tensors) do
    local shape = type_ and shapes[i]
    local names = shape and core.type_symbols(type_) or {}
    if shape and self.rank_of[i] then x[self.rank_of[i]] = #shape end
    for axis, size in ipairs(shape or {}) do
      local v = names[axis] and self.named[names[axis]] or self.at[i][axis]
      if v then x[v] = size end
    end
  end
  return x
end

-- Where the search begins again when it comes to no end: with a batch of 1 and small
-- images, and with images of the usual size.
local function starts(self, start)
  local list = { start }
  for _, spatial in ipairs { 16, 224 } do
    local x = copy(start)
    for v, var in ipairs(self.vars) do
      if var.spatial then x[v] = spatial elseif var.axis == 1 then x[v] = 1 end
    end
    list[#list + 1] = x
  end
  return list
end

--- Sizes with which the function can be typed, or nil and what refuses those that
-- come furthest. `shapes` is where the search begins: it is kept when it fits.
function class.base(self, shapes)
  local first = shapes and self:of_shapes(shapes) or default(self)
  if not self.fn or #self.vars == 0 then return first end
  local best
  for _, start in ipairs(starts(self, first)) do
    local x, trial = climb(self, start)
    if not best or reach(trial) > reach(best.trial) then best = { x = x, trial = trial } end
    if reach(trial) == math.huge or over(self) then break end
  end
  if best.trial.failed then return nil, best.trial.message end
  self.tight = best.trial.empty == nil
  return best.x
end

-- -------------------------------------------------------------------- variation

-- Whether these sizes are worth a round: they fit, and nothing is empty that need
-- not be, unless sizes of 0 are asked for.
local function is_good(self, x, empty)
  local trial = self:try(x)
  if trial.failed then return false end
  return empty or not trial.results_empty and (trial.empty == nil or not self.tight)
end

local function alternatives(wanted, found)
  return { wanted, found + wanted, 2 * found, found + 1 }
end

local function move(self, x, group, wanted, found, limit)
  for k = 1, 4 do
    local y = copy(x)
    for _, v in ipairs(group) do y[v] = alternatives(wanted[v], found[v])[k] end
    if elements(self:shapes(y)) <= limit and is_good(self, y) then return y end
  end
  return x
end

--- Sizes that fit, as near to the wanted ones as a few steps from `found` lead.
function class.near(self, found, wanted)
  if not self.fn or #self.vars == 0 then return wanted end
  local limit = math.max(LARGE, elements(self:shapes(found)))
  if elements(self:shapes(wanted)) <= limit and is_good(self, wanted) then return wanted end
  local all, x = {}, found
  for v in ipairs(self.vars) do all[v] = v end
  for _, group in ipairs(groups_of(self, all)) do
    if #group > 0 then x = move(self, x, group, wanted, found, limit) end
  end
  for v, var in ipairs(self.vars) do
    if x[v] == found[v] and not var.is_rank then x = move(self, x, { v }, wanted, found, limit) end
  end
  return x
end

--- Sizes of 0 that fit: all of them, or those of the first axis; nil when there are
-- none.
function class.empty(self, found)
  local all = select_from(self, self:every(), function(var) return not var.is_rank end)
  local first = select_from(self, all, function(var) return var.axis == 1 end)
  for _, group in ipairs { all, first } do
    local x = with(found, group, 0)
    if #group > 0 and (not self.fn or is_good(self, x, true)) then return x end
  end
end

function class.every(self)
  local all = {}
  for v in ipairs(self.vars) do all[v] = v end
  return all
end

-- The sums of any two of the sizes, each once, in order.
local function sums_of(x)
  local seen, list = {}, {}
  for i = 1, #x do
    for k = i, #x do
      local sum = x[i] + x[k]
      if not seen[sum] and #list < FEW then list[#list + 1], seen[sum] = sum, true end
    end
  end
  table.sort(list)
  return list
end

--- Sizes that fit and differ from `found` in one, which is the sum of two others, as a
-- mask has the length of what is past and what is new: typing does not see indices.
function class.sums(self, found)
  return coroutine.wrap(function()
    local sums = sums_of(found)
    for v, var in ipairs(self.vars) do
      for _, sum in ipairs(sums) do
        local x = with(found, { v }, sum)
        if not var.is_rank and is_good(self, x) then coroutine.yield(x) end
      end
    end
  end)
end

-- ------------------------------------------------------------------------ text

local function shape_text(shape) return "(" .. table.concat(shape, ", ") .. ")" end

--- The sizes as a list of texts: "N=2" for symbols, "x=(2, 3)" for parameters with
-- dims that have no name.
function class.describe(self, x, names)
  local known, parts = sizes_by_name(self, x), {}
  for name, size in pairs(known) do parts[#parts + 1] = ("%s=%d"):format(name, size) end
  table.sort(parts)
  local shapes = self:shapes(x)
  for i in ipairs(self.types) do
    if next(self.at[i]) or self.given[i] then
      parts[#parts + 1] = ("%s=%s"):format(names[i], shape_text(shapes[i]))
    end
  end
  return parts
end

return sizes
