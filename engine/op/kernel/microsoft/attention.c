/* attention.c: Attention, QAttention and MultiHeadAttention of com.microsoft,
 * composed of the core's attention. Called through ops.def.
 *
 *     Attention<num_heads=2>(x, w, b)   =>   attention of the thirds of x w + b
 *
 * A mask of integers is turned into numbers that are added to the scores, 0 or
 * mask_filter_value, as ONNX Runtime does: a query none of whose keys counts
 * attends to all of them. Semantics: ONNX Runtime's CPU kernels. */

#include "op/kernel/composed.h"
#include "op/kernel/half_as_float.h"

/* Query, key and value are (batch, steps, heads * size). */
typedef struct attention_operands {
  const pln_tensor *query, *key, *value;
  const pln_tensor *past_key, *past_value; /* (batch, heads, steps, size) */
  const pln_tensor *mask; /* which keys count; rank 1, 2 or 3; may be NULL */
  const pln_tensor *bias; /* added to the scores; may be NULL */
  size_t keys;            /* past and new ones */
} attention_operands;

/* ------------------------------------------------------------------- masks */

/* Element `i` of a mask of integers. */
static int64_t mask_at(const pln_tensor *m, size_t i) {
  int64_t value = 0;
  return pln_tensor_int(m, i, &value) ? value : 0;
}

/* Keys [start, end) of each batch count: ends, then starts if there are twice
 * as many. */
static bool fill_from_bounds(const pln_tensor *m, size_t batch, size_t keys,
                             float filter, float *out) {
  if (m->count != batch && m->count != 2 * batch)
    return false;
  for (size_t b = 0; b < batch; b++) {
    int64_t end = mask_at(m, b);
    int64_t start = m->count > batch ? mask_at(m, batch + b) : 0;
    for (size_t k = 0; k < keys; k++)
      if ((int64_t)k >= end || (int64_t)k < start)
        out[b * keys + k] = filter;
  }
  return true;
}

/* The numbers to be added to the scores, as (batch, 1, 1 or queries, keys); 0
 * where a key counts. */
static const pln_tensor *additive_mask(pln_composition *s, const pln_tensor *m,
                                       const pln_tensor *query, size_t keys) {
  float filter = (float)pln_kernel_float(s->call, "mask_filter_value", -10000);
  size_t batch = (size_t)query->dims[0];
  int64_t dims[4] = {query->dims[0], 1, m->rank == 3 ? query->dims[1] : 1,
                     (int64_t)keys};
  pln_tensor *t = NULL;
  if (s->status == PLN_OK)
    s->status = pln_tensor_new(s->call->engine, PLN_FLOAT32, 4, dims, &t);
  const pln_tensor *kept = pln_compose_own(s, t);
  if (!kept)
    return NULL;
  float *out = pln_tensor_writable(t);
  bool fits = m->dtype == PLN_INT32 && m->rank >= 1 && m->rank <= 3;
  if (fits && m->rank == 1)
    fits = fill_from_bounds(m, batch, keys, filter, out);
  else if (fits)
    fits = m->count == kept->count && m->dims[m->rank - 1] == (int64_t)keys;
  for (size_t i = 0; fits && m->rank > 1 && i < m->count; i++)
    out[i] = ((const int32_t *)m->data)[i] > 0 ? 0 : filter;
  if (!fits)
    pln_composition_refuse(s, "the mask does not match batches and keys");
  return fits ? pln_compose_cast(s, kept, (pln_dtype)query->dtype) : NULL;
}

/* --------------------------------------------------------------- the product
 */

/* Mask and bias as one operand of the core's attention. */
static const pln_tensor *all_biases(pln_composition *s,
                                    const attention_operands *o) {
  const pln_tensor *mask =
      o->mask ? additive_mask(s, o->mask, o->query, o->keys) : NULL;
  if (!mask || !o->bias)
    return mask ? mask : o->bias;
  return pln_compose_binary(s, PLN_OP_ADD, mask, o->bias);
}

/* Results: the output, the present keys and values. Attributes num_heads,
 * scale and unidirectional are the call's. */
static void attend(pln_composition *s, const attention_operands *o,
                   uint32_t n_results, const pln_tensor *out[3]) {
  int64_t heads = pln_kernel_int(s->call, "num_heads", 0);
  double scale = pln_kernel_float(s->call, "scale", 0);
  out[0] = out[1] = out[2] = NULL;
  if (s->status != PLN_OK || !o->query || !o->key || !o->value)
    return;
  const pln_tensor *args[6] = {o->query, o->key,      o->value,
                               NULL,     o->past_key, o->past_value};
  args[3] = all_biases(s, o);
  if (scale != 0)
    pln_compose_float(s, "scale", scale);
  pln_compose_int(s, "q_num_heads", heads);
  pln_compose_int(s, "kv_num_heads", heads);
  pln_compose_int(s, "is_causal", pln_kernel_int(s->call, "unidirectional", 0));
  pln_compose_results(s, PLN_OP_ATTENTION, 6, args, n_results, out);
}

/* ---------------------------------------------------- attention of columns */

/* Half `i` of the past, (2, batch, heads, steps, size), without its first axis.
 */
static const pln_tensor *past_half(pln_composition *s, const pln_tensor *past,
                                   int64_t i) {
  if (!past)
    return NULL;
  return pln_compose_reshape(s, pln_compose_slice(s, past, 0, i, i + 1), 4,
                             past->dims + 1);
}

/* Joins present keys and values along a new first axis. */
static const pln_tensor *join_pair(pln_composition *s, const pln_tensor *key,
                                   const pln_tensor *value) {
  int64_t dims[5] = {1};
  if (!key || !value)
    return NULL;
  memcpy(dims + 1, key->dims, 4 * sizeof *dims);
  const pln_tensor *k = pln_compose_reshape(s, key, 5, dims);
  memcpy(dims + 1, value->dims, 4 * sizeof *dims);
  const pln_tensor *v = pln_compose_reshape(s, value, 5, dims);
  pln_compose_int(s, "axis", 0);
  return pln_compose_binary(s, PLN_OP_CONCAT, k, v);
}

/* The columns of query, key and value: attribute qkv_hidden_sizes, else
 * thirds. */
static bool column_sizes(pln_composition *s, int64_t all, int64_t sizes[3]) {
  uint32_t n = 0;
  const pln_attr *a =
      pln_attrs_find(s->call->engine, s->call->attrs, "qkv_hidden_sizes");
  int64_t heads = pln_kernel_int(s->call, "num_heads", 0), left = all;
  for (; n < 3; n++) {
    sizes[n] =
        a && a->kind == PLN_ATTR_INTS && a->count == 3 ? a->v.ints[n] : all / 3;
    if (heads < 1 || sizes[n] < 0 || sizes[n] > left || sizes[n] % heads)
      break;
    left -= sizes[n];
  }
  if (n < 3 || left)
    pln_composition_refuse(s, "the columns of the weights do not match "
                              "num_heads and qkv_hidden_sizes");
  return s->status == PLN_OK;
}

static bool check_past(pln_composition *s, const pln_tensor *past) {
  if (pln_kernel_int(s->call, "past_present_share_buffer", 0) ||
      pln_kernel_int(s->call, "do_rotary", 0))
    pln_composition_refuse(
        s, "past_present_share_buffer and do_rotary are not computed");
  if (past && (past->rank != 5 || past->dims[0] != 2))
    pln_composition_refuse(s, "the past is not of shape (2, batch, heads, "
                              "steps, size)");
  return s->status == PLN_OK;
}

/* Attention of which query, key and value are columns of one tensor, with past
 * and mask operands by number. Sets results 0 and 1. */
static pln_status attend_columns(pln_composition *s, const pln_tensor *columns,
                                 uint32_t past_arg, uint32_t mask,
                                 const pln_tensor *bias) {
  const pln_tensor *past = pln_kernel_arg(s->call, past_arg), *out[3];
  int64_t n[3];
  if (!columns || !check_past(s, past) ||
      !column_sizes(s, columns->dims[columns->rank - 1], n))
    return pln_composition_end(s);
  attention_operands o = {
      .query = pln_compose_slice(s, columns, -1, 0, n[0]),
      .key = pln_compose_slice(s, columns, -1, n[0], n[0] + n[1]),
      .value =
          pln_compose_slice(s, columns, -1, n[0] + n[1], n[0] + n[1] + n[2]),
      .past_key = past_half(s, past, 0),
      .past_value = past_half(s, past, 1),
      .mask = pln_kernel_arg(s->call, mask),
      .bias = bias,
      .keys = (size_t)columns->dims[1] + (past ? (size_t)past->dims[3] : 0)};
  bool present = s->call->n_results > 1;
  attend(s, &o, present ? 3 : 1, out);
  if (present)
    pln_composition_set_result(s, 1, join_pair(s, out[1], out[2]));
  return pln_composition_finish(s, out[0]);
}

/* (input, weights, bias, mask, past, attention bias, past length) */
static pln_status packed_attention(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *bias = pln_kernel_arg(call, 2);
  pln_composition s;
  pln_composition_begin(&s, call);
  if (x->rank != 3 || pln_kernel_arg(call, 6))
    return pln_kernel_refuse(
        call, "the input has rank %u, not 3, or operand 6 is given", x->rank);
  const pln_tensor *qkv =
      pln_compose_binary(&s, PLN_OP_MAT_MUL, x, pln_kernel_arg(call, 1));
  if (bias)
    qkv = pln_compose_binary(&s, PLN_OP_ADD, qkv, bias);
  return attend_columns(&s, qkv, 4, 3, pln_kernel_arg(call, 5));
}

pln_status pln_kernel_packed_attention(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "00", packed_attention);
}

/* (input, weights, bias, scale, scale, mask, zero, zero, past) */
pln_status pln_kernel_qattention(pln_kernel_call *call) {
  const pln_tensor *args[4] = {pln_kernel_arg(call, 0), pln_kernel_arg(call, 1),
                               pln_kernel_arg(call, 6),
                               pln_kernel_arg(call, 7)};
  pln_composition s;
  pln_composition_begin(&s, call);
  if (args[0]->rank != 3)
    return pln_kernel_refuse(call, "the input has rank %u, not 3",
                             args[0]->rank);
  const pln_tensor *sum = pln_compose_call(&s, PLN_OP_MAT_MUL_INTEGER, 4, args);
  const pln_tensor *factor = pln_compose_binary(
      &s, PLN_OP_MUL, pln_kernel_arg(call, 3), pln_kernel_arg(call, 4));
  const pln_tensor *qkv = pln_compose_binary(
      &s, PLN_OP_MUL, pln_compose_cast(&s, sum, PLN_FLOAT32), factor);
  qkv = pln_compose_binary(&s, PLN_OP_ADD, qkv, pln_kernel_arg(call, 2));
  return attend_columns(&s, qkv, 8, 5, NULL);
}

/* ------------------------------------------------------ multi-head attention
 */

/* Part `i` of axis 3 of (batch, steps, heads, parts, size), as (batch, steps,
 * heads * size). */
static const pln_tensor *packed_part(pln_composition *s, const pln_tensor *x,
                                     int64_t i) {
  int64_t dims[3] = {x->dims[0], x->dims[1], x->dims[2] * x->dims[4]};
  return pln_compose_reshape(s, pln_compose_slice(s, x, 3, i, i + 1), 3, dims);
}

/* (batch, heads, steps, size) as (batch, steps, heads * size). */
static const pln_tensor *join_heads(pln_composition *s, const pln_tensor *x) {
  static const int64_t axes[] = {0, 2, 1, 3};
  int64_t dims[3] = {x->dims[0], x->dims[2], x->dims[1] * x->dims[3]};
  return pln_compose_reshape(s, pln_compose_transpose(s, x, 4, axes), 3, dims);
}

/* Query, key and value, whichever way they are packed. */
static bool unpack_operands(pln_composition *s, attention_operands *o) {
  const pln_tensor *q = pln_kernel_arg(s->call, 0);
  const pln_tensor *k = pln_kernel_arg(s->call, 1);
  const pln_tensor *v = pln_kernel_arg(s->call, 2);
  *o = (attention_operands){.query = q, .key = k, .value = v};
  if (q->rank == 5 && q->dims[3] == 3 && !k && !v) {
    o->query = packed_part(s, q, 0);
    o->key = packed_part(s, q, 1);
    o->value = packed_part(s, q, 2);
  } else if (q->rank == 3 && k && k->rank == 5 && k->dims[3] == 2 && !v) {
    o->key = packed_part(s, k, 0);
    o->value = packed_part(s, k, 1);
  } else if (q->rank == 3 && k && v && k->rank == 4 && v->rank == 4) {
    o->key = join_heads(s, k);
    o->value = join_heads(s, v);
  } else if (q->rank != 3 || !k || !v || k->rank != 3 || v->rank != 3) {
    pln_composition_refuse(s, "query, key and value do not match each other");
  }
  return s->status == PLN_OK;
}

/* Adds the next columns of the bias to x. */
static const pln_tensor *add_columns(pln_composition *s, const pln_tensor *bias,
                                     const pln_tensor *x, int64_t *at) {
  int64_t from = *at;
  if (!x)
    return NULL;
  *at += x->dims[2];
  return pln_compose_binary(s, PLN_OP_ADD, x,
                            pln_compose_slice(s, bias, -1, from, *at));
}

/* Keys and values that have axes for heads already are without bias. */
static void add_input_bias(pln_composition *s, const pln_tensor *bias,
                           attention_operands *o) {
  const pln_tensor *k = pln_kernel_arg(s->call, 1);
  int64_t at = 0;
  if (!bias || s->status != PLN_OK)
    return;
  if (bias->rank != 1 ||
      bias->dims[0] != o->query->dims[2] + o->key->dims[2] + o->value->dims[2])
    pln_composition_refuse(s, "the bias does not match query, key and value");
  o->query = add_columns(s, bias, o->query, &at);
  if (k && k->rank == 4)
    return;
  o->key = add_columns(s, bias, o->key, &at);
  o->value = add_columns(s, bias, o->value, &at);
}

/* (query, key, value, bias, padding mask, attention bias, past key, past
 * value, past length, indirection) */
static pln_status multi_head_attention(pln_kernel_call *call) {
  const pln_tensor *out[3], *past = pln_kernel_arg(call, 6);
  attention_operands o;
  pln_composition s;
  pln_composition_begin(&s, call);
  if (pln_kernel_arg(call, 8) || pln_kernel_arg(call, 9) || call->n_results > 3)
    pln_composition_refuse(&s, "operands 8 and 9 and result 3, of decoding "
                               "with beams, are not computed");
  if (s.status != PLN_OK || !unpack_operands(&s, &o))
    return pln_composition_end(&s);
  add_input_bias(&s, pln_kernel_arg(call, 3), &o);
  o.past_key = past;
  o.past_value = pln_kernel_arg(call, 7);
  o.mask = pln_kernel_arg(call, 4);
  o.bias = pln_kernel_arg(call, 5);
  o.keys = (o.key ? (size_t)o.key->dims[1] : 0) +
           (past && past->rank == 4 ? (size_t)past->dims[2] : 0);
  attend(&s, &o, call->n_results > 1 ? 3 : 1, out);
  for (uint32_t i = 1; i < call->n_results; i++)
    pln_composition_set_result(&s, i, out[i]);
  return pln_composition_finish(&s, out[0]);
}

pln_status pln_kernel_multi_head_attention(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "000", multi_head_attention);
}

/* ------------------------------------------------------- attention of decoders
 */

/* The number of keys that the caches hold. */
static int64_t past_length(pln_composition *s) {
  const pln_tensor *length = pln_kernel_arg(s->call, 7);
  const pln_tensor *key = pln_kernel_arg(s->call, 5);
  const pln_tensor *value = pln_kernel_arg(s->call, 6);
  int64_t n = 0;
  if (!key)
    return 0;
  if (key->rank != 4 || !value || value->rank != 4 ||
      value->dims[2] != key->dims[2])
    pln_composition_refuse(s, "past key and value do not match each other");
  else if (!pln_kernel_int(s->call, "past_present_share_buffer", 0))
    n = key->dims[2];
  else if (!length || length->count != 1 || !pln_tensor_int(length, 0, &n) ||
           n < 0 || n >= key->dims[2])
    pln_composition_refuse(s, "past_sequence_length is not within the caches");
  return s->status == PLN_OK ? n : 0;
}

/* A cache with its first keys, or values, in their place. */
static const pln_tensor *fill_cache(pln_composition *s,
                                    const pln_tensor *present,
                                    const pln_tensor *cache) {
  if (s->status != PLN_OK || !cache || present->dims[2] >= cache->dims[2])
    return present;
  const pln_tensor *rest =
      pln_compose_slice(s, cache, 2, present->dims[2], cache->dims[2]);
  pln_compose_int(s, "axis", 2);
  return pln_compose_binary(s, PLN_OP_CONCAT, present, rest);
}

static bool has_beams(const pln_kernel_call *call) {
  const pln_tensor *width = pln_kernel_arg(call, 8);
  int64_t n;
  return pln_kernel_arg(call, 9) || call->n_results > 3 ||
         (width &&
          (width->count != 1 || !pln_tensor_int(width, 0, &n) || n != 1));
}

/* (query, key, value, padding mask, attention bias, past key, past value, past
 * length, beam width, indirection, bias) */
static pln_status decoder_attention(pln_kernel_call *call) {
  const pln_tensor *out[3],
      *cache[2] = {pln_kernel_arg(call, 5), pln_kernel_arg(call, 6)};
  attention_operands o;
  pln_composition s;
  pln_composition_begin(&s, call);
  if (has_beams(call))
    pln_composition_refuse(&s, "decoding with beams, and result 3, are not "
                               "computed");
  int64_t past = past_length(&s);
  if (s.status != PLN_OK || !unpack_operands(&s, &o))
    return pln_composition_end(&s);
  add_input_bias(&s, pln_kernel_arg(call, 10), &o);
  o.past_key = past ? pln_compose_slice(&s, cache[0], 2, 0, past) : NULL;
  o.past_value = past ? pln_compose_slice(&s, cache[1], 2, 0, past) : NULL;
  o.mask = pln_kernel_arg(call, 3);
  o.bias = pln_kernel_arg(call, 4);
  o.keys = (o.key ? (size_t)o.key->dims[1] : 0) + (size_t)past;
  attend(&s, &o, call->n_results > 1 ? 3 : 1, out);
  for (uint32_t i = 1; i < call->n_results; i++)
    pln_composition_set_result(&s, i, fill_cache(&s, out[i], cache[i - 1]));
  return pln_composition_finish(&s, out[0]);
}

pln_status pln_kernel_decoder_attention(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "000", decoder_attention);
}
