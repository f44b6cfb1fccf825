/* split_args.c: SplitArgs: limits how many tensors one concatenate takes, for
 * devices whose kernels have few arguments.
 *
 * Run by the executor, once per function. Requires a verified graph. A
 * concatenate of a tuple of more tensors becomes a chain, each of which takes
 * the one before. annotation.stop_fusion keeps FuseOps from putting them
 * together again. A tensor with unknown extents counts once more for each of
 * them and for each of its strides.
 *
 *     concatenate((%a, %b, %c, %d)), max_function_args=4   =>
 *     %0 = concatenate(annotation.stop_fusion((%a, %b, %c)));
 *     concatenate(annotation.stop_fusion((%0, %d)))
 *
 * Semantics: TVM SplitArgs. */

#include "transform/compile_target.h"
#include "transform/relay_builder.h"

typedef struct arg_splitter {
  pln_engine *engine;
  int64_t most;
  pln_ref *fields;
  uint32_t cap_fields;
  int64_t split;
} arg_splitter;

static bool is_unknown(pln_dim dim) {
  return !PLN_DIM_IS_CONST(dim);
}

/* What is passed to a kernel besides the tensor. */
static int64_t extra_args(const pln_engine *e, pln_type type, bool is_result) {
  int32_t rank = pln_type_rank(e, type);
  int64_t unknown = 0;
  for (int32_t i = 0; i < rank; i++)
    unknown += is_unknown(pln_type_dims(e, type)[i]);
  return unknown == 0 ? 0 : is_result ? rank : unknown + rank;
}

static int64_t args_of(const pln_graph *g, pln_ref node) {
  return 1 + extra_args(g->engine, g->nodes[node].type, false);
}

/* concatenate(annotation.stop_fusion((fields))). */
static pln_ref join(pln_relay_builder *r, pln_attrs attrs, uint32_t n,
                    const pln_ref *fields) {
  pln_ref tuple = pln_relay_tuple(r, n, fields);
  pln_ref stop = pln_relay_call(r, PLN_OP_STOP_FUSION, 1, tuple);
  return pln_relay_call_core(r, PLN_OP_CONCAT, attrs, 1, &stop);
}

/* Fields are taken while they fit, then their concatenation is the first field
 * of the next. */
static pln_ref join_in_chain(arg_splitter *s, pln_relay_builder *r,
                             const pln_graph *old, pln_ref tuple,
                             pln_attrs attrs, int64_t limit) {
  uint32_t n = 0;
  int64_t args = 0;
  for (uint32_t i = 0; i < old->nodes[tuple].count; i++) {
    pln_ref field = pln_operand(old, tuple, i);
    int64_t more = args_of(old, field);
    if (args + more > limit && n > 0) {
      s->fields[0] = join(r, attrs, n, s->fields);
      n = 1;
      args = more;
    }
    args += more;
    s->fields[n++] = pln_rewrite_image(r->rw, field);
  }
  return join(r, attrs, n, s->fields);
}

static pln_status split_node(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  arg_splitter *s = ud;
  pln_relay_builder r;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node n = g->nodes[old];
  if (n.kind != PLN_CALL || n.data != PLN_OP_CONCAT || n.count != 1 ||
      n.flags & PLN_NODE_KEEP)
    return PLN_OK;
  pln_ref tuple = pln_operand(g, old, 0);
  if (g->nodes[tuple].kind != PLN_TUPLE)
    return PLN_OK;
  int64_t limit = s->most - 1 - extra_args(s->engine, n.type, true), args = 0;
  for (uint32_t i = 0; i < g->nodes[tuple].count; i++)
    args += args_of(g, pln_operand(g, tuple, i));
  if (limit <= 0)
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "concatenate: max_function_args=%lld leaves no "
                          "arguments beside the result",
                          (long long)s->most);
  if (args < limit)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->fields, &s->cap_fields,
                       (size_t)g->nodes[tuple].count + 1, sizeof *s->fields));
  PLN_TRY(pln_relay_begin(&r, rw));
  pln_ref chain = join_in_chain(s, &r, g, tuple, n.attrs, limit);
  s->split++;
  return pln_relay_finish(&r, "split", chain, node);
}

/* The option, or what the target says. */
static int64_t most_arguments(const pln_pass_run *run) {
  int64_t most = pln_run_int(run, "max_function_args");
  return most ? most : pln_run_target_count(run, "max_function_args");
}

pln_status pln_pass_split_args(pln_pass_run *run) {
  arg_splitter s = {.engine = pln_run_engine(run), .most = most_arguments(run)};
  pln_mutator m = {.ud = &s, .visit = split_node};
  if (s.most == 0)
    return PLN_OK;
  pln_status status = pln_rewrite_function(run, &m);
  pln_mem_free(s.engine, s.fields, s.cap_fields * sizeof *s.fields);
  if (status == PLN_OK && s.split)
    status = pln_run_count(run, "split", s.split);
  return status;
}
