/* analysis.c: what is known of a function before it is written: its statements
 * in order, uses of nodes and variables, accesses to memory, the width of its
 * vectors.
 *
 * Called by function.c. Loops over the arrays of the sealed graph. */

#include "codegen/writer.h"

static pln_idmap *new_map(pln_cw *w) {
  pln_idmap *map = NULL;
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_idmap_new(w->engine, &map));
  return map;
}

static bool is_prim(const pln_node *n) {
  return pln_kinds[n->kind].kind_class == PLN_CLASS_PRIM;
}

static bool is_stmt(const pln_node *n) {
  return pln_kinds[n->kind].kind_class == PLN_CLASS_STMT;
}

static void list_statements(pln_cw *w) {
  const pln_graph *g = w->g;
  pln_graph_node_scopes(g, w->scope_of);
  for (pln_scope s = 0; s < g->n_scopes; s++)
    w->first_stmt[s] = PLN_NONE;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    w->next_stmt[ref] = PLN_NONE;
    if (!is_stmt(&g->nodes[ref]))
      continue;
    w->next_stmt[ref] = w->first_stmt[w->scope_of[ref]];
    w->first_stmt[w->scope_of[ref]] = ref;
  }
}

/* Whether an expression may fault: it loads, divides by what may be 0, or calls
 * something. */
static bool node_is_unsafe(const pln_cw *w, const pln_node *n) {
  const pln_graph *g = w->g;
  if (n->kind == PLN_BUFFER_LOAD || n->kind == PLN_PRODUCER_LOAD ||
      n->kind == PLN_REDUCE)
    return true;
  if (n->kind >= PLN_PRIM_DIV && n->kind <= PLN_PRIM_FLOORMOD)
    return w->options->asserts &&
           (g->nodes[g->operands[n->first + 1]].kind != PLN_INT_IMM ||
            pln_is_int(g, g->operands[n->first + 1], 0));
  return n->kind == PLN_PRIM_CALL && !pln_c_call_is_safe(n);
}

static void count_use(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  if (w->uses[ref] < 255)
    w->uses[ref]++;
  if (n->kind == PLN_VAR)
    pln_c_fail(w, pln_idmap_set(w->var_uses, n->data,
                                pln_idmap_get(w->var_uses, n->data) + 1));
}

static void add_access(pln_cw *w, pln_ref data, uint32_t how) {
  if (w->g->nodes[data].kind == PLN_BUFFER)
    data = w->g->operands[w->g->nodes[data].first];
  uint32_t var = w->g->nodes[data].data;
  pln_c_fail(w, pln_idmap_set(w->access, var,
                              pln_idmap_get(w->access, var) | how | 8));
}

static bool is_builtin(const pln_node *n, const char *name) {
  return n->data && !strcmp(pln_builtin_row(n->data)->name, name);
}

/* The buffer of the element whose address a node is; PLN_NONE: another node. */
static pln_ref addressed(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind != PLN_PRIM_CALL || !is_builtin(n, "address_of") || n->count == 0)
    return PLN_NONE;
  const pln_node *load = &g->nodes[g->operands[n->first]];
  return load->kind == PLN_BUFFER_LOAD ? g->operands[load->first] : PLN_NONE;
}

/* The function of this unit that a node calls; NULL: another node. */
static const pln_c_function *called(const pln_cw *w, const pln_node *n) {
  const pln_graph *g = w->g;
  if (n->kind != PLN_PRIM_CALL || n->count == 0 ||
      !is_builtin(n, "call_extern"))
    return NULL;
  const pln_node *name = &g->nodes[g->operands[n->first]];
  const pln_c_callee *callee = NULL;
  if (name->kind == PLN_STRING_IMM)
    callee = pln_c_find_callee(w, name->data);
  return callee && callee->written ? &w->code->functions[callee - w->callees]
                                   : NULL;
}

/* Whether argument i of a call of a function is memory that this only reads:
 * weights of a model, which no call needs a copy of. */
static bool only_reads(const pln_c_function *fn, uint32_t i) {
  return fn && i > 0 && i <= fn->n_params && fn->params[i - 1].is_buffer &&
         !fn->params[i - 1].is_written;
}

/* A pointer that leaves the function may be written through, unless the
 * function that gets it is known; a prefetch does nothing with it. */
static void note_pointers(pln_cw *w, const pln_node *n) {
  const pln_graph *g = w->g;
  bool is_call = n->kind == PLN_PRIM_CALL;
  if (is_call && is_builtin(n, "prefetch"))
    return;
  const pln_c_function *fn = called(w, n);
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref arg = g->operands[n->first + i], buffer = addressed(g, arg);
    bool pointer =
        is_call && g->nodes[arg].kind == PLN_VAR && !pln_prim_dtype(w->g, arg);
    if (buffer != PLN_NONE || pointer)
      add_access(w, pointer ? arg : buffer,
                 PLN_C_READ | PLN_C_ESCAPES |
                     (only_reads(fn, i) ? 0 : PLN_C_WRITTEN));
  }
}

/* The first Buffer of each parameter. */
static void note_bindings(pln_cw *w) {
  const pln_graph *g = w->g;
  pln_ref ref = w->first_stmt[g->nodes[g->root].data];
  for (; ref != PLN_NONE && w->status == PLN_OK; ref = w->next_stmt[ref]) {
    const pln_ref *o = pln_operands(g, &g->nodes[ref]);
    if (g->nodes[ref].kind == PLN_BUFFER_BIND &&
        !pln_idmap_get(w->bindings, g->nodes[o[0]].data))
      pln_c_fail(w, pln_idmap_set(w->bindings, g->nodes[o[0]].data, o[1] + 1));
  }
}

static void note_call(pln_cw *w, const pln_node *n) {
  if (is_builtin(n, "call_extern"))
    w->spills = true;
}

static void note_node(pln_cw *w, pln_ref ref) {
  const pln_graph *g = w->g;
  const pln_node *n = &g->nodes[ref];
  const pln_ref *o = pln_operands(g, n);
  if (n->kind == PLN_BUFFER_LOAD && g->nodes[o[0]].kind == PLN_BUFFER)
    add_access(w, o[0], PLN_C_READ);
  if (n->kind == PLN_BUFFER_STORE)
    add_access(w, o[0], PLN_C_WRITTEN);
  note_pointers(w, n);
  if (n->kind == PLN_PRIM_CALL)
    note_call(w, n);
  if (n->kind == PLN_LET_STMT) {
    pln_ref var = g->scopes[n->data].begin;
    pln_c_fail(w, pln_idmap_set(w->lets, g->nodes[var].data, o[0] + 1));
    if (g->nodes[o[0]].kind == PLN_VAR && !pln_prim_dtype(w->g, o[0]))
      add_access(w, o[0], PLN_C_READ | PLN_C_WRITTEN | PLN_C_ESCAPES);
  }
}

static void note_nodes(pln_cw *w) {
  const pln_graph *g = w->g;
  for (pln_ref ref = 0; ref < g->n_nodes && w->status == PLN_OK; ref++) {
    const pln_node *n = &g->nodes[ref];
    w->unsafe[ref] = node_is_unsafe(w, n);
    for (uint32_t i = 0; i < n->count; i++) {
      w->unsafe[ref] |= w->unsafe[g->operands[n->first + i]];
      if (n->kind != PLN_BUFFER && n->kind != PLN_ALLOCATE)
        count_use(w, g->operands[n->first + i]);
    }
    note_node(w, ref);
  }
}

/* ------------------------------------------------------------------ indices */

/* Whether operand i of a node is an index, or a term of one. What becomes of
 * the value of a let is known by the uses of its variable. */
static bool is_index_term(const pln_cw *w, pln_ref ref, uint32_t i) {
  const pln_node *n = &w->g->nodes[ref];
  bool used = w->uses[ref] > 0 && !w->elsewhere[ref];
  switch ((int)n->kind) {
  case PLN_LET_STMT: return true;
  case PLN_BUFFER_LOAD: return i >= 1;
  case PLN_BUFFER_STORE: return i >= 2;
  case PLN_PRIM_ADD:
  case PLN_PRIM_SUB:
  case PLN_PRIM_MUL: return used && pln_prim_lanes(w->g, ref) == 1;
  case PLN_RAMP: return used && i == 0;
  default: return false;
  }
}

/* The node, and if it is the variable of a let the value that this has. */
static void mark_elsewhere(pln_cw *w, pln_ref ref) {
  while (!w->elsewhere[ref]) {
    const pln_node *n = &w->g->nodes[ref];
    uint32_t let = n->kind == PLN_VAR ? pln_idmap_get(w->lets, n->data) : 0;
    w->elsewhere[ref] = true;
    if (!let)
      return;
    ref = let - 1;
  }
}

/* Sums and products that are used in indices alone do not wrap: an element at
 * an index that left its dtype does not exist. Users are seen before operands:
 * they stand behind them, and so do all uses of a let's variable. */
static void find_indices(pln_cw *w) {
  const pln_graph *g = w->g;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = 0; i < n->count; i++)
      if (!is_index_term(w, ref, i))
        mark_elsewhere(w, g->operands[n->first + i]);
  }
}

/* ------------------------------------------------------------------ vectors */

/* Bytes of an element of a vector that is computed; 0: it is none. */
static uint32_t vector_element(const pln_cw *w, pln_ref ref, bool *half) {
  const pln_node *n = &w->g->nodes[ref];
  bool is_virtual = n->kind == PLN_RAMP || n->kind == PLN_BROADCAST;
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  if ((!is_prim(n) && n->kind != PLN_VAR) || pln_prim_lanes(w->g, ref) == 1 ||
      !pln_c_has_dtype(dtype))
    return 0;
  *half |= pln_c_is_half(dtype);
  return is_virtual || dtype == PLN_BOOL ? 1 : pln_c_bytes(dtype);
}

uint32_t pln_c_vector_bytes(const pln_cw *w) {
  return w->options->vector_bytes ? w->options->vector_bytes : 32;
}

/* Lanes of a chunk: those of the widest element that fit a vector. */
static void find_width(pln_cw *w) {
  uint32_t bytes = pln_c_vector_bytes(w), most = 0;
  bool half = false;
  for (pln_ref ref = 0; ref < w->g->n_nodes; ref++) {
    uint32_t size = vector_element(w, ref, &half);
    most = size > most ? size : most;
  }
  w->width = most == 0 || half ? 1 : bytes / most;
}

/* ------------------------------------------------------------------- tables */

static void *table(pln_cw *w, size_t n, size_t size) {
  void *out =
      w->status == PLN_OK ? pln_mem_zeroed(w->engine, (n + 1) * size) : NULL;
  if (!out && w->status == PLN_OK)
    pln_c_fail(w, pln_nomem(w->engine));
  return out;
}

static void new_tables(pln_cw *w) {
  size_t nodes = w->g->n_nodes, scopes = w->g->n_scopes;
  w->memo = table(w, nodes, sizeof *w->memo);
  w->uses = table(w, nodes, sizeof *w->uses);
  w->unsafe = table(w, nodes, sizeof *w->unsafe);
  w->seen = table(w, nodes, sizeof *w->seen);
  w->assumed = table(w, nodes, sizeof *w->assumed);
  w->elsewhere = table(w, nodes, sizeof *w->elsewhere);
  w->scope_of = table(w, nodes, sizeof *w->scope_of);
  w->next_stmt = table(w, nodes, sizeof *w->next_stmt);
  w->first_stmt = table(w, scopes, sizeof *w->first_stmt);
  w->vars = new_map(w);
  w->var_uses = new_map(w);
  w->access = new_map(w);
  w->memory = new_map(w);
  w->names = new_map(w);
  w->lets = new_map(w);
  w->top_vars = new_map(w);
  w->bindings = new_map(w);
}

static void drop(pln_cw *w, void *block, size_t n, size_t size) {
  pln_mem_free(w->engine, block, block ? (n + 1) * size : 0);
}

void pln_c_free_analysis(pln_cw *w) {
  size_t nodes = w->g->n_nodes, scopes = w->g->n_scopes;
  drop(w, w->memo, nodes, sizeof *w->memo);
  drop(w, w->uses, nodes, sizeof *w->uses);
  drop(w, w->unsafe, nodes, sizeof *w->unsafe);
  drop(w, w->seen, nodes, sizeof *w->seen);
  drop(w, w->assumed, nodes, sizeof *w->assumed);
  drop(w, w->elsewhere, nodes, sizeof *w->elsewhere);
  drop(w, w->scope_of, nodes, sizeof *w->scope_of);
  drop(w, w->next_stmt, nodes, sizeof *w->next_stmt);
  drop(w, w->first_stmt, scopes, sizeof *w->first_stmt);
  pln_idmap *maps[] = {w->vars,  w->var_uses, w->access,   w->memory,
                       w->names, w->lets,     w->top_vars, w->bindings};
  for (size_t i = 0; i < PLN_COUNT(maps); i++)
    if (maps[i])
      pln_idmap_free(maps[i]);
  w->memo = NULL;
  w->uses = NULL;
  w->unsafe = NULL;
  w->seen = NULL;
  w->assumed = NULL;
  w->elsewhere = NULL;
  w->scope_of = NULL;
  w->next_stmt = w->first_stmt = NULL;
  w->vars = w->var_uses = w->access = w->memory = NULL;
  w->names = w->lets = w->top_vars = w->bindings = NULL;
}

void pln_c_analyse(pln_cw *w) {
  w->spills = false;
  w->condition = NULL;
  new_tables(w);
  if (w->status != PLN_OK)
    return;
  list_statements(w);
  note_bindings(w);
  note_nodes(w);
  if (w->status == PLN_OK)
    find_indices(w);
  find_width(w);
}
