-- One program for each kind of TIR: data of kinds_spec.lua, beside
-- kinds.lua. Rows are as there: build(change), a PrimFunc that has a node of the
-- kind, and with `change` another one, in which that node differs; and `text`,
-- what its script form has in it. The script form is only printed: no row here
-- is read back. Besides:
--
--   with    what changes a node of the kind, where neither a constant nor
--           T.evaluate may stand in its place
--   aside   tir.post_order passes over the kind, as TVM's visitors do: it holds
--           PrimExprs and is none

local pl = require "perilune"

local tir = pl.tir

local rows = {}

-- i, j and x, y are parameters; the body is of the expression that make gives.
local function of_expr(text, make)
  return { text = text, build = function(change)
    local v = {
      i = tir.Var("i"), j = tir.Var("j"), x = tir.Var("x", "float32"),
      y = tir.Var("y", "float32"), p = tir.Var("p", "bool"), q = tir.Var("q", "bool"),
    }
    local value = make(v, change)
    return tir.PrimFunc({ v.i, v.j, v.x, v.y, v.p, v.q }, tir.Evaluate(value))
  end }
end

-- A, B and n are parameters; the body is what make gives.
local function of_stmt(text, make)
  return { text = text, build = function(change)
    local v = {
      A = tir.decl_buffer({ 16 }, "float32", "A"), B = tir.decl_buffer({ 16 }, "float32", "B"),
      n = tir.Var("n"), one = tir.Evaluate(1), two = tir.Evaluate(2),
    }
    return tir.PrimFunc({ v.A, v.B, v.n }, make(v, change))
  end }
end

-- --------------------------------------------------------------- immediates

rows.IntImm = of_expr("T.int64(5)", function(_, change)
  return tir.IntImm("int64", change and 6 or 5)
end)

rows.FloatImm = of_expr("T.float32(0.5)", function(_, change)
  return tir.FloatImm("float32", change and 0.25 or 0.5)
end)

rows.StringImm = of_expr('"word"', function(_, change)
  return tir.call_extern("int32", "f", tir.StringImm(change and "other" or "word"))
end)

-- ---------------------------------------------------------------- operators

for name, text in pairs {
  Add = "i + j", Sub = "i - j", Mul = "i * j", Div = "T.Div(i, j)", Mod = "T.truncmod(i, j)",
  FloorDiv = "i // j", FloorMod = "i % j", Min = "T.min(i, j)", Max = "T.max(i, j)",
  EQ = "i == j", NE = "i != j", LT = "i < j", LE = "i <= j", GT = "i > j", GE = "i >= j",
} do
  rows[name] = of_expr(text, function(v, change)
    return tir[name](change and v.j or v.i, change and v.i or v.j)
  end)
end

for name, text in pairs { And = "p and q", Or = "p or q" } do
  rows[name] = of_expr(text, function(v, change)
    return tir[name](change and v.q or v.p, change and v.p or v.q)
  end)
end

rows.Not = of_expr("not p", function(v, change) return tir.Not(change and v.q or v.p) end)

rows.Cast = of_expr('T.Cast("float16", x)', function(v, change)
  return tir.Cast(change and "float64" or "float16", v.x)
end)

rows.Select = of_expr("T.Select(p, x, y)", function(v, change)
  return tir.Select(change and v.q or v.p, v.x, v.y)
end)

-- ------------------------------------------------- vectors, bindings, calls

rows.Ramp = of_expr("T.Ramp(i, 1, 4)", function(v, change)
  return tir.Ramp(v.i, 1, change and 8 or 4)
end)

rows.Broadcast = of_expr("T.Broadcast(x, 4)", function(v, change)
  return tir.Broadcast(v.x, change and 8 or 4)
end)

rows.Shuffle = of_expr("T.Shuffle([", function(v, change)
  return tir.Shuffle({ tir.Ramp(v.i, 1, 4) }, { 0, change and 3 or 2 })
end)

rows.PrimLet = of_expr("T.Let(k + 1, where={k: i})", function(v, change)
  local k = tir.Var("k")
  return tir.Let(k, change and v.j or v.i, tir.Add(k, 1))
end)

rows.PrimCall = of_expr("T.exp(x)", function(v, change)
  return change and tir.log(v.x) or tir.exp(v.x)
end)

rows.Any = of_expr("T.Any()", function(v, change)
  return tir.Add(tir.Any(), change and v.i or v.j)
end)

-- --------------------------------------------------------------- reductions

local function combiner(start)
  local a, b = tir.Var("a", "float32"), tir.Var("b", "float32")
  return tir.CommReducer({ a }, { b }, { tir.Add(a, b) }, { tir.const(start, "float32") })
end

local function reduction(v, start, last)
  local k = tir.IterVar({ 0, last }, tir.Var("k"), "CommReduce")
  return tir.Reduce(combiner(start), { v.x }, { k }, true, 0)
end

rows.CommReducer = of_expr("T.comm_reducer(lambda", function(v, change)
  return reduction(v, change and 1.0 or 0.0, 8)
end)

rows.Reduce = of_expr("T.reduce(", function(v, change)
  return reduction(v, 0.0, change and 9 or 8)
end)

-- ------------------------------------------------------------------ buffers

rows.BufferLoad = of_stmt("A[n]", function(v, change)
  return tir.Evaluate((change and v.B or v.A):load(v.n))
end)

rows.BufferStore = of_stmt("A[n] = T.float32(1)", function(v, change)
  return (change and v.B or v.A):store(1, v.n)
end)

rows.Buffer = { text = 'A: T.Buffer((16,), "float32")', build = function(change)
  local A = tir.decl_buffer({ change and 8 or 16 }, "float32", "A")
  return tir.PrimFunc({ A }, A:store(1, 0))
end }

rows.BufferBind = { text = "T.match_buffer(a, (16,)", build = function(change)
  local a, b = tir.Var("a", "handle"), tir.Var("b", "handle")
  local A = tir.decl_buffer({ 16 }, "float32", "A", { data_alignment = 128 })
  return tir.PrimFunc({ a, b }, A:store(1, 0), nil, { [change and b or a] = A })
end }

rows.Range = of_stmt("T.Range(2, 4)", function(v, change)
  return tir.Prefetch(v.A, { { 2, change and 7 or 6 } })
end)

rows.Prefetch = of_stmt("T.prefetch(A, [", function(v, change)
  return tir.Prefetch(change and v.B or v.A, { { 2, 6 } })
end)

rows.IterVar = of_stmt('thread="threadIdx.x"', function(v, change)
  local thread = tir.IterVar(nil, tir.Var("t"), "ThreadIndex",
    change and "threadIdx.y" or "threadIdx.x")
  return tir.For(tir.Var("i"), 0, 16, "thread_binding", v.one, thread)
end)

rows.Array = of_stmt('T.attr([A, B], "key", 1)', function(v, change)
  return tir.AttrStmt({ v.A, change and v.A or v.B }, "key", 1, v.one)
end)

rows.DeclBuffer = of_stmt("T.decl_buffer((4,)", function(v, change)
  local view = tir.decl_buffer({ 4 }, change and "int32" or "float32", "C", { data = v.A.data })
  return tir.DeclBuffer(view, view:store(1, 0))
end)

rows.BufferRealize = of_stmt("T.realize(A[0:8]", function(v, change)
  return tir.BufferRealize(v.A, { { 0, change and 9 or 8 } }, true, v.one)
end)

rows.ProducerLoad = of_stmt("A[n]", function(v, change)
  return tir.Evaluate(tir.ProducerLoad(v.A, { change and 3 or v.n }))
end)

rows.ProducerStore = of_stmt("A[n] = ", function(v, change)
  return tir.ProducerStore(v.A, 1.0, { change and 3 or v.n })
end)

rows.ProducerRealize = of_stmt("T.ProducerRealize(A[0:8]", function(v, change)
  return tir.ProducerRealize(v.A, { { 0, change and 9 or 8 } }, true, v.one)
end)

-- --------------------------------------------------------------- statements

rows.Evaluate = of_stmt("T.evaluate(n)", function(v, change)
  return tir.Evaluate(change and 1 or v.n)
end)

-- A function's statements stand in its scope; a SeqStmt is where there is none.
rows.SeqStmt = { text = "T.evaluate(1)\nT.evaluate(2)", build = function(change)
  return tir.SeqStmt { tir.Evaluate(1), tir.Evaluate(change and 3 or 2) }
end }

rows.LetStmt = of_stmt("with T.LetStmt(n", function(v, change)
  local k = tir.Var("k")
  return { tir.LetStmt(k, change and 3 or v.n, tir.Evaluate(k)), v.one }
end)

rows.AttrStmt = of_stmt('T.attr(n, "pragma", 1)', function(v, change)
  return tir.AttrStmt(v.n, "pragma", change and 2 or 1, v.one)
end)

rows.AssertStmt = of_stmt('assert n < 4, "too large"', function(v, change)
  return tir.AssertStmt(tir.LT(v.n, change and 5 or 4), "too large", v.one)
end)

rows.Allocate = of_stmt("T.allocate([8]", function(v, change)
  local memory = tir.Var("memory", tir.PointerType "float32")
  return tir.Allocate(memory, "float32", { change and 9 or 8 }, true, v.one)
end)

rows.AllocateConst = of_stmt("T.allocate_const([", function(v, change)
  local memory = tir.Var("memory", tir.PointerType "float32")
  local data = pl.tensor({ 1, change and 3 or 2 }, "float32")
  return tir.AllocateConst(memory, "float32", { 2 }, data, v.one)
end)

rows.IfThenElse = of_stmt("else:", function(v, change)
  return tir.IfThenElse(tir.LT(v.n, 4), v.one, change and v.one or v.two)
end)

rows.For = of_stmt("for i in T.parallel(8):", function(v, change)
  local i = tir.Var("i")
  return tir.For(i, 0, 8, change and "vectorized" or "parallel", v.A:store(1, i))
end)

rows.While = of_stmt("while n < 4:", function(v, change)
  return tir.While(tir.LT(v.n, change and 5 or 4), v.one)
end)

-- ------------------------------------------------------------------- blocks

-- A block over vi; what `parts` gives is of the block: reads, writes, body,
-- init, alloc_buffers, match_buffers, name and value.
local function of_block(text, parts)
  return of_stmt(text, function(v, change)
    local vi = tir.Var("vi")
    local of = parts(v, vi, change)
    local block = tir.Block({ tir.IterVar({ 0, 16 }, vi, "DataPar") }, of.reads, of.writes,
      of.name or "block", of.body or v.A:store(1, vi), of.init, of.alloc_buffers,
      of.match_buffers)
    return tir.BlockRealize({ of.value or v.n }, true, block)
  end)
end

rows.Block = of_block('with T.block("copy"):', function(_, _, change)
  return { name = change and "move" or "copy" }
end)

rows.BlockRealize = of_block("T.axis.spatial(16, n)", function(_, _, change)
  return { value = change and tir.const(3) or nil }
end)

rows.BlockReads = of_block("T.reads(A[vi])", function(v, vi, change)
  return { reads = { tir.BufferRegion(change and v.B or v.A, { vi }) } }
end)

rows.BlockWrites = of_block("T.writes(A[vi])", function(v, vi, change)
  return { writes = { tir.BufferRegion(change and v.B or v.A, { vi }) } }
end)

rows.BufferRegion = of_block("T.reads(A[2:6])", function(v, _, change)
  return { reads = { tir.BufferRegion(v.A, { { 2, change and 7 or 6 } }) } }
end)

rows.BlockInit = of_block("with T.init():", function(v, vi, change)
  return { init = v.A:store(change and 2 or 0, vi) }
end)

rows.AllocBuffer = of_block("C = T.alloc_buffer((4,)", function(_, vi, change)
  local C = tir.decl_buffer({ 4 }, change and "int32" or "float32", "C")
  return { alloc_buffers = { C }, body = C:store(1, vi) }
end)

rows.MatchBuffer = of_block("T.match_buffer(A[0:4]", function(v, vi, change)
  local C = tir.decl_buffer({ 4 }, "float32", "C")
  local source = tir.BufferRegion(v.A, { change and { 4, 8 } or { 0, 4 } })
  return { match_buffers = { tir.MatchBufferRegion(C, source) }, body = C:store(1, vi) }
end)

-- ------------------------------------------ what takes the place of a node

local function passed_over(name, with)
  rows[name].aside, rows[name].with = true, with
end

local function shorter(node) return node:with { extent = 1 } end

local function no_regions(node) return node:with { regions = {} } end

local function other_buffer(node)
  return node:with { buffer = tir.decl_buffer({ 3 }, "int32", "D") }
end

local function first_half(node)
  return node:with { region = { shorter(node.region[1]) } }
end

passed_over("Range", shorter)
passed_over("BufferRegion", first_half)
passed_over("Array", function(node) return node:with { items = { node.items[1] } } end)
passed_over("IterVar", function(node)
  return node:with { attrs = { thread_tag = "threadIdx.z" } }
end)
passed_over("Buffer", function(node) return node:with { attrs = { data_alignment = 256 } } end)
passed_over("CommReducer", function(node)
  local result = { tir.Max(node.lhs[1], node.rhs[1]) }
  return tir.CommReducer(node.lhs, node.rhs, result, node.identity_element)
end)
passed_over("BlockReads", no_regions)
passed_over("BlockWrites", no_regions)
passed_over("AllocBuffer", other_buffer)
passed_over("BufferBind", other_buffer)
passed_over("MatchBuffer", function(node) return node:with { source = first_half(node.source) } end)
passed_over("BlockInit", function(node) return node:with { body = tir.Evaluate(7) } end)

rows.StringImm.with = function() return tir.StringImm "changed" end
rows.Block.with = function(node) return node:with { attrs = { name_hint = "changed" } } end

return rows
