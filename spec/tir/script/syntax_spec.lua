-- What users write in TVMScript beyond what TVM prints: each text is read as the other one is.

local pl = require "perilune"
local tir = pl.tir

local function body_of(params, lines)
  local text = { "@T.prim_func", ("def f(%s):"):format(params) }
  for line in (lines .. "\n"):gmatch "(.-)\n" do text[#text + 1] = "    " .. line end
  return table.concat(text, "\n") .. "\n"
end

local function read(text) return assert(tir.parse(text, "t")) end

local function same(params, written, printed)
  local module = read(body_of(params, written))
  assert.are.equal(read(body_of(params, printed)):text(), module:text())
  assert.is_true(pl.equal(module, read(module:text()), { map_free_vars = true }))
end

local A = 'A: T.Buffer((16,), "int32"), n: T.int32'
local F = 'F: T.Buffer((16,), "float32"), n: T.int32'

describe("TVMScript as it is written", function()
  local cases = {
    { A, "A[0] += n", "A[0] = A[0] + n" },
    { A, "A[0] //= 2", "A[0] = A[0] // 2" },
    { A, "A[0] <<= n", "A[0] = T.shift_left(A[0], n)" },
    { F, "F[0] /= 2.0", "F[0] = F[0] / T.float32(2)" },
    { A, "x = n\nx += 1\nA[0] = x", "x: T.int32 = n\nx_1: T.int32 = x + 1\nA[0] = x_1" },
    { A, "A[0] = A[1] & 7 | n << 2 ^ ~n",
      "A[0] = T.bitwise_or(T.bitwise_and(A[1], 7), "
        .. "T.bitwise_xor(T.shift_left(n, 2), T.bitwise_not(n)))" },
    { A, "A[0] = 1 << 4 | 3", "A[0] = 19" },
    { A, "A[0] = 0xF + 0b11 + 0o17 + 1_000", "A[0] = 1033" },
    { A, "A[0] = 1 if n < 3 else 2 if n < 5 else 3",
      "A[0] = T.if_then_else(n < 3, 1, T.if_then_else(n < 5, 2, 3))" },
    { A, "if 0 <= n < A[0] <= 9:\n    A[0] = 1",
      "if 0 <= n and n < A[0] and A[0] <= 9:\n    A[0] = 1" },
    { A, "A[0] = 1; A[1] = 2;", "A[0] = 1\nA[1] = 2" },
    { A, "if n < 2: A[0] = 1\nelif n < 3: A[0] = 2; A[1] = 2\nelse: A[0] = 3",
      "if n < 2:\n    A[0] = 1\nelse:\n    if n < 3:\n        A[0] = 2\n        A[1] = 2\n"
        .. "    else:\n        A[0] = 3" },
    { A, "for i in range(4): pass", "for i in range(4):\n    T.evaluate(0)" },
    { A, "return n + 1", "T.ret(n + 1)" },
    { A, 'T.call_extern("f", A.data, dtype="int32")', 'T.call_extern("int32", "f", A.data)' },
    { A, 'T.call_extern("g", n, dtype="")', 'T.call_extern("void", "g", n)' },
    { A, "T.call_extern('int32', 'a' \"b\"\n    'c')", 'T.call_extern("int32", "abc")' },
    { A, 'A[0] = T.if_then_else(n < 2, 1, 2, dtype="int32")',
      "A[0] = T.if_then_else(n < 2, 1, 2)" },
    { F, 'F[0] = n.astype("float32") + F[1].astype(dtype="float32")',
      'F[0] = T.Cast("float32", n) + F[1]' },
    { F, "F[0] = n", 'F[0] = T.Cast("float32", n)' },
    { F, 'F[0] = T.cast(n, "float32")', 'F[0] = T.Cast("float32", n)' },
    { F, "F[0] = T.abs(F[1])", "F[0] = T.fabs(F[1])" },
    { A, "A[0] = T.abs(A[1])", "A[0] = T.Select(A[1] >= 0, A[1], A[1] * -1)" },
    { A, "A[0] = T.ceildiv(n, 4)", "A[0] = (n + 4 - 1) // 4" },
    { A, 'A[0] = T.max(T.min_value("int32"), n)', "A[0] = T.max(-2147483648, n)" },
    { A, 'A[0] = T.min(T.max_value("int32"), n)', "A[0] = T.min(2147483647, n)" },
    { F, 'F[0] = T.infinity("float32")', 'F[0] = T.float32("inf")' },
    { A, "k = T.meta_var(n + 1)\nA[k] = k", "A[n + 1] = n + 1" },
    { A, "k = 3\nA[k] = k", "k: T.int32 = 3\nA[k] = k" },
    { A, 'for t in T.thread_binding(32, "threadIdx.x"):\n    A[t] = t',
      'for t in T.thread_binding(32, thread="threadIdx.x"):\n    A[t] = t' },
    { 'A: T.Buffer[(16,), "int32"]', "A[0] = 1", "A[0] = 1" },
    { A, 'B = T.buffer_decl((4,), A.dtype, data=A.data)\nB[0] = 1',
      'B = T.Buffer((4,), "int32", data=A.data)\nB[0] = 1' },
    { A, "for it in T.grid(2, 3):\n    A[it[0] + it[-1]] = it[1]",
      "for it_0, it_1 in T.grid(2, 3):\n    A[it_0 + it_1] = it_1" },
    { 'A: T.Buffer((4, 4), "int32")', "for it in T.grid(*(4, 4)):\n    A[it] = A[*it] + it[0]",
      "for it_0, it_1 in T.grid(4, 4):\n    A[it_0, it_1] = A[it_0, it_1] + it_0" },
    { 'A: T.Buffer((4, 4), "int32")', 'for it in T.grid(4, 4):\n    with T.block("b"):\n'
      .. '        vi, vj = T.axis.remap("SS", it)\n        A[vi, vj] = 1',
      'for it_0, it_1 in T.grid(4, 4):\n    with T.block("b"):\n'
      .. '        vi, vj = T.axis.remap("SS", [it_0, it_1])\n        A[vi, vj] = 1' },
    { A, 'A.vstore([n], A.vload([0], "int32x4"))', "A[n:n + 4] = A[0:4]" },
    { A, "A.vstore(n, A.vload(begin=n + 1))", "A[n] = A[n + 1]" },
    { 'A: T.Buffer((4, 4), "int32x2")', 'A.vstore((1, 0), A.vload((0, 0), dtype="int32x4"))',
      "A[1, 0:2] = A[0, 0:2]" },
    { 'A: T.Buffer((2, 2), "int8")',
      'with T.decl_buffer((1, 4), "int8", data=A.data) as A:\n    A[0, 3] = T.int8(1)\n'
        .. "A[1, 1] = T.int8(2)",
      'with T.decl_buffer((1, 4), "int8", data=A.data) as A_1:\n    A_1[0, 3] = T.int8(1)\n'
        .. "A[1, 1] = T.int8(2)" },
    { A, "assert n < 4, 'x'", "assert n < 4, 'x'\nT.evaluate(0)" },
  }
  for _, case in ipairs(cases) do
    it(("reads %q"):format(case[2]), function() same(table.unpack(case)) end)
  end

  it("binds buffers in the order of the parameters", function()
    local text = read [[
@T.prim_func
def f(a: T.handle, B: T.Buffer((4,), "int8"), c: T.handle):
    C = T.match_buffer(c, (4,), "int8")
    A = T.match_buffer(a, (4,), "int8")
    A[0] = B[0]
]]
    assert.is_true(pl.equal(text, read(text:text())))
  end)

  it("refuses vectors and groups that cannot be", function()
    for wrong, message in pairs {
      ['A[0] = A.vload([0], "float32x4")'] = "a vector of the buffer's elements is expected",
      ['A[0] = A.vload([], "int32x4")'] = "an index is expected",
      ["A.vstore([0])"] = "'value' is missing", ["A[0] = A.vload"] = "an expression is expected",
      ["A[0] = A.vstore([0], 1)"] = "an expression is expected",
      ["A[0] = (1, 2)[2]"] = "an index from 0 to below 2 is expected",
      ["A[0] = T.max(*n)"] = "only a tuple or list follows '*'",
      ["A[0] = *n"] = "expected an expression", ["T.Buffer.vload([0])"] = "no fields",
      ["A[0] = T.floor(1.0, 2.0)"] = "T.floor takes 1 arguments, not 2",
      ["A[0] = T.int32(1, 2)"] = "one number is expected",
    } do
      local result, diag = tir.parse(body_of(A, wrong), "t")
      assert.is_nil(result)
      assert.is_truthy(tostring(diag):find(message, 1, true), tostring(diag))
    end
  end)

  it("refuses operators on what they are not for", function()
    for wrong, message in pairs {
      ["T.float32(1) & 2"] = "T.bitwise_and is of integers and of bools",
      ["1 << 40"] = "a shift by 40 of 32 bits", ["1 if 2 < 3"] = "expected 'else'",
      ["1 else 2"] = "expected an 'if' before", ["0x"] = "this is no number",
      ["0b12"] = "this is no number", ["0xFFFFFFFFFFFFFFFFF"] = "does not fit in int64",
      ["T.infinity('int8')"] = "this dtype has no such number", ["1 | "] = "expected an expression",
    } do
      local result, diag = tir.parse_expr(wrong, "t")
      assert.is_nil(result)
      assert.is_truthy(tostring(diag):find(message, 1, true), tostring(diag))
    end
    local result, diag = tir.parse(body_of(A, "A[0:4].x += 1\nA += 1\nn.data += 1\n3 += 4"), "t")
    assert.is_nil(result)
    assert.is_truthy(tostring(diag):find "t:4:")
  end)

  it("refuses what stands outside of functions", function()
    for _, line in ipairs {
      "x = 1 + 2", "x = T.exp(1.0)", "x = ~n", "x = 1 < 2 < 3", "x = T.int32()", "return 1",
      "x = T.meta_var(T.int32(3))", "x: T.int32 = 4", "T.exp(1.0) + 2", "x = T.int32(3)",
      'x = T.int32(3).astype("int8")', "T.evaluate(1)", "if 1 < 2: pass", "x = T.handle() & 2",
    } do
      local result, diag = tir.parse(line .. "\n", "t")
      assert.is_nil(result)
      assert.is_truthy(tostring(diag):find("t:1:", 1, true))
    end
    local attrs = '{"a": T.bool(True), "b": -1, "c": T.int64(2)}'
    local text = ("@I.ir_module\nclass M:\n    I.module_attrs(%s)\n    @T.prim_func\n"
      .. "    def f():\n        T.evaluate(0)\n"):format(attrs)
    assert.is_truthy(read(text):text():find("\"c\": ", 1, true))
  end)

  it("reads chains of any length without recursion", function()
    local n = 20000
    local sum = "i = T.int32()\n" .. ("i & "):rep(n) .. "i"
    assert.are.equal("PrimCall", assert(tir.parse_expr(sum)).kind)
    local chain = "i = T.int32()\n" .. ("i < "):rep(n) .. "i"
    assert.are.equal("And", assert(tir.parse_expr(chain)).kind)
    local choice = "i = T.int32()\n" .. ("1 if i < 3 else "):rep(n) .. "2"
    assert.are.equal("PrimCall", assert(tir.parse_expr(choice)).kind)
    local cast = "i = T.int32()\ni" .. ('.astype("int64").astype("int32")'):rep(n)
    assert.are.equal("Cast", assert(tir.parse_expr(cast)).kind)
  end)
end)
