-- compute_at and reverse_compute_at: a block is computed inside of a loop of another, as much of it
-- as one round needs, or gives.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local checks = require "perilune.tir.schedule.checks"
local tree = require "perilune.tir.schedule.tree"

local compute_at = {}

local UNION, STRICT, NEG_INF, POS_INF = 1, 0, 0xfffffffe, 0xffffffff

-- ------------------------------------------------------------------ regions

-- The ends of a region of a block when the loops inside of `loop` (nil: all) run.
local function ends_of(s, block, region, loop)
  local terms, domains, from, to, ends = s.terms, { vars = {} }, {}, {}, {}
  for i, iter in ipairs(block.iters) do from[i], to[i] = iter.var, block.values[i] end
  for _, inner in ipairs(s:loops(block)) do
    if inner ~= loop and (loop == nil or s:contains(loop, inner)) then
      domains = access.with_domain(terms, domains, inner)
    end
  end
  for d, range in ipairs(region.ranges) do
    ends[2 * d - 1], ends[2 * d] = access.relaxed(terms, terms:replace(range.min, from, to),
      terms:replace(range.extent, from, to), domains)
  end
  return ends
end

-- What contains two lists of ends.
local function union(terms, x, y)
  if not x then return y end
  local out = {}
  for i = 1, #x, 2 do
    out[i], out[i + 1] = terms.core:combine_sets(UNION, { x[i], x[i + 1], y[i], y[i + 1] })
  end
  return out
end

--- What the blocks access of each buffer, by `regions_of`, when the loops inside of `loop` run: the
-- ends of each dimension.
local function touched(s, blocks, regions_of, loop)
  local out = {}
  for _, other in ipairs(blocks) do
    for _, region in ipairs(regions_of(other)) do
      out[region.buffer] = union(s.terms, out[region.buffer], ends_of(s, other, region, loop))
    end
  end
  return out
end

local function reads_of(block) return block.reads end

local function writes_of(block) return block.writes end

-- The part of each iterator's domain for which the block accesses what is touched: those that index
-- a dimension by themselves. Others keep their domains.
local function needed_domains(s, block, regions, areas)
  local terms, is_iter, out = s.terms, {}, {}
  for _, iter in ipairs(block.iters) do is_iter[iter.var] = iter.type == tree.SPATIAL end
  for _, region in ipairs(regions) do
    local area = areas[region.buffer]
    for d, range in ipairs(area and region.ranges or {}) do
      local low, high = area[2 * d - 1], area[2 * d]
      if is_iter[range.min] and terms:constant(range.extent) == 1 and low ~= NEG_INF
          and high ~= POS_INF then
        out[range.min] = union(terms, out[range.min], { low, high })
      end
    end
  end
  return out
end

-- --------------------------------------------------------------- new loops

-- The block in new loops over the domains.
local function nest_over(s, block, domains, keep_unit)
  local terms, values, conditions, loops = s.terms, {}, {}, {}
  for i, iter in ipairs(block.iters) do
    local min, extent, known = iter.min, iter.extent, domains[iter.var]
    if known then
      min = terms:simplify(known[1])
      extent = terms:simplify(terms:add(terms:sub(known[2], known[1]), terms:int(min, 1)))
    end
    values[i] = min
    if terms:constant(extent) ~= 1 or keep_unit then
      local var = terms:var("ax" .. #loops, terms:dtype(iter.var))
      terms:bind(var, terms:int(min, 0), extent)
      loops[#loops + 1] = { var = var, extent = extent }
      values[i] = terms:constant(min) == 0 and var or terms:add(min, var)
    end
    local last = terms:add(iter.min, iter.extent)
    for _, inside in ipairs { terms:ge(values[i], iter.min), terms:lt(values[i], last) } do
      if not terms:can_prove(inside) then conditions[#conditions + 1] = inside end
    end
  end
  local body = tree.with(block, { values = values, predicate = terms:all(conditions) })
  for i = #loops, 1, -1 do
    body = tree.loop(loops[i].var, terms:int(loops[i].extent, 0), loops[i].extent, body)
  end
  return body
end

-- ------------------------------------------------------------------- checks

local function check_place(s, block, loop, index)
  if s:scope(loop) ~= s:scope(block) then
    s:fail("%s and %s are not in one scope", s:describe(block), s:describe(loop))
  elseif s:contains(loop, block) then
    s:fail("%s is around %s already", s:describe(loop), s:describe(block))
  elseif index ~= -1 and index ~= -2 then
    s:fail("index is -1 (the last possible place) or -2 (the first), got %d", index)
  elseif not checks.is_affine(s, block) then
    s:fail("%s: its bindings are not affine", s:describe(block))
  end
end

local function check_inside(s, loop, blocks, what, block)
  if #blocks == 0 then s:fail("%s has no %s", s:describe(block), what) end
  for _, other in ipairs(blocks) do
    if not s:contains(loop, other) then
      s:fail("%s, a %s of %s, is not inside of %s", s:describe(other), what, s:describe(block),
        s:describe(loop))
    end
  end
end

-- No other block may write what the block reads after it did, or read before what it writes.
local function check_order(s, block, later)
  local read, written = checks.buffers_of(block.reads), checks.buffers_of(block.writes)
  local behind = false
  for _, other in ipairs(s:child_blocks(s:scope(block))) do
    if other == block then
      behind = true
    elseif later and behind and checks.meets(other.writes, read) then
      s:fail("%s writes what %s reads", s:describe(other), s:describe(block))
    elseif not later and not behind and checks.meets(other.reads, written) then
      s:fail("%s reads what %s writes", s:describe(other), s:describe(block))
    end
  end
end

-- Where the statements of a loop's body begin, or end, to hold one of the blocks.
local function position(s, stmts, blocks, last)
  local at
  for i, stmt in ipairs(stmts) do
    for _, block in ipairs(blocks) do
      if s:contains(stmt, block) and (last or not at) then at = i end
    end
  end
  return at
end

-- Puts a nest behind the first `at` statements of the loop, after the block was taken out.
local function move(s, block, loop, nest, at)
  s:replace(block, nil)
  loop = s:now(loop)
  local stmts = table.move(tree.stmts(loop.body), 1, #tree.stmts(loop.body), 1, {})
  table.insert(stmts, at + 1, nest)
  s:replace(loop, tree.with(loop, { body = tree.seq(stmts) }))
end

-- What the block reads of producers in loops around the new place is there: iterators that keep
-- their domains ran over all of it in a round of the loops around both places.
local function check_kept(s, block, loop, domains)
  local terms, fixed, inner, around = s.terms, { vars = {} }, false, s:loops(loop)
  around[#around + 1] = loop
  for _, producer in ipairs(checks.producers(s, block)) do
    inner = inner or s:contains(around[1], producer)
  end
  if not inner then return end
  s:bind_loops(block)
  for _, own in ipairs(s:loops(block)) do
    if not s:contains(own, loop) then fixed = access.with_domain(terms, fixed, own) end
  end
  for i, iter in ipairs(block.iters) do
    local low, high = access.relaxed(terms, block.values[i], terms:int(iter.min, 1), fixed)
    local last = terms:sub(terms:add(iter.min, iter.extent), terms:int(iter.min, 1))
    if not domains[iter.var] and (low == NEG_INF or high == POS_INF
        or not (terms:can_prove(terms:le(low, iter.min))
          and terms:can_prove(terms:ge(high, last)))) then
      s:fail("%s: a round of %s would compute it for all values of iterator '%s'",
        s:describe(block), s:describe(loop), terms:name(iter.var))
    end
  end
end

-- --------------------------------------------------------------- primitives

function compute_at.compute_at(s, block, loop, preserve_unit_loops, index)
  check_place(s, block, loop, index)
  checks.complete_or_reduction(s, block)
  if checks.is_output(s, block) then
    s:fail("%s computes an output of its scope", s:describe(block))
  end
  local consumers = checks.consumers(s, block)
  check_inside(s, loop, consumers, "consumer", block)
  check_order(s, block, true)
  s:bind_loops(loop)
  local areas = touched(s, consumers, reads_of, loop)
  local domains = needed_domains(s, block, block.writes, areas)
  check_kept(s, block, loop, domains)
  local nest = nest_over(s, block, domains, preserve_unit_loops)
  local at = index == -2 and 0 or position(s, tree.stmts(loop.body), consumers, false) - 1
  move(s, block, loop, nest, at)
end

-- A round of the loop writes all elements between the ends of what it writes.
local function check_dense(s, block, loop)
  local terms, dims, ranges = s.terms, {}, {}
  for i, value in ipairs(block.values) do
    if block.iters[i].type == tree.SPATIAL then
      table.move({ value, value, terms:int(value, 1) }, 1, 3, #dims + 1, dims)
    end
  end
  for _, inner in ipairs(s:loops(block)) do
    if inner ~= loop and s:contains(loop, inner) then
      table.move({ inner.var, inner.min, inner.extent }, 1, 3, #ranges + 1, ranges)
    end
  end
  if #dims > 0 and not terms.core:estimate_region(dims, ranges, 0, STRICT) then
    s:fail("%s: what a round of %s writes has gaps", s:describe(block), s:describe(loop))
  end
end

-- The producers are done with what they wrote in a round of the loop.
local function check_finished(s, block, loop, producers)
  local at, vars = loop, {}
  while at and at.kind ~= "Block" do
    if at.kind == "For" then vars[at.var] = true end
    at = s:parent(at)
  end
  for _, producer in ipairs(producers) do
    checks.only_ends(s, producer)
    check_dense(s, producer, loop)
    for i, iter in ipairs(producer.iters) do
      if iter.type ~= tree.SPATIAL and s.terms:uses(producer.values[i], vars) then
        s:fail("%s: %s reduces over it or a loop around it, and is not done in a round",
          s:describe(loop), s:describe(producer))
      end
    end
  end
  if not producers[1] then s:fail("%s has no producer", s:describe(block)) end
end

-- Each element that the block reads of the producers is written by them, and is read by one
-- iterator a dimension: so that the rounds together compute all of the block.
local function check_covered(s, block, producers)
  local terms, areas, domain = s.terms, touched(s, producers, writes_of, nil), {}
  for _, iter in ipairs(block.iters) do domain[iter.var] = iter end
  for _, region in ipairs(block.reads) do
    local area = areas[region.buffer]
    for d, range in ipairs(area and region.ranges or {}) do
      local iter = domain[range.min]
      if not iter or terms:constant(range.extent) ~= 1 then
        s:fail("%s: an index of what it reads of its producers is no iterator", s:describe(block))
      end
      local last = terms:sub(terms:add(iter.min, iter.extent), terms:int(iter.min, 1))
      if not (terms:can_prove(terms:le(area[2 * d - 1], iter.min))
          and terms:can_prove(terms:ge(area[2 * d], last))) then
        s:fail("%s reads more than its producers write", s:describe(block))
      end
    end
  end
end

function compute_at.reverse_compute_at(s, block, loop, preserve_unit_loops, index)
  check_place(s, block, loop, index)
  checks.complete(s, block)
  local producers = checks.producers(s, block)
  check_inside(s, loop, producers, "producer", block)
  check_finished(s, block, loop, producers)
  check_covered(s, block, producers)
  check_order(s, block, false)
  s:bind_loops(loop)
  local areas = touched(s, producers, writes_of, loop)
  local nest = nest_over(s, block, needed_domains(s, block, block.reads, areas),
    preserve_unit_loops)
  local stmts = tree.stmts(loop.body)
  local at = index == -2 and position(s, stmts, producers, true) or #stmts
  move(s, block, loop, nest, at)
end

compute_at.touched, compute_at.check_dense = touched, check_dense

return compute_at
