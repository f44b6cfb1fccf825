--- Which pairs of equal terms are equations worth a rule: one for all names of variables, and none
-- that is an instance of a more general one.

local term = require "perilune.rule.generate.term"
require "perilune.core".internal() -- errors name the scripts of others

local equations = {}

local key_of

-- The keys of the operands; those of nested calls of one associative operator together.
local function operand_keys(t, operator, names, list)
  for _, operand in ipairs(t) do
    if operator.associative and operand.operator == operator then
      operand_keys(operand, operator, names, list)
    else
      list[#list + 1] = key_of(operand, names)
    end
  end
  return list
end

-- Prefix form, which is one for all that the matcher takes to be the same: the operands of
-- commutative operators are sorted, associative ones are one call.
function key_of(t, names)
  if t.variable then return names[t.variable.name] end
  local operator = t.operator
  local list = operand_keys(t, operator, names, {})
  if operator.commutative then table.sort(list) end
  return operator.name .. "(" .. table.concat(list, ",") .. ")"
end

-- Gives each order of a list.
local function permutations(list, n, yield)
  n = n or #list
  if n <= 1 then yield(list) return end
  for i = 1, n do
    list[n], list[i] = list[i], list[n]
    permutations(list, n - 1, yield)
    list[n], list[i] = list[i], list[n]
  end
end

-- The least key of a pair over all names of its variables, whichever side comes first; nil where
-- the matcher takes both sides to be the same.
local function pair_key(pair)
  local variables, least = term.variables(pair[2], term.variables(pair[1])), nil
  permutations(variables, nil, function(order)
    local names = {}
    for i, variable in ipairs(order) do
      names[variable.name] = (variable.sort or "") .. i
    end
    local a, b = key_of(pair[1], names), key_of(pair[2], names)
    if b < a then a, b = b, a end
    local key = a .. "=" .. b
    if a ~= b and (not least or key < least) then least = key end
  end)
  return least
end

-- --------------------------------------------------------------------- matching

-- Calls yes() for each way to match a pattern; what it answers with true ends the search.
local match

local function match_operands(pattern, t, i, swap, bound, yes)
  if i > #pattern then return yes() end
  return match(pattern[i], t[swap and #pattern + 1 - i or i], bound, function()
    return match_operands(pattern, t, i + 1, swap, bound, yes)
  end)
end

function match(pattern, t, bound, yes)
  local variable = pattern.variable
  if variable then
    if variable.sort ~= term.sort(t) then return false end
    local known = bound[variable.name]
    if known then return term.equal(known, t) and yes() end
    bound[variable.name] = t
    if yes() then return true end
    bound[variable.name] = nil
    return false
  end
  if t.operator ~= pattern.operator then return false end
  if match_operands(pattern, t, 1, false, bound, yes) then return true end
  return pattern.operator.commutative and match_operands(pattern, t, 1, true, bound, yes)
end

local function is_instance(general, pair)
  for k = 1, 2 do
    local bound = {}
    local found = match(general[1], pair[k], bound, function()
      return match(general[2], pair[3 - k], bound, function() return true end)
    end)
    if found then return true end
  end
  return false
end

--- Whether a term has a part that the pattern matches.
function equations.contains(t, pattern)
  if match(pattern, t, {}, function() return true end) then return true end
  for _, operand in ipairs(t) do
    if equations.contains(operand, pattern) then return true end
  end
  return false
end

-- -------------------------------------------------------------------- selection

local function size_of(pair) return pair[1].size + pair[2].size end

--- The distinct pairs: of those that differ by names one; the smaller and more general ones first.
function equations.distinct(pairs_found)
  local seen, list = {}, {}
  for _, pair in ipairs(pairs_found) do
    local key = pair_key(pair)
    if key and not seen[key] then
      seen[key] = true
      list[#list + 1] = { pair[1], pair[2], key = key, size = size_of(pair),
        n_variables = #term.variables(pair[2], term.variables(pair[1])) }
    end
  end
  table.sort(list, function(a, b)
    if a.size ~= b.size then return a.size < b.size end
    if a.n_variables ~= b.n_variables then return a.n_variables > b.n_variables end
    return a.key < b.key
  end)
  return list
end

--- Those that are no instances of one before them.
function equations.general(list)
  local kept = {}
  for _, pair in ipairs(list) do
    local known = false
    for _, other in ipairs(kept) do
      if is_instance(other, pair) then known = true break end
    end
    if not known then kept[#kept + 1] = pair end
  end
  return kept
end

return equations
