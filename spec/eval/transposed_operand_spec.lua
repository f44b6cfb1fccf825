-- Products read transposed operands where they lie: the bits are those of products of copies.

local pl = require "perilune"
local op = pl.op

local function uniform(shape, dtype)
  local values = op.random_uniform { shape = shape, low = -2.0, high = 2.0, seed = 7.0 }
  return pl.eval(dtype and op.cast(values, { dtype = dtype }) or values)
end

local function turned(x, axes)
  return axes and op.transpose(x, { axes = axes }) or x
end

local function inputs(case, dtype)
  local a, b = uniform(case.a, dtype), uniform(case.b, dtype)
  return a, b, pl.var("a", a.type), pl.var("b", b.type)
end

-- The product in one run, and of tensors that were transposed in runs before.
local function both(case, dtype)
  local a, b, x, y = inputs(case, dtype)
  local fn = pl.func({ x, y }, op.nn.matmul(turned(x, case.a_axes), turned(y, case.b_axes)))
  local copies = op.nn.matmul(pl.eval(turned(pl.const(a), case.a_axes)),
    pl.eval(turned(pl.const(b), case.b_axes)))
  return fn, a, b, pl.eval(copies)
end

local cases = {
  { "a matrix on the right", a = { 40, 70 }, b = { 90, 70 }, b_axes = { 1, 0 } },
  { "a matrix on the left", a = { 70, 40 }, a_axes = { 1, 0 }, b = { 70, 90 } },
  { "both", a = { 70, 40 }, a_axes = { 1, 0 }, b = { 90, 70 }, b_axes = { 1, 0 } },
  { "few rows", a = { 3, 70 }, b = { 90, 70 }, b_axes = { 1, 0 } },
  { "as many rows as a vector has elements", a = { 16, 70 }, b = { 90, 70 }, b_axes = { 1, 0 } },
  { "one column", a = { 40, 70 }, b = { 1, 70 }, b_axes = { 1, 0 } },
  { "heads", a = { 2, 33, 3, 64 }, a_axes = { 0, 2, 1, 3 }, b = { 2, 50, 3, 64 },
    b_axes = { 0, 2, 3, 1 } },
  { "heads of values", a = { 2, 3, 33, 50 }, b = { 2, 50, 3, 64 }, b_axes = { 0, 2, 1, 3 } },
  { "heads by one matrix", a = { 2, 33, 3, 64 }, a_axes = { 0, 2, 1, 3 }, b = { 64, 20 } },
  { "a batch that repeats", a = { 1, 33, 3, 64 }, a_axes = { 0, 2, 1, 3 }, b = { 4, 50, 1, 64 },
    b_axes = { 0, 2, 3, 1 } },
  { "an innermost batch", a = { 33, 64, 3 }, a_axes = { 2, 0, 1 }, b = { 64, 20, 3 },
    b_axes = { 2, 0, 1 } },
  { "a vector on the right", a = { 64, 33 }, a_axes = { 1, 0 }, b = { 64 } },
  { "no elements", a = { 0, 33 }, a_axes = { 1, 0 }, b = { 0, 20 } },
}

describe("a product of transposed operands gives the bits of a product of copies:", function()
  for _, case in ipairs(cases) do
    it(case[1], function()
      for _, dtype in ipairs { "float32", "float64", "int32", "float16" } do
        local fn, a, b, expected = both(case, dtype)
        for threads = 1, 2 do
          local result = pl.eval { fn, a, b, threads = threads }
          assert.same(expected.shape, result.shape)
          assert.is_true(expected:to_bytes() == result:to_bytes(), dtype)
        end
      end
    end)
  end

  it("which also something else uses", function()
    local a, b, x, y = inputs { a = { 40, 70 }, b = { 90, 70 } }
    local t = op.transpose(y, { axes = { 1, 0 } })
    local fn = pl.func({ x, y }, pl.tuple(op.nn.matmul(x, t), t))
    local product, copy = pl.eval(fn, a, b)
    assert.same({ 70, 90 }, copy.shape)
    assert.is_true(pl.eval(op.nn.matmul(a, copy)):to_bytes() == product:to_bytes())
  end)

  it("with the reversed order of axes, twice", function()
    local a, b, x, y = inputs { a = { 40, 70 }, b = { 90, 70 } }
    local t = op.transpose(y)
    local fn = pl.func({ x, y }, pl.tuple(op.nn.matmul(x, t), op.nn.matmul(op.negative(x), t)))
    local first, second = pl.eval(fn, a, b)
    assert.is_true(pl.eval(op.nn.matmul(a, pl.eval(op.transpose(pl.const(b))))):to_bytes()
      == first:to_bytes())
    assert.same(first:to_table(), pl.eval(op.negative(second)):to_table())
  end)
end)
