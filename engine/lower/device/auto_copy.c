/* auto_copy.c: see auto_copy.h. Called by lower_auto_copy.c. */

#include "lower/device/auto_copy.h"
#include "lower/thread/thread_reduction.h"

const char *const pln_thread_axes[3] = {"threadIdx.z", "threadIdx.y",
                                        "threadIdx.x"};

/* --------------------------------------------------------------- annotations
 */

/* The number of an annotation, a condition being 0 or 1; `other` without it. */
static int64_t annotation(const pln_graph *g, pln_ref block, const char *key,
                          int64_t other) {
  const pln_attr *all =
      pln_attrs_find(g->engine, g->nodes[block].attrs, "annotations");
  const pln_attr *one = all && all->kind == PLN_ATTR_DICT
                            ? pln_attrs_find(g->engine, all->v.dict, key)
                            : NULL;
  bool number =
      one && (one->kind == PLN_ATTR_INT || one->kind == PLN_ATTR_BOOL);
  return number ? one->v.i : other;
}

static pln_status refuse(const pln_auto_copies *x, pln_ref block,
                         const char *what) {
  return pln_diag_error(
      x->g->engine, PLN_ERR_ARGUMENT, NULL, "tir.LowerAutoCopy: block '%s' %s",
      pln_attrs_string(x->g->engine, x->g->nodes[block].attrs, "name_hint", "")
          .data,
      what);
}

/* ------------------------------------------------------------------- threads
 */

static bool constant_of(const pln_graph *g, pln_ref ref, int64_t *out) {
  if (g->nodes[ref].kind != PLN_INT_IMM)
    return false;
  *out = pln_node_int(g, ref);
  return true;
}

static pln_status note_threads(pln_auto_copies *x, pln_ref loop) {
  int64_t extent;
  if (pln_for_kind_of(x->g, loop) != PLN_FOR_THREAD_BINDING)
    return PLN_OK;
  pln_slice tag = pln_thread_tag(x->g, loop);
  for (uint32_t i = 0; i < PLN_COUNT(x->threads); i++) {
    if (!pln_slice_is(tag, pln_thread_axes[i]))
      continue;
    if (!constant_of(x->g, pln_operand(x->g, loop, 1), &extent) || extent < 1 ||
        extent > INT32_MAX)
      return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.LowerAutoCopy: the number of threads of '%s' "
                            "is not known",
                            pln_thread_axes[i]);
    x->threads[i] = extent;
  }
  return PLN_OK;
}

static pln_status find_threads(pln_auto_copies *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_BLOCK &&
        annotation(g, ref, "warp_execution", 0))
      x->threads[2] = PLN_WARP;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_FOR)
      PLN_TRY(note_threads(x, ref));
  return PLN_OK;
}

/* ---------------------------------------------------------------------- copy
 */

static pln_slice scope_of(const pln_graph *g, pln_ref buffer) {
  pln_type type = g->nodes[pln_operand(g, buffer, 0)].type;
  return pln_symbol_text(g->engine, pln_type_symbol(g->engine, type));
}

bool pln_is_in_shared(const pln_graph *g, pln_ref buffer) {
  pln_slice scope = scope_of(g, buffer);
  return pln_slice_is(scope, "shared") || pln_slice_is(scope, "shared.dyn");
}

static bool is_in_global(const pln_graph *g, pln_ref buffer) {
  pln_slice scope = scope_of(g, buffer);
  return scope.size == 0 || pln_slice_is(scope, "global");
}

/* The only region that the block reads or writes; PLN_NONE if it is not one. */
static pln_ref region_of(const pln_graph *g, pln_ref block, pln_kind kind) {
  const pln_scope_row *row = &g->scopes[g->nodes[block].data];
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (g->nodes[ref].kind == kind)
      return g->nodes[ref].count == 1 ? pln_operand(g, ref, 0) : PLN_NONE;
  return PLN_NONE;
}

static bool is_plain_loop(const pln_graph *g, pln_ref loop, int64_t *extent) {
  int64_t min;
  return g->nodes[loop].kind == PLN_FOR &&
         pln_for_kind_of(g, loop) == PLN_FOR_SERIAL &&
         constant_of(g, pln_operand(g, loop, 0), &min) && min == 0 &&
         constant_of(g, pln_operand(g, loop, 1), extent) && *extent > 0;
}

static pln_status find_nest(const pln_auto_copies *x, pln_auto_copy *copy) {
  const pln_graph *g = x->g;
  pln_scope scope = g->nodes[copy->block].data;
  for (;;) {
    pln_ref at = g->scopes[scope].result;
    int64_t extent;
    if (x->elements[scope] != 1)
      return refuse(x, copy->block, "is not one store in loops");
    copy->store = at;
    if (g->nodes[at].kind == PLN_BUFFER_STORE && copy->n_loops > 0)
      return PLN_OK;
    if (!is_plain_loop(g, at, &extent) || copy->n_loops == PLN_MOST_COPY_LOOPS)
      return refuse(x, copy->block,
                    "is not one store in serial loops of constant extents");
    if (copy->n_loops == 0)
      copy->outermost = at;
    copy->extents[copy->n_loops] = extent;
    copy->loops[copy->n_loops++] = at;
    scope = g->nodes[at].data;
  }
}

/* The loop whose variable index `i` of the store is, behind the first one of
 * the region; n_loops: it is another expression, n_loops + 1: it is 0. */
static pln_status loop_at(pln_auto_copies *x, const pln_auto_copy *copy,
                          pln_ref region, uint32_t i, uint32_t *out) {
  const pln_graph *g = x->g;
  pln_term index, min, var;
  PLN_TRY(pln_analyzer_import_more(x->a, g, pln_operand(g, copy->store, i + 2),
                                   &index));
  PLN_TRY(pln_analyzer_import_more(
      x->a, g, pln_operand(g, pln_operand(g, region, i + 1), 0), &min));
  index = pln_simplify_term(x->a, pln_sub(x->a, index, min), 2);
  PLN_TRY(x->a->status);
  if (pln_is_const(x->a, index) && pln_const(x->a, index) == 0) {
    *out = copy->n_loops + 1;
    return PLN_OK;
  }
  for (*out = 0; *out < copy->n_loops; (*out)++) {
    PLN_TRY(pln_analyzer_import_more(
        x->a, g, g->scopes[g->nodes[copy->loops[*out]].data].begin, &var));
    if (var == index)
      break;
  }
  return PLN_OK;
}

/* Loops in the order of the elements in global memory. */
static pln_status invert(pln_auto_copies *x, pln_auto_copy *copy,
                         pln_ref region) {
  uint32_t order[PLN_MOST_COPY_LOOPS], n = 0;
  bool taken[PLN_MOST_COPY_LOOPS] = {false};
  pln_auto_copy old = *copy;
  for (uint32_t i = 0; i + 2 < x->g->nodes[copy->store].count; i++) {
    uint32_t k;
    PLN_TRY(loop_at(x, copy, region, i, &k));
    if (k == copy->n_loops + 1)
      continue;
    if (k == copy->n_loops || taken[k])
      return refuse(x, copy->block,
                    "stores to indices that are not its loop variables");
    taken[k] = true;
    order[n++] = k;
  }
  if (n != copy->n_loops)
    return refuse(x, copy->block, "stores to an element several times");
  for (uint32_t i = 0; i < n; i++) {
    copy->loops[i] = old.loops[order[i]];
    copy->extents[i] = old.extents[order[i]];
  }
  return PLN_OK;
}

static uint32_t bits_of(const pln_graph *g, pln_ref buffer) {
  return (uint32_t)pln_dtype_bits(
      pln_type_dtype(g->engine, g->nodes[buffer].type));
}

/* How the elements are spread over the threads. */
static pln_status spread(const pln_auto_copies *x, pln_auto_copy *copy) {
  int64_t elements = 1, step = 1;
  bool fits = true;
  int64_t bytes = annotation(x->g, copy->block, "vector_bytes", 1);
  copy->lanes = bytes > 0 && bytes <= 4096 ? bytes * 8 / copy->bits : 0;
  if (copy->lanes < 1)
    copy->lanes = 1;
  for (uint32_t i = 0; fits && i < copy->n_loops; i++)
    fits = pln_mul_fits(elements, copy->extents[i], &elements);
  for (uint32_t i = 0; fits && i < PLN_COUNT(x->threads); i++)
    if (x->threads[i])
      fits = pln_mul_fits(step, x->threads[i], &step);
  fits = fits && pln_mul_fits(step, copy->lanes, &step);
  if (!fits || elements > INT32_MAX || elements % step != 0)
    return refuse(x, copy->block,
                  "does not copy a multiple of the elements that all threads "
                  "copy at once");
  copy->rounds = elements / step;
  return PLN_OK;
}

static pln_status add_access(pln_auto_copies *x, pln_ref access,
                             uint32_t first) {
  pln_ref buffer = pln_operand(x->g, access, 0);
  if (!pln_is_in_shared(x->g, buffer))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->accesses, &x->cap_accesses,
                       (size_t)x->n_accesses + 1, sizeof *x->accesses));
  x->accesses[x->n_accesses++] =
      (pln_copy_access){access, first, x->n - 1, x->first_access[buffer]};
  x->first_access[buffer] = x->n_accesses;
  return PLN_OK;
}

/* The nodes of an expression stand in front of its statement. */
static pln_status add_accesses(pln_auto_copies *x, const pln_auto_copy *copy) {
  const pln_scope_row *row = &x->g->scopes[x->g->nodes[copy->block].data];
  PLN_TRY(add_access(x, copy->store, 2));
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (x->g->nodes[ref].kind == PLN_BUFFER_LOAD)
      PLN_TRY(add_access(x, ref, 1));
  return PLN_OK;
}

static pln_status add_copy(pln_auto_copies *x, pln_ref block) {
  const pln_graph *g = x->g;
  pln_auto_copy copy = {.block = block};
  pln_ref read = region_of(g, block, PLN_BLOCK_READS),
          write = region_of(g, block, PLN_BLOCK_WRITES);
  if (read == PLN_NONE || write == PLN_NONE)
    return refuse(x, block, "does not read one region and write one");
  pln_ref from = pln_operand(g, read, 0), to = pln_operand(g, write, 0);
  bool loads = is_in_global(g, from) && pln_is_in_shared(g, to),
       stores = pln_is_in_shared(g, from) && is_in_global(g, to);
  if (!loads && !stores)
    return refuse(x, block,
                  "copies neither from global to shared memory nor back: there "
                  "is no code for such devices");
  if (annotation(g, block, "local_stage", 0))
    return refuse(x, block, "copies through local memory, which is not done");
  PLN_TRY(find_nest(x, &copy));
  if (pln_operand(g, copy.store, 0) != to)
    return refuse(x, block, "does not store to the region that it writes");
  if (stores)
    PLN_TRY(invert(x, &copy, write));
  copy.bits =
      bits_of(g, from) > bits_of(g, to) ? bits_of(g, from) : bits_of(g, to);
  PLN_TRY(spread(x, &copy));
  PLN_TRY(pln_mem_grow(g->engine, (void **)&x->rows, &x->cap, (size_t)x->n + 1,
                       sizeof *x->rows));
  x->rows[x->n++] = copy;
  x->of[copy.outermost] = x->n;
  return add_accesses(x, &x->rows[x->n - 1]);
}

static void count_elements(pln_auto_copies *x) {
  pln_scope_cursor at = {.graph = x->g};
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    pln_scope scope = pln_scope_cursor_at(&at, ref);
    if (pln_is_stmt(n) && pln_is_seq_element((pln_kind)n->kind))
      x->elements[scope]++;
  }
}

pln_status pln_auto_copies_find(pln_auto_copies *x, const pln_graph *g) {
  pln_engine *e = g->engine;
  bool any = false;
  *x = (pln_auto_copies){.g = g};
  for (pln_ref ref = 0; ref < g->n_nodes && !any; ref++)
    any = g->nodes[ref].kind == PLN_BLOCK && annotation(g, ref, "auto_copy", 0);
  if (!any)
    return PLN_OK;
  PLN_TRY(pln_analyzer_new(e, &x->a));
  x->of = pln_mem_zeroed(e, g->n_nodes * sizeof *x->of);
  x->elements = pln_mem_zeroed(e, g->n_scopes * sizeof *x->elements);
  x->first_access = pln_mem_zeroed(e, g->n_nodes * sizeof *x->first_access);
  if (!x->of || !x->elements || !x->first_access)
    return pln_nomem(e);
  count_elements(x);
  PLN_TRY(find_threads(x));
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_BLOCK && annotation(g, ref, "auto_copy", 0))
      PLN_TRY(add_copy(x, ref));
  return PLN_OK;
}

void pln_auto_copies_free(pln_auto_copies *x) {
  pln_engine *e = x->g->engine;
  if (!x->a)
    return;
  pln_mem_free(e, x->of, x->g->n_nodes * sizeof *x->of);
  pln_mem_free(e, x->elements, x->g->n_scopes * sizeof *x->elements);
  pln_mem_free(e, x->first_access, x->g->n_nodes * sizeof *x->first_access);
  pln_mem_free(e, x->accesses, x->cap_accesses * sizeof *x->accesses);
  pln_mem_free(e, x->rows, x->cap * sizeof *x->rows);
  pln_analyzer_free(x->a);
}
