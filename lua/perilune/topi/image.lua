-- pl.topi.image: images resampled, by TVM's names; layout NCHW.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local dims = require "perilune.topi.dims"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local image = {}

local function float(x) return operand.cast("float32", x) end

-- The quotient of two extents. Of expressions it is a number where one is a multiple of the other.
local function quotient(from, to)
  if type(from) == "number" and type(to) == "number" then
    return operand.const(from / to, "float32")
  end
  local factor = dims.multiple(to, from)
  if factor then return operand.const(1 / factor, "float32") end
  return dims.size(from, "float32") / dims.size(to, "float32")
end

-- The same of what lies between the first element and the last.
local function inner_quotient(from, to)
  if type(from) == "number" and type(to) == "number" then
    return operand.const(to > 1 and (from - 1) / (to - 1) or 0.0, "float32")
  end
  return dims.size(from - 1, "float32") / tir.max(dims.size(to - 1, "float32"),
    operand.const(1.0, "float32"))
end

-- The position in the image of an index of the result.
local coordinates = {
  half_pixel = function(at, from, to) return (float(at) + 0.5) * quotient(from, to) - 0.5 end,
  align_corners = function(at, from, to) return float(at) * inner_quotient(from, to) end,
  asymmetric = function(at, from, to) return float(at) * quotient(from, to) end,
}

local function limited(at, extent) return tir.max(tir.min(at, extent - 1), 0) end

-- Whole numbers of positions.
local rounding = {
  floor = tir.floor, ceil = tir.ceil,
  round = function(x) return tir.floor(x + 0.5) end,
  round_prefer_floor = function(x) return tir.ceil(x - 0.5) end,
  round_prefer_ceil = function(x) return tir.floor(x + 0.5) end,
}

local function nearest(x, index, plan)
  local own = { index[1], index[2] }
  for i = 3, #index do
    local at = plan.position(index[i], plan.from[i], plan.to[i])
    own[i] = dims.equal(plan.from[i], plan.to[i]) and index[i]
      or limited(operand.cast("int32", plan.round(at)), plan.from[i])
  end
  return x[own]
end

-- The weighted neighbours along axis i, then along those behind.
local function linear(x, index, plan, i, own)
  if i > #index then return operand.cast("float32", x[own]) end
  if dims.equal(plan.from[i], plan.to[i]) then
    own[i] = index[i]
    return linear(x, index, plan, i + 1, own)
  end
  local at = plan.position(index[i], plan.from[i], plan.to[i])
  local low = tir.floor(at)
  local rest, whole = at - low, operand.cast("int32", low)
  own[i] = limited(whole, plan.from[i])
  local a = linear(x, index, plan, i + 1, table.move(own, 1, i, 1, {}))
  own[i] = limited(whole + 1, plan.from[i])
  local b = linear(x, index, plan, i + 1, table.move(own, 1, i, 1, {}))
  return a * (operand.const(1.0, "float32") - rest) + b * rest
end

-- The kernel of a cubic convolution at a distance of up to 1, and of 1 to 2.
local function cubic_weights(a, rest)
  local function near(t) return ((t * (a + 2) - (a + 3)) * t) * t + 1.0 end
  local function far(t) return ((t * a - 5 * a) * t + 8 * a) * t - 4 * a end
  return { far(rest + 1.0), near(rest), near(1.0 - rest), far(2.0 - rest) }
end

-- The weighted four neighbours along axis i, then along those behind.
local function cubic(x, index, plan, i, own)
  if i > #index then return operand.cast("float32", x[own]) end
  if dims.equal(plan.from[i], plan.to[i]) then
    own[i] = index[i]
    return cubic(x, index, plan, i + 1, own)
  end
  local at = plan.position(index[i], plan.from[i], plan.to[i])
  local low, sum = tir.floor(at), nil
  for k, weight in ipairs(cubic_weights(plan.cubic_alpha, at - low)) do
    own[i] = limited(operand.cast("int32", low) + (k - 2), plan.from[i])
    local term = cubic(x, index, plan, i + 1, table.move(own, 1, i, 1, {})) * weight
    sum = sum and sum + term or term
  end
  return sum
end

--- The image of a size (extents of all axes but the first two). method: "nearest_neighbor" or
-- "linear" or "cubic" (cubic_alpha: -0.75); coordinate_transformation_mode: "half_pixel",
-- "align_corners" or "asymmetric"; rounding_method: "round", "floor", "ceil", "round_prefer_floor",
-- "round_prefer_ceil".
function image.resize(x, size, method, coordinate_transformation_mode, rounding_method,
    cubic_alpha)
  local where = "topi.image.resize"
  local from = dims.of(dims.tensor(x, where))
  dims.list(size, #from - 2, where, "size")
  local plan = { from = from, to = table.move(size, 1, #size, 3, { from[1], from[2] }),
    position = coordinates[coordinate_transformation_mode or "half_pixel"],
    round = rounding[rounding_method or "round"],
    cubic_alpha = dims.number(cubic_alpha, -0.75, where, "cubic_alpha") + 0.0 }
  if not plan.position or not plan.round then
    argument.fail(("%s: there is no mode '%s' or rounding '%s'"):format(where,
      tostring(coordinate_transformation_mode), tostring(rounding_method)))
  end
  return dims.compute(plan.to, function(index)
    if method == "nearest_neighbor" then return nearest(x, index, plan) end
    local sample = method == "cubic" and cubic or linear
    return operand.cast(x.dtype, sample(x, index, plan, 3, { index[1], index[2] }))
  end, "T_resize", "injective")
end

--- The same for two axes of space: topi.image.resize2d(x, { h, w }, "linear", "half_pixel").
function image.resize2d(x, size, method, coordinate_transformation_mode, rounding_method,
    cubic_alpha)
  if dims.tensor(x, "topi.image.resize2d").ndim ~= 4 then
    argument.fail "topi.image.resize2d: a tensor of rank 4 is expected"
  end
  return image.resize(x, size, method, coordinate_transformation_mode, rounding_method,
    cubic_alpha)
end

return image
