-- cache_read, cache_write, cache_inplace and set_scope: buffers in other storage scopes, and blocks
-- that copy.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local checks = require "perilune.tir.schedule.checks"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local cache = {}

-- ------------------------------------------------------------------- parts

local function check_scope(s, storage_scope)
  if not storage_scope:find "^[%a][%w_.]*$" then
    s:fail("'%s' is no storage scope", storage_scope)
  end
end

local function region_at(s, regions, index, block, what)
  local region = regions[index + 1]
  if index < 0 or not region then
    s:fail("%s %s %d buffers; there is no buffer %d", s:describe(block), what, #regions, index)
  end
  return region
end

-- A buffer like another one in a storage scope.
local function buffer_in(s, buffer, name, storage_scope)
  local terms, dims = s.terms, {}
  for i, dim in ipairs(terms:shape(buffer)) do dims[i] = terms:export(dim) end
  return terms:import(tir.decl_buffer(dims, terms:export(buffer).dtype, name,
    { scope = storage_scope }))
end

-- A statement with one buffer in the place of another: elements, what blocks declare, pointers.
local function with_buffer(s, stmt, old, new)
  local terms = s.terms
  return tree.replace_exprs(terms, stmt, { old, terms:operands(old)[1] },
    { new, terms:operands(new)[1] })
end

local function alloc(s, scope, buffer)
  scope = s:now(scope)
  local allocs = table.move(scope.allocs, 1, #scope.allocs, 1, {})
  allocs[#allocs + 1] = buffer
  s:replace(scope, tree.with(scope, { allocs = allocs }))
end

-- The range of a dimension when the loops of `domains` run.
local function relaxed_range(s, range, dim, domains, from, to)
  local terms = s.terms
  local low, high = access.relaxed(terms, terms:replace(range.min, from, to),
    terms:replace(range.extent, from, to), domains)
  local made = access.range_of(terms, low, high, dim)
  local inside = terms:can_prove(terms:ge(made.min, terms:int(made.min, 0)))
    and terms:can_prove(terms:le(terms:add(made.min, made.extent), dim))
  return inside and { min = terms:simplify(made.min), extent = made.extent }
end

-- The region of a block's buffer that is written when the loops from `place` inwards have run: of
-- all loops that which the iterators run over, whatever a predicate leaves out.
local function region_from(s, block, region, place)
  local terms, domains, from, to, iters = s.terms, { vars = {} }, {}, {}, {}
  for i, iter in ipairs(block.iters) do
    from[i], to[i], iters[iter.var] = iter.var, block.values[i], iter
  end
  s:bind_loops(block)
  local whole = #s:loops(place) == 0
  for _, loop in ipairs(s:loops(block)) do
    if s:contains(place, loop) then domains = access.with_domain(terms, domains, loop) end
  end
  local ranges = {}
  for d, dim in ipairs(terms:shape(region.buffer)) do
    local range = region.ranges[d]
    local iter = whole and terms:constant(range.extent) == 1 and iters[range.min]
    ranges[d] = iter and { min = iter.min, extent = iter.extent }
      or (whole or block.predicate == terms.yes) and relaxed_range(s, range, dim, domains, from, to)
      or s:fail("%s: what a round of %s writes is not known", s:describe(block),
        whole and "its loops" or "the loops around")
  end
  return { buffer = region.buffer, ranges = ranges }
end

-- A block that copies a region, in loops of its own.
local function copy_nest(s, region, source, target, name)
  local terms = s.terms
  local iters, values, loops, indices, point = {}, {}, {}, {}, {}
  for d, dim in ipairs(terms:shape(target)) do
    local range = region.ranges[d]
    local var = terms:var("v" .. d - 1, terms:dtype(dim))
    iters[d] = { var = var, min = terms:int(dim, 0), extent = dim, type = tree.SPATIAL }
    indices[d], point[d] = var, { min = var, extent = terms:int(var, 1) }
    local loop = terms:var("ax" .. d - 1, terms:dtype(dim))
    loops[d] = { var = loop, extent = range.extent }
    values[d] = terms:constant(range.min) == 0 and loop or terms:add(range.min, loop)
  end
  local block = { kind = "Block", id = tree.new_id(), name = name, iters = iters, values = values,
    predicate = terms.yes, reads = { { buffer = source, ranges = point } },
    writes = { { buffer = target, ranges = point } }, allocs = {}, matches = {}, annotations = {},
    body = { kind = "Store", buffer = target, value = terms:load(source, indices),
      indices = indices } }
  local body = block
  for i = #loops, 1, -1 do
    body = tree.loop(loops[i].var, terms:int(loops[i].extent, 0), loops[i].extent, body)
  end
  return body, block.id
end

local function n_inside(s, stmt, blocks)
  local n = 0
  for _, block in ipairs(blocks) do
    if s:contains(stmt, block) then n = n + 1 end
  end
  return n
end

-- Behind which statement a copy of what a block writes is put: the innermost one in a sequence with
-- all of the others, which access the copy; else the outermost one in the scope that holds none of
-- them.
local function place_of(s, block, others)
  local place, around, scope = block, s:parent(block), s:scope(block)
  local last = nil
  while true do
    if around == scope or around.kind == "Seq" then
      if n_inside(s, place, others) > 0 then return last end
      if #others > 0 and n_inside(s, around, others) == #others then return place end
      last = place
    end
    if around == scope then return last end
    place, around = around, s:parent(around)
  end
end

-- Statements in the place of one.
local function put(s, place, list) s:replace(place, tree.seq(list)) end

-- The same statements after replacements.
local function now_all(s, stmts)
  local out = {}
  for i, stmt in ipairs(stmts) do out[i] = s:now(stmt) end
  return out
end

-- --------------------------------------------------------------- cache_read

local function readers_of(s, block, buffer, given)
  local out, set = {}, { [buffer] = true }
  local from = #given > 0 and given or s:child_blocks(s:scope(block))
  for _, other in ipairs(from) do
    if checks.meets(other.reads, set) then
      out[#out + 1] = other
    elseif #given > 0 then
      s:fail("%s does not read '%s'", s:describe(other), s.terms:name(buffer))
    end
  end
  return out
end

local function writer_of(s, scope, buffer)
  local found
  for _, other in ipairs(s:child_blocks(scope)) do
    if checks.meets(other.writes, { [buffer] = true }) then
      if found then
        s:fail("'%s' is written by %s and by %s", s.terms:name(buffer), s:describe(found),
          s:describe(other))
      end
      found = other
    end
  end
  return found
end

function cache.cache_read(s, block, index, storage_scope, consumers)
  check_scope(s, storage_scope)
  local terms, scope = s.terms, s:scope(block)
  local region = region_at(s, block.reads, index, block, "reads")
  local buffer = region.buffer
  local name = ("%s_%s"):format(terms:name(buffer), storage_scope)
  local readers, writer = readers_of(s, block, buffer, consumers), writer_of(s, scope, buffer)
  local copied = buffer_in(s, buffer, name, storage_scope)
  local copied_region = tree.full_region(terms, buffer)
  if writer then
    for _, reader in ipairs(readers) do
      if reader == writer then
        s:fail("%s reads and writes '%s'", s:describe(writer), terms:name(buffer))
      end
    end
    local place = place_of(s, writer, readers)
    for _, own in ipairs(writer.writes) do
      if own.buffer == buffer then copied_region = region_from(s, writer, own, place) end
    end
  end
  local nest, id = copy_nest(s, copied_region, buffer, copied, name)
  -- The readers keep their ids; the place is found again by what it holds.
  for _, reader in ipairs(readers) do
    reader = s:now(reader)
    s:replace(reader, with_buffer(s, reader, buffer, copied))
  end
  if writer then
    local place = place_of(s, s:now(writer), now_all(s, readers))
    put(s, place, { place, nest })
  else
    scope = s:now(scope)
    s:replace(scope, tree.with(scope, { body = tree.seq { nest, scope.body } }))
  end
  alloc(s, scope, copied)
  return id
end

-- -------------------------------------------------------------- cache_write

-- Whether the elements of a region are without gaps when the iterators run.
local function check_dense(s, block, region)
  local is_iter = {}
  for _, iter in ipairs(block.iters) do is_iter[iter.var] = true end
  for _, range in ipairs(region.ranges) do
    if not is_iter[range.min] and not s.terms:constant(range.min) then
      s:fail("%s: an index of what it writes is neither an iterator nor a constant",
        s:describe(block))
    end
  end
end

function cache.cache_write(s, block, index, storage_scope)
  check_scope(s, storage_scope)
  local terms, scope = s.terms, s:scope(block)
  local region = region_at(s, block.writes, index, block, "writes")
  local buffer = region.buffer
  checks.complete_or_reduction(s, block)
  check_dense(s, block, region)
  local name = ("%s_%s"):format(terms:name(buffer), storage_scope)
  local copied, readers = buffer_in(s, buffer, name, storage_scope), {}
  for _, other in ipairs(s:child_blocks(scope)) do
    if other ~= block and checks.meets(other.reads, { [buffer] = true }) then
      readers[#readers + 1] = other
    end
  end
  local place = place_of(s, block, readers)
  local nest, id = copy_nest(s, region_from(s, block, region, place), copied, buffer, name)
  s:replace(block, with_buffer(s, block, buffer, copied))
  place = place_of(s, s:now(block), now_all(s, readers))
  put(s, place, { place, nest })
  alloc(s, scope, copied)
  return id
end

-- ------------------------------------------------------------ cache_inplace

-- A region of a block with the values of its iterators, which is inside of the buffer.
local function region_around(s, block, region)
  local terms, from, to, ranges = s.terms, {}, {}, {}
  for i, iter in ipairs(block.iters) do from[i], to[i] = iter.var, block.values[i] end
  local none = { vars = {} }
  s:bind_loops(block)
  for d, dim in ipairs(terms:shape(region.buffer)) do
    ranges[d] = relaxed_range(s, region.ranges[d], dim, none, from, to)
      or s:fail("%s may access '%s' outside of it: what it accesses is not known",
        s:describe(block), terms:name(region.buffer))
  end
  return { buffer = region.buffer, ranges = ranges }
end

-- The smallest region that holds two of one buffer.
local function hull(s, x, y)
  local terms, ranges = s.terms, {}
  for d, dim in ipairs(terms:shape(x.buffer)) do
    local a, b = x.ranges[d], y.ranges[d]
    if terms:equal(a.min, b.min) and terms:equal(a.extent, b.extent) then
      ranges[d] = a
    else
      local min = terms:simplify(terms:min(a.min, b.min))
      local ends = terms:max(terms:add(a.min, a.extent), terms:add(b.min, b.extent))
      ranges[d] = { min = min, extent = terms:simplify(terms:sub(ends, min)) }
      if terms:constant(terms:simplify(ranges[d].extent)) == nil then
        ranges[d] = { min = terms:int(dim, 0), extent = dim }
      end
    end
  end
  return { buffer = x.buffer, ranges = ranges }
end

--- The block works on a copy of what it reads and writes of a buffer: the block that copies this in
-- front of it, and the one that copies what it writes back.
function cache.cache_inplace(s, block, index, storage_scope)
  check_scope(s, storage_scope)
  local terms, scope = s.terms, s:scope(block)
  local read = region_at(s, block.reads, index, block, "reads")
  local buffer, written = read.buffer, nil
  for _, region in ipairs(block.writes) do
    if region.buffer == buffer then written = region end
  end
  if not written then s:fail("%s does not write '%s'", s:describe(block), terms:name(buffer)) end
  local back = region_around(s, block, written)
  local name = ("%s_%s"):format(terms:name(buffer), storage_scope)
  local copied = buffer_in(s, buffer, name, storage_scope)
  -- What the block does not write is copied back as it was.
  local region = hull(s, region_around(s, block, read), back)
  local first, first_id = copy_nest(s, region, buffer, copied, name)
  local last, last_id = copy_nest(s, back, copied, buffer, name)
  s:replace(block, tree.seq { first, with_buffer(s, block, buffer, copied), last })
  alloc(s, scope, copied)
  return { first_id, last_id }
end

-- ---------------------------------------------------------------- set_scope

function cache.set_scope(s, block, index, storage_scope)
  check_scope(s, storage_scope)
  local terms = s.terms
  local buffer = region_at(s, block.writes, index, block, "writes").buffer
  local scope = block
  while scope do
    for i, own in ipairs(scope.kind == "Block" and scope.allocs or {}) do
      if own == buffer then
        if terms:export(buffer).data.type.name == storage_scope then return end
        local made = buffer_in(s, buffer, ("%s_%s"):format(terms:name(buffer), storage_scope),
          storage_scope)
        local allocs = table.move(scope.allocs, 1, #scope.allocs, 1, {})
        allocs[i] = made
        s:replace(scope, tree.with(with_buffer(s, scope, buffer, made), { allocs = allocs }))
        return
      end
    end
    scope = s:parent(scope)
  end
  s:fail("'%s' is no buffer of a block: it is a parameter", terms:name(buffer))
end

-- ------------------------------------------------------------ storage_align

--- Says that the stride of a dimension is `offset` modulo `factor`, in an annotation.
function cache.storage_align(s, block, index, axis, factor, offset)
  local buffer = region_at(s, block.writes, index, block, "writes").buffer
  local rank = s.terms:rank(buffer)
  if axis < 0 then axis = axis + rank end
  if axis < 0 or axis >= rank then
    s:fail("'%s' has %d dimensions; there is no axis %d", s.terms:name(buffer), rank, axis)
  elseif factor < 1 then
    s:fail("factor %d is not positive", factor)
  end
  local key, list = "buffer_dim_align", {}
  for _, old in ipairs(block.annotations[key] or {}) do
    if not (old[1] == index and old[2] == axis) then list[#list + 1] = old end
  end
  list[#list + 1] = { index, axis, factor, offset }
  s:replace(block, tree.with(block, {
    annotations = tree.with(block.annotations, { [key] = list }) }))
end

cache.check_scope, cache.region_at, cache.buffer_in = check_scope, region_at, buffer_in
cache.with_buffer, cache.alloc = with_buffer, alloc

return cache
