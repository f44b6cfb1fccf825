-- The order in which float32 sums of products are added up: of a product of one row, and of a
-- convolution with one output a group, four rounded products at a time; the bias comes last.

local pl = require "perilune"
local op = pl.op

-- Rounds to float32.
local function f32(x) return (string.unpack("f", string.pack("f", x))) end

-- The sum of products of two lists, in that order.
local function in_fours(a, b)
  local sum, whole = 0.0, #a - #a % 4
  for p = 1, whole, 4 do
    local four = f32(a[p] * b[p])
    for q = p + 1, p + 3 do four = f32(four + f32(a[q] * b[q])) end
    sum = f32(sum + four)
  end
  for p = whole + 1, #a do sum = f32(sum + f32(a[p] * b[p])) end
  return sum
end

local function uniform(shape, seed)
  return pl.eval(op.random_uniform { shape = shape, low = -1.0, high = 1.0, seed = seed })
end

describe("sums of products", function()
  for _, k in ipairs { 1, 4, 9, 30 } do
    it("of one row and " .. k .. " summands", function()
      local a, b = uniform({ 1, k }, 1.0), uniform({ k, 13 }, 2.0)
      local row, columns, expected = a:to_table()[1], b:to_table(), { {} }
      for j = 1, 13 do
        local column = {}
        for p = 1, k do column[p] = columns[p][j] end
        expected[1][j] = in_fours(row, column)
      end
      assert.same(expected, pl.eval(op.nn.matmul(a, b)):to_table())
    end)
  end

  it("of a convolution with one output a group", function()
    local x, w = uniform({ 1, 2, 7, 9 }, 1.0), uniform({ 2, 1, 3, 3 }, 2.0)
    local bias = uniform({ 2 }, 3.0)
    local image, windows, added = x:to_table()[1], w:to_table(), bias:to_table()
    local expected = {}
    for c = 1, 2 do
      expected[c] = {}
      for y = 1, 5 do
        expected[c][y] = {}
        for z = 1, 7 do
          local a, b = {}, {}
          for i = 1, 3 do
            for j = 1, 3 do
              a[#a + 1], b[#b + 1] = windows[c][1][i][j], image[c][y + i - 1][z + j - 1]
            end
          end
          expected[c][y][z] = f32(in_fours(a, b) + added[c])
        end
      end
    end
    local result = pl.eval(op.nn.conv(x, w, bias, { kernel_shape = { 3, 3 }, group = 2 }))
    assert.same({ expected }, result:to_table())
  end)
end)
