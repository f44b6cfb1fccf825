/* config_keys.c: the config keys that passes read, under TVM's names. Called
 * once, by install.c.
 */

#include "transform/transform.h"

#define FLAG(field, value, text)                                             \
  {                                                                          \
    .name = field, .kind = PLN_ATTR_INT, .is_bool = true, .fallback = value, \
    .doc = text                                                              \
  }
static const pln_option keys[] = {
    FLAG("rules.exact", "false",
         "Only rewrite rules whose results are equal bit by bit run: those of "
         "proof 'exact'. SimplifyExpr, FuseOnnxOps and passes that are sets of "
         "rules obey."),
    FLAG("rules.lets", "true",
         "Rewrite rules match through variables of lets whose values have no "
         "effect: tanh(exp(?x)) matches let %y = exp(%x); tanh(%y). "
         "SimplifyExpr, FuseOnnxOps and passes that are sets of rules obey."),
    {.name = "rules.only",
     .kind = PLN_ATTR_STRINGS,
     .fallback = "",
     .doc =
         "The names of the rewrite rules that SimplifyExpr, FuseOnnxOps and "
         "passes that are sets of rules run; an empty list: all. Each is the "
         "name of a shipped rule or of one that a script has made."},
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
};

pln_status pln_transform_install_keys(pln_engine *engine) {
  for (size_t i = 0; i < PLN_COUNT(keys); i++)
    PLN_TRY(pln_config_register(engine, &keys[i]));
  return PLN_OK;
}
