-- Maps as values: the operators of ai.onnx.ml that make and take them, and files
-- of them. What is expected was computed by ONNX Runtime.

local pl = require "perilune"

local op = pl.op.ml

local function of_map(name, type, attributes)
  local map = pl.var("map", pl.type(type))
  return pl.func({ map }, op[name](map, attributes))
end

local numbers, words = "map(int64, Tensor[(), float32])", "map(string, Tensor[(), float32])"

describe("zip_map", function()
  local function zip(scores, attributes)
    local x = pl.var("x", tostring(pl.const(scores).type))
    return pl.eval(pl.func({ x }, op.zip_map(x, attributes)), scores)
  end

  it("makes a map of each row", function()
    local scores = pl.tensor({ { 1, 2 }, { 3, 4 } }, "float32")
    assert.same({ { b = 1, a = 2 }, { b = 3, a = 4 } },
      zip(scores, { classlabels_strings = { "b", "a" } }))
    assert.same({ { [5] = 1, [-3] = 2 }, { [5] = 3, [-3] = 4 } },
      zip(scores, { classlabels_int64s = { 5, -3 } }))
    local one = pl.tensor({ 0.5 }, "float32")
    assert.same({ { [7] = 0.5 } }, zip(one, { classlabels_int64s = { 7 } }))
  end)

  it("needs one list of labels, one label for each column, none twice", function()
    local scores = pl.tensor({ { 1, 2 } }, "float32")
    local both = "either classlabels_int64s or classlabels_strings is given"
    assert.error_matches(function() zip(scores, {}) end, both)
    assert.error_matches(function()
      zip(scores, { classlabels_int64s = { 1 }, classlabels_strings = { "a" } })
    end, both)
    assert.error_matches(function() zip(scores, { classlabels_int64s = { 1 } }) end,
      "1 labels for rows of 2 scores")
    assert.error_matches(function() zip(scores, { classlabels_int64s = { 1, 1 } }) end,
      "a map: a key is there twice")
  end)
end)

describe("cast_map", function()
  local function cast(map, attributes, type)
    return pl.eval(of_map("cast_map", type or numbers, attributes), map):to_table()
  end

  it("gives the values in the order of the keys", function()
    local map = { [7] = 2.5, [0] = 100, [-3] = -1.75 }
    assert.same({ { -1.75, 100, 2.5 } }, cast(map, { cast_to = "TO_FLOAT" }))
    assert.same({ { -1, 100, 2 } }, cast(map, { cast_to = "TO_INT64" }))
    assert.same({ { "-1.750000", "100.000000", "2.500000" } }, cast(map, { cast_to = "TO_STRING" }))
    assert.same({ { 2.5, -3 } }, cast({ [1] = "2.5", [2] = "-3" }, { cast_to = "TO_FLOAT" },
      "map(int64, Tensor[(), string])"))
  end)

  it("gives a vector that keys index", function()
    local sparse = { map_form = "SPARSE", max_map = 4 }
    assert.same({ { 0, 1.5, 0, 2 } }, cast({ [1] = 1.5, [3] = 2, [9] = 5 }, sparse))
    sparse.cast_to = "TO_STRING"
    assert.same({ { "0.f", "1.500000", "0.f", "0.f" } }, cast({ [1] = 1.5 }, sparse))
    assert.error_matches(function() cast({ [-1] = 1.5 }, sparse) end, "the key %-1 is negative")
  end)

  it("refuses what is no number", function()
    local text = "map(int64, Tensor[(), string])"
    assert.error_matches(function() cast({ [1] = "x1" }, {}, text) end, "'x1' is no number")
    assert.error_matches(function() cast({ [1] = "" }, {}, text) end, "a value is no number")
    assert.error_matches(function() cast({ [1] = 1e30 }, { cast_to = "TO_INT64" }) end,
      "1e%+30 is no int64")
  end)
end)

describe("dict_vectorizer", function()
  it("gives the values of a vocabulary, zero for missing keys", function()
    local vocabulary = { string_vocabulary = { "a", "c", "b", "z" } }
    assert.same({ { 4, 5, 1, 0 } },
      pl.eval(of_map("dict_vectorizer", words, vocabulary),
        { a = 4, b = 1, c = 5, q = 9 }):to_table())
    local texts = of_map("dict_vectorizer", "map(int64, Tensor[(), string])",
      { int64_vocabulary = { 3, 1 } })
    assert.same({ { "", "x" } }, pl.eval(texts, { "x" }):to_table())
  end)
end)

describe("an argument that is a map", function()
  local fn = of_map("dict_vectorizer", words, { string_vocabulary = { "a" } })

  it("is a table from keys to values", function()
    assert.error_matches(function() pl.eval(fn, 5) end, "table expected, got number")
    assert.error_matches(function() pl.eval(fn, { 5 }) end, "dtype string is a string, got number")
    assert.error_matches(function() pl.eval(fn, { a = { 1 } }) end,
      "keys and values are two vectors of one length")
  end)

  it("is read from a file and written to one", function()
    local path = os.tmpname()
    local function round(value, type)
      type = pl.type(type)
      assert(pl.onnx.save_value(value, path, type, "m"))
      return (assert(pl.onnx.load_value(path, type)))
    end
    local map = { a = 0.5, bc = -2, [""] = 1e10 }
    assert.same(map, round(map, words))
    assert.same({ [3] = 1, [-4] = 2 }, round({ [3] = 1, [-4] = 2 }, numbers))
    assert.same({}, round({}, numbers))
    assert.same({ map, { z = 1 } }, round({ map, { z = 1 } }, ("seq(%s)"):format(words)))
    assert.same({ [1] = "x", [2] = "" },
      round({ [1] = "x", [2] = "" }, "map(int64, Tensor[(), string])"))
    os.remove(path)
  end)

  it("is compared by its entries", function()
    local difference = require "perilune.check.tensor_difference"
    assert.is_nil(difference({ a = 1.0 }, { a = 1.0 }))
    assert.is_nil(difference({ { a = 1.0 } }, { { a = 1.01 } }, { rtol = 0.1 }))
    assert.equal(" at key a: got 1.0, expected 2.0", difference({ a = 1.0 }, { a = 2.0 }))
    assert.equal(", element 1: the key b is missing",
      difference({ { a = 1 }, { a = 1 } }, { { a = 1 }, { b = 1 } }))
    assert.equal(": the key a is not expected", difference({ a = 1, b = 2 }, { b = 2 }))
  end)
end)
