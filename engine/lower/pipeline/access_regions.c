/* access_regions.c: blocks around statements of a pipeline, and what blocks
 * read and write (pipeline.h).
 *
 * Called by inject_software_pipeline.c: before a pipeline is rewritten its
 * statements become blocks, afterwards the blocks that were made get their
 * regions. Inner blocks come first; a block around them takes theirs.
 *
 * Semantics: MakeBlock of TVM's inject_software_pipeline.cc. */

#include "lower/block/body_access.h"
#include "lower/pipeline/pipeline.h"

/* The attribute of a Block without regions, until it has them. */
static const char fill_key[] = "tir.fill_regions";

typedef struct region_filler {
  const pln_graph *g;
  pln_pipelines all;
  pln_access_table table;
} region_filler;

/* -------------------------------------------------------------------- blocks
 */

static pln_status set_attr(pln_engine *e, const char *name, pln_attr value,
                           pln_attrs *attrs) {
  PLN_TRY(pln_symbol_intern(e, pln_text(name), &value.name));
  return pln_attrs_with(e, *attrs, &value, attrs);
}

static pln_status block_attrs(pln_engine *e, bool fill, pln_attrs *attrs) {
  if (!pln_attrs_find(e, *attrs, "name_hint"))
    PLN_TRY(set_attr(e, "name_hint",
                     (pln_attr){.kind = PLN_ATTR_STRING, .v.s = pln_text("")},
                     attrs));
  if (!pln_attrs_find(e, *attrs, "iter_types"))
    PLN_TRY(
        set_attr(e, "iter_types", (pln_attr){.kind = PLN_ATTR_INTS}, attrs));
  return fill ? set_attr(e, fill_key,
                         (pln_attr){.kind = PLN_ATTR_BOOL, .v.i = 1}, attrs)
              : PLN_OK;
}

pln_status pln_pipeline_block(pln_builder *b, pln_attrs attrs, bool fill,
                              pln_ref condition, pln_ref body, pln_ref *out) {
  pln_prim block = {.kind = PLN_BLOCK, .attrs = attrs};
  pln_prim realize = {
      .kind = PLN_BLOCK_REALIZE, .n = 1, .operands = &condition};
  pln_body inner = {.stmt = body};
  PLN_TRY(block_attrs(b->engine, fill, &block.attrs));
  PLN_TRY(pln_build_floating_stmt(b, &block, 1, &inner, out));
  inner.stmt = *out;
  return pln_build_floating_stmt(b, &realize, 1, &inner, out);
}

/* ------------------------------------------------------------------- regions
 */

static bool is_to_fill(const pln_graph *g, pln_ref ref) {
  return g->nodes[ref].kind == PLN_BLOCK &&
         pln_attrs_find(g->engine, g->nodes[ref].attrs, fill_key);
}

/* BlockReads and BlockWrites in front of the statements. */
static pln_status with_regions(const region_filler *x, pln_stmt_rewrite *s,
                               pln_ref node, pln_ref *body) {
  const pln_access_table *t = &x->table;
  const pln_body_accesses *list = &t->lists[t->of[node] - 1];
  pln_engine *e = x->g->engine;
  const pln_graph *built = pln_stmt_builder(s)->graph;
  bool seq = built->nodes[*body].kind == PLN_SEQ_STMT;
  uint32_t n = seq ? built->nodes[*body].count : 1;
  size_t size = ((size_t)n + 2) * sizeof(pln_ref);
  pln_ref *stmts = pln_mem_new(e, size);
  if (!stmts)
    return pln_nomem(e);
  for (uint32_t i = 0; i < n; i++)
    stmts[i + 2] = seq ? pln_operand(built, *body, i) : *body;
  pln_status status = pln_build_accesses(s, t->a, list, false, &stmts[0]);
  if (status == PLN_OK)
    status = pln_build_accesses(s, t->a, list, true, &stmts[1]);
  if (status == PLN_OK)
    status = pln_build_seq(pln_stmt_builder(s), n + 2, stmts, body);
  pln_mem_free(e, stmts, size);
  return status;
}

/* ------------------------------------------------------- filling in regions
 */

static pln_status fill_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                            uint32_t k, pln_ref *body, bool *again) {
  const region_filler *x = ud;
  (void)k;
  (void)again;
  return x->table.of[stmt] ? with_regions(x, s, stmt, body) : PLN_OK;
}

static pln_status filled_block(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  const region_filler *x = ud;
  pln_prim spec = {.kind = PLN_BLOCK};
  if (!x->table.of[stmt])
    return PLN_OK;
  PLN_TRY(pln_attrs_without(x->g->engine, x->g->nodes[stmt].attrs, fill_key,
                            &spec.attrs));
  return pln_stmt_rebuild_as(s, stmt, &spec, node);
}

static pln_status fill(region_filler *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {
      .ud = x, .leave_body = fill_body, .leave = filled_block};
  PLN_TRY(pln_access_table_begin(x->g, &x->table));
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    pln_scope scope = x->g->nodes[ref].data;
    if (is_to_fill(x->g, ref))
      PLN_TRY(pln_access_table_add(&x->table, ref, scope,
                                   x->g->scopes[scope].begin,
                                   x->g->scopes[scope].end));
  }
  return pln_lower_function(run, &mutator);
}

pln_status pln_pipeline_fill_regions(pln_pass_run *run) {
  region_filler x = {.g = pln_run_function(run)};
  x.table.g = x.g;
  pln_status status = fill(&x, run);
  pln_access_table_end(&x.table);
  return status;
}

/* ------------------------------------------------------------ making blocks
 */

static pln_status wrap_child(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const region_filler *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref body;
  if (!x->table.of[stmt])
    return PLN_OK;
  PLN_TRY(pln_stmt_rebuild(s, stmt, &body));
  PLN_TRY(with_regions(x, s, stmt, &body));
  pln_ref truth = pln_emit_int(&e, PLN_BOOL, 1);
  PLN_TRY(e.status);
  return pln_pipeline_block(e.b, 0, false, truth, body, node);
}

/* The first node of a statement: its expressions are behind the one before. */
static pln_ref first_node(const region_filler *x, pln_ref stmt) {
  const pln_node *n = &x->g->nodes[stmt];
  pln_ref first = pln_owns(n) ? x->g->scopes[n->data].begin : stmt;
  while (first > 0 && !pln_is_stmt(&x->g->nodes[first - 1]) &&
         x->table.scope_of[first - 1] == x->table.scope_of[stmt])
    first--;
  return first;
}

static pln_status list_children(region_filler *x) {
  for (uint32_t i = 0; i < x->all.n_children; i++) {
    pln_ref stmt = x->all.children[i].stmt;
    if (x->all.children[i].block == PLN_NONE)
      PLN_TRY(pln_access_table_add(&x->table, stmt, x->table.scope_of[stmt],
                                   first_node(x, stmt), stmt + 1));
  }
  return PLN_OK;
}

static pln_status make_blocks(region_filler *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x, .leave = wrap_child};
  PLN_TRY(pln_access_table_begin(x->g, &x->table));
  PLN_TRY(pln_pipelines_find(x->g, false, &x->all));
  PLN_TRY(list_children(x));
  return x->table.n > 0 ? pln_lower_function(run, &mutator) : PLN_OK;
}

pln_status pln_pipeline_make_blocks(pln_pass_run *run) {
  region_filler x = {.g = pln_run_function(run)};
  x.table.g = x.g;
  x.all.g = x.g;
  pln_status status = make_blocks(&x, run);
  pln_pipelines_free(&x.all);
  pln_access_table_end(&x.table);
  return status;
}
