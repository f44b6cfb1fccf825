--- The space of graph substitutions: what EqualitySaturation makes with which rules, and for which
-- cost.
--
-- The first decision is the cost, or none: the program stays as it is. The second is whether the
-- generated rules take part, where they may; the third, where the space stands beside others of
-- pipelines, whether substitution comes before all of them: a pipeline may put together what a rule
-- matches (a product and a sum become nn.gemm). The others are the rules, each of which takes part
-- or not. The text of a point is a pipeline: EqualitySaturation, then
-- FoldConstant, which computes weights that were put together. What each cost takes out of the
-- e-graph is an estimate, be it of calls that were measured one by one; the search measures the
-- program as a whole.

local argument = require "perilune.argument"
local choice_space = require "perilune.tune.search.choice_space"
local core = require "perilune.core"
core.internal()

local space = {}

local methods = {}

-- What extraction minimises; false: nothing is replaced.
local all_costs = { "measured", "time", "bytes", "flops", "nodes" }

-- Decisions before those of rules.
local N_OPTIONS = 3

local FOLD = 'FoldConstant{fold="all"}'

local names = { "rules", "shipped_rules", "generated_rules", "node_limit", "iter_limit", "k_multi",
  "time_limit", "costs" }

--- A pass of those rules: raises the diagnostic of a wrong one.
local function pass_of(self, cost, rules, generated)
  return core.make("EqualitySaturation", { rules = rules, cost = cost, generated_rules = generated,
    shipped_rules = self.options.shipped_rules, node_limit = self.options.node_limit,
    iter_limit = self.options.iter_limit, k_multi = self.options.k_multi,
    time_limit = self.options.time_limit })
end

--- A point of decisions.
function methods.make(self, decisions)
  local cost, rules = self.costs[decisions[1]], {}
  if not cost then return { decisions = decisions, text = "" } end
  for i, rule in ipairs(self.rules) do
    if decisions[i + N_OPTIONS] == 1 then rules[#rules + 1] = rule end
  end
  local pass = pass_of(self, cost, rules, self.options.generated_rules and decisions[2] == 1)
  return { decisions = decisions, text = tostring(pass) .. "," .. FOLD }
end

--- The pipeline of a point.
function methods.text(_, point) return point.text end

--- Whether a point comes before the other parts of a joint space.
function methods.comes_first(_, point)
  return point.decisions[3] == 2
end

--- The points to begin with: the program as it is, and all rules with each of the costs, with and
-- without the generated ones, at each place.
function methods.start(self)
  local list = { self:make(self:all_rules(1, 1, 1)) }
  for place = 1, self.n_choices[3] do
    for generated = 1, self.n_choices[2] do
      for choice = 2, #self.costs do
        list[#list + 1] = self:make(self:all_rules(choice, generated, place))
      end
    end
  end
  return list
end

--- Decisions with all rules.
function methods.all_rules(self, ...)
  local decisions = { ... }
  for i in ipairs(self.rules) do decisions[i + N_OPTIONS] = 1 end
  return decisions
end

local class = choice_space.class("substitution space", methods)

local options_class = { __name = "substitution options" }

--- Whether a value is what check() makes.
function space.is(x) return getmetatable(x) == options_class end

local function check_costs(costs, where)
  local known = {}
  for _, name in ipairs(all_costs) do known[name] = true end
  if #argument.table(costs, where, "costs") == 0 then
    argument.fail(where .. ": costs: the list is empty")
  end
  for _, name in ipairs(costs) do
    if not known[name] then
      argument.fail(("%s: there is no cost '%s'%s"):format(where, tostring(name),
        argument.near(tostring(name), known)))
    end
  end
end

--- Checks { rules =, shipped_rules =, generated_rules =, node_limit =, iter_limit =, k_multi =,
-- time_limit =, costs = }. Without rules those of perilune.tune.search.substitution_rules are
-- taken, and the generated ones, unless generated_rules says otherwise; without costs all of them,
-- "measured" where that can be measured which the search minimises.
function space.check(options, where)
  if options == nil or options == true then options = {} end
  if space.is(options) then return options end
  options = argument.options(options, where, names)
  local rules = options.rules or require "perilune.tune.search.substitution_rules"
  for i, rule in ipairs(argument.table(rules, where, "rules")) do
    argument.string(rule, where, ("rule %d"):format(i))
  end
  if options.costs ~= nil then check_costs(options.costs, where) end
  local out = {}
  for _, name in ipairs(names) do out[name] = options[name] end
  out.rules = rules
  if out.generated_rules == nil then out.generated_rules = options.rules == nil end
  if type(out.generated_rules) ~= "boolean" then
    argument.fail(where .. ": generated_rules: true or false expected")
  end
  return setmetatable(out, options_class)
end

-- Wrong rules are told before anything is measured.
local function check_rules(self)
  local x = require "perilune.ir".Var("x", "Tensor[(1), float32]")
  local mod = core.module { main = require "perilune.ir".Function({ x }, x) }
  pass_of(self, "nodes", self.rules, false)(mod)
end

-- The costs of a space, and false. Without a way to measure calls none is "measured".
local function costs_of(checked, measures, where)
  local list = { false }
  for _, name in ipairs(checked.costs or all_costs) do
    if name ~= "measured" or measures then
      list[#list + 1] = name
    elseif checked.costs then
      argument.fail(where .. ": cost 'measured': a search for time, by the evaluator or generated "
        .. "C, in this process")
    end
  end
  return list
end

--- The space of a program. `movable`: it may come before other spaces; `measures`: what calls take
-- may be measured.
function space.new(options, where, movable, measures)
  local checked = space.check(options, where)
  local costs = costs_of(checked, measures, where)
  local self = setmetatable({ kind = "substitution", options = checked, rules = checked.rules,
    costs = costs,
    n_choices = { #costs, checked.generated_rules and 2 or 1, movable and 2 or 1 } }, class)
  for i in ipairs(self.rules) do self.n_choices[i + N_OPTIONS] = 2 end
  check_rules(self)
  return self
end

return space
