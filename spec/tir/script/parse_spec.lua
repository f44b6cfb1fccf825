-- Reading TVMScript: what the printer prints, and what TVM prints beyond that.

local pl = require "perilune"
local tir = pl.tir

local function golden()
  local file = assert(io.open("spec/golden/script_sample.tvmscript", "rb"))
  local text = file:read "a"
  file:close()
  return (text:gsub("\n$", ""))
end

local function node(text) return assert(tir.parse_expr(text)) end

local function failure(text)
  local result, diag = tir.parse_expr(text, "t")
  assert.is_nil(result)
  return tostring(diag)
end

local function again(text)
  return tir.script(node(text), { verbose_expr = true })
end

describe("reading TVMScript", function()
  it("gives a module that prints the same bytes", function()
    local text = golden()
    local module = assert(tir.parse(text))
    assert.are.equal(text, module:text())
    assert.is_true(pl.equal(module, assert(pl.parse(text)), { map_free_vars = true }))
  end)

  it("loads files by their name", function()
    local path = os.tmpname() .. ".tvmscript"
    local module = assert(tir.parse(golden()))
    assert(pl.save(module, path))
    assert.are.equal(golden(), assert(pl.load(path)):text())
    os.remove(path)
  end)

  it("inserts the root block that the text leaves out", function()
    local text = golden():gsub(' *# with T.block%("root"%):\n', "")
    assert.is_nil(text:find("root", 1, true))
    assert.are.equal(golden(), assert(tir.parse(text)):text())
  end)

  it("gives PrimExprs with declared variables, which print the same", function()
    for _, text in ipairs {
      "T.Add(1, 2)", "i = T.int32()\nT.Add(i, 0)", "T.int64(5)", "T.bool(True)",
      "T.float64(0.10000000000000001)", 'T.float32("inf")', '"a\\"b\\n"',
      "i = T.int32()\nT.Div(i, 2)", "x = T.float32()\nx / T.float32(2)",
      "i = T.int32()\n(i + 1) * (i - 2) // 3", "i = T.int32()\ni - (i - 2)",
      "i = T.int32()\nnot i < 3", "i = T.int32()\ni < 3 and i >= 0 or i == 9",
      'i = T.int32()\nT.reinterpret("float32", i)',
      "i = T.int32()\nT.Let(i + 1, where={i: 3})",
      "n = T.int32(is_size_var=True)\nn % 4", "i = T.int64()\ni + T.int64(1)",
      "i = T.int32()\nT.Cast(\"float16x4\", T.Ramp(i, 2, 4))",
      "A = T.Buffer((8,), \"int8\", scope=\"shared\", align=16)\nA[0:4]",
      "T.call_llvm_pure_intrin(\"float32\", T.uint32(97), T.float32(1))",
    } do
      assert.are.equal(text, again(text))
    end
  end)

  it("matches numbers to the dtype of the other operand, and folds", function()
    assert.are.equal("i = T.int64()\ni + T.int64(1)", again "i = T.int64()\ni + 1")
    assert.are.equal("7", again "1 + 2 * 3")
    assert.are.equal("x = T.int32()\nx", again "x = T.int32()\nx + 0")
    assert.are.equal("T.Broadcast(T.float32(1), 4) + T.Broadcast(T.float32(2), 4)",
      again "T.Broadcast(T.float32(1), 4) + T.float32(2)")
  end)

  it("reads statements outside a function", function()
    local text = "A = T.Buffer((4,))\nfor i in range(2, 4):\n    A[i] = T.float32(1)"
    local loop = node(text)
    assert.are.equal("For", loop.kind)
    assert.are.equal(2, loop.extent.value)
  end)

  it("reads producers without a declaration", function()
    local module = assert(tir.parse [[
@T.prim_func
def main(n: T.int32):
    with T.ProducerRealize(B[0:n], T.bool(True)):
        for i in range(n):
            B[i] = A[i] + 1
]])
    assert.is_truthy(module:text():find("with T.ProducerRealize(B[0:n], T.bool(True)):", 1, true))
  end)

  it("reads elif as an if in the else branch", function()
    local text = node [[
x = T.int32()
if x < 1:
    T.evaluate(1)
elif x < 2:
    T.evaluate(2)
else:
    T.evaluate(3)]]
    assert.are.equal("IfThenElse", text.else_case.kind)
  end)
end)

describe("reading wrong TVMScript", function()
  it("says where, with a caret and a suggestion", function()
    assert.are.equal([[
t:1:3: error: no function of T is called 'exq'; did you mean 'exp'?
    T.exq(1.0)
      ^~~]], (failure "T.exq(1.0)":gsub("^perilune: ", ""):gsub("\n$", "")))
    assert.is_truthy(failure "index = T.int32()\nindx + 1":find("did you mean 'index'", 1, true))
    assert.is_truthy(failure "T.Cast(dtipe='int32', value=1)"
      :find("no parameter is called 'dtipe'; did you mean 'dtype'", 1, true))
  end)

  local cases = {
    ["T.Cast('int32')"] = "T.Cast: 'value' is missing",
    ["x = T.int32()\nx +"] = "expected an expression",
    ["T.float32(1) + T.handle()"] = "an expression is expected",
    ["(1"] = "expected an operator, ',' or a closing bracket",
    ["x = T.int32()\n  x"] = "unexpected indentation",
    ["A = T.Buffer((4,))\nA[0, 1]"] = "2 indices into 'A' of rank 1",
    ["A = T.Buffer((4,), 'float33')"] = "no dtype is called 'float33'",
    ["for i in range(3):\ni"] = "expected an indented body",
    ["else:"] = "no 'if' belongs to this",
    ["T.int32(1) / 2"] = "integers are divided by '//' or T.Div",
    ["if 1 < 2:\n        T.evaluate(1)\n    T.evaluate(2)"] = "that of no statement above",
    ["x = T.float32()\nA = T.Buffer((4,), 'int32')\nA[0] = x"] = "a value of float32x1",
    ["x = 3 3"] = "expected the end of the line",
    ["with T.block('b')"] = "expected ':'",
    ["T.reads(1)"] = "this is for blocks only",
    ["99999999999999999999"] = "does not fit in int64",
    ["'abc"] = "not closed on its line",
    [""] = "an expression or statement is expected",
  }
  for text, message in pairs(cases) do
    it(("refuses %q"):format(text), function()
      assert.is_truthy(failure(text):find(message, 1, true), failure(text))
    end)
  end

  it("reports each error once, and not what follows from it", function()
    local result, diag = tir.parse([[
@T.prim_func
def main(n: T.int32):
    A = T.Bufer((n,))
    A[0] = 1
    for i in rang(3):
        A[i] = 2
    T.evaluate(m)
]], "t")
    assert.is_nil(result)
    local _, count = tostring(diag):gsub("error:", "")
    assert.are.equal(3, count, tostring(diag))
  end)

  it("ends any prefix of a text with a message", function()
    local text = golden()
    for size = 0, #text - 200, 97 do
      local module, diag = tir.parse(text:sub(1, size))
      assert.is_true(module ~= nil or tostring(diag) ~= "")
    end
  end)

  it("does not run out of stack", function()
    local n = 100000
    local open, close = ("("):rep(n), (")"):rep(n)
    assert.are.equal("Var", node("a = T.int32()\n" .. open .. "a" .. close).kind)
    local calls = ("T.exp("):rep(n)
    assert.are.equal("PrimCall", node("a = T.float32()\n" .. calls .. "a" .. close).kind)
    local lines = { "A = T.Buffer((4,))" }
    for i = 1, 3000 do lines[#lines + 1] = (" "):rep(i - 1) .. "for i in range(2):" end
    lines[#lines + 1] = (" "):rep(3000) .. "A[0] = T.float32(0)"
    assert.are.equal("For", node(table.concat(lines, "\n")).kind)
    lines = { "x = T.int32()" }
    for i = 1, n do lines[#lines + 1] = ("v%d: T.int32 = x"):format(i % 7) end
    lines[#lines + 1] = "T.evaluate(x)"
    assert.are.equal("LetStmt", node(table.concat(lines, "\n")).kind)
  end)
end)

describe("reading TVMScript with names", function()
  local x, A = tir.Var("x", "int32"), tir.decl_buffer({ 4, 8 }, "float32", "A")

  it("uses the given Vars and Buffers", function()
    local sum = assert(tir.parse_expr("A[x, y] + T.float32(1)", "t",
      { x = x, y = tir.Var("y", "int64"), A = A }))
    assert.are.equal(A, sum[1].buffer)
    assert.are.equal(x, sum[1].indices[1])
    assert.are.equal("int64", sum[1].indices[2].dtype)
  end)

  it("uses them instead of what the text declares", function()
    local sum = assert(tir.parse_expr("x = T.int32()\nz = T.int32()\nx + z", "t", { x = x }))
    assert.are.equal(x, sum[1])
    assert.are_not.equal(x, sum[2])
  end)

  it("gives free names of a combiner the Vars, and not its parameters", function()
    local y, k = tir.Var "y", tir.IterVar({ 0, 8 }, "k", "CommReduce")
    local z = tir.Var("x", "float32")
    local combine = "T.comm_reducer(lambda x, z: T.Select(y < 0, x + z, z), [T.float32(0)])"
    local axis = 'T.iter_var(k, T.Range(0, 8), "CommReduce", "")'
    local sum = assert(tir.parse_expr(("T.reduce(%s, source=[x], init=[], axis=[%s], "
      .. "condition=T.bool(True), value_index=0)"):format(combine, axis), "t",
      { x = z, y = y, k = k.var }))
    local combiner = sum.combiner
    assert.is_true(combiner.result[1].condition.a == y)
    assert.is_false(combiner.lhs[1] == z)
    assert.is_true(combiner.result[1][2].a == combiner.lhs[1])
    assert.is_true(sum.source[1] == z)
  end)

  it("refuses what is no name, no Var or Buffer, or not known", function()
    assert.has_error(function() tir.parse_expr("x", "t", { x = 3 }) end)
    assert.has_error(function() tir.parse_expr("x", "t", { [1] = x }) end)
    assert.is_nil((tir.parse_expr("x + y", "t", { x = x })))
  end)
end)

describe("reading reductions", function()
  it("keeps starts and the condition", function()
    local text = "x = T.int32()\nA = T.Buffer((16,))\nk = T.int32()\n"
      .. "T.reduce(T.comm_reducer(lambda a, b: a + b, [T.float32(0)]),"
      .. " source=[A[k]], init=[T.float32(1)],"
      .. ' axis=[T.iter_var(k, T.Range(0, 10), "CommReduce", "")], condition=k < x, value_index=0)'
    local reduce = node(text)
    assert.are.equal("k < x", tostring(reduce.condition))
    assert.are.equal(again(text), again(again(text)))
    assert.matches("init=[T.float32(1)]", again(text), 1, true)
    assert.matches("condition=k < x", again(text), 1, true)
  end)
end)

describe("reading many names", function()
  it("reads grids of any number of loops, and blocks of any number of axes", function()
    local A = tir.decl_buffer({ 4 }, "float32", "A")
    local body = A:store(tir.FloatImm("float32", 1), 0)
    for _ = 1, 500 do body = tir.For(tir.Var("i", "int32"), 0, 2, "serial", body) end
    local mod = pl.module { main = tir.PrimFunc({ A }, body) }
    local text = tostring(mod)
    assert.matches("T.grid%(", text)
    assert.is_true(pl.equal(mod, assert(tir.parse(text))))
    local names, values = {}, {}
    for k = 1, 100 do names[k], values[k] = "v" .. k, tostring(k) end
    local many = ("@T.prim_func\ndef main():\n    %s = %s\n    T.evaluate(v100)\n"):format(
      table.concat(names, ", "), table.concat(values, ", "))
    assert(tir.parse(many))
  end)
end)
