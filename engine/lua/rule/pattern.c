/* pattern.c: the patterns of a rule as tables, for the generator of programs
 * that set:check() evaluates (lua/perilune/rule/check).
 *
 * Attribute values that are literals are given; those that depend on a match
 * are not, and neither are conditions: the generator learns by applying the
 * rule whether they hold. */

#include "lua/rule/rules.h"

#include "rule/set.h"

static void set_slice(lua_State *L, const char *key, pln_slice text) {
  lua_pushlstring(L, text.size ? text.data : "", text.size);
  lua_setfield(L, -2, key);
}

static void set_var(lua_State *L, const char *key, const pln_rule_entry *rule,
                    int16_t slot) {
  if (slot >= 0)
    set_slice(L, key, rule->vars[slot]);
}

static void set_int(lua_State *L, const char *key, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

static void set_true(lua_State *L, const char *key, bool value) {
  if (!value)
    return;
  lua_pushboolean(L, true);
  lua_setfield(L, -2, key);
}

/* ---------------------------------------------------------------- literals */

/* Pushes a number, text, name, true or false; false: it is none of them.  [-0,
 * +1 or 0] */
static bool push_scalar(lua_State *L, const pln_ast *a, uint32_t at) {
  const pln_ast_node *n = &a->nodes[at];
  bool negative = n->kind == PLN_AST_UNARY && n->operator_ == PLN_AST_NEG;
  if (negative)
    n = &a->nodes[pln_ast_operand(a, at, 0)];
  if (n->kind == PLN_AST_NUMBER && n->is_int)
    lua_pushinteger(L, negative ? -n->integer : n->integer);
  else if (n->kind == PLN_AST_NUMBER)
    lua_pushnumber(L, negative ? -n->number : n->number);
  else if (negative)
    return false;
  else if (n->kind == PLN_AST_NAME &&
           (pln_slice_is(n->text, "true") || pln_slice_is(n->text, "false")))
    lua_pushboolean(L, pln_slice_is(n->text, "true"));
  else if (n->kind == PLN_AST_NAME || n->kind == PLN_AST_STRING)
    lua_pushlstring(L, n->text.size ? n->text.data : "", n->text.size);
  else
    return false;
  return true;
}

/* The same for lists of scalars, too. */
static bool push_literal(lua_State *L, const pln_ast *a, uint32_t at) {
  const pln_ast_node *n = &a->nodes[at];
  if (n->kind != PLN_AST_LIST)
    return push_scalar(L, a, at);
  lua_createtable(L, (int)n->count, 0);
  for (uint32_t i = 0; i < n->count; i++) {
    if (!push_scalar(L, a, pln_ast_operand(a, at, i))) {
      lua_pop(L, 1);
      return false;
    }
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return true;
}

/* ---------------------------------------------------------------- patterns */

/* { name =, var = or value = }; a variable that is bound elsewhere is compared.
 */
static void push_attr_pattern(lua_State *L, const pln_rule_entry *rule,
                              const pln_attr_pattern *attr) {
  const pln_ast_node *n = &rule->ast.nodes[attr->expression];
  lua_createtable(L, 0, 2);
  set_slice(L, "name", attr->name);
  set_var(L, "var", rule, attr->slot);
  if (attr->slot < 0 && n->kind == PLN_AST_VAR)
    set_slice(L, "var", n->text);
  else if (attr->slot < 0 && push_literal(L, &rule->ast, attr->expression))
    lua_setfield(L, -2, "value");
}

static void set_attr_patterns(lua_State *L, const pln_rule_set *set,
                              const pln_rule_entry *rule,
                              const pln_pattern_node *p) {
  lua_createtable(L, (int)p->n_attrs, 0);
  for (uint32_t i = 0; i < p->n_attrs; i++) {
    push_attr_pattern(L, rule, &set->attrs[p->attrs + i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "attrs");
}

static void set_operators(lua_State *L, const pln_rule_set *set,
                          const pln_pattern_node *p) {
  lua_createtable(L, (int)p->n_ops, 0);
  for (uint32_t i = 0; i < p->n_ops; i++) {
    lua_pushstring(L, pln_op_row(set->engine, set->ops[p->ops + i])->name);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "ops");
}

/* { const = true, ... } */
static void set_constraints(lua_State *L, uint32_t constraints) {
  lua_newtable(L);
#define PLN_ROW(NAME, text, doc) \
  set_true(L, text, (constraints & PLN_CONSTRAINT_##NAME) != 0);
  PLN_RULE_CONSTRAINTS(PLN_ROW)
#undef PLN_ROW
  lua_setfield(L, -2, "constraints");
}

/* The operand's number from 1, "constant" or "other". */
static void set_argument(lua_State *L, uint16_t arg) {
  if (arg == PLN_ARG_CONSTANT)
    lua_pushliteral(L, "constant");
  else if (arg == PLN_ARG_OTHER)
    lua_pushliteral(L, "other");
  else
    lua_pushinteger(L, (lua_Integer)arg + 1);
  lua_setfield(L, -2, "arg");
}

static void push_pattern(lua_State *L, const pln_rule_set *set,
                         const pln_rule_entry *rule,
                         const pln_pattern_node *p) {
  static const char *const kinds[] = {"any", "call", "tuple", "field", "value"};
  lua_createtable(L, 0, 12);
  lua_pushstring(L, kinds[p->kind]);
  lua_setfield(L, -2, "kind");
  if (p->parent != PLN_MATCH_ROOT) {
    set_int(L, "parent", (lua_Integer)p->parent + 1);
    set_argument(L, p->arg);
  }
  set_var(L, "var", rule, p->slot);
  set_var(L, "rest", rule, p->rest);
  set_true(L, "any_count", p->any_count);
  set_true(L, "optional", p->optional);
  set_constraints(L, p->constraints);
  if (p->kind == PLN_MATCH_CALL) {
    set_operators(L, set, p);
    set_attr_patterns(L, set, rule, p);
  }
  set_int(L, "count", p->n_args);
  set_int(L, "index", p->index);
  lua_pushnumber(L, p->number);
  lua_setfield(L, -2, "number");
}

/* rule_patterns(set, i) -> for each variant of rule `i`, from 1, a list of its
 * patterns, parents first: { kind =, parent =, arg =, var =, ... } */
int pln_lua_rule_patterns(lua_State *L) {
  const pln_rule_set *set = pln_lua_check_rule_set(L, 1)->set;
  lua_Integer i = luaL_checkinteger(L, 2);
  luaL_argcheck(L, i >= 1 && i <= (lua_Integer)set->n_rules, 2,
                "there is no such rule");
  const pln_rule_entry *rule = &set->rules[i - 1];
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  lua_createtable(L, (int)rule->n_variants, 0);
  for (uint32_t k = 0; k < rule->n_variants; k++) {
    const pln_rule_variant *v = &set->variants[rule->first_variant + k];
    lua_createtable(L, (int)v->count, 0);
    for (uint32_t p = 0; p < v->count; p++) {
      push_pattern(L, set, rule, &set->patterns[v->first + p]);
      lua_rawseti(L, -2, (lua_Integer)p + 1);
    }
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  return 1;
}

/* rule_parameters(name) -> the operands of an operator that are attributes in
 * another form: { name = number from 1 } */
int pln_lua_rule_parameters(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_op op = pln_op_find(b->engine, pln_text(luaL_checkstring(L, 1)));
  lua_newtable(L);
  int32_t most = op ? pln_op_row(b->engine, op)->max_args : 0;
  for (int32_t i = 0; i < most; i++) {
    const char *name = pln_rule_parameter_name(op, (uint32_t)i);
    if (name)
      set_int(L, name, (lua_Integer)i + 1);
  }
  return 1;
}
