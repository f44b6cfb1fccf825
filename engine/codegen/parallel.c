/* parallel.c: writes parallel loops as functions that a pool of threads runs.
 *
 * Called by loop.c when the unit may use threads. The body becomes a function
 * of the variables that it uses, which it gets in a struct. A parallel loop
 * inside of another is serial, and so is one that allocates memory of a size
 * that is not constant. */

#include "codegen/writer.h"

typedef struct capture_walk {
  pln_ref *stack;
  uint32_t n, cap;
  pln_idmap *known; /* variables that are captured */
  pln_buffer fields, values, locals;
} capture_walk;

static void push(pln_cw *w, capture_walk *c, pln_ref ref) {
  if (w->status != PLN_OK || w->seen[ref] == w->n_regions)
    return;
  w->seen[ref] = w->n_regions;
  pln_c_fail(w, pln_mem_grow(w->engine, (void **)&c->stack, &c->cap,
                             (size_t)c->n + 1, sizeof *c->stack));
  if (w->status == PLN_OK)
    c->stack[c->n++] = ref;
}

static void add(pln_cw *w, pln_buffer *to, const char *format, const char *a,
                const char *b) {
  if (w->status == PLN_OK)
    pln_c_fail(
        w, pln_buffer_text(to, pln_c_textf(w, PLN_C_NAME, format, a, b).data));
}

/* A field of the struct, its value, and a variable in the function. */
static void add_field(pln_cw *w, capture_walk *c, const char *type,
                      const char *name) {
  size_t n = strlen(type);
  pln_symbol symbol = 0;
  if (name[0] == '(' || (name[0] >= '0' && name[0] <= '9'))
    return; /* a literal */
  pln_c_fail(w, pln_symbol_intern(w->engine, pln_text(name), &symbol));
  uint64_t key = (uint64_t)1 << 32 | symbol;
  if (w->status != PLN_OK || pln_idmap_get(c->known, key))
    return;
  pln_c_fail(w, pln_idmap_set(c->known, key, 1));
  const char *gap = n && type[n - 1] == '*' ? "" : " ";
  const char *typed =
      pln_c_textf(w, PLN_C_NAME, "%s%s%s", type, gap, name).data;
  const char *local = strchr(type, '*')
                          ? pln_c_textf(w, PLN_C_NAME, "%sconst%s %s", type,
                                        w->restricts ? " restrict" : "", name)
                                .data
                          : pln_c_textf(w, PLN_C_NAME, "const %s", typed).data;
  add(w, &c->fields, "  %s;\n%s", typed, "");
  add(w, &c->values, c->values.size ? ", %s%s" : "%s%s", name, "");
  add(w, &c->locals, "  %s = pl_context->%s;\n", local, name);
  add(w, &c->locals, "  (void)%s;\n%s", name, "");
}

static void capture_memory(pln_cw *w, capture_walk *c, pln_ref var) {
  const pln_c_memory *memory = pln_c_find_memory(w, var);
  uint32_t how = pln_idmap_get(w->access, w->g->nodes[var].data);
  const char *type =
      pln_c_textf(w, PLN_C_NAME, "%s%s *", how & PLN_C_WRITTEN ? "" : "const ",
                  pln_c_memory_name(memory->dtype))
          .data;
  add_field(w, c, type, memory->name.data);
}

static void capture(pln_cw *w, capture_walk *c, pln_ref var) {
  uint32_t id = w->g->nodes[var].data;
  if (!pln_c_is_bound(w, var) || pln_idmap_get(c->known, id))
    return;
  pln_c_fail(w, pln_idmap_set(c->known, id, 1));
  if (pln_c_find_memory(w, var)) {
    capture_memory(w, c, var);
    return;
  }
  pln_c_value value = pln_c_value_of(w, var);
  for (uint32_t i = 0; i < value.count; i++) {
    const char *name = pln_c_text_at(w, &value, i).data;
    uint32_t lanes =
        value.form == PLN_C_PLAIN ? pln_c_chunk_lanes(w, value.lanes, i) : 1;
    add_field(w, c,
              pln_c_chunk_type(w, (pln_dtype)value.dtype, value.mask, lanes),
              name);
  }
}

/* Everything that the nodes of the scope use, directly or not. */
static void find_captures(pln_cw *w, capture_walk *c, pln_scope scope) {
  const pln_graph *g = w->g;
  const pln_scope_row *row = &g->scopes[scope];
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    push(w, c, ref);
  /* In the order of the scope, not of the stack. */
  for (uint32_t i = 0; i < c->n && w->status == PLN_OK; i++) {
    const pln_node *n = &g->nodes[c->stack[i]];
    if (n->kind == PLN_VAR)
      capture(w, c, c->stack[i]);
    for (uint32_t k = 0; k < n->count; k++)
      push(w, c, g->operands[n->first + k]);
  }
}

static bool is_constant_size(const pln_cw *w, const pln_node *n) {
  for (uint32_t i = 1; i < n->count; i++)
    if (w->g->nodes[w->g->operands[n->first + i]].kind != PLN_INT_IMM)
      return false;
  return true;
}

/* Whether the body may be a function. */
static bool may_outline(const pln_cw *w, pln_scope scope) {
  const pln_scope_row *row = &w->g->scopes[scope];
  if (w->options->threads < 2 || w->region.outer || w->n_iters > 0)
    return false;
  for (pln_ref ref = row->begin; ref < row->end; ref++) {
    const pln_node *n = &w->g->nodes[ref];
    if (n->kind == PLN_ALLOCATE && !is_constant_size(w, n))
      return false;
  }
  return true;
}

static void call_pool(pln_cw *w, const char *name, const capture_walk *c,
                      const char *extent) {
  pln_c_line(w, "{");
  if (c->values.size)
    pln_c_line(w, "  %s_context pl_context = {%.*s};", name,
               (int)c->values.size, c->values.data);
  pln_c_line(w, "  int32_t pl_status = pl_parallel(%s, %s, %s, %u);", name,
             c->values.size ? "&pl_context" : "0", extent, w->options->threads);
  pln_c_line(w, "  if (pl_status)");
  pln_c_line(w, "    return pl_status;");
  pln_c_line(w, "}");
}

static void begin_function(pln_cw *w, const char *name, const capture_walk *c) {
  if (c->values.size)
    pln_c_raw(w, "typedef struct %s_context {\n%.*s} %s_context;\n\n", name,
              (int)c->fields.size, c->fields.data, name);
  pln_c_raw(w,
            "static int32_t %s(void *context, int64_t pl_begin, int64_t "
            "pl_end, int32_t thread) {\n",
            name);
  if (c->values.size)
    pln_c_raw(w, "  const %s_context *const pl_context = context;\n%.*s", name,
              (int)c->locals.size, c->locals.data);
  else
    pln_c_raw(w, "  (void)context;\n");
  pln_c_raw(w, "  (void)thread;\n");
}

static void init_walk(pln_cw *w, capture_walk *c) {
  *c = (capture_walk){0};
  pln_buffer_init(&c->fields, w->engine);
  pln_buffer_init(&c->values, w->engine);
  pln_buffer_init(&c->locals, w->engine);
  pln_c_fail(w, pln_idmap_new(w->engine, &c->known));
}

static void free_walk(pln_cw *w, capture_walk *c) {
  pln_buffer_free(&c->fields);
  pln_buffer_free(&c->values);
  pln_buffer_free(&c->locals);
  pln_mem_free(w->engine, c->stack, c->cap * sizeof *c->stack);
  if (c->known)
    pln_idmap_free(c->known);
}

bool pln_c_open_parallel(pln_cw *w, pln_c_task *task, const char *type,
                         pln_c_value min, pln_c_value extent, const char *var) {
  pln_scope scope = w->g->nodes[task->ref].data;
  capture_walk c;
  if (w->status != PLN_OK || !may_outline(w, scope))
    return false;
  init_walk(w, &c);
  w->n_regions++;
  w->uses_pool = true;
  const char *name =
      pln_c_textf(w, PLN_C_NAME, "%s_loop%u",
                  pln_symbol_text(w->engine, w->fn->c_name).data, w->n_regions)
          .data;
  find_captures(w, &c, scope);
  pln_c_text first = pln_c_text_at(w, &min, 0);
  add_field(w, &c, type, first.data);
  bool allocates = false;
  for (pln_ref r = w->g->scopes[scope].begin; r < w->g->scopes[scope].end; r++)
    allocates |= w->g->nodes[r].kind == PLN_ALLOCATE;
  if (allocates)
    add_field(w, &c, "char *", "workspace");
  w->uses_workspace |= allocates;
  call_pool(w, name, &c, pln_c_text_at(w, &extent, 0).data);
  w->region.outer = w->out;
  w->region.depth = w->depth;
  w->region.name = name;
  w->region.thread_bytes = 0;
  w->region.base = w->workspace_bytes;
  w->out = &w->region.body;
  w->out->size = 0;
  begin_function(w, name, &c);
  w->depth = 1;
  pln_c_line(w, "for (int64_t pl_i = pl_begin; pl_i < pl_end; pl_i++) {");
  w->depth = 2;
  pln_c_line(w, "const %s %s = (%s)(%s + pl_i);", type, var, type, first.data);
  pln_c_line(w, "(void)%s;", var);
  free_walk(w, &c);
  task->k |= 8;
  return true;
}

void pln_c_close_parallel(pln_cw *w, pln_c_task *task) {
  (void)task;
  pln_c_raw(w, "  }\n  return 0;\n}\n\n");
  w->out = w->region.outer;
  w->depth = w->region.depth;
  w->region.outer = NULL;
  if (w->status != PLN_OK)
    return;
  if (w->region.thread_bytes)
    pln_c_fail(w,
               pln_buffer_printf(&w->functions, "enum { %s_bytes = %llu };\n\n",
                                 w->region.name,
                                 (unsigned long long)w->region.thread_bytes));
  w->workspace_bytes += w->region.thread_bytes * w->options->threads;
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_buffer_add(&w->functions, w->region.body.data,
                                 w->region.body.size));
}
