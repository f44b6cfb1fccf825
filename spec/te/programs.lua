-- The recorded programs of TVM's tensor expressions (tir-oracle/te), by their names, in Lua:
-- programs.NAME() -> schedule, arguments. Functions that begin with a capital build parts of them.

local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F = "float32"

local programs = {}

local function zero() return te.const(0.0, F) end

local function vectors(n)
  local A, B = te.placeholder({ n }, F, "A"), te.placeholder({ n }, F, "B")
  local C = te.compute({ n }, function(i) return A[{ i }] + B[{ i }] end, "C")
  return te.create_schedule(C.op), { A, B, C }, C
end

local function matmul(n, m, l)
  n, m, l = n or 512, m or 512, l or 512
  local k = te.reduce_axis({ 0, l }, "k")
  local A, B = te.placeholder({ n, l }, F, "A"), te.placeholder({ l, m }, F, "B")
  local C = te.compute({ n, m }, function(i, j)
    return te.sum(A[{ i, k }] * B[{ k, j }], k)
  end, "C")
  return te.create_schedule(C.op), { A, B, C }, C, k
end

local function tiled(s, C)
  return s[C]:tile(C.op.axis[1], C.op.axis[2], 32, 32)
end

function programs.vecadd_naive() return vectors(1 << 20) end

function programs.vecadd_symbolic() return vectors(te.var "n") end

local function split_vectorize(n, factor)
  local s, args, C = vectors(n)
  local _, inner = s[C]:split(C.op.axis[1], factor)
  s[C]:vectorize(inner)
  return s, args
end

function programs.vecadd_vectorized() return split_vectorize(1 << 20, 16) end

function programs.vecadd_nondivisible() return split_vectorize(1000003, 16) end

function programs.vecadd_symbolic_split_vectorize() return split_vectorize(te.var "n", 8) end

function programs.add2d_fused_parallel()
  local n, m = 1024, 1024
  local A, B = te.placeholder({ n, m }, F, "A"), te.placeholder({ m }, F, "B")
  local C = te.compute({ n, m }, function(i, j) return A[{ i, j }] * 2.0 + B[{ j }] end, "C")
  local s = te.create_schedule(C.op)
  local outer, inner = s[C]:split(s[C]:fuse(table.unpack(C.op.axis)), 32)
  s[C]:parallel(outer)
  s[C]:vectorize(inner)
  return s, { A, B, C }
end

function programs.batch_matmul()
  local b, n = 8, 128
  local k = te.reduce_axis({ 0, n }, "k")
  local A, B = te.placeholder({ b, n, n }, F, "A"), te.placeholder({ b, n, n }, F, "B")
  local C = te.compute({ b, n, n }, function(x, i, j)
    return te.sum(A[{ x, i, k }] * B[{ x, j, k }], k)
  end, "C")
  return te.create_schedule(C.op), { A, B, C }
end

local function blur()
  local n = 512
  local A = te.placeholder({ n + 2, n + 2 }, F, "A")
  local H = te.compute({ n + 2, n }, function(y, x)
    return (A[{ y, x }] + A[{ y, x + 1 }] + A[{ y, x + 2 }]) * (1 / 3.)
  end, "blurx")
  local V = te.compute({ n, n }, function(y, x)
    return (H[{ y, x }] + H[{ y + 1, x }] + H[{ y + 2, x }]) * (1 / 3.)
  end, "blury")
  return te.create_schedule(V.op), { A, V }, H, V
end

function programs.blur2d_compute_at_tile()
  local s, args, H, V = blur()
  local _, xo, _, xi = s[V]:tile(V.op.axis[1], V.op.axis[2], 32, 64)
  s[H]:compute_at(s[V], xo)
  s[H]:vectorize((select(2, s[H]:split(H.op.axis[2], 16))))
  s[V]:vectorize((select(2, s[V]:split(xi, 16))))
  return s, args
end

function programs.blur2d_inline()
  local s, args, H = blur()
  s[H]:compute_inline()
  return s, args
end

local function convolution()
  local N, CI, H, W, CO, K = 1, 32, 56, 56, 32, 3
  local A, Wt = te.placeholder({ N, CI, H, W }, F, "A"), te.placeholder({ CO, CI, K, K }, F, "W")
  local Pad = te.compute({ N, CI, H + 2, W + 2 }, function(n, c, y, x)
    return tir.if_then_else(tir.all(tir.ge(y, 1), tir.lt(y, H + 1), tir.ge(x, 1), tir.lt(x, W + 1)),
      A[{ n, c, y - 1, x - 1 }], zero())
  end, "pad")
  local rc, ry, rx = te.reduce_axis({ 0, CI }, "rc"), te.reduce_axis({ 0, K }, "ry"),
    te.reduce_axis({ 0, K }, "rx")
  local B = te.compute({ N, CO, H, W }, function(n, f, y, x)
    return te.sum(Pad[{ n, rc, y + ry, x + rx }] * Wt[{ f, rc, ry, rx }], { rc, ry, rx })
  end, "conv")
  local s = te.create_schedule(B.op)
  return s, { A, Wt, B }, Pad, B
end

function programs.conv2d_pad_inline()
  local s, args, Pad = convolution()
  s[Pad]:compute_inline()
  return s, args
end

function programs.conv2d_pad_inline_partition()
  local s, args, Pad, B = convolution()
  s[Pad]:compute_inline()
  local n, f, y, x = table.unpack(s[B].op.axis)
  local rc, ry, rx = table.unpack(s[B].op.reduce_axis)
  s[B]:reorder(n, f, rc, ry, rx, y, x)
  return s, args
end

function programs.conv2d_tuned()
  local s, args, _, B = convolution()
  local CC = s:cache_write(B, "global")
  local n, f, y, x = table.unpack(s[B].op.axis)
  local fo, fi = s[B]:split(f, 4)
  local xo, xi = s[B]:split(x, 28)
  s[B]:reorder(n, fo, y, xo, fi, xi)
  s[B]:vectorize(xi)
  s[CC]:compute_at(s[B], xo)
  s[B]:parallel(fo)
  local _, cf, cy, cx = table.unpack(s[CC].op.axis)
  local rc, ry, rx = table.unpack(s[CC].op.reduce_axis)
  local cxo, cxi = s[CC]:split(cx, 14)
  s[CC]:reorder(rc, ry, rx, cf, cy, cxo, cxi)
  s[CC]:unroll(cf)
  s[CC]:unroll(cxo)
  s[CC]:vectorize(cxi)
  return s, args
end

function programs.depthwise_conv2d()
  local C, H = 64, 58
  local A, W = te.placeholder({ 1, C, H, H }, F, "A"), te.placeholder({ C, 3, 3 }, F, "W")
  local ry, rx = te.reduce_axis({ 0, 3 }, "ry"), te.reduce_axis({ 0, 3 }, "rx")
  local B = te.compute({ 1, C, H - 2, H - 2 }, function(n, c, y, x)
    return te.sum(A[{ n, c, y + ry, x + rx }] * W[{ c, ry, rx }], { ry, rx })
  end, "B")
  local O = te.compute({ 1, C, H - 2, H - 2 }, function(n, c, y, x)
    return te.max(B[{ n, c, y, x }], zero())
  end, "relu")
  local s = te.create_schedule(O.op)
  local xo, xi = s[O]:split(O.op.axis[4], 8)
  s[O]:vectorize(xi)
  s[B]:compute_at(s[O], xo)
  local b, r = s[B].op.axis, s[B].op.reduce_axis
  s[B]:reorder(r[1], r[2], b[4])
  s[B]:unroll(r[1])
  s[B]:unroll(r[2])
  s[B]:vectorize(b[4])
  return s, { A, W, O }
end

local function chain()
  local n = 1 << 20
  local A = te.placeholder({ n }, F, "A")
  local B = te.compute({ n }, function(i) return A[{ i }] * 2.0 + 1.0 end, "B")
  local C = te.compute({ n }, function(i) return te.max(B[{ i }], zero()) end, "C")
  local D = te.compute({ n }, function(i) return C[{ i }] * C[{ i }] + B[{ i }] end, "D")
  return te.create_schedule(D.op), { A, D }, B, C
end

function programs.elementwise_chain_root() return chain() end

function programs.elementwise_chain_inline()
  local s, args, B, C = chain()
  s[B]:compute_inline()
  s[C]:compute_inline()
  return s, args
end

function programs.extern_packed()
  local n = 1024
  local A = te.placeholder({ n }, F, "A")
  local B = te.extern({ n }, { A }, function(ins, outs)
    return tir.call_packed("tvm.contrib.example.copy", ins[1], outs[1])
  end, { name = "B", dtype = F })
  local C = te.compute({ n }, function(i) return B[{ i }] + 1.0 end, "C")
  return te.create_schedule(C.op), { A, C }
end

function programs.gather_indirect()
  local n, m = 4096, 64
  local T, I = te.placeholder({ 10000, m }, F, "T"), te.placeholder({ n }, "int32", "I")
  local O = te.compute({ n, m }, function(i, j) return T[{ I[{ i }], j }] end, "O")
  return te.create_schedule(O.op), { T, I, O }
end

local function gemv()
  local n, m = 2048, 2048
  local k = te.reduce_axis({ 0, m }, "k")
  local A, x = te.placeholder({ n, m }, F, "A"), te.placeholder({ m }, F, "x")
  local y = te.compute({ n }, function(i) return te.sum(A[{ i, k }] * x[{ k }], k) end, "y")
  return te.create_schedule(y.op), { A, x, y }, y
end

function programs.gemv() return gemv() end

function programs.gemv_rfactor_vectorized()
  local s, args, y = gemv()
  local _, ki = s[y]:split(y.op.reduce_axis[1], 16)
  local yf = s:rfactor(y, ki)
  s[yf]:compute_at(s[y], s[y].op.axis[1])
  s[yf]:reorder(s[yf].op.reduce_axis[1], s[yf].op.axis[1])
  s[yf]:vectorize(s[yf].op.axis[1])
  return s, args
end

function programs.int8_dot_naive()
  local N = 256
  local A, B = te.placeholder({ N, N }, "uint8", "A"), te.placeholder({ N, N }, "int8", "B")
  local k = te.reduce_axis({ 0, N }, "k")
  local C = te.compute({ N, N }, function(i, j)
    return te.sum(tir.cast("int32", A[{ i, k }]) * tir.cast("int32", B[{ j, k }]), k)
  end, "C")
  return te.create_schedule(C.op), { A, B, C }
end

function programs.matmul_naive() return matmul() end

function programs.matmul_reorder()
  local s, args, C, k = matmul()
  s[C]:reorder(C.op.axis[1], k, C.op.axis[2])
  return s, args
end

function programs.matmul_tiled()
  local s, args, C, k = matmul()
  local mo, no, mi, ni = tiled(s, C)
  local ko, ki = s[C]:split(k, 4)
  s[C]:reorder(mo, no, ko, ki, mi, ni)
  return s, args
end

function programs.matmul_tiled_vectorized()
  local s, args, C, k = matmul()
  local mo, no, mi, ni = tiled(s, C)
  local ko, ki = s[C]:split(k, 4)
  s[C]:reorder(mo, no, ko, mi, ki, ni)
  s[C]:vectorize(ni)
  return s, args
end

function programs.matmul_nondivisible_tiled()
  local s, args, C, k = matmul(500, 509, 511)
  local mo, no, mi, ni = tiled(s, C)
  local ko, ki = s[C]:split(k, 4)
  s[C]:reorder(mo, no, ko, mi, ki, ni)
  return s, args
end

function programs.matmul_symbolic_tiled()
  local s, args, C, k = matmul(te.size_var "n", te.size_var "m", te.size_var "l")
  local mo, no, mi, ni = tiled(s, C)
  s[C]:reorder(mo, no, k, mi, ni)
  return s, args
end

function programs.matmul_packed_cachewrite()
  local N, M, K, bn = 512, 512, 512, 32
  local k = te.reduce_axis({ 0, K }, "k")
  local A, B = te.placeholder({ N, K }, F, "A"), te.placeholder({ K, M }, F, "B")
  local PB = te.compute({ M // bn, K, bn }, function(x, y, z) return B[{ y, x * bn + z }] end,
    "packedB")
  local C = te.compute({ N, M }, function(i, j)
    return te.sum(A[{ i, k }] * PB[{ j // bn, k, tir.indexmod(j, bn) }], k)
  end, "C")
  local s = te.create_schedule(C.op)
  local CC = s:cache_write(C, "global")
  local mo, no = s[C]:tile(C.op.axis[1], C.op.axis[2], bn, bn)
  s[CC]:compute_at(s[C], no)
  local mc, nc = table.unpack(s[CC].op.axis)
  local ko, ki = s[CC]:split(s[CC].op.reduce_axis[1], 4)
  s[CC]:reorder(ko, mc, ki, nc)
  s[CC]:vectorize(nc)
  s[CC]:unroll(ki)
  s[C]:parallel(mo)
  local x, _, z = table.unpack(s[PB].op.axis)
  s[PB]:vectorize(z)
  s[PB]:parallel(x)
  return s, { A, B, C }
end

function programs.maxpool2d()
  local C, H = 64, 56
  local A = te.placeholder({ 1, C, H, H }, F, "A")
  local ry, rx = te.reduce_axis({ 0, 2 }, "ry"), te.reduce_axis({ 0, 2 }, "rx")
  local B = te.compute({ 1, C, H // 2, H // 2 }, function(n, c, y, x)
    return te.max(A[{ n, c, y * 2 + ry, x * 2 + rx }], { ry, rx })
  end, "B")
  return te.create_schedule(B.op), { A, B }
end

function programs.reduce_predicated_where()
  local n, m = 512, 512
  local A, k = te.placeholder({ n, m }, F, "A"), te.reduce_axis({ 0, m }, "k")
  local B = te.compute({ n }, function(i) return te.sum(A[{ i, k }], k, tir.le(k, i)) end, "B")
  return te.create_schedule(B.op), { A, B }
end

function programs.scan_symbolic_multistage()
  local m, n = te.size_var "m", te.size_var "n"
  local X, state = te.placeholder({ m, n }, F, "X"), te.placeholder({ m, n }, F, "state")
  local init = te.compute({ 1, n }, function(_, i) return X[{ 0, i }] end, "init")
  local s1 = te.compute({ m, n }, function(t, i) return state[{ t - 1, i }] * 0.5 end, "s1")
  local update = te.compute({ m, n }, function(t, i) return s1[{ t, i }] + X[{ t, i }] end,
    "update")
  local scan = te.scan(init, update, state, { inputs = { X }, name = "scan" })
  local s = te.create_schedule(scan.op)
  s[s1]:compute_at(s[update], update.op.axis[2])
  return s, { X, scan }
end

function programs.softmax_naive()
  local n, m = 256, 1024
  local A = te.placeholder({ n, m }, F, "A")
  local k, k2 = te.reduce_axis({ 0, m }, "k"), te.reduce_axis({ 0, m }, "k2")
  local M = te.compute({ n }, function(i) return te.max(A[{ i, k }], k) end, "maxe")
  local E = te.compute({ n, m }, function(i, j) return te.exp(A[{ i, j }] - M[{ i }]) end, "expe")
  local S = te.compute({ n }, function(i) return te.sum(E[{ i, k2 }], k2) end, "sume")
  local O = te.compute({ n, m }, function(i, j) return E[{ i, j }] / S[{ i }] end, "softmax")
  return te.create_schedule(O.op), { A, O }
end

local function sum_all()
  local n = 1 << 20
  local k, A = te.reduce_axis({ 0, n }, "k"), te.placeholder({ n }, F, "A")
  local B = te.compute({ 1 }, function(_) return te.sum(A[{ k }], k) end, "B")
  return te.create_schedule(B.op), { A, B }, B
end

function programs.sum_all() return sum_all() end

function programs.sum_all_rfactor()
  local s, args, B = sum_all()
  local _, ki = s[B]:split(B.op.reduce_axis[1], 32)
  local BF = s:rfactor(B, ki)
  s[BF]:reorder(s[BF].op.reduce_axis[1], s[BF].op.axis[1])
  s[BF]:vectorize(s[BF].op.axis[1])
  return s, args
end

function programs.transpose_tiled()
  local n, m = 2048, 2048
  local A = te.placeholder({ n, m }, F, "A")
  local B = te.compute({ m, n }, function(i, j) return A[{ j, i }] end, "B")
  local s = te.create_schedule(B.op)
  local _, _, xi, yi = s[B]:tile(B.op.axis[1], B.op.axis[2], 16, 16)
  s[B]:unroll(xi)
  s[B]:vectorize(yi)
  return s, { A, B }
end

function programs.unroll_pragma()
  local n = 4096
  local A, k = te.placeholder({ n, 4 }, F, "A"), te.reduce_axis({ 0, 4 }, "k")
  local B = te.compute({ n }, function(i) return te.sum(A[{ i, k }], k) end, "B")
  local s = te.create_schedule(B.op)
  s[B]:pragma(B.op.axis[1], "auto_unroll_max_step", 16)
  s[B]:pragma(B.op.axis[1], "unroll_explicit", true)
  return s, { A, B }
end

return programs
