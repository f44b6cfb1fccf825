local pl = require "perilune"
local module_of = require "spec.tir.module_of"

local lift = pl.passes["tir.LiftThreadBinding"]

local function lifts(before, after)
  local out = lift()(module_of(before))
  assert.is_true(pl.equal(out, module_of(after), { map_free_vars = true }), pl.tir.script(out))
  assert.is_true(pl.equal(out, lift()(out), { map_free_vars = true }))
end

local function refuses(message, body)
  assert.error_matches(function() lift()(module_of(body)) end, message, 1, true)
end

describe("tir.LiftThreadBinding", function()
  it("gives each axis one loop around all of its loops", function()
    lifts([[
for i in T.thread_binding(8, thread="blockIdx.x"):
    for j in T.thread_binding(4, thread="threadIdx.x"):
        A[i * 4 + j] = T.float32(0)
    for k in range(2):
        for l in T.thread_binding(4, thread="threadIdx.x"):
            B[i * 8 + k * 4 + l] = A[i * 4 + l] ]], [[
for bx in T.thread_binding(8, thread="blockIdx.x"):
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        A[bx * 4 + tx] = T.float32(0)
        for k in range(2):
            B[bx * 8 + k * 4 + tx] = A[bx * 4 + tx] ]])
  end)

  it("stays inside of a serial loop that has all of them, blocks around threads", function()
    lifts([[
for i in T.thread_binding(2, thread="blockIdx.x"):
    for k in range(n):
        for t in T.thread_binding(4, thread="threadIdx.y"):
            A[i * 4 + t] = T.float32(0)
        for u in T.thread_binding(4, thread="threadIdx.x", annotations={"a": 1}):
            for v in T.thread_binding(4, thread="threadIdx.y", annotations={"b": 2}):
                B[u * 4 + v] = A[k]
        for w in T.thread_binding(4, thread="threadIdx.x"):
            B[w] = A[k] ]], [[
for bx in T.thread_binding(2, thread="blockIdx.x"):
    for k in range(n):
        for ty in T.thread_binding(4, thread="threadIdx.y", annotations={"b": 2}):
            for tx in T.thread_binding(4, thread="threadIdx.x", annotations={"a": 1}):
                A[bx * 4 + ty] = T.float32(0)
                B[tx * 4 + ty] = A[k]
                B[tx] = A[k] ]])
  end)

  it("takes each kernel by itself, and other functions as they are", function()
    lifts([[
for i in T.thread_binding(8, thread="threadIdx.x"):
    A[i] = T.float32(0)
for j in T.thread_binding(4, thread="threadIdx.x"):
    B[j] = T.float32(0)]], [[
for i in T.thread_binding(8, thread="threadIdx.x"):
    A[i] = T.float32(0)
for j in T.thread_binding(4, thread="threadIdx.x"):
    B[j] = T.float32(0)]])
    local mod = module_of "for i in range(8):\n    A[i] = T.float32(0)"
    assert.is_true(rawequal(mod, lift()(mod)))
  end)

  it("refuses ranges that differ, or are not known there", function()
    refuses("loops that are bound to 'threadIdx.x' have different ranges", [[
for i in T.thread_binding(8, thread="blockIdx.x"):
    for j in T.thread_binding(4, thread="threadIdx.x"):
        A[j] = T.float32(0)
    for k in T.thread_binding(2, thread="threadIdx.x"):
        A[k] = T.float32(0)]])
    refuses("have a range that is not known around all of them", [[
for i in T.thread_binding(8, thread="blockIdx.x"):
    with T.LetStmt(i * 2) as x:
        for j in T.thread_binding(x, thread="threadIdx.x"):
            A[j] = T.float32(0)
        for k in T.thread_binding(x, thread="threadIdx.x"):
            A[k] = T.float32(0)]])
  end)
end)
