-- Traces of schedules as JSON, both ways.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local graph = require "perilune.te.graph"
local json = require "perilune.json"
local tensor_intrin = require "perilune.te.tensor_intrin"
local tir = require "perilune.tir"

local trace = {}

-- The variables of the sizes of the tensors, in the order of the operations, and their numbers by
-- identity.
local function size_variables(schedule)
  local list, known = {}, {}
  local function add(node)
    for _, var in ipairs(tir.undefined_vars(node)) do
      local id = core.te_identity(var)
      if not known[id] then
        list[#list + 1] = var
        known[id] = #list
      end
    end
  end
  for _, op in ipairs(graph.post_order(schedule.outputs)) do
    for _, tensor in ipairs(op.outputs) do
      for _, dim in ipairs(tensor.shape) do add(dim) end
    end
  end
  return list, known
end

-- An expression is its text, in which variables have different names, and says which axes and sizes
-- of the schedule, by number, they are. Others are known by their names.
local function expr_out(schedule, expr)
  local axes, sizes, used, renamed = {}, {}, {}, {}
  local _, size_of = size_variables(schedule)
  for _, var in ipairs(tir.undefined_vars(expr)) do
    local base, n = var.name:gsub("[^%w_]", "_"), 0
    local name = base
    while used[name] do
      n = n + 1
      name = ("%s_%d"):format(base, n)
    end
    used[name] = true
    if name ~= var.name then renamed[var] = tir.Var(name, var.dtype) end
    local axis = schedule.core:find_axis(var)
    if axis then axes[#axes + 1] = { name, axis }
    else
      sizes[#sizes + 1] = size_of[core.te_identity(var)]
        and { name, size_of[core.te_identity(var)] }
    end
  end
  if next(renamed) then expr = tir.substitute(expr, renamed) end
  local fields = { { "expr", tir.script(expr, { verbose_expr = true }) } }
  if #axes > 0 then fields[#fields + 1] = { "axes", json.object(axes) } end
  if #sizes > 0 then fields[#fields + 1] = { "sizes", json.object(sizes) } end
  return json.object(fields)
end

local function value_out(schedule)
  return function(value)
    return math.type(value) == "integer" and value or expr_out(schedule, value)
  end
end

local function list_out(values, convert)
  local list = {}
  for i, value in ipairs(values) do list[i] = convert and convert(value) or value end
  return json.list(list)
end

--- The steps of a schedule: a list of objects. Stages, axes and tensors are numbers, in the order
-- in which the schedule makes them.
function trace.to_json(schedule)
  local steps = {}
  for i, step in ipairs(schedule:trace()) do
    local fields = { { "primitive", step.primitive }, { "stage", step.stage } }
    for _, name in ipairs { "axes", "tensors" } do
      if #step[name] > 0 then fields[#fields + 1] = { name, list_out(step[name]) } end
    end
    -- An intrinsic is known by its name.
    if #step.values > 0 and step.primitive ~= "tensorize" then
      fields[#fields + 1] = { "values", list_out(step.values, value_out(schedule)) }
    end
    if step.text then fields[#fields + 1] = { "text", step.text } end
    steps[i] = json.object(fields)
  end
  return json.encode(json.list(steps))
end

-- ------------------------------------------------------------------ reading

-- The variables that a schedule knows, by name; false for a name that several have.
local function known_variables(schedule)
  local known = {}
  local function add(var)
    if known[var.name] ~= nil and known[var.name] ~= var then
      known[var.name] = false
    else
      known[var.name] = var
    end
  end
  for _, stage in ipairs(schedule.stages) do
    for _, axis in ipairs(stage.all_iter_vars) do add(axis.var) end
    for _, dim in ipairs(stage.op:output(0).shape) do
      for _, var in ipairs(tir.undefined_vars(dim)) do add(var) end
    end
  end
  return known
end

-- The variable of a name that is an axis or a size by its number, or nil.
local function numbered(schedule, value, name, where)
  local axis = type(value.axes) == "table" and value.axes[name]
  local size = type(value.sizes) == "table" and value.sizes[name]
  if not axis and not size then return nil end
  local found = size and size_variables(schedule)[size]
  if axis then
    local ok, node = pcall(schedule.axis_node, schedule, axis)
    found = ok and node.var
  end
  if not found then
    argument.fail(("%s: '%s' is no %s of the schedule"):format(where, name,
      axis and "axis" or "size"))
  end
  return found
end

local function value_in(schedule, value, where)
  if math.type(value) == "integer" then return value end
  if type(value) ~= "table" or type(value.expr) ~= "string" then
    argument.fail(where .. ": a value is an integer or { \"expr\": text }")
  end
  local expr, diag = tir.parse_expr(value.expr)
  if not expr then argument.fail(("%s: %s"):format(where, diag.message)) end
  local known, values = known_variables(schedule), {}
  for _, var in ipairs(tir.undefined_vars(expr)) do
    values[var] = numbered(schedule, value, var.name, where) or known[var.name]
    if not values[var] then
      argument.fail(("%s: the schedule has %s variable '%s'"):format(where,
        known[var.name] == false and "more than one" or "no", var.name))
    end
  end
  return next(values) and tir.substitute(expr, values) or expr
end

local function intrin_values(step, intrins, where)
  for _, intrin in ipairs(intrins or {}) do
    if intrin.name == step.text then return tensor_intrin.values(intrin) end
  end
  return argument.fail(("%s: it tensorizes with '%s', which is not among the intrinsics that are"
    .. " given"):format(where, step.text))
end

local function apply_step(schedule, step, intrins, where)
  if type(step) ~= "table" or type(step.primitive) ~= "string" then
    argument.fail(where .. ": a step is an object with a primitive")
  end
  local values = step.primitive == "tensorize" and intrin_values(step, intrins, where) or {}
  for i, value in ipairs(step.values or {}) do values[i] = value_in(schedule, value, where) end
  schedule:apply(step.primitive, step.stage or 0, step.axes or {}, step.tensors or {}, values,
    step.text)
end

-- How many of the steps the schedule began with: those of intrinsics in te.compute.
local function given_steps(schedule, steps)
  local given = schedule:trace()
  for i = 1, schedule.n_given do
    local step = steps[i]
    if type(step) ~= "table" or step.primitive ~= given[i].primitive
      or step.stage ~= given[i].stage then
      argument.fail(("apply_json: step %d is not that of the intrinsic in te.compute: %s"):format(i,
        given[i].primitive))
    end
  end
  return schedule.n_given
end

--- Applies the steps of a text that to_json made, behind those that there are. When one is refused,
-- none of them stays. `intrins`: a list of the intrinsics that they tensorize with.
function trace.apply_json(schedule, text, intrins)
  argument.string(text, "apply_json", "text")
  local steps, message = json.decode(text)
  if steps == nil then argument.fail("apply_json: " .. message) end
  if type(steps) ~= "table" then argument.fail("apply_json: a list of steps expected") end
  local whole = schedule:copy()
  for i = 1 + given_steps(schedule, steps), #steps do
    apply_step(whole, steps[i], intrins, ("apply_json: step %d"):format(i))
  end
  schedule.core, schedule.axes, schedule.made_stages = whole.core, whole.axes, {}
  return schedule
end

return trace
