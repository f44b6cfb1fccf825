/* thread_reduction.c: finds the blocks that reduce over threads, and the loops
 * that they reduce over (thread_reduction.h).
 *
 * Called by lower_cross_thread_reduction.c. A block is a reduction if it has an
 * init, its variables are spatial or reduced and have independent affine
 * values, it alone writes its outputs, and no reduced variable is in their
 * indices. Each step looks at the nodes of one block only.
 *
 * Semantics: IsReductionBlock and CheckCanApplyCrossThreadReduction of TVM's
 * lower_cross_thread_reduction.cc. */

#include <stdlib.h>

#include "lower/thread/thread_reduction.h"

enum { HAS_INIT = 1, REDUCED_INDEX = 2 };

typedef struct finder {
  const pln_graph *g;
  pln_engine *engine;
  pln_thread_reductions *out;
  pln_analyzer *a;
  pln_scope *scope_of; /* by node */
  pln_scope *block_of; /* by scope: the body of the Block around it */
  pln_ref *loop_of;    /* by node: the loop whose variable it is */
  pln_scope *axis_of;  /* by node: 1 + the body of the Block whose reduction
                        * axis it is */
  pln_ref *writes;     /* by scope: BlockWrites; PLN_NONE: none */
  uint8_t *facts;      /* by scope: */
  uint32_t *seen;      /* by node: the search that has seen it */
  uint32_t stamp;      /* of the present search */
  uint64_t *writers;   /* block around, Buffer: sorted */
  uint32_t n_writers, cap_writers;
  pln_ref *stack, *loops; /* of the present search */
  uint32_t cap_stack, n_loops, cap_loops;
  pln_term_range *ranges;
  uint32_t cap_ranges;
  pln_term *indices;
  uint32_t *sums;
  uint32_t cap_indices, cap_sums;
} finder;

bool pln_is_thread_loop(const pln_graph *g, pln_ref loop) {
  return g->nodes[loop].kind == PLN_FOR && g->nodes[loop].count > 2 &&
         pln_for_kind_of(g, loop) == PLN_FOR_THREAD_BINDING;
}

pln_slice pln_thread_tag(const pln_graph *g, pln_ref loop) {
  return pln_attrs_string(g->engine, g->nodes[pln_operand(g, loop, 2)].attrs,
                          "thread_tag", "");
}

static bool starts_with(pln_slice text, const char *prefix) {
  size_t n = strlen(prefix);
  return text.size >= n && memcmp(text.data, prefix, n) == 0;
}

static pln_ref block_of_realize(const pln_graph *g, pln_ref realize) {
  return g->scopes[g->nodes[realize].data].result;
}

static const char *name_of(const finder *x, pln_ref block) {
  return pln_attrs_string(x->engine, x->g->nodes[block].attrs, "name_hint", "")
      .data;
}

/* -------------------------------------------------------------------- tables
 */

static void find_scopes(finder *x) {
  pln_scope_cursor at = {.graph = x->g};
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    x->scope_of[ref] = pln_scope_cursor_at(&at, ref);
  for (pln_scope i = 0; i < x->g->n_scopes; i++) {
    pln_ref owner = x->g->scopes[i].owner;
    bool block = i > 0 && x->g->nodes[owner].kind == PLN_BLOCK;
    x->block_of[i] = block    ? i
                     : i == 0 ? PLN_NONE
                              : x->block_of[x->g->scopes[i].parent];
  }
}

static void find_loops(finder *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    x->loop_of[ref] = PLN_NONE;
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_FOR)
      x->loop_of[x->g->scopes[x->g->nodes[ref].data].begin] = ref;
}

static uint64_t writer(pln_scope block, pln_ref buffer) {
  return (uint64_t)block << 32 | buffer;
}

static int by_value(const void *p, const void *q) {
  uint64_t x = *(const uint64_t *)p, y = *(const uint64_t *)q;
  return (x > y) - (x < y);
}

static void find_axes(finder *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    for (uint32_t i = 0; n->kind == PLN_BLOCK && i < n->count; i++)
      if (pln_is_reduction_axis(x->g, ref, i))
        x->axis_of[x->g->scopes[n->data].begin + i] = n->data + 1;
    if (n->kind == PLN_BLOCK_INIT)
      x->facts[x->scope_of[ref]] |= HAS_INIT;
  }
}

/* The Buffers that each block writes, by the block around it. */
static pln_status find_writers(finder *x) {
  for (pln_scope i = 0; i < x->g->n_scopes; i++)
    x->writes[i] = PLN_NONE;
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    if (n->kind != PLN_BLOCK_WRITES)
      continue;
    x->writes[x->scope_of[ref]] = ref;
    pln_ref block = x->g->scopes[x->scope_of[ref]].owner;
    pln_scope around = x->block_of[x->scope_of[block]];
    PLN_TRY(pln_mem_grow(x->engine, (void **)&x->writers, &x->cap_writers,
                         (size_t)x->n_writers + n->count, sizeof *x->writers));
    for (uint32_t i = 0; i < n->count; i++)
      x->writers[x->n_writers++] =
          writer(around, pln_operand(x->g, pln_operand(x->g, ref, i), 0));
  }
  if (x->n_writers > 0)
    qsort(x->writers, x->n_writers, sizeof *x->writers, by_value);
  return PLN_OK;
}

static bool is_only_writer(const finder *x, pln_scope around, pln_ref buffer) {
  uint64_t key = writer(around, buffer);
  const uint64_t *at = x->n_writers ? bsearch(&key, x->writers, x->n_writers,
                                              sizeof *x->writers, by_value)
                                    : NULL;
  return at && (at == x->writers || at[-1] != key) &&
         (at + 1 == x->writers + x->n_writers || at[1] != key);
}

/* ------------------------------------------------------------------ searches
 */

/* Pushes the operands of a node that are not seen. */
static pln_status push_operands(finder *x, pln_ref ref, uint32_t *n) {
  const pln_node *node = &x->g->nodes[ref];
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->stack, &x->cap_stack,
                       (size_t)*n + node->count, sizeof *x->stack));
  for (uint32_t i = 0; i < node->count; i++) {
    pln_ref operand = pln_operand(x->g, ref, i);
    if (x->seen[operand] == x->stamp)
      continue;
    x->seen[operand] = x->stamp;
    x->stack[(*n)++] = operand;
  }
  return PLN_OK;
}

/* Adds the loops whose variables are in the expression. */
static pln_status add_loops(finder *x, pln_ref expr) {
  uint32_t n = 1;
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->stack, &x->cap_stack, 1,
                       sizeof *x->stack));
  x->stack[0] = expr;
  x->seen[expr] = x->stamp;
  while (n > 0) {
    pln_ref ref = x->stack[--n];
    if (x->loop_of[ref] != PLN_NONE) {
      PLN_TRY(pln_mem_grow(x->engine, (void **)&x->loops, &x->cap_loops,
                           (size_t)x->n_loops + 1, sizeof *x->loops));
      x->loops[x->n_loops++] = x->loop_of[ref];
    }
    PLN_TRY(push_operands(x, ref, &n));
  }
  return PLN_OK;
}

static void begin_search(finder *x) {
  x->stamp++;
  x->n_loops = 0;
}

/* Marks the blocks whose reduction axes are in an index of the store. */
static pln_status look_at_indices(finder *x, pln_ref store) {
  uint32_t n = 0;
  begin_search(x);
  PLN_TRY(push_operands(x, store, &n));
  n = 0; /* without Buffer and value */
  for (uint32_t i = 2; i < x->g->nodes[store].count; i++)
    x->stack[n++] = pln_operand(x->g, store, i);
  while (n > 0) {
    pln_ref ref = x->stack[--n];
    if (x->axis_of[ref])
      x->facts[x->axis_of[ref] - 1] |= REDUCED_INDEX;
    PLN_TRY(push_operands(x, ref, &n));
  }
  return PLN_OK;
}

/* The loops whose variables are in the values of reduction axes. */
static pln_status find_reduction_loops(finder *x, pln_ref realize) {
  pln_ref block = block_of_realize(x->g, realize);
  begin_search(x);
  for (uint32_t i = 1; i < x->g->nodes[realize].count; i++) {
    pln_ref value = pln_operand(x->g, realize, i);
    if (pln_is_reduction_axis(x->g, block, i - 1) && x->seen[value] != x->stamp)
      PLN_TRY(add_loops(x, value));
  }
  return PLN_OK;
}

static bool has_thread_loop(const finder *x) {
  for (uint32_t i = 0; i < x->n_loops; i++)
    if (pln_is_thread_loop(x->g, x->loops[i]))
      return true;
  return false;
}

/* ------------------------------------------------------ reduction or not
 */

/* Spatial and reduced variables only. */
static bool has_plain_axes(const finder *x, pln_ref block) {
  const pln_attr *types =
      pln_attrs_find(x->engine, x->g->nodes[block].attrs, "iter_types");
  uint32_t n = x->g->nodes[block].count;
  if (!types || types->kind != PLN_ATTR_INTS || types->count != n)
    return n == 0;
  for (uint32_t i = 0; i < n; i++)
    if (types->v.ints[i] != 0 && types->v.ints[i] != 2)
      return false;
  return true;
}

static bool is_dominant(const finder *x, pln_ref block, pln_scope around) {
  pln_ref writes = x->writes[x->g->nodes[block].data];
  if (writes == PLN_NONE)
    return false;
  for (uint32_t i = 0; i < x->g->nodes[writes].count; i++) {
    pln_ref region = pln_operand(x->g, writes, i);
    if (!is_only_writer(x, around, pln_operand(x->g, region, 0)))
      return false;
  }
  return true;
}

static pln_status import_range(finder *x, pln_ref loop, pln_term_range *out) {
  const pln_graph *g = x->g;
  PLN_TRY(pln_analyzer_import_more(
      x->a, g, g->scopes[g->nodes[loop].data].begin, &out->var));
  PLN_TRY(
      pln_analyzer_import_more(x->a, g, pln_operand(g, loop, 0), &out->min));
  return pln_analyzer_import_more(x->a, g, pln_operand(g, loop, 1),
                                  &out->extent);
}

/* The ranges of the loops in the block around whose variables the values and
 * the condition have. */
static pln_status import_ranges(finder *x, pln_ref realize, uint32_t *n) {
  pln_scope around = x->block_of[x->scope_of[realize]];
  begin_search(x);
  *n = 0;
  for (uint32_t i = 0; i < x->g->nodes[realize].count; i++) {
    pln_ref value = pln_operand(x->g, realize, i);
    if (x->seen[value] != x->stamp)
      PLN_TRY(add_loops(x, value));
  }
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->ranges, &x->cap_ranges,
                       (size_t)x->n_loops + 1, sizeof *x->ranges));
  for (uint32_t i = 0; i < x->n_loops; i++)
    if (x->block_of[x->scope_of[x->loops[i]]] == around)
      PLN_TRY(import_range(x, x->loops[i], &x->ranges[(*n)++]));
  return PLN_OK;
}

static pln_status detect(finder *x, pln_ref realize, uint32_t n_ranges,
                         pln_iter_map *map, bool *out) {
  uint32_t n = x->g->nodes[realize].count - 1;
  pln_ref condition = pln_operand(x->g, realize, 0);
  pln_term predicate = 0;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_analyzer_import_more(
        x->a, x->g, pln_operand(x->g, realize, i + 1), &x->indices[i]));
  if (!pln_is_int(x->g, condition, 1))
    PLN_TRY(pln_analyzer_import_more(x->a, x->g, condition, &predicate));
  PLN_TRY(pln_iter_map_detect(map, n, x->indices, n_ranges, x->ranges,
                              predicate, PLN_ITER_SURJECTIVE, false, x->sums,
                              out));
  for (uint32_t i = 0; *out && i < n; i++) {
    pln_iter_sum sum = pln_iter_map_sum_at(map, x->sums[i]);
    *out = sum.n == 0 ||
           pln_proves_equal(x->a, sum.splits[0].scale,
                            pln_const_like(x->a, sum.splits[0].scale, 1));
  }
  return x->a->status;
}

static pln_status is_affine(finder *x, pln_ref realize, bool *out) {
  uint32_t n_ranges, n = x->g->nodes[realize].count - 1;
  pln_iter_map *map;
  *out = true;
  PLN_TRY(import_ranges(x, realize, &n_ranges));
  if (n_ranges == 0)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->indices, &x->cap_indices,
                       (size_t)n + 1, sizeof *x->indices));
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->sums, &x->cap_sums,
                       (size_t)n + 1, sizeof *x->sums));
  PLN_TRY(pln_iter_map_new(x->a, &map));
  pln_status status = detect(x, realize, n_ranges, map, out);
  pln_iter_map_free(map);
  return status;
}

/* --------------------------------------------------- what can be lowered
 */

static pln_status refuse(const finder *x, pln_ref block, const char *what) {
  return pln_diag_error(x->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.LowerCrossThreadReduction: block '%s' reduces "
                        "over threads, but %s",
                        name_of(x, block), what);
}

static bool is_listed(const finder *x, pln_ref loop) {
  for (uint32_t i = 0; i < x->n_loops; i++)
    if (x->loops[i] == loop)
      return true;
  return false;
}

/* The loops around the realised block that are listed, up to one that is not:
 * innermost first. */
static pln_status list_chain(finder *x, pln_thread_reduction *r) {
  pln_ref at = r->realize;
  for (;;) {
    pln_scope scope = x->scope_of[at];
    at = x->g->scopes[scope].owner;
    if (scope == 0 || x->g->nodes[at].kind != PLN_FOR || !is_listed(x, at))
      return PLN_OK;
    PLN_TRY(pln_mem_grow(x->engine, (void **)&r->loops, &r->cap_loops,
                         (size_t)r->n_loops + 1, sizeof *r->loops));
    r->loops[r->n_loops++] = at;
  }
}

static pln_status check_threads(const finder *x,
                                const pln_thread_reduction *r) {
  for (uint32_t i = 0; i < r->n_loops; i++)
    if (pln_is_thread_loop(x->g, r->loops[i]) &&
        !starts_with(pln_thread_tag(x->g, r->loops[i]), "threadIdx."))
      return refuse(x, r->block,
                    "a loop of it is bound to another axis than threadIdx");
  return PLN_OK;
}

/* No other block is realised behind it in its loops. */
static pln_status check_last(const finder *x, const pln_thread_reduction *r) {
  for (pln_ref ref = r->realize + 1; ref < r->loops[0]; ref++)
    if (x->g->nodes[ref].kind == PLN_BLOCK_REALIZE)
      return refuse(x, r->block, "it is not the last block in its loops");
  return PLN_OK;
}

static bool is_local(const finder *x, pln_ref store) {
  pln_ref data = pln_operand(x->g, pln_operand(x->g, store, 0), 0);
  pln_type type = x->g->nodes[data].type;
  return pln_slice_is(
      pln_symbol_text(x->engine, pln_type_symbol(x->engine, type)), "local");
}

static pln_status check_scopes(const finder *x, const pln_thread_reduction *r) {
  for (uint32_t i = 1; i < r->update.n; i++)
    if (is_local(x, r->update.stores[i]) != is_local(x, r->update.stores[0]))
      return refuse(x, r->block,
                    "some of its results are in local memory, some are not");
  return PLN_OK;
}

static pln_status complete(finder *x, pln_thread_reduction *r) {
  bool serial = false;
  PLN_TRY(list_chain(x, r));
  if (r->n_loops != x->n_loops)
    return refuse(x, r->block,
                  "the loops that it reduces over are not the innermost ones");
  pln_mem_reverse(r->loops, r->n_loops, sizeof *r->loops);
  PLN_TRY(check_threads(x, r));
  PLN_TRY(pln_reduction_update_read(x->g, r->block, &r->update));
  PLN_TRY(check_scopes(x, r));
  PLN_TRY(check_last(x, r));
  for (uint32_t i = 0; i < r->n_loops; i++)
    serial |= !pln_is_thread_loop(x->g, r->loops[i]);
  r->in_thread =
      serial || !pln_is_int(x->g, pln_operand(x->g, r->realize, 0), 1);
  return PLN_OK;
}

static pln_status add_reduction(finder *x, pln_ref realize) {
  pln_thread_reductions *all = x->out;
  PLN_TRY(pln_mem_grow(x->engine, (void **)&all->items, &all->cap,
                       (size_t)all->n + 1, sizeof *all->items));
  pln_thread_reduction *r = &all->items[all->n++];
  pln_scope around = x->block_of[x->scope_of[realize]];
  *r = (pln_thread_reduction){.realize = realize,
                              .block = block_of_realize(x->g, realize),
                              .outer_block = x->g->scopes[around].owner};
  PLN_TRY(find_reduction_loops(x, realize));
  PLN_TRY(complete(x, r));
  all->at[realize] = all->n;
  for (uint32_t i = 0; i < r->n_loops; i++)
    all->at[r->loops[i]] = all->n;
  return PLN_OK;
}

static pln_status look_at(finder *x, pln_ref realize) {
  pln_ref block = block_of_realize(x->g, realize);
  pln_scope around = x->block_of[x->scope_of[realize]];
  bool affine;
  if (around == PLN_NONE || x->facts[x->g->nodes[block].data] != HAS_INIT ||
      !has_plain_axes(x, block) || !is_dominant(x, block, around))
    return PLN_OK;
  PLN_TRY(find_reduction_loops(x, realize));
  if (!has_thread_loop(x))
    return PLN_OK;
  PLN_TRY(is_affine(x, realize, &affine));
  return affine ? add_reduction(x, realize) : PLN_OK;
}

/* --------------------------------------------------------------------- driver
 */

static pln_status find(finder *x) {
  pln_engine *e = x->engine;
  size_t nodes = x->g->n_nodes, scopes = x->g->n_scopes;
  x->scope_of = pln_mem_new(e, nodes * sizeof *x->scope_of);
  x->block_of = pln_mem_new(e, scopes * sizeof *x->block_of);
  x->loop_of = pln_mem_new(e, nodes * sizeof *x->loop_of);
  x->axis_of = pln_mem_zeroed(e, nodes * sizeof *x->axis_of);
  x->writes = pln_mem_new(e, scopes * sizeof *x->writes);
  x->facts = pln_mem_zeroed(e, scopes * sizeof *x->facts);
  x->seen = pln_mem_zeroed(e, nodes * sizeof *x->seen);
  x->out->at = pln_mem_zeroed(e, nodes * sizeof *x->out->at);
  if (!x->scope_of || !x->block_of || !x->loop_of || !x->axis_of ||
      !x->writes || !x->facts || !x->seen || !x->out->at)
    return pln_nomem(e);
  PLN_TRY(pln_analyzer_new(e, &x->a));
  find_scopes(x);
  find_loops(x);
  find_axes(x);
  PLN_TRY(find_writers(x));
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_BUFFER_STORE)
      PLN_TRY(look_at_indices(x, ref));
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_BLOCK_REALIZE)
      PLN_TRY(look_at(x, ref));
  return PLN_OK;
}

static void free_finder(finder *x) {
  pln_engine *e = x->engine;
  size_t nodes = x->g->n_nodes;
  if (x->a)
    pln_analyzer_free(x->a);
  pln_mem_free(e, x->scope_of, nodes * sizeof *x->scope_of);
  pln_mem_free(e, x->block_of, x->g->n_scopes * sizeof *x->block_of);
  pln_mem_free(e, x->loop_of, nodes * sizeof *x->loop_of);
  pln_mem_free(e, x->axis_of, nodes * sizeof *x->axis_of);
  pln_mem_free(e, x->writes, x->g->n_scopes * sizeof *x->writes);
  pln_mem_free(e, x->facts, x->g->n_scopes * sizeof *x->facts);
  pln_mem_free(e, x->seen, nodes * sizeof *x->seen);
  pln_mem_free(e, x->writers, x->cap_writers * sizeof *x->writers);
  pln_mem_free(e, x->stack, x->cap_stack * sizeof *x->stack);
  pln_mem_free(e, x->loops, x->cap_loops * sizeof *x->loops);
  pln_mem_free(e, x->ranges, x->cap_ranges * sizeof *x->ranges);
  pln_mem_free(e, x->indices, x->cap_indices * sizeof *x->indices);
  pln_mem_free(e, x->sums, x->cap_sums * sizeof *x->sums);
}

pln_status pln_thread_reductions_find(const pln_graph *g,
                                      pln_thread_reductions *out) {
  finder x = {.g = g, .engine = g->engine, .out = out};
  *out = (pln_thread_reductions){.g = g};
  pln_status status = find(&x);
  free_finder(&x);
  return status;
}

void pln_thread_reductions_free(pln_thread_reductions *all) {
  pln_engine *e = all->g->engine;
  for (uint32_t i = 0; i < all->n; i++)
    pln_mem_free(e, all->items[i].loops,
                 all->items[i].cap_loops * sizeof *all->items[i].loops);
  pln_mem_free(e, all->items, all->cap * sizeof *all->items);
  pln_mem_free(e, all->at, all->g->n_nodes * sizeof *all->at);
}
