/* annotate_target.c: AnnotateTarget: marks for each call which compiler takes
 * it.
 *
 * Run by the executor, once per function. Requires a verified graph. A call
 * goes to the first of the targets that supports it: its operator has the
 * attribute target.NAME, which is true or a function that answers true for the
 * call, or its callee is a function whose attribute Composite begins with
 * "NAME."; else to "default". With include_non_call_ops tuples, their fields
 * and references go where all their operands come from. Composite functions
 * are not entered. Annotations that are there already are kept, those for
 * "default" may go to one of the targets.
 *
 *     nn.relu(%x)   =>   %0 = annotation.compiler_begin(%x, compiler="dnnl");
 *                        %1 = nn.relu(%0);
 *                        annotation.compiler_end(%1, compiler="dnnl")
 *
 * Semantics: TVM AnnotateTarget. */

#include <stdio.h>

#include "ir/op_attr.h"
#include "transform/partition/annotation.h"
#include "transform/transform.h"

/* Of a node: no compiler, because it is no call, tuple or reference. */
#define NO_TARGET 0xffffffffu

typedef struct annotator {
  pln_engine *engine;
  const pln_graph *g;
  pln_annotation_ops ops;
  pln_attr targets;
  bool all;           /* also what is no call */
  pln_symbol *target; /* by old node: its compiler; 0: none has been decided */
  pln_scope *node_scope; /* by old node */
  uint8_t *has_lets;     /* by scope */
  uint8_t *in_composite; /* by scope: in a composite function */
  pln_ref *condition;    /* by old If: the condition with its end */
  pln_ref *args;         /* scratch: operands of one node */
  uint8_t *keeps;        /* scratch: an operand that has its begin */
  uint32_t cap_args;
} annotator;

/* ------------------------------------------------------ what the graph has */

static bool is_composite(const pln_graph *g, pln_ref function) {
  const pln_node *n = &g->nodes[function];
  return n->kind == PLN_FUNCTION &&
         pln_attrs_find(g->engine, n->attrs, "Composite") != NULL;
}

static void read_scopes(annotator *a) {
  const pln_graph *g = a->g;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    const pln_scope_row *row = &g->scopes[s];
    a->in_composite[s] =
        a->in_composite[row->parent] || is_composite(g, row->owner);
  }
}

static void find_lets(annotator *a) {
  for (pln_ref ref = 0; ref < a->g->n_nodes; ref++)
    if (a->g->nodes[ref].kind == PLN_LET)
      a->has_lets[a->node_scope[ref]] = 1;
}

/* ------------------------------------------------------------------ targets */

/* Whether the operator's attribute target.NAME takes the call. */
static pln_status op_takes(const annotator *a, pln_ref old, pln_slice target,
                           bool *takes) {
  char key[160];
  pln_op op = a->g->nodes[old].data;
  snprintf(key, sizeof key, "target.%.*s", (int)target.size, target.data);
  const pln_op_attr *attr = pln_op_attr_get(a->engine, op, key);
  *takes = attr && (attr->is_function || attr->value.kind == PLN_ATTR_STRING ||
                    attr->value.v.i != 0);
  if (!attr || !attr->is_function)
    return PLN_OK;
  pln_op_value argument = {.kind = PLN_OP_OLD_NODE, .v.node = old};
  pln_op_value answer = {.kind = PLN_OP_BOOL};
  pln_op_call call = {.graph = a->g,
                      .node = old,
                      .n_args = 1,
                      .args = &argument,
                      .result = &answer};
  PLN_TRY(pln_op_attr_call(a->engine, op, key, &call, takes));
  *takes = answer.v.i != 0;
  return PLN_OK;
}

/* Whether the callee is a composite function for the target. */
static bool composite_is_for(const annotator *a, pln_ref callee,
                             pln_slice target) {
  const pln_node *n = &a->g->nodes[callee];
  if (n->kind != PLN_FUNCTION)
    return false;
  pln_slice name = pln_attrs_string(a->engine, n->attrs, "Composite", "");
  return name.size > target.size && name.data[target.size] == '.' &&
         !memcmp(name.data, target.data, target.size) &&
         !memchr(target.data, '.', target.size);
}

/* The compiler that a begin around the first argument names; 0: none, or
 * "default". */
static pln_status annotated_target(const annotator *a, const pln_node *n,
                                   uint32_t first, pln_symbol *out) {
  *out = 0;
  if (n->count <= first)
    return PLN_OK;
  const pln_node *arg = &a->g->nodes[a->g->operands[n->first + first]];
  if (!pln_is_call_of_op(arg, a->ops.begin))
    return PLN_OK;
  PLN_TRY(pln_annotation_compiler(&a->ops, arg, out));
  if (*out == a->ops.fallback)
    *out = 0;
  return PLN_OK;
}

static pln_status target_of_call(const annotator *a, pln_ref old,
                                 pln_symbol *out) {
  const pln_node *n = &a->g->nodes[old];
  bool takes = false;
  PLN_TRY(annotated_target(a, n, n->data ? 0 : 1, out));
  for (uint32_t i = 0; i < a->targets.count && !*out; i++) {
    pln_slice target = a->targets.v.strings[i];
    if (n->data)
      PLN_TRY(op_takes(a, old, target, &takes));
    else
      takes = composite_is_for(a, pln_operand(a->g, old, 0), target);
    if (takes)
      PLN_TRY(pln_symbol_intern(a->engine, target, out));
  }
  if (!*out)
    *out = a->ops.fallback;
  return PLN_OK;
}

/* -------------------------------------------------------------- annotations */

static pln_status annotate(const annotator *a, pln_rewrite *rw, pln_op op,
                           pln_symbol compiler, pln_ref value, pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(rw);
  return b ? pln_annotate(&a->ops, b, op, compiler, value, out) : PLN_ERR_NOMEM;
}

/* A call without arguments, such as zeros: no begin leads to it. */
static bool takes_nothing(const pln_node *n) {
  return n->kind == PLN_CALL && n->count == (n->data ? 0u : 1u);
}

/* Ends what computes `old`. */
static pln_status end_value(const annotator *a, pln_rewrite *rw, pln_ref old,
                            pln_ref *value) {
  if (a->target[old] == NO_TARGET || takes_nothing(&a->g->nodes[old]))
    return PLN_OK;
  return annotate(a, rw, a->ops.end, a->target[old], *value, value);
}

/* What stands inside of a begin that is there already: the compiler whose end
 * it takes. */
static pln_status target_in_begin(const annotator *a, const pln_graph *g,
                                  pln_ref begin, pln_symbol *out) {
  const pln_node *inner = &g->nodes[pln_operand(g, begin, 0)];
  *out = a->ops.fallback;
  return pln_is_call_of_op(inner, a->ops.end)
             ? pln_annotation_compiler(&a->ops, inner, out)
             : PLN_OK;
}

/* Ends one operand: *arg is its image. *from is the compiler that it comes
 * from, *keeps whether its begin stays. */
static pln_status end_operand(annotator *a, pln_rewrite *rw, pln_ref old,
                              pln_ref *arg, pln_symbol *from, uint8_t *keeps) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[*arg];
  pln_symbol own;
  *from = a->ops.fallback;
  *keeps = 0;
  if (pln_is_call_of_op(n, a->ops.begin)) {
    PLN_TRY(pln_annotation_compiler(&a->ops, n, &own));
    PLN_TRY(target_in_begin(a, g, *arg, from));
    *keeps = own != a->ops.fallback;
    if (!*keeps)
      *arg = pln_operand(g, *arg, 0);
    return PLN_OK;
  }
  if (a->target[old] == NO_TARGET)
    return PLN_OK;
  *from = a->target[old];
  if (takes_nothing(n))
    return PLN_OK;
  return annotate(a, rw, a->ops.end, *from, *arg, arg);
}

static pln_status make_args_room(annotator *a, uint32_t n) {
  uint32_t cap = a->cap_args;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->args, &cap, n + (size_t)1,
                       sizeof *a->args));
  return pln_mem_grow(a->engine, (void **)&a->keeps, &a->cap_args,
                      n + (size_t)1, 1);
}

/* Annotates the operands of `old` from `first` on, in a->args. *target: given,
 * or 0 for the one that all come from. */
static pln_status annotate_operands(annotator *a, pln_rewrite *rw, pln_ref old,
                                    uint32_t first, pln_symbol *target) {
  pln_node n = a->g->nodes[old];
  pln_symbol common = 0, from;
  PLN_TRY(make_args_room(a, n.count));
  for (uint32_t i = 0; i < n.count; i++) {
    pln_ref operand = a->g->operands[n.first + i];
    a->args[i] = pln_rewrite_image(rw, operand);
    a->keeps[i] = i < first;
    if (i < first)
      continue;
    PLN_TRY(end_operand(a, rw, operand, &a->args[i], &from, &a->keeps[i]));
    if (i == first)
      common = from;
    else if (common != from)
      common = a->ops.fallback;
  }
  if (!*target)
    *target = common;
  for (uint32_t i = first; i < n.count && common; i++)
    if (!a->keeps[i])
      PLN_TRY(annotate(a, rw, a->ops.begin, *target, a->args[i], &a->args[i]));
  return PLN_OK;
}

/* Ends the operands of `old` from `first` on, in a->args. */
static pln_status end_operands(annotator *a, pln_rewrite *rw, pln_ref old,
                               uint32_t first) {
  pln_node n = a->g->nodes[old];
  PLN_TRY(make_args_room(a, n.count));
  for (uint32_t i = 0; i < n.count; i++) {
    pln_ref operand = a->g->operands[n.first + i];
    a->args[i] = pln_rewrite_image(rw, operand);
    if (i >= first)
      PLN_TRY(end_value(a, rw, operand, &a->args[i]));
  }
  return PLN_OK;
}

/* The node's type does not follow from its operands alone, where it is data: it
 * keeps what was known. */
static pln_status keep_known_type(pln_builder *b, pln_type known,
                                  pln_ref node) {
  pln_type *type = &b->graph->nodes[node].type, met;
  bool conflict;
  if (*type == known)
    return PLN_OK;
  PLN_TRY(pln_type_meet(b->engine, *type, known, &met, &conflict));
  if (conflict || met == *type)
    return PLN_OK;
  *type = met;
  pln_type_digest_record(b->graph, node);
  return PLN_OK;
}

/* Builds the node again with the operands in a->args. */
static pln_status rebuild(const annotator *a, pln_rewrite *rw, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_node n = g->nodes[*node];
  bool same = true;
  for (uint32_t i = 0; i < n.count; i++)
    same = same && a->args[i] == g->operands[n.first + i];
  if (same)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  if (n.kind == PLN_LET)
    return pln_build_let(b, a->args[0], a->args[1], node);
  PLN_TRY(pln_builder_add(b, &n, n.count, a->args, node));
  return keep_known_type(b, n.type, *node);
}

/* ----------------------------------------------------------------- visiting */

/* An end takes the compiler that its operand has now. */
static pln_status visit_end(annotator *a, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  pln_ref operand = pln_operand(a->g, old, 0);
  pln_symbol own;
  PLN_TRY(pln_annotation_compiler(&a->ops, &a->g->nodes[old], &own));
  if (a->target[operand] == NO_TARGET)
    a->target[operand] = own;
  if (a->target[operand] == own)
    return PLN_OK;
  return annotate(a, rw, a->ops.end, a->target[operand],
                  pln_rewrite_image(rw, operand), node);
}

static pln_status visit_call(annotator *a, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  const pln_node *n = &a->g->nodes[old];
  uint32_t first = n->data ? 0 : 1;
  if (pln_is_call_of_op(n, a->ops.begin))
    return PLN_OK;
  if (pln_is_call_of_op(n, a->ops.end))
    return visit_end(a, rw, old, node);
  bool of_variable =
      first && a->g->nodes[pln_operand(a->g, old, 0)].kind == PLN_VAR;
  if (of_variable && !a->all) {
    PLN_TRY(end_operands(a, rw, old, first));
    return rebuild(a, rw, node);
  }
  PLN_TRY(target_of_call(a, old, &a->target[old]));
  PLN_TRY(annotate_operands(a, rw, old, first, &a->target[old]));
  return rebuild(a, rw, node);
}

static pln_status visit_operands(annotator *a, pln_rewrite *rw, pln_ref old,
                                 pln_ref *node) {
  pln_symbol target = 0;
  if (a->all) {
    PLN_TRY(annotate_operands(a, rw, old, 0, &target));
    a->target[old] = target;
  } else {
    PLN_TRY(end_operands(a, rw, old, 0));
  }
  return rebuild(a, rw, node);
}

static pln_status visit_let(annotator *a, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  pln_ref value = pln_operand(a->g, old, 1);
  pln_symbol target = 0;
  if (a->g->nodes[value].kind == PLN_FUNCTION)
    return PLN_OK;
  PLN_TRY(annotate_operands(a, rw, old, 1, &target));
  return rebuild(a, rw, node);
}

/* The end of the condition stands before the branches. */
static void set_condition(const annotator *a, pln_rewrite *rw, pln_ref old,
                          pln_ref node) {
  pln_builder *b = pln_rewrite_builder(rw);
  if (b && a->condition[old] != PLN_NONE)
    b->graph->operands[b->graph->nodes[node].first] = a->condition[old];
}

static pln_status visit_node(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  annotator *a = ud;
  if (a->in_composite[a->node_scope[old]])
    return PLN_OK;
  switch ((pln_kind)a->g->nodes[old].kind) {
  case PLN_CALL: return visit_call(a, rw, old, node);
  case PLN_LET: return visit_let(a, rw, old, node);
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM:
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return visit_operands(a, rw, old, node);
  case PLN_IF: set_condition(a, rw, old, *node); return PLN_OK;
  default: return PLN_OK;
  }
}

static pln_status enter_scope(void *ud, pln_rewrite *rw, pln_scope scope,
                              pln_scope_action *action) {
  annotator *a = ud;
  pln_ref owner = a->g->scopes[scope].owner;
  const pln_node *n = &a->g->nodes[owner];
  (void)action;
  if (a->in_composite[scope] || n->kind != PLN_IF || n->data != scope)
    return PLN_OK;
  pln_ref old = pln_operand(a->g, owner, 0);
  pln_ref image = pln_rewrite_image(rw, old), ended = image;
  PLN_TRY(end_value(a, rw, old, &ended));
  a->condition[owner] = ended == image ? PLN_NONE : ended;
  return PLN_OK;
}

/* The result of a body is ended; that of a Match's arm only behind lets. */
static pln_status leave_scope(void *ud, pln_rewrite *rw, pln_scope scope,
                              pln_ref *result) {
  annotator *a = ud;
  const pln_scope_row *row = &a->g->scopes[scope];
  if (a->in_composite[scope] ||
      (a->g->nodes[row->owner].kind == PLN_MATCH && !a->has_lets[scope]))
    return PLN_OK;
  return end_value(a, rw, row->result, result);
}

/* ---------------------------------------------------------------------- pass
 */

static void *table(const annotator *a, size_t n, size_t size) {
  return pln_mem_zeroed(a->engine, (n + 1) * size);
}

static pln_status begin(annotator *a) {
  size_t nodes = a->g->n_nodes, scopes = a->g->n_scopes;
  a->target = table(a, nodes, sizeof *a->target);
  a->node_scope = table(a, nodes, sizeof *a->node_scope);
  a->condition = table(a, nodes, sizeof *a->condition);
  a->has_lets = table(a, scopes, 1);
  a->in_composite = table(a, scopes, 1);
  if (!a->target || !a->node_scope || !a->condition || !a->has_lets ||
      !a->in_composite)
    return pln_nomem(a->engine);
  memset(a->target, 0xff, (nodes + 1) * sizeof *a->target);
  memset(a->condition, 0xff, (nodes + 1) * sizeof *a->condition);
  pln_graph_node_scopes(a->g, a->node_scope);
  read_scopes(a);
  find_lets(a);
  return PLN_OK;
}

static void end(annotator *a) {
  pln_engine *e = a->engine;
  size_t nodes = a->g->n_nodes + (size_t)1, scopes = a->g->n_scopes + (size_t)1;
  pln_mem_free(e, a->target, nodes * sizeof *a->target);
  pln_mem_free(e, a->node_scope, nodes * sizeof *a->node_scope);
  pln_mem_free(e, a->condition, nodes * sizeof *a->condition);
  pln_mem_free(e, a->has_lets, scopes);
  pln_mem_free(e, a->in_composite, scopes);
  pln_mem_free(e, a->args, a->cap_args * sizeof *a->args);
  pln_mem_free(e, a->keeps, a->cap_args);
}

pln_status pln_pass_annotate_target(pln_pass_run *run) {
  annotator a = {.engine = pln_run_engine(run), .g = pln_run_function(run)};
  pln_mutator mutator = {.ud = &a,
                         .visit = visit_node,
                         .enter = enter_scope,
                         .leave = leave_scope};
  a.all = pln_run_int(run, "include_non_call_ops") != 0;
  pln_run_option(run, "targets", &a.targets);
  PLN_TRY(pln_annotation_ops_find(a.engine, &a.ops));
  pln_status status = begin(&a);
  if (status == PLN_OK)
    status = pln_rewrite_function(run, &mutator);
  end(&a);
  return status;
}
