/* sequence_to_split.c: SequenceToSplit: replaces a sequence of parts by a
 * Split.
 *
 * Run by the executor, once per function. Requires a verified graph. Applies to
 * split_to_sequence of known sizes whose users all are sequence_at of a known
 * position.
 *
 *     sequence_at(split_to_sequence(%x, 64, axis=2), 0)
 *       =>   split(%x, [64, 64, 64], axis=2).0
 *
 * Source: onnxscript's rewrite rules for SplitToSequence and SequenceAt. */

#include "ir/analysis/users.h"
#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/transform.h"

enum { MAX_PARTS = 64 };

typedef struct sequence_rewrite {
  pln_engine *engine;
  const pln_graph *graph;
  pln_users u;
  pln_ref *split; /* by old split_to_sequence: the Split; or PLN_NONE */
  int64_t replaced;
} sequence_rewrite;

static bool is_plain_call(const pln_graph *g, pln_ref node, pln_op op) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data == op && n->results == 0 &&
         n->count > 0 && !(n->flags & PLN_NODE_KEEP) &&
         pln_call_is_valid(g, node);
}

static const pln_tensor *constant_arg(const pln_graph *g, pln_ref node,
                                      uint32_t i) {
  if (i >= g->nodes[node].count)
    return NULL;
  const pln_node *n = &g->nodes[pln_operand(g, node, i)];
  if (n->kind != PLN_CONSTANT || g->tensors[n->data]->external)
    return NULL;
  return g->tensors[n->data];
}

/* Parts of `size`, the last one perhaps smaller. */
static uint32_t equal_parts(int64_t extent, int64_t size, int64_t *sizes) {
  uint32_t n = 0;
  if (size < 1 || extent < 1 || (extent - 1) / size >= MAX_PARTS)
    return 0;
  for (int64_t at = 0; at < extent; at += size)
    sizes[n++] = extent - at < size ? extent - at : size;
  return n;
}

/* Reads the sizes of the parts; 0 if they are not known or do not fit. */
static uint32_t read_sizes(const sequence_rewrite *s, pln_ref node,
                           int64_t *axis, int64_t *sizes) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[node];
  const pln_tensor *t = constant_arg(g, node, 1);
  pln_type type = g->nodes[pln_operand(g, node, 0)].type;
  int64_t rank = pln_type_rank(s->engine, type), size, sum = 0;
  *axis = pln_attrs_int(s->engine, n->attrs, "axis", 0);
  *axis += *axis < 0 ? rank : 0;
  if (!t || *axis < 0 || *axis >= rank || t->count > MAX_PARTS)
    return 0;
  pln_dim extent = pln_type_dims(s->engine, type)[*axis];
  if (!PLN_DIM_IS_CONST(extent))
    return 0;
  if (t->rank == 0)
    return pln_tensor_int(t, 0, &size) ? equal_parts(extent, size, sizes) : 0;
  for (size_t i = 0; i < t->count; i++) {
    if (!pln_tensor_int(t, i, &sizes[i]) || sizes[i] < 0)
      return 0;
    sum += sizes[i];
  }
  return sum == extent ? (uint32_t)t->count : 0;
}

/* The position that a sequence_at takes of n; -1 if it is not known. */
static int64_t position_of(const sequence_rewrite *s, pln_ref node,
                           uint32_t n) {
  const pln_tensor *t = constant_arg(s->graph, node, 1);
  int64_t i;
  if (!is_plain_call(s->graph, node, PLN_OP_SEQUENCE_AT) || !t ||
      t->count != 1 || !pln_tensor_int(t, 0, &i))
    return -1;
  i += i < 0 ? n : 0;
  return i < n ? i : -1;
}

static bool can_be_split(const sequence_rewrite *s, pln_ref node, uint32_t n) {
  for (uint32_t i = s->u.first[node]; i < s->u.first[node + 1]; i++)
    if (position_of(s, s->u.users[i], n) < 0)
      return false;
  return n > 0 && pln_users_count(&s->u, node) > 0 && !s->u.is_result[node];
}

static pln_status build_sequence_split(sequence_rewrite *s, pln_rewrite *rw,
                                       pln_ref old) {
  int64_t sizes[MAX_PARTS], dims[1], axis;
  uint32_t n = read_sizes(s, old, &axis, sizes);
  bool allowed;
  pln_tensor *tensor;
  pln_attrs attrs;
  pln_attr entry = {.kind = PLN_ATTR_INT};
  pln_ref args[2];
  if (!pln_attrs_int(s->engine, s->graph->nodes[old].attrs, "keepdims", 1) ||
      !can_be_split(s, old, n))
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "sequence", &allowed));
  pln_builder *b = allowed ? pln_rewrite_builder(rw) : NULL;
  if (!b)
    return allowed ? PLN_ERR_NOMEM : PLN_OK;
  dims[0] = n;
  entry.v.i = axis;
  PLN_TRY(pln_symbol_intern(s->engine, pln_text("axis"), &entry.name));
  PLN_TRY(pln_attrs_make(s->engine, 1, &entry, &attrs));
  args[0] = pln_rewrite_image(rw, pln_operand(s->graph, old, 0));
  PLN_TRY(pln_tensor_from_bytes(s->engine, PLN_INT64, 1, dims, sizes,
                                n * sizeof *sizes, &tensor));
  pln_status status = pln_build_constant(b, tensor, &args[1]);
  pln_tensor_release(tensor);
  PLN_TRY(status);
  s->replaced++;
  return pln_build_call(b, PLN_OP_SPLIT, attrs, n, 2, args, &s->split[old]);
}

static pln_status visit_sequence(void *ud, pln_rewrite *rw, pln_ref old,
                                 pln_ref *node) {
  sequence_rewrite *s = ud;
  const pln_graph *g = s->graph;
  if (is_plain_call(g, old, PLN_OP_SPLIT_TO_SEQUENCE))
    return build_sequence_split(s, rw, old);
  if (!is_plain_call(g, old, PLN_OP_SEQUENCE_AT))
    return PLN_OK;
  pln_ref split = s->split[pln_operand(g, old, 0)];
  if (split == PLN_NONE)
    return PLN_OK;
  uint32_t n = pln_rewrite_graph(rw)->nodes[split].results;
  int64_t i = position_of(s, old, n);
  PLN_TRY(pln_build_tuple_get_item(pln_rewrite_builder(rw), split, (uint32_t)i,
                                   node));
  return pln_keep_type(rw, *node, g->nodes[old].type);
}

static pln_status split_sequences(sequence_rewrite *s, pln_graph **out) {
  pln_mutator m = {.ud = s, .visit = visit_sequence, .keeps_types = true};
  size_t n = s->graph->n_nodes + (size_t)1;
  PLN_TRY(pln_users_begin(&s->u, s->graph));
  if (!(s->split = pln_mem_new(s->engine, n * sizeof *s->split)))
    return pln_nomem(s->engine);
  memset(s->split, 0xff, n * sizeof *s->split);
  return pln_graph_rewrite(s->graph, &m, out);
}

static bool has_sequences(const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (is_plain_call(g, i, PLN_OP_SPLIT_TO_SEQUENCE))
      return true;
  return false;
}

pln_status pln_pass_sequence_to_split(pln_pass_run *run) {
  sequence_rewrite s = {.engine = pln_run_engine(run),
                        .graph = pln_run_function(run)};
  pln_graph *out;
  if (!has_sequences(s.graph))
    return PLN_OK;
  pln_status status = split_sequences(&s, &out);
  pln_users_end(&s.u);
  pln_mem_free(s.engine, s.split,
               (s.graph->n_nodes + (size_t)1) * sizeof *s.split);
  PLN_TRY(status);
  if (s.replaced)
    status = pln_run_count(run, "split", s.replaced);
  if (status == PLN_OK)
    pln_run_set_function(run, out);
  else
    pln_graph_release(out);
  return status;
}
