--- te.hybrid: tensors that a Lua function of loops computes, in the manner of TVM's hybrid script.
--
--     local outer = te.hybrid.script(function(h, a, b)
--       local c = h.output_tensor({ n, m }, "float32")
--       for i in h.range(n) do
--         for j in h.range(m) do c[{ i, j }] = a[{ i }] * b[{ j }] end
--       end
--       return c
--     end)
--     local C = outer(A, B)
--
-- The function runs once and writes down what it does: the body of a `for` over h.range runs once,
-- with a variable; c[{ i, j }] = x is a store. What a program decides is h.if_(condition, f, g).
-- A Lua variable is a name of an expression; what changes from round to round is in memory that
-- h.allocate gives. The loops, in the order in which they are written, are the axes of the
-- operation (C.op.axis, with the names of the loops), which a schedule splits, fuses, reorders and
-- annotates: TVM's HybridOp.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local operation = require "perilune.te.operation"
local tir = require "perilune.tir"

local hybrid = {}

-- ------------------------------------------------------------------ buffers

-- An object of a function that is running: of each { state, buffer, kind, frame }, where the kind
-- is "input", "output" or "local".
local parts = setmetatable({}, { __mode = "k" })

local Buffer = { __name = "perilune.te.hybrid.Buffer" }

local function fail(what, ...) argument.fail("te.hybrid: " .. what:format(...)) end

local function index_of(value)
  if type(value) == "userdata" and value.kind == "IterVar" then return value.var end
  return value
end

local function indices_of(part, key)
  local list = type(key) == "table" and key or { key }
  local indices = {}
  for i, index in ipairs(list) do indices[i] = index_of(index) end
  if #indices ~= #part.buffer.shape then
    fail("'%s' has %d dimensions, %d indices are given", part.buffer.name, #part.buffer.shape,
      #indices)
  end
  if part.state.done or part.frame.closed then
    fail("'%s' is used outside of the loop or function that it belongs to", part.buffer.name)
  end
  return indices
end

local fields = {
  shape = function(buffer) return buffer.shape end,
  dtype = function(buffer) return buffer.dtype end,
  name = function(buffer) return buffer.name end,
  ndim = function(buffer) return #buffer.shape end,
}

function Buffer.__index(self, key)
  local part = parts[self]
  if type(key) == "string" then return fields[key] and fields[key](part.buffer) end
  return tir.BufferLoad(part.buffer, indices_of(part, key))
end

local function emit(state, stmt)
  local frame = state.frames[#state.frames]
  frame[#frame + 1] = stmt
end

function Buffer.__newindex(self, key, value)
  local part = parts[self]
  if type(key) == "string" then fail("'%s' has no field '%s'", part.buffer.name, key) end
  if part.kind == "input" then
    fail("'%s' is an input: it is never written", part.buffer.name)
  end
  local indices = indices_of(part, key)
  emit(part.state, tir.BufferStore(part.buffer, index_of(value), indices))
end

function Buffer.__tostring(self) return ("hybrid buffer '%s'"):format(parts[self].buffer.name) end

local function new_buffer(state, buffer, kind)
  local self = setmetatable({}, Buffer)
  parts[self] = { state = state, buffer = buffer, kind = kind,
    frame = state.frames[#state.frames] }
  return self
end

-- ------------------------------------------------------------------- frames
--
-- A frame is a list of statements with `allocs`: { at, buffer }, where memory begins to exist.

local function open(state, owner)
  state.frames[#state.frames + 1] = { allocs = {}, owner = owner }
end

local function seq(list, first)
  local rest = table.move(list, first, #list, 1, {})
  if #rest == 0 then return tir.Evaluate(0) end
  return #rest == 1 and rest[1] or tir.SeqStmt(rest)
end

-- The statement of the innermost frame.
local function close(state, owner)
  local frame = state.frames[#state.frames]
  if frame.owner ~= owner then
    fail "a loop was left by break, goto or return"
  end
  state.frames[#state.frames] = nil
  frame.closed = true
  for i = #frame.allocs, 1, -1 do
    local alloc = frame.allocs[i]
    local ranges = {}
    for d, dim in ipairs(alloc.buffer.shape) do
      ranges[d] = tir.range_from(operand.const(0, dim.dtype), dim)
    end
    local body = tir.BufferRealize(alloc.buffer, ranges, true, seq(frame, alloc.at))
    for k = #frame, alloc.at, -1 do frame[k] = nil end
    frame[alloc.at] = body
  end
  return seq(frame, 1)
end

-- ------------------------------------------------------------------ builder

local function dims_of(shape, where)
  local dims = {}
  for i, dim in ipairs(type(shape) == "table" and shape or { shape }) do
    dims[i] = operand.value(dim)
    if dims[i].dtype == nil or not operand.is_integer(dims[i].dtype) then
      fail("%s: dimension %d of the shape is no integer", where, i)
    end
  end
  return dims
end

-- An iterator that gives a variable once; its end is the end of the loop's body.
local iter_types = { serial = "DataPar", parallel = "Parallelized", vectorized = "Vectorized",
  unrolled = "Unrolled" }

local function loop(state, kind)
  return function(first, last, name)
    if last == nil then first, last = 0, first end
    if type(last) == "string" then first, last, name = 0, first, last end
    if last == nil then fail("a loop needs the number of its rounds") end
    first, last = operand.value(index_of(first)), operand.value(index_of(last))
    local var = core.var(name or "i" .. state.n_loops, operand.type(last.dtype or "int32"))
    local extent = operand.folded("Sub", last, first)
    state.n_loops = state.n_loops + 1
    local owner, started = {}, false
    return function()
      if not started then
        started = true
        state.axes[#state.axes + 1] = tir.IterVar(tir.range_from(first, extent), var,
          iter_types[kind])
        open(state, owner)
        return var
      end
      local body = close(state, owner)
      emit(state, tir.For(var, first, extent, kind, body))
      return nil
    end
  end
end

-- An iterator of the same kind over the threads of a tag.
local function threads(state)
  return function(tag, extent, name)
    if type(tag) ~= "string" or extent == nil then
      fail("bind needs the tag of a thread and the number of threads")
    end
    local var = core.var(name or tag:gsub("%.", "_"), operand.type "int32")
    extent = operand.value(index_of(extent))
    local thread = tir.IterVar(tir.range_from(operand.const(0, "int32"), extent), var,
      "ThreadIndex", tag)
    local owner, started = {}, false
    return function()
      if not started then
        started = true
        open(state, owner)
        return var
      end
      emit(state, tir.AttrStmt(thread, "thread_extent", extent, close(state, owner)))
      return nil
    end
  end
end

local function branch(state, f)
  local owner = {}
  open(state, owner)
  f()
  return close(state, owner)
end

local function builder_of(state)
  local h = { range = loop(state, "serial"), serial = loop(state, "serial"),
    parallel = loop(state, "parallel"), vectorize = loop(state, "vectorized"),
    unroll = loop(state, "unrolled"), bind = threads(state) }

  --- Runs one function or the other in the program.
  function h.if_(condition, f, g)
    argument.callable(f, "te.hybrid: if_", "f")
    local yes = branch(state, f)
    emit(state, tir.IfThenElse(condition, yes, g and branch(state, g) or nil))
  end

  --- A tensor that the function gives.
  function h.output_tensor(shape, dtype, name)
    local dims = dims_of(shape, "output_tensor")
    name = name or "output" .. #state.outputs
    local out = new_buffer(state, tir.decl_buffer(dims, dtype or "float32", name,
      { offset_factor = 1 }), "output")
    parts[out].frame = state.frames[1]
    state.outputs[#state.outputs + 1] = out
    return out
  end

  --- Memory from here to the end of the loop or function.
  function h.allocate(shape, dtype, scope, name)
    local buffer = tir.decl_buffer(dims_of(shape, "allocate"), dtype or "float32",
      name or "local" .. state.n_locals, { scope = scope or "global" })
    state.n_locals = state.n_locals + 1
    local frame = state.frames[#state.frames]
    frame.allocs[#frame.allocs + 1] = { at = #frame + 1, buffer = buffer }
    return new_buffer(state, buffer, "local")
  end

  --- Adds any statement or call.
  function h.emit(stmt)
    emit(state, stmt.dtype ~= nil and tir.Evaluate(stmt) or stmt)
  end

  return h
end

-- ---------------------------------------------------------------- operations

-- Tensors become buffers, lists of them lists; other values stay.
local function given(state, value)
  if operation.is_tensor(value) then
    local found = state.known[value]
    if found then return found end
    local buffer = tir.decl_buffer(value.shape, value.dtype, value.name, { offset_factor = 1 })
    state.inputs[#state.inputs + 1], state.in_buffers[#state.in_buffers + 1] = value, buffer
    state.known[value] = new_buffer(state, buffer, "input")
    return state.known[value]
  elseif type(value) == "table" and getmetatable(value) == nil then
    local list = {}
    for i, item in ipairs(value) do list[i] = given(state, item) end
    return list
  end
  return value
end

local function check_results(state, results)
  if results.n == 1 and type(results[1]) == "table" and getmetatable(results[1]) == nil then
    results = results[1]
    results.n = #results
  end
  local shapes, buffers, dtypes, seen = {}, {}, {}, {}
  for i = 1, results.n do
    local part = getmetatable(results[i]) == Buffer and parts[results[i]]
    if not part or part.kind ~= "output" or part.state ~= state or seen[part] then
      fail("result %d must be an output_tensor, each once", i)
    end
    seen[part] = true
    shapes[i], buffers[i], dtypes[i] = part.buffer.shape, part.buffer, part.buffer.dtype
  end
  if results.n == 0 then fail "the function returned no output_tensor" end
  if results.n < #state.outputs then fail "an output_tensor is not returned" end
  return shapes, buffers, dtypes
end

local function call(f, name, ...)
  local state = { frames = {}, outputs = {}, inputs = {}, in_buffers = {}, known = {}, axes = {},
    n_loops = 0, n_locals = 0 }
  local root, args = {}, table.pack(...)
  open(state, root)
  for i = 1, args.n do args[i] = given(state, args[i]) end
  local results = table.pack(f(builder_of(state), table.unpack(args, 1, args.n)))
  local shapes, buffers, dtypes = check_results(state, results)
  local body = close(state, root)
  state.done = true
  return operation.extern(shapes, state.inputs, function() return body end,
    { name = name, dtype = dtypes, in_buffers = state.in_buffers, out_buffers = buffers,
      axis = state.axes })
end

--- A function of tensors, of one that writes loops: f(h, ...) gets buffers in their places.
-- Options: name, of the operation.
function hybrid.script(f, options)
  argument.callable(f, "te.hybrid.script", "f")
  options = argument.options(options, "te.hybrid.script", { "name" })
  local name = options.name or "hybrid"
  return function(...) return call(f, name, ...) end
end

return hybrid
