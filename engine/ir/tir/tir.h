/* tir/tir.h: what the files of the loop level share: builtins, and the two
 * forms of a statement.
 *
 * Sealed, a statement stands in its scope and owns the scopes of its bodies.
 * While it floats in a freely built graph its operands are its own, then the
 * parameters of its scopes in order; a scope row knows its result only, which
 * is the body; a SeqStmt's operands are its statements. tir/layout.c makes
 * the sealed form of the floating one, graph/import.c the other way. */

#ifndef PLN_IR_TIR_TIR_H
#define PLN_IR_TIR_TIR_H

#include "ir/graph/graph.h"

typedef enum pln_dtype_place {
  PLN_DTYPE_NOWHERE,
  PLN_DTYPE_FIRST,
  PLN_DTYPE_LAST
} pln_dtype_place;

typedef struct pln_builtin_info {
  const char *name;
  pln_call_kind effect;
  int32_t args;          /* how many, -1 for any number */
  pln_dtype_place place; /* of the dtype among the script's arguments */
  const char *script;
} pln_builtin_info;

/* `builtin` is 1 to pln_builtin_count(). */
const pln_builtin_info *pln_builtin_row(uint32_t builtin);

static inline bool pln_is_prim(const pln_node *n) {
  return pln_kinds[n->kind].kind_class == PLN_CLASS_PRIM;
}
static inline bool pln_is_stmt(const pln_node *n) {
  return pln_kinds[n->kind].kind_class == PLN_CLASS_STMT;
}
/* What of it matters to the order of evaluation. */
pln_effect pln_call_effect(pln_call_kind kind);
/* A statement or a PrimFunc: what the loop level's layout lays out. */
static inline bool pln_is_tir(const pln_node *n) {
  return pln_is_stmt(n) || n->kind == PLN_PRIM_FUNC;
}
/* IntImm and FloatImm: 64 bits, in two halves. */
static inline uint64_t pln_imm_bits(const pln_node *n) {
  return ((uint64_t)n->attrs << 32) | n->data;
}
/* True of an IntImm of that value. */
static inline bool pln_is_int(const pln_graph *g, pln_ref ref, int64_t value) {
  const pln_node *n = &g->nodes[ref];
  return n->kind == PLN_INT_IMM && pln_imm_bits(n) == (uint64_t)value;
}
/* Whether pln_build_folded of these operands gives no node of that kind. */
bool pln_would_simplify(const pln_engine *engine, const pln_graph *g,
                        pln_kind kind, pln_ref x, pln_ref y);
/* An integer dtype that has the value. */
bool pln_holds_int(pln_dtype dtype, int64_t value);
/* Of an integer dtype. */
bool pln_is_signed(pln_dtype dtype);
/* Whether a variable of the one type may be bound to a value of the other: of
 * the same dtype and lanes, where all pointers are handles. What is not known
 * fits. */
bool pln_let_type_matches(const pln_engine *engine, pln_type var,
                          pln_type value);
/* Operands before the parameters of a floating owner's scopes. */
uint32_t pln_own_operands(const pln_graph *g, const pln_node *n);

/* The Buffer of a free builder that is the same as one of these operands, or
 * PLN_NONE; and noting one that was appended (tir/buffer_identity.c). */
pln_ref pln_buffer_find(const pln_builder *b, const pln_node *n,
                        const pln_ref *operands);
pln_status pln_buffer_remember(pln_builder *b, pln_ref buffer) PLN_CHECKED;

/* The same expression; long ones are taken to differ. */
bool pln_same_expr(const pln_graph *g, pln_ref x, pln_ref y);

/* Of infer.c: kinds of the loop level (tir/infer.c). */
pln_status pln_infer_tir(pln_builder *b, pln_node *n) PLN_CHECKED;
/* Of verify.c: each PrimExpr that reads belongs to one statement; statements
 * and PrimExprs have operands that fit (tir/verify.c). */
pln_status pln_verify_tir(const pln_graph *g) PLN_CHECKED;
/* Of well_formed.c: blocks with variables use no loop's index around them
 * (tir/well_formed.c). */
pln_status pln_tir_well_formed(const pln_graph *g) PLN_CHECKED;
/* Also of well_formed.c, for a PrimFunc: each variable is bound, and used
 * inside of what binds it (tir/var_scopes.c). */
pln_status pln_tir_check_var_scopes(const pln_graph *g) PLN_CHECKED;
/* Whether each variable is bound once at the most (tir/ssa.c). */
pln_status pln_tir_verify_ssa(const pln_graph *g) PLN_CHECKED;
/* Calls fn for each Var that a node binds beside the parameters of its scopes;
 * an AttrStmt that binds a thread (tir/binders.c). */
pln_status pln_tir_bound_vars(const pln_graph *g, pln_ref node, pln_visit_fn fn,
                              void *ud) PLN_CHECKED;
bool pln_binds_thread(const pln_graph *g, const pln_node *n);
/* Seals a floating statement, PrimFunc or PrimExpr. */
pln_status pln_layout_tir(const pln_builder *b, pln_ref root,
                          pln_graph **out) PLN_CHECKED;

/* The script form (tir/script/print.c): of a PrimFunc, statement or PrimExpr,
 * which may stand behind declarations of what it uses; of the PrimFuncs of a
 * module.
 */
pln_status pln_print_script(const pln_graph *graph, pln_ref node, bool declared,
                            size_t limit, pln_write_fn write,
                            void *ud) PLN_CHECKED;
pln_status pln_print_script_module(const pln_module *module, size_t limit,
                                   pln_write_fn write, void *ud) PLN_CHECKED;

#endif
