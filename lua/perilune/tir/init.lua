--- TIR: PrimExprs, buffers, statements and PrimFuncs, by TVM's names.
--
--     local tir = pl.tir
--     local A, B = tir.decl_buffer({ 16 }, "float32", "A"), tir.decl_buffer({ 16 }, "float32", "B")
--     local i = tir.Var("i", "int32")
--     local body = tir.For(i, 0, 16, "serial", tir.BufferStore(B, A:load(i) + 1, { i }))
--     print(tir.PrimFunc({ A, B }, body))
--
-- Lua numbers and strings stand for immediates wherever a PrimExpr is expected.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local ir = require "perilune.ir"

local node_kinds = require "perilune.tir.kinds"
local named = require "perilune.tir.named"
local operand = require "perilune.tir.operand"

local expr, exprs, matched, node = operand.expr, operand.exprs, operand.matched, operand.node
local stmt, as_stmt = node_kinds.stmt, node_kinds.as_stmt

--- Types, immediates and casts, and arithmetic.
local tir = {
  type = operand.type, PointerType = operand.PointerType, IntImm = operand.IntImm,
  FloatImm = operand.FloatImm, StringImm = operand.StringImm, const = operand.const,
  Cast = operand.Cast, cast = operand.cast, Broadcast = operand.Broadcast,
  InjectCopyIntrin = require "perilune.tir.inject_copy_intrin",
  Target = require "perilune.tir.target", IndexMap = require "perilune.tir.index_map",
}
for name, call in pairs(require "perilune.tir.builtin") do tir[name] = call end
for name, operator in pairs(require "perilune.tir.math") do tir[name] = operator end
for name, reduction in pairs(require "perilune.tir.reduce") do tir[name] = reduction end
for name, call in pairs(require "perilune.tir.packed") do tir[name] = call end

local kind_number = node_kinds.number

-- --------------------------------------------------------------- PrimExprs

--- A variable of a dtype ("int32") or of a pointer type.
function tir.Var(name, dtype) return core.var(name, tir.type(dtype or "int32")) end

--- A variable that is no less than 0, such as an extent.
function tir.SizeVar(name, dtype) return core.size_var(name, tir.type(dtype or "int32")) end

local binary = {
  "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max",
  "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or",
}
for _, name in ipairs(binary) do
  --- The node as it is: operands of one dtype, nothing computed.
  tir[name] = function(a, b)
    local dtype = type(a) == "userdata" and a.dtype or type(b) == "userdata" and b.dtype or nil
    return node(name, { operand.value(a, dtype), operand.value(b, dtype) })
  end
end

--- A condition negated, as a node.
function tir.Not(a) return node("Not", { operand.value(a) }) end

--- One of two values, both of which are evaluated.
function tir.Select(condition, true_value, false_value)
  local a, b = matched(true_value, false_value)
  return node("Select", { operand.value(condition), a, b })
end

--- An element of a buffer; buffer:load(i, j) is the same.
function tir.BufferLoad(buffer, indices)
  return node("BufferLoad", { buffer, table.unpack(operand.values(indices)) })
end

--- An element of what a tensor expression computes.
function tir.ProducerLoad(producer, indices)
  return node("ProducerLoad", { producer, table.unpack(operand.values(indices)) })
end

--- The vector base, base + stride, ...
function tir.Ramp(base, stride, lanes)
  base = operand.value(base)
  return node("Ramp", { base, expr(stride, base.dtype) }, lanes)
end

--- An expression in which `var` stands for a value.
function tir.Let(var, value, body)
  argument.node(var, "tir.Let", "var")
  return node("PrimLet", { var, expr(value, var.dtype), expr(body) })
end

tir.PrimLet = tir.Let

--- A call of a builtin ("tir.exp" or "exp") or of a GlobalVar.
function tir.Call(dtype, op, args)
  local operands = operand.values(args)
  if type(op) ~= "string" then
    table.insert(operands, 1, op)
    return node("PrimCall", operands, 0, nil, tir.type(dtype))
  end
  local number = core.builtin((op:gsub("^tir%.", "")))
  if number == nil then
    argument.fail(("no builtin is called '%s'%s"):format(op, core.suggest(op, core.builtins())))
  end
  return node("PrimCall", operands, number, nil, tir.type(dtype))
end

tir.PrimCall = tir.Call

--- Lanes of several vectors, in the order of `indices`.
function tir.Shuffle(vectors, indices)
  local operands = exprs(vectors)
  table.move(exprs(indices), 1, #indices, #operands + 1, operands)
  return node("Shuffle", operands, #vectors)
end

--- An extent that any extent fits.
function tir.Any() return node("Any", {}, nil, nil, tir.type "int32") end

--- The integers from `first` to `last`, without it; of one number from 0.
function tir.Range(first, last)
  if last == nil then first, last = 0, first end
  local a, b = matched(first, last)
  return node("Range", { a, operand.folded("Sub", b, a) })
end

--- The `extent` integers from `min` on.
function tir.range_from(min, extent)
  local a, b = matched(min, extent)
  return node("Range", { a, b })
end

local iter_types = {
  DataPar = 0, ThreadIndex = 1, CommReduce = 2, Ordered = 3, Opaque = 4,
  Unrolled = 5, Vectorized = 6, Parallelized = 7, Tensorized = 8,
}

local function as_range(dom)
  if type(dom) == "table" then return tir.Range(dom[1], dom[2]) end
  if type(dom) == "number" then return tir.Range(dom) end
  return dom
end

--- A variable that runs over a range (nil: not known) in a way ("DataPar", or its number).
function tir.IterVar(dom, var, iter_type, thread_tag)
  if type(var) == "string" then var = tir.Var(var) end
  local attrs = thread_tag and thread_tag ~= "" and { thread_tag = thread_tag } or {}
  local number = argument.choice(iter_type, "tir.IterVar", "iter_type", iter_types)
  return node("IterVar", { var, as_range(dom) }, number, nil, nil, attrs)
end

-- ----------------------------------------------------------------- buffers

-- What is not as usual; an alignment of 64 bytes is.
local function buffer_attrs(options)
  local attrs = {}
  if options.data_alignment and options.data_alignment > 0 and options.data_alignment ~= 64 then
    attrs.data_alignment = options.data_alignment
  end
  if options.offset_factor and options.offset_factor > 1 then
    attrs.offset_factor = options.offset_factor
  end
  if options.buffer_type == "auto" or options.buffer_type == "auto_broadcast" then
    attrs.buffer_type = "auto"
  end
  if options.axis_separators and #options.axis_separators > 0 then
    attrs.axis_separators = options.axis_separators
  end
  return attrs
end

local buffer_options = { "data_alignment", "offset_factor", "buffer_type", "axis_separators" }
local new_buffer_options = { "data", "strides", "elem_offset", "scope",
  table.unpack(buffer_options) }

-- Offsets have the dtype of the first extent.
local function offset_dtype(shape)
  local first = shape[1] and expr(shape[1])
  return type(first) == "userdata" and first.dtype or "int32"
end

--- A buffer over the pointer `data`. Options: data_alignment, offset_factor, buffer_type
-- ("auto"), axis_separators.
function tir.Buffer(data, dtype, shape, strides, elem_offset, name, options)
  local operands = { data }
  table.move(exprs(shape), 1, #shape, #operands + 1, operands)
  table.move(exprs(strides or {}), 1, #(strides or {}), #operands + 1, operands)
  operands[#operands + 1] = expr(elem_offset or 0, offset_dtype(shape))
  local attrs = buffer_attrs(argument.options(options, "tir.Buffer", buffer_options))
  return node("Buffer", operands, name or "buffer", #shape, tir.type(dtype), attrs)
end

--- A new buffer. Options as of Buffer, and data, strides, elem_offset, scope.
function tir.decl_buffer(shape, dtype, name, options)
  options = argument.options(options, "tir.decl_buffer", new_buffer_options)
  dtype, name = dtype or "float32", name or "buffer"
  if type(shape) ~= "table" then shape = { shape } end
  local element = dtype == "bool" and "int8" or dtype
  local data = options.data
    or core.var(name, tir.PointerType(element, options.scope or "global"))
  local offset = options.elem_offset
  if offset == nil and options.offset_factor and options.offset_factor > 0 then
    offset = tir.Var(name .. "_elem_offset", offset_dtype(shape))
  end
  local given = {}
  for _, key in ipairs(buffer_options) do given[key] = options[key] end
  return tir.Buffer(data, dtype, shape, options.strides, offset, name, given)
end

--- A part of a buffer: a Range, { first, last } or an index in each dimension.
function tir.BufferRegion(buffer, region)
  local operands = { buffer }
  argument.table(region, "tir.BufferRegion", "region")
  for i, dim in ipairs(region) do
    if type(dim) == "number" or type(dim) == "userdata" and dim.kind ~= "Range" then
      dim = tir.range_from(dim, 1)
    end
    operands[i + 1] = as_range(dim)
  end
  return node("BufferRegion", operands)
end

-- -------------------------------------------------------------- statements

--- Statements in order: tir.SeqStmt { a, b }.
function tir.SeqStmt(list) return core.seq(list) end

--- Binds a variable in its body, to a value of the same dtype.
function tir.LetStmt(var, value, body)
  argument.node(var, "tir.LetStmt", "var")
  return stmt("LetStmt", { expr(value, var.dtype) }, nil, { var }, as_stmt(body))
end

--- Several nodes that an AttrStmt says something of.
function tir.Array(items) return node("Array", exprs(items)) end

--- Says something of its body: tir.AttrStmt(node, "pragma_unroll", 1, body). A list of nodes is an
-- Array.
function tir.AttrStmt(what, attr_key, value, body)
  if type(what) == "table" then what = tir.Array(what) end
  return stmt("AttrStmt", { expr(what), expr(value) }, { attr_key = attr_key }, {}, as_stmt(body))
end

--- Ends the program unless a condition holds.
function tir.AssertStmt(condition, message, body)
  return stmt("AssertStmt", { expr(condition), expr(message) }, nil, {}, as_stmt(body))
end

--- Stores a value into a buffer.
function tir.BufferStore(buffer, value, indices)
  argument.node(buffer, "tir.BufferStore", "buffer")
  return node("BufferStore", { buffer, expr(value, buffer.dtype), table.unpack(exprs(indices)) })
end

local function ranges(bounds)
  local out = {}
  if type(bounds) ~= "table" then argument.expected("a list of ranges", bounds) end
  for i, dim in ipairs(bounds) do out[i] = as_range(dim) end
  return out
end

--- Memory for a region of a buffer while its body runs.
function tir.BufferRealize(buffer, bounds, condition, body)
  local operands = { buffer, expr(condition), table.unpack(ranges(bounds)) }
  return stmt("BufferRealize", operands, nil, {}, as_stmt(body))
end

--- Stores an element that a tensor expression computes.
function tir.ProducerStore(producer, value, indices)
  return node("ProducerStore", { producer, expr(value), table.unpack(exprs(indices)) })
end

--- Memory for what a tensor expression computes.
function tir.ProducerRealize(producer, bounds, condition, body, storage_scope)
  return stmt("ProducerRealize", { producer, expr(condition), table.unpack(ranges(bounds)) },
    { storage_scope = storage_scope or "" }, {}, as_stmt(body))
end

local function annotated(attrs, annotations)
  if annotations and next(annotations) ~= nil then attrs.annotations = annotations end
  return attrs
end

--- Memory while its body runs; `buffer_var` points to it there.
function tir.Allocate(buffer_var, dtype, extents, condition, body, annotations)
  return stmt("Allocate", { expr(condition), table.unpack(exprs(extents)) },
    annotated({ dtype = operand.dtype(dtype) }, annotations), { buffer_var }, as_stmt(body))
end

--- Memory that holds a tensor.
function tir.AllocateConst(buffer_var, dtype, extents, data, body, annotations)
  local attrs = annotated({ dtype = operand.dtype(dtype), data = data }, annotations)
  return stmt("AllocateConst", exprs(extents), attrs, { buffer_var }, as_stmt(body))
end

--- A buffer over memory there is, for its body.
function tir.DeclBuffer(buffer, body)
  return stmt("DeclBuffer", { buffer }, nil, {}, as_stmt(body))
end

--- Evaluates an expression for its effect.
function tir.Evaluate(value) return node("Evaluate", { expr(value) }) end

--- Runs one of two statements; the second may be left out.
function tir.IfThenElse(condition, then_case, else_case)
  local other = else_case and {} or nil
  return stmt("IfThenElse", { expr(condition) }, nil, {}, as_stmt(then_case), other,
    as_stmt(else_case))
end

local for_kinds = { serial = 0, parallel = 1, vectorized = 2, unrolled = 3, thread_binding = 4 }

--- A loop over [min, min + extent). Kinds: "serial", "parallel", "vectorized", "unrolled",
-- "thread_binding" (then `thread_binding` is its IterVar), or their numbers.
function tir.For(loop_var, min, extent, kind, body, thread_binding, annotations)
  local attrs = annotated({}, annotations)
  kind = argument.choice(kind, "tir.For", "kind", for_kinds)
  if kind ~= 0 then attrs.kind = kind end
  local dtype = argument.node(loop_var, "tir.For", "loop_var").dtype
  return stmt("For", { expr(min, dtype), expr(extent, dtype), thread_binding }, attrs, { loop_var },
    as_stmt(body))
end

--- Runs its body as long as a condition holds.
function tir.While(condition, body)
  return stmt("While", { expr(condition) }, nil, {}, as_stmt(body))
end

--- Asks for a region of a buffer ahead of its use.
function tir.Prefetch(buffer, bounds)
  return node("Prefetch", { buffer, table.unpack(ranges(bounds)) })
end

--- A buffer that is a view of a region, for a Block.
function tir.MatchBufferRegion(buffer, source) return node("MatchBuffer", { buffer, source }) end

tir.MatchBuffer = tir.MatchBufferRegion

--- What the block around it reads: BufferRegions; what it writes.
function tir.BlockReads(regions) return node("BlockReads", regions) end
function tir.BlockWrites(regions) return node("BlockWrites", regions) end

--- A buffer of the block around it.
function tir.AllocBuffer(buffer) return node("AllocBuffer", { buffer }) end

--- What the block around it does before its first reduction step.
function tir.BlockInit(body) return stmt("BlockInit", {}, nil, {}, as_stmt(body)) end

--- Says as which buffer a parameter of a PrimFunc is seen.
function tir.BufferBind(param, buffer) return node("BufferBind", { param, buffer }) end

-- What a block says before its body.
local function block_body(reads, writes, alloc_buffers, match_buffers, init, body)
  local seq = { tir.BlockReads(reads or {}), tir.BlockWrites(writes or {}) }
  for _, buffer in ipairs(alloc_buffers or {}) do seq[#seq + 1] = tir.AllocBuffer(buffer) end
  for _, match in ipairs(match_buffers or {}) do seq[#seq + 1] = match end
  if init then seq[#seq + 1] = tir.BlockInit(init) end
  seq[#seq + 1] = as_stmt(body)
  return core.seq(seq)
end

--- A unit of computation over iteration variables (IterVars with a range).
function tir.Block(iter_vars, reads, writes, name_hint, body, init, alloc_buffers, match_buffers,
                   annotations)
  local domains, vars, kinds = {}, {}, {}
  for i, iter in ipairs(argument.table(iter_vars, "tir.Block", "iter_vars")) do
    argument.node(iter, "tir.Block", "an IterVar")
    vars[i], domains[i], kinds[i] = iter.var, iter[2], iter.iter_type
  end
  local attrs = annotated({ name_hint = name_hint, iter_types = kinds }, annotations)
  return stmt("Block", domains, attrs, vars,
    block_body(reads, writes, alloc_buffers, match_buffers, init, body))
end

--- Runs a block with values for its variables.
function tir.BlockRealize(iter_values, predicate, block)
  return stmt("BlockRealize", { expr(predicate), table.unpack(exprs(iter_values)) }, nil, {}, block)
end

--- A function of scalars, handles and buffers. A Buffer among the parameters is a handle
-- that `buffer_map` (from Vars to Buffers) sees as the buffer.
function tir.PrimFunc(params, body, ret_type, buffer_map, attrs)
  local vars, seq = {}, {}
  if buffer_map ~= nil then argument.table(buffer_map, "tir.PrimFunc", "buffer_map") end
  for i, param in ipairs(argument.table(params, "tir.PrimFunc", "params")) do
    argument.node(param, "tir.PrimFunc", "a parameter")
    local buffer = buffer_map and buffer_map[param]
    if param.kind == "Buffer" then
      param, buffer = tir.Var(param.name, "handle"), param
    end
    vars[i] = param
    if buffer then seq[#seq + 1] = tir.BufferBind(param, buffer) end
  end
  seq[#seq + 1] = as_stmt(body)
  return core.loop_stmt(kind_number.PrimFunc, {}, tir.type(ret_type), attrs, vars, as_stmt(seq))
end

-- -------------------------------------------------------------------- text

--- The module in a TVMScript text (a single PrimFunc becomes a module); nil and a diagnostic
-- when it cannot be read. `name` names the text in messages.
function tir.parse(text, name) return core.script_parse(text, name) end

--- The PrimExpr, or the statements, in a TVMScript text that declares first what they use, as
-- tir.script(node, { verbose_expr = true }) prints it; nil and a diagnostic when it cannot be read.
-- `names`: Vars and Buffers by name, which stand for the text's free ones of these names and need
-- no declarations there.
function tir.parse_expr(text, name, names)
  if names == nil then return core.script_parse_expr(text, name) end
  return named.parse_expr(text, name, argument.table(names, "tir.parse_expr", "names"))
end

-- ------------------------------------------- walking, changing, asking

for name, layout in pairs(require "perilune.tir.layout") do tir[name] = layout end
for name, walk in pairs(require "perilune.tir.walk") do tir[name] = walk end
for name, analysis in pairs(require "perilune.tir.analysis") do tir[name] = analysis end

--- The script form of a node or a module of PrimFuncs, as tostring gives it; with the option
-- `verbose_expr` a PrimExpr stands behind declarations of what it uses.
function tir.script(subject, options)
  options = argument.options(options, "tir.script", { "verbose_expr" })
  if options.verbose_expr and ir.kind_of(subject) == "Node" then
    return subject:text { verbose_expr = true, metadata = false }
  end
  return tostring(subject)
end

tir.renew_defs = core.renew_defs
tir.run = require "perilune.tir.run".run
tir.check = require "perilune.tir.check".check

-- Schedules and their intrinsics are loaded at their first use.
return setmetatable(tir, { __index = function(_, name)
  if name == "TensorIntrin" then
    tir.TensorIntrin = require "perilune.tir.tensor_intrin"
    return tir.TensorIntrin
  end
  if name ~= "Schedule" then return nil end
  tir.Schedule = require "perilune.tir.schedule"
  return tir.Schedule
end })
