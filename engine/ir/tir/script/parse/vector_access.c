/* tir/script/parse/vector_access.c: A.vload(indices, dtype) and
 * A.vstore(indices, value): elements one behind the other, as a vector.
 *
 * Called by the parser of calls. The last index becomes a Ramp of as many
 * lanes as the vector has elements of the buffer.
 *
 * Semantics: Buffer::vload and Buffer::vstore of TVM's buffer.cc. */

#include "ir/tir/script/parse/parse.h"

static uint32_t lane_count(const pln_script_parser *p, pln_type type) {
  return pln_type_get_kind(p->engine, type) == PLN_TYPE_PRIM
             ? pln_type_number(p->engine, type)
             : 0;
}

/* How many elements of the buffer a value of that type has. */
static pln_status element_count(pln_script_parser *p,
                                const pln_script_value *at, pln_type element,
                                pln_type type, uint32_t *out) {
  uint32_t own = lane_count(p, element), lanes = lane_count(p, type);
  if (pln_type_dtype(p->engine, element) != pln_type_dtype(p->engine, type) ||
      lanes == 0 || lanes % own != 0)
    return pln_script_refuse(
        p, at, "a vector of the buffer's elements is expected here");
  *out = lanes / own;
  return PLN_OK;
}

/* Makes a Ramp of the last index, which is on p->refs. */
static pln_status widen(pln_script_parser *p, uint32_t lanes) {
  pln_ref base = p->refs[p->n_refs - 1], stride;
  if (lanes == 1)
    return PLN_OK;
  PLN_TRY(pln_script_int(p, pln_script_type_of(p, base), 1, &stride));
  PLN_TRY(pln_script_push_ref(p, stride));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_RAMP, .data = lanes},
                          p->n_refs - 2, &base));
  return pln_script_push_ref(p, base);
}

/* Pushes the indices; there is at least one. */
static pln_status push_begin(pln_script_parser *p,
                             const pln_script_value *begin, uint32_t lanes) {
  uint32_t n;
  PLN_TRY(pln_script_push_list(p, begin, 0, &n));
  if (n == 0)
    return pln_script_refuse(p, begin, "an index is expected");
  return widen(p, lanes);
}

static pln_status vector_load(pln_script_parser *p, pln_ref buffer,
                              const pln_script_args *a, pln_script_value *out) {
  uint32_t first = p->n_refs, lanes;
  pln_type element = pln_script_type_of(p, buffer), type = element;
  pln_ref ref;
  if (a->at[1])
    PLN_TRY(pln_script_as_type(p, a->at[1], &type));
  PLN_TRY(element_count(p, a->at[1], element, type, &lanes));
  PLN_TRY(pln_script_push_ref(p, buffer));
  PLN_TRY(push_begin(p, a->at[0], lanes));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_BUFFER_LOAD}, first, &ref));
  pln_script_set_ref(out, ref);
  return PLN_OK;
}

static pln_status vector_store(pln_script_parser *p, pln_ref buffer,
                               const pln_script_args *a,
                               pln_script_value *out) {
  uint32_t first = p->n_refs, lanes;
  pln_type element = pln_script_type_of(p, buffer);
  pln_ref value, ref;
  PLN_TRY(pln_script_ref(p, a->at[1], element, &value));
  PLN_TRY(element_count(p, a->at[1], element, pln_script_type_of(p, value),
                        &lanes));
  PLN_TRY(pln_script_push_ref(p, buffer));
  PLN_TRY(pln_script_push_ref(p, value));
  PLN_TRY(push_begin(p, a->at[0], lanes));
  PLN_TRY(
      pln_script_node(p, (pln_prim){.kind = PLN_BUFFER_STORE}, first, &ref));
  out->kind = PLN_V_STORE;
  out->v.of.ref = ref;
  return PLN_OK;
}

pln_status pln_script_vector_access(pln_script_parser *p,
                                    const pln_script_value *callee,
                                    const pln_script_value *items,
                                    pln_script_value *out) {
  bool loads = callee->kind == PLN_V_VLOAD;
  pln_ref buffer = callee->v.of.ref;
  pln_script_value call = *items;
  pln_script_args args;
  if (p->outside)
    return pln_script_refuse(p, callee, "this stands outside a function");
  call.v.of.number = loads ? PLN_METHOD_VLOAD : PLN_METHOD_VSTORE;
  PLN_TRY(pln_script_bind_args(p, &call, &args));
  return loads ? vector_load(p, buffer, &args, out)
               : vector_store(p, buffer, &args, out);
}
