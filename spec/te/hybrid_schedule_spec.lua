-- Schedules of hybrid functions: the loops of a Lua function are the axes of its stage.

local keeps = require "spec.te.keeps"
local pl = require "perilune"

local te = pl.te
local F = "float32"
local fails = keeps.fails

-- The schedule computes what the default one does.
local function same(s, args)
  local expected = pl.lower(te.create_schedule(args[#args].op), { args = args })
  assert.same(keeps.run(expected, args), keeps.run(pl.lower(s, { args = args }), args))
end

-- Two nests: all elements, then of the rows from `2` on those up to the diagonal.
local function triangle()
  local a = te.placeholder({ 10 }, F, "a")
  local c = te.hybrid.script(function(h, x)
    local out = h.output_tensor({ 10, 10 }, F, "out")
    for i in h.range(10, "i") do
      for j in h.range(10, "j") do out[{ i, j }] = x[j] end
    end
    for k in h.range(2, 10, "k") do
      local t = h.allocate({ 1 }, F, "local", "t")
      t[0] = x[k] * 2
      for l in h.range(k, "l") do
        for m in h.range(2, "m") do out[{ k, l }] = out[{ k, l }] + t[0] * (m + 1) end
      end
    end
    return out
  end, { name = "triangle" })(a)
  return a, c
end

local function axes_of(c)
  local axes = {}
  for _, axis in ipairs(c.op.axis) do axes[axis.var.name] = axis end
  return axes
end

local function text_of(s, args) return tostring(s:to_module(args, "main")) end

describe("a schedule of a hybrid function", function()
  local a, c, s, axis

  before_each(function()
    a, c = triangle()
    s, axis = te.create_schedule(c.op), axes_of(c)
  end)

  it("has its loops as axes, in the order in which they are written", function()
    assert.equal("HybridOp", c.op.kind)
    assert.same({ "i", "j", "k", "l", "m" }, keeps.names_of(c.op.axis))
    assert.same({ "i", "j", "k", "l", "m" }, keeps.names_of(s[c].leaf_iter_vars))
    assert.same({ "10", "10", "8", "k", "2" }, keeps.extents(s, c))
  end)

  it("leaves alone what no step changes", function()
    local before = text_of(s, { a, c })
    s[c]:unroll(axis.m)
    local after = text_of(s, { a, c })
    assert.matches("for i, j in T.grid%(10, 10%)", after)
    assert.matches("for k in range%(2, 10%)", after)
    assert.matches("T.unroll%(2%)", after)
    s:undo()
    assert.equal(before, text_of(s, { a, c }))
  end)

  it("splits loops that begin anywhere, with guards around what is inside", function()
    s[c]:split(axis.k, 3)
    s[c]:split(axis.l, { nparts = 3 })
    same(s, { a, c })
    assert.matches("T.likely", text_of(s, { a, c }))
  end)

  it("fuses and reorders the loops of a nest", function()
    local fused = s[c]:fuse(axis.i, axis.j)
    local outer, inner = s[c]:split(fused, 7)
    s[c]:reorder(inner, outer)
    s[c]:unroll(outer)
    assert.same({ "i.j.fused.inner", "i.j.fused.outer", "k", "l", "m" },
      keeps.names_of(s[c].leaf_iter_vars))
    same(s, { a, c })
    s[c]:fuse(axis.l, axis.m)
    same(s, { a, c })
  end)

  it("vectorizes, runs in parallel, binds and annotates loops", function()
    local _, inner = s[c]:split(axis.j, 5)
    s[c]:vectorize(inner)
    s[c]:parallel(axis.i)
    s[c]:bind(axis.m, te.thread_axis "vthread")
    s[c]:pragma(axis.l, "auto_unroll_max_step", 4)
    same(s, { a, c })
    local text = text_of(s, { a, c })
    assert.matches("T.vectorized%(5%)", text)
    assert.matches("T.parallel%(10%)", text)
    assert.matches("pragma_auto_unroll_max_step", text)
  end)

  it("opens a thread in each nest that is bound to it", function()
    s[c]:bind(axis.i, te.thread_axis "threadIdx.x")
    s[c]:bind(axis.j, te.thread_axis "blockIdx.x")
    s[c]:reorder(axis.m, axis.l)
    s[c]:bind(axis.m, te.thread_axis "threadIdx.x")
    assert.equal(2, select(2, text_of(s, { a, c }):gsub('"threadIdx.x"', "")))
  end)

  it("is a value: it prints, is replayed from JSON, copied and undone", function()
    local outer, inner = s[c]:split(axis.k, 4)
    s[c]:pragma(inner, "x", 1)
    s[c]:unroll(outer)
    assert.matches("split triangle: k", tostring(s))
    local again = te.create_schedule(c.op):apply_json(s:to_json())
    assert.is_true(again == s)
    assert.equal(text_of(s, { a, c }), text_of(again, { a, c }))
    while s:n_steps() > 0 do s:undo() end
    assert.equal(text_of(te.create_schedule(c.op), { a, c }), text_of(s, { a, c }))
  end)

  it("refuses what a loop of a statement cannot be, with stage and axis", function()
    local b = te.compute({ 10 }, function(i) return a[{ i }] + 1 end, "b")
    local f = te.hybrid.script(function(h, x)
      local out = h.output_tensor({ 10 }, F)
      for i in h.parallel(10, "p") do out[i] = x[i] end
      return out
    end, { name = "copy" })
    local d = f(b)
    local t = te.create_schedule(d.op)
    local p = d.op.axis[1]
    fails("compute_at of stage 'b': nothing is computed in loop 'p' of 'copy'", t[b].compute_at,
      t[b], t[d], p)
    fails("split of stage 'copy': axis 'p' of type Parallelized cannot be split", t[d].split, t[d],
      p, 2)
    fails("vectorize of stage 'copy': axis 'p' is written as another loop than a serial",
      t[d].vectorize, t[d], p)
    fails("prefetch of stage 'copy': axis 'p' is a loop of a statement", t[d].prefetch, t[d], b, p)
    fails("storage_align of stage 'copy': axis 'p' is no dimension", t[d].storage_align, t[d], p,
      2)
    fails("set_store_predicate of stage 'copy': its stores are those of its statement",
      t[d].set_store_predicate, t[d], true)
    fails("fuse of stage 'triangle': axes 'j' and 'k' are loops with other statements between",
      s[c].fuse, s[c], axis.j, axis.k)
    fails("reorder of stage 'triangle': axes 'l' and 'k' are loops with other", s[c].reorder, s[c],
      axis.l, axis.k)
    fails("fuse of stage 'triangle': its loops are those of its statement", s[c].fuse, s[c])
    fails("only a compute", s.cache_write, s, c, "local")
    assert.equal(0, s:n_steps())
  end)

  it("keeps a loop inside of the one on which its range depends", function()
    local g = te.hybrid.script(function(h, x)
      local out = h.output_tensor({ 6, 6 }, F)
      for i in h.range(6, "i") do
        for j in h.range(i + 1, "j") do
          for k in h.range(2, "k") do out[{ i, j }] = x[j] * k end
        end
      end
      return out
    end, { name = "lower" })
    local x = te.placeholder({ 6 }, F, "x")
    local y = g(x)
    local t = te.create_schedule(y.op)
    local i, j, k = table.unpack(y.op.axis)
    fails("reorder of stage 'lower': the range of axis 'j' depends on 'i'", t[y].reorder, t[y], j,
      i)
    fails("fuse of stage 'lower': the range of axis 'j' depends on 'i', so that", t[y].fuse, t[y],
      i, j)
    local outer, inner = t[y]:split(i, 4)
    fails("the range of axis 'j' depends on 'i.inner', which must stay outside", t[y].reorder, t[y],
      j, inner)
    t[y]:reorder(k, j)
    t[y]:reorder(inner, outer)
    assert.same({ "i.inner", "i.outer", "k", "j" }, keeps.names_of(t[y].leaf_iter_vars))
    same(t, { x, y })
  end)

  it("computes as it is written where threads are written", function()
    local x = te.placeholder({ 8 }, F, "x")
    local y = te.hybrid.script(function(h, from)
      local out = h.output_tensor({ 8 }, F)
      for tx in h.bind("threadIdx.x", 4) do
        for i in h.range(2, "i") do out[tx * 2 + i] = from[i * 4 + tx] end
      end
      return out
    end)(x)
    assert.same({ "i" }, keeps.names_of(y.op.axis))
    local t = te.create_schedule(y.op)
    t[y]:unroll(y.op.axis[1])
    assert.matches('T.launch_thread%("threadIdx.x", 4%)', text_of(t, { x, y }))
    fails("bind needs the tag of a thread", te.hybrid.script(function(h) h.bind(4) end), x)
  end)

  it("has many nests", function()
    local n = 300
    local x = te.placeholder({ 8 }, F, "x")
    local y = te.hybrid.script(function(h, from)
      local out = h.output_tensor({ n, 8 }, F)
      for i = 0, n - 1 do
        for j in h.range(8, "j" .. i) do out[{ i, j }] = from[j] end
      end
      return out
    end)(x)
    local t = te.create_schedule(y.op)
    for _, j in ipairs(y.op.axis) do t[y]:split(j, 3) end
    assert.equal(n, select(2, text_of(t, { x, y }):gsub("likely", "")))
  end)
end)
