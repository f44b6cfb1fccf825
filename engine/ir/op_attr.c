/* op_attr.c: the attributes of operators, by operator and key.
 *
 * Set by scripts (lua/graph/op_attr.c) and hosts, read by passes. A child
 * engine reads the table of its parent, which does not change meanwhile.
 * Rows never move to another index; a removed row is empty and is used again
 * when the same attribute is set.
 *
 *     pl.op_attr("nn.conv2d", "target.dnnl", true)
 *
 * Semantics: TVM's OpRegEntry::set_attr with plevel and reset_attr, except that
 * a value of the same level replaces the former one. */

#include "ir/op_attr.h"

typedef struct attr_row {
  bool used;
  pln_op_attr attr;
} attr_row;

struct pln_op_attrs {
  pln_idmap *rows_by_key; /* row_key -> row + 1 */
  uint32_t n_rows, cap_rows;
  attr_row *rows;
  uint64_t version, calls;
};

static const struct pln_op_attrs *table_of(const pln_engine *engine) {
  while (engine->parent)
    engine = engine->parent;
  return engine->op_attrs;
}

static uint64_t row_key(pln_op op, pln_symbol key) {
  return (uint64_t)key << 32 | op;
}

/* -------------------------------------------------------------- life cycle */

static pln_status new_table(pln_engine *engine) {
  if (engine->op_attrs)
    return PLN_OK;
  struct pln_op_attrs *table = pln_mem_zeroed(engine, sizeof *table);
  if (!table)
    return pln_nomem(engine);
  pln_status status = pln_idmap_new(engine, &table->rows_by_key);
  if (status == PLN_OK)
    engine->op_attrs = table;
  else
    pln_mem_free(engine, table, sizeof *table);
  return status;
}

static void release_function(const pln_op_attr *attr) {
  if (attr->is_function && attr->function.release)
    attr->function.release(attr->function.ud);
}

static void clear_row(attr_row *row) {
  attr_row old = *row;
  *row = (attr_row){0};
  if (old.used)
    release_function(&old.attr);
}

void pln_op_attrs_free(pln_engine *engine) {
  struct pln_op_attrs *table = engine->op_attrs;
  if (!table)
    return;
  for (uint32_t i = 0; i < table->n_rows; i++)
    clear_row(&table->rows[i]);
  pln_mem_free(engine, table->rows, table->cap_rows * sizeof *table->rows);
  pln_idmap_free(table->rows_by_key);
  pln_mem_free(engine, table, sizeof *table);
  engine->op_attrs = NULL;
}

uint64_t pln_op_attrs_version(const pln_engine *engine) {
  const struct pln_op_attrs *table = table_of(engine);
  return table ? table->version : 0;
}

uint64_t pln_op_attrs_uses(const pln_engine *engine) {
  const struct pln_op_attrs *table = table_of(engine);
  return table ? table->version + table->calls : 0;
}

/* ----------------------------------------------------------------- setting */

static pln_status check_op(pln_engine *engine, pln_op op, const char *key) {
  if (engine->parent)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "attribute '%s' of an operator cannot be set while "
                          "passes run on threads",
                          key);
  if (op == 0 || op > pln_op_count(engine) || !*key)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "attribute '%s' is set of no operator", key);
  return PLN_OK;
}

/* Makes the texts of a plain value live as long as the engine. */
static pln_status own_value(pln_engine *engine, pln_op op, const char *key,
                            pln_op_attr *attr) {
  pln_symbol symbol;
  switch (attr->is_function ? PLN_ATTR_INT : attr->value.kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL:
  case PLN_ATTR_FLOAT: return PLN_OK;
  case PLN_ATTR_STRING:
    PLN_TRY(pln_symbol_intern(engine, attr->value.v.s, &symbol));
    attr->value.v.s = pln_symbol_text(engine, symbol);
    return PLN_OK;
  default:
    return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                          "attribute '%s' of '%s': a boolean, a number, a "
                          "string or a function expected",
                          key, pln_op_name(engine, op).data);
  }
}

/* The row of the attribute, added when missing. */
static pln_status row_of(pln_engine *engine, pln_op op, const char *key,
                         attr_row **out) {
  pln_symbol symbol;
  PLN_TRY(new_table(engine));
  PLN_TRY(pln_symbol_intern(engine, pln_text(key), &symbol));
  struct pln_op_attrs *table = engine->op_attrs;
  uint32_t at = pln_idmap_get(table->rows_by_key, row_key(op, symbol));
  if (at == 0) {
    if (table->n_rows == table->cap_rows)
      PLN_TRY(pln_mem_grow(engine, (void **)&table->rows, &table->cap_rows,
                           table->n_rows + 1, sizeof *table->rows));
    PLN_TRY(pln_idmap_set(table->rows_by_key, row_key(op, symbol),
                          table->n_rows + 1));
    table->rows[table->n_rows++] = (attr_row){0};
    at = table->n_rows;
  }
  *out = &table->rows[at - 1];
  return PLN_OK;
}

pln_status pln_op_attr_set(pln_engine *engine, pln_op op, const char *key,
                           const pln_op_attr *attr, bool *set) {
  pln_op_attr own = *attr;
  attr_row *row;
  PLN_TRY(check_op(engine, op, key));
  PLN_TRY(own_value(engine, op, key, &own));
  PLN_TRY(row_of(engine, op, key, &row));
  bool replaces = !row->used || row->attr.level <= own.level;
  attr_row old = *row;
  if (replaces) {
    *row = (attr_row){.used = true, .attr = own};
    engine->op_attrs->version++;
    clear_row(&old);
  } else {
    release_function(&own);
  }
  if (set)
    *set = replaces;
  return PLN_OK;
}

static attr_row *find_row(const pln_engine *engine, pln_op op,
                          const char *key) {
  const struct pln_op_attrs *table = table_of(engine);
  if (!table)
    return NULL;
  pln_symbol symbol = pln_intern_find(engine->symbols, key, strlen(key));
  uint32_t at =
      symbol ? pln_idmap_get(table->rows_by_key, row_key(op, symbol)) : 0;
  return at && table->rows[at - 1].used ? &table->rows[at - 1] : NULL;
}

pln_status pln_op_attr_reset(pln_engine *engine, pln_op op, const char *key) {
  PLN_TRY(check_op(engine, op, key));
  attr_row *row = find_row(engine, op, key);
  if (!row)
    return PLN_OK;
  engine->op_attrs->version++;
  clear_row(row);
  return PLN_OK;
}

/* ----------------------------------------------------------------- reading */

const pln_op_attr *pln_op_attr_get(const pln_engine *engine, pln_op op,
                                   const char *key) {
  const attr_row *row = find_row(engine, op, key);
  return row ? &row->attr : NULL;
}

int64_t pln_op_attr_int(const pln_engine *engine, pln_op op, const char *key,
                        int64_t otherwise) {
  const pln_op_attr *attr = pln_op_attr_get(engine, op, key);
  bool plain =
      attr && !attr->is_function &&
      (attr->value.kind == PLN_ATTR_INT || attr->value.kind == PLN_ATTR_BOOL);
  return plain ? attr->value.v.i : otherwise;
}

pln_status pln_op_attr_call(pln_engine *engine, pln_op op, const char *key,
                            pln_op_call *call, bool *called) {
  const pln_op_attr *attr = pln_op_attr_get(engine, op, key);
  const char *name = pln_op_name(engine, op).data;
  *called = attr != NULL;
  if (!attr)
    return PLN_OK;
  if (!attr->is_function)
    return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                          "attribute '%s' of '%s' is not a function", key,
                          name);
  if (engine->parent)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "attribute '%s' of '%s' is called on a thread", key,
                          name);
  engine->op_attrs->calls++;
  call->engine = engine;
  call->op = name;
  call->key = key;
  pln_status status = attr->function.call(attr->function.ud, call);
  if (status != PLN_OK)
    pln_diag_note(engine, NULL, "in attribute '%s' of '%s'", key, name);
  return status;
}
