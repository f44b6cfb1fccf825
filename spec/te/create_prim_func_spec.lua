-- luacheck: no max line length
local pl = require "perilune"
local te, tir = pl.te, pl.tir

-- A graph of tensors is printed byte by byte as TVM 0.14 prints its PrimFunc.
local function prints(args, expected)
  local fn = te.create_prim_func(args)
  assert.is_true(tir.verify_well_formed(fn))
  assert.equal("# from tvm.script import tir as T\n\n@T.prim_func\n" .. expected,
    tostring(fn) .. "\n")
  local read = assert(tir.parse(tostring(fn)))
  assert.is_true(pl.equal(fn, read.functions.main))
  return fn
end

-- The same tensors by a schedule of te compute the same.
local function computes(args, outputs)
  local ops = {}
  for i, tensor in ipairs(outputs) do ops[i] = tensor.op end
  local loops = te.create_schedule(ops):to_module(args, "main").functions.main
  assert(tir.check(loops, te.create_prim_func(args)))
end

local function matmul(n)
  local A, B = te.placeholder({ n, n }, "float32", "A"), te.placeholder({ n, n }, "float32", "B")
  local k = te.reduce_axis({ 0, n }, "k")
  local C = te.compute({ n, n }, function(i, j)
    return te.sum(A[{ i, k.var }] * B[{ k.var, j }], k)
  end, "C")
  return A, B, C
end

describe("te.create_prim_func", function()
  it("makes a block of a reduction, and buffers of intermediates", function()
    local A, B, C = matmul(16)
    local D = te.compute({ 16, 16 }, function(i, j) return C[{ i, j }] + 1.0 end, "D")
    prints({ A, B, D }, [[
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    C = T.alloc_buffer((16, 16))
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(C[v_i, v_j])
            with T.init():
                C[v_i, v_j] = T.float32(0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
    for i, j in T.grid(16, 16):
        with T.block("D"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(C[v_i, v_j])
            T.writes(D[v_i, v_j])
            D[v_i, v_j] = C[v_i, v_j] + T.float32(1)
]])
    computes({ A, B, D }, { D })
  end)

  it("computes the outputs of a reduction together", function()
    local m, n = te.var "m", te.var "n"
    local idx, val = te.placeholder({ m, n }, "int32", "idx"),
      te.placeholder({ m, n }, "float32", "val")
    local argmax = te.comm_reducer(function(x, y)
      local first = tir.ge(x[2], y[2])
      return { tir.Select(first, x[1], y[1]), tir.Select(first, x[2], y[2]) }
    end, function(t0, t1) return { tir.const(-1, t0), te.min_value(t1) } end, "argmax")
    local k = te.reduce_axis({ 0, n }, "k")
    local T0, T1 = te.compute({ m }, function(i)
      return argmax({ idx[{ i, k.var }], val[{ i, k.var }] }, k)
    end, "argmax")
    prints({ idx, val, T0, T1 }, [[
def main(var_idx: T.handle, var_val: T.handle, var_argmax_v0: T.handle, var_argmax_v1: T.handle):
    T.func_attr({"tir.noalias": T.bool(True)})
    m, n = T.int32(), T.int32()
    idx = T.match_buffer(var_idx, (m, n), "int32")
    val = T.match_buffer(var_val, (m, n))
    argmax_v0 = T.match_buffer(var_argmax_v0, (m,), "int32")
    argmax_v1 = T.match_buffer(var_argmax_v1, (m,))
    # with T.block("root"):
    for i, k in T.grid(m, n):
        with T.block("argmax"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            T.reads(val[v_i, v_k], idx[v_i, v_k])
            T.writes(argmax_v0[v_i], argmax_v1[v_i])
            with T.init():
                argmax_v0[v_i] = -1
                argmax_v1[v_i] = T.float32(-3.4028234663852886e+38)
            v_argmax_v0: T.int32 = T.Select(argmax_v1[v_i] >= val[v_i, v_k], argmax_v0[v_i], idx[v_i, v_k])
            v_argmax_v1: T.float32 = T.Select(argmax_v1[v_i] >= val[v_i, v_k], argmax_v1[v_i], val[v_i, v_k])
            argmax_v0[v_i] = v_argmax_v0
            argmax_v1[v_i] = v_argmax_v1
]])
    computes({ idx, val, T0, T1 }, { T0 })
  end)

  it("makes blocks of a convolution and of its padding", function()
    local X = te.placeholder({ 1, 2, 6, 6 }, "float32", "X")
    local W = te.placeholder({ 4, 2, 3, 3 }, "float32", "W")
    local pad = te.compute({ 1, 2, 8, 8 }, function(n, c, h, w)
      local inside = te.all(tir.ge(h, 1), tir.lt(h, 7), tir.ge(w, 1), tir.lt(w, 7))
      return te.if_then_else(inside, X[{ n, c, h - 1, w - 1 }], 0.0)
    end, "pad")
    local rc, ry, rx = te.reduce_axis(2, "rc"), te.reduce_axis(3, "ry"), te.reduce_axis(3, "rx")
    local Y = te.compute({ 1, 4, 6, 6 }, function(n, f, y, x)
      return te.sum(pad[{ n, rc.var, y + ry.var, x + rx.var }] * W[{ f, rc.var, ry.var, rx.var }],
        { rc, ry, rx })
    end, "Y")
    prints({ X, W, Y }, [[
def main(X: T.Buffer((1, 2, 6, 6), "float32"), W: T.Buffer((4, 2, 3, 3), "float32"), Y: T.Buffer((1, 4, 6, 6), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    pad = T.alloc_buffer((1, 2, 8, 8))
    for n, c, h, w in T.grid(1, 2, 8, 8):
        with T.block("pad"):
            v_n, v_c, v_h, v_w = T.axis.remap("SSSS", [n, c, h, w])
            T.reads(X[v_n, v_c, v_h - 1, v_w - 1])
            T.writes(pad[v_n, v_c, v_h, v_w])
            pad[v_n, v_c, v_h, v_w] = T.if_then_else(1 <= v_h and v_h < 7 and 1 <= v_w and v_w < 7, X[v_n, v_c, v_h - 1, v_w - 1], T.float32(0))
    for n, f, y, x, rc, ry, rx in T.grid(1, 4, 6, 6, 2, 3, 3):
        with T.block("Y"):
            v_n, v_f, v_y, v_x, v_rc, v_ry, v_rx = T.axis.remap("SSSSRRR", [n, f, y, x, rc, ry, rx])
            T.reads(pad[v_n, v_rc, v_y + v_ry, v_x + v_rx], W[v_f, v_rc, v_ry, v_rx])
            T.writes(Y[v_n, v_f, v_y, v_x])
            with T.init():
                Y[v_n, v_f, v_y, v_x] = T.float32(0)
            Y[v_n, v_f, v_y, v_x] = Y[v_n, v_f, v_y, v_x] + pad[v_n, v_rc, v_y + v_ry, v_x + v_rx] * W[v_f, v_rc, v_ry, v_rx]
]])
    computes({ X, W, Y }, { Y })
  end)

  it("keeps the condition of a reduction, and makes names of blocks unique", function()
    local A = te.placeholder({ 8, 8 }, "float32", "A")
    local k = te.reduce_axis(8, "k")
    local B = te.compute({ 8 }, function(i)
      return te.sum(A[{ i, k.var }], k, tir.le(k.var, i))
    end, "B")
    local C = te.compute({ 8 }, function(i) return B[{ i }] * 2.0 end, "B")
    prints({ A, C }, [[
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    B_1 = T.alloc_buffer((8,))
    for i, k in T.grid(8, 8):
        with T.block("B"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            T.reads(A[v_i, v_k])
            T.writes(B_1[v_i])
            with T.init():
                B_1[v_i] = T.float32(0)
            B_1[v_i] = T.Select(v_k <= v_i, B_1[v_i] + A[v_i, v_k], B_1[v_i])
    for i in range(8):
        with T.block("B_1"):
            v_i = T.axis.spatial(8, i)
            T.reads(B_1[v_i])
            T.writes(B[v_i])
            B[v_i] = B_1[v_i] * T.float32(2)
]])
    computes({ A, C }, { C })
  end)

  it("gives a tensor without dimensions a block of one round", function()
    local A = te.placeholder({}, "int32", "A")
    local B = te.compute({}, function() return A[{}] + 1 end, "B")
    prints({ A, B }, [[
def main(A: T.Buffer((), "int32"), B: T.Buffer((), "int32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    with T.block("B"):
        vi = T.axis.spatial(1, 0)
        T.reads(A[()])
        T.writes(B[()])
        B[()] = A[()] + 1
]])
    computes({ A, B }, { B })
  end)

  it("makes an opaque block of an extern operation", function()
    local A = te.placeholder({ 4 }, "float32", "A")
    local B = te.extern({ 4 }, { A }, function(ins, outs)
      local i = tir.Var("i", "int32")
      return tir.For(i, 0, 4, "serial", outs[1]:store(ins[1]:load(i) * 2.0, i))
    end, { name = "B" })
    local fn = prints({ A, B }, [[
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    with T.block("root"):
        T.reads()
        T.writes()
        with T.block("B"):
            T.reads(A[0:4])
            T.writes(B[0:4])
            for i in range(4):
                B[i] = A[i] * T.float32(2)
]])
    local plain = te.compute({ 4 }, function(i) return A[{ i }] * 2.0 end, "B")
    assert(tir.check(te.create_prim_func { A, plain }, fn))
  end)

  it("has one block an output of an operation with several", function()
    local A = te.placeholder({ 4 }, "float32", "A")
    local B, C = te.compute({ 4 }, function(i) return { A[{ i }] + 1.0, A[{ i }] * 2.0 } end, "B")
    prints({ A, B, C }, [[
def main(A: T.Buffer((4,), "float32"), B_v0: T.Buffer((4,), "float32"), B_v1: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    for i in range(4):
        with T.block("B.v0"):
            v_i = T.axis.spatial(4, i)
            T.reads(A[v_i])
            T.writes(B_v0[v_i])
            B_v0[v_i] = A[v_i] + T.float32(1)
        with T.block("B.v1"):
            v_i = T.axis.spatial(4, i)
            T.reads(A[v_i])
            T.writes(B_v1[v_i])
            B_v1[v_i] = A[v_i] * T.float32(2)
]])
    computes({ A, B, C }, { B })
  end)

  it("has indices of the dtype that is asked for", function()
    local n = te.var "n"
    local X, I = te.placeholder({ n, 12 }, "float32", "X"), te.placeholder({ n }, "int32", "I")
    local P = te.compute({ n, 18 }, function(i, j)
      return te.if_then_else(te.all(tir.ge(j, 3), tir.lt(j, 15)), X[{ i, j - 3 }], 0.0)
        + tir.Cast("float32", i + j * 2)
    end, "P")
    local Q = te.compute({ n }, function(i) return i + I[{ te.min(I[{ n - 1 - i }], n - 1) }] end, "Q")
    local E = te.extern({ n }, { Q }, function(ins, outs)
      local i = tir.Var "i"
      return tir.For(i, 0, n, "serial", outs[1]:store(ins[1]:load(i) + i, i))
    end, { name = "E", dtype = "int32" })
    local fn = te.create_prim_func({ n, X, I, P, E }, { index_dtype_override = "int64" })
    assert.is_true(tir.verify_well_formed(fn))
    assert.is_true(pl.equal(fn, assert(tir.parse(tostring(fn))).functions.main))
    for _, line in ipairs {
      "n: T.int64", "X = T.match_buffer(var_X, (n, T.int64(12)))",
      'I = T.match_buffer(var_I, (n,), "int32")', "for i, j in T.grid(n, T.int64(18)):",
      'Q[v_i] = T.Cast("int32", v_i + T.Cast("int64", I[',
    } do
      assert.is_truthy(tostring(fn):find(line, 1, true), line .. "\n" .. tostring(fn))
    end
    local function zeros(...)
      local out, dims = {}, { ... }
      for i = 1, dims[1] do out[i] = dims[2] and zeros(table.unpack(dims, 2)) or i % 3 * 1 end
      return out
    end
    local function run(mod, dtype)
      local out = tir.run(mod, { pl.tensor(5, dtype), zeros(5, 12), pl.tensor(zeros(5), "int32"),
        zeros(5, 18), pl.tensor(zeros(5), "int32") })
      return { out[#out - 1]:to_table(), out[#out]:to_table() }
    end
    local plain = te.create_prim_func { n, X, I, P, E }
    assert.same(run(plain, "int32"), run(fn, "int64"))
    assert.same(run(plain, "int32"), run(pl.lower(fn), "int64"))
    -- And back, if constants fit.
    local A = te.placeholder({ tir.const(1 << 33, "int64") }, "float32", "A")
    local B = te.compute({ 4 }, function(i) return A[{ i }] end, "B")
    assert.error_matches(function()
      te.create_prim_func({ A, B }, { index_dtype_override = "int32" })
    end, "index 8589934592 does not fit int32")
    assert.error_matches(function()
      te.create_prim_func({ A, B }, { index_dtype_override = "float32" })
    end, "index_dtype_override is 'int32' or 'int64'")
  end)

  it("names what it cannot take", function()
    local A, _, C = matmul(4)
    assert.error_matches(function() te.create_prim_func { A, C } end,
      "placeholder 'B' is not among the arguments")
    assert.error_matches(function() te.create_prim_func { A, 3 } end,
      "argument 2 must be a tensor or a Var")
    assert.error_matches(function() te.create_prim_func { A, A } end, "tensor 'A' is given twice")
    assert.error_matches(function() te.create_prim_func { A } end, "nothing is computed")
    assert.error_matches(function() te.create_prim_func(3) end, "a table expected")
  end)
end)
