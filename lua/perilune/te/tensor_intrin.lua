-- Intrinsics of tensors: an expression, and statements over Buffers that compute it.
--
--     local vadd = te.decl_tensor_intrin(z.op, function(ins, outs)
--       return tir.Evaluate(tir.call_extern("int32", "vadd", ins[1]:access_ptr("r"),
--         ins[2]:access_ptr("r"), outs[1]:access_ptr("w")))
--     end, { name = "vadd" })
--     s[C]:tensorize(inner, vadd)
--
-- A call of it in te.compute computes a tensor block by block: perilune.te.intrin_call.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operation = require "perilune.te.operation"
local tir = require "perilune.tir"
local walk = require "perilune.tir.walk"

local tensor_intrin = {}

local TensorIntrin = { __name = "perilune.te.TensorIntrin" }
TensorIntrin.__index = TensorIntrin

function tensor_intrin.is_intrin(value) return getmetatable(value) == TensorIntrin end

--- A call for te.compute: see perilune.te.intrin_call.
function TensorIntrin.__call(intrin, ...)
  return require "perilune.te.intrin_call".of(intrin, ...)
end

function TensorIntrin.__tostring(intrin)
  return ("TensorIntrin(%s, %s)"):format(intrin.name, tostring(intrin.op))
end

local function tensor_of(op, buffer)
  for _, input in ipairs(op.inputs) do
    for _, tensor in ipairs(input.outputs) do
      if core.te_identity(tensor.buffer) == core.te_identity(buffer) then return tensor end
    end
  end
  return nil
end

-- The tensors that an operation reads, in the order of its expression.
local function input_tensors(op)
  local list, known = {}, {}
  for _, body in ipairs(op.body) do
    walk.post_order(body, function(node)
      if node.kind ~= "ProducerLoad" then return end
      local tensor = tensor_of(op, node.producer)
      if tensor and not known[tensor] then
        known[tensor] = true
        list[#list + 1] = tensor
      end
    end)
  end
  return list
end

local function buffer_for(tensor, binds, params)
  local bound = binds[tensor]
  if bound == nil then
    return tir.decl_buffer(tensor.shape, tensor.dtype, tensor.op.name, params)
  end
  if type(bound) ~= "userdata" or bound.kind ~= "Buffer" then
    argument.fail(("te.decl_tensor_intrin: '%s' must be bound to a Buffer"):format(tensor.name))
  end
  if #bound.shape ~= tensor.ndim then
    argument.fail(("te.decl_tensor_intrin: '%s' has %d dimensions, its Buffer %d"):format(
      tensor.name, tensor.ndim, #bound.shape))
  end
  return bound
end

local statements = { "body", "reduce_init", "reduce_update" }

local function statement_of(value, name)
  if value == nil or value == false then return nil end
  if type(value) == "table" then value = tir.SeqStmt(value) end
  if type(value) ~= "userdata" then
    argument.fail(("te.decl_tensor_intrin: %s must be a statement or an expression"):format(name))
  end
  return value.dtype ~= nil and tir.Evaluate(value) or value
end

local function check_op(op)
  if operation.is_tensor(op) then op = op.op end
  if not operation.is_operation(op) or op.kind ~= "ComputeOp" then
    argument.fail("te.decl_tensor_intrin: only support compute intrinsic for now")
  end
  for _, input in ipairs(op.inputs) do
    if input.kind ~= "PlaceholderOp" then
      argument.fail(("te.decl_tensor_intrin: do not yet support composition op: '%s' is computed")
        :format(input.name))
    end
  end
  return op
end

local function check_params(params)
  for _, var in ipairs(argument.table(params, "te.decl_tensor_intrin", "scalar_params")) do
    if type(var) ~= "userdata" or var.kind ~= "Var" then
      argument.fail("te.decl_tensor_intrin: scalar_params: a list of Vars is expected")
    end
  end
  return table.move(params, 1, #params, 1, {})
end

--- An intrinsic that computes what an operation of placeholders does. fcompute(ins, outs) gets
-- Buffers, and returns the statement; of a reduction also those that set the result to its initial
-- value (or nil), and that add to it. Options: name, binds (from tensors to Buffers),
-- default_buffer_params, options of the other Buffers, and scalar_params, variables to which each
-- call gives values: fcompute(ins, outs, scalar_params).
function tensor_intrin.decl_tensor_intrin(op, fcompute, options)
  op = check_op(op)
  argument.callable(fcompute, "te.decl_tensor_intrin", "fcompute")
  options = argument.options(options, "te.decl_tensor_intrin",
    { "name", "binds", "default_buffer_params", "scalar_params" })
  local ins, outs, binds = {}, {}, options.binds or {}
  local inputs = input_tensors(op)
  local params = options.default_buffer_params or { offset_factor = 1 }
  for i, tensor in ipairs(inputs) do ins[i] = buffer_for(tensor, binds, params) end
  for i, tensor in ipairs(op.outputs) do outs[i] = buffer_for(tensor, binds, params) end
  local scalars = check_params(options.scalar_params or {})
  local intrin = { name = options.name or "tensor_intrin", op = op, inputs = inputs,
    scalar_params = scalars, buffers = table.move(outs, 1, #outs, #ins + 1, { table.unpack(ins) }) }
  local results = table.pack(fcompute(ins, outs, #scalars > 0 and scalars or nil))
  for i, name in ipairs(statements) do intrin[name] = statement_of(results[i], name) end
  if not intrin.body and not intrin.reduce_update then
    argument.fail("te.decl_tensor_intrin: the function returned no statement")
  end
  return setmetatable(intrin, TensorIntrin)
end

-- ------------------------------------------------------------------- steps

--- The values of a step that has the intrinsic: engine/te/schedule/annotations.c reads them. `call`
-- is what a call in te.compute gives, a list: each scalar parameter and its value, then of each
-- input the first and the last element that it reads.
function tensor_intrin.values(intrin, call)
  local parts = {}
  local function add(list, field)
    for _, item in ipairs(list) do parts[#parts + 1] = field and item[field] or item end
  end
  add(intrin.inputs, "buffer")
  add(intrin.buffers)
  add(intrin.op.axis)
  add(intrin.op.body)
  local out = { #intrin.inputs, #intrin.op.outputs, #intrin.op.axis, tir.Array(parts) }
  for i, name in ipairs(statements) do out[4 + i] = intrin[name] or 0 end
  if call then out[8], out[9] = #intrin.scalar_params, tir.Array(call) end
  return out
end

return tensor_intrin
