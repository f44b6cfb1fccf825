-- SimplifyExpr on Relay's own operators, as TVM simplifies them: layouts, filled tensors,
-- reshapes that another operator gives the shape of, limits, binomials.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local function becomes(params, before, after, inputs)
  golden.becomes(pl.passes.SimplifyExpr(), ("def @main(%s) { %s }"):format(params, before),
    ("def @main(%s) { %s }"):format(params, after), inputs)
end

local function stays(params, body)
  golden.stays(pl.passes.SimplifyExpr(), ("def @main(%s) { %s }"):format(params, body))
end

local function tensor(dims, dtype) return ("%%x: Tensor[(%s), %s]"):format(dims, dtype) end

local function layout(x, from, to)
  return ('layout_transform(%s, src_layout="%s", dst_layout="%s")'):format(x, from, to)
end

describe("SimplifyExpr of layouts", function()
  it("takes a layout_transform that permutes axes for a transpose", function()
    becomes(tensor("2, 3, 4, 5", "float32"), layout(layout("%x", "NCHW", "NHWC"), "NHWC", "CHWN"),
      "transpose(%x, axes=[1, 2, 3, 0])")
    becomes(tensor("2, 3, 4, 5", "float32"),
      ("transpose(%s, axes=[3, 0, 1, 2])"):format(layout("transpose(%x, axes=[0, 2, 3, 1])", "NHWC",
        "HWCN")), "transpose(%x, axes=[0, 2, 3, 1])")
  end)

  it("drops changes that take each other back", function()
    becomes(tensor("2, 3, 4, 5", "float32"),
      ("nn.relu(%s)"):format(layout(layout("%x", "NCHW", "NHWC"), "NHWC", "NCHW")), "nn.relu(%x)")
    becomes(tensor("1, 32, 6, 5, 4", "float32"),
      layout(layout("%x", "NCHW4c", "NCHW8c"), "NCHW8c", "NCHW4c"), "%x")
    becomes(tensor("1, 8, 6, 5", "float32"), layout("%x", "NCHW", "NCHW"), "%x")
  end)

  it("renames axes that are split or joined beside a transpose", function()
    becomes(tensor("1, 6, 5, 8", "float32"),
      layout("transpose(%x, axes=[0, 3, 1, 2])", "NCHW", "NCHW4c"), layout("%x", "NHWC", "NCHW4c"))
    becomes(tensor("1, 2, 6, 5, 4", "float32"),
      ("transpose(%s, axes=[0, 2, 3, 1])"):format(layout("%x", "NCHW4c", "NCHW")),
      layout("%x", "NCHW4c", "NHWC"))
    becomes(tensor("1, 6, 5, 8", "float32"), layout(layout("%x", "NHWC", "NCHW"), "NCHW", "NCHW4c"),
      layout("%x", "NHWC", "NCHW4c"))
  end)

  it("joins two changes between which no block is filled up", function()
    becomes(tensor("1, 4, 6, 5, 4", "float32"), layout(layout("%x", "NCHW4c", "NCHW"), "NCHW",
      "NCHW8c"), layout("%x", "NCHW4c", "NCHW8c"))
    stays(tensor("1, 6, 3, 5", "float32"), layout(layout("%x", "NCHW", "NCHW4c"), "NCHW4c", "NCHW"))
    stays(tensor("1, ?, 3, 5", "float32"), layout(layout("%x", "NCHW", "NCHW4c"), "NCHW4c", "NCHW"))
  end)
end)

describe("SimplifyExpr of filled tensors", function()
  it("gives operators the value instead", function()
    for _, dtype in ipairs { "float32", "int32" } do
      local zeros = ('zeros(shape=[3, 4], dtype="%s")'):format(dtype)
      local ones = ('ones(shape=[3, 4], dtype="%s")'):format(dtype)
      local zero, one = dtype == "int32" and "0" or "0f", dtype == "int32" and "1" or "1f"
      local x = tensor("3, 4", dtype)
      becomes(x, ("subtract(%s, %%x)"):format(zeros), ("subtract(%s, %%x)"):format(zero))
      becomes(x, ("multiply(%%x, %s)"):format(zeros), ("multiply(%%x, %s)"):format(zero))
      becomes(x, ("add(%s, %%x)"):format(ones), ("add(%s, %%x)"):format(one))
      becomes(x, ("divide(%s, %%x)"):format(ones), ("divide(%s, %%x)"):format(one),
        false)
      becomes(x, ("add(%s, %%x)"):format(zeros), "%x")
      becomes(x, ("divide(%%x, %s)"):format(ones), "%x")
    end
  end)

  it("leaves those that broadcast the other operand, and makes no constants", function()
    stays(tensor("4", "float32"), 'add(%x, ones(shape=[3, 4], dtype="float32"))')
    becomes(tensor("3, 4", "int32"), "zeros_like(%x)", 'zeros(shape=[3, 4], dtype="int32")')
    becomes(tensor("3, 4", "int32"), "full_like(%x, 7)", 'full(7, shape=[3, 4], dtype="int32")')
    becomes("%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]",
      "%0 = add(%x, %y); %1 = zeros_like(%y); add(%1, collapse_sum_like(ones_like(%0), %1))",
      'collapse_sum_to(ones(shape=[2, 3], dtype="float32"), shape=[3])')
  end)
end)

describe("SimplifyExpr of Relay's operators", function()
  it("writes shapes", function()
    becomes("%x: Tensor[(2, 3, 4), float32], %y: Tensor[(6, 2, 2), float32]",
      "reshape_like(%x, %y, lhs_begin=2, rhs_begin=1)", "reshape(%x, newshape=[2, 3, 2, 2])")
    becomes(tensor("1, 8, 4, 4", "float32"),
      "contrib_reverse_reshape(reshape(%x, newshape=[2, 4, -1, 4]), newshape=[8, 0, -1])",
      "reshape(%x, newshape=[8, 4, 4])")
  end)

  it("joins limits across casts that keep them", function()
    becomes(tensor("4, 8", "int32"),
      'clip(cast(clip(%x, a_min=12f, a_max=200f), dtype="uint8"), a_min=50f, a_max=220f)',
      'cast(clip(%x, a_min=50f, a_max=200f), dtype="uint8")')
    becomes(tensor("4, 8", "float32"), 'cast(cast(cast(clip(%x, a_min=0f, a_max=255f), '
      .. 'dtype="uint8"), dtype="int16"), dtype="int32")',
      'cast(clip(%x, a_min=0f, a_max=255f), dtype="int32")', false)
    stays(tensor("4, 8", "int32"),
      'clip(cast(clip(%x, a_min=12f, a_max=300f), dtype="uint8"), a_min=50f, a_max=220f)')
  end)

  it("sorts quantised numbers as they are", function()
    becomes(tensor("4, 6", "int8"), "argsort(qnn.dequantize(%x, 2f, 0), axis=0)",
      "argsort(%x, axis=0)", false)
    stays(tensor("4, 6", "int8"), "argsort(qnn.dequantize(%x, -2f, 0), axis=0)")
    becomes(tensor("4, 6", "int8"), "argmax(qnn.dequantize(%x, 2f, 0), axis=[1])",
      "argmax(%x, axis=[1])", false)
    becomes(tensor("4, 6", "uint8"), "argmin(qnn.dequantize(%x, 2f, 9), keepdims=True)",
      "argmin(%x, keepdims=True)", false)
    stays(tensor("4, 6", "int8"), "argmin(qnn.dequantize(%x, -2f, 0), axis=[1])")
  end)
end)

describe("SimplifyExpr of binomials", function()
  local function params(dtype)
    return ("%%x: Tensor[(5), %s], %%y: Tensor[(5), %s]"):format(dtype, dtype)
  end

  it("factors them, whatever the order of their terms", function()
    local square, double, last = "multiply(%x, %x)", "multiply(multiply(2, %x), %y)",
      "multiply(%y, %y)"
    for _, case in ipairs { { square, double, last, "%y, %x" },
      { double, square, last, "%y, %x" }, { square, last, double, "%x, %y" } } do
      becomes(params "int32", ("add(add(%s, %s), %s)"):format(table.unpack(case, 1, 3)),
        ("%%0 = add(%s); multiply(%%0, %%0)"):format(case[4]))
    end
    becomes(params "int32", ("add(%s, add(%s, %s))"):format(last, double, square),
      "%0 = add(%y, %x); multiply(%0, %0)")
  end)

  it("takes the value without a coefficient for the first one", function()
    becomes(params "float32", "add(add(multiply(%x, multiply(6f, %x)), "
      .. "multiply(multiply(%y, 5f), %x)), multiply(%y, %y))",
      "multiply(add(%y, multiply(%x, 3f)), add(%y, multiply(%x, 2f)))", false)
  end)

  it("leaves forms without real or whole factors, other dtypes, and three values", function()
    stays(params "float32",
      "add(add(multiply(%x, %x), multiply(%x, %y)), multiply(%y, %y))")
    stays(params "int32",
      "add(add(multiply(%x, %x), multiply(multiply(3, %x), %y)), multiply(%y, %y))")
    stays(params "int64",
      "add(add(multiply(%x, %x), multiply(multiply(2i64, %x), %y)), multiply(%y, %y))")
    stays(params "int32" .. ", %z: Tensor[(5), int32]",
      "add(add(multiply(%x, %x), multiply(multiply(2, %x), %z)), multiply(%y, %y))")
  end)
end)
