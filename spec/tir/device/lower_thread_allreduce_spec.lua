local pl = require "perilune"

local lower = pl.passes["tir.LowerThreadAllreduce"]

local cuda = '"kind": "cuda", "thread_warp_size": 4, "max_num_threads": 16'
local metal = '"kind": "metal", "thread_warp_size": 4, "max_num_threads": 16'
local vulkan = '"kind": "vulkan", "thread_warp_size": 4'

local function module_of(target, body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.func_attr({"target": T.target({"keys": ["gpu"], %s})})
%s
]]):format(target, (body:gsub("[^\n]+", "    %0")))))
end

local scope = [[with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", ]]
  .. [[T.reinterpret("handle", T.uint64(0))):]]

-- ty and tx threads, of which those of tx reduce together.
local function reduction(ty, tx, condition)
  return ([[
ty = T.launch_thread("threadIdx.y", %d)
C = T.allocate([1], "float32", "local")
tx = T.launch_thread("threadIdx.x", %d)
C_1 = T.Buffer((1,), data=C, scope="local")
%s
    T.tvm_thread_allreduce(T.uint32(1), A[ty * 8 + tx], %s, C_1[0], tx)
if tx == 0:
    B[ty] = C_1[0] ]]):format(ty, tx, scope, condition or "T.bool(True)")
end

local function lowers(target, before, after)
  local out = lower()(module_of(target, before))
  assert.is_true(pl.equal(out, module_of(target, after), { map_free_vars = true }),
    pl.tir.script(out))
  assert.is_true(rawequal(out, lower()(out)))
end

local function refuses(message, body, target)
  assert.error_matches(function() lower()(module_of(target or cuda, body)) end, message, 1, true)
end

describe("tir.LowerThreadAllreduce", function()
  it("exchanges registers in a warp", function()
    lowers(cuda, reduction(1, 4), ([[
ty = T.launch_thread("threadIdx.y", 1)
C = T.allocate([1], "float32", "local")
tx = T.launch_thread("threadIdx.x", 4)
C_1 = T.Buffer((1,), data=C, scope="local")
%s
    mask = T.decl_buffer((1,), "uint32", scope="local")
    t0 = T.decl_buffer((1,), scope="local")
    C_1[0] = A[ty * 8 + tx]
    mask[0] = T.tvm_warp_activemask()
    t0[0] = T.tvm_warp_shuffle_down(mask[0], C_1[0], 2, 4, 4)
    C_1[0] = C_1[0] + t0[0]
    t0[0] = T.tvm_warp_shuffle_down(mask[0], C_1[0], 1, 4, 4)
    C_1[0] = C_1[0] + t0[0]
    C_1[0] = T.tvm_warp_shuffle(mask[0], C_1[0], 0, 4, 4)
if tx == 0:
    B[ty] = C_1[0] ]]):format(scope))
  end)

  it("masks the threads of a group that is part of a warp", function()
    lowers(cuda, reduction(2, 2), ([[
ty = T.launch_thread("threadIdx.y", 2)
C = T.allocate([1], "float32", "local")
tx = T.launch_thread("threadIdx.x", 2)
C_1 = T.Buffer((1,), data=C, scope="local")
%s
    mask = T.decl_buffer((1,), "uint32", scope="local")
    t0 = T.decl_buffer((1,), scope="local")
    C_1[0] = A[ty * 8 + tx]
    mask[0] = T.bitwise_and(T.tvm_warp_activemask(),
        T.shift_left(T.uint32(3), T.uint32(2) * T.Cast("uint32", ty)))
    t0[0] = T.tvm_warp_shuffle_down(mask[0], C_1[0], 1, 4, 4)
    C_1[0] = C_1[0] + t0[0]
    C_1[0] = T.tvm_warp_shuffle(mask[0], C_1[0], 2 * ty, 4, 4)
if tx == 0:
    B[ty] = C_1[0] ]]):format(scope))
  end)

  it("takes the identity where the condition does not hold, and no value of a thread that is not",
    function()
      lowers(cuda, reduction(1, 3, "tx < 2"), ([[
ty = T.launch_thread("threadIdx.y", 1)
C = T.allocate([1], "float32", "local")
tx = T.launch_thread("threadIdx.x", 3)
C_1 = T.Buffer((1,), data=C, scope="local")
%s
    mask = T.decl_buffer((1,), "uint32", scope="local")
    t0 = T.decl_buffer((1,), scope="local")
    C_1[0] = T.Select(tx < 2, A[ty * 8 + tx], T.float32(0))
    mask[0] = T.tvm_warp_activemask()
    t0[0] = T.tvm_warp_shuffle_down(mask[0], C_1[0], 2, 4, 4)
    if tx + 2 < 3:
        C_1[0] = C_1[0] + t0[0]
    t0[0] = T.tvm_warp_shuffle_down(mask[0], C_1[0], 1, 4, 4)
    C_1[0] = C_1[0] + t0[0]
    C_1[0] = T.tvm_warp_shuffle(mask[0], C_1[0], 0, 4, 4)
if tx == 0:
    B[ty] = C_1[0] ]]):format(scope))
    end)

  it("combines what several warps have, without masks where the target has none", function()
    lowers(metal, reduction(2, 8), ([[
ty = T.launch_thread("threadIdx.y", 2)
C = T.allocate([2], "float32", "shared")
T.attr(C, "volatile_scope", 1)
tx = T.launch_thread("threadIdx.x", 8)
C_1 = T.Buffer((2,), data=C, scope="shared")
%s
    r = T.decl_buffer((1,), scope="local")
    t = T.decl_buffer((1,), scope="local")
    r_1 = T.decl_buffer((1,), scope="local")
    t_1 = T.decl_buffer((1,), scope="local")
    staging = T.decl_buffer((4,), scope="shared")
    r_1[0] = A[ty * 8 + tx]
    t_1[0] = T.tvm_warp_shuffle_down(0, r_1[0], 2, 4, 4)
    r_1[0] = r_1[0] + t_1[0]
    t_1[0] = T.tvm_warp_shuffle_down(0, r_1[0], 1, 4, 4)
    r_1[0] = r_1[0] + t_1[0]
    if tx %% 4 == 0:
        staging[ty * 2 + tx // 4] = r_1[0]
    T.tvm_storage_sync("shared")
    if tx < 2:
        r[0] = staging[ty * 2 + tx]
    t[0] = T.tvm_warp_shuffle_down(0, r[0], 1, 4, 4)
    r[0] = r[0] + t[0]
    if tx == 0:
        C_1[ty] = r[0]
    T.tvm_storage_sync("shared")
if tx == 0:
    B[ty] = C_1[ty] ]]):format(scope))
  end)

  it("reduces in shared memory where there are no warps", function()
    lowers(vulkan, reduction(1, 6), ([[
ty = T.launch_thread("threadIdx.y", 1)
C = T.allocate([1, 6], "float32", "shared")
T.attr(C, "volatile_scope", 1)
tx = T.launch_thread("threadIdx.x", 6)
C_1 = T.Buffer((6,), data=C, scope="shared")
%s
    T.tvm_storage_sync("shared")
    C_1[tx] = A[ty * 8 + tx]
    T.tvm_storage_sync("shared")
    if tx < 2:
        C_1[tx] = C_1[tx] + C_1[tx + 4]
    T.tvm_storage_sync("shared")
    if tx < 2:
        with T.LetStmt(C_1[tx] + C_1[tx + 2]) as w_2_0:
            T.tvm_storage_sync("warp")
            C_1[tx] = w_2_0
            T.tvm_storage_sync("warp")
        with T.LetStmt(C_1[tx] + C_1[tx + 1]) as w_1_0:
            T.tvm_storage_sync("warp")
            C_1[tx] = w_1_0
            T.tvm_storage_sync("warp")
    T.tvm_storage_sync("shared")
if tx == 0:
    B[ty] = C_1[0] ]]):format(scope))
  end)

  it("stores the value of a single thread", function()
    lowers(cuda, reduction(2, 1), ([[
ty = T.launch_thread("threadIdx.y", 2)
C = T.allocate([1], "float32", "local")
tx = T.launch_thread("threadIdx.x", 1)
C_1 = T.Buffer((1,), data=C, scope="local")
%s
    C_1[0] = A[ty * 8 + tx]
if tx == 0:
    B[ty] = C_1[0] ]]):format(scope))
  end)

  local pair = [==[
tx = T.launch_thread("threadIdx.x", 2)
C = T.allocate([1], "float32", "local")
D = T.allocate([1], "int32", "local")
C_1 = T.Buffer((1,), data=C, scope="local")
D_1 = T.Buffer((1,), "int32", data=D, scope="local")
with T.attr(T.comm_reducer(lambda x, i, y, j: (T.max(x, y), T.Select(x >= y, i, j)),
    [T.float32(-1), -1]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
    %s
B[D_1[0]] = C_1[0] ]==]

  it("computes both values of a pair before it stores one that the other needs", function()
    lowers(cuda, pair:format
      "T.tvm_thread_allreduce(T.uint32(2), A[tx], tx, T.bool(True), C_1[0], D_1[0], tx)",
      pair:format [[
mask = T.decl_buffer((1,), "uint32", scope="local")
    t1 = T.decl_buffer((1,), "int32", scope="local")
    t0 = T.decl_buffer((1,), scope="local")
    C_1[0] = A[tx]
    D_1[0] = tx
    mask[0] = T.tvm_warp_activemask()
    t0[0] = T.tvm_warp_shuffle_down(mask[0], C_1[0], 1, 4, 4)
    t1[0] = T.tvm_warp_shuffle_down(mask[0], D_1[0], 1, 4, 4)
    with T.LetStmt(T.max(C_1[0], t0[0])) as x:
        with T.LetStmt(T.Select(C_1[0] >= t0[0], D_1[0], t1[0])) as i:
            C_1[0] = x
            D_1[0] = i
    C_1[0] = T.tvm_warp_shuffle(mask[0], C_1[0], 0, 4, 4)
    D_1[0] = T.tvm_warp_shuffle(mask[0], D_1[0], 0, 4, 4)]])
  end)

  it("leaves functions without such reductions alone, whatever their target", function()
    local mod = module_of(cuda, "B[0] = A[0]")
    assert.is_true(rawequal(mod, lower()(mod)))
  end)

  it("refuses what it cannot lower", function()
    local body = reduction(2, 4)
    refuses("a thread to reduce over is not bound around it",
      (body:gsub('"threadIdx.x"', '"blockIdx.x"')))
    refuses("the extents of threads must be constants", (body:gsub(
      'T.launch_thread%("threadIdx.x", 4%)', 'T.launch_thread("threadIdx.x", ty + 1)')))
    refuses("what a reduction wrote is written again",
      (body:gsub("if tx == 0:", "C_1[0] = T.float32(0)\n%0")), vulkan)
    refuses("a result is read before its reduction", (body:gsub("with T", "B[0] = C_1[0]\n%0")))
    refuses("a result is written before its reduction",
      (body:gsub("with T", "C_1[0] = T.float32(1)\n%0")))
    refuses("is read that is not the first", (body:gsub("= C_1%[0%]", "= C_1[tx]")))
    refuses("the number of values of T.tvm_thread_allreduce",
      (body:gsub("T.uint32%(1%)", "T.uint32(3)")))
    refuses("no reducer of as many values", (body:gsub("reduce_scope", "other_scope")))
    local source = pl.tir.script(module_of(cuda, body)):gsub("T.func_attr[^\n]*", "pass")
    assert.error_matches(function() lower()(assert(pl.tir.parse(source))) end,
      "run tir.BindTarget before", 1, true)
  end)
end)
