-- rolling_buffer: a buffer that each round of a loop computes a window of keeps what the round
-- before computed: it is as large as the window in that dimension, and elements lie modulo that.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local buffers = require "perilune.tir.schedule.buffer"
local cache = require "perilune.tir.schedule.cache"
local checks = require "perilune.tir.schedule.checks"
local compute_at = require "perilune.tir.schedule.compute_at"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local NEG_INF, POS_INF = 0xfffffffe, 0xffffffff

-- ------------------------------------------------------------------- window

-- The innermost loop around all of some blocks.
local function loop_around(s, block, others)
  local loops = s:loops(block)
  for i = #loops, 1, -1 do
    local all = true
    for _, other in ipairs(others) do all = all and s:contains(loops[i], other) end
    if all then return loops[i] end
  end
  return nil
end

-- The loop whose rounds compute windows and read them: the innermost one around the block and its
-- consumers; and these.
local function rolling_place(s, block, buffer)
  local readers = checks.consumers(s, block)
  for _, other in ipairs(s:child_blocks(s:scope(block))) do
    if other ~= block and checks.meets(other.writes, { [buffer] = true }) then
      s:fail("%s writes '%s' too", s:describe(other), s.terms:name(buffer))
    end
  end
  local loop = #readers > 0 and loop_around(s, block, readers)
  if not loop then
    s:fail("%s: no loop is around it and around what reads '%s'", s:describe(block),
      s.terms:name(buffer))
  end
  local around = s:loops(loop)
  around[#around + 1] = loop
  for _, outer in ipairs(around) do
    if outer.for_kind ~= tree.SERIAL and outer.for_kind ~= tree.UNROLLED then
      s:fail("%s does not run its rounds one after the other", s:describe(outer))
    end
  end
  return loop, readers
end

local function writes_of(block) return block.writes end

local function reads_of(block) return block.reads end

-- The window of the buffer that a round of the loop computes.
local function window_of(s, block, buffer, loop)
  local terms, window = s.terms, {}
  s:bind_loops(block)
  local ends = compute_at.touched(s, { block }, writes_of, loop)[buffer]
  for d, dim in ipairs(terms:shape(buffer)) do
    local range = access.range_of(terms, ends[2 * d - 1], ends[2 * d], dim)
    window[d] = { min = terms:simplify(range.min), extent = terms:simplify(range.extent) }
  end
  return window
end

-- The variable of a window's beginning, and by how much a step moves it at the most: the beginning
-- is a constant (nil), v, v * c, or one of these // c. false: it is something else.
local function step_of(terms, min)
  local divisor, kind = 1, terms:kind(min)
  if kind == "FloorDiv" then
    local operands = terms:operands(min)
    divisor, min = terms:constant(operands[2]), operands[1]
    kind = terms:kind(min)
  end
  if terms:constant(min) then return nil, 0 end
  if kind == "Var" then return min, divisor and (1 + divisor - 1) // divisor end
  local operands = kind == "Mul" and terms:operands(min) or {}
  local stride = operands[2] and terms:constant(operands[2])
  if not stride or stride < 1 or not divisor or divisor < 1
      or terms:kind(operands[1]) ~= "Var" then
    return false
  end
  return operands[1], (stride + divisor - 1) // divisor
end

-- For each dimension whose windows overlap { var, overlap }; the others are false.
local function overlaps_of(s, block, buffer, window)
  local terms, out = s.terms, {}
  for d, range in ipairs(window) do
    local var, step = step_of(terms, range.min)
    local extent = terms:constant(range.extent)
    if var == false or var and not extent then
      s:fail("%s: a window of '%s' begins with no loop variable and with no multiple of one",
        s:describe(block), terms:name(buffer))
    end
    out[d] = var and extent > step and { var = var, overlap = extent - step } or false
  end
  return out
end

-- The dimension whose variable has the outermost loop.
local function rolling_axis(s, block, buffer, overlaps)
  local outermost, used = nil, {}
  for _, loop in ipairs(s:loops(block)) do
    for d, one in ipairs(overlaps) do
      if one and one.var == loop.var then
        if used[loop.var] then
          s:fail("two dimensions of '%s' move with %s", s.terms:name(buffer), s:describe(loop))
        elseif s.terms:constant(loop.min) ~= 0 then
          s:fail("%s does not start with 0", s:describe(loop))
        end
        used[loop.var] = true
        outermost = outermost or d
      end
    end
  end
  if not outermost then
    s:fail("%s: the windows of '%s' that rounds compute do not overlap", s:describe(block),
      s.terms:name(buffer))
  end
  return outermost
end

-- ------------------------------------------------------------------- checks

-- The dimensions of the buffer are the first iterators of the block, in order.
local function check_indices(s, block, buffer)
  for _, region in ipairs(block.writes) do
    for d, range in ipairs(region.buffer == buffer and region.ranges or {}) do
      local iter = block.iters[d]
      if not iter or iter.var ~= range.min or s.terms:constant(range.extent) ~= 1
          or iter.type ~= tree.SPATIAL then
        s:fail("%s: index %d of '%s' is not its iterator %d", s:describe(block), d - 1,
          s.terms:name(buffer), d - 1)
      end
    end
  end
end

-- What a round reads, the same round has in its window.
local function check_readers(s, loop, readers, buffer, window)
  local terms = s.terms
  for _, reader in ipairs(readers) do s:bind_loops(reader) end
  local ends = compute_at.touched(s, readers, reads_of, loop)[buffer]
  for d, range in ipairs(window) do
    local low, high = ends[2 * d - 1], ends[2 * d]
    local last = terms:sub(terms:add(range.min, range.extent), terms:int(range.min, 1))
    local whole = terms:constant(range.min) == 0
      and terms:equal(range.extent, terms:shape(buffer)[d])
    if not whole and (low == NEG_INF or high == POS_INF
        or not (terms:can_prove(terms:ge(low, range.min))
          and terms:can_prove(terms:le(high, last)))) then
      s:fail("a round of %s may read of '%s' what it does not compute", s:describe(loop),
        terms:name(buffer))
    end
  end
end

-- ------------------------------------------------------------------ rewrite

-- The elements that the round before has not computed.
local function new_elements(s, block, overlaps)
  local terms, condition = s.terms, block.predicate
  for d, one in ipairs(overlaps) do
    if one then
      local place = terms:replace(block.values[d], { one.var }, { terms:int(one.var, 0) })
      local first = terms:lt(one.var, terms:int(one.var, 1))
      condition = terms:simplify_unbound(terms:both(condition,
        terms:either(first, terms:ge(place, terms:int(place, one.overlap)))))
    end
  end
  return condition
end

local function rolled(terms, indices, axis, extent)
  local out = table.move(indices, 1, #indices, 1, {})
  out[axis] = terms:floormod(out[axis], terms:int(out[axis], extent))
  return out
end

-- A statement that accesses `made` in the place of the buffer.
local function with_rolled(terms, stmt, buffer, made, axis, extent)
  local function element(indices) return terms:load(made, rolled(terms, indices, axis, extent)) end
  return tree.map_own_exprs(stmt, function(term)
    if terms:kind(term) == "Buffer" then return term == buffer and made or term end
    return buffers.with_values(terms, term, buffer, element)
  end)
end

-- Other blocks may not pull the iterator of the rolling dimension into an interval of its own.
local function with_opaque(block, axis)
  local iters = table.move(block.iters, 1, #block.iters, 1, {})
  local iter = iters[axis]
  if not iter then return block end
  iters[axis] = { var = iter.var, min = iter.min, extent = iter.extent, type = tree.OPAQUE }
  return tree.with(block, { iters = iters })
end

local function declared(terms, block, buffer, made)
  local reads, writes = access.of_block(terms, block)
  local function renewed(regions, found)
    local out = {}
    for i, region in ipairs(regions) do
      out[i] = region
      for _, other in ipairs(found) do
        if region.buffer == buffer and other.buffer == made then out[i] = other end
      end
    end
    return out
  end
  return tree.with(block, { reads = renewed(block.reads, reads),
    writes = renewed(block.writes, writes) })
end

local function rewrite(s, scope, block, buffer, made, axis, extent, condition)
  local terms = s.terms
  return tree.map(scope, function(stmt)
    if stmt.kind == "Seq" or stmt == scope then return nil end
    if stmt.kind == "Block" then
      if stmt.id == scope.id then return nil end
      local own = stmt.id == block.id and tree.with(stmt, { predicate = condition }) or stmt
      return with_opaque(declared(terms, own, buffer, made), axis)
    end
    local out = with_rolled(terms, stmt, buffer, made, axis, extent)
    if stmt.kind == "Store" and stmt.buffer == buffer then
      return tree.with(out, { indices = rolled(terms, out.indices, axis, extent) })
    end
    return out
  end)
end

-- The same buffer, as large as the window in one dimension.
local function rolled_buffer(terms, buffer, axis, extent)
  local node, shape = terms:export(buffer), {}
  for i, dim in ipairs(node.shape) do shape[i] = dim end
  shape[axis] = terms:export(terms:int(terms:shape(buffer)[axis], extent))
  return terms:import(tir.Buffer(node.data, node.dtype, shape, node.strides, node.elem_offset,
    node.name, buffers.options_of(node, {})))
end

local function check_block(s, block, scope, buffer)
  checks.complete_or_reduction(s, block)
  checks.only_ends(s, block)
  check_indices(s, block, buffer)
  if checks.is_output(s, block) then
    s:fail("%s is an output of %s", s:describe(block), s:describe(scope))
  end
  for _, region in ipairs(block.writes) do
    if region.buffer ~= buffer then
      s:fail("%s writes other buffers beside '%s'", s:describe(block), s.terms:name(buffer))
    end
  end
  for _, other in ipairs(s:child_blocks(scope)) do
    for _, inner in ipairs(s:child_blocks(other)) do
      if checks.meets(inner.reads, { [buffer] = true })
          or checks.meets(inner.writes, { [buffer] = true }) then
        s:fail("%s, inside of %s, accesses '%s'", s:describe(inner), s:describe(other),
          s.terms:name(buffer))
      end
    end
  end
  buffers.check_plain_use(s, scope, buffer)
end

--- Elements of a buffer that a block writes (by number from 0) are computed once, though windows of
-- rounds overlap; the buffer holds one window in the dimension that moves with the outermost loop.
return function(s, block, index)
  local terms, scope = s.terms, s:scope(block)
  local buffer = cache.region_at(s, block.writes, index, block, "writes").buffer
  check_block(s, block, scope, buffer)
  local loop, readers = rolling_place(s, block, buffer)
  local window = window_of(s, block, buffer, loop)
  local overlaps = overlaps_of(s, block, buffer, window)
  local axis = rolling_axis(s, block, buffer, overlaps)
  check_readers(s, loop, readers, buffer, window)
  local extent = terms:constant(window[axis].extent)
  local made = rolled_buffer(terms, buffer, axis, extent)
  local out = rewrite(s, scope, block, buffer, made, axis, extent,
    new_elements(s, block, overlaps))
  local allocs = {}
  for i, own in ipairs(scope.allocs) do allocs[i] = own == buffer and made or own end
  s:replace(scope, tree.with(out, { allocs = allocs }))
end
