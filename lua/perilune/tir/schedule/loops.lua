-- Primitives that change loops: split, fuse, reorder, the kinds of loops, annotations.

local core = require "perilune.core"
core.internal()

local checks = require "perilune.tir.schedule.checks"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local loops = {}

-- ------------------------------------------------------------------ parts

local function check_plain(s, loop)
  if loop.for_kind == tree.THREAD_BINDING then
    s:fail("%s is bound to a thread", s:describe(loop))
  elseif next(loop.annotations) ~= nil then
    s:fail("%s has annotations", s:describe(loop))
  elseif s.terms:constant(s.terms:simplify(loop.min)) ~= 0 then
    s:fail("%s does not start with 0", s:describe(loop))
  end
end

-- Bindings of blocks in their simplest affine form, where they have one. Variables of loops of one
-- round that are kept stand there as others meanwhile, of which nothing is known.
local function simplify_bindings(s, stmt, keep_unit)
  local terms, ranges, unit, hidden = s.terms, {}, {}, {}
  local function enter(loop)
    local var = loop.var
    terms:bind(var, loop.min, loop.extent)
    if keep_unit and terms:constant(loop.extent) == 1 then
      var = terms:var(terms:name(var), terms:dtype(var))
      unit[#unit + 1], hidden[#hidden + 1] = loop.var, var
    end
    table.move({ var, loop.min, loop.extent }, 1, 3, #ranges + 1, ranges)
  end
  local function simplified_block(block)
    local values, predicate = {}, terms:replace(block.predicate, unit, hidden)
    for i, value in ipairs(block.values) do values[i] = terms:replace(value, unit, hidden) end
    values = terms:simplified(terms.core:iter_map_simplify(values, ranges,
      predicate == terms.yes and 0 or predicate, 0, not keep_unit))
    for i, value in ipairs(values) do values[i] = terms:replace(value, hidden, unit) end
    return tree.with(block, { values = values })
  end
  local function simplify(inner)
    if inner.kind == "Block" then
      return #inner.values > 0 and simplified_block(inner) or inner
    end
    local n, n_unit = #ranges, #unit
    if inner.kind == "For" then enter(inner) end
    local bodies = {}
    for i, child in ipairs(tree.children(inner)) do bodies[i] = simplify(child) end
    for i = #ranges, n + 1, -1 do ranges[i] = nil end
    for i = #unit, n_unit + 1, -1 do unit[i], hidden[i] = nil, nil end
    return #bodies > 0 and tree.with_children(inner, bodies) or inner
  end
  s:bind_loops(stmt)
  for _, loop in ipairs(s:loops(stmt)) do enter(loop) end
  return simplify(stmt)
end

-- The outermost blocks of a body run under one condition more.
local function with_condition(s, stmt, condition)
  if stmt.kind == "Block" then
    local both = { condition }
    if stmt.predicate ~= s.terms.yes then table.insert(both, 1, stmt.predicate) end
    return tree.with(stmt, { predicate = s.terms:all(both) })
  end
  local bodies = {}
  for i, child in ipairs(tree.children(stmt)) do bodies[i] = with_condition(s, child, condition) end
  return #bodies > 0 and tree.with_children(stmt, bodies) or stmt
end

-- ------------------------------------------------------------------- split

-- The extents of the new loops: one factor may be left open.
local function extents_of(s, loop, factors)
  local terms, open, out = s.terms, nil, {}
  local product = terms:int(loop.extent, 1)
  for i, factor in ipairs(factors) do
    if factor == -1 then
      if open then s:fail("%s: more than one factor is left open", s:describe(loop)) end
      open = i
    elseif factor < 1 then
      s:fail("%s: factor %d is not positive", s:describe(loop), factor)
    else
      out[i] = terms:int(loop.extent, factor)
      product = terms:mul(product, out[i])
    end
  end
  if open then
    local more = terms:sub(product, terms:int(product, 1))
    out[open] = terms:simplify(terms:floordiv(terms:add(loop.extent, more), product))
  elseif not terms:can_prove(terms:ge(product, loop.extent)) then
    s:fail("%s: the factors have a product less than its extent", s:describe(loop))
  end
  return out
end

function loops.split(s, loop, factors, preserve_unit_iters)
  local terms = s.terms
  check_plain(s, loop)
  s:bind_loops(loop)
  local extents, vars = extents_of(s, loop, factors), {}
  local name, value, zero = terms:name(loop.var), nil, terms:int(loop.extent, 0)
  for i, extent in ipairs(extents) do
    vars[i] = terms:var(("%s_%d"):format(name, i - 1), terms:dtype(loop.var))
    terms:bind(vars[i], zero, extent)
    value = value and terms:add(terms:mul(value, extent), vars[i]) or vars[i]
  end
  local body = tree.replace_exprs(terms, loop.body, { loop.var }, { value })
  local inside = terms:lt(value, loop.extent)
  if not terms:can_prove(inside) then body = with_condition(s, body, inside) end
  local ids = {}
  for i = #extents, 1, -1 do
    body = tree.loop(vars[i], zero, extents[i], body)
    ids[i] = body.id
  end
  s:replace(loop, body)
  s:replace(s:now(body), simplify_bindings(s, s:now(body), preserve_unit_iters))
  return ids
end

-- -------------------------------------------------------------------- fuse

-- Loops given from the outermost to the innermost one, each the only statement of the one before.
local function check_chain(s, list)
  local outer = {}
  for i, loop in ipairs(list) do
    check_plain(s, loop)
    if i > 1 and list[i - 1].body ~= loop then
      s:fail("%s is not the only statement of %s", s:describe(loop), s:describe(list[i - 1]))
    elseif s.terms:uses(loop.extent, outer) then
      s:fail("the extent of %s depends on another of the loops", s:describe(loop))
    end
    outer[loop.var] = true
  end
end

function loops.fuse(s, list, preserve_unit_iters)
  local terms, names, extent = s.terms, {}, nil
  if #list == 0 then s:fail("no loop is given") end
  check_chain(s, list)
  for i, loop in ipairs(list) do
    names[i] = terms:name(loop.var)
    extent = extent and terms:mul(extent, loop.extent) or loop.extent
  end
  local var = terms:var(table.concat(names, "_") .. "_fused", terms:dtype(list[1].var))
  local from, to, rest = {}, {}, var
  for i = #list, 1, -1 do
    local one = terms:constant(list[i].extent) == 1
    from[i] = list[i].var
    if one then
      to[i] = terms:int(var, 0)
    else
      to[i] = i > 1 and terms:floormod(rest, list[i].extent) or rest
      rest = i > 1 and terms:floordiv(rest, list[i].extent) or rest
    end
  end
  local body = tree.replace_exprs(terms, list[#list].body, from, to)
  local fused = tree.loop(var, terms:int(var, 0), terms:simplify(extent), body)
  s:replace(list[1], fused)
  s:replace(s:now(fused), simplify_bindings(s, s:now(fused), preserve_unit_iters))
  return fused.id
end

-- ----------------------------------------------------------------- reorder

-- The loops from the outermost to the innermost of the given ones, which are a chain.
local function chain_of(s, list)
  local wanted, inner, deepest = {}, nil, -1
  for _, loop in ipairs(list) do
    if wanted[loop] then s:fail("%s is given twice", s:describe(loop)) end
    wanted[loop] = true
    local depth = #s:loops(loop)
    if depth > deepest then inner, deepest = loop, depth end
  end
  local chain, found, at = {}, 0, inner
  while at and at.kind == "For" do
    table.insert(chain, 1, at)
    if wanted[at] then found = found + 1 end
    if found == #list then return chain, wanted end
    at = s:parent(at)
  end
  return s:fail("the loops are not a chain: between them are other statements")
end

-- The loops around a block from one inwards.
local function loops_from(s, block, first)
  local out = {}
  for _, loop in ipairs(s:loops(block)) do
    if s:contains(first, loop) then out[#out + 1] = loop end
  end
  return out
end

local function check_reordered_blocks(s, stmt)
  for _, block in ipairs(s:child_blocks(stmt)) do
    checks.once(s, block, loops_from(s, block, stmt))
    if not checks.has_only(block, tree.SPATIAL, tree.REDUCE) then
      s:fail("%s: an iterator is neither spatial nor a reduction", s:describe(block))
    elseif not checks.is_affine(s, block) then
      s:fail("%s: its bindings are not affine", s:describe(block))
    end
  end
end

function loops.reorder(s, list)
  if #list == 0 then s:fail("no loop is given") end
  local chain, wanted = chain_of(s, list)
  check_reordered_blocks(s, chain[1])
  local order, next_one = {}, 1
  for i, loop in ipairs(chain) do
    order[i] = loop
    if wanted[loop] then order[i], next_one = list[next_one], next_one + 1 end
  end
  local inside, body = {}, chain[#chain].body
  for i = #order, 1, -1 do
    if s.terms:uses(order[i].extent, inside) or s.terms:uses(order[i].min, inside) then
      s:fail("the range of %s depends on a loop that would be inside of it", s:describe(order[i]))
    end
    inside[order[i].var] = true
  end
  for i = #order, 1, -1 do body = tree.with(order[i], { body = body }) end
  s:replace(chain[1], body)
end

-- ------------------------------------------------------------------- kinds

-- Whether rounds of a loop may run at once: it binds spatial iterators only.
local function check_independent(s, loop)
  local vars = { [loop.var] = true }
  for _, block in ipairs(s:child_blocks(loop)) do
    checks.complete_or_reduction(s, block)
    checks.once(s, block, loops_from(s, block, loop))
    if not checks.is_affine(s, block) then
      s:fail("%s: %s has bindings that are not affine", s:describe(loop), s:describe(block))
    end
    for i, iter in ipairs(block.iters) do
      if iter.type ~= tree.SPATIAL and s.terms:uses(block.values[i], vars) then
        s:fail("%s: iterator '%s' of %s, which it binds, is not spatial", s:describe(loop),
          s.terms:name(iter.var), s:describe(block))
      end
    end
  end
end

local function set_kind(s, loop, kind, thread)
  s:replace(loop, tree.with(loop, { for_kind = kind, thread = thread or false }))
end

function loops.parallel(s, loop)
  check_independent(s, loop)
  set_kind(s, loop, tree.PARALLEL)
end

function loops.vectorize(s, loop)
  check_independent(s, loop)
  set_kind(s, loop, tree.VECTORIZED)
end

function loops.unroll(s, loop) set_kind(s, loop, tree.UNROLLED) end

function loops.bind(s, loop, thread_axis)
  if not thread_axis:find "^%a+Idx%.[xyz]$" and not thread_axis:find "^vthread" then
    s:fail("%s: there is no thread axis '%s'", s:describe(loop), thread_axis)
  end
  check_independent(s, loop)
  set_kind(s, loop, tree.THREAD_BINDING,
    tir.IterVar(nil, tir.Var(thread_axis, s.terms:dtype(loop.var)), "ThreadIndex", thread_axis))
end

-- -------------------------------------------------------------- unit loops

function loops.add_unit_loop(s, stmt)
  local one = s.terms:number("int32", 1)
  local loop = tree.loop(s.terms:var("u", "int32"), s.terms:int(one, 0), one, stmt)
  s:replace(stmt, loop)
  return loop.id
end

-- ------------------------------------------------------------- annotations

local function annotation_value(value)
  if type(value) == "table" and getmetatable(value) == nil then
    local out = {}
    for i, item in ipairs(value) do out[i] = annotation_value(item) end
    return out
  end
  return value
end

function loops.annotate(s, stmt, key, value)
  if stmt.annotations[key] ~= nil then return end
  local annotations = tree.with(stmt.annotations, { [key] = annotation_value(value) })
  s:replace(stmt, tree.with(stmt, { annotations = annotations }))
end

function loops.unannotate(s, stmt, key)
  if stmt.annotations[key] == nil then
    s:fail("%s has no annotation '%s'", s:describe(stmt), key)
  end
  s:replace(stmt, tree.with(stmt, { annotations = tree.with(stmt.annotations, { [key] = false }) }))
end

loops.check_plain, loops.with_condition = check_plain, with_condition
loops.simplify_bindings = simplify_bindings

return loops
