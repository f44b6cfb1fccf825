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
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"

local topi, nn, image = {}, {}, {}

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
  dims.tensor(data, "topi.adv_index", "data")
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

-- ------------------------------------------------------------ parts of tensors

--- A copy of a with the slice from begin to last by strides replaced by v. Bounds are lists of
-- integers, or te.Tensors.
function topi.strided_set(a, v, begin, last, strides)
  local where = "topi.strided_set"
  local function bounds(list, what)
    if argument.kind_of(list) ~= "table" or list.op then return list end
    return core.tensor(dims.list(list, nil, where, what), "int64")
  end
  local ones = {}
  for i = 1, dims.tensor(a, where, "a").ndim do ones[i] = 1 end
  return apply(where, "strided_set", { a, v, bounds(begin, "begin"), bounds(last, "end"),
    bounds(strides or ones, "strides") })
end

function topi.matrix_set_diag(data, diagonal, k1, k2, super_diag_right_align,
    sub_diag_right_align)
  k1 = k1 or 0
  return apply("topi.matrix_set_diag", "matrix_set_diag", { data, diagonal }, { k1 = k1,
    k2 = k2 or k1, super_diag_right_align = flag(super_diag_right_align),
    sub_diag_right_align = flag(sub_diag_right_align) })
end

--- The default value is a number, or a te.Tensor of no dimensions.
function topi.sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value)
  local values = dims.tensor(sparse_values, "topi.sparse_to_dense", "sparse_values")
  local default = default_value or 0
  if type(default) == "number" then default = elementwise.full({}, values.dtype, default) end
  return apply("topi.sparse_to_dense", "sparse_to_dense", { sparse_indices, values, default },
    { output_shape = output_shape })
end

function topi.searchsorted(sorted_sequence, values, right, out_dtype)
  return apply("topi.searchsorted", "searchsorted", { sorted_sequence, values },
    { right = flag(right), dtype = out_dtype or "int64" })
end

--- Summed to a shape that broadcasts to that of data.
function topi.collapse_sum(data, target_shape)
  return apply("topi.collapse_sum", "collapse_sum_to", { data }, { shape = target_shape })
end

-- ------------------------------------------------------- products of tensors

-- Axes of both operands, from 1, of an integer or two lists.
local function contracted(a, b, axes, where)
  local first, second = {}, {}
  if math.type(axes) == "integer" then
    for i = 1, axes do first[i], second[i] = a.ndim - axes + i, i end
    return first, second
  end
  argument.table(axes, where, "axes")
  local left, right = axes[1], axes[2]
  if type(left) == "number" then left, right = { left }, { right } end
  argument.table(right, where, "axes of b")
  for i, axis in ipairs(argument.table(left, where, "axes of a")) do
    first[i] = dims.axis(axis, a.ndim, where) + 1
    second[i] = dims.axis(right[i], b.ndim, where) + 1
  end
  if #left ~= #right then argument.fail(where .. ": axes: two lists of one length are expected") end
  return first, second
end

-- Extents and axes that are not contracted.
local function remaining(shape, used, out)
  local is_used, rest = {}, {}
  for _, axis in ipairs(used) do is_used[axis] = true end
  for axis, dim in ipairs(shape) do
    if not is_used[axis] then
      rest[#rest + 1] = axis
      out[#out + 1] = dim
    end
  end
  return rest
end

--- The sum of products over axes: the last `axes` of a and the first ones of b, or axes of a and
-- axes of b.
function topi.tensordot(a, b, axes)
  local where = "topi.tensordot"
  local left, right = dims.of(dims.tensor(a, where, "a")), dims.of(dims.tensor(b, where, "b"))
  local first, second = contracted(a, b, axes == nil and 2 or axes, where)
  local sums, out = {}, {}
  for i, axis in ipairs(first) do
    if not left[axis] or not dims.equal(left[axis], right[second[i]]) then
      argument.fail(("%s: axis %d of a and axis %d of b differ"):format(where, axis - 1,
        second[i] - 1))
    end
    sums[i] = te.reduce_axis({ 0, left[axis] }, "k" .. i)
  end
  local of_a = remaining(left, first, out)
  local of_b = remaining(right, second, out)
  return dims.compute(out, function(index)
    local i, k = {}, {}
    for n, axis in ipairs(of_a) do i[axis] = index[n] end
    for n, axis in ipairs(of_b) do k[axis] = index[#of_a + n] end
    for n, sum in ipairs(sums) do i[first[n]], k[second[n]] = sum.var, sum.var end
    local product = a[i] * b[k]
    return #sums > 0 and te.sum(product, sums) or product
  end, "T_tensordot", "matmul")
end

--- a with new axes, where `axis` says, as long as those of shape_like.
function topi.expand_like(a, shape_like, axis)
  local where = "topi.expand_like"
  local own = dims.of(dims.tensor(a, where, "a"))
  local shape = dims.of(dims.tensor(shape_like, where, "shape_like"))
  local added, count = dims.axis_set(axis, #shape, where), 0
  for _ in pairs(added) do count = count + 1 end
  local is_one = #own == 1 and count == #shape
  if not is_one and #own + count ~= #shape then
    argument.fail(("%s: %d axes and a tensor of rank %d do not make rank %d"):format(where, count,
      #own, #shape))
  end
  return dims.compute(shape, function(index)
    local source = {}
    for i, at in ipairs(index) do
      if not added[i] then source[#source + 1] = at end
    end
    return a[is_one and { 0 } or source]
  end, "T_expand_like", "broadcast")
end

-- ------------------------------------------------------------------ numbers

--- The logarithm of the sum of the exponentials, without overflow.
function topi.log_add_exp(lhs, rhs)
  local most = broadcast.maximum(lhs, rhs)
  local least = broadcast.minimum(lhs, rhs)
  local sum = broadcast.add(most, elementwise.log(broadcast.add(
    elementwise.exp(broadcast.subtract(least, most)), operand.const(1.0, most.dtype))))
  -- Of equal infinities the difference is no number.
  return broadcast.where(broadcast.equal(most, least), broadcast.add(most,
    operand.const(math.log(2), most.dtype)), sum)
end

local function ceil_log2(x)
  if operand.is_float(x.dtype) then return tir.ceil(tir.log2(x)) end
  return operand.cast(x.dtype, tir.ceil(tir.log2(operand.cast("float64", x))))
end

--- The least integer whose power of 2 is at least x: of a number, an expression or a tensor.
function topi.ceil_log2(x)
  if type(x) == "number" then
    x = operand.const(x, math.type(x) == "float" and "float32" or "int32")
  end
  if argument.kind_of(x) == "Node" then return ceil_log2(x) end
  return dims.compute(dims.of(dims.tensor(x, "topi.ceil_log2")), function(index)
    return ceil_log2(x[index])
  end, "T_ceil_log2", "elemwise")
end

-- ------------------------------------------------- topi.nn: windows, losses

function nn.pool_grad(grads, data, kernel, stride, padding, pool_type, ceil_mode, layout,
    count_include_pad)
  local where = "topi.nn.pool_grad"
  if pool_type ~= "max" and pool_type ~= "avg" then
    argument.fail(where .. ": pool_type: 'max' or 'avg' expected")
  end
  local attrs = { pool_size = kernel, strides = stride, padding = padding,
    layout = layout or "NCHW", ceil_mode = flag(ceil_mode) }
  if pool_type == "avg" then
    attrs.count_include_pad = flag(count_include_pad == nil or count_include_pad)
  end
  return apply(where, ("nn.%s_pool2d_grad"):format(pool_type), { grads, data }, attrs)
end

function nn.upsampling3d(data, scale_d, scale_h, scale_w, layout, method,
    coordinate_transformation_mode)
  local where = "topi.nn.upsampling3d"
  return apply(where, "nn.upsampling3d", { data }, {
    scale_d = float(scale_d, nil, where, "scale_d"),
    scale_h = float(scale_h, nil, where, "scale_h"),
    scale_w = float(scale_w, nil, where, "scale_w"), layout = layout or "NCDHW",
    method = method or "nearest_neighbor",
    coordinate_transformation_mode = coordinate_transformation_mode or "half_pixel" })
end

function nn.correlation_nchw(data1, data2, kernel_size, max_displacement, stride1, stride2,
    padding, is_multiply)
  if math.type(padding) == "integer" then padding = { padding, padding } end
  return apply("topi.nn.correlation_nchw", "nn.correlation", { data1, data2 },
    { kernel_size = kernel_size, max_displacement = max_displacement, stride1 = stride1,
      stride2 = stride2, padding = padding,
      is_multiply = flag(is_multiply == nil or is_multiply) })
end

local function pair(value)
  if math.type(value) == "integer" then return { value, value } end
  return value
end

function nn.deformable_conv2d_nchw(data, offset, kernel, strides, padding, dilation,
    deformable_groups, groups)
  local shape = dims.of(dims.tensor(kernel, "topi.nn.deformable_conv2d_nchw", "kernel"))
  return apply("topi.nn.deformable_conv2d_nchw", "nn.deformable_conv2d", { data, offset, kernel },
    { strides = pair(strides), padding = pair(padding), dilation = pair(dilation),
      deformable_groups = deformable_groups or 1, groups = groups or 1, channels = shape[1],
      kernel_size = { shape[3], shape[4] } })
end

function nn.nll_loss(predictions, targets, weights, reduction, ignore_index)
  return apply("topi.nn.nll_loss", "nn.nll_loss", { predictions, targets, weights },
    { reduction = reduction or "mean", ignore_index = ignore_index })
end

-- ---------------------------------------------------------------- topi.image

function image.affine_grid(data, target_shape)
  return apply("topi.image.affine_grid", "image.affine_grid", { data },
    { target_shape = target_shape })
end

function image.grid_sample(data, grid, method, layout, padding_mode, align_corners)
  return apply("topi.image.grid_sample", "image.grid_sample", { data, grid }, { relay = 1,
    method = method or "bilinear", layout = layout or "NCHW",
    padding_mode = padding_mode or "zeros",
    align_corners = flag(align_corners == nil or align_corners) })
end

function image.crop_and_resize(data, boxes, box_indices, crop_size, layout, method,
    extrapolation_value, out_dtype)
  local where = "topi.image.crop_and_resize"
  return apply(where, "image.crop_and_resize", { data, boxes, box_indices },
    { crop_size = crop_size, layout = layout or "NCHW", method = method or "bilinear",
      extrapolation_value = float(extrapolation_value, 0, where, "extrapolation_value"),
      out_dtype = out_dtype })
end

function image.dilation2d_nchw(input, filter, stride, padding, dilations)
  return apply("topi.image.dilation2d_nchw", "image.dilation2d", { input, filter },
    { strides = pair(stride), padding = pair(padding), dilations = pair(dilations or 1) })
end

function image.dilation2d_nhwc(input, filter, stride, padding, dilations)
  return apply("topi.image.dilation2d_nhwc", "image.dilation2d", { input, filter },
    { strides = pair(stride), padding = pair(padding), dilations = pair(dilations or 1),
      data_layout = "NHWC", kernel_layout = "HWI" })
end

return { topi = topi, nn = nn, image = image }
