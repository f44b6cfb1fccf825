/* to_mixed_precision.c: ToMixedPrecision: computes in a lower float precision
 * where that is fast and safe.
 *
 * Run by the executor, once per function. Requires a verified graph. Each
 * operator has a category (mixed_precision.def). ALWAYS: its float operands are
 * cast to the lower precision. FOLLOW: so are they if all of them are of it, or
 * are variables or constants. NEVER, FOLLOW otherwise, and a clip whose bounds
 * the lower precision cannot represent: they are cast to float32. The types of
 * parameters stay; those of results and of variables that a let binds follow.
 *
 *     nn.relu(nn.dense(%x, %w))
 *       =>   nn.relu(nn.dense(cast(%x, float16), cast(%w, float16)))
 *
 * The operands of calls of functions and constructors keep their dtypes, and so
 * do references, the data of matches, results of functions that are used other
 * than by calling a literal one, and the operands of a call that the lower
 * precision makes ill-typed. The config key
 * relay.ToMixedPrecision.keep_orig_output_dtype casts the results of the
 * function back, if they are a call or a tuple and no let binds anything. An
 * operator's attribute FTVMMixedPrecisionConversionType takes the place of its
 * category.
 *
 * Semantics: TVM ToMixedPrecision, which refuses what keeps its dtypes here. */

#include "transform/precision/cast_tree.h"
#include "transform/precision/mixed_precision.h"
#include "transform/transform.h"

/* An operator without a category. */
typedef struct missing_op {
  pln_op op;
  uint32_t count;
} missing_op;

typedef struct precision_rewrite {
  pln_engine *engine;
  const pln_graph *old;
  pln_dtype to;
  pln_cast_cache casts;
  uint8_t *called; /* by node: a function all of whose uses are calls */
  pln_ref root;    /* the result whose dtype is kept, or PLN_NONE */
  bool referenced; /* other functions refer to this one: its type stays */
  pln_ref *args;   /* of the call being converted */
  uint32_t cap_args;
  missing_op *missing;
  uint32_t n_missing, cap_missing;
  int64_t converted;
} precision_rewrite;

static pln_type old_type(const precision_rewrite *p, pln_ref old) {
  return p->old->nodes[old].type;
}

/* ------------------------------------------------------------------- analysis
 */

/* Marks the functions that are used as callees of calls only. */
static pln_status find_called(precision_rewrite *p) {
  const pln_graph *g = p->old;
  p->called = pln_mem_new(p->engine, g->n_nodes);
  if (!p->called)
    return pln_nomem(p->engine);
  memset(p->called, 1, g->n_nodes);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = pln_has_callee(n); i < n->count; i++)
      p->called[g->operands[n->first + i]] = 0;
  }
  for (pln_scope s = 1; s < g->n_scopes; s++)
    p->called[g->scopes[s].result] = 0;
  return PLN_OK;
}

/* The result of the function; PLN_NONE if lets come before it. */
static pln_ref find_kept_result(const pln_graph *g) {
  const pln_node *root = &g->nodes[g->root];
  if (root->kind != PLN_FUNCTION)
    return PLN_NONE;
  pln_scope_cursor at = {.graph = g};
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (pln_scope_cursor_at(&at, ref) == root->data &&
        g->nodes[ref].kind == PLN_LET)
      return PLN_NONE;
  return g->scopes[root->data].result;
}

/* ---------------------------------------------------------------------- calls
 */

static pln_status load_args(precision_rewrite *p, const pln_rewrite *rw,
                            pln_ref old) {
  const pln_node *n = &p->old->nodes[old];
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->args, &p->cap_args,
                       (size_t)n->count + 1, sizeof *p->args));
  for (uint32_t i = 0; i < n->count; i++)
    p->args[i] = pln_rewrite_image(rw, pln_operand(p->old, old, i));
  return PLN_OK;
}

/* Casts operands from `from` on; to the dtypes that they had if `dtype` is
 * PLN_DTYPE_NONE. */
static pln_status cast_args(precision_rewrite *p, pln_rewrite *rw, pln_ref old,
                            uint32_t from, pln_dtype dtype, bool *changed) {
  *changed = false;
  for (uint32_t i = from; i < p->old->nodes[old].count; i++) {
    pln_cast_target target = {dtype, old_type(p, pln_operand(p->old, old, i))};
    pln_ref arg = p->args[i];
    PLN_TRY(pln_cast_tree(&p->casts, rw, arg, target, &p->args[i]));
    *changed |= p->args[i] != arg;
  }
  return PLN_OK;
}

static pln_status build_call(precision_rewrite *p, pln_rewrite *rw, pln_ref old,
                             pln_attrs attrs, pln_ref *out) {
  const pln_node *n = &p->old->nodes[old];
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  if (n->data)
    return pln_build_call(b, n->data, attrs, n->results, n->count, p->args,
                          out);
  return pln_build_apply(b, p->args[0], attrs, n->results, n->count - 1,
                         p->args + 1, out);
}

/* The operands are cast, if necessary, to the dtypes that they had, or to
 * `dtype`. */
static pln_status keep_call(precision_rewrite *p, pln_rewrite *rw, pln_ref old,
                            pln_dtype dtype, pln_ref *out) {
  const pln_node *n = &p->old->nodes[old];
  bool changed;
  PLN_TRY(load_args(p, rw, old));
  PLN_TRY(cast_args(p, rw, old, pln_has_callee(n), dtype, &changed));
  return changed ? build_call(p, rw, old, n->attrs, out) : PLN_OK;
}

/* True if the float tensors of the operand are of the lower precision, or can
 * be cast without harm. */
static pln_status is_compatible(const precision_rewrite *p,
                                const pln_rewrite *rw, pln_ref arg, bool *out) {
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[arg];
  pln_cast_target target = {.dtype = p->to};
  *out = n->kind == PLN_VAR || n->kind == PLN_CONSTANT;
  if (*out)
    return PLN_OK;
  PLN_TRY(pln_cast_is_needed(p->engine, n->type, target, out));
  *out = !*out;
  return PLN_OK;
}

/* Tensors and tuples; a function or a container has no precision. */
static bool has_precision(const precision_rewrite *p, const pln_rewrite *rw,
                          uint32_t n) {
  const pln_graph *g = pln_rewrite_graph(rw);
  for (uint32_t i = 0; i < n; i++) {
    const pln_node *arg = &g->nodes[p->args[i]];
    pln_type_kind kind = pln_type_get_kind(p->engine, arg->type);
    if (arg->kind != PLN_ABSENT && kind != PLN_TYPE_TENSOR &&
        kind != PLN_TYPE_TUPLE)
      return false;
  }
  return true;
}

/* FOLLOW becomes ALWAYS or NEVER. */
static pln_status decide(const precision_rewrite *p, const pln_rewrite *rw,
                         uint32_t n, pln_precision_category *category) {
  bool compatible = true;
  if (*category != PLN_PRECISION_FOLLOW)
    return PLN_OK;
  for (uint32_t i = 0; i < n && compatible; i++)
    PLN_TRY(is_compatible(p, rw, p->args[i], &compatible));
  *category = compatible ? PLN_PRECISION_ALWAYS : PLN_PRECISION_NEVER;
  return PLN_OK;
}

static pln_status count_missing(precision_rewrite *p, pln_op op) {
  for (uint32_t i = 0; i < p->n_missing; i++) {
    if (p->missing[i].op == op) {
      p->missing[i].count++;
      return PLN_OK;
    }
  }
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->missing, &p->cap_missing,
                       (size_t)p->n_missing + 1, sizeof *p->missing));
  p->missing[p->n_missing++] = (missing_op){op, 1};
  return PLN_OK;
}

static pln_status cast_result(precision_rewrite *p, pln_rewrite *rw,
                              pln_cast_target target, pln_ref *out) {
  return pln_cast_tree(&p->casts, rw, *out, target, out);
}

/* The call with the operands in `args`; PLN_NONE if it would be ill-typed. */
static pln_status try_build(precision_rewrite *p, pln_rewrite *rw, pln_ref old,
                            pln_attrs attrs, pln_ref *out) {
  size_t mark = pln_diag_count(p->engine);
  pln_status status = build_call(p, rw, old, attrs, out);
  if (status != PLN_ERR_TYPE)
    return status;
  pln_diag_drop(p->engine, mark);
  *out = PLN_NONE;
  return PLN_OK;
}

static pln_status convert_result(precision_rewrite *p, pln_rewrite *rw,
                                 pln_ref old, const pln_precision *how,
                                 pln_ref *out) {
  if (how->accumulation != how->output)
    PLN_TRY(cast_result(p, rw, (pln_cast_target){.dtype = how->output}, out));
  if (old != p->root)
    return PLN_OK;
  return cast_result(p, rw, (pln_cast_target){.like = old_type(p, old)}, out);
}

/* True if the conversion changes the call itself, whatever its operands are. */
static bool changes_result(const precision_rewrite *p, pln_ref old,
                           pln_attrs attrs, const pln_precision *how) {
  return attrs != p->old->nodes[old].attrs ||
         how->accumulation != how->output || old == p->root;
}

static pln_status lower_call(precision_rewrite *p, pln_rewrite *rw, pln_ref old,
                             const pln_precision *how, pln_ref *out) {
  pln_attrs attrs;
  bool changed, allowed;
  PLN_TRY(pln_rewrite_apply(rw, "convert", &allowed));
  if (!allowed)
    return keep_call(p, rw, old, PLN_DTYPE_NONE, out);
  PLN_TRY(pln_precision_attrs(p->old, old, how->accumulation, &attrs));
  PLN_TRY(cast_args(p, rw, old, 0, p->to, &changed));
  if (!changed && !changes_result(p, old, attrs, how))
    return PLN_OK;
  p->converted++;
  PLN_TRY(try_build(p, rw, old, attrs, out));
  if (*out == PLN_NONE)
    return keep_call(p, rw, old, PLN_DTYPE_NONE, out);
  return convert_result(p, rw, old, how, out);
}

static pln_status convert_operator(precision_rewrite *p, pln_rewrite *rw,
                                   pln_ref old, pln_ref *out) {
  const pln_node *n = &p->old->nodes[old];
  pln_precision how;
  PLN_TRY(pln_precision_of(p->old, old, p->to, &how));
  if (!how.listed)
    PLN_TRY(count_missing(p, n->data));
  PLN_TRY(load_args(p, rw, old));
  if (!has_precision(p, rw, n->count))
    return keep_call(p, rw, old, PLN_DTYPE_NONE, out);
  PLN_TRY(decide(p, rw, n->count, &how.category));
  if (!pln_precision_has_range(p->old, old, p->to))
    how.category = PLN_PRECISION_NEVER;
  if (how.category == PLN_PRECISION_ALWAYS)
    return lower_call(p, rw, old, &how, out);
  return keep_call(p, rw, old, PLN_FLOAT32, out);
}

static pln_status convert_call(precision_rewrite *p, pln_rewrite *rw,
                               pln_ref old, pln_ref *out) {
  if (p->old->nodes[old].data)
    return convert_operator(p, rw, old, out);
  return keep_call(p, rw, old, PLN_DTYPE_NONE, out);
}

/* ---------------------------------------------------------------- other nodes
 */

/* The variable gets the type of its value. It comes before the value, so its
 * uses are all still to come. */
static pln_status retype_variable(const precision_rewrite *p, pln_rewrite *rw,
                                  pln_ref let) {
  pln_ref var = pln_rewrite_image(rw, pln_operand(p->old, let, 0));
  pln_ref value = pln_rewrite_image(rw, pln_operand(p->old, let, 1));
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_type type = g->nodes[value].type;
  if (g->nodes[var].type == type ||
      type == old_type(p, pln_operand(p->old, let, 1)))
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  b->graph->nodes[var].type = type;
  return PLN_OK;
}

/* The result of the function, a tuple, gets the dtypes that it had. */
static pln_status keep_tuple(precision_rewrite *p, pln_rewrite *rw,
                             pln_ref *out) {
  pln_cast_target target = {.like = old_type(p, p->root)};
  const pln_graph *g = pln_rewrite_graph(rw);
  bool needed = false;
  PLN_TRY(load_args(p, rw, p->root));
  uint32_t n = p->old->nodes[p->root].count;
  for (uint32_t i = 0; i < n && !needed; i++) {
    target.like = pln_type_part_at(p->engine, old_type(p, p->root), i);
    PLN_TRY(pln_cast_is_needed(p->engine, g->nodes[p->args[i]].type, target,
                               &needed));
  }
  if (!needed)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_build_tuple(b, n, p->args, out));
  target.like = old_type(p, p->root);
  return cast_result(p, rw, target, out);
}

/* What a reference holds keeps its type. */
static pln_status keep_reference(precision_rewrite *p, pln_rewrite *rw,
                                 pln_ref old, pln_ref *out) {
  bool changed;
  bool writes = p->old->nodes[old].kind == PLN_REF_WRITE;
  PLN_TRY(load_args(p, rw, old));
  PLN_TRY(cast_args(p, rw, old, writes, PLN_DTYPE_NONE, &changed));
  if (!changed)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  if (writes)
    return pln_build_ref_write(b, p->args[0], p->args[1], out);
  return pln_build_ref_create(b, p->args[0], out);
}

static pln_status convert_node(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  precision_rewrite *p = ud;
  switch (p->old->nodes[old].kind) {
  case PLN_CALL: return convert_call(p, rw, old, node);
  case PLN_LET: return retype_variable(p, rw, old);
  case PLN_REF_CREATE:
  case PLN_REF_WRITE: return keep_reference(p, rw, old, node);
  case PLN_TUPLE: return old == p->root ? keep_tuple(p, rw, node) : PLN_OK;
  }
  return PLN_OK;
}

/* Branches and arms get the dtypes of the first one. A function that is used
 * other than by calling it keeps its type. */
static pln_status convert_scope_result(void *ud, pln_rewrite *rw, pln_scope old,
                                       pln_ref *result) {
  precision_rewrite *p = ud;
  const pln_graph *g = p->old;
  pln_ref owner = g->scopes[old].owner;
  const pln_node *n = &g->nodes[owner];
  bool keeps = owner == g->root ? p->referenced : !p->called[owner];
  if (n->kind == PLN_FUNCTION && keeps)
    return cast_result(
        p, rw, (pln_cast_target){.like = old_type(p, g->scopes[old].result)},
        result);
  if ((n->kind != PLN_IF && n->kind != PLN_MATCH) || n->data == old)
    return PLN_OK;
  pln_ref first = pln_rewrite_image(rw, g->scopes[n->data].result);
  pln_type like = pln_rewrite_graph(rw)->nodes[first].type;
  return cast_result(p, rw, (pln_cast_target){.like = like}, result);
}

/* The data of a Match keep the dtypes of its patterns. */
static pln_status keep_matched_data(void *ud, pln_rewrite *rw, pln_scope old,
                                    pln_scope_action *action) {
  precision_rewrite *p = ud;
  const pln_graph *g = p->old;
  pln_ref owner = g->scopes[old].owner;
  (void)action;
  if (g->nodes[owner].kind != PLN_MATCH || g->nodes[owner].data != old)
    return PLN_OK;
  pln_ref data = pln_operand(g, owner, 0);
  pln_ref image = pln_rewrite_image(rw, data), kept = image;
  PLN_TRY(
      cast_result(p, rw, (pln_cast_target){.like = old_type(p, data)}, &kept));
  if (kept != image)
    pln_rewrite_bind(rw, data, kept);
  return PLN_OK;
}

/* ----------------------------------------------------------------------- pass
 */

static pln_status report_missing(const precision_rewrite *p, int64_t mode) {
  for (uint32_t i = 0; i < p->n_missing && mode < 2; i++) {
    const char *name = pln_op_row(p->engine, p->missing[i].op)->name;
    unsigned n = p->missing[i].count;
    if (mode == 0)
      return pln_diag_error(p->engine, PLN_ERR_UNSUPPORTED, NULL,
                            "operator '%s' has no "
                            "FTVMMixedPrecisionConversionType; it is called "
                            "%u times",
                            name, n);
    pln_diag_warn(p->engine, NULL,
                  "operator '%s' has no FTVMMixedPrecisionConversionType; its "
                  "%u calls follow their operands",
                  name, n);
  }
  return PLN_OK;
}

static pln_status convert_function(precision_rewrite *p, pln_pass_run *run) {
  pln_mutator m = {.ud = p,
                   .replace = convert_node,
                   .enter = keep_matched_data,
                   .leave = convert_scope_result,
                   .retypes_results = true};
  PLN_TRY(find_called(p));
  PLN_TRY(pln_run_is_referenced(run, &p->referenced));
  PLN_TRY(pln_cast_cache_new(p->engine, &p->casts));
  PLN_TRY(pln_rewrite_function(run, &m));
  PLN_TRY(report_missing(p, pln_run_int(run, "missing_op_mode")));
  return p->converted ? pln_run_count(run, "converted", p->converted) : PLN_OK;
}

pln_status pln_pass_to_mixed_precision(pln_pass_run *run) {
  precision_rewrite p = {
      .engine = pln_run_engine(run),
      .old = pln_run_function(run),
      .to = pln_dtype_find(pln_run_string(run, "mixed_precision_type")),
      .root = PLN_NONE};
  pln_attr keep;
  PLN_TRY(pln_context_config_value(
      run->context, "relay.ToMixedPrecision.keep_orig_output_dtype", &keep));
  if (keep.v.i)
    p.root = find_kept_result(p.old);
  pln_status status = convert_function(&p, run);
  pln_cast_cache_free(&p.casts);
  pln_mem_free(p.engine, p.called, p.old->n_nodes);
  pln_mem_free(p.engine, p.args, p.cap_args * sizeof *p.args);
  pln_mem_free(p.engine, p.missing, p.cap_missing * sizeof *p.missing);
  return status;
}
