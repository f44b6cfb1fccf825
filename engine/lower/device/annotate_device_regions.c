/* annotate_device_regions.c: tir.AnnotateDeviceRegions: says of the parts of a
 * function that only a device can run that they run on the function's target;
 * and what passes over such parts share (device_regions.h).
 *
 * Run by the executor. A function whose target has a host runs on the host,
 * apart from these parts.
 *
 *     T.attr(0, "device_scope", 0)
 *         =>   T.attr(T.target({"kind": "cuda", ...}), "target", 0)
 *              T.attr(0, "device_scope", 0)
 *
 * Semantics: TVM's tir.AnnotateDeviceRegions. */

#include "lower/device/device_regions.h"

bool pln_has_attr_key(const pln_graph *g, pln_ref stmt, const char *key) {
  const pln_node *n = &g->nodes[stmt];
  return n->kind == PLN_ATTR_STMT &&
         pln_slice_is(pln_attrs_string(g->engine, n->attrs, "attr_key", ""),
                      key);
}

pln_attrs pln_region_target(const pln_graph *g, pln_ref stmt) {
  const pln_attr *target;
  if (!pln_has_attr_key(g, stmt, "target"))
    return 0;
  target = pln_attrs_find(g->engine, g->nodes[stmt].attrs, "node");
  return target && target->kind == PLN_ATTR_DICT ? target->v.dict : 0;
}

/* Rows of outer scopes come first. */
pln_status pln_outermost_marks(const pln_graph *g,
                               bool (*marks)(const pln_graph *, pln_ref),
                               bool *out) {
  size_t size = g->n_scopes * sizeof(bool);
  bool *inside = pln_mem_zeroed(g->engine, size);
  if (!inside)
    return pln_nomem(g->engine);
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    const pln_scope_row *row = &g->scopes[s];
    bool outer = row->parent != PLN_NONE && inside[row->parent];
    bool mark = row->owner != PLN_NONE && marks(g, row->owner);
    inside[s] = outer || mark;
    if (mark)
      out[row->owner] = !outer;
  }
  pln_mem_free(g->engine, inside, size);
  return PLN_OK;
}

typedef struct annotator {
  const pln_graph *g;
  pln_attrs target; /* without its host */
  bool *outermost;
} annotator;

static bool is_device_only(const pln_graph *g, pln_ref stmt) {
  return pln_has_attr_key(g, stmt, "thread_extent") ||
         pln_has_attr_key(g, stmt, "pipeline_exec_scope") ||
         pln_has_attr_key(g, stmt, "device_scope");
}

static bool marks(const pln_graph *g, pln_ref stmt) {
  return pln_has_attr_key(g, stmt, "target") || is_device_only(g, stmt);
}

static pln_status target_attrs(pln_engine *e, pln_attrs target,
                               pln_attrs *out) {
  pln_attr key = {.kind = PLN_ATTR_STRING, .v.s = pln_text("target")};
  PLN_TRY(pln_symbol_intern(e, pln_text("attr_key"), &key.name));
  PLN_TRY(pln_attrs_with(e, 0, &key, out));
  return pln_attrs_with_dict(e, *out, "node", target, out);
}

static pln_status leave(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                        pln_ref *node) {
  annotator *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref zero[2];
  pln_prim spec = {.kind = PLN_ATTR_STMT, .n = 2, .operands = zero};
  pln_body body = {0};
  if (!x->outermost[stmt] || !is_device_only(x->g, stmt))
    return PLN_OK;
  PLN_TRY(pln_stmt_rebuild(s, stmt, &body.stmt));
  zero[0] = zero[1] = pln_emit_int(&e, PLN_INT32, 0);
  PLN_TRY(e.status);
  PLN_TRY(target_attrs(x->g->engine, x->target, &spec.attrs));
  return pln_build_floating_stmt(e.b, &spec, 1, &body, node);
}

static bool has_device_code(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (is_device_only(g, ref))
      return true;
  return false;
}

static pln_status annotate(annotator *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x, .leave = leave};
  PLN_TRY(pln_outermost_marks(x->g, marks, x->outermost));
  return pln_lower_function(run, &mutator);
}

pln_status pln_pass_tir_annotate_device_regions(pln_pass_run *run) {
  annotator x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t size = x.g->n_nodes * sizeof(bool);
  pln_attrs target = pln_target_of(x.g);
  if (!has_device_code(x.g))
    return PLN_OK;
  if (!target)
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "tir.AnnotateDeviceRegions: the function has no "
                          "target: run tir.BindTarget before");
  if (!pln_target_host(e, target))
    return PLN_OK;
  PLN_TRY(pln_attrs_without(e, target, "host", &x.target));
  x.outermost = pln_mem_zeroed(e, size);
  pln_status status = x.outermost ? annotate(&x, run) : pln_nomem(e);
  pln_mem_free(e, x.outermost, size);
  return status;
}
