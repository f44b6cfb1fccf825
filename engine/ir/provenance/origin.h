/* origin.h: where nodes come from. One table for a graph and its descendants,
 * append-only; a node has a number (4 bytes): 0, nothing is known; a row, its
 * source; with the high bit a step, what a pass made of other origins. */

#ifndef PLN_IR_PROVENANCE_ORIGIN_H
#define PLN_IR_PROVENANCE_ORIGIN_H

#include "base/base.h"
#include "base/file.h"

typedef struct pln_origin {
  pln_symbol name; /* hint: an ONNX value name, a Lua name; 0 none */
  uint32_t parent; /* the origin it was named or placed from; 0 none */
  pln_symbol
      script; /* the Lua file that built it, and the line there; 0 none */
  uint32_t line;
  pln_file *file;  /* borrowed from the table; NULL none */
  uint64_t offset; /* the slice of the file: an ONNX NodeProto, */
  uint64_t length; /*   TensorProto or GraphProto without its length prefix */
  uint64_t graph;  /* where the graph begins that the slice is a field of */
  pln_type type;   /* of the node, when all of its function was read */
  pln_op op;       /* what the slice was imported as, to tell changes */
  pln_attrs attrs;
  pln_source_span place; /* in a text that was read; row 0: none */
  bool place_printed;    /* shown by the printer */
  bool whole;            /* the slice is a graph, no node of one */
  /* In which order a Function's attributes stood: a list of entries that have
   * nothing but names; 0: by name. */
  pln_attrs attr_order;
} pln_origin;

#define PLN_ORIGIN_STEP 0x80000000u

/* Who made a step: rule 0, a pass that names no rule; pass 0, no pass. */
typedef struct pln_change {
  pln_symbol pass, rule;
  uint32_t run; /* of the pass, in the outermost application */
} pln_change;

/* One for all nodes that an application made of the same origin. */
typedef struct pln_origin_step {
  uint32_t change;
  uint32_t number; /* of the application in its run; 0: not counted */
  uint32_t parent; /* the origin whose name and place it has; 0: none */
  uint32_t other;  /* one that it was made from too; 0: none */
} pln_origin_step;

/* What an origin with a slice was in its format; empty: it has none. */
typedef struct pln_slice_names {
  pln_slice name, output, op; /* the first output; the operator */
} pln_slice_names;
typedef pln_slice_names (*pln_names_fn)(const pln_origin *origin);

typedef struct pln_origins {
  pln_engine *engine;
  uint32_t refs;
  /* Of a child's table: the parent's, whose rows come first, and how many. */
  struct pln_origins *base;
  uint32_t below;
  uint32_t merged;          /* the first own row, once it is the parent's */
  uint32_t count, capacity; /* row 0 is "nothing is known" */
  pln_origin *rows;         /* from `below` on */
  uint32_t steps_below, n_steps, cap_steps; /* likewise */
  pln_origin_step *steps;
  uint32_t changes_below, n_changes, cap_changes;
  pln_change *changes;
  uint32_t merged_steps;
  pln_idmap *by_line; /* script and line -> row; made when first needed */
  uint32_t n_files, cap_files;
  pln_file **files;   /* retained */
  pln_names_fn names; /* of rows with a slice and without a name, or NULL */
  bool declares;      /* types of nodes were declared beyond what is inferred */
  bool lenient;       /* a file: it may have ill-typed calls that never run */
  bool misfits;       /* the file has calls that do not fit what they call */
} pln_origins;

pln_status pln_origins_new(pln_engine *engine, pln_origins **out) PLN_CHECKED;
/* A child's table over its parent's. */
pln_status pln_origins_child(pln_engine *child, pln_origins *base,
                             pln_origins **out) PLN_CHECKED;
static inline const pln_origin *pln_origins_row(const pln_origins *origins,
                                                uint32_t row) {
  return row < origins->below ? &origins->base->rows[row]
                              : &origins->rows[row - origins->below];
}
/* Remembers types of nodes in the rows that they have. */
void pln_origins_note_types(pln_graph *graph);
pln_origins *pln_origins_retain(pln_origins *origins);
void pln_origins_release(pln_origins *origins);
/* Appends a row; retains its file. */
pln_status pln_origins_add(pln_origins *origins, const pln_origin *row,
                           uint32_t *out) PLN_CHECKED;
/* The row that a script's line has. */
pln_status pln_origins_line(pln_origins *origins, pln_symbol script,
                            uint32_t line, uint32_t *out) PLN_CHECKED;
/* What the application at work makes of `parent` and `other` (either may be 0):
 * a step, or `parent` itself where no pass and no rule is at work. */
pln_status pln_origins_step(pln_origins *origins, uint32_t parent,
                            uint32_t other, uint32_t *out) PLN_CHECKED;
/* The same of a change that is told. */
pln_status pln_origins_add_step(pln_origins *origins, const pln_change *change,
                                pln_origin_step step,
                                uint32_t *out) PLN_CHECKED;
/* Appends the step of a child's table, equal to the last one or not. */
pln_status pln_origins_move_step(pln_origins *origins, const pln_change *change,
                                 pln_origin_step step) PLN_CHECKED;
static inline const pln_origin_step *pln_origins_step_at(const pln_origins *o,
                                                         uint32_t origin) {
  uint32_t i = origin & ~PLN_ORIGIN_STEP;
  return i < o->steps_below ? &o->base->steps[i]
                            : &o->steps[i - o->steps_below];
}
static inline const pln_change *
pln_origins_change(const pln_origins *o, const pln_origin_step *step) {
  uint32_t i = step->change;
  return i < o->changes_below ? &o->base->changes[i]
                              : &o->changes[i - o->changes_below];
}
/* The row behind the steps; 0: none. */
static inline uint32_t pln_origins_source(const pln_origins *origins,
                                          uint32_t origin) {
  while (origin & PLN_ORIGIN_STEP)
    origin = pln_origins_step_at(origins, origin)->parent;
  return origin;
}
/* The row that tells a place: `row`, or what it was named from; 0: none. */
uint32_t pln_origins_place(const pln_origins *origins, uint32_t row);
/* The order of attributes that `row`, or what it was named from, tells. */
pln_attrs pln_origins_attr_order(const pln_origins *origins, uint32_t row);
/* The row's slice is a node of the file's format. */
bool pln_origins_is_node(const pln_origins *origins, const pln_origin *row);
/* What row `row`, or what it was made from, is to its source, for messages and
 * as snprintf does; 0 when nothing is known. */
size_t pln_origins_describe(const pln_origins *origins, uint32_t row,
                            char *text, size_t size);

#endif
