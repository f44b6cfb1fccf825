-- Computes of ai.onnx.ml: features, linear models, ensembles of decision trees. Labels are
-- integers: strings are no numbers.

local core = require "perilune.core"
core.internal()

local activation = require "perilune.topi.nn.activation"
local broadcast = require "perilune.topi.broadcast"
local dense = require "perilune.topi.nn.dense"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local operand = require "perilune.tir.operand"
local reduction = require "perilune.topi.reduction"
local softmax = require "perilune.topi.nn.softmax"
local transform = require "perilune.topi.transform"
local trees = require "perilune.topi.compute.trees"

local compute = {}

local function number(x, value) return operand.const(value, x.dtype) end

local function table_of(args, list, dtype)
  return args[1].table and args[1].table(core.tensor(list, dtype))
end

-- -------------------------------------------------------------------- features

-- One number for all columns, or one for each, as what broadcasts to x; nil: there is another
-- number of them.
local function by_column(args, x, list, dtype)
  if #list == 1 then return operand.const(list[1], dtype) end
  if #list ~= dims.of(x)[x.ndim] then return nil end
  return table_of(args, list, dtype)
end

compute["ml.scaler"] = function(attrs, inputs, _, args)
  local x = elementwise.cast(inputs[1], "float32")
  local offset = by_column(args, x, attrs.offset or {}, "float32")
  local scale = by_column(args, x, attrs.scale or {}, "float32")
  if not offset or not scale then return nil, "this number of offsets or scales" end
  return broadcast.multiply(broadcast.subtract(x, offset), scale)
end

local norms = {
  MAX = function(x) return reduction.max(x, -1, true) end,
  L1 = function(x) return reduction.sum(elementwise.abs(x), -1, true) end,
  L2 = function(x)
    return elementwise.sqrt(reduction.sum(broadcast.multiply(x, x), -1, true))
  end,
}

-- A row whose norm is 0 stays as it is.
compute["ml.normalizer"] = function(attrs, inputs)
  local norm = norms[attrs.norm or "MAX"]
  if not norm or inputs[1].ndim == 0 then return nil, "this norm or rank" end
  local x = elementwise.cast(inputs[1], "float32")
  local by = norm(x)
  return broadcast.where(broadcast.equal(by, number(x, 0)), x, broadcast.divide(x, by))
end

compute["ml.imputer"] = function(attrs, inputs, _, args)
  local x, of_ints = inputs[1], inputs[1].dtype == "int64"
  if not of_ints and x.dtype ~= "float32" then return nil, "of " .. x.dtype end
  local values = by_column(args, x, of_ints and attrs.imputed_value_int64s
    or not of_ints and attrs.imputed_value_floats or {}, x.dtype)
  if not values then return nil, "this number of values" end
  local old = of_ints and (attrs.replaced_value_int64 or 0)
    or (attrs.replaced_value_float or 0) + 0.0
  local same = old == old and broadcast.equal(x, number(x, old)) or broadcast.not_equal(x, x)
  if not values.op then values = elementwise.full({}, x.dtype, values) end
  return broadcast.where(same, values, x)
end

compute["ml.binarizer"] = function(attrs, inputs)
  local x = inputs[1]
  local threshold = (attrs.threshold or 0) + 0.0
  if not operand.is_float(x.dtype) then return nil, "of integers" end
  return elementwise.cast(broadcast.greater(x, number(x, threshold)), x.dtype)
end

-- Operands as columns side by side, each cut or filled up with zeros to its number of columns.
compute["ml.feature_vectorizer"] = function(attrs, inputs, out_type)
  local widths, parts = attrs.inputdimensions or {}, {}
  for i, x in ipairs(inputs) do
    local shape = dims.of(x)
    if #shape ~= 2 or type(shape[2]) ~= "number" or shape[2] < (widths[i] or math.huge) then
      return nil, "these columns"
    end
    parts[i] = elementwise.cast(transform.strided_slice(x, { 0 }, { widths[i] }, { 1 }, { 1 }),
      out_type.dtype)
  end
  return transform.concatenate(parts, 1)
end

-- -------------------------------------------------------------------- scores

local post_transforms = {
  NONE = function(x) return x end,
  SOFTMAX = function(x) return softmax.softmax(x, -1) end,
  LOGISTIC = activation.sigmoid,
}

-- What scores become; a single one is transformed as a second class only.
local function transformed(x, post)
  if dims.of(x)[x.ndim] == 1 then return x end
  return post_transforms[post](x)
end

-- A single score as those of both classes.
local function two_classes(x, post)
  if post == "LOGISTIC" then
    return activation.sigmoid(transform.concatenate({ elementwise.negative(x), x }, 1))
  end
  return transform.concatenate({ broadcast.subtract(number(x, 1), x), x }, 1)
end

local function labels_of(args, list, classes)
  if #list == 0 then return elementwise.cast(classes, "int64") end
  local labels = table_of(args, list, "int64")
  return dims.compute(dims.of(classes), function(index)
    return labels[{ dims.position(classes[index], #list, "clip") }]
  end, "T_labels", "injective")
end

local function linear_scores(attrs, inputs, args, n)
  local x = elementwise.cast(inputs[1], "float32")
  if x.ndim ~= 2 or not args[1].table then return nil end
  local columns, coefficients = dims.of(x)[2], attrs.coefficients or {}
  if columns ~= #coefficients // n or #coefficients % n ~= 0 then return nil end
  local rows = {}
  for i = 1, columns do
    rows[i] = {}
    for k = 1, n do rows[i][k] = coefficients[(k - 1) * columns + i] end
  end
  local scores = dense.matmul(x, table_of(args, rows, "float32"))
  local intercepts = attrs.intercepts or {}
  return #intercepts == n and broadcast.add(scores, table_of(args, intercepts, "float32"))
    or #intercepts == 0 and scores or nil
end

compute["ml.linear_regressor"] = function(attrs, inputs, _, args)
  local post = attrs.post_transform or "NONE"
  if not post_transforms[post] then return nil, "post_transform " .. post end
  local scores = linear_scores(attrs, inputs, args, attrs.targets or 1)
  if not scores then return nil, "these coefficients" end
  return transformed(scores, post)
end

local function has_texts(attrs)
  return attrs.classlabels_strings and #attrs.classlabels_strings > 0
end

compute["ml.linear_classifier"] = function(attrs, inputs, out_type, args)
  local post, labels = attrs.post_transform or "NONE", attrs.classlabels_ints or {}
  if not post_transforms[post] or has_texts(attrs) then return nil, "labels or post_transform" end
  local n = attrs.intercepts and #attrs.intercepts or 0
  if n == 0 then n = #labels end
  local scores = n > 0 and linear_scores(attrs, inputs, args, n)
  if not scores then return nil, "these coefficients" end
  local classes = n > 1 and reduction.argmax(scores, 1) or transform.reshape(elementwise.cast(
    broadcast.greater(scores, number(scores, 0)), "int32"), { dims.of(scores)[1] })
  local second = n == 1 and #labels == 2
  local result = second and two_classes(scores, post) or transformed(scores, post)
  if n == 1 and not second then result = elementwise.identity(result) end
  if out_type.kind ~= "tuple" then return labels_of(args, labels, classes) end
  return { labels_of(args, labels, classes), out_type.parts[2] and result }
end

-- ---------------------------------------------------------------------- trees

local function with_base(args, scores, base)
  if not base or #base == 0 then return scores end
  return broadcast.add(scores, #base == 1 and operand.const(base[1], scores.dtype)
    or table_of(args, base, scores.dtype))
end

compute["ml.tree_ensemble_regressor"] = function(attrs, inputs, _, args)
  local how, post = attrs.aggregate_function or "SUM", attrs.post_transform or "NONE"
  local ensemble, reason = trees.read(attrs, "target", attrs.n_targets or 1)
  if not ensemble or not post_transforms[post] or how ~= "SUM" and how ~= "AVERAGE"
    or not args[1].table then
    return nil, reason or "this aggregate_function or post_transform"
  end
  local scores = trees.scores(ensemble, inputs[1], args[1].table)
  if how == "AVERAGE" then
    scores = broadcast.divide(scores, number(scores, #ensemble.roots + 0.0))
  end
  local result = transformed(with_base(args, scores, attrs.base_values), post)
  return elementwise.cast(result, "float32")
end

-- Whether all weights belong to one of two classes: the other one's score follows.
local function is_binary(ensemble)
  local first = ensemble.targets == 2 and ensemble.weights[1] and ensemble.weights[1].target
  for _, weight in ipairs(ensemble.weights) do
    if weight.target ~= first then return false end
  end
  return first
end

local function binary_results(ensemble, scores, first, post)
  local positive = true
  for _, weight in ipairs(ensemble.weights) do positive = positive and weight.value >= 0 end
  local x = elementwise.cast(transform.strided_slice(scores, { first }, { first + 1 }, { 1 },
    { 1 }), "float32")
  local classes = transform.reshape(elementwise.cast(broadcast.greater(x,
    number(x, positive and 0.5 or 0.0)), "int32"), { dims.of(x)[1] })
  if post == "LOGISTIC" then return classes, two_classes(x, post) end
  local other = positive and broadcast.subtract(number(x, 1), x) or elementwise.negative(x)
  return classes, transform.concatenate({ other, x }, 1)
end

compute["ml.tree_ensemble_classifier"] = function(attrs, inputs, out_type, args)
  local post, labels = attrs.post_transform or "NONE", attrs.classlabels_int64s or {}
  local base = attrs.base_values or {}
  if not post_transforms[post] or has_texts(attrs) then return nil, "labels or post_transform" end
  local ensemble, reason = trees.read(attrs, "class", #labels)
  if not ensemble or not args[1].table then return nil, reason end
  local scores = trees.scores(ensemble, inputs[1], args[1].table)
  local first = is_binary(ensemble)
  local classes, result
  if first then
    if first ~= 0 or #base > 0 then return nil, "weights of one class of two, with base values" end
    classes, result = binary_results(ensemble, scores, first, post)
  else
    scores = with_base(args, scores, base)
    classes = reduction.argmax(scores, 1)
    result = transformed(elementwise.cast(scores, "float32"), post)
  end
  if out_type.kind ~= "tuple" then return labels_of(args, labels, classes) end
  return { labels_of(args, labels, classes), out_type.parts[2] and result }
end

return compute
