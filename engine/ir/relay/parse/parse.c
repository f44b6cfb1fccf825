/* relay/parse/parse.c: parses Relay text: modules and expressions.
 *
 * Called by everything that loads text. A module is parsed in steps: the
 * positions and names of definitions, the metadata, types, function signatures,
 * bodies. Hence everything may be used before its definition, and a body is
 * typed while it is parsed. Invariant: any input gives a module or diagnostics,
 * in linear time and memory. */

#include "ir/relay/parse/parse.h"
#include "ir/infer/check_calls.h"
#include "ir/relay/metadata/read_section.h"

typedef enum definition_kind { FUNCTION, TYPE, EXTERN_TYPE } definition_kind;

typedef struct definition {
  uint8_t kind;    /* definition_kind */
  bool bad;        /* reported already */
  pln_lexer at;    /* position after the name, */
  pln_token token; /* the name's token */
  pln_symbol name;
  uint32_t first_var; /* its type parameters, in reading.vars */
} definition;

typedef struct module_reader {
  pln_parser p;
  pln_module *module;
  definition *rows;
  uint32_t count, capacity;
  pln_type *vars;
  uint32_t n_vars, cap_vars;
} module_reader;

/* ---------------------------------------------------------------- lifetime */

static const pln_parse_options nothing;

/* Stacks are never NULL, so that empty ranges of them are valid pointers. */
static pln_status reserve_stacks(pln_parser *p) {
  enum { LEAST = 16 };
  pln_engine *e = p->engine;
  PLN_TRY(pln_mem_grow(e, (void **)&p->types, &p->cap_types, LEAST,
                       sizeof *p->types));
  PLN_TRY(pln_mem_grow(e, (void **)&p->items, &p->cap_items, LEAST,
                       sizeof *p->items));
  return pln_mem_grow(e, (void **)&p->values, &p->cap_values, LEAST,
                      sizeof *p->values);
}

static pln_status start_parser(pln_parser *p, pln_engine *engine,
                               pln_slice text, const char *source,
                               bool type_alone) {
  *p = (pln_parser){.engine = engine,
                    .text = text,
                    .source = source ? source : "text",
                    .given = &nothing,
                    .type_alone = type_alone};
  pln_arena_init(&p->arena, engine);
  pln_buffer_init(&p->word, engine);
  PLN_TRY(pln_idmap_new(engine, &p->names));
  PLN_TRY(pln_idmap_new(engine, &p->numbered));
  PLN_TRY(pln_idmap_new(engine, &p->signatures));
  PLN_TRY(pln_idmap_new(engine, &p->type_names));
  PLN_TRY(pln_symbol_intern(engine, pln_text(p->source), &p->source_symbol));
  PLN_TRY(reserve_stacks(p));
  pln_lex_begin(&p->lexer, text);
  p->lexer.type_alone = type_alone;
  return pln_parse_next(p);
}

static void free_parser(pln_parser *p) {
  pln_engine *e = p->engine;
  pln_builder_free(p->b);
  pln_metadata_reader_free(p);
  pln_idmap_free(p->names);
  pln_idmap_free(p->numbered);
  pln_idmap_free(p->signatures);
  pln_idmap_free(p->type_names);
  pln_arena_free(&p->arena);
  pln_buffer_free(&p->word);
  pln_parse_free_types(p);
  pln_parse_free_attrs(p);
  pln_mem_free(e, p->bindings, p->cap_bindings * sizeof *p->bindings);
  pln_mem_free(e, p->params, p->cap_params * sizeof *p->params);
  pln_mem_free(e, p->values, p->cap_values * sizeof *p->values);
  pln_mem_free(e, p->frames, p->cap_frames * sizeof *p->frames);
  pln_mem_free(e, p->globals, p->cap_globals * sizeof *p->globals);
  pln_mem_free(e, p->defined_types,
               p->cap_defined_types * sizeof *p->defined_types);
}

/* Moves the lexer back to a position after a token. */
static pln_status go_to(pln_parser *p, const pln_lexer *at) {
  p->lexer = *at;
  return pln_parse_next(p);
}

/* ----------------------------------------------------------------- version */

static pln_status read_version(pln_parser *p, bool needed) {
  if (p->token.kind == PLN_T_VERSION) {
    if (!pln_slice_is(p->token.text, "0.0.5"))
      PLN_TRY(pln_parse_report(
          p, &p->token, PLN_ERR_FORMAT,
          "unknown version of the text format; 0.0.5 is known"));
    return pln_parse_next(p);
  }
  if (!needed || p->n_errors > 0)
    return PLN_OK;
  p->recovery_token = p->token.whole.data;
  return pln_parse_report(p, &p->token, PLN_ERR_FORMAT,
                          "expected #[version = \"0.0.5\"] in the first line");
}

/* ------------------------------------------------------------- definitions */

static pln_status add_definition(module_reader *r, definition_kind kind) {
  pln_parser *p = &r->p;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&r->rows, &r->capacity,
                       (size_t)r->count + 1, sizeof *r->rows));
  definition *d = &r->rows[r->count];
  *d = (definition){.kind = (uint8_t)kind, .at = p->lexer, .token = p->token};
  PLN_TRY(pln_parse_symbol(p, &p->token, &d->name));
  r->count++;
  return PLN_OK;
}

/* A duplicate name is an error at its second occurrence. */
static pln_status claim(module_reader *r, pln_idmap *names, const char *what,
                        bool given) {
  pln_parser *p = &r->p;
  definition *d = &r->rows[r->count - 1];
  if (!pln_idmap_get(names, d->name))
    return PLN_OK;
  d->bad = true;
  return pln_parse_report(
      p, &d->token, PLN_ERR_NAME, "the %s '%.*s' is defined %s", what,
      d->token.text.size > 80 ? 80 : (int)d->token.text.size,
      d->token.text.data, given ? "by the given module already" : "twice");
}

/* Declares a function of type `type` (0: unknown yet). */
static pln_status know_function(pln_parser *p, pln_symbol name, pln_type type) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->globals, &p->cap_globals,
                       (size_t)p->n_globals + 1, sizeof *p->globals));
  p->globals[p->n_globals++] = name;
  return pln_idmap_set(p->signatures, name, type + 1);
}

static pln_status know_type(pln_parser *p, pln_symbol name) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->defined_types,
                       &p->cap_defined_types, (size_t)p->n_defined_types + 1,
                       sizeof *p->defined_types));
  p->defined_types[p->n_defined_types++] = name;
  return pln_idmap_set(p->type_names, name, 1);
}

/* The parsed module starts with the contents of the given one. */
static pln_status begin_with_given_module(module_reader *r) {
  pln_parser *p = &r->p;
  const pln_module *given = p->given->module;
  if (!given)
    return pln_module_new(p->engine, &r->module);
  PLN_TRY(pln_module_copy(given, &r->module));
  for (uint32_t i = 0; i < given->count; i++)
    PLN_TRY(know_function(p, pln_module_name_at(given, i),
                          pln_signature(pln_module_function_at(given, i))));
  for (uint32_t i = 0; i < pln_module_n_types(given); i++)
    PLN_TRY(know_type(p, pln_module_type_def_at(given, i)->name));
  p->tir_vars = given->tir_vars;
  return PLN_OK;
}

static pln_status note_function(module_reader *r) {
  pln_parser *p = &r->p;
  if (p->token.kind != PLN_T_GLOBAL)
    PLN_TRY(pln_parse_unsigiled(p, "a global name", '@'));
  if (pln_parse_peek(p) == PLN_T_ASSIGN)
    return pln_parse_fail(p, &p->token,
                          "a function without a body cannot be parsed");
  PLN_TRY(add_definition(r, FUNCTION));
  pln_symbol name = r->rows[r->count - 1].name;
  bool given = pln_module_find(r->module, name) != PLN_NONE;
  PLN_TRY(claim(r, p->signatures, "function", given));
  return given ? PLN_OK : know_function(p, name, 0);
}

static pln_status note_type(module_reader *r, bool is_extern) {
  pln_parser *p = &r->p;
  if (p->token.kind != PLN_T_NAME && p->token.kind != PLN_T_STRING)
    return pln_parse_report_expected(p, "the name of a type");
  PLN_TRY(add_definition(r, is_extern ? EXTERN_TYPE : TYPE));
  pln_symbol name = r->rows[r->count - 1].name;
  bool given = pln_module_find_type(r->module, name) != PLN_NONE;
  PLN_TRY(claim(r, p->type_names, "type", given));
  return given ? PLN_OK : know_type(p, name);
}

static bool begins_definition(const pln_parser *p) {
  return p->token.kind == PLN_T_DEF || p->token.kind == PLN_T_TYPE ||
         p->token.kind == PLN_T_EXTERN || p->token.kind == PLN_T_METADATA ||
         p->token.kind == PLN_T_END;
}

/* Skips the rest of a definition, which is parsed later. Definitions are
 * recognised outside brackets; because a bracket may be missing, `def` always
 * starts one. */
static void skip_definition(pln_parser *p) {
  uint32_t depth = 0;
  for (;;) {
    switch (p->token.kind) {
    case PLN_T_LPAREN:
    case PLN_T_LBRACE: depth++; break;
    case PLN_T_RPAREN:
    case PLN_T_RBRACE: depth -= depth > 0; break;
    case PLN_T_END:
    case PLN_T_METADATA:
    case PLN_T_DEF: return;
    case PLN_T_TYPE:
    case PLN_T_EXTERN:
      if (depth == 0)
        return;
      break;
    default: break;
    }
    pln_lex_next(&p->lexer, &p->token);
  }
}

static pln_status note_definition(module_reader *r) {
  pln_parser *p = &r->p;
  bool is_extern;
  if (p->token.kind == PLN_T_DEF) {
    PLN_TRY(pln_parse_next(p));
    return note_function(r);
  }
  if (p->token.kind == PLN_T_GLOBAL && pln_parse_peek(p) != PLN_T_ASSIGN) {
    PLN_TRY(pln_parse_report(p, &p->token, PLN_ERR_FORMAT,
                             "a function's definition begins with 'def'"));
    return note_function(r);
  }
  PLN_TRY(pln_parse_accept(p, PLN_T_EXTERN, &is_extern));
  if (p->token.kind != PLN_T_TYPE)
    return pln_parse_report_expected(p, "'def', 'type' or 'extern type'");
  PLN_TRY(pln_parse_next(p));
  return note_type(r, is_extern);
}

/* At the section, or at the end of a text without one. */
static pln_status read_metadata(pln_parser *p) {
  static const char none[] =
      "{\"root\": 0, \"nodes\": [{\"type_key\": \"Map\", \"keys\": [], "
      "\"data\": []}]}";
  pln_slice section = {p->lexer.at, (size_t)(p->lexer.end - p->lexer.at)};
  if (p->token.kind == PLN_T_METADATA)
    return pln_metadata_reader_parse(p, section);
  return p->given->n_constants > 0 || p->given->n_objects > 0
             ? pln_metadata_reader_parse(p, pln_text(none))
             : PLN_OK;
}

/* Finds all definitions and parses the metadata after them. */
static pln_status scan_definitions(module_reader *r) {
  pln_parser *p = &r->p;
  while (p->token.kind != PLN_T_END && p->token.kind != PLN_T_METADATA) {
    pln_status status = note_definition(r);
    if (!pln_parse_bad_text(p, status))
      PLN_TRY(status);
    skip_definition(p);
  }
  return read_metadata(p);
}

/* ------------------------------------------------------------------- types */

/* Name(T, T) */
static pln_status read_constructor(pln_parser *p, pln_constructor *out) {
  uint32_t first = p->n_types;
  bool open, more = true;
  pln_type type;
  if (p->token.kind != PLN_T_NAME && p->token.kind != PLN_T_STRING)
    return pln_parse_report_expected(p, "the name of a constructor");
  PLN_TRY(pln_parse_symbol(p, &p->token, &out->name));
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_accept(p, PLN_T_LPAREN, &open));
  while (open && more && p->token.kind != PLN_T_RPAREN) {
    PLN_TRY(pln_parse_type(p, &type));
    PLN_TRY(pln_parse_push_type(p, type));
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &more));
  }
  out->n_inputs = p->n_types - first;
  if (open && p->token.kind != PLN_T_RPAREN)
    return pln_parse_report_expected(p, "',' or ')'");
  return open ? pln_parse_next(p) : PLN_OK;
}

typedef struct constructors {
  pln_constructor *rows;
  uint32_t count, capacity;
} constructors;

static pln_status read_constructors(pln_parser *p, constructors *all) {
  bool more = true;
  while (more && p->token.kind != PLN_T_RBRACE) {
    PLN_TRY(pln_mem_grow(p->engine, (void **)&all->rows, &all->capacity,
                         (size_t)all->count + 1, sizeof *all->rows));
    PLN_TRY(read_constructor(p, &all->rows[all->count]));
    all->count++;
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &more));
  }
  return p->token.kind == PLN_T_RBRACE
             ? pln_parse_next(p)
             : pln_parse_report_expected(p, "',' or '}'");
}

/* p->types holds the type variables, then the fields of all constructors. */
static pln_status add_type(module_reader *r, const definition *d,
                           constructors *all, uint32_t first, uint32_t n_vars) {
  pln_parser *p = &r->p;
  const pln_type *at = p->types + first + n_vars;
  size_t mark = pln_diag_count(p->engine);
  for (uint32_t i = 0; i < all->count; i++) {
    all->rows[i].inputs = at;
    at += all->rows[i].n_inputs;
  }
  pln_type_def data = {.name = d->name,
                       .is_extern = d->kind == EXTERN_TYPE,
                       .n_vars = n_vars,
                       .vars = p->types + first,
                       .n_constructors = all->count,
                       .constructors = all->rows};
  return pln_parse_located(p, &d->token, mark,
                           pln_module_set_type(r->module, &data));
}

/* [A, B] { ... } */
static pln_status read_type_body(module_reader *r, const definition *d,
                                 constructors *all) {
  pln_parser *p = &r->p;
  uint32_t first = p->n_types, n_vars;
  bool open;
  PLN_TRY(go_to(p, &d->at));
  PLN_TRY(pln_parse_generics(p, &n_vars));
  pln_token token = p->token;
  PLN_TRY(pln_parse_accept(p, PLN_T_LBRACE, &open));
  if (open && d->kind == EXTERN_TYPE)
    return pln_parse_fail(p, &token, "an extern type has no constructors");
  if (open)
    PLN_TRY(read_constructors(p, all));
  if (!begins_definition(p))
    return pln_parse_report_expected(p, "a definition");
  return add_type(r, d, all, first, n_vars);
}

static pln_status read_type_definition(module_reader *r, const definition *d) {
  pln_parser *p = &r->p;
  constructors all = {0};
  uint32_t types = p->n_types, mark = p->n_bindings;
  pln_status status = read_type_body(r, d, &all);
  pln_mem_free(p->engine, all.rows, all.capacity * sizeof *all.rows);
  p->n_types = types;
  pln_parse_unbind(p, mark);
  return pln_parse_bad_text(p, status) ? PLN_OK : status;
}

/* --------------------------------------------------------------- functions */

/* The same type parameters are used when the head is parsed again before the
 * body. */
static pln_status keep_vars(module_reader *r, definition *d, uint32_t n,
                            const pln_type *vars) {
  d->first_var = r->n_vars;
  PLN_TRY(pln_mem_grow(r->p.engine, (void **)&r->vars, &r->cap_vars,
                       (size_t)r->n_vars + n, sizeof *r->vars));
  if (n > 0)
    memcpy(r->vars + r->n_vars, vars, n * sizeof *vars);
  r->n_vars += n;
  return PLN_OK;
}

/* The function type if the signature is complete; else 0, and it is inferred
 * with the body. */
static pln_status whole_signature(pln_parser *p, const pln_parsed_head *head,
                                  pln_type *out) {
  bool whole = head->ret != 0;
  for (uint32_t i = 0; i < head->n; i++)
    whole = whole && p->params[i].type != 0;
  *out = 0;
  return whole ? pln_parse_signature(p, head, out) : PLN_OK;
}

static pln_status read_signature(module_reader *r, definition *d) {
  pln_parser *p = &r->p;
  pln_parsed_head head;
  pln_type type = 0;
  uint32_t types = p->n_types, mark = p->n_bindings, errors = p->n_errors;
  pln_status status = go_to(p, &d->at);
  if (status == PLN_OK)
    status = pln_parse_head(p, &head);
  if (status == PLN_OK)
    status = whole_signature(p, &head, &type);
  if (status == PLN_OK)
    status = keep_vars(r, d, head.n_vars, p->types + types);
  p->n_types = types;
  pln_parse_unbind(p, mark);
  d->bad = p->n_errors > errors;
  if (status == PLN_OK)
    return pln_idmap_set(p->signatures, d->name, type + 1);
  return pln_parse_bad_text(p, status) ? PLN_OK : status;
}

static pln_status read_body(module_reader *r, const definition *d,
                            pln_ref *out) {
  pln_parser *p = &r->p;
  pln_parsed_head head;
  uint32_t mark = p->n_bindings, types = p->n_types;
  PLN_TRY(go_to(p, &d->at));
  p->given_vars = r->vars ? r->vars + d->first_var : NULL;
  PLN_TRY(pln_parse_head(p, &head));
  head.token = d->token;
  PLN_TRY(pln_parse_open_function(p, &head, mark, types, true));
  PLN_TRY(pln_parse_run(p, out));
  return begins_definition(p) ? PLN_OK
                              : pln_parse_report_expected(p, "a definition");
}

static pln_status new_builder(pln_parser *p) {
  pln_builder_free(p->b);
  p->b = NULL;
  PLN_TRY(pln_builder_new(p->engine, &p->b));
  pln_builder_module(p->b, p->module);
  p->function++;
  return PLN_OK;
}

/* Seals nothing after an error. An error that names a node gets the node's
 * span. */
static pln_status seal(pln_parser *p, const pln_token *token, pln_ref root,
                       pln_graph **out) {
  size_t mark = pln_diag_count(p->engine);
  *out = NULL;
  if (p->n_errors > 0)
    return PLN_OK;
  pln_status status = pln_builder_seal(p->b, root, out);
  if (status != PLN_OK)
    PLN_TRY(pln_parse_quote(p, mark));
  return pln_parse_located(p, token, mark, status);
}

static pln_status read_function(module_reader *r, const definition *d) {
  pln_parser *p = &r->p;
  pln_graph *graph = NULL;
  pln_ref root;
  PLN_TRY(new_builder(p));
  pln_status status = read_body(r, d, &root);
  if (status == PLN_OK)
    status = seal(p, &d->token, root, &graph);
  if (status == PLN_OK && graph)
    status = pln_module_set(r->module, d->name, graph);
  pln_graph_release(graph);
  while (p->n_frames > 0)
    pln_parse_close(p);
  pln_parse_unbind(p, 0);
  p->n_types = 0;
  return pln_parse_bad_text(p, status) ? PLN_OK : status;
}

/* ----------------------------------------------------------------- modules */

static pln_status read_definitions(module_reader *r, definition_kind kind,
                                   pln_status (*read)(module_reader *,
                                                      definition *)) {
  for (uint32_t i = 0; i < r->count; i++) {
    definition *d = &r->rows[i];
    bool same = (d->kind == FUNCTION) == (kind == FUNCTION);
    if (same && !d->bad)
      PLN_TRY(read(r, d));
  }
  return PLN_OK;
}

static pln_status type_step(module_reader *r, definition *d) {
  return read_type_definition(r, d);
}

static pln_status body_step(module_reader *r, definition *d) {
  return read_function(r, d);
}

static pln_status failed(const pln_parser *p) {
  return p->n_errors > 0 ? PLN_ERR_FORMAT : PLN_OK;
}

/* Parses attributes from another text instead of the current one. */
static pln_status read_attrs_text(pln_parser *p, pln_slice text,
                                  pln_attrs *out) {
  pln_lex_begin(&p->lexer, text);
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_attrs(p, out));
  return p->token.kind == PLN_T_END
             ? PLN_OK
             : pln_parse_report_expected(p, "name=value");
}

/* The module's own attributes, stored in the metadata. */
static pln_status read_module_attrs(module_reader *r) {
  pln_parser *p = &r->p;
  const pln_slice whole = p->text;
  const char *source = p->source;
  pln_buffer text;
  bool found;
  pln_buffer_init(&text, p->engine);
  pln_status status = pln_metadata_read_module(p, &text, &found);
  if (status == PLN_OK && found) {
    p->text = (pln_slice){text.data, text.size};
    p->source = "attributes of the module";
    status = read_attrs_text(p, p->text, &r->module->attrs);
    p->text = whole;
    p->source = source;
    p->token = (pln_token){.kind = PLN_T_END};
    p->note = (pln_note){.source = {NULL, 0}};
  }
  pln_buffer_free(&text);
  return pln_parse_bad_text(p, status) ? PLN_OK : status;
}

/* Callers were parsed before the effects of later functions were known. */
static pln_status update_effects(pln_module *m) {
  bool *all = pln_mem_new(m->engine, m->count);
  if (!all)
    return m->count ? pln_nomem(m->engine) : PLN_OK;
  uint32_t count = m->count;
  memset(all, 1, count);
  pln_status status = pln_module_reinfer_callers(m, m, all);
  pln_mem_free(m->engine, all, count);
  return status;
}

/* Infers types that were unknown during parsing, because of recursion or
 * because later uses determine them. */
static pln_status infer(module_reader *r) {
  pln_module *typed;
  PLN_TRY(failed(&r->p));
  size_t mark = pln_diag_count(r->p.engine);
  pln_status status = pln_module_infer(r->module, &typed);
  if (status != PLN_OK)
    PLN_TRY(pln_parse_quote(&r->p, mark));
  PLN_TRY(status);
  pln_module_release(r->module);
  r->module = typed;
  for (uint32_t i = 0; pln_module_was_onnx(typed) && i < typed->count; i++)
    PLN_TRY(pln_graph_accept_calls(pln_module_function_at(typed, i)));
  return update_effects(typed);
}

static pln_status read_module(module_reader *r) {
  pln_parser *p = &r->p;
  p->in_module = true;
  PLN_TRY(begin_with_given_module(r));
  p->module = r->module;
  PLN_TRY(read_version(p, true));
  PLN_TRY(scan_definitions(r));
  PLN_TRY(read_module_attrs(r));
  PLN_TRY(read_definitions(r, TYPE, type_step));
  PLN_TRY(read_definitions(r, FUNCTION, read_signature));
  PLN_TRY(read_definitions(r, FUNCTION, body_step));
  r->module->tir_vars = p->tir_vars;
  return infer(r);
}

/* The TVMScript of PrimFuncs, with its imports or decorators first. */
static bool is_script(pln_slice text) {
  static const char *const begins[] = {"# from tvm.script", "from tvm.script",
                                       "@I.ir_module", "@T.prim_func",
                                       "metadata = tvm.ir.load_json"};
  for (size_t i = 0; i < PLN_COUNT(begins); i++)
    if (text.size >= strlen(begins[i]) &&
        !memcmp(text.data, begins[i], strlen(begins[i])))
      return true;
  return false;
}

pln_status pln_parse_module(pln_engine *engine, pln_slice text,
                            const char *source_name,
                            const pln_parse_options *given, pln_module **out) {
  module_reader r = {.count = 0};
  if (is_script(text) &&
      (!given || (!given->module && !given->n_constants && !given->n_objects)))
    return pln_parse_script(engine, text, source_name, out);
  pln_status status = start_parser(&r.p, engine, text, source_name, false);
  r.p.given = given ? given : &nothing;
  pln_stoppable_begin(engine);
  if (status == PLN_OK)
    status = read_module(&r);
  pln_stoppable_end(engine);
  pln_mem_free(engine, r.rows, r.capacity * sizeof *r.rows);
  pln_mem_free(engine, r.vars, r.cap_vars * sizeof *r.vars);
  free_parser(&r.p);
  if (status == PLN_OK)
    *out = r.module;
  else
    pln_module_release(r.module);
  return status;
}

/* ------------------------------------------------------------------- types */

static pln_status read_type_alone(pln_parser *p, uint32_t n_vars,
                                  const pln_type *vars, pln_type *out) {
  for (uint32_t i = 0; i < n_vars; i++)
    PLN_TRY(pln_parse_bind(p, PLN_SPACE_TYPE,
                           pln_type_symbol(p->engine, vars[i]), vars[i]));
  PLN_TRY(pln_parse_type(p, out));
  if (p->token.kind != PLN_T_END)
    return pln_parse_report_expected(p, "the end");
  return failed(p);
}

pln_status pln_parse_type_text(pln_engine *engine, pln_slice text,
                               uint32_t n_vars, const pln_type *vars,
                               pln_type *out) {
  pln_parser p;
  pln_type type = 0;
  pln_status status = start_parser(&p, engine, text, "type", true);
  if (status == PLN_OK)
    status = read_type_alone(&p, n_vars, vars, &type);
  free_parser(&p);
  if (status == PLN_OK)
    *out = type;
  return status;
}

/* ------------------------------------------------------------- expressions */

/* The metadata section follows the expression that refers to it. */
static pln_status find_metadata(pln_parser *p) {
  pln_lexer at = p->lexer;
  pln_token token = p->token;
  while (p->token.kind != PLN_T_END && p->token.kind != PLN_T_METADATA)
    pln_lex_next(&p->lexer, &p->token);
  PLN_TRY(read_metadata(p));
  p->lexer = at;
  p->token = token;
  return PLN_OK;
}

static pln_status read_expr(module_reader *r, pln_graph **out) {
  pln_parser *p = &r->p;
  pln_ref root;
  PLN_TRY(begin_with_given_module(r));
  p->module = r->module;
  p->in_module = p->given->module != NULL;
  PLN_TRY(read_version(p, false));
  PLN_TRY(find_metadata(p));
  PLN_TRY(new_builder(p));
  pln_token token = p->token;
  PLN_TRY(pln_parse_open_sequence(p));
  PLN_TRY(pln_parse_run(p, &root));
  if (p->token.kind != PLN_T_END && p->token.kind != PLN_T_METADATA)
    return pln_parse_report_expected(p, "the end");
  PLN_TRY(seal(p, &token, root, out));
  return failed(p);
}

pln_status pln_parse_expr(pln_engine *engine, pln_slice text,
                          const char *source_name,
                          const pln_parse_options *given, pln_graph **out) {
  module_reader r = {.count = 0};
  pln_graph *graph = NULL;
  pln_status status = start_parser(&r.p, engine, text, source_name, false);
  r.p.given = given ? given : &nothing;
  pln_stoppable_begin(engine);
  if (status == PLN_OK)
    status = read_expr(&r, &graph);
  pln_stoppable_end(engine);
  free_parser(&r.p);
  pln_module_release(r.module);
  if (status == PLN_OK)
    *out = graph;
  else
    pln_graph_release(graph);
  return status;
}
