-- Comparisons of a loop's index in generated C: they become bounds of the loop, or cut it in parts.

local pl = require "perilune"
local compare = require "spec.codegen.compare"

-- The C of a function of the buffers A and B of 64 elements, after comparing what it computes.
local function source_of(body)
  local mod = assert(pl.tir.parse([[
@T.prim_func
def f(A: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"), B: T.Buffer((64,), "float32")):
    ]] .. body:gsub("\n", "\n    ")))
  local built, fn = pl.build(mod), mod.functions.f
  local how, refused = compare.run(fn, built, "f", compare.arguments(fn, {}, 5),
    1e-6)
  assert(not how and not refused, ("%s\n%s"):format(how or refused, built:source()))
  return built:source()
end

local function count(text, part)
  local n, at = 0, 1
  while true do
    local from, to = text:find(part, at, true)
    if not from then return n end
    n, at = n + 1, to + 1
  end
end

local conditions = {
  "i < 40", "i <= 40", "i > 10", "i >= 10", "40 > i", "40 >= i", "10 < i", "10 <= i",
  "i + k < 40", "k + i <= 50", "i + k > 12", "13 <= i + k", "i + k - 3 < 40",
  "10 <= i and i < 50", "k <= i and i < 50 and i + k >= 9", "i < 0", "i < 1000", "i >= 64",
  "T.likely(i + k < 40) and T.likely(i < 30)", "30 <= i and i < 20",
}

describe("guards of loops", function()
  for _, condition in ipairs(conditions) do
    it("around all of a body are bounds: " .. condition, function()
      local text = source_of(([[
for k in range(4):
    for i in range(64):
        if %s:
            B[i] = B[i] + A[i] ]]):format(condition))
      if not condition:find("- 3", 1, true) then assert.equal(0, count(text, "if (i")) end
    end)

    it("of a part of the body cut the loop: " .. condition, function()
      source_of(([[
for k in range(4):
    for i in range(64):
        B[i] = B[i] + T.if_then_else(%s, A[i], T.float32(2)) * A[63 - i] ]]):format(condition))
      source_of(([[
for k in range(4):
    for i in range(1, 63):
        B[i] = B[i] * A[i]
        if %s:
            B[i - 1] = B[i - 1] + A[i]
        else:
            B[i] = A[i - 1] ]]):format(condition))
      source_of(([[
for k, i in T.grid(4, 64):
    c: T.int32 = i + k
    B[i] = B[i] + T.Select(%s, A[i], A[63 - i]) ]]):format(condition:gsub("i %+ k", "c")))
    end)
  end

  it("leave a part without tests", function()
    local text = source_of [[
for i in range(64):
    B[i] = T.if_then_else(2 <= i and i < 62, A[i - 1], T.float32(0))]]
    assert.equal(3, count(text, "for (int32_t i = "))
    assert.equal(2, count(text, "2 <= i"))
  end)

  it("that leave one round at the most write no loop of it", function()
    local text = source_of [[
for k in range(3):
    for i in range(64):
        B[i] = B[i] + T.if_then_else(1 <= i + k and i + k < 65, A[i], T.float32(2))]]
    assert.equal(1, count(text, "for (int32_t i = "))
    assert.equal(2, count(text, "const int32_t i = "))
  end)

  it("write no part that has no rounds", function()
    local text = source_of [[
for i in range(64):
    B[i] = T.if_then_else(i < 60, A[i], T.float32(0))]]
    assert.equal(2, count(text, "for (int32_t i = "))
  end)

  it("may be in loops over others, which are written once", function()
    local text = source_of [[
for i in range(64):
    for j in range(2):
        B[i] = B[i] + T.if_then_else(i < 10, A[i], A[j])]]
    assert.equal(1, count(text, "for (int32_t i = "))
  end)

  it("that depend on what the loop computes stay", function()
    source_of [[
for i in range(64):
    if i < I[i]:
        B[i] = A[i] ]]
    source_of [[
for i in range(60):
    I[i + 1] = 30
    B[i] = T.if_then_else(i < I[i], A[i], A[0]) ]]
  end)

  it("of 64-bit indices and of bounds that are parameters", function()
    local mod = assert(pl.tir.parse [[
@T.prim_func
def f(n: T.int64, A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(T.int64(64)):
        B[i] = A[i] + T.if_then_else(i < n, A[i], T.float32(0))
    for i in range(T.int64(64)):
        if n <= i:
            B[i] = B[i] * T.float32(3)]])
    local built, fn = pl.build(mod), mod.functions.f
    for _, n in ipairs { -5, 0, 1, 33, 64, 100, math.maxinteger, math.mininteger } do
      local args = compare.arguments(fn, {}, 3)
      args[1] = pl.tensor(n, "int64")
      local how = compare.run(fn, built, "f", args, 1e-6)
      assert(not how, ("n = %d: %s"):format(n, how))
    end
  end)
end)

describe("lets that only indices use", function()
  it("are wide, also by way of other lets", function()
    local text = source_of [[
for k, i in T.grid(4, 8):
    a: T.int32 = k * 8
    b: T.int32 = a + i
    B[b] = A[b] + A[a] ]]
    assert.equal(1, count(text, "int64_t a = "))
    assert.equal(1, count(text, "int64_t b = "))
  end)

  it("are not where a condition or a value uses them, or a let that those use", function()
    local text = source_of [[
for k, i in T.grid(4, 8):
    a: T.int32 = k * 8
    b: T.int32 = a + i
    if b < 30:
        B[b] = A[b] + T.Cast("float32", b)]]
    assert.equal(1, count(text, "int32_t a = "))
    assert.equal(1, count(text, "int32_t b = "))
  end)
end)

describe("indices that may leave int32", function()
  it("are computed without wrapping, those of lets too", function()
    local text = source_of [[
for i in range(64):
    c: T.int32 = I[i] % 4 * 16
    B[i] = A[c + i % 16] + A[I[i] % 2 * 32 + i % 32]
for i in range(2):
    for j in range(4):
        B[i * 32 + j] = A[(I[i] - I[i]) * 16 + j] ]]
    assert.falsy(text:find("uint32_t)", 1, true))
  end)

  it("have the dtype of other uses where there are some", function()
    source_of [[
for i in range(64):
    c: T.int32 = I[i] * 1000000007
    I[i] = c
    B[i] = A[T.floormod(c, 64)] ]]
  end)
end)

describe("loops of few rounds that move the bounds of one inside", function()
  local body = [[
for k in range(%s):
    for j in range(2):
        for i in range(30):
            c: T.int32 = i + k
            B[j * 32 + i] = B[j * 32 + i] + T.if_then_else(%s, A[j * 32 + i], T.float32(2))]]

  it("are unrolled", function()
    for _, condition in ipairs { "1 <= c and c < 31", "i + k < 28", "3 < k + i" } do
      assert.equal(1, count(source_of(body:format("3", condition)), "PL_UNROLL(3)\n"), condition)
    end
  end)

  it("are not where the bounds do not move, or there are many rounds", function()
    assert.equal(0, count(source_of(body:format("3", "1 <= i and i < 30")), "PL_UNROLL(3)\n"))
    assert.equal(0, count(source_of(body:format("3", "k < 2 and j < 1")), "PL_UNROLL(3)\n"))
    assert.equal(0, count(source_of(body:format("6", "1 <= c and c < 31")), "PL_UNROLL(6)\n"))
  end)
end)
