/* test_out_of_memory.c: whatever is done to a module or a graph while memory
 * runs out fails with a diagnostic, leaks nothing, and leaves what there was as
 * it was: reading, typing, comparing, printing, drawing, changing. Builders,
 * rewriting and passes have their own sweeps. */

#include "oom.h"
#include "relay_fixture.h"

static pln_status drop(void *ud, const char *data, size_t size) {
  (void)data;
  *(size_t *)ud += size;
  return PLN_OK;
}

/* --------------------------------------------------------------- what is done
 */

static pln_status print_all(const pln_module *m) {
  static const pln_print_options ways[] = {
      {.limit = 0},
      {.limit = 100},
      {.no_metadata = true, .hash_references = true},
      {.constants = PLN_CONSTANTS_EMBEDDED},
      {.constants = PLN_CONSTANTS_BRIEF}};
  size_t n = 0;
  pln_status status = PLN_OK;
  for (size_t i = 0; i < sizeof ways / sizeof *ways && status == PLN_OK; i++)
    status = pln_print_module(m, &ways[i], drop, &n);
  return status;
}

static pln_status draw_all(const pln_module *m) {
  size_t n = 0;
  const pln_graph *g = pln_module_function_at(m, 0);
  pln_status status = pln_dot_module(m, drop, &n);
  if (status == PLN_OK)
    status = pln_json_module(m, drop, &n);
  if (status == PLN_OK)
    status = pln_dot_graph(g, drop, &n);
  return status == PLN_OK ? pln_json_graph(g, drop, &n) : status;
}

static pln_status look_all(const pln_module *m) {
  uint64_t hash;
  bool same;
  pln_mismatch where;
  pln_status status = pln_module_verify(m);
  if (status == PLN_OK)
    status = pln_module_well_formed(m);
  if (status == PLN_OK)
    status = pln_module_hash(m, &hash);
  if (status == PLN_OK)
    status = pln_module_equal(m, m, &same);
  if (status == PLN_OK)
    status = pln_module_mismatch(m, m, true, false, &where);
  return status == PLN_OK ? pln_module_mismatch(m, m, false, true, &where)
                          : status;
}

static pln_status change_dim(const pln_module *m) {
  pln_module *fixed = NULL;
  pln_status status = pln_module_fix_dim(m, pln_text("N"), 3, &fixed);
  pln_module_release(fixed);
  return status;
}

static pln_status change_shape(const pln_module *m) {
  static const int64_t dims[] = {-1, 3};
  pln_module *fixed = NULL;
  pln_status status = pln_module_fix_shape(m, pln_text("x"), 2, dims, &fixed);
  pln_module_release(fixed);
  return status;
}

/* Each function for the types that its parameters have. */
static pln_status try_types(const pln_module *m) {
  enum { MOST = 8 };
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < pln_module_count(m) && status == PLN_OK; i++) {
    const pln_graph *g = pln_module_function_at(m, i);
    pln_engine *e = pln_module_engine(m);
    pln_type type = pln_node_type(g, pln_graph_root(g)), types[MOST];
    uint32_t n = pln_type_n_parts(e, type) - 1;
    pln_signature_result trial;
    bool params[MOST];
    for (uint32_t k = 0; k < n && k < MOST; k++)
      types[k] = pln_type_part_at(e, type, k);
    if (n <= MOST)
      status = pln_graph_infer_signature(g, m, n, types, &trial, params);
  }
  return status;
}

static pln_status change_attrs(const pln_module *m) {
  pln_attr row = {.kind = PLN_ATTR_INT, .v.i = 7};
  pln_attrs attrs;
  pln_module *with = NULL;
  pln_engine *e = pln_module_engine(m);
  pln_status status = pln_symbol_intern(e, pln_text("seven"), &row.name);
  if (status == PLN_OK)
    status = pln_attrs_make(e, 1, &row, &attrs);
  if (status == PLN_OK)
    status = pln_module_with_attrs(m, attrs, &with);
  pln_module_release(with);
  return status;
}

static pln_status change_functions(const pln_module *m) {
  pln_module *without = NULL, *with = NULL;
  pln_symbol name = pln_module_name_at(m, 0);
  pln_status status = pln_module_without(m, name, &without);
  if (status == PLN_OK)
    status =
        pln_module_with(without, name, pln_module_function_at(m, 0), &with);
  pln_module_release(with);
  pln_module_release(without);
  return status;
}

static pln_status infer_all(const pln_module *m) {
  pln_module *typed = NULL;
  pln_status status = pln_module_infer(m, &typed);
  pln_module_release(typed);
  return status;
}

static pln_status dominate(const pln_module *m) {
  const pln_graph *g = pln_module_function_at(m, pln_module_count(m) - 1);
  pln_ref *out = calloc(pln_graph_size(g), sizeof *out);
  pln_status status = out ? pln_graph_dominators(g, out) : PLN_OK;
  free(out);
  return status;
}

static pln_status walk_type(pln_engine *e, pln_type type) {
  pln_type_walker *walker = NULL;
  bool done = false;
  pln_status status = pln_type_walker_new(e, &walker);
  if (status == PLN_OK)
    status = pln_type_walker_add(walker, type);
  while (status == PLN_OK && !done)
    status = pln_type_walker_next(walker, &type, &done);
  pln_type_walker_free(walker);
  return status;
}

static pln_status read_types(const pln_module *m) {
  pln_engine *e = pln_module_engine(m);
  pln_type type, wide;
  pln_slice text =
      pln_text("fn (Tensor[(N + 1, 2), float32], ref(List[int8])) -> (bool,)");
  pln_status status = pln_parse_type_text(e, text, 0, NULL, &type);
  if (status == PLN_OK)
    status = walk_type(e, type);
  if (status == PLN_OK)
    status =
        pln_parse_type_text(e, pln_text("Tensor[(2), int8]"), 0, NULL, &type);
  return status == PLN_OK ? pln_type_with_lanes(e, type, 4, &wide) : status;
}

typedef pln_status (*deed)(const pln_module *m);

/* ---------------------------------------------------------------------- tests
 */

/* The module is there before memory fails; it is the same afterwards. */
static pln_status with_module(pln_engine *engine, void *ud) {
  deed *all = ud;
  pln_module *m = NULL;
  pln_status status =
      pln_parse_module(engine, pln_text(rich_text), "rich", NULL, &m);
  for (; status == PLN_OK && *all; all++)
    status = (*all)(m);
  pln_module_release(m);
  return status;
}

static void shows(void) {
  deed deeds[] = {print_all, draw_all, NULL};
  oom_sweep(with_module, deeds);
}

static void compares(void) {
  deed deeds[] = {look_all, dominate, read_types, NULL};
  oom_sweep(with_module, deeds);
}

static void changes(void) {
  deed deeds[] = {infer_all,    change_dim,       change_shape, try_types,
                  change_attrs, change_functions, NULL};
  oom_sweep(with_module, deeds);
}

static const char path[] = "c_scarce.relay";

static pln_status through_file(pln_engine *engine, void *ud) {
  pln_module *m = ud, *again = NULL;
  pln_status status =
      pln_parse_module(engine, pln_text(rich_text), "rich", NULL, &m);
  if (status == PLN_OK)
    status = pln_print_file(m, path);
  if (status == PLN_OK)
    status = pln_parse_file(engine, path, &again);
  pln_module_release(again);
  pln_module_release(m);
  return status;
}

static void files(void) {
  oom_sweep(through_file, NULL);
  CHECK(remove(path) == 0);
}

static const check_test tests[] = {
    {"what is printed and drawn", shows},
    {"what is compared and looked at", compares},
    {"what is changed and typed", changes},
    {"what is written to a file and read", files},
};
CHECK_MAIN(tests)
