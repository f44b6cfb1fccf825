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
  pln_analyzer *a;
  pln_pipelines all;
  pln_scope *scope_of;
  pln_ref *alloc_of; /* by Var: the statement that allocates its memory */
  uint32_t *of;      /* by node: 1 + the list of what it accesses */
  pln_body_accesses *lists;
  uint32_t n, cap;
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

/* Memory that is allocated in the statements is not seen around them. */
static void drop_inside(const region_filler *x, pln_ref first, pln_ref end,
                        pln_body_accesses *list) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < list->n; i++) {
    pln_ref data = pln_operand(x->g, list->items[i].buffer, 0);
    pln_ref at = x->alloc_of[data];
    if (at == PLN_NONE || at < first || at >= end)
      list->items[left++] = list->items[i];
  }
  list->n = left;
}

/* Finds what statements access, for a block of this node. */
static pln_status add_list(region_filler *x, pln_ref node, pln_scope scope,
                           pln_ref first, pln_ref end) {
  pln_known_accesses known = {x->of, x->lists};
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->lists, &x->cap,
                       (size_t)x->n + 1, sizeof *x->lists));
  known.lists = x->lists;
  PLN_TRY(pln_stmt_accesses_make(x->g, x->a, scope, first, end, x->scope_of,
                                 &known, &x->lists[x->n]));
  drop_inside(x, first, end, &x->lists[x->n]);
  x->of[node] = ++x->n;
  return PLN_OK;
}

/* BlockReads and BlockWrites in front of the statements. */
static pln_status with_regions(const region_filler *x, pln_stmt_rewrite *s,
                               pln_ref node, pln_ref *body) {
  const pln_body_accesses *list = &x->lists[x->of[node] - 1];
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
  pln_status status = pln_build_accesses(s, x->a, list, false, &stmts[0]);
  if (status == PLN_OK)
    status = pln_build_accesses(s, x->a, list, true, &stmts[1]);
  if (status == PLN_OK)
    status = pln_build_seq(pln_stmt_builder(s), n + 2, stmts, body);
  pln_mem_free(e, stmts, size);
  return status;
}

/* -------------------------------------------------------------------- tables
 */

static pln_status begin(region_filler *x) {
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes;
  pln_scope_cursor at = {.graph = x->g};
  x->scope_of = pln_mem_new(e, nodes * sizeof *x->scope_of);
  x->alloc_of = pln_mem_new(e, nodes * sizeof *x->alloc_of);
  x->of = pln_mem_zeroed(e, nodes * sizeof *x->of);
  if (!x->scope_of || !x->alloc_of || !x->of)
    return pln_nomem(e);
  for (pln_ref ref = 0; ref < nodes; ref++) {
    x->scope_of[ref] = pln_scope_cursor_at(&at, ref);
    x->alloc_of[ref] = PLN_NONE;
  }
  for (pln_ref ref = 0; ref < nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    if (n->kind == PLN_ALLOC_BUFFER)
      x->alloc_of[pln_operand(x->g, pln_operand(x->g, ref, 0), 0)] = ref;
    if (n->kind == PLN_ALLOCATE)
      x->alloc_of[x->g->scopes[n->data].begin] = ref;
  }
  return pln_analyzer_new(e, &x->a);
}

static void end(region_filler *x) {
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes;
  if (x->a)
    pln_analyzer_free(x->a);
  for (uint32_t i = 0; i < x->n; i++)
    pln_body_accesses_free(e, &x->lists[i]);
  pln_mem_free(e, x->lists, x->cap * sizeof *x->lists);
  pln_mem_free(e, x->scope_of, nodes * sizeof *x->scope_of);
  pln_mem_free(e, x->alloc_of, nodes * sizeof *x->alloc_of);
  pln_mem_free(e, x->of, nodes * sizeof *x->of);
}

/* ------------------------------------------------------- filling in regions
 */

static pln_status fill_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                            uint32_t k, pln_ref *body, bool *again) {
  const region_filler *x = ud;
  (void)k;
  (void)again;
  return x->of[stmt] ? with_regions(x, s, stmt, body) : PLN_OK;
}

static pln_status filled_block(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  const region_filler *x = ud;
  pln_prim spec = {.kind = PLN_BLOCK};
  if (!x->of[stmt])
    return PLN_OK;
  PLN_TRY(pln_attrs_without(x->g->engine, x->g->nodes[stmt].attrs, fill_key,
                            &spec.attrs));
  return pln_stmt_rebuild_as(s, stmt, &spec, node);
}

static pln_status fill(region_filler *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {
      .ud = x, .leave_body = fill_body, .leave = filled_block};
  PLN_TRY(begin(x));
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    pln_scope scope = x->g->nodes[ref].data;
    if (is_to_fill(x->g, ref))
      PLN_TRY(add_list(x, ref, scope, x->g->scopes[scope].begin,
                       x->g->scopes[scope].end));
  }
  return pln_lower_function(run, &mutator);
}

pln_status pln_pipeline_fill_regions(pln_pass_run *run) {
  region_filler x = {.g = pln_run_function(run)};
  pln_status status = fill(&x, run);
  end(&x);
  return status;
}

/* ------------------------------------------------------------ making blocks
 */

static pln_status wrap_child(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const region_filler *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref body;
  if (!x->of[stmt])
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
         x->scope_of[first - 1] == x->scope_of[stmt])
    first--;
  return first;
}

static pln_status list_children(region_filler *x) {
  for (uint32_t i = 0; i < x->all.n_children; i++) {
    pln_ref stmt = x->all.children[i].stmt;
    if (x->all.children[i].block == PLN_NONE)
      PLN_TRY(
          add_list(x, stmt, x->scope_of[stmt], first_node(x, stmt), stmt + 1));
  }
  return PLN_OK;
}

static pln_status make_blocks(region_filler *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x, .leave = wrap_child};
  PLN_TRY(begin(x));
  PLN_TRY(pln_pipelines_find(x->g, false, &x->all));
  PLN_TRY(list_children(x));
  return x->n > 0 ? pln_lower_function(run, &mutator) : PLN_OK;
}

pln_status pln_pipeline_make_blocks(pln_pass_run *run) {
  region_filler x = {.g = pln_run_function(run)};
  x.all.g = x.g;
  pln_status status = make_blocks(&x, run);
  pln_pipelines_free(&x.all);
  end(&x);
  return status;
}
