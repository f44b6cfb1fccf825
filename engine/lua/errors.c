/* errors.c: converts statuses to Lua errors and back: Diag objects, the
 * trampoline for callbacks, and the retry after a garbage collection when
 * memory is out.
 *
 * Invariant: no longjmp crosses the engine. A Lua error inside a callback is
 * stored, the engine unwinds with PLN_ERR_CALLBACK, and the binding function
 * that called the engine raises the stored error again. */

#include "lua/binding.h"

static const char *const code_names[PLN_N_STATUS] = {
    [PLN_OK] = "ok",
    [PLN_ERR_NOMEM] = "memory",
    [PLN_ERR_ARGUMENT] = "argument",
    [PLN_ERR_TYPE] = "type",
    [PLN_ERR_FORMAT] = "format",
    [PLN_ERR_IO] = "io",
    [PLN_ERR_UNSUPPORTED] = "unsupported",
    [PLN_ERR_LIMIT] = "limit",
    [PLN_ERR_NAME] = "name",
    [PLN_ERR_INVALID] = "invalid",
    [PLN_ERR_CALLBACK] = "callback",
    [PLN_ERR_INTERRUPTED] = "interrupted",
};

static const char *const severities[] = {"note", "warning", "error"};

/* ---------------------------------------------------------------- finalizers
 */

void pln_lua_without_finalizers(lua_State *L, lua_CFunction body, void *ud,
                                int results) {
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  pln_lua *b = pln_lua_state(L);
  bool runs = lua_gc(L, LUA_GCISRUNNING) == 1, quiet = b && b->quiet;
  lua_gc(L, LUA_GCSTOP);
  if (b)
    b->quiet = true;
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, ud);
  int status = lua_pcall(L, 1, results, 0);
  if (b)
    b->quiet = quiet;
  if (runs)
    lua_gc(L, LUA_GCRESTART);
  if (status != LUA_OK)
    lua_error(L);
}

/* -------------------------------------------------------------- diag values */

static void set_text(lua_State *L, const char *field, const char *text) {
  if (text) {
    lua_pushstring(L, text);
    lua_setfield(L, -2, field);
  }
}

static void set_count(lua_State *L, const char *field, uint32_t n) {
  if (n) {
    lua_pushinteger(L, n);
    lua_setfield(L, -2, field);
  }
}

/* [diag] -> [diag]: sets its field span */
static void set_span(lua_State *L, const pln_span *span) {
  if (!span->source && !span->row && !span->line)
    return;
  lua_newtable(L);
  set_text(L, "source", span->source);
  set_text(L, "line", span->line);
  set_count(L, "row", span->row);
  set_count(L, "column", span->column);
  set_count(L, "end_column", span->end_column);
  lua_setfield(L, -2, "span");
}

/* [diag] -> [diag]: sets its field text, formatted like a compiler's message */
static void set_format(lua_State *L, const pln_diag *diag) {
  size_t size = pln_diag_format(diag, NULL, 0);
  char *text = lua_newuserdatauv(L, size + 1, 0);
  pln_diag_format(diag, text, size + 1);
  lua_pushlstring(L, text, size);
  lua_setfield(L, -3, "text");
  lua_pop(L, 1);
}

/* Pushes a Diag.  [-0, +1] */
static void push_diag(lua_State *L, const pln_diag *diag) {
  lua_createtable(L, 0, 6);
  luaL_setmetatable(L, PLN_LUA_DIAG);
  set_text(L, "severity", severities[diag->severity]);
  set_text(L, "code", code_names[diag->code]);
  set_text(L, "message", diag->message);
  set_span(L, &diag->span);
  set_format(L, diag);
  lua_newtable(L);
  lua_setfield(L, -2, "notes");
}

static void add_line(luaL_Buffer *text, int index, const char *field) {
  lua_State *L = text->L;
  if (lua_getfield(L, index, field) == LUA_TSTRING) {
    lua_pushliteral(L, "\n");
    lua_insert(L, -2);
    lua_concat(L, 2); /* a buffer grows only while it is on top */
    luaL_addvalue(text);
  } else {
    lua_pop(L, 1);
  }
}

/* tostring(diag): its text, the texts of the notes, the traceback */
static int diag_tostring(lua_State *L) {
  luaL_Buffer text;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_getfield(L, 1, "notes");
  lua_Integer n = lua_istable(L, 2) ? luaL_len(L, 2) : 0;
  lua_pushnil(L); /* 3: the current note */
  luaL_buffinit(L, &text);
  if (lua_getfield(L, 1, "text") == LUA_TSTRING)
    luaL_addvalue(&text);
  else
    lua_pop(L, 1);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_geti(L, 2, i);
    lua_replace(L, 3);
    if (lua_istable(L, 3))
      add_line(&text, 3, "text");
  }
  add_line(&text, 1, "traceback");
  luaL_pushresult(&text);
  return 1;
}

/* ---------------------------------------------------------- script locations
 */

int pln_lua_internal(lua_State *L) {
  lua_Debug ar;
  if (lua_getstack(L, 1, &ar) && lua_getinfo(L, "Sf", &ar)) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.library);
    lua_insert(L, -2);
    lua_rawsetp(L, -2, ar.source); /* the function keeps its source alive */
    lua_pushstring(L, ar.source);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
  }
  return 0;
}

static bool is_internal(lua_State *L, const char *source) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.library);
  lua_pushstring(L, source);
  bool yes = lua_rawget(L, -2) != LUA_TNIL;
  lua_pop(L, 2);
  return yes;
}

/* is_internal(source) -> whether a chunk of that name belongs to the library */
int pln_lua_is_internal(lua_State *L) {
  lua_pushboolean(L, is_internal(L, luaL_checkstring(L, 1)));
  return 1;
}

/* The same for a loaded chunk. Compares addresses of chunk names, which is
 * faster. */
static bool is_library(lua_State *L, const char *source) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.library);
  bool yes = lua_rawgetp(L, -1, source) != LUA_TNIL;
  lua_pop(L, 2);
  return yes;
}

int pln_lua_caller(lua_State *L, lua_Debug *ar) {
  for (int level = 0; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "Sl", ar);
    if (ar->currentline > 0 && !is_library(L, ar->source))
      return level + 1;
  }
  return 0;
}

/* Appends the engine's notes from `index` on to those of the Diag on top.  [-0,
 * +0] */
static void add_notes(lua_State *L, const pln_engine *engine, size_t index) {
  if (lua_getfield(L, -1, "notes") == LUA_TTABLE)
    for (size_t i = index; i < pln_diag_count(engine); i++) {
      if (pln_diag_at(engine, i)->severity != PLN_NOTE)
        break;
      push_diag(L, pln_diag_at(engine, i));
      lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
  lua_pop(L, 1);
}

/* Pushes a Diag of the diagnostic at `index` and the notes after it. Without a
 * span of its own it gets the script's line.  [-0, +1] */
static void push_reported(lua_State *L, const pln_engine *engine,
                          size_t index) {
  pln_diag diag = *pln_diag_at(engine, index);
  lua_Debug ar;
  if (!diag.span.source && pln_lua_caller(L, &ar)) {
    diag.span.source = ar.short_src;
    diag.span.row = (uint32_t)ar.currentline;
  }
  push_diag(L, &diag);
  add_notes(L, engine, index + 1);
}

static size_t last_error(const pln_engine *engine) {
  size_t i = pln_diag_count(engine);
  while (i > 0 && pln_diag_at(engine, i - 1)->severity != PLN_ERROR)
    i--;
  return i;
}

/* The diagnostics of a failed call, from `mark` on: argument of the functions
 * below. */
typedef struct failure {
  pln_lua *state;
  pln_status status;
  size_t mark;
} failure;

/* [stored error] -> [it]: adds the engine's notes. */
static void pop_saved_error(lua_State *L, pln_lua *b) {
  lua_pushboolean(L, false);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pln_lua_key.saved_error);
  if (pln_lua_is_diag(L, -1))
    add_notes(L, b->engine, last_error(b->engine));
  pln_diag_drop(b->engine, b->depth ? last_error(b->engine) : 0);
}

static int push_failure(lua_State *L) {
  const failure *f = lua_touserdata(L, 1);
  pln_lua *b = f->state;
  if (f->status == PLN_ERR_CALLBACK) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.saved_error);
    if (lua_toboolean(L, -1)) {
      pop_saved_error(L, b);
      return 1;
    }
  }
  size_t index = last_error(b->engine);
  if (index == 0) {
    pln_diag bare = {PLN_ERROR, f->status, pln_status_text(f->status), {0}};
    push_diag(L, &bare);
    return 1;
  }
  push_reported(L, b->engine, index - 1);
  pln_diag_drop(b->engine, b->depth ? index - 1 : 0);
  return 1;
}

void pln_lua_push_failure(lua_State *L, pln_lua *b, pln_status status) {
  failure f = {b, status, 0};
  pln_lua_without_finalizers(L, push_failure, &f, 1);
}

/* ---------------------------------------------------------------- raising */

static bool is_function(lua_State *L, lua_Debug *ar, lua_CFunction f) {
  lua_getinfo(L, "f", ar);
  bool same = lua_tocfunction(L, -1) == f;
  lua_pop(L, 1);
  return same;
}

/* Returns true if a script or the engine catches an error raised now. An error
 * in a coroutine is the resuming thread's to catch. */
static bool is_caught(lua_State *L, const pln_lua *b) {
  lua_Debug ar;
  bool main = lua_pushthread(L);
  lua_pop(L, 1);
  if (!main || b->depth > 0 || b->worker_state || b->holder || !b->pcall ||
      !b->xpcall)
    return true;
  for (int level = 0; lua_getstack(L, level, &ar); level++)
    if (is_function(L, &ar, b->pcall) || is_function(L, &ar, b->xpcall))
      return true;
  return false;
}

/* Hosts read errors with lua_tostring, which fails for a Diag. So an error that
 * no script catches is raised as text. */
int pln_lua_raise_top(lua_State *L) {
  const pln_lua *b = pln_lua_state(L);
  if (pln_lua_is_diag(L, -1) && b && !is_caught(L, b))
    luaL_tolstring(L, -1, NULL);
  return lua_error(L);
}

int pln_lua_raise(lua_State *L, pln_lua *b, pln_status status) {
  pln_lua_push_failure(L, b, status);
  return pln_lua_raise_top(L);
}

/* raise(error): like error(error, 0) */
int pln_lua_raise_value(lua_State *L) {
  lua_settop(L, 1);
  return pln_lua_raise_top(L);
}

int pln_lua_fail(lua_State *L, pln_lua *b, pln_status status) {
  if (status == PLN_ERR_CALLBACK)
    return pln_lua_raise(L, b, status);
  luaL_pushfail(L);
  pln_lua_push_failure(L, b, status);
  return 2;
}

/* Pushes the first error, with all later ones as its notes. */
static int push_first(lua_State *L) {
  const failure *f = lua_touserdata(L, 1);
  const pln_engine *e = f->state->engine;
  size_t first = f->mark;
  while (first < pln_diag_count(e) &&
         pln_diag_at(e, first)->severity != PLN_ERROR)
    first++;
  if (first == pln_diag_count(e))
    return push_failure(L);
  push_diag(L, pln_diag_at(e, first));
  lua_getfield(L, -1, "notes");
  for (size_t i = first + 1; i < pln_diag_count(e); i++) {
    push_diag(L, pln_diag_at(e, i));
    lua_rawseti(L, -2, (lua_Integer)(i - first));
  }
  lua_pop(L, 1);
  pln_diag_drop(f->state->engine, f->mark);
  return 1;
}

int pln_lua_fail_first(lua_State *L, pln_lua *b, size_t mark,
                       pln_status status) {
  failure f = {b, status, mark};
  luaL_pushfail(L);
  pln_lua_without_finalizers(L, push_first, &f, 1);
  return 2;
}

int pln_lua_error(lua_State *L, pln_status code, const char *format, ...) {
  va_list args;
  lua_Debug ar;
  pln_diag diag = {PLN_ERROR, code, NULL, {0}};
  va_start(args, format);
  diag.message = lua_pushvfstring(L, format, args);
  va_end(args);
  if (pln_lua_caller(L, &ar)) {
    diag.span.source = ar.short_src;
    diag.span.row = (uint32_t)ar.currentline;
  }
  push_diag(L, &diag);
  return pln_lua_raise_top(L);
}

/* -------------------------------------------------------------- trampoline */

bool pln_lua_is_diag(lua_State *L, int index) {
  if (!lua_istable(L, index) || !lua_getmetatable(L, index))
    return false;
  luaL_getmetatable(L, PLN_LUA_DIAG);
  bool yes = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return yes;
}

/* Finds the innermost line of any script; *internal is true if the library owns
 * it. */
static bool find_raiser(lua_State *L, lua_Debug *ar, bool *internal) {
  lua_Debug caller;
  int level = 1;
  do {
    if (!lua_getstack(L, level++, ar))
      return false;
    lua_getinfo(L, "Sl", ar);
  } while (ar->currentline <= 0);
  *internal = !pln_lua_caller(L, &caller) || caller.source != ar->source ||
              caller.currentline != ar->currentline;
  return true;
}

/* Returns true if the message begins with a script's line: "deploy.lua:12:
 * ..." */
static bool names_line(const char *message) {
  const char *colon = message;
  while ((colon = strchr(colon, ':')) != NULL) {
    size_t digits = strspn(++colon, "0123456789");
    if (digits && colon[digits] == ':')
      return true;
  }
  return false;
}

/* [message] -> [message]: if the message begins with a line of the library,
 * replaces it by the line that called the library. A message without a line
 * gets the line that raised, if it is a user's, as its span; the text of the
 * span is left on the stack. */
static void place(lua_State *L, pln_span *span) {
  lua_Debug ar;
  bool internal;
  if (!find_raiser(L, &ar, &internal))
    return;
  size_t size;
  lua_pushfstring(L, "%s:%d:", ar.short_src, ar.currentline);
  const char *where = lua_tolstring(L, 2, &size);
  const char *message = lua_tostring(L, 1);
  if (!strncmp(message, where, size)) {
    if (internal && pln_lua_caller(L, &ar))
      lua_pushfstring(L, "%s:%d:%s", ar.short_src, ar.currentline,
                      message + size);
    else
      lua_pushvalue(L, 1);
    lua_replace(L, 1);
  } else if (!internal && !names_line(message)) {
    span->source = lua_pushstring(L, ar.short_src);
    span->row = (uint32_t)ar.currentline;
  }
}

enum { MAX_LINES = 22 };

/* "\n\tdeploy.lua:7: in function 'run'" */
static void add_frame(luaL_Buffer *text, const lua_Debug *ar) {
  lua_State *L = text->L;
  if (ar->what[0] == 'm')
    lua_pushfstring(L, "\n\t%s:%d: in main chunk", ar->short_src,
                    ar->currentline);
  else if (ar->name)
    lua_pushfstring(L, "\n\t%s:%d: in function '%s'", ar->short_src,
                    ar->currentline, ar->name);
  else
    lua_pushfstring(L, "\n\t%s:%d: in function <%s:%d>", ar->short_src,
                    ar->currentline, ar->short_src, ar->linedefined);
  luaL_addvalue(text);
}

int pln_lua_push_traceback(lua_State *L, int level) {
  lua_Debug ar;
  luaL_Buffer text;
  int lines = 0;
  luaL_buffinit(L, &text);
  luaL_addstring(&text, "stack traceback:");
  for (; lines < MAX_LINES && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Slnt", &ar);
    if (ar.currentline <= 0 || is_library(L, ar.source))
      continue;
    add_frame(&text, &ar);
    lines++;
  }
  if (lines == MAX_LINES)
    luaL_addstring(&text, "\n\t...");
  luaL_pushresult(&text);
  return lines;
}

/* traceback() -> the lines of users' scripts above the caller's caller, and
 * their number */
int pln_lua_traceback(lua_State *L) {
  int lines = pln_lua_push_traceback(L, 2);
  lua_pushinteger(L, lines);
  return 2;
}

/* The message handler: turns a string into a Diag with its cause, adds the
 * traceback to a Diag, leaves other error objects alone. */
static int on_error(lua_State *L) {
  lua_settop(L, 1);
  if (lua_type(L, 1) == LUA_TSTRING) {
    pln_diag diag = {PLN_ERROR, PLN_ERR_CALLBACK, NULL, {0}};
    place(L, &diag.span);
    diag.message = lua_tostring(L, 1);
    push_diag(L, &diag);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "cause");
  } else if (!pln_lua_is_diag(L, 1)) {
    return 1;
  }
  if (lua_getfield(L, -1, "traceback") == LUA_TNIL) {
    pln_lua_push_traceback(L, 1);
    lua_setfield(L, -3, "traceback");
  }
  lua_pop(L, 1);
  return 1;
}

bool pln_lua_is_message_handler(lua_State *L, lua_Debug *ar) {
  return is_function(L, ar, on_error);
}

/* Reports the error object to the engine, in case nobody raises it. (error
 * object, state) -> nothing */
static int report_error_object(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, 2);
  const char *message = NULL;
  if (pln_lua_is_diag(L, 1)) {
    lua_pushliteral(L, "message");
    lua_rawget(L, 1);
    message = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  }
  (void)!pln_diag_error(b->engine, PLN_ERR_CALLBACK, NULL, "%s",
                        message ? message : "a Lua callback raised an error");
  return 0;
}

/* [error] -> []: stores the error object and reports it to the engine. Cannot
 * raise. */
static pln_status save_error(pln_lua *b, lua_State *L, int status) {
  pln_status reported = PLN_ERR_CALLBACK;
  if (!lua_toboolean(L, -1)) { /* error(nil), error(false) */
    lua_pop(L, 1);
    lua_pushboolean(L, true);
  }
  bool quiet = b->quiet;
  b->quiet = true;
  lua_pushcfunction(L, report_error_object);
  lua_pushvalue(L, -2);
  lua_pushlightuserdata(L, b);
  if (lua_pcall(L, 2, 0, 0) != LUA_OK) {
    lua_pop(L, 1);
    status = LUA_ERRMEM;
  }
  b->quiet = quiet;
  if (status == LUA_ERRMEM)
    reported = pln_nomem(b->engine);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pln_lua_key.saved_error);
  return reported;
}

/* A finalizer that runs before the error is stored counts as part of the
 * callback, so it clears no diagnostics. */
pln_status pln_lua_protect(pln_lua *b, lua_CFunction body, void *ud) {
  lua_State *L = b->L;
  pln_context_stack *stack = b->stack;
  if (!lua_checkstack(L, LUA_MINSTACK))
    return pln_nomem(b->engine);
  lua_pushcfunction(L, on_error);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, ud);
  lua_State *outer = b->body;
  lua_CFunction outer_body = b->protected_body;
  b->body = L;
  b->protected_body = body;
  b->depth++;
  bool counted = pln_lua_count_begin(L, b);
  int status = lua_pcall(L, 1, 0, -3);
  pln_lua_count_end(L, b, counted);
  pln_status result = status == LUA_OK ? PLN_OK : save_error(b, L, status);
  b->depth--;
  b->body = outer;
  b->protected_body = outer_body;
  b->L = L;
  if (b->stack != stack) /* another coroutine ran in between */
    pln_context_stack_use(b->engine, b->stack = stack);
  lua_pop(L, 1);
  return result;
}

/* Pushes what an error object says: its message, or its text.  [-0, +1] */
static void push_error_text(lua_State *L, int object, bool convert) {
  bool number = lua_type(L, object) == LUA_TNUMBER;
  if (lua_istable(L, object)) {
    lua_pushliteral(L, "message");
    if (lua_rawget(L, object) == LUA_TSTRING)
      return;
    lua_pop(L, 1);
  }
  if (convert && (number || luaL_getmetafield(L, object, "__tostring")))
    luaL_tolstring(L, object, NULL);
  else if (lua_isboolean(L, object))
    lua_pushliteral(L, "an error without a message");
  else
    lua_pushfstring(L, "an error object (a %s)", luaL_typename(L, object));
}

/* (whether its metamethod __tostring may be called) -> nothing: replaces the
 * stored error object by a Diag that has it as its cause. */
static int diagnose(lua_State *L) {
  bool convert = lua_touserdata(L, 1) != NULL;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.saved_error);
  push_error_text(L, 2, convert);
  pln_diag diag = {PLN_ERROR, PLN_ERR_CALLBACK, lua_tostring(L, -1), {0}};
  push_diag(L, &diag);
  lua_pushvalue(L, 2);
  lua_setfield(L, -2, "cause");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pln_lua_key.saved_error);
  return 0;
}

static bool has_diag(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.saved_error);
  bool yes = pln_lua_is_diag(L, -1);
  lua_pop(L, 1);
  return yes;
}

pln_status pln_lua_diagnose_error(pln_lua *b) {
  pln_status status = PLN_ERR_CALLBACK;
  if (!lua_checkstack(b->L, LUA_MINSTACK))
    return pln_nomem(b->engine);
  for (int tries = 0;
       status == PLN_ERR_CALLBACK && !has_diag(b->L) && tries < 2; tries++) {
    pln_status made = pln_lua_protect(b, diagnose, tries ? NULL : b);
    status = made == PLN_OK ? PLN_ERR_CALLBACK : made;
  }
  return status;
}

bool pln_lua_retry(lua_State *L, pln_lua *b, pln_status status, int *tries) {
  if (status != PLN_ERR_NOMEM || b->depth > 0 || (*tries)++ > 0)
    return false;
  pln_diag_clear(b->engine);
  lua_gc(L, LUA_GCCOLLECT);
  return true;
}

/* diag(code, message [, source [, row]]) -> Diag, for failures detected in
 * Lua */
int pln_lua_diag(lua_State *L) {
  pln_diag diag = {PLN_ERROR, PLN_ERR_ARGUMENT, luaL_checkstring(L, 2), {0}};
  const char *code = luaL_checkstring(L, 1);
  diag.span.source = luaL_optstring(L, 3, NULL);
  diag.span.row = (uint32_t)luaL_optinteger(L, 4, 0);
  for (int i = 0; i < PLN_N_STATUS; i++)
    if (!strcmp(code_names[i], code))
      diag.code = (pln_status)i;
  push_diag(L, &diag);
  return 1;
}

static int push_diags(lua_State *L) {
  const pln_engine *e = lua_touserdata(L, 1);
  size_t n = pln_diag_count(e);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    push_diag(L, pln_diag_at(e, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

int pln_lua_diags(lua_State *L) {
  pln_lua_without_finalizers(L, push_diags, pln_lua_state_of(L)->engine, 1);
  return 1;
}

/* -------------------------------------------------------------------- text */

static int text_gc(lua_State *L) {
  pln_buffer *text = lua_touserdata(L, 1);
  if (text->engine)
    pln_buffer_free(text);
  text->engine = NULL;
  return 0;
}

pln_buffer *pln_lua_text(lua_State *L, pln_lua *b) {
  pln_buffer *text = pln_lua_userdata(L, "perilune.Text", sizeof *text, 0);
  pln_buffer_init(text, b->engine);
  return text;
}

void pln_lua_text_done(lua_State *L) {
  pln_buffer *text = lua_touserdata(L, -1);
  lua_pushlstring(L, text->size ? text->data : "", text->size);
  pln_buffer_free(text);
  text->engine = NULL;
  lua_remove(L, -2);
}

static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg text_meta[] = {{"__gc", text_gc}, {NULL, NULL}};

void pln_lua_open_text(lua_State *L) {
  static const luaL_Reg diag_meta[] = {{"__tostring", diag_tostring},
                                       {NULL, NULL}};
  pln_lua_class(L, "perilune.Text", none, text_meta, NULL);
  luaL_newmetatable(L, PLN_LUA_DIAG);
  pln_lua_functions(L, diag_meta);
  lua_pushliteral(L, PLN_LUA_DIAG);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}
