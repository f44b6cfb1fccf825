/* canonicalize_cast.c: CanonicalizeCast: gives each elementwise user of a
 * widening cast a cast of its own.
 *
 * Run by the executor, once per function. Requires a verified graph. FuseOps
 * then puts the casts into the functions of their users, and the narrower
 * tensor is what is stored. Users that are not elementwise or broadcasting
 * share the first cast.
 *
 *     %0 = cast(%x, dtype="int32");  (add(%0, %y), multiply(%0, %z))   =>
 *     (add(cast(%x, dtype="int32"), %y), multiply(cast(%x, dtype="int32"), %z))
 *
 * Semantics: TVM CanonicalizeCast. */

#include "op/op.h"
#include "transform/fuse/fuse_pattern.h"
#include "transform/transform.h"

enum { FEW_OPERANDS = 8 };

typedef struct canonicalize_cast {
  pln_engine *engine;
  uint8_t *used; /* by node of the old graph: a cast that has its user */
  int64_t copied;
} canonicalize_cast;

static uint32_t element_bits(const pln_engine *e, pln_type type) {
  pln_dtype dtype = pln_type_dtype(e, type);
  return dtype == PLN_BOOL ? 1 : (uint32_t)pln_dtype_bits(dtype);
}

static bool is_widening_cast(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || n->data != PLN_OP_CAST || n->count != 1)
    return false;
  uint32_t from =
      element_bits(g->engine, g->nodes[pln_operand(g, node, 0)].type);
  return from && from < element_bits(g->engine, n->type);
}

static bool is_elementwise_call(const pln_graph *g, const pln_node *n) {
  return n->kind == PLN_CALL && n->data && n->count > 0 &&
         pln_fuse_trait_of(g->engine, n->data).pattern <= PLN_FUSE_BROADCAST;
}

/* Finds the operands that are casts which an earlier user has. */
static bool find_shared_casts(canonicalize_cast *c, const pln_graph *old,
                              pln_ref user, bool *shared) {
  bool any = false;
  for (uint32_t i = 0; i < old->nodes[user].count; i++) {
    pln_ref arg = pln_operand(old, user, i);
    shared[i] = is_widening_cast(old, arg) && c->used[arg];
    c->used[arg] = 1;
    any |= shared[i];
  }
  return any;
}

/* Replaces *arg by a copy of the call that it is. */
static pln_status copy_cast(pln_builder *b, pln_ref *arg) {
  pln_node cast = b->graph->nodes[*arg];
  pln_ref x = pln_operand(b->graph, *arg, 0);
  return pln_build_call(b, PLN_OP_CAST, cast.attrs, 0, 1, &x, arg);
}

static pln_status copy_shared_casts(canonicalize_cast *c, pln_rewrite *rw,
                                    const bool *shared, pln_ref *args,
                                    pln_ref *node) {
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_node user = b->graph->nodes[*node];
  pln_ref made;
  bool allowed;
  memcpy(args, pln_operands(b->graph, &user), user.count * sizeof *args);
  for (uint32_t i = 0; i < user.count; i++)
    if (shared[i] && b->graph->nodes[args[i]].kind == PLN_CALL)
      PLN_TRY(copy_cast(b, &args[i]));
  PLN_TRY(pln_build_call(b, user.data, user.attrs, user.results, user.count,
                         args, &made));
  PLN_TRY(pln_rewrite_apply(rw, "copy", &allowed));
  if (!allowed)
    return PLN_OK;
  *node = made;
  c->copied++;
  return pln_keep_type(rw, made, user.type);
}

/* As many operands as fit on the stack; an elementwise call of more stays. */
static pln_status canonicalize_cast_node(void *ud, pln_rewrite *rw, pln_ref old,
                                         pln_ref *node) {
  canonicalize_cast *c = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node *n = &g->nodes[old];
  bool shared[FEW_OPERANDS];
  pln_ref args[FEW_OPERANDS];
  if (!is_elementwise_call(g, n) || n->count > FEW_OPERANDS ||
      !find_shared_casts(c, g, old, shared))
    return PLN_OK;
  return copy_shared_casts(c, rw, shared, args, node);
}

static bool has_widening_cast(const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (is_widening_cast(g, i))
      return true;
  return false;
}

pln_status pln_pass_canonicalize_cast(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  canonicalize_cast c = {.engine = pln_run_engine(run)};
  pln_mutator m = {
      .ud = &c, .visit = canonicalize_cast_node, .keeps_types = true};
  if (!has_widening_cast(g))
    return PLN_OK;
  c.used = pln_mem_zeroed(c.engine, g->n_nodes);
  if (!c.used)
    return pln_nomem(c.engine);
  pln_status status = pln_rewrite_function(run, &m);
  pln_mem_free(c.engine, c.used, g->n_nodes);
  PLN_TRY(status);
  return c.copied ? pln_run_count(run, "copied", c.copied) : PLN_OK;
}
