-- The order in which short float32 sums and products with a vector are added up: results have
-- the bits of ONNX Runtime on x86-64, whatever processor computes them, but for the last rows of
-- a product, up to three.

local pl = require "perilune"

local function round(x) return (string.unpack("<f", string.pack("<f", x))) end

-- Numbers of several magnitudes, so that another order gives other bits.
local function numbers(n)
  local out = {}
  for i = 1, n do out[i] = round((math.random() - 0.5) * 10.0 ^ math.random(-3, 3)) end
  return out
end

local function eight_lanes(values)
  local lane = { 0, 0, 0, 0, 0, 0, 0, 0 }
  for i, value in ipairs(values) do
    local k = (i - 1) % 8 + 1
    lane[k] = round(lane[k] + value)
  end
  return lane
end

-- Lanes by halves; what is left of four elements goes between.
local function short_sum(values)
  local whole = #values - #values % 8
  local lane = eight_lanes(table.move(values, 1, whole, 1, {}))
  for k = 1, 4 do lane[k] = round(lane[k] + lane[k + 4]) end
  for k = 1, #values - whole do lane[k] = round(lane[k] + values[whole + k]) end
  return round(round(lane[1] + lane[3]) + round(lane[2] + lane[4]))
end

local function dot(row, x)
  local products = {}
  for i = 1, #row do products[i] = round(row[i] * x[i]) end
  local s = eight_lanes(products)
  local low = round(round(round(s[1] + s[2]) + s[3]) + s[4])
  return round(low + round(round(round(s[5] + s[6]) + s[7]) + s[8]))
end

local function rows_of(m, n)
  local rows = {}
  for i = 1, m do rows[i] = numbers(n) end
  return rows
end

-- In order, though other orders give other bits.
local function in_order(values)
  local sum = 0
  for _, value in ipairs(values) do sum = round(sum + value) end
  return sum
end

describe("float32", function()
  math.randomseed(7)

  for _, n in ipairs { 8, 12, 64, 100 } do
    it(("sums of %d elements are those of eight lanes"):format(n), function()
      local x, other = rows_of(7, n), 0
      local var = pl.var("x", { shape = { 7, n }, dtype = "float32" })
      local fn = pl.func({ var }, pl.op.sum(var, { axes = { 1 }, keepdims = 0 }))
      for i, got in ipairs(pl.eval(fn, pl.tensor(x, "float32")):to_table()) do
        assert.equal(short_sum(x[i]), got)
        if in_order(x[i]) ~= got then other = other + 1 end
      end
      assert.is_true(other > 0)
    end)
  end

  for _, k in ipairs { 1, 8, 19, 40 } do
    it(("products of %d columns and a vector are those of eight lanes"):format(k), function()
      local a, x = rows_of(7, k), rows_of(k, 1)
      local b, vector = pl.var("b", { shape = { k, 1 }, dtype = "float32" }), {}
      for i = 1, k do vector[i] = x[i][1] end
      local var = pl.var("a", { shape = { 7, k }, dtype = "float32" })
      local fn = pl.func({ var, b }, pl.op.nn.matmul(var, b))
      local got = pl.eval(fn, pl.tensor(a, "float32"), pl.tensor(x, "float32")):to_table()
      for i = 1, 7 do assert.equal(dot(a[i], vector), got[i][1]) end
    end)
  end

  it("products over no elements are zeros", function()
    local b = pl.op.zeros { shape = { 0, 1 }, dtype = "float32" }
    local fn = pl.func({}, pl.op.nn.matmul(pl.const(pl.tensor({ {}, {}, {} }, "float32")), b))
    local got = pl.eval(fn)
    assert.same({ { 0 }, { 0 }, { 0 } }, got:to_table())
  end)
end)
