/* dynamic_to_static.c: DynamicToStatic: replaces operators of dynamic shapes by
 * static ones where the operands that say the shape are known.
 *
 * Run by the executor, once per function. Requires a verified graph. Constants
 * are folded before and after (FoldConstant, within its budget), and both are
 * repeated, because a static shape may make another operand known. An operand
 * is known as well if inference knows its integers. A function whose result
 * gets a static type has that type.
 *
 *     dyn.reshape(%x, shape_of(%y))   =>   reshape(%x, newshape=[2, 8])
 *
 * Semantics: TVM DynamicToStatic. */

#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/fold/fold_constant.h"
#include "transform/relay_builder.h"

enum { MAX_ROUNDS = 64, MAX_KNOWN = 3, MAX_ATTRS = 16, MAX_OPERANDS = 4 };

/* What an operand becomes as an attribute. */
typedef enum known_kind {
  KNOWN_INT,
  KNOWN_INTS,
  KNOWN_PAIRS, /* a matrix of integers, as a list of lists */
  KNOWN_FLOAT,
  KNOWN_FLOATS,
  KNOWN_OPERAND /* a constant that stays an operand */
} known_kind;

typedef struct known_operand {
  uint32_t operand;
  known_kind kind;
  const char *name; /* of the attribute */
} known_operand;

typedef struct static_row {
  pln_op dynamic, fixed;
  uint32_t n_operands;
  uint32_t n_known;
  known_operand known[MAX_KNOWN];
} static_row;

/* The attributes of the dynamic operator that no operand gives are kept. */
static const static_row rows[] = {
    {PLN_OP_DYN_RESHAPE, PLN_OP_RESHAPE, 2, 1, {{1, KNOWN_INTS, "newshape"}}},
    {PLN_OP_DYN_SQUEEZE, PLN_OP_SQUEEZE, 2, 1, {{1, KNOWN_INTS, "axis"}}},
    {PLN_OP_DYN_EXPAND_DIMS, PLN_OP_UNSQUEEZE, 2, 1, {{1, KNOWN_INT, "axis"}}},
    {PLN_OP_DYN_TILE, PLN_OP_TILE, 2, 1, {{1, KNOWN_INTS, "reps"}}},
    {PLN_OP_DYN_TOP_K, PLN_OP_TOP_K, 2, 1, {{1, KNOWN_INT, "k"}}},
    {PLN_OP_DYN_BROADCAST_TO, PLN_OP_EXPAND, 2, 1, {{1, KNOWN_INTS, "shape"}}},
    {PLN_OP_DYN_ZEROS, PLN_OP_ZEROS, 1, 1, {{0, KNOWN_INTS, "shape"}}},
    {PLN_OP_DYN_ONES, PLN_OP_ONES, 1, 1, {{0, KNOWN_INTS, "shape"}}},
    {PLN_OP_DYN_FULL, PLN_OP_FULL, 2, 1, {{1, KNOWN_INTS, "shape"}}},
    {PLN_OP_DYN_ONE_HOT, PLN_OP_ONE_HOT, 4, 1, {{3, KNOWN_INT, "depth"}}},
    {PLN_OP_DYN_RESIZE_2D,
     PLN_OP_RESIZE_2D,
     3,
     2,
     {{1, KNOWN_INTS, "size"}, {2, KNOWN_FLOATS, "roi"}}},
    {PLN_OP_DYN_UPSAMPLING,
     PLN_OP_UPSAMPLE,
     3,
     2,
     {{1, KNOWN_FLOAT, "scale_h"}, {2, KNOWN_FLOAT, "scale_w"}}},
    {PLN_OP_DYN_UPSAMPLING_3D,
     PLN_OP_UPSAMPLING_3D,
     4,
     3,
     {{1, KNOWN_FLOAT, "scale_d"},
      {2, KNOWN_FLOAT, "scale_h"},
      {3, KNOWN_FLOAT, "scale_w"}}},
    {PLN_OP_DYN_PAD,
     PLN_OP_PAD,
     3,
     2,
     {{1, KNOWN_PAIRS, "pad_width"}, {2, KNOWN_OPERAND, NULL}}},
    {PLN_OP_DYN_STRIDED_SLICE,
     PLN_OP_SLICE,
     4,
     3,
     {{1, KNOWN_INTS, "begin"},
      {2, KNOWN_INTS, "end"},
      {3, KNOWN_INTS, "strides"}}},
    {PLN_OP_DYN_SPARSE_TO_DENSE,
     PLN_OP_SPARSE_TO_DENSE,
     4,
     1,
     {{3, KNOWN_INTS, "output_shape"}}},
};

static const static_row *row_of(pln_op op) {
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (rows[i].dynamic == op)
      return &rows[i];
  return NULL;
}

/* --------------------------------------------------------------- attributes
 */

/* The static call being made: its attributes and the arrays they borrow. */
typedef struct static_call {
  pln_engine *engine;
  const pln_infer *call;
  uint32_t n_attrs, n_args;
  pln_relay_attr attrs[MAX_ATTRS];
  pln_ref args[MAX_OPERANDS];
  int64_t ints[MAX_KNOWN][PLN_MAX_RANK];
  double floats[PLN_MAX_RANK];
  uint32_t n_lists;
} static_call;

/* Reads a vector or scalar of integers; false if one is unknown. */
static bool read_ints(const pln_infer *call, uint32_t operand, int64_t *out,
                      uint32_t *n) {
  pln_list list = pln_arg_list(call, operand, NULL);
  if (!list.given || !pln_list_known(&list) || list.count > PLN_MAX_RANK)
    return false;
  for (*n = 0; *n < list.count; ++*n)
    out[*n] = pln_list_at(&list, *n);
  return true;
}

static bool read_floats(const pln_infer *call, uint32_t operand, double *out,
                        uint32_t *n) {
  const pln_tensor *t = pln_arg_tensor(call, operand);
  if (!t || t->count > PLN_MAX_RANK)
    return false;
  for (*n = 0; *n < t->count; ++*n)
    if (!pln_tensor_number(t, t->splat ? 0 : *n, &out[*n]))
      return false;
  return true;
}

/* Reads a matrix of two columns, row by row. */
static pln_status read_pairs(static_call *s, uint32_t operand, pln_attr *out,
                             bool *known) {
  const pln_tensor *t = pln_arg_tensor(s->call, operand);
  pln_attr items[PLN_MAX_RANK] = {{0}};
  int64_t pairs[PLN_MAX_RANK][2];
  *known = t && t->rank == 2 && t->count <= 2 * (size_t)PLN_MAX_RANK &&
           pln_tensor_dims(t)[1] == 2;
  uint32_t n = *known ? (uint32_t)(t->count / 2) : 0;
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = 0; k < 2; k++)
      *known &= pln_tensor_int(t, t->splat ? 0 : 2 * i + k, &pairs[i][k]);
    items[i].kind = PLN_ATTR_INTS;
    items[i].count = 2;
    items[i].v.ints = pairs[i];
  }
  if (!*known)
    return PLN_OK;
  out->kind = PLN_ATTR_LIST;
  out->count = n;
  return pln_attrs_list(s->engine, n, items, &out->v.dict);
}

static bool read_number(static_call *s, const known_operand *k, pln_attr *out) {
  uint32_t n;
  int64_t *ints = s->ints[s->n_lists++];
  switch (k->kind) {
  case KNOWN_INT:
  case KNOWN_INTS:
    if (!read_ints(s->call, k->operand, ints, &n))
      return false;
    *out = k->kind == KNOWN_INT
               ? (pln_attr){.kind = PLN_ATTR_INT, .v.i = ints[0]}
               : (pln_attr){.kind = PLN_ATTR_INTS, .count = n, .v.ints = ints};
    return k->kind == KNOWN_INTS || n == 1;
  case KNOWN_FLOAT:
  case KNOWN_FLOATS:
    if (!read_floats(s->call, k->operand, s->floats, &n))
      return false;
    *out = k->kind == KNOWN_FLOAT
               ? (pln_attr){.kind = PLN_ATTR_FLOAT, .v.f = s->floats[0]}
               : (pln_attr){.kind = PLN_ATTR_FLOATS,
                            .count = n,
                            .v.floats = s->floats};
    return k->kind == KNOWN_FLOATS || n == 1;
  case KNOWN_PAIRS:
  case KNOWN_OPERAND: break;
  }
  return pln_arg_tensor(s->call, k->operand) != NULL;
}

/* Adds the attribute that the operand gives. *known is false if it is not
 * known. */
static pln_status add_known(static_call *s, const known_operand *k,
                            bool *known) {
  pln_relay_attr attr = {.name = k->name};
  if (k->kind == KNOWN_PAIRS) {
    PLN_TRY(read_pairs(s, k->operand, &attr.value, known));
  } else {
    *known = read_number(s, k, &attr.value);
  }
  if (*known && k->name)
    s->attrs[s->n_attrs++] = attr;
  return PLN_OK;
}

static bool is_given(const static_call *s, const char *name) {
  for (uint32_t i = 0; i < s->n_attrs; i++)
    if (!strcmp(s->attrs[i].name, name))
      return true;
  return false;
}

/* Adds the attributes of the dynamic call that no operand gave. */
static bool add_kept(static_call *s) {
  pln_engine *e = s->engine;
  uint32_t n = pln_attrs_count(e, s->call->attrs);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_at(e, s->call->attrs, i);
    const char *name = pln_symbol_text(e, a->name).data;
    if (is_given(s, name))
      continue;
    if (s->n_attrs == MAX_ATTRS)
      return false;
    s->attrs[s->n_attrs++] = (pln_relay_attr){name, *a};
  }
  return true;
}

static bool becomes_attribute(const static_row *row, uint32_t operand) {
  for (uint32_t i = 0; i < row->n_known; i++)
    if (row->known[i].operand == operand && row->known[i].kind != KNOWN_OPERAND)
      return true;
  return false;
}

/* *known is false if an operand is not known. */
static pln_status read_static_call(static_call *s, const static_row *row,
                                   bool *known) {
  *known = true;
  for (uint32_t i = 0; i < row->n_known && *known; i++)
    PLN_TRY(add_known(s, &row->known[i], known));
  *known = *known && add_kept(s);
  for (uint32_t i = 0; i < row->n_operands; i++)
    if (!becomes_attribute(row, i))
      s->args[s->n_args++] = s->call->args[i];
  return PLN_OK;
}

/* -------------------------------------------------------------------- sweep
 */

static pln_status replace_dynamic(void *ud, pln_rewrite *rw, pln_ref old,
                                  pln_ref *node) {
  int64_t *replaced = ud;
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[*node];
  const static_row *row = n->kind == PLN_CALL ? row_of(n->data) : NULL;
  pln_ref before = *node;
  pln_relay_builder r;
  bool known;
  (void)old;
  if (!row || n->count != row->n_operands || !pln_call_is_valid(g, *node))
    return PLN_OK;
  pln_infer call = pln_infer_of(g, *node);
  static_call s = {.engine = g->engine, .call = &call};
  PLN_TRY(read_static_call(&s, row, &known));
  if (!known)
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&r, rw));
  pln_ref fixed =
      pln_relay_call_with(&r, row->fixed, s.n_attrs, s.attrs, s.n_args, s.args);
  PLN_TRY(pln_relay_finish(&r, "static", fixed, node));
  *replaced += *node != before;
  return PLN_OK;
}

/* Folds constants, then replaces what is known: *graph becomes the result. */
static pln_status run_round(pln_pass_run *run, pln_graph **graph,
                            int64_t *replaced) {
  pln_mutator m = {
      .ud = replaced, .visit = replace_dynamic, .retypes_results = true};
  pln_graph *folded, *out;
  PLN_TRY(pln_fold_constants(run, *graph, &folded));
  pln_graph_release(*graph);
  *graph = folded;
  PLN_TRY(pln_graph_rewrite(folded, &m, &out));
  pln_graph_release(folded);
  *graph = out;
  return PLN_OK;
}

pln_status pln_pass_dynamic_to_static(pln_pass_run *run) {
  pln_graph *graph = pln_graph_retain(pln_run_function(run));
  int64_t total = 0, replaced = 1;
  pln_status status = PLN_OK;
  for (int i = 0; i < MAX_ROUNDS && replaced && status == PLN_OK; i++) {
    replaced = 0;
    status = run_round(run, &graph, &replaced);
    total += replaced;
  }
  if (status == PLN_OK && total)
    status = pln_run_count(run, "replaced", total);
  if (status == PLN_OK)
    pln_run_set_function(run, graph);
  else
    pln_graph_release(graph);
  return status;
}
