/* tir/tir.h: shared declarations of TIR: builtins, and the two forms of a
 * statement.
 *
 * In sealed form a statement stands in its scope and owns the scopes of its
 * bodies. In floating form, in a freely built graph, its operands are its own
 * operands followed by the parameters of its scopes in order; a scope row has
 * only its result, which is the body; the operands of a SeqStmt are its
 * statements. tir/layout.c converts the floating form to the sealed one,
 * graph/import.c does the reverse. */

#ifndef PLN_IR_TIR_TIR_H
#define PLN_IR_TIR_TIR_H

#include "ir/graph/graph.h"

typedef enum pln_dtype_place {
  PLN_DTYPE_NOWHERE,
  PLN_DTYPE_FIRST,
  PLN_DTYPE_LAST
} pln_dtype_place;

/* The dtype of a call whose script form does not give it. */
typedef enum pln_builtin_result {
  PLN_RESULT_GIVEN,
  PLN_RESULT_FIRST, /* that of the first argument; a handle without one */
  PLN_RESULT_SECOND,
  PLN_RESULT_BOOL, /* with as many lanes as the first argument */
  PLN_RESULT_INT32,
  PLN_RESULT_UINT32,
  PLN_RESULT_HANDLE,
  PLN_RESULT_VOID
} pln_builtin_result;

typedef struct pln_builtin_info {
  const char *name;
  pln_call_kind effect;
  int32_t args;          /* number of arguments, -1 for any */
  pln_dtype_place place; /* position of the dtype among the script form's
                          * arguments */
  pln_builtin_result result;
  const char *script;
} pln_builtin_info;

/* `builtin` is 1 to pln_builtin_count(). */
const pln_builtin_info *pln_builtin_row(uint32_t builtin);

/* The effect of a call kind on evaluation order. */
pln_effect pln_call_effect(pln_call_kind kind);
/* The 64 bits of an IntImm or FloatImm, stored in two halves. */
static inline uint64_t pln_imm_bits(const pln_node *n) {
  return ((uint64_t)n->attrs << 32) | n->data;
}
/* True of an IntImm of that value. */
static inline bool pln_is_int(const pln_graph *g, pln_ref ref, int64_t value) {
  const pln_node *n = &g->nodes[ref];
  return n->kind == PLN_INT_IMM && pln_imm_bits(n) == (uint64_t)value;
}
/* True if pln_build_folded would fold these operands. */
bool pln_would_simplify(const pln_engine *engine, const pln_graph *g,
                        pln_kind kind, pln_ref x, pln_ref y);
/* True if the integer dtype can represent the value. */
bool pln_holds_int(pln_dtype dtype, int64_t value);
/* Unsigned integers and bool. */
bool pln_is_unsigned(pln_dtype dtype);
/* For integer dtypes. */
bool pln_is_signed(pln_dtype dtype);
/* True if a variable of one type may be bound to a value of the other: equal
 * dtype and lanes; all pointers are handles. Unknown types match. */
bool pln_let_type_matches(const pln_engine *engine, pln_type var,
                          pln_type value);
/* Number of operands before the parameters of a floating owner's scopes. */
uint32_t pln_own_operands(const pln_graph *g, const pln_node *n);

/* The dtype and lanes of a node's value; a handle has none, and one lane. */
pln_dtype pln_prim_dtype(const pln_graph *g, pln_ref ref);
uint32_t pln_prim_lanes(const pln_graph *g, pln_ref ref);
/* Where the fields of a Buffer are among its operands; dtype and lanes are
 * those of its elements. The arrays are the graph's. */
typedef struct pln_buffer_fields {
  uint32_t rank, n_strides; /* no strides: it is compact */
  const pln_ref *shape, *strides;
  pln_ref data, elem_offset;
  uint32_t n_separators;
  const int64_t *separators; /* axes at which a new group begins */
  pln_dtype dtype;
  uint32_t lanes;
} pln_buffer_fields;
pln_buffer_fields pln_buffer_fields_of(const pln_graph *g, pln_ref buffer);

/* True for equal expressions; long ones are assumed to differ. */
bool pln_same_expr(const pln_graph *g, pln_ref x, pln_ref y);

/* tir/infer.c: infers a TIR node; called by infer/infer.c. */
pln_status pln_infer_tir(pln_builder *b, pln_node *n) PLN_CHECKED;
/* tir/verify.c: each PrimExpr that reads memory belongs to one statement;
 * operands of statements and PrimExprs are valid. Called by
 * analysis/verify.c. */
pln_status pln_verify_tir(const pln_graph *g) PLN_CHECKED;
/* tir/closed.c: each variable that a PrimFunc uses is bound somewhere in it.
 * Called by analysis/verify.c. */
pln_status pln_verify_tir_closed(const pln_graph *g) PLN_CHECKED;
/* *open: the function is a PrimFunc that uses a variable which nothing in it
 * binds. */
pln_status pln_tir_is_open(const pln_graph *function, bool *open) PLN_CHECKED;
/* Operands that the node defines, rather than uses: the variable of a Let. */
bool pln_tir_defines(const pln_node *n, uint32_t operand);
/* tir/well_formed.c: blocks with block variables do not use indices of
 * enclosing loops. Called by analysis/well_formed.c. */
pln_status pln_tir_well_formed(const pln_graph *g) PLN_CHECKED;
/* tir/var_scopes.c: in a PrimFunc each variable is bound, and used only inside
 * its binder. Called by analysis/well_formed.c. */
pln_status pln_tir_check_var_scopes(const pln_graph *g) PLN_CHECKED;
/* tir/ssa.c: each variable is bound at most once. */
pln_status pln_tir_verify_ssa(const pln_graph *g) PLN_CHECKED;
/* tir/binders.c: calls fn for each Var that a node binds in addition to the
 * parameters of its scopes, for example a thread variable of an AttrStmt. */
pln_status pln_tir_bound_vars(const pln_graph *g, pln_ref node, pln_visit_fn fn,
                              void *ud) PLN_CHECKED;
bool pln_binds_thread(const pln_graph *g, const pln_node *n);

/* tir/script/print.c: prints a PrimFunc, statement or PrimExpr, optionally
 * after declarations of what it uses; or the PrimFuncs of a module. */
pln_status pln_print_script(const pln_graph *graph, pln_ref node, bool declared,
                            size_t limit, pln_write_fn write,
                            void *ud) PLN_CHECKED;
/* Where the nodes of a PrimFunc stand in its text: from the first character of
 * the first place to the end of that line. Rows and columns of others, which
 * have no text, stay what they are. */
pln_status pln_script_places(const pln_graph *graph,
                             pln_source_span *spans) PLN_CHECKED;
pln_status pln_print_script_module(const pln_module *module, size_t limit,
                                   pln_write_fn write, void *ud) PLN_CHECKED;

#endif
