-- cache_index: what a block computes of its iterators alone, and often, is computed once by blocks
-- in front of it, which store it in buffers.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local cache = require "perilune.tir.schedule.cache"
local analysis = require "perilune.tir.analysis"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

-- -------------------------------------------------------------- expressions

-- What is below terms, each once, operands first. Buffers are not entered.
local function post_order(terms, roots)
  local list, seen, stack = {}, {}, {}
  for i = #roots, 1, -1 do stack[#stack + 1] = { roots[i] } end
  while #stack > 0 do
    local top = table.remove(stack)
    if top.left then
      list[#list + 1] = top[1]
    elseif not seen[top[1]] and terms:kind(top[1]) ~= "Buffer" then
      seen[top[1]], top.left = true, true
      stack[#stack + 1] = top
      local operands = terms:operands(top[1])
      for i = #operands, 1, -1 do stack[#stack + 1] = { operands[i] } end
    end
  end
  return list
end

local divisions = { Div = true, Mod = true, FloorDiv = true, FloorMod = true }
local never = { BufferLoad = true, ProducerLoad = true, Reduce = true, PrimLet = true }

-- Whether a node by itself may be computed for any values of its operands, and always as the same.
local function is_pure(terms, term)
  local kind = terms:kind(term)
  if never[kind] then return false end
  if divisions[kind] then
    local divisor = terms:constant(terms:operands(term)[2])
    return divisor ~= nil and divisor ~= 0
  elseif kind ~= "PrimCall" then
    return true
  end
  local name = terms:export(term).builtin
  local effect = name and analysis.builtin(name).effect
  return effect == "pure" or effect == "expr_annotation"
end

-- Of each part of the roots: how many nodes it is made of, and whether it may be cached, which an
-- expression of the iterators (a set) and of what is known around the scope may.
local function measured(terms, roots, iterators, around)
  local size, uses, pure = {}, {}, {}
  for _, term in ipairs(post_order(terms, roots)) do
    -- Shared parts count each time, which may be more than an integer holds.
    local n, used, is_free = 1.0, iterators[term] ~= nil, is_pure(terms, term)
    if terms:kind(term) == "Var" then is_free = used or around[term] ~= nil end
    for _, part in ipairs(terms:operands(term)) do
      n, used = n + (size[part] or 0), used or uses[part]
      is_free = is_free and pure[part] or false
    end
    size[term], uses[term], pure[term] = n, used, is_free
  end
  local function may_cache(term)
    local dtype, kind = terms:dtype(term), terms:kind(term)
    return pure[term] and uses[term] and size[term] > 1 and kind ~= "Ramp" and kind ~= "Broadcast"
      and not dtype:find "x%d+$" and dtype ~= "handle"
  end
  return size, may_cache
end

-- How often each expression is computed by a store, by its simplified form: those that are no part
-- of another one, and parts of those that are computed fewer than `most` times.
local function count_uses(terms, roots, size, may_cache, most)
  local order, arrivals, counts, first = post_order(terms, roots), {}, {}, {}
  for i, term in ipairs(order) do first[term] = i end
  table.sort(order, function(x, y)
    if size[x] ~= size[y] then return size[x] > size[y] end
    return first[x] < first[y]
  end)
  for _, root in ipairs(roots) do arrivals[root] = (arrivals[root] or 0) + 1 end
  for _, term in ipairs(order) do
    local n, passed = arrivals[term] or 0, arrivals[term] or 0
    if n > 0 and may_cache(term) then
      local key = terms:simplify(term)
      local known = counts[key] or { n = 0, term = term, at = math.huge }
      known.n, counts[key] = known.n + n, known
      if known.n >= most then passed = 0 end
    end
    for _, part in ipairs(passed > 0 and terms:operands(term) or {}) do
      arrivals[part] = (arrivals[part] or 0) + passed
    end
  end
  return counts
end

-- The expressions of a store's value that are cached, large ones first; `found` has them by their
-- simplified form, in order.
local function add_store(terms, store, iterators, around, most, found)
  local roots = table.move(store.indices, 1, #store.indices, 2, { store.value })
  local size, may_cache = measured(terms, roots, iterators, around)
  local counts = count_uses(terms, roots, size, may_cache, most)
  for _, term in ipairs(post_order(terms, { store.value })) do
    local key = may_cache(term) and terms:simplify(term)
    local known = key and counts[key]
    if known and known.n >= most and not found[key] then
      found[#found + 1] = { key = key, term = known.term, size = size[known.term], at = #found }
      found[key] = true
    end
  end
end

-- ---------------------------------------------------------------- the block

-- Calls visit(stmt) for the stores of a block that are in no other block in it.
local function each_store(block, visit)
  tree.visit(block, function(stmt)
    if stmt.kind == "Block" and stmt ~= block then return false end
    if stmt.kind == "Store" then visit(stmt) end
  end)
end

-- The variables that are known where the scope begins.
local function known_around(s, scope)
  local terms, known, around = s.terms, {}, scope
  local func = s.funcs[s:func_of(scope)]
  for _, param in ipairs(func.params) do known[param] = true end
  for _, bind in ipairs(func.binds) do
    for _, dim in ipairs(terms:shape(bind.buffer)) do
      if terms:kind(dim) == "Var" then known[dim] = true end
    end
  end
  while around do
    for _, iter in ipairs(around.iters or {}) do known[iter.var] = true end
    if around.var and around ~= scope then known[around.var] = true end
    around = s:parent(around)
  end
  return known
end

local function collect(s, block, scope, most)
  local terms, iterators, found = s.terms, {}, {}
  for i, iter in ipairs(block.iters) do iterators[iter.var] = i end
  local around = known_around(s, scope)
  each_store(block, function(store)
    add_store(terms, store, iterators, around, most, found)
  end)
  table.sort(found, function(x, y)
    if x.size ~= y.size then return x.size > y.size end
    return x.at < y.at
  end)
  return found
end

-- Variables of expressions, in the order in which they are first used.
local function vars_of(terms, exprs)
  local out = {}
  for _, term in ipairs(post_order(terms, exprs)) do
    if terms:kind(term) == "Var" then out[#out + 1] = term end
  end
  return out
end

-- The iterators of the block that an expression uses, with the values that loops give them.
local function iterators_of(s, block, term)
  local number, out, values = {}, {}, {}
  for i, iter in ipairs(block.iters) do number[iter.var] = i end
  for _, var in ipairs(vars_of(s.terms, { term })) do
    if number[var] then
      out[#out + 1], values[#values + 1] = block.iters[number[var]], block.values[number[var]]
    end
  end
  return out, values
end

-- The loops of the scope that the values depend on.
local function loops_of(s, block, values)
  local terms, loops, inner, out = s.terms, {}, {}, {}
  for _, loop in ipairs(s:loops(block)) do loops[loop.var], inner[loop.var] = loop, true end
  local around = known_around(s, s:scope(block))
  for _, var in ipairs(vars_of(terms, values)) do
    local loop = loops[var]
    if loop and (terms:uses(loop.min, inner) or terms:uses(loop.extent, inner)) then
      s:fail("the range of %s depends on another loop", s:describe(loop))
    elseif not loop and not around[var] then
      s:fail("%s: an iterator is bound to '%s', which is no loop", s:describe(block),
        terms:name(var))
    end
    if loop then out[#out + 1] = loop end
  end
  return out
end

-- How many values from 0 on the values of iterators are.
local function shape_of(s, block, values, loops)
  local terms, domains, shape = s.terms, { vars = {} }, {}
  s:bind_loops(block)
  for _, loop in ipairs(loops) do domains = access.with_domain(terms, domains, loop) end
  for i, value in ipairs(values) do
    local low, high = access.relaxed(terms, value, terms:int(value, 1), domains)
    local range = access.range_of(terms, low, high, terms:int(value, -1))
    if terms:constant(range.extent) == -1
        or not terms:can_prove(terms:ge(low, terms:int(low, 0))) then
      s:fail("%s: the values of an iterator are not known to be from 0 on", s:describe(block))
    end
    shape[i] = terms:simplify(terms:add(high, terms:int(high, 1)))
  end
  return shape
end

local function buffer_of(s, term, name, shape, storage_scope)
  local terms, dims = s.terms, {}
  for i, dim in ipairs(shape) do dims[i] = terms:export(dim) end
  return terms:import(tir.decl_buffer(dims, terms:dtype(term), name,
    { scope = storage_scope, strides = #dims == 1 and { 1 } or nil }))
end

-- The block that stores an expression, in loops of its own; its buffer, and the element that the
-- block's iterators have.
local function stage(s, block, term, number, storage_scope)
  local terms = s.terms
  local old, values = iterators_of(s, block, term)
  local loops = loops_of(s, block, values)
  local shape = shape_of(s, block, values, loops)
  local buffer = buffer_of(s, term, "index_var_" .. number, shape, storage_scope)
  local from, to, iters, point, element, indices = {}, {}, {}, {}, {}, {}
  for i, iter in ipairs(old) do
    local var = terms:var("v" .. i - 1, terms:dtype(iter.var))
    iters[i] = { var = var, min = terms:int(var, 0), extent = shape[i], type = tree.SPATIAL }
    point[i], element[i], indices[i] = { min = var, extent = terms:int(var, 1) }, iter.var, var
    from[i], to[i] = iter.var, var
  end
  local loop_vars, new_vars = {}, {}
  for i, loop in ipairs(loops) do
    loop_vars[i], new_vars[i] = loop.var, terms:var("ax" .. i - 1, terms:dtype(loop.var))
  end
  local bindings = {}
  for i, value in ipairs(values) do bindings[i] = terms:replace(value, loop_vars, new_vars) end
  local made = { kind = "Block", id = tree.new_id(), name = "index_" .. number, iters = iters,
    values = bindings, predicate = terms.yes, reads = {},
    writes = { { buffer = buffer, ranges = point } }, allocs = {}, matches = {}, annotations = {},
    body = { kind = "Store", buffer = buffer, value = terms:replace(term, from, to),
      indices = indices } }
  local body = made
  for i = #loops, 1, -1 do
    body = tree.loop(new_vars[i], loops[i].min, loops[i].extent, body)
  end
  return body, made.id, buffer, terms:load(buffer, element)
end

-- The block with the element in the place of what is equal to the expression.
local function with_element(s, block, one, load)
  local terms = s.terms
  local function replaced(term)
    local from, to = {}, {}
    for _, part in ipairs(post_order(terms, { term })) do
      if terms:dtype(part) == terms:dtype(load)
          and (part == one.term or terms:simplify(part) == one.key) then
        from[#from + 1], to[#to + 1] = part, load
      end
    end
    return terms:replace(term, from, to)
  end
  local function rewrite(stmt)
    if stmt.kind == "Block" and stmt ~= block then return stmt end
    if stmt.kind == "Store" then
      local indices = {}
      for i, index in ipairs(stmt.indices) do indices[i] = replaced(index) end
      return tree.with(stmt, { value = replaced(stmt.value), indices = indices })
    end
    local bodies = {}
    for i, child in ipairs(tree.children(stmt)) do bodies[i] = rewrite(child) end
    return #bodies > 0 and tree.with_children(stmt, bodies) or stmt
  end
  return rewrite(block)
end

-- What a block reads, with the elements that it reads now: iterators of the block are the indices.
local function with_reads(s, block, loads)
  local terms, reads = s.terms, table.move(block.reads, 1, #block.reads, 1, {})
  for _, load in ipairs(loads) do
    local operands, ranges = terms:operands(load), {}
    for i = 2, #operands do
      ranges[i - 1] = { min = operands[i], extent = terms:int(operands[i], 1) }
    end
    reads[#reads + 1] = { buffer = operands[1], ranges = ranges }
  end
  return tree.with(block, { reads = reads })
end

--- What the block computes of its iterators at least `cse_thresh` times in a store, and of nothing
-- else, is computed in front of its loops. Gives the blocks that do so, in the order of their size.
return function(s, block, storage_scope, cse_thresh)
  cache.check_scope(s, storage_scope)
  if cse_thresh < 0 then s:fail("cse_thresh %d is negative", cse_thresh) end
  local scope = s:scope(block)
  local found = collect(s, block, scope, cse_thresh)
  local list, ids, made, loads = {}, {}, block, {}
  local bufs = {}
  for i, one in ipairs(found) do
    list[i], ids[i], bufs[i], loads[i] = stage(s, block, one.term, i - 1, storage_scope)
  end
  for i, one in ipairs(found) do made = with_element(s, made, one, loads[i]) end
  if #found == 0 then return ids end
  s:replace(block, with_reads(s, made, loads))
  local place = s:now(block)
  while s:parent(place) and s:parent(place).id ~= scope.id
    and not (s:parent(place).kind == "Seq" and s:parent(s:parent(place)).id == scope.id) do
    place = s:parent(place)
  end
  list[#list + 1] = place
  s:replace(place, tree.seq(list))
  for _, buffer in ipairs(bufs) do cache.alloc(s, scope, buffer) end
  return ids
end
