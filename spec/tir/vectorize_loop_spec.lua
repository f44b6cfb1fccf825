local pl = require "perilune"

local function parse(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function vectorized(body, options)
  return pl.passes["tir.VectorizeLoop"](options)(parse(body))
end

local function check(before, after, options)
  local out = vectorized(before, options)
  assert.is_true(pl.equal(parse(after), out), tostring(out))
end

describe("tir.VectorizeLoop", function()
  it("computes rounds as lanes", function()
    check([[
for i in T.vectorized(4):
    A[i + 8] = B[i * 2 + n] + T.float32(1)]], [[
A[T.Ramp(8, 1, 4)] = B[T.Ramp(n, 2, 4)] + T.Broadcast(T.float32(1), 4)]])
  end)

  it("broadcasts what does not depend on the variable", function()
    check([[
for i in T.vectorized(4):
    A[i] = B[n] ]], [[
A[T.Ramp(0, 1, 4)] = T.Broadcast(B[n], 4)]])
  end)

  it("keeps loops inside, and vectorises calls that have a vector form", function()
    check([[
for i in T.vectorized(4):
    for j in range(3):
        A[i * 4 + j] = T.exp(B[i])]], [[
for j in range(3):
    A[T.Ramp(j, 4, 4)] = T.exp(B[T.Ramp(0, 1, 4)])]])
  end)

  it("computes a branch on the variable in a serial loop", function()
    check([[
for i in T.vectorized(4):
    A[i] = T.float32(0)
    if i < n:
        A[i] = B[i] ]], [[
A[T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 4)
for i_s in range(4):
    if i_s < n:
        A[i_s] = B[i_s] ]])
  end)

  it("binds variables to vectors", function()
    check([[
for i in T.vectorized(4):
    k: T.int32 = i * 3
    A[k] = B[k] ]], [[
k: T.int32x4 = T.Ramp(0, 3, 4)
A[k] = B[k] ]])
  end)

  it("gives each lane its own memory", function()
    check([[
for i in T.vectorized(4):
    C = T.allocate([2], "float32", "global")
    C_1 = T.Buffer((2,), data=C)
    C_1[1] = B[i]
    A[i] = C_1[1] ]], [[
C = T.allocate([8], "float32", "global")
C_1 = T.Buffer((8,), data=C)
C_1[T.Ramp(4, 1, 4)] = B[T.Ramp(0, 1, 4)]
A[T.Ramp(0, 1, 4)] = C_1[T.Ramp(4, 1, 4)] ]])
  end)

  it("computes accesses of different rows in a serial loop", function()
    check([[
C = T.allocate([4, 8], "float32", "global")
C_1 = T.Buffer((4, 8), data=C, axis_separators=[1])
for i in T.vectorized(4):
    C_1[n, i] = B[i]
    C_1[i, n] = B[i]
for i in T.vectorized(4):
    A[i] = C_1[n, i]
    A[i] = C_1[i, i + 1] + C_1[i, n] ]], [[
C = T.allocate([4, 8], "float32", "global")
C_1 = T.Buffer((4, 8), data=C, axis_separators=[1])
C_1[n, T.Ramp(0, 1, 4)] = B[T.Ramp(0, 1, 4)]
for i_s in range(4):
    C_1[i_s, n] = B[i_s]
A[T.Ramp(0, 1, 4)] = C_1[n, T.Ramp(0, 1, 4)]
for i_s in range(4):
    A[i_s] = C_1[i_s, i_s + 1] + C_1[i_s, n] ]])
  end)

  it("makes serial loops where it is switched off", function()
    check([[
for i in T.vectorized(4):
    A[i] = B[i] ]], [[
for i in range(4):
    A[i] = B[i] ]], { enable_vectorize = false })
  end)

  it("refuses loops that cannot be vectors, and names them", function()
    assert.error_matches(function()
      vectorized [[
for i in T.vectorized(n):
    A[i] = B[i] ]]
    end, "Failed to vectorize loop with extent that is not constant: the loop over 'i'")
    assert.error_matches(function()
      vectorized [[
for i in T.vectorized(1, 5):
    A[i] = B[i] ]]
    end, "the loop over 'i' must have 1 to 65535 rounds, from 0 on")
    assert.error_matches(function()
      vectorized [[
for i in T.vectorized(4):
    while A[i] < T.float32(3):
        A[i] = A[i] + T.float32(1)]]
    end, "a while loop inside of a vectorized loop has no vector form")
  end)
end)
