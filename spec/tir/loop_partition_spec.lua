local pl = require "perilune"

local function parse(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32, m: T.int32):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function apply(pass, body, config)
  return pl.with(pl.context { config = config or {} }, pl.passes["tir." .. pass](), parse(body))
end

local function check(pass, before, after, config)
  local out = apply(pass, before, config)
  assert.is_true(pl.equal(parse(after), out), tostring(out))
end

local constant = { ["tir.LoopPartition.partition_const_loop"] = true }

describe("tir.LoopPartition", function()
  local symbolic = [[
from tvm.script import tir as T

@T.prim_func
def main(a: T.handle):
    n = T.int32(is_size_var=True)
    A = T.match_buffer(a, (n,), "float32")
%s
]]

  local function parse_symbolic(body)
    return assert(pl.tir.parse(symbolic:format((body:gsub("[^\n]+", "    %0")))))
  end

  it("splits a loop where a condition on its variable ends", function()
    local out = pl.passes["tir.LoopPartition"]()(parse_symbolic [[
for i, j in T.grid((n + 3) // 4, 4):
    if T.likely(i * 4 + j < n):
        A[i * 4 + j] = T.float32(1)]])
    local wanted = parse_symbolic [[
for i, j in T.grid(T.min(n // 4, (n + 3) // 4 - 1 + 1), 4):
    if T.bool(True):
        A[i * 4 + j] = T.float32(1)
for i, j in T.grid((n % 4 + 3) // 4, 4):
    if (i + T.min(n // 4, (n + 3) // 4 - 1 + 1)) * 4 + j < n:
        A[(i + T.min(n // 4, (n + 3) // 4 - 1 + 1)) * 4 + j] = T.float32(1)]]
    assert.is_true(pl.equal(wanted, out, { map_free_vars = true }), tostring(out))
  end)

  it("keeps the parts inside of the loop where sizes may be anything", function()
    local before = parse [[
for i in range(8):
    if T.likely(i < n):
        A[i] = T.float32(1)
    else:
        A[i] = T.float32(2)]]
    local after = pl.with(pl.context { config = constant },
      pl.passes["tir.LoopPartition"](), before)
    local zeros = {}
    for i = 1, 64 do zeros[i] = 0 end
    local A = pl.tensor(zeros, "float32")
    for _, n in ipairs { -5, 0, 3, 8, 20 } do
      local wanted = pl.tir.run(before.functions.main, { A, n, 1 })[1]
      local got = pl.tir.run(after.functions.main, { A, n, 1 })[1]
      assert.same(wanted:to_table(), got:to_table(), n)
    end
  end)

  it("leaves loops of known extent alone, but for likely, unless it is asked for", function()
    local body = [[
for i in range(10):
    if T.likely(i < 8):
        A[i] = T.float32(1)]]
    check("LoopPartition", body, [[
for i in range(10):
    if i < 8:
        A[i] = T.float32(1)]])
    check("LoopPartition", body, [[
for i in range(8):
    if T.bool(True):
        A[i] = T.float32(1)
for i in range(2):
    if T.bool(False):
        A[i + 8] = T.float32(1)]], constant)
  end)

  it("makes no loop of one round", function()
    check("LoopPartition", [[
for i in range(9):
    if T.likely(i < 8):
        A[i] = T.float32(1)]], [[
for i in range(8):
    if T.bool(True):
        A[i] = T.float32(1)
if T.Add(0, 8) < 8:
    A[T.Add(0, 8)] = T.float32(1)]], constant)
  end)

  it("leaves loops without such a condition alone", function()
    local mod = parse [[
for i in range(n):
    if i < m:
        A[i] = T.float32(1)]]
    assert.is_true(rawequal(mod, pl.passes["tir.LoopPartition"]()(mod)))
  end)
end)

describe("tir.RenormalizeSplitPattern", function()
  it("divides the parts of a split index", function()
    check("RenormalizeSplitPattern", [[
for i, j in T.grid(16, 3):
    A[(i * 3 + j) // 12] = T.float32(1)
    A[i % 12 // 4] = T.float32(2)
    if i < 12:
        A[i] = T.float32(3)]], [[
for i, j in T.grid(16, 3):
    A[(i + j // 3) // 4] = T.float32(1)
    A[i // 4 % 3] = T.float32(2)
    if i // 12 < 1:
        A[i] = T.float32(3)]])
  end)

  it("decides conditions that are constants", function()
    check("RenormalizeSplitPattern", [[
if T.LT(0, 1):
    A[0] = T.float32(1)
if T.bool(False):
    A[1] = T.float32(2)
else:
    A[2] = T.float32(3)]], [[
A[0] = T.float32(1)
A[2] = T.float32(3)]])
  end)
end)

describe("tir.InjectVirtualThread", function()
  it("takes branches whose condition is constant", function()
    check("InjectVirtualThread", [[
if T.bool(True):
    A[0] = T.float32(1)
if T.bool(False):
    A[1] = T.float32(1)
else:
    A[2] = T.float32(1)]], [[
A[0] = T.float32(1)
A[2] = T.float32(1)]])
  end)
end)
