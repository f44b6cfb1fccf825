-- The interpreter of the loop IR: pl.tir.run, pl.tir.check, pl.eval of PrimFuncs.

local pl = require "perilune"

local function parse(text) return assert(pl.tir.parse(text, "spec")) end

-- A PrimFunc of the buffers A (8 floats) and B (8 integers) with the given body.
local function program(body, dtypes)
  local a, b = table.unpack(dtypes or { "float32", "int32" })
  return parse(('@T.prim_func\ndef f(A: T.Buffer((8,), "%s"), B: T.Buffer((8,), "%s")):\n'):format(
    a, b) .. body:gsub("([^\n]+)", "    %1"))
end

local function run(body, a, b, options, dtypes)
  local mod = program(body, dtypes)
  dtypes = dtypes or { "float32", "int32" }
  local args = {
    pl.tensor(a or { 1, 2, 3, 4, 5, 6, 7, 8 }, dtypes[1]),
    pl.tensor(b or { 0, 0, 0, 0, 0, 0, 0, 0 }, dtypes[2]),
  }
  local results = pl.tir.run(mod, args, options)
  return results[1]:to_table(), results[2]:to_table(), results, args
end

local function fails(body, text, ...)
  local ok, err = pcall(run, body, ...)
  assert.is_false(ok, body)
  assert.matches(text, tostring(err), 1, true)
end

describe("statements of the loop IR", function()
  it("store, and leave the arguments alone", function()
    local a, _, results, args = run "for i in range(8):\n    A[i] = A[i] * T.float32(2)"
    assert.same({ 2, 4, 6, 8, 10, 12, 14, 16 }, a)
    assert.equal(1, args[1]:to_table()[1])
    assert.equal(args[2], results[2])
  end)

  it("run loops of every kind serially", function()
    for _, loop in ipairs { "T.parallel(8)", "T.unroll(8)", "T.vectorized(8)", "T.serial(8)",
      'T.thread_binding(8, thread="threadIdx.x")' } do
      local _, b = run(("for i in %s:\n    B[i] = i * i"):format(loop))
      assert.same({ 0, 1, 4, 9, 16, 25, 36, 49 }, b)
    end
  end)

  it("run loops of no or a negative extent not at all", function()
    local _, b = run "for i in range(-3):\n    B[0] = 7\nfor i in range(0):\n    B[0] = 7"
    assert.equal(0, b[1])
  end)

  it("branch, let, and loop while", function()
    local _, b = run [[
for i in range(8):
    x: T.int32 = i * 3
    if x % 2 == 0:
        B[i] = x
    else:
        B[i] = -x
while B[0] < 5:
    B[0] = B[0] + 1]]
    assert.same({ 5, -3, 6, -9, 12, -15, 18, -21 }, b)
  end)

  it("allocate, and see memory as other buffers", function()
    local _, b = run [[
C = T.allocate([8], "int32", "global")
C_1 = T.Buffer((8,), "int32", data=C)
C_2 = T.Buffer((2, 4), "int32", data=C)
for i in range(8):
    C_1[i] = i
for i, j in T.grid(2, 4):
    B[i + j * 2] = C_2[i, j] ]]
    assert.same({ 0, 4, 1, 5, 2, 6, 3, 7 }, b)
  end)

  it("run blocks with an init where reductions begin", function()
    local mod = parse [[
@T.prim_func
def f(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3,), "float32")):
    for i, k in T.grid(3, 4):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i < 2)
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(10)
            B[vi] = B[vi] + A[vi, vk] ]]
    local a = pl.tensor({ { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 9, 9, 9 } }, "float32")
    local out = pl.tir.run(mod, { a, pl.tensor({ 0, 0, -1 }, "float32") })
    assert.same({ 20, 36, -1 }, out[2]:to_table())
  end)

  it("see regions through match_buffer, strides and offset included", function()
    local mod = parse [[
@T.prim_func
def f(A: T.Buffer((4, 6), "int32")):
    for i in range(2):
        with T.block("b"):
            vi = T.axis.spatial(2, i)
            T.reads()
            T.writes(A[vi * 2:vi * 2 + 2, 1:4])
            s0, s1, off = T.int32(), T.int32(), T.int32()
            V = T.match_buffer(A[vi * 2:vi * 2 + 2, 1:4], (2, 3), "int32",
                               strides=(s0, s1), elem_offset=off)
            for j, k in T.grid(2, 3):
                V[j, k] = vi * 100 + j * 10 + k]]
    local rows = {}
    for i = 1, 4 do rows[i] = { 9, 9, 9, 9, 9, 9 } end
    local out = pl.tir.run(mod, { pl.tensor(rows, "int32") })[1]:to_table()
    assert.same({ { 9, 0, 1, 2, 9, 9 }, { 9, 10, 11, 12, 9, 9 }, { 9, 100, 101, 102, 9, 9 },
      { 9, 110, 111, 112, 9, 9 } }, out)
  end)

  it("bind the variables of shapes", function()
    local mod = parse [[
@T.prim_func
def f(a: T.handle, b: T.handle, s: T.int32):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    B = T.match_buffer(b, (m, n), "int32")
    for i, j in T.grid(n, m):
        B[j, i] = A[i, j] + s]]
    local a = pl.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, "int32")
    local b = pl.tensor({ { 0, 0 }, { 0, 0 }, { 0, 0 } }, "int32")
    assert.same({ { 11, 14 }, { 12, 15 }, { 13, 16 } },
      pl.tir.run(mod, { a, b, 10 })[2]:to_table())
    assert.has_error(function() pl.tir.run(mod, { a, a, 10 }) end)
  end)

  it("run realised buffers", function()
    local _, b = run [[
with T.decl_buffer((8,), "int32") as C:
    T.realize(C[2:6])
    for i in range(4):
        C[i + 2] = i
    for i in range(4):
        B[i] = C[5 - i] ]]
    assert.same({ 3, 2, 1, 0, 0, 0, 0, 0 }, b)
  end)
end)

describe("expressions of the loop IR", function()
  -- The value of an integer expression, with x = B[0] and y = B[1], as int32 or other dtype.
  local function int(expr, x, y, dtype)
    local text = "x: T.%s = B[0]\ny: T.%s = B[1]\nB[2] = %s"
    dtype = dtype or "int32"
    local _, b = run(text:format(dtype, dtype, expr), nil, { x, y, 0, 0, 0, 0, 0, 0 }, nil,
      { "float32", dtype })
    return b[3]
  end

  it("divide towards minus infinity and towards zero", function()
    for _, case in ipairs { { 7, 2, 3, 1, 3, 1 }, { -7, 2, -4, 1, -3, -1 },
      { 7, -2, -4, -1, -3, 1 }, { -7, -2, 3, -1, 3, -1 } } do
      local x, y, floordiv, floormod, div, mod = table.unpack(case)
      for _, dtype in ipairs { "int32", "int64", "int8" } do
        assert.equal(floordiv, int("x // y", x, y, dtype))
        assert.equal(floormod, int("x % y", x, y, dtype))
        assert.equal(div, int("T.Div(x, y)", x, y, dtype))
        assert.equal(mod, int("T.truncmod(x, y)", x, y, dtype))
      end
    end
  end)

  it("wrap integers at the width of their dtype", function()
    assert.equal(-2147483648, int("x + y", 2147483647, 1))
    assert.equal(-2147483648, int("T.Div(x, y)", -2147483648, -1))
    assert.equal(0, int("T.truncmod(x, y)", -2147483648, -1))
    assert.equal(-128, int("x + y", 127, 1, "int8"))
    assert.equal(0, int("x + y", 255, 1, "uint8"))
    assert.equal(255, int("x - y", 0, 1, "uint8"))
    assert.equal(math.mininteger, int("x + y", math.maxinteger, 1, "int64"))
  end)

  it("shift by any count", function()
    assert.equal(0, int("T.shift_left(x, y)", 1, 40))
    assert.equal(-2147483648, int("T.shift_left(x, y)", 1, 31))
    assert.equal(-1, int("T.shift_right(x, y)", -8, 70))
    assert.equal(-2, int("T.shift_right(x, y)", -8, 2))
  end)

  it("count and combine bits", function()
    assert.equal(32, int("T.popcount(x)", -1, 0))
    assert.equal(31, int("T.clz(x)", 1, 0))
    assert.equal(8, int("T.bitwise_and(x, y)", 12, 10))
    assert.equal(14, int("T.bitwise_or(x, y)", 12, 10))
    assert.equal(6, int("T.bitwise_xor(x, y)", 12, 10))
    assert.equal(-13, int("T.bitwise_not(x)", 12, 0))
  end)

  it("evaluate only what a condition selects", function()
    local _, b = run [[
for i in range(8):
    B[i] = T.if_then_else(i > 0 and 8 // i > 2, B[i - 1] + 1, T.Select(i < 3, 5, B[i - 3]))]]
    assert.same({ 5, 6, 7, 5, 6, 7, 5, 6 }, b)
  end)

  it("call functions of floats", function()
    for name, fn in pairs { exp = math.exp, sqrt = math.sqrt, sin = math.sin, log = math.log,
      floor = math.floor, fabs = math.abs } do
      local a = run(("A[0] = T.%s(A[1])"):format(name), { 0, 2.5, 0, 0, 0, 0, 0, 0 }, nil, nil,
        { "float64", "int32" })
      assert.is_true(math.abs(a[1] - fn(2.5)) < 1e-12, name)
    end
    assert.equal(8, run("A[0] = T.pow(A[1], A[2])")[1])
    assert.equal(10, run("A[0] = T.fma(A[1], A[2], A[3])")[1])
    assert.equal(2, run("A[0] = T.nearbyint(A[1])", { 0, 2.5, 0, 0, 0, 0, 0, 0 })[1])
    assert.equal(3, run("A[0] = T.round(A[1])", { 0, 2.5, 0, 0, 0, 0, 0, 0 })[1])
  end)

  it("cast as the kernels do", function()
    local _, b = run([[
B[0] = T.Cast("int32", A[0])
B[1] = T.Cast("int32", A[1])
B[2] = T.Cast("int32", T.Cast("int8", A[2]))
B[3] = T.Cast("int32", T.Cast("bool", A[3]))]], { -2.7, 1e20, 300, 0.5, 0, 0, 0, 0 })
    assert.same({ -2, -2147483648, 44, 1 }, table.move(b, 1, 4, 1, {}))
  end)

  it("round narrow floats after each operation", function()
    local a = run("A[0] = A[1] + A[2]", { 0, 2048, 1, 0, 0, 0, 0, 0 }, nil, nil,
      { "float16", "int32" })
    assert.equal(2048, a[1])
  end)

  it("load and store vectors", function()
    local a, b = run [[
A[0:4] = A[4:8] + T.Broadcast(A[0], 4)
B[T.Ramp(7, -2, 4)] = T.Ramp(1, 1, 4)]]
    assert.same({ 6, 7, 8, 9, 5, 6, 7, 8 }, a)
    assert.same({ 0, 4, 0, 3, 0, 2, 0, 1 }, b)
  end)

  it("bind lets, and reduce where a Reduce stands alone", function()
    local tir = pl.tir
    local A = tir.decl_buffer({ 8 }, "float32", "A")
    local k = tir.IterVar({ 0, 8 }, "k", "CommReduce")
    local sum = tir.sum(A:load(k.var), { k }, pl.tir.GT(k.var, 2))
    local fn = tir.PrimFunc({ A }, tir.BufferStore(A, sum, { 0 }))
    local out = pl.tir.run(fn, { pl.tensor({ 1, 2, 3, 4, 5, 6, 7, 8 }, "float32") })
    assert.equal(30, out[1]:to_table()[1])
    local v = tir.Var("v", "float32")
    local square = tir.Let(v, A:load(2) + 1, v * v)
    fn = tir.PrimFunc({ A }, tir.BufferStore(A, square + square, { 0 }))
    out = pl.tir.run(fn, { pl.tensor({ 1, 2, 3, 4, 5, 6, 7, 8 }, "float32") })
    assert.equal(32, out[1]:to_table()[1])
  end)
end)

describe("faults of a loop program", function()
  it("name the buffer, index, extent and statement", function()
    fails("for i in range(8):\n    A[i] = A[i + 1]",
      "index 8 of dimension 0 of buffer 'A', whose extent is 8")
    fails("for i in range(8):\n    A[i] = A[i + 1]", "in the statement: A[i] = A[i + 1]")
    fails("for i in range(8):\n    B[i - 1] = 0", "index -1 of dimension 0 of buffer 'B'")
    fails("A[T.Ramp(4, 2, 4)] = T.Broadcast(T.float32(0), 4)", "index 10 of dimension 0")
    fails("C = T.Buffer((9,), data=A.data)\nC[8] = T.float32(0)", "lies outside of its memory")
  end)

  it("are division by zero, assertions and memory that was not written", function()
    fails("B[0] = 5 // B[1]", "division by zero")
    fails('assert B[0] > 3, "too small"\nB[0] = 1', "assertion failed: too small")
    local read = 'C = T.allocate([8], "float32", "global")\nC_1 = T.Buffer((8,), data=C)\n'
      .. "A[0] = C_1[0]"
    fails(read, "buffer 'C_1' is read that was not written")
    assert.equal(0, run(read, nil, nil, { uninitialized = "zero" })[1])
    fails("T.evaluate(T.assume(B[0] == 1))", "an assumption does not hold")
  end)

  it("are arguments of another dtype, rank, shape or number", function()
    local mod = program "B[0] = 1"
    local a, b = pl.tensor({ 1, 2, 3, 4, 5, 6, 7, 8 }, "float32"), pl.tensor({ 1, 2 }, "int32")
    local function refused(args, text)
      local ok, err = pcall(pl.tir.run, mod, args)
      assert.is_false(ok)
      assert.matches(text, tostring(err), 1, true)
    end
    refused({ a }, "2 parameters, but 1 arguments")
    refused({ a, b }, "dimension 0 of 'B' is 2, but 8 is expected")
    refused({ a, a }, "argument 2 ('B'): int32 expected, got float32")
    refused({ a, pl.tensor({ { 1 } }, "int32") }, "a tensor of rank 1 expected, got rank 2")
  end)

  it("are what has no value here, by name", function()
    fails('B[0] = T.call_extern("int32", "foo", 3)', "external function 'foo' is not known")
    fails('T.call_packed("bar", 3)', "external function 'bar' is not known")
    fails('for i in T.thread_binding(8, thread="threadIdx.x"):\n    T.tvm_storage_sync("shared")',
      "tvm_storage_sync")
  end)

  it("are limits of memory and time", function()
    local huge = 'C = T.allocate([1000000000], "float32", "global")\n'
      .. "C_1 = T.Buffer((8,), data=C)\nA[0] = C_1[0]"
    pl.with(pl.context { config = { ["limit.memory"] = 100000000 } }, function()
      assert.has_error(function() run(huge) end)
    end)
    fails('C = T.allocate([T.int64(4000000000000)], "float32", "global")\nB[0] = 1', "too large")
    pl.with(pl.context { config = { ["limit.seconds"] = 0.05 } }, function()
      fails("while B[0] < 5:\n    B[1] = B[1] + 1", "limit.seconds")
    end)
    pl.with(pl.context { config = { ["limit.steps"] = 10000 } }, function()
      fails("while B[0] < 5:\n    B[1] = B[1] + 1", "limit.steps")
    end)
  end)

  it("are raised at the caller's line for misuse", function()
    local ok, err = pcall(pl.tir.run, program "B[0] = 1", {}, { zero = true })
    assert.is_false(ok)
    assert.matches("loop_run_spec.lua", tostring(err), 1, true)
  end)
end)

describe("functions of the host", function()
  it("are called with scalars", function()
    local _, b = run('B[0] = T.call_extern("int32", "foo", 3, A[1])', nil, nil,
      { externs = { foo = function(x, y) return x * 10 + math.floor(y) end } })
    assert.equal(32, b[1])
    local ok, err = pcall(run, 'B[0] = T.call_extern("int32", "foo", 3)', nil, nil,
      { externs = { foo = function() error "no" end } })
    assert.is_false(ok)
    assert.matches("no", tostring(err), 1, true)
  end)
end)

describe("pl.tir.check", function()
  local doubled = "for i in range(8):\n    A[i] = A[i] * T.float32(2)"

  it("accepts equal programs", function()
    assert.is_true(pl.tir.check(program(doubled),
      program "for i in range(8):\n    A[7 - i] = A[7 - i] + A[7 - i]"))
  end)

  it("finds differences, also of memory and faults", function()
    local cases = {
      "for i in range(7):\n    A[i] = A[i] * T.float32(2)",
      doubled .. "\nB[3] = B[3] + 1", doubled .. "\nB[8] = 1",
    }
    for _, body in ipairs(cases) do
      local same, diag = pl.tir.check(program(doubled), program(body))
      assert.is_nil(same, body)
      assert.equal("invalid", diag.code)
    end
  end)

  it("says when nothing could be compared", function()
    local same, diag = pl.tir.check(program 'T.call_packed("bar", 3)', program(doubled))
    assert.is_nil(same)
    assert.equal("unsupported", diag.code)
    assert.matches("no element was compared", diag.message, 1, true)
  end)
end)

describe("pl.eval", function()
  it("runs a PrimFunc and gives the buffers", function()
    local a, b = pl.eval(program "B[2] = 4", { 1, 2, 3, 4, 5, 6, 7, 8 }, { 0, 0, 0, 0, 0, 0, 0, 0 })
    assert.equal(8, a:to_table()[8])
    assert.equal(4, b:to_table()[3])
  end)

  it("computes what Relay computes", function()
    local relay = pl.parse [[#[version = "0.0.5"]
def @main(%a: Tensor[(6, 5), float32], %b: Tensor[(4, 5), float32]) {
  nn.relu(nn.dense(%a, %b))
}]]
    local mod = parse [[
@T.prim_func
def f(A: T.Buffer((6, 5)), B: T.Buffer((4, 5)), C: T.Buffer((6, 4))):
    for i, j in T.grid(6, 4):
        C[i, j] = T.float32(0)
        for k in range(5):
            C[i, j] = C[i, j] + A[i, k] * B[j, k]
        C[i, j] = T.max(C[i, j], T.float32(0))]]
    local a, b = pl.tensor.random({ 6, 5 }, "float32"), pl.tensor.random({ 4, 5 }, "float32")
    local c = pl.tensor.random({ 6, 4 }, "float32")
    local _, _, out = pl.eval(mod, a, b, c)
    assert.is_true(out:compare(pl.eval(relay, a, b), { rtol = 1e-5, atol = 1e-5 }))
  end)
end)

describe("random programs", function()
  -- An integer expression of i, B and constants, as script and as a Lua function of i and B.
  local function expression(random, depth)
    if depth == 0 then
      local choice = random(3)
      if choice == 1 then return "i", function(i) return i end end
      local n = random(9) - 1
      if choice == 2 then return ("T.int64(%d)"):format(n), function() return n end end
      return ("B[%d]"):format(n % 8), function(_, b) return b[n % 8 + 1] end
    end
    local x, fx = expression(random, depth - 1)
    local y, fy = expression(random, depth - 1)
    local choice, m = random(6), random(7)
    if choice == 1 then
      return ("(%s + %s)"):format(x, y), function(...) return fx(...) + fy(...) end
    elseif choice == 2 then
      return ("(%s - %s)"):format(x, y), function(...) return fx(...) - fy(...) end
    elseif choice == 3 then
      return ("(%s %% T.int64(%d))"):format(x, m), function(...) return fx(...) % m end
    elseif choice == 4 then
      return ("(%s // T.int64(%d))"):format(x, m), function(...) return fx(...) // m end
    end
    if choice == 5 then
      return ("T.max(%s, %s)"):format(x, y), function(...) return math.max(fx(...), fy(...)) end
    end
    return ("T.if_then_else(%s < %s, %s, %s)"):format(x, y, y, x), function(...)
      if fx(...) < fy(...) then return fy(...) end
      return fx(...)
    end
  end

  it("compute what Lua computes", function()
    local seed = tonumber(os.getenv "PERILUNE_SEED") or os.time()
    math.randomseed(seed)
    for _ = 1, 60 do
      local text, value = expression(math.random, 4)
      local b = { 3, -1, 4, 1, -5, 9, 2, -6 }
      local want = {}
      for i = 0, 7 do want[i + 1] = value(i, b) end
      local mod = parse(([[
@T.prim_func
def f(B: T.Buffer((8,), "int64"), C: T.Buffer((8,), "int64")):
    for i in range(T.int64(8)):
        C[i] = %s]]):format(text))
      local out = pl.tir.run(mod, { b, { 0, 0, 0, 0, 0, 0, 0, 0 } })
      assert.same(want, out[2]:to_table(), ("seed %d: %s"):format(seed, text))
    end
  end)
end)
