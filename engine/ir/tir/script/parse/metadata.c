/* tir/script/parse/metadata.c: the tensors in the metadata of a text printed
 * with show_meta=True: TVM's JSON graph of nodes.
 *
 * Called by the line parser for "metadata = tvm.ir.load_json(...)". */

#include "ir/tensor/ndarray.h"
#include "ir/tensor/tensor.h"
#include "ir/tir/script/parse/parse.h"

/* Element i of an array of numbers; PLN_NONE: none. */
static uint32_t number_at(const pln_json *json, const pln_json_value *array,
                          uint32_t i) {
  uint64_t out;
  if (!array || array->kind != PLN_JSON_ARRAY || i >= array->count)
    return PLN_NONE;
  const pln_json_value *at = array + 1;
  while (i-- > 0)
    at = &json->values[at->next];
  return pln_json_number(at, &out) && out < PLN_NONE ? (uint32_t)out : PLN_NONE;
}

/* The nodes by their index. */
static pln_status list_nodes(pln_script_parser *p, const pln_json *json,
                             const pln_json_value *nodes, uint32_t n,
                             const pln_json_value ***out) {
  *out = pln_arena_new(&p->arena, (n + (size_t)1) * sizeof **out);
  if (!*out)
    return pln_nomem(p->engine);
  const pln_json_value *at = nodes + 1;
  for (uint32_t i = 0; i < n; i++) {
    (*out)[i] = at->kind == PLN_JSON_OBJECT ? at : NULL;
    at = &json->values[at->next];
  }
  return PLN_OK;
}

static pln_status add_tensor(pln_script_parser *p, const pln_json *json,
                             const pln_json_value *node) {
  const pln_json_value *data = pln_json_get(json, node, "repr_str");
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->tensors, &p->cap_tensors,
                       (size_t)p->n_tensors + 1, sizeof *p->tensors));
  if (!data)
    return PLN_ERR_FORMAT;
  PLN_TRY(pln_ndarray_read(p->engine, json, data, &p->tensors[p->n_tensors]));
  p->n_tensors++;
  return PLN_OK;
}

/* The root is a Map from type keys to Arrays. */
static pln_status read_nodes(pln_script_parser *p, const pln_json *json) {
  const pln_json_value *root = json->values, **rows;
  const pln_json_value *nodes = pln_json_get(json, root, "nodes");
  uint64_t map;
  if (!nodes || nodes->kind != PLN_JSON_ARRAY ||
      !pln_json_number(pln_json_get(json, root, "root"), &map) ||
      map >= nodes->count)
    return PLN_ERR_FORMAT;
  uint32_t n = nodes->count;
  PLN_TRY(list_nodes(p, json, nodes, n, &rows));
  const pln_json_value *keys = pln_json_get(json, rows[map], "keys");
  const pln_json_value *data = pln_json_get(json, rows[map], "data");
  if (!keys || keys->kind != PLN_JSON_ARRAY)
    return PLN_OK;
  const pln_json_value *key = keys + 1;
  for (uint32_t i = 0; i < keys->count; i++, key = &json->values[key->next]) {
    uint32_t list = number_at(json, data, i);
    if (!pln_slice_is(key->text, "runtime.NDArray") || list >= n)
      continue;
    const pln_json_value *items = pln_json_get(json, rows[list], "data");
    if (!items || items->kind != PLN_JSON_ARRAY)
      return PLN_ERR_FORMAT;
    const pln_json_value *item = items + 1;
    uint64_t index;
    for (uint32_t k = 0; k < items->count;
         k++, item = &json->values[item->next]) {
      if (!pln_json_number(item, &index) || index >= n)
        return PLN_ERR_FORMAT;
      PLN_TRY(add_tensor(p, json, rows[index]));
    }
  }
  return PLN_OK;
}

pln_status pln_script_metadata(pln_script_parser *p, pln_slice text) {
  pln_json json;
  size_t mark = pln_diag_count(p->engine);
  pln_status status = pln_json_read(&json, p->engine, text);
  if (status == PLN_OK)
    status = json.values[0].kind == PLN_JSON_OBJECT ? read_nodes(p, &json)
                                                    : PLN_ERR_FORMAT;
  pln_json_free(&json);
  if (status == PLN_ERR_FORMAT && pln_diag_count(p->engine) == mark)
    return pln_script_fail_at(p, p->place, p->place_size,
                              "this is not the metadata that TVM prints");
  return status;
}
