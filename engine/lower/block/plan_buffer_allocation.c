/* plan_buffer_allocation.c: tir.PlanAndUpdateBufferAllocationLocation: memory
 * is allocated where all of its accesses are, as far in as possible.
 *
 * Run by the executor. The place is the innermost loop or block around all
 * accesses; an access in a step of a reduction counts as one outside of the
 * loops that the reduction runs over. In a loop, a block without variables is
 * made for it, which says what of other memory the body reads and writes.
 *
 *     B = T.alloc_buffer((16,)); for i in range(16): B[i] = A[i]; C[i] = B[i]
 *         =>   for i in range(16): with T.block(""): B = T.alloc_buffer((16,));
 * ...
 *
 * Semantics: TVM's tir.PlanAndUpdateBufferAllocationLocation. Memory without
 * accesses stays where it is. */

#include "lower/block/body_access.h"

typedef struct allocation {
  pln_ref stmt, buffer; /* AllocBuffer and its Buffer */
  pln_scope from;       /* the scope of the block that has it */
  pln_scope to;         /* where it goes */
} allocation;

typedef struct planner {
  const pln_graph *g;
  pln_scope *scope_of;
  allocation *all;
  uint32_t n, cap;
  uint32_t *of_data; /* by data pointer: 1 + its number */
  uint32_t *moved;   /* by scope: how many allocations come there */
  pln_analyzer *a;
} planner;

/* ------------------------------------------------------------------- places
 */

static pln_kind owner_kind(const planner *x, pln_scope scope) {
  pln_ref owner = x->g->scopes[scope].owner;
  return owner == PLN_NONE ? PLN_PRIM_FUNC : (pln_kind)x->g->nodes[owner].kind;
}

/* The innermost scope of a loop or block that has the scope inside. */
static pln_scope place_around(const planner *x, pln_scope scope) {
  while (scope != PLN_NONE && owner_kind(x, scope) != PLN_FOR &&
         owner_kind(x, scope) != PLN_BLOCK)
    scope = x->g->scopes[scope].parent;
  return scope;
}

static bool contains(const planner *x, pln_scope outer, pln_scope inner) {
  const pln_scope_row *o = &x->g->scopes[outer], *i = &x->g->scopes[inner];
  return o->begin <= i->begin && i->end <= o->end;
}

/* Whether the expression contains the variable; long ones are said to. */
static bool uses_var(const planner *x, pln_ref expr, pln_ref var) {
  pln_ref stack[64];
  uint32_t n = 0, steps = 0;
  stack[n++] = expr;
  while (n > 0) {
    pln_ref at = stack[--n];
    if (at == var || ++steps > 512)
      return true;
    const pln_node *node = &x->g->nodes[at];
    if (n + node->count > PLN_COUNT(stack))
      return true;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = pln_operand(x->g, at, i);
  }
  return false;
}

/* Whether a reduction that the realised block computes runs over the loop. */
static bool reduces_over(const planner *x, pln_ref realize, pln_ref var) {
  const pln_node *n = &x->g->nodes[realize];
  pln_ref block = x->g->scopes[n->data].result;
  const pln_attr *types =
      pln_attrs_find(x->g->engine, x->g->nodes[block].attrs, "iter_types");
  for (uint32_t i = 1; i < n->count; i++) {
    bool spatial = types && types->kind == PLN_ATTR_INTS && i <= types->count &&
                   types->v.ints[i - 1] == 0;
    if (!spatial && uses_var(x, pln_operand(x->g, realize, i), var))
      return true;
  }
  return false;
}

/* The scope of an access, outside of loops that reductions around it run over.
 */
static pln_scope access_scope(const planner *x, pln_scope scope) {
  pln_scope place = scope;
  for (pln_scope at = scope; at != PLN_NONE; at = x->g->scopes[at].parent) {
    if (owner_kind(x, at) != PLN_BLOCK_REALIZE)
      continue;
    for (pln_scope up = x->g->scopes[at].parent; up != PLN_NONE;
         up = x->g->scopes[up].parent)
      if (owner_kind(x, up) == PLN_FOR && contains(x, up, place) &&
          reduces_over(x, x->g->scopes[at].owner, x->g->scopes[up].begin))
        place = x->g->scopes[up].parent;
  }
  return place;
}

static void add_access(planner *x, uint32_t k, pln_scope scope) {
  allocation *a = &x->all[k - 1];
  scope = place_around(x, access_scope(x, scope));
  if (a->to == PLN_NONE)
    a->to = scope;
  while (a->to != PLN_NONE && scope != PLN_NONE && !contains(x, a->to, scope))
    a->to = place_around(x, x->g->scopes[a->to].parent);
}

/* ----------------------------------------------------------------- analysis
 */

static pln_status add_allocation(planner *x, pln_ref stmt) {
  pln_ref buffer = pln_operand(x->g, stmt, 0);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->all, &x->cap,
                       (size_t)x->n + 1, sizeof *x->all));
  x->all[x->n++] = (allocation){.stmt = stmt,
                                .buffer = buffer,
                                .from = x->scope_of[stmt],
                                .to = PLN_NONE};
  x->of_data[pln_operand(x->g, buffer, 0)] = x->n;
  return PLN_OK;
}

/* A Buffer is accessed where it is an operand of more than a declaration; a
 * pointer, wherever it is an operand. */
static void find_accesses(planner *x, pln_ref ref) {
  const pln_graph *g = x->g;
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_BUFFER || n->kind == PLN_ALLOC_BUFFER ||
      n->kind == PLN_BUFFER_REGION || !(pln_is_prim(n) || pln_is_stmt(n)))
    return;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operand(g, ref, i);
    if (n->kind == PLN_MATCH_BUFFER && i == 1)
      operand = pln_operand(g, operand, 0);
    if (g->nodes[operand].kind == PLN_BUFFER)
      operand = pln_operand(g, operand, 0);
    if (x->of_data[operand])
      add_access(x, x->of_data[operand], x->scope_of[ref]);
  }
}

static pln_status plan(planner *x, bool *any) {
  pln_scope_cursor at = {.graph = x->g};
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    x->scope_of[ref] = pln_scope_cursor_at(&at, ref);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_ALLOC_BUFFER)
      PLN_TRY(add_allocation(x, ref));
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    find_accesses(x, ref);
  for (uint32_t k = 0; k < x->n; k++) {
    allocation *a = &x->all[k];
    if (a->to == PLN_NONE || !contains(x, a->from, a->to))
      a->to = a->from;
    *any |= a->to != a->from;
    if (a->to != a->from)
      x->moved[a->to]++;
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- rewriting
 */

/* Whether the Buffer is allocated in the scope or inside of it. */
static bool is_inside(const planner *x, pln_ref buffer, pln_scope scope) {
  uint32_t k = x->of_data[pln_operand(x->g, buffer, 0)];
  return k && x->all[k - 1].to != PLN_NONE &&
         contains(x, scope, x->all[k - 1].to);
}

/* The AllocBuffers that come to a scope, behind `n` statements of a list. */
static pln_status push_allocations(const planner *x, pln_stmt_rewrite *s,
                                   pln_scope scope, pln_ref *list,
                                   uint32_t *n) {
  for (uint32_t k = 0; k < x->n; k++) {
    pln_ref buffer;
    if (x->all[k].to != scope || x->all[k].from == scope)
      continue;
    PLN_TRY(pln_stmt_map(s, x->all[k].buffer, &buffer));
    pln_prim spec = {.kind = PLN_ALLOC_BUFFER, .n = 1, .operands = &buffer};
    PLN_TRY(pln_build_prim(pln_stmt_builder(s), &spec, &list[(*n)++]));
  }
  return PLN_OK;
}

/* The block's statements, with those allocations behind what it reads and
 * writes. */
static pln_status extend_block(const planner *x, pln_stmt_rewrite *s,
                               pln_scope scope, pln_ref *list, pln_ref *body) {
  const pln_graph *built = pln_stmt_builder(s)->graph;
  bool seq = built->nodes[*body].kind == PLN_SEQ_STMT;
  uint32_t old = seq ? built->nodes[*body].count : 1, n = 0, i = 0;
  for (; i < old; i++) {
    pln_ref stmt =
        seq ? pln_operand(pln_stmt_builder(s)->graph, *body, i) : *body;
    pln_kind kind = (pln_kind)pln_stmt_node(s, stmt)->kind;
    if (kind != PLN_BLOCK_READS && kind != PLN_BLOCK_WRITES)
      break;
    list[n++] = stmt;
  }
  PLN_TRY(push_allocations(x, s, scope, list, &n));
  for (; i < old; i++)
    list[n++] = seq ? pln_operand(pln_stmt_builder(s)->graph, *body, i) : *body;
  return pln_build_seq(pln_stmt_builder(s), n, list, body);
}

/* Leaves out what is allocated in the scope. */
static void drop_inside(const planner *x, pln_scope scope,
                        pln_body_accesses *all) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < all->n; i++)
    if (!is_inside(x, all->items[i].buffer, scope))
      all->items[left++] = all->items[i];
  all->n = left;
}

/* with T.block(""): the allocations; body */
static pln_status wrap_block(const planner *x, pln_stmt_rewrite *s,
                             pln_scope scope, const pln_body_accesses *all,
                             pln_ref *list, pln_ref *body) {
  pln_builder *b = pln_stmt_builder(s);
  pln_engine *e = b->engine;
  pln_ref head[2], truth;
  pln_symbol name;
  pln_type boolean;
  uint32_t n = 2;
  PLN_TRY(pln_build_accesses(s, x->a, all, false, &head[0]));
  PLN_TRY(pln_build_accesses(s, x->a, all, true, &head[1]));
  list[0] = head[0];
  list[1] = head[1];
  PLN_TRY(push_allocations(x, s, scope, list, &n));
  list[n++] = *body;
  pln_body inner = {.n_params = 0};
  PLN_TRY(pln_build_seq(b, n, list, &inner.stmt));
  pln_prim block = {.kind = PLN_BLOCK};
  PLN_TRY(pln_symbol_intern(e, pln_text("name_hint"), &name));
  PLN_TRY(pln_attrs_with(
      e, 0,
      &(pln_attr){.name = name, .kind = PLN_ATTR_STRING, .v.s = pln_text("")},
      &block.attrs));
  PLN_TRY(pln_symbol_intern(e, pln_text("iter_types"), &name));
  PLN_TRY(pln_attrs_with(e, block.attrs,
                         &(pln_attr){.name = name, .kind = PLN_ATTR_INTS},
                         &block.attrs));
  PLN_TRY(pln_build_floating_stmt(b, &block, 1, &inner, body));
  PLN_TRY(pln_type_prim(e, PLN_BOOL, 1, &boolean));
  PLN_TRY(pln_build_int_imm(b, boolean, 1, &truth));
  pln_prim realize = {.kind = PLN_BLOCK_REALIZE, .n = 1, .operands = &truth};
  inner.stmt = *body;
  return pln_build_floating_stmt(b, &realize, 1, &inner, body);
}

static pln_status move_to_loop(const planner *x, pln_stmt_rewrite *s,
                               pln_scope scope, pln_ref *body) {
  pln_body_accesses all;
  pln_engine *e = x->g->engine;
  PLN_TRY(pln_body_accesses_make(x->g, x->a, scope, x->scope_of, &all));
  drop_inside(x, scope, &all);
  size_t size = ((size_t)x->moved[scope] + 3) * sizeof(pln_ref);
  pln_ref *list = pln_mem_new(e, size);
  pln_status status =
      list ? wrap_block(x, s, scope, &all, list, body) : pln_nomem(e);
  pln_mem_free(e, list, size);
  pln_body_accesses_free(e, &all);
  return status;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  planner *x = ud;
  pln_scope scope = x->g->nodes[stmt].data;
  pln_engine *e = x->g->engine;
  (void)again;
  if (k > 0 || x->moved[scope] == 0)
    return PLN_OK;
  if (x->g->nodes[stmt].kind == PLN_FOR)
    return move_to_loop(x, s, scope, body);
  size_t size = ((size_t)pln_stmt_node(s, *body)->count + x->moved[scope] + 1) *
                sizeof(pln_ref);
  pln_ref *list = pln_mem_new(e, size);
  pln_status status =
      list ? extend_block(x, s, scope, list, body) : pln_nomem(e);
  pln_mem_free(e, list, size);
  return status;
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  planner *x = ud;
  (void)s;
  if (x->g->nodes[stmt].kind != PLN_ALLOC_BUFFER)
    return PLN_OK;
  const allocation *a =
      &x->all[x->of_data[pln_operand(x->g, pln_operand(x->g, stmt, 0), 0)] - 1];
  if (a->to != a->from)
    *node = PLN_NO_STMT;
  return PLN_OK;
}

/* Whether the Buffer went into the scope, out of one around it. */
static bool moved_inside(const planner *x, pln_ref buffer, pln_scope scope) {
  uint32_t k = x->of_data[pln_operand(x->g, buffer, 0)];
  return k && x->all[k - 1].to != x->all[k - 1].from &&
         contains(x, scope, x->all[k - 1].to);
}

static bool names_moved(const planner *x, pln_ref stmt, pln_scope scope) {
  for (uint32_t i = 0; i < x->g->nodes[stmt].count; i++)
    if (moved_inside(x, pln_operand(x->g, pln_operand(x->g, stmt, i), 0),
                     scope))
      return true;
  return false;
}

/* What a block reads and writes does not name memory that is allocated in it.
 */
static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  planner *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  pln_scope scope = x->scope_of[stmt];
  if ((n->kind != PLN_BLOCK_READS && n->kind != PLN_BLOCK_WRITES) ||
      !names_moved(x, stmt, scope))
    return PLN_OK;
  size_t size = ((size_t)n->count + 1) * sizeof(pln_ref);
  pln_ref *left = pln_mem_new(x->g->engine, size);
  pln_prim spec = {.kind = (pln_kind)n->kind, .operands = left};
  if (!left)
    return pln_nomem(x->g->engine);
  for (uint32_t i = 0; i < n->count; i++)
    if (!moved_inside(x, pln_operand(x->g, pln_operand(x->g, stmt, i), 0),
                      scope))
      left[spec.n++] = pln_stmt_operand(s, i);
  pln_status status = pln_build_prim(pln_stmt_builder(s), &spec, node);
  pln_mem_free(x->g->engine, left, size);
  return status;
}

/* ----------------------------------------------------------------- the pass
 */

static pln_status move_all(planner *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .enter = enter_stmt,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  bool any = false;
  if (!x->scope_of || !x->of_data || !x->moved)
    return pln_nomem(x->g->engine);
  PLN_TRY(plan(x, &any));
  if (!any)
    return PLN_OK;
  PLN_TRY(pln_analyzer_new(x->g->engine, &x->a));
  pln_status status = pln_lower_function(run, &mutator);
  pln_analyzer_free(x->a);
  return status;
}

pln_status pln_pass_tir_plan_buffer_allocation(pln_pass_run *run) {
  planner x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t nodes = x.g->n_nodes, scopes = x.g->n_scopes;
  if (pln_is_legacy_te(x.g) || !pln_has_kind(x.g, PLN_ALLOC_BUFFER))
    return PLN_OK;
  x.scope_of = pln_mem_new(e, nodes * sizeof *x.scope_of);
  x.of_data = pln_mem_zeroed(e, nodes * sizeof *x.of_data);
  x.moved = pln_mem_zeroed(e, scopes * sizeof *x.moved);
  pln_status status = move_all(&x, run);
  pln_mem_free(e, x.scope_of, nodes * sizeof *x.scope_of);
  pln_mem_free(e, x.of_data, nodes * sizeof *x.of_data);
  pln_mem_free(e, x.moved, scopes * sizeof *x.moved);
  pln_mem_free(e, x.all, x.cap * sizeof *x.all);
  return status;
}
