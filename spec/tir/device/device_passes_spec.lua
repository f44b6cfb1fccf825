local pl = require "perilune"

local names = {
  "InjectPrefetch", "LowerCrossThreadReduction", "LowerAutoCopy", "ManifestSharedMemoryLocalStage",
  "InjectPermutedLayout", "TransformMmaBufferLayout", "InjectSoftwarePipeline",
  "LowerThreadAllreduce", "LowerWarpMemory", "ThreadSync", "MergeDynamicSharedMemoryAllocations",
  "InferFragment", "LowerVtcmAlloc", "LowerDeviceStorageAccessInfo", "LowerCustomDatatypes",
  "VerifyMemory", "AnnotateDeviceRegions", "SplitHostDevice", "LowerDeviceKernelLaunch",
  "InjectVirtualThread", "InjectDoubleBuffer", "LiftThreadBinding", "UnifyThreadBinding",
  "CombineContextCall", "BF16ComputeLegalize", "BF16StorageLegalize", "FP8ComputeLegalize",
  "FP8StorageLegalize", "CoProcSync", "LowerAsyncDMA", "InjectPTXAsyncCopy", "InjectPTXLDG32",
}

local function module_of(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function refuses(name, body, what, options)
  local mod = module_of(body)
  local ok, err = pcall(pl.passes["tir." .. name](options), mod)
  assert.is_false(ok)
  assert.is_truthy(tostring(err):find("tir." .. name .. ": the function has a " .. what, 1, true),
    tostring(err))
end

describe("passes for devices", function()
  it("return a function for the processor unchanged", function()
    local mod = module_of [[
C = T.allocate([64], "float32", "global")
C_1 = T.Buffer((64,), data=C)
for i in T.parallel(64):
    C_1[i] = A[i]
for i in range(64):
    B[i] = C_1[i] + T.float32(1)]]
    for _, name in ipairs(names) do
      assert.is_true(rawequal(mod, pl.passes["tir." .. name]()(mod)), name)
    end
  end)

  it("refuse what is annotated for them", function()
    refuses("InjectPermutedLayout", [[
with T.block("b"):
    T.reads()
    T.writes()
    T.block_attr({"permuted_layout": 1})
    B[0] = A[0] ]], "Block of 'permuted_layout'")
  end)
end)

describe("tir.UnifyThreadBinding", function()
  local unify = pl.passes["tir.UnifyThreadBinding"]

  local function unifies(before, after)
    local out = unify()(module_of(before))
    assert.is_true(pl.equal(module_of(after), out, { map_free_vars = true }), tostring(out))
    assert.is_true(pl.equal(out, unify()(out), { map_free_vars = true }))
  end

  it("gives each thread axis one loop around the kernel", function()
    unifies([[
for i in T.thread_binding(8, thread="blockIdx.x"):
    for j in T.thread_binding(4, thread="threadIdx.x"):
        A[i * 4 + j] = T.float32(0)
    for k in T.thread_binding(4, thread="threadIdx.x"):
        for l in range(2):
            B[i * 8 + k * 2 + l] = A[i * 4 + k] ]], [[
for bx in T.thread_binding(8, thread="blockIdx.x"):
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        A[bx * 4 + tx] = T.float32(0)
        for l in range(2):
            B[bx * 8 + tx * 2 + l] = A[bx * 4 + tx] ]])
  end)

  it("begins anew with each kernel", function()
    unifies([[
for i in T.thread_binding(8, thread="threadIdx.x"):
    A[i] = T.float32(0)
for j in T.thread_binding(4, thread="threadIdx.x"):
    B[j] = T.float32(0)]], [[
for i in T.thread_binding(8, thread="threadIdx.x"):
    A[i] = T.float32(0)
for j in T.thread_binding(4, thread="threadIdx.x"):
    B[j] = T.float32(0)]])
  end)

  it("keeps annotations on a loop of one round, and takes attributes for loops", function()
    unifies([[
bx = T.launch_thread("blockIdx.x", 8)
for i in T.thread_binding(4, thread="threadIdx.x", annotations={"a": 1}):
    A[bx * 4 + i] = T.float32(0)]], [[
for bx in T.thread_binding(8, thread="blockIdx.x"):
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for var in T.serial(1, annotations={"a": 1}):
            A[bx * 4 + tx] = T.float32(0)]])
  end)

  it("refuses loops of one axis with different extents", function()
    local mod = module_of [[
for i in T.thread_binding(8, thread="blockIdx.x"):
    for j in T.thread_binding(4, thread="threadIdx.x"):
        A[j] = T.float32(0)
    for j in T.thread_binding(2, thread="threadIdx.x"):
        A[j] = T.float32(0)]]
    assert.error_matches(function() unify()(mod) end,
      "loops that are bound to 'threadIdx.x' have different extents")
  end)

  it("refuses an extent that is not known around the kernel", function()
    local mod = module_of [[
for i in T.thread_binding(8, thread="blockIdx.x"):
    for k in range(3):
        for j in T.thread_binding(k + 1, thread="threadIdx.x"):
            A[j] = T.float32(0)]]
    assert.error_matches(function() unify()(mod) end,
      "the range of the loop that is bound to 'threadIdx.x' is not known around the kernel")
  end)
end)

describe("tir.VerifyVTCMLimit", function()
  local verify = pl.passes["tir.VerifyVTCMLimit"]
  local mod = module_of [[
with T.allocate([64], "float32", "global.vtcm") as C:
    C_1 = T.Buffer((64,), data=C, scope="global.vtcm")
    C_1[0] = A[0]
    with T.allocate([128], "int8", "global.vtcm") as D:
        D_1 = T.Buffer((128,), "int8", data=D, scope="global.vtcm")
        D_1[0] = T.int8(0)
with T.allocate([4096], "float32", "global") as E:
    E_1 = T.Buffer((4096,), data=E)
    E_1[0] = A[0]
with T.allocate([32, 3], "float32x2", "global.vtcm") as F:
    T.evaluate(F)]]

  it("accepts what fits, and any size without a limit", function()
    assert.is_true(rawequal(mod, verify()(mod)))
    assert.is_true(rawequal(mod, verify { limit = 768 }(mod)))
  end)

  it("refuses more than is there at one time", function()
    assert.error_matches(function() verify { limit = 767 }(mod) end,
      "768 bytes of global.vtcm are allocated at one time, the limit is 767")
  end)

  it("takes the limit of the target", function()
    local bound = pl.passes["tir.BindTarget"] { target = "hexagon -vtcm-capacity=64" }(mod)
    assert.error_matches(function() verify()(bound) end, "the limit is 64")
  end)
end)
