/* fuse_arguments.c: counts the arguments of fusion groups, for targets whose
 * kernels have a limited number of them. Called by fuse_groups.c.
 *
 * A node counts the variables among its operands, and a group those of its
 * members. An operand that is computed counts as the variables of its group. A
 * tensor with unknown extents counts once more for each of them and for each of
 * its strides. The results of a group count too. If an operand's group has no
 * variables so far, the decision waits until the user is visited.
 *
 *     max_function_args=3: add(exp(%x), multiply(%y, %z))
 *       =>   exp and multiply stay outside of add's function
 *
 * Semantics: TVM GraphPartitioner. */

#include "transform/fuse/fuse_groups.h"

/* ----------------------------------------------------------------- counting
 */

/* What is passed besides the tensor. */
static uint32_t extra_args(const pln_fuse_groups *f, pln_type type,
                           bool strides) {
  int32_t rank = pln_type_rank(f->engine, type);
  uint32_t unknown = 0;
  for (int32_t i = 0; i < rank; i++)
    unknown += !PLN_DIM_IS_CONST(pln_type_dims(f->engine, type)[i]);
  return unknown && strides ? unknown + (uint32_t)rank : unknown;
}

static uint32_t own_args(const pln_fuse_groups *f, pln_ref ref) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[ref];
  uint32_t count = 0;
  if (n->kind == PLN_VAR)
    return 1 + extra_args(f, n->type, true);
  if (n->kind != PLN_CALL && n->kind != PLN_TUPLE)
    return 0;
  for (uint32_t i = pln_has_callee(n); i < n->count; i++) {
    const pln_node *operand = &g->nodes[pln_operand(g, ref, i)];
    if (operand->kind == PLN_VAR || operand->kind == PLN_TUPLE_GET_ITEM)
      count += 1 + extra_args(f, operand->type, true);
  }
  return count;
}

static pln_status push_operands(pln_fuse_groups *f, pln_ref ref) {
  pln_fuse_arguments *a = &f->arguments;
  const pln_node *n = &f->graph->nodes[ref];
  if (n->kind != PLN_CALL && n->kind != PLN_TUPLE)
    return PLN_OK;
  for (uint32_t i = n->count; i-- > pln_has_callee(n);) {
    PLN_TRY(pln_mem_grow(f->engine, (void **)&a->stack, &a->cap_stack,
                         (size_t)a->n_stack + 1, sizeof *a->stack));
    a->stack[a->n_stack++] = pln_operand(f->graph, ref, i);
  }
  return PLN_OK;
}

/* The arguments that the function of a node's group would have. An operand
 * without variables so far is followed further, up to max_depth nodes, or with
 * `postpones` sets `postpone`. */
static pln_status count_args(pln_fuse_groups *f, pln_ref ref, bool postpones,
                             uint32_t *out) {
  pln_fuse_arguments *a = &f->arguments;
  uint32_t followed = 0;
  *out = a->count[ref];
  a->walk++;
  a->seen[pln_fuse_group_of(f, ref)] = a->walk;
  a->n_stack = 0;
  PLN_TRY(push_operands(f, ref));
  while (a->n_stack) {
    pln_ref operand = a->stack[--a->n_stack];
    pln_ref root = pln_fuse_group_of(f, operand);
    if (f->graph->nodes[operand].kind == PLN_VAR || a->seen[root] == a->walk)
      continue;
    a->seen[root] = a->walk;
    if (a->count[root])
      *out += a->count[root];
    else if (postpones)
      a->postpone = ref;
    else if (followed++ < f->max_depth)
      PLN_TRY(push_operands(f, operand));
  }
  return PLN_OK;
}

/* The limit without the results, which other groups take; 0: there is none. */
static uint32_t limit_of(const pln_fuse_groups *f, pln_ref ref) {
  uint64_t results = 0;
  for (uint32_t i = f->first[ref]; i < f->first[ref + 1]; i++) {
    const pln_node *user = &f->graph->nodes[f->users[i]];
    results +=
        1 + (user->kind == PLN_CALL ? extra_args(f, user->type, false) : 0);
  }
  uint32_t most = f->arguments.most;
  return most > results ? most - (uint32_t)results : 0;
}

/* ---------------------------------------------------------------- decisions
 */

pln_status pln_fuse_arguments_exceed(pln_fuse_groups *f, pln_ref node,
                                     bool *out) {
  uint32_t limit = f->arguments.most ? limit_of(f, node) : 0;
  *out = false;
  for (uint32_t i = f->first[node]; limit && i < f->first[node + 1]; i++) {
    uint32_t count;
    PLN_TRY(count_args(f, f->users[i], true, &count));
    *out |= count > limit;
  }
  return PLN_OK;
}

pln_status pln_fuse_arguments_fit(pln_fuse_groups *f, pln_ref node, bool *out) {
  uint32_t count;
  PLN_TRY(count_args(f, node, false, &count));
  *out = count <= limit_of(f, node);
  return PLN_OK;
}

pln_status pln_fuse_arguments_postpone(pln_fuse_groups *f, pln_ref source) {
  pln_fuse_arguments *a = &f->arguments;
  PLN_TRY(pln_mem_grow(f->engine, (void **)&a->fusions, &a->cap_fusions,
                       (size_t)a->n_fusions + 1, sizeof *a->fusions));
  a->fusions[a->n_fusions] =
      (pln_postponed_fusion){source, a->first[a->postpone]};
  a->first[a->postpone] = ++a->n_fusions;
  return PLN_OK;
}

/* ------------------------------------------------------------------- tables
 */

pln_status pln_fuse_arguments_begin(pln_fuse_groups *f, uint32_t most) {
  pln_fuse_arguments *a = &f->arguments;
  size_t size = f->graph->n_nodes * sizeof(uint32_t);
  *a = (pln_fuse_arguments){.most = most, .postpone = PLN_NONE};
  if (!most)
    return PLN_OK;
  a->count = pln_mem_new(f->engine, size);
  a->seen = pln_mem_zeroed(f->engine, size);
  a->first = pln_mem_zeroed(f->engine, size);
  if (!a->count || !a->seen || !a->first)
    return pln_nomem(f->engine);
  for (pln_ref ref = 0; ref < f->graph->n_nodes; ref++)
    a->count[ref] = own_args(f, ref);
  return PLN_OK;
}

void pln_fuse_arguments_end(pln_fuse_groups *f) {
  pln_fuse_arguments *a = &f->arguments;
  size_t size = f->graph->n_nodes * sizeof(uint32_t);
  pln_mem_free(f->engine, a->count, a->count ? size : 0);
  pln_mem_free(f->engine, a->seen, a->seen ? size : 0);
  pln_mem_free(f->engine, a->first, a->first ? size : 0);
  pln_mem_free(f->engine, a->stack, a->cap_stack * sizeof *a->stack);
  pln_mem_free(f->engine, a->fusions, a->cap_fusions * sizeof *a->fusions);
}
