-- decompose_padding: a block that computes elements inside of a box, and a constant around it,
-- becomes one that fills and one that computes inside.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local block_layout = require "perilune.tir.schedule.block_layout"
local checks = require "perilune.tir.schedule.checks"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local padding = {}

local BIJECTIVE = 1

-- ------------------------------------------------------------------ pattern

-- Whether a value is tir.if_then_else of its operands.
local function is_if_then_else(terms, value, parts)
  local dtype = terms:dtype(value)
  local from = { terms:var("c", "bool"), terms:var("x", dtype), terms:var("y", dtype) }
  local call = terms:import(tir.if_then_else(terms:export(from[1]), terms:export(from[2]),
    terms:export(from[3])))
  return terms:replace(call, from, parts) == value
end

-- The store of a block, and the condition, the value and the constant of what it stores.
local function padded_store(s, block)
  local terms, store = s.terms, block.body
  if store.kind ~= "Store" or block.init then
    s:fail("%s: its body is not one store", s:describe(block))
  end
  local kind, parts = terms:kind(store.value), terms:operands(store.value)
  if not (kind == "Select" or kind == "PrimCall" and #parts == 3
      and is_if_then_else(terms, store.value, parts)) then
    s:fail("%s: it does not store an if_then_else or a Select", s:describe(block))
  end
  local constant = terms:kind(parts[3])
  if constant ~= "FloatImm" and constant ~= "IntImm" then
    s:fail("%s: what it stores outside of its condition is no constant", s:describe(block))
  end
  return store, table.unpack(parts)
end

-- The ends of each iterator that a condition says: least and greatest value, or false.
local function ends_of(s, block, condition)
  local terms, vars, set = s.terms, {}, {}
  for i, iter in ipairs(block.iters) do vars[i], set[iter.var] = iter.var, true end
  condition = terms:simplify(condition)
  if condition == terms.no then
    s:fail("%s: its condition holds nowhere", s:describe(block))
  end
  local ends = terms.core:clip_bound(condition, vars)
  local plain = ends ~= nil and #terms:parts(condition, "BufferLoad") == 0
  for i = 1, ends and 2 * #vars or 0 do
    plain = plain and not (ends[i] and terms:uses(ends[i], set))
  end
  if not plain then
    s:fail("%s: its condition does not bound each iterator by itself", s:describe(block))
  end
  return ends
end

-- The box of iterators in which the condition holds: for each { min, extent }.
local function inside_of(s, block, condition)
  local terms, ends, out = s.terms, ends_of(s, block, condition), {}
  for i, iter in ipairs(block.iters) do
    local low, high = ends[2 * i - 1], ends[2 * i]
    local last = terms:sub(terms:add(iter.min, iter.extent), terms:int(iter.min, 1))
    low = terms:simplify(low and terms:max(low, iter.min) or iter.min)
    high = high and terms:min(high, last) or last
    local extent = terms:simplify(terms:add(terms:sub(high, low), terms:int(low, 1)))
    if (terms:constant(extent) or 1) < 1 then
      s:fail("%s: its condition holds nowhere", s:describe(block))
    end
    out[i] = { min = low, extent = extent,
      same = terms:equal(low, iter.min) and terms:equal(extent, iter.extent) }
  end
  return out
end

-- The loops from one inwards, which hold nothing but the block.
local function chain_from(s, block, loop)
  local chain = {}
  for _, around in ipairs(s:loops(block)) do
    if s:contains(loop, around) then chain[#chain + 1] = around end
  end
  if chain[1] ~= loop then s:fail("%s is not around %s", s:describe(loop), s:describe(block)) end
  for i, around in ipairs(chain) do
    if around.body ~= (chain[i + 1] or block) then
      s:fail("%s is not the only statement of %s", s:describe(chain[i + 1] or block),
        s:describe(around))
    elseif around.for_kind == tree.THREAD_BINDING then
      s:fail("%s is bound to a thread", s:describe(around))
    end
  end
  return chain
end

-- No element is stored twice: the order of the stores makes no difference.
local function check_distinct(s, block, store)
  local terms, ranges = s.terms, {}
  for _, iter in ipairs(block.iters) do
    terms:bind(iter.var, iter.min, iter.extent)
    table.move({ iter.var, iter.min, iter.extent }, 1, 3, #ranges + 1, ranges)
  end
  if #block.iters == 0 then s:fail("%s has no iterators", s:describe(block)) end
  local _, numbers = terms.core:detect_iter_map(store.indices, ranges, 0, BIJECTIVE, true)
  if not numbers then
    s:fail("%s: several values of the iterators may write one element", s:describe(block))
  end
end

-- -------------------------------------------------------------------- blocks

-- The constant, wherever the block stores.
local function fill_nest(s, block, chain, store, constant)
  local fill = access.declared(s.terms, tree.with(block, { name = block.name .. "_pad_const",
    annotations = {}, body = tree.with(store, { value = constant }) }))
  for i = #chain, 1, -1 do fill = tree.with(chain[i], { body = fill }) end
  fill = tree.renewed(s.terms, fill)
  local at = fill
  while at.kind == "For" do at = at.body end
  return fill, at.id
end

-- The number in the chain of the loop that is an iterator, and nothing else; nil: none is.
local function own_loop(s, block, chain, i)
  local terms, iter = s.terms, block.iters[i]
  for k, loop in ipairs(chain) do
    if block.values[i] == loop.var then
      local vars = { [loop.var] = true }
      for n, value in ipairs(block.values) do
        if n ~= i and terms:uses(value, vars) then return nil end
      end
      for n = k + 1, #chain do
        if terms:uses(chain[n].extent, vars) or terms:uses(chain[n].min, vars) then return nil end
      end
      return terms:constant(terms:simplify(loop.min)) == 0 and terms:constant(iter.min) == 0
        and terms:equal(loop.extent, iter.extent) and k or nil
    end
  end
  return nil
end

-- How the iterators and loops of the chain become those of the box: loops get smaller where one is
-- an iterator, else the block gets conditions.
local function boxed(s, block, chain, box)
  local terms, out = s.terms, { iters = {}, values = {}, conditions = { block.predicate },
    from = {}, to = {}, loop_from = {}, loop_to = {}, extents = {} }
  for i, iter in ipairs(block.iters) do
    local part, value = box[i], block.values[i]
    out.iters[i], out.values[i] = iter, value
    if not part.same then
      local at = own_loop(s, block, chain, i)
      out.iters[i] = { var = iter.var, min = terms:int(part.extent, 0), extent = part.extent,
        type = iter.type }
      out.from[#out.from + 1], out.to[#out.to + 1] = iter.var, terms:add(iter.var, part.min)
      if at then
        out.extents[at] = part.extent
        out.loop_from[#out.loop_from + 1] = value
        out.loop_to[#out.loop_to + 1] = terms:add(value, part.min)
      else
        out.values[i] = terms:simplify(terms:sub(value, part.min))
        table.insert(out.conditions, terms:ge(value, part.min))
        table.insert(out.conditions, terms:lt(value, terms:add(part.min, part.extent)))
      end
    end
  end
  return out
end

local function proved_conditions(s, block, conditions)
  local terms, kept = s.terms, {}
  s:bind_loops(block)
  for _, condition in ipairs(conditions) do
    for _, part in ipairs(terms:conjuncts(terms:simplify(condition))) do
      if not terms:can_prove(part) then kept[#kept + 1] = part end
    end
  end
  return terms:all(kept)
end

-- The block in the box, in its loops.
local function inside_nest(s, block, chain, box, store, value)
  local terms, out = s.terms, boxed(s, block, chain, box)
  local predicate = proved_conditions(s, block, out.conditions)
  local body = tree.replace_exprs(terms, tree.with(store, { value = value }), out.from, out.to)
  local inner = access.declared(terms, tree.with(block, { body = body }))
  for _, iter in ipairs(out.iters) do terms:bind(iter.var, iter.min, iter.extent) end
  inner = tree.with(block_layout.with_simple_indices(s, inner), { iters = out.iters,
    values = out.values, predicate = terms:replace(predicate, out.loop_from, out.loop_to) })
  for i = #chain, 1, -1 do
    inner = tree.with(chain[i], { extent = out.extents[i] or chain[i].extent, body = inner })
  end
  return inner
end

--- The block that fills, in front of the loop, as the block stores; the block computes inside.
function padding.decompose_padding(s, block, loop)
  checks.complete(s, block)
  local store, condition, value, constant = padded_store(s, block)
  local chain = chain_from(s, block, loop)
  check_distinct(s, block, store)
  local box = inside_of(s, block, condition)
  local fill, id = fill_nest(s, block, chain, store, constant)
  local inside = inside_nest(s, block, chain, box, store, value)
  s:replace(loop, tree.seq { fill, inside })
  return id
end

return padding
