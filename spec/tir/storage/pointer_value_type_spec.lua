local pl = require "perilune"

local rewrite = pl.passes["tir.PointerValueTypeRewrite"]

local function module_of(params, body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(%s):
%s
]]):format(params, (body:gsub("[^\n]+", "    %0")))))
end

local function rewrites(params, before, after_params, after)
  local mod = module_of(params, before)
  local out = rewrite()(mod)
  assert.is_true(pl.equal(out, module_of(after_params, after), { map_free_vars = true }),
    pl.tir.script(out))
  return mod, out
end

local function unchanged(params, body)
  local mod = module_of(params, body)
  assert.is_true(rawequal(mod, rewrite()(mod)))
end

local vectors = 'A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")'

describe("tir.PointerValueTypeRewrite", function()
  it("makes memory that is accessed as vectors one of vectors", function()
    rewrites(vectors, [[
for i in range(4):
    B[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4] ]],
      'A: T.Buffer((4,), "float32x4"), B: T.Buffer((4,), "float32x4")', [[
for i in range(4):
    B[T.Div(i * 4, 4)] = A[T.Div(i * 4, 4)] ]])
  end)

  it("does so with memory that the function allocates, and computes the same", function()
    local function text(extent, dtype, load, store)
      return ([[
C = T.allocate([%d], "%s", "global")
C_1 = T.Buffer((%d,), "%s", data=C)
for i in range(4):
    C_1[%s] = T.Broadcast(A[i], 4)
for i in range(2):
    B[i * 8] = T.Shuffle([C_1[%s] ], [1])]]):format(extent, dtype, extent, dtype, store, load)
    end
    local mod, out = rewrites(vectors, text(16, "float32", "i * 8:i * 8 + 4", "i * 4:i * 4 + 4"),
      vectors, text(4, "float32x4", "T.Div(i * 8, 4)", "T.Div(i * 4, 4)"))
    assert(pl.tir.check(mod, out))
  end)

  it("takes a single element out of its vector where its lane is known", function()
    rewrites(vectors, [[
for i in range(4):
    A[i * 4:i * 4 + 4] = T.Broadcast(T.float32(1), 4)
    B[i] = A[i * 4 + 3] ]], 'A: T.Buffer((4,), "float32x4"), B: T.Buffer((16,), "float32")', [[
for i in range(4):
    A[T.Div(i * 4, 4)] = T.Broadcast(T.float32(1), 4)
    B[i] = T.Shuffle([A[T.Div(i * 4 + 3, 4)] ], [3])]])
    unchanged(vectors, [[
for i in range(4):
    A[i * 4:i * 4 + 4] = T.Broadcast(T.float32(1), 4)
    B[i] = A[i] ]])
  end)

  it("gives memory the dtype by which it is accessed, also through pointers", function()
    local body = [[
C = T.allocate([16], "%s", "global")
C_1 = T.Buffer((16,), "int32", data=C)
C_1[0] = 1
T.evaluate(T.tvm_access_ptr(T.type_annotation("int32"), C, 8, 4, 1))
A[0] = T.Cast("float32", C_1[0])]]
    rewrites(vectors, body:format "float32", vectors, body:format "int32")
    unchanged(vectors, (body:format "float32" .. "\nC_2 = T.Buffer((16,), data=C)\nB[0] = C_2[0]"))
  end)

  it("leaves memory alone that is accessed in several ways, or whose vectors do not fit", function()
    unchanged(vectors, "B[0:4] = A[0:4]\nB[0] = T.float32(1)\nA[4] = B[0]\nA[0:2] = B[0:2]")
    unchanged(vectors, "for i in range(4):\n    B[i:i + 4] = A[i:i + 4]")
    unchanged('A: T.Buffer((18,), "float32")', "A[0:4] = T.Broadcast(T.float32(1), 4)")
    unchanged('A: T.Buffer((16,), "float32", strides=(2,))',
      "A[0:4] = T.Broadcast(T.float32(1), 4)")
    unchanged(vectors, "A[0:8:2] = T.Broadcast(T.float32(1), 4)\nB[0] = T.float32(0)")
  end)
end)
