-- TVM's test_te_tensor.py, test_te_tag.py and test_te_verify_compute.py.

local pl = require "perilune"
local keeps = require "spec.te.keeps"

local te, tir = pl.te, pl.tir
local F = "float32"

describe("test_te_tensor", function()
  it("test_tensor", function()
    local m, n, l = te.size_var "m", te.size_var "n", te.size_var "l"
    local A, B = te.placeholder({ m, l }, F, "A"), te.placeholder({ n, l }, F, "B")
    local T = te.compute({ m, n, l }, function(i, j, k) return A[{ i, k }] * B[{ j, k }] end)
    assert.same({ m, n, l }, T.shape)
    assert.equal("PlaceholderOp", A.op.kind)
    assert.equal(A, A)
    assert.are_not.equal(A, B)
    assert.equal(T, T.op:output(0))
    assert.equal("float16", tir.Cast("float16", T[{ 0, 0, 0 }]).dtype)
    assert.matches("A%[i, k%] %* B%[j, k%]", tostring(T.op))
  end)

  it("test_rank_zero", function()
    local A, scale = te.placeholder({ 6 }, F, "A"), te.placeholder({}, F, "s")
    local k = te.reduce_axis({ 0, 6 }, "k")
    local T = te.compute({}, function() return te.sum(A[{ k }] * scale(), k) end)
    assert.same({}, T.shape)
    local mod = te.create_schedule(T.op):to_module({ A, scale, T }, "main")
    local out = tir.run(mod, { { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 }, pl.tensor(2.0), pl.tensor(0.0) })
    assert.equal(42.0, out[3]:to_table())
  end)

  it("test_conv1d", function()
    local A = te.placeholder({ 8 }, F, "A")
    local B = te.compute(6, function(ii)
      local i = ii + 1
      return A[i - 1] + A[i] + A[i + 1]
    end)
    assert.equal(1, B.ndim)
    local mod = te.create_schedule(B.op):to_module({ A, B }, "main")
    local values = { { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0 }, pl.tensor { 0.0, 0, 0, 0, 0, 0 } }
    assert.same({ 6, 9, 12, 15, 18, 21 }, tir.run(mod, values)[2]:to_table())
  end)

  it("test_tensor_slice", function()
    -- A[0] is no slice here: an element has all of its indices.
    local A = te.compute({ 3, 3 }, function(i, j) return i * 3 + j end)
    local B = te.compute({ 3 }, function(i) return A[{ 0, i }] + A[{ 0, i }] end)
    keeps.fails("has 2 dimensions, 1 indices are given", function() return A[0] end)
    local mod = te.create_schedule(B.op):to_module({ B }, "main")
    assert.same({ 0, 2, 4 }, tir.run(mod, { pl.tensor({ 0, 0, 0 }, "int32") })[1]:to_table())
  end)

  it("test_tensor_reduce_multi_axis", function()
    local A = te.placeholder({ 4, 3 }, F, "A")
    local k1, k2 = te.reduce_axis({ 0, 3 }, "k"), te.reduce_axis({ 0, 4 }, "k")
    local C = te.compute({ 1 }, function() return te.sum(A[{ k2, k1 }], { k1, k2 }) end, "C")
    assert.equal(2, #C.op.reduce_axis)
    local s = te.create_schedule(C.op)
    s[C]:reorder(C.op.reduce_axis[2], C.op.reduce_axis[1])
    keeps.same(s, { A, C })
  end)

  it("test_tensor_comm_reducer, test_tensor_comm_reducer_overload", function()
    local A, k = te.placeholder({ 4, 3 }, F, "A"), te.reduce_axis({ 0, 3 }, "k")
    local mysum = te.comm_reducer(function(x, y) return x + y end, function(dtype)
      return te.const(0, dtype)
    end)
    local C = te.compute({ 4 }, function(i) return mysum(A[{ i, k }], k) end, "C")
    local D = te.compute({ 4 }, function(i) return te.sum(A[{ i, k }], k) end, "D")
    local args = { A, C }
    assert.same(keeps.same(te.create_schedule(D.op), { A, D }),
      keeps.same(te.create_schedule(C.op), args))
    local m, n = te.size_var "m", te.size_var "n"
    assert.equal("m + n", tostring(mysum(m, n)))
  end)

  it("test_tensor_reduce", function()
    -- TVM's json of a tensor is the script form of its PrimFunc here.
    local A, B = te.placeholder({ 3, 5 }, F, "A"), te.placeholder({ 4, 5 }, F, "B")
    local T = te.compute({ 3, 4, 5 }, function(i, j, k) return A[{ i, k }] * B[{ j, k }] end, "T")
    local rv = te.reduce_axis({ 0, 4 }, "k")
    local C = te.compute({ 3, 4 }, function(i, j) return te.sum(T[{ i, j, rv + 1 }], rv) end, "C")
    local s = te.create_schedule(C.op)
    s[T]:compute_at(s[C], C.op.axis[2])
    keeps.same(s, { A, B, C })
    local text = tostring(te.create_prim_func { A, B, C })
    assert.equal(text, tostring(assert(tir.parse(text)).functions.main))
  end)

  it("test_tensor_reduce_multiout_with_cond", function()
    local mysum = te.comm_reducer(function(x, y) return { x[1] + y[1], x[2] + y[2] } end,
      function(t0, t1) return { te.const(0, t0), te.const(1, t1) } end)
    local I = "int32"
    local idx, val = te.placeholder({ 2, 6 }, I, "idx"), te.placeholder({ 2, 6 }, I, "val")
    local k = te.reduce_axis({ 0, 6 }, "k")
    local T0, T1 = te.compute({ 2 }, function(i)
      return mysum({ idx[{ i, k }], val[{ i, k }] }, k, tir.EQ(te.floormod(k.var, 2), 0))
    end, "T")
    local zeros = pl.tensor({ 0, 0 }, I)
    local out = tir.run(te.create_schedule(T0.op):to_module({ idx, val, T0, T1 }, "main"),
      { pl.tensor({ { 1, 2, 3, 4, 5, 6 }, { 6, 5, 4, 3, 2, 1 } }, I),
        pl.tensor({ { 1, 1, 1, 1, 1, 1 }, { 2, 2, 2, 2, 2, 2 } }, I), zeros, zeros })
    assert.same({ 9, 12 }, out[3]:to_table())
    assert.same({ 4, 7 }, out[4]:to_table())
  end)

  it("test_tensor_scan, test_scan_multi_out", function()
    local m, n = te.size_var "m", te.size_var "n"
    local x, state = te.placeholder({ m, n }, F), te.placeholder({ m, n }, F)
    local res = te.scan(te.compute({ 1, n }, function(_, i) return x[{ 0, i }] end),
      te.compute({ m, n }, function(t, i) return state[{ t - 1, i }] + x[{ t, i }] end), state)
    assert.same({ m, n }, res.shape)

    local x1, s1 = te.placeholder({ 5, 3 }, F, "x1"), te.placeholder({ 5, 3 }, F, "s1")
    local x2, s2 = te.placeholder({ 5, 3 }, F, "x2"), te.placeholder({ 5, 3 }, F, "s2")
    local i1 = te.compute({ 1, 3 }, function(_, i) return x1[{ 0, i }] end, "i1")
    local i2 = te.compute({ 1, 3 }, function(_, i) return x2[{ 0, i }] end, "i2")
    local u1 = te.compute({ 5, 3 }, function(t, i)
      return s1[{ t - 1, i }] + s2[{ t - 1, i }] + x1[{ t, i }]
    end, "u1")
    local u2 = te.compute({ 5, 3 }, function(t, i) return x2[{ t, i }] + s2[{ t - 1, i }] end, "u2")
    local r0, r1 = te.scan({ i1, i2 }, { u1, u2 }, { s1, s2 })
    assert.equal(0, r0.value_index)
    assert.equal(1, r1.value_index)
    assert.equal("ScanOp", r0.op.kind)
    local args = { x1, x2, r0, r1 }
    keeps.same(te.create_schedule(r0.op), args)
  end)

  it("test_extern, test_extern_multi_out", function()
    local m = te.size_var "m"
    local A = te.placeholder({ m }, F, "A")
    local B = te.extern({ m }, { A }, function(ins, outs)
      assert.equal("Buffer", ins[1].kind)
      return tir.call_packed("myadd", ins[1].data, outs[1].data, m)
    end)
    assert.same({ m }, B.shape)
    local C = te.compute({ m }, function(i) return A[{ i }] * 10 end)
    local first, second = te.extern({ A.shape, A.shape }, { A, C }, function(ins, outs)
      assert.equal(2, #ins)
      return tir.call_packed("myadd", ins[1].data, outs[1].data, outs[2].data, m)
    end)
    assert.equal(0, first.value_index)
    assert.equal(1, second.value_index)
    local text = tostring(te.create_schedule(second.op):to_module({ A, first, second }, "main"))
    assert.matches('call_packed%("myadd"', text)
  end)

  it("test_tuple_inputs", function()
    local A0, A1 = te.placeholder({ 3, 4 }, F, "A0"), te.placeholder({ 3, 4 }, F, "A1")
    local T0, T1 = te.compute({ 3, 4 }, function(i, j)
      return A0[{ i, j }] * 2, A1[{ i, j }] * 3
    end, "T")
    assert.equal(T0.op, T1.op)
    assert.equal(0, T0.value_index)
    assert.equal(1, T1.value_index)
    assert.equal(#T0.shape, #T1.shape)
    keeps.same(te.create_schedule(T0.op), { A0, A1, T0, T1 })
  end)

  it("test_tuple_with_different_deps", function()
    local A0, A1 = te.placeholder({ 23, 4 }, F, "A1"), te.placeholder({ 23, 4 }, F, "A2")
    local B0, B1 = te.compute({ 23, 4 }, function(i, j)
      return A0[{ i, j }] * 2, A1[{ i, j }] * 3
    end, "B")
    local C = te.compute({ 23, 4 }, function(i, j) return B0[{ i, j }] + 4 end, "C")
    local s = te.create_schedule(C.op)
    local outer = s[C]:split(C.op.axis[1], 10)
    s[B0]:compute_at(s[C], outer)
    local text = tostring(s:to_module({ A0, A1, C }, "main"))
    assert.equal(1, select(2, text:gsub("T.realize%(B_v1", "")), text)
    assert.equal(1, B1.value_index)
    keeps.same(s, { A0, A1, C })
  end)

  it("test_tensor_inputs", function()
    local x = te.placeholder({ 1 }, F, "x")
    local y = te.compute({ 1 }, function(i) return x[{ i }] + x[{ i }] end)
    assert.same({ x.op }, y.op.inputs)
  end)

  it("test_tensor_pool", function()
    local a = te.placeholder({ 4, 6, 6 }, F, "a")
    local kh, kw = te.reduce_axis({ 0, 3 }, "kh"), te.reduce_axis({ 0, 3 }, "kw")
    local p = te.compute({ 4, 4, 4 }, function(c, h, w)
      return te.max(a[{ c, h + kh, w + kw }], { kh, kw })
    end, "p")
    local intrin = te.decl_tensor_intrin(p.op, function(ins, outs)
      return tir.call_packed("op", ins[1].data, outs[1].data)
    end, { default_buffer_params = { offset_factor = 1 } })
    local A = te.placeholder({ 1, 4, 6, 6 }, F, "A")
    -- pl.topi's maximum passes NaN on, which te.max does not: the pool is written out.
    local rh, rw = te.reduce_axis({ 0, 3 }, "rh"), te.reduce_axis({ 0, 3 }, "rw")
    local P = te.compute({ 1, 4, 4, 4 }, function(n, c, h, w)
      return te.max(A[{ n, c, h + rh, w + rw }], { rh, rw })
    end, "P")
    local s = te.create_schedule(P.op)
    s[P]:tensorize(P.op.axis[2], intrin)
    assert.matches('"op"', tostring(pl.lower(s, { args = { A, P } })))
  end)

  it("test_tensor_scalar, test_tensor_scalar_mixed", function()
    -- An external function is the loop that it stands for.
    local A, B = te.placeholder({ 4 }, F, "A"), te.placeholder({}, F, "B")
    local C = te.extern({ 4 }, { A, B }, function(ins, outs)
      local i = tir.Var "i"
      return tir.For(i, 0, 4, "serial", outs[1]:store(ins[1]:load(i) * ins[2]:load(), i))
    end, { name = "C" })
    local mod = te.create_schedule(C.op):to_module({ A, B, C }, "main")
    local values = { { 1.0, 2.0, 3.0, 4.0 }, pl.tensor(3.0), { 0.0, 0.0, 0.0, 0.0 } }
    assert.same({ 3, 6, 9, 12 }, tir.run(pl.lower(te.create_schedule(C.op), { args = { A, B, C } }),
      values)[3]:to_table())
    assert.is_truthy(mod)
    local D = te.extern({}, { B }, function(ins, outs)
      return outs[1]:store(ins[1]:load())
    end, { name = "D" })
    assert.equal(5.0, tir.run(pl.lower(te.create_schedule(D.op), { args = { B, D } }),
      { pl.tensor(5.0), pl.tensor(0.0) })[2]:to_table())
  end)
end)

describe("test_te_tag", function()
  local function convolve(data, weight)
    local N, H, W = data.shape[1], data.shape[3], data.shape[4]
    local ic = te.reduce_axis({ 0, data.shape[2] }, "ic")
    local dh = te.reduce_axis({ 0, weight.shape[3] }, "dh")
    local dw = te.reduce_axis({ 0, weight.shape[4] }, "dw")
    local shape = { N, weight.shape[1], H - weight.shape[3] + 1, W - weight.shape[4] + 1 }
    return te.compute(shape, function(i, oc, h, w)
      return te.sum(data[{ i, ic, h + dh, w + dw }] * weight[{ oc, ic, dh, dw }], { ic, dh, dw })
    end)
  end
  local function tagged(...) return te.tag_scope("conv", convolve, ...) end

  local function tensors()
    local n, c, h, w = te.size_var "n", te.size_var "c", te.size_var "h", te.size_var "w"
    local kh, kw = te.size_var "kh", te.size_var "kw"
    return te.placeholder({ n, c, h, w }, F, "A"), te.placeholder({ c, c, kh, kw }, F, "B")
  end

  it("test_with", function()
    local n, m, l = te.size_var "n", te.size_var "m", te.size_var "l"
    local A, B = te.placeholder({ n, l }, F, "A"), te.placeholder({ m, l }, F, "B")
    local C = te.tag_scope("gemm", function()
      local k = te.reduce_axis({ 0, l }, "k")
      return te.compute({ n, m }, function(i, j) return te.sum(A[{ i, k }] * B[{ j, k }], k) end,
        "C", { attrs = { hello = 1, arr = { 10, 12 } } })
    end)
    assert.equal("gemm", C.op.tag)
    assert.equal(1, C.op.attrs.hello)
    assert.is_nil(C.op.attrs.xx)
    assert.same({ 10, 12 }, C.op.attrs.arr)
  end)

  it("test_decorator", function()
    local C = tagged(tensors())
    assert.equal("conv", C.op.tag)
    assert.is_nil(next(C.op.attrs))
  end)

  it("test_nested", function()
    local A, B = tensors()
    keeps.fails("not nested", te.tag_scope, "conv", function() return tagged(A, B) end)
    assert.equal("conv", tagged(A, B).op.tag) -- the failed scope is closed
  end)
end)

describe("test_te_verify_compute", function()
  it("test_verify_compute", function()
    local n, m = te.size_var "n", te.size_var "m"
    local A = te.placeholder({ n, m }, F, "A")
    local k, other = te.reduce_axis({ 0, m }, "k"), te.reduce_axis({ 0, m - 1 }, "k_")
    local function sum(i, axis) return te.sum(A[{ i, axis }], axis) end
    for _, valid in ipairs {
      function(i) return sum(i, k) end, function(i) return A[{ i, 0 }] + 1 end,
    } do
      assert.equal(1, te.compute({ n }, valid, "B").ndim)
    end
    for _, invalid in ipairs {
      function(i) return sum(i, k) + 1 end,
      function(i) return A[{ i, 0 }] * (sum(i, k) + 1) end,
      function(i) return sum(i, k), A[{ i, 0 }] + 1 end,
      function(i) return sum(i, k), sum(i, other) end,
    } do
      assert.is_false((pcall(te.compute, { n }, invalid, "B")))
    end
  end)
end)
