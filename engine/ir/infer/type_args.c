/* infer/type_args.c: finds the type arguments of calls, see infer/type_args.h.
 * Called by inference, the builder and scripts. Finding them does not change
 * the call. */

#include "ir/infer/type_args.h"

const pln_attr *pln_written_type_args(const pln_engine *engine,
                                      pln_attrs attrs) {
  const pln_attr *found =
      attrs ? pln_attrs_find(engine, attrs, "type_args") : NULL;
  return found && found->kind == PLN_ATTR_TYPES ? found : NULL;
}

static pln_status refuse_count(pln_engine *e, uint32_t wanted, uint32_t got) {
  return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                        "the function takes %u type argument%s, got %u", wanted,
                        wanted == 1 ? "" : "s", got);
}

/* One for each type parameter. */
static pln_status open_args(pln_unifier *u, uint32_t n, const pln_attr *written,
                            pln_type *args) {
  for (uint32_t i = 0; i < n; i++) {
    bool given = written && i < written->count;
    PLN_TRY(pln_unifier_open(u, given ? written->v.types[i] : 0, &args[i]));
  }
  return PLN_OK;
}

static pln_status substitute(pln_engine *e, pln_type function, uint32_t n,
                             pln_type *vars, const pln_type *args,
                             pln_type *out) {
  for (uint32_t i = 0; i < n; i++)
    vars[i] = pln_type_var_at(e, function, i);
  PLN_TRY(pln_type_generic(e, function, 0, out));
  return pln_type_substitute(e, *out, n, vars, args, out);
}

pln_status pln_instantiate(pln_unifier *u, pln_type function,
                           const pln_attr *written, pln_type *args,
                           pln_type *out) {
  pln_engine *e = u->engine;
  uint32_t n = pln_type_n_vars(e, function);
  *out = function;
  if (written && written->count > n)
    return refuse_count(e, n, written->count);
  if (n == 0)
    return PLN_OK;
  size_t size = 2 * (size_t)n * sizeof(pln_type);
  pln_type *vars = pln_mem_new(e, size);
  if (!vars)
    return pln_nomem(e);
  pln_status status = open_args(u, n, written, vars + n);
  if (args)
    memcpy(args, vars + n, n * sizeof *args);
  if (status == PLN_OK)
    status = substitute(e, function, n, vars, vars + n, out);
  pln_mem_free(e, vars, size);
  return status;
}

/* ------------------------------------------------------------------ finding */

/* A call whose type arguments are inferred. */
typedef struct search {
  const pln_graph *g;
  const pln_node *call;
  const pln_attr *written;
  bool result; /* use the call's own type as well */
  pln_unifier u;
} search;

static pln_type callee_type(const pln_graph *g, const pln_node *call) {
  return g->nodes[pln_operands(g, call)[0]].type;
}

static pln_status unify(search *s, pln_type function, uint32_t i,
                        pln_type type) {
  bool fits;
  PLN_TRY(pln_unifier_open(&s->u, type, &type));
  return pln_unify(&s->u, pln_type_part_at(s->g->engine, function, i), type,
                   &fits);
}

static pln_status resolve_args(search *s, pln_type function, pln_type *args) {
  const pln_engine *e = s->g->engine;
  const pln_ref *operands = pln_operands(s->g, s->call);
  pln_type plain;
  PLN_TRY(pln_instantiate(&s->u, function, s->written, args, &plain));
  uint32_t n = pln_type_n_parts(e, plain) - 1;
  for (uint32_t i = 0; i < n && i + 1 < s->call->count; i++)
    PLN_TRY(unify(s, plain, i, s->g->nodes[operands[i + 1]].type));
  if (s->result)
    PLN_TRY(unify(s, plain, n, s->call->type));
  for (uint32_t i = 0; i < pln_type_n_vars(e, function); i++)
    PLN_TRY(pln_unifier_resolve(&s->u, args[i], &args[i], NULL));
  return PLN_OK;
}

/* *out: a tuple type. */
static pln_status find_args(search *s, pln_type function, pln_type *out) {
  pln_engine *e = s->g->engine;
  uint32_t n = pln_type_n_vars(e, function);
  pln_type *args = pln_mem_new(e, n * sizeof *args);
  if (!args)
    return pln_nomem(e);
  pln_unifier_init(&s->u, e);
  pln_status status = resolve_args(s, function, args);
  pln_unifier_free(&s->u);
  if (status == PLN_OK)
    status = pln_type_make(e, PLN_TYPE_TUPLE, 0, n, args, out);
  pln_mem_free(e, args, n * sizeof *args);
  return status;
}

static bool is_generic(const pln_engine *e, pln_type type) {
  return pln_type_get_kind(e, type) == PLN_TYPE_FUNC &&
         pln_type_n_vars(e, type) > 0;
}

pln_status pln_call_type_args(const pln_graph *graph, pln_ref call,
                              pln_type *out) {
  pln_engine *e = graph->engine;
  const pln_node *n = &graph->nodes[call];
  *out = 0;
  if (!pln_has_callee(n))
    return PLN_OK;
  search s = {.g = graph,
              .call = n,
              .written = pln_written_type_args(e, n->attrs),
              .result = true};
  pln_type function = callee_type(graph, n);
  if (is_generic(e, function))
    return find_args(&s, function, out);
  if (!s.written)
    return PLN_OK;
  return pln_type_make(e, PLN_TYPE_TUPLE, 0, s.written->count,
                       s.written->v.types, out);
}

/* ------------------------------------------------------------------ written */

pln_status pln_drop_redundant_type_args(pln_graph *graph, pln_ref call) {
  pln_engine *e = graph->engine;
  pln_node *n = &graph->nodes[call];
  const pln_attr *written = pln_written_type_args(e, n->attrs);
  pln_type found, function = callee_type(graph, n);
  search s = {.g = graph, .call = n};
  if (!written || !is_generic(e, function))
    return PLN_OK;
  PLN_TRY(find_args(&s, function, &found));
  for (uint32_t i = 0; i < written->count; i++)
    if (written->v.types[i] != pln_type_part_at(e, found, i))
      return PLN_OK;
  return pln_attrs_without(e, n->attrs, "type_args", &n->attrs);
}

static pln_status write_args(pln_engine *e, pln_attrs attrs, uint32_t n,
                             const pln_type *types, pln_attrs *out) {
  pln_attr entry = {.kind = PLN_ATTR_TYPES, .count = n, .v.types = types};
  PLN_TRY(pln_symbol_intern(e, pln_text("type_args"), &entry.name));
  return pln_attrs_with(e, attrs, &entry, out);
}

pln_status pln_build_apply_with_types(pln_builder *b, pln_ref callee,
                                      uint32_t n_types, const pln_type *types,
                                      pln_attrs attrs, uint32_t n_results,
                                      uint32_t n, const pln_ref *args,
                                      pln_ref *out) {
  if (n_types > 0)
    PLN_TRY(write_args(b->engine, attrs, n_types, types, &attrs));
  PLN_TRY(pln_build_apply(b, callee, attrs, n_results, n, args, out));
  return pln_drop_redundant_type_args(b->graph, *out);
}

pln_status pln_mutate_type_args(pln_type_mutator *types, pln_engine *engine,
                                pln_attrs attrs, pln_attrs *out) {
  const pln_attr *written = pln_written_type_args(engine, attrs);
  *out = attrs;
  if (!written || written->count == 0)
    return PLN_OK;
  uint32_t n = written->count;
  pln_type *images = pln_mem_new(engine, n * sizeof *images);
  if (!images)
    return pln_nomem(engine);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = pln_type_mutate(types, written->v.types[i], &images[i]);
  if (status == PLN_OK)
    status = write_args(engine, attrs, n, images, out);
  pln_mem_free(engine, images, n * sizeof *images);
  return status;
}
