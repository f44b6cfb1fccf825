-- Norms, losses, assignments and sums to a smaller shape give the same by loops as by the
-- evaluator's kernels.

local pl = require "perilune"
local programs = dofile "spec/topi/programs.lua"

local float, typed = programs.float, programs.typed
local cases, case = programs.cases()

-- -------------------------------------------------------------------- norms

case("nn.hardmax", { float(3, 7) })
case("nn.hardmax", { float(3, 4, 5) }, { axis = 1 })
case("nn.hardmax", { float(3, 4, 5) }, { axis = 1, coerce_2d = 1 })
case("nn.hardmax", { typed("float64", 1, 9) })
case("nn.swiglu", { float(3, 8), float(3, 8) }, { alpha = 1.5 })
case("nn.swiglu", { float(5), float(5) })
for _, p in ipairs { 1, 2 } do
  case("nn.lp_normalization", { float(3, 5) }, { p = p })
  case("nn.lp_normalization", { float(3, 4, 2) }, { axis = 0, p = p })
  case("nn.global_lp_pool", { float(2, 3, 4, 5) }, { p = p })
  case("nn.lp_pool", { float(1, 2, 7, 6) }, { kernel_shape = { 3, 2 }, p = p, strides = { 2, 1 },
    pads = { 1, 0, 0, 1 } })
end
case("nn.global_lp_pool", { float(2, 3, 7) }, { p = 3 })
case("nn.lp_pool", { float(1, 2, 9) }, { kernel_shape = { 3 }, p = 3, dilations = { 2 } })
case("nn.lp_pool", { float(1, 2, 8, 7) }, { kernel_shape = { 3, 3 }, auto_pad = "SAME_UPPER",
  strides = { 2, 2 } })
case("nn.lp_pool", { float(1, 2, 8, 7) }, { kernel_shape = { 3, 3 }, ceil_mode = 1,
  strides = { 2, 2 } })
case("nn.mean_variance_normalization", { float(2, 3, 4, 5) })
case("nn.mean_variance_normalization", { float(2, 3, 4) }, { axes = { -1 } })

-- -------------------------------------------------------------------- losses

local labels = { low = 0, high = 4 }
for _, reduction in ipairs { "none", "sum", "mean" } do
  case("nn.nll_loss", { float(3, 4), typed("int64", 3) }, { reduction = reduction }, labels)
  case("nn.nll_loss", { float(3, 4, 2), typed("int32", 3, 2), float(4) },
    { reduction = reduction, ignore_index = 2 }, { low = 0, high = 4, positive = true })
  case("nn.softmax_cross_entropy", { float(3, 4, 5), typed("int64", 3, 5) },
    { reduction = reduction }, labels)
  case("nn.softmax_cross_entropy", { float(6, 4), typed("int64", 6), float(4) },
    { reduction = reduction, ignore_index = -1 }, { low = -1, high = 4, positive = true })
end
case("nn.cross_entropy", { float(3, 4), float(3, 4) }, nil, { positive = true })
case("nn.cross_entropy_with_logits", { float(5, 4), float(5, 4) })

-- ---------------------------------------------------------------- assignment

local function set(begin, last, strides, types, dtype)
  local function list(values) return pl.tensor(values, dtype or "int64") end
  local n = dtype or "int64"
  case("strided_set", { types[1], types[2], typed(n, #begin), typed(n, #last), typed(n, #strides) },
    nil, { constants = { nil, nil, list(begin), list(last), list(strides) } })
end
set({ 1, 0 }, { 3, 4 }, { 1, 1 }, { float(5, 4), float(2, 4) })
set({ 0, 1 }, { 5, 6 }, { 2, 3 }, { float(5, 6), float(3, 2) })
set({ -3, 0 }, { 100, 4 }, { 1, 1 }, { float(5, 4), float(3, 4) }, "int32")
set({ 2 }, { 2 }, { 1 }, { float(5), float(0) })
-- Where it begins is an operand.
case("strided_set", { float(5), float(1), typed("int64", 1), typed("int64", 1), typed("int64", 1) },
  nil, { low = 2, high = 3, constants = { nil, nil, nil, pl.tensor({ 3 }, "int64"),
    pl.tensor({ 1 }, "int64") } })
case("slice_like", { float(5, 6, 2), float(3, 4, 1) })
case("slice_like", { float(5, 6, 2), float(3, 4, 1) }, { axes = { 0, -1 } })
case("matrix_set_diag", { float(2, 3, 4), float(2, 3) })
case("matrix_set_diag", { float(4, 3), float(2) }, { k1 = 1, k2 = 1 })
for upper = 0, 1 do
  for lower = 0, 1 do
    case("matrix_set_diag", { float(2, 4, 5), float(2, 4, 4) }, { k1 = -1, k2 = 2,
      super_diag_right_align = upper, sub_diag_right_align = lower })
  end
end
case("eye_like", { float(3, 5) }, { k = -1 })
case("eye_like", { float(4, 4) })
case("sparse_to_dense", { typed("int64", 3), float(3), float() }, { output_shape = { 7 } },
  { low = 0, high = 7 })
case("sparse_to_dense", { typed("int32", 4, 2), typed("int32", 4), typed("int32") },
  { output_shape = { 3, 4 } }, { low = 0, high = 3 })
case("sparse_to_dense", { typed("int32"), float(), float() }, { output_shape = { 3 } },
  { low = 0, high = 3 })
for right = 0, 1 do
  case("searchsorted", { float(6), float(3, 5) }, { right = right, dtype = "int64" },
    { constants = { pl.tensor({ -1.5, -0.5, 0, 0, 0.75, 1.5 }, "float32") } })
  case("searchsorted", { typed("int32", 2, 4), typed("int32", 2, 9) }, { right = right },
    { constants = { pl.tensor({ { -3, 0, 0, 2 }, { 1, 1, 1, 1 } }, "int32") } })
end
case("searchsorted", { float(1), float(4) }, nil,
  { constants = { pl.tensor({ 0.25 }, "float32") } })

-- --------------------------------------------------------------------- sums

case("collapse_sum_like", { float(2, 3, 4), float(3, 1) })
case("collapse_sum_like", { float(3, 4), float(3, 4) })
case("collapse_sum_to", { float(2, 3, 4) }, { shape = { 1, 4 } })
case("collapse_sum_to", { typed("int64", 2, 3, 4) }, { shape = { 3, 1 } })
case("mean_n", { float(3, 4), float(4), float(3, 1) })
case("mean_n", { float(3, 4) })
case("size", { float(3, 4, 2) })
case("ndarray_size", { float(3, 4) }, { dtype = "int32" })

describe("computes of norms, losses and assignments", function()
  programs.each(cases, function(name, agrees)
    it(name, function() assert.is_true(agrees()) end)
  end)
end)
