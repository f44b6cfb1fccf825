/* defunctionalization.c: Defunctionalization: higher-order functions to first
 * order.
 *
 * Run by the executor, once per module. Requires verified graphs. @main is
 * rewritten, and what it reaches through calls with functions as arguments or
 * results. Function types become data types (closure_types.c); a function that
 * is used as a value becomes a constructor of what it captures, and a call of a
 * value a call of that type's `apply`. A function of the module with functions
 * in its parameters or result is copied for each list of type arguments. Calls
 * of function literals are replaced by their bodies. Functions that have
 * nothing to do with functions stay as they are.
 *
 *     def @twice(%f: fn (int32) -> int32, %x: int32) { %f(%f(%x)) }
 *     def @main(%n: int32) { @twice(fn (%y: int32) { add(%y, %n) }, 1) }   =>
 *     type DefuncFuncType { Defunc(int32) }
 *     def @applyFuncType(%x: DefuncFuncType[], %y: int32) {
 *       match (%x) { Defunc(%c) => { add(%y, %c) } }
 *     }
 *     def @twiceFuncType(%f: DefuncFuncType[], %x: int32) {
 *       @applyFuncType(%f, @applyFuncType(%f, %x))
 *     }
 *     def @main(%n: int32) { @twiceFuncType(Defunc(%n), 1) }
 *
 * @main must have no type parameters, and no functions in its parameters or its
 * result. Nothing recurses: functions to be made are instances in a queue.
 *
 * Semantics: TVM Defunctionalization, extended to functions that are bound by
 * lets, returned, or held in tuples, references and data. */

#include "transform/functional/defunctionalization.h"

#include "ir/graph/module.h"
#include "ir/infer/type_args.h"
#include "transform/functional/inliner.h"
#include "transform/functional/let.h"
#include "transform/transform.h"

/* A function that calls itself with ever larger types has no end of
 * instances. */
enum { MOST_INSTANCES = 4096 };

/* -------------------------------------------------------------------- types
 */

pln_status pln_defunc_substitute(const pln_defunc *d, pln_type bound,
                                 pln_type type, pln_type *out) {
  uint32_t n;
  const pln_type *parts = pln_type_all_parts(d->engine, bound, &n);
  return pln_type_substitute(d->engine, type, n / 2, parts,
                             n ? parts + n / 2 : parts, out);
}

pln_status pln_defunc_extend(const pln_defunc *d, pln_type bound, pln_type vars,
                             const pln_type *types, pln_type *out) {
  uint32_t n = pln_type_n_parts(d->engine, bound) / 2;
  uint32_t k = pln_type_n_parts(d->engine, vars), all = n + k;
  size_t size = (2 * (size_t)all + 1) * sizeof(pln_type);
  pln_type *list = pln_mem_new(d->engine, size);
  if (!list)
    return pln_nomem(d->engine);
  for (uint32_t i = 0; i < n; i++) {
    list[i] = pln_type_part_at(d->engine, bound, i);
    list[all + i] = pln_type_part_at(d->engine, bound, n + i);
  }
  for (uint32_t i = 0; i < k; i++) {
    list[n + i] = pln_type_part_at(d->engine, vars, i);
    list[all + n + i] = types[i];
  }
  pln_status status =
      pln_type_make(d->engine, PLN_TYPE_TUPLE, 0, 2 * all, list, out);
  pln_mem_free(d->engine, list, size);
  return status;
}

static pln_status unknown_types(const pln_defunc *d) {
  return pln_diag_error(d->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "Defunctionalization: the type arguments of a "
                        "polymorphic function are not known");
}

static pln_status find_type_args(const pln_defunc *d, pln_unifier *u,
                                 pln_type function, pln_type type,
                                 pln_type *args) {
  pln_type plain;
  bool fits;
  PLN_TRY(pln_instantiate(u, function, NULL, args, &plain));
  PLN_TRY(pln_unify(u, plain, type, &fits));
  if (!fits)
    return unknown_types(d);
  for (uint32_t i = 0; i < pln_type_n_vars(d->engine, function); i++)
    PLN_TRY(pln_unifier_resolve(u, args[i], &args[i], NULL));
  return PLN_OK;
}

pln_status pln_defunc_match(const pln_defunc *d, pln_type function,
                            pln_type type, pln_type *out) {
  uint32_t n = pln_type_n_vars(d->engine, function);
  size_t size = (n + (size_t)1) * sizeof(pln_type);
  pln_type *args = pln_mem_new(d->engine, size);
  if (!args)
    return pln_nomem(d->engine);
  pln_unifier u;
  pln_unifier_init(&u, d->engine);
  pln_status status = find_type_args(d, &u, function, type, args);
  pln_unifier_free(&u);
  if (status == PLN_OK)
    status = pln_type_make(d->engine, PLN_TYPE_TUPLE, 0, n, args, out);
  pln_mem_free(d->engine, args, size);
  return status;
}

/* ------------------------------------------------------------------ sources
 */

bool pln_defunc_is_copied(const pln_node *n) {
  return n->kind == PLN_CONSTANT || n->kind == PLN_GLOBAL_VAR ||
         n->kind == PLN_OP || n->kind == PLN_CONSTRUCTOR ||
         n->kind == PLN_ABSENT;
}

pln_status pln_defunc_source_of(pln_defunc *d, uint32_t function,
                                pln_defunc_source **out) {
  pln_defunc_source *s = &d->sources[function];
  const pln_graph *g = pln_module_function_at(d->module, function);
  size_t n = g->n_nodes, k = g->n_scopes;
  *out = s;
  if (s->graph)
    return PLN_OK;
  s->graph = g;
  s->of_operator = pln_mem_zeroed(d->engine, n);
  s->bound = pln_mem_zeroed(d->engine, n);
  s->map = pln_mem_new(d->engine, n * sizeof *s->map);
  s->instance = pln_mem_zeroed(d->engine, n * sizeof *s->instance);
  s->scopes = pln_mem_new(d->engine, k * sizeof *s->scopes);
  s->owner = pln_mem_new(d->engine, n * sizeof *s->owner);
  if (!s->of_operator || !s->bound || !s->map || !s->instance || !s->scopes ||
      !s->owner)
    return pln_nomem(d->engine);
  pln_let_operator_functions(g, s->of_operator);
  for (pln_ref ref = 0; ref < n; ref++)
    if (g->nodes[ref].kind == PLN_LET)
      s->bound[pln_operand(g, ref, 0)] = 1;
  return pln_captures_find(g, &s->captures);
}

static void free_source(pln_engine *e, pln_defunc_source *s) {
  if (!s->graph)
    return;
  size_t n = s->graph->n_nodes;
  pln_mem_free(e, s->of_operator, n);
  pln_mem_free(e, s->bound, n);
  pln_mem_free(e, s->map, n * sizeof *s->map);
  pln_mem_free(e, s->instance, n * sizeof *s->instance);
  pln_mem_free(e, s->scopes, s->graph->n_scopes * sizeof *s->scopes);
  pln_mem_free(e, s->owner, n * sizeof *s->owner);
  if (s->captures.graph)
    pln_captures_free(&s->captures);
}

/* ---------------------------------------------------------------- instances
 */

static uint32_t find_instance(const pln_defunc *d, uint64_t key,
                              pln_type bound) {
  uint32_t i = pln_idmap_get(d->by_node, key) - 1;
  while (i != PLN_NONE && d->instances[i].bound != bound)
    i = d->instances[i].next;
  return i;
}

static pln_status add_instance(pln_defunc *d, pln_defunc_instance in,
                               uint32_t *out) {
  uint64_t key = (uint64_t)in.function << 32 | in.node;
  if (d->n_instances >= MOST_INSTANCES)
    return pln_diag_error(d->engine, PLN_ERR_LIMIT, NULL,
                          "Defunctionalization: more than %u functions would "
                          "be made",
                          (unsigned)MOST_INSTANCES);
  in.next = pln_idmap_get(d->by_node, key) - 1;
  PLN_TRY(pln_mem_grow(d->engine, (void **)&d->instances, &d->cap_instances,
                       (size_t)d->n_instances + 1, sizeof *d->instances));
  *out = d->n_instances;
  d->instances[d->n_instances++] = in;
  return pln_idmap_set(d->by_node, key, d->n_instances);
}

/* The function type of a root or literal, its type parameters bound. */
static pln_status plain_type(const pln_defunc *d, pln_type function,
                             pln_type bound, pln_type *out) {
  PLN_TRY(pln_type_generic(d->engine, function, 0, out));
  PLN_TRY(pln_defunc_substitute(d, bound, *out, out));
  return pln_type_flags(d->engine, *out) & PLN_TYPE_HAS_HOLE ? unknown_types(d)
                                                             : PLN_OK;
}

pln_status pln_defunc_specialize(pln_defunc *d, uint32_t function,
                                 pln_type args, uint32_t *out) {
  const pln_graph *g = pln_module_function_at(d->module, function);
  pln_type vars = g->scopes[g->nodes[g->root].data].type_params;
  pln_defunc_instance in = {
      .function = function, .node = g->root, .closure = PLN_NONE};
  uint32_t n;
  PLN_TRY(pln_type_make(d->engine, PLN_TYPE_TUPLE, 0, 0, NULL, &in.bound));
  if (vars && args)
    PLN_TRY(pln_defunc_extend(
        d, in.bound, vars, pln_type_all_parts(d->engine, args, &n), &in.bound));
  *out = find_instance(d, (uint64_t)function << 32 | in.node, in.bound);
  if (*out != PLN_NONE)
    return PLN_OK;
  pln_type type;
  PLN_TRY(plain_type(d, g->nodes[g->root].type, in.bound, &type));
  PLN_TRY(pln_closure_convert_parts(&d->closures, type, &in.type));
  pln_slice name =
      pln_symbol_text(d->engine, pln_module_name_at(d->module, function));
  PLN_TRY(pln_closure_name(&d->closures, name, "FuncType", &in.name));
  return add_instance(d, in, out);
}

/* ----------------------------------------------------------------- closures
 */

/* The types of the captures of a literal, converted; `types` has room. */
static pln_status capture_types(pln_defunc *d, const pln_defunc_source *s,
                                pln_ref node, pln_type bound, pln_type *types,
                                uint32_t *n) {
  *n = 0;
  for (uint32_t i = s->captures.head[node]; i != PLN_NONE;
       i = s->captures.list[i].next) {
    const pln_node *c = &s->graph->nodes[s->captures.list[i].node];
    if (pln_defunc_is_copied(c))
      continue;
    PLN_TRY(pln_defunc_substitute(d, bound, c->type, &types[*n]));
    PLN_TRY(pln_closure_convert(&d->closures, types[*n], &types[*n]));
    ++*n;
  }
  return PLN_OK;
}

/* `types`: those of the captures, with room for the parameters and the result
 * behind them. */
static pln_status make_literal(pln_defunc *d, pln_defunc_instance in,
                               pln_type type, uint32_t n, pln_type *types,
                               uint32_t *closure) {
  uint32_t owner, instance, k;
  pln_type plain;
  PLN_TRY(pln_closure_type_find(&d->closures, type, &owner));
  PLN_TRY(pln_closure_add(&d->closures, owner, n, types, closure));
  PLN_TRY(pln_closure_convert_parts(&d->closures, type, &plain));
  const pln_type *parts = pln_type_all_parts(d->engine, plain, &k);
  memcpy(types + n, parts, k * sizeof *types);
  PLN_TRY(pln_type_func(d->engine, n + k - 1, types, types[n + k - 1], 0, NULL,
                        0, NULL, &in.type));
  pln_closure *c = &d->closures.closures[*closure];
  in.name = c->constructor;
  in.closure = *closure;
  c->kind = PLN_GLOBAL_VAR;
  c->data = in.name;
  c->called = in.type;
  return add_instance(d, in, &instance);
}

static uint32_t count_captures(const pln_defunc_source *s, pln_ref node) {
  uint32_t n = 0;
  for (uint32_t i = s->captures.head[node]; i != PLN_NONE;
       i = s->captures.list[i].next)
    n++;
  return n;
}

pln_status pln_defunc_literal(pln_defunc *d, uint32_t function, pln_ref node,
                              pln_type bound, pln_type type,
                              uint32_t *closure) {
  pln_defunc_source *s;
  PLN_TRY(pln_defunc_source_of(d, function, &s));
  uint64_t key = (uint64_t)function << 32 | node;
  uint32_t found = find_instance(d, key, bound), n;
  if (found != PLN_NONE) {
    *closure = d->instances[found].closure;
    return PLN_OK;
  }
  size_t room =
      count_captures(s, node) + (size_t)pln_type_n_parts(d->engine, type);
  pln_type *types = pln_mem_new(d->engine, room * sizeof *types);
  if (!types)
    return pln_nomem(d->engine);
  pln_defunc_instance in = {.function = function, .node = node, .bound = bound};
  pln_status status = capture_types(d, s, node, bound, types, &n);
  if (status == PLN_OK)
    status = make_literal(d, in, type, n, types, closure);
  pln_mem_free(d->engine, types, room * sizeof *types);
  return status;
}

static pln_status no_body(const pln_defunc *d, pln_symbol name) {
  pln_slice text = pln_symbol_text(d->engine, name);
  return pln_diag_error(d->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "Defunctionalization: @%.*s has functions in its "
                        "signature, and no body to be rewritten",
                        (int)text.size, text.data);
}

/* What the arm of a GlobalVar calls: the function, or its instance. */
static pln_status choose_callee(pln_defunc *d, pln_type generic, pln_type type,
                                pln_closure *c) {
  bool higher;
  uint32_t i = pln_module_find(d->module, c->data), instance;
  pln_type plain, args = 0;
  PLN_TRY(pln_type_generic(d->engine, type, 0, &plain));
  PLN_TRY(pln_closure_convert_parts(&d->closures, plain, &c->called));
  higher = c->called != plain;
  c->called = generic;
  if (!higher)
    return PLN_OK;
  if (i == PLN_NONE || !pln_pass_applies(pln_module_function_at(d->module, i)))
    return no_body(d, c->data);
  if (pln_type_n_vars(d->engine, generic))
    PLN_TRY(pln_defunc_match(d, generic, type, &args));
  PLN_TRY(pln_defunc_specialize(d, i, args, &instance));
  c->data = d->instances[instance].name;
  c->called = d->instances[instance].type;
  return PLN_OK;
}

static pln_status add_atom(pln_defunc *d, const pln_node *n, pln_type type,
                           uint32_t owner, uint32_t *closure) {
  pln_closure made = {.kind = n->kind, .data = n->data, .called = n->type};
  if (n->kind == PLN_GLOBAL_VAR)
    PLN_TRY(choose_callee(d, n->type, type, &made));
  PLN_TRY(pln_closure_add(&d->closures, owner, 0, NULL, closure));
  pln_closure *c = &d->closures.closures[*closure];
  c->kind = made.kind;
  c->data = made.data;
  c->called = made.called;
  return PLN_OK;
}

pln_status pln_defunc_atom(pln_defunc *d, const pln_graph *g, pln_ref node,
                           pln_type type, uint32_t *closure) {
  const pln_node *n = &g->nodes[node];
  uint64_t key = (uint64_t)n->kind << 32 | n->data;
  uint32_t owner;
  PLN_TRY(pln_closure_type_find(&d->closures, type, &owner));
  uint32_t last = pln_idmap_get(d->by_atom, key) - 1;
  for (*closure = last; *closure != PLN_NONE; *closure = d->same_atom[*closure])
    if (d->closures.closures[*closure].owner == owner)
      return PLN_OK;
  PLN_TRY(add_atom(d, n, type, owner, closure));
  PLN_TRY(pln_mem_grow(d->engine, (void **)&d->same_atom, &d->cap_same_atom,
                       (size_t)*closure + 1, sizeof *d->same_atom));
  d->same_atom[*closure] = last;
  return pln_idmap_set(d->by_atom, key, *closure + 1);
}

/* -------------------------------------------------------- what must be done
 */

static bool is_atom(const pln_node *n) {
  return n->kind == PLN_GLOBAL_VAR || n->kind == PLN_CONSTRUCTOR ||
         n->kind == PLN_OP;
}

/* True if the node, or an operand of it that is no callee, is a function. */
static pln_status uses_function(pln_defunc *d, const pln_defunc_source *s,
                                pln_ref ref, bool *out) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[ref];
  *out = false;
  for (uint32_t i = pln_has_callee(n); i < n->count; i++)
    *out |= is_atom(&g->nodes[pln_operand(g, ref, i)]);
  if (*out || ref == g->root || is_atom(n) || s->of_operator[ref] || !n->type)
    return PLN_OK;
  return pln_has_function(&d->closures, n->type, out);
}

static pln_status has_work(pln_defunc *d, uint32_t main, bool *out) {
  pln_defunc_source *s;
  PLN_TRY(pln_defunc_source_of(d, main, &s));
  *out = false;
  for (pln_ref ref = 0; ref < s->graph->n_nodes && !*out; ref++)
    PLN_TRY(uses_function(d, s, ref, out));
  return PLN_OK;
}

static pln_status refuse_main(const pln_defunc *d, const char *why) {
  return pln_diag_error(d->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "Defunctionalization: @main %s", why);
}

static pln_status check_main(pln_defunc *d, const pln_graph *g) {
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  bool found;
  if (row->type_params)
    return refuse_main(d, "has type parameters");
  for (uint32_t i = 0; i < row->n_params; i++) {
    PLN_TRY(
        pln_has_function(&d->closures, g->nodes[row->begin + i].type, &found));
    if (found)
      return refuse_main(d, "takes a function as argument");
  }
  PLN_TRY(pln_has_function(&d->closures, g->nodes[row->result].type, &found));
  return found ? refuse_main(d, "returns a function") : PLN_OK;
}

/* ---------------------------------------------------------- apply functions
 */

/* The bodies of literals, by name, which replace the calls of these names. */
typedef struct pln_defunc_bodies {
  const pln_defunc *d;
  pln_idmap *by_name;        /* symbol -> instance + 1 */
  pln_clone_source *sources; /* by instance */
} pln_defunc_bodies;

static pln_status choose_body(void *ud, pln_clone_run *clone,
                              pln_clone_source *from, pln_ref node,
                              pln_clone_source **out, pln_ref *function) {
  pln_defunc_bodies *b = ud;
  const pln_graph *g = from->graph;
  const pln_node *n = &g->nodes[node];
  (void)clone;
  if (n->kind != PLN_CALL || !n->count)
    return PLN_OK;
  const pln_node *callee = &g->nodes[pln_operand(g, node, 0)];
  if (callee->kind != PLN_GLOBAL_VAR)
    return PLN_OK;
  uint32_t i = pln_idmap_get(b->by_name, callee->data);
  if (!i)
    return PLN_OK;
  if (!b->sources[i - 1].graph)
    PLN_TRY(
        pln_clone_source_new(b->d->instances[i - 1].graph, &b->sources[i - 1]));
  *out = &b->sources[i - 1];
  *function = (*out)->graph->root;
  return PLN_OK;
}

static pln_status add_apply(pln_defunc_bodies *b, pln_module *module,
                            uint32_t type) {
  const pln_defunc *d = b->d;
  pln_clone_callbacks callbacks = {.ud = b, .call = choose_body};
  pln_clone_source from = {0};
  pln_graph *outer, *whole = NULL;
  PLN_TRY(pln_closure_apply(&d->closures, module, type, &outer));
  pln_status status = pln_clone_source_new(outer, &from);
  if (status == PLN_OK)
    status = pln_clone_graph(d->engine, &callbacks, module, &from, &whole);
  pln_clone_source_free(&from);
  if (status == PLN_OK)
    status = pln_module_set(module, d->closures.types[type].apply, whole);
  pln_graph_release(whole);
  pln_graph_release(outer);
  return status;
}

static pln_status add_apply_functions(pln_defunc_bodies *b,
                                      pln_module *module) {
  const pln_defunc *d = b->d;
  PLN_TRY(pln_idmap_new(d->engine, &b->by_name));
  for (uint32_t i = 0; i < d->n_instances; i++)
    if (d->instances[i].closure != PLN_NONE)
      PLN_TRY(pln_idmap_set(b->by_name, d->instances[i].name, i + 1));
  for (uint32_t i = 0; i < d->closures.n_types; i++)
    PLN_TRY(add_apply(b, module, i));
  return PLN_OK;
}

static pln_status add_all_apply(const pln_defunc *d, pln_module *module) {
  size_t size = (d->n_instances + (size_t)1) * sizeof(pln_clone_source);
  pln_defunc_bodies b = {.d = d, .sources = pln_mem_zeroed(d->engine, size)};
  if (!b.sources)
    return pln_nomem(d->engine);
  pln_status status = add_apply_functions(&b, module);
  for (uint32_t i = 0; i < d->n_instances; i++)
    pln_clone_source_free(&b.sources[i]);
  pln_idmap_free(b.by_name);
  pln_mem_free(d->engine, b.sources, size);
  return status;
}

/* ----------------------------------------------------------------- a module
 */

static pln_status add_functions(const pln_defunc *d, pln_module *module) {
  PLN_TRY(pln_closure_define(&d->closures, module));
  for (uint32_t i = 0; i < d->n_instances; i++)
    if (d->instances[i].closure == PLN_NONE)
      PLN_TRY(
          pln_module_set(module, d->instances[i].name, d->instances[i].graph));
  return add_all_apply(d, module);
}

/* Every new function has been built before the effects of the others were
 * known. */
static pln_status infer_effects(const pln_defunc *d, pln_module *module) {
  uint32_t n = pln_module_count(module);
  bool *replaced = pln_mem_zeroed(d->engine, n);
  if (!replaced)
    return pln_nomem(d->engine);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t old = pln_module_find(d->module, pln_module_name_at(module, i));
    replaced[i] = old == PLN_NONE || pln_module_function_at(d->module, old) !=
                                         pln_module_function_at(module, i);
  }
  pln_status status = pln_module_reinfer_callers(module, d->module, replaced);
  pln_mem_free(d->engine, replaced, n);
  return status;
}

static pln_status make_instances(pln_defunc *d, uint32_t main,
                                 pln_module **out) {
  uint32_t first;
  PLN_TRY(pln_defunc_specialize(d, main, 0, &first));
  d->instances[first].name = pln_module_name_at(d->module, main);
  for (uint32_t i = 0; i < d->n_instances; i++)
    PLN_TRY(pln_first_order_function(d, i));
  PLN_TRY(pln_module_copy(d->module, out));
  PLN_TRY(add_functions(d, *out));
  return infer_effects(d, *out);
}

static pln_status transform_main(pln_defunc *d, pln_module **out) {
  pln_symbol name;
  bool work, allowed;
  PLN_TRY(pln_symbol_intern(d->engine, pln_text("main"), &name));
  uint32_t main = pln_module_find(d->module, name);
  if (main == PLN_NONE)
    return pln_diag_error(d->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "Defunctionalization: the module has no function "
                          "'main'");
  const pln_graph *g = pln_module_function_at(d->module, main);
  if (g->nodes[g->root].kind != PLN_FUNCTION || !pln_pass_applies(g))
    return PLN_OK;
  PLN_TRY(pln_closure_types_init(&d->closures));
  PLN_TRY(pln_idmap_new(d->engine, &d->by_node));
  PLN_TRY(pln_idmap_new(d->engine, &d->by_atom));
  PLN_TRY(check_main(d, g));
  PLN_TRY(has_work(d, main, &work));
  if (work)
    PLN_TRY(pln_rule_apply(d->engine, "defunctionalize", g->root, &allowed));
  return work && allowed ? make_instances(d, main, out) : PLN_OK;
}

static void free_defunc(pln_defunc *d) {
  size_t n = pln_module_count(d->module);
  for (size_t i = 0; i < n && d->sources; i++)
    free_source(d->engine, &d->sources[i]);
  for (uint32_t i = 0; i < d->n_instances; i++)
    pln_graph_release(d->instances[i].graph);
  pln_mem_free(d->engine, d->sources, (n + 1) * sizeof *d->sources);
  pln_mem_free(d->engine, d->instances,
               d->cap_instances * sizeof *d->instances);
  pln_mem_free(d->engine, d->same_atom,
               d->cap_same_atom * sizeof *d->same_atom);
  pln_idmap_free(d->by_node);
  pln_idmap_free(d->by_atom);
  pln_closure_types_free(&d->closures);
}

pln_status pln_pass_defunctionalization(pln_pass_run *run) {
  pln_engine *e = pln_run_engine(run);
  pln_defunc d = {.engine = e,
                  .module = run->module,
                  .closures = {.engine = e, .module = run->module}};
  size_t n = pln_module_count(d.module);
  pln_module *out = NULL;
  d.sources = pln_mem_zeroed(e, (n + 1) * sizeof *d.sources);
  pln_status status = d.sources ? transform_main(&d, &out) : pln_nomem(e);
  uint32_t made = d.n_instances;
  free_defunc(&d);
  if (status != PLN_OK || !out) {
    pln_module_release(out);
    return status;
  }
  pln_run_set_module(run, out);
  return pln_run_count(run, "functions", made);
}
