-- s[C]:tensorize: the intrinsic's statements compute what the loops did, and what does not fit is
-- refused. The names in brackets are those of TVM's tests.

local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F = "float32"

local function fails(message, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(message, tostring(err))
end

local function fill(shape, seed)
  local state = seed
  local function build(level)
    local rows = {}
    for i = 1, shape[level] do
      if level < #shape then
        rows[i] = build(level + 1)
      else
        state = (state * 75 + 74) % 65537
        rows[i] = state % 9 - 4.0
      end
    end
    return rows
  end
  return build(1)
end

local function values_of(args)
  local values = {}
  for i, tensor in ipairs(args) do
    local shape = {}
    for k, dim in ipairs(tensor.shape) do shape[k] = dim.value end
    values[i] = fill(shape, i)
  end
  return values
end

local function run(schedule, args)
  local mod = pl.lower(schedule, { args = args })
  return tir.run(mod, values_of(args), { uninitialized = "error" })[#args]:to_table()
end

-- The schedule computes what the default one does.
local function keeps(schedule, args)
  local default = te.create_schedule(args[#args].op)
  assert.same(run(default, args), run(schedule, args))
end

-- z = x + y over n elements, as a loop.
local function intrin_vadd(n)
  local x, y = te.placeholder({ n }, F, "vx"), te.placeholder({ n }, F, "vy")
  local z = te.compute({ n }, function(i) return x[{ i }] + y[{ i }] end, "vz")
  return te.decl_tensor_intrin(z.op, function(ins, outs)
    local i = tir.Var "i"
    return tir.For(i, 0, n, "serial", outs[1]:store(ins[1]:load(i) + ins[2]:load(i), i))
  end, { name = "vadd" })
end

local function add(n)
  local x, y = te.placeholder({ n }, F, "x"), te.placeholder({ n }, F, "y")
  return x, y, te.compute({ n }, function(i) return x[{ i }] + y[{ i }] end, "z")
end

-- c[i] = sum of a[k] * b[i, k]. `kind`: "reset", "no_reset", "body".
local function intrin_gemv(m, l, kind)
  local a, b = te.placeholder({ l }, F, "a"), te.placeholder({ m, l }, F, "b")
  local k = te.reduce_axis({ 0, l }, "k")
  local c = te.compute({ m }, function(i) return te.sum(a[{ k }] * b[{ i, k }], k) end, "c")
  local W = tir.decl_buffer(b.shape, F, "W", { offset_factor = 1, strides = { tir.Var "ldw", 1 } })
  return te.decl_tensor_intrin(c.op, function(ins, outs)
    local function zero()
      local i = tir.Var "i"
      return tir.For(i, 0, m, "serial", outs[1]:store(0.0, i))
    end
    local function update()
      local i, j = tir.Var "i", tir.Var "j"
      return tir.For(i, 0, m, "serial", tir.For(j, 0, l, "serial",
        outs[1]:store(outs[1]:load(i) + ins[1]:load(j) * ins[2]:load(i, j), i)))
    end
    local body = tir.SeqStmt { zero(), update() }
    if kind == "body" then return body end
    return body, kind == "reset" and zero() or nil, update()
  end, { name = "gemv", binds = { [b] = W } })
end

local function product(n, m, l)
  local A, B = te.placeholder({ n, l }, F, "A"), te.placeholder({ m, l }, F, "B")
  local k = te.reduce_axis({ 0, l }, "k")
  local C = te.compute({ n, m }, function(i, j)
    return te.sum(A[{ i, k }] * B[{ j, k }], k)
  end, "C")
  return A, B, C, k
end

describe("tensorize keeps results", function()
  it("of vectors [test_tensorize_vadd]", function()
    local x, y, z = add(128)
    local s = te.create_schedule(z.op)
    local outer, inner = s[z]:split(z.op.axis[1], 16)
    s[z]:tensorize(inner, intrin_vadd(16))
    keeps(s, { x, y, z })
    local text = tostring(s:to_module({ x, y, z }, "main"))
    assert.matches('T.attr%(%[vx, x%], "buffer_bind_scope", T.tvm_tuple%(i_outer %* 16, 16%)%)',
      text)
    assert.matches("tensorize z: \"vadd\" i.inner", tostring(s))
    local other = te.create_schedule(z.op)
    s[z]:pragma(outer, "once")
    assert.is_false(s == other)
  end)

  it("of a cache of tiles [test_tensorize_vadd]", function()
    local x, y, z = add(128)
    local s = te.create_schedule(z.op)
    s[z]:split(z.op.axis[1], 16)
    local cache = s:cache_write(z, "global")
    s[cache]:tensorize(s[cache].op.axis[2], intrin_vadd(16))
    local text = tostring(s:to_module({ x, y, z }, "main"))
    assert.matches("%[vx, x%].-T.tvm_tuple%(i_outer_c %* 16, 16%)", text)
    assert.matches("z_global%], .-T.tvm_tuple%(i_outer_c, 1, 0, 16%)", text)
    keeps(s, { x, y, z })
  end)

  it("of rows, with the reduction inside [test_tensorize_matmul]", function()
    local A, B, C = product(6, 8, 5)
    local s = te.create_schedule(C.op)
    local _, _, _, xi = s[C]:tile(C.op.axis[1], C.op.axis[2], 1, 4)
    s[C]:tensorize(xi, intrin_gemv(4, 5, "body"))
    keeps(s, { A, B, C })
  end)

  for _, kind in ipairs { "reset", "no_reset" } do
    it(("of rows, with a split reduction, %s [test_tensorize_matmul]"):format(kind), function()
      local A, B, C, k = product(6, 8, 12)
      local s = te.create_schedule(C.op)
      local yo, xo, yi, xi = s[C]:tile(C.op.axis[1], C.op.axis[2], 1, 4)
      local ko, ki = s[C]:split(k, 3)
      s[C]:reorder(yo, ko, xo, yi, xi, ki)
      s[C]:tensorize(xi, intrin_gemv(4, 3, kind))
      keeps(s, { A, B, C })
    end)

    it(("with two reduction loops outside, %s [test_tensorize_matmul]"):format(kind), function()
      local A, B, C, k = product(2, 8, 12)
      local s = te.create_schedule(C.op)
      local yo, xo, yi, xi = s[C]:tile(C.op.axis[1], C.op.axis[2], 1, 4)
      local ko, ki = s[C]:split(k, 3)
      local koo, koi = s[C]:split(ko, 2)
      s[C]:reorder(yo, koo, xo, koi, yi, xi, ki)
      s[C]:tensorize(xi, intrin_gemv(4, 3, kind))
      keeps(s, { A, B, C })
    end)
  end

  it("with dimensions and reductions fused to one loop outside", function()
    for _, kind in ipairs { "reset", "no_reset" } do
      local A, B, C, k = product(2, 8, 12)
      local s = te.create_schedule(C.op)
      local yo, xo, yi, xi = s[C]:tile(C.op.axis[1], C.op.axis[2], 1, 4)
      local ko, ki = s[C]:split(k, 3)
      s[C]:reorder(yo, xo, ko, yi, xi, ki)
      s[C]:fuse(xo, ko)
      s[C]:tensorize(xi, intrin_gemv(4, 3, kind))
      keeps(s, { A, B, C })
    end
  end)

  it("of divided indices [test_tensorize_op]", function()
    local function body(A)
      return function(i, j)
        return A[{ tir.indexdiv(j, 3) + tir.indexmod(i, 3), tir.indexmod(j, 3)
          + tir.indexdiv(i, 3) }]
      end
    end
    local x = te.placeholder({ 5, 5 }, F, "x")
    local y = te.compute({ 9, 9 }, body(x), "y")
    local intrin = te.decl_tensor_intrin(y.op, function(ins, outs)
      local i, j = tir.Var "i", tir.Var "j"
      return tir.For(i, 0, 9, "serial", tir.For(j, 0, 9, "serial", outs[1]:store(ins[1]:load(
        tir.indexdiv(j, 3) + tir.indexmod(i, 3), tir.indexmod(j, 3) + tir.indexdiv(i, 3)), i, j)))
    end, { name = "unroll", default_buffer_params = { offset_factor = 1 } })
    local A = te.placeholder({ 5, 5 }, F, "A")
    local B = te.compute({ 9, 9 }, body(A), "B")
    local s = te.create_schedule(B.op)
    local _, _, xi = s[B]:tile(B.op.axis[1], B.op.axis[2], 9, 9)
    s[B]:tensorize(xi, intrin)
    keeps(s, { A, B })
  end)

  it("of a stage that is computed in a loop of another", function()
    local A = te.placeholder({ 32 }, F, "A")
    local B = te.compute({ 32 }, function(i) return A[{ i }] + A[{ i }] end, "B")
    local D = te.compute({ 32 }, function(i) return B[{ i }] * 2 end, "D")
    local x = te.placeholder({ 8 }, F, "x")
    local y = te.compute({ 8 }, function(i) return x[{ i }] + x[{ i }] end, "y")
    local twice = te.decl_tensor_intrin(y.op, function(ins, outs)
      local i = tir.Var "i"
      return tir.For(i, 0, 8, "serial", outs[1]:store(ins[1]:load(i) + ins[1]:load(i), i))
    end)
    local s = te.create_schedule(D.op)
    local outer = s[D]:split(D.op.axis[1], 8)
    s[B]:compute_at(s[D], outer)
    s[B]:tensorize(B.op.axis[1], twice)
    keeps(s, { A, D })
  end)

  it("of a reduction to several values", function()
    local function pair(A, k)
      local reducer = te.comm_reducer(function(x, y)
        return { x[1] + y[1], te.max(x[2], y[2]) }
      end, function(t0, t1) return { tir.const(0, t0), te.min_value(t1) } end)
      return function(i) return reducer({ A[{ i, k }], A[{ i, k }] }, k) end
    end
    local x, k = te.placeholder({ 2, 4 }, F, "x"), te.reduce_axis({ 0, 4 }, "k")
    local y = te.compute({ 2 }, pair(x, k), "y")
    local intrin = te.decl_tensor_intrin(y.op, function(ins, outs)
      local i, j = tir.Var "i", tir.Var "j"
      return tir.For(i, 0, 2, "serial", tir.SeqStmt {
        outs[1]:store(0.0, i), outs[2]:store(te.min_value(F), i),
        tir.For(j, 0, 4, "serial", tir.SeqStmt {
          outs[1]:store(outs[1]:load(i) + ins[1]:load(i, j), i),
          outs[2]:store(te.max(outs[2]:load(i), ins[1]:load(i, j)), i) }) })
    end)
    local A, kA = te.placeholder({ 6, 4 }, F, "A"), te.reduce_axis({ 0, 4 }, "k")
    local S, M = te.compute({ 6 }, pair(A, kA), "B")
    local s = te.create_schedule(S.op)
    local _, inner = s[S]:split(S.op.axis[1], 2)
    s[S]:tensorize(inner, intrin)
    keeps(s, { A, S, M })
  end)
end)

describe("tensorize with a C function", function()
  it("calls it in generated code", function()
    local path = os.tmpname() .. ".h"
    local file = assert(io.open(path, "w"))
    file:write [[
#include <stdint.h>
static int32_t clear_row(void *c, int32_t n) {
  for (int32_t i = 0; i < n; i++) ((float *)c)[i] = 0;
  return 0;
}
static int32_t add_product(void *a, void *w, void *c, int32_t ldw) {
  for (int32_t i = 0; i < 4; i++)
    for (int32_t k = 0; k < 3; k++)
      ((float *)c)[i] += ((float *)a)[k] * ((float *)w)[i * ldw + k];
  return 0;
}
]]
    file:close()
    local a, b = te.placeholder({ 3 }, F, "a"), te.placeholder({ 4, 3 }, F, "b")
    local kk = te.reduce_axis({ 0, 3 }, "k")
    local c = te.compute({ 4 }, function(i) return te.sum(a[{ kk }] * b[{ i, kk }], kk) end, "c")
    local W = tir.decl_buffer(b.shape, F, "W",
      { offset_factor = 1, strides = { tir.Var "ldw", 1 } })
    local intrin = te.decl_tensor_intrin(c.op, function(ins, outs)
      local function call(name, ...) return tir.call_extern("int32", name, ...) end
      return nil, call("clear_row", outs[1]:access_ptr("w"), 4), call("add_product",
        ins[1]:access_ptr("r"), ins[2]:access_ptr("r"), outs[1]:access_ptr("rw"), W.strides[1])
    end, { name = "gemv", binds = { [b] = W } })
    local A, B, C, k = product(6, 8, 12)
    local s = te.create_schedule(C.op)
    local yo, xo, yi, xi = s[C]:tile(C.op.axis[1], C.op.axis[2], 1, 4)
    local ko, ki = s[C]:split(k, 3)
    s[C]:reorder(yo, ko, xo, yi, xi, ki)
    s[C]:tensorize(xi, intrin)
    local built = pl.build(pl.lower(s, { args = { A, B, C } }),
      { target = "c", flags = { "-include", path } })
    local values = values_of { A, B, C }
    local results = { built.main(pl.tensor(values[1]), pl.tensor(values[2]),
      pl.tensor(values[3])) }
    if type(results[1]) == "table" then results = results[1] end
    os.remove(path)
    assert.same(run(te.create_schedule(C.op), { A, B, C }), results[3]:to_table())
  end)
end)

describe("tensorize refuses", function()
  local function lowered(make)
    return function()
      local s, args = make()
      return s:to_module(args, "main")
    end
  end

  local function split_add(n, factor, intrin, axis)
    return lowered(function()
      local x, y, z = add(n)
      local s = te.create_schedule(z.op)
      local axes = { s[z]:split(z.op.axis[1], factor) }
      s[z]:tensorize(axes[axis or 2], intrin)
      return s, { x, y, z }
    end)
  end

  it("regions of another size", function()
    fails("input dimension mismatch with tensor intrin: of 'x' expected shape=%(16%), given "
      .. "region=%(8%)", split_add(128, 8, intrin_vadd(16)))
    fails("axis 'i.outer' with 'vadd'", split_add(128, 16, intrin_vadd(16), 1))
  end)

  it("loops under a guard", function()
    fails("split condition T.likely%(.*< 129%) relies on var defined inside "
      .. "tensorize scope", split_add(129, 16, intrin_vadd(16)))
  end)

  it("other expressions, and other dtypes", function()
    local x, y = te.placeholder({ 128 }, F, "x"), te.placeholder({ 128 }, F, "y")
    local z = te.compute({ 128 }, function(i) return x[{ i }] * y[{ i }] end, "z")
    local t = te.create_schedule(z.op)
    local _, inner = t[z]:split(z.op.axis[1], 16)
    t[z]:tensorize(inner, intrin_vadd(16))
    fails("failed to match the compute with TensorIntrin's declaration provided= vx%[i%] %* "
      .. "vy%[i%], intrin= vx%[i%] %+ vy%[i%]", t.to_module, t, { x, y, z }, "main")
    local u, v = te.placeholder({ 16 }, "int32", "u"), te.placeholder({ 16 }, "int32", "v")
    local w = te.compute({ 16 }, function(i) return u[{ i }] + v[{ i }] end, "w")
    local s = te.create_schedule(w.op)
    s[w]:tensorize(w.op.axis[1], intrin_vadd(16))
    fails("data type with TensorIntrin's declaration provided=int32, intrin=float32",
      s.to_module, s, { u, v, w }, "main")
  end)

  it("another number of tensors and of outputs", function()
    local x = te.placeholder({ 16 }, F, "x")
    local z = te.compute({ 16 }, function(i) return x[{ i }] + 1 end, "z")
    local s = te.create_schedule(z.op)
    s[z]:tensorize(z.op.axis[1], intrin_vadd(16))
    fails("input size mismatch", s.to_module, s, { x, z }, "main")
    local P, Q = te.compute({ 16 }, function(i) return x[{ i }] + 1, x[{ i }] * 2 end, "P")
    s = te.create_schedule(P.op)
    s[P]:tensorize(P.op.axis[1], intrin_vadd(16))
    fails("mismatch: the intrinsic", s.to_module, s, { x, P, Q }, "main")
  end)

  it("two points, threads inside, and stages inside", function()
    local x, y, z = add(128)
    local s = te.create_schedule(z.op)
    local outer, inner = s[z]:split(z.op.axis[1], 16)
    s[z]:tensorize(inner, intrin_vadd(16))
    s[z]:tensorize(outer, intrin_vadd(128))
    fails("do not allow two tensorized point", s.to_module, s, { x, y, z }, "main")
    s = te.create_schedule(z.op)
    outer, inner = s[z]:split(z.op.axis[1], 16)
    s[z]:tensorize(outer, intrin_vadd(128))
    s[z]:bind(inner, te.thread_axis "threadIdx.x")
    fails("do not allow thread in tensorize scope", s.to_module, s, { x, y, z }, "main")
    fails("is bound to a thread", function() s[z]:tensorize(inner, intrin_vadd(16)) end)
    s = te.create_schedule(z.op)
    local cache = s:cache_read(x, "local", { z })
    outer, inner = s[z]:split(z.op.axis[1], 16)
    s[z]:tensorize(outer, intrin_vadd(128))
    s[cache]:compute_at(s[z], inner)
    fails("did not find the attachment point of stage 'x.local'", s.to_module, s, { x, y, z },
      "main")
  end)

  it("reductions of an intrinsic that has no such statement", function()
    local function split(kind, guard)
      return lowered(function()
        local A, B, C, k = product(6, 8, guard and 11 or 12)
        local s = te.create_schedule(C.op)
        local yo, xo, yi, xi = s[C]:tile(C.op.axis[1], C.op.axis[2], 1, 4)
        local ko, ki = s[C]:split(k, 3)
        s[C]:reorder(yo, ko, xo, yi, xi, ki)
        s[C]:tensorize(xi, intrin_gemv(4, 3, kind))
        return s, { A, B, C }
      end)
    end
    fails("the reduction update op is not defined", split "body")
    fails("relies on var defined inside tensorize scope", split("reset", true))
    local A, B, C = product(6, 8, 5)
    local s = te.create_schedule(C.op)
    local _, _, _, xi = s[C]:tile(C.op.axis[1], C.op.axis[2], 1, 4)
    s[C]:tensorize(xi, intrin_gemv(4, 4, "body"))
    fails("mismatch with tensor intrin", s.to_module, s, { A, B, C }, "main")
  end)

  it("a store predicate of the loops of the intrinsic", function()
    local A, B = te.placeholder({ 8 }, F, "A"), te.placeholder({ 8 }, F, "B")
    local C = te.compute({ 8 }, function(i) return A[{ i }] + B[{ i }] end, "C")
    local x, y = te.placeholder({ 4 }, F, "x"), te.placeholder({ 4 }, F, "y")
    local z = te.compute({ 4 }, function(i) return x[{ i }] + y[{ i }] end, "z")
    local intrin = te.decl_tensor_intrin(z.op, function(_, outs)
      return tir.call_packed("vadd", outs[1].data)
    end)
    for _, outer in ipairs { true, false } do
      local s = te.create_schedule(C.op)
      local xo, xi = s[C]:split(C.op.axis[1], 4)
      s[C]:tensorize(xi, intrin)
      s[C]:set_store_predicate(tir.LT(outer and xo or C.op.axis[1], 1))
      if outer then
        assert.matches("if i_outer < 1", tostring(s:to_module({ A, B, C }, "main")))
      else
        fails("relies on var defined inside tensorize scope", s.to_module, s, { A, B, C }, "main")
      end
    end
  end)

  it("what is no intrinsic", function()
    local x, _, z = add(16)
    local s = te.create_schedule(z.op)
    fails("an intrinsic is expected", function() s[z]:tensorize(z.op.axis[1], "vadd") end)
    fails("only support compute intrinsic", te.decl_tensor_intrin, x.op, function() end)
    local y = te.compute({ 16 }, function(i) return z[{ i }] end, "y")
    fails("do not yet support composition op: 'z'", te.decl_tensor_intrin, y.op, function() end)
    fails("returned no statement", te.decl_tensor_intrin, z.op, function() end)
    fails("must be a statement", te.decl_tensor_intrin, z.op, function() return 1 end)
    fails("there is no option", te.decl_tensor_intrin, z.op, function() end, { bind = {} })
    fails("a mask is", function() tir.decl_buffer({ 4 }, F):access_ptr "x" end)
  end)
end)

describe("the trace of a tensorized schedule", function()
  it("is undone, copied, and JSON, which needs the intrinsic again", function()
    local x, y, z = add(32)
    local vadd = intrin_vadd(16)
    local s = te.create_schedule(z.op)
    local _, inner = s[z]:split(z.op.axis[1], 16)
    local plain = tostring(s:to_module({ x, y, z }, "main"))
    s[z]:tensorize(inner, vadd)
    local text = s:to_json()
    local again = te.create_schedule(z.op)
    fails("tensorizes with 'vadd', which is not among the intrinsics", again.apply_json, again,
      text)
    again:apply_json(text, { vadd })
    assert.equal(s, again)
    assert.equal(tostring(s:copy():to_module({ x, y, z }, "main")),
      tostring(again:to_module({ x, y, z }, "main")))
    s:undo()
    assert.equal(plain, tostring(s:to_module({ x, y, z }, "main")))
  end)
end)
