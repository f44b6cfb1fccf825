--- Rules as text: a term is a pattern, a replacement, or Relay text; patterns have conditions.

local term = require "perilune.rule.generate.term"
require "perilune.core".internal() -- errors name the scripts of others

local rule_text = {}

--- The type of a tensor.
function rule_text.type(shape, dtype)
  if #shape == 0 then return dtype end
  return ("Tensor[(%s%s), %s]"):format(table.concat(shape, ", "), #shape == 1 and "," or "", dtype)
end

local function rule_variable(variable) return "?" .. variable.name end

-- Shapes of patterns are known, so that a replacement of another shape is refused.
local function pattern_variable(variable)
  return "?" .. variable.name .. (#variable.shape > 0 and ":static" or "")
end

--- A replacement. Splits take the sizes of those of the pattern: `bound` says which variables have
-- some.
function rule_text.replacement(t, bound)
  local other = next(bound)
  return term.fold(t, rule_variable, function(operator, a, b)
    local text = operator.replacement or operator.text
    if operator.sizes then
      text = text:gsub("%$s", "?" .. (bound[operator.sizes] and operator.sizes or other))
    end
    return term.fill(text, a, b)
  end)
end

--- The variables that have the sizes of a term's splits, as a set.
function rule_text.sizes(t, set)
  set = set or {}
  if t.operator and t.operator.sizes then set[t.operator.sizes] = true end
  for _, operand in ipairs(t) do rule_text.sizes(operand, set) end
  return set
end

-- The name by which conditions call what text stands for; binds it.
local function bind(text, count)
  local variable = text:match "^(%?%a):static$"
  if variable then return variable, text end
  local name = text:match "^(%?p%d+)@"
  if name then return name, text end
  count.n = count.n + 1
  name = "?p" .. count.n
  return name, name .. "@" .. text
end

--- A pattern, and what elementwise operators ask of shapes: a list of conditions. `plain`: without
-- them, for terms whose shapes are known to fit.
function rule_text.pattern(t, plain)
  local conditions, count = {}, { n = 0 }
  local text
  text = term.fold(t, plain and rule_variable or pattern_variable, function(operator, a, b)
    if not plain and operator.elementwise then
      local left, right
      left, a = bind(a, count)
      right, b = bind(b, count)
      if left ~= right then
        conditions[#conditions + 1] = ("%s.shape == %s.shape"):format(left, right)
      end
    end
    if plain or not operator.asks then return term.fill(operator.text, a, b) end
    local operand, result
    operand, a = bind(a, count)
    result, text = bind(term.fill(operator.text, a, b), count)
    conditions[#conditions + 1] = operator.asks:gsub("%$([01])", { ["0"] = result,
      ["1"] = operand })
    return text
  end)
  return text, conditions
end

--- The text of pattern => replacement, with conditions.
function rule_text.rule(pattern, replacement, conditions)
  local text = ("%s => %s"):format(pattern, replacement)
  if #conditions == 0 then return text end
  return text .. " where " .. table.concat(conditions, " and ")
end

-- Every variable of one term occurs in the other, which is no variable itself, and one of them
-- says in which parts things are split.
local function is_left(left, right)
  if left.variable then return false end
  local known = term.variables(left)
  for _, variable in ipairs(term.variables(right)) do
    if not known[variable.name] then return false end
  end
  return next(rule_text.sizes(left)) ~= nil or next(rule_text.sizes(right)) == nil
end
rule_text.is_left = is_left

--- The rules of an equation, one for each direction that has one, for terms of a domain's shapes.
function rule_text.both(left, right)
  local list = {}
  for _, pair in ipairs { { left, right }, { right, left } } do
    if is_left(pair[1], pair[2]) then
      list[#list + 1] = rule_text.rule(rule_text.pattern(pair[1], true),
        rule_text.replacement(pair[2], rule_text.sizes(pair[1])), {})
    end
  end
  return list
end

return rule_text
