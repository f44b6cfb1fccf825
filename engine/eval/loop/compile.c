/* compile.c: translates the statements of a PrimFunc.
 *
 * pln_loop_translate is called by run.c. Loops become jumps; parallel,
 * vectorised and unrolled ones, and those over threads, run serially. A
 * statement whose bodies are scopes is translated by its header, a BODY task,
 * the statements, and a LEAVE task. */

#include "eval/loop/translate.h"

static const pln_ref *header(const pln_translation *t, pln_ref ref) {
  return pln_operands(t->g, &t->g->nodes[ref]);
}

static pln_status push_body(pln_translation *t, pln_scope scope) {
  pln_ref first = t->first_stmt[scope];
  return first == PLN_NONE
             ? PLN_OK
             : pln_loop_push(
                   t, (pln_loop_task){.what = PLN_LOOP_STMT, .ref = first});
}

/* Translates the header's expressions, then continues with BODY; its x is the
 * header's first instruction. */
static pln_status push_header(pln_translation *t, pln_ref ref, uint32_t n,
                              const pln_ref *exprs) {
  PLN_TRY(pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_BODY,
                                           .ref = ref,
                                           .mark = t->n_log,
                                           .x = (int32_t)t->p->n_code}));
  return pln_loop_push_exprs(t, n, exprs);
}

static pln_status jump(pln_translation *t, pln_ref ref, pln_loop_op op,
                       int32_t condition, int32_t *at) {
  *at = (int32_t)t->p->n_code;
  return pln_loop_emit(
      t, ref, (pln_loop_instr){.op = (uint16_t)op, .lanes = 1, .a = condition});
}

static pln_slice attr_key(const pln_translation *t, const pln_node *n) {
  return pln_attrs_string(t->engine, n->attrs, "attr_key", "");
}

/* ----------------------------------------------------------------- threads */

static pln_symbol thread_tag(const pln_translation *t, pln_ref iter) {
  pln_slice tag =
      pln_attrs_string(t->engine, t->g->nodes[iter].attrs, "thread_tag", "");
  pln_symbol symbol = 0;
  /* Virtual threads are loops that share nothing but their name. */
  if (tag.size == 0 || (tag.size >= 7 && !memcmp(tag.data, "vthread", 7)))
    return 0;
  return pln_symbol_intern(t->engine, tag, &symbol) == PLN_OK ? symbol : 0;
}

static const pln_loop_thread *find_thread(const pln_translation *t,
                                          pln_symbol tag) {
  for (uint32_t i = t->n_threads; tag && i-- > 0;)
    if (t->threads[i].tag == tag)
      return &t->threads[i];
  return NULL;
}

static pln_status enter_thread(pln_translation *t, pln_symbol tag,
                               int32_t cell) {
  if (!tag)
    return PLN_OK;
  if (t->n_threads == PLN_LOOP_MAX_THREADS)
    return pln_loop_refuse(t, "too many loops over threads");
  t->threads[t->n_threads++] =
      (pln_loop_thread){tag, cell, ++t->n_thread_loops};
  return PLN_OK;
}

/* ------------------------------------------------------------------- loops */

/* Opens a loop; task x: its first instruction, y: the index, k: 1 if a thread
 * was entered. Another loop over the same thread has its index. */
static pln_status open_loop(pln_translation *t, pln_loop_task task, pln_ref var,
                            int32_t min, int32_t extent, pln_ref iter) {
  pln_symbol tag = iter == PLN_NONE ? 0 : thread_tag(t, iter);
  const pln_loop_thread *outer = find_thread(t, tag);
  task.what = PLN_LOOP_LEAVE;
  task.x = -1;
  if (outer) {
    task.y = outer->cell;
  } else {
    PLN_TRY(pln_loop_new_cells(t, 2, &task.y));
    task.x = (int32_t)t->p->n_code;
    PLN_TRY(pln_loop_emit(t, task.ref,
                          (pln_loop_instr){.op = PLN_LOOP_LOOP_BEGIN,
                                           .lanes = 1,
                                           .to = task.y + 1,
                                           .a = extent}));
    PLN_TRY(pln_loop_emit(
        t, task.ref,
        (pln_loop_instr){
            .op = PLN_LOOP_COPY, .lanes = 1, .to = task.y, .a = min}));
    PLN_TRY(enter_thread(t, tag, task.y));
    task.k = tag != 0;
  }
  PLN_TRY(pln_loop_bind_var(t, var, task.y));
  if (iter != PLN_NONE)
    PLN_TRY(pln_loop_bind_var(t, header(t, iter)[0], task.y));
  PLN_TRY(pln_loop_push(t, task));
  return push_body(t, t->g->nodes[task.ref].data);
}

static pln_status close_loop(pln_translation *t, pln_loop_task task,
                             pln_ref var) {
  if (task.x >= 0) {
    PLN_TRY(pln_loop_emit(
        t, task.ref,
        (pln_loop_instr){.op = PLN_LOOP_LOOP_NEXT,
                         .aux = (uint16_t)pln_prim_dtype(t->g, var),
                         .lanes = 1,
                         .to = task.y,
                         .a = task.y + 1,
                         .b = task.x + 2}));
    pln_loop_land(t, task.x);
  }
  t->n_threads -= task.k;
  return task.x >= 0 ? pln_loop_unbind_var(t, var) : PLN_OK;
}

static pln_ref loop_var(const pln_translation *t, pln_ref ref) {
  return t->g->scopes[t->g->nodes[ref].data].begin;
}

static pln_status for_body(pln_translation *t, pln_loop_task task) {
  const pln_node *n = &t->g->nodes[task.ref];
  const pln_ref *o = header(t, task.ref);
  return open_loop(t, task, loop_var(t, task.ref), pln_loop_cell_of(t, o[0]),
                   pln_loop_cell_of(t, o[1]), n->count > 2 ? o[2] : PLN_NONE);
}

/* A thread that is bound already is not run through again. */
static pln_status attr_body(pln_translation *t, pln_loop_task task) {
  const pln_node *n = &t->g->nodes[task.ref];
  const pln_ref *o = header(t, task.ref);
  task.k = 0;
  task.what = PLN_LOOP_LEAVE;
  task.x = -1;
  if (pln_binds_thread(t->g, n) && !pln_loop_is_bound(t, header(t, o[0])[0]))
    return open_loop(t, task, header(t, o[0])[0], t->zero,
                     pln_loop_cell_of(t, o[1]), o[0]);
  if (pln_slice_is(attr_key(t, n), "buffer_bind_scope"))
    return pln_loop_refuse(t, "AttrStmt 'buffer_bind_scope' is not "
                              "interpreted");
  PLN_TRY(pln_loop_push(t, task));
  return push_body(t, n->data);
}

static pln_status attr_leave(pln_translation *t, pln_loop_task task) {
  pln_ref iter = header(t, task.ref)[0];
  return task.x >= 0 ? close_loop(t, task, header(t, iter)[0]) : PLN_OK;
}

/* The condition is evaluated again before each iteration. */
static pln_status while_body(pln_translation *t, pln_loop_task task) {
  int32_t condition = pln_loop_cell_of(t, header(t, task.ref)[0]);
  PLN_TRY(jump(t, task.ref, PLN_LOOP_JUMP_IF_FALSE, condition, &task.y));
  task.what = PLN_LOOP_LEAVE;
  PLN_TRY(pln_loop_push(t, task));
  return push_body(t, t->g->nodes[task.ref].data);
}

static pln_status while_leave(pln_translation *t, pln_loop_task task) {
  PLN_TRY(pln_loop_emit(
      t, task.ref,
      (pln_loop_instr){.op = PLN_LOOP_LOOP_AGAIN, .lanes = 1, .b = task.x}));
  pln_loop_land(t, task.y);
  return PLN_OK;
}

/* ---------------------------------------------------------------- branches */

static pln_status if_body(pln_translation *t, pln_loop_task task) {
  int32_t condition = pln_loop_cell_of(t, header(t, task.ref)[0]);
  PLN_TRY(jump(t, task.ref, PLN_LOOP_JUMP_IF_FALSE, condition, &task.x));
  task.what = PLN_LOOP_ELSE;
  PLN_TRY(pln_loop_push(t, task));
  return push_body(t, t->g->nodes[task.ref].data);
}

static pln_status if_else(pln_translation *t, pln_loop_task task) {
  pln_scope other = t->g->scopes[t->g->nodes[task.ref].data].next;
  int32_t leave = -1;
  if (other != PLN_NONE)
    PLN_TRY(jump(t, task.ref, PLN_LOOP_JUMP, t->zero, &leave));
  pln_loop_land(t, task.x);
  if (other == PLN_NONE)
    return PLN_OK;
  task.what = PLN_LOOP_LEAVE;
  task.x = leave;
  PLN_TRY(pln_loop_push(t, task));
  return push_body(t, other);
}

static pln_status assert_body(pln_translation *t, pln_loop_task task) {
  int32_t condition = pln_loop_cell_of(t, header(t, task.ref)[0]), at;
  PLN_TRY(jump(t, task.ref, PLN_LOOP_JUMP_IF_TRUE, condition, &at));
  PLN_TRY(pln_loop_emit(
      t, task.ref,
      (pln_loop_instr){.op = PLN_LOOP_FAIL, .aux = PLN_LOOP_FAULT_ASSERT}));
  pln_loop_land(t, at);
  return push_body(t, t->g->nodes[task.ref].data);
}

/* ------------------------------------------------------------------ memory */

static pln_status let_stmt_body(pln_translation *t, pln_loop_task task) {
  pln_ref value = header(t, task.ref)[0], var = loop_var(t, task.ref);
  pln_loop_binding *b = t->g->nodes[value].kind == PLN_VAR
                            ? pln_loop_find_memory(t, value)
                            : NULL;
  PLN_TRY(pln_loop_bind_value(t, var, value));
  if (b) {
    pln_loop_binding copy = *b;
    PLN_TRY(pln_loop_bind_memory(t, var, copy.handle));
    t->bindings[t->n_bindings - 1] = copy;
  }
  task.what = PLN_LOOP_LEAVE;
  PLN_TRY(pln_loop_push(t, task));
  return push_body(t, t->g->nodes[task.ref].data);
}

/* The dtype of an Allocate or AllocateConst. */
static pln_dtype memory_dtype(const pln_translation *t, const pln_node *n,
                              uint32_t *lanes) {
  return pln_dtype_find_vector(
      pln_attrs_string(t->engine, n->attrs, "dtype", ""), lanes);
}

static pln_status element_count(pln_translation *t, pln_ref ref, uint32_t first,
                                int32_t *out) {
  const pln_node *n = &t->g->nodes[ref];
  *out = t->one;
  for (uint32_t i = first; i < n->count; i++)
    PLN_TRY(pln_loop_op2(t, ref, PLN_LOOP_EXTENT, *out,
                         pln_loop_cell_of(t, header(t, ref)[i]), out));
  return PLN_OK;
}

static pln_status allocate_body(pln_translation *t, pln_loop_task task) {
  const pln_node *n = &t->g->nodes[task.ref];
  uint32_t lanes = 1;
  pln_dtype dtype = memory_dtype(t, n, &lanes);
  int32_t count, handle;
  PLN_TRY(element_count(t, task.ref, 1, &count));
  PLN_TRY(pln_loop_emit_allocate(t, task.ref, dtype, lanes, count, &handle));
  PLN_TRY(pln_loop_bind_memory(t, loop_var(t, task.ref), handle));
  return push_body(t, n->data);
}

static pln_status constant_body(pln_translation *t, pln_loop_task task) {
  const pln_node *n = &t->g->nodes[task.ref];
  const pln_attr *data = pln_attrs_find(t->engine, n->attrs, "data");
  uint32_t id;
  int32_t handle;
  if (!data || data->kind != PLN_ATTR_TENSOR)
    return pln_loop_refuse(t, "an AllocateConst without data");
  PLN_TRY(pln_loop_new_storage(t, task.ref, &id));
  PLN_TRY(pln_loop_constant(t, (int64_t)id << PLN_LOOP_OFFSET_BITS, &handle));
  PLN_TRY(pln_loop_bind_memory(t, loop_var(t, task.ref), handle));
  return push_body(t, n->data);
}

/* ------------------------------------------------------------------ blocks */

/* Binds the block's variables; the predicate guards the block. */
static pln_status realize_body(pln_translation *t, pln_loop_task task) {
  const pln_graph *g = t->g;
  const pln_node *n = &g->nodes[task.ref];
  const pln_ref *o = header(t, task.ref);
  pln_ref block = t->first_stmt[n->data];
  if (block == PLN_NONE || g->nodes[block].kind != PLN_BLOCK ||
      g->scopes[g->nodes[block].data].n_params != n->count - 1)
    return pln_loop_refuse(t, "a BlockRealize without its block");
  PLN_TRY(jump(t, task.ref, PLN_LOOP_JUMP_IF_FALSE, pln_loop_cell_of(t, o[0]),
               &task.x));
  for (uint32_t i = 1; i < n->count; i++)
    PLN_TRY(pln_loop_bind_var(t, loop_var(t, block) + i - 1,
                              pln_loop_cell_of(t, o[i])));
  task.what = PLN_LOOP_LEAVE;
  PLN_TRY(pln_loop_push(t, task));
  return push_body(t, n->data);
}

static bool is_reduction(const pln_translation *t, pln_ref block, uint32_t i) {
  const pln_attr *types =
      pln_attrs_find(t->engine, t->g->nodes[block].attrs, "iter_types");
  return types && types->kind == PLN_ATTR_INTS && i < types->count &&
         types->v.ints[i] == 2; /* CommReduce */
}

static pln_ref block_around(const pln_translation *t, pln_ref ref) {
  return t->g->scopes[t->scope_of[ref]].owner;
}

static pln_status init_stmt(pln_translation *t, pln_ref ref) {
  pln_ref block = block_around(t, ref);
  const pln_node *n = block == PLN_NONE ? NULL : &t->g->nodes[block];
  if (!n || n->kind != PLN_BLOCK)
    return pln_loop_refuse(t, "a BlockInit outside of a block");
  PLN_TRY(pln_loop_push(
      t, (pln_loop_task){.what = PLN_LOOP_BODY, .ref = ref, .mark = t->n_log}));
  for (uint32_t i = 0; i < n->count; i++)
    if (is_reduction(t, block, i))
      PLN_TRY(pln_loop_push_expr(t, header(t, header(t, block)[i])[0]));
  return PLN_OK;
}

/* The init runs where all reduction variables are at their begin: x: 0 when it
 * is not. */
static pln_status init_body(pln_translation *t, pln_loop_task task) {
  pln_ref block = block_around(t, task.ref);
  const pln_node *n = &t->g->nodes[block];
  int32_t all = t->one, equal;
  for (uint32_t i = 0; i < n->count; i++)
    if (is_reduction(t, block, i)) {
      pln_ref min = header(t, header(t, block)[i])[0];
      pln_ref var = loop_var(t, block) + i;
      PLN_TRY(pln_loop_op2(t, task.ref, PLN_LOOP_EQ_I64,
                           pln_loop_cell_of(t, var), pln_loop_cell_of(t, min),
                           &equal));
      PLN_TRY(pln_loop_op2(t, task.ref, PLN_LOOP_BIT_AND, all, equal, &all));
    }
  PLN_TRY(jump(t, task.ref, PLN_LOOP_JUMP_IF_FALSE, all, &task.x));
  task.what = PLN_LOOP_LEAVE;
  PLN_TRY(pln_loop_push(t, task));
  return push_body(t, t->g->nodes[task.ref].data);
}

static pln_status match_stmt(pln_translation *t, pln_ref ref) {
  const pln_ref *o = header(t, ref);
  const pln_node *region = &t->g->nodes[o[1]];
  PLN_TRY(pln_loop_push(
      t, (pln_loop_task){.what = PLN_LOOP_BODY, .ref = ref, .mark = t->n_log}));
  for (uint32_t i = 1; i < region->count; i++)
    PLN_TRY(pln_loop_push_exprs(t, 2, header(t, header(t, o[1])[i])));
  return pln_loop_push_match(t, o[0], header(t, o[1])[0]);
}

static pln_status match_body(pln_translation *t, pln_loop_task task) {
  const pln_ref *o = header(t, task.ref);
  const pln_node *region = &t->g->nodes[o[1]];
  return pln_loop_emit_match(t, o[0], header(t, o[1])[0], region->count - 1,
                             header(t, o[1]) + 1);
}

/* -------------------------------------------------------------- statements */

/* The bounds of a BufferRealize are its ranges' expressions; of an AllocBuffer
 * the buffer's shape. */
static pln_status realize_stmt(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = header(t, ref);
  const pln_node *buffer = &t->g->nodes[o[0]];
  PLN_TRY(pln_loop_push(
      t, (pln_loop_task){.what = PLN_LOOP_BODY, .ref = ref, .mark = t->n_log}));
  if (n->kind == PLN_ALLOC_BUFFER)
    return pln_loop_push_exprs(t, buffer->count - 1, header(t, o[0]) + 1);
  for (uint32_t i = 2; i < n->count; i++)
    PLN_TRY(pln_loop_push_exprs(t, 2, header(t, o[i])));
  return PLN_OK;
}

static pln_status realize_memory(pln_translation *t, pln_loop_task task) {
  const pln_node *n = &t->g->nodes[task.ref];
  PLN_TRY(pln_loop_emit_realize(t, task.ref));
  return n->kind == PLN_BUFFER_REALIZE ? push_body(t, n->data) : PLN_OK;
}

static pln_status store_stmt(pln_translation *t, pln_ref ref) {
  PLN_TRY(pln_loop_push(
      t, (pln_loop_task){.what = PLN_LOOP_BODY, .ref = ref, .mark = t->n_log}));
  PLN_TRY(pln_loop_push_access(t, ref, 2));
  return pln_loop_push_expr(t, header(t, ref)[1]);
}

static pln_status attr_stmt(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  bool binds = pln_binds_thread(t->g, n);
  return push_header(t, ref, binds, header(t, ref) + 1);
}

static pln_status visit_stmt(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = header(t, ref);
  switch ((int)n->kind) {
  case PLN_LET_STMT:
  case PLN_WHILE:
  case PLN_IF_THEN_ELSE:
  case PLN_ASSERT_STMT:
  case PLN_EVALUATE: return push_header(t, ref, 1, o);
  case PLN_FOR: return push_header(t, ref, 2, o);
  case PLN_ALLOCATE: return push_header(t, ref, n->count, o);
  case PLN_BLOCK_REALIZE: return push_header(t, ref, n->count, o);
  case PLN_ALLOCATE_CONST: return push_header(t, ref, 0, o);
  case PLN_ATTR_STMT: return attr_stmt(t, ref);
  case PLN_BUFFER_STORE: return store_stmt(t, ref);
  case PLN_BUFFER_REALIZE:
  case PLN_ALLOC_BUFFER: return realize_stmt(t, ref);
  case PLN_MATCH_BUFFER: return match_stmt(t, ref);
  case PLN_BLOCK_INIT: return init_stmt(t, ref);
  case PLN_DECL_BUFFER:
  case PLN_SEQ_STMT:
  case PLN_BLOCK: return push_body(t, n->data);
  case PLN_PREFETCH:
  case PLN_BUFFER_BIND: /* parameters.c */
  case PLN_BLOCK_READS:
  case PLN_BLOCK_WRITES: return PLN_OK;
  default:
    return pln_loop_refuse(t, "a %s is not interpreted",
                           pln_kinds[n->kind].name);
  }
}

static pln_status enter_body(pln_translation *t, pln_loop_task task) {
  /* What the header evaluated is not reused inside: its cells stay. */
  switch ((int)t->g->nodes[task.ref].kind) {
  case PLN_LET_STMT: return let_stmt_body(t, task);
  case PLN_WHILE: return while_body(t, task);
  case PLN_IF_THEN_ELSE: return if_body(t, task);
  case PLN_ASSERT_STMT: return assert_body(t, task);
  case PLN_FOR: return for_body(t, task);
  case PLN_ALLOCATE: return allocate_body(t, task);
  case PLN_ALLOCATE_CONST: return constant_body(t, task);
  case PLN_BLOCK_REALIZE: return realize_body(t, task);
  case PLN_ATTR_STMT: return attr_body(t, task);
  case PLN_BUFFER_STORE: return pln_loop_emit_store(t, task.ref);
  case PLN_BUFFER_REALIZE:
  case PLN_ALLOC_BUFFER: return realize_memory(t, task);
  case PLN_MATCH_BUFFER: return match_body(t, task);
  case PLN_BLOCK_INIT: return init_body(t, task);
  default: return PLN_OK; /* Evaluate */
  }
}

static pln_status leave_body(pln_translation *t, pln_loop_task task) {
  t->stmt = task.ref;
  switch ((int)t->g->nodes[task.ref].kind) {
  case PLN_FOR: return close_loop(t, task, loop_var(t, task.ref));
  case PLN_ATTR_STMT: return attr_leave(t, task);
  case PLN_WHILE: return while_leave(t, task);
  case PLN_LET_STMT: return pln_loop_unbind_var(t, loop_var(t, task.ref));
  default: pln_loop_land(t, task.x); return PLN_OK;
  }
}

/* Cells of an AllocBuffer or a view live as long as their scope. */
static bool keeps_cells(const pln_node *n) {
  return n->kind == PLN_ALLOC_BUFFER || n->kind == PLN_MATCH_BUFFER;
}

static pln_status run_stmt(pln_translation *t, pln_loop_task task) {
  pln_ref next = t->next_stmt[task.ref];
  if (next != PLN_NONE)
    PLN_TRY(
        pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_STMT, .ref = next}));
  t->stmt = task.ref;
  PLN_TRY(pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_STMT_END,
                                           .ref = task.ref,
                                           .mark = t->n_log,
                                           .x = t->top,
                                           .z = (int32_t)t->p->n_code}));
  return visit_stmt(t, task.ref);
}

static pln_status end_stmt(pln_translation *t, pln_loop_task task) {
  pln_loop_forget(t, task.mark);
  if (!keeps_cells(&t->g->nodes[task.ref]))
    t->top = task.x;
  return PLN_OK;
}

static pln_status run_task(pln_translation *t, pln_loop_task task) {
  switch ((pln_loop_task_kind)task.what) {
  case PLN_LOOP_STMT: return run_stmt(t, task);
  case PLN_LOOP_STMT_END: return end_stmt(t, task);
  case PLN_LOOP_BODY: return enter_body(t, task);
  case PLN_LOOP_ELSE: t->stmt = task.ref; return if_else(t, task);
  case PLN_LOOP_LEAVE: return leave_body(t, task);
  default: return pln_loop_expr_task(t, task);
  }
}

/* ------------------------------------------------------------- translation */

static pln_status list_statements(pln_translation *t) {
  const pln_graph *g = t->g;
  pln_graph_node_scopes(g, t->scope_of);
  for (pln_scope s = 0; s < g->n_scopes; s++)
    t->first_stmt[s] = PLN_NONE;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    t->next_stmt[ref] = PLN_NONE;
    if (!pln_is_stmt(&g->nodes[ref]))
      continue;
    t->next_stmt[ref] = t->first_stmt[t->scope_of[ref]];
    t->first_stmt[t->scope_of[ref]] = ref;
  }
  return pln_poll_stoppable(t->engine);
}

/* Whether an expression may fault: it loads, divides by what may be 0, or calls
 * something. */
static bool node_is_unsafe(const pln_graph *g, const pln_node *n) {
  if (n->kind == PLN_BUFFER_LOAD || n->kind == PLN_PRODUCER_LOAD ||
      n->kind == PLN_SHUFFLE || n->kind == PLN_REDUCE)
    return true;
  if (n->kind >= PLN_PRIM_DIV && n->kind <= PLN_PRIM_FLOORMOD)
    return g->nodes[g->operands[n->first + 1]].kind != PLN_INT_IMM ||
           pln_is_int(g, g->operands[n->first + 1], 0);
  return n->kind == PLN_PRIM_CALL && !pln_loop_call_is_safe(g, n);
}

static void find_unsafe(pln_translation *t) {
  const pln_graph *g = t->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    t->unsafe[ref] = node_is_unsafe(g, n);
    for (uint32_t i = 0; i < n->count && !t->unsafe[ref]; i++)
      t->unsafe[ref] = t->unsafe[g->operands[n->first + i]];
  }
}

static pln_status new_tables(pln_translation *t) {
  size_t nodes = t->g->n_nodes, scopes = t->g->n_scopes;
  t->memo = pln_mem_zeroed(t->engine, nodes * sizeof *t->memo);
  t->unsafe = pln_mem_new(t->engine, nodes * sizeof *t->unsafe);
  t->scope_of = pln_mem_new(t->engine, nodes * sizeof *t->scope_of);
  t->next_stmt = pln_mem_new(t->engine, nodes * sizeof *t->next_stmt);
  t->first_stmt = pln_mem_new(t->engine, scopes * sizeof *t->first_stmt);
  if (!t->memo || !t->unsafe || !t->scope_of || !t->next_stmt || !t->first_stmt)
    return pln_nomem(t->engine);
  PLN_TRY(pln_idmap_new(t->engine, &t->vars));
  return pln_idmap_new(t->engine, &t->memory);
}

static void free_tables(pln_translation *t) {
  size_t nodes = t->g->n_nodes, scopes = t->g->n_scopes;
  pln_mem_free(t->engine, t->memo, t->memo ? nodes * sizeof *t->memo : 0);
  pln_mem_free(t->engine, t->unsafe, t->unsafe ? nodes * sizeof *t->unsafe : 0);
  pln_mem_free(t->engine, t->scope_of,
               t->scope_of ? nodes * sizeof *t->scope_of : 0);
  pln_mem_free(t->engine, t->next_stmt,
               t->next_stmt ? nodes * sizeof *t->next_stmt : 0);
  pln_mem_free(t->engine, t->first_stmt,
               t->first_stmt ? scopes * sizeof *t->first_stmt : 0);
  pln_mem_free(t->engine, t->tasks, t->cap_tasks * sizeof *t->tasks);
  pln_mem_free(t->engine, t->log, t->cap_log * sizeof *t->log);
  pln_mem_free(t->engine, t->bindings, t->cap_bindings * sizeof *t->bindings);
  pln_idmap_free(t->vars);
  pln_idmap_free(t->memory);
}

static pln_status translate_body(pln_translation *t) {
  const pln_node *fn = &t->g->nodes[t->g->root];
  uint32_t null;
  PLN_TRY(new_tables(t));
  PLN_TRY(list_statements(t));
  find_unsafe(t);
  PLN_TRY(pln_loop_constant(t, 0, &t->zero));
  PLN_TRY(pln_loop_constant(t, 1, &t->one));
  PLN_TRY(pln_loop_new_storage(t, PLN_NONE, &null));
  PLN_TRY(pln_loop_bind_params(t));
  PLN_TRY(push_body(t, fn->data));
  for (size_t round = 0; t->n_tasks > 0; round++) {
    PLN_TRY(pln_poll_round(t->engine, round));
    PLN_TRY(run_task(t, t->tasks[--t->n_tasks]));
  }
  return pln_loop_emit(t, PLN_NONE, (pln_loop_instr){.op = PLN_LOOP_END});
}

pln_status pln_loop_translate(pln_loop_program *program,
                              const pln_loop_options *options) {
  pln_translation t = {.p = program,
                       .options = options,
                       .engine = program->engine,
                       .g = program->graph,
                       .stmt = PLN_NONE};
  t.most_code = 65536 + 256 * (size_t)program->graph->n_nodes;
  pln_status status = translate_body(&t);
  if (status != PLN_OK && t.stmt != PLN_NONE)
    pln_loop_note_statement(program, t.stmt);
  free_tables(&t);
  return status;
}
