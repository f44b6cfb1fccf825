local pl = require "perilune"

local function module_of(body, scope)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    threadIdx_x = T.launch_thread("threadIdx.x", 64)
    S = T.allocate([128], "float32", "%s")
    S_1 = T.Buffer((128,), data=S, scope="%s")
%s
]]):format(scope or "shared", scope or "shared", (body:gsub("[^\n]+", "    %0")))))
end

local function run(mod, options) return pl.passes["tir.ThreadSync"](options)(mod) end

local function check(before, after, scope)
  local mod = module_of(before, scope)
  local result = run(mod, { storage_scope = scope })
  local wanted = module_of(after, scope)
  assert.is_true(pl.equal(result, wanted, { map_free_vars = true }), pl.tir.script(result))
  assert.is_true(rawequal(result, run(result, { storage_scope = scope })))
end

local function unchanged(body, options, scope)
  local mod = module_of(body, scope)
  assert.is_true(rawequal(mod, run(mod, options)))
end

local function refused(body, message, scope)
  local ok, err = pcall(run, module_of(body, scope), { storage_scope = scope })
  assert.is_false(ok)
  assert.is_truthy(tostring(err):find(message, 1, true), tostring(err))
end

describe("tir.ThreadSync", function()
  it("puts a barrier before the read of another thread's element", function()
    check([[
S_1[threadIdx_x] = A[threadIdx_x]
B[threadIdx_x] = S_1[63 - threadIdx_x] ]], [[
S_1[threadIdx_x] = A[threadIdx_x]
T.tvm_storage_sync("shared")
B[threadIdx_x] = S_1[63 - threadIdx_x] ]])
  end)

  it("needs none where each thread has elements of its own", function()
    unchanged [[
S_1[threadIdx_x] = A[threadIdx_x]
B[threadIdx_x] = S_1[threadIdx_x] ]]
  end)

  it("knows that one element which no thread owns is shared", function()
    check([[
S_1[0] = A[threadIdx_x]
B[threadIdx_x] = S_1[0] ]], [[
S_1[0] = A[threadIdx_x]
T.tvm_storage_sync("shared")
B[threadIdx_x] = S_1[0] ]])
  end)

  it("puts a barrier between the rounds of a loop", function()
    check([[
for i in range(8):
    S_1[threadIdx_x] = A[threadIdx_x]
    B[threadIdx_x] = S_1[63 - threadIdx_x] ]], [[
for i in range(8):
    T.tvm_storage_sync("shared")
    S_1[threadIdx_x] = A[threadIdx_x]
    T.tvm_storage_sync("shared")
    B[threadIdx_x] = S_1[63 - threadIdx_x] ]])
  end)

  it("takes an index with the variable of a loop that ended for a region", function()
    check([[
for i in range(2):
    S_1[threadIdx_x + i * 64] = A[threadIdx_x]
for j in range(2):
    B[threadIdx_x] = S_1[threadIdx_x + j * 64] ]], [[
for i in range(2):
    S_1[threadIdx_x + i * 64] = A[threadIdx_x]
T.tvm_storage_sync("shared")
for j in range(2):
    B[threadIdx_x] = S_1[threadIdx_x + j * 64] ]])
  end)

  it("knows barriers that stand, and reads of a double buffer's other half", function()
    unchanged [[
S_1[threadIdx_x] = A[threadIdx_x]
T.tvm_storage_sync("shared")
B[threadIdx_x] = S_1[63 - threadIdx_x] ]]
    unchanged [[
with T.attr(S, "double_buffer_write", 1):
    S_1[threadIdx_x + 64] = A[threadIdx_x]
B[threadIdx_x] = S_1[63 - threadIdx_x] ]]
  end)

  it("stands before a branch that reads, but not in it", function()
    check([[
S_1[threadIdx_x] = A[threadIdx_x]
if threadIdx_x < 3:
    B[threadIdx_x] = S_1[63 - threadIdx_x] ]], [[
S_1[threadIdx_x] = A[threadIdx_x]
T.tvm_storage_sync("shared")
if threadIdx_x < 3:
    B[threadIdx_x] = S_1[63 - threadIdx_x] ]])
    refused([[
if threadIdx_x < 3:
    S_1[threadIdx_x] = A[threadIdx_x]
    B[threadIdx_x] = S_1[63 - threadIdx_x] ]], "tir.ThreadSync: a barrier would stand under")
  end)

  it("concerns one storage scope", function()
    local body = [[
S_1[threadIdx_x] = A[threadIdx_x]
B[threadIdx_x] = S_1[63 - threadIdx_x] ]]
    unchanged(body, { storage_scope = "shared" }, "shared.dyn")
    check(body, body:gsub("\n", '\nT.tvm_storage_sync("shared.dyn")\n'), "shared.dyn")
    refused(body, "'global' needs a device's runtime", "global")
  end)

  it("takes what a pointer gives access to for a region", function()
    local body = [[
S_1[threadIdx_x] = A[threadIdx_x]
T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), S, threadIdx_x, 1, %d))]]
    check(body:format(1), (body:format(1):gsub("\n", '\nT.tvm_storage_sync("shared")\n')))
    unchanged(body:format(2))
    unchanged [[
S_1[threadIdx_x] = A[threadIdx_x]
T.evaluate(T.address_of(S_1[0]))]]
  end)

  it("refuses shared memory in a condition", function()
    refused([[
if S_1[0] < T.float32(3):
    B[threadIdx_x] = A[threadIdx_x] ]], "an operand of IfThenElse accesses memory of 'shared'")
  end)
end)
