--- What a rule asks of ranks and shapes: the weakest of a list of conditions under which the
-- evaluator finds no program that the rule changes (perilune.rule.check).

local check = require "perilune.rule.check"
local core = require "perilune.core"
local rule_text = require "perilune.rule.generate.rule_text"
local term = require "perilune.rule.generate.term"
core.internal()

local conditions = {}

-- Comparisons for each condition that is tried, and for the one that is taken.
local FEW, MANY = 12, 60

local function equal_shapes(variables, list)
  local first = {}
  for _, variable in ipairs(variables) do
    local sort = variable.sort or ""
    if variable.sort == "scalar" then goto continue end
    if first[sort] then
      list[#list + 1] = ("?%s.shape == ?%s.shape"):format(first[sort].name, variable.name)
    end
    first[sort] = first[sort] or variable
    ::continue::
  end
end

local function ranks(variables, domain, scalars, list)
  for _, variable in ipairs(variables) do
    local scalar = variable.sort == "scalar"
    if scalar == scalars then
      list[#list + 1] = ("?%s.rank == %d"):format(variable.name, scalar and 0 or domain.rank)
    end
  end
end

local function halves(sizes, list)
  for _, name in ipairs(require "perilune.sorted_keys"(sizes)) do
    list[#list + 1] = ("?%s[0] == ?%s[1]"):format(name, name)
  end
end

-- Which conditions are tried together; the names are those of the functions above.
local choices = { {}, { "elementwise" }, { "ranks" }, { "ranks", "elementwise" },
  { "ranks", "elementwise", "shapes" }, { "ranks", "elementwise", "shapes", "halves" } }

-- The text of a rule with some conditions.
local function text_of(domain, left, right, choice)
  local has, list = {}, {}
  for _, name in ipairs(choice) do has[name] = true end
  local variables, sizes = term.variables(left), rule_text.sizes(left)
  local pattern, of_operands = rule_text.pattern(left, has.elementwise)
  ranks(variables, domain, true, list)
  if has.ranks then ranks(variables, domain, false, list) end
  table.move(of_operands, 1, #of_operands, #list + 1, list)
  if has.shapes then equal_shapes(variables, list) end
  if has.halves then halves(sizes, list) end
  return rule_text.rule(pattern, rule_text.replacement(right, sizes), list)
end

-- A set of one rule; nil where the pattern matches the replacement, so that the rule could be
-- applied for ever.
local function set_of(row)
  local ok, set = pcall(core.rule_set, "generated", { row })
  return ok and set or nil
end

-- Whether the evaluator finds a rule of that proof to be right.
local function holds(row, cases)
  local set = set_of(row)
  if not set then return false end
  local info = set:rules()[1]
  local prepared = check.prepare(info, set, 1, nil, check.apply_with(set, info, true))
  local results = check.all({ prepared }, { cases = cases })
  return results[1].status == "passed"
end

local function try(text)
  for _, proof in ipairs { "exact", "reassociates" } do
    local row = { text = text, proof = proof, grows = true }
    if holds(row, FEW) and holds(row, MANY) then return row end
  end
  return nil
end

--- The row of a rule { text =, proof =, grows = true }; nil if there is none.
function conditions.weakest(domain, left, right)
  local tried = {}
  for _, choice in ipairs(choices) do
    local text = text_of(domain, left, right, choice)
    if not tried[text] then
      tried[text] = true
      local row = try(text)
      if row then return row end
    end
  end
  return nil
end

return conditions
