local pl = require "perilune"
local module_of = require "spec.tir.module_of"

local manifest = pl.passes["tir.ManifestSharedMemoryLocalStage"]

local function manifests(before, after)
  local out = manifest()(module_of(before))
  assert.is_true(pl.equal(out, module_of(after), { map_free_vars = true }), pl.tir.script(out))
  assert.is_true(pl.equal(out, manifest()(out), { map_free_vars = true }))
end

local function refuses(message, body)
  assert.error_matches(function() manifest()(module_of(body)) end, message, 1, true)
end

local outer = [[
with T.block("outer"):
    T.reads(A[0:64])
    T.writes(B[0:64])
    S = T.alloc_buffer((64,), scope="shared")
]]

local marked = [[
T.reads(A[0:64])
T.writes(S[0:64])
T.block_attr({"tir.manifest_shared_memory_local_stage": 1})
]]

local function indented(text, by)
  return (text:gsub("[^\n]+", (" "):rep(by) .. "%0"))
end

describe("tir.ManifestSharedMemoryLocalStage", function()
  it("copies through local memory, with loops of their own", function()
    manifests(outer .. [[
    for i in range(4):
        for j in T.serial(2, annotations={"a": 1}):
            for v in T.vectorized(8):
                with T.block("copy"):
                    T.where(i * 16 + j * 8 + v < n)
]] .. indented(marked, 20) .. [[
                    S[i * 16 + j * 8 + v] = A[i * 16 + j * 8 + v] * T.float32(2)
    for i in range(64):
        B[i] = S[i] ]], outer .. [[
    L = T.alloc_buffer((4, 2, 8), scope="local")
    for i in range(4):
        for j in T.serial(2, annotations={"a": 1}):
            for v in T.vectorized(8):
                with T.block(""):
                    T.where(i * 16 + j * 8 + v < n)
                    T.reads(A[0:64])
                    T.writes(L[i, j, v])
                    L[i, j, v] = A[i * 16 + j * 8 + v] * T.float32(2)
    for i in range(4):
        for j in T.serial(2, annotations={"a": 1}):
            for v in T.vectorized(8):
                with T.block("copy"):
                    T.where(i * 16 + j * 8 + v < n)
                    T.reads(A[0:64])
                    T.writes(S[0:64])
                    S[i * 16 + j * 8 + v] = L[i, j, v]
    for i in range(64):
        B[i] = S[i] ]])
  end)

  it("makes memory in the block that has the shared one, in the order of the copies", function()
    manifests(outer .. [[
    for r in range(2):
        for i in range(1, 32):
            with T.block("inner"):
                T.reads(A[i])
                T.writes(S[i])
                R = T.alloc_buffer((8,), scope="shared")
                for k in range(8):
                    with T.block("copy"):
]] .. indented((marked:gsub("S", "R")), 24) .. [[
                        R[k] = A[k]
                S[i] = R[i % 8]
        B[r] = S[r] ]], outer .. [[
    for r in range(2):
        for i in range(1, 32):
            with T.block("inner"):
                T.reads(A[i])
                T.writes(S[i])
                R = T.alloc_buffer((8,), scope="shared")
                L = T.alloc_buffer((8,), scope="local")
                for k in range(8):
                    with T.block(""):
                        T.reads(A[0:64])
                        T.writes(L[k])
                        L[k] = A[k]
                for k in range(8):
                    with T.block("copy"):
                        T.reads(A[0:64])
                        T.writes(R[0:64])
                        R[k] = L[k]
                S[i] = R[i % 8]
        B[r] = S[r] ]])
    local mod = module_of(outer .. "    B[0] = S[0]")
    assert.is_true(rawequal(mod, manifest()(mod)))
  end)

  local function refuses_copy(message, loops, by, store)
    refuses(message, outer .. indented(loops, 4) .. indented(marked, by) .. indented(store, by))
  end

  it("refuses blocks that are no copies to shared memory", function()
    refuses_copy("block 'copy' has variables: run tir.ConvertBlocksToOpaque before", [[
for i in range(64):
    with T.block("copy"):
        vi = T.axis.spatial(64, i)
]], 12, "S[vi] = A[vi]")
    refuses_copy("block 'copy' is no single store to shared memory", [[
for i in range(64):
    with T.block("copy"):
]], 12, "B[i] = A[i]")
    refuses_copy("block 'copy' is no single store to shared memory", [[
for i in range(64):
    with T.block("copy"):
]], 12, "S[i] = A[i]\nS[i] = A[0]")
  end)

  it("refuses loops that do more, or that it cannot copy", function()
    refuses_copy("block 'copy' is in a loop that is neither serial nor vectorized", [[
for i in T.unroll(64):
    with T.block("copy"):
]], 12, "S[i] = A[i]")
    refuses_copy("block 'copy' is not all that is in its loops", [[
for i in range(64):
    B[i] = A[i]
    with T.block("copy"):
]], 12, "S[i] = A[i]")
    refuses_copy("stores to memory that the block around it and its loops does not allocate", [[
if n > 2:
    with T.block("copy"):
]], 12, "S[n] = A[n]")
  end)
end)
