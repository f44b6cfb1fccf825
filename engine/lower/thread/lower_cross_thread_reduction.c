/* lower_cross_thread_reduction.c: tir.LowerCrossThreadReduction: blocks that
 * reduce over threads become calls that do.
 *
 * Run by the executor, for functions that were not made of tensor expressions.
 * thread_reduction.c finds the blocks. Each becomes up to four blocks in its
 * thread loops: what each thread begins with, the reduction of each thread, the
 * one of all threads, and a store of the result. A block that reads a result
 * with threads around it that the reduction had and it has not runs in one of
 * them.
 *
 *     for k in T.thread_binding(8, thread="threadIdx.x"):
 *         with T.block("B"): ...; B[vi] = B[vi] + A[vi, vk]
 *     =>
 *     for k in T.thread_binding(8, thread="threadIdx.x"):
 *         with T.block("B_cross_thread"):
 *             T.tvm_thread_allreduce(1, A[vi, vk], True, cross_thread_B[0], k)
 *         with T.block("B_write_back"):
 *             T.where(k == 0)
 *             B[vi] = cross_thread_B[0]
 *
 * Semantics: TVM's tir.LowerCrossThreadReduction. */

#include <stdio.h>

#include "lower/thread/thread_reduction.h"

enum { MOST_THREADS = 3 };

/* What was made of a reduction; nodes of the builder. */
typedef struct lowered_reduction {
  pln_ref in_thread[PLN_MOST_COMBINED], cross_thread[PLN_MOST_COMBINED];
  uint32_t next; /* 1 + the next reduction in the same block; 0: none */
} lowered_reduction;

/* A thread loop of a reduction whose result a block reads. */
typedef struct free_thread {
  pln_slice tag;
  pln_ref loop; /* of the old graph */
} free_thread;

typedef struct lowering {
  pln_thread_reductions all;
  const pln_graph *g;
  pln_emit e;
  pln_stmt_rewrite *s;
  lowered_reduction *made;
  uint32_t now;          /* 1 + the reduction whose block is visited */
  uint32_t *result_of;   /* by node: 1 + the reduction that wrote the Buffer, if
                          * it is of this kernel */
  uint32_t *scratch_of;  /* by node: 1 + the first reduction in the Block */
  uint32_t kernel_first; /* of the reductions of this kernel */
  uint32_t n_made;
  uint32_t block_depth, thread_depth; /* loops around: blockIdx, threadIdx */
  pln_ref *threads; /* thread loops around, of the old graph */
  uint32_t n_threads, cap_threads;
  pln_ref *list; /* statements */
  uint32_t n_list, cap_list;
} lowering;

static pln_status push(lowering *x, pln_ref stmt) {
  PLN_TRY(x->e.status);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->list, &x->cap_list,
                       (size_t)x->n_list + 1, sizeof *x->list));
  x->list[x->n_list++] = stmt;
  return PLN_OK;
}

/* Statements of a sequence, or the one that it is. */
static pln_status push_flat(lowering *x, pln_ref stmt) {
  const pln_graph *g = x->e.b->graph;
  if (g->nodes[stmt].kind != PLN_SEQ_STMT)
    return push(x, stmt);
  for (uint32_t i = 0; i < g->nodes[stmt].count; i++)
    PLN_TRY(push(x, pln_operand(x->e.b->graph, stmt, i)));
  return PLN_OK;
}

static pln_status take_list(lowering *x, uint32_t first, pln_ref *out) {
  *out = pln_emit_seq(&x->e, x->n_list - first, x->list + first);
  x->n_list = first;
  return x->e.status;
}

static pln_ref zero(lowering *x) {
  return pln_emit_int(&x->e, PLN_INT32, 0);
}

static pln_status map(lowering *x, pln_ref old, pln_ref *out) {
  return pln_stmt_map(x->s, old, out);
}

/* ---------------------------------------------------------- memory of threads
 */

/* T.alloc_buffer((1,), strides=(1,), scope="local") */
static pln_ref scratch_buffer(lowering *x, pln_ref like, const char *prefix) {
  pln_emit *e = &x->e;
  const pln_node *n = &x->g->nodes[like];
  pln_slice base = pln_symbol_text(x->g->engine, n->data);
  char name[256];
  pln_symbol symbol;
  (void)snprintf(name, sizeof name, "%s_thread_%.*s", prefix,
                 base.size < 200 ? (int)base.size : 200, base.data);
  pln_ref data = pln_emit_var(e, name, pln_emit_pointer(e, n->type, "local"));
  pln_ref one = pln_emit_int(e, PLN_INT32, 1), out = PLN_NONE;
  pln_buffer_spec spec = {.type = n->type,
                          .data = data,
                          .rank = 1,
                          .shape = &one,
                          .n_strides = 1,
                          .strides = &one,
                          .elem_offset = zero(x)};
  if (e->status == PLN_OK)
    e->status = pln_symbol_intern(x->g->engine, pln_text(name), &symbol);
  if (e->status != PLN_OK)
    return PLN_NONE;
  spec.name = symbol;
  e->status = pln_build_buffer(e->b, &spec, &out);
  return out;
}

static pln_ref buffer_of(const lowering *x, const pln_thread_reduction *r,
                         uint32_t i) {
  return pln_operand(x->g, r->update.stores[i], 0);
}

static void make_scratch(lowering *x, uint32_t at) {
  const pln_thread_reduction *r = &x->all.items[at];
  for (uint32_t i = 0; i < r->update.n; i++) {
    x->made[at].cross_thread[i] =
        scratch_buffer(x, buffer_of(x, r, i), "cross");
    if (r->in_thread)
      x->made[at].in_thread[i] = scratch_buffer(x, buffer_of(x, r, i), "in");
  }
}

/* The region of the first element. */
static pln_ref first_element(lowering *x, pln_ref buffer) {
  pln_ref ends[2] = {zero(x), pln_emit_int(&x->e, PLN_INT32, 1)}, parts[2];
  parts[0] = buffer;
  parts[1] = pln_emit_binary(&x->e, PLN_RANGE, ends[0], ends[1]);
  return pln_emit_prim(
      &x->e, &(pln_prim){.kind = PLN_BUFFER_REGION, .n = 2, .operands = parts});
}

/* BlockReads or BlockWrites of the first elements of buffers. */
static pln_ref first_elements(lowering *x, pln_kind kind, uint32_t n,
                              const pln_ref *buffers) {
  pln_ref regions[PLN_MOST_COMBINED];
  for (uint32_t i = 0; i < n; i++)
    regions[i] = first_element(x, buffers[i]);
  return pln_emit_prim(&x->e,
                       &(pln_prim){.kind = kind, .n = n, .operands = regions});
}

/* The number of the Buffer among the results of the reduction whose block is
 * visited, or -1. */
static int32_t result_number(const lowering *x, pln_ref buffer) {
  const pln_thread_reduction *r = x->now ? &x->all.items[x->now - 1] : NULL;
  for (uint32_t i = 0; r && i < r->update.n; i++)
    if (buffer_of(x, r, i) == buffer)
      return (int32_t)i;
  return -1;
}

/* -------------------------------------------------------------------- blocks
 */

/* Variables of a new block, as many as those of an old one or fewer. */
typedef struct block_axes {
  uint32_t n;
  pln_ref *params, *domains, *values; /* in one allocation */
  int64_t *types;
} block_axes;

static size_t axes_size(const lowering *x, pln_ref block) {
  size_t each = 3 * sizeof(pln_ref) + sizeof(int64_t);
  return (x->g->nodes[block].count + (size_t)1) * each;
}

static pln_status new_axes(const lowering *x, pln_ref block, block_axes *out) {
  size_t n = x->g->nodes[block].count + (size_t)1;
  int64_t *types = pln_mem_new(x->g->engine, axes_size(x, block));
  if (!types)
    return pln_nomem(x->g->engine);
  pln_ref *refs = (pln_ref *)(types + n);
  *out = (block_axes){0, refs, refs + n, refs + 2 * n, types};
  return PLN_OK;
}

static pln_slice with_suffix(const lowering *x, pln_ref block,
                             const char *suffix, char *space, size_t size) {
  pln_slice name =
      pln_attrs_string(x->g->engine, x->g->nodes[block].attrs, "name_hint", "");
  int n = snprintf(space, size, "%.*s%s",
                   name.size < 200 ? (int)name.size : 200, name.data, suffix);
  return (pln_slice){space, (size_t)n};
}

static pln_status set_attr(lowering *x, const char *name, pln_attr value,
                           pln_attrs *attrs) {
  PLN_TRY(pln_symbol_intern(x->g->engine, pln_text(name), &value.name));
  return pln_attrs_with(x->g->engine, *attrs, &value, attrs);
}

/* A block of that name with its condition; `body` has what it reads and writes.
 */
static pln_status emit_block(lowering *x, pln_ref like, const char *suffix,
                             const block_axes *axes, pln_ref condition,
                             pln_ref body, pln_ref *out) {
  char space[256];
  pln_slice name = with_suffix(x, like, suffix, space, sizeof space);
  uint32_t n = axes ? axes->n : 0;
  pln_prim block = {
      .kind = PLN_BLOCK, .n = n, .operands = axes ? axes->domains : NULL};
  pln_body inner = {
      .n_params = n, .params = axes ? axes->params : NULL, .stmt = body};
  PLN_TRY(x->e.status);
  PLN_TRY(set_attr(x, "name_hint",
                   (pln_attr){.kind = PLN_ATTR_STRING, .v.s = name},
                   &block.attrs));
  PLN_TRY(set_attr(x, "iter_types",
                   (pln_attr){.kind = PLN_ATTR_INTS,
                              .count = n,
                              .v.ints = n ? axes->types : NULL},
                   &block.attrs));
  PLN_TRY(pln_build_floating_stmt(x->e.b, &block, 1, &inner, out));
  uint32_t first = x->n_list;
  PLN_TRY(push(x, condition));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(push(x, axes->values[i]));
  pln_prim realize = {
      .kind = PLN_BLOCK_REALIZE, .n = n + 1, .operands = x->list + first};
  inner = (pln_body){.stmt = *out};
  x->n_list = first;
  return pln_build_floating_stmt(x->e.b, &realize, 1, &inner, out);
}

static int64_t type_of_axis(const lowering *x, pln_ref block, uint32_t i) {
  return pln_is_reduction_axis(x->g, block, i) ? 2 : 0;
}

static pln_status add_axis(lowering *x, const pln_thread_reduction *r,
                           uint32_t i, pln_ref param, block_axes *axes) {
  uint32_t k = axes->n++;
  axes->params[k] = param;
  axes->types[k] = type_of_axis(x, r->block, i);
  PLN_TRY(map(x, pln_operand(x->g, r->block, i), &axes->domains[k]));
  return map(x, pln_operand(x->g, r->realize, i + 1), &axes->values[k]);
}

static pln_ref param_of(const lowering *x, const pln_thread_reduction *r,
                        uint32_t i) {
  return x->g->scopes[x->g->nodes[r->block].data].begin + i;
}

/* ------------------------------------------------------ the thread's own part
 */

static pln_status map_inits(lowering *x, const pln_thread_reduction *r,
                            pln_ref *out) {
  for (uint32_t i = 0; i < r->update.n; i++)
    PLN_TRY(map(x, r->update.inits[i], &out[i]));
  return PLN_OK;
}

static pln_status begin_in_thread(lowering *x, uint32_t at) {
  const pln_thread_reduction *r = &x->all.items[at];
  pln_ref inits[PLN_MOST_COMBINED], body, block;
  uint32_t first = x->n_list;
  PLN_TRY(map_inits(x, r, inits));
  PLN_TRY(push(x, first_elements(x, PLN_BLOCK_READS, 0, NULL)));
  PLN_TRY(push(x, first_elements(x, PLN_BLOCK_WRITES, r->update.n,
                                 x->made[at].in_thread)));
  for (uint32_t i = 0; i < r->update.n; i++)
    PLN_TRY(push(
        x, pln_emit_store(&x->e, x->made[at].in_thread[i], zero(x), inits[i])));
  PLN_TRY(take_list(x, first, &body));
  PLN_TRY(emit_block(x, r->block, "_in_thread_init", NULL,
                     pln_emit_int(&x->e, PLN_BOOL, 1), body, &block));
  return push(x, block);
}

/* ---------------------------------------------------------- all threads' part
 */

static pln_status push_sources(lowering *x, uint32_t at) {
  const pln_thread_reduction *r = &x->all.items[at];
  for (uint32_t i = 0; i < r->update.n; i++) {
    pln_ref source;
    if (r->in_thread)
      source = pln_emit_load(&x->e, x->made[at].in_thread[i], zero(x));
    else
      PLN_TRY(map(x, r->update.terms[i], &source));
    PLN_TRY(push(x, source));
  }
  return PLN_OK;
}

/* T.tvm_thread_allreduce(n, sources, True, results, threads) */
static pln_status emit_allreduce(lowering *x, uint32_t at, pln_ref *out) {
  const pln_thread_reduction *r = &x->all.items[at];
  uint32_t first = x->n_list;
  PLN_TRY(push(x, pln_emit_int(&x->e, PLN_UINT32, r->update.n)));
  PLN_TRY(push_sources(x, at));
  PLN_TRY(push(x, pln_emit_int(&x->e, PLN_BOOL, 1)));
  for (uint32_t i = 0; i < r->update.n; i++)
    PLN_TRY(
        push(x, pln_emit_load(&x->e, x->made[at].cross_thread[i], zero(x))));
  for (uint32_t i = 0; i < r->n_loops; i++) {
    pln_ref var = x->g->scopes[x->g->nodes[r->loops[i]].data].begin;
    if (!pln_is_thread_loop(x->g, r->loops[i]))
      continue;
    PLN_TRY(map(x, var, &var));
    PLN_TRY(push(x, var));
  }
  *out = pln_emit_call(&x->e, "tvm_thread_allreduce",
                       pln_emit_type(&x->e, PLN_DTYPE_NONE), x->n_list - first,
                       x->list + first);
  x->n_list = first;
  return x->e.status;
}

static pln_status emit_reduce_scope(lowering *x, uint32_t at, pln_ref *out) {
  const pln_thread_reduction *r = &x->all.items[at];
  pln_ref inits[PLN_MOST_COMBINED], call;
  PLN_TRY(map_inits(x, r, inits));
  pln_ref reducer = pln_emit_reducer(&x->e, &r->update, inits);
  pln_ref null = pln_emit_int(&x->e, PLN_UINT64, 0);
  null = pln_emit_call(&x->e, "reinterpret",
                       pln_emit_type(&x->e, PLN_DTYPE_NONE), 1, &null);
  PLN_TRY(emit_allreduce(x, at, &call));
  *out = pln_emit_attr(&x->e, reducer, "reduce_scope", null,
                       pln_emit_evaluate(&x->e, call));
  return x->e.status;
}

/* What the old block reads; it is in its body. */
static pln_status map_reads(lowering *x, const pln_thread_reduction *r,
                            pln_ref *out) {
  const pln_scope_row *row = &x->g->scopes[x->g->nodes[r->block].data];
  uint32_t first = x->n_list;
  pln_ref reads = row->begin;
  while (reads < row->end && x->g->nodes[reads].kind != PLN_BLOCK_READS)
    reads++;
  for (uint32_t i = 0; reads < row->end && i < x->g->nodes[reads].count; i++) {
    pln_ref region;
    PLN_TRY(map(x, pln_operand(x->g, reads, i), &region));
    PLN_TRY(push(x, region));
  }
  *out = pln_emit_prim(&x->e, &(pln_prim){.kind = PLN_BLOCK_READS,
                                          .n = x->n_list - first,
                                          .operands = x->list + first});
  x->n_list = first;
  return x->e.status;
}

static pln_status cross_thread_body(lowering *x, uint32_t at, pln_ref *out) {
  const pln_thread_reduction *r = &x->all.items[at];
  uint32_t first = x->n_list;
  pln_ref reads, scope;
  if (r->in_thread)
    reads =
        first_elements(x, PLN_BLOCK_READS, r->update.n, x->made[at].in_thread);
  else
    PLN_TRY(map_reads(x, r, &reads));
  PLN_TRY(push(x, reads));
  PLN_TRY(push(x, first_elements(x, PLN_BLOCK_WRITES, r->update.n,
                                 x->made[at].cross_thread)));
  PLN_TRY(emit_reduce_scope(x, at, &scope));
  PLN_TRY(push(x, scope));
  return take_list(x, first, out);
}

static pln_status across_threads(lowering *x, uint32_t at, block_axes *axes) {
  const pln_thread_reduction *r = &x->all.items[at];
  pln_ref body, block;
  for (uint32_t i = 0; !r->in_thread && i < x->g->nodes[r->block].count; i++) {
    pln_ref param;
    PLN_TRY(map(x, param_of(x, r, i), &param));
    PLN_TRY(add_axis(x, r, i, param, axes));
  }
  PLN_TRY(cross_thread_body(x, at, &body));
  PLN_TRY(emit_block(x, r->block, "_cross_thread", axes,
                     pln_emit_int(&x->e, PLN_BOOL, 1), body, &block));
  return push(x, block);
}

/* ---------------------------------------------------------------- write back
 */

/* New variables for the spatial axes, which stand for the old ones. */
static pln_status copy_spatial_axes(lowering *x, const pln_thread_reduction *r,
                                    block_axes *axes) {
  for (uint32_t i = 0; i < x->g->nodes[r->block].count; i++) {
    const pln_node *var = &x->g->nodes[param_of(x, r, i)];
    pln_ref copy;
    if (pln_is_reduction_axis(x->g, r->block, i))
      continue;
    PLN_TRY(pln_build_var(x->e.b, var->attrs, var->type, 0, &copy));
    PLN_TRY(add_axis(x, r, i, copy, axes));
  }
  uint32_t k = 0;
  for (uint32_t i = 0; i < x->g->nodes[r->block].count; i++)
    if (!pln_is_reduction_axis(x->g, r->block, i))
      pln_stmt_bind(x->s, param_of(x, r, i), axes->params[k++]);
  return PLN_OK;
}

static bool is_loop_variable(const lowering *x, const pln_thread_reduction *r,
                             pln_ref ref) {
  for (uint32_t i = 0; i < r->n_loops; i++)
    if (x->g->scopes[x->g->nodes[r->loops[i]].data].begin == ref)
      return true;
  return false;
}

enum { MOST_PARTS = 64, MOST_STEPS = 4096 };

static pln_status refuse_condition(const lowering *x) {
  return pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                        "tir.LowerCrossThreadReduction: the condition of a "
                        "block is too large");
}

static pln_status has_reduction_loop(const lowering *x,
                                     const pln_thread_reduction *r,
                                     pln_ref expr, bool *out) {
  pln_ref stack[MOST_PARTS] = {expr};
  uint32_t n = 1, steps = 0;
  *out = false;
  while (n > 0 && !*out) {
    pln_ref ref = stack[--n];
    const pln_node *node = &x->g->nodes[ref];
    *out = is_loop_variable(x, r, ref);
    if (n + node->count > MOST_PARTS || ++steps > MOST_STEPS)
      return refuse_condition(x);
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = pln_operand(x->g, ref, i);
  }
  return PLN_OK;
}

static pln_status add_part(lowering *x, const pln_thread_reduction *r,
                           pln_ref part, pln_ref *condition) {
  bool reduced;
  PLN_TRY(has_reduction_loop(x, r, part, &reduced));
  if (reduced)
    return PLN_OK;
  PLN_TRY(map(x, part, &part));
  *condition = pln_emit_folded(&x->e, PLN_PRIM_AND, *condition, part);
  return x->e.status;
}

/* condition and each part of the old one that no reduction loop is in. */
static pln_status spatial_condition(lowering *x, const pln_thread_reduction *r,
                                    pln_ref *condition) {
  pln_ref parts[MOST_PARTS] = {pln_operand(x->g, r->realize, 0)};
  uint32_t n = 1;
  while (n > 0) {
    pln_ref ref = parts[--n];
    if (x->g->nodes[ref].kind != PLN_PRIM_AND) {
      PLN_TRY(add_part(x, r, ref, condition));
      continue;
    }
    if (n + 2 > MOST_PARTS)
      return refuse_condition(x);
    parts[n++] = pln_operand(x->g, ref, 1);
    parts[n++] = pln_operand(x->g, ref, 0);
  }
  return PLN_OK;
}

/* Memory that threads share is written by the first of them. */
static pln_status first_thread(lowering *x, const pln_thread_reduction *r,
                               pln_ref *condition) {
  for (uint32_t i = 0; i < r->n_loops; i++) {
    pln_ref var = x->g->scopes[x->g->nodes[r->loops[i]].data].begin;
    if (!pln_is_thread_loop(x->g, r->loops[i]))
      continue;
    PLN_TRY(map(x, var, &var));
    pln_ref first = pln_emit_int_of(&x->e, pln_emit_type_of(&x->e, var), 0);
    *condition =
        pln_emit_folded(&x->e, PLN_PRIM_AND, *condition,
                        pln_emit_folded(&x->e, PLN_PRIM_EQ, var, first));
  }
  return x->e.status;
}

static bool is_local(const lowering *x, pln_ref buffer) {
  pln_type type = x->g->nodes[pln_operand(x->g, buffer, 0)].type;
  return pln_slice_is(
      pln_symbol_text(x->g->engine, pln_type_symbol(x->g->engine, type)),
      "local");
}

/* Every result in the region of the first one. */
static pln_status write_regions(lowering *x, const pln_thread_reduction *r,
                                pln_ref *out) {
  const pln_scope_row *row = &x->g->scopes[x->g->nodes[r->block].data];
  pln_ref regions[PLN_MOST_COMBINED], writes = row->begin;
  while (x->g->nodes[writes].kind != PLN_BLOCK_WRITES)
    writes++;
  pln_ref old = pln_operand(x->g, writes, 0);
  for (uint32_t i = 0; i < r->update.n; i++) {
    uint32_t first = x->n_list;
    pln_ref part;
    PLN_TRY(map(x, buffer_of(x, r, i), &part));
    PLN_TRY(push(x, part));
    for (uint32_t k = 1; k < x->g->nodes[old].count; k++) {
      PLN_TRY(map(x, pln_operand(x->g, old, k), &part));
      PLN_TRY(push(x, part));
    }
    regions[i] = pln_emit_prim(&x->e, &(pln_prim){.kind = PLN_BUFFER_REGION,
                                                  .n = x->n_list - first,
                                                  .operands = x->list + first});
    x->n_list = first;
  }
  *out = pln_emit_prim(&x->e, &(pln_prim){.kind = PLN_BLOCK_WRITES,
                                          .n = r->update.n,
                                          .operands = regions});
  return x->e.status;
}

static pln_status write_back_store(lowering *x, uint32_t at, uint32_t i) {
  const pln_thread_reduction *r = &x->all.items[at];
  pln_ref old = r->update.stores[0], buffer;
  uint32_t first = x->n_list;
  PLN_TRY(map(x, buffer_of(x, r, i), &buffer));
  PLN_TRY(push(x, buffer));
  PLN_TRY(push(x, pln_emit_load(&x->e, x->made[at].cross_thread[i], zero(x))));
  for (uint32_t k = 2; k < x->g->nodes[old].count; k++) {
    pln_ref index;
    PLN_TRY(map(x, pln_operand(x->g, old, k), &index));
    PLN_TRY(push(x, index));
  }
  pln_ref store =
      pln_emit_prim(&x->e, &(pln_prim){.kind = PLN_BUFFER_STORE,
                                       .n = x->n_list - first,
                                       .operands = x->list + first});
  x->n_list = first;
  return push(x, store);
}

static pln_status write_back(lowering *x, uint32_t at, block_axes *axes) {
  const pln_thread_reduction *r = &x->all.items[at];
  pln_ref condition = pln_emit_int(&x->e, PLN_BOOL, 1), writes, body, block;
  uint32_t first = x->n_list;
  PLN_TRY(spatial_condition(x, r, &condition));
  if (!is_local(x, buffer_of(x, r, 0)))
    PLN_TRY(first_thread(x, r, &condition));
  PLN_TRY(copy_spatial_axes(x, r, axes));
  PLN_TRY(push(x, first_elements(x, PLN_BLOCK_READS, r->update.n,
                                 x->made[at].cross_thread)));
  PLN_TRY(write_regions(x, r, &writes));
  PLN_TRY(push(x, writes));
  for (uint32_t i = 0; i < r->update.n; i++)
    PLN_TRY(write_back_store(x, at, i));
  PLN_TRY(take_list(x, first, &body));
  PLN_TRY(
      emit_block(x, r->block, "_write_back", axes, condition, body, &block));
  return push(x, block);
}

/* --------------------------------------------------------------- whole nests
 */

typedef pln_status (*block_builder)(lowering *x, uint32_t at, block_axes *axes);

static pln_status with_axes(lowering *x, uint32_t at, block_builder make) {
  pln_ref block = x->all.items[at].block;
  block_axes axes = {0};
  PLN_TRY(new_axes(x, block, &axes));
  pln_status status = make(x, at, &axes);
  pln_mem_free(x->g->engine, axes.types, axes_size(x, block));
  return status;
}

/* The statement in a loop like the old one, whose variable is mapped. */
static pln_status wrap_loop(lowering *x, pln_ref loop, pln_ref *stmt) {
  const pln_node *n = &x->g->nodes[loop];
  pln_ref operands[3], var = x->g->scopes[n->data].begin;
  pln_prim spec = {
      .kind = PLN_FOR, .attrs = n->attrs, .n = n->count, .operands = operands};
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(map(x, pln_operand(x->g, loop, i), &operands[i]));
  PLN_TRY(map(x, var, &var));
  pln_body body = {.n_params = 1, .params = &var, .stmt = *stmt};
  return pln_build_floating_stmt(x->e.b, &spec, 1, &body, stmt);
}

/* The four blocks in the thread loops; `inner` is what is left of the loops, or
 * PLN_NONE. */
static pln_status assemble(lowering *x, uint32_t at, pln_ref inner,
                           pln_ref *out) {
  const pln_thread_reduction *r = &x->all.items[at];
  uint32_t first = x->n_list;
  if (r->in_thread)
    PLN_TRY(begin_in_thread(x, at));
  if (inner != PLN_NONE)
    PLN_TRY(push_flat(x, inner));
  PLN_TRY(with_axes(x, at, across_threads));
  PLN_TRY(with_axes(x, at, write_back));
  PLN_TRY(take_list(x, first, out));
  for (uint32_t i = r->n_loops; i-- > 0;)
    if (pln_is_thread_loop(x->g, r->loops[i]))
      PLN_TRY(wrap_loop(x, r->loops[i], out));
  return PLN_OK;
}

static bool is_no_op(const lowering *x, pln_ref stmt) {
  const pln_graph *g = x->e.b->graph;
  return g->nodes[stmt].kind == PLN_EVALUATE &&
         pln_is_int(g, pln_operand(g, stmt, 0), 0);
}

static pln_status leave_loop(lowering *x, uint32_t at, pln_ref loop,
                             pln_ref *node) {
  const pln_thread_reduction *r = &x->all.items[at];
  pln_ref inner = pln_stmt_body(x->s, 0);
  if (is_no_op(x, inner))
    inner = PLN_NONE;
  else if (!pln_is_thread_loop(x->g, loop))
    PLN_TRY(pln_stmt_rebuild(x->s, loop, &inner));
  if (loop == r->loops[0])
    return assemble(x, at, inner, node);
  *node = inner == PLN_NONE ? PLN_NO_STMT : inner;
  return PLN_OK;
}

/* ------------------------------------------------------------------- kernels
 */

static bool binds(const lowering *x, pln_ref loop, const char *prefix) {
  pln_slice tag;
  size_t n = strlen(prefix);
  if (!pln_is_thread_loop(x->g, loop))
    return false;
  tag = pln_thread_tag(x->g, loop);
  return tag.size >= n && memcmp(tag.data, prefix, n) == 0;
}

static pln_status enter_threads(lowering *x, pln_ref loop) {
  if (!pln_is_thread_loop(x->g, loop))
    return PLN_OK;
  x->block_depth += binds(x, loop, "blockIdx.");
  x->thread_depth += binds(x, loop, "threadIdx.");
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->threads, &x->cap_threads,
                       (size_t)x->n_threads + 1, sizeof *x->threads));
  x->threads[x->n_threads++] = loop;
  return PLN_OK;
}

/* With the outermost loop of a kernel its results are out of reach. */
static void leave_threads(lowering *x, pln_ref loop) {
  if (!pln_is_thread_loop(x->g, loop))
    return;
  bool block = binds(x, loop, "blockIdx."),
       thread = binds(x, loop, "threadIdx.");
  x->n_threads--;
  x->block_depth -= block;
  x->thread_depth -= thread;
  if (block || (thread && x->thread_depth == 0 && x->block_depth == 0))
    x->kernel_first = x->n_made;
}

static void add_result(lowering *x, uint32_t at) {
  const pln_thread_reduction *r = &x->all.items[at];
  for (uint32_t i = 0; i < r->update.n; i++)
    x->result_of[buffer_of(x, r, i)] = at + 1;
  x->n_made = at + 1;
}

/* ----------------------------------------------------------------- broadcast
 */

static void add_thread(const lowering *x, pln_ref loop, free_thread *free,
                       uint32_t *n) {
  pln_slice tag = pln_thread_tag(x->g, loop);
  for (uint32_t i = 0; i < *n; i++)
    if (pln_slice_equal(free[i].tag, tag))
      return;
  if (*n < MOST_THREADS)
    free[(*n)++] = (free_thread){tag, loop};
}

static bool is_around(const lowering *x, pln_slice tag) {
  for (uint32_t i = 0; i < x->n_threads; i++)
    if (pln_slice_equal(pln_thread_tag(x->g, x->threads[i]), tag))
      return true;
  return false;
}

/* The BlockReads or BlockWrites of a block, or PLN_NONE. */
static pln_ref regions_of(const lowering *x, pln_ref block, pln_kind kind) {
  const pln_scope_row *row = &x->g->scopes[x->g->nodes[block].data];
  for (pln_ref ref = row->begin; ref < row->end; ref++) {
    if (x->g->nodes[ref].kind == kind)
      return ref;
    if (pln_is_stmt(&x->g->nodes[ref]) &&
        pln_is_seq_element((pln_kind)x->g->nodes[ref].kind))
      break;
  }
  return PLN_NONE;
}

static bool writes_local(const lowering *x, pln_ref block) {
  pln_ref writes = regions_of(x, block, PLN_BLOCK_WRITES);
  for (uint32_t i = 0; writes != PLN_NONE && i < x->g->nodes[writes].count; i++)
    if (is_local(x, pln_operand(x->g, pln_operand(x->g, writes, i), 0)))
      return true;
  return false;
}

/* The threads of the reductions of this kernel whose results the block reads
 * that are not bound around it. */
static uint32_t find_free_threads(const lowering *x, pln_ref realize,
                                  free_thread *out) {
  pln_ref block = x->g->scopes[x->g->nodes[realize].data].result;
  pln_ref reads = regions_of(x, block, PLN_BLOCK_READS);
  uint32_t n = 0, left = 0;
  if (reads == PLN_NONE || x->n_made == x->kernel_first ||
      writes_local(x, block))
    return 0;
  for (uint32_t i = 0; i < x->g->nodes[reads].count; i++) {
    pln_ref buffer = pln_operand(x->g, pln_operand(x->g, reads, i), 0);
    uint32_t at = x->result_of[buffer];
    if (at <= x->kernel_first)
      continue;
    const pln_thread_reduction *r = &x->all.items[at - 1];
    for (uint32_t k = r->n_loops; k-- > 0;)
      if (pln_is_thread_loop(x->g, r->loops[k]))
        add_thread(x, r->loops[k], out, &n);
  }
  for (uint32_t i = 0; i < n; i++)
    if (!is_around(x, out[i].tag))
      out[left++] = out[i];
  return left;
}

static pln_status bind_thread(lowering *x, const free_thread *thread,
                              pln_ref var, pln_ref *stmt) {
  pln_ref min, extent;
  PLN_TRY(map(x, pln_operand(x->g, thread->loop, 0), &min));
  PLN_TRY(map(x, pln_operand(x->g, thread->loop, 1), &extent));
  *stmt = pln_emit_thread_loop(&x->e, thread->tag, 0, var, min, extent, *stmt);
  return x->e.status;
}

static pln_status run_in_one_thread(lowering *x, pln_ref realize, uint32_t n,
                                    const free_thread *threads, pln_ref *node) {
  pln_ref vars[MOST_THREADS], condition = pln_stmt_operand(x->s, 0);
  uint32_t count = x->g->nodes[realize].count, first = x->n_list;
  for (uint32_t i = 0; i < n; i++) {
    pln_ref var = x->g->scopes[x->g->nodes[threads[i].loop].data].begin, min;
    char name[3] = {'t', threads[i].tag.data[threads[i].tag.size - 1], '\0'};
    vars[i] = pln_emit_var(&x->e, name, x->g->nodes[var].type);
    PLN_TRY(map(x, pln_operand(x->g, threads[i].loop, 0), &min));
    condition = pln_emit_folded(
        &x->e, PLN_PRIM_AND, pln_emit_folded(&x->e, PLN_PRIM_EQ, vars[i], min),
        condition);
  }
  PLN_TRY(push(x, condition));
  for (uint32_t i = 1; i < count; i++)
    PLN_TRY(push(x, pln_stmt_operand(x->s, i)));
  pln_prim spec = {
      .kind = PLN_BLOCK_REALIZE, .n = count, .operands = x->list + first};
  pln_body body = {.stmt = pln_stmt_body(x->s, 0)};
  x->n_list = first;
  PLN_TRY(pln_build_floating_stmt(x->e.b, &spec, 1, &body, node));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(bind_thread(x, &threads[i], vars[i], node));
  return PLN_OK;
}

static pln_status leave_realize(lowering *x, pln_ref realize, pln_ref *node) {
  free_thread threads[MOST_THREADS];
  if (x->all.at[realize]) {
    x->now = 0;
    add_result(x, x->all.at[realize] - 1);
    return PLN_OK;
  }
  uint32_t n = find_free_threads(x, realize, threads);
  return n > 0 ? run_in_one_thread(x, realize, n, threads, node) : PLN_OK;
}

/* ----------------------------------------------------------------- callbacks
 */

static pln_status map_load(void *ud, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  lowering *x = ud;
  (void)s;
  if (x->g->nodes[old].kind != PLN_BUFFER_LOAD)
    return PLN_OK;
  int32_t i = result_number(x, pln_operand(x->g, old, 0));
  if (i < 0)
    return PLN_OK;
  *node = pln_emit_load(&x->e, x->made[x->now - 1].in_thread[i], zero(x));
  return x->e.status;
}

/* A block whose threads have no part of their own goes away here. */
static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  lowering *x = ud;
  x->s = s;
  x->e.b = pln_stmt_builder(s);
  if (x->g->nodes[stmt].kind == PLN_BLOCK_INIT && x->now)
    *node = PLN_NO_STMT;
  if (x->g->nodes[stmt].kind != PLN_BLOCK_REALIZE || !x->all.at[stmt])
    return PLN_OK;
  uint32_t at = x->all.at[stmt] - 1;
  make_scratch(x, at);
  if (x->all.items[at].in_thread)
    return x->e.status;
  *node = PLN_NO_STMT;
  add_result(x, at);
  return x->e.status;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  lowering *x = ud;
  (void)s;
  (void)k;
  (void)skip;
  if (x->g->nodes[stmt].kind == PLN_FOR)
    return enter_threads(x, stmt);
  if (x->g->nodes[stmt].kind == PLN_BLOCK_REALIZE && x->all.at[stmt])
    x->now = x->all.at[stmt];
  return PLN_OK;
}

/* The memory of the reductions in a block, in order. */
static pln_status allocate_scratch(lowering *x, pln_ref block, pln_ref *body) {
  uint32_t first = x->n_list;
  for (uint32_t at = x->scratch_of[block]; at; at = x->made[at - 1].next) {
    const pln_thread_reduction *r = &x->all.items[at - 1];
    for (uint32_t i = 0; i < r->update.n; i++)
      PLN_TRY(push(x, x->made[at - 1].cross_thread[i]));
    for (uint32_t i = 0; r->in_thread && i < r->update.n; i++)
      PLN_TRY(push(x, x->made[at - 1].in_thread[i]));
  }
  *body = pln_emit_with_allocations(&x->e, *body, x->n_list - first,
                                    x->list + first);
  x->n_list = first;
  return x->e.status;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  lowering *x = ud;
  (void)s;
  (void)k;
  (void)again;
  if (x->g->nodes[stmt].kind == PLN_FOR)
    leave_threads(x, stmt);
  return x->scratch_of[stmt] ? allocate_scratch(x, stmt, body) : PLN_OK;
}

/* The thread's own reduction is the old block with other memory. */
static pln_status rename_block(lowering *x, pln_ref block, pln_ref *node) {
  char space[256];
  pln_prim spec = {.kind = PLN_BLOCK,
                   .attrs = x->g->nodes[block].attrs,
                   .n = x->g->nodes[block].count};
  pln_slice name = with_suffix(x, block, "_in_thread", space, sizeof space);
  PLN_TRY(set_attr(x, "name_hint",
                   (pln_attr){.kind = PLN_ATTR_STRING, .v.s = name},
                   &spec.attrs));
  return pln_stmt_rebuild_as(x->s, block, &spec, node);
}

static pln_status leave_inner(lowering *x, pln_ref stmt, pln_ref *node) {
  const lowered_reduction *made = &x->made[x->now - 1];
  const pln_thread_reduction *r = &x->all.items[x->now - 1];
  int32_t i;
  switch (x->g->nodes[stmt].kind) {
  case PLN_BLOCK: return rename_block(x, stmt, node);
  case PLN_BLOCK_WRITES:
    *node = first_elements(x, PLN_BLOCK_WRITES, r->update.n, made->in_thread);
    return x->e.status;
  case PLN_BUFFER_STORE:
    i = result_number(x, pln_operand(x->g, stmt, 0));
    if (i >= 0)
      *node = pln_emit_store(&x->e, made->in_thread[i], zero(x),
                             pln_stmt_operand(x->s, 1));
    return x->e.status;
  default: return PLN_OK;
  }
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  lowering *x = ud;
  (void)s;
  if (x->g->nodes[stmt].kind == PLN_BLOCK_REALIZE)
    return leave_realize(x, stmt, node);
  if (x->g->nodes[stmt].kind == PLN_FOR && x->all.at[stmt])
    return leave_loop(x, x->all.at[stmt] - 1, stmt, node);
  return x->now ? leave_inner(x, stmt, node) : PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status lower(lowering *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = map_load,
                              .enter = enter_stmt,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes;
  PLN_TRY(pln_thread_reductions_find(x->g, &x->all));
  if (x->all.n == 0)
    return PLN_OK;
  x->made = pln_mem_zeroed(e, x->all.n * sizeof *x->made);
  x->result_of = pln_mem_zeroed(e, nodes * sizeof *x->result_of);
  x->scratch_of = pln_mem_zeroed(e, nodes * sizeof *x->scratch_of);
  if (!x->made || !x->result_of || !x->scratch_of)
    return pln_nomem(e);
  for (uint32_t i = x->all.n; i-- > 0;) {
    uint32_t *first = &x->scratch_of[x->all.items[i].outer_block];
    x->made[i].next = *first;
    *first = i + 1;
  }
  return pln_lower_function(run, &mutator);
}

pln_status pln_pass_tir_lower_cross_thread_reduction(pln_pass_run *run) {
  lowering x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t nodes = x.g->n_nodes;
  if (pln_is_legacy_te(x.g) || !pln_has_kind(x.g, PLN_BLOCK_INIT))
    return PLN_OK;
  x.all.g = x.g;
  pln_status status = lower(&x, run);
  pln_mem_free(e, x.made, x.all.n * sizeof *x.made);
  pln_mem_free(e, x.result_of, nodes * sizeof *x.result_of);
  pln_mem_free(e, x.scratch_of, nodes * sizeof *x.scratch_of);
  pln_mem_free(e, x.threads, x.cap_threads * sizeof *x.threads);
  pln_mem_free(e, x.list, x.cap_list * sizeof *x.list);
  pln_thread_reductions_free(&x.all);
  return status;
}
