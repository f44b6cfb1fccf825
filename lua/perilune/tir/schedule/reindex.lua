-- reindex, reindex_cache_read, reindex_cache_write: a block accesses another buffer by its
-- iterators as they are, or as a map has them; a block of its own copies between this and the
-- elements that it accessed before.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local buffers = require "perilune.tir.schedule.buffer"
local cache = require "perilune.tir.schedule.cache"
local checks = require "perilune.tir.schedule.checks"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local reindex = {}

local BIJECTIVE = 1

-- ----------------------------------------------------------------- accesses

local function same_list(a, b)
  for i, item in ipairs(a) do
    if item ~= b[i] then return false end
  end
  return #a == #b
end

-- The indices by which a block accesses a buffer: one list for all accesses.
local function only_indices(s, block, buffer)
  local terms, found = s.terms, nil
  local function add(indices)
    if found and not same_list(found, indices) then
      s:fail("%s accesses '%s' by several lists of indices", s:describe(block),
        terms:name(buffer))
    end
    found = indices
  end
  tree.visit(block, function(inner)
    if inner ~= block and inner.kind == "Block" then
      s:fail("%s is in %s", s:describe(inner), s:describe(block))
    end
    if inner.kind == "Store" and inner.buffer == buffer then add(inner.indices) end
    tree.own_exprs(inner, function(term)
      for _, load in ipairs(terms:parts(term, "BufferLoad")) do
        local operands = terms:operands(load)
        if operands[1] == buffer then add(table.move(operands, 2, #operands, 1, {})) end
      end
    end)
  end)
  return found or s:fail("%s does not access '%s' by elements", s:describe(block),
    terms:name(buffer))
end

-- The iterators that the indices use, in the order of the block's.
local function used_iters(s, block, buffer, indices)
  local terms, used, out = s.terms, {}, {}
  for _, index in ipairs(indices) do
    for _, var in ipairs(terms:parts(index, "Var")) do used[var] = true end
  end
  for _, iter in ipairs(block.iters) do
    if used[iter.var] then out[#out + 1] = iter end
    used[iter.var] = nil
    terms:bind(iter.var, iter.min, iter.extent)
  end
  tree.visit(block, function(inner)
    local var = inner.kind ~= "Block" and inner.var
    if var and used[var] then
      s:fail("%s: an index of '%s' depends on '%s', which is no iterator", s:describe(block),
        terms:name(buffer), terms:name(var))
    end
  end)
  return out
end

-- All values of the iterators give elements that there are.
local function check_inside(s, block, buffer, indices)
  local terms, shape = s.terms, s.terms:shape(buffer)
  for i, index in ipairs(indices) do
    if not (terms:can_prove(terms:ge(index, terms:int(index, 0)))
        and terms:can_prove(terms:lt(index, shape[i]))) then
      s:fail("%s: index %d of '%s' may be outside of it for some values of the iterators",
        s:describe(block), i - 1, terms:name(buffer))
    end
  end
end

-- ------------------------------------------------------------------- places

-- The statement of the scope's body that a block is in.
local function statement_of(s, block)
  local scope, place = s:scope(block), block
  local around = s:parent(place)
  while around ~= scope and not (around.kind == "Seq" and s:parent(around) == scope) do
    place, around = around, s:parent(around)
  end
  return place
end

local function check_alone(s, place, block, buffer, regions_of, what)
  for _, other in ipairs(s:child_blocks(s:scope(block))) do
    if other ~= block and s:contains(place, other)
        and checks.meets(regions_of(other), { [buffer] = true }) then
      s:fail("%s %s '%s' in the loops around %s", s:describe(other), what, s.terms:name(buffer),
        s:describe(block))
    end
  end
end

local function reads_of(block) return block.reads end

local function writes_of(block) return block.writes end

local function check_read(s, place, block, buffer)
  if checks.meets(block.writes, { [buffer] = true }) then
    s:fail("%s reads and writes '%s'", s:describe(block), s.terms:name(buffer))
  end
  check_alone(s, place, block, buffer, writes_of, "writes")
end

-- Each element is written, by one value of the iterators.
local function check_write(s, place, block, buffer, indices, iters)
  local terms, ranges = s.terms, {}
  checks.complete_or_reduction(s, block)
  checks.whole_domain(s, block)
  check_alone(s, place, block, buffer, reads_of, "reads")
  for _, iter in ipairs(iters) do
    table.move({ iter.var, iter.min, iter.extent }, 1, 3, #ranges + 1, ranges)
  end
  local _, numbers = terms.core:detect_iter_map(indices, ranges, 0, BIJECTIVE, true)
  if #iters > 0 and not numbers then
    s:fail("%s: several values of the iterators may write one element of '%s'",
      s:describe(block), terms:name(buffer))
  end
end

-- -------------------------------------------------------------- the new block

-- What the new buffer is: its name, its storage scope (nil: global), its dimensions, and the
-- indices by which the block accesses it.
local function layout_of_iters(s, buffer, iters)
  local terms, layout = s.terms, { dims = {}, indices = {} }
  layout.name = terms:name(buffer) .. "_reindex"
  for i, iter in ipairs(iters) do
    layout.dims[i] = terms:export(terms:simplify(terms:add(iter.min, iter.extent)))
    layout.indices[i] = iter.var
  end
  return layout
end

local function new_buffer(s, buffer, layout)
  return s.terms:import(tir.decl_buffer(layout.dims, s.terms:export(buffer).dtype, layout.name,
    { scope = layout.storage_scope }))
end

local function block_of(s, name, iters, values, body)
  return access.declared(s.terms, { kind = "Block", id = tree.new_id(), name = name,
    iters = iters, values = values, predicate = s.terms.yes, reads = {}, writes = {}, allocs = {},
    matches = {}, annotations = {}, body = body })
end

local function replaced(terms, list, from, to)
  local out = {}
  for i, term in ipairs(list) do out[i] = terms:replace(term, from, to) end
  return out
end

-- The loops that copy; `is_write`: from the new buffer, whose indices are `own`.
local function copy_nest(s, made, own, buffer, indices, iters, is_write)
  local terms, from, to, loops, copies, values = s.terms, {}, {}, {}, {}, {}
  for i, iter in ipairs(iters) do
    local dtype = terms:dtype(iter.var)
    from[i], to[i] = iter.var, terms:var("v" .. i - 1, dtype)
    loops[i] = terms:var("ax" .. i - 1, dtype)
    copies[i] = { var = to[i], min = iter.min, extent = iter.extent, type = tree.SPATIAL }
    values[i] = terms:constant(iter.min) == 0 and loops[i] or terms:add(iter.min, loops[i])
    terms:bind(to[i], iter.min, iter.extent)
  end
  local elements = {}
  for i, index in ipairs(indices) do
    -- An iterator of one round stays an index.
    local plain = terms:replace(index, from, to)
    local simple = terms:simplify(plain)
    elements[i] = terms:constant(simple) and plain or simple
  end
  own = replaced(terms, own, from, to)
  local body = { kind = "Store", buffer = made, indices = own,
    value = terms:load(buffer, elements) }
  if is_write then
    body = { kind = "Store", buffer = buffer, value = terms:load(made, own), indices = elements }
  end
  local block = block_of(s, terms:name(made), copies, values, body)
  local nest = block
  for i = #loops, 1, -1 do
    nest = tree.loop(loops[i], terms:int(iters[i].extent, 0), iters[i].extent, nest)
  end
  return nest, block.id
end

-- The block with the new buffer, by the indices `own`.
local function accessing(s, block, buffer, made, own)
  local terms, ranges = s.terms, {}
  for i, index in ipairs(own) do ranges[i] = { min = index, extent = terms:int(index, 1) } end
  local element = terms:load(made, own)
  local function loads(term)
    return buffers.with_values(terms, term, buffer, function() return element end)
  end
  local function regions(list)
    local out = {}
    for i, region in ipairs(list) do
      out[i] = region.buffer == buffer and { buffer = made, ranges = ranges } or region
    end
    return out
  end
  return tree.map(block, function(inner)
    if inner.kind == "Seq" then return inner end
    if inner == block or inner.kind == "Block" then
      return tree.with(inner, { reads = regions(inner.reads), writes = regions(inner.writes) })
    end
    local stored = inner.kind == "Store" and inner.buffer == buffer
    inner = tree.map_own_exprs(inner, function(term)
      return terms:kind(term) == "Buffer" and term or loads(term)
    end)
    return stored and tree.with(inner, { buffer = made, indices = own }) or inner
  end)
end

-- The block that copies: in front of the loops around the block what it reads, or behind them
-- what it writes. layout_of(iters) says what the new buffer is, by the iterators that the access
-- uses.
local function through(s, block, buffer, is_write, layout_of)
  local scope = s:scope(block)
  buffers.check_plain_use(s, block, buffer)
  local indices = only_indices(s, block, buffer)
  local iters, place = used_iters(s, block, buffer, indices), statement_of(s, block)
  check_inside(s, block, buffer, indices)
  if is_write then
    check_write(s, place, block, buffer, indices, iters)
  else
    check_read(s, place, block, buffer)
  end
  local layout = layout_of(iters)
  local made = new_buffer(s, buffer, layout)
  local nest, id = copy_nest(s, made, layout.indices, buffer, indices, iters, is_write)
  s:replace(block, accessing(s, block, buffer, made, layout.indices))
  place = statement_of(s, s:now(block))
  s:replace(place, tree.seq(is_write and { place, nest } or { nest, place }))
  cache.alloc(s, scope, made)
  return id
end

--- By the iterators as they are.
function reindex.reindex(s, block, which)
  local buffer = buffers.of(s, block, which)
  return through(s, block, buffer, which[1] == "write", function(iters)
    return layout_of_iters(s, buffer, iters)
  end)
end

-- ------------------------------------------------- reindex_cache_read, _write

-- The map's indices for the iterators of a block.
local function mapped_indices(s, block, index_map)
  local terms, from, to, out = s.terms, {}, {}, {}
  for i, iter in ipairs(block.iters) do to[i] = iter.var end
  if #index_map.initial_indices ~= #to then
    s:fail("the map has %d variables, %s %d iterators", #index_map.initial_indices,
      s:describe(block), #to)
  end
  index_map = terms:typed_map(index_map, to)
    or s:fail("the iterators of %s have different dtypes", s:describe(block))
  for i, var in ipairs(index_map.initial_indices) do from[i] = terms:import(var) end
  for i, index in ipairs(index_map.final_indices) do
    out[i] = terms:replace(terms:import(index), from, to)
  end
  return out
end

-- The buffer that different values of the iterators access at different indices.
local function layout_of_map(s, block, buffer, index_map, iters, storage_scope)
  local terms, used, ranges = s.terms, {}, {}
  local layout = { dims = {}, storage_scope = storage_scope,
    name = ("%s_%s"):format(terms:name(buffer), storage_scope),
    indices = mapped_indices(s, block, index_map) }
  for _, iter in ipairs(iters) do
    used[iter.var] = true
    table.move({ iter.var, iter.min, iter.extent }, 1, 3, #ranges + 1, ranges)
  end
  for i, index in ipairs(layout.indices) do
    for _, var in ipairs(terms:parts(index, "Var")) do
      if not used[var] then
        s:fail("index %d of the map uses iterator '%s', by which %s does not access '%s'", i - 1,
          terms:name(var), s:describe(block), terms:name(buffer))
      end
    end
    local low, high = terms.core:const_int_bound(index)
    if low < 0 or high < 0 or high > 1 << 40 then
      s:fail("index %d of the map has no constant range from 0 on", i - 1)
    end
    layout.dims[i] = terms:export(terms:int(index, high + 1))
  end
  local _, numbers = terms.core:detect_iter_map(layout.indices, ranges, 0, BIJECTIVE, true)
  if #iters > 0 and not numbers then
    s:fail("several values of the iterators of %s may have the same indices by the map",
      s:describe(block))
  end
  return layout
end

local function through_map(s, block, which, storage_scope, index_map)
  cache.check_scope(s, storage_scope)
  local buffer = buffers.of(s, block, which)
  return through(s, block, buffer, which[1] == "write", function(iters)
    return layout_of_map(s, block, buffer, index_map, iters, storage_scope)
  end)
end

--- What the block reads is copied to where a map of its iterators says.
function reindex.reindex_cache_read(s, block, index, storage_scope, index_map)
  return through_map(s, block, { "read", index }, storage_scope, index_map)
end

--- What the block writes is first where a map of its iterators says.
function reindex.reindex_cache_write(s, block, index, storage_scope, index_map)
  return through_map(s, block, { "write", index }, storage_scope, index_map)
end

return reindex
