/* match.c: matches a dataflow pattern against a node.
 *
 * Called by the binding and by groups.c. What remains to be matched is a list
 * of goals, as in a machine for logic programs (Warren 1983): a goal adds the
 * goals of its operands; an alternative records a choice point; a goal that
 * fails resumes the newest choice, which unbinds what was bound since. Lists
 * share their ends, so that a choice point is a few numbers. Nothing recurses.
 *
 * Semantics: TVM's DFPatternMatcher. A pattern node that was bound matches only
 * the same node again, except in another instance (frame) of a recursive
 * pattern or of a dominator's path. Alternatives are tried in TVM's order;
 * unlike TVM's, a choice is taken back when what follows it fails. */

#include <stdlib.h>

#include "ir/attrs/attrs.h"
#include "rule/dataflow/dataflow.h"

/* Links are index + 1; 0: none. */
typedef struct goal {
  uint8_t kind;
  uint32_t a, b, c;
  uint32_t next;
} goal;

typedef enum goal_kind {
  GOAL_MATCH,     /* pattern, candidate */
  GOAL_BIND,      /* pattern, candidate: its operands matched */
  GOAL_SWAPPED,   /* pattern, call: its arguments in reverse order */
  GOAL_INSTANCE,  /* frame, pattern, candidate: the instance has matched,
                   * continue  in that frame */
  GOAL_REFUSED,   /* pattern, candidate: no alternative is left */
  GOAL_DOMINATOR, /* pattern, child: walk from the child to the parent */
  GOAL_STEP,      /* walk: take its next node */
  GOAL_PARENT,    /* walk, node, choices: the node is the parent */
  GOAL_PATH,      /* walk, node: it belongs to the path */
  GOAL_LEFT,      /* walk, node, choices: it matched the path */
  GOAL_DEAD       /* walk, node: it did not match the path */
} goal_kind;

typedef struct choice {
  uint32_t next; /* the goals to resume with */
  uint32_t n_goals, n_bindings, frame, n_walks, n_work, n_steps;
} choice;

/* A node that a walk is to look at, and the step that it is an input of + 1; 0:
 * of the child. */
typedef struct work_item {
  pln_ref node;
  uint32_t via;
} work_item;

/* A node of a path. */
typedef struct walk_step {
  pln_ref node;
  uint32_t via;
  bool tested; /* it is known not to match the parent's pattern */
} walk_step;

/* A dominator's walk: the nodes from work[base] on are still to be looked at.
 * `via` and `tested` are those of the node being looked at. */
typedef struct walk {
  uint32_t pattern, serial, base, first_step;
  pln_ref child, parent; /* PLN_NONE: not reached yet */
  uint32_t frame, via;
  bool tested;
} walk;

/* What is known of a node on the way from a dominator's child: nothing, it does
 * not lead to a parent, or (from here on) the parent that it leads to. Of an
 * instance of a recursive pattern: DEAD_END if it never matches the node. */
enum { UNKNOWN_END, DEAD_END, KNOWN_PARENT, MATCHED = KNOWN_PARENT };

struct pln_dataflow_matcher {
  pln_engine *engine;
  const pln_dataflow_pattern *pattern;
  pln_dataflow_region *region;
  const pln_graph *graph;
  uint32_t n_patterns;
  uint32_t *memo; /* per pattern node: its newest binding + 1 */
  pln_dataflow_binding *bindings;
  uint32_t n_bindings, cap_bindings;
  goal *goals;
  uint32_t n_goals, cap_goals;
  choice *choices;
  uint32_t n_choices, cap_choices;
  walk *walks;
  uint32_t n_walks, cap_walks;
  work_item *work;
  uint32_t n_work, cap_work;
  walk_step *path;
  uint32_t n_path, cap_path;
  pln_ref_list parts;
  pln_idmap *visited; /* by walk and node */
  pln_idmap *ends;    /* by pattern and node: DEAD_END, ...; for all matches */
  uint32_t n_serials;
  uint32_t next; /* the goals left */
  uint32_t frame, n_frames;
  uint64_t steps, most;
};

pln_status pln_dataflow_matcher_new(const pln_dataflow_pattern *pattern,
                                    pln_dataflow_region *region,
                                    pln_dataflow_matcher **out) {
  pln_engine *e = region->engine;
  pln_dataflow_matcher *m = pln_mem_zeroed(e, sizeof *m);
  *out = m;
  if (!m)
    return pln_nomem(e);
  *m = (pln_dataflow_matcher){.engine = e,
                              .pattern = pattern,
                              .n_patterns = pattern->n,
                              .region = region,
                              .graph = region->graph};
  m->memo = pln_mem_zeroed(e, pattern->n * sizeof *m->memo);
  return m->memo ? PLN_OK : pln_nomem(e);
}

void pln_dataflow_matcher_free(pln_dataflow_matcher *m) {
  if (!m)
    return;
  pln_engine *e = m->engine;
  pln_mem_free(e, m->memo, m->n_patterns * sizeof *m->memo);
  pln_mem_free(e, m->bindings, m->cap_bindings * sizeof *m->bindings);
  pln_mem_free(e, m->goals, m->cap_goals * sizeof *m->goals);
  pln_mem_free(e, m->choices, m->cap_choices * sizeof *m->choices);
  pln_mem_free(e, m->walks, m->cap_walks * sizeof *m->walks);
  pln_mem_free(e, m->work, m->cap_work * sizeof *m->work);
  pln_mem_free(e, m->path, m->cap_path * sizeof *m->path);
  pln_ref_list_free(e, &m->parts);
  pln_idmap_free(m->visited);
  pln_idmap_free(m->ends);
  pln_mem_free(e, m, sizeof *m);
}

const pln_dataflow_binding *
pln_dataflow_bindings(const pln_dataflow_matcher *matcher, uint32_t *n) {
  *n = matcher->n_bindings;
  return matcher->bindings;
}

/* -------------------------------------------------------------------- goals */

static pln_status add_goal(pln_dataflow_matcher *m, goal_kind kind, uint32_t a,
                           uint32_t b, uint32_t c) {
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->goals, &m->cap_goals,
                       (size_t)m->n_goals + 1, sizeof *m->goals));
  m->goals[m->n_goals++] = (goal){(uint8_t)kind, a, b, c, m->next};
  m->next = m->n_goals;
  return PLN_OK;
}

static pln_status add_match(pln_dataflow_matcher *m, uint32_t pattern,
                            pln_ref node) {
  node = pln_dataflow_value(m->region, node);
  return add_goal(m, GOAL_MATCH, pattern,
                  pln_dataflow_candidate(m->graph, node), 0);
}

/* Takes the first goal. Its cell is reused unless a choice may need it. */
static goal take_goal(pln_dataflow_matcher *m) {
  goal g = m->goals[m->next - 1];
  uint32_t kept = m->n_choices ? m->choices[m->n_choices - 1].n_goals : 0;
  if (m->next == m->n_goals && m->n_goals > kept)
    m->n_goals--;
  m->next = g.next;
  return g;
}

/* Records that, should what follows fail, this goal and the present ones are to
 * be reached instead. */
static pln_status add_choice(pln_dataflow_matcher *m, goal_kind kind,
                             uint32_t a, uint32_t b) {
  uint32_t next = m->next;
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->choices, &m->cap_choices,
                       (size_t)m->n_choices + 1, sizeof *m->choices));
  PLN_TRY(add_goal(m, kind, a, b, 0));
  m->choices[m->n_choices++] = (choice){.next = m->next,
                                        .n_goals = m->n_goals,
                                        .n_bindings = m->n_bindings,
                                        .frame = m->frame,
                                        .n_walks = m->n_walks,
                                        .n_work = m->n_work,
                                        .n_steps = m->n_path};
  m->next = next;
  return PLN_OK;
}

static void unbind(pln_dataflow_matcher *m, uint32_t n) {
  while (m->n_bindings > n) {
    const pln_dataflow_binding *b = &m->bindings[--m->n_bindings];
    m->memo[b->pattern] = b->shadowed;
  }
}

/* Resumes the newest choice; false: there is none. */
static bool resume(pln_dataflow_matcher *m) {
  if (m->n_choices == 0)
    return false;
  choice c = m->choices[--m->n_choices];
  unbind(m, c.n_bindings);
  m->next = c.next;
  m->n_goals = c.n_goals;
  m->frame = c.frame;
  m->n_walks = c.n_walks;
  m->n_work = c.n_work;
  m->n_path = c.n_steps;
  return true;
}

/* ----------------------------------------------------------------- bindings */

/* The newest binding of the pattern of no inner frame + 1. */
static uint32_t visible(const pln_dataflow_matcher *m, uint32_t pattern) {
  uint32_t i = m->memo[pattern];
  while (i && m->bindings[i - 1].frame > m->frame)
    i = m->bindings[i - 1].outer;
  return i;
}

static pln_status bind(pln_dataflow_matcher *m, uint32_t pattern,
                       pln_candidate candidate) {
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->bindings, &m->cap_bindings,
                       (size_t)m->n_bindings + 1, sizeof *m->bindings));
  m->bindings[m->n_bindings] = (pln_dataflow_binding){
      pattern, candidate, m->frame, m->memo[pattern], visible(m, pattern)};
  m->memo[pattern] = ++m->n_bindings;
  return PLN_OK;
}

/* -------------------------------------------------------------- expressions */

static bool same_head(const pln_graph *g, const pln_node *x, const pln_graph *h,
                      const pln_node *y) {
  if (x->kind != y->kind || x->count != y->count)
    return false;
  switch ((pln_kind)x->kind) {
  case PLN_CONSTANT:
    return pln_tensor_equal(g->tensors[x->data], h->tensors[y->data]);
  case PLN_VAR:
  case PLN_CALL:
  case PLN_OP:
  case PLN_GLOBAL_VAR:
  case PLN_TUPLE_GET_ITEM: return x->data == y->data;
  default: return true;
  }
}

/* Compares two roots and their operands before the whole expressions. */
static pln_status equals(pln_dataflow_matcher *m, const pln_graph *expr,
                         pln_ref node, bool *out) {
  const pln_graph *g = m->graph;
  const pln_node *x = &g->nodes[node], *y = &expr->nodes[expr->root];
  *out = same_head(g, x, expr, y);
  for (uint32_t i = 0; *out && i < x->count; i++)
    *out = same_head(g, &g->nodes[g->operands[x->first + i]], expr,
                     &expr->nodes[expr->operands[y->first + i]]);
  if (!*out || (x->kind == PLN_CONSTANT && y->kind == PLN_CONSTANT))
    return PLN_OK;
  return pln_graph_equal(g, node, expr, expr->root, false, out);
}

/* --------------------------------------------------------------- attributes */

static bool as_number(const pln_attr *a, double *out) {
  bool integer = a->kind == PLN_ATTR_INT || a->kind == PLN_ATTR_BOOL;
  *out = integer ? (double)a->v.i : a->v.f;
  return integer || a->kind == PLN_ATTR_FLOAT;
}

/* An operator's floats are float32; integers stand for booleans and floats. */
static pln_status attr_has_value(pln_engine *e, const pln_attr *wanted,
                                 const pln_attr *actual, bool *out) {
  double x, y;
  *out = false;
  if (!actual)
    return PLN_OK;
  if (as_number(wanted, &x) && as_number(actual, &y)) {
    *out = x == y || (float)x == (float)y;
    return PLN_OK;
  }
  return pln_attr_equal(e, wanted, actual, out);
}

static const pln_attr *find_named(const pln_engine *e, pln_attrs attrs,
                                  pln_symbol name) {
  return pln_attrs_find(e, attrs, pln_symbol_text(e, name).data);
}

/* Returns true if the default of a schema, after "name:kind=", is the value. */
static bool is_default(const char *text, const pln_attr *wanted) {
  size_t size = strcspn(text, " ");
  double number;
  if (as_number(wanted, &number)) {
    char *end;
    return size && strtod(text, &end) == number && end == text + size;
  }
  if (wanted->kind == PLN_ATTR_STRING)
    return wanted->v.s.size == size && !memcmp(wanted->v.s.data, text, size);
  if (wanted->kind != PLN_ATTR_INTS)
    return false;
  for (uint32_t i = 0; i < wanted->count; i++) {
    char *end;
    if (strtoll(text, &end, 10) != wanted->v.ints[i] || end == text)
      return false;
    text = end + (*end == ',');
  }
  return *text == ' ' || *text == 0;
}

/* Compares an attribute that a call does not have with its default. */
static bool has_default(const pln_engine *e, pln_op op,
                        const pln_attr *wanted) {
  const pln_relay_row *relay = pln_relay_of(e, op);
  pln_slice name = pln_symbol_text(e, wanted->name), core;
  const char *at =
      relay ? pln_rule_find_in_schema(relay->attrs, name, &core) : NULL;
  if (!at)
    at = pln_rule_find_in_schema(pln_op_row(e, op)->attrs, name, &core);
  size_t kind = at ? strcspn(at, "= ") : 0;
  return at && at[kind] == '=' && is_default(at + kind + 1, wanted);
}

/* Compares an attribute of a call under the core's name, else Relay's. */
static pln_status call_has_attr(pln_dataflow_matcher *m, const pln_node *call,
                                const pln_attr *wanted, bool *out) {
  pln_engine *e = m->engine;
  pln_attrs relay = 0;
  const pln_attr *actual = find_named(e, call->attrs, wanted->name);
  if (!actual && call->data) {
    PLN_TRY(pln_relay_normal_attrs(e, call->data, call->attrs, &relay));
    actual = find_named(e, relay, wanted->name);
  }
  PLN_TRY(attr_has_value(e, wanted, actual, out));
  if (!actual && call->data)
    *out = has_default(e, call->data, wanted);
  return PLN_OK;
}

static pln_status has_attr(pln_dataflow_matcher *m, pln_candidate candidate,
                           const pln_attr *wanted, bool *out) {
  pln_engine *e = m->engine;
  *out = false;
  if (candidate & PLN_CANDIDATE_OP) {
    *out = m->pattern->op_attr &&
           m->pattern->op_attr(e, candidate & ~PLN_CANDIDATE_OP, wanted);
    return PLN_OK;
  }
  const pln_node *n = &m->graph->nodes[candidate];
  if (n->kind == PLN_CALL)
    return call_has_attr(m, n, wanted, out);
  if (n->kind != PLN_FUNCTION)
    return PLN_OK;
  return attr_has_value(e, wanted, find_named(e, n->attrs, wanted->name), out);
}

static pln_status has_attrs(pln_dataflow_matcher *m, pln_candidate candidate,
                            pln_attrs wanted, bool *out) {
  uint32_t n = pln_attrs_count(m->engine, wanted);
  *out = true;
  for (uint32_t i = 0; *out && i < n; i++)
    PLN_TRY(has_attr(m, candidate, pln_attrs_at(m->engine, wanted, i), out));
  return PLN_OK;
}

/* -------------------------------------------------------------------- types */

/* The type of a Let is that of its block's result. */
static pln_type type_of_node(const pln_dataflow_matcher *m, pln_ref node) {
  const pln_graph *g = m->graph;
  if (g->nodes[node].kind != PLN_LET)
    return g->nodes[node].type;
  pln_ref result = g->scopes[pln_dataflow_scope_of(m->region, node)].result;
  return g->nodes[result == PLN_NONE ? g->root : result].type;
}

static bool same_dims(const pln_engine *e, pln_type a, pln_type b) {
  int32_t rank = pln_type_rank(e, a);
  if (rank < 0 || rank != pln_type_rank(e, b))
    return false;
  for (int32_t i = 0; i < rank; i++)
    if (pln_type_dims(e, a)[i] != pln_type_dims(e, b)[i])
      return false;
  return true;
}

static pln_status has_type(pln_dataflow_matcher *m, const pln_dataflow_node *p,
                           pln_candidate candidate, bool *out) {
  pln_engine *e = m->engine;
  *out = false;
  if (candidate & PLN_CANDIDATE_OP)
    return PLN_OK;
  pln_type type = type_of_node(m, candidate);
  bool tensor = type && pln_type_get_kind(e, type) == PLN_TYPE_TENSOR;
  if (p->kind == PLN_DATAFLOW_TYPE)
    return type ? pln_type_equal(e, type, p->data, false, out) : PLN_OK;
  *out = tensor && (p->kind == PLN_DATAFLOW_DTYPE
                        ? pln_type_dtype(e, type) == (pln_dtype)p->data
                        : same_dims(e, type, p->data));
  return PLN_OK;
}

/* -------------------------------------------------------------------- calls */

/* The arguments of a call without trailing ones that are omitted. */
static const pln_ref *call_args(const pln_graph *g, pln_ref call,
                                uint32_t *count) {
  const pln_node *n = &g->nodes[call];
  uint32_t callee = n->data ? 0 : 1;
  const pln_ref *args = g->operands + n->first + callee;
  *count = n->count > callee ? n->count - callee : 0;
  while (*count && g->nodes[args[*count - 1]].kind == PLN_ABSENT)
    --*count;
  return args;
}

static pln_candidate callee_of(const pln_dataflow_region *r, pln_ref call) {
  const pln_graph *g = r->graph;
  const pln_node *n = &g->nodes[call];
  if (n->data)
    return PLN_CANDIDATE_OP | n->data;
  return pln_dataflow_candidate(g,
                                pln_dataflow_value(r, g->operands[n->first]));
}

/* Adds the goals of a call's operands. *out: the numbers of arguments agree. */
static pln_status add_operands(pln_dataflow_matcher *m, uint32_t pattern,
                               pln_ref call, bool reversed, bool *out) {
  const pln_dataflow_node *p = &m->pattern->nodes[pattern];
  uint32_t count, n = p->count - 1;
  const pln_ref *args = call_args(m->graph, call, &count);
  *out = p->any_count || count == n;
  for (uint32_t i = n; *out && i-- > 0;)
    PLN_TRY(add_match(m, pln_dataflow_operand(m->pattern, pattern, 1 + i),
                      args[reversed ? n - 1 - i : i]));
  return add_goal(m, GOAL_MATCH, pln_dataflow_operand(m->pattern, pattern, 0),
                  callee_of(m->region, call), 0);
}

/* TVM tries the reverse order for these two operators only. */
static bool reverses(const pln_dataflow_matcher *m, pln_op op) {
  pln_slice name = pln_op_name(m->engine, op);
  return pln_slice_is(name, "add") || pln_slice_is(name, "multiply");
}

static bool are_alike(const pln_dataflow_matcher *m, uint32_t pattern) {
  return m->pattern->nodes[pattern].count != 3 ||
         pln_dataflow_operand(m->pattern, pattern, 1) ==
             pln_dataflow_operand(m->pattern, pattern, 2);
}

/* A call of another operator than the pattern's may have an associated form. */
static pln_status match_alternatives(pln_dataflow_matcher *m,
                                     const pln_dataflow_node *p, pln_ref call,
                                     bool *out) {
  *out = p->n_alternatives > 0;
  for (uint32_t i = p->n_alternatives; i-- > 1;)
    PLN_TRY(add_choice(m, GOAL_MATCH, p->alternative + i, call));
  return *out ? add_goal(m, GOAL_MATCH, p->alternative, call, 0) : PLN_OK;
}

static pln_status match_call(pln_dataflow_matcher *m, uint32_t pattern,
                             pln_ref call, bool *out) {
  const pln_dataflow_pattern *all = m->pattern;
  const pln_dataflow_node *p = &all->nodes[pattern];
  const pln_node *n = &m->graph->nodes[call];
  *out = n->kind == PLN_CALL && (n->data || n->count > 0);
  if (!*out)
    return PLN_OK;
  uint32_t callee = pln_dataflow_operand(all, pattern, 0);
  bool op = all->nodes[callee].kind == PLN_DATAFLOW_OP;
  if (op && n->data != all->nodes[callee].data)
    return match_alternatives(m, p, call, out);
  if (op && reverses(m, n->data) && !p->any_count && !are_alike(m, pattern))
    PLN_TRY(add_choice(m, GOAL_SWAPPED, pattern, call));
  return add_operands(m, pattern, call, false, out);
}

/* -------------------------------------------------------------- other kinds */

static pln_status match_function(pln_dataflow_matcher *m, uint32_t pattern,
                                 pln_ref function, bool *out) {
  const pln_dataflow_node *p = &m->pattern->nodes[pattern];
  const pln_graph *g = m->graph;
  uint32_t n = p->count - 1;
  *out = g->nodes[function].kind == PLN_FUNCTION;
  if (!*out)
    return PLN_OK;
  pln_scope scope = g->nodes[function].data;
  *out = p->any_count || g->scopes[scope].n_params == n;
  if (!*out)
    return PLN_OK;
  PLN_TRY(add_match(m, pln_dataflow_operand(m->pattern, pattern, n),
                    pln_dataflow_block_value(g, scope, 0)));
  for (uint32_t i = n; i-- > 0;)
    PLN_TRY(add_match(m, pln_dataflow_operand(m->pattern, pattern, i),
                      g->scopes[scope].begin + i));
  return PLN_OK;
}

static pln_status match_let(pln_dataflow_matcher *m, uint32_t pattern,
                            pln_ref node, bool *out) {
  const pln_graph *g = m->graph;
  pln_ref let = pln_dataflow_let(g, node);
  *out = let != PLN_NONE;
  if (!*out)
    return PLN_OK;
  pln_scope scope = pln_dataflow_scope_of(m->region, let);
  PLN_TRY(add_match(m, pln_dataflow_operand(m->pattern, pattern, 2),
                    pln_dataflow_block_value(g, scope, let + 1)));
  for (uint32_t i = 2; i-- > 0;)
    PLN_TRY(add_match(m, pln_dataflow_operand(m->pattern, pattern, i),
                      pln_operand(g, let, i)));
  return PLN_OK;
}

static pln_status match_if(pln_dataflow_matcher *m, uint32_t pattern,
                           pln_ref node, bool *out) {
  const pln_graph *g = m->graph;
  const pln_node *n = &g->nodes[node];
  *out = n->kind == PLN_IF;
  if (!*out)
    return PLN_OK;
  pln_scope branches[2] = {n->data, g->scopes[n->data].next};
  for (uint32_t i = 2; i-- > 0;)
    PLN_TRY(add_match(m, pln_dataflow_operand(m->pattern, pattern, 1 + i),
                      pln_dataflow_block_value(g, branches[i], 0)));
  return add_match(m, pln_dataflow_operand(m->pattern, pattern, 0),
                   pln_operand(g, node, 0));
}

static pln_status match_tuple(pln_dataflow_matcher *m, uint32_t pattern,
                              pln_ref node, bool *out) {
  const pln_dataflow_node *p = &m->pattern->nodes[pattern];
  const pln_node *n = &m->graph->nodes[node];
  *out = n->kind == PLN_TUPLE && (p->any_count || n->count == p->count);
  for (uint32_t i = p->count; *out && i-- > 0;)
    PLN_TRY(add_match(m, pln_dataflow_operand(m->pattern, pattern, i),
                      pln_operand(m->graph, node, i)));
  return PLN_OK;
}

static pln_status match_field(pln_dataflow_matcher *m, uint32_t pattern,
                              pln_ref node, bool *out) {
  const pln_dataflow_node *p = &m->pattern->nodes[pattern];
  const pln_node *n = &m->graph->nodes[node];
  *out = n->kind == PLN_TUPLE_GET_ITEM &&
         (p->data == PLN_NONE || p->data == n->data);
  return *out ? add_match(m, pln_dataflow_operand(m->pattern, pattern, 0),
                          pln_operand(m->graph, node, 0))
              : PLN_OK;
}

static pln_status make_maps(pln_dataflow_matcher *m) {
  if (!m->visited)
    PLN_TRY(pln_idmap_new(m->engine, &m->visited));
  return m->ends ? PLN_OK : pln_idmap_new(m->engine, &m->ends);
}

static uint64_t end_key(uint32_t pattern, pln_candidate candidate) {
  return (uint64_t)pattern << 32 | candidate;
}

/* An instance does not depend on what was bound outside of it, so that a
 * failure holds for all matches. */
static pln_status begin_instance(pln_dataflow_matcher *m, uint32_t pattern,
                                 pln_candidate candidate, bool *out) {
  PLN_TRY(make_maps(m));
  uint64_t key = end_key(pattern, candidate);
  *out = pln_idmap_get(m->ends, key) != DEAD_END;
  if (!*out)
    return PLN_OK;
  PLN_TRY(add_choice(m, GOAL_REFUSED, pattern, candidate));
  PLN_TRY(add_goal(m, GOAL_INSTANCE, m->frame, pattern, candidate));
  m->frame = ++m->n_frames;
  return PLN_OK;
}

static pln_status end_instance(pln_dataflow_matcher *m, const goal *g) {
  m->frame = g->a;
  return pln_idmap_set(m->ends, end_key(g->b, g->c), MATCHED);
}

static pln_status refuse_instance(pln_dataflow_matcher *m, const goal *g,
                                  bool *out) {
  uint64_t key = end_key(g->a, g->b);
  *out = false;
  return pln_idmap_get(m->ends, key) == MATCHED
             ? PLN_OK
             : pln_idmap_set(m->ends, key, DEAD_END);
}

/* A redirected wildcard matches what its operand does; a recursive pattern
 * begins an instance of its own. */
static pln_status match_wildcard(pln_dataflow_matcher *m, uint32_t pattern,
                                 pln_candidate candidate, bool *out) {
  const pln_dataflow_node *p = &m->pattern->nodes[pattern];
  if (p->count == 0)
    return PLN_OK;
  if (p->recursive)
    PLN_TRY(begin_instance(m, pattern, candidate, out));
  return *out ? add_goal(m, GOAL_MATCH,
                         pln_dataflow_operand(m->pattern, pattern, 0),
                         candidate, 0)
              : PLN_OK;
}

/* Kinds that match nodes and never operators. */
static pln_status match_node(pln_dataflow_matcher *m, uint32_t pattern,
                             pln_ref node, bool *out) {
  const pln_dataflow_node *p = &m->pattern->nodes[pattern];
  const pln_node *n = &m->graph->nodes[node];
  switch ((pln_dataflow_kind)p->kind) {
  case PLN_DATAFLOW_EXPR: return equals(m, p->expr, node, out);
  case PLN_DATAFLOW_VAR:
    *out = n->kind == PLN_VAR && (!p->data || n->attrs == p->data);
    return PLN_OK;
  case PLN_DATAFLOW_CONSTANT: *out = n->kind == PLN_CONSTANT; return PLN_OK;
  case PLN_DATAFLOW_CALL: return match_call(m, pattern, node, out);
  case PLN_DATAFLOW_FUNCTION: return match_function(m, pattern, node, out);
  case PLN_DATAFLOW_LET: return match_let(m, pattern, node, out);
  case PLN_DATAFLOW_IF: return match_if(m, pattern, node, out);
  case PLN_DATAFLOW_TUPLE: return match_tuple(m, pattern, node, out);
  case PLN_DATAFLOW_TUPLE_GET_ITEM: return match_field(m, pattern, node, out);
  default: break;
  }
  *out = false;
  return PLN_OK;
}

/* A pattern that tests its candidate and has one operand for it. */
static pln_status match_test(pln_dataflow_matcher *m, uint32_t pattern,
                             pln_candidate candidate, bool *out) {
  const pln_dataflow_node *p = &m->pattern->nodes[pattern];
  if (p->kind == PLN_DATAFLOW_ATTR)
    PLN_TRY(has_attrs(m, candidate, p->data, out));
  else
    PLN_TRY(has_type(m, p, candidate, out));
  return *out ? add_goal(m, GOAL_MATCH,
                         pln_dataflow_operand(m->pattern, pattern, 0),
                         candidate, 0)
              : PLN_OK;
}

static pln_status match_dominator(pln_dataflow_matcher *m, uint32_t pattern,
                                  pln_candidate candidate, bool *out) {
  *out = !(candidate & PLN_CANDIDATE_OP);
  if (!*out)
    return PLN_OK;
  PLN_TRY(add_goal(m, GOAL_DOMINATOR, pattern, candidate, 0));
  return add_goal(m, GOAL_MATCH, pln_dataflow_operand(m->pattern, pattern, 2),
                  candidate, 0);
}

static pln_status match_pattern(pln_dataflow_matcher *m, uint32_t pattern,
                                pln_candidate candidate, bool *out) {
  const pln_dataflow_node *p = &m->pattern->nodes[pattern];
  uint32_t before = visible(m, pattern);
  *out = true;
  if (before && m->bindings[before - 1].frame == m->frame) {
    *out = m->bindings[before - 1].candidate == candidate;
    return PLN_OK;
  }
  PLN_TRY(add_goal(m, GOAL_BIND, pattern, candidate, 0));
  switch ((pln_dataflow_kind)p->kind) {
  case PLN_DATAFLOW_WILDCARD: return match_wildcard(m, pattern, candidate, out);
  case PLN_DATAFLOW_OP:
    *out = candidate == (PLN_CANDIDATE_OP | p->data);
    return PLN_OK;
  case PLN_DATAFLOW_ALT:
    PLN_TRY(add_choice(m, GOAL_MATCH,
                       pln_dataflow_operand(m->pattern, pattern, 1),
                       candidate));
    return add_goal(m, GOAL_MATCH, pln_dataflow_operand(m->pattern, pattern, 0),
                    candidate, 0);
  case PLN_DATAFLOW_TYPE:
  case PLN_DATAFLOW_DTYPE:
  case PLN_DATAFLOW_SHAPE:
  case PLN_DATAFLOW_ATTR: return match_test(m, pattern, candidate, out);
  case PLN_DATAFLOW_DOMINATOR:
    return match_dominator(m, pattern, candidate, out);
  default: break;
  }
  *out = !(candidate & PLN_CANDIDATE_OP);
  return *out ? match_node(m, pattern, candidate, out) : PLN_OK;
}

/* --------------------------------------------------------------- dominators */

/* Adds the inputs of a node to the walk, the first one on top; what is called
 * is none. *out: there are inputs. */
static pln_status add_inputs(pln_dataflow_matcher *m, const walk *w,
                             pln_ref node, uint32_t via, bool *out) {
  const pln_node *n = &m->graph->nodes[node];
  m->parts.n = 0;
  PLN_TRY(pln_dataflow_parts(m->region, node, &m->parts));
  uint32_t first = pln_has_callee(n) ? 1 : 0;
  *out = m->parts.n > first;
  for (uint32_t i = m->parts.n; i-- > first;) {
    pln_ref part = m->parts.items[i];
    uint64_t key = (uint64_t)w->serial << 32 | part;
    if (pln_idmap_get(m->visited, key))
      continue;
    PLN_TRY(pln_idmap_set(m->visited, key, 1));
    PLN_TRY(pln_mem_grow(m->engine, (void **)&m->work, &m->cap_work,
                         (size_t)m->n_work + 1, sizeof *m->work));
    m->work[m->n_work++] = (work_item){part, via};
  }
  return PLN_OK;
}

static pln_status begin_walk(pln_dataflow_matcher *m, uint32_t pattern,
                             pln_ref child, bool *out) {
  PLN_TRY(make_maps(m));
  PLN_TRY(pln_dataflow_find_dominators(m->region));
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->walks, &m->cap_walks,
                       (size_t)m->n_walks + 1, sizeof *m->walks));
  walk w = {.pattern = pattern,
            .serial = ++m->n_serials,
            .base = m->n_work,
            .first_step = m->n_path,
            .child = child,
            .parent = PLN_NONE,
            .frame = m->frame};
  m->walks[m->n_walks] = w;
  PLN_TRY(add_goal(m, GOAL_STEP, m->n_walks++, 0, 0));
  return add_inputs(m, &w, child, 0, out);
}

/* ----------------------------------------------------------- ends of walks */

/* What a walk learns of nodes holds for later ones, if nothing outside of the
 * dominator's parent can bind what the parent's pattern consists of. */
static bool learns(const pln_dataflow_matcher *m, const walk *w) {
  return m->pattern->nodes[w->pattern].closed;
}

/* The node is neither parent nor path, or has no inputs: neither it nor the
 * path that led to it leads to a parent. */
static pln_status note_dead_end(pln_dataflow_matcher *m, const walk *w,
                                pln_ref node) {
  uint32_t via = w->via;
  bool dead = w->tested && learns(m, w);
  while (dead) {
    PLN_TRY(pln_idmap_set(m->ends, end_key(w->pattern, node), DEAD_END));
    if (!via)
      return PLN_OK;
    const walk_step *step = &m->path[via - 1];
    node = step->node;
    via = step->via;
    dead = step->tested &&
           pln_idmap_get(m->ends, end_key(w->pattern, node)) != DEAD_END;
  }
  return PLN_OK;
}

/* The child does not dominate the parent: later walks over these nodes stop at
 * the first. */
static pln_status note_parent(pln_dataflow_matcher *m, const walk *w) {
  for (uint32_t i = w->first_step; learns(m, w) && i < m->n_path; i++)
    if (m->path[i].tested)
      PLN_TRY(pln_idmap_set(m->ends, end_key(w->pattern, m->path[i].node),
                            KNOWN_PARENT + w->parent));
  return PLN_OK;
}

static pln_status end_walk(pln_dataflow_matcher *m, const walk *w, bool *out) {
  *out = w->parent != PLN_NONE &&
         pln_dataflow_dominates(m->region, w->child, w->parent);
  return *out || w->parent == PLN_NONE ? PLN_OK : note_parent(m, w);
}

/* Before the parent was found: *out is false if it is known that a walk through
 * the node fails. */
static pln_status check_end(pln_dataflow_matcher *m, walk *w, pln_ref node,
                            bool *out) {
  uint32_t end = pln_idmap_get(m->ends, end_key(w->pattern, node));
  *out = end == UNKNOWN_END ||
         (end != DEAD_END &&
          pln_dataflow_dominates(m->region, w->child, end - KNOWN_PARENT));
  w->tested = true;
  return end == DEAD_END ? note_dead_end(m, w, node) : PLN_OK;
}

/* The next node of a walk is the parent, if it matches, or else of the path.
 * There is one parent. */
static pln_status step_walk(pln_dataflow_matcher *m, uint32_t at, bool *out) {
  walk *w = &m->walks[at];
  *out = true;
  if (m->n_work == w->base)
    return end_walk(m, w, out);
  work_item item = m->work[--m->n_work];
  w->via = item.via;
  w->tested = false;
  if (w->parent == item.node)
    return add_goal(m, GOAL_STEP, at, 0, 0);
  if (w->parent == PLN_NONE)
    PLN_TRY(check_end(m, w, item.node, out));
  if (!*out)
    return PLN_OK;
  PLN_TRY(add_goal(m, GOAL_STEP, at, 0, 0));
  if (w->parent != PLN_NONE)
    return add_goal(m, GOAL_PATH, at, item.node, 0);
  uint32_t kept = m->n_choices;
  PLN_TRY(add_choice(m, GOAL_PATH, at, item.node));
  PLN_TRY(add_goal(m, GOAL_PARENT, at, item.node, kept));
  return add_match(m, pln_dataflow_operand(m->pattern, w->pattern, 0),
                   item.node);
}

static pln_status match_path(pln_dataflow_matcher *m, uint32_t at,
                             pln_ref node) {
  uint32_t pattern = m->walks[at].pattern, kept = m->n_choices;
  PLN_TRY(add_choice(m, GOAL_DEAD, at, node));
  PLN_TRY(add_goal(m, GOAL_LEFT, at, node, kept));
  m->frame = ++m->n_frames;
  return add_match(m, pln_dataflow_operand(m->pattern, pattern, 1), node);
}

/* The node belongs to the path; its inputs are next. */
static pln_status leave_path(pln_dataflow_matcher *m, const goal *g,
                             bool *out) {
  const walk *w = &m->walks[g->a];
  m->n_choices = g->c;
  m->frame = w->frame;
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->path, &m->cap_path,
                       (size_t)m->n_path + 1, sizeof *m->path));
  m->path[m->n_path++] = (walk_step){g->b, w->via, w->tested};
  PLN_TRY(add_inputs(m, w, g->b, m->n_path, out));
  return *out ? PLN_OK : note_dead_end(m, w, g->b);
}

/* ------------------------------------------------------------------ the run */

static pln_status run_goal(pln_dataflow_matcher *m, const goal *g, bool *out) {
  *out = true;
  switch ((goal_kind)g->kind) {
  case GOAL_MATCH: return match_pattern(m, g->a, g->b, out);
  case GOAL_BIND: return bind(m, g->a, g->b);
  case GOAL_SWAPPED: return add_operands(m, g->a, g->b, true, out);
  case GOAL_INSTANCE: return end_instance(m, g);
  case GOAL_REFUSED: return refuse_instance(m, g, out);
  case GOAL_DOMINATOR: return begin_walk(m, g->a, g->b, out);
  case GOAL_STEP: return step_walk(m, g->a, out);
  case GOAL_PARENT:
    m->walks[g->a].parent = g->b;
    m->n_choices = g->c;
    return PLN_OK;
  case GOAL_PATH: return match_path(m, g->a, g->b);
  case GOAL_LEFT: return leave_path(m, g, out);
  case GOAL_DEAD: *out = false; return note_dead_end(m, &m->walks[g->a], g->b);
  }
  return PLN_OK;
}

static pln_status too_many_steps(pln_dataflow_matcher *m) {
  return pln_diag_error(m->engine, PLN_ERR_LIMIT, NULL,
                        "a dataflow pattern was not decided in %llu steps: it "
                        "has too many alternatives",
                        (unsigned long long)m->most);
}

static void reset(pln_dataflow_matcher *m) {
  unbind(m, 0);
  m->n_goals = m->n_choices = m->n_walks = m->n_work = m->n_path = 0;
  m->next = m->frame = m->n_frames = 0;
  m->steps = 0;
  if (m->n_serials) {
    pln_idmap_free(m->visited);
    m->visited = NULL;
  }
  m->n_serials = 0;
}

enum { LEAST_STEPS = 4000000, STEPS_PER_NODE = 64 };

pln_status pln_dataflow_match(pln_dataflow_matcher *matcher,
                              pln_candidate candidate, bool *matched) {
  pln_dataflow_matcher *m = matcher;
  reset(m);
  m->most = LEAST_STEPS + (uint64_t)m->graph->n_nodes * STEPS_PER_NODE;
  PLN_TRY(add_goal(m, GOAL_MATCH, m->pattern->root, candidate, 0));
  *matched = true;
  while (*matched && m->next) {
    bool fits;
    goal g = take_goal(m);
    if (++m->steps > m->most)
      return too_many_steps(m);
    if (m->steps % 4096 == 0)
      PLN_TRY(pln_poll_stoppable(m->engine));
    PLN_TRY(run_goal(m, &g, &fits));
    if (!fits)
      *matched = resume(m);
  }
  if (!*matched)
    unbind(m, 0);
  return PLN_OK;
}
