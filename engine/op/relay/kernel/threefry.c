/* threefry.c: kernels of Relay's random operators: random.threefry_generate,
 * random.threefry_split, random.uniform, random.normal, random.multinomial.
 * Called through ops.def; types are in relay/infer/vm.c.
 *
 * A generator is ten words: the key (0 to 3), the path of splits (4, 5), the
 * counter (6, 7) and the bit of the path that comes next (8, 9). Block i of
 * four words is Threefry-4x64 with 20 rounds (Salmon et al., SC '11) of path
 * and counter, each word increased by i. The same key gives the same values,
 * in TVM too: these operators have no effects.
 *
 * Semantics: TVM's TOPI; distributions in the result's dtype. */

#include <math.h>

#include "op/kernel/composed.h"

enum { KEY = 4, PATH = 4, COUNTER = 7, NEXT = 8, WORDS = 10, ROUNDS = 20 };

/* -------------------------------------------------------------- the cipher */

/* A run of four rounds adds the words of the extended key, from another one
 * each time. */
static void add_key(const uint64_t *key, uint64_t run, uint64_t *x) {
  for (uint64_t j = 0; j < KEY; j++)
    x[j] += key[(run + j) % (KEY + 1)];
  x[KEY - 1] += run;
}

static void mix_words(uint64_t *x, uint64_t *y, uint32_t rotation) {
  *x += *y;
  *y = *x ^ (*y << rotation | *y >> (64 - rotation));
}

/* Enciphers the block x, of which TVM omits the last addition of the key. */
static void encipher(const uint64_t *key, uint64_t *x) {
  static const uint8_t rotations[8][2] = {
      {14, 16}, {52, 57}, {23, 40}, {5, 37},
      {25, 33}, {46, 12}, {58, 22}, {32, 32},
  };
  for (uint32_t i = 0; i < ROUNDS; i++) {
    if (i % 4 == 0)
      add_key(key, i / 4, x);
    mix_words(&x[0], &x[1], rotations[i % 8][0]);
    mix_words(&x[2], &x[3], rotations[i % 8][1]);
    uint64_t second = x[1];
    x[1] = x[3];
    x[3] = second;
  }
}

static void extend_key(const uint64_t *generator, uint64_t *key) {
  key[KEY] = 0x1BD11BDAA9FC1A22;
  for (uint32_t i = 0; i < KEY; i++) {
    key[i] = generator[i];
    key[KEY] ^= generator[i];
  }
}

static void encipher_block(const uint64_t *key, const uint64_t *block,
                           uint64_t i, uint64_t *out) {
  for (uint32_t j = 0; j < KEY; j++)
    out[j] = block[j] + i;
  encipher(key, out);
}

/* ---------------------------------------------------------------- the path */

/* The next bit of the path moves by one, as TVM does it. */
static void move_next(const uint64_t *from, uint64_t *to) {
  uint64_t high = from[NEXT], low = from[NEXT + 1];
  to[NEXT] = high > 1 ? high >> 1 : 0;
  to[NEXT + 1] = high == 1 ? (uint64_t)1 << 63 : high == 0 ? low >> 1 : 0;
}

/* Appends a one to the path. */
static void append_one(const uint64_t *from, uint64_t *to) {
  memcpy(to, from, WORDS * sizeof *to);
  to[PATH] |= from[NEXT];
  to[PATH + 1] |= from[NEXT + 1];
  move_next(from, to);
}

static bool is_path_full(const uint64_t *generator) {
  return !generator[NEXT] && !generator[NEXT + 1];
}

/* ------------------------------------------------------------------- words */

typedef struct generation {
  uint64_t generator[WORDS]; /* before, then after it */
  uint64_t n;                /* words to generate */
} generation;

/* Makes room in the counter for n more words. */
static pln_status make_room(const pln_kernel_call *call, generation *d) {
  uint64_t *g = d->generator;
  if (g[COUNTER] < UINT64_MAX - d->n)
    return PLN_OK;
  if (is_path_full(g))
    return pln_kernel_refuse(call, "key, path and counter are used up");
  append_one(g, g);
  g[COUNTER - 1] = g[COUNTER] = 0;
  return PLN_OK;
}

/* Reads the key, operand 0. */
static pln_status begin_generation(const pln_kernel_call *call, uint64_t n,
                                   generation *d) {
  const pln_tensor *key = pln_kernel_arg(call, 0);
  if (key->dtype != PLN_UINT64 || key->count != WORDS)
    return pln_kernel_refuse(call, "a key is ten words of uint64");
  memcpy(d->generator, key->data, sizeof d->generator);
  d->n = n;
  return make_room(call, d);
}

/* Generates n words. A block that is not full begins at its own counter. */
static pln_status generate_words(const pln_kernel_call *call, generation *d,
                                 uint64_t *out) {
  uint64_t key[KEY + 1], block[KEY], *g = d->generator;
  size_t polled = 0;
  extend_key(g, key);
  for (uint64_t i = 0; i < d->n / KEY; i++) {
    encipher_block(key, g + PATH, i, out + i * KEY);
    PLN_TRY(pln_poll_after(call->engine, &polled, KEY));
  }
  uint64_t rest = d->n % KEY, whole = d->n - rest;
  g[COUNTER] += whole;
  if (rest) {
    encipher_block(key, g + PATH, 0, block);
    memcpy(out + whole, block, rest * sizeof *block);
    g[COUNTER] += KEY;
  }
  g[COUNTER - 1] = 0;
  return PLN_OK;
}

static pln_status check_results(const pln_kernel_call *call) {
  return call->n_results == 2 ? PLN_OK
                              : pln_kernel_refuse(call, "it has two results");
}

static pln_status give_generator(pln_kernel_call *call, uint32_t result,
                                 const uint64_t *generator) {
  const int64_t dims[] = {WORDS};
  void *data;
  PLN_TRY(pln_kernel_unset(call, result, PLN_UINT64, 1, dims, &data));
  memcpy(data, generator, WORDS * sizeof *generator);
  return PLN_OK;
}

/* ------------------------------------------------------------------- shapes */

typedef struct result_shape {
  uint32_t rank;
  int64_t dims[PLN_MAX_RANK];
  uint64_t count;
} result_shape;

static bool append_extent(result_shape *shape, int64_t extent) {
  uint64_t count;
  if (extent < 0 || shape->rank == PLN_MAX_RANK ||
      __builtin_mul_overflow(shape->count, (uint64_t)extent, &count) ||
      count > INT64_MAX / sizeof(uint64_t))
    return false;
  shape->dims[shape->rank++] = extent;
  shape->count = count;
  return true;
}

static pln_status read_shape(const pln_kernel_call *call, result_shape *shape) {
  pln_list list = pln_kernel_list(call, PLN_NONE, "out_shape");
  *shape = (result_shape){.count = 1};
  for (uint32_t i = 0; i < list.count; i++)
    if (!append_extent(shape, pln_list_at(&list, i)))
      return pln_kernel_refuse(call, "out_shape is too large");
  return PLN_OK;
}

pln_status pln_kernel_threefry_generate(pln_kernel_call *call) {
  result_shape shape;
  generation d;
  void *words;
  PLN_TRY(check_results(call));
  PLN_TRY(read_shape(call, &shape));
  PLN_TRY(begin_generation(call, shape.count, &d));
  PLN_TRY(
      pln_kernel_unset(call, 1, PLN_UINT64, shape.rank, shape.dims, &words));
  PLN_TRY(generate_words(call, &d, words));
  return give_generator(call, 0, d.generator);
}

/* A full path becomes a part of the key. */
pln_status pln_kernel_threefry_split(pln_kernel_call *call) {
  uint64_t left[WORDS], right[WORDS], key[KEY + 1];
  generation d;
  const pln_tensor *x = pln_kernel_arg(call, 0);
  PLN_TRY(check_results(call));
  if (x->dtype != PLN_UINT64 || x->count != WORDS)
    return pln_kernel_refuse(call, "a key is ten words of uint64");
  memcpy(d.generator, x->data, sizeof d.generator);
  memcpy(left, d.generator, sizeof left);
  if (is_path_full(left)) {
    extend_key(left, key);
    memset(left, 0, sizeof left);
    encipher_block(key, d.generator + PATH, 0, left);
    left[NEXT] = (uint64_t)1 << 63;
  }
  append_one(left, right);
  move_next(left, left);
  PLN_TRY(give_generator(call, 0, left));
  return give_generator(call, 1, right);
}

/* ------------------------------------------------------------ distributions */

static double unit_double(uint64_t word) {
  return (double)(word >> 12) / (double)((uint64_t)1 << 52);
}

static float unit_float(uint64_t word) {
  return (float)(word >> 41) / (float)(1 << 23);
}

/* Generates n numbers of [0, 1), as words whose upper bits they are made of. */
static pln_status generate_units(pln_kernel_call *call, uint64_t n,
                                 uint64_t **out, generation *d) {
  PLN_TRY(begin_generation(call, n, d));
  *out = pln_mem_new(call->engine, n * sizeof **out);
  if (n && !*out)
    return pln_nomem(call->engine);
  pln_status status = generate_words(call, d, *out);
  if (status != PLN_OK)
    pln_mem_free(call->engine, *out, n * sizeof **out);
  return status;
}

/* The two scalar parameters. */
typedef struct distribution {
  pln_dtype dtype;
  result_shape shape;
  const void *a, *b;
} distribution;

static pln_status read_distribution(const pln_kernel_call *call,
                                    distribution *d) {
  const pln_tensor *a = pln_kernel_arg(call, 1), *b = pln_kernel_arg(call, 2);
  d->dtype = (pln_dtype)a->dtype;
  d->a = a->data;
  d->b = b->data;
  if ((d->dtype != PLN_FLOAT32 && d->dtype != PLN_FLOAT64) ||
      b->dtype != a->dtype)
    return pln_kernel_no_dtype(call, d->dtype);
  if (a->count != 1 || b->count != 1)
    return pln_kernel_refuse(call, "the parameters are not scalars");
  return read_shape(call, &d->shape);
}

/* Between low and high. */
static void write_uniform(const distribution *d, const uint64_t *words,
                          void *out) {
  uint64_t n = d->shape.count;
  if (d->dtype == PLN_FLOAT32) {
    float low = *(const float *)d->a, span = *(const float *)d->b - low;
    for (uint64_t i = 0; i < n; i++)
      ((float *)out)[i] = unit_float(words[i]) * span + low;
    return;
  }
  double low = *(const double *)d->a, span = *(const double *)d->b - low;
  for (uint64_t i = 0; i < n; i++)
    ((double *)out)[i] = unit_double(words[i]) * span + low;
}

/* About a mean, by Box and Muller: number i is made of words i and n + i. */
static void write_normal(const distribution *d, const uint64_t *words,
                         void *out) {
  const double two_pi = 6.283185307179586;
  uint64_t n = d->shape.count;
  if (d->dtype == PLN_FLOAT32) {
    float mean = *(const float *)d->a, scale = *(const float *)d->b;
    for (uint64_t i = 0; i < n; i++) {
      float radius = sqrtf(-2 * logf(1 - unit_float(words[i])));
      float wave = sinf((float)two_pi * unit_float(words[n + i]));
      ((float *)out)[i] = radius * wave * scale + mean;
    }
    return;
  }
  double mean = *(const double *)d->a, scale = *(const double *)d->b;
  for (uint64_t i = 0; i < n; i++) {
    double radius = sqrt(-2 * log(1 - unit_double(words[i])));
    ((double *)out)[i] =
        radius * sin(two_pi * unit_double(words[n + i])) * scale + mean;
  }
}

/* Generates `of_each` words for each number. */
static pln_status sample(pln_kernel_call *call, uint64_t of_each,
                         void (*write)(const distribution *, const uint64_t *,
                                       void *)) {
  distribution dist;
  generation d;
  uint64_t *words;
  void *out;
  PLN_TRY(check_results(call));
  PLN_TRY(read_distribution(call, &dist));
  const result_shape *shape = &dist.shape;
  uint64_t n = shape->count * of_each;
  PLN_TRY(
      pln_kernel_unset(call, 1, dist.dtype, shape->rank, shape->dims, &out));
  PLN_TRY(generate_units(call, n, &words, &d));
  write(&dist, words, out);
  pln_mem_free(call->engine, words, n * sizeof *words);
  return give_generator(call, 0, d.generator);
}

pln_status pln_kernel_relay_uniform(pln_kernel_call *call) {
  return sample(call, 1, write_uniform);
}

pln_status pln_kernel_relay_normal(pln_kernel_call *call) {
  return sample(call, 2, write_normal);
}

/* -------------------------------------------------------------- multinomial */

/* Cumulative probabilities of a row: negative ones are zero, their sum is one.
 */
static void accumulate_row(const float *row, size_t n, float *out) {
  float sum = 0, cumulative = 0;
  for (size_t i = 0; i < n; i++)
    sum += row[i] > 0 ? row[i] : 0;
  for (size_t i = 0; i < n; i++)
    out[i] = cumulative += (row[i] > 0 ? row[i] : 0) / sum;
}

/* The class whose cumulative probability is the least above x; 0 if there is
 * none. A distance of one or more counts as one, as in TVM. */
static int32_t find_class(const float *cumulative, size_t n, float x) {
  float least = INFINITY;
  size_t found = 0;
  for (size_t i = 0; i < n; i++) {
    float distance = cumulative[i] - x;
    distance = distance > 0 ? distance : 1;
    if (distance < least) {
      least = distance;
      found = i;
    }
  }
  return (int32_t)found;
}

static pln_status sample_classes(pln_kernel_call *call, const pln_tensor *probs,
                                 const result_shape *shape, float *cumulative,
                                 int32_t *out) {
  size_t classes = (size_t)probs->dims[probs->rank - 1], polled = 0;
  size_t samples = (size_t)shape->dims[shape->rank - 1];
  size_t size = shape->count * sizeof(uint64_t);
  uint64_t *words;
  generation d;
  PLN_TRY(generate_units(call, shape->count, &words, &d));
  pln_status status = PLN_OK;
  for (size_t i = 0; i < shape->count && status == PLN_OK; i++) {
    if (i % samples == 0)
      accumulate_row((const float *)probs->data + i / samples * classes,
                     classes, cumulative);
    out[i] = find_class(cumulative, classes, unit_float(words[i]));
    status = pln_poll_after(call->engine, &polled, classes);
  }
  pln_mem_free(call->engine, words, size);
  return status == PLN_OK ? give_generator(call, 0, d.generator) : status;
}

static pln_status sampled_shape(const pln_kernel_call *call,
                                const pln_tensor *probs, result_shape *shape) {
  *shape = (result_shape){.count = 1};
  bool small = true;
  for (uint32_t i = 0; i + 1 < probs->rank && small; i++)
    small = append_extent(shape, probs->dims[i]);
  if (!small || !append_extent(shape, pln_kernel_int(call, "num_samples", 1)))
    return pln_kernel_refuse(call, "num_samples is too large");
  if (probs->dims[probs->rank - 1] == 0 ||
      probs->dims[probs->rank - 1] > INT32_MAX)
    return pln_kernel_refuse(call, "there are no classes, or too many");
  return PLN_OK;
}

pln_status pln_kernel_relay_multinomial(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 1);
  pln_composition s;
  result_shape shape;
  void *out;
  PLN_TRY(check_results(call));
  if (x->rank == 0)
    return pln_kernel_refuse(call, "probabilities have no axis");
  PLN_TRY(sampled_shape(call, x, &shape));
  PLN_TRY(pln_kernel_unset(call, 1, PLN_INT32, shape.rank, shape.dims, &out));
  size_t size = (size_t)x->dims[x->rank - 1] * sizeof(float);
  float *cumulative = pln_mem_new(call->engine, size);
  if (!cumulative)
    return pln_nomem(call->engine);
  pln_composition_begin(&s, call);
  const pln_tensor *probs = pln_compose_cast(&s, x, PLN_FLOAT32);
  if (probs)
    s.status = sample_classes(call, probs, &shape, cumulative, out);
  pln_mem_free(call->engine, cumulative, size);
  return pln_composition_end(&s);
}
