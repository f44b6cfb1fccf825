/* device_passes.c: passes of TVM's lowering that have work in programs for GPUs
 * and accelerators, or for dtypes that processors do not compute. Here they
 * leave every other function as it is, and refuse one that they would have to
 * change.
 *
 * Run by the executor. Each pass is a row: what it looks for. So the phases of
 * tvm.lower run by name, and nothing that this engine cannot lower passes
 * unnoticed.
 *
 *     A_warp = T.allocate([64], "float32", "warp")
 *         =>   tir.LowerWarpMemory refuses it
 *
 * Semantics: TVM's passes of the same names on programs without such parts. */

#include "lower/lower.h"

typedef enum trigger_kind {
  NEVER,
  ANNOTATION, /* of a Block or loop: a key of its annotations */
  ATTR_KEY,   /* of an AttrStmt */
  SCOPE,      /* a storage scope that begins so */
  TARGET,     /* a function for a target of that key: "gpu" */
  DTYPE,      /* a value whose dtype's name begins so */
  PREFETCH    /* a Prefetch */
} trigger_kind;

typedef struct device_row {
  const char *pass;
  trigger_kind kind;
  const char *text; /* what it looks for */
} device_row;

/* A pass may have several rows. */
static const device_row rows[] = {
    {"tir.InjectPrefetch", PREFETCH, "Prefetch"},
    {"tir.InjectPermutedLayout", ANNOTATION, "permuted_layout"},
    {"tir.TransformMmaBufferLayout", SCOPE, "m16n8k8."},
    {"tir.LowerWarpMemory", SCOPE, "warp"},
    {"tir.InferFragment", SCOPE, "wmma."},
    {"tir.LowerVtcmAlloc", SCOPE, "global.vtcm"},
    {"tir.LowerDeviceStorageAccessInfo", SCOPE, "local."},
    {"tir.LowerDeviceStorageAccessInfo", SCOPE, "global.texture"},
    {"tir.LowerCustomDatatypes", NEVER, ""},
    {"tir.VerifyMemory", TARGET, "gpu"},
    {"tir.CoProcSync", ATTR_KEY, "coproc_scope"},
    {"tir.LowerAsyncDMA", ATTR_KEY, "async_scope"},
    {"tir.InjectPTXAsyncCopy", ATTR_KEY, "async_scope"},
    {"tir.InjectPTXLDG32", TARGET, "gpu"},
};

/* ------------------------------------------------------------------ triggers
 */

static bool has_annotation(const pln_graph *g, const pln_node *n,
                           const char *key) {
  const pln_attr *all;
  if (n->kind != PLN_BLOCK && n->kind != PLN_FOR)
    return false;
  all = pln_attrs_find(g->engine, n->attrs, "annotations");
  return all && all->kind == PLN_ATTR_DICT &&
         pln_attrs_find(g->engine, all->v.dict, key);
}

static bool has_attr_key(const pln_graph *g, const pln_node *n,
                         const char *key) {
  return n->kind == PLN_ATTR_STMT &&
         pln_slice_is(pln_attrs_string(g->engine, n->attrs, "attr_key", ""),
                      key);
}

static bool is_in_scope(const pln_graph *g, const pln_node *n,
                        const char *scope) {
  if (n->kind != PLN_VAR ||
      pln_type_get_kind(g->engine, n->type) != PLN_TYPE_POINTER)
    return false;
  pln_slice text =
      pln_symbol_text(g->engine, pln_type_symbol(g->engine, n->type));
  size_t size = strlen(scope);
  return text.size >= size && memcmp(text.data, scope, size) == 0;
}

static bool is_for_target(const pln_graph *g, const pln_node *n,
                          const char *key) {
  const pln_attr *target, *keys;
  if (n->kind != PLN_PRIM_FUNC)
    return false;
  target = pln_attrs_find(g->engine, n->attrs, "target");
  if (!target || target->kind != PLN_ATTR_DICT)
    return false;
  keys = pln_attrs_find(g->engine, target->v.dict, "keys");
  if (!keys || keys->kind != PLN_ATTR_STRINGS)
    return false;
  for (uint32_t i = 0; i < keys->count; i++)
    if (pln_slice_is(keys->v.strings[i], key))
      return true;
  return false;
}

static bool has_dtype(const pln_graph *g, const pln_node *n,
                      const char *prefix) {
  pln_type_kind kind = pln_type_get_kind(g->engine, n->type);
  if (kind != PLN_TYPE_PRIM ||
      pln_type_dtype(g->engine, n->type) == PLN_DTYPE_NONE)
    return false;
  return strncmp(pln_dtype_name(pln_type_dtype(g->engine, n->type)), prefix,
                 strlen(prefix)) == 0;
}

/* ------------------------------------------------------------------- the pass
 */

static bool is_trigger(const pln_graph *g, pln_ref ref, const device_row *row) {
  const pln_node *n = &g->nodes[ref];
  switch (row->kind) {
  case ANNOTATION: return has_annotation(g, n, row->text);
  case ATTR_KEY: return has_attr_key(g, n, row->text);
  case SCOPE: return is_in_scope(g, n, row->text);
  case TARGET: return is_for_target(g, n, row->text);
  case DTYPE: return has_dtype(g, n, row->text);
  case PREFETCH: return n->kind == PLN_PREFETCH;
  default: return false;
  }
}

static pln_ref find_trigger(const pln_graph *g, const device_row *row) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (is_trigger(g, ref, row))
      return ref;
  return PLN_NONE;
}

pln_status pln_pass_tir_device(pln_pass_run *run) {
  const char *name = pln_pass_name(pln_run_pass(run));
  const pln_graph *g = pln_run_function(run);
  for (size_t i = 0; i < PLN_COUNT(rows); i++) {
    if (strcmp(rows[i].pass, name) != 0)
      continue;
    pln_ref at = find_trigger(g, &rows[i]);
    if (at != PLN_NONE)
      return pln_diag_error(
          g->engine, PLN_ERR_ARGUMENT, NULL,
          "%s: the function has a %s of '%s', which is not lowered here: there "
          "is no code for such devices and dtypes",
          name, pln_kinds[g->nodes[at].kind].name, rows[i].text);
  }
  return PLN_OK;
}
