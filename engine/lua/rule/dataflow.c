/* dataflow.c: dataflow patterns for scripts (lua/perilune/dataflow_pattern).
 *
 * core.dataflow_pattern compiles a list of rows; its methods match it, rewrite
 * a graph by a Lua function, and partition a graph. The function gets the old
 * node, its image, and what each pattern object matched. It runs while the
 * matched node is visited, as functions of mutators do. */

#include "lua/rule/dataflow.h"
#include "lua/graph/mutator.h"

#include "ir/rewrite/rewrite.h"
#include "pass/pass.h"
#include "rule/dataflow/dataflow.h"
#include "transform/fuse/fuse_pattern.h"

#define PATTERN "perilune.DataflowPattern"
#define RUN "perilune.DataflowRun"

/* User value 1: the pattern objects, in the order of the rows. */
typedef struct pattern_userdata {
  pln_dataflow_pattern pattern;
} pattern_userdata;

/* What a call allocates, freed at its end or, after an error, by the collector.
 * `rewriting` comes first: callbacks get its address. */
typedef struct dataflow_run {
  pln_lua_rewriting rewriting;
  const pln_dataflow_pattern *pattern;
  const char *name; /* of the rule in reports */
  pln_span place;   /* of the callback */
  pln_attrs attrs;  /* of partitioned functions */
  bool checks;      /* there is a check of groups */
  bool lets;        /* variables of lets stand for their values */
  pln_dataflow_region region;
  pln_dataflow_matcher *matcher;
  pln_dataflow_groups groups;
  bool wanted; /* the answer of a check */
} dataflow_run;

static pattern_userdata *check_pattern(lua_State *L, int arg) {
  return luaL_checkudata(L, arg, PATTERN);
}

const pln_dataflow_pattern *pln_lua_check_dataflow_pattern(lua_State *L,
                                                           int arg) {
  return &check_pattern(L, arg)->pattern;
}

static int pattern_gc(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  pattern_userdata *box = check_pattern(L, 1);
  if (b->engine)
    pln_dataflow_free(&box->pattern);
  return 0;
}

static void end_run(dataflow_run *run) {
  pln_dataflow_matcher_free(run->matcher);
  run->matcher = NULL;
  pln_dataflow_region_end(&run->region);
  pln_dataflow_groups_free(&run->groups);
}

/* User value 1 keeps the graph that the run reads. */
static int run_gc(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  if (b->engine)
    end_run(luaL_checkudata(L, 1, RUN));
  return 0;
}

/* ------------------------------------------------------------- registry data
 */

/* Compares values that were set; texts are symbols' of the engine. */
static bool same_plain_value(const pln_attr *a, const pln_attr *b) {
  bool numbers = (a->kind == PLN_ATTR_INT || a->kind == PLN_ATTR_BOOL) &&
                 (b->kind == PLN_ATTR_INT || b->kind == PLN_ATTR_BOOL);
  if (numbers)
    return a->v.i == b->v.i;
  if (a->kind != b->kind)
    return false;
  if (a->kind == PLN_ATTR_FLOAT)
    return a->v.f == b->v.f;
  return a->kind == PLN_ATTR_STRING && pln_slice_equal(a->v.s, b->v.s);
}

/* An attribute that was set, or one of those that TVM's operators have. */
static bool op_has_attr(const pln_engine *engine, pln_op op,
                        const pln_attr *attr) {
  pln_slice name = pln_symbol_text(engine, attr->name);
  const pln_op_attr *set = pln_op_attr_get(engine, op, name.data);
  if (set)
    return !set->is_function && same_plain_value(&set->value, attr);
  pln_fuse_trait trait = pln_fuse_trait_of(engine, op);
  bool random = pln_op_row(engine, op)->traits & PLN_TRAIT_RANDOM;
  if (attr->kind != PLN_ATTR_INT && attr->kind != PLN_ATTR_BOOL)
    return false;
  if (pln_slice_is(name, "TOpPattern"))
    return attr->kind == PLN_ATTR_INT && attr->v.i == (int64_t)trait.pattern;
  if (pln_slice_is(name, "TNonComputational"))
    return (attr->v.i != 0) == trait.stays;
  return pln_slice_is(name, "TOpIsStateful") && (attr->v.i != 0) == random;
}

/* ---------------------------------------------------------------- compiling */

static pln_dataflow_kind check_kind(lua_State *L, int row) {
  lua_getfield(L, row, "kind");
  const char *name = luaL_checkstring(L, -1);
  int kind = 0;
  while (kind < PLN_N_DATAFLOW_KINDS &&
         strcmp(name, pln_dataflow_kind_name((pln_dataflow_kind)kind)))
    kind++;
  if (kind == PLN_N_DATAFLOW_KINDS)
    luaL_error(L, "no kind of dataflow pattern is called '%s'", name);
  lua_pop(L, 1);
  return (pln_dataflow_kind)kind;
}

/* Reads what a row says beside its operands; may leave scratch values.  [-0,
 * +n] */
static void read_data(lua_State *L, pln_lua *b, int row,
                      pln_dataflow_node *node) {
  lua_getfield(L, row, "value");
  int value = lua_gettop(L);
  switch ((pln_dataflow_kind)node->kind) {
  case PLN_DATAFLOW_OP: node->data = pln_lua_check_op(L, b, value); return;
  case PLN_DATAFLOW_VAR:
    if (!lua_isnil(L, value))
      node->data = pln_lua_check_symbol(L, b, value);
    return;
  case PLN_DATAFLOW_TUPLE_GET_ITEM:
    node->data = (uint32_t)luaL_optinteger(L, value, PLN_NONE);
    return;
  case PLN_DATAFLOW_TYPE:
  case PLN_DATAFLOW_SHAPE: node->data = pln_lua_check_type(L, b, value); return;
  case PLN_DATAFLOW_DTYPE:
    node->data = pln_lua_check_dtype(L, value, PLN_DTYPE_NONE);
    return;
  case PLN_DATAFLOW_ATTR: node->data = pln_lua_check_attrs(L, b, value); return;
  case PLN_DATAFLOW_EXPR:
    node->expr = pln_lua_push_rooted(L, b, value)->graph;
    return;
  case PLN_DATAFLOW_WILDCARD:
  case PLN_DATAFLOW_CONSTANT:
  case PLN_DATAFLOW_CALL:
  case PLN_DATAFLOW_FUNCTION:
  case PLN_DATAFLOW_LET:
  case PLN_DATAFLOW_IF:
  case PLN_DATAFLOW_TUPLE:
  case PLN_DATAFLOW_ALT:
  case PLN_DATAFLOW_DOMINATOR:
  case PLN_N_DATAFLOW_KINDS: return;
  }
}

/* Adds the row at the top.  [-1, +0] */
static void add_row(lua_State *L, pln_lua *b, pln_dataflow_pattern *pattern) {
  int row = lua_gettop(L);
  luaL_checktype(L, row, LUA_TTABLE);
  pln_dataflow_node node = {.kind = (uint8_t)check_kind(L, row)};
  lua_getfield(L, row, "any");
  node.any_count = lua_toboolean(L, -1);
  read_data(L, b, row, &node);
  size_t n = lua_rawlen(L, row);
  luaL_argcheck(L, n <= PLN_DATAFLOW_MAX_NODES, 1, "too many operands");
  uint32_t *operands = lua_newuserdatauv(L, (n + 1) * sizeof *operands, 0);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, row, (lua_Integer)i + 1);
    operands[i] = (uint32_t)(luaL_checkinteger(L, -1) - 1);
    lua_pop(L, 1);
  }
  if (node.expr)
    pln_graph_retain(node.expr);
  pln_lua_must(L, b, pln_dataflow_add(pattern, &node, (uint32_t)n, operands));
  lua_settop(L, row - 1);
}

/* dataflow_pattern(rows, objects, root) -> a compiled pattern. A row is { kind
 * =, value =, any =, numbers of operands }; `objects` has what callbacks know
 * each row by. */
static int core_dataflow_pattern(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_Integer root = luaL_checkinteger(L, 3);
  lua_settop(L, 2);
  pattern_userdata *box = pln_lua_userdata(L, PATTERN, sizeof *box, 1);
  box->pattern =
      (pln_dataflow_pattern){.engine = b->engine, .op_attr = op_has_attr};
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 3, 1);
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, i);
    add_row(L, b, &box->pattern);
  }
  pln_lua_must(L, b, pln_dataflow_finish(&box->pattern, (uint32_t)(root - 1)));
  return 1;
}

/* -------------------------------------------------------------------- a run */

/* Pushes a run that keeps the box at `kept` alive.  [-0, +1] */
static dataflow_run *push_run(lua_State *L, pln_lua *b, int kept,
                              const pln_dataflow_pattern *pattern) {
  dataflow_run *run = pln_lua_userdata(L, RUN, sizeof *run, 1);
  run->rewriting.state = b;
  run->rewriting.outer = b->rewriting;
  run->pattern = pattern;
  lua_pushvalue(L, kept);
  lua_setiuservalue(L, -2, 1);
  return run;
}

static void push_candidate(lua_State *L, pln_lua *b, int graph,
                           pln_candidate candidate) {
  if (candidate & PLN_CANDIDATE_OP)
    pln_lua_push_op(L, b, candidate & ~PLN_CANDIDATE_OP);
  else
    pln_lua_push_node(L, graph, candidate);
}

/* Appends the value on top to map[objects[pattern + 1]].  [-1, +0] */
static void add_to_map(lua_State *L, int map, int objects, uint32_t pattern) {
  lua_rawgeti(L, objects, (lua_Integer)pattern + 1);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, map) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, map);
  }
  lua_pushvalue(L, -3);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 3);
}

/* ----------------------------------------------------------------- matching */

static void push_bindings(lua_State *L, const dataflow_run *run, int graph,
                          int objects) {
  uint32_t n;
  const pln_dataflow_binding *bindings =
      pln_dataflow_bindings(run->matcher, &n);
  lua_newtable(L);
  int map = lua_gettop(L);
  for (uint32_t i = 0; i < n; i++) {
    if (bindings[i].pattern >= run->pattern->n_given)
      continue;
    push_candidate(L, run->rewriting.state, graph, bindings[i].candidate);
    add_to_map(L, map, objects, bindings[i].pattern);
  }
}

static pln_status run_match(dataflow_run *run, const pln_graph *graph,
                            pln_ref node, bool *matched) {
  PLN_TRY(pln_dataflow_region_begin(&run->region, graph, node, run->lets));
  node = pln_dataflow_value(&run->region, node);
  PLN_TRY(pln_dataflow_matcher_new(run->pattern, &run->region, &run->matcher));
  return pln_dataflow_match(run->matcher, pln_dataflow_candidate(graph, node),
                            matched);
}

/* pattern:match(node, map, lets) -> whether it matches; with `map` also {
 * [object] = { node, ... } } */
static int pattern_match(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pattern_userdata *box = check_pattern(L, 1);
  bool matched, map = lua_toboolean(L, 3), lets = lua_toboolean(L, 4);
  pln_ref node;
  lua_settop(L, 2);
  const pln_graph *g = pln_lua_push_sealed_graph_of(L, b, 2, &node)->graph;
  int graph = lua_gettop(L);
  dataflow_run *run = push_run(L, b, graph, &box->pattern);
  run->lets = lets;
  pln_lua_must(L, b, run_match(run, g, node, &matched));
  lua_getiuservalue(L, 1, 1);
  int objects = lua_gettop(L);
  lua_pushboolean(L, matched);
  if (matched && map)
    push_bindings(L, run, graph, objects);
  end_run(run);
  return matched && map ? 2 : 1;
}

/* ---------------------------------------------------------------- rewriting */

/* The image of a matched node; PLN_NONE: it has none yet. */
static pln_ref image_of(const dataflow_run *run, pln_ref node) {
  const pln_lua_rewriting *r = &run->rewriting;
  return node == r->at ? *r->image : pln_rewrite_image(r->rw, node);
}

/* Pushes { [object] = { image, ... } } for the group.  [-0, +1] */
static void push_group(lua_State *L, const dataflow_run *run, int graph,
                       int objects, const pln_dataflow_group *group) {
  lua_newtable(L);
  int map = lua_gettop(L);
  for (uint32_t i = 0; i < group->n_bindings; i++) {
    const struct pln_dataflow_bound *bound =
        &run->groups.bindings[group->bindings + i];
    pln_candidate candidate = bound->candidate;
    if (bound->pattern >= run->pattern->n_given)
      continue;
    if (!(candidate & PLN_CANDIDATE_OP))
      candidate = image_of(run, candidate);
    if (candidate == PLN_NONE)
      continue;
    push_candidate(L, run->rewriting.state, graph, candidate);
    add_to_map(L, map, objects, bound->pattern);
  }
}

/* Pushes the function, the old graph's box and the new one's, and the pattern
 * objects. Returns the index of the first.  [-0, +4] */
static int push_anchors(lua_State *L, const dataflow_run *run) {
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  pln_lua_registry_get(L, &pln_lua_key.anchors, run);
  int anchors = lua_gettop(L);
  for (int i = 1; i <= 4; i++)
    lua_rawgeti(L, anchors, i);
  return anchors + 1;
}

static void bad_rewrite_answer(lua_State *L, const dataflow_run *run) {
  const char *got = luaL_typename(L, -1);
  if (luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
    got = lua_tostring(L, -1);
  luaL_error(L,
             "callback '%s': a node, a number, a tensor or nil expected as its "
             "answer, got %s",
             run->name, got);
}

/* Converts the answer on top; nil leaves the node as it is. */
static void take_replacement(lua_State *L, dataflow_run *run) {
  pln_lua_rewriting *r = &run->rewriting;
  pln_lua *b = r->state;
  const pln_graph *g = r->old->graph;
  pln_dtype dtype = pln_type_dtype(b->engine, pln_node_type(g, r->at));
  bool constant = lua_type(L, -1) == LUA_TNUMBER || pln_lua_test_tensor(L, -1);
  if (lua_isnil(L, -1))
    return;
  if (!constant && !pln_lua_test_node(L, -1))
    bad_rewrite_answer(L, run);
  *r->image = pln_lua_operand(L, b, r->new, lua_gettop(L),
                              constant ? dtype : PLN_DTYPE_NONE);
}

static int rewrite_body(lua_State *L) {
  dataflow_run *run = lua_touserdata(L, 1);
  pln_lua_rewriting *r = &run->rewriting;
  int function = push_anchors(L, run);
  lua_pushvalue(L, function);
  pln_lua_push_node(L, function + 1, r->at);
  pln_lua_push_node(L, function + 2, *r->image);
  push_group(L, run, function + 2, function + 3,
             pln_dataflow_group_at(&run->groups, r->at));
  lua_call(L, 3, 1);
  take_replacement(L, run);
  return 0;
}

static pln_status rewrite_node(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  dataflow_run *run = ud;
  pln_ref image = *node;
  bool allowed = true;
  if (!pln_dataflow_group_at(&run->groups, old))
    return PLN_OK;
  pln_status status =
      pln_lua_rewriting_call(&run->rewriting, rw, old, rewrite_body, &image);
  if (status != PLN_OK)
    pln_diag_note(run->rewriting.state->engine, &run->place, "in callback '%s'",
                  run->name);
  PLN_TRY(status);
  if (pln_rewrite_is_same_node(rw, *node, image))
    return PLN_OK;
  if (image != *node)
    PLN_TRY(pln_rewrite_apply(rw, run->name, &allowed));
  if (allowed)
    *node = image;
  return PLN_OK;
}

/* Runs `sweep` within the limits of the current context. */
static pln_status sweep_guarded(dataflow_run *run,
                                pln_status (*sweep)(dataflow_run *run,
                                                    pln_graph **out),
                                pln_graph **out) {
  pln_engine *e = run->rewriting.state->engine;
  pln_guard outer;
  size_t mark = pln_diag_count(e);
  PLN_TRY(pln_guard_begin_current(e, &outer));
  pln_status status = sweep(run, out);
  pln_status guarded = pln_guard_end(e, &outer, mark, status);
  if (status == PLN_OK && guarded != PLN_OK) {
    pln_graph_release(*out);
    *out = NULL;
  }
  return guarded;
}

static pln_status find_and_rewrite(dataflow_run *run, pln_graph **out) {
  pln_mutator mutator = {
      .ud = run, .visit = rewrite_node, .renames_params = true};
  const pln_graph *old = run->rewriting.old->graph;
  PLN_TRY(pln_dataflow_groups_find(&run->groups, run->pattern, old, false,
                                   run->lets));
  if (run->groups.n == 0) {
    *out = pln_graph_retain((pln_graph *)old);
    return PLN_OK;
  }
  return pln_graph_rewrite(old, &mutator, out);
}

/* -------------------------------------------------------------- partitioning
 */

static int check_body(lua_State *L) {
  dataflow_run *run = lua_touserdata(L, 1);
  int function = push_anchors(L, run);
  lua_pushvalue(L, function);
  pln_lua_push_node(L, function + 1, run->rewriting.at);
  lua_call(L, 1, 1);
  run->wanted = lua_toboolean(L, -1);
  return 0;
}

static pln_status check_group(void *ud, pln_rewrite *rw, pln_ref root,
                              bool *wanted) {
  dataflow_run *run = ud;
  pln_ref image = root;
  PLN_TRY(
      pln_lua_rewriting_call(&run->rewriting, rw, root, check_body, &image));
  *wanted = run->wanted;
  return PLN_OK;
}

static pln_status find_and_partition(dataflow_run *run, pln_graph **out) {
  return pln_dataflow_partition(run->pattern, run->rewriting.old->graph,
                                run->lets, run->attrs,
                                run->checks ? check_group : NULL, run, out);
}

/* ----------------------------------------------------------- running a sweep
 */

/* Starts a run over the node at 2 with the function at 3 (nil: none). Pushes
 * the boxes of the old, the new and the resulting graph and the run: 4 to 7. */
static dataflow_run *begin_sweep(lua_State *L, pln_lua *b) {
  const pattern_userdata *box = check_pattern(L, 1);
  pln_lua_graph *old = pln_lua_push_rooted(L, b, 2);
  pln_lua_graph *new = pln_lua_new_graph(L, b, PLN_LUA_REWRITING);
  pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  dataflow_run *run = push_run(L, b, 4, &box->pattern);
  run->rewriting.old = old;
  run->rewriting.new = new;
  run->rewriting.hoists = true;
  lua_createtable(L, 4, 0);
  for (int i = 1; i <= 3; i++) {
    lua_pushvalue(L, i + 2);
    lua_rawseti(L, -2, i);
  }
  lua_getiuservalue(L, 1, 1);
  lua_rawseti(L, -2, 4);
  lua_pushvalue(L, 5);
  pln_lua_registry_set(L, &pln_lua_key.anchors, new);
  pln_lua_registry_set(L, &pln_lua_key.anchors, run);
  return run;
}

/* Restores the binding's state after a sweep. Cannot raise. */
static void end_sweep(lua_State *L, dataflow_run *run, pln_lua_graph *target) {
  pln_lua *b = run->rewriting.state;
  b->target = target;
  b->L = L;
  pln_lua_end_graph(run->rewriting.new);
  pln_lua_forget(L, &pln_lua_key.anchors, run);
  pln_lua_forget(L, &pln_lua_key.anchors, run->rewriting.new);
  end_run(run);
}

/* Pushes the root of the resulting graph at 6, or the node at 2 if nothing
 * changed. */
static int push_swept(lua_State *L) {
  const pln_lua_graph *old = lua_touserdata(L, 4);
  const pln_lua_graph *out = lua_touserdata(L, 6);
  if (out->graph == old->graph) {
    lua_pushvalue(L, 2);
    return 1;
  }
  lua_pushvalue(L, 6);
  pln_lua_unique(L, out->graph);
  pln_lua_push_node(L, -1, pln_graph_root(out->graph));
  return 1;
}

/* pattern:rewrite(node, function, name, file, line, lets) -> the rewritten
 * node, or `node` if nothing changed, and the number of nodes of its graph. The
 * function gets the old node, the new one and what the pattern objects matched;
 * file and line are where it is, for messages. */
static int pattern_rewrite(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checktype(L, 3, LUA_TFUNCTION);
  pln_symbol symbol = pln_lua_check_symbol(L, b, 4);
  pln_symbol file = pln_lua_check_symbol(L, b, 5);
  uint32_t line = (uint32_t)luaL_checkinteger(L, 6);
  bool lets = lua_toboolean(L, 7);
  lua_settop(L, 3);
  dataflow_run *run = begin_sweep(L, b);
  pln_lua_graph *out = lua_touserdata(L, 6);
  run->name = pln_symbol_text(b->engine, symbol).data;
  run->place =
      (pln_span){.source = pln_symbol_text(b->engine, file).data, .row = line};
  run->lets = lets;
  pln_lua_graph *target = b->target;
  pln_status status = sweep_guarded(run, find_and_rewrite, &out->graph);
  end_sweep(L, run, target);
  pln_lua_must(L, b, status);
  push_swept(L);
  lua_pushinteger(L, pln_graph_size(out->graph));
  return 2;
}

/* pattern:partition(node, check, attrs, lets) -> the node with matches in
 * functions, or `node` if nothing changed */
static int pattern_partition(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  bool lets = lua_toboolean(L, 5);
  lua_settop(L, 4);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 4);
  bool checks = !lua_isnil(L, 3);
  lua_settop(L, 3);
  dataflow_run *run = begin_sweep(L, b);
  pln_lua_graph *out = lua_touserdata(L, 6);
  pln_lua_graph *target = b->target;
  run->attrs = attrs;
  run->checks = checks;
  run->lets = lets;
  pln_status status = sweep_guarded(run, find_and_partition, &out->graph);
  end_sweep(L, run, target);
  pln_lua_must(L, b, status);
  return push_swept(L);
}

void pln_lua_open_dataflow(lua_State *L) {
  static const luaL_Reg methods[] = {{"match", pattern_match},
                                     {"rewrite", pattern_rewrite},
                                     {"partition", pattern_partition},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", pattern_gc}, {NULL, NULL}};
  static const luaL_Reg run_meta[] = {{"__gc", run_gc}, {NULL, NULL}};
  static const luaL_Reg none[] = {{NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"dataflow_pattern", core_dataflow_pattern}, {NULL, NULL}};
  pln_lua_class(L, PATTERN, methods, meta, NULL);
  pln_lua_class(L, RUN, none, run_meta, NULL);
  pln_lua_functions(L, functions);
}
