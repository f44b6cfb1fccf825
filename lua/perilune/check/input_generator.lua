--- Arguments made up for a function, for pl.check: round after round with other
-- sizes of open dims and other kinds of numbers.

local core = require "perilune.core"
core.internal()

local generator = {}

-- What the rounds look like, over and over. Sizes are those of the first, the
-- second, ... symbolic dim; integers of the second round may be indices.
local rounds = {
  { kind = "ordinary", sizes = { 2, 3, 4 } },
  { kind = "small", sizes = { 1 } },
  { kind = "special", sizes = { 3, 2, 5 } },
  { kind = "ordinary", sizes = { 0 } },
  { kind = "small", sizes = { 4, 2, 1 } },
  { kind = "ordinary", sizes = { 7, 5, 6 } },
}

-- The last axes of images have so many times as many elements.
local SPATIAL = 8

--- The kind of numbers of that round (from 1).
function generator.kind(number) return rounds[(number - 1) % #rounds + 1].kind end

--- The sizes that the round wants of the variables of a search (perilune.sizes), and
-- whether they are 0.
function generator.wanted(search, number)
  local plan, x, named = rounds[(number - 1) % #rounds + 1].sizes, {}, 0
  for v, var in ipairs(search.vars) do
    if var.name then named = named + 1 end
    local size = plan[((var.name and named or 1) - 1) % #plan + 1]
    x[v] = var.is_rank and 2 or var.open and size + var.axis - 1
      or size * (var.spatial and SPATIAL or 1)
  end
  return x, plan[1] == 0
end

-- Sizes to look for a run with, when inference admits none or those that it admits
-- are refused: one for all dims, or a large one for one of them, as for the samples
-- of a sound.
local few, large = 8, { 16, 64, 512, 4096 }

-- Arguments of more elements are not made on such a search.
local MOST = 1 << 24

local function of_size(search, size_of)
  local x = {}
  for v, var in ipairs(search.vars) do x[v] = var.is_rank and 2 or size_of(v) end
  return x
end

--- Sizes to try, one after another.
function generator.others(search)
  return coroutine.wrap(function()
    for size = 1, few do
      coroutine.yield(of_size(search, function() return size end))
    end
    for _, size in ipairs(large) do
      for k = math.min(#search.vars, few), 1, -1 do
        coroutine.yield(of_size(search, function(v) return v == k and size or 2 end))
      end
    end
  end)
end

--- The sizes that generator.others tries, as a text.
generator.tried = "0 to 8, 16, 64, 512, 4096"

local function is_integer(dtype) return dtype:match "^u?int" ~= nil end

local function tensor(type_, shape, round, seed)
  if type_.kind ~= "tensor" or not type_.dtype or not shape then
    return nil, core.diag("unsupported",
      ("no argument can be made of type %s"):format(tostring(type_)))
  end
  local count = 1.0
  for axis, dim in ipairs(shape) do
    if type(dim) ~= "number" or dim < 0 then
      return nil, core.diag("unsupported", ("no argument can be made of type %s: its dimension "
        .. "%d would be %s"):format(tostring(type_), axis - 1, dim))
    end
    count = count * dim
  end
  if round.search and count > MOST then
    return nil, core.diag("limit",
      ("an argument would have %.0f elements, which is too many"):format(count))
  end
  local kind = round.indices and is_integer(type_.dtype) and "small" or round.kind
  return core.generate_input(type_.dtype, shape, kind, seed)
end

--- A value of the type; nil and a diagnostic when none can be made. A sequence
-- has two elements. `shape` is that of the tensors, or false. `round`: the kind of
-- numbers; `indices`, whether integers may be indices whatever the kind; `search`,
-- whether large ones are refused.
function generator.value(type_, shape, round, seed)
  if type_.kind == "optional" then type_ = type_.parts[1] end
  if type_.kind ~= "sequence" then return tensor(type_, shape, round, seed) end
  local first, diag = tensor(type_.parts[1], shape, round, seed)
  if not first then return nil, diag end
  return { first, (tensor(type_.parts[1], shape, round, ~seed)) }
end

return generator
