-- The loop level from Lua: constructors, operators, visitors, sealing.

local pl = require "perilune"
local tir = pl.tir

local function sealed(node) return require "perilune.core".seal(node) end

-- for i in range(16): B[i] = A[i] + 1
local function add_one()
  local A = tir.decl_buffer({ 16 }, "float32", "A")
  local B = tir.decl_buffer({ 16 }, "float32", "B")
  local i = tir.Var("i", "int32")
  local body = tir.For(i, 0, 16, "serial", B:store(A:load(i) + 1, i))
  return tir.PrimFunc({ A, B }, body), A, B, i
end

local function kinds_of(fn, order)
  local names = {}
  order(fn, function(node) names[#names + 1] = node.kind end)
  return table.concat(names, " ")
end

describe("PrimExprs", function()
  it("have the dtype that TVM gives them", function()
    local i, x = tir.Var("i", "int32"), tir.Var("x", "float32")
    assert.are.equal("int32", (i + 1).dtype)
    assert.are.equal("float32", (x * 2).dtype)
    assert.are.equal("float32", (x + i).dtype)
    assert.are.equal("bool", tir.lt(i, 4).dtype)
    assert.are.equal("int32x4", tir.Ramp(i, 1, 4).dtype)
    assert.are.equal("float32x8", tir.Broadcast(x, 8).dtype)
    assert.are.equal("int64", (i + tir.Var("j", "int64")).dtype)
    assert.are.equal("handle", tir.StringImm("a").dtype)
    assert.are.equal("float16", tir.Cast("float16", x).dtype)
    assert.are.equal("bool", tir.isnan(x).dtype)
    assert.are.equal("int32x2", tir.Shuffle({ tir.Ramp(0, 1, 4) }, { 0, 2 }).dtype)
  end)

  it("are computed when they are constant, as TVM's operators do", function()
    local i = tir.Var("i", "int32")
    assert.are.equal(i, i + 0)
    assert.are.equal(i, i * 1)
    assert.are.equal(0, (i * 0).value)
    assert.are.equal(7, (tir.const(3) + 4).value)
    assert.are.equal(-3, tir.floordiv(tir.const(-5), 2).value)
    assert.are.equal(-2, tir.truncdiv(tir.const(-5), 2).value)
    assert.are.equal(1, tir.floormod(tir.const(-5), 2).value)
    assert.are.equal(-1, tir.truncmod(tir.const(-5), 2).value)
    assert.are.equal("Add", tir.Add(tir.const(3), 4).kind)
    assert.are.equal(1, tir.lt(tir.const(3), 4).value)
  end)

  it("are refused when their operands do not fit", function()
    local i, x = tir.Var("i", "int32"), tir.Var("x", "float32")
    assert.has_error(function() return tir.Add(i, x) end)
    assert.has_error(function() return tir.And(i, i) end)
    assert.has_error(function() return tir.IntImm("int8", 200) end)
    assert.has_error(function() return i / 2 end)
    assert.has_error(function() return tir.Call("int32", "no_such_builtin", {}) end)
    local A = tir.decl_buffer({ 4, 4 }, "float32", "A")
    assert.has_error(function() return A:load(i) end)
    assert.has_error(function() return A:store(i, 0, 0) end)
  end)
end)

describe("statements", function()
  it("stand in the order of their scope once sealed", function()
    local fn = sealed(add_one())
    local stmts = fn.stmts
    assert.are.equal(3, #stmts)
    assert.are.equal("BufferBind BufferBind For",
      stmts[1].kind .. " " .. stmts[2].kind .. " " .. stmts[3].kind)
    assert.are.equal("BufferStore", stmts[3].body.kind)
    assert.are.equal("i", stmts[3].loop_var.name)
    assert.are.equal("SeqStmt", fn.body.kind)
    assert.is_true(pl.verify(fn))
  end)

  it("are equal whatever their variables are called, and not otherwise", function()
    local one, other = add_one(), add_one()
    assert.is_true(pl.equal(one, other))
    assert.are.equal(pl.hash(one), pl.hash(other))
    local changed = tir.transform(one, nil, function(node)
      if node.kind == "FloatImm" then return tir.FloatImm("float32", 2) end
    end)
    assert.is_false(pl.equal(one, changed))
  end)

  it("that a script uses twice are there twice", function()
    local A = tir.decl_buffer({ 4 }, "int32", "A")
    local store = A:store(A:load(0) + 1, 0)
    local fn = sealed(tir.PrimFunc({ A }, { store, store }))
    assert.are.equal(3, #fn.stmts)
    local load = A:load(1)
    fn = sealed(tir.PrimFunc({ A }, { A:store(load, 0), A:store(load, 2) }))
    local loads = 0
    for node in fn:nodes() do
      if node.kind == "BufferLoad" then loads = loads + 1 end
    end
    assert.are.equal(2, loads)
    assert.is_true(pl.verify(fn))
  end)

  it("keep their scopes when they are taken from one function into another", function()
    local fn, A, B = add_one()
    local loop = sealed(fn).stmts[3]
    local copy = tir.PrimFunc({ A, B }, { loop, loop })
    assert.are.equal(4, #sealed(copy).stmts)
    assert.is_true(pl.equal(tir.PrimFunc({ A, B }, loop), fn))
  end)

  it("bind a variable once", function()
    local i = tir.Var("i")
    local inner = tir.For(i, 0, 4, "serial", tir.Evaluate(i))
    assert.has_error(function() return sealed(tir.For(i, 0, 4, "serial", inner)) end)
  end)

  it("of a block say what it reads and writes, for its variables", function()
    local A = tir.decl_buffer({ 8 }, "float32", "A")
    local i, vi = tir.Var("i"), tir.Var("vi")
    local iter = tir.IterVar({ 0, 8 }, vi, "CommReduce")
    local block = tir.Block({ iter }, { tir.BufferRegion(A, { vi }) },
      { tir.BufferRegion(A, { { 0, 8 } }) }, "sum", A:store(A:load(vi) + 1, vi), A:store(0, vi))
    local loop = tir.For(i, 0, 8, "serial", tir.BlockRealize({ i }, true, block))
    local fn = sealed(tir.PrimFunc({ A }, loop))
    local inner = fn.stmts[2].body.block
    assert.are.equal("Block", inner.kind)
    assert.are.same({ "BlockReads", "BlockWrites", "BlockInit", "BufferStore" },
      { inner.stmts[1].kind, inner.stmts[2].kind, inner.stmts[3].kind, inner.stmts[4].kind })
    assert.are.equal("vi", inner.params[1].name)
  end)
end)

describe("walking the loop level", function()
  it("visits PrimExprs and statements after what they are made of", function()
    assert.are.equal("IntImm IntImm Var BufferLoad FloatImm Add Var BufferStore For SeqStmt",
      (kinds_of(add_one(), tir.post_order):gsub("BufferLoad FloatImm Add Buffer",
        "BufferLoad FloatImm Add Var Buffer") .. " SeqStmt"))
    assert.are.equal("For IntImm IntImm BufferStore Add BufferLoad Var FloatImm",
      kinds_of(add_one(), tir.pre_order))
  end)

  it("rewrites by pre and post, for the kinds that are named", function()
    local fn = add_one()
    local seen = {}
    local same = tir.transform(fn, nil, function(node) seen[#seen + 1] = node.kind end,
      { "tir.BufferStore", "tir.For" })
    assert.are.same({ "BufferStore", "For" }, seen)
    assert.is_true(pl.equal(fn, same))
    local doubled = tir.transform(fn, function(node)
      if node.kind == "BufferLoad" then return tir.FloatImm("float32", 3) end
    end)
    local loads = kinds_of(doubled, tir.post_order)
    assert.is_nil(loads:find "BufferLoad")
    assert.has_error(function() tir.transform(fn, nil, nil, { "tir.Nothing" }) end)
  end)

  it("leaves the function as it is when nothing changes", function()
    local fn = sealed(add_one())
    assert.is_true(rawequal(fn, tir.transform(fn, nil, function() end)))
  end)

  it("substitutes free variables, in buffers too", function()
    local n = tir.SizeVar("n")
    local A = tir.decl_buffer({ n }, "float32", "A")
    local i = tir.Var("i")
    local loop = tir.For(i, 0, n, "serial", A:store(0, i))
    local eight = sealed(tir.substitute(loop, { [n] = 8 }))
    assert.are.equal(8, eight.extent.value)
    assert.are.equal(8, eight.body.buffer.shape[1].value)
  end)
end)

describe("fields of reductions", function()
  it("are the parts that they were made of", function()
    local a, b, x = tir.Var("a", "float32"), tir.Var("b", "float32"), tir.Var("x", "float32")
    local sum = tir.Add(a, b)
    local zero, start = tir.const(0.0), tir.const(1.0)
    local reducer = tir.CommReducer({ a }, { b }, { sum }, { zero })
    assert.are.same({ { a }, { b }, { sum }, { zero } },
      { reducer.lhs, reducer.rhs, reducer.result, reducer.identity_element })
    local k = tir.IterVar({ 0, 8 }, tir.Var("k"), "CommReduce")
    local reduce = tir.Reduce(reducer, { x }, { k }, true, 0, { start })
    assert.are.same({ { x }, { start }, { k } }, { reduce.source, reduce.init, reduce.axis })
    assert.are.equal(0, reduce.value_index)
    assert.are.same({}, tir.Reduce(reducer, { x }, { k }).init)
    assert.has_error(function() return reduce:with { args = { x } } end)
  end)
end)

describe("changed copies of TIR", function()
  it("have other operands, bodies and attributes", function()
    local fn, _, B = add_one()
    local loop = sealed(fn).stmts[3]
    local shorter = loop:with { extent = 8, attrs = { kind = 1 } }
    assert.are.equal(8, shorter.extent.value)
    assert.are.equal(1, shorter.attrs.kind)
    assert.are.equal("BufferStore", shorter.body.kind)
    local empty = loop:with { body = tir.Evaluate(0) }
    assert.are.equal("Evaluate", sealed(empty).body.kind)
    local store = B:store(0, 3):with { value = 2, indices = { 4 } }
    assert.are.equal(2, store.value.value)
    assert.are.equal(4, store.indices[1].value)
    local i = tir.Var("i")
    local branch = tir.IfThenElse(tir.lt(i, 3), tir.Evaluate(1), tir.Evaluate(2))
    local other = sealed(branch:with { else_case = tir.Evaluate(5), condition = tir.lt(i, 4) })
    assert.are.equal(1, other.then_case.value.value)
    assert.are.equal(5, other.else_case.value.value)
    assert.are.equal(4, other.condition.b.value)
  end)

  it("are the node itself when nothing changes, and refuse what is no field", function()
    local x = tir.Var("x") + 1
    assert.is_true(rawequal(x, x:with {}))
    assert.is_true(rawequal(x, x:with { a = x.a }))
    assert.are.equal(7, (x:with { b = 7 }).b.value)
    assert.has_error(function() return x:with { c = 1 } end)
  end)
end)

describe("sizes of TIR", function()
  it("may be nests of a hundred thousand", function()
    local body = tir.Evaluate(0)
    for _ = 1, 50000 do
      body = tir.IfThenElse(true, tir.For(tir.Var("i"), 0, 2, "serial", body))
    end
    local fn = sealed(tir.PrimFunc({}, body))
    assert.is_true(pl.verify(fn))
    assert.is_true(pl.equal(fn, fn))
    local n = 0
    tir.post_order(fn, function() n = n + 1 end)
    assert.are.equal(2 + 50000 * 5, n)
  end)

  it("may be expressions of a million nodes", function()
    local i = tir.Var("i")
    local sum = i
    for _ = 1, 500000 do sum = tir.Add(sum, i) end
    local fn = sealed(tir.PrimFunc({ i }, tir.Evaluate(sum)))
    assert.is_true(pl.verify(fn))
    assert.are.equal(pl.hash(fn), pl.hash(fn))
  end)
end)

describe("names that no constructor of TIR knows", function()
  local i = tir.Var("i", "int32")
  local cases = {
    { "there is no kind 'paralel'; did you mean 'parallel'?", function()
      return tir.For(i, 0, 3, "paralel", tir.Evaluate(0))
    end },
    { "there is no kind '9'", function() return tir.For(i, 0, 3, 9, tir.Evaluate(0)) end },
    { "there is no iter_type 'DataParr'; did you mean 'DataPar'?", function()
      return tir.IterVar(tir.Range(0, 4), i, "DataParr", "")
    end },
    { "there is no option 'scop'; did you mean 'scope'?", function()
      return tir.decl_buffer({ 4 }, "float32", "A", { scop = "local" })
    end },
    { "there is no option 'data_aligment'; did you mean 'data_alignment'?", function()
      local p = tir.Var("p", tir.PointerType("float32"))
      return tir.Buffer(p, "float32", { 4 }, nil, nil, "A", { data_aligment = 64 })
    end },
    { "there is no option 'verbos'", function() return tir.script(i, { verbos = true }) end },
    { "there is no strength 'symbolic_bond'; did you mean 'symbolic_bound'?", function()
      return pl.arith.Analyzer():can_prove(tir.LT(i, 8), "symbolic_bond")
    end },
  }
  for _, case in ipairs(cases) do
    it("are told: " .. case[1], function()
      local ok, message = pcall(case[2])
      assert.is_false(ok)
      assert.is_truthy(tostring(message):find(case[1], 1, true), tostring(message))
      assert.is_truthy(tostring(message):find("^spec/tir/constructors_spec"), tostring(message))
    end)
  end
end)

describe("an index of a load or store", function()
  local A = tir.decl_buffer({ 64 }, "float32", "A")
  local one = tir.FloatImm("float32", 1)

  local function refused(what, f, ...)
    local ok, err = pcall(f, ...)
    assert.is_false(ok)
    assert.matches(what, tostring(err))
  end

  it("is an integer", function()
    for _, index in ipairs { one, tir.FloatImm("float16", 0), tir.Broadcast(one, 4) } do
      refused("an index into 'A' is an integer, not a float", tir.BufferLoad, A, { index })
      refused("an index into 'A' is an integer, not a float", tir.BufferStore, A, one, { index })
    end
    refused("not a handle", tir.BufferLoad, A, { tir.Var("h", "handle") })
    local i = tir.Var("i", "uint8")
    assert.are.equal("float32", tir.BufferLoad(A, { i }).dtype)
    assert.are.equal("float32x4", tir.BufferLoad(A, { tir.Ramp(0, 1, 4) }).dtype)
  end)

  it("has as many lanes as the value", function()
    refused("a value of float32x1 into elements of float32x4", tir.BufferStore, A, one,
      { tir.Ramp(0, 1, 4) })
  end)

  it("is tested by the reader, too", function()
    for _, line in ipairs { "A[0] = A[T.float32(1)]", "A[1.5] = T.float32(0)" } do
      local text = '@T.prim_func\ndef main(A: T.Buffer((64,), "float32")):\n    ' .. line .. "\n"
      local mod, diag = tir.parse(text)
      assert.is_nil(mod)
      assert.matches("an index into 'A' is an integer, not a float32", tostring(diag))
    end
  end)
end)
