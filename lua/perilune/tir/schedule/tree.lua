-- The statements of a PrimFunc as immutable tables over terms, and back.
--
-- Kinds: For { var, min, extent, for_kind, thread, annotations, body }; Block, which is a
-- BlockRealize and its Block in one: { name, iters, values, predicate, reads, writes, init, body,
-- allocs, matches, annotations }; Seq { seq }; Store { buffer, value, indices }; Evaluate {
-- value }; If { condition, body, other }; Let { var, value, body }; Other { node, operands,
-- bodies }. An iterator of a block is { var, min, extent, type }, a region { buffer, ranges }, a
-- range { min, extent }. A changed statement is a new table; what did not change is shared with
-- the tree before. For and Block have an `id`, which their changed copies keep.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local tir = require "perilune.tir"

local tree = {}

-- Deeper programs are refused: functions below recurse.
local MOST_NESTED = 2000

tree.SERIAL, tree.PARALLEL, tree.VECTORIZED, tree.UNROLLED, tree.THREAD_BINDING = 0, 1, 2, 3, 4
tree.SPATIAL, tree.REDUCE, tree.ORDERED, tree.OPAQUE = 0, 2, 3, 4

local last_id = 0

--- A number that no other loop or block has.
function tree.new_id()
  last_id = last_id + 1
  return last_id
end

--- A copy with other fields; `false` removes one.
function tree.with(stmt, changes)
  local out = {}
  for key, value in pairs(stmt) do out[key] = value end
  for key, value in pairs(changes) do
    if value == false then out[key] = nil else out[key] = value end
  end
  return out
end

local with = tree.with

--- Statements in order; one is itself.
function tree.seq(list)
  local flat = {}
  for _, stmt in ipairs(list) do
    if stmt.kind == "Seq" then
      table.move(stmt.seq, 1, #stmt.seq, #flat + 1, flat)
    else
      flat[#flat + 1] = stmt
    end
  end
  return #flat == 1 and flat[1] or { kind = "Seq", seq = flat }
end

--- The statements of a body as a list.
function tree.stmts(body) return body.kind == "Seq" and body.seq or { body } end

function tree.loop(var, min, extent, body)
  return { kind = "For", id = tree.new_id(), var = var, min = min, extent = extent, for_kind = 0,
    annotations = {}, body = body }
end

--- The bodies of a statement, in order.
function tree.children(stmt)
  local kind = stmt.kind
  if kind == "Seq" then return stmt.seq end
  if kind == "Other" then return stmt.bodies end
  if kind == "Block" and stmt.init then return { stmt.init, stmt.body } end
  if kind == "If" and stmt.other then return { stmt.body, stmt.other } end
  return { stmt.body }
end

--- The statement with other bodies, as children gives them.
function tree.with_children(stmt, bodies)
  local kind = stmt.kind
  if kind == "Seq" then return tree.seq(bodies) end
  if kind == "Other" then return with(stmt, { bodies = bodies }) end
  if kind == "Block" and stmt.init then
    return with(stmt, { init = bodies[1], body = bodies[2] })
  end
  if kind == "If" then return with(stmt, { body = bodies[1], other = bodies[2] }) end
  return with(stmt, { body = bodies[1] })
end

--- Calls visit(stmt, parent) before the parts of a statement; false leaves them out.
function tree.visit(stmt, visit, parent)
  if visit(stmt, parent) == false then return end
  for _, child in ipairs(tree.children(stmt)) do tree.visit(child, visit, stmt) end
end

--- Calls post(stmt) with rewritten parts; its answer, if any, takes the place.
function tree.map(stmt, post)
  local bodies, changed = {}, false
  for i, child in ipairs(tree.children(stmt)) do
    bodies[i] = tree.map(child, post)
    changed = changed or bodies[i] ~= child
  end
  if changed then stmt = tree.with_children(stmt, bodies) end
  return post(stmt) or stmt
end

-- ------------------------------------------------------------- expressions

local function mapped_list(list, f)
  local out, changed = {}, false
  for i, term in ipairs(list) do
    out[i] = f(term)
    changed = changed or out[i] ~= term
  end
  return changed and out or list
end

--- A region with f of its Buffer and its ends.
function tree.map_region(region, f)
  local ranges, buffer = {}, f(region.buffer)
  local changed = buffer ~= region.buffer
  for i, range in ipairs(region.ranges) do
    local min, extent = f(range.min), f(range.extent)
    local same = min == range.min and extent == range.extent
    ranges[i] = same and range or { min = min, extent = extent }
    changed = changed or not same
  end
  return changed and { buffer = buffer, ranges = ranges } or region
end

function tree.map_regions(regions, f)
  return mapped_list(regions, function(region) return tree.map_region(region, f) end)
end

local function map_match(match, f)
  return with(match, { buffer = f(match.buffer), source = tree.map_region(match.source, f) })
end

local function map_iter(iter, f)
  local min, extent = f(iter.min), f(iter.extent)
  if min == iter.min and extent == iter.extent then return iter end
  return { var = iter.var, min = min, extent = extent, type = iter.type }
end

-- The fields of a kind that f may change.
local fields_of = {
  For = function(s, f) return { min = f(s.min), extent = f(s.extent) } end,
  Store = function(s, f)
    return { buffer = f(s.buffer), value = f(s.value), indices = mapped_list(s.indices, f) }
  end,
  Evaluate = function(s, f) return { value = f(s.value) } end,
  If = function(s, f) return { condition = f(s.condition) } end,
  Let = function(s, f) return { value = f(s.value) } end,
  Other = function(s, f) return { operands = mapped_list(s.operands, f) } end,
  Seq = function() return {} end,
  Block = function(s, f)
    return {
      values = mapped_list(s.values, f), predicate = f(s.predicate),
      reads = tree.map_regions(s.reads, f), writes = tree.map_regions(s.writes, f),
      allocs = mapped_list(s.allocs, f),
      iters = mapped_list(s.iters, function(iter) return map_iter(iter, f) end),
      matches = #s.matches > 0
        and mapped_list(s.matches, function(match) return map_match(match, f) end) or s.matches,
    }
  end,
}

--- One statement, without its bodies, with f of its expressions and Buffers.
function tree.map_own_exprs(stmt, f)
  for key, value in pairs(fields_of[stmt.kind](stmt, f)) do
    if stmt[key] ~= value then return with(stmt, fields_of[stmt.kind](stmt, f)) end
  end
  return stmt
end

--- The statement and all in it with f of their expressions and Buffers.
function tree.map_exprs(stmt, f)
  return tree.map(stmt, function(s) return tree.map_own_exprs(s, f) end)
end

--- The statement with parts of its expressions replaced.
function tree.replace_exprs(terms, stmt, from, to)
  if #from == 0 then return stmt end
  return tree.map_exprs(stmt, function(term) return terms:replace(term, from, to) end)
end

--- Calls visit(term) for the expressions of one statement, without its bodies and, of a Block,
-- without what it declares.
function tree.own_exprs(stmt, visit)
  local kind = stmt.kind
  if kind == "Store" then
    visit(stmt.value)
    for _, index in ipairs(stmt.indices) do visit(index) end
  elseif kind == "Block" then
    for _, value in ipairs(stmt.values) do visit(value) end
    visit(stmt.predicate)
  elseif kind ~= "Seq" then
    fields_of[kind](stmt, function(term)
      visit(term)
      return term
    end)
  end
end

--- A copy in which loops and blocks have ids, and loops variables, of their own.
function tree.renewed(terms, stmt)
  local from, to = {}, {}
  local copy = tree.map(stmt, function(s)
    if s.kind == "Block" then
      local iters = {}
      for i, iter in ipairs(s.iters) do
        local var = terms:var(terms:name(iter.var), terms:dtype(iter.var))
        from[#from + 1], to[#to + 1] = iter.var, var
        iters[i] = { var = var, min = iter.min, extent = iter.extent, type = iter.type }
      end
      return with(s, { id = tree.new_id(), iters = iters })
    elseif s.kind == "For" then
      local var = terms:var(terms:name(s.var), terms:dtype(s.var))
      from[#from + 1], to[#to + 1] = s.var, var
      return with(s, { id = tree.new_id(), var = var })
    end
    return nil
  end)
  return tree.replace_exprs(terms, copy, from, to)
end

--- All of a buffer.
function tree.full_region(terms, buffer)
  local ranges = {}
  for i, dim in ipairs(terms:shape(buffer)) do
    ranges[i] = { min = terms:int(dim, 0), extent = dim }
  end
  return { buffer = buffer, ranges = ranges }
end

-- ------------------------------------------------------------------ reading

local function imported(terms, nodes)
  local out = {}
  for i, node in ipairs(nodes) do out[i] = terms:import(node) end
  return out
end

local function read_region(terms, node)
  local ranges = {}
  for i, range in ipairs(node.region) do
    ranges[i] = { min = terms:import(range[1]), extent = terms:import(range[2]) }
  end
  return { buffer = terms:import(node.buffer), ranges = ranges }
end

local function read_regions(terms, node)
  local out = {}
  for i, region in ipairs(node.regions) do out[i] = read_region(terms, region) end
  return out
end

local read

local function read_list(terms, stmts, depth)
  local list = {}
  for i, stmt in ipairs(stmts) do list[i] = read(terms, stmt, depth) end
  return tree.seq(list)
end

-- What a block says before its body, and the body.
local function read_block_parts(terms, block, out, depth)
  local rest = {}
  for _, part in ipairs(block.stmts) do
    local kind = part.kind
    if kind == "BlockReads" then
      out.reads = read_regions(terms, part)
    elseif kind == "BlockWrites" then
      out.writes = read_regions(terms, part)
    elseif kind == "AllocBuffer" then
      out.allocs[#out.allocs + 1] = terms:import(part[1])
    elseif kind == "MatchBuffer" then
      out.matches[#out.matches + 1] = { buffer = terms:import(part[1]),
        source = read_region(terms, part[2]) }
    elseif kind == "BlockInit" then
      out.init = read_list(terms, part.stmts, depth)
    else
      rest[#rest + 1] = part
    end
  end
  out.body = read_list(terms, rest, depth)
  return out
end

local function read_block(terms, realize, depth)
  local block = realize.block
  local attrs, params, iters = block.attrs, block.params, {}
  for i, domain in ipairs(block.domains) do
    iters[i] = { var = terms:import(params[i]), min = terms:import(domain[1]),
      extent = terms:import(domain[2]), type = attrs.iter_types[i] }
  end
  return read_block_parts(terms, block, {
    kind = "Block", id = tree.new_id(), name = attrs.name_hint, iters = iters,
    values = imported(terms, realize.iter_values), predicate = terms:import(realize.predicate),
    reads = {}, writes = {}, allocs = {}, matches = {}, annotations = attrs.annotations or {},
  }, depth)
end

local readers = {
  For = function(terms, node, depth)
    local attrs = node.attrs
    return { kind = "For", id = tree.new_id(), var = terms:import(node.loop_var),
      min = terms:import(node.min), extent = terms:import(node.extent),
      for_kind = attrs.kind or 0, thread = node.thread and node.thread[1] or nil,
      annotations = attrs.annotations or {}, body = read_list(terms, node.stmts, depth) }
  end,
  BlockRealize = read_block,
  BufferStore = function(terms, node)
    return { kind = "Store", buffer = terms:import(node.buffer), value = terms:import(node.value),
      indices = imported(terms, node.indices) }
  end,
  Evaluate = function(terms, node)
    return { kind = "Evaluate", value = terms:import(node.value) }
  end,
  LetStmt = function(terms, node, depth)
    return { kind = "Let", var = terms:import(node.var), value = terms:import(node.value),
      body = read_list(terms, node.stmts, depth) }
  end,
  IfThenElse = function(terms, node, depth)
    local other = node.else_case
    return { kind = "If", condition = terms:import(node.condition),
      body = read_list(terms, tree.node_stmts(node.then_case), depth),
      other = other and read_list(terms, tree.node_stmts(other), depth) or nil }
  end,
}

--- The statements of a node that is one, or a SeqStmt.
function tree.node_stmts(node) return node.kind == "SeqStmt" and node.seq or { node } end

-- Any other statement keeps its node, and has its operands as terms.
local function read_other(terms, node, depth)
  local sealed = core.seal(node)
  local parts, n, operands, first = core.loop_parts(sealed)
  local out = { kind = "Other", node = sealed, operands = {}, bodies = {} }
  for i = 1, operands do out.operands[i] = terms:import(parts[i]) end
  local function body(from, to)
    return to >= from and read_list(terms, table.move(parts, from, to, 1, {}), depth) or nil
  end
  out.bodies[1] = body(operands + 1, operands + first)
  out.bodies[2] = body(operands + first + 1, n)
  return out
end

function read(terms, node, depth)
  if depth > MOST_NESTED then
    argument.fail(("tir.Schedule: statements are nested more than %d deep"):format(MOST_NESTED))
  end
  return (readers[node.kind] or read_other)(terms, node, depth + 1)
end

--- The tree of a statement.
function tree.read(terms, node) return read_list(terms, tree.node_stmts(node), 0) end

--- What a PrimFunc is made of: { params, binds, attrs, ret_type, body }.
function tree.read_func(terms, fn)
  local stmts = core.seal(fn).stmts
  local binds, rest = {}, {}
  for _, stmt in ipairs(stmts) do
    if stmt.kind == "BufferBind" then
      binds[#binds + 1] = { param = terms:import(stmt.param), buffer = terms:import(stmt.buffer) }
    else
      rest[#rest + 1] = stmt
    end
  end
  return { params = imported(terms, fn.params), binds = binds, attrs = fn.attrs,
    ret_type = fn.ret_type, body = read_list(terms, rest, 0) }
end

-- ------------------------------------------------------------------ writing

local function exported(terms, list)
  local out = {}
  for i, term in ipairs(list) do out[i] = terms:export(term) end
  return out
end

local function write_region(terms, region)
  local ranges = {}
  for i, range in ipairs(region.ranges) do
    ranges[i] = tir.range_from(terms:export(range.min), terms:export(range.extent))
  end
  return tir.BufferRegion(terms:export(region.buffer), ranges)
end

local function write_regions(terms, regions)
  local out = {}
  for i, region in ipairs(regions) do out[i] = write_region(terms, region) end
  return out
end

local function write_iters(terms, iters)
  local out = {}
  for i, iter in ipairs(iters) do
    out[i] = tir.IterVar(tir.range_from(terms:export(iter.min), terms:export(iter.extent)),
      terms:export(iter.var), iter.type)
  end
  return out
end

local function write_matches(terms, matches)
  local out = {}
  for i, match in ipairs(matches) do
    out[i] = tir.MatchBufferRegion(terms:export(match.buffer), write_region(terms, match.source))
  end
  return out
end

local write

local function write_block(terms, s)
  local block = tir.Block(write_iters(terms, s.iters), write_regions(terms, s.reads),
    write_regions(terms, s.writes), s.name, write(terms, s.body),
    s.init and write(terms, s.init) or nil, exported(terms, s.allocs),
    write_matches(terms, s.matches), s.annotations)
  return tir.BlockRealize(exported(terms, s.values), terms:export(s.predicate), block)
end

local writers = {
  For = function(terms, s)
    return tir.For(terms:export(s.var), terms:export(s.min), terms:export(s.extent), s.for_kind,
      write(terms, s.body), s.thread, s.annotations)
  end,
  Block = write_block,
  Seq = function(terms, s)
    local list = {}
    for i, stmt in ipairs(s.seq) do list[i] = write(terms, stmt) end
    return tir.SeqStmt(list)
  end,
  Store = function(terms, s)
    return tir.BufferStore(terms:export(s.buffer), terms:export(s.value),
      exported(terms, s.indices))
  end,
  Evaluate = function(terms, s) return tir.Evaluate(terms:export(s.value)) end,
  Let = function(terms, s)
    return tir.LetStmt(terms:export(s.var), terms:export(s.value), write(terms, s.body))
  end,
  If = function(terms, s)
    return tir.IfThenElse(terms:export(s.condition), write(terms, s.body),
      s.other and write(terms, s.other) or nil)
  end,
  Other = function(terms, s)
    local parts, first = exported(terms, s.operands), 0
    for i, body in ipairs(s.bodies) do
      local stmts = tree.stmts(body)
      for _, stmt in ipairs(stmts) do parts[#parts + 1] = write(terms, stmt) end
      if i == 1 then first = #stmts end
    end
    return core.loop_rebuild(s.node, parts, first)
  end,
}

function write(terms, stmt) return writers[stmt.kind](terms, stmt) end

--- The statement of a tree.
function tree.write(terms, stmt) return write(terms, stmt) end

--- The PrimFunc of what read_func gives.
function tree.write_func(terms, func)
  local params, buffer_map = exported(terms, func.params), {}
  for _, bind in ipairs(func.binds) do
    for i, param in ipairs(func.params) do
      if param == bind.param then buffer_map[params[i]] = terms:export(bind.buffer) end
    end
  end
  return tir.PrimFunc(params, write(terms, func.body), func.ret_type, buffer_map, func.attrs)
end

return tree
