/* node.c: TIR nodes as scripts see them: their fields, and the list of their
 * parts from which mutators rebuild them.
 *
 * The field `body` of a handle is one statement. If a sealed scope has several,
 * it is a SeqStmt made on demand; `stmts` lists them. */

#include "ir/tir/tir.h"
#include "lua/binding.h"
#include "lua/graph/mutator.h"

/* ------------------------------------------------------------------- fields */

typedef struct field_of {
  lua_State *L;
  pln_lua *b;
  pln_lua_node *node;
  const pln_graph *g;
  const pln_node *n;
  int graph;
} field_of;

static int push_value(const field_of *f) {
  switch ((pln_kind)f->n->kind) {
  case PLN_INT_IMM:
    lua_pushinteger(f->L, pln_node_int(f->g, f->node->ref));
    return 1;
  case PLN_FLOAT_IMM:
    lua_pushnumber(f->L, pln_node_float(f->g, f->node->ref));
    return 1;
  case PLN_STRING_IMM: {
    pln_slice text = pln_symbol_text(f->b->engine, f->n->data);
    lua_pushlstring(f->L, text.data, text.size);
    return 1;
  }
  default: return 0;
  }
}

/* Pushes "int32", "float32x4", "handle"; nil for what is no scalar or
 * vector. */
static int push_dtype(const field_of *f) {
  pln_engine *e = f->b->engine;
  pln_type_kind kind = pln_type_get_kind(e, f->n->type);
  if (kind != PLN_TYPE_PRIM && kind != PLN_TYPE_POINTER)
    return 0;
  pln_dtype dtype = pln_type_dtype(e, f->n->type);
  uint32_t lanes = kind == PLN_TYPE_PRIM ? pln_type_number(e, f->n->type) : 1;
  if (dtype == PLN_DTYPE_NONE)
    lua_pushliteral(f->L, "handle");
  else if (lanes == 1)
    lua_pushstring(f->L, pln_dtype_name(dtype));
  else
    lua_pushfstring(f->L, "%sx%d", pln_dtype_name(dtype), (int)lanes);
  return 1;
}

/* Pushes operands [first, end) as a list. */
static int push_operands(const field_of *f, uint32_t first, uint32_t end) {
  lua_createtable(f->L, (int)(end - first), 0);
  for (uint32_t i = first; i < end; i++) {
    pln_lua_push_node(f->L, f->graph, pln_node_operands(f->g, f->node->ref)[i]);
    lua_rawseti(f->L, -2, (lua_Integer)(i - first) + 1);
  }
  return 1;
}

static int push_reducer(const field_of *f, const char *key) {
  static const char *const quarters[] = {"lhs", "rhs", "result",
                                         "identity_element"};
  uint32_t k = f->n->count / 4;
  for (uint32_t i = 0; i < PLN_COUNT(quarters); i++)
    if (!strcmp(key, quarters[i]))
      return push_operands(f, i * k, (i + 1) * k);
  return 0;
}

/* Pushes a Reduce's sources (one per value of its combiner), initial values or
 * axes. */
static int push_reduce(const field_of *f, const char *key) {
  const pln_node *n = f->n;
  pln_ref combiner = pln_node_operands(f->g, f->node->ref)[0];
  uint32_t init = 2 + f->g->nodes[combiner].count / 4;
  uint32_t axis = init + n->results;
  if (!strcmp(key, "source"))
    return push_operands(f, 2, init);
  if (!strcmp(key, "init"))
    return push_operands(f, init, axis);
  if (!strcmp(key, "axis"))
    return push_operands(f, axis, n->count);
  if (strcmp(key, "value_index") != 0)
    return 0;
  lua_pushinteger(f->L, n->data);
  return 1;
}

/* Pushes a field that is a range at the end of the operands. */
static int push_tir_part(const field_of *f, const char *key) {
  const pln_node *n = f->n;
  uint32_t rank = n->results;
  if (n->kind == PLN_BUFFER && !strcmp(key, "shape"))
    return push_operands(f, 1, 1 + rank);
  if (n->kind == PLN_BUFFER && !strcmp(key, "strides"))
    return push_operands(f, 1 + rank, n->count - 1);
  if (n->kind == PLN_BUFFER && !strcmp(key, "elem_offset")) {
    pln_lua_push_node(f->L, f->graph,
                      pln_node_operands(f->g, f->node->ref)[n->count - 1]);
    return 1;
  }
  if (n->kind == PLN_SHUFFLE && !strcmp(key, "vectors"))
    return push_operands(f, 0, n->data);
  if (n->kind == PLN_SHUFFLE && !strcmp(key, "indices"))
    return push_operands(f, n->data, n->count);
  return n->kind == PLN_COMM_REDUCER ? push_reducer(f, key)
         : n->kind == PLN_REDUCE     ? push_reduce(f, key)
                                     : 0;
}

/* Pushes the first parameter of the owner's first scope, under TVM's field
 * names. */
static int push_bound(const field_of *f, const char *key) {
  static const struct {
    pln_kind kind;
    const char *name;
  } names[] = {{PLN_FOR, "loop_var"},
               {PLN_LET_STMT, "var"},
               {PLN_ALLOCATE, "buffer_var"},
               {PLN_ALLOCATE_CONST, "buffer_var"}};
  for (size_t i = 0; i < PLN_COUNT(names); i++) {
    if (f->n->kind != names[i].kind || strcmp(key, names[i].name) != 0)
      continue;
    uint32_t own = f->g->sealed ? 0 : pln_own_operands(f->g, f->n);
    const pln_scope_row *row = &f->g->scopes[f->n->data];
    if (row->n_params == 0)
      return 0;
    pln_lua_push_node(f->L, f->graph,
                      f->g->sealed ? row->begin
                                   : f->g->operands[f->n->first + own]);
    return 1;
  }
  return 0;
}

/* Reads the statements of a sealed scope into scratch memory.  [-0, +1] */
static pln_ref *list_stmts(const field_of *f, pln_scope scope, uint32_t *n) {
  const pln_graph *g = f->g;
  const pln_scope_row *row = &g->scopes[scope];
  *n = 0;
  size_t room = 0;
  for (pln_ref ref = row->end; ref-- > row->begin; room++)
    if (pln_is_stmt(&g->nodes[ref]) && pln_owns(&g->nodes[ref]))
      ref = g->scopes[g->nodes[ref].data].begin;
  pln_ref *list = lua_newuserdatauv(f->L, (room + 1) * sizeof *list, 0);
  for (pln_ref ref = row->end; ref-- > row->begin;) {
    const pln_node *s = &g->nodes[ref];
    if (pln_is_stmt(s))
      list[(*n)++] = ref;
    if (pln_is_stmt(s) && pln_owns(s))
      ref = g->scopes[s->data].begin;
  }
  for (uint32_t i = 0; i < *n / 2; i++) {
    pln_ref swap = list[i];
    list[i] = list[*n - 1 - i];
    list[*n - 1 - i] = swap;
  }
  return list;
}

static int push_stmts(const field_of *f, pln_scope scope) {
  uint32_t n;
  if (!f->g->sealed) {
    pln_ref body = f->g->scopes[scope].result;
    const pln_node *s = &f->g->nodes[body];
    bool seq = f->n->kind == PLN_SEQ_STMT;
    if (seq || s->kind == PLN_SEQ_STMT) {
      field_of inner = *f;
      pln_lua_node node = {f->node->graph, seq ? f->node->ref : body};
      inner.node = &node;
      return push_operands(&inner, 0, seq ? f->n->count : s->count);
    }
    lua_createtable(f->L, 1, 0);
    pln_lua_push_node(f->L, f->graph, body);
    lua_rawseti(f->L, -2, 1);
    return 1;
  }
  pln_ref *list = list_stmts(f, scope, &n);
  lua_createtable(f->L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_node(f->L, f->graph, list[i]);
    lua_rawseti(f->L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* Pushes the body of a scope as one statement. */
static int push_body(const field_of *f, pln_scope scope) {
  uint32_t n;
  if (!f->g->sealed) {
    pln_lua_push_node(f->L, f->graph, f->g->scopes[scope].result);
    return 1;
  }
  pln_ref *list = list_stmts(f, scope, &n);
  if (n == 1) {
    pln_lua_push_node(f->L, f->graph, list[0]);
    return 1;
  }
  pln_lua_graph *to = pln_lua_push_free(f->L, f->b);
  pln_builder *builder = pln_lua_builder(f->L, f->b, to);
  pln_ref ref;
  for (uint32_t i = 0; i < n; i++)
    pln_lua_must(f->L, f->b,
                 pln_build_import(builder, f->g, list[i], &list[i]));
  pln_lua_must(f->L, f->b, pln_build_seq(builder, n, list, &ref));
  pln_lua_push_node(f->L, -1, ref);
  return 1;
}

static int push_scope_field(const field_of *f, const char *key) {
  if (!pln_owns(f->n))
    return 0;
  pln_scope first = f->n->data, second = f->g->scopes[first].next;
  if (!strcmp(key, "stmts"))
    return push_stmts(f, first);
  if (f->n->kind == PLN_SEQ_STMT)
    return !strcmp(key, "seq") ? push_stmts(f, first) : 0;
  if (!strcmp(key, "body") || !strcmp(key, "then_case") ||
      !strcmp(key, "block"))
    return push_body(f, first);
  if (!strcmp(key, "else_case") && second != PLN_NONE)
    return push_body(f, second);
  return 0;
}

int pln_lua_tir_field(lua_State *L, pln_lua_node *node, const pln_graph *g,
                      int graph) {
  const pln_node *n = &g->nodes[node->ref];
  if (lua_type(L, 2) != LUA_TSTRING)
    return 0;
  const char *key = lua_tostring(L, 2);
  field_of f = {L, pln_lua_state_of(L), node, g, n, graph};
  if (!strcmp(key, "dtype"))
    return push_dtype(&f);
  if (!strcmp(key, "value") && pln_is_prim(n))
    return push_value(&f);
  if (!strcmp(key, "lanes") &&
      (n->kind == PLN_RAMP || n->kind == PLN_BROADCAST)) {
    lua_pushinteger(L, n->data);
    return 1;
  }
  if (!strcmp(key, "iter_type") && n->kind == PLN_ITER_VAR) {
    lua_pushinteger(L, n->data);
    return 1;
  }
  if (!strcmp(key, "builtin") && n->kind == PLN_PRIM_CALL && n->data) {
    lua_pushstring(L, pln_builtin_name(n->data));
    return 1;
  }
  if (!pln_is_prim(n) && !pln_is_tir(n))
    return 0;
  int found = push_tir_part(&f, key);
  if (!found)
    found = push_bound(&f, key);
  return found ? found : push_scope_field(&f, key);
}

/* ------------------------------------------------------------ whole nodes */

/* loop_parts(node) -> a list of its operands and then the statements of its
 * scopes; the number of parts, of operands, and of statements in the first
 * scope */
static int core_loop_parts(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_node *node = pln_lua_check_node(L, 1);
  const pln_graph *g = pln_lua_graph_of(L, node->graph);
  luaL_argcheck(L, g->sealed, 1, "a sealed node expected");
  lua_settop(L, 1);
  lua_getiuservalue(L, 1, 1);
  const pln_node *n = &g->nodes[node->ref];
  field_of f = {L, b, node, g, n, 2};
  push_operands(&f, 0, n->count);
  lua_Integer at = n->count, first = 0;
  pln_scope s = pln_owns(n) ? n->data : PLN_NONE;
  for (int i = 0; s != PLN_NONE; s = g->scopes[s].next, i++) {
    uint32_t k;
    pln_ref *list = list_stmts(&f, s, &k);
    for (uint32_t j = 0; j < k; j++) {
      pln_lua_push_node(L, 2, list[j]);
      lua_rawseti(L, 3, ++at);
    }
    lua_pop(L, 1);
    first = i == 0 ? k : first;
  }
  lua_pushinteger(L, at);
  lua_pushinteger(L, n->count);
  lua_pushinteger(L, first);
  return 4;
}

/* Converts parts [first, first + n) of the list at 2 to nodes of `to`. */
static void read_tir_parts(lua_State *L, pln_lua *b, pln_lua_graph *to,
                           pln_ref *out, uint32_t first, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    lua_rawgeti(L, 2, (lua_Integer)first + i + 1);
    pln_lua_check_node(L, -1);
    out[i] = pln_lua_operand(L, b, to, -1, PLN_DTYPE_NONE);
    lua_pop(L, 1);
  }
}

static pln_ref one_stmt(lua_State *L, pln_lua *b, pln_builder *builder,
                        uint32_t n, const pln_ref *stmts) {
  pln_ref ref;
  if (n == 1)
    return stmts[0];
  pln_lua_must(L, b, pln_build_seq(builder, n, stmts, &ref));
  return ref;
}

/* Builds the bodies of a rebuilt owner. Parameters keep their identity. */
static uint32_t rebuilt_bodies(lua_State *L, pln_lua *b, pln_builder *builder,
                               const pln_graph *g, const pln_node *n,
                               const pln_ref *stmts, const uint32_t *counts,
                               pln_body *bodies) {
  uint32_t k = 0;
  for (pln_scope s = n->data; s != PLN_NONE && k < 2; s = g->scopes[s].next) {
    const pln_scope_row *row = &g->scopes[s];
    pln_ref *params =
        lua_newuserdatauv(L, (row->n_params + (size_t)1) * sizeof *params, 0);
    for (uint32_t i = 0; i < row->n_params; i++)
      pln_lua_must(L, b,
                   pln_build_import(builder, g, row->begin + i, &params[i]));
    bodies[k].n_params = row->n_params;
    bodies[k].params = params;
    bodies[k].stmt = one_stmt(L, b, builder, counts[k], stmts);
    stmts += counts[k];
    k++;
  }
  return k;
}

static pln_status rebuild_without_parts(pln_builder *builder, const pln_node *n,
                                        const pln_ref *operands, pln_ref *out) {
  bool typed = n->kind == PLN_PRIM_CAST || n->kind == PLN_PRIM_CALL ||
               n->kind == PLN_PRODUCER_LOAD || n->kind == PLN_BUFFER;
  pln_prim spec = {.kind = (pln_kind)n->kind,
                   .count = n->results,
                   .data = n->data,
                   .type = typed ? n->type : 0,
                   .attrs = pln_kinds[n->kind].has_attrs ? n->attrs : 0,
                   .n = n->count,
                   .operands = operands};
  return pln_build_prim(builder, &spec, out);
}

/* loop_rebuild(node, parts, first [, operands [, attrs]]) -> the node with
 * other parts, in the order of loop_parts: `operands` operands (default: as
 * before), then statements, of which `first` belong to the first scope */
static int core_loop_rebuild(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_ref ref;
  pln_body bodies[2];
  lua_settop(L, 5);
  pln_lua_node *node = pln_lua_check_node(L, 1);
  const pln_graph *g = pln_lua_graph_of(L, node->graph);
  luaL_argcheck(L, g->sealed, 1, "a sealed node expected");
  luaL_checktype(L, 2, LUA_TTABLE);
  pln_node n = g->nodes[node->ref];
  lua_Integer total = (lua_Integer)lua_rawlen(L, 2);
  lua_Integer count = luaL_optinteger(L, 4, n.count);
  lua_Integer first = luaL_optinteger(L, 3, 0);
  luaL_argcheck(L, total < INT32_MAX && count >= 0 && total >= count, 2,
                "too few parts");
  luaL_argcheck(L, first >= 0 && first <= total - count, 3, "out of range");
  n.count = (uint32_t)count;
  if (pln_kinds[n.kind].has_attrs && !lua_isnil(L, 5))
    n.attrs = pln_lua_check_attrs(L, b, 5);
  lua_settop(L, 5);
  pln_lua_graph *to = pln_lua_push_free(L, b);
  pln_builder *builder = pln_lua_builder(L, b, to);
  pln_ref *parts = lua_newuserdatauv(L, ((size_t)total + 1) * sizeof *parts, 0);
  read_tir_parts(L, b, to, parts, 0, (uint32_t)total);
  uint32_t counts[2] = {(uint32_t)first, (uint32_t)(total - count - first)};
  if (!pln_owns(&n)) {
    pln_lua_must(L, b, rebuild_without_parts(builder, &n, parts, &ref));
  } else if (n.kind == PLN_SEQ_STMT) {
    pln_lua_must(L, b, pln_build_seq(builder, (uint32_t)total, parts, &ref));
  } else {
    uint32_t k =
        rebuilt_bodies(L, b, builder, g, &n, parts + n.count, counts, bodies);
    pln_prim spec = {.kind = (pln_kind)n.kind,
                     .type = n.kind == PLN_PRIM_FUNC ? n.type : 0,
                     .attrs = pln_kinds[n.kind].has_attrs ? n.attrs : 0,
                     .n = n.count,
                     .operands = parts};
    pln_lua_must(L, b,
                 pln_build_floating_stmt(builder, &spec, k, bodies, &ref));
  }
  pln_lua_push_node(L, 6, ref);
  return 1;
}

static const luaL_Reg functions[] = {{"loop_parts", core_loop_parts},
                                     {"loop_rebuild", core_loop_rebuild},
                                     {NULL, NULL}};

void pln_lua_open_tir_node(lua_State *L) {
  pln_lua_functions(L, functions);
}
