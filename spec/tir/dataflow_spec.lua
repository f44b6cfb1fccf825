-- What is known of buffers: tir.Simplify with propagate_knowns_*, tir.RemoveNoOp with
-- use_dataflow_analysis. PERILUNE_SEED and PERILUNE_GRAPHS set the first seed and the number of
-- random programs.

local pl = require "perilune"

local first_seed = tonumber(os.getenv "PERILUNE_SEED" or 1)
local number = tonumber(os.getenv "PERILUNE_GRAPHS" or 150)

local config = {
  prove = { ["tir.Simplify.propagate_knowns_to_prove_conditional"] = true },
  simplify = { ["tir.Simplify.propagate_knowns_to_simplify_expressions"] = true },
  both = { ["tir.Simplify.propagate_knowns_to_prove_conditional"] = true,
    ["tir.Simplify.propagate_knowns_to_simplify_expressions"] = true },
  reduce = { ["tir.ReduceBranchingThroughOvercompute.use_dataflow_analysis"] = true },
  remove = { ["tir.RemoveNoOp.use_dataflow_analysis"] = true },
}

local passes = { remove = "tir.RemoveNoOp", reduce = "tir.ReduceBranchingThroughOvercompute",
  plain = "tir.ReduceBranchingThroughOvercompute" }

local function parse(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), C: T.Buffer((8, 8), "int32"),
    n: T.int32):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function run(kind, mod)
  local pass = pl.passes[passes[kind] or "tir.Simplify"]()
  return pl.with(pl.context { config = config[kind] }, pass, mod)
end

local function check(kind, before, after)
  local out = run(kind, parse(before))
  assert.is_true(pl.equal(parse(after), out), tostring(out))
end

local function unchanged(kind, body) check(kind, body, body) end

describe("tir.Simplify, propagate_knowns_to_prove_conditional", function()
  it("takes the branch that stores before it decide", function()
    check("prove", [=[
A[0] = 0
if A[0] == 0:
    A[0] = 42]=], [=[
A[0] = 0
A[0] = 42]=])
    check("prove", [=[
for i in range(16):
    A[i] = i * 3
for j in range(16):
    if A[j] == j * 3:
        B[j] = 1
    else:
        B[j] = 2]=], [=[
for i in range(16):
    A[i] = i * 3
for j in range(16):
    B[j] = 1]=])
  end)

  it("knows elements of strides, of dimensions, of vectors", function()
    check("prove", [=[
for i in range(8):
    A[i * 4 + 1] = i
for i, j in T.grid(8, 8):
    C[i, j] = i - j
B[0:4] = T.Ramp(3, 2, 4)
if A[9] == 2:
    A[0] = 1
if C[n % 8, 3] == n % 8 - 3:
    A[1] = 1
if B[2] == 7:
    A[2] = 1]=], [=[
for i in range(8):
    A[i * 4 + 1] = i
for i, j in T.grid(8, 8):
    C[i, j] = i - j
B[0:4] = T.Ramp(3, 2, 4)
A[0] = 1
A[1] = 1
A[2] = 1]=])
  end)

  it("uses assumptions, and conditions on loads", function()
    check("prove", [=[
for i in range(16):
    T.assume(i < 14 or A[i] == 0)
for i in range(16):
    if 14 <= i:
        if A[i] == 0:
            B[i] = 1
    else:
        if A[i] == 0:
            B[i] = 2
if B[0] == 7:
    if B[0] < 8:
        A[0] = 1
T.assume(n == 3)
if n < 4:
    A[1] = 1]=], [=[
for i in range(16):
    T.assume(i < 14 or A[i] == 0)
for i in range(16):
    if 14 <= i:
        B[i] = 1
    else:
        if A[i] == 0:
            B[i] = 2
if B[0] == 7:
    A[0] = 1
T.assume(n == 3)
A[1] = 1]=])
  end)

  it("knows what holds behind branches", function()
    check("prove", [=[
if n < 3:
    A[0] = 1
else:
    A[0] = 1
if A[0] == 1:
    B[0] = 1
if n < 5:
    A[1] = 4
if n < 2:
    if A[1] == 4:
        B[1] = 1]=], [=[
if n < 3:
    A[0] = 1
else:
    A[0] = 1
B[0] = 1
if n < 5:
    A[1] = 4
if n < 2:
    B[1] = 1]=])
  end)

  it("forgets what a store, an iteration, a call may change", function()
    unchanged("prove", [=[
A[0] = 0
A[n] = 1
if A[0] == 0:
    B[0] = 1]=])
    unchanged("prove", [=[
B[0] = 0
for i in range(16):
    if B[0] < 10:
        B[0] = B[0] + A[i]]=])
    unchanged("prove", [=[
A[0] = 0
T.call_extern("int32", "fill", A.data)
if A[0] == 0:
    B[0] = 1]=])
    unchanged("prove", [=[
for i in range(n):
    A[0] = 1
if A[0] == 1:
    B[0] = 1]=])
    unchanged("prove", [=[
A[B[0]] = 1
B[0] = 3
if A[B[0]] == 1:
    B[1] = 1]=])
  end)
end)

describe("tir.Simplify, propagate_knowns_to_simplify_expressions", function()
  it("puts values in the place of loads", function()
    check("simplify", [=[
A[0] = 0
A[0] = A[0] + 1
B[A[0]] = A[0] * n]=], [=[
A[0] = 0
A[0] = 1
B[1] = n]=])
  end)

  it("leaves the operands of addresses", function()
    unchanged("simplify", [=[
A[0] = 0
T.call_extern("int32", "fill", T.address_of(A[0]))]=])
  end)
end)

describe("tir.RemoveNoOp, use_dataflow_analysis", function()
  it("removes stores that are overwritten", function()
    check("remove", [=[
for i in range(4, 12):
    A[i] = 100
for i in range(16):
    B[i] = 0
for i in range(16):
    A[i] = 42]=], [=[
for i in range(16):
    B[i] = 0
for i in range(16):
    A[i] = 42]=])
    check("remove", [=[
for i in range(16):
    if i < 10:
        A[i] = 100
for i in range(16):
    if i // 4 < 3:
        A[i] = 42]=], [=[
for i in range(16):
    if i // 4 < 3:
        A[i] = 42]=])
  end)

  it("removes stores of what is there, and keeps one of two that justify each other", function()
    check("remove", [=[
for i in range(16):
    A[i] = i
A[4] = 4
A[n % 16] = n % 16]=], [=[
for i in range(16):
    A[i] = i]=])
    check("remove", [=[
A[0] = 4
A[0] = 4]=], "A[0] = 4")
  end)

  it("keeps effects, and what is read", function()
    check("remove", [=[
A[0] = T.call_extern("int32", "count")
A[0] = 42]=], [=[
T.evaluate(T.call_extern("int32", "count"))
A[0] = 42]=])
    unchanged("remove", [=[
A[0] = 1
B[0] = A[0]
A[0] = 2]=])
    unchanged("remove", [=[
A[0] = 1
T.call_extern("int32", "look", A.data)
A[0] = 2]=])
    unchanged("remove", [=[
for i in range(8):
    A[i] = i
for i in range(7):
    A[i] = A[i + 1] + 1]=])
  end)
end)

describe("tir.ReduceBranchingThroughOvercompute", function()
  it("runs a branch in any case, where the other one is a special case of it", function()
    check("plain", [=[
for i in range(16):
    if i < 14:
        A[i] = 1
        T.evaluate(0)
    else:
        A[i] = 1]=], [=[
for i in range(16):
    A[i] = 1]=])
    check("plain", [=[
for i in range(16):
    if i > 0:
        B[0] = B[0] + i * i]=], [=[
for i in range(16):
    B[0] = B[0] + i * i]=])
    check("reduce", [=[
for i in range(16):
    T.assume(i < 14 or A[i] == 0)
for i in range(16):
    if i < 14:
        B[0] = B[0] + A[i]]=], [=[
for i in range(16):
    T.assume(i < 14 or A[i] == 0)
for i in range(16):
    B[0] = B[0] + A[i]]=])
    check("reduce", [=[
for i in range(16):
    if i < 14:
        A[i] = 1
for io, ii in T.grid(4, 4):
    if 4 * io + ii >= 14:
        A[4 * io + ii] = 2]=], [=[
for i in range(16):
    A[i] = 1
for io, ii in T.grid(4, 4):
    if 4 * io + ii >= 14:
        A[4 * io + ii] = 2]=])
  end)

  it("keeps conditions that are needed", function()
    unchanged("plain", [=[
for i in range(16):
    if i < 14:
        A[i] = 1
    else:
        A[i] = 2]=])
    unchanged("reduce", [=[
for i in range(16):
    if i < 14:
        A[i] = 1
for i in range(16):
    if i >= 14:
        A[i] = A[i] + 1]=])
    unchanged("plain", [=[
for i in range(80):
    if i < 64:
        A[i] = A[i]]=])
  end)
end)

-- ------------------------------------------------------------------ random programs

local Program = {}
Program.__index = Program

local function pick(list) return list[math.random(#list)] end

function Program:line(text) self.lines[#self.lines + 1] = ("    "):rep(self.level) .. text end

-- An index below 64, of loop variables below 8.
function Program:index()
  local vars = self.vars
  if #vars == 0 or math.random() < 0.2 then return tostring(math.random(0, 9)) end
  local v, w = pick(vars), pick(vars)
  local kind = math.random(7)
  if kind == 1 then return ("%s * %d + %d"):format(v, math.random(1, 4), math.random(0, 4)) end
  if kind == 2 then return ("%s * 8 + %s"):format(v, w) end
  if kind == 3 then return ("%d - %s"):format(math.random(7, 20), v) end
  if kind == 4 then return ("%s + %s"):format(v, w) end
  if kind == 5 then return ("%s // 2"):format(v) end
  if kind == 6 then return ("T.max(%s, n %% 5)"):format(v) end
  return v
end

function Program:load()
  if math.random() < 0.2 then
    return ("C[(%s) %% 8, (%s) %% 8]"):format(self:index(), self:index())
  end
  if math.random() < 0.05 then return ("A[B[%s] %% 8]"):format(self:index()) end
  return ("%s[%s]"):format(pick { "A", "B" }, self:index())
end

function Program:value()
  local kind = math.random(6)
  if kind <= 2 then return tostring(math.random(0, 2)) end
  if kind == 3 then return self:index() end
  if kind == 4 then return self:load() end
  return ("%s + %d"):format(self:load(), math.random(0, 1))
end

function Program:condition()
  local kind = math.random(6)
  if kind <= 2 then
    return ("%s %s %d"):format(self:index(), pick { "<", ">=", "==" }, math.random(0, 8))
  end
  if kind == 3 then
    return ("%s < %d and %s == %d"):format(self:index(), math.random(0, 8), self:load(),
      math.random(0, 2))
  end
  return ("%s %s %s"):format(self:load(), pick { "==", "!=", "<" },
    pick { "0", "1", self:index() })
end

function Program:inside(depth)
  self.level = self.level + 1
  self:statements(depth - 1)
  self.level = self.level - 1
end

function Program:store()
  local kind = math.random(10)
  if kind == 1 then
    local from = math.random(0, 20)
    self:line(("%s[%d:%d] = %s"):format(pick { "A", "B" }, from, from + 4,
      pick { "T.Broadcast(1, 4)", "T.Ramp(0, 1, 4)", "T.Ramp(2, 3, 4)" }))
  elseif kind == 2 then
    self:line(("C[(%s) %% 8, (%s) %% 8] = %s"):format(self:index(), self:index(), self:value()))
  else
    self:line(("%s[%s] = %s"):format(pick { "A", "B" }, self:index(), self:value()))
  end
end

function Program:loop(depth)
  self.count = self.count + 1
  local var = "i" .. self.count
  local low = math.random(0, 2)
  self:line(("for %s in range(%d, %s):"):format(var, low,
    pick { "4", "8", "6", ("%d + n %% 3"):format(low) }))
  table.insert(self.vars, var)
  self:inside(depth)
  table.remove(self.vars)
end

function Program:branch(depth)
  self:line(("if %s:"):format(self:condition()))
  self:inside(depth)
  if math.random() < 0.4 then
    self:line "else:"
    self:inside(depth)
  end
end

function Program:binding(depth)
  self.count = self.count + 1
  local var = "v" .. self.count
  self:line(("%s: T.int32 = (%s) %% 8"):format(var, pick { self:index(), self:load() }))
  table.insert(self.vars, var)
  self:statements(depth - 1)
  table.remove(self.vars)
end

function Program:statement(depth)
  local kind = depth == 0 and 1 or math.random(10)
  if kind <= 4 then self:store()
  elseif kind <= 7 then self:loop(depth)
  elseif kind <= 9 then self:branch(depth)
  else self:binding(depth) end
end

function Program:statements(depth)
  for _ = 1, math.random(3) do self:statement(math.max(depth, 0)) end
end

local function random_program(seed)
  math.randomseed(seed)
  local p = setmetatable({ lines = {}, level = 0, vars = {}, count = 0 }, Program)
  for _ = 1, 4 do p:statement(3) end
  return table.concat(p.lines, "\n")
end

describe("what is known of buffers", function()
  it("does not change what random programs compute", function()
    local changed = 0
    for seed = first_seed, first_seed + number - 1 do
      local text = random_program(seed)
      local before = parse(text)
      for _, kind in ipairs { "both", "remove", "reduce" } do
        local after = run(kind, before)
        local same, diag = pl.tir.check(before, after, { rounds = 2, seed = seed, rtol = 0,
          atol = 0 })
        assert.is_true(same ~= nil, ("seed %d, %s\n%s\n%s\n%s"):format(seed, kind, text,
          tostring(diag), tostring(after)))
        local without = pl.passes[passes[kind] or "tir.Simplify"]()(before)
        if not pl.equal(without, after) then changed = changed + 1 end
      end
    end
    assert.is_true(changed > number / 8, changed)
  end)
end)
