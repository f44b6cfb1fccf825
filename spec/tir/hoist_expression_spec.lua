-- Conditions and variables outside of loops: tir.HoistIfThenElse, tir.HoistExpression. What is
-- written here computes the same before and after, by the interpreter.

local pl = require "perilune"

local function module_of(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function gives(pass, before, after, config)
  local mod = module_of(before)
  local context = pl.context { config = config or {} }
  local result = pl.with(context, pl.passes[pass](), mod)
  assert.is_true(pl.equal(result, module_of(after)), tostring(result))
  assert.is_true(pl.tir.check(mod, result) ~= nil)
end

local function keeps(pass, body)
  local mod = module_of(body)
  local result = pl.passes[pass]()(mod)
  assert.is_true(pl.equal(result, mod), tostring(result))
end

describe("conditions outside of loops", function()
  it("leave all loops that they do not use", function()
    gives("tir.HoistIfThenElse", [[
for i in range(8):
    for j in range(8):
        if i < n:
            A[i * 8 + j] = B[i] ]], [[
for i in range(8):
    if i < n:
        for j in range(8):
            A[i * 8 + j] = B[i] ]])
  end)

  it("leave two loops where there is something else to do", function()
    gives("tir.HoistIfThenElse", [[
for i in range(8):
    if 3 < n:
        A[i] = B[i]
    else:
        A[i] = B[7 - i] ]], [[
if 3 < n:
    for i in range(8):
        A[i] = B[i]
else:
    for i in range(8):
        A[i] = B[7 - i] ]])
  end)

  it("stay inside of an else's branch's loop", function()
    gives("tir.HoistIfThenElse", [[
for i in range(8):
    if i < 5:
        if 3 < n:
            A[i] = B[i]
    else:
        A[i] = T.float32(2)]], [[
if 3 < n:
    for i in range(8):
        if i < 5:
            A[i] = B[i]
        else:
            A[i] = T.float32(2)
else:
    for i in range(8):
        if not i < 5:
            A[i] = T.float32(2)]])
  end)

  it("stay where loops have several statements", function()
    keeps("tir.HoistIfThenElse", [[
for i in range(8):
    A[i] = B[i]
    if 3 < n:
        A[i] = B[7 - i] ]])
  end)

  it("stay where they read memory, may fail, or use what the loop binds", function()
    keeps("tir.HoistIfThenElse", [[
for i in range(8):
    if T.float32(0) < A[0]:
        A[i] = B[i] ]])
    keeps("tir.HoistIfThenElse", [[
for i in range(8):
    if 2 < 10 // n:
        A[i] = B[i] ]])
  end)

  it("stay where a block binds what they use", function()
    keeps("tir.HoistIfThenElse", [[
for i in range(8):
    with T.block("b"):
        v = T.axis.spatial(8, i)
        T.reads(B[v])
        T.writes(A[v])
        if v < n:
            A[v] = B[v] ]])
  end)

  it("leave expressions too, and sides of a conjunction", function()
    gives("tir.HoistExpression", [[
for i in range(8):
    A[i] = T.if_then_else(3 < n, B[i], B[7 - i]) ]], [[
if 3 < n:
    for i in range(8):
        A[i] = B[i]
else:
    for i in range(8):
        A[i] = B[7 - i] ]])
    gives("tir.HoistExpression", [[
for i in range(8):
    if i < 5 and 3 < n:
        A[i] = B[i] ]], [[
if 3 < n:
    for i in range(8):
        if i < 5:
            A[i] = B[i] ]])
  end)

  it("take the variables along that they need", function()
    gives("tir.HoistExpression", [[
for i in range(8):
    m: T.int32 = n * 2
    if m > 6:
        A[i] = B[i] ]], [[
if 3 < n:
    for i in range(8):
        A[i] = B[i] ]], { ["tir.HoistExpression.hoisted_let_bindings"] = 1 })
  end)

  it("make at most 256 copies of a loop", function()
    local lines = { "for i in range(8):" }
    for k = 1, 12 do
      lines[#lines + 1] = ("    "):rep(k) .. ("if n != %d:"):format(k)
    end
    local depth = 12
    lines[#lines + 1] = ("    "):rep(depth + 1) .. "A[i] = B[i]"
    for k = depth, 1, -1 do
      lines[#lines + 1] = ("    "):rep(k) .. "else:"
      lines[#lines + 1] = ("    "):rep(k + 1) .. ("A[i] = T.float32(%d)"):format(k)
    end
    local mod = module_of(table.concat(lines, "\n"))
    local result = pl.passes["tir.InsertHoistIfThenElse"]()(mod)
    local _, copies = tostring(result):gsub("for i", "")
    assert.equal(256, copies)
    assert.is_true(pl.tir.check(mod, result) ~= nil)
  end)
end)
