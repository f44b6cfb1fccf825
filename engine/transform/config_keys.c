/* config_keys.c: the config keys that passes read, under TVM's names. Called
 * once, by install.c.
 *
 * The keys `tir.*` are tables. No built-in pass reads them: they exist so that
 * passes written in scripts find the settings of TVM's passes of the same name
 * in one place. */

#include "transform/transform.h"

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

static const pln_option remove_no_op[] = {
    FLAG("use_dataflow_analysis", "false", "What is known of buffers counts."),
    NUMBER("max_simplification_steps", "0",
           "The most steps of that analysis; 0: any."),
};

static const pln_option overcompute[] = {
    FLAG("use_dataflow_analysis", "false", "What is known of buffers counts."),
};

static const pln_option keys[] = {
    FLAG("rules.exact", "false",
         "Only rewrite rules whose results are equal bit by bit run: those of "
         "proof 'exact'. SimplifyExpr, FuseOnnxOps and passes that are sets of "
         "rules obey."),
    {.name = "rules.only",
     .kind = PLN_ATTR_STRINGS,
     .fallback = "",
     .doc = "The names of the rewrite rules that SimplifyExpr, FuseOnnxOps and "
            "passes that are sets of rules run; an empty list: all."},
    {.name = "relay.FuseOps.max_depth",
     .kind = PLN_ATTR_INT,
     .fallback = "256",
     .least = "1",
     .most = "2147483647",
     .doc = "The most nodes that FuseOps puts into one function."},
    {.name = "target",
     .kind = PLN_ATTR_STRING,
     .fallback = "",
     .doc = "The target that passes optimise for, as TVM writes it: \"llvm "
            "-mcpu=cascadelake\" (pl.target). AlterOpLayout, Legalize and "
            "FuseOps ask for it; an empty text: none."},
    {.name = "relay.FuseOps.max_function_args",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .most = "2147483647",
     .doc =
         "The most arguments, results among them, of a function that FuseOps "
         "makes; 0: any number. Without it, the target's max_function_args."},
    FLAG("relay.FuseOps.link_params", "false",
         "FuseOps keeps constants inside of the functions it makes."),
    {.name = "relay.qnn.requantize.rounding",
     .kind = PLN_ATTR_STRING,
     .fallback = "UPWARD",
     .choices = "UPWARD|TONEAREST",
     .doc = "How a qnn.requantize rounds halves that does not say so: up, or "
            "away from zero."},
    {.name = "relay.qnn.requantize.compute_dtype",
     .kind = PLN_ATTR_STRING,
     .fallback = "int64",
     .choices = "int64|float32|float64",
     .doc = "What a qnn.requantize computes with that does not say so."},
    FLAG("relay.ToMixedPrecision.keep_orig_output_dtype", "false",
         "ToMixedPrecision casts a function's results back."),
    TABLE("tir.Simplify", simplify, "For passes that simplify loop code."),
    TABLE("tir.UnrollLoop", unroll_loop, "For passes that unroll loops."),
    TABLE("tir.LoopPartition", loop_partition, "For passes that split loops."),
    TABLE("tir.InjectDoubleBuffer", double_buffer,
          "For passes that double buffers."),
    TABLE("tir.HoistIfThenElse", hoist_if,
          "For passes that move conditions out of loops."),
    TABLE("tir.RemoveNoOp", remove_no_op,
          "For passes that drop statements without effect."),
    TABLE("tir.ReduceBranchingThroughOvercompute", overcompute,
          "For passes that compute more to branch less."),
};

pln_status pln_transform_install_keys(pln_engine *engine) {
  for (size_t i = 0; i < PLN_COUNT(keys); i++)
    PLN_TRY(pln_config_register(engine, &keys[i]));
  return PLN_OK;
}
