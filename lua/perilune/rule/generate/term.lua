--- Terms: { variable = } or { operator =, a, b }, and their texts.

require "perilune.core".internal() -- errors name the scripts of others

local term = {}

--- A text of a term: variable(v) is that of a variable, call(operator, a, b, t) that of a call.
function term.fold(t, variable, call)
  if t.variable then return variable(t.variable) end
  local a, b = term.fold(t[1], variable, call), t[2] and term.fold(t[2], variable, call)
  return call(t.operator, a, b, t)
end

--- The text of a call with its operands in place of $1 and $2.
function term.fill(text, a, b)
  return (text:gsub("%$([12])", { ["1"] = a, ["2"] = b }))
end

--- What kind of thing a term computes, in the words of its domain; nil where there is one kind.
function term.sort(t)
  while not t.variable and not t.operator.sort do t = t[1] end
  return t.variable and t.variable.sort or t.operator and t.operator.sort
end

local function name_of(variable) return variable.name end

--- Prefix notation: matmul(x, transpose(y)).
function term.prefix(t)
  return term.fold(t, name_of, function(operator, a, b)
    return operator.name .. "(" .. a .. (b and ", " .. b or "") .. ")"
  end)
end

--- The variables of terms in the order in which they occur first.
function term.variables(t, list)
  list = list or {}
  if not t.variable then
    for _, operand in ipairs(t) do term.variables(operand, list) end
  elseif not list[t.variable.name] then
    list[#list + 1], list[t.variable.name] = t.variable, true
  end
  return list
end

--- The same term, but for the names.
function term.equal(a, b)
  if a.variable or b.variable then return a.variable == b.variable end
  if a.operator ~= b.operator then return false end
  for i, operand in ipairs(a) do
    if not term.equal(operand, b[i]) then return false end
  end
  return true
end

--- A term of prefix notation, and where it ends.
function term.parse(text, domain, at)
  local name, open, past = text:match("^%s*([%w_]+)%s*(%(?)()", at or 1)
  if open == "" then
    for _, variable in ipairs(domain.variables) do
      if variable.name == name then return { variable = variable, size = 0 }, past end
    end
    error(("%s: no variable is called '%s'"):format(text, name), 0)
  end
  for _, operator in ipairs(domain.operators) do
    if operator.name == name then
      local t = { operator = operator, size = 1 }
      for i = 1, operator.arity do
        t[i], past = term.parse(text, domain, past)
        past = text:match(i < operator.arity and "^%s*,()" or "^%s*%)()", past)
        t.size = t.size + t[i].size
      end
      return t, past
    end
  end
  error(("%s: no operator is called '%s'"):format(text, name), 0)
end

return term
