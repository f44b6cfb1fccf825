/* lower.h: the built-in passes over PrimFuncs (passes.def), and their
 * installation. */

#ifndef PLN_LOWER_LOWER_H
#define PLN_LOWER_LOWER_H

#include "lower/analyzer_scopes.h"
#include "lower/stmt_mutator.h"
#include "pass/pass.h"

/* Registers the passes of passes.def and their config keys. Called once per
 * engine. */
pln_status pln_lower_install(pln_engine *engine) PLN_CHECKED;
/* config_keys.c */
pln_status pln_lower_install_keys(pln_engine *engine) PLN_CHECKED;
/* An integer or flag of the context's config: "tir.UnrollLoop.auto_max_step".
 */
pln_status pln_lower_config(const pln_pass_run *run, const char *key,
                            int64_t *out) PLN_CHECKED;
/* Rewrites the function of the run and sets the result. */
pln_status pln_lower_function(pln_pass_run *run,
                              const pln_stmt_mutator *mutator) PLN_CHECKED;
/* Passes that TVM's lowering runs several times, often on what they left as it
 * was (as LLVM's last-run tracking). Only for runs whose result depends on
 * nothing but the function. */
typedef enum pln_fixed_point {
  PLN_FIXED_POINT_OF_SIMPLIFY = 1,
  PLN_FIXED_POINT_OF_REMOVE_NO_OP = 2
} pln_fixed_point;
/* Whether such a run left the function of this one as it is. */
bool pln_lower_is_fixed_point(const pln_pass_run *run, pln_fixed_point of);
/* Remembers it, when the run that ends changed nothing. */
void pln_lower_note_fixed_point(const pln_pass_run *run, pln_fixed_point of);
/* The function of the run with other attributes, as the result. */
pln_status pln_lower_set_attrs(pln_pass_run *run, pln_attrs attrs) PLN_CHECKED;
/* The function of a module pass with other attributes, or the same function,
 * retained. */
pln_status pln_lower_with_attrs(const pln_graph *function, pln_attrs attrs,
                                pln_graph **out) PLN_CHECKED;
/* Runs the body of another pass, whose options are not asked for, on *function,
 * and puts the result in its place. For passes that are several in a row. */
pln_status pln_lower_step(pln_pass_run *run,
                          pln_status (*body)(pln_pass_run *run),
                          pln_graph **function) PLN_CHECKED;
/* Whether it is a call of that builtin, by TVM's name without "tir.". */
bool pln_is_call_of(const pln_node *n, const char *builtin);
/* For's field `kind` in its attributes. */
typedef enum pln_for_kind {
  PLN_FOR_SERIAL,
  PLN_FOR_PARALLEL,
  PLN_FOR_VECTORIZED,
  PLN_FOR_UNROLLED,
  PLN_FOR_THREAD_BINDING
} pln_for_kind;
pln_for_kind pln_for_kind_of(const pln_graph *graph, pln_ref loop);
/* The same elements at the same places, whatever the Buffers are called. */
bool pln_is_same_memory(const pln_graph *graph, pln_ref x, pln_ref y);
/* The most operands of a removed statement whose effects are kept; statements
 * with more are not removed. */
enum { PLN_MOST_EFFECTS = 64 };
/* True of a PrimFunc made of tensor expressions. */
bool pln_is_legacy_te(const pln_graph *function);
/* True if variable `i` of a Block is an axis of a reduction. */
bool pln_is_reduction_axis(const pln_graph *graph, pln_ref block, uint32_t i);
/* The attributes { dtype = "float32x4" } of an Allocate of such elements. */
pln_status pln_dtype_attr(pln_engine *engine, pln_type element,
                          pln_attrs *out) PLN_CHECKED;
/* block/complete_script.c: fills in what blocks of a module just read from
 * TVMScript do not say that they read and write. The module is nobody else's.
 */
pln_status pln_complete_script(pln_module *module) PLN_CHECKED;
/* Whether the graph has a node of that kind. */
bool pln_has_kind(const pln_graph *graph, pln_kind kind);

/* The bodies of all passes in passes.def. */
#define PASS(name, kind, options, run, doc) \
  pln_status run(pln_pass_run *pass_run) PLN_CHECKED;
#include "lower/passes.def"

/* storage_plan.c: the variable of an Allocate's extents that is bound last, or
 * PLN_NONE. A variable comes behind those that are bound around it. */
pln_status pln_last_variable(const pln_graph *graph, pln_ref allocate,
                             pln_ref *out) PLN_CHECKED;

#endif
