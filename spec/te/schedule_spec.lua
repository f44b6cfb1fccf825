-- Schedules: every primitive keeps what a program computes, and its misuse is refused before
-- anything changes, with stage, axis and history in the message.

local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F = "float32"

local function fails(message, f)
  local ok, err = pcall(f)
  assert.is_false(ok)
  assert.matches(message, tostring(err))
end

-- Numbers without a pattern, exact in single precision.
local function data(shape, seed)
  local n, state = 1, seed
  for _, dim in ipairs(shape) do n = n * dim end
  local function build(level)
    local rows = {}
    for i = 1, shape[level] do
      if level < #shape then
        rows[i] = build(level + 1)
      else
        state = (state * 75 + 74) % 65537
        rows[i] = state % 17 - 8.0
      end
    end
    return rows
  end
  return build(1), n
end

local function shape_of(tensor)
  local dims = {}
  for i, dim in ipairs(tensor.shape) do dims[i] = dim.value end
  return dims
end

-- What the last argument is after the schedule's program ran.
local function run(schedule, args)
  local values = {}
  for i, tensor in ipairs(args) do values[i] = data(shape_of(tensor), i) end
  local mod = schedule:to_module(args, "main")
  local results = tir.run(mod, values, { uninitialized = "error" })
  return results[#args]:to_table()
end

-- `make` gives outputs and arguments; `change` schedules. The default schedule says what is right.
local function keeps(make, change)
  local function program(scheduled)
    local parts = make()
    local s = te.create_schedule(parts.out.op)
    if scheduled then change(s, parts) end
    return run(s, parts.args), s
  end
  local result, s = program(true)
  assert.same(program(false), result)
  return s
end

local function matmul()
  local n, m, l = 7, 9, 10
  local A, B = te.placeholder({ n, l }, F, "A"), te.placeholder({ l, m }, F, "B")
  local k = te.reduce_axis({ 0, l }, "k")
  local C = te.compute({ n, m }, function(i, j)
    return te.sum(A[{ i, k }] * B[{ k, j }], k)
  end, "C")
  return { out = C, C = C, A = A, B = B, k = k, args = { A, B, C } }
end

local function chain()
  local A = te.placeholder({ 12, 10 }, F, "A")
  local B = te.compute({ 12, 8 }, function(i, j) return A[{ i, j }] + A[{ i, j + 2 }] end, "B")
  local C = te.compute({ 10, 8 }, function(i, j) return B[{ i, j }] * B[{ i + 2, j }] end, "C")
  return { out = C, A = A, B = B, C = C, args = { A, C } }
end

describe("a schedule keeps results", function()
  it("with split, also where the factor does not divide", function()
    keeps(matmul, function(s, p)
      local _, inner = s[p.C]:split(p.C.op.axis[1], 4)
      s[p.C]:split(inner, { nparts = 3 })
      s[p.C]:split(p.k, 3)
    end)
  end)

  it("with tile, fuse, reorder, unroll, vectorize, parallel", function()
    keeps(matmul, function(s, p)
      local xo, yo, xi, yi = s[p.C]:tile(p.C.op.axis[1], p.C.op.axis[2], 2, 4)
      local fused = s[p.C]:fuse(xo, yo)
      local ko, ki = s[p.C]:split(p.k, 4)
      s[p.C]:reorder(fused, ko, xi, ki, yi)
      s[p.C]:parallel(fused)
      s[p.C]:unroll(ki)
      s[p.C]:vectorize(yi)
    end)
  end)

  it("with a loop of one round around all", function()
    local s = keeps(matmul, function(s, p) s[p.C]:fuse() end)
    assert.matches("singleton", tostring(s))
  end)

  it("with compute_at, in a tile with guards", function()
    keeps(chain, function(s, p)
      local xo = s[p.C]:tile(p.C.op.axis[1], p.C.op.axis[2], 4, 3)
      s[p.B]:compute_at(s[p.C], xo)
    end)
  end)

  it("with compute_at a fused axis", function()
    keeps(chain, function(s, p)
      local fused = s[p.C]:fuse(p.C.op.axis[1], p.C.op.axis[2])
      local outer = s[p.C]:split(fused, 16)
      s[p.B]:compute_at(s[p.C], outer)
    end)
  end)

  it("with compute_inline", function()
    keeps(chain, function(s, p) s[p.B]:compute_inline() end)
  end)

  it("with stages inlined into each other, read twice, and in indices", function()
    keeps(function()
      local A = te.placeholder({ 16 }, F, "A")
      local B = te.compute({ 16 }, function(i) return A[{ 15 - i }] + 1 end, "B")
      local I = te.compute({ 16 }, function(i) return (i * 3) % 16 end, "I")
      local J = te.compute({ 16 }, function(i) return I[{ (I[{ i }] + 1) % 16 }] end, "J")
      local C = te.compute({ 16 }, function(i) return B[{ i }] * B[{ J[{ i }] }] end, "C")
      local D = te.compute({ 16 }, function(i) return C[{ i }] + C[{ 15 - i }] end, "D")
      return { A = A, B = B, I = I, J = J, C = C, out = D, args = { A, D } }
    end, function(s, p)
      for _, name in ipairs { "B", "I", "J", "C" } do s[p[name]]:compute_inline() end
    end)
  end)

  it("with ten thousand stages inlined into one", function()
    local A, stages = te.placeholder({ 2 }, F, "A"), {}
    local last = A
    for i = 1, 10000 do
      local from = last
      last = te.compute({ 2 }, function(x) return from[{ x }] * 0.5 + 1 end, "B" .. i)
      stages[i] = last
    end
    local s = te.create_schedule(last.op)
    for i = 1, #stages - 1 do s[stages[i]]:compute_inline() end
    assert.same({ 2, 2 }, run(s, { A, last }))
  end)

  it("with a chain of stages inlined that each read a step further, in linear time", function()
    local function seconds(n)
      local A, stages = te.placeholder({ 2 + n }, F, "A"), {}
      local last = A
      for i = 1, n do
        local from = last
        last = te.compute({ 2 + n - i }, function(x) return from[{ x + 1 }] + 1 end, "B" .. i)
        stages[i] = last
      end
      local s = te.create_schedule(last.op)
      for i = 1, n - 1 do s[stages[i]]:compute_inline() end
      local start = os.clock()
      s:to_module({ A, last }, "main")
      return os.clock() - start
    end
    local function least(n) return math.min(seconds(n), seconds(n), seconds(n)) end
    -- Quadratic work would make it 64 times as long.
    assert.is_true(least(4000) < 32 * math.max(least(500), 0.001))
  end)

  it("with a cache in a vectorized loop, of values that have no vector form", function()
    local A = te.placeholder({ 8, 3 }, F, "A")
    local C = te.compute({ 7, 9 }, function(i, j)
      return te.if_then_else(tir.GE(j, 1), A[{ 7 - i, te.floormod(i, 3) }], 1.0)
    end, "C")
    local s = te.create_schedule(C.op)
    local cache = s:cache_write(C, "local")
    s[cache]:compute_at(s[C], s[C].op.axis[2])
    s[C]:vectorize(s[C].op.axis[2])
    local values = { data({ 8, 3 }, 1), (data({ 7, 9 }, 2)) }
    local lowered = tir.run(pl.lower(s, { args = { A, C } }), values)[2]:to_table()
    assert.same(tir.run(te.create_schedule(C.op):to_module({ A, C }, "main"), values)[2]:to_table(),
      lowered)
  end)

  it("with cache_read and cache_write", function()
    keeps(matmul, function(s, p)
      local AL = s:cache_read(p.A, "local", { p.C })
      local CL = s:cache_write(p.C, "local")
      local outer = s[p.C]:split(s[p.C].op.axis[1], 2)
      s[CL]:compute_at(s[p.C], outer)
      s[AL]:compute_at(s[CL], s[CL].op.reduce_axis[1])
    end)
  end)

  it("with cache_write of loops that are split and fused", function()
    keeps(matmul, function(s, p)
      local xo, yo = s[p.C]:tile(p.C.op.axis[1], p.C.op.axis[2], 2, 4)
      s[p.C]:fuse(xo, yo)
      s:cache_write(p.C, "global")
    end)
  end)

  it("with a reduction whose domain depends on the data axis, of a stage", function()
    for extent = 1, 4 do
      local function make()
        local A = te.placeholder({ 12 }, F, "A")
        local B = te.compute({ 8 + extent }, function(i) return A[{ i }] * 2 end, "B")
        local C = te.compute({ 8 }, function(i)
          local k = te.reduce_axis({ i, i + extent }, "k")
          return te.sum(B[{ k }], k)
        end, "C")
        return { out = C, B = B, C = C, args = { A, C } }
      end
      keeps(make, function() end)
      keeps(make, function(s, p) s[p.B]:compute_at(s[p.C], p.C.op.axis[1]) end)
      keeps(make, function(s, p) s[p.B]:compute_at(s[p.C], p.C.op.reduce_axis[1]) end)
      keeps(make, function(s, p)
        local outer = s[p.C]:split(p.C.op.axis[1], 3)
        s[p.B]:compute_at(s[p.C], outer)
      end)
    end
  end)

  it("with rfactor, also where the factor does not divide", function()
    keeps(matmul, function(s, p)
      local _, ki = s[p.C]:split(p.k, 4)
      local CF = s:rfactor(p.C, ki, 1)
      s[CF]:compute_at(s[p.C], s[p.C].op.axis[1])
    end)
    keeps(matmul, function(s, p)
      local ko = s[p.C]:split(p.k, 5)
      s:rfactor(p.C, ko, -1)
    end)
  end)

  it("with a group that is attached as one", function()
    keeps(chain, function(s, p)
      local g = s:create_group(p.B, p.A, false)
      g:compute_at(s[p.C], p.C.op.axis[1])
    end)
  end)

  it("with storage_align, double_buffer and pragmas", function()
    local s = keeps(chain, function(s, p)
      s[p.B]:compute_at(s[p.C], p.C.op.axis[1])
      s[p.B]:storage_align(p.B.op.axis[1], 32, 4)
      s[p.C]:pragma(p.C.op.axis[2], "auto_unroll_max_step", 4)
    end)
    local text = tostring(s:to_module(chain().args and { s.outputs[1].inputs[1].inputs[1],
      s.outputs[1] }))
    assert.matches("buffer_dim_align", text)
    assert.matches("pragma_auto_unroll_max_step", text)
  end)
end)

describe("te.compute", function()
  it("reduces to several values at once", function()
    local A, k = te.placeholder({ 4, 6 }, F, "A"), te.reduce_axis({ 0, 6 }, "k")
    local argmax = te.comm_reducer(function(x, y)
      return { tir.Select(tir.ge(x[2], y[2]), x[1], y[1]),
        tir.Select(tir.ge(x[2], y[2]), x[2], y[2]) }
    end, function(t0, t1) return { te.const(-1, t0), te.min_value(t1) } end, "argmax")
    local index, value = te.compute({ 4 }, function(i)
      return argmax({ k.var, A[{ i, k }] }, k)
    end, "T")
    local s = te.create_schedule(index.op)
    local rows = data({ 4, 6 }, 1)
    local out = tir.run(s:to_module { A, index, value },
      { rows, { 0, 0, 0, 0 }, { 0.0, 0.0, 0.0, 0.0 } })
    for i, row in ipairs(rows) do
      local best = math.max(table.unpack(row))
      assert.equal(best, out[3]:to_table()[i])
      assert.equal(best, row[out[2]:to_table()[i] + 1])
    end
  end)

  it("prints tensors and operations", function()
    local p = chain()
    assert.equal("Tensor(shape=[12, 8], dtype=float32, op.name=B)", tostring(p.B))
    assert.equal("ComputeOp(B[12, 8]: float32 = A[i, j] + A[i, j + 2])", tostring(p.B.op))
  end)

  it("keeps tags", function()
    local A = te.placeholder({ 4 }, F, "A")
    local B = te.tag_scope("injective", function()
      return te.compute({ 4 }, function(i) return A[{ i }] end, "B")
    end)
    assert.equal("injective", B.op.tag)
    assert.equal("", A.op.tag)
  end)

  it("refuses what is ill-formed", function()
    local A, k = te.placeholder({ 4, 6 }, F, "A"), te.reduce_axis({ 0, 6 }, "k")
    fails("has 2 dimensions, 1 indices are given", function() return A[{ 1 }] end)
    fails("only allowed at the top level", function()
      te.compute({ 4 }, function(i) return te.sum(A[{ i, k }], k) + 1.0 end, "B")
    end)
    fails("all of its values must be reductions, or none", function()
      te.compute({ 4 }, function(i) return te.sum(A[{ i, k }], k), A[{ i, 0 }] end, "B")
    end)
    fails("dimension 1 of the shape is negative: %-1", function() te.placeholder({ -1 }, F) end)
    fails("dimension 1 of the shape is a float32", function() te.placeholder({ 1.5 }, F) end)
    fails("the function has 1 parameters, the shape 2 dimensions", function()
      te.compute({ 4, 6 }, function(i) return A[{ i, i }] end)
    end)
    fails("the function returned nothing", function() te.compute({ 4 }, function() end) end)
    fails("the shape is negative: %-3", function() te.compute({ -3 }, function(i) return i end) end)
  end)

  it("computes nothing of an extent of 0", function()
    local A = te.placeholder({ 0, 3 }, F, "A")
    local B = te.compute({ 0, 3 }, function(i, j) return A[{ i, j }] + 1.0 end, "B")
    assert.matches("range%(3%)", tostring(te.create_schedule(B.op):to_module({ A, B })):gsub(
      "T.grid%(0, 3%)", "range(3)"))
  end)
end)

describe("an axis in an expression", function()
  it("stands for its variable, in nodes made by name too", function()
    local k = te.reduce_axis({ 0, 4 }, "k")
    for _, made in ipairs { tir.LT(k, 1), tir.GE(1, k), tir.Add(k, 1), tir.Cast(F, k),
      tir.Select(tir.EQ(k, 1), k, 2), tir.Call("int32", "bitwise_and", { k, 1 }),
      tir.Not(tir.NE(k, 1)), tir.decl_buffer({ 4 }, F, "B"):load(k) } do
      assert.is_nil(tostring(made):find("iter_var", 1, true), tostring(made))
    end
  end)
end)

describe("te.scan", function()
  local function cumulative()
    local m, n = 5, 4
    local X, state = te.placeholder({ m, n }, F, "X"), te.placeholder({ m, n }, F, "state")
    local init = te.compute({ 1, n }, function(_, i) return X[{ 0, i }] end, "init")
    local update = te.compute({ m, n }, function(t, i) return state[{ t - 1, i }] + X[{ t, i }] end,
      "update")
    local scan = te.scan(init, update, state, { inputs = { X } })
    return { X = X, out = scan, init = init, update = update, args = { X, scan } }
  end

  it("computes a recurrence", function()
    local p = cumulative()
    local rows = data({ 5, 4 }, 1)
    local result = run(te.create_schedule(p.out.op), p.args)
    local sums = { 0, 0, 0, 0 }
    for t = 1, 5 do
      for i = 1, 4 do
        sums[i] = sums[i] + rows[t][i]
        assert.equal(sums[i], result[t][i])
      end
    end
  end)

  it("keeps its updates where they are", function()
    local p = cumulative()
    local s = te.create_schedule(p.out.op)
    local group = s[p.update].group
    assert.equal("scan_update", group.attach_type)
    fails("the update of a scan, which has its place", function() group:compute_root() end)
  end)

  it("keeps its inits before its loop", function()
    local p = cumulative()
    local s = te.create_schedule(p.out.op)
    fails("an init of the scan 'scan', which runs before its loop 'scan.idx'", function()
      s[p.init]:compute_at(s[p.out], p.out.op.scan_axis)
    end)
  end)

  it("inside of its reader's loop, whose rounds say how many it has", function()
    local function make()
      local p = cumulative()
      local out = te.compute({ 5, 4 }, function(t, i) return p.out[{ t, i }] * 2.0 end, "out")
      return { X = p.X, scan = p.out, update = p.update, out = out, args = { p.X, out } }
    end
    keeps(make, function(s, p)
      s[p.scan]:compute_at(s[p.out], p.out.op.axis[1])
      s:cache_read(p.X, "global", { p.update })
    end)
  end)
end)

describe("te.extern", function()
  it("runs a statement", function()
    local A = te.placeholder({ 6 }, F, "A")
    local B = te.extern({ 6 }, { A }, function(ins, outs)
      local i = tir.Var "i"
      return tir.For(i, 0, 6, "serial", tir.BufferStore(outs[1], ins[1]:load(i) * 2.0, { i }))
    end, { name = "B" })
    local C = te.compute({ 6 }, function(i) return B[{ i }] + 1.0 end, "C")
    local s = te.create_schedule(C.op)
    assert.matches("buffer_bind_scope", tostring(s:to_module { A, C }))
    s[B]:compute_at(s[C], C.op.axis[1])
    assert.matches("extern_scope", tostring(s:to_module { A, C }))
  end)

  it("refuses an inlined input", function()
    local A = te.placeholder({ 6 }, F, "A")
    local B = te.compute({ 6 }, function(i) return A[{ i }] + 1.0 end, "B")
    local C = te.extern({ 6 }, { B }, function() return tir.Evaluate(0) end, { name = "C" })
    local s = te.create_schedule(C.op)
    s[B]:compute_inline()
    fails("schedule: stage 'B' is inlined, but 'C' reads it from memory", function()
      s:to_module { A, C }
    end)
  end)
end)

describe("a primitive is refused", function()
  local function refused(message, change, make)
    local p = (make or matmul)()
    local s = te.create_schedule(p.out.op)
    local ok, err = pcall(change, s, p)
    assert.is_false(ok)
    assert.matches(message, tostring(err))
    -- Nothing has changed: the steps before it are all there are.
    local before = s:copy()
    assert.equal(tostring(before), tostring(s))
    assert.is_true(pl.equal(before:to_module(p.args), s:to_module(p.args)))
  end

  it("on an axis that is used up, with its history", function()
    refused("step 2, vectorize of stage 'C': axis 'i' has already been split, by step 1 into "
      .. "'i.outer' and 'i.inner'; its loops are i.outer, i.inner, j, k", function(s, p)
      s[p.C]:split(p.C.op.axis[1], 4)
      s[p.C]:vectorize(p.C.op.axis[1])
    end)
    refused("axis 'j' has already been fused, by step 1 into 'i.j.fused'", function(s, p)
      s[p.C]:fuse(p.C.op.axis[1], p.C.op.axis[2])
      s[p.C]:unroll(p.C.op.axis[2])
    end)
  end)

  it("on an axis of another stage or schedule", function()
    refused("axis 'i' is not part of this stage: it belongs to stage 'C'", function(s, p)
      s[p.B]:split(p.C.op.axis[1], 4)
    end, chain)
    refused("axis 'i' is not part of the schedule", function(s, p)
      s[p.C]:split(matmul().C.op.axis[1], 4)
    end)
    refused("tensor 'C' is not part of the schedule", function(s) return s[matmul().C] end)
  end)

  it("with factors that are none", function()
    refused("a factor must be positive, got 0", function(s, p) s[p.C]:split(p.k, 0) end)
    refused("a factor must be positive, got %-2", function(s, p) s[p.C]:split(p.k, -2) end)
    refused("either factor or nparts is given, not both", function(s, p)
      s[p.C]:split(p.k, { factor = 2, nparts = 2 })
    end)
  end)

  it("where axes are no neighbours, or given twice", function()
    refused("only neighbouring axes can be fused: 'i' and 'k' are not", function(s, p)
      s[p.C]:fuse(p.C.op.axis[1], p.k)
    end)
    refused("the same axis 'k' cannot appear more than once", function(s, p)
      s[p.C]:reorder(p.k, p.k)
    end)
  end)

  it("where rounds depend on each other", function()
    refused("axis 'k' carries a dependence", function(s, p) s[p.C]:vectorize(p.k) end)
    refused("axis 'k' carries a dependence", function(s, p) s[p.C]:parallel(p.k) end)
  end)

  it("where a stage cannot be attached", function()
    refused("an output is computed at the root", function(s, p)
      s[p.C]:compute_at(s[p.B], p.B.op.axis[1])
    end, chain)
    refused("stage 'B' is computed inside of it already", function(s, p)
      s[p.B]:compute_at(s[p.B], p.B.op.axis[1])
    end, chain)
    refused("axis 'i' is not part of this stage: it belongs to stage 'B'", function(s, p)
      s[p.B]:compute_at(s[p.C], p.B.op.axis[1])
    end, chain)
  end)

  it("where nothing can be inlined", function()
    refused("an output is computed at the root", function(s, p) s[p.C]:compute_inline() end)
    refused("the stage is a placeholder", function(s, p) s[p.A]:compute_inline() end)
  end)

  it("in caches and factors", function()
    local x = te.placeholder({ 4, 2 }, F, "x")
    local state = te.placeholder({ 4, 2 }, F, "state")
    local first = te.compute({ 1, 2 }, function(_, m) return x[{ 0, m }] end, "first")
    local next_ = te.compute({ 4, 2 }, function(n, m)
      return state[{ n - 1, m }] + x[{ n, m }]
    end, "next")
    local sums = te.scan(first, next_, state)
    local u = te.create_schedule(sums.op)
    fails("writes into the tensor of a scan", function() u[next_]:double_buffer() end)
    u[u:cache_write(next_, "local")]:double_buffer()
    fails("part of a scan's round", function() u:to_module({ x, sums }, "main") end)
    local both, other = te.compute({ 4 }, function(n) return x[{ n, 0 }], x[{ n, 1 }] end, "both")
    local last = te.compute({ 4 }, function(n) return both[{ n }] + other[{ n }] end, "last")
    u = te.create_schedule(last.op)
    fails("several outputs cannot be a double buffer", function() u[both]:double_buffer() end)
    local fused = matmul()
    local t = te.create_schedule(fused.C.op)
    t[fused.C]:fuse(fused.C.op.axis[2], fused.k)
    fails("it is fused with a reduction axis", function() t:cache_write(fused.C, "local") end)
    refused("cannot find 'A' in the inputs of 'C'", function(s, p)
      s:cache_read(p.A, "local", { p.C })
    end, chain)
    refused("'C' is given twice", function(s, p) s:cache_read(p.A, "local", { p.C, p.C }) end)
    refused("axis 'i' is no axis of a reduction", function(s, p) s:rfactor(p.C, p.C.op.axis[1]) end)
    refused("factor_axis 5 is outside of the 2 dimensions", function(s, p)
      s:rfactor(p.C, p.k, 5)
    end)
    refused("an output cannot be a double buffer", function(s, p) s[p.C]:double_buffer() end)
    refused("only a scan has env_threads", function(s, p)
      s[p.C]:env_threads { te.thread_axis({ 0, 4 }, "threadIdx.x") }
    end)
  end)
end)

describe("lowering is refused", function()
  it("where a stage is computed in a loop that its reader is not in", function()
    local X = te.placeholder({ 4, 3 }, F, "X")
    local s1, s2 = te.placeholder({ 4, 3 }, F, "s1"), te.placeholder({ 4, 3 }, F, "s2")
    local function init(name)
      return te.compute({ 1, 3 }, function(_, i) return X[{ 0, i }] end, name)
    end
    local step = te.compute({ 4, 3 }, function(t, i) return s1[{ t - 1, i }] * 2 end, "step")
    local u1 = te.compute({ 4, 3 }, function(t, i) return step[{ t, i }] + 1 end, "u1")
    local u2 = te.compute({ 4, 3 }, function(t, i) return s2[{ t - 1, i }] + 1 end, "u2")
    local one = te.scan({ init "i1", init "i2" }, { u1, u2 }, { s1, s2 })
    local s = te.create_schedule(one.op)
    s[step]:compute_at(s[u2], u2.op.axis[2])
    fails("cannot find the producer 'step' along the loop nest that compute_at specifies for its "
      .. "consumer 'u1'", function() s:to_module { X, one, one.op:output(1) } end)
    s[step]:compute_at(s[u1], u1.op.axis[2])
    assert.matches("step", tostring(s:to_module { X, one, one.op:output(1) }))
  end)

  it("with arguments that are missing, foreign or given twice", function()
    local p = matmul()
    local s = te.create_schedule(p.C.op)
    fails("lower: the placeholder 'B' is read, but it is not among the arguments", function()
      s:to_module { p.A, p.C }
    end)
    fails("lower: argument 4 is given twice", function() s:to_module { p.A, p.B, p.C, p.A } end)
    fails("lower: argument 1 is a tensor of another schedule", function()
      s:to_module { matmul().C }
    end)
    fails("lower: the placeholder 'A' is read, but it is not among the arguments", function()
      s:to_module { matmul().A, p.B, p.C }
    end)
  end)

  it("with arguments that nothing reads", function()
    local A, B = te.placeholder({ 4 }, F, "A"), te.placeholder({ te.var "n", 3 }, F, "B")
    local C = te.compute({ 4 }, function(i) return A(i) + 1 end, "C")
    local mod = pl.lower(te.create_schedule(C.op), { args = { A, B, C }, name = "main" })
    local rows = { { 0.0, 0.0, 0.0 } }
    assert.same({ 2.0, 3.0, 4.0, 5.0 },
      tir.run(mod, { { 1.0, 2.0, 3.0, 4.0 }, rows, { 0.0, 0.0, 0.0, 0.0 } })[3]:to_table())
  end)
end)

describe("a trace", function()
  local function scheduled()
    local p = matmul()
    local s = te.create_schedule(p.C.op)
    local outer = s[p.C]:split(p.C.op.axis[1], 4)
    s[p.C]:bind(outer, te.thread_axis "blockIdx.x")
    local CL = s:cache_write(p.C, "local")
    s[CL]:compute_at(s[p.C], s[p.C].op.axis[1])
    return s, p
  end

  it("prints", function()
    local p = matmul()
    local s = te.create_schedule(p.C.op)
    local outer = s[p.C]:split(p.C.op.axis[1], 4)
    s[p.C]:parallel(outer)
    assert.equal("1  split C: i (factor 4) -> i.outer, i.inner\n2  parallel C: i.outer\n",
      tostring(s))
  end)

  it("is undone step by step", function()
    local s, p = scheduled()
    local texts = {}
    for i = 0, s:n_steps() do texts[i] = tostring(s:copy(i)) end
    local plain = te.create_schedule(p.C.op)
    while s:n_steps() > 0 do
      s:undo()
      assert.equal(texts[s:n_steps()], tostring(s))
    end
    assert.is_true(s == plain)
    assert.is_true(pl.equal(plain:to_module(p.args), s:to_module(p.args)))
    fails("te: the schedule has no step to take back", function() s:undo() end)
  end)

  it("replays to an equal schedule, with the same axes", function()
    local s, p = scheduled()
    local copy = s:copy()
    assert.is_true(copy == s)
    copy[p.C]:unroll(copy[p.C].op.axis[2])
    assert.is_false(copy == s)
  end)

  it("is JSON, both ways", function()
    local s, p = scheduled()
    local t = te.create_schedule(p.C.op):apply_json(s:to_json())
    assert.equal(tostring(s), tostring(t))
    assert.equal(s:to_json(), t:to_json())
    assert.is_true(t == s)
    assert.is_true(pl.equal(s:to_module(p.args), t:to_module(p.args)))
  end)

  it("is JSON with expressions in its steps", function()
    local n = te.var "n"
    local A = te.placeholder({ n }, F, "A")
    local B = te.compute({ n }, function(i) return A[{ i }] + 1.0 end, "B")
    local s = te.create_schedule(B.op)
    s[B]:split(B.op.axis[1], n // 2 + 1)
    s[B]:set_store_predicate(tir.lt(B.op.axis[1], n))
    local t = te.create_schedule(B.op):apply_json(s:to_json())
    assert.equal(s:to_json(), t:to_json())
    assert.is_true(pl.equal(s:to_module { A, B }, t:to_module { A, B }))
  end)

  it("is JSON with expressions of axes and sizes that have one name", function()
    local n, m = te.var "n", te.var "n"
    local A = te.placeholder({ n, m }, F, "A")
    local B = te.compute({ n, m }, function(i, j) return A[{ i, j }] + 1.0 end, "B")
    local C = te.compute({ n, m }, function(i, j) return B[{ i, j }] * 2 end, "C")
    local s = te.create_schedule(C.op)
    s[B]:set_store_predicate(te.all(tir.lt(B.op.axis[1], n), tir.lt(B.op.axis[2], m)))
    local t = te.create_schedule(C.op):apply_json(s:to_json())
    assert.equal(s:to_json(), t:to_json())
    assert.is_true(pl.equal(s:to_module { A, C }, t:to_module { A, C }))
    for number, message in pairs { ['"axes":{"i":99}'] = "'i' is no axis of the schedule",
      ['"sizes":{"i":7}'] = "'i' is no size of the schedule" } do
      fails(message, function()
        te.create_schedule(C.op):apply_json(('[{"primitive": "set_store_predicate", "stage": 1, '
          .. '"values": [{"expr": "i = T.int32()\\ni < 3", %s}]}]'):format(number))
      end)
    end
  end)

  it("that cannot be read leaves the schedule as it is", function()
    local s = scheduled()
    local before = tostring(s)
    for text, message in pairs {
      ['[{"primitive": "split", "stage": 2, "axes": [99], "values": [4, 0]}]'] = "not part of",
      ['[{"primitive": "splat"}]'] = "no primitive is called 'splat'",
      ['[{"primitive": "split"'] = "line 1, column 23: ',' or an end is expected",
      ['[{"primitive": "unroll", "stage": 2, "values": [{"expr": "z = T.int32()\\nz"}]}]'] =
        "the schedule has no variable 'z'",
      ["7"] = "a list of steps expected",
      ["[7]"] = "step 1: a step is an object",
    } do
      fails(message, function() s:apply_json(text) end)
      assert.equal(before, tostring(s))
    end
  end)

  it("is kept as a record", function()
    local s = scheduled()
    local schedules, names = s:schedule_record()
    assert.equal(s:n_steps() + 1, #schedules)
    assert.equal("vanilla", names[1])
    assert.is_true(schedules[#schedules] == s)
  end)

  it("of 2,000 stages is replayed in linear time", function()
    local A = te.placeholder({ 8 }, F, "A")
    local T = A
    for i = 1, 2000 do
      local S = T
      T = te.compute({ 8 }, function(x) return S[{ x }] + 1.0 end, "T" .. i)
    end
    local s = te.create_schedule(T.op)
    local result = tir.run(s:to_module { A, T }, { { 0, 1, 2, 3, 4, 5, 6, 7 },
      { 0, 0, 0, 0, 0, 0, 0, 0 } })
    assert.same({ 2000, 2001, 2002, 2003, 2004, 2005, 2006, 2007 }, result[2]:to_table())
  end)

  it("of an expression of 100,000 nodes does not recurse", function()
    local A = te.placeholder({ 8 }, F, "A")
    local B = te.compute({ 8 }, function(i)
      local sum = A[{ i }]
      for _ = 1, 50000 do sum = sum * 1.0 + A[{ i }] end
      return sum
    end, "B")
    local mod = te.create_schedule(B.op):to_module { A, B }
    assert.equal(100001, select(2, tostring(mod):gsub("A%[i%]", "")) * 2 - 1)
  end)
end)

describe("infer_bound", function()
  it("gives the range of each axis", function()
    local p = chain()
    local s = te.create_schedule(p.C.op)
    local outer, inner = s[p.C]:split(p.C.op.axis[1], 4)
    s[p.B]:compute_at(s[p.C], outer)
    local bounds = s:infer_bound()
    assert.equal(3, bounds(outer).extent.value)
    assert.equal(4, bounds(inner).extent.value)
    assert.equal(6, bounds(p.B.op.axis[1]).extent.value)
    assert.equal(8, bounds(p.B.op.axis[2]).extent.value)
  end)
end)

describe("rfactor", function()
  it("keeps a store predicate on the data axes", function()
    local s = keeps(matmul, function(s, p)
      s[p.C]:set_store_predicate(tir.GE(p.C.op.axis[2], 0))
      s:rfactor(p.C, (s[p.C]:split(p.k, 5)))
    end)
    assert.matches("set_store_predicate C", tostring(s))
  end)

  it("gives what threads compute the memory of these threads", function()
    for tag, scope in pairs { ["threadIdx.x"] = "local", ["blockIdx.x"] = "shared",
      vthread = "global" } do
      local A = te.placeholder({ 64 }, F, "A")
      local B = te.compute({ 64 }, function(i) return A(i) * 2 end, "B")
      local C = te.compute({ 64 }, function(i) return B(i) + 1 end, "C")
      local s = te.create_schedule(C.op)
      local outer = s[C]:split(C.op.axis[1], { nparts = 2 })
      s[C]:bind(outer, te.thread_axis(tag))
      s[B]:compute_at(s[C], outer)
      local text = tostring(pl.lower(s, { args = { A, C }, name = "main" }))
      assert.equal(scope, text:match 'T.allocate%(%[%d+%], "float32", "(%w*)"%)', tag)
    end
  end)

  it("fills no half ahead of what the same round computes", function()
    local A = te.placeholder({ 10 }, F, "A")
    local B = te.compute({ 10 }, function(i) return A(i) * 2 end, "B")
    local C = te.compute({ 9 }, function(i) return B(i) + B(i + 1) end, "C")
    local D = te.compute({ 9 }, function(i) return C(i) + 1 end, "D")
    local s = te.create_schedule(D.op)
    s[B]:compute_at(s[D], D.op.axis[1])
    s[C]:compute_at(s[D], D.op.axis[1])
    s[C]:double_buffer()
    local rows = (data({ 10 }, 1))
    local out = tir.run(pl.lower(s, { args = { A, D }, name = "main" }),
      { rows, (data({ 9 }, 2)) })[2]:to_table()
    for i = 1, 9 do assert.equal(2 * rows[i] + 2 * rows[i + 1] + 1, out[i]) end
    -- Of the input, a round ahead may be read.
    s[B]:compute_root()
    assert.truthy(tostring(pl.lower(s, { args = { A, D }, name = "main" }))
      :find("double_buffer_write", 1, true))
  end)
end)
