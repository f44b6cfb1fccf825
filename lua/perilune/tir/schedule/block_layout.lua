-- transform_block_layout: the iterators of a block, and the loops around it, become those that a
-- map of indices gives.

local core = require "perilune.core"
core.internal()

local buffers = require "perilune.tir.schedule.buffer"
local checks = require "perilune.tir.schedule.checks"
local tree = require "perilune.tir.schedule.tree"

local block_layout = {}

-- ------------------------------------------------------------------- checks

--- The loops around a block, outermost first, which hold nothing else and begin with 0.
function block_layout.loops_around(s, block)
  local terms, loops = s.terms, s:loops(block)
  for i, loop in ipairs(loops) do
    if loop.body ~= (loops[i + 1] or block) then
      s:fail("%s is not the only statement of %s", s:describe(loops[i + 1] or block),
        s:describe(loop))
    elseif terms:constant(terms:simplify(loop.min)) ~= 0 then
      s:fail("%s does not start with 0", s:describe(loop))
    end
  end
  return loops
end

local function check_serial(s, loops)
  for _, loop in ipairs(loops) do
    if loop.for_kind ~= tree.SERIAL or next(loop.annotations) ~= nil then
      s:fail("%s is not serial, or has annotations, which would be lost", s:describe(loop))
    end
  end
end

--- Each loop is one iterator, and each iterator a loop or the only value that it has.
function block_layout.check_trivial(s, block, loops)
  local terms, by_var = s.terms, {}
  for _, loop in ipairs(loops) do by_var[loop.var] = loop end
  for i, iter in ipairs(block.iters) do
    local loop = by_var[block.values[i]]
    local unit = terms:constant(iter.extent) == 1 and terms:equal(block.values[i], iter.min)
    if not unit and not (loop and terms:equal(loop.extent, iter.extent)
        and terms:constant(iter.min) == 0) then
      s:fail("%s: iterator '%s' is not bound to a loop of its own", s:describe(block),
        terms:name(iter.var))
    end
    if loop then by_var[block.values[i]] = nil end
  end
  for _, loop in ipairs(loops) do
    if by_var[loop.var] and terms:constant(loop.extent) ~= 1 then
      s:fail("no iterator of %s is bound to %s", s:describe(block), s:describe(loop))
    end
  end
  if block.predicate ~= terms.yes then s:fail("%s runs under a predicate", s:describe(block)) end
end

-- ------------------------------------------------------------------ the map

-- The map, over variables of the iterators' dtype, and the ranges of these, from 0 on.
local function variables(s, block, index_map)
  local terms, out, extents = s.terms, { vars = {}, ranges = {} }, {}
  if #block.iters == 0 then s:fail("%s has no iterators", s:describe(block)) end
  if #index_map.initial_indices ~= #block.iters then
    s:fail("the map has %d variables, %s %d iterators", #index_map.initial_indices,
      s:describe(block), #block.iters)
  end
  for i, iter in ipairs(block.iters) do
    extents[i] = iter.extent
    if not terms:constant(iter.extent) then
      s:fail("%s: the extent of iterator '%s' is not constant", s:describe(block),
        terms:name(iter.var))
    end
  end
  out.map = terms:typed_map(index_map, extents)
    or s:fail("the iterators of %s have different dtypes", s:describe(block))
  for i, var in ipairs(out.map.initial_indices) do
    out.vars[i], out.ranges[var] = terms:import(var), { 0, terms:constant(extents[i]) }
    terms:bind(out.vars[i], terms:int(extents[i], 0), extents[i])
  end
  return out
end

-- The type of an iterator that is an expression of others.
local function type_of(s, block, map, index, at)
  local found
  for i, iter in ipairs(block.iters) do
    if s.terms:uses(index, { [map.vars[i]] = true }) then
      if iter.type ~= tree.SPATIAL and iter.type ~= tree.REDUCE then
        s:fail("%s: iterator '%s' is neither spatial nor a reduction", s:describe(block),
          s.terms:name(iter.var))
      elseif found and found ~= iter.type then
        s:fail("index %d of the map mixes spatial iterators and reductions of %s", at - 1,
          s:describe(block))
      end
      found = iter.type
    end
  end
  return found or tree.SPATIAL
end

-- New iterators with loops, one for each index of the map.
local function new_iters(s, block, map)
  local terms, out, loops = s.terms, {}, {}
  for i, index in ipairs(map.map.final_indices) do
    local term = terms:import(index)
    local low, high = terms.core:const_int_bound(term)
    if low ~= 0 or high < 0 or high > 1 << 40 then
      s:fail("index %d of the map does not begin with 0", i - 1)
    end
    local dtype = terms:dtype(term)
    local var, extent = terms:var("v" .. i - 1, dtype), terms:number(dtype, high + 1)
    out[i] = { var = var, min = terms:number(dtype, 0), extent = extent,
      type = type_of(s, block, map, term, i) }
    loops[i] = { var = terms:var("ax" .. i - 1, dtype), extent = extent }
    terms:bind(var, out[i].min, extent)
  end
  return out, loops
end

local function refuse_map(s, block)
  s:fail("the map is not bijective on the domain of the iterators of %s", s:describe(block))
end

-- What the old iterators are, by the new ones.
local function inverse(s, block, map, iters)
  local terms, outputs, before, after, out = s.terms, {}, 1, 1, {}
  for _, iter in ipairs(block.iters) do before = before * terms:constant(iter.extent) end
  for i, iter in ipairs(iters) do
    outputs[i], after = terms:export(iter.var), after * terms:constant(iter.extent)
  end
  local found = terms.analyzer:detect_iter_map(map.map.final_indices, map.ranges, true,
    "bijective", true)
  if #found.indices == 0 or before ~= after then refuse_map(s, block) end
  local known = {}
  for var, value in pairs(terms.analyzer:inverse_affine_iter_map(found.indices, outputs)) do
    known[terms:import(var)] = terms:import(value)
  end
  for i, iter in ipairs(block.iters) do
    local value = known[map.vars[i]]
    if not value and terms:constant(iter.extent) ~= 1 then refuse_map(s, block) end
    out[i] = value and terms:simplify(value) or terms:int(iter.min, 0)
    if terms:constant(iter.min) ~= 0 then
      out[i] = terms:simplify(terms:add(out[i], iter.min))
    end
  end
  return out
end

-- ---------------------------------------------------------------- the block

local function simplified_regions(terms, regions)
  return tree.map_regions(regions, function(term)
    return terms:kind(term) == "Buffer" and term or terms:simplify(term)
  end)
end

--- The statement with the indices of what it accesses in their simplest form.
function block_layout.with_simple_indices(s, stmt)
  local terms = s.terms
  local function loads(term)
    for _, buffer in ipairs(terms:parts(term, "Buffer")) do
      term = buffers.with_values(terms, term, buffer, function(indices)
        return terms:load(buffer, terms:simplified(indices))
      end)
    end
    return term
  end
  return tree.map(stmt, function(inner)
    if inner.kind == "Seq" then return inner end
    inner = tree.map_own_exprs(inner, function(term)
      return terms:kind(term) == "Buffer" and term or loads(term)
    end)
    if inner.kind == "Store" then
      return tree.with(inner, { indices = terms:simplified(inner.indices) })
    elseif inner.kind == "Block" then
      return tree.with(inner, { reads = simplified_regions(terms, inner.reads),
        writes = simplified_regions(terms, inner.writes) })
    end
    return inner
  end)
end

--- The iterators of a block that loops of their own bind become what a bijective map gives for
-- them, each with a loop of its own.
function block_layout.transform_block_layout(s, block, index_map)
  local terms, loops = s.terms, block_layout.loops_around(s, block)
  check_serial(s, loops)
  block_layout.check_trivial(s, block, loops)
  checks.once(s, block, loops)
  local map, old = variables(s, block, index_map), {}
  local iters, nest = new_iters(s, block, map)
  local values = inverse(s, block, map, iters)
  for i, iter in ipairs(block.iters) do old[i] = iter.var end
  local made = tree.with(block, { iters = {}, values = {} })
  made = block_layout.with_simple_indices(s, tree.replace_exprs(terms, made, old, values))
  local bindings = {}
  for i, loop in ipairs(nest) do bindings[i] = loop.var end
  local body = tree.with(made, { iters = iters, values = bindings })
  for i = #nest, 1, -1 do
    body = tree.loop(nest[i].var, terms:int(nest[i].extent, 0), nest[i].extent, body)
  end
  s:replace(loops[1] or block, body)
end

-- --------------------------------------------------- reorder_block_iter_var

--- The iterators of a block in another order: their numbers, from 0 on.
function block_layout.reorder_block_iter_var(s, block, new_order)
  local n, known, iters, values = #block.iters, {}, {}, {}
  if #new_order ~= n then
    s:fail("%s has %d iterators, the new order %d", s:describe(block), n, #new_order)
  end
  for i, number in ipairs(new_order) do
    if number < 0 or number >= n or known[number] then
      s:fail("the new order is no permutation of 0 to %d", n - 1)
    end
    known[number] = true
    iters[i], values[i] = block.iters[number + 1], block.values[number + 1]
  end
  s:replace(block, tree.with(block, { iters = iters, values = values }))
end

return block_layout
