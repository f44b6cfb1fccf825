/* origin.h: origins of nodes (provenance). A graph and its descendants share
 * one append-only table. A node stores a 4-byte origin: 0: unknown; a row: its
 * source; with the high bit set a step: what a pass made from other origins. */

#ifndef PLN_IR_PROVENANCE_ORIGIN_H
#define PLN_IR_PROVENANCE_ORIGIN_H

#include "base/base.h"
#include "base/file/file.h"

typedef struct pln_origin {
  pln_symbol name;   /* hint: an ONNX value name, a Lua name; 0 none */
  uint32_t parent;   /* the origin of its name and location; 0 none */
  pln_symbol script; /* the Lua file and line that built it; 0 none */
  uint32_t line;
  pln_file *file;  /* borrowed from the table; NULL none */
  uint64_t offset; /* range in the file: an ONNX NodeProto, */
  uint64_t length; /*   TensorProto or GraphProto without its length prefix */
  uint64_t graph;  /* start of the graph whose field the range is */
  pln_type type;   /* the node's type when its whole function was read */
  pln_op op;       /* imported operator, to detect changes */
  pln_attrs attrs;
  pln_source_span place; /* span in a parsed text; row 0: none */
  bool place_printed;    /* the printer writes it */
  bool whole;            /* the range is a graph, not a node of one */
  /* Source order of a Function's attributes: a list of entries with names only;
   * 0: sorted by name. */
  pln_attrs attr_order;
} pln_origin;

#define PLN_ORIGIN_STEP 0x80000000u

/* What made a step: rule 0: a pass without a named rule; pass 0: no pass. */
typedef struct pln_change {
  pln_symbol pass, rule;
  uint32_t run; /* run of the pass within the outermost apply */
} pln_change;

/* One step for all nodes that an application made from the same origin. */
typedef struct pln_origin_step {
  uint32_t change;
  uint32_t number; /* of the application within its run; 0: not counted */
  uint32_t parent; /* the origin whose name and location it inherits; 0: none */
  uint32_t other;  /* a second origin that it was made from; 0: none */
} pln_origin_step;

/* Names of a file range in its format; empty: none. */
typedef struct pln_slice_names {
  pln_slice name, output, op; /* name, first output, operator */
} pln_slice_names;
typedef pln_slice_names (*pln_names_fn)(const pln_origin *origin);

typedef struct pln_origins {
  pln_engine *engine;
  uint32_t refs;
  /* In a child's table: the parent's table, whose rows come first, and their
   * number. */
  struct pln_origins *base;
  uint32_t below;
  uint32_t merged;          /* the first own row after merging into the
                             * parent */
  uint32_t count, capacity; /* row 0 means "unknown" */
  pln_origin *rows;         /* rows from `below` on */
  uint32_t steps_below, n_steps, cap_steps; /* the same for steps */
  pln_origin_step *steps;
  uint32_t cap_sources;
  uint32_t *sources; /* per own step: the row at the end of its chain of
                      * parents, which may be long */
  uint32_t changes_below, n_changes, cap_changes;
  pln_change *changes;
  uint32_t merged_steps;
  pln_idmap *by_line; /* script and line -> row; made when first used */
  uint32_t n_files, cap_files;
  pln_file **files;   /* retained */
  pln_names_fn names; /* names of rows that have a range but no name, or NULL */
  bool declares;      /* some declared types say more than inference finds */
  bool lenient;       /* read from a file: calls that never run may be
                       * ill-typed */
  bool
      mismatched_calls; /* the file has calls that do not match their callees */
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
/* Records the types of nodes in their rows. */
void pln_origins_note_types(pln_graph *graph);
pln_origins *pln_origins_retain(pln_origins *origins);
void pln_origins_release(pln_origins *origins);
/* Appends a row; retains its file. */
pln_status pln_origins_add(pln_origins *origins, const pln_origin *row,
                           uint32_t *out) PLN_CHECKED;
/* The row of a line of a script. */
pln_status pln_origins_line(pln_origins *origins, pln_symbol script,
                            uint32_t line, uint32_t *out) PLN_CHECKED;
/* The origin of what the current rule application makes from `parent` and
 * `other` (either may be 0): a step, or `parent` itself outside passes and
 * rules. */
pln_status pln_origins_step(pln_origins *origins, uint32_t parent,
                            uint32_t other, uint32_t *out) PLN_CHECKED;
/* The same for an explicit change. */
pln_status pln_origins_add_step(pln_origins *origins, const pln_change *change,
                                pln_origin_step step,
                                uint32_t *out) PLN_CHECKED;
/* Appends a step of a child's table without looking for an equal one. */
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
/* The row at the end of a chain of steps; 0: none. */
static inline uint32_t pln_origins_source(const pln_origins *o,
                                          uint32_t origin) {
  uint32_t i = origin & ~PLN_ORIGIN_STEP;
  if (i == origin)
    return origin;
  return i < o->steps_below ? o->base->sources[i]
                            : o->sources[i - o->steps_below];
}
/* The row that holds the span of `row`: itself or the row that it was named
 * from; 0: none. */
uint32_t pln_origins_place(const pln_origins *origins, uint32_t row);
/* The attribute order of `row` or of the row that it was named from. */
pln_attrs pln_origins_attr_order(const pln_origins *origins, uint32_t row);
/* True if the row's range is a node of the file's format. */
bool pln_origins_is_node(const pln_origins *origins, const pln_origin *row);
/* Describes the source of row `row` for messages, with snprintf's protocol; 0
 * when unknown. */
size_t pln_origins_describe(const pln_origins *origins, uint32_t row,
                            char *text, size_t size);

#endif
