/* schedule.c: schedules, for scripts.
 *
 * Stages, axes and tensors are numbers here, from 0; lua/perilune/te makes
 * objects of them. */

#include "lua/te/te.h"

typedef struct schedule_box {
  pln_schedule *schedule;
} schedule_box;

static pln_schedule *check_schedule(lua_State *L, int arg) {
  schedule_box *box = luaL_checkudata(L, arg, PLN_LUA_SCHEDULE);
  luaL_argcheck(L, box->schedule != NULL, arg, "the schedule is closed");
  return box->schedule;
}

static int schedule_gc(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  schedule_box *box = luaL_checkudata(L, 1, PLN_LUA_SCHEDULE);
  if (b->engine)
    pln_schedule_free(box->schedule);
  box->schedule = NULL;
  return 0;
}

/* te_schedule(operations) -> schedule */
static int core_te_schedule(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  schedule_box *box =
      pln_lua_large_userdata(L, PLN_LUA_SCHEDULE, sizeof *box, 0);
  pln_te_op **ops = pln_lua_check_operations(L, 1, &n);
  pln_lua_must(L, b, pln_schedule_new(b->engine, n, ops, &box->schedule));
  lua_pushvalue(L, -2);
  return 1;
}

/* ------------------------------------------------------------------- apply */

/* Numbers in the list at `arg`, into scratch memory.  [-0, +1] */
static uint32_t *check_numbers(lua_State *L, int arg, uint32_t *n) {
  *n = 0;
  if (!lua_isnoneornil(L, arg)) {
    luaL_checktype(L, arg, LUA_TTABLE);
    *n = (uint32_t)lua_rawlen(L, arg);
  }
  uint32_t *numbers = lua_newuserdatauv(L, (*n + 1) * sizeof *numbers, 0);
  for (uint32_t i = 0; i < *n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    lua_Integer number = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
    luaL_argcheck(L, number >= 0 && number <= UINT32_MAX, arg,
                  "a list of numbers expected");
    numbers[i] = (uint32_t)number;
    lua_pop(L, 1);
  }
  return numbers;
}

/* Integers and PrimExprs; the sealed graphs stay on the stack.  [-0, +?] */
static pln_schedule_value *check_values(lua_State *L, pln_lua *b, int arg,
                                        uint32_t *n) {
  *n = lua_isnoneornil(L, arg) ? 0 : (uint32_t)lua_rawlen(L, arg);
  pln_schedule_value *values =
      lua_newuserdatauv(L, (*n + 1) * sizeof *values, 0);
  luaL_checkstack(L, (int)(*n * 4 + 8), "too many values");
  for (uint32_t i = 0; i < *n; i++) {
    values[i] = (pln_schedule_value){0, NULL};
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    if (lua_isinteger(L, -1)) {
      values[i].number = lua_tointeger(L, -1);
      lua_pop(L, 1);
      continue;
    }
    luaL_argcheck(L, pln_lua_test_node(L, lua_gettop(L)) != NULL, arg,
                  "integers and PrimExprs expected");
    values[i].graph = pln_lua_push_rooted(L, b, lua_gettop(L))->graph;
  }
  return values;
}

static int push_made(lua_State *L, const pln_schedule_made *made) {
  lua_pushinteger(L, made->first_axis);
  lua_pushinteger(L, made->n_axes);
  lua_pushinteger(L, made->first_tensor);
  lua_pushinteger(L, made->n_tensors);
  lua_pushinteger(L, made->first_stage);
  lua_pushinteger(L, made->n_stages);
  return 6;
}

static pln_primitive check_primitive(lua_State *L, int arg) {
  const char *name = luaL_checkstring(L, arg);
  for (int i = 0; i < PLN_N_SCHEDULE_PRIMITIVES; i++)
    if (strcmp(name, pln_primitive_name((pln_primitive)i)) == 0)
      return (pln_primitive)i;
  luaL_error(L, "no primitive is called '%s'", name);
  return PLN_N_SCHEDULE_PRIMITIVES;
}

/* apply(primitive, stage, axes, tensors, values, text, vars) -> first axis,
 * number of axes, the same of tensors, of stages */
static int schedule_apply(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_schedule_made made;
  lua_settop(L, 8);
  pln_schedule_step step = {.primitive = check_primitive(L, 2)};
  lua_Integer stage = luaL_optinteger(L, 3, 0);
  step.stage = stage < 0 || stage > UINT32_MAX ? PLN_NONE : (uint32_t)stage;
  if (!lua_isnil(L, 7))
    step.text = pln_lua_check_symbol(L, b, 7);
  step.axes = check_numbers(L, 4, &step.n_axes);
  step.tensors = check_numbers(L, 5, &step.n_tensors);
  step.vars = check_numbers(L, 8, &step.n_vars);
  step.values = check_values(L, b, 6, &step.n_values);
  pln_schedule *s = check_schedule(L, 1);
  pln_lua_must(L, b, pln_schedule_apply(s, &step, &made));
  return push_made(L, &made);
}

/* ------------------------------------------------------------------- trace */

static int schedule_n_steps(lua_State *L) {
  lua_pushinteger(L, pln_schedule_n_steps(check_schedule(L, 1)));
  return 1;
}

static void push_numbers(lua_State *L, uint32_t n, const uint32_t *numbers) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushinteger(L, numbers[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

static void push_values(lua_State *L, pln_lua *b,
                        const pln_schedule_step *step) {
  lua_createtable(L, (int)step->n_values, 0);
  for (uint32_t i = 0; i < step->n_values; i++) {
    if (step->values[i].graph)
      pln_lua_push_root(L, b, step->values[i].graph);
    else
      lua_pushinteger(L, step->values[i].number);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* step(index) -> { primitive, stage, axes, tensors, values, text, vars } */
static int schedule_step(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_schedule *s = check_schedule(L, 1);
  lua_Integer index = luaL_checkinteger(L, 2);
  luaL_argcheck(L, index >= 0 && index < pln_schedule_n_steps(s), 2,
                "no such step");
  lua_createtable(L, 0, 7);
  const pln_schedule_step *step = pln_schedule_step_at(s, (uint32_t)index);
  lua_pushstring(L, pln_primitive_name(step->primitive));
  lua_setfield(L, -2, "primitive");
  lua_pushinteger(L, step->stage);
  lua_setfield(L, -2, "stage");
  push_numbers(L, step->n_axes, step->axes);
  lua_setfield(L, -2, "axes");
  push_numbers(L, step->n_tensors, step->tensors);
  lua_setfield(L, -2, "tensors");
  push_numbers(L, step->n_vars, step->vars);
  lua_setfield(L, -2, "vars");
  push_values(L, b, step);
  lua_setfield(L, -2, "values");
  if (step->text) {
    pln_slice text = pln_symbol_text(b->engine, step->text);
    lua_pushlstring(L, text.data, text.size);
    lua_setfield(L, -2, "text");
  }
  return 1;
}

/* copy([n_steps]) -> schedule */
static int schedule_copy(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_Integer n = luaL_optinteger(L, 2, UINT32_MAX);
  luaL_argcheck(L, n >= 0 && n <= UINT32_MAX, 2, "out of range");
  schedule_box *box =
      pln_lua_large_userdata(L, PLN_LUA_SCHEDULE, sizeof *box, 0);
  const pln_schedule *s = check_schedule(L, 1);
  pln_lua_must(L, b, pln_schedule_copy(s, (uint32_t)n, &box->schedule));
  return 1;
}

static int schedule_undo(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_must(L, b, pln_schedule_undo(check_schedule(L, 1)));
  return 0;
}

static int schedule_equal(lua_State *L) {
  lua_pushboolean(
      L, pln_schedule_equal(check_schedule(L, 1), check_schedule(L, 2)));
  return 1;
}

/* text() -> the trace, one step a line */
static int schedule_text(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(
      L, b, pln_schedule_print(check_schedule(L, 1), pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

/* history(stage) -> the steps that were applied to a stage, as errors say */
static int schedule_history(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_Integer stage = luaL_checkinteger(L, 2);
  luaL_argcheck(L, stage >= 0 && stage < UINT32_MAX, 2, "out of range");
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b,
               pln_schedule_print_history(check_schedule(L, 1), (uint32_t)stage,
                                          pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

/* ------------------------------------------------------------------ queries */

/* The identity of the variable of a Var, an IterVar or a Buffer. */
static uint32_t identity_of(lua_State *L, int arg) {
  const pln_lua_node *node = pln_lua_check_node(L, arg);
  const pln_graph *g = pln_lua_graph_of(L, node->graph);
  pln_ref ref = node->ref;
  pln_kind kind = pln_node_kind(g, ref);
  if (kind == PLN_ITER_VAR || kind == PLN_BUFFER)
    ref = pln_node_operands(g, ref)[0];
  return pln_node_kind(g, ref) == PLN_VAR ? pln_node_var(g, ref) : 0;
}

/* te_identity(node) -> that identity */
static int core_te_identity(lua_State *L) {
  lua_pushinteger(L, identity_of(L, 1));
  return 1;
}

static int push_found(lua_State *L, uint32_t found) {
  if (found == PLN_NONE)
    lua_pushnil(L);
  else
    lua_pushinteger(L, found);
  return 1;
}

/* find_axis(node), find_tensor(node) -> number or nil */
static int schedule_find_axis(lua_State *L) {
  uint32_t var = identity_of(L, 2);
  return push_found(L, pln_schedule_find_axis(check_schedule(L, 1), var));
}

static int schedule_find_tensor(lua_State *L) {
  uint32_t var = identity_of(L, 2);
  return push_found(L, pln_schedule_find_tensor(check_schedule(L, 1), var));
}

static uint32_t check_index(lua_State *L, int arg, uint32_t n) {
  lua_Integer index = luaL_checkinteger(L, arg);
  luaL_argcheck(L, index >= 0 && index < n, arg, "out of range");
  return (uint32_t)index;
}

/* axis(number) -> IterVar, tensor(number) -> Buffer */
static int schedule_axis(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_schedule *s = check_schedule(L, 1);
  uint32_t axis = check_index(L, 2, pln_schedule_n_axes(s));
  return pln_lua_finish_construction(
      &m, pln_schedule_build_axis(s, axis, pln_lua_construction_builder(&m),
                                  &m.ref));
}

static int schedule_tensor(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_schedule *s = check_schedule(L, 1);
  uint32_t tensor = check_index(L, 2, pln_schedule_n_tensors(s));
  return pln_lua_finish_construction(
      &m, pln_schedule_build_tensor(s, tensor, pln_lua_construction_builder(&m),
                                    &m.ref));
}

static void set_number(lua_State *L, const char *name, uint32_t number) {
  push_found(L, number);
  lua_setfield(L, -2, name);
}

static void set_numbers(lua_State *L, const char *name, uint32_t n,
                        const uint32_t *numbers) {
  push_numbers(L, n, numbers);
  lua_setfield(L, -2, name);
}

static void set_flag(lua_State *L, const char *name, bool flag) {
  lua_pushboolean(L, flag);
  lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const pln_lua *b, const char *name,
                     pln_symbol symbol) {
  pln_slice text = pln_symbol_text(b->engine, symbol);
  lua_pushlstring(L, symbol ? text.data : "", symbol ? text.size : 0);
  lua_setfield(L, -2, name);
}

static void set_layouts(lua_State *L, const pln_lua *b,
                        const pln_stage_info *g) {
  lua_createtable(L, (int)g->n_layouts, 0);
  for (uint32_t i = 0; i < g->n_layouts; i++) {
    pln_slice text = pln_symbol_text(b->engine, (pln_symbol)g->layouts[i]);
    lua_pushlstring(L, text.data, text.size);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "layouts");
  lua_pushinteger(L, g->layout_rank);
  lua_setfield(L, -2, "layout_rank");
  set_numbers(L, "separators", g->n_separators, g->separators);
}

/* stage(number) -> what pln_stage_info has */
static int schedule_stage(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_schedule *s = check_schedule(L, 1);
  pln_stage_info g;
  lua_Integer stage = luaL_checkinteger(L, 2);
  luaL_argcheck(L, stage >= 0, 2, "out of range");
  lua_createtable(L, 0, 18);
  pln_schedule_stage(s, (uint32_t)stage, &g);
  set_text(L, b, "name", g.name);
  set_text(L, b, "scope", g.scope);
  set_number(L, "attach", g.attach);
  set_number(L, "attach_stage", g.attach_stage);
  set_number(L, "attach_axis", g.attach_axis);
  set_number(L, "group", g.group);
  set_number(L, "first_tensor", g.first_tensor);
  set_number(L, "n_tensors", g.n_tensors);
  set_flag(L, "is_output", g.is_output);
  set_flag(L, "is_group", g.is_group);
  set_flag(L, "is_placeholder", g.is_placeholder);
  set_layouts(L, b, &g);
  set_numbers(L, "leaves", g.n_leaves, g.leaves);
  set_numbers(L, "all", g.n_all, g.all);
  set_numbers(L, "axis", g.n_axis, g.axis);
  set_numbers(L, "reduce", g.n_reduce, g.reduce);
  return 1;
}

/* stages() -> numbers in order of execution */
static int schedule_stages(lua_State *L) {
  const pln_schedule *s = check_schedule(L, 1);
  uint32_t n = pln_schedule_n_stages(s);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushinteger(L, pln_schedule_stage_at(s, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int schedule_tensor_stage(lua_State *L) {
  const pln_schedule *s = check_schedule(L, 1);
  lua_pushinteger(L, pln_schedule_tensor_stage(
                         s, check_index(L, 2, pln_schedule_n_tensors(s))));
  return 1;
}

/* ----------------------------------------------------------------- lowering */

/* Pushes the box of an Array of the nodes in the list at `arg`.  [-0, +?] */
static const pln_graph *seal_list(lua_State *L, pln_lua *b, int arg) {
  pln_prim array = {.kind = PLN_PRIM_ARRAY};
  pln_ref root;
  pln_lua_graph *slot = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  array.operands = pln_lua_parts(&m, arg, &array.n);
  pln_builder *builder = pln_lua_construction_builder(&m);
  pln_lua_must(L, b, pln_build_prim(builder, &array, &root));
  pln_lua_must(L, b, pln_builder_seal(builder, root, &slot->graph));
  return slot->graph;
}

/* to_module(args, name, keep_trivial_loops, may_alias) -> Module */
static int schedule_to_module(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 5);
  pln_symbol name = pln_lua_check_symbol(L, b, 3);
  pln_schedule_lowering options = {.keep_trivial_loops = lua_toboolean(L, 4),
                                   .may_alias = lua_toboolean(L, 5)};
  pln_module **slot = pln_lua_new_module(L);
  const pln_graph *args = seal_list(L, b, 2);
  pln_lua_must(
      L, b,
      pln_schedule_to_module(check_schedule(L, 1), args, name, &options, slot));
  lua_settop(L, 6);
  return 1;
}

/* infer_bound() -> an Array of mins and extents; by axis the position of its
 * own, or -1 */
static int schedule_infer_bound(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 1);
  pln_lua_graph *slot = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  const pln_schedule *s = check_schedule(L, 1);
  uint32_t n = pln_schedule_n_axes(s);
  uint32_t *at = lua_newuserdatauv(L, (n + 1) * sizeof *at, 0);
  pln_lua_must(L, b, pln_schedule_infer_bound(s, at, &slot->graph));
  pln_lua_push_root(L, b, slot->graph);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushinteger(L, at[i] == PLN_NONE ? -1 : (lua_Integer)at[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 2;
}

static const luaL_Reg methods[] = {{"apply", schedule_apply},
                                   {"n_steps", schedule_n_steps},
                                   {"step", schedule_step},
                                   {"copy", schedule_copy},
                                   {"undo", schedule_undo},
                                   {"equal", schedule_equal},
                                   {"text", schedule_text},
                                   {"history", schedule_history},
                                   {"find_axis", schedule_find_axis},
                                   {"find_tensor", schedule_find_tensor},
                                   {"axis", schedule_axis},
                                   {"tensor", schedule_tensor},
                                   {"stage", schedule_stage},
                                   {"stages", schedule_stages},
                                   {"tensor_stage", schedule_tensor_stage},
                                   {"to_module", schedule_to_module},
                                   {"infer_bound", schedule_infer_bound},
                                   {NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", schedule_gc}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"te_schedule", core_te_schedule},
                                     {"te_identity", core_te_identity},
                                     {NULL, NULL}};

void pln_lua_open_schedules(lua_State *L) {
  pln_lua_class(L, PLN_LUA_SCHEDULE, methods, meta, NULL);
  pln_lua_functions(L, functions);
}
