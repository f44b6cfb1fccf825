/* rules.h: what the files of this folder share: the box of a set, and a run of
 * its rules. */

#ifndef PLN_LUA_RULE_RULES_H
#define PLN_LUA_RULE_RULES_H

#include "lua/graph/mutator.h"

#include "rule/rule.h"

#define PLN_LUA_RULE_SET "perilune.RuleSet"

/* User value 1: the functions, { [2 * rule + 1] = condition, [2 * rule + 2] =
 * replacement }. */
typedef struct pln_lua_rule_set {
  const pln_rule_set *set;
  pln_rule_set *own; /* NULL: the set is the engine's */
} pln_lua_rule_set;

/* A run of a set; `rewriting` comes first: callbacks get its address. */
typedef struct pln_lua_rules_run {
  pln_lua_rewriting rewriting;
  const pln_rule_match *match;
  bool *holds;  /* a condition is called */
  pln_ref *out; /* a replacement is called */
} pln_lua_rules_run;

static inline pln_lua_rule_set *pln_lua_check_rule_set(lua_State *L, int arg) {
  return luaL_checkudata(L, arg, PLN_LUA_RULE_SET);
}

/* Pushes { name =, text =, ... }.  [-0, +1] */
void pln_lua_push_rule_info(lua_State *L, const pln_rule_info *info);
/* A run: its graphs for callbacks, which stay on the stack and in the registry
 * until it ends.  [-0, +1] `set`: the index of its userdata. */
void pln_lua_prepare_rules(lua_State *L, pln_lua_rules_run *run, int set);
/* Applies the rules to run->rewriting.old, and ends the run. */
pln_status pln_lua_run_rules(lua_State *L, pln_lua_rules_run *run,
                             const pln_rule_set *set,
                             const pln_rule_options *options,
                             pln_graph **out) PLN_CHECKED;
/* The option `lets`, which is on unless it is false. */
bool pln_lua_rule_lets(lua_State *L, int arg);
/* explain.c: set:explain(node, options) */
int pln_lua_rule_set_explain(lua_State *L);
/* pattern.c: rule_patterns(set, i), rule_parameters(name) */
int pln_lua_rule_patterns(lua_State *L);
int pln_lua_rule_parameters(lua_State *L);
/* library.c: rule_library(), rule_library_set(pass) */
int pln_lua_rule_library(lua_State *L);
int pln_lua_rule_library_set(lua_State *L);

#endif
