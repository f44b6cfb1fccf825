/* access.c: writes loads and stores.
 *
 * Called by expr.c and stmt.c. A vector of neighbouring elements is one access
 * to each chunk, by an unaligned vector type; other vectors are gathered lane
 * by lane. The last index may be a vector. */

#include "codegen/writer.h"

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

void pln_c_bind_memory(pln_cw *w, pln_ref data, pln_c_text name,
                       pln_dtype dtype) {
  pln_c_fail(w, pln_mem_grow(w->engine, (void **)&w->memories, &w->cap_memories,
                             (size_t)w->n_memories + 1, sizeof *w->memories));
  if (w->status != PLN_OK)
    return;
  w->memories[w->n_memories++] = (pln_c_memory){name, dtype};
  pln_c_fail(w,
             pln_idmap_set(w->memory, w->g->nodes[data].data, w->n_memories));
  pln_c_bind(w, data, pln_c_scalar(w, PLN_DTYPE_NONE, name));
}

const pln_c_memory *pln_c_find_memory(const pln_cw *w, pln_ref data) {
  uint32_t at = pln_idmap_get(w->memory, w->g->nodes[data].data);
  return at ? &w->memories[at - 1] : NULL;
}

/* ------------------------------------------------------------------ indices */

/* Which fields of the buffer an access needs. */
static void push_fields(pln_cw *w, const pln_buffer_fields *v) {
  if (v->n_strides > 0)
    pln_c_push_exprs(w, v->rank, v->strides);
  else if (v->rank > 1)
    pln_c_push_exprs(w, v->rank - 1, v->shape + 1);
  pln_c_push_expr(w, v->elem_offset);
}

void pln_c_push_access(pln_cw *w, pln_ref ref, uint32_t first) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_ref *o = refs_of(w, ref);
  if (w->g->nodes[o[0]].kind != PLN_BUFFER) {
    pln_c_refuse(w, "producers have no memory; lower the function with "
                    "pl.lower first");
    return;
  }
  pln_buffer_fields v = pln_buffer_fields_of(w->g, o[0]);
  if (!pln_c_find_memory(w, v.data))
    pln_c_refuse(w, "buffer '%s' has no memory",
                 pln_symbol_text(w->engine, w->g->nodes[o[0]].data).data);
  if (!pln_c_has_dtype(v.dtype))
    pln_c_refuse(w, "elements of dtype %s are not written as C",
                 v.dtype ? pln_dtype_name(v.dtype) : "handle");
  push_fields(w, &v);
  pln_c_push_exprs(w, n->count - first, o + first);
}

/* Where the elements of an access lie: `offset` is that of lane 0 in elements
 * of the dtype, if `stride` is known or one; else each lane has its own. */
typedef struct access {
  pln_buffer_fields v;
  pln_c_memory memory;
  pln_c_value offset;
  pln_c_value lane_index; /* the vector index; PLAIN with names */
  pln_c_value scale;      /* of it */
  pln_c_value stride;
  uint32_t lanes;
  bool gathers;
  bool guarded; /* lanes are read where w->condition holds */
} access;

static pln_c_value as_scalar(pln_cw *w, pln_c_value value, uint32_t text) {
  pln_c_value out =
      pln_c_scalar(w, (pln_dtype)value.dtype, pln_c_text_at(w, &value, text));
  return out;
}

/* The offset of all dimensions but the part of the last index that differs
 * between lanes. */
static pln_c_value add_dimension(pln_cw *w, const access *a, uint32_t d,
                                 pln_c_value sum, pln_c_value index) {
  if (a->v.n_strides > 0)
    return pln_c_offset(w, PLN_PRIM_ADD, sum,
                        pln_c_offset(w, PLN_PRIM_MUL, index,
                                     pln_c_value_of(w, a->v.strides[d])));
  if (d > 0)
    sum = pln_c_offset(w, PLN_PRIM_MUL, sum, pln_c_value_of(w, a->v.shape[d]));
  return pln_c_offset(w, PLN_PRIM_ADD, sum, index);
}

/* The base of a ramp; its bounds are those of the first lane at least. */
static pln_c_value ramp_base(pln_cw *w, pln_c_value ramp) {
  pln_c_value base = as_scalar(w, ramp, 0);
  base.lo = ramp.lo;
  base.hi = ramp.hi;
  return base;
}

static pln_c_value ramp_step(pln_cw *w, pln_c_value ramp) {
  pln_c_value step = as_scalar(w, ramp, 1);
  step.lo = ramp.step_lo;
  step.hi = ramp.step_hi;
  return step;
}

static void vector_index(pln_cw *w, access *a, uint32_t d, pln_c_value index) {
  a->lanes = index.lanes;
  a->scale = a->v.n_strides > 0 ? pln_c_value_of(w, a->v.strides[d])
                                : pln_c_int_value(w, PLN_INT64, 1);
  if (index.form == PLN_C_SPLAT) {
    index.form = PLN_C_PLAIN;
    index.lanes = 1;
    a->offset = add_dimension(w, a, d, a->offset, index);
    a->stride = pln_c_int_value(w, PLN_INT64, 0);
  } else if (index.form == PLN_C_RAMP) {
    a->offset = add_dimension(w, a, d, a->offset, ramp_base(w, index));
    a->stride = pln_c_offset(w, PLN_PRIM_MUL, ramp_step(w, index), a->scale);
  } else {
    pln_c_value zero = pln_c_int_value(w, PLN_INT64, 0);
    a->offset = add_dimension(w, a, d, a->offset, zero);
    a->lane_index = pln_c_named(w, index);
    a->gathers = true;
  }
}

static access find_access(pln_cw *w, pln_ref ref, uint32_t first) {
  const pln_ref *o = refs_of(w, ref);
  access a = {.v = pln_buffer_fields_of(w->g, o[0]), .lanes = 1};
  const pln_c_memory *memory = pln_c_find_memory(w, a.v.data);
  if (memory)
    a.memory = *memory;
  a.stride = pln_c_int_value(w, PLN_INT64, 1);
  a.offset = pln_c_int_value(w, PLN_INT64, 0);
  for (uint32_t d = 0; d < a.v.rank; d++) {
    pln_c_value index = pln_c_value_of(w, o[first + d]);
    if (index.lanes == 1)
      a.offset = add_dimension(w, &a, d, a.offset, index);
    else if (d + 1 < a.v.rank)
      pln_c_refuse(w, "a vector index before the last dimension");
    else
      vector_index(w, &a, d, index);
  }
  a.offset = pln_c_offset(w, PLN_PRIM_ADD, a.offset,
                          pln_c_value_of(w, a.v.elem_offset));
  return a;
}

/* Elements that are vectors: a pointer to scalars is indexed. */
static void expand_lanes(pln_cw *w, access *a) {
  pln_c_value lanes = pln_c_int_value(w, PLN_INT64, a->v.lanes);
  if (a->v.lanes == 1)
    return;
  a->offset = pln_c_offset(w, PLN_PRIM_MUL, a->offset, lanes);
  if (a->lanes == 1 && !a->gathers) {
    a->lanes = a->v.lanes;
    a->stride = pln_c_int_value(w, PLN_INT64, 1);
    a->v.lanes = 1;
  }
}

/* ----------------------------------------------------------------- elements */

/* The pointer to elements of the buffer's dtype. */
static const char *pointer(pln_cw *w, const access *a, bool writes) {
  pln_c_type type = pln_c_type_of(a->v.dtype);
  if (a->memory.dtype == a->v.dtype ||
      (a->memory.dtype && pln_c_type_of(a->memory.dtype) == type))
    return a->memory.name.data;
  w->used_alias[type] = true;
  return pln_c_textf(w, PLN_C_CALL, "((%spl_%s_alias *)%s)",
                     writes ? "" : "const ", pln_c_short_name(type),
                     a->memory.name.data)
      .data;
}

/* The offset of one lane. */
static pln_c_text lane_offset(pln_cw *w, const access *a, uint32_t lane) {
  uint32_t outer = lane / a->v.lanes, inner = lane % a->v.lanes;
  pln_c_value step = pln_c_int_value(w, PLN_INT64, outer), at = a->offset;
  if (a->gathers) {
    step = pln_c_new_value(w, (pln_dtype)a->lane_index.dtype, 1, PLN_C_PLAIN);
    pln_c_add_text(w, &step, pln_c_lane(w, &a->lane_index, outer));
    step = pln_c_offset(w, PLN_PRIM_MUL, step, a->scale);
  } else {
    step = pln_c_offset(w, PLN_PRIM_MUL, a->stride, step);
  }
  step = pln_c_offset(w, PLN_PRIM_MUL, step,
                      pln_c_int_value(w, PLN_INT64, a->v.lanes));
  at = pln_c_offset(w, PLN_PRIM_ADD, at, step);
  at = pln_c_offset(w, PLN_PRIM_ADD, at, pln_c_int_value(w, PLN_INT64, inner));
  return pln_c_text_at(w, &at, 0);
}

/* ----------------------------------------------------------------- conditions
 */

/* How many elements a buffer of constant extents has; 0: not known. */
static int64_t n_elements(const pln_cw *w, const access *a) {
  int64_t n = 1;
  for (uint32_t d = 0; d < a->v.rank; d++) {
    const pln_node *dim = &w->g->nodes[a->v.shape[d]];
    if (dim->kind != PLN_INT_IMM ||
        __builtin_mul_overflow(n, (int64_t)pln_imm_bits(dim), &n))
      return 0;
  }
  const pln_node *first = &w->g->nodes[a->v.elem_offset];
  bool compact = a->v.n_strides == 0 && first->kind == PLN_INT_IMM &&
                 pln_imm_bits(first) == 0;
  return compact && n > 0 ? n : 0;
}

/* Whether all lanes are known to lie in the buffer. The bounds of a ramp's base
 * are those of all lanes. */
static bool is_inside(pln_cw *w, const access *a) {
  pln_c_value last = a->offset;
  if (a->gathers)
    last = pln_c_offset(w, PLN_PRIM_ADD, a->offset,
                        pln_c_offset(w, PLN_PRIM_MUL, a->lane_index, a->scale));
  return last.lo >= 0 && last.hi < n_elements(w, a);
}

static pln_c_text holds_in_lane(pln_cw *w, const pln_c_condition *c,
                                uint32_t lane) {
  return pln_c_textf(w, PLN_C_CALL, c->negated ? "!%s" : "%s",
                     pln_c_arg(w, pln_c_lane(w, &c->value, lane)));
}

/* Whether the condition holds in that lane of `lanes`; where it has others, in
 * any. */
static pln_c_text holds(pln_cw *w, const pln_c_condition *c, uint32_t lane,
                        uint32_t lanes) {
  if (c->value.lanes == lanes)
    return holds_in_lane(w, c, lane);
  pln_c_text any = holds_in_lane(w, c, 0);
  for (uint32_t k = 1; k < c->value.lanes; k++)
    any = pln_c_textf(w, PLN_C_COMPOUND, "%s || %s", any.data,
                      holds_in_lane(w, c, k).data);
  return pln_c_textf(w, PLN_C_CALL, "(%s)", any.data);
}

/* The element if all conditions hold, else 0. */
static pln_c_text guarded(pln_cw *w, const access *a, uint32_t lane,
                          pln_c_text text) {
  if (!a->guarded)
    return text;
  uint32_t lanes = a->lanes * a->v.lanes;
  pln_c_text all = holds(w, w->condition, lane, lanes);
  for (const pln_c_condition *c = w->condition->outer; c; c = c->outer)
    all = pln_c_textf(w, PLN_C_COMPOUND, "%s && %s", all.data,
                      holds(w, c, lane, lanes).data);
  pln_c_text out =
      pln_c_textf(w, PLN_C_CALL, "(%s ? %s : 0)", all.data, text.data);
  out.reads = true;
  return out;
}

static pln_c_text element(pln_cw *w, const access *a, const char *base,
                          pln_c_text offset) {
  pln_c_text out = pln_c_textf(w, PLN_C_CALL, "%s[%s]", base, offset.data);
  bool half = a->v.dtype == PLN_FLOAT16;
  if (pln_c_is_half(a->v.dtype)) {
    pln_c_use(w, half ? PLN_C_HELPER_FROM_HALF : PLN_C_HELPER_FROM_BFLOAT,
              PLN_C_F32, 1);
    out = pln_c_textf(w, PLN_C_CALL, "pl_from_%s(%s)", half ? "half" : "bfloat",
                      out.data);
  }
  out.reads = true;
  return out;
}

/* Whether a chunk is a run of neighbours. */
static bool is_run(const access *a) {
  return !a->gathers && a->v.lanes == 1 && a->stride.lo == 1 &&
         a->stride.hi == 1;
}

/* Names for what each lane or chunk uses. */
static void name_parts(pln_cw *w, access *a) {
  if (a->lanes * a->v.lanes == 1)
    return;
  bool several = pln_c_n_chunks(w, a->lanes * a->v.lanes) > 1 || !is_run(a);
  pln_c_text text = pln_c_text_at(w, &a->offset, 0);
  if (several && a->offset.lo != a->offset.hi && !text.place) {
    pln_c_value out = a->offset;
    out.count = 0;
    pln_c_add_text(w, &out,
                   pln_c_name(w, pln_c_type_name((pln_dtype)out.dtype), text));
    a->offset = out;
  }
  if (!is_run(a) && a->stride.lo != a->stride.hi)
    a->stride = pln_c_named(w, a->stride);
}

/* A chunk in memory as a vector. */
static pln_c_text run_of(pln_cw *w, const access *a, const char *base,
                         uint32_t first, uint32_t lanes, bool writes) {
  const char *type = pln_c_vector(w, pln_c_type_of(a->v.dtype), lanes, true);
  pln_c_value at = pln_c_offset(w, PLN_PRIM_ADD, a->offset,
                                pln_c_int_value(w, PLN_INT64, first));
  return pln_c_textf(w, PLN_C_CALL, "(*(%s%s *)(%s + %s))",
                     writes ? "" : "const ", type, base,
                     pln_c_arg(w, pln_c_text_at(w, &at, 0)));
}

static pln_c_text load_chunk(pln_cw *w, const access *a, const char *base,
                             uint32_t first, uint32_t lanes) {
  pln_c_text texts[64], out;
  bool is_bool = a->v.dtype == PLN_BOOL;
  if (lanes > 1 && is_run(a) && !a->guarded) {
    out = run_of(w, a, base, first, lanes, false);
    if (is_bool)
      out = pln_c_textf(w, PLN_C_CALL, "((%s)(%s != 0))",
                        pln_c_vector(w, PLN_C_I8, lanes, false), out.data);
    out.reads = true;
    return out;
  }
  for (uint32_t k = 0; k < lanes; k++)
    texts[k] = guarded(w, a, first + k,
                       element(w, a, base, lane_offset(w, a, first + k)));
  return pln_c_chunk_from_lanes(w, a->v.dtype, is_bool && lanes > 1, lanes,
                                texts);
}

static bool has_lanes(pln_cw *w, const access *a) {
  if ((uint64_t)a->lanes * a->v.lanes <= 65536)
    return true;
  pln_c_refuse(w, "a vector of more than 65536 lanes");
  return false;
}

void pln_c_load(pln_cw *w, pln_ref ref) {
  access a = find_access(w, ref, 1);
  a.guarded = w->condition && w->status == PLN_OK && !is_inside(w, &a);
  expand_lanes(w, &a);
  if (w->status != PLN_OK || !has_lanes(w, &a))
    return;
  uint32_t lanes = a.lanes * a.v.lanes, n = pln_c_n_chunks(w, lanes);
  const char *base = pointer(w, &a, false);
  bool splat = lanes > 1 && a.v.lanes == 1 && !a.gathers && a.stride.lo == 0 &&
               a.stride.hi == 0;
  pln_c_value out =
      pln_c_new_value(w, a.v.dtype, lanes, splat ? PLN_C_SPLAT : PLN_C_PLAIN);
  if (splat) {
    pln_c_text text = element(w, &a, base, pln_c_text_at(w, &a.offset, 0));
    a.lanes = 1;
    pln_c_add_text(w, &out, guarded(w, &a, 0, text));
    pln_c_set(w, ref, out);
    return;
  }
  name_parts(w, &a);
  out.mask = a.v.dtype == PLN_BOOL && lanes > 1 && w->width > 1;
  for (uint32_t i = 0, first = 0; i < n; i++) {
    uint32_t part = pln_c_chunk_lanes(w, lanes, i);
    pln_c_add_text(w, &out, load_chunk(w, &a, base, first, part));
    first += part;
  }
  pln_c_set(w, ref, out);
}

/* ------------------------------------------------------------------- stores */

/* What is stored: halves as their bits. */
static const char *stored(pln_cw *w, pln_dtype dtype, pln_c_text text) {
  bool half = dtype == PLN_FLOAT16;
  if (!pln_c_is_half(dtype))
    return text.data;
  pln_c_use(w, half ? PLN_C_HELPER_TO_HALF : PLN_C_HELPER_TO_BFLOAT, PLN_C_F32,
            1);
  return pln_c_textf(w, PLN_C_CALL, "pl_to_%s(%s)", half ? "half" : "bfloat",
                     text.data)
      .data;
}

static void store_run(pln_cw *w, const access *a, const char *base,
                      const pln_c_value *value, uint32_t chunk,
                      uint32_t first) {
  uint32_t lanes = pln_c_chunk_lanes(w, value->lanes, chunk);
  pln_c_text text = pln_c_text_at(w, value, chunk);
  if (lanes > 1 && value->mask)
    text = pln_c_textf(w, PLN_C_CALL, "__builtin_convertvector(%s & 1, %s)",
                       pln_c_arg(w, text),
                       pln_c_vector(w, PLN_C_U8, lanes, false));
  if (lanes > 1)
    pln_c_line(w, "%s = %s;", run_of(w, a, base, first, lanes, true).data,
               text.data);
  else
    pln_c_line(w, "%s[%s] = %s;", base, lane_offset(w, a, first).data,
               stored(w, a->v.dtype, text));
}

static void store_lanes(pln_cw *w, const access *a, const char *base,
                        const pln_c_value *value, uint32_t lanes) {
  for (uint32_t k = 0; k < lanes; k++)
    pln_c_line(w, "%s[%s] = %s;", base, lane_offset(w, a, k).data,
               stored(w, a->v.dtype, pln_c_lane(w, value, k)));
}

void pln_c_store(pln_cw *w, pln_ref ref) {
  pln_c_value value = pln_c_value_of(w, refs_of(w, ref)[1]);
  access a = find_access(w, ref, 2);
  expand_lanes(w, &a);
  if (w->status != PLN_OK || !has_lanes(w, &a))
    return;
  uint32_t lanes = a.lanes * a.v.lanes;
  const char *base = pointer(w, &a, true);
  if (lanes == 1) {
    pln_c_line(w, "%s[%s] = %s;", base, pln_c_text_at(w, &a.offset, 0).data,
               stored(w, a.v.dtype, pln_c_text_at(w, &value, 0)));
    return;
  }
  /* All of the value is read before the first chunk is written. */
  value.lanes = lanes;
  value = pln_c_plain(w, value);
  if (value.count > 1 || !is_run(&a))
    value = pln_c_named(w, value);
  name_parts(w, &a);
  if (!is_run(&a)) {
    store_lanes(w, &a, base, &value, lanes);
    return;
  }
  for (uint32_t i = 0, first = 0; i < value.count; i++) {
    store_run(w, &a, base, &value, i, first);
    first += pln_c_chunk_lanes(w, lanes, i);
  }
}

pln_c_text pln_c_neighbours(pln_cw *w, pln_ref load, int64_t offset,
                            uint32_t lanes) {
  access a = find_access(w, load, 1);
  a.offset = pln_c_offset(w, PLN_PRIM_ADD, a.offset,
                          pln_c_int_value(w, PLN_INT64, offset));
  const char *base = pointer(w, &a, false);
  pln_c_text out = lanes > 1
                       ? run_of(w, &a, base, 0, lanes, false)
                       : element(w, &a, base, pln_c_text_at(w, &a.offset, 0));
  out.reads = true;
  return out;
}

void pln_c_store_neighbours(pln_cw *w, pln_ref store, int64_t offset,
                            uint32_t lanes, const char *vector) {
  access a = find_access(w, store, 2);
  a.offset = pln_c_offset(w, PLN_PRIM_ADD, a.offset,
                          pln_c_int_value(w, PLN_INT64, offset));
  const char *base = pointer(w, &a, true);
  pln_c_line(w, "%s = %s;", run_of(w, &a, base, 0, lanes, true).data, vector);
}

pln_c_text pln_c_address(pln_cw *w, pln_ref load) {
  access a = find_access(w, load, 1);
  expand_lanes(w, &a);
  return pln_c_textf(w, PLN_C_COMPOUND, "(void *)(%s + %s)",
                     pointer(w, &a, true),
                     pln_c_arg(w, pln_c_text_at(w, &a.offset, 0)));
}
