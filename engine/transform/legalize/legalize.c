/* legalize.c: Legalize: replaces calls by calls that the target computes.
 *
 * Run by the executor, once per function, in the caller's thread. Requires a
 * verified graph. The attribute of an operator that the option names is a
 * function of (attrs, inputs, types) that returns the call to use, or nil; the
 * last type is the result's. Without one, and for TVM's FTVMLegalize, the
 * operators below have legalisations of their own.
 *
 *     nn.conv2d_transpose(%x, %w, data_layout="NHWC", kernel_layout="IOHW")
 *       =>   %0 = transpose(%x, axes=[0, 3, 1, 2])
 *            %1 = nn.conv2d_transpose(%0, %w)
 *            transpose(%1, axes=[0, 2, 3, 1])
 *
 * Semantics: TVM Legalize, with the legalisations of its generic and x86
 * targets. */

#include "transform/legalize/legalize.h"
#include "transform/layout/op_function.h"

static const struct {
  pln_op op;
  pln_legalize_fn legalize;
} legalizations[] = {
    {PLN_OP_GATHER, pln_legalize_take},
    {PLN_OP_CLIP, pln_legalize_clip},
    {PLN_OP_CONV_2D, pln_legalize_conv2d},
    {PLN_OP_DENSE, pln_legalize_dense},
    {PLN_OP_BATCH_MATMUL, pln_legalize_dense},
    {PLN_OP_CONV_2D_TRANSPOSE, pln_legalize_conv2d_transpose},
    {PLN_OP_CONV_3D_TRANSPOSE, pln_legalize_conv3d_transpose},
    {PLN_OP_CONV_2D_BACKWARD_WEIGHT, pln_legalize_conv2d_backward_weight},
};

/* ------------------------------------------------------------- questions of a
 * legalisation */

pln_type pln_legalize_type(const pln_legalization *l, uint32_t i) {
  return l->graph->nodes[pln_operand(l->graph, l->old, i)].type;
}

pln_type pln_legalize_result(const pln_legalization *l) {
  return l->graph->nodes[l->old].type;
}

const pln_dim *pln_legalize_dims(const pln_legalization *l, uint32_t i,
                                 int32_t rank) {
  pln_type type = pln_legalize_type(l, i);
  if (pln_type_get_kind(l->engine, type) != PLN_TYPE_TENSOR ||
      pln_type_rank(l->engine, type) != rank)
    return NULL;
  const pln_dim *dims = pln_type_dims(l->engine, type);
  for (int32_t k = 0; k < rank; k++)
    if (!PLN_DIM_IS_CONST(dims[k]) || dims[k] < 1)
      return NULL;
  return dims;
}

pln_slice pln_legalize_text(const pln_legalization *l, const char *name) {
  pln_attr value;
  if (pln_relay_get(l->engine, l->graph->nodes[l->old].data, l->attrs, name,
                    &value) != PLN_OK ||
      value.kind != PLN_ATTR_STRING)
    return pln_text("");
  return value.v.s;
}

pln_status pln_legalize_set(const pln_legalization *l, const char *name,
                            pln_attr value, pln_attrs *attrs) {
  return pln_relay_set(l->engine, l->graph->nodes[l->old].data, *attrs, name,
                       value, attrs);
}

pln_status pln_legalize_set_text(const pln_legalization *l, const char *name,
                                 const char *text, pln_attrs *attrs) {
  pln_attr value = {.kind = PLN_ATTR_STRING, .v.s = pln_text(text)};
  return pln_legalize_set(l, name, value, attrs);
}

pln_ref pln_legalize_transpose(pln_relay_builder *r, pln_ref x, uint32_t n,
                               const int64_t *axes) {
  const pln_relay_attr attr = pln_relay_ints("axes", n, axes);
  return pln_relay_call_with(r, PLN_OP_TRANSPOSE, 1, &attr, 1, &x);
}

/* --------------------------------------------------------------------- sweep
 */

typedef struct legalizer {
  pln_compile_target target;
  const char *key;
  bool built_in; /* the key is FTVMLegalize */
} legalizer;

static pln_status legalize_by_table(const legalizer *z, pln_rewrite *rw,
                                    pln_ref old, const pln_ref *args,
                                    pln_ref *answer) {
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_legalization l = {.engine = g->engine,
                              .target = &z->target,
                              .graph = g,
                              .old = old,
                              .rw = rw,
                              .attrs = g->nodes[old].attrs,
                              .n_args = g->nodes[old].count,
                              .args = args};
  *answer = PLN_NONE;
  for (size_t i = 0; i < PLN_COUNT(legalizations); i++)
    if (legalizations[i].op == g->nodes[old].data)
      return legalizations[i].legalize(&l, answer);
  return PLN_OK;
}

/* Operands of the image: copied, because the graph grows. */
static pln_status legalize_call(const legalizer *z, pln_rewrite *rw,
                                pln_ref old, pln_ref image, pln_ref *args,
                                pln_ref *answer) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[image];
  const pln_op_question question = {.rw = rw,
                                    .old = old,
                                    .image = image,
                                    .attrs = n->attrs,
                                    .n_args = n->count,
                                    .args = args};
  bool asked;
  if (n->count)
    memcpy(args, g->operands + n->first, n->count * sizeof *args);
  PLN_TRY(pln_ask_op_function(&question, z->key, answer, &asked));
  if (asked || !z->built_in)
    return PLN_OK;
  return legalize_by_table(z, rw, old, args, answer);
}

static pln_status visit(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  const legalizer *z = ud;
  pln_engine *e = pln_rewrite_old(rw)->engine;
  const pln_node *call = &pln_rewrite_old(rw)->nodes[old];
  pln_ref answer = PLN_NONE;
  bool allowed;
  if (call->kind != PLN_CALL || !call->data ||
      pln_attrs_has_refs(e, call->attrs))
    return PLN_OK;
  size_t size = (call->count + 1u) * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(e, size);
  if (!args)
    return pln_nomem(e);
  pln_status status = legalize_call(z, rw, old, *node, args, &answer);
  pln_mem_free(e, args, size);
  if (status != PLN_OK || answer == PLN_NONE || answer == *node)
    return status;
  PLN_TRY(pln_rewrite_apply(rw, "legalize", &allowed));
  if (allowed)
    *node = answer;
  return PLN_OK;
}

pln_status pln_pass_legalize(pln_pass_run *run) {
  pln_slice key = pln_run_string(run, "legalize_map_attr_name");
  legalizer z = {.target = pln_run_target(run),
                 .key = key.data,
                 .built_in = pln_slice_is(key, "FTVMLegalize")};
  const pln_mutator m = {.ud = &z, .visit = visit, .keeps_types = true};
  return pln_rewrite_function(run, &m);
}
