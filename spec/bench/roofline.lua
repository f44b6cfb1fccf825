-- What a CPU can do at the most, for the programs of spec/bench that compare with it: operations of
-- float32 in a second, and bytes through one core.
--
-- The peak is that of a loop of 12 independent vector FMAs in C, least of 20 runs; as how many
-- operations a division counts, that of a loop of 12 divisions. The bandwidth is
-- that of a loop over as many bytes as the arguments have, so that data which fit a cache are held
-- against that cache: a sum where the result, which is the last argument, is less than an eighth of
-- the bytes, else a = b + c in three arrays with ordinary stores.

local core = require "perilune.core"

local roofline = {}

-- FMAs, or "divide" in argv[1]: divisions.
local peak_source = [[
#include <stdio.h>
#include <time.h>
typedef float V __attribute__((vector_size(%d)));
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(int argc, char **argv) {
  volatile float seed = 0.5f;
  V a[12], x = seed - (V){0};
  double best = 1e9;
  int rounds = argc > 1 ? 50000 : 1000000;
  (void)argv;
  for (int i = 0; i < 12; i++)
    a[i] = x;
  for (int r = 0; r < 20; r++) {
    double begin = now();
    for (int k = 0; k < rounds && argc > 1; k++)
      _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) a[i] = x / a[i];
    for (int k = 0; k < rounds && argc == 1; k++)
      _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) a[i] = a[i] * x + x;
    double t = now() - begin;
    best = t < best ? t : best;
  }
  float sum = 0;
  for (int i = 0; i < 12; i++)
    sum += a[i][0];
  printf("%%.2f %%g\n", 12.0 * rounds * (argc > 1 ? 1 : 2) * sizeof(V) / 4 / best * 1e-9, sum);
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
local function compiled(cc, source)
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

--- Operations in a second, and as how many operations a division counts.
function roofline.peak(cc)
  local program = compiled(cc, peak_source)
  local gflops = number_of(program)
  local divisions = number_of(program .. " divide")
  os.remove(program)
  return gflops, gflops / divisions
end

local item_bytes = { float64 = 8, int64 = 8, float16 = 2, int8 = 1, uint8 = 1, bool = 1 }

local function bytes_of(tensor)
  local bytes = item_bytes[tensor.dtype] or 4
  for _, dim in ipairs(tensor.shape) do bytes = bytes * dim end
  return bytes
end

local bandwidth_program

-- Seconds that the arguments take to pass through the core once.
function roofline.memory_seconds(cc, args)
  bandwidth_program = bandwidth_program or compiled(cc, bandwidth_source)
  local bytes, result = 0, 0
  for _, tensor in ipairs(args) do
    result = bytes_of(tensor)
    bytes = bytes + result
  end
  local how = result * 8 < bytes and "read" or "triad"
  return bytes / number_of(("%s %d %s"):format(bandwidth_program, bytes, how)) / 1e9
end

function roofline.close()
  if bandwidth_program then os.remove(bandwidth_program) end
  bandwidth_program = nil
end

return roofline
