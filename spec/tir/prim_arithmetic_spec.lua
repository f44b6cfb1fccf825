-- Arithmetic on PrimExprs: what TVM's own tests of its operators pin
-- (test_tir_ops.py, test_tir_nodes.py), and what its folding does of what
-- overflows, is no number or is divided by zero.

local pl = require "perilune"
local tir = pl.tir

local function fails(message, ...)
  local ok, err = pcall(...)
  assert.is_false(ok)
  assert.is_truthy(tostring(err):find(message, 1, true), tostring(err))
end

local function value(node, expected, dtype)
  assert.are.equal(expected, node.value)
  assert.are.equal(dtype, node.dtype)
end

describe("constants of PrimExprs", function()
  local function c(number) return tir.const(number, "int32") end

  it("are computed (const_fold)", function()
    value(c(3) + c(4), 7, "int32")
    value(c(3) * c(12) - 10, 26, "int32")
    value(c(3) - tir.truncmod(c(12), 10), 1, "int32")
    value(c(100) // c(12) + 10, 18, "int32")
    value(c(112) & c(128) + 10, 112 & 138, "int32")
    value(tir.gt(c(112), c(128)), 0, "bool")
    value(tir.lt(c(112), c(128)), 1, "bool")
    value(tir.le(c(112), c(128)), 1, "bool")
    value(tir.ge(c(112), c(128)), 0, "bool")
    value((c(112) | c(128)) ~ 10, (112 | 128) ~ 10, "int32")
  end)

  it("that add nothing are left out (const_fold2)", function()
    local x = tir.Var("x")
    for _, same in ipairs { x + 0, 0 + x, x - 0, x * 1, 1 * x, x // 1, tir.truncdiv(x, 1) } do
      assert.are.equal(x, same)
    end
    value(tir.truncmod(x, 1), 0, "int32")
    value(x % 1, 0, "int32")
    value(tir.truncmod(0, x), 0, "int32")
    value(0 * x, 0, "int32")
    assert.are.equal("Div", tir.truncdiv(1, x).kind)
    assert.are.equal(x, tir.min(x, x))
    assert.are.equal(x, tir.max(x, x))
  end)

  it("of conditions are bools (const_fold3)", function()
    local x, p = tir.Var("x"), tir.Var("p", "bool")
    local yes, no = tir.const(true), tir.const(false)
    for _, all in ipairs { tir.all, tir.any } do
      for _, known in ipairs { yes, no, tir.const(1), tir.const(0) } do
        fails("its operands must be conditions", all, known, x)
        fails("its operands must be conditions", all, x, known)
      end
    end
    for _, a in ipairs { yes, no } do
      for _, b in ipairs { yes, no } do
        value(tir.all(a, b), a.value & b.value, "bool")
        value(tir.any(a, b), a.value | b.value, "bool")
      end
    end
    for _, same in ipairs { tir.all(p, yes), tir.all(yes, p), tir.any(p, no), tir.any(no, p) } do
      assert.are.equal(p, same)
    end
    for _, known in ipairs { tir.all(p, no), tir.all(no, p) } do value(known, 0, "bool") end
    for _, known in ipairs { tir.any(p, yes), tir.any(yes, p) } do value(known, 1, "bool") end
    value(tir.logical_not(yes), 0, "bool")
    assert.are.equal("Not", tir.logical_not(p).kind)
  end)

  it("are of the dtype of the result (const_fold4)", function()
    local four = tir.const(4, "int32")
    value(four + 5, 9, "int32")
    value(tir.truncdiv(four + 5, 3), 3, "int32")
    local sum = tir.truncdiv(four + 5, 3) + 0.55
    assert.are.equal("FloatImm", sum.kind)
    assert.is_true(math.abs(sum.value - 3.55) < 1e-6)
    value(tir.ceil(sum), 4.0, "float32")
    value(tir.cast("int32", tir.ceil(sum)), 4, "int32")
    local rounded = tir.round((tir.const(6.5, "float32") - 1) / 1.5) + 2
    value(tir.cast("int32", rounded), 6, "int32")
  end)

  it("wrap in as many bits as the dtype has", function()
    value(tir.const(2147483647) + 1, -2147483648, "int32")
    value(tir.const(-2147483648) - 1, 2147483647, "int32")
    value(tir.const(65536) * 65536, 0, "int32")
    value(tir.const(100, "int8") + tir.const(100, "int8"), -56, "int8")
    value(tir.const(200, "uint8") + tir.const(100, "uint8"), 44, "uint8")
    value(tir.const(5, "uint8") - tir.const(7, "uint8"), 254, "uint8")
    value(tir.const(math.maxinteger, "int64") + 1, math.mininteger, "int64")
    value(tir.const(math.mininteger, "int64") // -1, math.mininteger, "int64")
    value(tir.truncdiv(tir.const(-2147483648), -1), -2147483648, "int32")
    value(tir.floormod(tir.const(math.mininteger, "int64"), -1), 0, "int64")
    local less = tir.const(0, "uint64") - tir.const(1, "uint64")
    assert.are.equal("Sub", less.kind)
  end)

  it("round towards where the quotient says", function()
    local cases = { { 7, 2 }, { -7, 2 }, { 7, -2 }, { -7, -2 }, { 6, -3 } }
    for _, case in ipairs(cases) do
      local a, b = c(case[1]), c(case[2])
      value(a // b, case[1] // case[2], "int32")
      value(a % b, case[1] % case[2], "int32")
      value(tir.truncmod(a, b), math.fmod(case[1], case[2]), "int32")
      value(tir.truncdiv(a, b), (case[1] - math.fmod(case[1], case[2])) // case[2], "int32")
      value(tir.ceildiv(a, b), (case[1] + case[2] - 1) // case[2], "int32")
    end
    assert.are.equal("(n + 4 - 1) // 4", tostring(tir.ceildiv(tir.Var("n"), 4)):match "[^\n]*$")
  end)

  it("of remainders are those of indices only", function()
    local a, b = tir.const(7, "int8"), tir.const(4, "int8")
    assert.are.equal("FloorMod", (a % b).kind)
    assert.are.equal("Mod", tir.truncmod(a, b).kind)
    value(a // b, 1, "int8")
  end)

  it("of floats may be infinite or no number", function()
    value(tir.const(1e38) * 10, math.huge, "float32")
    value(tir.const(-1e38) * 10, -math.huge, "float32")
    value(tir.const(0.1) + 0.2, string.unpack("f", string.pack("f", 0.1 + 0.2)), "float32")
    value(tir.const(0.1, "float64") + 0.2, 0.1 + 0.2, "float64")
    local nan = tir.const(0 / 0)
    value(tir.lt(nan, nan), 0, "bool")
    value(tir.ge(nan, nan), 0, "bool")
    value(tir.ne(nan, nan), 1, "bool")
    assert.are_not.equal(tir.FloatImm("float32", 0).value, (nan + 1).value)
    assert.are.equal("Add", (tir.const(1, "float16") + tir.const(2, "float16")).kind)
    value(tir.max(tir.const(1, "float16"), tir.const(2, "float16")), 2.0, "float16")
  end)

  it("are not divided by zero (divide_by_zero)", function()
    for name, kind in pairs {
      floormod = "FloorMod", floordiv = "FloorDiv", truncmod = "Mod", truncdiv = "Div", div = "Div",
    } do
      fails(kind .. ": a division by zero", tir[name], c(5), c(0))
      fails(kind .. ": a division by zero", tir[name], tir.Var("x"), 0)
    end
    fails("Div: a division by zero", tir.div, tir.Var("x", "float32"), 0.0)
    assert.are.equal("T.FloorDiv(5, 0)", tostring(tir.FloorDiv(c(5), 0)))
  end)
end)

describe("operands of PrimExprs", function()
  local function var(dtype) return tir.Var("v", dtype) end

  local rules = {
    { "bool", "int32", "int32" }, { "int32", "float32", "float32" },
    { "int32", "int64", "int64" }, { "uint32", "int8", "uint32" },
    { "uint32", "int32", "uint32" }, { "int16", "uint8", "int16" },
    { "float16", "float64", "float64" }, { "bfloat16", "int32", "bfloat16" },
    { "float32", "bfloat16", "float32" }, { "uint8", "bool", "uint8" },
    { "int32x4", "float32", "float32x4" },
  }

  it("are brought to one dtype (binary_dtype_match)", function()
    for _, rule in ipairs(rules) do
      for _, at in ipairs { { 1, 2 }, { 2, 1 } } do
        local a, b = var(rule[at[1]]), var(rule[at[2]])
        for _, operator in ipairs { tir.add, tir.multiply, tir.min } do
          local node = operator(a, b)
          assert.are.equal(rule[3], node.dtype)
          assert.are.same({ rule[3], rule[3] }, { node.a.dtype, node.b.dtype })
        end
        local node = tir.ge(a, b)
        assert.is_truthy(node.dtype:find "^bool")
        assert.are.same({ rule[3], rule[3] }, { node.a.dtype, node.b.dtype })
      end
    end
  end)

  it("of a power are floats", function()
    for _, case in ipairs {
      { "float32", "int32", "float32" }, { "int32", "float64", "float64" },
      { "float32", "float64", "float64" },
    } do
      local node = tir.pow(var(case[1]), var(case[2]))
      assert.are.equal(case[3], node.dtype)
      assert.are.same({ case[3], case[3] }, { node.args[1].dtype, node.args[2].dtype })
    end
    fails("pow: of floats, not int32", tir.pow, var "int32", var "int32")
    fails("fmod: of floats, not int32", tir.fmod, var "int32", var "int32")
  end)

  it("of if_then_else are matched, and one is taken when that is known", function()
    local x, y = var "int32", var "int64"
    local node = tir.if_then_else(var "bool", x, y)
    assert.are.same({ "int64", "int64", "int64" },
      { node.dtype, node.args[2].dtype, node.args[3].dtype })
    assert.are.equal(y, tir.if_then_else(false, x, y))
    assert.is_true(pl.equal(tir.cast("int64", x), tir.if_then_else(true, x, y)))
    assert.are.equal("uint32", tir.if_then_else(var "bool", var "uint32", var "int32").dtype)
    fails("if_then_else: its condition must be a bool, not int32", tir.if_then_else, var "int32",
      x, y)
  end)

  it("are cast as lanes of a vector (cast)", function()
    local x = var "float32"
    assert.are.equal("Cast", tir.cast("int32", x).kind)
    local wide = tir.cast("float32x4", x)
    assert.are.same({ "Broadcast", 4 }, { wide.kind, wide.lanes })
    assert.are.equal(x, tir.cast("float32", x))
    local ramp = tir.cast("int64x4", tir.Ramp(var "int32", 2, 4))
    assert.are.same({ "Ramp", "int64", "int64" }, { ramp.kind, ramp.base.dtype, ramp.stride.dtype })
    assert.are.equal("Cast", tir.cast("float32x4", tir.Ramp(0, 1, 4)).kind)
    local same = tir.cast("float16x4", tir.Broadcast(x, 4))
    assert.are.same({ "Broadcast", "float16" }, { same.kind, same.value.dtype })
    value(tir.cast("int32", tir.const(-2.9)), -2, "int32")
    value(tir.cast("float32", tir.const(true)), 1.0, "float32")
    assert.are.equal("Cast", tir.cast("int8", tir.const(1e10)).kind)
    assert.are.equal("Cast", tir.cast("int32", tir.const(0 / 0)).kind)
    fails("a handle has no value of another dtype", tir.cast, "int32", tir.StringImm "s")
  end)
end)

describe("bits of PrimExprs", function()
  local x, y = tir.Var("x"), tir.Var("y")

  local function last_line(node) return tostring(node):match "[^\n]*$" end

  it("are calls of builtins (bitwise)", function()
    assert.are.equal("T.shift_left(x, y)", last_line(x << y))
    assert.are.equal("T.shift_right(x, y)", last_line(x >> y))
    assert.are.equal("T.bitwise_and(x, y)", last_line(x & y))
    assert.are.equal("T.bitwise_or(x, y)", last_line(x | y))
    assert.are.equal("T.bitwise_xor(x, y)", last_line(x ~ y))
    assert.are.equal("T.bitwise_and(10, x)", last_line(10 & x))
    assert.are.equal("T.shift_left(10, x)", last_line(10 << x))
    assert.are.equal("T.bitwise_not(x)", last_line(~x))
    assert.are.equal("int8x2", (tir.const(1, "int8x2") >> 1).dtype)
    assert.are.equal("int32x2", (x >> tir.const(1, "int32x2")).dtype)
  end)

  it("are those of integers (float_bitwise)", function()
    local half = tir.const(1.5)
    fails("shift_left: of integers, not float32", tir.shift_left, half, 10.0)
    fails("shift_right: of integers, not float32", tir.shift_right, half, 10.0)
    fails("bitwise_or: of integers, not float32", tir.bitwise_or, half, 10.0)
    fails("bitwise_xor: of integers, not float32", tir.bitwise_xor, half, 10.0)
    fails("bitwise_and: of integers, not float32", tir.bitwise_and, half, 10.0)
    fails("bitwise_not: of integers, not float32", tir.bitwise_not, half)
  end)

  it("are shifted by as many as there are (shift_bounds)", function()
    for _, name in ipairs { "shift_left", "shift_right" } do
      fails(name .. ": int32 has no shift by -1 bits", tir[name], x, -1)
      fails(name .. ": int32 has no shift by 32 bits", tir[name], x, 32)
      assert.are.equal(x, tir[name](x, 0))
      assert.are.equal("PrimCall", tir[name](x, 16).kind)
      assert.are.equal("PrimCall", tir[name](x, 31).kind)
    end
    value(tir.const(1) << 31, -2147483648, "int32")
    value(tir.const(3, "int64") << 63, math.mininteger, "int64")
    value(tir.const(-7) >> 1, -4, "int32")
    value(tir.const(math.mininteger, "int64") >> 63, -1, "int64")
  end)
end)

describe("functions of PrimExprs", function()
  local x = tir.Var("x", "float32")

  it("tell whether a float is a number (isnan)", function()
    assert.are.equal("T.isnan(x)", tostring(tir.isnan(x)):match "[^\n]*$")
    assert.are.equal("bool", tir.isnan(x).dtype)
    local half = tir.Var("y", "float16")
    assert.are.equal('T.isnan(T.Cast("float32", y))', tostring(tir.isnan(half)):match "[^\n]*$")
    value(tir.isnan(tir.Var("z")), 0, "bool")
    value(tir.isnan(tir.const(0 / 0)), 1, "bool")
    assert.are.equal("boolx2", tir.isnan(tir.Var("k", "int8x2")).dtype)
    assert.are.equal('T.fabs(x) == T.float32("inf") and not T.isnan(x)',
      tostring(tir.isinf(x)):match "[^\n]*$")
    value(tir.isinf(tir.const(1 / 0)), 1, "bool")
    value(tir.isfinite(tir.const(1.0)), 1, "bool")
    value(tir.isfinite(tir.const(-1 / 0)), 0, "bool")
  end)

  it("have limits of their dtypes (infinity)", function()
    assert.are.equal('T.float16("inf")', tostring(tir.infinity "float16"))
    assert.are.equal('T.float64("inf")', tostring(tir.infinity "float64"))
    value(tir.max_value "int8", 127, "int8")
    value(tir.min_value "int8", -128, "int8")
    value(tir.max_value "int64", math.maxinteger, "int64")
    value(tir.min_value "int64", math.mininteger, "int64")
    value(tir.max_value "uint16", 65535, "uint16")
    value(tir.min_value "uint16", 0, "uint16")
    value(tir.max_value "float16", 65504.0, "float16")
    value(tir.min_value "float16", -65504.0, "float16")
    fails("infinity: int32 has none", tir.infinity, "int32")
    fails("max_value: handle has none", tir.max_value, "handle")
    fails("max_value: that of uint64 is not an IntImm", tir.max_value, "uint64")
  end)

  it("round constants, and leave integers alone", function()
    for name, results in pairs {
      floor = { -3.0, 2.0 }, ceil = { -2.0, 3.0 }, round = { -2.0, 2.0 },
      nearbyint = { -2.0, 2.0 }, trunc = { -2.0, 2.0 },
    } do
      value(tir[name](tir.const(-2.5)), results[1], "float32")
      value(tir[name](tir.const(2.5)), results[2], "float32")
      value(tir[name](tir.const(1 / 0)), math.huge, "float32")
      assert.are.equal("PrimCall", tir[name](x).kind)
      local i = tir.Var("i")
      assert.are.equal(i, tir[name](i))
    end
    value(tir.abs(tir.const(-3)), 3, "int32")
    value(tir.abs(tir.const(-3.5)), 3.5, "float32")
    assert.are.equal("T.Select(i >= 0, i, 0 - i)",
      tostring(tir.abs(tir.Var("i"))):match "[^\n]*$")
    local u = tir.Var("u", "uint8")
    assert.are.equal(u, tir.abs(u))
  end)

  it("keep bits only in what has as many", function()
    assert.are.equal(x, tir.reinterpret("float32", x))
    assert.are.equal("int32", tir.reinterpret("int32", x).dtype)
    assert.are.equal("int8x4", tir.reinterpret("int8x4", x).dtype)
    fails("reinterpret: float32 and int64 differ in size", tir.reinterpret, "int64", x)
  end)

  it("leave out likely of a constant", function()
    local near = tir.likely(tir.lt(tir.Var("i"), 4))
    assert.are.equal("T.likely(i < 4)", tostring(near):match "[^\n]*$")
    local yes = tir.const(true)
    assert.are.equal(yes, tir.likely(yes))
  end)
end)
