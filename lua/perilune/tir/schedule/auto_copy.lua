-- read_at, write_at: in each round of a loop, a block copies all that the round reads of a buffer
-- to another storage scope, or all that it writes back. The block is annotated auto_copy, by which
-- tir.LowerAutoCopy finds it.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local cache = require "perilune.tir.schedule.cache"
local checks = require "perilune.tir.schedule.checks"
local compute_at = require "perilune.tir.schedule.compute_at"
local tree = require "perilune.tir.schedule.tree"

local auto_copy = {}

-- ------------------------------------------------------------------ regions

-- What the body of the loop accesses of the buffer, by a function of blocks.
local function region_in(s, loop, buffer, regions_of)
  local terms, out = s.terms, { buffer = buffer, ranges = {} }
  s:bind_loops(loop)
  terms:bind(loop.var, loop.min, loop.extent)
  local ends = compute_at.touched(s, s:child_blocks(loop), regions_of, loop)[buffer]
  for d, dim in ipairs(terms:shape(buffer)) do
    local range = access.range_of(terms, ends[2 * d - 1], ends[2 * d], dim)
    local min = terms:simplify(range.min)
    if not (terms:can_prove(terms:ge(min, terms:int(min, 0)))
        and terms:can_prove(terms:le(terms:add(min, range.extent), dim))) then
      s:fail("a round of %s may access '%s' outside of it", s:describe(loop), terms:name(buffer))
    end
    out.ranges[d] = { min = min, extent = terms:simplify(range.extent) }
  end
  return out
end

-- The loops around, with the loop itself, that the beginning of the region depends on, in the order
-- of the dimensions. The extents depend on none.
local function loops_of_region(s, loop, region)
  local terms, around, out, known = s.terms, s:loops(loop), {}, {}
  around[#around + 1] = loop
  for _, range in ipairs(region.ranges) do
    for _, outer in ipairs(around) do
      local vars = { [outer.var] = true }
      if terms:uses(range.extent, vars) then
        s:fail("how much a round of %s accesses of '%s' depends on %s", s:describe(loop),
          terms:name(region.buffer), s:describe(outer))
      elseif terms:uses(range.min, vars) and not known[outer] then
        known[outer], out[#out + 1] = true, outer
      end
    end
  end
  return out
end

-- ---------------------------------------------------------------- the block

local function copy_block(s, loop, region, source, target, name)
  local terms, iters, values, from, to = s.terms, {}, {}, {}, {}
  for i, outer in ipairs(loops_of_region(s, loop, region)) do
    local var = terms:var("v" .. i - 1, terms:dtype(outer.var))
    local last = terms:add(outer.min, outer.extent)
    iters[i] = { var = var, min = terms:int(last, 0), extent = terms:simplify(last),
      type = tree.SPATIAL }
    values[i], from[i], to[i] = outer.var, outer.var, var
  end
  local ranges, vars, indices = {}, {}, {}
  for d, range in ipairs(region.ranges) do
    ranges[d] = { min = terms:replace(range.min, from, to), extent = range.extent }
    vars[d] = terms:var("ax" .. d - 1, terms:dtype(range.min))
    indices[d] = terms:constant(range.min) == 0 and vars[d] or terms:add(ranges[d].min, vars[d])
  end
  local body = { kind = "Store", buffer = target, value = terms:load(source, indices),
    indices = indices }
  for d = #vars, 1, -1 do
    body = tree.loop(vars[d], terms:int(vars[d], 0), ranges[d].extent, body)
  end
  return { kind = "Block", id = tree.new_id(), name = name, iters = iters, values = values,
    predicate = terms.yes, reads = { { buffer = source, ranges = ranges } },
    writes = { { buffer = target, ranges = ranges } }, allocs = {}, matches = {},
    annotations = { auto_copy = true }, body = body }
end

local function check_loop(s, loop, block)
  if not s:contains(loop, block) or s:scope(loop) ~= s:scope(block) then
    s:fail("%s is not inside of %s", s:describe(block), s:describe(loop))
  end
  local around = s:loops(loop)
  around[#around + 1] = loop
  for _, outer in ipairs(around) do
    if not s.terms:can_prove(s.terms:ge(outer.min, s.terms:int(outer.min, 0))) then
      s:fail("%s does not start with 0", s:describe(outer))
    end
  end
end

-- The loop whose body accesses `copied` in the place of the buffer, with the block at one end.
local function put(s, loop, buffer, copied, made, is_last)
  local scope = s:scope(loop)
  local body = cache.with_buffer(s, loop.body, buffer, copied)
  local stmts = is_last and { body, made } or { made, body }
  s:replace(loop, tree.with(loop, { body = tree.seq(stmts) }))
  cache.alloc(s, scope, copied)
  return made.id
end

local function cached_buffer(s, buffer, storage_scope)
  local name = ("%s_%s"):format(s.terms:name(buffer), storage_scope)
  return cache.buffer_in(s, buffer, name, storage_scope), name
end

local function reads_of(block) return block.reads end

local function writes_of(block) return block.writes end

--- Gives the block that copies, at the beginning of each round.
function auto_copy.read_at(s, loop, block, index, storage_scope)
  cache.check_scope(s, storage_scope)
  local buffer = cache.region_at(s, block.reads, index, block, "reads").buffer
  check_loop(s, loop, block)
  for _, other in ipairs(s:child_blocks(loop)) do
    if checks.meets(other.writes, { [buffer] = true }) then
      s:fail("%s writes '%s' in %s", s:describe(other), s.terms:name(buffer), s:describe(loop))
    end
  end
  local region = region_in(s, loop, buffer, reads_of)
  local copied, name = cached_buffer(s, buffer, storage_scope)
  local made = copy_block(s, loop, region, buffer, copied, name)
  return put(s, loop, buffer, copied, made, false)
end

-- A round writes all of the region that is copied back, and blocks in the loop read no more of the
-- buffer: of the copy there is nothing else.
local function check_write(s, loop, block, buffer)
  checks.complete_or_reduction(s, block)
  checks.only_ends(s, block)
  compute_at.check_dense(s, block, loop)
  local terms, blocks = s.terms, s:child_blocks(loop)
  local read = compute_at.touched(s, blocks, reads_of, loop)[buffer]
  local written = compute_at.touched(s, blocks, writes_of, loop)[buffer]
  for i = 1, read and #read or 0, 2 do
    if not (terms:can_prove(terms:ge(read[i], written[i]))
        and terms:can_prove(terms:le(read[i + 1], written[i + 1]))) then
      s:fail("a round of %s may read more of '%s' than %s writes in it", s:describe(loop),
        terms:name(buffer), s:describe(block))
    end
  end
end

--- Gives the block that copies back, at the end of each round.
function auto_copy.write_at(s, loop, block, index, storage_scope)
  cache.check_scope(s, storage_scope)
  local buffer = cache.region_at(s, block.writes, index, block, "writes").buffer
  check_loop(s, loop, block)
  check_write(s, loop, block, buffer)
  local region = region_in(s, loop, buffer, writes_of)
  local copied, name = cached_buffer(s, buffer, storage_scope)
  local made = copy_block(s, loop, region, copied, buffer, name)
  return put(s, loop, buffer, copied, made, true)
end

return auto_copy
