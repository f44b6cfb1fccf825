-- A model as generated C: the main function of Relay code whose calls are those of PrimFuncs
-- (LowerTE) becomes a PrimFunc too, in destination-passing style:
--     main(inputs, weights, outputs)
-- `weights` are the bytes of all constants, each at a multiple of 64. What is computed in between
-- lies in one arena, which is planned by lifetimes: a value gets the smallest free part that it
-- fits.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local decision = require "perilune.topi.decision"
local ir = require "perilune.ir"
local operand = require "perilune.tir.operand"
local pass = require "perilune.pass"
local tir = require "perilune.tir"

local model = {}

--- The function of the C source that runs the model.
model.entry = "tvmgen_default___tvm_main__"

local ALIGNMENT = 64

local function aligned(bytes) return (bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT end

local function refuse(format, ...) argument.fail("build: " .. format:format(...)) end

-- ------------------------------------------------------------------ lowering

local function is_own_buffer(node)
  return node.kind ~= "Var" and node.kind ~= "Constant"
end

-- Results are buffers of their own: inputs, constants and what is returned twice are copied.
local function with_own_results(fn)
  local body, seen = fn.body, {}
  local fields = body.kind == "Tuple" and body.fields or { body }
  local changed = false
  for i, field in ipairs(fields) do
    if field.type.kind == "tensor" and (not is_own_buffer(field) or seen[field]) then
      fields[i], changed = ir.Call("copy", { field }), true
    end
    seen[field] = true
  end
  if not changed then return fn end
  local result = body.kind == "Tuple" and ir.Tuple(fields) or fields[1]
  return ir.Function(fn.params, result, { attrs = fn.attrs })
end

local function calls_loops(fn)
  for node in fn:nodes() do
    if node.kind == "Call" and node.op and node.op.name == "call_lowered" then return true end
  end
  return false
end

--- The module with calls of fused functions: what LowerTE is given for a model.
function model.fused(mod)
  local folded = pass.sequential { "qnn.CanonicalizeOps", "InferType",
    'FoldConstant{fold="all"}' } (mod)
  folded = folded:with { main = with_own_results(folded.functions.main) }
  return pass.sequential { "InferType", "FuseOps" } (folded)
end

-- The module with calls of PrimFuncs only.
local function lowered(mod, options)
  if calls_loops(mod.functions.main) then return mod end
  local fused = model.fused(mod)
  if options.schedules then fused = decision.annotate(fused, options.schedules) end
  return pass.sequential { ('LowerTE{layout="NCHWc",winograd="%s"}'):format(
    options.winograd == false and "off" or "on") } (fused)
end

-- --------------------------------------------------------------------- plan

local function bytes_of(type_)
  if type_.kind ~= "tensor" or not type_.shape then
    refuse("a value of type %s", tostring(type_))
  end
  local count = 1
  for _, dim in ipairs(type_.shape) do
    if math.type(dim) ~= "integer" then
      refuse("the shape of %s is not known: give the sizes of its dimensions", tostring(type_))
    end
    count = count * dim
  end
  return count * (math.max(8, operand.bits(type_.dtype)) // 8)
end

-- Buffers of the results of a call: one, or a list.
local function new_buffers(plan, type_, at)
  if type_.kind == "tuple" then
    local list = {}
    for i, part in ipairs(type_.parts) do list[i] = new_buffers(plan, part, at) end
    return list
  end
  local buffer = { kind = "buffer", type = type_, bytes = aligned(bytes_of(type_)), first = at,
    last = at }
  plan.buffers[#plan.buffers + 1] = buffer
  return buffer
end

local function add_weight(plan, node)
  local bytes = node.data:to_bytes()
  local weight = { kind = "weight", offset = plan.weight_bytes }
  plan.weights[#plan.weights + 1] = bytes
  plan.weights[#plan.weights + 1] = ("\0"):rep(aligned(#bytes) - #bytes)
  plan.weight_bytes = plan.weight_bytes + aligned(#bytes)
  return weight
end

local function flatten(value, into)
  if value.kind then
    into[#into + 1] = value
  else
    for _, field in ipairs(value) do flatten(field, into) end
  end
  return into
end

local function add_call(plan, node)
  local name = node.op and node.op.name or "a function"
  if name ~= "call_lowered" then
    refuse("'%s' is not lowered: run FuseOps and LowerTE first", name)
  end
  local global = node.args[1]
  local at = #plan.calls + 1
  local args = flatten(plan.values[node.args[2]], {})
  for _, arg in ipairs(args) do arg.last = at end
  local results = new_buffers(plan, node.type, at)
  plan.calls[at] = { name = global.name, args = args, results = flatten(results, {}) }
  return results
end

local function value_of(plan, node)
  local kind, values = node.kind, plan.values
  if kind == "Constant" then return add_weight(plan, node) end
  if kind == "Call" then return add_call(plan, node) end
  if kind == "TupleGetItem" then return values[node.tuple][node.index + 1] end
  if kind == "GlobalVar" then return false end
  if kind == "Var" or kind == "Function" then
    refuse "a fused function is not lowered: LowerTE has left it to the evaluator"
  end
  if kind == "If" or kind == "Match" then
    refuse("%s: what runs depends on data, and control flow is not compiled", kind)
  end
  if kind ~= "Tuple" then refuse("a %s in the main function", kind) end
  local fields = {}
  for i, field in ipairs(node.fields) do fields[i] = values[field] end
  return fields
end

local function read(fn)
  local plan = { values = {}, buffers = {}, calls = {}, weights = {}, weight_bytes = 0,
    inputs = {} }
  for i, param in ipairs(fn.params) do
    bytes_of(param.type)
    plan.inputs[i] = { kind = "input", index = i, type = param.type, name = param.name }
    plan.values[param] = plan.inputs[i]
  end
  for node in fn:nodes() do
    if plan.values[node] == nil then plan.values[node] = value_of(plan, node) end
  end
  plan.outputs = flatten(plan.values[fn.body], {})
  for i, output in ipairs(plan.outputs) do
    if output.kind ~= "buffer" or output.output then
      refuse("result %d is an input, a constant or another result: copy it before FuseOps", i)
    end
    output.output = i
  end
  return plan
end

-- ------------------------------------------------------------------- arena

-- Takes the smallest free part that is large enough; its place, or nil.
local function take(free, bytes)
  local best
  for i, part in ipairs(free) do
    if part.bytes >= bytes and (not best or part.bytes < free[best].bytes) then best = i end
  end
  if not best then return nil end
  local part = free[best]
  local place = part.offset
  part.offset, part.bytes = part.offset + bytes, part.bytes - bytes
  if part.bytes == 0 then table.remove(free, best) end
  return place
end

-- Gives a part back, and joins it with its neighbours: parts are in the order of places.
local function give(free, offset, bytes)
  local at = 1
  while free[at] and free[at].offset < offset do at = at + 1 end
  table.insert(free, at, { offset = offset, bytes = bytes })
  for i = math.min(at, #free - 1), math.max(1, at - 1), -1 do
    local a, b = free[i], free[i + 1]
    if b and a.offset + a.bytes == b.offset then
      a.bytes = a.bytes + b.bytes
      table.remove(free, i + 1)
    end
  end
end

-- A place for each buffer but the outputs; the size of the arena.
local function place_buffers(plan)
  local free, size, ends = {}, 0, {}
  local function extend(bytes)
    local last = free[#free]
    local offset = size
    if last and last.offset + last.bytes == size then
      offset = last.offset
      free[#free] = nil
    end
    size = offset + bytes
    return offset
  end
  for at, call in ipairs(plan.calls) do
    for _, buffer in ipairs(call.results) do
      if not buffer.output then
        buffer.offset = take(free, buffer.bytes) or extend(buffer.bytes)
        ends[buffer.last] = ends[buffer.last] or {}
        table.insert(ends[buffer.last], buffer)
      end
    end
    for _, buffer in ipairs(ends[at] or {}) do give(free, buffer.offset, buffer.bytes) end
  end
  return size
end

-- ----------------------------------------------------------------- function

local function offset_in(buffer, offset)
  return tir.address_of(tir.BufferLoad(buffer, { operand.const(offset, "int64") }))
end

local function flat_bytes(bytes, name, data)
  return tir.decl_buffer({ operand.const(math.max(bytes, 1), "int64") }, "uint8", name,
    data and { data = data })
end

local function buffer_name(name, prefix, i)
  local clean = type(name) == "string" and name:gsub("%W", "_") or ""
  return clean:find "^%a" and clean or prefix .. i
end

-- The statement that runs all calls.
local function body_of(plan, params)
  local stmts = {}
  local function pointer(value)
    if value.kind == "input" then return params.inputs[value.index].data end
    if value.kind == "weight" then return offset_in(params.weights, value.offset) end
    if value.output then return params.outputs[value.output].data end
    return offset_in(params.arena, value.offset)
  end
  for i, call in ipairs(plan.calls) do
    local args = { call.name }
    for _, value in ipairs(call.args) do args[#args + 1] = pointer(value) end
    for _, value in ipairs(call.results) do args[#args + 1] = pointer(value) end
    stmts[i] = tir.Evaluate(tir.call_extern("int32", table.unpack(args)))
  end
  if #stmts == 0 then stmts[1] = tir.Evaluate(0) end
  return #stmts > 1 and tir.SeqStmt(stmts) or stmts[1]
end

local function main_function(plan)
  local params, list = { inputs = {}, outputs = {} }, {}
  for i, input in ipairs(plan.inputs) do
    params.inputs[i] = tir.decl_buffer(input.type.shape, input.type.dtype,
      buffer_name(input.name, "input", i))
    list[#list + 1] = params.inputs[i]
  end
  if plan.weight_bytes > 0 then
    params.weights = flat_bytes(plan.weight_bytes, "weights")
    list[#list + 1] = params.weights
  end
  for i, output in ipairs(plan.outputs) do
    params.outputs[i] = tir.decl_buffer(output.type.shape, output.type.dtype, "output" .. i)
    list[#list + 1] = params.outputs[i]
  end
  local arena = tir.Var("arena", tir.PointerType("uint8"))
  params.arena = flat_bytes(plan.arena_bytes, "arena", arena)
  local body = body_of(plan, params)
  if plan.arena_bytes > 0 then
    body = tir.Allocate(arena, "uint8", { operand.const(plan.arena_bytes, "int64") }, true, body)
  end
  return tir.PrimFunc(list, body, nil, nil, { global_symbol = model.entry,
    ["tir.noalias"] = true })
end

-- ---------------------------------------------------------------------- API

--- Whether a module has a main function of Relay code.
function model.is_model(mod)
  local main = mod.functions.main
  return main ~= nil and main.kind == "Function"
end

--- What is built of a module: { names, functions (the last one runs the model), inputs, outputs
-- (types), weights (bytes), arena_bytes }. options.winograd: false leaves convolutions as they are;
-- options.schedules: what is decided for kernels, in place of what the module has.
function model.plan(mod, options)
  mod = lowered(mod, options or {})
  local plan = read(mod.functions.main)
  plan.arena_bytes = place_buffers(plan)
  local names, functions, seen = {}, {}, {}
  for _, call in ipairs(plan.calls) do
    local fn = mod.functions[call.name]
    if not fn or fn.kind ~= "PrimFunc" then refuse("'%s' is no PrimFunc", call.name) end
    if not seen[call.name] then
      seen[call.name] = true
      names[#names + 1], functions[#functions + 1] = call.name, fn
    end
  end
  names[#names + 1], functions[#functions + 1] = model.entry, main_function(plan)
  plan.names, plan.functions = names, functions
  plan.weights = table.concat(plan.weights)
  return plan
end

--- The tensor of all constants.
function model.weights(plan)
  return core.tensor_bytes(plan.weights, { #plan.weights }, "uint8")
end

--- Arguments of the entry for these inputs: with weights and room for the outputs.
function model.arguments(plan, inputs)
  if #inputs ~= #plan.inputs then
    argument.fail(("main: %d arguments expected, got %d"):format(#plan.inputs, #inputs))
  end
  local args = table.move(inputs, 1, #inputs, 1, {})
  if plan.weight_bytes > 0 then
    plan.weight_tensor = plan.weight_tensor or model.weights(plan)
    args[#args + 1] = plan.weight_tensor
  end
  for _, output in ipairs(plan.outputs) do
    args[#args + 1] = core.tensor_splat(operand.dtype(output.type.dtype) == "bool" and false or 0,
      output.type.shape, output.type.dtype)
  end
  return args
end

--- The outputs among what the entry's buffers are after a call.
function model.results(plan, buffers)
  return table.move(buffers, #buffers - #plan.outputs + 1, #buffers, 1, {})
end

return model
