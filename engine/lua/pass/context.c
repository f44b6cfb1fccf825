/* context.c: Context objects, instruments written in Lua, and one context stack
 * per coroutine.
 *
 * The stack of a coroutine is made when it first calls the binding, and starts
 * from the main thread's current context. A stack lives as long as its
 * coroutine. */

#include "lua/binding.h"
#include "pass/pass.h"

/* ------------------------------------------------------------------- stacks */

typedef struct stack_userdata {
  pln_lua *state;
  pln_context_stack *stack;
} stack_userdata;

static int stack_gc(lua_State *L) {
  stack_userdata *slot = lua_touserdata(L, 1);
  pln_lua *b = slot->state;
  pln_context_stack *stack = slot->stack;
  slot->stack = NULL;
  if (!stack || !b || !b->engine)
    return 0;
  b->L = L;
  if (b->stack == stack)
    pln_context_stack_use(b->engine, b->stack = NULL);
  pln_context_stack_free(stack);
  return 0;
}

void pln_lua_use_stack(lua_State *L, pln_lua *b) {
  pln_context_stack *stack = NULL;
  if (!lua_pushthread(L)) {
    pln_lua_table(L, &pln_lua_key.stacks);
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -2) == LUA_TNIL) {
      lua_pop(L, 1);
      lua_pushvalue(L, -2);
      stack_userdata *slot =
          pln_lua_userdata(L, "perilune.Stack", sizeof *slot, 0);
      slot->state = b;
      pln_context_stack_use(b->engine, b->stack = NULL);
      pln_lua_must(L, b, pln_context_stack_new(b->engine, &slot->stack));
      lua_pushvalue(L, -1);
      lua_insert(L, -3);
      lua_rawset(L, -4);
    }
    stack = ((stack_userdata *)lua_touserdata(L, -1))->stack;
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
  if (b->stack != stack)
    pln_context_stack_use(b->engine, b->stack = stack);
}

/* -------------------------------------------------------------------- boxes */

static pln_context **new_context(lua_State *L) {
  return pln_lua_userdata(L, PLN_LUA_CONTEXT, sizeof(pln_context *), 0);
}

void pln_lua_push_context(lua_State *L, const pln_context *context) {
  pln_context **slot = new_context(L);
  *slot = pln_context_retain(context);
}

pln_context *pln_lua_check_context(lua_State *L, int arg) {
  pln_context **slot = luaL_checkudata(L, arg, PLN_LUA_CONTEXT);
  if (!*slot)
    pln_lua_error(L, PLN_ERR_ARGUMENT, "the context has been closed");
  return *slot;
}

/* The context at `arg`, retained by a box of its own, because a finalizer may
 * close the argument while its fields are read.  [-0, +1] */
static const pln_context *hold_context(lua_State *L, int arg) {
  pln_context **slot = new_context(L);
  return *slot = pln_context_retain(pln_lua_check_context(L, arg));
}

static int context_gc(lua_State *L) {
  pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  pln_context **slot = luaL_checkudata(L, 1, PLN_LUA_CONTEXT);
  pln_context *context = *slot;
  *slot = NULL;
  b->L = L;
  if (context && b->engine)
    pln_context_release(context);
  return 0;
}

/* -------------------------------------------------------------- instruments */

typedef struct hook_call {
  pln_lua *state;
  void *callback;
  const char *hook;
  const pln_context *context; /* for enter, exit */
  const pln_module *module;   /* for the other hooks */
  const pln_pass *pass;
  bool run; /* result of should_run */
} hook_call;

static int hook_body(lua_State *L) {
  hook_call *call = lua_touserdata(L, 1);
  int n = 1;
  pln_lua_registry_get(L, &pln_lua_key.callbacks, call->callback);
  lua_getfield(L, -1, call->hook);
  if (call->context) {
    pln_lua_push_context(L, call->context);
  } else {
    pln_lua_push_module(L, call->module);
    pln_lua_push_info(L, call->pass);
    pln_lua_push_pass(L, call->pass);
    n = 3;
  }
  lua_call(L, n, 1);
  call->run = lua_toboolean(L, -1);
  return 0;
}

static pln_status call_hook(void *ud, const char *hook,
                            const pln_context *context,
                            const pln_module *module, const pln_pass *pass,
                            bool *run) {
  pln_lua_callback *callback = ud;
  hook_call call = {callback->state, ud, hook, context, module, pass, true};
  PLN_TRY(pln_lua_protect(callback->state, hook_body, &call));
  if (run)
    *run = call.run;
  return PLN_OK;
}

static pln_status hook_enter(void *ud, pln_context *context) {
  return call_hook(ud, "enter", context, NULL, NULL, NULL);
}

static pln_status hook_exit(void *ud, pln_context *context) {
  return call_hook(ud, "exit", context, NULL, NULL, NULL);
}

static pln_status hook_should_run(void *ud, const pln_module *module,
                                  const pln_pass *pass, bool *run) {
  return call_hook(ud, "should_run", NULL, module, pass, run);
}

static pln_status hook_before(void *ud, const pln_module *module,
                              const pln_pass *pass) {
  return call_hook(ud, "before", NULL, module, pass, NULL);
}

static pln_status hook_after(void *ud, const pln_module *module,
                             const pln_pass *pass) {
  return call_hook(ud, "after", NULL, module, pass, NULL);
}

/* Returns true if the table on top has that hook. Raises if it cannot be
 * called. */
static bool has_hook(lua_State *L, const char *whom, const char *name) {
  int type = lua_getfield(L, -1, name);
  if (type != LUA_TNIL && type != LUA_TFUNCTION &&
      luaL_getmetafield(L, -1, "__call") == LUA_TNIL)
    pln_lua_error(L, PLN_ERR_TYPE, "instrument '%s': '%s' is a %s, no function",
                  whom, name, luaL_typename(L, -1));
  lua_pop(L, type != LUA_TNIL && type != LUA_TFUNCTION ? 2 : 1);
  return type != LUA_TNIL;
}

/* Reads the instrument described by the table on top, which keeps its name
 * alive. */
static pln_instrument read_instrument(lua_State *L) {
  pln_instrument i = {.name = "instrument",
                      .release = pln_lua_release_callback};
  if (lua_getfield(L, -1, "name") == LUA_TSTRING)
    i.name = lua_tostring(L, -1);
  lua_pop(L, 1);
  if (has_hook(L, i.name, "enter"))
    i.enter = hook_enter;
  if (has_hook(L, i.name, "exit"))
    i.exit = hook_exit;
  if (has_hook(L, i.name, "should_run"))
    i.should_run = hook_should_run;
  if (has_hook(L, i.name, "before"))
    i.before = hook_before;
  if (has_hook(L, i.name, "after"))
    i.after = hook_after;
  return i;
}

/* Reads the list at `arg` (nil: none): instruments in scratch memory, and above
 * it the box of their callbacks.  [-0, +2] */
static pln_instrument *read_instruments(lua_State *L, pln_lua *b, int arg,
                                        uint32_t *n,
                                        pln_lua_callback ***slots) {
  arg = lua_absindex(L, arg);
  *n = 0;
  if (!lua_isnoneornil(L, arg)) {
    if (!lua_istable(L, arg))
      pln_lua_error(L, PLN_ERR_TYPE, "a list of instruments expected, got a %s",
                    luaL_typename(L, arg));
    *n = (uint32_t)lua_rawlen(L, arg);
  }
  pln_instrument *list =
      lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *list, 0);
  *slots = pln_lua_new_callbacks(L, *n);
  for (uint32_t i = 0; i < *n; i++) {
    if (lua_rawgeti(L, arg, (lua_Integer)i + 1) != LUA_TTABLE)
      pln_lua_error(L, PLN_ERR_TYPE,
                    "instrument %d: a table expected, got a %s", (int)i + 1,
                    luaL_typename(L, -1));
    list[i] = read_instrument(L);
    pln_lua_set_callback(L, b, &(*slots)[i]);
    list[i].ud = (*slots)[i];
  }
  return list;
}

/* The engine owns the callbacks now. */
static void already_entered(pln_lua_callback **slots, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    slots[i] = NULL;
}

/* ---------------------------------------------------------------- functions */

/* context { opt_level, required, disabled, only, instruments, config } ->
 * Context */
static int core_context(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_context_spec spec = {0};
  pln_lua_callback **slots;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  spec.opt_level = (int)pln_lua_int_field(L, 1, "opt_level", 2);
  lua_getfield(L, 1, "required");
  spec.required = pln_lua_check_names(L, -1, &spec.n_required);
  lua_getfield(L, 1, "disabled");
  spec.disabled = pln_lua_check_names(L, -1, &spec.n_disabled);
  lua_getfield(L, 1, "only");
  spec.only = pln_lua_check_names(L, -1, &spec.n_only);
  lua_getfield(L, 1, "config");
  spec.config = pln_lua_check_attrs(L, b, -1);
  lua_getfield(L, 1, "instruments");
  spec.instruments = read_instruments(L, b, -1, &spec.n_instruments, &slots);
  pln_context **slot = new_context(L);
  pln_status status = pln_context_new(b->engine, &spec, slot);
  already_entered(slots, spec.n_instruments);
  pln_lua_must(L, b, status);
  return 1;
}

/* current() -> the innermost entered context, or the default one */
static int core_current(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_context **slot = new_context(L);
  pln_lua_use_stack(L, b);
  *slot = pln_context_retain(pln_context_current(b->engine));
  return 1;
}

/* ctx:enter() -> ctx, which is exited at the end of a <close> scope */
static int context_enter(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_use_stack(L, b);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  pln_lua_must(L, b, pln_context_enter(pln_lua_check_context(L, 1)));
  lua_settop(L, 1);
  return 1;
}

/* ctx:exit() */
static int context_exit(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_use_stack(L, b);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  pln_lua_must(L, b, pln_context_exit(pln_lua_check_context(L, 1)));
  return 0;
}

/* ctx:close(): releases the context now, not at collection. It cannot be used
 * afterwards. */
static int context_end(lua_State *L) {
  const pln_context *context = pln_lua_check_context(L, 1);
  if (context->entered)
    return pln_lua_error(
        L, PLN_ERR_ARGUMENT,
        "the context is entered; leave it before it is closed");
  return context_gc(L);
}

/* End of a <close> scope: exits the context unless exit was called. */
static int context_close(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_context **slot = luaL_checkudata(L, 1, PLN_LUA_CONTEXT);
  pln_lua_use_stack(L, b);
  if (*slot && pln_context_current(b->engine) == *slot)
    return context_exit(L);
  return 0;
}

/* ctx:override_instruments(list) */
static int context_override(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_callback **slots;
  uint32_t n;
  pln_lua_use_stack(L, b);
  pln_instrument *list = read_instruments(L, b, 2, &n, &slots);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  pln_context *context = pln_lua_check_context(L, 1);
  pln_status status = pln_context_override_instruments(context, n, list);
  already_entered(slots, n);
  pln_lua_must(L, b, status);
  return 0;
}

static pln_pass_run *check_run(lua_State *L, pln_lua *b, const char *what) {
  if (!b->run)
    luaL_error(L, "%s is for the body of a pass", what);
  return b->run;
}

/* ctx:note(key, n): adds n to a counter in the report */
static int context_note(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_pass_run *run = check_run(L, b, "note");
  const char *key = luaL_checkstring(L, 2);
  pln_lua_must(L, b, pln_run_count(run, key, luaL_optinteger(L, 3, 1)));
  return 0;
}

/* ctx:rule(name [, node]) -> whether the rule may be applied; called before its
 * result is used */
static int context_rule(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol name;
  bool allowed;
  check_run(L, b, "rule");
  pln_slice text = {luaL_checkstring(L, 2), lua_rawlen(L, 2)};
  pln_ref node = PLN_NONE;
  if (!lua_isnoneornil(L, 3))
    node = ((pln_lua_node *)luaL_checkudata(L, 3, PLN_LUA_NODE))->ref;
  pln_lua_must(L, b, pln_symbol_intern(b->engine, text, &name));
  pln_lua_must(L, b,
               pln_rule_apply(b->engine, pln_symbol_text(b->engine, name).data,
                              node, &allowed));
  lua_pushboolean(L, allowed);
  return 1;
}

/* ctx:option(name) -> the value given to the running pass, else the config's,
 * else the default */
static int context_option(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_attr value;
  pln_pass_run *run = check_run(L, b, "option");
  const char *name = luaL_checkstring(L, 2);
  if (!pln_run_option(run, name, &value))
    return luaL_error(L, "pass '%s' has no option '%s'",
                      pln_pass_name(pln_run_pass(run)), name);
  pln_lua_push_attr(L, b, &value);
  return 1;
}

/* ctx:get(key) -> the config's value of a key or "key.field", else its
 * default */
static int context_get(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_attr value;
  const pln_context *context = pln_lua_check_context(L, 1);
  const char *key = luaL_checkstring(L, 2);
  pln_lua_must(L, b, pln_context_config_value(context, key, &value));
  pln_lua_push_attr(L, b, &value);
  return 1;
}

/* ------------------------------------------------------------------- fields */

static void push_names(lua_State *L, const pln_context *context, uint32_t n,
                       const char *(*get)(const pln_context *, uint32_t)) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushstring(L, get(context, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* Pushes a list of the tables of instruments written in Lua.  [-0, +1] */
static void push_instruments(lua_State *L, const pln_context *context) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (uint32_t i = 0; i < pln_context_n_instruments(context); i++) {
    const pln_instrument *each = pln_context_instrument_at(context, i);
    if (each->release != pln_lua_release_callback)
      continue;
    pln_lua_registry_get(L, &pln_lua_key.callbacks, each->ud);
    lua_rawseti(L, -2, ++n);
  }
}

/* target_reader(f) sets the function that makes a Target of a text. */
static int core_target_reader(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pln_lua_key.target);
  return 0;
}

/* Pushes the target of the context, or nil.  [-0, +1] */
static void push_target(lua_State *L, pln_lua *b, const pln_context *context) {
  pln_attr text;
  pln_lua_must(L, b, pln_context_config_value(context, "target", &text));
  if (text.v.s.size == 0) {
    lua_pushnil(L);
    return;
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.target);
  lua_pushlstring(L, text.v.s.data, text.v.s.size);
  lua_call(L, 1, 1);
}

/* ctx.opt_level, .required, .disabled, .only, .instruments, .config, .target */
static int context_index(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *key = luaL_checkstring(L, 2);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL)
    return 1;
  const pln_context *context = hold_context(L, 1);
  if (!strcmp(key, "opt_level"))
    lua_pushinteger(L, pln_context_opt_level(context));
  else if (!strcmp(key, "required"))
    push_names(L, context, pln_context_n_required(context),
               pln_context_required_at);
  else if (!strcmp(key, "disabled"))
    push_names(L, context, pln_context_n_disabled(context),
               pln_context_disabled_at);
  else if (!strcmp(key, "only"))
    push_names(L, context, pln_context_n_only(context), pln_context_only_at);
  else if (!strcmp(key, "config"))
    pln_lua_push_attrs(L, b, pln_context_config(context));
  else if (!strcmp(key, "instruments"))
    push_instruments(L, context);
  else if (!strcmp(key, "target"))
    push_target(L, b, context);
  else
    return 0;
  return 1;
}

static int context_eq(lua_State *L) {
  pln_context **x = luaL_testudata(L, 1, PLN_LUA_CONTEXT);
  pln_context **y = luaL_testudata(L, 2, PLN_LUA_CONTEXT);
  lua_pushboolean(L, x && y && *x == *y);
  return 1;
}

/* Appends ", required = { A, B }", or nothing for an empty list. */
static pln_status
write_names(pln_buffer *text, const pln_context *context, const char *field,
            uint32_t n, const char *(*get)(const pln_context *, uint32_t)) {
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(i ? pln_buffer_printf(text, ", %s", get(context, i))
              : pln_buffer_printf(text, ", %s = { %s", field, get(context, i)));
  return n ? pln_buffer_text(text, " }") : PLN_OK;
}

static const char *instrument_name(const pln_context *context, uint32_t i) {
  return pln_context_instrument_at(context, i)->name;
}

static pln_status write_context(pln_buffer *text, const pln_context *c) {
  PLN_TRY(pln_buffer_printf(text, "context { opt_level = %d",
                            pln_context_opt_level(c)));
  PLN_TRY(write_names(text, c, "required", pln_context_n_required(c),
                      pln_context_required_at));
  PLN_TRY(write_names(text, c, "disabled", pln_context_n_disabled(c),
                      pln_context_disabled_at));
  PLN_TRY(
      write_names(text, c, "only", pln_context_n_only(c), pln_context_only_at));
  PLN_TRY(write_names(text, c, "instruments", pln_context_n_instruments(c),
                      instrument_name));
  if (pln_context_config(c)) {
    PLN_TRY(pln_buffer_text(text, ", config = "));
    PLN_TRY(pln_options_print(c->engine, pln_context_config(c),
                              pln_buffer_write, text));
  }
  return pln_buffer_text(text, " }");
}

/* Prints the constructor call that makes the context, without empty fields. */
static int context_tostring(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_buffer *text = pln_lua_text(L, b);
  const pln_context *context = pln_lua_check_context(L, 1);
  pln_lua_must(L, b, write_context(text, context));
  pln_lua_text_done(L);
  return 1;
}

static const luaL_Reg methods[] = {
    {"close", context_end}, {"enter", context_enter},
    {"exit", context_exit}, {"get", context_get},
    {"note", context_note}, {"option", context_option},
    {"rule", context_rule}, {"override_instruments", context_override},
    {NULL, NULL},
};
static const luaL_Reg meta[] = {
    {"__gc", context_gc}, {"__close", context_close},
    {"__eq", context_eq}, {"__tostring", context_tostring},
    {NULL, NULL},
};
static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg stack_meta[] = {{"__gc", stack_gc}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"context", core_context},
                                     {"current", core_current},
                                     {"target_reader", core_target_reader},
                                     {NULL, NULL}};

void pln_lua_open_context(lua_State *L) {
  pln_lua_class(L, PLN_LUA_CONTEXT, methods, meta, context_index);
  pln_lua_class(L, "perilune.Stack", none, stack_meta, NULL);
  pln_lua_functions(L, functions);
}
