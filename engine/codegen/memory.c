/* memory.c: writes Allocate and AllocateConst.
 *
 * Called by stmt.c. Memory of a constant size lies on the stack up to a limit,
 * other memory in the workspace that the caller gives. Its layout is fixed when
 * a function begins: one part behind the other, those of constant sizes first,
 * 64-byte aligned. Sizes that are not constant are computed at the top of the
 * function, and again by NAME_workspace_size; they may depend on parameters and
 * shapes only. */

#include "codegen/writer.h"

enum { ALIGN = 64, DEFAULT_STACK = 65536 };

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static uint64_t aligned(uint64_t bytes) {
  return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* -------------------------------------------------------- sizes at the top */

void pln_c_visit_top_var(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  uint32_t value = pln_idmap_get(w->lets, n->data);
  if (pln_idmap_get(w->top_vars, n->data))
    return;
  if (!value) {
    pln_c_refuse(w,
                 "the size of an allocation depends on '%s', which is not "
                 "known when the function begins",
                 pln_symbol_text(w->engine, n->attrs).data);
    return;
  }
  pln_c_push(w, (pln_c_task){.what = PLN_C_TOP_VAR, .ref = ref});
  pln_c_push_expr(w, value - 1);
}

void pln_c_set_top_var(pln_cw *w, pln_ref ref) {
  uint32_t var = w->g->nodes[ref].data;
  uint32_t node = pln_idmap_get(w->lets, var);
  uint32_t value = pln_c_keep(w, pln_c_named(w, pln_c_value_of(w, node - 1)));
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_idmap_set(w->top_vars, var, value));
}

pln_c_top pln_c_begin_top(pln_cw *w) {
  pln_c_top top = {w->out, w->depth, w->n_log};
  w->out = &w->sizes;
  w->depth = 1;
  w->at_top = true;
  return top;
}

void pln_c_end_top(pln_cw *w, pln_c_top top) {
  pln_c_forget(w, top.mark);
  w->at_top = false;
  w->out = top.out;
  w->depth = top.depth;
}

pln_c_value pln_c_top_expr(pln_cw *w, pln_ref expr) {
  uint32_t floor = w->n_tasks;
  pln_c_push_expr(w, expr);
  pln_c_run_tasks(w, floor);
  return pln_c_value_of(w, expr);
}

/* The product of the extents as text, computed in `sizes`. */
static const char *top_count(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  pln_c_top top = pln_c_begin_top(w);
  pln_c_value count = pln_c_int_value(w, PLN_INT64, 1);
  for (uint32_t i = 1; i < n->count && w->status == PLN_OK; i++)
    count = pln_c_offset(w, PLN_PRIM_MUL, count,
                         pln_c_top_expr(w, refs_of(w, ref)[i]));
  const char *text = pln_c_name(w, "int64_t", pln_c_text_at(w, &count, 0)).data;
  pln_c_end_top(w, top);
  return text;
}

/* -------------------------------------------------------------- allocation */

static void declare(pln_cw *w, const char *type, const char *name,
                    const char *place) {
  pln_c_line(w, "%s *const restrict %s = (%s *)(%s);", type, name, type, place);
}

static void place_constant(pln_cw *w, const char *type, const char *name,
                           uint64_t bytes) {
  uint64_t *end =
      w->region.outer ? &w->region.thread_bytes : &w->workspace_bytes;
  const char *place;
  if (w->region.outer)
    place = pln_c_textf(w, PLN_C_NAME,
                        "(char *)workspace + %llu + (size_t)thread * "
                        "%s_bytes + %llu",
                        (unsigned long long)w->region.base, w->region.name,
                        (unsigned long long)*end)
                .data;
  else
    place = pln_c_textf(w, PLN_C_NAME, "(char *)workspace + %llu",
                        (unsigned long long)*end)
                .data;
  declare(w, type, name, place);
  *end += aligned(bytes);
}

static void place_symbolic(pln_cw *w, pln_ref ref, const char *type,
                           const char *name, uint32_t bytes) {
  const char *count = top_count(w, ref);
  uint32_t k = w->n_sizes++;
  pln_buffer *out = w->out;
  uint32_t depth = w->depth;
  w->out = &w->sizes;
  w->depth = 1;
  pln_c_line(w, "const size_t pl_at%u = pl_end;", k);
  pln_c_line(w, "(void)pl_at%u;", k);
  pln_c_line(w, "pl_end += ((size_t)(%s > 0 ? %s : 0) * %u + 63) / 64 * 64;",
             count, count, bytes);
  w->out = out;
  w->depth = depth;
  declare(w, type, name,
          pln_c_textf(w, PLN_C_NAME, "(char *)workspace + pl_at%u", k).data);
}

/* The most elements that it may have; false: that is not known. */
static bool most_elements(const pln_cw *w, pln_ref ref, uint64_t *out) {
  const pln_node *n = &w->g->nodes[ref];
  *out = 1;
  for (uint32_t i = 1; i < n->count; i++) {
    pln_c_value extent = pln_c_value_of(w, refs_of(w, ref)[i]);
    uint64_t most = extent.hi > 0 ? (uint64_t)extent.hi : 0;
    bool constant = extent.lo == extent.hi;
    if (__builtin_mul_overflow(*out, most, out) || *out > UINT64_C(1) << 46 ||
        (!constant && *out > 1 << 16))
      return false;
  }
  return true;
}

static pln_dtype memory_dtype(const pln_cw *w, const pln_node *n,
                              uint32_t *lanes) {
  *lanes = 1;
  return pln_dtype_find_vector(pln_c_attr(w, n, "dtype"), lanes);
}

void pln_c_allocate(pln_cw *w, pln_ref ref, uint32_t mark) {
  const pln_node *n = &w->g->nodes[ref];
  pln_ref data = w->g->scopes[n->data].begin;
  uint32_t lanes;
  uint64_t count;
  pln_dtype dtype = memory_dtype(w, n, &lanes);
  if (!pln_c_has_dtype(dtype)) {
    pln_c_refuse(w, "memory of dtype %s is not written as C",
                 pln_c_attr(w, n, "dtype").data);
    return;
  }
  const char *name =
      pln_c_fresh_name(w, pln_symbol_text(w->engine, w->g->nodes[data].attrs));
  const char *type = pln_c_memory_name(dtype);
  uint32_t bytes = pln_c_bytes(dtype) * lanes;
  uint64_t stack =
      w->options->stack_bytes ? w->options->stack_bytes : DEFAULT_STACK;
  bool known = most_elements(w, ref, &count);
  pln_c_forget(w, mark);
  if (known && w->stack_bytes + count * bytes <= stack) {
    w->stack_bytes += count * bytes;
    pln_c_line(w, "_Alignas(64) %s %s[%llu];", type, name,
               (unsigned long long)(count ? count * lanes : 1));
  } else {
    w->uses_workspace = true;
    if (known)
      place_constant(w, type, name, count * bytes);
    else
      place_symbolic(w, ref, type, name, bytes);
  }
  if (!(pln_idmap_get(w->access, w->g->nodes[data].data) & PLN_C_READ))
    pln_c_line(w, "(void)%s;", name);
  pln_c_bind_memory(w, data, pln_c_textf(w, PLN_C_NAME, "%s", name), dtype);
}

/* --------------------------------------------------------------- constants */

enum { MOST_CONSTANT = 1 << 24, IN_LINE = 8 };

static pln_c_text constant_element(pln_cw *w, pln_dtype dtype,
                                   const char *bytes) {
  float single;
  double twice;
  uint64_t bits = 0;
  memcpy(&bits, bytes, pln_c_bytes(dtype));
  if (dtype == PLN_FLOAT32) {
    memcpy(&single, bytes, sizeof single);
    return pln_c_float(w, dtype, (double)single);
  }
  if (dtype == PLN_FLOAT64) {
    memcpy(&twice, bytes, sizeof twice);
    return pln_c_float(w, dtype, twice);
  }
  if (pln_c_is_half(dtype))
    return pln_c_int(w, PLN_UINT16, (int64_t)bits);
  uint32_t shift = 64 - pln_dtype_bits(dtype);
  int64_t value =
      pln_is_signed(dtype) ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
  return pln_c_int(w, dtype, value);
}

static void constant_elements(pln_cw *w, pln_dtype dtype,
                              const pln_tensor *tensor, const char *bytes) {
  size_t count = pln_tensor_count(tensor), size = pln_c_bytes(dtype);
  for (size_t i = 0; i < count && w->status == PLN_OK; i++) {
    if (i % IN_LINE == 0)
      pln_c_raw(w, "\n   ");
    pln_c_raw(w, " %s,", constant_element(w, dtype, bytes + i * size).data);
  }
  if (count == 0)
    pln_c_raw(w, "0");
}

void pln_c_allocate_const(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  pln_ref var = w->g->scopes[n->data].begin;
  const pln_attr *data = pln_attrs_find(w->engine, n->attrs, "data");
  pln_tensor *dense = NULL;
  const void *bytes;
  uint32_t lanes;
  pln_dtype dtype = memory_dtype(w, n, &lanes);
  if (!data || data->kind != PLN_ATTR_TENSOR || !pln_c_has_dtype(dtype) ||
      pln_tensor_bytes(data->v.tensor) > MOST_CONSTANT) {
    pln_c_refuse(w, "an AllocateConst without data, or of more than 16 MiB");
    return;
  }
  pln_c_fail(w, pln_tensor_dense(data->v.tensor, &dense));
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_tensor_data(dense, &bytes));
  if (w->status == PLN_OK) {
    const char *name =
        pln_c_fresh_name(w, pln_symbol_text(w->engine, w->g->nodes[var].attrs));
    pln_c_line(w, "static const _Alignas(64) %s %s[] = {",
               pln_c_memory_name(dtype), name);
    constant_elements(w, dtype, dense, bytes);
    pln_c_raw(w, "};\n");
    if (!pln_idmap_get(w->access, w->g->nodes[var].data))
      pln_c_line(w, "(void)%s;", name);
    pln_c_bind_memory(w, var, pln_c_textf(w, PLN_C_NAME, "%s", name), dtype);
  }
  if (dense)
    pln_tensor_release(dense);
}
