/* set.c: sets of rules: adding rules, the checks of their right sides and
 * conditions, and the life of a set.
 *
 * A rule is checked when it is added: operators, functions, attributes and
 * variables must exist. */

#include <stdio.h>

#include "rule/set.h"

/* ------------------------------------------------------------------ checks */

static pln_status unknown_function(const pln_ast *a, pln_slice name) {
  const char *names[64];
  char text[64], hint[128];
  uint32_t n = 0;
  while (n < PLN_COUNT(names) && pln_rule_function_name(n)) {
    names[n] = pln_rule_function_name(n);
    n++;
  }
  snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
  pln_suggest(text, n, names, hint, sizeof hint);
  return pln_ast_error(a, PLN_ERR_NAME, (uint32_t)(name.data - a->source.data),
                       "there is no function '%s'%s", text, hint);
}

static pln_status check_function(const pln_ast *a, pln_ast_node *n) {
  if (!n->n_heads)
    return pln_ast_error(a, PLN_ERR_TYPE, n->position,
                         "an operator has no meaning in a value");
  n->refers = pln_rule_function_find(a->heads[n->heads]);
  if (n->refers == PLN_NONE || n->n_heads > 1)
    return unknown_function(a, a->heads[n->heads]);
  if (!pln_rule_function_takes(n->refers, n->count))
    return pln_ast_error(a, PLN_ERR_TYPE, n->position,
                         "'%s' does not take %u arguments",
                         pln_rule_function_name(n->refers), n->count);
  return PLN_OK;
}

static pln_status check_bound(const pln_rule_entry *r, pln_ast_node *n) {
  n->refers = pln_rule_find_var(r, n->text);
  if (n->refers != PLN_NONE)
    return PLN_OK;
  const char *names[PLN_RULE_MAX_VARS];
  char storage[PLN_RULE_MAX_VARS][32], text[64], hint[128];
  for (uint32_t i = 0; i < r->n_vars; i++) {
    snprintf(storage[i], sizeof storage[i], "%.*s", (int)r->vars[i].size,
             r->vars[i].data);
    names[i] = storage[i];
  }
  snprintf(text, sizeof text, "%.*s", (int)n->text.size, n->text.data);
  pln_suggest(text, r->n_vars, names, hint, sizeof hint);
  return pln_ast_error(&r->ast, PLN_ERR_NAME, n->position,
                       "the pattern does not bind ?%s%s", text, hint);
}

/* One node of a condition or of an attribute's value. */
static pln_status check_value(const pln_rule_set *s, pln_rule_entry *r,
                              uint32_t at) {
  pln_ast_node *n = &r->ast.nodes[at];
  n->is_value = true;
  if (n->count > PLN_MAX_RANK)
    return pln_ast_error(&r->ast, PLN_ERR_LIMIT, n->position,
                         "a list has at most %d elements", PLN_MAX_RANK);
  switch ((pln_ast_kind)n->kind) {
  case PLN_AST_VAR: return check_bound(r, n);
  case PLN_AST_CALL: return check_function(&r->ast, n);
  case PLN_AST_NUMBER:
  case PLN_AST_STRING:
  case PLN_AST_NAME:
  case PLN_AST_LIST:
  case PLN_AST_FIELD:
  case PLN_AST_INDEX:
  case PLN_AST_UNARY:
  case PLN_AST_BINARY: return pln_rule_check_value(s, r, at);
  case PLN_AST_WILDCARD:
  case PLN_AST_REST:
  case PLN_AST_TUPLE:
  case PLN_AST_NAMED:
  case PLN_AST_SPREAD:
  case PLN_AST_ALT:
  case PLN_AST_ROOTS:
  case PLN_AST_BIND: break;
  }
  return pln_ast_error(&r->ast, PLN_ERR_FORMAT, n->position,
                       "this has no meaning in a value");
}

static pln_status check_values(const pln_rule_set *s, pln_rule_entry *r,
                               uint32_t root) {
  for (uint32_t i = r->ast.nodes[root].begin; i <= root; i++)
    PLN_TRY(check_value(s, r, i));
  return PLN_OK;
}

static pln_status check_attribute(pln_rule_set *s, const pln_rule_entry *r,
                                  const pln_ast_node *call,
                                  const pln_ast_node *named) {
  const pln_ast *a = &r->ast;
  if (!call->n_heads)
    return PLN_OK;
  pln_op op = call->refers;
  if (pln_slice_is(named->text, PLN_RULE_RESULTS))
    return PLN_OK;
  if ((pln_op_row(s->engine, op)->traits & PLN_TRAIT_OPAQUE) ||
      pln_rule_core_name(s->engine, op, named->text).size)
    return PLN_OK;
  return pln_rule_unknown_attribute(s, a, op, named);
}

/* constant(value, dtype), the only function that makes a node. */
static pln_status check_constant(const pln_rule_set *s, pln_rule_entry *r,
                                 const pln_ast_node *n) {
  if (n->count < 1 || n->count > 2)
    return pln_ast_error(&r->ast, PLN_ERR_TYPE, n->position,
                         "constant takes a value and a dtype");
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(check_values(s, r, r->ast.operands[n->first + i]));
  return PLN_OK;
}

/* name=value and **?c belong to calls; what is spread is a variable. */
static pln_status check_operands(const pln_rule_entry *r,
                                 const pln_ast_node *n) {
  const pln_ast *a = &r->ast;
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_ast_node *arg = &a->nodes[a->operands[n->first + i]];
    bool named = arg->kind == PLN_AST_NAMED || arg->kind == PLN_AST_SPREAD;
    if (named && n->kind != PLN_AST_CALL)
      return pln_ast_error(a, PLN_ERR_FORMAT, arg->position,
                           "attributes belong to a call");
    if (arg->kind == PLN_AST_SPREAD &&
        a->nodes[a->operands[arg->first]].kind != PLN_AST_VAR)
      return pln_ast_error(a, PLN_ERR_FORMAT, arg->position,
                           "'**' takes a variable");
  }
  return PLN_OK;
}

static pln_status check_call(pln_rule_set *s, pln_rule_entry *r,
                             pln_ast_node *n) {
  pln_ast *a = &r->ast;
  if (n->n_heads > 1 || (n->text.size && n->n_heads))
    return pln_ast_error(a, PLN_ERR_FORMAT, n->position,
                         "a replacement names one operator");
  if (n->text.size)
    PLN_TRY(check_bound(r, n));
  else if (pln_slice_is(a->heads[n->heads], "constant"))
    return check_constant(s, r, n);
  else if (!(n->refers = pln_op_find(s->engine, a->heads[n->heads])))
    return pln_rule_unknown_operator(s, a, a->heads[n->heads]);
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_ast_node *arg = &a->nodes[a->operands[n->first + i]];
    if (arg->kind != PLN_AST_NAMED)
      continue;
    PLN_TRY(check_values(s, r, a->operands[arg->first]));
    PLN_TRY(check_attribute(s, r, n, arg));
    if (n->n_heads)
      PLN_TRY(pln_rule_check_attribute(s, a, n->refers, arg));
  }
  return PLN_OK;
}

/* One node of a replacement that is no part of an attribute. */
static pln_status check_replacement_node(pln_rule_set *s, pln_rule_entry *r,
                                         pln_ast_node *n) {
  PLN_TRY(check_operands(r, n));
  switch ((pln_ast_kind)n->kind) {
  case PLN_AST_CALL: return check_call(s, r, n);
  case PLN_AST_VAR: return check_bound(r, n);
  case PLN_AST_FIELD:
    if (n->text.size && n->text.data[0] >= '0' && n->text.data[0] <= '9')
      return PLN_OK;
    break;
  case PLN_AST_UNARY:
  case PLN_AST_BINARY:
    if (pln_rule_operator_op(n->operator_))
      return pln_rule_check_negation(&r->ast, n);
    break;
  case PLN_AST_NUMBER:
  case PLN_AST_NAME:
  case PLN_AST_TUPLE:
  case PLN_AST_NAMED:
  case PLN_AST_BIND:
  case PLN_AST_ROOTS:
  case PLN_AST_SPREAD: return PLN_OK;
  case PLN_AST_STRING:
  case PLN_AST_WILDCARD:
  case PLN_AST_REST:
  case PLN_AST_LIST:
  case PLN_AST_INDEX:
  case PLN_AST_ALT: break;
  }
  bool value = n->kind == PLN_AST_STRING || n->kind == PLN_AST_LIST ||
               n->kind == PLN_AST_INDEX || n->kind == PLN_AST_FIELD;
  return pln_ast_error(&r->ast, PLN_ERR_FORMAT, n->position,
                       value ? "this is a value, not a node: "
                               "constant(value, dtype) makes a constant of it"
                             : "this has no meaning in a replacement");
}

/* ?y@a names a part of the replacement for those that follow it. */
static pln_status bind_parts(pln_rule_entry *r) {
  pln_ast *a = &r->ast;
  uint32_t root = a->replacement;
  for (uint32_t i = a->nodes[root].begin; i <= root; i++) {
    pln_ast_node *n = &a->nodes[i];
    if (n->kind != PLN_AST_BIND)
      continue;
    if (n->constraints || pln_rule_find_var(r, n->text) != PLN_NONE)
      return pln_ast_error(a, PLN_ERR_NAME, n->position,
                           "a part of a replacement has a new name");
    for (uint32_t k = a->nodes[root].begin; k < i; k++)
      if (a->nodes[k].kind == PLN_AST_VAR &&
          pln_slice_equal(a->nodes[k].text, n->text))
        return pln_ast_error(a, PLN_ERR_NAME, a->nodes[k].position,
                             "?%.*s is bound behind this", (int)n->text.size,
                             n->text.data);
    PLN_TRY(pln_rule_add_var(r, n->text, n->position, &n->refers));
  }
  return PLN_OK;
}

/* As many replacements as roots, in text. */
static pln_status check_roots(const pln_rule_entry *r) {
  const pln_ast *a = &r->ast;
  uint32_t n = pln_ast_count_roots(a, a->pattern);
  if (a->replacement == PLN_NONE)
    return n == 1
               ? PLN_OK
               : pln_ast_error(a, PLN_ERR_FORMAT, a->nodes[a->pattern].position,
                               "a rule of several roots has replacements "
                               "in text");
  uint32_t given = pln_ast_count_roots(a, a->replacement);
  return n == given ? PLN_OK
                    : pln_ast_error(a, PLN_ERR_FORMAT,
                                    a->nodes[a->replacement].position,
                                    "%u roots need as many replacements, "
                                    "found %u",
                                    n, given);
}

/* Users come after their operands, so calls are checked from the root down:
 * that marks the values inside before they are met. */
static pln_status check_replacement(pln_rule_set *s, pln_rule_entry *r) {
  pln_ast *a = &r->ast;
  uint32_t root = a->replacement;
  PLN_TRY(bind_parts(r));
  if (a->nodes[root].kind == PLN_AST_NAMED ||
      a->nodes[root].kind == PLN_AST_SPREAD)
    return pln_ast_error(a, PLN_ERR_FORMAT, a->nodes[root].position,
                         "attributes belong to a call");
  for (uint32_t i = root + 1; i-- > a->nodes[root].begin;)
    if (!a->nodes[i].is_value)
      PLN_TRY(check_replacement_node(s, r, &a->nodes[i]));
  return PLN_OK;
}

/* Attributes of patterns are values, or `_`. */
static pln_status check_pattern_values(const pln_rule_set *s,
                                       pln_rule_entry *r) {
  const pln_ast *a = &r->ast;
  for (uint32_t i = a->nodes[a->pattern].begin; i <= a->pattern; i++) {
    if (a->nodes[i].kind != PLN_AST_NAMED)
      continue;
    uint32_t value = pln_ast_operand(a, i, 0);
    if (a->nodes[value].kind != PLN_AST_WILDCARD)
      PLN_TRY(check_values(s, r, value));
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- rules
 */

static char *copy_text(pln_rule_set *s, const char *text) {
  size_t size = text ? strlen(text) + 1 : 0;
  char *copy = text ? pln_arena_new(&s->arena, size) : NULL;
  if (copy)
    memcpy(copy, text, size);
  return copy;
}

static pln_status copy_info(pln_rule_set *s, const pln_rule_info *info,
                            pln_rule_info *out) {
  *out = *info;
  out->text = copy_text(s, info->text);
  out->file = copy_text(s, info->file ? info->file : s->name);
  out->name = copy_text(s, info->name);
  out->reason = copy_text(s, info->reason);
  out->source = copy_text(s, info->source);
  out->native = copy_text(s, info->native);
  bool complete = out->text && out->file && (!info->name || out->name) &&
                  (!info->reason || out->reason) &&
                  (!info->source || out->source) &&
                  (!info->native || out->native);
  return complete ? PLN_OK : pln_nomem(s->engine);
}

/* A rule without a name is called as its pattern reads. */
static pln_status name_rule(pln_rule_set *s, pln_rule_entry *r) {
  const pln_ast *a = &r->ast;
  pln_slice name = a->name;
  if (r->info.name)
    return PLN_OK;
  if (!name.size) {
    const char *text = r->info.text, *end = strstr(text, "=>");
    name = pln_text(text);
    if (end)
      name.size = (size_t)(end - text);
    while (name.size && (name.data[name.size - 1] == ' ' ||
                         name.data[name.size - 1] == '\n'))
      name.size--;
  }
  char *copy = pln_arena_new(&s->arena, name.size + 1);
  if (!copy)
    return pln_nomem(s->engine);
  memcpy(copy, name.data, name.size);
  copy[name.size] = 0;
  r->info.name = copy;
  return PLN_OK;
}

static pln_status find_native(pln_rule_set *s, pln_rule_entry *r,
                              pln_rule_find_native find) {
  if (!r->info.native)
    return PLN_OK;
  r->native = find ? find(r->info.native, &r->native_ud) : NULL;
  if (r->native)
    return PLN_OK;
  return pln_diag_error(s->engine, PLN_ERR_NAME, NULL,
                        "rule '%s': there is no native replacement '%s'",
                        r->info.name, r->info.native);
}

static pln_status check_sides(pln_rule_set *s, pln_rule_entry *r) {
  pln_ast *a = &r->ast;
  bool has = a->replacement != PLN_NONE;
  if (has + (r->info.native != NULL) + (r->info.replacement != NULL) != 1)
    return pln_ast_error(a, PLN_ERR_FORMAT, 0,
                         has ? "a rule has one replacement"
                             : "a rule needs a replacement: pattern => "
                               "replacement");
  PLN_TRY(check_roots(r));
  PLN_TRY(check_pattern_values(s, r));
  if (has)
    PLN_TRY(check_replacement(s, r));
  if (a->condition == PLN_NONE)
    return PLN_OK;
  PLN_TRY(check_values(s, r, a->condition));
  return pln_rule_check_truth(s, r, a->condition);
}

static bool joins(const pln_rule_set *s, const pln_ast *a,
                  const pln_ast_node *call) {
  for (uint32_t i = 0; i < call->n_heads; i++) {
    pln_op op = pln_op_find(s->engine, a->heads[call->heads + i]);
    const pln_op_info *row = op ? pln_op_row(s->engine, op) : NULL;
    if (!row || !(row->traits & PLN_TRAIT_JOIN) || row->max_args >= 0)
      return false;
  }
  return call->n_heads > 0;
}

/* The tuple that is the call's only operand; PLN_NONE: there is none. */
static uint32_t only_tuple(const pln_ast *a, const pln_ast_node *call) {
  uint32_t found = PLN_NONE;
  for (uint32_t i = 0; i < call->count; i++) {
    uint32_t operand = a->operands[call->first + i];
    pln_ast_kind kind = (pln_ast_kind)a->nodes[operand].kind;
    if (kind == PLN_AST_NAMED || kind == PLN_AST_SPREAD)
      continue;
    if (kind != PLN_AST_TUPLE || i > 0)
      return PLN_NONE;
    found = operand;
  }
  return found;
}

/* The call gets the parts of its tuple as operands. The tuple, which nothing
 * refers to any more, becomes a number, which no check minds. */
static pln_status take_parts(pln_ast *a, pln_ast_node *call, uint32_t tuple) {
  pln_ast_node *t = &a->nodes[tuple];
  uint32_t n = t->count + call->count - 1, first = a->n_operands;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->operands, &a->cap_operands,
                       (size_t)first + n + 1, sizeof *a->operands));
  memcpy(a->operands + first, a->operands + t->first,
         t->count * sizeof *a->operands);
  memcpy(a->operands + first + t->count, a->operands + call->first + 1,
         (call->count - 1) * sizeof *a->operands);
  a->n_operands = first + n;
  call->first = first;
  call->count = n;
  *t = (pln_ast_node){.kind = PLN_AST_NUMBER,
                      .is_int = true,
                      .begin = t->begin,
                      .position = t->position};
  return PLN_OK;
}

/* concatenate((a, b)), as Relay writes it, is concatenate(a, b). */
static pln_status join_parts(const pln_rule_set *s, pln_ast *a) {
  for (uint32_t i = 0; i < a->n; i++) {
    pln_ast_node *call = &a->nodes[i];
    uint32_t tuple = call->kind == PLN_AST_CALL && joins(s, a, call)
                         ? only_tuple(a, call)
                         : PLN_NONE;
    if (tuple != PLN_NONE)
      PLN_TRY(take_parts(a, call, tuple));
  }
  return PLN_OK;
}

static pln_status read_rule(pln_rule_set *s, pln_rule_entry *r,
                            pln_rule_find_native find) {
  PLN_TRY(pln_ast_parse(s->engine, pln_text(r->info.text), r->info.file,
                        r->info.row ? r->info.row : 1, &r->ast));
  if (r->ast.equation)
    return pln_ast_error(&r->ast, PLN_ERR_FORMAT, r->ast.arrow,
                         "'<=>' would be applied without end; only "
                         "EqualitySaturation takes such rules");
  PLN_TRY(join_parts(s, &r->ast));
  PLN_TRY(name_rule(s, r));
  PLN_TRY(find_native(s, r, find));
  PLN_TRY(pln_rule_lower(s, r));
  PLN_TRY(check_sides(s, r));
  return s->saturates ? PLN_OK : pln_rule_check_endless(s, r);
}

/* Reads a rule of the set; if that fails, it is as it was. */
static pln_status read_or_undo(pln_rule_set *set, pln_rule_entry *r,
                               pln_rule_find_native find) {
  uint32_t variants = set->n_variants, patterns = set->n_patterns;
  pln_rule_entry before = *r;
  pln_status status = read_rule(set, r, find);
  if (status != PLN_OK) {
    pln_ast_free(&r->ast);
    *r = before;
    set->n_variants = variants;
    set->n_patterns = patterns;
    return status;
  }
  if (r->ast.n > set->most_ast)
    set->most_ast = r->ast.n;
  return PLN_OK;
}

pln_status pln_rule_set_add(pln_rule_set *set, const pln_rule_info *info,
                            pln_rule_find_native find) {
  if (set->compiled)
    return pln_diag_error(set->engine, PLN_ERR_ARGUMENT, NULL,
                          "the rules of '%s' are complete", set->name);
  PLN_TRY(pln_mem_grow(set->engine, (void **)&set->rules, &set->cap_rules,
                       (size_t)set->n_rules + 1, sizeof *set->rules));
  pln_rule_entry *r = &set->rules[set->n_rules];
  *r = (pln_rule_entry){0};
  PLN_TRY(copy_info(set, info, &r->info));
  PLN_TRY(read_or_undo(set, r, find));
  set->n_rules++;
  return PLN_OK;
}

/* *out: there is such an operator. */
static pln_status add_head(pln_rule_set *s, pln_slice name, bool *out) {
  pln_op op = pln_op_find(s->engine, name);
  *out = op != 0;
  if (!op)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->heads, &s->cap_heads,
                       (size_t)s->n_heads + 1, sizeof *s->heads));
  s->heads[s->n_heads++] = (pln_rule_head){.op = op, .rule = s->n_rules};
  return PLN_OK;
}

pln_status pln_rule_set_add_later(pln_rule_set *set, const pln_rule_info *info,
                                  const char *heads,
                                  pln_rule_find_native find) {
  bool known = true;
  uint32_t before = set->n_heads;
  PLN_TRY(pln_mem_grow(set->engine, (void **)&set->rules, &set->cap_rules,
                       (size_t)set->n_rules + 1, sizeof *set->rules));
  for (size_t n; *heads && known; heads += n + (heads[n] == ' ')) {
    n = strcspn(heads, " ");
    PLN_TRY(add_head(set, (pln_slice){.data = heads, .size = n}, &known));
  }
  if (!known) {
    set->n_heads = before;
    return pln_rule_set_add(set, info, find);
  }
  set->rules[set->n_rules++] = (pln_rule_entry){.info = *info, .unread = true};
  return PLN_OK;
}

/* Reads a rule that was added unread, whose heads must be as said. */
static pln_status read_later(pln_rule_set *s, pln_rule_entry *r) {
  if (!r->unread)
    return PLN_OK;
  PLN_TRY(read_or_undo(s, r, s->find));
  r->unread = false;
  for (uint32_t v = 0; v < r->n_variants; v++)
    if (!pln_rule_tree_heads(s, r->first_variant + v))
      return pln_diag_error(s->engine, PLN_ERR_FORMAT, NULL,
                            "rule '%s' matches calls of other operators than "
                            "its heads",
                            r->info.name);
  return PLN_OK;
}

pln_status pln_rule_set_read(const pln_rule_set *set, uint32_t root) {
  pln_rule_set *s = set->self;
  for (uint32_t i = 0; i < s->n_heads; i++)
    if (s->heads[i].op == root)
      PLN_TRY(read_later(s, &s->rules[s->heads[i].rule]));
  return pln_rule_tree_add(s, root);
}

pln_status pln_rule_set_read_all(const pln_rule_set *set) {
  uint32_t n = set->self ? set->n_keys : 0;
  for (uint32_t root = 0; root < n; root++)
    if (set->roots[root] == PLN_TREE_UNREAD)
      PLN_TRY(pln_rule_set_read(set, root));
  return PLN_OK;
}

/* ---------------------------------------------------------------------- sets
 */

pln_status pln_rule_set_new(pln_engine *engine, const char *name,
                            pln_rule_set **out) {
  pln_rule_set *s = pln_mem_zeroed(engine, sizeof *s);
  *out = s;
  if (!s)
    return pln_nomem(engine);
  s->engine = engine;
  pln_arena_init(&s->arena, engine);
  s->name = copy_text(s, name ? name : "rules");
  if (s->name)
    return PLN_OK;
  pln_rule_set_free(s);
  *out = NULL;
  return pln_nomem(engine);
}

pln_status pln_rule_set_compile(pln_rule_set *set) {
  if (set->compiled)
    return PLN_OK;
  PLN_TRY(pln_rule_tree_build(set));
  set->compiled = true;
  return PLN_OK;
}

pln_status pln_rule_set_compile_later(pln_rule_set *set,
                                      pln_rule_find_native find) {
  set->self = set;
  set->find = find;
  return pln_rule_set_compile(set);
}

void pln_rule_set_free(pln_rule_set *set) {
  if (!set)
    return;
  pln_engine *e = set->engine;
  for (uint32_t i = 0; i < set->n_rules; i++)
    pln_ast_free(&set->rules[i].ast);
  pln_mem_free(e, set->rules, set->cap_rules * sizeof *set->rules);
  pln_mem_free(e, set->variants, set->cap_variants * sizeof *set->variants);
  pln_mem_free(e, set->patterns, set->cap_patterns * sizeof *set->patterns);
  pln_mem_free(e, set->attrs, set->cap_attrs * sizeof *set->attrs);
  pln_mem_free(e, set->ops, set->cap_ops * sizeof *set->ops);
  pln_mem_free(e, set->tree, set->cap_tree * sizeof *set->tree);
  pln_mem_free(e, set->jumps, set->cap_jumps * sizeof *set->jumps);
  pln_mem_free(e, set->paths, set->cap_paths * sizeof *set->paths);
  pln_mem_free(e, set->heads, set->cap_heads * sizeof *set->heads);
  pln_idmap_free(set->path_ids);
  pln_mem_free(e, set->leaves, set->cap_leaves * sizeof *set->leaves);
  pln_arena_free(&set->arena);
  pln_mem_free(e, set, sizeof *set);
}

uint32_t pln_rule_set_count(const pln_rule_set *set) {
  return set->n_rules;
}

const pln_rule_info *pln_rule_set_at(const pln_rule_set *set, uint32_t index) {
  return &set->rules[index].info;
}
