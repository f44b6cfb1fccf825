/* library.c: lists the shipped rules for scripts. */

#include "lua/rule/rules.h"

#include "rule/library.h"
#include "transform/shipped_rules.h"

/* Stands for any replacement in C: a listed set never runs. */
static pln_status never_run(const void *ud, pln_rule_driver *driver,
                            pln_ref node, pln_ref *out) {
  (void)ud;
  (void)driver;
  (void)node;
  *out = PLN_NONE;
  return PLN_OK;
}

static pln_rule_native find_any(const char *name, const void **ud) {
  (void)name;
  *ud = NULL;
  return never_run;
}

static pln_status read_library(pln_rule_set *set) {
  for (uint32_t i = 0; i < pln_library_count; i++) {
    pln_rule_info info = pln_library[i].info;
    info.file = pln_library[i].file;
    PLN_TRY(pln_rule_set_add(set, &info, find_any));
  }
  return pln_rule_set_compile(set);
}

/* rule_library() -> a list of the shipped rules, in the order in which they are
 * tried: as set:rules() gives them, and `pass`, which runs the rule */
int pln_lua_rule_library(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 0);
  lua_createtable(L, (int)pln_library_count, 0);
  pln_lua_rule_set *box = pln_lua_userdata(L, PLN_LUA_RULE_SET, sizeof *box, 1);
  lua_newtable(L);
  lua_setiuservalue(L, 2, 1);
  pln_lua_must(L, b, pln_rule_set_new(b->engine, "library", &box->own));
  box->set = box->own;
  pln_lua_must(L, b, read_library(box->own));
  for (uint32_t i = 0; i < pln_library_count; i++) {
    pln_lua_push_rule_info(L, pln_rule_set_at(box->set, i));
    lua_pushstring(L, pln_library[i].pass);
    lua_setfield(L, -2, "pass");
    lua_rawseti(L, 1, (int)i + 1);
  }
  lua_settop(L, 1);
  return 1;
}

/* rule_library_set(pass) -> the set of the pass's rules, which the engine
 * keeps */
int pln_lua_rule_library_set(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *pass = luaL_checkstring(L, 1);
  pln_lua_rule_set *box = pln_lua_userdata(L, PLN_LUA_RULE_SET, sizeof *box, 1);
  lua_newtable(L);
  lua_setiuservalue(L, -2, 1);
  pln_lua_must(L, b, pln_shipped_rules(b->engine, pass, &box->set));
  return 1;
}
