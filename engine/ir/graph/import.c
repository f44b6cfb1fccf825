/* import.c: copies expressions from other graphs into a builder, so that
 * callers need not care which graph an operand belongs to.
 *
 * Called by pln_build_import. Memoised per graph: an import costs only what is
 * newly copied. An owner is copied with all its scopes, in order. Vars bound
 * outside the copied part become free and keep their identity. Nothing
 * recurses. */

#include "ir/graph/layout/compact.h"

typedef struct memo {
  pln_graph *graph; /* retained, so that its address is not reused */
  pln_ref *map;     /* per node: its copy, or PLN_NONE */
  uint32_t size;
  bool looked, lets; /* looked: `lets` is valid: scope 0 has lets */
  pln_ref block;     /* the copy of the whole block of lets, or PLN_NONE */
} memo;

typedef struct pln_import_memo {
  memo *rows;
  uint32_t count, capacity;
  pln_idmap *by_graph; /* address of a graph -> row + 1; with more than
                        * FEW_ROWS */
  pln_ref *stack;
  uint32_t top, cap_stack;
} pln_import_memo;

/* Up to this many rows are searched linearly. */
enum { FEW_ROWS = 16 };

static void drop_index(pln_import_memo *all) {
  pln_idmap_free(all->by_graph);
  all->by_graph = NULL;
}

static size_t map_bytes(const memo *m) {
  return ((size_t)m->size + 1) * sizeof *m->map;
}

void pln_import_free(pln_builder *b) {
  pln_import_memo *all = b->imports;
  if (!all)
    return;
  for (uint32_t i = 0; i < all->count; i++) {
    pln_mem_free(b->engine, all->rows[i].map, map_bytes(&all->rows[i]));
    pln_graph_release(all->rows[i].graph);
  }
  drop_index(all);
  pln_mem_free(b->engine, all->rows, all->capacity * sizeof *all->rows);
  pln_mem_free(b->engine, all->stack, all->cap_stack * sizeof *all->stack);
  pln_mem_free(b->engine, all, sizeof *all);
  b->imports = NULL;
}

/* True if a copied node remains. */
static bool compact_memo(memo *m, const pln_ref *map) {
  bool left = false;
  for (uint32_t i = 0; i < m->size; i++) {
    if (m->map[i] != PLN_NONE)
      m->map[i] = map[m->map[i]];
    left = left || m->map[i] != PLN_NONE;
  }
  if (m->block != PLN_NONE)
    m->block = map[m->block];
  return left || m->block != PLN_NONE;
}

void pln_import_compact(pln_builder *b, const pln_ref *map) {
  pln_import_memo *all = b->imports;
  uint32_t n = 0;
  for (uint32_t i = 0; all && i < all->count; i++) {
    memo *m = &all->rows[i];
    if (compact_memo(m, map)) {
      all->rows[n++] = *m;
      continue;
    }
    pln_mem_free(b->engine, m->map, map_bytes(m));
    pln_graph_release(m->graph);
  }
  if (all) {
    all->count = n;
    drop_index(all);
  }
}

/* --------------------------------------------------------------------- memos
 */

/* The graph of a builder grows, and its memo with it. */
static pln_status grow_import_memo(pln_builder *b, memo *m) {
  uint32_t n = m->graph->n_nodes;
  if (m->map && n <= m->size)
    return PLN_OK;
  memo wider = {.size = m->graph->sealed ? n : n + n / 2};
  wider.map = pln_mem_new(b->engine, map_bytes(&wider));
  if (!wider.map)
    return pln_nomem(b->engine);
  memset(wider.map, 0xff, map_bytes(&wider));
  if (m->map) {
    memcpy(wider.map, m->map, m->size * sizeof *m->map);
    pln_mem_free(b->engine, m->map, map_bytes(m));
  }
  m->map = wider.map;
  m->size = wider.size;
  return PLN_OK;
}

static pln_status index_rows(pln_engine *e, pln_import_memo *all) {
  pln_status status = pln_idmap_new(e, &all->by_graph);
  for (uint32_t i = 0; i < all->count && status == PLN_OK; i++)
    status = pln_idmap_set(all->by_graph, (uintptr_t)all->rows[i].graph, i + 1);
  if (status != PLN_OK)
    drop_index(all);
  return status;
}

/* *row: the graph's row + 1; 0: none. */
static pln_status find_row(pln_engine *e, pln_import_memo *all,
                           const pln_graph *graph, uint32_t *row) {
  if (all->count > FEW_ROWS) {
    if (!all->by_graph)
      PLN_TRY(index_rows(e, all));
    *row = pln_idmap_get(all->by_graph, (uintptr_t)graph);
    return PLN_OK;
  }
  *row = all->count;
  while (*row > 0 && all->rows[*row - 1].graph != graph)
    --*row;
  return PLN_OK;
}

static pln_status add_row(pln_engine *e, pln_import_memo *all,
                          const pln_graph *graph) {
  PLN_TRY(pln_mem_grow(e, (void **)&all->rows, &all->capacity,
                       (size_t)all->count + 1, sizeof *all->rows));
  if (all->by_graph)
    PLN_TRY(pln_idmap_set(all->by_graph, (uintptr_t)graph, all->count + 1));
  all->rows[all->count++] =
      (memo){.graph = pln_graph_retain(graph), .block = PLN_NONE};
  return PLN_OK;
}

static pln_status find_memo(pln_builder *b, const pln_graph *graph,
                            memo **out) {
  uint32_t row;
  if (!b->imports &&
      !(b->imports = pln_mem_zeroed(b->engine, sizeof *b->imports)))
    return pln_nomem(b->engine);
  PLN_TRY(find_row(b->engine, b->imports, graph, &row));
  if (row == 0) {
    PLN_TRY(add_row(b->engine, b->imports, graph));
    row = b->imports->count;
  }
  *out = &b->imports->rows[row - 1];
  return grow_import_memo(b, *out);
}

/* ------------------------------------------------------------ what is needed
 */

static pln_status push_imported_node(pln_builder *b, pln_ref entry) {
  pln_import_memo *all = b->imports;
  PLN_TRY(pln_mem_grow(b->engine, (void **)&all->stack, &all->cap_stack,
                       (size_t)all->top + 1, sizeof *all->stack));
  all->stack[all->top++] = entry;
  return PLN_OK;
}

/* A copy in an ended scope cannot be used again. */
static bool at_hand(const pln_builder *b, const memo *m, pln_ref ref) {
  pln_ref copy = m->map[ref];
  if (copy == PLN_NONE)
    return false;
  pln_scope node_scope = b->node_scope[copy];
  return node_scope == PLN_NONE || b->graph->scopes[node_scope].end == PLN_NONE;
}

static pln_status push_if_new(pln_builder *b, const memo *m, pln_ref ref) {
  return at_hand(b, m, ref) ? PLN_OK : push_imported_node(b, ref);
}

/* Pushes the outer nodes that the nodes in [first, owner) use. */
static pln_status push_captured(pln_builder *b, const memo *m, pln_ref first,
                                pln_ref owner) {
  const pln_graph *g = m->graph;
  for (pln_ref ref = first; ref <= owner; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = 0; i < n->count; i++)
      if (g->operands[n->first + i] < first)
        PLN_TRY(push_if_new(b, m, g->operands[n->first + i]));
    if (!pln_owns(n))
      continue;
    for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
      if (g->scopes[s].result < first)
        PLN_TRY(push_if_new(b, m, g->scopes[s].result));
  }
  return PLN_OK;
}

static pln_ref first_inside(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  return pln_owns(n) && g->sealed ? g->scopes[n->data].begin : ref;
}

/* ------------------------------------------------------------------- copying
 */

/* A free Var becomes the builder's node of that identity: always in free
 * building, in scoped building when one is visible. */
static pln_status known_var(pln_builder *b, const pln_node *var, pln_ref *out,
                            bool *known) {
  *known = true;
  if (!b->scoped) {
    PLN_TRY(pln_build_var(b, var->attrs, var->type, var->data, out));
    b->graph->nodes[*out].results = var->results;
    return PLN_OK;
  }
  pln_ref found;
  PLN_TRY(pln_builder_find_var(b, var->data, &found));
  *known = found != PLN_NONE;
  if (*known)
    *out = found;
  return PLN_OK;
}

/* Copies a node without scopes; its operands were copied before. */
static pln_status copy_plain(pln_builder *b, memo *m, pln_ref ref) {
  const pln_graph *g = m->graph;
  pln_node n = g->nodes[ref];
  bool there = false;
  if (n.kind == PLN_VAR)
    PLN_TRY(known_var(b, &n, &m->map[ref], &there));
  if (there)
    return PLN_OK;
  pln_ref few[16] = {0}, *operands = few;
  size_t size = n.count * sizeof *operands;
  if (size > sizeof few && !(operands = pln_mem_new(b->engine, size)))
    return pln_nomem(b->engine);
  for (uint32_t i = 0; i < n.count; i++)
    operands[i] = m->map[g->operands[n.first + i]];
  n.flags &= (uint8_t) ~(PLN_NODE_KEEP | PLN_NODE_PARAM | PLN_NODE_BOUND);
  pln_status status = PLN_OK;
  if (n.kind == PLN_CONSTANT)
    status = pln_graph_add_tensor(b->graph, g->tensors[n.data], &n.data);
  bool buffer = n.kind == PLN_BUFFER && !b->scoped;
  pln_ref known = buffer ? pln_buffer_find(b, &n, operands) : PLN_NONE;
  uint32_t outer = b->origin;
  if (status == PLN_OK)
    status = pln_builder_import_origin(b, g, ref, &b->origin);
  if (known != PLN_NONE)
    m->map[ref] = known;
  else if (status == PLN_OK)
    status = pln_builder_append(b, &n, n.count, operands, &m->map[ref]);
  if (status == PLN_OK && buffer && known == PLN_NONE)
    status = pln_buffer_remember(b, m->map[ref]);
  b->origin = outer;
  if (status == PLN_OK) {
    b->graph->values[m->map[ref]] = g->values[ref];
    b->graph->typed_from[m->map[ref]] = g->typed_from[ref];
  }
  if (operands != few)
    pln_mem_free(b->engine, operands, size);
  return status;
}

/* The copy of an interval of a sealed graph, from the first scope of an owner
 * to the owner itself, in the same order. */
typedef struct node_copy {
  pln_builder *b;
  memo *m;
  pln_scope first; /* the first row inside */
  uint32_t n;      /* rows inside */
  pln_scope *row;  /* per row inside, from `first`: its copy */
  pln_ref begin;   /* the first node inside */
  uint8_t *vars;   /* per node inside, from `begin`: BOUND, SHARED */
} node_copy;

/* Flags of a Var inside: bound by a let; free, with a known image. */
enum { BOUND = 1, SHARED = 2 };

static pln_status reuse_var(node_copy *c, pln_ref ref) {
  bool known = at_hand(c->b, c->m, ref);
  if (!known)
    PLN_TRY(known_var(c->b, &c->m->graph->nodes[ref], &c->m->map[ref], &known));
  if (known)
    c->vars[ref - c->begin] = SHARED;
  return PLN_OK;
}

/* Free Vars inside that the builder has already are not copied. */
static pln_status reuse_free_vars(node_copy *c, pln_ref end) {
  const pln_graph *g = c->m->graph;
  for (pln_ref ref = c->begin; ref < end; ref++)
    if (g->nodes[ref].kind == PLN_LET)
      c->vars[pln_operand(g, ref, 0) - c->begin] = BOUND;
  for (pln_ref ref = c->begin; ref < end; ref++)
    if (g->nodes[ref].kind == PLN_VAR &&
        !(g->nodes[ref].flags & PLN_NODE_PARAM) && !c->vars[ref - c->begin])
      PLN_TRY(reuse_var(c, ref));
  return PLN_OK;
}

static pln_status copy_rows(node_copy *c, pln_ref owner) {
  const pln_graph *g = c->m->graph;
  pln_scope outer = pln_builder_current_scope(c->b);
  for (uint32_t i = 0; i < c->n; i++) {
    const pln_scope_row *old = &g->scopes[c->first + i];
    bool nested = old->owner != owner && old->parent >= c->first;
    pln_scope parent = nested ? c->row[old->parent - c->first] : outer;
    PLN_TRY(pln_builder_add_scope(c->b, parent, &c->row[i]));
    pln_scope_row *row = &c->b->graph->scopes[c->row[i]];
    row->n_params = old->n_params;
    row->attrs = old->attrs;
    row->type_params = old->type_params;
  }
  return PLN_OK;
}

static void finish_rows(node_copy *c, pln_ref shift) {
  const pln_graph *g = c->m->graph;
  for (uint32_t i = 0; i < c->n; i++) {
    const pln_scope_row *old = &g->scopes[c->first + i];
    pln_scope_row *row = &c->b->graph->scopes[c->row[i]];
    row->result = c->m->map[old->result];
    row->owner = old->owner == PLN_NONE ? PLN_NONE : c->m->map[old->owner];
    row->begin = old->begin + shift;
    row->end = old->end + shift;
    row->next = old->next == PLN_NONE ? PLN_NONE : c->row[old->next - c->first];
  }
}

/* Copies an owner with its copied scopes. */
static pln_status copy_inner_owner(node_copy *c, pln_ref ref) {
  const pln_graph *g = c->m->graph;
  pln_node n = g->nodes[ref];
  pln_ref few[16] = {0}, *operands = few;
  size_t size = n.count * sizeof *operands;
  if (size > sizeof few && !(operands = pln_mem_new(c->b->engine, size)))
    return pln_nomem(c->b->engine);
  for (uint32_t i = 0; i < n.count; i++)
    operands[i] = c->m->map[g->operands[n.first + i]];
  n.data = c->row[n.data - c->first];
  pln_status status =
      pln_builder_append(c->b, &n, n.count, operands, &c->m->map[ref]);
  if (operands != few)
    pln_mem_free(c->b->engine, operands, size);
  return status;
}

static pln_status copy_inside(node_copy *c, pln_ref ref, pln_scope node_scope) {
  const pln_graph *g = c->m->graph;
  pln_builder *b = c->b;
  const pln_node *n = &g->nodes[ref];
  pln_ref own = PLN_NONE, *image = &c->m->map[ref];
  if (n->kind == PLN_VAR && c->vars[ref - c->begin] == SHARED)
    image = &own; /* unused, because the copy must stay an interval */
  if (pln_owns(n))
    PLN_TRY(copy_inner_owner(c, ref));
  else if (n->kind == PLN_VAR)
    PLN_TRY(pln_builder_append(b, n, 0, NULL, image));
  else
    PLN_TRY(copy_plain(b, c->m, ref));
  b->graph->nodes[*image].flags = n->flags;
  b->graph->values[*image] = g->values[ref];
  b->graph->typed_from[*image] = g->typed_from[ref];
  if (node_scope >= c->first) /* not the owner, which is outside */
    b->node_scope[*image] = c->row[node_scope - c->first];
  return PLN_OK;
}

/* Copies the nodes from c->begin to `end`; the last one may own the rows that
 * have no other owner. */
static pln_status copy_interval(node_copy *c, pln_ref end, pln_ref owner) {
  const pln_graph *g = c->m->graph;
  pln_scope_cursor cursor = {.graph = g, .next = c->first, .here = c->first};
  PLN_TRY(reuse_free_vars(c, end));
  PLN_TRY(copy_rows(c, owner));
  pln_ref shift = c->b->graph->n_nodes - c->begin;
  for (pln_ref ref = c->begin; ref < end; ref++)
    PLN_TRY(copy_inside(c, ref, pln_scope_cursor_at(&cursor, ref)));
  finish_rows(c, shift);
  return PLN_OK;
}

/* The rows inside an owner directly follow its first row. */
static uint32_t rows_inside(const pln_graph *g, pln_scope first,
                            pln_ref owner) {
  uint32_t n = 0;
  while (first + n < g->n_scopes && g->scopes[first + n].owner <= owner &&
         g->scopes[first + n].owner != PLN_NONE)
    n++;
  return n;
}

static pln_status copying_begin(node_copy *c, pln_ref end) {
  pln_engine *e = c->b->engine;
  c->row = pln_mem_new(e, c->n * sizeof *c->row);
  c->vars = pln_mem_zeroed(e, (size_t)end - c->begin);
  return c->row && c->vars ? PLN_OK : pln_nomem(e);
}

static void copying_end(const node_copy *c, pln_ref end) {
  pln_engine *e = c->b->engine;
  pln_mem_free(e, c->row, c->n * sizeof *c->row);
  pln_mem_free(e, c->vars, (size_t)end - c->begin);
}

static pln_status copy_owner(pln_builder *b, memo *m, pln_ref ref) {
  const pln_graph *g = m->graph;
  if (!g->sealed)
    return pln_diag_error(
        b->engine, PLN_ERR_UNSUPPORTED, NULL,
        "a %s must be sealed before it is used in another graph",
        pln_kind_name((pln_kind)g->nodes[ref].kind));
  pln_scope first = g->nodes[ref].data;
  node_copy c = {.b = b, .m = m, .first = first};
  c.n = rows_inside(g, first, ref);
  c.begin = g->scopes[first].begin;
  pln_status status = copying_begin(&c, ref + 1);
  if (status == PLN_OK)
    status = copy_interval(&c, ref + 1, ref);
  copying_end(&c, ref + 1);
  return status;
}

/* --------------------------------------------- statements that float again */

/* The statements of each scope in order, used when statements become floating
 * again. */
typedef struct floating {
  pln_builder *b;
  memo *m;
  pln_ref begin;
  pln_scope first;
  uint32_t n_nodes, n_scopes;
  pln_ref *next; /* per statement: the next of its scope */
  pln_ref *head; /* per scope: its first statement, */
  pln_ref *tail; /*   its last */
  pln_ref *list; /* scratch */
} floating;

static pln_status floating_begin(floating *f) {
  pln_engine *e = f->b->engine;
  f->next = pln_mem_new(e, f->n_nodes * sizeof *f->next);
  f->list = pln_mem_new(e, f->n_nodes * sizeof *f->list);
  f->head = pln_mem_new(e, f->n_scopes * sizeof *f->head);
  f->tail = pln_mem_new(e, f->n_scopes * sizeof *f->tail);
  if (!f->next || !f->list || !f->head || !f->tail)
    return pln_nomem(e);
  memset(f->next, 0xff, f->n_nodes * sizeof *f->next);
  memset(f->head, 0xff, f->n_scopes * sizeof *f->head);
  return PLN_OK;
}

static void floating_end(floating *f) {
  pln_engine *e = f->b->engine;
  pln_mem_free(e, f->next, f->n_nodes * sizeof *f->next);
  pln_mem_free(e, f->list, f->n_nodes * sizeof *f->list);
  pln_mem_free(e, f->head, f->n_scopes * sizeof *f->head);
  pln_mem_free(e, f->tail, f->n_scopes * sizeof *f->tail);
}

static void list_stmt(floating *f, pln_ref ref, pln_scope node_scope) {
  pln_scope s = node_scope - f->first;
  if (f->head[s] == PLN_NONE)
    f->head[s] = ref;
  else
    f->next[f->tail[s] - f->begin] = ref;
  f->tail[s] = ref;
}

/* The body of a scope: its only statement, or a SeqStmt. */
static pln_status float_body(floating *f, pln_scope s, bool seq,
                             pln_body *out) {
  uint32_t n = 0;
  const pln_scope_row *row = &f->m->graph->scopes[s];
  for (pln_ref ref = f->head[s - f->first]; ref != PLN_NONE;
       ref = f->next[ref - f->begin])
    f->list[n++] = f->m->map[ref];
  out->n_params = row->n_params;
  out->params = f->m->map + row->begin;
  if (n != 1 || seq)
    return pln_build_seq(f->b, n, f->list, &out->stmt);
  out->stmt = f->list[0];
  return PLN_OK;
}

static pln_status float_owner(floating *f, pln_ref ref) {
  const pln_graph *g = f->m->graph;
  pln_node n = g->nodes[ref];
  pln_body bodies[2];
  uint32_t k = 0;
  for (pln_scope s = n.data; s != PLN_NONE && k < 2; s = g->scopes[s].next)
    PLN_TRY(float_body(f, s, n.kind == PLN_SEQ_STMT, &bodies[k++]));
  if (n.kind == PLN_SEQ_STMT) {
    f->m->map[ref] = bodies[0].stmt;
    return PLN_OK;
  }
  pln_ref few[16] = {0}, *operands = few;
  size_t size = n.count * sizeof *operands;
  if (size > sizeof few && !(operands = pln_mem_new(f->b->engine, size)))
    return pln_nomem(f->b->engine);
  for (uint32_t i = 0; i < n.count; i++)
    operands[i] = f->m->map[g->operands[n.first + i]];
  pln_prim spec = {.kind = (pln_kind)n.kind,
                   .count = n.results,
                   .type = n.kind == PLN_PRIM_FUNC ? n.type : 0,
                   .attrs = n.attrs,
                   .n = n.count,
                   .operands = operands};
  pln_status status =
      pln_build_floating_stmt(f->b, &spec, k, bodies, &f->m->map[ref]);
  if (operands != few)
    pln_mem_free(f->b->engine, operands, size);
  return status;
}

static pln_status float_interval(floating *f, pln_ref owner) {
  const pln_graph *g = f->m->graph;
  pln_scope_cursor cursor = {.graph = g, .next = f->first, .here = f->first};
  for (pln_ref ref = f->begin; ref <= owner; ref++) {
    pln_scope here = pln_scope_cursor_at(&cursor, ref);
    const pln_node *n = &g->nodes[ref];
    PLN_TRY(pln_owns(n) ? float_owner(f, ref) : copy_plain(f->b, f->m, ref));
    if (here >= f->first && pln_is_stmt(n))
      list_stmt(f, ref, here);
  }
  return PLN_OK;
}

static pln_status float_loop(pln_builder *b, memo *m, pln_ref ref) {
  const pln_graph *g = m->graph;
  pln_scope first = g->nodes[ref].data;
  floating f = {.b = b, .m = m, .first = first};
  f.begin = g->scopes[first].begin;
  f.n_nodes = ref - f.begin + 1;
  f.n_scopes = rows_inside(g, first, ref);
  pln_status status = floating_begin(&f);
  if (status == PLN_OK)
    status = float_interval(&f, ref);
  floating_end(&f);
  return status;
}

/* Copies a graph whose outermost scope has lets as a LetBlock, which represents
 * its root in another graph. Scope 0 becomes the block's scope. */
static pln_status copy_block(pln_builder *b, memo *m, pln_ref *out) {
  const pln_graph *g = m->graph;
  node_copy c = {.b = b, .m = m, .n = g->n_scopes};
  pln_status status = copying_begin(&c, g->n_nodes);
  if (status == PLN_OK)
    status = copy_interval(&c, g->n_nodes, PLN_NONE);
  pln_node block = {.kind = PLN_LET_BLOCK};
  if (status == PLN_OK) {
    block.data = c.row[0];
    b->graph->scopes[block.data].result = m->map[g->root];
    status = pln_builder_append(b, &block, 0, NULL, out);
  }
  if (status == PLN_OK) {
    b->graph->scopes[block.data].owner = *out;
    status = pln_builder_infer(b, *out);
  }
  copying_end(&c, g->n_nodes);
  return status;
}

/* True if a Let lies directly in scope 0. */
static bool has_lets(const pln_graph *g) {
  pln_scope next = 1;
  pln_ref ref = 0;
  while (ref < g->n_nodes) {
    if (next < g->n_scopes && g->scopes[next].begin <= ref) {
      pln_ref end = g->scopes[next++].end;
      ref = end > ref ? end : ref;
    } else if (g->nodes[ref++].kind == PLN_LET) {
      return true;
    }
  }
  return false;
}

/* The root of a sealed graph includes the lets of scope 0. */
static pln_status import_whole(pln_builder *b, memo *m, bool *done,
                               pln_ref *out) {
  if (!m->looked)
    m->lets = has_lets(m->graph);
  m->looked = true;
  *done = m->lets;
  if (!m->lets)
    return PLN_OK;
  pln_scope node_scope =
      m->block == PLN_NONE ? PLN_NONE : b->node_scope[m->block];
  if (m->block == PLN_NONE ||
      (node_scope != PLN_NONE && b->graph->scopes[node_scope].end != PLN_NONE))
    PLN_TRY(copy_block(b, m, &m->block));
  *out = m->block;
  return PLN_OK;
}

#define LEAVE 0x80000000u

static pln_status import_next_node(pln_builder *b, memo *m, pln_ref entry) {
  const pln_graph *g = m->graph;
  pln_ref ref = entry & ~LEAVE;
  if (at_hand(b, m, ref))
    return PLN_OK;
  if (!(entry & LEAVE)) {
    PLN_TRY(push_imported_node(b, ref | LEAVE));
    return push_captured(b, m, first_inside(g, ref), ref);
  }
  const pln_node *n = &g->nodes[ref];
  if (g->sealed && !b->scoped && pln_is_tir(n) && pln_owns(n))
    return float_loop(b, m, ref);
  return pln_owns(n) ? copy_owner(b, m, ref) : copy_plain(b, m, ref);
}

pln_status pln_import_seed(pln_builder *b, const pln_graph *graph, pln_ref node,
                           pln_ref image) {
  memo *m = NULL;
  PLN_TRY(find_memo(b, graph, &m));
  m->map[node] = image;
  return PLN_OK;
}

pln_status pln_build_import(pln_builder *b, const pln_graph *graph,
                            pln_ref node, pln_ref *out) {
  if (graph->engine != b->engine || node >= graph->n_nodes)
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "the node belongs to another engine or to no graph");
  if (graph == b->graph) {
    *out = node;
    return PLN_OK;
  }
  memo *m = NULL;
  PLN_TRY(find_memo(b, graph, &m));
  b->imports->top = 0;
  bool done = false;
  if (graph->sealed && node == graph->root)
    PLN_TRY(import_whole(b, m, &done, out));
  if (done)
    return PLN_OK;
  PLN_TRY(push_imported_node(b, node));
  while (b->imports->top > 0)
    PLN_TRY(import_next_node(b, m, b->imports->stack[--b->imports->top]));
  *out = m->map[node];
  return PLN_OK;
}
