-- Programs of the loop level as C compute what the interpreter of loops computes, bit by bit.

local pl = require "perilune"

-- Without contraction, so that a * b + c is rounded twice, as the interpreter does.
local flags = "-O2 -std=c11 -march=native -ffp-contract=off -Wall -Wextra -Werror"

local function installed(cc)
  return os.execute(("command -v %s >/dev/null 2>&1"):format(cc)) == true
end

local function parse(text) return assert(pl.tir.parse(text, "spec")) end

local function built(program, options)
  local all = { flags = flags }
  for name, value in pairs(options or {}) do all[name] = value end
  return pl.build(program, all)
end

-- Equal numbers, equal signs of zeros, NaN where NaN is.
local function same_number(x, y)
  return x == y and (x ~= 0 or math.type(x) == "integer" or 1 / x == 1 / y) or x ~= x and y ~= y
end

local function flat(tensor)
  local out = {}
  local function add(value)
    if type(value) ~= "table" then out[#out + 1] = value return end
    for _, part in ipairs(value) do add(part) end
  end
  add(tensor:to_table())
  return out
end

local function difference(expected, got)
  if expected.dtype ~= got.dtype then return "another dtype" end
  local a, b = flat(expected), flat(got)
  if #a ~= #b then return "another size" end
  for i, x in ipairs(a) do
    if not same_number(x, b[i]) then
      return ("element %d: %s expected, got %s"):format(i, x, b[i])
    end
  end
end

local function first_function(m) return m:functions()[1].name end

local function compare(program, args, options, run_options)
  local expected = pl.tir.run(program, args, run_options)
  local m = built(program, options)
  local results = m:run(first_function(m), table.unpack(args))
  assert.equal(#expected, #results)
  for i, tensor in ipairs(expected) do
    local how = difference(tensor, results[i])
    assert(not how, ("buffer %d: %s\n%s"):format(i, how, how and m:source()))
  end
  return m, results
end

-- A PrimFunc of the buffers A (16 floats) and B (16 integers) with the given body.
local function program(body, dtypes, size)
  local a, b = table.unpack(dtypes or { "float32", "int32" })
  local head = '@T.prim_func\ndef f(A: T.Buffer((%d,), "%s"), B: T.Buffer((%d,), "%s")):\n'
  return parse(head:format(size or 16, a, size or 16, b) .. body:gsub("([^\n]+)", "    %1"))
end

local function ramp(n, from, step)
  local list = {}
  for i = 1, n do list[i] = from + (i - 1) * step end
  return list
end

local function check(body, dtypes, a, b, options)
  dtypes = dtypes or { "float32", "int32" }
  local args = { pl.tensor(a or ramp(16, 1, 0.5), dtypes[1]),
    pl.tensor(b or ramp(16, -7, 3), dtypes[2]) }
  return compare(program(body, dtypes), args, options)
end

local statements = {
  "for i in range(16):\n    A[i] = A[i] * T.float32(2)",
  "for i in range(-3):\n    B[0] = 7\nfor i in range(0):\n    B[0] = 7",
  [[
for i in range(16):
    x: T.int32 = i * 3
    if x % 2 == 0:
        B[i] = x
    else:
        B[i] = -x
while B[0] < 5:
    B[0] = B[0] + 1]],
  [[
C = T.allocate([16], "int32", "global")
C_1 = T.Buffer((16,), "int32", data=C)
C_2 = T.Buffer((4, 4), "int32", data=C)
for i in range(16):
    C_1[i] = i
for i, j in T.grid(4, 4):
    B[i + j * 4] = C_2[i, j] ]],
  [[
C = T.allocate([16], "int32", "global")
C_1 = T.Buffer((16,), "int32", data=C)
C_2 = T.Buffer((16,), "float32", data=C)
for i in range(16):
    C_1[i] = i + 1065353216
for i in range(16):
    A[i] = C_2[i] ]],
  "A[0:16] = A[0:16] + T.Broadcast(T.float32(1), 16)",
  "A[0:13] = A[3:16] * T.Broadcast(A[0], 13)",
  "A[T.Ramp(15, -1, 16)] = A[T.Ramp(0, 1, 16)]",
  "A[T.Ramp(0, 2, 8)] = A[T.Ramp(1, 2, 8)]",
  "A[0:8] = A[B[0:8] % T.Broadcast(16, 8)]",
  "A[0:15] = T.Select(A[1:16] > T.Broadcast(T.float32(4), 15), A[0:15], "
    .. "T.Broadcast(T.float32(0), 15))",
  "A[0:8] = T.Select(B[1] > 3, A[7:15], T.Broadcast(T.float32(0), 8))",
  "A[0:13] = T.Select(B[2] > 3, A[3:16], T.Broadcast(T.float32(0), 13))",
  "A[0:16] = T.max(T.min(A[0:16], T.Broadcast(T.float32(5), 16)), T.Broadcast(T.float32(2), 16))",
  "B[0:16] = T.Cast(\"int32x16\", A[0:16] * T.Broadcast(T.float32(1.7), 16))",
  "A[0:16] = T.Cast(\"float32x16\", B[0:16])",
  "B[0:16] = B[0:16] // T.Broadcast(4, 16) + B[0:16] % T.Broadcast(8, 16)",
  "B[0:16] = B[0:16] // T.Broadcast(3, 16) + B[0:16] % T.Broadcast(5, 16)",
  "A[0:16] = T.exp2(A[0:16])",
  [[
for i in range(16):
    A[i] = T.Select(i % 3 < 2, A[i // 2], A[(i * 5) % 16])
for i in range(16):
    A[i] = T.if_then_else(i > 2, A[i - 3], T.float32(0)) + T.float32(1)]],
  [[
for i in range(16):
    if i > 0 and A[i - 1] > T.float32(3) or B[i] < 4:
        B[i] = B[i] * B[i] - 1]],
  "for i in T.parallel(16):\n    for j in T.unroll(4):\n        B[i] = B[i] * 2 + j",
  "for i in T.vectorized(16):\n    A[i] = A[i] + T.float32(1)",
  'for i in T.thread_binding(16, thread="threadIdx.x"):\n    B[i] = i',
  "for i in range(16):\n    if B[i] + 6 <= 6 + B[i]:\n        A[i] = A[i] + T.float32(1)",
}

describe("C of loop programs", function()
  for i, body in ipairs(statements) do
    it(("computes what the interpreter computes, program %d"):format(i), function()
      check(body)
      check(body, nil, nil, nil, { vector_bytes = 16 })
      if i % 4 == 0 then check(body, nil, nil, nil, { vector_bytes = 64, run = "process" }) end
    end)
  end

  it("is compiled without warnings by each compiler", function()
    local missing = {}
    for _, cc in ipairs { "gcc", "clang", "tcc" } do
      if not installed(cc) then
        missing[#missing + 1] = cc
      else
        for _, body in ipairs(statements) do
          check(body, nil, nil, nil, { cc = cc,
            flags = cc == "tcc" and "-std=c11 -Wall -Werror"
              or "-O1 -std=c11 -ffp-contract=off -Wall -Wextra -Werror" })
        end
      end
    end
    if #missing > 0 then pending("without " .. table.concat(missing, ", ")) end
  end)

  it("gets the sizes of shapes from its arguments", function()
    local mod = parse [[
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for i, j in T.grid(n, m):
        B[j, i] = A[i, j] ]]
    local rows = { { 1, 2, 3 }, { 4, 5, 6 } }
    local m = built(mod)
    local out = m.f(pl.tensor(rows, "float32"), pl.tensor({ { 0, 0 }, { 0, 0 }, { 0, 0 } },
      "float32"))
    assert.same({ 1, 4, 2, 5, 3, 6 }, flat(out[2]))
    local ok, err = pcall(m.f, pl.tensor(rows, "float32"), pl.tensor(rows, "float32"))
    assert.is_false(ok)
    assert.matches("argument 2 ('B') of 'f': dimension 0 is not the declared one", tostring(err), 1,
      true)
  end)

  it("puts large and symbolic memory into the workspace", function()
    local mod = parse [[
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    k: T.int32 = n * 2
    C = T.allocate([k], "float32", "global")
    C_1 = T.Buffer((k,), data=C)
    D = T.allocate([100000], "float32", "global")
    D_1 = T.Buffer((100000,), data=D)
    for i in range(n):
        C_1[i * 2] = A[i]
        D_1[i] = T.float32(3)
    for i in range(n):
        B[i] = C_1[i * 2] * D_1[i] ]]
    local m = compare(mod, { pl.tensor(ramp(9, 1, 1), "float32"),
      pl.tensor(ramp(9, 0, 0), "float32") })
    assert.matches("size_t f_workspace_size(int64_t n)", m:header(), 1, true)
  end)

  it("shares parallel loops among threads", function()
    local mod = parse [[
@T.prim_func
def f(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    k: T.int32 = 3
    for i in T.parallel(64):
        C = T.allocate([64], "float32", "global")
        C_1 = T.Buffer((64,), data=C)
        for j in range(64):
            C_1[j] = A[i, j] + T.Cast("float32", k)
        for j in range(64):
            B[i, j] = C_1[63 - j] ]]
    local a, b = {}, {}
    for i = 1, 64 do a[i], b[i] = ramp(64, i, 0.25), ramp(64, 0, 0) end
    local args = { pl.tensor(a, "float32"), pl.tensor(b, "float32") }
    for _, stack in ipairs { 65536, 16 } do
      local m = compare(mod, args, { threads = 3, stack_bytes = stack })
      assert.matches("pl_parallel(f_loop1", m:source(), 1, true)
      compare(mod, args, { threads = 3, stack_bytes = stack, run = "process" })
    end
  end)

  it("checks assertions and divisors when asked to", function()
    local mod = program 'assert B[0] > 0, "B must be positive"\nB[1] = 12 // B[0]'
    local a = pl.tensor(ramp(16, 0, 0), "float32")
    local m = built(mod, { asserts = true })
    assert.equal(4, m.f(a, pl.tensor(ramp(16, 3, 0), "int32"))[2]:to_table()[2])
    local ok, err = pcall(m.f, a, pl.tensor(ramp(16, 0, 0), "int32"))
    assert.is_false(ok)
    assert.matches("'f': assertion failed: B must be positive", tostring(err), 1, true)
    local plain = built(mod)
    assert.equal(0, plain.f(a, pl.tensor(ramp(16, 0, 0), "int32"))[2]:to_table()[2])
    -- The config leaves them out, of modules and functions.
    pl.with(pl.context { config = { ["tir.disable_assert"] = true } }, function()
      for _, one in ipairs { mod, mod.functions.f } do
        local skipped = built(one, { asserts = true }):source()
        assert.is_falsy(skipped:find("B must be positive", 1, true))
      end
    end)
    local divides = built(program "B[1] = 12 // B[0]", { asserts = true })
    ok, err = pcall(divides.f, a, pl.tensor(ramp(16, 0, 0), "int32"))
    assert.is_false(ok)
    assert.matches("divides by zero", tostring(err), 1, true)
  end)

  it("is the same text each time", function()
    local mod = program(statements[6])
    assert.equal(pl.build(mod):source(), pl.build(program(statements[6])):source())
  end)
end)

describe("integers in C", function()
  local kinds = { "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32" }
  local corner = {
    int8 = { -128, -127, -2, -1, 0, 1, 2, 127 }, int16 = { -32768, -32767, -2, -1, 0, 1, 2, 32767 },
    int32 = { -2 ^ 31 // 1 | 0, -7, -2, -1, 0, 1, 2, 2147483647 },
    int64 = { math.mininteger, -7, -2, -1, 0, 1, 2, math.maxinteger },
    uint8 = { 0, 1, 2, 3, 7, 127, 128, 255 }, uint16 = { 0, 1, 2, 3, 7, 32767, 32768, 65535 },
    uint32 = { 0, 1, 2, 3, 7, 2147483647, 2147483648, 4294967295 },
  }
  local operators = { "A[i] + A[j]", "A[i] - A[j]", "A[i] * A[j]", "T.min(A[i], A[j])",
    "T.max(A[i], A[j])", "T.bitwise_and(A[i], A[j])", "T.bitwise_or(A[i], A[j])",
    "T.bitwise_xor(A[i], A[j])", "T.bitwise_not(A[i])", "T.popcount(A[i])",
    "T.shift_left(A[i], A[j])", "T.shift_right(A[i], A[j])",
    "T.Cast(\"DT\", A[i] < A[j]) + T.Cast(\"DT\", A[i] == A[j])" }
  local divisions = { "T.Div(A[i], A[j])", "T.truncmod(A[i], A[j])", "A[i] // A[j]",
    "A[i] % A[j]" }

  local function binary(dtype, expression, values)
    local n = #values
    local mod = parse(([[
@T.prim_func
def f(A: T.Buffer((%d,), "%s"), B: T.Buffer((%d,), "%s")):
    for i, j in T.grid(%d, %d):
        B[i * %d + j] = %s]]):format(n, dtype, n * n, dtype, n, n, n,
      (expression:gsub("DT", dtype))))
    local zeros = ramp(n * n, 0, 0)
    compare(mod, { pl.tensor(values, dtype), pl.tensor(zeros, dtype) }, { run = "process",
      flags = "-O1 -std=c11 -Wall -Wextra -Werror" })
  end

  for _, dtype in ipairs(kinds) do
    it("wrap as the interpreter has it: " .. dtype, function()
      for _, expression in ipairs(operators) do binary(dtype, expression, corner[dtype]) end
      local nonzero = {}
      for _, value in ipairs(corner[dtype]) do
        if value ~= 0 then nonzero[#nonzero + 1] = value end
      end
      for _, expression in ipairs(divisions) do binary(dtype, expression, nonzero) end
    end)
  end
end)

describe("floats in C", function()
  local special = { 0.0, -0.0, 1.0, -1.5, 2.5, 1e-40, 3.4e38, -3.4e38, math.huge, -math.huge,
    0 / 0, 0.3, 7.0, -2147483648.0, 2147483648.0, 1e19 }
  local unary = { "exp2", "exp10", "sqrt", "rsqrt", "log", "log2",
    "log1p", "log10", "tan", "cos", "cosh", "sin", "sinh", "asin", "acos", "atan", "acosh", "asinh",
    "atanh", "floor", "ceil", "round", "nearbyint", "trunc", "fabs" }
  -- Of float32 these are no functions of C's library: checked below.
  local polynomials = { "erf", "exp", "sigmoid", "tanh" }
  local plain = "-O1 -std=c11 -ffp-contract=off -Wall -Wextra -Werror"

  local function equal(expected, got, where)
    local how = difference(expected, got)
    assert(not how, where .. ": " .. tostring(how))
  end

  local function compare_floats(lines, dtype)
    local body = ""
    for i, line in ipairs(lines) do
      body = ("%s    for i in range(16):\n        B[%d + i] = %s\n"):format(body,
        (i - 1) * 16, line)
    end
    local mod = parse(([[
@T.prim_func
def f(A: T.Buffer((16,), "%s"), B: T.Buffer((%d,), "%s")):
%s]]):format(dtype, #lines * 16, dtype, body))
    local args = { pl.tensor(special, dtype), pl.tensor(ramp(#lines * 16, 0, 0), dtype) }
    local m = pl.build(mod, { flags = plain, run = "process" })
    equal(pl.tir.run(mod, args)[2], m.f(table.unpack(args))[2], dtype)
  end

  for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16" } do
    it("are those of the interpreter: " .. dtype, function()
      local lines = {}
      for i, name in ipairs(unary) do lines[i] = ("T.%s(A[i])"):format(name) end
      if dtype ~= "float32" then
        for _, name in ipairs(polynomials) do lines[#lines + 1] = ("T.%s(A[i])"):format(name) end
      end
      for _, text in ipairs { "A[i] + A[15 - i]", "A[i] - A[15 - i]", "A[i] * A[15 - i]",
        "A[i] / A[15 - i]", "T.min(A[i], A[15 - i])", "T.max(A[i], A[15 - i])",
        "T.pow(A[i], A[15 - i])", "T.fmod(A[i], A[15 - i])", "T.atan2(A[i], A[15 - i])",
        "T.hypot(A[i], A[15 - i])", "T.copysign(A[i], A[15 - i])",
        "T.nextafter(A[i], A[15 - i])",
        "T.fma(A[i], A[15 - i], A[3])", 'T.Cast("DT", T.isnan(A[i]))',
        'T.Cast("DT", T.isinf(A[i]))', 'T.Cast("DT", T.Cast("int32", A[i]))',
        'T.Cast("DT", T.Cast("int64", A[i]))', 'T.Cast("DT", T.Cast("uint8", A[i]))',
        'T.Cast("DT", A[i] < A[15 - i])', "T.ldexp(A[i], A[2])" } do
        lines[#lines + 1] = (text:gsub("DT", dtype))
      end
      compare_floats(lines, dtype)
    end)
  end

  -- Functions of float32 are polynomials: within `most` units in the last place, and exact where
  -- the result is a zero, no number or not finite.
  local function check_polynomial(name, most, body, found, options)
    local n, values = 4096, {}
    for i = 1, n do values[i] = (i - n / 2) * 0.053 end
    for i = 1, 64 do values[i] = (i - 32) * 1e-3 end
    for i, x in ipairs(special) do values[64 + i] = x end
    local mod = parse(([[
@T.prim_func
def f(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
%s]]):format((body:gsub("NAME", name))))
    local args = { pl.tensor(values, "float32"), pl.tensor(ramp(n, 0, 0), "float32") }
    local expected = pl.tir.run(mod, args)[2]:to_table()
    local m = pl.build(mod, options)
    assert.truthy(m:source():find("pl_" .. name .. found, 1, true))
    for i, got in ipairs(m.f(table.unpack(args))[2]:to_table()) do
      local want = expected[i]
      local unit = math.max(math.abs(want) * 2.0 ^ -23, 1.5e-45)
      local same = got == want and (got ~= 0 or 1 / got == 1 / want) or got ~= got and want ~= want
        or math.abs(got - want) <= most * unit
      assert(same, ("%s(%.9g): %.9g expected, got %.9g"):format(name, values[i], want, got))
    end
  end

  local vectors = "    for i in range(256):\n" ..
    "        B[i * 16:i * 16 + 16] = T.NAME(A[i * 16:i * 16 + 16])"
  local scalars = "    for i in range(4096):\n        B[i] = T.NAME(A[i])"
  local units = { exp = 2, sigmoid = 3, tanh = 3, erf = 3 }
  local compilers = { "cc" }
  if os.execute "command -v clang > /dev/null 2>&1" then compilers[2] = "clang" end
  for _, name in ipairs(polynomials) do
    it("have functions of whole vectors: " .. name, function()
      for _, cc in ipairs(compilers) do
        for _, bytes in ipairs { 16, 32, 64 } do
          for _, machine in ipairs { "", " -march=native -Wno-psabi" } do
            check_polynomial(name, units[name], vectors, "_f32x", { cc = cc, run = "process",
              vector_bytes = bytes,
              flags = "-O2 -std=c11 -ffp-contract=fast -Wall -Wextra -Werror" .. machine })
          end
        end
      end
    end)

    it("have functions that a compiler makes vectors of: " .. name, function()
      for _, cc in ipairs(compilers) do
        for _, level in ipairs { "-O1", "-O3" } do
          check_polynomial(name, units[name], scalars, "_f32", { cc = cc, run = "process",
            flags = level .. " -std=c11 -ffp-contract=fast -Wall -Wextra -Werror" })
        end
      end
    end)
  end

  it("are the same as vectors", function()
    local mod = parse [[
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((96,), "float32")):
    B[0:16] = T.min(A[0:16], A[T.Ramp(15, -1, 16)])
    B[16:32] = T.max(A[0:16], A[T.Ramp(15, -1, 16)])
    B[32:48] = A[0:16] / A[T.Ramp(15, -1, 16)]
    B[48:64] = T.sqrt(A[0:16]) + T.Broadcast(T.float32(-0.0), 16)
    B[64:80] = T.Cast("float32x16", T.Cast("int32x16", A[0:16]))
    B[80:96] = T.Select(A[0:16] <= A[T.Ramp(15, -1, 16)], A[0:16], T.floor(A[0:16]))]]
    local args = { pl.tensor(special, "float32"), pl.tensor(ramp(96, 0, 0), "float32") }
    for _, bytes in ipairs { 16, 32, 64 } do
      local m = pl.build(mod, { flags = plain, run = "process", vector_bytes = bytes })
      equal(pl.tir.run(mod, args)[2], m.f(table.unpack(args))[2], "vectors of " .. bytes)
    end
  end)

  -- Zeros and NaN beside everything: x86 has instructions for vectors of 16 to 64 bytes.
  for _, cc in ipairs { "gcc", "clang" } do
    it("have the minimum and maximum of scalars as vectors, by " .. cc, function()
      if not os.execute(("command -v %s > /dev/null 2>&1"):format(cc)) then
        return pending("without " .. cc)
      end
      for _, dtype in ipairs { "float32", "float64" } do
        local mod = parse(([[
@T.prim_func
def f(A: T.Buffer((16,), "DT"), B: T.Buffer((512,), "DT")):
    for i in range(16):
        B[i * 16:i * 16 + 16] = T.min(A[0:16], T.Broadcast(A[i], 16))
        B[i * 16 + 256:i * 16 + 256 + 16] = T.max(T.Broadcast(A[i], 16), A[0:16])
]]):gsub("DT", dtype))
        local args = { pl.tensor(special, dtype), pl.tensor(ramp(512, 0, 0), dtype) }
        for _, bytes in ipairs { 16, 32, 64 } do
          local m = pl.build(mod, { cc = cc, run = "process", vector_bytes = bytes,
            flags = "-O2 -march=native -std=c11 -Wall -Wextra -Werror -Wno-psabi" })
          equal(pl.tir.run(mod, args)[2], m.f(table.unpack(args))[2], dtype .. bytes)
        end
      end
    end)
  end
end)
