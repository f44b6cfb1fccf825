-- reindex: a block accesses a buffer by its iterators as they are; a block of its own copies
-- between this and the elements that it accessed before.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local buffers = require "perilune.tir.schedule.buffer"
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

local function new_buffer(s, buffer, iters)
  local terms, dims = s.terms, {}
  for i, iter in ipairs(iters) do
    dims[i] = terms:export(terms:simplify(terms:add(iter.min, iter.extent)))
  end
  local node = terms:export(buffer)
  return terms:import(tir.decl_buffer(dims, node.dtype, node.name .. "_reindex"))
end

local function block_of(s, name, iters, values, body)
  return access.declared(s.terms, { kind = "Block", id = tree.new_id(), name = name,
    iters = iters, values = values, predicate = s.terms.yes, reads = {}, writes = {}, allocs = {},
    matches = {}, annotations = {}, body = body })
end

-- The loops that copy; `is_write`: from the new buffer.
local function copy_nest(s, made, buffer, indices, iters, is_write)
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
  local body = { kind = "Store", buffer = made, value = terms:load(buffer, elements), indices = to }
  if is_write then
    body = { kind = "Store", buffer = buffer, value = terms:load(made, to), indices = elements }
  end
  local block = block_of(s, terms:name(made), copies, values, body)
  local nest = block
  for i = #loops, 1, -1 do
    nest = tree.loop(loops[i], terms:int(iters[i].extent, 0), iters[i].extent, nest)
  end
  return nest, block.id
end

-- The block with the new buffer, by its iterators.
local function accessing(s, block, buffer, made, iters)
  local terms, vars, ranges = s.terms, {}, {}
  for i, iter in ipairs(iters) do
    vars[i], ranges[i] = iter.var, { min = iter.var, extent = terms:int(iter.var, 1) }
  end
  local element = terms:load(made, vars)
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
    local own = inner.kind == "Store" and inner.buffer == buffer
    inner = tree.map_own_exprs(inner, function(term)
      return terms:kind(term) == "Buffer" and term or loads(term)
    end)
    return own and tree.with(inner, { buffer = made, indices = vars }) or inner
  end)
end

--- The block that copies: in front of the loops around the block what it reads, or behind them
-- what it writes.
function reindex.reindex(s, block, which)
  local buffer = buffers.of(s, block, which)
  local scope, is_write = s:scope(block), which[1] == "write"
  buffers.check_plain_use(s, block, buffer)
  local indices = only_indices(s, block, buffer)
  local iters, place = used_iters(s, block, buffer, indices), statement_of(s, block)
  check_inside(s, block, buffer, indices)
  if is_write then
    check_write(s, place, block, buffer, indices, iters)
  else
    check_read(s, place, block, buffer)
  end
  local made = new_buffer(s, buffer, iters)
  local nest, id = copy_nest(s, made, buffer, indices, iters, is_write)
  s:replace(block, accessing(s, block, buffer, made, iters))
  place = statement_of(s, s:now(block))
  s:replace(place, tree.seq(is_write and { place, nest } or { nest, place }))
  scope = s:now(scope)
  local allocs = table.move(scope.allocs, 1, #scope.allocs, 1, {})
  allocs[#allocs + 1] = made
  s:replace(scope, tree.with(scope, { allocs = allocs }))
  return id
end

return reindex
