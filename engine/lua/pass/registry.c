/* registry.c: the engine's registries, for scripts: passes by name, pipelines
 * by text, config keys, and the report of the last run. */

#include "lua/binding.h"
#include "pass/pass.h"

/* Pushes an empty Pass box.  [-0, +1] */
static pln_pass **new_pass(lua_State *L) {
  return pln_lua_userdata(L, PLN_LUA_PASS, sizeof(pln_pass *), 0);
}

/* make(name [, options]) -> Pass with these options, of a registered pass */
static int core_make(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *name = luaL_checkstring(L, 1);
  lua_settop(L, 2);
  pln_lua_push_plain_options(L, 2);
  pln_attrs options = pln_lua_check_attrs(L, b, 3);
  pln_pass **slot = new_pass(L);
  pln_lua_must(L, b, pln_pass_make(b->engine, name, options, slot));
  pln_lua_set_functions(L, b, 2, *slot);
  return 1;
}

/* register_object(name, pass): registers a pass object, such as a sequential */
static int core_register_object(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *name = luaL_checkstring(L, 1);
  pln_pass *pass = pln_lua_check_pass(L, 2);
  pln_lua_must(L, b, pln_pass_register_object(b->engine, name, pass));
  return 0;
}

static int core_unregister(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_must(L, b, pln_pass_unregister(b->engine, luaL_checkstring(L, 1)));
  return 0;
}

static const pln_pass *find_pass(const pln_engine *engine, const char *name) {
  const pln_pass *pass;
  for (uint32_t i = 0; (pass = pln_pass_registry_at(engine, i)); i++)
    if (!strcmp(pln_pass_name(pass), name))
      return pass;
  return NULL;
}

/* registered(i | name) -> the i-th registered pass, from 1, or the one of that
 * name; nil if there is none */
static int core_registered(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_pass *pass = NULL;
  pln_pass **slot = new_pass(L);
  if (lua_type(L, 1) == LUA_TSTRING) {
    pass = find_pass(b->engine, lua_tostring(L, 1));
  } else {
    lua_Integer i = luaL_checkinteger(L, 1);
    if (i >= 1 && i <= UINT32_MAX)
      pass = pln_pass_registry_at(b->engine, (uint32_t)(i - 1));
  }
  if (!pass)
    return 0;
  *slot = pln_pass_retain(pass);
  return 1;
}

/* is_registered(pass) -> whether it was made from the registered pass of its
 * name */
static int core_is_registered(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_pass *pass = pln_lua_check_pass(L, 1);
  const pln_pass *registered = find_pass(b->engine, pln_pass_name(pass));
  lua_pushboolean(L, registered && registered->def == pass->def);
  return 1;
}

/* pipeline(text) -> Pass; raises if the text is not valid */
static int core_pipeline(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice text;
  text.data = luaL_checklstring(L, 1, &text.size);
  pln_pass **slot = new_pass(L);
  pln_lua_must(L, b, pln_pipeline_parse(b->engine, text, slot));
  return 1;
}

/* ------------------------------------------------------------- config, report
 */

/* config_register(row): registers a config key, replacing an earlier one of a
 * script */
static int core_config_register(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_createtable(L, 1, 0);
  lua_insert(L, 1);
  lua_rawseti(L, 1, 1);
  const pln_option *key = pln_lua_check_options(L, 1, &n);
  pln_lua_must(L, b, pln_config_register(b->engine, key));
  return 0;
}

static int core_config_unregister(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *name = luaL_checkstring(L, 1);
  pln_lua_must(L, b, pln_config_unregister(b->engine, name));
  return 0;
}

/* config_parse(key, text) -> Attrs { key = value }, or nil if the key or pass
 * is unknown */
static int core_config_parse(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice text;
  pln_attrs out;
  const char *key = luaL_checkstring(L, 1);
  text.data = luaL_checklstring(L, 2, &text.size);
  pln_lua_must(L, b, pln_config_parse(b->engine, key, text, &out));
  if (!out)
    return 0;
  pln_lua_push_attrs(L, b, out);
  return 1;
}

/* options_check(whom, rows, options) -> Attrs: the checked options with
 * defaults added; `options` is a table or a text */
static int core_options_check(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  pln_attrs given, all;
  pln_slice text = {NULL, 0};
  const char *whom = luaL_checkstring(L, 1);
  lua_settop(L, 3);
  const pln_option *rows = pln_lua_check_options(L, 2, &n);
  if (lua_type(L, 3) == LUA_TSTRING)
    text.data = lua_tolstring(L, 3, &text.size);
  if (text.data) {
    pln_lua_must(
        L, b,
        pln_options_parse(b->engine, rows, n, whom, "options", text, &given));
  } else {
    given = pln_lua_check_attrs(L, b, 3);
    pln_lua_must(
        L, b, pln_options_check_rows(b->engine, rows, n, whom, given, &given));
  }
  pln_lua_must(L, b, pln_option_defaults(b->engine, rows, n, &all));
  pln_lua_must(L, b, pln_options_over(b->engine, all, &given));
  pln_lua_push_attrs(L, b, given);
  return 1;
}

/* option_rows(rows) -> the rows, checked, in the form of config_rows */
static int core_option_rows(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  lua_settop(L, 1);
  const pln_option *rows = pln_lua_check_options(L, 1, &n);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_option(L, b, &rows[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int push_config_rows(lua_State *L) {
  pln_lua *b = lua_touserdata(L, 1);
  const pln_option *row;
  lua_newtable(L);
  for (uint32_t i = 0; (row = pln_config_key_at(b->engine, i)); i++) {
    pln_lua_push_option(L, b, row);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* config_rows() -> { { name, type, default, doc }, ... } */
static int core_config_rows(lua_State *L) {
  pln_lua_without_finalizers(L, push_config_rows, pln_lua_state_of(L), 1);
  return 1;
}

static int push_report(lua_State *L) {
  pln_lua *b = lua_touserdata(L, 1);
  uint32_t n = pln_report_count(b->engine);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    const pln_report_row *row = pln_report_at(b->engine, i);
    lua_createtable(L, 0, 6);
    lua_pushstring(L, row->pass);
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, row->changed);
    lua_setfield(L, -2, "changed");
    lua_pushinteger(L, row->depth);
    lua_setfield(L, -2, "depth");
    lua_pushnumber(L, row->seconds);
    lua_setfield(L, -2, "seconds");
    lua_pushinteger(L, row->nodes);
    lua_setfield(L, -2, "nodes");
    pln_lua_push_attrs(L, b, row->counts);
    lua_setfield(L, -2, "counts");
    lua_pushinteger(L, row->run);
    lua_setfield(L, -2, "run");
    lua_pushinteger(L, (lua_Integer)row->applications);
    lua_setfield(L, -2, "applications");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* report() -> { { name, changed, depth, seconds, nodes, counts, run,
 * applications }, ... } of the last outermost application */
static int core_report(lua_State *L) {
  pln_lua_without_finalizers(L, push_report, pln_lua_state_of(L), 1);
  return 1;
}

static int push_rule_report(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, 1);
  uint32_t n = pln_rule_count(b->engine);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    const pln_rule_row *row = pln_rule_at(b->engine, i);
    lua_createtable(L, 0, 7);
    lua_pushstring(L, row->pass);
    lua_setfield(L, -2, "pass");
    lua_pushstring(L, row->rule);
    lua_setfield(L, -2, "rule");
    lua_pushinteger(L, (lua_Integer)row->tried);
    lua_setfield(L, -2, "tried");
    lua_pushinteger(L, (lua_Integer)row->applied);
    lua_setfield(L, -2, "applied");
    lua_pushinteger(L, (lua_Integer)row->refused);
    lua_setfield(L, -2, "refused");
    lua_pushnumber(L, row->seconds);
    lua_setfield(L, -2, "seconds");
    if (row->last != PLN_NONE)
      lua_pushinteger(L, row->last);
    else
      lua_pushnil(L);
    lua_setfield(L, -2, "last");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* rule_report() -> { { pass, rule, tried, applied, refused, seconds, last },
 * ... } of the last outermost application; seconds only if rules were
 * observed */
static int core_rule_report(lua_State *L) {
  pln_lua_without_finalizers(L, push_rule_report, pln_lua_state_of(L), 1);
  return 1;
}

/* rule_watch(): observes rules: counts every try and measures time, until the
 * outermost application ends */
static int core_rule_watch(lua_State *L) {
  pln_rule_watch(pln_lua_state_of(L)->engine);
  return 0;
}

static void set_number(lua_State *L, const char *field, uint64_t n) {
  lua_pushinteger(L, (lua_Integer)n);
  lua_setfield(L, -2, field);
}

/* cache_stats() -> { hits, misses, dropped, results, bytes } */
static int core_cache_stats(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_cache_stats stats = pln_cache_stats_read(b->engine);
  lua_createtable(L, 0, 5);
  set_number(L, "hits", stats.hits);
  set_number(L, "misses", stats.misses);
  set_number(L, "dropped", stats.dropped);
  set_number(L, "results", stats.results);
  set_number(L, "bytes", stats.bytes);
  return 1;
}

/* cache_clear(): drops all cached results */
static int core_cache_clear(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_cache_clear(b->engine);
  return 0;
}

static const luaL_Reg functions[] = {
    {"make", core_make},
    {"register_object", core_register_object},
    {"unregister", core_unregister},
    {"registered", core_registered},
    {"is_registered", core_is_registered},
    {"pipeline", core_pipeline},
    {"config_register", core_config_register},
    {"config_unregister", core_config_unregister},
    {"config_parse", core_config_parse},
    {"options_check", core_options_check},
    {"option_rows", core_option_rows},
    {"config_rows", core_config_rows},
    {"report", core_report},
    {"rule_report", core_rule_report},
    {"rule_watch", core_rule_watch},
    {"cache_stats", core_cache_stats},
    {"cache_clear", core_cache_clear},
    {NULL, NULL},
};

void pln_lua_open_registry(lua_State *L) {
  pln_lua_functions(L, functions);
}
