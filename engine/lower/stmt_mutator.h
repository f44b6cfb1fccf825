/* stmt_mutator.h: rewrites a PrimFunc statement by statement, in the order of
 * execution, as TVM's StmtExprMutator does; for the passes of lower/.
 *
 * The old graph is sealed. New nodes are built in floating form in one free
 * builder, so that a pass may put statements in another order, wrap them, or
 * visit a body several times, each time with other values of its variables. The
 * result is sealed at the end. */

#ifndef PLN_LOWER_STMT_MUTATOR_H
#define PLN_LOWER_STMT_MUTATOR_H

#include "ir/tir/tir.h"

typedef struct pln_stmt_rewrite pln_stmt_rewrite;

/* What a callback answers instead of a statement that is removed. */
#define PLN_NO_STMT (PLN_NONE - 1)

/* Every callback may be NULL. `stmt` and `old` are nodes of the old graph,
 * answers are nodes of the builder. */
typedef struct pln_stmt_mutator {
  void *ud;
  /* A PrimExpr or Buffer whose operands have images. *node is preset to
   * PLN_NONE: it is copied with the images. */
  pln_status (*expr)(void *ud, pln_stmt_rewrite *s, pln_ref old, pln_ref *node);
  /* Before anything of a whole operand of a statement. *node is preset to
   * PLN_NONE; another answer is its image, and nothing of it is visited. */
  pln_status (*enter_operand)(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                              uint32_t i, pln_ref *node);
  /* A whole operand of a statement that was visited; *node is preset to its
   * image. */
  pln_status (*operand)(void *ud, pln_stmt_rewrite *s, pln_ref stmt, uint32_t i,
                        pln_ref *node);
  /* Before anything of the statement. *node is preset to PLN_NONE; another
   * answer replaces the statement, and nothing of it is visited. */
  pln_status (*enter)(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                      pln_ref *node);
  /* Before body `k`, when the operands have images. A skipped body has no
   * image: `leave` must answer. */
  pln_status (*enter_body)(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                           uint32_t k, bool *skip);
  /* After body `k`. *body is preset to its image; an empty body is
   * Evaluate(0). With *again the body is visited once more, enter_body
   * included, and what that gives follows. */
  pln_status (*leave_body)(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                           uint32_t k, pln_ref *body, bool *again);
  /* After the statement. *node is preset to PLN_NONE: it is built from the
   * images of its operands and bodies. PLN_NO_STMT removes it. */
  pln_status (*leave)(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                      pln_ref *node);
} pln_stmt_mutator;

/* *out: the function as the mutator makes it; `function` itself, retained, when
 * no callback answered anything but its preset. */
pln_status pln_stmt_rewrite_function(const pln_graph *function,
                                     const pln_stmt_mutator *mutator,
                                     pln_graph **out) PLN_CHECKED;

/* ----------------------------------------------------------- for callbacks */

pln_builder *pln_stmt_builder(const pln_stmt_rewrite *s);
const pln_graph *pln_stmt_old(const pln_stmt_rewrite *s);
/* A node of the builder. Valid until something is built. */
const pln_node *pln_stmt_node(const pln_stmt_rewrite *s, pln_ref image);
/* The image of an old PrimExpr in the present statement, of a Var or of a
 * Buffer; PLN_NONE: it has none. */
pln_ref pln_stmt_image(const pln_stmt_rewrite *s, pln_ref old);
/* Maps an old PrimExpr or Buffer with the present values of the variables. */
pln_status pln_stmt_map(pln_stmt_rewrite *s, pln_ref old,
                        pln_ref *out) PLN_CHECKED;
/* From here on the image of an old Var or Buffer is `image`; PLN_NONE: a copy
 * of it again. The caller restores what it overwrites. */
void pln_stmt_bind(pln_stmt_rewrite *s, pln_ref old, pln_ref image);
/* Binds an old Var to a new variable with its name and type. */
pln_status pln_stmt_bind_new_var(pln_stmt_rewrite *s, pln_ref old) PLN_CHECKED;
/* The image of an operand of the present statement, and of a body: for leave,
 * and for the bodies before k in enter_body and leave_body. */
pln_ref pln_stmt_operand(const pln_stmt_rewrite *s, uint32_t i);
pln_ref pln_stmt_body(const pln_stmt_rewrite *s, uint32_t k);
/* The statement with the images of its operands and bodies. */
pln_status pln_stmt_rebuild(pln_stmt_rewrite *s, pln_ref stmt,
                            pln_ref *out) PLN_CHECKED;
/* How often the present body was visited before. */
uint32_t pln_stmt_visits(const pln_stmt_rewrite *s);
/* A statement with bodies that has the kind, attributes and type of `spec`, the
 * images of the first spec->n operands, and those of the bodies. */
pln_status pln_stmt_rebuild_as(pln_stmt_rewrite *s, pln_ref stmt,
                               const pln_prim *spec, pln_ref *out) PLN_CHECKED;
/* The same of a loop, with another `kind` (For's attribute). */
pln_status pln_stmt_rebuild_for(pln_stmt_rewrite *s, pln_ref loop, int64_t kind,
                                pln_ref *out) PLN_CHECKED;
/* Its parameter `i` of body `k` in the old graph: For's loop variable. */
pln_ref pln_stmt_param(const pln_stmt_rewrite *s, pln_ref stmt, uint32_t k,
                       uint32_t i);
/* Whether TVM's body has the statement as an element: not a field of a PrimFunc
 * or Block that is a statement here. */
bool pln_is_seq_element(pln_kind kind);
/* Statements in order, without those that are Evaluate(0); one is itself, none
 * is Evaluate(0). The list is used up. */
pln_status pln_stmt_seq(pln_stmt_rewrite *s, uint32_t n, pln_ref *stmts,
                        pln_ref *out) PLN_CHECKED;
/* Of a PrimFunc's body: the statements behind the BufferBinds that it begins
 * with; and those with `rest` behind them. */
pln_status pln_stmt_split_binds(pln_stmt_rewrite *s, pln_ref body,
                                pln_ref *rest) PLN_CHECKED;
pln_status pln_stmt_join_binds(pln_stmt_rewrite *s, pln_ref body, pln_ref rest,
                               pln_ref *out) PLN_CHECKED;
/* A Buffer like an old one, whose operands have images, of elements of another
 * type. */
pln_status pln_stmt_buffer_of(pln_stmt_rewrite *s, pln_ref old, pln_type type,
                              pln_ref *out) PLN_CHECKED;
/* Makes a Buffer like an old one, whose operands have images, with `factor`
 * times the extent of its last dimension, and binds the old one to it. */
pln_status pln_stmt_enlarge_buffer(pln_stmt_rewrite *s, pln_ref old,
                                   pln_ref factor, pln_ref *out) PLN_CHECKED;
/* Evaluate(0), which does nothing. */
pln_status pln_stmt_no_op(pln_stmt_rewrite *s, pln_ref *out) PLN_CHECKED;
/* The integer as an immediate of the type of a node of the builder. */
pln_status pln_stmt_int_like(pln_stmt_rewrite *s, pln_ref like, int64_t value,
                             pln_ref *out) PLN_CHECKED;
/* A scalar as a vector with as many lanes as `type`; of one lane: itself. */
pln_status pln_stmt_broadcast(pln_stmt_rewrite *s, pln_type type,
                              pln_ref *value) PLN_CHECKED;
/* The buffer `old` on other operands, which becomes its image. */
pln_status pln_stmt_rebuild_buffer(pln_stmt_rewrite *s, pln_ref old, uint32_t n,
                                   const pln_ref *operands,
                                   pln_ref *out) PLN_CHECKED;

#endif
