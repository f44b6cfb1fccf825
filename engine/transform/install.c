/* install.c: registers the built-in passes. Called once, by engine.c. */

#include "transform/transform.h"

static const pln_option fold_options[] = {
    PLN_FOLD_OPTION,
};

static const pln_option fake_quantization_options[] = {
    {.name = "hard_fail",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "A region that cannot be converted is an error."},
    {.name = "use_qat",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Operators between dequantised operands are converted alone, too."},
    {.name = "optional_qnn_ops",
     .kind = PLN_ATTR_STRINGS,
     .fallback = "",
     .doc = "Operators that are converted only if they are named: nn.softmax."},
};

static const pln_option precision_options[] = {
    {.name = "mixed_precision_type",
     .kind = PLN_ATTR_STRING,
     .fallback = "float16",
     .choices = "float16|bfloat16|float32|float64",
     .doc = "The lower precision."},
    {.name = "missing_op_mode",
     .kind = PLN_ATTR_INT,
     .fallback = "1",
     .least = "0",
     .most = "2",
     .doc = "An operator without a category is 0: an error, 1: a warning, "
            "2: neither; it follows its operands."},
};

static const pln_option fold_constant_options[] = {
    PLN_FOLD_OPTION,
    {.name = "fold_qnn",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Quantisation is folded too."},
    {.name = "fold_calls",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "true",
     .doc = "Calls of functions and loops are folded too."},
    {.name = "log",
     .kind = PLN_ATTR_STRING,
     .fallback = "",
     .doc = "Where each decision is written: a file, '-' the standard error."},
};

static const pln_option opset_options[] = {
    {.name = "opset",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .doc = "The version of ai.onnx, from 7 on; 0: the model's own."},
    {.name = "newer",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Only from an older version to a newer one."},
};

static const pln_option legalize_options[] = {
    {.name = "legalize_map_attr_name",
     .kind = PLN_ATTR_STRING,
     .fallback = "FTVMLegalize",
     .doc = "The attribute of operators that is the function to call."},
};

static const pln_option layout_options[] = {
    {.name = "desired_layouts",
     .kind = PLN_ATTR_DICT,
     .entries = PLN_ATTR_STRINGS,
     .doc = "The layouts of an operator's data and weights, by its name; "
            "'default' for those that go with the data's."},
    {.name = "skip_layers",
     .kind = PLN_ATTR_INTS,
     .fallback = "[]",
     .doc = "Numbers, from 0 in each function, of the convolutions that stay "
            "as they are."},
};

static const pln_option fusion_options[] = {
    {.name = "fusions",
     .kind = PLN_ATTR_STRING,
     .fallback = "ai.onnx",
     .choices = "ai.onnx|com.microsoft",
     .doc = "The operators that may be made: ONNX's only, or ONNX Runtime's "
            "of com.microsoft, too."},
    {.name = "finite_math",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "No computed value is infinite or NaN: guards against them go."},
    {.name = "associative_math",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Sums and products of floats may be computed in any order: their "
            "constants are merged."},
};

#define SATURATION_RULES(generated)                                            \
  {.name = "rules",                                                            \
   .kind = PLN_ATTR_STRINGS,                                                   \
   .single = true,                                                             \
   .fallback = "",                                                             \
   .doc = "Rules, [name:] pattern => replacement [where condition]; with <=> " \
          "they hold in both directions."},                                    \
      {.name = "generated_rules",                                              \
       .kind = PLN_ATTR_INT,                                                   \
       .is_bool = true,                                                        \
       .fallback = generated,                                                  \
       .doc = "The rules that 'perilune rules substitution' shows are used, "  \
              "too, "                                                          \
              "which may round otherwise."},                                   \
  {                                                                            \
    .name = "shipped_rules", .kind = PLN_ATTR_INT, .is_bool = true,            \
    .fallback = "true",                                                        \
    .doc = "The exact rules of SimplifyExpr are used, too."                    \
  }

static const pln_option saturation_options[] = {
    SATURATION_RULES("false"),
    {.name = "cost",
     .kind = PLN_ATTR_STRING,
     .fallback = "time",
     .choices = "nodes|flops|bytes|time|measured",
     .doc = "What is made least: calls, operations on numbers, bytes read and "
            "written, an estimate of the time, or the measured time of each "
            "call (pl.tune.call_costs)."},
    {.name = "node_limit",
     .kind = PLN_ATTR_INT,
     .fallback = "10000",
     .least = "1",
     .most = "100000000",
     .doc = "The search of a scope ends with so many e-nodes."},
    {.name = "iter_limit",
     .kind = PLN_ATTR_INT,
     .fallback = "30",
     .least = "0",
     .most = "1000000",
     .doc = "The search of a scope ends after so many rounds."},
    {.name = "k_multi",
     .kind = PLN_ATTR_INT,
     .fallback = "1",
     .least = "0",
     .most = "1000000",
     .doc =
         "Rules of several roots are applied to what they made so many times "
         "less one, as by Tensat's parameter of that name; 0: not at all."},
    {.name = "time_limit",
     .kind = PLN_ATTR_FLOAT,
     .fallback = "0",
     .least = "0",
     .doc = "The search of a function ends after so many seconds, and may then "
            "differ from one run to the next; 0: no limit."},
};

static const pln_option substitution_options[] = {
    SATURATION_RULES("true"),
    {.name = "at",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "The number of the application, from 0 on in each function."},
};

static const pln_option batch_norm_options[] = {
    PLN_FOLD_OPTION,
    {.name = "halves",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Also into weights of 16 bits, which are rounded once more."},
};

static const pln_option fuse_options[] = {
    {.name = "fuse_opt_level",
     .kind = PLN_ATTR_INT,
     .fallback = "-1",
     .least = "-1",
     .doc = "0 leaves each operator alone; -1: the context's opt_level."},
};

#define MIN_NUM_BRANCHES                                                     \
  {                                                                          \
    .name = "min_num_branches", .kind = PLN_ATTR_INT, .fallback = "3",       \
    .least = "0", .doc = "Fewer parallel calls than these stay as they are." \
  }

static const pln_option branch_options[] = {MIN_NUM_BRANCHES};

static const pln_option dense_branch_options[] = {
    MIN_NUM_BRANCHES,
    {.name = "to_batch",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "true",
     .doc = "Layers of equal shapes become one nn.batch_matmul; without it, "
            "layers become one nn.dense."},
};

static const pln_option split_args_options[] = {
    {.name = "max_function_args",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "The largest number of tensors, the result among them, that one "
            "concatenate has; 0: the target's max_function_args, or any."},
};

static const pln_option batch_options[] = {
    {.name = "data",
     .kind = PLN_ATTR_DICT,
     .entries = PLN_ATTR_INT,
     .doc = "The axis that is the batch, by the name of a parameter; in a "
            "script also by the variable."},
    {.name = "batch",
     .kind = PLN_ATTR_INT,
     .fallback = "16",
     .least = "0",
     .doc = "The new batch size."},
};

static const pln_option fc_transpose_options[] = {
    {.name = "target_weight_name",
     .kind = PLN_ATTR_STRINGS,
     .doc = "The parameters that are given transposed."},
};

#define WEIGHT_NAME                                       \
  {                                                       \
    .name = "weight_name", .kind = PLN_ATTR_STRINGS,      \
    .doc = "The parameters that are given in BSR format." \
  }
#define WEIGHT_SHAPE                                                           \
  {                                                                            \
    .name = "weight_shape", .kind = PLN_ATTR_LIST,                             \
    .doc = "For each of them the extents of its data, and the lengths of its " \
           "indices and row pointers."                                         \
  }
#define SPARSE_LAYOUT                                                \
  {                                                                  \
    .name = "layout", .kind = PLN_ATTR_STRING, .fallback = "NHWC",   \
    .choices = "NHWC|NCHW", .doc = "The layout of the convolutions." \
  }
#define SPARSE_KERNEL                                             \
  {                                                               \
    .name = "kernel_size", .kind = PLN_ATTR_INT, .fallback = "1", \
    .least = "1", .doc = "The extent of their kernels."           \
  }

static const pln_option sparse_options[] = {WEIGHT_NAME, WEIGHT_SHAPE};

static const pln_option sparse_conv_options[] = {WEIGHT_NAME, WEIGHT_SHAPE,
                                                 SPARSE_LAYOUT, SPARSE_KERNEL};

static const pln_option sparse_constant_options[] = {
    SPARSE_LAYOUT,
    SPARSE_KERNEL,
    {.name = "blocksize",
     .kind = PLN_ATTR_INTS,
     .fallback = "[1,1]",
     .least = "1",
     .doc = "Rows and columns of a block."},
    {.name = "sparsity_threshold",
     .kind = PLN_ATTR_FLOAT,
     .fallback = "0.5",
     .least = "0",
     .most = "1",
     .doc = "The part of the elements that has to be left out."},
};

static const pln_option eta_options[] = {
    {.name = "expand_constructor",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Constructors that are used as values."},
    {.name = "expand_global_var",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Names of functions of the module."},
};

static const pln_option entry_options[] = {
    {.name = "entry_functions",
     .kind = PLN_ATTR_STRINGS,
     .fallback = "[\"main\"]",
     .doc = "The functions that are called from outside."},
};

static const pln_option common_subexpr_options[] = {
    {.name = "fskip",
     .kind = PLN_ATTR_NONE,
     .doc = "Of a call or a projection of a tuple: whether it stays."},
};

static const pln_option dead_code_options[] = {
    {.name = "inline_once",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Put what a variable is bound to in its place if it is used once."},
    {.name = "ignore_impurity",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Drop and move effects too, as if there were none."},
};

static const pln_option annotate_options[] = {
    {.name = "targets",
     .kind = PLN_ATTR_STRINGS,
     .single = true,
     .fallback = "",
     .doc = "Names of compilers, the preferred one first; NAME takes the "
            "operators whose attribute target.NAME says so."},
    {.name = "include_non_call_ops",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "true",
     .doc = "Tuples and references go to a compiler, too."},
};

static const pln_option partition_options[] = {
    {.name = "mod_name",
     .kind = PLN_ATTR_STRING,
     .fallback = "default",
     .doc = "Part of the names of the functions: tvmgen_MOD_NAME."},
    {.name = "bind_constants",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "true",
     .doc = "Constants are part of the functions, not arguments."},
};

static const pln_option composite_options[] = {
    {.name = "pattern_table",
     .kind = PLN_ATTR_STRING,
     .fallback = "",
     .doc = "The name of a pattern table (pl.pattern_table), in a script also "
            "the table; \"\": no patterns."},
};

static const pln_option filter_options[] = {
    {.name = "compiler_filter",
     .kind = PLN_ATTR_STRING,
     .fallback = "",
     .doc = "The compiler whose functions are meant; \"\": all."},
};

static const pln_option bound_options[] = {
    {.name = "global_vars",
     .kind = PLN_ATTR_STRINGS,
     .single = true,
     .fallback = "",
     .doc = "Names of functions with the attribute Compiler."},
};

static const pln_option compilation_fields[] = {
    {.name = "primitive_targets",
     .kind = PLN_ATTR_STRINGS,
     .single = true,
     .fallback = "",
     .doc = "The targets that operators are compiled for; none: the context's, "
            "or llvm."},
    {.name = "default_device_type",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "Where values are by default (1: the processor, 2: CUDA); 0: the "
            "targets' device type, the processor if they differ."},
    {.name = "host_device_type",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "Where shapes are; 0: the host of the targets."},
};

static const pln_option device_options[] = {
    {.name = "config",
     .kind = PLN_ATTR_DICT,
     .n_fields = PLN_COUNT(compilation_fields),
     .fields = compilation_fields,
     .doc = "The targets and devices of the compilation."},
};

static const pln_option print_options[] = {
    {.name = "header",
     .kind = PLN_ATTR_STRING,
     .fallback = "",
     .doc = "Stands in the line before the module."},
    {.name = "show_meta_data",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "With the metadata section, where constants are."},
};

static const pln_option gradient_options[] = {
    {.name = "mode",
     .kind = PLN_ATTR_STRING,
     .fallback = "higher_order",
     .choices = "higher_order|first_order",
     .doc = "higher_order: with functions, control flow and references."},
};

static const pln_option partial_options[] = {
    {.name = "max_steps",
     .kind = PLN_ATTR_INT,
     .fallback = "4194304",
     .least = "1",
     .doc = "The pass fails if the program takes more steps to evaluate."},
};

enum {
  N_gradient_options = PLN_COUNT(gradient_options),
  N_partial_options = PLN_COUNT(partial_options),
  N_fold_constant_required = 1,
  N_dead_code_required = 1,
  N_canonicalize_ops_required = 1,
  N_entry_options = PLN_COUNT(entry_options),
  N_partition_options = PLN_COUNT(partition_options),
  N_composite_options = PLN_COUNT(composite_options),
  N_filter_options = PLN_COUNT(filter_options),
  N_bound_options = PLN_COUNT(bound_options),
  N_annotate_options = PLN_COUNT(annotate_options),
  N_device_options = PLN_COUNT(device_options),
  N_print_options = PLN_COUNT(print_options),
  N_fold_constant_options = PLN_COUNT(fold_constant_options),
  N_common_subexpr_options = PLN_COUNT(common_subexpr_options),
  N_dead_code_options = PLN_COUNT(dead_code_options),
  N_branch_options = PLN_COUNT(branch_options),
  N_dense_branch_options = PLN_COUNT(dense_branch_options),
  N_split_args_options = PLN_COUNT(split_args_options),
  N_batch_options = PLN_COUNT(batch_options),
  N_fc_transpose_options = PLN_COUNT(fc_transpose_options),
  N_sparse_options = PLN_COUNT(sparse_options),
  N_sparse_conv_options = PLN_COUNT(sparse_conv_options),
  N_sparse_constant_options = PLN_COUNT(sparse_constant_options),
  N_eta_options = PLN_COUNT(eta_options),
  N_fuse_options = PLN_COUNT(fuse_options),
  N_fold_options = PLN_COUNT(fold_options),
  N_opset_options = PLN_COUNT(opset_options),
  N_layout_options = PLN_COUNT(layout_options),
  N_legalize_options = PLN_COUNT(legalize_options),
  N_fusion_options = PLN_COUNT(fusion_options),
  N_substitution_options = PLN_COUNT(substitution_options),
  N_saturation_options = PLN_COUNT(saturation_options),
  N_batch_norm_options = PLN_COUNT(batch_norm_options),
  N_fake_quantization_options = PLN_COUNT(fake_quantization_options),
  N_fake_quantization_required = 1,
  N_precision_options = PLN_COUNT(precision_options),
  N_no_options = 0,
  N_no_required = 0
};
#define no_options NULL
#define no_required NULL

static const char *const fake_quantization_required[] = {"DivToMul"};
static const char *const fold_constant_required[] = {"FoldConstant"};
static const char *const dead_code_required[] = {"DeadCodeElimination"};
static const char *const canonicalize_ops_required[] = {"CanonicalizeOps"};

/* FUNCTION passes read nothing but their function, so they are parallel and
 * cacheable. */
#define KIND_SHOW .kind = PLN_PASS_MODULE
#define KIND_MODULE KIND_SHOW, .cacheable = true
#define KIND_SWEEP .kind = PLN_PASS_FUNCTION, .parallel = true, .light = true
#define KIND_FUNCTION \
  .kind = PLN_PASS_FUNCTION, .parallel = true, .cacheable = true
#define KIND_CALLBACK .kind = PLN_PASS_FUNCTION
#define KIND_CACHED_CALLBACK KIND_CALLBACK, .cacheable = true
#define KIND_MODULE_SPANS KIND_MODULE, .changes_spans = true
#define KIND_FUNCTION_SPANS \
  .kind = PLN_PASS_FUNCTION, .cacheable = true, .changes_spans = true

static const pln_pass_spec specs[] = {
#define PASS(pass, KIND, level, before, rows, body, text) \
  {.name = #pass,                                         \
   KIND_##KIND,                                           \
   .opt_level = level,                                    \
   .n_required = N_##before,                              \
   .required = before,                                    \
   .doc = text,                                           \
   .n_options = N_##rows,                                 \
   .options = rows,                                       \
   .run = body},
#include "transform/passes.def"
};

static const pln_sequential_spec sequentials[] = {
#define SEQUENTIAL(pass, level, before, passes, text) \
  {.name = #pass,                                     \
   .opt_level = level,                                \
   .n_required = N_##before,                          \
   .required = before,                                \
   .elements = passes,                                \
   .doc = text},
#include "transform/passes.def"
};

pln_status pln_transform_install(pln_engine *engine) {
  for (size_t i = 0; i < PLN_COUNT(specs); i++)
    PLN_TRY(pln_pass_register_built_in(engine, &specs[i]));
  for (size_t i = 0; i < PLN_COUNT(sequentials); i++)
    PLN_TRY(pln_sequential_register_built_in(engine, &sequentials[i]));
  return pln_transform_install_keys(engine);
}
