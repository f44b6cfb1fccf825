-- transform_layout: the elements of a buffer in another order, wherever it is accessed.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local buffers = require "perilune.tir.schedule.buffer"
local checks = require "perilune.tir.schedule.checks"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local layout = {}

local BIJECTIVE = 1

-- The map over terms: its variables, its indices, and the shape that it gives.
local function map_of(s, buffer, index_map)
  local terms, map = s.terms, { vars = {}, indices = {}, shape = {} }
  local shape, ranges, old, new = terms:shape(buffer), {}, 1, 1
  if #index_map.initial_indices ~= #shape then
    s:fail("the map has %d variables, '%s' %d dimensions", #index_map.initial_indices,
      terms:name(buffer), #shape)
  end
  index_map = terms:typed_map(index_map, shape)
    or s:fail("the dimensions of '%s' have different dtypes", terms:name(buffer))
  for i, var in ipairs(index_map.initial_indices) do
    local extent = terms:constant(shape[i])
    if not extent then s:fail("the shape of '%s' is not constant", terms:name(buffer)) end
    map.vars[i] = terms:import(var)
    terms:bind(map.vars[i], terms:int(shape[i], 0), shape[i])
    table.move({ map.vars[i], terms:int(shape[i], 0), shape[i] }, 1, 3, #ranges + 1, ranges)
    old = old * extent
  end
  for i, index in ipairs(index_map.final_indices) do
    map.indices[i] = terms:import(index)
    local low, high = terms.core:const_int_bound(map.indices[i])
    if low ~= 0 or high < 0 or high > 1 << 40 then
      s:fail("index %d of the map does not begin with 0", i - 1)
    end
    map.shape[i], new = terms:export(terms:int(map.indices[i], high + 1)), new * (high + 1)
  end
  local _, numbers = terms.core:detect_iter_map(map.indices, ranges, 0, BIJECTIVE, true)
  if not numbers or old ~= new then
    s:fail("the map is not bijective on the shape of '%s'", terms:name(buffer))
  end
  return map
end

-- The same memory with the new shape.
local function new_buffer(s, buffer, map)
  local old = s.terms:export(buffer)
  if #old.strides > 0 then s:fail("'%s' has strides", old.name) end
  return s.terms:import(tir.Buffer(old.data, old.dtype, map.shape, nil, nil, old.name))
end

local function mapped(s, map, indices)
  local out = {}
  for i, index in ipairs(map.indices) do
    out[i] = s.terms:simplify(s.terms:replace(index, map.vars, indices))
  end
  return out
end

-- Ranges of iterators and loops for the simplification of indices.
local function bind_all(s, stmt)
  tree.visit(stmt, function(inner)
    if inner.kind == "For" then s.terms:bind(inner.var, inner.min, inner.extent) end
    for _, iter in ipairs(inner.iters or {}) do s.terms:bind(iter.var, iter.min, iter.extent) end
  end)
end

local function rewritten(s, stmt, buffer, made, map)
  local terms = s.terms
  local function new_loads(term)
    return buffers.with_values(terms, term, buffer, function(indices)
      return terms:load(made, mapped(s, map, indices))
    end)
  end
  return tree.map(stmt, function(inner)
    if inner.kind == "Store" then
      local indices = {}
      for i, index in ipairs(inner.indices) do indices[i] = new_loads(index) end
      local own = inner.buffer == buffer
      return { kind = "Store", buffer = own and made or inner.buffer,
        value = new_loads(inner.value), indices = own and mapped(s, map, indices) or indices }
    elseif inner.kind == "Block" then
      local set = { [buffer] = true }
      if checks.meets(inner.reads, set) or checks.meets(inner.writes, set) then
        return access.declared(terms, inner)
      end
      return inner
    elseif inner.kind == "Seq" then
      return inner
    end
    return tree.map_own_exprs(inner, function(term)
      return terms:kind(term) == "Buffer" and term or new_loads(term)
    end)
  end)
end

--- The element at some indices of the buffer is then at those that the map gives for them.
function layout.transform_layout(s, block, which, index_map)
  local buffer = buffers.of(s, block, which)
  local map = map_of(s, buffer, index_map)
  local made = new_buffer(s, buffer, map)
  buffers.redeclare(s, block, buffer, made, function(stmt)
    bind_all(s, stmt)
    return rewritten(s, stmt, buffer, made, map)
  end)
end

return layout
