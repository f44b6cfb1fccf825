--- loop_programs: the rows of programs.lua at the loop level: modules of PrimFuncs whose size is
-- a number. A row { name, loop = true, nested, expression, make(n) -> Module }; text of a nested
-- one is indented, so that it grows faster than the program; one of an expression has one deep
-- expression in its only statement.

local pl = require "perilune"
local tir = pl.tir

local rows = {}

local function add(name, make, form)
  rows[#rows + 1] = { name = "loops: " .. name, loop = true, nested = form == "nested",
    expression = form == "expression", make = make }
end

local function repeated(n, f)
  local lines = {}
  for i = 1, n do lines[i] = f(i) end
  return table.concat(lines)
end

local function prim_func(name, body)
  return ('@T.prim_func\ndef %s(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), '
    .. 'n: T.int32):\n%s'):format(name, body)
end

-- make(n): the lines of the body, indented by four.
local function text(name, make)
  add(name, function(n) return assert(tir.parse(prim_func("main", make(n)))) end)
end

-- make(n, b): the body, of buffers b.A and b.B and the variable b.n.
local function built(name, make, form)
  add(name, function(n)
    local b = { A = tir.decl_buffer({ 64 }, "float32", "A"),
      B = tir.decl_buffer({ 64 }, "float32", "B"), n = tir.Var("n", "int32") }
    local a_handle, b_handle = tir.Var("a", "handle"), tir.Var("b", "handle")
    local fn = tir.PrimFunc({ a_handle, b_handle, b.n }, make(n, b), nil,
      { [a_handle] = b.A, [b_handle] = b.B })
    return pl.module { main = fn }
  end, form)
end

local function store(b, index)
  return tir.BufferStore(b.B, tir.BufferLoad(b.A, { index }), { index })
end

-- ------------------------------------------------------------ statements in a row

text("stores", function(n)
  return repeated(n, function(i)
    return ("    B[%d] = A[%d] + T.float32(%d)\n"):format(i % 64, i * 7 % 64, i)
  end)
end)
text("loops in a row", function(n)
  return repeated(n, function(i)
    return ("    for i%d in range(%d):\n        B[i%d] = A[i%d]\n"):format(i, i % 8 + 1, i, i)
  end)
end)
text("loops of each kind", function(n)
  local kinds = { "T.unroll", "T.vectorized", "T.parallel", "range" }
  return repeated(n, function(i)
    return ("    for i%d in %s(4):\n        B[i%d * 4] = A[i%d + %d]\n"):format(i,
      kinds[i % 4 + 1], i, i, i % 32)
  end)
end)
text("loops with conditions", function(n)
  return repeated(n, function(i)
    return ("    for i%d in range(n):\n        if T.likely(i%d < 17):\n"
      .. "            B[i%d] = A[i%d]\n"):format(i, i, i, i)
  end)
end)
text("conditions in a row", function(n)
  return repeated(n, function(i)
    return ("    if n < %d:\n        B[%d] = A[%d]\n"):format(i, i % 64, i % 64)
  end)
end)
text("conditions in a loop", function(n)
  return "    for i in range(64):\n" .. repeated(n, function(i)
    return ("        if T.likely(i < %d):\n            B[i] = A[i]\n"):format(i % 60 + 2)
  end)
end)
text("equal expressions", function(n)
  return repeated(n, function(i)
    return ("    B[(n * 3 + 2) %% 64] = A[(n * 3 + 2) %% 64] + T.float32(%d)\n"):format(i)
  end)
end)
text("pairs of equal expressions", function(n)
  return repeated(n, function(i)
    return ("    B[(n * %d + 2) %% 64] = A[(n * %d + 2) %% 64]\n"):format(i, i)
  end)
end)
text("temporaries in a row", function(n)
  return repeated(n, function(i)
    return ("    for i%d in range(2):\n        C%d = T.decl_buffer((8,))\n        C%d[0] = A[i%d]\n"
      .. "        B[i%d] = C%d[0]\n"):format(i, i, i, i, i, i)
  end)
end)
text("asserts", function(n)
  return repeated(n, function(i) return ('    assert n < %d, "too large"\n'):format(i + 64) end)
    .. "    B[0] = A[0]\n"
end)
text("calls of builtins", function(n)
  return repeated(n, function(i)
    return ("    B[%d] = T.exp(T.tanh(A[%d]))\n"):format(i % 64, i * 7 % 64)
  end)
end)
text("blocks in a row", function(n)
  return '    with T.block("root"):\n' .. repeated(n, function(i)
    return ('        for i%d in range(4):\n            with T.block("b%d"):\n'
      .. '                v = T.axis.spatial(4, i%d)\n'
      .. "                B[v] = A[v]\n"):format(i, i, i)
  end)
end)
text("buffers of a block", function(n)
  return '    with T.block("root"):\n' .. repeated(n, function(i)
    return ("        C%d = T.alloc_buffer((4,))\n"):format(i)
  end) .. repeated(n, function(i)
    return ('        for i%d in range(4):\n            with T.block("b%d"):\n'
      .. '                v = T.axis.spatial(4, i%d)\n                C%d[v] = %s[v]\n'):format(
      i, i, i, i, i == 1 and "A" or "C" .. i - 1)
  end)
end)

-- --------------------------------------------------- statements around statements

text("temporaries, one of another", function(n)
  return repeated(n, function(i)
    return ("    C%d = T.decl_buffer((8,))\n    C%d[0] = %s[0]\n"):format(i, i,
      i == 1 and "A" or "C" .. i - 1)
  end) .. ("    B[0] = C%d[0]\n"):format(n)
end)
text("temporaries used at the end", function(n)
  return repeated(n, function(i) return ("    C%d = T.decl_buffer((8,))\n"):format(i) end)
    .. repeated(n, function(i) return ("    C%d[0] = A[%d]\n"):format(i, i % 64) end)
    .. repeated(n, function(i) return ("    B[%d] = C%d[0]\n"):format(i % 64, i) end)
end)
text("lets", function(n)
  return repeated(n, function(i)
    return ("    v%d: T.int32 = %s %% 64 + 1\n"):format(i, i == 1 and "n" or "v" .. i - 1)
  end) .. ("    B[v%d] = A[v%d]\n"):format(n, n)
end)
text("lets of constants", function(n)
  return repeated(n, function(i) return ("    v%d: T.int32 = %d\n"):format(i, i % 64) end)
    .. repeated(n, function(i) return ("    B[v%d] = A[v%d]\n"):format(i, i) end)
end)
text("lets in one expression", function(n)
  local terms = {}
  for i = 1, n do terms[i] = ("(v%d * 3 + 1) * (v%d * 3 + 1)"):format(i, i) end
  return repeated(n, function(i) return ("    v%d: T.int32 = n %% %d\n"):format(i, i + 1) end)
    .. ("    B[(%s) %% 64] = A[0]\n"):format(table.concat(terms, " + "))
end)
text("attributes", function(n)
  return repeated(n, function(i)
    return ('    T.attr(n, "pragma_debug_skip_region", %d)\n'):format(i)
  end) .. "    B[0] = A[0]\n"
end)
built("loops in loops", function(n, b)
  local vars, sum = {}, nil
  for i = 1, n do
    vars[i] = tir.Var("i", "int32")
    sum = i % 100 == 1 and vars[i] or tir.Add(sum, vars[i])
  end
  local body = store(b, tir.FloorMod(sum, 64))
  for i = n, 1, -1 do
    body = tir.For(vars[i], 0, i == n and 2 or 1, "serial", body)
  end
  return body
end, "nested")
built("conditions in conditions", function(n, b)
  local body = store(b, 0)
  for i = n, 1, -1 do body = tir.IfThenElse(tir.LT(b.n, 2 * i), body) end
  return body
end, "nested")
built("conditions that bound one variable", function(n, b)
  local body = store(b, 0)
  for i = n, 1, -1 do body = tir.IfThenElse(tir.LT(i, b.n), body) end
  return body
end, "nested")
built("conditions in else", function(n, b)
  local body = store(b, 0)
  for i = n, 1, -1 do body = tir.IfThenElse(tir.EQ(b.n, i), store(b, i % 64), body) end
  return body
end, "nested")
built("common subexpressions in else", function(n, b)
  local body = store(b, 0)
  for i = n, 1, -1 do
    local factor = tir.Add(tir.Mul(b.n, i + 1), 1)
    body = tir.SeqStmt { store(b, tir.FloorMod(tir.Mul(factor, factor), 64)),
      tir.IfThenElse(tir.EQ(b.n, i), store(b, i % 64), body) }
  end
  return body
end, "nested")
built("stores in loops in loops", function(n, b)
  local body = store(b, 0)
  for i = n, 1, -1 do
    body = tir.For(tir.Var("i", "int32"), 0, 1, "serial", tir.SeqStmt { store(b, i % 64), body })
  end
  return body
end, "nested")

-- ---------------------------------------------------------------- expressions

built("a sum of loads", function(n, b)
  local sum = tir.BufferLoad(b.A, { 0 })
  for i = 1, n do sum = tir.Add(sum, tir.BufferLoad(b.A, { i % 64 })) end
  return tir.BufferStore(b.B, sum, { 0 })
end, "expression")
built("a sum of terms of an index", function(n, b)
  local sum = b.n
  for i = 1, n do sum = tir.Add(sum, tir.Mul(tir.FloorMod(b.n, i + 1), i % 5)) end
  return store(b, tir.FloorMod(sum, 64))
end, "expression")
built("an index of an index", function(n, b)
  local index = b.n
  for i = 1, n do
    index = tir.FloorMod(tir.Add(tir.Mul(index, i % 3 + 2), i % 7), 61 + i % 5)
  end
  return store(b, tir.FloorMod(index, 64))
end, "expression")
built("minima of minima", function(n, b)
  local index = b.n
  for i = 1, n do index = tir.Min(tir.Max(index, b.n - i % 9), i % 63) end
  return store(b, tir.FloorMod(index, 64))
end, "expression")
built("a condition of many", function(n, b)
  local all = tir.LT(b.n, 64)
  for i = 1, n do all = tir.And(all, tir.NE(b.n, 100 + i)) end
  return tir.IfThenElse(all, store(b, 0))
end, "expression")
built("values of conditions", function(n, b)
  local value = tir.BufferLoad(b.A, { 0 })
  for i = 1, n do
    value = tir.Select(tir.LT(b.n, i), tir.BufferLoad(b.A, { i % 64 }), value)
  end
  return tir.BufferStore(b.B, value, { 0 })
end, "expression")
built("lets in expressions", function(n, b)
  local value = b.n
  for i = 1, n do
    local v = tir.Var("v", "int32")
    value = tir.Let(v, tir.FloorMod(value, 100 + i % 7), tir.Add(v, 1))
  end
  return store(b, tir.FloorMod(value, 64))
end, "expression")
built("an expression that is shared", function(n, b)
  local value = tir.FloorMod(b.n, 13)
  for i = 1, n do value = tir.Add(tir.FloorMod(tir.Mul(value, 3), 17 + i % 5), 2) end
  return tir.SeqStmt { store(b, tir.FloorMod(value, 64)),
    store(b, tir.FloorMod(tir.Add(value, 1), 64)) }
end)

-- -------------------------------------------------------- functions and buffers

add("functions", function(n)
  return assert(tir.parse(prim_func("main", "    B[0] = A[0]\n") .. repeated(n, function(i)
    return "\n" .. prim_func("f" .. i, ("    for i in range(4):\n        B[i] = A[i + %d]\n")
      :format(i % 60))
  end)))
end)
add("buffers", function(n)
  return assert(tir.parse(("@T.prim_func\ndef main(%s):\n%s"):format(
    repeated(n, function(i) return ("%sA%d: T.Buffer((4,))"):format(i > 1 and ", " or "", i) end),
    repeated(n - 1, function(i) return ("    A%d[0] = A%d[0]\n"):format(i + 1, i) end))))
end)
add("variables of shapes", function(n)
  return assert(tir.parse(("@T.prim_func\ndef main(%s):\n%s%s"):format(
    repeated(n, function(i) return ("%sa%d: T.handle"):format(i > 1 and ", " or "", i) end),
    repeated(n, function(i)
      return ("    n%d = T.int32()\n    A%d = T.match_buffer(a%d, (n%d,))\n"):format(i, i, i, i)
    end),
    repeated(n - 1, function(i) return ("    A%d[0] = A%d[0]\n"):format(i + 1, i) end))))
end)

-- A branch with an other side is behind all of the lets.
built("lets before a branch", function(n, b)
  local vars = {}
  local body = tir.IfThenElse(tir.EQ(b.n, 3), tir.BufferStore(b.A, tir.const(1, "float32"), { 0 }),
    tir.BufferStore(b.B, tir.const(2, "float32"), { 0 }))
  for i = n, 1, -1 do
    vars[i] = tir.Var("v" .. i, "int32")
    body = tir.LetStmt(vars[i], b.n * i, tir.SeqStmt {
      tir.BufferStore(b.A, tir.const(i, "float32"), { (vars[i] + 1) % 64 }), body })
  end
  return body
end)

local function stored(b, buffer, index, value)
  return tir.BufferStore(b[buffer], tir.const(value, "float32"), { tir.FloorMod(index, 64) })
end

-- n lets, v1 to vn; inside(vars): what is behind them.
local function lets(n, b, inside)
  local vars = {}
  for i = 1, n do vars[i] = tir.Var("v" .. i, "int32") end
  local body = inside(vars)
  for i = n, 1, -1 do body = tir.LetStmt(vars[i], b.n * i, body) end
  return body
end

built("lets that both sides of a branch use", function(n, b)
  return lets(n, b, function(vars)
    local then_, other = {}, {}
    for i = 1, n do
      then_[i] = stored(b, "A", vars[i] + i, i)
      other[i] = stored(b, "B", i % 2 == 0 and vars[i] + i or vars[i] - i, i)
    end
    return tir.IfThenElse(tir.EQ(b.n, 3), tir.SeqStmt(then_), tir.SeqStmt(other))
  end)
end)
built("lets of one expression", function(n, b)
  return lets(n, b, function(vars)
    local sum = vars[1]
    for i = 2, n do sum = tir.Add(sum, vars[i]) end
    return stored(b, "B", sum, 1)
  end)
end, "expression")
-- What the sides of a branch compute with its let differs.
built("lets that sides of branches in branches use", function(n, b)
  return lets(n, b, function(vars)
    local body = stored(b, "B", vars[n] + 1, 0)
    for i = n, 1, -1 do
      body = tir.IfThenElse(tir.EQ(b.n, i), stored(b, "A", vars[i] + 1, i),
        tir.SeqStmt { stored(b, "B", vars[i] + 2, i), body })
    end
    return body
  end)
end, "nested")

return rows
