local pl = require "perilune"

local function parse(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function check(pass, before, after)
  local out = pl.passes["tir." .. pass]()(parse(before))
  assert.is_true(pl.equal(parse(after), out, { map_free_vars = true }), tostring(out))
end

local function fails(pass, body, message)
  local ok, err = pcall(pl.passes["tir." .. pass](), parse(body))
  assert.is_false(ok)
  assert.is_truthy(tostring(err):find(message, 1, true), tostring(err))
end

local sum = [[
for i, j in T.grid(8, 8):
    with T.block("sum"):
        vi = T.axis.spatial(8, i)
        vj = T.axis.reduce(8, j)
        T.reads(A[vi, vj])
        T.writes(B[vi])
        with T.init():
            B[vi] = T.float32(0)
        B[vi] = B[vi] + A[vi, vj] ]]

local lowered = [[
for i, j in T.grid(8, 8):
    with T.block("sum"):
        vi = T.axis.spatial(8, i)
        vj = T.axis.reduce(8, j)
        T.reads(A[vi, vj])
        T.writes(B[vi])
        if vj == 0:
            B[vi] = T.float32(0)
        B[vi] = B[vi] + A[vi, vj] ]]

local opaque = [[
for i, j in T.grid(8, 8):
    with T.block("sum"):
        T.reads(A[i, j])
        T.writes(B[i])
        if j == 0:
            B[i] = T.float32(0)
        B[i] = B[i] + A[i, j] ]]

local plain = [[
for i, j in T.grid(8, 8):
    if j == 0:
        B[i] = T.float32(0)
    B[i] = B[i] + A[i, j] ]]

describe("blocks", function()
  it("become plain statements, step by step", function()
    check("LowerInitBlock", sum, lowered)
    check("ConvertBlocksToOpaque", lowered, opaque)
    check("LowerOpaqueBlock", opaque, plain)
    local steps = pl.sequential { "tir.LowerInitBlock", "tir.ConvertBlocksToOpaque",
      "tir.LowerOpaqueBlock" }
    assert.is_true(pl.equal(parse(plain), steps(parse(sum))))
  end)

  it("need the steps before", function()
    fails("ConvertBlocksToOpaque", sum, "run tir.LowerInitBlock first")
    fails("LowerOpaqueBlock", sum, "run tir.LowerInitBlock first")
    fails("LowerOpaqueBlock", lowered, "run tir.ConvertBlocksToOpaque first")
  end)

  it("allocate their buffers, and run under their predicate", function()
    check("LowerOpaqueBlock", [[
for i in range(8):
    with T.block("b"):
        T.where(i < 7)
        T.reads()
        T.writes(B[i])
        C = T.alloc_buffer((4,), "float32")
        C[0] = T.float32(1)
        B[i] = C[0] ]], [[
for i in range(8):
    if i < 7:
        C = T.decl_buffer((4,), "float32")
        C[0] = T.float32(1)
        B[i] = C[0] ]])
  end)
end)

describe("tir.LowerOpaqueBlock", function()
  it("removes loops of one round, and binds loops to threads by attributes", function()
    check("LowerOpaqueBlock", [[
for i in range(3, 4):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        B[t] = A[i, t] ]], [[
t = T.launch_thread("threadIdx.x", 8)
B[t] = A[3, t] ]])
  end)

  it("writes pragmas as attributes", function()
    local out = pl.passes["tir.LowerOpaqueBlock"]()(parse [[
for i in T.serial(8, annotations={"pragma_unroll": 1, "other": 2}):
    B[i] = T.float32(0)]])
    assert.is_truthy(tostring(out):find('T.attr(i, "pragma_unroll", 1)', 1, true), tostring(out))
    assert.is_truthy(tostring(out):find('annotations={"other": 2}', 1, true), tostring(out))
  end)
end)

describe("tir.FlattenBuffer", function()
  it("accesses memory by one index, and allocates bytes for bool", function()
    check("FlattenBuffer", [[
C = T.decl_buffer((2, 4), "bool")
for i, j in T.grid(2, 4):
    C[i, j] = A[i, j] < B[j] ]], [[
C = T.allocate([8], "int8", "global")
C_1 = T.Buffer((8,), "int8", data=C)
A_1 = T.Buffer((64,), "float32", data=A.data)
B_1 = T.Buffer((8,), "float32", data=B.data)
for i, j in T.grid(2, 4):
    C_1[i * 4 + j] = T.Cast("int8", A_1[i * 8 + j] < B_1[j])]])
  end)
end)

describe("tir.RemoveWeightLayoutRewriteBlock", function()
  local remove = pl.passes["tir.RemoveWeightLayoutRewriteBlock"]

  local function main(params, allocation, block)
    return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(%s):
    T.func_attr({"layout_free_buffers": [0]})
    with T.block("root"):
        T.reads()
        T.writes()
        D = T.alloc_buffer((8,))
%s        for i, j in T.grid(8, 8):
            with T.block("layout_rewrite"):
                vi, vj = T.axis.remap("SS", [i, j])
%s
        for i, j, k in T.grid(2, 8, 4):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SRS", [i, j, k])
                T.reads(C[vi, vj, vk])
                T.writes(B[vi * 4 + vk])
                with T.init():
                    B[vi * 4 + vk] = T.float32(0)
                B[vi * 4 + vk] = B[vi * 4 + vk] + C[vi, vj, vk]
]]):format(params, allocation, (block:gsub("[^\n]+", "                %0")))))
  end

  local old = 'A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")'
  local allocation = "        C = T.alloc_buffer((2, 8, 4))\n"
  local copy = [[
T.reads(A[vi, vj])
T.writes(C[vi // 4, vj, vi % 4])
T.block_attr({"meta_schedule.layout_rewrite_preproc": T.bool(True)})
]]
  local store = "C[vi // 4, vj, vi % 4] = A[vi, vj]"

  it("passes weights in the layout into which a block puts them", function()
    local out = remove()(main(old, allocation, copy .. store))
    local after = main('C: T.Buffer((2, 8, 4), "float32"), B: T.Buffer((8,), "float32")', "", [[
T.reads()
T.writes()
T.block_attr({"meta_schedule.layout_rewrite_preproc": T.bool(True)})
T.evaluate(0)]])
    assert.is_true(pl.equal(after, out, { map_free_vars = true }), pl.tir.script(out))
    local mod = main(old, allocation, (copy:gsub("True", "False")) .. store)
    assert.is_true(rawequal(mod, remove { skip_ndarray_rewrite = true }(mod)))
  end)

  local function refuses(message, before)
    assert.error_matches(function() remove()(before) end, message, 1, true)
  end

  it("refuses blocks that are no copies of a parameter", function()
    refuses("block 'layout_rewrite' is no single copy from a buffer's element",
      main(old, allocation, copy .. "C[vi // 4, vj, vi % 4] = A[vi, vj] + T.float32(1)"))
    refuses("block 'layout_rewrite' is no single copy from a buffer's element",
      main(old, allocation, copy .. store .. "\n" .. store))
    refuses("block 'layout_rewrite' copies from a buffer that is no parameter",
      main(old, allocation, (copy:gsub("A%[vi, vj", "D[vi")) .. "C[vi // 4, vj, vi % 4] = D[vi]"))
    refuses("block 'layout_rewrite' copies into a buffer that no block allocates",
      main(old .. ', C: T.Buffer((2, 8, 4), "float32")', "", copy .. store))
  end)
end)
