local pl = require "perilune"

local function parse(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "int32"), n: T.int32):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function check(pass, before, after)
  local out = pl.passes["tir." .. pass]()(parse(before))
  assert.is_true(pl.equal(parse(after), out), tostring(out))
end

describe("tir.RemoveNoOp", function()
  it("removes loops without a body or a round, and what they leave empty", function()
    check("RemoveNoOp", [[
for i in range(8):
    for j in range(n):
        T.evaluate(j)
A[0] = 1
for i in range(4, 4):
    A[i] = 2
if n < 3:
    T.evaluate(n)]], "A[0] = 1")
    check("RemoveNoOp", [[
for i in range(8):
    for j in range(i - 7):
        A[j] = 1]], "T.evaluate(0)")
  end)

  it("keeps the branch that does something", function()
    check("RemoveNoOp", [[
if n < 3:
    A[0] = 1
else:
    T.evaluate(0)
if n < 4:
    T.evaluate(0)
else:
    A[1] = 1]], [[
if n < 3:
    A[0] = 1
if not n < 4:
    A[1] = 1]])
  end)

  it("removes variables that nothing uses, and stores of what is there", function()
    check("RemoveNoOp", [[
m: T.int32 = n + 1
for i in range(8):
    k: T.int32 = i * 2
    A[k] = A[i + i]
A[1] = n]], "A[1] = n")
  end)

  it("keeps effects of what it removes", function()
    check("RemoveNoOp", [[
for i in range(T.call_extern("int32", "count")):
    T.evaluate(0)
A[0] = 1]], [[
T.evaluate(T.call_extern("int32", "count"))
A[0] = 1]])
  end)
end)

describe("tir.RewriteUnsafeSelect", function()
  it("evaluates one value where both would read memory", function()
    check("RewriteUnsafeSelect", [[
for i in range(16):
    A[i] = T.Select(i < 8, A[i + 8], 0)]], [[
for i in range(16):
    A[i] = T.if_then_else(i < 8, A[i + 8], 0)]])
  end)

  it("leaves safe values, and those behind an if_then_else", function()
    local mod = parse [[
for i in range(16):
    A[i] = T.Select(i < 8, T.if_then_else(i < 4, A[i], 1), i * 2)]]
    assert.is_true(rawequal(mod, pl.passes["tir.RewriteUnsafeSelect"]()(mod)))
  end)

  it("keeps stores to memory that is new in each part of an unrolled loop", function()
    local mod = parse [[
for i in T.unroll(2):
    X = T.allocate([2], "int32", "global")
    X_1 = T.Buffer((2,), "int32", data=X)
    X_1[0] = 7
    X_1[1] = i
    A[i] = X_1[0] + X_1[1] ]]
    local config = { ["tir.RemoveNoOp"] = { use_dataflow_analysis = true } }
    local out = pl.with(pl.context { config = config },
      pl.sequential { "tir.UnrollLoop", "tir.Simplify", "tir.RemoveNoOp" }, mod)
    assert.equal(2, select(2, tostring(out):gsub("%[0%] = 7", "")))
    local values = { pl.tensor.full(0, { 64 }, "int32"), 0 }
    local result = pl.tir.run(out, values, { uninitialized = "error" })[1]:to_table()
    assert.same({ 7, 8 }, { result[1], result[2] })
  end)
end)
