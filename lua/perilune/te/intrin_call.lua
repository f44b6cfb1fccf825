-- Tensors that an intrinsic computes block by block: what a call of it in te.compute stands for.
--
--     local C = te.compute({ m // 16, 16 }, function(i)
--       return vadd(A[{ i, tir.Range(0, 16) }], B[{ i, tir.Range(0, 16) }])
--     end, "C")
--
-- The function has the first dimensions, the intrinsic computes the others. C is the expression of
-- the intrinsic, of these parts of A and B, and its loops are tensorized in each schedule. What is
-- read of A and B are these parts, whatever the expression reads. Arguments that are no part of a
-- tensor are the values of the intrinsic's scalar_params. TVM's TensorComputeOp.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local arith = require "perilune.arith"
local operand = require "perilune.tir.operand"
local operation = require "perilune.te.operation"
local tensor_intrin = require "perilune.te.tensor_intrin"
local tir = require "perilune.tir"
local walk = require "perilune.tir.walk"

local intrin_call = {}

local function fail(call, format, ...)
  argument.fail(("te.compute: intrinsic '%s': " .. format):format(call.intrin.name, ...))
end

-- ------------------------------------------------------------------ regions

local function begin_of(index) return index.kind == "Range" and index.min or index end

-- The end of a range less its begin may be a number only when it is simplified.
local function extent_of(index, dtype)
  if index.kind ~= "Range" then return operand.const(1, dtype) end
  return arith.Analyzer():simplify(index.extent)
end

local function is_one(dim) return dim.kind == "IntImm" and dim.value == 1 end

local function differ(a, b)
  return a.kind == "IntImm" and b.kind == "IntImm" and a.value ~= b.value
end

-- A size of the intrinsic that is a variable has its value by the first region that has it.
local function size_of(call, dim)
  return dim.kind == "Var" and call.sizes[core.te_identity(dim)] or dim
end

local function set_size(call, dim, extent)
  if dim.kind ~= "Var" or call.sizes[core.te_identity(dim)] then return end
  call.sizes[core.te_identity(dim)], call.values[dim] = extent, extent
end

-- The input of the intrinsic is the last dimensions of the region, the others are one element.
local function check_region(call, region, input)
  local list, extra = region.indices, #region.indices - input.ndim
  if extra < 0 then
    fail(call, "'%s' has %d dimensions, '%s' %d", input.name, input.ndim, region.tensor.name, #list)
  end
  for i = 1, extra do
    if not is_one(extent_of(list[i], "int32")) then
      fail(call, "index %d of '%s' must be one element: '%s' has %d dimensions", i,
        region.tensor.name, input.name, input.ndim)
    end
  end
  for i, dim in ipairs(input.shape) do
    local extent = extent_of(list[extra + i], dim.dtype)
    set_size(call, dim, extent)
    local size = size_of(call, dim)
    if differ(size, extent) then
      fail(call, "dimension %d of '%s' is %s, the region of '%s' has %s", i, input.name,
        tostring(size), region.tensor.name, tostring(extent))
    end
  end
end

local function element(region, indices)
  local own, extra = {}, #region.indices - #indices
  for i, index in ipairs(region.indices) do
    local begin = begin_of(index)
    own[i] = i <= extra and begin or operand.folded("Add", begin, indices[i - extra])
  end
  return region.tensor[own]
end

-- The first and the last element.
local function corners(region)
  local first, last = {}, {}
  for i, index in ipairs(region.indices) do
    first[i], last[i] = begin_of(index), begin_of(index)
    if index.kind == "Range" then
      last[i] = arith.Analyzer():simplify(operand.folded("Add", index.min,
        operand.folded("Sub", index.extent, operand.const(1, index.extent.dtype))))
    end
  end
  return region.tensor[first], region.tensor[last]
end

local function regions_of(call)
  local inputs, known = call.intrin.inputs, {}
  if #call.regions ~= #inputs then
    fail(call, "%d parts of tensors are expected, got %d", #inputs, #call.regions)
  end
  for i, input in ipairs(inputs) do
    local region = call.regions[i]
    check_region(call, region, input)
    known[core.te_identity(input.buffer)] = region
    call.corners[2 * i - 1], call.corners[2 * i] = corners(region)
  end
  return known
end

-- The values of the scalar parameters.
local function set_scalars(call)
  local params = call.intrin.scalar_params
  if #call.scalars ~= #params then
    fail(call, "%d scalar parameters are expected, got %d", #params, #call.scalars)
  end
  for i, param in ipairs(params) do
    call.values[param] = operand.cast(param.dtype, call.scalars[i])
  end
end

-- -------------------------------------------------------------- expressions

-- Values of the axes of the intrinsic: variables of the last dimensions, 0 of others of extent 1.
local function set_axis_values(call, dims, vars)
  local axes = call.intrin.op.axis
  local extra = #axes - #dims
  if extra < 0 then
    fail(call, "it computes %d dimensions, the function leaves %d of the shape", #axes, #dims)
  end
  for i, axis in ipairs(axes) do
    local extent, dim = size_of(call, axis.dom[1].extent), dims[i - extra]
    if not dim and not is_one(extent) then
      fail(call, "it computes %d dimensions, the function leaves %d of the shape", #axes, #dims)
    elseif dim and differ(dim, extent) then
      fail(call, "dimension %d of the shape is %d, it computes %d", i - extra, dim.value,
        extent.value)
    end
    call.values[axis.var] = dim and vars[i - extra] or operand.const(0, axis.var.dtype)
  end
end

-- The axes of the intrinsic's reduction, each with a variable of its own.
local function fresh_axes(body, values)
  local axes = {}
  for i, axis in ipairs(body.axis) do
    local dom = axis.dom[1]
    axes[i] = tir.IterVar(tir.range_from(tir.substitute(dom.min, values),
      tir.substitute(dom.extent, values)), axis.var.name, "CommReduce")
    values[axis.var] = axes[i].var
  end
  return axes
end

-- An expression of the intrinsic as one of the parts of tensors.
local function rewriter(regions, values)
  return function(expr)
    local moved = tir.transform(expr, nil, function(node)
      local region = node.producer and regions[core.te_identity(node.producer)]
      return region and element(region, node.indices) or nil
    end, { "ProducerLoad" })
    return tir.substitute(moved, values)
  end
end

local function mapped(list, f)
  local out = {}
  for i, item in ipairs(list) do out[i] = f(item) end
  return out
end

--- The values that a call computes of outer axes, for the variables of the dimensions that the
-- intrinsic computes; and the axes of its own reduction.
function intrin_call.bodies(call, dims, vars)
  local bodies, inner = call.intrin.op.body, {}
  call.sizes, call.values, call.corners = {}, {}, {}
  local regions, values = regions_of(call), call.values
  set_axis_values(call, dims, vars)
  set_scalars(call)
  local is_reduction = bodies[1].kind == "Reduce"
  if is_reduction then inner = fresh_axes(bodies[1], values) end
  if #call.reduce_axis > 0 and not is_reduction then
    fail(call, "it does not reduce, so that it has no reduce_axis")
  end
  local convert = rewriter(regions, values)
  local axes = table.move(inner, 1, #inner, #call.reduce_axis + 1,
    table.move(call.reduce_axis, 1, #call.reduce_axis, 1, {}))
  local out = mapped(bodies, function(body)
    if not is_reduction then return convert(body) end
    return tir.Reduce(body.combiner, mapped(body.source, convert), axes, convert(body.condition),
      body.value_index, mapped(body.init, convert))
  end)
  return out, inner
end

-- ---------------------------------------------------------------- schedules

-- What the call gives, for the step: scalar parameters with their values, and the regions.
local function given(call)
  local list = {}
  for i, param in ipairs(call.intrin.scalar_params) do
    list[2 * i - 1], list[2 * i] = param, call.values[param]
  end
  return table.move(call.corners, 1, #call.corners, #list + 1, list)
end

-- The loop where the intrinsic begins. One that computes an element has a loop of one round.
local function first_loop(call, stage, order)
  local first = call.tensor_axis[1] or call.inner[1]
  if first then return first end
  order[#order + 1] = stage:fuse()
  return order[#order]
end

--- Tensorizes the stages of such operations: the loops of the intrinsic go inside.
function intrin_call.tensorize(schedule, ops)
  for _, op in ipairs(ops) do
    local call = op.intrin_call
    if call then
      local order, stage = {}, schedule[op]
      for _, list in ipairs { op.axis, op.reduce_axis, call.tensor_axis, call.inner } do
        table.move(list, 1, #list, #order + 1, order)
      end
      local n = #order
      local first = first_loop(call, stage, order)
      if #op.reduce_axis > 0 or #order > n then stage:reorder(table.unpack(order)) end
      schedule:apply("tensorize", stage.number, { stage:axis_number(first, "tensorize") }, nil,
        tensor_intrin.values(call.intrin, given(call)), call.intrin.name)
    end
  end
end

-- -------------------------------------------------------------------- calls

local function axes_of(intrin, options)
  local axes = options.reduce_axis or {}
  if type(axes) == "userdata" then axes = { axes } end
  for _, axis in ipairs(argument.table(axes, intrin.name, "reduce_axis")) do
    if type(axis) ~= "userdata" or axis.kind ~= "IterVar" then
      argument.fail(intrin.name .. ": reduce_axis: an IterVar is expected (te.reduce_axis)")
    end
  end
  return axes
end

-- A part of a tensor; an element that is read is one too.
local function region_of(value)
  if getmetatable(value) == operation.TensorRegion then return value end
  if type(value) ~= "userdata" or value.kind ~= "ProducerLoad" then return nil end
  local tensor = operation.tensor_of_buffer(value.producer)
  return tensor and setmetatable({ tensor = tensor, indices = value.indices },
    operation.TensorRegion)
end

local function reads_tensor(expr)
  local found = false
  walk.post_order(expr, function(node) found = found or node.kind == "ProducerLoad" end)
  return found
end

local function scalar_of(intrin, i, value)
  if operation.is_tensor(value) then
    argument.fail(("%s: argument %d must be a part of a tensor: A[{ i, tir.Range(0, 16) }]")
      :format(intrin.name, i))
  end
  if type(value) == "userdata" and value.kind == "IterVar" then value = value.var end
  local scalar = operand.value(value)
  if scalar.dtype == nil then argument.expected("a part of a tensor or a PrimExpr", value) end
  if reads_tensor(scalar) then
    argument.fail(("%s: argument %d: a scalar parameter cannot read a tensor"):format(intrin.name,
      i))
  end
  return scalar
end

--- vadd(A[{ i, tir.Range(0, 16) }], ..., { reduce_axis = k }): for the result of the function of
-- te.compute. Values of scalar parameters stand in their order among the parts of tensors.
function intrin_call.of(intrin, ...)
  local args, regions, scalars, options = table.pack(...), {}, {}, {}
  local last = args[args.n]
  if type(last) == "table" and getmetatable(last) == nil then
    options = argument.options(last, intrin.name, { "reduce_axis" })
    args.n = args.n - 1
  end
  for i = 1, args.n do
    local region = region_of(args[i])
    if region then regions[#regions + 1] = region
    else scalars[#scalars + 1] = scalar_of(intrin, i, args[i]) end
  end
  return setmetatable({ intrin = intrin, regions = regions, scalars = scalars,
    reduce_axis = axes_of(intrin, options) }, operation.TensorIntrinCall)
end

return intrin_call
