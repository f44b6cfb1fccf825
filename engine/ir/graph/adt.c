/* graph/adt.c: the definitions of algebraic data types in a module.
 *
 * Loaders and scripts add them; builders look up the types of constructors. A
 * set of definitions is immutable and shared between modules by reference.
 * Invariants: names of definitions are distinct, and so are names of
 * constructors. */

#include "ir/graph/module.h"

/* A constructor, by definition and index. */
typedef struct constructor_row {
  uint32_t row, index;
} constructor_row;

typedef struct pln_definitions {
  pln_engine *engine;
  atomic_uint refs; /* atomic: children's threads hold references too */
  uint32_t count, capacity;
  pln_type_def *rows;            /* with arrays of their own */
  constructor_row *constructors; /* of all rows, in order */
  uint32_t n_constructors, cap_constructors;
  pln_idmap *types;               /* symbol -> row + 1 */
  pln_idmap *constructor_by_name; /* symbol of a constructor -> index in
                                   * `constructors` + 1 */
} pln_definitions;

/* ---------------------------------------------------------------- lifetime */

static void free_row(pln_engine *e, pln_type_def *row) {
  pln_constructor *c = (pln_constructor *)(uintptr_t)row->constructors;
  for (uint32_t i = 0; c && i < row->n_constructors; i++)
    pln_mem_free(e, (void *)(uintptr_t)c[i].inputs,
                 c[i].n_inputs * sizeof(pln_type));
  pln_mem_free(e, c, row->n_constructors * sizeof *c);
  pln_mem_free(e, (void *)(uintptr_t)row->vars, row->n_vars * sizeof(pln_type));
}

struct pln_definitions *pln_definitions_retain(pln_definitions *definitions) {
  if (definitions)
    definitions->refs++;
  return definitions;
}

void pln_definitions_release(pln_definitions *d) {
  if (!d || --d->refs > 0)
    return;
  pln_engine *e = d->engine;
  for (uint32_t i = 0; i < d->count; i++)
    free_row(e, &d->rows[i]);
  pln_mem_free(e, d->rows, d->capacity * sizeof *d->rows);
  pln_mem_free(e, d->constructors,
               d->cap_constructors * sizeof *d->constructors);
  pln_idmap_free(d->types);
  pln_idmap_free(d->constructor_by_name);
  pln_mem_free(e, d, sizeof *d);
}

uint64_t pln_definitions_bytes(const pln_definitions *d) {
  uint64_t size = sizeof *d + d->capacity * sizeof *d->rows +
                  d->cap_constructors * sizeof *d->constructors +
                  pln_idmap_bytes(d->types) +
                  pln_idmap_bytes(d->constructor_by_name);
  for (uint32_t i = 0; i < d->count; i++) {
    const pln_type_def *row = &d->rows[i];
    size += row->n_vars * sizeof *row->vars +
            row->n_constructors * sizeof *row->constructors;
    for (uint32_t k = 0; k < row->n_constructors; k++)
      size += row->constructors[k].n_inputs * sizeof(pln_type);
  }
  return size;
}

static pln_status new_definitions(pln_engine *engine, pln_definitions **out) {
  pln_definitions *d = pln_mem_zeroed(engine, sizeof *d);
  if (!d)
    return pln_nomem(engine);
  d->engine = engine;
  d->refs = 1;
  pln_status status = pln_idmap_new(engine, &d->types);
  if (status == PLN_OK)
    status = pln_idmap_new(engine, &d->constructor_by_name);
  if (status != PLN_OK)
    pln_definitions_release(d);
  else
    *out = d;
  return status;
}

/* ----------------------------------------------------------------- filling */

static pln_status copy_types(pln_engine *e, uint32_t n, const pln_type *from,
                             const pln_type **out) {
  pln_type *copy = n > 0 ? pln_mem_new(e, n * sizeof *copy) : NULL;
  if (n > 0 && !copy)
    return pln_nomem(e);
  if (n > 0)
    memcpy(copy, from, n * sizeof *copy);
  *out = copy;
  return PLN_OK;
}

/* The row's counts include only what was copied, so that an incomplete row can
 * be freed. */
static pln_status copy_constructors(pln_engine *e, const pln_type_def *from,
                                    pln_type_def *row) {
  uint32_t n = from->n_constructors;
  pln_constructor *all = n > 0 ? pln_mem_zeroed(e, n * sizeof *all) : NULL;
  if (n > 0 && !all)
    return pln_nomem(e);
  row->constructors = all;
  row->n_constructors = n;
  for (uint32_t i = 0; i < n; i++) {
    const pln_constructor *c = &from->constructors[i];
    PLN_TRY(copy_types(e, c->n_inputs, c->inputs, &all[i].inputs));
    all[i].name = c->name;
    all[i].n_inputs = c->n_inputs;
  }
  return PLN_OK;
}

static pln_status copy_row(pln_engine *e, const pln_type_def *from,
                           pln_type_def *row) {
  *row = (pln_type_def){.name = from->name, .is_extern = from->is_extern};
  PLN_TRY(copy_types(e, from->n_vars, from->vars, &row->vars));
  row->n_vars = from->n_vars;
  return copy_constructors(e, from, row);
}

static pln_status add_constructor_name(pln_definitions *d, uint32_t row,
                                       uint32_t index) {
  pln_engine *e = d->engine;
  pln_symbol name = d->rows[row].constructors[index].name;
  uint32_t other = pln_idmap_get(d->constructor_by_name, name);
  if (other)
    return pln_diag_error(
        e, PLN_ERR_TYPE, NULL,
        "the constructor '%s' is defined by '%s' already",
        pln_symbol_text(e, name).data,
        pln_symbol_text(e, d->rows[d->constructors[other - 1].row].name).data);
  PLN_TRY(pln_mem_grow(e, (void **)&d->constructors, &d->cap_constructors,
                       (size_t)d->n_constructors + 1, sizeof *d->constructors));
  d->constructors[d->n_constructors++] = (constructor_row){row, index};
  return pln_idmap_set(d->constructor_by_name, name, d->n_constructors);
}

static pln_status name_row(pln_definitions *d, uint32_t index) {
  PLN_TRY(pln_idmap_set(d->types, d->rows[index].name, index + 1));
  for (uint32_t i = 0; i < d->rows[index].n_constructors; i++)
    PLN_TRY(add_constructor_name(d, index, i));
  return PLN_OK;
}

static pln_status add_row(pln_definitions *d, const pln_type_def *data) {
  PLN_TRY(pln_mem_grow(d->engine, (void **)&d->rows, &d->capacity,
                       (size_t)d->count + 1, sizeof *d->rows));
  uint32_t index = d->count++;
  PLN_TRY(copy_row(d->engine, data, &d->rows[index]));
  return name_row(d, index);
}

static pln_status copy_definitions(pln_definitions *d,
                                   const pln_definitions *old,
                                   const pln_type_def *data) {
  bool placed = false;
  for (uint32_t i = 0; old && i < old->count; i++) {
    bool here = old->rows[i].name == data->name;
    placed = placed || here;
    PLN_TRY(add_row(d, here ? data : &old->rows[i]));
  }
  return placed ? PLN_OK : add_row(d, data);
}

pln_status pln_module_with_type(const pln_module *module,
                                const pln_type_def *data, pln_module **out) {
  pln_definitions *d = NULL;
  PLN_TRY(new_definitions(module->engine, &d));
  pln_status status = copy_definitions(d, module->types, data);
  if (status == PLN_OK)
    status = pln_module_copy(module, out);
  if (status != PLN_OK) {
    pln_definitions_release(d);
    return status;
  }
  pln_definitions_release((*out)->types);
  (*out)->types = d;
  return PLN_OK;
}

/* Definitions shared with another module are copied first. */
static pln_status set_in_copy(pln_module *module, const pln_type_def *data) {
  pln_definitions *d = NULL;
  PLN_TRY(new_definitions(module->engine, &d));
  pln_status status = copy_definitions(d, module->types, data);
  if (status != PLN_OK) {
    pln_definitions_release(d);
    return status;
  }
  pln_definitions_release(module->types);
  module->types = d;
  return PLN_OK;
}

pln_status pln_module_set_type(pln_module *module, const pln_type_def *data) {
  if (!module->types)
    PLN_TRY(new_definitions(module->engine, &module->types));
  return module->types->refs > 1 ? set_in_copy(module, data)
                                 : add_row(module->types, data);
}

/* ----------------------------------------------------------------- reading */

uint32_t pln_module_n_types(const pln_module *module) {
  return module->types ? module->types->count : 0;
}

const pln_type_def *pln_module_type_def_at(const pln_module *module,
                                           uint32_t index) {
  return &module->types->rows[index];
}

uint32_t pln_module_find_type(const pln_module *module, pln_symbol name) {
  uint32_t found =
      module->types ? pln_idmap_get(module->types->types, name) : 0;
  return found ? found - 1 : PLN_NONE;
}

uint32_t pln_module_find_constructor(const pln_module *module, pln_symbol name,
                                     uint32_t *index) {
  uint32_t found = module->types
                       ? pln_idmap_get(module->types->constructor_by_name, name)
                       : 0;
  if (!found)
    return PLN_NONE;
  *index = module->types->constructors[found - 1].index;
  return module->types->constructors[found - 1].row;
}

pln_status pln_module_constructor_type(const pln_module *module, uint32_t type,
                                       uint32_t index, pln_type *out) {
  pln_engine *e = module->engine;
  const pln_type_def *row = &module->types->rows[type];
  const pln_constructor *c = &row->constructors[index];
  pln_type made;
  PLN_TRY(pln_type_make(e, PLN_TYPE_CALL, row->name, row->n_vars, row->vars,
                        &made));
  return pln_type_func(e, c->n_inputs, c->inputs, made, row->n_vars, row->vars,
                       0, NULL, out);
}
