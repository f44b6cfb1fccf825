local pl = require "perilune"

local function parse(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "int32"), x: T.int32, y: T.int32, z: T.int32):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function check(before, after)
  local out = pl.passes["tir.CommonSubexprElimTIR"]()(parse(before))
  assert.is_true(pl.equal(parse(after), out), tostring(out))
end

describe("tir.CommonSubexprElimTIR", function()
  it("binds what is computed more than once, the largest first", function()
    check([[
A[0] = x + y + z
A[1] = x + y + z
A[2] = x + y]], [[
b: T.int32 = x + y
a: T.int32 = b + z
A[0] = a
A[1] = a
A[2] = b]])
  end)

  it("keeps the body of a loop apart", function()
    check([[
A[x * 8] = 0
for i in range(8):
    A[x * 8 + i] = A[x * 8 + i] + 1]], [[
A[x * 8] = 0
for i in range(8):
    a: T.int32 = x * 8 + i
    A[a] = A[a] + 1]])
  end)

  it("binds behind a LetStmt what needs its variable", function()
    check([[
u: T.int32 = x % 7
v: T.int32 = y % 5
A[u * 3 + v] = A[u * 3]
A[u * 3 + v] = A[v * 2]
for i in range(8):
    A[v * 2 + i] = A[x % 7 + v * 2] ]], [[
u: T.int32 = x % 7
b: T.int32 = u * 3
v: T.int32 = y % 5
a: T.int32 = b + v
A[a] = A[b]
A[a] = A[v * 2]
for i in range(8):
    c: T.int32 = v * 2
    A[c + i] = A[u + c] ]])
  end)

  it("binds outside of a branch what both of its sides compute", function()
    check([[
if z < 3:
    A[0] = x + y
else:
    A[1] = x + y]], [[
a: T.int32 = x + y
if z < 3:
    A[0] = a
else:
    A[1] = a]])
    check([[
if z < 3:
    A[x + y] = x + y]], [[
if z < 3:
    a: T.int32 = x + y
    A[a] = a]])
  end)

  it("binds behind a LetStmt what both sides of a branch compute with its variable", function()
    check([[
u: T.int32 = x % 7
v: T.int32 = y % 5
if z < 3:
    A[u * 3] = A[v * 2]
    if z < 1:
        A[0] = v + 9
    else:
        A[1] = A[v + 9] + u * 2
else:
    if z < 9:
        A[2] = u * 3
    for i in range(8):
        A[v * 2 + i] = v + 9
    A[v + 9] = 4]], [[
u: T.int32 = x % 7
v: T.int32 = y % 5
a: T.int32 = v + 9
if z < 3:
    A[u * 3] = A[v * 2]
    if z < 1:
        A[0] = a
    else:
        A[1] = A[a] + u * 2
else:
    if z < 9:
        A[2] = u * 3
    for i in range(8):
        A[v * 2 + i] = a
    A[a] = 4]])
  end)

  it("uses variables that are there", function()
    check([[
s: T.int32 = x + y
for i in range(8):
    A[i] = x + y + i]], [[
s: T.int32 = x + y
for i in range(8):
    A[i] = s + i]])
  end)

  it("uses variables that are there in conditions", function()
    check([[
s: T.int32 = (2 - x) * y
if (2 - x) * y < z:
    A[0] = s]], [[
s: T.int32 = (2 - x) * y
if s < z:
    A[0] = s]])
  end)

  it("binds what one expression computes twice for each of several variables", function()
    check([[
u: T.int32 = A[1]
v: T.int32 = A[2]
w: T.int32 = A[3]
A[0] = (u + v + w) * (u + v + w) + (w * 3 + x) * (w * 3 + x)]], [[
u: T.int32 = A[1]
v: T.int32 = A[2]
a: T.int32 = u + v
w: T.int32 = A[3]
b: T.int32 = a + w
c: T.int32 = w * 3 + x
A[0] = b * b + c * c]])
  end)

  it("binds at each level of branches in branches", function()
    check([[
A[1] = (x * 2 + 1) * (x * 2 + 1)
if y < 1:
    A[0] = x
else:
    A[2] = (x * 3 + 1) * (x * 3 + 1)
    if y < 2:
        A[0] = x * 4 + 1
    else:
        A[3] = (x * 4 + 1) * (x * 4 + 1)
        A[4] = x * 4 + 1]], [[
a: T.int32 = x * 2 + 1
A[1] = a * a
if y < 1:
    A[0] = x
else:
    b: T.int32 = x * 3 + 1
    c: T.int32 = x * 4 + 1
    A[2] = b * b
    if y < 2:
        A[0] = c
    else:
        A[3] = c * c
        A[4] = c]])
  end)

  it("leaves loads and calls alone", function()
    local mod = parse [[
A[0] = A[1] * A[1] + T.call_extern("int32", "f", x) + T.call_extern("int32", "f", x)]]
    assert.is_true(rawequal(mod, pl.passes["tir.CommonSubexprElimTIR"]()(mod)))
  end)

  it("can be switched off", function()
    local mod = parse "A[x + y] = x + y"
    local pass = pl.passes["tir.CommonSubexprElimTIR"]
    assert.is_true(rawequal(mod, pass { enable_cse_tir = false }(mod)))
  end)

  it("identifies terms that are equal by arithmetic, if asked to", function()
    local mod = parse [[
A[0] = x + y + z
A[1] = x + (y + z)
A[2] = x + x]]
    local out = pl.passes["tir.CommonSubexprElimTIR"] { identify_equiv_terms = true }(mod)
    assert.is_true(pl.equal(parse [[
cse_var_1: T.int32 = x + y + z
A[0] = cse_var_1
A[1] = cse_var_1
A[2] = x + x]], out), tostring(out))
  end)

  it("binds a condition that a side of its branch computes again", function()
    check([[
if x * y < z:
    A[0] = 1
else:
    assert x * y < z, "small"
    A[1] = 2]], [[
cse_var_1: T.bool = x * y < z
if cse_var_1:
    A[0] = 1
else:
    assert cse_var_1, "small"
    A[1] = 2]])
  end)

  it("takes a time that grows with the number of statements", function()
    local lines = {}
    for i = 1, 300 do lines[i] = ("A[%d] = (x + y * %d) * (x + y * %d)"):format(i % 64, i, i) end
    local mod = parse(table.concat(lines, "\n"))
    local begin = os.clock()
    local out = pl.passes["tir.CommonSubexprElimTIR"]()(mod)
    assert.is_true(os.clock() - begin < 2)
    local _, bound = tostring(out):gsub("cse_var_%d+: T.int32", "")
    assert.equal(300, bound)
  end)
end)
