/* relay/parse/branch.c: parses expressions with their own scopes: functions,
 * if, match.
 *
 * Called where such an expression begins (pln_parse_x) and after each of its
 * parts (pln_parse_x_part). */

#include "ir/relay/parse/parse.h"
#include "ir/relay/print/plan.h"

static pln_parse_frame *top_branch_frame(pln_parser *p) {
  return &p->frames[p->n_frames - 1];
}

/* --------------------------------------------------------------- functions */

/* The virtual devices of parameters become an attribute of their function: a
 * list with an entry per parameter, None where none is given. */
static pln_status add_devices(pln_parser *p, const pln_parsed_head *head,
                              pln_attrs *attrs) {
  bool any = false;
  for (uint32_t i = 0; i < head->n; i++)
    any = any || p->params[i].device;
  if (!any)
    return PLN_OK;
  pln_attr *items = pln_arena_new(&p->arena, head->n * sizeof *items);
  if (!items)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < head->n; i++) {
    const pln_attr *device =
        pln_attrs_find(p->engine, p->params[i].device, "virtual_device");
    items[i] = device ? *device : (pln_attr){.name = 0};
    items[i].name = 0;
  }
  pln_attr list = {.kind = PLN_ATTR_LIST};
  PLN_TRY(pln_attrs_list(p->engine, head->n, items, &list.v.dict));
  PLN_TRY(pln_symbol_intern(p->engine, pln_text("param_virtual_devices"),
                            &list.name));
  return pln_attrs_with(p->engine, *attrs, &list, attrs);
}

static pln_status open_params(pln_parser *p, const pln_parsed_head *head) {
  for (uint32_t i = 0; i < head->n; i++) {
    const pln_parsed_param *param = &p->params[i];
    pln_ref var;
    PLN_TRY(pln_parse_var(p, param->name, param->type, &param->token,
                          &param->note, &var));
    PLN_TRY(pln_parse_bind(p, PLN_SPACE_LOCAL, param->name, var));
    PLN_TRY(pln_parse_push(p, var));
  }
  return PLN_OK;
}

pln_status pln_parse_open_function(pln_parser *p, const pln_parsed_head *head,
                                   uint32_t mark, uint32_t types,
                                   bool definition) {
  PLN_TRY(pln_parse_open(p, PLN_FRAME_FUNCTION, &head->token));
  pln_parse_frame *f = top_branch_frame(p);
  f->flag = definition;
  f->mark = mark;
  f->types = types;
  f->n = head->n_vars;
  f->attrs = head->attrs;
  f->order = head->order;
  f->scopes[0] = head->scope;
  f->ret = head->ret;
  PLN_TRY(add_devices(p, head, &f->attrs));
  PLN_TRY(open_params(p, head));
  PLN_TRY(pln_parse_expect(p, PLN_T_LBRACE));
  return pln_parse_open_sequence(p);
}

pln_status pln_parse_function(pln_parser *p) {
  uint32_t mark = p->n_bindings, types = p->n_types;
  pln_parsed_head head;
  pln_token token = p->token;
  PLN_TRY(pln_parse_next(p));
  pln_status status = pln_parse_head(p, &head);
  head.token = token;
  if (status == PLN_OK)
    return pln_parse_open_function(p, &head, mark, types, false);
  pln_parse_unbind(p, mark);
  p->n_types = types;
  return status;
}

static void set_scope_attrs(pln_parser *p, pln_ref owner,
                            const pln_attrs *attrs) {
  pln_graph *g = p->b->graph;
  pln_scope s = g->nodes[owner].data;
  for (uint32_t i = 0; s != PLN_NONE; s = g->scopes[s].next)
    g->scopes[s].attrs = attrs[i++];
}

pln_status pln_parse_function_part(pln_parser *p) {
  pln_parse_frame f = *top_branch_frame(p);
  pln_ref node = 0;
  size_t mark = pln_diag_count(p->engine);
  if (p->token.kind != PLN_T_RBRACE)
    return pln_parse_report_expected(p, "';' or '}'");
  /* what follows a definition is not part of its function */
  PLN_TRY(pln_parse_next(p));
  pln_status status =
      pln_build_bind(p->b, p->n_values - f.first, p->values + f.first, p->value,
                     f.attrs, f.ret, &node);
  if (status == PLN_OK && f.n > 0)
    status = pln_build_generic(p->b, node, f.n, p->types + f.types);
  if (status == PLN_OK && f.order)
    status = pln_builder_attr_order(p->b, node, f.order);
  if (status == PLN_OK)
    set_scope_attrs(p, node, f.scopes);
  pln_parse_close(p);
  PLN_TRY(pln_parse_finish_node(p, &f.token, mark, status, node));
  if (f.flag)
    p->mode = PLN_HAVE_VALUE;
  return PLN_OK;
}

/* ---------------------------------------------------------------------- if */

pln_status pln_parse_if(pln_parser *p) {
  PLN_TRY(pln_parse_open(p, PLN_FRAME_IF, &p->token));
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_expect(p, PLN_T_LPAREN));
  return pln_parse_open_sequence(p);
}

/* , name=value) behind the condition */
static pln_status end_condition(pln_parser *p) {
  pln_parse_frame *f = top_branch_frame(p);
  bool more;
  PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &more));
  if (more)
    PLN_TRY(pln_parse_attrs(p, &f->attrs));
  PLN_TRY(pln_parse_scope_attrs(p, PLN_THEN_PREFIX, 0, NULL, &f->attrs,
                                &f->scopes[0]));
  PLN_TRY(pln_parse_scope_attrs(p, PLN_ELSE_PREFIX, 0, NULL, &f->attrs,
                                &f->scopes[1]));
  return pln_parse_expect(p, PLN_T_RPAREN);
}

/* n_results=3: both branches are tuples with that many fields. */
static pln_status set_results(pln_parser *p, pln_node *n, uint32_t results) {
  bool tuple = pln_type_get_kind(p->engine, n->type) == PLN_TYPE_TUPLE;
  if (n->type && results > 0 &&
      (!tuple || pln_type_n_parts(p->engine, n->type) != results))
    return pln_diag_error(p->engine, PLN_ERR_TYPE, NULL,
                          "the branches are not tuples of %u fields", results);
  n->results = (uint16_t)results;
  return PLN_OK;
}

static pln_status make_if(pln_parser *p, const pln_parse_frame *f,
                          pln_ref *out) {
  const pln_ref *v = p->values + f->first;
  pln_attrs attrs = f->attrs;
  uint32_t results;
  PLN_TRY(pln_parse_results(p, &attrs, &results));
  PLN_TRY(pln_build_floating_if(p->b, v[0], v[1], v[2], out));
  p->b->graph->nodes[*out].attrs = attrs;
  set_scope_attrs(p, *out, f->scopes);
  return set_results(p, &p->b->graph->nodes[*out], results);
}

static pln_status finish_if(pln_parser *p) {
  pln_parse_frame f = *top_branch_frame(p);
  pln_ref node = 0;
  size_t mark = pln_diag_count(p->engine);
  pln_status status = make_if(p, &f, &node);
  pln_parse_close(p);
  return pln_parse_finish_node(p, &f.token, mark, status, node);
}

/* The number of values shows the progress: none, the condition, the
 * then-branch. */
pln_status pln_parse_if_part(pln_parser *p) {
  uint32_t n = p->n_values - top_branch_frame(p)->first;
  PLN_TRY(pln_parse_push(p, p->value));
  PLN_TRY(n == 0 ? end_condition(p) : pln_parse_expect(p, PLN_T_RBRACE));
  if (n == 2)
    return finish_if(p);
  if (n == 1)
    PLN_TRY(pln_parse_expect(p, PLN_T_ELSE));
  PLN_TRY(pln_parse_expect(p, PLN_T_LBRACE));
  return pln_parse_open_sequence(p);
}

/* ------------------------------------------------------------------- match */

/* Parentheses around the data are usual but optional. */
pln_status pln_parse_match(pln_parser *p) {
  bool partial;
  PLN_TRY(pln_parse_open(p, PLN_FRAME_MATCH, &p->token));
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_accept(p, PLN_T_QUERY, &partial));
  top_branch_frame(p)->flag = !partial;
  p->mode = PLN_WANT_OPERAND;
  return PLN_OK;
}

/* The values are the data, then patterns and bodies alternately;
 * pln_build_match takes separate arrays. */
static pln_status finish_match(pln_parser *p) {
  pln_parse_frame f = *top_branch_frame(p);
  const pln_ref *v = p->values + f.first;
  uint32_t n = (p->n_values - f.first) / 2;
  pln_ref node = 0;
  size_t size = (2 * (size_t)n + 1) * sizeof(pln_ref);
  size_t mark = pln_diag_count(p->engine);
  pln_ref *arms = pln_mem_new(p->engine, size);
  if (!arms)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < n; i++) {
    arms[i] = v[1 + 2 * i];
    arms[n + i] = v[2 + 2 * i];
  }
  pln_status status =
      pln_build_floating_match(p->b, v[0], f.flag, n, arms, arms + n, &node);
  pln_mem_free(p->engine, arms, size);
  pln_parse_close(p);
  return pln_parse_finish_node(p, &f.token, mark, status, node);
}

/* `pattern => body`, or the end. */
static pln_status next_arm(pln_parser *p) {
  pln_ref pattern;
  if (p->token.kind == PLN_T_RBRACE) {
    PLN_TRY(pln_parse_next(p));
    return finish_match(p);
  }
  PLN_TRY(pln_parse_pattern(p, &pattern));
  PLN_TRY(pln_parse_push(p, pattern));
  PLN_TRY(pln_parse_expect(p, PLN_T_DARROW));
  PLN_TRY(pln_parse_accept(p, PLN_T_LBRACE, &top_branch_frame(p)->braces));
  return pln_parse_open_sequence(p);
}

pln_status pln_parse_match_part(pln_parser *p) {
  pln_parse_frame f = *top_branch_frame(p);
  bool comma, data = p->n_values == f.first;
  PLN_TRY(pln_parse_push(p, p->value));
  pln_parse_unbind(p, f.mark);
  if (data) {
    PLN_TRY(pln_parse_expect(p, PLN_T_LBRACE));
    return next_arm(p);
  }
  if (f.braces)
    PLN_TRY(pln_parse_expect(p, PLN_T_RBRACE));
  PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &comma));
  if (!comma && p->token.kind != PLN_T_RBRACE)
    return pln_parse_report_expected(p, "',' or '}'");
  return next_arm(p);
}
