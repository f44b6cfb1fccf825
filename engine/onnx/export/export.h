/* export.h: the state of one export, shared by the files of export/.
 *
 * Nested graphs are written through a stack of tasks: each task writes a part
 * and pushes the tasks that follow it. */

#ifndef PLN_ONNX_EXPORT_EXPORT_H
#define PLN_ONNX_EXPORT_EXPORT_H

#include "ir/graph/module.h"
#include "onnx/export/encode.h"
#include "onnx/export/file_pair.h"
#include "onnx/import/decode.h"
#include "onnx/node.h"
#include "onnx/op_map.h"
#include "onnx/opset/model_opset.h"
#include "onnx/schema.h"
#include "onnx/scoped_names.h"

typedef enum pln_task_kind {
  PLN_TASK_GRAPH,    /* a scope as the message `tag` */
  PLN_TASK_NODES,    /* the nodes of a scope from `at` on */
  PLN_TASK_FIELDS,   /* the fields of a scope after its nodes */
  PLN_TASK_BEGIN,    /* opens the message `tag` */
  PLN_TASK_END,      /* closes the innermost message */
  PLN_TASK_END_NODE, /* closes a node. If nothing in it changed, replaces it by
                        the bytes in `fields`; its state is row `at` of
                        ex->starts */
  PLN_TASK_COPY,     /* fields copied from the file */
  PLN_TASK_ATTR,     /* entry `at` of the attributes `tag` */
  PLN_TASK_TEXT,     /* the field `tag` with these bytes */
  PLN_TASK_INT       /* the field `tag` with the number `at` */
} pln_task_kind;

typedef struct pln_task {
  pln_task_kind kind;
  uint32_t tag;
  pln_scope scope;
  pln_ref at;
  pln_scope child; /* the next scope inside `scope` at or after `at` */
  pln_message fields;
} pln_task;

/* How a node is used. */
enum {
  PLN_EXPORT_USED = 1,
  PLN_EXPORT_NEEDED = 2, /* otherwise than as the result of another graph */
  PLN_EXPORT_IS_RESULT = 4
};

/* A graph that is being written. */
typedef struct pln_export_frame {
  pln_scope scope;
  bool is_function;
  pln_message source; /* the message it came from; no data: none */
  uint32_t mark;      /* number of rows of `used` when it began */
  uint32_t outputs;   /* start of its output names in ex->outputs */
  uint32_t n_outputs;
  uint64_t changes;   /* ex->changes when it began */
  uint32_t n_nodes;   /* nodes written so far */
  uint64_t last_node; /* offset of the last of them in the source */
} pln_export_frame;

/* The position at which a node with nested graphs begins, to rewind to if
 * nothing in it changed. */
typedef struct pln_node_start {
  pln_rope_mark mark;
  uint64_t changes;
} pln_node_start;

/* The name of a graph's output. `same` is true if its value has that name;
 * otherwise an Identity is written. */
typedef struct pln_export_output {
  pln_slice name;
  pln_ref node;
  bool same;
} pln_export_output;

/* The external data file being collected. */
typedef struct pln_data_file {
  const char *name; /* OUT.data, without its directory */
  size_t threshold;
  pln_rope rope;
} pln_data_file;

/* Cached answer for an operator: does its version at the target opset differ
 * from the one in the file in more than types? Then `schema` is the version at
 * the target. */
typedef struct pln_opset_restated_call {
  bool known, restated;
  const pln_onnx_schema *schema;
} pln_opset_restated_call;

/* A domain used by nodes, and the lowest version that has all their
 * operators. */
typedef struct pln_domain_use {
  pln_symbol domain;
  int64_t version;
} pln_domain_use;

typedef struct pln_export {
  pln_engine *engine;
  const pln_module *module;
  int64_t wanted_opset; /* opset to convert to first; 0: the model's own */
  /* The converted module, owned, once conversion has begun. */
  pln_module *conforming;
  pln_decoder decoder;
  pln_rope *rope;
  pln_data_file *data; /* NULL: data stays where it is, or inline */
  const char
      *directory;   /* directory of the file being written; NULL: in memory */
  bool moved;       /* some external data lies in another directory */
  bool embeds;      /* external data is embedded into the model */
  pln_attrs opsets; /* opsets of the model */
  pln_value_info value_info;
  int64_t ir_version;
  /* IR version < 4: initializers must be inputs as well. */
  bool constant_inputs;
  pln_arena names_arena; /* memory of new names */
  uint64_t n_made;       /* counter for new names */
  /* External data files, kept open until everything is written. */
  pln_idmap *file_rows; /* (directory, location) -> row of files + 1 */
  pln_data_source *files;
  uint32_t n_files, cap_files;

  /* The current function. */
  const pln_graph *g;
  int64_t opset; /* its version of ai.onnx */
  pln_file_opsets source;
  int64_t source_opset; /* the version that its nodes had in their file; 0: no
                           file */
  /* The two versions differ, so operators may have other forms. */
  bool restated;
  pln_opset_restated_call *restatements; /* by operator; NULL until needed */
  pln_domain_use *domains; /* domains of nodes that are not from the file */
  uint32_t n_domains, cap_domains;
  pln_symbol function;
  uint32_t *slots;  /* by node: its slot, or PLN_NONE */
  pln_slice *names; /* by slot: its name; no data: not named yet */
  uint32_t n_slots;
  size_t names_room;           /* allocated slots */
  pln_scoped_names node_names; /* name of a node -> the node ... */
  bool node_names_known;       /* ... filled when first needed */
  uint8_t *uses;               /* by node: PLN_EXPORT_* */
  pln_scope *node_scope;       /* by node of an open graph: its scope */
  pln_scope *child,
      *sibling; /* by scope: its first inner scope, and the next sibling */
  pln_scoped_names used; /* names used in the open graphs -> node */
  pln_ref at;            /* node that diagnostics name, or PLN_NONE */
  uint64_t budget;       /* remaining steps for searches for captured names */
  uint64_t changes;      /* number of differences from the file so far */

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
  pln_slice *inputs; /* names of the current node's operands */
  uint32_t n_inputs, cap_inputs;
  pln_slice *results; /* names of its results */
  uint32_t n_results, cap_results;
} pln_export;

/* The nearest origin of a node that has a slice of a file; NULL if none has. */
const pln_origin *pln_export_origin(const pln_export *ex, pln_ref node);
/* Returns true if the origin is a field of the message of the innermost open
 * graph, not of a graph inside or around it. */
bool pln_export_is_own(const pln_export *ex, const pln_origin *origin);

/* graph.c. Pushes a task. */
pln_status pln_export_push(pln_export *ex, pln_task task) PLN_CHECKED;
/* Reverses the tasks pushed since `from`, so that they run in the order in
 * which they were pushed. */
void pln_export_reverse(pln_export *ex, uint32_t from);
/* Opens a message, which PLN_TASK_END closes. */
pln_status pln_export_begin(pln_export *ex, uint32_t tag) PLN_CHECKED;
/* Writes a function of the module as the message `tag`. */
pln_status pln_export_function(pln_export *ex, pln_symbol name,
                               const pln_graph *graph,
                               uint32_t tag) PLN_CHECKED;
void pln_export_free(pln_export *ex);
/* Returns true if the node is written as an entry of a list (of initializers,
 * or of sparse and unknown ones), not as a node. */
bool pln_export_is_entry(const pln_export *ex, pln_ref node);
/* Returns true if a Constant is written as an initializer. */
/* Returns true for a constant that only nested graphs need, each as a result:
 * they write it. */
bool pln_export_is_nested_constant(const pln_export *ex, pln_ref node);
bool pln_export_is_initializer(const pln_export *ex, pln_ref node);

/* names.c. Iterates over the nodes of a scope in order, without those of nested
 * scopes. */
typedef struct pln_scope_walk {
  pln_ref at, end;
  pln_scope child;
} pln_scope_walk;
pln_scope_walk pln_export_walk(const pln_export *ex, pln_scope scope);
/* Returns false at the end. */
bool pln_export_next(const pln_export *ex, pln_scope_walk *walk, pln_ref *out);
/* Names the values of the innermost open graph. */
pln_status pln_export_prepare(pln_export *ex) PLN_CHECKED;
pln_status pln_export_name_graph(pln_export *ex) PLN_CHECKED;
/* Makes a new name from `base` for something that `node` needs. */
pln_status pln_export_new_name(pln_export *ex, pln_slice base, pln_ref node,
                               pln_slice *out) PLN_CHECKED;
/* The name of a value; empty for Absent. */
pln_slice pln_export_name(const pln_export *ex, pln_ref node);

/* node_names.c. *out has no data if the node may keep the name in its slice;
 * otherwise it is a name that no node of the function has. */
pln_status pln_export_node_name(pln_export *ex, pln_ref node, pln_slice name,
                                pln_slice *out) PLN_CHECKED;

/* node.c. Writes a node; for a node with nested graphs pushes tasks. */
pln_status pln_export_node(pln_export *ex, pln_ref node) PLN_CHECKED;
pln_status pln_export_identity(pln_export *ex, pln_ref node, pln_slice from,
                               pln_slice to) PLN_CHECKED;
/* Runs PLN_TASK_END_NODE. */
pln_status pln_export_end_node(pln_export *ex,
                               const pln_task *task) PLN_CHECKED;
/* Runs PLN_TASK_COPY and PLN_TASK_ATTR. */
pln_status pln_export_slice(pln_export *ex, const pln_task *task) PLN_CHECKED;

/* Writes an attribute without graphs as the message `tag`. */
pln_status pln_export_attribute(pln_export *ex, uint32_t tag,
                                const pln_attr *a) PLN_CHECKED;
/* Writes a Constant node that names a small tensor. */
pln_status pln_export_constant(pln_export *ex, pln_slice name,
                               const pln_tensor *tensor) PLN_CHECKED;

/* domains.c. Records that a node of the current function uses a domain. */
pln_status pln_export_use_domain(pln_export *ex, pln_slice domain,
                                 int64_t since) PLN_CHECKED;
/* Merges the recorded domains into `opsets`, each with a version that has all
 * used operators. */
pln_status pln_export_used_opsets(const pln_export *ex, pln_attrs opsets,
                                  pln_attrs *out) PLN_CHECKED;

/* graph_fields.c. Write the fields of the innermost open graph: those before
 * its nodes, and those after. */
pln_status pln_export_head(pln_export *ex) PLN_CHECKED;
pln_status pln_export_tail(pln_export *ex) PLN_CHECKED;

/* tensor.c. Writes a TensorProto. `source` is the TensorProto that the tensor
 * came from, or has no data. */
pln_status pln_export_tensor(pln_export *ex, uint32_t tag, pln_slice name,
                             const pln_tensor *tensor,
                             pln_message source) PLN_CHECKED;
/* *out is true if the tensor must be encoded again because its data moves. */
pln_status pln_export_must_rewrite_data(pln_export *ex,
                                        const pln_tensor *tensor,
                                        bool *out) PLN_CHECKED;

#endif
