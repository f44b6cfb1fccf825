/* lift_attr_scope.c: tir.LiftAttrScope: attributes of one key leave the
 * statements that they fill, and equal neighbours become one.
 *
 * Run by the executor. The option is the key. What an attribute says holds for
 * its whole body, so that only keys should be lifted that say nothing false of
 * what comes with it: an accelerator's scopes, for example.
 *
 *     for i in range(4):
 *         with T.attr(0, "k", 1): A[i] = 0
 *         with T.attr(0, "k", 1): B[i] = 0
 *     =>
 *     with T.attr(0, "k", 1):
 *         for i in range(4):
 *             A[i] = 0
 *             B[i] = 0
 *
 * Semantics: TVM's tir.LiftAttrScope. An attribute does not leave what makes
 * memory or binds what it names, nor a block, and stays if it reads memory. */

#include "lower/emit.h"
#include "lower/lower.h"

enum { MOST_FORBIDDEN = 4, MOST_OPERANDS = 64 };

typedef struct lifter {
  const pln_graph *g;
  pln_slice key;
  uint32_t depth; /* attributes of the key around */
  pln_ref lifted; /* out of the body just left; a node of the builder */
  pln_ref *items; /* the statements of a sequence */
  uint32_t cap;
} lifter;

static const pln_graph *built(const pln_stmt_rewrite *s) {
  return pln_stmt_builder(s)->graph;
}

static bool has_key(const lifter *x, const pln_graph *g, pln_ref stmt) {
  const pln_node *n = &g->nodes[stmt];
  return n->kind == PLN_ATTR_STMT && !pln_binds_thread(g, n) &&
         pln_slice_equal(pln_attrs_string(g->engine, n->attrs, "attr_key", ""),
                         x->key);
}

/* ---------------------------------------------------------------- attributes
 */

static bool is_one_of(pln_ref ref, uint32_t n, const pln_ref *list) {
  while (n > 0)
    if (list[--n] == ref)
      return true;
  return false;
}

static bool stays(pln_kind kind) {
  return kind == PLN_BUFFER_LOAD || kind == PLN_PRODUCER_LOAD ||
         kind == PLN_PRIM_CALL;
}

/* True if node and value of a built attribute read no memory and have none of
 * the variables; those of many operands are assumed to. */
static bool is_free_of(const pln_graph *g, pln_ref attr, uint32_t n_vars,
                       const pln_ref *vars) {
  pln_ref stack[MOST_OPERANDS] = {pln_operand(g, attr, 0),
                                  pln_operand(g, attr, 1)};
  uint32_t n = 2, seen = 0;
  for (; n > 0 && seen < MOST_OPERANDS; seen++) {
    pln_ref ref = stack[--n];
    const pln_node *node = &g->nodes[ref];
    if (is_one_of(ref, n_vars, vars) || stays((pln_kind)node->kind) ||
        node->count > MOST_OPERANDS - n)
      return false;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = pln_operand(g, ref, i);
  }
  return n == 0;
}

static bool is_same_operand(const pln_graph *g, pln_ref p, pln_ref q) {
  const pln_node *m = &g->nodes[p], *n = &g->nodes[q];
  return p == q || (m->kind == n->kind && m->type == n->type &&
                    m->data == n->data && m->attrs == n->attrs &&
                    (m->kind == PLN_INT_IMM || m->kind == PLN_STRING_IMM));
}

/* Both are attributes of the key that say the same. */
static bool is_same(const lifter *x, const pln_graph *g, pln_ref p, pln_ref q) {
  return has_key(x, g, p) && has_key(x, g, q) && is_free_of(g, p, 0, NULL) &&
         is_same_operand(g, pln_operand(g, p, 0), pln_operand(g, q, 0)) &&
         is_same_operand(g, pln_operand(g, p, 1), pln_operand(g, q, 1));
}

static pln_ref body_of(const pln_graph *g, pln_ref attr) {
  return g->scopes[g->nodes[attr].data].result;
}

/* The attribute around another statement. */
static pln_status wrap(pln_stmt_rewrite *s, pln_ref attr, pln_ref stmt,
                       pln_ref *out) {
  const pln_graph *g = built(s);
  pln_ref operands[2] = {pln_operand(g, attr, 0), pln_operand(g, attr, 1)};
  pln_prim spec = {.kind = PLN_ATTR_STMT,
                   .n = 2,
                   .operands = operands,
                   .attrs = g->nodes[attr].attrs};
  pln_body body = {.stmt = stmt};
  return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &body, out);
}

/* ---------------------------------------------------------------- neighbours
 */

/* One attribute around the bodies of items [begin, end), which are the same. */
static pln_status merge(lifter *x, pln_stmt_rewrite *s, uint32_t begin,
                        uint32_t end, pln_ref *out) {
  pln_ref first = x->items[begin], body;
  for (uint32_t i = begin; i < end; i++)
    x->items[i] = body_of(built(s), x->items[i]);
  PLN_TRY(pln_stmt_seq(s, end - begin, x->items + begin, &body));
  return wrap(s, first, body, out);
}

static pln_status merge_runs(lifter *x, pln_stmt_rewrite *s, uint32_t n,
                             pln_ref *body) {
  uint32_t kept = 0;
  for (uint32_t begin = 0, end; begin < n; begin = end) {
    pln_ref item = x->items[begin];
    for (end = begin + 1; end < n && is_same(x, built(s), item, x->items[end]);)
      end++;
    if (end > begin + 1)
      PLN_TRY(merge(x, s, begin, end, &item));
    x->items[kept++] = item;
  }
  return kept == n ? PLN_OK : pln_stmt_seq(s, kept, x->items, body);
}

/* Equal neighbours of a sequence become one. */
static pln_status merge_neighbours(lifter *x, pln_stmt_rewrite *s,
                                   pln_ref *body) {
  const pln_graph *g = built(s);
  uint32_t n = g->nodes[*body].count;
  if (g->nodes[*body].kind != PLN_SEQ_STMT)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->items, &x->cap, n,
                       sizeof *x->items));
  for (uint32_t i = 0; i < n; i++)
    x->items[i] = pln_operand(g, *body, i);
  return merge_runs(x, s, n, body);
}

/* -------------------------------------------------------------------- leaving
 */

static uint32_t bodies_of(const pln_graph *g, pln_ref stmt) {
  uint32_t n = 0;
  for (pln_scope at = g->nodes[stmt].data; at != PLN_NONE; n++)
    at = g->scopes[at].next;
  return n;
}

static bool is_left(const pln_graph *g, pln_ref stmt) {
  switch ((pln_kind)g->nodes[stmt].kind) {
  case PLN_FOR:
  case PLN_WHILE:
  case PLN_LET_STMT:
  case PLN_ATTR_STMT:
  case PLN_ASSERT_STMT: return true;
  case PLN_IF_THEN_ELSE: return bodies_of(g, stmt) == 1;
  default: return false;
  }
}

/* The images of what the statement binds. */
static uint32_t bound_by(const lifter *x, pln_stmt_rewrite *s, pln_ref stmt,
                         pln_ref *vars) {
  const pln_node *n = &x->g->nodes[stmt];
  uint32_t count = 0, thread = n->kind == PLN_FOR ? 2 : 0;
  if (n->kind == PLN_FOR || n->kind == PLN_LET_STMT)
    vars[count++] = pln_stmt_image(s, pln_stmt_param(s, stmt, 0, 0));
  if ((n->kind == PLN_FOR && n->count > 2) ||
      (n->kind == PLN_ATTR_STMT && pln_binds_thread(x->g, n))) {
    pln_ref axis = pln_stmt_operand(s, thread);
    vars[count++] = axis;
    vars[count++] = pln_operand(built(s), axis, 0);
  }
  return count;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  lifter *x = ud;
  pln_ref vars[MOST_FORBIDDEN];
  (void)k;
  (void)again;
  if (x->depth > 0)
    return PLN_OK;
  PLN_TRY(merge_neighbours(x, s, body));
  if (!is_left(x->g, stmt) || !has_key(x, built(s), *body) ||
      !is_free_of(built(s), *body, bound_by(x, s, stmt, vars), vars))
    return PLN_OK;
  x->lifted = *body;
  *body = body_of(built(s), *body);
  return PLN_OK;
}

/* Both cases of a branch say the same. */
static pln_status leave_cases(lifter *x, pln_stmt_rewrite *s, pln_ref *node) {
  const pln_graph *g = built(s);
  pln_ref then = pln_stmt_body(s, 0), other = pln_stmt_body(s, 1);
  if (!is_same(x, g, then, other))
    return PLN_OK;
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref branch = pln_emit_if(&e, pln_stmt_operand(s, 0), body_of(g, then),
                               body_of(g, other));
  PLN_TRY(e.status);
  return wrap(s, then, branch, node);
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  lifter *x = ud;
  (void)s;
  (void)node;
  x->depth += has_key(x, x->g, stmt);
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  lifter *x = ud;
  pln_ref lifted = x->lifted, inner;
  x->lifted = PLN_NONE;
  x->depth -= has_key(x, x->g, stmt);
  if (x->depth == 0 && x->g->nodes[stmt].kind == PLN_IF_THEN_ELSE &&
      bodies_of(x->g, stmt) == 2)
    return leave_cases(x, s, node);
  if (lifted == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_stmt_rebuild(s, stmt, &inner));
  return wrap(s, lifted, inner, node);
}

pln_status pln_pass_tir_lift_attr_scope(pln_pass_run *run) {
  lifter x = {.g = pln_run_function(run),
              .key = pln_run_string(run, "attr_key"),
              .lifted = PLN_NONE};
  pln_stmt_mutator mutator = {.ud = &x,
                              .enter = enter_stmt,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  if (x.key.size == 0)
    return pln_diag_error(x.g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.LiftAttrScope: the option 'attr_key' is "
                          "missing");
  if (!pln_has_kind(x.g, PLN_ATTR_STMT))
    return PLN_OK;
  pln_status status = pln_lower_function(run, &mutator);
  pln_mem_free(x.g->engine, x.items, x.cap * sizeof *x.items);
  return status;
}
