/* fake_quantization_to_integer.c: FakeQuantizationToInteger: computes with
 * integers what is dequantised, computed in floats, and quantised again.
 *
 * Run by the executor, once per function. Requires a verified graph without
 * divisions by constants (DivToMul). The region of a qnn.quantize is what it is
 * computed from, back to qnn.dequantize calls and constants. If each operator
 * of the region has a conversion (fake_quantization.c), the region is computed
 * from the integers; otherwise it stays, or is an error with hard_fail. Regions
 * consist of calls of operators, tuples and constants.
 *
 *     qnn.quantize(nn.relu(qnn.dequantize(%x, s, z)), s, z)
 *       =>   maximum(%x, cast(z, int8))
 *
 * With use_qat, operators between dequantised operands that are left are
 * converted one by one, and their results dequantised. Operators that
 * optional_qnn_ops names are converted too (nn.softmax). The attribute
 * FTVMFakeQuantizationToInteger of an operator takes the place of its
 * conversion.
 *
 * Semantics: TVM FakeQuantizationToInteger. */

#include "transform/quantize/fake_quantization.h"

/* What a node of the region became. */
typedef struct region_value {
  pln_ref node;
  pln_affine_type type;
  uint32_t n_fields, first; /* of a tuple: the types of its fields */
} region_value;

/* By node of the new graph. */
enum { OPEN = 0, BOUNDED = 1, UNSEEN = 0 };

typedef struct fq_rewrite {
  pln_engine *engine;
  bool hard_fail, alone; /* alone: the sweep of use_qat */
  const pln_attr *optional;
  uint8_t *bounded; /* of the nodes so far: computed back to dequantised values
                     * and constants, by calls and tuples only */
  uint32_t n_bounded, cap_bounded;
  /* The current region: its nodes, operands first, and by node of the new
   * graph, 1 + its number in the region. */
  pln_ref *order, *stack;
  uint32_t n_order, cap_order, n_stack, cap_stack;
  uint32_t *number, cap_number;
  region_value *values;
  uint32_t cap_values;
  pln_affine_type *fields;
  uint32_t n_fields, cap_fields;
  pln_ref root; /* of the region, in the old graph */
  int64_t converted;
} fq_rewrite;

/* --------------------------------------------------------------------- regions
 */

static bool is_op(const pln_node *n, pln_op op) {
  return n->kind == PLN_CALL && n->data == op;
}

/* How many operands of the node belong to the region: a quantised value is
 * looked at no further than its first. */
static uint32_t n_inside(const pln_node *n) {
  if (is_op(n, PLN_OP_QNN_DEQUANTIZE))
    return 0;
  return is_op(n, PLN_OP_QNN_QUANTIZE) ? 1 : n->count;
}

static uint8_t bound_of(const fq_rewrite *f, const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  bool dataflow = (n->kind == PLN_CALL && n->data) || n->kind == PLN_TUPLE ||
                  n->kind == PLN_TUPLE_GET_ITEM || n->kind == PLN_CONSTANT;
  if (!dataflow)
    return OPEN;
  for (uint32_t i = 0; i < n_inside(n); i++)
    if (f->bounded[pln_operand(g, ref, i)] == OPEN)
      return OPEN;
  return BOUNDED;
}

/* Each node is looked at once, when it is new. */
static pln_status note_new_nodes(fq_rewrite *f, const pln_graph *g,
                                 pln_ref last) {
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->bounded, &f->cap_bounded,
                       (size_t)last + 1, sizeof *f->bounded));
  for (; f->n_bounded <= last; f->n_bounded++)
    f->bounded[f->n_bounded] = bound_of(f, g, f->n_bounded);
  return PLN_OK;
}

static pln_status push_region_node(fq_rewrite *f, pln_ref ref) {
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->stack, &f->cap_stack,
                       (size_t)f->n_stack + 1, sizeof *f->stack));
  f->stack[f->n_stack++] = ref;
  return PLN_OK;
}

#define LEAVE 0x80000000u
#define ENTERED UINT32_MAX

static pln_status leave_region_node(fq_rewrite *f, pln_ref ref) {
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->order, &f->cap_order,
                       (size_t)f->n_order + 1, sizeof *f->order));
  f->order[f->n_order++] = ref;
  f->number[ref] = f->n_order;
  return PLN_OK;
}

static pln_status enter_region_node(fq_rewrite *f, const pln_graph *g,
                                    pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  if (f->number[ref] != UNSEEN)
    return PLN_OK;
  f->number[ref] = ENTERED;
  PLN_TRY(push_region_node(f, ref | LEAVE));
  for (uint32_t i = n_inside(n); i > 0; i--)
    PLN_TRY(push_region_node(f, pln_operand(g, ref, i - 1)));
  return PLN_OK;
}

static pln_status grow_numbers(fq_rewrite *f, uint32_t n) {
  uint32_t had = f->cap_number;
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->number, &f->cap_number, n,
                       sizeof *f->number));
  if (f->cap_number > had)
    memset(f->number + had, 0, (f->cap_number - had) * sizeof *f->number);
  return PLN_OK;
}

/* Lists the nodes that `root` is computed from, operands first. */
static pln_status list_region(fq_rewrite *f, const pln_graph *g, pln_ref root) {
  f->n_order = f->n_stack = f->n_fields = 0;
  PLN_TRY(grow_numbers(f, root + 1));
  PLN_TRY(push_region_node(f, root));
  while (f->n_stack > 0) {
    pln_ref ref = f->stack[--f->n_stack];
    PLN_TRY(pln_poll(f->engine));
    if (ref & LEAVE)
      PLN_TRY(leave_region_node(f, ref & ~LEAVE));
    else
      PLN_TRY(enter_region_node(f, g, ref));
  }
  return pln_mem_grow(f->engine, (void **)&f->values, &f->cap_values,
                      f->n_order, sizeof *f->values);
}

static void forget_region(fq_rewrite *f) {
  for (uint32_t i = 0; i < f->n_order; i++)
    f->number[f->order[i]] = UNSEEN;
}

/* ------------------------------------------------------------------ conversion
 */

static bool is_optional(const fq_rewrite *f, const char *name) {
  for (uint32_t i = 0; i < f->optional->count; i++)
    if (pln_slice_is(f->optional->v.strings[i], name))
      return true;
  return false;
}

static pln_fake_quantized_fn find(const fq_rewrite *f, pln_op op) {
  return pln_fake_quantized_find(
      op, is_optional(f, pln_op_row(f->engine, op)->name));
}

static bool has_attribute(const fq_rewrite *f, pln_op op) {
  return pln_op_attr_get(f->engine, op, PLN_FAKE_QUANTIZATION_KEY) != NULL;
}

static const region_value *value_of(const fq_rewrite *f, pln_ref ref) {
  return &f->values[f->number[ref] - 1];
}

/* Operands outside of the region stand for themselves, as constants do. */
static region_value operand_value(const fq_rewrite *f, pln_ref ref) {
  if (ref < f->cap_number && f->number[ref] != UNSEEN)
    return *value_of(f, ref);
  return (region_value){.node = ref, .type = {.scale = PLN_NONE}};
}

static pln_affine_type dequantised_type(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  return (pln_affine_type){
      pln_operand(g, ref, 1), pln_operand(g, ref, 2),
      pln_type_dtype(g->engine, g->nodes[pln_operand(g, ref, 0)].type),
      pln_attrs_int(g->engine, n->attrs, "axis", -1)};
}

static pln_status add_field(fq_rewrite *f, const pln_affine_type *type) {
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->fields, &f->cap_fields,
                       (size_t)f->n_fields + 1, sizeof *f->fields));
  f->fields[f->n_fields++] = *type;
  return PLN_OK;
}

/* *out stays without a node if a field has no affine type. */
static pln_status convert_tuple(fq_rewrite *f, pln_builder *b, pln_ref ref,
                                region_value *out) {
  uint32_t n = b->graph->nodes[ref].count;
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *fields = pln_mem_new(f->engine, size);
  if (!fields)
    return pln_nomem(f->engine);
  pln_status status = PLN_OK;
  bool known = true;
  out->first = f->n_fields;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    region_value field = operand_value(f, pln_operand(b->graph, ref, i));
    fields[i] = field.node;
    known = known && pln_affine_is_known(&field.type);
    status = add_field(f, &field.type);
  }
  if (status == PLN_OK && known) {
    out->n_fields = n;
    status = pln_build_tuple(b, n, fields, &out->node);
  }
  pln_mem_free(f->engine, fields, size);
  return status;
}

static pln_status convert_projection(const fq_rewrite *f, pln_builder *b,
                                     pln_ref ref, region_value *out) {
  region_value tuple = operand_value(f, pln_operand(b->graph, ref, 0));
  uint32_t index = b->graph->nodes[ref].data;
  if (index >= tuple.n_fields)
    return PLN_OK;
  out->type = f->fields[tuple.first + index];
  return pln_build_tuple_get_item(b, tuple.node, index, &out->node);
}

static bool read_call(const fq_rewrite *f, const pln_graph *g, pln_ref ref,
                      pln_fake_quantized_call *c) {
  const pln_node *n = &g->nodes[ref];
  if (n->count > PLN_QNN_MOST_ARGS)
    return false;
  c->q.op = n->data;
  c->q.attrs = n->attrs;
  c->q.type = n->type;
  c->q.n_args = n->count;
  for (uint32_t i = 0; i < n->count; i++) {
    region_value v = operand_value(f, pln_operand(g, ref, i));
    c->q.args[i] = v.node;
    c->types[i] = v.type;
    if (i == 0 && v.n_fields) {
      c->n_fields = v.n_fields;
      c->fields = f->fields + v.first;
    }
  }
  return true;
}

/* True if the quantised value is computed from the pool by other calls, each
 * from the one before it as its first operand. */
static bool is_below_root(const fq_rewrite *f, const pln_graph *g,
                          pln_ref pool) {
  pln_ref root = f->order[f->n_order - 1], at = root;
  if (!is_op(&g->nodes[root], PLN_OP_QNN_QUANTIZE))
    return false;
  while (at > pool && g->nodes[at].kind == PLN_CALL && g->nodes[at].data &&
         g->nodes[at].count) {
    pln_ref user = at;
    at = pln_operand(g, at, 0);
    if (at == pool)
      return user != root;
  }
  return false;
}

static pln_status convert_call(fq_rewrite *f, pln_rewrite *rw, pln_ref ref,
                               const pln_affine_type *region,
                               region_value *out) {
  pln_fake_quantized_call c = {.region = *region,
                               .result = {.scale = PLN_NONE}};
  PLN_TRY(pln_relay_begin(&c.q.r, rw));
  const pln_graph *g = c.q.r.b->graph;
  pln_op op = g->nodes[ref].data;
  pln_fake_quantized_fn convert = find(f, op);
  if (!read_call(f, g, ref, &c))
    return PLN_OK;
  c.below_root = op == PLN_OP_AVG_POOL_2D && is_below_root(f, g, ref);
  if (has_attribute(f, op))
    PLN_TRY(pln_fake_quantized_ask(&c, rw, f->root, &out->node));
  else if (convert)
    out->node = convert(&c);
  if (c.q.r.status == PLN_ERR_TYPE)
    out->node = PLN_NONE;
  else
    PLN_TRY(c.q.r.status);
  if (!c.n_result_fields) {
    out->type = c.result;
    return PLN_OK;
  }
  out->n_fields = c.n_result_fields;
  out->first = f->n_fields;
  for (uint32_t i = 0; i < c.n_result_fields; i++)
    PLN_TRY(add_field(f, &c.result));
  return PLN_OK;
}

/* *out has no node if the node cannot be converted. */
static pln_status convert_node(fq_rewrite *f, pln_rewrite *rw, pln_ref ref,
                               const pln_affine_type *region,
                               region_value *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[ref];
  *out = (region_value){.node = PLN_NONE, .type = {.scale = PLN_NONE}};
  if (n->kind == PLN_CONSTANT) {
    out->node = ref;
    return PLN_OK;
  }
  if (is_op(n, PLN_OP_QNN_DEQUANTIZE)) {
    out->node = pln_operand(g, ref, 0);
    out->type = dequantised_type(g, ref);
    return PLN_OK;
  }
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  if (n->kind == PLN_TUPLE)
    return convert_tuple(f, b, ref, out);
  if (n->kind == PLN_TUPLE_GET_ITEM)
    return convert_projection(f, b, ref, out);
  return convert_call(f, rw, ref, region, out);
}

/* ------------------------------------------------------------ what is
 * converted
 */

static pln_status fail(const fq_rewrite *f, const pln_graph *g, pln_ref ref,
                       const char *why) {
  const pln_node *n = &g->nodes[ref];
  const char *name = n->kind == PLN_CALL && n->data
                         ? pln_op_row(f->engine, n->data)->name
                         : pln_kind_name((pln_kind)n->kind);
  if (!f->hard_fail)
    return PLN_OK;
  return pln_diag_error(f->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "FakeQuantizationToInteger: '%s' %s (hard_fail)", name,
                        why);
}

static bool is_simple(const pln_graph *g, pln_ref ref) {
  return g->nodes[ref].kind == PLN_CONSTANT || g->nodes[ref].kind == PLN_VAR;
}

/* Scales of qnn.quantize are variables or constants. */
static bool has_simple_scale(const pln_graph *g, pln_ref ref) {
  return !is_op(&g->nodes[ref], PLN_OP_QNN_QUANTIZE) ||
         (is_simple(g, pln_operand(g, ref, 1)) &&
          is_simple(g, pln_operand(g, ref, 2)));
}

/* *obstacle: the first node without a conversion, or PLN_NONE; *any: the region
 * has calls. */
static void find_obstacle(const fq_rewrite *f, const pln_graph *g,
                          pln_ref *obstacle, bool *any) {
  *obstacle = PLN_NONE;
  *any = false;
  for (uint32_t i = 0; i + 1 < f->n_order; i++) {
    const pln_node *n = &g->nodes[f->order[i]];
    bool dequantizes = is_op(n, PLN_OP_QNN_DEQUANTIZE);
    if (n->kind != PLN_CALL)
      continue;
    *any |= n->data != PLN_OP_QNN_QUANTIZE;
    bool converts =
        !f->alone && (find(f, n->data) || has_attribute(f, n->data));
    if (!dequantizes && !converts && *obstacle == PLN_NONE)
      *obstacle = f->order[i];
  }
}

static pln_affine_type region_type(const fq_rewrite *f, const pln_graph *g,
                                   pln_ref root) {
  const pln_node *n = &g->nodes[root];
  if (f->alone)
    return (pln_affine_type){.scale = PLN_NONE};
  return (pln_affine_type){pln_operand(g, root, 1), pln_operand(g, root, 2),
                           pln_type_dtype(g->engine, n->type),
                           pln_attrs_int(g->engine, n->attrs, "axis", -1)};
}

/* Converts the nodes of the region. *failed: the one that has no conversion. */
static pln_status convert_nodes(fq_rewrite *f, pln_rewrite *rw, pln_ref root,
                                pln_ref *failed) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_affine_type type = region_type(f, g, root);
  *failed = PLN_NONE;
  for (uint32_t i = 0; i < f->n_order && *failed == PLN_NONE; i++) {
    PLN_TRY(convert_node(f, rw, f->order[i], &type, &f->values[i]));
    if (f->values[i].node == PLN_NONE ||
        !has_simple_scale(pln_rewrite_graph(rw), f->order[i]))
      *failed = f->order[i];
  }
  return PLN_OK;
}

/* The result of one operator is dequantised again. */
static pln_status finish_region(fq_rewrite *f, pln_rewrite *rw,
                                const region_value *result, pln_ref *node) {
  pln_qnn_call q = {0};
  pln_ref out = result->node, old = *node;
  PLN_TRY(pln_relay_begin(&q.r, rw));
  if (f->alone && !pln_affine_is_known(&result->type))
    return PLN_OK;
  if (f->alone)
    out = pln_affine_dequantize(&q, out, &result->type);
  if (pln_qnn_dtype(&q, out) != pln_qnn_dtype(&q, old))
    return fail(f, q.r.b->graph, old, "would have another dtype");
  PLN_TRY(pln_relay_finish(&q.r, "convert", out, node));
  f->converted += *node != old;
  return PLN_OK;
}

static pln_status convert_region(fq_rewrite *f, pln_rewrite *rw,
                                 pln_ref *node) {
  pln_ref obstacle, failed;
  bool any;
  PLN_TRY(list_region(f, pln_rewrite_graph(rw), *node));
  find_obstacle(f, pln_rewrite_graph(rw), &obstacle, &any);
  if (!any)
    return PLN_OK;
  if (obstacle != PLN_NONE)
    return fail(f, pln_rewrite_graph(rw), obstacle,
                f->alone ? "is no dequantised operand" : "has no conversion");
  PLN_TRY(convert_nodes(f, rw, *node, &failed));
  if (failed != PLN_NONE)
    return fail(f, pln_rewrite_graph(rw), failed,
                "cannot be converted with these operands");
  return finish_region(f, rw, &f->values[f->n_order - 1], node);
}

static bool is_region_root(const fq_rewrite *f, const pln_graph *g,
                           pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind != PLN_CALL || !n->data || f->bounded[ref] != BOUNDED)
    return false;
  return f->alone ? pln_fake_quantized_alone(n->data)
                  : n->data == PLN_OP_QNN_QUANTIZE;
}

static pln_status visit_root(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  fq_rewrite *f = ud;
  f->root = old;
  PLN_TRY(note_new_nodes(f, pln_rewrite_graph(rw), *node));
  if (!is_region_root(f, pln_rewrite_graph(rw), *node))
    return PLN_OK;
  pln_status status = convert_region(f, rw, node);
  forget_region(f);
  return status;
}

/* ------------------------------------------------------------------------ pass
 */

static pln_status sweep_regions(pln_pass_run *run, const pln_graph *function,
                                const pln_attr *optional, bool alone) {
  fq_rewrite f = {.engine = pln_run_engine(run),
                  .alone = alone,
                  .hard_fail = pln_run_int(run, "hard_fail") != 0,
                  .optional = optional};
  pln_mutator m = {.ud = &f, .visit = visit_root, .keeps_types = true};
  pln_graph *out;
  pln_engine *e = f.engine;
  pln_status status = pln_graph_rewrite(function, &m, &out);
  pln_mem_free(e, f.bounded, f.cap_bounded * sizeof *f.bounded);
  pln_mem_free(e, f.order, f.cap_order * sizeof *f.order);
  pln_mem_free(e, f.stack, f.cap_stack * sizeof *f.stack);
  pln_mem_free(e, f.number, f.cap_number * sizeof *f.number);
  pln_mem_free(e, f.values, f.cap_values * sizeof *f.values);
  pln_mem_free(e, f.fields, f.cap_fields * sizeof *f.fields);
  PLN_TRY(status);
  pln_run_set_function(run, out);
  return f.converted ? pln_run_count(run, "converted", f.converted) : PLN_OK;
}

pln_status pln_pass_fake_quantization_to_integer(pln_pass_run *run) {
  pln_attr optional;
  if (!pln_run_option(run, "optional_qnn_ops", &optional))
    return PLN_OK;
  PLN_TRY(sweep_regions(run, pln_run_function(run), &optional, false));
  if (!pln_run_int(run, "use_qat"))
    return PLN_OK;
  return sweep_regions(run, run->new_function, &optional, true);
}
