-- Operations of tensor expressions and their tensors, by TVM's names.
--
-- A Tensor is an output of an Operation. `A[{ i, j }]` and `A(i, j)` are an
-- element of it, for expressions; `A * 2 + B` is a tensor. With tir.Range
-- among the indices it is a part of the tensor, for calls of intrinsics.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local graph = require "perilune.te.graph"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local operation = {}

local PLACEHOLDER, COMPUTE, SCAN, EXTERN = 0, 1, 2, 3
local class_names = { [0] = "PlaceholderOp", "ComputeOp", "ScanOp", "ExternOp" }

-- ------------------------------------------------------------------ inputs

-- Operations that are alive: an expression holds buffers, which do not hold
-- them. While a function describes a tensor, the operations that it reads are
-- listed, and stay alive.
local alive = setmetatable({}, { __mode = "k" })
local open_lists = {}

local function note(op)
  local list = open_lists[#open_lists]
  if list and not list[op] then
    list[op] = true
    list[#list + 1] = op
  end
end

--- Says that the expression being written reads an operation, where its loads were copied.
operation.note = note

-- Calls a function and lists the operations that it reads.
local function listing(f, ...)
  local list = {}
  open_lists[#open_lists + 1] = list
  local results = table.pack(pcall(f, ...))
  open_lists[#open_lists] = nil
  if not results[1] then error(results[2], 0) end
  return list, table.unpack(results, 2, results.n)
end

-- ----------------------------------------------------------------- tensors

local Tensor = { __name = "perilune.te.Tensor" }
local Operation = { __name = "perilune.te.Operation" }
local TensorRegion = { __name = "perilune.te.TensorRegion" }
local TensorIntrinCall = { __name = "perilune.te.TensorIntrinCall" }
operation.Tensor, operation.Operation = Tensor, Operation
operation.TensorRegion, operation.TensorIntrinCall = TensorRegion, TensorIntrinCall

function operation.is_tensor(value) return getmetatable(value) == Tensor end

function operation.is_operation(value) return getmetatable(value) == Operation end

--- The tensor of a Buffer that an expression reads.
function operation.tensor_of_buffer(buffer)
  local identity = core.te_identity(buffer)
  local function find(ops)
    for _, op in ipairs(ops) do
      for _, tensor in ipairs(op.outputs) do
        if core.te_identity(tensor.buffer) == identity then return tensor end
      end
    end
    return nil
  end
  return find(open_lists[#open_lists] or {}) or find(operation.all_alive())
end

-- An index: an axis stands for its variable.
local function index_of(value)
  if type(value) == "userdata" and value.kind == "IterVar" then return value.var end
  return operand.value(value)
end

local function is_range(value) return type(value) == "userdata" and value.kind == "Range" end

local function has_range(indices)
  for _, index in ipairs(indices) do
    if is_range(index) then return true end
  end
  return false
end

local function region(tensor, indices)
  local list = {}
  for i, index in ipairs(indices) do list[i] = is_range(index) and index or index_of(index) end
  return setmetatable({ tensor = tensor, indices = list }, TensorRegion)
end

local function element(tensor, indices)
  if #indices ~= tensor.ndim then
    argument.fail(("tensor '%s' has %d dimensions, %d indices are given"):format(tensor.name,
      tensor.ndim, #indices))
  end
  if has_range(indices) then return region(tensor, indices) end
  note(tensor.op)
  local operands = { tensor.buffer }
  for i, index in ipairs(indices) do operands[i + 1] = index_of(index) end
  return operand.node("ProducerLoad", operands, nil, nil, operand.type(tensor.dtype))
end

local tensor_methods = {}

--- The element at these indices: A:load(i, j) is A[{ i, j }].
function tensor_methods.load(tensor, ...) return element(tensor, { ... }) end

function Tensor.__index(tensor, key)
  if type(key) == "string" then return tensor_methods[key] end
  if type(key) == "table" then return element(tensor, key) end
  return element(tensor, { key })
end

function Tensor.__call(tensor, ...) return element(tensor, { ... }) end

local function shape_text(tensor)
  local dims = {}
  for i, dim in ipairs(tensor.shape) do dims[i] = tostring(dim) end
  return table.concat(dims, ", ")
end

function Tensor.__tostring(tensor)
  return ("Tensor(shape=[%s], dtype=%s, op.name=%s)"):format(shape_text(tensor), tensor.dtype,
    tensor.op.name)
end

-- Arithmetic of tensors, numbers and expressions broadcasts: pl.topi has the functions, which are
-- loaded at their first use.
local arithmetic = { __add = "add", __sub = "subtract", __mul = "multiply", __div = "divide" }
for event, name in pairs(arithmetic) do
  Tensor[event] = function(a, b) return require("perilune.topi")[name](a, b) end
end

function Tensor.__unm(a) return require("perilune.topi").negative(a) end

--- A tensor is equal to another one of the same operation and output.
function Tensor.__eq(a, b)
  return operation.is_tensor(a) and operation.is_tensor(b) and rawequal(a.op, b.op)
    and a.value_index == b.value_index
end

--- A tensor over a Buffer; output `value_index`, from 0, of an operation.
function operation.tensor(op, value_index, buffer)
  return setmetatable({
    op = op, value_index = value_index, buffer = buffer, name = op.name, dtype = buffer.dtype,
    shape = buffer.shape, ndim = #buffer.shape,
  }, Tensor)
end

-- -------------------------------------------------------------- operations

local operation_methods = {}
Operation.__index = operation_methods

--- Output i, from 0.
function operation_methods.output(op, i)
  local tensor = op.outputs[(i or 0) + 1]
  if tensor == nil then argument.fail(("operation '%s' has no output %s"):format(op.name, i)) end
  return tensor
end

function Operation.__tostring(op)
  local lines = {}
  for i, tensor in ipairs(op.outputs) do
    local head = ("%s%s[%s]: %s"):format(op.name, #op.outputs > 1 and "." .. i - 1 or "",
      shape_text(tensor), tensor.dtype)
    local body = op.body and op.body[i]
    lines[i] = body and type(body) == "userdata" and head .. " = " .. tostring(body) or head
  end
  return ("%s(%s)"):format(op.kind, table.concat(lines, "; "))
end

local function check_name(name, where)
  if name ~= nil and type(name) ~= "string" then
    argument.fail(("%s: argument 'name' must be a string, got a %s"):format(where, type(name)))
  end
  return name
end

local scopes = {}

--- The tag for operations without one, while a scope of tags is open.
local function tag_of(tag) return tag or scopes[#scopes] end

--- Gives the operations that f makes a tag: te.tag_scope("conv", f). TVM's `with tag_scope`.
function operation.tag_scope(tag, f, ...)
  if type(tag) ~= "string" or tag == "" then
    argument.fail("te.tag_scope: a tag is expected")
  end
  argument.callable(f, "te.tag_scope", "f")
  if #scopes > 0 then
    argument.fail("te.tag_scope: scopes of tags are not nested")
  end
  scopes[#scopes + 1] = tag
  local results = table.pack(pcall(f, ...))
  scopes[#scopes] = nil
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

local function cores_of(ops)
  local cores = {}
  for i, op in ipairs(ops) do cores[i] = op.core end
  return cores
end

function operation.all_alive()
  local ops = {}
  for op in pairs(alive) do ops[#ops + 1] = op end
  return ops
end

-- `candidates` are those that the expressions may read. What was written
-- outside of the function is looked up among all there are.
local function build(spec, buffers, bodies, stmt, candidates)
  local function try(ops)
    return core.te_op(spec.number, spec.name, spec.tag, spec.attrs, buffers, spec.axis, bodies,
      stmt, cores_of(ops))
  end
  local ok, made = pcall(try, candidates)
  if ok then return made, candidates end
  candidates = operation.all_alive()
  return try(candidates), candidates
end

-- spec: number, name, tag, attrs, axis.
local function make(spec, buffers, bodies, stmt, candidates)
  spec.attrs = spec.attrs or {}
  local made, ops = build(spec, buffers, bodies, stmt, candidates)
  local op = setmetatable({
    core = made, kind = class_names[spec.number], name = spec.name, tag = spec.tag or "",
    attrs = spec.attrs, axis = spec.axis, outputs = {}, inputs = {}, num_outputs = #buffers,
  }, Operation)
  for i, at in ipairs(core.te_op_inputs(made, cores_of(ops))) do op.inputs[i] = ops[at] end
  for i, buffer in ipairs(buffers) do op.outputs[i] = operation.tensor(op, i - 1, buffer) end
  alive[op] = true
  return op
end

local function dims_of(shape, where)
  if type(shape) ~= "table" then shape = { shape } end
  local dims = {}
  for i = 1, #shape do
    local dim = operand.value(shape[i])
    if not operand.is_integer(dim.dtype) then
      argument.fail(("%s: dimension %d of the shape is a %s, not an integer"):format(where, i,
        dim.dtype))
    end
    if dim.kind == "IntImm" and dim.value < 0 then
      argument.fail(("%s: dimension %d of the shape is negative: %d"):format(where, i, dim.value))
    end
    dims[i] = dim
  end
  return dims
end

local function buffer_of(dims, dtype, name) return tir.decl_buffer(dims, dtype, name) end

--- A tensor that is given: te.placeholder({ n, m }, "float32", "A").
function operation.placeholder(shape, dtype, name)
  name = check_name(name, "te.placeholder") or "placeholder"
  dtype = dtype or "float32"
  if type(dtype) ~= "string" then argument.expected("a dtype", dtype) end
  local dims = dims_of(shape, "te.placeholder")
  local spec = { number = PLACEHOLDER, name = name, tag = nil, axis = {} }
  local op = make(spec, { buffer_of(dims, dtype, name) }, {}, nil, {})
  op.shape, op.dtype = op.outputs[1].shape, dtype
  return op.outputs[1]
end

-- ----------------------------------------------------------------- compute

local function parameter_names(f, n)
  local names = {}
  if type(f) ~= "function" then return names, n end
  local info = debug.getinfo(f, "u")
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
  if not info.isvararg and info.nparams > n then
    argument.fail(("te.compute: the function has %d parameters, the shape %d dimensions"):format(
      info.nparams, n))
  end
  return names, info.isvararg and n or info.nparams
end

local function data_axes(dims, names)
  local axes, vars = {}, {}
  for i, dim in ipairs(dims) do
    local name = names[i] or (#names == 0 and "i" .. i - 1 or "ax" .. i - 1)
    vars[i] = core.var(name, operand.type(dim.dtype))
    axes[i] = tir.IterVar(tir.range_from(operand.const(0, dim.dtype), dim), vars[i], "DataPar")
  end
  return axes, vars
end

local function values_of(results)
  local bodies = {}
  if results.n == 1 and type(results[1]) == "table" then
    results = results[1]
    results.n = #results
  end
  if results.n == 0 then argument.fail("te.compute: the function returned nothing") end
  for i = 1, results.n do
    local value = results[i]
    if type(value) == "userdata" and value.kind == "IterVar" then value = value.var end
    bodies[i] = operand.value(value)
    if bodies[i].dtype == nil then argument.expected("a PrimExpr", value) end
  end
  return bodies
end

local function reduction_axes(bodies)
  return bodies[1].kind == "Reduce" and bodies[1].axis or {}
end

-- The attribute layout_free_placeholders, a list of tensors, is kept beside of the others.
local function without_layout_free(attrs)
  local free = attrs and attrs.layout_free_placeholders
  if free == nil then return attrs end
  local rest = {}
  for key, value in pairs(attrs) do
    if key ~= "layout_free_placeholders" then rest[key] = value end
  end
  for _, tensor in ipairs(argument.table(free, "te.compute", "layout_free_placeholders")) do
    if not operation.is_tensor(tensor) or tensor.op.kind ~= "PlaceholderOp" then
      argument.fail("te.compute: layout_free_placeholders: a list of placeholders is expected")
    end
  end
  return rest, free
end

-- What a function of the first n axes returns: values, or what a call of an intrinsic stands for.
local function read_results(results, n, dims, axes, vars)
  local call = results[1]
  if getmetatable(call) == TensorIntrinCall then
    call.tensor_axis = table.move(axes, n + 1, #axes, 1, {})
    local bodies
    bodies, call.inner = require "perilune.te.intrin_call".bodies(call,
      table.move(dims, n + 1, #dims, 1, {}), table.move(vars, n + 1, #vars, 1, {}))
    return bodies, call
  elseif n > 0 and n < #dims then
    argument.fail(("te.compute: the function has %d parameters, the shape %d dimensions"):format(n,
      #dims))
  end
  return values_of(results)
end

-- What is scheduled of a tensor that an intrinsic computes are the axes outside of it.
local function set_axes(op, n, call)
  if not call then return end
  op.kind, op.intrin_call = "TensorComputeOp", call
  op.axis, op.tensor_axis = table.move(op.axis, 1, n, 1, {}), call.tensor_axis
  op.reduce_axis = call.reduce_axis
end

--- A tensor (or several, one a result) that is computed: te.compute({ n, m }, function(i, j)
-- return A[{ i, j }] + 1 end, "B"). Options: tag, attrs. A function of the first axes may return a
-- call of an intrinsic (te.decl_tensor_intrin), which computes the other ones.
function operation.compute(shape, fcompute, name, options)
  argument.callable(fcompute, "te.compute", "fcompute")
  name = check_name(name, "te.compute") or "compute"
  options = argument.options(options, "te.compute")
  local dims = dims_of(shape, "te.compute")
  local names, n = parameter_names(fcompute, #dims)
  local axes, vars = data_axes(dims, names)
  local bodies, call
  local candidates = listing(function()
    local results = table.pack(fcompute(table.unpack(vars, 1, math.max(n, #names))))
    bodies, call = read_results(results, n, dims, axes, vars)
  end)
  local buffers = {}
  for i, body in ipairs(bodies) do
    local suffix = #bodies > 1 and (".v%d"):format(i - 1) or ""
    buffers[i] = buffer_of(dims, body.dtype, name .. suffix)
  end
  local attrs, free = without_layout_free(options.attrs)
  local spec = { number = COMPUTE, name = name, tag = tag_of(options.tag), attrs = attrs,
    axis = axes }
  local op = make(spec, buffers, bodies, nil, candidates)
  op.layout_free = free
  op.body, op.reduce_axis = bodies, reduction_axes(bodies)
  set_axes(op, n, call)
  return table.unpack(op.outputs)
end

-- -------------------------------------------------------------------- scan

local function tensor_list(list, where, what)
  if operation.is_tensor(list) then list = { list } end
  argument.table(list, where, what)
  for _, tensor in ipairs(list) do
    if not operation.is_tensor(tensor) then
      argument.fail(("%s: '%s' must be a tensor or a list of tensors"):format(where, what))
    end
  end
  return list
end

-- Time, then the other dimensions of each output.
local function scan_axes(name, init, update, state)
  local first, last = init[1].shape[1], update[1].shape[1]
  local extent = operand.folded("Sub", last, first)
  local axes = { tir.IterVar(tir.range_from(first, extent), name .. ".idx", "Ordered") }
  for i, tensor in ipairs(state) do
    for k = 2, tensor.ndim do
      local dim = tensor.shape[k]
      axes[#axes + 1] = tir.IterVar(tir.range_from(operand.const(0, dim.dtype), dim),
        ("%s.out%d.i%d"):format(name, i - 1, k - 1), "Opaque")
    end
  end
  return axes
end

local function append(to, tensors, field)
  for _, tensor in ipairs(tensors) do to[#to + 1] = field and tensor[field] or tensor end
end

--- A recurrence over the first dimension: `state` is the placeholder that stands for the result in
-- `update`, which computes a step from those before it; `init` are the first steps. Options: inputs
-- (tensors that are computed before the loop), name, tag, attrs.
function operation.scan(init, update, state, options)
  options = argument.options(options, "te.scan")
  init = tensor_list(init, "te.scan", "init")
  update = tensor_list(update, "te.scan", "update")
  state = tensor_list(state, "te.scan", "state_placeholder")
  local inputs = tensor_list(options.inputs or {}, "te.scan", "inputs")
  if #init == 0 or #init ~= #update or #init ~= #state then
    argument.fail("te.scan: as many init, update and state tensors are needed")
  end
  local name, buffers, bodies, ops = options.name or "scan", {}, {}, {}
  for i, tensor in ipairs(state) do
    local suffix = #state > 1 and (".v%d"):format(i - 1) or ""
    buffers[i] = buffer_of(tensor.shape, tensor.dtype, name .. suffix)
  end
  for _, list in ipairs { init, update, state, inputs } do
    append(bodies, list, "buffer")
    append(ops, list, "op")
  end
  local spec = { number = SCAN, name = name, tag = tag_of(options.tag), attrs = options.attrs,
    axis = scan_axes(name, init, update, state) }
  local op = make(spec, buffers, bodies, nil, ops)
  op.scan_axis, op.init, op.update, op.state_placeholder = spec.axis[1], init, update, state
  op.spatial_axis, op.scan_inputs = table.move(spec.axis, 2, #spec.axis, 1, {}), inputs
  return table.unpack(op.outputs)
end

local function check_scan(op, where)
  if getmetatable(op) ~= Operation or op.kind ~= "ScanOp" then
    argument.fail(where .. ": the operation of a scan is expected")
  end
end

local function reads_any(op, marked)
  for _, input in ipairs(op.inputs) do
    if marked[input] then return true end
  end
  return false
end

--- The operations of a scan's step, which depend on its state or inputs, those before others that
-- read them: TVM's ScanGetBody.
function operation.scan_get_body(scan)
  check_scan(scan, "te.scan_get_body")
  local outside, depends, updates, body = {}, {}, {}, {}
  for _, list in ipairs { scan.state_placeholder, scan.scan_inputs } do
    for _, tensor in ipairs(list) do outside[tensor.op], depends[tensor.op] = true, true end
  end
  append(updates, scan.update, "op")
  for _, op in ipairs(graph.post_order(updates, outside)) do
    depends[op] = reads_any(op, depends)
    if depends[op] then body[#body + 1] = op end
  end
  return body
end

--- For each spatial axis of a scan whether what is computed at an index depends on the state at the
-- same index only, so that a part of the axis can be computed alone: a list of booleans in the
-- order of op.spatial_axis. TVM's ScanFixPointAnalysis.
function operation.scan_fix_point_analysis(scan)
  check_scan(scan, "te.scan_fix_point_analysis")
  return table.move(core.te_scan_fix_points(scan.core), 2, #scan.axis, 1, {})
end

-- ------------------------------------------------------------------ extern

local function extern_shapes(shape, inputs)
  if #shape == 0 or type(shape[1]) ~= "table" then shape = { shape } end
  local dtypes = {}
  for _, tensor in ipairs(inputs) do dtypes[#dtypes + 1] = tensor.dtype end
  return shape, dtypes
end

-- The dtype of the outputs, unless it is given, is that of the inputs.
local function extern_dtype(dtype, dtypes, i)
  if type(dtype) == "table" then return dtype[i] end
  if dtype then return dtype end
  for _, other in ipairs(dtypes) do
    if other ~= dtypes[1] then dtypes = {} end
  end
  if not dtypes[1] then
    argument.fail("te.extern: the dtype of the outputs is not known: give the option dtype")
  end
  return dtypes[1]
end

local function placeholder_buffer(tensor)
  return tir.decl_buffer(tensor.shape, tensor.dtype, tensor.name, { offset_factor = 1 })
end

--- Tensors that a statement computes: te.extern(shape, { A }, function(ins, outs) return stmt end).
-- `shape` is that of the output, or a list of shapes; ins and outs are lists of Buffers. Options:
-- name, dtype (or a list), in_buffers, out_buffers, tag, attrs. `axis`, for te.hybrid: the IterVars
-- of loops of the statement that a schedule may change.
function operation.extern(shape, inputs, fcompute, options)
  argument.callable(fcompute, "te.extern", "fcompute")
  options = argument.options(options, "te.extern")
  inputs = tensor_list(inputs, "te.extern", "inputs")
  if type(shape) ~= "table" then shape = { shape } end
  local shapes, dtypes = extern_shapes(shape, inputs)
  local name, buffers, bodies, ops = options.name or "extern", {}, {}, {}
  local ins, outs = {}, {}
  for i, tensor in ipairs(inputs) do
    ins[i] = options.in_buffers and options.in_buffers[i] or placeholder_buffer(tensor)
  end
  for i, one in ipairs(shapes) do
    local dims = dims_of(one, "te.extern")
    local dtype = extern_dtype(options.dtype, dtypes, i)
    local suffix = #shapes > 1 and (".v%d"):format(i - 1) or ""
    buffers[i] = buffer_of(dims, dtype, name .. suffix)
    outs[i] = options.out_buffers and options.out_buffers[i]
      or tir.decl_buffer(dims, dtype, name, { offset_factor = 1 })
  end
  local stmt = fcompute(ins, outs)
  if type(stmt) == "table" then stmt = tir.SeqStmt(stmt) end
  if type(stmt) ~= "userdata" then
    argument.fail("te.extern: the function must return a statement or an expression")
  end
  if stmt.dtype ~= nil then stmt = tir.Evaluate(stmt) end
  append(bodies, ins)
  append(bodies, outs)
  append(bodies, inputs, "buffer")
  append(ops, inputs, "op")
  local spec = { number = EXTERN, name = name, tag = tag_of(options.tag), attrs = options.attrs,
    axis = options.axis or {} }
  local op = make(spec, buffers, bodies, stmt, ops)
  if options.axis then op.kind = "HybridOp" end
  op.stmt, op.input_placeholders, op.output_placeholders = stmt, ins, outs
  op.input_tensors = inputs
  return table.unpack(op.outputs)
end

return operation
