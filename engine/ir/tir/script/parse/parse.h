/* tir/script/parse/parse.h: shared declarations of the parser of TVMScript.
 *
 * Nothing recurses: an expression is parsed with a stack of open brackets and
 * operators, statements with a stack of frames. A function that finds an error
 * reports it and fails; the line is skipped and parsing continues
 * (script/parse/stmt.c). Nodes are built freely and placed when a function is
 * sealed. */

#ifndef PLN_IR_TIR_SCRIPT_PARSE_PARSE_H
#define PLN_IR_TIR_SCRIPT_PARSE_PARSE_H

#include "ir/graph/module.h"
#include "ir/tir/script/parse/lex.h"
#include "ir/tir/tir.h"

typedef enum pln_script_method {
  PLN_METHOD_NONE,
#define METHOD(ID, name, when, parameters) PLN_METHOD_##ID,
#include "ir/tir/script/parse/methods.def"
  PLN_N_METHODS
} pln_script_method;

/* ------------------------------------------------------------------ values */

typedef enum pln_script_value_kind {
  PLN_V_ERROR, /* of a name whose definition was reported as wrong */
  PLN_V_INT,
  PLN_V_FLOAT,
  PLN_V_STRING,
  PLN_V_BOOL,
  PLN_V_NONE,
  PLN_V_EXPR,     /* a PrimExpr, IterVar, Range or CommReducer: `ref` */
  PLN_V_BUFFER,   /* `ref` */
  PLN_V_PRODUCER, /* `ref`: its Var */
  PLN_V_THREAD,   /* from env_thread: `ref` is its Var, `tag` its name */
  PLN_V_GRID,     /* the variables p->grids[first, first + n) of T.grid */
  PLN_V_INDEX,    /* buffer or producer `ref`, parts [first, first + n) */
  PLN_V_LIST,     /* items [first, first + n) */
  PLN_V_TUPLE,
  PLN_V_DICT,   /* keys and values alternately: n items */
  PLN_V_SLICE,  /* lower, upper, step: 3 items */
  PLN_V_TYPE,   /* `type`; `called`: T.int32() */
  PLN_V_METHOD, /* T.name: `number` */
  PLN_V_BUILTIN,
  PLN_V_MODULE,   /* T, I or the module: `number` */
  PLN_V_FUNCTION, /* a function of the module: `tag`, `type` its result */
  PLN_V_CALL,     /* of a method that its statement evaluates */
  PLN_V_VLOAD,    /* of the buffer `ref`: a method of it */
  PLN_V_VSTORE,
  PLN_V_STORE,   /* the BufferStore `ref`, which is to be a statement */
  PLN_V_STRIDES, /* of the buffer `ref` */
  PLN_V_SHAPE,
  PLN_V_LAMBDA, /* `lexer` positions are in parser->lambdas[number] */
  PLN_V_METADATA,
  PLN_V_TENSORS, /* metadata["runtime.NDArray"] */
  PLN_V_TENSOR   /* `number` of the metadata's */
} pln_script_value_kind;

typedef struct pln_script_value {
  uint8_t kind;   /* pln_script_value_kind */
  bool called;    /* TYPE */
  bool is_size;   /* TYPE: of a SizeVar */
  bool bracketed; /* TUPLE in parentheses */
  bool meta;      /* of T.meta_var: its name is no variable */
  bool target;    /* DICT, STRING: of T.target */
  uint32_t size;  /* as written: text [at, at + size) */
  const char *at;
  pln_slice key; /* of a keyword argument; else empty */
  uint32_t first, n;
  union {
    int64_t i;
    double f;
    pln_slice s; /* in the text; escapes are resolved */
    struct {
      pln_ref ref;
      pln_symbol tag;
      uint32_t number;
      pln_type type;
    } of;
  } v;
} pln_script_value;

/* The current meaning of a name; the former one is restored when its scope
 * ends. */
typedef struct pln_script_binding {
  pln_symbol name;
  uint32_t former; /* index + 1 of the binding it hides; 0: none */
  pln_script_value value;
} pln_script_binding;

/* An open bracket, or an operator whose right operand is being parsed. */
typedef struct pln_script_open {
  uint8_t what; /* of script/parse/expr.c */
  uint8_t prec;
  uint8_t colons; /* INDEX: of the current part */
  bool comma;     /* PAREN: a comma was parsed */
  uint16_t kind;  /* pln_kind of an operator */
  uint32_t first; /* its values are p->values from here on */
  const char *at;
  pln_slice key; /* CALL: keyword of the current argument */
} pln_script_open;

/* A lambda whose body is parsed when the types of its parameters are known. */
typedef struct pln_script_lambda {
  pln_script_lexer lexer; /* after the first token of the parameters */
  pln_script_token token; /* that token */
} pln_script_lambda;

/* ------------------------------------------------------------------ frames */

typedef enum pln_script_frame_what {
  PLN_F_MODULE, /* the whole text, or a class */
  PLN_F_PART,   /* statements outside a function */
  PLN_F_FUNCTION,
  PLN_F_OWNER, /* a statement with one body */
  PLN_F_THEN,
  PLN_F_ELSE,
  PLN_F_BLOCK,
  PLN_F_INIT
} pln_script_frame_what;

/* The statements of a body, and the statement that owns them. */
typedef struct pln_open_frame {
  uint8_t what;    /* pln_script_frame_what */
  uint8_t kind;    /* OWNER: pln_kind */
  bool realized;   /* BLOCK */
  uint8_t given;   /* BLOCK: 1 if it says what it reads, 2: writes */
  uint32_t indent; /* of its lines, from 0 */
  uint32_t header; /* indentation of the line that opened it */
  uint32_t stmts;  /* its statements are p->stmts from here on */
  uint32_t mark;   /* number of bindings before it */
  uint32_t saved;  /* operands, then parameters: p->saved from here on */
  uint32_t operands, params;
  uint32_t parts; /* BLOCK, FUNCTION: p->parts from here on */
  pln_attrs attrs;
  pln_symbol name; /* FUNCTION, BLOCK */
  pln_type type;   /* FUNCTION: its result */
  pln_ref ref;     /* ELSE: the other branch; BLOCK: its predicate */
  const char *at;  /* the line that opened it, for messages */
  uint32_t size;
} pln_open_frame;

/* What belongs to a block or function besides its statements. */
typedef struct pln_script_part {
  enum {
    PLN_PART_AXIS, /* a: variable, b: Range, c: value, number: its type */
    PLN_PART_READS,
    PLN_PART_WRITES,
    PLN_PART_ALLOC,
    PLN_PART_MATCH,
    PLN_PART_INIT,
    PLN_PART_BIND
  } what;
  pln_ref a, b, c; /* else `a`: the statement; ALLOC: the Buffer */
  int64_t number;
} pln_script_part;

/* The range of a loop's variable, for T.axis.remap. */
typedef struct pln_script_range {
  pln_ref min, extent;
} pln_script_range;

typedef struct pln_known_function {
  pln_symbol name;
  pln_type result; /* 0: nothing */
} pln_known_function;

typedef struct pln_script_parser {
  pln_engine *engine;
  pln_slice text;
  const char *source;
  pln_script_lexer lexer;
  pln_script_token token; /* never a bad one */
  uint32_t n_errors;
  bool part;          /* parsing statements or an expression, no module */
  bool in_lambda;     /* parsing the body of a lambda */
  bool has_producers; /* names of producers need no declaration */
  const char *place;  /* what is being built, for messages of builders */
  uint32_t place_size;
  bool outside; /* of a function: nothing of `b` is kept */
  pln_builder *b;
  pln_module *module;
  uint32_t open_from;    /* frames from here on wait for their first line */
  bool opened;           /* the previous line opened a block, */
  uint32_t header;       /* and its indentation */
  pln_ref result;        /* of a part: the expression of the last line */
  uint32_t blocks;       /* BlockRealizes of the current function */
  bool private_function; /* the next function has no global_symbol */
  pln_symbol class_name;
  pln_attrs module_attrs;
  pln_type types[4];    /* int32, float32, bool, handle */
  pln_idmap *names;     /* symbol -> index + 1 in bindings */
  pln_idmap *ranges;    /* loop variable -> index + 1 in loop_ranges */
  pln_idmap *functions; /* symbol -> index + 1 in known */
  pln_arena arena;      /* texts and attribute values of the current line */
  pln_buffer word;
  pln_script_binding *bindings;
  uint32_t n_bindings, cap_bindings;
  pln_known_function *known;
  uint32_t n_known, cap_known;
  pln_script_range *loop_ranges;
  uint32_t n_loop_ranges, cap_loop_ranges;
  pln_script_value *values; /* stack of the current expression */
  uint32_t n_values, cap_values;
  pln_script_value *kept; /* items of brackets of the current line */
  uint32_t n_kept, cap_kept;
  pln_script_open *open;
  uint32_t n_open, cap_open;
  pln_script_lambda *lambdas;
  uint32_t n_lambdas, cap_lambdas;
  pln_open_frame *frames;
  uint32_t n_frames, cap_frames;
  pln_script_part *parts;
  uint32_t n_parts, cap_parts;
  pln_ref *stmts;
  uint32_t n_stmts, cap_stmts;
  pln_ref *saved;
  uint32_t n_saved, cap_saved;
  pln_ref *refs; /* operands of the node being built */
  uint32_t n_refs, cap_refs;
  pln_ref *grids; /* variables of loops that one name stands for */
  uint32_t n_grids, cap_grids;
  pln_slice *targets; /* names that the current line assigns or loops over */
  uint32_t n_targets, cap_targets;
  pln_script_value *assigned; /* values of the current assignment */
  uint32_t n_assigned, cap_assigned;
  pln_tensor **tensors; /* of the metadata */
  uint32_t n_tensors, cap_tensors;
  uint16_t words[1024]; /* hash table of the names of T */
} pln_script_parser;

/* script/parse/error.c: tokens, diagnostics. */
pln_status pln_script_next(pln_script_parser *p) PLN_CHECKED;
pln_status pln_script_accept(pln_script_parser *p, pln_script_token_kind kind,
                             bool *accepted) PLN_CHECKED;
pln_status pln_script_expect(pln_script_parser *p,
                             pln_script_token_kind kind) PLN_CHECKED;
/* Reports what was expected instead of the current token. */
pln_status pln_script_expected(pln_script_parser *p,
                               const char *what) PLN_CHECKED;
/* Reports an error at text [at, at + size); returns PLN_ERR_FORMAT. */
pln_status pln_script_fail_at(pln_script_parser *p, const char *at,
                              uint32_t size, const char *format, ...)
    PLN_PRINTF(4, 5) PLN_CHECKED;
/* The same at a value, or without a message for PLN_V_ERROR. */
pln_status pln_script_refuse(pln_script_parser *p,
                             const pln_script_value *value, const char *format,
                             ...) PLN_PRINTF(3, 4) PLN_CHECKED;
/* Adds the current place to the messages of builders since `mark`. */
pln_status pln_script_locate(pln_script_parser *p, size_t mark) PLN_CHECKED;
/* Reports an unknown name at the token's text, with the most similar one. */
pln_status pln_script_unknown(pln_script_parser *p, pln_slice name,
                              const char *what, uint32_t n,
                              const char *const *names) PLN_CHECKED;

/* script/parse/name.c: names. */
pln_status pln_script_bind(pln_script_parser *p, pln_symbol name,
                           const pln_script_value *value) PLN_CHECKED;
const pln_script_value *pln_script_lookup(const pln_script_parser *p,
                                          pln_symbol name);
void pln_script_unbind(pln_script_parser *p, uint32_t mark);
/* The value of the name at the current token. */
pln_status pln_script_resolve(pln_script_parser *p,
                              pln_script_value *out) PLN_CHECKED;
/* A producer by its name, which may have dots. */
pln_status pln_script_producer(pln_script_parser *p, pln_slice name,
                               pln_script_value *out) PLN_CHECKED;
/* A name of T, such as "int32" or "axis.spatial". */
pln_status pln_script_resolve_method(pln_script_parser *p, pln_slice name,
                                     pln_script_value *out) PLN_CHECKED;
void pln_script_fill_words(pln_script_parser *p);
/* "float32x4"; false when it is no dtype. */
bool pln_script_find_dtype(pln_script_parser *p, pln_slice name, pln_type *out,
                           pln_status *status);

/* script/parse/expr.c: parses one expression, up to a token that cannot
 * continue it. */
pln_status pln_script_expr_parse(pln_script_parser *p,
                                 pln_script_value *out) PLN_CHECKED;
pln_status pln_script_keep(pln_script_parser *p, uint32_t first,
                           pln_script_value *out) PLN_CHECKED;
/* a + b for the '+' of "a += b", and so on. */
pln_status pln_script_augment(pln_script_parser *p, pln_slice sign,
                              const pln_script_value *a,
                              const pln_script_value *b,
                              pln_script_value *out) PLN_CHECKED;

/* script/parse/value.c: PrimExprs of values. */
pln_status pln_script_ref(pln_script_parser *p, const pln_script_value *value,
                          pln_type hint, pln_ref *out) PLN_CHECKED;
pln_status pln_script_region(pln_script_parser *p,
                             const pln_script_value *value,
                             pln_ref *out) PLN_CHECKED;
/* An index or slice as a Range. */
pln_status pln_script_index_range(pln_script_parser *p,
                                  const pln_script_value *part,
                                  pln_ref *out) PLN_CHECKED;
/* Pushes the indices of an element on p->refs. */
pln_status pln_script_push_indices(pln_script_parser *p,
                                   const pln_script_value *value) PLN_CHECKED;
/* max - min, without `min` when max is min + x. */
pln_status pln_script_extent(pln_script_parser *p, pln_ref min, pln_ref max,
                             pln_ref *out) PLN_CHECKED;
/* Brings two values to one dtype, as TVM's operators do. */
pln_status pln_script_match(pln_script_parser *p, const pln_script_value *a,
                            const pln_script_value *b, pln_ref *x,
                            pln_ref *y) PLN_CHECKED;
pln_status pln_script_binary(pln_script_parser *p, pln_kind kind,
                             const pln_script_value *a,
                             const pln_script_value *b,
                             pln_script_value *out) PLN_CHECKED;
/* A call of a builtin of integers, folded; `b` NULL: of one operand. */
pln_status pln_script_bitwise(pln_script_parser *p, const char *builtin,
                              const pln_script_value *a,
                              const pln_script_value *b,
                              pln_script_value *out) PLN_CHECKED;
pln_status pln_script_cast(pln_script_parser *p, pln_type type, pln_ref value,
                           pln_ref *out) PLN_CHECKED;
pln_status pln_script_push_ref(pln_script_parser *p, pln_ref ref) PLN_CHECKED;
/* Builds a node of p->refs from `first` on, and pops them. */
pln_status pln_script_node(pln_script_parser *p, pln_prim spec, uint32_t first,
                           pln_ref *out) PLN_CHECKED;
pln_status pln_script_int(pln_script_parser *p, pln_type type, int64_t value,
                          pln_ref *out) PLN_CHECKED;
static inline void pln_script_set_ref(pln_script_value *value, pln_ref ref) {
  value->kind = PLN_V_EXPR;
  value->v.of.ref = ref;
}
static inline pln_type pln_script_type_of(const pln_script_parser *p,
                                          pln_ref ref) {
  return p->b->graph->nodes[ref].type;
}

/* script/parse/vector_access.c: a call of the method vload or vstore. */
pln_status pln_script_vector_access(pln_script_parser *p,
                                    const pln_script_value *callee,
                                    const pln_script_value *items,
                                    pln_script_value *out) PLN_CHECKED;

/* script/parse/call.c, script/parse/reducer.c: calls. */
enum { PLN_MOST_ARGS = 12 };
/* The arguments of a call by the names of its parameters; NULL: not given. */
typedef struct pln_script_args {
  const pln_script_value *at[PLN_MOST_ARGS];
} pln_script_args;
pln_status pln_script_bind_args(pln_script_parser *p,
                                const pln_script_value *call,
                                pln_script_args *out) PLN_CHECKED;
/* Evaluates callee(items), as far as an expression can. */
pln_status pln_script_call(pln_script_parser *p, const pln_script_value *callee,
                           const pln_script_value *items,
                           pln_script_value *out) PLN_CHECKED;
pln_status pln_script_builtin(pln_script_parser *p, uint32_t builtin,
                              const pln_script_value *items,
                              pln_script_value *out) PLN_CHECKED;
/* T.if_then_else(condition, x, y) */
pln_status pln_script_choose(pln_script_parser *p,
                             const pln_script_value *condition,
                             const pln_script_value *x,
                             const pln_script_value *y,
                             pln_script_value *out) PLN_CHECKED;
/* The type that a string or T.name gives. */
pln_status pln_script_as_type(pln_script_parser *p,
                              const pln_script_value *value,
                              pln_type *out) PLN_CHECKED;
pln_status pln_script_as_int(pln_script_parser *p,
                             const pln_script_value *value, int64_t least,
                             int64_t most, int64_t *out) PLN_CHECKED;
pln_status pln_script_as_string(pln_script_parser *p,
                                const pln_script_value *value,
                                pln_slice *out) PLN_CHECKED;
/* Pushes the PrimExprs of a list, tuple or single value on p->refs. */
pln_status pln_script_push_list(pln_script_parser *p,
                                const pln_script_value *list, pln_type hint,
                                uint32_t *n) PLN_CHECKED;
pln_status pln_script_thread(pln_script_parser *p, pln_ref var, pln_symbol tag,
                             pln_ref *out) PLN_CHECKED;
/* Continues at the parameters of a lambda, and behind it again. */
pln_status pln_script_enter_lambda(pln_script_parser *p,
                                   const pln_script_value *lambda,
                                   pln_script_lambda *back) PLN_CHECKED;
void pln_script_leave_lambda(pln_script_parser *p,
                             const pln_script_lambda *back);
/* Parses the body of the lambda of a T.comm_reducer. */
pln_status pln_script_reducer(pln_script_parser *p,
                              const pln_script_value *lambda,
                              const pln_script_value *identity,
                              pln_ref *out) PLN_CHECKED;

/* script/parse/attrs.c: attributes of dictionaries. */
pln_status pln_script_attrs_of(pln_script_parser *p,
                               const pln_script_value *dict,
                               pln_attrs *out) PLN_CHECKED;
/* Adds entries with strings, numbers, dictionaries to attributes. */
pln_status pln_script_with_string(pln_script_parser *p, const char *name,
                                  pln_slice value,
                                  pln_attrs *attrs) PLN_CHECKED;
pln_status pln_script_with_int(pln_script_parser *p, const char *name,
                               int64_t value, pln_attrs *attrs) PLN_CHECKED;
pln_status pln_script_with_dict(pln_script_parser *p, const char *name,
                                const pln_script_value *dict,
                                pln_attrs *attrs) PLN_CHECKED;

/* script/parse/index_map.c: T.index_map(lambda i: (i // 4, i % 4)): an Array of
 * the number of variables, the variables and the indices. */
pln_status pln_script_index_map(pln_script_parser *p,
                                const pln_script_value *lambda,
                                pln_ref *out) PLN_CHECKED;
/* Takes the entry layout_transform_map out of a function's attributes; its maps
 * become attributes of the buffers. */
pln_status pln_script_layout_transforms(pln_script_parser *p,
                                        pln_script_value *dict) PLN_CHECKED;

/* script/parse/buffer.c: T.Buffer and its relatives. */
/* *data: the Var of a data pointer that the declaration itself made, else
 * PLN_NONE. */
pln_status pln_script_make_buffer(pln_script_parser *p,
                                  const pln_script_value *call, pln_slice name,
                                  pln_ref *out, pln_ref *data) PLN_CHECKED;
pln_status pln_script_make_var(pln_script_parser *p, pln_slice name,
                               pln_type type, bool is_size,
                               pln_ref *out) PLN_CHECKED;

/* script/parse/stmt.c: lines and their statements. */
pln_status pln_script_lines(pln_script_parser *p) PLN_CHECKED;
pln_status pln_script_push_stmt(pln_script_parser *p, pln_ref ref) PLN_CHECKED;
pln_status pln_script_hold(pln_script_parser *p, pln_ref ref) PLN_CHECKED;
pln_status pln_script_bind_ref(pln_script_parser *p, pln_slice name,
                               pln_script_value_kind kind,
                               pln_ref ref) PLN_CHECKED;

/* script/parse/frame.c: frames. */
pln_status pln_script_open_frame(pln_script_parser *p,
                                 pln_open_frame frame) PLN_CHECKED;
/* Closes the newest frame. */
pln_status pln_script_close_frame(pln_script_parser *p) PLN_CHECKED;
pln_status pln_script_sequence(pln_script_parser *p, uint32_t first,
                               pln_ref *out) PLN_CHECKED;
pln_status pln_script_add_part(pln_script_parser *p,
                               pln_script_part part) PLN_CHECKED;
/* Appends a Block, and its BlockRealize, as one statement. */
pln_status pln_script_close_block(pln_script_parser *p,
                                  const pln_open_frame *f) PLN_CHECKED;
/* The nearest block or function. NULL: none. */
pln_open_frame *pln_script_enclosing(pln_script_parser *p);

/* script/parse/assign.c: "names = value", and calls that open a body. */
/* `names`: up to n targets, 0 for an expression statement. `with`: in a with
 * statement, whose body is indented. */
pln_status pln_script_perform(pln_script_parser *p,
                              const pln_script_value *call, uint32_t n,
                              const pln_slice *names, bool with) PLN_CHECKED;

/* script/parse/function.c: "def". */
pln_status pln_script_function(pln_script_parser *p) PLN_CHECKED;
pln_status pln_script_close_function(pln_script_parser *p,
                                     const pln_open_frame *f) PLN_CHECKED;
pln_status pln_script_find_functions(pln_script_parser *p) PLN_CHECKED;

/* script/parse/metadata.c */
pln_status pln_script_metadata(pln_script_parser *p,
                               pln_slice json) PLN_CHECKED;

#endif
