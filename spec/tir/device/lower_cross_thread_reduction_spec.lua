local pl = require "perilune"

local lower = pl.passes["tir.LowerCrossThreadReduction"]

local function module_of(body, params)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8,), "float32")%s):
%s
]]):format(params or "", (body:gsub("[^\n]+", "    %0")))))
end

local function lowers(before, after, params)
  local out = lower()(module_of(before, params))
  assert.is_true(pl.equal(out, module_of(after, params), { map_free_vars = true }),
    pl.tir.script(out))
  assert.is_true(rawequal(out, lower()(out)))
end

local function unchanged(body)
  local mod = module_of(body)
  assert.is_true(rawequal(mod, lower()(mod)))
end

local function refuses(message, body, params)
  assert.error_matches(function() lower()(module_of(body, params)) end, message, 1, true)
end

local add = [[
for i in range(8):
    for k in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk] ]]

describe("tir.LowerCrossThreadReduction", function()
  it("reduces over threads by a call, and stores the result in one of them", function()
    lowers(add, [[
C = T.alloc_buffer((1,), strides=(1,), scope="local")
for i in range(8):
    for k in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B_cross_thread"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(C[0])
            with T.attr(T.comm_reducer(lambda x0, y0: x0 + y0, [T.float32(0)]), "reduce_scope",
                T.reinterpret("handle", T.uint64(0))):
                T.tvm_thread_allreduce(T.uint32(1), A[vi, vk], T.bool(True), C[0], k)
        with T.block("B_write_back"):
            vi = T.axis.spatial(8, i)
            T.where(k == 0)
            T.reads(C[0])
            T.writes(B[vi])
            B[vi] = C[0] ]])
  end)

  it("reduces in each thread before where there are other loops or conditions, of which those of "
    .. "the result's element stay", function()
    lowers([[
for i in range(12):
    for k0 in range(2):
        for k1 in T.thread_binding(48, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(64, k0 * 48 + k1)
                T.where(i < 8 and k0 * 48 + k1 < 64)
                T.reads(A[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = T.float32(1)
                B[vi] = B[vi] * A[vi, vk] ]], [[
C = T.alloc_buffer((1,), strides=(1,), scope="local")
D = T.alloc_buffer((1,), strides=(1,), scope="local")
for i in range(12):
    for k1 in T.thread_binding(48, thread="threadIdx.x"):
        with T.block("B_in_thread_init"):
            T.reads()
            T.writes(D[0])
            D[0] = T.float32(1)
        for k0 in range(2):
            with T.block("B_in_thread"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(64, k0 * 48 + k1)
                T.where(i < 8 and k0 * 48 + k1 < 64)
                T.reads(A[vi, vk])
                T.writes(D[0])
                D[0] = D[0] * A[vi, vk]
        with T.block("B_cross_thread"):
            T.reads(D[0])
            T.writes(C[0])
            with T.attr(T.comm_reducer(lambda x0, y0: x0 * y0, [T.float32(1)]), "reduce_scope",
                T.reinterpret("handle", T.uint64(0))):
                T.tvm_thread_allreduce(T.uint32(1), D[0], T.bool(True), C[0], k1)
        with T.block("B_write_back"):
            vi = T.axis.spatial(8, i)
            T.where(i < 8 and k1 == 0)
            T.reads(C[0])
            T.writes(B[vi])
            B[vi] = C[0] ]])
  end)

  it("keeps a single condition of that kind too, which TVM drops", function()
    local out = lower()(module_of((add:gsub("range%(8%)", "range(12)")
      :gsub("T.reads", "T.where(i < 8)\n            %0"))))
    local text = pl.tir.script(out)
    assert.is_truthy(text:find("T.where(i < 8 and k == 0)", 1, true), text)
  end)

  local local_sum = [[
C = T.alloc_buffer((8,), scope="local")
for i in T.thread_binding(8, thread="blockIdx.x"):
    for k in T.thread_binding(64, thread="threadIdx.x"):
        %s
    %s]]

  it("gives every thread a result in local memory, and one of them what reads it", function()
    lowers(local_sum:format([[
with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(-3.4028234663852886e+38)
            C[vi] = T.max(C[vi], A[vi, vk])]], [[
with T.block("B"):
        vi = T.axis.spatial(8, i)
        T.reads(C[vi])
        T.writes(B[vi])
        B[vi] = C[vi] + T.float32(1)]]), local_sum:gsub("\nfor", [[

D = T.alloc_buffer((1,), strides=(1,), scope="local")%0]], 1):format([[
with T.block("C_cross_thread"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(D[0])
            with T.attr(T.comm_reducer(lambda x0, y0: T.max(x0, y0),
                [T.float32(-3.4028234663852886e+38)]), "reduce_scope",
                T.reinterpret("handle", T.uint64(0))):
                T.tvm_thread_allreduce(T.uint32(1), A[vi, vk], T.bool(True), D[0], k)
        with T.block("C_write_back"):
            vi = T.axis.spatial(8, i)
            T.reads(D[0])
            T.writes(C[vi])
            C[vi] = D[0] ]], [[
for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.where(tx == 0)
            T.reads(C[vi])
            T.writes(B[vi])
            B[vi] = C[vi] + T.float32(1)]]))
  end)

  local place = [[
for i in range(8):
    for k in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("place"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi], I[vi])
            with T.init():
                I[vi] = -1
                B[vi] = T.float32(-3.4028234663852886e+38)
            p: T.int32 = T.Select(B[vi] >= A[vi, vk], I[vi], vk)
            q: T.float32 = T.Select(B[vi] >= A[vi, vk], B[vi], A[vi, vk])
            B[vi] = q
            I[vi] = p]]

  it("knows the place of the greatest value", function()
    local out = lower()(module_of(place, ', I: T.Buffer((8,), "int32")'))
    local text = pl.tir.script(out)
    assert.is_truthy(text:find("T.comm_reducer(lambda x0, x1, y0, y1: (T.Select(x1 >= y1, x0, y0), "
      .. "T.Select(x1 >= y1, x1, y1)), [-1, T.float32(-3.4028234663852886e+38)])", 1, true), text)
    assert.is_truthy(text:find("T.tvm_thread_allreduce(T.uint32(2), vk, A[vi, vk], T.bool(True), "
      .. "cross_thread_I[0], cross_thread_B[0], k)", 1, true), text)
  end)

  it("leaves blocks alone that reduce over other loops, or not at all", function()
    unchanged((add:gsub("T.thread_binding%(64, thread=\"threadIdx.x\"%)", "range(64)")))
    unchanged((add:gsub('"SR", %[i, k%]', '"SS", [i, k]')))
    unchanged((add:gsub("range%(8%)", 'T.thread_binding(8, thread="threadIdx.y")', 1)
      :gsub('in T.thread_binding%(64, thread="threadIdx.x"%)', "in range(64)")))
  end)

  it("refuses what it cannot lower", function()
    refuses("a loop of it is bound to another axis than threadIdx",
      (add:gsub("threadIdx.x", "blockIdx.x")))
    refuses("block 'B' is no known reduction", (add:gsub("%+", "-")))
    refuses("block 'B' is no known reduction", (add:gsub("T.float32%(0%)", "T.float32(2)")))
    refuses("the loops that it reduces over are not the innermost ones", (add:gsub(
      "for i in range%(8%):\n    for k (.-):\n", "for k %1:\n    for i in range(8):\n")))
    refuses("it is not the last block in its loops", add .. [[

        with T.block("D"):
            vi = T.axis.spatial(8, i)
            T.reads()
            T.writes(D[vi])
            D[vi] = T.float32(0)]], ', D: T.Buffer((8,), "float32")')
  end)
end)
