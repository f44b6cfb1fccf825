local pl = require "perilune"

local function parse(body, params)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(%s):
    T.func_attr({"from_legacy_te_schedule": T.bool(True)})
%s
]]):format(params or [[A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")]],
    body:gsub("[^\n]+", "    %0"))))
end

local function check(pass, before, after, params, options)
  local out = pl.passes["tir." .. pass](options)(parse(before, params))
  assert.is_true(pl.equal(parse(after, params), out, { map_free_vars = true }), tostring(out))
end

describe("tir.TextureFlatten", function()
  it("uses the memory of parameters as it is", function()
    check("TextureFlatten", [[
T.realize(B[0:4, 0:8])
B[0, 0] = A[0, 0] ]], "B[0, 0] = A[0, 0]")
  end)

  it("leaves what is not made of tensor expressions alone", function()
    local mod = assert(pl.tir.parse [[
from tvm.script import tir as T

@T.prim_func
def main(B: T.Buffer((4,), "float32")):
    T.realize(B[0:4])
    B[0] = T.float32(0)
]])
    assert.is_true(rawequal(mod, pl.passes["tir.TextureFlatten"]()(mod)))
  end)
end)

describe("tir.BufferShapeLegalize", function()
  it("makes a buffer as large as what is realised of it, from 0 on", function()
    check("BufferShapeLegalize", [[
for k in range(2):
    C = T.Buffer((4, 8), "float32")
    T.realize(C[k * 2:k * 2 + 2, 0:8])
    C[k * 2 + 1, 3] = A[0, 0]
    B[0, 0] = C[k * 2, 3] ]], [[
for k in range(2):
    C = T.Buffer((2, 8), "float32")
    T.realize(C[0:2, 0:8])
    C[k * 2 + 1 - k * 2, 3] = A[0, 0]
    B[0, 0] = C[k * 2 - k * 2, 3] ]])
  end)
end)

describe("tir.BufferStrideLegalize", function()
  it("gives strides to a buffer whose axis is aligned", function()
    check("BufferStrideLegalize", [[
C = T.Buffer((4, 8), "float32")
T.attr(C, "buffer_dim_align", T.tvm_tuple(0, 16, 1))
T.realize(C[0:4, 0:8])
C[1, 3] = A[0, 0] ]], [[
C = T.Buffer((4, 8), "float32", strides=(17, 1))
T.realize(C[0:4, 0:8])
C[1, 3] = A[0, 0] ]])
  end)

  it("refuses an axis that is not there", function()
    assert.error_matches(function()
      pl.passes["tir.BufferStrideLegalize"]()(parse [[
C = T.Buffer((4, 8), "float32")
T.attr(C, "buffer_dim_align", T.tvm_tuple(2, 16, 1))
T.realize(C[0:4, 0:8])
C[1, 3] = A[0, 0] ]])
    end, "buffer_dim_align needs an axis, a positive factor and an offset")
  end)
end)

describe("tir.StorageFlatten", function()
  it("allocates what is realised, and computes one index", function()
    check("StorageFlatten", [[
C = T.Buffer((4, 8), "float32")
T.realize(C[0:4, 0:8])
for i, j in T.grid(4, 8):
    C[i, j] = A[i, j]
for i, j in T.grid(4, 8):
    B[i, j] = C[i, 7 - j] ]], [[
C = T.allocate([32], "float32", "global")
C_1 = T.Buffer((32,), data=C)
A_1 = T.Buffer((32,), data=A.data)
B_1 = T.Buffer((32,), data=B.data)
for i, j in T.grid(4, 8):
    C_1[i * 8 + j] = A_1[i * 8 + j]
for i, j in T.grid(4, 8):
    B_1[i * 8 + j] = C_1[i * 8 + 7 - j] ]])
  end)

  it("keeps a group of axes for each axis separator", function()
    check("StorageFlatten", "A[i, j, k] = 1", [[
A_1 = T.Buffer((2, 12), "int32", data=A.data, axis_separators=[1])
A_1[i, j * 4 + k] = 1]],
      [[A: T.Buffer((2, 3, 4), "int32", axis_separators=[1]), i: T.int32, j: T.int32, k: T.int32]])
  end)

  it("stores bool as int8", function()
    check("StorageFlatten", [[
for i in range(4):
    A[i] = not A[i] ]], [[
A_1 = T.Buffer((4,), "int8", data=A.data)
for i in range(4):
    A_1[i] = T.Cast("int8", not T.Cast("bool", A_1[i]))]], [[A: T.Buffer((4,), "bool")]])
  end)

  it("says how large buffers are where that is asked for", function()
    check("StorageFlatten", [[
for i in range(4):
    A[i] = 1]], [[
for i in range(4):
    with T.attr(A.data, "buffer_bound", T.tvm_tuple(T.Mul(1, 4))):
        A[i] = 1]], [[A: T.Buffer((4,), "int32")]], { create_bound_attribute = true })
  end)

  it("removes assertions that are proved, and keeps others", function()
    check("StorageFlatten", [[
for i in range(4):
    assert i * 4 % 4 == 0, "never"
    assert i < 3, "at 3"
    A[i] = 1]], [[
for i in range(4):
    assert i < 3, "at 3"
    A[i] = 1]], [[A: T.Buffer((4,), "int32")]])
  end)
end)

describe("tir.FlattenBuffer", function()
  local function flattens(before, after)
    local out = pl.passes["tir.FlattenBuffer"]()(assert(pl.tir.parse(before)))
    assert.is_true(pl.equal(assert(pl.tir.parse(after)), out, { map_free_vars = true }),
      tostring(out))
    return out
  end

  it("flattens buffers of blocks, and what they read and write", function()
    flattens([[
@T.prim_func
def main(B: T.Buffer((16,), "float32")):
    A = T.alloc_buffer((4, 8), axis_separators=[1])
    C = T.alloc_buffer((4, 4))
    for i in range(2):
        with T.block("b"):
            T.reads(A[i, 0:8], C[i:i + 2, 1:3])
            T.writes(B[i])
            B[i] = A[i, 3] + C[i, 1] ]], [[
@T.prim_func
def main(B: T.Buffer((16,), "float32")):
    A = T.alloc_buffer((4, 8), axis_separators=[1])
    C = T.alloc_buffer((16,))
    for i in range(2):
        with T.block("b"):
            B_1 = T.Buffer((16,), data=B.data)
            T.reads(A[i, 0:8], C[i * 4 + 1:i * 4 + 1 + 6])
            T.writes(B_1[i])
            B_1[i] = A[i, 3] + C[i * 4 + 1] ]])
  end)

  it("allocates a declared buffer by its groups of axes", function()
    flattens([[
@T.prim_func
def main():
    A = T.decl_buffer((2, 3, 5), axis_separators=[2])
    for i, j, k in T.grid(2, 3, 5):
        A[i, j, k] = T.float32(0)]], [[
@T.prim_func
def main():
    A = T.allocate([6, 5], "float32", "global")
    A_1 = T.Buffer((6, 5), data=A, axis_separators=[1])
    for i, j, k in T.grid(2, 3, 5):
        A_1[i * 3 + j, k] = T.float32(0)]])
  end)

  it("refuses views", function()
    local mod = assert(pl.tir.parse [[
@T.prim_func
def main(A: T.Buffer((4, 8), "float32")):
    with T.block("b"):
        T.reads()
        T.writes(A[0:2, 0:8])
        V = T.match_buffer(A[0:2, 0:8], (2, 8), strides=(8, 1))
        V[0, 0] = T.float32(0)]])
    assert.error_matches(function() pl.passes["tir.FlattenBuffer"]()(mod) end,
      "'V' is a view of a region")
  end)
end)
