--- pl.mutator: rewriting by functions, one a node kind.
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
-- its rewritten operands.

local core = require "perilune.core"
core.internal()

local kinds = {}
for i, row in ipairs(core.kinds()) do
  kinds[i], kinds[row.name] = row.name, true
end

local function rewrite_module(functions, mod)
  local changed = {}
  for name, fn in pairs(mod) do
    local new = core.mutate(functions, fn)
    if new ~= fn then changed[name] = new end
  end
  return next(changed) and mod:with(changed) or mod
end

local class = {
  __name = "mutator",
  __call = function(self, subject)
    if getmetatable(subject) == "perilune.Module" then return rewrite_module(self, subject) end
    return core.mutate(self, subject)
  end,
}

return function(functions)
  for kind in pairs(functions) do
    if not kinds[kind] then
      error(("pl.mutator: no kind of node is called '%s'%s"):format(tostring(kind),
        core.suggest(tostring(kind), kinds)), 2)
    end
  end
  return setmetatable(functions, class)
end
