--- Programs for the check of generated rules whose patterns it seldom finds programs for: those of
-- domains with `shape_of`. The term of the pattern is built on variables of random shapes.

local core = require "perilune.core"
local domains = require "perilune.rule.generate.operators"
local term = require "perilune.rule.generate.term"
core.internal()

local example = {}

-- Every other program has the shapes that its term was found with.
local function shape_of(g, domain, variable, plain)
  if plain then return variable.shape end
  return domain.shape_of(variable, function(n) return g:below(n) end)
end

local function build(g, domain, t, plain)
  local variables, cuts = {}, {}
  return term.fold(t, function(variable)
    local name = variable.name
    variables[name] = variables[name]
      or g:var(domain.dtype, shape_of(g, domain, variable, plain))
    return variables[name]
  end, function(operator, a, b)
    local name, at = operator.sizes, nil
    if name and not plain then
      cuts[name] = cuts[name] or 1 + g:below(3)
      at = cuts[name]
    end
    return operator.build(g.op, a, b, at)
  end)
end

--- The example (see perilune.rule.check) of a term; nil where the domain needs none.
function example.of_term(domain, t)
  if not domain.shape_of then return nil end
  return function(g)
    local plain = g:below(2) == 0
    local ok, call = pcall(build, g, domain, t, plain)
    if not ok or not call then g:reject() end
    return call
  end
end

--- The same of a term in prefix notation, of the domain of that name: for files of rules.
function example.of_text(name, text)
  return function(g)
    for _, domain in ipairs(domains) do
      if domain.name == name then
        return example.of_term(domain, (term.parse(text, domain)))(g)
      end
    end
  end
end

return example
