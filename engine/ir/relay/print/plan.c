/* relay/print/plan.c: decides where each node is printed: inline, as %N on its
 * own line, or in the metadata section.
 *
 * Called by relay/print/print.c. It follows TVM's printer: every expression
 * gets a line `%N = ...;` in the scope where it is first visited, except atoms
 * and a scope's result without other uses. A call, tuple or projection is
 * visited after its operands (the callee first); a node is numbered when its
 * first user is visited, arguments before the callee. A stack of tasks and
 * per-node tables make this linear. */

#include "ir/relay/print/plan.h"

/* OUTER: used in a scope nested in its own. */
enum { MARKED = 1, VISITED = 2, PRINTED = 4, OUTER = 8 };

/* --------------------------------------------------------------- of a text */

pln_status pln_naming_init(pln_naming *naming, pln_engine *engine) {
  *naming = (pln_naming){.engine = engine};
  PLN_TRY(pln_metadata_init(&naming->meta, engine));
  PLN_TRY(pln_fragments_init(&naming->attrs, engine));
  PLN_TRY(pln_idmap_new(engine, &naming->bound_types));
  PLN_TRY(pln_idmap_new(engine, &naming->type_names));
  return pln_interner_new(engine, &naming->names);
}

void pln_naming_free(pln_naming *naming) {
  if (!naming->engine) /* out of memory before it began */
    return;
  if (naming->names)
    pln_interner_free(naming->names);
  if (naming->bound_types)
    pln_idmap_free(naming->bound_types);
  if (naming->type_names)
    pln_idmap_free(naming->type_names);
  pln_fragments_free(&naming->attrs);
  pln_metadata_free(&naming->meta);
  pln_mem_free(naming->engine, naming->suffixes,
               naming->cap_suffixes * sizeof *naming->suffixes);
}

static pln_status add_name(pln_naming *naming, const char *text, size_t size,
                           uint32_t *id, bool *added) {
  PLN_TRY(pln_intern(naming->names, text, size, id, added));
  if (!*added)
    return PLN_OK;
  if (naming->n_suffixes == naming->cap_suffixes)
    PLN_TRY(pln_mem_grow(naming->engine, (void **)&naming->suffixes,
                         &naming->cap_suffixes, naming->n_suffixes + 1u,
                         sizeof *naming->suffixes));
  naming->suffixes[naming->n_suffixes++] = 0;
  return PLN_OK;
}

/* The name hint, or the hint with the lowest number appended that makes it
 * unique. */
static pln_status unique_name(pln_naming *naming, pln_buffer *hint,
                              uint32_t *id) {
  bool added;
  uint32_t first;
  PLN_TRY(add_name(naming, hint->data, hint->size, &first, &added));
  *id = first;
  size_t size = hint->size;
  while (!added) {
    hint->size = size;
    PLN_TRY(
        pln_buffer_printf(hint, "%u", (unsigned)++naming->suffixes[first - 1]));
    PLN_TRY(add_name(naming, hint->data, hint->size, id, &added));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- tasks */

typedef enum task_kind {
  TASK_PRINT,  /* plan a node so that it can be referred to */
  TASK_INLINE, /* the same, or allow it inline if this is its only use */
  TASK_EMIT,   /* give a visited node its line */
  TASK_EMIT_INLINE,
  TASK_VISIT, /* operands first */
  TASK_ATOM,  /* print the operands */
  TASK_ATTRS, /* write the attributes */
  TASK_DONE,
  TASK_SCOPE,     /* plan a scope */
  TASK_STATEMENT, /* its statements, from this one on */
  TASK_LINE,      /* a let's line */
  TASK_RESULT,
  TASK_PATTERN, /* name the variables of a pattern */
  TASK_UNBIND,  /* end the type parameters of a scope */
  TASK_LEAVE    /* return to the enclosing scope */
} task_kind;

typedef struct task {
  uint32_t kind;
  uint32_t id;
} task;

typedef struct planner {
  pln_text_plan *plan;
  const pln_graph *graph;
  task *tasks;
  uint32_t n_tasks, cap_tasks;
  pln_scope scope; /* where lines go */
  pln_buffer hint;
} planner;

static pln_engine *engine_of(const planner *p) {
  return p->plan->naming->engine;
}

static pln_status push_print_task(planner *p, task_kind kind, uint32_t id) {
  if (p->n_tasks == p->cap_tasks)
    PLN_TRY(pln_mem_grow(engine_of(p), (void **)&p->tasks, &p->cap_tasks,
                         p->n_tasks + 1u, sizeof *p->tasks));
  p->tasks[p->n_tasks++] = (task){kind, id};
  return PLN_OK;
}

/* Pushes so that the first of `n` refs is on top. */
static pln_status push_all(planner *p, task_kind kind, uint32_t n,
                           const pln_ref *refs) {
  while (n-- > 0)
    PLN_TRY(push_print_task(p, kind, refs[n]));
  return PLN_OK;
}

/* -------------------------------------------------------------- statements */

/* Counts the uses of each node in the graph. */
static void count_printed_uses(const pln_graph *g, pln_text_node *nodes) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    for (uint32_t j = 0; j < g->nodes[i].count; j++)
      nodes[pln_operand(g, i, j)].uses++;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result < g->n_nodes)
      nodes[g->scopes[s].result].uses++;
}

/* True if scope `s` begins at node `i` inside `scope`. Of two scopes that begin
 * together the one that ends first is the inner one. */
static bool opens(const pln_graph *g, pln_scope s, pln_ref i, pln_scope scope) {
  return g->scopes[s].begin == i &&
         (scope == 0 || g->scopes[s].end <= g->scopes[scope].end);
}

/* The scope of node `i`, given the scope of the node before it and *next, the
 * first scope that has not begun. */
static pln_scope scope_at(const pln_graph *g, pln_ref i, pln_scope scope,
                          pln_scope *next) {
  for (;;) {
    const pln_scope_row *row = &g->scopes[scope];
    if (scope != 0 && i >= row->end)
      scope = row->parent == PLN_NONE ? 0 : row->parent;
    else if (*next == g->n_scopes ||
             (g->scopes[*next].begin > i && g->scopes[*next].begin != PLN_NONE))
      return scope;
    else if (opens(g, *next, i, scope))
      scope = (*next)++;
    else
      ++*next;
  }
}

/* Marks nodes used in a scope other than their own. */
static void find_outer(pln_text_plan *plan) {
  const pln_graph *g = plan->graph;
  pln_text_node *nodes = plan->nodes;
  pln_scope scope = 0, next = 1;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    scope = scope_at(g, i, scope, &next);
    nodes[i].next = scope;
    for (uint32_t j = 0; j < g->nodes[i].count; j++)
      if (nodes[pln_operand(g, i, j)].next != scope)
        nodes[pln_operand(g, i, j)].state |= OUTER;
  }
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result < g->n_nodes &&
        nodes[g->scopes[s].result].next != s)
      nodes[g->scopes[s].result].state |= OUTER;
}

/* True for lets, for unused nodes of a sealed graph, and for nodes that must
 * not be evaluated in another scope. */
static bool is_statement(const pln_graph *g, const pln_text_node *nodes,
                         pln_ref i) {
  const pln_node *n = &g->nodes[i];
  if (n->flags & PLN_NODE_DROPPED ||
      pln_kinds[n->kind].kind_class == PLN_CLASS_PATTERN)
    return false;
  if (n->kind == PLN_LET || nodes[i].kept)
    return true;
  if (!g->sealed || pln_is_atomic_expr(n->kind) || i == g->root)
    return false;
  return (pln_flags_effect(n->flags) != PLN_EFFECT_NONE &&
          nodes[i].state & OUTER);
}

/* Links each scope's statements in order. */
static pln_status find_statements(pln_text_plan *plan) {
  const pln_graph *g = plan->graph;
  count_printed_uses(g, plan->nodes);
  find_outer(plan);
  PLN_TRY(pln_text_find_kept_nodes(plan));
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    pln_text_scope *row = &plan->scopes[plan->nodes[i].next];
    if (!is_statement(g, plan->nodes, i))
      continue;
    if (row->last == PLN_NONE)
      row->statement = i;
    else
      plan->statements[row->last] = i;
    row->last = i;
  }
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    plan->nodes[i].uses = 0;
    plan->nodes[i].next = PLN_NONE;
  }
  for (pln_scope s = 0; s < g->n_scopes; s++)
    plan->scopes[s].last = PLN_NONE;
  return PLN_OK;
}

/* ------------------------------------------------------------- what is used */

static pln_status count_text_use(planner *p, pln_ref node) {
  pln_text_node *n = &p->plan->nodes[node];
  n->uses++;
  if (n->state & MARKED || pln_is_atomic_expr(p->graph->nodes[node].kind))
    return PLN_OK;
  n->state |= MARKED;
  return push_print_task(p, TASK_VISIT, node);
}

static pln_status use_scope(planner *p, pln_scope scope) {
  const pln_text_plan *plan = p->plan;
  for (pln_ref s = plan->scopes[scope].statement; s != PLN_NONE;
       s = plan->statements[s]) {
    PLN_TRY(count_text_use(p, s));
    p->plan->nodes[s].uses--;
  }
  return count_text_use(p, p->graph->scopes[scope].result);
}

/* Counts the uses by nodes that `root` reaches. */
static pln_status mark(planner *p, pln_ref root) {
  const pln_graph *g = p->graph;
  PLN_TRY(count_text_use(p, root));
  while (p->n_tasks > 0) {
    pln_ref node = p->tasks[--p->n_tasks].id;
    for (uint32_t i = 0; i < g->nodes[node].count; i++)
      PLN_TRY(count_text_use(p, pln_operand(g, node, i)));
    if (pln_kinds[g->nodes[node].kind].payload != PLN_PAYLOAD_SCOPE)
      continue;
    for (pln_scope s = g->nodes[node].data; s != PLN_NONE;
         s = g->scopes[s].next)
      PLN_TRY(use_scope(p, s));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------- attributes */

static void write_function_attr(pln_writer *w, const pln_attr *a,
                                const char **before) {
  pln_put_text(w, *before);
  pln_put_attr(w, a);
  *before = ", ";
}

/* True if the attribute is printed with the others; devices are not. */
static bool is_plain_attr(const pln_engine *e, const pln_attr *a) {
  pln_slice name = pln_symbol_text(e, a->name);
  return !pln_slice_is(name, PLN_DEVICE_ATTR) &&
         !pln_slice_is(name, PLN_PARAM_DEVICES_ATTR);
}

static bool is_listed(const pln_engine *e, pln_attrs order, pln_symbol name) {
  for (uint32_t i = 0; i < pln_attrs_count(e, order); i++)
    if (pln_attrs_at(e, order, i)->name == name)
      return true;
  return false;
}

/* Prints the attributes in the source's order; returns the number of the
 * remaining ones. */
static uint32_t write_in_order(pln_writer *w, pln_attrs attrs, pln_attrs order,
                               const char **before) {
  const pln_engine *e = w->engine;
  uint32_t n = 0;
  for (uint32_t i = 0; i < pln_attrs_count(e, order); i++) {
    pln_symbol name = pln_attrs_at(e, order, i)->name;
    const pln_attr *a = pln_attrs_find(e, attrs, pln_symbol_text(e, name).data);
    if (!a)
      continue;
    n++;
    if (is_plain_attr(e, a))
      write_function_attr(w, a, before);
  }
  return n;
}

/* Then the others by name, and last the function's device. */
static void write_function_attrs(pln_writer *w, pln_attrs attrs,
                                 pln_attrs order, const char **before) {
  const pln_engine *e = w->engine;
  uint32_t n = pln_attrs_count(e, attrs);
  bool all = write_in_order(w, attrs, order, before) == n;
  for (uint32_t i = 0; i < n && !all; i++) {
    const pln_attr *a = pln_attrs_at(e, attrs, i);
    if (is_plain_attr(e, a) && !is_listed(e, order, a->name))
      write_function_attr(w, a, before);
  }
  const pln_attr *device = pln_attrs_find(e, attrs, PLN_DEVICE_ATTR);
  if (device)
    write_function_attr(w, device, before);
}

/* For a call of a function the name of TVM's attribute struct comes last. */
static void write_call_attrs(pln_writer *w, pln_attrs attrs, pln_attrs order) {
  const pln_engine *e = w->engine;
  const pln_attr *key = pln_attrs_find(e, attrs, "attrs_type_key");
  const char *before = "";
  if (order) {
    write_function_attrs(w, attrs, order, &before);
    return;
  }
  for (uint32_t i = 0; i < pln_attrs_count(e, attrs); i++)
    if (pln_attrs_at(e, attrs, i) != key)
      write_function_attr(w, pln_attrs_at(e, attrs, i), &before);
  if (key)
    write_function_attr(w, key, &before);
}

static pln_slice plan_var_name(const planner *p, pln_ref var) {
  size_t size;
  const char *name =
      pln_interned(p->plan->naming->names, p->plan->nodes[var].number, &size);
  return (pln_slice){name, size};
}

/* True if the attribute lists exactly the names of the scope's parameters. */
static bool names_params(const planner *p, pln_scope scope, const pln_attr *a) {
  const pln_graph *g = p->graph;
  const pln_scope_row *row = &g->scopes[scope];
  bool same = a->kind == PLN_ATTR_STRINGS && a->count == row->n_params;
  for (uint32_t i = 0; same && i < a->count; i++) {
    pln_ref param = pln_param(g, scope, row->owner, i);
    same = pln_slice_equal(a->v.strings[i], plan_var_name(p, param));
  }
  return same;
}

/* A scope's own attributes, with `prefix`. Input names are omitted when they
 * equal the parameter names. */
static void write_scope_attrs(const planner *p, pln_writer *w, pln_scope scope,
                              const char *prefix, const char **before) {
  const pln_engine *e = w->engine;
  pln_attrs attrs = p->graph->scopes[scope].attrs;
  uint32_t n = pln_attrs_count(e, attrs);
  if (n > 0 && !pln_attrs_find(e, attrs, PLN_INPUT_NAMES_ATTR)) {
    pln_put_text(w, *before);
    pln_put_text(w, prefix);
    pln_put_text(w, PLN_INPUT_NAMES_ATTR "=None");
    *before = ", ";
  }
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_at(e, attrs, i);
    pln_slice name = pln_symbol_text(e, a->name);
    if (pln_slice_is(name, PLN_INPUT_NAMES_ATTR) && names_params(p, scope, a))
      continue;
    pln_put_text(w, *before);
    pln_put_prefixed_attr(w, prefix, a);
    *before = ", ";
  }
}

static void write_if_attrs(const planner *p, pln_writer *w, const pln_node *n) {
  const char *before = pln_attrs_count(w->engine, n->attrs) > 0 ? ", " : "";
  pln_put_attrs(w, n->attrs, NULL, "");
  if (n->results > 0) {
    pln_put_results(w, n->results, before);
    before = ", ";
  }
  write_scope_attrs(p, w, n->data, PLN_THEN_PREFIX, &before);
  write_scope_attrs(p, w, p->graph->scopes[n->data].next, PLN_ELSE_PREFIX,
                    &before);
}

static void write_attrs(const planner *p, pln_writer *w, const pln_node *n,
                        pln_attrs order) {
  const char *before = "";
  if (n->kind == PLN_FUNCTION) {
    write_function_attrs(w, n->attrs, order, &before);
    write_scope_attrs(p, w, n->data, PLN_SCOPE_PREFIX, &before);
  } else if (n->kind == PLN_IF) {
    write_if_attrs(p, w, n);
  } else if (n->data) {
    pln_put_op_attrs(w, n->data, n->results, n->attrs, "");
  } else {
    write_call_attrs(w, n->attrs, order);
  }
}

static bool has_scope_attrs(const pln_graph *g, const pln_node *n) {
  if (n->kind != PLN_FUNCTION && n->kind != PLN_IF)
    return false;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    if (g->scopes[s].attrs)
      return true;
  return false;
}

/* The cache key of a node's attribute text; 0: not cacheable. */
static uint64_t attrs_key(const pln_node *n) {
  enum { OPS = 1 << 20, RESULTS = 1 << 10 };
  uint32_t op = n->kind == PLN_CALL ? n->data : 0;
  uint32_t results = n->kind == PLN_CALL ? n->results : RESULTS;
  if (op >= OPS || (n->kind == PLN_CALL && results >= RESULTS))
    return 0;
  return ((uint64_t)results << 20 | op) << 32 | n->attrs;
}

/* Operators have their own attribute order. */
static pln_attrs attrs_order(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  bool free = n->kind == PLN_FUNCTION || (n->kind == PLN_CALL && n->data == 0);
  return free && n->attrs && g->origins
             ? pln_origins_attr_order(g->origins, g->origin[node])
             : 0;
}

/* Prints attributes once for all nodes with equal ones, unless they refer to
 * the metadata, where TVM numbers each reference. */
static pln_status do_attrs(planner *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  pln_fragments *fragments = &p->plan->naming->attrs;
  pln_attrs order = attrs_order(p->graph, node);
  bool own = has_scope_attrs(p->graph, n) ||
             (n->kind == PLN_IF && (n->attrs || n->results));
  uint64_t key = order || own ? 0 : attrs_key(n);
  uint32_t *fragment = &p->plan->nodes[node].attrs;
  *fragment = key ? pln_fragments_find(fragments, key) : PLN_NONE;
  if (*fragment != PLN_NONE || (n->attrs == 0 && n->data == 0 && !own))
    return PLN_OK;
  pln_writer w;
  size_t from = fragments->text.size;
  pln_writer_init(&w, engine_of(p), 0, pln_buffer_write, &fragments->text);
  w.meta = &p->plan->naming->meta;
  w.naming = p->plan->naming;
  write_attrs(p, &w, n, order);
  PLN_TRY(pln_writer_end(&w));
  PLN_TRY(pln_fragments_add(fragments, from, fragment));
  return key && !w.met ? pln_fragments_store(fragments, key, *fragment)
                       : PLN_OK;
}

const pln_attr *pln_param_device(const pln_graph *g, pln_ref function,
                                 uint32_t param) {
  const pln_attr *a = pln_attrs_find(g->engine, g->nodes[function].attrs,
                                     PLN_PARAM_DEVICES_ATTR);
  if (!a || a->kind != PLN_ATTR_LIST ||
      param >= pln_attrs_count(g->engine, a->v.dict))
    return NULL;
  a = pln_attrs_at(g->engine, a->v.dict, param);
  return a->kind == PLN_ATTR_OBJECT ? a : NULL;
}

/* ------------------------------------------------------------------- names */

/* True if the name becomes a Relay name by TVM's prefix "v" for names that do
 * not begin with a letter. Other unusual names are quoted. */
static bool lacks_letter(pln_slice hint, const char *text, size_t size) {
  bool odd = hint.size == 0 || hint.data[0] == '_' ||
             (hint.data[0] >= '0' && hint.data[0] <= '9');
  return odd && pln_is_identifier((pln_slice){text, size});
}

/* Names a Var node; *fresh: the variable had no name yet. */
static pln_status name_var(planner *p, pln_ref node, bool *fresh) {
  const pln_node *n = &p->graph->nodes[node];
  uint32_t id = pln_idmap_get(p->plan->vars, n->data);
  *fresh = id == 0;
  if (*fresh) {
    pln_slice hint = pln_symbol_text(engine_of(p), n->attrs);
    p->hint.size = 0;
    PLN_TRY(pln_buffer_text(&p->hint, "v"));
    PLN_TRY(pln_buffer_add(&p->hint, hint.data, hint.size));
    if (!lacks_letter(hint, p->hint.data, p->hint.size)) {
      p->hint.size = 0;
      PLN_TRY(pln_buffer_add(&p->hint, hint.data, hint.size));
    }
    PLN_TRY(unique_name(p->plan->naming, &p->hint, &id));
    PLN_TRY(pln_idmap_set(p->plan->vars, n->data, id));
  }
  p->plan->nodes[node].number = id;
  p->plan->nodes[node].state |= PRINTED;
  return PLN_OK;
}

static bool is_arm(const pln_graph *g, pln_scope scope) {
  pln_ref owner = g->scopes[scope].owner;
  return owner != PLN_NONE && g->nodes[owner].kind == PLN_MATCH;
}

static pln_status do_pattern(planner *p, pln_ref pattern) {
  const pln_node *n = &p->graph->nodes[pattern];
  bool fresh;
  if (n->kind == PLN_PATTERN_VAR)
    return name_var(p, pln_operand(p->graph, pattern, 0), &fresh);
  return push_all(p, TASK_PATTERN, n->count, pln_operands(p->graph, n));
}

static pln_status discard_text(void *ud, const char *data, size_t size) {
  (void)ud, (void)data, (void)size;
  return PLN_OK;
}

/* Adds the devices of parameters to the metadata, in order. */
static pln_status number_devices(planner *p, pln_ref function, uint32_t n) {
  pln_writer w;
  pln_writer_init(&w, engine_of(p), 0, discard_text, NULL);
  w.meta = &p->plan->naming->meta;
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *device = pln_param_device(p->graph, function, i);
    if (device)
      pln_put_meta_object(&w, device->v.s);
  }
  return pln_writer_end(&w);
}

static pln_status name_params(planner *p, pln_scope scope) {
  const pln_scope_row *row = &p->graph->scopes[scope];
  bool fresh;
  if (is_arm(p->graph, scope)) {
    pln_ref pattern = pln_arm_pattern(p->graph, scope);
    return pattern == PLN_NONE ? PLN_OK
                               : push_print_task(p, TASK_PATTERN, pattern);
  }
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(name_var(p, pln_param(p->graph, scope, row->owner, i), &fresh));
  pln_ref owner = row->owner;
  if (owner == PLN_NONE || p->graph->nodes[owner].kind != PLN_FUNCTION)
    return PLN_OK;
  PLN_TRY(number_devices(p, owner, row->n_params));
  return do_attrs(p, owner);
}

/* --------------------------------------------------------- type parameters */

pln_slice pln_type_var_name(const pln_naming *naming, pln_type var) {
  uint32_t id = pln_idmap_get(naming->type_names, var);
  size_t size;
  if (id == 0)
    return pln_symbol_text(naming->engine,
                           pln_type_symbol(naming->engine, var));
  const char *name = pln_interned(naming->names, id, &size);
  return (pln_slice){name + 1, size - 1};
}

/* Relay allows a type variable to shadow another, which would be ambiguous when
 * parsed, so the inner one gets a number. A mark separates names of type
 * variables from those of variables. */
static pln_status name_type_var(planner *p, pln_type var) {
  pln_naming *naming = p->plan->naming;
  pln_slice hint =
      pln_symbol_text(naming->engine, pln_type_symbol(naming->engine, var));
  uint32_t id = pln_idmap_get(naming->type_names, var);
  bool added;
  if (id == 0) {
    p->hint.size = 0;
    PLN_TRY(pln_buffer_add(&p->hint, "\n", 1));
    PLN_TRY(pln_buffer_add(&p->hint, hint.data, hint.size));
    PLN_TRY(add_name(naming, p->hint.data, p->hint.size, &id, &added));
    if (pln_idmap_get(naming->bound_types, id) > 0)
      PLN_TRY(unique_name(naming, &p->hint, &id));
    PLN_TRY(pln_idmap_set(naming->type_names, var, id));
  }
  return pln_idmap_set(naming->bound_types, id,
                       pln_idmap_get(naming->bound_types, id) + 1);
}

static pln_status bind_types(planner *p, pln_scope scope) {
  pln_type vars = p->graph->scopes[scope].type_params;
  if (vars == 0)
    return PLN_OK;
  for (uint32_t i = 0; i < pln_type_n_parts(engine_of(p), vars); i++)
    PLN_TRY(name_type_var(p, pln_type_part_at(engine_of(p), vars, i)));
  return push_print_task(p, TASK_UNBIND, vars);
}

static pln_status unbind_types(planner *p, pln_type vars) {
  const pln_naming *naming = p->plan->naming;
  for (uint32_t i = 0; i < pln_type_n_parts(engine_of(p), vars); i++) {
    uint32_t id = pln_idmap_get(naming->type_names,
                                pln_type_part_at(engine_of(p), vars, i));
    PLN_TRY(pln_idmap_set(naming->bound_types, id,
                          pln_idmap_get(naming->bound_types, id) - 1));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- lines */

static void add_line(planner *p, pln_ref node, pln_scope to) {
  pln_text_scope *scope = &p->plan->scopes[to];
  if (scope->last == PLN_NONE)
    scope->first = node;
  else
    p->plan->nodes[scope->last].next = node;
  scope->last = node;
}

/* From now on the node and the nodes in its scopes are printed in scope
 * `to`. */
static void settle_text_scope(planner *p, pln_ref node, pln_scope to) {
  const pln_graph *g = p->graph;
  const pln_node *n = &g->nodes[node];
  p->plan->nodes[node].state |= PRINTED;
  p->plan->nodes[node].node_scope = to;
  if (pln_kinds[n->kind].payload != PLN_PAYLOAD_SCOPE)
    return;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    p->plan->scopes[s].within = to;
}

static void give_line(planner *p, pln_ref node, pln_scope to) {
  settle_text_scope(p, node, to);
  p->plan->nodes[node].number = p->plan->naming->n_temps++;
  add_line(p, node, to);
}

/* The outermost scope around `scope` whose owner is not printed yet. Uses path
 * halving, so that paths stay short. */
static pln_scope outermost(pln_text_scope *scopes, pln_scope scope) {
  while (scopes[scope].within != PLN_NONE) {
    pln_scope up = scopes[scope].within;
    if (scopes[up].within != PLN_NONE)
      scopes[scope].within = scopes[up].within;
    scope = up;
  }
  return scope;
}

/* A node printed in a scope must have its line above the current position. If
 * the scope's owner was visited but waits for its line behind other operands of
 * its user, it gets its line now. (TVM would use the number above the line that
 * binds it.) If the owner is still being visited, the current position is
 * inside it. */
static void put_above(planner *p, pln_ref node) {
  const pln_graph *g = p->graph;
  pln_text_plan *plan = p->plan;
  pln_scope scope = plan->nodes[node].node_scope;
  while (scope != p->scope && scope != PLN_NONE) {
    scope = outermost(plan->scopes, scope);
    pln_ref owner = scope < g->n_scopes ? g->scopes[scope].owner : PLN_NONE;
    if (owner == PLN_NONE || !(plan->nodes[owner].state & VISITED))
      return;
    scope = plan->nodes[owner].node_scope;
    give_line(p, owner, scope);
  }
}

/* A variable found before its binding is free. */
static pln_status print_atom(planner *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  pln_text_node *text = &p->plan->nodes[node];
  bool fresh;
  if (text->state & PRINTED) {
    put_above(p, node);
    return PLN_OK;
  }
  text->state |= PRINTED;
  if (n->kind == PLN_CONSTANT)
    return pln_literal(p->graph->tensors[n->data])
               ? PLN_OK
               : pln_metadata_add(&p->plan->naming->meta,
                                  p->graph->tensors[n->data], &text->number);
  if (n->kind != PLN_VAR)
    return PLN_OK;
  PLN_TRY(name_var(p, node, &fresh));
  if (!fresh)
    return PLN_OK;
  settle_text_scope(p, node, p->scope);
  add_line(p, node, p->scope);
  return PLN_OK;
}

static pln_status do_print(planner *p, pln_ref node, task_kind emit) {
  if (pln_is_atomic_expr(p->graph->nodes[node].kind))
    return print_atom(p, node);
  if (p->plan->nodes[node].state & PRINTED) {
    put_above(p, node);
    return PLN_OK;
  }
  PLN_TRY(push_print_task(p, emit, node));
  return push_print_task(p, TASK_VISIT, node);
}

static void do_emit(planner *p, pln_ref node, bool may_inline) {
  pln_text_node *text = &p->plan->nodes[node];
  if (text->state & PRINTED)
    return;
  if (may_inline && text->uses <= 1)
    settle_text_scope(p, node, p->scope);
  else
    give_line(p, node, p->scope);
}

static pln_status do_visit(planner *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  if (p->plan->nodes[node].state & VISITED)
    return PLN_OK;
  switch ((pln_kind)n->kind) {
  case PLN_CONSTANT: return print_atom(p, node);
  case PLN_VAR:
  case PLN_ABSENT:
  case PLN_GLOBAL_VAR:
  case PLN_OP:
  case PLN_CONSTRUCTOR: return PLN_OK;
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM:
  case PLN_CALL:
    PLN_TRY(push_print_task(p, TASK_ATOM, node));
    return push_all(p, TASK_VISIT, n->count, pln_operands(p->graph, n));
  case PLN_FUNCTION:
  case PLN_LET:
  case PLN_LET_BLOCK:
  case PLN_IF:
  case PLN_MATCH:
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return push_print_task(p, TASK_ATOM, node);
  case PLN_PATTERN_WILDCARD:
  case PLN_PATTERN_VAR:
  case PLN_PATTERN_CONSTRUCTOR:
  case PLN_PATTERN_TUPLE:
  case PLN_CLAUSE: return push_print_task(p, TASK_PATTERN, node);
  default: break;
  }
  return PLN_OK;
}

/* Visits operands, then scopes, of anything but a call. */
static pln_status print_parts(planner *p, const pln_node *n) {
  const pln_graph *g = p->graph;
  uint32_t begin = p->n_tasks;
  if (pln_kinds[n->kind].payload == PLN_PAYLOAD_SCOPE)
    for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
      PLN_TRY(push_print_task(p, TASK_SCOPE, s));
  for (uint32_t i = begin, j = p->n_tasks; i + 1 < j; i++) {
    task last = p->tasks[--j];
    p->tasks[j] = p->tasks[i];
    p->tasks[i] = last;
  }
  if (n->kind == PLN_FUNCTION)
    return PLN_OK;
  return push_all(p, TASK_PRINT, n->count, pln_operands(g, n));
}

static pln_status plan_atom(planner *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  const pln_ref *args = pln_operands(p->graph, n);
  uint32_t count = n->count;
  if (p->plan->nodes[node].state & VISITED)
    return PLN_OK;
  p->plan->nodes[node].node_scope = p->scope;
  PLN_TRY(push_print_task(p, TASK_DONE, node));
  if (n->kind == PLN_IF)
    PLN_TRY(push_print_task(p, TASK_ATTRS, node));
  if (n->kind != PLN_CALL)
    return print_parts(p, n);
  if (n->data == 0 && count > 0) {
    PLN_TRY(push_print_task(p, TASK_PRINT, args[0]));
    args++;
    count--;
  }
  PLN_TRY(push_print_task(p, TASK_ATTRS, node));
  return push_all(p, TASK_PRINT, count, args);
}

/* ------------------------------------------------------------------ scopes */

static pln_status push_body(planner *p, pln_scope scope) {
  pln_ref first = p->plan->scopes[scope].statement;
  PLN_TRY(push_print_task(p, TASK_RESULT, scope));
  return first == PLN_NONE ? PLN_OK : push_print_task(p, TASK_STATEMENT, first);
}

static pln_status do_scope(planner *p, pln_scope scope) {
  PLN_TRY(push_print_task(p, TASK_LEAVE, p->scope));
  p->scope = scope;
  PLN_TRY(bind_types(p, scope));
  PLN_TRY(push_body(p, scope));
  return name_params(p, scope);
}

/* Prints the node inline, unless its declared type needs a line. */
static pln_status push_inline(planner *p, pln_ref node) {
  return push_print_task(
      p, p->plan->nodes[node].declared ? TASK_PRINT : TASK_INLINE, node);
}

static pln_status do_statement(planner *p, pln_ref node) {
  pln_ref next = p->plan->statements[node];
  bool fresh;
  if (next != PLN_NONE)
    PLN_TRY(push_print_task(p, TASK_STATEMENT, next));
  if (p->graph->nodes[node].kind == PLN_CONSTANT)
    PLN_TRY(push_print_task(p, TASK_LINE, node));
  if (p->graph->nodes[node].kind != PLN_LET)
    return push_print_task(p, TASK_PRINT, node);
  pln_ref var = pln_operand(p->graph, node, 0);
  PLN_TRY(name_var(p, var, &fresh));
  PLN_TRY(push_print_task(p, TASK_LINE, node));
  return push_inline(p, pln_operand(p->graph, node, 1));
}

/* Lets in tail position continue the scope that they end. */
static pln_status do_result(planner *p, pln_scope scope) {
  pln_ref result = p->graph->scopes[scope].result;
  pln_text_node *text = &p->plan->nodes[result];
  const pln_node *n = &p->graph->nodes[result];
  if (n->kind == PLN_LET_BLOCK && text->uses <= 1 && !text->kept &&
      !(text->state & PRINTED)) {
    text->state |= PRINTED | VISITED;
    return push_body(p, n->data);
  }
  p->plan->scopes[p->scope].result = result;
  return push_inline(p, result);
}

static pln_status do_plan_task(planner *p, task t) {
  switch ((task_kind)t.kind) {
  case TASK_PRINT: return do_print(p, t.id, TASK_EMIT);
  case TASK_INLINE: return do_print(p, t.id, TASK_EMIT_INLINE);
  case TASK_EMIT: do_emit(p, t.id, false); return PLN_OK;
  case TASK_EMIT_INLINE: do_emit(p, t.id, true); return PLN_OK;
  case TASK_VISIT: return do_visit(p, t.id);
  case TASK_ATOM: return plan_atom(p, t.id);
  case TASK_ATTRS: return do_attrs(p, t.id);
  case TASK_DONE: p->plan->nodes[t.id].state |= VISITED; return PLN_OK;
  case TASK_SCOPE: return do_scope(p, t.id);
  case TASK_STATEMENT: return do_statement(p, t.id);
  case TASK_LINE: add_line(p, t.id, p->scope); return PLN_OK;
  case TASK_RESULT: return do_result(p, t.id);
  case TASK_PATTERN: return do_pattern(p, t.id);
  case TASK_UNBIND: return unbind_types(p, t.id);
  case TASK_LEAVE: p->scope = t.id; return PLN_OK;
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ making */

static pln_status start_text_plan(pln_text_plan *plan, pln_engine *engine) {
  uint32_t n = plan->graph->n_nodes, scopes = plan->graph->n_scopes + 1;
  plan->nodes = pln_mem_zeroed(engine, n * sizeof *plan->nodes);
  plan->statements = pln_mem_new(engine, n * sizeof *plan->statements);
  plan->scopes = pln_mem_new(engine, scopes * sizeof *plan->scopes);
  if ((n > 0 && (!plan->nodes || !plan->statements)) || !plan->scopes)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < n; i++) {
    plan->nodes[i].number = plan->nodes[i].next = PLN_NONE;
    plan->nodes[i].attrs = plan->nodes[i].node_scope = PLN_NONE;
    plan->statements[i] = PLN_NONE;
  }
  for (uint32_t i = 0; i < scopes; i++)
    plan->scopes[i] =
        (pln_text_scope){PLN_NONE, PLN_NONE, PLN_NONE, PLN_NONE, PLN_NONE};
  return pln_idmap_new(engine, &plan->vars);
}

static pln_status find_declared(pln_text_plan *plan) {
  const pln_graph *g = plan->graph;
  if (!g->origins || !g->origins->declares)
    return PLN_OK;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    PLN_TRY(pln_text_needs_type(g, i, &plan->nodes[i].declared));
  return PLN_OK;
}

static pln_status run_plan_tasks(planner *p, pln_ref root, bool definition) {
  pln_text_plan *plan = p->plan;
  PLN_TRY(mark(p, root));
  plan->scopes[p->scope].result = root;
  if (definition)
    PLN_TRY(push_print_task(p, TASK_SCOPE, p->graph->nodes[root].data));
  else if (p->graph->nodes[root].kind == PLN_LET_BLOCK)
    PLN_TRY(push_body(p, p->graph->nodes[root].data));
  else
    PLN_TRY(push_inline(p, root));
  while (p->n_tasks > 0)
    PLN_TRY(do_plan_task(p, p->tasks[--p->n_tasks]));
  return PLN_OK;
}

pln_status pln_text_plan_make(pln_text_plan *plan, pln_naming *naming,
                              const pln_graph *graph, pln_ref root,
                              bool definition) {
  *plan = (pln_text_plan){.graph = graph, .naming = naming};
  PLN_TRY(start_text_plan(plan, naming->engine));
  PLN_TRY(find_declared(plan));
  PLN_TRY(find_statements(plan));
  planner p = {.plan = plan, .graph = graph, .scope = graph->n_scopes};
  pln_buffer_init(&p.hint, naming->engine);
  pln_status status = run_plan_tasks(&p, root, definition);
  pln_buffer_free(&p.hint);
  pln_mem_free(naming->engine, p.tasks, p.cap_tasks * sizeof *p.tasks);
  return status;
}

void pln_text_plan_free(pln_text_plan *plan) {
  pln_engine *engine = plan->naming->engine;
  const pln_graph *g = plan->graph;
  pln_mem_free(engine, plan->nodes, g->n_nodes * sizeof *plan->nodes);
  pln_mem_free(engine, plan->statements, g->n_nodes * sizeof *plan->statements);
  pln_mem_free(engine, plan->scopes, (g->n_scopes + 1u) * sizeof *plan->scopes);
  if (plan->vars)
    pln_idmap_free(plan->vars);
}
