local pl = require "perilune"

local function parse(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32"), n: T.int32):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function check(before, after)
  local out = pl.passes["tir.StorageRewrite"]()(parse(before))
  assert.is_true(pl.equal(parse(after), out), tostring(out))
end

describe("tir.StorageRewrite", function()
  it("removes what is said of memory that nothing accesses", function()
    check([[
B = T.allocate([16], "float32", "global")
with T.attr(B, "rolling_buffer_scope", T.bool(True)):
    C = T.allocate([16], "float32", "global")
    C_1 = T.Buffer((16,), data=C)
    for i in range(16):
        C_1[i] = A[i]
    for i in range(16):
        D[i] = C_1[15 - i] ]], [[
C = T.allocate([16], "float32", "global")
C_1 = T.Buffer((16,), data=C)
for i in range(16):
    C_1[i] = A[i]
for i in range(16):
    D[i] = C_1[15 - i] ]])
  end)

  it("computes in place", function()
    check([[
B = T.allocate([16], "float32", "global")
B_1 = T.Buffer((16,), data=B)
C = T.allocate([16], "float32", "global")
C_1 = T.Buffer((16,), data=C)
for i in range(16):
    B_1[i] = A[i]
for i in range(16):
    C_1[i] = B_1[i] + T.float32(1)
for i in range(16):
    D[i] = C_1[i] ]], [[
B = T.allocate([16], "float32", "global")
B_1 = T.Buffer((16,), data=B)
B_2 = T.Buffer((16,), data=B)
for i in range(16):
    B_1[i] = A[i]
for i in range(16):
    B_2[i] = B_1[i] + T.float32(1)
for i in range(16):
    D[i] = B_2[i] ]])
  end)

  it("does not where an element is read at another place", function()
    local out = pl.passes["tir.StorageRewrite"]()(parse [[
B = T.allocate([16], "float32", "global")
B_1 = T.Buffer((16,), data=B)
C = T.allocate([16], "float32", "global")
C_1 = T.Buffer((16,), data=C)
for i in range(16):
    B_1[i] = A[i]
for i in range(16):
    C_1[i] = B_1[15 - i]
for i in range(16):
    D[i] = C_1[i] ]])
    local _, allocations = tostring(out):gsub("T.allocate", "")
    assert.equal(2, allocations)
  end)

  it("does not where an element is written before the other one is read", function()
    local body = [[
B = T.allocate([16], "float32", "global")
C = T.allocate([16], "float32", "global")
B_1 = T.Buffer((16,), data=B)
for i in range(16):
    B_1[i] = A[i] + T.float32(1)
C_1 = T.Buffer((16,), data=C)
for i in range(16):
    C_1[i] = T.float32(0)
    C_1[i] = B_1[i] * T.float32(2)
for i in range(16):
    D[i] = C_1[15 - i] ]]
    check(body, body)
  end)

  it("does not where a loop writes an element again and again", function()
    local body = [[
B = T.allocate([16], "float32", "global")
C = T.allocate([16], "float32", "global")
B_1 = T.Buffer((16,), data=B)
for i in range(16):
    B_1[i] = A[i] + T.float32(1)
C_1 = T.Buffer((16,), data=C)
for i, j in T.grid(16, 3):
    C_1[i] = B_1[i] * T.float32(2)
for i in range(16):
    D[i] = C_1[15 - i] ]]
    check(body, body)
  end)

  it("keeps what the value of a let reads", function()
    local out = pl.passes["tir.StorageRewrite"]()(parse [[
B = T.allocate([32], "float32", "global")
B_1 = T.Buffer((32,), data=B)
C = T.allocate([16], "float32", "global")
C_1 = T.Buffer((16,), data=C)
for i in range(32):
    B_1[i] = A[i % 16]
for i in range(16):
    d: T.float32 = B_1[31 - i]
    C_1[i] = d
for i in range(16):
    D[i] = C_1[i] ]])
    local _, allocations = tostring(out):gsub("T.allocate", "")
    assert.equal(2, allocations)
  end)

  it("uses the memory of what is not needed any more, the larger size for both", function()
    check([[
for k in range(2):
    B = T.allocate([8], "float32", "global")
    B_1 = T.Buffer((8,), data=B)
    B_1[n] = A[n]
    D[n] = B_1[n]
    C = T.allocate([16], "int32", "global")
    C_1 = T.Buffer((16,), "int32", data=C)
    C_1[n] = n
    D[n] = D[n] + T.Cast("float32", C_1[n])]], [[
B = T.allocate([8], "float32", "global")
C = T.allocate([16], "int32", "global")
for k in range(2):
    B_1 = T.Buffer((8,), data=B)
    B_1[n] = A[n]
    D[n] = B_1[n]
    C_1 = T.Buffer((16,), "int32", data=C)
    C_1[n] = n
    D[n] = D[n] + T.Cast("float32", C_1[n])]])
    check([[
B = T.allocate([8], "float32", "global")
B_1 = T.Buffer((8,), data=B)
B_1[n] = A[n]
D[n] = B_1[n]
C = T.allocate([16], "float32", "global")
C_1 = T.Buffer((16,), data=C)
C_1[n] = T.float32(2)
D[n] = D[n] + C_1[n] ]], [[
B = T.allocate([16], "float32", "global")
B_1 = T.Buffer((8,), data=B)
B_1[n] = A[n]
D[n] = B_1[n]
C_1 = T.Buffer((16,), data=B)
C_1[n] = T.float32(2)
D[n] = D[n] + C_1[n] ]])
  end)

  it("keeps memory of a parallel loop inside of it", function()
    check([[
for k in T.parallel(4):
    for i in range(4):
        B = T.allocate([16], "float32", "global")
        B_1 = T.Buffer((16,), data=B)
        B_1[i] = A[i]
        D[i] = B_1[i] ]], [[
for k in T.parallel(4):
    B = T.allocate([16], "float32", "global")
    for i in range(4):
        B_1 = T.Buffer((16,), data=B)
        B_1[i] = A[i]
        D[i] = B_1[i] ]])
  end)

  it("makes one block of tagged memory that lives at the same time", function()
    check([[
B = T.allocate([9], "int16", "local.L0A")
B_1 = T.Buffer((9,), "int16", data=B, scope="local.L0A")
C = T.allocate([16], "float32", "local.L0A")
C_1 = T.Buffer((16,), data=C, scope="local.L0A")
E = T.allocate([2], "float32", "local.L0A")
E_1 = T.Buffer((2,), data=E, scope="local.L0A")
B_1[0:2] = T.Broadcast(T.int16(1), 2)
C_1[n:n + 4] = A[0:4]
T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), C, n, 4, 1))
E_1[n] = C_1[n]
D[n] = E_1[n] + C_1[n] + T.Cast("float32", B_1[n])]], [[
B = T.allocate([46], "int16", "local.L0A")
B_1 = T.Buffer((9,), "int16", data=B, scope="local.L0A")
C_1 = T.Buffer((16,), data=B, scope="local.L0A")
D_1 = T.Buffer((2,), data=B, scope="local.L0A")
B_1[0:2] = T.Broadcast(T.int16(1), 2)
C_1[T.Add(T.Broadcast(5, 4), T.Ramp(n, 1, 4))] = A[0:4]
T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), B, 5 + n, 4, 1))
D_1[21 + n] = C_1[5 + n]
D[n] = D_1[21 + n] + C_1[5 + n] + T.Cast("float32", B_1[n]) ]])
  end)

  it("does not make one of other memory", function()
    for _, scope in ipairs { "global.workspace", "shared.dyn", "global.vtcm", "global" } do
      local body = ([[
B = T.allocate([64], "float32", "%s")
C = T.allocate([64], "float32", "%s")
B_1 = T.Buffer((64,), data=B, scope="%s")
C_1 = T.Buffer((64,), data=C, scope="%s")
B_1[n] = A[n]
C_1[n] = A[n + 1]
D[n] = B_1[n] + C_1[n + 1] ]]):gsub("%%s", scope)
      check(body, body)
    end
  end)

  -- As after a flattening with an axis separator.
  it("does not share memory of several extents with other extents", function()
    local in_place = [[
B = T.allocate([2, 3], "float32", "global")
B_1 = T.Buffer((2, 3), data=B, axis_separators=[1])
C = T.allocate([6], "float32", "global")
C_1 = T.Buffer((6,), data=C)
B_1[0, 0] = A[n]
C_1[0] = B_1[0, 0] + T.float32(1)
D[n] = C_1[0] ]]
    check(in_place, in_place)
    local later = [[
B = T.allocate([2, 3], "float32", "global")
C = T.allocate([6], "float32", "global")
B_1 = T.Buffer((2, 3), data=B, axis_separators=[1])
B_1[1, 2] = A[n]
D[n] = B_1[1, 2]
C_1 = T.Buffer((6,), data=C)
C_1[5] = A[n]
D[n] = C_1[5] ]]
    check(later, later)
    local transposed = [[
B = T.allocate([2, 3], "float32", "global")
B_1 = T.Buffer((2, 3), data=B, axis_separators=[1])
C = T.allocate([3, 2], "float32", "global")
C_1 = T.Buffer((3, 2), data=C, axis_separators=[1])
B_1[0, 0] = A[n]
C_1[0, 0] = B_1[0, 0] + T.float32(1)
D[n] = C_1[0, 0] ]]
    check(transposed, transposed)
  end)

  it("computes in place in memory of the same extents", function()
    check([[
B = T.allocate([2, 3], "float32", "global")
B_1 = T.Buffer((2, 3), data=B, axis_separators=[1])
C = T.allocate([2, 3], "float32", "global")
C_1 = T.Buffer((2, 3), data=C, axis_separators=[1])
B_1[1, 2] = A[n]
C_1[1, 2] = B_1[1, 2] + T.float32(1)
D[n] = C_1[1, 2] ]], [[
B = T.allocate([2, 3], "float32", "global")
B_1 = T.Buffer((2, 3), data=B, axis_separators=[1])
C_1 = T.Buffer((2, 3), data=B, axis_separators=[1])
B_1[1, 2] = A[n]
C_1[1, 2] = B_1[1, 2] + T.float32(1)
D[n] = C_1[1, 2] ]])
  end)

  it("makes no memory of several extents part of tagged memory", function()
    local body = [[
B = T.allocate([2, 3], "float32", "local.L0A")
C = T.allocate([16], "float32", "local.L0A")
B_1 = T.Buffer((2, 3), data=B, scope="local.L0A", axis_separators=[1])
C_1 = T.Buffer((16,), data=C, scope="local.L0A")
B_1[1, 2] = A[n]
C_1[n] = A[n]
D[n] = B_1[1, 2] + C_1[n] ]]
    check(body, body)
  end)

  it("drops what nothing accesses", function()
    check([[
B = T.allocate([16], "float32", "global")
D[n] = A[n] ]], "D[n] = A[n]")
  end)

  it("gives memory of each part of a partitioned loop a variable of its own", function()
    local te = pl.te
    local A = te.placeholder({ 100 }, "float32", "A")
    local B = te.compute({ 100 }, function(i) return A(i) * 2 end, "B")
    local C = te.compute({ 98 }, function(i) return B(i) + B(i + 2) end, "C")
    for _, scope in ipairs { "global", "local" } do
      local s = te.create_schedule(C.op)
      local outer = s[C]:split(C.op.axis[1], 32)
      s[B]:set_scope(scope)
      s[B]:compute_at(s[C], outer)
      local context = pl.context { config = {
        ["tir.LoopPartition"] = { partition_const_loop = true } } }
      local lowered = pl.with(context, pl.lower, s, { args = { A, C } })
      assert.equal(scope == "local" and 2 or 1,
        select(2, tostring(lowered):gsub("T.allocate", "")))
      local input = pl.tensor.random({ 100 }, "float32", { seed = 1 })
      local rows = input:to_table()
      local out = pl.tir.run(lowered, { input, pl.tensor.full(0, { 98 }, "float32") })[2]
      for i, value in ipairs(out:to_table()) do
        assert.is_true(math.abs(value - 2 * (rows[i] + rows[i + 2])) < 1e-5)
      end
    end
  end)

  it("shares memory only where all of its sizes have a value", function()
    local mod = assert(pl.tir.parse [[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8,), "float32"), n: T.int32):
    X = T.allocate([n + 1], "float32", "global")
    X_1 = T.Buffer((n + 1,), data=X)
    X_1[n] = T.float32(1)
    A[0] = X_1[n]
    for i in range(7):
        Y = T.allocate([i + 2], "float32", "global")
        Y_1 = T.Buffer((i + 2,), data=Y)
        Y_1[i + 1] = T.float32(2)
        A[i + 1] = Y_1[i + 1] ]])
    local out = pl.passes["tir.StorageRewrite"]()(mod)
    local result = pl.tir.run(out, { pl.tensor.full(0, { 8 }, "float32"), 3 })[1]:to_table()
    assert.same({ 1, 2, 2, 2, 2, 2, 2, 2 }, result)
  end)
end)
