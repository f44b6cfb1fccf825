-- TVM's test_te_schedule_ops.py and test_te_build_lower.py: the tests that ../names_spec.lua does
-- not have.

local pl = require "perilune"
local keeps = require "spec.te.keeps"

local te, tir = pl.te, pl.tir
local F = "float32"

local function product(shape)
  local A, B = te.placeholder(shape, F, "A"), te.placeholder(shape, F, "B")
  return A, B, te.compute(shape, function(...) return A:load(...) * B:load(...) end, "C")
end

local function lowers(s, args) return tostring(pl.lower(s, { args = args })) end

describe("test_te_schedule_ops", function()
  it("test_const", function()
    local x = te.const(1, "int32")
    assert.equal("int32", x.dtype)
    assert.equal("IntImm", x.kind)
  end)

  local function argmax()
    return te.comm_reducer(function(x, y)
      local first = tir.GE(x[2], y[2])
      return { tir.Select(first, x[1], y[1]), tir.Select(first, x[2], y[2]) }
    end, function(t0, t1) return { te.const(-1, t0), te.min_value(t1) } end)
  end

  it("test_inline_multi_reduce", function()
    local val = te.placeholder({ 3, 5 }, F, "val")
    local val1 = te.compute({ 3, 5 }, function(i, j) return val[{ i, j }] + 1 end, "val1")
    local val2 = te.compute({ 3, 5 }, function(i, j) return val1[{ i, j }] * 2 end, "val2")
    local k = te.reduce_axis({ 0, 5 }, "k")
    local index, most = te.compute({ 3 }, function(i)
      return argmax()({ k.var, val2[{ i, k }] }, k)
    end, "T")
    local s = te.create_schedule(index.op)
    s[val1]:compute_inline()
    local args = { val, index, most }
    assert.is_nil(tostring(s:to_module(args, "main")):find("val1", 1, true))
    keeps.same(s, args)
  end)

  local function two_states()
    local x = te.placeholder({ 4, 3 }, F, "x")
    local p, q = te.placeholder({ 4, 3 }, F, "p"), te.placeholder({ 4, 3 }, F, "q")
    local function init(name)
      return te.compute({ 1, 3 }, function(_, i) return x[{ 0, i }] end, name)
    end
    return x, p, q, init "i1", init "i2"
  end
  local function copied(from, name)
    return te.compute({ 4, 3 }, function(t, i) return from[{ t, i }] end, name)
  end

  it("test_scan_inline1", function()
    local x, p, q, i1, i2 = two_states()
    local x1 = te.compute({ 4, 3 }, function(t, i) return p[{ t - 1, i }] + x[{ t, i }] end, "x1")
    local x2 = te.compute({ 4, 3 }, function(t, i) return q[{ t - 1, i }] + 1 end, "x2")
    local r1, r2 = te.scan({ i1, i2 }, { copied(x1, "u1"), copied(x2, "u2") }, { p, q })
    local s = te.create_schedule(r1.op)
    s[x1]:compute_inline()
    keeps.same(s, { x, r1, r2 })
  end)

  it("test_scan_inline2", function()
    local x, p, q, i1, i2 = two_states()
    local xx = te.compute({ 4, 3 }, function(t, i) return p[{ t - 1, i }] + x[{ t, i }] end, "xx")
    local x1 = te.compute({ 4, 3 }, function(t, i) return xx[{ t, i }] + 1 end, "x1")
    local x2 = te.compute({ 4, 3 }, function(t, i) return xx[{ t, i }] + q[{ t - 1, 2 }] end, "x2")
    local r1, r2 = te.scan({ i1, i2 }, { copied(x1, "u1"), copied(x2, "u2") }, { p, q })
    local s = te.create_schedule(r1.op)
    for _, stage in ipairs { xx, x1, x2 } do s[stage]:compute_inline() end
    keeps.same(s, { x, r1, r2 })
  end)

  it("test_schedule_middle_cache", function()
    local A, B, C = product { 4, 6 }
    local D = te.compute({ 4, 6 }, function(i, j) return C[{ i, j }] end, "D")
    local s = te.create_schedule(D.op)
    local AA, BB = s:cache_read(A, "local", { C }), s:cache_read(B, "local", { C })
    local CC, DD = s:cache_read(C, "local", { D }), s:cache_write(D, "local")
    local text = tostring(s:to_module({ A, B, D }, "main"))
    for _, cache in ipairs { AA, BB, CC, DD } do
      assert.matches("T.realize%(" .. cache.name:gsub("%.", "_"), text)
    end
    keeps.same(s, { A, B, D })
  end)

  it("test_schedule_cache_relayout4", function()
    local A, B = te.placeholder({ 8, 3 }, F, "A"), te.placeholder({ 8, 3 }, F, "B")
    local C1, C2 = te.compute({ 8, 3 }, function(i, j)
      return A[{ i, j }] + 1, B[{ i, j }] / 2
    end, "C")
    local s = te.create_schedule { C1.op, C2.op }
    local caches = s:cache_write({ C1, C2 }, "local")
    assert.equal(2, #caches)
    assert.equal(caches[1].op, caches[1].op)
    keeps.same(s, { A, B, C1, C2 })
  end)

  it("test_local_stage_predicate, test_local_stage_predicate2", function()
    for _, case in ipairs { { "threadIdx.x", "local" }, { "vthread", "local" },
      { "blockIdx.y", "shared" } } do
      local A = te.placeholder({ 1, 3, 2 }, F, "A")
      local B = te.compute({ 1, 3, 2 }, function(i, j, k) return A[{ i, j, k }] end, "B")
      local C = te.compute({ 1, 3, 2 }, function(i, j, k) return B[{ i, j, k }] end, "C")
      local s, thread = te.create_schedule(C.op), te.thread_axis(case[1])
      s[B]:compute_at(s[C], s[C].op.axis[1])
      s[B]:set_scope(case[2])
      local _, inner = s[B]:split(s[B].op.axis[2], 3)
      s[C]:bind(s[C].op.axis[1], te.thread_axis "blockIdx.x")
      s[C]:bind(s[C].op.axis[2], thread)
      s[B]:bind(inner, thread)
      local lowered = lowers(s, { A, C })
      assert.is_nil(lowered:find("if ", 1, true), lowered)
      -- Each thread writes what it reads.
      local _, index = tostring(s:to_module({ A, C }, "main")):match(
        "B(%[0, [%w_]+, k%]) = A(%[0, [%w_]+, k%])")
      assert.equal(("[0, %s, k]"):format(case[1]:gsub("%.", "_")), index)
    end
    local A = te.placeholder({ 128 }, F, "A")
    local B = te.compute({ 128 }, function(i) return A[{ i }] + 1 end, "B")
    local C = te.compute({ 128 }, function(i) return B[{ i }] + 2 end, "C")
    local s = te.create_schedule(C.op)
    local AA = s:cache_read(A, "local", { B })
    local block, thread = te.thread_axis "blockIdx.x", te.thread_axis({ 0, 32 }, "threadIdx.x")
    s[B]:set_scope "shared"
    local oc, ic = s[C]:split(s[C].op.axis[1], 64)
    local ooc, ioc = s[C]:split(oc, 2)
    local _, iic = s[C]:split(ic, 32)
    s[C]:bind(ooc, block)
    s[C]:bind(iic, thread)
    s[B]:compute_at(s[C], ioc)
    local _, ib = s[B]:split(s[B].op.axis[1], 32)
    s[B]:bind(ib, thread)
    s[AA]:compute_root()
    s[AA]:compute_at(s[C], ooc)
    local _, iaa = s[AA]:split(s[AA].op.axis[1], 32)
    s[AA]:bind(iaa, thread)
    local text = lowers(s, { A, C })
    assert.is_nil(text:find("if ", 1, true), text)
    -- 97 elements in TVM, from that of the thread on; here the threads fill the region together.
    assert.matches("T.allocate%(%[128%]", text)
    assert.matches("A_local_1%[cse_var_1 %+ threadIdx_x%] = A%[cse_var_1 %+ threadIdx_x%]", text)
  end)

  it("test_schedule_record_gemm", function()
    local k = te.reduce_axis({ 0, 64 }, "k")
    local A, B = te.placeholder({ 64, 64 }, F, "A"), te.placeholder({ 64, 64 }, F, "B")
    local C = te.compute({ 64, 64 }, function(m, n)
      return te.sum(A[{ m, k }] * B[{ k, n }], k)
    end, "C")
    local s = te.create_schedule(C.op)
    assert.equal(1, #s:schedule_record())
    local mo, no, mi, ni = s[C]:tile(C.op.axis[1], C.op.axis[2], 32, 32)
    local ko, ki = s[C]:split(k, 8)
    s[C]:reorder(mo, ko, no, mi, ki, ni)
    s[C]:vectorize(ni)
    s[C]:parallel(mo)
    local schedules, names = s:schedule_record()
    assert.same({ "vanilla", "split", "split", "reorder", "split", "reorder", "vectorize",
      "parallel" }, names)
    assert.equal(8, #schedules)
    for i, one in ipairs(schedules) do assert.equal(i - 1, one:n_steps()) end
    assert.equal(s, schedules[8])
  end)

  it("test_schedule_record_misc", function()
    -- A schedule is of an operation at least, and has its record without being told.
    keeps.fails("there is no operation", te.create_schedule, {})
    local stage = te.compute({}, function() return te.const(0, "int32") end, "empty_op")
    local schedules, names = te.create_schedule(stage.op):schedule_record()
    assert.equal(1, #schedules)
    assert.same({ "vanilla" }, names)
  end)
end)

describe("test_te_build_lower", function()
  it("test_lower_rfactor", function()
    local n, m = te.size_var "n", te.size_var "m"
    local A, k = te.placeholder({ n, m }, F, "A"), te.reduce_axis({ 0, m }, "k")
    local B = te.compute({ n }, function(i) return te.sum(A[{ i, k }], k) end, "B")
    local s = te.create_schedule(B.op)
    local _, ki = s[B]:split(B.op.reduce_axis[1], 16)
    local BF = s:rfactor(B, ki)
    local xo, xi = s[B]:split(s[B].op.axis[1], 32)
    s[B]:bind(xo, te.thread_axis "blockIdx.x")
    s[B]:bind(xi, te.thread_axis "threadIdx.y")
    s[B]:bind(s[B].op.reduce_axis[1], te.thread_axis "threadIdx.x")
    s[BF]:compute_at(s[B], s[B].op.reduce_axis[1])
    local text = lowers(s, { A, B })
    assert.matches("blockIdx.x", text)
    assert.matches("threadIdx.y", text)
    assert.matches("tvm_thread_allreduce.*threadIdx_x%)", text)
  end)

  it("test_dependent_output_shape", function()
    local n, m, x = te.size_var "n", te.size_var "m", te.size_var "x"
    local A = te.placeholder({ n, m }, F)
    local B = te.compute({ m, n // x }, function(i, j) return A[{ i, j }] end, "B")
    assert.matches("n // x", lowers(te.create_schedule(B.op), { A, B, x }))
  end)

  it("test_split_uneven_unique_likely", function()
    local A, B, C = product { 16, 16 }
    local s = te.create_schedule(C.op)
    s[C]:split(C.op.axis[1], 5)
    local text = tostring(pl.lower(s, { args = { A, B, C }, simple_mode = true }))
    assert.equal(1, select(2, text:gsub("likely", "")), text)
    keeps.same(s, { A, B, C })
  end)
end)
