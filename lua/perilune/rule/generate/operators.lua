--- The operators of which terms are made, by domain: what variables are, and what calls are as
-- expressions, patterns and replacements. `algebra` names the axioms of a domain where another has
-- the same ones, `proved_as` is the domain in which they are applied where it is another one,
-- `prefix` begins the names of its rules, `relay` says that they hold for Relay's form of calls.
--
-- Texts have their operands as $1 and $2; `replacement` is that of replacements where it differs.
-- `stand_in` is what is evaluated for the fingerprint in place of functions of real numbers: a
-- polynomial, which keeps integers exact. Where `elementwise`, operands have one shape. `sorts`
-- are what operands are ("any": all but scalars), `sort` what the result is where it is not what
-- the first operand is. `sizes` is the variable of the rule that has the sizes of the parts of a
-- split; `sums`: elements are sums of several. `asks`: conditions of patterns, $0 is the call.
-- `build` of a split gets where it is, the middle if that is nil.

local ir = require "perilune.ir"
local tensor = require "perilune.ir.tensor"
require "perilune.core".internal() -- errors name the scripts of others

-- An odd and an even part, so that no sign is lost, and coefficients that no few sums have.
local function polynomial(op, x)
  return op.subtract(op.multiply(x, op.add(op.multiply(x, 5.0), 2.0)), 3.0)
end

-- Halves of one size by Relay's split.
local function section(axis, which, name)
  local attributes = ("indices_or_sections=2, axis=%d"):format(axis)
  return { name = name, arity = 1, text = ("split($1, %s).%d"):format(attributes, which),
    replacement = ("(split($1, %s, n_results=2)).%d"):format(attributes, which),
    build = function(op, x)
      if x.type.shape[axis + 1] % 2 == 1 then return nil end
      local parts = op.split(x, { indices_or_sections = 2, axis = axis, n_results = 2 })
      return (select(which + 1, parts:unpack()))
    end }
end

local function elementwise(name, sorts)
  return { name = name, text = name .. "($1, $2)", arity = 2, elementwise = true,
    commutative = true, associative = true, sorts = sorts,
    build = function(op, a, b) return op[name](a, b) end }
end

local function concat(axis, name, sort)
  return { name = name, arity = 2, sorts = { sort, sort },
    text = ("concatenate($1, $2, axis=%d)"):format(axis),
    build = function(op, a, b) return op.concatenate({ a, b }, { axis = axis }) end }
end

-- The first or second half.
local function half(axis, which, name, sizes)
  return { name = name, arity = 1, sizes = sizes,
    text = ("split($1, split=?%s, axis=%d).%d"):format(sizes, axis, which),
    replacement = ("(split($1, constant($s), axis=%d, n_results=2)).%d"):format(axis, which),
    build = function(op, x, _, at)
      local extent = x.type.shape[axis + 1]
      if not at and extent % 2 == 1 then return nil end
      local first = at or extent // 2
      local list = ("<i8i8"):pack(first, extent - first)
      local parts = op.split(x, ir.Constant(tensor.from_bytes(list, { 2 }, "int64")),
        { axis = axis, n_results = 2 })
      return (select(which + 1, parts:unpack()))
    end }
end

local function sum(axis, name)
  return { name = name, arity = 1, sums = true,
    text = ("sum($1, axis=[%d], keepdims=1)"):format(axis),
    build = function(op, x) return op.sum(x, { axis = { axis }, keepdims = true }) end }
end

local relu = { name = "relu", arity = 1, text = "nn.relu($1)",
  build = function(op, x) return op.nn.relu(x) end }
local tanh = { name = "tanh", arity = 1, text = "tanh($1)", stand_in = polynomial,
  build = function(op, x) return op.tanh(x) end }
local add, multiply = elementwise "add", elementwise "multiply"
local scale = { name = "scale", text = "multiply($1, $2)", arity = 2, sorts = { [2] = "scalar" },
  build = multiply.build }
local scalar = { name = "c", shape = {}, value = -7, sort = "scalar" }

local function variables(names, shape, sort, shift)
  local list = {}
  for name in names:gmatch "%a" do
    list[#list + 1] = { name = name, shape = shape, sort = sort, shift = shift }
  end
  return list
end

local function joined(a, b, ...)
  if not b then return a end
  return joined(table.move(b, 1, #b, #a + 1, a), ...)
end

local matrices = { name = "matrices", rank = 2,
  variables = joined(variables("xyzw", { 8, 8 }), { scalar }),
  operators = {
    { name = "transpose", text = "transpose($1, axes=[1, 0])", arity = 1,
      build = function(op, x) return op.transpose(x, { axes = { 1, 0 } }) end },
    relu, tanh, sum(0, "sum_rows"), sum(1, "sum_columns"),
    half(0, 0, "top", "r"), half(0, 1, "bottom", "r"),
    half(1, 0, "left", "s"), half(1, 1, "right", "s"),
    scale, add, multiply,
    { name = "matmul", arity = 2, sums = true,
      text = "nn.matmul($1, $2, transpose_a=0, transpose_b=0)",
      replacement = "nn.matmul($1, $2)",
      build = function(op, a, b) return op.nn.matmul(a, b) end },
    concat(0, "concat_rows"), concat(1, "concat_columns"),
  } }

-- ----------------------------------------------------------------------- images

-- Windows of 3x3 with a border of one element: the result is as large as the image.
local PLACED = "kernel_size=[3, 3], padding=[1, 1, 1, 1]"
local POOLED = "pool_size=[3, 3], padding=[1, 1, 1, 1]"

-- Strides and dilation are 1, or the result would be smaller.
local function same_extents(asks)
  for axis = 2, 3 do
    asks = ("%s$0.shape[%d] == $1.shape[%d] and $1.shape[%d] > 2%s"):format(asks, axis, axis, axis,
      axis == 2 and " and " or "")
  end
  return asks
end

local conv = { name = "conv", arity = 2, sums = true, sorts = { nil, "weights" },
  text = "nn.conv2d($1, $2, groups=1, " .. PLACED .. ", data_layout=NCHW, kernel_layout=OIHW)",
  replacement = "nn.conv2d($1, $2, " .. PLACED .. ")", asks = same_extents "",
  build = function(op, x, w)
    return op.nn.conv2d(x, w, { kernel_size = { 3, 3 }, padding = { 1, 1, 1, 1 } })
  end }

local function pool(name, attributes)
  local op_name = "nn." .. name .. "2d"
  return { name = name, arity = 1, sums = name == "avg_pool", asks = same_extents "",
    text = ("%s($1, %s, layout=NCHW, ceil_mode=0%s)"):format(op_name, POOLED, attributes),
    replacement = ("%s($1, %s)"):format(op_name, POOLED),
    build = function(op, x)
      return op.nn[name .. "2d"](x, { pool_size = { 3, 3 }, padding = { 1, 1, 1, 1 } })
    end }
end

local max_pool, avg_pool = pool("max_pool", ""), pool("avg_pool", ", count_include_pad=0")

-- Means of 3x3 are not exact, those of 2x2 are.
function avg_pool.stand_in(op, x)
  return op.nn.avg_pool2d(x, { pool_size = { 2, 2 }, padding = { 0, 0, 1, 1 },
    count_include_pad = true })
end

-- Images of a convolution and two pools, whose algebra does not depend on who writes them.
local function images_of(name, prefix, convolution, greatest, mean)
  return { name = name, prefix = prefix, rank = 4, dtype = "float32",
    algebra = "images",
    -- The greatest of a window is not always positive.
    variables = joined(variables("xyz", { 1, 4, 5, 5 }, nil, -40),
      variables("wvu", { 4, 4, 3, 3 }, "weights"), { scalar }),
    operators = {
      relu, greatest, mean, half(1, 0, "first", "s"), half(1, 1, "second", "s"),
      { name = "scale", text = "multiply($1, $2)", arity = 2, sorts = { "any", "scalar" },
        build = multiply.build },
      elementwise("add", { "any", "any" }), convolution,
      concat(1, "concat_channels"), concat(0, "concat_outputs", "weights"),
      concat(1, "concat_inputs", "weights"),
    } }
end

local images = images_of("images", "", conv, max_pool, avg_pool)

-- ----------------------------------------------------------------- convolutions

-- The same by ONNX's operators, where strides and dilations that are left out are 1.
local WINDOW = "kernel_shape=[3, 3], pads=[1, 1, 1, 1]"
local ONES = "auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1]"

local function window(attributes)
  attributes.kernel_shape, attributes.pads = { 3, 3 }, { 1, 1, 1, 1 }
  return attributes
end

local function onnx_pool(name, attributes)
  local call = "nn." .. name .. "($1, " .. WINDOW
  return { name = name, arity = 1, sums = name == "avg_pool",
    text = ("%s, %s, ceil_mode=0, %s)"):format(call, ONES, attributes),
    replacement = call .. ")",
    build = function(op, x) return op.nn[name](x, window {}) end }
end

local onnx_avg_pool = onnx_pool("avg_pool", "count_include_pad=0")
onnx_avg_pool.stand_in = avg_pool.stand_in

local convolutions = images_of("convolutions", "onnx_",
  { name = "conv", arity = 2, sums = true, sorts = { nil, "weights" },
    text = "nn.conv($1, $2, group=1, " .. WINDOW .. ", " .. ONES .. ")",
    replacement = "nn.conv($1, $2, " .. WINDOW .. ")",
    build = function(op, x, w) return op.nn.conv(x, w, window {}) end },
  onnx_pool("max_pool", "storage_order=0"), onnx_avg_pool)

-- ----------------------------------------------------------------- dense layers

-- Dense layers, whose weights have a row for each output. `top` ... `right` halve rows and columns.
local function dense_of(top, bottom, left, right)
  return { name = "dense", prefix = "relay_", rank = 2, relay = true, dtype = "float32",
    variables = joined(variables("xyz", { 8, 8 }), variables("wvu", { 8, 8 }, "weights"),
      { scalar }),
    operators = {
      relu, top, bottom, left, right,
      { name = "scale", text = "multiply($1, $2)", arity = 2, sorts = { "any", "scalar" },
        build = multiply.build },
      elementwise("add", { "any", "any" }),
      { name = "dense", arity = 2, sums = true, sorts = { nil, "weights" },
        text = "nn.dense($1, $2)",
        build = function(op, x, w) return op.nn.dense(x, w) end },
      concat(0, "concat_rows"), concat(1, "concat_columns"),
      concat(0, "concat_outputs", "weights"), concat(1, "concat_inputs", "weights"),
    } }
end

-- With Relay's split; axioms are about ONNX's, in which a rule need not say whose form it means.
local dense = dense_of(section(0, 0, "top"), section(0, 1, "bottom"), section(1, 0, "left"),
  section(1, 1, "right"))
dense.proved_as = dense_of(half(0, 0, "top", "r"), half(0, 1, "bottom", "r"),
  half(1, 0, "left", "s"), half(1, 1, "right", "s"))

-- Programs of a term for the check of its rules, whose shapes are not always those that the term
-- was found with: images and weights of few channels, and splits anywhere.
function images.shape_of(variable, below)
  if variable.sort == "scalar" then return {} end
  local function channels() return 1 + below(4) end
  if variable.sort == "weights" then return { channels(), channels(), 3, 3 } end
  return { 1, channels(), 4, 5 }
end

convolutions.shape_of = images.shape_of

-- Products of one inner extent; halves want even ones.
function dense.shape_of(variable, below)
  if variable.sort == "scalar" then return {} end
  return { 2 << below(2), 2 << below(2) }
end

return { matrices, images, convolutions, dense }
