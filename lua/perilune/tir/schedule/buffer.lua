-- Buffers of a schedule: where they are declared, another one in the place of one, and the
-- primitives that change what is said of one: set_axis_separator, unsafe_set_dtype,
-- unsafe_hide_buffer_access.

local core = require "perilune.core"
core.internal()

local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

local buffers = {}

--- The buffer of a block by { "read" or "write", number from 0 }.
function buffers.of(s, block, which)
  local regions = which[1] == "write" and block.writes or block.reads
  local region = regions[which[2] + 1]
  if not region then
    s:fail("%s %ss %d buffers; there is no buffer %s", s:describe(block), which[1], #regions,
      tostring(which[2]))
  end
  return region.buffer
end

-- ------------------------------------------------------------- declarations

-- The block that allocates a buffer, and its number there; nil of a parameter.
local function owner_of(s, block, buffer)
  local around = block
  while around do
    for i, own in ipairs(around.kind == "Block" and around.allocs or {}) do
      if own == buffer then return around, i end
    end
    around = s:parent(around)
  end
  return nil
end

local function is_parameter(s, name, buffer)
  for _, bind in ipairs(s.funcs[name].binds) do
    if bind.buffer == buffer then return true end
  end
  return false
end

local function rebind(s, name, buffer, made)
  local binds = {}
  for i, bind in ipairs(s.funcs[name].binds) do
    binds[i] = { param = bind.param, buffer = bind.buffer == buffer and made or bind.buffer }
  end
  s.funcs = tree.with(s.funcs, { [name] = tree.with(s.funcs[name], { binds = binds }) })
end

--- Refuses views of the buffer in a statement, and what uses more of it than its elements.
function buffers.check_plain_use(s, stmt, buffer)
  local terms = s.terms
  local data = { [terms:operands(buffer)[1]] = true }
  tree.visit(stmt, function(inner)
    for _, match in ipairs(inner.matches or {}) do
      if match.source.buffer == buffer then
        s:fail("%s has a view of '%s'", s:describe(inner), terms:name(buffer))
      end
    end
    tree.own_exprs(inner, function(term)
      if terms:kind(term) == "Buffer" and term == buffer and inner.kind == "Other"
          or terms:kind(term) ~= "Buffer" and terms:uses(term, data) then
        s:fail("'%s' is used otherwise than by its elements", terms:name(buffer))
      end
    end)
  end)
end

--- Declares `made` in the place of a buffer that a block accesses by its elements; rewrite(stmt)
-- gives the statement in which it is known with the new one.
function buffers.redeclare(s, block, buffer, made, rewrite)
  local owner, at = owner_of(s, block, buffer)
  local name = s:func_of(block)
  local within = owner or s.funcs[name].body
  if not owner and not is_parameter(s, name, buffer) then
    s:fail("'%s' is a view of another buffer", s.terms:name(buffer))
  end
  buffers.check_plain_use(s, within, buffer)
  local out = rewrite(within)
  if owner then
    local allocs = table.move(owner.allocs, 1, #owner.allocs, 1, {})
    allocs[at] = made
    out = tree.with(out, { allocs = allocs })
  else
    rebind(s, name, buffer, made)
  end
  s:replace(within, out)
end

-- ----------------------------------------------------------------- elements

--- An expression with `value(indices)` for the elements of a buffer, inner ones first.
function buffers.with_values(terms, term, buffer, value)
  local from, to = {}, {}
  local loads = terms:parts(term, "BufferLoad")
  for i = #loads, 1, -1 do
    local operands = terms:operands(loads[i])
    if operands[1] == buffer then
      local indices = {}
      for k = 2, #operands do indices[k - 1] = terms:replace(operands[k], from, to) end
      from[#from + 1], to[#to + 1] = loads[i], value(indices)
    end
  end
  return terms:replace(term, from, to)
end

-- ------------------------------------------------------- set_axis_separator

--- The options of a buffer like another one, with some of its own.
function buffers.options_of(node, more)
  local attrs, out = node.attrs, {}
  for _, key in ipairs { "data_alignment", "offset_factor", "buffer_type", "axis_separators" } do
    out[key] = attrs[key]
  end
  for key, value in pairs(more) do out[key] = value end
  return out
end

local function check_separators(s, buffer, separators)
  local last = 0
  for _, at in ipairs(separators) do
    if at <= last or at >= s.terms:rank(buffer) then
      s:fail("axis separators of '%s' are increasing numbers from 1 to %d, got %d",
        s.terms:name(buffer), s.terms:rank(buffer) - 1, at)
    end
    last = at
  end
end

--- Where the dimensions of a buffer are flattened apart: before these numbers.
function buffers.set_axis_separator(s, block, which, separators)
  local terms, buffer = s.terms, buffers.of(s, block, which)
  check_separators(s, buffer, separators)
  local node = terms:export(buffer)
  local made = terms:import(tir.Buffer(node.data, node.dtype, node.shape, node.strides,
    node.elem_offset, node.name, buffers.options_of(node, { axis_separators = separators })))
  if made == buffer then return end
  buffers.redeclare(s, block, buffer, made, function(stmt)
    return tree.replace_exprs(terms, stmt, { buffer }, { made })
  end)
end

-- --------------------------------------------------------- unsafe_set_dtype

-- What a term of one dtype is as one of another.
local function converter(terms, from, to)
  local var = terms:var("x", from)
  local cast = terms:import(tir.Cast(to, terms:export(var)))
  return function(term) return terms:replace(cast, { var }, { term }) end
end

local function with_dtype(s, stmt, buffer, made)
  local terms = s.terms
  local old, new = terms:export(buffer).dtype, terms:export(made).dtype
  local stored, loaded = converter(terms, old, new), converter(terms, new, old)
  local function element(indices) return loaded(terms:load(made, indices)) end
  return tree.map(stmt, function(inner)
    if inner.kind == "Seq" then return inner end
    local own = inner.kind == "Store" and inner.buffer == buffer
    inner = tree.map_own_exprs(inner, function(term)
      if terms:kind(term) == "Buffer" then return term == buffer and made or term end
      return buffers.with_values(terms, term, buffer, element)
    end)
    return own and tree.with(inner, { value = stored(inner.value) }) or inner
  end)
end

local function check_dtype(s, dtype)
  local ok = pcall(operand.const, 0, dtype)
  if not ok or operand.lanes(dtype) ~= 1 then s:fail("'%s' is no dtype of elements", dtype) end
end

--- The elements of a buffer that a block writes and another allocates are stored as a dtype, and
-- converted back where they are read: values may be rounded.
function buffers.unsafe_set_dtype(s, block, index, dtype)
  check_dtype(s, dtype)
  local terms, buffer = s.terms, buffers.of(s, block, { "write", index })
  local node, owner = terms:export(buffer), owner_of(s, block, buffer)
  if not owner then
    s:fail("'%s' is not allocated by a block", terms:name(buffer))
  elseif #node.strides > 0 then
    s:fail("'%s' has strides", node.name)
  elseif node.dtype == dtype then
    return
  end
  local made = terms:import(tir.decl_buffer(node.shape, dtype, node.name,
    buffers.options_of(node, { scope = node.data.type.name })))
  buffers.redeclare(s, block, buffer, made, function(stmt)
    return with_dtype(s, stmt, buffer, made)
  end)
end

-- ------------------------------------------------- unsafe_hide_buffer_access

--- A block does not say that it reads, or writes, buffers (by their numbers from 0). Primitives
-- that ask which block depends on which do not know of these accesses any more.
function buffers.unsafe_hide_buffer_access(s, block, buf_type, buf_index_array)
  if buf_type ~= "read" and buf_type ~= "write" then
    s:fail("buf_type is \"read\" or \"write\", got \"%s\"", buf_type)
  end
  local regions, hidden, kept = block[buf_type .. "s"], {}, {}
  for _, number in ipairs(buf_index_array) do
    if number < 0 or number >= #regions then
      s:fail("%s %ss %d buffers; there is no buffer %d", s:describe(block), buf_type, #regions,
        number)
    end
    hidden[number + 1] = true
  end
  for i, region in ipairs(regions) do
    if not hidden[i] then kept[#kept + 1] = region end
  end
  s:replace(block, tree.with(block, { [buf_type .. "s"] = kept }))
end

return buffers
