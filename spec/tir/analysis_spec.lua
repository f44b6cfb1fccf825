-- Analyses of TIR: the order of visits, variables that nothing
-- binds, what evaluating does, well-formed blocks, fresh definitions.

local pl = require "perilune"
local tir = pl.tir

local function names(list)
  local out = {}
  for i, var in ipairs(list) do out[i] = var.name end
  return table.concat(out, " ")
end

-- What is visited, constants by their values.
local function visited(root)
  local out = {}
  tir.post_order(root, function(node)
    out[#out + 1] = node.kind == "IntImm" and tostring(node.value) or node.kind
  end)
  return table.concat(out, " ")
end

describe("post_order", function()
  local A = tir.decl_buffer({ 8, 8 }, "int32", "A")
  local done = tir.Evaluate(9)

  it("visits the parts of statements as TVM does", function()
    local i, memory = tir.Var "i", tir.Var("m", tir.PointerType "int32")
    local rows = {
      { tir.LetStmt(i, 1, done), "1 9 Evaluate LetStmt" },
      { tir.AttrStmt(i, "key", 1, done), "1 9 Evaluate AttrStmt" },
      { tir.AssertStmt(tir.LT(1, 2), "no", done), "1 2 LT StringImm 9 Evaluate AssertStmt" },
      { tir.IfThenElse(tir.LT(1, 2), tir.Evaluate(3), done),
        "1 2 LT 3 Evaluate 9 Evaluate IfThenElse" },
      { tir.For(i, 1, 2, "thread_binding", done,
          tir.IterVar({ 3, 4 }, tir.Var "t", "ThreadIndex", "threadIdx.x")),
        "1 2 9 Evaluate For" },
      { tir.While(tir.LT(1, 2), done), "1 2 LT 9 Evaluate While" },
      { tir.Allocate(memory, "int32", { 1, 2 }, tir.LT(3, 4), done),
        "1 2 9 Evaluate 3 4 LT Allocate" },
      { tir.AllocateConst(memory, "int32", { 1 }, pl.tensor { 5 }, done),
        "1 9 Evaluate AllocateConst" },
      { tir.DeclBuffer(A, done), "9 Evaluate DeclBuffer" },
      { A:store(1, 2, 3), "1 2 3 BufferStore" },
      { tir.BufferRealize(A, { { 1, 3 }, { 3, 7 } }, tir.LT(5, 6), done),
        "1 2 3 4 5 6 LT 9 Evaluate BufferRealize" },
      { tir.Prefetch(A, { { 1, 3 }, { 3, 7 } }), "1 2 3 4 Prefetch" },
      { tir.SeqStmt { tir.Evaluate(1), done }, "1 Evaluate 9 Evaluate SeqStmt" },
    }
    for _, row in ipairs(rows) do assert.are.equal(row[2], visited(row[1])) end
  end)

  it("visits the parts of blocks as TVM does", function()
    local vi = tir.Var "vi"
    local function region(at) return tir.BufferRegion(A, { { at, at + 10 }, { at, at + 10 } }) end
    local memory = tir.decl_buffer({ 8, 8 }, "int32", "M")
    local block = tir.Block({ tir.IterVar({ 1, 3 }, vi, "CommReduce") }, { region(20) },
      { region(30) }, "b", tir.Evaluate(60), tir.Evaluate(50), nil,
      { tir.MatchBufferRegion(memory, region(40)) })
    assert.are.equal("0 7 8 LT 1 2 20 10 20 10 30 10 30 10 40 10 40 10 50 Evaluate 60 Evaluate "
      .. "SeqStmt Block BlockRealize",
      (visited(tir.BlockRealize({ 0 }, tir.LT(7, 8), block)):gsub("SeqStmt ", "") :gsub(
        "Block BlockRealize", "SeqStmt Block BlockRealize")))
  end)

  it("visits the parts of PrimExprs as TVM does", function()
    local x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    local k = tir.IterVar({ 1, 3 }, tir.Var "k", "CommReduce")
    local sum = tir.CommReducer({ x }, { y }, { tir.Add(x, y) }, { tir.const(0) })
    local z = tir.Var "z"
    local rows = {
      { tir.Shuffle({ tir.Ramp(1, 2, 4) }, { 3, 4 }), "3 4 1 2 Ramp Shuffle" },
      { tir.Reduce(sum, { tir.const(5) }, { k }, tir.LT(7, 8), 0, { tir.const(6) }),
        "1 2 5 6 7 8 LT Reduce" },
      { tir.Let(z, 1, tir.Add(z, 2)), "1 Var 2 Add PrimLet" },
      { tir.Select(tir.LT(1, 2), 3, 4), "1 2 LT 3 4 Select" },
      { A:load(1, 2), "1 2 BufferLoad" },
      { tir.call_extern("int32", "f", 1, 2), "StringImm 1 2 PrimCall" },
    }
    for _, row in ipairs(rows) do assert.are.equal(row[2], visited(row[1])) end
  end)
end)

describe("variables of TIR", function()
  local A, B = tir.decl_buffer({ 16 }, "float32", "A"), tir.decl_buffer({ 16 }, "float32", "B")
  local i, n = tir.Var "i", tir.Var "n"
  local loop = tir.For(i, 0, n, "serial", B:store(A:load(i) + 1, i))

  it("are free where nothing binds them, the memory of buffers too", function()
    assert.are.equal("n B A", names(tir.undefined_vars(loop)))
    assert.are.equal("B A", names(tir.undefined_vars(loop, { n })))
    assert.are.equal("A i n", names(pl.free_vars(A:load(i) + n)))
    assert.are.equal("", names(pl.free_vars(tir.PrimFunc({ A, B, n }, loop))))
  end)

  it("come with the buffer of a parameter: its memory, shape, strides, offset", function()
    local m, s, o = tir.SizeVar "m", tir.Var "s", tir.Var "o"
    local C = tir.decl_buffer({ m }, "float32", "C", { strides = { s }, elem_offset = o })
    local fn = tir.PrimFunc({ C }, C:store(1, m - 1))
    assert.are.equal("", names(pl.free_vars(fn)))
    assert.are.equal("C C m s o", names(pl.bound_vars(fn)))
  end)

  it("are bound by lets, threads, reductions, allocations and blocks", function()
    assert.are.equal("n", names(pl.free_vars(tir.Let(i, n, i + 1))))
    local thread = tir.IterVar(nil, tir.Var "tx", "ThreadIndex", "threadIdx.x")
    local launch = tir.AttrStmt(thread, "thread_extent", n, tir.Evaluate(thread.var))
    assert.are.equal("n", names(pl.free_vars(launch)))
    local memory = tir.Var("m", tir.PointerType "float32")
    local view = tir.Buffer(memory, "float32", { n }, nil, 0, "v")
    local declared = tir.DeclBuffer(view, view:store(1.0, 0))
    assert.are.equal("m n", names(pl.free_vars(declared)))
    assert.are.equal("n",
      names(pl.free_vars(tir.Allocate(memory, "float32", { n }, true, declared))))
    local x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
    local k = tir.IterVar({ 0, n }, tir.Var "k", "CommReduce")
    local sum = tir.CommReducer({ x }, { y }, { tir.Add(x, y) }, { tir.const(0.0) })
    assert.are.equal("A n", names(pl.free_vars(tir.Reduce(sum, { A:load(k.var) }, { k }))))
    local T = tir.decl_buffer({ 4 }, "float32", "T")
    local block = tir.Block({ tir.IterVar({ 0, 4 }, tir.Var "vi", "DataPar") }, {}, {}, "b",
      T:store(1.0, 0), nil, { T })
    assert.are.equal("i", names(pl.free_vars(tir.BlockRealize({ i }, true, block))))
    assert.are.equal("", names(pl.free_vars(tir.BufferRealize(T, { { 0, 4 } }, true,
      T:store(1.0, 0)))))
  end)

  it("are used where they stand", function()
    assert.is_true(tir.uses_var(loop, n))
    assert.is_false(tir.uses_var(loop, tir.Var "n"))
    assert.is_true(tir.uses_var(loop, function(var) return var.name == "i" end))
    assert.is_false(tir.uses_var(tir.const(1) + 2, function() return true end))
  end)
end)

describe("expr_deep_equal", function()
  it("takes variables for themselves only", function()
    local x, y = tir.Var "x", tir.Var "x"
    assert.is_true(tir.expr_deep_equal(x + 1, tir.Add(x, 1)))
    assert.is_false(tir.expr_deep_equal(x + 1, y + 1))
    assert.is_false(tir.expr_deep_equal(x + 1, x + 2))
  end)
end)

describe("side_effect", function()
  local A = tir.decl_buffer({ 16 }, "int32", "A")
  local x = tir.Var("x", "float32")

  it("is that of the strongest part, an update at the most", function()
    for _, row in ipairs {
      { tir.exp(x) + 1, "pure" }, { tir.likely(tir.lt(x, 1.0)), "pure" },
      { A:load(0) + 1, "read_state" }, { tir.undef(), "read_state" },
      { tir.tvm_struct_set(A.data, 0, 1, 2), "update_state" },
      { tir.call_extern("int32", "f", A:load(0)), "update_state" },
      { tir.Call("int32", pl.global "f", {}), "update_state" },
      { tir.ret(0), "update_state" },
    } do
      assert.are.equal(row[2], tir.side_effect(row[1]))
    end
  end)

  it("of a builtin is what TVM says", function()
    for name, row in pairs {
      exp = { "pure", 1 }, likely = { "expr_annotation", 1 }, ["tir.ret"] = { "control_jump", 1 },
      tvm_access_ptr = { "special_call_arg", 5 }, assume = { "embed_info", 1 },
      tvm_call_packed = { "opaque" }, undef = { "read_state", 0 }, ptx_ldg32 = { "pure", 4 },
      tvm_struct_set = { "update_state", 4 }, tvm_mfma = { "opaque" },
    } do
      local known = tir.builtin(name)
      assert.are.same({ row[1], row[2] }, { known.effect, known.args })
      assert.are.equal("tir." .. name:gsub("^tir%.", ""), known.name)
    end
    assert.has_error(function() tir.builtin "tanhh" end,
      "no builtin is called 'tanhh'; did you mean 'tanh'?")
  end)
end)

describe("well-formed loops", function()
  local A = tir.decl_buffer({ 16 }, "int32", "A")

  local function program(index)
    local i, vi = tir.Var "i", tir.Var "vi"
    local block = tir.Block({ tir.IterVar({ 0, 16 }, vi, "DataPar") }, {}, {}, "copy",
      A:store(1, index(i, vi)))
    return tir.PrimFunc({ A }, tir.For(i, 0, 16, "serial", tir.BlockRealize({ i }, true, block)))
  end

  it("use a block's own variables inside of it", function()
    assert.is_true(tir.verify_well_formed(program(function(_, vi) return vi + 1 end)))
    local ok, diag = tir.verify_well_formed(program(function(i, vi) return i * 2 + vi end))
    assert.is_false(ok)
    assert.are.equal('the loop\'s index i is used inside of block "copy", which may use only its '
      .. "own variables", diag.message:match "^[^\n]*variables")
    ok, diag = pl.well_formed(program(function(i) return i end))
    assert.is_nil(ok)
    assert.matches("the loop's index i", tostring(diag))
  end)

  it("may use a loop's index in a block without variables, and in loops inside", function()
    local i, j, vi = tir.Var "i", tir.Var "j", tir.Var "vi"
    local opaque = tir.Block({}, {}, {}, "opaque", A:store(1, i))
    local fn = tir.PrimFunc({ A },
      tir.For(i, 0, 16, "serial", tir.BlockRealize({}, true, opaque)))
    assert.is_true(tir.verify_well_formed(fn))
    local inside = tir.Block({ tir.IterVar({ 0, 16 }, vi, "DataPar") }, {}, {}, "in",
      tir.For(j, 0, 4, "serial", A:store(1, vi + j)))
    assert.is_true(tir.verify_well_formed(tir.PrimFunc({ A },
      tir.For(i, 0, 16, "serial", tir.BlockRealize({ i }, true, inside)))))
  end)

  it("bind a variable once", function()
    local i = tir.Var "i"
    local inner = tir.For(i, 0, 4, "serial", tir.Evaluate(i))
    assert.is_true(tir.verify_ssa(inner))
    local ok, diag = tir.verify_ssa(tir.For(i, 0, 4, "serial", inner))
    assert.is_false(ok)
    assert.is_truthy(tostring(diag):find "i")
  end)
end)

describe("renew_defs", function()
  it("gives a copy variables of its own (match_buffer, block_allocate, buffer_realize)", function()
    local n = tir.SizeVar "n"
    local A = tir.decl_buffer({ n }, "float32", "A")
    local T = tir.decl_buffer({ 4 }, "float32", "T")
    local i, vi, free = tir.Var "i", tir.Var "vi", tir.Var "free"
    local block = tir.Block({ tir.IterVar({ 0, 4 }, vi, "DataPar") },
      { tir.BufferRegion(A, { vi }) }, { tir.BufferRegion(T, { vi }) }, "b",
      T:store(A:load(vi), vi), nil, { T })
    local fn = tir.PrimFunc({ A },
      tir.For(i, 0, free, "serial", tir.BlockRealize({ i }, true, block)))
    local copy = tir.renew_defs(fn)
    assert.is_true(pl.equal(fn, copy))
    assert.are.equal(tostring(fn), tostring(copy))
    assert.is_true(pl.verify(copy))
    local mine = {}
    for _, var in ipairs(pl.bound_vars(fn)) do mine[var] = true end
    for _, var in ipairs(pl.bound_vars(copy)) do
      for other in pairs(mine) do assert.is_false(var == other) end
    end
    assert.are.equal(free, pl.free_vars(copy)[1])
    assert.are_not.equal(fn.stmts and fn.stmts[1].buffer, copy.stmts[1].buffer)
  end)

  it("leaves free variables alone", function()
    local sum = tir.const(1) + tir.Var "x"
    assert.is_true(pl.equal(sum, tir.renew_defs(sum)))
  end)

  it("lets a body be used twice", function()
    local i = tir.Var "i"
    local loop = tir.For(i, 0, 4, "serial", tir.Evaluate(i))
    local fn = tir.PrimFunc({}, { loop, tir.renew_defs(loop) })
    assert.is_true(pl.well_formed(fn))
  end)
end)
