/* compiler_functions.c: OutlineCompilerFunctionsWithExistingGlobalSymbols,
 * MarkCompilerFunctionsAsExtern, InlineCompilerFunctionsBoundTo: functions with
 * the attribute Compiler move to the module, to somebody else, and back.
 *
 * Run by the executor, once per module. Require verified graphs. The first
 * makes functions of the module of function literals that are called, under
 * their attribute global_symbol. The second leaves such a function the
 * attribute Extern alone, and calls it through call_lowered. The third puts the
 * bodies of the named functions in the place of their calls, and removes the
 * functions.
 *
 *     %0 = fn (%a, Compiler="dnnl", global_symbol="f") { nn.relu(%a) }; %0(%x)
 *     <=>   def @f(%a, Compiler="dnnl", global_symbol="f") { nn.relu(%a) }
 *           @f(%x)   =>   call_lowered(@f, (%x,))
 *
 * Semantics: TVM's passes of the same names (compiler_function_utils.cc). */

#include "transform/functional/inliner.h"
#include "transform/transform.h"

#include "ir/graph/describe.h"
#include "ir/provenance/rule_application.h"

typedef struct compiler_functions {
  pln_engine *engine;
  pln_module *module; /* the new module */
  const pln_graph *g; /* the function being read */
  pln_slice filter;   /* the compiler; "": any */
  uint8_t *chosen;    /* by function of the old module */
  int64_t changed;
} compiler_functions;

/* Whether a function is for the compiler of the filter. */
static bool is_chosen(const compiler_functions *c, const pln_node *function) {
  if (function->kind != PLN_FUNCTION)
    return false;
  const pln_attr *compiler =
      pln_attrs_find(c->engine, function->attrs, "Compiler");
  return compiler && compiler->kind == PLN_ATTR_STRING &&
         (c->filter.size == 0 || pln_slice_equal(compiler->v.s, c->filter));
}

/* Runs `rewrite_function` on a copy of the module and sets the result. */
static pln_status finish(compiler_functions *c, pln_pass_run *run,
                         pln_status status) {
  if (status == PLN_OK && c->changed) {
    pln_run_set_module(run, c->module);
    return pln_run_count(run, "functions", c->changed);
  }
  pln_module_release(c->module);
  return status;
}

/* -------------------------------------------------------------- outlining */

static pln_status note_free_var(void *ud, const pln_graph *g, pln_ref var) {
  pln_ref *found = ud;
  (void)g;
  *found = var;
  return PLN_OK;
}

/* Adds the function literal to the module, unless it is there. */
static pln_status add_literal(compiler_functions *c, pln_ref literal,
                              pln_symbol name) {
  pln_builder *b;
  pln_graph *g = NULL;
  pln_ref image, var = PLN_NONE;
  if (pln_module_find(c->module, name) != PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_builder_new(c->engine, &b));
  pln_status status = pln_build_import(b, c->g, literal, &image);
  if (status == PLN_OK)
    status = pln_builder_seal(b, image, &g);
  pln_builder_free(b);
  if (status == PLN_OK)
    status = pln_graph_vars(g, g->root, PLN_VARS_FREE, note_free_var, &var);
  if (status == PLN_OK && var != PLN_NONE) {
    status = pln_diag_error(
        c->engine, PLN_ERR_TYPE, NULL,
        "a function with the attribute Compiler has the free variable '%s'",
        pln_symbol_text(c->engine, g->nodes[var].attrs).data);
    pln_note_node(c->g, literal);
  }
  if (status == PLN_OK)
    status = pln_module_set(c->module, name, g);
  pln_graph_release(g);
  return status;
}

static pln_status name_of_literal(const compiler_functions *c, pln_ref literal,
                                  pln_symbol *out) {
  pln_slice name = pln_attrs_string(c->engine, c->g->nodes[literal].attrs,
                                    "global_symbol", "");
  if (name.size > 0)
    return pln_symbol_intern(c->engine, name, out);
  pln_status status = pln_diag_error(
      c->engine, PLN_ERR_TYPE, NULL,
      "a function with the attribute Compiler has no attribute global_symbol");
  pln_note_node(c->g, literal);
  return status;
}

static pln_status call_global(pln_rewrite *rw, const pln_node *literal,
                              pln_symbol name, pln_ref *node) {
  pln_builder *b = pln_rewrite_builder(rw);
  pln_ref global;
  if (!b)
    return PLN_ERR_NOMEM;
  pln_node call = b->graph->nodes[*node];
  PLN_TRY(pln_build_global_var(b, name, literal->type, &global));
  b->graph->nodes[global].flags = literal->flags & PLN_NODE_CALL_EFFECT;
  return pln_build_apply(b, global, call.attrs, call.results, call.count - 1,
                         b->graph->operands + call.first + 1, node);
}

static pln_status outline_call(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  compiler_functions *c = ud;
  const pln_node *n = &c->g->nodes[old];
  pln_symbol name;
  if (!pln_has_callee(n))
    return PLN_OK;
  pln_ref literal = pln_operand(c->g, old, 0);
  if (!is_chosen(c, &c->g->nodes[literal]))
    return PLN_OK;
  PLN_TRY(name_of_literal(c, literal, &name));
  PLN_TRY(add_literal(c, literal, name));
  c->changed++;
  return call_global(rw, &c->g->nodes[literal], name, node);
}

/* Functions that were added are read in their turn. */
static pln_status rewrite_all(compiler_functions *c,
                              const pln_mutator *mutator) {
  for (uint32_t i = 0; i < pln_module_count(c->module); i++) {
    pln_graph *out;
    pln_symbol name = pln_module_name_at(c->module, i);
    c->g = pln_graph_retain(pln_module_function_at(c->module, i));
    pln_status status = pln_graph_rewrite(c->g, mutator, &out);
    if (status == PLN_OK) {
      status = pln_module_set(c->module, name, out);
      pln_graph_release(out);
    }
    pln_graph_release((pln_graph *)(uintptr_t)c->g);
    PLN_TRY(status);
  }
  return PLN_OK;
}

pln_status pln_pass_outline_compiler_functions(pln_pass_run *run) {
  compiler_functions c = {.engine = pln_run_engine(run),
                          .filter = pln_run_string(run, "compiler_filter")};
  pln_mutator mutator = {.ud = &c, .visit = outline_call};
  PLN_TRY(pln_module_copy(run->module, &c.module));
  return finish(&c, run, rewrite_all(&c, &mutator));
}

/* ----------------------------------------------------------------- marking */

static bool names_chosen(const compiler_functions *c, pln_symbol name) {
  uint32_t i = pln_module_find(c->module, name);
  return i != PLN_NONE && c->chosen[i];
}

/* @f(%x)   =>   call_lowered(@f, (%x,)) */
static pln_status lower_call(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  compiler_functions *c = ud;
  const pln_node *n = &c->g->nodes[old];
  if (!pln_has_callee(n))
    return PLN_OK;
  const pln_node *callee = &c->g->nodes[pln_operand(c->g, old, 0)];
  if (callee->kind != PLN_GLOBAL_VAR || !names_chosen(c, callee->data))
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_node call = b->graph->nodes[*node];
  pln_ref args[2] = {b->graph->operands[call.first]};
  PLN_TRY(pln_build_tuple(b, call.count - 1,
                          b->graph->operands + call.first + 1, &args[1]));
  return pln_build_call(b, pln_op_find(c->engine, pln_text("call_lowered")), 0,
                        call.results, 2, args, node);
}

/* Leaves the root the attribute Extern. */
static pln_status mark_root(void *ud, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  compiler_functions *c = ud;
  pln_attr mark = {.kind = PLN_ATTR_INT, .v.i = 1};
  pln_attrs attrs;
  if (old != pln_rewrite_old(rw)->root)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_symbol_intern(c->engine, pln_text("Extern"), &mark.name));
  PLN_TRY(pln_attrs_make(c->engine, 1, &mark, &attrs));
  b->graph->nodes[*node].attrs = attrs;
  pln_type_digest_record(b->graph, *node);
  return PLN_OK;
}

static pln_status mark_all(compiler_functions *c) {
  pln_mutator mutator = {.ud = c, .visit = mark_root};
  for (uint32_t i = 0; i < pln_module_count(c->module); i++) {
    const pln_graph *g = pln_module_function_at(c->module, i);
    pln_graph *out;
    c->chosen[i] = is_chosen(c, &g->nodes[g->root]);
    if (!c->chosen[i])
      continue;
    PLN_TRY(pln_graph_rewrite(g, &mutator, &out));
    pln_status status =
        pln_module_set(c->module, pln_module_name_at(c->module, i), out);
    pln_graph_release(out);
    PLN_TRY(status);
    c->changed++;
  }
  return PLN_OK;
}

pln_status pln_pass_mark_compiler_functions_as_extern(pln_pass_run *run) {
  compiler_functions c = {.engine = pln_run_engine(run),
                          .filter = pln_run_string(run, "compiler_filter")};
  pln_mutator mutator = {.ud = &c, .visit = lower_call};
  size_t n = pln_module_count(run->module) + (size_t)1;
  PLN_TRY(pln_module_copy(run->module, &c.module));
  c.chosen = pln_mem_zeroed(c.engine, n);
  pln_status status = c.chosen ? mark_all(&c) : pln_nomem(c.engine);
  if (status == PLN_OK && c.changed)
    status = rewrite_all(&c, &mutator);
  pln_mem_free(c.engine, c.chosen, n);
  return finish(&c, run, status);
}

/* ---------------------------------------------------------------- inlining */

typedef struct body_inliner {
  pln_engine *engine;
  const pln_module *module;
  bool *chosen; /* by function */
  pln_clone_source *sources;
} body_inliner;

static uint32_t chosen_callee(const body_inliner *in, const pln_graph *g,
                              const pln_node *n) {
  if (!pln_has_callee(n))
    return PLN_NONE;
  const pln_node *callee = &g->nodes[g->operands[n->first]];
  uint32_t i = callee->kind == PLN_GLOBAL_VAR
                   ? pln_module_find(in->module, callee->data)
                   : PLN_NONE;
  return i != PLN_NONE && in->chosen[i] ? i : PLN_NONE;
}

static pln_status choose_body(void *ud, pln_clone_run *clone,
                              pln_clone_source *from, pln_ref node,
                              pln_clone_source **in, pln_ref *function) {
  body_inliner *own = ud;
  uint32_t i = chosen_callee(own, from->graph, &from->graph->nodes[node]);
  (void)clone;
  if (i == PLN_NONE)
    return PLN_OK;
  if (!own->sources[i].graph)
    PLN_TRY(pln_clone_source_new(pln_module_function_at(own->module, i),
                                 &own->sources[i]));
  *in = &own->sources[i];
  *function = (*in)->graph->root;
  return PLN_OK;
}

static bool calls_chosen(const body_inliner *in, const pln_graph *g) {
  for (pln_ref node = 0; node < g->n_nodes; node++)
    if (chosen_callee(in, g, &g->nodes[node]) != PLN_NONE)
      return true;
  return false;
}

static pln_status inline_into(body_inliner *in, uint32_t i, pln_graph **out) {
  const pln_graph *g = pln_module_function_at(in->module, i);
  pln_clone_callbacks callbacks = {.ud = in, .call = choose_body};
  pln_clone_source from;
  pln_status status = pln_clone_source_new(g, &from);
  if (status == PLN_OK)
    status = pln_clone_graph(in->engine, &callbacks, in->module, &from, out);
  pln_clone_source_free(&from);
  return status;
}

static pln_status choose_named(body_inliner *in, const pln_attr *names,
                               bool *any) {
  for (uint32_t k = 0; k < names->count; k++) {
    pln_symbol name;
    PLN_TRY(pln_symbol_intern(in->engine, names->v.strings[k], &name));
    uint32_t i = pln_module_find(in->module, name);
    const pln_graph *g =
        i == PLN_NONE ? NULL : pln_module_function_at(in->module, i);
    if (!g || g->nodes[g->root].kind != PLN_FUNCTION ||
        !pln_attrs_find(in->engine, g->nodes[g->root].attrs, "Compiler"))
      return pln_diag_error(
          in->engine, PLN_ERR_NAME, NULL,
          "global_vars: the module has no function @%s with the attribute "
          "Compiler",
          pln_symbol_text(in->engine, name).data);
    *any = in->chosen[i] = true;
  }
  return PLN_OK;
}

/* Functions that call each other have no place where their bodies could end. */
static pln_status refuse_recursion(const body_inliner *in) {
  for (uint32_t i = 0; i < pln_module_count(in->module); i++)
    if (in->chosen[i] &&
        calls_chosen(in, pln_module_function_at(in->module, i)))
      return pln_diag_error(
          in->engine, PLN_ERR_UNSUPPORTED, NULL,
          "global_vars: @%s calls a function that is inlined, too",
          pln_symbol_text(in->engine, pln_module_name_at(in->module, i)).data);
  return PLN_OK;
}

static pln_status inline_all(body_inliner *in, pln_graph **bodies) {
  PLN_TRY(refuse_recursion(in));
  for (uint32_t i = 0; i < pln_module_count(in->module); i++)
    if (!in->chosen[i] &&
        calls_chosen(in, pln_module_function_at(in->module, i)))
      PLN_TRY(inline_into(in, i, &bodies[i]));
  return PLN_OK;
}

static pln_status replace_bodies(body_inliner *in, pln_graph **bodies,
                                 pln_pass_run *run) {
  pln_module *whole, *module;
  PLN_TRY(pln_module_replace(in->module, bodies, &whole));
  pln_status status = pln_module_drop(whole, in->chosen, &module);
  pln_module_release(whole);
  PLN_TRY(status);
  pln_run_set_module(run, module);
  return PLN_OK;
}

pln_status pln_pass_inline_compiler_functions_bound_to(pln_pass_run *run) {
  body_inliner in = {.engine = pln_run_engine(run), .module = run->module};
  size_t n = pln_module_count(in.module) + (size_t)1;
  pln_graph **bodies = pln_mem_zeroed(in.engine, n * sizeof *bodies);
  pln_attr names;
  bool any = false;
  pln_run_option(run, "global_vars", &names);
  in.chosen = pln_mem_zeroed(in.engine, n * sizeof *in.chosen);
  in.sources = pln_mem_zeroed(in.engine, n * sizeof *in.sources);
  pln_status status = bodies && in.chosen && in.sources
                          ? choose_named(&in, &names, &any)
                          : pln_nomem(in.engine);
  if (status == PLN_OK && any)
    status = inline_all(&in, bodies);
  if (status == PLN_OK && any)
    status = replace_bodies(&in, bodies, run);
  for (size_t i = 0; i + 1 < n; i++) {
    if (bodies)
      pln_graph_release(bodies[i]);
    if (in.sources && in.sources[i].graph)
      pln_clone_source_free(&in.sources[i]);
  }
  pln_mem_free(in.engine, bodies, n * sizeof *bodies);
  pln_mem_free(in.engine, in.chosen, n * sizeof *in.chosen);
  pln_mem_free(in.engine, in.sources, n * sizeof *in.sources);
  return status;
}
