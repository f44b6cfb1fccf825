-- Times programs of tensor expressions with the schedules that a reader of the tutorials would give
-- them, as shares of the roofline: `bound` is the time that the operations (f) or the bytes of all
-- arguments, once (m), take at the least, over the program's time. See roofline.lua.
--
--     PERILUNE_BUILD=build lua5.4 spec/bench/schedules.lua [NAME]
--
-- One thread, the least of calls within 0.3 s.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;./?.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"
local compare = require "spec.codegen.compare"
local roofline = require "spec.bench.roofline"

local te = pl.te
local F = "float32"
local cc = os.getenv "CC" or "cc"
local lanes = require "perilune.core".c_native_vector_bytes() // 4

local peak, division = roofline.peak(cc)
local programs = {}

-- Each gives the schedule, the arguments, the result last, and the operations.

local function transpose(n, m, tile)
  local A = te.placeholder({ n, m }, F, "A")
  local B = te.compute({ m, n }, function(i, j) return A[{ j, i }] end, "B")
  local s = te.create_schedule(B.op)
  local _, _, xi, yi = s[B]:tile(B.op.axis[1], B.op.axis[2], tile, tile)
  s[B]:unroll(xi)
  s[B]:vectorize(yi)
  return s, { A, B }, 0
end

for _, size in ipairs { { 96, 96 }, { 512, 512 }, { 992, 1008 }, { 1024, 1024 }, { 2048, 2048 } } do
  for _, tile in ipairs { 8, 16 } do
    if size[1] % tile == 0 and size[2] % tile == 0 then
      programs[#programs + 1] = { ("transpose %dx%d by %d"):format(size[1], size[2], tile),
        function() return transpose(size[1], size[2], tile) end }
    end
  end
end

-- A reduction of the second axis in `lanes` * 4 sums side by side, which become `lanes` sums before
-- they are added one after the other. Returns the stages, the last one first.
local function sums_aside(s, tensor)
  local stages = {}
  for i, n in ipairs { lanes * 4, lanes } do
    local _, inner = s[tensor]:split(s[tensor].op.reduce_axis[1], n)
    local partial = s:rfactor(tensor, inner)
    local axes, sum = s[partial].op.axis, s[partial].op.reduce_axis[1]
    s[partial]:reorder(sum, axes[1])
    s[partial]:vectorize(axes[1])
    if i == 2 then s[partial]:unroll(sum) end
    table.insert(stages, 1, partial)
  end
  return stages
end

local function row_reduction(name, reduce, n, m)
  programs[#programs + 1] = { ("%s of rows %dx%d"):format(name, n, m), function()
    local A, k = te.placeholder({ n, m }, F, "A"), te.reduce_axis({ 0, m }, "k")
    local B = te.compute({ n }, function(i) return reduce(A[{ i, k }], k) end, "B")
    local s = te.create_schedule(B.op)
    for _, partial in ipairs(sums_aside(s, B)) do
      s[partial]:compute_at(s[B], s[B].op.axis[1])
    end
    return s, { A, B }, n * m
  end }
end

row_reduction("sum", te.sum, 64, 1024)
row_reduction("sum", te.sum, 2048, 1024)
row_reduction("max", te.max, 64, 1024)

for _, n in ipairs { 64, 2048 } do
  programs[#programs + 1] = { ("sum of columns %dx1024"):format(n), function()
    local A, k = te.placeholder({ n, 1024 }, F, "A"), te.reduce_axis({ 0, n }, "k")
    local B = te.compute({ 1024 }, function(j) return te.sum(A[{ k, j }], k) end, "B")
    local s = te.create_schedule(B.op)
    local outer, inner = s[B]:split(B.op.axis[1], lanes * 2)
    local rows, row = s[B]:split(B.op.reduce_axis[1], 2)
    s[B]:reorder(rows, outer, row, inner)
    s[B]:unroll(row)
    s[B]:vectorize(inner)
    return s, { A, B }, n * 1024
  end }
end

-- What occupies the units of FMAs is counted: 9 of them in exp, and the division. The subtraction,
-- the maxima and the sums are for other units, and cost what is missing at the least.
for _, n in ipairs { 64, 4096 } do
  programs[#programs + 1] = { ("softmax %dx1024"):format(n), function()
    local m = 1024
    local A = te.placeholder({ n, m }, F, "A")
    local k, k2 = te.reduce_axis({ 0, m }, "k"), te.reduce_axis({ 0, m }, "k2")
    local M = te.compute({ n }, function(i) return te.max(A[{ i, k }], k) end, "maxe")
    local E = te.compute({ n, m }, function(i, j) return te.exp(A[{ i, j }] - M[{ i }]) end, "e")
    local S = te.compute({ n }, function(i) return te.sum(E[{ i, k2 }], k2) end, "sume")
    local O = te.compute({ n, m }, function(i, j) return E[{ i, j }] / S[{ i }] end, "softmax")
    local s = te.create_schedule(O.op)
    local maxima, sums = sums_aside(s, M), sums_aside(s, S)
    local row = s[O].op.axis[1]
    for _, stages in ipairs { { S }, sums, { E }, { M }, maxima } do
      for _, stage in ipairs(stages) do s[stage]:compute_at(s[O], row) end
    end
    for _, stage in ipairs { E, O } do
      local _, inner = s[stage]:split(s[stage].op.axis[2], lanes * 2)
      s[stage]:vectorize(inner)
    end
    return s, { A, O }, n * m * (2 * 9 + division)
  end }
end

-- 3x3, channels last: a vector of channels outermost, whose weights stay in registers, and four
-- columns at a time.
programs[#programs + 1] = { "depthwise 3x3 58x58x64, NHWC", function()
  local H, C, wide = 58, 64, 4
  local A, W = te.placeholder({ H, H, C }, F, "A"), te.placeholder({ 3, 3, C }, F, "W")
  local ry, rx = te.reduce_axis({ 0, 3 }, "ry"), te.reduce_axis({ 0, 3 }, "rx")
  local B = te.compute({ H - 2, H - 2, C }, function(y, x, c)
    return te.sum(A[{ y + ry, x + rx, c }] * W[{ ry, rx, c }], { ry, rx })
  end, "B")
  local s = te.create_schedule(B.op)
  local L = s:cache_write(B, "local")
  local co, ci = s[B]:split(s[B].op.axis[3], lanes)
  local xo, xi = s[B]:split(s[B].op.axis[2], wide)
  s[B]:reorder(co, s[B].op.axis[1], xo, xi, ci)
  s[B]:vectorize(ci)
  s[B]:unroll(xi)
  s[L]:compute_at(s[B], xo)
  local axes, r = s[L].op.axis, s[L].op.reduce_axis
  s[L]:reorder(r[1], r[2], axes[2], axes[3])
  s[L]:unroll(r[1])
  s[L]:unroll(r[2])
  s[L]:unroll(axes[2])
  s[L]:vectorize(axes[3])
  return s, { A, W, B }, (H - 2) * (H - 2) * C * 18
end }

print(("peak of this CPU: %.1f GFLOP/s; a division is %.1f operations"):format(peak, division))
print(("%-34s %10s %9s %8s"):format("program", "us", "GFLOP/s", "bound"))
for _, program in ipairs(programs) do
  local name, make = table.unpack(program)
  if not arg[1] or name:find(arg[1], 1, true) then
    local s, args, flops = make()
    local mod = pl.lower(s, { args = args, name = "main" })
    local built = pl.build(mod, { cc = cc, run = "process" })
    local values = compare.arguments(mod.functions.main, {}, 7)
    local seconds = built:time("main", values, { least = 0.3 })
    local memory, work = roofline.memory_seconds(cc, values), flops / peak / 1e9
    print(("%-34s %10.1f %9.1f %7.1f%%%s"):format(name, seconds * 1e6, flops / seconds / 1e9,
      math.max(memory, work) / seconds * 100, work > memory and "f" or "m"))
  end
end
roofline.close()
