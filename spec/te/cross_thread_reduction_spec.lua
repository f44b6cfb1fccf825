-- Reductions of which an axis is bound to threads.
-- luacheck: no max line length
local pl = require "perilune"
local te, tir = pl.te, pl.tir

local function sum_of_rows(n, m)
  local A, k = te.placeholder({ n, m }, "float32", "A"), te.reduce_axis({ 0, m }, "k")
  local B = te.compute({ n }, function(i) return te.sum(A(i, k), k) end, "B")
  return A, B, te.create_schedule(B.op)
end

-- The loops of a function, without its head.
local function body_of(s, args)
  local text = tostring(s:to_module(args, "main")):match "func_attr[^\n]*(\n.*)"
  return text:gsub("\n        ", "\n"):sub(2) .. " "
end

local serial = [[
T.realize(B[0:4])
for i in range(4):
    threadIdx_x = T.launch_thread("threadIdx.x", 8)
    normal_reduce_temp0 = T.allocate([1], "float32", "local")
    reduce_temp0 = T.allocate([1], "float32", "local")
    normal_reduce_temp0_1 = T.Buffer((1,), data=normal_reduce_temp0, scope="local")
    normal_reduce_temp0_1[0] = T.float32(0)
    for k_outer in range(4):
        %snormal_reduce_temp0_1[0] = normal_reduce_temp0_1[0] + A[i, threadIdx_x + k_outer * 8]
    reduce_temp0_1 = T.Buffer((1,), data=reduce_temp0, scope="local")
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
        T.tvm_thread_allreduce(T.uint32(1), normal_reduce_temp0_1[0], T.bool(True), reduce_temp0_1[0], threadIdx_x)
    if T.bool(True):
        B[i] = reduce_temp0_1[0] ]]

describe("a reduction across threads", function()
  it("is a call of tvm_thread_allreduce, as TVM has it", function()
    local A, B, s = sum_of_rows(64, 32)
    local _, ki = s[B]:split(B.op.reduce_axis[1], 16)
    local BF = s:rfactor(B, ki)
    local outer, inner = s[B]:split(s[B].op.axis[1], 32)
    local tx = te.thread_axis "threadIdx.x"
    s[B]:bind(outer, te.thread_axis "blockIdx.x")
    s[B]:bind(inner, te.thread_axis "threadIdx.y")
    s[B]:bind(s[B].op.reduce_axis[1], tx)
    s[BF]:compute_at(s[B], s[B].op.reduce_axis[1])
    s[B]:set_store_predicate(tir.EQ(tx.var, 0))
    assert.equal([[
T.realize(B[0:64])
blockIdx_x = T.launch_thread("blockIdx.x", 2)
threadIdx_y = T.launch_thread("threadIdx.y", 32)
threadIdx_x = T.launch_thread("threadIdx.x", 16)
B_rf = T.Buffer((16, 64))
T.realize(B_rf[threadIdx_x:threadIdx_x + 1, blockIdx_x * 32 + threadIdx_y:blockIdx_x * 32 + threadIdx_y + 1])
B_rf[threadIdx_x, blockIdx_x * 32 + threadIdx_y] = T.float32(0)
for k_outer in range(2):
    B_rf[threadIdx_x, blockIdx_x * 32 + threadIdx_y] = B_rf[threadIdx_x, blockIdx_x * 32 + threadIdx_y] + A[blockIdx_x * 32 + threadIdx_y, threadIdx_x + k_outer * 16]
reduce_temp0 = T.allocate([1], "float32", "local")
reduce_temp0_1 = T.Buffer((1,), data=reduce_temp0, scope="local")
with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
    T.tvm_thread_allreduce(T.uint32(1), B_rf[threadIdx_x, threadIdx_y + blockIdx_x * 32], T.bool(True), reduce_temp0_1[0], threadIdx_x)
if threadIdx_x == 0:
    if T.bool(True):
        B[threadIdx_y + blockIdx_x * 32] = reduce_temp0_1[0] ]], body_of(s, { A, B }))
    local lowered = tostring(pl.lower(s, { args = { A, B }, name = "main" }))
    assert.truthy(lowered:find('B_rf = T.allocate([1], "float32", "local")', 1, true))
  end)

  it("combines what loops of the thread reduce", function()
    local A, B, s = sum_of_rows(4, 32)
    local outer, inner = s[B]:split(B.op.reduce_axis[1], 8)
    s[B]:reorder(outer, inner)
    s[B]:bind(inner, te.thread_axis "threadIdx.x")
    assert.equal(serial:format "", body_of(s, { A, B }))
  end)

  it("guards what is outside of the bounds", function()
    local A, B, s = sum_of_rows(4, 30)
    local _, inner = s[B]:split(B.op.reduce_axis[1], 8)
    s[B]:bind(inner, te.thread_axis "threadIdx.x")
    local likely = "if T.likely(threadIdx_x + k_outer * 8 < 30):\n            "
    assert.equal(serial:format(likely), body_of(s, { A, B }))
  end)

  it("comes behind the axes that are not reduced, and has no init", function()
    local A, B, s = sum_of_rows(4, 32)
    s[B]:reorder(B.op.reduce_axis[1], B.op.axis[1])
    s[B]:bind(B.op.reduce_axis[1], te.thread_axis "threadIdx.x")
    assert.error_matches(function() s:to_module({ A, B }, "main") end,
      "the reduction axis 'k' of stage 'B' is bound to threads; axes that are not reduced must come before it", 1, true)
    local k = te.reduce_axis({ 0, 32 }, "k")
    local C = te.compute({ 4 }, function(i) return te.sum(A(i, k), k, nil, te.const(1, "float32")) end, "C")
    local t = te.create_schedule(C.op)
    t[C]:bind(k, te.thread_axis "threadIdx.x")
    assert.error_matches(function() t:to_module({ A, C }, "main") end, "a reduction across threads has no init", 1, true)
  end)
end)
