/* match.c: compares one variant of a rule with a node, binds its variables, and
 * checks its condition.
 *
 * A variant has no choices and its parents come first, so that matching is one
 * loop over its nodes. Attributes are compared afterwards, when all variables
 * that stand for nodes are bound. Called by drive.c for the variants that the
 * decision tree leaves. */

#include <math.h>

#include "base/half.h"
#include "rule/set.h"

/* Fails the match and notes why, for explain.c. */
static bool fails(pln_rule_match *m, uint32_t pattern, const char *reason) {
  m->failed_at = pattern;
  m->reason = reason;
  return false;
}

bool pln_call_is_valid(const pln_graph *graph, pln_ref call) {
  const pln_node *n = &graph->nodes[call];
  int32_t least = pln_op_row(graph->engine, n->data)->min_args;
  if (graph->typed_from[call] == PLN_TYPED_REFUSED || (int64_t)n->count < least)
    return false;
  for (int32_t i = 0; i < least; i++)
    if (graph->nodes[graph->operands[n->first + (uint32_t)i]].kind ==
        PLN_ABSENT)
      return false;
  return true;
}

/* --------------------------------------------------------------- constants */

/* Elements beyond this number are not scanned. */
enum { MAX_SCANNED = 1024 };

bool pln_rule_uniform(const pln_graph *g, pln_ref node, double *out) {
  if (g->nodes[node].kind != PLN_CONSTANT)
    return false;
  const pln_tensor *t = g->tensors[g->nodes[node].data];
  size_t n = t->splat ? 1 : t->count;
  if (t->external || t->count == 0 || n > MAX_SCANNED ||
      !pln_tensor_number(t, 0, out))
    return false;
  for (size_t i = 1; i < n; i++) {
    double x;
    if (!pln_tensor_number(t, i, &x) || x != *out)
      return false;
  }
  return true;
}

bool pln_rule_uniform_int(const pln_graph *g, pln_ref node, int64_t *out) {
  if (g->nodes[node].kind != PLN_CONSTANT)
    return false;
  const pln_tensor *t = g->tensors[g->nodes[node].data];
  size_t n = t->splat ? 1 : t->count;
  int64_t x;
  if (t->external || t->count == 0 || n > MAX_SCANNED ||
      pln_dtype_is_float((pln_dtype)t->dtype) || !pln_tensor_int(t, 0, out))
    return false;
  for (size_t i = 1; i < n; i++)
    if (!pln_tensor_int(t, i, &x) || x != *out)
      return false;
  return true;
}

/* Returns true if broadcasting with this constant, operand `i` of the call,
 * does not change the shape of another operand: a number in a pattern stands
 * for a scalar. */
static bool keeps_shape(const pln_graph *g, pln_ref call, uint32_t i,
                        const pln_tensor *t) {
  const pln_node *n = &g->nodes[call];
  pln_engine *e = g->engine;
  if (!(pln_op_row(e, n->data)->traits & PLN_TRAIT_BROADCAST))
    return true;
  for (uint32_t k = 0; k < n->count; k++) {
    pln_type type = g->nodes[g->operands[n->first + k]].type;
    int32_t rank = pln_type_rank(e, type);
    if (k != i && t->count == 1 && (int64_t)t->rank <= rank)
      return true;
    if (k != i && (t->rank == 0 || pln_same_extents(e, type, n->type)))
      return true;
  }
  return false;
}

/* Returns true if a dtype of floats represents `number` by `element`. */
static bool is_rounded(double number, double element) {
  if (element == number || element == (double)(float)number)
    return true;
  uint16_t half = pln_float_to_half((float)number);
  uint16_t bfloat = pln_float_to_bfloat((float)number);
  return element == (double)pln_half_to_float(half) ||
         element == (double)pln_bfloat_to_float(bfloat);
}

static bool has_number(const pln_graph *g, pln_ref node,
                       const pln_pattern_node *p) {
  double number;
  int64_t integer;
  return pln_rule_uniform_int(g, node, &integer)
             ? p->is_int && integer == p->integer
             : pln_rule_uniform(g, node, &number) &&
                   is_rounded(p->number, number);
}

static bool match_number(pln_rule_match *m, const pln_pattern_node *p,
                         pln_ref node) {
  const pln_graph *g = pln_rule_graph(m);
  if (!has_number(g, node, p))
    return false;
  if (p->parent == PLN_MATCH_ROOT)
    return true;
  pln_ref parent = m->nodes[p->parent];
  const pln_node *n = &g->nodes[parent];
  return n->kind != PLN_CALL ||
         keeps_shape(g, parent,
                     pln_rule_bound_index(&m->run->lets.now, g,
                                          g->operands + n->first, n->count,
                                          p->arg),
                     g->tensors[g->nodes[node].data]);
}

/* -------------------------------------------------------------- constraints */

static bool is_static(const pln_engine *e, pln_type type) {
  int32_t rank = pln_type_rank(e, type);
  for (int32_t i = 0; i < rank; i++)
    if (!PLN_DIM_IS_CONST(pln_type_dims(e, type)[i]))
      return false;
  return rank >= 0;
}

static bool has_dtype_class(const pln_engine *e, pln_type type,
                            uint32_t constraints) {
  pln_dtype dtype = pln_type_dtype(e, type);
  if (constraints & PLN_CONSTRAINT_FLOAT)
    return pln_dtype_is_float(dtype);
  if (constraints & PLN_CONSTRAINT_BOOL)
    return dtype == PLN_BOOL;
  return dtype && dtype != PLN_BOOL && pln_dtype_is_integer(dtype);
}

static const char *failed_constraint(pln_rule_match *m, uint32_t constraints,
                                     pln_ref node) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_engine *e = g->engine;
  pln_type type = g->nodes[node].type;
  bool constant = g->nodes[node].kind == PLN_CONSTANT;
  const pln_tensor *t = constant ? g->tensors[g->nodes[node].data] : NULL;
  double number;
  int64_t integer;
  if ((constraints & PLN_CONSTRAINT_CONST) && !constant)
    return "is no constant";
  if ((constraints & PLN_CONSTRAINT_DYNAMIC) && constant)
    return "is a constant";
  if ((constraints & PLN_CONSTRAINT_SCALAR) && !(t && t->count == 1))
    return "is no constant of one element";
  if ((constraints & PLN_CONSTRAINT_SPLAT) &&
      !pln_rule_uniform(g, node, &number) &&
      !pln_rule_uniform_int(g, node, &integer))
    return "is no constant of equal elements";
  if ((constraints &
       (PLN_CONSTRAINT_FLOAT | PLN_CONSTRAINT_INT | PLN_CONSTRAINT_BOOL)) &&
      !has_dtype_class(e, type, constraints))
    return "has another dtype";
  if ((constraints & PLN_CONSTRAINT_STATIC) && !is_static(e, type))
    return "has a shape that is not static";
  if ((constraints & PLN_CONSTRAINT_ONCE) &&
      pln_rule_driver_uses(m->run, node) != 1)
    return "has other uses";
  if ((constraints & PLN_CONSTRAINT_ABSENT) &&
      g->nodes[node].kind != PLN_ABSENT)
    return "is given";
  return NULL;
}

/* --------------------------------------------------------------- structure */

/* The number of operands without trailing ones that are omitted. */
static uint32_t count_given(const pln_graph *g, uint32_t count,
                            const pln_ref *operands) {
  while (count && g->nodes[operands[count - 1]].kind == PLN_ABSENT)
    count--;
  return count;
}

/* Returns true if the pattern accepts a call with that many operands. Operands
 * that it does not list must be attributes in another form. */
static bool fits_count(const pln_pattern_node *p, pln_op op, uint32_t given) {
  return given >= p->n_least && (p->any_count || given <= p->n_args ||
                                 pln_rule_n_data(op) <= p->n_args);
}

bool pln_rule_has_op(const pln_rule_set *set, const pln_pattern_node *p,
                     pln_op op) {
  const pln_op *ops = set->ops + p->ops;
  uint32_t low = 0, high = p->n_ops;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (ops[middle] == op)
      return true;
    if (ops[middle] < op)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

/* Returns true if the definition that the rule is written for applies to the
 * call: ONNX's where ONNX has the operator, unless the rule says that it holds
 * for Relay's form. */
static bool has_known_form(const pln_rule_match *m, pln_ref call) {
  const pln_graph *g = pln_rule_graph(m);
  if (pln_rule_joined_tuple(&m->run->lets.now, g, call) != PLN_NONE)
    return !pln_attrs_has_refs(g->engine, g->nodes[call].attrs);
  bool known = m->rule->info.relay
                   ? !pln_attrs_has_refs(g->engine, g->nodes[call].attrs)
                   : pln_op_is_onnx_form(g, call);
  return known && pln_call_is_valid(g, call);
}

static pln_status bind_rest(pln_rule_match *m, const pln_pattern_node *p,
                            uint32_t count, const pln_ref *operands) {
  int64_t *to;
  uint32_t n = count > p->n_args ? count - p->n_args : 0;
  if (p->rest < 0)
    return PLN_OK;
  PLN_TRY(pln_rule_new_list(m, n, &m->slots[p->rest], &to));
  m->slots[p->rest].kind = PLN_VALUE_NODES;
  for (uint32_t i = 0; i < n; i++)
    to[i] = operands[p->n_args + i];
  return PLN_OK;
}

/* Returns true if the pattern may be a call of several results: below a field,
 * or where the replacement is one, too, or is written in C or Lua. */
static bool takes_results(const pln_rule_match *m, const pln_pattern_node *p) {
  const pln_ast *a = &m->rule->ast;
  if (p->parent != PLN_MATCH_ROOT)
    return m->set->patterns[m->variant->first + p->parent].kind ==
           PLN_MATCH_FIELD;
  return a->replacement == PLN_NONE ||
         a->nodes[a->replacement].kind == PLN_AST_TUPLE;
}

static pln_status match_call(pln_rule_match *m, uint32_t at,
                             const pln_pattern_node *p, pln_ref node,
                             bool *out) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_node *n = &g->nodes[node];
  uint32_t count;
  *out = false;
  if (n->kind != PLN_CALL || !n->data || !pln_rule_has_op(m->set, p, n->data)) {
    fails(m, at,
          n->kind == PLN_CALL && n->data ? "is a call of another operator"
                                         : "is no call of an operator");
    return PLN_OK;
  }
  if (n->results && !takes_results(m, p)) {
    fails(m, at, "has several results");
    return PLN_OK;
  }
  if (!has_known_form(m, node)) {
    fails(m, at, "is a call that rules do not apply to");
    return PLN_OK;
  }
  const pln_ref *operands =
      pln_rule_bound_operands(&m->run->lets.now, g, node, &count);
  uint32_t given = count_given(g, count, operands);
  if (!fits_count(p, n->data, given)) {
    fails(m, at, "has another number of operands");
    return PLN_OK;
  }
  if (p->op_slot >= 0)
    m->slots[p->op_slot] =
        (pln_rule_value){.kind = PLN_VALUE_NODE, .v.node = node};
  *out = true;
  return bind_rest(m, p, given, operands);
}

/* Binds the parts of an If, a Function or a Call beyond those listed. */
static pln_status bind_parts(pln_rule_match *m, const pln_pattern_node *p,
                             pln_ref node, uint32_t count) {
  const pln_graph *g = pln_rule_graph(m);
  int64_t *to;
  if (p->rest < 0)
    return PLN_OK;
  PLN_TRY(pln_rule_new_list(m, count - p->n_args, &m->slots[p->rest], &to));
  m->slots[p->rest].kind = PLN_VALUE_NODES;
  for (uint32_t i = p->n_args; i < count; i++)
    *to++ = pln_rule_operand_at(g, node, i);
  return PLN_OK;
}

/* A Let that is the body of another one, or of a scope, is no node that can be
 * replaced. */
static bool is_of_kind(const pln_pattern_node *p, const pln_node *n) {
  if (p->index == PLN_LET_BLOCK && n->kind == PLN_LET)
    return p->parent != PLN_MATCH_ROOT;
  return n->kind == p->index && !(n->kind == PLN_CALL && n->data);
}

/* What is replaced must not have an effect of its own. */
static pln_status match_kind(pln_rule_match *m, uint32_t at,
                             const pln_pattern_node *p, pln_ref node,
                             bool *out) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_node *n = &g->nodes[node];
  bool call = n->kind == PLN_CALL, owns = pln_owns(n) || n->kind == PLN_LET;
  *out = false;
  if (!is_of_kind(p, n)) {
    fails(m, at, "is a node of another kind");
  } else if (p->name && n->attrs != p->name) {
    fails(m, at, "has another name");
  } else if ((call || owns) && (n->flags & PLN_NODE_EFFECT)) {
    fails(m, at, "has an effect");
  } else if (n->kind != PLN_VAR && n->results && !takes_results(m, p)) {
    fails(m, at, "has several results");
  } else if (call || owns) {
    uint32_t count = pln_rule_n_parts(g, node);
    *out = (count >= p->n_args && (p->any_count || count == p->n_args)) ||
           fails(m, at, "has another number of operands");
    return *out ? bind_parts(m, p, node, count) : PLN_OK;
  } else {
    *out = true;
  }
  return PLN_OK;
}

static pln_status match_structure(pln_rule_match *m, uint32_t at,
                                  const pln_pattern_node *p, pln_ref node,
                                  bool *out) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_node *n = &g->nodes[node];
  *out = n->kind != PLN_LET || p->kind == PLN_MATCH_KIND ||
         fails(m, at, "is a let");
  if (!*out)
    return PLN_OK;
  switch ((pln_pattern_kind)p->kind) {
  case PLN_MATCH_CALL: return match_call(m, at, p, node, out);
  case PLN_MATCH_KIND: return match_kind(m, at, p, node, out);
  case PLN_MATCH_TUPLE:
    *out = (n->kind == PLN_TUPLE && n->count == p->n_args) ||
           fails(m, at, "is no tuple of that many fields");
    return PLN_OK;
  case PLN_MATCH_FIELD:
    *out = (n->kind == PLN_TUPLE_GET_ITEM && n->data == p->index) ||
           fails(m, at, "is no such field of a tuple");
    return PLN_OK;
  case PLN_MATCH_VALUE:
    *out = match_number(m, p, node) ||
           fails(m, at, "is no constant of that value");
    return PLN_OK;
  case PLN_MATCH_ANY: break;
  }
  return PLN_OK;
}

/* Returns true if the pattern asks for what a variable is bound to, and not for
 * a variable or for any node. */
static bool is_of_value(const pln_pattern_node *p) {
  const uint32_t constants =
      PLN_CONSTRAINT_CONST | PLN_CONSTRAINT_SCALAR | PLN_CONSTRAINT_SPLAT;
  switch ((pln_pattern_kind)p->kind) {
  case PLN_MATCH_KIND: return p->index != PLN_VAR;
  case PLN_MATCH_ANY: return (p->constraints & constants) != 0;
  default: return true;
  }
}

/* The node that a pattern is compared with; PLN_NONE: an omitted operand. */
static pln_ref fetch_operand(const pln_rule_match *m,
                             const pln_pattern_node *p) {
  const pln_graph *g = pln_rule_graph(m);
  if (p->parent == PLN_MATCH_ROOT)
    return m->roots[p->arg];
  pln_ref parent = m->nodes[p->parent];
  if (parent == PLN_NONE)
    return PLN_NONE;
  pln_ref node = pln_rule_bound_operand(&m->run->lets.now, g, parent, p->arg,
                                        is_of_value(p));
  return node != PLN_NONE && p->optional && g->nodes[node].kind == PLN_ABSENT
             ? PLN_NONE
             : node;
}

/* A variable that a let binds is its value. */
static bool is_same_node(const pln_rule_match *m, pln_ref a, pln_ref b) {
  return a == b ||
         (m->run->lets.now.n && pln_rule_bound_value(&m->run->lets.now, a) ==
                                    pln_rule_bound_value(&m->run->lets.now, b));
}

pln_status pln_rule_match_node(pln_rule_match *m, uint32_t at,
                               const pln_pattern_node *p, pln_ref node,
                               bool *out) {
  m->nodes[at] = node;
  *out = p->optional || (p->constraints & PLN_CONSTRAINT_ABSENT);
  if (node == PLN_NONE) {
    if (!*out)
      fails(m, at, "is not there");
    return PLN_OK;
  }
  PLN_TRY(match_structure(m, at, p, node, out));
  if (!*out)
    return PLN_OK;
  const char *reason =
      p->constraints ? failed_constraint(m, p->constraints, node) : NULL;
  if (reason) {
    *out = fails(m, at, reason);
    return PLN_OK;
  }
  if (p->slot < 0)
    return PLN_OK;
  pln_rule_value *slot = &m->slots[p->slot];
  if (p->again && !is_same_node(m, slot->v.node, node))
    *out = fails(m, at, "is another node than before");
  *slot = (pln_rule_value){.kind = PLN_VALUE_NODE, .v.node = node};
  return PLN_OK;
}

/* -------------------------------------------------------------- attributes */

static pln_status match_attr(pln_rule_match *m, pln_ref call,
                             const pln_attr_pattern *a, bool *out) {
  pln_rule_value value, wanted;
  PLN_TRY(pln_rule_attribute(m, call, a->name, &value));
  if (a->slot >= 0) {
    m->slots[a->slot] = value;
    *out = value.kind != PLN_VALUE_UNKNOWN;
    return PLN_OK;
  }
  PLN_TRY(pln_rule_evaluate(m, a->expression, &wanted));
  if (value.kind == PLN_VALUE_NONE && wanted.kind != PLN_VALUE_NONE)
    PLN_TRY(pln_rule_omitted(m, call, a->name, &value));
  /* Floats that operators have as attributes are rounded to float32. */
  if (value.kind == PLN_VALUE_FLOAT && wanted.kind == PLN_VALUE_FLOAT)
    wanted.v.f = (double)(float)wanted.v.f;
  *out = pln_rule_value_equal(m, &value, &wanted, out) && *out;
  return PLN_OK;
}

pln_status pln_rule_match_attrs(pln_rule_match *m, uint32_t count, bool *out) {
  const pln_rule_variant *v = m->variant;
  *out = true;
  for (uint32_t i = 0; *out && i < count; i++) {
    const pln_pattern_node *p = &m->set->patterns[v->first + i];
    if (m->nodes[i] == PLN_NONE)
      continue;
    for (uint32_t k = 0; *out && k < p->n_attrs; k++) {
      PLN_TRY(match_attr(m, m->nodes[i], &m->set->attrs[p->attrs + k], out));
      if (!*out) {
        m->failed_attribute = m->set->attrs[p->attrs + k].expression;
        fails(m, i, "has another value of the attribute");
      }
    }
  }
  return PLN_OK;
}

pln_status pln_rule_match_variant(pln_rule_match *m, bool *out) {
  const pln_rule_variant *v = m->variant;
  uint32_t count = m->anchor_only ? v->n_anchor : v->count;
  m->roots[v->anchor] = m->root;
  m->rule = &m->set->rules[v->rule];
  m->failed_at = m->failed_attribute = PLN_NONE;
  m->reason = NULL;
  m->run->n_pool = 0;
  memset(m->slots, 0, m->rule->n_vars * sizeof *m->slots);
  for (uint32_t i = 0; i < count; i++) {
    const pln_pattern_node *p = &m->set->patterns[v->first + i];
    PLN_TRY(pln_rule_match_node(m, i, p, fetch_operand(m, p), out));
    if (!*out)
      return PLN_OK;
  }
  return pln_rule_match_attrs(m, count, out);
}

pln_status pln_rule_check_condition(pln_rule_match *m, bool *out) {
  const pln_rule_entry *rule = m->rule;
  pln_rule_value value;
  *out = true;
  if (rule->ast.condition != PLN_NONE) {
    PLN_TRY(pln_rule_evaluate(m, rule->ast.condition, &value));
    *out = value.kind == PLN_VALUE_BOOL && value.v.b;
    if (!*out)
      fails(m, PLN_NONE,
            value.kind == PLN_VALUE_UNKNOWN
                ? "its condition is not known to hold"
                : "its condition does not hold");
  }
  if (!*out || !rule->info.condition)
    return PLN_OK;
  PLN_TRY(rule->info.condition(rule->info.ud, m, out, NULL));
  if (!*out)
    fails(m, PLN_NONE, "its condition does not hold");
  return PLN_OK;
}
