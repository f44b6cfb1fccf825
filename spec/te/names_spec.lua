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

describe("test_te_schedule_ops", function()
  local function chain(n)
    local A = te.placeholder({ n }, F, "A")
    local B = te.compute({ n }, function(i) return A[{ i }] + 1 end, "B")
    local C = te.compute({ n }, function(i) return B[{ i }] * 2 end, "C")
    return A, B, C
  end

  it("test_schedule0, test_schedule1, test_schedule2", function()
    local A, B, C = chain(12)
    keeps(te.create_schedule(C.op), { A, C })
    local s = te.create_schedule(C.op)
    local outer = s[C]:split(C.op.axis[1], 5)
    keeps(s, { A, C })
    s[B]:compute_at(s[C], outer)
    keeps(s, { A, C })
  end)

  it("test_schedule_scan", function()
    local m, n = 6, 4
    local x = te.placeholder({ m, n }, F, "x")
    local state = te.placeholder({ m, n }, F, "state")
    local first = te.compute({ 1, n }, function(_, i) return x[{ 0, i }] end, "first")
    local next_ = te.compute({ m, n }, function(t, i)
      return state[{ t - 1, i }] + x[{ t, i }]
    end, "next")
    local sums = te.scan(first, next_, state)
    local s = te.create_schedule(sums.op)
    local outer, inner = s[next_]:split(next_.op.axis[2], 3)
    assert.equal("scan_update", s[next_].group.attach_type)
    assert(outer and inner)
    keeps(s, { x, sums })
  end)

  it("test_inline, test_inline_multi_reduce, test_inline_mixed", function()
    local A, B, C = chain(10)
    local s = te.create_schedule(C.op)
    s[B]:compute_inline()
    assert.is_nil(tostring(s:to_module({ A, C }, "main")):find("B = ", 1, true))
    keeps(s, { A, C })
    s = te.create_schedule(C.op)
    s[B]:compute_inline()
    local outer, inner = s[C]:split(C.op.axis[1], 4)
    local cache = s:cache_read(A, "local", { B })
    s[cache]:compute_at(s[C], outer)
    assert(inner)
    keeps(s, { A, C })
    local x, k = te.placeholder({ 3, 4 }, F, "x"), te.reduce_axis({ 0, 4 }, "k")
    local shifted = te.compute({ 3, 4 }, function(i, j) return x[{ i, j }] - 1 end, "shifted")
    local total = te.compute({ 3 }, function(i) return te.sum(shifted[{ i, k }], k) end, "total")
    s = te.create_schedule(total.op)
    s[shifted]:compute_inline()
    keeps(s, { x, total })
  end)

  it("test_auto_inline", function()
    -- A product of a sum: stages without reductions are inlined by hand here.
    local A, B, C = chain(6)
    local D = te.compute({ 6 }, function(i) return C[{ i }] + B[{ i }] end, "D")
    local s = te.create_schedule(D.op)
    s[B]:compute_inline()
    s[C]:compute_inline()
    assert.equal(1, select(2, tostring(s:to_module({ A, D }, "main")):gsub("for ", "")))
    keeps(s, { A, D })
  end)

  it("test_schedule_const_bound", function()
    local A, B = elementwise { 128 }
    local s = te.create_schedule(B.op)
    s[B]:split(B.op.axis[1], 32)
    local text = tostring(s:to_module({ A, B }, "main"))
    assert.is_nil(text:find("likely", 1, true))
    keeps(s, { A, B })
  end)

  it("test_schedule_cache, test_schedule_cache_relayout1", function()
    local A, B, C = chain(12)
    local s = te.create_schedule(C.op)
    local AA = s:cache_read(A, "shared", { B })
    local CC = s:cache_write(C, "local")
    s[CC]:compute_at(s[C], s[C].op.axis[1])
    assert.equal("A.shared", AA.op.name)
    assert.equal("C.local", CC.op.name)
    keeps(s, { A, C })
    local x = te.placeholder({ 4, 6 }, F, "x")
    local y = te.compute({ 4, 6 }, function(i, j) return x[{ i, j }] * 3 end, "y")
    s = te.create_schedule(y.op)
    s[y]:reorder(y.op.axis[2], y.op.axis[1])
    local cache = s:cache_write(y, "local")
    assert.same({ 6, 4 }, { cache.shape[1].value, cache.shape[2].value })
    keeps(s, { x, y })
  end)

  it("test_schedule_cache_relayout2, test_schedule_cache_relayout3", function()
    local x = te.placeholder({ 16, 4 }, F, "x")
    local y = te.compute({ 16, 4 }, function(i, j) return x[{ i, j }] * 3 end, "y")
    local s = te.create_schedule(y.op)
    local outer, inner = s[y]:split(y.op.axis[1], 8)
    s[y]:reorder(outer, y.op.axis[2], inner)
    local cache = s:cache_write(y, "local")
    assert.equal(3, cache.ndim)
    keeps(s, { x, y })
    local k = te.reduce_axis({ 0, 4 }, "k")
    local z = te.compute({ 16 }, function(i) return te.sum(x[{ i, k }], k) end, "z")
    s = te.create_schedule(z.op)
    s[z]:split(z.op.axis[1], 8)
    cache = s:cache_write(z, "local")
    assert.equal(1, #s[cache].op.reduce_axis)
    keeps(s, { x, z })
  end)

  it("test_local_stage_predicate", function()
    local A, B, C = chain(13)
    local s = te.create_schedule(C.op)
    local outer, inner = s[C]:split(C.op.axis[1], 4)
    s[B]:compute_at(s[C], outer)
    s[B]:set_scope "local"
    assert(inner)
    keeps(s, { A, C })
  end)

  it("test_loop_dep_reduce, test_loop_dep_reduce_cache_write", function()
    for _, cached in ipairs { false, true } do
      local A = te.placeholder({ 8 }, F, "A")
      local B = te.compute({ 6 }, function(i)
        local k = te.reduce_axis({ i, i + 3 }, "k")
        return te.sum(A[{ k }], k)
      end, "B")
      local s = te.create_schedule(B.op)
      if cached then s:cache_write(B, "local") end
      keeps(s, { A, B })
    end
  end)

  it("test_reduction_and_dummy_fuse_split", function()
    for _, n in ipairs { 1, 10 } do
      local A, k = te.placeholder({ n, 7 }, F, "A"), te.reduce_axis({ 0, 7 }, "k")
      local B = te.compute({ n }, function(i) return te.sum(A[{ i, k }], k) end, "B")
      local s = te.create_schedule(B.op)
      s[B]:fuse()
      local outer, inner = s[B]:split(s[B]:fuse(B.op.axis[1]), { nparts = 4 })
      assert(outer and inner)
      keeps(s, { A, B })
    end
  end)

  it("test_schedule_compute_inline", function()
    local A, B = elementwise { 10, 10 }
    local C = te.compute({ 10, 10 }, function(i, j) return B[{ i, j }] + 1 end, "C")
    local s = te.create_schedule(C.op)
    s[B]:compute_inline()
    keeps(s, { A, C })
    local P, Q = te.compute({ 4 }, function(i) return A[{ i, 0 }], A[{ i, 1 }] end, "P")
    local R = te.compute({ 4 }, function(i) return P[{ i }] + Q[{ i }] end, "R")
    s = te.create_schedule(R.op)
    fails("output", function() s[P]:compute_inline() end)
  end)
end)

describe("test_te_schedule_bound_inference", function()
  local function extents(s, tensor)
    local found = {}
    local bounds = s:infer_bound()
    for i, axis in ipairs(tensor.op.axis) do found[i] = tostring(bounds(axis).extent) end
    return found
  end

  it("test_bound1, test_bound2, test_bound_warp", function()
    local A = te.placeholder({ 40, 30 }, F, "A")
    local A1 = te.compute({ 40, 30 }, function(i, j) return A[{ i, j }] + 0 end, "A1")
    local A2 = te.compute({ 40, 30 }, function(i, j) return A1[{ i, j }] + 3 end, "A2")
    local s = te.create_schedule(A2.op)
    local xo = s[A2]:split(s[A2].op.axis[1], 8)
    s[A1]:compute_at(s[A2], xo)
    assert.same({ "8", "30" }, extents(s, A1))
    s = te.create_schedule(A2.op)
    local _, yo = s[A2]:tile(A2.op.axis[1], A2.op.axis[2], 8, 5)
    s[A1]:compute_at(s[A2], yo)
    assert.same({ "8", "5" }, extents(s, A1))
    keeps(s, { A, A2 })
  end)

  it("test_bound_conv1d, test_bound_blur", function()
    local A = te.placeholder({ 12 }, F, "A")
    local function computeB(i)
      return A[{ i }] + A[{ i + 1 }] + A[{ i + 2 }]
    end
    local B = te.compute({ 10 }, computeB, "B")
    local C = te.compute({ 8 }, function(i) return B[{ i }] + B[{ i + 1 }] + B[{ i + 2 }] end, "C")
    local s = te.create_schedule(C.op)
    local outer = s[C]:split(C.op.axis[1], 4)
    s[B]:compute_at(s[C], outer)
    assert.same({ "6" }, extents(s, B))
    keeps(s, { A, C })
  end)

  it("test_bound_fusesplit1, test_bound_fusesplit2, test_bound_fusesplit3", function()
    local A = te.placeholder({ 6, 8 }, F, "A")
    local A1 = te.compute({ 6, 8 }, function(i, j) return A[{ i, j }] end, "A1")
    local A2 = te.compute({ 6, 8 }, function(i, j) return A1[{ i, j }] + 3 end, "A2")
    for _, factor in ipairs { 1, 3, 4, 8, 12, 16 } do
      local s = te.create_schedule(A2.op)
      local fused = s[A2]:fuse(A2.op.axis[1], A2.op.axis[2])
      local outer = s[A2]:split(fused, factor)
      s[A1]:compute_at(s[A2], outer)
      keeps(s, { A, A2 })
    end
  end)

  it("test_bound_nest_group, test_bound_group_schedule", function()
    local x = te.placeholder({ 8, 6 }, F, "x")
    local x1 = te.compute({ 8, 6 }, function(i, j) return x[{ i, j }] + 1 end, "x1")
    local x2 = te.compute({ 8, 6 }, function(i, j) return x1[{ i, j }] * 2 end, "x2")
    local x3 = te.compute({ 8, 6 }, function(i, j) return x2[{ i, j }] - 3 end, "x3")
    local s = te.create_schedule(x3.op)
    local g = s:create_group(x2, x, true)
    g:compute_at(s[x3], x3.op.axis[1])
    assert.same({ "1", "6" }, extents(s, x1))
    keeps(s, { x, x3 })
  end)

  it("test_bound_rfactor", function()
    local A, k = te.placeholder({ 12 }, F, "A"), te.reduce_axis({ 0, 12 }, "k")
    local B = te.compute({ 1 }, function() return te.sum(A[{ k }], k) end, "B")
    local s = te.create_schedule(B.op)
    local _, ki = s[B]:split(k, 4)
    local BF = s:rfactor(B, ki)
    assert.same({ "4", "1" }, extents(s, BF))
    keeps(s, { A, B })
  end)

  it("test_bound_simplification_failure, test_bound_block", function()
    local A = te.compute({ 2 }, function(i) return tir.Cast(F, i) end, "A")
    for _, index in ipairs {
      function(i) return te.floordiv(2 * i, 2) end, function(i) return te.floormod(i + 1, 2) end,
      function(i) return te.max(i - 1, 0) end,
    } do
      local B = te.compute({ 2 }, function(i) return A[{ index(i) }] end, "B")
      local s = te.create_schedule(B.op)
      s[A]:compute_at(s[B], B.op.axis[1])
      keeps(s, { B })
    end
  end)
end)

describe("a stage that is attached to one before it", function()
  it("is refused", function()
    local A = te.placeholder({ 4 }, F, "A")
    local B = te.compute({ 4 }, function(i) return A[{ i }] + 1 end, "B")
    local C = te.compute({ 4 }, function(i) return A[{ i }] * 2 end, "C")
    local D = te.compute({ 4 }, function(i) return B[{ i }] + C[{ i }] end, "D")
    local s = te.create_schedule(D.op)
    s[B]:compute_at(s[D], D.op.axis[1])
    s[C]:compute_at(s[B], B.op.axis[1])
    fails("did not find the attachment point of stage 'C'", s.to_module, s, { A, D }, "main")
  end)
end)
