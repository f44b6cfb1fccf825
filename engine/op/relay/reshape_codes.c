/* reshape_codes.c: see reshape_codes.h. */

#include "op/relay/reshape_codes.h"

bool pln_reshape_codes_used(const pln_list *list) {
  for (uint32_t i = 0; i < list->count && list->sized; i++) {
    pln_dim code = pln_list_at(list, i);
    if (PLN_DIM_IS_CONST(code) && code < -1)
      return true;
  }
  return false;
}

/* State of reading codes and extents. */
typedef struct reading {
  pln_engine *engine;
  const pln_list *list;
  const pln_dim *in;
  int32_t rank, at; /* rank of the operand; index of the next extent */
  uint32_t next;    /* index of the next code */
  bool reverse;
  pln_dim *dims;
  uint32_t count;
} reading;

static pln_dim code_at(const reading *r, uint32_t i) {
  return pln_list_at(r->list, r->reverse ? r->list->count - 1 - i : i);
}

static pln_dim extent_at(const reading *r, int32_t i) {
  return r->in[r->reverse ? r->rank - 1 - i : i];
}

static bool append_result_dim(reading *r, pln_dim dim) {
  if (r->count == PLN_MAX_RANK)
    return false;
  r->dims[r->count++] = dim;
  return true;
}

static bool put_rest(reading *r) {
  while (r->at < r->rank)
    if (!append_result_dim(r, extent_at(r, r->at++)))
      return false;
  return true;
}

static pln_status put_product(reading *r, bool *fits) {
  pln_dim product;
  *fits = r->at + 2 <= r->rank;
  if (!*fits)
    return PLN_OK;
  PLN_TRY(pln_dim_binary(r->engine, PLN_DIM_MUL, extent_at(r, r->at),
                         extent_at(r, r->at + 1), &product));
  r->at += 2;
  *fits = append_result_dim(r, product);
  return PLN_OK;
}

static pln_status put_halves(reading *r, bool *fits) {
  *fits = r->next + 2 <= r->list->count && r->at < r->rank;
  if (!*fits)
    return PLN_OK;
  pln_dim extent = extent_at(r, r->at++);
  pln_dim a = code_at(r, r->next), b = code_at(r, r->next + 1);
  r->next += 2;
  if (a == -1)
    PLN_TRY(pln_dim_binary(r->engine, PLN_DIM_FLOORDIV, extent, b, &a));
  else if (b == -1)
    PLN_TRY(pln_dim_binary(r->engine, PLN_DIM_FLOORDIV, extent, a, &b));
  *fits =
      a != -1 && b != -1 && append_result_dim(r, a) && append_result_dim(r, b);
  return PLN_OK;
}

static pln_status read_code(reading *r, bool *fits) {
  pln_dim code = code_at(r, r->next++);
  if (code == -2)
    *fits = put_rest(r);
  else if (code == -3)
    return put_product(r, fits);
  else if (code == -4)
    return put_halves(r, fits);
  else if (code == 0 && r->at >= r->rank)
    *fits = false;
  else
    *fits = (!PLN_DIM_IS_CONST(code) || code >= -1) &&
            append_result_dim(r, code == 0 ? extent_at(r, r->at) : code);
  r->at += code != -2;
  return PLN_OK;
}

pln_status pln_reshape_codes_read(pln_engine *engine, const pln_list *list,
                                  int32_t rank, const pln_dim *in, bool reverse,
                                  pln_dim *dims, uint32_t *count, bool *fits) {
  reading r = {.engine = engine,
               .list = list,
               .in = in,
               .rank = rank,
               .reverse = reverse,
               .dims = dims};
  *fits = true;
  while (*fits && r.next < list->count)
    PLN_TRY(read_code(&r, fits));
  *count = r.count;
  for (uint32_t i = 0; reverse && i < r.count / 2; i++) {
    pln_dim kept = dims[i];
    dims[i] = dims[r.count - 1 - i];
    dims[r.count - 1 - i] = kept;
  }
  return PLN_OK;
}
