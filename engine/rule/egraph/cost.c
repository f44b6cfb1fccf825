/* cost.c: estimates of what a call costs, for extraction.
 *
 * Extents that are not known count as 32. Called by extract.c for each e-node
 * once. */

#include <math.h>

#include "op/cost.h"
#include "rule/egraph/extract.h"

enum { UNKNOWN_EXTENT = 32, MOST_ARGS = 8 };

/* Of one core; only their ratios matter. */
static const double peak_flops = 5e10, bandwidth = 1e10, start = 5e-7;

/* No core is so many times as fast as that. */
static const double fastest = 4;

/* Of the cost of a call that FoldConstant computes. */
static const double constant_share = 1e-3;

static void read_type(const pln_engine *e, pln_type type, pln_shape *out) {
  int32_t rank = pln_type_rank(e, type);
  out->rank = rank > PLN_MAX_RANK ? -1 : rank;
  for (int32_t i = 0; i < out->rank; i++) {
    pln_dim dim = pln_type_dims(e, type)[i];
    out->dims[i] = PLN_DIM_IS_CONST(dim) ? dim : UNKNOWN_EXTENT;
  }
}

static double bytes_of(const pln_engine *e, pln_type type) {
  pln_shape shape;
  read_type(e, type, &shape);
  double n = pln_dtype_bits(pln_type_dtype(e, type)) / 8.0;
  for (int32_t i = 0; i < shape.rank; i++)
    n *= (double)shape.dims[i];
  return n;
}

/* The results of a call of several are counted as one of its first operand. */
static double traffic(const pln_graph *g, const pln_node *n) {
  bool tuple = pln_type_get_kind(g->engine, n->type) == PLN_TYPE_TUPLE;
  double sum = tuple ? 0 : bytes_of(g->engine, n->type);
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_node *operand = &g->nodes[g->operands[n->first + i]];
    double bytes = bytes_of(g->engine, operand->type);
    if (operand->kind == PLN_TUPLE)
      for (uint32_t k = 0; k < operand->count; k++)
        bytes +=
            bytes_of(g->engine, g->nodes[g->operands[operand->first + k]].type);
    sum += tuple && i == 0 ? 2 * bytes : bytes;
  }
  return sum;
}

static pln_status flops_of(const pln_graph *g, const pln_node *n, double *out) {
  pln_shape args[MOST_ARGS];
  pln_cost_call call = {.engine = g->engine,
                        .op = n->data,
                        .attrs = n->attrs,
                        .n_args = n->count < MOST_ARGS ? n->count : MOST_ARGS,
                        .args = args};
  pln_dim macs, flops;
  for (uint32_t i = 0; i < call.n_args; i++)
    read_type(g->engine, g->nodes[g->operands[n->first + i]].type, &args[i]);
  read_type(g->engine, n->type, &call.result);
  PLN_TRY(pln_op_cost(&call, &macs, &flops));
  *out = PLN_DIM_IS_CONST(flops) && flops > 0 ? (double)flops : 0;
  return PLN_OK;
}

/* Reshapes move nothing. */
static bool is_view(const pln_node *n) {
  return n->data == PLN_OP_RESHAPE || n->data == PLN_OP_SQUEEZE ||
         n->data == PLN_OP_UNSQUEEZE || n->data == PLN_OP_FLATTEN;
}

static pln_status estimate(pln_ecost_kind kind, const pln_graph *g,
                           const pln_node *n, double *out) {
  double flops = 0, bytes = is_view(n) ? 0 : traffic(g, n);
  *out = 1;
  if (kind == PLN_ECOST_NODES)
    return PLN_OK;
  if (kind != PLN_ECOST_BYTES)
    PLN_TRY(flops_of(g, n, &flops));
  if (kind == PLN_ECOST_FLOPS)
    *out = flops;
  if (kind == PLN_ECOST_BYTES)
    *out = bytes;
  if (kind != PLN_ECOST_TIME)
    return PLN_OK;
  double compute = flops / peak_flops, memory = bytes / bandwidth;
  *out = start + (compute > memory ? compute : memory);
  return PLN_OK;
}

static bool is_call(const pln_node *n) {
  return n->kind == PLN_CALL && n->data;
}

pln_status pln_ecost_of_constants(const pln_saturate_options *options,
                                  const pln_graph *graph, pln_ref node,
                                  double *out) {
  const pln_node *n = &graph->nodes[node];
  pln_ecost_kind kind = options->cost_fn ? PLN_ECOST_TIME : options->cost;
  *out = 0;
  if (is_call(n))
    PLN_TRY(estimate(kind, graph, n, out));
  *out *= constant_share;
  return PLN_OK;
}

pln_status pln_ecost_is_dear(const pln_saturate_options *options,
                             const pln_graph *graph, pln_ref node, double most,
                             bool *dear, double *out) {
  const pln_node *n = &graph->nodes[node];
  double flops = 0;
  *dear = false;
  if (!options->cost_fn || !is_call(n))
    return PLN_OK;
  PLN_TRY(flops_of(graph, n, &flops));
  *dear = flops / (fastest * peak_flops) > most;
  if (*dear)
    *out = flops / peak_flops;
  return PLN_OK;
}

pln_status pln_ecost_of(const pln_saturate_options *options,
                        const pln_graph *graph, pln_ref node,
                        uint64_t constants, double *out) {
  const pln_node *n = &graph->nodes[node];
  *out = 0;
  if (!is_call(n))
    return PLN_OK;
  if (!options->cost_fn)
    return estimate(options->cost, graph, n, out);
  PLN_TRY(options->cost_fn(options->ud, graph, node, constants, out));
  if (*out == INFINITY)
    return estimate(PLN_ECOST_TIME, graph, n, out);
  if (*out >= 0)
    return PLN_OK;
  return pln_diag_error(graph->engine, PLN_ERR_ARGUMENT, NULL,
                        "a cost is no number from 0 on");
}
