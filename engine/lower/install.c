/* install.c: registers the passes over PrimFuncs. Called once, by engine.c. */

#include "lower/lower.h"

static const pln_option thread_sync_options[] = {
    {.name = "storage_scope",
     .kind = PLN_ATTR_STRING,
     .fallback = "shared",
     .doc = "The memory between whose accesses barriers stand."},
};

#define BOUND_ATTRIBUTE                                                      \
  {                                                                          \
    .name = "create_bound_attribute", .kind = PLN_ATTR_INT, .is_bool = true, \
    .fallback = "false",                                                     \
    .doc = "Stores stand in attributes that say how large buffers are, for " \
           "tir.InstrumentBoundCheckers."                                    \
  }

static const pln_option flattener_options[] = {BOUND_ATTRIBUTE};

static const pln_option storage_flatten_options[] = {
    {.name = "cache_line_size",
     .kind = PLN_ATTR_INT,
     .fallback = "64",
     .least = "1",
     .doc = "Bytes of a line of the cache; the result does not depend on it."},
    BOUND_ATTRIBUTE,
};

static const pln_option vectorize_options[] = {
    {.name = "enable_vectorize",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "true",
     .doc = "Without it, vectorised loops become serial."},
};

static const pln_option vectorize_outer_options[] = {
    {.name = "vector_bytes",
     .kind = PLN_ATTR_INT,
     .fallback = "32",
     .least = "1",
     .most = "64",
     .doc = "The bytes of a vector; a loop gets up to eight vectors of lanes."},
};

static const pln_option narrow_options[] = {
    {.name = "target_bits",
     .kind = PLN_ATTR_INT,
     .fallback = "32",
     .least = "8",
     .most = "64",
     .doc = "The bits of an index, where its values fit in them."},
};

static const pln_option compact_options[] = {
    {.name = "is_strict",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "true",
     .doc = "Accesses that may be out of bounds count, too."},
};

static const pln_option lower_options[] = {
    {.name = "simple_mode",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Without tir.LoopPartition, which makes programs long."},
};

static const pln_option common_subexpr_options[] = {
    {.name = "enable_cse_tir",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "true",
     .doc = "Without it, nothing is done."},
    {.name = "identify_equiv_terms",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Terms that are equal by arithmetic are one."},
};

static const pln_option hoist_if_options[] = {
    {.name = "variant",
     .kind = PLN_ATTR_STRING,
     .fallback = "full",
     .choices = "full|basic",
     .doc = "'basic': the config is not read, conditions stay in attributes "
            "of variables."},
};

static const pln_option bind_target_options[] = {
    {.name = "target",
     .kind = PLN_ATTR_STRING,
     .fallback = "",
     .doc = "The target's text, with its host: 'llvm -keys=cpu -host=llvm'."},
};

static const pln_option lift_attr_options[] = {
    {.name = "attr_key",
     .kind = PLN_ATTR_STRING,
     .fallback = "",
     .doc = "The key of the attributes that are lifted."},
};

static const pln_option filter_options[] = {
    {.name = "fcond",
     .kind = PLN_ATTR_NONE,
     .doc = "Called with a function: true if it stays."},
};

static const pln_option fp8_options[] = {
    {.name = "promote_dtype",
     .kind = PLN_ATTR_STRING,
     .fallback = "float32",
     .choices = "float16|float32",
     .doc = "The dtype in which numbers are computed."},
};

static const pln_option vtcm_options[] = {
    {.name = "limit",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "Bytes; 0: the target's vtcm-capacity, or no limit."},
};

static const pln_option layout_rewrite_options[] = {
    {.name = "skip_ndarray_rewrite",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Constants keep their elements; functions with such are refused."},
};

#define no_options NULL
enum {
  N_hoist_if_options = PLN_COUNT(hoist_if_options),
  N_fp8_options = PLN_COUNT(fp8_options),
  N_lift_attr_options = PLN_COUNT(lift_attr_options),
  N_filter_options = PLN_COUNT(filter_options),
  N_bind_target_options = PLN_COUNT(bind_target_options),
  N_layout_rewrite_options = PLN_COUNT(layout_rewrite_options),
  N_vtcm_options = PLN_COUNT(vtcm_options),
  N_thread_sync_options = PLN_COUNT(thread_sync_options),
  N_flattener_options = PLN_COUNT(flattener_options),
  N_storage_flatten_options = PLN_COUNT(storage_flatten_options),
  N_vectorize_options = PLN_COUNT(vectorize_options),
  N_compact_options = PLN_COUNT(compact_options),
  N_vectorize_outer_options = PLN_COUNT(vectorize_outer_options),
  N_narrow_options = PLN_COUNT(narrow_options),
  N_lower_options = PLN_COUNT(lower_options),
  N_common_subexpr_options = PLN_COUNT(common_subexpr_options),
  N_no_options = 0
};

/* They read the context's config, so their results are not cached. */
#define KIND_PRIM_FUNC .kind = PLN_PASS_PRIM_FUNC, .parallel = true
#define KIND_PRIM_FUNC_SPANS KIND_PRIM_FUNC, .changes_spans = true
#define KIND_MODULE .kind = PLN_PASS_MODULE

static const pln_pass_spec specs[] = {
#define PASS(pass, KIND, rows, body, text) \
  {.name = #pass,                          \
   KIND_##KIND,                            \
   .doc = text,                            \
   .n_options = N_##rows,                  \
   .options = rows,                        \
   .run = body},
#include "lower/passes.def"
};

pln_status pln_lower_install(pln_engine *engine) {
  for (size_t i = 0; i < PLN_COUNT(specs); i++)
    PLN_TRY(pln_pass_register_built_in(engine, &specs[i]));
  return pln_lower_install_keys(engine);
}
