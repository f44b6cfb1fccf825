--- The operators of which terms are made, by domain: what variables are, and what calls are as
-- expressions, patterns and replacements.
--
-- Texts have their operands as $1 and $2; `replacement` is that of replacements where it differs.
-- `stand_in` is what is evaluated for the fingerprint in place of functions of real numbers: a
-- polynomial, which keeps integers exact. Where `elementwise`, operands have one shape. `sorts`
-- are what operands are, `sort` what the result is where it is not what the first operand is.
-- `sizes` is the variable of the rule that has the sizes of the parts of a split; `sums`: elements
-- are sums of several.

local ir = require "perilune.ir"
local tensor = require "perilune.ir.tensor"
require "perilune.core".internal() -- errors name the scripts of others

-- An odd and an even part, so that no sign is lost, and coefficients that no few sums have.
local function polynomial(op, x)
  return op.subtract(op.multiply(x, op.add(op.multiply(x, 5.0), 2.0)), 3.0)
end

local function elementwise(name)
  return { name = name, text = name .. "($1, $2)", arity = 2, elementwise = true,
    commutative = true, associative = true, build = function(op, a, b) return op[name](a, b) end }
end

local function concat(axis, name)
  return { name = name, arity = 2, text = ("concatenate($1, $2, axis=%d)"):format(axis),
    build = function(op, a, b) return op.concatenate({ a, b }, { axis = axis }) end }
end

-- The first or second half.
local function half(axis, which, name, sizes)
  return { name = name, arity = 1, sizes = sizes,
    text = ("split($1, split=?%s, axis=%d).%d"):format(sizes, axis, which),
    replacement = ("(split($1, constant($s), axis=%d, n_results=2)).%d"):format(axis, which),
    build = function(op, x)
      local extent = x.type.shape[axis + 1]
      if extent % 2 == 1 then return nil end
      local list = ("<i8i8"):pack(extent // 2, extent // 2)
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

local function variables(names, shape)
  local list = {}
  for name in names:gmatch "%a" do list[#list + 1] = { name = name, shape = shape } end
  list[#list + 1] = scalar
  return list
end

local matrices = { name = "matrices", rank = 2, variables = variables("xyzw", { 8, 8 }),
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

return { matrices }
