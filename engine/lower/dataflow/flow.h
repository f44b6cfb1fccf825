/* flow.h: shared declarations of the analysis of buffers (dataflow.h).
 *
 * A fact says of the elements of a region what they hold (forwards), or that
 * they are overwritten before they are read (backwards). Facts never change:
 * what limits one makes another. Functions that make terms return PLN_NO_TERM
 * after a failure, and the analyzer keeps its status (arith.h). */

#ifndef PLN_LOWER_DATAFLOW_FLOW_H
#define PLN_LOWER_DATAFLOW_FLOW_H

#include "lower/dataflow/dataflow.h"

/* Limits, so that the work for a statement is bounded. What exceeds one is not
 * known. */
enum {
  FLOW_MOST_AXES = 6,       /* dimensions of a buffer */
  FLOW_MOST_FACTS = 8,      /* of the memory of a pointer */
  FLOW_MOST_CONDITIONS = 8, /* of a fact */
  FLOW_MOST_ACCESSES = 32,  /* of a loop */
  FLOW_MOST_CHANGES = 64,   /* pointers whose facts a body changes */
  FLOW_MOST_SIZE = 256,     /* nodes of an expression */
  FLOW_MOST_BRANCH = 256,   /* nodes of a branch that is compared */
};

/* The elements whose index in each dimension is in [lo, hi]; PLN_NO_TERM in
 * both: in any. */
typedef struct flow_region {
  pln_term buffer; /* equal Buffers are one term */
  uint32_t memory; /* that of its pointer */
  uint32_t rank;
  pln_term lo[FLOW_MOST_AXES], hi[FLOW_MOST_AXES];
  uint8_t dtype[FLOW_MOST_AXES + 2]; /* no padding: regions are compared */
} flow_region;

/* Conditions and value are expressions of the axis variables, which stand for
 * the indices of an element, and of variables of the program. */
typedef struct flow_fact {
  flow_region region;
  uint32_t n_conditions;
  pln_term conditions[FLOW_MOST_CONDITIONS];
  pln_term value;
  uint32_t root;  /* the fact that this one was first */
  pln_ref access; /* the statement or load that made it, or PLN_NONE */
} flow_fact;

typedef struct flow_list {
  uint32_t epoch; /* another one than the flow's: there are no facts */
  uint32_t n;
  uint32_t ids[FLOW_MOST_FACTS];
} flow_list;

/* The facts of a pointer as they were when a body began. */
typedef struct flow_change {
  uint32_t memory, recorded_by;
  flow_list before;
} flow_change;

/* What a branch made of the facts of a pointer. */
typedef struct flow_outcome {
  uint32_t memory, branch;
  flow_list before, after;
} flow_outcome;

typedef struct flow_frame {
  uint32_t serial, first_change, first_outcome, first_fact, epoch;
  uint32_t mark;      /* constraints of the analyzer */
  bool cleared;       /* a body forgot everything */
  pln_term condition; /* of a branch, if it reads nothing */
  int known;          /* what the condition is: 1, 0, or -1 */
} flow_frame;

/* An access in a loop's body: its region in the loop's variable. */
typedef struct flow_access {
  pln_ref access;
  flow_region region;
} flow_access;

/* The accesses of a loop, by its scope. */
typedef struct flow_accesses {
  uint32_t first, n;
  bool all; /* anything may be accessed */
} flow_accesses;

typedef enum flow_event_kind {
  FLOW_OPEN,   /* a statement with bodies, before these */
  FLOW_ENTER,  /* a scope */
  FLOW_LEAVE,  /* a scope */
  FLOW_CLOSE,  /* the statement again, behind its bodies */
  FLOW_SIMPLE, /* a statement without bodies */
} flow_event_kind;

typedef struct flow_event {
  uint8_t kind;
  uint32_t at; /* a statement, or a scope */
} flow_event;

typedef struct pln_flow {
  const pln_graph *g;
  pln_analyzer *a;
  pln_buffer_flow *out;
  pln_status status; /* of an import that failed: the analyzer forgets it */
  bool backward, removing;
  bool comparing; /* branches are compared: `general` */
  bool blind;     /* nothing is known of buffers */
  flow_event *events;
  uint32_t n_events, cap_events;
  uint32_t *enter_of, *leave_of; /* by scope: its events */
  /* Terms: what a variable of a LetStmt or a load stands for now. */
  pln_term *value_now;
  uint32_t cap_value_now;
  pln_term axis[FLOW_MOST_AXES][2]; /* of int32 and of int64 */
  pln_term lane[2];
  /* Pointers. */
  uint32_t *memory_of; /* by term: 1 + its number, or 0 */
  uint32_t cap_memory_of, n_memories, cap_lists, cap_recorded, cap_wild;
  flow_list *lists;
  uint32_t *recorded; /* the innermost frame that recorded it */
  bool *wild;         /* it may point into memory of another */
  bool escapes;       /* a call that is not known was given a pointer */
  uint32_t epoch, epochs, serials;
  uint32_t floor; /* what was known in epochs before it is forgotten */
  flow_fact *facts;
  uint32_t n_facts, cap_facts;
  flow_change *changes;
  uint32_t n_changes, cap_changes;
  flow_outcome *outcomes;
  uint32_t n_outcomes, cap_outcomes;
  flow_frame *frames;
  uint32_t n_frames, cap_frames;
  flow_accesses *accesses_of; /* by scope of a loop */
  flow_access *accesses;
  uint32_t n_accesses, cap_accesses;
  /* The loads and calls of the present statement. */
  pln_ref *reads;
  uint32_t n_reads, cap_reads;
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
  uint32_t *visited; /* by node: the last search for reads that met it */
  uint32_t searches;
} pln_flow;

/* ----------------------------------------------------------- flow_events.c */

/* The statements and scopes of the function, in the order of execution. */
pln_status pln_flow_list_events(pln_flow *x) PLN_CHECKED;
/* Lists in x->reads the loads and the calls with effects of a statement's
 * operands from `first` on, each before those that use it. */
pln_status pln_flow_find_reads(pln_flow *x, pln_ref stmt,
                               uint32_t first) PLN_CHECKED;
/* Whether a call is given a pointer. */
bool pln_flow_takes_pointer(const pln_flow *x, pln_ref call);
/* Whether nothing is known of memory after the call; backwards: before it. */
bool pln_flow_forgets(const pln_flow *x, pln_ref call);

/* ----------------------------------------------------------- flow_region.c */

/* The term of an expression with the values of variables and loads. PLN_NO_TERM
 * if it reads memory otherwise, has an effect, or is too large. */
pln_term pln_flow_term(pln_flow *x, pln_ref expr);
/* The same, where reads of memory may be left. */
pln_term pln_flow_reading_term(pln_flow *x, pln_ref expr);
pln_status pln_flow_set_value(pln_flow *x, pln_term t,
                              pln_term value) PLN_CHECKED;
/* Variables of a LetStmt or Block stand for their values in its scope. */
pln_status pln_flow_bind_params(pln_flow *x, pln_scope scope) PLN_CHECKED;
/* The region of a BufferLoad or BufferStore whose indices begin at operand
 * `first`. *exact: it is not larger than what is accessed. */
pln_status pln_flow_region_of(pln_flow *x, pln_ref access, uint32_t first,
                              flow_region *out, bool *exact) PLN_CHECKED;
/* The number of a Buffer's pointer. */
pln_status pln_flow_memory(pln_flow *x, pln_ref data,
                           uint32_t *out) PLN_CHECKED;
/* The axis variable of a dimension. */
pln_term pln_flow_axis(pln_flow *x, uint32_t k, uint8_t dtype);
/* The region that it is while `var` is in [from, to]. */
flow_region pln_flow_sweep(pln_flow *x, const flow_region *r, pln_term var,
                           pln_term from, pln_term to);
bool pln_flow_uses(pln_flow *x, const flow_region *r, pln_term var);
/* The same for all of its values; PLN_NO_TERM: there is no variable. */
flow_region pln_flow_all_iterations(pln_flow *x, const flow_region *r,
                                    pln_term var, pln_term min, pln_term max);
/* not (element in region), in axis variables; PLN_NO_TERM: never. */
pln_term pln_flow_outside(pln_flow *x, const flow_region *r);

/* ------------------------------------------------------------- flow_fact.c */

pln_status pln_flow_add_fact(pln_flow *x, const flow_fact *fact,
                             uint32_t *out) PLN_CHECKED;
/* The fact under one more condition; PLN_NONE: it never holds, or is too long.
 */
pln_status pln_flow_limit(pln_flow *x, uint32_t fact, pln_term condition,
                          uint32_t *out) PLN_CHECKED;
/* The fact without a region, unless `guard` holds (PLN_NO_TERM: never). */
pln_status pln_flow_exclude(pln_flow *x, uint32_t fact, const flow_region *r,
                            pln_term guard, uint32_t *out) PLN_CHECKED;
/* Whether the fact holds of all that an access touches. *value: what it says
 * there, or PLN_NO_TERM. */
bool pln_flow_covers(pln_flow *x, const flow_fact *fact, pln_ref access,
                     uint32_t first, const flow_region *r, pln_term *value);
bool pln_flow_fact_uses(pln_flow *x, const flow_fact *fact, pln_term var);

/* ------------------------------------------------------------ flow_state.c */

/* The facts of a pointer, newest first. */
const flow_list *pln_flow_facts(const pln_flow *x, uint32_t memory);
/* To be called before they change; *list may be written. */
pln_status pln_flow_change(pln_flow *x, uint32_t memory,
                           flow_list **list) PLN_CHECKED;
pln_status pln_flow_learn(pln_flow *x, const flow_fact *fact) PLN_CHECKED;
/* An access makes facts of its region invalid. */
pln_status pln_flow_forget(pln_flow *x, const flow_region *r,
                           pln_term guard) PLN_CHECKED;
/* All that is known of the memory of a pointer. */
pln_status pln_flow_forget_memory(pln_flow *x, uint32_t memory) PLN_CHECKED;
void pln_flow_forget_all(pln_flow *x);
pln_status pln_flow_push(pln_flow *x) PLN_CHECKED;
/* The innermost frame ends, and its facts stay. */
void pln_flow_pop(pln_flow *x);
/* It ends as branch `k` of a statement: the facts before it are back, and what
 * it made of them is an outcome. */
pln_status pln_flow_pop_branch(pln_flow *x, uint32_t k) PLN_CHECKED;
/* Joins the outcomes of the innermost frame, by its condition and what is known
 * of it, and ends it. */
pln_status pln_flow_join(pln_flow *x) PLN_CHECKED;
/* Facts that mention the variable go, those that the innermost frame made. */
pln_status pln_flow_forget_var(pln_flow *x, pln_term var) PLN_CHECKED;

/* ---------------------------------------------------------- flow_general.c */

/* Whether the branch beside branch `k` of an IfThenElse may run in its place:
 * to be called where branch k begins (backwards: ends). */
pln_status pln_flow_compare_branches(pln_flow *x, pln_ref branching,
                                     uint32_t k) PLN_CHECKED;
/* buffer_flow.c: what a load gives, if that is known. */
pln_status pln_flow_answer_load(pln_flow *x, pln_ref load) PLN_CHECKED;
/* The values of the loads in x->reads are not those of what follows. */
pln_status pln_flow_end_reading(pln_flow *x) PLN_CHECKED;

/* ------------------------------------------------------------- flow_loop.c */

/* The variable, first and last value of a loop; PLN_NO_TERM: not known. */
typedef struct flow_range {
  pln_term var, min, max;
  bool serial;
} flow_range;
pln_status pln_flow_range_of(pln_flow *x, pln_scope scope,
                             flow_range *out) PLN_CHECKED;

/* Finds what each loop accesses. */
pln_status pln_flow_find_accesses(pln_flow *x) PLN_CHECKED;
/* Begins the body of a loop: what earlier iterations accessed (backwards:
 * later ones) is not known. */
pln_status pln_flow_enter_loop(pln_flow *x, pln_scope scope) PLN_CHECKED;
/* Ends it: what held before, and was not accessed, and what the iterations
 * made. */
pln_status pln_flow_leave_loop(pln_flow *x, pln_scope scope) PLN_CHECKED;

#endif
