/* operator.c: operators that scripts register (pl.ops), with functions in Lua.
 *
 * lua/perilune/ir/operators.lua checks what a script assigns and calls
 * op_register. The engine calls the functions while it types and computes
 * calls. Such a call may come from the middle of a constructor or a rewrite, so
 * what the function builds goes into a graph of its own: constructors do not
 * append where the caller does.
 *
 *     pl.ops["my.op"] = { args = { "x" }, infer = function(types, attrs) ...
 * end }
 */

#include "ir/graph/describe.h"
#include "ir/tensor/tensor.h"
#include "lua/binding.h"

/* One running call; `typing` or `evaluation` is set. */
typedef struct operator_call {
  pln_lua *state;
  const void *functions; /* their key in the table of callbacks */
  const char *which;     /* "infer", "eval" */
  const pln_operator_spec *spec;
  pln_operator_typing *typing;
  pln_operator_evaluation *evaluation;
  pln_status status; /* not OK: reported to the engine, whose diagnostics end at
                        `reported` */
  size_t reported;
  char place[LUA_IDSIZE + 24]; /* of the function: "script.lua:12" */
} operator_call;

/* ------------------------------------------------------------------- calling
 */

/* Pushes the function and notes where it is defined.  [-0, +1] */
static void push_function(lua_State *L, operator_call *c) {
  lua_Debug ar;
  pln_lua_registry_get(L, &pln_lua_key.callbacks, c->functions);
  lua_getfield(L, -1, c->which);
  lua_remove(L, -2);
  if (!lua_isfunction(L, -1)) /* a callable table */
    return;
  lua_pushvalue(L, -1);
  lua_getinfo(L, ">S", &ar);
  snprintf(c->place, sizeof c->place, "%s:%d", ar.short_src, ar.linedefined);
}

/* Sets entry `i` of the list below the value on top, also under the operand's
 * name.  [-1, +0] */
static void set_operand(lua_State *L, const operator_call *c, uint32_t i) {
  const pln_operator_spec *s = c->spec;
  if (i < s->n_args && !s->args[i].variadic) {
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, s->args[i].name);
  }
  lua_rawseti(L, -2, (lua_Integer)i + 1);
}

static bool is_given(const operator_call *c, uint32_t i) {
  if (c->typing)
    return c->typing->args[i] != 0;
  if (c->evaluation->values)
    return c->evaluation->values[i].kind != PLN_RUNTIME_ABSENT;
  return c->evaluation->args[i] != NULL;
}

/* Calls the function; its results stay on the stack, from the returned index
 * on. [-0, +n] */
static int call_function(lua_State *L, operator_call *c, uint32_t n_args) {
  pln_lua *b = c->state;
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  push_function(L, c);
  lua_createtable(L, (int)n_args, (int)c->spec->n_args);
  for (uint32_t i = 0; i < n_args; i++) {
    if (!is_given(c, i))
      continue;
    if (c->typing)
      pln_lua_push_type(L, b, c->typing->args[i]);
    else if (c->evaluation->values)
      pln_lua_push_runtime_value(L, &c->evaluation->values[i]);
    else
      pln_lua_push_tensor(L, c->evaluation->args[i]);
    set_operand(L, c, i);
  }
  pln_lua_push_attrs(L, b, c->typing ? c->typing->attrs : c->evaluation->attrs);
  int first = lua_gettop(L) - 2;
  lua_call(L, 2, LUA_MULTRET);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  return first;
}

/* ------------------------------------------------------------------- results
 */

/* Reports what is wrong with the function's results, at the node that the
 * engine works on, and unwinds. */
static void bad_result(lua_State *L, operator_call *c, const char *format,
                       ...) {
  va_list list;
  va_start(list, format);
  const char *text = lua_pushvfstring(L, format, list);
  va_end(list);
  c->status =
      pln_diag_error(c->state->engine, PLN_ERR_TYPE, NULL, "'%s', %s (%s): %s",
                     c->spec->name, c->which, c->place, text);
  c->reported = pln_diag_count(c->state->engine);
  lua_pushnil(L);
  lua_error(L);
}

static const char *kind_at(lua_State *L, int index) {
  if (luaL_getmetafield(L, index, "__name") == LUA_TSTRING)
    return lua_tostring(L, -1);
  return luaL_typename(L, index);
}

/* `return nil, "reason"`: the call is refused. Returns true for it. */
static bool is_refusal(lua_State *L, operator_call *c, int first,
                       pln_status status) {
  if (lua_gettop(L) != first + 1 || !lua_isnil(L, first) ||
      lua_type(L, first + 1) != LUA_TSTRING)
    return false;
  c->status = pln_diag_error(c->state->engine, status, NULL, "'%s': %s",
                             c->spec->name, lua_tostring(L, first + 1));
  return true;
}

/* Several results may be in a list, which is replaced by its items. Then
 * checks their number. */
static void spread_results(lua_State *L, operator_call *c, int first) {
  int n = lua_gettop(L) - first + 1, wanted = (int)c->spec->n_results;
  if (n == 1 && wanted > 1 && lua_istable(L, first)) {
    n = (int)lua_rawlen(L, first);
    for (int i = 1; i <= n && i <= wanted; i++)
      lua_rawgeti(L, first, i);
    lua_remove(L, first);
  }
  if (n != wanted)
    bad_result(L, c, "%d result%s expected, got %d", wanted,
               wanted == 1 ? "" : "s", n);
}

static void read_type(lua_State *L, operator_call *c, int index,
                      pln_type *out) {
  if (lua_type(L, index) != LUA_TSTRING &&
      !luaL_testudata(L, index, PLN_LUA_TYPE))
    bad_result(L, c, "a type, or the text of one, expected, got a %s",
               kind_at(L, index));
  *out = pln_lua_check_type(L, c->state, index);
}

/* Several types may be the fields of a tuple type. nil: unknown. */
static int infer_body(lua_State *L) {
  operator_call *c = lua_touserdata(L, 1);
  pln_engine *e = c->state->engine;
  pln_operator_typing *call = c->typing;
  int first = call_function(L, c, call->n_args);
  pln_type tuple;
  if (is_refusal(L, c, first, PLN_ERR_TYPE))
    return 0;
  if (lua_gettop(L) < first || (lua_gettop(L) == first && lua_isnil(L, first)))
    return 0;
  bool text = lua_gettop(L) == first && !lua_istable(L, first);
  if (call->n_results > 1 && text) {
    read_type(L, c, first, &tuple);
    if (pln_type_get_kind(e, tuple) != PLN_TYPE_TUPLE ||
        pln_type_n_parts(e, tuple) != call->n_results)
      bad_result(L, c, "%d types expected", (int)call->n_results);
    for (uint32_t i = 0; i < call->n_results; i++)
      call->results[i] = pln_type_part_at(e, tuple, i);
    return 0;
  }
  spread_results(L, c, first);
  for (uint32_t i = 0; i < call->n_results; i++)
    if (!lua_isnil(L, first + (int)i))
      read_type(L, c, first + (int)i, &call->results[i]);
  return 0;
}

/* Reads a table as the fields of a tuple.  [-0, +0] */
static void read_tuple(lua_State *L, operator_call *c, int index, pln_type type,
                       pln_runtime_value *out) {
  pln_lua *b = c->state;
  uint32_t n = pln_type_n_parts(b->engine, type);
  if (!lua_istable(L, index) || lua_rawlen(L, index) != n)
    bad_result(L, c, "a table of %d values expected, got a %s", (int)n,
               kind_at(L, index));
  pln_lua_runtime_values *fields = pln_lua_push_runtime_values(L, b, n);
  for (uint32_t i = 0; i < n; i++) {
    lua_rawgeti(L, index, (lua_Integer)i + 1);
    pln_lua_read_runtime_value(L, b, lua_gettop(L),
                               pln_type_part_at(b->engine, type, i),
                               &fields->items[i]);
    lua_pop(L, 1);
  }
  pln_lua_must(L, b,
               pln_runtime_value_sequence(b->engine, n, fields->items, out));
  out->kind = PLN_RUNTIME_TUPLE;
  pln_lua_release_runtime_values(fields);
  lua_pop(L, 1);
}

/* The only result of an operator on values. */
static void read_made(lua_State *L, operator_call *c, int index) {
  const pln_operator_evaluation *call = c->evaluation;
  pln_engine *e = c->state->engine;
  pln_type type = call->types[0];
  if (type && pln_type_get_kind(e, type) == PLN_TYPE_OPTIONAL &&
      !lua_isnil(L, index))
    type = pln_type_part_at(e, type, 0);
  if (type && pln_type_get_kind(e, type) == PLN_TYPE_TUPLE)
    read_tuple(L, c, index, type, call->made);
  else
    pln_lua_read_runtime_value(L, c->state, index, type, call->made);
}

/* A number or a table becomes a tensor of the dtype of the result. */
static int eval_body(lua_State *L) {
  operator_call *c = lua_touserdata(L, 1);
  pln_operator_evaluation *call = c->evaluation;
  int first = call_function(L, c, call->n_args);
  if (is_refusal(L, c, first, PLN_ERR_UNSUPPORTED))
    return 0;
  spread_results(L, c, first);
  if (call->values) {
    read_made(L, c, first);
    return 0;
  }
  for (uint32_t i = 0; i < call->n_results; i++) {
    int index = first + (int)i, type = lua_type(L, index);
    if (!pln_lua_test_tensor(L, index) && type != LUA_TTABLE &&
        type != LUA_TNUMBER && type != LUA_TBOOLEAN)
      bad_result(L, c, "result %d: a tensor expected, got a %s", (int)i + 1,
                 kind_at(L, index));
    const pln_tensor *tensor = pln_lua_to_tensor(
        L, c->state, index, pln_type_dtype(c->state->engine, call->types[i]));
    call->results[i] = pln_tensor_retain(tensor);
    lua_pop(L, 1);
  }
  return 0;
}

/* ---------------------------------------------------------------- trampoline
 */

/* Takes the floating graph away, so that constructors begin another; it stays
 * on the stack.  [-0, +1] */
static void hide_floating(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.floating);
  lua_rawgeti(L, -1, 1);
  if (!lua_isnil(L, -1)) { /* setting a field that exists cannot raise */
    lua_pushnil(L);
    lua_rawseti(L, -3, 1);
  }
  lua_remove(L, -2);
}

/* [-1, +0] */
static void restore_floating(lua_State *L) {
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return;
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.floating);
  lua_insert(L, -2);
  lua_rawseti(L, -2, 1);
  lua_pop(L, 1);
}

static pln_status call_back(operator_call *c, lua_CFunction body) {
  pln_lua *b = c->state;
  lua_State *L = b->L;
  pln_lua_graph *target = b->target, *free = b->free;
  struct pln_lua_rewriting *rewriting = b->rewriting;
  if (!lua_checkstack(L, LUA_MINSTACK))
    return pln_nomem(b->engine);
  hide_floating(L);
  b->target = b->free = NULL;
  b->rewriting = NULL;
  pln_status status = pln_lua_protect(b, body, c);
  b->target = target;
  b->free = free;
  b->rewriting = rewriting;
  restore_floating(L);
  if (status == PLN_ERR_CALLBACK && c->status != PLN_OK) {
    pln_diag_drop(b->engine, c->reported); /* what unwinding reported */
    lua_pushboolean(L, false);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &pln_lua_key.saved_error);
    return c->status;
  }
  if (status == PLN_ERR_CALLBACK)
    pln_diag_note(b->engine, NULL, "in '%s' of operator '%s' (%s)", c->which,
                  c->spec->name, c->place);
  return status == PLN_OK ? c->status : status;
}

static operator_call call_of(void *ud, const pln_engine *engine, pln_op op,
                             const char *which) {
  return (operator_call){.state = ((pln_lua_callback *)ud)->state,
                         .functions = ud,
                         .which = which,
                         .spec = pln_op_registered(engine, op),
                         .place = "?"};
}

static pln_status infer_in_lua(void *ud, pln_operator_typing *call) {
  operator_call c = call_of(ud, call->engine, call->op, "infer");
  c.typing = call;
  return call_back(&c, infer_body);
}

static pln_status eval_in_lua(void *ud, pln_operator_evaluation *call) {
  operator_call c = call_of(ud, call->engine, call->op, "eval");
  c.evaluation = call;
  return call_back(&c, eval_body);
}

/* -------------------------------------------------------------- registration
 */

/* Memory that lives as long as the function runs. [-0, +1] */
static void *scratch(lua_State *L, size_t n, size_t size) {
  void *memory = lua_newuserdatauv(L, (n + 1) * size, 0);
  memset(memory, 0, (n + 1) * size);
  return memory;
}

static bool flag_field(lua_State *L, const char *name) {
  lua_getfield(L, -1, name);
  bool set = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return set;
}

/* Pushes a list in a field of the table at 1; *n is its length.  [-0, +1] */
static void push_list(lua_State *L, const char *field, uint32_t *n) {
  lua_getfield(L, 1, field);
  *n = lua_istable(L, -1) ? (uint32_t)lua_rawlen(L, -1) : 0;
}

static void read_args(lua_State *L, pln_operator_spec *spec) {
  push_list(L, "args", &spec->n_args);
  pln_operator_arg *args = scratch(L, spec->n_args, sizeof *args);
  spec->args = args;
  for (uint32_t i = 0; i < spec->n_args; i++) {
    lua_rawgeti(L, -2, (lua_Integer)i + 1);
    args[i] =
        (pln_operator_arg){.name = pln_lua_string_field(L, -1, "name", NULL),
                           .optional = flag_field(L, "optional"),
                           .variadic = flag_field(L, "variadic")};
    lua_pop(L, 1);
  }
}

static pln_attr_kind kind_named(const char *name) {
  static const struct {
    const char *name;
    pln_attr_kind kind;
  } kinds[] = {{"int", PLN_ATTR_INT},        {"bool", PLN_ATTR_BOOL},
               {"float", PLN_ATTR_FLOAT},    {"string", PLN_ATTR_STRING},
               {"tensor", PLN_ATTR_TENSOR},  {"type", PLN_ATTR_TYPE},
               {"ints", PLN_ATTR_INTS},      {"floats", PLN_ATTR_FLOATS},
               {"strings", PLN_ATTR_STRINGS}};
  for (size_t i = 0; name && i < PLN_COUNT(kinds); i++)
    if (!strcmp(kinds[i].name, name))
      return kinds[i].kind;
  return PLN_ATTR_NONE;
}

/* The defaults are in a table of their own, read as attributes are. */
static void read_attrs(lua_State *L, pln_lua *b, pln_operator_spec *spec) {
  lua_getfield(L, 1, "defaults");
  pln_attrs defaults = pln_lua_check_attrs(L, b, lua_gettop(L));
  push_list(L, "attrs", &spec->n_attrs);
  pln_operator_attr *attrs = scratch(L, spec->n_attrs, sizeof *attrs);
  spec->attrs = attrs;
  for (uint32_t i = 0; i < spec->n_attrs; i++) {
    lua_rawgeti(L, -2, (lua_Integer)i + 1);
    const char *name = pln_lua_string_field(L, -1, "name", "");
    const char *kind = pln_lua_string_field(L, -1, "kind", NULL);
    const pln_attr *value = pln_attrs_find(b->engine, defaults, name);
    attrs[i] = (pln_operator_attr){.name = name,
                                   .kind = kind_named(kind),
                                   .required = flag_field(L, "required"),
                                   .has_default = value != NULL};
    if (value)
      attrs[i].value = *value;
    if (!kind && value)
      attrs[i].kind = (pln_attr_kind)value->kind;
    if (value && value->kind == PLN_ATTR_INTS && value->count == 0)
      attrs[i].value.kind = (uint8_t)attrs[i].kind; /* an empty list */
    lua_pop(L, 1);
  }
}

static void read_traits(lua_State *L, pln_operator_spec *spec) {
  static const struct {
    const char *name;
    uint32_t trait;
  } traits[] = {{"stateful", PLN_OPERATOR_STATEFUL},
                {"random", PLN_OPERATOR_RANDOM},
                {"commutative", PLN_OPERATOR_COMMUTATIVE},
                {"associative", PLN_OPERATOR_ASSOCIATIVE},
                {"idempotent", PLN_OPERATOR_IDEMPOTENT},
                {"elementwise", PLN_OPERATOR_ELEMENTWISE},
                {"broadcast", PLN_OPERATOR_BROADCAST},
                {"injective", PLN_OPERATOR_INJECTIVE},
                {"reduce", PLN_OPERATOR_REDUCE},
                {"values", PLN_OPERATOR_VALUES}};
  lua_getfield(L, 1, "traits");
  for (size_t i = 0; lua_istable(L, -1) && i < PLN_COUNT(traits); i++)
    if (flag_field(L, traits[i].name))
      spec->traits |= traits[i].trait;
}

static void read_rule(lua_State *L, pln_operator_spec *spec) {
  const char *rule = pln_lua_string_field(L, 1, "rule", "untyped");
  spec->like = (uint32_t)pln_lua_int_field(L, 1, "like", 0);
  spec->rule = !strcmp(rule, "like")        ? PLN_OPERATOR_LIKE
               : !strcmp(rule, "broadcast") ? PLN_OPERATOR_BROADCASTS
               : !strcmp(rule, "infer")     ? PLN_OPERATOR_INFERS
                                            : PLN_OPERATOR_UNTYPED;
}

static void read_onnx(lua_State *L, pln_operator_spec *spec) {
  pln_operator_onnx *o = &spec->onnx;
  if (lua_getfield(L, 1, "onnx") != LUA_TTABLE)
    return;
  int table = lua_gettop(L);
  o->domain = pln_lua_string_field(L, table, "domain", NULL);
  o->op_type = pln_lua_string_field(L, table, "op_type", NULL);
  lua_Integer since = pln_lua_int_field(L, table, "since_version", 1);
  o->since_version = since >= 1 && since <= INT32_MAX ? (int32_t)since : 0;
  lua_getfield(L, table, "inputs");
  if (lua_istable(L, -1))
    o->inputs = pln_lua_check_names(L, lua_gettop(L), &o->n_inputs);
  lua_getfield(L, table, "attributes");
  int list = lua_gettop(L);
  o->n_attrs = lua_istable(L, list) ? (uint32_t)lua_rawlen(L, list) : 0;
  pln_operator_onnx_attr *attrs = scratch(L, o->n_attrs, sizeof *attrs);
  o->attrs = attrs;
  for (uint32_t i = 0; i < o->n_attrs; i++) {
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    attrs[i].name = pln_lua_string_field(L, -1, "name", NULL);
    attrs[i].onnx_name = pln_lua_string_field(L, -1, "onnx", NULL);
    lua_pop(L, 1);
  }
}

/* Keeps the functions in a table that belongs to a callback.  [-0, +1] */
static void read_functions(lua_State *L, pln_lua *b, pln_operator_spec *spec,
                           pln_lua_callback **slot) {
  lua_createtable(L, 0, 2);
  if (lua_getfield(L, 1, "infer") != LUA_TNIL)
    spec->infer = infer_in_lua;
  lua_setfield(L, -2, "infer");
  if (lua_getfield(L, 1, "eval") != LUA_TNIL)
    spec->eval = eval_in_lua;
  lua_setfield(L, -2, "eval");
  pln_lua_set_callback(L, b, slot);
  spec->ud = *slot;
  spec->release = pln_lua_release_callback;
}

/* op_register(spec) -> Op. A worker loads scripts that have registered their
 * operators in its parent already. */
static int core_op_register(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_operator_spec spec = {0};
  pln_op op;
  lua_settop(L, 1);
  luaL_checktype(L, 1, LUA_TTABLE);
  spec.name = pln_lua_string_field(L, 1, "name", "");
  op = pln_op_find(b->engine, pln_text(spec.name));
  if (b->worker_state && pln_op_registered(b->engine, op)) {
    pln_lua_push_op(L, b, op);
    return 1;
  }
  spec.doc = pln_lua_string_field(L, 1, "doc", NULL);
  lua_Integer results = pln_lua_int_field(L, 1, "results", 1);
  spec.n_results =
      results >= 1 && results <= UINT16_MAX ? (uint32_t)results : UINT32_MAX;
  read_args(L, &spec);
  read_attrs(L, b, &spec);
  read_traits(L, &spec);
  read_rule(L, &spec);
  read_onnx(L, &spec);
  pln_lua_callback **slot = pln_lua_new_callbacks(L, 1);
  read_functions(L, b, &spec, slot);
  pln_lua_must(L, b, pln_op_register(b->engine, &spec, &op));
  *slot = NULL;
  pln_lua_push_op(L, b, op);
  return 1;
}

/* -------------------------------------------------------------------- reading
 */

static void push_operand(lua_State *L, const pln_operator_arg *arg) {
  lua_createtable(L, 0, 3);
  lua_pushstring(L, arg->name);
  lua_setfield(L, -2, "name");
  lua_pushboolean(L, arg->optional);
  lua_setfield(L, -2, "optional");
  lua_pushboolean(L, arg->variadic);
  lua_setfield(L, -2, "variadic");
}

static void push_operands(lua_State *L, const pln_operator_spec *spec) {
  lua_createtable(L, (int)spec->n_args, 0);
  for (uint32_t i = 0; i < spec->n_args; i++) {
    push_operand(L, &spec->args[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

static void push_onnx(lua_State *L, const pln_operator_onnx *o) {
  lua_createtable(L, 0, 3);
  lua_pushstring(L, o->domain);
  lua_setfield(L, -2, "domain");
  lua_pushstring(L, o->op_type);
  lua_setfield(L, -2, "op_type");
  lua_pushinteger(L, o->since_version);
  lua_setfield(L, -2, "since_version");
}

bool pln_lua_push_registered(lua_State *L, const pln_lua *b, pln_op op,
                             const char *field) {
  const pln_operator_spec *spec = pln_op_registered(b->engine, op);
  if (!strcmp(field, "registered"))
    lua_pushboolean(L, spec != NULL);
  else if (!strcmp(field, "args") && spec)
    push_operands(L, spec);
  else if (!strcmp(field, "results") && spec)
    lua_pushinteger(L, spec->n_results);
  else if (!strcmp(field, "onnx") && spec && spec->onnx.domain)
    push_onnx(L, &spec->onnx);
  else
    return false;
  return true;
}

void pln_lua_open_operator(lua_State *L) {
  static const luaL_Reg functions[] = {{"op_register", core_op_register},
                                       {NULL, NULL}};
  pln_lua_functions(L, functions);
}
