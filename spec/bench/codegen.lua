-- Times the C of the programs that TVM lowered from tensor expressions, beside the times that TVM
-- recorded on its machine, and beside OpenBLAS for the products.
--
--     PERILUNE_BUILD=build lua5.4 spec/bench/codegen.lua FOLDER [NAME]
--
-- FOLDER is the unpacked tir-oracle/te. The peak of this CPU is that of a loop of 12 independent
-- vector FMAs in C, compiled by the same compiler with the same flags, one thread, least of 20
-- runs. TVM's machine is another one (Sapphire Rapids); its peak is not recorded: PERILUNE_PEAK,
-- in GFLOP/s, is what it is taken to be (192: two 512-bit FMAs at 3 GHz). A ratio above 1 is for
-- us: our share of the peak over TVM's; where a program computes little, its bytes per second
-- over TVM's. Times are the least of calls within 0.3 s, one thread.
--
-- `bound` is the roofline's share: the time that the program must take at the least, over its time.
-- It is the greater of operations / peak and bytes / bandwidth. Bytes are those of all arguments,
-- once; the bandwidth is that of a loop over as many bytes, so that data which fit a cache are held
-- against that cache: a sum where the result is less than an eighth of the bytes, else a = b + c
-- in three arrays with ordinary stores (a store that misses reads its line first, which is not
-- counted). The letter names what binds, f for operations or m for memory. What is between
-- (intermediate tensors, loads from L1 that a stencil repeats) is not in the bound.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;./?.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"
local core = require "perilune.core"
local compare = require "spec.codegen.compare"

local root, only = assert(arg[1], "the folder te of the recordings is expected"), arg[2]
local tvm_peak = tonumber(os.getenv "PERILUNE_PEAK" or 192)
local cc, flags = os.getenv "CC" or "cc", os.getenv "CFLAGS_C"

local peak_source = [[
#include <stdio.h>
#include <time.h>
typedef float V __attribute__((vector_size(%d)));
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(void) {
  volatile float seed = 0.5f;
  V a[12], x = seed - (V){0};
  double best = 1e9;
  for (int i = 0; i < 12; i++)
    a[i] = x;
  for (int r = 0; r < 20; r++) {
    double begin = now();
    for (int k = 0; k < 1000000; k++)
      _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) a[i] = a[i] * x + x;
    double t = now() - begin;
    best = t < best ? t : best;
  }
  float sum = 0;
  for (int i = 0; i < 12; i++)
    sum += a[i][0];
  printf("%%.2f %%g\n", 12e6 * 2 * sizeof(V) / 4 / best * 1e-9, sum);
  return 0;
}
]]

-- Bytes of three arrays in argv[1], "read" or "triad" in argv[2]: gigabytes a second.
local bandwidth_source = [[
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef float V __attribute__((vector_size(%d)));
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
static void triad(V *restrict a, const V *b, const V *c, size_t n) {
  for (size_t i = 0; i < n; i++)
    a[i] = b[i] + c[i];
}
static float sum(const V *b, size_t n) {
  V s[8] = {{0}};
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _Pragma("GCC unroll 8") for (size_t k = 0; k < 8; k++) s[k] += b[i + k];
  for (; i < n; i++)
    s[0] += b[i];
  return (s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7])[0];
}
int main(int argc, char **argv) {
  size_t n = argc > 2 ? strtoull(argv[1], NULL, 10) / sizeof(V) / 3 + 1 : 1;
  int reads = argc > 2 && !strcmp(argv[2], "read");
  V *a = aligned_alloc(sizeof(V), 3 * n * sizeof(V));
  if (!a)
    return 1;
  memset(a, 0, 3 * n * sizeof(V));
  size_t repeat = 1 + 1000000 / (3 * n * sizeof(V));
  double best = 1e9, begin = now();
  volatile float sink = 0;
  for (int r = 0; r < 5 || now() - begin < 0.1; r++) {
    double t = now();
    for (size_t k = 0; k < repeat; k++) {
      if (reads)
        sink += sum(a, 3 * n);
      else
        triad(a, a + n, a + 2 * n, n);
      __asm__ volatile("" ::: "memory");
    }
    t = (now() - t) / (double)repeat;
    best = t < best ? t : best;
  }
  printf("%%.3f\n", 3e-9 * (double)(n * sizeof(V)) / best);
  free(a);
  return 0;
}
]]

-- The path of a program in C, compiled for this CPU.
local function compiled(source)
  local name = os.tmpname()
  local file = assert(io.open(name .. ".c", "w"))
  file:write(source:format(core.c_native_vector_bytes()))
  file:close()
  assert(os.execute(("%s -O3 -march=native -ffp-contract=fast %s.c -o %s"):format(cc, name, name)))
  os.remove(name .. ".c")
  return name
end

-- The number that a program prints.
local function number_of(command)
  local pipe = assert(io.popen(command))
  local number = assert(pipe:read "n", "a measuring program printed no number")
  pipe:close()
  return number
end

local function peak()
  local program = compiled(peak_source)
  local gflops = number_of(program)
  os.remove(program)
  return gflops
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local function info_of(name)
  local text = read(("%s/%s/info.json"):format(root, name))
  local out = { bind = {} }
  for key, value in (text or ""):gmatch '"([%w_]+)": ([%d%.]+)' do
    out[key] = out[key] or tonumber(value)
  end
  for key, value in ((text or ""):match '"bind": (%b{})' or ""):gmatch '"(%w+)": (%d+)' do
    out.bind[key] = math.tointeger(value)
  end
  return out
end

local function time(name, info)
  local text = read(("%s/%s/lower_full.tvmscript"):format(root, name))
  local mod = text and pl.tir.parse(text, name)
  if not mod then return nil end
  local ok, built = pcall(pl.build, mod, { cc = cc, flags = flags, run = "process" })
  if not ok then return nil end
  local fn_name = built:functions()[1].name
  local args = compare.arguments(mod.functions[fn_name], info.bind, 7)
  return built:time(fn_name, args, { least = 0.3 }), args
end

local item_bytes = { float64 = 8, int64 = 8, float16 = 2, int8 = 1, uint8 = 1, bool = 1 }

local function bytes_of(tensor)
  local bytes = item_bytes[tensor.dtype] or 4
  for _, dim in ipairs(tensor.shape) do bytes = bytes * dim end
  return bytes
end

local bandwidth_program = compiled(bandwidth_source)

-- Seconds that the arguments take to pass through the core once.
local function memory_seconds(args)
  local bytes, result = 0, 0
  for _, tensor in ipairs(args) do
    result = bytes_of(tensor)
    bytes = bytes + result
  end
  local how = result * 8 < bytes and "read" or "triad"
  return bytes / number_of(("%s %d %s"):format(bandwidth_program, bytes, how)) / 1e9
end

-- The least time of a product of n x n by the evaluator's BLAS.
local function blas(n)
  local f = assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%a: Tensor[(%d, %d), float32], %%b: Tensor[(%d, %d), float32]) {
  nn.matmul(%%a, %%b, units=None)
}]]):format(n, n, n, n)))
  local a = pl.tensor.random({ n, n }, "float32")
  local best = math.huge
  for _ = 1, 20 do
    local begin = os.clock()
    pl.eval(f, a, a)
    best = math.min(best, os.clock() - begin)
  end
  return best
end

local here = peak()
print(("peak of this CPU: %.1f GFLOP/s; of TVM's, as assumed: %.0f"):format(here, tvm_peak))
local ok, product = pcall(blas, 512)
if ok then
  print(("OpenBLAS, 512^3: %.0f us, %.1f GFLOP/s"):format(product * 1e6,
    2 * 512 ^ 3 / product / 1e9))
end
print(("%-34s %10s %10s %9s %7s %8s %7s"):format("program", "us", "TVM us", "GFLOP/s", "share",
  "bound", "ratio"))
local list = assert(io.popen(("ls '%s'"):format(root)))
local better, count = 0, 0
for name in list:lines() do
  local info = (not only or name == only) and info_of(name) or {}
  local theirs = info.runtime_us_min
  local seconds, args
  if theirs then
    seconds, args = time(name, info)
  end
  if seconds then
    local gflops = (info.flops or 0) / seconds / 1e9
    local tvm_share = (info.flops or 0) / theirs / 1e3 / tvm_peak
    local computes = tvm_share > 0.05
    local ratio = computes and gflops / here / tvm_share or theirs / (seconds * 1e6)
    count, better = count + 1, better + (ratio >= 1 and 1 or 0)
    local memory, work = memory_seconds(args), (info.flops or 0) / here / 1e9
    print(("%-34s %10.1f %10.1f %9.1f %6.1f%% %6.1f%%%s %7.2f%s"):format(name, seconds * 1e6,
      theirs, gflops, gflops / here * 100, math.max(memory, work) / seconds * 100,
      work > memory and "f" or "m", ratio, computes and "" or " (bytes)"))
  end
end
os.remove(bandwidth_program)
print(("%d of %d at least as fast as TVM's"):format(better, count))
