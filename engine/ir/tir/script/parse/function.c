/* tir/script/parse/function.c: PrimFuncs: the head, and what is built when the
 * body ends.
 *
 * Called by the line parser. Functions may call functions that follow; so their
 * names and results are found first. */

#include "ir/tir/script/parse/parse.h"

/* ------------------------------------------------------- names of functions */

static const char *skip_blanks(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t'))
    at++;
  return at;
}

static const char *end_of_word(const char *at, const char *end) {
  while (at < end &&
         ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
          (*at >= '0' && *at <= '9') || *at == '_'))
    at++;
  return at;
}

/* The dtype after "-> T." at the end of a head; 0: none. */
static pln_status result_of(pln_script_parser *p, const char *at,
                            const char *end, pln_type *out) {
  pln_status status;
  *out = 0;
  for (; end - at > 5; at++)
    if (!memcmp(at, "-> T.", 5)) {
      const char *word = at + 5;
      pln_slice name = {word, (size_t)(end_of_word(word, end) - word)};
      return pln_script_find_dtype(p, name, out, &status) ? status : PLN_OK;
    }
  return PLN_OK;
}

static pln_status note_function(pln_script_parser *p, const char *at,
                                const char *end) {
  const char *word = end_of_word(at, end);
  pln_known_function row = {.result = 0};
  if (word == at)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(p->engine, (pln_slice){at, (size_t)(word - at)},
                            &row.name));
  PLN_TRY(result_of(p, word, end, &row.result));
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->known, &p->cap_known,
                       (size_t)p->n_known + 1, sizeof *p->known));
  p->known[p->n_known++] = row;
  return pln_idmap_set(p->functions, row.name, p->n_known);
}

pln_status pln_script_find_functions(pln_script_parser *p) {
  const char *at = p->lexer.begin, *end = p->lexer.end;
  while (at < end) {
    const char *line = memchr(at, '\n', (size_t)(end - at));
    line = line ? line : end;
    at = skip_blanks(at, line);
    if (line - at > 4 && !memcmp(at, "def ", 4))
      PLN_TRY(note_function(p, skip_blanks(at + 4, line), line));
    at = line + (line < end);
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- head */

/* A: T.Buffer(...): a handle that is seen as that buffer. */
static pln_status buffer_param(pln_script_parser *p, pln_slice name,
                               const pln_script_value *call) {
  pln_ref param, buffer, data, bind;
  if (call->v.of.number != PLN_METHOD_BUFFER)
    return pln_script_refuse(p, call, "a type or T.Buffer is expected");
  PLN_TRY(pln_script_make_buffer(p, call, name, &buffer, &data));
  p->word.size = 0;
  PLN_TRY(pln_buffer_add(&p->word, name.data, name.size));
  PLN_TRY(pln_buffer_add(&p->word, "_handle", 7));
  PLN_TRY(pln_script_make_var(p, (pln_slice){p->word.data, p->word.size},
                              p->types[3], false, &param));
  PLN_TRY(pln_script_hold(p, param));
  PLN_TRY(pln_script_push_ref(p, param));
  PLN_TRY(pln_script_push_ref(p, buffer));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_BUFFER_BIND}, p->n_refs - 2,
                          &bind));
  PLN_TRY(pln_script_add_part(
      p, (pln_script_part){.what = PLN_PART_BIND, .a = bind}));
  p->frames[p->n_frames - 1].params++;
  return pln_script_bind_ref(p, name, PLN_V_BUFFER, buffer);
}

static pln_status read_param(pln_script_parser *p) {
  pln_slice name = p->token.text;
  pln_script_value type;
  pln_ref param;
  PLN_TRY(pln_script_expect(p, PLN_S_NAME));
  PLN_TRY(pln_script_expect(p, PLN_S_COLON));
  PLN_TRY(pln_script_expr_parse(p, &type));
  p->place = type.at;
  p->place_size = type.size;
  if (type.kind == PLN_V_CALL)
    return buffer_param(p, name, &type);
  if (type.kind != PLN_V_TYPE)
    return pln_script_refuse(p, &type, "a type or T.Buffer is expected");
  PLN_TRY(pln_script_make_var(p, name, type.v.of.type, type.is_size, &param));
  PLN_TRY(pln_script_hold(p, param));
  p->frames[p->n_frames - 1].params++;
  return pln_script_bind_ref(p, name, PLN_V_EXPR, param);
}

static pln_status read_result(pln_script_parser *p) {
  pln_script_value type;
  bool given;
  PLN_TRY(pln_script_accept(p, PLN_S_ARROW, &given));
  if (!given)
    return PLN_OK;
  PLN_TRY(pln_script_expr_parse(p, &type));
  if (type.kind == PLN_V_NONE)
    return PLN_OK;
  if (type.kind != PLN_V_TYPE)
    return pln_script_refuse(p, &type, "a type is expected");
  p->frames[p->n_frames - 1].type = type.v.of.type;
  return PLN_OK;
}

static pln_status open_function(pln_script_parser *p, pln_slice name) {
  uint32_t indent = p->frames[p->n_frames - 1].indent;
  pln_open_frame f = {
      .what = PLN_F_FUNCTION, .header = indent, .indent = indent + 1};
  PLN_TRY(pln_symbol_intern(p->engine, name, &f.name));
  if (!p->private_function)
    PLN_TRY(pln_script_with_string(p, "global_symbol", name, &f.attrs));
  p->private_function = false;
  pln_builder_free(p->b);
  p->b = NULL;
  PLN_TRY(pln_builder_new(p->engine, &p->b));
  p->outside = false;
  pln_idmap_free(p->ranges);
  p->ranges = NULL;
  PLN_TRY(pln_idmap_new(p->engine, &p->ranges));
  p->n_loop_ranges = 0;
  p->blocks = 0;
  f.at = p->place;
  f.size = p->place_size;
  return pln_script_open_frame(p, f);
}

pln_status pln_script_function(pln_script_parser *p) {
  bool more = true;
  PLN_TRY(pln_script_next(p));
  pln_slice name = p->token.text;
  if (p->frames[p->n_frames - 1].what != PLN_F_MODULE)
    return pln_script_expected(p, "no function inside a function");
  PLN_TRY(pln_script_expect(p, PLN_S_NAME));
  PLN_TRY(open_function(p, name));
  PLN_TRY(pln_script_expect(p, PLN_S_LPAREN));
  while (more && p->token.kind != PLN_S_RPAREN) {
    PLN_TRY(read_param(p));
    PLN_TRY(pln_script_accept(p, PLN_S_COMMA, &more));
  }
  PLN_TRY(pln_script_expect(p, PLN_S_RPAREN));
  return read_result(p);
}

/* ---------------------------------------------------------------------- end */

/* TVMScript omits a root block that only allocates, or only holds blocks. */
static bool needs_root(const pln_script_parser *p, const pln_open_frame *f) {
  const pln_graph *g = p->b->graph;
  for (uint32_t i = f->parts; i < p->n_parts; i++)
    if (p->parts[i].what == PLN_PART_ALLOC)
      return true;
  if (p->n_stmts - f->stmts != 1)
    return p->blocks > 0;
  const pln_node *n = &g->nodes[p->stmts[f->stmts]];
  return n->kind == PLN_BLOCK_REALIZE ? n->count > 1 : p->blocks > 0;
}

static pln_status add_root(pln_script_parser *p, const pln_open_frame *f) {
  pln_open_frame root = *f;
  root.what = PLN_F_BLOCK;
  root.realized = true;
  root.given = 3; /* a root block says nothing */
  root.ref = PLN_NONE;
  root.attrs = 0;
  PLN_TRY(
      pln_script_with_string(p, "name_hint", pln_text("root"), &root.attrs));
  return pln_script_close_block(p, &root);
}

static bool is_bind(const pln_script_parser *p, uint32_t part) {
  return p->parts[part].what == PLN_PART_BIND;
}

/* By Var, 1 + the part that binds it to a buffer. */
static pln_status find_binds(const pln_script_parser *p,
                             const pln_open_frame *f, pln_idmap *map) {
  for (uint32_t i = f->parts; i < p->n_parts; i++) {
    const pln_node *n = &p->b->graph->nodes[p->parts[i].a];
    if (is_bind(p, i))
      PLN_TRY(pln_idmap_set(map, p->b->graph->operands[n->first], i + 1));
  }
  return PLN_OK;
}

/* The buffer map in the order of the parameters, whatever that of the text. */
static pln_status push_binds(pln_script_parser *p, const pln_open_frame *f) {
  pln_idmap *map;
  pln_status status;
  PLN_TRY(pln_idmap_new(p->engine, &map));
  status = find_binds(p, f, map);
  for (uint32_t i = 0; status == PLN_OK && i < f->params; i++) {
    uint32_t part = pln_idmap_get(map, p->saved[f->saved + i]);
    if (part)
      status = pln_script_push_ref(p, p->parts[part - 1].a);
  }
  pln_idmap_free(map);
  return status;
}

/* The buffer map, then the body, as one statement. */
static pln_status whole_body(pln_script_parser *p, const pln_open_frame *f,
                             pln_ref *out) {
  uint32_t first = p->n_refs;
  PLN_TRY(push_binds(p, f));
  if (p->n_stmts > f->stmts && needs_root(p, f))
    PLN_TRY(add_root(p, f));
  p->n_parts = f->parts;
  if (p->n_stmts == f->stmts || p->n_refs == first)
    return pln_script_sequence(p, f->stmts, out);
  for (uint32_t i = f->stmts; i < p->n_stmts; i++)
    PLN_TRY(pln_script_push_ref(p, p->stmts[i]));
  pln_status status =
      pln_build_seq(p->b, p->n_refs - first, pln_refs_at(p->refs, first), out);
  p->n_refs = first;
  return status;
}

static pln_status add_function(pln_script_parser *p, const pln_open_frame *f,
                               pln_ref ref) {
  pln_graph *graph = NULL;
  if (pln_module_find(p->module, f->name) != PLN_NONE)
    return pln_script_fail_at(p, f->at, f->size,
                              "this function is defined twice");
  PLN_TRY(pln_builder_seal(p->b, ref, &graph));
  pln_status status = pln_module_set(p->module, f->name, graph);
  pln_graph_release(graph);
  return status;
}

pln_status pln_script_close_function(pln_script_parser *p,
                                     const pln_open_frame *f) {
  pln_prim spec = {.kind = PLN_PRIM_FUNC, .attrs = f->attrs, .type = f->type};
  const pln_ref *params = pln_refs_at(p->saved, f->saved);
  pln_body body = {.n_params = f->params, .params = params};
  pln_ref ref;
  PLN_TRY(whole_body(p, f, &body.stmt));
  PLN_TRY(pln_build_floating_stmt(p->b, &spec, 1, &body, &ref));
  PLN_TRY(add_function(p, f, ref));
  pln_builder_free(p->b);
  p->b = NULL;
  p->outside = true;
  return pln_builder_new(p->engine, &p->b);
}
