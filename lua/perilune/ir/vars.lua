--- The variables of expressions and types, and expressions in their place.
--
--     pl.free_vars(e)                       -- { x, y }
--     pl.bind(e, { [x] = 1.5, [y] = x * 2 })
--     pl.bind(fn, { [fn.params[2]] = weights })   -- a function of the other parameters

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local vars = {}

--- The variables of an expression, each once, in order of evaluation.
function vars.all_vars(node) return core.vars(node, "all") end

--- Those that it binds: parameters, lets, patterns.
function vars.bound_vars(node) return core.vars(node, "bound") end

--- Those that it does not bind.
function vars.free_vars(node) return core.vars(node, "free") end

--- The type variables of an expression or a type.
function vars.all_type_vars(program) return core.type_vars(program, "all") end

--- Those that generic functions and function types inside bind.
function vars.bound_type_vars(program) return core.type_vars(program, "bound") end

--- Those that nothing inside binds.
function vars.free_type_vars(program) return core.type_vars(program, "free") end

--- The expression with values in place of variables: `values` maps Vars to them.
-- A function loses the parameters that are bound; what their values need becomes
-- parameters. Other variables have to be free.
function vars.bind(node, values)
  local list, images, seen = {}, {}, 0
  for var, value in pairs(argument.table(values, "pl.bind", "values")) do
    argument.node(var, "pl.bind", "a variable")
    seen = seen + 1
    list[seen], images[seen] = var, value
  end
  return core.bind(node, list, images)
end

--- The function or expression with other variables in place of those that it
-- defines: parameters, lets, patterns, what loops, blocks and buffers define. So it
-- may stand twice in one program. pl.tir.renew_defs is the same.
function vars.renew_defs(node) return core.renew_defs(node) end

return vars
