/* graph.h: what graphs and builders are made of. Public readers are in
 * perilune.h; inside the engine the structs are read directly.
 *
 * A graph is three arrays: nodes, operands, scopes; and per node a symbolic
 * value, an origin and a digest of what its type was inferred from. The rules
 * that hold in a sealed graph are listed in ir/README.md and checked by
 * verify.c. */

#ifndef PLN_IR_GRAPH_GRAPH_H
#define PLN_IR_GRAPH_GRAPH_H

#include "base/base.h"
#include "ir/op_info.h"
#include "ir/provenance/origin.h"
#include "ir/tensor/tensor.h"
#include "ir/type/type.h"

/* Flags of a node. */
enum {
  PLN_NODE_EFFECT = 3,            /* mask: pln_effect of evaluating it */
  PLN_NODE_CALL_EFFECT_SHIFT = 2, /* pln_effect of calling the closure it is */
  PLN_NODE_CALL_EFFECT = 3 << 2,  /* mask of the same */
  PLN_NODE_KEEP = 1 << 4,         /* an extra root */
  PLN_NODE_DROPPED = 1 << 5,      /* builder only: replaced, never laid out */
  PLN_NODE_PARAM = 1 << 6,        /* a Var that its scope binds as parameter */
  PLN_NODE_BOUND = 1 << 7 /* a Var that a let binds to a Function: it has its
                             latent effect */
};

typedef struct pln_node {
  uint8_t kind;     /* pln_kind */
  uint8_t flags;    /* PLN_NODE_* */
  uint16_t results; /* Call, If: 0 a plain value, k a tuple of k results */
  /* Call: operator, 0 when operand 0 is the callee. Op: operator. Var:
   * identity. Constant: index into tensors. GlobalVar, Constructor: symbol.
   * TupleGetItem: index. Owners: their first scope. */
  uint32_t data;
  /* Call, Function, If, Match: attributes. Var: symbol of its name. */
  uint32_t attrs;
  uint32_t first; /* operands are operands[first .. first + count) */
  uint32_t count;
  pln_type type;
} pln_node;
_Static_assert(sizeof(pln_node) <= 24, "a node is at most 24 bytes");

typedef struct pln_scope_row {
  pln_ref begin; /* nodes of the scope and those nested in it */
  pln_ref end;
  pln_ref owner;    /* PLN_NONE for scope 0 */
  pln_scope parent; /* PLN_NONE for scope 0 */
  pln_scope next;   /* the next scope of the same owner, or PLN_NONE */
  pln_ref result;
  uint32_t n_params;    /* the first nodes of the scope */
  pln_attrs attrs;      /* "name", "output_names", ... of an ONNX graph */
  pln_type type_params; /* of a Function: a tuple of type variables, or 0 */
  uint32_t origin;      /* the slice an ONNX graph came from */
} pln_scope_row;

struct pln_graph {
  pln_engine *engine;
  const pln_graph *parent_graph; /* of a child's view: whose arrays these are */
  uint32_t refs;
  uint32_t n_nodes, cap_nodes;
  uint32_t n_operands, cap_operands;
  uint32_t n_scopes, cap_scopes;
  uint32_t n_tensors, cap_tensors;
  pln_node *nodes;
  pln_ref *operands; /* an array where there is a node, even without operands */
  pln_scope_row *scopes;
  pln_tensor **tensors; /* retained */
  uint32_t cap_values, cap_origin, cap_typed_from;
  pln_value *values;    /* a node */
  uint32_t *origin;     /* a node: row of origins */
  uint32_t *typed_from; /* a node: PLN_TYPED_* or a digest (infer/digest.c) */
  pln_origins *origins; /* retained; shared along a graph's descent */
  pln_ref root;
  bool sealed;
};

/* How a kind is made up (graph/kinds.def). */
typedef enum pln_kind_class {
  PLN_CLASS_EXPR,    /* Relay */
  PLN_CLASS_PATTERN, /* of a Match's arm */
  PLN_CLASS_PRIM,    /* loop level, evaluated where it is used */
  PLN_CLASS_STMT     /* loop level, scheduled */
} pln_kind_class;

typedef enum pln_payload {
  PLN_PAYLOAD_NONE,
  PLN_PAYLOAD_VAR,
  PLN_PAYLOAD_TENSOR,
  PLN_PAYLOAD_SYMBOL,
  PLN_PAYLOAD_OP, /* of Op, and of Call */
  PLN_PAYLOAD_INDEX,
  PLN_PAYLOAD_HINT,    /* a symbol that equality passes over */
  PLN_PAYLOAD_BITS,    /* 64 bits: the low half; the high one is in attrs */
  PLN_PAYLOAD_BUILTIN, /* a row of tir/builtins.def, 0: operand 0 is called */
  PLN_PAYLOAD_SCOPE    /* the first scope it owns */
} pln_payload;

typedef struct pln_kind_info {
  const char *name;
  pln_kind_class kind_class;
  int32_t operands; /* -1: any number */
  int32_t scopes;   /* -1: the number of arms its attributes tell */
  pln_payload payload;
  bool has_attrs;
  bool shared; /* Relay: a graph node; sharing it differs from repeating it */
  const char *fields; /* names of operands and scopes, in Lua and in dumps */
  const char *doc;
} pln_kind_info;
extern const pln_kind_info pln_kinds[PLN_N_KINDS];

static inline const pln_ref *pln_operands(const pln_graph *g,
                                          const pln_node *n) {
  return g->operands + n->first;
}
static inline pln_ref pln_operand(const pln_graph *g, pln_ref node,
                                  uint32_t i) {
  return g->operands[g->nodes[node].first + i];
}
/* Function, If, LetBlock, ...: its scopes' nodes stand before it. A Match
 * without arms owns none. */
static inline bool pln_owns(const pln_node *n) {
  return pln_kinds[n->kind].payload == PLN_PAYLOAD_SCOPE && n->data != PLN_NONE;
}
/* The callee that a Call computes is its first operand; a Call of an operator
 * has none. */
static inline bool pln_has_callee(const pln_node *n) {
  return n->kind == PLN_CALL && !n->data && n->count > 0;
}
/* The effect of calling the closure that the node is. */
static inline pln_effect pln_node_call_effect(const pln_node *n) {
  return (pln_effect)((n->flags & PLN_NODE_CALL_EFFECT) >>
                      PLN_NODE_CALL_EFFECT_SHIFT);
}
/* Evaluated whether it is used or not, in its place. A PrimExpr never is: it is
 * evaluated where its statement uses it. */
static inline bool pln_is_effect_ordered(const pln_node *n) {
  pln_kind_class kind_class = pln_kinds[n->kind].kind_class;
  if (kind_class == PLN_CLASS_PRIM || kind_class == PLN_CLASS_STMT)
    return kind_class == PLN_CLASS_STMT;
  return n->kind == PLN_LET || n->kind == PLN_CLAUSE ||
         (n->flags & (PLN_NODE_EFFECT | PLN_NODE_KEEP));
}
/* Whether nodes of that kind may be extra roots where Relay text says so. */
bool pln_can_be_kept(pln_kind kind);
/* What a variable that a let binds says of the value's calls. */
void pln_graph_bind_effect(pln_graph *graph, const pln_node *let);
/* A Call of a function that is written out, or that a let binds, does what is
 * in that function; of any other callee nothing new is known. */
void pln_graph_call_effect(const pln_graph *graph, pln_node *call);
/* The effect of a call of an operator. */
pln_effect pln_op_effect(const pln_graph *graph, const pln_node *call);
/* The innermost scope of each node of a sealed graph. */
void pln_graph_node_scopes(const pln_graph *graph, pln_scope *node_scope);
/* That of one node of a sealed graph, in logarithmic time but for the scopes
 * that ended before it. */
pln_scope pln_graph_scope_of(const pln_graph *graph, pln_ref node);
static inline pln_effect pln_flags_effect(uint8_t flags) {
  return (pln_effect)(flags & PLN_NODE_EFFECT);
}

/* What a node's type was inferred from. */
enum {
  PLN_TYPED_NEVER,   /* it was not inferred: the verifier asks */
  PLN_TYPED_REFUSED, /* inference refused the node in a file, which was
                        accepted with a warning; its type is not known */
  PLN_TYPED_FIRST    /* from here on: a digest of the node's own type, operator
                        and attributes, and of the types and values of its
                        operands, of its scopes' results and parameters */
};
/* typed_from.c. The node's type is what inference says of it as it stands. */
void pln_type_digest_record(pln_graph *graph, pln_ref node);
/* What inference says of the type and value of a node, which is not changed but
 * for *n: `n` is a copy of one of the builder's graph. */
pln_status pln_infer_type(const pln_builder *b, pln_node *n,
                          pln_value *value) PLN_CHECKED;
/* analysis/verify.c: the verifier, on what is a function of a module: no
 * variable is free in it. */
pln_status pln_graph_verify_closed(const pln_graph *function) PLN_CHECKED;
/* PLN_ERR_TYPE when the data of a Match is not what its patterns are for. The
 * builder leaves that to InferType; who changes the data asks. */
pln_status pln_check_patterns(const pln_graph *graph,
                              const pln_node *match) PLN_CHECKED;
/* The verifier, on one node whose operands are not what it was typed from:
 * PLN_ERR_TYPE when inference refuses it, or finds a type that contradicts
 * its own. */
pln_status pln_graph_check_type(const pln_graph *graph,
                                pln_ref node) PLN_CHECKED;

/* An empty graph with one reference; freed by pln_graph_release. */
pln_status pln_graph_new(pln_engine *engine, pln_graph **out) PLN_CHECKED;
/* A graph of its own, node for node, that may still be typed. */
pln_status pln_graph_copy(const pln_graph *graph, pln_graph **out) PLN_CHECKED;

/* Types one call of an operator. */
pln_status pln_infer_call(pln_infer *call) PLN_CHECKED;
/* What both types say together: equal parts stay, different dims become
 * unknown, different dtypes are *conflict. The type of an If. */
pln_status pln_type_join(pln_engine *engine, pln_type a, pln_type b,
                         pln_type *out, bool *conflict) PLN_CHECKED;

/* ----------------------------------------------------------------- builder */

/* Free building (scripts): nodes float; a Function made by pln_build_bind has
 * its parameters as operands until it is laid out. Scoped building (files,
 * passes): each node has a home, and its sequence number is its index. */
struct pln_builder {
  pln_engine *engine;
  pln_graph *graph;      /* nodes in order of appending; not sealed */
  pln_scope *node_scope; /* a node: the scope it belongs to; PLN_NONE floats */
  uint32_t cap_node_scope;
  uint8_t *effects; /* a scope: the strongest effect inside */
  uint32_t cap_effects;
  pln_scope *open; /* innermost last; scope 0 is always open */
  uint32_t n_open, cap_open;
  pln_scope in;     /* pln_build_in, or PLN_NONE */
  bool scoped;      /* a scope was opened, or an importer said so */
  bool lenient;     /* files: ill-typed calls are warnings */
  uint32_t origin;  /* of the nodes to come */
  pln_idmap *vars;  /* Var identity -> node + 1; made when first needed */
  pln_ref n_noted;  /* nodes that were looked at for `vars` */
  pln_idmap *early; /* Vars without a type that something uses; or NULL */
  const pln_module *module;        /* types of GlobalVars, or NULL */
  struct pln_import_memo *imports; /* import.c */
  struct {
    pln_origins *from; /* retained */
    pln_idmap *map;
  } taken; /* graph/import_origin.c: what was taken from another table */
  /* layout_reachable.c: a node, a scope: 1 + its number in what is being
   * sealed; 0 between two seals. */
  uint32_t *marks, *scope_marks;
  uint32_t cap_marks, cap_scope_marks;
};

/* Sets type, value and effect of an appended node from its operands and
 * scopes (infer/infer.c). */
pln_status pln_builder_infer(pln_builder *b, pln_ref node) PLN_CHECKED;
/* Appends a node as it is, in the scope where the next node goes: no typing.
 * `operands` may point into the builder's own graph. */
pln_status pln_builder_append(pln_builder *b, const pln_node *node, uint32_t n,
                              const pln_ref *operands,
                              pln_ref *out) PLN_CHECKED;
/* Appends and types; takes the node back when it is ill-typed. */
pln_status pln_builder_add(pln_builder *b, const pln_node *node, uint32_t n,
                           const pln_ref *operands, pln_ref *out) PLN_CHECKED;
/* Takes back the newest node, or marks an older one as never laid out. */
void pln_builder_drop(pln_builder *b, pln_ref node);
/* Releases the tensor of a constant that nothing uses any more, so that a long
 * chain of folded nodes does not pile up. */
void pln_builder_forget(pln_builder *b, pln_ref constant);
/* The node that stands for an identity of that type (0: not known) while
 * building freely, or PLN_NONE. */
pln_ref pln_builder_free_var(const pln_builder *builder, uint32_t var,
                             pln_type type);
/* A Var of that identity in a scope that is open, or PLN_NONE. */
pln_status pln_builder_find_var(pln_builder *b, uint32_t var,
                                pln_ref *out) PLN_CHECKED;
/* The scope where the next node goes; PLN_NONE while building freely. */
pln_scope pln_builder_current_scope(const pln_builder *b);
/* Adds a tensor to the graph; retains it. */
pln_status pln_graph_add_tensor(pln_graph *graph, const pln_tensor *tensor,
                                uint32_t *out) PLN_CHECKED;
/* Room for `nodes`, `operands`, `scopes` more. */
pln_status pln_builder_reserve(pln_builder *b, size_t nodes, size_t operands,
                               size_t scopes) PLN_CHECKED;
/* A new scope row below `parent`, and its effect summary; opens nothing. */
pln_status pln_builder_add_scope(pln_builder *b, pln_scope parent,
                                 pln_scope *out) PLN_CHECKED;
/* Moves the homes, the arrays and the graph into a sealed one (layout.c). */
pln_status pln_layout_scoped(pln_builder *b, pln_ref root,
                             pln_graph **out) PLN_CHECKED;
pln_status pln_layout_free(pln_builder *b, pln_ref root,
                           pln_graph **out) PLN_CHECKED;
/* graph/import_origin.c: the origin of a node of another graph, in the
 * builder's own table. The copies are remembered until they are forgotten. */
pln_status pln_builder_import_origin(pln_builder *b, const pln_graph *from,
                                     pln_ref ref, uint32_t *out) PLN_CHECKED;
pln_status pln_builder_import_origin_row(pln_builder *b, pln_origins *from,
                                         uint32_t origin,
                                         uint32_t *out) PLN_CHECKED;
void pln_builder_forget_imported_origins(pln_builder *b);
/* Frees the builder's memos. */
void pln_import_free(pln_builder *b);
/* From here on `image` is the copy of that node of another graph. */
pln_status pln_import_seed(pln_builder *b, const pln_graph *graph, pln_ref node,
                           pln_ref image) PLN_CHECKED;

/* For importers. Scoped building with ill-typed calls as warnings; what
 * follows has this origin. */
void pln_builder_lenient(pln_builder *b);
void pln_builder_origin(pln_builder *b, uint32_t origin);
/* The table that origins of this builder's nodes index. */
pln_origins *pln_builder_origins(pln_builder *b);
/* Gives `node` the declared type met with the inferred one. A declared type
 * that contradicts what is inferred, which is a warning, or a node that
 * inference refused, is left to whoever keeps the file: nothing is computed
 * from it. */
pln_status pln_builder_declare(pln_builder *b, pln_ref node,
                               pln_type declared) PLN_CHECKED;
/* Result `index` of a tuple call, likewise. */
pln_status pln_builder_declare_result(pln_builder *b, pln_ref node,
                                      uint32_t index,
                                      pln_type declared) PLN_CHECKED;
/* The slice an ONNX graph came from. */
void pln_builder_scope_origin(pln_builder *b, pln_scope scope, uint32_t origin);
/* pln_build_attr_order with a list that has nothing but names. */
pln_status pln_builder_attr_order(pln_builder *b, pln_ref node,
                                  pln_attrs order) PLN_CHECKED;
/* Types of GlobalVars are looked up in `module` (borrowed). */
void pln_builder_module(pln_builder *b, const pln_module *module);

/* Of the scope of a function with attributes, as ONNX's local functions have
 * them: their names, and a dictionary of values for those that a call may leave
 * out. */
#define PLN_ATTRIBUTES_ATTR "attributes"
#define PLN_ATTRIBUTE_DEFAULTS_ATTR "attribute_defaults"
/* *given, the attributes of a call of `function`, together with the values of
 * those that it leaves out. */
pln_status pln_function_given(const pln_graph *function,
                              pln_attrs *given) PLN_CHECKED;

#endif
