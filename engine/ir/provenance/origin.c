/* origin.c: the table of node origins. Importers and builders append rows. A
 * graph and all graphs rewritten from it share one table. */

#include "ir/provenance/origin.h"

#include <stdio.h>

#include "ir/provenance/rule_application.h"

pln_status pln_origins_new(pln_engine *engine, pln_origins **out) {
  pln_origins *origins = pln_mem_zeroed(engine, sizeof *origins);
  if (!origins)
    return pln_nomem(engine);
  origins->engine = engine;
  origins->refs = 1;
  uint32_t none;
  pln_status status = pln_origins_add(origins, &(pln_origin){0}, &none);
  if (status != PLN_OK) {
    pln_origins_release(origins);
    return status;
  }
  *out = origins;
  return PLN_OK;
}

pln_status pln_origins_child(pln_engine *child, pln_origins *base,
                             pln_origins **out) {
  pln_origins *origins = pln_mem_zeroed(child, sizeof *origins);
  if (!origins)
    return pln_nomem(child);
  origins->engine = child;
  origins->refs = 1;
  origins->base = base;
  origins->below = origins->count = base->count;
  origins->steps_below = origins->n_steps = base->n_steps;
  origins->changes_below = origins->n_changes = base->n_changes;
  origins->names = base->names;
  origins->declares = base->declares;
  origins->lenient = base->lenient;
  origins->mismatched_calls = base->mismatched_calls;
  *out = origins;
  return PLN_OK;
}

pln_origins *pln_origins_retain(pln_origins *origins) {
  origins->refs++;
  return origins;
}

void pln_origins_release(pln_origins *origins) {
  if (!origins || --origins->refs > 0)
    return;
  pln_engine *engine = origins->engine;
  for (uint32_t i = 0; i < origins->n_files; i++)
    pln_file_release(origins->files[i]);
  pln_mem_free(engine, origins->files,
               origins->cap_files * sizeof *origins->files);
  if (origins->by_line)
    pln_idmap_free(origins->by_line);
  pln_mem_free(engine, origins->steps,
               origins->cap_steps * sizeof *origins->steps);
  pln_mem_free(engine, origins->sources,
               origins->cap_sources * sizeof *origins->sources);
  pln_mem_free(engine, origins->changes,
               origins->cap_changes * sizeof *origins->changes);
  pln_mem_free(engine, origins->rows,
               origins->capacity * sizeof *origins->rows);
  pln_mem_free(engine, origins, sizeof *origins);
}

/* Rows of one file are adjacent, so a search from the end finds it at once. */
static pln_status pin_file(pln_origins *origins, pln_file *file) {
  for (uint32_t i = origins->n_files; i-- > 0;)
    if (origins->files[i] == file)
      return PLN_OK;
  PLN_TRY(pln_mem_grow(origins->engine, (void **)&origins->files,
                       &origins->cap_files, origins->n_files + 1,
                       sizeof *origins->files));
  origins->files[origins->n_files++] = pln_file_retain(file);
  return PLN_OK;
}

pln_status pln_origins_add(pln_origins *origins, const pln_origin *row,
                           uint32_t *out) {
  if (row->file)
    PLN_TRY(pin_file(origins, row->file));
  PLN_TRY(pln_mem_grow(
      origins->engine, (void **)&origins->rows, &origins->capacity,
      (size_t)(origins->count - origins->below) + 1, sizeof *origins->rows));
  origins->rows[origins->count - origins->below] = *row;
  *out = origins->count++;
  return PLN_OK;
}

pln_status pln_origins_line(pln_origins *origins, pln_symbol script,
                            uint32_t line, uint32_t *out) {
  uint64_t key = (uint64_t)script << 32 | line;
  if (!origins->by_line)
    PLN_TRY(pln_idmap_new(origins->engine, &origins->by_line));
  *out = pln_idmap_get(origins->by_line, key);
  if (*out)
    return PLN_OK;
  pln_origin row = {.script = script, .line = line};
  PLN_TRY(pln_origins_add(origins, &row, out));
  return pln_idmap_set(origins->by_line, key, *out);
}

/* -------------------------------------------------------------------- steps */

/* The rules of a pass alternate, so the last few rows are searched. A change
 * that is not among them gets a duplicate row. */
static pln_status find_change(pln_origins *o, const pln_change *change,
                              uint32_t *out) {
  uint32_t n = o->n_changes - o->changes_below;
  for (uint32_t i = n; i > 0 && i + 16 > n; i--)
    if (!memcmp(&o->changes[i - 1], change, sizeof *change)) {
      *out = o->changes_below + i - 1;
      return PLN_OK;
    }
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->changes, &o->cap_changes,
                       (size_t)n + 1, sizeof *o->changes));
  o->changes[n] = *change;
  *out = o->n_changes++;
  return PLN_OK;
}

pln_status pln_origins_move_step(pln_origins *o, const pln_change *change,
                                 pln_origin_step step) {
  uint32_t n = o->n_steps - o->steps_below;
  if (o->n_steps >= ~PLN_ORIGIN_STEP)
    return pln_diag_error(o->engine, PLN_ERR_LIMIT, NULL,
                          "more than 2^31 changes of nodes");
  PLN_TRY(find_change(o, change, &step.change));
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->steps, &o->cap_steps,
                       (size_t)n + 1, sizeof *o->steps));
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->sources, &o->cap_sources,
                       (size_t)n + 1, sizeof *o->sources));
  o->steps[n] = step;
  o->sources[n] = pln_origins_source(o, step.parent);
  o->n_steps++;
  return PLN_OK;
}

pln_status pln_origins_add_step(pln_origins *o, const pln_change *change,
                                pln_origin_step step, uint32_t *out) {
  uint32_t n = o->n_steps - o->steps_below;
  PLN_TRY(find_change(o, change, &step.change));
  if (!n || memcmp(&o->steps[n - 1], &step, sizeof step) != 0)
    PLN_TRY(pln_origins_move_step(o, change, step));
  *out = (o->n_steps - 1) | PLN_ORIGIN_STEP;
  return PLN_OK;
}

pln_status pln_origins_step(pln_origins *origins, uint32_t parent,
                            uint32_t other, uint32_t *out) {
  const pln_applications *a = origins->engine->applications;
  pln_change change = {a->at.pass, a->rule, a->at.number - a->shift};
  pln_origin_step step = {.number = a->rule ? a->number : 0,
                          .parent = parent,
                          .other = other == parent ? 0 : other};
  *out = parent;
  if (!change.pass && !change.rule)
    return PLN_OK;
  return pln_origins_add_step(origins, &change, step, out);
}

/* ---------------------------------------------------------- what rows say */

bool pln_origins_is_node(const pln_origins *origins, const pln_origin *row) {
  return row->file && !row->name && !row->whole && origins->names;
}

/* "node 'a' (Conv)" */
static size_t describe_source_node(const pln_origins *origins,
                                   const pln_origin *row, char *text,
                                   size_t size) {
  pln_slice_names names = origins->names(row);
  bool named = names.name.size != 0;
  pln_slice name = named ? names.name : names.output;
  int n =
      snprintf(text, size, "%s '%.*s' (%.*s)", named ? "node" : "the node of",
               name.size > 200 ? 200 : (int)name.size, name.data,
               names.op.size > 200 ? 200 : (int)names.op.size, names.op.data);
  return n < 0 ? 0 : (size_t)n;
}

size_t pln_origins_describe(const pln_origins *origins, uint32_t row,
                            char *text, size_t size) {
  while ((row = pln_origins_source(origins, row)) != 0) {
    const pln_origin *o = pln_origins_row(origins, row);
    if (o->name) {
      int n = snprintf(text, size, "value '%.200s'",
                       pln_symbol_text(origins->engine, o->name).data);
      return n < 0 ? 0 : (size_t)n;
    }
    if (pln_origins_is_node(origins, o))
      return describe_source_node(origins, o, text, size);
    row = o->parent;
  }
  return 0;
}

/* The row that `row` was named from describes the same source. */
static uint32_t named_from(const pln_origins *origins, uint32_t row) {
  uint32_t parent = pln_origins_row(origins, row)->parent;
  return pln_origins_source(origins, parent);
}

uint32_t pln_origins_place(const pln_origins *origins, uint32_t row) {
  row = pln_origins_source(origins, row);
  while (row && !pln_origins_row(origins, row)->place.source)
    row = named_from(origins, row);
  return row;
}

pln_attrs pln_origins_attr_order(const pln_origins *origins, uint32_t row) {
  row = pln_origins_source(origins, row);
  while (row && !pln_origins_row(origins, row)->attr_order)
    row = named_from(origins, row);
  return pln_origins_row(origins, row)->attr_order;
}
