/* flattened_buffer.c: see flattened_buffer.h. Called by tir.StorageFlatten and
 * tir.FlattenBuffer. An axis separator begins a new group; within a group,
 * element [i, j] of extents [m, n] is element i * n + j, or, with strides,
 * i * strides[0] + j * strides[1]. */

#include "lower/flatten/flattened_buffer.h"

pln_type pln_storage_type(pln_engine *e, pln_type element) {
  pln_type out = element;
  if (pln_type_dtype(e, element) == PLN_BOOL &&
      pln_type_prim(e, PLN_INT8, (uint32_t)pln_type_number(e, element), &out) !=
          PLN_OK)
    return 0;
  return out;
}

/* ------------------------------------------------------------------- buffers
 */

/* True if axis `i` begins group `group` + 1. */
static bool begins_group(const pln_buffer_fields *f, uint32_t group,
                         uint32_t i) {
  return group < f->n_separators && f->separators[group] == (int64_t)i;
}

static pln_status widen(pln_builder *b, pln_type type, pln_ref *x) {
  if (b->graph->nodes[*x].kind == PLN_INT_IMM)
    return pln_build_int_imm(b, type,
                             (int64_t)pln_imm_bits(&b->graph->nodes[*x]), x);
  pln_prim spec = {.kind = PLN_PRIM_CAST, .n = 1, .operands = x, .type = type};
  return pln_build_prim(b, &spec, x);
}

pln_status pln_multiply_extents(pln_builder *b, pln_ref x, pln_ref y,
                                pln_ref *out) {
  pln_dtype p = pln_prim_dtype(b->graph, x), q = pln_prim_dtype(b->graph, y);
  if (pln_dtype_bits(p) < pln_dtype_bits(q))
    PLN_TRY(widen(b, b->graph->nodes[y].type, &x));
  if (pln_dtype_bits(p) > pln_dtype_bits(q))
    PLN_TRY(widen(b, b->graph->nodes[x].type, &y));
  return pln_build_folded(b, PLN_PRIM_MUL, x, y, out);
}

/* The product of the extents of a group, or, with strides, the stride of its
 * first axis times the extent. *at: its first axis, then the next group's. */
static pln_status group_extent(pln_builder *b, const pln_buffer_fields *f,
                               uint32_t group, uint32_t *at, pln_ref *out) {
  uint32_t first = (*at)++;
  *out = f->shape[first];
  if (f->n_strides > 0)
    PLN_TRY(pln_multiply_extents(b, f->strides[first], *out, out));
  for (; *at < f->rank && !begins_group(f, group, *at); ++*at)
    if (f->n_strides == 0)
      PLN_TRY(pln_multiply_extents(b, *out, f->shape[*at], out));
  return PLN_OK;
}

/* The groups of a flat Buffer are its axes: separators 1, 2, ... */
static pln_status flat_attrs(pln_engine *e, pln_attrs attrs, uint32_t n,
                             pln_attrs *out) {
  int64_t axes[PLN_MOST_AXES];
  pln_symbol name;
  *out = attrs;
  if (n == 0)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++)
    axes[i] = i + INT64_C(1);
  PLN_TRY(pln_symbol_intern(e, pln_text("axis_separators"), &name));
  return pln_attrs_with(
      e, attrs,
      &(pln_attr){
          .name = name, .kind = PLN_ATTR_INTS, .count = n, .v.ints = axes},
      out);
}

static pln_status scalar_shape(pln_builder *b, const pln_buffer_fields *f,
                               pln_ref *out) {
  return pln_build_int_imm(b, b->graph->nodes[f->elem_offset].type, 1, out);
}

static pln_status flat_shape(pln_builder *b, pln_ref buffer, pln_ref *shape,
                             uint32_t *n) {
  pln_buffer_fields f = pln_buffer_fields_of(b->graph, buffer);
  pln_ref axes[2 * PLN_MOST_AXES];
  uint32_t at = 0;
  if (f.rank >= PLN_MOST_AXES || f.n_separators >= PLN_MOST_AXES)
    return pln_diag_error(b->engine, PLN_ERR_LIMIT, NULL,
                          "a buffer of more than %d dimensions is not "
                          "flattened",
                          PLN_MOST_AXES - 1);
  /* The operands move when nodes are built. */
  memcpy(axes, f.shape, f.rank * sizeof *axes);
  memcpy(axes + PLN_MOST_AXES, f.strides, f.n_strides * sizeof *axes);
  f.shape = axes;
  f.strides = axes + PLN_MOST_AXES;
  for (*n = 0; at < f.rank; ++*n)
    PLN_TRY(group_extent(b, &f, *n, &at, &shape[*n]));
  if (*n == 0) {
    *n = 1;
    return scalar_shape(b, &f, shape);
  }
  return PLN_OK;
}

pln_status pln_flatten_buffer(pln_builder *b, pln_ref buffer, bool always,
                              pln_ref *out) {
  pln_node n = b->graph->nodes[buffer];
  pln_buffer_fields f = pln_buffer_fields_of(b->graph, buffer);
  pln_ref shape[PLN_MOST_AXES], data = f.data, offset = f.elem_offset;
  uint32_t rank, groups = f.n_separators;
  bool flat = f.rank == groups + 1 && f.n_strides == 0;
  pln_type type = pln_storage_type(b->engine, n.type);
  if (!type)
    return PLN_ERR_NOMEM;
  if (!always && flat && type == n.type) {
    *out = buffer;
    return PLN_OK;
  }
  PLN_TRY(flat_shape(b, buffer, shape, &rank));
  pln_buffer_spec spec = {.name = n.data,
                          .type = type,
                          .data = data,
                          .rank = rank,
                          .shape = shape,
                          .elem_offset = offset};
  PLN_TRY(flat_attrs(b->engine, n.attrs, groups, &spec.attrs));
  return pln_build_buffer(b, &spec, out);
}

/* ------------------------------------------------------------------- indices
 */

/* Gives two terms one dtype and as many lanes, as TVM's operators do. */
static void match_terms(pln_analyzer *a, pln_term *x, pln_term *y) {
  if (!*x || !*y)
    return;
  if (pln_at(a, *x)->dtype != pln_at(a, *y)->dtype) {
    pln_dtype p = (pln_dtype)pln_at(a, *x)->dtype;
    pln_dtype q = (pln_dtype)pln_at(a, *y)->dtype;
    pln_dtype wide = pln_dtype_bits(p) >= pln_dtype_bits(q) ? p : q;
    *x = pln_fold_cast(a, wide, *x);
    *y = pln_fold_cast(a, wide, *y);
  }
  if (!*x || !*y)
    return;
  uint16_t m = pln_at(a, *x)->lanes, n = pln_at(a, *y)->lanes;
  if (m == 1 && n > 1)
    *x = pln_term_broadcast(a, *x, n);
  else if (n == 1 && m > 1)
    *y = pln_term_broadcast(a, *y, m);
}

static pln_term combine(pln_analyzer *a, pln_kind kind, pln_term x,
                        pln_term y) {
  match_terms(a, &x, &y);
  return pln_fold(a, kind, x, y);
}

typedef struct index_groups {
  pln_term terms[PLN_MOST_AXES];
  pln_ref only[PLN_MOST_AXES]; /* the index, if the group has one axis */
  uint32_t n;
} index_groups;

/* The terms of the indices into the groups. */
static pln_status add_index(pln_analyzer *a, const pln_builder *b,
                            const pln_buffer_fields *f, uint32_t i,
                            pln_ref index, index_groups *out) {
  pln_term term, factor;
  if (begins_group(f, out->n, i))
    out->n++;
  PLN_TRY(pln_analyzer_import_built(a, b, index, &term));
  PLN_TRY(pln_analyzer_import_built(
      a, b, f->n_strides > 0 ? f->strides[i] : f->shape[i], &factor));
  pln_term *sum = &out->terms[out->n];
  if (f->n_strides > 0)
    term = combine(a, PLN_PRIM_MUL, term, factor);
  else if (*sum)
    *sum = combine(a, PLN_PRIM_MUL, *sum, factor);
  out->only[out->n] = *sum || f->n_strides > 0 ? PLN_NONE : index;
  *sum = *sum ? combine(a, PLN_PRIM_ADD, *sum, term) : term;
  return a->status;
}

static pln_status export_groups(pln_analyzer *a, pln_builder *b,
                                const index_groups *groups, pln_ref *out) {
  for (uint32_t i = 0; i <= groups->n; i++) {
    pln_term simple;
    PLN_TRY(pln_analyzer_simplify(a, groups->terms[i], 2, &simple));
    out[i] = groups->only[i];
    if (simple != groups->terms[i] || out[i] == PLN_NONE)
      PLN_TRY(pln_analyzer_export(a, b, simple, &out[i]));
  }
  return PLN_OK;
}

pln_status pln_flatten_indices(pln_analyzer *a, pln_builder *b, pln_ref buffer,
                               uint32_t n, const pln_ref *indices, pln_ref *out,
                               uint32_t *n_out) {
  pln_buffer_fields f = pln_buffer_fields_of(b->graph, buffer);
  index_groups groups = {.n = 0};
  if (n != f.rank || n >= PLN_MOST_AXES || f.n_separators >= PLN_MOST_AXES)
    return pln_diag_error(
        b->engine, PLN_ERR_TYPE, NULL,
        "the buffer '%s' has %u dimensions, not %u",
        pln_symbol_text(b->engine, b->graph->nodes[buffer].data).data, f.rank,
        n);
  *n_out = 1;
  if (n == 0)
    return pln_build_int_imm(b, b->graph->nodes[f.elem_offset].type, 0, out);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(add_index(a, b, &f, i, indices[i], &groups));
  *n_out = groups.n + 1;
  return export_groups(a, b, &groups, out);
}
