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

/* ir/graph/kinds.def tells what each is made of. */
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

/* A place in a source text. Rows and columns count from 1, columns in bytes;
 * the end is one past the last character; 0: not known, as of nodes that TVM
 * took from another framework, where the source is a node's name there. */
typedef struct pln_source_span {
  pln_symbol source;
  uint32_t row, column;
  uint32_t end_row, end_column;
} pln_source_span;

/* A sealed graph: an expression (pln_graph_root) with all it needs, usually a
 * Function. Never changes; reference counted.
 * Scope 0 is the graph's own; scope rows stand in order of their begin. */
typedef struct pln_graph pln_graph;
typedef uint32_t pln_scope;

/* A reference more, and one less: the last one frees it (release takes NULL).
 * The engine is borrowed; nodes are 0 to size - 1, scopes 0 to n_scopes - 1. */
PLN_API pln_graph *pln_graph_retain(const pln_graph *graph);
PLN_API void pln_graph_release(pln_graph *graph);
PLN_API pln_engine *pln_graph_engine(const pln_graph *graph);
PLN_API uint32_t pln_graph_size(const pln_graph *graph); /* nodes */
PLN_API pln_ref pln_graph_root(const pln_graph *graph);
PLN_API uint32_t pln_graph_n_scopes(const pln_graph *graph);

/* What a node (less than the size) is, its type, what is known of its integers
 * (0: nothing), and its effects. */
PLN_API pln_kind pln_node_kind(const pln_graph *graph, pln_ref node);
PLN_API pln_type pln_node_type(const pln_graph *graph, pln_ref node);
PLN_API pln_value pln_node_value(const pln_graph *graph, pln_ref node);
PLN_API pln_effect pln_node_effects(const pln_graph *graph, pln_ref node);
/* Operands: Call arguments (a callee that is no operator is operand 0), Tuple
 * fields, the tuple of TupleGetItem, Let's var and value, If's condition, ...
 * Nested functions of an ONNX operator follow its inputs. */
PLN_API uint32_t pln_node_n_operands(const pln_graph *graph, pln_ref node);
PLN_API const pln_ref *pln_node_operands(const pln_graph *graph, pln_ref node);
PLN_API pln_op pln_node_op(const pln_graph *graph, pln_ref node);
PLN_API pln_attrs pln_node_attrs(const pln_graph *graph, pln_ref node);
/* 0: the value itself; k: a tuple of k results (Call, If). */
PLN_API uint32_t pln_node_n_results(const pln_graph *graph, pln_ref node);
PLN_API uint32_t pln_node_index(const pln_graph *graph, pln_ref node);
/* Of an IntImm or FloatImm; else 0. */
PLN_API int64_t pln_node_int(const pln_graph *graph, pln_ref node);
PLN_API double pln_node_float(const pln_graph *graph, pln_ref node);
/* Of a Constant, borrowed; else NULL. */
PLN_API const pln_tensor *pln_node_tensor(const pln_graph *graph, pln_ref node);
/* The engine-wide identity of a Var. */
PLN_API uint32_t pln_node_var(const pln_graph *graph, pln_ref node);
/* Var: name hint; GlobalVar, Constructor: name. */
PLN_API pln_symbol pln_node_symbol(const pln_graph *graph, pln_ref node);
/* Where the node stands in the text that it was read from, if it was. False
 * when nothing is known. `printed` (may be NULL): it is shown in text. */
PLN_API bool pln_node_place(const pln_graph *graph, pln_ref node,
                            pln_source_span *out, bool *printed);
/* What made a node, newest first: passes and their rules, at the end where it
 * came from. pln_node_history gives the first row, pln_history_next reads the
 * row `at` and gives the one after it; 0: no more, or nothing is known. */
typedef struct pln_history_row {
  uint32_t at;
  bool is_source;
  /* A change. */
  pln_symbol pass;      /* 0: made outside of passes */
  pln_symbol rule;      /* 0: the pass named none */
  uint32_t run;         /* of the pass, in the outermost application */
  uint32_t application; /* in that run, of those asked for of its function; 0:
                           not counted */
  uint32_t from; /* what it was made from, for pln_history_describe; 0: not */
  uint32_t also; /*   known; the second: what was merged in, or else */
  /* A source; what is not known is 0. */
  pln_symbol name;
  pln_source_span place; /* in a text */
  pln_symbol script;     /* a Lua file, and the line that built it */
  uint32_t line;
  const char *file; /* borrowed, as the next two: of a node of an ONNX model */
  pln_slice node;   /*   its name, or first output, and its operator */
  pln_slice op;
} pln_history_row;
PLN_API uint32_t pln_node_history(const pln_graph *graph, pln_ref node);
PLN_API uint32_t pln_history_next(const pln_graph *graph, uint32_t at,
                                  pln_history_row *out);
/* The source behind a row, as snprintf does: "node 'a' (Conv), model.onnx". */
PLN_API size_t pln_history_describe(const pln_graph *graph, uint32_t at,
                                    char *text, size_t size);
/* Scopes owned: Function, LetBlock and For 1, If 2, Match one an arm. */
PLN_API uint32_t pln_node_n_scopes(const pln_graph *graph, pln_ref node);
PLN_API pln_scope pln_node_scope(const pln_graph *graph, pln_ref node,
                                 uint32_t index);

/* Nodes of a scope and of those nested in it: [begin, end). Its parameters
 * are the first n_params of them. */
PLN_API pln_ref pln_scope_begin(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_end(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_owner(const pln_graph *graph, pln_scope scope);
PLN_API pln_scope pln_scope_parent(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_result(const pln_graph *graph, pln_scope scope);
PLN_API uint32_t pln_scope_n_params(const pln_graph *graph, pln_scope scope);
PLN_API pln_attrs pln_scope_attrs(const pln_graph *graph, pln_scope scope);
/* Of a Function's scope: a tuple type of its type parameters; 0: none. */
PLN_API pln_type pln_scope_type_params(const pln_graph *graph, pln_scope scope);

/* Checks every rule of ir/README.md in one linear pass; PLN_ERR_INVALID with
 * the node and the rule it breaks, PLN_ERR_TYPE with a call that does not fit
 * the function that it calls, and with a use of a let's variable inside of the
 * let's own value that does not fit its type. */
PLN_API pln_status pln_graph_verify(const pln_graph *graph) PLN_CHECKED;
/* Verified, and well-formed as Relay has it: each variable is bound once at the
 * most, not after it appeared free, and not used after its scope ended. Of a
 * PrimFunc each variable is bound, too, and a block with variables uses no
 * index of a loop around it. */
PLN_API pln_status pln_graph_well_formed(const pln_graph *graph) PLN_CHECKED;

/* The tree of immediate post-dominators over what uses what: out[i] is the
 * nearest node that all ways of node i's value lead through, PLN_NONE when
 * there is none: its value leaves a function, is bound, has an effect, or is
 * not used. A branch, an arm or a block leads to its owner. `out` has
 * pln_graph_size places. Near-linear time. */
PLN_API pln_status pln_graph_dominators(const pln_graph *graph,
                                        pln_ref *out) PLN_CHECKED;

/* Structural equality and hash of two expressions as Relay defines them:
 * alpha-equivalent, shared differs from duplicated; `map_free_vars` lets free
 * Vars correspond. A Constructor without a type is that of its name, whatever
 * the other's type: only the module it is for knows its definition. Of modules
 * the definitions are compared as well. */
PLN_API pln_status pln_graph_equal(const pln_graph *a, pln_ref node_a,
                                   const pln_graph *b, pln_ref node_b,
                                   bool map_free_vars, bool *out) PLN_CHECKED;
PLN_API pln_status pln_graph_hash(const pln_graph *graph, pln_ref node,
                                  bool map_free_vars,
                                  uint64_t *out) PLN_CHECKED;

/* Where two expressions or modules differ first. */
typedef struct pln_mismatch {
  bool equal;
  pln_ref a, b; /* the nodes; PLN_NONE when it lies in no function */
  /* Of modules: the functions' numbers, or PLN_NONE. */
  uint32_t function_a, function_b;
  char text[512]; /* "@main.body.args[0].attrs.axis: 1 versus 2" */
} pln_mismatch;
PLN_API pln_status pln_graph_mismatch(const pln_graph *a, pln_ref node_a,
                                      const pln_graph *b, pln_ref node_b,
                                      bool map_free_vars,
                                      pln_mismatch *out) PLN_CHECKED;

/* ---------------------------------------------------------------- builder */

/* The only thing that appends. Nodes are typed as they are appended.
 *
 * Scoped use (files, passes): open a scope, append into it, end it with its
 * result, append its owner; nodes belong to the innermost open scope, or to the
 * one named by pln_build_in.
 * Free use (scripts): nothing is open; nodes float, and pln_build_bind makes a
 * Function of a floating body; sealing finds each node's place. */
typedef struct pln_builder pln_builder;

/* An empty builder, to be freed before its engine, spent or not; free takes
 * NULL. Sealed graphs live on. */
PLN_API pln_status pln_builder_new(pln_engine *engine,
                                   pln_builder **out) PLN_CHECKED;
PLN_API void pln_builder_free(pln_builder *builder);
/* What has been appended so far, to be read like a sealed graph. Borrowed. */
PLN_API const pln_graph *pln_builder_graph(const pln_builder *builder);

/* Leaves. Var: a new identity, or `var` != 0 to make a node of an old one. */
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
/* A constructor of an algebraic data type; `type` 0: as the module of the
 * builder defines it. */
PLN_API pln_status pln_build_constructor(pln_builder *b, pln_symbol name,
                                         pln_type type,
                                         pln_ref *out) PLN_CHECKED;
/* Patterns. An arm of a Match is a scope: its parameters are the variables its
 * pattern binds, in order; then come the pattern's nodes, the Clause, and what
 * the arm computes. */
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
/* A call of any other expression (GlobalVar, Var, Function, Constructor); that
 * of an Op is a call of the operator. */
PLN_API pln_status pln_build_apply(pln_builder *b, pln_ref callee,
                                   pln_attrs attrs, uint32_t n_results,
                                   uint32_t n, const pln_ref *args,
                                   pln_ref *out) PLN_CHECKED;
/* The same with types for the first type parameters of what is called, or all.
 * They are kept, as the attribute "type_args", when the arguments do not tell
 * them. PLN_ERR_TYPE when there are too many, or arguments do not fit. */
PLN_API pln_status pln_build_apply_at(pln_builder *b, pln_ref callee,
                                      uint32_t n_types, const pln_type *types,
                                      pln_attrs attrs, uint32_t n_results,
                                      uint32_t n, const pln_ref *args,
                                      pln_ref *out) PLN_CHECKED;
/* What a call gives for the type parameters of what it calls, a tuple type:
 * what is written, else what follows from arguments and result; 0 in place of
 * one that nothing tells. 0 when there are none; operators have none. */
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
/* A parameter of the innermost open scope; before anything else in it. */
PLN_API pln_status pln_build_param(pln_builder *b, pln_symbol name,
                                   pln_type type, uint32_t var,
                                   pln_ref *out) PLN_CHECKED;
/* Closes the innermost scope, which must be `scope`. */
PLN_API pln_status pln_build_end(pln_builder *b, pln_scope scope,
                                 pln_ref result, pln_attrs attrs) PLN_CHECKED;
/* Owners of ended scopes. `ret` may be 0. */
PLN_API pln_status pln_build_function(pln_builder *b, pln_scope body,
                                      pln_attrs attrs, pln_type ret,
                                      pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_if(pln_builder *b, pln_ref cond,
                                pln_scope then_branch, pln_scope else_branch,
                                pln_attrs attrs, uint32_t n_results,
                                pln_ref *out) PLN_CHECKED;
/* `complete`: the arms cover every value. Attribute "complete". */
PLN_API pln_status pln_build_match(pln_builder *b, pln_ref data, bool complete,
                                   uint32_t n, const pln_scope *arms,
                                   pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_let_block(pln_builder *b, pln_scope body,
                                       pln_ref *out) PLN_CHECKED;
/* Gives a Function that was just appended its type parameters. */
PLN_API pln_status pln_build_generic(pln_builder *b, pln_ref function,
                                     uint32_t n,
                                     const pln_type *vars) PLN_CHECKED;
/* Let in the innermost open scope: `var` was appended before `value`. */
PLN_API pln_status pln_build_let(pln_builder *b, pln_ref var, pln_ref value,
                                 pln_ref *out) PLN_CHECKED;
/* The next nodes go into `scope` (open, or enclosing an open one);
 * PLN_NONE goes back to the innermost. */
PLN_API pln_status pln_build_in(pln_builder *b, pln_scope scope) PLN_CHECKED;

/* Free use: Function, If and Let over floating nodes (Let: an expression). */
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

/* `body`, in whose scope `value`, which it need not use, is an extra root
 * (pln_build_extra_root). */
PLN_API pln_status pln_build_floating_extra_root(pln_builder *b, pln_ref value,
                                                 pln_ref body,
                                                 pln_ref *out) PLN_CHECKED;

/* Each arm: a pattern, whose PatternVars name its variables, and a body. */
PLN_API pln_status pln_build_floating_match(pln_builder *b, pln_ref data,
                                            bool complete, uint32_t n,
                                            const pln_ref *patterns,
                                            const pln_ref *bodies,
                                            pln_ref *out) PLN_CHECKED;

/* Copies `node` of another graph, with all that it needs, into the builder.
 * Memoised; Vars that are bound outside of it become free, with their
 * identity kept. */
PLN_API pln_status pln_build_import(pln_builder *b, const pln_graph *graph,
                                    pln_ref node, pln_ref *out) PLN_CHECKED;
/* Tells the order in which text has a Function's attributes; without it they
 * stand by name. It says nothing of what they mean. */
PLN_API pln_status pln_build_attr_order(pln_builder *b, pln_ref node,
                                        uint32_t n,
                                        const pln_symbol *names) PLN_CHECKED;
/* Keeps a node that nothing uses until DeadCodeElimination. */
PLN_API void pln_build_extra_root(pln_builder *b, pln_ref node);
/* Names a node: a hint for printing, and for export its ONNX value names. */
PLN_API pln_status pln_build_name(pln_builder *b, pln_ref node,
                                  pln_symbol name) PLN_CHECKED;
/* Tells where a node stands in its source. A `printed` place is written behind
 * the node's type, as `span=source:row:column`. */
PLN_API pln_status pln_build_span(pln_builder *b, pln_ref node,
                                  const pln_source_span *place,
                                  bool printed) PLN_CHECKED;

/* A sealed graph of `root`. Scoped use: the builder is spent. Free use: the
 * builder goes on, and what `root` needs is copied out. */
PLN_API pln_status pln_builder_seal(pln_builder *builder, pln_ref root,
                                    pln_graph **out) PLN_CHECKED;

/* ---------------------------------------------------------------- walking */

/* Visits of a node of a sealed graph and of all that it is made of, each node
 * once, as Relay sees it: a Call's operands in order, a Function's parameters
 * and body, an If's condition and branches, a Match's data and arms (pattern,
 * then body); a Let's body is the rest of its scope. The root of a graph
 * stands for the whole graph. The order is that of evaluation, by depth, but
 * for a callee, which is visited before its arguments and evaluated behind
 * them; a node that several use is visited where it is met first. */
typedef pln_status (*pln_visit_fn)(void *ud, const pln_graph *graph,
                                   pln_ref node);
/* `fn` for each node after its operands and scopes (a Let after its body).
 * What `fn` returns other than PLN_OK ends the walk and is its status. */
PLN_API pln_status pln_walk_post_order(const pln_graph *graph, pln_ref node,
                                       pln_visit_fn fn, void *ud) PLN_CHECKED;

/* Either may be NULL. A node whose `enter` sets *skip is neither gone into nor
 * left. A run of lets is entered in order and left in reverse. */
typedef struct pln_visitor {
  void *ud;
  pln_status (*enter)(void *ud, const pln_graph *graph, pln_ref node,
                      bool *skip);
  pln_status (*leave)(void *ud, const pln_graph *graph, pln_ref node);
} pln_visitor;
PLN_API pln_status pln_walk(const pln_graph *graph, pln_ref node,
                            const pln_visitor *visitor) PLN_CHECKED;

/* The same one step at a time; the walker retains the graph. */
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
/* After ENTER: what the node is made of is left out, and so is its LEAVE. */
PLN_API void pln_walker_skip(pln_walker *walker);
/* After DONE: goes on at another node, without what was visited; false when
 * that node was. */
PLN_API bool pln_walker_revisit(pln_walker *walker, pln_ref node);

/* Visits of types: each distinct type once, after all parts of it; those of a
 * function type are its parameters, result, type parameters, constraints. */
typedef pln_status (*pln_type_fn)(void *ud, pln_engine *engine, pln_type type);
PLN_API pln_status pln_type_post_order(pln_engine *engine, pln_type type,
                                       pln_type_fn fn, void *ud) PLN_CHECKED;
/* The same one step at a time; types that were visited are not visited again
 * when they are added again. */
typedef struct pln_type_walker pln_type_walker;
PLN_API pln_status pln_type_walker_new(pln_engine *engine,
                                       pln_type_walker **out) PLN_CHECKED;
PLN_API void pln_type_walker_free(pln_type_walker *walker);
PLN_API pln_status pln_type_walker_add(pln_type_walker *walker,
                                       pln_type type) PLN_CHECKED;
/* *done: there was none left. */
PLN_API pln_status pln_type_walker_next(pln_type_walker *walker, pln_type *type,
                                        bool *done) PLN_CHECKED;

/* Types rebuilt part by part, each distinct one once. `old` with the images of
 * its parts is *type: leave it, or set it to what stands for `old`. A mutator
 * that failed is only good to be freed. */
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

/* What becomes of a node of a graph that is made smaller, where something else
 * will do in its place. */
typedef enum pln_shrink_action {
  PLN_SHRINK_KEEP,
  PLN_SHRINK_FREE_VAR,  /* a new free variable of its type */
  PLN_SHRINK_TO_ZERO,   /* a constant of zeros; for tensors of known shape */
  PLN_SHRINK_LET_VALUE, /* of a Let: it goes, its variable is the value */
  PLN_SHRINK_TO_OPERAND /* + k: its operand k; for an If the branch k, taken */
} pln_shrink_action;
/* `cuts` has an entry a node. *out is a graph without what nothing needs any
 * more. PLN_ERR_ARGUMENT where a cut does not fit its node; whether other nodes
 * bear the types that they see now is for pln_graph_verify to tell. */
PLN_API pln_status pln_graph_shrink(const pln_graph *graph,
                                    const uint32_t *cuts,
                                    pln_graph **out) PLN_CHECKED;
/* ---------------------------------------------------------- the loop level */

/* TIR's PrimExprs and statements, in the same graphs. A PrimExpr is evaluated
 * where its statement uses it; statements are evaluated in the order of their
 * scope, which stands for TIR's SeqStmt. A loop-level Var has a PrimType or a
 * pointer type; it is a SizeVar when pln_node_n_results is 1.
 *
 * Where a field of TVM's node is no PrimExpr it is an attribute of its name:
 * For "kind" (0 serial, 1 parallel, 2 vectorized, 3 unrolled, 4 thread
 * binding) and "annotations", AttrStmt "attr_key", Allocate "dtype" and
 * "annotations", AllocateConst "data" and "dtype", Block "name_hint",
 * "iter_types" and "annotations", IterVar "thread_tag", Buffer
 * "data_alignment", "offset_factor", "buffer_type" and "axis_separators",
 * ProducerRealize "storage_scope". */

/* Builtins ("exp", "if_then_else", "call_extern") are 1 to the count; find
 * gives 0 when there is none of that name. Names are static. */
PLN_API uint32_t pln_builtin_count(void);
PLN_API uint32_t pln_builtin_find(pln_slice name);
PLN_API const char *pln_builtin_name(uint32_t builtin);
/* What a call itself does, in the order of TVM's CallEffectKind; OPAQUE of what
 * is no builtin. A greater one of the first five does all that a lesser does.
 */
typedef enum pln_call_kind {
  PLN_CALL_EXPR_ANNOTATION, /* says something of an expression */
  PLN_CALL_PURE,
  PLN_CALL_READ_STATE,
  PLN_CALL_UPDATE_STATE,
  PLN_CALL_OPAQUE,           /* may do anything */
  PLN_CALL_SPECIAL_CALL_ARG, /* pure, and stands in a call only */
  PLN_CALL_EMBED_INFO,       /* says something where it stands */
  PLN_CALL_CONTROL_JUMP
} pln_call_kind;
PLN_API pln_call_kind pln_builtin_call_kind(uint32_t builtin);
/* "pure"; "?" of none. */
PLN_API const char *pln_call_kind_name(pln_call_kind kind);
/* How many arguments it takes, -1 for any number. */
PLN_API int32_t pln_builtin_args(uint32_t builtin);

/* What a node of the loop level is made of; ir/graph/kinds.def names the
 * operands. `data` is the lanes of Ramp and Broadcast, the builtin of PrimCall
 * (0: the GlobalVar that is operand 0), the number of vectors of Shuffle, the
 * value index of Reduce, the name of Buffer, the value of StringImm (symbols),
 * the type of IterVar (TVM's number). `count` is the rank of Buffer and the
 * number of starts of Reduce. `type` is that of Cast, PrimCall and Buffer (its
 * elements), the result of a PrimFunc (0: none); other types are inferred. */
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
  pln_type type; /* of an element */
  pln_attrs attrs;
  pln_ref data; /* a Var of a pointer type */
  uint32_t rank;
  const pln_ref *shape;
  uint32_t n_strides; /* 0: compact, else rank */
  const pln_ref *strides;
  pln_ref elem_offset;
} pln_buffer_spec;

/* A Var that is no less than 0. */
PLN_API pln_status pln_build_size_var(pln_builder *b, pln_symbol name,
                                      pln_type type, uint32_t var,
                                      pln_ref *out) PLN_CHECKED;
/* Immediates. PLN_ERR_TYPE when the dtype does not hold the value. */
PLN_API pln_status pln_build_int_imm(pln_builder *b, pln_type type,
                                     int64_t value, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_float_imm(pln_builder *b, pln_type type,
                                       double value, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_string_imm(pln_builder *b, pln_symbol value,
                                        pln_ref *out) PLN_CHECKED;
/* Any node of the loop level that owns no scope. */
PLN_API pln_status pln_build_prim(pln_builder *b, const pln_prim *spec,
                                  pln_ref *out) PLN_CHECKED;
/* Add to Or. */
PLN_API pln_status pln_build_binary(pln_builder *b, pln_kind kind, pln_ref x,
                                    pln_ref y, pln_ref *out) PLN_CHECKED;
/* The same, but computed when both are immediates, and x + 0, x * 1 and the
 * like are x: what TVM's operators on PrimExprs give. Integers wrap in the bits
 * of their dtype; PLN_ERR_ARGUMENT for a division by zero. */
PLN_API pln_status pln_build_folded(pln_builder *b, pln_kind kind, pln_ref x,
                                    pln_ref y, pln_ref *out) PLN_CHECKED;
/* A buffer; each one made is another. */
PLN_API pln_status pln_build_buffer(pln_builder *b, const pln_buffer_spec *spec,
                                    pln_ref *out) PLN_CHECKED;
/* A statement or PrimFunc that owns `k` ended scopes; each ends with its last
 * statement as result. A PrimFunc's attributes are the function's. */
PLN_API pln_status pln_build_stmt(pln_builder *b, const pln_prim *spec,
                                  uint32_t k, const pln_scope *scopes,
                                  pln_ref *out) PLN_CHECKED;
/* A loop over [min, min + extent); the body's one parameter is its index. */
PLN_API pln_status pln_build_for(pln_builder *b, pln_ref min, pln_ref extent,
                                 pln_scope body, pln_ref *out) PLN_CHECKED;

/* Free use: bodies are statements; of several, a SeqStmt. A statement that is
 * used twice is there twice when sealed. */
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

/* One sweep over a sealed graph that writes another. Every callback may be
 * NULL. */
typedef struct pln_rewrite pln_rewrite;

/* What becomes of a scope of the old graph. */
typedef enum pln_scope_action {
  PLN_SCOPE_KEEP = 0,
  PLN_SCOPE_SKIP,    /* its nodes are not swept; its owner must be replaced */
  PLN_SCOPE_DISSOLVE /* its nodes go to the enclosing scope, its row goes; when
                        all other scopes of the owner are skipped, the owner
                        becomes the scope's result unless visit says else */
} pln_scope_action;

typedef struct pln_mutator {
  void *ud;
  /* Called for each node in array order, after its operands and scopes.
   * `old` is the node in the old graph; *node in the new one, already rebuilt
   * with new operands. Leave *node, or set it to the node to use instead,
   * appended with pln_build_* through pln_rewrite_builder. */
  pln_status (*visit)(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node);
  /* Before a scope's first node; *action is preset to PLN_SCOPE_KEEP. */
  pln_status (*enter)(void *ud, pln_rewrite *rw, pln_scope old,
                      pln_scope_action *action);
  /* Behind the last node of a scope that is kept; *result is preset to what
   * the old result became. Nodes may be appended, and one set instead. */
  pln_status (*leave)(void *ud, pln_rewrite *rw, pln_scope old,
                      pln_ref *result);
  /* Called once for each distinct part of the types of variables, global
   * variables, constructors and of type parameters; what depends on them is
   * typed anew. */
  pln_type_rewrite_fn type;
  /* A node whose operands have other types now is typed again, and
   * PLN_ERR_TYPE where inference refuses it. Of files: then it is a warning,
   * and the node's type is not known. */
  bool lenient;
  /* A function gives what its body gives now. Else the result of one whose
   * parameters keep their types is relied upon, and PLN_ERR_TYPE where the
   * body contradicts it. */
  bool retypes_results;
  /* A Var that `visit` gives for a parameter, and that nothing binds, takes its
   * place in the parameter list. Else it stands for the parameter, which
   * stays. */
  bool renames_params;
} pln_mutator;

/* *out is `graph` itself, retained, when nothing changed. */
PLN_API pln_status pln_graph_rewrite(const pln_graph *graph,
                                     const pln_mutator *mutator,
                                     pln_graph **out) PLN_CHECKED;
PLN_API const pln_graph *pln_rewrite_old(const pln_rewrite *rw);
PLN_API const pln_graph *pln_rewrite_graph(const pln_rewrite *rw); /* new */
PLN_API pln_builder *pln_rewrite_builder(pln_rewrite *rw);
/* The image of a node that was already swept; PLN_NONE when it is not yet. */
PLN_API pln_ref pln_rewrite_image(const pln_rewrite *rw, pln_ref old);
/* From here on `node` stands for the already swept `old`. */
PLN_API void pln_rewrite_bind(pln_rewrite *rw, pln_ref old, pln_ref node);
/* An equal earlier node that the current scope sees, or `node` itself, which
 * is then entered in the hash-cons table of its scope. */
PLN_API pln_status pln_rewrite_number_value(pln_rewrite *rw, pln_ref node,
                                            pln_ref *out) PLN_CHECKED;
/* Clears the keep marks: what nothing uses goes when the result is sealed. */
PLN_API void pln_rewrite_drop_extra_roots(pln_rewrite *rw);

/* ----------------------------------------------------------------- module */

/* An ordered map from global names to functions, with attributes and what is
 * kept of the file it came from. Never changes; reference counted. */
typedef struct pln_module pln_module;

/* An empty module, held once by the caller, to be released before its engine;
 * release takes NULL. The engine is borrowed. Functions are 0 to count - 1, in
 * the order in which they were added. */
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
/* Changed copies, which share all else. The same module comes back, retained,
 * when nothing changes. Callers of a function whose signature changes are typed
 * again: PLN_ERR_TYPE, with the call, when one does not fit any more, and with
 * a Constructor that the module does not define, or with other fields. */
PLN_API pln_status pln_module_with(const pln_module *module, pln_symbol name,
                                   const pln_graph *function,
                                   pln_module **out) PLN_CHECKED;
/* Several at once, such as a function and those that call it. */
PLN_API pln_status pln_module_with_functions(const pln_module *module,
                                             uint32_t n,
                                             const pln_symbol *names,
                                             const pln_graph *const *functions,
                                             pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_module_without(const pln_module *module, pln_symbol name,
                                      pln_module **out) PLN_CHECKED;
/* Several at once: a copy shares the functions, but has a row for each. */
PLN_API pln_status pln_module_without_functions(const pln_module *module,
                                                uint32_t n,
                                                const pln_symbol *names,
                                                pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_module_with_attrs(const pln_module *module,
                                         pln_attrs attrs,
                                         pln_module **out) PLN_CHECKED;
/* A changed copy in which the symbolic dim `name` is `value` in every type.
 * PLN_ERR_NAME when no type has it. */
PLN_API pln_status pln_module_fix_dim(const pln_module *module, pln_slice name,
                                      int64_t value,
                                      pln_module **out) PLN_CHECKED;
/* A changed copy in which the parameter `name` of @main is a tensor of these
 * dims; -1 leaves one as it is, but a parameter of unknown rank takes all of
 * them. Symbols that the dims tell (N, or 2*N+1) have that size in every type.
 * PLN_ERR_NAME when there is no such parameter, PLN_ERR_TYPE when it cannot
 * have these dims. */
PLN_API pln_status pln_module_fix_shape(const pln_module *module,
                                        pln_slice name, uint32_t rank,
                                        const int64_t *dims,
                                        pln_module **out) PLN_CHECKED;
/* An algebraic data type: its name, its type variables (PLN_TYPE_VAR), its
 * constructors with the types of their fields. An extern one has no
 * constructors that are known. */
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
/* PLN_NONE when there is none of that name. The definition that has a
 * constructor of that name, and which of its constructors it is. */
PLN_API uint32_t pln_module_find_type(const pln_module *module,
                                      pln_symbol name);
PLN_API uint32_t pln_module_find_constructor(const pln_module *module,
                                             pln_symbol name, uint32_t *index);
/* A changed copy with a definition added or replaced; `data` is copied. */
PLN_API pln_status pln_module_with_type(const pln_module *module,
                                        const pln_type_def *data,
                                        pln_module **out) PLN_CHECKED;
/* The function type of a constructor: `fn [A](A, List[A]) -> List[A]`. */
PLN_API pln_status pln_module_constructor_type(const pln_module *module,
                                               uint32_t type, uint32_t index,
                                               pln_type *out) PLN_CHECKED;
/* The types that are not known yet, by unification: of unannotated functions,
 * recursive or not, of their callers, of matches, closures and cells. What is
 * known is not inferred again: the same module, or graph, comes back when there
 * is nothing to learn. PLN_ERR_TYPE on a contradiction, a free type variable, a
 * type of another kind than its place wants, or a complete Match that does not
 * cover every case, with the node. */
PLN_API pln_status pln_module_infer(const pln_module *module,
                                    pln_module **out) PLN_CHECKED;
/* Likewise an expression; `module` says what globals and constructors are, and
 * may be NULL. */
PLN_API pln_status pln_graph_infer(const pln_graph *graph,
                                   const pln_module *module,
                                   pln_graph **out) PLN_CHECKED;
/* What typing a function for other types of its parameters came to. */
#define PLN_TRIAL_MOST ((int64_t)1 << 24)
typedef struct pln_signature_result {
  pln_ref failed;     /* the first node that does not fit, or PLN_NONE */
  pln_ref empty;      /* the first that is empty where no parameter is, and
                       * that need not be; or PLN_NONE */
  bool results_empty; /* each result has no elements; when nothing failed */
  uint32_t n_typed;   /* nodes */
  /* Sizes, from 1 to PLN_TRIAL_MOST, that the node which failed, else the empty
   * one, works with: those of other operands than parameters reach come first.
   */
  uint32_t n_numbers;
  int64_t numbers[48];
  char message[256]; /* why it failed */
} pln_signature_result;
/* Types a function as if its n parameters had these types; nothing is made or
 * computed, and the function stays as it is. Nodes that are ill-typed as they
 * stand are passed over. params: of n, which of them the node that failed, else
 * the empty one, depends on. `module` may be NULL. PLN_ERR_ARGUMENT when the
 * graph is no function of n parameters. */
PLN_API pln_status pln_graph_infer_signature(const pln_graph *function,
                                             const pln_module *module,
                                             uint32_t n, const pln_type *types,
                                             pln_signature_result *out,
                                             bool *params) PLN_CHECKED;
/* A PatternTuple of the cases that no arm of a graph's Match covers: none when
 * it is complete. Each value that is not matched fits one of them; they say no
 * more than the arms ask. `module` (may be NULL) has the data types.
 * PLN_ERR_TYPE for a constructor that it does not define, PLN_ERR_LIMIT when
 * there are too many cases to look at. */
PLN_API pln_status pln_build_uncovered_cases(pln_builder *b,
                                             const pln_graph *graph,
                                             pln_ref match,
                                             const pln_module *module,
                                             pln_ref *out) PLN_CHECKED;
/* The kind of a type, PLN_ERR_TYPE when one of its parts is of another kind
 * than its place wants. `module` (may be NULL) knows the definitions. */
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
PLN_API pln_status pln_module_mismatch(const pln_module *a, const pln_module *b,
                                       bool map_free_vars,
                                       pln_mismatch *out) PLN_CHECKED;
/* Where constants over 1 KiB, too, are compared by what they hold: for a module
 * that was written and read back. */
PLN_API pln_status pln_module_mismatch_contents(const pln_module *a,
                                                const pln_module *b,
                                                bool map_free_vars,
                                                pln_mismatch *out) PLN_CHECKED;
PLN_API pln_status pln_module_hash(const pln_module *module,
                                   uint64_t *out) PLN_CHECKED;

/* ------------------------------------------------------------------- text */

/* Receives text as it is printed; a failure stops the printing. */
typedef pln_status (*pln_write_fn)(void *ud, const char *data, size_t size);

/* What stands in the metadata section for a constant that is no literal. */
typedef enum pln_print_constants {
  /* Its elements in base64; of one over 1 MiB that lies in a file, the file's
   * name and the place in it. Reads back equal. */
  PLN_CONSTANTS_COMPLETE = 0,
  /* Its elements in base64, however large it is, wherever it lies. */
  PLN_CONSTANTS_EMBEDDED,
  /* Of one over 64 elements: dtype, shape, and in place of the elements a hash
   * of them; of one over 1 MiB in a file, and of external data, whose elements
   * are not read for this, the file's base name and the place in it. The parser
   * refuses such a text and tells how to get the complete one. */
  PLN_CONSTANTS_BRIEF
} pln_print_constants;

/* How modules and expressions are printed; all zero is the complete text. */
typedef struct pln_print_options {
  size_t limit;      /* > 0: cut off after about that many bytes with "..." */
  uint8_t constants; /* pln_print_constants */
  /* No metadata section; a module's text has a comment in its place. */
  bool no_metadata;
  /* References to constants in the program's text show the constant's hash and
   * not its number, for comparing texts line by line. Not read back. */
  bool hash_references;
  /* Of a PrimExpr: behind declarations of the variables and buffers that it
   * uses. */
  bool declared;
} pln_print_options;

/* Relay text, as TVM 0.14 prints it; `options` may be NULL. The text ends in
 * its metadata section, when anything refers to that. A Function's attributes
 * "virtual_device" and "param_virtual_devices" (a list: an OBJECT or nothing
 * for each parameter) are written where Relay has devices. */
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

/* Reads Relay text: a module, which begins with #[version = "0.0.5"], or one
 * expression, whose free variables are told by `free_var %x: T;`. `source` is
 * what messages call the text; NULL: "text". Nodes know where they stood. What
 * is wrong is reported where it stands, up to 20 places in one reading;
 * PLN_ERR_FORMAT, or PLN_ERR_LIMIT when there were more. */
PLN_API pln_status pln_parse_module(pln_engine *engine, pln_slice text,
                                    const char *source,
                                    pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_parse_expr(pln_engine *engine, pln_slice text,
                                  const char *source,
                                  pln_graph **out) PLN_CHECKED;

/* What a text may refer to beside what stands in it. */
typedef struct pln_parse_options {
  /* Its functions and data types have their names in the text; a module that is
   * read has them as well, and defines none of them again. NULL: nothing. */
  const pln_module *module;
  /* Entries of meta[relay.Constant], numbered on behind those of the text's own
   * metadata section. */
  uint32_t n_constants;
  pln_tensor *const *constants;
  /* Other entries, as attributes hold them (PLN_ATTR_OBJECT): the text tells
   * the type key that each is numbered under. */
  uint32_t n_objects;
  const pln_slice *objects;
} pln_parse_options;
/* The same with what is given; NULL: nothing. */
PLN_API pln_status pln_parse_module_with(pln_engine *engine, pln_slice text,
                                         const char *source,
                                         const pln_parse_options *given,
                                         pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_parse_expr_with(pln_engine *engine, pln_slice text,
                                       const char *source,
                                       const pln_parse_options *given,
                                       pln_graph **out) PLN_CHECKED;

/* Reads one type, as pln_print_type writes it. `vars` are the type variables
 * that names in it may mean; another name that begins with a capital, or has
 * arguments in brackets, is that of a data type. */
PLN_API pln_status pln_parse_type_text(pln_engine *engine, pln_slice text,
                                       uint32_t n_vars, const pln_type *vars,
                                       pln_type *out) PLN_CHECKED;
/* The module in a file of Relay text, and a module into one, which is written
 * beside `path` and renamed. */
PLN_API pln_status pln_parse_file(pln_engine *engine, const char *path,
                                  pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_print_file(const pln_module *module,
                                  const char *path) PLN_CHECKED;
/* Pictures for Graphviz (the language of `dot`): functions and scopes are
 * clusters, arrows lead from what is used to its user. Of a sealed graph, all
 * of it. */
PLN_API pln_status pln_dot_module(const pln_module *module, pln_write_fn write,
                                  void *ud) PLN_CHECKED;
PLN_API pln_status pln_dot_graph(const pln_graph *graph, pln_write_fn write,
                                 void *ud) PLN_CHECKED;
/* JSON for programs: {"attrs": .., "types": [..], "functions": [{"name": ..,
 * "root": node, "scopes": [..], "nodes": [..]}]}. A node has "kind" and, where
 * it has them, "name", "op", "data", "index", "scope" (its first), "operands",
 * "attrs", "results", "effect", "type" (as text) and "span"; a scope has
 * "begin", "end", "owner", "parent", "result", "params". Of a graph: root,
 * scopes and nodes. */
PLN_API pln_status pln_json_module(const pln_module *module, pln_write_fn write,
                                   void *ud) PLN_CHECKED;
PLN_API pln_status pln_json_graph(const pln_graph *graph, pln_write_fn write,
                                  void *ud) PLN_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
