-- Tensors that an intrinsic computes block by block (TVM's TensorComputeOp), and the tests of TVM's
-- that have them.

local pl = require "perilune"
local shared = require "spec.te.keeps"

local te, tir = pl.te, pl.tir
local F = "float32"
local fails, names_of = shared.fails, shared.names_of
local range = tir.Range

local function extern(name, ...)
  local args = { ... }
  for i, buffer in ipairs(args) do
    args[i] = buffer:access_ptr(i == 1 and "rw" or "r")
  end
  return tir.call_extern("int32", name, table.unpack(args))
end

local function vadd_of(n)
  local x, y = te.placeholder({ n }, F, "x"), te.placeholder({ n }, F, "y")
  local z = te.compute({ n }, function(i) return x[{ i }] + y[{ i }] end, "z")
  return te.decl_tensor_intrin(z.op, function(ins, outs)
    return extern("vadd", outs[1], ins[1], ins[2])
  end, { name = "vadd", default_buffer_params = { offset_factor = n } })
end

-- Matrices of m x l and n x l: m x n.
local function gemm_of(m, n, l)
  local x, y = te.placeholder({ m, l }, F, "x"), te.placeholder({ n, l }, F, "y")
  local k = te.reduce_axis({ 0, l }, "k")
  local z = te.compute({ m, n }, function(i, j)
    return te.sum(x[{ i, k }] * y[{ j, k }], k)
  end, "z")
  return te.decl_tensor_intrin(z.op, function(ins, outs)
    return extern("gemm", outs[1], ins[1], ins[2]), extern("reset", outs[1]),
      extern("gemm_add", outs[1], ins[1], ins[2])
  end, { name = "gemm" })
end

local function vadd_program(rows)
  local vadd = vadd_of(16)
  local A, B = te.placeholder({ rows, 16 }, F, "A"), te.placeholder({ rows, 16 }, F, "B")
  local C = te.compute({ rows, 16 }, function(i)
    return vadd(A[{ i, range(0, 16) }], B[{ i, range(0, 16) }])
  end, "C")
  return { args = { A, B, C }, C = C, vadd = vadd, A = A }
end

-- C[i, j] is a block of 4 x 4, a sum over k of products of blocks.
local function gemm_program()
  local gemm = gemm_of(4, 4, 8)
  local A, B = te.placeholder({ 6, 5, 4, 8 }, F, "A"), te.placeholder({ 7, 5, 4, 8 }, F, "B")
  local k = te.reduce_axis({ 0, 5 }, "k")
  local C = te.compute({ 6, 7, 4, 4 }, function(i, j)
    return gemm(A[{ i, k, range(0, 4), range(0, 8) }], B[{ j, k, range(0, 4), range(0, 8) }],
      { reduce_axis = k })
  end, "C")
  return { args = { A, B, C }, C = C, k = k }
end

local function text(s, p) return tostring(s:to_module(p.args)) end

local function count(found, pattern) return select(2, found:gsub(pattern, "")) end

describe("test_te_tensor", function()
  it("test_tensor_compute1", function()
    local p = vadd_program(64)
    assert.equal("TensorComputeOp", p.C.op.kind)
    local found = tostring(pl.lower(te.create_schedule(p.C.op):to_module(p.args)))
    assert.equal(1, count(found, "call_extern%(\"int32\", \"vadd\""))
    assert.equal(0, count(found, "%+ B"))
    local one = vadd_program(1)
    found = tostring(pl.lower(te.create_schedule(one.C.op):to_module(one.args)))
    assert.equal(0, count(found, "for ")) -- an Evaluate alone
  end)

  it("test_tensor_compute2", function()
    local p = gemm_program()
    local found = tostring(pl.lower(te.create_schedule(p.C.op):to_module(p.args)))
    assert.matches("reset.-for k in range%(5%).-gemm_add", found)
  end)
end)

describe("test_te_schedule_ops", function()
  it("test_schedule_tensor_compute1", function()
    local p = gemm_program()
    local s = te.create_schedule(p.C.op)
    local i, j = table.unpack(p.C.op.axis)
    assert.same({ "i", "j" }, names_of(p.C.op.axis))
    assert.same({ "k" }, names_of(p.C.op.reduce_axis))
    local io, ii = s[p.C]:split(i, 2)
    local jo, ji = s[p.C]:split(j, 2)
    s[p.C]:reorder(io, jo, p.k, ji, ii)
    local found = text(s, p)
    assert.matches("reset", found)
    assert.matches("likely", found)
    assert.equal(1, count(found, "gemm_add"))
  end)

  it("test_schedule_tensor_compute2", function()
    local p = gemm_program()
    local s = te.create_schedule(p.C.op)
    local xo, yo, xi, yi = s[p.C]:tile(p.C.op.axis[1], p.C.op.axis[2], 3, 7)
    local fused = s[p.C]:fuse(xo, yo)
    local ko, ki = s[p.C]:split(p.k, 5)
    s[p.C]:reorder(fused, ko, ki, xi, yi)
    assert.matches("gemm_add", text(s, p))
  end)

  it("keeps the intrinsic in a cache of what it computes, with its reductions", function()
    local p = gemm_program()
    local s = te.create_schedule(p.C.op)
    local AL, CL = s:cache_read(p.args[1], "local", { p.C }), s:cache_write(p.C, "local")
    s[AL]:compute_at(s[CL], s[CL].op.axis[1])
    s[CL]:compute_at(s[p.C], p.C.op.axis[2])
    local found = text(s, p)
    assert.matches("reset.-for k in range%(5%).-A_local%].-gemm_add.-C%[i, j, ax2, ax3%] = "
      .. "C_local%[i, j, ax2, ax3%]", found)
    assert.equal(1, count(found, "gemm_add"))
  end)

  it("test_schedule_tensor_compute2, with caches of vectors", function()
    local p = vadd_program(64)
    local s = te.create_schedule(p.C.op)
    local AL, BL = s:cache_read(p.A, "local", { p.C }), s:cache_read(p.args[2], "local", { p.C })
    local CL = s:cache_write(p.C, "local")
    for _, stage in ipairs { AL, BL, CL } do s[stage]:compute_at(s[p.C], p.C.op.axis[1]) end
    local found = text(s, p)
    assert.matches("T.realize%(A_local%[i:i %+ 1, 0:16%]%)", found)
    assert.matches("z, C_local%], \"buffer_bind_scope\".-vadd.-C%[i, ax1%] = C_local%[i, ax1%]",
      found)
    assert.equal(1, count(found, "\"vadd\""))
  end)

  it("test_schedule_tensor_compute3", function()
    local p = vadd_program(64)
    local D = te.compute({ 64, 16 }, function(i, j) return p.C[{ i, j }] * 2.0 end, "D")
    local s = te.create_schedule(D.op)
    s[p.C]:compute_at(s[D], D.op.axis[1])
    p.args = { p.args[1], p.args[2], D }
    local found = text(s, p)
    assert.matches("T.realize%(C%[i:i %+ 1, 0:16%]%)", found)
    assert.matches("vadd", found)
  end)
end)

describe("test_te_schedule", function()
  it("test_tensor_intrin_scalar_params", function()
    local n, v, w = te.size_var "n", te.size_var "v", te.size_var "w"
    local x = te.placeholder({ n }, F, "x")
    local z = te.compute({ n }, function(i) return x[{ i }] * v + w end, "z")
    local intrin = te.decl_tensor_intrin(z.op, function(ins, outs, sp)
      assert.equal(n, ins[1].shape[1])
      assert.equal(v, sp[1])
      assert.equal(w, sp[2])
      return tir.call_packed("hw_func", ins[1].data, outs[1].data, sp[1], sp[2])
    end, { scalar_params = { v, w }, default_buffer_params = { offset_factor = 1 } })
    assert.equal(z.op, intrin.op)
    assert.is_nil(intrin.reduce_init)
    assert.same({ x }, intrin.inputs)
    assert.equal(n, intrin.buffers[1].shape[1])
    assert.same({ v, w }, intrin.scalar_params)

    local A = te.placeholder({ 10, 10 }, F, "A")
    local C = te.compute({ 10, 10 }, function(i, j)
      return intrin(i * i, A[{ i, j }], i + j)
    end, "C")
    local s = te.create_schedule(C.op)
    local found = tostring(pl.lower(s:to_module { A, C }))
    assert.matches("for i, j in T.grid%(10, 10%):%s+"
      .. "T.call_packed%(\"hw_func\", A.data, C.data, i %* i, i %+ j%)$", found)
    local _, inner = s[C]:split(C.op.axis[1], 4)
    assert(inner)
    assert.matches("%(i_outer %* 4 %+ i_inner%) %* %(i_outer %* 4 %+ i_inner%)",
      tostring(s:to_module { A, C }))
  end)
end)

describe("test_te_schedule_bound_inference", function()
  it("test_bound_tensor_compute_op", function()
    local m1, n1 = te.var "m1", te.var "n1"
    local a = te.placeholder({ m1, n1 }, F, "a")
    local c = te.compute({ 1, n1 }, function(_, j)
      return a[{ 0, j }] + a[{ 1, j }] + a[{ 2, j }]
    end, "c")
    local test = te.decl_tensor_intrin(c.op, function(ins, outs)
      return extern("test", outs[1], ins[1])
    end, { binds = { [a] = tir.decl_buffer(a.shape, F, "Abuf", { offset_factor = 1 }),
      [c] = tir.decl_buffer(c.shape, F, "Cbuf", { offset_factor = 1 }) } })
    local A = te.placeholder({ 20, 20 }, F, "A")
    local B = te.compute({ 20, 20 }, function(i, j) return A[{ i, j }] end, "B")
    local C = te.compute({ 10, 20 }, function(i)
      return test(B[{ range(i, 10), range(0, 20) }])
    end, "C")
    local s = te.create_schedule(C.op)
    assert.equal(10, s:infer_bound()(B.op.axis[1]).extent.value)
    local found = tostring(s:to_module { A, C })
    assert.matches("T.tvm_tuple%(i, 10 %- i, 0, 20%)", found)
    assert.matches("extern", tostring(pl.lower(s:to_module { A, C })))
  end)
end)

describe("test_te_schedule_tensorize", function()
  it("test_tensorize_tensor_compute_op", function()
    local function strided(name)
      local stride = te.var("n_" .. name)
      return tir.decl_buffer({ 64 }, F, name, { strides = { stride } }), stride
    end
    local Ab, n_a = strided "a"
    local Bb, n_b = strided "b"
    local Cb, n_c = strided "c"
    local z = te.compute({ 64 }, function(i)
      return tir.call_extern(F, "vadd", Ab:access_ptr("w", { offset = i * n_a }),
        Bb:access_ptr("r", { offset = i * n_b }), Cb:access_ptr("r", { offset = i * n_c }))
    end, "z")
    local multivadd = te.decl_tensor_intrin(z.op, function()
      return tir.call_packed "multivadd"
    end, { name = "multivadd" })
    local p = vadd_program(64)
    local s = te.create_schedule(p.C.op)
    s[p.C]:tensorize(p.C.op.axis[1], multivadd)
    local found = text(s, p)
    assert.matches("for i in range%(64%).-vadd", found)
    assert.is_nil(found:find("multivadd", 1, true))
  end)
end)

describe("te.compute of an intrinsic", function()
  it("has parts of one tensor, and scalars of any dtype, of loops that are split", function()
    local x, y = te.placeholder({ 4 }, F, "x"), te.placeholder({ 4 }, F, "y")
    local a, b = tir.Var("a", F), tir.Var("b", "int32")
    local z = te.compute({ 4 }, function(i)
      return x[{ i }] * a + y[{ i }] * tir.Cast(F, b)
    end, "z")
    local mix = te.decl_tensor_intrin(z.op, function(ins, outs, sp)
      local i = tir.Var "i"
      return tir.For(i, 0, 4, "serial", outs[1]:store(ins[1]:load(i) * sp[1]
        + ins[2]:load(i) * tir.Cast(F, sp[2]), i))
    end, { name = "mix", scalar_params = { a, b } })
    local A = te.placeholder({ 6, 4 }, F, "A")
    local C = te.compute({ 6, 4 }, function(i)
      return mix(A[{ i, range(0, 4) }], 0.5, A[{ 5 - i, range(0, 4) }], i * 2)
    end, "C")
    local rows, wanted = {}, {}
    for i = 1, 6 do
      rows[i] = {}
      for j = 1, 4 do rows[i][j] = i * 10.0 + j end
    end
    for i = 1, 6 do
      wanted[i] = {}
      for j = 1, 4 do wanted[i][j] = rows[i][j] * 0.5 + rows[7 - i][j] * (i - 1) * 2 end
    end
    local function check(change)
      local s = te.create_schedule(C.op)
      change(s)
      local found = tostring(s:to_module { A, C })
      assert.equal(1, count(found, "b: T.int32 = "), found)
      local result = tir.run(pl.lower(s:to_module { A, C }),
        { rows, pl.tensor.full(0, { 6, 4 }, F) })[2]:to_table()
      assert.same(wanted, result)
    end
    check(function() end)
    check(function(s) s[C]:split(C.op.axis[1], 2) end)
    check(function(s) s[C]:split(C.op.axis[1], 4) end)
    check(function(s) s:cache_read(A, "global", { C }) end)
    check(function(s) s:cache_write(C, "global") end)
    check(function(s)
      s[C]:split(C.op.axis[1], 3)
      local cache = s:cache_write(C, "global")
      s[cache]:compute_at(s[C], s[C].op.axis[1])
    end)
  end)

  it("reads memory and writes it, so that it is not inlined nor what it reads", function()
    local p = vadd_program(8)
    local D = te.compute({ 8, 16 }, function(i, j) return p.C[{ i, j }] * 2 end, "D")
    local s = te.create_schedule(D.op)
    fails("not the call of an intrinsic", function() s[p.C]:compute_inline() end)
    local g = gemm_program()
    fails("not the call of an intrinsic", function()
      local t = te.create_schedule(g.C.op)
      t:rfactor(g.C, g.k)
    end)
    local vadd, A = vadd_of(16), te.placeholder({ 8, 16 }, F, "A")
    local E = te.compute({ 8, 16 }, function(i, j) return A[{ i, j }] + 1 end, "E")
    local H = te.compute({ 8, 16 }, function(i)
      return vadd(A[{ i, range(0, 16) }], E[{ i, range(0, 16) }])
    end, "H")
    local t = te.create_schedule(H.op)
    t[E]:compute_inline()
    fails("stage 'E' is inlined, but 'H' reads it from memory", function()
      t:to_module { A, H }
    end)
  end)

  it("has its loops tensorized by steps that the schedule begins with", function()
    local p = gemm_program()
    local s = te.create_schedule(p.C.op)
    assert.equal(2, s:n_steps())
    assert.matches("reorder.-tensorize C: \"gemm\"", tostring(s))
    fails("those of intrinsics in te.compute", function() s:undo() end)
    s[p.C]:split(p.C.op.axis[1], 2)
    local again = te.create_schedule(p.C.op)
    again:apply_json(s:to_json())
    assert.equal(s, again)
    assert.equal(text(s, p), text(again, p))
    s:undo()
    assert.equal(2, s:n_steps())
    fails("step 1 is not that of the intrinsic", function() again:apply_json "[]" end)
  end)

  it("takes parts that begin anywhere, and axes of one element", function()
    local vadd = vadd_of(4)
    local A, B = te.placeholder({ 20 }, F, "A"), te.placeholder({ 8, 5, 4 }, F, "B")
    local C = te.compute({ 5, 4 }, function(i)
      return vadd(A[{ range(i * 3 + 2, i * 3 + 6) }], B[{ 7, range(i, i + 1), range(0, 4) }])
    end, "C")
    local s = te.create_schedule(C.op)
    local found = tostring(s:to_module { A, B, C })
    assert.matches("%[x, A%], \"buffer_bind_scope\", T.tvm_tuple%(i %* 3 %+ 2, 4%)", found)
    assert.matches("T.tvm_tuple%(7, 1, i, 1, 0, 4%)", found)
  end)

  it("computes what its expression says", function()
    local x, y = te.placeholder({ 4 }, F, "x"), te.placeholder({ 4 }, F, "y")
    local z = te.compute({ 4 }, function(i) return x[{ i }] * y[{ i }] end, "z")
    local mul = te.decl_tensor_intrin(z.op, function(ins, outs)
      local i = tir.Var "i"
      return tir.For(i, 0, 4, "serial",
        tir.BufferStore(outs[1], ins[1]:load(i) * ins[2]:load(i), { i }))
    end, { name = "mul" })
    local A, B = te.placeholder({ 3, 4 }, F, "A"), te.placeholder({ 3, 4 }, F, "B")
    local C = te.compute({ 3, 4 }, function(i)
      return mul(A[{ i, range(0, 4) }], B[{ 2 - i, range(0, 4) }])
    end, "C")
    local mod = te.create_schedule(C.op):to_module { A, B, C }
    local rows = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }
    local values = { rows, rows, pl.tensor.full(0, { 3, 4 }, F) }
    local result = tir.run(pl.lower(mod), values)[3]:to_table()
    for i = 1, 3 do
      for j = 1, 4 do assert.equal(rows[i][j] * rows[4 - i][j], result[i][j]) end
    end
  end)

  it("tells what does not fit", function()
    local vadd, p = vadd_of(16), vadd_program(8)
    local A, B = p.A, te.placeholder({ 8, 16 }, F, "B")
    local k = te.reduce_axis({ 0, 4 }, "k")
    local function part(n) return A[{ 0, range(0, n) }] end
    local function other(n) return B[{ 0, range(0, n) }] end
    local function refused(message, shape, f)
      fails(message, function() te.compute(shape, f, "C") end)
    end
    refused("2 parts of tensors are expected, got 1", { 4, 16 },
      function(_) return vadd(part(16)) end)
    refused("dimension 1 of 'x' is 16, the region of 'A' has 8", { 4, 16 },
      function(_) return vadd(part(8), other(16)) end)
    refused("it computes 1 dimensions, the function leaves 2 of the shape", { 4, 2, 16 },
      function(_) return vadd(part(16), other(16)) end)
    refused("dimension 1 of the shape is 8, it computes 16", { 4, 8 },
      function(_) return vadd(part(16), other(16)) end)
    refused("it does not reduce, so that it has no reduce_axis", { 4, 16 },
      function(_) return vadd(part(16), other(16), { reduce_axis = k }) end)
    refused("vadd: argument 1 must be a part of a tensor", { 4, 16 },
      function(_) return vadd(A, part(16)) end)
    refused("index 1 of 'A' must be one element", { 4, 16 },
      function(_) return vadd(A[{ range(0, 2), range(0, 16) }], part(16)) end)
    refused("the function has 1 parameters, the shape 2 dimensions", { 4, 16 },
      function(i) return A[{ i, 0 }] end)
    refused("0 scalar parameters are expected, got 1", { 4, 16 },
      function(_) return vadd(part(16), other(16), 3) end)
    refused("argument 3: a scalar parameter cannot read a tensor", { 4, 16 },
      function(i) return vadd(part(16), other(16), A[{ i, 0 }] + 1) end)
    local x = te.placeholder({ 4 }, F, "x")
    local z = te.compute({ 4 }, function(i) return x[{ i }] end, "z")
    fails("scalar_params: a list of Vars is expected", function()
      te.decl_tensor_intrin(z.op, function() return tir.call_packed "f" end,
        { scalar_params = { 3 } })
    end)
    fails("reduce_axis: an IterVar is expected", function()
      vadd(part(16), { reduce_axis = { 3 } })
    end)
  end)
end)
