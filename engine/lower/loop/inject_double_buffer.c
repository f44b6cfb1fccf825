/* inject_double_buffer.c: tir.InjectDoubleBuffer: fills a buffer one round
 * ahead of its use.
 *
 * Run by the executor. Inside of a loop, the attribute double_buffer_scope
 * says that its body fills a buffer for this round. The buffer gets twice as
 * large; its first half is filled before the loop, and each round fills the
 * other half for the next one. With tir.InjectDoubleBuffer.split_loop = n > 0
 * the body is written n times, and the last rounds stand behind the loop.
 *
 *     for i in range(8): double_buffer_scope: B[0] = A[i]; C[i] = B[0]
 *         =>   B[0] = A[0]
 *              for i in range(7): B[(i + 1) % 2] = A[i + 1]; C[i] = B[i % 2]
 *              C[7] = B[7 % 2]
 *
 * Semantics: TVM's tir.InjectDoubleBuffer, for one-dimensional buffers. A
 * buffer whose address is used otherwise, whose size changes in the loop, or
 * that is computed from what the same round computes, is left alone; so is one
 * whose scope is nested so deep in others that the program would get more than
 * MOST_GROWTH times as large. A loop that may have no rounds gets a branch
 * around it, which TVM's has not. */

#include <stdio.h>

#include "lower/lower.h"

/* Each scope is filled before its loop and in it, so that what is nested in it
 * is written at least twice. */
enum { MOST_GROWTH = 64 };

typedef struct double_buffer {
  pln_ref data;  /* its data pointer, a Var of the old graph */
  pln_ref scope; /* the AttrStmt */
  pln_ref loop;
  pln_ref write; /* image: the half that is filled; PLN_NONE: not filled now */
  pln_ref stride;
  pln_ref saved;  /* image of the loop's variable outside of the scope */
  bool needs_var; /* another Allocate binds the same Var, as TVM's LoopPartition
                   * leaves it: one that moves around a loop is bound anew */
} double_buffer;

typedef struct ref_list {
  pln_ref *items;
  uint32_t n, cap;
} ref_list;

/* A loop that is visited, and where what is built of it begins in the lists. */
typedef struct open_loop {
  pln_ref outer; /* the variable of the new loop */
  uint32_t before, rounds, allocated, declared;
} open_loop;

/* What is around the statements of a scope. */
typedef struct surroundings {
  pln_ref loop;    /* PLN_NONE: none */
  uint32_t growth; /* of what double buffer scopes write several times */
} surroundings;

typedef struct injector {
  const pln_graph *g;
  int64_t split;
  double_buffer *buffers;
  uint32_t n, cap;
  uint32_t *of_data; /* by Var: 1 + the buffer that it points to */
  uint32_t *of_loop; /* by For: the buffers that it fills */
  bool *exposed;     /* by Var: mark_exposed */
  pln_ref *first_store, *last_store; /* by Var: into it; PLN_NONE: none */
  pln_scope *scope_of;
  surroundings *around; /* by scope */
  open_loop *loops;
  uint32_t n_loops, cap_loops;
  ref_list before;    /* what fills first halves */
  ref_list rounds;    /* the rounds that are built */
  ref_list allocated; /* statements and images of extents of the Allocates that
                       * stand around loops */
  ref_list declared;  /* DeclBuffers of these, and images of their Buffers */
} injector;

static pln_status push_item(injector *x, ref_list *list, pln_ref item) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&list->items, &list->cap,
                       (size_t)list->n + 1, sizeof *list->items));
  list->items[list->n++] = item;
  return PLN_OK;
}

static bool has_key(const pln_graph *g, pln_ref stmt, const char *key) {
  return g->nodes[stmt].kind == PLN_ATTR_STMT &&
         pln_slice_is(
             pln_attrs_string(g->engine, g->nodes[stmt].attrs, "attr_key", ""),
             key);
}

/* ----------------------------------------------------------------- analysis
 */

/* A parent is a scope before its own ones. */
static void find_surroundings(injector *x) {
  const pln_graph *g = x->g;
  uint32_t each = 2 * (uint32_t)(x->split > 0 ? x->split : 0) + 1;
  each = each > 2 ? each : 2; /* before the loop, in it, behind it */
  for (pln_scope i = 0; i < g->n_scopes; i++) {
    pln_ref owner = g->scopes[i].owner;
    pln_scope parent = g->scopes[i].parent;
    surroundings at = {.loop = PLN_NONE, .growth = 1};
    if (parent != PLN_NONE)
      at = x->around[parent];
    if (owner != PLN_NONE && g->nodes[owner].kind == PLN_FOR)
      at.loop = owner;
    if (owner != PLN_NONE && has_key(g, owner, "double_buffer_scope") &&
        at.growth <= MOST_GROWTH)
      at.growth *= each;
    x->around[i] = at;
  }
}

/* What a scope writes, it and the scopes around it, must be within bounds; one
 * that is not nested always is. */
static bool grows_too_much(const injector *x, pln_ref stmt) {
  uint32_t outside = x->around[x->scope_of[stmt]].growth;
  uint32_t inside = x->around[x->g->nodes[stmt].data].growth;
  return outside > 1 && inside > MOST_GROWTH;
}

static pln_status refuse(const injector *x, const char *what) {
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.InjectDoubleBuffer: %s", what);
}

/* Marks the variables that are used other than by loads and stores, and by
 * attributes: of buffers, their addresses. */
static void mark_exposed(injector *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    if (n->kind == PLN_BUFFER || n->kind == PLN_ATTR_STMT ||
        !(pln_is_prim(n) || pln_is_stmt(n)))
      continue;
    for (uint32_t i = 0; i < n->count; i++)
      x->exposed[pln_operand(x->g, ref, i)] = true;
  }
}

/* Whether memory inside of the loop has a size that changes in it: it cannot be
 * allocated around the loop. */
static pln_status has_own_size(const injector *x, pln_ref data, pln_ref loop,
                               bool *own) {
  const pln_graph *g = x->g;
  pln_ref owner = g->scopes[x->scope_of[data]].owner, var;
  *own = false;
  if (owner == PLN_NONE || owner > loop || g->nodes[owner].kind != PLN_ALLOCATE)
    return PLN_OK;
  PLN_TRY(pln_last_variable(g, owner, &var));
  *own = var != PLN_NONE && var >= g->scopes[g->nodes[loop].data].begin;
  return PLN_OK;
}

static void find_stores(injector *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    x->first_store[ref] = x->last_store[ref] = PLN_NONE;
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    if (x->g->nodes[ref].kind != PLN_BUFFER_STORE)
      continue;
    pln_ref data = pln_operand(x->g, pln_operand(x->g, ref, 0), 0);
    if (x->first_store[data] == PLN_NONE)
      x->first_store[data] = ref;
    x->last_store[data] = ref;
  }
}

/* True if a store between first and last lies in the loop and not in the
 * statement that is part of it, as far as these two tell. */
static bool is_stored_around(const injector *x, pln_ref data, pln_ref stmt,
                             pln_ref loop) {
  const pln_scope_row *scopes = x->g->scopes;
  pln_ref in_loop = scopes[x->g->nodes[loop].data].begin;
  pln_ref in_stmt = scopes[x->g->nodes[stmt].data].begin;
  pln_ref first = x->first_store[data], last = x->last_store[data];
  if (first == PLN_NONE || last < in_loop || first > loop)
    return false;
  return first < in_stmt || last > stmt;
}

/* True if the statement reads what other statements of the loop write: it
 * cannot run a round earlier, which TVM does not ask. */
static bool reads_its_round(const injector *x, pln_ref stmt, pln_ref loop) {
  pln_ref ref = x->g->scopes[x->g->nodes[stmt].data].begin;
  for (; ref < stmt; ref++)
    if (x->g->nodes[ref].kind == PLN_BUFFER_LOAD &&
        is_stored_around(x, pln_operand(x->g, pln_operand(x->g, ref, 0), 0),
                         stmt, loop))
      return true;
  return false;
}

static pln_status add_buffer(injector *x, pln_ref stmt) {
  pln_ref data = pln_operand(x->g, stmt, 0);
  pln_ref loop = x->around[x->scope_of[stmt]].loop;
  bool own = false;
  if (loop == PLN_NONE)
    return refuse(x, "a double buffer scope must be inside of a loop");
  if (x->g->nodes[data].kind == PLN_VAR)
    PLN_TRY(has_own_size(x, data, loop, &own));
  if (own || grows_too_much(x, stmt) || x->g->nodes[data].kind != PLN_VAR ||
      x->exposed[data] || x->of_data[data] || reads_its_round(x, stmt, loop))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->buffers, &x->cap,
                       (size_t)x->n + 1, sizeof *x->buffers));
  x->buffers[x->n++] = (double_buffer){.data = data,
                                       .scope = stmt,
                                       .loop = loop,
                                       .write = PLN_NONE,
                                       .stride = PLN_NONE};
  x->of_data[data] = x->n;
  x->of_loop[loop]++;
  if (x->split > 0 && !pln_is_int(x->g, pln_operand(x->g, loop, 0), 0))
    return refuse(x, "a loop that is split begins at 0");
  return PLN_OK;
}

static bool is_param_var(const pln_node *n) {
  return n->kind == PLN_VAR && (n->flags & PLN_NODE_PARAM) != 0;
}

static pln_status find_shared_vars(injector *x, pln_idmap *binds) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (is_param_var(&g->nodes[ref]))
      PLN_TRY(pln_idmap_set(binds, g->nodes[ref].data,
                            pln_idmap_get(binds, g->nodes[ref].data) + 1));
  for (uint32_t i = 0; i < x->n; i++)
    x->buffers[i].needs_var =
        pln_idmap_get(binds, g->nodes[x->buffers[i].data].data) > 1;
  return PLN_OK;
}

static pln_status find_needed_vars(injector *x) {
  pln_idmap *binds;
  PLN_TRY(pln_idmap_new(x->g->engine, &binds));
  pln_status status = find_shared_vars(x, binds);
  pln_idmap_free(binds);
  return status;
}

static pln_status find_buffers(injector *x) {
  pln_scope_cursor at = {.graph = x->g};
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    x->scope_of[ref] = pln_scope_cursor_at(&at, ref);
  find_surroundings(x);
  mark_exposed(x);
  find_stores(x);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (has_key(x->g, ref, "double_buffer_scope"))
      PLN_TRY(add_buffer(x, ref));
  return find_needed_vars(x);
}

static double_buffer *buffer_of(const injector *x, pln_ref buffer) {
  pln_ref data = pln_operand(x->g, buffer, 0);
  return x->of_data[data] ? &x->buffers[x->of_data[data] - 1] : NULL;
}

/* ----------------------------------------------------------------- building
 */

static pln_status build_op(pln_stmt_rewrite *s, pln_kind kind, pln_ref a,
                           int64_t c, pln_ref *out) {
  pln_ref constant;
  PLN_TRY(pln_stmt_int_like(s, a, c, &constant));
  return pln_build_folded(pln_stmt_builder(s), kind, a, constant, out);
}

static pln_ref loop_image(const injector *x, const pln_stmt_rewrite *s,
                          pln_ref loop) {
  return pln_stmt_image(s, x->g->scopes[x->g->nodes[loop].data].begin);
}

/* half * stride + index; the index may be a vector. */
static pln_status half_index(pln_stmt_rewrite *s, pln_ref half, pln_ref stride,
                             pln_ref index, pln_ref *out) {
  pln_builder *b = pln_stmt_builder(s);
  PLN_TRY(pln_build_folded(b, PLN_PRIM_MUL, half, stride, &half));
  PLN_TRY(pln_stmt_broadcast(s, pln_stmt_node(s, index)->type, &half));
  return pln_build_folded(b, PLN_PRIM_ADD, half, index, out);
}

static pln_status not_flat(const injector *x) {
  return refuse(x, "a double buffer must be flat: run tir.StorageFlatten or "
                   "tir.FlattenBuffer first");
}

/* The Buffer with twice as many elements. */
static pln_status double_shape(injector *x, pln_stmt_rewrite *s, pln_ref old,
                               pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref two;
  if (n->results != 1 || n->count != 3)
    return not_flat(x);
  pln_ref extent = pln_stmt_image(s, pln_operand(x->g, old, 1));
  PLN_TRY(pln_stmt_int_like(s, extent, 2, &two));
  return pln_stmt_enlarge_buffer(s, old, two, node);
}

static pln_status read_half(injector *x, pln_stmt_rewrite *s, pln_ref old,
                            const double_buffer *d, pln_ref *node) {
  pln_ref half, operands[2];
  if (x->g->nodes[old].count != 2 || d->stride == PLN_NONE)
    return not_flat(x);
  PLN_TRY(build_op(s, PLN_PRIM_FLOORMOD, loop_image(x, s, d->loop), 2, &half));
  operands[0] = pln_stmt_image(s, pln_operand(x->g, old, 0));
  operands[1] = pln_stmt_image(s, pln_operand(x->g, old, 1));
  PLN_TRY(half_index(s, half, d->stride, operands[1], &operands[1]));
  pln_prim spec = {.kind = PLN_BUFFER_LOAD, .n = 2, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static pln_status write_half(injector *x, pln_stmt_rewrite *s, pln_ref stmt,
                             const double_buffer *d, pln_ref *node) {
  pln_ref operands[3];
  if (d->write == PLN_NONE)
    return refuse(x, "a double buffer is stored to outside of its scope");
  if (x->g->nodes[stmt].count != 3 || d->stride == PLN_NONE)
    return not_flat(x);
  for (uint32_t i = 0; i < 3; i++)
    operands[i] = pln_stmt_operand(s, i);
  PLN_TRY(half_index(s, d->write, d->stride, operands[2], &operands[2]));
  pln_prim spec = {.kind = PLN_BUFFER_STORE, .n = 3, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  injector *x = ud;
  const pln_node *n = &x->g->nodes[old];
  if (n->kind == PLN_BUFFER && buffer_of(x, old))
    return double_shape(x, s, old, node);
  if (n->kind != PLN_BUFFER_LOAD)
    return PLN_OK;
  const double_buffer *d = buffer_of(x, pln_operand(x->g, old, 0));
  return d ? read_half(x, s, old, d, node) : PLN_OK;
}

/* ------------------------------------------------------------------- scopes
 */

static double_buffer *scope_buffer(const injector *x, pln_ref stmt) {
  if (!has_key(x->g, stmt, "double_buffer_scope"))
    return NULL;
  pln_ref data = pln_operand(x->g, stmt, 0);
  double_buffer *d =
      x->of_data[data] ? &x->buffers[x->of_data[data] - 1] : NULL;
  return d && d->scope == stmt ? d : NULL;
}

static open_loop *top_loop(const injector *x) {
  return &x->loops[x->n_loops - 1];
}

/* The number of visits of a loop's body; 1: it is visited once, as it is. */
static uint32_t n_rounds(const injector *x, pln_ref loop) {
  return x->of_loop[loop] > 0 && x->split > 0 ? (uint32_t)(2 * x->split) : 1;
}

static bool is_first_round(const injector *x) {
  return x->rounds.n == top_loop(x)->rounds;
}

/* Whether the present round stands behind the loop. */
static bool is_tail(const injector *x, pln_ref loop) {
  return n_rounds(x, loop) > 1 &&
         x->rounds.n - top_loop(x)->rounds >= (uint64_t)x->split;
}

/* The first visit of all fills the first half for the first round, before the
 * loop; other visits fill the other half for the next round. */
static bool fills_first(const injector *x, const pln_stmt_rewrite *s) {
  return is_first_round(x) && pln_stmt_visits(s) == 0;
}

static pln_status enter_scope(injector *x, pln_stmt_rewrite *s,
                              double_buffer *d) {
  pln_ref var = x->g->scopes[x->g->nodes[d->loop].data].begin, next;
  d->saved = pln_stmt_image(s, var);
  if (d->saved == PLN_NONE)
    PLN_TRY(pln_stmt_map(s, var, &d->saved));
  if (fills_first(x, s)) {
    PLN_TRY(pln_stmt_int_like(s, d->saved, 0, &d->write));
    pln_stmt_bind(s, var, d->write);
    return PLN_OK;
  }
  PLN_TRY(build_op(s, PLN_PRIM_ADD, d->saved, 1, &next));
  PLN_TRY(build_op(s, PLN_PRIM_FLOORMOD, next, 2, &d->write));
  pln_stmt_bind(s, var, next);
  return PLN_OK;
}

static pln_status wrap(pln_stmt_rewrite *s, const pln_prim *spec,
                       pln_ref *body) {
  pln_body inner = {.stmt = *body};
  return pln_build_floating_stmt(pln_stmt_builder(s), spec, 1, &inner, body);
}

static pln_status mark_write(pln_stmt_rewrite *s, pln_ref *body) {
  pln_engine *e = pln_stmt_old(s)->engine;
  pln_ref operands[] = {pln_stmt_operand(s, 0), pln_stmt_operand(s, 1)};
  pln_prim spec = {.kind = PLN_ATTR_STMT, .n = 2, .operands = operands};
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("attr_key"), &name));
  PLN_TRY(pln_attrs_with(e, 0,
                         &(pln_attr){.name = name,
                                     .kind = PLN_ATTR_STRING,
                                     .v.s = pln_text("double_buffer_write")},
                         &spec.attrs));
  return wrap(s, &spec, body);
}

static pln_status guard(pln_stmt_rewrite *s, pln_ref index, pln_ref extent,
                        pln_ref *body) {
  pln_ref condition;
  PLN_TRY(pln_build_folded(pln_stmt_builder(s), PLN_PRIM_LT, index, extent,
                           &condition));
  pln_prim spec = {.kind = PLN_IF_THEN_ELSE, .n = 1, .operands = &condition};
  return wrap(s, &spec, body);
}

static pln_status leave_scope(injector *x, pln_stmt_rewrite *s,
                              double_buffer *d, pln_ref *body, bool *again) {
  pln_ref next, extent;
  *again = fills_first(x, s);
  d->write = PLN_NONE;
  pln_stmt_bind(s, x->g->scopes[x->g->nodes[d->loop].data].begin, d->saved);
  if (*again) {
    PLN_TRY(push_item(x, &x->before, *body));
    *body = PLN_NO_STMT;
    return PLN_OK;
  }
  if (!is_tail(x, d->loop))
    PLN_TRY(mark_write(s, body));
  PLN_TRY(build_op(s, PLN_PRIM_ADD, d->saved, 1, &next));
  PLN_TRY(pln_stmt_map(s, pln_operand(x->g, d->loop, 1), &extent));
  return guard(s, next, extent, body);
}

/* -------------------------------------------------------------------- loops
 */

static pln_status new_variable(injector *x, pln_stmt_rewrite *s, pln_ref var) {
  pln_builder *b = pln_stmt_builder(s);
  const pln_node *n = &x->g->nodes[var];
  char text[160];
  pln_symbol name;
  int size = snprintf(text, sizeof text, "%.128s.outer",
                      pln_symbol_text(b->engine, n->attrs).data);
  PLN_TRY(pln_symbol_intern(b->engine, (pln_slice){text, (size_t)size}, &name));
  return pln_build_var(b, name, n->type, 0, &top_loop(x)->outer);
}

/* *out: the rounds of the new loop: (extent - 1) / split */
static pln_status outer_extent(const injector *x, pln_stmt_rewrite *s,
                               pln_ref *out) {
  PLN_TRY(build_op(s, PLN_PRIM_SUB, pln_stmt_operand(s, 1), 1, out));
  return build_op(s, PLN_PRIM_FLOORDIV, *out, x->split, out);
}

/* The variable of the old loop in the present round: outer * split + k, or
 * behind the loop rounds * split + k. */
static pln_status bind_round(injector *x, pln_stmt_rewrite *s, pln_ref loop) {
  pln_ref var = x->g->scopes[x->g->nodes[loop].data].begin, at;
  uint32_t k = x->rounds.n - top_loop(x)->rounds;
  if (k == 0)
    PLN_TRY(new_variable(x, s, var));
  at = top_loop(x)->outer;
  if (is_tail(x, loop))
    PLN_TRY(outer_extent(x, s, &at));
  PLN_TRY(build_op(s, PLN_PRIM_MUL, at, x->split, &at));
  PLN_TRY(build_op(s, PLN_PRIM_ADD, at, k % x->split, &at));
  pln_stmt_bind(s, var, at);
  return PLN_OK;
}

static pln_status enter_loop(injector *x, pln_stmt_rewrite *s, pln_ref loop) {
  if (x->of_loop[loop] == 0)
    return PLN_OK;
  if (pln_stmt_visits(s) == 0) {
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->loops, &x->cap_loops,
                         (size_t)x->n_loops + 1, sizeof *x->loops));
    x->loops[x->n_loops++] = (open_loop){.outer = PLN_NONE,
                                         .before = x->before.n,
                                         .rounds = x->rounds.n,
                                         .allocated = x->allocated.n,
                                         .declared = x->declared.n};
  }
  return n_rounds(x, loop) > 1 ? bind_round(x, s, loop) : PLN_OK;
}

/* Keeps the round; behind the loop it runs only if there is one. */
static pln_status leave_round(injector *x, pln_stmt_rewrite *s, pln_ref loop,
                              pln_ref *body, bool *again) {
  if (x->of_loop[loop] == 0 || n_rounds(x, loop) == 1)
    return PLN_OK;
  if (is_tail(x, loop))
    PLN_TRY(guard(s, loop_image(x, s, loop), pln_stmt_operand(s, 1), body));
  PLN_TRY(push_item(x, &x->rounds, *body));
  *body = PLN_NO_STMT;
  *again = x->rounds.n - top_loop(x)->rounds < n_rounds(x, loop);
  return PLN_OK;
}

/* The new loop over the first half of the rounds that were built. */
static pln_status build_loop(const injector *x, pln_stmt_rewrite *s,
                             pln_ref loop, pln_ref *out) {
  const open_loop *l = top_loop(x);
  pln_builder *b = pln_stmt_builder(s);
  pln_ref ends[2], body;
  int64_t kind = pln_for_kind_of(x->g, loop);
  pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = ends};
  pln_symbol name;
  ends[0] = pln_stmt_operand(s, 0);
  PLN_TRY(outer_extent(x, s, &ends[1]));
  if (kind != PLN_FOR_SERIAL) {
    PLN_TRY(pln_symbol_intern(b->engine, pln_text("kind"), &name));
    PLN_TRY(pln_attrs_with(
        b->engine, 0,
        &(pln_attr){.name = name, .kind = PLN_ATTR_INT, .v.i = kind},
        &spec.attrs));
  }
  PLN_TRY(
      pln_stmt_seq(s, (uint32_t)x->split, x->rounds.items + l->rounds, &body));
  pln_body inner = {.n_params = 1, .params = &l->outer, .stmt = body};
  return pln_build_floating_stmt(b, &spec, 1, &inner, out);
}

/* The Buffers in memory that is allocated around the loop are declared there.
 */
static pln_status wrap_declared(injector *x, pln_stmt_rewrite *s,
                                pln_ref *node) {
  for (uint32_t first = top_loop(x)->declared; x->declared.n > first;) {
    x->declared.n -= 2;
    pln_ref *d = x->declared.items + x->declared.n;
    pln_prim spec = {.kind = PLN_DECL_BUFFER,
                     .attrs = x->g->nodes[d[0]].attrs,
                     .n = 1,
                     .operands = &d[1]};
    PLN_TRY(wrap(s, &spec, node));
  }
  return PLN_OK;
}

/* The Allocates of the loop, with twice the extent, around a statement. */
static pln_status wrap_allocated(injector *x, pln_stmt_rewrite *s,
                                 pln_ref *node) {
  for (uint32_t first = top_loop(x)->allocated; x->allocated.n > first;) {
    pln_ref operands[2], param;
    x->allocated.n -= 3;
    const pln_ref *a = x->allocated.items + x->allocated.n;
    pln_prim spec = {.kind = PLN_ALLOCATE,
                     .attrs = x->g->nodes[a[0]].attrs,
                     .n = 2,
                     .operands = operands};
    operands[0] = a[1];
    operands[1] = a[2];
    PLN_TRY(
        pln_stmt_map(s, x->g->scopes[x->g->nodes[a[0]].data].begin, &param));
    pln_body inner = {.n_params = 1, .params = &param, .stmt = *node};
    PLN_TRY(
        pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &inner, node));
  }
  return PLN_OK;
}

/* A loop without rounds fills nothing. */
static pln_status guard_empty(pln_stmt_rewrite *s, pln_ref *node) {
  const pln_node *n = pln_stmt_node(s, pln_stmt_operand(s, 1));
  pln_ref zero;
  if (n->kind == PLN_INT_IMM && (int64_t)pln_imm_bits(n) > 0)
    return PLN_OK;
  PLN_TRY(pln_stmt_int_like(s, pln_stmt_operand(s, 1), 0, &zero));
  return guard(s, zero, pln_stmt_operand(s, 1), node);
}

static pln_status leave_loop(injector *x, pln_stmt_rewrite *s, pln_ref loop,
                             pln_ref *node) {
  open_loop *l = top_loop(x);
  pln_ref own;
  if (n_rounds(x, loop) > 1)
    PLN_TRY(build_loop(x, s, loop, &own));
  else
    PLN_TRY(pln_stmt_rebuild(s, loop, &own));
  PLN_TRY(push_item(x, &x->before, own));
  for (uint32_t i = l->rounds + (uint32_t)x->split; i < x->rounds.n; i++)
    PLN_TRY(push_item(x, &x->before, x->rounds.items[i]));
  PLN_TRY(pln_stmt_seq(s, x->before.n - l->before, x->before.items + l->before,
                       node));
  x->before.n = l->before;
  x->rounds.n = l->rounds;
  PLN_TRY(guard_empty(s, node));
  PLN_TRY(wrap_declared(x, s, node));
  PLN_TRY(wrap_allocated(x, s, node));
  pln_stmt_bind(s, x->g->scopes[x->g->nodes[loop].data].begin, PLN_NONE);
  x->n_loops--;
  return PLN_OK;
}

/* -------------------------------------------------------------- allocations
 */

static double_buffer *allocated_buffer(const injector *x, pln_ref stmt) {
  if (x->g->nodes[stmt].kind != PLN_ALLOCATE)
    return NULL;
  pln_ref data = x->g->scopes[x->g->nodes[stmt].data].begin;
  return x->of_data[data] ? &x->buffers[x->of_data[data] - 1] : NULL;
}

/* The Allocate moves around the loop; one outside of it stays. */
static pln_status leave_allocate(injector *x, pln_stmt_rewrite *s, pln_ref stmt,
                                 const double_buffer *d, pln_ref *node) {
  pln_ref operands[] = {pln_stmt_operand(s, 0), pln_stmt_operand(s, 1)};
  PLN_TRY(build_op(s, PLN_PRIM_MUL, operands[1], 2, &operands[1]));
  if (stmt > d->loop) { /* an owner comes behind its body */
    pln_ref param;
    PLN_TRY(pln_stmt_map(s, d->data, &param));
    pln_prim spec = {.kind = PLN_ALLOCATE,
                     .attrs = x->g->nodes[stmt].attrs,
                     .n = 2,
                     .operands = operands};
    pln_body body = {
        .n_params = 1, .params = &param, .stmt = pln_stmt_body(s, 0)};
    return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &body, node);
  }
  *node = pln_stmt_body(s, 0);
  if (*node == PLN_NONE)
    PLN_TRY(pln_stmt_no_op(s, node));
  if (!is_first_round(x))
    return PLN_OK;
  PLN_TRY(push_item(x, &x->allocated, stmt));
  PLN_TRY(push_item(x, &x->allocated, operands[0]));
  return push_item(x, &x->allocated, operands[1]);
}

/* A Buffer that both halves are written through is declared around the loop. */
static bool moves_declaration(const injector *x, pln_ref stmt,
                              const double_buffer *d) {
  const pln_graph *g = x->g;
  pln_ref buffer = pln_operand(g, stmt, 0);
  return g->nodes[buffer].results == 1 &&
         g->nodes[pln_operand(g, buffer, 1)].kind == PLN_INT_IMM &&
         stmt > d->scope && stmt < d->loop &&
         stmt >= g->scopes[g->nodes[d->loop].data].begin;
}

static pln_status leave_declaration(injector *x, pln_stmt_rewrite *s,
                                    pln_ref stmt, pln_ref *node) {
  pln_ref buffer = pln_stmt_operand(s, 0);
  const double_buffer *d = buffer_of(x, pln_operand(x->g, stmt, 0));
  if (!d || !moves_declaration(x, stmt, d))
    return PLN_OK;
  *node = pln_stmt_body(s, 0);
  if (*node == PLN_NONE)
    PLN_TRY(pln_stmt_no_op(s, node));
  if (!is_first_round(x))
    return PLN_OK;
  PLN_TRY(push_item(x, &x->declared, stmt));
  return push_item(x, &x->declared, buffer);
}

/* ---------------------------------------------------------------- callbacks
 */

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  injector *x = ud;
  double_buffer *d = scope_buffer(x, stmt);
  (void)k, (void)skip;
  if (x->g->nodes[stmt].kind == PLN_FOR)
    return enter_loop(x, s, stmt);
  if (d)
    return enter_scope(x, s, d);
  d = allocated_buffer(x, stmt);
  if (!d)
    return PLN_OK;
  if (x->g->nodes[stmt].count != 2)
    return not_flat(x);
  d->stride = pln_stmt_operand(s, 1);
  if (!d->needs_var || stmt > d->loop)
    return PLN_OK;
  d->needs_var = false;
  return pln_stmt_bind_new_var(s, d->data);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  injector *x = ud;
  double_buffer *d = scope_buffer(x, stmt);
  (void)k;
  if (x->g->nodes[stmt].kind == PLN_FOR)
    return leave_round(x, s, stmt, body, again);
  return d ? leave_scope(x, s, d, body, again) : PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  injector *x = ud;
  pln_kind kind = (pln_kind)x->g->nodes[stmt].kind;
  if (kind == PLN_FOR && x->of_loop[stmt] > 0)
    return leave_loop(x, s, stmt, node);
  if (has_key(x->g, stmt, "double_buffer_scope")) {
    *node = pln_stmt_body(s, 0);
    return PLN_OK;
  }
  double_buffer *d = allocated_buffer(x, stmt);
  if (d)
    return leave_allocate(x, s, stmt, d, node);
  if (kind == PLN_DECL_BUFFER)
    return leave_declaration(x, s, stmt, node);
  d = kind == PLN_BUFFER_STORE ? buffer_of(x, pln_operand(x->g, stmt, 0))
                               : NULL;
  return d ? write_half(x, s, stmt, d, node) : PLN_OK;
}

/* ----------------------------------------------------------------- the pass
 */

static pln_status inject(injector *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = visit_expr,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  PLN_TRY(
      pln_lower_config(run, "tir.InjectDoubleBuffer.split_loop", &x->split));
  if (x->split > 1 && x->split % 2 != 0)
    return refuse(x, "split_loop must be 0, 1 or even");
  if (x->split > 4096)
    return refuse(x, "split_loop is more than 4096");
  if (!x->of_data || !x->of_loop || !x->exposed || !x->scope_of || !x->around ||
      !x->first_store || !x->last_store)
    return pln_nomem(x->g->engine);
  PLN_TRY(find_buffers(x));
  return pln_lower_function(run, &mutator);
}

static bool has_scope(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (has_key(g, ref, "double_buffer_scope"))
      return true;
  return false;
}

static void free_list(const injector *x, const ref_list *list) {
  pln_mem_free(x->g->engine, list->items, list->cap * sizeof *list->items);
}

pln_status pln_pass_tir_inject_double_buffer(pln_pass_run *run) {
  injector x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t n = x.g->n_nodes;
  if (!has_scope(x.g))
    return PLN_OK;
  x.of_data = pln_mem_zeroed(e, n * sizeof *x.of_data);
  x.of_loop = pln_mem_zeroed(e, n * sizeof *x.of_loop);
  x.exposed = pln_mem_zeroed(e, n * sizeof *x.exposed);
  x.scope_of = pln_mem_new(e, n * sizeof *x.scope_of);
  x.around = pln_mem_new(e, x.g->n_scopes * sizeof *x.around);
  x.first_store = pln_mem_new(e, n * sizeof *x.first_store);
  x.last_store = pln_mem_new(e, n * sizeof *x.last_store);
  pln_status status = inject(&x, run);
  pln_mem_free(e, x.of_data, n * sizeof *x.of_data);
  pln_mem_free(e, x.of_loop, n * sizeof *x.of_loop);
  pln_mem_free(e, x.exposed, n * sizeof *x.exposed);
  pln_mem_free(e, x.scope_of, n * sizeof *x.scope_of);
  pln_mem_free(e, x.around, x.g->n_scopes * sizeof *x.around);
  pln_mem_free(e, x.first_store, n * sizeof *x.first_store);
  pln_mem_free(e, x.last_store, n * sizeof *x.last_store);
  pln_mem_free(e, x.buffers, x.cap * sizeof *x.buffers);
  pln_mem_free(e, x.loops, x.cap_loops * sizeof *x.loops);
  free_list(&x, &x.before);
  free_list(&x, &x.rounds);
  free_list(&x, &x.allocated);
  free_list(&x, &x.declared);
  return status;
}
