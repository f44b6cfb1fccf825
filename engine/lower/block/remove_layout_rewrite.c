/* remove_layout_rewrite.c: tir.RemoveWeightLayoutRewriteBlock: what blocks put
 * into another layout is passed in that layout.
 *
 * Run by the executor. Tuning measures a program as it is when weights have
 * their layout already: a Block with the annotation
 * meta_schedule.layout_rewrite_preproc, which copies a parameter's Buffer into
 * another one, does nothing.
 *
 *     def main(B: T.Buffer((16, 16))):
 *         C = T.alloc_buffer((4, 16, 4))
 *         C[i // 4, j, i % 4] = B[i, j]     in such a Block
 *         =>
 *     def main(C: T.Buffer((4, 16, 4))):
 *         T.evaluate(0)                     in it
 *
 * Semantics: TVM's tir.RemoveWeightLayoutRewriteBlock, but that it refuses
 * weights that are constants of the function (AllocateConst): it has no index
 * maps of tensors. */

#include "lower/lower.h"

static const char key[] = "meta_schedule.layout_rewrite_preproc";

typedef enum rewrite_role { KEPT, COPY, FIELD, ALLOCATION } rewrite_role;

typedef struct layout_remover {
  const pln_graph *g;
  uint8_t *role;       /* by node */
  pln_ref *image;      /* by Buffer: what is passed instead, or PLN_NONE */
  bool *is_image;      /* by Buffer */
  uint32_t *elements;  /* by scope: statements */
  pln_scope *scope_of; /* by node */
} layout_remover;

/* ----------------------------------------------------------------------- plan
 */

static bool is_preproc(const pln_graph *g, pln_ref block) {
  const pln_attr *all =
      block != PLN_NONE && g->nodes[block].kind == PLN_BLOCK
          ? pln_attrs_find(g->engine, g->nodes[block].attrs, "annotations")
          : NULL;
  return all && all->kind == PLN_ATTR_DICT &&
         pln_attrs_int(g->engine, all->v.dict, key, 0) == 1;
}

static pln_status refuse(const layout_remover *x, pln_ref block,
                         const char *what) {
  return pln_diag_error(
      x->g->engine, PLN_ERR_ARGUMENT, NULL,
      "tir.RemoveWeightLayoutRewriteBlock: block '%s' %s",
      pln_attrs_string(x->g->engine, x->g->nodes[block].attrs, "name_hint", "")
          .data,
      what);
}

/* Whether the statement loads a Buffer at variables and stores it. */
static bool is_copy(const pln_graph *g, pln_ref stmt) {
  if (g->nodes[stmt].kind != PLN_BUFFER_STORE)
    return false;
  pln_ref load = pln_operand(g, stmt, 1);
  if (g->nodes[load].kind != PLN_BUFFER_LOAD)
    return false;
  for (uint32_t i = 1; i < g->nodes[load].count; i++)
    if (g->nodes[pln_operand(g, load, i)].kind != PLN_VAR)
      return false;
  return true;
}

static pln_status plan_block(layout_remover *x, pln_ref block) {
  const pln_graph *g = x->g;
  pln_scope scope = g->nodes[block].data;
  pln_ref copy = g->scopes[scope].result;
  if (x->elements[scope] != 1 || !is_copy(g, copy))
    return refuse(x, block, "is no single copy from a buffer's element");
  pln_ref from = pln_operand(g, pln_operand(g, copy, 1), 0);
  pln_ref to = pln_operand(g, copy, 0);
  if (x->image[from] != PLN_NONE && x->image[from] != to)
    return refuse(x, block, "is the second one of its buffer");
  x->image[from] = to;
  x->is_image[to] = true;
  x->role[copy] = COPY;
  return PLN_OK;
}

static bool is_field(pln_kind kind) {
  return kind == PLN_BLOCK_READS || kind == PLN_BLOCK_WRITES;
}

static void find_scopes(layout_remover *x) {
  const pln_graph *g = x->g;
  pln_scope_cursor at = {.graph = g};
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_kind kind = (pln_kind)g->nodes[ref].kind;
    pln_scope scope = pln_scope_cursor_at(&at, ref);
    x->scope_of[ref] = scope;
    if (pln_is_stmt(&g->nodes[ref]) && !is_field(kind))
      x->elements[scope]++;
    if (is_field(kind) && is_preproc(g, g->scopes[scope].owner))
      x->role[ref] = FIELD;
  }
}

/* What is passed was allocated, and what was passed is a parameter's. */
static void plan_buffers(layout_remover *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_ALLOC_BUFFER &&
        x->is_image[pln_operand(g, ref, 0)]) {
      x->role[ref] = ALLOCATION;
      x->is_image[pln_operand(g, ref, 0)] = false;
    }
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_BUFFER_BIND &&
        x->image[pln_operand(g, ref, 1)] != PLN_NONE)
      x->role[ref] = COPY;
}

static pln_status check_buffers(const layout_remover *x) {
  const pln_graph *g = x->g;
  bool *bound = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *bound);
  pln_status status = bound ? PLN_OK : pln_nomem(g->engine);
  for (pln_ref ref = 0; ref < g->n_nodes && status == PLN_OK; ref++)
    if (g->nodes[ref].kind == PLN_BUFFER_BIND)
      bound[pln_operand(g, ref, 1)] = true;
  for (pln_ref ref = 0; ref < g->n_nodes && status == PLN_OK; ref++) {
    pln_scope scope = x->scope_of[ref];
    if (g->nodes[ref].kind != PLN_BUFFER_STORE || x->role[ref] != COPY)
      continue;
    if (!bound[pln_operand(g, pln_operand(g, ref, 1), 0)])
      status = refuse(x, g->scopes[scope].owner,
                      "copies from a buffer that is no parameter");
    else if (x->is_image[pln_operand(g, ref, 0)])
      status = refuse(x, g->scopes[scope].owner,
                      "copies into a buffer that no block allocates");
  }
  pln_mem_free(g->engine, bound, g->n_nodes * sizeof *bound);
  return status;
}

static pln_status plan(layout_remover *x) {
  find_scopes(x);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (is_preproc(x->g, ref))
      PLN_TRY(plan_block(x, ref));
  plan_buffers(x);
  return check_buffers(x);
}

/* ------------------------------------------------------------------ rewriting
 */

static pln_status bind_image(layout_remover *x, pln_stmt_rewrite *s,
                             pln_ref bind, pln_ref *node) {
  pln_ref operands[2];
  pln_prim spec = {.kind = PLN_BUFFER_BIND, .n = 2, .operands = operands};
  for (uint32_t i = 0; i < 2; i++) {
    pln_ref old = pln_operand(x->g, bind, i);
    PLN_TRY(pln_stmt_map(s, i == 0 ? old : x->image[old], &operands[i]));
  }
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static pln_status enter(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                        pln_ref *node) {
  layout_remover *x = ud;
  pln_prim spec = {.kind = (pln_kind)x->g->nodes[stmt].kind};
  switch ((rewrite_role)x->role[stmt]) {
  case COPY:
    return spec.kind == PLN_BUFFER_BIND ? bind_image(x, s, stmt, node)
                                        : pln_stmt_no_op(s, node);
  case FIELD: return pln_build_prim(pln_stmt_builder(s), &spec, node);
  case ALLOCATION: *node = PLN_NO_STMT; return PLN_OK;
  default: return PLN_OK;
  }
}

static pln_status remove_blocks(layout_remover *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x, .enter = enter};
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes;
  x->role = pln_mem_zeroed(e, nodes);
  x->is_image = pln_mem_zeroed(e, nodes * sizeof *x->is_image);
  x->image = pln_mem_new(e, nodes * sizeof *x->image);
  x->scope_of = pln_mem_new(e, nodes * sizeof *x->scope_of);
  x->elements = pln_mem_zeroed(e, x->g->n_scopes * sizeof *x->elements);
  if (!x->role || !x->is_image || !x->image || !x->scope_of || !x->elements)
    return pln_nomem(e);
  memset(x->image, 0xff, nodes * sizeof *x->image);
  PLN_TRY(plan(x));
  return pln_lower_function(run, &mutator);
}

pln_status pln_pass_tir_remove_layout_rewrite(pln_pass_run *run) {
  layout_remover x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t nodes = x.g->n_nodes;
  bool found = false;
  for (pln_ref ref = 0; ref < nodes && !found; ref++)
    found = is_preproc(x.g, ref);
  if (!found)
    return PLN_OK;
  pln_status status = remove_blocks(&x, run);
  pln_mem_free(e, x.role, nodes);
  pln_mem_free(e, x.is_image, nodes * sizeof *x.is_image);
  pln_mem_free(e, x.image, nodes * sizeof *x.image);
  pln_mem_free(e, x.scope_of, nodes * sizeof *x.scope_of);
  pln_mem_free(e, x.elements, x.g->n_scopes * sizeof *x.elements);
  return status;
}
