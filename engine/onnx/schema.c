/* schema.c: looks operators up in schemas.def and parses its rows.
 *
 * Called by import and export for each operator and opset. Lookup is a binary
 * search. */

#include "onnx/schema.h"

#include <stdlib.h>

/* The dtypes that a value may have. */
typedef struct type_set {
  uint64_t tensors, sequences; /* one bit per dtype */
  bool optionals;
} type_set;

#define T(NAME) (UINT64_C(1) << PLN_##NAME)
#define SCHEMA(type, since, deprecated, inputs, outputs, attributes)
static const type_set type_sets[] = {
#define TYPES(number, tensors, sequences, optionals) \
  [number] = {tensors, sequences, optionals},
#include "onnx/schemas.def"
};

#define TYPES(number, tensors, sequences, optionals)
static const pln_onnx_schema schemas[] = {
#define SCHEMA(type, since, deprecated, inputs, outputs, attributes) \
  {type, since, deprecated, inputs, outputs, attributes},
#include "onnx/schemas.def"
};

static int compare_schema_row(pln_slice type, const char *row) {
  size_t size = strlen(row), least = size < type.size ? size : type.size;
  int order = memcmp(type.data, row, least);
  return order ? order : (type.size > size) - (type.size < size);
}

/* The first row of the operator, or PLN_COUNT(schemas). */
static size_t first_row(pln_slice type) {
  size_t low = 0, high = PLN_COUNT(schemas);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare_schema_row(type, schemas[middle].type) > 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const pln_onnx_schema *pln_onnx_schema_find(pln_slice type, int64_t opset) {
  const pln_onnx_schema *best = NULL;
  for (size_t i = first_row(type);
       i < PLN_COUNT(schemas) && pln_slice_is(type, schemas[i].type) &&
       schemas[i].since <= opset;
       i++)
    best = &schemas[i];
  return best;
}

bool pln_onnx_attribute_next(const char **at, pln_slice *name, bool *required) {
  size_t size = strcspn(*at, " ");
  if (!size)
    return false;
  *required = (*at)[size - 1] == '!';
  *name = (pln_slice){*at, size - *required};
  *at += size + ((*at)[size] == ' ');
  return true;
}

bool pln_onnx_schema_has(const pln_onnx_schema *schema, pln_slice attribute) {
  const char *at = schema->attributes;
  pln_slice name;
  bool required;
  while (pln_onnx_attribute_next(&at, &name, &required))
    if (pln_slice_equal(name, attribute))
      return true;
  return false;
}

int32_t pln_onnx_newest_opset(void) {
  int32_t newest = 0;
  for (size_t i = 0; i < PLN_COUNT(schemas); i++)
    if (schemas[i].since > newest)
      newest = schemas[i].since;
  return newest;
}

void pln_onnx_opset_range(int32_t *oldest, int32_t *newest) {
  enum { OLDEST = 7 };
  *oldest = OLDEST;
  *newest = pln_onnx_newest_opset();
}

bool pln_onnx_parameter_next(const char **at, pln_onnx_parameter *out) {
  const char *word = *at;
  char *end;
  if (!*word)
    return false;
  *out = (pln_onnx_parameter){.types = (uint32_t)strtoul(word, &end, 10)};
  if (*end >= 'a' && *end <= 'z')
    out->letter = *end++;
  if (*end && *end != ' ')
    out->option = *end++;
  if (out->option != '*' && out->option != '~')
    *at = end + (*end == ' ');
  return true;
}

static bool has(uint64_t dtypes, pln_dtype dtype) {
  return dtype == PLN_DTYPE_NONE || dtypes >> dtype & 1;
}

bool pln_onnx_takes_dtype(uint32_t types, pln_dtype dtype) {
  return has(type_sets[types].tensors, dtype);
}

bool pln_onnx_schema_accepts(const pln_engine *engine, uint32_t types,
                             pln_type type) {
  const type_set *set = &type_sets[types];
  pln_type part;
  switch (pln_type_get_kind(engine, type)) {
  case PLN_TYPE_TENSOR: return has(set->tensors, pln_type_dtype(engine, type));
  case PLN_TYPE_SEQUENCE:
    part = pln_type_part_at(engine, type, 0);
    return set->sequences && has(set->sequences, pln_type_dtype(engine, part));
  case PLN_TYPE_OPTIONAL: return set->optionals;
  default: return true;
  }
}
