--- All terms of up to so many operators over the variables of a domain, with fingerprints: what
-- they compute of one set of integers, exactly.
--
-- A term is a variable, or { operator, a, b }. Operands are irreducible terms: those that no
-- term before them equals. A larger term with another operand equals one of those by the rule for
-- its operand.

local core = require "perilune.core"
local ir = require "perilune.ir"
local op = require "perilune.ir.op"
local new_random = require "perilune.tune.random"
local rule_text = require "perilune.rule.generate.rule_text"
local tensor = require "perilune.ir.tensor"
core.internal()

local terms = {}

-- The function that evaluates an operator on operands like those; false if there is none.
local function compile(operator, a, b)
  local params = { ir.Var("a", rule_text.type(a.value.shape, "float64")),
    b and ir.Var("b", rule_text.type(b.value.shape, "float64")) }
  local ok, call = pcall(operator.stand_in or operator.build, op, params[1], params[2])
  -- A sum with 0 has no negative zeros.
  return ok and call and ir.Function(params, op.add(call, 0.0))
end

local function same(a, b)
  if #a ~= #b then return false end
  for i, n in ipairs(a) do
    if b[i] ~= n then return false end
  end
  return true
end

local function is_of(sort, wanted)
  if wanted == "any" then return sort ~= "scalar" end
  return sort == wanted
end

-- Whether an operator takes those operands.
local function takes(operator, a, b)
  local sorts = operator.sorts or {}
  if not is_of(a.sort, sorts[1]) or b and not is_of(b.sort, sorts[2]) then return false end
  return not operator.elementwise or same(a.value.shape, b.value.shape)
end

local function function_of(self, operator, a, b)
  local key = b and operator.name .. a.type .. b.type or operator.name .. a.type
  local fn = self.functions[key]
  if fn == nil then
    fn = takes(operator, a, b) and compile(operator, a, b) or false
    self.functions[key] = fn
  end
  return fn
end

local function type_of(value, sort)
  return (sort or "") .. "(" .. table.concat(value.shape, ",") .. ")"
end

-- A tensor of small integers, or of the variable's own value.
local function value_of(variable, random)
  local n, numbers = 1, {}
  for _, extent in ipairs(variable.shape) do n = n * extent end
  for i = 1, n do
    local x = variable.value or random:integer(195) - 98 + (variable.shift or 0)
    numbers[i] = ("<d"):pack(x)
  end
  return tensor.from_bytes(table.concat(numbers), variable.shape, "float64")
end

local function add_variables(self)
  local list = {}
  for i, variable in ipairs(self.domain.variables) do
    local value = value_of(variable, self.random)
    list[i] = { variable = variable, value = value, size = 0, sort = variable.sort,
      type = type_of(value, variable.sort) }
    self.seen[list[i].type .. value:to_bytes()] = list[i]
  end
  self.levels[0] = list
end

local function visit(self, operator, a, b, size)
  local fn = function_of(self, operator, a, b)
  if not fn then return end
  local value
  if b then value = core.eval(fn, a.value, b.value) else value = core.eval(fn, a.value) end
  local sort = operator.sort or a.sort
  local type = type_of(value, sort)
  local key = type .. value:to_bytes()
  local known = self.seen[key]
  local term = { operator = operator, a, b, size = size, sort = sort }
  self.count = self.count + 1
  if known then
    self.pairs[#self.pairs + 1] = { known, term }
    return
  end
  self.seen[key] = term
  if size < self.most then
    term.value, term.type = value, type
    local level = self.levels[size]
    level[#level + 1] = term
  end
end

local function visit_pairs(self, operator, size)
  for left = 0, size - 1 do
    local as, bs = self.levels[left], self.levels[size - 1 - left]
    for i, a in ipairs(as) do
      for k = operator.commutative and as == bs and i or 1, #bs do
        visit(self, operator, a, bs[k], size)
      end
    end
    if operator.commutative and left >= (size - 1) / 2 then return end
  end
end

local function new(domain, most, seed)
  local self = { domain = domain, most = most, random = new_random(seed), seen = {}, levels = {},
    functions = {}, count = 0, pairs = {} }
  add_variables(self)
  return self
end

--- The pairs of terms that have one fingerprint, and how many terms were made.
function terms.pairs(domain, most, seed)
  local self = new(domain, most, seed)
  for size = 1, most do
    self.levels[size] = {}
    for _, operator in ipairs(domain.operators) do
      if operator.arity == 1 then
        for _, a in ipairs(self.levels[size - 1]) do visit(self, operator, a, nil, size) end
      else
        visit_pairs(self, operator, size)
      end
    end
  end
  return self.pairs, self.count
end

-- The fingerprint of a term, from those of its operands.
local function value(self, t)
  if t.variable then return self.values[t.variable] end
  local a, b = value(self, t[1]), t[2] and value(self, t[2])
  local fn = function_of(self, t.operator, a, b)
  local out = b and core.eval(fn, a.value, b.value) or core.eval(fn, a.value)
  local sort = t.operator.sort or a.sort
  return { value = out, sort = sort, type = type_of(out, sort) }
end

--- A function that tells whether two terms agree on other integers, too.
function terms.other_inputs(domain, seed)
  local self = new(domain, 0, seed)
  self.values = {}
  for _, one in ipairs(self.levels[0]) do self.values[one.variable] = one end
  return function(pair)
    return value(self, pair[1]).value:to_bytes() == value(self, pair[2]).value:to_bytes()
  end
end

return terms
