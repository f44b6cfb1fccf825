-- tir.LiftAttrScope. The texts were written for these tests and their results checked by hand.

local pl = require "perilune"

local function module_of(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), n: T.int32):
%s
]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function lift(key) return pl.passes["tir.LiftAttrScope"] { attr_key = key or "k" } end

local function gives(body, expected)
  local before, wanted = module_of(body), module_of(expected)
  local result = lift()(before)
  assert.is_true(pl.equal(result, wanted, { map_free_vars = true }), tostring(result))
  assert.is_true(rawequal(lift()(result), result))
  assert.is_truthy(pl.tir.check(before, result, { rounds = 3, seed = 1, rtol = 0, atol = 0 }))
end

local function keeps(body, key)
  local mod = module_of(body)
  assert.is_true(rawequal(lift(key)(mod), mod))
end

describe("tir.LiftAttrScope", function()
  it("puts one attribute around neighbours that say the same, and around their loop", function()
    gives([[
for i in range(4):
    with T.attr(0, "k", 1):
        A[i] = i
    with T.attr(0, "k", 1):
        B[i] = A[i]
        B[i + 8] = i]], [[
with T.attr(0, "k", 1):
    for i in range(4):
        A[i] = i
        B[i] = A[i]
        B[i + 8] = i]])
  end)

  it("keeps apart what says something else, and other statements", function()
    gives([[
with T.attr(0, "k", 1):
    A[0] = 0
with T.attr(0, "k", 1):
    A[1] = 1
A[2] = 2
with T.attr(0, "k", 1):
    A[3] = 3
with T.attr(0, "k", 2):
    A[4] = 4
for i in range(4):
    with T.attr(0, "k", 2):
        A[i] = 5]], [[
with T.attr(0, "k", 1):
    A[0] = 0
    A[1] = 1
A[2] = 2
with T.attr(0, "k", 1):
    A[3] = 3
with T.attr(0, "k", 2):
    A[4] = 4
    for i in range(4):
        A[i] = 5]])
  end)

  it("leaves a branch when all its cases say the same", function()
    gives([[
if n > 0:
    with T.attr(0, "k", n):
        A[0] = 0
else:
    with T.attr(0, "k", n):
        A[1] = 0]], [[
with T.attr(0, "k", n):
    if n > 0:
        A[0] = 0
    else:
        A[1] = 0]])
    gives([[
if n > 0:
    with T.attr(0, "k", 1):
        A[0] = 0]], [[
with T.attr(0, "k", 1):
    if n > 0:
        A[0] = 0]])
    keeps [[
if n > 0:
    with T.attr(0, "k", 1):
        A[0] = 0
else:
    A[1] = 0]]
  end)

  it("leaves lets, assertions and attributes of other keys", function()
    gives([[
assert n > 0, "n"
with T.attr(0, "other", 1):
    with T.LetStmt(n + 1) as m:
        while A[0] < m:
            with T.attr(0, "k", n):
                A[0] = A[0] + m]], [[
with T.attr(0, "k", n):
    assert n > 0, "n"
    with T.attr(0, "other", 1):
        with T.LetStmt(n + 1) as m:
            while A[0] < m:
                A[0] = A[0] + m]])
  end)

  it("stays inside of what binds a variable that it names, or makes memory", function()
    keeps [[
for i in range(4):
    with T.attr(0, "k", i + 1):
        A[i] = 0]]
    keeps [[
with T.LetStmt(n + 1) as m:
    with T.attr(0, "k", m):
        A[0] = m]]
    keeps [[
C = T.allocate([4], "int32", "global")
with T.attr(C, "k", 1):
    A[0] = 0]]
    keeps [[
i = T.env_thread("threadIdx.x")
with T.launch_thread(i, 4):
    with T.attr(0, "k", i):
        A[i] = 0]]
  end)

  it("does not lift what reads memory", function()
    keeps [[
for i in range(4):
    with T.attr(0, "k", A[0]):
        A[0] = i]]
    keeps [[
with T.attr(0, "k", A[0]):
    A[0] = 1
with T.attr(0, "k", A[0]):
    A[0] = 2]]
  end)

  it("does not look into attributes of the key, and needs a key", function()
    keeps [[
with T.attr(0, "k", 1):
    for i in range(4):
        with T.attr(0, "k", 2):
            A[i] = 0]]
    keeps([[
for i in range(4):
    with T.attr(0, "k", 2):
        A[i] = 0]], "other")
    assert.error_matches(function() lift ""(module_of "A[0] = 1") end,
      "the option 'attr_key' is missing")
  end)

  -- Stores of random programs stand in attributes of few values. PERILUNE_SEED is the first seed.
  it("keeps what random programs compute", function()
    local random_program = require "spec.tir.random_program".text
    local first, changed = tonumber(os.getenv "PERILUNE_SEED" or 1), 0
    for seed = first, first + 149 do
      local text, count = random_program(seed), 0
      text = text:gsub("(\n +)(%w+%[[^\n]*%] = [^\n]*)", function(indent, store)
        count = count + 1
        return ('%swith T.attr(0, "k", %d):%s    %s'):format(indent, (seed + count) % 3 // 2,
          indent, store)
      end)
      local before = assert(pl.tir.parse(text))
      local after = lift()(before)
      if not rawequal(before, after) then
        changed = changed + 1
        local same, diag = pl.tir.check(before, after, { rounds = 1, seed = seed, rtol = 0,
          atol = 0 })
        assert.is_truthy(same, ("seed %d\n%s%s"):format(seed, text, tostring(diag)))
        assert.is_true(rawequal(lift()(after), after), ("seed %d\n%s"):format(seed, text))
      end
    end
    assert.is_true(changed > 20, changed)
  end)
end)
