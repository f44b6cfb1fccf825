--- What a rule asks of shapes. Terms are about matrices whose shapes are known, operands of
-- elementwise operators have one shape, and splits two parts: so much is always asked. Of what
-- else the axioms were used for, which is equal shapes and halves, as little as the evaluator
-- finds enough (perilune.rule.check).

local check = require "perilune.rule.check"
local core = require "perilune.core"
local example_of = require "perilune.rule.generate.example".of_term
local rule_text = require "perilune.rule.generate.rule_text"
local term = require "perilune.rule.generate.term"
core.internal()

local conditions = {}

-- Comparisons for each condition that is tried, and for the one that is taken.
local FEW, MANY = 12, 150
-- The first seed of the second comparisons.
local OTHER_SEED = 100000

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

local function ranks(variables, domain, list)
  if domain.dtype then
    list[#list + 1] = ("?%s.dtype == %s"):format(variables[1].name, domain.dtype)
  end
  for _, variable in ipairs(variables) do
    local rank = variable.sort == "scalar" and 0 or domain.rank
    list[#list + 1] = ("?%s.rank == %d"):format(variable.name, rank)
  end
end

-- Splits have two parts.
local function two_parts(sizes, list)
  for _, name in ipairs(require "perilune.sorted_keys"(sizes)) do
    list[#list + 1] = ("len(?%s) == 2"):format(name)
  end
end

local function halves(sizes, list)
  for _, name in ipairs(require "perilune.sorted_keys"(sizes)) do
    list[#list + 1] = ("?%s[0] == ?%s[1]"):format(name, name)
  end
end

-- Which conditions are tried together; the names are those of the functions above.
local choices = { {}, { "shapes" }, { "shapes", "halves" } }

-- The text of a rule with some conditions.
local function text_of(domain, left, right, choice)
  local has, list = {}, {}
  for _, name in ipairs(choice) do has[name] = true end
  local variables, sizes = term.variables(left), rule_text.sizes(left)
  local pattern, of_operands = rule_text.pattern(left)
  ranks(variables, domain, list)
  two_parts(sizes, list)
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
local function holds(row, example, cases, seed)
  local set = set_of(row)
  if not set then return false end
  local info = set:rules()[1]
  local prepared = check.prepare(info, set, 1, example, check.apply_with(set, info, true))
  local results = check.all({ prepared }, { cases = cases, seed = seed })
  return results[1].status == "passed"
end

-- How sums are rounded depends on their shapes, and is not found by a few comparisons.
local function sums(t)
  if t.operator and t.operator.sums then return true end
  for _, operand in ipairs(t) do
    if sums(operand) then return true end
  end
  return false
end

local function try(text, proofs, example, relay)
  for _, proof in ipairs(proofs) do
    local row = { text = text, proof = proof, grows = true, relay = relay }
    if holds(row, example, FEW, 1) and holds(row, example, MANY, OTHER_SEED) then return row end
  end
  return nil
end

--- The row of a rule { text =, proof =, grows = true }; nil if there is none.
function conditions.weakest(domain, left, right)
  local tried = {}
  local example = example_of(domain, left)
  local proofs = sums(left) and { "reassociates" } or { "exact", "reassociates" }
  for _, choice in ipairs(choices) do
    local text = text_of(domain, left, right, choice)
    if not tried[text] then
      tried[text] = true
      local row = try(text, proofs, example, domain.relay)
      if row then return row end
    end
  end
  return nil
end

return conditions
