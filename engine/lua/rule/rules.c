/* rules.c: sets of rewrite rules for scripts.
 *
 * core.rule_set makes a set of a table of rules; set:apply runs it over a
 * function. Conditions and replacements may be Lua functions. They get a table
 * with the nodes and values that the pattern bound, and are called while the
 * matched node is visited, as functions of mutators are. */

#include "lua/rule/rules.h"

#include "ir/provenance/rule_application.h"
#include "pass/pass.h"

/* ------------------------------------------------------------------ matches */

static void push_dim_list(lua_State *L, pln_lua *b, uint32_t n,
                          const int64_t *dims) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_dim(L, b, dims[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static void push_node_list(lua_State *L, int graph, uint32_t n,
                           const int64_t *nodes) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_node(L, graph, (pln_ref)nodes[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

/* Pushes the value of variable `i`.  [-0, +1] */
static void push_variable(lua_State *L, const pln_lua_rules_run *r, int graph,
                          uint32_t i) {
  pln_lua *b = r->rewriting.state;
  const pln_rule_value *v = pln_rule_match_value(r->match, i);
  switch ((pln_rule_value_kind)v->kind) {
  case PLN_VALUE_BOOL: lua_pushboolean(L, v->v.b); return;
  case PLN_VALUE_INT: pln_lua_push_dim(L, b, v->v.i); return;
  case PLN_VALUE_FLOAT: lua_pushnumber(L, v->v.f); return;
  case PLN_VALUE_STRING:
    lua_pushlstring(L, v->v.s.size ? v->v.s.data : "", v->v.s.size);
    return;
  case PLN_VALUE_LIST:
    push_dim_list(L, b, v->count, pln_rule_list(r->match, v));
    return;
  case PLN_VALUE_NODE: pln_lua_push_node(L, graph, v->v.node); return;
  case PLN_VALUE_NODES:
    push_node_list(L, graph, v->count, pln_rule_list(r->match, v));
    return;
  case PLN_VALUE_ATTR: pln_lua_push_attr(L, b, v->v.attr); return;
  case PLN_VALUE_NONE:
  case PLN_VALUE_UNKNOWN: break;
  }
  lua_pushnil(L);
}

/* Pushes the table that a callback gets: variables by name, and `root`.  [-0,
 * +1] */
static void push_match(lua_State *L, const pln_lua_rules_run *r) {
  uint32_t n = pln_rule_match_count(r->match);
  pln_lua_registry_get(L, &pln_lua_key.anchors, r->rewriting.new);
  int graph = lua_gettop(L);
  lua_createtable(L, 0, (int)n + 1);
  for (uint32_t i = 0; i < n; i++) {
    pln_slice name = pln_rule_match_name(r->match, i);
    lua_pushlstring(L, name.data, name.size);
    push_variable(L, r, graph, i);
    lua_rawset(L, -3);
  }
  pln_lua_push_node(L, graph, pln_rule_match_root(r->match));
  lua_setfield(L, -2, "root");
  lua_remove(L, graph);
}

/* ---------------------------------------------------------------- callbacks */

/* Raises an error about the answer on top. */
static void bad_rule_answer(lua_State *L, const pln_lua_rules_run *r) {
  const pln_rule_info *rule = pln_rule_match_rule(r->match);
  const char *wanted =
      r->holds ? "its condition answers true or false (or nil)"
               : "a node, a number, a tensor or nil expected as its answer";
  const char *got = luaL_typename(L, -1);
  if (luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
    got = lua_tostring(L, -1);
  luaL_error(L, "%s:%d: rule '%s': %s, got %s", rule->file, (int)rule->row,
             rule->name, wanted, got);
}

/* A text, a number or a table is no answer: it would hold always, by mistake.
 */
static void take_decision(lua_State *L, const pln_lua_rules_run *r) {
  if (!lua_isnil(L, -1) && !lua_isboolean(L, -1))
    bad_rule_answer(L, r);
  *r->holds = lua_toboolean(L, -1);
}

/* Converts the answer on top; false and nil are no replacement. */
static void take_answer(lua_State *L, pln_lua_rules_run *r) {
  pln_lua *b = r->rewriting.state;
  pln_lua_graph *to = r->rewriting.new;
  const pln_graph *g = pln_lua_graph_of(L, to);
  pln_ref root = pln_rule_match_root(r->match);
  pln_dtype dtype = pln_type_dtype(b->engine, pln_node_type(g, root));
  bool constant = lua_type(L, -1) == LUA_TNUMBER || pln_lua_test_tensor(L, -1);
  *r->out = PLN_NONE;
  if (!lua_toboolean(L, -1))
    return;
  if (!constant && !pln_lua_test_node(L, -1))
    bad_rule_answer(L, r);
  *r->out = pln_lua_operand(L, b, to, lua_gettop(L),
                            constant ? dtype : PLN_DTYPE_NONE);
}

static int call_body(lua_State *L) {
  pln_lua_rules_run *r = lua_touserdata(L, 1);
  uint32_t rule = pln_rule_match_index(r->match);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  pln_lua_registry_get(L, &pln_lua_key.anchors, &r->rewriting);
  lua_rawgeti(L, -1, (lua_Integer)(2 * rule + (r->holds ? 1 : 2)));
  push_match(L, r);
  lua_call(L, 1, 1);
  if (r->holds)
    take_decision(L, r);
  else
    take_answer(L, r);
  return 0;
}

/* Names the rule whose callback failed. */
static void note_rule(pln_engine *e, const pln_rule_match *match) {
  const pln_rule_info *rule = pln_rule_match_rule(match);
  pln_span span = {.source = rule->file, .row = rule->row};
  pln_diag_note(e, &span, "in rule '%s'", rule->name);
}

static pln_status run_callback(void *ud, const pln_rule_match *match,
                               bool *holds, pln_ref *out) {
  pln_rule_driver *driver = pln_rule_match_driver(match);
  pln_lua_rules_run *r = pln_rule_driver_ud(driver);
  pln_ref image = pln_rule_match_root(match);
  (void)ud;
  r->match = match;
  r->holds = holds;
  r->out = out;
  pln_status status =
      pln_lua_rewriting_call(&r->rewriting, pln_rule_driver_rewrite(driver),
                             pln_rule_driver_old(driver), call_body, &image);
  if (status == PLN_ERR_CALLBACK)
    status = pln_lua_diagnose_error(r->rewriting.state);
  if (status != PLN_OK)
    note_rule(r->rewriting.state->engine, match);
  return status;
}

/* ---------------------------------------------------------------------- sets
 */

static const char *text_field(lua_State *L, int row, const char *name) {
  const char *text =
      lua_getfield(L, row, name) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1); /* the table keeps it */
  return text;
}

static pln_proof_class proof_field(lua_State *L, int row) {
  const char *text = text_field(L, row, "proof");
  if (text && !strcmp(text, "reassociates"))
    return PLN_PROOF_REASSOCIATES;
  return text && !strcmp(text, "approximates") ? PLN_PROOF_APPROXIMATES
                                               : PLN_PROOF_EXACT;
}

/* Moves the function `name` of the row into the table of functions.  [-0,
 * +0] */
static bool take_function(lua_State *L, int row, const char *name,
                          int functions, lua_Integer at) {
  bool given = lua_getfield(L, row, name) == LUA_TFUNCTION;
  if (given)
    lua_rawseti(L, functions, at);
  else
    lua_pop(L, 1);
  return given;
}

/* Adds the rule of the table at `row`. */
static void add_rule(lua_State *L, pln_lua *b, pln_rule_set *set, int row,
                     int functions) {
  lua_Integer at = 2 * (lua_Integer)pln_rule_set_count(set);
  lua_getfield(L, row, "row");
  pln_rule_info info = {.text = text_field(L, row, "text"),
                        .name = text_field(L, row, "name"),
                        .file = text_field(L, row, "file"),
                        .row = (uint32_t)lua_tointeger(L, -1),
                        .reason = text_field(L, row, "reason"),
                        .source = text_field(L, row, "source"),
                        .proof = proof_field(L, row)};
  lua_getfield(L, row, "grows");
  info.grows = lua_toboolean(L, -1);
  lua_getfield(L, row, "relay");
  info.relay = lua_toboolean(L, -1);
  lua_pop(L, 3);
  if (take_function(L, row, "where", functions, at + 1))
    info.condition = run_callback;
  if (take_function(L, row, "replace", functions, at + 2))
    info.replacement = run_callback;
  if (!info.text)
    luaL_error(L, "a rule needs a text");
  pln_lua_must(L, b, pln_rule_set_add(set, &info, NULL));
}

/* rule_set(name, rows) -> a set of the rules { text =, name =, file =, row =,
 * reason =, source =, proof =, grows =, relay =, where = function, replace
 * = function } */
static int core_rule_set(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *name = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  if (b->depth == 0)
    pln_diag_clear(b->engine);
  pln_lua_rule_set *box = pln_lua_userdata(L, PLN_LUA_RULE_SET, sizeof *box, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, 3, 1);
  pln_lua_must(L, b, pln_rule_set_new(b->engine, name, &box->own));
  box->set = box->own;
  lua_Integer n = (lua_Integer)lua_rawlen(L, 2);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, 2, i);
    luaL_checktype(L, 5, LUA_TTABLE);
    add_rule(L, b, box->own, 5, 4);
    lua_settop(L, 4);
  }
  pln_lua_must(L, b, pln_rule_set_compile(box->own));
  pln_lua_must(L, b, pln_rule_check_types(box->own));
  pln_lua_must(L, b, pln_rule_warn_shadowed(box->set));
  lua_settop(L, 3);
  return 1;
}

static int rule_set_gc(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  pln_lua_rule_set *box = pln_lua_check_rule_set(L, 1);
  if (b->engine)
    pln_rule_set_free(box->own);
  box->own = NULL;
  box->set = NULL;
  return 0;
}

static int rule_set_len(lua_State *L) {
  lua_pushinteger(L, pln_rule_set_count(pln_lua_check_rule_set(L, 1)->set));
  return 1;
}

static void set_text(lua_State *L, const char *key, const char *text) {
  if (!text)
    return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

void pln_lua_push_rule_info(lua_State *L, const pln_rule_info *info) {
  static const char *const proofs[] = {"exact", "reassociates", "approximates"};
  lua_createtable(L, 0, 10);
  set_text(L, "name", info->name);
  set_text(L, "text", info->text);
  set_text(L, "file", info->file);
  set_text(L, "reason", info->reason);
  set_text(L, "source", info->source);
  set_text(L, "proof", proofs[info->proof]);
  set_text(L, "native", info->native);
  lua_pushboolean(L, info->grows);
  lua_setfield(L, -2, "grows");
  lua_pushboolean(L, info->relay);
  lua_setfield(L, -2, "relay");
  lua_pushinteger(L, info->row);
  lua_setfield(L, -2, "row");
}

/* set:rules() -> a list of what is known of the rules */
static int rule_set_rules(lua_State *L) {
  const pln_rule_set *set = pln_lua_check_rule_set(L, 1)->set;
  uint32_t n = pln_rule_set_count(set);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_rule_info(L, pln_rule_set_at(set, i));
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

/* ----------------------------------------------------------------- running */

static pln_rule_counter *push_counters(lua_State *L, const pln_rule_set *set) {
  size_t size =
      ((size_t)pln_rule_set_count(set) + 1) * sizeof(pln_rule_counter);
  pln_rule_counter *counts = lua_newuserdatauv(L, size, 0);
  memset(counts, 0, size);
  return counts;
}

static pln_rule_place *push_places(lua_State *L, const pln_rule_set *set) {
  size_t size = ((size_t)pln_rule_set_count(set) + 1) * sizeof(pln_rule_place);
  pln_rule_place *places = lua_newuserdatauv(L, size, 0);
  memset(places, 0, size);
  return places;
}

static void set_count(lua_State *L, const char *key, uint32_t count) {
  lua_pushinteger(L, count);
  lua_setfield(L, -2, key);
}

/* Pushes { [rule] = { tried =, matches =, refused =, applied =, last =, seconds
 * = } } of the rules that were tried.  [-0, +1] */
static void push_counts(lua_State *L, const pln_rule_set *set,
                        const pln_rule_options *options) {
  uint32_t n = pln_rule_set_count(set);
  lua_newtable(L);
  for (uint32_t i = 0; i < n; i++) {
    const pln_rule_counter *c = &options->counts[i];
    if (!c->tried)
      continue;
    lua_createtable(L, 0, 6);
    set_count(L, "tried", c->tried);
    set_count(L, "matches", c->matches);
    set_count(L, "refused", c->refused);
    set_count(L, "applied", c->applied);
    if (*options->places[i].text) {
      lua_pushstring(L, options->places[i].text);
      lua_setfield(L, -2, "last");
    }
    if (options->timed) {
      lua_pushnumber(L, c->seconds);
      lua_setfield(L, -2, "seconds");
    }
    lua_rawseti(L, -2, (int)i + 1);
  }
}

void pln_lua_prepare_rules(lua_State *L, pln_lua_rules_run *r, int set) {
  r->rewriting.new =
      pln_lua_new_graph(L, r->rewriting.state, PLN_LUA_REWRITING);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  lua_pushvalue(L, -1);
  pln_lua_registry_set(L, &pln_lua_key.anchors, r->rewriting.new);
  lua_getiuservalue(L, set, 1);
  pln_lua_registry_set(L, &pln_lua_key.anchors, &r->rewriting);
}

/* Within the limits of the current context. */
static pln_status apply_guarded(const pln_rule_set *set, const pln_graph *graph,
                                const pln_rule_options *options,
                                pln_graph **out) {
  pln_engine *e = graph->engine;
  pln_guard outer;
  size_t mark = pln_diag_count(e);
  PLN_TRY(pln_guard_begin_current(e, &outer));
  pln_status status = pln_rules_apply(set, graph, options, out);
  pln_status guarded = pln_guard_end(e, &outer, mark, status);
  if (status == PLN_OK && guarded != PLN_OK) {
    pln_graph_release(*out);
    *out = NULL;
  }
  return guarded;
}

/* Nothing may raise between the first and the last change of the binding's
 * state. */
pln_status pln_lua_run_rules(lua_State *L, pln_lua_rules_run *r,
                             const pln_rule_set *set,
                             const pln_rule_options *options, pln_graph **out) {
  pln_lua *b = r->rewriting.state;
  pln_lua_graph *target = b->target;
  pln_status status = apply_guarded(set, r->rewriting.old->graph, options, out);
  b->target = target;
  b->L = L;
  pln_lua_end_graph(r->rewriting.new);
  pln_lua_forget(L, &pln_lua_key.anchors, &r->rewriting);
  pln_lua_forget(L, &pln_lua_key.anchors, r->rewriting.new);
  return status;
}

static bool bool_option(lua_State *L, int arg, const char *name) {
  if (!lua_istable(L, arg))
    return false;
  lua_getfield(L, arg, name);
  bool value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

bool pln_lua_rule_lets(lua_State *L, int arg) {
  if (!lua_istable(L, arg))
    return true;
  bool off =
      lua_getfield(L, arg, "lets") == LUA_TBOOLEAN && !lua_toboolean(L, -1);
  lua_pop(L, 1);
  return !off;
}

static int64_t int_option(lua_State *L, int arg, const char *name) {
  if (!lua_istable(L, arg))
    return 0;
  lua_getfield(L, arg, name);
  lua_Integer value = lua_tointeger(L, -1);
  lua_pop(L, 1);
  return value;
}

/* While rules are observed, rules that never matched are reported too. */
static pln_status list_rules(pln_engine *e, const pln_rule_set *set) {
  uint32_t n = pln_rules_watched(e) ? pln_rule_set_count(set) : 0;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_rule_tried(e, pln_rule_set_at(set, i)->name, 0, 0));
  return PLN_OK;
}

/* Reads the option `only`, a list of names, into *out; false: it is not given.
 * The names are borrowed from the option's table.  [-0, +1] */
static bool push_names(lua_State *L, int arg, pln_attr *out) {
  bool given =
      lua_istable(L, arg) && lua_getfield(L, arg, "only") == LUA_TTABLE;
  size_t n = given ? lua_rawlen(L, -1) : 0;
  int list = lua_gettop(L);
  pln_slice *names = lua_newuserdatauv(L, (n + 1) * sizeof *names, 0);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    names[i].data = luaL_checklstring(L, -1, &names[i].size);
    lua_pop(L, 1); /* the list keeps it */
  }
  *out = (pln_attr){
      .kind = PLN_ATTR_STRINGS, .count = (uint32_t)n, .v.strings = names};
  lua_replace(L, arg + 1);
  lua_settop(L, arg + 1);
  return given;
}

/* set:apply(node, options) -> the rewritten node (`node` if nothing changed),
 * counts by number of the rule, of those that were tried */
static int rule_set_apply(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_rule_set *set = pln_lua_check_rule_set(L, 1)->set;
  pln_lua_rules_run r = {.rewriting = {.state = b, .outer = b->rewriting}};
  pln_attr only;
  lua_settop(L, 4);
  pln_rule_options options = {.exact = bool_option(L, 3, "exact"),
                              .number_values = bool_option(L, 3, "share"),
                              .lets = pln_lua_rule_lets(L, 3),
                              .naive = bool_option(L, 3, "naive"),
                              .timed = bool_option(L, 3, "timed"),
                              .lenient = bool_option(L, 3, "lenient"),
                              .finite_math = bool_option(L, 3, "finite_math"),
                              .associative_math =
                                  bool_option(L, 3, "associative_math"),
                              .microsoft = bool_option(L, 3, "microsoft"),
                              .opset = int_option(L, 3, "opset"),
                              .ud = &r};
  pln_lua_must(L, b, list_rules(b->engine, set));
  options.only = push_names(L, 3, &only) ? &only : NULL;        /* 4 */
  r.rewriting.old = pln_lua_push_rooted(L, b, 2);               /* 5 */
  pln_lua_graph *out = pln_lua_new_graph(L, b, PLN_LUA_SEALED); /* 6 */
  options.counts = push_counters(L, set);                       /* 7 */
  options.places = push_places(L, set);                         /* 8 */
  pln_lua_prepare_rules(L, &r, 1);                              /* 9 */
  pln_lua_must(L, b, pln_lua_run_rules(L, &r, set, &options, &out->graph));
  lua_settop(L, 9);
  if (out->graph == r.rewriting.old->graph) {
    lua_pushvalue(L, 2);
  } else {
    lua_pushvalue(L, 6);
    pln_lua_unique(L, out->graph);
    pln_lua_push_node(L, -1, pln_graph_root(out->graph));
  }
  push_counts(L, set, &options);
  return 2;
}

void pln_lua_open_rules(lua_State *L) {
  static const luaL_Reg methods[] = {{"rules", rule_set_rules},
                                     {"apply", rule_set_apply},
                                     {"explain", pln_lua_rule_set_explain},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {
      {"__gc", rule_set_gc}, {"__len", rule_set_len}, {NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"rule_set", core_rule_set},
      {"rule_library", pln_lua_rule_library},
      {"rule_library_set", pln_lua_rule_library_set},
      {"rule_patterns", pln_lua_rule_patterns},
      {"rule_parameters", pln_lua_rule_parameters},
      {NULL, NULL}};
  pln_lua_class(L, PLN_LUA_RULE_SET, methods, meta, NULL);
  pln_lua_functions(L, functions);
}
