-- blockize: the loops from one inwards, with the block in them, become a block.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local checks = require "perilune.tir.schedule.checks"
local iter_map = require "perilune.arith.iter_map"
local reduction = require "perilune.tir.schedule.reduction"
local tree = require "perilune.tir.schedule.tree"

local blockize = {}

-- The only block under a loop, and the loops on the way.
local function chain_of(s, loop)
  local inner, at = { loop }, loop.body
  while at.kind == "For" do
    inner[#inner + 1], at = at, at.body
  end
  if at.kind ~= "Block" then
    s:fail("%s: its body is no block in a chain of loops", s:describe(loop))
  elseif #at.iters == 0 then
    s:fail("%s has no iterators", s:describe(at))
  elseif at.predicate ~= s.terms.yes then
    s:fail("%s runs under a predicate", s:describe(at))
  end
  return at, inner
end

-- The parts of a binding are it. Those of loops whose rounds overlap (i + j) are not, as their
-- scales are made anew: if all of these are outside, the binding is outside as it is.
local function checked(s, block, inner, i, parts)
  local terms, value, vars = s.terms, block.values[i], {}
  local whole = terms:add(terms:mul(parts[1].value, parts[2].extent), parts[2].value)
  if terms:equal(whole, value) then return parts end
  for _, loop in ipairs(inner) do vars[loop.var] = true end
  if terms:uses(value, vars) then
    s:fail("%s: the binding of '%s' cannot be divided into loops outside and inside of %s",
      s:describe(block), terms:name(block.iters[i].var), s:describe(inner[1]))
  end
  local zero = terms:int(value, 0)
  return { { value = value, extent = block.iters[i].extent },
    { value = zero, extent = terms:int(zero, 1) } }
end

-- Each binding as outer * extent of inner + inner: pairs of { value, extent }.
local function divide(s, block, inner)
  local terms, values, ranges, vars = s.terms, {}, {}, {}
  local analyzer, known, hidden, stands_for = terms.analyzer, {}, {}, {}
  local function node(term) return terms:export(term) end
  -- Loops of one round stay what they are: nothing is known of these variables.
  for i, loop in ipairs(s:loops(block)) do
    if terms:constant(loop.min) ~= 0 then s:fail("%s does not start with 0", s:describe(loop)) end
    known[i], hidden[i] = loop.var, loop.var
    if terms:constant(loop.extent) == 1 then
      hidden[i] = terms:var(terms:name(loop.var), terms:dtype(loop.var))
    end
    stands_for[loop.var] = hidden[i]
    ranges[node(hidden[i])] = { node(loop.min), node(loop.extent) }
  end
  for i, value in ipairs(block.values) do values[i] = node(terms:replace(value, known, hidden)) end
  for i, loop in ipairs(inner) do vars[i] = node(stands_for[loop.var]) end
  local pairs_ = iter_map.subspace_divide(analyzer, values, ranges, vars, true, "surjective",
    false)
  if #pairs_ ~= #block.values + 1 then
    s:fail("%s: its bindings cannot be divided into loops outside and inside of %s",
      s:describe(block), s:describe(inner[1]))
  end
  local function part(mark)
    local value = terms:simplify(terms:import(iter_map.to_expr(analyzer, mark.source)))
    return { value = terms:replace(value, hidden, known), extent = terms:import(mark.extent) }
  end
  local out = {}
  for i = 1, #block.values do
    out[i] = checked(s, block, inner, i, { part(pairs_[i][1]), part(pairs_[i][2]) })
  end
  return out
end

-- The value of an iterator, by those of the outer and of the inner block that it is divided into.
local function value_of(terms, outer, inner, parts, keep_unit)
  local outer_unit = terms:constant(parts[1].extent) == 1
  if not inner then return outer_unit and not keep_unit and terms:int(outer, 0) or outer end
  if outer_unit then return inner end
  return terms:add(terms:mul(outer, parts[2].extent), inner)
end

-- The inner block has no iterator where only one value is inside.
local function divided_iters(s, block, parts, keep_unit)
  local terms = s.terms
  local out = { outer = {}, inner = {}, outer_values = {}, inner_values = {}, from = {}, to = {} }
  for i, iter in ipairs(block.iters) do
    if terms:constant(iter.min) ~= 0 then
      s:fail("%s: iterator '%s' does not start with 0", s:describe(block), terms:name(iter.var))
    end
    local vars = {}
    for k, side in ipairs { "outer", "inner" } do
      local part = parts[i][k]
      if k == 1 or terms:constant(part.extent) ~= 1 then
        vars[k] = terms:var(terms:name(iter.var) .. (k == 1 and "_o" or "_i"),
          terms:dtype(iter.var))
        table.insert(out[side], { var = vars[k], min = iter.min, extent = part.extent,
          type = iter.type })
        table.insert(out[side .. "_values"], part.value)
      end
    end
    out.from[i], out.to[i] = iter.var, value_of(terms, vars[1], vars[2], parts[i], keep_unit)
  end
  return out
end

-- The init of the inner block in loops of its own, for the outer one.
local function outer_init(s, block, inner)
  local terms, iters, values, used = s.terms, {}, {}, {}
  for i, iter in ipairs(block.iters) do
    if iter.type == tree.SPATIAL then
      iters[#iters + 1], values[#values + 1] = iter, block.values[i]
      for _, var in ipairs(terms:parts(block.values[i], "Var")) do used[var] = true end
    end
  end
  local body = { kind = "Block", id = tree.new_id(), name = block.name .. "_init", iters = iters,
    values = values, predicate = terms.yes,
    reads = {}, writes = block.writes, allocs = {}, matches = {}, annotations = {},
    body = block.init }
  for i = #inner, 1, -1 do
    if used[inner[i].var] then
      body = tree.loop(inner[i].var, inner[i].min, inner[i].extent, body)
    end
  end
  return tree.renewed(terms, body)
end

--- The outer block is new; the inner one keeps its variable.
function blockize.blockize(s, loop, preserve_unit_iters)
  local terms = s.terms
  local block, inner = chain_of(s, loop)
  s:bind_loops(block)
  local iters = divided_iters(s, block, divide(s, block, inner), preserve_unit_iters)
  local made = tree.replace_exprs(terms, block, iters.from, iters.to)
  made = tree.with(made, { iters = iters.inner, values = iters.inner_values })
  local init
  if block.init then
    init = outer_init(s, made, inner)
    made = tree.with(made, { init = false, reads = reduction.update_reads(made) })
  end
  local body = made
  for i = #inner, 1, -1 do body = tree.with(inner[i], { body = body }) end
  local outer = access.declared(terms, { kind = "Block", id = tree.new_id(),
    name = block.name .. "_o", iters = iters.outer, values = iters.outer_values,
    predicate = terms.yes, reads = {}, writes = {}, init = init, body = body, allocs = {},
    matches = {}, annotations = {} })
  -- Where an init moves; all else stays in its order.
  if block.init then checks.complete_or_reduction(s, block) end
  s:replace(loop, outer)
  return outer.id
end

return blockize
