/* to_module.c: from a schedule to a PrimFunc: one walk over its stages, inputs
 * first, each of which builds its statement around those attached to it.
 * Definition: TVM 0.14, ScheduleToModule in src/driver/driver_api.cc. */

#include "te/te.h"

typedef struct lowering {
  pln_te_state *s;
  const pln_schedule_lowering *options;
  pln_symbol name;
  uint32_t n_args;
  pln_term *args; /* Buffers and Vars */
  pln_ref *params;
  uint8_t *given; /* by tensor */
} lowering;

/* ------------------------------------------------------------------ buffers */

static bool has_variable_dim(const pln_te_state *s, pln_term buffer) {
  uint32_t rank = pln_at(s->a, buffer)->count;
  for (uint32_t i = 0; i < rank; i++)
    if (pln_term_kind(s->a, pln_term_operand(s->a, buffer, 1 + i)) == PLN_VAR)
      return true;
  return false;
}

/* What tir.ApplyLayoutTransforms does to a Buffer: maps and axis separators. */
static pln_status layout_attrs(pln_te_state *s, const pln_te_stage *g,
                               pln_attr *entries, uint32_t *n) {
  pln_slice *maps = pln_arena_new(&s->arena, g->layouts.n * sizeof *maps);
  int64_t *at = pln_arena_new(&s->arena, (g->separators.n + 1) * sizeof *at);
  if (!maps || !at)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < g->layouts.n; i++)
    maps[i] = pln_symbol_text(s->engine, (pln_symbol)g->layouts.items[i]);
  for (uint32_t i = 0; i < g->separators.n; i++)
    at[i] = g->separators.items[i];
  if (g->separators.n > 0)
    entries[(*n)++] = (pln_attr){
        .kind = PLN_ATTR_INTS, .count = g->separators.n, .v.ints = at};
  entries[(*n)++] = (pln_attr){
      .kind = PLN_ATTR_STRINGS, .count = g->layouts.n, .v.strings = maps};
  return PLN_OK;
}

static const char *key_of(const pln_attr *entry) {
  return entry->kind == PLN_ATTR_STRING ? "buffer_type"
         : entry->kind == PLN_ATTR_INTS ? "axis_separators"
                                        : "layout_transforms";
}

static pln_status buffer_attrs(pln_te_state *s, const pln_te_stage *g,
                               bool strided, pln_attrs *out) {
  pln_attr entries[3] = {{.kind = PLN_ATTR_STRING, .v.s = {"auto", 4}}};
  uint32_t n = strided ? 1 : 0;
  *out = 0;
  if (g->layouts.n > 0)
    PLN_TRY(layout_attrs(s, g, entries, &n));
  for (uint32_t i = 0; i < n; i++) {
    const char *key = key_of(&entries[i]);
    PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){key, strlen(key)},
                              &entries[i].name));
  }
  return n ? pln_attrs_make(s->engine, n, entries, out) : PLN_OK;
}

/* A Buffer like that of a tensor, in the layout of its stage, in another
 * storage scope or with strides. */
static pln_status similar_buffer(pln_te_state *s, uint32_t tensor,
                                 pln_slice scope, bool strided, pln_term *out) {
  pln_term buffer = s->tensors[tensor].buffer;
  const pln_term_node *n = pln_at(s->a, buffer);
  uint32_t rank = n->count;
  pln_symbol name = (pln_symbol)(uint32_t)n->u.data, stride;
  pln_type type = n->type;
  pln_attrs attrs = 0;
  pln_term *dims = pln_arena_new(&s->arena, 2 * (rank + 1) * sizeof *dims);
  if (!dims)
    return pln_nomem(s->engine);
  PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){"stride", 6}, &stride));
  for (uint32_t i = 0; i < rank; i++) {
    dims[i] = pln_term_operand(s->a, buffer, 1 + i);
    if (strided)
      PLN_TRY(
          pln_te_var_new(s, stride, pln_te_dtype(s, dims[i]), &dims[rank + i]));
  }
  PLN_TRY(
      buffer_attrs(s, &s->stages[s->tensors[tensor].stage], strided, &attrs));
  return pln_te_buffer_new(s, name, type, scope, rank, dims, strided ? rank : 0,
                           dims + rank, attrs, out);
}

static pln_status replace(pln_te_state *s, pln_term from, pln_term to) {
  PLN_TRY(pln_te_push(s, &s->from, from));
  return pln_te_push(s, &s->to, to);
}

static pln_status lower_buffer(pln_te_state *s, uint32_t tensor,
                               pln_term buffer) {
  s->tensors[tensor].lowered = buffer;
  return replace(s, s->tensors[tensor].buffer, buffer);
}

/* --------------------------------------------------------------- parameters */

static pln_status refuse(const lowering *w, uint32_t i, const char *why) {
  return pln_diag_error(w->s->engine, PLN_ERR_ARGUMENT, NULL,
                        "lower: argument %u %s", i + 1, why);
}

static pln_status handle_param(lowering *w, uint32_t i, pln_symbol name) {
  pln_type handle;
  PLN_TRY(pln_type_prim(w->s->engine, PLN_DTYPE_NONE, 1, &handle));
  return pln_build_var(w->s->b, name, handle, 0, &w->params[i]);
}

/* A tensor that no stage reads. */
static pln_status unread_tensor(pln_te_state *s, pln_term buffer,
                                uint32_t *out) {
  pln_symbol name = (pln_symbol)(uint32_t)pln_at(s->a, buffer)->u.data;
  uint32_t stage;
  PLN_TRY(pln_te_stage_new(s, PLN_TE_PLACEHOLDER, name, &stage));
  return pln_te_tensor_add(s, stage, 0, buffer, out);
}

static pln_status tensor_arg(lowering *w, uint32_t i) {
  pln_te_state *s = w->s;
  uint32_t tensor = pln_te_tensor_of(s, w->args[i]);
  if (tensor == PLN_NONE)
    PLN_TRY(unread_tensor(s, w->args[i], &tensor));
  if (w->given[tensor])
    return refuse(w, i, "is given twice");
  w->given[tensor] = 1;
  pln_term given = w->args[i];
  bool laid = s->stages[s->tensors[tensor].stage].layouts.n > 0;
  if (laid && given != s->tensors[tensor].buffer)
    return refuse(w, i, "has a layout, and must be the tensor, not a Buffer");
  if (laid ||
      (given == s->tensors[tensor].buffer && has_variable_dim(s, given))) {
    PLN_TRY(similar_buffer(s, tensor, (pln_slice){"global", 6}, !laid,
                           &w->args[i]));
    PLN_TRY(lower_buffer(s, tensor, w->args[i]));
  } else if (given != s->tensors[tensor].buffer) {
    PLN_TRY(lower_buffer(s, tensor, given));
  }
  const pln_term_node *n = pln_at(s->a, s->tensors[tensor].buffer);
  return handle_param(w, i, (pln_symbol)(uint32_t)n->u.data);
}

static pln_status read_arg(lowering *w, const pln_graph *args, uint32_t i) {
  pln_te_state *s = w->s;
  pln_ref ref = pln_node_operands(args, pln_graph_root(args))[i];
  PLN_TRY(pln_analyzer_import(s->a, args, ref, &w->args[i]));
  switch (pln_term_kind(s->a, w->args[i])) {
  case PLN_BUFFER: return tensor_arg(w, i);
  case PLN_VAR:
    for (uint32_t k = 0; k < i; k++)
      if (w->args[k] == w->args[i])
        return refuse(w, i, "is given twice");
    return pln_analyzer_export(s->a, s->b, w->args[i], &w->params[i]);
  default: return refuse(w, i, "must be a tensor or a Var");
  }
}

static pln_status read_args(lowering *w, const pln_graph *args) {
  pln_te_state *s = w->s;
  uint32_t n = pln_node_n_operands(args, pln_graph_root(args));
  w->args = pln_arena_new(&s->arena, n * sizeof *w->args);
  w->params = pln_arena_new(&s->arena, n * sizeof *w->params);
  w->given = pln_arena_new(&s->arena, s->n_tensors + n);
  if (!w->args || !w->params || !w->given)
    return pln_nomem(s->engine);
  memset(w->given, 0, s->n_tensors + n);
  w->n_args = n;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(read_arg(w, args, i));
  return PLN_OK;
}

/* ------------------------------------------------------------------- memory */

/* The storage scope of a stage. Of what threads compute it is found out when
 * storage is flattened (tir.ThreadScopePropagate). */
static pln_slice scope_of(const pln_te_state *s, uint32_t stage) {
  pln_symbol scope = s->stages[stage].scope;
  if (scope && pln_symbol_text(s->engine, scope).size > 0)
    return pln_symbol_text(s->engine, scope);
  return pln_te_is_thread_memory(s, stage) ? (pln_slice){"", 0}
                                           : (pln_slice){"global", 6};
}

/* What has a storage scope has a pointer of that scope. */
static pln_status scope_buffers(lowering *w, uint32_t stage) {
  pln_te_state *s = w->s;
  pln_slice scope = scope_of(s, stage);
  if (strcmp(scope.data, "global") == 0 && s->stages[stage].layouts.n == 0)
    return PLN_OK;
  for (uint32_t i = 0; i < s->stages[stage].n_tensors; i++) {
    uint32_t tensor = s->stages[stage].first_tensor + i;
    pln_term buffer;
    if (w->given[tensor])
      continue;
    PLN_TRY(similar_buffer(s, tensor, scope, false, &buffer));
    PLN_TRY(lower_buffer(s, tensor, buffer));
  }
  return PLN_OK;
}

/* Inits, updates and states of a scan are its outputs. */
static pln_status share_scan(pln_te_state *s, uint32_t stage) {
  uint32_t n = s->stages[stage].n_tensors;
  for (uint32_t i = 0; i < 3 * n; i++) {
    uint32_t tensor = s->stages[stage].body.items[i];
    uint32_t output = s->stages[stage].first_tensor + i % n;
    s->tensors[tensor].alias = output + 1;
    if (i < 2 * n)
      s->stages[s->tensors[tensor].stage].no_memory = true;
    PLN_TRY(replace(s, s->tensors[tensor].buffer, pln_te_buffer(s, output)));
  }
  return PLN_OK;
}

/* Memory is given, or made by a stage. */
static pln_status check_placeholder(lowering *w, uint32_t stage) {
  const pln_te_state *s = w->s;
  uint32_t tensor = s->stages[stage].first_tensor;
  if (w->given[tensor] || s->tensors[tensor].alias)
    return PLN_OK;
  return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                        "lower: the placeholder '%s' is read, but it is not "
                        "among the arguments",
                        pln_te_stage_name(s, stage));
}

static pln_status set_memory(lowering *w) {
  pln_te_state *s = w->s;
  for (uint32_t i = 0; i < s->order.n; i++)
    PLN_TRY(scope_buffers(w, s->order.items[i]));
  for (uint32_t i = 0; i < s->order.n; i++)
    if (s->stages[s->order.items[i]].kind == PLN_TE_SCAN)
      PLN_TRY(share_scan(s, s->order.items[i]));
  for (uint32_t i = 0; i < s->order.n; i++)
    if (s->stages[s->order.items[i]].kind == PLN_TE_PLACEHOLDER)
      PLN_TRY(check_placeholder(w, s->order.items[i]));
  return PLN_OK;
}

/* -------------------------------------------------------------- attachments */

static pln_status note_attachment(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  const pln_te_stage *spec = &s->stages[pln_te_attach_spec(s, stage)];
  if (g->kind == PLN_TE_PLACEHOLDER || g->attach == PLN_ATTACH_INLINED)
    return PLN_OK;
  if (g->scan != PLN_NONE)
    return pln_te_push(s, &s->stages[g->scan].inits, stage);
  if (spec->attach == PLN_ATTACH_SCAN_UPDATE)
    return pln_te_push(s, &s->stages[spec->attach_stage].updates, stage);
  if (spec->attach == PLN_ATTACH_SCOPE)
    return pln_te_push(s, &s->stages[spec->attach_stage].users, stage);
  return PLN_OK;
}

/* A stage is attached to one that is computed behind it. */
static pln_status check_order(pln_te_state *s) {
  uint8_t *done = pln_arena_new(&s->arena, s->n_stages + 1u);
  if (!done)
    return pln_nomem(s->engine);
  memset(done, 0, s->n_stages);
  for (uint32_t i = 0; i < s->order.n; i++) {
    uint32_t stage = s->order.items[i];
    const pln_te_stage *spec = &s->stages[pln_te_attach_spec(s, stage)];
    if (spec->attach == PLN_ATTACH_SCOPE && done[spec->attach_stage])
      return pln_diag_error(
          s->engine, PLN_ERR_ARGUMENT, NULL,
          "schedule: did not find the attachment point of stage '%s': '%s' is "
          "computed before it, and does not read it",
          pln_te_stage_name(s, stage),
          pln_te_stage_name(s, spec->attach_stage));
    done[stage] = 1;
  }
  return PLN_OK;
}

static pln_status note_attachments(pln_te_state *s) {
  PLN_TRY(check_order(s));
  for (uint32_t i = 0; i < s->order.n; i++)
    PLN_TRY(note_attachment(s, s->order.items[i]));
  return PLN_OK;
}

/* --------------------------------------------------------------------- body */

static bool is_at_root(const pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  return g->kind != PLN_TE_PLACEHOLDER && g->attach != PLN_ATTACH_INLINED &&
         g->scan == PLN_NONE &&
         s->stages[pln_te_attach_spec(s, stage)].attach == PLN_ATTACH_ROOT;
}

static pln_status build_body(lowering *w, pln_ref *out) {
  pln_te_state *s = w->s;
  *out = PLN_NONE;
  for (uint32_t i = 0; i < s->order.n; i++)
    if (s->stages[s->order.items[i]].attach != PLN_ATTACH_INLINED)
      PLN_TRY(
          pln_te_provide(s, s->order.items[i], w->options->keep_trivial_loops));
  for (uint32_t i = s->order.n; i-- > 0;)
    if (is_at_root(s, s->order.items[i]))
      PLN_TRY(pln_te_pipeline(s, s->order.items[i], *out, out));
  if (*out != PLN_NONE)
    return PLN_OK;
  pln_term zero = pln_term_int(s->a, PLN_INT32, 1, 0);
  pln_te_stmt nothing = {
      .kind = PLN_EVALUATE, .n = 1, .terms = &zero, .body = PLN_NONE};
  return pln_te_build(s, &nothing, out);
}

/* ----------------------------------------------------------------- function */

static pln_status function_attrs(lowering *w, pln_attrs *out) {
  pln_engine *e = w->s->engine;
  pln_attr entries[3] = {{.kind = PLN_ATTR_BOOL, .v.i = 1},
                         {.kind = PLN_ATTR_STRING},
                         {.kind = PLN_ATTR_BOOL, .v.i = 1}};
  static const char *const keys[] = {"from_legacy_te_schedule", "global_symbol",
                                     "tir.noalias"};
  for (uint32_t i = 0; i < 3; i++)
    PLN_TRY(pln_symbol_intern(e, (pln_slice){keys[i], strlen(keys[i])},
                              &entries[i].name));
  entries[1].v.s = pln_symbol_text(e, w->name);
  return pln_attrs_make(e, w->options->may_alias ? 2 : 3, entries, out);
}

static pln_status bind_params(lowering *w, pln_ref *stmt) {
  pln_te_state *s = w->s;
  pln_ref *list = pln_arena_new(&s->arena, (w->n_args + 1) * sizeof *list);
  uint32_t n = 0;
  if (!list)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < w->n_args; i++) {
    pln_ref both[2] = {w->params[i], PLN_NONE};
    pln_prim bind = {.kind = PLN_BUFFER_BIND, .n = 2, .operands = both};
    if (pln_term_kind(s->a, w->args[i]) != PLN_BUFFER)
      continue;
    PLN_TRY(pln_analyzer_export(s->a, s->b, w->args[i], &both[1]));
    PLN_TRY(pln_build_prim(s->b, &bind, &list[n++]));
  }
  list[n++] = *stmt;
  return n > 1 ? pln_build_seq(s->b, n, list, stmt) : PLN_OK;
}

static pln_status build_function(lowering *w, pln_graph **out) {
  pln_te_state *s = w->s;
  pln_prim spec = {.kind = PLN_PRIM_FUNC};
  pln_body body = {.n_params = w->n_args, .params = w->params};
  pln_ref function;
  PLN_TRY(build_body(w, &body.stmt));
  PLN_TRY(bind_params(w, &body.stmt));
  PLN_TRY(function_attrs(w, &spec.attrs));
  PLN_TRY(pln_build_floating_stmt(s->b, &spec, 1, &body, &function));
  return pln_builder_seal(s->b, function, out);
}

static pln_status build_module(pln_engine *e, pln_symbol name,
                               const pln_graph *function, pln_module **out) {
  pln_module *empty;
  PLN_TRY(pln_module_new(e, &empty));
  pln_status status = pln_module_with(empty, name, function, out);
  pln_module_release(empty);
  return status;
}

static pln_status lower(lowering *w, const pln_graph *args, pln_module **out) {
  pln_graph *function;
  PLN_TRY(pln_te_normalize(w->s));
  PLN_TRY(pln_te_infer_bound(w->s));
  PLN_TRY(read_args(w, args));
  PLN_TRY(set_memory(w));
  PLN_TRY(note_attachments(w->s));
  PLN_TRY(build_function(w, &function));
  pln_status status = build_module(w->s->engine, w->name, function, out);
  pln_graph_release(function);
  return status;
}

pln_status pln_schedule_to_module(const pln_schedule *schedule,
                                  const pln_graph *args, pln_symbol name,
                                  const pln_schedule_lowering *options,
                                  pln_module **out) {
  static const pln_schedule_lowering none = {0};
  lowering w = {.options = options ? options : &none, .name = name};
  *out = NULL;
  if (pln_node_kind(args, pln_graph_root(args)) != PLN_PRIM_ARRAY)
    return pln_diag_error(schedule->engine, PLN_ERR_ARGUMENT, NULL,
                          "lower: the arguments must be an Array");
  PLN_TRY(pln_te_replay(schedule, schedule->n_steps, &w.s));
  w.s->made.n = w.s->n_given = 0;
  pln_status status = lower(&w, args, out);
  pln_te_state_free(w.s);
  return status;
}

/* ------------------------------------------------------------------- bounds */

static pln_status export_ranges(pln_te_state *s, uint32_t n, uint32_t *axes,
                                pln_graph **out) {
  pln_ref *refs = pln_arena_new(&s->arena, (2 * n + 1) * sizeof *refs), root;
  uint32_t m = 0;
  if (!refs)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n; i++) {
    const pln_te_axis *x = &s->axes[i];
    axes[i] = PLN_NONE;
    if (!x->count)
      continue;
    axes[i] = m;
    PLN_TRY(pln_analyzer_export(s->a, s->b, x->low, &refs[2 * m]));
    PLN_TRY(pln_analyzer_export(s->a, s->b, x->count, &refs[2 * m + 1]));
    m++;
  }
  pln_prim array = {.kind = PLN_PRIM_ARRAY, .n = 2 * m, .operands = refs};
  PLN_TRY(pln_build_prim(s->b, &array, &root));
  return pln_builder_seal(s->b, root, out);
}

pln_status pln_schedule_infer_bound(const pln_schedule *schedule,
                                    uint32_t *axes, pln_graph **out) {
  pln_te_state *s;
  *out = NULL;
  PLN_TRY(pln_te_replay(schedule, schedule->n_steps, &s));
  uint32_t n = s->n_axes;
  s->made.n = s->n_given = 0;
  pln_status status = pln_te_normalize(s);
  if (status == PLN_OK)
    status = pln_te_infer_bound(s);
  if (status == PLN_OK)
    status = export_ranges(s, n, axes, out);
  pln_te_state_free(s);
  return status;
}
