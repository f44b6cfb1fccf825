-- Behaviour that TVM's tests of te assert, under the names of these tests.

local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F = "float32"

local function fails(message, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(message, tostring(err))
end

local function names_of(axes)
  local names = {}
  for i, axis in ipairs(axes) do names[i] = axis.var.name end
  return names
end

local function blank(shape, level, seed)
  local rows = {}
  for i = 1, shape[level].value do
    if level < #shape then
      rows[i] = blank(shape, level + 1, seed + i)
    else
      rows[i] = ((i * 7 + seed * 5) % 11 - 5) * 1.0
    end
  end
  return rows
end

-- The default and the given schedule compute the same, before and after lowering.
local function keeps(s, args)
  local values = {}
  for i, tensor in ipairs(args) do values[i] = blank(tensor.shape, 1, i) end
  local function run(mod) return tir.run(mod, values)[#args]:to_table() end
  local expected = run(te.create_schedule(args[#args].op):to_module(args, "main"))
  assert.same(expected, run(s:to_module(args, "main")))
  assert.same(expected, run(pl.lower(s, { args = args })))
end

local function elementwise(dims)
  local A = te.placeholder(dims, F, "A")
  local T = te.compute(dims, function(...) return A:load(...) + 1 end, "T")
  return A, T
end

describe("test_te_schedule", function()
  it("test_schedule_create", function()
    local A, B = te.placeholder({ 4, 6 }, F, "A"), te.placeholder({ 5, 6 }, F, "B")
    local AA = te.compute({ 4, 6 }, function(i, j) return A[{ i, j }] end, "AA")
    local T = te.compute({ 4, 5, 6 }, function(i, j, k) return AA[{ i, k }] * B[{ j, k }] end, "T")
    local s = te.create_schedule(T.op)
    s[AA]:set_scope "shared"
    local xo, xi = s[T]:split(T.op.axis[1], 2)
    assert.same({ "i.outer", "i.inner", "j", "k" }, names_of(s[T].leaf_iter_vars))
    local xi1, xi2 = s[T]:split(xi, 2)
    s[AA]:compute_at(s[T], xi1)
    local xo1, xo2 = s[AA]:split(AA.op.axis[1], 3)
    s[AA]:reorder(xo2, xo1)
    assert.equal("shared", s[AA].scope)
    assert.equal("scope", s[AA].attach_type)
    assert.equal(s[T], s[AA].attach_stage)
    assert(xo and xi2)
    keeps(s, { A, B, T })
  end)

  it("test_reorder", function()
    local A, T = elementwise { 6, 6, 6 }
    local s = te.create_schedule(T.op)
    local i, j, k = table.unpack(T.op.axis)
    s[T]:reorder(k, j, i)
    assert.same({ "i2", "i1", "i0" }, names_of(s[T].leaf_iter_vars))
    fails("more than once", function() s[T]:reorder(i, i) end)
    keeps(s, { A, T })
  end)

  it("test_split", function()
    local A, T = elementwise { 7 }
    local s = te.create_schedule(T.op)
    local outer, inner = s[T]:split(T.op.axis[1], 3)
    assert.equal(outer, s[T].leaf_iter_vars[1])
    assert.equal(inner, s[T].leaf_iter_vars[2])
    keeps(s, { A, T })
  end)

  it("test_tile", function()
    local A, T = elementwise { 7, 9 }
    local s = te.create_schedule(T.op)
    local xo, yo, xi, yi = s[T]:tile(T.op.axis[1], T.op.axis[2], 3, 4)
    assert.same({ xo, yo, xi, yi }, s[T].leaf_iter_vars)
    keeps(s, { A, T })
  end)

  it("test_fuse", function()
    local A, T = elementwise { 6, 6 }
    local s = te.create_schedule(T.op)
    local xo, yo = s[T]:tile(T.op.axis[1], T.op.axis[2], 3, 2)
    local fused = s[T]:fuse(xo, yo)
    assert.equal(fused, s[T].leaf_iter_vars[1])
    keeps(s, { A, T })
  end)

  it("test_fuse_with_split", function()
    local A, T = elementwise { 6, 5 }
    local s = te.create_schedule(T.op)
    local y = T.op.axis[2]
    local _, xi = s[T]:split(T.op.axis[1], 3)
    local fused = s[T]:fuse(xi, y)
    assert.equal(fused, s[T].leaf_iter_vars[2])
    keeps(s, { A, T })
  end)

  it("test_fuse_with_out_of_order_axis", function()
    local _, T = elementwise { 6, 6 }
    local s = te.create_schedule(T.op)
    local y = T.op.axis[2]
    local xo = s[T]:split(T.op.axis[1], 3)
    fails("only neighbouring axes can be fused", function() s[T]:fuse(xo, y) end)
  end)

  it("test_fuse_with_out_of_order_axis_with_reorder", function()
    local A, T = elementwise { 6, 6 }
    local s = te.create_schedule(T.op)
    local y = T.op.axis[2]
    local xo, xi = s[T]:split(T.op.axis[1], 3)
    s[T]:reorder(y, xo, xi)
    s[T]:fuse(y, xo)
    keeps(s, { A, T })
    s = te.create_schedule(T.op)
    xo, xi = s[T]:split(T.op.axis[1], 3)
    s[T]:reorder(y, xo, xi)
    fails("only neighbouring axes can be fused", function() s[T]:fuse(y, xi) end)
  end)

  it("test_singleton", function()
    local A, T = elementwise { 1 }
    local s = te.create_schedule(T.op)
    s[T]:fuse()
    assert.same({ "singleton", "i0" }, names_of(s[T].leaf_iter_vars))
    keeps(s, { A, T })
  end)

  it("test_vectorize", function()
    local A, T = elementwise { 8, 8 }
    local s = te.create_schedule(T.op)
    local _, _, xi, yi = s[T]:tile(T.op.axis[1], T.op.axis[2], 4, 2)
    s[T]:vectorize(yi)
    s[T]:unroll(xi)
    assert.matches("T.vectorized%(2%)", tostring(s:to_module({ A, T }, "main")))
    assert.matches("T.unroll%(4%)", tostring(s:to_module({ A, T }, "main")))
    keeps(s, { A, T })
  end)

  it("test_vectorize_commreduce", function()
    local V, k = te.placeholder({ 8 }, F, "V"), te.reduce_axis({ 0, 8 }, "k")
    local R = te.compute({ 1 }, function() return te.sum(V[{ k }], k) end, "R")
    local s = te.create_schedule(R.op)
    fails("carries a dependence", function() s[R]:vectorize(k) end)
  end)

  it("test_pragma", function()
    local A, T = elementwise { 8, 8 }
    local s = te.create_schedule(T.op)
    local _, _, xi, yi = s[T]:tile(T.op.axis[1], T.op.axis[2], 4, 2)
    s[T]:pragma(xi, "pragma1")
    s[T]:pragma(yi, "vectorize")
    local text = tostring(s:to_module({ A, T }, "main"))
    assert.matches("pragma_pragma1", text)
    assert.matches("T.vectorized", text)
  end)

  it("test_rfactor", function()
    local A, k = te.placeholder({ 12, 5 }, F, "A"), te.reduce_axis({ 0, 12 }, "k")
    local B = te.compute({ 5 }, function(i) return te.sum(A[{ k, i }], k) end, "B")
    for at = 0, 1 do
      local s = te.create_schedule(B.op)
      local ko, ki = s[B]:split(k, 4)
      local BF = s:rfactor(B, at == 0 and ki or ko, at)
      assert.equal(2, BF.ndim)
      assert.equal(at == 0 and 4 or 3, BF.shape[at + 1].value)
      keeps(s, { A, B })
    end
  end)

  it("test_tensor_intrin", function()
    local x = te.placeholder({ 4 }, F, "x")
    local y = te.placeholder({ 4 }, F, "y")
    local z = te.compute({ 4 }, function(i) return x[{ i }] + y[{ i }] end, "z")
    local intrin = te.decl_tensor_intrin(z.op, function(ins, outs)
      assert.equal("x", ins[1].name)
      assert.equal(4, ins[2].shape[1].value)
      return tir.call_packed("vadd", ins[1].data, outs[1].data, ins[1].shape[1])
    end)
    assert.equal(z.op, intrin.op)
    assert.is_nil(intrin.reduce_init)
    assert.same({ x, y }, intrin.inputs)
    assert.matches("call_packed", tostring(intrin.body))
    local s = te.create_schedule(z.op)
    s[z]:tensorize(z.op.axis[1], intrin)
    assert.matches("tensorize z", tostring(s))
  end)

  it("test_legalize_invalid_attach", function()
    local A = te.compute({ 10, 10 }, function(i, j) return tir.Cast(F, i + j) end, "A")
    local B = te.compute({ 10, 10 }, function(i, j) return A[{ i, j }] end, "B")
    local s = te.create_schedule(B.op)
    s[A]:compute_at(s[B], B.op.axis[2])
    s[B]:split(B.op.axis[2], 2)
    assert.matches("j_outer, j_inner", tostring(s:to_module({ B }, "main")))
    s = te.create_schedule(B.op)
    s[A]:compute_at(s[B], B.op.axis[2])
    s[B]:fuse(B.op.axis[1], B.op.axis[2])
    assert.matches("i_j_fused", tostring(s:to_module({ B }, "main")))
  end)

  it("test_compute_at", function()
    local A, B = elementwise { 8, 4 }
    local C = te.compute({ 8, 4 }, function(i, j) return B[{ i, j }] * 2 end, "C")
    local s = te.create_schedule(C.op)
    s[B]:compute_at(s[C], C.op.axis[1])
    assert.equal(C.op.axis[1].var, s[B].attach_ivar.var)
    keeps(s, { A, C })
    s[B]:compute_root()
    assert.equal("group_root", s[B].attach_type)
    fails("not part of", function() s[B]:compute_at(s[C], B.op.axis[1]) end)
  end)
end)
