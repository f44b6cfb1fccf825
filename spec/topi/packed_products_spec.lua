-- Products with constant matrices, which models pack in panels of columns: results, and the C of
-- their inner loops.

local pl = require "perilune"

local op = pl.op

local function constant(shape, seed)
  return pl.const(pl.tensor.random(shape, "float32", { seed = seed, low = -1, high = 1 }))
end

local function product(rows, depth, columns)
  local x = pl.var("x", ("Tensor[(%d, %d), float32]"):format(rows, depth))
  local body = op.nn.gemm(x, constant({ columns, depth }, columns), constant({ columns }, 3),
    { transB = 1 })
  return pl.module { main = pl.func({ x }, body) }
end

-- Elements that vectors are gathered of, in the C of a model.
local function gathers(built)
  local _, count = built:source():gsub("%(pl_f32x%d+%){w0%[", "")
  return count
end

describe("products with packed matrices", function()
  -- rows, depth, columns; those of 1000 and 333 columns fill up a panel.
  local cases = { { 1, 64, 1000 }, { 1, 24, 333 }, { 1, 16, 128 }, { 2, 16, 1000 }, { 7, 32, 333 },
    { 8, 32, 96 }, { 1, 8, 40 }, { 3, 8, 7 } }
  for _, case in ipairs(cases) do
    local rows, depth, columns = table.unpack(case)
    it(("load whole vectors: %d x %d x %d"):format(rows, depth, columns), function()
      local mod = product(rows, depth, columns)
      local arg = pl.tensor.random({ rows, depth }, "float32", { seed = 1, low = -1, high = 1 })
      local expected = pl.eval(mod, arg)
      for _, options in ipairs { { vector_bytes = 64 }, { vector_bytes = 16 }, { threads = 2 } } do
        local built = pl.build(mod, options)
        assert.equal(0, gathers(built))
        local got = built.main(arg)[1]
        local same, how = got:compare(expected, { rtol = 1e-4, atol = 1e-4, scaled = true })
        assert(same, how and ("%s, expected %s"):format(how.got, how.expected))
      end
    end)
  end

  -- The tile of the first function, rows x columns, for vectors of that length.
  local function tile(rows, columns, bytes)
    local found
    require "perilune.topi.lower_te"(require "perilune.codegen.model".fused(product(rows, 64,
      columns)), { layout = "NCHWc", vector_bytes = bytes, on_kernel = function(kernel)
      for _, row in ipairs(kernel.decisions) do
        if row.name == "tile" then found = row.chosen end
      end
    end })
    return found
  end

  it("have tiles whose sums fit the registers", function()
    local expected = { [64] = { "14x32", "8x48" }, [32] = { "7x16", "4x24" },
      [16] = { "7x8", "4x12" } }
    for bytes, tiles in pairs(expected) do
      assert.equal(tiles[1], tile(196, 1024, bytes))
      assert.equal(tiles[2], tile(128, 768, bytes))
    end
    local ok, message = pcall(tile, 8, 96, 24)
    assert.is_false(ok)
    assert.matches("LowerTE: vector_bytes: 16, 32 or 64 expected, got 24", message)
  end)
end)

describe("topi.generic.schedule", function()
  local topi, te = pl.topi, pl.te

  -- The maximum and the exponentials read the sum, and so the product.
  it("computes a product ahead that several stages read", function()
    local a, b = te.placeholder({ 4, 3 }, "float32", "a"), te.placeholder({ 3, 3 }, "float32", "b")
    local c = te.placeholder({ 3 }, "float32", "c")
    local y = topi.nn.softmax(topi.add(topi.matmul(a, b), c), -1)
    local fn = pl.lower(topi.generic.schedule(y), { args = { a, b, c, y } })
    local x, w = pl.tensor.random({ 4, 3 }, "float32"), pl.tensor.random({ 3, 3 }, "float32")
    local bias = pl.tensor.random({ 3 }, "float32")
    local got = pl.build(fn).main(x, w, bias, pl.tensor.full(0, { 4, 3 }, "float32"))[4]
    local sums = pl.op.nn.matmul(pl.const(x), pl.const(w))
    local expected = pl.eval(pl.op.nn.softmax(sums + pl.const(bias)))
    assert.is_true((got:compare(expected, { rtol = 1e-5, atol = 1e-5 })))
  end)
end)
