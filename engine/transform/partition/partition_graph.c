/* partition_graph.c: PartitionGraph: makes functions of the regions of other
 * compilers.
 *
 * Run by the executor, once per module. Requires verified graphs. In each
 * function the end of a tuple becomes ends of its fields, annotations for
 * "default" are removed, and each region becomes a function of the module with
 * the attributes Compiler, Primitive, Inline and global_symbol, called in its
 * place. Functions that have the attribute Compiler already are renamed, too:
 * "tvmgen_MOD_NAME".
 *
 *     def @main(%x) { end(relu(begin(%x, compiler="dnnl")), compiler="dnnl") }
 *     =>   def @main(%x) { @tvmgen_default_dnnl_main_0(%x) }
 *
 * Semantics: TVM PartitionGraph: FlattenNestedTuples, RemoveDefaultAnnotations,
 * the partitioner and NameMangleExtFuncs. A region with several results is laid
 * out by order_regions.c. */

#include "ir/rewrite/rewrite.h"
#include "transform/partition/region_function.h"
#include "transform/transform.h"

typedef struct partitioner {
  pln_engine *engine;
  pln_module *module; /* the new module */
  pln_annotation_ops ops;
  pln_slice mod_name;
  bool bind_constants;
  pln_region_set set; /* of the current function */
  pln_region_functions regions;
  pln_ref *call;  /* by region: its call in the new graph, or PLN_NONE */
  pln_ref *field; /* by old node: its projection in the new graph, or 0 */
  pln_ref *scratch;
  pln_scope
      *call_scope; /* by region: the scope of the old graph for its call */
  uint32_t cap_scratch;
  int64_t made;
} partitioner;

/* ----------------------------------------------------- annotations that stay
 */

/* end((a, b))   =>   (end(a), end(b)) */
static pln_status end_fields(partitioner *p, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  const pln_graph *g = pln_rewrite_old(rw);
  pln_ref tuple = pln_rewrite_image(rw, pln_operand(g, old, 0));
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_node n = b->graph->nodes[tuple];
  pln_symbol compiler;
  PLN_TRY(pln_annotation_compiler(&p->ops, &g->nodes[old], &compiler));
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->scratch, &p->cap_scratch,
                       n.count + (size_t)1, sizeof *p->scratch));
  for (uint32_t i = 0; i < n.count; i++)
    PLN_TRY(pln_annotate(&p->ops, b, p->ops.end, compiler,
                         pln_operand(b->graph, tuple, i), &p->scratch[i]));
  return pln_build_tuple(b, n.count, p->scratch, node);
}

static pln_status simplify_annotation(void *ud, pln_rewrite *rw, pln_ref old,
                                      pln_ref *node) {
  partitioner *p = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node *n = &g->nodes[old];
  pln_symbol compiler;
  if (!pln_is_annotation(&p->ops, n))
    return PLN_OK;
  PLN_TRY(pln_annotation_compiler(&p->ops, n, &compiler));
  pln_ref operand = pln_operand(g, old, 0);
  if (compiler == p->ops.fallback)
    *node = pln_rewrite_image(rw, operand);
  else if (n->data == p->ops.end && g->nodes[operand].kind == PLN_TUPLE)
    return end_fields(p, rw, old, node);
  return PLN_OK;
}

/* ------------------------------------------------------------ where to call */

static pln_scope common_scope(const pln_graph *g, pln_scope a, pln_scope b) {
  while (a != b)
    if (a > b) /* an inner scope has a higher number */
      a = g->scopes[a].parent;
    else
      b = g->scopes[b].parent;
  return a;
}

/* A call stands where all ends of its region see it. */
static void find_call_scopes(partitioner *p, const pln_scope *node_scope) {
  const pln_graph *g = p->set.graph;
  for (pln_ref node = 0; node < g->n_nodes; node++) {
    if (!pln_is_call_of_op(&g->nodes[node], p->ops.end) || !p->set.region[node])
      continue;
    pln_scope *call_scope = &p->call_scope[pln_region_of(&p->set, node)];
    *call_scope = *call_scope == PLN_NONE
                      ? node_scope[node]
                      : common_scope(g, *call_scope, node_scope[node]);
  }
}

/* ------------------------------------------------------------------- calling
 */

static pln_status build_call(partitioner *p, pln_rewrite *rw, uint32_t region) {
  const pln_region_function *f = &p->regions.rows[region];
  pln_builder *b = pln_rewrite_builder(rw);
  pln_ref name;
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->scratch, &p->cap_scratch,
                       f->n_args + (size_t)1, sizeof *p->scratch));
  for (uint32_t i = 0; i < f->n_args; i++)
    p->scratch[i] = pln_rewrite_image(rw, p->regions.inputs[f->args + i]);
  const pln_node *root = &f->function->nodes[f->function->root];
  PLN_TRY(pln_build_in(b, rw->scopes[p->call_scope[region]]));
  PLN_TRY(pln_build_global_var(b, f->name, root->type, &name));
  b->graph->nodes[name].flags = root->flags & PLN_NODE_CALL_EFFECT;
  PLN_TRY(
      pln_build_apply(b, name, 0, 0, f->n_args, p->scratch, &p->call[region]));
  return pln_build_in(b, PLN_NONE);
}

/* The result that an end gives: the call, or a field of it. */
static pln_status result_of(partitioner *p, pln_rewrite *rw, uint32_t region,
                            pln_ref result, pln_ref *out) {
  const pln_region_function *f = &p->regions.rows[region];
  uint32_t i = 0;
  *out = p->call[region];
  if (f->n_results == 1)
    return PLN_OK;
  *out = p->field[result];
  if (*out)
    return PLN_OK;
  while (p->regions.outputs[f->results + i] != result)
    i++;
  pln_builder *b = pln_rewrite_builder(rw);
  PLN_TRY(pln_build_in(b, rw->scopes[p->call_scope[region]]));
  PLN_TRY(pln_build_tuple_get_item(b, p->call[region], i, out));
  p->field[result] = *out;
  return pln_build_in(b, PLN_NONE);
}

static pln_status call_region(void *ud, pln_rewrite *rw, pln_ref old,
                              pln_ref *node) {
  partitioner *p = ud;
  const pln_graph *g = p->set.graph;
  if (!pln_is_call_of_op(&g->nodes[old], p->ops.end) || !p->set.region[old])
    return PLN_OK;
  uint32_t region = pln_region_of(&p->set, old);
  if (p->call[region] == PLN_NONE)
    PLN_TRY(build_call(p, rw, region));
  return result_of(p, rw, region, pln_operand(g, old, 0), node);
}

/* ------------------------------------------------------------- one function */

static pln_status add_functions(partitioner *p) {
  for (uint32_t i = 0; i < p->set.count; i++) {
    const pln_region_function *f = &p->regions.rows[i];
    if (!f->function)
      continue;
    if (pln_module_find(p->module, f->name) != PLN_NONE)
      return pln_diag_error(p->engine, PLN_ERR_NAME, NULL,
                            "the module has a function @%s already",
                            pln_symbol_text(p->engine, f->name).data);
    PLN_TRY(pln_module_set(p->module, f->name, f->function));
    p->made++;
  }
  return PLN_OK;
}

static pln_status call_functions(partitioner *p, pln_graph **out) {
  const pln_graph *g = p->set.graph;
  pln_mutator mutator = {.ud = p, .visit = call_region};
  size_t nodes = (size_t)g->n_nodes + 1, n = (size_t)p->set.count + 1;
  pln_scope *scopes = pln_mem_new(p->engine, nodes * sizeof *scopes);
  p->call = pln_mem_new(p->engine, n * sizeof *p->call);
  p->call_scope = pln_mem_new(p->engine, n * sizeof *p->call_scope);
  p->field = pln_mem_zeroed(p->engine, nodes * sizeof *p->field);
  pln_status status = PLN_OK;
  if (scopes && p->call && p->call_scope && p->field) {
    memset(p->call, 0xff, n * sizeof *p->call);
    memset(p->call_scope, 0xff, n * sizeof *p->call_scope);
    pln_graph_node_scopes(g, scopes);
    find_call_scopes(p, scopes);
    status = pln_graph_rewrite(g, &mutator, out);
  } else {
    status = pln_nomem(p->engine);
  }
  pln_mem_free(p->engine, scopes, nodes * sizeof *scopes);
  pln_mem_free(p->engine, p->call, n * sizeof *p->call);
  pln_mem_free(p->engine, p->call_scope, n * sizeof *p->call_scope);
  pln_mem_free(p->engine, p->field, nodes * sizeof *p->field);
  return status;
}

/* Makes functions of the regions of a graph that is in order. */
static pln_status outline_regions(partitioner *p, pln_symbol name,
                                  const pln_graph *g, pln_graph **out) {
  p->regions =
      (pln_region_functions){.set = &p->set,
                             .bind_constants = p->bind_constants,
                             .mod_name = p->mod_name,
                             .function = pln_symbol_text(p->engine, name)};
  pln_status status = pln_region_set_find(&p->set, g, &p->ops);
  if (status == PLN_OK)
    status = pln_region_functions_make(&p->regions);
  if (status == PLN_OK)
    status = add_functions(p);
  if (status == PLN_OK)
    status = call_functions(p, out);
  pln_region_functions_free(&p->regions);
  pln_region_set_free(&p->set);
  return status;
}

static pln_status put_in_order(partitioner *p, const pln_graph *g,
                               pln_graph **out) {
  pln_region_set set;
  pln_status status = pln_region_set_find(&set, g, &p->ops);
  if (status == PLN_OK)
    status = pln_regions_put_in_order(&set, out);
  pln_region_set_free(&set);
  return status;
}

static pln_status partition(partitioner *p, pln_symbol name,
                            const pln_graph *old) {
  pln_mutator mutator = {.ud = p, .visit = simplify_annotation};
  pln_graph *plain = NULL, *ordered = NULL, *out = NULL;
  pln_status status = pln_graph_rewrite(old, &mutator, &plain);
  if (status == PLN_OK)
    status = put_in_order(p, plain, &ordered);
  if (status == PLN_OK)
    status = outline_regions(p, name, ordered, &out);
  if (status == PLN_OK)
    status = pln_module_set(p->module, name, out);
  pln_graph_release(out);
  pln_graph_release(ordered);
  pln_graph_release(plain);
  return status;
}

/* ----------------------------------------------------------------- the module
 */

static pln_status partition_all(partitioner *p, const pln_module *module) {
  for (uint32_t i = 0; i < pln_module_count(module); i++) {
    const pln_graph *g = pln_module_function_at(module, i);
    if (g->nodes[g->root].kind == PLN_FUNCTION &&
        pln_has_annotations(g, &p->ops))
      PLN_TRY(partition(p, pln_module_name_at(module, i), g));
  }
  return PLN_OK;
}

pln_status pln_pass_partition_graph(pln_pass_run *run) {
  partitioner p = {.engine = pln_run_engine(run),
                   .mod_name = pln_run_string(run, "mod_name"),
                   .bind_constants = pln_run_int(run, "bind_constants") != 0};
  pln_module *renamed = NULL;
  PLN_TRY(pln_annotation_ops_find(p.engine, &p.ops));
  PLN_TRY(pln_rename_compiler_functions(run->module, p.mod_name, &renamed));
  pln_status status = pln_module_copy(renamed, &p.module);
  if (status == PLN_OK)
    status = partition_all(&p, renamed);
  pln_mem_free(p.engine, p.scratch, p.cap_scratch * sizeof *p.scratch);
  pln_module_release(renamed);
  if (status != PLN_OK) {
    pln_module_release(p.module);
    return status;
  }
  pln_run_set_module(run, p.module);
  return pln_run_count(run, "functions", p.made);
}
