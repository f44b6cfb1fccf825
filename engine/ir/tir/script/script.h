/* tir/script/script.h: shared declarations of the TVMScript printer: lines,
 * names, frames.
 *
 * A declaration may have to be inserted before lines already written: a buffer
 * or an unbound variable is declared in the innermost frame that contains all
 * its uses. Therefore lines are a linked list, and each frame remembers the
 * line before its current statement. */

#ifndef PLN_IR_TIR_SCRIPT_SCRIPT_H
#define PLN_IR_TIR_SCRIPT_SCRIPT_H

#include "ir/tir/tir.h"

typedef struct pln_script_line {
  size_t offset, size; /* range in the text */
  uint32_t next;
  uint32_t indent;
} pln_script_line;

/* How a variable or buffer is written. */
typedef struct pln_script_name {
  uint32_t word;  /* row of words; PLN_NONE: a field of `buffer` */
  pln_ref buffer; /* whose data, strides[index] or elem_offset it is */
  uint32_t field; /* PLN_SCRIPT_DATA, ... */
  uint32_t index; /* of a stride */
  uint32_t next;  /* next name of the same frame + 1 */
  bool live;
} pln_script_name;

/* An identifier in use. */
typedef struct pln_script_identifier {
  pln_symbol symbol;
  uint32_t base; /* row of the identifier without its number */
  uint32_t number;
  uint32_t low; /* lower numbers are in use */
  bool used;
} pln_script_identifier;

enum { PLN_SCRIPT_DATA, PLN_SCRIPT_STRIDE, PLN_SCRIPT_OFFSET };

/* A frame: the statements of a scope, or an indented part of them. */
typedef struct pln_script_frame {
  pln_ref next;       /* the next statement, or PLN_NONE */
  pln_ref begin, end; /* its nodes [begin, end) */
  pln_scope other;    /* the following else branch, or PLN_NONE */
  uint32_t indent;
  uint32_t mark;  /* the line before the current statement */
  pln_ref owner;  /* owner of the scope, or PLN_NONE */
  pln_ref only;   /* the only statement of a branch, or PLN_NONE */
  uint32_t names; /* the newest name that ends with the frame + 1 */
} pln_script_frame;

/* A part of an expression still to be printed. */
typedef struct pln_script_fragment {
  const char *text;
  int64_t number;
  uint32_t ref;  /* a node; the type of a number or dtype; attributes */
  uint8_t what;  /* kinds of tir/script/expr.c */
  uint8_t least; /* a node of lower precedence is parenthesised */
} pln_script_fragment;

typedef struct pln_script_printer {
  pln_engine *engine;
  const pln_graph *g;
  const char *module; /* prefix of GlobalVars in calls, such as "Module" */
  pln_buffer text;
  pln_status status; /* the first failure; suppresses later output */
  pln_script_line *lines;
  uint32_t n_lines, cap_lines, last;
  pln_script_frame *frames;
  uint32_t n_frames, cap_frames;
  pln_script_name *names;
  uint32_t n_names, cap_names;
  pln_idmap *defined; /* Var or Buffer -> its row of names + 1 */
  pln_script_identifier *words;
  uint32_t n_words, cap_words;
  pln_idmap *taken; /* symbol -> its row of words + 1 */
  pln_script_fragment *fragments;
  uint32_t n_fragments, cap_fragments;
  pln_ref *stack; /* stack of traversals */
  uint32_t n_stack, cap_stack;
  pln_ref *low, *high;         /* per node: the first and last statement that
                                * uses it */
  pln_ref *head, *next, *tail; /* statements of each scope in order */
  pln_scope *binder;           /* per parameter: its scope */
  size_t nodes, scopes;        /* lengths of these tables */
  uint32_t *seen;              /* per node: the last traversal that visited
                                * it */
  uint32_t walks;
  size_t *places; /* per node: where its text begins, SIZE_MAX: nowhere; or
                   * NULL: nobody asks */
  size_t noted;   /* how often such a place was reached */
  const pln_ref
      *layouts;       /* buffers of parameters whose transforms of layouts */
  uint32_t n_layouts; /* the next attributes are to print */
  pln_idmap *tensors; /* tensors printed as metadata -> index + 1 */
  uint32_t n_tensors;
} pln_script_printer;

/* --------------------------------------------------- lines
 * (tir/script/lines.c) */

void pln_script_fail(pln_script_printer *s, pln_status status);
void pln_script_write(pln_script_printer *s, const char *text);
void pln_script_write_slice(pln_script_printer *s, pln_slice text);
void pln_script_write_int(pln_script_printer *s, int64_t value);
/* "text" with Python's escapes. */
void pln_script_write_quoted(pln_script_printer *s, pln_slice text);
/* Ends the line whose text starts at `offset` and inserts it after line
 * `after`, or at the end of the list; returns its number. */
uint32_t pln_script_line_end(pln_script_printer *s, size_t offset,
                             uint32_t indent);
uint32_t pln_script_line_insert(pln_script_printer *s, size_t offset,
                                uint32_t indent, uint32_t after);

/* The text of a node begins here, unless it stands before, too. */
static inline void pln_script_note_place(pln_script_printer *s, pln_ref ref) {
  if (!s->places)
    return;
  if (s->places[ref] == SIZE_MAX)
    s->places[ref] = s->text.size;
  if (s->status == PLN_OK) /* a pass asks, which may be stopped */
    s->status = pln_poll_round(s->engine, s->noted++);
}

/* --------------------------------------------------- names
 * (tir/script/names.c) */

/* NULL when the Var or Buffer has no name yet. */
const pln_script_name *pln_script_find(const pln_script_printer *s,
                                       pln_ref ref);
/* Gives a Var or Buffer a unique name, or makes it a field of a buffer, until
 * that frame ends. */
void pln_script_define(pln_script_printer *s, pln_ref ref, uint32_t frame);
void pln_script_define_field(pln_script_printer *s, pln_ref var, pln_ref buffer,
                             uint32_t field, uint32_t index, uint32_t frame);
void pln_script_end_names(pln_script_printer *s, uint32_t frame);
/* The innermost frame that contains all uses of the node. */
uint32_t pln_script_frame_of(const pln_script_printer *s, pln_ref ref);

/* ---------------------------------------------- expressions
 * (tir/script/expr.c) */

/* Operator precedences of Python. */
enum {
  PLN_PREC_ANY,
  PLN_PREC_OR,
  PLN_PREC_AND,
  PLN_PREC_NOT,
  PLN_PREC_COMPARE,
  PLN_PREC_ADD,
  PLN_PREC_MUL,
  PLN_PREC_ATOM
};

/* Prints an expression whose variables have names. */
void pln_script_expr(pln_script_printer *s, pln_ref ref);
/* "a[i, j]"; `full`: a range of length one is printed as a range. */
void pln_script_indices(pln_script_printer *s, pln_ref buffer,
                        const pln_ref *indices, uint32_t n, bool full);
/* "float32x4" in quotes; "void" for the empty tuple. */
void pln_script_dtype(pln_script_printer *s, pln_type type);
/* The same for a dtype given by its name. */
void pln_script_dtype_text(pln_script_printer *s, pln_slice text);
/* The constructor of a variable of that type: T.int32, T.handle("float32"). */
void pln_script_type(pln_script_printer *s, pln_type type);
/* %.17g; NaN and infinities in quotes. */
void pln_script_number(pln_script_printer *s, double value);
/* A metadata entry, whose contents are not printed. */
void pln_script_tensor(pln_script_printer *s, const pln_tensor *tensor);
void pln_script_attrs(pln_script_printer *s, pln_attrs attrs, const char *but);
/* Transforms of layouts, which TVMScript has as an attribute of the function
 * (tir/script/layout.c): whether a Buffer has any; the entry
 * "layout_transform_map" of so many buffers that have names, which is printed
 * once. */
bool pln_script_has_layout(const pln_script_printer *s, pln_ref buffer);
void pln_script_layouts(pln_script_printer *s);
/* min + extent, folded as TVM does. */
void pln_script_sum(pln_script_printer *s, pln_ref min, pln_ref extent);

/* --------------------------------------------------- buffers
 * (tir/script/buffer.c)
 */

enum { PLN_DEFINES_NOTHING, PLN_DEFINES_DATA, PLN_DEFINES_ALL };

/* Declares what the expressions of a statement use and nothing has declared. */
void pln_script_declare(pln_script_printer *s, pln_ref ref);
/* Prints "name = T.<method>(<first>, ...)", or "with ... as name:". The name,
 * and what is declared with it, ends with that frame; `first` may be
 * PLN_NONE. */
enum { PLN_SCRIPT_INSERTED, PLN_SCRIPT_APPENDED, PLN_SCRIPT_WITH };
typedef struct pln_script_declaration {
  pln_ref buffer, first;
  const char *method;
  int defines;
  uint32_t frame;
  int place;       /* before the frame's statement, or at the end */
  uint32_t indent; /* of an appended line */
} pln_script_declaration;
void pln_script_buffer(pln_script_printer *s, const pln_script_declaration *d);
/* Prints shape and dtype, as for a parameter in that frame. */
void pln_script_annotation(pln_script_printer *s, pln_ref buffer,
                           uint32_t frame);
/* True if the data of the Buffer is a pointer as reading makes it: to its
 * elements, of bools to int8. */
bool pln_script_has_usual_data(const pln_script_printer *s, pln_ref buffer);
/* True if only shape and dtype need to be printed. */
bool pln_script_is_plain(const pln_script_printer *s, pln_ref buffer);

/* ------------------------------------------------ statements
 * (tir/script/stmt.c)
 */

void pln_script_push_frame(pln_script_printer *s,
                           const pln_script_frame *frame);
/* Prints one statement; `concise`: it is the last one of its frame. */
void pln_script_stmt(pln_script_printer *s, pln_ref ref, bool concise);
void pln_script_else(pln_script_printer *s, pln_ref owner, pln_scope other);
/* Pushes a node on the traversal stack. */
void pln_script_visit(pln_script_printer *s, pln_ref ref);

#endif
