-- Computes of neural network operators: products, convolutions, pooling, norms, resampling.

local core = require "perilune.core"
core.internal()

local broadcast = require "perilune.topi.broadcast"
local conv = require "perilune.topi.nn.conv"
local dense = require "perilune.topi.nn.dense"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local layout = require "perilune.topi.layout"
local image = require "perilune.topi.image"
local norm = require "perilune.topi.nn.norm"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local pool = require "perilune.topi.nn.pool"
local softmax = require "perilune.topi.nn.softmax"
local tile = require "perilune.topi.tile"
local transform = require "perilune.topi.transform"
local window = require "perilune.topi.compute.window"
local winograd = require "perilune.topi.nn.winograd"

local compute = {}
local onnx_padding, none_if_empty = window.onnx_padding, window.none_if_empty
local relaid, relay_padding, one_or = window.relaid, window.relay_padding, window.one_or

local function holds(attr) return attr == true or attr == 1 end

-- ------------------------------------------------------------------ products

-- The first n elements along an axis, from 1: what lies behind them filled a block.
local function first(x, axis, n)
  local shape = dims.of(x)
  if shape[axis] == n then return x end
  shape[axis] = n
  return dims.compute(shape, function(index) return x[index] end, "T_first", "injective")
end

-- x times the operand of a call: in panels as wide as the tiles of the product if it is a constant.
local function product(x, weight, arg, transposed, dtype)
  local shape = dims.of(weight)
  if not arg.pack or #shape ~= 2 or x.ndim < 2 then
    return dense.matmul(x, weight, false, transposed, dtype)
  end
  local axes = transposed and { 1, 0 } or { 0, 1 }
  local columns = tile.panel(dims.of(x)[x.ndim - 1], shape[axes[2] + 1],
    not (tile.is_vector(x.dtype) and tile.is_vector(weight.dtype)))
  if columns % 4 == 0 then
    columns = math.tointeger(arg.decide("panel", tile.panels(columns, shape[axes[2] + 1])))
    local result = dense.matmul_panels(x, arg.pack(axes, columns), dtype)
    return first(result, result.ndim, shape[axes[2] + 1])
  end
  return dense.matmul(x, transposed and arg.pack(axes) or weight, false, false, dtype)
end

compute["nn.matmul"] = function(attrs, inputs, out_type, args)
  if not holds(attrs.transpose_a) then
    return product(inputs[1], inputs[2], args[2], holds(attrs.transpose_b), out_type.dtype)
  end
  return dense.matmul(inputs[1], inputs[2], true, holds(attrs.transpose_b), out_type.dtype)
end

compute["nn.dense"] = function(_, inputs, out_type, args)
  return product(inputs[1], inputs[2], args[2], true, out_type.dtype)
end

compute["nn.batch_matmul"] = compute["nn.matmul"]

compute["nn.gemm"] = function(attrs, inputs, out_type, args)
  local alpha, beta = attrs.alpha or 1, attrs.beta or 1
  local a = inputs[1]
  if holds(attrs.transA) then a = transform.transpose(a, { 1, 0 }) end
  local result = product(a, inputs[2], args[2], holds(attrs.transB), out_type.dtype)
  if alpha ~= 1 then result = broadcast.multiply(result, operand.const(alpha, result.dtype)) end
  local c = inputs[3]
  if not c then return result end
  if beta ~= 1 then c = broadcast.multiply(c, operand.const(beta, c.dtype)) end
  return broadcast.add(result, c)
end

-- -------------------------------------------------------------- convolutions

local function by_channel(bias, rank)
  local shape = { dims.of(bias)[1] }
  for i = 2, rank - 1 do shape[i] = 1 end
  return transform.reshape(bias, shape)
end

local function with_bias(result, bias)
  return bias and broadcast.add(result, by_channel(bias, result.ndim)) or result
end

-- A convolution over two axes by blocks of channels, if its weights are a constant and of a dtype
-- that vectors are made of; else nil.
local function packed_conv(x, weight, arg, groups, options, dtype)
  local kernel = dims.of(weight)
  local block = layout.block(kernel[1])
  local vectors = x.dtype == dtype and operand.is_float(dtype) and tile.is_vector(dtype)
  if not arg.pack or #kernel ~= 4 or kernel[1] < 8 or not vectors
    or type(dims.of(x)[2]) ~= "number" then
    return nil
  end
  local axes = { 1, 2, 3, 0 }
  local before, after = conv.split_padding(options.padding, 2, "nn.conv")
  local variants = groups == 1 and arg.winograd
    and winograd.variants(x, kernel, options, before, after) or {}
  local variant = #variants > 0 and arg.decide("winograd", variants) or "off"
  if variant ~= "off" then
    return winograd.conv2d(x, kernel, arg, options, before, after, variant)
  end
  if groups == 1 then
    return first(conv.conv2d_packed(x, arg.pack(axes, block or 8), options), 2, kernel[1])
  end
  local _, own = layout.of(x)
  if own and own == block and kernel[2] == 1 and kernel[1] == groups
    and dims.of(x)[2] == groups then
    return conv.depthwise_conv2d_packed(x, arg.pack(axes, block), options)
  end
end

compute["nn.conv"] = function(attrs, inputs, out_type, args)
  local shape, kernel = dims.of(inputs[1]), dims.of(inputs[2])
  local n, groups = #shape - 2, attrs.group or 1
  if n < 1 or n > 3 then return nil, ("of rank %d"):format(#shape) end
  local padding = onnx_padding(attrs, shape, table.move(kernel, 3, #kernel, 1, {}))
  local strides, dilation = none_if_empty(attrs.strides), none_if_empty(attrs.dilations)
  local result = packed_conv(inputs[1], inputs[2], args[2], groups, { strides = strides,
    padding = padding, dilation = dilation }, out_type.dtype)
  return with_bias(result or conv[("conv%dd"):format(n)](inputs[1], inputs[2], strides, padding,
    dilation, groups), inputs[3])
end

-- The padding of a transposed convolution whose extents are given, or whose auto_pad says that they
-- are those of the operand times the strides: begins, then ends; and elements behind them, where
-- the extents are larger. ONNX, ConvTranspose.
local function padding_of_extents(attrs, shape, kernel, out)
  local n, pads, behind = #shape - 2, {}, {}
  local strides, steps = none_if_empty(attrs.strides), none_if_empty(attrs.dilations)
  local more = none_if_empty(attrs.output_padding)
  for i = 1, n do
    if type(shape[i + 2]) ~= "number" or type(out[i + 2]) ~= "number" then return nil end
    local total = (shape[i + 2] - 1) * (strides and strides[i] or 1) + (more and more[i] or 0)
      + (kernel[i + 2] - 1) * (steps and steps[i] or 1) + 1 - out[i + 2]
    behind[i] = (more and more[i] or 0) + math.max(0, -total)
    total = math.max(0, total)
    local less = total // 2
    pads[i] = attrs.auto_pad == "SAME_UPPER" and less or total - less
    pads[n + i] = total - pads[i]
  end
  return pads, behind
end

compute["nn.conv_transpose"] = function(attrs, inputs, out_type)
  local shape, kernel = dims.of(inputs[1]), dims.of(inputs[2])
  local n = #shape - 2
  if n < 1 or n > 3 then return nil, ("of rank %d"):format(#shape) end
  local padding, behind
  if none_if_empty(attrs.output_shape) or (attrs.auto_pad or "NOTSET"):find "^SAME" then
    padding, behind = padding_of_extents(attrs, shape, kernel, out_type.shape)
    if not padding then return nil, "a given output shape" end
  else
    padding = onnx_padding(attrs, shape, table.move(kernel, 3, #kernel, 1, {}))
    behind = none_if_empty(attrs.output_padding)
  end
  return with_bias(conv[("conv%dd_transpose"):format(n)](inputs[1], inputs[2],
    none_if_empty(attrs.strides), padding, behind, attrs.group or 1,
    none_if_empty(attrs.dilations)), inputs[3])
end

-- A Relay convolution: f(data, weight, strides, padding, dilation) of channels-first operands.
local function relay_conv(n, spatial, kernel_first, f)
  local plain = "NC" .. spatial
  return function(attrs, inputs, out_type, args)
    local data_layout = attrs.data_layout or plain
    local data = relaid(inputs[1], data_layout, plain)
    local weight = relaid(inputs[2], attrs.kernel_layout or kernel_first .. spatial,
      kernel_first .. spatial)
    local padding = relay_padding(attrs.padding, n)
    if not data or not weight or not padding then return nil, "layout or padding" end
    local result = f(attrs, data, weight, one_or(attrs.strides, n), padding,
      one_or(attrs.dilation, n), out_type.dtype, weight == inputs[2] and args[2] or {})
    local out_layout = attrs.out_layout
    if out_layout == nil or out_layout == "" then out_layout = data_layout end
    return relaid(result, plain, out_layout)
  end
end

for n, spatial in ipairs { "W", "HW", "DHW" } do
  compute[("nn.conv%dd"):format(n)] = relay_conv(n, spatial, "OI",
    function(attrs, data, weight, strides, padding, dilation, dtype, arg)
      local groups = attrs.groups or 1
      local result = n == 2 and packed_conv(data, weight, arg, groups, { strides = strides,
        padding = padding, dilation = dilation }, dtype)
      if result then return result end
      if groups > 1 and dims.of(weight)[2] * groups ~= dims.of(data)[2] then
        weight = transform.reshape(weight, table.move(dims.of(weight), 3, n + 2, 3,
          { -1, dims.of(data)[2] // groups })) -- Relay's depthwise weights: (C, multiplier)
      end
      return conv[("conv%dd"):format(n)](data, weight, strides, padding, dilation, groups, dtype)
    end)
  compute[("nn.conv%dd_transpose"):format(n)] = relay_conv(n, spatial, "IO",
    function(attrs, data, weight, strides, padding, dilation, dtype)
      return conv[("conv%dd_transpose"):format(n)](data, weight, strides, padding,
        none_if_empty(attrs.output_padding), attrs.groups or 1, dilation, dtype)
    end)
end

-- ------------------------------------------------------------------- pooling

local function onnx_pool(pool_type)
  return function(attrs, inputs, out_type)
    local is_pair = out_type.kind == "tuple"
    local options = { kernel = attrs.kernel_shape, strides = none_if_empty(attrs.strides),
      dilation = none_if_empty(attrs.dilations), count_include_pad = holds(attrs.count_include_pad),
      padding = onnx_padding(attrs, dims.of(inputs[1]), attrs.kernel_shape),
      out = (is_pair and out_type.parts[1] or out_type).shape }
    if not is_pair then return pool.pool_nd(inputs[1], pool_type, options) end
    return { pool.max_pool_with_positions(inputs[1], options, attrs.storage_order == 1) }
  end
end

compute["nn.max_pool"] = onnx_pool "max"
compute["nn.avg_pool"] = onnx_pool "avg"

local function channels_first(attrs, x, spatial)
  local own = attrs.layout or "NC" .. spatial
  local out_layout = attrs.out_layout
  if out_layout == nil or out_layout == "" then out_layout = own end
  return relaid(x, own, "NC" .. spatial), out_layout
end

for n, spatial in ipairs { "W", "HW", "DHW" } do
  local plain = "NC" .. spatial
  for _, pool_type in ipairs { "max", "avg" } do
    compute[("nn.%s_pool%dd"):format(pool_type, n)] = function(attrs, inputs)
      local x, out_layout = channels_first(attrs, inputs[1], spatial)
      local padding = relay_padding(attrs.padding, n)
      if not x or not padding then return nil, "layout or padding" end
      return relaid(pool.pool_nd(x, pool_type, { kernel = one_or(attrs.pool_size, n),
        strides = one_or(attrs.strides, n), dilation = one_or(attrs.dilation, n),
        padding = padding, ceil_mode = holds(attrs.ceil_mode),
        count_include_pad = holds(attrs.count_include_pad) }), plain, out_layout)
    end
    compute[("nn.global_%s_pool%dd"):format(pool_type, n)] = function(attrs, inputs)
      local x, out_layout = channels_first(attrs, inputs[1], spatial)
      if not x then return nil, "layout" end
      return relaid(pool.global_pool(x, pool_type), plain, out_layout)
    end
  end
end

for _, pool_type in ipairs { "max", "avg" } do
  compute[("nn.global_%s_pool"):format(pool_type)] = function(_, inputs)
    return pool.global_pool(inputs[1], pool_type)
  end
end

-- The same windows everywhere: extents that are multiples of the result's.
for _, pool_type in ipairs { "max", "avg" } do
  for n, spatial in ipairs { "W", "HW", "DHW" } do
    compute[("nn.adaptive_%s_pool%dd"):format(pool_type, n)] = function(attrs, inputs, out_type)
      if (attrs.layout or "NC" .. spatial) ~= "NC" .. spatial then
        return nil, "layout " .. attrs.layout
      end
      local kernel = {}
      for i = 1, n do
        local from, to = dims.of(inputs[1])[i + 2], out_type.shape[i + 2]
        if to < 1 or from % to ~= 0 then return nil, "windows of several sizes" end
        kernel[i] = from // to
      end
      return pool.pool_nd(inputs[1], pool_type, { kernel = kernel, strides = kernel })
    end
  end
end

-- ------------------------------------------------------------ softmax, norms

-- With coerce_2d of all axes from `axis` on together, as ONNX had it before opset 13.
local function softmax_of(f)
  return function(attrs, inputs)
    local x, axis = inputs[1], attrs.axis or -1
    if attrs.coerce_2d ~= 1 then return f(x, axis) end
    local shape = dims.of(x)
    axis = axis < 0 and axis + #shape or axis
    local matrix = transform.reshape(x, { dims.product(shape, 1, axis),
      dims.product(shape, axis + 1) })
    return transform.reshape(f(matrix, -1), shape)
  end
end

compute["nn.softmax"] = softmax_of(softmax.softmax)
compute["nn.fast_softmax"] = compute["nn.softmax"]
compute["nn.log_softmax"] = softmax_of(softmax.log_softmax)

local function axes_from(axis, rank)
  local axes = {}
  for i = axis % rank, rank - 1 do axes[#axes + 1] = i end
  return axes
end

-- Relay's center and scale = 0 leave an operand out.
local function gamma_of(attrs, inputs) return attrs.scale ~= 0 and inputs[2] or nil end

local function beta_of(attrs, inputs) return attrs.center ~= 0 and inputs[3] or nil end

compute["nn.layer_norm"] = function(attrs, inputs, out_type)
  local x, axis = inputs[1], attrs.axis or -1
  local axes = attrs.one_axis == 1 and { axis % x.ndim } or axes_from(axis, x.ndim)
  local results = { norm.layer_norm_with_moments(x, gamma_of(attrs, inputs),
    beta_of(attrs, inputs), axes, attrs.epsilon) }
  if out_type.kind ~= "tuple" then return results[1] end
  for i = 2, 3 do
    local part = out_type.parts[i]
    results[i] = part and elementwise.cast(results[i], part.dtype)
  end
  return results
end

compute["nn.rms_norm"] = function(attrs, inputs)
  local x = inputs[1]
  return norm.rms_norm(x, inputs[2], axes_from(attrs.axis or -1, x.ndim), attrs.epsilon)
end

compute["nn.instance_norm"] = function(attrs, inputs)
  if (attrs.axis or 1) ~= 1 then return nil, "an axis other than 1" end
  return norm.instance_norm(inputs[1], gamma_of(attrs, inputs), beta_of(attrs, inputs),
    attrs.epsilon)
end

compute["nn.group_norm"] = function(attrs, inputs)
  if (attrs.axis or 1) ~= 1 then return nil, "an axis other than 1" end
  local gamma = gamma_of(attrs, inputs)
  if gamma and dims.of(gamma)[1] ~= dims.of(inputs[1])[2] then return nil, "scales by group" end
  return norm.group_norm(inputs[1], gamma, beta_of(attrs, inputs), attrs.num_groups,
    attrs.epsilon)
end

compute["nn.batch_norm"] = function(attrs, inputs, out_type)
  if attrs.training_mode == 1 or attrs.spatial == 0 then return nil, "training" end
  local y = norm.batch_norm(inputs[1], gamma_of(attrs, inputs), beta_of(attrs, inputs),
    inputs[4], inputs[5], attrs.axis, attrs.epsilon)
  if out_type.kind ~= "tuple" then return y end
  if #out_type.parts ~= 3 then return nil, ("%d results"):format(#out_type.parts) end
  return { y, elementwise.identity(inputs[4]), elementwise.identity(inputs[5]) }
end

compute["nn.l2_normalize"] = function(attrs, inputs)
  return norm.l2_normalize(inputs[1], attrs.eps, none_if_empty(attrs.axis))
end

compute["nn.lrn"] = function(attrs, inputs)
  return norm.lrn(inputs[1], attrs.size or 5, attrs.axis or 1, attrs.alpha or 0.0001,
    attrs.beta or 0.75, attrs.bias or 1)
end

-- ---------------------------------------------------------- padding, images

compute["nn.mirror_pad"] = function(attrs, inputs)
  local before, after = {}, {}
  for i, pair in ipairs(attrs.pad_width) do before[i], after[i] = pair[1], pair[2] end
  return pad.mirror_pad(inputs[1], before, after, attrs.mode or "SYMMETRIC")
end

local methods = { nearest = "nearest_neighbor", nearest_neighbor = "nearest_neighbor",
  linear = "linear", bilinear = "linear", cubic = "cubic" }

local function resize_of(plain, f)
  return function(attrs, inputs, out_type)
    local own, size = attrs.layout or plain, {}
    local method = methods[attrs.method or "linear"]
    if not method or window.relaid(inputs[1], own, plain) == nil
      or method == "cubic" and holds(attrs.cubic_exclude)
      or out_type.dtype ~= inputs[1].dtype and not operand.is_float(out_type.dtype) then
      return nil, "this layout, method or dtype"
    end
    for i = 3, #plain do
      size[i - 2] = out_type.shape[own:find(plain:sub(i, i), 1, true)]
    end
    return f(inputs[1], attrs.roi, size, own, method, attrs.coordinate_transformation_mode,
      attrs.rounding_method, attrs.cubic_alpha, attrs.cubic_exclude, attrs.extrapolation_value,
      out_type.dtype)
  end
end

for n, plain in ipairs { "NCW", "NCHW", "NCDHW" } do
  local name = ("resize%dd"):format(n)
  compute["image." .. name] = resize_of(plain, image[name])
end

-- ONNX: factors given as such are not the quotient of the extents; those are left out.
local function whole_factors(inputs, out_type)
  for i, dim in ipairs(dims.of(inputs[1])) do
    local factor = dims.multiple(out_type.shape[i], dim)
    if not factor or i <= 2 and factor ~= 1 then return false end
  end
  return #out_type.shape >= 3
end

compute["nn.upsampling"] = function(attrs, inputs, out_type)
  if (attrs.layout or "NCHW") ~= "NCHW" or not whole_factors(inputs, out_type) then
    return nil, "this layout or factor"
  end
  local onnx = attrs.scale_h == nil and attrs.scale_w == nil
  local method = methods[onnx and (attrs.mode or "nearest") or (attrs.method or "nearest_neighbor")]
  if not method or method == "cubic" or onnx and method == "linear" then
    return nil, "this method"
  end
  local mode = holds(attrs.align_corners) and "align_corners" or "asymmetric"
  return image.resize(inputs[1], table.move(out_type.shape, 3, #out_type.shape, 1, {}), method,
    mode, "floor")
end

-- The factors of ONNX's Resize along all axes but the first two, or nil, where they are constants;
-- of opset 10: (x, scales), later (x, roi, scales, sizes).
local function given_factors(attrs, inputs, args)
  local at = inputs[3] == nil and 2 or 3
  local scales = inputs[at] and args[at].constant
  if not scales then return nil end
  local listed, factors = scales:to_table(), {}
  local rank = inputs[1].ndim
  for i = 1, rank do factors[i] = attrs.axes and 1.0 or listed[i] end
  for i, axis in ipairs(attrs.axes or {}) do factors[axis % rank + 1] = listed[i] end
  if #factors ~= rank or factors[1] ~= 1 or factors[2] ~= 1 then return nil end
  return table.move(factors, 3, rank, 1, {})
end

-- Whether the factors are the quotients of the extents: they are whole, or extents are given.
local function has_quotients(attrs, inputs, out_type)
  local given = inputs[4] and (attrs.keep_aspect_ratio_policy or "stretch") == "stretch"
  if not given then return whole_factors(inputs, out_type) end
  local shape = dims.of(inputs[1])
  for i = 1, 2 do
    if not dims.may_equal(shape[i], out_type.shape[i]) then return false end
  end
  return #shape >= 3
end

local onnx_modes = { half_pixel = true, asymmetric = true, align_corners = true,
  half_pixel_symmetric = true, pytorch_half_pixel = true, tf_half_pixel_for_nn = true }

compute["image.resize"] = function(attrs, inputs, out_type, args)
  local method, mode = methods[attrs.mode or "nearest"],
    attrs.coordinate_transformation_mode or "half_pixel"
  if not method or holds(attrs.antialias) or not onnx_modes[mode]
    or holds(attrs.exclude_outside) and method == "linear" then
    return nil, "this mode"
  end
  local factors
  if not has_quotients(attrs, inputs, out_type) then
    factors = not inputs[4] and given_factors(attrs, inputs, args)
    if not factors then return nil, "a factor that is neither constant nor whole" end
  end
  return image.resize(inputs[1], table.move(out_type.shape, 3, #out_type.shape, 1, {}), method,
    mode, attrs.nearest_mode or "round_prefer_floor", attrs.cubic_coeff_a, factors,
    holds(attrs.exclude_outside))
end

return compute
