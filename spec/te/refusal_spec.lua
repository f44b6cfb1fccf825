-- What every primitive refuses: the message names the primitive, the stage, the axis where there
-- is one, why, and the steps that were applied to the stage before; the schedule is as before.

local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F = "float32"

-- B = A + A, C = sum of B, D = C * 2; S is a scan beside of them, E an extern of D.
local function program()
  local p = {}
  p.A = te.placeholder({ 8, 6, 4 }, F, "A")
  p.B = te.compute({ 8, 6, 4 }, function(i, j, l) return p.A[{ i, j, l }] * 2 end, "B")
  p.k = te.reduce_axis({ 0, 4 }, "k")
  p.C = te.compute({ 8, 6 }, function(i, j) return te.sum(p.B[{ i, j, p.k }], p.k) end, "C")
  p.P, p.Q = te.compute({ 8, 6 }, function(i, j) return p.C[{ i, j }], p.C[{ i, j }] + 1 end, "P")
  p.state = te.placeholder({ 8, 6 }, F, "state")
  p.init = te.compute({ 1, 6 }, function(_, i) return p.P[{ 0, i }] end, "init")
  p.update = te.compute({ 8, 6 }, function(t, i)
    return p.state[{ t - 1, i }] + p.Q[{ t, i }]
  end, "update")
  p.S = te.scan(p.init, p.update, p.state, { name = "S" })
  p.D = te.compute({ 8, 6 }, function(i, j) return p.S[{ i, j }] * 2 end, "D")
  p.E = te.extern({ 8, 6 }, { p.D }, function(ins, outs)
    return tir.Evaluate(tir.call_packed("copy", ins[1].data, outs[1].data))
  end, { name = "E", dtype = F })
  p.O = te.compute({ 8, 6 }, function(i, j) return p.E[{ i, j }] + p.C[{ i, j }] end, "O")
  p.s = te.create_schedule(p.O.op)
  return p
end

local function other()
  local X = te.placeholder({ 4 }, F, "X")
  local Y = te.compute({ 4 }, function(x) return X[{ x }] end, "Y")
  return Y, te.create_schedule(Y.op)
end

local thread = te.thread_axis({ 0, 8 }, "threadIdx.x")

local function vadd()
  local x = te.placeholder({ 4 }, F, "x")
  local z = te.compute({ 4 }, function(i) return x[{ i }] * 2 end, "z")
  return te.decl_tensor_intrin(z.op, function(ins, outs)
    return tir.call_packed("double", ins[1].data, outs[1].data)
  end, { name = "double" })
end

-- The primitive; the stage that the message names; the axis that it names, or nil; why; what is
-- done before (which the message lists), and the call.
local rows = {
  { "split", "C", "i", "has already been split, by step 1 into 'i.outer' and 'i.inner'",
    function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:split(p.C.op.axis[1], 2) end },
  { "split", "C", "i", "has already been fused, by step 1 into 'i.j.fused'",
    function(p) p.s[p.C]:fuse(p.C.op.axis[1], p.C.op.axis[2]) end,
    function(p) p.s[p.C]:split(p.C.op.axis[1], 2) end },
  { "split", "C", "x", "is not part of the schedule", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:split(other().op.axis[1], 2) end },
  { "split", "C", "l", "is not part of this stage: it belongs to stage 'B'",
    function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:split(p.B.op.axis[3], 2) end },
  { "split", "S", "S.out0.i1", "is no loop of this stage; its loops are S.idx",
    function(p) p.s[p.S]:pragma(p.S.op.scan_axis, "key") end,
    function(p) p.s[p.S]:split(p.S.op.axis[2], 2) end },
  { "split", "C", "i", "a factor must be positive, got 0", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:split(p.C.op.axis[1], 0) end },
  { "split", "C", "i", "a factor must be positive, got -1", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:split(p.C.op.axis[1], -1) end },
  { "split", "C", "i", "a factor must be an integer", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:split(p.C.op.axis[1], te.var("f", F)) end },
  { "split", "C", "i", "either factor or nparts is given, not both",
    function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:split(p.C.op.axis[1], { factor = 2, nparts = 2 }) end },
  { "split", "C", "i", "a factor or nparts is expected", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:split(p.C.op.axis[1]) end },
  { "split", "C", nil, "must be an axis", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:split("i", 4) end },
  { "split", "A", nil, "the stage is a placeholder", nil,
    function(p) p.s[p.A]:split(p.C.op.axis[1], 4) end },
  { "split", "C", "j", "has already been split", function(p) p.s[p.C]:split(p.C.op.axis[2], 4) end,
    function(p) p.s[p.C]:tile(p.C.op.axis[1], p.C.op.axis[2], 2, 2) end, steps = 1 },
  { "fuse", "C", "k", "only neighbouring axes can be fused: 'i' and 'k' are not",
    function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:fuse(p.C.op.axis[1], p.k) end },
  { "fuse", "C", "k", "only neighbouring axes can be fused: 'k' and 'i' are not",
    function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:fuse(p.k, p.C.op.axis[1]) end },
  { "fuse", "C", "i", "has already been split", function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:fuse(p.C.op.axis[1], p.C.op.axis[2]) end },
  { "fuse", "S", "S.out0.i1", "is no loop of this stage; its loops are S.idx", nil,
    function(p) p.s[p.S]:fuse(p.S.op.axis[1], p.S.op.axis[2]) end },
  { "split", "S", "threadIdx.x", "of type ThreadIndex cannot be split",
    function(p) p.s[p.S]:env_threads { thread } end,
    function(p) p.s[p.S]:split(thread, 2) end },
  { "fuse", "S", "threadIdx.x", "of type ThreadIndex cannot be fused",
    function(p) p.s[p.S]:env_threads { thread } end,
    function(p) p.s[p.S]:fuse(thread, p.S.op.scan_axis) end },
  { "reorder", "C", "i", "the same axis 'i' cannot appear more than once",
    function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:reorder(p.C.op.axis[1], p.C.op.axis[1]) end },
  { "reorder", "C", "i", "has already been split",
    function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:reorder(p.C.op.axis[2], p.C.op.axis[1]) end },
  { "reorder", "S", "S.idx", "of type Ordered cannot be reordered", nil,
    function(p) p.s[p.S]:reorder(p.S.op.scan_axis) end },
  { "bind", "S", "S.idx", "must be of type DataPar or CommReduce to be bound", nil,
    function(p) p.s[p.S]:bind(p.S.op.scan_axis, thread) end },
  { "bind", "C", "j", "is no thread", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:bind(p.C.op.axis[1], p.C.op.axis[2]) end },
  { "bind", "C", "i", "has already been split", function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:bind(p.C.op.axis[1], thread) end },
  { "compute_at", "O", nil, "an output is computed at the root",
    function(p) p.s[p.O]:unroll(p.O.op.axis[1]) end,
    function(p) p.s[p.O]:compute_at(p.s[p.C], p.C.op.axis[1]) end },
  { "compute_at", "C", "i", "has already been split, by step 1",
    function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.B]:compute_at(p.s[p.C], p.C.op.axis[1]) end },
  { "compute_at", "C", "l", "is not part of this stage: it belongs to stage 'B'",
    function(p) p.s[p.B]:unroll(p.B.op.axis[1]) end,
    function(p) p.s[p.B]:compute_at(p.s[p.C], p.B.op.axis[3]) end },
  { "compute_at", "B", nil, "stage 'C' is computed inside of it already",
    function(p) p.s[p.C]:compute_at(p.s[p.B], p.B.op.axis[1]) end,
    function(p) p.s[p.B]:compute_at(p.s[p.C], p.C.op.axis[1]) end },
  { "compute_at", "update", nil, "stage 'O' is not within the same group",
    function(p) p.s[p.update]:unroll(p.update.op.axis[2]) end,
    function(p) p.s[p.update]:compute_at(p.s[p.O], p.O.op.axis[1]) end },
  { "compute_inline", "C", nil, "a reduction cannot be inlined",
    function(p) p.s[p.C]:unroll(p.k) end, function(p) p.s[p.C]:compute_inline() end },
  { "compute_inline", "P", nil, "only a compute with one output can be inlined, not with 2",
    function(p) p.s[p.P]:unroll(p.P.op.axis[1]) end, function(p) p.s[p.P]:compute_inline() end },
  { "compute_inline", "E", nil, "only a compute can be inlined", nil,
    function(p) p.s[p.E]:compute_inline() end },
  { "compute_inline", "A", nil, "the stage is a placeholder", nil,
    function(p) p.s[p.A]:compute_inline() end },
  { "compute_inline", "O", nil, "an output is computed at the root", nil,
    function(p) p.s[p.O]:compute_inline() end },
  { "vectorize", "C", "k", "carries a dependence",
    function(p) p.s[p.C]:unroll(p.C.op.axis[1]) end, function(p) p.s[p.C]:vectorize(p.k) end },
  { "vectorize", "C", "i", "has already been split",
    function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:vectorize(p.C.op.axis[1]) end },
  { "parallel", "C", "k", "carries a dependence",
    function(p) p.s[p.C]:unroll(p.C.op.axis[1]) end, function(p) p.s[p.C]:parallel(p.k) end },
  { "unroll", "C", "i", "has already been split",
    function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:unroll(p.C.op.axis[1]) end },
  { "pragma", "C", "i", "has already been split",
    function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:pragma(p.C.op.axis[1], "key") end },
  { "pragma", "C", "k", "carries a dependence", function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:pragma(p.k, "vectorize") end },
  { "prefetch", "C", "i", "has already been split",
    function(p) p.s[p.C]:split(p.C.op.axis[1], 4) end,
    function(p) p.s[p.C]:prefetch(p.B, p.C.op.axis[1], 1) end },
  { "prefetch", "C", "i", "the stage does not read 'A'", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:prefetch(p.A, p.C.op.axis[1], 1) end },
  { "tensorize", "B", nil, "an intrinsic is expected",
    function(p) p.s[p.B]:unroll(p.B.op.axis[1]) end,
    function(p) p.s[p.B]:tensorize(p.B.op.axis[3], 7) end },
  { "tensorize", "B", "i", "is bound to a thread",
    function(p) p.s[p.B]:bind(p.B.op.axis[1], thread) end,
    function(p) p.s[p.B]:tensorize(p.B.op.axis[1], vadd()) end },
  { "tensorize", "S", nil, "only a compute stage is tensorized", nil,
    function(p) p.s[p.S]:tensorize(p.S.op.scan_axis, vadd()) end },
  { "set_scope", "B", nil, "a storage scope is expected",
    function(p) p.s[p.B]:unroll(p.B.op.axis[1]) end, function(p) p.s[p.B]:set_scope(7) end },
  { "storage_align", "C", "k", "is no dimension of its tensor",
    function(p) p.s[p.C]:unroll(p.k) end, function(p) p.s[p.C]:storage_align(p.k, 4, 0) end },
  { "storage_align", "C", "i", "a factor must be positive, got 0",
    function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:storage_align(p.C.op.axis[1], 0, 0) end },
  { "double_buffer", "O", nil, "an output cannot be a double buffer",
    function(p) p.s[p.O]:unroll(p.O.op.axis[1]) end, function(p) p.s[p.O]:double_buffer() end },
  { "rolling_buffer", "O", nil, "an output cannot be a rolling buffer",
    function(p) p.s[p.O]:unroll(p.O.op.axis[1]) end, function(p) p.s[p.O]:rolling_buffer() end },
  { "double_buffer", "B", nil, "its layout has axis separators", function(p)
      p.s[p.B]:transform_layout(function(i, j, l) return i, te.AXIS_SEPARATOR, j, l end)
    end, function(p) p.s[p.B]:double_buffer() end },
  { "transform_layout", "B", nil, "it is a double buffer", function(p)
      p.s[p.B]:double_buffer()
    end, function(p)
      p.s[p.B]:transform_layout(function(i, j, l) return i, te.AXIS_SEPARATOR, j, l end)
    end },
  { "env_threads", "C", nil, "only a scan has env_threads", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:env_threads { thread } end },
  { "env_threads", "S", nil, "its env_threads are set already",
    function(p) p.s[p.S]:env_threads { thread } end,
    function(p) p.s[p.S]:env_threads { thread } end },
  { "set_store_predicate", "C", nil, "a condition must be a bool",
    function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s[p.C]:set_store_predicate(te.var("x", F)) end },
  { "cache_read", "A", nil, "cannot find 'A' in the inputs of 'C'", nil,
    function(p) p.s:cache_read(p.A, "local", { p.C }) end },
  { "cache_read", "B", nil, "'C' is given twice", function(p) p.s[p.B]:unroll(p.B.op.axis[1]) end,
    function(p) p.s:cache_read(p.B, "local", { p.C, p.C }) end },
  { "cache_write", "P", nil, "outputs of one operation must be cached together",
    function(p) p.s[p.P]:unroll(p.P.op.axis[1]) end,
    function(p) p.s:cache_write(p.P, "local") end },
  { "cache_write", "E", nil, "only a compute has a cache to write to", nil,
    function(p) p.s:cache_write(p.E, "local") end },
  { "cache_write", "C", "j.k.fused", "it is fused with a reduction axis",
    function(p) p.s[p.C]:fuse(p.C.op.axis[2], p.k) end,
    function(p) p.s:cache_write(p.C, "local") end },
  { "rfactor", "C", "i", "is no axis of a reduction", function(p) p.s[p.C]:unroll(p.k) end,
    function(p) p.s:rfactor(p.C, p.C.op.axis[1]) end },
  { "rfactor", "C", "k", "its store predicate depends on 'k'", function(p)
    p.s[p.C]:set_store_predicate(pl.tir.GE(p.k, 0)) end,
    function(p) p.s:rfactor(p.C, p.k) end },
  { "rfactor", "C", "k", "has already been split", function(p) p.s[p.C]:split(p.k, 2) end,
    function(p) p.s:rfactor(p.C, p.k) end },
  { "rfactor", "C", nil, "factor_axis 5 is outside of the 2 dimensions",
    function(p) p.s[p.C]:unroll(p.k) end, function(p) p.s:rfactor(p.C, p.k, 5) end },
  { "rfactor", "C", "j", "the factored axis touches the data axis 'j'",
    function(p) p.s[p.C]:fuse(p.C.op.axis[2], p.k) end,
    function(p) p.s:rfactor(p.C, p.s[p.C].leaf_iter_vars[2]) end },
  { "rfactor", "B", "i", "is no axis of a reduction", nil,
    function(p) p.s:rfactor(p.B, p.B.op.axis[1]) end },
  { "transform_layout", "B", "i", "does not follow", function(p)
      p.s[p.B]:reorder(p.B.op.axis[2], p.B.op.axis[1])
    end, function(p) p.s[p.B]:transform_layout(function(i, j, l) return i, j, l end) end },
  { "transform_layout", "B", "i", "has already been split, by step 1",
    function(p) p.s[p.B]:split(p.B.op.axis[1], 4) end,
    function(p) p.s[p.B]:transform_layout(function(i, j, l) return i, j, l end) end },
}

describe("a primitive that is refused", function()
  for i, row in ipairs(rows) do
    local primitive, stage, axis, why, before, call = table.unpack(row, 1, 6)
    it(("%d: %s of %s: %s"):format(i, primitive, stage, why), function()
      local p = program()
      if before then before(p) end
      local text, n = tostring(p.s), p.s:n_steps()
      local ok, err = pcall(call, p)
      assert.is_false(ok)
      err = tostring(err)
      local function says(part) assert.is_truthy(err:find(part, 1, true), err) end
      says(primitive)
      says("'" .. stage .. "'")
      if axis then says("'" .. axis .. "'") end
      says(why)
      local steps = p.s:trace()
      if before then
        says("before:")
        for line in text:gmatch "[^\n]+" do
          if not line:find("thread_axis", 1, true) then says(line) end
        end
        assert.is_true(#steps > 0)
      else
        says("no step was applied to stage '")
      end
      -- tile is several steps.
      local left = p.s:copy(n)
      assert.equal(text, tostring(left))
      if not row.steps then assert.equal(text, tostring(p.s)) end
    end)
  end

  it("lists the last steps of many", function()
    local p = program()
    for _ = 1, 20 do p.s[p.C]:pragma(p.k, "key") end
    local _, err = pcall(function() p.s[p.C]:split(p.k, 0) end)
    assert.equal(8, select(2, tostring(err):gsub("pragma C", "")))
    assert.is_truthy(tostring(err):find("20  pragma C", 1, true), tostring(err))
  end)

  it("creates no group without stages between, or across another one", function()
    local p = program()
    local _, err = pcall(p.s.create_group, p.s, p.C, p.A, false)
    assert.is_true(_, tostring(err))
    for _, call in ipairs {
      function() p.s:create_group(p.P, p.B, false) end,
      function() p.s:create_group(p.A, p.A, false) end,
    } do
      local before = tostring(p.s)
      local ok = pcall(call)
      assert.is_false(ok)
      assert.equal(before, tostring(p.s))
    end
  end)

  it("computes what belongs to a thread within that thread", function()
    local A = te.placeholder({ 64 }, F, "A")
    local B = te.compute({ 64 }, function(i) return A(i) * 2 end, "B")
    local C = te.compute({ 64 }, function(i) return B(i) + B(63 - i) end, "C")
    local s = te.create_schedule(C.op)
    local outer, inner = s[C]:split(C.op.axis[1], 8)
    s[C]:bind(outer, te.thread_axis "blockIdx.x")
    s[C]:bind(inner, te.thread_axis "threadIdx.x")
    s[B]:set_scope "local"
    for _, at in ipairs { false, outer } do
      if at then s[B]:compute_at(s[C], at) end
      local ok, err = pcall(s.to_module, s, { A, C }, "main")
      assert.is_false(ok)
      assert.matches("the memory of stage 'B' belongs to a thread, but it is computed outside of "
        .. "'threadIdx.x', to which axis 'i.inner' of stage 'C' is bound", tostring(err))
    end
    s[B]:compute_at(s[C], inner)
    assert.matches("T.realize%(B", tostring(s:to_module({ A, C }, "main")))
  end)
end)
