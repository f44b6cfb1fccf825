/* emit.c: builds expressions and statements of TIR (emit.h). Called by passes
 * of lower/. What always holds: nothing is built after a failure. */

#include "lower/emit.h"
#include "lower/lower.h"

/* True if the call goes on; operands that a failed call left are PLN_NONE, and
 * then the status says so. */
static bool goes_on(const pln_emit *e) {
  return e->status == PLN_OK;
}

static pln_ref answer(const pln_emit *e, pln_ref node) {
  return goes_on(e) ? node : PLN_NONE;
}

/* ------------------------------------------------------------------- types */

pln_type pln_emit_type(pln_emit *e, pln_dtype dtype) {
  pln_type type = 0;
  if (goes_on(e))
    e->status = pln_type_prim(e->b->engine, dtype, 1, &type);
  return type;
}

pln_type pln_emit_pointer(pln_emit *e, pln_type element, const char *scope) {
  pln_type type = 0;
  pln_symbol symbol;
  if (goes_on(e))
    e->status = pln_symbol_intern(e->b->engine, pln_text(scope), &symbol);
  if (goes_on(e))
    e->status = pln_type_make(e->b->engine, PLN_TYPE_POINTER, symbol, 1,
                              &element, &type);
  return type;
}

pln_type pln_emit_type_of(const pln_emit *e, pln_ref node) {
  return goes_on(e) ? e->b->graph->nodes[node].type : 0;
}

/* -------------------------------------------------------------- expressions */

pln_ref pln_emit_int_of(pln_emit *e, pln_type type, int64_t value) {
  pln_ref out = PLN_NONE;
  if (goes_on(e))
    e->status = pln_build_int_imm(e->b, type, value, &out);
  return answer(e, out);
}

pln_ref pln_emit_int(pln_emit *e, pln_dtype dtype, int64_t value) {
  return pln_emit_int_of(e, pln_emit_type(e, dtype), value);
}

pln_ref pln_emit_string(pln_emit *e, pln_slice text) {
  pln_ref out = PLN_NONE;
  pln_symbol symbol = 0;
  if (goes_on(e))
    e->status = pln_symbol_intern(e->b->engine, text, &symbol);
  if (goes_on(e))
    e->status = pln_build_string_imm(e->b, symbol, &out);
  return answer(e, out);
}

pln_ref pln_emit_var(pln_emit *e, const char *name, pln_type type) {
  pln_ref out = PLN_NONE;
  pln_symbol symbol = 0;
  if (goes_on(e))
    e->status = pln_symbol_intern(e->b->engine, pln_text(name), &symbol);
  if (goes_on(e))
    e->status = pln_build_var(e->b, symbol, type, 0, &out);
  return answer(e, out);
}

pln_ref pln_emit_prim(pln_emit *e, const pln_prim *spec) {
  pln_ref out = PLN_NONE;
  if (goes_on(e))
    e->status = pln_build_prim(e->b, spec, &out);
  return answer(e, out);
}

pln_ref pln_emit_binary(pln_emit *e, pln_kind kind, pln_ref x, pln_ref y) {
  pln_ref operands[2] = {x, y};
  return pln_emit_prim(e,
                       &(pln_prim){.kind = kind, .n = 2, .operands = operands});
}

pln_ref pln_emit_folded(pln_emit *e, pln_kind kind, pln_ref x, pln_ref y) {
  pln_ref out = PLN_NONE;
  if (goes_on(e))
    e->status = pln_build_folded(e->b, kind, x, y, &out);
  return answer(e, out);
}

pln_ref pln_emit_not(pln_emit *e, pln_ref x) {
  return pln_emit_prim(
      e, &(pln_prim){.kind = PLN_PRIM_NOT, .n = 1, .operands = &x});
}

pln_ref pln_emit_cast(pln_emit *e, pln_type type, pln_ref x) {
  if (!goes_on(e) || pln_emit_type_of(e, x) == type)
    return answer(e, x);
  return pln_emit_prim(
      e,
      &(pln_prim){.kind = PLN_PRIM_CAST, .type = type, .n = 1, .operands = &x});
}

pln_ref pln_emit_select(pln_emit *e, pln_ref condition, pln_ref x, pln_ref y) {
  pln_ref operands[3] = {condition, x, y};
  return pln_emit_prim(
      e, &(pln_prim){.kind = PLN_SELECT, .n = 3, .operands = operands});
}

pln_ref pln_emit_call(pln_emit *e, const char *builtin, pln_type type,
                      uint32_t n, const pln_ref *args) {
  return pln_emit_prim(e,
                       &(pln_prim){.kind = PLN_PRIM_CALL,
                                   .data = pln_builtin_find(pln_text(builtin)),
                                   .type = type,
                                   .n = n,
                                   .operands = args});
}

pln_ref pln_emit_lane(pln_emit *e, pln_ref vector, uint32_t lane) {
  pln_ref parts[2] = {vector, pln_emit_int(e, PLN_INT32, lane)};
  return pln_emit_prim(
      e,
      &(pln_prim){.kind = PLN_SHUFFLE, .data = 1, .n = 2, .operands = parts});
}

pln_ref pln_emit_load(pln_emit *e, pln_ref buffer, pln_ref index) {
  return pln_emit_binary(e, PLN_BUFFER_LOAD, buffer, index);
}

pln_ref pln_emit_buffer(pln_emit *e, const char *name, pln_ref data,
                        pln_type element, pln_ref extent) {
  pln_ref out = PLN_NONE;
  pln_symbol symbol = 0;
  pln_ref offset = pln_emit_int(e, PLN_INT32, 0);
  if (goes_on(e))
    e->status = pln_symbol_intern(e->b->engine, pln_text(name), &symbol);
  if (goes_on(e))
    e->status = pln_build_buffer(e->b,
                                 &(pln_buffer_spec){.name = symbol,
                                                    .type = element,
                                                    .data = data,
                                                    .rank = 1,
                                                    .shape = &extent,
                                                    .elem_offset = offset},
                                 &out);
  return answer(e, out);
}

/* --------------------------------------------------------------- statements
 */

/* A statement with one body that has at most one parameter. */
static pln_ref owner(pln_emit *e, const pln_prim *spec, const pln_ref *param,
                     pln_ref body) {
  pln_ref out = PLN_NONE;
  pln_body one = {.n_params = param != NULL, .params = param, .stmt = body};
  if (goes_on(e))
    e->status = pln_build_floating_stmt(e->b, spec, 1, &one, &out);
  return answer(e, out);
}

pln_ref pln_emit_evaluate(pln_emit *e, pln_ref value) {
  return pln_emit_prim(
      e, &(pln_prim){.kind = PLN_EVALUATE, .n = 1, .operands = &value});
}

pln_ref pln_emit_store(pln_emit *e, pln_ref buffer, pln_ref index,
                       pln_ref value) {
  pln_ref operands[3] = {buffer, value, index};
  return pln_emit_prim(
      e, &(pln_prim){.kind = PLN_BUFFER_STORE, .n = 3, .operands = operands});
}

pln_ref pln_emit_seq(pln_emit *e, uint32_t n, const pln_ref *stmts) {
  pln_ref out = PLN_NONE;
  if (goes_on(e) && n == 1)
    return stmts[0];
  if (goes_on(e))
    e->status = pln_build_seq(e->b, n, stmts, &out);
  return answer(e, out);
}

pln_ref pln_emit_let(pln_emit *e, pln_ref var, pln_ref value, pln_ref body) {
  pln_prim spec = {.kind = PLN_LET_STMT, .n = 1, .operands = &value};
  return owner(e, &spec, &var, body);
}

pln_ref pln_emit_attr(pln_emit *e, pln_ref node, const char *key, pln_ref value,
                      pln_ref body) {
  pln_ref operands[2] = {node, value};
  pln_prim spec = {.kind = PLN_ATTR_STMT, .n = 2, .operands = operands};
  pln_symbol name = 0;
  if (goes_on(e))
    e->status = pln_symbol_intern(e->b->engine, pln_text("attr_key"), &name);
  if (goes_on(e))
    e->status = pln_attrs_with(e->b->engine, 0,
                               &(pln_attr){.name = name,
                                           .kind = PLN_ATTR_STRING,
                                           .v.s = pln_text(key)},
                               &spec.attrs);
  return owner(e, &spec, NULL, body);
}

pln_ref pln_emit_assert(pln_emit *e, pln_ref condition, pln_ref message,
                        pln_ref body) {
  pln_ref operands[2] = {condition, message};
  pln_prim spec = {.kind = PLN_ASSERT_STMT, .n = 2, .operands = operands};
  return owner(e, &spec, NULL, body);
}

pln_ref pln_emit_if(pln_emit *e, pln_ref condition, pln_ref then,
                    pln_ref other) {
  pln_ref out = PLN_NONE;
  pln_prim spec = {.kind = PLN_IF_THEN_ELSE, .n = 1, .operands = &condition};
  pln_body bodies[2] = {{.stmt = then}, {.stmt = other}};
  if (goes_on(e))
    e->status = pln_build_floating_stmt(e->b, &spec, other == PLN_NONE ? 1 : 2,
                                        bodies, &out);
  return answer(e, out);
}

pln_ref pln_emit_decl_buffer(pln_emit *e, pln_ref buffer, pln_ref body) {
  pln_prim spec = {.kind = PLN_DECL_BUFFER, .n = 1, .operands = &buffer};
  return owner(e, &spec, NULL, body);
}

pln_ref pln_emit_allocate(pln_emit *e, pln_ref var, pln_type element,
                          uint32_t n, const pln_ref *extents, pln_ref body) {
  enum { MOST = 8 };
  pln_ref operands[MOST + 1] = {pln_emit_int(e, PLN_BOOL, 1)};
  pln_prim spec = {.kind = PLN_ALLOCATE, .n = n + 1, .operands = operands};
  if (goes_on(e) && n > MOST)
    e->status = pln_diag_error(e->b->engine, PLN_ERR_LIMIT, NULL,
                               "an allocation has more than %d extents", MOST);
  for (uint32_t i = 0; goes_on(e) && i < n; i++)
    operands[i + 1] = extents[i];
  if (goes_on(e))
    e->status = pln_dtype_attr(e->b->engine, element, &spec.attrs);
  return owner(e, &spec, &var, body);
}

static void set_attr(pln_emit *e, const char *name, pln_attr value,
                     pln_attrs *attrs) {
  if (goes_on(e))
    e->status = pln_symbol_intern(e->b->engine, pln_text(name), &value.name);
  if (goes_on(e))
    e->status = pln_attrs_with(e->b->engine, *attrs, &value, attrs);
}

pln_ref pln_emit_thread_loop(pln_emit *e, pln_slice tag, pln_attrs attrs,
                             pln_ref var, pln_ref min, pln_ref extent,
                             pln_ref body) {
  pln_ref own = pln_emit_var(e, "", pln_emit_type_of(e, var));
  pln_prim axis = {.kind = PLN_ITER_VAR, .data = 1, .n = 1, .operands = &own};
  set_attr(e, "thread_tag", (pln_attr){.kind = PLN_ATTR_STRING, .v.s = tag},
           &axis.attrs);
  pln_ref operands[3] = {min, extent, pln_emit_prim(e, &axis)};
  pln_prim loop = {
      .kind = PLN_FOR, .attrs = attrs, .n = 3, .operands = operands};
  set_attr(e, "kind",
           (pln_attr){.kind = PLN_ATTR_INT, .v.i = PLN_FOR_THREAD_BINDING},
           &loop.attrs);
  return owner(e, &loop, &var, body);
}

/* BlockReads, BlockWrites and AllocBuffers are in front of a Block's body. */
static bool is_block_head(const pln_graph *g, pln_ref stmt) {
  pln_kind kind = (pln_kind)g->nodes[stmt].kind;
  return kind == PLN_BLOCK_READS || kind == PLN_BLOCK_WRITES ||
         kind == PLN_ALLOC_BUFFER;
}

static void list_with_allocations(pln_emit *e, pln_ref body, uint32_t n,
                                  const pln_ref *buffers, pln_ref *list) {
  const pln_graph *g = e->b->graph;
  bool seq = g->nodes[body].kind == PLN_SEQ_STMT;
  uint32_t old = seq ? g->nodes[body].count : 1, head = 0;
  for (uint32_t i = 0; i < old; i++) {
    pln_ref stmt = seq ? pln_operand(g, body, i) : body;
    if (head == i && is_block_head(g, stmt))
      head++;
    list[i < head ? i : i + n] = stmt;
  }
  for (uint32_t i = 0; i < n; i++)
    list[head + i] = pln_emit_prim(
        e,
        &(pln_prim){.kind = PLN_ALLOC_BUFFER, .n = 1, .operands = &buffers[i]});
}

pln_ref pln_emit_with_allocations(pln_emit *e, pln_ref body, uint32_t n,
                                  const pln_ref *buffers) {
  if (!goes_on(e) || n == 0)
    return answer(e, body);
  pln_engine *engine = e->b->engine;
  size_t size =
      (e->b->graph->nodes[body].count + (size_t)n + 1) * sizeof(pln_ref);
  uint32_t old = e->b->graph->nodes[body].kind == PLN_SEQ_STMT
                     ? e->b->graph->nodes[body].count
                     : 1;
  pln_ref *list = pln_mem_new(engine, size), out = PLN_NONE;
  if (!list)
    e->status = pln_nomem(engine);
  else
    list_with_allocations(e, body, n, buffers, list);
  out = list ? pln_emit_seq(e, old + n, list) : PLN_NONE;
  pln_mem_free(engine, list, size);
  return answer(e, out);
}
