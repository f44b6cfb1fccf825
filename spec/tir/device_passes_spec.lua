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

  it("refuse memory that threads share, and say which", function()
    local body = [[
C = T.allocate([64], "float32", "shared.dyn")
C_1 = T.Buffer((64,), data=C, scope="shared.dyn")
C_1[0] = A[0] ]]
    refuses("MergeDynamicSharedMemoryAllocations", body, "Var of 'shared.dyn'")
    refuses("ThreadSync", body, "Var of 'shared'", { storage_scope = "shared.dyn" })
    local mod = module_of(body)
    assert.is_true(rawequal(mod, pl.passes["tir.ThreadSync"] { storage_scope = "warp" }(mod)))
  end)

  it("refuse what is annotated for them", function()
    refuses("LowerAutoCopy", [[
with T.block("b"):
    T.reads()
    T.writes()
    T.block_attr({"auto_copy": 1})
    B[0] = A[0] ]], "Block of 'auto_copy'")
    refuses("InjectSoftwarePipeline", [[
for i in T.serial(4, annotations={"software_pipeline_stage": [0, 1]}):
    B[i] = A[i] ]], "For of 'software_pipeline_stage'")
  end)

  it("refuse threads that are not lowered", function()
    refuses("UnifyThreadBinding", [[
for t in T.thread_binding(64, thread="threadIdx.x"):
    B[t] = A[t] ]], "For of 'thread binding'")
  end)

  it("refuse a reduction over threads only", function()
    local body = [[
for t in T.thread_binding(64, thread="threadIdx.x"):
    with T.block("sum"):
        v = T.axis.%s(64, t)
        T.reads(A[v])
        T.writes(B[0])
        B[0] = B[0] + A[v] ]]
    refuses("LowerCrossThreadReduction", body:format "reduce",
      "BlockRealize of 'reduction across threads'")
    local mod = module_of(body:format "spatial")
    assert.is_true(rawequal(mod, pl.passes["tir.LowerCrossThreadReduction"]()(mod)))
  end)
end)
