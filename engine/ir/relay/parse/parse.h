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

/* What a name stands for at the moment; what it stood for before is restored
 * when its scope ends. */
typedef struct pln_graph_binding {
  uint64_t key;
  uint32_t value;
  uint32_t former; /* index + 1 of the binding it hides; 0: none */
} pln_graph_binding;

/* Keys of names: a space of names in the upper half, a symbol in the lower. */
typedef enum pln_name_space {
  PLN_SPACE_LOCAL = 1, /* -> pln_ref */
  PLN_SPACE_TYPE       /* type variables -> pln_type */
} pln_name_space;

/* A parameter of a function, as read. */
typedef struct pln_parsed_param {
  pln_symbol name;
  pln_type type;
  pln_attrs device; /* "virtual_device" when one was told */
  pln_token token;
  pln_note note;
} pln_parsed_param;

/* What stands between a function's name and its body. */
typedef struct pln_parsed_head {
  uint32_t first, n; /* parameters: those from `first` in parser->params */
  uint32_t n_vars;   /* type parameters: the newest of parser->types */
  pln_attrs attrs;
  pln_attrs order; /* of the attributes, when it is not that of names */
  pln_attrs scope; /* of the body */
  pln_type ret;
  pln_token token; /* where it begins */
} pln_parsed_head;

/* An expression that is open: what is being read is a part of it. */
typedef enum pln_frame_kind {
  PLN_FRAME_SEQUENCE, /* lets, then a result; values: var, value, ...; what is
                         kept has PLN_NONE in place of the var */
  PLN_FRAME_LET,      /* the value of `data`, a Var */
  PLN_FRAME_BIND,     /* the value of the graph variable `data`, of type `ret`
                         when that is told */
  PLN_FRAME_KEEP,     /* a value that is kept */
  PLN_FRAME_BINARY,   /* the right operand of operator `sign`; values: left */
  PLN_FRAME_CALL,     /* an argument of operator `data`; values: arguments */
  PLN_FRAME_APPLY,    /* the same; values: callee, arguments */
  PLN_FRAME_CELL,     /* the same of ref, ref_read, ref_write: token `sign` */
  PLN_FRAME_PAREN,    /* values: fields */
  PLN_FRAME_BLOCK,    /* { ... } */
  PLN_FRAME_IF,       /* values: condition, then-branch */
  PLN_FRAME_MATCH,    /* values: data, pattern, body, pattern, ... */
  PLN_FRAME_FUNCTION  /* values: parameters */
} pln_frame_kind;

typedef struct pln_parse_frame {
  uint8_t kind; /* pln_frame_kind */
  uint8_t sign;
  bool flag;   /* LET: bound already; BIND: it is kept; PAREN: a comma was seen;
                  MATCH: it is   complete; FUNCTION: it is a definition */
  bool braces; /* MATCH: the arm stands in braces */
  uint32_t first; /* its values are p->values from here */
  uint32_t mark;  /* bindings, */
  uint32_t types; /*   and p->types, outside of it */
  uint32_t data;
  uint32_t n;          /* SEQUENCE: lets; FUNCTION: type parameters */
  pln_symbol name;     /* LET */
  pln_attrs attrs;     /* FUNCTION, IF */
  pln_attrs order;     /* of these in text; 0: by name */
  pln_attrs scopes[2]; /* FUNCTION: of the body; IF: of both branches */
  pln_type ret;
  pln_token token; /* where it begins */
} pln_parse_frame;

/* What the text at hand is to be. */
typedef enum pln_parse_mode {
  PLN_WANT_ITEM,    /* a let, a binding or an expression */
  PLN_WANT_OPERAND, /* an expression without infix operators */
  PLN_HAVE_ATOM,    /* p->value, which arguments or an operator may follow */
  PLN_HAVE_VALUE    /* p->value, for the newest frame */
} pln_parse_mode;

/* Where an attribute's name stood. */
typedef struct pln_parsed_name {
  pln_symbol name;
  pln_token token;
} pln_parsed_name;

typedef struct pln_parser {
  pln_engine *engine;
  pln_slice text;
  const char *source;       /* its name for messages */
  pln_symbol source_symbol; /* and for spans */
  pln_lexer lexer;
  pln_token token; /* at hand; never a bad one */
  pln_note note;   /* told between those two */
  uint32_t n_errors;
  const char *doubtful; /* where a token begins that was looked for after text
                           that cannot be: it is no error of its own */
  pln_builder *b;       /* of the function at hand */
  const pln_module *module;
  pln_idmap *names; /* key -> index + 1 in bindings */
  pln_graph_binding *bindings;
  uint32_t n_bindings, cap_bindings;
  pln_idmap *numbered;   /* of a function: %12, @f, constants -> pln_ref + 1 */
  uint32_t function;     /* counts functions: keys of `numbered` */
  pln_idmap *signatures; /* a global's symbol -> type + 1 */
  pln_idmap *type_names; /* a definition's symbol -> 1 */
  pln_symbol *defined_types; /* the same, in order */
  uint32_t n_defined_types, cap_defined_types;
  pln_arena arena; /* lists in attributes, of the call at hand */
  pln_buffer word; /* a name with its escapes resolved */
  struct pln_metadata_reader *meta; /* NULL: none */
  const pln_parse_options *given;
  pln_attrs tir_vars;  /* of the metadata: name of a dim -> dtype */
  bool in_module;      /* all globals are known */
  bool type_alone;     /* a type, of names that nobody has told */
  pln_symbol *globals; /* names of functions, in order */
  uint32_t n_globals, cap_globals;
  /* stacks */
  pln_parsed_param *params;
  uint32_t n_params, cap_params;
  pln_type *types;
  uint32_t n_types, cap_types;
  const pln_type *given_vars; /* what the next type parameters are; NULL: new */
  struct pln_parsed_type_frame *type_frames;
  uint32_t n_type_frames, cap_type_frames;
  pln_attr *items;
  uint32_t n_items, cap_items;
  pln_parsed_name *attr_names; /* of the attributes that were read last */
  uint32_t n_attr_names, cap_attr_names;
  struct pln_attr_frame *attr_frames;
  uint32_t n_attr_frames, cap_attr_frames;
  pln_ref *values;
  uint32_t n_values, cap_values;
  pln_parse_frame *frames;
  uint32_t n_frames, cap_frames;
  pln_parse_mode mode;
  pln_ref value;
  bool fresh; /* the value was made here, and may be given a place */
} pln_parser;

/* relay/parse/error.c: tokens and diagnostics. */

/* Goes to the next token; bad ones are reported and passed over. */
pln_status pln_parse_next(pln_parser *p) PLN_CHECKED;
/* The kind of the token behind the one at hand. */
pln_token_kind pln_parse_peek(const pln_parser *p);
/* Whether the token at hand is a name that reads so. */
bool pln_parse_is(const pln_parser *p, const char *name);
/* When the token at hand is of that kind, goes on. */
pln_status pln_parse_accept(pln_parser *p, pln_token_kind kind,
                            bool *accepted) PLN_CHECKED;
/* The same; it must be, else PLN_ERR_FORMAT "expected X, got Y". */
pln_status pln_parse_expect(pln_parser *p, pln_token_kind kind) PLN_CHECKED;
/* Reports what was wanted in place of the token at hand: PLN_ERR_FORMAT. */
pln_status pln_parse_report_expected(pln_parser *p,
                                     const char *what) PLN_CHECKED;
/* The same of a name that lacks its sigil, '%' or '@', or has the other one:
 * PLN_OK, for it can be read as meant. */
pln_status pln_parse_unsigiled(pln_parser *p, const char *what,
                               char sigil) PLN_CHECKED;
/* Behind a statement. Where another one begins without it, a ';' is reported as
 * missing and taken for granted. */
pln_status pln_parse_semicolon(pln_parser *p) PLN_CHECKED;
/* Reports an error at `token`. PLN_OK, but PLN_ERR_LIMIT when there were
 * enough. */
pln_status pln_parse_report(pln_parser *p, const pln_token *token,
                            pln_status code, const char *format, ...)
    PLN_PRINTF(4, 5) PLN_CHECKED;
/* The same as a failure: PLN_ERR_FORMAT. */
pln_status pln_parse_fail(pln_parser *p, const pln_token *token,
                          const char *format, ...) PLN_PRINTF(3, 4) PLN_CHECKED;
/* What a building function said about `token`: an error since `mark` gets its
 * place. PLN_OK when it may be read over. */
pln_status pln_parse_located(pln_parser *p, const pln_token *token, size_t mark,
                             pln_status status) PLN_CHECKED;
/* The same of warnings. */
pln_status pln_parse_locate(pln_parser *p, const pln_token *token,
                            size_t mark) PLN_CHECKED;
/* Gives diagnostics from `mark` on that stand in this text their lines. */
pln_status pln_parse_quote(pln_parser *p, size_t mark) PLN_CHECKED;
/* True of a status after which reading may go on. */
static inline bool pln_parse_bad_text(const pln_parser *p, pln_status status) {
  return status == PLN_ERR_FORMAT && p->n_errors > 0;
}

/* relay/parse/name.c: names and what they stand for. */

/* The symbol that the token's text spells, escapes resolved. */
pln_status pln_parse_symbol(pln_parser *p, const pln_token *token,
                            pln_symbol *out) PLN_CHECKED;
/* The text itself, resolved; valid until the next call. */
pln_status pln_parse_text(pln_parser *p, const pln_token *token,
                          pln_slice *out) PLN_CHECKED;
pln_status pln_parse_bind(pln_parser *p, pln_name_space space, pln_symbol name,
                          uint32_t value) PLN_CHECKED;
/* False when nothing is called so. */
bool pln_parse_lookup(const pln_parser *p, pln_name_space space,
                      pln_symbol name, uint32_t *value);
/* Ends the scopes that began when there were `mark` bindings. */
void pln_parse_unbind(pln_parser *p, uint32_t mark);
/* Whether a variable is called as the token says, without its '%'. */
bool pln_parse_is_variable(pln_parser *p, const pln_token *token);
/* Reports that no `what` is called as `token` says, with the nearest of the
 * names that could stand there. */
pln_status pln_parse_unknown(pln_parser *p, const pln_token *token,
                             const char *what, uint32_t n,
                             const char *const *names) PLN_CHECKED;
/* The names of a space that can be seen, newest first; at most `most`. */
uint32_t pln_parse_visible(const pln_parser *p, pln_name_space space,
                           uint32_t most, const char **names);

/* relay/parse/number.c: literals. */

/* A number, with `-` in front when told, as an attribute: PLN_ATTR_INT or
 * PLN_ATTR_FLOAT; *dtype is what its suffix says, or int32, int64, float32. */
typedef struct pln_parsed_number {
  bool is_float;
  int64_t i;
  double f;
  pln_dtype dtype;
} pln_parsed_number;
/* Reads `-`s and the number. */
pln_status pln_parse_number(pln_parser *p, pln_parsed_number *out) PLN_CHECKED;
/* Whether a number begins at hand: digits, signs, inff, nanf64. */
bool pln_parse_at_number(const pln_parser *p);
/* A scalar of that value, which the token began; reported there when its dtype
 * has no number so large. */
pln_status pln_parse_scalar(pln_parser *p, const pln_token *token,
                            const pln_parsed_number *number,
                            pln_tensor **out) PLN_CHECKED;
/* An integer without suffix, from 0 to `most`. */
pln_status pln_parse_count(pln_parser *p, uint32_t most,
                           uint32_t *out) PLN_CHECKED;

/* relay/parse/dim.c: a dim up to the ',' or ')' behind it. */
pln_status pln_parse_dim(pln_parser *p, pln_dim *out) PLN_CHECKED;

/* relay/parse/type.c */
pln_status pln_parse_type(pln_parser *p, pln_type *out) PLN_CHECKED;
void pln_parse_free_types(pln_parser *p);
/* `[A, B]` when it stands there: type variables, pushed on p->types and bound
 * until the caller unbinds. */
pln_status pln_parse_generics(pln_parser *p, uint32_t *n) PLN_CHECKED;
pln_status pln_parse_push_type(pln_parser *p, pln_type type) PLN_CHECKED;
/* Whether a type begins at hand that can be no other value. */
bool pln_parse_at_type(const pln_parser *p);

/* relay/parse/attrs.c: `name=value, ...` up to the closing ')' or '}', which
 * stays at hand. */
bool pln_parse_at_attr(const pln_parser *p);
pln_status pln_parse_attrs(pln_parser *p, pln_attrs *out) PLN_CHECKED;
/* The same, and the order in which they stand: a list of entries that have
 * nothing but names; 0 when it is that of names. */
pln_status pln_parse_ordered_attrs(pln_parser *p, pln_attrs *out,
                                   pln_attrs *order) PLN_CHECKED;
/* Attributes of a call of `op`, those that were read last, as the operator
 * wants them. *good: false when that was reported. */
pln_status pln_parse_op_attrs(pln_parser *p, const pln_token *token, pln_op op,
                              pln_attrs given, pln_attrs *out,
                              bool *good) PLN_CHECKED;
/* The attributes with values as the schema wants them, where text cannot tell:
 * integers in place of floats, empty lists. */
pln_status pln_parse_convert_attrs(pln_parser *p, const char *schema,
                                   pln_attrs *attrs) PLN_CHECKED;
void pln_parse_free_attrs(pln_parser *p);
/* scope.c: takes those out of *attrs whose names begin with `prefix`, and
 * gives them without it: a scope's own. The names of inputs are those of `n`
 * parameters unless they are told. 0 when there are none. */
pln_status pln_parse_scope_attrs(pln_parser *p, const char *prefix, uint32_t n,
                                 const pln_parsed_param *params,
                                 pln_attrs *attrs, pln_attrs *out) PLN_CHECKED;

/* relay/parse/function.c: heads of functions. */
pln_status pln_parse_head(pln_parser *p, pln_parsed_head *out) PLN_CHECKED;
/* The function type that a head tells. */
pln_status pln_parse_signature(pln_parser *p, const pln_parsed_head *head,
                               pln_type *out) PLN_CHECKED;

/* relay/parse/pattern.c: a pattern of a match; its variables are bound until
 * the caller unbinds. */
pln_status pln_parse_pattern(pln_parser *p, pln_ref *out) PLN_CHECKED;

/* relay/parse/build.c: nodes of what was read, with their places. */

/* The value is `ref`, made of the text at `token`, when `status` is PLN_OK;
 * else what went wrong is told there, and the value is a variable that stands
 * for anything. `mark`: diagnostics before. */
pln_status pln_parse_finish_node(pln_parser *p, const pln_token *token,
                                 size_t mark, pln_status status,
                                 pln_ref ref) PLN_CHECKED;
/* A variable that stands for what could not be read. */
pln_status pln_parse_error_value(pln_parser *p, pln_ref *out) PLN_CHECKED;
/* Gives a node the place of a token. */
pln_status pln_parse_place(pln_parser *p, pln_ref node,
                           const pln_token *token) PLN_CHECKED;
/* The place that a comment told, which is printed again. */
pln_status pln_parse_record_place(pln_parser *p, pln_ref node,
                                  const pln_note *note) PLN_CHECKED;
/* A call of an operator that nobody here knows has the type that a comment
 * told; all else is typed by inference. */
pln_status pln_parse_annotated_type(pln_parser *p, pln_ref node,
                                    const pln_note *note) PLN_CHECKED;
/* The text tells the type of `node`: more of it than was inferred, maybe, but
 * nothing else; reported at `token` otherwise. */
pln_status pln_parse_declare(pln_parser *p, const pln_token *token,
                             pln_ref node, pln_type type) PLN_CHECKED;
pln_status pln_parse_var(pln_parser *p, pln_symbol name, pln_type type,
                         const pln_token *token, const pln_note *note,
                         pln_ref *out) PLN_CHECKED;
/* A new variable from `%x` or `%x: T` at the token; not bound yet. */
pln_status pln_parse_binder(pln_parser *p, pln_symbol *name,
                            pln_ref *var) PLN_CHECKED;
/* Values of the newest frame. */
pln_status pln_parse_push(pln_parser *p, pln_ref value) PLN_CHECKED;
/* What a number, a global's name, ... stands for in the function at hand;
 * `kind` tells them apart. 0: nothing. */
typedef enum pln_numbered {
  PLN_NUMBERED_TEMP = 1,
  PLN_NUMBERED_GLOBAL,
  PLN_NUMBERED_CONSTANT
} pln_numbered;
uint32_t pln_parse_numbered(const pln_parser *p, pln_numbered kind,
                            uint32_t number);
pln_status pln_parse_number_is(pln_parser *p, pln_numbered kind,
                               uint32_t number, pln_ref node) PLN_CHECKED;

/* relay/parse/atom.c: the smallest expressions; sets p->value and p->mode, or
 * opens a frame. */
pln_status pln_parse_atom(pln_parser *p) PLN_CHECKED;
/* The number of the graph variable at hand. */
pln_status pln_parse_temp(pln_parser *p, uint32_t *out) PLN_CHECKED;
/* `may_be_var`: a variable could stand there. */
pln_status pln_parse_unknown_constructor(pln_parser *p, const pln_token *token,
                                         bool may_be_var) PLN_CHECKED;

/* relay/parse/call.c: at the attributes or the ')' of the newest frame. */
pln_status pln_parse_finish_call(pln_parser *p) PLN_CHECKED;
/* Takes n_results=3 out of *attrs; 0 when it is not told. */
pln_status pln_parse_results(pln_parser *p, pln_attrs *attrs,
                             uint32_t *results) PLN_CHECKED;
bool pln_parse_at_meta_attrs(const pln_parser *p);

/* relay/parse/branch.c: functions, if, match. */
pln_status pln_parse_function(pln_parser *p) PLN_CHECKED;
pln_status pln_parse_if(pln_parser *p) PLN_CHECKED;
pln_status pln_parse_match(pln_parser *p) PLN_CHECKED;
/* Opens the frame of a function whose head was read. `mark`, `types`: before
 * its head. */
pln_status pln_parse_open_function(pln_parser *p, const pln_parsed_head *head,
                                   uint32_t mark, uint32_t types,
                                   bool definition) PLN_CHECKED;
/* The newest frame is of that kind, and a part of it is the value. */
pln_status pln_parse_function_part(pln_parser *p) PLN_CHECKED;
pln_status pln_parse_if_part(pln_parser *p) PLN_CHECKED;
pln_status pln_parse_match_part(pln_parser *p) PLN_CHECKED;

/* relay/parse/expr.c */
pln_status pln_parse_open(pln_parser *p, pln_frame_kind kind,
                          const pln_token *token) PLN_CHECKED;
/* Lets and a result follow. */
pln_status pln_parse_open_sequence(pln_parser *p) PLN_CHECKED;
/* At the '(' of the newest frame, a call. */
pln_status pln_parse_arguments(pln_parser *p) PLN_CHECKED;
/* Takes the newest frame and its values away. */
void pln_parse_close(pln_parser *p);
/* Reads on until no frame is left; *out is the value. */
pln_status pln_parse_run(pln_parser *p, pln_ref *out) PLN_CHECKED;

#endif
