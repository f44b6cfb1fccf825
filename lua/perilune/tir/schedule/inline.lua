-- compute_inline and reverse_compute_inline: a block that computes element by element becomes part
-- of those that read it, or of the one that it reads.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local buffers = require "perilune.tir.schedule.buffer"
local checks = require "perilune.tir.schedule.checks"
local tree = require "perilune.tir.schedule.tree"

local inline = {}

local NEG_INF, POS_INF = 0xfffffffe, 0xffffffff

-- ------------------------------------------------------------------- parts

--- Takes a statement out, and what around it would be left empty.
function inline.remove(s, stmt)
  s:replace(stmt, nil)
end

local function without(list, item)
  local out = {}
  for _, other in ipairs(list) do
    if other ~= item then out[#out + 1] = other end
  end
  return out
end

-- The scope no longer allocates a buffer.
local function drop_buffer(s, scope, buffer)
  scope = s:now(scope)
  s:replace(scope, tree.with(scope, { allocs = without(scope.allocs, buffer) }))
end

-- The one store that a block is.
local function only_store(s, block)
  if block.body.kind ~= "Store" or block.init then
    s:fail("%s: its body is not one store", s:describe(block))
  elseif #block.writes ~= 1 then
    s:fail("%s writes %d buffers, one is expected", s:describe(block), #block.writes)
  end
  return block.body
end

-- Indices that are different iterators of the block.
local function iterator_indices(s, block, indices)
  local seen, is_iter = {}, {}
  for _, iter in ipairs(block.iters) do is_iter[iter.var] = true end
  for _, index in ipairs(indices) do
    if not is_iter[index] or seen[index] then return false end
    seen[index] = true
  end
  for _, iter in ipairs(block.iters) do
    if not seen[iter.var] and s.terms:constant(iter.extent) ~= 1 then return false end
  end
  return true
end

-- Iterators of one round that index nothing stand for where they begin.
local function values_of_units(block, from, to)
  local known = {}
  for _, var in ipairs(from) do known[var] = true end
  for _, iter in ipairs(block.iters) do
    if not known[iter.var] then from[#from + 1], to[#to + 1] = iter.var, iter.min end
  end
end

-- --------------------------------------------------------- compute_inline

local function reads_buffer(block, buffer)
  for _, region in ipairs(block.reads) do
    if region.buffer == buffer then return true end
  end
  return false
end

-- What the scope does with the value in the place of the buffer's elements. Blocks that read it say
-- anew what they access.
local function inlined_into(s, stmt, buffer, value)
  local terms = s.terms
  return tree.map(stmt, function(inner)
    if inner.kind == "Block" then
      inner = tree.with(inner, {
        predicate = buffers.with_values(terms, inner.predicate, buffer, value) })
      return reads_buffer(inner, buffer) and access.declared(terms, inner) or inner
    elseif inner.kind == "Seq" then
      return inner
    end
    return tree.map_own_exprs(inner, function(term)
      if terms:kind(term) == "Buffer" then return term end
      return buffers.with_values(terms, term, buffer, value)
    end)
  end)
end

function inline.compute_inline(s, block)
  local terms, scope = s.terms, s:scope(block)
  checks.complete(s, block)
  if checks.is_output(s, block) then
    s:fail("%s computes an output of its scope", s:describe(block))
  end
  local store = only_store(s, block)
  if not iterator_indices(s, block, store.indices) then
    s:fail("%s: the indices of its store are not its iterators", s:describe(block))
  end
  local from, units = table.move(store.indices, 1, #store.indices, 1, {}), {}
  values_of_units(block, from, units)
  local function value(indices)
    local values = table.move(indices, 1, #indices, 1, {})
    table.move(units, 1, #units, #values + 1, values)
    return terms:replace(store.value, from, values)
  end
  inline.remove(s, block)
  scope = s:now(scope)
  s:replace(scope, tree.with(scope, { body = inlined_into(s, scope.body, store.buffer, value) }))
  drop_buffer(s, scope, store.buffer)
end

-- ------------------------------------------------- reverse_compute_inline

-- The iterators of the consumer where it reads the element that the producer stores.
local function solve_iterators(s, block, load, stored)
  local terms, from, to = s.terms, {}, {}
  local operands = terms:operands(load)
  local is_iter = {}
  for _, iter in ipairs(block.iters) do is_iter[iter.var] = true end
  for i = 2, #operands do
    local index = operands[i]
    if is_iter[index] then
      from[#from + 1], to[#to + 1], is_iter[index] = index, stored[i - 1], nil
    elseif not terms:constant(index) or index ~= stored[i - 1] then
      return nil
    end
  end
  for _, iter in ipairs(block.iters) do
    if is_iter[iter.var] then
      if terms:constant(iter.extent) ~= 1 then return nil end
      from[#from + 1], to[#to + 1] = iter.var, iter.min
    end
  end
  return from, to
end

-- An iterator of the consumer runs over all values of an index that the producer stores at, and
-- over no more: what it computes of others would not be computed.
local function check_same_values(s, consumer, producer, iter, index, domains)
  local terms = s.terms
  local last = terms:sub(terms:add(iter.min, iter.extent), terms:int(iter.min, 1))
  local low, high = index, index
  if terms:uses(index, domains.vars) then low, high = terms.core:int_set(index, domains) end
  local is_known = low ~= NEG_INF and high ~= POS_INF
  if not (is_known and terms:can_prove(terms:ge(low, iter.min))
      and terms:can_prove(terms:le(high, last))) then
    s:fail("%s: iterator '%s' does not run over all that %s stores", s:describe(consumer),
      terms:name(iter.var), s:describe(producer))
  elseif not (terms:can_prove(terms:le(low, iter.min))
      and terms:can_prove(terms:ge(high, last))) then
    s:fail("%s: iterator '%s' runs over more than %s stores", s:describe(consumer),
      terms:name(iter.var), s:describe(producer))
  end
end

local function check_same_domain(s, consumer, producer, from, to)
  local terms, domains = s.terms, { vars = {} }
  for _, iter in ipairs(producer.iters) do
    terms:bind(iter.var, iter.min, iter.extent)
    domains = access.with_domain(terms, domains, iter)
  end
  for _, iter in ipairs(consumer.iters) do
    for i, var in ipairs(from) do
      if var == iter.var then
        check_same_values(s, consumer, producer, iter, to[i], domains)
      end
    end
  end
end

local function only_load(s, block, buffer, value)
  local found
  for _, load in ipairs(s.terms:parts(value, "BufferLoad")) do
    if s.terms:operands(load)[1] == buffer then
      if found then
        s:fail("%s reads the producer's buffer at several places", s:describe(block))
      end
      found = load
    end
  end
  if not found then s:fail("%s does not read the producer's buffer", s:describe(block)) end
  return found
end

local function only_producer(s, block)
  local list = checks.producers(s, block)
  if #list ~= 1 then
    s:fail("%s has %d producers, one is expected", s:describe(block), #list)
  elseif #checks.consumers(s, list[1]) ~= 1 then
    s:fail("%s has other consumers", s:describe(list[1]))
  elseif checks.is_output(s, list[1]) then
    s:fail("%s computes an output of its scope", s:describe(list[1]))
  end
  checks.complete(s, list[1])
  return list[1]
end

function inline.reverse_compute_inline(s, block)
  local terms, scope = s.terms, s:scope(block)
  checks.complete(s, block)
  local producer, store = only_producer(s, block), only_store(s, block)
  local made = only_store(s, producer)
  local load = only_load(s, block, made.buffer, store.value)
  local from, to = solve_iterators(s, block, load, made.indices)
  if not from then
    s:fail("%s: its iterators are not the indices of what it reads", s:describe(block))
  end
  if #block.values > 0 and block.predicate ~= terms.yes then
    s:bind_loops(s:parent(block))
  end
  check_same_domain(s, block, producer, from, to)
  -- The element that is read is what the producer stores.
  local value = terms:replace(terms:replace(store.value, { load }, { made.value }), from, to)
  local indices = {}
  for i, index in ipairs(store.indices) do indices[i] = terms:replace(index, from, to) end
  inline.remove(s, block)
  producer = s:now(producer)
  s:replace(producer, access.declared(terms, tree.with(producer, { body = {
    kind = "Store", buffer = store.buffer, value = value, indices = indices } })))
  drop_buffer(s, scope, made.buffer)
end

return inline
