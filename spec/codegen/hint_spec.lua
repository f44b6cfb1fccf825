-- What functions ask gcc for: vectors of 16 bytes where loops read every second, third, fourth or
-- eighth element, and products apart from additions where these wait for each other.

local pl = require "perilune"
local compare = require "spec.codegen.compare"

-- B[i] = value, over 100 elements.
local function program(value, dtype)
  return assert(pl.tir.parse(([[
@T.prim_func
def main(A: T.Buffer((1000,), "%s"), B: T.Buffer((100,), "%s")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for i in range(100):
        j: T.int32 = i * 4
        B[i] = %s]]):format(dtype or "float32", dtype or "float32", value)))
end

-- Whether the function asks for such vectors, after comparing with the interpreter.
local function asks(mod)
  local fn = mod.functions.main
  local built = pl.build(mod, { vector_bytes = 32 })
  local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 3))
  assert(not how, how)
  return built:source():find "PL_HALF_VECTORS int32_t main" ~= nil
end

describe("loops that read interleaved elements", function()
  it("become vectors of 16 bytes", function()
    for _, value in ipairs {
      "A[i * 2] + A[i * 2 + 1]", "A[i * 3 + 2]", "A[j] + A[j + 1] + A[j + 2] + A[j + 3]",
      "A[i * 8 + 3] * T.float32(2)",
    } do
      assert.is_true(asks(program(value)), value)
    end
    assert.is_true(asks(program("A[i * 2] - A[i * 2 + 1]", "int32")))
  end)

  it("may have reductions inside that are written out", function()
    assert.is_true(asks(assert(pl.tir.parse [[
@T.prim_func
def main(A: T.Buffer((1568,), "float32"), B: T.Buffer((392,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for c, y, x in T.grid(2, 14, 14):
        B[c * 196 + y * 14 + x] = T.float32(-3)
        for ry, rx in T.grid(2, 2):
            B[c * 196 + y * 14 + x] = T.max(B[c * 196 + y * 14 + x],
              A[c * 784 + y * 56 + ry * 28 + x * 2 + rx]) ]])))
  end)

  it("are no loops over neighbours, and none that call functions", function()
    for _, value in ipairs {
      "A[i] + A[i + 1]", "A[i * 10]", "A[i * i % 900]", "T.floor(A[i * 2])", "T.float32(1)",
    } do
      assert.is_false(asks(program(value)), value)
    end
    assert.is_false(asks(program("A[i * 2] + A[i * 2 + 1]", "float64")))
  end)
end)

describe("products that are added one after the other", function()
  -- Whether the function asks for products of their own.
  local function asks_products(body, dtype)
    local mod = assert(pl.tir.parse(([[
@T.prim_func
def main(A: T.Buffer((256,), "%s"), B: T.Buffer((16,), "%s")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for i in range(16):
        for k in range(16):
            %s]]):format(dtype or "float32", dtype or "float32", body)))
    local fn = mod.functions.main
    local built = pl.build(mod)
    local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 3), 1e-5)
    assert(not how, how)
    return built:source():find "PL_PRODUCTS int32_t main" ~= nil
  end

  it("are not contracted", function()
    assert.is_true(asks_products "B[i] = B[i] + A[i * 16 + k] * A[k]")
    assert.is_true(asks_products("B[i] = B[i] + A[i * 16 + k] * A[k]", "float64"))
    assert.is_true(asks_products
      "B[i] = B[i] + T.if_then_else(k < 9, A[i * 16 + k], T.float32(0)) * A[k]")
  end)

  it("are where they are added to other elements in each round, or used elsewhere", function()
    for _, body in ipairs {
      "B[k] = B[k] + A[i * 16 + k] * A[k]", "B[i] = B[k] + A[i * 16 + k] * A[k]",
      "B[i] = B[i] + A[i * 16 + k]", "B[i] = B[i] + A[i] * A[k] * A[i + k]",
      "B[i] = B[i] * T.float32(0.5) + A[k] * A[i]",
    } do
      assert.is_false(asks_products(body), body)
    end
    assert.is_false(asks_products("B[i] = B[i] + A[i * 16 + k] * A[k]", "int32"))
  end)
end)
