--- lowered(mod): the program of loops of a module: one with blocks is lowered (pl.lower), another
-- one stays as it is.

require "perilune.core".internal() -- errors name the scripts of others

local function has_blocks(mod)
  for _, fn in pairs(mod) do
    for _, stmt in ipairs(fn.kind == "PrimFunc" and fn.stmts or {}) do
      if stmt.kind == "BlockRealize" then return true end
    end
  end
  return false
end

return function(mod) return has_blocks(mod) and require "perilune.lower"(mod) or mod end
