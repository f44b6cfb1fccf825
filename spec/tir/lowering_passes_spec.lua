-- Golden pairs of passes of phases 1 and 2 over PrimFuncs.

local pl = require "perilune"

local function parse(body, signature, attrs)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T
@T.prim_func
def main(%s):
%s%s
]]):format(signature or 'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")',
    attrs and ("    T.func_attr(%s)\n"):format(attrs) or "", body:gsub("[^\n]+", "    %0"))))
end

local function check(pass, before, after, config)
  local context = pl.context { config = config }
  local out = pl.with(context, pass, before)
  assert.is_true(pl.equal(after, out, { map_free_vars = true }), tostring(out))
  return out
end

describe("tir.NarrowDataType", function()
  local narrow = pl.passes["tir.NarrowDataType"]
  local wide = 'A: T.Buffer((T.int64(4096),), "float32"), B: T.Buffer((T.int64(4096),), "float32")'

  it("narrows variables and immediates of indices", function()
    local before = parse([[
for i, j in T.grid(T.int64(64), T.int64(64)):
    B[i * T.int64(64) + j] = A[j * T.int64(64) + i] ]], wide)
    local after = check(narrow { target_bits = 32 }, before, parse([[
for i, j in T.grid(64, 64):
    B[i * 64 + j] = A[j * 64 + i] ]], wide))
    assert(pl.tir.check(before, after, { atol = 0, rtol = 0 }))
  end)

  it("leaves what does not fit", function()
    local before = parse([[
for i in range(T.int64(64)):
    B[i * T.int64(1000000000) // T.int64(1000000000)] = A[i] ]], wide)
    assert.is_true(rawequal(before, narrow { target_bits = 32 }(before)))
  end)

  it("casts the narrower of two operands elsewhere", function()
    local signature = 'B: T.Buffer((T.int64(4),), "int64"), n: T.int64'
    check(narrow { target_bits = 32 }, parse([[
for i in range(T.int64(4)):
    B[i] = i * n]], signature), parse([[
for i in range(T.int64(4)):
    B[i] = i * n]], signature))
    check(narrow { target_bits = 32 }, parse([[
for i in range(T.int64(4)):
    B[i] = i + T.int64(1)]], signature), parse([[
for i in range(4):
    B[i] = T.Cast("int64", i + 1)]], signature))
  end)
end)

describe("tir.ForceNarrowIndexToInt32", function()
  local force = pl.passes["tir.ForceNarrowIndexToInt32"]

  it("narrows shapes, loops, blocks and immediates, whatever their values", function()
    check(force(), parse([[
for i, j in T.grid(n, T.int64(64)):
    with T.block("b"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vj, (vi + T.int64(1)) % T.int64(4)] + T.Cast("float32", vi * T.int64(2))]],
      'A: T.Buffer((T.int64(64), T.int64(4)), "float32"), n: T.int64, '
      .. 'B: T.Buffer((n, T.int64(64)), "float32")'), parse([[
for i, j in T.grid(n, 64):
    with T.block("b"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vj, (vi + 1) % 4] + T.Cast("float32", vi * 2)]],
      'A: T.Buffer((64, 4), "float32"), n: T.int32, B: T.Buffer((n, 64), "float32")'))
  end)

  it("leaves variables that stand in no index", function()
    check(force(), parse("B[T.int64(0)] = T.Cast(\"float32\", n * T.int64(3))",
      'B: T.Buffer((T.int64(4),), "float32"), n: T.int64'),
      parse("B[0] = T.Cast(\"float32\", n * T.int64(3))",
      'B: T.Buffer((4,), "float32"), n: T.int64'))
  end)

  it("casts the value of a variable that is an index", function()
    check(force(), parse("v: T.int64 = n + T.int64(1)\nB[v] = T.float32(1)",
      'B: T.Buffer((T.int64(4),), "float32"), n: T.int64'),
      parse("v: T.int32 = T.Cast(\"int32\", n + T.int64(1))\nB[v] = T.float32(1)",
      'B: T.Buffer((4,), "float32"), n: T.int64'))
  end)

  it("refuses buffers of int64 and immediates that do not fit", function()
    for signature, message in pairs {
      ['A: T.Buffer((4,), "int64")'] = "the buffer 'A' of a parameter has dtype int64",
      ['A: T.Buffer((T.int64(4294967296),), "float32")'] = "4294967296 does not fit in int32",
    } do
      local ok, problem = pcall(force(), parse("T.evaluate(0)", signature))
      assert.is_false(ok)
      assert.is_truthy(tostring(problem):find(message, 1, true), tostring(problem))
    end
    local ok, problem = pcall(force(), parse([[
with T.block("root"):
    C = T.alloc_buffer((4,), "int64")
    C[0] = T.int64(1)]]))
    assert.is_false(ok)
    assert.is_truthy(tostring(problem):find("the buffer 'C' that a block allocates", 1, true))
  end)
end)

describe("tir.LowerMatchBuffer", function()
  local lower = pl.passes["tir.LowerMatchBuffer"]
  local view = [[
for i in range(8):
    with T.block(""):
        T.reads(A[i * 8:i * 8 + 8])
        T.writes(B[i * 8:i * 8 + 8])
        S = T.match_buffer(A[i * 8:i * 8 + 8], (%s,), offset_factor=%d)
        for j in range(8):
            B[i * 8 + j] = S[j] + T.Cast("float32", S.elem_offset)]]

  it("accesses the buffer behind a view", function()
    check(lower(), parse(view:format("8", 8)), parse [[
for i in range(8):
    with T.block(""):
        T.reads(A[i * 8:i * 8 + 8])
        T.writes(B[i * 8:i * 8 + 8])
        for j in range(8):
            B[i * 8 + j] = A[i * 8 + j] + T.Cast("float32", i * 8)]])
  end)

  it("refuses views that do not fit their region", function()
    assert.error_matches(function() lower()(parse(view:format("4", 8))) end,
      "the shape of the view 'S' is not what its region has")
    assert.error_matches(function() lower()(parse(view:format("8", 3))) end,
      "not known to be a multiple of its offset_factor 3")
  end)
end)

describe("tir.PlanAndUpdateBufferAllocationLocation", function()
  local plan = pl.passes["tir.PlanAndUpdateBufferAllocationLocation"]

  it("allocates memory in the loop that has all accesses", function()
    local before, after = parse [[
S = T.alloc_buffer((64,))
for i in range(64):
    with T.block("s"):
        v = T.axis.spatial(64, i)
        T.reads(A[v])
        T.writes(S[v])
        S[v] = A[v]
    with T.block("b"):
        v = T.axis.spatial(64, i)
        T.reads(S[v])
        T.writes(B[v])
        B[v] = S[v] ]], parse [[
for i in range(64):
    with T.block(""):
        T.reads(A[i])
        T.writes(B[i])
        S = T.alloc_buffer((64,))
        with T.block("s"):
            v = T.axis.spatial(64, i)
            T.reads(A[v])
            T.writes(S[v])
            S[v] = A[v]
        with T.block("b"):
            v = T.axis.spatial(64, i)
            T.reads(S[v])
            T.writes(B[v])
            B[v] = S[v] ]]
    assert(pl.tir.check(before, check(plan(), before, after)))
  end)

  it("keeps the sum of a reduction outside of its loop", function()
    local before = parse [[
S = T.alloc_buffer((1,))
for i in range(64):
    with T.block("s"):
        v = T.axis.reduce(64, i)
        T.reads(A[v])
        T.writes(S[0], B[0])
        with T.init():
            S[0] = T.float32(0)
        S[0] = S[0] + A[v]
        B[0] = S[0] ]]
    assert.is_true(rawequal(before, plan()(before)))
  end)
end)

describe("tir.CompactBufferAllocation", function()
  local compact = pl.passes["tir.CompactBufferAllocation"]

  it("makes buffers as large as what is touched of them", function()
    local before, after = parse [[
for i in range(8):
    S = T.decl_buffer((64,))
    for j in range(8):
        S[i * 8 + j] = A[i * 8 + j]
    for j in range(8):
        B[i * 8 + j] = S[i * 8 + j] ]], parse [[
for i in range(8):
    S = T.decl_buffer((8,))
    for j in range(8):
        S[i * 8 + j - i * 8] = A[i * 8 + j]
    for j in range(8):
        B[i * 8 + j] = S[i * 8 + j - i * 8] ]]
    assert(pl.tir.check(before, check(compact(), before, after), { atol = 0, rtol = 0 }))
  end)

  it("keeps those whose indices are only known inside", function()
    local before = parse([[
S = T.decl_buffer((64,))
for j in range(64):
    k: T.int32 = I[j] % 64
    S[k] = A[j]
    B[j] = S[k] ]], 'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), '
      .. 'I: T.Buffer((64,), "int32")')
    assert(pl.tir.check(before, compact()(before), { atol = 0, rtol = 0 }))
  end)

  it("uses the conditions around an access", function()
    local before, after = parse [[
for i in range(2):
    S = T.decl_buffer((2, 30))
    for j, k in T.grid(4, 8):
        if j * 8 + k < 30:
            S[(i * 30 + j * 8 + k) // 30, (i * 30 + j * 8 + k) % 30] = A[i * 30 + j * 8 + k]
    for j in range(30):
        B[i * 30 + j] = S[i, j] ]], parse [[
for i in range(2):
    S = T.decl_buffer((1, 30))
    for j, k in T.grid(4, 8):
        if j * 8 + k < 30:
            S[(i * 30 + j * 8 + k) // 30 - i, (i * 30 + j * 8 + k) % 30] = A[i * 30 + j * 8 + k]
    for j in range(30):
        B[i * 30 + j] = S[i - i, j] ]]
    assert(pl.tir.check(before, check(compact(), before, after), { atol = 0, rtol = 0 }))
  end)

  it("gives strides to buffers that a block wants aligned", function()
    local text = [==[
for i in range(4):
    with T.block("root"):
        S = T.alloc_buffer((4, 16)%s)
        for j in range(16):
            with T.block("s"):
                T.reads(A[i * 16 + j])
                T.writes(S[%s, j])
                T.block_attr({"buffer_dim_align": [[0, 0, 16, 15]]})
                S[%s, j] = A[i * 16 + j]
        for j in range(16):
            B[i * 16 + j] = S[%s, j] ]==]
    local before = parse(text:format("", "i", "i", "i"))
    local after = parse((text:format(", strides=(31, 1)", "i - i", "i - i", "i - i")
      :gsub("%(%(4, 16%)", "((1, 16)")))
    assert(pl.tir.check(before, check(compact(), before, after), { atol = 0, rtol = 0 }))
  end)

  it("grows with accesses out of bounds unless it is strict", function()
    local before = parse [[
S = T.decl_buffer((60,))
for j in range(64):
    S[j] = A[j]
for j in range(60):
    B[j] = S[j] ]]
    assert.is_true(rawequal(before, compact { is_strict = true }(before)))
    check(compact { is_strict = false }, before, parse [[
S = T.decl_buffer((64,))
for j in range(64):
    S[j] = A[j]
for j in range(60):
    B[j] = S[j] ]])
  end)
end)

describe("tir.BufferBindUnwrapper", function()
  local legacy = '{"from_legacy_te_schedule": T.bool(True)}'

  it("accesses the buffer behind a binding", function()
    check(pl.passes["tir.BufferBindUnwrapper"](), parse([[
for i in range(4):
    x = T.Buffer((16,), offset_factor=1)
    with T.attr([x, A], "buffer_bind_scope", T.tvm_tuple(i * 16, 16)):
        for j in range(16):
            B[i * 16 + j] = x[j] + T.Cast("float32", x.elem_offset)]], nil, legacy), parse([[
for i in range(4):
    for j in range(16):
        B[i * 16 + j] = A[i * 16 + j] + T.Cast("float32", i * 16)]], nil, legacy))
  end)
end)

describe("tir.InjectDoubleBuffer", function()
  local inject = pl.pipeline "tir.InjectDoubleBuffer,tir.Simplify"
  local copy = [[
for i in range(%s):
    S = T.allocate([8], "float32", "global")
    S_1 = T.Buffer((8,), data=S)
    with T.attr(S, "double_buffer_scope", 1):
        for j in range(8):
            S_1[j] = A[i * 8 + j]
    for j in range(8):
        B[i * 8 + j] = S_1[j] * T.float32(2)]]

  it("fills the other half for the next round", function()
    local before = parse(copy:format "8")
    local after = pl.with(pl.context { config = { ["tir.InjectDoubleBuffer.split_loop"] = 0 } },
      inject, before)
    assert.is_true(pl.equal(parse [[
S = T.allocate([16], "float32", "global")
S_1 = T.Buffer((16,), data=S)
for j in range(8):
    S_1[j] = A[j]
for i in range(8):
    if i < 7:
        with T.attr(S, "double_buffer_write", 1):
            for j in range(8):
                S_1[(i + 1) % 2 * 8 + j] = A[i * 8 + j + 8]
    for j in range(8):
        B[i * 8 + j] = S_1[i % 2 * 8 + j] * T.float32(2)]], after), tostring(after))
    assert(pl.tir.check(before, after, { atol = 0, rtol = 0 }))
  end)

  it("declares the buffer around the loop, where both halves are used", function()
    local before = parse [[
for i in range(8):
    S = T.decl_buffer((8,))
    with T.attr(S.data, "double_buffer_scope", 1):
        for j in range(8):
            S[j] = A[i * 8 + j]
    for j in range(8):
        B[i * 8 + j] = S[j] * T.float32(2)]]
    local after = pl.with(pl.context { config = { ["tir.InjectDoubleBuffer.split_loop"] = 0 } },
      inject, before)
    assert.is_true(pl.equal(parse [[
S = T.decl_buffer((16,))
for j in range(8):
    S[j] = A[j]
for i in range(8):
    if i < 7:
        with T.attr(S.data, "double_buffer_write", 1):
            for j in range(8):
                S[(i + 1) % 2 * 8 + j] = A[i * 8 + j + 8]
    for j in range(8):
        B[i * 8 + j] = S[i % 2 * 8 + j] * T.float32(2)]], after), tostring(after))
    for _, split in ipairs { 0, 1, 2, 4 } do
      local context = pl.context { config = { ["tir.InjectDoubleBuffer.split_loop"] = split } }
      assert(pl.tir.check(before, pl.with(context, inject, before), { atol = 0, rtol = 0 }))
    end
  end)

  it("computes the same, however the loop is split", function()
    for _, split in ipairs { 0, 1, 2, 4 } do
      local context = pl.context { config = { ["tir.InjectDoubleBuffer.split_loop"] = split } }
      local signature = 'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32'
      for _, rounds in ipairs { "8", "7", "1", "n % 9" } do
        local before = parse(copy:format(rounds), signature)
        assert(pl.tir.check(before, pl.with(context, inject, before), { atol = 0, rtol = 0,
          rounds = 6 }))
      end
    end
  end)

  it("takes memory that LoopPartition allocates in several parts of a loop", function()
    local before = parse [[
for i in range(4):
    for k in range(3):
        S = T.allocate([1], "float32", "global")
        S_1 = T.Buffer((1,), data=S)
        with T.attr(S, "double_buffer_scope", 1):
            S_1[0] = A[i * 3 + k]
        if T.likely(k < 2):
            B[i * 3 + k] = S_1[0] ]]
    for _, split in ipairs { 0, 1, 2 } do
      local context = pl.context { config = {
        ["tir.LoopPartition.partition_const_loop"] = true,
        ["tir.InjectDoubleBuffer.split_loop"] = split } }
      local after = pl.with(context, pl.pipeline "tir.LoopPartition,tir.InjectDoubleBuffer", before)
      assert(pl.tir.check(before, after, { atol = 0, rtol = 0 }))
    end
  end)

  it("computes the same where elements are read and stored as vectors", function()
    local before = parse [[
for i in range(8):
    S = T.allocate([8], "float32", "global")
    S_1 = T.Buffer((8,), data=S)
    with T.attr(S, "double_buffer_scope", 1):
        S_1[0:8] = A[i * 8:i * 8 + 8]
    B[i * 8:i * 8 + 8] = S_1[0:8] * T.Broadcast(T.float32(2), 8)]]
    for _, split in ipairs { 0, 1, 2 } do
      local context = pl.context { config = { ["tir.InjectDoubleBuffer.split_loop"] = split } }
      assert(pl.tir.check(before, pl.with(context, inject, before), { atol = 0, rtol = 0 }))
    end
  end)

  it("refuses what it cannot do by name", function()
    assert.error_matches(function()
      pl.with(pl.context { config = { ["tir.InjectDoubleBuffer.split_loop"] = 3 } }, inject,
        parse(copy:format "8"))
    end, "split_loop must be 0, 1 or even")
    assert.error_matches(function()
      inject(parse [[
S = T.allocate([8], "float32", "global")
S_1 = T.Buffer((8,), data=S)
with T.attr(S, "double_buffer_scope", 1):
    S_1[0] = A[0]
B[0] = S_1[0] ]])
    end, "must be inside of a loop")
  end)
end)

describe("tir.InjectVirtualThread", function()
  local inject = pl.pipeline "tir.InjectVirtualThread,tir.Simplify"

  it("runs what depends on the thread once for each", function()
    check(inject, parse [[
v = T.launch_thread("vthread", 2)
S = T.allocate([4], "float32", "local")
S_1 = T.Buffer((4,), data=S, scope="local")
for i in range(4):
    S_1[i] = A[i * 2 + v]
for i in range(4):
    B[v * 4 + i] = S_1[i] ]], parse [[
S = T.allocate([8], "float32", "local")
S_1 = T.Buffer((16,), data=S, scope="local")
for i in range(4):
    S_1[i] = A[i * 2]
    S_1[i + 4] = A[i * 2 + 1]
for i in range(4):
    B[i] = S_1[i]
    B[i + 4] = S_1[i + 4] ]])
  end)

  it("keeps a loop over many threads, and what does not depend on them", function()
    check(inject, parse [[
v = T.launch_thread("vthread", 32)
A[40] = A[50]
B[v] = A[v] ]], parse [[
A[40] = A[50]
for v_s in range(32):
    B[v_s] = A[v_s] ]])
  end)

  it("takes threads in threads from the inside out", function()
    check(inject, parse [[
v = T.launch_thread("vthread", 2)
w = T.launch_thread("vthread", 2)
B[v * 2 + w] = A[w] ]], parse [[
B[0] = A[0]
B[2] = A[0]
B[1] = A[1]
B[3] = A[1] ]])
  end)
end)

describe("tir.UnrollLoop", function()
  it("takes away the attributes that tell it what to unroll", function()
    check(pl.passes["tir.UnrollLoop"](), parse [[
with T.attr(0, "pragma_auto_unroll_max_step", 16):
    for i in range(2):
        B[i] = A[i] ]], parse [[
B[0] = A[0]
B[1] = A[1] ]])
  end)
end)

describe("tir.CommonSubexprElimTIR", function()
  it("binds a variable inside of those that its value uses", function()
    local signature = 'A: T.Buffer((512,), "float32"), B: T.Buffer((512,), "float32")'
    local before = parse([[
for x, i, j, k in T.grid(4, 4, 8, 4):
    B[x * 128 + i * 32 + j] = B[x * 128 + i * 32 + j] + A[x * 128 + i * 32 + k] * A[x * 128 + k] ]],
      signature)
    local after = pl.passes["tir.CommonSubexprElimTIR"]()(before)
    assert.is_true(pl.verify(after))
    assert(pl.tir.check(before, after))
  end)
end)
