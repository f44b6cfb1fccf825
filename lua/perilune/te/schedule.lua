-- Schedules of tensor expressions, by TVM's names.
--
--     local s = te.create_schedule(C.op)
--     local outer, inner = s[C]:split(C.op.axis[1], 64)
--     s[C]:vectorize(inner)
--
-- A schedule is the list of its steps (its trace): print(s) shows it, s:undo() takes the last one
-- back, s:copy(n) is a schedule with the first n.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local graph = require "perilune.te.graph"
local intrin_call = require "perilune.te.intrin_call"
local operation = require "perilune.te.operation"
local Stage = require "perilune.te.stage"
local trace = require "perilune.te.trace"

local Schedule = { __name = "perilune.te.Schedule" }
local methods = {}

-- n_given: how many steps a schedule of these operations begins with.
local function wrap(made, outputs, n_given)
  return setmetatable({ core = made, outputs = outputs, axes = {}, made_stages = {},
    n_given = n_given or 0 }, Schedule)
end

local function op_of(value, where)
  if operation.is_tensor(value) then value = value.op end
  if operation.is_operation(value) then return value end
  return argument.fail(("%s: an operation or a tensor is expected, got a %s"):format(where,
    type(value)))
end

--- A schedule of an operation, or of a list of them, and of all that they read.
local function create_schedule(ops)
  if operation.is_tensor(ops) or operation.is_operation(ops) then ops = { ops } end
  argument.table(ops, "te.create_schedule", "ops")
  local outputs, cores = {}, {}
  for i, op in ipairs(ops) do
    outputs[i] = op_of(op, "te.create_schedule")
    cores[i] = outputs[i].core
    if cores[i] == nil then
      argument.fail("te.create_schedule: an operation of a schedule belongs to that schedule")
    end
  end
  local schedule = wrap(core.te_schedule(cores), outputs)
  intrin_call.tensorize(schedule, graph.post_order(outputs))
  schedule.n_given = schedule.core:n_steps()
  return schedule
end

-- ------------------------------------------------------------------ stages

-- The number of a tensor in the schedule.
function methods.tensor_number(schedule, tensor, where)
  if operation.is_operation(tensor) then tensor = tensor:output(0) end
  if not operation.is_tensor(tensor) then
    argument.fail(("%s: a tensor is expected, got a %s"):format(where, type(tensor)))
  end
  local number = schedule.core:find_tensor(tensor.buffer)
  if number == nil then
    argument.fail(("%s: tensor '%s' is not part of the schedule"):format(where, tensor.name))
  end
  return number
end

local function stage_of(schedule, key)
  if Stage.is_stage(key) then
    if rawequal(key.schedule, schedule) then return key end
    argument.fail(("stage '%s' belongs to another schedule"):format(key.name))
  end
  local number = schedule:tensor_number(key, "schedule")
  return Stage.of(schedule, schedule.core:tensor_stage(number))
end

methods.stage_of = stage_of

function Schedule.__index(schedule, key)
  if type(key) == "string" then
    if key == "stages" then return schedule:list_stages() end
    return methods[key]
  end
  return stage_of(schedule, key)
end

function methods.list_stages(schedule)
  local list = {}
  for i, number in ipairs(schedule.core:stages()) do list[i] = Stage.of(schedule, number) end
  return list
end

-- ------------------------------------------------------------------- steps

-- Applies a step: axes and tensors are numbers.
function methods.apply(schedule, primitive, stage, axes, tensors, values, text, vars)
  local first_axis, n_axes, first_tensor, n_tensors, first_stage, n_stages =
    schedule.core:apply(primitive, stage, axes, tensors, values, text, vars)
  return {
    first_axis = first_axis, n_axes = n_axes, first_tensor = first_tensor, n_tensors = n_tensors,
    first_stage = first_stage, n_stages = n_stages,
  }
end

-- The IterVar of an axis, by its number.
function methods.axis_node(schedule, number)
  local node = schedule.axes[number]
  if node == nil then
    node = schedule.core:axis(number)
    schedule.axes[number] = node
  end
  return node
end

-- The tensors that a step made.
function methods.made_tensors(schedule, made)
  local tensors = {}
  for i = 0, made.n_tensors - 1 do
    local number = made.first_tensor + i
    local stage = schedule.core:tensor_stage(number)
    local op = Stage.of(schedule, stage).op
    tensors[i + 1] = operation.tensor(op, i, schedule.core:tensor(number))
  end
  return tensors
end

local function stage_number(schedule, value)
  if Stage.is_stage(value) then return stage_of(schedule, value).number end
  return schedule.core:tensor_stage(schedule:tensor_number(value, "schedule"))
end

--- A copy of a tensor in a storage scope, which the readers (operations or tensors) read.
function methods.cache_read(schedule, tensor, scope, readers)
  if not (type(readers) == "table" and getmetatable(readers) == nil) then readers = { readers } end
  local numbers = {}
  for i, reader in ipairs(readers) do numbers[i] = stage_number(schedule, reader) end
  local number = schedule:tensor_number(tensor, "cache_read")
  local made = schedule:apply("cache_read", schedule.core:tensor_stage(number), nil, { number },
    numbers, scope)
  return schedule:made_tensors(made)[1]
end

--- Where the tensor (or a list: all outputs of an operation) is computed first, in a storage scope;
-- the tensor becomes a copy of it.
function methods.cache_write(schedule, tensor, scope)
  local single = operation.is_tensor(tensor)
  local list, numbers = single and { tensor } or argument.table(tensor, "cache_write", "tensor"), {}
  for i, one in ipairs(list) do numbers[i] = schedule:tensor_number(one, "cache_write") end
  if #numbers == 0 then argument.fail("cache_write: a tensor is expected") end
  local made = schedule:apply("cache_write", schedule.core:tensor_stage(numbers[1]), nil, numbers,
    nil, scope)
  local tensors = schedule:made_tensors(made)
  return single and tensors[1] or tensors
end

--- The reduction of a tensor by parts: one for each value of `axis`, which becomes dimension
-- `factor_axis` (0) of a new tensor (or of a list of them), which the tensor reduces.
function methods.rfactor(schedule, tensor, axis, factor_axis)
  local number = schedule:tensor_number(tensor, "rfactor")
  local stage = Stage.of(schedule, schedule.core:tensor_stage(number))
  local made = schedule:apply("rfactor", stage.number, { stage:axis_number(axis, "rfactor") }, nil,
    { factor_axis or 0 })
  local tensors = schedule:made_tensors(made)
  return #tensors == 1 and tensors[1] or tensors
end

--- A group of the stages that compute `outputs` from `inputs`, which is attached as one. Lists of
-- tensors.
function methods.create_group(schedule, outputs, inputs, include_inputs)
  local numbers, n = {}, 0
  if operation.is_tensor(outputs) then outputs = { outputs } end
  if operation.is_tensor(inputs) then inputs = { inputs } end
  for _, tensor in ipairs(outputs) do
    n = n + 1
    numbers[n] = schedule:tensor_number(tensor, "create_group")
  end
  for _, tensor in ipairs(inputs) do
    numbers[#numbers + 1] = schedule:tensor_number(tensor, "create_group")
  end
  local made = schedule:apply("create_group", 0, nil, numbers, { n, include_inputs and 1 or 0 })
  return Stage.of(schedule, made.first_stage)
end

-- ------------------------------------------------------------------- trace

function methods.n_steps(schedule) return schedule.core:n_steps() end

--- The steps: tables with primitive, stage, axes, tensors, values, text.
function methods.trace(schedule)
  local steps = {}
  for i = 1, schedule.core:n_steps() do steps[i] = schedule.core:step(i - 1) end
  return steps
end

--- Takes back the last step. Axes and tensors that it made are no longer valid.
function methods.undo(schedule)
  if schedule.n_given > 0 and schedule.core:n_steps() <= schedule.n_given then
    argument.fail "undo: the steps that are left are those of intrinsics in te.compute"
  end
  schedule.core:undo()
  schedule.axes, schedule.made_stages = {}, {}
  return schedule
end

--- A schedule with the first n steps (nil: all). Axes and tensors are valid in both.
function methods.copy(schedule, n)
  return wrap(schedule.core:copy(n), schedule.outputs, schedule.n_given)
end

--- What te.keep_schedule_record keeps in TVM: the schedule before its first step and after each
-- one, and the names of the primitives ("vanilla" for the first).
function methods.schedule_record(schedule)
  local schedules, names = { schedule:copy(0) }, { "vanilla" }
  for i, step in ipairs(schedule:trace()) do
    schedules[i + 1], names[i + 1] = schedule:copy(i), step.primitive
  end
  return schedules, names
end

methods.to_json, methods.apply_json = trace.to_json, trace.apply_json

function Schedule.__tostring(schedule) return schedule.core:text() end

--- Schedules of the same operations are equal if their steps are.
function Schedule.__eq(a, b)
  return getmetatable(a) == Schedule and getmetatable(b) == Schedule and a.core:equal(b.core)
end

-- ---------------------------------------------------------------- lowering

-- The node of argument `i`. A placeholder that no stage reads may be one.
local function node_of(schedule, i, value)
  if operation.is_operation(value) then value = value:output(0) end
  if operation.is_tensor(value) then
    local unread = schedule.core:find_tensor(value.buffer) == nil
    if unread and value.op.kind ~= "PlaceholderOp" then
      argument.fail(("lower: argument %d is a tensor of another schedule"):format(i))
    end
    return value.buffer
  end
  if type(value) == "userdata" then return value end
  return argument.fail(("to_module: an argument must be a tensor, a Buffer or a Var, got a %s")
    :format(type(value)))
end

--- The module with the PrimFunc `name` ("main") of tensors and variables, as TVM's
-- schedule_to_module. Options: noalias (true), debug_keep_trivial_loop (false).
function methods.to_module(schedule, args, name, options)
  options = argument.options(options, "to_module")
  local nodes = {}
  for i, arg in ipairs(argument.table(args, "to_module", "args")) do
    nodes[i] = node_of(schedule, i, arg)
  end
  return schedule.core:to_module(nodes, name or "main", options.debug_keep_trivial_loop == true,
    options.noalias == false)
end

--- The range of each axis when the schedule is lowered: a function from an IterVar to a Range, or
-- nil. TVM's te.schedule.InferBound.
function methods.infer_bound(schedule)
  local array, at = schedule.core:infer_bound()
  local items = array.items
  return function(axis)
    local number = schedule.core:find_axis(axis)
    local position = number and at[number + 1] or -1
    if position < 0 then return nil end
    return { min = items[2 * position + 1], extent = items[2 * position + 2] }
  end
end

return { create_schedule = create_schedule, Schedule = Schedule, methods = methods }
