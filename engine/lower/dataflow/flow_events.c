/* flow_events.c: the statements of a function in the order of execution, and
 * what their expressions read (flow.h).
 *
 * Called by buffer_flow.c. A scope is an interval of the sealed graph's array,
 * and its owner stands behind it, so that both are loops over arrays. */

#include "lower/dataflow/flow.h"
#include "lower/lower.h"

#include <stdlib.h>

static pln_status add_event(pln_flow *x, flow_event_kind kind, uint32_t at) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->events, &x->cap_events,
                       (size_t)x->n_events + 1, sizeof *x->events));
  x->events[x->n_events++] = (flow_event){(uint8_t)kind, at};
  return PLN_OK;
}

static pln_status enter_scope(pln_flow *x, pln_scope scope) {
  pln_ref owner = x->g->scopes[scope].owner;
  if (owner != PLN_NONE && x->g->nodes[owner].data == scope)
    PLN_TRY(add_event(x, FLOW_OPEN, owner));
  x->enter_of[scope] = x->n_events;
  return add_event(x, FLOW_ENTER, scope);
}

/* Leaves and enters the scopes that end and begin at `ref`. */
static pln_status change_scopes(pln_flow *x, pln_ref ref, pln_scope *here,
                                pln_scope *next) {
  const pln_scope_row *rows = x->g->scopes;
  for (;;) {
    if (*here != PLN_NONE && rows[*here].end == ref) {
      x->leave_of[*here] = x->n_events;
      PLN_TRY(add_event(x, FLOW_LEAVE, *here));
      *here = rows[*here].parent;
    } else if (*next < x->g->n_scopes && rows[*next].begin == ref) {
      *here = (*next)++;
      PLN_TRY(enter_scope(x, *here));
    } else {
      return PLN_OK;
    }
  }
}

pln_status pln_flow_list_events(pln_flow *x) {
  const pln_graph *g = x->g;
  pln_scope here = PLN_NONE, next = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    PLN_TRY(change_scopes(x, ref, &here, &next));
    if (pln_owns(n))
      PLN_TRY(add_event(x, FLOW_CLOSE, ref));
    else if (pln_is_stmt(n))
      PLN_TRY(add_event(x, FLOW_SIMPLE, ref));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- reads
 */

static bool is_pointer(const pln_flow *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  const pln_engine *e = x->g->engine;
  return n->kind != PLN_STRING_IMM &&
         (pln_type_get_kind(e, n->type) != PLN_TYPE_PRIM ||
          pln_type_dtype(e, n->type) == PLN_DTYPE_NONE);
}

bool pln_flow_takes_pointer(const pln_flow *x, pln_ref call) {
  const pln_node *n = &x->g->nodes[call];
  for (uint32_t i = 0; i < n->count; i++)
    if (is_pointer(x, x->g->operands[n->first + i]))
      return true;
  return false;
}

bool pln_flow_forgets(const pln_flow *x, pln_ref call) {
  const pln_node *n = &x->g->nodes[call];
  pln_effect effect = pln_flags_effect(n->flags);
  bool pointer = pln_flow_takes_pointer(x, call);
  if (pln_is_call_of(n, "assume") || pln_is_call_of(n, "likely"))
    return false;
  if (effect > PLN_EFFECT_READS)
    return pointer || x->escapes;
  return x->backward && pointer;
}

static pln_status push(pln_flow *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  bool reads = (n->flags & PLN_NODE_EFFECT) != PLN_EFFECT_NONE;
  if (!pln_is_prim(n) || n->kind == PLN_BUFFER ||
      x->visited[ref] == x->searches ||
      !(reads || (n->kind == PLN_PRIM_CALL && pln_flow_takes_pointer(x, ref))))
    return PLN_OK;
  x->visited[ref] = x->searches;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->stack, &x->cap_stack,
                       (size_t)x->n_stack + 1, sizeof *x->stack));
  x->stack[x->n_stack++] = ref;
  return PLN_OK;
}

static pln_status push_operands(pln_flow *x, pln_ref ref, uint32_t first) {
  const pln_node *n = &x->g->nodes[ref];
  for (uint32_t i = first; i < n->count; i++)
    PLN_TRY(push(x, x->g->operands[n->first + i]));
  return PLN_OK;
}

/* An address is of an element that is not read. */
static pln_status push_address(pln_flow *x, pln_ref call) {
  pln_ref element = pln_operand(x->g, call, 0);
  bool load = x->g->nodes[element].kind == PLN_BUFFER_LOAD;
  return push_operands(x, load ? element : call, load ? 1 : 0);
}

static pln_status add_read(pln_flow *x, pln_ref ref) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->reads, &x->cap_reads,
                       (size_t)x->n_reads + 1, sizeof *x->reads));
  x->reads[x->n_reads++] = ref;
  return PLN_OK;
}

/* Operands have smaller numbers than their users. */
static int by_number(const void *x, const void *y) {
  pln_ref a = *(const pln_ref *)x, b = *(const pln_ref *)y;
  return (a > b) - (a < b);
}

pln_status pln_flow_find_reads(pln_flow *x, pln_ref stmt, uint32_t first) {
  x->n_reads = x->n_stack = 0;
  x->searches++;
  PLN_TRY(push_operands(x, stmt, first));
  while (x->n_stack > 0) {
    pln_ref ref = x->stack[--x->n_stack];
    pln_kind kind = (pln_kind)x->g->nodes[ref].kind;
    if (pln_is_call_of(&x->g->nodes[ref], "address_of")) {
      PLN_TRY(push_address(x, ref));
      continue;
    }
    if (kind == PLN_BUFFER_LOAD || kind == PLN_PRIM_CALL)
      PLN_TRY(add_read(x, ref));
    PLN_TRY(push_operands(x, ref, 0));
  }
  if (x->n_reads > 1)
    qsort(x->reads, x->n_reads, sizeof *x->reads, by_number);
  return PLN_OK;
}
