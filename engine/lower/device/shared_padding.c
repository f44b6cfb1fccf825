/* shared_padding.c: strides of buffers in shared memory (auto_copy.h). Called
 * by lower_auto_copy.c.
 *
 * Memory has 32 banks of 4 bytes. Threads of a warp that access several words
 * of one bank wait for each other. Each axis but the first gets the padding
 * with which the fullest bank has least accesses. The accesses are those of the
 * copies: by axis the indices that the threads of a warp have in the first
 * round.
 *
 * Semantics: the AutoPadder of TVM's tir.LowerAutoCopy. */

#include "lower/device/auto_copy.h"

enum { BANKS = 32, MOST_OFFSETS = 1024, MOST_ACCESSES = 64 };

/* The indices of one access, by axis, each once. */
typedef struct access_space {
  int64_t values[PLN_MOST_COPY_AXES][PLN_WARP];
  uint32_t n[PLN_MOST_COPY_AXES];
  uint32_t bits;
  int64_t offsets[MOST_OFFSETS]; /* of the axes from the present one on */
  uint32_t n_offsets;
} access_space;

typedef struct padding_search {
  pln_auto_copies *x;
  pln_ref buffer;
  uint32_t rank;
  int64_t shape[PLN_MOST_COPY_AXES];
  access_space *spaces;
  uint32_t n, cap;
  int64_t step; /* paddings are multiples of it */
} padding_search;

/* -------------------------------------------------------------------- spaces
 */

/* Threads of a warp: of z, y, x, as far as they are 32. */
static void warp_extents(const pln_auto_copies *x, int64_t extents[3]) {
  int64_t left = PLN_WARP;
  for (uint32_t i = 3; i-- > 0;) {
    int64_t own = x->threads[i] ? x->threads[i] : 1;
    extents[i] = own < left ? own : left;
    left /= extents[i];
  }
}

/* An index of the access where the loops of the copy have the digits of
 * `element`, and all other variables are 0; false if it is not constant. */
static pln_status index_at(pln_auto_copies *x, const pln_auto_copy *copy,
                           pln_ref index, int64_t element, int64_t *out,
                           bool *constant) {
  const pln_graph *g = x->g;
  pln_term t, vars[PLN_MOST_COPY_LOOPS], values[PLN_MOST_COPY_LOOPS];
  pln_term_list order;
  PLN_TRY(pln_analyzer_import_more(x->a, g, index, &t));
  for (uint32_t i = copy->n_loops; i-- > 0;) {
    PLN_TRY(pln_analyzer_import_more(
        x->a, g, g->scopes[g->nodes[copy->loops[i]].data].begin, &vars[i]));
    values[i] = pln_const_like(x->a, vars[i], element % copy->extents[i]);
    element /= copy->extents[i];
  }
  t = pln_term_substitute(x->a, t, copy->n_loops, vars, values);
  PLN_TRY(x->a->status);
  if (!pln_term_order(x->a, t, NULL, &order))
    return x->a->status;
  for (uint32_t i = 0; i < order.n; i++)
    if (pln_term_kind(x->a, order.items[i]) == PLN_VAR) {
      pln_term zero = pln_const_like(x->a, order.items[i], 0);
      t = pln_term_substitute(x->a, t, 1, &order.items[i], &zero);
    }
  pln_term_list_free(x->a, &order);
  t = pln_simplify_term(x->a, t, 2);
  PLN_TRY(x->a->status);
  *constant = pln_is_const(x->a, t);
  *out = *constant ? pln_const(x->a, t) : 0;
  return PLN_OK;
}

static void add_value(access_space *space, uint32_t axis, int64_t value) {
  for (uint32_t i = 0; i < space->n[axis]; i++)
    if (space->values[axis][i] == value)
      return;
  space->values[axis][space->n[axis]++] = value;
}

static pln_status add_thread(padding_search *p, const pln_auto_copy *copy,
                             pln_ref access, uint32_t first, int64_t element,
                             bool *constant) {
  for (uint32_t k = 0; k < p->rank && *constant; k++) {
    int64_t value;
    PLN_TRY(index_at(p->x, copy, pln_operand(p->x->g, access, first + k),
                     element, &value, constant));
    add_value(&p->spaces[p->n], k, value);
  }
  return PLN_OK;
}

/* A thread's elements are neighbours: they stay aligned. */
static pln_status note_lanes(padding_search *p, const pln_auto_copy *copy,
                             pln_ref last) {
  int64_t at, next;
  bool constant, also;
  PLN_TRY(index_at(p->x, copy, last, 0, &at, &constant));
  PLN_TRY(index_at(p->x, copy, last, 1, &next, &also));
  if (constant && also && next - at == 1 && copy->lanes > p->step)
    p->step = copy->lanes;
  return PLN_OK;
}

static pln_status add_access(padding_search *p, const pln_auto_copy *copy,
                             pln_ref access, uint32_t first) {
  const int64_t *threads = p->x->threads;
  int64_t warp[3];
  bool constant = true;
  if (p->n == MOST_ACCESSES)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(p->x->g->engine, (void **)&p->spaces, &p->cap,
                       (size_t)p->n + 1, sizeof *p->spaces));
  p->spaces[p->n] = (access_space){.bits = copy->bits};
  warp_extents(p->x, warp);
  for (int64_t i = 0; i < warp[0] * warp[1] * warp[2] && constant; i++) {
    int64_t ax = i % warp[2], ay = i / warp[2] % warp[1],
            az = i / warp[2] / warp[1];
    int64_t element = (az * (threads[1] ? threads[1] : 1) + ay) *
                          (threads[2] ? threads[2] : 1) +
                      ax;
    PLN_TRY(
        add_thread(p, copy, access, first, element * copy->lanes, &constant));
  }
  if (constant)
    p->n++;
  return note_lanes(p, copy, pln_operand(p->x->g, access, first + p->rank - 1));
}

/* -------------------------------------------------------------------- search
 */

/* Accesses of the fullest bank. */
static uint32_t conflict(const access_space *s, uint32_t axis, int64_t stride) {
  uint32_t banks[BANKS] = {0}, most = 0;
  for (uint32_t i = 0; i < s->n[axis]; i++)
    for (uint32_t k = 0; k < s->n_offsets; k++) {
      int64_t bit = (s->values[axis][i] * stride + s->offsets[k]) * s->bits;
      uint32_t *bank = &banks[pln_floor_mod(bit / 32, BANKS)];
      if (++*bank > most)
        most = *bank;
    }
  return most;
}

static uint32_t worst(const padding_search *p, uint32_t axis, int64_t stride) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    uint32_t own = conflict(&p->spaces[i], axis, stride);
    most = own > most ? own : most;
  }
  return most;
}

static void extend_offsets(access_space *s, uint32_t axis, int64_t stride) {
  int64_t all[MOST_OFFSETS];
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n[axis]; i++)
    for (uint32_t k = 0; k < s->n_offsets && n < MOST_OFFSETS; k++)
      all[n++] = s->values[axis][i] * stride + s->offsets[k];
  memcpy(s->offsets, all, n * sizeof *all);
  s->n_offsets = n;
}

/* The stride of an axis around one that has `base` elements. */
static int64_t padded_stride(padding_search *p, uint32_t axis, int64_t base) {
  uint32_t bits = p->spaces[0].bits, least = UINT32_MAX;
  int64_t most = base / 4, limit = 32 * 32 / bits, best = base;
  if (most > limit)
    most = limit;
  for (int64_t padding = 0; padding <= most; padding += p->step) {
    uint32_t own = worst(p, axis, base + padding);
    if (own < least) {
      least = own;
      best = base + padding;
    }
  }
  return best;
}

static void find_strides(padding_search *p, int64_t *strides) {
  uint32_t last = p->rank - 1;
  for (uint32_t i = 0; i < p->n; i++) {
    access_space *s = &p->spaces[i];
    s->n_offsets = s->n[last];
    memcpy(s->offsets, s->values[last], s->n_offsets * sizeof *s->offsets);
  }
  strides[last] = 1;
  for (uint32_t k = last; k-- > 0;) {
    strides[k] = padded_stride(p, k, strides[k + 1] * p->shape[k + 1]);
    for (uint32_t i = 0; i < p->n; i++)
      extend_offsets(&p->spaces[i], k, strides[k]);
  }
}

static bool has_constant_shape(padding_search *p) {
  pln_buffer_fields f = pln_buffer_fields_of(p->x->g, p->buffer);
  int64_t size = 1;
  p->rank = f.rank;
  if (f.n_strides > 0 || f.rank == 0 || f.rank > PLN_MOST_COPY_AXES)
    return false;
  for (uint32_t i = 0; i < f.rank; i++) {
    const pln_node *n = &p->x->g->nodes[f.shape[i]];
    p->shape[i] =
        n->kind == PLN_INT_IMM ? pln_node_int(p->x->g, f.shape[i]) : 0;
    if (p->shape[i] < 1 || !pln_mul_fits(size, 2 * p->shape[i], &size) ||
        size > INT32_MAX)
      return false;
  }
  return true;
}

pln_status pln_shared_strides(pln_auto_copies *x, pln_ref buffer,
                              int64_t *strides, bool *padded) {
  padding_search p = {.x = x, .buffer = buffer, .step = 1};
  pln_status status = PLN_OK;
  *padded = false;
  if (!pln_is_in_shared(x->g, buffer) || !has_constant_shape(&p))
    return PLN_OK;
  for (uint32_t i = x->first_access[buffer]; status == PLN_OK && i;
       i = x->accesses[i - 1].next) {
    const pln_copy_access *one = &x->accesses[i - 1];
    status = add_access(&p, &x->rows[one->copy], one->access, one->first);
  }
  *padded = status == PLN_OK && p.n > 0;
  if (*padded)
    find_strides(&p, strides);
  pln_mem_free(x->g->engine, p.spaces, p.cap * sizeof *p.spaces);
  return status;
}
