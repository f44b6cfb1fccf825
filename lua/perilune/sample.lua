--- Arguments made up for a function, for pl.check: round after round with other
-- sizes of symbolic dims and other kinds of numbers.

local core = require "perilune.core"
core.internal()

local sample = {}

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

local function strip(type_)
  while type_.kind == "optional" or type_.kind == "sequence" do type_ = type_.parts[1] end
  return type_
end

--- The names of the symbolic dims of the types, each once, but those in `fixed`.
function sample.symbols(types, fixed)
  local names, seen = {}, {}
  for name in pairs(fixed or {}) do seen[name] = true end
  for _, type_ in ipairs(types) do
    for _, name in ipairs(core.type_symbols(strip(type_)) or {}) do
      if name and not seen[name] then
        seen[name], names[#names + 1] = true, name
      end
    end
  end
  return names
end

--- The round of that number (from 1): its kind of numbers and the sizes of the
-- named dims; `fixed` has sizes that stay. `empty` tells that open sizes are 0,
-- `rest` is the size of dims without a name.
function sample.round(number, names, fixed)
  local plan = rounds[(number - 1) % #rounds + 1]
  local sizes, open = {}, false
  for name, size in pairs(fixed) do sizes[name] = size end
  for i, name in ipairs(names) do
    sizes[name], open = plan.sizes[(i - 1) % #plan.sizes + 1], true
  end
  local rest = open and plan.sizes[1] or 2
  return { kind = plan.kind, sizes = sizes, empty = rest == 0, rest = rest }
end

-- Sizes to look for a run with, when those of the rounds are refused: one for
-- all dims, or a large one for one of them, as for the samples of a sound.
local few, large = 8, { 16, 64, 512, 4096 }

-- Arguments of more elements are not made on such a search.
local MOST = 1 << 24

local function with(round, names, fixed, size_of)
  local sizes = {}
  for name, size in pairs(fixed) do sizes[name] = size end
  for i, name in ipairs(names) do sizes[name] = size_of(i) end
  return { kind = round.kind, sizes = sizes, rest = size_of(0), most = MOST }
end

--- Rounds like `round` with other sizes, one after another.
function sample.others(round, names, fixed)
  return coroutine.wrap(function()
    for size = 1, few do
      coroutine.yield(with(round, names, fixed, function() return size end))
    end
    for _, size in ipairs(large) do
      for k = #names, 0, -1 do
        coroutine.yield(with(round, names, fixed, function(i) return i == k and size or 2 end))
      end
    end
  end)
end

--- The sizes that sample.others tries, as a text.
sample.tried = "0 to 8, 16, 64, 512, 4096"

local function tensor(type_, round, seed)
  if type_.kind ~= "tensor" or not type_.dtype then
    return nil, core.diag("unsupported",
      ("no argument can be made of type %s"):format(tostring(type_)))
  end
  local shape, count = core.type_sizes(type_, round.sizes) or { 2, 3 }, 1.0
  for i, dim in ipairs(shape) do
    if type(dim) ~= "number" then shape[i] = round.rest end
    count = count * shape[i]
  end
  if round.most and count > round.most then
    return nil, core.diag("limit", ("an argument of %.0f elements is not made"):format(count))
  end
  return core.tensor_sample(type_.dtype, shape, round.kind, seed)
end

--- A value of the type; nil and a diagnostic when none can be made. A sequence
-- has two elements.
function sample.value(type_, round, seed)
  if type_.kind == "optional" then type_ = type_.parts[1] end
  if type_.kind ~= "sequence" then return tensor(type_, round, seed) end
  local first, diag = tensor(type_.parts[1], round, seed)
  if not first then return nil, diag end
  return { first, (tensor(type_.parts[1], round, ~seed)) }
end

return sample
