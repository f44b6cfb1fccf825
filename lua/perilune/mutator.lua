--- pl.mutator, pl.rewrite: rewriting by functions, one a node kind.
--
--     local drop = pl.mutator {
--       Call = function(call, rebuild)
--         if call.op.name == "nn.dropout" then return call.args[1] end
--       end,
--     }
--     local smaller = drop(fn)              -- a function, or a module
--     pl.passes.DropDropout = { kind = "function", run = drop }
--
-- A function is called for each node of its kind, operands first. It gives nil
-- (unchanged) or the node to use instead; operators called inside append at
-- that place. The node it is given, and every handle of the old function,
-- stands for its image in the new one; rebuild() gives the node itself with
-- its rewritten operands. A function for a kind of type (TensorType, TypeVar,
-- ...) is given types of variables, parts first, and gives nil or another type.
-- Each is a rule of its kind's name, in reports and histories; `name` gives one
-- name to all.
--
--     pl.rewrite(e, { Call = function(pre, post) ... end })
--
-- is the same at once: `pre` is the node as it was, `post` with its rewritten
-- operands.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local kinds = {}
for i, row in ipairs(core.kinds()) do
  kinds[i], kinds[row.name] = row.name, true
end
for _, name in ipairs(core.type_kinds()) do
  if not kinds[name] then kinds[#kinds + 1], kinds[name] = name, true end
end

local function rewrite_module(functions, mod)
  local changed = {}
  for name, fn in pairs(mod) do
    local new = core.mutate(functions, fn)
    if new ~= fn then changed[name] = new end
  end
  return next(changed) and mod:with(changed) or mod
end

local function apply(functions, subject)
  if getmetatable(subject) == "perilune.Module" then return rewrite_module(functions, subject) end
  return core.mutate(functions, subject)
end

local class = { __name = "mutator", __call = apply }

local function check(name, functions)
  argument.table(functions, name, "functions")
  for kind, f in pairs(functions) do
    if kind == "name" then
      if type(f) ~= "string" then
        error(("%s: name expects a string, got %s"):format(name, type(f)), 3)
      end
    elseif not kinds[kind] then
      error(("%s: no kind of node or type is called '%s'%s"):format(name, tostring(kind),
        core.suggest(tostring(kind), kinds)), 3)
    end
  end
end

local mutator = {}

--- A mutator of those functions.
function mutator.make(functions)
  check("pl.mutator", functions)
  return setmetatable(functions, class)
end

local function with_post(f)
  return function(pre, rebuild) return f(pre, rebuild()) end
end

--- Rewrites an expression, or all functions of a module; a single function is
-- called for every kind of node.
function mutator.rewrite(subject, functions)
  local all = {}
  if type(functions) == "function" then
    for _, row in ipairs(core.kinds()) do all[row.name] = with_post(functions) end
    return apply(all, subject)
  end
  check("pl.rewrite", functions)
  for kind, f in pairs(functions) do all[kind] = f end
  for _, row in ipairs(core.kinds()) do
    if all[row.name] then all[row.name] = with_post(all[row.name]) end
  end
  return apply(all, subject)
end

return mutator
