/* capture_post_dfs_index.c: CapturePostDfsIndexInSpans: writes the place of
 * each node in the dataflow into its span.
 *
 * Run by the executor, once per function. The result is the same function with
 * spans `index:I:D`: I is the node's number in post-dfs order, D the number of
 * its post-dominator, -1 if it has none. Operators and constructors are
 * numbered, once each, but have no span. Invariants: the stack is explicit;
 * each edge is followed twice, and dominators cost a logarithm.
 *
 *     fn (%x) { add(%x, %x) }   =>   %x 0:2, add (1), the call 2:3, the fn 3:-1
 *
 * Semantics: TVM CapturePostDfsIndexInSpans on its IndexedGraph. The value of a
 * let comes before its variable; a variable in its own value is passed over,
 * and a call of it there does not depend on it. */

#include "ir/analysis/dominators.h"
#include "ir/rewrite/spans.h"
#include "transform/transform.h"

/* What the stack of the traversal holds: visit the node; number it, all of its
 * parts being done; its parts are let-bound to that variable. */
typedef struct dfs_step {
  enum { VISIT, LEAVE, BOUND } kind;
  pln_ref node;
} dfs_step;

typedef struct dfs_index {
  pln_engine *engine;
  const pln_graph *graph;
  pln_ref *first;   /* by scope: its first Let, or PLN_NONE */
  pln_ref *next;    /* by node, a Let: the next one of its scope */
  pln_ref *feed;    /* by node, a variable: the expression whose value it gets,
                     * of a let or a match; else PLN_NONE */
  uint32_t *number; /* by node; NOT_YET */
  uint8_t *state;   /* by node: VISITED, RECURSIVE */
  pln_idmap *names; /* operators, globals, constructors -> number + 1 */
  pln_ref *at;      /* by number: the node, or PLN_NONE */
  uint32_t n, cap;
  pln_ref bound; /* the variable to which the current value is bound */
  uint32_t n_steps, cap_steps;
  dfs_step *steps;
  /* By number. `late`: a user that has a smaller number, which is possible for
   * variables in their own values only; `uses`: how many users there are. */
  uint32_t *late, *uses;
  pln_dominators dominators;
} dfs_index;

enum { VISITED = 1, RECURSIVE = 2 };
#define NOT_YET UINT32_MAX

/* ------------------------------------------------------------ expressions */

/* The expression that a node stands for: a block of lets is its first one. */
static pln_ref expression_of(const dfs_index *x, pln_ref node) {
  const pln_graph *g = x->graph;
  while (g->nodes[node].kind == PLN_LET_BLOCK) {
    pln_scope s = g->nodes[node].data;
    if (x->first[s] != PLN_NONE)
      return x->first[s];
    node = g->scopes[s].result;
  }
  return node;
}

static pln_ref body_of(const dfs_index *x, pln_scope s) {
  return x->first[s] != PLN_NONE ? x->first[s]
                                 : expression_of(x, x->graph->scopes[s].result);
}

static pln_ref rest_of_let(const dfs_index *x, pln_ref let, pln_scope s) {
  return x->next[let] != PLN_NONE
             ? x->next[let]
             : expression_of(x, x->graph->scopes[s].result);
}

static pln_ref operand_of(const dfs_index *x, pln_ref node, uint32_t i) {
  return expression_of(x, pln_operand(x->graph, node, i));
}

/* The lets of each scope in order. */
static pln_status list_lets(dfs_index *x, pln_scope *scope_of) {
  const pln_graph *g = x->graph;
  pln_graph_node_scopes(g, scope_of);
  for (pln_scope s = 0; s < g->n_scopes; s++)
    x->first[s] = PLN_NONE;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    x->next[ref] = x->feed[ref] = PLN_NONE;
    x->number[ref] = NOT_YET;
    if (g->nodes[ref].kind != PLN_LET)
      continue;
    x->next[ref] = x->first[scope_of[ref]];
    x->first[scope_of[ref]] = ref;
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- numbers */

static pln_status push_step(dfs_index *x, int kind, pln_ref node) {
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->steps, &x->cap_steps,
                       (size_t)x->n_steps + 1, sizeof *x->steps));
  x->steps[x->n_steps].kind = kind;
  x->steps[x->n_steps++].node = node;
  return PLN_OK;
}

static pln_status take_number(dfs_index *x, pln_ref node, uint32_t *out) {
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->at, &x->cap, (size_t)x->n + 1,
                       sizeof *x->at));
  *out = x->n;
  x->at[x->n++] = node;
  return PLN_OK;
}

/* The number that all nodes of that name share: an operator (its number of the
 * engine) or, with a bit, a symbol. */
static pln_status number_name(dfs_index *x, uint64_t name, pln_ref node,
                              uint32_t *out) {
  uint32_t known = pln_idmap_get(x->names, name + 1);
  if (known) {
    *out = known - 1;
    return PLN_OK;
  }
  PLN_TRY(take_number(x, node, out));
  return pln_idmap_set(x->names, name + 1, *out + 1);
}

static uint64_t name_of(const pln_node *n) {
  return n->kind == PLN_OP ? n->data
                           : (uint64_t)n->data << 8 | n->kind | 1ull << 62;
}

static bool is_named(const pln_node *n) {
  return n->kind == PLN_OP || n->kind == PLN_GLOBAL_VAR ||
         n->kind == PLN_CONSTRUCTOR;
}

static pln_status leave_node(dfs_index *x, pln_ref node) {
  const pln_node *n = &x->graph->nodes[node];
  if (is_named(n))
    return number_name(x, name_of(n), node, &x->number[node]);
  if (pln_has_callee(n) && operand_of(x, node, 0) == x->bound)
    x->state[node] |= RECURSIVE;
  return take_number(x, node, &x->number[node]);
}

/* ------------------------------------------------------------- the traversal
 */

/* Pushed last to first: the value, bound to the variable; the variable; the
 * rest of the scope. */
static pln_status push_let(dfs_index *x, pln_ref let) {
  pln_ref var = pln_operand(x->graph, let, 0);
  pln_ref value = operand_of(x, let, 1);
  pln_scope s = pln_graph_scope_of(x->graph, let);
  x->feed[var] = value;
  PLN_TRY(push_step(x, VISIT, rest_of_let(x, let, s)));
  PLN_TRY(push_step(x, VISIT, var));
  PLN_TRY(push_step(x, BOUND, x->bound));
  PLN_TRY(push_step(x, VISIT, value));
  return push_step(x, BOUND, var);
}

/* An arm begins with its pattern, which its Clause ends. */
static pln_status push_arm(dfs_index *x, pln_ref match, pln_scope s) {
  const pln_graph *g = x->graph;
  pln_ref begin = g->scopes[s].begin, end = begin;
  while (end < g->scopes[s].end && g->nodes[end].kind != PLN_CLAUSE)
    end++;
  PLN_TRY(push_step(x, VISIT, body_of(x, s)));
  for (pln_ref ref = end; ref-- > begin;)
    if (g->nodes[ref].kind == PLN_PATTERN_VAR) {
      pln_ref var = pln_operand(g, ref, 0);
      x->feed[var] = operand_of(x, match, 0);
      PLN_TRY(push_step(x, VISIT, var));
    }
  return PLN_OK;
}

static pln_status push_scope_parts(dfs_index *x, pln_ref owner, pln_scope s) {
  const pln_graph *g = x->graph;
  if (g->nodes[owner].kind == PLN_MATCH)
    return push_arm(x, owner, s);
  PLN_TRY(push_step(x, VISIT, body_of(x, s)));
  for (uint32_t i = g->scopes[s].n_params; i-- > 0;)
    PLN_TRY(push_step(x, VISIT, g->scopes[s].begin + i));
  return PLN_OK;
}

static void reverse_steps(dfs_index *x, uint32_t begin) {
  pln_mem_reverse(x->steps + begin, x->n_steps - begin, sizeof *x->steps);
}

/* The last scope is pushed first. */
static pln_status push_scopes(dfs_index *x, pln_ref owner) {
  const pln_graph *g = x->graph;
  uint32_t begin = x->n_steps;
  for (pln_scope s = g->nodes[owner].data; s != PLN_NONE;
       s = g->scopes[s].next) {
    uint32_t from = x->n_steps;
    PLN_TRY(push_scope_parts(x, owner, s));
    reverse_steps(x, from);
  }
  reverse_steps(x, begin);
  return PLN_OK;
}

static pln_status visit_node(dfs_index *x, pln_ref node) {
  const pln_node *n = &x->graph->nodes[node];
  uint32_t op;
  if (x->state[node] & VISITED || node == x->bound)
    return PLN_OK;
  x->state[node] |= VISITED;
  if (n->kind == PLN_CALL && n->data)
    PLN_TRY(number_name(x, n->data, PLN_NONE, &op));
  PLN_TRY(push_step(x, LEAVE, node));
  if (n->kind == PLN_LET)
    return push_let(x, node);
  if (pln_owns(n))
    PLN_TRY(push_scopes(x, node));
  for (uint32_t i = n->count; i-- > 0;)
    PLN_TRY(push_step(x, VISIT, operand_of(x, node, i)));
  return PLN_OK;
}

static pln_status number_nodes(dfs_index *x) {
  x->bound = PLN_NONE;
  PLN_TRY(push_step(x, VISIT, body_of(x, 0)));
  while (x->n_steps > 0) {
    dfs_step step = x->steps[--x->n_steps];
    if (step.kind == BOUND)
      x->bound = step.node;
    else
      PLN_TRY(step.kind == VISIT ? visit_node(x, step.node)
                                 : leave_node(x, step.node));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------- dominators */

typedef void (*dfs_use_fn)(dfs_index *x, uint32_t used, uint32_t user);

/* Variables that nothing defines here, and nodes that are not reached, have no
 * number. */
static void use(dfs_index *x, dfs_use_fn fn, pln_ref used, pln_ref user) {
  if (x->number[used] != NOT_YET)
    fn(x, x->number[used], x->number[user]);
}

static void use_operands(dfs_index *x, dfs_use_fn fn, pln_ref node) {
  const pln_node *n = &x->graph->nodes[node];
  uint32_t skipped = x->state[node] & RECURSIVE ? 1 : 0;
  if (n->kind == PLN_CALL && n->data)
    fn(x, pln_idmap_get(x->names, (uint64_t)n->data + 1) - 1, x->number[node]);
  for (uint32_t i = skipped; i < n->count; i++)
    use(x, fn, operand_of(x, node, i), node);
}

/* The edges into a node, as TVM has them: the value of a let goes to its
 * variable, the data of a match to the variables of its patterns. */
static void uses_of(dfs_index *x, dfs_use_fn fn, pln_ref node) {
  const pln_graph *g = x->graph;
  const pln_node *n = &g->nodes[node];
  if (n->kind == PLN_VAR && x->feed[node] != PLN_NONE)
    use(x, fn, x->feed[node], node);
  if (n->kind == PLN_LET) {
    use(x, fn, rest_of_let(x, node, pln_graph_scope_of(g, node)), node);
    return;
  }
  if (n->kind != PLN_MATCH)
    use_operands(x, fn, node);
  if (!pln_owns(n))
    return;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    use(x, fn, body_of(x, s), node);
}

static void note_use(dfs_index *x, uint32_t used, uint32_t user) {
  x->uses[used]++;
  if (user > used)
    return;
  x->late[used] = user;
  pln_dominators_escape(&x->dominators, used);
}

static void add_use(dfs_index *x, uint32_t used, uint32_t user) {
  if (user > used)
    pln_dominators_use(&x->dominators, used, user, 0);
}

static pln_status find_dominators(dfs_index *x) {
  size_t size = (size_t)x->n * sizeof(uint32_t);
  x->late = pln_mem_new(x->engine, size);
  x->uses = pln_mem_zeroed(x->engine, size);
  if (!x->late || !x->uses)
    return pln_nomem(x->engine);
  memset(x->late, 0xff, size);
  PLN_TRY(pln_dominators_begin(&x->dominators, x->engine, x->n));
  for (uint32_t i = 0; i < x->n; i++)
    if (x->at[i] != PLN_NONE)
      uses_of(x, note_use, x->at[i]);
  for (uint32_t i = x->n; i-- > 0;) {
    pln_dominators_close(&x->dominators, i);
    if (x->at[i] != PLN_NONE)
      uses_of(x, add_use, x->at[i]);
  }
  return PLN_OK;
}

/* UINT32_MAX: none. */
static uint32_t dominator_of(const dfs_index *x, uint32_t number) {
  uint32_t parent = x->dominators.parent[number];
  if (x->uses[number] == 1 && x->late[number] != NOT_YET)
    return x->late[number];
  return parent == x->n ? UINT32_MAX : parent;
}

/* ------------------------------------------------------------------- spans */

static bool span_of(void *ud, pln_ref node, pln_source_span *span) {
  const dfs_index *x = ud;
  const pln_node *n = &x->graph->nodes[node];
  uint32_t number = x->number[node];
  if (number == NOT_YET || n->kind == PLN_OP || n->kind == PLN_CONSTRUCTOR)
    return false;
  uint32_t dominator = dominator_of(x, number);
  *span = (pln_source_span){.row = number,
                            .column = dominator,
                            .end_row = number,
                            .end_column = dominator};
  return true;
}

static pln_status annotate(dfs_index *x, pln_graph **out) {
  pln_symbol source;
  PLN_TRY(pln_symbol_intern(x->engine, pln_text("index"), &source));
  return pln_graph_annotate_spans(x->graph, source, true, span_of, x, out);
}

/* ---------------------------------------------------------------- the pass */

static pln_status prepare_index(dfs_index *x) {
  const pln_graph *g = x->graph;
  size_t n = g->n_nodes, row = n * sizeof(pln_ref);
  x->first = pln_mem_new(x->engine, g->n_scopes * sizeof *x->first);
  x->next = pln_mem_new(x->engine, row);
  x->feed = pln_mem_new(x->engine, row);
  x->number = pln_mem_new(x->engine, row);
  x->state = pln_mem_zeroed(x->engine, n);
  pln_scope *scope_of = pln_mem_new(x->engine, row);
  pln_status status = PLN_OK;
  if (!x->first || !x->next || !x->feed || !x->number || !x->state || !scope_of)
    status = pln_nomem(x->engine);
  if (status == PLN_OK)
    status = pln_idmap_new(x->engine, &x->names);
  if (status == PLN_OK)
    status = list_lets(x, scope_of);
  pln_mem_free(x->engine, scope_of, row);
  return status;
}

static void free_index(dfs_index *x) {
  pln_engine *e = x->engine;
  size_t n = x->graph->n_nodes, row = n * sizeof(pln_ref);
  pln_mem_free(e, x->first, x->graph->n_scopes * sizeof *x->first);
  pln_mem_free(e, x->next, row);
  pln_mem_free(e, x->feed, row);
  pln_mem_free(e, x->number, row);
  pln_mem_free(e, x->state, n);
  pln_mem_free(e, x->at, x->cap * sizeof *x->at);
  pln_mem_free(e, x->steps, x->cap_steps * sizeof *x->steps);
  pln_mem_free(e, x->late, x->n * sizeof *x->late);
  pln_mem_free(e, x->uses, x->n * sizeof *x->uses);
  pln_dominators_end(&x->dominators);
  if (x->names)
    pln_idmap_free(x->names);
}

pln_status pln_pass_capture_post_dfs_index_in_spans(pln_pass_run *run) {
  dfs_index x = {.engine = pln_run_engine(run), .graph = pln_run_function(run)};
  pln_graph *annotated = NULL;
  pln_status status = prepare_index(&x);
  if (status == PLN_OK)
    status = number_nodes(&x);
  if (status == PLN_OK)
    status = find_dominators(&x);
  if (status == PLN_OK)
    status = annotate(&x, &annotated);
  free_index(&x);
  if (status == PLN_OK)
    pln_run_set_function(run, annotated);
  return status;
}
