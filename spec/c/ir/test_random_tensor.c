/* test_random_tensor.c: random tensors: moments, ranges, pieces, what is
 * refused. */

#include <math.h>

#include "ir/tensor/random.h"
#include "ir/tensor/tensor.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "oom.h"

static pln_random_spec uniform(double low, double high, uint64_t seed) {
  return (pln_random_spec){PLN_RANDOM_UNIFORM, low, high, 0, 0, seed};
}

static pln_random_spec normal(double mean, double deviation, uint64_t seed) {
  return (pln_random_spec){PLN_RANDOM_NORMAL, 0, 0, mean, deviation, seed};
}

typedef struct moments {
  double mean, deviation, least, most;
} moments;

static moments moments_of(pln_engine *e, const pln_random_spec *noise) {
  const int64_t dims[] = {100000};
  pln_tensor *t;
  const void *data;
  CHECK_OK(pln_tensor_random(e, PLN_FLOAT64, 1, dims, noise, &t));
  CHECK_OK(pln_tensor_data(t, &data));
  const double *x = data;
  moments m = {0, 0, x[0], x[0]};
  for (int i = 0; i < 100000; i++) {
    m.mean += x[i] / 100000;
    m.least = fmin(m.least, x[i]);
    m.most = fmax(m.most, x[i]);
  }
  for (int i = 0; i < 100000; i++)
    m.deviation += (x[i] - m.mean) * (x[i] - m.mean) / 100000;
  m.deviation = sqrt(m.deviation);
  pln_tensor_release(t);
  return m;
}

static void noise_has_the_moments_asked_for(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  for (uint64_t seed = 0; seed < 3; seed++) {
    pln_random_spec flat = uniform(-1, 3, seed), bell = normal(5, 2, seed);
    moments m = moments_of(e, &flat);
    CHECK(fabs(m.mean - 1) < 0.02 && fabs(m.deviation - 4 / sqrt(12)) < 0.01);
    CHECK(m.least >= -1 && m.least < -0.99 && m.most <= 3 && m.most > 2.99);
    m = moments_of(e, &bell);
    CHECK(fabs(m.mean - 5) < 0.03 && fabs(m.deviation - 2) < 0.02);
    CHECK(m.least > 5 - 2 * 3.5 && m.most < 5 + 2 * 3.5 && m.most > 5 + 2 * 3);
  }
  pln_base_free(e);
}

/* One seed gives these numbers on every machine. */
static void elements_are_known(void) {
  float x[2];
  uint8_t dice[8];
  pln_random_spec flat = uniform(0, 1, 1), six = uniform(1, 6, 1);
  pln_random_fill(&flat, PLN_FLOAT32, 0, 2, x);
  CHECK(x[0] == 0x1.7906acp-2f && x[1] == 0x1.e31adap-1f);
  pln_random_fill(&six, PLN_UINT8, 0, 8, dice);
  const uint8_t wanted[8] = {3, 1, 5, 6, 6, 3, 6, 2};
  CHECK(memcmp(dice, wanted, 8) == 0);
}

static void pieces_make_the_same_tensor(void) {
  float whole[3000], pieces[3000];
  for (int kind = 0; kind < 2; kind++) {
    pln_random_spec noise = kind ? normal(0, 1, 9) : uniform(-2, 2, 9);
    pln_random_fill(&noise, PLN_FLOAT32, 0, 3000, whole);
    for (size_t at = 0, n = 1; at < 3000; at += n, n = n * 3 + 1) {
      n = n < 3000 - at ? n : 3000 - at;
      pln_random_fill(&noise, PLN_FLOAT32, at, n, pieces + at);
    }
    CHECK(memcmp(whole, pieces, sizeof whole) == 0);
  }
}

static void seeds_differ(void) {
  int64_t a[64], b[64];
  pln_random_spec one = uniform(-0x1p63, 0x1p63, 1);
  pln_random_spec two = uniform(-0x1p63, 0x1p63, 2);
  pln_random_fill(&one, PLN_INT64, 0, 64, a);
  pln_random_fill(&two, PLN_INT64, 0, 64, b);
  int negative = 0;
  for (int i = 0; i < 64; i++) {
    CHECK(a[i] != b[i]);
    negative += a[i] < 0;
  }
  CHECK(negative > 16 && negative < 48);
}

/* Every element from low to high, and each of them met. */
static void integers_fill_their_range(pln_engine *e, pln_dtype dtype,
                                      int64_t low, int64_t high) {
  const int64_t dims[] = {1001};
  pln_random_spec noise = uniform((double)low, (double)high, 4);
  pln_tensor *t;
  CHECK_OK(pln_tensor_random(e, dtype, 1, dims, &noise, &t));
  uint32_t met = 0;
  for (size_t i = 0; i < 1001; i++) {
    int64_t x = low - 1;
    CHECK(pln_tensor_int(t, i, &x));
    CHECK(x >= low && x <= high);
    met |= 1u << (x - low);
  }
  CHECK_EQ_INT(met, (2u << (high - low)) - 1);
  pln_tensor_release(t);
}

static void every_integer_dtype_is_filled(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  integers_fill_their_range(e, PLN_BOOL, 0, 1);
  integers_fill_their_range(e, PLN_INT8, -3, 3);
  integers_fill_their_range(e, PLN_UINT8, 250, 255);
  integers_fill_their_range(e, PLN_INT16, -3, 3);
  integers_fill_their_range(e, PLN_UINT16, 0, 9);
  integers_fill_their_range(e, PLN_INT32, -3, 3);
  integers_fill_their_range(e, PLN_UINT32, 0, 9);
  integers_fill_their_range(e, PLN_INT64, -9, 9);
  integers_fill_their_range(e, PLN_UINT64, 0, 9);
  integers_fill_their_range(e, PLN_INT4, -8, 7);
  integers_fill_their_range(e, PLN_UINT4, 0, 15);
  integers_fill_their_range(e, PLN_INT2, -2, 1);
  integers_fill_their_range(e, PLN_UINT2, 0, 3);
  pln_base_free(e);
}

static void small_floats_are_the_rounded_ones(void) {
  float x[100];
  uint16_t half[100], bfloat[100];
  pln_random_spec noise = normal(1, 3, 8);
  pln_random_fill(&noise, PLN_FLOAT32, 0, 100, x);
  pln_random_fill(&noise, PLN_FLOAT16, 0, 100, half);
  pln_random_fill(&noise, PLN_BFLOAT16, 0, 100, bfloat);
  for (int i = 0; i < 100; i++) {
    CHECK_EQ_INT(half[i], pln_float_to_half(x[i]));
    CHECK_EQ_INT(bfloat[i], pln_float_to_bfloat(x[i]));
  }
}

static void normal_integers_are_kept_in_range(void) {
  int8_t x[1000];
  pln_random_spec noise = normal(0, 1e300, 3);
  pln_random_fill(&noise, PLN_INT8, 0, 1000, x);
  bool least = false, most = false;
  for (int i = 0; i < 1000; i++) {
    least |= x[i] == INT8_MIN;
    most |= x[i] == INT8_MAX;
  }
  CHECK(least && most);
}

static void refuse(pln_engine *e, pln_dtype dtype, pln_random_spec noise,
                   pln_status status) {
  const int64_t dims[] = {2};
  pln_tensor *t = NULL;
  pln_diag_clear(e);
  CHECK_STATUS(pln_tensor_random(e, dtype, 1, dims, &noise, &t), status);
  CHECK(!t);
  CHECK_EQ_INT(pln_diag_count(e), 1);
}

static void impossible_noise_is_refused(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  refuse(e, PLN_FLOAT32, uniform(1, 0, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_FLOAT32, uniform(0, INFINITY, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_FLOAT32, uniform(NAN, 1, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_FLOAT64, uniform(-1.7e308, 1.7e308, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_INT32, uniform(0.2, 0.8, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_UINT8, uniform(-9, -1, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_UINT8, uniform(256, 300, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_FLOAT32, normal(0, -1, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_FLOAT32, normal(NAN, 1, 0), PLN_ERR_ARGUMENT);
  refuse(e, PLN_STRING, normal(0, 1, 0), PLN_ERR_UNSUPPORTED);
  refuse(e, PLN_COMPLEX64, normal(0, 1, 0), PLN_ERR_UNSUPPORTED);
  refuse(e, PLN_DTYPE_NONE, normal(0, 1, 0), PLN_ERR_UNSUPPORTED);
  pln_base_free(e);
}

static pln_status make(pln_engine *e, void *ud) {
  const int64_t dims[] = {3, 5};
  pln_random_spec noise = normal(0, 1, 0);
  pln_tensor *t;
  (void)ud;
  pln_status status = pln_tensor_random(e, PLN_FLOAT32, 2, dims, &noise, &t);
  if (status == PLN_OK)
    pln_tensor_release(t);
  return status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(make, NULL);
}

static const check_test tests[] = {
    {"noise has the moments asked for", noise_has_the_moments_asked_for},
    {"elements are known", elements_are_known},
    {"pieces make the same tensor", pieces_make_the_same_tensor},
    {"seeds differ", seeds_differ},
    {"every integer dtype is filled", every_integer_dtype_is_filled},
    {"small floats are rounded ones", small_floats_are_the_rounded_ones},
    {"normal integers are kept in range", normal_integers_are_kept_in_range},
    {"impossible noise is refused", impossible_noise_is_refused},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
