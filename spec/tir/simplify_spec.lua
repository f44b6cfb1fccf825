local pl = require "perilune"

local function module_of(body)
  return assert(pl.tir.parse(([[
from tvm.script import ir as I
from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64,), "int32"), n: T.int32):
%s
]]):format(body:gsub("[^\n]+", "        %0"))))
end

local function simplified(body)
  return pl.passes["tir.Simplify"]()(module_of(body))
end

local function check(before, after)
  local out = simplified(before)
  assert.is_true(pl.equal(module_of(after), out), tostring(out))
end

describe("tir.Simplify", function()
  it("simplifies indices and values by the ranges of loops", function()
    check([[
for i, j in T.grid(8, 8):
    A[(i * 8 + j) // 8 * 8 + (i * 8 + j) % 8] = j * 2 - j]], [[
for i, j in T.grid(8, 8):
    A[i * 8 + j] = j]])
  end)

  it("takes the branch whose condition is known, in both branches", function()
    check([[
for i in range(8):
    if i < 8:
        A[i] = 1
    else:
        A[i] = 2]], [[
for i in range(8):
    A[i] = 1]])
    check([[
if n < 5:
    if n < 6:
        A[0] = 1
else:
    if n < 5:
        A[0] = 2]], [[
if n < 5:
    A[0] = 1
else:
    T.evaluate(0)]])
  end)

  it("leaves nothing of a branch that is never taken", function()
    check([[
A[1] = 3
if n != n:
    A[0] = 1]], "A[1] = 3")
  end)

  it("puts variables of integers in their place", function()
    check([[
m: T.int32 = n * 4
A[m - n * 3] = m]], "A[n] = n * 4")
  end)

  it("decides conditions by the values of variables that stay", function()
    check([[
for i in range(8):
    small: T.bool = i < 3
    if small or 3 <= i:
        A[i] = T.Select(small, 1, 2)]], [[
for i in range(8):
    small: T.bool = i < 3
    A[i] = T.Select(small, 1, 2)]])
  end)

  it("knows the logarithm of an integer, and the zero bits in front of a number", function()
    check([[
A[0] = T.Cast("int32", T.ceil(T.log2(T.float64(14))))
A[1] = T.clz(40)
for i in range(16):
    if T.Cast("int32", T.ceil(T.log2(T.Cast("float64", i + 1025)))) == 11:
        A[i] = 1]], [[
A[0] = 4
A[1] = 26
for i in range(16):
    A[i] = 1]])
  end)

  it("combines inequalities with constants, if asked to", function()
    local config = { ["tir.Simplify.transitively_prove_inequalities"] = true }
    local before = module_of [[
for i, j in T.grid(64, 64):
    if 3 < i and i <= j:
        if 4 <= j:
            A[j] = 1]]
    local out = pl.with(pl.context { config = config }, pl.passes["tir.Simplify"](), before)
    assert.is_true(pl.equal(module_of [[
for i, j in T.grid(64, 64):
    if 3 < i and i <= j:
        A[j] = 1]], out), tostring(out))
  end)

  it("takes integers as conditions", function()
    local body = [=[
for i in range(8):
    if i:
        A[i - 1] = A[i - 1] + 1]=]
    check(body, body)
  end)

  it("does not hold conditions on what the body changes", function()
    local body = [=[
if A[0] == 1:
    A[0] = 5
    if A[0] == 1:
        A[1] = 2]=]
    check(body, body)
    check([=[
for i in range(8):
    if A[i] == 1 and n < 3:
        A[i // 2] = 5
        if n < 4:
            A[9] = A[i]]=], [=[
for i in range(8):
    if A[i] == 1 and n < 3:
        A[i // 2] = 5
        A[9] = A[i]]=])
  end)

  it("removes a store of what is there", function()
    check([[
A[0] = n
A[n + n] = A[n * 2] ]], "A[0] = n")
  end)

  it("knows that extents of parameters are not negative", function()
    local text = [[
from tvm.script import tir as T

@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n * 32 - 1,), "float32")
    A[%s] = T.float32(0)
]]
    local out = pl.passes["tir.Simplify"]()(assert(pl.tir.parse(text:format "T.min(1, n)")))
    local wanted = assert(pl.tir.parse(text:format "1"))
    assert.is_true(pl.equal(wanted, out, { map_free_vars = true }))
  end)

  it("returns the very module when there is nothing to simplify", function()
    local mod = module_of "A[n] = n"
    assert.is_true(rawequal(mod, pl.passes["tir.Simplify"]()(mod)))
  end)

  it("looks again at what it left as it was when the config changes", function()
    local config = { ["tir.Simplify.transitively_prove_inequalities"] = true }
    local simplify = pl.passes["tir.Simplify"]()
    local mod = module_of [[
for i, j in T.grid(64, 64):
    if 3 < i and i <= j:
        if 4 <= j:
            A[j] = 1]]
    for _ = 1, 2 do assert.is_true(rawequal(mod, simplify(mod))) end
    assert.is_false(rawequal(mod, pl.with(pl.context { config = config }, simplify, mod)))
    assert.is_true(rawequal(mod, simplify(mod)))
  end)
end)

describe("tir.Simplify of loops with one variable", function()
  it("forgets what the variable was in the loop before", function()
    local i = pl.tir.Var "i"
    local A = pl.tir.decl_buffer({ 8 }, "int32", "A")
    local function loop(extent)
      return pl.tir.For(i, 0, extent, "serial", pl.tir.BufferStore(A, i, { i }))
    end
    local mod = pl.module { main = pl.tir.PrimFunc({ A }, { loop(1), loop(3) }) }
    local text = tostring(pl.passes["tir.Simplify"]()(mod))
    assert.is_truthy(text:find("A[0] = 0", 1, true), text)
    assert.is_truthy(text:find("A[i] = i", 1, true), text)
  end)
end)
