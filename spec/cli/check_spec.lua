-- pl.check, perilune check and opt --check: what they find, and what they do not
-- take for equal.

local pl = require "perilune"
local command = require "spec.cli.command"
local model = require "perilune.zoo.model"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

local function path(name) return folder .. "/" .. name end

local function run(arguments) return command.run(folder, arguments) end

local x = pl.var("x", "Tensor[(N, 3), float32]")
local op = pl.op

local function differs(a, b, pattern, options)
  local ok, diag = pl.check(a, b, options)
  assert.is_nil(ok)
  assert.matches(pattern, diag.message)
end

describe("pl.check", function()
  it("says how many rounds were compared", function()
    local ok, report = pl.check(pl.func({ x }, x + x), pl.func({ x }, x * 2), { rounds = 4 })
    assert.is_true(ok)
    assert.same({ rounds = 4, compared = 4, refused = 0, elements = 18 }, report)
  end)

  it("finds what only NaN, infinities or -0 tell apart", function()
    differs(pl.func({ x }, x), pl.func({ x }, x * 1 + (x - x)), "special.*got nan, expected")
    local i = pl.var("i", "Tensor[(N, 3), int32]")
    differs(pl.func({ i }, i), pl.func({ i }, op.maximum(i, -1000)),
      "special.*got %-1000, expected %-2147483648")
    assert(pl.check(pl.func({ x }, x), pl.func({ x }, x * 1)))
  end)

  it("finds what only some sizes tell apart", function()
    local function last_of(n) -- the sum of the first n rows
      return pl.func({ x }, op.sum(op.strided_slice(x, pl.const(pl.tensor { 0 }),
        pl.const(pl.tensor { n }), pl.const(pl.tensor { 0 })), { axes = { 0 } }))
    end
    differs(last_of(1), last_of(2), "N=2")
    differs(last_of(2), last_of(100), "N=3")
    assert(pl.check(last_of(2), last_of(100), { dims = { N = 2 } }))
  end)

  it("finds a difference of one element, and says where", function()
    local one = pl.const(pl.tensor({ { 0, 0, 0 }, { 0, 1, 0 } }, "float32"))
    differs(pl.func({ x }, x), pl.func({ x }, x + one),
      "result 1 differs at %[1, 1%]: got [^,]+, expected [^;]+; 1 of 6 elements differ, by up to 1",
      { dims = { N = 2 } })
  end)

  it("does not take two refusals for equal", function()
    local i = pl.var("i", "Tensor[(2), int32]")
    local bad = pl.func({ i }, op.divide(i, i - i))
    differs(bad, bad, "^no round could run: both refuse: 'divide': division by zero")
    differs(bad, pl.func({ i }, i), "only the first refuses")
    differs(pl.func({ i }, i), bad, "only the second refuses")
  end)

  it("compares a round in which indices are small", function()
    local i = pl.var("i", "Tensor[(N), int64]")
    local data = pl.const(pl.tensor({ 1, 2 }, "float32"))
    local f = pl.func({ i }, op.take(data, i, { axis = 0 }))
    local ok, report = pl.check(f, f)
    assert.is_true(ok)
    assert.equal(6, report.compared) -- extremes are no indices: the round is run with small ones
  end)

  it("looks for sizes that are not refused", function()
    local function rows_of(n)
      return pl.func({ x }, op.reshape(x, pl.const(pl.tensor { n, 3 })))
    end
    for _, n in ipairs { 6, 512 } do
      local ok, report = pl.check(rows_of(n), rows_of(n))
      assert.is_true(ok)
      assert.is_true(report.compared >= 5)
    end
    differs(rows_of(11), rows_of(11), "both refuse", { dims = { N = 12 } })
    assert(pl.check(rows_of(11), rows_of(11), { dims = { N = 11 } }))
    assert(pl.check(rows_of(11), rows_of(11)))
  end)

  it("tells which sizes it tried when nothing runs", function()
    local n = pl.var("n", "Tensor[(N, ?), int64]")
    local never = pl.func({ n }, op.divide(n, n - n))
    differs(never, never, "^every round that ran gave results without elements: both refuse the "
      .. "others: 'divide': .*; sizes that were tried for N, the dims of 'n' "
      .. "Tensor%[%(N, %?%), int64%]: 0 to 8, 16, 64, 512, 4096; fix sizes with %-%-dim NAME=SIZE "
      .. "or %-%-shape INPUT=D0,D1")
  end)

  it("tells the round, its seed and its sizes, from which it can be run again", function()
    local _, diag = pl.check(pl.func({ x }, x), pl.func({ x }, x + 1), { seed = 40 })
    assert.matches("^round 1 %(ordinary numbers, seed 40, N=2%): ", diag.message)
  end)

  it("compares sequences, complex, packed, small and other dtypes", function()
    for _, dtype in ipairs { "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64",
      "uint8", "uint16", "uint32", "uint64", "bool", "string", "complex64", "complex128",
      "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
      "float4_e2m1fn", "int4", "uint4", "int2", "uint2" } do
      local v = pl.var("v", ("Tensor[(N, 3), %s]"):format(dtype))
      local w = pl.var("w", ("Tensor[(N, 3), %s]"):format(dtype))
      assert(pl.check(pl.func({ v, w }, v), pl.func({ v, w }, v)))
      differs(pl.func({ v, w }, v), pl.func({ v, w }, w), "result 1 differs at")
    end
    local a, b = pl.const(1.0), pl.const(2.0)
    local function sequence(...) return pl.func({}, op.sequence_construct(...)) end
    assert(pl.check(sequence(a, b), sequence(a, b)))
    differs(sequence(a, b), sequence(a, a), "result 1 differs, element 1")
    differs(sequence(a, b), sequence(a), "got a sequence of 1, expected a sequence of 2")
  end)

  it("knows its options", function()
    assert.error_matches(function() pl.check(x, x, { tolerence = 1 }) end, "no option 'tolerence'")
    assert.error_matches(function() pl.check(x, x, { round = 1 }) end, "did you mean 'rounds'?",
      nil, true)
  end)

  it("refuses what takes other arguments", function()
    differs(pl.func({ x }, x), pl.func({}, pl.const(1.0)), "one takes 1 arguments, the other 0")
    local f = pl.var("f", pl.type { kind = "func", parts = { x.type, x.type } })
    differs(pl.func({ f }, pl.const(1)), pl.func({ f }, pl.const(1)), "no argument can be made")
  end)
end)

-- f(x, y) = x - y, its inputs and an initializer in the order given.
local function save(name, inputs, gain)
  local m = model.new { name = "check" }
  for _, input in ipairs(inputs) do m:input(input, "float32", { "N", 2 }) end
  local difference = m:node("Sub", { "x", "y" })
  local by = m:initializer("by", "float32", { 1 }, model.fill(1, gain or 1))
  m:output(m:node("Mul", { difference, by }, nil, "z"), "float32", { "N", 2 })
  assert(m:save(path(name)))
  return path(name)
end

local a = save("a.onnx", { "x", "y" })
local swapped = save("swapped.onnx", { "y", "x" })
local other = save("other.onnx", { "x", "y" }, 1.5)

describe("perilune check", function()
  it("says that models are equal, and in how many rounds", function()
    local status, out, err = run(("check %s %s --seed 3"):format(a, a))
    assert.equal(0, status, err)
    assert.equal("equal in 6 of 6 rounds, from seed 3\n", out)
  end)

  it("matches inputs by name", function()
    assert.equal(0, (run(("check %s %s"):format(a, swapped))))
  end)

  it("ends with 1 and tells where they differ", function()
    local status, out, err = run(("check %s %s --rounds 1 --dim N=4"):format(a, other))
    assert.equal(1, status)
    assert.equal("", out)
    assert.matches("differ: round 1 %(ordinary numbers, seed 1, N=4%): result 1 'z' differs at ",
      err)
    assert.equal(0, (run(("check %s %s --rtol 1"):format(a, other))))
  end)

  it("ends with 2 for wrong usage, with 1 for what cannot be done", function()
    assert.equal(2, (run("check " .. a)))
    assert.equal(2, (run(("check %s %s --rounds 0"):format(a, a))))
    assert.equal(2, (run(("check %s %s --seed=-1"):format(a, a))))
    assert.equal(2, (run(("check %s %s --dim N"):format(a, a))))
    local status, _, err = run(("check %s %s --dim M=2"):format(a, a))
    assert.equal(1, status)
    assert.matches("--dim M=2: no input has a dim of that name", err, 1, true)
    assert.equal(1, (run(("check %s %s"):format(a, path "none.onnx"))))
  end)
end)

describe("perilune opt --check", function()
  it("says that its result computes the same", function()
    local status, out, err = run(("opt %s -o %s --check"):format(a, path "out.onnx"))
    assert.equal(0, status, err)
    assert.matches("\nequal in 6 of 6 rounds, from seed 1\n", out)
  end)

  it("writes nothing when it does not", function()
    local script = path "wrong.lua"
    local file = assert(io.open(script, "w"))
    file:write [[
      local pl = require "perilune"
      return pl.function_pass { name = "wrong", run = pl.mutator { Call = function(call)
        if call.op == pl.op.subtract then return pl.op.add(call.args[1], call.args[2]) end
      end } }]]
    file:close()
    local status, _, err = run(("opt %s -o %s -p %s --check"):format(a, path "not.onnx", script))
    assert.equal(1, status)
    assert.matches("--check: round 1 .*result 1 'z' differs.*; nothing is written", err)
    assert.is_nil(io.open(path "not.onnx"))
    assert.equal(0, (run(("opt %s -o %s -p %s"):format(a, path "not.onnx", script))))
  end)
end)
