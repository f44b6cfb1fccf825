/* config_keys.c: the config keys that passes over PrimFuncs read, under TVM's
 * names. Called once, by install.c. */

#include "lower/lower.h"

#define NUMBER(field, value, text)                                        \
  {                                                                       \
    .name = field, .kind = PLN_ATTR_INT, .fallback = value, .least = "0", \
    .doc = text                                                           \
  }
#define FLAG(field, value, text)                                             \
  {                                                                          \
    .name = field, .kind = PLN_ATTR_INT, .is_bool = true, .fallback = value, \
    .doc = text                                                              \
  }
#define TABLE(key, rows, text)                                       \
  {                                                                  \
    .name = key, .kind = PLN_ATTR_DICT, .n_fields = PLN_COUNT(rows), \
    .fields = rows, .doc = text                                      \
  }

static const pln_option simplify[] = {
    FLAG("transitively_prove_inequalities", "false",
         "Facts that follow from several others."),
    FLAG("propagate_knowns_to_prove_conditional", "false",
         "Conditions are proved from what is known of buffers."),
    FLAG("propagate_knowns_to_simplify_expressions", "false",
         "Expressions are simplified by what is known of buffers."),
    FLAG("convert_boolean_to_and_of_ors", "false",
         "Conditions become conjunctions of disjunctions."),
    FLAG("apply_constraints_to_boolean_branches", "false",
         "Each side of && and || is simplified under the other."),
};

static const pln_option unroll_loop[] = {
    NUMBER("auto_max_step", "0", "The most steps of a loop to unroll it."),
    NUMBER("auto_max_depth", "8", "The most loops in each other to unroll."),
    NUMBER("auto_max_extent", "0", "The most rounds of a loop to unroll it."),
    FLAG("explicit_unroll", "true",
         "The body is written out; else the loop is marked."),
    FLAG("unroll_local_access", "false",
         "Loops that index local buffers are unrolled."),
};

static const pln_option loop_partition[] = {
    FLAG("partition_const_loop", "false", "Loops of known extent too."),
    FLAG("no_unroll_loop_with_extent_one", "false",
         "Loops of one round stay loops."),
    FLAG("unroll_loop_with_partition_hint_no_interval", "false",
         "Loops marked for it that have no interval are unrolled."),
};

static const pln_option double_buffer[] = {
    NUMBER("split_loop", "1", "By how much the loop is split."),
};

static const pln_option hoist_if[] = {
    FLAG("support_block_scope_hosting", "false", "Out of blocks too."),
};

static const pln_option hoist_expression[] = {
    NUMBER("hoisted_conditionals", "7",
           "Sum of 1 (if statements), 2 (if_then_else and Select), 4 (sides of "
           "&& and ||), 8 (conditions on the variables of attributes)."),
    NUMBER("hoisted_let_bindings", "3",
           "Sum of 1 (what a condition needs), 2 (statements), 4 "
           "(expressions)."),
};

static const pln_option remove_no_op[] = {
    FLAG("use_dataflow_analysis", "false", "What is known of buffers counts."),
    NUMBER("max_simplification_steps", "0",
           "The most steps of that analysis; 0: any."),
};

static const pln_option overcompute[] = {
    FLAG("use_dataflow_analysis", "false", "What is known of buffers counts."),
};

static const pln_option keys[] = {
    FLAG("tir.disable_vectorize", "false",
         "tir.lower makes vectorised loops serial."),
    FLAG("tir.disable_storage_rewrite", "false",
         "tir.lower leaves out tir.StorageRewrite."),
    FLAG("tir.disable_cse_tir", "false",
         "tir.lower leaves common subexpressions alone."),
    FLAG("tir.enable_equiv_terms_in_cse_tir", "false",
         "tir.CommonSubexprElimTIR identifies terms that are equal by "
         "arithmetic."),
    FLAG("tir.instrument_bound_checkers", "false",
         "tir.lower adds assertions that accesses are in bounds."),
    FLAG("tir.disable_assert", "false",
         "pl.build leaves out assertions (tir.SkipAssert)."),
    FLAG("tir.detect_global_barrier", "false",
         "Barriers between accesses of global memory are looked for, too: "
         "tir.ThreadSync has a storage_scope for that, which no pipeline here "
         "runs."),
    FLAG("tir.is_entry_func", "true",
         "Known by name as in TVM, where nothing reads it; "
         "tir.AnnotateEntryFunc marks the function."),
    FLAG("tir.use_async_copy", "false", "tir.lower runs tir.LowerAsyncDMA."),
    FLAG("tir.ptx_ldg32", "false", "tir.lower runs tir.InjectPTXLDG32."),
    FLAG("tir.instrument_lwp", "false",
         "tir.lower ends with tir.InstrumentProfileIntrinsics."),
    FLAG("tir.enable_debug", "false",
         "tir.lower ends with tir.InstallDebugSpans."),
    FLAG("tir.noalias", "true",
         "Lowered functions say that their buffers do "
         "not overlap."),
    FLAG("tir.debug_keep_trivial_loop", "false",
         "Schedules make loops of axes of extent 1, too."),
    {.name = "tir.add_lower_pass",
     .kind = PLN_ATTR_STRINGS,
     .doc = "Passes that tir.lower adds: \"PHASE:PASS\" runs at the end of "
            "phase 0, 1, 2 or 3."},
    TABLE("tir.Simplify", simplify, "How tir.Simplify simplifies."),
    TABLE("tir.UnrollLoop", unroll_loop, "Which loops tir.UnrollLoop unrolls."),
    TABLE("tir.LoopPartition", loop_partition,
          "Which loops tir.LoopPartition splits."),
    TABLE("tir.InjectDoubleBuffer", double_buffer,
          "How tir.InjectDoubleBuffer splits loops."),
    TABLE("tir.HoistIfThenElse", hoist_if,
          "How far tir.HoistIfThenElse moves conditions."),
    TABLE("tir.HoistExpression", hoist_expression,
          "What tir.HoistExpression moves out of loops."),
    TABLE("tir.RemoveNoOp", remove_no_op, "What tir.RemoveNoOp looks at."),
    NUMBER("tir.lwp_max_depth", "0",
           "tir.InstrumentProfileIntrinsics: the most loops around a marked "
           "one, less 1; 0: any."),
    NUMBER("tir.lwp_min_height", "1",
           "tir.InstrumentProfileIntrinsics: the least loops inside of each "
           "other in a marked one."),
    FLAG("tir.instr_siblings", "true",
         "tir.InstrumentProfileIntrinsics: only loops beside others."),
    FLAG("tir.lwp_disable_func_prof", "false",
         "tir.InstrumentProfileIntrinsics: loops only, not functions."),
    FLAG("tir.reset_start_id", "false",
         "tir.InstrumentProfileIntrinsics numbers from 0, as it always does."),
    TABLE("tir.ReduceBranchingThroughOvercompute", overcompute,
          "What tir.ReduceBranchingThroughOvercompute looks at."),
};

pln_status pln_lower_install_keys(pln_engine *engine) {
  for (size_t i = 0; i < PLN_COUNT(keys); i++)
    PLN_TRY(pln_config_register(engine, &keys[i]));
  return PLN_OK;
}
