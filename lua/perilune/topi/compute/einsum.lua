-- The compute of einsum, "ij,jk->ik": a sum over the letters that the result has not. Axes of "..."
-- broadcast; a letter that stands twice in a term is a diagonal.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local te = require "perilune.te"

local compute = {}

-- The labels of a term's axes: letters, and for the axes of "..." their numbers from the last.
local function labels_of(term, rank)
  local before, behind = term:match "^(%a*)%.%.%.(%a*)$"
  local labels = {}
  for letter in (before or term):gmatch "%a" do labels[#labels + 1] = letter end
  if before then
    for i = rank - #before - #behind, 1, -1 do labels[#labels + 1] = i end
    for letter in behind:gmatch "%a" do labels[#labels + 1] = letter end
  end
  return labels
end

-- Without an arrow: the axes of "...", then the letters that stand once, sorted.
local function implicit(terms, most)
  local count, letters, labels = {}, {}, {}
  for _, term in ipairs(terms) do
    for letter in term:gmatch "%a" do count[letter] = (count[letter] or 0) + 1 end
  end
  for letter, n in pairs(count) do
    if n == 1 then letters[#letters + 1] = letter end
  end
  table.sort(letters)
  for i = most, 1, -1 do labels[#labels + 1] = i end
  return table.move(letters, 1, #letters, #labels + 1, labels)
end

-- The labels of each operand, the extent of each label, the number of axes of "...".
local function read(terms, inputs)
  local labels, extents, most = {}, {}, 0
  for i, x in ipairs(inputs) do
    labels[i] = labels_of(terms[i], x.ndim)
    if #labels[i] ~= x.ndim then return nil end
    for axis, label in ipairs(labels[i]) do
      local extent = dims.of(x)[axis]
      if not extents[label] or extents[label] == 1 then extents[label] = extent end
      if math.type(label) == "integer" then most = math.max(most, label) end
    end
  end
  return labels, extents, most
end

-- The index of an operand: places of its labels; an extent of 1 gives way.
local function index_of(x, labels, place)
  local index = {}
  for axis, dim in ipairs(dims.of(x)) do index[axis] = dim == 1 and 0 or place[labels[axis]] end
  return x[index]
end

compute.einsum = function(attrs, inputs, out_type)
  local left, right = attrs.equation:gsub(" ", ""):match "^(.-)%->(.*)$"
  left = left or attrs.equation:gsub(" ", "")
  local terms = {}
  for term in (left .. ","):gmatch "(.-)," do terms[#terms + 1] = term end
  if inputs[1].dtype == "bool" then return nil, "of bools" end
  local labels, extents, most = read(terms, inputs)
  if not labels or #terms ~= #inputs then return nil, "these ranks" end
  local result = right and labels_of(right, #right:gsub("%.", "") + most)
    or implicit(terms, most)
  local place, axes = {}, {}
  for _, label in ipairs(result) do place[label] = true end
  for _, list in ipairs(labels) do
    for _, label in ipairs(list) do
      if not place[label] then
        axes[#axes + 1] = te.reduce_axis({ 0, extents[label] }, "k" .. #axes)
        place[label] = axes[#axes].var
      end
    end
  end
  local sum = dims.compute(out_type.shape, function(index)
    local own = setmetatable({}, { __index = place })
    for i, label in ipairs(result) do own[label] = index[i] end
    local product = index_of(inputs[1], labels[1], own)
    for i = 2, #inputs do product = product * index_of(inputs[i], labels[i], own) end
    return #axes > 0 and te.sum(product, axes) or product
  end, "T_einsum", #axes > 0 and "comm_reduce" or "injective")
  return elementwise.identity(sum)
end

return compute
