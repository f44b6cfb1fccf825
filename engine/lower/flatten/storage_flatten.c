/* storage_flatten.c: tir.StorageFlatten: from the Buffers of tensor expressions
 * to allocated memory of one dimension; and its steps as passes.
 *
 * Run by the executor. The steps, in order: BufferShapeLegalize,
 * BufferStrideLegalize, ThreadScopePropagate, BufferBindUnwrapper,
 * ApplyLayoutTransforms, StorageFlattener, AssertSimplifier. Functions that
 * were not made of tensor expressions stay as they are: tir.FlattenBuffer is
 * for them.
 *
 * Semantics: TVM's tir.StorageFlatten. */

#include "lower/flatten/flatten.h"

static uint32_t data_var(const pln_graph *g, pln_ref buffer) {
  return g->nodes[pln_operand(g, buffer, 0)].data;
}

pln_status pln_external_buffers(const pln_graph *g, pln_idmap **out) {
  PLN_TRY(pln_idmap_new(g->engine, out));
  pln_status status = PLN_OK;
  for (pln_ref r = 0; r < g->n_nodes && status == PLN_OK; r++)
    if (g->nodes[r].kind == PLN_BUFFER_BIND)
      status = pln_idmap_set(*out, data_var(g, pln_operand(g, r, 1)), 1);
  if (status != PLN_OK) {
    pln_idmap_free(*out);
    *out = NULL;
  }
  return status;
}

bool pln_is_external_buffer(const pln_idmap *external, const pln_graph *g,
                            pln_ref buffer) {
  return pln_idmap_get(external, data_var(g, buffer)) != 0;
}

pln_slice pln_attr_key(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_ATTR_STMT
             ? pln_attrs_string(g->engine, g->nodes[stmt].attrs, "attr_key", "")
             : pln_text("");
}

typedef enum flatten_step {
  TEXTURE,
  SHAPE,
  STRIDE,
  THREADS,
  BINDINGS,
  LAYOUTS,
  FLATTEN,
  ASSERTIONS
} flatten_step;

static pln_status run_step(flatten_step step, const pln_graph *function,
                           bool bounds, pln_graph **out) {
  switch (step) {
  case TEXTURE: return pln_texture_flatten(function, out);
  case SHAPE: return pln_buffer_shape_legalize(function, out);
  case STRIDE: return pln_buffer_stride_legalize(function, out);
  case THREADS: return pln_thread_scope_propagate(function, out);
  case BINDINGS: return pln_buffer_bind_unwrapper(function, out);
  case LAYOUTS: return pln_apply_layout_transforms(function, out);
  case FLATTEN: return pln_storage_flattener(function, bounds, out);
  default: return pln_assert_simplifier(function, out);
  }
}

/* Runs the steps from `first` to `last`. */
static pln_status run_steps(pln_pass_run *run, flatten_step first,
                            flatten_step last, bool bounds) {
  pln_graph *now = pln_graph_retain(pln_run_function(run));
  pln_status status = PLN_OK;
  bool legacy = pln_is_legacy_te(now);
  for (int i = (int)first; legacy && i <= (int)last && status == PLN_OK; i++) {
    pln_graph *next = NULL;
    status = run_step((flatten_step)i, now, bounds, &next);
    if (status != PLN_OK)
      continue;
    pln_graph_release(now);
    now = next;
  }
  if (status == PLN_OK)
    pln_run_set_function(run, now);
  else
    pln_graph_release(now);
  return status;
}

pln_status pln_pass_tir_texture_flatten(pln_pass_run *run) {
  return run_steps(run, TEXTURE, TEXTURE, false);
}

pln_status pln_pass_tir_buffer_shape_legalize(pln_pass_run *run) {
  return run_steps(run, SHAPE, SHAPE, false);
}

pln_status pln_pass_tir_buffer_stride_legalize(pln_pass_run *run) {
  return run_steps(run, STRIDE, STRIDE, false);
}

pln_status pln_pass_tir_thread_scope_propagate(pln_pass_run *run) {
  return run_steps(run, THREADS, THREADS, false);
}

pln_status pln_pass_tir_buffer_bind_unwrapper(pln_pass_run *run) {
  return run_steps(run, BINDINGS, BINDINGS, false);
}

pln_status pln_pass_tir_apply_layout_transforms(pln_pass_run *run) {
  return run_steps(run, LAYOUTS, LAYOUTS, false);
}

pln_status pln_pass_tir_storage_flattener(pln_pass_run *run) {
  return run_steps(run, FLATTEN, FLATTEN,
                   pln_run_int(run, "create_bound_attribute") != 0);
}

pln_status pln_pass_tir_assert_simplifier(pln_pass_run *run) {
  return run_steps(run, ASSERTIONS, ASSERTIONS, false);
}

pln_status pln_pass_tir_storage_flatten(pln_pass_run *run) {
  return run_steps(run, SHAPE, ASSERTIONS,
                   pln_run_int(run, "create_bound_attribute") != 0);
}

pln_status pln_pass_tir_flatten_buffer(pln_pass_run *run) {
  pln_graph *out;
  if (pln_is_legacy_te(pln_run_function(run)))
    return PLN_OK;
  PLN_TRY(pln_flatten_blocks(pln_run_function(run),
                             pln_run_int(run, "create_bound_attribute") != 0,
                             &out));
  pln_run_set_function(run, out);
  return PLN_OK;
}
