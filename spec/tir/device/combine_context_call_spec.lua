local pl = require "perilune"

local combine = pl.passes["tir.CombineContextCall"]

local function module_of(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), dev: T.int32, n: T.int32):
%s
]]):format((body:gsub("[^\n]+", "    %0")))))
end

local function context(id)
  return ('T.tvm_thread_context(T.call_extern("handle", "device_context", dev, %s))'):format(id)
end

local function combines(before, after)
  local out = combine()(module_of(before))
  assert.is_true(pl.equal(out, module_of(after), { map_free_vars = true }), pl.tir.script(out))
  assert.is_true(rawequal(out, combine()(out)))
end

describe("tir.CombineContextCall", function()
  it("makes contexts once in front of the parallel loop, and of the body", function()
    combines(([[
T.call_extern("int32", "fadd", %s, A.data)
for i in T.parallel(n):
    T.call_extern("int32", "fadd", %s, A.data)
    for j in range(10):
        T.call_extern("int32", "fadd", %s, A.data)
        T.call_extern("int32", "fadd", %s, A.data)
T.call_extern("int32", "fadd", %s, A.data)]]):format(
      context(0), context(0), context(1), context(0), context(0)), [[
c: T.handle = T.call_extern("handle", "device_context", dev, 0)
T.call_extern("int32", "fadd", c, A.data)
with T.LetStmt(T.call_extern("handle", "device_context", dev, 0)) as d:
    e: T.handle = T.call_extern("handle", "device_context", dev, 1)
    for i in T.parallel(n):
        T.call_extern("int32", "fadd", d, A.data)
        for j in range(10):
            T.call_extern("int32", "fadd", e, A.data)
            T.call_extern("int32", "fadd", d, A.data)
T.call_extern("int32", "fadd", c, A.data)]])
  end)

  it("makes them in front of the innermost of such parts", function()
    combines(([[
for k in range(n):
    t = T.launch_thread("threadIdx.x", 8)
    T.attr(0, "coproc_uop_scope", 0)
    T.call_extern("int32", "fadd", %s, t)]]):format(context("k")), [[
for k in range(n):
    t = T.launch_thread("threadIdx.x", 8)
    c: T.handle = T.call_extern("handle", "device_context", dev, k)
    T.attr(0, "coproc_uop_scope", 0)
    T.call_extern("int32", "fadd", c, t)]])
    local mod = module_of "A[0] = T.float32(0)"
    assert.is_true(rawequal(mod, combine()(mod)))
  end)
end)
