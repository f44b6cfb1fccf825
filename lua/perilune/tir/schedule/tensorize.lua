-- tensorize: a block, or the loops from one inwards, become the implementation of an intrinsic
-- (pl.tir.TensorIntrin) after they were compared with its description. Definition: TVM 0.14,
-- src/tir/schedule/primitive/blockize_tensorize.cc.

local core = require "perilune.core"
core.internal()

local TensorIntrin = require "perilune.tir.tensor_intrin"
local blockize = require "perilune.tir.schedule.blockize"
local tree = require "perilune.tir.schedule.tree"

local tensorize = {}

-- --------------------------------------------------------------- comparison
--
-- A comparison is { s, intrin, from, to, inner, access, extra_from, extra_to }: `from` and `to` map
-- variables of the description to those of the program, `inner` is the set of the latter, `access`
-- has for each Buffer of the description that of the program and where its region begins.

local function mismatch(c, what, ...)
  c.s:fail("TensorIntrin '%s' does not match: %s", c.intrin.name, what:format(...))
end

local function mapped(c, term) return c.s.terms:replace(term, c.from, c.to) end

local function same(c, given, wanted)
  local terms = c.s.terms
  return given == wanted or terms:simplify(given) == terms:simplify(wanted)
    or terms:dtype(given) == terms:dtype(wanted) and terms:equal(given, wanted)
end

local function text(c, term) return tostring(c.s.terms:export(term)) end

local function map_var(c, given, wanted)
  c.from[#c.from + 1], c.to[#c.to + 1] = wanted, given
  c.inner[given] = true
end

-- An index of the program less that of the description: where the region begins.
local function base_of(c, buffer, given, wanted)
  local terms = c.s.terms
  local base = terms:replace(given, c.extra_from, c.extra_to)
  if wanted then base = terms:sub(base, mapped(c, wanted)) end
  base = terms:simplify(base)
  if terms:uses(base, c.inner) then
    mismatch(c, "an index of '%s' is %s", terms:name(buffer), text(c, given))
  end
  return base
end

local function match_access(c, buffer, indices, wanted, wanted_indices)
  local terms, bases, start = c.s.terms, {}, #indices - #wanted_indices
  if start < 0 or terms:dtype(buffer) ~= terms:dtype(wanted) then
    mismatch(c, "'%s' differs from '%s' in dtype or rank", terms:name(buffer),
      terms:name(wanted))
  end
  for i, index in ipairs(indices) do
    bases[i] = base_of(c, buffer, index, i > start and wanted_indices[i - start] or nil)
  end
  local known = c.access[wanted]
  if not known then
    c.access[wanted] = { buffer = buffer, bases = bases }
    return
  end
  if known.buffer ~= buffer then
    mismatch(c, "'%s' stands for '%s' and for '%s'", terms:name(wanted),
      terms:name(known.buffer), terms:name(buffer))
  end
  for i, base in ipairs(bases) do
    if not same(c, base, known.bases[i]) then
      mismatch(c, "'%s' is accessed in two regions", terms:name(buffer))
    end
  end
end

local function tail(list) return table.move(list, 2, #list, 1, {}) end

-- The loads correspond one to one; then the rest is equal.
local function match_value(c, given, wanted)
  local terms = c.s.terms
  local loads, wanted_loads = terms:parts(given, "BufferLoad"), terms:parts(wanted, "BufferLoad")
  if #loads ~= #wanted_loads or terms:dtype(given) ~= terms:dtype(wanted) then
    mismatch(c, "the expression is %s, not %s", text(c, given), text(c, wanted))
  end
  local from, to = table.move(c.from, 1, #c.from, 1, {}), table.move(c.to, 1, #c.to, 1, {})
  for i, load in ipairs(loads) do
    local one, other = terms:operands(load), terms:operands(wanted_loads[i])
    match_access(c, one[1], tail(one), other[1], tail(other))
    from[#from + 1], to[#to + 1] = wanted_loads[i], load
  end
  if not same(c, given, terms:replace(wanted, from, to)) then
    mismatch(c, "the expression is %s, not %s", text(c, given), text(c, wanted))
  end
end

local match

local matchers = {}

function matchers.Seq(c, given, wanted)
  if #given.seq ~= #wanted.seq then
    mismatch(c, "there are %d statements, not %d", #given.seq, #wanted.seq)
  end
  for i, stmt in ipairs(given.seq) do match(c, stmt, wanted.seq[i]) end
end

function matchers.For(c, given, wanted)
  local terms = c.s.terms
  if given.for_kind ~= wanted.for_kind or given.thread ~= wanted.thread then
    mismatch(c, "%s is of another kind", c.s:describe(given))
  elseif not same(c, given.min, wanted.min) or not same(c, given.extent, wanted.extent) then
    mismatch(c, "%s has the extent %s, not %s", c.s:describe(given), text(c, given.extent),
      text(c, wanted.extent))
  end
  terms:bind(given.var, given.min, given.extent)
  map_var(c, given.var, wanted.var)
  match(c, given.body, wanted.body)
end

-- Iterators correspond from the last one on; those before them have one round.
local function match_iters(c, given, wanted)
  local terms, start = c.s.terms, #given.iters - #wanted.iters
  if start < 0 then
    mismatch(c, "%s has %d iterators, not %d", c.s:describe(given), #given.iters, #wanted.iters)
  end
  for i, iter in ipairs(given.iters) do
    local other = wanted.iters[i - start]
    terms:bind(iter.var, iter.min, iter.extent)
    if not other then
      if terms:constant(iter.extent) ~= 1 then
        mismatch(c, "%s has %d iterators, not %d", c.s:describe(given), #given.iters,
          #wanted.iters)
      end
      c.extra_from[#c.extra_from + 1] = iter.var
      c.extra_to[#c.extra_to + 1] = iter.min
    elseif iter.type ~= other.type then
      mismatch(c, "iterator '%s' is of another type", terms:name(iter.var))
    elseif not same(c, given.values[i], mapped(c, wanted.values[i - start])) then
      mismatch(c, "iterator '%s' is bound to %s", terms:name(iter.var), text(c, given.values[i]))
    else
      map_var(c, iter.var, other.var)
    end
  end
end

function matchers.Block(c, given, wanted)
  if not same(c, given.predicate, mapped(c, wanted.predicate)) then
    mismatch(c, "%s has another predicate", c.s:describe(given))
  elseif (given.init == nil) ~= (wanted.init == nil) then
    mismatch(c, "%s %s an init; see decompose_reduction", c.s:describe(given),
      given.init and "has" or "does not have")
  elseif #given.allocs > 0 or #given.matches > 0 then
    mismatch(c, "%s has buffers of its own", c.s:describe(given))
  end
  match_iters(c, given, wanted)
  if given.init then match(c, given.init, wanted.init) end
  match(c, given.body, wanted.body)
end

function matchers.Store(c, given, wanted)
  match_access(c, given.buffer, given.indices, wanted.buffer, wanted.indices)
  match_value(c, given.value, wanted.value)
end

function matchers.Evaluate(c, given, wanted) match_value(c, given.value, wanted.value) end

function matchers.If(c, given, wanted)
  match_value(c, given.condition, wanted.condition)
  if (given.other == nil) ~= (wanted.other == nil) then mismatch(c, "a branch is missing") end
  match(c, given.body, wanted.body)
  if given.other then match(c, given.other, wanted.other) end
end

function match(c, given, wanted)
  local matcher = matchers[given.kind]
  if given.kind ~= wanted.kind or not matcher then
    mismatch(c, "there is a statement %s where the description has %s", given.kind, wanted.kind)
  end
  matcher(c, given, wanted)
end

-- ------------------------------------------------------------ implementation

-- A function's Buffers and block, with variables that no other copy has.
local function fresh(s, fn)
  local terms = s.terms
  local func, from, to, known = tree.read_func(terms, fn), {}, {}, {}
  for _, bind in ipairs(func.binds) do
    for _, var in ipairs(terms:parts(bind.buffer, "Var")) do
      if not known[var] then
        known[var] = true
        from[#from + 1] = var
        to[#to + 1] = terms:import(core.var(terms:name(var), terms:export(var).type))
      end
    end
  end
  local buffers, by_param = {}, {}
  for _, bind in ipairs(func.binds) do
    by_param[bind.param] = terms:replace(bind.buffer, from, to)
  end
  for i, param in ipairs(func.params) do buffers[i] = by_param[param] end
  local body = tree.renewed(terms, func.body)
  return buffers, tree.replace_exprs(terms, body, from, to)
end

local function region_of(terms, block, buffer)
  for _, list in ipairs { block.writes, block.reads } do
    for _, region in ipairs(list) do
      if region.buffer == buffer then return region end
    end
  end
  return tree.full_region(terms, buffer)
end

-- The Buffer of the implementation over its part of the program's.
local function match_of(c, block, buffer, known)
  local terms, ranges = c.s.terms, {}
  local region = region_of(terms, block, buffer)
  local start = #known.bases - #region.ranges
  for i, base in ipairs(known.bases) do
    local range = region.ranges[i - start]
    ranges[i] = range and { min = terms:simplify(terms:add(base, range.min)),
      extent = range.extent } or { min = base, extent = terms:int(base, 1) }
  end
  return { buffer = buffer, source = { buffer = known.buffer, ranges = ranges } }
end

local function implemented(c, outer, wanted)
  local terms = c.s.terms
  local buffers, block = fresh(c.s, c.intrin.impl)
  local matches, annotations = {}, {}
  for i, buffer in ipairs(buffers) do
    local known = c.access[wanted[i]]
    if not known then
      mismatch(c, "the description does not use its parameter %d, '%s'", i, terms:name(buffer))
    end
    matches[i] = match_of(c, block, buffer, known)
  end
  for _, list in ipairs { outer.annotations, block.annotations } do
    for key, value in pairs(list) do annotations[key] = value end
  end
  return tree.with(outer, { body = block.body, matches = matches, allocs = block.allocs,
    annotations = annotations })
end

-- The Buffers of the description's parameters.
local function parameters_of(func)
  local out, by_param = {}, {}
  for _, bind in ipairs(func.binds) do by_param[bind.param] = bind.buffer end
  for i, param in ipairs(func.params) do out[i] = by_param[param] end
  return out
end

function tensorize.tensorize(s, stmt, name, preserve_unit_iters)
  local intrin = TensorIntrin.get(name, true)
  if not intrin then s:fail("TensorIntrin '%s' is not registered", name) end
  if stmt.kind == "For" then
    local id = blockize.blockize(s, stmt, preserve_unit_iters)
    stmt = s.by_id[id]
  end
  local c = { s = s, intrin = intrin, from = {}, to = {}, inner = {}, access = {},
    extra_from = {}, extra_to = {} }
  local desc = tree.read_func(s.terms, intrin.desc)
  match(c, stmt.body, desc.body.body)
  s:replace(stmt, implemented(c, stmt, parameters_of(desc)))
end

return tensorize
