-- The script form of TIR, as TVM 0.14 prints TVMScript.

local pl = require "perilune"
local tir = pl.tir

local function golden(name)
  local file = assert(io.open("spec/golden/" .. name .. ".script", "rb"))
  local text = file:read "a"
  file:close()
  return (text:gsub("\n$", ""))
end

local function lines(text) return (text:gsub("^\n", ""):gsub("\n *$", "")) end

describe("the script form", function()
  it("of a function inlines plain buffers among its parameters", function()
    local A = tir.decl_buffer({ 16 }, "float32", "A")
    local B = tir.decl_buffer({ 16 }, "float32", "B")
    local i = tir.Var("i")
    local fn = tir.PrimFunc({ A, B }, tir.For(i, 0, 16, "serial", B:store(A:load(i) + 1, i)))
    assert.are.equal(lines [[
# from tvm.script import tir as T

@T.prim_func(private=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i] + T.float32(1)
]], tostring(fn))
  end)

  it("declares what nothing binds in the innermost frame of its uses", function()
    local n, m = tir.SizeVar("n"), tir.Var("m")
    local A = tir.decl_buffer({ n, m }, "float32", "A",
      { strides = { tir.Var("stride"), tir.Var("stride") }, buffer_type = "auto" })
    local x, y = tir.Var("x"), tir.Var("y")
    local shared = tir.decl_buffer({ 16 }, "int32", "sh", { scope = "shared" })
    local flat = tir.decl_buffer({ n * m }, "float32", "A", { data = A.data })
    local body = tir.For(x, 0, n, "serial", tir.For(y, 0, m, "serial", {
      shared:store(x, y),
      tir.IfThenElse(tir.lt(x, 4), flat:store(A:load(x, y) * 2, x * m + y),
        tir.Evaluate(tir.call_extern("int32", "f", A.data))),
    }))
    local fn = tir.PrimFunc({ A }, body, nil, nil, { global_symbol = "main" })
    assert.are.equal(golden "free_buffers", tostring(fn))
  end)

  it("has loops of every kind, with annotations and threads", function()
    local A = tir.decl_buffer({ 64 }, "int32", "A")
    local function loop(name, min, extent, kind, body, thread, annotations)
      local i = tir.Var(name)
      return tir.For(i, min, extent, kind, body(i), thread, annotations)
    end
    local fn = tir.PrimFunc({ A }, {
      loop("i", 2, 8, "serial", function(i) return A:store(i, i) end),
      loop("i", 0, 8, "parallel", function(i) return A:store(i, i) end),
      loop("i", 0, 8, "vectorized", function(i)
        return A:store(tir.Broadcast(i, 4), tir.Ramp(i * 4, 1, 4))
      end),
      loop("i", 0, 8, "unrolled", function(i) return A:store(A:load(i) // 2, i) end),
      loop("i", 0, 8, "serial", function(i) return A:store(i % 3, i) end, nil, { pragma = 1 }),
      loop("i", 0, 32, "thread_binding", function(i) return A:store(i, i) end,
        tir.IterVar(nil, tir.Var("t"), "ThreadIndex", "threadIdx.x")),
    }, nil, nil, { global_symbol = "main", ["tir.noalias"] = true })
    assert.are.equal(golden "loops", tostring(fn))
  end)

  it("says of blocks what their variables are, and leaves out a plain root", function()
    local A = tir.decl_buffer({ 16, 8 }, "float32", "A")
    local B = tir.decl_buffer({ 16 }, "float32", "B")
    local T = tir.decl_buffer({ 16 }, "float32", "T")
    local i, k = tir.Var("i"), tir.Var("k")
    local vi, vk = tir.Var("vi"), tir.Var("vk")
    local sum = tir.Block(
      { tir.IterVar({ 0, 16 }, vi, "DataPar"), tir.IterVar({ 0, 8 }, vk, "CommReduce") },
      { tir.BufferRegion(A, { vi, vk }) }, { tir.BufferRegion(T, { vi }) }, "sum",
      T:store(T:load(vi) + A:load(vi, vk), vi), T:store(0, vi), nil, nil, { unit = "x" })
    local j, vj = tir.Var("j"), tir.Var("vj")
    local copy = tir.Block({ tir.IterVar({ 0, 16 }, vj, "DataPar") },
      { tir.BufferRegion(T, { { 0, 16 } }) }, { tir.BufferRegion(B, { vj }) }, "copy",
      B:store(T:load(vj), vj))
    local body = {
      tir.For(i, 0, 16, "serial", tir.For(k, 0, 8, "serial",
        tir.BlockRealize({ i, k }, true, sum))),
      tir.For(j, 0, 4, "serial", tir.BlockRealize({ j * 4 }, tir.lt(j, 3), copy)),
    }
    local root = tir.Block({}, {}, {}, "root", body, nil, { T })
    local fn = tir.PrimFunc({ A, B }, tir.BlockRealize({}, true, root))
    assert.are.equal(golden "blocks", tostring(fn))
  end)

  it("has statements with bodies, indented only where something follows", function()
    local A = tir.decl_buffer({ 16 }, "float32", "A")
    local n = tir.Var("n")
    local memory = tir.Var("buf", tir.PointerType("float32"))
    local view = tir.Buffer(memory, "float32", { 16 }, nil, 0, "buf")
    local x = tir.Var("x")
    local thread = tir.IterVar(nil, tir.Var("threadIdx_x"), "ThreadIndex", "threadIdx.x")
    local block = tir.Var("b", tir.PointerType("int8"))
    local fn = tir.PrimFunc({ A, n }, {
      tir.LetStmt(x, n * 2, tir.Evaluate(x)),
      tir.AttrStmt("a", "pragma", 1, tir.Evaluate(0)),
      tir.AssertStmt(tir.lt(n, 4), "too large", tir.Evaluate(0)),
      tir.While(tir.lt(A:load(0), 3.0), A:store(A:load(0) + 1, 0)),
      tir.Allocate(block, "int8", { 4, n }, true, tir.Evaluate(tir.address_of(A:load(0)))),
      tir.AttrStmt(thread, "thread_extent", 32, tir.Allocate(memory, "float32", { 16 }, true,
        tir.DeclBuffer(view, {
          view:store(tir.Select(tir.lt(n, 3), 1.0, 2.0), thread.var),
          tir.Evaluate(tir.ret(0)),
        }))),
    })
    assert.are.equal(golden "bodies", tostring(fn))
  end)

  it("writes constants so that they are read back as they were", function()
    local i, x = tir.Var("i"), tir.Var("x", "float32")
    local cases = {
      { tir.Add(tir.const(1), 2), "T.Add(1, 2)" },
      { tir.Add(i, 0), "i = T.int32()\nT.Add(i, 0)" },
      { tir.const(5, "int64"), "T.int64(5)" },
      { tir.const(true), "T.bool(True)" },
      { tir.const(0.1, "float64"), "T.float64(0.10000000000000001)" },
      { tir.const(1 / 0), 'T.float32("inf")' },
      { tir.StringImm 'a"b\n', '"a\\"b\\n"' },
      { tir.Div(i, 2), "i = T.int32()\nT.Div(i, 2)" },
      { tir.Div(x, 2.0), "x = T.float32()\nx / T.float32(2)" },
      { tir.Mod(i, 2), "i = T.int32()\nT.truncmod(i, 2)" },
      { (i + 1) * (i - 2) // 3, "i = T.int32()\n(i + 1) * (i - 2) // 3" },
      { i - (i - 2), "i = T.int32()\ni - (i - 2)" },
      { tir.Not(tir.lt(i, 3)), "i = T.int32()\nnot i < 3" },
      { tir.logical_or(tir.logical_and(tir.lt(i, 3), tir.ge(i, 0)), tir.eq(i, 9)),
        "i = T.int32()\ni < 3 and i >= 0 or i == 9" },
      { tir.Call("handle", "tvm_struct_get", { x, 0, 1 }),
        'x = T.float32()\nT.tvm_struct_get(x, 0, 1, "handle")' },
      { tir.reinterpret("float32", i), 'i = T.int32()\nT.reinterpret("float32", i)' },
      { tir.Let(i, 3, i + 1), "i = T.int32()\nT.Let(i + 1, where={i: 3})" },
      { tir.min(i, 3), "i = T.int32()\nT.min(i, 3)" },
    }
    for _, case in ipairs(cases) do
      assert.are.equal(case[2], tir.script(case[1], { verbose_expr = true }))
      assert.are.equal(case[2]:match "[^\n]*$", tostring(case[1]))
    end
    local A = tir.decl_buffer({ 4 }, "float32", "A")
    assert.are.same({ "x", "A", "A[i]" }, { tostring(x), tostring(A), tostring(A:load(i)) })
    assert.are.equal('A = T.Buffer((4,))\ni = T.int32()\nA[i]',
      tir.script(A:load(i), { verbose_expr = true }))
  end)

  it("of a module is a class of its functions", function()
    local n = tir.Var("n")
    local leaf = tir.PrimFunc({ n }, tir.Evaluate(n))
    local call = tir.Call("int32", pl.global "leaf", { 3 })
    local mod = pl.module { leaf = leaf, main = tir.PrimFunc({}, tir.Evaluate(call)) }
    assert.are.equal(golden "module", tostring(mod))
    local x = pl.var("x", "Tensor[(2), float32]")
    local mixed = tostring(pl.module { leaf = leaf, main = pl.func({ x }, x) })
    assert.is_truthy(mixed:find("def @main", 1, true))
    assert.is_truthy(mixed:find("def leaf(n: T.int32):", 1, true))
  end)

  it("of deep nests tells the loops apart", function()
    local body = tir.Evaluate(0)
    for _ = 1, 2000 do
      body = tir.For(tir.Var("i"), 1, 2, "serial", body)
    end
    local text = tostring(tir.PrimFunc({}, body))
    assert.is_truthy(text:find("for i_1999 in range(1, 3):", 1, true))
  end)
end)

describe("passes over PrimFuncs", function()
  it("are given those only", function()
    local n = tir.Var("n")
    local x = pl.var("x", "Tensor[(2), float32]")
    local mod = pl.module {
      leaf = tir.PrimFunc({ n }, tir.Evaluate(n + 1)), main = pl.func({ x }, x),
    }
    local seen = 0
    local pass = pl.prim_func_pass {
      name = "Twos",
      run = function(fn)
        seen = seen + 1
        return tir.transform(fn, nil, function(node)
          if node.value == 1 then return tir.const(2) end
        end, { "tir.IntImm" })
      end,
    }
    local out = pass(mod)
    assert.are.equal(1, seen)
    assert.is_truthy(tostring(out):find("T.evaluate(n + 2)", 1, true))
    assert.is_true(pl.verify(out))
  end)
end)

describe("the script form", function()
  it("says in one line which memory a buffer is realised in", function()
    local A = tir.decl_buffer({ 8 }, "float32", "A")
    local function realised(key, buffer, where)
      local one = tir.BufferRealize(A, { { 0, 8 } }, where, A:store(tir.const(1, "float32"), 0))
      local stmt = tir.AttrStmt(buffer, key, tir.StringImm "shared", one)
      return tostring(tir.PrimFunc({}, stmt))
    end
    assert.matches('\n    T.realize%(A%[0:8%], "shared"%)\n    A%[0%] = T.float32%(1%)',
      realised("realize_scope", A, true))
    assert.matches("T.attr%(A, \"storage\", \"shared\"%)", realised("storage", A, true))
    local B = tir.decl_buffer({ 8 }, "float32", "B")
    assert.matches("T.attr%(B, \"realize_scope\"", realised("realize_scope", B, true))
  end)

  it("has TVM's names of floats of eight bits", function()
    local A = tir.decl_buffer({ 8 }, "float8_e4m3fn", "A")
    local B = tir.decl_buffer({ 8 }, "float8_e5m2", "B")
    local text = tostring(tir.PrimFunc({ A, B }, tir.Evaluate(tir.const(0, "int32"))))
    assert.matches('T.Buffer%(%(8,%), "e4m3_float8"%)', text)
    assert.matches('T.Buffer%(%(8,%), "e5m2_float8"%)', text)
  end)
end)

local function last_lines(text, n)
  local all = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do all[#all + 1] = line end
  return table.concat(all, "\n", #all - n + 1)
end

describe("the script form", function()
  it("tells what a function is compiled for", function()
    local function attrs_of(target)
      local fn = tir.PrimFunc({}, tir.Evaluate(0), nil, nil, { target = target })
      return tostring(fn):match "T.func_attr(%b())"
    end
    assert.are.equal('({"target": T.target({"keys": ["cpu"], "kind": "llvm", "tag": ""})})',
      attrs_of(tir.Target "llvm"))
    assert.are.equal('({"target": T.target({"arch": "sm_50", "host": {"keys": ["cpu"], '
      .. '"kind": "llvm", "opt-level": 0, "tag": ""}, "keys": ["cuda", "gpu"], "kind": "cuda", '
      .. '"max_num_threads": 1024, "tag": ""})})',
      attrs_of(tir.Target({ kind = "cuda", arch = "sm_50", max_num_threads = 1024 },
        "llvm -opt-level=0")))
    assert.are.equal('({"target": T.target({"keys": [], "kind": "ext_dev", "tag": ""})})',
      attrs_of(tir.Target "ext_dev"))
    assert.are.equal('({"target": {"kind": "llvm"}})', attrs_of { kind = "llvm" })
    local fn = tir.PrimFunc({}, tir.Evaluate(0), nil, nil, { target = tir.Target "cuda -keys=a,b" })
    assert.are.equal("cuda", fn.attrs.target.kind)
    assert.are.same({ "a", "b" }, fn.attrs.target.keys)
    for spec, text in pairs {
      ["llvm mcpu"] = "a target is a kind and words -name=value, not 'mcpu'",
      [""] = "a target is a kind and words -name=value, not ''",
      [{}] = "a target needs the text 'kind'",
      [1] = "tir.Target: options: a table expected, got number",
    } do
      local ok, err = pcall(tir.Target, spec)
      assert(not ok and tostring(err):find(text, 1, true), tostring(err))
    end
    assert.are.equal("c", tir.Target("llvm", tir.Target "c").host.kind)
    assert.are.equal("c", tir.Target("llvm -host=llvm", { kind = "c" }).host.kind)
  end)

  it("of a module has main behind all others", function()
    local fn = tir.PrimFunc({}, tir.Evaluate(0))
    local names = {}
    for name in tostring(pl.module { main = fn, zero = fn, add = fn }):gmatch "def (%w+)" do
      names[#names + 1] = name
    end
    assert.are.same({ "add", "zero", "main" }, names)
  end)

  it("declares before a loop what its header uses, behind it what only its body uses", function()
    local i, j = tir.Var "i", tir.Var "j"
    local l, m = tir.SizeVar "l", tir.Var "m"
    local nest = tir.For(i, 0, l, "serial", tir.For(j, 0, m, "serial", tir.Evaluate(i + m)))
    assert.are.equal(lines [[
    l = T.int32(is_size_var=True)
    m = T.int32()
    for i, j in T.grid(l, m):
        T.evaluate(i + m)
]], last_lines(tostring(tir.PrimFunc({}, nest)), 4))
    assert.are.equal(lines [[
    for i in range(4):
        m = T.int32()
        T.evaluate(i + m)
]], last_lines(tostring(tir.PrimFunc({}, tir.For(i, 0, 4, "serial", tir.Evaluate(i + m)))), 3))
    assert.are.equal(lines [[
    l = T.int32(is_size_var=True)
    for i in range(l):
        T.evaluate(i)
    T.evaluate(l)
]], last_lines(tostring(tir.PrimFunc({},
      { tir.For(i, 0, l, "serial", tir.Evaluate(i)), tir.Evaluate(l) })), 4))
  end)

  it("has TVM's names of eight bits and of nothing wherever a dtype stands", function()
    local memory = tir.Var("C", tir.PointerType "e4m3_float8")
    local C = tir.Buffer(memory, "e4m3_float8", { 8 }, nil, 0, "C")
    local store = C:store(tir.FloatImm("float8_e4m3fn", 1.5), 0)
    local one = tir.Allocate(memory, "e4m3_float8", { 8 }, true, tir.DeclBuffer(C, store))
    assert.are.equal(lines [[
    C = T.decl_buffer((8,), "e4m3_float8")
    C[0] = T.e4m3_float8(1.5)
]], last_lines(tostring(tir.PrimFunc({}, one)), 2))
    local bare = tir.Allocate(memory, "e5m2_float8", { 8 }, true, tir.Evaluate(0))
    assert.matches('T.allocate%(%[8%], "e5m2_float8", "global"%)', tostring(tir.PrimFunc({}, bare)))
    local x = tir.Var("x", "void")
    local get = tir.LetStmt(x, tir.call_extern("void", "get"), tir.Evaluate(0))
    assert.matches('\n    x = T.call_extern%("void", "get"%)\n', tostring(tir.PrimFunc({}, get)))
  end)

  it("gives builtins the dtypes that they have in TVM", function()
    local x, y = tir.Var("x", "float32"), tir.Var("y", "int64")
    for name, dtype in pairs { undef = "int32", tvm_warp_activemask = "uint32",
                               tvm_context_id = "handle" } do
      assert.are.equal(dtype, tir[name]().dtype)
    end
    assert.are.equal("int32", tir.clz(y).dtype)
    assert.are.equal("float32", tir.tvm_warp_shuffle(0, x, 0, 32, 32).dtype)
    assert.are.equal("bool", tir.assume(tir.lt(x, 1.0)).dtype)
    assert.are.equal("int64", tir.popcount(y).dtype)
    assert.are.equal('T.call_packed("f", x)', last_lines(tostring(tir.tvm_call_packed("f", x)), 1))
    assert.are.equal("int32", tir.tvm_call_packed("f", x).dtype)
  end)
end)

describe("the script form", function()
  it("lists the elements of constants", function()
    local function constant(dtype, tensor)
      local memory = tir.Var("m", tir.PointerType(dtype))
      local fn = tir.PrimFunc({}, tir.AllocateConst(memory, dtype, { 2 }, tensor, tir.Evaluate(0)))
      return tostring(fn):match "T.allocate_const(%b())"
    end
    for dtype, numbers in pairs {
      float16 = "1.5, -2", bfloat16 = "1.5, -2", float32 = "1.5, -2", float64 = "1.5, -2",
    } do
      assert.are.equal(('([%s], "%s", [2])'):format(numbers, dtype),
        constant(dtype, pl.tensor({ 1.5, -2 }, dtype)))
    end
    assert.are.equal('([1, -2], "int8", [2])', constant("int8", pl.tensor({ 1, -2 }, "int8")))
    assert.are.equal('(["inf", "nan"], "float32", [2])',
      constant("float32", pl.tensor { 1 / 0, 0 / 0 }))
  end)

  it("tells tensors of attributes by their places in the metadata", function()
    local a, b = pl.tensor { 1, 2 }, pl.tensor { 3 }
    local leaf = tir.PrimFunc({}, tir.Evaluate(0), nil, nil, { c = b })
    local mod = pl.module({ leaf = leaf }, { constants = { a, b, a } })
    local text = tostring(mod)
    local places = {}
    for place in text:match("constants\": (%b[])"):gmatch '"runtime.NDArray"%]%[(%d)%]' do
      places[#places + 1] = place
    end
    assert.are.same({ "0", "1", "0" }, places)
    assert.is_truthy(text:find('T.func_attr({"c": metadata["runtime.NDArray"][1]})', 1, true), text)
    assert.are.equal("\n# Metadata omitted. Use show_meta=True in script() method to show it.",
      last_lines(text, 2))
  end)
end)

describe("T.target", function()
  local function read(target)
    return pl.tir.parse(([[
@T.prim_func
def main(A: T.Buffer((16,))):
    T.func_attr({"target": %s})
    A[0] = T.float32(1)
]]):format(target))
  end

  local function printed(target)
    return assert(read(target)):text():match '"target": (T.target%b())'
  end

  it("of a text or a dictionary has the entries that every target has", function()
    for given, wanted in pairs {
      ['"llvm"'] = '{"keys": ["cpu"], "kind": "llvm", "tag": ""}',
      ['"ext_dev"'] = '{"keys": [], "kind": "ext_dev", "tag": ""}',
      ['{"kind": "hexagon"}'] = '{"keys": ["hexagon", "cpu"], "kind": "hexagon", "tag": ""}',
      ['"llvm -mcpu=skylake -mattr=+avx2,+fma -num-cores=4 -fast-math"'] =
        '{"fast-math": T.bool(True), "keys": ["cpu"], "kind": "llvm", "mattr": ["+avx2", '
        .. '"+fma"], "mcpu": "skylake", "num-cores": 4, "tag": ""}',
      ['"c -keys=a,b,c,d,e,f,g,h,i,j -host=\'llvm -mcpu=x\'"'] =
        '{"host": {"keys": ["cpu"], "kind": "llvm", "mcpu": "x", "tag": ""}, "keys": ["a", "b", '
        .. '"c", "d", "e", "f", "g", "h", "i", "j"], "kind": "c", "tag": ""}',
      ['{"kind": "cuda", "arch": "sm_50", "host": "c", "max_num_threads": 1024}'] =
        '{"arch": "sm_50", "host": {"keys": ["cpu"], "kind": "c", "tag": ""}, "keys": ["cuda", '
        .. '"gpu"], "kind": "cuda", "max_num_threads": 1024, "tag": ""}',
      ['{"kind": "c", "keys": [], "tag": "t", "host": {"kind": "llvm"}}'] =
        '{"host": {"keys": ["cpu"], "kind": "llvm", "tag": ""}, "keys": [], "kind": "c", '
        .. '"tag": "t"}',
    } do
      local text = "T.target(" .. wanted .. ")"
      assert.are.equal(text, printed("T.target(" .. given .. ")"))
      assert.are.equal(text, printed(text))
    end
  end)

  it("stands in attributes of statements", function()
    local text = assert(pl.tir.parse [[
@T.prim_func
def main(A: T.Buffer((16,))):
    with T.attr(T.target("llvm"), "target", 0):
        A[0] = T.float32(1)
]]):text()
    assert.matches('T.attr%(T.target%({"keys": %["cpu"%], "kind": "llvm", "tag": ""}%)', text)
  end)

  it("tells what is no target", function()
    for given, message in pairs {
      ["3"] = "T.target takes a text or a dictionary", ['""'] = "a target is a kind and words",
      ['"-keys=cpu"'] = "a target is a kind and words", ['"llvm mcpu"'] = "not 'mcpu'",
      ["{}"] = "a target needs the text 'kind'", ['{"kind": 3}'] = "needs the text 'kind'",
      ['{"kind": "c", "host": 3}'] = "the host of a target is a text or a dictionary",
      ['{"kind": "c", "host": {"tag": ""}}'] = "a target needs the text 'kind'",
    } do
      local mod, diag = read("T.target(" .. given .. ")")
      assert.is_nil(mod)
      assert.matches(message, diag.message, nil, true)
    end
  end)
end)
