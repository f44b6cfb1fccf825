/* value.c: values of conditions and attribute expressions: attributes and
 * properties of matched nodes, operators, and the evaluation of a subtree.
 *
 * What is not known at compile time is PLN_VALUE_UNKNOWN, which every operator
 * passes on except `and` and `or` (Kleene's three-valued logic). A condition
 * holds only if it is known to be true. */

#include <math.h>
#include <stdlib.h>

#include "rule/set.h"

/* --------------------------------------------------------------------- lists
 */

pln_status pln_rule_new_list(pln_rule_match *m, uint32_t n, pln_rule_value *out,
                             int64_t **dims) {
  pln_rule_driver *r = m->run;
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->pool, &r->cap_pool,
                       (size_t)r->n_pool + n + 1, sizeof *r->pool));
  *out =
      (pln_rule_value){.kind = PLN_VALUE_LIST, .count = n, .v.at = r->n_pool};
  *dims = r->pool + r->n_pool;
  r->n_pool += n;
  return PLN_OK;
}

const int64_t *pln_rule_list(const pln_rule_match *m, const pln_rule_value *v) {
  return m->run->pool + v->v.at;
}

static pln_rule_value unknown(void) {
  return (pln_rule_value){.kind = PLN_VALUE_UNKNOWN};
}

static pln_rule_value integer(pln_dim i) {
  return i == PLN_DIM_UNKNOWN
             ? unknown()
             : (pln_rule_value){.kind = PLN_VALUE_INT, .v.i = i};
}

static pln_rule_value boolean(bool b) {
  return (pln_rule_value){.kind = PLN_VALUE_BOOL, .v.b = b};
}

static pln_status copy_dims(pln_rule_match *m, uint32_t n, const pln_dim *dims,
                            pln_rule_value *out) {
  int64_t *to;
  PLN_TRY(pln_rule_new_list(m, n, out, &to));
  if (n)
    memcpy(to, dims, n * sizeof *to);
  return PLN_OK;
}

/* ---------------------------------------------------------------- attributes
 */

typedef struct parameter_row {
  pln_op op;
  uint32_t operand;
  const char *name;
} parameter_row;

static const parameter_row parameters[] = {
#define PARAMETER(ID, operand, name) {PLN_OP_##ID, operand, name},
#include "rule/parameters.def"
};

uint32_t pln_rule_parameter(pln_op op, pln_slice name) {
  for (uint32_t i = 0; i < PLN_COUNT(parameters); i++)
    if (parameters[i].op == op && pln_slice_is(name, parameters[i].name))
      return parameters[i].operand;
  return PLN_NONE;
}

const char *pln_rule_parameter_name(pln_op op, uint32_t operand) {
  for (uint32_t i = 0; i < PLN_COUNT(parameters); i++)
    if (parameters[i].op == op && parameters[i].operand == operand)
      return parameters[i].name;
  return NULL;
}

uint32_t pln_rule_n_data(pln_op op) {
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; i < PLN_COUNT(parameters); i++)
    if (parameters[i].op == op && parameters[i].operand < least)
      least = parameters[i].operand;
  return least;
}

const char *pln_rule_find_in_schema(const char *schema, pln_slice name,
                                    pln_slice *core) {
  for (const char *at = schema; *at;) {
    const char *word = at + (*at == '+');
    size_t n = strcspn(word, ":>= ?");
    bool same = n == name.size && !memcmp(word, name.data, n);
    *core = (pln_slice){word, n};
    at = word + n;
    if (*at == '>') {
      *core = (pln_slice){at + 1, strcspn(at + 1, ":= ?")};
      at += 1 + core->size;
    }
    if (same)
      return at;
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  return NULL;
}

pln_slice pln_rule_core_name(const pln_engine *engine, pln_op op,
                             pln_slice name) {
  pln_slice core;
  const pln_relay_row *relay = pln_relay_of(engine, op);
  if (pln_rule_parameter(op, name) != PLN_NONE ||
      pln_rule_find_in_schema(pln_op_row(engine, op)->attrs, name, &core))
    return name;
  if (relay && pln_rule_find_in_schema(relay->attrs, name, &core))
    return core;
  return (pln_slice){0};
}

/* The list of "1,1" or "[]". */
static pln_status default_list(pln_rule_match *m, const char *text,
                               pln_rule_value *out) {
  pln_dim dims[8];
  uint32_t n = 0;
  while (strchr("-0123456789", *text) && *text && n < PLN_COUNT(dims)) {
    char *end;
    dims[n++] = strtoll(text, &end, 10);
    text = end + (*end == ',');
  }
  return copy_dims(m, n, dims, out);
}

static bool is_kind(const char *at, const char *kind) {
  return !strncmp(at, kind, strlen(kind));
}

/* The default in "name:kind=default", as a value; NONE without one. */
static pln_status schema_default(pln_rule_match *m, const char *schema,
                                 pln_slice name, pln_rule_value *out) {
  pln_slice core;
  const char *at = pln_rule_find_in_schema(schema, name, &core);
  *out = (pln_rule_value){0};
  if (!at || *at != ':')
    return PLN_OK;
  size_t kind = strcspn(at, "= ");
  if (at[kind] != '=')
    return PLN_OK;
  const char *text = at + kind + 1;
  bool empty = !*text || *text == ' ';
  if (is_kind(at, ":string=") || (is_kind(at, ":dtype=") && !empty))
    *out = (pln_rule_value){.kind = PLN_VALUE_STRING,
                            .v.s = {text, strcspn(text, " ")}};
  else if (empty)
    *out = (pln_rule_value){0};
  else if (is_kind(at, ":int=") || is_kind(at, ":bool="))
    *out = integer(strtoll(text, NULL, 10));
  else if (is_kind(at, ":float="))
    *out = (pln_rule_value){.kind = PLN_VALUE_FLOAT, .v.f = strtod(text, NULL)};
  else if (is_kind(at, ":ints="))
    return default_list(m, text, out);
  else
    *out = unknown();
  return PLN_OK;
}

/* The extents of the weights of ONNX's convolution behind the first two. */
static pln_status weights_extents(pln_rule_match *m, const pln_node *call,
                                  pln_rule_value *out) {
  const pln_graph *g = pln_rule_graph(m);
  bool conv = call->data == PLN_OP_CONV || call->data == PLN_OP_CONV_TRANSPOSE;
  if (!conv || call->count < 2)
    return PLN_OK;
  pln_type type = g->nodes[g->operands[call->first + 1]].type;
  int32_t rank = pln_type_rank(g->engine, type);
  return rank < 2 ? PLN_OK
                  : copy_dims(m, (uint32_t)rank - 2,
                              pln_type_dims(g->engine, type) + 2, out);
}

static bool pads_nothing(const pln_rule_value *auto_pad) {
  return auto_pad->kind == PLN_VALUE_STRING &&
         (pln_slice_is(auto_pad->v.s, "NOTSET") ||
          pln_slice_is(auto_pad->v.s, "VALID"));
}

/* What ONNX says of windows along the axes of an image, where nothing is given:
 * strides and dilations of 1, no padding, a kernel as large as the weights. */
static pln_status window_default(pln_rule_match *m, pln_ref call,
                                 pln_slice name, pln_rule_value *out) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_node *n = &g->nodes[call];
  pln_slice core;
  const char *schema = pln_op_row(g->engine, n->data)->attrs;
  if (!n->count ||
      !pln_rule_find_in_schema(schema, pln_text("kernel_shape"), &core))
    return PLN_OK;
  if (pln_slice_is(name, "kernel_shape"))
    return weights_extents(m, n, out);
  int32_t rank = pln_type_rank(g->engine, g->nodes[g->operands[n->first]].type);
  bool pads = pln_slice_is(name, "pads");
  bool ones = pln_slice_is(name, "strides") || pln_slice_is(name, "dilations");
  if (rank < 2 || !(pads || ones))
    return PLN_OK;
  if (pads && pln_rule_find_in_schema(schema, pln_text("auto_pad"), &core)) {
    pln_rule_value auto_pad;
    PLN_TRY(pln_rule_attribute(m, call, pln_text("auto_pad"), &auto_pad));
    if (!pads_nothing(&auto_pad))
      return PLN_OK;
  }
  int64_t *to;
  uint32_t count = (uint32_t)(rank - 2) * (pads ? 2 : 1);
  PLN_TRY(pln_rule_new_list(m, count, out, &to));
  for (uint32_t i = 0; i < count; i++)
    to[i] = ones;
  return PLN_OK;
}

pln_status pln_rule_omitted(pln_rule_match *m, pln_ref call, pln_slice name,
                            pln_rule_value *out) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_node *n = &g->nodes[call];
  *out = (pln_rule_value){0};
  if (n->kind != PLN_CALL || !n->data)
    return PLN_OK;
  const pln_relay_row *relay = pln_relay_of(g->engine, n->data);
  PLN_TRY(window_default(m, call, name, out));
  return out->kind != PLN_VALUE_NONE || !relay
             ? PLN_OK
             : schema_default(m, relay->attrs, name, out);
}

pln_status pln_rule_default(pln_rule_match *m, pln_ref call, pln_slice name,
                            pln_rule_value *out) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_op_info *row = pln_op_row(g->engine, g->nodes[call].data);
  PLN_TRY(schema_default(m, row->attrs, name, out));
  return out->kind == PLN_VALUE_NONE ? window_default(m, call, name, out)
                                     : PLN_OK;
}

static pln_status attr_value(pln_rule_match *m, const pln_attr *a,
                             pln_rule_value *out) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL: *out = integer(a->v.i); return PLN_OK;
  case PLN_ATTR_FLOAT:
    *out = (pln_rule_value){.kind = PLN_VALUE_FLOAT, .v.f = a->v.f};
    return PLN_OK;
  case PLN_ATTR_STRING:
    *out = (pln_rule_value){.kind = PLN_VALUE_STRING, .v.s = a->v.s};
    return PLN_OK;
  case PLN_ATTR_INTS: return copy_dims(m, a->count, a->v.ints, out);
  default:
    *out = (pln_rule_value){.kind = PLN_VALUE_ATTR, .v.attr = a};
    return PLN_OK;
  }
}

pln_rule_value pln_rule_uniform_value(const pln_graph *g, pln_ref node) {
  double number;
  int64_t i;
  if (pln_rule_uniform(g, node, &number))
    return (pln_rule_value){.kind = PLN_VALUE_FLOAT, .v.f = number};
  if (!pln_rule_uniform_int(g, node, &i))
    return unknown();
  return i == INT64_MIN
             ? (pln_rule_value){.kind = PLN_VALUE_FLOAT, .v.f = -0x1p63}
             : integer(i);
}

/* The value of an operand that gives an attribute: a list, or a number. */
static pln_status operand_value(pln_rule_match *m, pln_ref operand,
                                pln_rule_value *out) {
  const pln_graph *g = pln_rule_graph(m);
  operand = pln_rule_bound_value(&m->run->lets.now, operand);
  const pln_node *n = &g->nodes[operand];
  pln_value value = g->values[operand];
  *out = unknown();
  if (n->kind == PLN_ABSENT)
    *out = (pln_rule_value){0};
  else if (value && pln_value_rank(g->engine, value) == 0 &&
           pln_value_elements(g->engine, value)[0] != PLN_DIM_UNKNOWN)
    *out = integer(pln_value_elements(g->engine, value)[0]);
  else if (value && pln_value_rank(g->engine, value) == 1)
    return copy_dims(m, pln_value_count(g->engine, value),
                     pln_value_elements(g->engine, value), out);
  else if (n->kind == PLN_CONSTANT && g->tensors[n->data]->rank == 0)
    *out = pln_rule_uniform_value(g, operand);
  return PLN_OK;
}

pln_status pln_rule_attribute(pln_rule_match *m, pln_ref call, pln_slice name,
                              pln_rule_value *out) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_node *n = &g->nodes[call];
  pln_engine *e = g->engine;
  *out = (pln_rule_value){0};
  if (n->kind != PLN_CALL || !n->data)
    return PLN_OK;
  uint32_t operand = pln_rule_parameter(n->data, name);
  if (operand < n->count) {
    pln_ref arg = g->operands[n->first + operand];
    if (g->nodes[arg].kind != PLN_ABSENT)
      return operand_value(m, arg, out);
  }
  uint32_t count = pln_attrs_count(e, n->attrs);
  for (uint32_t i = 0; i < count; i++) {
    const pln_attr *a = pln_attrs_at(e, n->attrs, i);
    pln_slice own = pln_symbol_text(e, a->name);
    if (own.size == name.size && !memcmp(own.data, name.data, name.size))
      return attr_value(m, a, out);
  }
  return schema_default(m, pln_op_row(e, n->data)->attrs, name, out);
}

/* ---------------------------------------------------------------- properties
 */

static pln_status shape_of(pln_rule_match *m, pln_type type,
                           pln_rule_value *out) {
  pln_engine *e = m->run->engine;
  int32_t rank = pln_type_rank(e, type);
  *out = unknown();
  return rank < 0 ? PLN_OK
                  : copy_dims(m, (uint32_t)rank, pln_type_dims(e, type), out);
}

static pln_status size_of(pln_rule_match *m, pln_type type,
                          pln_rule_value *out) {
  pln_engine *e = m->run->engine;
  int32_t rank = pln_type_rank(e, type);
  pln_dim size = rank < 0 ? PLN_DIM_UNKNOWN : 1;
  for (int32_t i = 0; i < rank; i++)
    PLN_TRY(
        pln_dim_binary(e, PLN_DIM_MUL, size, pln_type_dims(e, type)[i], &size));
  *out = integer(size);
  return PLN_OK;
}

static pln_rule_value dtype_of(pln_rule_match *m, pln_type type) {
  pln_dtype dtype = pln_type_dtype(m->run->engine, type);
  if (!dtype)
    return unknown();
  return (pln_rule_value){.kind = PLN_VALUE_STRING,
                          .v.s = pln_text(pln_dtype_name(dtype))};
}

static pln_rule_value op_of(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || !n->data)
    return (pln_rule_value){.kind = PLN_VALUE_STRING,
                            .v.s = pln_text(pln_kind_name(n->kind))};
  return (pln_rule_value){.kind = PLN_VALUE_STRING,
                          .v.s = pln_op_name(g->engine, n->data)};
}

/* In an e-graph calls that leave an attribute out are those that give it as its
 * default. */
static pln_status attribute_property(pln_rule_match *m, pln_ref call,
                                     pln_slice name, pln_rule_value *out) {
  const pln_graph *g = pln_rule_graph(m);
  pln_slice core = pln_rule_core_name(g->engine, g->nodes[call].data, name);
  if (core.size)
    name = core;
  PLN_TRY(pln_rule_attribute(m, call, name, out));
  return m->run->saturates && out->kind == PLN_VALUE_NONE
             ? window_default(m, call, name, out)
             : PLN_OK;
}

pln_status pln_rule_property(pln_rule_match *m, const pln_rule_value *of,
                             pln_slice name, pln_rule_value *out) {
  const pln_graph *g = pln_rule_graph(m);
  *out = unknown();
  if (of->kind != PLN_VALUE_NODE)
    return PLN_OK;
  pln_ref node = of->v.node;
  pln_type type = g->nodes[node].type;
  if (pln_slice_is(name, "shape"))
    return shape_of(m, type, out);
  if (pln_slice_is(name, "size"))
    return size_of(m, type, out);
  if (pln_slice_is(name, "value"))
    return operand_value(m, node, out);
  if (pln_slice_is(name, "rank")) {
    int32_t rank = pln_type_rank(g->engine, type);
    *out = rank < 0 ? unknown() : integer(rank);
  } else if (pln_slice_is(name, "dtype")) {
    *out = dtype_of(m, type);
  } else if (pln_slice_is(name, "op")) {
    *out = op_of(g, pln_rule_bound_value(&m->run->lets.now, node));
  } else if (pln_slice_is(name, "uses")) {
    *out = integer(pln_rule_driver_uses(m->run, node));
  } else if (g->nodes[node].kind == PLN_CALL && g->nodes[node].data) {
    return attribute_property(m, node, name, out);
  }
  return PLN_OK;
}

pln_status pln_rule_index(pln_rule_match *m, const pln_rule_value *of,
                          const pln_rule_value *index, pln_rule_value *out) {
  *out = unknown();
  if (of->kind != PLN_VALUE_LIST || index->kind != PLN_VALUE_INT ||
      !PLN_DIM_IS_CONST(index->v.i))
    return PLN_OK;
  int64_t i = index->v.i + (index->v.i < 0 ? (int64_t)of->count : 0);
  if (i >= 0 && i < (int64_t)of->count)
    *out = integer(pln_rule_list(m, of)[i]);
  return PLN_OK;
}

/* ----------------------------------------------------------------- operators
 */

bool pln_rule_number(const pln_rule_value *v, double *out) {
  if (v->kind == PLN_VALUE_FLOAT)
    *out = v->v.f;
  else if (v->kind == PLN_VALUE_INT && PLN_DIM_IS_CONST(v->v.i))
    *out = (double)v->v.i;
  else if (v->kind == PLN_VALUE_BOOL)
    *out = v->v.b;
  else
    return false;
  return true;
}

static bool is_const_int(const pln_rule_value *v) {
  return v->kind == PLN_VALUE_INT && PLN_DIM_IS_CONST(v->v.i);
}

/* Beyond 2^53 an integer as a float may be another one. */
static bool same_number(int64_t integer, double number) {
  return number >= -0x1p63 && number < 0x1p63 &&
         number == (double)(int64_t)number && (int64_t)number == integer;
}

/* Attributes that ONNX numbers as dtypes are compared with names. */
static bool is_dtype_number(int64_t integer, pln_slice name) {
  return integer > 0 && integer == (int64_t)pln_dtype_find(name);
}

/* A value of -1, 0 or 1, as the first number is less, equal or greater; 2: one
 * is NaN. */
static int order(const pln_rule_value *a, const pln_rule_value *b, double x,
                 double y) {
  if (is_const_int(a) && is_const_int(b))
    return (a->v.i > b->v.i) - (a->v.i < b->v.i);
  return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

static bool dims_equal(pln_dim a, pln_dim b, bool *known) {
  *known = a != PLN_DIM_UNKNOWN && b != PLN_DIM_UNKNOWN &&
           (a == b || (PLN_DIM_IS_CONST(a) && PLN_DIM_IS_CONST(b)));
  return a == b;
}

static bool lists_equal(const pln_rule_match *m, const pln_rule_value *a,
                        const pln_rule_value *b, bool *known) {
  const int64_t *x = pln_rule_list(m, a), *y = pln_rule_list(m, b);
  *known = true;
  if (a->count != b->count)
    return false;
  bool all_known = true;
  for (uint32_t i = 0; i < a->count; i++) {
    bool element;
    bool same = dims_equal(x[i], y[i], &element);
    if (element && !same)
      return false;
    all_known = all_known && element;
  }
  *known = all_known;
  return true;
}

bool pln_rule_value_equal(const pln_rule_match *m, const pln_rule_value *a,
                          const pln_rule_value *b, bool *known) {
  double x, y;
  *known = true;
  if (a->kind == PLN_VALUE_UNKNOWN || b->kind == PLN_VALUE_UNKNOWN)
    return *known = false;
  if (a->kind == PLN_VALUE_INT && b->kind == PLN_VALUE_INT)
    return dims_equal(a->v.i, b->v.i, known);
  if (is_const_int(a) && b->kind == PLN_VALUE_STRING)
    return is_dtype_number(a->v.i, b->v.s);
  if (a->kind == PLN_VALUE_STRING && is_const_int(b))
    return is_dtype_number(b->v.i, a->v.s);
  if (is_const_int(a) && b->kind == PLN_VALUE_FLOAT)
    return same_number(a->v.i, b->v.f);
  if (a->kind == PLN_VALUE_FLOAT && is_const_int(b))
    return same_number(b->v.i, a->v.f);
  if (pln_rule_number(a, &x) && pln_rule_number(b, &y))
    return x == y;
  if (a->kind != b->kind)
    return false;
  switch ((pln_rule_value_kind)a->kind) {
  case PLN_VALUE_STRING:
    return a->v.s.size == b->v.s.size &&
           !memcmp(a->v.s.data, b->v.s.data, a->v.s.size);
  case PLN_VALUE_LIST: return lists_equal(m, a, b, known);
  case PLN_VALUE_NODE: return a->v.node == b->v.node;
  case PLN_VALUE_ATTR: return a->v.attr == b->v.attr;
  case PLN_VALUE_NODES:
    return a->count == b->count &&
           !memcmp(pln_rule_list(m, a), pln_rule_list(m, b),
                   a->count * sizeof(int64_t));
  case PLN_VALUE_NONE:
  case PLN_VALUE_UNKNOWN:
  case PLN_VALUE_BOOL:
  case PLN_VALUE_INT:
  case PLN_VALUE_FLOAT: break;
  }
  return true;
}

static pln_rule_value logic(pln_ast_operator operator_,
                            const pln_rule_value *args) {
  bool is_or = operator_ == PLN_AST_OR;
  bool known = true;
  for (int i = 0; i < 2; i++) {
    if (args[i].kind != PLN_VALUE_BOOL)
      known = false;
    else if (args[i].v.b == is_or)
      return boolean(is_or);
  }
  return known ? boolean(!is_or) : unknown();
}

static pln_rule_value compare(pln_ast_operator operator_, int order) {
  switch (operator_) {
  case PLN_AST_LT: return boolean(order == -1);
  case PLN_AST_LE: return boolean(order == -1 || order == 0);
  case PLN_AST_GT: return boolean(order == 1);
  default: return boolean(order == 0 || order == 1);
  }
}

static pln_rule_value is_element(const pln_rule_match *m,
                                 const pln_rule_value *args) {
  bool all_known = true;
  if (args[0].kind == PLN_VALUE_UNKNOWN || args[1].kind != PLN_VALUE_LIST)
    return unknown();
  for (uint32_t i = 0; i < args[1].count; i++) {
    pln_rule_value element = integer(pln_rule_list(m, &args[1])[i]);
    bool known;
    if (pln_rule_value_equal(m, &args[0], &element, &known) && known)
      return boolean(true);
    all_known = all_known && known;
  }
  return all_known ? boolean(false) : unknown();
}

/* Sums and products of constants that a dim can hold, which are beyond those
 * that expressions of dims compute with. */
static bool exact_arithmetic(pln_ast_operator operator_, int64_t a, int64_t b,
                             int64_t *out) {
  bool overflow = true;
  if (operator_ == PLN_AST_ADD)
    overflow = __builtin_add_overflow(a, b, out);
  else if (operator_ == PLN_AST_SUB)
    overflow = __builtin_sub_overflow(a, b, out);
  else if (operator_ == PLN_AST_MUL)
    overflow = __builtin_mul_overflow(a, b, out);
  return !overflow && PLN_DIM_IS_CONST(*out);
}

static pln_status dim_arithmetic(pln_rule_match *m, pln_ast_operator operator_,
                                 pln_dim a, pln_dim b, pln_rule_value *out) {
  pln_dim_op op = PLN_DIM_ADD;
  pln_dim dim;
  if (PLN_DIM_IS_CONST(a) && PLN_DIM_IS_CONST(b) &&
      exact_arithmetic(operator_, a, b, &dim)) {
    *out = integer(dim);
    return PLN_OK;
  }
  if (operator_ == PLN_AST_SUB)
    op = PLN_DIM_SUB;
  else if (operator_ == PLN_AST_MUL)
    op = PLN_DIM_MUL;
  else if (operator_ == PLN_AST_FLOORDIV)
    op = PLN_DIM_FLOORDIV;
  else if (operator_ == PLN_AST_MOD)
    op = PLN_DIM_FLOORMOD;
  PLN_TRY(pln_dim_binary(m->run->engine, op, a, b, &dim));
  *out = integer(dim);
  return PLN_OK;
}

static pln_rule_value float_arithmetic(pln_ast_operator operator_, double x,
                                       double y) {
  double z = x + y;
  if (operator_ == PLN_AST_SUB)
    z = x - y;
  else if (operator_ == PLN_AST_MUL)
    z = x * y;
  else if (operator_ == PLN_AST_DIV)
    z = x / y;
  else if (operator_ == PLN_AST_FLOORDIV)
    z = floor(x / y);
  else if (operator_ == PLN_AST_MOD)
    z = x - y * floor(x / y);
  return (pln_rule_value){.kind = PLN_VALUE_FLOAT, .v.f = z};
}

/* Lists are joined by +, as in Python. */
static pln_status join_lists(pln_rule_match *m, const pln_rule_value *args,
                             pln_rule_value *out) {
  int64_t *to;
  PLN_TRY(pln_rule_new_list(m, args[0].count + args[1].count, out, &to));
  for (uint32_t i = 0; i < args[0].count; i++)
    to[i] = pln_rule_list(m, &args[0])[i];
  for (uint32_t i = 0; i < args[1].count; i++)
    to[args[0].count + i] = pln_rule_list(m, &args[1])[i];
  return PLN_OK;
}

static pln_status arithmetic(pln_rule_match *m, pln_ast_operator operator_,
                             const pln_rule_value *args, pln_rule_value *out) {
  double x, y;
  *out = unknown();
  if (args[0].kind == PLN_VALUE_LIST && args[1].kind == PLN_VALUE_LIST &&
      operator_ == PLN_AST_ADD)
    return join_lists(m, args, out);
  if (args[0].kind == PLN_VALUE_INT && args[1].kind == PLN_VALUE_INT &&
      operator_ != PLN_AST_DIV)
    return dim_arithmetic(m, operator_, args[0].v.i, args[1].v.i, out);
  if (pln_rule_number(&args[0], &x) && pln_rule_number(&args[1], &y))
    *out = float_arithmetic(operator_, x, y);
  return PLN_OK;
}

pln_status pln_rule_operator(pln_rule_match *m, pln_ast_operator operator_,
                             const pln_rule_value *args, pln_rule_value *out) {
  static const pln_rule_value zero = {.kind = PLN_VALUE_INT};
  double x, y;
  bool known, same;
  *out = unknown();
  switch (operator_) {
  case PLN_AST_OR:
  case PLN_AST_AND: *out = logic(operator_, args); return PLN_OK;
  case PLN_AST_NOT:
    if (args[0].kind == PLN_VALUE_BOOL)
      *out = boolean(!args[0].v.b);
    return PLN_OK;
  case PLN_AST_EQ:
  case PLN_AST_NE:
    same = pln_rule_value_equal(m, &args[0], &args[1], &known);
    if (known)
      *out = boolean(same == (operator_ == PLN_AST_EQ));
    return PLN_OK;
  case PLN_AST_LT:
  case PLN_AST_LE:
  case PLN_AST_GT:
  case PLN_AST_GE:
    if (pln_rule_number(&args[0], &x) && pln_rule_number(&args[1], &y))
      *out = compare(operator_, order(&args[0], &args[1], x, y));
    return PLN_OK;
  case PLN_AST_IN: *out = is_element(m, args); return PLN_OK;
  case PLN_AST_NEG: {
    pln_rule_value both[2] = {zero, args[0]};
    return arithmetic(m, PLN_AST_SUB, both, out);
  }
  case PLN_AST_ADD:
  case PLN_AST_SUB:
  case PLN_AST_MUL:
  case PLN_AST_DIV:
  case PLN_AST_FLOORDIV:
  case PLN_AST_MOD: return arithmetic(m, operator_, args, out);
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- evaluation
 */

static pln_rule_value opset_value(const pln_rule_match *m) {
  const pln_rule_options *options = m->run->options;
  if (options->asks_opset)
    *options->asks_opset = true;
  return integer(options->opset);
}

static pln_rule_value named_value(const pln_rule_match *m, pln_slice name) {
  if (pln_slice_is(name, "opset"))
    return opset_value(m);
  if (pln_slice_is(name, "finite_math"))
    return boolean(m->run->options->finite_math);
  if (pln_slice_is(name, "associative_math"))
    return boolean(m->run->options->associative_math);
  if (pln_slice_is(name, "microsoft"))
    return boolean(m->run->options->microsoft);
  if (pln_slice_is(name, "onnx"))
    return boolean(
        pln_function_is_onnx(pln_rewrite_old(pln_rule_driver_rewrite(m->run))));
  if (pln_slice_is(name, "true") || pln_slice_is(name, "false"))
    return boolean(pln_slice_is(name, "true"));
  if (pln_slice_is(name, "none"))
    return (pln_rule_value){0};
  if (pln_slice_is(name, "inf"))
    return (pln_rule_value){.kind = PLN_VALUE_FLOAT, .v.f = INFINITY};
  return (pln_rule_value){.kind = PLN_VALUE_STRING, .v.s = name};
}

static pln_status make_list(pln_rule_match *m, uint32_t n,
                            const pln_rule_value *args, pln_rule_value *out) {
  int64_t *dims;
  PLN_TRY(pln_rule_new_list(m, n, out, &dims));
  for (uint32_t i = 0; i < n; i++)
    dims[i] = args[i].kind == PLN_VALUE_INT ? args[i].v.i : PLN_DIM_UNKNOWN;
  return PLN_OK;
}

pln_status pln_rule_evaluate_node(pln_rule_match *m, uint32_t at,
                                  pln_rule_value *out) {
  const pln_ast *a = &m->rule->ast;
  const pln_ast_node *n = &a->nodes[at];
  pln_rule_value args[PLN_MAX_RANK];
  uint32_t count = n->count < PLN_COUNT(args) ? n->count : PLN_COUNT(args);
  for (uint32_t i = 0; i < count; i++)
    args[i] = m->run->values[a->operands[n->first + i]];
  *out = unknown();
  switch ((pln_ast_kind)n->kind) {
  case PLN_AST_NUMBER:
    *out = n->is_int
               ? integer(n->integer)
               : (pln_rule_value){.kind = PLN_VALUE_FLOAT, .v.f = n->number};
    return PLN_OK;
  case PLN_AST_STRING:
    *out = (pln_rule_value){.kind = PLN_VALUE_STRING, .v.s = n->text};
    return PLN_OK;
  case PLN_AST_NAME: *out = named_value(m, n->text); return PLN_OK;
  case PLN_AST_VAR: *out = m->slots[n->refers]; return PLN_OK;
  case PLN_AST_LIST: return make_list(m, count, args, out);
  case PLN_AST_FIELD: return pln_rule_property(m, &args[0], n->text, out);
  case PLN_AST_INDEX: return pln_rule_index(m, &args[0], &args[1], out);
  case PLN_AST_UNARY:
  case PLN_AST_BINARY:
    return pln_rule_operator(m, (pln_ast_operator)n->operator_, args, out);
  case PLN_AST_CALL:
    return pln_rule_call_function(m, n->refers, count, args, out);
  case PLN_AST_WILDCARD:
  case PLN_AST_REST:
  case PLN_AST_TUPLE:
  case PLN_AST_NAMED:
  case PLN_AST_SPREAD:
  case PLN_AST_ALT:
  case PLN_AST_ROOTS:
  case PLN_AST_BIND: break;
  }
  return PLN_OK;
}

pln_status pln_rule_evaluate(pln_rule_match *m, uint32_t root,
                             pln_rule_value *out) {
  for (uint32_t i = m->rule->ast.nodes[root].begin; i <= root; i++)
    PLN_TRY(pln_rule_evaluate_node(m, i, &m->run->values[i]));
  *out = m->run->values[root];
  return PLN_OK;
}
