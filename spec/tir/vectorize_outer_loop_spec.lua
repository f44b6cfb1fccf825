-- tir.VectorizeOuterLoop marks loops around reductions, and only those whose rounds are apart.

local pl = require "perilune"

local tir = pl.tir

local function parse(columns, body)
  return assert(tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((4096,), "float32"),
         C: T.Buffer((4096,), "float32"), n: T.int32):
    for j in range(%s):
%s
]]):format(columns, (body:gsub("[^\n]+", "        %0")))))
end

local function marked(mod, bytes)
  return pl.passes["tir.VectorizeOuterLoop"] { vector_bytes = bytes or 16 } (mod)
end

local product = [[
C[j] = T.float32(0)
for k in range(8):
    C[j] = C[j] + A[k] * B[k * 64 + j]
]]

describe("tir.VectorizeOuterLoop", function()
  local function lanes(columns, bytes, body)
    return tonumber(tostring(marked(parse(columns, body or product), bytes))
      :match "T%.vectorized%((%d+)%)")
  end

  it("makes up to eight vectors of neighbours", function()
    assert.equal(32, lanes("64", 16))
    assert.equal(64, lanes("64", 32))
    assert.equal(16, lanes("48", 32)) -- what divides the rounds
    assert.equal(8, lanes("8", 32))
    assert.equal(16, lanes("n", 16)) -- of any number
    assert.is_nil(lanes("7", 32))
  end)

  it("computes the rounds behind the vectors one by one", function()
    local text = tostring(marked(parse("50", product)))
    assert.matches("T.vectorized%(16%)", text)
    assert.matches("in range%(2%)", text)
  end)

  it("keeps what is computed", function()
    for _, columns in ipairs { "64", "50", "23", "n" } do
      for _, body in ipairs { product, [[
s: T.int32 = j + 3
for k in range(8):
    C[s] = T.max(C[j + 3], A[k] - B[k * 64 + s - 3])
]], [[
C[j + 100] = T.float32(1)
for k in range(4):
    if k < 3:
        for l in range(2):
            C[j + 100] = C[j + 100] + T.Select(A[k] < B[j + l], A[k + l], B[k * 9 + j])
]], [[
C[j] = T.float32(0)
for k in range(3):
    C[j] = C[j] + A[k] * T.if_then_else(2 <= j + k and j + k < 60 and n > k, B[j + k], T.float32(0))
]] } do
        local mod = parse(columns, body)
        local guarded = columns == "n" and body:find "if_then_else"
        local vectors = pl.sequential { "tir.VectorizeOuterLoop{vector_bytes=16}",
          "tir.VectorizeLoop", "tir.Simplify" } (mod)
        -- An access of a vector.
        if not guarded then assert.matches("%d:", tostring(vectors)) end
        local values = {}
        for i, size in ipairs { 64, 4096, 4096 } do
          values[i] = pl.tensor.random({ size }, "float32", { seed = i, low = -1, high = 1 })
        end
        values[4] = 37
        local expected = tir.run(mod, values)[3]
        assert.is_true((tir.run(vectors, values)[3]:compare(expected)))
      end
    end
  end)

  it("drops comparisons that hold in all lanes, in those rounds only", function()
    local text = tostring(marked(parse("20", [[
for k in range(3):
    C[j] = C[j] + T.if_then_else(1 <= j + k and A[k] < A[0] and 20 >= j + k, B[j + k], A[k])
]])))
    -- Rounds 1 to 16 with the condition that is left, then 17 to 19.
    assert.matches("for j in range%(1%)", text)
    assert.matches("T.vectorized%(16%)", text)
    assert.matches("range%(3%)", text)
    assert.equal(3, select(2, text:gsub("A%[k%] < A%[0%]", "")))
    assert.equal(2, select(2, text:gsub("20 >=", "")))
  end)

  local refused = {
    ["a loop without a loop inside"] = "C[j] = A[0] * B[j]",
    ["rounds that read what others store"] = [[
for k in range(8):
    C[j] = C[j + 1] + A[k] * B[k * 64 + j]
]],
    ["rounds that store the same elements"] = [[
for k in range(8):
    C[j + k] = C[j + k] + A[k] * B[k * 64 + j]
]],
    ["columns"] = [[
for k in range(8):
    C[j] = C[j] + A[k] * B[j * 8 + k]
]],
    ["elements that others store, by one more store"] = [[
for k in range(8):
    C[j] = C[j] + A[k] * B[k * 64 + j]
C[j + 1] = T.float32(0)
]],
    ["conditions on its variable"] = [[
for k in range(8):
    if j < 9:
        C[j] = C[j] + A[k] * B[k * 64 + j]
]],
    ["conditions of which one of several has to hold"] = [[
for k in range(8):
    C[j] = C[j] + T.if_then_else(j < 9 or A[k] < A[0], B[j + k], A[k])
]],
    ["conditions that say what is computed"] = [[
for k in range(8):
    C[j] = C[j] + T.Select(j < 9 and A[k] < A[0], B[j + k], A[k])
]],
    ["conditions that hold in no round"] = [[
for k in range(8):
    C[j] = C[j] + T.if_then_else(j + k < 5, B[j + k], A[k])
]],
    ["a number of rounds that its variable says"] = [[
for k in range(j):
    C[j] = C[j] + A[k] * B[k * 64 + j]
]],
    ["calls that may do something"] = [[
for k in range(8):
    C[j] = C[j] + T.call_extern("float32", "f", A[k] * B[k * 64 + j])
]],
  }
  for what, body in pairs(refused) do
    it("leaves " .. what, function()
      local mod = parse("64", body)
      assert.is_true(pl.equal(mod, marked(mod)), tostring(marked(mod)))
    end)
  end

  it("leaves buffers that may share elements", function()
    local attr = 'T.func_attr({"tir.noalias": T.bool(False)})'
    local text = tostring(parse("64", product)):gsub("\n( *)for j", "\n%1" .. attr .. "\n%0", 1)
    local mod = assert(tir.parse(text))
    assert.matches("noalias", tostring(mod))
    assert.is_true(pl.equal(mod, marked(mod)))
  end)

  it("leaves functions with loops that somebody marked", function()
    local text = tostring(parse("64", product)):gsub("\n( *)for j", "\n%1for i in T.vectorized(4):"
      .. "\n%1    A[i] = A[i] + T.float32(1)\n%0", 1)
    local mod = assert(tir.parse(text))
    assert.is_true(pl.equal(mod, marked(mod)))
  end)

  it("leaves sums of bytes", function()
    local bytes = tostring(parse("64", product)):gsub('"float32"', '"int8"')
      :gsub("T.float32%(0%)", "T.int8(0)")
    local mod = assert(tir.parse(bytes))
    assert.is_true(pl.equal(mod, marked(mod)))
  end)

  it("is run by pl.build, unless tir.disable_vectorize says no", function()
    local mod = parse("64", product)
    assert.matches("f32x", pl.build(mod):source())
    local config = { ["tir.disable_vectorize"] = true }
    local source = pl.with(pl.context { config = config }, function()
      return pl.build(mod):source()
    end)
    assert.not_matches("f32x", source)
  end)
end)
