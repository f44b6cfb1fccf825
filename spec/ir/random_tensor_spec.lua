-- Random tensors: pl.tensor.random.

local pl = require "perilune"

local function elements(...) return pl.tensor.random(...):to_table() end

describe("pl.tensor.random", function()
  it("gives one seed's elements, another seed's others", function()
    local one = pl.tensor.random({ 3, 4 }, "float32", { seed = 7 })
    assert.equal("float32", one.dtype)
    assert.same({ 3, 4 }, one.shape)
    assert.is_true(one:equal(pl.tensor.random({ 3, 4 }, "float32", { seed = 7 })))
    assert.is_false(one:equal(pl.tensor.random({ 3, 4 }, "float32", { seed = 8 })))
  end)

  it("takes elements from low to high, or around a mean", function()
    for _, x in ipairs(elements("float64", { 500 }, { low = 2, high = 3 })) do
      assert.is_true(x >= 2 and x <= 3)
    end
    for _, x in ipairs(elements("float16", { 500 }, { mean = 10, deviation = 1 })) do
      assert.is_true(x > 6.4 and x < 13.6)
    end
  end)

  it("takes integers with both ends, and booleans", function()
    local met = {}
    for _, x in ipairs(elements("int64", { 500 }, { low = -1, high = 1 })) do met[x] = true end
    assert.same({ [-1] = true, [0] = true, [1] = true }, met)
    met = {}
    for _, x in ipairs(elements("bool", { 50 }, { low = 0, high = 1 })) do met[x] = true end
    assert.same({ [true] = true, [false] = true }, met)
  end)

  it("makes scalars and empty tensors", function()
    assert.is_number(elements("float32", {}))
    assert.equal(0, pl.tensor.random({ 0, 5 }, "int8").size)
  end)

  it("says what it cannot make", function()
    assert.error_matches(function() elements("string", { 2 }) end, "dtype string")
    assert.error_matches(function() elements("int8", { 2 }, { low = 300, high = 301 }) end,
      "no int8 lies from 300 to 301")
    assert.error_matches(function() elements("float32", { 2 }, { low = 0, mean = 1 }) end,
      "give either low and high, or mean and deviation")
    assert.error_matches(function() elements("float32", { 2 }, { low = "a" }) end, "field 'low'")
    assert.error_matches(function() elements("float32", { 2 }, { seed = 1.5 }) end, "field 'seed'")
    assert.error_matches(function() elements("float32", { -1 }) end, "dim")
  end)
end)
