/* verify_vtcm_limit.c: tir.VerifyVTCMLimit: the tightly coupled memory
 * (storage scope global.vtcm) that is allocated at one time fits.
 *
 * Run by the executor; it changes nothing. The limit is the option's, else the
 * attribute vtcm-capacity of the function's target; without a limit, or with 0,
 * everything fits. Memory of an extent that is not constant is not counted.
 *
 *     A = T.allocate([4096], "int8", "global.vtcm")   with {limit=1024}
 *         =>   an error
 *
 * Semantics: TVM's tir.VerifyVTCMLimit. */

#include "arith/arith.h"
#include "lower/host/host.h"

/* The bytes of an Allocate in that memory; 0 for others. */
static int64_t allocated_bytes(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind != PLN_ALLOCATE)
    return 0;
  pln_type pointer = g->nodes[g->scopes[n->data].begin].type;
  pln_slice scope =
      pln_symbol_text(g->engine, pln_type_symbol(g->engine, pointer));
  uint32_t lanes = 1;
  pln_dtype dtype = pln_dtype_find_vector(
      pln_attrs_string(g->engine, n->attrs, "dtype", ""), &lanes);
  int64_t bytes = ((int64_t)pln_dtype_bits(dtype) * lanes + 7) / 8;
  if (!pln_slice_is(scope, "global.vtcm"))
    return 0;
  for (uint32_t i = 1; i < n->count; i++) {
    pln_ref extent = pln_operand(g, ref, i);
    if (g->nodes[extent].kind != PLN_INT_IMM)
      return 0;
    if (!pln_mul_fits(bytes, pln_node_int(g, extent), &bytes))
      return INT64_MAX;
  }
  return bytes < 0 ? 0 : bytes;
}

/* most[scope]: what is allocated at one time in it. Bodies come before their
 * owner in the array. */
static int64_t largest(const pln_graph *g, const pln_scope *node_scope,
                       int64_t *most) {
  int64_t all = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    int64_t inner = 0, own = allocated_bytes(g, ref);
    if (!pln_owns(n))
      continue;
    for (pln_scope k = n->data; k < g->n_scopes && g->scopes[k].owner == ref;
         k++)
      if (most[k] > inner)
        inner = most[k];
    inner = inner > INT64_MAX - own ? INT64_MAX : inner + own;
    if (node_scope[ref] != PLN_NONE && most[node_scope[ref]] < inner)
      most[node_scope[ref]] = inner;
    all = inner > all ? inner : all;
  }
  return all;
}

static pln_status measure(const pln_graph *g, int64_t *out) {
  size_t nodes = g->n_nodes * sizeof(pln_scope);
  size_t scopes = g->n_scopes * sizeof(int64_t);
  pln_scope *node_scope = pln_mem_new(g->engine, nodes);
  int64_t *most = pln_mem_zeroed(g->engine, scopes);
  if (node_scope && most) {
    pln_graph_node_scopes(g, node_scope);
    *out = largest(g, node_scope, most);
  }
  pln_status status = node_scope && most ? PLN_OK : pln_nomem(g->engine);
  pln_mem_free(g->engine, node_scope, nodes);
  pln_mem_free(g->engine, most, scopes);
  return status;
}

pln_status pln_pass_tir_verify_vtcm_limit(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  int64_t limit = pln_run_int(run, "limit"), bytes = 0;
  if (limit == 0)
    limit = pln_attrs_int(g->engine, pln_target_of(g), "vtcm-capacity", 0);
  if (limit == 0 || !pln_has_kind(g, PLN_ALLOCATE))
    return PLN_OK;
  PLN_TRY(measure(g, &bytes));
  if (bytes <= limit)
    return PLN_OK;
  return pln_diag_error(g->engine, PLN_ERR_LIMIT, NULL,
                        "tir.VerifyVTCMLimit: %lld bytes of global.vtcm are "
                        "allocated at one time, the limit is %lld",
                        (long long)bytes, (long long)limit);
}
