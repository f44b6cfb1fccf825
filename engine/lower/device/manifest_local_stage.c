/* manifest_local_stage.c: tir.ManifestSharedMemoryLocalStage: copies into
 * shared memory go through local memory, where blocks ask for it.
 *
 * Run by the executor, for functions whose blocks are opaque. A block with the
 * annotation tir.manifest_shared_memory_local_stage stores one element. Loops
 * are around it, with nothing else in them, up to the block that allocates the
 * shared memory. Copies of these loops store the values into local memory
 * first.
 *
 *     for i in range(8): A_shared[i] = A[i]
 *     =>
 *     for i in range(8): A_shared_local[i] = A[i]
 *     for i in range(8): A_shared[i] = A_shared_local[i]
 *
 * Semantics: TVM's tir.ManifestSharedMemoryLocalStage. */

#include <stdio.h>

#include "lower/emit.h"
#include "lower/lower.h"

static const char key[] = "tir.manifest_shared_memory_local_stage";

typedef struct local_stage {
  pln_ref block, realize, store;
  pln_ref outermost;       /* the statement in front of which it stands */
  pln_ref allocating;      /* the Block of the shared memory */
  uint32_t first, n_loops; /* innermost first */
  pln_ref buffer;          /* of the builder */
  uint32_t next;           /* 1 + the next one of the same Block */
} local_stage;

typedef struct manifester {
  const pln_graph *g;
  pln_scope *scope_of; /* by node */
  uint32_t *elements;  /* by scope: statements */
  pln_ref *allocating; /* by Buffer: the Block that allocates it */
  uint32_t *of;        /* by node: 1 + the stage of the Block, its store,
                        * the outermost statement */
  uint32_t
      *first_of_block; /* by Block: 1 + the first stage that it allocates */
  uint32_t *last_of_block;
  local_stage *stages;
  uint32_t n, cap;
  pln_ref *loops;
  uint32_t n_loops, cap_loops;
  pln_ref *list;
  uint32_t n_list, cap_list;
  pln_emit e;
} manifester;

static pln_status refuse(const manifester *x, pln_ref block, const char *what) {
  return pln_diag_error(
      x->g->engine, PLN_ERR_ARGUMENT, NULL,
      "tir.ManifestSharedMemoryLocalStage: block '%s' %s",
      pln_attrs_string(x->g->engine, x->g->nodes[block].attrs, "name_hint", "")
          .data,
      what);
}

static pln_status push(manifester *x, pln_ref item) {
  PLN_TRY(x->e.status);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->list, &x->cap_list,
                       (size_t)x->n_list + 1, sizeof *x->list));
  x->list[x->n_list++] = item;
  return PLN_OK;
}

/* --------------------------------------------------------------------- plan
 */

static bool is_annotated(const pln_graph *g, pln_ref ref) {
  const pln_attr *all =
      g->nodes[ref].kind == PLN_BLOCK
          ? pln_attrs_find(g->engine, g->nodes[ref].attrs, "annotations")
          : NULL;
  return all && all->kind == PLN_ATTR_DICT &&
         pln_attrs_find(g->engine, all->v.dict, key);
}

static bool has_stages(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (is_annotated(g, ref))
      return true;
  return false;
}

static void find_scopes(manifester *x) {
  pln_scope_cursor at = {.graph = x->g};
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    pln_scope scope = pln_scope_cursor_at(&at, ref);
    x->scope_of[ref] = scope;
    if (pln_is_stmt(n) && pln_is_seq_element((pln_kind)n->kind))
      x->elements[scope]++;
    if (n->kind == PLN_ALLOC_BUFFER)
      x->allocating[pln_operand(x->g, ref, 0)] = x->g->scopes[scope].owner;
  }
}

static bool is_shared(const manifester *x, pln_ref buffer) {
  pln_type type = x->g->nodes[pln_operand(x->g, buffer, 0)].type;
  pln_slice scope =
      pln_symbol_text(x->g->engine, pln_type_symbol(x->g->engine, type));
  return scope.size >= 6 && memcmp(scope.data, "shared", 6) == 0;
}

/* The only statement of the block, a store to shared memory. */
static pln_status find_store(const manifester *x, pln_ref block, pln_ref *out) {
  const pln_scope_row *row = &x->g->scopes[x->g->nodes[block].data];
  *out = row->result;
  if (x->g->nodes[block].count > 0)
    return refuse(x, block,
                  "has variables: run tir.ConvertBlocksToOpaque before");
  if (x->elements[x->g->nodes[block].data] != 1 ||
      x->g->nodes[*out].kind != PLN_BUFFER_STORE ||
      !is_shared(x, pln_operand(x->g, *out, 0)))
    return refuse(x, block, "is no single store to shared memory");
  return PLN_OK;
}

static bool is_plain_loop(const pln_graph *g, pln_ref loop) {
  pln_for_kind kind = pln_for_kind_of(g, loop);
  return kind == PLN_FOR_SERIAL || kind == PLN_FOR_VECTORIZED;
}

/* The loops around the block, up to the Block that allocates the memory. */
static pln_status find_loops(manifester *x, local_stage *stage) {
  pln_ref at = stage->realize;
  for (;;) {
    pln_scope scope = x->scope_of[at];
    pln_ref owner = x->g->scopes[scope].owner;
    stage->outermost = at;
    if (owner == stage->allocating)
      return PLN_OK;
    if (scope == 0 || x->g->nodes[owner].kind != PLN_FOR)
      return refuse(x, stage->block,
                    "stores to memory that the block around it and its loops "
                    "does not allocate");
    if (!is_plain_loop(x->g, owner))
      return refuse(x, stage->block,
                    "is in a loop that is neither serial nor vectorized");
    if (x->elements[scope] != 1)
      return refuse(x, stage->block, "is not all that is in its loops");
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->loops, &x->cap_loops,
                         (size_t)x->n_loops + 1, sizeof *x->loops));
    x->loops[x->n_loops++] = owner;
    stage->n_loops++;
    at = owner;
  }
}

static pln_status add_stage(manifester *x, pln_ref block) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->stages, &x->cap,
                       (size_t)x->n + 1, sizeof *x->stages));
  local_stage *stage = &x->stages[x->n++];
  *stage = (local_stage){.block = block,
                         .realize = x->g->scopes[x->scope_of[block]].owner,
                         .first = x->n_loops};
  PLN_TRY(find_store(x, block, &stage->store));
  stage->allocating = x->allocating[pln_operand(x->g, stage->store, 0)];
  PLN_TRY(find_loops(x, stage));
  x->of[block] = x->of[stage->store] = x->of[stage->outermost] = x->n;
  uint32_t *last = &x->last_of_block[stage->allocating];
  if (*last)
    x->stages[*last - 1].next = x->n;
  else
    x->first_of_block[stage->allocating] = x->n;
  *last = x->n;
  return PLN_OK;
}

/* ------------------------------------------------------------------ rewriting
 */

static pln_ref variable_of(const manifester *x, pln_ref loop) {
  return x->g->scopes[x->g->nodes[loop].data].begin;
}

/* Local memory with an element for each round of the loops. */
static pln_status make_buffer(manifester *x, pln_stmt_rewrite *s,
                              local_stage *stage) {
  pln_ref old = pln_operand(x->g, stage->store, 0);
  const pln_node *n = &x->g->nodes[old];
  pln_slice base = pln_symbol_text(x->g->engine, n->data);
  uint32_t first = x->n_list;
  char name[256];
  (void)snprintf(name, sizeof name, "%.*s_local",
                 base.size < 200 ? (int)base.size : 200, base.data);
  pln_buffer_spec spec = {.type = n->type, .rank = stage->n_loops};
  PLN_TRY(pln_symbol_intern(x->g->engine, pln_text(name), &spec.name));
  for (uint32_t i = stage->n_loops; i-- > 0;) {
    pln_ref extent = pln_operand(x->g, x->loops[stage->first + i], 1);
    PLN_TRY(pln_stmt_map(s, extent, &extent));
    PLN_TRY(push(x, extent));
  }
  spec.data =
      pln_emit_var(&x->e, name, pln_emit_pointer(&x->e, n->type, "local"));
  spec.elem_offset = pln_emit_int(&x->e, PLN_INT32, 0);
  spec.shape = x->list + first;
  x->n_list = first;
  PLN_TRY(x->e.status);
  return pln_build_buffer(x->e.b, &spec, &stage->buffer);
}

/* Pushes the local Buffer and the indices of the present round. */
static pln_status push_element(manifester *x, pln_stmt_rewrite *s,
                               const local_stage *stage) {
  PLN_TRY(push(x, stage->buffer));
  for (uint32_t i = stage->n_loops; i-- > 0;) {
    pln_ref loop = x->loops[stage->first + i], min, var;
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, loop, 0), &min));
    PLN_TRY(pln_stmt_map(s, variable_of(x, loop), &var));
    PLN_TRY(push(x, pln_emit_folded(&x->e, PLN_PRIM_ADD, min, var)));
  }
  return PLN_OK;
}

static pln_ref take(manifester *x, pln_kind kind, uint32_t first) {
  pln_ref out = pln_emit_prim(&x->e, &(pln_prim){.kind = kind,
                                                 .n = x->n_list - first,
                                                 .operands = x->list + first});
  x->n_list = first;
  return out;
}

/* shared[...] = local[i] */
static pln_status load_local(manifester *x, pln_stmt_rewrite *s, pln_ref store,
                             pln_ref *node) {
  const local_stage *stage = &x->stages[x->of[store] - 1];
  uint32_t first = x->n_list, n = x->g->nodes[store].count;
  PLN_TRY(push_element(x, s, stage));
  pln_ref load = take(x, PLN_BUFFER_LOAD, first);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(push(x, i == 1 ? load : pln_stmt_operand(s, i)));
  *node = take(x, PLN_BUFFER_STORE, first);
  return x->e.status;
}

/* BlockReads as they are, and BlockWrites of the element. */
static pln_status push_regions(manifester *x, pln_stmt_rewrite *s,
                               const local_stage *stage) {
  const pln_scope_row *row = &x->g->scopes[x->g->nodes[stage->block].data];
  uint32_t first = x->n_list;
  pln_ref reads = row->begin, region;
  while (reads < row->end && x->g->nodes[reads].kind != PLN_BLOCK_READS)
    reads++;
  for (uint32_t i = 0; reads < row->end && i < x->g->nodes[reads].count; i++) {
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, reads, i), &region));
    PLN_TRY(push(x, region));
  }
  region = take(x, PLN_BLOCK_READS, first);
  PLN_TRY(push(x, region));
  PLN_TRY(push_element(x, s, stage));
  for (uint32_t i = first + 2; i < x->n_list; i++)
    x->list[i] = pln_emit_binary(
        &x->e, PLN_RANGE, x->list[i],
        pln_emit_int_of(&x->e, pln_emit_type_of(&x->e, x->list[i]), 1));
  region = take(x, PLN_BUFFER_REGION, first + 1);
  PLN_TRY(push(x, region));
  region = take(x, PLN_BLOCK_WRITES, first + 1);
  return push(x, region);
}

static pln_status stage_attrs(pln_engine *e, pln_attrs *attrs) {
  pln_attr name = {.kind = PLN_ATTR_STRING, .v.s = pln_text("")};
  pln_attr types = {.kind = PLN_ATTR_INTS};
  PLN_TRY(pln_symbol_intern(e, pln_text("name_hint"), &name.name));
  PLN_TRY(pln_symbol_intern(e, pln_text("iter_types"), &types.name));
  PLN_TRY(pln_attrs_with(e, 0, &name, attrs));
  return pln_attrs_with(e, *attrs, &types, attrs);
}

/* local[i] = value, in a block of the old one's condition. */
static pln_status stage_block(manifester *x, pln_stmt_rewrite *s,
                              const local_stage *stage, pln_ref *out) {
  uint32_t first = x->n_list;
  pln_ref value, condition;
  pln_prim block = {.kind = PLN_BLOCK};
  pln_prim realize = {
      .kind = PLN_BLOCK_REALIZE, .n = 1, .operands = &condition};
  pln_body body = {0};
  PLN_TRY(push_regions(x, s, stage));
  uint32_t at = x->n_list;
  PLN_TRY(pln_stmt_map(s, pln_operand(x->g, stage->store, 1), &value));
  PLN_TRY(push_element(x, s, stage));
  PLN_TRY(push(x, PLN_NONE));
  memmove(x->list + at + 2, x->list + at + 1,
          (x->n_list - at - 2) * sizeof *x->list);
  x->list[at + 1] = value;
  pln_ref store = take(x, PLN_BUFFER_STORE, at);
  PLN_TRY(push(x, store));
  body.stmt = pln_emit_seq(&x->e, x->n_list - first, x->list + first);
  x->n_list = first;
  PLN_TRY(x->e.status);
  PLN_TRY(stage_attrs(x->g->engine, &block.attrs));
  PLN_TRY(pln_build_floating_stmt(x->e.b, &block, 1, &body, &body.stmt));
  PLN_TRY(pln_stmt_map(s, pln_operand(x->g, stage->realize, 0), &condition));
  return pln_build_floating_stmt(x->e.b, &realize, 1, &body, out);
}

/* The loop around the statement, with the image of its variable. */
static pln_status copy_loop(manifester *x, pln_stmt_rewrite *s, pln_ref loop,
                            pln_ref *stmt) {
  const pln_node *n = &x->g->nodes[loop];
  pln_ref ends[2], var;
  pln_prim spec = {
      .kind = PLN_FOR, .attrs = n->attrs, .n = 2, .operands = ends};
  for (uint32_t i = 0; i < 2; i++)
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, loop, i), &ends[i]));
  PLN_TRY(pln_stmt_map(s, variable_of(x, loop), &var));
  pln_body body = {.n_params = 1, .params = &var, .stmt = *stmt};
  return pln_build_floating_stmt(x->e.b, &spec, 1, &body, stmt);
}

/* The variables of the loops are new ones in the copies; nothing follows in
 * which the old ones have a value. */
static pln_status build_stage(manifester *x, pln_stmt_rewrite *s,
                              const local_stage *stage, pln_ref *out) {
  for (uint32_t i = 0; i < stage->n_loops; i++) {
    pln_ref old = variable_of(x, x->loops[stage->first + i]), var;
    PLN_TRY(pln_build_var(x->e.b, x->g->nodes[old].attrs, x->g->nodes[old].type,
                          0, &var));
    pln_stmt_bind(s, old, var);
  }
  PLN_TRY(stage_block(x, s, stage, out));
  for (uint32_t i = 0; i < stage->n_loops; i++)
    PLN_TRY(copy_loop(x, s, x->loops[stage->first + i], out));
  return PLN_OK;
}

static pln_status put_in_front(manifester *x, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  pln_ref pair[2];
  if (*node == PLN_NONE)
    PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  pair[1] = *node;
  PLN_TRY(build_stage(x, s, &x->stages[x->of[stmt] - 1], &pair[0]));
  return pln_stmt_seq(s, 2, pair, node);
}

static pln_status without_annotation(const manifester *x, pln_stmt_rewrite *s,
                                     pln_ref block, pln_ref *node) {
  pln_engine *e = x->g->engine;
  pln_attrs attrs = x->g->nodes[block].attrs;
  pln_attr all = *pln_attrs_find(e, attrs, "annotations");
  pln_prim spec = {.kind = PLN_BLOCK};
  PLN_TRY(pln_attrs_without(e, all.v.dict, key, &all.v.dict));
  PLN_TRY(all.v.dict == 0
              ? pln_attrs_without(e, attrs, "annotations", &spec.attrs)
              : pln_attrs_with(e, attrs, &all, &spec.attrs));
  return pln_stmt_rebuild_as(s, block, &spec, node);
}

/* ------------------------------------------------------------------ callbacks
 */

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  manifester *x = ud;
  local_stage *stage = x->of[stmt] ? &x->stages[x->of[stmt] - 1] : NULL;
  (void)node;
  x->e.b = pln_stmt_builder(s);
  return stage && stage->outermost == stmt ? make_buffer(x, s, stage) : PLN_OK;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  manifester *x = ud;
  uint32_t first = x->n_list;
  (void)s;
  (void)k;
  (void)again;
  if (!x->first_of_block[stmt])
    return PLN_OK;
  for (uint32_t at = x->first_of_block[stmt]; at; at = x->stages[at - 1].next)
    PLN_TRY(push(x, x->stages[at - 1].buffer));
  *body = pln_emit_with_allocations(&x->e, *body, x->n_list - first,
                                    x->list + first);
  x->n_list = first;
  return x->e.status;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  manifester *x = ud;
  const local_stage *stage = x->of[stmt] ? &x->stages[x->of[stmt] - 1] : NULL;
  if (!stage)
    return PLN_OK;
  if (stmt == stage->store)
    return load_local(x, s, stmt, node);
  if (stmt == stage->block)
    return without_annotation(x, s, stmt, node);
  return put_in_front(x, s, stmt, node);
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status manifest(manifester *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .enter = enter_stmt,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes;
  x->scope_of = pln_mem_new(e, nodes * sizeof *x->scope_of);
  x->elements = pln_mem_zeroed(e, x->g->n_scopes * sizeof *x->elements);
  x->allocating = pln_mem_new(e, nodes * sizeof *x->allocating);
  x->of = pln_mem_zeroed(e, nodes * sizeof *x->of);
  x->first_of_block = pln_mem_zeroed(e, 2 * nodes * sizeof *x->first_of_block);
  if (!x->scope_of || !x->elements || !x->allocating || !x->of ||
      !x->first_of_block)
    return pln_nomem(e);
  x->last_of_block = x->first_of_block + nodes;
  memset(x->allocating, 0xff, nodes * sizeof *x->allocating);
  find_scopes(x);
  for (pln_ref ref = 0; ref < nodes; ref++)
    if (is_annotated(x->g, ref))
      PLN_TRY(add_stage(x, ref));
  return pln_lower_function(run, &mutator);
}

pln_status pln_pass_tir_manifest_local_stage(pln_pass_run *run) {
  manifester x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t nodes = x.g->n_nodes;
  if (!has_stages(x.g))
    return PLN_OK;
  pln_status status = manifest(&x, run);
  pln_mem_free(e, x.scope_of, nodes * sizeof *x.scope_of);
  pln_mem_free(e, x.elements, x.g->n_scopes * sizeof *x.elements);
  pln_mem_free(e, x.allocating, nodes * sizeof *x.allocating);
  pln_mem_free(e, x.of, nodes * sizeof *x.of);
  pln_mem_free(e, x.first_of_block, 2 * nodes * sizeof *x.first_of_block);
  pln_mem_free(e, x.stages, x.cap * sizeof *x.stages);
  pln_mem_free(e, x.loops, x.cap_loops * sizeof *x.loops);
  pln_mem_free(e, x.list, x.cap_list * sizeof *x.list);
  return status;
}
