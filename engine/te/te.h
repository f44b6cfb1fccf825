/* te/te.h: shared declarations of tensor expressions and schedules.
 *
 * A schedule has a state (pln_te_state), which is what its steps have made of
 * the operations: stages, axes, tensors. The state is made of the trace, and is
 * made again where another one is needed: to undo, to copy, to lower. All
 * expressions are terms of one analyzer. The lists of a state lie in its arena;
 * an index into a table of the state stays valid, a pointer does not. */

#ifndef PLN_TE_TE_H
#define PLN_TE_TE_H

#include "arith/arith.h"
#include "perilune/te.h"

/* ------------------------------------------------------------- operations */

/* Of an extern with axes: nests[i].nest is that of axis i, from 1, and
 * nests[k - 1].around that of the loop around nest k (0: none). */
typedef struct pln_te_loop_nest {
  uint32_t nest, around;
} pln_te_loop_nest;

struct pln_te_op {
  pln_engine *engine;
  uint32_t refs;
  uint8_t kind; /* pln_te_kind */
  pln_symbol name, tag;
  pln_attrs attrs;
  uint32_t n_outputs, n_axis, n_body, n_inputs, cap_inputs;
  pln_graph *graph;        /* root: an Array of outputs, axis, body */
  pln_graph *stmt;         /* extern: its statement, with the placeholders */
  pln_te_loop_nest *nests; /* n_axis, of an extern with axes; else NULL */
  pln_te_op **inputs;      /* n_inputs, each once */
  struct pln_te_op *next_dead; /* while it is released */
};

/* The node of an output, an axis, a body: i of root's operands. */
static inline pln_ref pln_te_part(const pln_te_op *op, uint32_t i) {
  const pln_graph *g = op->graph;
  return g->operands[g->nodes[g->root].first + i];
}
/* The identity of the data variable of a Buffer. */
uint32_t pln_te_buffer_var(const pln_graph *g, pln_ref buffer);

/* operation/loop_nests.c: finds the loops that are the axes of an extern, and
 * the nests that they are part of. */
pln_status pln_te_find_nests(pln_te_op *op) PLN_CHECKED;

/* ------------------------------------------------------------------- state */

/* A list in the arena of a state. */
typedef struct pln_te_list {
  uint32_t *items;
  uint32_t n, cap;
} pln_te_list;

typedef struct pln_te_pragma {
  pln_symbol key;
  pln_term value;
} pln_te_pragma;

/* A prefetch of a tensor. */
typedef struct pln_te_prefetch {
  uint32_t tensor;
  pln_term offset;
} pln_te_prefetch;

/* An intrinsic: an expression over its own tensors, and statements over Buffers
 * that compute it. The graphs are those of the step. */
typedef struct pln_te_intrin {
  pln_symbol name;
  uint32_t n_inputs, n_outputs, n_axis;
  pln_term *inputs;  /* n_inputs Buffers that its expression reads */
  pln_term *buffers; /* n_inputs + n_outputs Buffers of the statements */
  pln_term *axis;    /* n_axis IterVars */
  pln_term *bodies;  /* n_outputs */
  const pln_graph *body, *reset, *update; /* NULL: there is none */
} pln_te_intrin;

/* An iteration variable: an axis of an operation, what a primitive made of
 * some, or a thread. */
typedef struct pln_te_axis {
  pln_term var;
  pln_symbol name, tag; /* tag 0: no thread */
  uint8_t type;         /* pln_iter_type */
  uint8_t loop;         /* type of iteration that a primitive gave, or 0 */
  uint32_t stage;       /* PLN_NONE: a thread */
  uint32_t nest;        /* of a loop in the statement of an extern; else 0 */
  uint32_t step;        /* 1 + the step that used it up; 0: none */
  uint32_t bind;        /* the thread, or PLN_NONE */
  uint32_t rebased;     /* lowering: what starts at 0 in its place */
  pln_term min, extent; /* the declared domain; PLN_NO_TERM: none */
  int64_t align_factor, align_offset; /* factor 0: none */
  const pln_te_intrin *intrin;        /* tensorize, or NULL */
  uint32_t fix_point;     /* scan_fix_point.c: 1 + the axis that stands for its
                           * class; 0: it is no fix point of a scan */
  pln_te_list pragmas;    /* pairs: key, term */
  pln_te_list prefetches; /* pairs: tensor, term */
  /* Lowering: the inferred range, and what the walks over relations keep. */
  pln_term low, count; /* PLN_NO_TERM: not inferred */
  pln_term value;
  pln_interval set;
  uint32_t value_at, set_at, mask_at, path_at;
  uint8_t mask;
} pln_te_axis;

typedef enum pln_te_relation_kind {
  PLN_TE_SPLIT,     /* a: parent, b: outer, c: inner */
  PLN_TE_FUSE,      /* a: fused, b: outer, c: inner */
  PLN_TE_REBASE,    /* a: parent, b: rebased */
  PLN_TE_SINGLETON, /* a: the axis */
  PLN_TE_TRANSFORM, /* a, b, c: the first axis of `transform` */
} pln_te_relation_kind;

/* A map of indices between the axes of a stage. */
typedef struct pln_te_transform {
  const pln_graph *map; /* of the state */
  uint32_t n_from, n_to;
  uint32_t *from, *to; /* axes */
  pln_term *inverse;   /* n_from: offset in the range, by variables of `to` */
} pln_te_transform;

typedef struct pln_te_relation {
  uint8_t kind;
  uint32_t a, b, c;
  pln_term factor, nparts; /* of a split, one of the two */
  const pln_te_transform *transform;
} pln_te_relation;

typedef struct pln_te_tensor {
  pln_term buffer; /* a Buffer */
  uint32_t var;    /* the identity of its data variable */
  uint32_t stage, index;
  pln_term lowered; /* the Buffer in statements; PLN_NO_TERM: the same */
  uint32_t alias;   /* 1 + the tensor whose memory it is; 0: its own */
} pln_te_tensor;

/* Two axes and a body position that an extern's inputs need not. */
typedef struct pln_te_stage {
  const pln_te_op *op; /* what it was made of; NULL: by a primitive, a group */
  uint8_t kind;        /* pln_te_kind */
  uint8_t attach;      /* pln_attach_type */
  bool is_output, is_group, double_buffer, rolling_buffer;
  pln_symbol name, scope;
  uint32_t attach_stage, attach_axis, group;
  uint32_t n_children; /* of a group */
  uint32_t first_tensor, n_tensors;
  pln_te_list axis, reduce; /* of the operation */
  pln_te_list body;         /* terms; scan: tensors of init, update, state */
  pln_te_list inputs;       /* extern: tensors */
  /* Of a call of an intrinsic in te.compute: 1 + the axis where it begins (0:
   * there is none); pairs, by input: loads of the first and of the last element
   * that it reads; pairs: a scalar parameter, its value. */
  uint32_t call;
  pln_te_list regions, scalars;
  pln_te_list all, leaves;
  pln_te_list threads; /* env_threads */
  pln_te_relation *relations;
  uint32_t n_relations, cap_relations;
  pln_term predicate; /* set_store_predicate, or PLN_NO_TERM */
  /* transform_layout: maps (symbols), the extents that they give, and where
   * axis separators are among these. */
  pln_te_list layouts, layout_shape, separators;
  /* Lowering. */
  uint32_t root_stage;        /* where it is attached, groups left out */
  pln_te_list path;           /* axes around it, the innermost first */
  pln_te_list loads;          /* consumer, first and last load of a region */
  pln_te_list users;          /* stages that are attached to one of its axes */
  pln_te_list inits, updates; /* of a scan: stages */
  uint32_t scan;              /* the scan of which it is an init, or PLN_NONE */
  bool no_memory;             /* it writes into the tensor of its scan */
  pln_ref stmt;               /* its loops */
} pln_te_stage;

typedef struct pln_te_state {
  pln_engine *engine;
  pln_analyzer *a;
  pln_builder *b; /* builds variables, and what is lowered */
  pln_arena arena;
  pln_te_axis *axes;
  uint32_t n_axes, cap_axes;
  pln_te_stage *stages;
  uint32_t n_stages, cap_stages;
  pln_te_tensor *tensors;
  uint32_t n_tensors, cap_tensors;
  pln_te_list order;    /* stages in order of execution */
  pln_idmap *axis_of;   /* identity of a variable -> 1 + axis */
  pln_idmap *tensor_of; /* identity of a data variable -> 1 + tensor */
  uint32_t step;        /* the number of the running step, from 1 */
  /* Identities for the variables that the running step makes, and those that it
   * made. */
  const uint32_t *given;
  uint32_t n_given;
  pln_te_list made;
  pln_te_list from, to; /* lowering: Buffers, and those in their places */
  /* Substitution: the image of each term, by stamp. */
  pln_term *image;
  uint32_t *image_at;
  uint32_t cap_image, cap_image_at, image_stamp;
  pln_term_marks loadless; /* terms that are known to read no tensor */
  uint32_t stamp;          /* of walks over relations */
  uint8_t *flags;          /* bound_check.c: by axis */
  uint32_t cap_flags;
  uint32_t path_stamp; /* of the axes around the present stage */
  pln_graph **maps;    /* parsed maps of indices */
  uint32_t n_maps, cap_maps;
} pln_te_state;

/* state.c */
pln_status pln_te_state_new(pln_engine *engine, uint32_t n,
                            pln_te_op *const *ops,
                            pln_te_state **out) PLN_CHECKED;
void pln_te_state_free(pln_te_state *s);
pln_status pln_te_push(pln_te_state *s, pln_te_list *list,
                       uint32_t value) PLN_CHECKED;
pln_status pln_te_insert(pln_te_state *s, pln_te_list *list, uint32_t at,
                         uint32_t value) PLN_CHECKED;
void pln_te_remove(pln_te_list *list, uint32_t at);
uint32_t pln_te_index(const pln_te_list *list, uint32_t value); /* PLN_NONE */
/* The name `base` with a suffix. */
pln_status pln_te_name(pln_te_state *s, pln_symbol base, const char *suffix,
                       pln_symbol *out) PLN_CHECKED;
const char *pln_te_axis_name(const pln_te_state *s, uint32_t axis);
const char *pln_te_stage_name(const pln_te_state *s, uint32_t stage);
/* A new axis, with a new variable. */
pln_status pln_te_axis_new(pln_te_state *s, uint32_t stage, pln_symbol name,
                           pln_dtype dtype, pln_iter_type type, pln_term min,
                           pln_term extent, uint32_t *out) PLN_CHECKED;
/* A new variable. */
pln_status pln_te_var_new(pln_te_state *s, pln_symbol name, pln_dtype dtype,
                          pln_term *out) PLN_CHECKED;
/* A new Buffer. */
pln_status pln_te_buffer_new(pln_te_state *s, pln_symbol name, pln_type type,
                             pln_slice scope, uint32_t rank,
                             const pln_term *shape, uint32_t n_strides,
                             const pln_term *strides, pln_attrs attrs,
                             pln_term *out) PLN_CHECKED;
/* An axis of that variable. */
pln_status pln_te_axis_of_var(pln_te_state *s, uint32_t stage, pln_term var,
                              pln_iter_type type, pln_term min, pln_term extent,
                              uint32_t *out) PLN_CHECKED;
/* A tensor whose Buffer is there. */
pln_status pln_te_tensor_add(pln_te_state *s, uint32_t stage, uint32_t index,
                             pln_term buffer, uint32_t *out) PLN_CHECKED;
/* A new tensor of that shape, with a new Buffer. */
pln_status pln_te_tensor_new(pln_te_state *s, uint32_t stage, uint32_t index,
                             pln_symbol name, pln_type type, uint32_t rank,
                             const pln_term *shape, uint32_t *out) PLN_CHECKED;
pln_status pln_te_stage_new(pln_te_state *s, pln_te_kind kind, pln_symbol name,
                            uint32_t *out) PLN_CHECKED;
/* The loops of a stage become the axes of its operation. */
pln_status pln_te_stage_reset(pln_te_state *s, uint32_t stage) PLN_CHECKED;
pln_status pln_te_relate(pln_te_state *s, uint32_t stage,
                         pln_te_relation relation) PLN_CHECKED;
/* The tensor that a ProducerLoad reads. */
uint32_t pln_te_load_tensor(const pln_te_state *s, pln_term load);
/* The tensor of a Buffer; PLN_NONE. */
uint32_t pln_te_tensor_of(const pln_te_state *s, pln_term buffer);
static inline pln_dtype pln_te_dtype(const pln_te_state *s, pln_term t) {
  return (pln_dtype)pln_at(s->a, t)->dtype;
}
static inline uint32_t pln_te_rank(const pln_te_state *s, uint32_t tensor) {
  return pln_at(s->a, s->tensors[tensor].buffer)->count;
}
static inline pln_term pln_te_dim(const pln_te_state *s, uint32_t tensor,
                                  uint32_t i) {
  return pln_term_operand(s->a, s->tensors[tensor].buffer, 1 + i);
}

/* terms.c */
/* `t` with each from[i] replaced by to[i], in which nothing is folded: TVM's
 * Substitute. With `lower`, ProducerLoads become BufferLoads. */
pln_term pln_te_substitute(pln_te_state *s, pln_term t, uint32_t n,
                           const pln_term *from, const pln_term *to,
                           bool lower);
/* The same where from[i] are ProducerLoads: parts that pln_te_each_load found
 * to read nothing are not looked at again. */
pln_term pln_te_replace_loads(pln_te_state *s, pln_term t, uint32_t n,
                              const pln_term *from, const pln_term *to);
/* Calls fn for each ProducerLoad in `t`, once. */
typedef pln_status (*pln_te_load_fn)(void *ud, pln_te_state *s, pln_term load);
pln_status pln_te_each_load(pln_te_state *s, pln_term t, pln_te_load_fn fn,
                            void *ud) PLN_CHECKED;
/* ProducerLoad of a tensor; Reduce like `reduce` of other parts. */
pln_term pln_te_load(pln_te_state *s, uint32_t tensor, const pln_term *indices);
/* The same of a Buffer, whose rank is the number of the indices. */
pln_term pln_te_load_buffer(pln_te_state *s, pln_term buffer,
                            const pln_term *indices);
pln_term pln_te_iter_var(pln_te_state *s, uint32_t axis);
/* A call of a builtin, which gives a handle; an Array. */
pln_term pln_te_call(pln_te_state *s, const char *builtin, uint32_t n,
                     const pln_term *args);
pln_term pln_te_array(pln_te_state *s, uint32_t n, const pln_term *items);
/* likely(condition); a constant as it is. */
pln_term pln_te_likely(pln_te_state *s, pln_term condition);
/* The parts of a Reduce: sources, inits and axes behind two operands. */
typedef struct pln_te_reduce {
  pln_term combiner, condition;
  uint32_t n_sources, n_inits, n_axes, index;
  uint32_t source, init, axis; /* operand numbers of the first of each */
} pln_te_reduce;
pln_te_reduce pln_te_reduce_of(const pln_te_state *s, pln_term t);
pln_term pln_te_reduce_new(pln_te_state *s, pln_term like, uint32_t n_sources,
                           const pln_term *sources, uint32_t n_inits,
                           const pln_term *inits, uint32_t n_axes,
                           const uint32_t *axes, pln_term condition,
                           uint32_t index);

/* ---------------------------------------------------------------- schedule */

struct pln_schedule {
  pln_engine *engine;
  uint32_t n_ops;
  pln_te_op **ops;          /* retained */
  pln_schedule_step *steps; /* with copies of their lists, in one block each */
  uint32_t n_steps, cap_steps;
  pln_te_state *state;
};

/* Applies a step to a state: checks first, then changes. */
pln_status pln_te_apply(pln_te_state *s,
                        const pln_schedule_step *step) PLN_CHECKED;
/* A state with the first n steps. */
pln_status pln_te_replay(const pln_schedule *schedule, uint32_t n,
                         pln_te_state **out) PLN_CHECKED;
/* Raises an error of the running step: "schedule step 3, split of stage 'C':
 * ...". */
pln_status pln_te_refuse(const pln_te_state *s, const pln_schedule_step *step,
                         const char *format, ...) PLN_PRINTF(3, 4);

/* Reports which steps were applied to a stage before, as a note. */
void pln_te_note_history(const pln_schedule *schedule, uint32_t stage);

/* Primitives, by file. */
pln_status pln_te_apply_loop(pln_te_state *s,
                             const pln_schedule_step *step) PLN_CHECKED;
pln_status pln_te_apply_attach(pln_te_state *s,
                               const pln_schedule_step *step) PLN_CHECKED;
pln_status pln_te_apply_annotation(pln_te_state *s,
                                   const pln_schedule_step *step) PLN_CHECKED;
pln_status pln_te_cache_read(pln_te_state *s,
                             const pln_schedule_step *step) PLN_CHECKED;
pln_status pln_te_cache_write(pln_te_state *s,
                              const pln_schedule_step *step) PLN_CHECKED;
pln_status pln_te_rfactor(pln_te_state *s,
                          const pln_schedule_step *step) PLN_CHECKED;
pln_status pln_te_transform_layout(pln_te_state *s,
                                   const pln_schedule_step *step) PLN_CHECKED;
pln_status pln_te_create_group(pln_te_state *s,
                               const pln_schedule_step *step) PLN_CHECKED;
/* Groups the stages between tensors; *out: the group's stage. */
pln_status pln_te_group(pln_te_state *s, const pln_schedule_step *step,
                        uint32_t n_outputs, const uint32_t *outputs,
                        uint32_t n_inputs, const uint32_t *inputs,
                        bool include_inputs, uint32_t *out) PLN_CHECKED;
/* The stages that a stage reads: each once. */
pln_status pln_te_producers(pln_te_state *s, uint32_t stage,
                            pln_te_list *out) PLN_CHECKED;
/* loop_order.c: whether the axes of a step are loops of one nest, if they are
 * those of an extern; and whether ranges of loops allow this order of n loops
 * (reorder), or their fusion (fuse). */
pln_status pln_te_check_nest(pln_te_state *s,
                             const pln_schedule_step *step) PLN_CHECKED;
pln_status pln_te_check_order(pln_te_state *s, const pln_schedule_step *step,
                              uint32_t n, const uint32_t *loops) PLN_CHECKED;
/* Reads a value of a step as a term of the dtype of `like` (or its own). */
pln_status pln_te_value(pln_te_state *s, const pln_schedule_value *value,
                        pln_dtype dtype, pln_term *out) PLN_CHECKED;
/* The position of the axis among the leaves of the step's stage. */
pln_status pln_te_find_loop(pln_te_state *s, const pln_schedule_step *step,
                            uint32_t axis, uint32_t *at) PLN_CHECKED;

/* ---------------------------------------------------------------- lowering */

/* The stage whose attachment counts: of its group, if it is at the root of
 * one. */
uint32_t pln_te_attach_spec(const pln_te_state *s, uint32_t stage);
pln_status pln_te_normalize(pln_te_state *s) PLN_CHECKED;
pln_status pln_te_infer_bound(pln_te_state *s) PLN_CHECKED;
/* True if what the stage computes belongs to threads. */
bool pln_te_is_thread_memory(const pln_te_state *s, uint32_t stage);
/* Gives the axes of all scans their fix_point. */
pln_status pln_te_find_fix_points(pln_te_state *s) PLN_CHECKED;
/* What an index may be, inside of a dimension; the union with another set, of
 * which min PLN_NO_TERM says that there is none yet. */
pln_interval pln_te_clamp(pln_te_state *s, pln_interval set, pln_term dim);
/* Dimension i of a region, whose first and last elements are loads, while
 * variables are in these sets. */
pln_interval pln_te_region_dim(pln_te_state *s, pln_term first, pln_term last,
                               uint32_t i, const pln_te_list *vars,
                               const pln_interval *sets);
void pln_te_unite(pln_te_state *s, pln_interval *with, pln_interval set);

/* message_passing.c: walks over the relations of a stage. Values, sets and
 * masks are those of the axes at the present stamp. */
void pln_te_begin_walk(pln_te_state *s);
static inline void pln_te_set_value(pln_te_state *s, uint32_t axis,
                                    pln_term value) {
  s->axes[axis].value = value;
  s->axes[axis].value_at = s->stamp;
}
static inline bool pln_te_has_value(const pln_te_state *s, uint32_t axis) {
  return s->axes[axis].value_at == s->stamp;
}
pln_status pln_te_pass_down_domain(pln_te_state *s, uint32_t stage,
                                   bool partial) PLN_CHECKED;
pln_status pln_te_pass_up_domain(pln_te_state *s, uint32_t stage) PLN_CHECKED;
void pln_te_pass_up_index(pln_te_state *s, uint32_t stage);
void pln_te_pass_down_index(pln_te_state *s, uint32_t stage);
/* mask |= of what the axis is made of (up), or is part of (down). */
void pln_te_mask(pln_te_state *s, uint32_t axis, uint8_t mask);
uint8_t pln_te_mask_of(const pln_te_state *s, uint32_t axis);
void pln_te_pass_down_mask(pln_te_state *s, uint32_t stage);
/* Begins a walk that marks each axis of a stage: whether it is made of
 * dimensions, of reduction axes, or of both. */
enum { PLN_TE_OF_DIMENSION = 1, PLN_TE_OF_REDUCTION = 2 };
void pln_te_mark_origins(pln_te_state *s, uint32_t stage);
void pln_te_pass_up_mask(pln_te_state *s, uint32_t stage);
/* The conditions under which the values of the root axes lie in their domains;
 * `skip`: mask of axes that are not tested. */
pln_status pln_te_bound_check(pln_te_state *s, uint32_t stage,
                              bool skip_declared, const pln_te_list *skip,
                              pln_te_list *out) PLN_CHECKED;
/* The same of all axes, with the axis of each condition. */
pln_status pln_te_bound_check_by_axis(pln_te_state *s, uint32_t stage,
                                      pln_te_list *out,
                                      pln_te_list *axes) PLN_CHECKED;

/* nest.c: the loops of a stage, from the leaf `first` on. */
typedef struct pln_te_nest {
  uint32_t stage, first;
  bool init; /* loops of an initialisation, with variables of their own */
  bool keep_trivial;
  const pln_te_list *skip; /* leaves without a loop here; NULL: none */
  pln_te_list vars;        /* by leaf: the variable of its loop, or none */
  pln_te_list guards;
  pln_te_list from, to; /* values of the axes, for substitution */
} pln_te_nest;
/* Gives the leaves their values, the root axes theirs, and lists both. */
pln_status pln_te_nest_make(pln_te_state *s, pln_te_nest *nest) PLN_CHECKED;
/* Puts the loop of leaf `i`, with what annotates it, around a statement. */
pln_status pln_te_nest_wrap(pln_te_state *s, const pln_te_nest *nest,
                            uint32_t i, pln_ref *stmt) PLN_CHECKED;
/* Puts the guards around a statement, the first one outermost. */
pln_status pln_te_nest_guard(pln_te_state *s, const pln_te_nest *nest,
                             pln_ref *stmt) PLN_CHECKED;

/* build.c: nodes of statements from terms. */
typedef struct pln_te_stmt {
  pln_kind kind;
  pln_attrs attrs;
  uint32_t n;
  const pln_term *terms;
  pln_term param; /* of a loop; else PLN_NO_TERM */
  pln_ref body;   /* PLN_NONE: the statement has none */
} pln_te_stmt;
pln_status pln_te_build(pln_te_state *s, const pln_te_stmt *stmt,
                        pln_ref *out) PLN_CHECKED;
pln_status pln_te_build_attr(pln_te_state *s, pln_term node, const char *key,
                             pln_term value, pln_ref body,
                             pln_ref *out) PLN_CHECKED;
/* One after the other; PLN_NONE stands for nothing. */
pln_status pln_te_build_seq(pln_te_state *s, pln_ref first, pln_ref second,
                            pln_ref *out) PLN_CHECKED;

/* provide.c: statements of a stage, into its `stmt`. */
pln_status pln_te_provide(pln_te_state *s, uint32_t stage,
                          bool keep_trivial) PLN_CHECKED;
/* The loops of a compute stage with their guards, into `nest`, of which stage
 * and keep_trivial are set. */
pln_status pln_te_main_nest(pln_te_state *s, pln_te_nest *nest) PLN_CHECKED;
/* The same with the guards of the bounds only, without the store's predicate.
 */
pln_status pln_te_bounded_nest(pln_te_state *s, pln_te_nest *nest) PLN_CHECKED;
/* The loops around an initialisation: `nest` has `first` and `skip`; the loops
 * further out are those of `main`. */
pln_status pln_te_init_nest(pln_te_state *s, const pln_te_nest *main,
                            pln_te_nest *nest) PLN_CHECKED;
/* The first leaf that a reduction axis is part of; axes that are part of
 * reductions alone are listed in `skip`. */
pln_status pln_te_find_init(pln_te_state *s, uint32_t stage, uint32_t *first,
                            pln_te_list *skip) PLN_CHECKED;
/* An expression of the operation as it stands in statements: with the values of
 * the axes, with the Buffers of this program. */
pln_term pln_te_in_program(pln_te_state *s, const pln_te_nest *nest,
                           pln_term t);
/* One store an output, values[i] into output i; in the program. */
pln_status pln_te_stores(pln_te_state *s, const pln_te_nest *nest,
                         const pln_term *values, uint32_t n,
                         pln_ref *out) PLN_CHECKED;
/* The results of the combiner of lhs[i] and the sources; NULL: no memory. */
pln_term *pln_te_combine(pln_te_state *s, const pln_te_reduce *r,
                         pln_term reduce, const pln_term *lhs);
/* True if an axis is a loop of the statement of an extern. */
static inline bool pln_te_is_stmt_loop(const pln_te_state *s, uint32_t axis) {
  return s->axes[axis].nest != 0;
}
/* True if the loop `inner` of an extern's statement lies in the nest of
 * `outer`, or inside of that. */
bool pln_te_is_in_nest(const pln_te_state *s, uint32_t inner, uint32_t outer);
/* loop_nests.c: the statement of an extern, its loops as the stage has them. */
pln_status pln_te_provide_loop_nests(pln_te_state *s, pln_te_nest *nest,
                                     pln_ref *out) PLN_CHECKED;
/* cross_thread_reduction.c */
bool pln_te_reduces_across_threads(const pln_te_state *s, uint32_t stage);
pln_status pln_te_provide_across_threads(pln_te_state *s,
                                         pln_te_nest *nest) PLN_CHECKED;
/* tensorize.c: the first leaf that is an intrinsic, or PLN_NONE; the statement
 * of a stage that has it. */
uint32_t pln_te_tensorized_loop(const pln_te_state *s, uint32_t stage);
pln_status pln_te_provide_tensorized(pln_te_state *s, uint32_t at,
                                     pln_te_nest *nest) PLN_CHECKED;
/* realize.c: the stage, then `consumer` (or PLN_NONE), in the memory of the
 * stage's tensors. */
pln_status pln_te_pipeline(pln_te_state *s, uint32_t stage, pln_ref consumer,
                           pln_ref *out) PLN_CHECKED;
/* Puts the stages that are attached to an axis around a statement. */
pln_status pln_te_attach_users(pln_te_state *s, uint32_t stage, uint32_t axis,
                               pln_ref *stmt) PLN_CHECKED;
/* The Buffer that stands for a tensor in statements. */
pln_term pln_te_buffer(const pln_te_state *s, uint32_t tensor);

#endif
