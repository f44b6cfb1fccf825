/* check.c: checks when a rule is made.
 *
 * What stands in conditions and attributes must be able to have a value. A
 * misspelt property, name or dtype would otherwise be unknown at each match, so
 * that the rule never applies. Called by set.c for each node of a value,
 * operands first, when the pattern's variants are known.
 *
 * The replacement must be able to have the type of what it replaces: instances
 * of the pattern are built of variables of several dtypes and ranks, and the
 * rule is applied to them. All extents are 1, so that what depends on extents
 * fits. Called by the binding for a complete set. */

#include <stdio.h>

#include "ir/tensor/tensor.h"
#include "rule/set.h"

static const char *const properties[] = {"shape", "rank", "dtype", "size",
                                         "value", "uses", "op"};

static bool is_listed(pln_slice name, uint32_t n, const char *const *names) {
  for (uint32_t i = 0; i < n; i++)
    if (pln_slice_is(name, names[i]))
      return true;
  return false;
}

/* -------------------------------------------------------------- properties */

/* What the variants of a rule say of a variable. */
typedef struct variable_use {
  bool any;     /* it may be a node that the pattern says nothing about */
  bool has;     /* an operator that it may be a call of has the attribute */
  pln_op op;    /* one of these operators; 0: none */
  bool is_attr; /* it is the value of an attribute */
} variable_use;

static bool has_attribute(const pln_engine *e, pln_op op, pln_slice name) {
  return (pln_op_row(e, op)->traits & PLN_TRAIT_OPAQUE) ||
         pln_rule_core_name(e, op, name).size;
}

static void use_in_pattern(const pln_rule_set *s, const pln_pattern_node *p,
                           int16_t var, pln_slice name, variable_use *use) {
  for (uint32_t i = 0; i < p->n_attrs; i++)
    use->is_attr = use->is_attr || s->attrs[p->attrs + i].slot == var;
  if (p->slot != var && p->op_slot != var)
    return;
  use->any = use->any || p->kind != PLN_MATCH_CALL || !p->n_ops;
  for (uint32_t i = 0; p->kind == PLN_MATCH_CALL && i < p->n_ops; i++) {
    use->op = s->ops[p->ops + i];
    use->has = use->has || has_attribute(s->engine, use->op, name);
  }
}

static variable_use find_use(const pln_rule_set *s, const pln_rule_entry *r,
                             uint32_t var, pln_slice name) {
  variable_use use = {0};
  for (uint32_t v = 0; v < r->n_variants; v++) {
    const pln_rule_variant *variant = &s->variants[r->first_variant + v];
    for (uint32_t i = 0; i < variant->count; i++)
      use_in_pattern(s, &s->patterns[variant->first + i], (int16_t)var, name,
                     &use);
  }
  return use;
}

static bool any_has_attribute(const pln_engine *e, pln_slice name) {
  uint32_t n = pln_op_count(e);
  for (pln_op op = 1; op <= n; op++)
    if (pln_rule_core_name(e, op, name).size)
      return true;
  return false;
}

static void list_properties(char *text, size_t size) {
  for (uint32_t i = 0; i < PLN_COUNT(properties); i++) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", i ? ", " : "", properties[i]);
  }
}

/* `op`: what the variable is a call of; 0: the pattern does not say. */
static pln_status no_property(const pln_rule_set *s, const pln_ast *a,
                              const pln_ast_node *field, pln_op op) {
  const char *of = op ? pln_op_row(s->engine, op)->name : "an operator";
  char text[64], hint[128], list[96] = "";
  snprintf(text, sizeof text, "%.*s", (int)field->text.size, field->text.data);
  pln_suggest(text, PLN_COUNT(properties), properties, hint, sizeof hint);
  list_properties(list, sizeof list);
  if (!op && any_has_attribute(s->engine, field->text))
    return pln_ast_error(a, PLN_ERR_NAME, field->position,
                         "'%s' is no property (%s); to read an attribute, "
                         "write the call's operator in the pattern: ?x@op(...)",
                         text, list);
  if (*hint)
    return pln_ast_error(a, PLN_ERR_NAME, field->position,
                         "'%s' is no property and no attribute of %s%s", text,
                         of, hint);
  return pln_ast_error(a, PLN_ERR_NAME, field->position,
                       "'%s' is no property (%s) and no attribute of %s", text,
                       list, of);
}

/* Bound behind the pattern: a part of the replacement. */
static bool is_part(const pln_rule_entry *r, uint32_t var) {
  const pln_ast *a = &r->ast;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->nodes[i].kind == PLN_AST_BIND && i > a->pattern &&
        pln_slice_equal(a->nodes[i].text, r->vars[var]))
      return true;
  return false;
}

static pln_status check_property(const pln_rule_set *s, const pln_rule_entry *r,
                                 const pln_ast_node *field) {
  const pln_ast *a = &r->ast;
  const pln_ast_node *of = &a->nodes[a->operands[field->first]];
  if (of->kind != PLN_AST_VAR)
    return pln_ast_error(a, PLN_ERR_TYPE, field->position,
                         "'.%.*s': only a node has properties, and a variable "
                         "stands for it",
                         (int)field->text.size, field->text.data);
  if (r->rest_vars >> of->refers & 1)
    return pln_ast_error(a, PLN_ERR_TYPE, field->position,
                         "?%.*s stands for several operands, which have no "
                         "property together; len(?%.*s) is their number",
                         (int)of->text.size, of->text.data, (int)of->text.size,
                         of->text.data);
  variable_use use = find_use(s, r, of->refers, field->text);
  if (use.is_attr)
    return pln_ast_error(a, PLN_ERR_TYPE, field->position,
                         "?%.*s is the value of an attribute, which has no "
                         "properties",
                         (int)of->text.size, of->text.data);
  if (is_listed(field->text, PLN_COUNT(properties), properties) || use.has)
    return PLN_OK;
  if (is_part(r, of->refers) && any_has_attribute(s->engine, field->text))
    return PLN_OK;
  return no_property(s, a, field, use.any ? 0 : use.op);
}

/* ------------------------------------------------------------------- names */

static const char *const constants[] = {
    "opset",     "finite_math", "associative_math",
    "microsoft", "onnx",        "true",
    "false",     "none",        "inf"};

/* A name that stands where only a number or a truth value has a meaning. Names
 * are texts elsewhere, such as those of layouts. */
static pln_status check_number(const pln_ast *a, uint32_t at) {
  const pln_ast_node *n = &a->nodes[at];
  char text[64], hint[128];
  if (n->kind == PLN_AST_STRING)
    return pln_ast_error(a, PLN_ERR_TYPE, n->position,
                         "a number or a condition expected, found a text");
  if (n->kind != PLN_AST_NAME ||
      is_listed(n->text, PLN_COUNT(constants), constants))
    return PLN_OK;
  snprintf(text, sizeof text, "%.*s", (int)n->text.size, n->text.data);
  pln_suggest(text, PLN_COUNT(constants), constants, hint, sizeof hint);
  return pln_ast_error(a, PLN_ERR_NAME, n->position,
                       "there is no value '%s'; a variable is written ?%s%s",
                       text, text, hint);
}

static bool is_dtype(const pln_ast_node *n) {
  return n->kind == PLN_AST_FIELD && pln_slice_is(n->text, "dtype");
}

static bool is_text(const pln_ast_node *n) {
  return n->kind == PLN_AST_NAME || n->kind == PLN_AST_STRING;
}

static pln_status no_dtype(const pln_ast *a, const pln_ast_node *n) {
  char text[64], hint[128];
  const char *names[PLN_N_DTYPES];
  uint32_t count = 0;
  for (uint32_t d = 1; d < PLN_N_DTYPES; d++)
    names[count++] = pln_dtype_name((pln_dtype)d);
  snprintf(text, sizeof text, "%.*s", (int)n->text.size, n->text.data);
  pln_suggest(text, count, names, hint, sizeof hint);
  return pln_ast_error(a, PLN_ERR_NAME, n->position, "there is no dtype '%s'%s",
                       text, hint);
}

/* ?x.dtype == float23 */
static pln_status check_dtype(const pln_ast *a, uint32_t field,
                              uint32_t other) {
  const pln_ast_node *n = &a->nodes[other];
  return is_dtype(&a->nodes[field]) && is_text(n) && !pln_dtype_find(n->text)
             ? no_dtype(a, n)
             : PLN_OK;
}

static bool is_int_or_dtype(const pln_engine *e, pln_op op, pln_slice name) {
  pln_slice core = pln_rule_core_name(e, op, name), same;
  const char *at =
      core.size ? pln_rule_find_in_schema(pln_op_row(e, op)->attrs, core, &same)
                : NULL;
  size_t size = at && *at == ':' ? strcspn(at, "= ") : 0;
  return (size == 4 && !strncmp(at, ":int", 4)) ||
         (size == 6 && !strncmp(at, ":dtype", 6));
}

/* cast(?x, dtype=float23) */
pln_status pln_rule_check_attribute(const pln_rule_set *set, const pln_ast *a,
                                    pln_op op, const pln_ast_node *named) {
  const pln_ast_node *n = &a->nodes[a->operands[named->first]];
  bool constant = n->kind == PLN_AST_NAME &&
                  is_listed(n->text, PLN_COUNT(constants), constants);
  return is_text(n) && !constant && !pln_dtype_find(n->text) &&
                 is_int_or_dtype(set->engine, op, named->text)
             ? no_dtype(a, n)
             : PLN_OK;
}

pln_status pln_rule_check_negation(const pln_ast *a, const pln_ast_node *n) {
  const pln_ast_node *of = &a->nodes[a->operands[n->first]];
  if (n->operator_ != PLN_AST_NEG || of->kind != PLN_AST_NUMBER ||
      !of->is_int || PLN_DIM_IS_CONST(-of->integer))
    return PLN_OK;
  return pln_ast_error(a, PLN_ERR_LIMIT, n->position,
                       "an integer outside of a pattern is "
                       "-9223372036854775808 or from -9223372032559808512 on");
}

/* What is neither true nor false: the condition would never hold. */
pln_status pln_rule_check_truth(const pln_rule_set *s, const pln_rule_entry *r,
                                uint32_t at) {
  const pln_ast *a = &r->ast;
  const pln_ast_node *n = &a->nodes[at];
  bool node = n->kind == PLN_AST_VAR &&
              !find_use(s, r, n->refers, (pln_slice){0}).is_attr;
  if (!node && n->kind != PLN_AST_NUMBER && n->kind != PLN_AST_LIST)
    return PLN_OK;
  return pln_ast_error(a, PLN_ERR_TYPE, n->position,
                       "a condition expected, found %s",
                       node                        ? "a node"
                       : n->kind == PLN_AST_NUMBER ? "a number"
                                                   : "a list");
}

static pln_status check_operands_truth(const pln_rule_set *s,
                                       const pln_rule_entry *r,
                                       const pln_ast_node *n) {
  if (n->operator_ != PLN_AST_AND && n->operator_ != PLN_AST_OR &&
      n->operator_ != PLN_AST_NOT)
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(pln_rule_check_truth(s, r, r->ast.operands[n->first + i]));
  return PLN_OK;
}

static pln_status check_operator(const pln_ast *a, const pln_ast_node *n) {
  PLN_TRY(pln_rule_check_negation(a, n));
  bool equality = n->operator_ == PLN_AST_EQ || n->operator_ == PLN_AST_NE;
  uint32_t left = a->operands[n->first];
  uint32_t right = n->count > 1 ? a->operands[n->first + 1] : left;
  if (equality) {
    PLN_TRY(check_dtype(a, left, right));
    return check_dtype(a, right, left);
  }
  if (n->operator_ == PLN_AST_IN)
    return PLN_OK;
  PLN_TRY(check_number(a, left));
  return check_number(a, right);
}

/* A list has integers. */
static pln_status check_list(const pln_ast *a, const pln_ast_node *n) {
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_ast_node *element = &a->nodes[a->operands[n->first + i]];
    bool text = element->kind == PLN_AST_STRING ||
                (element->kind == PLN_AST_NAME &&
                 !is_listed(element->text, PLN_COUNT(constants), constants));
    if (text || is_dtype(element))
      return pln_ast_error(a, PLN_ERR_TYPE, element->position,
                           "the elements of a list are integers; texts and "
                           "dtypes are compared with == one by one");
  }
  return PLN_OK;
}

pln_status pln_rule_check_value(const pln_rule_set *set,
                                const pln_rule_entry *rule, uint32_t at) {
  const pln_ast *a = &rule->ast;
  const pln_ast_node *n = &a->nodes[at];
  switch (n->kind) {
  case PLN_AST_FIELD: return check_property(set, rule, n);
  case PLN_AST_LIST: return check_list(a, n);
  case PLN_AST_UNARY:
  case PLN_AST_BINARY:
    PLN_TRY(check_operands_truth(set, rule, n));
    return check_operator(a, n);
  default: return at == a->condition ? check_number(a, at) : PLN_OK;
  }
}

/* ------------------------------------------------------------------- types */

enum { MOST_INSTANCE_ARGS = 8 };

static bool is_constant_operand(const pln_pattern_node *p) {
  return (p->constraints & (PLN_CONSTRAINT_CONST | PLN_CONSTRAINT_SCALAR |
                            PLN_CONSTRAINT_SPLAT)) != 0;
}

/* An instance of a variant: a program that its pattern matches. */
typedef struct instance {
  const pln_rule_set *set;
  const pln_rule_variant *variant;
  pln_builder *b;
  pln_dtype dtype;
  int32_t rank;
  pln_ref nodes[PLN_RULE_MAX_NODES]; /* by pattern node */
} instance;

static pln_status build_element(instance *x, const pln_pattern_node *p,
                                pln_ref *out) {
  pln_engine *e = x->set->engine;
  pln_tensor *tensor;
  if (p->kind == PLN_MATCH_VALUE && !p->is_int)
    PLN_TRY(pln_tensor_full(e, x->dtype, 0, NULL, p->number, &tensor));
  else
    PLN_TRY(pln_tensor_full_int(e, x->dtype, 0, NULL,
                                p->kind == PLN_MATCH_VALUE ? p->integer : 1,
                                &tensor));
  if (!tensor)
    return PLN_ERR_TYPE;
  pln_status status = pln_build_constant(x->b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

static pln_status build_operand(instance *x, const pln_pattern_node *p,
                                pln_ref *out) {
  static const pln_dim dims[] = {1, 1, 1, 1};
  pln_engine *e = x->set->engine;
  pln_symbol name;
  pln_type type;
  for (uint32_t i = 0; p->again && i < x->variant->count; i++)
    if (x->set->patterns[x->variant->first + i].slot == p->slot &&
        x->nodes[i] != PLN_NONE) {
      *out = x->nodes[i];
      return PLN_OK;
    }
  if (p->constraints & PLN_CONSTRAINT_ABSENT)
    return pln_build_absent(x->b, out);
  if (p->kind == PLN_MATCH_VALUE || is_constant_operand(p))
    return build_element(x, p, out);
  PLN_TRY(pln_symbol_intern(e, pln_text("x"), &name));
  PLN_TRY(pln_type_tensor(e, x->dtype, x->rank, dims, &type));
  return pln_build_var(x->b, name, type, 0, out);
}

/* The parts of a pattern in order; PLN_ERR_TYPE: there are others than
 * operands that the pattern lists one by one. */
static pln_status find_args(const instance *x, uint32_t at, pln_ref *args) {
  const pln_pattern_node *p = &x->set->patterns[x->variant->first + at];
  uint32_t found = 0;
  for (uint32_t i = at + 1; i < x->variant->count; i++) {
    const pln_pattern_node *child = &x->set->patterns[x->variant->first + i];
    if (child->parent != at)
      continue;
    uint32_t arg = child->arg == PLN_ARG_CONSTANT ? 1
                   : child->arg == PLN_ARG_OTHER  ? 0
                                                  : child->arg;
    if (arg >= MOST_INSTANCE_ARGS)
      return PLN_ERR_TYPE;
    args[arg] = x->nodes[i];
    found++;
  }
  return found == p->n_args ? PLN_OK : PLN_ERR_TYPE;
}

static pln_status build_pattern(instance *x, uint32_t at) {
  const pln_pattern_node *p = &x->set->patterns[x->variant->first + at];
  pln_engine *e = x->set->engine;
  pln_ref args[MOST_INSTANCE_ARGS] = {0}, *out = &x->nodes[at];
  if (p->kind == PLN_MATCH_ANY || p->kind == PLN_MATCH_VALUE)
    return build_operand(x, p, out);
  if (p->kind == PLN_MATCH_FIELD) {
    for (uint32_t i = at + 1; i < x->variant->count; i++)
      if (x->set->patterns[x->variant->first + i].parent == at)
        return pln_build_tuple_get_item(x->b, x->nodes[i], p->index, out);
    return PLN_ERR_TYPE;
  }
  if (p->kind == PLN_MATCH_KIND || p->n_args > MOST_INSTANCE_ARGS ||
      (p->kind == PLN_MATCH_CALL && p->n_ops == 0))
    return PLN_ERR_TYPE;
  PLN_TRY(find_args(x, at, args));
  if (p->kind == PLN_MATCH_TUPLE)
    return pln_build_tuple(x->b, p->n_args, args, out);
  pln_op op = x->set->ops[p->ops];
  if (pln_op_registered(e, op))
    return PLN_ERR_TYPE;
  return pln_build_call(x->b, op, 0, 0, p->n_args, args, out);
}

/* *out: the sealed instance. PLN_ERR_TYPE: there is none of this dtype and
 * rank. Operands come later in a variant than what they belong to. */
static pln_status build_instance(instance *x, pln_graph **out) {
  memset(x->nodes, 0xff, sizeof x->nodes);
  for (uint32_t i = x->variant->count; i-- > 0;)
    PLN_TRY(build_pattern(x, i));
  return pln_builder_seal(x->b, x->nodes[0], out);
}

/* Applies the rule to a graph without changing it. PLN_ERR_TYPE: the
 * replacement is ill-typed; *fits: it is not. */
static pln_status try_instance(const pln_rule_set *set, uint32_t rule,
                               const pln_graph *graph, bool *fits) {
  pln_rule_explanation best;
  pln_rule_explain explain = {
      .node = PLN_NONE, .rule = rule, .capacity = 1, .best = &best};
  const pln_rule_options options = {.explain = &explain};
  pln_graph *out;
  PLN_TRY(pln_rules_apply(set, graph, &options, &out));
  pln_graph_release(out);
  *fits = explain.n && best.stage == PLN_STAGE_APPLIES;
  return PLN_OK;
}

static pln_status check_instance(instance *x, uint32_t rule, bool *fits,
                                 bool *mismatches) {
  pln_graph *graph = NULL;
  *fits = *mismatches = false;
  PLN_TRY(pln_builder_new(x->set->engine, &x->b));
  pln_status status = build_instance(x, &graph);
  pln_builder_free(x->b);
  if (status == PLN_OK) {
    status = try_instance(x->set, rule, graph, fits);
    *mismatches = status == PLN_ERR_TYPE;
  }
  pln_graph_release(graph);
  return status;
}

/* Keeps the error of the first instance whose replacement is ill-typed; the
 * others are dropped. */
static pln_status check_rule_types(const pln_rule_set *s, uint32_t rule) {
  static const pln_dtype dtypes[] = {PLN_FLOAT32, PLN_INT64, PLN_BOOL,
                                     PLN_INT8};
  static const int8_t ranks[] = {2, 1, 3, 4, 0};
  size_t mark = pln_diag_count(s->engine), kept = mark;
  instance x = {.set = s,
                .variant = &s->variants[s->rules[rule].first_variant]};
  for (uint32_t i = 0; i < PLN_COUNT(dtypes) * PLN_COUNT(ranks); i++) {
    bool fits, mismatches;
    x.dtype = dtypes[i / PLN_COUNT(ranks)];
    x.rank = ranks[i % PLN_COUNT(ranks)];
    pln_status status = check_instance(&x, rule, &fits, &mismatches);
    if (status != PLN_OK && status != PLN_ERR_TYPE)
      return status;
    if (mismatches && kept == mark)
      kept = pln_diag_count(s->engine);
    pln_diag_drop(s->engine, fits ? mark : kept);
    if (fits)
      return PLN_OK;
  }
  if (kept == mark)
    return PLN_OK;
  pln_diag_note(s->engine, NULL,
                "no dtype and no rank of the rule's variables gives another "
                "result");
  return PLN_ERR_TYPE;
}

/* Returns true if the replacement calls an operator of a script, whose
 * inference is a function. */
static bool calls_registered(const pln_rule_set *s, const pln_rule_entry *r) {
  const pln_ast *a = &r->ast;
  for (uint32_t i = a->nodes[a->replacement].begin; i <= a->replacement; i++) {
    const pln_ast_node *n = &a->nodes[i];
    bool call = n->kind == PLN_AST_CALL && !n->is_value && !n->text.size;
    if (call && n->refers && n->refers <= pln_op_count(s->engine) &&
        pln_op_registered(s->engine, n->refers))
      return true;
  }
  return false;
}

/* Functions are not called before their program is there. */
static bool has_plain_text(const pln_rule_set *s, const pln_rule_entry *r) {
  return r->n_variants && r->ast.replacement != PLN_NONE &&
         !r->info.condition && !r->info.replacement && !r->native &&
         s->variants[r->first_variant].n_roots == 1 && !calls_registered(s, r);
}

pln_status pln_rule_check_types(const pln_rule_set *set) {
  for (uint32_t i = 0; i < set->n_rules; i++)
    if (has_plain_text(set, &set->rules[i]))
      PLN_TRY(check_rule_types(set, i));
  return PLN_OK;
}
