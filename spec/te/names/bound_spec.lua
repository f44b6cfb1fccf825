-- TVM's test_te_schedule_bound_inference.py and test_te_schedule_bound_inference_tiling.py: the
-- tests that ../names_spec.lua does not have.

local pl = require "perilune"
local keeps = require "spec.te.keeps"

local te = pl.te
local F = "float32"

local function chain(shape)
  local A = te.placeholder(shape, F, "A")
  local A1 = te.compute(shape, function(...) return A:load(...) * 2 end, "A1")
  local A2 = te.compute(shape, function(...) return A1:load(...) + 3 end, "A2")
  return A, A1, A2, te.create_schedule(A2.op)
end

-- The inferred extent of an axis, as text.
local function extent(s, axis) return tostring(s:infer_bound()(axis).extent) end

describe("test_te_schedule_bound_inference", function()
  it("test_bound3", function()
    local m, l = te.var "m", te.var "l"
    local _, A1, A2, s = chain { m, l }
    s[A1]:set_scope "shared"
    local xo, xi = s[A2]:split(A2.op.axis[1], 32)
    local xi0, xi1 = s[A2]:split(xi, { nparts = 16 })
    s[A2]:bind(xi0, te.thread_axis "threadIdx.x")
    local yo, yi = s[A2]:split(A2.op.axis[2], 16)
    s[A2]:reorder(xo, xi0, yo, xi1, yi)
    s[A1]:compute_at(s[A2], yo)
    assert.same({ "32", "16" }, keeps.extents(s, A1))
  end)

  it("test_bound_split_ext_less_than_factor, test_bound_split_ext_less_than_naprts", function()
    for _, by in ipairs { "factor", "nparts" } do
      local A, A1, A2, s = chain { 8 }
      local xo, xi = s[A2]:split(A2.op.axis[1], { [by] = 32 })
      s[A1]:compute_at(s[A2], xo)
      assert.equal("8", extent(s, by == "factor" and xi or xo))
      keeps.same(s, { A, A2 })
    end
  end)

  it("test_bound_split_divisible", function()
    local m, l = te.var "m", te.var "l"
    local A = te.placeholder({ 8 * m, l }, F, "A")
    local B = te.compute({ 8 * m, l }, function(i, j) return A[{ i, j }] end, "B")
    local s = te.create_schedule(B.op)
    local xo, xi = s[B]:split(B.op.axis[1], 8)
    assert.equal("m", extent(s, xo))
    assert.equal("8", extent(s, xi))
    assert.is_nil(tostring(s:to_module({ A, B }, "main")):find("likely", 1, true))
  end)

  it("test_bound_tile_divisible", function()
    local m, l = te.var "m", te.var "l"
    local A = te.placeholder({ 8 * m, 32 * l }, F, "A")
    local B = te.compute({ 8 * m, 32 * l }, function(i, j) return A[{ i, j }] end, "B")
    local s = te.create_schedule(B.op)
    local xo, yo, xi, yi = s[B]:tile(B.op.axis[1], B.op.axis[2], 8, 32)
    local found = {}
    for i, axis in ipairs { xo, xi, yo, yi } do found[i] = extent(s, axis) end
    assert.same({ "m", "8", "l", "32" }, found)
  end)

  it("test_bound_warp", function()
    local m, l = te.var "m", te.var "l"
    local _, A1, A2, s = chain { m, l }
    s[A1]:set_scope "warp"
    local _, xi = s[A2]:split(A2.op.axis[1], 32)
    local xi0, xi1 = s[A2]:split(xi, 16)
    local tx = te.thread_axis "threadIdx.x"
    s[A2]:bind(xi1, tx)
    s[A2]:bind(xi0, te.thread_axis "threadIdx.y")
    s[A1]:compute_at(s[A2], A2.op.axis[2])
    local _, inner = s[A1]:split(A1.op.axis[1], 16)
    s[A1]:bind(inner, tx)
    assert.equal("16", keeps.extents(s, A1)[1])
  end)

  it("test_bound_scan", function()
    local X = te.compute({ 6, 8 }, function(i, j) return pl.tir.Cast(F, i + j) end, "x")
    local state = te.placeholder({ 6, 8 }, F, "state")
    local first = te.compute({ 1, 8 }, function(_, i) return X[{ 0, i }] end, "first")
    local update = te.compute({ 6, 8 }, function(t, i)
      return state[{ t - 1, i }] + X[{ t, i }]
    end, "update")
    local scan = te.scan(first, update, state)
    local s = te.create_schedule(scan.op)
    local XX = s:cache_read(X, "local", { update })
    local xo = s[update]:split(update.op.axis[2], 4)
    s[XX]:compute_at(s[update], xo)
    assert.equal("4", extent(s, XX.op.axis[2]))
    keeps.same(s, { scan })
  end)

  it("test_bound_nest_thread", function()
    local m = te.var "m"
    local A = te.placeholder({ m }, F, "A")
    local A1 = te.compute({ m }, function(i) return A[{ i }] end, "A1")
    local A2 = te.compute({ m }, function(i) return A1[{ i }] + 2 end, "A2")
    local A3 = te.compute({ m }, function(i) return A2[{ i }] + 3 end, "A3")
    local s = te.create_schedule(A3.op)
    s[A2]:set_scope "shared"
    s[A1]:set_scope "local"
    local thread = te.thread_axis "threadIdx.x"
    local bx, tx = s[A3]:split(A3.op.axis[1], 32)
    s[A3]:bind(bx, te.thread_axis "blockIdx.x")
    s[A3]:bind(tx, thread)
    s[A2]:compute_at(s[A3], tx)
    local _, xi = s[A2]:split(A2.op.axis[1], { nparts = 1 })
    s[A2]:bind(xi, thread)
    s[A1]:compute_at(s[A3], tx)
    assert.same({ "1" }, keeps.extents(s, A1))
    assert.same({ "32" }, keeps.extents(s, A2))
    assert.same({ "m" }, keeps.extents(s, A3))
  end)

  it("test_gemm_bound", function()
    local n, k = 1024, te.reduce_axis({ 0, 1024 }, "k")
    local A, B = te.placeholder({ n, n }, F, "A"), te.placeholder({ n, n }, F, "B")
    local C = te.compute({ n, n }, function(i, j)
      return te.sum(A[{ i, k }] * B[{ j, k }], k)
    end, "CC")
    local s = te.create_schedule(C.op)
    local thread_x, thread_y = te.thread_axis "threadIdx.x", te.thread_axis "threadIdx.y"
    local CC = s:cache_write(C, "local")
    local AA, BB = s:cache_read(A, "shared", { CC }), s:cache_read(B, "shared", { CC })
    local by, yi = s[C]:split(C.op.axis[1], 64)
    local bx, xi = s[C]:split(C.op.axis[2], 64)
    s[C]:reorder(by, bx, yi, xi)
    s[C]:bind(by, te.thread_axis "blockIdx.y")
    s[C]:bind(bx, te.thread_axis "blockIdx.x")
    local ty, tx
    ty, yi = s[C]:split(yi, { nparts = 8 })
    tx, xi = s[C]:split(xi, { nparts = 8 })
    s[C]:reorder(ty, tx, yi, xi)
    s[C]:bind(ty, thread_y)
    s[C]:bind(tx, thread_x)
    s[CC]:reorder(k, CC.op.axis[1], CC.op.axis[2])
    s[CC]:compute_at(s[C], tx)
    for _, cache in ipairs { AA, BB } do
      s[cache]:compute_at(s[CC], k)
      local y, rest = s[cache]:split(s[cache].op.axis[1], { nparts = 8 })
      local x = s[cache]:split(rest, { nparts = 8 })
      s[cache]:bind(y, thread_y)
      s[cache]:bind(x, thread_x)
    end
    assert.equal("64", keeps.extents(s, BB)[1])
    assert.equal("64", keeps.extents(s, AA)[1])
    assert.same({ "8", "8" }, keeps.extents(s, CC))
  end)
end)

describe("test_te_schedule_bound_inference_tiling", function()
  it("test_bound_tile_mod", function()
    local A = te.placeholder({ 256, 64 }, "float16", "A")
    local C = te.compute({ 256, 256 }, function(n, m) return A[{ n, m }] end, "C")
    local s = te.create_schedule(C.op)
    s:cache_write(C, "local")
    local _, _, ni, mi = s[C]:tile(C.op.axis[1], C.op.axis[2], 128, 128)
    local _, nii = s[C]:split(ni, 2)
    s[C]:fuse(nii, mi)
    local shared = s:cache_write(C, "shared")
    s[shared]:storage_align(shared.op.axis[3], 256, 8)
    local n, m = table.unpack(s[C].op.axis)
    _, _, ni = s[C]:tile(n, m, 128, 128)
    s[C]:set_scope "global"
    local niio = s[C]:split(ni, 32)
    s[shared]:compute_at(s[C], niio)
    assert.equal("16", extent(s, s[shared].op.axis[3]))
  end)
end)
