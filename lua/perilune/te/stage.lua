-- Stages of a schedule: how one operation is computed.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local operation = require "perilune.te.operation"
local tensor_intrin = require "perilune.te.tensor_intrin"
local tir = require "perilune.tir"

local Stage = { __name = "perilune.te.Stage" }
local methods = {}

function Stage.is_stage(value) return getmetatable(value) == Stage end

local function info(stage) return stage.schedule.core:stage(stage.number) end

local function nodes(stage, numbers)
  local list = {}
  for i, number in ipairs(numbers) do list[i] = stage.schedule:axis_node(number) end
  return list
end

-- The operation of a stage as it is now.
local stage_op_meta = { __name = operation.Operation.__name }

function stage_op_meta.__index(op, key)
  local stage = rawget(op, "stage")
  local now = info(stage)
  if key == "name" then return now.name end
  if key == "axis" then return nodes(stage, now.axis) end
  if key == "reduce_axis" then return nodes(stage, now.reduce) end
  if key == "num_outputs" then return now.n_tensors end
  if key == "output" then
    return function(_, i)
      local number = now.first_tensor + (i or 0)
      return operation.tensor(op, i or 0, stage.schedule.core:tensor(number))
    end
  end
  return nil
end

function stage_op_meta.__tostring(op) return ("operation '%s' of a schedule"):format(op.name) end

local attach_types = { "group_root", "inline", "inlined", "scope", "scan_update" }

local fields = {
  op = function(stage) return setmetatable({ stage = stage }, stage_op_meta) end,
  name = function(_, now) return now.name end,
  scope = function(_, now) return now.scope end,
  is_output = function(_, now) return now.is_output end,
  is_group = function(_, now) return now.is_group end,
  attach_type = function(_, now) return attach_types[now.attach] end,
  attach_stage = function(stage, now)
    return now.attach_stage and Stage.of(stage.schedule, now.attach_stage)
  end,
  attach_ivar = function(stage, now)
    return now.attach_axis and stage.schedule:axis_node(now.attach_axis)
  end,
  group = function(stage, now) return now.group and Stage.of(stage.schedule, now.group) end,
  layout_transforms = function(_, now) return now.layouts end,
  axis_separators = function(_, now) return now.separators end,
}
for _, row in ipairs { { "leaf_iter_vars", "leaves" }, { "all_iter_vars", "all" } } do
  fields[row[1]] = function(stage, now) return nodes(stage, now[row[2]]) end
end

function Stage.__index(stage, key)
  local field = fields[key]
  if field then return field(stage, info(stage)) end
  return methods[key]
end

function Stage.__eq(a, b)
  return Stage.is_stage(a) and Stage.is_stage(b) and rawequal(a.schedule, b.schedule)
    and a.number == b.number
end

function Stage.__tostring(stage)
  local names = {}
  for i, axis in ipairs(stage.leaf_iter_vars) do names[i] = axis.var.name end
  return ("stage(%s, [%s])"):format(stage.name, table.concat(names, ", "))
end

--- The stage of a number.
function Stage.of(schedule, number)
  local stage = schedule.made_stages[number]
  if stage == nil then
    stage = setmetatable({ schedule = schedule, number = number }, Stage)
    schedule.made_stages[number] = stage
  end
  return stage
end

-- -------------------------------------------------------------------- axes

-- Raises: the primitive, the stage, why, and the steps that were applied to the stage before.
local function refuse(stage, where, why, ...)
  argument.fail(("%s of stage '%s': %s\n%s"):format(where, stage.name, why:format(...),
    stage.schedule.core:history(stage.number)))
end

local function check_axis(stage, axis, where, what)
  if argument.kind_of(axis) ~= "Node" or axis.kind ~= "IterVar" then
    refuse(stage, where, "%s must be an axis (an IterVar), got %s", what or "an axis",
      argument.kind_of(axis))
  end
end

--- The number of an axis of the schedule.
function methods.axis_number(stage, axis, where)
  check_axis(stage, axis, where)
  local number = stage.schedule.core:find_axis(axis)
  if number == nil then
    refuse(stage, where, "axis '%s' is not part of the schedule", axis.var.name)
  end
  return number
end

-- A thread joins the schedule with its first use.
local function thread_number(stage, thread, where)
  check_axis(stage, thread, where, "a thread")
  local schedule = stage.schedule
  local number = schedule.core:find_axis(thread)
  if number ~= nil then return number end
  local tag = thread.attrs and thread.attrs.thread_tag
  if tag == nil then
    refuse(stage, where, "axis '%s' is no thread", thread.var.name)
  end
  local dom = thread.dom and thread.dom[1]
  local extent = dom and dom.extent
  if extent and extent.kind == "IntImm" then extent = extent.value end
  local made = schedule:apply("thread_axis", 0, nil, nil, extent and { extent } or nil, tag,
    { core.te_identity(thread) })
  schedule.axes[made.first_axis] = thread
  return made.first_axis
end

-- Runs what gives threads their numbers and then applies a step: when it is refused, the threads
-- that joined for it leave.
local function with_threads(stage, f)
  local schedule = stage.schedule
  local before = schedule:n_steps()
  local ok, err = pcall(f)
  if ok then return end
  if schedule:n_steps() > before then schedule:undo() end
  error(err, 0)
end

local function apply(stage, primitive, axes, values, text, tensors)
  local numbers = {}
  for i, axis in ipairs(axes or {}) do numbers[i] = stage:axis_number(axis, primitive) end
  return stage.schedule:apply(primitive, stage.number, numbers, tensors, values, text)
end

-- An integer or a PrimExpr.
local function value_of(value)
  if type(value) == "boolean" then return value and 1 or 0 end
  if math.type(value) == "integer" then return value end
  if type(value) == "userdata" and value.kind == "IterVar" then value = value.var end
  value = operand.value(value)
  return value.kind == "IntImm" and value.value or value
end

local function made_axes(stage, made)
  local list = {}
  for i = 1, made.n_axes do list[i] = stage.schedule:axis_node(made.first_axis + i - 1) end
  return table.unpack(list)
end

-- ------------------------------------------------------------------- loops

local function refuse_split(stage, parent, why, ...)
  local axis = argument.kind_of(parent) == "Node" and parent.kind == "IterVar"
    and (", axis '%s'"):format(parent.var.name) or ""
  argument.fail(("split of stage '%s'%s: %s\n%s"):format(stage.name, axis, why:format(...),
    stage.schedule.core:history(stage.number)))
end

local function factors_of(stage, parent, options)
  if type(options) ~= "table" then options = { factor = options } end
  if options.factor == nil and options.nparts == nil then
    refuse_split(stage, parent, "a factor or nparts is expected")
  end
  if options.factor ~= nil and options.nparts ~= nil then
    refuse_split(stage, parent, "either factor or nparts is given, not both")
  end
  local key = options.factor ~= nil and "factor" or "nparts"
  local value = value_of(options[key])
  if value == 0 then
    refuse_split(stage, parent, "%s must be positive, got 0",
      key == "factor" and "a factor" or "nparts")
  end
  return key == "factor" and { value, 0 } or { 0, value }
end

--- Splits an axis: the inner part has `factor` rounds, or the outer part `nparts`:
-- s[C]:split(i, 64), s[C]:split(i, { nparts = 4 }) -> outer, inner.
function methods.split(stage, parent, options)
  return made_axes(stage, apply(stage, "split", { parent }, factors_of(stage, parent, options)))
end

--- Splits two axes and orders the parts: x_outer, y_outer, x_inner, y_inner.
function methods.tile(stage, x_parent, y_parent, x_factor, y_factor)
  local x_outer, x_inner = stage:split(x_parent, x_factor)
  local y_outer, y_inner = stage:split(y_parent, y_factor)
  stage:reorder(x_outer, y_outer, x_inner, y_inner)
  return x_outer, y_outer, x_inner, y_inner
end

--- One axis of neighbouring ones; of none a loop of one round around all.
function methods.fuse(stage, ...)
  local axes = { ... }
  if #axes == 1 and type(axes[1]) == "table" then axes = axes[1] end
  local made = apply(stage, "fuse", axes)
  if made.n_axes == 0 then return axes[1] end
  return stage.schedule:axis_node(made.first_axis + made.n_axes - 1)
end

--- The axes in this order, in the places that they have among all.
function methods.reorder(stage, ...) apply(stage, "reorder", { ... }) end

--- Binds an axis to a thread (te.thread_axis).
function methods.bind(stage, ivar, thread_ivar)
  local axis = stage:axis_number(ivar, "bind")
  with_threads(stage, function()
    local thread = thread_number(stage, thread_ivar, "bind")
    stage.schedule:apply("bind", stage.number, { axis, thread })
  end)
end

-- -------------------------------------------------------------- attachment

--- Computes the stage in the loop `scope` of another one.
function methods.compute_at(stage, parent, scope)
  parent = stage.schedule:stage_of(parent)
  apply(stage, "compute_at", { scope }, { parent.number })
end

--- Computes the stage where it is used; by itself.
function methods.compute_inline(stage) apply(stage, "compute_inline") end

function methods.compute_root(stage) apply(stage, "compute_root") end

-- ------------------------------------------------------------- annotations

for _, name in ipairs { "vectorize", "unroll", "parallel" } do
  methods[name] = function(stage, axis) apply(stage, name, { axis }) end
end

--- Annotates a loop: an AttrStmt "pragma_KEY" around it.
function methods.pragma(stage, axis, pragma_type, pragma_value)
  if pragma_value == nil then pragma_value = 1 end
  apply(stage, "pragma", { axis }, { value_of(pragma_value) }, pragma_type)
end

--- Prefetches what the loop reads of a tensor `offset` rounds ahead.
function methods.prefetch(stage, tensor, axis, offset)
  local number = stage.schedule:tensor_number(tensor, "prefetch")
  apply(stage, "prefetch", { axis }, { value_of(offset == nil and 1 or offset) }, nil, { number })
end

--- Sets the storage scope, such as "shared".
function methods.set_scope(stage, scope)
  if type(scope) ~= "string" then
    refuse(stage, "set_scope", "a storage scope is expected, got %s", argument.kind_of(scope))
  end
  apply(stage, "set_scope", nil, nil, scope)
end

--- The stride of the dimension is `offset` modulo `factor`.
function methods.storage_align(stage, axis, factor, offset)
  apply(stage, "storage_align", { axis }, { value_of(factor), value_of(offset or 0) })
end

function methods.double_buffer(stage) apply(stage, "double_buffer") end

function methods.rolling_buffer(stage) apply(stage, "rolling_buffer") end

--- Threads around all loops of a scan.
function methods.env_threads(stage, threads)
  if type(threads) == "userdata" then threads = { threads } end
  argument.table(threads, "env_threads", "threads")
  with_threads(stage, function()
    local numbers = {}
    for i, thread in ipairs(threads) do
      numbers[i] = thread_number(stage, thread, "env_threads")
    end
    stage.schedule:apply("env_threads", stage.number, numbers)
  end)
end

-- The text of a map of indices, in which nothing but its variables is free.
local function map_text(map)
  local own = {}
  for _, var in ipairs(map.initial_indices) do own[var] = true end
  for _, index in ipairs(map.final_indices) do
    for _, var in ipairs(tir.undefined_vars(index)) do
      if not own[var] then
        argument.fail(("transform_layout: '%s' is no variable of the map"):format(var.name))
      end
    end
  end
  return tostring(map)
end

--- Lays the elements of the stage's tensors out in memory by a map of indices: a Lua function from
-- indices to indices, with te.AXIS_SEPARATOR between dimensions that stay apart in flat memory,
-- or a tir.IndexMap. The loops of a compute run over the new dimensions, whose axes are returned:
-- s[C]:transform_layout(function(i) return i // 4, i % 4 end) -> axis0, axis1.
function methods.transform_layout(stage, mapping)
  local now, map, separators = info(stage), mapping, {}
  if not tir.IndexMap.is_map(mapping) then
    local rank = #now.layouts > 0 and now.layout_rank or #stage.op:output(0).shape
    map, separators = tir.IndexMap.from_func_with_separators(mapping, rank)
  end
  return made_axes(stage, apply(stage, "transform_layout", nil, separators, map_text(map)))
end

--- Computes the loops from an axis inwards by an intrinsic (te.decl_tensor_intrin).
function methods.tensorize(stage, axis, intrin)
  if not tensor_intrin.is_intrin(intrin) then
    refuse(stage, "tensorize", "an intrinsic is expected (te.decl_tensor_intrin)")
  end
  apply(stage, "tensorize", { axis }, tensor_intrin.values(intrin), intrin.name)
end

--- Stores only where a condition holds.
function methods.set_store_predicate(stage, predicate)
  apply(stage, "set_store_predicate", nil, { value_of(predicate) })
end

return Stage
