-- The pass LowerTE: calls of the Primitive functions that FuseOps makes become calls of PrimFuncs.
--
--     %0 = fn (%p0: Tensor[(4), float32], Primitive=1) { nn.relu(%p0) }; %0(%x)
--     =>  call_lowered(@tvmgen_default_fused_nn_relu, (%x,))
--
-- The body becomes tensor expressions by the attribute FTVMCompute of each operator, and loops by
-- FTVMSchedule of the operator of the highest pattern, or topi.generic.schedule. Functions that are
-- equal are lowered once. Constants in a body become operands of the call, scalars stay. A constant
-- operand of the call that is a short list of numbers (a shape, axes, factors) is known to the
-- compute. Other constant operands, weights, may be packed: args[i].pack(axes, block) is the
-- operand with its axes permuted, which the call gets as a constant of its own. With a block the
-- last of them is cut in blocks, the last of which is filled with zeros: their number is the first
-- axis, their length the last one.
-- args[i].table(data) is a tensor of that data: a list of an attribute, say, that loops index.
-- args[i].computed(shape, f) is what an expression f(operand) gives. args[i].winograd: products may
-- be rounded in other ways than those of the definition. args[i].decide(name, candidates) gives one
-- of several texts, the first one unless the schedules of the module (perilune.topi.decision) say
-- another one for the function; so does the second argument of generic.schedule.
--
-- Types may have symbolic dims: sizes.lua makes variables of them. A variable that is no dim of an
-- operand or result is a parameter of the PrimFunc, behind its buffers. The attribute symbolic_dims
-- has the dims that are passed behind the buffers: for those parameters, then for the variables of
-- shapes in the order in which buffers name them; size_checks has pairs of dims that are equal
-- where the loops are right. The evaluator does not run such functions: they are made with
-- symbolic = "on" alone.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local c_compiler = require "perilune.codegen.c_compiler"
local decision = require "perilune.topi.decision"
local dims = require "perilune.topi.dims"
local generic = require "perilune.topi.generic"
local ir = require "perilune.ir"
local layout = require "perilune.topi.layout"
local lower = require "perilune.lower"
local mutator = require "perilune.ir.mutator"
local operand = require "perilune.tir.operand"
local operation = require "perilune.te.operation"
local refusals = require "perilune.topi.refusals"
local new_sizes = require "perilune.topi.sizes"
local symbolic_dim = require "perilune.topi.symbolic_dim"
local tile = require "perilune.topi.tile"
local topi_compute = require "perilune.topi.compute"

-- Longer names are cut, and end in their hash.
local MOST_NAME, MOST_KNOWN, MOST_FACTORS = 56, 64, 16

-- ------------------------------------------------------------------ refusals

-- Raised where a function cannot be lowered.
local Refusal = {}

local function refuse(format, ...)
  error(setmetatable({ reason = format:format(...) }, Refusal), 0)
end

-- ------------------------------------------------------------------- tensors

local function check_tensor_type(type_)
  if type_.kind ~= "tensor" or not type_.dtype or not type_.shape then
    local text = tostring(type_)
    refuse(text == "_" and "a value whose type is not known" or "a value of type %s", text)
  end
  local count = 1
  for _, dim in ipairs(type_.shape) do
    if dim == "?" then refuse("the shape of %s is not known", tostring(type_)) end
    count = math.type(dim) == "integer" and count * dim or count
    if count > 0x7fffffff then refuse("%s has too many elements", tostring(type_)) end
  end
  return type_
end

local function is_scalar(tensor) return tensor.rank == 0 end

local function is_list(tensor)
  local most = tensor.dtype:find "^float" and MOST_FACTORS
    or tensor.dtype:find "^u?int" and MOST_KNOWN or 0
  return tensor.rank == 1 and tensor.size <= most
end

-- The tensors of a parameter, which is blocked or not: those in memory, and those of its type; one,
-- or the fields of a tuple.
local function placeholders(state, type_, block)
  if type_.kind == "tuple" then
    local list = {}
    for i, part in ipairs(type_.parts) do list[i] = placeholders(state, part) end
    return list, list
  end
  local shape = check_tensor_type(type_).shape
  if state.sizes then shape = state.sizes:type(type_).shape end
  if block then shape = layout.shape(shape, block) end
  local tensor = operation.placeholder(shape, type_.dtype, "p" .. #state.params)
  state.params[#state.params + 1] = tensor
  return tensor, block and layout.view(tensor) or tensor
end

-- A constant in the body: a scalar is an expression, others are operands of the call.
local function constant(state, node)
  local data = node.data
  if is_scalar(data) then
    local value = data:to_table()
    if data.dtype == "uint64" and value < 0 then refuse("a constant of uint64") end
    return dims.compute({}, function() return operand.const(value, data.dtype) end, "constant",
      "elemwise")
  end
  local type_ = check_tensor_type(node.type)
  local tensor = operation.placeholder(type_.shape, type_.dtype, "c" .. #state.constants)
  state.constants[#state.constants + 1] = { tensor = tensor, node = node }
  return tensor
end

-- ---------------------------------------------------------------- expressions

local function compute_of(name)
  local strategy = core.op_attr_get(name, "FTVMStrategy")
  if strategy then
    return function(attrs, inputs, out_type, args)
      local chosen = strategy(attrs, inputs, out_type, core.current().target)
      if type(chosen) ~= "table" or not chosen.compute then refuse("'%s': FTVMStrategy gave no "
        .. "table with a compute", name) end
      return chosen.compute(attrs, inputs, out_type, args), chosen.schedule
    end
  end
  return core.op_attr_get(name, "FTVMCompute") or topi_compute[name]
end

local function check_results(name, results, type_)
  local types = type_.kind == "tuple" and type_.parts or { type_ }
  if operation.is_tensor(results) then results = { results } end
  if type(results) ~= "table" or #results ~= #types then
    refuse("'%s': its compute did not give %d tensors", name, #types)
  end
  for i, want in ipairs(types) do
    local shape = dims.of(dims.tensor(results[i], "LowerTE", "a result of " .. name))
    local same = results[i].dtype == want.dtype and #shape == #want.shape
    for k, dim in ipairs(want.shape) do
      same = same and dims.agree(shape[k], dim)
    end
    if not same then
      refuse("'%s': its compute gave %s, not %s", name, tostring(results[i]), tostring(want))
    end
  end
  return results
end

local function check_type(type_)
  if type_.kind ~= "tuple" then return check_tensor_type(type_) end
  for _, part in ipairs(type_.parts) do check_tensor_type(part) end
end

-- Whether a tensor of a result has an extent that is not known.
local function has_open_shape(type_)
  for _, part in ipairs(type_.kind == "tuple" and type_.parts or { type_ }) do
    if part.kind == "tensor" and not part.shape then return true end
    for _, dim in ipairs(part.kind == "tensor" and part.shape or {}) do
      if dim == "?" then return true end
    end
  end
  return false
end

-- What is computed of a constant operand of the call, by an expression f(operand) of that shape.
local function computed(state, param, shape, f)
  local tensor = operation.placeholder(shape, param.type.dtype, "w" .. #state.packed)
  state.packed[#state.packed + 1] = { tensor = tensor, param = state.packable[param], f = f }
  return tensor
end

-- A constant operand of the call with permuted axes, the last one in blocks.
local function packed(state, param, axes, block)
  local shape, rank = {}, #axes
  for i, axis in ipairs(axes) do shape[i] = param.type.shape[axis + 1] end
  if not block then
    return computed(state, param, shape, function(weight)
      return ir.Call("transpose", { weight }, { axes = axes })
    end)
  end
  local cut, order = table.move(shape, 1, rank, 1, {}), { rank - 1 }
  cut[rank], cut[rank + 1] = (shape[rank] + block - 1) // block, block
  local pads = {}
  for i = 1, 2 * rank do pads[i] = 0 end
  pads[2 * rank] = cut[rank] * block - shape[rank]
  for i = 0, rank do
    if i ~= rank - 1 then order[#order + 1] = i end
  end
  table.insert(shape, 1, cut[rank])
  shape[rank + 1] = block
  return computed(state, param, shape, function(weight)
    local permuted = ir.Call("transpose", { weight }, { axes = axes })
    if pads[2 * rank] > 0 then permuted = ir.Call("nn.pad", { permuted }, { pads = pads }) end
    return ir.Call("transpose", { ir.Call("reshape", { permuted }, { newshape = cut }) },
      { axes = order })
  end)
end

-- The type with expressions as dims.
local function typed(state, type_)
  return type_ and state.sizes and state.sizes:type(type_) or type_
end

-- A tensor of numbers that a compute has: an operand of the call like constants in a body.
local function table_of(state, data)
  local tensor = operation.placeholder(data.shape, data.dtype, "t" .. #state.constants)
  state.constants[#state.constants + 1] = { tensor = tensor, node = ir.Constant(data) }
  return tensor
end

-- What is known of an argument. Whether a compute asks for the constant of a parameter is noted:
-- only then do functions of other constants need loops of their own.
local function argument_of(state, node)
  local own = { type = typed(state, node.type), winograd = state.winograd, decide = state.decide }
  function own.table(data) return table_of(state, data) end
  if state.packable[node] then
    function own.pack(axes, block) return packed(state, node, axes, block) end
    function own.computed(shape, f) return computed(state, node, shape, f) end
  end
  if node.kind == "Constant" then
    own.constant = node.data
    return own
  end
  return setmetatable(own, { __index = function(_, key)
    if key ~= "constant" then return nil end
    if state.numbers[node] then state.asked[state.numbers[node]] = true end
    return state.known[node]
  end })
end

-- The tensors of the arguments of a call, and what is known of them.
local function read_arguments(state, call)
  local inputs, args = {}, {}
  local function add(node, value)
    inputs[#inputs + 1] = value or false
    args[#inputs] = argument_of(state, node)
  end
  for _, arg in ipairs(call.args) do
    local value = state.values[arg]
    if arg.kind == "Tuple" and #call.args == 1 then
      for i, field in ipairs(arg.fields) do add(field, value[i]) end
    elseif type(value) == "table" and not operation.is_tensor(value) then
      for i, part in ipairs(arg.type.parts) do add({ type = part }, value[i]) end
    else
      add(arg, value)
    end
  end
  for i = #inputs + 1, 8 do args[i] = {} end
  return inputs, args
end

-- Why a call has no compute; nil: it has one.
local function missing_compute(call)
  if not call.op then return "a call of what is no operator" end
  local name = call.op.name
  if compute_of(name) then return nil end
  if not has_open_shape(call.type) then return ("operator '%s' has no compute"):format(name) end
  return ("operator '%s': the shape of its result, %s, depends on data"):format(name,
    tostring(call.type))
end

local function lower_call(state, call)
  local missing = missing_compute(call)
  if missing then refuse("%s", missing) end
  local name = call.op.name
  local compute = compute_of(name)
  check_type(call.type)
  local inputs, args = read_arguments(state, call)
  local type_ = typed(state, call.type)
  local ok, results, reason = pcall(compute, call.attrs or {}, inputs, type_, args)
  -- A message is a refusal; a stop, a diagnostic and the end of memory are not.
  if not ok and (type(results) ~= "string" or results == "not enough memory") then
    error(results, 0)
  end
  if not ok then refuse("operator '%s': %s", name, results) end
  if results == nil then refuse("operator '%s' has no compute for %s", name, reason or "this") end
  if type(reason) == "function" then state.schedule = reason end
  results = check_results(name, results, type_)
  state.ops[#state.ops + 1] = name
  return call.type.kind == "tuple" and results or results[1]
end

local function lower_node(state, node)
  local kind = node.kind
  if kind == "Constant" then return constant(state, node) end
  if kind == "Absent" then return false end
  if kind == "Call" then return lower_call(state, node) end
  if kind == "TupleGetItem" then return state.values[node.tuple][node.index + 1] end
  if kind ~= "Tuple" then refuse("a %s in the body", kind) end
  local fields = {}
  for i, field in ipairs(node.fields) do fields[i] = state.values[field] end
  return fields
end

-- ---------------------------------------------------------------- functions

local function flatten(value, into)
  if operation.is_tensor(value) then
    into[#into + 1] = value
  else
    for _, field in ipairs(value or {}) do flatten(field, into) end
  end
  return into
end

-- Results are buffers of their own: a parameter, or a result that stands twice, is copied.
local function own_results(list)
  local seen = {}
  for i, tensor in ipairs(list) do
    if tensor.op.kind == "PlaceholderOp" or seen[tensor.op] then
      list[i] = dims.compute(dims.of(tensor), function(index) return tensor[index] end, "T_copy",
        "elemwise")
    end
    seen[list[i].op] = true
  end
  return list
end

-- The FTVMSchedule of an operator of the highest pattern; of several the last one's.
local function schedule_of(state)
  local best, found = -1, nil
  for _, name in ipairs(state.ops) do
    local pattern = core.op_attr_get(name, "TOpPattern") or 8
    if pattern >= best then best, found = pattern, core.op_attr_get(name, "FTVMSchedule") end
  end
  return state.schedule or found
end

local function name_of(state)
  local name = "tvmgen_default_fused_" .. table.concat(state.ops, "_"):gsub("%W", "_")
  if #name <= MOST_NAME then return name end
  local hash = 0
  for i = 1, #name do hash = (hash * 31 + name:byte(i)) & 0xffffffff end
  return ("%s_%08x"):format(name:sub(1, MOST_NAME - 9), hash)
end

-- Whether a stage reads a parameter: a shape, say, is known and not read.
local function is_read(s, tensor) return s.core:find_tensor(tensor.buffer) ~= nil end

-- Adds the variables that no operand or result has as an extent to the arguments; the texts of all
-- that are passed.
local function add_sizes(state, args)
  local as_dims, seen, n = {}, {}, #args
  for i = 1, n do
    for _, dim in ipairs(args[i].shape) do
      if dim.kind == "Var" and not seen[dim] then
        seen[dim] = true
        as_dims[#as_dims + 1] = dim
      end
    end
  end
  local passed = {}
  for _, row in ipairs(state.sizes.rows) do
    if not seen[row.var] then
      args[#args + 1] = row.var
      passed[#passed + 1] = row.text
    end
  end
  return table.move(state.sizes:texts(as_dims), 1, #as_dims, #passed + 1, passed)
end

local function with_attrs(fn, added)
  local attrs = {}
  for key, value in pairs(fn.attrs or {}) do attrs[key] = value end
  for key, value in pairs(added) do attrs[key] = value end
  return fn:with { attrs = attrs }
end

-- The PrimFunc of that name, and its schedule.
local function to_loops(state, outs, name)
  local make = schedule_of(state)
  local s
  if make then
    s = make(state.attrs or {}, outs, core.current().target)
    if type(s) ~= "table" or not s.to_module then refuse("FTVMSchedule gave no schedule") end
  else
    s = generic.schedule(outs, state.decide)
  end
  local args = {}
  for _, tensor in ipairs(state.params) do
    if is_read(s, tensor) then args[#args + 1] = tensor end
  end
  for _, row in ipairs(state.constants) do args[#args + 1] = row.tensor end
  for _, row in ipairs(state.packed) do
    if not is_read(s, row.tensor) then refuse("a packed operand is not read") end
    args[#args + 1] = row.tensor
  end
  table.move(outs, 1, #outs, #args + 1, args)
  local passed = state.sizes and add_sizes(state, args)
  local fn = lower(s, { args = args, name = name }).functions[name]
  if passed then
    fn = with_attrs(fn, { symbolic_dims = passed, size_checks = state.sizes.checks })
  end
  if state.compiler ~= "default" then fn = with_attrs(fn, { c_compiler = state.compiler }) end
  return fn, s
end

-- What of each parameter is read: { whole = true }, or the fields of a tuple, from 0.
local function uses_of(state, fn, s)
  local uses = {}
  for i, param in ipairs(fn.params) do
    local value = state.memory[param]
    if operation.is_tensor(value) then
      uses[i] = { whole = is_read(s, value) }
    else
      uses[i] = { fields = {} }
      for k, field in ipairs(value) do
        if operation.is_tensor(field) and is_read(s, field) then
          table.insert(uses[i].fields, k - 1)
        end
      end
    end
  end
  return uses
end

-- The symbolic sizes of a function; nil: it has none.
local function sizes_of(fn, result)
  local types = { result }
  for _, param in ipairs(fn.params) do table.insert(types, #types, param.type) end
  for _, type_ in ipairs(types) do
    if symbolic_dim.is_symbolic(type_) then
      local sizes = new_sizes()
      sizes:declare(types)
      return sizes
    end
  end
  for node in fn:nodes() do
    if node.type and symbolic_dim.is_symbolic(node.type) then return new_sizes() end
  end
end

-- Tensor expressions of a Primitive function, and what is known of a call of it.
local function expressions_of(state, fn, call)
  for i, param in ipairs(fn.params) do
    state.numbers[param] = i
    state.memory[param], state.values[param] = placeholders(state, param.type, call.blocks[i])
    state.known[param] = call.known[i]
    state.packable[param] = call.weights[i]
  end
  local values = state.values
  for node in fn:nodes() do
    state.node = node
    if values[node] == nil then values[node] = lower_node(state, node) end
  end
  state.node = nil
  local results = flatten(values[fn.body], {})
  if call.block then results = { layout.blocked(results[1], call.block) } end
  return own_results(results)
end

-- The first type of a function that has symbolic dims.
local function symbolic_type(fn, result)
  for _, param in ipairs(fn.params) do
    if symbolic_dim.is_symbolic(param.type) then return param.type end
  end
  return result
end

local function expressions(lowered, fn, call, result)
  local sizes = sizes_of(fn, result)
  if sizes and not lowered.symbolic and not has_open_shape(result) then
    refuse("the shape of %s is not known", tostring(symbolic_type(fn, result)))
  end
  local state = { winograd = lowered.winograd, values = {}, memory = {}, known = {}, params = {},
    constants = {}, ops = {}, packable = {}, packed = {}, numbers = {}, asked = {},
    decisions = {}, sizes = sizes }
  lowered.state = state
  state.decide = decision.decider(lowered.schedules[call.key], state.decisions)
  state.compiler = state.decide(c_compiler.DECISION, c_compiler.candidates())
  return state, dims.with_sizes(state.sizes, expressions_of, state, fn, call)
end

-- ---------------------------------------------------------------------- pass

-- A number exactly: two that differ are known by different texts.
local function scalar_text(value)
  return math.type(value) == "float" and ("%a"):format(value) or tostring(value)
end

local function list_text(values)
  local texts = {}
  for i, value in ipairs(values) do texts[i] = scalar_text(value) end
  return table.concat(texts, ",")
end

-- What is known of a call: operands that are `known`, `texts` that tell calls apart by them,
-- `weights`: operands that are other constants, `blocks` of operands and `block` of the result, and
-- a text of the last three.
local function facts_of(call, blocks)
  local facts = { known = {}, texts = {}, weights = {}, blocks = {}, block = blocks[call] }
  local text = {}
  for i, arg in ipairs(call.args) do
    local data = arg.kind == "Constant" and arg.data
    if data and is_list(data) then
      facts.known[i] = data
      facts.texts[i] = list_text(data:to_table())
    elseif data and is_scalar(data) then
      facts.known[i] = data
      facts.texts[i] = scalar_text(data:to_table())
    elseif data and data.rank > 1 then
      facts.weights[i] = i
      text[#text + 1] = i
    elseif blocks[arg] then
      facts.blocks[i] = blocks[arg]
      text[#text + 1] = ("%d:%d"):format(i, blocks[arg])
    end
  end
  facts.text = ("%s>%d"):format(table.concat(text, ";"), facts.block or 1)
  return facts
end

local function unique(lowered, name)
  local result, n = name, 0
  while lowered.names[result] do
    n = n + 1
    result = ("%s_%d"):format(name, n)
  end
  lowered.names[result] = true
  return result
end

-- Whether all that was asked for is known in the same way of another call.
local function same_known(row, texts)
  for i in pairs(row.asked) do
    if row.facts.texts[i] ~= texts[i] then return false end
  end
  return true
end

-- What a Primitive function was lowered to: { fn, facts, asked, name, constants }.
local function find(lowered, fn, facts)
  local key = core.node_hash(fn, false)
  lowered.by_hash[key] = lowered.by_hash[key] or {}
  for _, row in ipairs(lowered.by_hash[key]) do
    if row.facts.text == facts.text and same_known(row, facts.texts)
      and core.node_equal(row.fn, fn, false) then
      return row
    end
  end
  return nil, lowered.by_hash[key]
end

-- Constants that the results need.
local function read_constants(state, outs)
  local seen, stack, read = {}, {}, {}
  for i, out in ipairs(outs) do stack[i] = out.op end
  while #stack > 0 do
    local op = table.remove(stack)
    if not seen[op] then
      seen[op] = true
      for _, input in ipairs(op.inputs) do stack[#stack + 1] = input.op or input end
    end
  end
  for _, row in ipairs(state.constants) do
    if seen[row.tensor.op] then read[#read + 1] = row end
  end
  return read
end

local function lower_function(lowered, call, blocks)
  lowered.state = nil
  local fn, facts = call.callee, facts_of(call, blocks)
  local row, list = find(lowered, fn, facts)
  if row then return row end
  facts.key = decision.key(fn, facts.text)
  if lowered.only and lowered.only ~= true and lowered.only ~= facts.key then return nil end
  local state, outs = expressions(lowered, fn, facts, call.type)
  local name = unique(lowered, name_of(state))
  row = { fn = fn, facts = facts, asked = state.asked, name = name, constants = {} }
  local s
  state.constants = read_constants(state, outs)
  lowered.functions[name], s = dims.with_sizes(state.sizes, to_loops, state, outs, name)
  row.constants, row.packed, row.uses = state.constants, state.packed, uses_of(state, fn, s)
  row.kernel = { name = name, key = facts.key, decisions = state.decisions, calls = 0,
    fn = lowered.functions[name] }
  if lowered.on_kernel then lowered.on_kernel(row.kernel) end
  list[#list + 1] = row
  return row
end

local function is_primitive(node)
  local attrs = node and node.kind == "Function" and node.attrs
  return attrs and attrs.Primitive == 1 and attrs.Compiler == nil
end

-- What a call gets of its weights, computed now.
local function packed_constant(node, row)
  return ir.Constant(core.eval(row.f(ir.Constant(node.data))))
end

local function operands_of(row, args)
  local list = {}
  for i, use in ipairs(row.uses) do
    if use.whole then list[#list + 1] = args[i] end
    for _, field in ipairs(use.fields or {}) do
      list[#list + 1] = ir.TupleGetItem(args[i], field)
    end
  end
  for _, constant_row in ipairs(row.constants) do list[#list + 1] = constant_row.node end
  for _, one in ipairs(row.packed) do
    list[#list + 1] = packed_constant(args[one.param], one)
  end
  return list
end

-- The type of a value in memory.
local function memory_type(type_, block)
  if not block then return type_ end
  return ir.type(("Tensor[(%s), %s]"):format(table.concat(layout.shape(type_.shape, block), ", "),
    type_.dtype))
end

local function function_type(args, result)
  local params = {}
  for i, arg in ipairs(args) do params[i] = tostring(arg.type) end
  return ir.type(("fn (%s) -> %s"):format(table.concat(params, ", "), tostring(result)))
end

-- A result that is blocked in memory, with the type that it had: its users take what is in memory,
-- and nothing is left of the transformation.
local function with_type(call, block)
  if not block then return call end
  return ir.Call("layout_transform", { call },
    { src_layout = ("NCHW%dc"):format(block), dst_layout = "NCHW" })
end

local function memory_of(args, pre, blocks)
  local list = {}
  for i, arg in ipairs(args) do list[i] = blocks[pre.args[i]] and arg.args[1] or arg end
  return list
end

-- The blocks of results, as the options and decisions have them.
local function blocks_of(lowered, fn, options)
  if options.layout ~= "NCHWc" or options.unsupported == "keep" then return {} end
  local rows = {}
  local blocks = layout.assign(fn, is_primitive,
    decision.decider(lowered.schedules[layout.KEY], rows))
  if options.on_layout then options.on_layout(rows) end
  return blocks
end

-- All calls of a function without a compute, or the one that was refused.
local function note_refusal(lowered, call, reason)
  local list = lowered.refused
  local any = false
  for node in call.callee:nodes() do
    local missing = node.kind == "Call" and missing_compute(node)
    if missing then
      refusals.add(list, missing, node)
      any = true
    end
  end
  if any then return end
  local node = lowered.state and lowered.state.node
  refusals.add(list, reason, node and node.kind == "Call" and node or call.callee.body)
end

local function lower_calls(lowered, fn, options)
  local keep = options.unsupported == "keep"
  local blocks = blocks_of(lowered, fn, options)
  return mutator.rewrite(fn, {
    name = "LowerTE",
    Call = function(pre, post)
      if not is_primitive(pre.callee) then return nil end
      local ok, row = pcall(lower_function, lowered, pre, blocks)
      if not ok and getmetatable(row) ~= Refusal then error(row, 0) end
      if not ok and keep then return nil end
      if not ok then
        note_refusal(lowered, pre, row.reason)
        return nil
      end
      if row then row.kernel.calls = row.kernel.calls + 1 end
      if lowered.only then return nil end
      local args = operands_of(row, memory_of(post.args, pre, blocks))
      local result = memory_type(pre.type, blocks[pre])
      local global = ir.GlobalVar(row.name, function_type(args, result))
      return with_type(ir.Call("call_lowered", { global, ir.Tuple(args) }), blocks[pre])
    end,
  })
end

--- Runs the pass on a module. options.unsupported: "error", or "keep" what has no compute;
-- options.layout: "plain", or "NCHWc" for blocks of channels in memory where convolutions gain;
-- options.winograd: "on" or "off", of convolutions of blocks; options.symbolic: "on", or "off":
-- types with symbolic dims are refused. options.vector_bytes: of the vectors that sums are made of,
-- 16, 32 or 64, the default. options.schedules: what is decided for functions
-- (perilune.topi.decision), in place of what the module has. options.on_kernel { name =, key =,
-- decisions =, fn = }: called for each function; at the end it has the number of its calls, too.
-- options.on_layout: called with what is decided for the results of convolutions of a function.
-- options.only: the key of the one function that is lowered, or true; the calls stay as they are.
-- options.refused: a list of refusals.lua, which gets what cannot be lowered; otherwise one message
-- tells all of it.
return function(mod, options)
  local lowered = { names = {}, by_hash = {}, functions = {}, on_kernel = options.on_kernel,
    only = options.only, refused = options.refused or refusals.new(),
    winograd = options.winograd == "on", symbolic = options.symbolic == "on",
    schedules = options.schedules or decision.parse(mod.attrs and mod.attrs.schedules or "") }
  local changed, bytes = {}, options.vector_bytes or 64
  if bytes ~= 16 and bytes ~= 32 and bytes ~= 64 then
    argument.fail(("LowerTE: vector_bytes: 16, 32 or 64 expected, got %s"):format(bytes))
  end
  for name in pairs(mod) do lowered.names[name] = true end
  for name, fn in pairs(mod) do
    if fn.kind == "Function" then
      local new = tile.with_vectors(bytes, lower_calls, lowered, fn, options)
      if new ~= fn then changed[name] = new end
    end
  end
  if not options.refused and #lowered.refused.rows > 0 then
    core.raise(core.diag("unsupported", refusals.text(lowered.refused)))
  end
  if next(changed) == nil then return mod end
  for name, fn in pairs(lowered.functions) do changed[name] = fn end
  return mod:with(changed)
end
