/* branch_values.c: what the condition of an If says of the values that its
 * branches use.
 *
 * Called by fold_constant.c. In the first branch the condition is true, in the
 * second one false. A value that equals a constant there is that constant; a
 * negation says the contrary of its operand; if a conjunction is true or a
 * disjunction false, so are both operands. Conditions may be variables that
 * lets bind. A float that equals zero may be -0.0, so that nothing is known.
 *
 *     if (equal(%x, 3)) { multiply(%x, 2) } else { %x }
 *       =>   if (equal(%x, 3)) { multiply(3, 2) } else { %x } */

#include "transform/fold/branch_values.h"
#include "ir/rewrite/rewrite.h"
#include "ir/tensor/tensor.h"
#include "op/op.h"

enum { MAX_PENDING = 32, MAX_LETS = 64 };

/* ------------------------------------------------------------------- tables
 */

static bool has_if(const pln_graph *g) {
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].owner != PLN_NONE &&
        g->nodes[g->scopes[s].owner].kind == PLN_IF)
      return true;
  return false;
}

/* Calls `add` for each node that node `user` uses: as an operand, or as the
 * result of one of its scopes. */
static void each_used(const pln_graph *g, pln_ref user,
                      void (*add)(void *ud, pln_ref used, pln_ref user),
                      void *ud) {
  for (uint32_t k = 0; k < g->nodes[user].count; k++)
    add(ud, pln_operand(g, user, k), user);
  for (uint32_t k = 0; k < pln_node_n_scopes(g, user); k++) {
    pln_ref result = g->scopes[pln_node_scope(g, user, k)].result;
    if (result != PLN_NONE)
      add(ud, result, user);
  }
}

static void count_user(void *ud, pln_ref used, pln_ref user) {
  uint32_t *first = ud;
  (void)user;
  first[used + 1]++;
}

typedef struct user_lists {
  uint32_t *at; /* by node: the row of `users` that is filled next */
  pln_ref *users;
} user_lists;

static void list_user(void *ud, pln_ref used, pln_ref user) {
  user_lists *lists = ud;
  lists->users[lists->at[used]++] = user;
}

static void count_users(const pln_graph *g, uint32_t *first) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    each_used(g, i, count_user, first);
  for (pln_ref i = 0; i < g->n_nodes; i++)
    first[i + 1] += first[i];
}

static void list_users(const pln_graph *g, uint32_t *at, pln_ref *users) {
  user_lists lists = {at, users};
  for (pln_ref i = 0; i < g->n_nodes; i++)
    each_used(g, i, list_user, &lists);
}

static void list_lets(const pln_graph *g, pln_ref *values) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    values[i] = PLN_NONE;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_LET)
      values[pln_operand(g, i, 0)] = pln_operand(g, i, 1);
}

static pln_status make_tables(pln_branch_values *v) {
  const pln_graph *g = v->old;
  pln_engine *e = g->engine;
  size_t row = ((size_t)g->n_nodes + 1) * sizeof(uint32_t);
  v->let_values = pln_mem_new(e, row);
  v->first = pln_mem_zeroed(e, row);
  uint32_t *at = pln_mem_new(e, row);
  if (v->let_values && v->first && at) {
    list_lets(g, v->let_values);
    count_users(g, v->first);
    size_t size = ((size_t)v->first[g->n_nodes] + 1) * sizeof *v->users;
    v->users = pln_mem_new(e, size);
    memcpy(at, v->first, row);
    if (v->users)
      list_users(g, at, v->users);
  }
  pln_mem_free(e, at, row);
  return v->users ? PLN_OK : pln_nomem(e);
}

pln_status pln_branch_values_begin(pln_branch_values *values,
                                   const pln_graph *old) {
  *values = (pln_branch_values){.old = old};
  if (!has_if(old))
    return PLN_OK;
  pln_status status = make_tables(values);
  if (status != PLN_OK)
    pln_branch_values_end(values);
  return status;
}

void pln_branch_values_end(pln_branch_values *v) {
  const pln_graph *g = v->old;
  size_t row = ((size_t)g->n_nodes + 1) * sizeof(uint32_t);
  if (v->users)
    pln_mem_free(g->engine, v->users,
                 ((size_t)v->first[g->n_nodes] + 1) * sizeof *v->users);
  pln_mem_free(g->engine, v->let_values, row);
  pln_mem_free(g->engine, v->first, row);
  pln_mem_free(g->engine, v->bound, v->cap_bound * sizeof *v->bound);
  *v = (pln_branch_values){.old = g};
}

/* The first row of the node's users that is not before `from`. */
static uint32_t find_user(const pln_branch_values *v, pln_ref node,
                          pln_ref from) {
  uint32_t low = v->first[node], high = v->first[node + 1];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (v->users[middle] < from)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool is_used_in(const pln_branch_values *v, pln_ref node,
                       pln_scope scope) {
  const pln_graph *g = v->old;
  uint32_t at = find_user(v, node, g->scopes[scope].begin);
  return g->scopes[scope].result == node ||
         (at < v->first[node + 1] && v->users[at] < g->scopes[scope].end);
}

/* -------------------------------------------------------------------- facts
 */

typedef struct fact_search {
  const pln_branch_values *values;
  pln_rewrite *rw;
  pln_scope scope;
  pln_branch_fact *facts;
  uint32_t n_facts;
  struct {
    pln_ref node;
    bool truth;
  } pending[MAX_PENDING];
  uint32_t n_pending;
} fact_search;

static void push(fact_search *s, pln_ref node, bool truth) {
  if (s->n_pending == MAX_PENDING)
    return;
  s->pending[s->n_pending].node = node;
  s->pending[s->n_pending++].truth = truth;
}

/* A Var's value, through lets of lets. */
static pln_ref bound_value(const pln_branch_values *v, pln_ref node) {
  for (int i = 0; i < MAX_LETS && v->let_values[node] != PLN_NONE; i++)
    node = v->let_values[node];
  return node;
}

/* The node is visible from the scope, is used in it, and not known yet. */
static bool is_wanted(const fact_search *s, pln_ref node) {
  const pln_graph *g = pln_rewrite_graph(s->rw);
  pln_ref image = pln_rewrite_image(s->rw, node);
  if (s->n_facts == PLN_BRANCH_FACTS || image == PLN_NONE ||
      g->nodes[image].kind == PLN_CONSTANT ||
      !is_used_in(s->values, node, s->scope))
    return false;
  for (uint32_t i = 0; i < s->n_facts; i++)
    if (s->facts[i].node == node)
      return false;
  return true;
}

/* The value of one element as a tensor of the node's type; NULL: that type
 * has another number of elements, or dims that are not known. */
static pln_status fit_element(const pln_graph *g, pln_ref node,
                              const pln_tensor *value, pln_tensor **out) {
  const pln_engine *e = g->engine;
  pln_type type = g->nodes[node].type;
  int32_t rank = pln_type_rank(e, type);
  *out = NULL;
  if (value->count != 1 || value->external || rank < 0 ||
      pln_type_dtype(e, type) != value->dtype)
    return PLN_OK;
  for (int32_t i = 0; i < rank; i++)
    if (pln_type_dims(e, type)[i] != 1)
      return PLN_OK;
  return pln_tensor_reshaped(value, (uint32_t)rank, pln_type_dims(e, type),
                             out);
}

static pln_status add_fact(fact_search *s, pln_ref node,
                           const pln_tensor *value) {
  pln_tensor *tensor;
  pln_ref constant;
  if (!is_wanted(s, node))
    return PLN_OK;
  PLN_TRY(fit_element(s->values->old, node, value, &tensor));
  if (!tensor)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(s->rw);
  pln_status status =
      b ? pln_build_constant(b, tensor, &constant) : PLN_ERR_NOMEM;
  pln_tensor_release(tensor);
  PLN_TRY(status);
  s->facts[s->n_facts++] = (pln_branch_fact){node, constant};
  return PLN_OK;
}

static pln_status add_truth(fact_search *s, pln_ref node, bool truth) {
  pln_tensor *value;
  if (!is_wanted(s, node))
    return PLN_OK;
  PLN_TRY(pln_tensor_new(s->rw->engine, PLN_BOOL, 0, NULL, &value));
  *(uint8_t *)pln_tensor_writable(value) = truth;
  pln_status status = add_fact(s, node, value);
  pln_tensor_release(value);
  return status;
}

/* A number of which an equal one has the same bits. */
static bool is_unique(const pln_tensor *t) {
  double number;
  return !pln_dtype_is_float(t->dtype) ||
         (pln_tensor_number(t, 0, &number) && number != 0);
}

/* Both nodes are equal. */
static pln_status add_equal(fact_search *s, pln_ref node, pln_ref other) {
  const pln_graph *g = pln_rewrite_graph(s->rw);
  pln_ref image = pln_rewrite_image(s->rw, other);
  if (image == PLN_NONE || g->nodes[image].kind != PLN_CONSTANT)
    return PLN_OK;
  const pln_tensor *value = g->tensors[g->nodes[image].data];
  if (value->count != 1 || value->external || !is_unique(value))
    return PLN_OK;
  PLN_TRY(add_fact(s, node, value));
  return add_fact(s, bound_value(s->values, node), value);
}

/* What a node says of its operands if it is true, or false. */
static pln_status look_at(fact_search *s, pln_ref node, bool truth) {
  const pln_graph *g = s->values->old;
  pln_ref value = bound_value(s->values, node);
  const pln_node *n = &g->nodes[value];
  PLN_TRY(add_truth(s, node, truth));
  PLN_TRY(add_truth(s, value, truth));
  if (n->kind != PLN_CALL || !n->data || n->results)
    return PLN_OK;
  const pln_ref *args = pln_operands(g, n);
  if (n->data == PLN_OP_NOT && n->count == 1)
    push(s, args[0], !truth);
  if (n->count != 2)
    return PLN_OK;
  if ((n->data == PLN_OP_AND && truth) || (n->data == PLN_OP_OR && !truth)) {
    push(s, args[0], truth);
    push(s, args[1], truth);
  }
  if (n->data != (truth ? PLN_OP_EQUAL : PLN_OP_NOT_EQUAL))
    return PLN_OK;
  PLN_TRY(add_equal(s, args[0], args[1]));
  return add_equal(s, args[1], args[0]);
}

pln_status pln_branch_values_find(const pln_branch_values *values,
                                  pln_rewrite *rw, pln_scope scope,
                                  pln_branch_fact *facts, uint32_t *n) {
  const pln_graph *g = values->old;
  fact_search s = {.values = values, .rw = rw, .scope = scope, .facts = facts};
  pln_ref owner = g->scopes[scope].owner;
  *n = 0;
  if (!values->users || owner == PLN_NONE || g->nodes[owner].kind != PLN_IF)
    return PLN_OK;
  push(&s, pln_operand(g, owner, 0), pln_node_scope(g, owner, 0) == scope);
  for (uint32_t i = 0; i < s.n_pending; i++)
    PLN_TRY(look_at(&s, s.pending[i].node, s.pending[i].truth));
  *n = s.n_facts;
  return PLN_OK;
}

/* ----------------------------------------------------------------- bindings
 */

pln_status pln_branch_values_bind(pln_branch_values *v, pln_rewrite *rw,
                                  pln_scope scope,
                                  const pln_branch_fact *fact) {
  PLN_TRY(pln_mem_grow(rw->engine, (void **)&v->bound, &v->cap_bound,
                       (size_t)v->n_bound + 1, sizeof *v->bound));
  v->bound[v->n_bound++] = (pln_branch_binding){
      scope, fact->node, pln_rewrite_image(rw, fact->node)};
  pln_rewrite_bind(rw, fact->node, fact->constant);
  return PLN_OK;
}

void pln_branch_values_leave(pln_branch_values *v, pln_rewrite *rw,
                             pln_scope scope) {
  while (v->n_bound && v->bound[v->n_bound - 1].scope == scope) {
    const pln_branch_binding *last = &v->bound[--v->n_bound];
    pln_rewrite_bind(rw, last->node, last->image);
  }
}
