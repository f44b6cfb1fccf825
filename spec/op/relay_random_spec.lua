-- Relay's random operators, on values of Threefry-4x64 as its authors define it,
-- written again here.

local pl = require "perilune"
local computes, refuses = require "spec.op.computed" (it)

-- Threefry-4x64-20 of Salmon et al., without the last addition of the key.
local rotations = { { 14, 16 }, { 52, 57 }, { 23, 40 }, { 5, 37 }, { 25, 33 }, { 46, 12 },
  { 58, 22 }, { 32, 32 } }

local function rotate(x, n) return x << n | x >> (64 - n) end

local function threefry(key, counter)
  local ks = { key[1], key[2], key[3], key[4],
    key[1] ~ key[2] ~ key[3] ~ key[4] ~ 0x1BD11BDAA9FC1A22 }
  local x = { table.unpack(counter) }
  for round = 0, 19 do
    if round % 4 == 0 then
      local s = round // 4
      for i = 0, 3 do x[i + 1] = x[i + 1] + ks[(s + i) % 5 + 1] end
      x[4] = x[4] + s
    end
    local r = rotations[round % 8 + 1]
    local a, c = x[1] + x[2], x[3] + x[4]
    local b, d = rotate(x[2], r[1]) ~ a, rotate(x[4], r[2]) ~ c
    x = { a, d, c, b }
  end
  return x
end

local function text_of(words) return table.concat(words, " ") end

local function evaluate(body, ...)
  local params, tensors = {}, {}
  for i, input in ipairs { ... } do
    tensors[i] = pl.tensor(input[2], input[1])
    params[i] = ("%%%s: %s"):format(string.char(96 + i), tostring(pl.const(tensors[i]).type))
  end
  return pl.eval(assert(pl.parse(('#[version = "0.0.5"]\ndef @main(%s) { %s }'):format(
    table.concat(params, ", "), body))), table.unpack(tensors))
end

local key = { 0x13198a2e03707344, 0x5a4093822299f31d, 0x0082efa98ec4e6c8, 0x452821e638d01377,
  5, 6, 7, 8, 1 << 60, 0 }

local function words_of(gen, n)
  local words = {}
  for i = 0, n // 4 do
    local rest = n - 4 * i
    local counter = { gen[5], gen[6], gen[7], gen[8] }
    for k = 1, 4 do counter[k] = counter[k] + (rest < 4 and 0 or i) end
    if rest < 4 then counter[4] = counter[4] + n // 4 * 4 end
    local block = threefry(gen, counter)
    for k = 1, math.min(4, rest) do words[#words + 1] = block[k] end
  end
  return words
end

describe("Threefry", function()
  it("is the authors' on their test vectors", function()
    local zeros = threefry({ 0, 0, 0, 0 }, { 0, 0, 0, 0 })
    zeros[4] = zeros[4] + 5 -- the last addition of a key of zeros
    assert.equal(text_of { 0x09218ebde6c85537, 0x55941f5266d86105, 0x4bd25e16282434dc,
      0xee29ec846bd2e40b }, text_of(zeros))
  end)

  for _, n in ipairs { 0, 3, 4, 8, 11 } do
    it("draws " .. n .. " words and moves the counter", function()
      local gen, words = evaluate(("random.threefry_generate(%%a, out_shape=[%d])"):format(n),
        { "uint64", key })
      assert.equal(text_of(words_of(key, n)), text_of(words:to_table()))
      local next_key = { table.unpack(key) }
      next_key[7], next_key[8] = 0, 8 + (n + 3) // 4 * 4
      assert.equal(text_of(next_key), text_of(gen:to_table()))
    end)
  end

  it("appends to the path when the counter is used up", function()
    local used = { table.unpack(key) }
    used[8], used[9], used[10] = -2, 1, 0
    local gen, words = evaluate("random.threefry_generate(%a, out_shape=[4])",
      { "uint64", used })
    local fresh = { key[1], key[2], key[3], key[4], 5 | 1, 6, 0, 0 }
    assert.equal(text_of(words_of(fresh, 4)), text_of(words:to_table()))
    assert.equal(text_of { key[1], key[2], key[3], key[4], 5 | 1, 6, 0, 4, 0, 1 << 63 },
      text_of(gen:to_table()))
  end)

  it("splits by a bit of the path", function()
    local left, right = evaluate("random.threefry_split(%a)", { "uint64", key })
    local expected = { table.unpack(key) }
    expected[9] = 1 << 59
    assert.equal(text_of(expected), text_of(left:to_table()))
    expected[5] = 5 | 1 << 60
    assert.equal(text_of(expected), text_of(right:to_table()))
  end)

  it("makes a full path a part of the key", function()
    local full = { table.unpack(key) }
    full[9], full[10] = 0, 0
    local left, right = evaluate("random.threefry_split(%a)", { "uint64", full })
    local made = threefry(full, { 5, 6, 7, 8 })
    local function expect(path) return text_of { made[1], made[2], made[3], made[4], path, 0, 0, 0,
      1 << 62, 0 } end
    assert.equal(expect(0), text_of(left:to_table()))
    assert.equal(expect(1 << 63), text_of(right:to_table()))
  end)

  refuses("ends with counter and path", "random.threefry_generate(%a, out_shape=[4])",
    { { "uint64", { 1, 2, 3, 4, 5, 6, 7, -2, 0, 0 } } }, "key, path and counter are used up")
end)

describe("Numbers drawn with Threefry", function()
  local function unit(word, bits) return (word >> (64 - bits)) / (1 << bits) end

  it("are uniform between two", function()
    for dtype, bits in pairs { float32 = 23, float64 = 52 } do
      local _, drawn = evaluate(
        ('random.uniform(%%a, %%b, %%c, out_shape=[2, 3], out_dtype="%s")'):format(dtype),
        { "uint64", key }, { dtype, 2 }, { dtype, 6 })
      local words = words_of(key, 6)
      for i, row in ipairs(drawn:to_table()) do
        for k, x in ipairs(row) do
          assert.near(2 + 4 * unit(words[(i - 1) * 3 + k], bits), x, 1e-6)
        end
      end
    end
  end)

  it("are normal about a mean", function()
    for dtype, bits in pairs { float32 = 23, float64 = 52 } do
      local _, drawn = evaluate(
        ('random.normal(%%a, %%b, %%c, out_shape=[4], out_dtype="%s")'):format(dtype),
        { "uint64", key }, { dtype, 10 }, { dtype, 0.5 })
      local words = words_of(key, 8)
      for i, x in ipairs(drawn:to_table()) do
        local radius = math.sqrt(-2 * math.log(1 - unit(words[i], bits)))
        local want = radius * math.sin(2 * math.pi * unit(words[4 + i], bits)) * 0.5 + 10
        assert.near(want, x, 1e-5)
      end
    end
  end)

  it("are classes by their probabilities", function()
    local _, drawn = evaluate("random.multinomial(%a, %b, num_samples=6)", { "uint64", key },
      { "float32", { { 1, -7, 1, 2 }, { 0, 0, 3, 0 } } })
    local words, rows = words_of(key, 12), drawn:to_table()
    for i = 1, 6 do
      local x = unit(words[i], 23)
      assert.equal(x < 0.25 and 0 or x < 0.5 and 2 or 3, rows[1][i])
      assert.equal(2, rows[2][i])
    end
  end)

  computes("are none if there is nothing to draw", "random.multinomial(%a, %b, num_samples=0)",
    { { "uint64", key }, { "float32", { { 1, 1 } } } },
    { key[1], key[2], key[3], key[4], 5, 6, 0, 8, 1 << 60, 0 }, { {} })
end)
