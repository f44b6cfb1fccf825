/* region_numbers.c: operands of a tuple that are numbers, which become one
 * vector with each member's number along its part of the axis. Called by
 * region_axis.c and region_build.c.
 *
 * A number is a constant of one element, or the product of one with a number
 * that the members share, such as the scale of a quantised product:
 *
 *     multiply(%a, multiply(%s, 2)), multiply(%b, multiply(%s, 3))
 *       =>   multiply([%a %b], multiply(%s, [2 .. 2 3 .. 3])) */

#include "transform/combine/region.h"

/* A factor and, with PLN_NONE for none, what it is multiplied by. */
typedef struct region_number {
  pln_ref factor, shared;
} region_number;

static bool has_one_element(const pln_graph *g, pln_ref node) {
  pln_type type = g->nodes[node].type;
  int32_t rank = pln_type_rank(g->engine, type);
  if (rank < 0)
    return false;
  for (int32_t i = 0; i < rank; i++)
    if (pln_type_dims(g->engine, type)[i] != 1)
      return false;
  return true;
}

static bool is_factor(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CONSTANT && has_one_element(g, node) &&
         !g->tensors[n->data]->external &&
         pln_dtype_is_float(pln_type_dtype(g->engine, n->type));
}

static bool is_factored(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data == PLN_OP_MUL && n->count == 2 &&
         pln_op_is_onnx_form(g, node) && pln_call_is_valid(g, node) &&
         has_one_element(g, node);
}

static bool read_number(const pln_graph *g, pln_ref node, region_number *out) {
  *out = (region_number){node, PLN_NONE};
  if (is_factor(g, node))
    return true;
  if (!is_factored(g, node))
    return false;
  pln_ref x = pln_operand(g, node, 0), y = pln_operand(g, node, 1);
  *out = is_factor(g, x) ? (region_number){x, y} : (region_number){y, x};
  return is_factor(g, out->factor) && !is_factor(g, out->shared);
}

bool pln_region_has_numbers(const pln_combine *c, const pln_region *r,
                            const pln_combine_tuple *t, uint32_t i) {
  const pln_graph *g = c->graph;
  region_number first, number;
  if (!read_number(g, pln_operand(g, t->nodes[0], i), &first) ||
      (first.shared != PLN_NONE && pln_region_tuple(c, r, first.shared)))
    return false;
  for (uint32_t j = 1; j < r->k; j++)
    if (!read_number(g, pln_operand(g, t->nodes[j], i), &number) ||
        number.shared != first.shared ||
        pln_type_dtype(c->engine, g->nodes[number.factor].type) !=
            pln_type_dtype(c->engine, g->nodes[first.factor].type))
      return false;
  return true;
}

/* Writes each member's factor as often as its part has positions. */
static pln_status fill_factors(const pln_combine *c, const pln_region *r,
                               const pln_combine_tuple *t, uint32_t i,
                               size_t size, char *to) {
  const pln_graph *g = c->graph;
  for (uint32_t j = 0; j < r->k; j++) {
    region_number number;
    const void *data;
    if (!read_number(g, pln_operand(g, t->nodes[j], i), &number))
      return PLN_ERR_TYPE;
    PLN_TRY(pln_tensor_data(g->tensors[g->nodes[number.factor].data], &data));
    for (int64_t k = 0; k < t->sizes[j]; k++, to += size)
      memcpy(to, data, size);
  }
  return PLN_OK;
}

/* The vector of factors, whose axis is the tuple's. */
static pln_status build_factors(const pln_combine *c, const pln_region *r,
                                pln_builder *b, const pln_combine_tuple *t,
                                uint32_t i, pln_dtype dtype, pln_ref *out) {
  int32_t rank = pln_type_rank(c->engine, c->graph->nodes[t->nodes[0]].type);
  int64_t dims[PLN_MAX_RANK], total = 0;
  size_t size = pln_dtype_bits(dtype) / 8;
  pln_tensor *tensor = NULL;
  for (uint32_t j = 0; j < r->k; j++)
    total += t->sizes[j];
  for (int32_t k = 0; k < rank; k++)
    dims[k] = k ? 1 : total;
  size_t bytes = (size_t)total * size;
  char *data = pln_mem_new(c->engine, bytes);
  if (!data)
    return pln_nomem(c->engine);
  pln_status status = fill_factors(c, r, t, i, size, data);
  if (status == PLN_OK)
    status = pln_tensor_from_bytes(c->engine, dtype, (uint32_t)rank - t->axis,
                                   dims, data, bytes, &tensor);
  if (status == PLN_OK)
    status = pln_build_constant(b, tensor, out);
  pln_tensor_release(tensor);
  pln_mem_free(c->engine, data, bytes);
  return status;
}

pln_status pln_region_join_numbers(const pln_combine *c, const pln_region *r,
                                   pln_rewrite *rw, pln_builder *b,
                                   const pln_combine_tuple *t, uint32_t i,
                                   pln_ref *out) {
  const pln_graph *g = c->graph;
  pln_ref lead = pln_operand(g, t->nodes[t->lead], i), args[2];
  region_number number;
  if (!read_number(g, lead, &number))
    return PLN_ERR_TYPE;
  pln_builder_origin(b, g->origin[lead]);
  PLN_TRY(build_factors(c, r, b, t, i,
                        pln_type_dtype(c->engine, g->nodes[number.factor].type),
                        out));
  if (number.shared == PLN_NONE)
    return PLN_OK;
  args[0] = pln_rewrite_image(rw, number.shared);
  args[1] = *out;
  return pln_build_call(b, PLN_OP_MUL, g->nodes[lead].attrs, 0, 2, args, out);
}
