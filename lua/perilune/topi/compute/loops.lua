-- Pieces of the statements that topi's externs run: loops over axes, and memory of their own.

local core = require "perilune.core"
core.internal()

local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local loops = {
  lanes = 16, -- of a vector loop
}

--- A serial loop from 0 over an extent: body gets its variable.
function loops.over(extent, name, body)
  local var = tir.Var(name, "int32")
  return tir.For(var, 0, extent, "serial", body(var))
end

--- Loops over an extent by vectors: body gets the index, once for whole vectors and once for what
-- is left.
function loops.vectors(extent, name, body)
  local function vector(first, lanes)
    local lane = tir.Var(name, "int32")
    return tir.For(lane, 0, lanes, "vectorized", body(first + lane))
  end
  local whole, rest = extent // loops.lanes, extent % loops.lanes
  local list = {}
  if whole > 0 then
    list[1] = loops.over(whole, name .. "_outer", function(outer)
      return vector(outer * loops.lanes, loops.lanes)
    end)
  end
  if rest > 0 then list[#list + 1] = vector(whole * loops.lanes, rest) end
  return loops.seq(table.unpack(list))
end

--- A nest of loops over extents: body gets the list of variables. An extent may be a function of
-- that list, which uses variables of outer loops.
function loops.nest(extents, name, body)
  local vars = {}
  for i in ipairs(extents) do vars[i] = tir.Var(name .. i, "int32") end
  local stmt = body(vars)
  for i = #extents, 1, -1 do
    local extent = extents[i]
    if type(extent) == "function" then extent = extent(vars) end
    stmt = tir.For(vars[i], 0, extent, "serial", stmt)
  end
  return stmt
end

--- Statements in their order.
function loops.seq(...)
  local list = { ... }
  return #list == 1 and list[1] or tir.SeqStmt(list)
end

--- Memory for a statement: body gets a buffer of one axis.
function loops.allocate(extent, dtype, name, body)
  local data = tir.Var(name, tir.PointerType(dtype))
  local buffer = tir.decl_buffer({ extent }, dtype, name, { data = data })
  return tir.Allocate(data, dtype, { operand.const(extent, "int32") }, true, body(buffer))
end

return loops
