-- The indices of a PrimFunc of blocks in another dtype: TVM's IndexDataTypeNormalizer, for
-- te.create_prim_func's index_dtype_override.
--
-- Loops, iterators, dimensions and the variables in them get the dtype; values keep theirs, so that
-- an index among them is converted.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local buffers = require "perilune.tir.schedule.buffer"
local tir = require "perilune.tir"
local tree = require "perilune.tir.schedule.tree"

-- ------------------------------------------------------------------ variables

local function is_index(dtype) return dtype:find "^int%d+$" ~= nil end

local function add_vars(job, set, term)
  for _, var in ipairs(job.terms:parts(term, "Var")) do set[var] = true end
end

local function each_buffer(func, visit)
  for _, bind in ipairs(func.binds) do visit(bind.buffer) end
  tree.visit(func.body, function(stmt)
    for _, buffer in ipairs(stmt.allocs or {}) do visit(buffer) end
    for _, match in ipairs(stmt.matches or {}) do visit(match.buffer) end
  end)
end

-- Vars of indices and sizes that the function takes: they are bound nowhere else.
local function size_vars(job, func)
  local terms, used, out = job.terms, {}, {}
  each_buffer(func, function(buffer)
    for i, operand in ipairs(terms:operands(buffer)) do
      if i > 1 then add_vars(job, out, operand) end
    end
  end)
  tree.visit(func.body, function(stmt)
    for _, index in ipairs(stmt.indices or {}) do add_vars(job, used, index) end
    if stmt.extent then add_vars(job, used, stmt.extent) end
    tree.own_exprs(stmt, function(term)
      for _, load in ipairs(terms:parts(term, "BufferLoad")) do
        for i, operand in ipairs(terms:operands(load)) do
          if i > 1 then add_vars(job, used, operand) end
        end
      end
    end)
  end)
  for _, param in ipairs(func.params) do
    if used[param] then out[param] = true end
  end
  return out
end

local function map_vars(job, func)
  local vars = size_vars(job, func)
  tree.visit(func.body, function(stmt)
    if stmt.kind == "For" then vars[stmt.var] = true end
    for _, iter in ipairs(stmt.iters or {}) do vars[iter.var] = true end
  end)
  for var in pairs(vars) do
    local dtype = job.terms:dtype(var)
    if is_index(dtype) and dtype ~= job.dtype then
      job.known[var] = job.terms:var(job.terms:name(var), job.dtype)
    end
  end
end

-- ---------------------------------------------------------------- expressions

-- A term as one of another dtype: a constant is one of it.
local function converted(job, term, dtype)
  local terms = job.terms
  if terms:dtype(term) == dtype then return term end
  local constant = terms:constant(term)
  if constant and is_index(dtype) then
    if dtype == "int32" and (constant < -1 << 31 or constant >= 1 << 31) then
      argument.fail(("te.create_prim_func: index %d does not fit int32"):format(constant))
    end
    return terms:number(dtype, constant)
  end
  local var = terms:var("x", terms:dtype(term))
  return terms:replace(terms:import(tir.Cast(dtype, terms:export(var))), { var }, { term })
end

-- Two operands of one dtype: where they differ, the one of indices.
local function unified(job, x, y)
  local a, b = job.terms:dtype(x), job.terms:dtype(y)
  if a == b then return x, y end
  return converted(job, x, job.dtype), converted(job, y, job.dtype)
end

local binary = {}
for _, kind in ipairs { "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max",
  "EQ", "NE", "LT", "LE", "GT", "GE" } do
  binary[kind] = true
end

local function index_list(job, terms)
  local out = {}
  for i, term in ipairs(terms) do
    local scalar = is_index(job.terms:dtype(term))
    out[i] = scalar and converted(job, term, job.dtype) or term
  end
  return out
end

-- What a term is whose operands have been rewritten. Operands of calls and of what is not listed
-- here keep their dtypes.
local function rebuilt(job, term, operands)
  local terms, kind = job.terms, job.terms:kind(term)
  if binary[kind] then
    local x, y = unified(job, operands[1], operands[2])
    return terms.core:binary(kind, x, y)
  elseif kind == "Select" then
    return terms.core:select(operands[1], unified(job, operands[2], operands[3]))
  elseif kind == "BufferLoad" then
    return terms:load(operands[1], index_list(job, table.move(operands, 2, #operands, 1, {})))
  elseif kind ~= "Cast" then
    for i, old in ipairs(terms:operands(term)) do
      if terms:kind(old) ~= "Buffer" then
        operands[i] = converted(job, operands[i], terms:dtype(old))
      end
    end
  end
  return terms.core:with_operands(term, operands)
end

-- A rewritten term. Terms share parts, and are nested deeply: a stack has what is to be done.
local function mapped(job, root)
  local terms, known, stack = job.terms, job.known, { root }
  while #stack > 0 do
    local term = stack[#stack]
    local operands, ready = terms:kind(term) == "Buffer" and {} or terms:operands(term), {}
    local waiting = #stack
    for i, operand in ipairs(operands) do
      ready[i] = known[operand]
      if not ready[i] then stack[#stack + 1] = operand end
    end
    if #stack == waiting then
      known[term] = known[term] or #operands > 0 and rebuilt(job, term, ready) or term
      stack[#stack] = nil
    end
  end
  return known[root]
end

-- An expression of a statement: it has the dtype that it had.
local function value_of(job, term)
  if job.terms:kind(term) == "Buffer" then return mapped(job, term) end
  return converted(job, mapped(job, term), job.terms:dtype(term))
end

local function index_of(job, term)
  local made = mapped(job, term)
  return is_index(job.terms:dtype(made)) and converted(job, made, job.dtype) or made
end

local function map_buffer(job, buffer)
  local terms = job.terms
  local node, shape, strides = terms:export(buffer), {}, {}
  local function index(of) return terms:export(index_of(job, terms:import(of))) end
  for i, dim in ipairs(node.shape) do shape[i] = index(dim) end
  for i, stride in ipairs(node.strides) do strides[i] = index(stride) end
  job.known[buffer] = terms:import(tir.Buffer(node.data, node.dtype, shape, strides,
    index(node.elem_offset), node.name, buffers.options_of(node, {})))
end

-- ----------------------------------------------------------------- statements

local function map_range(job, range)
  return { min = index_of(job, range.min), extent = index_of(job, range.extent) }
end

local function map_region(job, region)
  local ranges = {}
  for i, range in ipairs(region.ranges) do ranges[i] = map_range(job, range) end
  return { buffer = mapped(job, region.buffer), ranges = ranges }
end

local function map_list(job, list, f)
  local out = {}
  for i, item in ipairs(list) do out[i] = f(job, item) end
  return out
end

local function map_iter(job, iter)
  local range = map_range(job, iter)
  return { var = mapped(job, iter.var), min = range.min, extent = range.extent, type = iter.type }
end

local function map_match(job, match)
  return { buffer = mapped(job, match.buffer), source = map_region(job, match.source) }
end

local fields_of = {
  For = function(job, s)
    local range = map_range(job, s)
    return { var = mapped(job, s.var), min = range.min, extent = range.extent }
  end,
  Store = function(job, s)
    return { buffer = mapped(job, s.buffer), value = value_of(job, s.value),
      indices = map_list(job, s.indices, index_of) }
  end,
  Evaluate = function(job, s) return { value = value_of(job, s.value) } end,
  If = function(job, s) return { condition = value_of(job, s.condition) } end,
  Let = function(job, s) return { value = value_of(job, s.value) } end,
  Other = function(job, s) return { operands = map_list(job, s.operands, value_of) } end,
  Seq = function() return {} end,
  Block = function(job, s)
    return {
      iters = map_list(job, s.iters, map_iter), values = map_list(job, s.values, index_of),
      predicate = value_of(job, s.predicate), reads = map_list(job, s.reads, map_region),
      writes = map_list(job, s.writes, map_region), allocs = map_list(job, s.allocs, mapped),
      matches = map_list(job, s.matches, map_match),
    }
  end,
}

--- The function with its indices in the dtype: `func` is what tree.read_func gives.
local function with_index_dtype(terms, func, dtype)
  local job = { terms = terms, dtype = dtype, known = {} }
  map_vars(job, func)
  each_buffer(func, function(buffer) map_buffer(job, buffer) end)
  local binds = {}
  for i, bind in ipairs(func.binds) do
    binds[i] = { param = mapped(job, bind.param), buffer = mapped(job, bind.buffer) }
  end
  return tree.with(func, { params = map_list(job, func.params, mapped), binds = binds,
    body = tree.map(func.body, function(stmt)
      return tree.with(stmt, fields_of[stmt.kind](job, stmt))
    end) })
end

return with_index_dtype
