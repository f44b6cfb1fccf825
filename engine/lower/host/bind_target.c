/* bind_target.c: tir.BindTarget: says in the attribute `target` for which
 * target a function is compiled.
 *
 * Run by the executor. A function that is seen from outside (attribute
 * global_symbol) is bound to the target with its host, others without; one that
 * is marked as the host's is bound to the host; one that has a target gets only
 * the host that it lacks.
 *
 *     tir.BindTarget { target = "llvm -keys=cpu" }
 *     def main(...)   =>   T.func_attr({"target": T.target({"kind": "llvm",
 * ..})})
 *
 * Semantics: TVM's tir.BindTarget. */

#include "ir/attrs/attrs.h"
#include "lower/host/host.h"

static bool has_attr(const pln_graph *g, const char *name) {
  return pln_attrs_find(g->engine, g->nodes[g->root].attrs, name) != NULL;
}

/* The attributes of a function that has a target. */
static pln_status add_host(const pln_graph *g, pln_attrs own, pln_attrs host,
                           pln_attrs *attrs) {
  pln_attrs with_host;
  if (!host || !has_attr(g, "global_symbol") ||
      pln_attrs_find(g->engine, own, "host"))
    return PLN_OK;
  PLN_TRY(pln_attrs_with_dict(g->engine, own, "host", host, &with_host));
  return pln_attrs_with_dict(g->engine, *attrs, "target", with_host, attrs);
}

static pln_status bind_host_function(const pln_graph *g, pln_attrs host,
                                     pln_attrs *attrs) {
  pln_attrs target = host;
  if (!host)
    PLN_TRY(pln_target_read(g->engine, pln_text("llvm"), &target));
  PLN_TRY(pln_attrs_with_dict(g->engine, *attrs, "target", target, attrs));
  return pln_attrs_without(g->engine, *attrs, "tir.is_host_func", attrs);
}

static pln_status bound_attrs(const pln_graph *g, pln_attrs target,
                              pln_attrs *attrs) {
  pln_engine *e = g->engine;
  pln_attrs host = pln_target_host(e, target), own = pln_target_of(g);
  if (own)
    return add_host(g, own, host, attrs);
  if (pln_attrs_int(e, *attrs, "tir.is_host_func", 0) != 0)
    return bind_host_function(g, host, attrs);
  if (!has_attr(g, "global_symbol"))
    PLN_TRY(pln_attrs_without(e, target, "host", &target));
  return pln_attrs_with_dict(e, *attrs, "target", target, attrs);
}

pln_status pln_pass_tir_bind_target(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_attrs attrs = g->nodes[g->root].attrs;
  pln_attrs target;
  pln_slice text = pln_run_string(run, "target");
  if (text.size == 0)
    return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.BindTarget: the option 'target' is missing");
  PLN_TRY(pln_target_read(g->engine, text, &target));
  PLN_TRY(bound_attrs(g, target, &attrs));
  return pln_lower_set_attrs(run, attrs);
}
