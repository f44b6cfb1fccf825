/* tir/script/parse/index_map.c: T.index_map, and the function attribute
 * layout_transform_map, whose keys are buffers.
 *
 * Called by script/parse/call.c and assign.c. A map is kept as its text, an
 * attribute `layout_transforms` of the Buffer, and is parsed again by who
 * applies it (tir.ApplyLayoutTransforms). */

#include "ir/tir/script/parse/parse.h"

/* "i, j:" as variables on p->refs. */
static pln_status read_variables(pln_script_parser *p, uint32_t *n) {
  bool more = p->token.kind == PLN_S_NAME;
  for (*n = 0; more; ++*n) {
    pln_ref var;
    pln_slice name = p->token.text;
    if (p->token.kind != PLN_S_NAME)
      return pln_script_expected(p, "a parameter");
    PLN_TRY(pln_script_make_var(p, name, p->types[0], false, &var));
    PLN_TRY(pln_script_bind_ref(p, name, PLN_V_EXPR, var));
    PLN_TRY(pln_script_push_ref(p, var));
    PLN_TRY(pln_script_next(p));
    PLN_TRY(pln_script_accept(p, PLN_S_COMMA, &more));
  }
  return pln_script_expect(p, PLN_S_COLON);
}

/* The variables and indices on p->refs. */
static pln_status read_map(pln_script_parser *p, uint32_t *n) {
  pln_script_value body;
  uint32_t indices;
  PLN_TRY(read_variables(p, n));
  PLN_TRY(pln_script_expr_parse(p, &body));
  return pln_script_push_list(p, &body, p->types[0], &indices);
}

pln_status pln_script_index_map(pln_script_parser *p,
                                const pln_script_value *lambda, pln_ref *out) {
  pln_script_lambda back;
  uint32_t first = p->n_refs, mark = p->n_bindings, n;
  PLN_TRY(pln_script_push_ref(p, PLN_NONE));
  PLN_TRY(pln_script_enter_lambda(p, lambda, &back));
  pln_status status = read_map(p, &n);
  pln_script_leave_lambda(p, &back);
  pln_script_unbind(p, mark);
  if (status == PLN_OK)
    status = pln_script_int(p, p->types[0], n, &p->refs[first]);
  if (status != PLN_OK)
    return status;
  return pln_script_node(p, (pln_prim){.kind = PLN_PRIM_ARRAY}, first, out);
}

/* ------------------------------------------------------- layout_transform_map
 */

/* The newline behind a comment. */
static uint32_t end_of_comment(const pln_script_value *map, uint32_t i) {
  while (i + 1 < map->size && map->at[i] != '\n')
    i++;
  return i;
}

/* The text of a map without comments, with one blank for any number. */
static pln_status text_of_map(pln_script_parser *p, const pln_script_value *map,
                              pln_slice *out) {
  char *text = pln_arena_new(&p->arena, map->size + (size_t)1);
  size_t n = 0;
  if (!text)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < map->size; i++) {
    while (i + 1 < map->size && map->at[i] == '#')
      i = end_of_comment(map, i);
    bool blank = map->at[i] == ' ' || map->at[i] == '\t' ||
                 map->at[i] == '\n' || map->at[i] == '\r';
    if (!blank || (n > 0 && text[n - 1] != ' '))
      text[n++] = blank ? ' ' : map->at[i];
  }
  *out = (pln_slice){text, n};
  return PLN_OK;
}

static bool is_index_map(const pln_script_parser *p,
                         const pln_script_value *value) {
  return value->kind == PLN_V_EXPR &&
         p->b->graph->nodes[value->v.of.ref].kind == PLN_PRIM_ARRAY;
}

static pln_status maps_attr(pln_script_parser *p, const pln_script_value *list,
                            pln_attr *out) {
  if (list->kind != PLN_V_LIST || list->n == 0)
    return pln_script_refuse(p, list, "a list of T.index_map is expected");
  pln_slice *texts = pln_arena_new(&p->arena, list->n * sizeof *texts);
  if (!texts)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < list->n; i++) {
    const pln_script_value *item = &p->kept[list->first + i];
    if (!is_index_map(p, item))
      return pln_script_refuse(p, item, "a T.index_map is expected");
    PLN_TRY(text_of_map(p, item, &texts[i]));
  }
  *out = (pln_attr){
      .kind = PLN_ATTR_STRINGS, .count = list->n, .v.strings = texts};
  return pln_symbol_intern(p->engine, pln_text("layout_transforms"),
                           &out->name);
}

/* A Buffer with one more attribute. */
static pln_status with_attr(pln_script_parser *p, pln_ref buffer,
                            const pln_attr *entry, pln_ref *out) {
  pln_node n = p->b->graph->nodes[buffer];
  uint32_t first = p->n_refs;
  pln_buffer_fields f = pln_buffer_fields_of(p->b->graph, buffer);
  pln_buffer_spec spec = {.name = n.data,
                          .type = n.type,
                          .attrs = n.attrs,
                          .rank = f.rank,
                          .n_strides = f.n_strides,
                          .data = f.data,
                          .elem_offset = f.elem_offset};
  PLN_TRY(pln_attrs_with(p->engine, n.attrs, entry, &spec.attrs));
  /* The operands move when nodes are built. */
  for (uint32_t i = 0; i < f.rank + f.n_strides; i++)
    PLN_TRY(pln_script_push_ref(p, p->b->graph->operands[n.first + 1 + i]));
  spec.shape = pln_refs_at(p->refs, first);
  spec.strides = pln_refs_at(p->refs, first + f.rank);
  p->n_refs = first;
  return pln_build_buffer(p->b, &spec, out);
}

/* The declaration of the Buffer as a parameter, with another in its place. */
static pln_status replace_binding(pln_script_parser *p, pln_ref old,
                                  pln_ref buffer) {
  for (uint32_t i = 0; i < p->n_parts; i++) {
    pln_script_part *part = &p->parts[i];
    if (part->what != PLN_PART_BIND ||
        pln_operand(p->b->graph, part->a, 1) != old)
      continue;
    PLN_TRY(pln_script_push_ref(p, pln_operand(p->b->graph, part->a, 0)));
    PLN_TRY(pln_script_push_ref(p, buffer));
    return pln_script_node(p, (pln_prim){.kind = PLN_BUFFER_BIND},
                           p->n_refs - 2, &part->a);
  }
  return PLN_OK;
}

static pln_status transform_buffer(pln_script_parser *p,
                                   const pln_script_value *key,
                                   const pln_script_value *list) {
  pln_attr entry;
  pln_ref old = key->v.of.ref, buffer;
  if (key->kind != PLN_V_BUFFER)
    return pln_script_refuse(p, key, "a buffer is expected");
  PLN_TRY(maps_attr(p, list, &entry));
  PLN_TRY(with_attr(p, old, &entry, &buffer));
  PLN_TRY(replace_binding(p, old, buffer));
  for (uint32_t i = 0; i < p->n_bindings; i++)
    if (p->bindings[i].value.kind == PLN_V_BUFFER &&
        p->bindings[i].value.v.of.ref == old)
      p->bindings[i].value.v.of.ref = buffer;
  return PLN_OK;
}

pln_status pln_script_layout_transforms(pln_script_parser *p,
                                        pln_script_value *dict) {
  pln_script_value *items = p->kept + dict->first;
  if (dict->kind != PLN_V_DICT)
    return PLN_OK;
  for (uint32_t i = 0; i < dict->n; i += 2) {
    if (items[i].kind != PLN_V_STRING ||
        !pln_slice_is(items[i].v.s, "layout_transform_map"))
      continue;
    pln_script_value maps = items[i + 1];
    if (maps.kind != PLN_V_DICT)
      return pln_script_refuse(p, &maps, "a dictionary is expected");
    for (uint32_t k = 0; k < maps.n; k += 2)
      PLN_TRY(transform_buffer(p, &p->kept[maps.first + k],
                               &p->kept[maps.first + k + 1]));
    items[i] = items[dict->n - 2];
    items[i + 1] = items[dict->n - 1];
    dict->n -= 2;
    return PLN_OK;
  }
  return PLN_OK;
}
