/* split.c: string_concat and string_split. Called through ops.def; types are in
 * infer/string.c. */

#include "op/kernel/strided.h"
#include "op/kernel/string/builder.h"

/* ------------------------------------------------------------ string_concat */

/* Strides of an operand along the axes of the result; 0 repeats. */
static bool read_pair_strides(const pln_tensor *t, uint32_t rank, int64_t *dims,
                              int64_t *steps) {
  int64_t step = 1;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t at = rank - 1 - i;
    int64_t extent = i < t->rank ? t->dims[t->rank - 1 - i] : 1;
    if (dims[at] == 1)
      dims[at] = extent;
    if (extent != 1 && extent != dims[at])
      return false;
    steps[at] = extent == 1 ? 0 : step;
    step *= extent;
  }
  return true;
}

typedef struct string_pair {
  const pln_tensor *a, *b;
  uint32_t rank;
  int64_t dims[PLN_MAX_RANK];
  int64_t a_steps[PLN_MAX_RANK], b_steps[PLN_MAX_RANK];
} string_pair;

static bool read_pair(const pln_kernel_call *call, string_pair *p) {
  int64_t unused[PLN_MAX_RANK];
  p->a = pln_kernel_arg(call, 0);
  p->b = pln_kernel_arg(call, 1);
  if (p->a->dtype != PLN_STRING || p->b->dtype != PLN_STRING)
    return false;
  p->rank = p->a->rank > p->b->rank ? p->a->rank : p->b->rank;
  if (p->rank > PLN_MAX_RANK)
    return false;
  for (uint32_t i = 0; i < p->rank; i++)
    p->dims[i] = 1;
  return read_pair_strides(p->a, p->rank, p->dims, unused) &&
         read_pair_strides(p->b, p->rank, p->dims, p->b_steps) &&
         read_pair_strides(p->a, p->rank, p->dims, p->a_steps);
}

static pln_status join_all(const string_pair *p, pln_string_builder *texts) {
  const pln_slice *a = p->a->data, *b = p->b->data;
  int64_t at[PLN_MAX_RANK] = {0};
  for (size_t i = 0; i < texts->room; i++) {
    PLN_TRY(pln_poll_round(texts->buffer.engine, i));
    PLN_TRY(pln_string_builder_add(texts, a->data, a->size));
    PLN_TRY(pln_string_builder_add(texts, b->data, b->size));
    pln_string_builder_next(texts);
    for (uint32_t k = p->rank; k-- > 0;) {
      a += p->a_steps[k];
      b += p->b_steps[k];
      if (++at[k] < p->dims[k])
        break;
      a -= p->a_steps[k] * p->dims[k];
      b -= p->b_steps[k] * p->dims[k];
      at[k] = 0;
    }
  }
  return PLN_OK;
}

pln_status pln_kernel_string_concat(pln_kernel_call *call) {
  string_pair p;
  pln_string_builder texts;
  size_t count, bytes;
  if (!read_pair(call, &p))
    return pln_kernel_refuse(call,
                             "operands are no strings that fit each other");
  if (pln_tensor_size(PLN_STRING, p.rank, p.dims, &count, &bytes) != PLN_OK)
    return pln_kernel_refuse(call, "the result is too large");
  PLN_TRY(pln_string_builder_begin(call->engine, count, &texts));
  pln_status status = join_all(&p, &texts);
  if (status == PLN_OK)
    status = pln_string_builder_result(&texts, call, p.rank, p.dims);
  pln_string_builder_end(&texts);
  return status;
}

/* ------------------------------------------------------------- string_split */

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The rest of a string being split. */
typedef struct unsplit_text {
  pln_slice text, delimiter; /* empty delimiter: runs of white space */
  int64_t cuts;              /* remaining splits; below 0: unlimited */
  bool over;
} unsplit_text;

static void drop_prefix(unsplit_text *r, size_t n) {
  r->text.data += n;
  r->text.size -= n;
}

static pln_slice trimmed(pln_slice s) {
  while (s.size && is_space(*s.data)) {
    s.data++;
    s.size--;
  }
  while (s.size && is_space(s.data[s.size - 1]))
    s.size--;
  return s;
}

static unsplit_text begin_rest(const pln_slice *text, pln_slice delimiter,
                               int64_t cuts) {
  unsplit_text r = {*text, delimiter, cuts, false};
  if (delimiter.size)
    return r;
  r.text = trimmed(r.text);
  r.over = r.text.size == 0;
  return r;
}

/* The end of the next part. */
static size_t part_end(const unsplit_text *r) {
  size_t at = 0, n = r->delimiter.size;
  if (n == 0)
    while (at < r->text.size && !is_space(r->text.data[at]))
      at++;
  else
    while (at < r->text.size &&
           (r->text.size - at < n ||
            memcmp(r->text.data + at, r->delimiter.data, n)))
      at++;
  return at;
}

/* Returns false if there is no further part. */
static bool next_part(unsplit_text *r, pln_slice *part) {
  if (r->over)
    return false;
  size_t end = r->cuts == 0 ? r->text.size : part_end(r);
  *part = (pln_slice){r->text.data, end};
  r->over = end == r->text.size;
  if (r->over)
    return true;
  drop_prefix(r, end + r->delimiter.size);
  if (r->delimiter.size == 0)
    r->text = trimmed(r->text);
  r->cuts -= r->cuts > 0;
  return true;
}

typedef struct split {
  const pln_tensor *x;
  pln_slice delimiter;
  int64_t cuts;
} split;

/* Result 1: the number of parts of each string. *most is the greatest. */
static pln_status count_parts(pln_kernel_call *call, const split *s,
                              int64_t *most) {
  pln_tensor *counts;
  pln_slice part;
  PLN_TRY(pln_tensor_unset(call->engine, PLN_INT64, s->x->rank, s->x->dims,
                           &counts));
  int64_t *to = pln_tensor_writable(counts);
  *most = 0;
  pln_status status = PLN_OK;
  size_t done = 0;
  for (size_t i = 0; i < s->x->count && status == PLN_OK; i++) {
    unsplit_text r =
        begin_rest((const pln_slice *)s->x->data + i, s->delimiter, s->cuts);
    status = pln_poll_after(call->engine, &done, 8);
    for (to[i] = 0; status == PLN_OK && next_part(&r, &part); to[i]++)
      status = pln_poll_after(call->engine, &done, 1 + part.size / 8);
    *most = to[i] > *most ? to[i] : *most;
  }
  if (status == PLN_OK && call->n_results > 1)
    call->results[1] = counts;
  else
    pln_tensor_release(counts);
  return status;
}

static pln_status write_parts(pln_engine *e, const split *s, size_t most,
                              pln_slice *to) {
  size_t done = 0;
  if (most == 0)
    return PLN_OK;
  for (size_t i = 0; i < s->x->count; i++, to += most) {
    unsplit_text r =
        begin_rest((const pln_slice *)s->x->data + i, s->delimiter, s->cuts);
    for (size_t k = 0; k < most; k++) {
      if (!next_part(&r, &to[k]))
        to[k] = (pln_slice){"", 0};
      PLN_TRY(pln_poll_after(e, &done, 1 + to[k].size / 8));
    }
  }
  return PLN_OK;
}

/* Result 0: the parts along a new last axis. */
static pln_status give_parts(pln_kernel_call *call, const split *s,
                             int64_t most) {
  int64_t dims[PLN_MAX_RANK + 1];
  size_t count, bytes;
  memcpy(dims, s->x->dims, s->x->rank * sizeof *dims);
  dims[s->x->rank] = most;
  if (pln_tensor_size(PLN_STRING, s->x->rank + 1, dims, &count, &bytes) !=
      PLN_OK)
    return pln_kernel_refuse(call, "the result is too large");
  pln_slice *parts = pln_mem_new(call->engine, bytes);
  if (!parts && bytes)
    return pln_nomem(call->engine);
  pln_status status = write_parts(call->engine, s, (size_t)most, parts);
  if (status == PLN_OK)
    status = pln_tensor_from_bytes(call->engine, PLN_STRING, s->x->rank + 1,
                                   dims, parts, bytes, &call->results[0]);
  pln_mem_free(call->engine, parts, bytes);
  return status;
}

pln_status pln_kernel_string_split(pln_kernel_call *call) {
  int64_t most;
  split s = {.x = pln_kernel_arg(call, 0),
             .delimiter =
                 pln_attrs_string(call->engine, call->attrs, "delimiter", ""),
             .cuts = pln_kernel_int(call, "maxsplit", -1)};
  if (s.x->dtype != PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)s.x->dtype);
  if (s.x->rank >= PLN_MAX_RANK)
    return pln_kernel_refuse(call, "more than %d axes", PLN_MAX_RANK);
  PLN_TRY(count_parts(call, &s, &most));
  return give_parts(call, &s, most);
}
