/* stmt.c: writes statements.
 *
 * Called by function.c. A statement whose body is a scope is written by its
 * header's expressions, a BODY task, the statements inside, and a LEAVE task.
 */

#include "codegen/guard.h"

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

void pln_c_push_body(pln_cw *w, pln_scope scope) {
  pln_ref first = w->first_stmt[scope];
  if (first == PLN_NONE)
    return;
  pln_c_push(w, (pln_c_task){.what = PLN_C_STMT_END, .mark = w->n_log});
  pln_c_push(w,
             (pln_c_task){.what = PLN_C_STMT, .ref = first, .mark = w->n_log});
}

static void push_header(pln_cw *w, pln_ref ref, uint32_t n,
                        const pln_ref *exprs) {
  pln_c_push(w, (pln_c_task){.what = PLN_C_BODY,
                             .ref = ref,
                             .mark = w->n_log,
                             .at = w->out->size});
  pln_c_push_exprs(w, n, exprs);
}

static const char *header_text(pln_cw *w, pln_ref ref) {
  pln_c_value value = pln_c_value_of(w, refs_of(w, ref)[0]);
  return pln_c_text_at(w, &value, 0).data;
}

/* ---------------------------------------------------------------- branches */

static void if_body(pln_cw *w, pln_c_task task) {
  const char *condition = header_text(w, task.ref);
  pln_c_forget(w, task.mark);
  pln_c_open_if(w, &task, condition);
  task.what = PLN_C_ELSE;
  pln_c_push(w, task);
  pln_c_push_body(w, w->g->nodes[task.ref].data);
}

static void if_else(pln_cw *w, pln_c_task task) {
  pln_scope other = w->g->scopes[w->g->nodes[task.ref].data].next;
  if (other == PLN_NONE) {
    pln_c_close_if(w, &task);
    return;
  }
  pln_c_else(w, &task);
  task.what = PLN_C_LEAVE;
  pln_c_push(w, task);
  pln_c_push_body(w, other);
}

/* The condition is evaluated again before each round: the loop is opened before
 * its expressions are written. */
static void while_stmt(pln_cw *w, pln_ref ref) {
  pln_c_task task = {.what = PLN_C_BODY, .ref = ref, .mark = w->n_log};
  task.flat = w->depth >= PLN_C_MOST_NEST;
  if (task.flat) {
    task.x = w->n_labels;
    w->n_labels += 2;
    pln_c_line(w, "L%u:;", task.x);
  } else {
    pln_c_line(w, "for (;;) {");
    w->depth++;
  }
  pln_c_push(w, task);
  pln_c_push_expr(w, refs_of(w, ref)[0]);
}

static void while_body(pln_cw *w, pln_c_task task) {
  const char *condition = header_text(w, task.ref);
  pln_c_line(w, "if (!(%s))", condition);
  if (task.flat)
    pln_c_line(w, "  goto L%u;", task.x + 1);
  else
    pln_c_line(w, "  break;");
  pln_c_forget(w, task.mark);
  task.what = PLN_C_LEAVE;
  pln_c_push(w, task);
  pln_c_push_body(w, w->g->nodes[task.ref].data);
}

static void while_leave(pln_cw *w, pln_c_task task) {
  if (task.flat) {
    pln_c_line(w, "goto L%u;", task.x);
    pln_c_line(w, "L%u:;", task.x + 1);
  } else {
    w->depth--;
    pln_c_line(w, "}");
  }
}

static void add_assert(pln_cw *w, pln_ref ref) {
  pln_c_function *fn = w->fn;
  const pln_node *text = &w->g->nodes[refs_of(w, ref)[1]];
  pln_symbol message = text->kind == PLN_STRING_IMM ? text->data : 0;
  uint32_t k = w->n_asserts++;
  if (k < fn->n_asserts)
    return; /* the other variant has it */
  pln_symbol *list = pln_mem_resize(w->engine, fn->asserts, k * sizeof *list,
                                    (k + 1) * sizeof *list);
  if (!list) {
    pln_c_fail(w, pln_nomem(w->engine));
    return;
  }
  fn->asserts = list;
  fn->asserts[fn->n_asserts++] = message;
}

static void assert_body(pln_cw *w, pln_c_task task) {
  const char *condition = header_text(w, task.ref);
  pln_c_line(w, "if (!(%s))", condition);
  pln_c_line(w, "  return %u;", PLN_C_ASSERT + w->n_asserts);
  add_assert(w, task.ref);
  pln_c_forget(w, task.mark);
  pln_c_push_body(w, w->g->nodes[task.ref].data);
}

/* -------------------------------------------------------------------- lets */

/* The dtype that a pointer points to. */
static pln_dtype pointee(const pln_cw *w, pln_ref var) {
  pln_type type = w->g->nodes[var].type;
  if (pln_type_get_kind(w->engine, type) != PLN_TYPE_POINTER)
    return PLN_DTYPE_NONE;
  return pln_type_dtype(w->engine, pln_type_part_at(w->engine, type, 0));
}

static void let_pointer(pln_cw *w, pln_ref var, pln_ref from) {
  const pln_c_memory *memory =
      w->g->nodes[from].kind == PLN_VAR ? pln_c_find_memory(w, from) : NULL;
  pln_c_value value = pln_c_value_of(w, from);
  pln_dtype dtype = pointee(w, var);
  if (memory) {
    pln_c_memory copy = *memory;
    pln_c_bind_memory(w, var, copy.name, copy.dtype);
    return;
  }
  const char *name =
      pln_c_fresh_name(w, pln_symbol_text(w->engine, w->g->nodes[var].attrs));
  const char *type = pln_c_memory_name(dtype);
  pln_c_line(w, "%s *const %s = (%s *)%s;", type, name, type,
             pln_c_arg(w, pln_c_text_at(w, &value, 0)));
  pln_c_line(w, "(void)%s;", name);
  pln_c_bind_memory(w, var, pln_c_textf(w, PLN_C_NAME, "%s", name), dtype);
}

/* Whether an int32 value is a term of indices alone. Compilers need not extend
 * its sign in each round of a loop where it is an int64. */
static bool is_index(const pln_cw *w, pln_ref from, const pln_c_value *value) {
  return value->dtype == PLN_INT32 && value->lanes == 1 && w->uses[from] > 0 &&
         !w->elsewhere[from];
}

/* One variable for each chunk, by the let's name. */
static pln_c_value let_value(pln_cw *w, pln_ref var, pln_ref from) {
  pln_c_value value = pln_c_value_of(w, from);
  if (is_index(w, from, &value))
    value.dtype = PLN_INT64;
  if (value.count == 1 && pln_c_text_at(w, &value, 0).place)
    return value;
  pln_slice hint = pln_symbol_text(w->engine, w->g->nodes[var].attrs);
  pln_c_value out = value;
  bool used = pln_idmap_get(w->var_uses, w->g->nodes[var].data) != 0;
  out.count = 0;
  for (uint32_t i = 0; i < value.count; i++) {
    pln_c_text text = pln_c_text_at(w, &value, i);
    uint32_t lanes =
        value.form == PLN_C_PLAIN ? pln_c_chunk_lanes(w, value.lanes, i) : 1;
    if (text.prec != PLN_C_NAME && (used || text.reads)) {
      const char *name = pln_c_fresh_name(w, hint);
      pln_c_line(w, "const %s %s = %s;",
                 pln_c_chunk_type(w, (pln_dtype)value.dtype, value.mask, lanes),
                 name, text.data);
      if (!used)
        pln_c_line(w, "(void)%s;", name);
      text = pln_c_textf(w, PLN_C_NAME, "%s", name);
    }
    pln_c_add_text(w, &out, text);
  }
  return out;
}

static void let_body(pln_cw *w, pln_c_task task) {
  pln_ref from = refs_of(w, task.ref)[0];
  pln_ref var = w->g->scopes[w->g->nodes[task.ref].data].begin;
  if (!pln_prim_dtype(w->g, from))
    let_pointer(w, var, from);
  else
    pln_c_bind(w, var, let_value(w, var, from));
  pln_c_forget(w, task.mark);
  task.what = PLN_C_LEAVE;
  pln_c_push(w, task);
  pln_c_push_body(w, w->g->nodes[task.ref].data);
}

/* -------------------------------------------------------------- statements */

static void refuse_stmt(pln_cw *w, pln_kind kind) {
  pln_c_refuse(w,
               "a %s is not written as C; lower the function with pl.lower "
               "first",
               pln_kinds[kind].name);
}

static void push_loop(pln_cw *w, pln_ref ref) {
  pln_c_guards guards;
  pln_c_find_tile(w, ref);
  push_header(w, ref, 2, refs_of(w, ref));
  if (pln_c_find_guards(w, ref, &guards))
    pln_c_push_guards(w, &guards);
}

static void push_part(pln_cw *w, pln_ref ref, uint32_t n, uint32_t part) {
  pln_c_push(w,
             (pln_c_task){.what = PLN_C_PART, .ref = ref, .x = n, .y = part});
}

static void for_stmt(pln_cw *w, pln_ref ref) {
  uint32_t n = pln_c_n_parts(w, ref);
  if (n > 1)
    push_part(w, ref, n, 0);
  else
    push_loop(w, ref);
}

static void part_task(pln_cw *w, pln_c_task task) {
  pln_c_begin_part(w, task.ref, task.x, task.y);
  if (task.y == task.x)
    return;
  push_part(w, task.ref, task.x, task.y + 1);
  push_loop(w, task.ref);
}

static void visit_attr(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  if (pln_c_opens_thread(w, n))
    push_header(w, ref, 1, refs_of(w, ref) + 1);
  else
    pln_c_push_body(w, n->data);
}

static void visit_stmt(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_ref *o = refs_of(w, ref);
  switch ((int)n->kind) {
  case PLN_IF_THEN_ELSE:
    if (w->assumed[ref])
      pln_c_push_body(w, n->data);
    else
      push_header(w, ref, 1, o);
    break;
  case PLN_LET_STMT:
  case PLN_EVALUATE: push_header(w, ref, 1, o); break;
  case PLN_ASSERT_STMT:
    if (w->options->asserts || w->keeps_asserts)
      push_header(w, ref, 1, o);
    else
      pln_c_push_body(w, n->data);
    break;
  case PLN_WHILE: while_stmt(w, ref); break;
  case PLN_FOR: for_stmt(w, ref); break;
  case PLN_ALLOCATE: push_header(w, ref, n->count - 1, o + 1); break;
  case PLN_ALLOCATE_CONST: push_header(w, ref, 0, o); break;
  case PLN_ATTR_STMT: visit_attr(w, ref); break;
  case PLN_BUFFER_STORE:
    pln_c_push(w,
               (pln_c_task){.what = PLN_C_BODY, .ref = ref, .mark = w->n_log});
    pln_c_push_access(w, ref, 2);
    pln_c_push_expr(w, o[1]);
    break;
  case PLN_DECL_BUFFER:
  case PLN_SEQ_STMT: pln_c_push_body(w, n->data); break;
  case PLN_PREFETCH:
  case PLN_BUFFER_BIND: break;
  default: refuse_stmt(w, (pln_kind)n->kind);
  }
}

/* Only the bounds of the extents are needed, not what computes them. */
static void allocate_body(pln_cw *w, pln_c_task task) {
  w->out->size = task.at;
  if (w->g->nodes[task.ref].kind == PLN_ALLOCATE)
    pln_c_allocate(w, task.ref, task.mark);
  else
    pln_c_allocate_const(w, task.ref);
  pln_c_push_body(w, w->g->nodes[task.ref].data);
}

static void enter_body(pln_cw *w, pln_c_task task) {
  switch ((int)w->g->nodes[task.ref].kind) {
  case PLN_LET_STMT: let_body(w, task); break;
  case PLN_WHILE: while_body(w, task); break;
  case PLN_IF_THEN_ELSE: if_body(w, task); break;
  case PLN_ASSERT_STMT: assert_body(w, task); break;
  case PLN_FOR: pln_c_for_body(w, task); break;
  case PLN_ALLOCATE:
  case PLN_ALLOCATE_CONST: allocate_body(w, task); break;
  case PLN_ATTR_STMT: pln_c_thread_body(w, task); break;
  case PLN_BUFFER_STORE: pln_c_store(w, task.ref); break;
  default: break; /* Evaluate: calls with effects are written already */
  }
}

static void leave_body(pln_cw *w, pln_c_task task) {
  w->stmt = task.ref;
  switch ((int)w->g->nodes[task.ref].kind) {
  case PLN_FOR: pln_c_for_leave(w, task); break;
  case PLN_ATTR_STMT: pln_c_thread_leave(w, task); break;
  case PLN_WHILE: while_leave(w, task); break;
  case PLN_LET_STMT:
    pln_c_unbind(w, w->g->scopes[w->g->nodes[task.ref].data].begin);
    break;
  default: pln_c_close_if(w, &task);
  }
}

/* What several of the stores that begin here read is loaded before them. */
static void begin_stores(pln_cw *w, pln_c_task task) {
  if (w->tile.rounds && w->tile.doubled == task.ref) { /* all of the body */
    pln_c_push(w, (pln_c_task){.what = PLN_C_STMT_END, .mark = task.mark});
    pln_c_push_doubled(w, task.ref);
    return;
  }
  pln_c_push(w, task);
  pln_c_push_shared_loads(w, task.ref);
  pln_c_push_transposes(w, task.ref);
}

/* x: how many stores of a row are left, if the row has begun. What was loaded
 * before the first one is forgotten behind the last one: memory may change. */
static void run_stmt(pln_cw *w, pln_c_task task) {
  if (task.x == 0) {
    pln_c_forget(w, task.mark);
    if (task.ref == w->part.row)
      task.ref = w->part.first;
    task.x = pln_c_n_stores(w, task.ref);
    if (task.x > 0) {
      begin_stores(w, task);
      return;
    }
  }
  uint32_t n = task.x > 1 ? pln_c_n_merged(w, task.ref, task.x) : 1;
  pln_ref next = task.ref;
  for (uint32_t i = 0; i < n; i++)
    next = w->next_stmt[next];
  if (next != PLN_NONE && next != w->part.end)
    pln_c_push(w, (pln_c_task){.what = PLN_C_STMT,
                               .ref = next,
                               .mark = task.mark,
                               .x = task.x > n ? task.x - n : 0});
  w->stmt = task.ref;
  w->n_merged = n;
  pln_c_push(w, (pln_c_task){
                    .what = PLN_C_STMT_END, .ref = task.ref, .mark = w->n_log});
  visit_stmt(w, task.ref);
}

static void run_task(pln_cw *w, pln_c_task task) {
  switch ((pln_c_task_kind)task.what) {
  case PLN_C_STMT: run_stmt(w, task); break;
  case PLN_C_STMT_END:
    pln_c_forget(w, task.mark);
    w->n_merged = 1;
    break;
  case PLN_C_BODY: enter_body(w, task); break;
  case PLN_C_ELSE: if_else(w, task); break;
  case PLN_C_LEAVE: leave_body(w, task); break;
  case PLN_C_TRANSPOSE: pln_c_transpose_task(w, task); break;
  case PLN_C_DOUBLED: pln_c_doubled_task(w, task.ref); break;
  case PLN_C_PART: part_task(w, task); break;
  case PLN_C_SHARED_LOADS: pln_c_shared_loads_task(w, task.ref); break;
  default: pln_c_expr_task(w, task);
  }
}

void pln_c_run_tasks(pln_cw *w, uint32_t floor) {
  for (size_t round = 0; w->n_tasks > floor && w->status == PLN_OK; round++) {
    pln_c_fail(w, pln_poll_round(w->engine, round));
    if (w->status == PLN_OK)
      run_task(w, w->tasks[--w->n_tasks]);
  }
}
