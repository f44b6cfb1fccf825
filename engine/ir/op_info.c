/* op_info.c: the engine's table of operators.
 *
 * Rows 1 .. n are the static ones of op/ops.def. Operators known only from a
 * file follow as opaque rows, among registered ones (op/register.c). Rows never
 * move and are never removed. */

#include "ir/op_info.h"
#include "ir/merge_ids.h"
#include "ir/registered_op.h"

struct pln_op_table {
  const struct pln_op_table *base; /* child engines: the parent's table */
  const pln_op_info *rows;
  uint32_t n_rows; /* child engines: the number of the parent's rows */
  uint32_t n_added, cap_added;
  pln_op_info **added; /* in the arena, as are the names of opaque rows */
  pln_arena arena;
  uint64_t callbacks;      /* that ran */
  uint32_t callback_depth; /* that are running */
  uint32_t n_registered;   /* of the rows added here */
  bool refused;            /* child engines: a callback was asked for */
  pln_idmap *by_name;      /* symbol -> operator */
};

/* The row of a call that calls no operator. */
static const pln_op_info no_op = {
    .name = "", .max_args = -1, .traits = PLN_TRAIT_OPAQUE, .doc = ""};

static const char opaque_doc[] = "An unknown operator; kept unchanged.";

/* -------------------------------------------------------------- life cycle */

static pln_status name_row(pln_engine *engine, pln_slice name, pln_op op) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(engine, name, &symbol));
  return pln_idmap_set(engine->ops->by_name, symbol, op);
}

pln_status pln_ops_install(pln_engine *engine, const pln_op_info *rows,
                           uint32_t n) {
  struct pln_op_table *table = pln_mem_zeroed(engine, sizeof *table);
  if (!table)
    return pln_nomem(engine);
  engine->ops = table;
  table->rows = rows;
  table->n_rows = n;
  pln_arena_init(&table->arena, engine);
  pln_status status = pln_idmap_new(engine, &table->by_name);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = name_row(engine, pln_text(rows[i].name), i + 1);
  if (status != PLN_OK)
    pln_ops_free(engine);
  return status;
}

pln_status pln_ops_child(pln_engine *child) {
  struct pln_op_table *table = pln_mem_zeroed(child, sizeof *table);
  if (!table)
    return pln_nomem(child);
  child->ops = table;
  table->base = child->parent->ops;
  table->n_rows = pln_op_count(child->parent);
  pln_arena_init(&table->arena, child);
  return pln_idmap_new(child, &table->by_name);
}

/* Callbacks are released while the table is whole: they may ask for names. */
static void release_registered(const struct pln_op_table *table) {
  for (uint32_t i = 0; i < table->n_added; i++) {
    const pln_registered_op *registered = table->added[i]->registered;
    if (registered && registered->spec.release)
      registered->spec.release(registered->spec.ud);
  }
}

void pln_ops_free(pln_engine *engine) {
  struct pln_op_table *table = engine->ops;
  if (!table)
    return;
  release_registered(table);
  if (table->by_name)
    pln_idmap_free(table->by_name);
  pln_mem_free(engine, table->added, table->cap_added * sizeof *table->added);
  pln_arena_free(&table->arena);
  pln_mem_free(engine, table, sizeof *table);
  engine->ops = NULL;
}

/* ------------------------------------------------------------- opaque rows */

static pln_status add_row(pln_engine *engine, pln_op_info *row, pln_op *out) {
  struct pln_op_table *table = engine->ops;
  PLN_TRY(pln_mem_grow(engine, (void **)&table->added, &table->cap_added,
                       table->n_added + 1u, sizeof *table->added));
  pln_op op = table->n_rows + table->n_added + 1;
  PLN_TRY(name_row(engine, pln_text(row->name), op));
  table->added[table->n_added++] = row;
  *out = op;
  return PLN_OK;
}

static pln_op_info *new_opaque(struct pln_op_table *table, pln_slice name) {
  pln_op_info *row = pln_arena_new(&table->arena, sizeof *row);
  char *text = pln_arena_new(&table->arena, name.size + 1);
  if (!row || !text)
    return NULL;
  memcpy(text, name.data, name.size);
  text[name.size] = '\0';
  *row = (pln_op_info){.name = text,
                       .max_args = -1,
                       .traits = PLN_TRAIT_OPAQUE,
                       .attrs = "",
                       .doc = opaque_doc};
  return row;
}

pln_status pln_op_opaque(pln_engine *engine, pln_slice name, pln_op *out) {
  *out = pln_op_find(engine, name);
  if (*out)
    return PLN_OK;
  if (name.size == 0)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "an operator must have a name");
  pln_op_info *row = new_opaque(engine->ops, name);
  return row ? add_row(engine, row, out) : pln_nomem(engine);
}

/* -------------------------------------------------------- registered rows */

void *pln_ops_memory(pln_engine *engine, size_t size) {
  return pln_arena_new(&engine->ops->arena, size);
}

pln_status pln_ops_add(pln_engine *engine, const pln_op_info *row,
                       pln_op *out) {
  pln_op_info *copy = pln_ops_memory(engine, sizeof *copy);
  if (!copy)
    return pln_nomem(engine);
  *copy = *row;
  PLN_TRY(add_row(engine, copy, out));
  engine->ops->n_registered++;
  return PLN_OK;
}

uint32_t pln_op_n_results(const pln_engine *engine, pln_op op, pln_attrs core) {
  const pln_registered_op *registered = pln_op_row(engine, op)->registered;
  const pln_relay_row *relay = pln_relay_of(engine, op);
  if (registered)
    return registered->spec.n_results > 1 ? registered->spec.n_results : 0;
  return relay ? pln_relay_n_results(engine, relay, 0, core) : 0;
}

/* --------------------------------------------------------------- callbacks */

pln_status pln_op_callback_begin(pln_engine *engine, pln_op op,
                                 const char *what) {
  enum { MOST_NESTED = 20 };
  const pln_op_info *row = pln_op_row(engine, op);
  struct pln_op_table *table = engine->ops;
  if (engine->parent && !row->registered->spec.any_thread) {
    table->refused = true;
    return pln_diag_error(engine, PLN_ERR_CALLBACK, NULL,
                          "'%s': %s is called on a thread", row->name, what);
  }
  if (table->callback_depth == MOST_NESTED)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "'%s': %s is called within %d other functions of "
                          "operators",
                          row->name, what, MOST_NESTED);
  table->callback_depth++;
  table->callbacks++;
  return PLN_OK;
}

void pln_op_callback_end(pln_engine *engine) {
  engine->ops->callback_depth--;
}

uint32_t pln_ops_registered(const pln_engine *engine) {
  return engine->ops->n_registered;
}

bool pln_op_callback_refused(const pln_engine *child) {
  return child->ops->refused;
}

uint64_t pln_op_callbacks(const pln_engine *engine) {
  return engine->ops->callbacks;
}

/* ----------------------------------------------------------------- reading */

pln_op pln_op_find(const pln_engine *engine, pln_slice name) {
  if (!engine->ops)
    return 0;
  const struct pln_op_table *table = engine->ops;
  pln_symbol symbol = pln_intern_find(engine->symbols, name.data, name.size);
  if (!symbol)
    return 0;
  pln_op op = table->base ? pln_idmap_get(table->base->by_name, symbol) : 0;
  return op ? op : pln_idmap_get(table->by_name, symbol);
}

const pln_op_info *pln_op_row(const pln_engine *engine, pln_op op) {
  const struct pln_op_table *table = engine->ops;
  if (!table || op == 0 || op > table->n_rows + table->n_added)
    return &no_op;
  if (op > table->n_rows)
    return table->added[op - table->n_rows - 1];
  if (table->base)
    return pln_op_row(engine->parent, op);
  return &table->rows[op - 1];
}

pln_status pln_merge_ops(pln_merge *j) {
  const struct pln_op_table *table = j->child->ops;
  PLN_TRY(pln_merge_map_begin(j, &j->ops, table->n_rows, table->n_added));
  for (; j->ops.n < table->n_added; j->ops.n++)
    PLN_TRY(pln_op_opaque(j->parent, pln_text(table->added[j->ops.n]->name),
                          &j->ops.to[j->ops.n]));
  return PLN_OK;
}

pln_slice pln_op_name(const pln_engine *engine, pln_op op) {
  return pln_text(pln_op_row(engine, op)->name);
}

const char *pln_op_doc(const pln_engine *engine, pln_op op) {
  return pln_op_row(engine, op)->doc;
}

uint32_t pln_op_count(const pln_engine *engine) {
  return engine->ops ? engine->ops->n_rows + engine->ops->n_added : 0;
}
