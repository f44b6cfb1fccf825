/* value.c: values of the C writer: their chunks, variables for them, and the
 * memo of what a statement computed.
 *
 * Called by all parts of the writer. */

#include "codegen/writer.h"

/* A longer text becomes a variable. */
enum { LONG_TEXT = 72 };

uint32_t pln_c_n_chunks(const pln_cw *w, uint32_t lanes) {
  uint32_t n = lanes / w->width;
  for (uint32_t rest = lanes % w->width; rest; rest &= rest - 1)
    n++;
  return n;
}

uint32_t pln_c_chunk_lanes(const pln_cw *w, uint32_t lanes, uint32_t chunk) {
  uint32_t full = lanes / w->width, rest = lanes % w->width;
  if (chunk < full)
    return w->width;
  uint32_t bit = w->width;
  for (chunk -= full, chunk++; chunk > 0;) {
    bit >>= 1;
    if (rest & bit)
      chunk--;
  }
  return bit;
}

pln_c_value pln_c_new_value(pln_cw *w, pln_dtype dtype, uint32_t lanes,
                            pln_c_form form) {
  bool is_int = pln_c_is_int(dtype);
  (void)w;
  return (pln_c_value){.lanes = lanes,
                       .form = (uint8_t)form,
                       .dtype = (uint8_t)dtype,
                       .lo = is_int ? pln_c_least(dtype) : 0,
                       .hi = is_int ? pln_c_most(dtype) : 0};
}

/* A value without texts gets an array of its own: copies share theirs. */
void pln_c_add_text(pln_cw *w, pln_c_value *value, pln_c_text text) {
  if (value->count == 0)
    value->cap = 0;
  if (value->count == value->cap) {
    uint32_t cap = value->cap ? 2 * value->cap : 1;
    pln_c_text *grown = w->status == PLN_OK
                            ? pln_arena_new(&w->arena, cap * sizeof *grown)
                            : NULL;
    if (!grown) {
      if (w->status == PLN_OK)
        pln_c_fail(w, pln_nomem(w->engine));
      return;
    }
    if (value->count > 0)
      memcpy(grown, value->texts, value->count * sizeof *grown);
    value->texts = grown;
    value->cap = cap;
  }
  value->texts[value->count++] = text;
}

pln_c_text pln_c_text_at(const pln_cw *w, const pln_c_value *value,
                         uint32_t chunk) {
  (void)w;
  if (chunk >= value->count)
    return (pln_c_text){.data = "0", .size = 1};
  return value->texts[chunk];
}

pln_c_value pln_c_scalar(pln_cw *w, pln_dtype dtype, pln_c_text text) {
  pln_c_value value = pln_c_new_value(w, dtype, 1, PLN_C_PLAIN);
  pln_c_add_text(w, &value, text);
  return value;
}

pln_c_value pln_c_int_value(pln_cw *w, pln_dtype dtype, int64_t number) {
  pln_c_value value = pln_c_scalar(w, dtype, pln_c_int(w, dtype, number));
  if (dtype != PLN_UINT64 || number >= 0)
    value.lo = value.hi = number;
  return value;
}

bool pln_c_is_const(const pln_c_value *value, int64_t *out) {
  *out = value->lo;
  return value->lo == value->hi && pln_c_is_int((pln_dtype)value->dtype);
}

/* ---------------------------------------------------------------- the memo */

uint32_t pln_c_keep(pln_cw *w, pln_c_value value) {
  pln_c_fail(w, pln_mem_grow(w->engine, (void **)&w->values, &w->cap_values,
                             (size_t)w->n_values + 1, sizeof *w->values));
  if (w->status != PLN_OK)
    return 0;
  w->values[w->n_values++] = value;
  return w->n_values;
}

pln_c_value pln_c_value_of(const pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  uint32_t at = w->memo[ref];
  if (n->kind == PLN_VAR) {
    at = w->at_top ? pln_idmap_get(w->top_vars, n->data) : 0;
    at = at ? at : pln_idmap_get(w->vars, n->data);
  }
  if (at)
    return w->values[at - 1];
  return (pln_c_value){.lanes = 1, .dtype = PLN_INT32};
}

void pln_c_forget(pln_cw *w, uint32_t mark) {
  while (w->n_log > mark)
    w->memo[w->log[--w->n_log]] = 0;
}

void pln_c_bind(pln_cw *w, pln_ref var, pln_c_value value) {
  uint32_t at = pln_c_keep(w, value);
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_idmap_set(w->vars, w->g->nodes[var].data, at));
}

void pln_c_unbind(pln_cw *w, pln_ref var) {
  pln_c_fail(w, pln_idmap_set(w->vars, w->g->nodes[var].data, 0));
}

bool pln_c_is_bound(const pln_cw *w, pln_ref var) {
  return pln_idmap_get(w->vars, w->g->nodes[var].data) != 0;
}

/* --------------------------------------------------------------- variables */

pln_c_text pln_c_name(pln_cw *w, const char *type, pln_c_text text) {
  if (text.prec == PLN_C_NAME)
    return text;
  const char *name = pln_c_temp(w);
  size_t size = strlen(type);
  bool pointer = size > 0 && type[size - 1] == '*';
  pln_c_line(w, pointer ? "%sconst %s = %s;" : "const %s %s = %s;", type, name,
             text.data);
  return (pln_c_text){
      .data = name, .size = (uint32_t)strlen(name), .prec = PLN_C_NAME};
}

static const char *text_type(pln_cw *w, const pln_c_value *value,
                             uint32_t chunk) {
  pln_dtype dtype = (pln_dtype)value->dtype;
  uint32_t lanes = value->form == PLN_C_PLAIN
                       ? pln_c_chunk_lanes(w, value->lanes, chunk)
                       : 1;
  return pln_c_chunk_type(w, dtype, value->mask, lanes);
}

pln_c_value pln_c_named(pln_cw *w, pln_c_value value) {
  pln_c_value out = value;
  out.count = 0;
  for (uint32_t i = 0; i < value.count; i++)
    pln_c_add_text(
        w, &out,
        pln_c_name(w, text_type(w, &value, i), pln_c_text_at(w, &value, i)));
  return out;
}

void pln_c_set(pln_cw *w, pln_ref ref, pln_c_value value) {
  bool named = w->uses[ref] > 1 &&
               !(value.count == 1 && pln_c_text_at(w, &value, 0).place);
  int64_t constant;
  for (uint32_t i = 0; i < value.count && !named; i++) {
    pln_c_text text = pln_c_text_at(w, &value, i);
    named = text.size > LONG_TEXT || (w->spills && text.reads);
  }
  if (value.form == PLN_C_PLAIN && value.lanes == 1 &&
      pln_c_is_const(&value, &constant)) {
    pln_c_value folded = pln_c_int_value(w, (pln_dtype)value.dtype, constant);
    value = folded;
  } else if (named) {
    value = pln_c_named(w, value);
  }
  pln_c_fail(w, pln_mem_grow(w->engine, (void **)&w->log, &w->cap_log,
                             (size_t)w->n_log + 1, sizeof *w->log));
  if (w->status != PLN_OK)
    return;
  w->log[w->n_log++] = ref;
  w->memo[ref] = pln_c_keep(w, value);
}

/* ------------------------------------------------------------------- lanes */

pln_c_text pln_c_chunk_from_lanes(pln_cw *w, pln_dtype dtype, uint32_t mask,
                                  uint32_t lanes, const pln_c_text *texts) {
  if (lanes == 1)
    return texts[0];
  size_t size = 1;
  for (uint32_t k = 0; k < lanes; k++)
    size += texts[k].size + 4;
  char *list = w->status == PLN_OK ? pln_arena_new(&w->arena, size) : NULL;
  if (!list) {
    pln_c_fail(w, pln_nomem(w->engine));
    return texts[0];
  }
  char *at = list;
  bool reads = false;
  for (uint32_t k = 0; k < lanes; k++) {
    if (k > 0)
      at = memcpy(at, ", ", 2), at += 2;
    if (mask)
      *at++ = '-';
    memcpy(at, texts[k].data, texts[k].size);
    at += texts[k].size;
    reads |= texts[k].reads;
  }
  *at = 0;
  pln_c_text out = pln_c_textf(w, PLN_C_CALL, "(%s){%s}",
                               pln_c_chunk_type(w, dtype, mask, lanes), list);
  out.reads = reads;
  return out;
}

pln_c_text pln_c_lane(pln_cw *w, const pln_c_value *value, uint32_t lane) {
  uint32_t chunk = 0, lanes;
  if (value->form == PLN_C_SPLAT || value->lanes == 1)
    return pln_c_text_at(w, value, 0);
  uint32_t at = lane;
  while (at >= (lanes = pln_c_chunk_lanes(w, value->lanes, chunk))) {
    at -= lanes;
    chunk++;
    if (chunk >= value->count)
      return pln_c_text_at(w, value, 0);
  }
  pln_c_text text = pln_c_text_at(w, value, chunk);
  if (lanes == 1)
    return text;
  return pln_c_textf(w, PLN_C_CALL, value->mask ? "(-%s[%u])" : "%s[%u]",
                     text.data, at);
}

/* --------------------------------------------------------------- spreading */

static pln_c_text splat(pln_cw *w, const pln_c_value *value, pln_c_text text,
                        uint32_t lanes) {
  pln_dtype dtype = (pln_dtype)value->dtype;
  if (lanes == 1)
    return text;
  bool is_mask = dtype == PLN_BOOL;
  pln_c_type type = is_mask ? PLN_C_I8 : pln_c_type_of(dtype);
  pln_c_use(w, PLN_C_HELPER_VECTOR_SPLAT, type, lanes);
  pln_c_text out = pln_c_textf(
      w, PLN_C_CALL, "pl_splat_%sx%u(%s%s%s)", pln_c_short_name(type), lanes,
      is_mask ? "-(" : "", text.data, is_mask ? ")" : "");
  out.reads = text.reads;
  return out;
}

/* base + stride * (first lane, ...), which wraps. */
static pln_c_text ramp(pln_cw *w, const pln_c_value *value, pln_c_text base,
                       pln_c_text stride, uint32_t first, uint32_t lanes) {
  pln_dtype dtype = (pln_dtype)value->dtype;
  pln_c_text texts[64];
  const char *wide = pln_c_bytes(dtype) > 4 ? "uint64_t" : "uint32_t";
  for (uint32_t k = 0; k < lanes; k++)
    texts[k] = pln_c_textf(w, PLN_C_CALL, "(%s)((%s)%s + (%s)%s * %uu)",
                           pln_c_type_name(dtype), wide, base.data, wide,
                           stride.data, first + k);
  return pln_c_chunk_from_lanes(w, dtype, 0, lanes, texts);
}

pln_c_value pln_c_plain(pln_cw *w, pln_c_value value) {
  if (value.form == PLN_C_PLAIN)
    return value;
  pln_c_value from = pln_c_named(w, value);
  pln_c_value out = value;
  out.form = PLN_C_PLAIN;
  out.count = 0;
  out.mask = value.dtype == PLN_BOOL && w->width > 1;
  uint32_t lane = 0, n = pln_c_n_chunks(w, value.lanes);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t lanes = pln_c_chunk_lanes(w, value.lanes, i);
    pln_c_text base = pln_c_text_at(w, &from, 0);
    pln_c_add_text(
        w, &out,
        value.form == PLN_C_SPLAT
            ? splat(w, &value, base, lanes)
            : ramp(w, &value, base, pln_c_text_at(w, &from, 1), lane, lanes));
    lane += lanes;
  }
  return out;
}
