/* div_to_mul.c: DivToMul: replaces divisions by a constant by products with its
 * reciprocal.
 *
 * Run by the executor, once per function; FoldConstant runs before it. Requires
 * a verified graph. The constant has elements of 16, 32 or 64 bit floats, none
 * of which is zero or has a reciprocal that is not finite; one of more than the
 * free size of the budget for constants stays. The product is rounded once more
 * than the quotient.
 *
 *     divide(%x, 4f)   =>   multiply(%x, 0.25f)
 *
 * Semantics: TVM DivToMul, which takes one element of a constant that has
 * more. */

#include <math.h>

#include "eval/eval.h"
#include "op/op.h"
#include "rule/rule.h"
#include "transform/relay_builder.h"

static bool is_invertible_dtype(pln_dtype dtype) {
  return dtype == PLN_FLOAT16 || dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64;
}

/* Stores 1 / element for each stored element; false if one has no finite
 * reciprocal. */
static bool store_reciprocals(pln_dtype dtype, size_t n, const char *from,
                              char *to) {
  size_t size = pln_dtype_bits(dtype) / 8;
  for (size_t i = 0; i < n; i++, from += size, to += size) {
    double x = pln_float_load(dtype, from);
    if (x == 0 || isnan(x))
      return false;
    pln_float_store(dtype, 1 / x, to);
    if (!isfinite(pln_float_load(dtype, to)))
      return false;
  }
  return true;
}

/* *out is NULL if there is no such tensor. A splat stays one. */
static pln_status reciprocal_of(pln_engine *e, const pln_tensor *t,
                                pln_tensor **out) {
  pln_dtype dtype = (pln_dtype)t->dtype;
  const void *from;
  char one[8];
  *out = NULL;
  PLN_TRY(pln_tensor_data(t, &from));
  if (t->splat) {
    if (!store_reciprocals(dtype, 1, from, one))
      return PLN_OK;
    return pln_tensor_splat(e, dtype, t->rank, pln_tensor_dims(t), one, out);
  }
  PLN_TRY(pln_tensor_new(e, dtype, t->rank, pln_tensor_dims(t), out));
  if (store_reciprocals(dtype, t->count, from, pln_tensor_writable(*out)))
    return PLN_OK;
  pln_tensor_release(*out);
  *out = NULL;
  return PLN_OK;
}

/* The divisor of a division that can be replaced, or NULL. */
static const pln_tensor *divisor_of(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || n->data != PLN_OP_DIV || n->count != 2 ||
      !pln_call_is_valid(g, node))
    return NULL;
  const pln_tensor *t = pln_node_tensor(g, pln_operand(g, node, 1));
  if (!t || !is_invertible_dtype((pln_dtype)t->dtype))
    return NULL;
  return t->splat || t->bytes <= PLN_BUDGET_FREE ? t : NULL;
}

static pln_status multiply_by(pln_rewrite *rw, const pln_tensor *factor,
                              pln_ref *node) {
  pln_relay_builder r;
  pln_ref args[2] = {pln_operand(pln_rewrite_graph(rw), *node, 0)};
  PLN_TRY(pln_relay_begin(&r, rw));
  PLN_TRY(pln_build_constant(r.b, factor, &args[1]));
  pln_ref product = pln_relay_call_with(&r, PLN_OP_MUL, 0, NULL, 2, args);
  return pln_relay_finish(&r, "div_to_mul", product, node);
}

static pln_status replace_division(void *ud, pln_rewrite *rw, pln_ref old,
                                   pln_ref *node) {
  int64_t *replaced = ud;
  const pln_tensor *divisor = divisor_of(pln_rewrite_graph(rw), *node);
  pln_ref before = *node;
  pln_tensor *factor;
  (void)old;
  if (!divisor)
    return PLN_OK;
  PLN_TRY(reciprocal_of(pln_rewrite_graph(rw)->engine, divisor, &factor));
  if (!factor)
    return PLN_OK;
  pln_status status = multiply_by(rw, factor, node);
  pln_tensor_release(factor);
  *replaced += *node != before;
  return status;
}

pln_status pln_pass_div_to_mul(pln_pass_run *run) {
  int64_t replaced = 0;
  pln_mutator m = {
      .ud = &replaced, .visit = replace_division, .keeps_types = true};
  PLN_TRY(pln_rewrite_function(run, &m));
  return replaced ? pln_run_count(run, "replaced", replaced) : PLN_OK;
}
