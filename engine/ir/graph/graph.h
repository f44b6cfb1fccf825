/* graph.h: the structs of graphs and builders. Public accessors are in
 * perilune.h; inside the engine the structs are read directly.
 *
 * A graph is three arrays: nodes, operands, scopes; and per node a symbolic
 * value, an origin and a digest of the inputs of its type inference. The
 * invariants of a sealed graph are listed in ir/README.md and checked by
 * analysis/verify.c. */

#ifndef PLN_IR_GRAPH_GRAPH_H
#define PLN_IR_GRAPH_GRAPH_H

#include "base/base.h"
#include "ir/op_info.h"
#include "ir/provenance/origin.h"
#include "ir/tensor/tensor.h"
#include "ir/type/type.h"

/* Flags of a node. */
enum {
  PLN_NODE_EFFECT = 3,            /* mask: pln_effect of its evaluation */
  PLN_NODE_CALL_EFFECT_SHIFT = 2, /* shift: pln_effect of calling it, if it is a
                                   * closure */
  PLN_NODE_CALL_EFFECT = 3 << 2,  /* mask of that */
  PLN_NODE_KEEP = 1 << 4,         /* an extra root */
  PLN_NODE_DROPPED = 1 << 5,      /* builder only: replaced, never laid out */
  PLN_NODE_PARAM = 1 << 6,        /* a Var that its scope binds as parameter */
  PLN_NODE_BOUND = 1 << 7 /* a Var that a let binds to a Function; has its call
                           * effect */
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
  uint32_t origin;      /* the file range of an ONNX graph */
} pln_scope_row;

struct pln_graph {
  pln_engine *engine;
  const pln_graph *parent_graph; /* in a child's view: the owner of the
                                  * arrays */
  uint32_t refs;
  uint32_t n_nodes, cap_nodes;
  uint32_t n_operands, cap_operands;
  uint32_t n_scopes, cap_scopes;
  uint32_t n_tensors, cap_tensors;
  pln_node *nodes;
  pln_ref *operands; /* non-NULL if there are nodes, even without operands */
  pln_scope_row *scopes;
  pln_tensor **tensors; /* retained */
  uint32_t cap_values, cap_origin, cap_typed_from;
  pln_value *values;    /* per node */
  uint32_t *origin;     /* per node: origin */
  uint32_t *typed_from; /* per node: PLN_TYPED_* or a digest (infer/digest.c) */
  pln_origins *origins; /* retained; shared with the graphs rewritten from this
                         * one */
  pln_ref root;
  uint32_t fixed_points; /* bits of passes known to leave it as it is */
  bool sealed;
};

/* The class of a kind (graph/kinds.def). */
typedef enum pln_kind_class {
  PLN_CLASS_EXPR,    /* Relay */
  PLN_CLASS_PATTERN, /* of a Match's arm */
  PLN_CLASS_PRIM,    /* TIR expression, evaluated where it is used */
  PLN_CLASS_STMT     /* TIR statement, evaluated in scope order */
} pln_kind_class;

typedef enum pln_payload {
  PLN_PAYLOAD_NONE,
  PLN_PAYLOAD_VAR,
  PLN_PAYLOAD_TENSOR,
  PLN_PAYLOAD_SYMBOL,
  PLN_PAYLOAD_OP, /* of Op, and of Call */
  PLN_PAYLOAD_INDEX,
  PLN_PAYLOAD_HINT,    /* a symbol that equality ignores */
  PLN_PAYLOAD_BITS,    /* 64 bits: the low half; the high one is in attrs */
  PLN_PAYLOAD_BUILTIN, /* a row of tir/builtins.def, 0: operand 0 is called */
  PLN_PAYLOAD_SCOPE    /* the first scope it owns */
} pln_payload;

typedef struct pln_kind_info {
  const char *name;
  pln_kind_class kind_class;
  int32_t operands; /* -1: any number */
  int32_t scopes;   /* -1: the number of arms in its attributes */
  pln_payload payload;
  bool has_attrs;
  bool shared;        /* Relay: a shared node differs from a duplicated one */
  const char *fields; /* names of operands and scopes, in Lua and in dumps */
  const char *doc;
} pln_kind_info;
extern const pln_kind_info pln_kinds[PLN_N_KINDS];

/* refs + at. NULL where there is no array, whose only place is 0. */
static inline const pln_ref *pln_refs_at(const pln_ref *refs, size_t at) {
  return refs ? refs + at : NULL;
}

static inline const pln_ref *pln_operands(const pln_graph *g,
                                          const pln_node *n) {
  return g->operands + n->first;
}
static inline pln_ref pln_operand(const pln_graph *g, pln_ref node,
                                  uint32_t i) {
  return g->operands[g->nodes[node].first + i];
}
/* Function, If, LetBlock, ...: the nodes of its scopes precede it. A Match
 * without arms owns no scope. */
static inline bool pln_owns(const pln_node *n) {
  return pln_kinds[n->kind].payload == PLN_PAYLOAD_SCOPE && n->data != PLN_NONE;
}
/* The callee of a Call of a function is its first operand; a Call of an
 * operator has none. */
static inline bool pln_has_callee(const pln_node *n) {
  return n->kind == PLN_CALL && !n->data && n->count > 0;
}
/* The effect of calling the closure that the node evaluates to. */
static inline pln_effect pln_node_call_effect(const pln_node *n) {
  return (pln_effect)((n->flags & PLN_NODE_CALL_EFFECT) >>
                      PLN_NODE_CALL_EFFECT_SHIFT);
}
/* True if the node is evaluated in its place even when unused. Never true for a
 * PrimExpr, which is evaluated where its statement uses it. */
static inline bool pln_is_effect_ordered(const pln_node *n) {
  pln_kind_class kind_class = pln_kinds[n->kind].kind_class;
  if (kind_class == PLN_CLASS_PRIM || kind_class == PLN_CLASS_STMT)
    return kind_class == PLN_CLASS_STMT;
  return n->kind == PLN_LET || n->kind == PLN_CLAUSE ||
         (n->flags & (PLN_NODE_EFFECT | PLN_NODE_KEEP));
}
/* True if the function came from an ONNX model, to which it may be written
 * back: calls that ONNX cannot express do not belong there. */
bool pln_function_is_onnx(const pln_graph *function);
/* True if nodes of that kind may be marked `keep` in Relay text. */
bool pln_can_be_kept(pln_kind kind);
/* Copies the value's call effect to the variable that a let binds. */
void pln_graph_bind_effect(pln_graph *graph, const pln_node *let);
/* A Call of a literal or let-bound function has that function's effect; for any
 * other callee the effect is unchanged. */
void pln_graph_call_effect(const pln_graph *graph, pln_node *call);
/* The effect of a call of an operator. */
pln_effect pln_op_effect(const pln_graph *graph, const pln_node *call);
/* Finds the innermost scope of nodes that are visited in ascending order. Start
 * with the first row that may contain one. */
typedef struct pln_scope_cursor {
  const pln_graph *graph;
  pln_scope next, here;
} pln_scope_cursor;
/* The innermost scope of `ref`. Rows are sorted by begin, so that a walk over
 * all nodes is linear. */
static inline pln_scope pln_scope_cursor_at(pln_scope_cursor *c, pln_ref ref) {
  const pln_scope_row *rows = c->graph->scopes;
  while (c->next < c->graph->n_scopes && rows[c->next].begin <= ref)
    c->here = c->next++;
  while (rows[c->here].end <= ref && rows[c->here].parent != PLN_NONE)
    c->here = rows[c->here].parent;
  return c->here;
}
/* The innermost scope of each node of a sealed graph. */
void pln_graph_node_scopes(const pln_graph *graph, pln_scope *node_scope);
/* That of one node of a sealed graph, in logarithmic time but for a walk back
 * over its own scope or up from scopes that ended, whichever is shorter. */
pln_scope pln_graph_scope_of(const pln_graph *graph, pln_ref node);
/* The first scope from `scope` on that begins at `node` or behind it; n_scopes:
 * there is none. In logarithmic time of the number of scopes before it. */
pln_scope pln_graph_scope_from(const pln_graph *graph, pln_scope scope,
                               pln_ref node);
/* The pattern of an arm of a Match; PLN_NONE: the scope is no arm. */
pln_ref pln_arm_pattern(const pln_graph *graph, pln_scope arm);
static inline pln_effect pln_flags_effect(uint8_t flags) {
  return (pln_effect)(flags & PLN_NODE_EFFECT);
}

/* How a node's type was determined. */
enum {
  PLN_TYPED_NEVER,   /* not by inference: the verifier infers it */
  PLN_TYPED_REFUSED, /* inference refused the node when a file was read (a
                      * warning); its type is unknown */
  PLN_TYPED_FIRST    /* from here on a digest: of the node's type, operator and
                      * attributes, the types and values of its operands, and
                      * its scopes' results and parameters */
};
/* infer/digest.c: records that the node's type is the inferred one. */
void pln_type_digest_record(pln_graph *graph, pln_ref node);
/* Infers the type and value of a node without changing the graph; `n` is a copy
 * of a node of the builder's graph and receives the type. */
pln_status pln_infer_type(const pln_builder *b, pln_node *n,
                          pln_value *value) PLN_CHECKED;
/* analysis/verify.c: verifies a function of a module, which must not have free
 * variables. */
pln_status pln_graph_verify_closed(const pln_graph *function) PLN_CHECKED;
/* PLN_ERR_TYPE when the data of a Match does not have the type of its patterns.
 * The builder leaves this check to InferType; code that replaces the data calls
 * it. */
pln_status pln_check_patterns(const pln_graph *graph,
                              const pln_node *match) PLN_CHECKED;
/* Verifies one node whose digest does not match: PLN_ERR_TYPE when inference
 * refuses it, or infers a contradicting type. */
pln_status pln_graph_check_type(const pln_graph *graph,
                                pln_ref node) PLN_CHECKED;

/* An empty graph with one reference; freed by pln_graph_release. */
pln_status pln_graph_new(pln_engine *engine, pln_graph **out) PLN_CHECKED;
/* A node-for-node copy that may still be modified by inference. */
pln_status pln_graph_copy(const pln_graph *graph, pln_graph **out) PLN_CHECKED;

/* The call `node` of an operator, as inference functions and kernels read it;
 * operands are borrowed until the graph grows. */
pln_infer pln_infer_of(const pln_graph *graph, pln_ref node);
/* Infers one call of an operator. */
pln_status pln_infer_call(pln_infer *call) PLN_CHECKED;
/* The join of two types, for the result of an If: equal parts are kept,
 * different dims become unknown, different dtypes are a *conflict. */
pln_status pln_type_join(pln_engine *engine, pln_type a, pln_type b,
                         pln_type *out, bool *conflict) PLN_CHECKED;

/* ----------------------------------------------------------------- builder */

/* Free building (scripts): nodes float; a Function made by pln_build_bind has
 * its parameters as operands until layout. Scoped building (files, passes):
 * each node has a scope, and its sequence number is its index. */
struct pln_builder {
  pln_engine *engine;
  pln_graph *graph;      /* nodes in order of appending; not sealed */
  pln_scope *node_scope; /* per node: its scope; PLN_NONE: floating */
  uint32_t cap_node_scope;
  uint32_t room;    /* nodes that all arrays have room for */
  uint8_t *effects; /* per scope: the strongest effect inside */
  uint32_t cap_effects;
  pln_scope *open; /* innermost last; scope 0 is always open */
  uint32_t n_open, cap_open;
  pln_scope in;       /* pln_build_in, or PLN_NONE */
  bool scoped;        /* a scope was opened, or an importer requested it */
  bool lenient;       /* file readers: ill-typed calls are warnings */
  uint32_t inferring; /* nodes being typed: a callback may run, which must not
                       * seal this builder */
  uint32_t origin;    /* origin of the following nodes */
  pln_idmap *vars;    /* Var identity -> node + 1; made when first needed */
  pln_ref n_noted;    /* number of nodes entered in `vars` */
  pln_idmap *early;   /* Vars used before they have a type; or NULL */
  const pln_module *module;        /* gives the types of GlobalVars; or NULL */
  struct pln_import_memo *imports; /* import.c */
  struct {
    pln_origins *from; /* retained */
    pln_idmap *map;
  } taken; /* graph/import_origin.c: copied origins of another table */
  /* layout_reachable.c: per node, per scope: 1 + its number in the graph being
   * sealed; 0 between two seals. */
  uint32_t *marks, *scope_marks;
  uint32_t cap_marks, cap_scope_marks;
};

/* Infers type, value and effect of an appended node from its operands and
 * scopes (infer/infer.c). */
pln_status pln_builder_infer(pln_builder *b, pln_ref node) PLN_CHECKED;
/* Appends a node without inference to the current scope. `operands` may point
 * into the builder's own graph. */
pln_status pln_builder_append(pln_builder *b, const pln_node *node, uint32_t n,
                              const pln_ref *operands,
                              pln_ref *out) PLN_CHECKED;
/* An image of a node that may differ from it in what the inference of its users
 * reads. Of nodes whose images are all the same to it, the copies keep type,
 * value and effect. */
#define PLN_IMAGE_MAY_DIFFER 0x80000000u
/* Appends a copy of a node of a sealed graph, which owns no scope. `images`: by
 * node of that graph a node here, with that bit, or PLN_NONE. *out is PLN_NONE
 * if an operand's image has the bit. */
pln_status pln_builder_copy(pln_builder *b, const pln_graph *from, pln_ref node,
                            const pln_ref *images, pln_ref *out) PLN_CHECKED;
/* A constant of `n` int64 values: a vector, or with rank 0 a scalar. */
pln_status pln_build_int64s(pln_builder *b, uint32_t rank, uint32_t n,
                            const int64_t *values, pln_ref *out) PLN_CHECKED;
/* Appends and infers a node; removes it again when it is ill-typed. */
pln_status pln_builder_add(pln_builder *b, const pln_node *node, uint32_t n,
                           const pln_ref *operands, pln_ref *out) PLN_CHECKED;
/* Removes the newest node, or excludes an older one from layout. */
void pln_builder_drop(pln_builder *b, pln_ref node);
/* Releases the tensor of a constant that nothing uses any more, so that a long
 * chain of folded nodes does not accumulate memory. */
void pln_builder_forget(pln_builder *b, pln_ref constant);
/* In free building: the node of a variable with that type (0: unknown), or
 * PLN_NONE. */
pln_ref pln_builder_free_var(const pln_builder *builder, uint32_t var,
                             pln_type type);
/* A Var node of that identity in an open scope, or PLN_NONE. */
pln_status pln_builder_find_var(pln_builder *b, uint32_t var,
                                pln_ref *out) PLN_CHECKED;
/* The scope of the next node; PLN_NONE in free building. */
pln_scope pln_builder_current_scope(const pln_builder *b);
/* Adds a tensor to the graph; retains it. */
pln_status pln_graph_add_tensor(pln_graph *graph, const pln_tensor *tensor,
                                uint32_t *out) PLN_CHECKED;
/* Reserves room for `nodes`, `operands`, `scopes` more. */
pln_status pln_builder_reserve(pln_builder *b, size_t nodes, size_t operands,
                               size_t scopes) PLN_CHECKED;
/* Adds a scope row below `parent` with its effect summary; does not open it. */
pln_status pln_builder_add_scope(pln_builder *b, pln_scope parent,
                                 pln_scope *out) PLN_CHECKED;
/* Seals in place: moves the builder's arrays into a sealed graph (layout.c). */
pln_status pln_layout_scoped(pln_builder *b, pln_ref root,
                             pln_graph **out) PLN_CHECKED;
pln_status pln_layout_free(pln_builder *b, pln_ref root,
                           pln_graph **out) PLN_CHECKED;
/* graph/layout/reorder.c: a copy with the nodes in that order: operands before
 * users, nodes of scopes before their owner, parameters first, effects as they
 * were. PLN_ERR_INVALID: it is not such an order. */
pln_status pln_graph_reorder(const pln_graph *graph, const pln_ref *order,
                             pln_graph **out) PLN_CHECKED;
/* graph/import_origin.c: the origin of a node of another graph, copied to the
 * builder's own table. Copies are memoised until forgotten. */
pln_status pln_builder_import_origin(pln_builder *b, const pln_graph *from,
                                     pln_ref ref, uint32_t *out) PLN_CHECKED;
pln_status pln_builder_import_origin_row(pln_builder *b, pln_origins *from,
                                         uint32_t origin,
                                         uint32_t *out) PLN_CHECKED;
void pln_builder_forget_imported_origins(pln_builder *b);
/* Frees the builder's memos. */
void pln_import_free(pln_builder *b);
/* Sets `image` as the copy of a node of another graph. */
pln_status pln_import_seed(pln_builder *b, const pln_graph *graph, pln_ref node,
                           pln_ref image) PLN_CHECKED;

/* For importers: scoped building with ill-typed calls as warnings; sets the
 * origin of the following nodes. */
void pln_builder_lenient(pln_builder *b);
void pln_builder_origin(pln_builder *b, uint32_t origin);
/* The builder's table of origins. */
pln_origins *pln_builder_origins(pln_builder *b);
/* Gives `node` the meet of its declared and inferred types. A declared type
 * that contradicts the inferred one is a warning and is not used; export keeps
 * the file's bytes. */
pln_status pln_builder_declare(pln_builder *b, pln_ref node,
                               pln_type declared) PLN_CHECKED;
/* The same for result `index` of a tuple call. */
pln_status pln_builder_declare_result(pln_builder *b, pln_ref node,
                                      uint32_t index,
                                      pln_type declared) PLN_CHECKED;
/* Sets the file range of an ONNX graph's scope. */
void pln_builder_scope_origin(pln_builder *b, pln_scope scope, uint32_t origin);
/* pln_build_attr_order with a list of names. */
pln_status pln_builder_attr_order(pln_builder *b, pln_ref node,
                                  pln_attrs order) PLN_CHECKED;
/* Types of GlobalVars are looked up in `module` (borrowed). */
void pln_builder_module(pln_builder *b, const pln_module *module);

/* Scope attribute of a function with attributes, as ONNX's local functions
 * have: their names, and a dictionary of default values. */
#define PLN_ATTRIBUTES_ATTR "attributes"
#define PLN_ATTRIBUTE_DEFAULTS_ATTR "attribute_defaults"
/* *given: the attributes of a call of `function`, completed by its defaults. */
pln_status pln_function_given(const pln_graph *function,
                              pln_attrs *given) PLN_CHECKED;

/* rewrite/keep_type.c */
/* Refines the type of `node`, a new node that replaces one of type `type`, to
 * what both types say. Variables keep their type, which belongs to a signature;
 * a contradicting type is ignored. */
pln_status pln_keep_type(pln_rewrite *rw, pln_ref node,
                         pln_type type) PLN_CHECKED;
/* The same for a node of the old graph, and only if its rank is unknown. */
pln_status pln_keep_rank(pln_rewrite *rw, pln_ref node,
                         pln_type type) PLN_CHECKED;
/* graph/import_origin.c: garbage-collects the origin table when it has many
 * more steps than the graph has nodes. The new table has the steps that nodes
 * need, and the newest ones. */
pln_status pln_origins_trim(pln_graph *graph) PLN_CHECKED;

/* ---------------------------------------------------------------------- TIR
 *
 * What the builder, import and sealing know of TIR nodes; the rest is in
 * tir/. */

static inline bool pln_is_prim(const pln_node *n) {
  return pln_kinds[n->kind].kind_class == PLN_CLASS_PRIM;
}
static inline bool pln_is_stmt(const pln_node *n) {
  return pln_kinds[n->kind].kind_class == PLN_CLASS_STMT;
}
/* A statement or a PrimFunc: laid out by tir/layout.c. */
static inline bool pln_is_tir(const pln_node *n) {
  return pln_is_stmt(n) || n->kind == PLN_PRIM_FUNC;
}
/* Seals a floating statement, PrimFunc or PrimExpr. */
pln_status pln_layout_tir(const pln_builder *b, pln_ref root,
                          pln_graph **out) PLN_CHECKED;
/* pln_buffer_find: the equal Buffer of a free builder, or PLN_NONE. The other
 * function records an appended one (tir/buffer_identity.c). */
pln_ref pln_buffer_find(const pln_builder *b, const pln_node *n,
                        const pln_ref *operands);
pln_status pln_buffer_remember(pln_builder *b, pln_ref buffer) PLN_CHECKED;

#endif
