-- merge: nests of loops that stand beside each other become one, whose rounds run the bodies of
-- all of them.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local checks = require "perilune.tir.schedule.checks"
local loops = require "perilune.tir.schedule.loops"
local tree = require "perilune.tir.schedule.tree"

-- ------------------------------------------------------------------- nests
--
-- A nest is { top, loops, at }: the statement of the sequence that it is, its loops down to the
-- given one, and its number in the sequence.

-- The statement around that holds all of the loops.
local function common_ancestor(s, list)
  local around = s:parent(list[1])
  while around do
    local all = true
    for _, loop in ipairs(list) do all = all and s:contains(around, loop) end
    if all then return around end
    around = s:parent(around)
  end
  return nil
end

local function check_apart(s, list)
  for i, loop in ipairs(list) do
    for k, other in ipairs(list) do
      if i < k and loop == other then
        s:fail("%s is given twice", s:describe(loop))
      elseif i ~= k and s:contains(loop, other) then
        s:fail("%s is inside of %s", s:describe(other), s:describe(loop))
      elseif s:scope(loop) ~= s:scope(other) then
        s:fail("%s and %s are not in one scope", s:describe(list[1]), s:describe(other))
      end
    end
  end
end

local function nest_of(s, loop, sequence)
  local nest, at = { loops = { loop } }, loop
  loops.check_plain(s, loop)
  while s:parent(at) ~= sequence do
    local around = s:parent(at)
    if around.kind ~= "For" then
      s:fail("%s is not the only statement of the loops around it", s:describe(loop))
    end
    loops.check_plain(s, around)
    table.insert(nest.loops, 1, around)
    at = around
  end
  nest.top = at
  for i, stmt in ipairs(sequence.seq) do
    if stmt == at then nest.at = i end
  end
  return nest
end

local function check_same_loops(s, first, other)
  local vars = {}
  if #first.loops ~= #other.loops then
    s:fail("%s and %s are not equally deep", s:describe(first.loops[#first.loops]),
      s:describe(other.loops[#other.loops]))
  end
  for level, loop in ipairs(first.loops) do
    local beside = other.loops[level]
    if s.terms:uses(loop.extent, vars) or s.terms:uses(beside.extent, vars) then
      s:fail("the extent of %s depends on another of the loops", s:describe(loop))
    elseif not s.terms:equal(loop.extent, beside.extent) then
      s:fail("%s and %s have different extents", s:describe(loop), s:describe(beside))
    end
    vars[loop.var], vars[beside.var] = true, true
  end
end

-- ------------------------------------------------------------- dependences

-- Whether two regions of a buffer have no element in common.
local function are_disjoint(s, x, y)
  local terms = s.terms
  for d, a in ipairs(x.ranges) do
    local b = y.ranges[d]
    if terms:can_prove(terms:ge(a.min, terms:add(b.min, b.extent)))
        or terms:can_prove(terms:ge(b.min, terms:add(a.min, a.extent))) then
      return true
    end
  end
  return false
end

-- Values of the loops of two nests, so that the round of the first one is behind that of the second
-- one: the same outside of a level, behind by 1 or more in it, any inside of it. nil: there are
-- none.
local function rounds_behind(s, first, second, level, least)
  local terms = s.terms
  local out = { from = {}, to = {} }
  local function add(nest, k, value)
    out.from[#out.from + 1], out.to[#out.to + 1] = nest.loops[k].var, value
  end
  for k, loop in ipairs(first.loops) do
    local function fresh(extent)
      local var = terms:var("r", terms:dtype(loop.var))
      terms:bind(var, terms:int(var, 0), extent)
      return var
    end
    if k < level then
      local var = fresh(loop.extent)
      add(first, k, var)
      add(second, k, var)
    elseif k > level then
      add(first, k, fresh(loop.extent))
      add(second, k, fresh(loop.extent))
    else
      local one = terms:int(loop.extent, least)
      local extent = terms:simplify(terms:sub(loop.extent, one))
      if terms:can_prove(terms:le(extent, terms:int(extent, 0))) then return nil end
      local var, distance = fresh(extent), fresh(extent)
      add(second, k, var)
      add(first, k, terms:add(terms:add(var, distance), one))
    end
  end
  return out
end

local function check_regions(s, first, second, xs, ys, values)
  local terms = s.terms
  local function at(region)
    return tree.map_region(region, function(term)
      return terms:kind(term) == "Buffer" and term or terms:replace(term, values.from, values.to)
    end)
  end
  for _, x in ipairs(xs) do
    for _, y in ipairs(ys) do
      if x.buffer == y.buffer and not are_disjoint(s, at(x), at(y)) then
        s:fail("a round of %s may access elements of '%s' that a later round of %s accesses",
          s:describe(second.loops[#second.loops]), terms:name(x.buffer),
          s:describe(first.loops[#first.loops]))
      end
    end
  end
end

local function accesses_of(s, nest)
  if not nest.reads then
    nest.reads, nest.writes = access.of_stmt(s.terms, nest.loops[#nest.loops].body)
  end
  return nest.reads, nest.writes
end

-- `first` runs before `second` now. After the merge, those of its rounds do not that are behind a
-- round of the second one; nor does the same one, if it is put behind.
local function check_independent(s, first, second, is_reversed)
  local reads, writes = accesses_of(s, first)
  local other_reads, other_writes = accesses_of(s, second)
  for _, loop in ipairs(s:loops(first.top)) do s.terms:bind(loop.var, loop.min, loop.extent) end
  local n = #first.loops
  for level = 1, is_reversed and n + 1 or n do
    local values = rounds_behind(s, first, second, level, 1)
    if values then
      check_regions(s, first, second, writes, other_reads, values)
      check_regions(s, first, second, writes, other_writes, values)
      check_regions(s, first, second, reads, other_writes, values)
    end
  end
end

-- What a nest moves past does not depend on it.
local function check_between(s, nest, stmt)
  local reads, writes = accesses_of(s, nest)
  local other_reads, other_writes = access.of_stmt(s.terms, stmt)
  local written = checks.buffers_of(writes)
  if checks.meets(other_reads, written) or checks.meets(other_writes, written)
      or checks.meets(other_writes, checks.buffers_of(reads)) then
    s:fail("a statement between the loops depends on %s",
      s:describe(nest.loops[#nest.loops]))
  end
end

local function check_order(s, nests, sequence, last)
  local is_nest = {}
  for _, nest in ipairs(nests) do is_nest[nest.at] = true end
  for i, nest in ipairs(nests) do
    for k = nest.at + 1, last do
      if not is_nest[k] then check_between(s, nest, sequence.seq[k]) end
    end
    for k = i + 1, #nests do
      local first, second = nest, nests[k]
      if first.at > second.at then first, second = second, first end
      check_independent(s, first, second, first ~= nest)
    end
  end
end

-- ------------------------------------------------------------------- merge

local function merged(s, nests)
  local terms, vars, bodies = s.terms, {}, {}
  for level, loop in ipairs(nests[1].loops) do
    vars[level] = terms:var(terms:name(loop.var) .. "_m", terms:dtype(loop.var))
  end
  for i, nest in ipairs(nests) do
    local from = {}
    for level, loop in ipairs(nest.loops) do from[level] = loop.var end
    bodies[i] = tree.replace_exprs(terms, nest.loops[#from].body, from, vars)
  end
  local body, inner = tree.seq(bodies), nil
  for level = #vars, 1, -1 do
    local loop = nests[1].loops[level]
    body = tree.loop(vars[level], loop.min, loop.extent, body)
    inner = inner or body
  end
  return body, inner
end

--- One nest of loops for those down to the given ones, in the place of the last of them; the bodies
-- are in the order in which the loops are given. Gives the innermost of its loops.
return function(s, list)
  if #list < 2 then s:fail("at least two loops are expected, got %d", #list) end
  check_apart(s, list)
  local sequence = common_ancestor(s, list)
  if not sequence or sequence.kind ~= "Seq" then
    s:fail("the loops are not in one sequence of statements")
  end
  local nests, last = {}, 0
  for i, loop in ipairs(list) do
    nests[i] = nest_of(s, loop, sequence)
    check_same_loops(s, nests[1], nests[i])
    last = math.max(last, nests[i].at)
  end
  check_order(s, nests, sequence, last)
  local body, inner = merged(s, nests)
  local stmts, taken = {}, {}
  for _, nest in ipairs(nests) do taken[nest.at] = true end
  for i, stmt in ipairs(sequence.seq) do
    if i == last then stmts[#stmts + 1] = body
    elseif not taken[i] then stmts[#stmts + 1] = stmt end
  end
  s:replace(sequence, tree.seq(stmts))
  return inner.id
end
