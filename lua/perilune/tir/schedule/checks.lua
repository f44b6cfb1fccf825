-- What primitives ask of blocks: which depend on which, whether a block is complete or a reduction,
-- whether its bindings are affine. By TVM's definitions.

local core = require "perilune.core"
core.internal()

local tree = require "perilune.tir.schedule.tree"

local checks = {}

local NEG_INF, POS_INF = 0xfffffffe, 0xffffffff

local function buffers_of(regions)
  local set = {}
  for _, region in ipairs(regions) do set[region.buffer] = true end
  return set
end

checks.buffers_of = buffers_of

local function meets(regions, set)
  for _, region in ipairs(regions) do
    if set[region.buffer] then return true end
  end
  return false
end

checks.meets = meets

--- The blocks of the scope before it that write what a block reads.
function checks.producers(s, block)
  local out, read = {}, buffers_of(block.reads)
  for _, other in ipairs(s:child_blocks(s:scope(block))) do
    if other == block then break end
    if meets(other.writes, read) then out[#out + 1] = other end
  end
  return out
end

--- The blocks of the scope behind it that read what a block writes.
function checks.consumers(s, block)
  local out, written, behind = {}, buffers_of(block.writes), false
  for _, other in ipairs(s:child_blocks(s:scope(block))) do
    if behind and meets(other.reads, written) then out[#out + 1] = other end
    behind = behind or other == block
  end
  return out
end

-- Whether no other block of the scope writes what the block writes.
local function is_dominant(s, block)
  local written = buffers_of(block.writes)
  for _, other in ipairs(s:child_blocks(s:scope(block))) do
    if other ~= block and meets(other.writes, written) then return false end
  end
  return true
end

local function has_only(block, ...)
  for _, iter in ipairs(block.iters) do
    local found = false
    for _, type_ in ipairs { ... } do found = found or iter.type == type_ end
    if not found then return false end
  end
  return true
end

checks.has_only = has_only

--- Why a block is no complete block, or nil.
function checks.not_complete(s, block)
  if not has_only(block, tree.SPATIAL) then
    return "it is no complete block: not all of its iterators are spatial"
  elseif not is_dominant(s, block) then
    return "it is no complete block: it is not the only writer of its output"
  elseif meets(block.reads, buffers_of(block.writes)) then
    return "it is no complete block: it reads a buffer that it writes"
  end
  return nil
end

--- The loops around a block up to its scope as var, min, extent, ...
function checks.loop_ranges(s, block)
  local flat = {}
  for _, loop in ipairs(s:loops(block)) do
    table.move({ loop.var, loop.min, loop.extent }, 1, 3, #flat + 1, flat)
  end
  return flat
end

--- Whether the bindings of a block are independent affine functions of the loops around it.
function checks.is_affine(s, block)
  if #block.values == 0 then return true end
  local predicate = block.predicate == s.terms.yes and 0 or block.predicate
  local _, numbers = s.terms.core:detect_iter_map(block.values, checks.loop_ranges(s, block),
    predicate, 0, true)
  return numbers ~= nil and numbers ~= false
end

--- Whether the rounds of loops, those around them being fixed, are different values of the
-- iterators: so that no step of a reduction is done twice.
function checks.runs_once(s, block, around)
  local terms, ranges = s.terms, {}
  for _, loop in ipairs(around) do
    table.move({ loop.var, loop.min, loop.extent }, 1, 3, #ranges + 1, ranges)
  end
  if #block.values == 0 then return #around == 0 end
  for _, predicate in ipairs { 0, block.predicate ~= terms.yes and block.predicate or nil } do
    local _, numbers = terms.core:detect_iter_map(block.values, ranges, predicate, 1, true)
    if numbers then return true end
  end
  return false
end

--- Refuses a block that initialises or updates what it writes, if loops may run it twice.
function checks.once(s, block, around)
  local plain = not block.init and has_only(block, tree.SPATIAL)
    and not meets(block.reads, buffers_of(block.writes))
  if plain or checks.runs_once(s, block, around) then return end
  s:fail("%s: the loops may run steps of its reduction more than once", s:describe(block))
end

local function reduction_vars(block)
  local vars = {}
  for _, iter in ipairs(block.iters) do
    if iter.type == tree.REDUCE then vars[iter.var] = true end
  end
  return vars
end

checks.reduction_vars = reduction_vars

local function writes_by_reduction(s, block)
  local vars = reduction_vars(block)
  for _, region in ipairs(block.writes) do
    for _, range in ipairs(region.ranges) do
      if s.terms:uses(range.min, vars) or s.terms:uses(range.extent, vars) then return true end
    end
  end
  return false
end

--- Why a block is no reduction block, or nil.
function checks.not_reduction(s, block)
  if not block.init then
    return "it is no reduction block: it has no init"
  elseif not has_only(block, tree.SPATIAL, tree.REDUCE) then
    return "it is no reduction block: an iterator is neither spatial nor a reduction"
  elseif not is_dominant(s, block) then
    return "it is no reduction block: it is not the only writer of its output"
  elseif writes_by_reduction(s, block) then
    return "it is no reduction block: a reduction iterator indexes its output"
  elseif not checks.is_affine(s, block) then
    return "its bindings are not affine"
  end
  return nil
end

function checks.complete(s, block)
  local why = checks.not_complete(s, block)
  if why then s:fail("%s: %s", s:describe(block), why) end
end

function checks.reduction(s, block)
  local why = checks.not_reduction(s, block)
  if why then s:fail("%s: %s", s:describe(block), why) end
end

function checks.complete_or_reduction(s, block)
  local why = checks.not_complete(s, block)
  if why and checks.not_reduction(s, block) then
    local of_reduction = checks.not_reduction(s, block)
    s:fail("%s: %s", s:describe(block), block.init and of_reduction or why)
  end
end

--- A predicate may leave out only what lies behind the ends of iterators: then a round writes all
-- of its interval that there is.
function checks.only_ends(s, block)
  local ends = {}
  for i, iter in ipairs(block.iters) do
    local last = s.terms:add(iter.min, iter.extent)
    ends[s.terms:simplify(s.terms:lt(block.values[i], last))] = true
  end
  for _, condition in ipairs(s.terms:conjuncts(block.predicate)) do
    if not ends[s.terms:simplify(condition)] then
      s:fail("%s: what a round writes is not known: its predicate is no bound of an iterator",
        s:describe(block))
    end
  end
end

--- The loops run over the whole domain of the iterators.
function checks.whole_domain(s, block)
  local terms, domains = s.terms, {}
  checks.only_ends(s, block)
  if not checks.is_affine(s, block) then
    s:fail("%s: its bindings are not affine", s:describe(block))
  end
  s:bind_loops(block)
  for i, loop in ipairs(s:loops(block)) do
    domains[3 * i - 2], domains[3 * i - 1] = loop.var, loop.min
    domains[3 * i] = terms:sub(terms:add(loop.min, loop.extent), terms:int(loop.min, 1))
  end
  for i, iter in ipairs(block.iters) do
    local low, high = terms.core:int_set(block.values[i], domains)
    local last = terms:sub(terms:add(iter.min, iter.extent), terms:int(iter.min, 1))
    if low == NEG_INF or high == POS_INF or not (terms:can_prove(terms:le(low, iter.min))
        and terms:can_prove(terms:ge(high, last))) then
      s:fail("%s: its loops may not run over all of iterator '%s'", s:describe(block),
        terms:name(iter.var))
    end
  end
end

--- A buffer that the scope does not allocate is one of its outputs.
function checks.is_output(s, block)
  local allocated = {}
  for _, buffer in ipairs(s:scope(block).allocs) do allocated[buffer] = true end
  for _, region in ipairs(block.writes) do
    if not allocated[region.buffer] then return true end
  end
  return false
end

--- The variables by which the bindings of some iterators use loops: those of a type.
function checks.bindings_use(s, block, type_, vars)
  for i, iter in ipairs(block.iters) do
    if iter.type == type_ and s.terms:uses(block.values[i], vars) then return true end
  end
  return false
end

return checks
