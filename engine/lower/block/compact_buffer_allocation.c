/* compact_buffer_allocation.c: tir.CompactBufferAllocation: a Buffer is as
 * large as the part of it that is touched.
 *
 * Run by the executor. touched_region.c finds that part; indices count from its
 * beginning. A size that changes with a loop around the allocation becomes its
 * upper bound. A Buffer that a block wants aligned (buffer_dim_align) gets
 * strides. With is_strict the part ends where the Buffer does; without it,
 * a Buffer grows where it is accessed out of bounds.
 *
 *     for i in range(16): B = T.decl_buffer((16, 16)); B[i, 0] = A[i]
 *         =>   for i in range(16): B = T.decl_buffer((1, 1)); B[i - i, 0] =
 * A[i]
 *
 * Semantics: TVM's tir.CompactBufferAllocation. Buffers with strides, and those
 * whose pointer is used otherwise, keep their size. */

#include "lower/block/dim_alignment.h"
#include "lower/block/touched_region.h"

typedef struct compactor {
  const pln_graph *g;
  pln_touched_regions regions;
  pln_term *min, *extent; /* by buffer and dimension */
  uint32_t *first;        /* by buffer: where its dimensions begin */
  bool *smaller;          /* by buffer; or its strides are aligned */
  pln_dim_alignments alignments;
  bool strict;
} compactor;

/* -------------------------------------------------------------------- sizes
 */

/* Whether the term contains the variable of a loop around the scope. */
static pln_status varies(compactor *x, pln_term t, pln_scope scope, bool *out) {
  const pln_graph *g = x->g;
  *out = false;
  for (pln_scope at = pln_touched_scope(&x->regions, scope);
       at != PLN_NONE && !*out; at = x->regions.outer[at]) {
    pln_ref owner = g->scopes[at].owner;
    pln_term var;
    if (owner == PLN_NONE || g->nodes[owner].kind != PLN_FOR)
      continue;
    PLN_TRY(pln_analyzer_import(x->regions.a, g, g->scopes[at].begin, &var));
    *out = pln_term_uses(x->regions.a, t, var);
  }
  return PLN_OK;
}

/* [0, shape) */
static void keep_whole(compactor *x, uint32_t at, pln_term shape) {
  x->min[at] = pln_const_like(x->regions.a, shape, 0);
  x->extent[at] = shape;
}

/* The part [min, min + extent) of a dimension; with is_strict inside of it. */
static pln_status touched_part(const compactor *x, pln_interval set,
                               pln_term shape, pln_term *min,
                               pln_term *extent) {
  pln_analyzer *a = x->regions.a;
  *min = set.min;
  *extent = pln_add_const(a, pln_sub(a, set.max, set.min), 1);
  if (x->strict) {
    *min = pln_fold(a, PLN_PRIM_MAX, pln_const_like(a, shape, 0), *min);
    *extent = pln_fold(a, PLN_PRIM_MIN, shape, *extent);
  }
  *min = pln_simplify_term(a, *min, 2);
  *extent = pln_simplify_term(a, *extent, 2);
  return a->status;
}

static pln_status is_known_outside(const compactor *x,
                                   const pln_touched_buffer *b, pln_term min,
                                   pln_term extent, bool *out) {
  PLN_TRY(pln_touched_is_outside(&x->regions, b, min, out));
  return *out ? pln_touched_is_outside(&x->regions, b, extent, out) : PLN_OK;
}

static pln_status size_axis(compactor *x, const pln_touched_buffer *b,
                            uint32_t at, pln_interval set, pln_term shape) {
  pln_analyzer *a = x->regions.a;
  pln_term min, extent;
  bool loop, outside;
  keep_whole(x, at, shape);
  if (!b->touched || pln_is_infinite(set.min) || pln_is_infinite(set.max))
    return a->status;
  PLN_TRY(touched_part(x, set, shape, &min, &extent));
  PLN_TRY(is_known_outside(x, b, min, extent, &outside));
  if (!outside)
    return PLN_OK;
  PLN_TRY(varies(x, extent, b->scope, &loop));
  if (loop) {
    pln_bound bound = pln_bound_of(a, extent);
    if (bound.max == PLN_INF)
      return PLN_OK;
    extent = pln_const_like(a, shape, bound.max);
  }
  x->min[at] = min;
  x->extent[at] = extent;
  return a->status;
}

/* Where the scope runs, the loops around it have rounds. */
static pln_status enter_loops(compactor *x, pln_scope scope, uint32_t *mark) {
  const pln_graph *g = x->g;
  pln_analyzer *a = x->regions.a;
  *mark = a->n_scopes;
  for (pln_scope at = pln_touched_scope(&x->regions, scope); at != PLN_NONE;
       at = x->regions.outer[at]) {
    pln_ref owner = g->scopes[at].owner;
    pln_term extent, some;
    uint32_t inner;
    if (owner == PLN_NONE || g->nodes[owner].kind != PLN_FOR)
      continue;
    PLN_TRY(pln_analyzer_import(a, g, pln_operand(g, owner, 1), &extent));
    if (pln_is_const(a, extent))
      continue;
    some = pln_fold(a, PLN_PRIM_GE, extent, pln_const_like(a, extent, 1));
    PLN_TRY(a->status);
    PLN_TRY(pln_analyzer_enter(a, some, &inner));
  }
  return PLN_OK;
}

/* Whether the Buffer gets strides. Memory of an Allocate has none. */
static bool is_aligned(const compactor *x, const pln_touched_buffer *b) {
  return !b->exposed && x->g->nodes[b->stmt].kind == PLN_ALLOC_BUFFER &&
         x->alignments.first[b->buffer] != 0;
}

static pln_status size_buffer(compactor *x, uint32_t k) {
  const pln_touched_buffer *b = &x->regions.buffers[k];
  pln_buffer_fields f = pln_buffer_fields_of(x->g, b->buffer);
  uint32_t mark;
  PLN_TRY(enter_loops(x, b->scope, &mark));
  for (uint32_t i = 0; i < f.rank; i++) {
    uint32_t at = x->first[k] + i;
    pln_term shape;
    PLN_TRY(pln_analyzer_import(x->regions.a, x->g, f.shape[i], &shape));
    PLN_TRY(b->exposed ? PLN_OK : size_axis(x, b, at, b->region[i], shape));
    x->smaller[k] |= !b->exposed && x->extent[at] != shape;
  }
  pln_analyzer_leave(x->regions.a, mark);
  x->smaller[k] |= is_aligned(x, b);
  return PLN_OK;
}

/* ----------------------------------------------------------------- rewriting
 */

/* 1 + the number of a Buffer that gets smaller; 0: none. */
static uint32_t number_of(const compactor *x, pln_ref buffer) {
  uint32_t k =
      x->g->nodes[buffer].kind == PLN_BUFFER ? x->regions.of_buffer[buffer] : 0;
  return k && x->smaller[k - 1] ? k : 0;
}

/* *index - min of dimension `i` */
static pln_status shift_index(compactor *x, pln_stmt_rewrite *s, uint32_t k,
                              uint32_t i, pln_ref *index) {
  pln_ref min;
  pln_term term = x->min[x->first[k - 1] + i];
  if (pln_is_value(x->regions.a, term, 0))
    return PLN_OK;
  PLN_TRY(pln_analyzer_export(x->regions.a, pln_stmt_builder(s), term, &min));
  /* The variables of the loops are those of the new function. */
  return pln_build_folded(pln_stmt_builder(s), PLN_PRIM_SUB, *index, min,
                          index);
}

static pln_status shift_range(compactor *x, pln_stmt_rewrite *s, uint32_t k,
                              uint32_t i, pln_ref *range) {
  const pln_graph *g = pln_stmt_builder(s)->graph;
  pln_ref ends[] = {pln_operand(g, *range, 0), pln_operand(g, *range, 1)};
  pln_ref before = ends[0];
  PLN_TRY(shift_index(x, s, k, i, &ends[0]));
  if (ends[0] == before)
    return PLN_OK;
  pln_prim spec = {.kind = PLN_RANGE, .n = 2, .operands = ends};
  return pln_build_prim(pln_stmt_builder(s), &spec, range);
}

/* Operands from `first` on are indices or Ranges. */
static pln_status shift_access(compactor *x, pln_stmt_rewrite *s, pln_ref old,
                               uint32_t first, pln_ref *operands,
                               pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  uint32_t k = number_of(x, pln_operand(x->g, old, 0));
  for (uint32_t i = first; i < n->count; i++)
    if (n->kind == PLN_BUFFER_REGION)
      PLN_TRY(shift_range(x, s, k, i - first, &operands[i]));
    else
      PLN_TRY(shift_index(x, s, k, i - first, &operands[i]));
  pln_prim spec = {
      .kind = (pln_kind)n->kind, .n = n->count, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

/* The next stride that is `offset` modulo `factor`. */
static pln_term aligned(pln_analyzer *a, pln_term stride,
                        const pln_dim_alignment *d) {
  pln_term factor = pln_const_like(a, stride, d->factor);
  pln_term rest = pln_fold(a, PLN_PRIM_FLOORMOD, stride, factor);
  pln_term gap =
      pln_sub(a, pln_const_like(a, stride, d->factor + d->offset), rest);
  return pln_add(a, stride, pln_fold(a, PLN_PRIM_FLOORMOD, gap, factor));
}

/* The strides of a Buffer with the extents x->extent. */
static pln_status make_strides(compactor *x, pln_stmt_rewrite *s, uint32_t k,
                               pln_ref *out) {
  pln_analyzer *a = x->regions.a;
  pln_ref buffer = x->regions.buffers[k - 1].buffer;
  uint32_t rank = x->g->nodes[buffer].results, first = x->first[k - 1];
  pln_term stride =
      rank > 0 ? pln_const_like(a, x->extent[first], 1) : PLN_NO_TERM;
  for (uint32_t i = rank; i-- > 0;) {
    const pln_dim_alignment *d =
        pln_dim_alignment_of(&x->alignments, buffer, i);
    if (d)
      stride = aligned(a, stride, d);
    stride = pln_simplify_term(a, stride, 2);
    PLN_TRY(a->status);
    PLN_TRY(pln_analyzer_export(a, pln_stmt_builder(s), stride, &out[i]));
    stride = pln_mul(a, stride, x->extent[first + i]);
  }
  return a->status;
}

static pln_status shrink_buffer(compactor *x, pln_stmt_rewrite *s, pln_ref old,
                                uint32_t k, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref operands[2 * PLN_MOST_AXES + 2];
  uint32_t count = n->count;
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  for (uint32_t i = 0; i < n->results; i++)
    PLN_TRY(pln_analyzer_export(x->regions.a, pln_stmt_builder(s),
                                x->extent[x->first[k - 1] + i],
                                &operands[1 + i]));
  if (is_aligned(x, &x->regions.buffers[k - 1])) {
    operands[count + n->results - 1] = operands[count - 1];
    PLN_TRY(make_strides(x, s, k, operands + 1 + n->results));
    count += n->results;
  }
  return pln_stmt_rebuild_buffer(s, old, count, operands, node);
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  compactor *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_ref operands[PLN_MOST_AXES + 1];
  uint32_t k;
  if (n->kind == PLN_BUFFER)
    return (k = number_of(x, old)) ? shrink_buffer(x, s, old, k, node) : PLN_OK;
  if ((n->kind != PLN_BUFFER_LOAD && n->kind != PLN_BUFFER_REGION) ||
      !number_of(x, pln_operand(x->g, old, 0)))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  return shift_access(x, s, old, 1, operands, node);
}

static pln_status shrink_allocate(compactor *x, pln_stmt_rewrite *s,
                                  pln_ref stmt, pln_ref *node) {
  pln_ref data = x->g->scopes[x->g->nodes[stmt].data].begin, param;
  uint32_t k = x->regions.of_data[data];
  pln_ref operands[PLN_MOST_AXES + 1];
  if (!k || !x->smaller[k - 1] || x->regions.buffers[k - 1].stmt != stmt)
    return PLN_OK;
  operands[0] = pln_stmt_operand(s, 0);
  for (uint32_t i = 1; i < x->g->nodes[stmt].count; i++)
    PLN_TRY(pln_analyzer_export(x->regions.a, pln_stmt_builder(s),
                                x->extent[x->first[k - 1] + i - 1],
                                &operands[i]));
  PLN_TRY(pln_stmt_map(s, data, &param));
  pln_prim spec = {.kind = PLN_ALLOCATE,
                   .attrs = x->g->nodes[stmt].attrs,
                   .n = x->g->nodes[stmt].count,
                   .operands = operands};
  pln_body body = {
      .n_params = 1, .params = &param, .stmt = pln_stmt_body(s, 0)};
  return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &body, node);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  compactor *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  pln_ref operands[PLN_MOST_AXES + 2];
  if (n->kind == PLN_ALLOCATE)
    return shrink_allocate(x, s, stmt, node);
  if (n->kind != PLN_BUFFER_STORE || !number_of(x, pln_operand(x->g, stmt, 0)))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_operand(s, i);
  return shift_access(x, s, stmt, 2, operands, node);
}

/* ----------------------------------------------------------------- the pass
 */

static pln_status size_all(compactor *x, bool *any) {
  for (uint32_t k = 0; k < x->regions.n; k++) {
    if (x->g->nodes[x->regions.buffers[k].buffer].results >= PLN_MOST_AXES)
      continue;
    PLN_TRY(size_buffer(x, k));
    *any |= x->smaller[k];
  }
  return PLN_OK;
}

static pln_status compact(compactor *x, pln_pass_run *run) {
  pln_engine *e = x->g->engine;
  uint32_t n = x->regions.n, axes = 0;
  bool any = false;
  pln_stmt_mutator mutator = {.ud = x, .expr = visit_expr, .leave = leave_stmt};
  for (uint32_t k = 0; k < n; k++)
    axes += x->g->nodes[x->regions.buffers[k].buffer].results;
  x->first = pln_mem_new(e, ((size_t)n + 1) * sizeof *x->first);
  x->smaller = pln_mem_zeroed(e, (size_t)n + 1);
  x->min = pln_mem_zeroed(e, 2 * ((size_t)axes + 1) * sizeof *x->min);
  pln_status status = x->first && x->smaller && x->min ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK) {
    x->extent = x->min + axes + 1;
    x->first[0] = 0;
    for (uint32_t k = 0; k < n; k++)
      x->first[k + 1] =
          x->first[k] + x->g->nodes[x->regions.buffers[k].buffer].results;
    status = size_all(x, &any);
  }
  if (status == PLN_OK && any)
    status = pln_lower_function(run, &mutator);
  pln_mem_free(e, x->first, ((size_t)n + 1) * sizeof *x->first);
  pln_mem_free(e, x->smaller, (size_t)n + 1);
  pln_mem_free(e, x->min, 2 * ((size_t)axes + 1) * sizeof *x->min);
  return status;
}

pln_status pln_pass_tir_compact_buffer_allocation(pln_pass_run *run) {
  compactor x = {.g = pln_run_function(run),
                 .strict = pln_run_int(run, "is_strict") != 0};
  if (pln_is_legacy_te(x.g) || (!pln_has_kind(x.g, PLN_ALLOC_BUFFER) &&
                                !pln_has_kind(x.g, PLN_DECL_BUFFER)))
    return PLN_OK;
  PLN_TRY(pln_touched_regions_make(x.g, &x.regions));
  pln_status status = pln_dim_alignments_find(x.g, &x.alignments);
  if (status == PLN_OK)
    status = compact(&x, run);
  pln_dim_alignments_free(&x.alignments);
  pln_touched_regions_free(&x.regions);
  return status;
}
