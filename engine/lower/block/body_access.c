/* body_access.c: collects what the body of a loop or block reads and writes
 * (body_access.h).
 *
 * Called by plan_buffer_allocation.c and access_table.c. Loops inside of the
 * body run over their
 * ranges, variables of blocks over their values. The regions of one Buffer are
 * united to one interval in each dimension; an end that is not known is that of
 * the Buffer.
 *
 * Semantics: GetBlockReadWriteRegion of TVM's block_access_region_detector.cc.
 */

#include "lower/block/body_access.h"

typedef struct collector {
  const pln_graph *g;
  pln_analyzer *a;
  pln_scope body;
  const pln_scope *scope_of;
  const pln_access_table *table; /* or NULL */
  bool views;                    /* those of the body's block are known */
  pln_body_accesses *out;
  pln_term *vars;
  pln_interval *sets;
  uint32_t n, cap_vars, cap_sets;
  pln_scope *chain;
  uint32_t n_chain, cap_chain;
} collector;

/* ------------------------------------------------------------------- ranges
 */

static pln_interval evaluate(collector *x, pln_term t) {
  return pln_interval_of(x->a, t, x->n, x->vars, x->sets, false);
}

static pln_status push_var(collector *x, pln_term var, pln_interval set) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->vars, &x->cap_vars,
                       (size_t)x->n + 1, sizeof *x->vars));
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->sets, &x->cap_sets,
                       (size_t)x->n + 1, sizeof *x->sets));
  x->vars[x->n] = var;
  x->sets[x->n++] = set;
  return PLN_OK;
}

/* [first, first + extent) */
static pln_status range_of(collector *x, pln_ref first, pln_ref extent,
                           pln_interval *out) {
  pln_term from, length;
  PLN_TRY(pln_analyzer_import(x->a, x->g, first, &from));
  PLN_TRY(pln_analyzer_import(x->a, x->g, extent, &length));
  pln_interval low = evaluate(x, from);
  pln_interval high =
      evaluate(x, pln_add_const(x->a, pln_add(x->a, from, length), -1));
  *out = (pln_interval){low.min, high.max};
  return x->a->status;
}

static pln_status enter_loop(collector *x, pln_scope scope, pln_ref loop) {
  pln_term var;
  pln_interval set;
  PLN_TRY(pln_analyzer_import(x->a, x->g, x->g->scopes[scope].begin, &var));
  PLN_TRY(range_of(x, pln_operand(x->g, loop, 0), pln_operand(x->g, loop, 1),
                   &set));
  return push_var(x, var, set);
}

static pln_status enter_block(collector *x, pln_ref realize) {
  const pln_node *n = &x->g->nodes[realize];
  pln_ref block = x->g->scopes[n->data].result;
  pln_ref first = x->g->scopes[x->g->nodes[block].data].begin;
  for (uint32_t i = 1; i < n->count; i++) {
    pln_term var, value;
    PLN_TRY(pln_analyzer_import(x->a, x->g, first + i - 1, &var));
    PLN_TRY(
        pln_analyzer_import(x->a, x->g, pln_operand(x->g, realize, i), &value));
    PLN_TRY(push_var(x, var, evaluate(x, value)));
  }
  return PLN_OK;
}

/* The ranges of what is between the body and a scope in it. */
static pln_status set_ranges(collector *x, pln_scope scope) {
  x->n = x->n_chain = 0;
  for (; scope != x->body && scope != PLN_NONE;
       scope = x->g->scopes[scope].parent) {
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->chain, &x->cap_chain,
                         (size_t)x->n_chain + 1, sizeof *x->chain));
    x->chain[x->n_chain++] = scope;
  }
  for (uint32_t i = x->n_chain; i-- > 0;) {
    pln_ref owner = x->g->scopes[x->chain[i]].owner;
    if (x->g->nodes[owner].kind == PLN_FOR)
      PLN_TRY(enter_loop(x, x->chain[i], owner));
    if (x->g->nodes[owner].kind == PLN_BLOCK_REALIZE)
      PLN_TRY(enter_block(x, owner));
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- accesses
 */

static pln_body_access *find_access(const collector *x, pln_ref buffer,
                                    bool writes) {
  for (uint32_t i = 0; i < x->out->n; i++)
    if (x->out->items[i].buffer == buffer && x->out->items[i].writes == writes)
      return &x->out->items[i];
  return NULL;
}

/* Ends that are not known are those of the Buffer. */
static pln_status bound(collector *x, pln_ref buffer, uint32_t i,
                        pln_interval *set) {
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  pln_term shape;
  PLN_TRY(x->a->status); /* of finding the set */
  PLN_TRY(pln_analyzer_import(x->a, x->g, f.shape[i], &shape));
  if (pln_is_infinite(set->min) || pln_is_infinite(set->max))
    *set = (pln_interval){pln_const_like(x->a, shape, 0),
                          pln_add_const(x->a, shape, -1)};
  return x->a->status;
}

/* min and, in `extent`, the last index; made extents at the end. */
static pln_status unite(collector *x, pln_body_access *access, uint32_t i,
                        pln_interval set, bool fresh) {
  PLN_TRY(bound(x, access->buffer, i, &set));
  if (!fresh) { /* as in TVM, only a union is simplified */
    set.min = pln_fold(x->a, PLN_PRIM_MIN, access->min[i], set.min);
    set.max = pln_fold(x->a, PLN_PRIM_MAX, access->extent[i], set.max);
    PLN_TRY(x->a->status);
    set.min = pln_simplify_term(x->a, set.min, 2);
    set.max = pln_simplify_term(x->a, set.max, 2);
  }
  access->min[i] = set.min;
  access->extent[i] = set.max;
  return x->a->status;
}

/* The row of the Buffer, or NULL: it has too many axes. */
static pln_status row_of(collector *x, pln_ref buffer, bool writes,
                         uint32_t rank, pln_body_access **out, bool *fresh) {
  *out = NULL;
  if (rank > PLN_MOST_AXES)
    return PLN_OK;
  *out = find_access(x, buffer, writes);
  *fresh = !*out;
  if (*out)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->out->items, &x->out->cap,
                       (size_t)x->out->n + 1, sizeof *x->out->items));
  *out = &x->out->items[x->out->n++];
  **out = (pln_body_access){.buffer = buffer, .writes = writes, .rank = rank};
  return PLN_OK;
}

/* ------------------------------------------------------------------ views */

/* The MatchBuffer of the body's block whose view the Buffer is. */
static pln_ref view_of(const collector *x, pln_ref buffer) {
  pln_ref view = x->table && x->views
                     ? x->table->view_of[pln_operand(x->g, buffer, 0)]
                     : PLN_NONE;
  return view != PLN_NONE && x->scope_of[view] == x->body ? view : PLN_NONE;
}

/* Elements of a view as elements of the Buffer that it is a view of, whose
 * first axes the view may lack. */
static pln_status source_sets(collector *x, pln_ref view, pln_ref *buffer,
                              uint32_t *rank, pln_interval *sets) {
  pln_ref region = pln_operand(x->g, view, 1);
  uint32_t n = x->g->nodes[region].count - 1, lack = n - *rank;
  if (n < *rank || n > PLN_MOST_AXES)
    return PLN_OK;
  for (uint32_t i = 0; i < *rank; i++)
    PLN_TRY(bound(x, *buffer, i, &sets[i]));
  memmove(sets + lack, sets, *rank * sizeof *sets);
  for (uint32_t i = 0; i < n; i++) {
    pln_ref range = pln_operand(x->g, region, 1 + i);
    pln_term first;
    if (i < lack) {
      PLN_TRY(range_of(x, pln_operand(x->g, range, 0),
                       pln_operand(x->g, range, 1), &sets[i]));
      continue;
    }
    PLN_TRY(
        pln_analyzer_import(x->a, x->g, pln_operand(x->g, range, 0), &first));
    pln_interval low = evaluate(x, pln_add(x->a, first, sets[i].min));
    pln_interval high = evaluate(x, pln_add(x->a, first, sets[i].max));
    sets[i] = (pln_interval){low.min, high.max};
  }
  *buffer = pln_operand(x->g, region, 0);
  *rank = n;
  return x->a->status;
}

/* `sets` has room for PLN_MOST_AXES. */
static pln_status add_sets(collector *x, pln_ref buffer, bool writes,
                           uint32_t rank, pln_interval *sets) {
  pln_ref view = view_of(x, buffer);
  pln_body_access *access;
  bool fresh;
  if (view != PLN_NONE)
    PLN_TRY(source_sets(x, view, &buffer, &rank, sets));
  PLN_TRY(row_of(x, buffer, writes, rank, &access, &fresh));
  for (uint32_t i = 0; access && i < rank; i++)
    PLN_TRY(unite(x, access, i, sets[i], fresh));
  return PLN_OK;
}

/* ------------------------------------------------------------------- nodes */

static pln_status index_set(collector *x, pln_ref index, pln_interval *out) {
  pln_term term;
  if (x->g->nodes[index].kind == PLN_RANGE)
    return range_of(x, pln_operand(x->g, index, 0), pln_operand(x->g, index, 1),
                    out);
  PLN_TRY(pln_analyzer_import(x->a, x->g, index, &term));
  *out = evaluate(x, term);
  return PLN_OK;
}

/* Operands from `first` on are indices or Ranges. */
static pln_status add_access(collector *x, pln_ref node, uint32_t first,
                             bool writes) {
  uint32_t rank = x->g->nodes[node].count - first;
  pln_interval sets[PLN_MOST_AXES];
  if (rank > PLN_MOST_AXES)
    return PLN_OK;
  for (uint32_t i = 0; i < rank; i++)
    PLN_TRY(index_set(x, pln_operand(x->g, node, first + i), &sets[i]));
  return add_sets(x, pln_operand(x->g, node, 0), writes, rank, sets);
}

/* Terms of an inner scope. */
static pln_status add_known(collector *x, const pln_body_access *known) {
  pln_interval sets[PLN_MOST_AXES];
  for (uint32_t i = 0; i < known->rank; i++) {
    pln_interval low = evaluate(x, known->min[i]);
    pln_interval high = evaluate(
        x, pln_add_const(x->a, pln_add(x->a, known->min[i], known->extent[i]),
                         -1));
    sets[i] = (pln_interval){low.min, high.max};
  }
  return add_sets(x, known->buffer, known->writes, known->rank, sets);
}

/* All of the Buffer whose memory is at a Var. */
static pln_status add_whole(collector *x, pln_ref var, bool writes) {
  pln_ref buffer = x->table->buffer_of[var];
  pln_interval sets[PLN_MOST_AXES];
  if (buffer == PLN_NONE || x->g->nodes[buffer].results > PLN_MOST_AXES)
    return PLN_OK;
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  for (uint32_t i = 0; i < x->g->nodes[buffer].results; i++) {
    pln_term shape;
    PLN_TRY(pln_analyzer_import(x->a, x->g, f.shape[i], &shape));
    sets[i] = (pln_interval){pln_const_like(x->a, shape, 0),
                             pln_add_const(x->a, shape, -1)};
  }
  PLN_TRY(x->a->status);
  return add_sets(x, buffer, writes, x->g->nodes[buffer].results, sets);
}

static bool is_var(const collector *x, pln_ref ref) {
  return x->g->nodes[ref].kind == PLN_VAR;
}

/* tvm_access_ptr(type, pointer, offset, extent, what): 1: read, 2: written. */
static pln_status visit_call(collector *x, pln_ref call) {
  const pln_node *n = &x->g->nodes[call];
  bool says = n->count == 5 &&
              n->data == pln_builtin_find(pln_text("tvm_access_ptr")) &&
              x->g->nodes[pln_operand(x->g, call, 4)].kind == PLN_INT_IMM;
  int64_t what = says ? pln_node_int(x->g, pln_operand(x->g, call, 4)) : 3;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operand(x->g, call, i);
    if (!is_var(x, operand))
      continue;
    if (what & 1)
      PLN_TRY(add_whole(x, operand, false));
    if (what & 2)
      PLN_TRY(add_whole(x, operand, true));
  }
  return PLN_OK;
}

static pln_status visit_known(collector *x, pln_ref block) {
  const pln_body_accesses *list;
  if (!x->table || !x->table->of[block])
    return PLN_OK;
  list = &x->table->lists[x->table->of[block] - 1];
  PLN_TRY(set_ranges(x, x->scope_of[block]));
  for (uint32_t i = 0; i < list->n; i++)
    PLN_TRY(add_known(x, &list->items[i]));
  return PLN_OK;
}

/* How many blocks are between the body and the scope. */
static uint32_t depth_of(const collector *x, pln_scope scope) {
  uint32_t depth = 0;
  for (; scope != x->body && scope != PLN_NONE;
       scope = x->g->scopes[scope].parent)
    depth += x->g->nodes[x->g->scopes[scope].owner].kind == PLN_BLOCK;
  return depth;
}

static pln_status visit(collector *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  bool regions = n->kind == PLN_BLOCK_READS || n->kind == PLN_BLOCK_WRITES;
  bool access = n->kind == PLN_BUFFER_LOAD || n->kind == PLN_BUFFER_STORE;
  bool call = n->kind == PLN_PRIM_CALL && x->table;
  if (n->kind == PLN_BLOCK && depth_of(x, x->scope_of[ref]) == 0)
    return visit_known(x, ref);
  if ((!regions && !access && !call) ||
      depth_of(x, x->scope_of[ref]) != (regions ? 1u : 0u))
    return PLN_OK;
  if (call)
    return visit_call(x, ref);
  PLN_TRY(set_ranges(x, x->scope_of[ref]));
  if (access)
    return add_access(x, ref, n->kind == PLN_BUFFER_LOAD ? 1 : 2,
                      n->kind == PLN_BUFFER_STORE);
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(add_access(x, pln_operand(x->g, ref, i), 1,
                       n->kind == PLN_BLOCK_WRITES));
  return PLN_OK;
}

static pln_status collect(collector *x, pln_ref first, pln_ref end) {
  for (pln_ref ref = first; ref < end; ref++)
    PLN_TRY(visit(x, ref));
  for (uint32_t k = 0; k < x->out->n; k++) {
    pln_body_access *access = &x->out->items[k];
    for (uint32_t i = 0; i < access->rank; i++) {
      pln_term last = access->extent[i];
      access->extent[i] = pln_simplify_term(
          x->a, pln_add_const(x->a, pln_sub(x->a, last, access->min[i]), 1), 2);
    }
  }
  return x->a->status;
}

static pln_status make(collector *x, pln_ref first, pln_ref end) {
  pln_engine *e = x->g->engine;
  *x->out = (pln_body_accesses){0};
  pln_status status = collect(x, first, end);
  pln_mem_free(e, x->vars, x->cap_vars * sizeof *x->vars);
  pln_mem_free(e, x->sets, x->cap_sets * sizeof *x->sets);
  pln_mem_free(e, x->chain, x->cap_chain * sizeof *x->chain);
  if (status != PLN_OK)
    pln_body_accesses_free(e, x->out);
  return status;
}

pln_status pln_body_accesses_make(const pln_graph *g, pln_analyzer *a,
                                  pln_scope scope, const pln_scope *scope_of,
                                  pln_body_accesses *out) {
  collector x = {
      .g = g, .a = a, .body = scope, .scope_of = scope_of, .out = out};
  return make(&x, g->scopes[scope].begin, g->scopes[scope].end);
}

pln_status pln_body_accesses_find(const pln_access_table *t, pln_scope scope,
                                  pln_ref first, pln_ref end,
                                  pln_body_accesses *out) {
  const pln_scope_row *row = &t->g->scopes[scope];
  collector x = {.g = t->g,
                 .a = t->a,
                 .body = scope,
                 .scope_of = t->scope_of,
                 .table = t,
                 .views = first == row->begin && end == row->end,
                 .out = out};
  return make(&x, first, end);
}

void pln_body_accesses_free(pln_engine *engine, pln_body_accesses *accesses) {
  pln_mem_free(engine, accesses->items,
               accesses->cap * sizeof *accesses->items);
}

static pln_status build_region(pln_stmt_rewrite *s, pln_analyzer *a,
                               const pln_body_access *access, pln_ref *out) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref operands[PLN_MOST_AXES + 1];
  PLN_TRY(pln_stmt_map(s, access->buffer, &operands[0]));
  for (uint32_t i = 0; i < access->rank; i++) {
    pln_ref ends[2];
    PLN_TRY(pln_analyzer_export(a, b, access->min[i], &ends[0]));
    PLN_TRY(pln_analyzer_export(a, b, access->extent[i], &ends[1]));
    pln_prim range = {.kind = PLN_RANGE, .n = 2, .operands = ends};
    PLN_TRY(pln_build_prim(b, &range, &operands[i + 1]));
  }
  pln_prim spec = {
      .kind = PLN_BUFFER_REGION, .n = access->rank + 1, .operands = operands};
  return pln_build_prim(b, &spec, out);
}

static pln_status build_regions(pln_stmt_rewrite *s, pln_analyzer *a,
                                const pln_body_accesses *all, bool writes,
                                pln_ref *regions, pln_ref *out) {
  pln_prim spec = {.kind = writes ? PLN_BLOCK_WRITES : PLN_BLOCK_READS,
                   .operands = regions};
  for (uint32_t i = 0; i < all->n; i++)
    if (all->items[i].writes == writes)
      PLN_TRY(build_region(s, a, &all->items[i], &regions[spec.n++]));
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

pln_status pln_build_accesses(pln_stmt_rewrite *s, pln_analyzer *a,
                              const pln_body_accesses *all, bool writes,
                              pln_ref *out) {
  pln_engine *e = pln_stmt_old(s)->engine;
  size_t size = ((size_t)all->n + 1) * sizeof(pln_ref);
  pln_ref *regions = pln_mem_new(e, size);
  if (!regions)
    return pln_nomem(e);
  pln_status status = build_regions(s, a, all, writes, regions, out);
  pln_mem_free(e, regions, size);
  return status;
}
