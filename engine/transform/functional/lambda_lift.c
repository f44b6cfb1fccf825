/* lambda_lift.c: LambdaLift: moves nested functions to the top level of the
 * module.
 *
 * Run by the executor, once per module. Requires verified graphs. A function
 * without captures is replaced by its global name. A function with captures
 * becomes the result of a new global function with the attribute Closure, whose
 * parameters are the captures; a call of that replaces it. A function bound by
 * a let that uses its own variable refers to itself by its global name.
 * Constants and names are copied, not passed. Equal functions are lifted once.
 * Primitive functions and arguments of operators stay.
 *
 *     def @main(%x) { let %f = fn (%y) { add(%x, %y) }; %f(%x) }   =>
 *     def @lifted_name0(%x, Closure=1) { fn (%y) { add(%x, %y) } }
 *     def @main(%x) { let %f = @lifted_name0(%x); %f(%x) }
 *
 * Semantics: TVM LambdaLift. Values are captured as well as variables; names
 * are numbered in order. */

#include <stdio.h>

#include "transform/functional/captures.h"
#include "transform/functional/inliner.h"
#include "transform/transform.h"

typedef struct lifter {
  pln_engine *engine;
  pln_module *module; /* the new module, to which functions are added */
  pln_captures captures;
  pln_symbol *name;   /* by lifted function: its name */
  uint8_t *wraps;     /* by lifted function: it has captures */
  pln_idmap *by_hash; /* hash of a lifted function -> its row + 1 */
  uint32_t numbered;
  int64_t lifted;
} lifter;

/* Returns true for nodes that the lifted function can contain itself. */
static bool is_copied(const pln_node *n) {
  switch ((pln_kind)n->kind) {
  case PLN_CONSTANT:
  case PLN_GLOBAL_VAR:
  case PLN_OP:
  case PLN_CONSTRUCTOR:
  case PLN_ABSENT: return true;
  default: return false;
  }
}

static pln_status new_name(lifter *l, pln_symbol *out) {
  char text[32];
  do {
    int size = snprintf(text, sizeof text, "lifted_name%u", l->numbered++);
    PLN_TRY(pln_symbol_intern(l->engine, (pln_slice){text, (size_t)size}, out));
  } while (pln_module_find(l->module, *out) != PLN_NONE);
  return PLN_OK;
}

/* Finds an equal function that was lifted before. */
static pln_status find_equal(lifter *l, const pln_graph *g, uint64_t hash,
                             pln_symbol *name) {
  uint32_t row = pln_idmap_get(l->by_hash, hash);
  bool equal = false;
  if (!row)
    return PLN_OK;
  const pln_graph *other = pln_module_function_at(l->module, row - 1);
  PLN_TRY(pln_graph_equal(g, g->root, other, other->root, false, &equal));
  if (equal)
    *name = pln_module_name_at(l->module, row - 1);
  return PLN_OK;
}

/* --------------------------------------------------------------- type params
 */

/* Collects type variables in order of appearance; an explicit stack walks
 * nested types. */
typedef struct collection {
  pln_engine *engine;
  pln_type *vars, *stack;
  uint32_t n, cap_vars, top, cap_stack;
} collection;

static pln_status append_unique_type(collection *c, pln_type **list,
                                     uint32_t *n, uint32_t *cap,
                                     pln_type type) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)list, cap, (size_t)*n + 1,
                       sizeof **list));
  (*list)[(*n)++] = type;
  return PLN_OK;
}

static bool is_listed(const collection *c, pln_type var) {
  for (uint32_t i = 0; i < c->n; i++)
    if (c->vars[i] == var)
      return true;
  return false;
}

static pln_status collect(collection *c, pln_type type) {
  PLN_TRY(append_unique_type(c, &c->stack, &c->top, &c->cap_stack, type));
  while (c->top > 0) {
    type = c->stack[--c->top];
    if (pln_type_get_kind(c->engine, type) == PLN_TYPE_VAR &&
        !is_listed(c, type))
      PLN_TRY(append_unique_type(c, &c->vars, &c->n, &c->cap_vars, type));
    for (uint32_t i = pln_type_n_parts(c->engine, type); i-- > 0;)
      PLN_TRY(append_unique_type(c, &c->stack, &c->top, &c->cap_stack,
                                 pln_type_part_at(c->engine, type, i)));
  }
  return PLN_OK;
}

/* Visits the types of the parameters, the captures and the result. */
static pln_status collect_all(lifter *l, const pln_clone_source *from,
                              pln_ref function, collection *c) {
  const pln_graph *g = from->graph;
  pln_type type = g->nodes[function].type;
  uint32_t parts = pln_type_n_parts(l->engine, type);
  for (uint32_t i = 0; i + 1 < parts; i++)
    PLN_TRY(collect(c, pln_type_part_at(l->engine, type, i)));
  for (uint32_t i = l->captures.head[function]; i != PLN_NONE;
       i = l->captures.list[i].next) {
    const pln_node *n = &g->nodes[l->captures.list[i].node];
    if (!is_copied(n))
      PLN_TRY(collect(c, n->type));
  }
  return parts ? collect(c, pln_type_part_at(l->engine, type, parts - 1))
               : PLN_OK;
}

/* Collects the type variables of a generic outer function that the lifted
 * function uses; *first is their start in the list. */
static pln_status free_type_vars(lifter *l, const pln_clone_source *from,
                                 pln_ref function, collection *c,
                                 uint32_t *first) {
  const pln_graph *g = from->graph;
  pln_type own = g->scopes[g->nodes[function].data].type_params;
  *first = 0;
  if (!g->scopes[g->nodes[g->root].data].type_params)
    return PLN_OK;
  if (own)
    PLN_TRY(collect(c, own));
  *first = c->n;
  return collect_all(l, from, function, c);
}

static void release(lifter *l, collection *c) {
  pln_mem_free(l->engine, c->vars, c->cap_vars * sizeof *c->vars);
  pln_mem_free(l->engine, c->stack, c->cap_stack * sizeof *c->stack);
}

static pln_status make_generic(lifter *l, const pln_clone_source *from,
                               pln_ref function, pln_builder *b, pln_ref made) {
  collection c = {.engine = l->engine};
  uint32_t first;
  pln_status status = free_type_vars(l, from, function, &c, &first);
  if (status == PLN_OK && c.n > first)
    status = pln_build_generic(b, made, c.n - first, c.vars + first);
  release(l, &c);
  return status;
}

/* ------------------------------------------------------------------ captures
 */

static pln_clone_action
choose_lift_action(void *ud, const pln_clone_source *from, pln_ref function) {
  const lifter *l = ud;
  (void)from;
  return l->captures.lifts[function] ? PLN_CLONE_LIFT : PLN_CLONE_KEEP;
}

static bool captures(const lifter *l, const pln_graph *g, pln_ref function) {
  for (uint32_t i = l->captures.head[function]; i != PLN_NONE;
       i = l->captures.list[i].next)
    if (!is_copied(&g->nodes[l->captures.list[i].node]))
      return true;
  return false;
}

/* The type of the global function that makes the closure: from the captures'
 * types to that of `function`. */
static pln_status find_closure_type(lifter *l, const pln_clone_source *from,
                                    pln_ref function, collection *c,
                                    pln_type *out) {
  const pln_graph *g = from->graph;
  uint32_t first;
  PLN_TRY(free_type_vars(l, from, function, c, &first));
  for (uint32_t i = l->captures.head[function]; i != PLN_NONE;
       i = l->captures.list[i].next) {
    const pln_node *n = &g->nodes[l->captures.list[i].node];
    if (!is_copied(n))
      PLN_TRY(
          append_unique_type(c, &c->stack, &c->top, &c->cap_stack, n->type));
  }
  return pln_type_func(l->engine, c->top, c->stack, g->nodes[function].type,
                       c->n - first, c->n > first ? c->vars + first : NULL, 0,
                       NULL, out);
}

static pln_status closure_type(lifter *l, const pln_clone_source *from,
                               pln_ref function, pln_type *out) {
  collection c = {.engine = l->engine};
  pln_status status = find_closure_type(l, from, function, &c, out);
  release(l, &c);
  return status;
}

/* A function needs a closure if it captures a value or a type variable. */
static pln_status find_if_closure(lifter *l, const pln_clone_source *from,
                                  pln_ref function) {
  collection c = {.engine = l->engine};
  uint32_t first;
  pln_status status = free_type_vars(l, from, function, &c, &first);
  l->wraps[function] = captures(l, from->graph, function) || c.n > first;
  release(l, &c);
  return status;
}

static pln_status add_param(pln_clone_run *clone, pln_clone_source *from,
                            pln_ref node, pln_ref *out) {
  const pln_node *n = &from->graph->nodes[node];
  pln_symbol name = n->kind == PLN_VAR ? n->attrs : 0;
  if (!name)
    PLN_TRY(pln_symbol_intern(clone->engine, pln_text("x"), &name));
  PLN_TRY(pln_clone_set_origin(clone, from, node));
  return pln_build_param(clone->b, name, n->type, 0, out);
}

/* Copied nodes and the function's own name are made when they are first
 * used. */
static pln_status lift(void *ud, pln_clone_run *clone, pln_clone_source *from,
                       pln_ref function) {
  lifter *l = ud;
  const pln_captures *c = &l->captures;
  pln_scope scope;
  PLN_TRY(new_name(l, &l->name[function]));
  PLN_TRY(find_if_closure(l, from, function));
  if (l->wraps[function])
    PLN_TRY(pln_build_open(clone->b, &scope));
  for (uint32_t i = c->head[function]; i != PLN_NONE; i = c->list[i].next) {
    pln_ref node = c->list[i].node, image = PLN_NONE;
    if (!is_copied(&from->graph->nodes[node]))
      PLN_TRY(add_param(clone, from, node, &image));
    PLN_TRY(pln_clone_set_image(clone, from, node, image));
  }
  if (c->self[function] == PLN_NONE)
    return PLN_OK;
  return pln_clone_set_image(clone, from, c->self[function], PLN_NONE);
}

/* Builds a reference to the lifted function: its name, or the call that makes
 * its closure. */
static pln_status refer(lifter *l, pln_clone_run *clone, pln_clone_source *from,
                        pln_ref function, pln_type type, pln_ref *out) {
  const pln_captures *c = &l->captures;
  pln_builder *b = clone->b;
  pln_ref name;
  uint32_t n = 0, capacity = 0;
  pln_ref *args = NULL;
  PLN_TRY(pln_clone_set_origin(clone, from, function));
  PLN_TRY(pln_build_global_var(b, l->name[function], type, &name));
  *out = name;
  b->graph->nodes[name].flags = 0; /* making a closure has no effect */
  if (!l->wraps[function]) {
    b->graph->nodes[name].flags =
        from->graph->nodes[function].flags & PLN_NODE_CALL_EFFECT;
    return PLN_OK;
  }
  pln_status status = PLN_OK;
  for (uint32_t i = c->head[function]; i != PLN_NONE && status == PLN_OK;
       i = c->list[i].next) {
    if (is_copied(&from->graph->nodes[c->list[i].node]))
      continue;
    status = pln_mem_grow(l->engine, (void **)&args, &capacity, n + (size_t)1,
                          sizeof *args);
    if (status == PLN_OK)
      status = pln_clone_image(clone, from, c->list[i].node, &args[n++]);
  }
  if (status == PLN_OK)
    status = pln_build_apply(b, name, 0, 0, n, args, out);
  pln_mem_free(l->engine, args, capacity * sizeof *args);
  if (status == PLN_OK)
    b->graph->nodes[*out].type = from->graph->nodes[function].type;
  return status;
}

/* Builds what has no image: a name or constant that is copied, or a reference
 * of the lifted function to itself. */
static pln_status missing(void *ud, pln_clone_run *clone,
                          pln_clone_source *from, pln_ref node, pln_ref *out) {
  lifter *l = ud;
  pln_ref function = l->captures.binder[node];
  bool again = function != PLN_NONE;
  if (!again && !is_copied(&from->graph->nodes[node]))
    return PLN_OK;
  bool wrapped = again && l->wraps[function];
  pln_type type = again ? from->graph->nodes[function].type : 0;
  if (wrapped)
    PLN_TRY(closure_type(l, from, function, &type));
  PLN_TRY(pln_build_in(clone->b, clone->b->open[wrapped ? 2 : 1]));
  PLN_TRY(again ? refer(l, clone, from, function, type, out)
                : pln_clone_node(clone, from, node, out));
  from->map[node] = *out;
  return pln_build_in(clone->b, PLN_NONE);
}

/* ------------------------------------------------------------------- lifting
 */

/* Builds fn (captures, Closure=1) { the function }. */
static pln_status wrap(lifter *l, pln_builder *b, pln_ref made, pln_ref *out) {
  pln_origins *origins = pln_builder_origins(b);
  if (!origins)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_origins_step(origins, 0, b->graph->origin[made], &b->origin));
  pln_attr mark = {.kind = PLN_ATTR_INT, .v.i = 1};
  pln_attrs attrs;
  pln_scope scope = b->open[1];
  PLN_TRY(pln_symbol_intern(l->engine, pln_text("Closure"), &mark.name));
  PLN_TRY(pln_attrs_make(l->engine, 1, &mark, &attrs));
  PLN_TRY(pln_build_end(b, scope, made, 0));
  return pln_build_function(b, scope, attrs, 0, out);
}

static pln_status add_function(lifter *l, const pln_graph *g,
                               pln_symbol *name) {
  uint64_t hash;
  pln_symbol own = *name;
  PLN_TRY(pln_graph_hash(g, g->root, false, &hash));
  PLN_TRY(find_equal(l, g, hash, name));
  l->lifted++;
  if (*name != own)
    return PLN_OK;
  PLN_TRY(pln_module_set(l->module, own, g));
  return pln_idmap_set(l->by_hash, hash, pln_module_count(l->module));
}

static pln_status lifted(void *ud, pln_clone_run *clone, pln_clone_source *from,
                         pln_ref function, pln_builder *inner, pln_ref made,
                         pln_ref *out) {
  lifter *l = ud;
  pln_ref root = made;
  pln_graph *g;
  if (l->wraps[function]) {
    PLN_TRY(wrap(l, inner, made, &root));
    PLN_TRY(make_generic(l, from, function, inner, root));
  }
  PLN_TRY(pln_builder_seal(inner, root, &g));
  pln_type type = g->nodes[g->root].type;
  pln_status status = add_function(l, g, &l->name[function]);
  pln_graph_release(g);
  PLN_TRY(status);
  return refer(l, clone, from, function, type, out);
}

/* ---------------------------------------------------------------------- pass
 */

static pln_status lift_function_body(lifter *l, const pln_graph *old,
                                     pln_graph **out) {
  pln_clone_callbacks callbacks = {.ud = l,
                                   .function = choose_lift_action,
                                   .lift = lift,
                                   .lifted = lifted,
                                   .missing = missing};
  pln_clone_source from;
  l->name = pln_mem_zeroed(l->engine, old->n_nodes * sizeof *l->name);
  l->wraps = pln_mem_zeroed(l->engine, old->n_nodes);
  pln_status status = pln_clone_source_new(old, &from);
  if (status == PLN_OK && !(l->name && l->wraps))
    status = pln_nomem(l->engine);
  if (status == PLN_OK)
    status = pln_clone_graph(l->engine, &callbacks, l->module, &from, out);
  pln_clone_source_free(&from);
  pln_mem_free(l->engine, l->name, old->n_nodes * sizeof *l->name);
  pln_mem_free(l->engine, l->wraps, old->n_nodes);
  return status;
}

static bool has_lifts(const pln_captures *c) {
  for (pln_ref ref = 0; ref < c->graph->n_nodes; ref++)
    if (c->lifts[ref])
      return true;
  return false;
}

static pln_status lift_from(lifter *l, pln_symbol name, const pln_graph *old) {
  pln_graph *changed = NULL;
  bool lifts = false;
  pln_status status = pln_captures_find(old, &l->captures);
  if (status == PLN_OK && has_lifts(&l->captures))
    status = pln_rule_apply(l->engine, "lift", old->root, &lifts);
  if (status == PLN_OK && lifts)
    status = lift_function_body(l, old, &changed);
  pln_captures_free(&l->captures);
  if (status == PLN_OK && changed)
    status = pln_module_set(l->module, name, changed);
  pln_graph_release(changed);
  return status;
}

static pln_status lift_all(lifter *l, const pln_module *module) {
  PLN_TRY(pln_idmap_new(l->engine, &l->by_hash));
  for (uint32_t i = 0; i < pln_module_count(module); i++) {
    const pln_graph *g = pln_module_function_at(module, i);
    if (pln_pass_applies(g) && g->nodes[g->root].kind == PLN_FUNCTION)
      PLN_TRY(lift_from(l, pln_module_name_at(module, i), g));
  }
  return PLN_OK;
}

pln_status pln_pass_lambda_lift(pln_pass_run *run) {
  lifter l = {.engine = pln_run_engine(run)};
  PLN_TRY(pln_module_copy(run->module, &l.module));
  pln_status status = lift_all(&l, run->module);
  pln_idmap_free(l.by_hash);
  if (status == PLN_OK && l.lifted) {
    pln_run_set_module(run, l.module);
    return pln_run_count(run, "lifted", l.lifted);
  }
  pln_module_release(l.module);
  return status;
}
