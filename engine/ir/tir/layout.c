/* tir/layout.c: seals freely built TIR: copies a floating statement, PrimFunc
 * or PrimExpr into scopes.
 *
 * Called by pln_builder_seal through graph/layout_floating.c. Invariants of the
 * result: a PrimExpr belongs to one statement, so one shared by several
 * statements is duplicated; a Buffer or free Var occurs once, as far out as its
 * operands allow. Nothing recurses. */

#include "ir/graph/layout/layout.h"
#include "ir/tir/tir.h"

enum { STMT, BODY, END, OWNER }; /* kinds of tasks */

/* A limit, because shared statements are duplicated when sealed. */
enum { MAX_COPIES = 1 << 26 };

typedef struct task {
  uint32_t what;
  pln_ref ref;      /* STMT, BODY, OWNER: node of the floating graph */
  pln_scope scope;  /* BODY: the floating scope; END: the new one */
  uint32_t operand; /* BODY: index of its first parameter among the operands */
} task;

/* A Buffer whose operands are being copied. */
typedef struct pending_node {
  pln_ref ref;
  pln_ref first; /* the first new node */
  uint32_t outer;
} pending_node;

typedef struct tir_layout {
  const pln_builder *from;
  const pln_graph *g;
  pln_builder *to;
  pln_ref *image;    /* per floating node: its latest copy */
  uint32_t *stamp;   /* per floating node: the statement of that copy */
  pln_scope *scopes; /* per floating scope: its latest copy */
  uint32_t now, statements;
  pln_ref last; /* the latest statement */
  pln_scope base;
  task *tasks;
  uint32_t n_tasks, cap_tasks;
  pln_ref *exprs; /* nodes to copy; LEAVE: their operands are copied */
  uint32_t n_exprs, cap_exprs;
  pln_ref *cached; /* operands of owners whose bodies are being copied */
  uint32_t n_cached, cap_cached;
  pending_node *buffers;
  uint32_t n_buffers, cap_buffers;
} tir_layout;

#define LEAVE 0x80000000u

/* ------------------------------------------------------------- expressions */

static pln_status push_expr(tir_layout *r, pln_ref entry) {
  PLN_TRY(pln_mem_grow(r->to->engine, (void **)&r->exprs, &r->cap_exprs,
                       (size_t)r->n_exprs + 1, sizeof *r->exprs));
  r->exprs[r->n_exprs++] = entry;
  return PLN_OK;
}

/* Vars and Buffers have an identity: one copy is used as long as it is
 * visible. */
static bool persists(const pln_node *n) {
  return n->kind == PLN_VAR || n->kind == PLN_BUFFER;
}

static bool at_hand(const tir_layout *r, pln_ref ref) {
  pln_ref copy = r->image[ref];
  if (copy == PLN_NONE)
    return false;
  if (!persists(&r->g->nodes[ref]))
    return r->stamp[ref] == r->now;
  return r->to->graph->scopes[r->to->node_scope[copy]].end == PLN_NONE;
}

static pln_status append(tir_layout *r, pln_ref ref, pln_node *n,
                         const pln_ref *operands, uint32_t count) {
  n->flags &= PLN_NODE_EFFECT | PLN_NODE_CALL_EFFECT;
  if (n->kind == PLN_CONSTANT)
    PLN_TRY(
        pln_graph_add_tensor(r->to->graph, r->g->tensors[n->data], &n->data));
  r->to->origin = r->g->origin[ref];
  PLN_TRY(pln_builder_append(r->to, n, count, operands, &r->image[ref]));
  r->stamp[ref] = r->now;
  return PLN_OK;
}

/* Copies a node whose first `count` operands are copied. */
static pln_status copy_tir_node(tir_layout *r, pln_ref ref, uint32_t count) {
  pln_node n = r->g->nodes[ref];
  pln_ref few[16] = {0}, *operands = few;
  size_t size = count * sizeof *operands;
  if (size > sizeof few && !(operands = pln_mem_new(r->to->engine, size)))
    return pln_nomem(r->to->engine);
  for (uint32_t i = 0; i < count; i++)
    operands[i] = r->image[r->g->operands[n.first + i]];
  pln_status status = append(r, ref, &n, operands, count);
  if (operands != few)
    pln_mem_free(r->to->engine, operands, size);
  return status;
}

static pln_status free_var(tir_layout *r, pln_ref ref) {
  pln_scope in = r->to->in;
  r->to->in = r->base;
  pln_status status = copy_tir_node(r, ref, 0);
  r->to->in = in;
  return status;
}

static pln_status enter_buffer(tir_layout *r, pln_ref ref) {
  PLN_TRY(pln_mem_grow(r->to->engine, (void **)&r->buffers, &r->cap_buffers,
                       (size_t)r->n_buffers + 1, sizeof *r->buffers));
  r->buffers[r->n_buffers++] = (pending_node){
      .ref = ref, .first = r->to->graph->n_nodes, .outer = r->now};
  r->now = ++r->statements;
  return PLN_OK;
}

/* The innermost scope of the operands of the new nodes. Open scopes enclose
 * each other, so it is the one with the highest row. */
static pln_scope deepest(const tir_layout *r, pln_ref first) {
  const pln_graph *g = r->to->graph;
  pln_scope deep = r->base;
  for (pln_ref ref = first; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = 0; i < n->count; i++) {
      pln_ref operand = g->operands[n->first + i];
      if ((operand < first || persists(&g->nodes[operand])) &&
          r->to->node_scope[operand] > deep)
        deep = r->to->node_scope[operand];
    }
  }
  return deep;
}

static pln_status leave_buffer(tir_layout *r, pln_ref ref) {
  pending_node p = r->buffers[--r->n_buffers];
  PLN_TRY(copy_tir_node(r, ref, r->g->nodes[ref].count));
  pln_scope node_scope = deepest(r, p.first);
  for (pln_ref i = p.first; i < r->to->graph->n_nodes; i++)
    if (r->to->graph->nodes[i].kind != PLN_VAR &&
        r->to->node_scope[i] > node_scope)
      r->to->node_scope[i] = node_scope;
  r->now = p.outer;
  return PLN_OK;
}

static pln_status visit_expr(tir_layout *r, pln_ref entry) {
  pln_ref ref = entry & ~LEAVE;
  const pln_node *n = &r->g->nodes[ref];
  if (entry & LEAVE)
    return n->kind == PLN_BUFFER ? leave_buffer(r, ref)
                                 : copy_tir_node(r, ref, n->count);
  if (at_hand(r, ref))
    return PLN_OK;
  if (n->kind == PLN_VAR)
    return free_var(r, ref);
  if (pln_owns(n))
    return pln_diag_error(r->to->engine, PLN_ERR_TYPE, NULL,
                          "a %s is not a PrimExpr", pln_kinds[n->kind].name);
  if (n->kind == PLN_BUFFER)
    PLN_TRY(enter_buffer(r, ref));
  PLN_TRY(push_expr(r, ref | LEAVE));
  for (uint32_t i = n->count; i-- > 0;)
    PLN_TRY(push_expr(r, r->g->operands[n->first + i]));
  return PLN_OK;
}

static pln_status write_expr(tir_layout *r, pln_ref ref) {
  PLN_TRY(push_expr(r, ref));
  while (r->n_exprs > 0)
    PLN_TRY(visit_expr(r, r->exprs[--r->n_exprs]));
  return PLN_OK;
}

/* --------------------------------------------------------------- statements */

static pln_status push_task(tir_layout *r, task t) {
  PLN_TRY(pln_mem_grow(r->to->engine, (void **)&r->tasks, &r->cap_tasks,
                       (size_t)r->n_tasks + 1, sizeof *r->tasks));
  r->tasks[r->n_tasks++] = t;
  return PLN_OK;
}

static pln_status push_seq(tir_layout *r, const pln_node *n) {
  for (uint32_t i = n->count; i-- > 0;)
    PLN_TRY(push_task(
        r, (task){.what = STMT, .ref = r->g->operands[n->first + i]}));
  return PLN_OK;
}

/* Pushes the owner, then its bodies, the first on top. */
static pln_status push_owner(tir_layout *r, pln_ref ref, uint32_t own) {
  const pln_graph *g = r->g;
  const pln_node *n = &g->nodes[ref];
  task bodies[2];
  uint32_t k = 0, operand = own;
  PLN_TRY(push_task(r, (task){.what = OWNER, .ref = ref}));
  for (pln_scope s = n->data; s != PLN_NONE && k < 2; s = g->scopes[s].next) {
    bodies[k++] =
        (task){.what = BODY, .ref = ref, .scope = s, .operand = operand};
    operand += g->scopes[s].n_params;
  }
  while (k-- > 0)
    PLN_TRY(push_task(r, bodies[k]));
  return PLN_OK;
}

static pln_status hold(tir_layout *r, pln_ref ref, uint32_t own) {
  const pln_graph *g = r->g;
  PLN_TRY(pln_mem_grow(r->to->engine, (void **)&r->cached, &r->cap_cached,
                       (size_t)r->n_cached + own, sizeof *r->cached));
  for (uint32_t i = 0; i < own; i++)
    r->cached[r->n_cached++] = r->image[g->operands[g->nodes[ref].first + i]];
  return PLN_OK;
}

static pln_status write_stmt(tir_layout *r, pln_ref ref, bool outermost) {
  const pln_graph *g = r->g;
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_SEQ_STMT && !outermost)
    return push_seq(r, n);
  if (r->statements > MAX_COPIES && r->statements / 8 > g->n_nodes)
    return pln_diag_error(
        r->to->engine, PLN_ERR_LIMIT, NULL,
        "expanding statements that are used several times gives more than %d",
        (int)MAX_COPIES);
  r->now = ++r->statements;
  uint32_t own = pln_owns(n) ? pln_own_operands(g, n) : n->count;
  for (uint32_t i = 0; i < own; i++)
    PLN_TRY(write_expr(r, g->operands[n->first + i]));
  if (!pln_owns(n)) {
    PLN_TRY(copy_tir_node(r, ref, n->count));
    r->last = r->image[ref];
    return PLN_OK;
  }
  PLN_TRY(hold(r, ref, own));
  return push_owner(r, ref, own);
}

static pln_status write_param(tir_layout *r, pln_ref param) {
  const pln_node *n = &r->g->nodes[param];
  if (at_hand(r, param) &&
      (r->to->graph->nodes[r->image[param]].flags & PLN_NODE_PARAM))
    return pln_diag_error(r->to->engine, PLN_ERR_TYPE, NULL,
                          "the variable '%s' is bound more than once",
                          pln_symbol_text(r->to->engine, n->attrs).data);
  PLN_TRY(pln_build_param(r->to, n->attrs, n->type, n->data, &r->image[param]));
  r->to->graph->nodes[r->image[param]].results = n->results;
  r->to->graph->origin[r->image[param]] = r->g->origin[param];
  return PLN_OK;
}

static pln_status write_body(tir_layout *r, const task *t) {
  const pln_graph *g = r->g;
  const pln_node *n = &g->nodes[t->ref];
  const pln_scope_row *row = &g->scopes[t->scope];
  pln_scope scope;
  PLN_TRY(pln_build_open(r->to, &scope));
  r->scopes[t->scope] = scope;
  if (n->kind == PLN_PRIM_FUNC)
    r->base = scope;
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(write_param(r, g->operands[n->first + t->operand + i]));
  PLN_TRY(push_task(r, (task){.what = END, .scope = scope}));
  if (n->kind == PLN_SEQ_STMT)
    return push_seq(r, n);
  return push_task(r, (task){.what = STMT, .ref = row->result});
}

static pln_status write_owner(tir_layout *r, pln_ref ref) {
  const pln_graph *g = r->g;
  pln_node n = g->nodes[ref];
  uint32_t own = pln_own_operands(g, &n);
  pln_scope first = n.data;
  n.data = r->scopes[first];
  r->n_cached -= own;
  if (n.kind == PLN_PRIM_FUNC)
    r->base = 0;
  PLN_TRY(append(r, ref, &n, own ? r->cached + r->n_cached : NULL, own));
  pln_scope_row *rows = r->to->graph->scopes;
  for (pln_scope s = first; s != PLN_NONE; s = g->scopes[s].next) {
    pln_scope next = g->scopes[s].next;
    rows[r->scopes[s]].owner = r->image[ref];
    rows[r->scopes[s]].next = next == PLN_NONE ? PLN_NONE : r->scopes[next];
  }
  r->last = r->image[ref];
  return PLN_OK;
}

static pln_status do_layout_task(tir_layout *r, const task *t) {
  switch (t->what) {
  case STMT: return write_stmt(r, t->ref, false);
  case BODY: return write_body(r, t);
  case END: return pln_build_end(r->to, t->scope, r->last, 0);
  default: return write_owner(r, t->ref);
  }
}

static pln_status write_root(tir_layout *r, pln_ref root) {
  if (!pln_is_tir(&r->g->nodes[root])) {
    PLN_TRY(write_expr(r, root));
    return PLN_OK;
  }
  PLN_TRY(write_stmt(r, root, true));
  while (r->n_tasks > 0) {
    task t = r->tasks[--r->n_tasks];
    PLN_TRY(do_layout_task(r, &t));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- driver */

static pln_status begin_tir_builder(tir_layout *r) {
  pln_engine *e = r->from->engine;
  size_t nodes = r->g->n_nodes, scopes = r->g->n_scopes;
  r->image = pln_mem_new(e, nodes * sizeof *r->image);
  r->stamp = pln_mem_zeroed(e, nodes * sizeof *r->stamp);
  r->scopes = pln_mem_zeroed(e, (scopes + 1) * sizeof *r->scopes);
  if (!r->image || !r->stamp || !r->scopes)
    return pln_nomem(e);
  memset(r->image, 0xff, nodes * sizeof *r->image);
  PLN_TRY(pln_builder_new(e, &r->to));
  r->to->scoped = true;
  PLN_TRY(pln_builder_reserve(r->to, nodes, r->g->n_operands, scopes));
  if (r->g->origins)
    r->to->graph->origins = pln_origins_retain(r->g->origins);
  return PLN_OK;
}

static void seal_tir_graph(tir_layout *r) {
  pln_engine *e = r->from->engine;
  pln_builder_free(r->to);
  pln_mem_free(e, r->image, r->g->n_nodes * sizeof *r->image);
  pln_mem_free(e, r->stamp, r->g->n_nodes * sizeof *r->stamp);
  pln_mem_free(e, r->scopes, (r->g->n_scopes + (size_t)1) * sizeof *r->scopes);
  pln_mem_free(e, r->tasks, r->cap_tasks * sizeof *r->tasks);
  pln_mem_free(e, r->exprs, r->cap_exprs * sizeof *r->exprs);
  pln_mem_free(e, r->cached, r->cap_cached * sizeof *r->cached);
  pln_mem_free(e, r->buffers, r->cap_buffers * sizeof *r->buffers);
}

pln_status pln_layout_tir(const pln_builder *b, pln_ref root, pln_graph **out) {
  tir_layout r = {.from = b, .g = b->graph};
  pln_graph *g = NULL;
  pln_status status = begin_tir_builder(&r);
  if (status == PLN_OK)
    status = write_root(&r, root);
  if (status == PLN_OK)
    status = pln_builder_seal(r.to, r.image[root], &g);
  seal_tir_graph(&r);
  return pln_layout_verified(status, g, out);
}
