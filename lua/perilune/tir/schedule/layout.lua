-- transform_layout: the elements of a buffer in another order, wherever it is accessed.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local checks = require "perilune.tir.schedule.checks"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local layout = {}

local BIJECTIVE = 1

-- The buffer of a block by { "read" or "write", number from 0 }.
local function buffer_of(s, block, which)
  local regions = which[1] == "write" and block.writes or block.reads
  local region = regions[which[2] + 1]
  if not region then
    s:fail("%s %ss %d buffers; there is no buffer %s", s:describe(block), which[1], #regions,
      tostring(which[2]))
  end
  return region.buffer
end

-- The map over terms: its variables, its indices, and the shape that it gives.
local function map_of(s, buffer, index_map)
  local terms, map = s.terms, { vars = {}, indices = {}, shape = {} }
  local shape, ranges, old, new = terms:shape(buffer), {}, 1, 1
  if #index_map.initial_indices ~= #shape then
    s:fail("the map has %d variables, '%s' %d dimensions", #index_map.initial_indices,
      terms:name(buffer), #shape)
  end
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
    map.shape[i], new = high + 1, new * (high + 1)
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

-- An expression with other loads of the buffer, inner ones first.
local function new_loads(s, term, buffer, made, map)
  local terms, from, to = s.terms, {}, {}
  local loads = terms:parts(term, "BufferLoad")
  for i = #loads, 1, -1 do
    local operands = terms:operands(loads[i])
    if operands[1] == buffer then
      local indices = {}
      for k = 2, #operands do indices[k - 1] = terms:replace(operands[k], from, to) end
      from[#from + 1], to[#to + 1] = loads[i], terms:load(made, mapped(s, map, indices))
    end
  end
  return terms:replace(term, from, to)
end

local function check_plain_use(s, stmt, buffer)
  local terms = s.terms
  local data = { [terms:operands(buffer)[1]] = true }
  tree.visit(stmt, function(inner)
    for _, match in ipairs(inner.matches or {}) do
      if match.source.buffer == buffer then
        s:fail("%s has a view of '%s'", s:describe(inner), terms:name(buffer))
      end
    end
    tree.own_exprs(inner, function(term)
      if terms:kind(term) == "Buffer" and term == buffer and inner.kind == "Other"
          or terms:kind(term) ~= "Buffer" and terms:uses(term, data) then
        s:fail("'%s' is used otherwise than by its elements", terms:name(buffer))
      end
    end)
  end)
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
  return tree.map(stmt, function(inner)
    if inner.kind == "Store" then
      local indices = {}
      for i, index in ipairs(inner.indices) do
        indices[i] = new_loads(s, index, buffer, made, map)
      end
      local own = inner.buffer == buffer
      return { kind = "Store", buffer = own and made or inner.buffer,
        value = new_loads(s, inner.value, buffer, made, map),
        indices = own and mapped(s, map, indices) or indices }
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
      return terms:kind(term) == "Buffer" and term or new_loads(s, term, buffer, made, map)
    end)
  end)
end

-- Where a buffer is declared: the block that allocates it, or the parameters of the function.
local function owner_of(s, block, buffer)
  local around = block
  while around do
    for i, own in ipairs(around.kind == "Block" and around.allocs or {}) do
      if own == buffer then return around, i end
    end
    around = s:parent(around)
  end
  return nil
end

local function rebind(s, name, buffer, made)
  local binds = {}
  for i, bind in ipairs(s.funcs[name].binds) do
    binds[i] = { param = bind.param, buffer = bind.buffer == buffer and made or bind.buffer }
  end
  s.funcs = tree.with(s.funcs, { [name] = tree.with(s.funcs[name], { binds = binds }) })
end

--- The element at some indices of the buffer is then at those that the map gives for them.
function layout.transform_layout(s, block, which, index_map)
  local buffer = buffer_of(s, block, which)
  local map, name = map_of(s, buffer, index_map), s:func_of(block)
  local owner, at = owner_of(s, block, buffer)
  local within = owner or s.funcs[name].body
  check_plain_use(s, within, buffer)
  bind_all(s, within)
  local made = new_buffer(s, buffer, map)
  local out = rewritten(s, within, buffer, made, map)
  if owner then
    local allocs = table.move(owner.allocs, 1, #owner.allocs, 1, {})
    allocs[at] = made
    out = tree.with(out, { allocs = allocs })
  else
    rebind(s, name, buffer, made)
  end
  s:replace(within, out)
end

return layout
