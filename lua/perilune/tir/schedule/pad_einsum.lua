-- pad_einsum: the iterators of a product (whose indices are iterators and constants) run to
-- multiples of some numbers. What it reads is copied with zeros behind its end, and what it writes
-- is copied up to its end.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local block_layout = require "perilune.tir.schedule.block_layout"
local buffers = require "perilune.tir.schedule.buffer"
local checks = require "perilune.tir.schedule.checks"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

-- ------------------------------------------------------------------- checks

-- By variable: the iterator, its loop, the extent that it gets, and whether this is another one.
local function new_extents(s, block, loops, padding)
  local terms, loop_of, vars, out = s.terms, {}, {}, {}
  if #padding ~= #block.iters then
    s:fail("%s has %d iterators, %d numbers are given", s:describe(block), #block.iters, #padding)
  end
  for _, loop in ipairs(loops) do loop_of[loop.var], vars[loop.var] = loop, true end
  for i, iter in ipairs(block.iters) do
    local by = padding[i]
    if by < 1 or by > 1 << 30 then s:fail("padding %d is not positive", by) end
    if terms:constant(iter.min) ~= 0 or terms:uses(iter.extent, vars) then
      s:fail("%s: iterator '%s' does not run from 0 to what does not depend on loops",
        s:describe(block), terms:name(iter.var))
    end
    local more = terms:add(iter.extent, terms:int(iter.extent, by - 1))
    local factor = terms:int(iter.extent, by)
    local extent = terms:simplify(terms:mul(terms:floordiv(more, factor), factor))
    local one = { iter = iter, loop = loop_of[block.values[i]], extent = extent,
      padded = not terms:equal(extent, iter.extent) }
    if one.padded and not one.loop then
      s:fail("%s: iterator '%s' has no loop", s:describe(block), terms:name(iter.var))
    end
    out[iter.var] = one
  end
  return out
end

-- Indices are iterators, each once, and constants.
local function check_indices(s, block, buffer, indices, extents)
  local terms, seen = s.terms, {}
  for _, index in ipairs(indices) do
    if seen[index] or not extents[index] and not terms:constant(index) then
      s:fail("%s: an index of '%s' is no constant, and no iterator that no other index is",
        s:describe(block), terms:name(buffer))
    end
    seen[index] = extents[index] ~= nil
  end
  return seen
end

-- Kinds of values that zeros behind the end could stop, or whose effects are not known.
local refused_kinds = { "PrimCall", "Div", "Mod", "FloorDiv", "FloorMod" }

local function check_value(s, block, value)
  for _, kind in ipairs(refused_kinds) do
    for _, part in ipairs(s.terms:parts(value, kind)) do
      if kind == "PrimCall" or operand.is_integer(s.terms:dtype(part)) then
        s:fail("%s: a %s is no part of a product", s:describe(block), kind)
      end
    end
  end
end

-- The factors of a product, through conversions.
local function factors_of(terms, value)
  local out, stack = {}, { value }
  while #stack > 0 do
    local term = table.remove(stack)
    local kind, parts = terms:kind(term), terms:operands(term)
    if kind == "Mul" then
      stack[#stack + 1], stack[#stack + 2] = parts[1], parts[2]
    elseif kind == "Cast" then
      stack[#stack + 1] = parts[1]
    else
      out[#out + 1] = term
    end
  end
  return out
end

-- Each factor is a constant, or an element that is 0 behind the end of a reduction.
local function check_factors(s, block, added, var)
  local terms, zeros = s.terms, 0
  for _, factor in ipairs(factors_of(terms, added)) do
    local kind = terms:kind(factor)
    if kind == "BufferLoad" and terms:uses(factor, { [var] = true }) then
      zeros = zeros + 1
    elseif kind ~= "IntImm" and kind ~= "FloatImm" then
      zeros = -math.huge
    end
  end
  if zeros < 1 then
    s:fail("%s: what it adds is no product of elements that iterator '%s' indexes",
      s:describe(block), terms:name(var))
  end
end

-- A reduction that is padded is a sum that begins with 0.
local function check_sum(s, block, extents)
  local terms, store = s.terms, block.body
  local own = terms:load(store.buffer, store.indices)
  local sides = terms:operands(store.value)
  local added = terms:kind(store.value) == "Add"
    and (sides[1] == own and sides[2] or sides[2] == own and sides[1])
  local zero = terms:import(operand.const(0, terms:dtype(store.value)))
  for _, iter in ipairs(block.iters) do
    if extents[iter.var].padded and iter.type == tree.REDUCE then
      if not added or block.init.kind ~= "Store" or block.init.value ~= zero then
        s:fail("%s: its reduction is no sum that begins with 0", s:describe(block))
      end
      check_factors(s, block, added, iter.var)
    end
  end
end

-- The store of the block, and the elements of other buffers that it reads.
local function einsum_of(s, block, extents)
  local terms, store, loads = s.terms, block.body, {}
  checks.complete_or_reduction(s, block)
  if store.kind ~= "Store" or block.init and block.init.kind ~= "Store" then
    s:fail("%s: its body is not one store", s:describe(block))
  end
  local written = check_indices(s, block, store.buffer, store.indices, extents)
  for _, iter in ipairs(block.iters) do
    if extents[iter.var].padded and iter.type == tree.SPATIAL and not written[iter.var] then
      s:fail("%s: iterator '%s' indexes nothing that it writes", s:describe(block),
        terms:name(iter.var))
    end
  end
  for _, load in ipairs(terms:parts(store.value, "BufferLoad")) do
    local operands = terms:operands(load)
    local indices = table.move(operands, 2, #operands, 1, {})
    check_indices(s, block, operands[1], indices, extents)
    if operands[1] ~= store.buffer then
      loads[#loads + 1] = { term = load, buffer = operands[1], indices = indices }
    end
  end
  check_value(s, block, store.value)
  check_sum(s, block, extents)
  return store, loads
end

-- -------------------------------------------------------------------- copies

local function is_padded(indices, extents)
  for _, index in ipairs(indices) do
    if extents[index] and extents[index].padded then return true end
  end
  return false
end

-- A buffer with the new extents where padded iterators index it.
local function new_buffer(s, buffer, indices, extents)
  local terms, dims = s.terms, {}
  local node = terms:export(buffer)
  for i, dim in ipairs(terms:shape(buffer)) do
    local one = extents[indices[i]]
    dims[i] = terms:export(one and one.padded and one.extent or dim)
  end
  return terms:import(tir.decl_buffer(dims, node.dtype, node.name .. "_pad",
    { scope = node.data.type.name }))
end

-- A block, in loops, over iterators that index an element: body_of(indices, conditions) gives its
-- store; `extent_of` how far each runs, and a condition says where it is inside of the old extent.
local function copy_nest(s, name, indices, extents, extent_of, body_of)
  local terms, from, to, iters, loops, conditions = s.terms, {}, {}, {}, {}, {}
  for _, index in ipairs(indices) do
    local one = extents[index]
    if one then
      local n, dtype = #iters + 1, terms:dtype(index)
      local zero, extent = terms:int(index, 0), extent_of(one)
      from[n], to[n] = index, terms:var("v" .. n - 1, dtype)
      iters[n] = { var = to[n], min = zero, extent = extent, type = tree.SPATIAL }
      loops[n] = terms:var("ax" .. n - 1, dtype)
      if extent ~= one.iter.extent then
        conditions[#conditions + 1] = terms:lt(to[n], one.iter.extent)
      end
    end
  end
  local body = {}
  for i, index in ipairs(indices) do body[i] = terms:replace(index, from, to) end
  local nest = access.declared(terms, { kind = "Block", id = tree.new_id(), name = name,
    iters = iters, values = loops, predicate = terms.yes, reads = {}, writes = {}, allocs = {},
    matches = {}, annotations = {}, body = body_of(body, terms:all(conditions)) })
  for i = #loops, 1, -1 do
    nest = tree.loop(loops[i], iters[i].min, iters[i].extent, nest)
  end
  return nest
end

-- The elements, and zeros behind their end.
local function pad_nest(s, load, made, extents)
  local terms = s.terms
  local dtype = terms:dtype(load.term)
  local from = { terms:var("inside", "bool"), terms:var("x", dtype) }
  local chosen = terms:import(tir.if_then_else(terms:export(from[1]), terms:export(from[2]),
    operand.const(0, dtype)))
  return copy_nest(s, terms:name(made), load.indices, extents, function(one)
    return one.extent
  end, function(indices, inside)
    local value = terms:replace(chosen, from, { inside, terms:load(load.buffer, indices) })
    return { kind = "Store", buffer = made, value = value, indices = indices }
  end)
end

-- The elements up to their end, from the padded buffer.
local function crop_nest(s, store, made, extents)
  return copy_nest(s, s.terms:name(made), store.indices, extents, function(one)
    return one.iter.extent
  end, function(indices)
    return { kind = "Store", buffer = store.buffer, value = s.terms:load(made, indices),
      indices = indices }
  end)
end

-- ----------------------------------------------------------------- the block

-- The block over the new extents, in its loops.
local function padded_block(s, block, loops, extents, from, to, output)
  local terms, iters, by_loop = s.terms, {}, {}
  for i, iter in ipairs(block.iters) do
    local one = extents[iter.var]
    iters[i] = { var = iter.var, min = iter.min, extent = one.extent, type = iter.type }
    if one.loop then by_loop[one.loop] = one.extent end
    terms:bind(iter.var, iter.min, one.extent)
  end
  local function stored(store)
    local value = terms:replace(store.value, from, to)
    return tree.with(store, { value = value, buffer = output or store.buffer })
  end
  local made = access.declared(terms, tree.with(block, { iters = iters, body = stored(block.body),
    init = block.init and stored(block.init) or false }))
  for i = #loops, 1, -1 do
    made = tree.with(loops[i], { extent = by_loop[loops[i]] or loops[i].extent, body = made })
  end
  return made
end

local function check_no_views(s, block, store, loads)
  buffers.check_plain_use(s, block, store.buffer)
  for _, load in ipairs(loads) do buffers.check_plain_use(s, block, load.buffer) end
end

--- Each iterator of the block runs to a multiple of its number; zeros stand for what is not there.
return function(s, block, padding)
  local terms, loops, scope = s.terms, block_layout.loops_around(s, block), s:scope(block)
  block_layout.check_trivial(s, block, loops)
  local extents = new_extents(s, block, loops, padding)
  local store, loads = einsum_of(s, block, extents)
  check_no_views(s, block, store, loads)
  local list, from, to, allocs = {}, {}, {}, table.move(scope.allocs, 1, #scope.allocs, 1, {})
  for _, load in ipairs(loads) do
    if is_padded(load.indices, extents) then
      local made = new_buffer(s, load.buffer, load.indices, extents)
      list[#list + 1], allocs[#allocs + 1] = pad_nest(s, load, made, extents), made
      from[#from + 1], to[#to + 1] = load.term, terms:load(made, load.indices)
    end
  end
  local output = is_padded(store.indices, extents)
    and new_buffer(s, store.buffer, store.indices, extents) or nil
  if output then
    from[#from + 1] = terms:load(store.buffer, store.indices)
    to[#to + 1], allocs[#allocs + 1] = terms:load(output, store.indices), output
  end
  list[#list + 1] = padded_block(s, block, loops, extents, from, to, output)
  if output then list[#list + 1] = crop_nest(s, store, output, extents) end
  s:replace(loops[1] or block, tree.seq(list))
  s:replace(s:now(scope), tree.with(s:now(scope), { allocs = allocs }))
end
