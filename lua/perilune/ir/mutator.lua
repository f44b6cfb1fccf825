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
-- (unchanged) or the node to use instead. A number or a pl.tensor stands for a
-- constant, a number's of the dtype of the node that it replaces; any other
-- value is an error. Operators called inside append at that place. The node it
-- is given, and every handle of the old function, stands for its image in the
-- new one; rebuild() gives the node itself with its rewritten operands. A
-- function for a kind of type (TensorType, TypeVar, ...) is given types of
-- variables, parts first, and gives nil or another type. Each is a rule of its
-- kind's name, in reports and histories; `name` gives one name to all.
--
-- A function for Var reaches parameters: another variable takes the place of the
-- parameter in its list, and its type is the function's. Whatever else is given
-- stands for the parameter in the body, and the parameter stays.
--
--     pl.rewrite(e, { Call = function(pre, post) ... end })
--
-- is the same at once: `pre` is the node as it was, `post` with its rewritten
-- operands.
--
-- In TIR, when a function is for a kind that has bodies (For, Block,
-- PrimFunc, ...), a mutator's functions are given nodes with their rewritten
-- parts, as rebuild() gives them, and what is made of parts of `pre` has none
-- of the changes inside. Variables that a statement binds are not visited there.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local loop_level = require "perilune.lazy" "perilune.tir.mutator"

local kinds = {}
for i, row in ipairs(core.kinds()) do
  kinds[i], kinds[row.name] = row.name, true
end
for _, name in ipairs(core.type_kinds()) do
  if not kinds[name] then kinds[#kinds + 1], kinds[name] = name, true end
end

-- The functions for kinds of types alone; nil when there are none.
local function of_types(functions)
  local own
  for _, name in ipairs(core.type_kinds()) do
    if functions[name] then
      own = own or { name = functions.name }
      own[name] = functions[name]
    end
  end
  return own
end

-- With `post`, functions are given each node as it was and as it is rewritten.
local function rewrite_node(functions, node, post)
  if getmetatable(node) ~= "perilune.Node" or not loop_level.takes(functions, node) then
    return core.mutate(functions, node, post)
  end
  local types = of_types(functions)
  if types then node = core.mutate(types, node) end
  return loop_level.apply(functions, node, post)
end

local function rewrite_module(functions, mod, post)
  local changed = {}
  for name, fn in pairs(mod) do
    local new = rewrite_node(functions, fn, post)
    if new ~= fn then changed[name] = new end
  end
  return next(changed) and mod:with(changed) or mod
end

local function apply(functions, program, post)
  if getmetatable(program) == "perilune.Module" then
    return rewrite_module(functions, program, post)
  end
  return rewrite_node(functions, program, post)
end

local class = {
  __name = "mutator",
  __call = function(functions, program) return apply(functions, program) end,
}

local function check(name, functions)
  argument.table(functions, name, "functions")
  for kind, f in pairs(functions) do
    if kind == "name" then
      if type(f) ~= "string" then
        argument.fail(("%s: name expects a string, got %s"):format(name, type(f)))
      end
    elseif not kinds[kind] then
      argument.fail(("%s: no kind of node or type is called '%s'%s"):format(name, tostring(kind),
        core.suggest(tostring(kind), kinds)))
    else
      argument.callable(f, name, kind)
    end
  end
end

local mutator = {}

--- A mutator of those functions.
function mutator.make(functions)
  check("pl.mutator", functions)
  return setmetatable(functions, class)
end

--- Rewrites an expression, or all functions of a module; a single function is
-- called for every kind of node.
function mutator.rewrite(program, functions)
  if type(functions) == "function" then
    local all = {}
    for _, row in ipairs(core.kinds()) do all[row.name] = functions end
    return apply(all, program, true)
  end
  check("pl.rewrite", functions)
  return apply(functions, program, true)
end

return mutator
