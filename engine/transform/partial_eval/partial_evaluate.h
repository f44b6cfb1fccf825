/* partial_evaluate.h: values, frames and tasks of the partial evaluator. */

#ifndef PLN_TRANSFORM_PARTIAL_EVAL_PARTIAL_EVALUATE_H
#define PLN_TRANSFORM_PARTIAL_EVAL_PARTIAL_EVALUATE_H

#include "ir/graph/module.h"
#include "transform/functional/expression_tree.h"

/* ------------------------------------------------------------------ sources */

/* A captured variable of a function. */
typedef struct pe_capture {
  pln_ref var;
  uint32_t slot; /* in the frame of the function */
  uint32_t next; /* the next capture of the function, or PLN_NONE */
} pe_capture;

/* A function of the module as the evaluator reads it (variables.c). */
typedef struct pe_source {
  const pln_graph *graph; /* NULL: not prepared */
  pln_expression_tree tree;
  pln_ref *owner;      /* by variable: the function in which it is bound */
  uint32_t *slot;      /* by variable: its slot in the frame of its owner; by
                        * function: the number of slots of its frame */
  uint32_t *captured;  /* by function: its first capture, or PLN_NONE */
  pln_idmap *captures; /* function and variable -> capture + 1 */
  pe_capture *list;
  uint32_t n_list, cap_list;
  pln_ref *map; /* by node of a pattern: its image while an arm is begun */
  struct pe_fuel **fuel; /* by function: NULL: it is not being inlined */
} pe_source;

pln_status pe_source_prepare(pe_source *s, const pln_graph *graph) PLN_CHECKED;
void pe_source_free(pe_source *s);

/* ------------------------------------------------------------------- values */

/* Types for the type parameters of the functions that are being inlined. */
typedef struct pe_types {
  uint32_t n;
  pln_type *vars, *types;
} pe_types;

typedef enum pe_kind {
  PE_UNKNOWN,
  PE_TENSOR,
  PE_TUPLE,
  PE_ADT,  /* made by a constructor */
  PE_CELL, /* a reference */
  PE_CLOSURE,
  PE_OPERATOR,   /* an operator as a value */
  PE_CONSTRUCTOR /* a constructor as a value */
} pe_kind;

typedef struct pe_value pe_value;

typedef struct pe_closure {
  pe_source *source;
  pln_ref function;
  pe_value **captures; /* in the order of the source's list */
  pln_ref self;        /* the variable that a let binds to it, or PLN_NONE */
  pe_types types;
} pe_closure;

/* A reference. Its content is known if `stamp` is newer than the last unknown
 * effect. */
typedef struct pe_cell {
  pe_value *content;
  uint64_t stamp;
} pe_cell;

struct pe_value {
  pe_kind kind;
  bool whole;    /* a tensor, or a tuple of such: operators can be computed */
  uint64_t time; /* when it was made: later values are greater */
  /* What computes it: a node of the builder; of `atom` if that is not NULL, a
   * name that is copied where it is used; or a function of the module. */
  pln_ref node;
  const pln_graph *atom;
  pln_symbol global;
  union {
    const pln_tensor *tensor;
    pe_closure *closure;
    pe_cell *cell;
    pln_symbol constructor;
  } of;
  uint32_t n; /* PE_TUPLE, PE_ADT */
  pe_value **fields;
};

/* The arguments of a function that is being inlined: when each was made, and
 * its value if it is a positive integer. */
typedef struct pe_fuel {
  uint32_t n;
  uint64_t *times, *sizes;
} pe_fuel;

/* ------------------------------------------------------------------- frames */

/* A call that is being inlined. */
typedef struct pe_frame {
  pe_source *source;
  pln_ref function;
  pe_value **slots;
  pe_types types;
} pe_frame;

typedef enum pe_task_kind {
  PE_VISIT,          /* push the value of a node */
  PE_VISIT_ARGUMENT, /* the same for an argument of an operator */
  PE_STATEMENT,      /* a statement of a scope, then the rest of the scope */
  PE_BIND,           /* a statement whose value is on the stack */
  PE_COMBINE,        /* a node whose operands are on the stack */
  PE_CHOOSE,         /* an If whose condition is on the stack */
  PE_SELECT,         /* a Match whose data is on the stack */
  PE_BEGIN_BRANCH,   /* open the scope of a branch or arm */
  PE_END_BRANCH,
  PE_JOIN,         /* an If or Match whose branches are on the stack */
  PE_RETURN,       /* an inlined call has its value */
  PE_END_FUNCTION, /* the body of a Function is complete */
  PE_END_GLOBAL    /* a function of the module is complete */
} pe_task_kind;

typedef struct pe_task {
  pe_task_kind kind;
  uint32_t at; /* a node or scope of the current frame's graph */
  void *data;
} pe_task;

/* An undo log of the store. */
typedef struct pe_undo {
  pe_cell *cell;
  pe_cell before;
} pe_undo;
typedef struct pe_store_mark {
  uint32_t undo;
  uint64_t barrier;
} pe_store_mark;

typedef struct pe_global {
  pe_value *value; /* NULL: not evaluated yet */
  pln_graph *result;
} pe_global;

typedef struct pe_run {
  pln_engine *engine;
  const pln_module *module;
  pln_arena arena; /* values, closures, frames, saved state */
  pe_source *sources;
  pe_global *globals;
  uint64_t time, stamp, barrier, steps, most_steps;
  pln_builder *b;
  pe_frame *frame;
  pe_task *tasks;
  pe_value **values;
  pe_undo *undo;
  pln_ref *scopes; /* scopes of finished branches */
  uint32_t n_tasks, cap_tasks, n_values, cap_values, n_undo, cap_undo;
  uint32_t n_scopes, cap_scopes;
} pe_run;

/* value.c */
void *pe_alloc(pe_run *pe, size_t size); /* zeroed; NULL with a diagnostic */
/* Makes a value with a new time. */
pln_status pe_value_new(pe_run *pe, pe_kind kind, pln_ref node,
                        pe_value **out) PLN_CHECKED;
pln_status pe_push(pe_run *pe, pe_value *value) PLN_CHECKED;
pe_value *pe_pop(pe_run *pe);
pln_status pe_later(pe_run *pe, pe_task_kind kind, uint32_t at,
                    void *data) PLN_CHECKED;
/* The store: content that is not known is NULL. */
pln_status pe_store_write(pe_run *pe, pe_cell *cell,
                          pe_value *content) PLN_CHECKED;
pe_value *pe_store_read(const pe_run *pe, const pe_cell *cell);
/* An unknown effect: no content is known any more. */
void pe_store_invalidate(pe_run *pe);
pe_store_mark pe_store_begin(const pe_run *pe);
void pe_store_rollback(pe_run *pe, pe_store_mark mark);

/* variables.c: the slot of a variable in the current frame. */
pe_value **pe_slot(const pe_run *pe, pln_ref var);
/* A closure of a function of the current frame's graph. `self`: the variable
 * that a let binds to it, or PLN_NONE. */
pln_status pe_closure_new(pe_run *pe, pln_ref function, pln_ref self,
                          pe_closure **out) PLN_CHECKED;
/* The type with the type parameters of the frame replaced. */
pln_status pe_type(pe_run *pe, const pe_types *types, pln_type type,
                   pln_type *out) PLN_CHECKED;

/* residual.c: *out is a node in the current scope. */
pln_status pe_node(pe_run *pe, const pe_value *value, pln_ref *out) PLN_CHECKED;
/* Binds a node by a let: *out is an unknown value, or one of that kind. */
pln_status pe_bind(pe_run *pe, pe_kind kind, pln_ref node,
                   pe_value **out) PLN_CHECKED;
pln_status pe_tensor(pe_run *pe, const pln_tensor *tensor,
                     pe_value **out) PLN_CHECKED;
/* Writes a call, and binds it. */
pln_status pe_residual_call(pe_run *pe, pln_ref call, const pe_value *callee,
                            uint32_t n, pe_value **args,
                            pe_value **out) PLN_CHECKED;
/* Computes a call of an operator if all arguments are known, else writes it. */
pln_status pe_operator_call(pe_run *pe, pln_ref call, pln_op op, uint32_t n,
                            pe_value **args, pe_value **out) PLN_CHECKED;

/* apply.c: inlines a call of a closure, or writes it down if that makes no
 * progress. Pushes the value, now or by later tasks. */
pln_status pe_apply(pe_run *pe, pln_ref call, pe_value *callee, uint32_t n,
                    pe_value **args) PLN_CHECKED;
/* Evaluates the body of a closure on unknown arguments, in the scope that is
 * open, which gets its parameters. Pushes the result. */
pln_status pe_apply_unknown(pe_run *pe, pe_value *closure) PLN_CHECKED;
pln_status pe_return(pe_run *pe, void *data) PLN_CHECKED;

/* pattern.c: whether the value matches the pattern of an arm. Sets the slots of
 * the pattern's variables as far as it does. */
typedef enum pe_match { PE_MATCH, PE_NO_MATCH, PE_MATCH_UNKNOWN } pe_match;
pln_status pe_match_pattern(pe_run *pe, pln_scope arm, pe_value *data,
                            pe_match *out) PLN_CHECKED;

#endif
