-- The loop level's nodes, equality, walks and changes as TVM has them: the
-- counterparts of its test_tir_nodes.py, test_tir_structural_equal_hash.py,
-- test_tir_stmt_functor_ir_transform.py, test_tir_stmt_functor_substitute.py,
-- test_tir_renew_defs.py and test_tir_base.py, by name. What those of them test that
-- runs compiled code has no counterpart: nothing is compiled here.

local pl = require "perilune"
local consistent = require "spec.ir.consistent_equal"
local core = require "perilune.core"

local tir = pl.tir
local same, differs = consistent.same, consistent.differs
local mapped = { map_free_vars = true }

local function refused(f) assert.is_false((pcall(f))) end

-- The text of an expression, without the definitions of its variables.
local function text(node) return tostring(node):match "[^\n]*$" end

describe("nodes", function()
  local x, y, z = tir.Var("x"), tir.Var("y"), tir.Var("z")

  it("test_const: an integer of a dtype", function()
    local one = tir.const(1, "int32")
    assert.same({ "int32", "IntImm", 1 }, { one.dtype, one.kind, one.value })
  end)

  it("test_tir_const_dtype_inference: of Lua's values", function()
    assert.equal("bool", tir.const(true).dtype)
    assert.equal("int32", tir.const(1).dtype)
    assert.equal("float32", tir.const(1.0).dtype)
  end)

  it("test_make: operators give nodes of their kinds", function()
    assert.equal("Max", tir.max(tir.const(1), x).kind)
    assert.equal("Min", tir.min(tir.const(1), x).kind)
    assert.equal("Add", (1 + x).kind)
  end)

  it("test_ir, test_stmt: expressions in statements", function()
    assert.equal("Evaluate", tir.Evaluate(tir.const(1) + tir.IntImm("int32", 1)).kind)
    assert.equal("For", tir.For(tir.Var("i"), 0, 1, "serial", tir.Evaluate(0)).kind)
  end)

  it("test_ir2: a store into a buffer over a pointer", function()
    local array = tir.Var("array", tir.PointerType "int32")
    local buffer = tir.decl_buffer({ tir.Var "size" }, "int32", "b", { data = array })
    local store = tir.BufferStore(buffer, x + 1, { 1 })
    assert.equal("BufferStore", store.kind)
    assert.equal(buffer, store.buffer)
    assert.equal(array, store.buffer.data)
  end)

  it("test_let: a variable bound in a statement", function()
    local let = tir.LetStmt(x, 10, tir.Evaluate(x + 1))
    assert.equal(x, let.var)
    assert.equal(10, let.value.value)
  end)

  it("test_cast: to a vector by broadcasting", function()
    local f = tir.Var("f", "float32")
    assert.equal("Cast", tir.cast("int32", f).kind)
    local vector = tir.cast("float32x4", f)
    assert.same({ "Broadcast", 4 }, { vector.kind, vector.lanes })
  end)

  it("test_attr: what a statement says of a node", function()
    local stmt = tir.AttrStmt(y, "stride", 10, tir.Evaluate(x + 1))
    assert.same({ y, "stride" }, { stmt.node, stmt.attrs.attr_key })
    assert.is_nil(stmt.no_field)
  end)

  it("test_basic: text of a sum", function() assert.equal("x + y", text(x + y)) end)

  it("test_dtype: of variables and of comparisons", function()
    assert.equal("int32", x.dtype)
    assert.equal("bool", tir.gt(x, y).dtype)
  end)

  it("test_any, test_all: of one condition and of several", function()
    local lt, gt = tir.lt(x, y), tir.gt(x, z)
    assert.equal("x < y", text(tir.any(lt)))
    assert.equal("x < y or x > z", text(tir.any(lt, gt)))
    assert.equal("x < y or y > z + 1 or x < z * 2",
      text(tir.any(lt, tir.gt(y, z + 1), tir.lt(x, z * 2))))
    assert.equal("x < y", text(tir.all(lt)))
    assert.equal("x < y and x > z", text(tir.all(lt, gt)))
    assert.equal("x < y and y > z + 1 and x < z * 2",
      text(tir.all(lt, tir.gt(y, z + 1), tir.lt(x, z * 2))))
  end)

  it("test_bitwise: builtins, numbers on either side", function()
    for wanted, node in pairs {
      ["T.shift_left(x, y)"] = x << y, ["T.shift_right(x, y)"] = x >> y,
      ["T.bitwise_and(x, y)"] = x & y, ["T.bitwise_or(x, y)"] = x | y,
      ["T.bitwise_xor(x, y)"] = x ~ y, ["T.bitwise_and(10, x)"] = 10 & x,
      ["T.bitwise_or(10, x)"] = 10 | x, ["T.bitwise_xor(10, x)"] = 10 ~ x,
      ["T.shift_right(10, x)"] = 10 >> x, ["T.shift_left(10, x)"] = 10 << x,
      ["10 % x"] = 10 % x, ["T.bitwise_not(x)"] = ~x,
    } do assert.equal(wanted, text(node)) end
    assert.equal("int8x2", (tir.const(1, "int8x2") >> 1).dtype)
    assert.equal("int32x2", (x >> tir.const(1, "int32x2")).dtype)
  end)

  it("test_divide_by_zero: refused where both are known", function()
    for _, name in ipairs { "floordiv", "floormod", "truncdiv", "truncmod", "div" } do
      refused(function() return tir[name](tir.const(5), tir.const(0)) end)
    end
  end)

  it("test_isnan: a condition", function()
    local f = tir.Var("f", "float32")
    assert.equal("T.isnan(f)", text(tir.isnan(f)))
    assert.equal("bool", tir.isnan(f).dtype)
  end)

  it("test_equality: handles are compared by identity", function()
    assert.is_false(tir.Var "a" == tir.Var "a")
    local a = tir.Var "a"
    assert.is_true(a == a)
  end)

  it("test_prim_func: parameters, buffers, attributes", function()
    local b = tir.decl_buffer({ x }, "float32")
    local func = tir.PrimFunc({ x, y, b }, tir.LetStmt(z, 10, tir.Evaluate(z + 1)))
    assert.equal(3, #func.params)
    local with = func:with { attrs = { calling_conv = 1, ["tir.noalias"] = true } }
    assert.equal(1, with.attrs.calling_conv)
    assert.is_nil(func.attrs.calling_conv)
  end)

  it("test_vars, test_scoped_storage_vars: of a dtype, of a pointer in a scope", function()
    assert.equal("int8", tir.Var("xyz", "int8").dtype)
    local type = tir.PointerType("float32", "global.texture")
    local p = tir.Var("xyz", type)
    assert.equal("handle", p.dtype)
    assert.equal(type, p.type)
    assert.equal("prim", p.type.element.kind)
    assert.equal("global.texture", p.type.name)
  end)

  it("test_buffer_load_store: of a buffer, with the dtype of its elements", function()
    local b = tir.decl_buffer({ 10 }, "float32")
    local load = tir.BufferLoad(b, { 0 })
    assert.same({ "float32", b }, { load.dtype, load.buffer })
    assert.equal("BufferStore", tir.BufferStore(b, 0.5, { 0 }).kind)
    assert.equal("BufferRealize",
      tir.BufferRealize(b, { { 0, 1 } }, true, tir.Evaluate(0)).kind)
  end)

  it("test_exception: a name is a string", function()
    refused(function() return tir.Var({}, "int32") end)
  end)

  it("test_fail_implicit_downcasts_same_type, test_cast_between_types: a let is of one dtype",
    function()
      for _, pair in ipairs { { "float16", "float32" }, { "int8", "int16" },
        { "uint32", "uint64" }, { "int32", "float32" }, { "uint16", "int16" } } do
        local store, value = tir.Var("store", pair[1]), tir.Var("value", pair[2])
        refused(function() return tir.Let(store, value, store) end)
        assert.equal("PrimLet", tir.Let(store, tir.Var("v", pair[1]), store).kind)
      end
    end)
end)

describe("structural equality of TIR", function()
  local x, y, z = tir.Var("x"), tir.Var("y"), tir.Var("z")

  it("test_exprs: sharing does not count, free variables correspond two ways", function()
    local zx, zy = x + x, y + y
    same(zx * zx, (x + x) * (x + x))
    differs(x, y)
    same(x, y, mapped)
    assert.is_false(pl.equal(x + x, y + x, mapped))
    same(x + y, y + x, mapped)
    same(x + y + z, y + z + x, mapped)
    assert.is_false(pl.equal(x + 1, y + 1))
    same(tir.Let(x, 1, x - 1), tir.Let(y, 1, y - 1))
    same(tir.Let(x, 1, x // z), tir.Let(y, 1, y // z))
    same(zx * zx, zy * zy, mapped)
    assert.is_false(pl.equal(zx * zx, zy * zy))
    assert.has_error(function() pl.assert_equal(tir.const(1), tir.const(10)) end)
  end)

  it("test_prim_func: by the order of parameters, with attributes that are tensors", function()
    local function sum(swap)
      local a, b = tir.Var("a"), tir.Var("b")
      return tir.PrimFunc({ a, b }, tir.Evaluate(swap and b + a or a + b))
    end
    same(sum(false), sum(false))
    assert.is_false(pl.equal(sum(false), sum(true)))
    local function data(list)
      return pl.module { main = sum():with { attrs = { data = pl.tensor(list, "float32") } } }
    end
    same(data { 1, 2, 3 }, data { 1, 2, 3 })
    differs(data { 1, 2, 3 }, data { 1, 2, 4 })
  end)

  local function mismatch(a, b)
    assert.is_false(pl.equal(a, b))
    return (pl.mismatch(a, b))
  end

  it("test_prim_func_param_count_mismatch", function()
    assert.equal("body: 2 versus 3 parameters", mismatch(
      tir.PrimFunc({ x, y }, tir.Evaluate(x)), tir.PrimFunc({ x, y, z }, tir.Evaluate(x))))
  end)

  it("test_prim_func_param_dtype_mismatch", function()
    local f = tir.Var("f", "float32")
    assert.equal("body.params[1].type: int32 versus float32", mismatch(
      tir.PrimFunc({ x, y }, tir.Evaluate(x)), tir.PrimFunc({ x, f }, tir.Evaluate(x))))
  end)

  it("test_prim_func_body_mismatch", function()
    assert.equal("body.statements[0].value.b: x versus y, which do not correspond", mismatch(
      tir.PrimFunc({ x, y }, tir.Evaluate(x + x)), tir.PrimFunc({ x, y }, tir.Evaluate(x + y))))
  end)

  it("test_array: by shape and elements", function()
    local a = pl.const { 1.0, 2.0, 3.0, 4.0 }
    same(a, pl.const { 1.0, 2.0, 3.0, 4.0 })
    differs(a, pl.const { { 1.0, 2.0 }, { 3.0, 4.0 } })
  end)

  it("test_attrs: by key, in whatever order they were given", function()
    local function with(attrs) return tir.PrimFunc({}, tir.Evaluate(0), nil, nil, attrs) end
    same(with { x = { 1, 2, 3 }, y = 2 }, with { y = 2, x = { 1, 2, 3 } })
    differs(with { x = { 1, 2, 3 }, y = 2 }, with { x = { 1, 2, 3, 4 }, y = 2 })
  end)

  it("test_stmt: a function with a buffer of a symbolic shape", function()
    local function func()
      local n, A = tir.Var "n", tir.Var("A", "handle")
      local size = tir.Var "size"
      local Ab = tir.decl_buffer({ size }, "float32", "Ab")
      local i, j = tir.Var "i", tir.Var "j"
      local inner = tir.For(j, 0, 10, "serial",
        { Ab:store(Ab:load(j) + 2.0, j), Ab:store(Ab:load(j) + 2.0, j) })
      return tir.PrimFunc({ A, n },
        tir.For(i, 0, size, "serial", { Ab:store(Ab:load(i) + 1.0, i), inner }), nil, { [A] = Ab })
    end
    same(func(), func())
    local f = core.seal(func())
    same(f, f)
  end)

  local function mapping(buffer)
    local a = tir.Var("a", "handle")
    return tir.PrimFunc({ a }, tir.Evaluate(a), nil, { [a] = buffer })
  end

  it("test_buffer_storage_scope: a buffer's memory counts", function()
    local function of(scope)
      return mapping(tir.decl_buffer({ 10, 10 }, "float32", "b", { scope = scope }))
    end
    same(of "local", of "local")
    same(of "global", of(nil))
    differs(of "local", of "global")
  end)

  it("test_buffer_map_mismatch, test_buffer_map_length_mismatch", function()
    local function of(n) return mapping(tir.decl_buffer({ 10, n }, "float32", "b")) end
    same(of(10), of(10))
    assert.equal("body.statements[0].buffer.args[1].value: 10 versus 20", mismatch(of(10), of(20)))
    local a, b = tir.Var("a", "handle"), tir.Var("b", "handle")
    local A, B = tir.decl_buffer({ 10 }, "float32"), tir.decl_buffer({ 10 }, "float32")
    assert.is_string(mismatch(tir.PrimFunc({ a, b }, tir.Evaluate(a), nil, { [a] = A }),
      tir.PrimFunc({ a, b }, tir.Evaluate(a), nil, { [a] = A, [b] = B })))
  end)

  it("test_buffer_load_store: by indices", function()
    local b, i = tir.decl_buffer({ 10, 10 }, "float32"), tir.Var "i"
    same(b:load(0, 1), b:load(0, 1))
    differs(b:load(0, 1), b:load(1, 2))
    same(b:store(0.5, 0, i), b:store(0.5, 0, i))
    differs(b:store(0.5, 0, i), b:store(0.5, 1, i))
  end)

  it("test_while, test_while_condition_mismatch, test_while_body_mismatch", function()
    local function loop(var, compare, body)
      return tir.While(tir[compare](var, 0), tir.Evaluate(body or var))
    end
    assert.is_false(pl.equal(loop(x, "gt"), loop(y, "gt")))
    same(loop(x, "gt"), loop(y, "gt"), mapped)
    assert.equal("condition: GT versus LT", mismatch(loop(x, "gt"), loop(x, "lt")))
    assert.equal("body.statements[0].value: Var versus Add",
      mismatch(loop(x, "gt"), loop(x, "gt", x + 1)))
  end)

  local function seq(...)
    local list = {}
    for i, k in ipairs { ... } do list[i] = tir.Evaluate(x + k) end
    return tir.SeqStmt(list)
  end

  it("test_seq_mismatch, test_seq_mismatch_different_lengths, test_seq_length_mismatch",
    function()
      same(seq(1, 2, 3), seq(1, 2, 3))
      assert.matches("statements%[2%].value.b.value: 3 versus 99$",
        mismatch(seq(1, 2, 3, 4), seq(1, 2, 99, 4)))
      assert.is_string(mismatch(seq(1, 2, 3, 4), seq(1, 2, 3)))
    end)

  it("test_ir_module_equal: function by function, which is named", function()
    local function module(n)
      local A, i = tir.decl_buffer({ 1 }, "int32", "A"), tir.Var "i"
      return pl.module { func = tir.PrimFunc({ A },
        tir.For(i, 0, n, "serial", A:store(A:load(0) + 1, 0))) }
    end
    same(module(16), module(16))
    assert.equal("@func.body.statements[1].extent.value: 16 versus 32",
      mismatch(module(16), module(32)))
  end)

  it("test_nan_values_are_equivalent", function()
    local function nan() return tir.FloatImm("float32", 0 / 0) end
    same(nan(), nan())
    differs(nan(), tir.FloatImm("float32", 1.0))
  end)
end)

describe("changes of TIR", function()
  it("test_ir_transform: before and after the parts, for the kinds that are named", function()
    local n, i, j = tir.Var "n", tir.Var "i", tir.Var "j"
    local function call(name, arg) return tir.call_extern("int32", name, arg) end
    local inner = call("TestA", i * 3 + j)
    local body = tir.For(i, 0, n, "serial", tir.For(j, 0, 10, "serial",
      { tir.Evaluate(call("TestB", inner)), tir.Evaluate(call("TestC", inner)) }))
    local out = tir.transform(body, function(node)
      return node.args[1].value == "TestC" and tir.const(42) or nil
    end, function(node)
      assert.equal("PrimCall", node.kind)
      return node.args[1].value == "TestA" and call("TestB", node.args[2] + 1) or node
    end, { "tir.PrimCall" })
    local stmts = core.seal(out).body.stmts
    assert.equal("TestB", stmts[1].value.args[2].args[1].value)
    assert.equal(42, stmts[2].value.value)
  end)

  local function substituted(make)
    local n = tir.Var "n"
    return core.seal(tir.substitute(make(n), { [n] = 16 })), core.seal(make(tir.const(16)))
  end

  it("test_basic_substitute: in a loop's extent", function()
    pl.assert_equal(substituted(function(n)
      local i = tir.Var "i"
      return tir.For(i, 0, n, "serial", tir.Evaluate(i))
    end))
  end)

  it("test_substitute_allocate: in extents of memory", function()
    pl.assert_equal(substituted(function(n)
      local data = tir.Var("data", tir.PointerType "float32")
      return tir.Allocate(data, "float32", { n }, true, tir.Evaluate(data))
    end))
  end)

  it("test_substitute_buffer_load: in the shapes of buffers that are loaded from", function()
    pl.assert_equal(substituted(function(n)
      local data, i = tir.Var("data", tir.PointerType "float32"), tir.Var "i"
      local A = tir.decl_buffer({ n }, "float32", "A", { data = data })
      return tir.Allocate(data, "float32", { n }, true,
        tir.For(i, 0, n, "serial", tir.Evaluate(A:load(i))))
    end))
  end)

  it("test_substitute_decl_buffer: in buffers that are declared", function()
    pl.assert_equal(substituted(function(n)
      local data = tir.Var("data", tir.PointerType "float32")
      local A = tir.decl_buffer({ n }, "float32", "A", { data = data })
      return tir.Allocate(data, "float32", { n }, true,
        tir.DeclBuffer(A, tir.Evaluate(A.data)))
    end))
  end)
end)

describe("renewed definitions", function()
  -- The program with other variables, equal to it; no variable is in both.
  local function renewed(func)
    func = core.seal(func)
    local out = tir.renew_defs(func)
    pl.assert_equal(out, func)
    assert(pl.verify(out))
    local mine = {}
    for _, var in ipairs(pl.all_vars(func)) do mine[#mine + 1] = var end
    for _, var in ipairs(pl.all_vars(out)) do
      for _, old in ipairs(mine) do assert.is_false(var == old, var.name .. " is in both") end
    end
    return out, func
  end

  it("test_simple: parameters, allocated buffers, loops, blocks", function()
    local A = tir.decl_buffer({ 128 }, "float32", "A")
    local B = tir.decl_buffer({ 128 }, "float32", "B")
    local i, vi = tir.Var "i", tir.Var "vi"
    local iter = tir.IterVar({ 0, 128 }, vi, "DataPar")
    local inner = tir.BlockRealize({ i }, true, tir.Block({ iter },
      { tir.BufferRegion(A, { vi }) }, { tir.BufferRegion(B, { vi }) }, "B",
      B:store(A:load(vi) * 2.0, vi)))
    local root = tir.BlockRealize({}, true, tir.Block({}, {}, {}, "root",
      tir.For(i, 0, 128, "serial", inner), nil, { B }))
    local out, func = renewed(tir.PrimFunc({ A }, root))
    assert.is_false(out == func)
    assert.is_false(out.params[1] == func.params[1])
  end)

  it("test_match_buffer: strides and offsets that a view defines, once each", function()
    local A = tir.decl_buffer({ 16, 16 }, "float32", "A")
    local s, e = tir.Var "s", tir.Var "e"
    local A0 = tir.decl_buffer({ 16, 16 }, "float32", "A0", { strides = { s, s }, elem_offset = e })
    local source = tir.BufferRegion(A, { { 0, 16 }, { 0, 16 } })
    local block = tir.Block({}, {}, {}, "root", tir.Evaluate(A0:load(0, 0)), nil, nil,
      { tir.MatchBufferRegion(A0, source) })
    local out = renewed(tir.PrimFunc({ A }, tir.BlockRealize({}, true, block)))
    for node in out:nodes() do
      if node.kind == "MatchBuffer" then
        local strides = node.buffer.strides
        assert.equal(strides[1], strides[2])
        assert.is_false(strides[1] == s or node.buffer.elem_offset == e)
      end
    end
  end)

  it("test_undefined_buffer: memory and the buffers over it", function()
    local data, i = tir.Var("A_data", tir.PointerType "float16"), tir.Var "i"
    local A = tir.decl_buffer({ 128 }, "float16", "A", { data = data })
    local out, func = renewed(tir.PrimFunc({}, tir.Allocate(data, "float16", { 128 }, true, {
      tir.Evaluate(data),
      tir.For(i, 0, 128, "serial", A:store(A:load(i) + tir.const(1.0, "float16"), i)),
    })))
    assert.is_false(out.body.buffer_var == func.body.buffer_var)
  end)

  it("test_symbolic_func, test_buffer_map: sizes that parameters' buffers define", function()
    local a, b, n = tir.Var("a", "handle"), tir.Var("b", "handle"), tir.Var "n"
    local m, i, j = tir.Var "m", tir.Var "i", tir.Var "j"
    local A = tir.decl_buffer({ n, m }, "float32", "A")
    local B = tir.decl_buffer({ n, m * 2 }, "float32", "B")
    renewed(tir.PrimFunc({ a, b, n }, tir.For(i, 0, n, "serial", tir.For(j, 0, m, "serial",
      { B:store(A:load(i, j), i, j * 2), B:store(A:load(i, j), i, j * 2 + 1) })), nil,
      { [a] = A, [b] = B }))
  end)

  it("test_gather: buffers that index others", function()
    local A = tir.decl_buffer({ 64, 64 }, "float16", "A")
    local B = tir.decl_buffer({ 1 }, "int32", "B")
    local T, i = tir.decl_buffer({ 1, 64 }, "float16", "T"), tir.Var "i"
    renewed(tir.PrimFunc({ A, B, T },
      tir.For(i, 0, 64, "serial", T:store(A:load(B:load(0), i), 0, i))))
  end)

  it("are those of Relay's functions too: one may stand twice in a program", function()
    local x, y = pl.var("x", "float32"), pl.var("y", "float32")
    local f = pl.func({ x }, pl.let(y, pl.op.tanh(x), y))
    assert.is_nil(pl.well_formed(pl.tuple { f, pl.func({ x }, x) }))
    assert(pl.well_formed(pl.tuple { f, pl.renew_defs(f) }))
    renewed(f)
    local free = pl.func({ x }, x + y)
    assert.equal(y, pl.free_vars(pl.renew_defs(free))[1])
  end)
end)
