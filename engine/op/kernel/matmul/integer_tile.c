/* integer_tile.c: small tiles of int16 matrix products, one set per family of
 * processors. Called by integer_gemm.c.
 *
 * All sets give the same bits. A set with optional instructions is chosen only
 * if the processor has them. */

#include "op/kernel/matmul/integer_gemm.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define UNROLL _Pragma("GCC unroll 8")

#define BYTES 16
#define ROWS 4
#define VECTORS 2
#define TARGET
#define NAME(x) base_##x
#ifdef __x86_64__
#define MADD(sum, x, y) \
  ((sum) + (base_vec)_mm_madd_epi16((__m128i)(x), (__m128i)(y)))
#else
/* Halves of each lane, sign-extended. */
typedef int32_t signed_vec __attribute__((vector_size(BYTES)));
#define LOW(x) (((signed_vec)((x) << 16)) >> 16)
#define HIGH(x) ((signed_vec)(x) >> 16)
#define MADD(sum, x, y) \
  ((sum) + (base_vec)(LOW(x) * LOW(y)) + (base_vec)(HIGH(x) * HIGH(y)))
#endif
#include "op/kernel/matmul/integer_tile.def"

#ifdef __x86_64__
#define BYTES 32
#define ROWS 4
#define VECTORS 2
#define TARGET __attribute__((target("avx2")))
#define MADD(sum, x, y) \
  ((sum) + (avx_vec)_mm256_madd_epi16((__m256i)(x), (__m256i)(y)))
#define NAME(x) avx_##x
#include "op/kernel/matmul/integer_tile.def"

#define BYTES 64
#define ROWS 8
#define VECTORS 3
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vnni")))
#define MADD(sum, x, y) \
  ((wide_vec)_mm512_dpwssd_epi32((__m512i)(sum), (__m512i)(x), (__m512i)(y)))
#define NAME(x) wide_##x
#include "op/kernel/matmul/integer_tile.def"

static bool runs_wide(void) {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vnni");
}

const pln_integer_tiles *pln_integer_tiles_at(uint32_t index) {
  const pln_integer_tiles *sets[3];
  uint32_t n = 0;
  if (runs_wide())
    sets[n++] = &wide_set;
  if (__builtin_cpu_supports("avx2"))
    sets[n++] = &avx_set;
  sets[n++] = &base_set;
  return index < n ? sets[index] : NULL;
}
#else
const pln_integer_tiles *pln_integer_tiles_at(uint32_t index) {
  return index == 0 ? &base_set : NULL;
}
#endif
