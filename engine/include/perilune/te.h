/* perilune/te.h: tensor expressions and their schedules.
 *
 * An operation says what the elements of its output tensors are; a schedule is
 * a list of primitives (its trace) that says in which loops they are computed.
 * Definitions: TVM 0.14's src/te. Operations never change. A tensor is the
 * Buffer of an operation's output, known by the identity of its data
 * variable. */

#ifndef PERILUNE_TE_H
#define PERILUNE_TE_H

#include "perilune/arith.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- operations */

typedef struct pln_te_op pln_te_op;

typedef enum pln_te_kind {
  PLN_TE_PLACEHOLDER,
  PLN_TE_COMPUTE,
  PLN_TE_SCAN,
  PLN_TE_EXTERN
} pln_te_kind;

/* Describes an operation by nodes of a free builder.
 *
 * `outputs`: one Buffer a tensor, with its shape. `axis`: one IterVar a
 * dimension of compute; for scan the scan axis, then the axes of the other
 * dimensions of each output in order. `body`: compute: one PrimExpr an output,
 * or as many Reduces that differ only in their value index; scan: the Buffers
 * of init, update and state, as many of each as outputs, then those of tensors
 * that are computed outside of the scan's loop; extern: the Buffers
 * that `stmt` uses for each input and output, and behind these the Buffers of
 * the inputs. `inputs`: the operations whose tensors it may read. */
typedef struct pln_te_spec {
  pln_te_kind kind;
  pln_symbol name, tag; /* tag 0: none */
  pln_attrs attrs;
  uint32_t n_outputs, n_axis, n_body, n_inputs;
  const pln_ref *outputs, *axis, *body;
  pln_ref stmt; /* extern; else PLN_NONE */
  pln_te_op *const *inputs;
} pln_te_spec;

/* PLN_ERR_TYPE: the expressions are ill-typed or of another form.
 * PLN_ERR_ARGUMENT: a tensor is read that belongs to none of the inputs. */
PLN_API pln_status pln_te_op_new(pln_builder *builder, const pln_te_spec *spec,
                                 pln_te_op **out) PLN_CHECKED;
/* Retain adds a reference; release drops one, and frees the operation and what
 * only it reads with the last. */
PLN_API pln_te_op *pln_te_op_retain(pln_te_op *op);
PLN_API void pln_te_op_release(pln_te_op *op); /* accepts NULL */
/* What pln_te_op_new was given. */
PLN_API pln_te_kind pln_te_op_kind(const pln_te_op *op);
PLN_API pln_symbol pln_te_op_name(const pln_te_op *op);
PLN_API pln_symbol pln_te_op_tag(const pln_te_op *op);
PLN_API pln_attrs pln_te_op_attrs(const pln_te_op *op);
/* The nodes of the operation: operands of the graph's root, in the order
 * outputs, axis, body. Borrowed. */
PLN_API const pln_graph *pln_te_op_graph(const pln_te_op *op);
PLN_API uint32_t pln_te_op_n_outputs(const pln_te_op *op);
PLN_API uint32_t pln_te_op_n_axis(const pln_te_op *op);
/* The operations that are read, each once, in the order of their first use. */
PLN_API uint32_t pln_te_op_n_inputs(const pln_te_op *op);
PLN_API pln_te_op *pln_te_op_input(const pln_te_op *op, uint32_t index);

/* Which axes of a scan are fix points: what is computed at an index of such an
 * axis depends on the state at the same index only, so that a part of the axis
 * can be computed alone. is_fixed has pln_te_op_n_axis(scan) elements; that of
 * the scan's own axis, the first one, is false. PLN_ERR_ARGUMENT: it is no
 * scan. Definition: TVM 0.14, ScanFixPointAnalysis of src/te/schedule/graph.cc;
 * here outputs that read each other at the same index are fix points too. */
PLN_API pln_status pln_te_scan_fix_points(pln_engine *engine, pln_te_op *scan,
                                          bool *is_fixed) PLN_CHECKED;

/* -------------------------------------------------------------- schedules */

typedef struct pln_schedule pln_schedule;

/* Types of iteration, with TVM's numbers. */
typedef enum pln_iter_type {
  PLN_ITER_DATA_PAR = 0,
  PLN_ITER_THREAD_INDEX,
  PLN_ITER_COMM_REDUCE,
  PLN_ITER_ORDERED,
  PLN_ITER_OPAQUE,
  PLN_ITER_UNROLLED,
  PLN_ITER_VECTORIZED,
  PLN_ITER_PARALLELIZED,
  PLN_ITER_TENSORIZED
} pln_iter_type;

/* te_primitives.def lists them. */
typedef enum pln_primitive {
#define PRIMITIVE(ID, name, min_axes, max_axes, doc) PLN_SCHEDULE_##ID,
#include "perilune/te_primitives.def"
#undef PRIMITIVE
  PLN_N_SCHEDULE_PRIMITIVES
} pln_primitive;

/* "compute_at"; "?" for a number that is none. Static. */
PLN_API const char *pln_primitive_name(pln_primitive primitive);

/* A number, or an expression. */
typedef struct pln_schedule_value {
  int64_t number;
  const pln_graph *graph; /* NULL: the number */
} pln_schedule_value;

/* One step of a trace. Stages, axes and tensors are numbered in the order in
 * which the schedule makes them; numbers stay what they are. */
typedef struct pln_schedule_step {
  pln_primitive primitive;
  uint32_t stage;
  uint32_t n_axes, n_tensors, n_values;
  const uint32_t *axes;
  const uint32_t *tensors;
  const pln_schedule_value *values;
  pln_symbol text; /* a storage scope, a pragma's key, a thread's tag */
  /* The identities of the variables that the step makes; 0 of them when it is
   * applied: new ones. */
  uint32_t n_vars;
  const uint32_t *vars;
} pln_schedule_step;

/* What a step made: axes first_axis to first_axis + n_axes - 1, and so on. */
typedef struct pln_schedule_made {
  uint32_t first_axis, n_axes;
  uint32_t first_tensor, n_tensors;
  uint32_t first_stage, n_stages;
} pln_schedule_made;

/* A schedule of the operations and of all that they read, without steps. */
PLN_API pln_status pln_schedule_new(pln_engine *engine, uint32_t n,
                                    pln_te_op *const *ops,
                                    pln_schedule **out) PLN_CHECKED;
PLN_API void pln_schedule_free(pln_schedule *schedule); /* accepts NULL */
/* Applies a step and appends it to the trace. When it is refused
 * (PLN_ERR_ARGUMENT, with stage, axis and history in the diagnostic), nothing
 * has changed. `made` may be NULL. */
PLN_API pln_status pln_schedule_apply(pln_schedule *schedule,
                                      const pln_schedule_step *step,
                                      pln_schedule_made *made) PLN_CHECKED;
/* A schedule with the first `n_steps` steps. */
PLN_API pln_status pln_schedule_copy(const pln_schedule *schedule,
                                     uint32_t n_steps,
                                     pln_schedule **out) PLN_CHECKED;
/* Takes back the last step. */
PLN_API pln_status pln_schedule_undo(pln_schedule *schedule) PLN_CHECKED;
/* The trace. */
PLN_API uint32_t pln_schedule_n_steps(const pln_schedule *schedule);
/* Borrowed until the schedule changes. */
PLN_API const pln_schedule_step *
pln_schedule_step_at(const pln_schedule *schedule, uint32_t index);
/* True of equal operations and traces (variables that steps make correspond).
 */
PLN_API bool pln_schedule_equal(const pln_schedule *a, const pln_schedule *b);
/* Prints the trace, one step a line. */
PLN_API pln_status pln_schedule_print(const pln_schedule *schedule,
                                      pln_write_fn write, void *ud) PLN_CHECKED;
/* Writes which steps were applied to a stage, the last eight of them, as the
 * errors of pln_schedule_apply do: a line for each. */
PLN_API pln_status pln_schedule_print_history(const pln_schedule *schedule,
                                              uint32_t stage,
                                              pln_write_fn write,
                                              void *ud) PLN_CHECKED;

/* Stages in order of execution: `index` is 0 to n - 1, the answer the number of
 * the stage. */
PLN_API uint32_t pln_schedule_n_stages(const pln_schedule *schedule);
PLN_API uint32_t pln_schedule_stage_at(const pln_schedule *schedule,
                                       uint32_t index);
/* By identities of variables; PLN_NONE: there is none. */
PLN_API uint32_t pln_schedule_find_axis(const pln_schedule *schedule,
                                        uint32_t var);
PLN_API uint32_t pln_schedule_find_tensor(const pln_schedule *schedule,
                                          uint32_t var);

typedef enum pln_attach_type {
  PLN_ATTACH_ROOT = 1, /* TVM's numbers */
  PLN_ATTACH_INLINE,
  PLN_ATTACH_INLINED,
  PLN_ATTACH_SCOPE,
  PLN_ATTACH_SCAN_UPDATE
} pln_attach_type;

typedef struct pln_stage_info {
  pln_symbol name, scope;
  pln_attach_type attach;
  uint32_t attach_stage, attach_axis; /* PLN_NONE */
  uint32_t group;                     /* PLN_NONE */
  bool is_output, is_group, is_placeholder;
  /* Numbers; borrowed until the schedule changes. Leaves are the loops, the
   * outermost first. */
  uint32_t n_leaves, n_all, n_axis, n_reduce, n_tensors;
  const uint32_t *leaves, *all, *axis, *reduce;
  uint32_t first_tensor;
  /* transform_layout: the maps, the last one last; how many dimensions they
   * give, and where axis separators are among these. */
  uint32_t n_layouts, layout_rank, n_separators;
  const uint32_t *layouts, *separators; /* layouts: pln_symbols */
} pln_stage_info;
/* What a stage is now. */
PLN_API void pln_schedule_stage(const pln_schedule *schedule, uint32_t stage,
                                pln_stage_info *out);
/* The stage that computes a tensor; how many axes and tensors there are. */
PLN_API uint32_t pln_schedule_tensor_stage(const pln_schedule *schedule,
                                           uint32_t tensor);
PLN_API uint32_t pln_schedule_n_axes(const pln_schedule *schedule);
PLN_API uint32_t pln_schedule_n_tensors(const pln_schedule *schedule);
/* The IterVar of an axis and the Buffer of a tensor, built in a free
 * builder. */
PLN_API pln_status pln_schedule_build_axis(pln_schedule *schedule,
                                           uint32_t axis, pln_builder *builder,
                                           pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_schedule_build_tensor(pln_schedule *schedule,
                                             uint32_t tensor,
                                             pln_builder *builder,
                                             pln_ref *out) PLN_CHECKED;

/* -------------------------------------------------------------- lowering */

/* Options of pln_schedule_to_module. */
typedef struct pln_schedule_lowering {
  bool keep_trivial_loops; /* tir.debug_keep_trivial_loop */
  bool may_alias;          /* no tir.noalias */
} pln_schedule_lowering;

/* A parameter: a Buffer with the data variable of a tensor, or a Var, as a node
 * of the graph's root, which is an Array. A tensor's Buffer may be another view
 * of the tensor's memory; that of a tensor which no stage reads is a parameter
 * that is not used. */
PLN_API pln_status pln_schedule_to_module(const pln_schedule *schedule,
                                          const pln_graph *args,
                                          pln_symbol name,
                                          const pln_schedule_lowering *options,
                                          pln_module **out) PLN_CHECKED;
/* The range of each axis (TVM's InferBound): items[2 * i] and items[2 * i + 1]
 * of the Array in *out are its min and extent, of axes that have one. `axes`
 * has pln_schedule_n_axes entries: the position of each, or PLN_NONE. Axes that
 * normalisation adds are left out. */
PLN_API pln_status pln_schedule_infer_bound(const pln_schedule *schedule,
                                            uint32_t *axes,
                                            pln_graph **out) PLN_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
