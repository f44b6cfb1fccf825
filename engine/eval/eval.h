/* eval.h: computing: a whole function on tensors (perilune.h declares
 * pln_eval_tensors), or one call for constant folding; and the budget that
 * every pass which makes constants asks. */

#ifndef PLN_EVAL_EVAL_H
#define PLN_EVAL_EVAL_H

#include "ir/graph/graph.h"
#include "ir/graph/module.h"

/* --------------------------------------------------------- folding one call */

/* Why a node was not folded. */
typedef enum pln_refusal {
  PLN_REFUSED_NOT = 0,
  PLN_REFUSED_NO_KERNEL, /* nothing here computes the operator */
  PLN_REFUSED_EFFECT,    /* random, unknown or opaque */
  PLN_REFUSED_OVER_BUDGET,
  PLN_REFUSED_REFERENCE, /* an attribute is one of the enclosing function */
  PLN_REFUSED_UNDEFINED, /* division by zero, overflow, a bad index, ... */
  PLN_N_REFUSALS
} pln_refusal;
/* "over_budget", ...: a key for reports. Static. */
const char *pln_refusal_name(pln_refusal why);

/* The node is a call of a pure operator with a kernel, and each operand is a
 * Constant (or Absent): pln_eval_call may be tried. *why, when it is false for
 * another reason than an operand, tells it; else it is PLN_REFUSED_NOT. */
bool pln_eval_can_fold(const pln_graph *graph, pln_ref node, pln_refusal *why);

/* Computes such a call. results: as many as the call has, at least 1; each is
 * owned by the caller; NULL where the call leaves one out. A result may be an
 * operand's tensor, retained, or a splat. PLN_ERR_UNSUPPORTED, without a
 * diagnostic, when the result is not defined. */
pln_status pln_eval_call(const pln_graph *graph, pln_ref node,
                         pln_tensor **results) PLN_CHECKED;

/* ------------------------------------------------------------------ budget */

/* A constant of up to this many bytes may always be made. */
#define PLN_BUDGET_FREE ((size_t)64 << 10)
/* None is ever made beyond this: a hostile shape must not eat all memory. */
#define PLN_BUDGET_MOST ((size_t)8 << 30)

typedef struct pln_budget {
  bool all; /* fold = "all": no limit */
  /* How often nodes were refused, by reason; pln_budget_refuse counts. */
  uint32_t refused[PLN_N_REFUSALS];
} pln_budget;

/* A constant of `bytes` may be made in place of a node with which constants of
 * `dying` bytes go. Counts a refusal when it may not. */
bool pln_budget_allows(pln_budget *budget, size_t bytes, size_t dying);
void pln_budget_refuse(pln_budget *budget, pln_refusal why);

/* Bytes of the Constants that only `node` uses, each once. `uses` counts, for
 * each node of the graph, its occurrences as operand and as result. */
size_t pln_budget_dying(const pln_graph *graph, pln_ref node,
                        const uint32_t *uses);
/* Bytes of all results of `node` as its type tells, written out; SIZE_MAX when
 * the type does not tell. */
size_t pln_budget_bytes(const pln_graph *graph, pln_ref node);

#endif
