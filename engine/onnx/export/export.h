/* export.h: the state of one export, shared by its files: export.c (files and
 * the model), graph.c (graphs), graph_fields.c (their fields but
 * nodes), names.c, node_names.c, node.c,
 * export_tensor.c.
 *
 * Nested graphs are worked off a stack of tasks; each does a piece and pushes
 * what is to follow. */

#ifndef PLN_ONNX_EXPORT_EXPORT_H
#define PLN_ONNX_EXPORT_EXPORT_H

#include "ir/graph/module.h"
#include "onnx/export/encode.h"
#include "onnx/import/decode.h"
#include "onnx/node.h"
#include "onnx/op_map.h"
#include "onnx/opset/model_opset.h"
#include "onnx/schema.h"
#include "onnx/scoped_names.h"

typedef enum pln_task_kind {
  PLN_TASK_GRAPH,    /* a scope as a message `tag` */
  PLN_TASK_NODES,    /* nodes of a scope from `at` on */
  PLN_TASK_FIELDS,   /* fields of a scope behind its nodes */
  PLN_TASK_BEGIN,    /* opens the message `tag` */
  PLN_TASK_END,      /* closes the innermost message */
  PLN_TASK_END_NODE, /* closes a node; takes its old bytes when it is as it
                        was: `fields`, and row `at` of ex->starts */
  PLN_TASK_COPY,     /* fields as they stand in the file */
  PLN_TASK_ATTR,     /* entry `at` of the attributes `tag` */
  PLN_TASK_TEXT,     /* a field `tag` with these bytes */
  PLN_TASK_INT       /* a field `tag` with the number `at` */
} pln_task_kind;

typedef struct pln_task {
  pln_task_kind kind;
  uint32_t tag;
  pln_scope scope;
  pln_ref at;
  pln_scope child; /* next scope inside `scope` at or after `at` */
  pln_message fields;
} pln_task;

/* A graph that is open. */
typedef struct pln_export_frame {
  pln_scope scope;
  bool is_function;
  pln_message source; /* what it came from, or no data */
  uint32_t mark;      /* rows of `used` when it began */
  uint32_t outputs;   /* where its output names are in ex->outputs */
  uint32_t n_outputs;
  uint64_t changes;   /* ex->changes when it began */
  uint32_t n_nodes;   /* written so far ... */
  uint64_t last_node; /* ... and where the last of them is in the source */
} pln_export_frame;

/* Where a node with nested graphs begins, to go back when nothing changed. */
typedef struct pln_node_start {
  pln_rope_mark mark;
  uint64_t changes;
} pln_node_start;

/* The name of a graph's output; `same` when it is the value's own, else an
 * Identity makes it. */
typedef struct pln_export_output {
  pln_slice name;
  pln_ref node;
  bool same;
} pln_export_output;

/* External data being collected: a second file. */
typedef struct pln_data_file {
  const char *name; /* of OUT.data, without its folder */
  size_t threshold;
  pln_rope rope;
} pln_data_file;

/* Whether an operator has another version here than in the file, which differs
 * in more than types; `schema` is the one here then. */
typedef struct pln_opset_restated_call {
  bool known, restated;
  const pln_onnx_schema *schema;
} pln_opset_restated_call;

/* A domain that nodes use, and the least version that has them all. */
typedef struct pln_domain_use {
  pln_symbol domain;
  int64_t version;
} pln_domain_use;

typedef struct pln_export {
  pln_engine *engine;
  const pln_module *module;
  int64_t wanted_opset;   /* to convert it to first; 0: its own */
  pln_module *conforming; /* the same, owned, once it has begun */
  pln_decoder decoder;
  pln_rope *rope;
  pln_data_file *data;   /* NULL: data stays where it is, or inline */
  const char *directory; /* of the file being written; NULL: in memory */
  bool moved;            /* external data was met that lies elsewhere */
  bool embeds;           /* external data goes into the model */
  pln_attrs opsets;      /* of the model */
  pln_value_info value_info;
  int64_t ir_version;
  bool constant_inputs;  /* IR < 4: initializers must be inputs as well */
  pln_arena names_arena; /* names made here */
  uint64_t n_made;       /* to number them */
  /* Files of external data, kept open until all is written. */
  pln_idmap *file_rows; /* (directory, location) -> row of files + 1 */
  pln_file **files;
  uint32_t n_files, cap_files;

  /* Of the function at hand. */
  const pln_graph *g;
  int64_t opset; /* of ai.onnx, that it is written in */
  pln_file_opsets source;
  int64_t source_opset; /* that its nodes had in their file; 0: in none */
  bool restated;        /* both differ: versions of operators may */
  pln_opset_restated_call
      *restatements;       /* of each operator; made when first needed */
  pln_domain_use *domains; /* of nodes that are not the file's own */
  uint32_t n_domains, cap_domains;
  pln_symbol function;
  uint32_t *slots;  /* a node: where its name is, or PLN_NONE */
  pln_slice *names; /* a slot; no data: not named yet */
  uint32_t n_slots;
  size_t names_room;           /* slots in `names` */
  pln_scoped_names node_names; /* names of nodes -> the node that has it ... */
  bool node_names_known;       /* ... once one had to be looked for */
  uint8_t *uses;               /* a node: whether anything uses it */
  pln_scope *node_scope;       /* a node of an open graph: its scope */
  pln_scope *child, *sibling;  /* a scope's first inner scope, and next one */
  pln_scoped_names used;       /* names of the open graphs -> node */
  pln_ref at;                  /* the place of diagnostics, or PLN_NONE */
  uint64_t budget;             /* of looks for captures */
  uint64_t changes;            /* differences from the files seen so far */

  pln_task *tasks;
  uint32_t n_tasks, cap_tasks;
  pln_open_message *nests;
  uint32_t n_nests, cap_nests;
  pln_node_start *starts;
  uint32_t n_starts, cap_starts;
  pln_export_frame *frames;
  uint32_t n_frames, cap_frames;
  pln_export_output *outputs;
  uint32_t n_outputs, cap_outputs;
  pln_node_lists lists;
  pln_slice *inputs; /* names of the operands of the node at hand */
  uint32_t n_inputs, cap_inputs;
  pln_slice *results; /* names of its results */
  uint32_t n_results, cap_results;
} pln_export;

/* Where a node came from: the nearest origin with a slice; NULL when none. */
const pln_origin *pln_export_origin(const pln_export *ex, pln_ref node);
/* Whether it is a field of the message that the innermost open graph came from,
 * and not of a graph in it or around it. */
bool pln_export_is_own(const pln_export *ex, const pln_origin *origin);

/* export_graph.c. */
pln_status pln_export_push(pln_export *ex, pln_task task) PLN_CHECKED;
/* Puts the tasks pushed since `from` in the order of their pushing. */
void pln_export_turn(pln_export *ex, uint32_t from);
/* Opens a message that PLN_TASK_END closes. */
pln_status pln_export_begin(pln_export *ex, uint32_t tag) PLN_CHECKED;
/* One function of the module as the message `tag`. */
pln_status pln_export_function(pln_export *ex, pln_symbol name,
                               const pln_graph *graph,
                               uint32_t tag) PLN_CHECKED;
void pln_export_free(pln_export *ex);
/* Whether the node is written as an entry of a list (of initializers, or of
 * what stands for one that no tensor can hold), not as a node. */
bool pln_export_is_entry(const pln_export *ex, pln_ref node);
/* Whether a Constant is written as an initializer. */
bool pln_export_is_initializer(const pln_export *ex, pln_ref node);

/* export_names.c. The nodes of a scope in order, but for those of scopes in it,
 * which are passed over. */
typedef struct pln_scope_walk {
  pln_ref at, end;
  pln_scope child;
} pln_scope_walk;
pln_scope_walk pln_export_walk(const pln_export *ex, pln_scope scope);
/* False: there is no other. */
bool pln_export_next(const pln_export *ex, pln_scope_walk *walk, pln_ref *out);
/* Names the values of the innermost open graph. */
pln_status pln_export_prepare(pln_export *ex) PLN_CHECKED;
pln_status pln_export_name_graph(pln_export *ex) PLN_CHECKED;
/* A new name of this kind, which stands for something that `node` needs. */
pln_status pln_export_new_name(pln_export *ex, pln_slice base, pln_ref node,
                               pln_slice *out) PLN_CHECKED;
/* The name of a value; empty for Absent. */
pln_slice pln_export_name(const pln_export *ex, pln_ref node);

/* export_node_names.c. *out is no data when the node may keep the name that its
 * slice has, else a name that no node of the function has. */
pln_status pln_export_node_name(pln_export *ex, pln_ref node, pln_slice name,
                                pln_slice *out) PLN_CHECKED;

/* export_node.c. A node without nested graphs is written; for others tasks are
 * pushed. */
pln_status pln_export_node(pln_export *ex, pln_ref node) PLN_CHECKED;
pln_status pln_export_identity(pln_export *ex, pln_ref node, pln_slice from,
                               pln_slice to) PLN_CHECKED;
/* PLN_TASK_END_NODE. */
pln_status pln_export_end_node(pln_export *ex,
                               const pln_task *task) PLN_CHECKED;
/* PLN_TASK_COPY, PLN_TASK_ATTR. */
pln_status pln_export_slice(pln_export *ex, const pln_task *task) PLN_CHECKED;

/* An attribute without graphs as the message `tag`. */
pln_status pln_export_attribute(pln_export *ex, uint32_t tag,
                                const pln_attr *a) PLN_CHECKED;
/* A Constant node that names a small tensor. */
pln_status pln_export_constant(pln_export *ex, pln_slice name,
                               const pln_tensor *tensor) PLN_CHECKED;

/* export_domains.c. Notes that a node of the function at hand uses a domain. */
pln_status pln_export_use_domain(pln_export *ex, pln_slice domain,
                                 int64_t since) PLN_CHECKED;
/* `opsets` with those that were noted, each of a version that has what is
 * used. */
pln_status pln_export_used_opsets(const pln_export *ex, pln_attrs opsets,
                                  pln_attrs *out) PLN_CHECKED;

/* export_fields.c. Fields of the innermost open graph: those before its nodes,
 * those behind. */
pln_status pln_export_head(pln_export *ex) PLN_CHECKED;
pln_status pln_export_tail(pln_export *ex) PLN_CHECKED;

/* export_tensor.c. `source` is the TensorProto it came from, or no data. */
pln_status pln_export_tensor(pln_export *ex, uint32_t tag, pln_slice name,
                             const pln_tensor *tensor,
                             pln_message source) PLN_CHECKED;
/* Whether the tensor must be written anew because its data moves. */
pln_status pln_export_must_rewrite_data(pln_export *ex,
                                        const pln_tensor *tensor,
                                        bool *out) PLN_CHECKED;

#endif
