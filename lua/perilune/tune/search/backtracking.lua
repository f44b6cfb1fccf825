--- pl.tune.backtracking_search: graph substitution by single applications of rules, as TASO (Jia et
-- al., SOSP 2019) searches: the cheapest program that is known is taken, each application of a
-- rule to it gives a candidate, and candidates that cost less than `alpha` times the best one are
-- looked at later. An application that costs more may so be a step to one that costs less.
--
--     local result = pl.tune.backtracking_search { mod = model, rules = rules, alpha = 1.05 }
--     print(result.cost, result.base_cost, result.text)

local argument = require "perilune.argument"
local core = require "perilune.core"
local estimate = require "perilune.tune.cost.estimate"
local space = require "perilune.tune.search.substitution_space"
local text_hash = require "perilune.tune.text_hash"
core.internal()

local where = "pl.tune.backtracking_search"

local names = { "mod", "rules", "shipped_rules", "generated_rules", "cost", "alpha", "budget",
  "seconds", "check" }

local function number(options, name, default, least)
  local x = options[name]
  if x == nil then return default end
  if type(x) ~= "number" or x ~= x or x < least then
    argument.fail(("%s: %s: a number from %g on expected"):format(where, name, least))
  end
  return x
end

local function checked(options)
  options = argument.options(options, where, names)
  if argument.kind_of(options.mod) ~= "Module" then
    argument.fail(("%s: mod: a module expected, got %s"):format(where,
      argument.kind_of(options.mod)))
  end
  local given = space.check({ rules = options.rules, shipped_rules = options.shipped_rules,
    generated_rules = options.generated_rules }, where)
  return { mod = options.mod, rules = given.rules, shipped_rules = given.shipped_rules,
    generated_rules = given.generated_rules,
    cost = estimate.of(options.cost or "time", options.mod, where), check = options.check ~= false,
    alpha = number(options, "alpha", 1.05, 1), budget = number(options, "budget", 1000, 1),
    seconds = number(options, "seconds", math.huge, 0) }
end

local function hash(mod)
  return text_hash(mod:text { constants = "brief", hash_references = true })
end

local function pass_at(self, at)
  return core.make("GraphSubstitution", { rules = self.rules, shipped_rules = self.shipped_rules,
    generated_rules = self.generated_rules, at = at })
end

-- Makes an application; also the number of those that can be made.
local function step(self, mod, at)
  local out = pass_at(self, at)(mod)
  local report = core.report()[1]
  return out, report and report.counts and report.counts.applications or 0
end

-- Candidates by cost; equal ones in the order in which they were found.
local function push(queue, one)
  local low, high = 1, #queue + 1
  while low < high do
    local middle = (low + high) // 2
    if queue[middle].cost <= one.cost then low = middle + 1 else high = middle end
  end
  table.insert(queue, low, one)
end

local function visit(self, parent, mod, at)
  local key = hash(mod)
  if self.seen[key] then return end
  self.seen[key] = true
  self.candidates = self.candidates + 1
  local one = { mod = mod, cost = self.cost(mod), parent = parent, at = at }
  if one.cost < self.best.cost then self.best = one end
  if one.cost < self.alpha * self.best.cost then push(self.queue, one) end
end

local function is_over(self)
  if core.interrupted() then self.state = "interrupted" end
  if self.candidates >= self.budget or core.clock() - self.begun > self.seconds then
    self.state = "done"
  end
  return self.state ~= nil
end

local function expand(self, one)
  local n = 1
  local at = 0
  while at < n and not is_over(self) do
    local mod, applications = step(self, one.mod, at)
    n = applications
    if applications > 0 then visit(self, one, mod, at) end
    at = at + 1
  end
  self.expanded = self.expanded + 1
end

-- The passes that lead to a program.
local function text_of(self, one)
  local texts = {}
  while one.parent do
    table.insert(texts, 1, tostring(pass_at(self, one.at)))
    one = one.parent
  end
  return table.concat(texts, ",")
end

-- The best program computes what the given one does, or it is none.
local function result_of(self, base)
  local best, reason = self.best, nil
  if self.check and best ~= base then
    local ok, diag = require "perilune.check"(self.mod, best.mod,
      { rounds = 2, rtol = 1e-3, atol = 1e-4, scaled = true })
    if not ok then best, reason = base, tostring(diag) end
  end
  return { mod = best.mod, cost = best.cost, base_cost = base.cost, text = text_of(self, best),
    candidates = self.candidates, expanded = self.expanded, state = self.state or "exhausted",
    reason = reason }
end

--- Searches: { mod =, rules = texts (otherwise perilune.tune.search.substitution_rules),
-- shipped_rules = true, generated_rules = true unless rules are given, cost = "time", "flops",
-- "bytes", "nodes", a cost model or a function of a module, alpha = 1.05, budget = candidates
-- (1000), seconds =, check = true: the best is compared with mod by the evaluator }. The result:
-- mod, cost, base_cost, text (the pipeline that makes it), candidates, expanded, state
-- ("exhausted", "done", "interrupted"), reason (why the best one is not taken). Ctrl-C ends the
-- search; the best so far stays.
return function(options)
  local self = checked(options)
  local base = { mod = self.mod, cost = self.cost(self.mod) }
  self.begun, self.best, self.queue = core.clock(), base, { base }
  self.seen, self.candidates, self.expanded = { [hash(self.mod)] = true }, 0, 0
  while #self.queue > 0 and not is_over(self) do
    local one = table.remove(self.queue, 1)
    if one.cost < self.alpha * self.best.cost or one == base then expand(self, one) end
  end
  return result_of(self, base)
end
