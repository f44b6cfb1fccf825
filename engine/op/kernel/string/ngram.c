/* ngram.c: tf_idf_vectorizer: counts how often rows contain each n-gram of a
 * pool. Called through ops.def; the type is in infer/string.c.
 *
 * The pool is sorted once per call, by length and then by items, for binary
 * search. The items of an n-gram are found at equal gaps in a row. */

#include <stdlib.h>

#include "op/kernel/kernel.h"

typedef enum weighting { COUNT, PRESENT, WEIGHTED } weighting;

/* An n-gram of the pool. */
typedef struct gram {
  const struct pool *pool;
  uint32_t n;
  uint32_t at;    /* offset of its first item in the pool's list */
  uint32_t index; /* its position in the attribute's list */
} gram;

typedef struct pool {
  const pln_kernel_call *call;
  const int64_t *numbers; /* exactly one of both is used */
  const pln_slice *words;
  const int64_t *columns; /* output column by index */
  const double *weights;  /* by index; NULL: all 1 */
  uint32_t items, count;
  int64_t least, most, skips; /* range of lengths; greatest gap minus one */
  int64_t width;              /* of a result's row */
  weighting how;
  gram *grams; /* count of them, sorted */
} pool;

/* ------------------------------------------------------------------ ordering
 */

static int order_words(pln_slice a, pln_slice b) {
  size_t n = a.size < b.size ? a.size : b.size;
  int order = n ? memcmp(a.data, b.data, n) : 0;
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int order_numbers(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int order_grams(const void *x, const void *y) {
  const gram *a = x, *b = y;
  const pool *p = a->pool;
  int order = (a->n > b->n) - (a->n < b->n);
  for (uint32_t i = 0; i < a->n && order == 0; i++)
    order = p->words
                ? order_words(p->words[a->at + i], p->words[b->at + i])
                : order_numbers(p->numbers[a->at + i], p->numbers[b->at + i]);
  return order;
}

/* n items of a row from `first` on, `gap` apart. */
typedef struct ngram_window {
  const pln_tensor *x;
  size_t first, gap;
  uint32_t n;
} ngram_window;

static int compare_window_to_gram(const pool *p, const ngram_window *s,
                                  const gram *g) {
  int order = (s->n > g->n) - (s->n < g->n);
  for (uint32_t i = 0; i < s->n && order == 0; i++) {
    size_t at = s->first + i * s->gap;
    int64_t number = 0;
    if (p->words)
      order =
          order_words(((const pln_slice *)s->x->data)[at], p->words[g->at + i]);
    else if (pln_tensor_int(s->x, at, &number))
      order = order_numbers(number, p->numbers[g->at + i]);
  }
  return order;
}

/* Binary search; NULL if the pool lacks the n-gram. */
static const gram *find_gram(const pool *p, const ngram_window *s) {
  uint32_t low = 0, high = p->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = compare_window_to_gram(p, s, &p->grams[middle]);
    if (order == 0)
      return &p->grams[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

/* ------------------------------------------------------------------- reading
 */

static const pln_attr *find_list(const pln_kernel_call *call, const char *name,
                                 uint8_t kind) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  return a && a->kind == kind ? a : NULL;
}

static pln_status read_items(pool *p, const pln_tensor *x) {
  const pln_attr *words = find_list(p->call, "pool_strings", PLN_ATTR_STRINGS);
  const pln_attr *numbers = find_list(p->call, "pool_int64s", PLN_ATTR_INTS);
  if (!words == !numbers)
    return pln_kernel_refuse(p->call,
                             "one of pool_strings and pool_int64s is needed");
  if (words) {
    p->words = words->v.strings;
    p->items = words->count;
  } else {
    p->numbers = numbers->v.ints;
    p->items = numbers->count;
  }
  bool fits = words ? x->dtype == PLN_STRING
                    : x->dtype == PLN_INT32 || x->dtype == PLN_INT64;
  return fits ? PLN_OK : pln_kernel_no_dtype(p->call, (pln_dtype)x->dtype);
}

static pln_status read_columns(pool *p) {
  const pln_attr *columns = find_list(p->call, "ngram_indexes", PLN_ATTR_INTS);
  const pln_attr *weights = find_list(p->call, "weights", PLN_ATTR_FLOATS);
  if (!columns || columns->count == 0)
    return pln_kernel_refuse(p->call, "there are no ngram_indexes");
  p->count = columns->count;
  p->columns = columns->v.ints;
  for (uint32_t i = 0; i < p->count; i++) {
    if (p->columns[i] < 0 || p->columns[i] > UINT32_MAX)
      return pln_kernel_refuse(p->call, "ngram_indexes[%u] is %lld", i,
                               (long long)p->columns[i]);
    if (p->columns[i] >= p->width)
      p->width = p->columns[i] + 1;
  }
  if (weights && weights->count > 0 && weights->count != p->count)
    return pln_kernel_refuse(p->call, "%u weights of %u n-grams",
                             weights->count, p->count);
  if (weights && weights->count > 0)
    p->weights = weights->v.floats;
  return PLN_OK;
}

static pln_status read_numbers(pool *p) {
  p->least = pln_kernel_int(p->call, "min_gram_length", 1);
  p->most = pln_kernel_int(p->call, "max_gram_length", 1);
  p->skips = pln_kernel_int(p->call, "max_skip_count", 0);
  if (p->least < 1 || p->most < p->least || p->skips < 0)
    return pln_kernel_refuse(p->call, "n-grams of %lld to %lld, %lld skipped",
                             (long long)p->least, (long long)p->most,
                             (long long)p->skips);
  if (pln_kernel_string_is(p->call, "mode", "TF", "TF"))
    p->how = COUNT;
  else if (pln_kernel_string_is(p->call, "mode", "TF", "IDF"))
    p->how = PRESENT;
  else if (pln_kernel_string_is(p->call, "mode", "TF", "TFIDF"))
    p->how = WEIGHTED;
  else
    return pln_kernel_refuse(p->call, "mode is not TF, IDF or TFIDF");
  return PLN_OK;
}

/* Splits the pool's items into n-grams: those of length n begin at counts[n -
 * 1]. */
static pln_status split_pool(pool *p) {
  const pln_attr *counts = find_list(p->call, "ngram_counts", PLN_ATTR_INTS);
  uint32_t index = 0, lengths = counts ? counts->count : 0;
  int64_t begin = lengths ? counts->v.ints[0] : 0;
  for (uint32_t n = 1; n <= lengths; n++) {
    int64_t end = n < lengths ? counts->v.ints[n] : (int64_t)p->items;
    if (begin < 0 || end < begin || end > (int64_t)p->items ||
        (end - begin) % n)
      return pln_kernel_refuse(p->call, "ngram_counts[%u] is %lld", n - 1,
                               (long long)begin);
    for (; begin < end && index < p->count; begin += n, index++)
      p->grams[index] = (gram){p, n, (uint32_t)begin, index};
    if (begin < end)
      break;
  }
  if (index < p->count || begin != (int64_t)p->items)
    return pln_kernel_refuse(p->call, "the pool does not hold %u n-grams",
                             p->count);
  qsort(p->grams, p->count, sizeof *p->grams, order_grams);
  for (uint32_t i = 1; i < p->count; i++)
    if (order_grams(&p->grams[i - 1], &p->grams[i]) == 0)
      return pln_kernel_refuse(p->call, "the pool has an n-gram twice");
  return PLN_OK;
}

/* ------------------------------------------------------------------ counting
 */

/* Counts the n-grams of a row in `found`, by index. */
static void count_row(const pool *p, const pln_tensor *x, size_t first,
                      size_t items, double *found) {
  size_t done = 0;
  for (int64_t skip = 0; skip <= p->skips; skip++) {
    size_t gap = (size_t)skip + 1;
    for (size_t n = (size_t)p->least; n <= (size_t)p->most; n++) {
      if (n - 1 > (items ? items - 1 : 0) / gap || (n == 1 && skip > 0))
        continue;
      size_t span = (n - 1) * gap;
      for (size_t i = 0; i + span < items; i++) {
        if (pln_is_stopped_after(x->engine, &done, 8))
          return;
        ngram_window s = {x, first + i, gap, (uint32_t)n};
        const gram *g = find_gram(p, &s);
        if (g)
          found[g->index]++;
      }
    }
  }
}

static void write_row(const pool *p, const double *found, float *to) {
  for (uint32_t i = 0; i < p->count; i++) {
    double weight = p->weights ? p->weights[i] : 1;
    double value = p->how == COUNT     ? found[i]
                   : p->how == PRESENT ? (found[i] > 0) * weight
                                       : found[i] * weight;
    to[p->columns[i]] += (float)value;
  }
}

static pln_status count_rows(pln_kernel_call *call, const pool *p,
                             double *found) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t items = (size_t)x->dims[x->rank - 1];
  int64_t dims[2] = {x->rank == 2 ? x->dims[0] : 1, p->width};
  void *data;
  PLN_TRY(pln_kernel_result(call, 0, PLN_FLOAT32, x->rank,
                            x->rank == 2 ? dims : dims + 1, &data));
  for (size_t r = 0; r < (size_t)dims[0]; r++) {
    PLN_TRY(pln_poll_round(call->engine, r));
    memset(found, 0, p->count * sizeof *found);
    count_row(p, x, r * items, items, found);
    write_row(p, found, (float *)data + r * (size_t)p->width);
  }
  return PLN_OK;
}

/* Skips lengths and gaps that no row and no n-gram of the pool can have. */
static void limit_ngram_lengths(pool *p, const pln_tensor *x) {
  int64_t items = x->dims[x->rank - 1];
  p->most = p->most < (int64_t)p->items ? p->most : (int64_t)p->items;
  p->most = p->most < items ? p->most : items;
  p->skips = p->skips < items ? p->skips : items;
  if (p->least > p->most)
    p->least = p->most + 1;
}

static pln_status vectorize(pln_kernel_call *call, pool *p) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t bytes = p->count * sizeof(double);
  PLN_TRY(split_pool(p));
  limit_ngram_lengths(p, x);
  double *found = pln_mem_new(call->engine, bytes);
  if (!found)
    return pln_nomem(call->engine);
  pln_status status = count_rows(call, p, found);
  pln_mem_free(call->engine, found, bytes);
  return status;
}

pln_status pln_kernel_tf_idf_vectorizer(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pool p = {.call = call};
  if (x->rank != 1 && x->rank != 2)
    return pln_kernel_refuse(call, "rank %u is neither 1 nor 2", x->rank);
  PLN_TRY(read_items(&p, x));
  PLN_TRY(read_columns(&p));
  PLN_TRY(read_numbers(&p));
  size_t bytes = p.count * sizeof *p.grams;
  p.grams = pln_mem_zeroed(call->engine, bytes);
  if (!p.grams)
    return pln_nomem(call->engine);
  pln_status status = vectorize(call, &p);
  pln_mem_free(call->engine, p.grams, bytes);
  return status;
}
