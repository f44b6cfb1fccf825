/* dtype.c: names and sizes of the element types, from the table PLN_DTYPES. */

#include "base/base.h"

typedef struct dtype_row {
  const char *name;
  uint32_t bits;
} dtype_row;

static const dtype_row rows[PLN_N_DTYPES] = {[PLN_DTYPE_NONE] = {"?", 0},
#define PLN_ROW(ID, number, text, bits) [PLN_##ID] = {text, bits},
                                             PLN_DTYPES(PLN_ROW)
#undef PLN_ROW
};

static bool is_known_dtype(pln_dtype dtype) {
  return dtype > PLN_DTYPE_NONE && dtype < PLN_N_DTYPES;
}

const char *pln_dtype_name(pln_dtype dtype) {
  return rows[is_known_dtype(dtype) ? dtype : PLN_DTYPE_NONE].name;
}

pln_dtype pln_dtype_find(pln_slice name) {
  for (uint32_t i = 1; i < PLN_N_DTYPES; i++)
    if (name.size > 0 && name.data[0] == rows[i].name[0] &&
        pln_slice_is(name, rows[i].name))
      return (pln_dtype)i;
  return PLN_DTYPE_NONE;
}

uint32_t pln_dtype_bits(pln_dtype dtype) {
  return rows[is_known_dtype(dtype) ? dtype : PLN_DTYPE_NONE].bits;
}

/* TVM's boolean vectors are vectors of 1-bit integers; a name without a width
 * has 32 bits. */
static pln_dtype find_element(pln_slice name) {
  static const struct {
    const char *name;
    pln_dtype dtype;
  } others[] = {{"uint1", PLN_BOOL},
                {"int", PLN_INT32},
                {"uint", PLN_UINT32},
                {"float", PLN_FLOAT32}};
  for (size_t i = 0; i < PLN_COUNT(others); i++)
    if (pln_slice_is(name, others[i].name))
      return others[i].dtype;
  return pln_dtype_find(name);
}

pln_dtype pln_dtype_find_vector(pln_slice name, uint32_t *lanes) {
  uint32_t count = 0, unit = 1;
  pln_dtype whole = find_element(name);
  *lanes = 1;
  if (whole != PLN_DTYPE_NONE)
    return whole;
  while (name.size > 1 && unit < 100000 && name.data[name.size - 1] >= '0' &&
         name.data[name.size - 1] <= '9') {
    count += unit * (uint32_t)(name.data[--name.size] - '0');
    unit *= 10;
  }
  if (name.size == 0 || name.data[name.size - 1] != 'x' || count < 2)
    return PLN_DTYPE_NONE;
  *lanes = count;
  name.size--;
  return find_element(name);
}
