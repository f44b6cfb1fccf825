/* pass.c: Pass objects, and passes with a Lua function as body.
 *
 * A body runs with a builder of its own, to which constructors append. It ends
 * with the body; then handles of its nodes are stale. */

#include "pass/pass.h"
#include "ir/analysis/features.h"
#include "lua/binding.h"

/* -------------------------------------------------------------------- boxes */

static pln_pass **new_pass(lua_State *L) {
  return pln_lua_userdata(L, PLN_LUA_PASS, sizeof(pln_pass *), 0);
}

void pln_lua_push_pass(lua_State *L, const pln_pass *pass) {
  pln_pass **slot = new_pass(L);
  *slot = pln_pass_retain(pass);
}

pln_pass *pln_lua_check_pass(lua_State *L, int arg) {
  pln_pass **slot = luaL_checkudata(L, arg, PLN_LUA_PASS);
  if (!*slot)
    pln_lua_error(L, PLN_ERR_ARGUMENT, "the pass has been closed");
  return *slot;
}

static int pass_gc(lua_State *L) {
  pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  pln_pass **slot = luaL_checkudata(L, 1, PLN_LUA_PASS);
  pln_pass *pass = *slot;
  *slot = NULL;
  b->L = L;
  if (pass && b->engine)
    pln_pass_release(pass);
  return 0;
}

/* The pass at `arg`, retained by a box of its own, because a finalizer may
 * close the argument while its fields are read.  [-0, +1] */
static const pln_pass *hold_pass(lua_State *L, int arg) {
  pln_pass **slot = new_pass(L);
  return *slot = pln_pass_retain(pln_lua_check_pass(L, arg));
}

/* ----------------------------------------------------------- running a body */

typedef struct body_call {
  pln_lua *state;
  pln_lua_callback *callback;
  pln_pass_run *run;
  /* The box of the builder, kept alive while the body runs. */
  pln_lua_graph *graph;
} body_call;

static bool is_module_pass(const pln_pass_run *run) {
  return pln_pass_get_kind(pln_run_pass(run)) == PLN_PASS_MODULE;
}

/* Raises an error about the body's result; names the function's location. */
static void refuse_answer(lua_State *L, const char *wanted, const char *got,
                          const void *callback) {
  lua_Debug ar = {0};
  pln_lua_registry_get(L, &pln_lua_key.callbacks, callback);
  if (lua_isfunction(L, -1) && lua_getinfo(L, ">S", &ar))
    luaL_error(L, "%s:%d: %s or nil expected as the pass's result, got %s",
               ar.short_src, ar.linedefined, wanted, got);
  luaL_error(L, "%s or nil expected as the pass's result, got %s", wanted, got);
}

static void bad_answer(lua_State *L, const char *wanted, const void *callback) {
  const char *got = luaL_typename(L, -1);
  if (luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
    got = lua_tostring(L, -1);
  refuse_answer(L, wanted, got, callback);
}

/* Reads the body's result on top: nil, or the changed function or module. For a
 * prim_func pass nil removes the function. */
static void read_body_result(lua_State *L, body_call *call) {
  pln_lua *b = call->state;
  pln_pass_kind kind = pln_pass_get_kind(pln_run_pass(call->run));
  if (lua_isnil(L, -1) && kind == PLN_PASS_PRIM_FUNC)
    pln_lua_must(L, b, pln_run_remove_function(call->run));
  if (lua_isnil(L, -1))
    return;
  if (is_module_pass(call->run)) {
    pln_module *module = pln_lua_test_module(L, -1);
    if (!module)
      bad_answer(L, "a Module", call->callback);
    if (module != pln_run_module(call->run))
      pln_run_set_module(call->run, pln_module_retain(module));
    return;
  }
  const char *wanted = kind == PLN_PASS_PRIM_FUNC ? "a PrimFunc" : "a Function";
  pln_lua_node *node = luaL_testudata(L, -1, PLN_LUA_NODE);
  if (!node || !pln_lua_is_function(L, node))
    bad_answer(L, wanted, call->callback);
  pln_graph *graph = pln_lua_push_rooted(L, b, lua_gettop(L))->graph;
  bool prim = graph->nodes[graph->root].kind == PLN_PRIM_FUNC;
  if (prim != (kind == PLN_PASS_PRIM_FUNC))
    refuse_answer(L, wanted, prim ? "a PrimFunc" : "a Function",
                  call->callback);
  if (graph != pln_run_function(call->run))
    pln_run_set_function(call->run, pln_graph_retain(graph));
}

/* run(fn, mod, ctx) or run(mod, ctx) */
static int body(lua_State *L) {
  body_call *call = lua_touserdata(L, 1);
  pln_lua *b = call->state;
  pln_lua_graph *graph = pln_lua_new_graph(L, b, PLN_LUA_PASSING);
  pln_lua_registry_set(L, &pln_lua_key.anchors, graph);
  call->graph = b->target = b->free = graph;
  pln_lua_registry_get(L, &pln_lua_key.callbacks, call->callback);
  int n = 2;
  if (!is_module_pass(call->run)) {
    pln_lua_push_root(L, b, pln_run_function(call->run));
    n = 3;
  }
  pln_lua_push_module(L, pln_run_module(call->run));
  pln_lua_push_context(L, pln_context_current(b->engine));
  lua_call(L, n, 1);
  read_body_result(L, call);
  return 0;
}

/* Pushes "pass 'X', function @main", as the executor writes it.  [-0, +1] */
static void push_place(lua_State *L, const pln_pass_run *run) {
  const char *pass = pln_pass_name(pln_run_pass(run));
  if (is_module_pass(run)) {
    lua_pushfstring(L, "pass '%s'", pass);
    return;
  }
  pln_slice name = pln_symbol_text(pln_run_engine(run), pln_run_name(run));
  lua_pushfstring(L, "pass '%s', function @%s", pass, name.data);
}

/* [diag, place] -> [diag]: adds the note "in pass 'X'" unless the message names
 * the pass. */
static void add_note(lua_State *L) {
  lua_getfield(L, -2, "message");
  bool reported = lua_isstring(L, -1) &&
                  strstr(lua_tostring(L, -1), lua_tostring(L, -2)) != NULL;
  lua_pop(L, 1);
  if (reported) {
    lua_pop(L, 1);
    return;
  }
  lua_createtable(L, 0, 3);
  lua_pushfstring(L, "in %s", lua_tostring(L, -2));
  lua_setfield(L, -2, "message");
  lua_pushfstring(L, "note: in %s", lua_tostring(L, -2));
  lua_setfield(L, -2, "text");
  lua_pushliteral(L, "note");
  lua_setfield(L, -2, "severity");
  if (lua_getfield(L, -3, "notes") == LUA_TTABLE) {
    lua_insert(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 2);
  } else {
    lua_pop(L, 3);
  }
}

/* Pushes the message of the Diag at `diag` with its source line.  [-0, +1] */
static void push_message_text(lua_State *L, int diag, const char *message) {
  if (lua_getfield(L, diag, "span") != LUA_TTABLE) {
    lua_pushfstring(L, "error: %s", message);
    return;
  }
  lua_getfield(L, -1, "source");
  lua_getfield(L, -2, "row");
  lua_pushfstring(L, "%s:%d: error: %s", lua_tostring(L, -2),
                  (int)lua_tointeger(L, -1), message);
}

/* Adds the pass to the stored Diag of an error in its body: before the message
 * of a script, after a message of the engine. */
static int name_pass(lua_State *L) {
  const pln_pass_run *run = lua_touserdata(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.saved_error);
  if (!pln_lua_is_diag(L, 2) || lua_getfield(L, 2, "pass") != LUA_TNIL)
    return 0;
  lua_pushstring(L, pln_pass_name(pln_run_pass(run)));
  lua_setfield(L, 2, "pass");
  bool raised = lua_getfield(L, 2, "cause") != LUA_TNIL;
  lua_settop(L, 2);
  push_place(L, run);
  if (!raised) {
    add_note(L);
    return 0;
  }
  lua_getfield(L, 2, "message");
  lua_pushfstring(L, "%s: %s", lua_tostring(L, 3), lua_tostring(L, 4));
  lua_pushvalue(L, -1);
  lua_setfield(L, 2, "message");
  push_message_text(L, 2, lua_tostring(L, 5));
  lua_setfield(L, 2, "text");
  return 0;
}

/* No finalizer may run meanwhile: an error in it would replace the stored
 * one. */
void pln_lua_name_failed_pass(pln_lua *b, const pln_pass_run *run) {
  bool runs = lua_gc(b->L, LUA_GCISRUNNING) == 1;
  lua_gc(b->L, LUA_GCSTOP);
  b->quiet = true;
  (void)!pln_lua_protect(b, name_pass, (pln_pass_run *)(uintptr_t)run);
  b->quiet = false;
  if (runs)
    lua_gc(b->L, LUA_GCRESTART);
}

/* pln_pass_spec.run of every pass written in Lua. */
static pln_status run_body(pln_pass_run *run) {
  pln_lua_callback *callback = pln_run_ud(run);
  pln_lua *b = callback->state, before = *b;
  body_call call = {b, callback, run, NULL};
  b->run = run;
  b->rewriting = NULL;
  double begin = before.run ? 0 : pln_seconds_now();
  pln_status status = pln_lua_protect(b, body, &call);
  if (!before.run)
    b->seconds += pln_seconds_now() - begin;
  b->run = before.run;
  b->target = before.target;
  b->free = before.free;
  b->rewriting = before.rewriting;
  if (call.graph) {
    pln_lua_end_graph(call.graph);
    pln_lua_forget(b->L, &pln_lua_key.anchors, call.graph);
  }
  if (status == PLN_ERR_CALLBACK)
    pln_lua_name_failed_pass(b, run);
  return status;
}

/* ------------------------------------------------------------ specification */

lua_Integer pln_lua_int_field(lua_State *L, int arg, const char *name,
                              lua_Integer fallback) {
  int type = lua_getfield(L, arg, name);
  lua_Integer value = fallback;
  if (type != LUA_TNIL) {
    int ok;
    value = lua_tointegerx(L, -1, &ok);
    if (!ok || type != LUA_TNUMBER)
      pln_lua_error(L, PLN_ERR_TYPE, "field '%s': an integer expected, got %s",
                    name, luaL_typename(L, -1));
  }
  lua_pop(L, 1);
  return value;
}

double pln_lua_number_field(lua_State *L, int arg, const char *name) {
  lua_getfield(L, arg, name);
  double value = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return value;
}

bool pln_lua_bool_field(lua_State *L, int arg, const char *name) {
  lua_getfield(L, arg, name);
  bool value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

/* A string that the table at `arg` keeps alive.  [-0, +0] */
const char *pln_lua_string_field(lua_State *L, int arg, const char *name,
                                 const char *fallback) {
  int type = lua_getfield(L, arg, name);
  if (type != LUA_TNIL && type != LUA_TSTRING)
    pln_lua_error(L, PLN_ERR_TYPE, "field '%s': a string expected, got %s",
                  name, luaL_typename(L, -1));
  const char *value = type == LUA_TSTRING ? lua_tostring(L, -1) : fallback;
  lua_pop(L, 1);
  return value;
}

const char **pln_lua_check_names(lua_State *L, int arg, uint32_t *n) {
  arg = lua_absindex(L, arg);
  *n = 0;
  if (lua_isnoneornil(L, arg)) {
    lua_newuserdatauv(L, 0, 0);
    return NULL;
  }
  if (!lua_istable(L, arg))
    pln_lua_error(L, PLN_ERR_TYPE, "a list of names expected, got a %s",
                  luaL_typename(L, arg));
  *n = (uint32_t)lua_rawlen(L, arg);
  const char **names =
      lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *names, 0);
  for (uint32_t i = 0; i < *n; i++) {
    if (lua_rawgeti(L, arg, (lua_Integer)i + 1) != LUA_TSTRING)
      pln_lua_error(L, PLN_ERR_TYPE,
                    "a list of names expected; entry %d is a %s", (int)i + 1,
                    luaL_typename(L, -1));
    names[i] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return names;
}

static pln_pass_kind kind_field(lua_State *L, int arg) {
  static const char *const names[] = {"module", "function", "prim_func"};
  const char *name = pln_lua_string_field(L, arg, "kind", "function");
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    if (!strcmp(name, names[i]))
      return (pln_pass_kind)i;
  pln_lua_error(L, PLN_ERR_TYPE,
                "field 'kind': 'function', 'module' or 'prim_func' expected, "
                "got '%s'",
                name);
  return PLN_PASS_FUNCTION;
}

/* Reads the specification at `arg`. Leaves a box with the callback on top and
 * scratch values below it. */
static pln_lua_callback **read_spec(lua_State *L, pln_lua *b, int arg,
                                    pln_pass_spec *spec) {
  luaL_checktype(L, arg, LUA_TTABLE);
  *spec = (pln_pass_spec){
      .name = pln_lua_string_field(L, arg, "name", NULL),
      .kind = kind_field(L, arg),
      .opt_level = (int)pln_lua_int_field(L, arg, "opt_level", 0),
      .doc = pln_lua_string_field(L, arg, "doc", ""),
      .identity = pln_lua_string_field(L, arg, "identity", NULL),
      .run = run_body,
      .release = pln_lua_release_callback,
      .cloner = &pln_lua_pass_cloner,
  };
  if (!spec->name)
    pln_lua_error(L, PLN_ERR_TYPE, "a pass has a name");
  lua_Debug ar;
  const char *caller = pln_lua_caller(L, &ar) ? ar.source : NULL;
  spec->source = pln_lua_string_field(L, arg, "source", caller);
  lua_getfield(L, arg, "traceable");
  spec->traceable = lua_toboolean(L, -1);
  lua_getfield(L, arg, "parallel");
  spec->parallel = lua_toboolean(L, -1);
  lua_getfield(L, arg, "cache");
  spec->cacheable = lua_toboolean(L, -1);
  lua_getfield(L, arg, "changes_spans");
  spec->changes_spans = lua_toboolean(L, -1);
  if (lua_getfield(L, arg, "handles") != LUA_TNIL)
    spec->handles = pln_lua_check_names(L, -1, &spec->n_handles);
  lua_getfield(L, arg, "skips_unhandled");
  spec->skips_unhandled = lua_toboolean(L, -1);
  lua_getfield(L, arg, "required");
  spec->required = pln_lua_check_names(L, -1, &spec->n_required);
  lua_getfield(L, arg, "options");
  spec->options = pln_lua_check_options(L, -1, &spec->n_options);
  pln_lua_callback **slot = pln_lua_new_callbacks(L, 1);
  if (lua_getfield(L, arg, "run") == LUA_TNIL)
    pln_lua_error(L, PLN_ERR_TYPE, "pass '%s' has no function 'run'",
                  spec->name);
  if (!lua_isfunction(L, -1) && luaL_getmetafield(L, -1, "__call") == LUA_TNIL)
    pln_lua_error(L, PLN_ERR_TYPE, "pass '%s': 'run' is a %s, not a function",
                  spec->name, luaL_typename(L, -1));
  lua_getfield(L, arg, "run");
  pln_lua_set_callback(L, b, slot);
  spec->ud = *slot;
  return slot;
}

/* pass { name, kind, opt_level, required, traceable, parallel, doc, options,
 * run } -> Pass that is not registered */
static int core_pass(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_pass_spec spec;
  lua_settop(L, 1);
  pln_lua_callback **callback = read_spec(L, b, 1, &spec);
  pln_pass **slot = new_pass(L);
  pln_status status = pln_pass_new(b->engine, &spec, slot);
  *callback = NULL;
  pln_lua_must(L, b, status);
  pln_lua_record_loaded_pass(L, b, *slot, NULL);
  return 1;
}

/* register(spec): registers a pass under its name, replacing an earlier one */
static int core_register(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_pass_spec spec;
  lua_settop(L, 1);
  pln_lua_callback **slot = read_spec(L, b, 1, &spec);
  pln_status status = pln_pass_register(b->engine, &spec);
  *slot = NULL;
  pln_lua_must(L, b, status);
  pln_lua_record_loaded_pass(L, b, NULL, spec.name);
  return 0;
}

/* Reads the list of passes at `arg` into memory left on the stack. The list
 * keeps the passes alive; nothing may allocate before they are used. */
static pln_pass **check_passes(lua_State *L, int arg, uint32_t *n) {
  luaL_checktype(L, arg, LUA_TTABLE);
  *n = (uint32_t)lua_rawlen(L, arg);
  pln_pass **passes =
      lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *passes, 0);
  for (uint32_t i = 0; i < *n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    passes[i] = pln_lua_check_pass(L, -1);
    lua_pop(L, 1);
  }
  return passes;
}

static const char *const form_names[] = {
    [PLN_COMBINATOR_NONE] = "primitive",
    [PLN_COMBINATOR_SEQUENTIAL] = "sequential",
    [PLN_COMBINATOR_FIXPOINT] = "fixpoint",
    [PLN_COMBINATOR_TRY] = "try",
    [PLN_COMBINATOR_IF_CHANGED] = "if_changed",
    [PLN_COMBINATOR_PER_FUNCTION] = "functions",
    NULL};

/* form(name, rounds, n_otherwise, passes) -> Pass of a combinator */
static int core_form(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_combinator form =
      (pln_combinator)luaL_checkoption(L, 1, NULL, form_names);
  lua_Integer iterations = luaL_checkinteger(L, 2);
  uint32_t otherwise = (uint32_t)luaL_checkinteger(L, 3), n;
  pln_pass **slot = new_pass(L);
  pln_pass **passes = check_passes(L, 4, &n);
  lua_insert(L, -2);
  uint32_t most =
      iterations < 0 || iterations > UINT32_MAX ? 0 : (uint32_t)iterations;
  pln_lua_must(
      L, b,
      pln_combinator_new(b->engine, form, most, otherwise, n, passes, slot));
  return 1;
}

/* sequential(name, opt_level, required, passes) -> Pass */
static int core_sequential(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *name = luaL_checkstring(L, 1);
  int opt_level = (int)luaL_checkinteger(L, 2);
  uint32_t n_required, n;
  const char **required = pln_lua_check_names(L, 3, &n_required);
  pln_pass **slot = new_pass(L);
  pln_pass **passes = check_passes(L, 4, &n);
  lua_insert(L, -2);
  pln_lua_must(L, b,
               pln_sequential_new(b->engine, name, opt_level, n_required,
                                  required, n, passes, slot));
  return 1;
}

/* ------------------------------------------------------------------ applying
 */

/* pass(module, context). The engine retains both while it works. */
static pln_status apply_in(lua_State *L, pln_module **out) {
  pln_pass *pass = pln_lua_check_pass(L, 1);
  const pln_module *module = pln_lua_check_module(L, 2);
  pln_context *context = lua_isnil(L, 3) ? NULL : pln_lua_check_context(L, 3);
  pln_module *result = NULL;
  if (!context)
    return pln_pass_apply(pass, module, out);
  PLN_TRY(pln_context_enter(context));
  pln_status status = pln_pass_apply(pass, module, &result);
  pln_status left = pln_context_exit(context);
  if (status == PLN_OK && left == PLN_OK)
    *out = result;
  else if (status == PLN_OK)
    pln_module_release(result);
  return status == PLN_OK ? left : status;
}

/* Returns pass, module and context of the recorded failure, and clears it. */
static int take_failure(lua_State *L) {
  pln_engine *engine = lua_touserdata(L, 1);
  const pln_failure *failure = pln_failure_last(engine);
  pln_lua_push_pass(L, failure->pass);
  pln_lua_push_module(L, failure->module);
  pln_lua_push_context(L, failure->context);
  pln_failure_clear(engine);
  return 3;
}

/* Calls the failure callback: function(error, pass, module, context, pipeline,
 * input). Errors in it are ignored. */
static void call_on_failure(lua_State *L, pln_lua *b) {
  if (!pln_failure_last(b->engine))
    return;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.failed) == LUA_TFUNCTION) {
    lua_pushvalue(L, -2);
    pln_lua_without_finalizers(L, take_failure, b->engine, 3);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    if (lua_pcall(L, 6, 0, 0) == LUA_OK)
      return;
  }
  lua_pop(L, 1);
}

static int fail_call(lua_State *L, pln_lua *b, pln_status status) {
  pln_lua_push_failure(L, b, status);
  if (b->depth == 0 && status != PLN_ERR_INTERRUPTED)
    call_on_failure(L, b);
  return pln_lua_raise_top(L);
}

/* on_failure(f): sets the callback for failed applications */
static int core_on_failure(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pln_lua_key.failed);
  return 0;
}

/* pass(mod [, ctx]) -> Module; `mod` itself if nothing changed */
static int pass_call(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  int tries = 0;
  pln_status status;
  pln_lua_check_pass(L, 1);
  pln_lua_check_module(L, 2);
  if (!lua_isnoneornil(L, 3))
    pln_lua_check_context(L, 3);
  lua_settop(L, 3);
  pln_lua_use_stack(L, b);
  pln_module **out = pln_lua_new_module(L);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  if (b->holder)
    return pln_lua_stop_script(L, b);
  if (b->depth == 0) {
    pln_diag_clear(b->engine);
    pln_failure_clear(b->engine);
  }
  do
    status = apply_in(L, out);
  while (pln_lua_retry(L, b, status, &tries));
  if (status != PLN_OK)
    return fail_call(L, b, status);
  if (*out == pln_lua_test_module(L, 2))
    lua_pushvalue(L, 2);
  return 1;
}

/* ------------------------------------------------------------------- fields */

static void push_required(lua_State *L, const pln_pass *pass) {
  uint32_t n = pln_pass_n_required(pass);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushstring(L, pln_pass_required_at(pass, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

void pln_lua_push_info(lua_State *L, const pln_pass *pass) {
  lua_createtable(L, 0, 5);
  lua_pushstring(L, pln_pass_name(pass));
  lua_setfield(L, -2, "name");
  lua_pushinteger(L, pln_pass_opt_level(pass));
  lua_setfield(L, -2, "opt_level");
  push_required(L, pass);
  lua_setfield(L, -2, "required");
  lua_pushboolean(L, pln_pass_traceable(pass));
  lua_setfield(L, -2, "traceable");
  lua_pushboolean(L, pln_pass_parallel(pass));
  lua_setfield(L, -2, "parallel");
  lua_pushstring(L, form_names[pln_pass_get_combinator(pass)]);
  lua_setfield(L, -2, "form");
}

static void push_option_rows(lua_State *L, pln_lua *b, const pln_pass *pass) {
  uint32_t n = pln_pass_n_options(pass);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_option(L, b, pln_pass_option_at(pass, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

static void push_elements(lua_State *L, const pln_pass *pass, uint32_t begin,
                          uint32_t end) {
  lua_createtable(L, (int)(end - begin), 0);
  for (uint32_t i = begin; i < end; i++) {
    pln_lua_push_pass(L, pln_pass_element_at(pass, i));
    lua_rawseti(L, -2, (lua_Integer)(i - begin) + 1);
  }
}

/* The fields of every pass. */
static const char *const pass_fields[] = {
    "info",    "source",      "name", "kind",   "opt_level", "required", "doc",
    "options", "option_rows", "form", "passes", "otherwise", "rounds"};

/* The fields of combinators: .form, .passes, .otherwise (try), .rounds
 * (fixpoint). Returns false for another key. */
static bool push_form_field(lua_State *L, const pln_pass *pass,
                            const char *key) {
  pln_combinator form = pln_pass_get_combinator(pass);
  if (!strcmp(key, "form"))
    lua_pushstring(L, form_names[form]);
  else if (!strcmp(key, "passes"))
    push_elements(L, pass, 0, pln_pass_n_try(pass));
  else if (!strcmp(key, "otherwise") && form == PLN_COMBINATOR_TRY)
    push_elements(L, pass, pln_pass_n_try(pass), pln_pass_n_elements(pass));
  else if (!strcmp(key, "rounds") && form == PLN_COMBINATOR_FIXPOINT)
    lua_pushinteger(L, pln_pass_max_iterations(pass));
  else
    return false;
  return true;
}

/* Pushes the table that is the pass's body, such as an instance of a class, or
 * nil.  [-0, +1] */
static void push_instance(lua_State *L, const pln_pass *pass) {
  if (pass->def->run == run_body)
    pln_lua_registry_get(L, &pln_lua_key.callbacks, pass->def->ud);
  else
    lua_pushnil(L);
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    lua_pushnil(L);
  }
}

/* A field that the pass lacks is looked up in its instance. */
static int index_instance(lua_State *L, const pln_pass *pass) {
  push_instance(L, pass);
  if (lua_isnil(L, -1))
    return 0;
  lua_pushvalue(L, 2);
  lua_gettable(L, -2);
  return 1;
}

/* pass[key] = value: sets a field of the instance, unless it is a field of the
 * pass */
static int pass_newindex(lua_State *L) {
  const pln_pass *pass = pln_lua_check_pass(L, 1);
  const char *key = luaL_checkstring(L, 2);
  lua_settop(L, 3);
  push_instance(L, pass);
  bool own = !strcmp(key, "close");
  for (size_t i = 0; i < PLN_COUNT(pass_fields) && !own; i++)
    own = !strcmp(key, pass_fields[i]);
  if (own || lua_isnil(L, -1))
    return luaL_error(L, "%s has no writable field '%s'", PLN_LUA_PASS, key);
  lua_insert(L, 2);
  lua_settable(L, 2);
  return 0;
}

/* The names of the features that the pass handles; nil: all.  [-0, +1] */
static void push_handles(lua_State *L, const pln_pass *pass) {
  uint32_t unhandled = pln_pass_unhandled(pass);
  if (!unhandled) {
    lua_pushnil(L);
    return;
  }
  lua_newtable(L);
  for (uint32_t i = 0; i < PLN_N_FEATURES; i++)
    if (!(unhandled >> i & 1)) {
      lua_pushstring(L, pln_feature_names[i]);
      lua_rawseti(L, -2, luaL_len(L, -2) + 1);
    }
}

/* pass.info, .name, .kind, .opt_level, .required, .doc, .source (chunk of a
 * script's pass), .options (as given), .option_rows (as declared), the fields
 * of push_form_field, and those of the instance */
static int pass_index(lua_State *L) {
  static const char *const kinds[] = {"module", "function", "prim_func",
                                      "sequential"};
  pln_lua *b = pln_lua_state_of(L);
  const char *key = luaL_checkstring(L, 2);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL)
    return 1;
  const pln_pass *pass = hold_pass(L, 1);
  if (!strcmp(key, "info"))
    pln_lua_push_info(L, pass);
  else if (!strcmp(key, "name"))
    lua_pushstring(L, pln_pass_name(pass));
  else if (!strcmp(key, "kind"))
    lua_pushstring(L, kinds[pln_pass_get_kind(pass)]);
  else if (!strcmp(key, "opt_level"))
    lua_pushinteger(L, pln_pass_opt_level(pass));
  else if (!strcmp(key, "cacheable"))
    lua_pushboolean(L, pln_pass_cacheable(pass));
  else if (!strcmp(key, "changes_spans"))
    lua_pushboolean(L, pln_pass_changes_spans(pass));
  else if (!strcmp(key, "handles"))
    push_handles(L, pass);
  else if (!strcmp(key, "skips_unhandled"))
    lua_pushboolean(L, pln_pass_skips_unhandled(pass));
  else if (!strcmp(key, "required"))
    push_required(L, pass);
  else if (!strcmp(key, "doc"))
    lua_pushstring(L, pln_pass_doc(pass));
  else if (!strcmp(key, "source"))
    lua_pushstring(L, pln_pass_source(pass));
  else if (!strcmp(key, "options"))
    pln_lua_push_attrs(L, b, pln_pass_options(pass));
  else if (!strcmp(key, "option_rows"))
    push_option_rows(L, b, pass);
  else if (!push_form_field(L, pass, key))
    return index_instance(L, pass);
  return 1;
}

static int pass_eq(lua_State *L) {
  pln_pass **x = luaL_testudata(L, 1, PLN_LUA_PASS);
  pln_pass **y = luaL_testudata(L, 2, PLN_LUA_PASS);
  lua_pushboolean(L, x && y && *x == *y);
  return 1;
}

/* Prints the pipeline's text, which pl.pipeline parses. */
static int pass_tostring(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(
      L, b,
      pln_pipeline_print(pln_lua_check_pass(L, 1), pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

static const luaL_Reg methods[] = {{"close", pass_gc}, {NULL, NULL}};
static const luaL_Reg meta[] = {
    {"__gc", pass_gc}, {"__close", pass_gc},          {"__call", pass_call},
    {"__eq", pass_eq}, {"__tostring", pass_tostring}, {NULL, NULL},
};
static const luaL_Reg writes[] = {{"__newindex", pass_newindex}, {NULL, NULL}};
static const luaL_Reg functions[] = {
    {"pass", core_pass},
    {"register", core_register},
    {"sequential", core_sequential},
    {"form", core_form},
    {"on_failure", core_on_failure},
    {NULL, NULL},
};

void pln_lua_open_pass(lua_State *L) {
  pln_lua_class(L, PLN_LUA_PASS, methods, meta, pass_index);
  luaL_getmetatable(L, PLN_LUA_PASS);
  pln_lua_functions(L, writes);
  lua_pop(L, 1);
  pln_lua_functions(L, functions);
}
