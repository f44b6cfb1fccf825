/* inject_software_pipeline.c: tir.InjectSoftwarePipeline: loops whose
 * statements work on different rounds at the same time.
 *
 * Run by the executor, for functions whose blocks are opaque. A loop has the
 * annotations software_pipeline_stage and software_pipeline_order, a number for
 * each statement: a statement of stage s runs s rounds late, in that order.
 * What is left over stands before and behind the loop. Memory that lives from
 * one stage to a later one gets a version for each of them. Stages in
 * software_pipeline_async_stages are committed to queues, and waited for
 * (async_queue.c). Inner pipelines are rewritten first; each turn of the pass
 * rewrites those that have none inside, and an outer one has the statements of
 * what became of them.
 *
 *     for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1],
 *                                       "software_pipeline_order": [0, 1]}):
 *         B[0] = A[i]
 *         C[i] = B[0]
 *     =>
 *     B[0 % 2, 0] = A[0]
 *     for i in range(7):
 *         B[(i + 1) % 2, 0] = A[i + 1]
 *         C[i - 1 + 1] = B[(i - 1 + 1) % 2, 0]
 *     C[7] = B[7 % 2, 0]
 *
 * Semantics: TVM's tir.InjectSoftwarePipeline. A loop that may have less rounds
 * than stages is refused, where TVM's runs a wrong number of them, and so are
 * matrix instructions on memory that gets versions. */

#include "lower/pipeline/async_queue.h"

/* The parts in which a pipeline is emitted. */
enum { BEFORE, LOOP, BEHIND };

/* The present part: rounds [start, start + extent). Terms of `own`. */
typedef struct pipeline_part {
  uint32_t number;
  pln_term min, loop_end, start, delta, var;
  pln_ref new_var, min_ref, extent_ref; /* of the builder */
  bool empty, single;
} pipeline_part;

typedef struct injector {
  const pln_graph *g;
  pln_pipelines all;
  pln_stmt_rewrite *s;
  pln_emit e;
  pln_analyzer *own, *normal;
  pln_async_queue queue;
  const pln_pipeline *pipeline; /* that is visited; or NULL */
  pipeline_part part;
  pln_emitted *emitted;        /* by child */
  pln_ref *new_buffers;        /* by node: of Buffers with versions */
  uint32_t *versioned;         /* by Var: 1 + such a Buffer in its memory */
  pln_ref index, version_base; /* of the present child's round */
  pln_ref *list;
  uint32_t n_list, cap_list;
} injector;

static pln_status refuse(const injector *x, const char *what) {
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.InjectSoftwarePipeline: %s", what);
}

static pln_status push(injector *x, pln_ref item) {
  PLN_TRY(x->e.status);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->list, &x->cap_list,
                       (size_t)x->n_list + 1, sizeof *x->list));
  x->list[x->n_list++] = item;
  return PLN_OK;
}

static pln_status take_seq(injector *x, uint32_t first, pln_ref *out) {
  *out = pln_emit_seq(&x->e, x->n_list - first, x->list + first);
  x->n_list = first;
  return x->e.status;
}

/* --------------------------------------------------------------------- parts
 */

static pln_status export_term(injector *x, pln_term term, pln_ref *out) {
  PLN_TRY(x->own->status);
  return pln_analyzer_export(x->own, x->e.b, term, out);
}

static pln_ref loop_variable(const injector *x) {
  return x->g->scopes[x->g->nodes[x->pipeline->loop].data].begin;
}

/* The first and the last round of the part. */
static void set_bounds(pipeline_part *part, pln_analyzer *a, int64_t stages,
                       pln_term *end) {
  pln_term from = part->min, to = pln_add_const(a, part->min, stages);
  if (part->number != BEFORE)
    from = part->number == LOOP ? to : part->loop_end;
  if (part->number == LOOP)
    to = part->loop_end;
  else if (part->number == BEHIND)
    to = pln_add_const(a, part->loop_end, stages);
  part->start = from;
  *end = to;
}

/* The loop has as many rounds as stages at least. */
static pln_status check_extent(injector *x, pln_term extent) {
  bool enough = false;
  pln_term most = pln_const_like(x->own, extent, x->pipeline->max_stage);
  PLN_TRY(pln_analyzer_can_prove(
      x->own, pln_fold(x->own, PLN_PRIM_GE, extent, most), 0, &enough));
  return enough ? PLN_OK
                : refuse(x, "the loop of a pipeline is not known to have as "
                            "many rounds as it has stages");
}

/* A new variable over the rounds of the part, or the only round itself. */
static pln_status bind_variable(injector *x, pln_term extent) {
  const pln_node *old = &x->g->nodes[loop_variable(x)];
  pipeline_part *part = &x->part;
  pln_analyzer *a = x->own;
  pln_term normal[3];
  part->var = part->start;
  if (part->single)
    return PLN_OK;
  PLN_TRY(pln_build_var(x->e.b, old->attrs, old->type, 0, &part->new_var));
  PLN_TRY(pln_analyzer_import_built(a, x->e.b, part->new_var, &part->var));
  PLN_TRY(pln_analyzer_bind_range(a, part->var, part->start, extent, true));
  PLN_TRY(
      pln_analyzer_import_built(x->normal, x->e.b, part->new_var, &normal[0]));
  PLN_TRY(
      pln_analyzer_import_built(x->normal, x->e.b, part->min_ref, &normal[1]));
  PLN_TRY(pln_analyzer_import_built(x->normal, x->e.b, part->extent_ref,
                                    &normal[2]));
  return pln_analyzer_bind_range(x->normal, normal[0], normal[1], normal[2],
                                 true);
}

static pln_status begin_part(injector *x, uint32_t number) {
  pipeline_part *part = &x->part;
  pln_analyzer *a = x->own;
  pln_term loop_extent, end, extent, one;
  bool some = false;
  *part = (pipeline_part){.number = number, .new_var = PLN_NONE};
  part->min_ref = pln_stmt_operand(x->s, 0);
  PLN_TRY(pln_analyzer_import_built(a, x->e.b, part->min_ref, &part->min));
  PLN_TRY(pln_analyzer_import_built(a, x->e.b, pln_stmt_operand(x->s, 1),
                                    &loop_extent));
  PLN_TRY(check_extent(x, loop_extent));
  part->loop_end = pln_add(a, part->min, loop_extent);
  set_bounds(part, a, x->pipeline->max_stage, &end);
  extent = pln_sub(a, end, part->start);
  one = pln_const_like(a, extent, 1);
  part->delta = pln_sub(a, part->start, part->min);
  PLN_TRY(export_term(x, extent, &part->extent_ref));
  PLN_TRY(pln_analyzer_can_prove(a, pln_fold(a, PLN_PRIM_GE, extent, one), 0,
                                 &some));
  part->empty = !some;
  part->single = some && pln_proves_equal(a, extent, one);
  PLN_TRY(a->status);
  pln_async_queue_begin(&x->queue);
  return part->empty ? PLN_OK : bind_variable(x, extent);
}

/* The round of a statement of that stage, the condition under which there is
 * such a round, and whether there can be one. */
static pln_status find_round(injector *x, int64_t stage, pln_emitted *out,
                             bool *runs) {
  pln_analyzer *a = x->own;
  const pipeline_part *part = &x->part;
  pln_term late = pln_sub(a, part->var, pln_const_like(a, part->var, stage));
  pln_term after = pln_fold(a, PLN_PRIM_LE, part->min, late), both, index;
  bool never = false;
  PLN_TRY(a->status);
  PLN_TRY(pln_analyzer_simplify(a, after, 2, &after));
  both = pln_fold(a, PLN_PRIM_AND, after,
                  pln_fold(a, PLN_PRIM_LT, late, part->loop_end));
  PLN_TRY(a->status);
  PLN_TRY(pln_analyzer_can_prove(a, pln_fold_not(a, both), 0, &never));
  *runs = !never;
  if (never)
    return PLN_OK;
  index = late;
  if (!part->single) {
    pln_term shifted = pln_add(a, part->var, part->delta);
    index = pln_add(a, late, part->delta);
    both = pln_term_replace(a, both, 1, &part->var, &shifted);
  }
  PLN_TRY(export_term(x, both, &out->condition));
  return export_term(x, index, &out->index);
}

/* ------------------------------------------------------------------- versions
 */

/* A Buffer like the old one with a first axis of versions. */
static pln_status new_buffer(injector *x, pln_ref old) {
  pln_buffer_fields f = pln_buffer_fields_of(x->g, old);
  const pln_node *n = &x->g->nodes[old];
  uint32_t first = x->n_list;
  pln_type type = f.rank > 0 ? x->g->nodes[f.shape[0]].type
                             : pln_emit_type(&x->e, PLN_INT32);
  pln_buffer_spec spec = {.name = n->data,
                          .type = n->type,
                          .attrs = n->attrs,
                          .rank = f.rank + 1,
                          .n_strides = f.n_strides ? f.rank + 1 : 0};
  PLN_TRY(push(x, pln_emit_int_of(&x->e, type, x->all.versions[old])));
  for (uint32_t i = 0; i < f.rank + f.n_strides; i++) {
    pln_ref part;
    if (i == f.rank) /* the stride of the versions, set below */
      PLN_TRY(push(x, PLN_NONE));
    PLN_TRY(pln_stmt_map(x->s, i < f.rank ? f.shape[i] : f.strides[i - f.rank],
                         &part));
    PLN_TRY(push(x, part));
  }
  PLN_TRY(pln_stmt_map(x->s, f.data, &spec.data));
  PLN_TRY(pln_stmt_map(x->s, f.elem_offset, &spec.elem_offset));
  spec.shape = x->list + first;
  spec.strides = x->list + first + f.rank + 1;
  if (f.n_strides > 0)
    x->list[first + f.rank + 1] =
        pln_emit_folded(&x->e, PLN_PRIM_MUL, spec.strides[1], spec.shape[1]);
  PLN_TRY(x->e.status);
  x->n_list = first;
  return pln_build_buffer(x->e.b, &spec, &x->new_buffers[old]);
}

static pln_status make_buffers(injector *x) {
  const pln_pipeline *p = x->pipeline;
  for (uint32_t i = 0; i < p->n_allocs; i++) {
    pln_ref buffer = x->all.allocs[p->first_alloc + i];
    if (!x->all.versions[buffer])
      continue;
    x->versioned[pln_operand(x->g, buffer, 0)] = buffer + 1;
    PLN_TRY(new_buffer(x, buffer));
  }
  return PLN_OK;
}

/* The version of the present round: (round - min) % versions. */
static pln_ref version_of(injector *x, pln_ref buffer) {
  pln_ref n = pln_emit_int_of(&x->e, pln_emit_type_of(&x->e, x->version_base),
                              x->all.versions[buffer]);
  return pln_emit_binary(&x->e, PLN_PRIM_FLOORMOD, x->version_base, n);
}

/* The versions that a block accesses: in pipelines of more than two stages it
 * is said to access all of them. */
static pln_ref accessed_versions(injector *x, pln_ref buffer) {
  pln_ref ends[2];
  if (x->pipeline->max_stage != 1) {
    ends[0] = pln_emit_int(&x->e, PLN_INT32, 0);
    ends[1] = pln_emit_int(&x->e, PLN_INT32, x->all.versions[buffer]);
  } else {
    ends[0] = version_of(x, buffer);
    ends[1] = pln_emit_int_of(&x->e, pln_emit_type_of(&x->e, ends[0]), 1);
  }
  return pln_emit_binary(&x->e, PLN_RANGE, ends[0], ends[1]);
}

/* The expression with the new Buffer and `first` in front of its indices. */
static pln_status with_first(injector *x, pln_ref old, pln_ref first,
                             pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  uint32_t at = x->n_list;
  PLN_TRY(push(x, x->new_buffers[pln_operand(x->g, old, 0)]));
  PLN_TRY(push(x, first));
  for (uint32_t i = 1; i < n->count; i++)
    PLN_TRY(push(x, pln_stmt_image(x->s, pln_operand(x->g, old, i))));
  *node = pln_emit_prim(&x->e, &(pln_prim){.kind = (pln_kind)n->kind,
                                           .n = x->n_list - at,
                                           .operands = x->list + at});
  x->n_list = at;
  return x->e.status;
}

/* The product of the extents of the old Buffer, or its new first stride. */
static pln_ref version_size(injector *x, pln_ref buffer) {
  pln_buffer_fields f =
      pln_buffer_fields_of(x->e.b->graph, x->new_buffers[buffer]);
  pln_ref size;
  if (f.n_strides > 0)
    return f.strides[0];
  size = pln_emit_int(&x->e, PLN_INT32, 1);
  for (uint32_t i = 1; i < f.rank; i++) {
    f = pln_buffer_fields_of(x->e.b->graph, x->new_buffers[buffer]);
    size = pln_emit_folded(&x->e, PLN_PRIM_MUL, size, f.shape[i]);
  }
  return size;
}

/* T.tvm_access_ptr(type, data, offset, extent, mask) */
static pln_status move_pointer(injector *x, pln_ref old, pln_ref buffer,
                               pln_ref *node) {
  pln_ref args[5];
  for (uint32_t i = 0; i < 5; i++)
    args[i] = pln_stmt_image(x->s, pln_operand(x->g, old, i));
  pln_ref moved = pln_emit_folded(&x->e, PLN_PRIM_MUL, version_of(x, buffer),
                                  version_size(x, buffer));
  args[2] = pln_emit_folded(&x->e, PLN_PRIM_ADD, args[2], moved);
  *node =
      pln_emit_call(&x->e, "tvm_access_ptr", x->g->nodes[old].type, 5, args);
  return x->e.status;
}

static pln_status map_call(injector *x, pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref data = pln_operand(x->g, old, i);
    if (!x->versioned[data])
      continue;
    if (pln_is_call_of(n, "tvm_access_ptr") && n->count == 5 && i == 1)
      return move_pointer(x, old, x->versioned[data] - 1, node);
    return pln_diag_error(
        x->g->engine, PLN_ERR_ARGUMENT, NULL,
        "tir.InjectSoftwarePipeline: memory that gets versions is an argument "
        "of T.%s, which is not rewritten here",
        n->data ? pln_builtin_name(n->data) : "call");
  }
  return PLN_OK;
}

static pln_status map_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  injector *x = ud;
  const pln_node *n = &x->g->nodes[old];
  (void)s;
  if (!x->pipeline || x->index == PLN_NONE)
    return PLN_OK;
  if (n->kind == PLN_PRIM_CALL)
    return map_call(x, old, node);
  if (n->kind != PLN_BUFFER_LOAD && n->kind != PLN_BUFFER_REGION)
    return PLN_OK;
  pln_ref buffer = pln_operand(x->g, old, 0);
  if (!x->all.versions[buffer])
    return PLN_OK;
  return with_first(x, old,
                    n->kind == PLN_BUFFER_LOAD ? version_of(x, buffer)
                                               : accessed_versions(x, buffer),
                    node);
}

static pln_status map_store(injector *x, pln_ref stmt, pln_ref *node) {
  pln_ref buffer = pln_operand(x->g, stmt, 0);
  uint32_t at = x->n_list;
  if (!x->all.versions[buffer])
    return PLN_OK;
  PLN_TRY(push(x, x->new_buffers[buffer]));
  PLN_TRY(push(x, pln_stmt_operand(x->s, 1)));
  PLN_TRY(push(x, version_of(x, buffer)));
  for (uint32_t i = 2; i < x->g->nodes[stmt].count; i++)
    PLN_TRY(push(x, pln_stmt_operand(x->s, i)));
  *node = pln_emit_prim(&x->e, &(pln_prim){.kind = PLN_BUFFER_STORE,
                                           .n = x->n_list - at,
                                           .operands = x->list + at});
  x->n_list = at;
  return x->e.status;
}

/* ------------------------------------------------------------------ assembly
 */

static bool is_region_stmt(const injector *x, pln_ref stmt) {
  pln_kind kind = (pln_kind)x->e.b->graph->nodes[stmt].kind;
  return kind == PLN_BLOCK_READS || kind == PLN_BLOCK_WRITES;
}

static bool is_head(const injector *x, pln_ref stmt) {
  return !pln_is_seq_element((pln_kind)x->e.b->graph->nodes[stmt].kind);
}

static uint32_t count_stmts(const injector *x, pln_ref body) {
  const pln_node *n = &x->e.b->graph->nodes[body];
  return n->kind == PLN_SEQ_STMT ? n->count : 1;
}

static pln_ref stmt_at(const injector *x, pln_ref body, uint32_t i) {
  const pln_graph *g = x->e.b->graph;
  return g->nodes[body].kind == PLN_SEQ_STMT ? pln_operand(g, body, i) : body;
}

/* The attribute of that number around a statement. */
static pln_ref in_scope(injector *x, const char *key, pln_ref value,
                        pln_ref body) {
  return pln_emit_attr(&x->e, pln_emit_int(&x->e, PLN_INT32, 0), key, value,
                       body);
}

static pln_ref in_stage(injector *x, const char *key, int64_t stage,
                        pln_ref body) {
  return in_scope(x, key, pln_emit_int(&x->e, PLN_INT32, stage), body);
}

/* The statements of a block's body, in the scopes that the queue demands. */
static pln_status wrap_async(injector *x, const pln_emitted *stmt,
                             pln_ref *out) {
  uint32_t first = x->n_list, n = count_stmts(x, stmt->body);
  for (uint32_t i = 0; i < n; i++)
    if (!is_head(x, stmt_at(x, stmt->body, i)))
      PLN_TRY(push(x, stmt_at(x, stmt->body, i)));
  PLN_TRY(take_seq(x, first, out));
  if (stmt->child->async)
    *out = in_stage(x, "async_scope", 1, *out);
  if (stmt->wait_count != PLN_NONE) {
    *out = in_scope(x, "async_wait_inflight_count", stmt->wait_count, *out);
    *out = in_stage(x, "async_wait_queue_scope", stmt->wait_stage, *out);
  }
  return x->e.status;
}

/* A block that is not committed: the old one, with a wait at its beginning. */
static pln_status emit_plain(injector *x, const pln_emitted *stmt) {
  pln_ref body = stmt->body, inner, block;
  uint32_t first = x->n_list, n = count_stmts(x, body);
  if (stmt->wait_count != PLN_NONE) {
    PLN_TRY(wrap_async(x, stmt, &inner));
    for (uint32_t i = 0; i < n; i++)
      if (is_head(x, stmt_at(x, stmt->body, i)))
        PLN_TRY(push(x, stmt_at(x, stmt->body, i)));
    PLN_TRY(push(x, inner));
    PLN_TRY(take_seq(x, first, &body));
  }
  PLN_TRY(pln_pipeline_block(x->e.b, x->g->nodes[stmt->child->block].attrs,
                             false, stmt->condition, body, &block));
  return push(x, block);
}

/* Statements of one group, one after the other, as one block. */
static pln_status emit_group(injector *x, const pln_emitted *stmts,
                             uint32_t n) {
  uint32_t first = x->n_list;
  pln_ref body, block;
  for (uint32_t i = 0; i < n; i++) {
    if (!pln_same_expr(x->e.b->graph, stmts[0].condition, stmts[i].condition))
      return refuse(x, "statements of one asynchronous stage run under "
                       "different conditions");
    PLN_TRY(wrap_async(x, &stmts[i], &body));
    PLN_TRY(push(x, body));
  }
  PLN_TRY(take_seq(x, first, &body));
  PLN_TRY(push(
      x, in_stage(x, "async_commit_queue_scope", stmts[0].child->stage, body)));
  body = x->list[--x->n_list];
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < count_stmts(x, stmts[i].body); k++) {
      pln_ref stmt = stmt_at(x, stmts[i].body, k);
      if (is_head(x, stmt) && !is_region_stmt(x, stmt))
        PLN_TRY(push(x, stmt));
    }
  PLN_TRY(push(x, body));
  PLN_TRY(take_seq(x, first, &body));
  PLN_TRY(
      pln_pipeline_block(x->e.b, 0, true, stmts[0].condition, body, &block));
  return push(x, block);
}

static pln_status emit_all(injector *x, uint32_t n, const pln_emitted *stmts) {
  for (uint32_t i = 0; i < n;) {
    uint32_t end = i + 1;
    if (!stmts[i].group) {
      PLN_TRY(emit_plain(x, &stmts[i++]));
      continue;
    }
    while (end < n && stmts[end].group == stmts[i].group)
      end++;
    PLN_TRY(emit_group(x, &stmts[i], end - i));
    i = end;
  }
  return PLN_OK;
}

/* Moves the statements that have a round to the front, in order. */
static pln_status order_stmts(injector *x, uint32_t *n) {
  const pln_pipeline *p = x->pipeline;
  pln_emitted *emitted = x->emitted + p->first;
  pln_emitted *ordered = x->emitted + x->all.n_children + p->first;
  *n = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    uint32_t child = x->all.children[p->first + i].by_order;
    if (!emitted[child].child)
      continue;
    ordered[*n] = emitted[child];
    PLN_TRY(pln_async_queue_add(&x->queue, &ordered[*n]));
    ++*n;
  }
  return pln_async_queue_count(&x->queue, *n, ordered);
}

/* Annotations of the loop that do not make it a pipeline. */
static pln_status loop_attrs(const injector *x, pln_attrs *out) {
  static const char *const keys[] = {"software_pipeline_stage",
                                     "software_pipeline_order",
                                     "software_pipeline_async_stages"};
  pln_engine *e = x->g->engine;
  pln_attrs attrs = x->g->nodes[x->pipeline->loop].attrs;
  pln_attr all = *pln_attrs_find(e, attrs, "annotations");
  for (size_t i = 0; i < PLN_COUNT(keys); i++)
    PLN_TRY(pln_attrs_without(e, all.v.dict, keys[i], &all.v.dict));
  return all.v.dict == 0 ? pln_attrs_without(e, attrs, "annotations", out)
                         : pln_attrs_with(e, attrs, &all, out);
}

/* The statement for all rounds of the part. */
static pln_status wrap_part(injector *x, pln_ref *stmt) {
  const pipeline_part *part = &x->part;
  const pln_node *n = &x->g->nodes[x->pipeline->loop];
  pln_ref operands[3] = {part->min_ref, part->extent_ref, PLN_NONE};
  pln_prim loop = {.kind = PLN_FOR, .n = 2, .operands = operands};
  pln_body body = {.n_params = 1, .params = &part->new_var, .stmt = *stmt};
  pln_symbol name;
  if (part->single)
    return PLN_OK;
  PLN_TRY(loop_attrs(x, &loop.attrs));
  if (part->number != LOOP) {
    PLN_TRY(pln_symbol_intern(x->g->engine, pln_text("kind"), &name));
    PLN_TRY(pln_attrs_with(x->g->engine, loop.attrs,
                           &(pln_attr){.name = name,
                                       .kind = PLN_ATTR_INT,
                                       .v.i = PLN_FOR_UNROLLED},
                           &loop.attrs));
  } else if (n->count > 2) {
    loop.n = 3;
    operands[2] = pln_stmt_operand(x->s, 2);
  }
  return pln_build_floating_stmt(x->e.b, &loop, 1, &body, stmt);
}

static bool is_plain_block(const injector *x, pln_ref stmt) {
  const pln_graph *g = x->e.b->graph;
  return g->nodes[stmt].kind == PLN_BLOCK_REALIZE &&
         pln_is_int(g, pln_operand(g, stmt, 0), 1);
}

/* The part as one block; nothing where it has no rounds. */
static pln_status finish_part(injector *x, pln_ref *out) {
  uint32_t first = x->n_list, n = 0;
  pln_ref stmt, truth = pln_emit_int(&x->e, PLN_BOOL, 1);
  if (!x->part.empty) {
    PLN_TRY(order_stmts(x, &n));
    PLN_TRY(
        emit_all(x, n, x->emitted + x->all.n_children + x->pipeline->first));
    PLN_TRY(pln_async_queue_end(&x->queue, x->part.extent_ref));
  }
  if (n == 0) {
    stmt = pln_emit_evaluate(&x->e, pln_emit_int(&x->e, PLN_INT32, 0));
    PLN_TRY(x->e.status);
    return pln_pipeline_block(x->e.b, 0, true, truth, stmt, out);
  }
  PLN_TRY(take_seq(x, first, &stmt));
  PLN_TRY(wrap_part(x, &stmt));
  *out = stmt;
  return is_plain_block(x, stmt)
             ? PLN_OK
             : pln_pipeline_block(x->e.b, 0, true, truth, stmt, out);
}

/* The parts in a block that allocates the memory. */
static pln_status finish_pipeline(injector *x, pln_ref *node) {
  const pln_pipeline *p = x->pipeline;
  pln_ref parts = pln_stmt_body(x->s, 0), truth, body;
  uint32_t first = x->n_list, n = count_stmts(x, parts);
  for (uint32_t i = 0; i < p->n_allocs; i++) {
    pln_ref buffer = x->all.allocs[p->first_alloc + i];
    if (x->all.versions[buffer])
      buffer = x->new_buffers[buffer];
    else
      PLN_TRY(pln_stmt_map(x->s, buffer, &buffer));
    PLN_TRY(push(x, pln_emit_prim(&x->e, &(pln_prim){.kind = PLN_ALLOC_BUFFER,
                                                     .n = 1,
                                                     .operands = &buffer})));
  }
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(push(x, stmt_at(x, parts, i)));
  PLN_TRY(take_seq(x, first, &body));
  truth = pln_emit_int(&x->e, PLN_BOOL, 1);
  x->pipeline = NULL;
  PLN_TRY(x->e.status);
  return pln_pipeline_block(x->e.b, 0, true, truth, body, node);
}

/* ----------------------------------------------------------------- callbacks
 */

/* A statement of the pipeline, in the present part. */
static pln_status enter_child(injector *x, pln_ref stmt, pln_ref *node) {
  uint32_t at = x->all.number[stmt];
  const pln_pipeline_child *child = &x->all.children[at];
  pln_emitted *out = &x->emitted[at];
  bool runs = false;
  *out = (pln_emitted){.wait_count = PLN_NONE};
  if (!x->part.empty)
    PLN_TRY(find_round(x, child->stage, out, &runs));
  if (!runs) {
    *node = PLN_NO_STMT;
    return PLN_OK;
  }
  out->child = child;
  x->index = x->version_base = out->index;
  if (!pln_is_int(x->e.b->graph, x->part.min_ref, 0))
    x->version_base =
        pln_emit_binary(&x->e, PLN_PRIM_SUB, out->index, x->part.min_ref);
  pln_stmt_bind(x->s, loop_variable(x), out->index);
  return x->e.status;
}

/* Whether it stands in a block whose statements are children, and is none. */
static bool is_shell_part(const injector *x, pln_ref stmt) {
  pln_ref owner = x->g->scopes[x->all.scope_of[stmt]].owner;
  return owner < x->g->n_nodes && x->all.roles[owner] == PLN_PIPELINE_SHELL &&
         !pln_is_seq_element((pln_kind)x->g->nodes[stmt].kind);
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  injector *x = ud;
  x->s = s;
  x->e.b = x->queue.e.b = pln_stmt_builder(s);
  if (x->all.roles[stmt] == PLN_PIPELINE_CHILD)
    return enter_child(x, stmt, node);
  if (pln_is_stmt(&x->g->nodes[stmt]) && is_shell_part(x, stmt))
    *node = PLN_NO_STMT;
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  injector *x = ud;
  uint32_t visits = pln_stmt_visits(s);
  (void)k;
  (void)skip;
  if (x->all.roles[stmt] != PLN_PIPELINE_LOOP)
    return PLN_OK;
  x->index = PLN_NONE;
  if (visits == 0) {
    x->pipeline = &x->all.items[x->all.number[stmt]];
    PLN_TRY(make_buffers(x));
    PLN_TRY(
        pln_async_queue_enter(&x->queue, x->pipeline, pln_stmt_operand(s, 0)));
  }
  return begin_part(x, visits);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  injector *x = ud;
  (void)k;
  if (x->all.roles[stmt] == PLN_PIPELINE_CHILD_BLOCK)
    x->emitted[x->all.number[stmt]].body = *body;
  if (x->all.roles[stmt] != PLN_PIPELINE_LOOP)
    return PLN_OK;
  *again = pln_stmt_visits(s) < BEHIND;
  return finish_part(x, body);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  injector *x = ud;
  (void)s;
  switch ((pln_pipeline_role)x->all.roles[stmt]) {
  case PLN_PIPELINE_LOOP: return finish_pipeline(x, node);
  case PLN_PIPELINE_CHILD: x->index = PLN_NONE; /* fall through */
  case PLN_PIPELINE_CHILD_BLOCK:
  case PLN_PIPELINE_SHELL: *node = PLN_NO_STMT; return PLN_OK;
  case PLN_PIPELINE_NONE: break;
  }
  return x->pipeline && x->g->nodes[stmt].kind == PLN_BUFFER_STORE
             ? map_store(x, stmt, node)
             : PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status inject(injector *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = map_expr,
                              .enter = enter_stmt,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  pln_engine *e = x->g->engine;
  PLN_TRY(pln_pipelines_find(x->g, true, &x->all));
  x->emitted = pln_mem_zeroed(e, (2 * (size_t)x->all.n_children + 1) *
                                     sizeof *x->emitted);
  x->new_buffers = pln_mem_new(e, x->g->n_nodes * sizeof *x->new_buffers);
  x->versioned = pln_mem_zeroed(e, x->g->n_nodes * sizeof *x->versioned);
  if (!x->emitted || !x->new_buffers || !x->versioned)
    return pln_nomem(e);
  PLN_TRY(pln_async_queue_new(&x->queue, &x->all));
  PLN_TRY(pln_analyzer_new(e, &x->own));
  PLN_TRY(pln_analyzer_new(e, &x->normal));
  x->queue.own = x->own;
  x->queue.normal = x->normal;
  return pln_lower_function(run, &mutator);
}

/* Rewrites the pipelines that have none inside of them. */
static pln_status inject_innermost(pln_pass_run *run) {
  injector x = {.g = pln_run_function(run), .index = PLN_NONE};
  pln_engine *e = x.g->engine;
  x.all.g = x.queue.g = x.g;
  pln_status status = inject(&x, run);
  if (x.own)
    pln_analyzer_free(x.own);
  if (x.normal)
    pln_analyzer_free(x.normal);
  pln_async_queue_free(&x.queue);
  pln_mem_free(e, x.emitted,
               (2 * (size_t)x.all.n_children + 1) * sizeof *x.emitted);
  pln_mem_free(e, x.new_buffers, x.g->n_nodes * sizeof *x.new_buffers);
  pln_mem_free(e, x.versioned, x.g->n_nodes * sizeof *x.versioned);
  pln_mem_free(e, x.list, x.cap_list * sizeof *x.list);
  pln_pipelines_free(&x.all);
  return status;
}

static pln_status inject_all(pln_pass_run *run, pln_graph **function) {
  while (pln_has_pipeline(*function)) {
    PLN_TRY(pln_lower_step(run, pln_pipeline_make_blocks, function));
    PLN_TRY(pln_lower_step(run, inject_innermost, function));
    PLN_TRY(pln_lower_step(run, pln_pipeline_fill_regions, function));
  }
  return pln_lower_step(run, pln_pass_tir_convert_ssa, function);
}

pln_status pln_pass_tir_inject_software_pipeline(pln_pass_run *run) {
  pln_graph *function;
  if (!pln_has_pipeline(pln_run_function(run)))
    return PLN_OK;
  function = pln_graph_retain(pln_run_function(run));
  pln_status status = inject_all(run, &function);
  if (status == PLN_OK)
    pln_run_set_function(run, function);
  else
    pln_graph_release(function);
  return status;
}
