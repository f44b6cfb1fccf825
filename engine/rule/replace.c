/* replace.c: builds the replacement of a matched rule.
 *
 * The right side of the rule is evaluated in postorder: operators become calls
 * in the new graph, numbers become constants of the dtype of the other
 * operands, attribute expressions are values. Called by drive.c; a replacement
 * that would be ill-typed or needs an unknown value is no replacement. */

#include "ir/rewrite/rewrite.h"
#include "rule/set.h"

enum { MAX_OPERANDS = 64 };

typedef struct replacing {
  pln_rule_match *m;
  pln_builder *b;
  bool gave_up; /* there is no replacement */
} replacing;

/* A call being built. */
typedef struct new_call {
  pln_op op;
  pln_attrs attrs;
  uint32_t n_results, n;
  pln_ref args[MAX_OPERANDS];
  bool as_operands; /* attributes that may be operands are operands */
} new_call;

static pln_status give_up(replacing *r) {
  r->gave_up = true;
  return PLN_OK;
}

static const pln_graph *graph(const replacing *r) {
  return r->b->graph;
}

/* ----------------------------------------------------------------- constants
 */

/* Builds a constant of equal elements; PLN_NONE if the dtype has no such
 * value. */
static pln_status build_number(replacing *r, pln_dtype dtype, uint32_t rank,
                               const int64_t *dims, const pln_rule_value *value,
                               pln_ref *out) {
  pln_engine *e = r->m->run->engine;
  pln_tensor *tensor = NULL;
  double number;
  *out = PLN_NONE;
  if (!pln_rule_number(value, &number))
    return give_up(r);
  if (value->kind == PLN_VALUE_INT)
    PLN_TRY(pln_tensor_full_int(e, dtype, rank, dims, value->v.i, &tensor));
  else
    PLN_TRY(pln_tensor_full(e, dtype, rank, dims, number, &tensor));
  if (!tensor)
    return give_up(r);
  pln_status status = pln_build_constant(r->b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

/* A vector of int64; dims that are not constant have no constant. */
static pln_status build_list(replacing *r, const pln_rule_value *list,
                             pln_ref *out) {
  const int64_t *elements = pln_rule_list(r->m, list);
  int64_t dims[1] = {list->count};
  pln_tensor *tensor;
  for (uint32_t i = 0; i < list->count; i++)
    if (!PLN_DIM_IS_CONST(elements[i]))
      return give_up(r);
  PLN_TRY(pln_tensor_from_bytes(r->m->run->engine, PLN_INT64, 1, dims, elements,
                                list->count * sizeof *elements, &tensor));
  pln_status status = pln_build_constant(r->b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

/* ---------------------------------------------------------------- attributes
 */

/* The target shape of a reshape of `x`: constants, 0 for the extent of x on the
 * same axis, at most one -1. */
static pln_status encode_shape(replacing *r, pln_ref x, pln_rule_value *list) {
  pln_engine *e = r->m->run->engine;
  pln_type type = graph(r)->nodes[x].type;
  uint32_t open = 0, n = list->count;
  int64_t *to;
  pln_rule_value given = *list;
  bool symbolic = false, zero = false;
  for (uint32_t i = 0; i < n; i++) {
    symbolic |= !PLN_DIM_IS_CONST(pln_rule_list(r->m, list)[i]);
    zero |= pln_rule_list(r->m, list)[i] == 0;
  }
  if (!symbolic)
    return PLN_OK;
  PLN_TRY(pln_rule_new_list(r->m, n, list, &to));
  for (uint32_t i = 0; i < n; i++) {
    pln_dim dim = pln_rule_list(r->m, &given)[i];
    bool same = (int32_t)i < pln_type_rank(e, type) && dim != PLN_DIM_UNKNOWN &&
                pln_type_dims(e, type)[i] == dim;
    to[i] = PLN_DIM_IS_CONST(dim) ? dim : same ? 0 : -1;
    open += to[i] == -1;
    if (dim == PLN_DIM_UNKNOWN)
      return give_up(r);
  }
  return open > 1 || (open && zero) || zero ? give_up(r) : PLN_OK;
}

/* Returns true if the schema says that the attribute has that kind. */
static bool schema_says(const pln_engine *e, pln_op op, pln_slice name,
                        const char *kind) {
  pln_slice core;
  const char *at =
      pln_rule_find_in_schema(pln_op_row(e, op)->attrs, name, &core);
  return at && *at == ':' && !strncmp(at + 1, kind, strlen(kind));
}

/* The value as an attribute; false if it is not known. */
static bool to_attr(replacing *r, pln_op op, pln_slice name,
                    const pln_rule_value *v, pln_attr *out) {
  const pln_engine *e = r->m->run->engine;
  double number;
  pln_symbol symbol = out->name;
  switch ((pln_rule_value_kind)v->kind) {
  case PLN_VALUE_INT:
  case PLN_VALUE_BOOL:
  case PLN_VALUE_FLOAT:
    if (!pln_rule_number(v, &number))
      return false;
    out->kind = PLN_ATTR_INT;
    out->v.i = v->kind == PLN_VALUE_INT ? v->v.i : number != 0;
    if (v->kind == PLN_VALUE_FLOAT || schema_says(e, op, name, "float")) {
      out->kind = PLN_ATTR_FLOAT;
      out->v.f = (double)(float)number;
    }
    return true;
  case PLN_VALUE_STRING:
    out->kind = PLN_ATTR_STRING;
    out->v.s = v->v.s;
    if (schema_says(e, op, name, "int") && pln_dtype_find(v->v.s)) {
      out->kind = PLN_ATTR_INT; /* ONNX numbers dtypes, Relay names them */
      out->v.i = pln_dtype_find(v->v.s);
    }
    return true;
  case PLN_VALUE_LIST:
    out->kind = PLN_ATTR_INTS;
    out->count = v->count;
    out->v.ints = pln_rule_list(r->m, v);
    for (uint32_t i = 0; i < v->count; i++)
      if (!PLN_DIM_IS_CONST(out->v.ints[i]))
        return false;
    return true;
  case PLN_VALUE_ATTR:
    *out = *v->v.attr;
    out->name = symbol;
    return true;
  case PLN_VALUE_NONE:
  case PLN_VALUE_UNKNOWN:
  case PLN_VALUE_NODE:
  case PLN_VALUE_NODES: break;
  }
  return false;
}

static pln_status set_attr(replacing *r, new_call *c, pln_slice name,
                           const pln_rule_value *v) {
  pln_engine *e = r->m->run->engine;
  pln_attr attr = {0};
  PLN_TRY(pln_symbol_intern(e, name, &attr.name));
  if (v->kind == PLN_VALUE_NONE)
    return pln_attrs_without(e, c->attrs, pln_symbol_text(e, attr.name).data,
                             &c->attrs);
  if (!to_attr(r, c->op, name, v, &attr))
    return give_up(r);
  return pln_attrs_with(e, c->attrs, &attr, &c->attrs);
}

static pln_status set_operand(replacing *r, new_call *c, uint32_t index,
                              pln_ref node) {
  if (index >= MAX_OPERANDS)
    return give_up(r);
  while (c->n <= index)
    PLN_TRY(pln_build_absent(r->b, &c->args[c->n++]));
  c->args[index] = node;
  return PLN_OK;
}

/* The attribute `name` as operand `index`. */
static pln_status set_parameter(replacing *r, new_call *c, uint32_t index,
                                const pln_rule_value *v) {
  pln_ref node;
  double number;
  if (v->kind == PLN_VALUE_NONE)
    return PLN_OK;
  if (v->kind == PLN_VALUE_LIST) {
    PLN_TRY(build_list(r, v, &node));
  } else if (pln_rule_number(v, &number) && c->n) {
    const pln_graph *g = graph(r);
    bool integer = v->kind == PLN_VALUE_INT;
    pln_dtype dtype = pln_type_dtype(g->engine, g->nodes[c->args[0]].type);
    PLN_TRY(build_number(r, integer ? PLN_INT64 : dtype, 0, NULL, v, &node));
  } else {
    return give_up(r);
  }
  return r->gave_up ? PLN_OK : set_operand(r, c, index, node);
}

static pln_status set_results(replacing *r, new_call *c,
                              const pln_rule_value *v) {
  double n;
  if (!pln_rule_number(v, &n) || n < 0 || n > 1 << 16)
    return give_up(r);
  c->n_results = (uint32_t)n;
  return PLN_OK;
}

/* Gives the call an attribute, in the form that the matched calls have. */
static pln_status give_attribute(replacing *r, new_call *c, pln_slice name,
                                 pln_rule_value v) {
  pln_engine *e = r->m->run->engine;
  if (pln_slice_is(name, PLN_RULE_RESULTS))
    return set_results(r, c, &v);
  pln_slice core = pln_rule_core_name(e, c->op, name);
  if (!core.size)
    core = name;
  uint32_t index = pln_rule_parameter(c->op, core);
  if (v.kind == PLN_VALUE_LIST && c->op == PLN_OP_RESHAPE && c->n)
    PLN_TRY(encode_shape(r, c->args[0], &v));
  if (r->gave_up || v.kind == PLN_VALUE_UNKNOWN)
    return give_up(r);
  pln_slice own;
  bool has_attr =
      pln_rule_find_in_schema(pln_op_row(e, c->op)->attrs, core, &own) != NULL;
  return index != PLN_NONE && (c->as_operands || !has_attr)
             ? set_parameter(r, c, index, &v)
             : set_attr(r, c, core, &v);
}

/* Returns true if a matched call has an attribute as an operand, so that the
 * replacement should have, too. */
static bool matched_operand_form(const replacing *r) {
  const pln_rule_match *m = r->m;
  const pln_graph *g = graph(r);
  for (uint32_t i = 0; i < m->variant->count; i++) {
    pln_ref node = m->nodes[i];
    if (node == PLN_NONE || g->nodes[node].kind != PLN_CALL)
      continue;
    const pln_node *n = &g->nodes[node];
    if (n->data && pln_rule_n_data(n->data) < n->count)
      return true;
  }
  return false;
}

/* The number of the operand of `to` that is the same attribute as operand
 * `operand` of `from`; PLN_NONE: there is none. */
static uint32_t same_parameter(pln_op from, uint32_t operand, pln_op to) {
  const char *name = pln_rule_parameter_name(from, operand);
  return from == to ? operand
         : name     ? pln_rule_parameter(to, pln_text(name))
                    : PLN_NONE;
}

/* All attributes of a bound call, those that are operands among them. */
static pln_status spread_attributes(replacing *r, new_call *c, pln_ref call) {
  const pln_node *n = &graph(r)->nodes[call];
  c->attrs = n->attrs;
  for (uint32_t i = pln_rule_n_data(n->data); i < n->count; i++) {
    uint32_t to = same_parameter(n->data, i, c->op);
    if (to == PLN_NONE)
      return give_up(r);
    c->as_operands = true;
    PLN_TRY(set_operand(r, c, to, graph(r)->operands[n->first + i]));
    n = &graph(r)->nodes[call];
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- calls
 */

static pln_dtype first_dtype(const replacing *r, const new_call *c) {
  const pln_graph *g = graph(r);
  for (uint32_t i = 0; i < c->n; i++) {
    pln_dtype dtype =
        c->args[i] == PLN_NONE
            ? PLN_DTYPE_NONE
            : pln_type_dtype(g->engine, g->nodes[c->args[i]].type);
    if (dtype)
      return dtype;
  }
  return pln_type_dtype(g->engine, g->nodes[r->m->root].type);
}

/* Appends an operand; numbers are converted when all operands are known. */
static pln_status add_operand(replacing *r, new_call *c,
                              const pln_rule_value *v) {
  if (v->kind == PLN_VALUE_NODES) {
    if (v->count > MAX_OPERANDS - c->n)
      return give_up(r);
    for (uint32_t i = 0; i < v->count; i++)
      c->args[c->n++] = (pln_ref)pln_rule_list(r->m, v)[i];
    return PLN_OK;
  }
  if (c->n == MAX_OPERANDS)
    return give_up(r);
  if (v->kind == PLN_VALUE_NONE)
    return pln_build_absent(r->b, &c->args[c->n++]);
  if (v->kind == PLN_VALUE_LIST)
    return build_list(r, v, &c->args[c->n++]);
  c->args[c->n++] = v->kind == PLN_VALUE_NODE ? v->v.node : PLN_NONE;
  return PLN_OK;
}

static void drop_trailing_absent(const replacing *r, new_call *c) {
  const pln_graph *g = graph(r);
  while (c->n && c->args[c->n - 1] != PLN_NONE &&
         g->nodes[c->args[c->n - 1]].kind == PLN_ABSENT)
    c->n--;
}

static pln_status convert_numbers(replacing *r, new_call *c,
                                  const pln_ast_node *n) {
  const pln_ast *a = &r->m->rule->ast;
  pln_dtype dtype = first_dtype(r, c);
  uint32_t at = 0;
  for (uint32_t i = 0; i < n->count && at < c->n; i++) {
    uint32_t operand = a->operands[n->first + i];
    const pln_rule_value *v = &r->m->run->values[operand];
    if (a->nodes[operand].kind == PLN_AST_NAMED ||
        a->nodes[operand].kind == PLN_AST_SPREAD)
      continue;
    if (c->args[at] == PLN_NONE) {
      PLN_TRY(build_number(r, dtype, 0, NULL, v, &c->args[at]));
      if (r->gave_up)
        return PLN_OK;
    }
    at += v->kind == PLN_VALUE_NODES ? v->count : 1;
  }
  return PLN_OK;
}

/* Returns true if a matched call joins a tuple, so that the replacement should,
 * too. */
static bool matched_joined_tuple(const replacing *r) {
  const pln_rule_match *m = r->m;
  for (uint32_t i = 0; i < m->variant->count; i++)
    if (m->nodes[i] != PLN_NONE &&
        pln_rule_joined_tuple(&m->run->lets.now, graph(r), m->nodes[i]) !=
            PLN_NONE)
      return true;
  return false;
}

/* Gives a joining operator a tuple of its operands. */
static pln_status join_operands(replacing *r, new_call *c) {
  const pln_op_info *row = pln_op_row(r->m->run->engine, c->op);
  if (!(row->traits & PLN_TRAIT_JOIN) || !matched_joined_tuple(r))
    return PLN_OK;
  PLN_TRY(pln_build_tuple(r->b, c->n, c->args, &c->args[0]));
  c->n = 1;
  return PLN_OK;
}

/* Builds the call. An ill-typed one is an error of the rule; a lenient run,
 * over calls that files may have declared wrongly, takes it for no replacement.
 */
static pln_status finish_call(replacing *r, new_call *c, pln_rule_value *out) {
  pln_engine *e = r->m->run->engine;
  size_t mark = pln_diag_count(e);
  pln_ref node;
  PLN_TRY(join_operands(r, c));
  pln_status status =
      pln_build_call(r->b, c->op, c->attrs, c->n_results, c->n, c->args, &node);
  if (status == PLN_ERR_TYPE && r->m->run->options->lenient) {
    pln_diag_drop(e, mark);
    return give_up(r);
  }
  PLN_TRY(status);
  PLN_TRY(pln_rule_fold(r->m->run, &node));
  *out = (pln_rule_value){.kind = PLN_VALUE_NODE, .v.node = node};
  return PLN_OK;
}

/* Groups the operands of an associative operator of two from the left. */
static pln_status group_operands(replacing *r, new_call *c) {
  const pln_op_info *row = pln_op_row(r->m->run->engine, c->op);
  if (!(row->traits & PLN_TRAIT_ASSOCIATIVE) || row->max_args != 2)
    return PLN_OK;
  while (c->n > 2 && !r->gave_up) {
    new_call inner = {.op = c->op, .n = 2, .args = {c->args[0], c->args[1]}};
    pln_rule_value v = {0};
    PLN_TRY(finish_call(r, &inner, &v));
    memmove(c->args + 1, c->args + 2, (c->n - 2) * sizeof *c->args);
    c->args[0] = v.v.node;
    c->n--;
  }
  return PLN_OK;
}

static pln_status add_operands(replacing *r, new_call *c,
                               const pln_ast_node *n) {
  const pln_ast *a = &r->m->rule->ast;
  for (uint32_t i = 0; i < n->count && !r->gave_up; i++) {
    uint32_t operand = a->operands[n->first + i];
    uint8_t kind = a->nodes[operand].kind;
    if (kind != PLN_AST_NAMED && kind != PLN_AST_SPREAD)
      PLN_TRY(add_operand(r, c, &r->m->run->values[operand]));
  }
  if (r->gave_up)
    return PLN_OK;
  PLN_TRY(convert_numbers(r, c, n));
  drop_trailing_absent(r, c);
  return PLN_OK;
}

static pln_status add_attributes(replacing *r, new_call *c,
                                 const pln_ast_node *n) {
  const pln_ast *a = &r->m->rule->ast;
  for (uint32_t i = 0; i < n->count && !r->gave_up; i++) {
    uint32_t operand = a->operands[n->first + i];
    const pln_ast_node *named = &a->nodes[operand];
    uint32_t inner = named->count ? a->operands[named->first] : 0;
    pln_rule_value v;
    if (named->kind == PLN_AST_SPREAD) {
      v = r->m->slots[a->nodes[inner].refers];
      if (v.kind != PLN_VALUE_NODE)
        return give_up(r);
      PLN_TRY(spread_attributes(r, c, v.v.node));
    } else if (named->kind == PLN_AST_NAMED) {
      PLN_TRY(pln_rule_evaluate(r->m, inner, &v));
      PLN_TRY(give_attribute(r, c, named->text, v));
    }
  }
  return PLN_OK;
}

/* The operator of the call: its own, or that of the call bound to its
 * variable, with its attributes. */
static pln_status find_operator(replacing *r, const pln_ast_node *n,
                                new_call *c) {
  if (!n->text.size) {
    c->op = n->refers;
    if (pln_op_registered(r->m->run->engine, c->op))
      c->n_results = pln_op_n_results(r->m->run->engine, c->op, 0);
    return PLN_OK;
  }
  pln_rule_value f = r->m->slots[n->refers];
  if (f.kind != PLN_VALUE_NODE)
    return give_up(r);
  const pln_node *bound = &graph(r)->nodes[f.v.node];
  c->op = bound->data;
  c->n_results = bound->results;
  return PLN_OK;
}

static pln_status replace_call(replacing *r, const pln_ast_node *n,
                               pln_rule_value *out) {
  new_call c = {.as_operands = matched_operand_form(r)};
  PLN_TRY(find_operator(r, n, &c));
  if (!r->gave_up)
    PLN_TRY(add_operands(r, &c, n));
  if (!r->gave_up && n->text.size) {
    pln_rule_value f = r->m->slots[n->refers];
    PLN_TRY(spread_attributes(r, &c, f.v.node));
  }
  if (!r->gave_up)
    PLN_TRY(add_attributes(r, &c, n));
  if (!r->gave_up)
    PLN_TRY(group_operands(r, &c));
  return r->gave_up ? PLN_OK : finish_call(r, &c, out);
}

/* constant(value) and constant(value, dtype). */
static pln_status replace_constant(replacing *r, const pln_ast_node *n,
                                   pln_rule_value *out) {
  const pln_ast *a = &r->m->rule->ast;
  pln_rule_value v, d = {.kind = PLN_VALUE_STRING, .v.s = pln_text("int64")};
  double number;
  pln_ref node;
  PLN_TRY(pln_rule_evaluate(r->m, a->operands[n->first], &v));
  if (n->count > 1)
    PLN_TRY(pln_rule_evaluate(r->m, a->operands[n->first + 1], &d));
  pln_dtype dtype =
      d.kind == PLN_VALUE_STRING ? pln_dtype_find(d.v.s) : PLN_DTYPE_NONE;
  if (v.kind == PLN_VALUE_LIST && dtype == PLN_INT64)
    PLN_TRY(build_list(r, &v, &node));
  else if (pln_rule_number(&v, &number) && dtype)
    PLN_TRY(build_number(r, dtype, 0, NULL, &v, &node));
  else
    return give_up(r);
  if (!r->gave_up)
    *out = (pln_rule_value){.kind = PLN_VALUE_NODE, .v.node = node};
  return PLN_OK;
}

/* -a, a + b, ... of nodes are calls; of numbers they are numbers. */
static pln_status replace_operator(replacing *r, const pln_ast_node *n,
                                   pln_rule_value *out) {
  const pln_ast *a = &r->m->rule->ast;
  pln_rule_value args[2];
  bool nodes = false;
  for (uint32_t i = 0; i < n->count && i < 2; i++) {
    args[i] = r->m->run->values[a->operands[n->first + i]];
    nodes = nodes || args[i].kind == PLN_VALUE_NODE;
  }
  if (!nodes)
    return pln_rule_operator(r->m, (pln_ast_operator)n->operator_, args, out);
  new_call c = {.op = pln_rule_operator_op(n->operator_)};
  PLN_TRY(add_operands(r, &c, n));
  return r->gave_up ? PLN_OK : finish_call(r, &c, out);
}

static pln_status replace_field(replacing *r, const pln_ast_node *n,
                                pln_rule_value *out) {
  const pln_rule_value *v =
      &r->m->run->values[r->m->rule->ast.operands[n->first]];
  uint32_t index = 0;
  pln_ref node;
  if (v->kind != PLN_VALUE_NODE)
    return give_up(r);
  for (size_t i = 0; i < n->text.size && index < 65536; i++)
    index = index * 10 + (uint32_t)(n->text.data[i] - '0');
  const pln_node *tuple = &graph(r)->nodes[v->v.node];
  if (tuple->kind == PLN_TUPLE && index < tuple->count)
    node = pln_operand(graph(r), v->v.node, index);
  else
    PLN_TRY(pln_build_tuple_get_item(r->b, v->v.node, index, &node));
  *out = (pln_rule_value){.kind = PLN_VALUE_NODE, .v.node = node};
  return PLN_OK;
}

static pln_status replace_tuple(replacing *r, const pln_ast_node *n,
                                pln_rule_value *out) {
  new_call c = {0};
  pln_ref node;
  PLN_TRY(add_operands(r, &c, n));
  if (r->gave_up)
    return PLN_OK;
  PLN_TRY(pln_build_tuple(r->b, c.n, c.args, &node));
  *out = (pln_rule_value){.kind = PLN_VALUE_NODE, .v.node = node};
  return PLN_OK;
}

pln_op pln_rule_operator_op(uint8_t sign) {
  switch (sign) {
  case PLN_AST_ADD: return PLN_OP_ADD;
  case PLN_AST_SUB: return PLN_OP_SUB;
  case PLN_AST_MUL: return PLN_OP_MUL;
  case PLN_AST_DIV: return PLN_OP_DIV;
  case PLN_AST_NEG: return PLN_OP_NEG;
  default: return 0;
  }
}

/* A variable. A node of a branch or function that the pattern matched is copied
 * to where the replacement is. */
static pln_status replace_variable(replacing *r, uint32_t at,
                                   pln_rule_value *out) {
  pln_rewrite *rw = r->m->run->rw;
  PLN_TRY(pln_rule_evaluate_node(r->m, at, out));
  if (out->kind != PLN_VALUE_NODE || !pln_rewrite_has_left(rw, out->v.node))
    return PLN_OK;
  pln_ref first = graph(r)->n_nodes;
  PLN_TRY(pln_rewrite_hoist(rw, out->v.node, &out->v.node));
  for (pln_ref i = first; i < graph(r)->n_nodes; i++)
    r->m->run->hoisted += graph(r)->nodes[i].kind == PLN_CALL;
  return pln_rewrite_has_left(rw, out->v.node) ? give_up(r) : PLN_OK;
}

static pln_status replace_node(replacing *r, uint32_t at, pln_rule_value *out) {
  const pln_ast *a = &r->m->rule->ast;
  const pln_ast_node *n = &a->nodes[at];
  switch ((pln_ast_kind)n->kind) {
  case PLN_AST_CALL:
    return n->n_heads && pln_slice_is(a->heads[n->heads], "constant")
               ? replace_constant(r, n, out)
               : replace_call(r, n, out);
  case PLN_AST_UNARY:
  case PLN_AST_BINARY: return replace_operator(r, n, out);
  case PLN_AST_FIELD: return replace_field(r, n, out);
  case PLN_AST_TUPLE: return replace_tuple(r, n, out);
  case PLN_AST_BIND:
    *out = r->m->slots[n->refers] =
        r->m->run->values[pln_ast_operand(a, at, 0)];
    return PLN_OK;
  case PLN_AST_ROOTS: return PLN_OK;
  case PLN_AST_VAR: return replace_variable(r, at, out);
  default: return pln_rule_evaluate_node(r->m, at, out);
  }
}

/* A number as the whole replacement: a constant of the type of the root. */
static pln_status replace_by_number(replacing *r, pln_ref root,
                                    const pln_rule_value *number,
                                    pln_ref *out) {
  const pln_graph *g = graph(r);
  pln_type type = g->nodes[root].type;
  int32_t rank = pln_type_rank(g->engine, type);
  for (int32_t i = 0; i < rank; i++)
    if (!PLN_DIM_IS_CONST(pln_type_dims(g->engine, type)[i]))
      rank = -1;
  if (rank < 0)
    return give_up(r);
  return build_number(r, pln_type_dtype(g->engine, type), (uint32_t)rank,
                      pln_type_dims(g->engine, type), number, out);
}

/* The node that replaces root `i`. */
static pln_status take_answer(replacing *r, uint32_t i) {
  const pln_ast *a = &r->m->rule->ast;
  const pln_rule_value *v =
      &r->m->run->values[pln_ast_root(a, a->replacement, i)];
  double number;
  r->m->answers[i] = PLN_NONE;
  if (pln_rule_number(v, &number))
    return replace_by_number(r, r->m->roots[i], v, &r->m->answers[i]);
  if (v->kind != PLN_VALUE_NODE)
    return give_up(r);
  r->m->answers[i] = v->v.node;
  return PLN_OK;
}

pln_status pln_rule_replace(pln_rule_match *m, pln_ref *out) {
  const pln_ast *a = &m->rule->ast;
  uint32_t root = a->replacement;
  replacing r = {.m = m, .b = pln_rewrite_builder(m->run->rw)};
  *out = PLN_NONE;
  if (!r.b)
    return PLN_ERR_NOMEM;
  for (uint32_t i = a->nodes[root].begin; i <= root && !r.gave_up; i++)
    if (!a->nodes[i].is_value)
      PLN_TRY(replace_node(&r, i, &m->run->values[i]));
  for (uint32_t i = 0; i < m->variant->n_roots && !r.gave_up; i++)
    PLN_TRY(take_answer(&r, i));
  if (!r.gave_up)
    *out = m->answers[m->variant->anchor];
  return PLN_OK;
}
