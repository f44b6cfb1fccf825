/* tir/script/parse/stmt.c: the lines of a TVMScript text: indentation,
 * statements of one line, headers of loops and branches.
 *
 * Called by the entry points (script/parse/parse.c). After an error the line is
 * skipped, and the lines that are indented further; the names that it would
 * have defined are known as wrong, so that they are not reported again. */

#include "ir/tensor/tensor.h"
#include "ir/tir/script/parse/parse.h"

static pln_open_frame *top(pln_script_parser *p) {
  return &p->frames[p->n_frames - 1];
}

static pln_status end_line(pln_script_parser *p) {
  if (p->token.kind == PLN_S_END)
    return PLN_OK;
  return pln_script_expect(p, PLN_S_NEWLINE);
}

/* What follows ':' on its line is the body, as if it were indented. */
static pln_status end_header(pln_script_parser *p) {
  PLN_TRY(pln_script_expect(p, PLN_S_COLON));
  p->opened = true;
  if (p->token.kind == PLN_S_NEWLINE || p->token.kind == PLN_S_END)
    return end_line(p);
  p->token.indent = p->lexer.indent = p->header + 1;
  return PLN_OK;
}

pln_status pln_script_bind_ref(pln_script_parser *p, pln_slice name,
                               pln_script_value_kind kind, pln_ref ref) {
  pln_script_value value = {.kind = (uint8_t)kind, .v.of.ref = ref};
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
  return pln_script_bind(p, symbol, &value);
}

/* -------------------------------------------------------------------- loops */

static pln_status note_range(pln_script_parser *p, pln_ref var, pln_ref min,
                             pln_ref extent) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->loop_ranges, &p->cap_loop_ranges,
                       (size_t)p->n_loop_ranges + 1, sizeof *p->loop_ranges));
  p->loop_ranges[p->n_loop_ranges++] = (pln_script_range){min, extent};
  return pln_idmap_set(p->ranges, var, p->n_loop_ranges);
}

/* Opens the frame of one loop; `thread` PLN_NONE: none. */
static pln_status open_loop(pln_script_parser *p, pln_slice name, pln_ref min,
                            pln_ref extent, pln_ref thread, pln_attrs attrs) {
  pln_ref var;
  uint32_t around = top(p)->indent;
  bool bound = thread != PLN_NONE;
  PLN_TRY(
      pln_script_make_var(p, name, pln_script_type_of(p, extent), false, &var));
  PLN_TRY(pln_script_hold(p, min));
  PLN_TRY(pln_script_hold(p, extent));
  if (bound)
    PLN_TRY(pln_script_hold(p, thread));
  PLN_TRY(pln_script_hold(p, var));
  PLN_TRY(pln_script_open_frame(p, (pln_open_frame){.what = PLN_F_OWNER,
                                                    .kind = PLN_FOR,
                                                    .attrs = attrs,
                                                    .operands = 2u + bound,
                                                    .params = 1,
                                                    .header = around,
                                                    .indent = around + 1}));
  PLN_TRY(note_range(p, var, min, extent));
  return pln_script_bind_ref(p, name, PLN_V_EXPR, var);
}

/* "name_0", until the text's arena is freed with the line. */
static pln_status numbered(pln_script_parser *p, pln_slice name, uint32_t i,
                           pln_slice *out) {
  p->word.size = 0;
  PLN_TRY(pln_buffer_add(&p->word, name.data, name.size));
  PLN_TRY(pln_buffer_printf(&p->word, "_%u", (unsigned)i));
  char *copy = pln_arena_new(&p->arena, p->word.size);
  if (!copy)
    return pln_nomem(p->engine);
  memcpy(copy, p->word.data, p->word.size);
  *out = (pln_slice){copy, p->word.size};
  return PLN_OK;
}

/* The extents of T.grid, as the newest refs. */
static pln_status push_extents(pln_script_parser *p, pln_script_value call) {
  for (uint32_t i = 0; i < call.n; i++) {
    pln_ref extent;
    PLN_TRY(pln_script_ref(p, &p->kept[call.first + i], 0, &extent));
    PLN_TRY(pln_script_push_ref(p, extent));
  }
  return PLN_OK;
}

static pln_status open_grid_loop(pln_script_parser *p, pln_slice name,
                                 pln_ref extent) {
  pln_ref min;
  PLN_TRY(pln_script_int(p, pln_script_type_of(p, extent), 0, &min));
  return open_loop(p, name, min, extent, PLN_NONE, 0);
}

/* for iters in T.grid(4, 4): the variables are iters_0 and iters_1. */
static pln_status open_named_grid(pln_script_parser *p,
                                  const pln_script_value *call,
                                  pln_slice name) {
  pln_script_value group = {.kind = PLN_V_GRID, .n = call->n};
  uint32_t first = p->n_refs, n = call->n;
  pln_slice own;
  pln_symbol symbol;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->grids, &p->cap_grids,
                       (size_t)p->n_grids + n + 1, sizeof *p->grids));
  group.first = p->n_grids;
  PLN_TRY(push_extents(p, *call));
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(numbered(p, name, i, &own));
    PLN_TRY(open_grid_loop(p, own, p->refs[first + i]));
    p->grids[p->n_grids++] = p->saved[p->n_saved - 1];
  }
  PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
  return pln_script_bind(p, symbol, &group);
}

static pln_status open_grid(pln_script_parser *p, const pln_script_value *call,
                            uint32_t n, const pln_slice *names) {
  if (n == 1 && call->n > 1)
    return open_named_grid(p, call, names[0]);
  if (n != call->n)
    return pln_script_refuse(p, call, "%u variables for a grid of %u loops",
                             (unsigned)n, (unsigned)call->n);
  uint32_t first = p->n_refs;
  PLN_TRY(push_extents(p, *call));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(open_grid_loop(p, names[i], p->refs[first + i]));
  return PLN_OK;
}

static pln_status thread_of(pln_script_parser *p, const pln_script_value *tag,
                            pln_type type, pln_ref *out) {
  pln_slice text;
  pln_symbol symbol;
  pln_ref var;
  PLN_TRY(pln_script_as_string(p, tag, &text));
  PLN_TRY(pln_symbol_intern(p->engine, text, &symbol));
  PLN_TRY(pln_script_make_var(p, pln_text("iter"), type, false, &var));
  return pln_script_thread(p, var, symbol, out);
}

/* range, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding */
static pln_status open_for(pln_script_parser *p, const pln_script_value *call,
                           pln_slice name) {
  pln_script_args args;
  pln_script_value zero = {
      .kind = PLN_V_INT, .at = call->at, .size = call->size};
  uint32_t method = call->v.of.number;
  int64_t kind = (int64_t)method - PLN_METHOD_SERIAL;
  bool threads = method == PLN_METHOD_THREAD_BINDING;
  pln_attrs attrs = 0;
  pln_ref min, extent, thread = PLN_NONE;
  PLN_TRY(pln_script_bind_args(p, call, &args));
  if (threads && !args.at[2] && args.at[1] &&
      args.at[1]->kind == PLN_V_STRING) {
    args.at[2] = args.at[1]; /* T.thread_binding(32, "threadIdx.x") */
    args.at[1] = NULL;
  }
  const pln_script_value *low = args.at[1] ? args.at[0] : &zero;
  PLN_TRY(pln_script_match(p, low, args.at[1] ? args.at[1] : args.at[0], &min,
                           &extent));
  PLN_TRY(pln_script_extent(p, min, extent, &extent));
  if (kind != 0)
    PLN_TRY(pln_script_with_int(p, "kind", kind, &attrs));
  const pln_script_value *notes = args.at[2 + threads];
  if (notes && notes->kind != PLN_V_NONE)
    PLN_TRY(pln_script_with_dict(p, "annotations", notes, &attrs));
  if (threads && !args.at[2])
    return pln_script_refuse(p, call, "T.thread_binding: 'thread' is missing");
  if (threads)
    PLN_TRY(thread_of(p, args.at[2], pln_script_type_of(p, extent), &thread));
  return open_loop(p, name, min, extent, thread, attrs);
}

/* Names separated by commas, into p->targets. */
static pln_status read_names(pln_script_parser *p) {
  bool more = true;
  for (p->n_targets = 0; more;) {
    if (p->token.kind != PLN_S_NAME)
      return pln_script_expected(p, "a name");
    PLN_TRY(pln_mem_grow(p->engine, (void **)&p->targets, &p->cap_targets,
                         (size_t)p->n_targets + 1, sizeof *p->targets));
    p->targets[p->n_targets++] = p->token.text;
    PLN_TRY(pln_script_next(p));
    PLN_TRY(pln_script_accept(p, PLN_S_COMMA, &more));
  }
  return PLN_OK;
}

static pln_status read_for(pln_script_parser *p) {
  pln_script_value call;
  PLN_TRY(pln_script_next(p));
  PLN_TRY(read_names(p));
  PLN_TRY(pln_script_expect(p, PLN_S_IN));
  PLN_TRY(pln_script_expr_parse(p, &call));
  p->place = call.at;
  p->place_size = call.size;
  uint32_t method = call.kind == PLN_V_CALL ? call.v.of.number : 0;
  if (method == PLN_METHOD_GRID)
    PLN_TRY(open_grid(p, &call, p->n_targets, p->targets));
  else if (method < PLN_METHOD_SERIAL || method > PLN_METHOD_THREAD_BINDING)
    return pln_script_refuse(
        p, &call, "a loop runs over range(...), T.grid(...) or T.serial(...)");
  else if (p->n_targets != 1)
    return pln_script_refuse(p, &call, "this loop has one variable");
  else
    PLN_TRY(open_for(p, &call, p->targets[0]));
  return end_header(p);
}

/* ----------------------------------------------------------------- branches */

static pln_status open_condition(pln_script_parser *p, uint8_t what,
                                 pln_kind kind, uint32_t header) {
  pln_script_value value;
  pln_ref ref;
  PLN_TRY(pln_script_next(p));
  PLN_TRY(pln_script_expr_parse(p, &value));
  PLN_TRY(pln_script_ref(p, &value, p->types[2], &ref));
  PLN_TRY(pln_script_hold(p, ref));
  PLN_TRY(pln_script_open_frame(p, (pln_open_frame){.what = what,
                                                    .kind = (uint8_t)kind,
                                                    .operands = 1,
                                                    .header = header,
                                                    .indent = header + 1}));
  return end_header(p);
}

static pln_status read_else(pln_script_parser *p, uint32_t column) {
  pln_open_frame *f = top(p);
  bool nested = p->token.kind == PLN_S_ELIF;
  if (f->what != PLN_F_THEN || f->header != column)
    return pln_script_fail_at(p, p->token.whole.data,
                              (uint32_t)p->token.whole.size,
                              "no 'if' belongs to this");
  if (p->n_errors == 0)
    PLN_TRY(pln_script_sequence(p, f->stmts, &f->ref));
  p->n_stmts = f->stmts;
  f->what = PLN_F_ELSE;
  f->indent = column + 1;
  pln_script_unbind(p, f->mark);
  p->open_from = p->n_frames - 1;
  if (nested)
    return open_condition(p, PLN_F_THEN, PLN_IF_THEN_ELSE, column);
  PLN_TRY(pln_script_next(p));
  return end_header(p);
}

/* -------------------------------------------------------------- with, assert
 */

static pln_status read_with(pln_script_parser *p) {
  pln_script_value call;
  pln_slice name;
  bool named;
  PLN_TRY(pln_script_next(p));
  PLN_TRY(pln_script_expr_parse(p, &call));
  PLN_TRY(pln_script_accept(p, PLN_S_AS, &named));
  name = p->token.text;
  if (named)
    PLN_TRY(pln_script_expect(p, PLN_S_NAME));
  if (call.kind != PLN_V_CALL)
    return pln_script_refuse(p, &call, "this opens no body");
  uint32_t frames = p->n_frames, names = p->n_bindings;
  PLN_TRY(pln_script_perform(p, &call, named, &name, true));
  if (p->n_frames == frames)
    return pln_script_refuse(p, &call, "this opens no body");
  for (uint32_t i = frames; i < p->n_frames; i++)
    p->frames[i].mark = names; /* the name ends with the body */
  return end_header(p);
}

static pln_status read_assert(pln_script_parser *p) {
  pln_script_value condition, message;
  pln_ref ref;
  PLN_TRY(pln_script_next(p));
  PLN_TRY(pln_script_expr_parse(p, &condition));
  PLN_TRY(pln_script_ref(p, &condition, p->types[2], &ref));
  PLN_TRY(pln_script_hold(p, ref));
  PLN_TRY(pln_script_expect(p, PLN_S_COMMA));
  PLN_TRY(pln_script_expr_parse(p, &message));
  PLN_TRY(pln_script_ref(p, &message, 0, &ref));
  PLN_TRY(pln_script_hold(p, ref));
  uint32_t indent = top(p)->indent;
  PLN_TRY(pln_script_open_frame(p, (pln_open_frame){.what = PLN_F_OWNER,
                                                    .kind = PLN_ASSERT_STMT,
                                                    .operands = 2,
                                                    .header = indent,
                                                    .indent = indent}));
  return PLN_OK;
}

/* -------------------------------------------------------------- assignments
 */

/* "x: T.int32 = value", or "x = value" of an expression. */
static pln_status bind_let(pln_script_parser *p, pln_slice name, pln_type type,
                           const pln_script_value *value) {
  pln_ref ref, var;
  if (p->outside)
    return pln_script_refuse(p, value, "this stands outside a function");
  PLN_TRY(pln_script_ref(p, value, type, &ref));
  PLN_TRY(pln_script_make_var(p, name, type ? type : pln_script_type_of(p, ref),
                              false, &var));
  PLN_TRY(pln_script_hold(p, ref));
  PLN_TRY(pln_script_hold(p, var));
  uint32_t indent = top(p)->indent;
  PLN_TRY(pln_script_bind_ref(p, name, PLN_V_EXPR, var));
  return pln_script_open_frame(p, (pln_open_frame){.what = PLN_F_OWNER,
                                                   .kind = PLN_LET_STMT,
                                                   .operands = 1,
                                                   .params = 1,
                                                   .header = indent,
                                                   .indent = indent});
}

static pln_status assign_one(pln_script_parser *p, pln_slice name,
                             const pln_script_value *value) {
  pln_symbol symbol;
  pln_ref ref;
  if (p->outside && value->kind != PLN_V_INT && value->kind != PLN_V_FLOAT &&
      value->kind != PLN_V_BOOL && value->kind != PLN_V_CALL)
    return pln_script_refuse(p, value, "this stands outside a function");
  if (value->meta) {
    PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
    return pln_script_bind(p, symbol, value);
  }
  switch ((pln_script_value_kind)value->kind) {
  case PLN_V_CALL: return pln_script_perform(p, value, 1, &name, false);
  case PLN_V_INT:
  case PLN_V_FLOAT:
  case PLN_V_BOOL:
  case PLN_V_EXPR:
  case PLN_V_INDEX: return bind_let(p, name, 0, value);
  case PLN_V_TYPE:
    if (!value->called)
      break;
    PLN_TRY(
        pln_script_make_var(p, name, value->v.of.type, value->is_size, &ref));
    return pln_script_bind_ref(p, name, PLN_V_EXPR, ref);
  case PLN_V_BUFFER:
  case PLN_V_THREAD:
    PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
    return pln_script_bind(p, symbol, value);
  default: break;
  }
  return pln_script_refuse(p, value, "this value cannot have a name");
}

static pln_status read_annotated(pln_script_parser *p, pln_slice name) {
  pln_script_value type, value;
  PLN_TRY(pln_script_expr_parse(p, &type));
  if (type.kind != PLN_V_TYPE)
    return pln_script_refuse(p, &type, "a type is expected");
  PLN_TRY(pln_script_expect(p, PLN_S_ASSIGN));
  PLN_TRY(pln_script_expr_parse(p, &value));
  p->place = value.at;
  p->place_size = value.size;
  return bind_let(p, name, type.v.of.type, &value);
}

static pln_status assign(pln_script_parser *p, uint32_t n,
                         const pln_slice *names) {
  pln_script_value *values, value;
  uint32_t k;
  bool more = true;
  for (p->n_assigned = 0; more;) {
    if (p->n_assigned == n)
      return pln_script_expected(p, "fewer values");
    PLN_TRY(pln_script_expr_parse(p, &value));
    PLN_TRY(pln_mem_grow(p->engine, (void **)&p->assigned, &p->cap_assigned,
                         (size_t)p->n_assigned + 1, sizeof *p->assigned));
    p->assigned[p->n_assigned++] = value;
    PLN_TRY(pln_script_accept(p, PLN_S_COMMA, &more));
  }
  values = p->assigned;
  k = p->n_assigned;
  p->place = values[0].at;
  p->place_size = values[0].size;
  if (n > 1 && k == 1 && values[0].kind == PLN_V_CALL)
    return pln_script_perform(p, &values[0], n, names, false);
  if (n != k)
    return pln_script_refuse(p, &values[0], "%u names for %u values",
                             (unsigned)n, (unsigned)k);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(assign_one(p, names[i], &values[i]));
  return PLN_OK;
}

/* metadata = tvm.ir.load_json("""...""") */
static pln_status read_metadata(pln_script_parser *p, pln_slice name) {
  static const char *const words[] = {"tvm", "ir", "load_json"};
  pln_script_value json, value = {.kind = PLN_V_METADATA};
  pln_symbol symbol;
  for (size_t i = 0; i < PLN_COUNT(words); i++) {
    if (p->token.kind != PLN_S_NAME || !pln_slice_is(p->token.text, words[i]))
      return pln_script_expected(p, "tvm.ir.load_json");
    PLN_TRY(pln_script_next(p));
    if (i + 1 < PLN_COUNT(words))
      PLN_TRY(pln_script_expect(p, PLN_S_DOT));
  }
  PLN_TRY(pln_script_expr_parse(p, &json));
  p->place = json.at;
  p->place_size = json.size;
  if (json.kind != PLN_V_STRING)
    return pln_script_refuse(p, &json, "a string in JSON is expected");
  PLN_TRY(pln_script_metadata(p, json.v.s));
  PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
  return pln_script_bind(p, symbol, &value);
}

/* The names of a wrong definition are not reported when they are used. */
static pln_status poison(pln_script_parser *p, uint32_t n,
                         const pln_slice *names, pln_status status) {
  pln_script_value value = {.kind = PLN_V_ERROR};
  pln_symbol symbol;
  if (status == PLN_OK || status == PLN_ERR_NOMEM || status == PLN_ERR_LIMIT)
    return status;
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pln_symbol_intern(p->engine, names[i], &symbol));
    PLN_TRY(pln_script_bind(p, symbol, &value));
  }
  return status;
}

static pln_status read_assignment(pln_script_parser *p) {
  bool typed;
  PLN_TRY(read_names(p));
  const pln_slice *names = p->targets;
  uint32_t n = p->n_targets;
  PLN_TRY(pln_script_accept(p, PLN_S_COLON, &typed));
  if (typed)
    return poison(p, n, names, read_annotated(p, names[0]));
  PLN_TRY(pln_script_expect(p, PLN_S_ASSIGN));
  bool metadata = p->token.kind == PLN_S_NAME && n == 1 &&
                  pln_slice_is(p->token.text, "tvm");
  return poison(p, n, names,
                metadata ? read_metadata(p, names[0]) : assign(p, n, names));
}

/* True if the line begins with "name =", "name:" or "name, name =". */
static bool at_assignment(const pln_script_parser *p) {
  pln_script_lexer ahead = p->lexer;
  pln_script_token t = p->token;
  for (;;) {
    if (t.kind != PLN_S_NAME)
      return false;
    pln_script_lex_next(&ahead, &t);
    if (t.kind != PLN_S_COMMA)
      return t.kind == PLN_S_ASSIGN || t.kind == PLN_S_COLON;
    pln_script_lex_next(&ahead, &t);
  }
}

/* -------------------------------------------------------------- expressions
 */

/* A value of another dtype is cast, as in TVM; a float is not to an integer,
 * which TVM warns of. */
static pln_status store_cast(pln_script_parser *p, pln_type element,
                             uint32_t lanes, pln_ref *value) {
  pln_type from = pln_script_type_of(p, *value), type;
  pln_dtype to = pln_type_dtype(p->engine, element), dtype;
  if (pln_type_get_kind(p->engine, from) != PLN_TYPE_PRIM)
    return PLN_OK;
  dtype = pln_type_dtype(p->engine, from);
  if (dtype == to || dtype == PLN_DTYPE_NONE || to == PLN_DTYPE_NONE ||
      pln_type_number(p->engine, from) != lanes ||
      (pln_dtype_is_float(dtype) && !pln_dtype_is_float(to)))
    return PLN_OK;
  PLN_TRY(pln_type_prim(p->engine, to, lanes, &type));
  return pln_script_cast(p, type, *value, value);
}

/* A constant takes the dtype of the elements, a scalar fills a vector. */
static pln_status stored_value(pln_script_parser *p, pln_type element,
                               const pln_script_value *value, uint32_t first,
                               pln_ref *out) {
  const pln_graph *g = p->b->graph;
  pln_type last, type;
  uint32_t lanes = 1, own = pln_type_number(p->engine, element);
  PLN_TRY(pln_script_ref(p, value, element, out));
  if (p->n_refs > first) {
    last = pln_script_type_of(p, p->refs[p->n_refs - 1]);
    if (pln_type_get_kind(p->engine, last) == PLN_TYPE_PRIM)
      lanes = pln_type_number(p->engine, last);
  }
  pln_type from = pln_script_type_of(p, *out);
  uint8_t kind = g->nodes[*out].kind;
  bool scalar = pln_type_get_kind(p->engine, from) == PLN_TYPE_PRIM &&
                pln_type_number(p->engine, from) == 1;
  bool fills = scalar && lanes * own > 1;
  if (!fills && kind != PLN_INT_IMM && kind != PLN_FLOAT_IMM)
    return store_cast(p, element, lanes * own, out);
  if (fills && !pln_type_dtype(p->engine, from))
    return PLN_OK;
  PLN_TRY(pln_type_prim(p->engine, pln_type_dtype(p->engine, element),
                        lanes * own, &type));
  return pln_script_cast(p, type, *out, out);
}

/* A[i] = value */
static pln_status store(pln_script_parser *p, const pln_script_value *target,
                        const pln_script_value *value) {
  uint32_t first = p->n_refs + 2;
  pln_script_value whole = *target;
  bool producer = whole.v.of.number != 0;
  pln_ref ref;
  if (target->kind != PLN_V_INDEX)
    return pln_script_refuse(p, target, "only elements of buffers are stored");
  PLN_TRY(pln_script_push_ref(p, whole.v.of.ref));
  PLN_TRY(pln_script_push_ref(p, PLN_NONE));
  PLN_TRY(pln_script_push_indices(p, &whole));
  if (producer)
    PLN_TRY(pln_script_ref(p, value, 0, &ref));
  else
    PLN_TRY(stored_value(p, pln_script_type_of(p, whole.v.of.ref), value, first,
                         &ref));
  p->refs[first - 1] = ref;
  p->place = whole.at;
  p->place_size = (uint32_t)(value->at + value->size - whole.at);
  PLN_TRY(pln_script_node(
      p, (pln_prim){.kind = producer ? PLN_PRODUCER_STORE : PLN_BUFFER_STORE},
      first - 2, &ref));
  return pln_script_push_stmt(p, ref);
}

static pln_status evaluate(pln_script_parser *p,
                           const pln_script_value *value) {
  pln_ref ref;
  PLN_TRY(pln_script_ref(p, value, 0, &ref));
  if (p->part && p->n_frames == 1 && p->n_stmts == 0 && p->result == PLN_NONE) {
    p->result = ref;
    return PLN_OK;
  }
  PLN_TRY(pln_script_push_ref(p, ref));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_EVALUATE}, p->n_refs - 1,
                          &ref));
  return pln_script_push_stmt(p, ref);
}

/* A[i] += value, or x += value, which is another x. */
static pln_status read_augmented(pln_script_parser *p,
                                 const pln_script_value *target) {
  pln_slice sign = p->token.text, name = {target->at, target->size};
  pln_script_value value, result = {0};
  PLN_TRY(pln_script_next(p));
  PLN_TRY(pln_script_expr_parse(p, &value));
  p->place = target->at;
  p->place_size = (uint32_t)(value.at + value.size - target->at);
  PLN_TRY(pln_script_augment(p, sign, target, &value, &result));
  if (target->kind == PLN_V_INDEX)
    return store(p, target, &result);
  if (target->kind != PLN_V_EXPR ||
      p->b->graph->nodes[target->v.of.ref].kind != PLN_VAR)
    return pln_script_refuse(p, target, "this cannot be assigned");
  return bind_let(p, name, 0, &result);
}

/* return value: T.evaluate(T.ret(value)) */
static pln_status read_return(pln_script_parser *p) {
  pln_script_value value, items = {.n = 1}, result = {0};
  PLN_TRY(pln_script_next(p));
  if (p->outside)
    return pln_script_expected(p, "a definition");
  PLN_TRY(pln_script_expr_parse(p, &value));
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->kept, &p->cap_kept,
                       (size_t)p->n_kept + 1, sizeof *p->kept));
  items.first = p->n_kept;
  p->kept[p->n_kept++] = value;
  items.at = p->place = value.at;
  items.size = p->place_size = value.size;
  PLN_TRY(pln_script_builtin(p, pln_builtin_find(pln_text("ret")), &items,
                             &result));
  return evaluate(p, &result);
}

static pln_status read_expression(pln_script_parser *p) {
  pln_script_value target, value;
  bool stores;
  bool documents = p->token.kind == PLN_S_STRING && !p->part;
  PLN_TRY(pln_script_expr_parse(p, &target));
  PLN_TRY(pln_script_accept(p, PLN_S_ASSIGN, &stores));
  if (stores) {
    PLN_TRY(pln_script_expr_parse(p, &value));
    return store(p, &target, &value);
  }
  if (p->token.kind == PLN_S_AUGMENT && !p->outside)
    return read_augmented(p, &target);
  p->place = target.at;
  p->place_size = target.size;
  if (documents)
    return PLN_OK;
  if (target.kind == PLN_V_STORE)
    return pln_script_push_stmt(p, target.v.of.ref);
  if (target.kind == PLN_V_CALL)
    return pln_script_perform(p, &target, 0, NULL, false);
  if (p->outside)
    return pln_script_refuse(p, &target, "this stands outside a function");
  return evaluate(p, &target);
}

/* -------------------------------------------------------------------- lines
 */

static pln_status skip_to_end(pln_script_parser *p) {
  while (p->token.kind != PLN_S_NEWLINE && p->token.kind != PLN_S_END)
    PLN_TRY(pln_script_next(p));
  return end_line(p);
}

/* @T.prim_func(private=True) */
static pln_status read_decorator(pln_script_parser *p) {
  p->private_function = false;
  while (p->token.kind != PLN_S_NEWLINE && p->token.kind != PLN_S_END) {
    bool key =
        p->token.kind == PLN_S_NAME && pln_slice_is(p->token.text, "private");
    PLN_TRY(pln_script_next(p));
    if (!key)
      continue;
    PLN_TRY(pln_script_expect(p, PLN_S_ASSIGN));
    p->private_function = p->token.kind == PLN_S_TRUE;
  }
  return end_line(p);
}

static pln_status read_class(pln_script_parser *p) {
  uint32_t indent = top(p)->indent;
  PLN_TRY(pln_script_next(p));
  if (!p->outside || p->class_name)
    return pln_script_expected(p, "no second class");
  pln_slice name = p->token.text;
  PLN_TRY(pln_script_expect(p, PLN_S_NAME));
  PLN_TRY(pln_symbol_intern(p->engine, name, &p->class_name));
  PLN_TRY(pln_script_open_frame(p, (pln_open_frame){.what = PLN_F_MODULE,
                                                    .header = indent,
                                                    .indent = indent + 1}));
  return end_header(p);
}

/* Statements other than definitions belong into functions. */
static pln_status read_line(pln_script_parser *p, uint32_t column) {
  switch (p->token.kind) {
  case PLN_S_AT: return read_decorator(p);
  case PLN_S_IMPORT:
  case PLN_S_FROM: return skip_to_end(p);
  case PLN_S_CLASS: return read_class(p);
  case PLN_S_DEF: PLN_TRY(pln_script_function(p)); return end_header(p);
  case PLN_S_PASS: PLN_TRY(pln_script_next(p)); return end_line(p);
  case PLN_S_NAME:
    if (!at_assignment(p))
      break;
    PLN_TRY(read_assignment(p));
    return end_line(p);
  default: break;
  }
  if (p->outside && p->token.kind != PLN_S_NAME &&
      p->token.kind != PLN_S_STRING)
    return pln_script_expected(p, "a definition");
  switch (p->token.kind) {
  case PLN_S_FOR: return read_for(p);
  case PLN_S_WITH: return read_with(p);
  case PLN_S_ASSERT: PLN_TRY(read_assert(p)); return end_line(p);
  case PLN_S_RETURN: PLN_TRY(read_return(p)); return end_line(p);
  case PLN_S_ELSE:
  case PLN_S_ELIF: return read_else(p, column);
  case PLN_S_IF: return open_condition(p, PLN_F_THEN, PLN_IF_THEN_ELSE, column);
  case PLN_S_WHILE: return open_condition(p, PLN_F_OWNER, PLN_WHILE, column);
  default: break;
  }
  PLN_TRY(read_expression(p));
  return end_line(p);
}

/* Forgets the values of the previous line. */
static void begin_line(pln_script_parser *p) {
  p->n_values = p->n_kept = p->n_open = p->n_lambdas = p->n_refs = 0;
  if (!p->arena.chunks)
    return;
  pln_arena_free(&p->arena);
  pln_arena_init(&p->arena, p->engine);
}

/* Closes the bodies that the line's indentation ends. */
static pln_status dedent(pln_script_parser *p, uint32_t column) {
  bool branch = p->token.kind == PLN_S_ELSE || p->token.kind == PLN_S_ELIF;
  while (p->n_frames > 1 && top(p)->indent > column &&
         !(branch && top(p)->what == PLN_F_THEN && top(p)->header == column))
    PLN_TRY(pln_script_close_frame(p));
  return PLN_OK;
}

static pln_status check_indent(pln_script_parser *p, uint32_t column) {
  const pln_script_token *t = &p->token;
  bool opened = p->opened;
  p->opened = false;
  if (opened && column > p->header) {
    for (uint32_t i = p->open_from; i < p->n_frames; i++)
      p->frames[i].indent = column;
    return PLN_OK;
  }
  if (opened)
    return pln_script_fail_at(p, t->whole.data, (uint32_t)t->whole.size,
                              "expected an indented body");
  if (column > top(p)->indent)
    return pln_script_fail_at(p, t->whole.data, (uint32_t)t->whole.size,
                              "unexpected indentation");
  PLN_TRY(dedent(p, column));
  bool branch = top(p)->what == PLN_F_THEN && top(p)->header == column &&
                (t->kind == PLN_S_ELSE || t->kind == PLN_S_ELIF);
  if (top(p)->indent != column && !branch)
    return pln_script_fail_at(
        p, t->whole.data, (uint32_t)t->whole.size,
        "this indentation is that of no statement above it");
  return PLN_OK;
}

static pln_status count_error(pln_script_parser *p) {
  enum { MOST = 20 };
  if (++p->n_errors < MOST)
    return PLN_OK;
  return pln_diag_error(p->engine, PLN_ERR_LIMIT, NULL,
                        "parsing stops after %d errors", MOST);
}

/* Reports the error of a line, and skips the line. */
static pln_status recover(pln_script_parser *p, uint32_t frames, uint32_t saved,
                          uint32_t column, size_t mark, pln_status status) {
  if (status == PLN_ERR_NOMEM || status == PLN_ERR_LIMIT)
    return status;
  if (pln_diag_count(p->engine) == mark && p->n_errors == 0)
    status = pln_script_fail_at(p, p->place, p->place_size,
                                "this line cannot be read");
  if (status == PLN_ERR_NOMEM || status == PLN_ERR_LIMIT)
    return status;
  if (pln_diag_count(p->engine) > mark) {
    PLN_TRY(pln_script_locate(p, mark));
    PLN_TRY(count_error(p));
  }
  if (p->n_frames > frames) {
    p->n_frames = frames;
    p->n_saved = saved;
  }
  p->opened = false;
  if (p->token.kind != PLN_S_NEWLINE)
    pln_script_lex_skip_line(&p->lexer);
  do {
    pln_script_lex_next(&p->lexer, &p->token);
    if (p->token.kind == PLN_S_NEWLINE)
      continue;
    if (p->token.kind == PLN_S_END || p->token.indent <= column)
      break;
    pln_script_lex_skip_line(&p->lexer);
  } while (true);
  return PLN_OK;
}

static pln_status one_line(pln_script_parser *p) {
  size_t mark = pln_diag_count(p->engine);
  uint32_t column = p->token.indent;
  p->place = p->token.whole.data;
  p->place_size = (uint32_t)p->token.whole.size;
  begin_line(p);
  pln_status status = p->token.kind == PLN_S_BAD
                          ? pln_script_fail_at(p, p->place, p->place_size, "%s",
                                               p->token.problem)
                          : check_indent(p, column);
  uint32_t frames = p->n_frames, saved = p->n_saved;
  p->open_from = frames;
  p->header = column;
  if (status == PLN_OK)
    status = read_line(p, column);
  return status == PLN_OK ? PLN_OK
                          : recover(p, frames, saved, column, mark, status);
}

pln_status pln_script_lines(pln_script_parser *p) {
  while (p->token.kind != PLN_S_END) {
    PLN_TRY(pln_poll_stoppable(p->engine));
    PLN_TRY(one_line(p));
  }
  if (p->opened && p->n_errors == 0) {
    PLN_TRY(count_error(p));
    pln_status status = pln_script_expected(p, "an indented body");
    if (status != PLN_ERR_FORMAT)
      return status;
  }
  while (p->n_frames > 1)
    PLN_TRY(pln_script_close_frame(p));
  return PLN_OK;
}
