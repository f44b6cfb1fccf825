-- pl.topi: functions, by TVM's names and order of arguments, that are operators of Relay: their
-- attribute FTVMCompute makes the tensors. Shapes and dtypes are checked as those of a call.
--
--     topi.cumsum(x, 1), topi.topk(x, 5, -1, "both"), topi.nn.depth_to_space(x, 2)

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local broadcast = require "perilune.topi.broadcast"
local compute = require "perilune.topi.compute"
local dense = require "perilune.topi.nn.dense"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local ir = require "perilune.ir"
local transform = require "perilune.topi.transform"

local topi, nn = {}, {}

-- ------------------------------------------------------------------- a call

local function variable(x, i)
  return ir.Var("x" .. i, ("Tensor[(%s), %s]"):format(table.concat(dims.of(x), ", "), x.dtype))
end

local function check_shape(x, where)
  for _, dim in ipairs(dims.of(x)) do
    if type(dim) ~= "number" then argument.fail(where .. ": symbolic extents") end
  end
end

-- The arguments of a call, and what is known of them: a tensor of pl is a constant.
local function arguments_of(inputs, where)
  local params, nodes, args, tensors = {}, {}, {}, {}
  for i, x in ipairs(inputs) do
    if argument.kind_of(x) == "Tensor" then
      nodes[i], args[i], tensors[i] = ir.Constant(x), { constant = x }, false
    else
      check_shape(dims.tensor(x, where, "tensor " .. i), where)
      nodes[i], args[i], tensors[i] = variable(x, i), {}, x
      params[#params + 1] = nodes[i]
    end
  end
  for i = #inputs + 1, 8 do args[i] = {} end
  return { params = params, nodes = nodes, args = args, tensors = tensors }
end

-- The tensors that an operator makes of others: one, or a list. options.tuple: it takes its
-- operands as one.
local function apply(where, op, inputs, attrs, options)
  local call = arguments_of(inputs, where)
  local nodes = options and options.tuple and { ir.Tuple(call.nodes) } or call.nodes
  local fn, why = core.infer_type(ir.Function(call.params, ir.Call(op, nodes, attrs)))
  if not fn then argument.fail(("%s: %s"):format(where, tostring(why))) end
  local node = fn.body
  local f = core.op_attr_get(op, "FTVMCompute") or compute[op]
  local results, reason = f(node.attrs or {}, call.tensors, node.type, call.args)
  if results == nil then
    argument.fail(("%s: no compute for %s"):format(where, reason or "this"))
  end
  if type(results) == "table" and not results.op and node.type.kind ~= "tuple" then
    return results[1]
  end
  if type(results) == "table" and not results.op and #results == 1
    and #node.type.parts > 1 then
    return results[1]
  end
  return results
end

local function float(value, default, where, what)
  return dims.number(value, default, where, what) + 0.0
end

local function flag(value) return value and value ~= 0 and 1 or 0 end

-- ------------------------------------------------------------------ running

for _, name in ipairs { "cumsum", "cumprod" } do
  topi[name] = function(data, axis, dtype, exclusive)
    return apply("topi." .. name, name, { data }, { axis = axis, dtype = dtype,
      exclusive = flag(exclusive) })
  end
end

-- ------------------------------------------------------------------ sorting

function topi.sort(data, axis, is_ascend)
  return apply("topi.sort", "sort", { data }, { axis = axis or -1,
    is_ascend = is_ascend == nil and 1 or flag(is_ascend) })
end

--- Lanes have all their elements: valid_count is not taken.
function topi.argsort(data, valid_count, axis, is_ascend, dtype)
  if valid_count ~= nil then argument.fail "topi.argsort: valid_count is not taken" end
  return apply("topi.argsort", "argsort", { data }, { axis = axis or -1,
    is_ascend = is_ascend == nil and 1 or flag(is_ascend), dtype = dtype or "float32" })
end

function topi.topk(data, k, axis, ret_type, is_ascend, dtype)
  return apply("topi.topk", "topk", { data }, { k = k or 1, axis = axis or -1,
    ret_type = ret_type or "both", is_ascend = flag(is_ascend), dtype = dtype or "int64" })
end

-- ------------------------------------------------------------------ scatter

function topi.scatter_elements(data, indices, updates, axis, reduction)
  return apply("topi.scatter_elements", "scatter_elements", { data, indices, updates },
    { axis = axis or 0, reduction = reduction or "update" })
end

--- Index vectors are along the first axis of the indices.
function topi.scatter_nd(data, indices, updates, mode)
  local axes = {}
  for i = 1, dims.tensor(indices, "topi.scatter_nd", "indices").ndim do
    axes[i] = i % indices.ndim
  end
  local reduction = mode == nil and "none" or mode == "update" and "none" or mode
  return apply("topi.scatter_nd", "scatter_nd",
    { data, transform.transpose(indices, axes), updates }, { reduction = reduction })
end

-- ---------------------------------------------------------- shapes, layouts

topi["repeat"] = transform.repeat_

function topi.shape(array, dtype)
  return apply("topi.shape", "shape_of", { array }, { dtype = dtype or "int32" })
end

--- The number of elements, as a tensor of no dimensions.
function topi.ndarray_size(array, dtype)
  local shape = dims.of(dims.tensor(array, "topi.ndarray_size"))
  dtype = dtype or "int32"
  return elementwise.full({}, dtype, dims.size(dims.product(shape), dtype))
end

function topi.matmul(a, b, transp_a, transp_b)
  return dense.matmul(a, b, transp_a, transp_b)
end

function topi.layout_transform(array, src_layout, dst_layout)
  return apply("topi.layout_transform", "layout_transform", { array },
    { src_layout = src_layout, dst_layout = dst_layout })
end

function topi.einsum(subscripts, ...)
  return apply("topi.einsum", "einsum", { ... }, { equation = subscripts })
end

function topi.fixed_point_multiply(x, multiplier, shift)
  return apply("topi.fixed_point_multiply", "fixed_point_multiply", { x },
    { multiplier = multiplier, shift = shift })
end

-- ------------------------------------------------------ sequences and grids

function topi.reverse_sequence(a, seq_lengths, seq_axis, batch_axis)
  return apply("topi.reverse_sequence", "reverse_sequence", { a, seq_lengths },
    { time_axis = seq_axis or 1, batch_axis = batch_axis or 0 })
end

function topi.sequence_mask(data, valid_length, mask_value, axis)
  return apply("topi.sequence_mask", "sequence_mask", { data, valid_length },
    { mask_value = float(mask_value, 0, "topi.sequence_mask", "mask_value"),
      axis = axis or 0 })
end

function topi.meshgrid(a_tuple, indexing)
  argument.table(a_tuple, "topi.meshgrid", "a_tuple")
  return apply("topi.meshgrid", "meshgrid", a_tuple, { indexing = indexing or "ij" },
    { tuple = true })
end

function topi.sliding_window(data, axis, window_shape, strides)
  return apply("topi.sliding_window", "sliding_window", { data }, { axis = axis,
    window_shape = window_shape, strides = strides })
end

--- The shape is known: a pl.tensor of integers.
function topi.unravel_index(indices, shape)
  return apply("topi.unravel_index", "unravel_index", { indices, shape })
end

function topi.adv_index(data, indices)
  argument.table(indices, "topi.adv_index", "indices")
  local inputs = table.move(indices, 1, #indices, 2, { data })
  return apply("topi.adv_index", "adv_index", inputs, nil, { tuple = true })
end

function topi.invert_permutation(data)
  return apply("topi.invert_permutation", "invert_permutation", { data })
end

-- ----------------------------------------------------------------- topi.nn

function nn.prelu(x, slope, axis)
  return apply("topi.nn.prelu", "nn.prelu", { x, slope }, { axis = axis or 1 })
end

function nn.bias_add(data, bias, axis)
  return apply("topi.nn.bias_add", "nn.bias_add", { data, bias }, { axis = axis or 1 })
end

-- data * scale + shift, vectors along the axis of the channels, from 1.
local function scale_shift(where, data, scale, shift, axis)
  local shape = {}
  for i = 1, dims.tensor(data, where, "data").ndim do
    shape[i] = i == axis and dims.of(data)[axis] or 1
  end
  local function along(x) return transform.reshape(dims.tensor(x, where), shape) end
  return broadcast.add(broadcast.multiply(data, along(scale)), along(shift))
end

function nn.scale_shift_nchw(data, scale, shift)
  return scale_shift("topi.nn.scale_shift_nchw", data, scale, shift, 2)
end

function nn.scale_shift_nhwc(data, scale, shift)
  return scale_shift("topi.nn.scale_shift_nhwc", data, scale, shift, 4)
end

function nn.fast_softmax(x, axis)
  return apply("topi.nn.fast_softmax", "nn.fast_softmax", { x }, { axis = axis or -1 })
end

function nn.depth_to_space(data, block_size, layout, mode)
  return apply("topi.nn.depth_to_space", "nn.depth_to_space", { data },
    { block_size = block_size, layout = layout or "NCHW", mode = mode or "DCR" })
end

function nn.space_to_depth(data, block_size, layout)
  return apply("topi.nn.space_to_depth", "nn.space_to_depth", { data },
    { block_size = block_size, layout = layout or "NCHW" })
end

-- { { before, after }, ... } of two lists.
local function paired(before, after, where)
  local pairs_of_axes = {}
  argument.table(after, where, "widths behind")
  for i, width in ipairs(argument.table(before, where, "widths before")) do
    pairs_of_axes[i] = { width, after[i] }
  end
  return pairs_of_axes
end

function nn.space_to_batch_nd(data, block_shape, pad_before, pad_after, pad_value)
  local where = "topi.nn.space_to_batch_nd"
  return apply(where, "nn.space_to_batch_nd", { data }, { block_shape = block_shape,
    paddings = paired(pad_before, pad_after, where),
    pad_value = float(pad_value, 0, where, "pad_value") })
end

function nn.batch_to_space_nd(data, block_shape, crop_begin_list, crop_end_list)
  local where = "topi.nn.batch_to_space_nd"
  return apply(where, "nn.batch_to_space_nd", { data }, { block_shape = block_shape,
    crops = paired(crop_begin_list, crop_end_list, where) })
end

for n, spatial in ipairs { "W", "HW", "DHW" } do
  local name = n == 2 and "adaptive_pool" or ("adaptive_pool%dd"):format(n)
  nn[name] = function(data, output_size, pool_type, layout)
    if pool_type ~= "max" and pool_type ~= "avg" then
      argument.fail(("topi.nn.%s: pool_type: 'max' or 'avg' expected"):format(name))
    end
    return apply("topi.nn." .. name, ("nn.adaptive_%s_pool%dd"):format(pool_type, n), { data },
      { output_size = output_size, layout = layout or "NC" .. spatial })
  end
end

function nn.upsampling(data, scale_h, scale_w, layout, method, align_corners)
  local where = "topi.nn.upsampling"
  return apply(where, "nn.upsampling", { data }, {
    scale_h = float(scale_h, nil, where, "scale_h"),
    scale_w = float(scale_w, nil, where, "scale_w"), layout = layout or "NCHW",
    method = method or "nearest_neighbor", align_corners = flag(align_corners) })
end

return { topi = topi, nn = nn }
