-- Variables of PrimFuncs: bound once, and used inside of what binds them.

local pl = require "perilune"
local tir = pl.tir

describe("a PrimFunc is well-formed when", function()
  local A = tir.decl_buffer({ 16 }, "float32", "A")
  local i, j = tir.Var "i", tir.Var "j"

  local function good(params, body)
    local fn = tir.PrimFunc(params, body)
    assert(pl.well_formed(fn))
    assert.is_true(tir.verify_well_formed(fn))
  end

  local function bad(message, params, body)
    local ok, diag = tir.verify_well_formed(tir.PrimFunc(params, body))
    assert.is_false(ok)
    assert.matches("the variable " .. message, diag.message, 1, true)
    assert.is_nil((pl.well_formed(tir.PrimFunc(params, body))))
  end

  local function evaluate(...) return tir.Evaluate(...) end

  it("each variable is bound", function()
    good({ A }, tir.For(i, 0, 16, "serial", A:store(A:load(i), i)))
    bad("j is used but not bound", { A },
      tir.For(i, 0, 16, "serial", A:store(A:load(j), i)))
    bad("j is used but not bound", {}, tir.For(i, 0, j, "serial", evaluate(i)))
    good({ j }, tir.For(i, 0, j, "serial", evaluate(i)))
  end)

  it("a let, a loop or an allocation is around the uses", function()
    local plus = tir.Let(i, 3, i + 1)
    good({}, evaluate(plus))
    bad("i is used outside of its binder", {}, evaluate(plus * i))
    bad("i is used outside of its binder", {}, evaluate(i * plus))
    bad("i is used outside of its binder", {}, evaluate(tir.Let(i, i + 1, i)))
    bad("i is used outside of its binder", {}, { evaluate(plus), evaluate(i) })
    bad("i is used outside of its binder", {}, tir.For(i, 0, i + 1, "serial", evaluate(0)))
    bad("i is used after its scope ended", {},
      { tir.For(i, 0, 4, "serial", evaluate(i)), evaluate(i) })
    local store = A:store(1, 0)
    good({}, tir.Allocate(A.data, "float32", { 16 }, true, store))
    bad("A is used after its scope ended", {},
      { tir.Allocate(A.data, "float32", { 16 }, true, store), store })
  end)

  it("lets nest, and a value that is shared is under all of them", function()
    local shared = i + j
    good({}, evaluate(tir.Let(i, 1, tir.Let(j, i + 2, shared * shared))))
    bad("j is used outside of its binder", {},
      evaluate(tir.Let(i, 1, tir.Let(j, 2, shared) * shared)))
  end)

  it("each variable is bound once", function()
    local plus = tir.Let(i, 3, i + 1)
    bad("i is bound more than once", {}, { evaluate(plus), evaluate(plus) })
    bad("i is bound more than once", {}, evaluate(tir.Let(i, 1, tir.Let(i, 2, i))))
    bad("i is bound more than once", { i }, evaluate(plus))
    bad("i is bound more than once", {}, tir.For(i, 0, 4, "serial", evaluate(plus)))
  end)

  it("a reduction is around its axes, a combiner around its variables", function()
    local k = tir.IterVar({ 0, 16 }, "k", "CommReduce")
    good({ A }, A:store(tir.sum(A:load(k.var), k), 0))
    bad("k is used outside of its binder", { A },
      A:store(tir.sum(A:load(k.var), k) + A:load(k.var), 0))
  end)

  it("an index of a thread is used under what says so, of which there may be several", function()
    local tx = tir.IterVar({ 0, 16 }, "threadIdx.x", "ThreadIndex", "threadIdx.x")
    local function under() return tir.AttrStmt(tx, "thread_extent", 16, A:store(1, tx.var)) end
    good({ A }, under())
    good({ A }, { under(), under() })
    bad("threadIdx.x is used outside of its binder", { A }, { under(), A:store(1, tx.var) })
  end)

  it("each buffer is a parameter's, allocated, or over memory that is there", function()
    local T = tir.decl_buffer({ 16 }, "float32", "T")
    local view = tir.decl_buffer({ 4, 4 }, "float32", "V", { data = A.data })
    local n = tir.SizeVar "n"
    local D, E = tir.decl_buffer({ n }, "float32", "D"), tir.decl_buffer({ n }, "float32", "E")
    local function block(...)
      return tir.BlockRealize({}, true, tir.Block({}, {}, {}, "b", T:store(1, 0), nil, ...))
    end
    good({ D, E }, D:store(E:load(n - 1), 0))
    good({ A }, tir.DeclBuffer(view, view:store(1, 0, 0)))
    good({ A }, tir.BufferRealize(T, { { 0, 16 } }, true, T:store(1, 0)))
    good({ A }, block { T })
    good({ A }, block({}, { tir.MatchBufferRegion(T, tir.BufferRegion(A, { { 0, 16 } })) }))
    bad("T is used but not bound", { A }, T:store(1, 0))
    bad("T is used but not bound", { A }, tir.DeclBuffer(T, T:store(1, 0)))
    bad("T is used outside of its binder", { A }, { block { T }, T:store(1, 0) })
    bad("n is used but not bound", { A }, tir.DeclBuffer(
      tir.decl_buffer({ n }, "float32", "V", { data = A.data }), evaluate(0)))
  end)

  it("is told in a time that grows as the program does: many lets", function()
    local value = j
    for _ = 1, 20000 do
      local v = tir.Var "v"
      value = tir.Let(v, value, v + v + j)
    end
    good({ j }, evaluate(value))
    local inner = j
    local vars = {}
    for k = 1, 20000 do
      vars[k] = tir.Var "v"
      inner = inner + vars[k]
    end
    for k = 1, 20000 do inner = tir.Let(vars[k], 1, inner) end
    good({ j }, evaluate(inner))
  end)
end)

describe("pl.verify of PrimFuncs of a module", function()
  local function verify(text) return pl.verify(assert(tir.parse(text))) end

  it("names a variable that nothing binds, and the function", function()
    local ok, diag = verify [[
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    q = T.int32()
    A[n] = A[q]
]]
    assert.is_nil(ok)
    assert.matches("the variable 'q' is free in a function of a module", diag.message)
    assert.matches("@main", tostring(diag))
  end)

  it("names the data of a buffer that nothing binds", function()
    local A = tir.decl_buffer({ 4 }, "float32", "A")
    local fn = tir.PrimFunc({}, A:store(tir.FloatImm("float32", 1), 0))
    local ok, diag = pl.verify(pl.module { main = fn })
    assert.is_nil(ok)
    assert.matches("the variable 'A' is free", diag.message)
  end)

  it("knows what parameters, matches, loops, lets, memory and threads bind", function()
    assert.is_true(verify [[
@T.prim_func
def main(a: T.handle, m: T.int32):
    n = T.int32()
    k = T.int32()
    A = T.match_buffer(a, (n, k * 2), "float32")
    C = T.decl_buffer((4,))
    t = T.launch_thread("threadIdx.x", 4)
    v: T.int32 = n + k
    for i in range(m):
        with T.block("b"):
            j = T.axis.spatial(m, i)
            D = T.alloc_buffer((4,))
            D[0] = A[j, v]
            C[t] = D[0]
]])
  end)

  it("is asked after each pass that changes something", function()
    local free = tir.Var("free", "int32")
    local pass = pl.prim_func_pass { name = "Free", run = function(fn)
      return tir.PrimFunc(fn.params, tir.Evaluate(free))
    end }
    local text = "@T.prim_func\ndef main(n: T.int32):\n    T.evaluate(n)\n"
    local ok, err = pcall(pass, assert(tir.parse(text)))
    assert.is_false(ok)
    assert.matches("the variable 'free' is free", tostring(err))
  end)

  it("is no reason to refuse a function to a pass: free variables stay free", function()
    local mod = assert(tir.parse [[
@T.prim_func
def main(A: T.Buffer((64,), "int32")):
    q = T.int32()
    A[q] = q * 2 // 2
]])
    for _, pass in ipairs { pl.passes["tir.Simplify"](), pl.passes["tir.ConvertSSA"](),
      pl.module_pass { name = "Copy", run = function(m)
        return m:with { main = pl.passes["tir.Simplify"]()(m).main }
      end } } do
      local out = pass(mod)
      assert.is_nil((pl.verify(out)))
    end
    assert.matches("A[q] = q", tostring(pl.passes["tir.Simplify"]()(mod)), 1, true)
  end)
end)

describe("a program is in SSA form when", function()
  local i = tir.Var "i"

  local function loop(extent) return tir.For(i, 0, extent, "serial", tir.Evaluate(i)) end

  local function bad(...)
    local ok, diag = tir.verify_ssa(...)
    assert.is_false(ok)
    assert.matches("the variable '?i'? is bound more than once", diag.message)
  end

  it("no two statements bind a variable", function()
    assert.is_true(tir.verify_ssa(loop(4)))
    assert.is_true(tir.verify_ssa(tir.SeqStmt { loop(4), tir.renew_defs(loop(4)) }))
    bad(tir.SeqStmt { loop(4), loop(5) })
    bad(tir.PrimFunc({ i }, loop(4)))
    bad(tir.For(i, 0, 4, "serial", loop(4)))
  end)

  it("lets of one variable have one value", function()
    local let = tir.Let(i, 3, i + 1)
    assert.is_true(tir.verify_ssa(tir.SeqStmt { tir.Evaluate(let), tir.Evaluate(let) }))
    assert.is_true(tir.verify_ssa(let * tir.Let(i, 3, i)))
    bad(let * tir.Let(i, 4, i))
    bad(tir.For(i, 0, 4, "serial", tir.Evaluate(let)))
  end)

  it("the argument is a node", function()
    assert.is_false((tir.verify_ssa(12)))
  end)
end)
