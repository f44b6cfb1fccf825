-- What a block reads and writes, as regions of buffers (TVM's GetBlockAccessRegion): loops inside
-- of the block are relaxed, and blocks inside of it say what they access.

local core = require "perilune.core"
core.internal()

local tree = require "perilune.tir.schedule.tree"

local access = {}

local UNION, NEG_INF, POS_INF = 1, 0xfffffffe, 0xffffffff

-- Regions in the making: for each buffer, in the order of the first access, the ends of its
-- dimensions.
local function new_list(terms, excluded)
  return { terms = terms, excluded = excluded, of = {} }
end

local function add(list, buffer, ends)
  if list.excluded[buffer] then return end
  local known = list.of[buffer]
  if not known then
    known = { buffer = buffer, ends = ends }
    list.of[buffer] = known
    list[#list + 1] = known
    return
  end
  for i = 1, #ends, 2 do
    if known.ends[i] ~= ends[i] or known.ends[i + 1] ~= ends[i + 1] then
      known.ends[i], known.ends[i + 1] = list.terms.core:combine_sets(UNION,
        { known.ends[i], known.ends[i + 1], ends[i], ends[i + 1] })
    end
  end
end

-- The ends of the values of a range when the variables of `domains` run over theirs.
local function relaxed(terms, min, extent, domains)
  if terms:constant(extent) == 1 then
    if not terms:uses(min, domains.vars) then return min, min end
    return terms.core:int_set(min, domains)
  end
  local last = terms:simplify(terms:sub(terms:add(min, extent), terms:int(min, 1)))
  if not terms:uses(min, domains.vars) and not terms:uses(last, domains.vars) then
    return min, last
  end
  local low = terms.core:int_set(min, domains)
  local _, high = terms.core:int_set(last, domains)
  return low, high
end

local function is_bounded(min, max) return min ~= NEG_INF and max ~= POS_INF end

-- A dimension from its ends: all of it where they are not known.
local function range_of(terms, min, max, dim)
  if not is_bounded(min, max) then return { min = terms:int(dim, 0), extent = dim } end
  if terms:equal(min, max) then return { min = min, extent = terms:int(min, 1) } end
  return { min = min,
    extent = terms:simplify(terms:sub(terms:add(max, terms:int(max, 1)), min)) }
end

local function regions_of(list)
  local terms, out = list.terms, {}
  for i, known in ipairs(list) do
    local ranges = {}
    for d, dim in ipairs(terms:shape(known.buffer)) do
      ranges[d] = range_of(terms, known.ends[2 * d - 1], known.ends[2 * d], dim)
    end
    out[i] = { buffer = known.buffer, ranges = ranges }
  end
  return out
end

-- Flat { var, min, max, ... }, and the set of the variables.
local function with_domain(terms, domains, loop)
  local out = table.move(domains, 1, #domains, 1, { vars = {} })
  for var in pairs(domains.vars) do out.vars[var] = true end
  local n = #out
  out[n + 1], out[n + 2] = loop.var, loop.min
  out[n + 3] = terms:sub(terms:add(loop.min, loop.extent), terms:int(loop.min, 1))
  out.vars[loop.var] = true
  return out
end

access.with_domain, access.relaxed, access.range_of = with_domain, relaxed, range_of

local function add_indices(list, buffer, indices, domains)
  local ends = {}
  for i, index in ipairs(indices) do
    ends[2 * i - 1], ends[2 * i] = relaxed(list.terms, index, list.terms:int(index, 1), domains)
  end
  add(list, buffer, ends)
end

local function add_region(list, region, domains, map)
  local ends = {}
  for i, range in ipairs(region.ranges) do
    ends[2 * i - 1], ends[2 * i] = relaxed(list.terms, map(range.min), map(range.extent), domains)
  end
  add(list, region.buffer, ends)
end

local function add_loads(list, term, domains)
  for _, load in ipairs(list.terms:parts(term, "BufferLoad")) do
    local operands = list.terms:operands(load)
    add_indices(list, operands[1], table.move(operands, 2, #operands, 1, {}), domains)
  end
end

local function add_block(terms, reads, writes, block, domains)
  local from, to = {}, {}
  for i, iter in ipairs(block.iters) do from[i], to[i] = iter.var, block.values[i] end
  local function map(term) return terms:replace(term, from, to) end
  for _, region in ipairs(block.reads) do add_region(reads, region, domains, map) end
  for _, region in ipairs(block.writes) do add_region(writes, region, domains, map) end
end

local function walk(terms, reads, writes, stmt, domains)
  if stmt.kind == "Block" then
    return add_block(terms, reads, writes, stmt, domains)
  elseif stmt.kind == "Store" then
    add_indices(writes, stmt.buffer, stmt.indices, domains)
  elseif stmt.kind == "For" then
    domains = with_domain(terms, domains, stmt)
  end
  tree.own_exprs(stmt, function(term) add_loads(reads, term, domains) end)
  for _, child in ipairs(tree.children(stmt)) do walk(terms, reads, writes, child, domains) end
end

--- The regions that a statement reads and those that it writes; without the buffers of the set
-- `excluded`.
function access.of_stmt(terms, stmt, excluded)
  local reads, writes = new_list(terms, excluded or {}), new_list(terms, excluded or {})
  walk(terms, reads, writes, stmt, { vars = {} })
  return regions_of(reads), regions_of(writes)
end

--- The same of a block: what it allocates is left out, and of what a reduction initialises it reads
-- nothing.
function access.of_block(terms, block)
  local excluded, written, kept = {}, {}, {}
  for _, buffer in ipairs(block.allocs) do excluded[buffer] = true end
  local reads, writes = access.of_stmt(terms,
    block.init and tree.seq { block.init, block.body } or block.body, excluded)
  if not block.init then return reads, writes end
  for _, region in ipairs(writes) do written[region.buffer] = true end
  for _, region in ipairs(reads) do
    if not written[region.buffer] then kept[#kept + 1] = region end
  end
  return kept, writes
end

--- The block with the regions that its body accesses.
function access.declared(terms, block)
  local reads, writes = access.of_block(terms, block)
  return tree.with(block, { reads = reads, writes = writes })
end

return access
