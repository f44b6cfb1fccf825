/* infer/check_kind.c: kind checking: every part of a type has the kind that its
 * position requires.
 *
 * Called after a module was inferred, and by scripts. Tuple fields, function
 * parameters and results, contents of cells, and arguments and fields of data
 * types are of kind Type; constraints are of kind Constraint; a type applied to
 * arguments is defined by the module and takes that many. A type variable is
 * bound by a definition or by an enclosing function. Each part is visited once;
 * nothing recurses. */

#include "ir/infer/check_kind.h"
#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/type/type.h"

/* A part of a type; `inner`: the generic function type around it, or 0. */
typedef struct kind_check_item {
  pln_type type, inner;
} kind_check_item;

/* A scope that binds type variables. */
typedef struct type_binder {
  pln_scope scope;
  pln_ref end;
} type_binder;

typedef struct kind_checker {
  pln_engine *engine;
  const pln_module *module; /* NULL: names are not looked up */
  pln_idmap *kinds;         /* per type: its kind + 1, BEGUN, or 0 */
  pln_idmap *bound;         /* type variables bound anywhere */
  pln_type *stack;
  pln_type *used; /* type variables used */
  uint32_t n_stack, cap_stack, n_used, cap_used;
  pln_idmap *in_scope; /* per type variable: the number of open scopes that bind
                        * it */
  pln_idmap *placed;   /* pairs of a type and its innermost binder already
                        * visited */
  type_binder *binders;         /* open binders */
  kind_check_item *check_items; /* worklist */
  uint32_t n_binders, cap_binders, n_check_items, cap_check_items;
} kind_checker;

#define BEGUN UINT32_MAX

/* Maximum number of reported errors per function, and of functions with
 * errors. */
enum { MAX_REPORTED = 4 };

static const char *const kind_names[] = {
    [PLN_TKIND_TYPE] = "Type",
    [PLN_TKIND_SHAPE_VAR] = "ShapeVar",
    [PLN_TKIND_BASE_TYPE] = "BaseType",
    [PLN_TKIND_CONSTRAINT] = "Constraint",
    [PLN_TKIND_ADT_HANDLE] = "AdtHandle",
    [PLN_TKIND_TYPE_DATA] = "TypeData",
};

const char *pln_type_var_kind_name(pln_type_var_kind kind) {
  const char *name =
      (size_t)kind < PLN_COUNT(kind_names) ? kind_names[kind] : NULL;
  return name ? name : "?";
}

static pln_status begin_kind_check(kind_checker *c, const pln_module *module) {
  c->module = module;
  PLN_TRY(pln_idmap_new(c->engine, &c->kinds));
  PLN_TRY(pln_idmap_new(c->engine, &c->bound));
  PLN_TRY(pln_idmap_new(c->engine, &c->in_scope));
  return pln_idmap_new(c->engine, &c->placed);
}

static void end(kind_checker *c) {
  pln_idmap_free(c->kinds);
  pln_idmap_free(c->bound);
  pln_idmap_free(c->in_scope);
  pln_idmap_free(c->placed);
  pln_mem_free(c->engine, c->binders, c->cap_binders * sizeof *c->binders);
  pln_mem_free(c->engine, c->check_items,
               c->cap_check_items * sizeof *c->check_items);
  pln_mem_free(c->engine, c->stack, c->cap_stack * sizeof *c->stack);
  pln_mem_free(c->engine, c->used, c->cap_used * sizeof *c->used);
}

/* ------------------------------------------------------------------- kinds */

/* The kind of a type whose parts were checked; Type unless a name says
 * otherwise. */
static pln_type_var_kind kind_of_type(const kind_checker *c, pln_type type) {
  uint32_t known = pln_idmap_get(c->kinds, type);
  return known && known != BEGUN ? (pln_type_var_kind)(known - 1)
                                 : PLN_TKIND_TYPE;
}

static pln_status want(const kind_checker *c, pln_type whole, pln_type part,
                       pln_type_var_kind kind, const char *what) {
  if (kind_of_type(c, part) == kind)
    return PLN_OK;
  pln_description inner, outer;
  return pln_diag_error(c->engine, PLN_ERR_TYPE, NULL,
                        "%s must be of kind %s, but %s is of kind %s, in %s",
                        what, pln_type_var_kind_name(kind),
                        pln_describe_type(c->engine, part, &inner),
                        pln_type_var_kind_name(kind_of_type(c, part)),
                        pln_describe_type(c->engine, whole, &outer));
}

static pln_status want_parts(const kind_checker *c, pln_type type,
                             const char *what) {
  uint32_t n = pln_type_n_parts(c->engine, type);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(want(c, type, pln_type_part_at(c->engine, type, i), PLN_TKIND_TYPE,
                 what));
  return PLN_OK;
}

static pln_status check_function(kind_checker *c, pln_type type) {
  const pln_engine *e = c->engine;
  PLN_TRY(want_parts(c, type, "a function's parameter or result"));
  for (uint32_t i = 0; i < pln_type_n_constraints(e, type); i++)
    PLN_TRY(want(c, type, pln_type_constraint_at(e, type, i),
                 PLN_TKIND_CONSTRAINT, "a function's constraint"));
  return PLN_OK;
}

/* Checks a data type applied to arguments. */
static pln_status check_call(const kind_checker *c, pln_type type) {
  pln_engine *e = c->engine;
  PLN_TRY(want_parts(c, type, "a data type's argument"));
  if (!c->module)
    return PLN_OK;
  pln_symbol name = pln_type_symbol(e, type);
  uint32_t i = pln_module_find_type(c->module, name);
  if (i == PLN_NONE)
    return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                          "the module defines no type '%s'",
                          pln_symbol_text(e, name).data);
  uint32_t wanted = pln_module_type_def_at(c->module, i)->n_vars;
  if (pln_type_n_parts(e, type) == wanted)
    return PLN_OK;
  return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                        "the type '%s' takes %u argument%s, got %u",
                        pln_symbol_text(e, name).data, wanted,
                        wanted == 1 ? "" : "s", pln_type_n_parts(e, type));
}

/* The kind of a type whose parts have known kinds. */
static pln_status find_kind(kind_checker *c, pln_type type,
                            pln_type_var_kind *kind) {
  *kind = PLN_TKIND_TYPE;
  switch (pln_type_get_kind(c->engine, type)) {
  case PLN_TYPE_TUPLE: return want_parts(c, type, "a tuple's field");
  case PLN_TYPE_FUNC: return check_function(c, type);
  case PLN_TYPE_CALL: return check_call(c, type);
  case PLN_TYPE_REF: return want_parts(c, type, "a reference's content");
  case PLN_TYPE_VAR:
  case PLN_TYPE_GLOBAL_VAR:
    *kind = pln_type_var_get_kind(c->engine, type);
    return PLN_OK;
  case PLN_TYPE_RELATION:
    *kind = PLN_TKIND_CONSTRAINT;
    return want_parts(c, type, "a relation's argument");
  case PLN_TYPE_SEQUENCE:
  case PLN_TYPE_OPTIONAL:
  case PLN_TYPE_MAP:
  case PLN_TYPE_SPARSE:
  case PLN_TYPE_POINTER: return want_parts(c, type, "an element");
  case PLN_TYPE_INCOMPLETE:
  case PLN_TYPE_TENSOR:
  case PLN_TYPE_OPAQUE:
  case PLN_TYPE_HOLE:
  case PLN_TYPE_PRIM:
  case PLN_N_TYPE_KINDS: break;
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- walk */

static pln_status push_checked_type(kind_checker *c, pln_type type) {
  if (!(pln_type_flags(c->engine, type) & PLN_TYPE_HAS_NAME) ||
      pln_idmap_get(c->kinds, type))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->stack, &c->cap_stack,
                       (size_t)c->n_stack + 1, sizeof *c->stack));
  c->stack[c->n_stack++] = type;
  return PLN_OK;
}

static pln_status note_vars(kind_checker *c, pln_type type) {
  if (pln_type_get_kind(c->engine, type) == PLN_TYPE_VAR) {
    PLN_TRY(pln_mem_grow(c->engine, (void **)&c->used, &c->cap_used,
                         (size_t)c->n_used + 1, sizeof *c->used));
    c->used[c->n_used++] = type;
  }
  for (uint32_t i = 0; i < pln_type_n_vars(c->engine, type); i++)
    if (pln_type_get_kind(c->engine, type) == PLN_TYPE_FUNC)
      PLN_TRY(pln_idmap_set(c->bound, pln_type_var_at(c->engine, type, i), 1));
  return PLN_OK;
}

static pln_status enter_checked_type(kind_checker *c, pln_type type) {
  uint32_t n;
  const pln_type *parts = pln_type_all_parts(c->engine, type, &n);
  PLN_TRY(pln_idmap_set(c->kinds, type, BEGUN));
  PLN_TRY(note_vars(c, type));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(push_checked_type(c, parts[i]));
  return PLN_OK;
}

static pln_status check_type(kind_checker *c, pln_type type) {
  PLN_TRY(push_checked_type(c, type));
  while (c->n_stack > 0) {
    pln_type top = c->stack[c->n_stack - 1];
    uint32_t known = pln_idmap_get(c->kinds, top);
    if (!known) {
      PLN_TRY(enter_checked_type(c, top));
      continue;
    }
    c->n_stack--;
    if (known != BEGUN)
      continue;
    pln_type_var_kind kind;
    PLN_TRY(find_kind(c, top, &kind));
    PLN_TRY(pln_idmap_set(c->kinds, top, (uint32_t)kind + 1));
  }
  return PLN_OK;
}

pln_status pln_type_check_kind(pln_engine *engine, const pln_module *module,
                               pln_type type, pln_type_var_kind *out) {
  kind_checker c = {.engine = engine};
  pln_status status = begin_kind_check(&c, module);
  if (status == PLN_OK)
    status = check_type(&c, type);
  if (status == PLN_OK)
    *out = kind_of_type(&c, type);
  end(&c);
  return status;
}

/* ------------------------------------------------------------------ modules */

static pln_status bind_type_vars(kind_checker *c, uint32_t n,
                                 const pln_type *vars) {
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_idmap_set(c->bound, vars[i], 1));
  return PLN_OK;
}

/* Checks that every used variable is bound, then resets for the next owner. */
static pln_status check_bound(kind_checker *c, const char *owner,
                              pln_symbol name) {
  for (uint32_t i = 0; i < c->n_used; i++)
    if (!pln_idmap_get(c->bound, c->used[i]))
      return pln_diag_error(
          c->engine, PLN_ERR_TYPE, NULL,
          "%s '%s' has the free type variable '%s'", owner,
          pln_symbol_text(c->engine, name).data,
          pln_symbol_text(c->engine, pln_type_symbol(c->engine, c->used[i]))
              .data);
  return PLN_OK;
}

static pln_status check_fields(kind_checker *c,
                               const pln_constructor *constructor) {
  for (uint32_t i = 0; i < constructor->n_inputs; i++) {
    PLN_TRY(check_type(c, constructor->inputs[i]));
    PLN_TRY(want(c, constructor->inputs[i], constructor->inputs[i],
                 PLN_TKIND_TYPE, "a constructor's field"));
  }
  return PLN_OK;
}

static pln_status check_parts(kind_checker *c, const pln_type_def *data) {
  for (uint32_t i = 0; i < data->n_vars; i++) {
    PLN_TRY(check_type(c, data->vars[i]));
    PLN_TRY(want(c, data->vars[i], data->vars[i], PLN_TKIND_TYPE,
                 "a data type's variable"));
  }
  for (uint32_t i = 0; i < data->n_constructors; i++)
    PLN_TRY(check_fields(c, &data->constructors[i]));
  return PLN_OK;
}

static pln_status check_definition(kind_checker *c, const pln_type_def *data) {
  PLN_TRY(bind_type_vars(c, data->n_vars, data->vars));
  pln_status status = check_parts(c, data);
  if (status == PLN_ERR_TYPE)
    pln_diag_extend(c->engine, ": in type ",
                    pln_symbol_text(c->engine, data->name).data);
  PLN_TRY(status);
  return check_bound(c, "type", data->name);
}

/* ------------------------------------------------------------------ scopes */

/* Adds or removes a scope that binds these type variables. */
static pln_status count_vars(kind_checker *c, pln_type vars, bool open) {
  uint32_t n;
  const pln_type *all = pln_type_all_parts(c->engine, vars, &n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t count = pln_idmap_get(c->in_scope, all[i]);
    PLN_TRY(pln_idmap_set(c->in_scope, all[i], open ? count + 1 : count - 1));
  }
  return PLN_OK;
}

/* Opens and closes binding scopes so that those around the node are open;
 * *next: the first scope that begins at or after it. */
static pln_status move_to(kind_checker *c, const pln_graph *g, pln_ref ref,
                          pln_scope *next) {
  while (c->n_binders > 0 && c->binders[c->n_binders - 1].end <= ref) {
    pln_scope scope = c->binders[--c->n_binders].scope;
    PLN_TRY(count_vars(c, g->scopes[scope].type_params, false));
  }
  for (; *next < g->n_scopes && g->scopes[*next].begin <= ref; ++*next) {
    const pln_scope_row *row = &g->scopes[*next];
    if (!row->type_params || row->end <= ref)
      continue;
    PLN_TRY(pln_mem_grow(c->engine, (void **)&c->binders, &c->cap_binders,
                         (size_t)c->n_binders + 1, sizeof *c->binders));
    c->binders[c->n_binders++] = (type_binder){*next, row->end};
    PLN_TRY(count_vars(c, row->type_params, true));
  }
  return PLN_OK;
}

static bool binds(const kind_checker *c, pln_type function, pln_type var) {
  for (uint32_t i = 0; i < pln_type_n_vars(c->engine, function); i++)
    if (pln_type_var_at(c->engine, function, i) == var)
      return true;
  return false;
}

/* Visits a type once per innermost binder. */
static pln_status push_place(kind_checker *c, pln_type type, pln_type inner) {
  uint32_t around = inner ? inner : 0x80000000u | c->n_binders;
  if (!inner && c->n_binders > 0)
    around = 0x80000000u | (c->binders[c->n_binders - 1].scope + 1);
  uint64_t key = (uint64_t)type << 32 | around;
  if (!(pln_type_flags(c->engine, type) & PLN_TYPE_HAS_VAR) ||
      pln_idmap_get(c->placed, key))
    return PLN_OK;
  PLN_TRY(pln_idmap_set(c->placed, key, 1));
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->check_items, &c->cap_check_items,
                       (size_t)c->n_check_items + 1, sizeof *c->check_items));
  c->check_items[c->n_check_items++] = (kind_check_item){type, inner};
  return PLN_OK;
}

/* Type variables bound by a function type may be used inside it only. Nested
 * generic types are accepted as they are. */
static pln_status check_place(kind_checker *c, const kind_check_item *p) {
  pln_engine *e = c->engine;
  uint32_t n;
  if (pln_type_get_kind(e, p->type) == PLN_TYPE_VAR) {
    if (!pln_idmap_get(c->bound, p->type) ||
        pln_idmap_get(c->in_scope, p->type) || binds(c, p->inner, p->type))
      return PLN_OK;
    return pln_diag_error(
        e, PLN_ERR_TYPE, NULL,
        "the type variable '%s' is used outside of the function that binds it",
        pln_symbol_text(e, pln_type_symbol(e, p->type)).data);
  }
  bool generic = pln_type_get_kind(e, p->type) == PLN_TYPE_FUNC &&
                 pln_type_n_vars(e, p->type) > 0;
  if (generic && p->inner)
    return PLN_OK;
  const pln_type *parts = pln_type_all_parts(e, p->type, &n);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(push_place(c, parts[i], generic ? p->type : p->inner));
  return PLN_OK;
}

static pln_status check_pending_items(kind_checker *c, pln_type type) {
  c->n_check_items = 0;
  PLN_TRY(push_place(c, type, 0));
  while (c->n_check_items > 0) {
    kind_check_item p = c->check_items[--c->n_check_items];
    PLN_TRY(check_place(c, &p));
  }
  return PLN_OK;
}

static pln_status check_node(kind_checker *c, pln_symbol name,
                             const pln_graph *g, pln_ref ref) {
  pln_type type = g->nodes[ref].type;
  c->n_stack = 0;
  pln_status status = check_type(c, type);
  if (status == PLN_OK)
    status = want(c, type, type, PLN_TKIND_TYPE, "a value's type");
  if (status == PLN_OK)
    status = check_pending_items(c, type);
  if (status == PLN_ERR_TYPE)
    PLN_TRY(pln_annotate_node_of(g, ref, name));
  return status;
}

static pln_status bind_all(kind_checker *c, const pln_graph *g) {
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_type vars = g->scopes[s].type_params;
    uint32_t n = 0;
    if (vars)
      PLN_TRY(bind_type_vars(c, pln_type_n_parts(c->engine, vars),
                             pln_type_all_parts(c->engine, vars, &n)));
  }
  return PLN_OK;
}

/* Reports some errors per function, and each type once. */
static pln_status check_graph(kind_checker *c, pln_symbol name,
                              const pln_graph *g) {
  pln_scope next = 0;
  uint32_t wrong = 0;
  PLN_TRY(bind_all(c, g));
  for (pln_ref ref = 0; ref < g->n_nodes && wrong < MAX_REPORTED; ref++) {
    PLN_TRY(move_to(c, g, ref, &next));
    if (!(pln_type_flags(c->engine, g->nodes[ref].type) & PLN_TYPE_HAS_NAME))
      continue;
    pln_status status = check_node(c, name, g, ref);
    if (status != PLN_OK && status != PLN_ERR_TYPE)
      return status;
    wrong += status != PLN_OK;
  }
  return wrong > 0 ? PLN_ERR_TYPE : check_bound(c, "function", name);
}

static bool has_names(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (pln_type_flags(g->engine, g->nodes[ref].type) & PLN_TYPE_HAS_NAME)
      return true;
  return false;
}

/* A separate checker for each, because type variables are local to it. */
/* Checks a definition or, when it is NULL, function `i`. */
static pln_status check_one(const pln_module *m, const pln_type_def *data,
                            uint32_t i) {
  kind_checker c = {.engine = m->engine};
  pln_status status = begin_kind_check(&c, m);
  if (status == PLN_OK)
    status = data ? check_definition(&c, data)
                  : check_graph(&c, pln_module_name_at(m, i),
                                pln_module_function_at(m, i));
  end(&c);
  return status;
}

/* Definitions first; functions are checked only if these are correct. */
pln_status pln_module_check_kinds(const pln_module *module) {
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < pln_module_n_types(module); i++)
    PLN_TRY(check_one(module, pln_module_type_def_at(module, i), 0));
  for (uint32_t i = 0; i < module->count && wrong < MAX_REPORTED; i++) {
    if (!has_names(pln_module_function_at(module, i)))
      continue;
    pln_status status = check_one(module, NULL, i);
    if (status != PLN_OK && status != PLN_ERR_TYPE)
      return status;
    wrong += status != PLN_OK;
  }
  return wrong > 0 ? PLN_ERR_TYPE : PLN_OK;
}
