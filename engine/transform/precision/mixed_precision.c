/* mixed_precision.c: the categories of operators (mixed_precision.def), and
 * their attributes in the lower precision. Called by ToMixedPrecision.
 *
 * Semantics: TVM's mixed_precision.py and GetNewAttrs of
 * to_mixed_precision.cc. */

#include "transform/precision/mixed_precision.h"

#include <float.h>

#include "transform/relay_builder.h"

static const double MAX_FLOAT16 = 65504;

/* By operator: 1 + pln_precision_category; 0: not listed. */
static const uint8_t categories[PLN_N_OPS] = {
#define ALWAYS(ID) [PLN_OP_##ID] = 1 + PLN_PRECISION_ALWAYS,
#define FOLLOW(ID) [PLN_OP_##ID] = 1 + PLN_PRECISION_FOLLOW,
#define NEVER(ID) [PLN_OP_##ID] = 1 + PLN_PRECISION_NEVER,
#include "transform/precision/mixed_precision.def"
};

/* The structs of TVM whose out_dtype is the dtype of sums. */
static const char *const summing_types[] = {
    "relay.attrs.Conv1DAttrs",
    "relay.attrs.Conv1DTransposeAttrs",
    "relay.attrs.Conv2DAttrs",
    "relay.attrs.Conv2DTransposeAttrs",
    "relay.attrs.Conv2DWinogradAttrs",
    "relay.attrs.Conv2DWinogradNNPACKWeightTransformAttrs",
    "relay.attrs.DeformableConv2DAttrs",
    "relay.attrs.Conv3DAttrs",
    "relay.attrs.Conv3DTransposeAttrs",
    "relay.attrs.Conv3DWinogradAttrs",
    "relay.attrs.DenseAttrs",
    "relay.attrs.BatchMatmulAttrs",
};

/* A product of matrices of a model from a file; Relay's own nn.matmul is not
 * among TVM's operators that are always converted. */
static bool is_onnx_product(const pln_graph *g, pln_ref call) {
  return g->nodes[call].data == PLN_OP_MAT_MUL && pln_function_is_onnx(g) &&
         pln_op_is_onnx_form(g, call);
}

/* The answer of the operator's attribute, a function of the call and the name
 * of the lower precision. *asked is false if it has none. */
static pln_status ask_attribute(const pln_graph *g, pln_ref call, pln_dtype to,
                                pln_precision *out, bool *asked) {
  pln_op op = g->nodes[call].data;
  pln_op_value args[] = {
      {.kind = PLN_OP_OLD_NODE, .v.node = call},
      {.kind = PLN_OP_STRING, .v.s = pln_text(pln_dtype_name(to))}};
  pln_op_value items[] = {
      {.kind = PLN_OP_INT}, {.kind = PLN_OP_STRING}, {.kind = PLN_OP_STRING}};
  pln_op_value result = {.kind = PLN_OP_LIST,
                         .v.list = {PLN_COUNT(items), items}};
  pln_op_call ask = {.graph = g,
                     .node = call,
                     .n_args = PLN_COUNT(args),
                     .args = args,
                     .result = &result};
  PLN_TRY(pln_op_attr_call(g->engine, op, PLN_PRECISION_KEY, &ask, asked));
  if (!*asked)
    return PLN_OK;
  *out = (pln_precision){.category = (pln_precision_category)items[0].v.i,
                         .listed = true,
                         .accumulation = pln_dtype_find(items[1].v.s),
                         .output = pln_dtype_find(items[2].v.s)};
  bool valid = items[0].v.i >= PLN_PRECISION_ALWAYS &&
               items[0].v.i <= PLN_PRECISION_NEVER &&
               pln_dtype_is_float(out->accumulation) &&
               pln_dtype_is_float(out->output);
  if (valid)
    return PLN_OK;
  return pln_diag_error(
      g->engine, PLN_ERR_TYPE, NULL,
      "attribute '%s' of '%s': { 0, 1 or 2, float dtype, float dtype } "
      "expected, got { %lld, '%.*s', '%.*s' }",
      PLN_PRECISION_KEY, pln_op_row(g->engine, op)->name,
      (long long)items[0].v.i, (int)items[1].v.s.size, items[1].v.s.data,
      (int)items[2].v.s.size, items[2].v.s.data);
}

pln_status pln_precision_of(const pln_graph *graph, pln_ref call, pln_dtype to,
                            pln_precision *out) {
  pln_op op = graph->nodes[call].data;
  bool asked;
  PLN_TRY(ask_attribute(graph, call, to, out, &asked));
  if (asked)
    return PLN_OK;
  *out = (pln_precision){PLN_PRECISION_FOLLOW, false, to, to};
  if (op >= PLN_N_OPS || !categories[op])
    return PLN_OK;
  out->listed = true;
  out->category = (pln_precision_category)(categories[op] - 1);
  if (is_onnx_product(graph, call))
    out->category = PLN_PRECISION_ALWAYS;
  return PLN_OK;
}

bool pln_precision_has_range(const pln_graph *graph, pln_ref call,
                             pln_dtype to) {
  const pln_node *n = &graph->nodes[call];
  double most = to == PLN_FLOAT16 ? MAX_FLOAT16 : FLT_MAX;
  return n->data != PLN_OP_CLIP ||
         (pln_attrs_float(graph->engine, n->attrs, "a_min", 0) >= -most &&
          pln_attrs_float(graph->engine, n->attrs, "a_max", 0) <= most);
}

/* The name of the attribute that says the dtype of the result, or NULL. */
static const char *dtype_attr(const pln_graph *g, pln_ref call) {
  pln_op op = g->nodes[call].data;
  const pln_relay_row *row = pln_relay_of(g->engine, op);
  if (!row)
    return NULL;
  for (size_t i = 0; i < PLN_COUNT(summing_types); i++)
    if (strcmp(row->type_key, summing_types[i]) == 0)
      return "out_dtype";
  bool makes = strcmp(row->type_key, "relay.attrs.InitOpAttrs") == 0 &&
               (op != PLN_OP_EXPAND || pln_op_is_relay_form(g, call));
  return makes ? "dtype" : NULL;
}

static bool is_float_or_void(pln_slice name) {
  pln_dtype dtype = name.size ? pln_dtype_find(name) : PLN_DTYPE_NONE;
  return !dtype || pln_dtype_is_float(dtype);
}

pln_status pln_precision_attrs(const pln_graph *graph, pln_ref call,
                               pln_dtype accumulation, pln_attrs *out) {
  pln_engine *e = graph->engine;
  const char *name = dtype_attr(graph, call);
  pln_attr dtype = {.kind = PLN_ATTR_STRING,
                    .v.s = pln_text(pln_dtype_name(accumulation))};
  *out = graph->nodes[call].attrs;
  if (!name || !is_float_or_void(pln_attrs_string(e, *out, name, "")))
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(e, pln_text(name), &dtype.name));
  return pln_attrs_with(e, *out, &dtype, out);
}
