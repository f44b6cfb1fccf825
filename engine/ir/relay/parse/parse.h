/* relay/parse/parse.h: shared declarations of the parser's files.
 *
 * Nothing recurses; each file has its own stack. A function that finds a syntax
 * error reports it and returns PLN_ERR_FORMAT; its callers return, and
 * relay/parse/expr.c continues after the next ';' or '}'. Any other failure
 * ends parsing. Wrong names and types are reported, and parsing continues. */

#ifndef PLN_IR_RELAY_PARSE_PARSE_H
#define PLN_IR_RELAY_PARSE_PARSE_H

#include "ir/graph/module.h"
#include "ir/relay/parse/lex.h"

/* The current meaning of a name; the former one is restored when its scope
 * ends. */
typedef struct pln_graph_binding {
  uint64_t key;
  uint32_t value;
  uint32_t former; /* index + 1 of the binding it hides; 0: none */
} pln_graph_binding;

/* Keys of names: the name space in the upper half, a symbol in the lower. */
typedef enum pln_name_space {
  PLN_SPACE_LOCAL = 1, /* -> pln_ref */
  PLN_SPACE_TYPE       /* type variables -> pln_type */
} pln_name_space;

/* A parsed parameter of a function. */
typedef struct pln_parsed_param {
  pln_symbol name;
  pln_type type;
  pln_attrs device; /* its "virtual_device", if given */
  pln_token token;
  pln_note note;
} pln_parsed_param;

/* The parsed part of a function between its name and its body. */
typedef struct pln_parsed_head {
  uint32_t first, n; /* parameters: n of them from `first` in parser->params */
  uint32_t n_vars;   /* number of type parameters, the newest of
                      * parser->types */
  pln_attrs attrs;
  pln_attrs order; /* order of the attributes, if not sorted by name */
  pln_attrs scope; /* attributes of the body's scope */
  pln_type ret;
  pln_token token; /* its first token */
} pln_parsed_head;

/* A frame: an open expression, of which a part is being parsed. */
typedef enum pln_frame_kind {
  PLN_FRAME_SEQUENCE, /* lets, then a result; values: var, value, ...; a kept
                       * value has PLN_NONE instead of a var */
  PLN_FRAME_LET,      /* the value of the Var `data` */
  PLN_FRAME_BIND,     /* the value of the graph variable `data`, of type `ret`
                       * if declared */
  PLN_FRAME_KEEP,     /* a value marked `keep` */
  PLN_FRAME_BINARY,   /* the right operand of operator `sign`; values: left */
  PLN_FRAME_CALL,     /* an argument of operator `data`; values: arguments */
  PLN_FRAME_APPLY,    /* the same; values: callee, arguments */
  PLN_FRAME_CELL,     /* like CALL for ref, ref_read, ref_write: token `sign` */
  PLN_FRAME_PAREN,    /* values: fields */
  PLN_FRAME_BLOCK,    /* { ... } */
  PLN_FRAME_IF,       /* values: condition, then-branch */
  PLN_FRAME_MATCH,    /* values: data, pattern, body, pattern, ... */
  PLN_FRAME_FUNCTION  /* values: parameters */
} pln_frame_kind;

typedef struct pln_parse_frame {
  uint8_t kind; /* pln_frame_kind */
  uint8_t sign;
  bool flag;   /* LET: bound already; BIND: `keep`; PAREN: a comma was parsed;
                * MATCH: complete; FUNCTION: a definition */
  bool braces; /* MATCH: the arm's body is in braces */
  uint32_t first; /* its values are p->values from here on */
  uint32_t mark;  /* number of bindings, */
  uint32_t types; /* and of p->types, before it */
  uint32_t data;
  uint32_t n;          /* SEQUENCE: number of lets; FUNCTION: of type
                        * parameters */
  pln_symbol name;     /* LET */
  pln_attrs attrs;     /* FUNCTION, IF */
  pln_attrs order;     /* source order of the attributes; 0: by name */
  pln_attrs scopes[2]; /* FUNCTION: scope attributes of the body; IF: of both
                        * branches */
  pln_type ret;
  pln_token token; /* its first token */
} pln_parse_frame;

/* What the parser expects next. */
typedef enum pln_parse_mode {
  PLN_WANT_ITEM,    /* a let, a binding or an expression */
  PLN_WANT_OPERAND, /* an expression without infix operators */
  PLN_HAVE_ATOM,    /* p->value is set; arguments or an operator may follow */
  PLN_HAVE_VALUE    /* p->value is a finished value for the newest frame */
} pln_parse_mode;

/* The position of an attribute's name. */
typedef struct pln_parsed_name {
  pln_symbol name;
  pln_token token;
} pln_parsed_name;

typedef struct pln_parser {
  pln_engine *engine;
  pln_slice text;
  const char *source;       /* its name for messages */
  pln_symbol source_symbol; /* the same for spans */
  pln_lexer lexer;
  pln_token token; /* the current token; never a bad one */
  pln_note note;   /* annotations between these two */
  uint32_t n_errors;
  const char *recovery_token; /* start of a token found by error recovery; an
                               * error there is not reported again */
  pln_builder *b;             /* builder of the current function */
  const pln_module *module;
  pln_idmap *names; /* key -> index + 1 in bindings */
  pln_graph_binding *bindings;
  uint32_t n_bindings, cap_bindings;
  pln_idmap *numbered;   /* per function: %12, @f, constants -> pln_ref + 1 */
  uint32_t function;     /* number of the current function, part of the keys of
                          * `numbered` */
  pln_idmap *signatures; /* a global's symbol -> type + 1 */
  pln_idmap *type_names; /* names of type definitions -> 1 */
  pln_symbol *defined_types; /* the same names, in order */
  uint32_t n_defined_types, cap_defined_types;
  pln_arena arena; /* lists in attributes of the current call */
  pln_buffer word; /* a name with its escapes resolved */
  struct pln_metadata_reader *meta; /* NULL: none */
  const pln_parse_options *given;
  pln_attrs tir_vars;  /* of the metadata: name of a dim -> dtype */
  bool in_module;      /* all globals are known */
  bool type_alone;     /* parsing a stand-alone type with undeclared names */
  pln_symbol *globals; /* names of functions, in order */
  uint32_t n_globals, cap_globals;
  /* stacks */
  pln_parsed_param *params;
  uint32_t n_params, cap_params;
  pln_type *types;
  uint32_t n_types, cap_types;
  const pln_type *given_vars; /* the next type parameters; NULL: new ones */
  struct pln_parsed_type_frame *type_frames;
  uint32_t n_type_frames, cap_type_frames;
  pln_attr *items;
  uint32_t n_items, cap_items;
  pln_parsed_name *attr_names; /* names of the latest parsed attributes */
  uint32_t n_attr_names, cap_attr_names;
  struct pln_attr_frame *attr_frames;
  uint32_t n_attr_frames, cap_attr_frames;
  pln_ref *values;
  uint32_t n_values, cap_values;
  pln_parse_frame *frames;
  uint32_t n_frames, cap_frames;
  pln_parse_mode mode;
  pln_ref value;
  bool fresh; /* the value was built here and may be given a span */
} pln_parser;

/* relay/parse/error.c: tokens and diagnostics. */

/* Advances to the next token; bad ones are reported and skipped. */
pln_status pln_parse_next(pln_parser *p) PLN_CHECKED;
/* The kind of the token after the current one. */
pln_token_kind pln_parse_peek(const pln_parser *p);
/* True if the current token is a name with that text. */
bool pln_parse_is(const pln_parser *p, const char *name);
/* If the current token has that kind, advances. */
pln_status pln_parse_accept(pln_parser *p, pln_token_kind kind,
                            bool *accepted) PLN_CHECKED;
/* The current token must have that kind, else PLN_ERR_FORMAT "expected X, got
 * Y". */
pln_status pln_parse_expect(pln_parser *p, pln_token_kind kind) PLN_CHECKED;
/* Reports what was expected instead of the current token: PLN_ERR_FORMAT. */
pln_status pln_parse_report_expected(pln_parser *p,
                                     const char *what) PLN_CHECKED;
/* Reports a name with a missing or wrong sigil ('%' or '@'). Returns PLN_OK,
 * because it can be parsed as intended. */
pln_status pln_parse_unsigiled(pln_parser *p, const char *what,
                               char sigil) PLN_CHECKED;
/* After a statement. If another statement follows without a ';', reports the
 * missing ';' and continues. */
pln_status pln_parse_semicolon(pln_parser *p) PLN_CHECKED;
/* Reports an error at `token`. PLN_OK, or PLN_ERR_LIMIT after too many
 * errors. */
pln_status pln_parse_report(pln_parser *p, const pln_token *token,
                            pln_status code, const char *format, ...)
    PLN_PRINTF(4, 5) PLN_CHECKED;
/* The same, returning PLN_ERR_FORMAT. */
pln_status pln_parse_fail(pln_parser *p, const pln_token *token,
                          const char *format, ...) PLN_PRINTF(3, 4) PLN_CHECKED;
/* Adds the span of `token` to the errors of a build function since `mark`.
 * PLN_OK when parsing may continue. */
pln_status pln_parse_located(pln_parser *p, const pln_token *token, size_t mark,
                             pln_status status) PLN_CHECKED;
/* The same for warnings. */
pln_status pln_parse_locate(pln_parser *p, const pln_token *token,
                            size_t mark) PLN_CHECKED;
/* Adds source lines to the diagnostics from `mark` on that have spans in this
 * text. */
pln_status pln_parse_quote(pln_parser *p, size_t mark) PLN_CHECKED;
/* True for a status after which parsing may continue. */
static inline bool pln_parse_bad_text(const pln_parser *p, pln_status status) {
  return status == PLN_ERR_FORMAT && p->n_errors > 0;
}

/* relay/parse/name.c: names and what they stand for. */

/* The symbol of the token's text, with escapes resolved. */
pln_status pln_parse_symbol(pln_parser *p, const pln_token *token,
                            pln_symbol *out) PLN_CHECKED;
/* The token's text with escapes resolved; valid until the next call. */
pln_status pln_parse_text(pln_parser *p, const pln_token *token,
                          pln_slice *out) PLN_CHECKED;
pln_status pln_parse_bind(pln_parser *p, pln_name_space space, pln_symbol name,
                          uint32_t value) PLN_CHECKED;
/* False when the name is not bound. */
bool pln_parse_lookup(const pln_parser *p, pln_name_space space,
                      pln_symbol name, uint32_t *value);
/* Ends the scopes that began when there were `mark` bindings. */
void pln_parse_unbind(pln_parser *p, uint32_t mark);
/* True if the token, without '%', is the name of a variable. */
bool pln_parse_is_variable(pln_parser *p, const pln_token *token);
/* Reports an unknown `what` at `token`, with the most similar visible name. */
pln_status pln_parse_unknown(pln_parser *p, const pln_token *token,
                             const char *what, uint32_t n,
                             const char *const *names) PLN_CHECKED;
/* The visible names of a name space, newest first; at most `most`. */
uint32_t pln_parse_visible(const pln_parser *p, pln_name_space space,
                           uint32_t most, const char **names);

/* relay/parse/number.c: literals. */

/* A number, negated if a `-` precedes it, as PLN_ATTR_INT or PLN_ATTR_FLOAT;
 * *dtype comes from its suffix, else int32, int64 or float32. */
typedef struct pln_parsed_number {
  bool is_float;
  int64_t i;
  double f;
  pln_dtype dtype;
} pln_parsed_number;
/* Parses signs and the number. */
pln_status pln_parse_number(pln_parser *p, pln_parsed_number *out) PLN_CHECKED;
/* True if a number begins at the current token: digits, signs, inff, nanf64. */
bool pln_parse_at_number(const pln_parser *p);
/* A scalar of that value; an error at the token when the dtype cannot represent
 * it. */
pln_status pln_parse_scalar(pln_parser *p, const pln_token *token,
                            const pln_parsed_number *number,
                            pln_tensor **out) PLN_CHECKED;
/* An integer without suffix, from 0 to `most`. */
pln_status pln_parse_count(pln_parser *p, uint32_t most,
                           uint32_t *out) PLN_CHECKED;

/* relay/parse/dim.c: a dim, up to the following ',' or ')'. */
pln_status pln_parse_dim(pln_parser *p, pln_dim *out) PLN_CHECKED;

/* relay/parse/type.c */
pln_status pln_parse_type(pln_parser *p, pln_type *out) PLN_CHECKED;
void pln_parse_free_types(pln_parser *p);
/* Parses `[A, B]` if present: type variables, pushed on p->types and bound
 * until the caller unbinds. */
pln_status pln_parse_generics(pln_parser *p, uint32_t *n) PLN_CHECKED;
pln_status pln_parse_push_type(pln_parser *p, pln_type type) PLN_CHECKED;
/* True if a type, and no other value, begins at the current token. */
bool pln_parse_at_type(const pln_parser *p);

/* relay/parse/attrs.c: `name=value, ...` up to the closing ')' or '}', which
 * remains the current token. */
bool pln_parse_at_attr(const pln_parser *p);
pln_status pln_parse_attrs(pln_parser *p, pln_attrs *out) PLN_CHECKED;
/* The same, with the source order: a list of entries with names only; 0 when
 * sorted by name. */
pln_status pln_parse_ordered_attrs(pln_parser *p, pln_attrs *out,
                                   pln_attrs *order) PLN_CHECKED;
/* Converts the latest parsed attributes for a call of `op`. *good: false when
 * an error was reported. */
pln_status pln_parse_op_attrs(pln_parser *p, const pln_token *token, pln_op op,
                              pln_attrs given, pln_attrs *out,
                              bool *good) PLN_CHECKED;
/* Converts values according to the schema where text is ambiguous: integers to
 * floats, empty lists. */
pln_status pln_parse_convert_attrs(pln_parser *p, const char *schema,
                                   pln_attrs *attrs) PLN_CHECKED;
void pln_parse_free_attrs(pln_parser *p);
/* relay/parse/scope.c: moves the attributes whose names begin with `prefix`
 * from *attrs to the result, without the prefix. The input names default to the
 * names of the `n` parameters. 0 when there are none. */
pln_status pln_parse_scope_attrs(pln_parser *p, const char *prefix, uint32_t n,
                                 const pln_parsed_param *params,
                                 pln_attrs *attrs, pln_attrs *out) PLN_CHECKED;

/* relay/parse/function.c: heads of functions. */
pln_status pln_parse_head(pln_parser *p, pln_parsed_head *out) PLN_CHECKED;
/* The function type of a head. */
pln_status pln_parse_signature(pln_parser *p, const pln_parsed_head *head,
                               pln_type *out) PLN_CHECKED;

/* relay/parse/pattern.c: parses a pattern of a match; its variables are bound
 * until the caller unbinds. */
pln_status pln_parse_pattern(pln_parser *p, pln_ref *out) PLN_CHECKED;

/* relay/parse/build.c: nodes of what was read, with their places. */

/* If `status` is PLN_OK, the value is `ref` with the span of `token`. Otherwise
 * the error is reported there, and the value is a variable of unknown type.
 * `mark`: number of earlier diagnostics. */
pln_status pln_parse_finish_node(pln_parser *p, const pln_token *token,
                                 size_t mark, pln_status status,
                                 pln_ref ref) PLN_CHECKED;
/* A variable of unknown type in place of erroneous text. */
pln_status pln_parse_error_value(pln_parser *p, pln_ref *out) PLN_CHECKED;
/* Gives a node the span of a token. */
pln_status pln_parse_place(pln_parser *p, pln_ref node,
                           const pln_token *token) PLN_CHECKED;
/* Records a span from a comment, which will be printed again. */
pln_status pln_parse_record_place(pln_parser *p, pln_ref node,
                                  const pln_note *note) PLN_CHECKED;
/* A call of an unknown operator gets the type in the comment; all other nodes
 * are inferred. */
pln_status pln_parse_annotated_type(pln_parser *p, pln_ref node,
                                    const pln_note *note) PLN_CHECKED;
/* Declares the type of `node`: it may be more precise than the inferred one but
 * not contradict it, which is an error at `token`. */
pln_status pln_parse_declare(pln_parser *p, const pln_token *token,
                             pln_ref node, pln_type type) PLN_CHECKED;
pln_status pln_parse_var(pln_parser *p, pln_symbol name, pln_type type,
                         const pln_token *token, const pln_note *note,
                         pln_ref *out) PLN_CHECKED;
/* Parses `%x` or `%x: T` as a new variable, not bound yet. */
pln_status pln_parse_binder(pln_parser *p, pln_symbol *name,
                            pln_ref *var) PLN_CHECKED;
/* Pushes a value of the newest frame. */
pln_status pln_parse_push(pln_parser *p, pln_ref value) PLN_CHECKED;
/* Looks up a number, a global's name, ... in the current function; `kind`
 * distinguishes them. 0: unknown. */
typedef enum pln_numbered {
  PLN_NUMBERED_TEMP = 1,
  PLN_NUMBERED_GLOBAL,
  PLN_NUMBERED_CONSTANT
} pln_numbered;
uint32_t pln_parse_numbered(const pln_parser *p, pln_numbered kind,
                            uint32_t number);
pln_status pln_parse_number_is(pln_parser *p, pln_numbered kind,
                               uint32_t number, pln_ref node) PLN_CHECKED;

/* relay/parse/atom.c: parses an atom: sets p->value and p->mode, or opens a
 * frame. */
pln_status pln_parse_atom(pln_parser *p) PLN_CHECKED;
/* The number of the graph variable at the current token. */
pln_status pln_parse_temp(pln_parser *p, uint32_t *out) PLN_CHECKED;
/* `may_be_var`: a variable would be valid there. */
pln_status pln_parse_unknown_constructor(pln_parser *p, const pln_token *token,
                                         bool may_be_var) PLN_CHECKED;

/* relay/parse/call.c: at the attributes or the ')' of the newest frame's
 * call. */
pln_status pln_parse_finish_call(pln_parser *p) PLN_CHECKED;
/* Removes n_results=3 from *attrs; 0 when it is not given. */
pln_status pln_parse_results(pln_parser *p, pln_attrs *attrs,
                             uint32_t *results) PLN_CHECKED;
bool pln_parse_at_meta_attrs(const pln_parser *p);

/* relay/parse/branch.c: functions, if, match. */
pln_status pln_parse_function(pln_parser *p) PLN_CHECKED;
pln_status pln_parse_if(pln_parser *p) PLN_CHECKED;
pln_status pln_parse_match(pln_parser *p) PLN_CHECKED;
/* Opens the frame of a function after its head. `mark`, `types`: the counts
 * before the head. */
pln_status pln_parse_open_function(pln_parser *p, const pln_parsed_head *head,
                                   uint32_t mark, uint32_t types,
                                   bool definition) PLN_CHECKED;
/* The newest frame has that kind, and the current value is one of its parts. */
pln_status pln_parse_function_part(pln_parser *p) PLN_CHECKED;
pln_status pln_parse_if_part(pln_parser *p) PLN_CHECKED;
pln_status pln_parse_match_part(pln_parser *p) PLN_CHECKED;

/* relay/parse/expr.c */
pln_status pln_parse_open(pln_parser *p, pln_frame_kind kind,
                          const pln_token *token) PLN_CHECKED;
/* Opens a sequence: lets, then a result. */
pln_status pln_parse_open_sequence(pln_parser *p) PLN_CHECKED;
/* Opens a call at the '(' of the newest frame. */
pln_status pln_parse_arguments(pln_parser *p) PLN_CHECKED;
/* Pops the newest frame and its values. */
void pln_parse_close(pln_parser *p);
/* Parses until no frame is left; *out is the value. */
pln_status pln_parse_run(pln_parser *p, pln_ref *out) PLN_CHECKED;

#endif
