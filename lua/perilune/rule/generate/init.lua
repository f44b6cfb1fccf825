--- pl.tune.generate_rules: rules of graph substitution, found by comparing what all small terms
-- compute (TASO, Jia et al., SOSP 2019), and proved twice: by axioms, which are equations of
-- domains (axioms.lua), and by the evaluator on programs of many shapes and dtypes.
--
--     local rules, counts = pl.tune.generate_rules { operators = 3 }
--     print(#rules, counts.terms)
--
-- lua/perilune/rules/substitution is what `perilune rules generate` has written.

local argument = require "perilune.argument"
local conditions = require "perilune.rule.generate.conditions"
local core = require "perilune.core"
local domains = require "perilune.rule.generate.operators"
local equations = require "perilune.rule.generate.equations"
local proof = require "perilune.rule.generate.proof"
local rule_text = require "perilune.rule.generate.rule_text"
local term = require "perilune.rule.generate.term"
local terms = require "perilune.rule.generate.terms"
core.internal()

local generate = {}

local where = "pl.tune.generate_rules"

-- Sets of integers that equal terms agree on, beside the one of fingerprints.
local MORE_INPUTS = 2

local function filtered(list, keep)
  local out = {}
  for _, pair in ipairs(list) do
    if core.interrupted() then core.raise(core.diag("interrupted", where .. ": interrupted")) end
    if keep(pair) then out[#out + 1] = pair end
  end
  return out
end

-- Whether a direction of the pair is a rule.
local function is_rule(pair) return #rule_text.both(pair[1], pair[2]) > 0 end

-- The pairs of a domain that agree on all inputs.
local function candidates(domain, self)
  local found, n_terms = terms.pairs(domain, self.operators, self.seed)
  local list = filtered(equations.distinct(found), is_rule)
  for i = 1, MORE_INPUTS do list = filtered(list, terms.other_inputs(domain, self.seed + i)) end
  self.counts.terms = self.counts.terms + n_terms
  self.counts.equal = self.counts.equal + #list
  return equations.general(list)
end

-- Those that the ones before them do not prove.
local function independent(domain, list)
  local rules = {}
  return filtered(list, function(pair)
    if #rules > 0 and proof.prover(domain, rules)(pair) then return false end
    for _, text in ipairs(proof.rules(domain, pair)) do rules[#rules + 1] = text end
    return true
  end)
end

local function operators_of(t, list)
  list = list or {}
  if t.operator then list[#list + 1] = t.operator.name end
  for _, operand in ipairs(t) do operators_of(operand, list) end
  return list
end

-- A name by the operators of the pattern, which others may have, too.
local function name_of(self, domain, left)
  local name = "generated_" .. (domain.prefix or "") .. table.concat(operators_of(left), "_")
  local n = (self.names[name] or 0) + 1
  self.names[name] = n
  return n > 1 and name .. "_" .. n or name
end

local function add_rule(self, domain, left, right)
  local row = rule_text.is_left(left, right) and conditions.weakest(domain, left, right)
  if not row then return end
  row.name = name_of(self, domain, left)
  row.text = row.name .. ": " .. row.text
  row.reason = term.prefix(left) .. " = " .. term.prefix(right)
  row.domain = domain.name
  row.example = domain.shape_of ~= nil
  self.rules[#self.rules + 1] = row
  if self.progress then self.progress(#self.rules, row) end
end

local function add_domain(self, domain)
  local list = filtered(candidates(domain, self), proof.prover(domain, proof.axioms(domain)))
  self.counts.proved = self.counts.proved + #list
  list = independent(domain, list)
  self.counts.independent = self.counts.independent + #list
  filtered(list, function(pair)
    add_rule(self, domain, pair[1], pair[2])
    add_rule(self, domain, pair[2], pair[1])
  end)
end

local function integer(options, name, default, least, most)
  local x = options[name]
  if x == nil then return default end
  if math.type(x) ~= "integer" or x < least or x > most then
    argument.fail(("%s: %s: an integer from %d to %d expected"):format(where, name, least, most))
  end
  return x
end

--- The rules of terms of up to `operators` operators (3, the most) from a seed (1), and counts:
-- { terms =, equal = (distinct pairs of one fingerprint that make a rule), proved = (general ones
-- that the axioms prove), independent = (those that the ones before them do not prove) }. A rule
-- is { name =, text =, proof =, reason =, grows = true }. Options: operators, seed, domain (a
-- name), progress (called with the number of rules and the new one).
function generate.rules(options)
  options = argument.options(options, where, { "operators", "seed", "domain", "progress" })
  local self = { rules = {}, names = {}, progress = options.progress,
    operators = integer(options, "operators", 3, 1, 3), seed = integer(options, "seed", 1, 0,
      1 << 40), counts = { terms = 0, equal = 0, proved = 0, independent = 0 } }
  local known = {}
  for _, domain in ipairs(domains) do
    known[domain.name] = true
    if (options.domain or domain.name) == domain.name then add_domain(self, domain) end
  end
  if options.domain ~= nil and not known[options.domain] then
    argument.fail(("%s: there is no domain '%s'%s"):format(where, tostring(options.domain),
      argument.near(tostring(options.domain), known)))
  end
  return self.rules, self.counts
end

local HEADER = [[
--- Rules of graph substitution, as `perilune rules generate` wrote them: lua/perilune/rule/generate
-- says how they are found and proved. The reason is the equation; another run gives the same file.

]]

local EXAMPLE = [[
local function example(domain, text)
  return function(g) return require "perilune.rule.generate.example".of_text(domain, text)(g) end
end

]]

local WIDTH, LINE = 84, 100

-- A text as an expression of Lua, in lines that end at spaces.
local function quoted(text)
  local lines, line = {}, ""
  for word in text:gmatch "%S+%s*" do
    if #line + #word > WIDTH and line ~= "" then lines[#lines + 1], line = line, "" end
    line = line .. word
  end
  lines[#lines + 1] = line
  for i, one in ipairs(lines) do lines[i] = ("%q"):format(one) end
  return table.concat(lines, "\n    .. ")
end

--- The texts of files of shipped rules, one for each domain, or the given one, also where it has
-- no rules: names without ".lua", and texts.
function generate.files(rules, domain)
  local of_domain, files = {}, {}
  for _, row in ipairs(domains) do
    if (domain or row.name) == row.name then of_domain[row.name] = {} end
  end
  for _, rule in ipairs(rules) do table.insert(of_domain[rule.domain], rule) end
  for name, list in pairs(of_domain) do files[name] = generate.text(list) end
  return files
end

--- The text of a file of shipped rules.
function generate.text(rules)
  local lines, examples = {}, false
  for _, rule in ipairs(rules) do
    examples = examples or rule.example
    local reason = ("    reason = %s,"):format(quoted(rule.reason))
    local rest = ("proof = %q, source = \"generated\", grows = true%s },\n"):format(rule.proof,
      rule.relay and ", relay = true" or "")
    local fits = #reason + 1 + #rest - 1 <= LINE
    local example = rule.example and ("    example = example(%q, %s),\n"):format(rule.domain,
      quoted(rule.reason:match "^(.-) = ")) or ""
    lines[#lines + 1] = ("  { %s,\n%s%s%s%s"):format(quoted(rule.text), example, reason,
      fits and " " or "\n    ", rest)
  end
  return table.concat { HEADER, examples and EXAMPLE or "", "return {\n", table.concat(lines),
    "}\n" }
end

return generate
