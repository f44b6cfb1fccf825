-- decompose_reduction and rfactor.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local checks = require "perilune.tir.schedule.checks"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local reduction = {}

-- ----------------------------------------------------- decompose_reduction

local function position_of(list, item)
  for i, other in ipairs(list) do
    if other == item then return i end
  end
  return nil
end

-- The loops from `first` on inwards of which spatial bindings make use, and the others.
local function init_loops(s, block, around, first)
  local chosen, left = {}, {}
  for i = first, #around do
    local vars = { [around[i].var] = true }
    if checks.bindings_use(s, block, tree.SPATIAL, vars) then
      chosen[#chosen + 1] = around[i]
    else
      left[#left + 1] = around[i]
    end
  end
  return chosen, left
end

local function spatial_copy(s, block)
  local from, to, iters, values = {}, {}, {}, {}
  for i, iter in ipairs(block.iters) do
    if iter.type == tree.SPATIAL then
      local var = s.terms:var(s.terms:name(iter.var), s.terms:dtype(iter.var))
      from[#from + 1], to[#to + 1] = iter.var, var
      iters[#iters + 1] = { var = var, min = iter.min, extent = iter.extent, type = iter.type }
      values[#values + 1] = block.values[i]
    end
  end
  return iters, values, from, to
end

local function only_uses(terms, term, vars)
  for _, var in ipairs(terms:parts(term, "Var")) do
    if not vars[var] then return false end
  end
  return true
end

-- Without a condition, spatial iterators stay inside of their domains.
local function check_inside(s, block, condition)
  local terms = s.terms
  s:bind_loops(block)
  for i, iter in ipairs(block.iters) do
    local value = block.values[i]
    if iter.type == tree.SPATIAL and not (terms:can_prove(terms:ge(value, iter.min))
        and terms:can_prove(terms:lt(value, terms:add(iter.min, iter.extent)))) then
      s:fail("%s: its predicate has %s, which bounds iterator '%s' by loops of the reduction",
        s:describe(block), tostring(terms:export(condition)), terms:name(iter.var))
    end
  end
end

-- The conditions of a block that hold outside of some loops around it: those that depend on them
-- are left out. A loop of one round stands for where it begins.
local function conditions_without(s, block, loops)
  local terms, vars, from, to, kept = s.terms, {}, {}, {}, {}
  for _, loop in ipairs(loops) do
    if terms:constant(loop.extent) == 1 then
      from[#from + 1], to[#to + 1] = loop.var, loop.min
    else
      vars[loop.var] = true
    end
  end
  for _, condition in ipairs(terms:conjuncts(terms:replace(block.predicate, from, to))) do
    if not terms:uses(condition, vars) then
      kept[#kept + 1] = condition
    elseif not only_uses(terms, condition, vars) then
      check_inside(s, block, condition)
    end
  end
  return terms:all(kept)
end

local function init_block(s, block, left)
  local terms = s.terms
  local iters, values, from, to = spatial_copy(s, block)
  local function map(term) return terms:replace(term, from, to) end
  return { kind = "Block", id = tree.new_id(), name = block.name .. "_init", iters = iters,
    values = values, predicate = conditions_without(s, block, left), reads = {},
    writes = tree.map_regions(block.writes, map), allocs = {}, matches = {}, annotations = {},
    body = tree.replace_exprs(terms, block.init, from, to) }
end

-- What the update reads too, when nothing initialises it inside.
local function update_reads(block)
  local read, out = checks.buffers_of(block.reads), {}
  for _, region in ipairs(block.writes) do
    if not read[region.buffer] then out[#out + 1] = region end
  end
  return table.move(block.reads, 1, #block.reads, #out + 1, out)
end

function reduction.decompose_reduction(s, block, loop)
  local terms = s.terms
  checks.reduction(s, block)
  local around = s:loops(block)
  local at = position_of(around, loop)
  if not at then s:fail("%s is not around %s", s:describe(loop), s:describe(block)) end
  for i = 1, at - 1 do
    if checks.bindings_use(s, block, tree.REDUCE, { [around[i].var] = true }) then
      s:fail("%s is inside of %s, which %s reduces over", s:describe(loop), s:describe(around[i]),
        s:describe(block))
    end
  end
  checks.once(s, block, table.move(around, at, #around, 1, {}))
  local chosen, left = init_loops(s, block, around, at)
  local init = init_block(s, block, left)
  local body, from, to = init, {}, {}
  for i = #chosen, 1, -1 do
    local old = chosen[i]
    local var = terms:var(terms:name(old.var) .. "_init", terms:dtype(old.var))
    from[#from + 1], to[#to + 1] = old.var, var
    local made = tree.loop(var, old.min, old.extent, body)
    body = tree.with(made, { for_kind = old.for_kind, thread = old.thread })
  end
  body = tree.replace_exprs(terms, body, from, to)
  s:replace(block, tree.with(block, { name = block.name .. "_update", init = false,
    reads = update_reads(block) }))
  loop = s:now(loop)
  s:replace(loop, tree.seq { body, loop })
  return init.id
end

-- ------------------------------------------------------------------ rfactor

-- Reductions over a and b that rfactor knows, and the values that they begin with.
local combiners = {
  Add = function(dtype) return operand.const(0, dtype) end,
  Mul = function(dtype) return operand.const(1, dtype) end,
  Min = function(dtype) return tir.max_value(dtype) end,
  Max = function(dtype) return tir.min_value(dtype) end,
}

-- The kind of a reduction and what it adds: store is B[i] = B[i] + value.
local function reducer_of(s, block)
  local terms, store, init = s.terms, block.body, block.init
  if store.kind ~= "Store" or init.kind ~= "Store" then
    s:fail("%s: its init and its body are not one store each", s:describe(block))
  end
  local kind = terms:kind(store.value)
  local identity = combiners[kind]
  local sides = terms:operands(store.value)
  local own = terms:load(store.buffer, store.indices)
  local value = identity and (sides[1] == own and sides[2] or sides[2] == own and sides[1])
  if not value then
    s:fail("%s: its body is no sum, product, minimum or maximum", s:describe(block))
  end
  local first = terms:import(identity(terms:dtype(store.value)))
  if terms:simplify(init.value) ~= terms:simplify(first) then
    s:fail("%s: its init is not the identity of its reduction", s:describe(block))
  end
  return kind, value
end

-- Loops around that may be taken along: a loop binds iterators of one type.
local function classify(s, block, around, rf)
  local spatial, reduced = {}, {}
  for _, loop in ipairs(around) do
    local vars = { [loop.var] = true }
    spatial[loop] = checks.bindings_use(s, block, tree.SPATIAL, vars)
    reduced[loop] = checks.bindings_use(s, block, tree.REDUCE, vars)
    if spatial[loop] and reduced[loop] then
      s:fail("%s binds spatial and reduction iterators of %s", s:describe(loop),
        s:describe(block))
    elseif s.terms:uses(loop.extent, { [rf.var] = true }) then
      s:fail("the extent of %s depends on %s", s:describe(loop), s:describe(rf))
    end
  end
  if not reduced[rf] or spatial[rf] then
    s:fail("%s: %s does not reduce over it", s:describe(rf), s:describe(block))
  end
  return spatial, reduced
end

local function new_iter(terms, name, loop, type_)
  return { var = terms:var(name, terms:dtype(loop.var)), min = loop.min, extent = loop.extent,
    type = type_ }
end

local function copy_iter(terms, iter)
  return { var = terms:var(terms:name(iter.var), terms:dtype(iter.var)), min = iter.min,
    extent = iter.extent, type = iter.type }
end

-- The iterators of the factored block: the factored loop, the spatial ones, and reductions over the
-- other loops; `from` and `to` say what stands for those of the block.
local function rf_iters(s, block, around, rf)
  local terms, out = s.terms, { iters = {}, values = {}, from = {}, to = {} }
  local loop_from, loop_to = {}, {}
  local function push(iter, value)
    out.iters[#out.iters + 1], out.values[#out.values + 1] = iter, value
  end
  local function over(loop, type_)
    local iter = new_iter(terms, "v" .. terms:name(loop.var), loop, type_)
    push(iter, loop.var)
    loop_from[#loop_from + 1], loop_to[#loop_to + 1] = loop.var, iter.var
    return iter.var
  end
  out.factor = over(rf, tree.SPATIAL)
  local known = { [rf.var] = true }
  for i, iter in ipairs(block.iters) do
    local value = block.values[i]
    if iter.type == tree.REDUCE and terms:uses(value, { [rf.var] = true }) then
      for _, loop in ipairs(around) do
        if not known[loop.var] and terms:uses(value, { [loop.var] = true }) then
          over(loop, tree.REDUCE)
          known[loop.var] = true
        end
      end
      out.from[#out.from + 1] = iter.var
      out.to[#out.to + 1] = terms:replace(value, loop_from, loop_to)
    else
      local copy = copy_iter(terms, iter)
      push(copy, value)
      out.from[#out.from + 1], out.to[#out.to + 1] = iter.var, copy.var
    end
  end
  return out
end

-- The buffer of the partial results: one dimension more.
local function rf_buffer(s, block, rf, axis)
  local terms, store = s.terms, block.body
  local shape, node = terms:shape(store.buffer), terms:export(store.buffer)
  if axis < 0 then axis = axis + #shape + 1 end
  if axis < 0 or axis > #shape then
    s:fail("factor_axis is out of range: '%s' has %d dimensions", node.name, #shape)
  end
  table.insert(shape, axis + 1, rf.extent)
  local dims = {}
  for i, dim in ipairs(shape) do dims[i] = terms:export(dim) end
  return terms:import(tir.decl_buffer(dims, node.dtype, node.name .. "_rf")), axis
end

local function inserted(list, at, item)
  local out = table.move(list, 1, #list, 1, {})
  table.insert(out, at + 1, item)
  return out
end

local function block_of(terms, name, parts, predicate, buffer, indices, init, value)
  return access.declared(terms, { kind = "Block", id = tree.new_id(), name = name,
    iters = parts.iters, values = parts.values, predicate = predicate, reads = {}, writes = {},
    allocs = {}, matches = {}, annotations = {},
    init = { kind = "Store", buffer = buffer, value = init, indices = indices },
    body = { kind = "Store", buffer = buffer, value = value, indices = indices } })
end

-- Copies of loops around a body, with variables of their own.
local function around_with(terms, list, body)
  local from, to = {}, {}
  for i = #list, 1, -1 do
    local var = terms:var(terms:name(list[i].var), terms:dtype(list[i].var))
    from[#from + 1], to[#to + 1] = list[i].var, var
    body = tree.loop(var, list[i].min, list[i].extent, body)
  end
  return tree.replace_exprs(terms, body, from, to)
end

local function mapped(terms, list, from, to)
  local out = {}
  for i, term in ipairs(list) do out[i] = terms:replace(term, from, to) end
  return out
end

local function rf_block(s, block, around, rf, buffer, axis, kind, value)
  local terms, parts = s.terms, rf_iters(s, block, around, rf)
  local indices = inserted(mapped(terms, block.body.indices, parts.from, parts.to), axis,
    parts.factor)
  local added = terms:replace(value, parts.from, parts.to)
  return block_of(terms, block.name .. "_rf", parts, block.predicate, buffer, indices,
    block.init.value, terms.core:binary(kind, terms:load(buffer, indices), added))
end

-- The block that reduces the partial results, in the place of the old one.
local function write_back_block(s, block, around, rf, buffer, axis, kind)
  local terms, parts = s.terms, { iters = {}, values = {} }
  local factor = new_iter(terms, "v" .. terms:name(rf.var), rf, tree.REDUCE)
  parts.iters[1], parts.values[1] = factor, rf.var
  local from, to, left = {}, {}, {}
  for i, iter in ipairs(block.iters) do
    if iter.type == tree.SPATIAL then
      local copy = copy_iter(terms, iter)
      from[#from + 1], to[#to + 1] = iter.var, copy.var
      parts.iters[#parts.iters + 1] = copy
      parts.values[#parts.values + 1] = block.values[i]
    end
  end
  for _, loop in ipairs(around) do
    if checks.bindings_use(s, block, tree.REDUCE, { [loop.var] = true }) then
      left[#left + 1] = loop
    end
  end
  local indices = mapped(terms, block.body.indices, from, to)
  local partial = terms:load(buffer, inserted(indices, axis, factor.var))
  local made = block_of(terms, block.name, parts, conditions_without(s, block, left),
    block.body.buffer, indices,
    block.init.value, terms.core:binary(kind, terms:load(block.body.buffer, indices), partial))
  return tree.with(made, { id = block.id, annotations = block.annotations })
end

-- The reduction block under a loop, and the loops around it that hold nothing else.
local function nest_of(s, rf)
  local blocks = s:child_blocks(rf)
  if #blocks ~= 1 then
    s:fail("%s: one block is expected under it, there are %d", s:describe(rf), #blocks)
  end
  checks.reduction(s, blocks[1])
  local around, at, outer = {}, s:parent(blocks[1]), blocks[1]
  while at and at.kind == "For" do
    table.insert(around, 1, at)
    outer, at = at, s:parent(at)
  end
  if not position_of(around, rf) then
    s:fail("%s: between it and %s are other statements", s:describe(rf), s:describe(blocks[1]))
  end
  return blocks[1], around, outer
end

local function check_partial_conditions(s, block, rf)
  for _, condition in ipairs(s.terms:conjuncts(block.predicate)) do
    if s.terms:uses(condition, { [rf.var] = true }) then
      s:fail("%s: the predicate of %s depends on it", s:describe(rf), s:describe(block))
    end
  end
end

function reduction.rfactor(s, rf, factor_axis)
  local terms = s.terms
  local block, around, outer = nest_of(s, rf)
  local _, reduced = classify(s, block, around, rf)
  local kind, value = reducer_of(s, block)
  check_partial_conditions(s, block, rf)
  local scope = s:scope(block)
  local buffer, axis = rf_buffer(s, block, rf, factor_axis)
  local first = rf_block(s, block, around, rf, buffer, axis, kind, value)
  local last = write_back_block(s, block, around, rf, buffer, axis, kind)
  local kept = {}
  for _, loop in ipairs(around) do
    if loop == rf or not reduced[loop] then kept[#kept + 1] = loop end
  end
  local body = first
  for i = #around, 1, -1 do body = tree.with(around[i], { body = body }) end
  s:replace(outer, tree.seq { body, around_with(terms, kept, last) })
  scope = s:now(scope)
  s:replace(scope, tree.with(scope, { allocs = inserted(scope.allocs, #scope.allocs, buffer) }))
  return first.id
end

reduction.update_reads = update_reads

return reduction
