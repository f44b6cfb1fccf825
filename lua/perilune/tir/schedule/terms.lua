-- Expressions as terms: integers of one analyzer, in which equal expressions are one number.
--
-- A schedule and its copies share the terms; what is said of a variable is said anew before each
-- question that depends on it.

local core = require "perilune.core"
core.internal()

local Analyzer = require "perilune.arith.analyzer"
local operand = require "perilune.tir.operand"

local Terms = {}
Terms.__index = Terms

function Terms.new()
  local analyzer = Analyzer()
  local self = setmetatable({ analyzer = analyzer, core = analyzer.core, rows = {} }, Terms)
  self.yes, self.no = self:import(operand.const(true)), self:import(operand.const(false))
  return self
end

function Terms:import(node) return self.core:import(node) end

function Terms:export(term) return self.core:export(term) end

-- Kind, operands and dtype, which never change.
local function row(self, term)
  local known = self.rows[term]
  if not known then
    known = { self.core:fields(term) }
    self.rows[term] = known
  end
  return known
end

function Terms:kind(term) return row(self, term)[1] end

--- The operands, which the caller does not change.
function Terms:operands(term) return row(self, term)[2] end

function Terms:dtype(term) return row(self, term)[3] end

--- The integer that a term is, or nil.
function Terms:constant(term)
  if row(self, term)[1] == "IntImm" then return (self.core:value(term)) end
  return nil
end

--- The name of a Var or Buffer.
function Terms:name(term) return (self.core:value(term)) end

function Terms:rank(buffer) return select(2, self.core:value(buffer)) end

--- The shape of a Buffer.
function Terms:shape(buffer)
  return table.move(self:operands(buffer), 2, 1 + self:rank(buffer), 1, {})
end

function Terms:int(like, value) return self.core:int(like, value) end

--- The immediate of a dtype: 0 of "int32".
function Terms:number(dtype, value) return self:import(operand.const(value, dtype)) end

for name, kind in pairs {
  add = "Add", sub = "Sub", mul = "Mul", floordiv = "FloorDiv", floormod = "FloorMod",
  min = "Min", max = "Max", lt = "LT", le = "LE", eq = "EQ", ge = "GE", both = "And",
  either = "Or",
} do
  Terms[name] = function(self, x, y) return self.core:binary(kind, x, y) end
end

--- A new variable.
function Terms:var(name, dtype) return self:import(core.var(name, operand.type(dtype))) end

function Terms:load(buffer, indices) return self.core:load(buffer, indices) end

--- The term with the parts `from` replaced by `to`; nothing is folded.
function Terms:replace(term, from, to)
  if #from == 0 then return term end
  return self.core:replace(term, from, to)
end

--- The terms of a kind in it, those outside first.
function Terms:parts(term, kind) return self.core:parts(term, kind) end

function Terms:simplify(term) return self.core:simplify(term) end

--- The same where nothing is known of the variables, whatever was said of them.
function Terms:simplify_unbound(term)
  local vars, unknown = self:parts(term, "Var"), {}
  for i, var in ipairs(vars) do unknown[i] = self:var(self:name(var), self:dtype(var)) end
  return self:replace(self:simplify(self:replace(term, vars, unknown)), unknown, vars)
end

function Terms:simplified(list)
  local out = {}
  for i, term in ipairs(list) do out[i] = self.core:simplify(term) end
  return out
end

--- Says that a variable is one of [min, min + extent).
function Terms:bind(var, min, extent) self.core:bind_range(var, min, extent, true) end

function Terms:can_prove(condition) return self.core:can_prove(condition) end

function Terms:equal(x, y) return x == y or self.core:can_prove_equal(x, y) end

--- Whether one of the variables (a set) is in it.
function Terms:uses(term, vars)
  for _, var in ipairs(self:parts(term, "Var")) do
    if vars[var] then return true end
  end
  return false
end

--- A map of indices with variables of its own, of the dtype that these terms have; nil if they
-- have different ones.
function Terms:typed_map(index_map, list)
  local dtype = list[1] and self:dtype(list[1]) or "int32"
  for _, term in ipairs(list) do
    if self:dtype(term) ~= dtype then return nil end
  end
  return index_map:with_dtype(dtype)
end

--- The conjuncts of a condition.
function Terms:conjuncts(condition)
  local out, stack = {}, { condition }
  while #stack > 0 do
    local term = table.remove(stack)
    if self:kind(term) == "And" then
      local sides = self:operands(term)
      stack[#stack + 1], stack[#stack + 2] = sides[2], sides[1]
    elseif term ~= self.yes then
      out[#out + 1] = term
    end
  end
  return out
end

--- Their conjunction, without `true`.
function Terms:all(conditions)
  local out = self.yes
  for _, condition in ipairs(conditions) do
    out = out == self.yes and condition or self:both(out, condition)
  end
  return out
end

return Terms
