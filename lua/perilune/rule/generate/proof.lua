--- Proofs by axioms: both sides of an equation are put into one e-graph (EqualitySaturation) with
-- the axioms as rules. They are equal if they end in one class; then their difference is zero.

local axioms = require "perilune.rule.generate.axioms"
local core = require "perilune.core"
local ir = require "perilune.ir"
local op = require "perilune.ir.op"
local rule_text = require "perilune.rule.generate.rule_text"
local term = require "perilune.rule.generate.term"
core.internal()

local proof = {}

-- Enough for terms of three operators; what is not proved then is no rule.
local NODE_LIMIT, ROUNDS = 6000, 8

-- The only rule with differences.
local SAME = "subtract(?x, ?x) => zeros(shape=?x.shape, dtype=?x.dtype)"

-- The same terms of the domain whose operators the axioms are about: equations do not depend on the
-- form of calls.
local function terms_of(domain, pair)
  local form = domain.proved_as
  if not form then return pair end
  return { (term.parse(term.prefix(pair[1]), form)), (term.parse(term.prefix(pair[2]), form)) }
end

--- The rules of the e-graph that an equation makes, one for each direction that has one.
function proof.rules(domain, pair)
  local left, right = table.unpack(terms_of(domain, pair))
  return rule_text.both(left, right)
end

--- A module of a function that computes the difference of both sides.
function proof.module(domain, pair)
  pair = terms_of(domain, pair)
  local params, by_name = {}, {}
  for i, variable in ipairs(domain.variables) do
    params[i] = ir.Var(variable.name, rule_text.type(variable.shape, "float32"))
    by_name[variable.name] = params[i]
  end
  local function expression(t)
    return term.fold(t, function(variable) return by_name[variable.name] end,
      function(operator, a, b) return operator.build(op, a, b) end)
  end
  local difference = op.subtract(expression(pair[1]), expression(pair[2]))
  return core.module { main = ir.Function(params, difference) }
end

--- What proves equations of a domain by rules.
function proof.prover(domain, rules)
  local all = table.move(rules, 1, #rules, 2, { SAME })
  local pass = core.make("EqualitySaturation", { rules = all, shipped_rules = false,
    cost = "flops", node_limit = NODE_LIMIT, iter_limit = ROUNDS })
  return function(pair)
    local body = pass(proof.module(domain, pair)).functions.main.body
    return not (body.kind == "Call" and body.op.name == "subtract")
  end
end

--- The axioms of a domain as rules of the e-graph.
function proof.axioms(domain)
  local rules = {}
  for _, text in ipairs(axioms[domain.algebra or domain.name]) do
    local left, past = term.parse(text, domain)
    local right = term.parse(text, domain, text:match("^%s*=()", past))
    for _, rule in ipairs(proof.rules(domain, { left, right })) do rules[#rules + 1] = rule end
  end
  return rules
end

return proof
