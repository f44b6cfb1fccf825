/* region_function.c: makes functions of annotated regions: what the begins take
 * are the parameters, what the ends give are the results.
 *
 * Called by PartitionGraph, once per function. What two begins take of the same
 * value is one parameter. With bind_constants, constants are not passed but
 * copied. Several results are a tuple.
 *
 *     end(relu(begin(%x)))   =>
 *     def @tvmgen_default_dnnl_main_0(%dnnl_0_i0, global_symbol="tvmgen_...",
 *       Primitive=1, Compiler="dnnl", Inline=1) { nn.relu(%dnnl_0_i0) }
 *
 * Semantics: TVM's Partitioner::CreateFunction and NameMangleExtFuncs. */

#include "transform/partition/region_function.h"

#include <stdio.h>

#include "ir/graph/describe.h"

static pln_engine *engine_of(const pln_region_functions *f) {
  return f->set->ops.engine;
}

static pln_status add_ref(const pln_region_functions *f, pln_ref **list,
                          uint32_t *n, uint32_t *cap, pln_ref ref) {
  PLN_TRY(pln_mem_grow(engine_of(f), (void **)list, cap, *n + (size_t)1,
                       sizeof **list));
  (*list)[(*n)++] = ref;
  return PLN_OK;
}

/* -------------------------------------------------------------------- names */

static pln_status intern_as_c_name(pln_buffer *text, pln_symbol *out) {
  for (size_t i = 0; i < text->size; i++) {
    char c = text->data[i];
    bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                (c >= '0' && c <= '9') || c == '_';
    text->data[i] = kept ? c : '_';
  }
  return pln_symbol_intern(text->engine, (pln_slice){text->data, text->size},
                           out);
}

pln_status pln_mangle_name(pln_engine *engine, pln_slice mod_name,
                           pln_slice name, pln_symbol *out) {
  pln_buffer text;
  pln_buffer_init(&text, engine);
  pln_status status =
      pln_buffer_printf(&text, "tvmgen_%.*s_%.*s", (int)mod_name.size,
                        mod_name.data, (int)name.size, name.data);
  if (status == PLN_OK)
    status = intern_as_c_name(&text, out);
  pln_buffer_free(&text);
  return status;
}

static pln_status name_region(const pln_region_functions *f, uint32_t region,
                              pln_symbol *out) {
  pln_engine *e = engine_of(f);
  pln_slice compiler = pln_symbol_text(e, f->set->regions[region].compiler);
  pln_buffer text;
  pln_buffer_init(&text, e);
  pln_status status = pln_buffer_printf(
      &text, "%.*s_%.*s_%u", (int)compiler.size, compiler.data,
      (int)f->function.size, f->function.data, region);
  if (status == PLN_OK)
    status =
        pln_mangle_name(e, f->mod_name, (pln_slice){text.data, text.size}, out);
  pln_buffer_free(&text);
  return status;
}

/* ------------------------------------------------------- inputs and outputs */

static void find_constants(pln_region_functions *f) {
  const pln_graph *g = f->set->graph;
  for (pln_ref node = 0; node < g->n_nodes; node++) {
    const pln_node *n = &g->nodes[node];
    f->constant[node] = n->kind == PLN_CONSTANT || n->kind == PLN_TUPLE;
    for (uint32_t i = 0; i < n->count && n->kind == PLN_TUPLE; i++)
      f->constant[node] &= f->constant[g->operands[n->first + i]];
  }
}

/* What a begin takes, behind all annotations. */
static pln_ref source_of(const pln_region_functions *f, pln_ref begin) {
  const pln_graph *g = f->set->graph;
  while (pln_is_annotation(&f->set->ops, &g->nodes[begin]))
    begin = pln_operand(g, begin, 0);
  return begin;
}

/* A parameter for each value that begins take; f->param of the others' values
 * is set already. */
static pln_status visit_begin(pln_region_functions *f, pln_ref begin) {
  pln_ref source = source_of(f, begin);
  if (pln_region_begin_is_inside(f->set, begin)) {
    pln_status status = pln_diag_error(
        engine_of(f), PLN_ERR_TYPE, NULL,
        "a region of a compiler takes its own result; MergeCompilerRegions "
        "removes such annotations");
    pln_note_node(f->set->graph, begin);
    return status;
  }
  uint32_t known = f->param[source];
  if (known < f->n_found && source_of(f, f->found[known]) == source)
    return PLN_OK;
  f->param[source] = f->n_found;
  return add_ref(f, &f->found, &f->n_found, &f->cap_found, begin);
}

static pln_status push(pln_region_functions *f, pln_ref node) {
  return add_ref(f, &f->stack, &f->n_stack, &f->cap_stack, node);
}

/* Lists the begins below `root` in post-order, in f->found. */
static pln_status find_begins(pln_region_functions *f, uint32_t region,
                              pln_ref root) {
  const pln_graph *g = f->set->graph;
  PLN_TRY(push(f, root));
  while (f->n_stack > 0) {
    pln_ref node = f->stack[--f->n_stack];
    if (pln_region_of(f->set, node) != region || f->seen[node] == region + 1)
      continue;
    f->seen[node] = region + 1;
    if (pln_is_call_of_op(&g->nodes[node], f->set->ops.begin)) {
      PLN_TRY(visit_begin(f, node));
      continue;
    }
    for (uint32_t i = g->nodes[node].count; i-- > 0;)
      PLN_TRY(push(f, pln_operand(g, node, i)));
  }
  return PLN_OK;
}

static bool is_listed(const pln_region_functions *f,
                      const pln_region_function *row, pln_ref node) {
  return f->param[node] >= row->results &&
         f->param[node] - row->results < row->n_results &&
         f->outputs[f->param[node]] == node;
}

/* The results, each once, in the order of the ends. */
static pln_status find_outputs(pln_region_functions *f, uint32_t region) {
  const pln_graph *g = f->set->graph;
  pln_region_function *row = &f->rows[region];
  row->results = f->n_outputs;
  for (pln_ref end = f->set->regions[region].ends.first; end != PLN_NONE;
       end = f->set->next[end]) {
    pln_ref result = pln_operand(g, end, 0);
    if (!f->set->order[end] || is_listed(f, row, result))
      continue;
    f->param[result] = f->n_outputs;
    PLN_TRY(add_ref(f, &f->outputs, &f->n_outputs, &f->cap_outputs, result));
    row->n_results++;
  }
  return PLN_OK;
}

/* The result of the end that comes first in post-order. */
static pln_ref first_result(const pln_region_functions *f, uint32_t region) {
  pln_ref first = PLN_NONE;
  for (pln_ref end = f->set->regions[region].ends.first; end != PLN_NONE;
       end = f->set->next[end])
    if (first == PLN_NONE || f->set->order[end] < f->set->order[first])
      first = end;
  return pln_operand(f->set->graph, first, 0);
}

/* ------------------------------------------------------------------ building
 */

/* Numbers the begins of the region. */
static void number_begins(pln_region_functions *f, uint32_t region) {
  uint32_t place = 0;
  for (pln_ref begin = f->set->regions[region].begins.first; begin != PLN_NONE;
       begin = f->set->next[begin])
    f->place[begin] = place++;
}

static pln_status build_param(pln_region_functions *f, uint32_t region,
                              pln_builder *b, pln_ref begin, pln_ref *out) {
  char text[96];
  pln_symbol name;
  pln_slice compiler =
      pln_symbol_text(engine_of(f), f->set->regions[region].compiler);
  int size = snprintf(text, sizeof text, "%.60s_%u_i%u", compiler.data, region,
                      f->place[begin]);
  PLN_TRY(
      pln_symbol_intern(engine_of(f), (pln_slice){text, (size_t)size}, &name));
  return pln_build_param(b, name, f->set->graph->nodes[begin].type, 0, out);
}

static bool is_bound(const pln_region_functions *f, pln_ref begin) {
  return f->bind_constants && f->constant[pln_operand(f->set->graph, begin, 0)];
}

/* Parameters come before constants, which are nodes of the body. */
static pln_status build_inputs(pln_region_functions *f, uint32_t region,
                               pln_builder *b) {
  const pln_graph *g = f->set->graph;
  pln_region_function *row = &f->rows[region];
  pln_ref image;
  row->args = f->n_inputs;
  number_begins(f, region);
  for (uint32_t i = 0; i < f->n_found; i++) {
    if (is_bound(f, f->found[i]))
      continue;
    PLN_TRY(build_param(f, region, b, f->found[i], &image));
    PLN_TRY(pln_import_seed(b, g, f->found[i], image));
    PLN_TRY(add_ref(f, &f->inputs, &f->n_inputs, &f->cap_inputs,
                    pln_operand(g, f->found[i], 0)));
    row->n_args++;
  }
  for (uint32_t i = 0; i < f->n_found; i++) {
    if (!is_bound(f, f->found[i]))
      continue;
    PLN_TRY(pln_build_import(b, g, pln_operand(g, f->found[i], 0), &image));
    PLN_TRY(pln_import_seed(b, g, f->found[i], image));
  }
  return PLN_OK;
}

/* The other begins of the region are the parameters of the same values. */
static pln_status seed_begins(pln_region_functions *f, uint32_t region,
                              pln_builder *b) {
  const pln_graph *g = f->set->graph;
  for (pln_ref begin = f->set->regions[region].begins.first; begin != PLN_NONE;
       begin = f->set->next[begin]) {
    pln_ref image;
    if (f->seen[begin] != region + 1)
      continue;
    pln_ref known = f->found[f->param[source_of(f, begin)]];
    PLN_TRY(pln_build_import(b, g, known, &image));
    PLN_TRY(pln_import_seed(b, g, begin, image));
  }
  return PLN_OK;
}

static pln_status build_results(pln_region_functions *f, uint32_t region,
                                pln_builder *b, pln_ref *out) {
  const pln_region_function *row = &f->rows[region];
  f->n_stack = 0;
  for (uint32_t i = 0; i < row->n_results; i++) {
    PLN_TRY(
        pln_build_import(b, f->set->graph, f->outputs[row->results + i], out));
    PLN_TRY(push(f, *out));
  }
  uint32_t n = f->n_stack;
  f->n_stack = 0;
  return n == 1 ? PLN_OK : pln_build_tuple(b, n, f->stack, out);
}

static pln_status function_attrs(const pln_region_functions *f, uint32_t region,
                                 pln_attrs *out) {
  pln_engine *e = engine_of(f);
  pln_attr entries[] = {{.kind = PLN_ATTR_STRING},
                        {.kind = PLN_ATTR_INT, .v.i = 1},
                        {.kind = PLN_ATTR_STRING},
                        {.kind = PLN_ATTR_INT, .v.i = 1}};
  static const char *const names[] = {"global_symbol", "Primitive", "Compiler",
                                      "Inline"};
  entries[0].v.s = pln_symbol_text(e, f->rows[region].name);
  entries[2].v.s = pln_symbol_text(e, f->set->regions[region].compiler);
  for (size_t i = 0; i < PLN_COUNT(entries); i++)
    PLN_TRY(pln_symbol_intern(e, pln_text(names[i]), &entries[i].name));
  return pln_attrs_make(e, PLN_COUNT(entries), entries, out);
}

static pln_status build_body(pln_region_functions *f, uint32_t region,
                             pln_builder *b) {
  pln_scope body;
  pln_ref result, function;
  pln_attrs attrs;
  PLN_TRY(pln_build_open(b, &body));
  PLN_TRY(build_inputs(f, region, b));
  PLN_TRY(seed_begins(f, region, b));
  PLN_TRY(build_results(f, region, b, &result));
  PLN_TRY(function_attrs(f, region, &attrs));
  PLN_TRY(pln_build_end(b, body, result, 0));
  PLN_TRY(pln_build_function(b, body, attrs, 0, &function));
  return pln_builder_seal(b, function, &f->rows[region].function);
}

static pln_status make_function(pln_region_functions *f, uint32_t region) {
  pln_builder *b;
  pln_region_function *row = &f->rows[region];
  f->n_found = 0;
  PLN_TRY(name_region(f, region, &row->name));
  PLN_TRY(find_begins(f, region, first_result(f, region)));
  for (pln_ref end = f->set->regions[region].ends.first; end != PLN_NONE;
       end = f->set->next[end])
    PLN_TRY(find_begins(f, region, pln_operand(f->set->graph, end, 0)));
  PLN_TRY(pln_builder_new(engine_of(f), &b));
  pln_status status = find_outputs(f, region);
  if (status == PLN_OK)
    status = build_body(f, region, b);
  pln_builder_free(b);
  return status;
}

static pln_status begin(pln_region_functions *f) {
  pln_engine *e = engine_of(f);
  size_t nodes = (size_t)f->set->graph->n_nodes + 1;
  f->rows = pln_mem_zeroed(e, ((size_t)f->set->count + 1) * sizeof *f->rows);
  f->seen = pln_mem_zeroed(e, nodes * sizeof *f->seen);
  f->param = pln_mem_zeroed(e, nodes * sizeof *f->param);
  f->place = pln_mem_zeroed(e, nodes * sizeof *f->place);
  f->constant = pln_mem_zeroed(e, nodes);
  if (!f->rows || !f->seen || !f->place || !f->param || !f->constant)
    return pln_nomem(e);
  find_constants(f);
  return PLN_OK;
}

pln_status pln_region_functions_make(pln_region_functions *f) {
  PLN_TRY(begin(f));
  for (uint32_t region = 0; region < f->set->count; region++) {
    const pln_annotated_region *r = &f->set->regions[region];
    if (r->merged == region && r->ends.first != PLN_NONE)
      PLN_TRY(make_function(f, region));
  }
  return PLN_OK;
}

void pln_region_functions_free(pln_region_functions *f) {
  pln_engine *e = engine_of(f);
  size_t nodes = (size_t)f->set->graph->n_nodes + 1;
  for (uint32_t i = 0; f->rows && i < f->set->count; i++)
    pln_graph_release(f->rows[i].function);
  pln_mem_free(e, f->rows, ((size_t)f->set->count + 1) * sizeof *f->rows);
  pln_mem_free(e, f->seen, nodes * sizeof *f->seen);
  pln_mem_free(e, f->param, nodes * sizeof *f->param);
  pln_mem_free(e, f->place, nodes * sizeof *f->place);
  pln_mem_free(e, f->constant, nodes);
  pln_mem_free(e, f->inputs, f->cap_inputs * sizeof *f->inputs);
  pln_mem_free(e, f->outputs, f->cap_outputs * sizeof *f->outputs);
  pln_mem_free(e, f->found, f->cap_found * sizeof *f->found);
  pln_mem_free(e, f->stack, f->cap_stack * sizeof *f->stack);
}
