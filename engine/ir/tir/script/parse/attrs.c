/* tir/script/parse/attrs.c: attributes of parsed dictionaries.
 *
 * Called for T.func_attr, annotations and similar. The items of a bracket are
 * kept before the bracket itself; so one sweep over the kept values converts
 * inner values before outer ones, and nothing recurses. */

#include "ir/attrs/attrs.h"
#include "ir/tir/script/parse/parse.h"

enum { NO_ATTR = 255 };

/* A converted value; kind NO_ATTR: `bad` is the value that has no attribute. */
typedef struct converted {
  pln_attr attr;
  const pln_script_value *bad;
} converted;

static void *line_memory(pln_script_parser *p, size_t n, size_t size) {
  return pln_arena_new(&p->arena, (n + 1) * size);
}

static void of_expr(const pln_script_parser *p, const pln_script_value *v,
                    pln_attr *out) {
  const pln_graph *g = p->b->graph;
  const pln_node *n = &g->nodes[v->v.of.ref];
  if (n->kind == PLN_INT_IMM) {
    bool truth = pln_type_dtype(p->engine, n->type) == PLN_BOOL;
    out->kind = truth ? PLN_ATTR_BOOL : PLN_ATTR_INT;
    out->v.i = pln_node_int(g, v->v.of.ref);
  } else if (n->kind == PLN_FLOAT_IMM) {
    out->kind = PLN_ATTR_FLOAT;
    out->v.f = pln_node_float(g, v->v.of.ref);
  } else if (n->kind == PLN_STRING_IMM) {
    out->kind = PLN_ATTR_STRING;
    out->v.s = pln_symbol_text(p->engine, n->data);
  } else {
    out->kind = NO_ATTR;
  }
}

/* The kind of a list whose items all have that kind; LIST: none. */
static pln_attr_kind list_kind(uint8_t item) {
  switch (item) {
  case PLN_ATTR_INT: return PLN_ATTR_INTS;
  case PLN_ATTR_FLOAT: return PLN_ATTR_FLOATS;
  case PLN_ATTR_STRING: return PLN_ATTR_STRINGS;
  case PLN_ATTR_TENSOR: return PLN_ATTR_TENSORS;
  default: return PLN_ATTR_LIST;
  }
}

static pln_status of_mixed(pln_script_parser *p, uint32_t n,
                           const converted *items, pln_attr *out) {
  pln_attr *list = line_memory(p, n, sizeof *list);
  if (!list)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < n; i++)
    list[i] = items[i].attr;
  out->kind = PLN_ATTR_LIST;
  return pln_attrs_list(p->engine, n, list, &out->v.dict);
}

static pln_status of_list(pln_script_parser *p, uint32_t n,
                          const converted *items, pln_attr *out) {
  out->kind = (uint8_t)(n ? list_kind(items[0].attr.kind) : PLN_ATTR_INTS);
  for (uint32_t i = 1; i < n; i++)
    if (items[i].attr.kind != items[0].attr.kind)
      out->kind = PLN_ATTR_LIST;
  if (out->kind == PLN_ATTR_LIST)
    return of_mixed(p, n, items, out);
  void *list = line_memory(p, n, sizeof(pln_slice));
  if (!list)
    return pln_nomem(p->engine);
  out->count = n;
  out->v.ints = list;
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = &items[i].attr;
    switch (out->kind) {
    case PLN_ATTR_FLOATS: ((double *)list)[i] = a->v.f; break;
    case PLN_ATTR_STRINGS: ((pln_slice *)list)[i] = a->v.s; break;
    case PLN_ATTR_TENSORS: ((pln_tensor **)list)[i] = a->v.tensor; break;
    default: ((int64_t *)list)[i] = a->v.i; break;
    }
  }
  return PLN_OK;
}

static pln_status of_dict(pln_script_parser *p, uint32_t n,
                          const converted *items, pln_attr *out) {
  pln_attr *entries = line_memory(p, n / 2, sizeof *entries);
  if (!entries)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < n / 2; i++) {
    entries[i] = items[2 * i + 1].attr;
    PLN_TRY(
        pln_symbol_intern(p->engine, items[2 * i].attr.v.s, &entries[i].name));
  }
  out->kind = PLN_ATTR_DICT;
  return pln_attrs_make(p->engine, n / 2, entries, &out->v.dict);
}

/* A group whose items are `items`. */
static pln_status of_group(pln_script_parser *p, const pln_script_value *v,
                           const converted *items, converted *out) {
  bool dict = v->kind == PLN_V_DICT;
  for (uint32_t i = 0; i < v->n; i++)
    if (items[i].attr.kind == NO_ATTR ||
        (dict && i % 2 == 0 && items[i].attr.kind != PLN_ATTR_STRING)) {
      out->attr.kind = NO_ATTR;
      out->bad = items[i].bad;
      return PLN_OK;
    }
  if (!dict)
    return of_list(p, v->n, items, &out->attr);
  PLN_TRY(of_dict(p, v->n, items, &out->attr));
  return v->target ? pln_target_complete(p->engine, out->attr.v.dict,
                                         &out->attr.v.dict)
                   : PLN_OK;
}

static pln_status of_string(pln_script_parser *p, const pln_script_value *v,
                            pln_attr *out) {
  out->kind = v->target ? PLN_ATTR_DICT : PLN_ATTR_STRING;
  out->v.s = v->v.s;
  return v->target ? pln_target_read(p->engine, v->v.s, &out->v.dict) : PLN_OK;
}

static pln_status of_value(pln_script_parser *p, const pln_script_value *v,
                           const converted *all, converted *out) {
  *out = (converted){.bad = v};
  switch ((pln_script_value_kind)v->kind) {
  case PLN_V_INT:
    out->attr.kind = PLN_ATTR_INT;
    out->attr.v.i = v->v.i;
    return PLN_OK;
  case PLN_V_BOOL:
    out->attr.kind = PLN_ATTR_BOOL;
    out->attr.v.i = v->v.i;
    return PLN_OK;
  case PLN_V_FLOAT:
    out->attr.kind = PLN_ATTR_FLOAT;
    out->attr.v.f = v->v.f;
    return PLN_OK;
  case PLN_V_STRING: return of_string(p, v, &out->attr);
  case PLN_V_NONE: out->attr.kind = PLN_ATTR_NONE; return PLN_OK;
  case PLN_V_TENSOR:
    out->attr.kind = PLN_ATTR_TENSOR;
    out->attr.v.tensor = p->tensors[v->v.of.number];
    return PLN_OK;
  case PLN_V_EXPR: of_expr(p, v, &out->attr); return PLN_OK;
  case PLN_V_LIST:
  case PLN_V_TUPLE:
  case PLN_V_DICT: return of_group(p, v, all + v->first, out);
  default: out->attr.kind = NO_ATTR; return PLN_OK;
  }
}

pln_status pln_script_attrs_of(pln_script_parser *p,
                               const pln_script_value *dict, pln_attrs *out) {
  uint32_t n = dict->kind == PLN_V_DICT ? dict->first + dict->n : 0;
  converted whole;
  if (dict->kind != PLN_V_DICT && !dict->target)
    return pln_script_refuse(p, dict, "a dictionary is expected");
  converted *all = line_memory(p, n, sizeof *all);
  if (!all)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(of_value(p, &p->kept[i], all, &all[i]));
  p->place = dict->at;
  p->place_size = dict->size;
  PLN_TRY(of_value(p, dict, all, &whole));
  if (whole.attr.kind == NO_ATTR)
    return pln_script_refuse(p, whole.bad,
                             "this value cannot be kept as an attribute");
  *out = whole.attr.v.dict;
  return PLN_OK;
}

/* ------------------------------------------------------------------ entries
 */

static pln_status with(pln_script_parser *p, const char *name, pln_attr entry,
                       pln_attrs *attrs) {
  PLN_TRY(pln_symbol_intern(p->engine, pln_text(name), &entry.name));
  return pln_attrs_with(p->engine, *attrs, &entry, attrs);
}

pln_status pln_script_with_string(pln_script_parser *p, const char *name,
                                  pln_slice value, pln_attrs *attrs) {
  return with(p, name, (pln_attr){.kind = PLN_ATTR_STRING, .v.s = value},
              attrs);
}

pln_status pln_script_with_int(pln_script_parser *p, const char *name,
                               int64_t value, pln_attrs *attrs) {
  return with(p, name, (pln_attr){.kind = PLN_ATTR_INT, .v.i = value}, attrs);
}

pln_status pln_script_with_dict(pln_script_parser *p, const char *name,
                                const pln_script_value *dict,
                                pln_attrs *attrs) {
  pln_attr entry = {.kind = PLN_ATTR_DICT};
  PLN_TRY(pln_script_attrs_of(p, dict, &entry.v.dict));
  return entry.v.dict ? with(p, name, entry, attrs) : PLN_OK;
}
