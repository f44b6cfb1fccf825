/* groups.c: finds the matches of a dataflow pattern that do not overlap.
 *
 * Called for rewriting (by the binding) and by partition.c. Nodes are tried
 * from the root downwards; a node belongs to at most one group. A group is what
 * its root reaches without passing its inputs, which are what patterns without
 * operands matched. Its inner nodes must not be used outside, unless the root
 * post-dominates the user: the group could then not be one function without a
 * cycle of calls.
 *
 * Semantics: TVM's PatternGrouper. Unlike TVM's, what a function or branch of
 * the group captures is an input of the group, too. */

#include <stdlib.h>

#include "rule/dataflow/dataflow.h"

static pln_status allocate_tables(pln_dataflow_groups *s) {
  pln_engine *e = s->engine;
  size_t n = (size_t)s->region.graph->n_nodes + 1;
  s->group_of = pln_mem_zeroed(e, n * sizeof *s->group_of);
  s->closed = pln_mem_zeroed(e, s->region.graph->n_scopes);
  s->input = pln_mem_zeroed(e, n * sizeof *s->input);
  s->inside = pln_mem_zeroed(e, n * sizeof *s->inside);
  s->bound = pln_mem_zeroed(e, n * sizeof *s->bound);
  s->fuzzy = pln_mem_zeroed(e, n * sizeof *s->fuzzy);
  s->listed = pln_mem_zeroed(e, n * sizeof *s->listed);
  return s->group_of && s->closed && s->input && s->inside && s->bound &&
                 s->fuzzy && s->listed
             ? PLN_OK
             : pln_nomem(e);
}

void pln_dataflow_groups_free(pln_dataflow_groups *s) {
  pln_engine *e = s->engine;
  if (!e)
    return;
  const pln_graph *g = s->region.graph;
  size_t n = (size_t)g->n_nodes + 1;
  pln_mem_free(e, s->group_of, n * sizeof *s->group_of);
  pln_mem_free(e, s->closed, g->n_scopes);
  pln_mem_free(e, s->input, n * sizeof *s->input);
  pln_mem_free(e, s->inside, n * sizeof *s->inside);
  pln_mem_free(e, s->bound, n * sizeof *s->bound);
  pln_mem_free(e, s->fuzzy, n * sizeof *s->fuzzy);
  pln_mem_free(e, s->listed, n * sizeof *s->listed);
  pln_mem_free(e, s->rows, s->cap * sizeof *s->rows);
  pln_mem_free(e, s->bindings, s->cap_bindings * sizeof *s->bindings);
  pln_ref_list_free(e, &s->inputs);
  pln_ref_list_free(e, &s->vars);
  pln_ref_list_free(e, &s->stack);
  pln_ref_list_free(e, &s->order);
  pln_ref_list_free(e, &s->wanted);
  pln_buffer_free(&s->names);
  pln_dataflow_region_end(&s->region);
  *s = (pln_dataflow_groups){0};
}

const pln_dataflow_group *
pln_dataflow_group_at(const pln_dataflow_groups *groups, pln_ref root) {
  uint32_t group = groups->group_of[root];
  bool grouped = group && group != PLN_NONE;
  return grouped && groups->rows[group - 1].root == root
             ? &groups->rows[group - 1]
             : NULL;
}

/* ------------------------------------------------------- partitioned functions
 */

static bool is_partitioned(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_FUNCTION && n->attrs &&
         pln_attrs_find(g->engine, n->attrs, "PartitionedFromPattern");
}

/* Nothing inside a function that was partitioned before is grouped again. */
static void close_partitioned(pln_dataflow_groups *s) {
  const pln_graph *g = s->region.graph;
  for (pln_scope i = 1; i < g->n_scopes; i++) {
    const pln_scope_row *row = &g->scopes[i];
    s->closed[i] = (row->parent != PLN_NONE && s->closed[row->parent]) ||
                   is_partitioned(g, row->owner);
  }
}

/* ------------------------------------------------------------------- inputs */

/* Functions, operators and names are never inputs. */
static bool may_be_input(const pln_graph *g, pln_candidate candidate) {
  if (candidate & PLN_CANDIDATE_OP)
    return false;
  switch ((pln_kind)g->nodes[candidate].kind) {
  case PLN_FUNCTION:
  case PLN_GLOBAL_VAR:
  case PLN_CONSTRUCTOR:
  case PLN_ABSENT: return false;
  default: return true;
  }
}

/* Constants that the pattern asks for are embedded. */
static bool embeds(const pln_dataflow_groups *s, uint32_t pattern,
                   pln_ref node) {
  const pln_dataflow_node *p = &s->pattern->nodes[pattern];
  return s->region.graph->nodes[node].kind == PLN_CONSTANT &&
         (p->kind == PLN_DATAFLOW_CONSTANT ||
          (p->kind == PLN_DATAFLOW_EXPR &&
           p->expr->nodes[p->expr->root].kind == PLN_CONSTANT));
}

static pln_status want_input(pln_dataflow_groups *s, uint32_t pattern,
                             pln_candidate candidate) {
  if (!may_be_input(s->region.graph, candidate) ||
      s->fuzzy[candidate] == s->tried || s->input[candidate] == 2 * s->tried ||
      embeds(s, pattern, candidate))
    return PLN_OK;
  s->input[candidate] = 2 * s->tried;
  return pln_ref_list_add(s->engine, &s->wanted, candidate);
}

/* The arguments or fields that a pattern of any number matched. */
static pln_status want_operands(pln_dataflow_groups *s, uint32_t pattern,
                                pln_ref node) {
  const pln_graph *g = s->region.graph;
  const pln_node *n = &g->nodes[node];
  for (uint32_t i = pln_has_callee(n) ? 1 : 0; i < n->count; i++)
    PLN_TRY(want_input(s, pattern,
                       pln_dataflow_candidate(g, g->operands[n->first + i])));
  return PLN_OK;
}

static pln_status want_binding(pln_dataflow_groups *s, uint32_t pattern,
                               pln_candidate candidate) {
  const pln_dataflow_node *p = &s->pattern->nodes[pattern];
  bool list = p->kind == PLN_DATAFLOW_CALL || p->kind == PLN_DATAFLOW_TUPLE;
  if (list && p->any_count)
    return want_operands(s, pattern, candidate);
  return p->count == 0 ? want_input(s, pattern, candidate) : PLN_OK;
}

static int by_pattern(const void *a, const void *b) {
  const struct pln_dataflow_bound *x = a, *y = b;
  return x->pattern != y->pattern ? (x->pattern > y->pattern ? 1 : -1)
                                  : (x->order > y->order ? 1 : -1);
}

/* Keeps what a match bound. What a dominator's parent and path matched is never
 * an input, though leaves of patterns matched it, too. */
static pln_status keep_bindings(pln_dataflow_groups *s,
                                const pln_dataflow_binding *bindings,
                                uint32_t n) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->bindings, &s->cap_bindings,
                       (size_t)s->n_bindings + n, sizeof *s->bindings));
  struct pln_dataflow_bound *to = s->bindings + s->n_bindings;
  for (uint32_t i = 0; i < n; i++) {
    pln_candidate candidate = bindings[i].candidate;
    to[i] = (struct pln_dataflow_bound){bindings[i].pattern, i, candidate};
    if (candidate & PLN_CANDIDATE_OP)
      continue;
    s->bound[candidate] = s->tried;
    if (s->pattern->nodes[bindings[i].pattern].fuzzy)
      s->fuzzy[candidate] = s->tried;
  }
  qsort(to, n, sizeof *to, by_pattern);
  s->n_bindings += n;
  return PLN_OK;
}

static pln_status want_inputs(pln_dataflow_groups *s,
                              const struct pln_dataflow_bound *bound,
                              uint32_t n) {
  s->wanted.n = 0;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(want_binding(s, bound[i].pattern, bound[i].candidate));
  return PLN_OK;
}

/* ---------------------------------------------------------------- the inside
 */

#define LEAVE 0x80000000u

/* Returns true if the node lies in a scope of a node of the group. */
static bool is_nested(const pln_dataflow_groups *s, pln_ref node) {
  pln_ref owner = s->region.graph->scopes[s->region.node_scope[node]].owner;
  return owner != PLN_NONE && s->inside[owner] == s->tried;
}

/* *input: the node is an input of the group. What the pattern did not bind is
 * captured by a function or branch. */
static pln_status is_input(pln_dataflow_groups *s, pln_ref root, pln_ref node,
                           bool *input) {
  const pln_graph *g = s->region.graph;
  uint32_t reached = 2 * s->tried + 1;
  *input = node != root && !is_nested(s, node);
  if (!*input || s->input[node] == reached)
    return PLN_OK;
  if (s->input[node] == 2 * s->tried) {
    s->input[node] = reached;
    return PLN_OK;
  }
  *input = s->bound[node] != s->tried &&
           may_be_input(g, pln_dataflow_candidate(g, node)) &&
           g->nodes[node].kind != PLN_CONSTANT;
  if (!*input)
    return PLN_OK;
  s->input[node] = reached;
  return pln_ref_list_add(s->engine, &s->wanted, node);
}

static pln_status enter_node(pln_dataflow_groups *s, pln_ref root,
                             pln_ref node) {
  bool input;
  if (s->inside[node] == s->tried)
    return PLN_OK;
  PLN_TRY(is_input(s, root, node, &input));
  if (input)
    return PLN_OK;
  s->inside[node] = s->tried;
  PLN_TRY(pln_ref_list_add(s->engine, &s->stack, node | LEAVE));
  uint32_t first = s->stack.n;
  PLN_TRY(pln_dataflow_parts(&s->region, node, &s->stack));
  for (uint32_t i = first, k = s->stack.n; i + 1 < k; i++, k--) {
    pln_ref part = s->stack.items[i];
    s->stack.items[i] = s->stack.items[k - 1];
    s->stack.items[k - 1] = part;
  }
  return PLN_OK;
}

/* Lists the nodes inside the group in postorder. */
static pln_status walk_inside(pln_dataflow_groups *s, pln_ref root) {
  s->order.n = s->stack.n = 0;
  PLN_TRY(pln_ref_list_add(s->engine, &s->stack, root));
  while (s->stack.n > 0) {
    pln_ref entry = s->stack.items[--s->stack.n];
    if (entry & LEAVE)
      PLN_TRY(pln_ref_list_add(s->engine, &s->order, entry & ~LEAVE));
    else
      PLN_TRY(enter_node(s, root, entry));
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- validity */

/* Nodes that several groups may contain. */
static bool is_shared(const pln_graph *g, pln_ref node) {
  switch ((pln_kind)g->nodes[node].kind) {
  case PLN_CONSTANT:
  case PLN_FUNCTION:
  case PLN_OP:
  case PLN_GLOBAL_VAR:
  case PLN_CONSTRUCTOR:
  case PLN_ABSENT: return true;
  default: return false;
  }
}

/* *out: all users outside are post-dominated by the root. */
static pln_status check_users(pln_dataflow_groups *s, pln_ref root,
                              pln_ref node, bool *out) {
  pln_dataflow_region *r = &s->region;
  *out = true;
  PLN_TRY(pln_dataflow_find_users(r));
  for (uint32_t i = r->first_user[node]; *out && i < r->first_user[node + 1];
       i++) {
    pln_ref user = r->users[i];
    if (s->inside[user] == s->tried || is_nested(s, user))
      continue;
    PLN_TRY(pln_dataflow_find_dominators(r));
    *out = pln_dataflow_dominates(r, root, user);
  }
  return PLN_OK;
}

static pln_status is_valid(pln_dataflow_groups *s, pln_ref root, bool *out) {
  const pln_graph *g = s->region.graph;
  *out = !s->partitions || s->input[root] < 2 * s->tried;
  for (uint32_t i = 0; *out && i < s->order.n; i++) {
    pln_ref node = s->order.items[i];
    if (is_shared(g, node))
      continue;
    *out = s->group_of[node] == 0 || s->group_of[node] == PLN_NONE;
    if (!*out || node == root)
      continue;
    if (s->partitions && !is_nested(s, node))
      *out = pln_node_effects(g, node) == PLN_EFFECT_NONE;
    if (*out)
      PLN_TRY(check_users(s, root, node, out));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- names */

/* The name of a partitioned function: what it contains, in evaluation order, as
 * TVM spells it. */
static pln_status add_name(pln_dataflow_groups *s, pln_ref node) {
  const pln_graph *g = s->region.graph;
  const pln_node *n = &g->nodes[node];
  pln_slice op = {0};
  switch ((pln_kind)n->kind) {
  case PLN_TUPLE: return pln_buffer_text(&s->names, "Tuple_");
  case PLN_FUNCTION: return pln_buffer_text(&s->names, "Function");
  case PLN_LET: return pln_buffer_text(&s->names, "Let_");
  case PLN_IF: return pln_buffer_text(&s->names, "If_");
  case PLN_MATCH: return pln_buffer_text(&s->names, "Match_");
  case PLN_TUPLE_GET_ITEM:
    return pln_buffer_printf(&s->names, "TupleGetItem%u_", n->data);
  case PLN_CALL:
    if (!n->data)
      return pln_buffer_text(&s->names, "Call_");
    op = pln_op_name(s->engine, n->data);
    PLN_TRY(pln_buffer_add(&s->names, op.data, op.size));
    return pln_buffer_text(&s->names, "_");
  default: return PLN_OK;
  }
}

/* ------------------------------------------------------------------- groups */

/* All nodes in the scopes of the group belong to it, whether used or not. */
static void claim(pln_dataflow_groups *s, uint32_t group) {
  const pln_graph *g = s->region.graph;
  for (uint32_t i = 0; i < s->order.n; i++) {
    pln_ref node = s->order.items[i];
    const pln_node *n = &g->nodes[node];
    if (!is_shared(g, node) || n->kind == PLN_FUNCTION)
      s->group_of[node] = group;
    if (!pln_owns(n) || is_nested(s, node))
      continue;
    for (pln_ref k = g->scopes[n->data].begin; k < node; k++)
      if (!s->group_of[k])
        s->group_of[k] = group;
  }
}

/* Lists a variable whose value the group contains or takes as an input, unless
 * it belongs to a function or branch inside, which is copied as a whole. */
static pln_status list_var(pln_dataflow_groups *s, pln_ref var) {
  pln_ref value = pln_rule_bound_value(&s->region.values, var);
  if (value == var || s->listed[var] == s->tried || is_nested(s, value))
    return PLN_OK;
  s->listed[var] = s->tried;
  return pln_ref_list_add(s->engine, &s->vars, var);
}

static pln_status list_vars(pln_dataflow_groups *s, pln_dataflow_group *group) {
  const pln_graph *g = s->region.graph;
  group->vars = s->vars.n;
  for (uint32_t i = 0; s->region.values.n && i < s->order.n; i++) {
    const pln_node *n = &g->nodes[s->order.items[i]];
    for (uint32_t k = 0; k < n->count; k++)
      PLN_TRY(list_var(s, g->operands[n->first + k]));
    if (!pln_owns(n))
      continue;
    for (pln_scope b = n->data; b != PLN_NONE; b = g->scopes[b].next)
      PLN_TRY(list_var(s, g->scopes[b].result));
  }
  group->n_vars = s->vars.n - group->vars;
  return PLN_OK;
}

static pln_status keep_inputs(pln_dataflow_groups *s,
                              pln_dataflow_group *group) {
  group->inputs = s->inputs.n;
  for (uint32_t i = 0; i < s->wanted.n; i++)
    if (s->input[s->wanted.items[i]] == 2 * s->tried + 1)
      PLN_TRY(pln_ref_list_add(s->engine, &s->inputs, s->wanted.items[i]));
  group->n_inputs = s->inputs.n - group->inputs;
  group->name = (uint32_t)s->names.size;
  for (uint32_t i = 0; s->partitions && i < s->order.n; i++)
    PLN_TRY(add_name(s, s->order.items[i]));
  group->n_name = (uint32_t)s->names.size - group->name;
  return PLN_OK;
}

/* Makes a group of what the pattern matched at `root`, if it is valid. */
static pln_status try_group(pln_dataflow_groups *s, pln_ref root,
                            const pln_dataflow_binding *bindings, uint32_t n) {
  pln_dataflow_group group = {
      .root = root, .bindings = s->n_bindings, .n_bindings = n};
  bool valid;
  group.number = s->tried++ - 1;
  PLN_TRY(keep_bindings(s, bindings, n));
  PLN_TRY(want_inputs(s, s->bindings + group.bindings, n));
  PLN_TRY(walk_inside(s, root));
  PLN_TRY(is_valid(s, root, &valid));
  if (!valid) {
    s->n_bindings = group.bindings;
    return PLN_OK;
  }
  PLN_TRY(keep_inputs(s, &group));
  PLN_TRY(list_vars(s, &group));
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->rows, &s->cap, (size_t)s->n + 1,
                       sizeof *s->rows));
  s->rows[s->n++] = group;
  claim(s, s->n);
  return PLN_OK;
}

/* Variables that lets and arms bind are part of them. */
static void exclude_bound_variables(pln_dataflow_groups *s) {
  const pln_graph *g = s->region.graph;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_LET || g->nodes[i].kind == PLN_PATTERN_VAR)
      s->group_of[pln_operand(g, i, 0)] = PLN_NONE;
}

/* Variables, constants and functions compute nothing to be outlined. */
static bool computes(const pln_node *n) {
  switch ((int)n->kind) {
  case PLN_VAR:
  case PLN_CONSTANT:
  case PLN_ABSENT:
  case PLN_GLOBAL_VAR:
  case PLN_OP:
  case PLN_CONSTRUCTOR:
  case PLN_FUNCTION:
  case PLN_PRIM_FUNC: return false;
  default: return true;
  }
}

/* A Let that is the tail of its block is no node that can be replaced. */
static bool is_candidate(const pln_dataflow_groups *s, pln_ref node) {
  const pln_graph *g = s->region.graph;
  const pln_node *n = &g->nodes[node];
  return pln_dataflow_may_match(s->pattern, n) && !s->group_of[node] &&
         n->kind != PLN_LET && (!s->partitions || computes(n)) &&
         pln_kinds[n->kind].kind_class == PLN_CLASS_EXPR &&
         !s->closed[s->region.node_scope[node]] && !is_partitioned(g, node);
}

static pln_status try_all(pln_dataflow_groups *s, pln_dataflow_matcher *m) {
  const pln_graph *g = s->region.graph;
  for (pln_ref node = g->n_nodes; node-- > 0;) {
    bool matched;
    uint32_t n;
    if (!is_candidate(s, node))
      continue;
    PLN_TRY(pln_dataflow_match(m, pln_dataflow_candidate(g, node), &matched));
    const pln_dataflow_binding *bindings = pln_dataflow_bindings(m, &n);
    if (matched)
      PLN_TRY(try_group(s, node, bindings, n));
    if (node % 1024 == 0)
      PLN_TRY(pln_poll_stoppable(s->engine));
  }
  return PLN_OK;
}

pln_status pln_dataflow_groups_find(pln_dataflow_groups *groups,
                                    const pln_dataflow_pattern *pattern,
                                    const pln_graph *graph, bool partitions,
                                    bool lets) {
  pln_dataflow_groups *s = groups;
  pln_dataflow_matcher *m = NULL;
  *s = (pln_dataflow_groups){.engine = graph->engine,
                             .pattern = pattern,
                             .partitions = partitions,
                             .tried = 1};
  pln_buffer_init(&s->names, s->engine);
  pln_status status =
      pln_dataflow_region_begin(&s->region, graph, graph->root, lets);
  if (status == PLN_OK)
    status = allocate_tables(s);
  if (status == PLN_OK)
    status = pln_dataflow_find_scopes(&s->region);
  if (status == PLN_OK)
    status = pln_dataflow_matcher_new(pattern, &s->region, &m);
  if (status == PLN_OK) {
    close_partitioned(s);
    exclude_bound_variables(s);
    status = try_all(s, m);
  }
  pln_dataflow_matcher_free(m);
  return status;
}
