/* perilune/graph.h: graphs, how they are built, walked, rewritten; modules;
 * text. Part of perilune.h, which is what users include. */

#ifndef PERILUNE_GRAPH_H
#define PERILUNE_GRAPH_H

#include "perilune/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- graphs */

/* A node of a graph: an index. */
typedef uint32_t pln_ref;
#define PLN_NONE UINT32_MAX

/* The kinds of nodes. ir/graph/kinds.def lists the fields of each kind. */
typedef enum pln_kind {
  PLN_VAR = 0,
  PLN_CONSTANT,
  PLN_ABSENT,
  PLN_GLOBAL_VAR,
  PLN_OP,
  PLN_CONSTRUCTOR,
  PLN_TUPLE,
  PLN_TUPLE_GET_ITEM,
  PLN_CALL,
  PLN_FUNCTION,
  PLN_LET,
  PLN_LET_BLOCK,
  PLN_IF,
  PLN_MATCH,
  PLN_REF_CREATE,
  PLN_REF_READ,
  PLN_REF_WRITE,
  PLN_PATTERN_WILDCARD,
  PLN_PATTERN_VAR,
  PLN_PATTERN_CONSTRUCTOR,
  PLN_PATTERN_TUPLE,
  PLN_CLAUSE,
  PLN_INT_IMM,
  PLN_FLOAT_IMM,
  PLN_STRING_IMM,
  PLN_PRIM_CAST,
  PLN_PRIM_ADD,
  PLN_PRIM_SUB,
  PLN_PRIM_MUL,
  PLN_PRIM_DIV,
  PLN_PRIM_MOD,
  PLN_PRIM_FLOORDIV,
  PLN_PRIM_FLOORMOD,
  PLN_PRIM_MIN,
  PLN_PRIM_MAX,
  PLN_PRIM_EQ,
  PLN_PRIM_NE,
  PLN_PRIM_LT,
  PLN_PRIM_LE,
  PLN_PRIM_GT,
  PLN_PRIM_GE,
  PLN_PRIM_AND,
  PLN_PRIM_OR,
  PLN_PRIM_NOT,
  PLN_SELECT,
  PLN_BUFFER_LOAD,
  PLN_PRODUCER_LOAD,
  PLN_RAMP,
  PLN_BROADCAST,
  PLN_PRIM_LET,
  PLN_PRIM_CALL,
  PLN_SHUFFLE,
  PLN_COMM_REDUCER,
  PLN_REDUCE,
  PLN_ANY,
  PLN_RANGE,
  PLN_ITER_VAR,
  PLN_BUFFER,
  PLN_BUFFER_REGION,
  PLN_PRIM_ARRAY,
  PLN_LET_STMT,
  PLN_ATTR_STMT,
  PLN_ASSERT_STMT,
  PLN_BUFFER_STORE,
  PLN_BUFFER_REALIZE,
  PLN_PRODUCER_STORE,
  PLN_PRODUCER_REALIZE,
  PLN_ALLOCATE,
  PLN_ALLOCATE_CONST,
  PLN_DECL_BUFFER,
  PLN_EVALUATE,
  PLN_IF_THEN_ELSE,
  PLN_FOR,
  PLN_WHILE,
  PLN_PREFETCH,
  PLN_SEQ_STMT,
  PLN_BLOCK,
  PLN_BLOCK_REALIZE,
  PLN_BLOCK_READS,
  PLN_BLOCK_WRITES,
  PLN_ALLOC_BUFFER,
  PLN_MATCH_BUFFER,
  PLN_BLOCK_INIT,
  PLN_BUFFER_BIND,
  PLN_PRIM_FUNC,
  PLN_N_KINDS
} pln_kind;

PLN_API const char *pln_kind_name(pln_kind kind); /* "TupleGetItem": static */

/* A range in a source text. Rows and columns count from 1; columns are in
 * bytes; the end is one past the last character. 0 means unknown: TVM records
 * only a node name, without a position, for models imported from other
 * frameworks. UINT32_MAX is the number -1, which CapturePostDfsIndexInSpans
 * writes for a node without dominator. */
typedef struct pln_source_span {
  pln_symbol source;
  uint32_t row, column;
  uint32_t end_row, end_column;
} pln_source_span;

/* A sealed graph: an expression (pln_graph_root, usually a Function) and every
 * node that it needs. Immutable and reference counted. Scope 0 is the graph's
 * own scope; scope rows are sorted by begin. */
typedef struct pln_graph pln_graph;
typedef uint32_t pln_scope;

/* Retain adds a reference; release drops one and frees the graph with the last.
 * Release accepts NULL. The engine is borrowed. Nodes are 0 to size - 1, scopes
 * 0 to n_scopes - 1. */
PLN_API pln_graph *pln_graph_retain(const pln_graph *graph);
PLN_API void pln_graph_release(pln_graph *graph);
PLN_API pln_engine *pln_graph_engine(const pln_graph *graph);
PLN_API uint32_t pln_graph_size(const pln_graph *graph); /* nodes */
PLN_API pln_ref pln_graph_root(const pln_graph *graph);
PLN_API uint32_t pln_graph_n_scopes(const pln_graph *graph);

/* The node's kind, its type, the integers that its value is known to hold (0:
 * unknown) and its effects. `node` is less than the graph's size. */
PLN_API pln_kind pln_node_kind(const pln_graph *graph, pln_ref node);
PLN_API pln_type pln_node_type(const pln_graph *graph, pln_ref node);
PLN_API pln_value pln_node_value(const pln_graph *graph, pln_ref node);
PLN_API pln_effect pln_node_effects(const pln_graph *graph, pln_ref node);
/* Operands: the arguments of a Call (operand 0 is the callee unless the callee
 * is an operator), the fields of a Tuple, the tuple of a TupleGetItem, the var
 * and value of a Let, the condition of an If, ... Nested functions of an ONNX
 * operator follow its inputs. */
PLN_API uint32_t pln_node_n_operands(const pln_graph *graph, pln_ref node);
PLN_API const pln_ref *pln_node_operands(const pln_graph *graph, pln_ref node);
PLN_API pln_op pln_node_op(const pln_graph *graph, pln_ref node);
PLN_API pln_attrs pln_node_attrs(const pln_graph *graph, pln_ref node);
/* 0: the value itself; k: a tuple of k results (Call, If). */
PLN_API uint32_t pln_node_n_results(const pln_graph *graph, pln_ref node);
PLN_API uint32_t pln_node_index(const pln_graph *graph, pln_ref node);
/* The value of an IntImm or FloatImm; 0 for other kinds. */
PLN_API int64_t pln_node_int(const pln_graph *graph, pln_ref node);
PLN_API double pln_node_float(const pln_graph *graph, pln_ref node);
/* The tensor of a Constant, borrowed; NULL for other kinds. */
PLN_API const pln_tensor *pln_node_tensor(const pln_graph *graph, pln_ref node);
/* The engine-wide identity of a Var. */
PLN_API uint32_t pln_node_var(const pln_graph *graph, pln_ref node);
/* Var: name hint; GlobalVar, Constructor: name. */
PLN_API pln_symbol pln_node_symbol(const pln_graph *graph, pln_ref node);
/* The node's range in the text that it was parsed from. Returns false when it
 * is unknown. `printed` (may be NULL): whether the printer writes the span. */
PLN_API bool pln_node_place(const pln_graph *graph, pln_ref node,
                            pln_source_span *out, bool *printed);
/* The history of a node, newest first: the passes and rules that made it, and
 * last its source. pln_node_history returns the first row; pln_history_next
 * reads the row `at` and returns the following one. 0: no more rows, or nothing
 * is known. */
typedef struct pln_history_row {
  uint32_t at;
  bool is_source;
  /* Set in a row that describes a change. */
  pln_symbol pass;      /* 0: made outside passes */
  pln_symbol rule;      /* 0: the pass named no rule */
  uint32_t run;         /* number of the pass run within the outermost apply */
  uint32_t application; /* number of the rule application within that run for
                         * its function; 0: not counted */
  /* What the node was made from, for pln_history_describe; 0: unknown. */
  uint32_t from;
  uint32_t also; /* a node merged into it, or another source; 0: none */
  /* Set in a row that describes a source; 0 where unknown. */
  pln_symbol name;
  pln_source_span place; /* range in a text */
  pln_symbol script;     /* Lua file, and the line in it that built the node */
  uint32_t line;
  const char *file; /* Borrowed, like the next two. Set for a node of an ONNX
                     * model. */
  pln_slice node;   /* the ONNX node's name, or its first output; its
                     * operator */
  pln_slice op;
} pln_history_row;
PLN_API uint32_t pln_node_history(const pln_graph *graph, pln_ref node);
PLN_API uint32_t pln_history_next(const pln_graph *graph, uint32_t at,
                                  pln_history_row *out);
/* Formats the source behind a history row, with snprintf's protocol: "node 'a'
 * (Conv), model.onnx". */
PLN_API size_t pln_history_describe(const pln_graph *graph, uint32_t at,
                                    char *text, size_t size);
/* Number of owned scopes: 1 for Function, LetBlock and For, 2 for If, one per
 * arm for Match. */
PLN_API uint32_t pln_node_n_scopes(const pln_graph *graph, pln_ref node);
PLN_API pln_scope pln_node_scope(const pln_graph *graph, pln_ref node,
                                 uint32_t index);

/* Nodes of a scope and of its nested scopes: [begin, end). Its parameters are
 * the first n_params nodes of that interval. */
PLN_API pln_ref pln_scope_begin(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_end(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_owner(const pln_graph *graph, pln_scope scope);
PLN_API pln_scope pln_scope_parent(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_result(const pln_graph *graph, pln_scope scope);
PLN_API uint32_t pln_scope_n_params(const pln_graph *graph, pln_scope scope);
PLN_API pln_attrs pln_scope_attrs(const pln_graph *graph, pln_scope scope);
/* The type parameters of a Function's scope as a tuple type; 0: none. */
PLN_API pln_type pln_scope_type_params(const pln_graph *graph, pln_scope scope);

/* Checks every invariant of ir/README.md in one linear pass. PLN_ERR_INVALID
 * names the node and the broken invariant. PLN_ERR_TYPE: a call does not match
 * the signature of its callee, or a let value uses its own variable at another
 * type. */
PLN_API pln_status pln_graph_verify(const pln_graph *graph) PLN_CHECKED;
/* Verifies the graph and checks Relay's well-formedness: each variable is bound
 * at most once, is not free before its binding, and is not used after its scope
 * ends. In a PrimFunc every variable must be bound, and a block with block
 * variables must not use the index of an enclosing loop. */
PLN_API pln_status pln_graph_well_formed(const pln_graph *graph) PLN_CHECKED;

/* The tree of immediate post-dominators of the def-use graph: out[i] is the
 * nearest node that lies on every path from node i to its uses' results.
 * PLN_NONE when there is none: the value leaves a function, is bound, has an
 * effect, or is unused. A branch, arm or block leads to its owner. `out` has
 * pln_graph_size entries. Near-linear time. */
PLN_API pln_status pln_graph_dominators(const pln_graph *graph,
                                        pln_ref *out) PLN_CHECKED;

/* Structural equality and hash of two expressions, as Relay defines them: up to
 * alpha-equivalence, and a shared node differs from a duplicated one.
 * `map_free_vars` allows free Vars to correspond. A Constructor without a type
 * equals any Constructor of its name, because only the module knows its
 * definition. For modules, type definitions are compared too. */
PLN_API pln_status pln_graph_equal(const pln_graph *a, pln_ref node_a,
                                   const pln_graph *b, pln_ref node_b,
                                   bool map_free_vars, bool *out) PLN_CHECKED;
PLN_API pln_status pln_graph_hash(const pln_graph *graph, pln_ref node,
                                  bool map_free_vars,
                                  uint64_t *out) PLN_CHECKED;

/* The first difference between two expressions or modules. */
typedef struct pln_mismatch {
  bool equal;
  pln_ref a, b; /* the differing nodes; PLN_NONE outside functions */
  /* For modules: indices of the functions, or PLN_NONE. */
  uint32_t function_a, function_b;
  char text[512]; /* "@main.body.args[0].attrs.axis: 1 versus 2" */
} pln_mismatch;
PLN_API pln_status pln_graph_mismatch(const pln_graph *a, pln_ref node_a,
                                      const pln_graph *b, pln_ref node_b,
                                      bool map_free_vars, bool contents,
                                      pln_mismatch *out) PLN_CHECKED;

/* ---------------------------------------------------------------- builder */

/* A builder is the only way to append nodes. Nodes are typed as they are
 * appended.
 *
 * Scoped use (file readers, passes): open a scope, append into it, end it with
 * its result, then append its owner. Nodes go to the innermost open scope, or
 * to the scope named by pln_build_in.
 *
 * Free use (scripts): no scope is open and nodes float. pln_build_bind makes a
 * Function of a floating body. Sealing places each node in a scope. */
typedef struct pln_builder pln_builder;

/* Makes an empty builder. Free it before its engine, whether or not it was
 * sealed; free accepts NULL. Sealed graphs outlive their builder. */
PLN_API pln_status pln_builder_new(pln_engine *engine,
                                   pln_builder **out) PLN_CHECKED;
PLN_API void pln_builder_free(pln_builder *builder);
/* The nodes appended so far, readable like a sealed graph. Borrowed. */
PLN_API const pln_graph *pln_builder_graph(const pln_builder *builder);

/* Nodes without operands. Var: 0 makes a new variable; another value of `var`
 * makes a node of an existing variable. */
PLN_API pln_status pln_build_var(pln_builder *b, pln_symbol name, pln_type type,
                                 uint32_t var, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_constant(pln_builder *b, const pln_tensor *tensor,
                                      pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_absent(pln_builder *b, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_global_var(pln_builder *b, pln_symbol name,
                                        pln_type type,
                                        pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_op(pln_builder *b, pln_op op,
                                pln_ref *out) PLN_CHECKED;
/* A constructor of an algebraic data type. `type` 0: the type that the
 * builder's module defines. */
PLN_API pln_status pln_build_constructor(pln_builder *b, pln_symbol name,
                                         pln_type type,
                                         pln_ref *out) PLN_CHECKED;
/* Patterns. Each arm of a Match is a scope. Its parameters are the variables
 * that its pattern binds, in order; then come the pattern's nodes, the Clause,
 * and the arm's body. */
PLN_API pln_status pln_build_pattern_wildcard(pln_builder *b,
                                              pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_pattern_var(pln_builder *b, pln_ref var,
                                         pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_pattern_constructor(pln_builder *b,
                                                 pln_symbol constructor,
                                                 uint32_t n,
                                                 const pln_ref *patterns,
                                                 pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_pattern_tuple(pln_builder *b, uint32_t n,
                                           const pln_ref *patterns,
                                           pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_clause(pln_builder *b, pln_ref pattern,
                                    pln_ref *out) PLN_CHECKED;
/* Expressions. PLN_ERR_TYPE with a diagnostic when ill-typed. */
PLN_API pln_status pln_build_tuple(pln_builder *b, uint32_t n,
                                   const pln_ref *fields,
                                   pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_tuple_get_item(pln_builder *b, pln_ref tuple,
                                            uint32_t index,
                                            pln_ref *out) PLN_CHECKED;
/* A call of an operator; n_results as in pln_node_n_results. */
PLN_API pln_status pln_build_call(pln_builder *b, pln_op op, pln_attrs attrs,
                                  uint32_t n_results, uint32_t n,
                                  const pln_ref *args,
                                  pln_ref *out) PLN_CHECKED;
/* A call of any other expression (GlobalVar, Var, Function, Constructor). With
 * an Op as callee it makes a call of that operator. */
PLN_API pln_status pln_build_apply(pln_builder *b, pln_ref callee,
                                   pln_attrs attrs, uint32_t n_results,
                                   uint32_t n, const pln_ref *args,
                                   pln_ref *out) PLN_CHECKED;
/* The same with explicit type arguments for some or all type parameters of the
 * callee, in order. They are stored as the attribute "type_args" when the
 * arguments do not determine them. PLN_ERR_TYPE when there are too many, or
 * when arguments do not match. */
PLN_API pln_status pln_build_apply_with_types(
    pln_builder *b, pln_ref callee, uint32_t n_types, const pln_type *types,
    pln_attrs attrs, uint32_t n_results, uint32_t n, const pln_ref *args,
    pln_ref *out) PLN_CHECKED;
/* The type arguments of a call as a tuple type: the explicit ones, else those
 * inferred from arguments and result; 0 for one that cannot be inferred. *out
 * is 0 when the callee has no type parameters; operators have none. */
PLN_API pln_status pln_call_type_args(const pln_graph *graph, pln_ref call,
                                      pln_type *out) PLN_CHECKED;
PLN_API pln_status pln_build_ref_create(pln_builder *b, pln_ref value,
                                        pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_ref_read(pln_builder *b, pln_ref ref,
                                      pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_ref_write(pln_builder *b, pln_ref ref,
                                       pln_ref value, pln_ref *out) PLN_CHECKED;
/* Opens a scope inside the innermost open one. */
PLN_API pln_status pln_build_open(pln_builder *b, pln_scope *out) PLN_CHECKED;
/* Appends a parameter to the innermost open scope. Parameters come before all
 * other nodes of the scope. */
PLN_API pln_status pln_build_param(pln_builder *b, pln_symbol name,
                                   pln_type type, uint32_t var,
                                   pln_ref *out) PLN_CHECKED;
/* Closes the innermost scope, which must be `scope`. */
PLN_API pln_status pln_build_end(pln_builder *b, pln_scope scope,
                                 pln_ref result, pln_attrs attrs) PLN_CHECKED;
/* Nodes that own ended scopes. `ret` may be 0. */
PLN_API pln_status pln_build_function(pln_builder *b, pln_scope body,
                                      pln_attrs attrs, pln_type ret,
                                      pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_if(pln_builder *b, pln_ref cond,
                                pln_scope then_branch, pln_scope else_branch,
                                pln_attrs attrs, uint32_t n_results,
                                pln_ref *out) PLN_CHECKED;
/* `complete`: the arms cover every value. Stored as attribute "complete". */
PLN_API pln_status pln_build_match(pln_builder *b, pln_ref data, bool complete,
                                   uint32_t n, const pln_scope *arms,
                                   pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_let_block(pln_builder *b, pln_scope body,
                                       pln_ref *out) PLN_CHECKED;
/* Sets the type parameters of a Function that was just appended. */
PLN_API pln_status pln_build_generic(pln_builder *b, pln_ref function,
                                     uint32_t n,
                                     const pln_type *vars) PLN_CHECKED;
/* A Let in the innermost open scope. `var` was appended before `value`. */
PLN_API pln_status pln_build_let(pln_builder *b, pln_ref var, pln_ref value,
                                 pln_ref *out) PLN_CHECKED;
/* Directs the following nodes into `scope`, which is open or encloses an open
 * scope. PLN_NONE returns to the innermost open scope. */
PLN_API pln_status pln_build_in(pln_builder *b, pln_scope scope) PLN_CHECKED;

/* Free use: Function, If and Let over floating nodes. Here a Let is an
 * expression with a body. */
PLN_API pln_status pln_build_bind(pln_builder *b, uint32_t n,
                                  const pln_ref *params, pln_ref body,
                                  pln_attrs attrs, pln_type ret,
                                  pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_floating_if(pln_builder *b, pln_ref cond,
                                         pln_ref then_value, pln_ref else_value,
                                         pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_floating_let(pln_builder *b, pln_ref var,
                                          pln_ref value, pln_ref body,
                                          pln_ref *out) PLN_CHECKED;

/* Returns `body` with `value` as an extra root of its scope
 * (pln_build_extra_root). `body` need not use `value`. */
PLN_API pln_status pln_build_floating_extra_root(pln_builder *b, pln_ref value,
                                                 pln_ref body,
                                                 pln_ref *out) PLN_CHECKED;

/* Each arm has a pattern, whose PatternVars name its variables, and a body. */
PLN_API pln_status pln_build_floating_match(pln_builder *b, pln_ref data,
                                            bool complete, uint32_t n,
                                            const pln_ref *patterns,
                                            const pln_ref *bodies,
                                            pln_ref *out) PLN_CHECKED;

/* Copies `node` of another graph, with every node it needs, into the builder.
 * Memoised. Vars bound outside the copied part become free and keep their
 * identity. */
PLN_API pln_status pln_build_import(pln_builder *b, const pln_graph *graph,
                                    pln_ref node, pln_ref *out) PLN_CHECKED;
/* Sets the order in which text prints a Function's attributes; by default they
 * are sorted by name. The order has no meaning. */
PLN_API pln_status pln_build_attr_order(pln_builder *b, pln_ref node,
                                        uint32_t n,
                                        const pln_symbol *names) PLN_CHECKED;
/* Marks an unused node as an extra root: sealing keeps it until
 * DeadCodeElimination clears the marks. */
PLN_API void pln_build_extra_root(pln_builder *b, pln_ref node);
/* Names a node: a hint for printing, and for export the names of its ONNX
 * values. */
PLN_API pln_status pln_build_name(pln_builder *b, pln_ref node,
                                  pln_symbol name) PLN_CHECKED;
/* Sets a node's range in its source. A `printed` span is written after the
 * node's type as `span=source:row:column`. */
PLN_API pln_status pln_build_span(pln_builder *b, pln_ref node,
                                  const pln_source_span *place,
                                  bool printed) PLN_CHECKED;

/* Seals a graph with root `root`. Scoped use: the builder is spent. Free use:
 * what `root` needs is copied out and the builder stays usable. */
PLN_API pln_status pln_builder_seal(pln_builder *builder, pln_ref root,
                                    pln_graph **out) PLN_CHECKED;

/* ---------------------------------------------------------------- walking */

/* Visits a node of a sealed graph and everything below it, each node once, in
 * Relay's view: the operands of a Call in order, the parameters and body of a
 * Function, the condition and branches of an If, the data and arms (pattern,
 * then body) of a Match. The body of a Let is the rest of its scope. The root
 * stands for the whole graph. The order is depth-first evaluation order, except
 * that a callee is visited before its arguments although it is evaluated after
 * them. A node with several uses is visited at its first use. */
typedef pln_status (*pln_visit_fn)(void *ud, const pln_graph *graph,
                                   pln_ref node);
/* Calls `fn` for each node after its operands and scopes, and for a Let after
 * its body. Any status of `fn` other than PLN_OK ends the walk and is
 * returned. */
PLN_API pln_status pln_walk_post_order(const pln_graph *graph, pln_ref node,
                                       pln_visit_fn fn, void *ud) PLN_CHECKED;

/* Either callback may be NULL. If `enter` sets *skip, the node's parts are not
 * visited and `leave` is not called for it. A run of lets is entered in order
 * and left in reverse order. */
typedef struct pln_visitor {
  void *ud;
  pln_status (*enter)(void *ud, const pln_graph *graph, pln_ref node,
                      bool *skip);
  pln_status (*leave)(void *ud, const pln_graph *graph, pln_ref node);
} pln_visitor;
PLN_API pln_status pln_walk(const pln_graph *graph, pln_ref node,
                            const pln_visitor *visitor) PLN_CHECKED;

/* The same traversal one step at a time. The walker retains the graph. */
typedef struct pln_walker pln_walker;
typedef enum pln_walk_event {
  PLN_WALK_DONE = 0, /* the node is PLN_NONE */
  PLN_WALK_ENTER,
  PLN_WALK_LEAVE
} pln_walk_event;
PLN_API pln_status pln_walker_new(const pln_graph *graph, pln_ref node,
                                  pln_walker **out) PLN_CHECKED;
PLN_API void pln_walker_free(pln_walker *walker);
PLN_API pln_status pln_walker_next(pln_walker *walker, pln_walk_event *event,
                                   pln_ref *node) PLN_CHECKED;
/* After ENTER: skips the node's parts and its LEAVE. */
PLN_API void pln_walker_skip(pln_walker *walker);
/* After DONE: continues at another node, without nodes already visited. Returns
 * false when that node was visited. */
PLN_API bool pln_walker_revisit(pln_walker *walker, pln_ref node);

/* Visits each distinct type once, after all its parts. The parts of a function
 * type are its parameters, result, type parameters and constraints. */
typedef pln_status (*pln_type_fn)(void *ud, pln_engine *engine, pln_type type);
PLN_API pln_status pln_type_post_order(pln_engine *engine, pln_type type,
                                       pln_type_fn fn, void *ud) PLN_CHECKED;
/* The same traversal one step at a time. Adding a type again does not visit it
 * again. */
typedef struct pln_type_walker pln_type_walker;
PLN_API pln_status pln_type_walker_new(pln_engine *engine,
                                       pln_type_walker **out) PLN_CHECKED;
PLN_API void pln_type_walker_free(pln_type_walker *walker);
PLN_API pln_status pln_type_walker_add(pln_type_walker *walker,
                                       pln_type type) PLN_CHECKED;
/* *done: no type was left. */
PLN_API pln_status pln_type_walker_next(pln_type_walker *walker, pln_type *type,
                                        bool *done) PLN_CHECKED;

/* Rebuilds types part by part, each distinct type once. *type is preset to
 * `old` with its parts replaced by their images; leave it or set another type.
 * After a failure a mutator can only be freed. */
typedef pln_status (*pln_type_rewrite_fn)(void *ud, pln_engine *engine,
                                          pln_type old, pln_type *type);
typedef struct pln_type_mutator pln_type_mutator;
PLN_API pln_status pln_type_mutator_new(pln_engine *engine,
                                        pln_type_rewrite_fn image, void *ud,
                                        pln_type_mutator **out) PLN_CHECKED;
PLN_API void pln_type_mutator_free(pln_type_mutator *mutator);
PLN_API pln_status pln_type_mutate(pln_type_mutator *mutator, pln_type type,
                                   pln_type *out) PLN_CHECKED;

/* The variables of an expression, each once, in order of evaluation: all, those
 * that it binds (parameters, lets, patterns), or the others. */
typedef enum pln_var_set {
  PLN_VARS_ALL,
  PLN_VARS_BOUND,
  PLN_VARS_FREE
} pln_var_set;
PLN_API pln_status pln_graph_vars(const pln_graph *graph, pln_ref node,
                                  pln_var_set which, pln_visit_fn fn,
                                  void *ud) PLN_CHECKED;
/* The type variables in the types of its variables, functions, constructors;
 * those of a type. Generic functions and their types bind them. */
PLN_API pln_status pln_graph_type_vars(const pln_graph *graph, pln_ref node,
                                       pln_var_set which, pln_type_fn fn,
                                       void *ud) PLN_CHECKED;
PLN_API pln_status pln_type_vars(pln_engine *engine, pln_type type,
                                 pln_var_set which, pln_type_fn fn,
                                 void *ud) PLN_CHECKED;

/* A variable, by identity, and the node of a sealed graph to put in its
 * place. */
typedef struct pln_binding {
  uint32_t var;
  const pln_graph *graph;
  pln_ref node;
} pln_binding;
/* *out is the graph with all values in place at once, or `graph` itself,
 * retained. A root Function loses the parameters that are bound and gets those
 * that the values need; any other variable has to be free: PLN_ERR_ARGUMENT
 * for one that a let, a pattern or a function inside binds. */
PLN_API pln_status pln_graph_bind(const pln_graph *graph, uint32_t n,
                                  const pln_binding *bindings,
                                  pln_graph **out) PLN_CHECKED;

/* *out is a copy in which all variables that the graph defines are other ones:
 * parameters, lets, patterns, what loops, blocks and buffers define. */
PLN_API pln_status pln_graph_alpha_rename(const pln_graph *graph,
                                          pln_graph **out) PLN_CHECKED;

/* How test-case reduction replaces a node by something smaller. */
typedef enum pln_shrink_action {
  PLN_SHRINK_KEEP,
  PLN_SHRINK_FREE_VAR,  /* a new free variable of its type */
  PLN_SHRINK_TO_ZERO,   /* a constant of zeros, if it is a tensor of known
                         * shape */
  PLN_SHRINK_LET_VALUE, /* for a Let: removes it; its variable becomes its
                         * value */
  PLN_SHRINK_TO_OPERAND /* + k: operand k; for an If, branch k */
} pln_shrink_action;
/* `cuts` has one entry per node. *out is the resulting graph without unused
 * nodes. PLN_ERR_ARGUMENT when an action does not apply to its node. The result
 * may be ill-typed; pln_graph_verify checks it. */
PLN_API pln_status pln_graph_shrink(const pln_graph *graph,
                                    const uint32_t *cuts,
                                    pln_graph **out) PLN_CHECKED;
/* -------------------------------------------------------------------- TIR */

/* TIR's PrimExprs and statements, in the same graphs. A PrimExpr is evaluated
 * where its statement uses it. Statements are evaluated in the order of their
 * scope, which represents TIR's SeqStmt. A TIR Var has a PrimType or a pointer
 * type; it is a SizeVar when pln_node_n_results is 1.
 *
 * A field of a TVM node that is not a PrimExpr is an attribute of the same
 * name: For "kind" (0 serial, 1 parallel, 2 vectorized, 3 unrolled, 4 thread
 * binding) and "annotations", AttrStmt "attr_key", Allocate "dtype" and
 * "annotations", AllocateConst "data" and "dtype", Block "name_hint",
 * "iter_types" and "annotations", IterVar "thread_tag", Buffer
 * "data_alignment", "offset_factor", "buffer_type" and "axis_separators",
 * ProducerRealize "storage_scope". */

/* Builtins ("exp", "if_then_else", "call_extern") are numbered from 1 to the
 * count. Find returns 0 for an unknown name. Names are static. */
PLN_API uint32_t pln_builtin_count(void);
PLN_API uint32_t pln_builtin_find(pln_slice name);
PLN_API const char *pln_builtin_name(uint32_t builtin);
/* The effect of the call itself, in the order of TVM's CallEffectKind; OPAQUE
 * for anything that is not a builtin. Each of the first five levels includes
 * the levels below it. */
typedef enum pln_call_kind {
  PLN_CALL_EXPR_ANNOTATION, /* annotates an expression */
  PLN_CALL_PURE,
  PLN_CALL_READ_STATE,
  PLN_CALL_UPDATE_STATE,
  PLN_CALL_OPAQUE,           /* may have any effect */
  PLN_CALL_SPECIAL_CALL_ARG, /* pure; only valid as an argument of a call */
  PLN_CALL_EMBED_INFO,       /* annotates the place where it stands */
  PLN_CALL_CONTROL_JUMP
} pln_call_kind;
PLN_API pln_call_kind pln_builtin_call_kind(uint32_t builtin);
/* "pure"; "?" for an unknown kind. */
PLN_API const char *pln_call_kind_name(pln_call_kind kind);
/* Number of arguments of the builtin; -1: any number. */
PLN_API int32_t pln_builtin_args(uint32_t builtin);

/* Describes a TIR node; ir/graph/kinds.def names its operands.
 *
 * `data`: the lanes of Ramp and Broadcast; the builtin of PrimCall (0: the
 * GlobalVar that is operand 0); the number of vectors of Shuffle; the value
 * index of Reduce; the name of Buffer and the value of StringImm (symbols); the
 * type of IterVar (TVM's number).
 *
 * `count`: the rank of Buffer; the number of initial values of Reduce.
 *
 * `type`: the type of Cast, PrimCall and Buffer (its elements); the result type
 * of a PrimFunc (0: none). Other types are inferred. */
typedef struct pln_prim {
  pln_kind kind;
  uint16_t count;
  uint32_t data;
  pln_type type;
  pln_attrs attrs;
  uint32_t n;
  const pln_ref *operands;
} pln_prim;

typedef struct pln_buffer_spec {
  pln_symbol name;
  pln_type type; /* element type */
  pln_attrs attrs;
  pln_ref data; /* a Var of a pointer type */
  uint32_t rank;
  const pln_ref *shape;
  uint32_t n_strides; /* 0: compact, else rank */
  const pln_ref *strides;
  pln_ref elem_offset;
} pln_buffer_spec;

/* A Var whose value is at least 0. */
PLN_API pln_status pln_build_size_var(pln_builder *b, pln_symbol name,
                                      pln_type type, uint32_t var,
                                      pln_ref *out) PLN_CHECKED;
/* Immediates. PLN_ERR_TYPE when the dtype cannot represent the value. */
PLN_API pln_status pln_build_int_imm(pln_builder *b, pln_type type,
                                     int64_t value, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_float_imm(pln_builder *b, pln_type type,
                                       double value, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_string_imm(pln_builder *b, pln_symbol value,
                                        pln_ref *out) PLN_CHECKED;
/* Any TIR node that owns no scope. */
PLN_API pln_status pln_build_prim(pln_builder *b, const pln_prim *spec,
                                  pln_ref *out) PLN_CHECKED;
/* Kinds from Add to Or. */
PLN_API pln_status pln_build_binary(pln_builder *b, pln_kind kind, pln_ref x,
                                    pln_ref y, pln_ref *out) PLN_CHECKED;
/* The same with constant folding: two immediates are computed, and x + 0, x * 1
 * and similar become x, as TVM's operators on PrimExprs do. Integers wrap at
 * the width of their dtype. PLN_ERR_ARGUMENT for a division by zero. */
PLN_API pln_status pln_build_folded(pln_builder *b, pln_kind kind, pln_ref x,
                                    pln_ref y, pln_ref *out) PLN_CHECKED;
/* A new buffer; each call makes a distinct one. */
PLN_API pln_status pln_build_buffer(pln_builder *b, const pln_buffer_spec *spec,
                                    pln_ref *out) PLN_CHECKED;
/* A statement or PrimFunc that owns `k` ended scopes. The result of each scope
 * is its last statement. The attributes of a PrimFunc are those of the
 * function. */
PLN_API pln_status pln_build_stmt(pln_builder *b, const pln_prim *spec,
                                  uint32_t k, const pln_scope *scopes,
                                  pln_ref *out) PLN_CHECKED;
/* A loop over [min, min + extent); the body's one parameter is its index. */
PLN_API pln_status pln_build_for(pln_builder *b, pln_ref min, pln_ref extent,
                                 pln_scope body, pln_ref *out) PLN_CHECKED;

/* Free use: a body is a list of statements; several become a SeqStmt. A
 * statement that is used twice is duplicated when sealed. */
typedef struct pln_body {
  uint32_t n_params;
  const pln_ref *params; /* Vars */
  pln_ref stmt;
} pln_body;
PLN_API pln_status pln_build_floating_stmt(pln_builder *b, const pln_prim *spec,
                                           uint32_t k, const pln_body *bodies,
                                           pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_seq(pln_builder *b, uint32_t n,
                                 const pln_ref *stmts,
                                 pln_ref *out) PLN_CHECKED;

/* -------------------------------------------------------------- rewriting */

/* One sweep over a sealed graph that writes a new graph. Every callback may be
 * NULL. */
typedef struct pln_rewrite pln_rewrite;

/* What happens to a scope of the old graph. */
typedef enum pln_scope_action {
  PLN_SCOPE_KEEP = 0,
  PLN_SCOPE_SKIP,    /* its nodes are not swept; its owner must be replaced */
  PLN_SCOPE_DISSOLVE /* its nodes move to the enclosing scope and its row is
                      * deleted; when all other scopes of the owner are skipped,
                      * the owner becomes the scope's result unless `visit` sets
                      * another */
} pln_scope_action;

typedef struct pln_mutator {
  void *ud;
  /* Called for each node before it is copied; its operands and scopes have
   * images. *node is preset to PLN_NONE: the node is copied and then visited.
   * Another node replaces it, and there is no copy: for mutators that change
   * types, where the copy would be ill-typed. */
  pln_status (*replace)(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node);
  /* Called for each node in array order, after its operands and scopes. `old`
   * is the node in the old graph; *node is its copy in the new graph, already
   * rebuilt with new operands. Leave *node, or set it to a replacement that was
   * appended with pln_build_* through pln_rewrite_builder. */
  pln_status (*visit)(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node);
  /* Called while nothing has changed: the first node in [from, end) of the old
   * graph that `visit` must see; `end`: none. The others stay as they are.
   * NULL: `visit` sees every node. After the first change it sees them all. */
  pln_ref (*next)(void *ud, const pln_graph *old, pln_ref from, pln_ref end);
  /* Before a scope's first node; *action is preset to PLN_SCOPE_KEEP. */
  pln_status (*enter)(void *ud, pln_rewrite *rw, pln_scope old,
                      pln_scope_action *action);
  /* Called after the last node of a scope that is kept. *result is preset to
   * the image of the old result. The callback may append nodes and set another
   * result. */
  pln_status (*leave)(void *ud, pln_rewrite *rw, pln_scope old,
                      pln_ref *result);
  /* Called once for each distinct part of the types of variables, global
   * variables, constructors and type parameters. Types derived from them are
   * inferred again. */
  pln_type_rewrite_fn type;
  /* A node whose operand types changed is inferred again; if inference refuses
   * it, the rewrite fails with PLN_ERR_TYPE. With `lenient`, for mutators that
   * replace the operand and then the node, its type is unknown until then; a
   * node that is left so in the new graph is PLN_ERR_TYPE. */
  bool lenient;
  /* A function's result type becomes the type of its body. Without this flag
   * the result type of a function whose parameter types are unchanged must stay
   * valid; a body that contradicts it is PLN_ERR_TYPE. */
  bool retypes_results;
  /* Replacements are of the type of what they replace; one that contradicts it
   * is PLN_ERR_TYPE. In the graph of a file, whose declarations may be wrong,
   * it is left out. */
  bool keeps_types;
  /* An unbound Var that `visit` returns for a parameter replaces it in the
   * parameter list. Without this flag the Var replaces the uses only and the
   * parameter stays. */
  bool renames_params;
} pln_mutator;

/* *out is `graph` itself, retained, when nothing changed. */
PLN_API pln_status pln_graph_rewrite(const pln_graph *graph,
                                     const pln_mutator *mutator,
                                     pln_graph **out) PLN_CHECKED;
PLN_API const pln_graph *pln_rewrite_old(const pln_rewrite *rw);
PLN_API const pln_graph *pln_rewrite_graph(const pln_rewrite *rw); /* the new
                                                                    * graph */
PLN_API pln_builder *pln_rewrite_builder(pln_rewrite *rw);
/* The image of an already swept node; PLN_NONE when it is not swept yet. */
PLN_API pln_ref pln_rewrite_image(const pln_rewrite *rw, pln_ref old);
/* From now on uses of the already swept `old` become uses of `node`. */
PLN_API void pln_rewrite_bind(pln_rewrite *rw, pln_ref old, pln_ref node);
/* Value numbering: returns an equal earlier node that is visible in the current
 * scope, or else `node` itself after adding it to the table of its scope. */
PLN_API pln_status pln_rewrite_number_value(pln_rewrite *rw, pln_ref node,
                                            pln_ref *out) PLN_CHECKED;
/* Clears the extra roots, so that sealing drops their unused nodes. */
PLN_API void pln_rewrite_drop_extra_roots(pln_rewrite *rw);

/* ----------------------------------------------------------------- module */

/* An ordered map from global names to functions, with attributes and the
 * metadata of the file that it came from. Immutable and reference counted. */
typedef struct pln_module pln_module;

/* Makes an empty module; the caller owns one reference and releases it before
 * the engine. Release accepts NULL. The engine is borrowed. Functions are 0 to
 * count - 1 in order of insertion. */
PLN_API pln_status pln_module_new(pln_engine *engine,
                                  pln_module **out) PLN_CHECKED;
PLN_API pln_module *pln_module_retain(const pln_module *module);
PLN_API void pln_module_release(pln_module *module);
PLN_API pln_engine *pln_module_engine(const pln_module *module);
PLN_API uint32_t pln_module_count(const pln_module *module);
PLN_API pln_symbol pln_module_name_at(const pln_module *module, uint32_t index);
/* Borrowed. The graph's root is the Function. */
PLN_API pln_graph *pln_module_function_at(const pln_module *module,
                                          uint32_t index);
/* PLN_NONE when there is no function of that name. */
PLN_API uint32_t pln_module_find(const pln_module *module, pln_symbol name);
PLN_API pln_attrs pln_module_attrs(const pln_module *module);
/* Modified copies that share everything else. The same module comes back,
 * retained, when nothing changes. When a signature changes, the callers are
 * inferred again. PLN_ERR_TYPE when a call no longer matches, or when a
 * Constructor is not defined by the module or has other fields. */
PLN_API pln_status pln_module_with(const pln_module *module, pln_symbol name,
                                   const pln_graph *function,
                                   pln_module **out) PLN_CHECKED;
/* Replaces several functions at once, such as a function and its callers. */
PLN_API pln_status pln_module_with_functions(const pln_module *module,
                                             uint32_t n,
                                             const pln_symbol *names,
                                             const pln_graph *const *functions,
                                             pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_module_without(const pln_module *module, pln_symbol name,
                                      pln_module **out) PLN_CHECKED;
/* Removes several functions at once. A copy shares the functions but has its
 * own table of rows, so one copy is cheaper than several. */
PLN_API pln_status pln_module_without_functions(const pln_module *module,
                                                uint32_t n,
                                                const pln_symbol *names,
                                                pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_module_with_attrs(const pln_module *module,
                                         pln_attrs attrs,
                                         pln_module **out) PLN_CHECKED;
/* A copy in which the symbolic dim `name` is `value` in every type.
 * PLN_ERR_NAME when no type contains it. */
PLN_API pln_status pln_module_fix_dim(const pln_module *module, pln_slice name,
                                      int64_t value,
                                      pln_module **out) PLN_CHECKED;
/* A copy in which the parameter `name` of @main is a tensor with these dims. -1
 * leaves a dim unchanged; a parameter of unknown rank needs all of them.
 * Symbols that the dims determine (N, or 2*N+1) get that value in every type.
 * PLN_ERR_NAME when there is no such parameter; PLN_ERR_TYPE when it cannot
 * have these dims. */
PLN_API pln_status pln_module_fix_shape(const pln_module *module,
                                        pln_slice name, uint32_t rank,
                                        const int64_t *dims,
                                        pln_module **out) PLN_CHECKED;
/* An algebraic data type: its name, its type variables (PLN_TYPE_VAR) and its
 * constructors with their field types. The constructors of an extern type are
 * unknown. */
typedef struct pln_constructor {
  pln_symbol name;
  uint32_t n_inputs;
  const pln_type *inputs;
} pln_constructor;

typedef struct pln_type_def {
  pln_symbol name;
  bool is_extern;
  uint32_t n_vars;
  const pln_type *vars;
  uint32_t n_constructors;
  const pln_constructor *constructors;
} pln_type_def;

/* Definitions are 0 to n_types - 1 in order of insertion; borrowed. */
PLN_API uint32_t pln_module_n_types(const pln_module *module);
PLN_API const pln_type_def *pln_module_type_def_at(const pln_module *module,
                                                   uint32_t index);
/* PLN_NONE when there is no definition of that name. The second function finds
 * the definition that has a constructor of that name, and the index of the
 * constructor. */
PLN_API uint32_t pln_module_find_type(const pln_module *module,
                                      pln_symbol name);
PLN_API uint32_t pln_module_find_constructor(const pln_module *module,
                                             pln_symbol name, uint32_t *index);
/* A copy with a definition added or replaced; `data` is copied. */
PLN_API pln_status pln_module_with_type(const pln_module *module,
                                        const pln_type_def *data,
                                        pln_module **out) PLN_CHECKED;
/* The function type of a constructor: `fn [A](A, List[A]) -> List[A]`. */
PLN_API pln_status pln_module_constructor_type(const pln_module *module,
                                               uint32_t type, uint32_t index,
                                               pln_type *out) PLN_CHECKED;
/* Infers unknown types by unification (Milner 1978): of unannotated functions,
 * recursive ones included, and of their callers, matches, closures and
 * reference cells. Known types are not inferred again; the same module or graph
 * comes back when nothing was learnt. PLN_ERR_TYPE, with the node: a
 * contradiction, a free type variable, a type of the wrong kind, or a Match
 * marked complete that does not cover every case. */
PLN_API pln_status pln_module_infer(const pln_module *module,
                                    pln_module **out) PLN_CHECKED;
/* The same for an expression. `module` defines its globals and constructors,
 * and may be NULL. */
PLN_API pln_status pln_graph_infer(const pln_graph *graph,
                                   const pln_module *module,
                                   pln_graph **out) PLN_CHECKED;
/* The result of inferring a function under other parameter types. */
#define PLN_MAX_TRIALS ((int64_t)1 << 24)
typedef struct pln_signature_result {
  pln_ref failed;     /* the first node that is ill-typed, or PLN_NONE */
  pln_ref empty;      /* the first avoidable node without elements, when no
                       * parameter is empty; or PLN_NONE */
  bool results_empty; /* valid when nothing failed: no result has elements */
  uint32_t n_typed;   /* number of nodes inferred */
  /* Candidate sizes, from 1 to PLN_MAX_TRIALS, with which the failed node (else
   * the empty one) is well-typed. Sizes derived from operands that are not
   * parameters come first. */
  uint32_t n_numbers;
  int64_t numbers[48];
  char message[256]; /* why inference failed */
} pln_signature_result;
/* Infers the types of a function as if its n parameters had these types. Builds
 * and computes nothing; the function is unchanged. Nodes that are ill-typed
 * already are skipped. `params` has n entries: which parameters the failed
 * (else the empty) node depends on. `module` may be NULL. PLN_ERR_ARGUMENT when
 * the graph is not a function of n parameters. */
PLN_API pln_status pln_graph_infer_signature(const pln_graph *function,
                                             const pln_module *module,
                                             uint32_t n, const pln_type *types,
                                             pln_signature_result *out,
                                             bool *params) PLN_CHECKED;
/* The cases that no arm of the graph's Match covers, as a PatternTuple; an
 * empty one when the Match is complete (Maranget 2007). Every uncovered value
 * matches one of them; they are no more specific than the arms. `module` (may
 * be NULL) defines the data types. PLN_ERR_TYPE for a constructor that it does
 * not define; PLN_ERR_LIMIT when there are too many cases. */
PLN_API pln_status pln_build_uncovered_cases(pln_builder *b,
                                             const pln_graph *graph,
                                             pln_ref match,
                                             const pln_module *module,
                                             pln_ref *out) PLN_CHECKED;
/* The kind of a type. PLN_ERR_TYPE when one of its parts has the wrong kind.
 * `module` (may be NULL) holds the type definitions. */
PLN_API pln_status pln_type_check_kind(pln_engine *engine,
                                       const pln_module *module, pln_type type,
                                       pln_type_var_kind *out) PLN_CHECKED;
PLN_API const char *pln_type_var_kind_name(pln_type_var_kind kind);
/* Verifies every function, and each GlobalVar and Constructor against the
 * module. */
PLN_API pln_status pln_module_verify(const pln_module *module) PLN_CHECKED;
/* Verified, and each function well-formed. */
PLN_API pln_status pln_module_well_formed(const pln_module *module) PLN_CHECKED;
PLN_API pln_status pln_module_equal(const pln_module *a, const pln_module *b,
                                    bool *out) PLN_CHECKED;
/* `contents`: constants over 1 KiB are compared by content, as for a module
 * that was written and read back. */
PLN_API pln_status pln_module_mismatch(const pln_module *a, const pln_module *b,
                                       bool map_free_vars, bool contents,
                                       pln_mismatch *out) PLN_CHECKED;
PLN_API pln_status pln_module_hash(const pln_module *module,
                                   uint64_t *out) PLN_CHECKED;

/* ------------------------------------------------------------------- text */

/* Receives text as it is printed; a failure stops the printing. */
typedef pln_status (*pln_write_fn)(void *ud, const char *data, size_t size);

/* How the metadata section writes a constant that is not a literal. */
typedef enum pln_print_constants {
  /* Elements in base64. A constant over 1 MiB that lies in a file is written as
   * the file's name and its range there. Reads back equal. */
  PLN_CONSTANTS_COMPLETE = 0,
  /* Elements in base64, whatever the size and wherever they are stored. */
  PLN_CONSTANTS_EMBEDDED,
  /* A constant over 64 elements is written as dtype, shape and a hash of its
   * elements. For one over 1 MiB in a file, and for external data, the file's
   * base name and range replace the hash, so that no weights are read. The
   * parser refuses such text and explains how to get complete text. */
  PLN_CONSTANTS_BRIEF
} pln_print_constants;

/* Options of the printer. All zero: complete text. */
typedef struct pln_print_options {
  size_t limit;      /* > 0: truncate after about that many bytes with "..." */
  uint8_t constants; /* pln_print_constants */
  /* Omit the metadata section; a module has a comment instead. */
  bool no_metadata;
  /* Print references to constants with the constant's hash instead of its
   * number, for line-by-line comparison. Not readable by the parser. */
  bool hash_references;
  /* For a PrimExpr: declare the variables and buffers that it uses before
   * it. */
  bool declared;
} pln_print_options;

/* Prints Relay text as TVM 0.14 does; `options` may be NULL. The metadata
 * section follows when anything refers to it. The Function attributes
 * "virtual_device" and "param_virtual_devices" (a list with an OBJECT or
 * nothing per parameter) are printed where Relay prints devices. */
PLN_API pln_status pln_print_module(const pln_module *module,
                                    const pln_print_options *options,
                                    pln_write_fn write, void *ud) PLN_CHECKED;
PLN_API pln_status pln_print_node(const pln_graph *graph, pln_ref node,
                                  const pln_print_options *options,
                                  pln_write_fn write, void *ud) PLN_CHECKED;
PLN_API pln_status pln_print_type(const pln_engine *engine, pln_type type,
                                  pln_write_fn write, void *ud) PLN_CHECKED;
PLN_API pln_status pln_print_dim(const pln_engine *engine, pln_dim dim,
                                 pln_write_fn write, void *ud) PLN_CHECKED;
PLN_API pln_status pln_print_attrs(const pln_engine *engine, pln_attrs attrs,
                                   pln_write_fn write, void *ud) PLN_CHECKED;

/* Objects from outside that a text may refer to. */
typedef struct pln_parse_options {
  /* The text may use its functions and data types by name. A parsed module
   * contains them too and must not define them again. NULL: none. */
  const pln_module *module;
  /* Entries of meta[relay.Constant], numbered after those of the text's own
   * metadata section. */
  uint32_t n_constants;
  pln_tensor *const *constants;
  /* Other metadata entries, as attribute values (PLN_ATTR_OBJECT). Each is
   * numbered under the type key in its JSON. */
  uint32_t n_objects;
  const pln_slice *objects;
  /* The spans of the text's own nodes are printed (pln_build_span), and spans
   * in its comments are comments. */
  bool print_spans;
} pln_parse_options;
/* Parses Relay text: a module, which begins with #[version = "0.0.5"], or one
 * expression, whose free variables are declared by `free_var %x: T;`. `source`
 * names the text in messages; NULL: "text". Nodes record their spans. Errors
 * are reported at their spans, up to 20 per call; PLN_ERR_FORMAT, or
 * PLN_ERR_LIMIT when there were more.
 * `options` may be NULL. */
PLN_API pln_status pln_parse_module(pln_engine *engine, pln_slice text,
                                    const char *source,
                                    const pln_parse_options *options,
                                    pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_parse_expr(pln_engine *engine, pln_slice text,
                                  const char *source,
                                  const pln_parse_options *options,
                                  pln_graph **out) PLN_CHECKED;

/* Parses TVMScript (see tir in README): a module, or a PrimFunc, which becomes
 * a module; or statements or one PrimExpr, after declarations of the free
 * variables and buffers that it uses, as printed with `declared`. Legacy nodes
 * are read too: T.realize, T.ProducerRealize and elements of undeclared
 * producers. Errors are reported as above. */
PLN_API pln_status pln_parse_script(pln_engine *engine, pln_slice text,
                                    const char *source,
                                    pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_parse_script_expr(pln_engine *engine, pln_slice text,
                                         const char *source,
                                         pln_graph **out) PLN_CHECKED;

/* Parses one type, in the form of pln_print_type. `vars` are the type variables
 * that its names may refer to. Another name with a capital first letter, or
 * with arguments in brackets, is a data type. */
PLN_API pln_status pln_parse_type_text(pln_engine *engine, pln_slice text,
                                       uint32_t n_vars, const pln_type *vars,
                                       pln_type *out) PLN_CHECKED;
/* Reads a module from a file of Relay text, and writes one: atomically, as a
 * temporary file beside `path` that is renamed. */
PLN_API pln_status pln_parse_file(pln_engine *engine, const char *path,
                                  pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_print_file(const pln_module *module,
                                  const char *path) PLN_CHECKED;
/* Prints for Graphviz (the DOT language): functions and scopes are clusters,
 * edges lead from a value to its user. The whole of a sealed graph is
 * printed. */
PLN_API pln_status pln_dot_module(const pln_module *module, pln_write_fn write,
                                  void *ud) PLN_CHECKED;
PLN_API pln_status pln_dot_graph(const pln_graph *graph, pln_write_fn write,
                                 void *ud) PLN_CHECKED;
/* Prints JSON: {"attrs": .., "types": [..], "functions": [{"name": .., "root":
 * node, "scopes": [..], "nodes": [..]}]}. A node has "kind" and, if present,
 * "name", "op", "data", "index", "scope" (its first), "operands", "attrs",
 * "results", "effect", "type" (as text) and "span". A scope has "begin", "end",
 * "owner", "parent", "result", "params". For a graph: root, scopes and
 * nodes. */
PLN_API pln_status pln_json_module(const pln_module *module, pln_write_fn write,
                                   void *ud) PLN_CHECKED;
PLN_API pln_status pln_json_graph(const pln_graph *graph, pln_write_fn write,
                                  void *ud) PLN_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
