/* pattern.c: builds dataflow patterns.
 *
 * Called by the binding: rows are added, then the pattern is finished, which
 * checks the rows, marks recursion, and adds the alternatives of products and
 * quotients: TVM matches a * b / c also as a * (b / c) or (a / c) * b. */

#include "rule/dataflow/dataflow.h"

const char *pln_dataflow_kind_name(pln_dataflow_kind kind) {
  static const char *const names[] = {
#define PLN_ROW(ID, name) name,
      PLN_DATAFLOW_KINDS(PLN_ROW)
#undef PLN_ROW
  };
  return names[kind];
}

static pln_status append_row(pln_dataflow_pattern *p,
                             const pln_dataflow_node *node, uint32_t n,
                             const uint32_t *operands) {
  pln_engine *e = p->engine;
  if (p->n == PLN_DATAFLOW_MAX_NODES)
    return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                          "a dataflow pattern has at most %d nodes",
                          PLN_DATAFLOW_MAX_NODES);
  PLN_TRY(pln_mem_grow(e, (void **)&p->nodes, &p->cap, (size_t)p->n + 1,
                       sizeof *p->nodes));
  PLN_TRY(pln_mem_grow(e, (void **)&p->operands, &p->cap_operands,
                       (size_t)p->n_operands + n, sizeof *p->operands));
  for (uint32_t i = 0; i < n; i++)
    p->operands[p->n_operands + i] = operands[i];
  p->nodes[p->n] = *node;
  p->nodes[p->n].first = p->n_operands;
  p->nodes[p->n++].count = n;
  p->n_operands += n;
  return PLN_OK;
}

pln_status pln_dataflow_add(pln_dataflow_pattern *pattern,
                            const pln_dataflow_node *node, uint32_t n,
                            const uint32_t *operands) {
  pln_status status = append_row(pattern, node, n, operands);
  if (status != PLN_OK && node->expr)
    pln_graph_release(node->expr);
  return status;
}

void pln_dataflow_free(pln_dataflow_pattern *pattern) {
  pln_engine *e = pattern->engine;
  if (!e)
    return;
  for (uint32_t i = 0; i < pattern->n; i++)
    if (pattern->nodes[i].expr)
      pln_graph_release(pattern->nodes[i].expr);
  pln_mem_free(e, pattern->nodes, pattern->cap * sizeof *pattern->nodes);
  pln_mem_free(e, pattern->operands,
               pattern->cap_operands * sizeof *pattern->operands);
  *pattern = (pln_dataflow_pattern){0};
}

/* ------------------------------------------------------------------- checks */

/* The smallest and largest number of operands of a kind. */
static void operand_range(const pln_dataflow_node *n, uint32_t *least,
                          uint32_t *most) {
  *least = *most = 1;
  switch ((pln_dataflow_kind)n->kind) {
  case PLN_DATAFLOW_WILDCARD: *least = 0; return;
  case PLN_DATAFLOW_OP:
  case PLN_DATAFLOW_EXPR:
  case PLN_DATAFLOW_VAR:
  case PLN_DATAFLOW_CONSTANT: *least = *most = 0; return;
  case PLN_DATAFLOW_CALL:
  case PLN_DATAFLOW_FUNCTION: *most = n->any_count ? 1 : UINT32_MAX; return;
  case PLN_DATAFLOW_TUPLE:
    *least = 0;
    *most = n->any_count ? 0 : UINT32_MAX;
    return;
  case PLN_DATAFLOW_LET:
  case PLN_DATAFLOW_IF:
  case PLN_DATAFLOW_DOMINATOR: *least = *most = 3; return;
  case PLN_DATAFLOW_ALT: *least = *most = 2; return;
  case PLN_DATAFLOW_TUPLE_GET_ITEM:
  case PLN_DATAFLOW_TYPE:
  case PLN_DATAFLOW_DTYPE:
  case PLN_DATAFLOW_SHAPE:
  case PLN_DATAFLOW_ATTR: return;
  case PLN_N_DATAFLOW_KINDS: break;
  }
}

static pln_status check_row(const pln_dataflow_pattern *p, uint32_t at) {
  const pln_dataflow_node *n = &p->nodes[at];
  uint32_t least, most;
  operand_range(n, &least, &most);
  bool valid = n->count >= least && n->count <= most &&
               (n->kind != PLN_DATAFLOW_EXPR || n->expr);
  for (uint32_t i = 0; i < n->count; i++)
    valid = valid && pln_dataflow_operand(p, at, i) < p->n;
  if (valid)
    return PLN_OK;
  return pln_diag_error(p->engine, PLN_ERR_ARGUMENT, NULL,
                        "row %u of a dataflow pattern ('%s') is malformed",
                        at + 1,
                        pln_dataflow_kind_name((pln_dataflow_kind)n->kind));
}

/* ---------------------------------------------------------------- recursion */

/* A depth-first walk over operands. */
typedef struct pattern_walk {
  uint32_t *stack; /* nodes, and the number of their next operand */
  uint32_t *next;
  uint8_t *state;
} pattern_walk;

enum { UNSEEN, OPEN, DONE };

/* Marks the wildcards of the cycle that an edge from the top of the stack to
 * `back` closes. A cycle without one cannot be matched. */
static pln_status mark_recursive_path(pln_dataflow_pattern *p,
                                      const pattern_walk *w, uint32_t top,
                                      uint32_t back) {
  bool found = false;
  do {
    pln_dataflow_node *n = &p->nodes[w->stack[--top]];
    found = found || n->kind == PLN_DATAFLOW_WILDCARD;
    n->recursive = n->kind == PLN_DATAFLOW_WILDCARD;
  } while (w->stack[top] != back);
  if (found)
    return PLN_OK;
  return pln_diag_error(p->engine, PLN_ERR_ARGUMENT, NULL,
                        "a dataflow pattern contains itself other than "
                        "through a wildcard");
}

static pln_status walk_operands(pln_dataflow_pattern *p, pattern_walk *w,
                                uint32_t root) {
  uint32_t top = 0;
  w->stack[top++] = root;
  w->state[root] = OPEN;
  while (top > 0) {
    uint32_t at = w->stack[top - 1];
    if (w->next[at] == p->nodes[at].count) {
      w->state[at] = DONE;
      top--;
      continue;
    }
    uint32_t operand = pln_dataflow_operand(p, at, w->next[at]++);
    if (w->state[operand] == OPEN)
      PLN_TRY(mark_recursive_path(p, w, top, operand));
    if (w->state[operand] != UNSEEN)
      continue;
    w->state[operand] = OPEN;
    w->stack[top++] = operand;
  }
  return PLN_OK;
}

static pln_status mark_recursion(pln_dataflow_pattern *p) {
  pln_engine *e = p->engine;
  size_t n = p->n;
  pattern_walk w = {.stack = pln_mem_new(e, n * sizeof *w.stack),
                    .next = pln_mem_zeroed(e, n * sizeof *w.next),
                    .state = pln_mem_zeroed(e, n)};
  pln_status status = w.stack && w.next && w.state ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK)
    status = walk_operands(p, &w, p->root);
  pln_mem_free(e, w.stack, n * sizeof *w.stack);
  pln_mem_free(e, w.next, n * sizeof *w.next);
  pln_mem_free(e, w.state, n);
  return status;
}

/* --------------------------------------------------------------- dominators */

/* Marks what `from` reaches without the parent of the dominator `without`, with
 * the bit `mark`. `stack` has room for each node. */
static void mark_reached(const pln_dataflow_pattern *p, uint32_t from,
                         uint32_t without, uint8_t mark, uint8_t *marks,
                         uint32_t *stack) {
  uint32_t top = 0;
  stack[top++] = from;
  marks[from] |= mark;
  while (top > 0) {
    uint32_t at = stack[--top];
    for (uint32_t i = at == without; i < p->nodes[at].count; i++) {
      uint32_t operand = pln_dataflow_operand(p, at, i);
      if (marks[operand] & mark)
        continue;
      marks[operand] |= mark;
      stack[top++] = operand;
    }
  }
}

/* Operators always match the same; what else the parent shares with the rest
 * makes a walk depend on what was bound before. */
static bool is_closed(const pln_dataflow_pattern *p, uint32_t dominator,
                      uint8_t *marks, uint32_t *stack) {
  memset(marks, 0, p->n);
  mark_reached(p, pln_dataflow_operand(p, dominator, 0), PLN_NONE, 1, marks,
               stack);
  mark_reached(p, p->root, dominator, 2, marks, stack);
  for (uint32_t i = 0; i < p->n; i++)
    if (marks[i] == 3 && p->nodes[i].kind != PLN_DATAFLOW_OP)
      return false;
  return true;
}

static pln_status mark_dominators(pln_dataflow_pattern *p) {
  pln_engine *e = p->engine;
  size_t n = p->n;
  uint8_t *marks = pln_mem_new(e, n);
  uint32_t *stack = pln_mem_new(e, n * sizeof *stack);
  for (uint32_t i = 0; marks && stack && i < p->n; i++) {
    if (p->nodes[i].kind != PLN_DATAFLOW_DOMINATOR)
      continue;
    p->nodes[i].closed = is_closed(p, i, marks, stack);
    for (uint32_t k = 0; k < 2; k++)
      p->nodes[pln_dataflow_operand(p, i, k)].fuzzy = true;
  }
  pln_status status = marks && stack ? PLN_OK : pln_nomem(e);
  pln_mem_free(e, marks, n);
  pln_mem_free(e, stack, n * sizeof *stack);
  return status;
}

/* -------------------------------------------------------------- association */

/* The binary operator whose call the row matches; 0: none. */
static pln_op called_op(const pln_dataflow_pattern *p, uint32_t at) {
  const pln_dataflow_node *n = &p->nodes[at];
  if (n->kind != PLN_DATAFLOW_CALL || n->any_count || n->count != 3)
    return 0;
  const pln_dataflow_node *callee = &p->nodes[pln_dataflow_operand(p, at, 0)];
  return callee->kind == PLN_DATAFLOW_OP ? callee->data : 0;
}

static pln_status add_call(pln_dataflow_pattern *p, uint32_t callee, uint32_t a,
                           uint32_t b, uint32_t *out) {
  pln_dataflow_node call = {.kind = PLN_DATAFLOW_CALL, .hidden = true};
  uint32_t operands[3] = {callee, a, b};
  *out = p->n;
  return append_row(p, &call, 3, operands);
}

/* a * b / c is also (a / c) * b and (b / c) * a. The alternatives of a row are
 * adjacent. */
static pln_status associate_quotient(pln_dataflow_pattern *p, uint32_t at) {
  uint32_t product = pln_dataflow_operand(p, at, 1), quotients[2], outer;
  for (uint32_t i = 0; i < 2; i++)
    PLN_TRY(add_call(p, pln_dataflow_operand(p, at, 0),
                     pln_dataflow_operand(p, product, 1 + i),
                     pln_dataflow_operand(p, at, 2), &quotients[i]));
  p->nodes[at].alternative = p->n;
  for (uint32_t i = 0; i < 2; i++)
    PLN_TRY(add_call(p, pln_dataflow_operand(p, product, 0),
                     pln_dataflow_operand(p, product, 2 - i), quotients[i],
                     &outer));
  p->nodes[at].n_alternatives = 2;
  return PLN_OK;
}

/* a * (b / c) is also (a * b) / c. `i` tells which operand is the quotient. */
static pln_status associate_product(pln_dataflow_pattern *p, uint32_t at,
                                    uint32_t i) {
  uint32_t quotient = pln_dataflow_operand(p, at, 1 + i), inner, outer;
  uint32_t other = pln_dataflow_operand(p, at, 2 - i);
  uint32_t multiply = pln_dataflow_operand(p, at, 0);
  PLN_TRY(add_call(p, multiply, pln_dataflow_operand(p, quotient, 1), other,
                   &inner));
  PLN_TRY(add_call(p, pln_dataflow_operand(p, quotient, 0), inner,
                   pln_dataflow_operand(p, quotient, 2), &outer));
  p->nodes[at].alternative = outer;
  p->nodes[at].n_alternatives = 1;
  return PLN_OK;
}

static pln_status associate(pln_dataflow_pattern *p, uint32_t at) {
  pln_op multiply = pln_op_find(p->engine, pln_text("multiply"));
  pln_op divide = pln_op_find(p->engine, pln_text("divide"));
  pln_op op = called_op(p, at);
  if (!op || !multiply || !divide)
    return PLN_OK;
  if (op == divide && called_op(p, pln_dataflow_operand(p, at, 1)) == multiply)
    return associate_quotient(p, at);
  for (uint32_t i = 0; op == multiply && i < 2; i++)
    if (called_op(p, pln_dataflow_operand(p, at, 1 + i)) == divide)
      return associate_product(p, at, i);
  return PLN_OK;
}

/* --------------------------------------------------------------------- roots
 */

/* Adds the operators whose calls the row matches. False: it also matches other
 * nodes, or too many operators. */
static bool add_root_op(pln_dataflow_pattern *p, uint32_t at) {
  const pln_dataflow_node *n = &p->nodes[at];
  if (n->kind != PLN_DATAFLOW_CALL || p->n_root_ops == PLN_COUNT(p->root_ops))
    return false;
  const pln_dataflow_node *callee = &p->nodes[pln_dataflow_operand(p, at, 0)];
  if (callee->kind != PLN_DATAFLOW_OP || n->n_alternatives)
    return false;
  p->root_ops[p->n_root_ops++] = callee->data;
  return true;
}

/* Collects the operators of the root, if a call of few of them is all that it
 * matches. */
static void find_root_ops(pln_dataflow_pattern *p) {
  uint32_t stack[2 * PLN_DATAFLOW_MAX_ROOT_OPS], top = 0;
  bool known = true;
  stack[top++] = p->root;
  for (uint32_t steps = 0; known && top > 0; steps++) {
    uint32_t at = stack[--top];
    const pln_dataflow_node *n = &p->nodes[at];
    known = top + 2 <= PLN_COUNT(stack) && steps < 64;
    if (!known)
      break;
    switch ((pln_dataflow_kind)n->kind) {
    case PLN_DATAFLOW_ALT:
      stack[top++] = pln_dataflow_operand(p, at, 1);
      stack[top++] = pln_dataflow_operand(p, at, 0);
      break;
    case PLN_DATAFLOW_TYPE:
    case PLN_DATAFLOW_DTYPE:
    case PLN_DATAFLOW_SHAPE:
    case PLN_DATAFLOW_ATTR:
      stack[top++] = pln_dataflow_operand(p, at, 0);
      break;
    case PLN_DATAFLOW_DOMINATOR:
      stack[top++] = pln_dataflow_operand(p, at, 2);
      break;
    default: known = add_root_op(p, at); break;
    }
  }
  p->n_root_ops = known ? p->n_root_ops : 0;
}

pln_status pln_dataflow_finish(pln_dataflow_pattern *pattern, uint32_t root) {
  pln_dataflow_pattern *p = pattern;
  p->root = root;
  p->n_given = p->n;
  if (root >= p->n)
    return pln_diag_error(p->engine, PLN_ERR_ARGUMENT, NULL,
                          "a dataflow pattern has no such root");
  for (uint32_t i = 0; i < p->n; i++)
    PLN_TRY(check_row(p, i));
  PLN_TRY(mark_recursion(p));
  for (uint32_t i = 0; i < p->n_given; i++)
    PLN_TRY(associate(p, i));
  find_root_ops(p);
  return mark_dominators(p);
}
