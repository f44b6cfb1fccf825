/* group_query_attention.c: GroupQueryAttention of com.microsoft: attention with
 * a cache of keys and values whose used length differs by batch. Called through
 * ops.def.
 *
 * seqlens_k holds, for each batch, the length with the new steps, less one. If
 * total_sequence_length is the number of new steps, this is a first prompt and
 * nothing precedes it. The new keys are written behind those of the past that
 * are used; a mask leaves each query its window of them. A sink is one more key
 * with that score and the value 0.
 *
 * Semantics: ONNX Runtime's CPU kernel. Rows of the present cache that no key
 * has are 0. */

#include <math.h>

#include "op/kernel/half_as_float.h"
#include "op/kernel/microsoft/rotary_embedding.h"

enum {
  QUERY,
  KEY,
  VALUE,
  PAST_KEY,
  PAST_VALUE,
  LENGTHS,
  TOTAL,
  COSINES,
  SINES,
  POSITIONS,
  BIAS,
  SINK,
  N_KNOWN /* operands after these belong to quantised caches and norms */
};

typedef struct grouped {
  pln_composition s;
  int64_t heads, kv_heads, batch, steps, size;
  int64_t total, keys; /* total_sequence_length; keys of the present cache */
  int64_t *past;       /* of each batch: how many keys precede the new ones */
  const pln_tensor *q, *k, *v;
} grouped;

/* ----------------------------------------------------------------- reading */

static void refuse_unless(grouped *g, bool holds, const char *why) {
  if (!holds)
    pln_composition_refuse(&g->s, why);
}

/* Without keys, the queries hold all three as columns. */
static void read_projections(grouped *g) {
  const pln_kernel_call *call = g->s.call;
  const pln_tensor *q = pln_kernel_arg(call, QUERY);
  g->q = q;
  g->k = pln_kernel_arg(call, KEY);
  g->v = pln_kernel_arg(call, VALUE);
  refuse_unless(g, q->rank == 3 && !g->k == !g->v,
                "the query has not rank 3, or a key comes without value");
  if (g->s.status != PLN_OK)
    return;
  int64_t all = g->k ? g->heads : g->heads + 2 * g->kv_heads;
  g->batch = q->dims[0];
  g->steps = q->dims[1];
  g->size = q->dims[2] / all;
  refuse_unless(g, q->dims[2] % all == 0 && g->heads % g->kv_heads == 0,
                "the columns do not match num_heads and kv_num_heads");
  if (g->k)
    return;
  int64_t a = g->heads * g->size, b = a + g->kv_heads * g->size;
  g->q = pln_compose_slice(&g->s, q, -1, 0, a);
  g->k = pln_compose_slice(&g->s, q, -1, a, b);
  g->v = pln_compose_slice(&g->s, q, -1, b, q->dims[2]);
}

static bool is_part(const grouped *g, const pln_tensor *x) {
  return x && x->rank == 3 && x->dims[0] == g->batch &&
         x->dims[1] == g->steps && x->dims[2] == g->kv_heads * g->size;
}

static bool is_cache(const grouped *g, const pln_tensor *x) {
  return x->rank == 4 && x->dims[0] == g->batch && x->dims[1] == g->kv_heads &&
         x->dims[3] == g->size && x->dtype == g->q->dtype;
}

static void check_operands(grouped *g) {
  const pln_kernel_call *call = g->s.call;
  const pln_tensor *k = pln_kernel_arg(call, PAST_KEY);
  const pln_tensor *v = pln_kernel_arg(call, PAST_VALUE);
  refuse_unless(g, is_part(g, g->k) && is_part(g, g->v),
                "key and value do not match the query");
  if (g->s.status != PLN_OK)
    return;
  refuse_unless(g, !k == !v && (!k || (is_cache(g, k) && is_cache(g, v))),
                "past key and value are not (batch, heads, steps, size)");
  refuse_unless(g, !k || g->s.status != PLN_OK || k->dims[2] == v->dims[2],
                "past key and value differ in length");
  for (uint32_t i = N_KNOWN; i < call->n_args; i++)
    refuse_unless(g, !pln_kernel_arg(call, i),
                  "quantised caches and norms of query and key are not "
                  "computed");
  refuse_unless(g, pln_kernel_arg(call, LENGTHS) && pln_kernel_arg(call, TOTAL),
                "seqlens_k or total_sequence_length is missing");
  refuse_unless(g, call->n_results <= 3, "result 3 is not computed");
}

/* Lengths of the past and of the present cache. */
static void read_lengths(grouped *g) {
  const pln_kernel_call *call = g->s.call;
  const pln_tensor *lengths = pln_kernel_arg(call, LENGTHS);
  const pln_tensor *past = pln_kernel_arg(call, PAST_KEY);
  int64_t room = past ? past->dims[2] : 0, last;
  refuse_unless(g,
                lengths->dtype == PLN_INT32 &&
                    (int64_t)lengths->count == g->batch &&
                    pln_kernel_arg(call, TOTAL)->count == 1 &&
                    pln_tensor_int(pln_kernel_arg(call, TOTAL), 0, &g->total),
                "seqlens_k or total_sequence_length do not match the query");
  if (g->s.status != PLN_OK)
    return;
  g->keys = g->total > room ? g->total : room;
  for (int64_t b = 0; b < g->batch; b++) {
    last = ((const int32_t *)lengths->data)[b];
    g->past[b] = g->total == g->steps ? 0 : last + 1 - g->steps;
    refuse_unless(g,
                  g->past[b] >= 0 && g->past[b] + g->steps <= g->keys &&
                      (g->total == g->steps || g->past[b] <= room) &&
                      last < g->keys,
                  "a length of seqlens_k is out of range");
  }
}

/* ---------------------------------------------------------------- rotation */

static const pln_tensor *rotated(grouped *g, const pln_tensor *x,
                                 int64_t heads) {
  const pln_kernel_call *call = g->s.call;
  const pln_tensor *cosines = pln_kernel_arg(call, COSINES);
  const pln_tensor *at = pln_kernel_arg(call, POSITIONS);
  if (!cosines || cosines->rank != 2 || !pln_kernel_arg(call, SINES)) {
    pln_composition_refuse(&g->s, "do_rotary needs tables of rank 2");
    return NULL;
  }
  if (!at)
    at = pln_compose_positions(&g->s, g->batch, g->steps, g->past, 1);
  const pln_tensor *args[4] = {x, cosines, pln_kernel_arg(call, SINES), at};
  pln_compose_int(&g->s, "num_heads", heads);
  pln_compose_int(&g->s, "interleaved",
                  pln_kernel_int(call, "rotary_interleaved", 0));
  pln_compose_int(&g->s, "rotary_embedding_dim", 2 * cosines->dims[1]);
  return pln_compose_call(&g->s, PLN_OP_ROTARY_EMBEDDING, 4, args);
}

static void rotate_both(grouped *g) {
  if (g->s.status != PLN_OK || !pln_kernel_int(g->s.call, "do_rotary", 0))
    return;
  g->q = rotated(g, g->q, g->heads);
  g->k = rotated(g, g->k, g->kv_heads);
}

/* ------------------------------------------------------------------- cache */

/* Copies `rows` rows of each head, of strides in bytes. */
static void copy_heads(const grouped *g, char *to, size_t to_head,
                       const char *from, size_t from_head, size_t from_row,
                       int64_t rows) {
  size_t row = (size_t)g->size * pln_element_size((pln_dtype)g->q->dtype);
  for (int64_t h = 0; row && h < g->kv_heads; h++)
    for (int64_t i = 0; i < rows; i++)
      memcpy(to + (size_t)h * to_head + (size_t)i * row,
             from + (size_t)h * from_head + (size_t)i * from_row, row);
}

/* The used past and the new rows, as (batch, heads, keys + extra, size). */
static const pln_tensor *join_cache(grouped *g, const pln_tensor *past,
                                    const pln_tensor *now, int64_t extra) {
  int64_t dims[4] = {g->batch, g->kv_heads, g->keys + extra, g->size};
  pln_tensor *t = NULL;
  if (g->s.status == PLN_OK)
    g->s.status =
        pln_tensor_new(g->s.call->engine, (pln_dtype)now->dtype, 4, dims, &t);
  if (!pln_compose_own(&g->s, t))
    return NULL;
  size_t row = (size_t)g->size * pln_element_size((pln_dtype)now->dtype);
  size_t head = (size_t)dims[2] * row, heads = (size_t)g->kv_heads;
  size_t room = past ? (size_t)past->dims[2] * row : 0;
  for (int64_t b = 0; b < g->batch; b++) {
    char *to = (char *)pln_tensor_writable(t) + (size_t)b * heads * head;
    if (past)
      copy_heads(g, to, head,
                 (const char *)past->data + (size_t)b * heads * room, room, row,
                 g->past[b]);
    copy_heads(g, to + (size_t)g->past[b] * row, head,
               (const char *)now->data +
                   (size_t)b * (size_t)g->steps * heads * row,
               row, heads * row, g->steps);
  }
  return t;
}

/* -------------------------------------------------------------------- mask */

/* The keys [*from, *to) that query `i` of a batch sees. */
static void visible_keys(const grouped *g, int64_t b, int64_t i, int64_t *from,
                         int64_t *to) {
  const pln_kernel_call *call = g->s.call;
  int64_t window = pln_kernel_int(call, "local_window_size", -1);
  bool causal = pln_kernel_int(call, "causal", 1) != 0;
  *to = g->past[b] + (causal ? i + 1 : g->steps);
  *from = window >= 0 && *to > window ? *to - window : 0;
}

static float sink_of(const grouped *g, int64_t head) {
  const pln_tensor *t = pln_kernel_arg(g->s.call, SINK);
  return t ? ((const float *)t->data)[head] : 0;
}

/* 0 for the keys that a query sees, -inf for others, and the sink's score in
 * the column behind the keys. */
static const pln_tensor *additive_mask(grouped *g, bool sink) {
  int64_t heads = sink ? g->heads : 1, width = g->keys + sink, from, to;
  int64_t dims[4] = {g->batch, heads, g->steps, width};
  pln_tensor *t = NULL;
  if (g->s.status == PLN_OK)
    g->s.status = pln_tensor_unset(g->s.call->engine, PLN_FLOAT32, 4, dims, &t);
  if (!pln_compose_own(&g->s, t))
    return NULL;
  float *row = pln_tensor_writable(t);
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t i = 0; i < g->steps; i++, row += width) {
        visible_keys(g, b, i, &from, &to);
        for (int64_t k = 0; k < g->keys; k++)
          row[k] = k >= from && k < to ? 0 : -INFINITY;
        if (sink)
          row[g->keys] = sink_of(g, h);
      }
  return pln_compose_cast(&g->s, t, (pln_dtype)g->q->dtype);
}

/* The call's bias, with a column of zeros for the sink. */
static const pln_tensor *bias_of(grouped *g, const pln_tensor *mask,
                                 bool sink) {
  const pln_tensor *bias = pln_kernel_arg(g->s.call, BIAS);
  int64_t pads[8] = {0};
  if (!bias || g->s.status != PLN_OK)
    return mask;
  refuse_unless(g, bias->rank == 4 && bias->dims[3] <= g->keys,
                "the attention bias does not match the keys");
  int64_t lacking = g->s.status == PLN_OK ? g->keys - bias->dims[3] + sink : 0;
  if (lacking) {
    pads[7] = lacking;
    pln_compose_ints(&g->s, "pads", 8, pads);
    bias = pln_compose_unary(&g->s, PLN_OP_PAD, bias);
  }
  return pln_compose_binary(&g->s, PLN_OP_ADD, mask, bias);
}

/* --------------------------------------------------------------- attention */

static const pln_tensor *split_heads(grouped *g, const pln_tensor *x) {
  static const int64_t axes[] = {0, 2, 1, 3};
  int64_t dims[4] = {g->batch, g->steps, g->heads, g->size};
  return pln_compose_transpose(&g->s, pln_compose_reshape(&g->s, x, 4, dims), 4,
                               axes);
}

static const pln_tensor *join_heads(grouped *g, const pln_tensor *x) {
  static const int64_t axes[] = {0, 2, 1, 3};
  int64_t dims[3] = {g->batch, g->steps, g->heads * g->size};
  return pln_compose_reshape(&g->s, pln_compose_transpose(&g->s, x, 4, axes), 3,
                             dims);
}

static const pln_tensor *attend(grouped *g, const pln_tensor *k,
                                const pln_tensor *v, bool sink) {
  const pln_kernel_call *call = g->s.call;
  double scale = pln_kernel_float(call, "scale", 0);
  const pln_tensor *mask = bias_of(g, additive_mask(g, sink), sink);
  const pln_tensor *args[4] = {split_heads(g, g->q), k, v, mask};
  if (g->s.status != PLN_OK)
    return NULL;
  if (scale != 0)
    pln_compose_float(&g->s, "scale", scale);
  pln_compose_forward(&g->s, "softcap");
  return join_heads(g, pln_compose_call(&g->s, PLN_OP_ATTENTION, 4, args));
}

static bool has_sink(grouped *g) {
  const pln_tensor *sink = pln_kernel_arg(g->s.call, SINK);
  refuse_unless(
      g,
      !sink || (sink->dtype == PLN_FLOAT32 && (int64_t)sink->count == g->heads),
      "head_sink does not match num_heads");
  return sink || pln_kernel_int(g->s.call, "smooth_softmax", -1) > 0;
}

static void run(grouped *g) {
  const pln_kernel_call *call = g->s.call;
  bool sink = has_sink(g);
  rotate_both(g);
  if (g->s.status != PLN_OK)
    return;
  const pln_tensor *past_key = pln_kernel_arg(call, PAST_KEY);
  const pln_tensor *past_value = pln_kernel_arg(call, PAST_VALUE);
  const pln_tensor *k = join_cache(g, past_key, g->k, sink);
  const pln_tensor *v = join_cache(g, past_value, g->v, sink);
  pln_composition_set_result(&g->s, 0, attend(g, k, v, sink));
  if (call->n_results > 1)
    pln_composition_set_result(&g->s, 1,
                               sink ? join_cache(g, past_key, g->k, 0) : k);
  if (call->n_results > 2)
    pln_composition_set_result(&g->s, 2,
                               sink ? join_cache(g, past_value, g->v, 0) : v);
}

static pln_status group_query_attention(pln_kernel_call *call) {
  grouped g = {.heads = pln_kernel_int(call, "num_heads", 0),
               .kv_heads = pln_kernel_int(call, "kv_num_heads", 0)};
  pln_composition_begin(&g.s, call);
  if (g.heads < 1 || g.kv_heads < 1 || g.heads > INT32_MAX ||
      g.kv_heads > INT32_MAX)
    return pln_kernel_refuse(call, "num_heads is %lld, kv_num_heads %lld",
                             (long long)g.heads, (long long)g.kv_heads);
  read_projections(&g);
  if (g.s.status == PLN_OK)
    check_operands(&g);
  size_t size = ((size_t)g.batch + 1) * sizeof *g.past;
  g.past = g.s.status == PLN_OK ? pln_mem_new(call->engine, size) : NULL;
  if (g.s.status == PLN_OK && !g.past)
    g.s.status = pln_nomem(call->engine);
  if (g.s.status == PLN_OK)
    read_lengths(&g);
  if (g.s.status == PLN_OK)
    run(&g);
  pln_mem_free(call->engine, g.past, g.past ? size : 0);
  return pln_composition_end(&g.s);
}

pln_status pln_kernel_group_query_attention(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "000", group_query_attention);
}
