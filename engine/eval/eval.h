/* eval.h: evaluates a whole function (perilune.h declares pln_eval_tensors), or
 * one call for constant folding; and the budget that every pass asks before it
 * creates a constant. */

#ifndef PLN_EVAL_EVAL_H
#define PLN_EVAL_EVAL_H

#include "ir/graph/graph.h"
#include "ir/graph/module.h"

/* --------------------------------------------------------- folding one call */

/* Why a node was not folded. */
typedef enum pln_refusal {
  PLN_REFUSED_NOT = 0,
  PLN_REFUSED_NO_KERNEL, /* there is no kernel for the operator */
  PLN_REFUSED_EFFECT,    /* random, unknown or opaque */
  PLN_REFUSED_OVER_BUDGET,
  PLN_REFUSED_REFERENCE, /* an attribute refers to one of the enclosing
                          * function */
  PLN_REFUSED_UNDEFINED, /* division by zero, overflow, a bad index, ... */
  PLN_REFUSED_STEPS,     /* a function or loop computes too many nodes */
  PLN_N_REFUSALS
} pln_refusal;
/* "over_budget", ...: the key in reports. Static. */
const char *pln_refusal_name(pln_refusal why);

/* The expression in on_device calls; `node` itself if it is no such call. */
pln_ref pln_eval_skip_on_device(const pln_graph *graph, pln_ref node);

/* True if the node is a call of a pure operator with a kernel and each operand
 * is a Constant (or Absent), on whatever device, so that pln_eval_call may be
 * tried. When it is
 * false for another reason than an operand, *why gives the reason; otherwise
 * *why is PLN_REFUSED_NOT. */
bool pln_eval_can_fold(const pln_graph *graph, pln_ref node, pln_refusal *why);

/* Evaluates such a call. results: as many as the call has, at least 1; each
 * owned by the caller, NULL for an omitted one. A result may be an operand's
 * tensor, retained, or a splat. PLN_ERR_UNSUPPORTED, without a diagnostic, when
 * the result is undefined. */
pln_status pln_eval_call(const pln_graph *graph, pln_ref node,
                         pln_tensor **results) PLN_CHECKED;

/* ------------------------------------------------------------------ budget */

/* A constant of up to this many bytes is always allowed. */
#define PLN_BUDGET_FREE ((size_t)64 << 10)
/* The absolute limit, so that a hostile shape cannot use all memory. */
#define PLN_BUDGET_MAX ((size_t)8 << 30)

typedef struct pln_budget {
  bool all; /* fold = "all": no limit */
  /* Number of refused nodes by reason; counted by pln_budget_refuse. */
  uint32_t refused[PLN_N_REFUSALS];
} pln_budget;

/* True if a constant of `bytes` may replace a node whose removal frees
 * constants of `dying` bytes. Counts a refusal otherwise. */
bool pln_budget_allows(pln_budget *budget, size_t bytes, size_t freed);
void pln_budget_refuse(pln_budget *budget, pln_refusal why);

/* Bytes of the Constants used only by `node`, each counted once. `uses`: for
 * each node of the graph, how often it is an operand or a result. */
size_t pln_budget_freed(const pln_graph *graph, pln_ref node,
                        const uint32_t *uses);
/* Bytes of all results of `node`, splats expanded, according to its type;
 * SIZE_MAX when the type leaves that open. */
size_t pln_budget_bytes(const pln_graph *graph, pln_ref node);

#endif
