/* mismatch.c: describes the first difference between two expressions or modules
 * as a path:
 *
 *     @main.body.args[0].attrs.axis: 1 versus 2
 *
 * Called on request, after or instead of pln_graph_equal. It runs the
 * comparison again and records how each node was reached. */

#include <stdio.h>

#include "ir/compare/equal.h"
#include "ir/compare/module_equal.h"
#include "ir/graph/module.h"

/* Longer paths are shortened to their last steps. */
enum { PATH_STEPS = 24 };

typedef struct mismatch_text {
  const pln_comparison *c;
  pln_mismatch *out;
  size_t size; /* of the text written */
} mismatch_text;

/* A pln_write_fn; drops what does not fit. */
static pln_status put_bytes(void *ud, const char *data, size_t size) {
  mismatch_text *t = ud;
  size_t room = sizeof t->out->text - 1 - t->size;
  size_t n = size < room ? size : room;
  memcpy(t->out->text + t->size, data, n);
  t->size += n;
  t->out->text[t->size] = '\0';
  return PLN_OK;
}

static void write_mismatch_text(mismatch_text *t, const char *text) {
  pln_status status = put_bytes(t, text, strlen(text));
  (void)status; /* it cannot fail */
}

static void put_slice(mismatch_text *t, pln_slice text) {
  pln_status status = put_bytes(t, text.data, text.size);
  (void)status;
}

static void put_int(mismatch_text *t, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  write_mismatch_text(t, text);
}

static void put_index(mismatch_text *t, uint32_t index) {
  write_mismatch_text(t, "[");
  put_int(t, index);
  write_mismatch_text(t, "]");
}

/* ----------------------------------------------------------------- the path */

/* Name `index` of a kind's fields, and whether it covers all remaining
 * operands. */
static pln_slice field(const pln_node *n, uint32_t index) {
  const char *p = pln_kinds[n->kind].fields;
  for (; *p && index > 0; index--) {
    p += strcspn(p, " ");
    p += *p == ' ';
  }
  return (pln_slice){p, strcspn(p, " ")};
}

/* Operand 0 of a Call of a function is the callee. */
static void put_operand(mismatch_text *t, const pln_node *n, uint32_t i) {
  bool callee = pln_has_callee(n);
  uint32_t word = 0;
  if (callee && i == 0) {
    write_mismatch_text(t, ".callee");
    return;
  }
  pln_slice name = field(n, 0);
  while (word < i && name.size && name.data[name.size - 1] != '*')
    name = field(n, ++word);
  write_mismatch_text(t, ".");
  if (!name.size || name.data[name.size - 1] != '*') {
    put_slice(t, name.size ? name : pln_text("operand"));
    return;
  }
  name.size--;
  put_slice(t, name);
  put_index(t, i - word - callee);
}

static void put_scope(mismatch_text *t, const pln_node *n, uint32_t scope) {
  int32_t operands = pln_kinds[n->kind].operands;
  pln_slice name = field(n, (uint32_t)(operands > 0 ? operands : 0) + scope);
  write_mismatch_text(t, ".");
  if (name.size && pln_kinds[n->kind].scopes > 0) {
    put_slice(t, name);
    return;
  }
  write_mismatch_text(t, "clauses");
  put_index(t, scope);
}

/* Number of statements of the scope before `ref`. */
static pln_status statement_number(const pln_comparison *c, pln_ref owner,
                                   uint32_t scope, pln_ref ref, uint32_t *out) {
  const pln_graph *g = c->a;
  pln_effect_order statements = c->in_a;
  pln_scope s = scope == PLN_NONE ? 0 : pln_node_scope(g, owner, scope);
  pln_ref at = pln_skip_effect_ordered(g, ref);
  pln_status status;
  for (*out = 0;; ++*out) {
    status = pln_effect_order_before(&statements, s, at, &at);
    if (status != PLN_OK || at == PLN_NONE)
      break;
    at = pln_skip_effect_ordered(g, at);
  }
  if (!c->in_a.used)
    pln_effect_order_free(&statements);
  return status;
}

static pln_status put_statement(mismatch_text *t, const pln_pair *step) {
  const pln_graph *g = t->c->a;
  uint32_t number;
  if (step->scope == PLN_NONE && step->x == g->root)
    return PLN_OK; /* the statement itself */
  if (step->scope != PLN_NONE)
    put_scope(t, &g->nodes[step->from], step->scope);
  if (g->nodes[step->x].kind == PLN_CLAUSE)
    return PLN_OK;
  PLN_TRY(statement_number(t->c, step->from, step->scope, step->x, &number));
  write_mismatch_text(t, ".statements");
  put_index(t, number);
  return PLN_OK;
}

static pln_status put_step(mismatch_text *t, const pln_pair *step) {
  const pln_node *n = NULL;
  if (step->edge != PLN_EDGE_ROOT && step->scope != PLN_NONE)
    n = &t->c->a->nodes[step->from];
  switch ((pln_edge_kind)step->edge) {
  case PLN_EDGE_ROOT:
  case PLN_EDGE_RET: break;
  case PLN_EDGE_OPERAND: put_operand(t, n, step->index); break;
  case PLN_EDGE_PARAM:
    if (n->kind != PLN_FUNCTION)
      put_scope(t, n, step->scope);
    write_mismatch_text(t, ".params");
    put_index(t, step->index);
    break;
  case PLN_EDGE_STATEMENT: return put_statement(t, step);
  case PLN_EDGE_RESULT:
    put_scope(t, n, step->scope);
    write_mismatch_text(t, n->kind == PLN_MATCH ? ".rhs" : "");
    break;
  }
  return PLN_OK;
}

static pln_status put_path(mismatch_text *t) {
  const pln_comparison *c = t->c;
  pln_pair steps[PATH_STEPS];
  uint32_t n = 0;
  const pln_pair *step = &c->at;
  bool begun = false; /* the first step is known */
  while (n < PATH_STEPS && !begun) {
    steps[n++] = *step;
    begun = step->edge == PLN_EDGE_ROOT || step->scope == PLN_NONE;
    step = begun ? step : &c->via[step->from];
  }
  if (!begun)
    write_mismatch_text(t, "...");
  while (n-- > 0)
    PLN_TRY(put_step(t, &steps[n]));
  return PLN_OK;
}

/* --------------------------------------------------------- what is different
 */

static void put_two(mismatch_text *t, pln_slice a, pln_slice b) {
  write_mismatch_text(t, ": ");
  put_slice(t, a);
  write_mismatch_text(t, " versus ");
  put_slice(t, b);
}

static void put_counts(mismatch_text *t, const char *what, uint32_t a,
                       uint32_t b) {
  write_mismatch_text(t, ": ");
  put_int(t, a);
  write_mismatch_text(t, " versus ");
  put_int(t, b);
  write_mismatch_text(t, " ");
  write_mismatch_text(t, what);
}

static pln_status put_types(mismatch_text *t, pln_type a, pln_type b) {
  const pln_engine *e = t->c->engine;
  write_mismatch_text(t, ".type: ");
  PLN_TRY(pln_print_type(e, a, put_bytes, t));
  write_mismatch_text(t, " versus ");
  return pln_print_type(e, b, put_bytes, t);
}

/* Prints a value: a dictionary of one entry without the entry's name. */
static pln_status write_mismatch_value(mismatch_text *t, const pln_attr *a) {
  pln_engine *e = t->c->engine;
  if (!a) {
    write_mismatch_text(t, "none");
    return PLN_OK;
  }
  pln_attrs one;
  pln_buffer text;
  pln_slice name = pln_symbol_text(e, a->name);
  PLN_TRY(pln_attrs_make(e, 1, a, &one));
  pln_buffer_init(&text, e);
  pln_status status = pln_print_attrs(e, one, pln_buffer_write, &text);
  if (status == PLN_OK && text.size > name.size + 1)
    put_slice(
        t, (pln_slice){text.data + name.size + 1, text.size - name.size - 1});
  pln_buffer_free(&text);
  return status;
}

static pln_status put_entry(mismatch_text *t, pln_symbol name,
                            const pln_attr *a, const pln_attr *b) {
  write_mismatch_text(t, ".attrs.");
  put_slice(t, pln_symbol_text(t->c->engine, name));
  write_mismatch_text(t, ": ");
  PLN_TRY(write_mismatch_value(t, a));
  write_mismatch_text(t, " versus ");
  return write_mismatch_value(t, b);
}

static const pln_attr *entry(const pln_engine *e, pln_attrs attrs,
                             pln_symbol name) {
  for (uint32_t i = 0; i < pln_attrs_count(e, attrs); i++)
    if (pln_attrs_at(e, attrs, i)->name == name)
      return pln_attrs_at(e, attrs, i);
  return NULL;
}

/* The first entry that differs, or the first one that only b has. */
static pln_status write_mismatch_attrs(mismatch_text *t, pln_attrs a,
                                       pln_attrs b) {
  pln_engine *e = t->c->engine;
  for (uint32_t i = 0; i < pln_attrs_count(e, a); i++) {
    const pln_attr *x = pln_attrs_at(e, a, i), *y = entry(e, b, x->name);
    bool same = false;
    if (y)
      PLN_TRY(pln_attr_equal(e, x, y, &same));
    if (!same)
      return put_entry(t, x->name, x, y);
  }
  for (uint32_t i = 0; i < pln_attrs_count(e, b); i++) {
    const pln_attr *y = pln_attrs_at(e, b, i);
    if (!entry(e, a, y->name))
      return put_entry(t, y->name, NULL, y);
  }
  write_mismatch_text(t, ".attrs differ");
  return PLN_OK;
}

/* A call's attributes in the normal form that equality uses. */
static pln_status write_normal_attrs(mismatch_text *t, const pln_node *m,
                                     const pln_node *n) {
  pln_op op = m->kind == PLN_CALL ? m->data : 0;
  pln_attrs x, y;
  PLN_TRY(pln_relay_normal_attrs(t->c->engine, op, m->attrs, &x));
  PLN_TRY(pln_relay_normal_attrs(t->c->engine, op, n->attrs, &y));
  return write_mismatch_attrs(t, x, y);
}

static pln_status put_tensors(mismatch_text *t, const pln_tensor *a,
                              const pln_tensor *b) {
  if (a->dtype == b->dtype && a->rank == b->rank &&
      (a->rank == 0 || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims))) {
    char x[128] = "other elements", y[128] = "some";
    if (a->count == 1 && b->count == 1) {
      PLN_TRY(pln_tensor_element_text(a, 0, x, sizeof x));
      PLN_TRY(pln_tensor_element_text(b, 0, y, sizeof y));
    }
    write_mismatch_text(t, ".data");
    put_two(t, pln_text(x), pln_text(y));
    return PLN_OK;
  }
  pln_type x, y;
  PLN_TRY(
      pln_type_tensor(t->c->engine, a->dtype, (int32_t)a->rank, a->dims, &x));
  PLN_TRY(
      pln_type_tensor(t->c->engine, b->dtype, (int32_t)b->rank, b->dims, &y));
  return put_types(t, x, y);
}

static pln_slice op_text(const pln_engine *e, pln_op op) {
  return op ? pln_op_name(e, op) : pln_text("no operator");
}

static void put_float(mismatch_text *t, double value) {
  char text[40];
  snprintf(text, sizeof text, "%.9g", value);
  write_mismatch_text(t, text);
}

/* The numbers of two immediates. */
static void put_numbers(mismatch_text *t, const pln_node *m) {
  const pln_comparison *c = t->c;
  pln_ref x = c->at.x, y = c->at.y;
  bool whole = m->kind == PLN_INT_IMM;
  write_mismatch_text(t, ".value: ");
  if (whole)
    put_int(t, pln_node_int(c->a, x));
  else
    put_float(t, pln_node_float(c->a, x));
  write_mismatch_text(t, " versus ");
  if (whole)
    put_int(t, pln_node_int(c->b, y));
  else
    put_float(t, pln_node_float(c->b, y));
}

static pln_status put_payload(mismatch_text *t, const pln_node *m,
                              const pln_node *n) {
  const pln_comparison *c = t->c;
  const pln_engine *e = c->engine;
  switch (pln_kinds[m->kind].payload) {
  case PLN_PAYLOAD_NONE:
  case PLN_PAYLOAD_HINT:
  case PLN_PAYLOAD_SCOPE: break;
  case PLN_PAYLOAD_BITS: put_numbers(t, m); break;
  case PLN_PAYLOAD_BUILTIN:
    write_mismatch_text(t, ".builtin");
    put_two(t, pln_text(pln_builtin_name(m->data)),
            pln_text(pln_builtin_name(n->data)));
    break;
  case PLN_PAYLOAD_VAR:
    put_two(t, pln_symbol_text(e, m->attrs), pln_symbol_text(e, n->attrs));
    write_mismatch_text(t, ", which do not correspond");
    break;
  case PLN_PAYLOAD_TENSOR:
    return put_tensors(t, c->a->tensors[m->data], c->b->tensors[n->data]);
  case PLN_PAYLOAD_OP:
    write_mismatch_text(t, ".op");
    put_two(t, op_text(e, m->data), op_text(e, n->data));
    break;
  case PLN_PAYLOAD_SYMBOL:
    write_mismatch_text(t, ".name");
    put_two(t, pln_symbol_text(e, m->data), pln_symbol_text(e, n->data));
    break;
  case PLN_PAYLOAD_INDEX:
    write_mismatch_text(t, ".index: ");
    put_int(t, m->data);
    write_mismatch_text(t, " versus ");
    put_int(t, n->data);
    break;
  }
  return PLN_OK;
}

/* For a Function the result types, because parameters are Vars. */
static pln_status put_node_types(mismatch_text *t, const pln_node *m,
                                 const pln_node *n) {
  const pln_engine *e = t->c->engine;
  pln_type x = m->type, y = n->type;
  if (m->kind == PLN_FUNCTION || m->kind == PLN_PRIM_FUNC) {
    write_mismatch_text(t, ".ret");
    x = pln_type_part_at(e, x, pln_type_n_parts(e, x) - 1);
    y = pln_type_part_at(e, y, pln_type_n_parts(e, y) - 1);
  }
  return put_types(t, x, y);
}

static pln_scope mismatched_scope_of(const pln_graph *g, const pln_node *n,
                                     uint32_t i) {
  pln_scope s = n->data;
  while (i-- > 0)
    s = g->scopes[s].next;
  return s;
}

static pln_status put_scopes(mismatch_text *t, const pln_node *m,
                             const pln_node *n) {
  const pln_comparison *c = t->c;
  uint32_t at = c->in_scope;
  if (at == PLN_NONE) {
    write_mismatch_text(t, ": other lets or calls with effects");
    return PLN_OK;
  }
  const pln_scope_row *x = &c->a->scopes[mismatched_scope_of(c->a, m, at)];
  const pln_scope_row *y = &c->b->scopes[mismatched_scope_of(c->b, n, at)];
  if (m->kind != PLN_FUNCTION || c->why == PLN_MISMATCH_STATEMENTS)
    put_scope(t, m, at);
  if (c->why == PLN_MISMATCH_PARAMS)
    put_counts(t, "parameters", x->n_params, y->n_params);
  else if (c->why == PLN_MISMATCH_STATEMENTS)
    write_mismatch_text(t, ": other lets or calls with effects");
  else
    return write_mismatch_attrs(t, x->attrs, y->attrs);
  return PLN_OK;
}

static pln_status put_difference(mismatch_text *t) {
  const pln_comparison *c = t->c;
  const pln_node *m = &c->a->nodes[c->at.x], *n = &c->b->nodes[c->at.y];
  switch (c->why) {
  case PLN_MISMATCH_KIND:
    put_two(t, pln_text(pln_kinds[m->kind].name),
            pln_text(pln_kinds[n->kind].name));
    break;
  case PLN_MISMATCH_OPERANDS:
    put_counts(t, "operands", m->count, n->count);
    break;
  case PLN_MISMATCH_RESULTS:
    put_counts(t, "results", m->results, n->results);
    break;
  case PLN_MISMATCH_PAYLOAD: return put_payload(t, m, n);
  case PLN_MISMATCH_ATTRS: return write_normal_attrs(t, m, n);
  case PLN_MISMATCH_SHARING:
    write_mismatch_text(t, ": one node on one side, two on the other");
    break;
  case PLN_MISMATCH_TYPE: return put_node_types(t, m, n);
  case PLN_MISMATCH_PARAMS:
  case PLN_MISMATCH_STATEMENTS:
  case PLN_MISMATCH_SCOPE_ATTRS: return put_scopes(t, m, n);
  case PLN_MISMATCH_ORDER:
    write_mismatch_text(t, ": effects in another order");
    break;
  case PLN_MISMATCH_SCOPES:
    write_mismatch_text(t, ": other numbers of scopes");
    break;
  case PLN_MISMATCH_TYPE_PARAMS:
    write_mismatch_text(t, ": other type parameters");
    break;
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- driver */

/* `prefix` names the root: "@main", or "" for an expression. */
static pln_status fill_mismatch(pln_comparison *c, const char *prefix,
                                pln_mismatch *out) {
  mismatch_text t = {.c = c, .out = out};
  out->equal = c->equal;
  if (c->equal)
    return PLN_OK;
  out->a = c->at.x;
  out->b = c->at.y;
  write_mismatch_text(&t, prefix);
  PLN_TRY(put_path(&t));
  PLN_TRY(put_difference(&t));
  /* The path of an expression starts without a dot. */
  if (out->text[0] == '.' && out->text[1] != '.')
    memmove(out->text, out->text + 1, t.size);
  else if (out->text[0] == ':')
    memmove(out->text, out->text + 2, t.size - 1);
  return PLN_OK;
}

static pln_status trace(const pln_graph *f, pln_ref x, const pln_graph *g,
                        pln_ref y, pln_type_match *types, const char *prefix,
                        pln_mismatch *out) {
  pln_comparison c;
  pln_status status = pln_comparison_begin(&c, f, g, types, true);
  if (status == PLN_OK)
    status = pln_comparison_run(&c, x, y);
  if (status == PLN_OK)
    status = fill_mismatch(&c, prefix, out);
  pln_comparison_end(&c);
  return status;
}

pln_status pln_graph_mismatch(const pln_graph *a, pln_ref node_a,
                              const pln_graph *b, pln_ref node_b,
                              bool map_free_vars, bool contents,
                              pln_mismatch *out) {
  pln_type_match types = {
      .engine = a->engine, .map_free = map_free_vars, .contents = contents};
  *out = (pln_mismatch){.function_a = PLN_NONE, .function_b = PLN_NONE};
  pln_status status = trace(a, node_a, b, node_b, &types, "", out);
  pln_type_match_free(&types);
  return status;
}

/* Differences outside functions. */
static pln_status write_mismatched_module(const pln_module *a,
                                          const pln_module *b,
                                          const pln_module_difference *d,
                                          pln_mismatch *out) {
  pln_comparison c = {.engine = a->engine};
  mismatch_text t = {.c = &c, .out = out};
  switch (d->what) {
  case PLN_MODULES_EQUAL: out->equal = true; break;
  case PLN_MODULES_ENGINE:
    write_mismatch_text(&t, "modules of two engines");
    break;
  case PLN_MODULES_MISSING:
    write_mismatch_text(&t, "only the ");
    write_mismatch_text(&t, d->a == PLN_NONE ? "second" : "first");
    write_mismatch_text(&t, " module has @");
    put_slice(&t, pln_symbol_text(a->engine, d->name));
    break;
  case PLN_MODULES_TYPES:
    write_mismatch_text(&t, "types");
    put_counts(&t, "definitions", pln_module_n_types(a), pln_module_n_types(b));
    break;
  case PLN_MODULES_ATTRS:
    write_mismatch_text(&t, "module");
    return write_mismatch_attrs(&t, pln_module_attrs(a), pln_module_attrs(b));
  case PLN_MODULES_TYPE:
    write_mismatch_text(&t, "type ");
    put_slice(&t, pln_symbol_text(a->engine, d->name));
    write_mismatch_text(&t, ": other definitions");
    break;
  case PLN_MODULES_FUNCTION: break;
  }
  return PLN_OK;
}

static pln_status write_mismatched_function(const pln_module *a,
                                            const pln_module *b,
                                            const pln_module_difference *d,
                                            pln_type_match *types,
                                            pln_mismatch *out) {
  const pln_graph *f = pln_module_function_at(a, d->a),
                  *g = pln_module_function_at(b, d->b);
  char name[128];
  snprintf(name, sizeof name, "@%s", pln_symbol_text(a->engine, d->name).data);
  out->function_a = d->a;
  out->function_b = d->b;
  pln_idmap_free(types->seen); /* compared pairs are forgotten */
  types->seen = NULL;
  return trace(f, f->root, g, g->root, types, name, out);
}

static pln_status find_module_mismatch(const pln_module *a, const pln_module *b,
                                       pln_type_match types,
                                       pln_mismatch *out) {
  pln_module_difference d;
  *out = (pln_mismatch){.a = PLN_NONE,
                        .b = PLN_NONE,
                        .function_a = PLN_NONE,
                        .function_b = PLN_NONE};
  pln_status status = pln_module_compare(a, b, &types, &d);
  if (status == PLN_OK && d.what == PLN_MODULES_FUNCTION)
    status = write_mismatched_function(a, b, &d, &types, out);
  else if (status == PLN_OK)
    status = write_mismatched_module(a, b, &d, out);
  pln_type_match_free(&types);
  return status;
}

pln_status pln_module_mismatch(const pln_module *a, const pln_module *b,
                               bool map_free_vars, bool contents,
                               pln_mismatch *out) {
  return find_module_mismatch(a, b,
                              (pln_type_match){.engine = a->engine,
                                               .map_free = map_free_vars,
                                               .contents = contents},
                              out);
}
