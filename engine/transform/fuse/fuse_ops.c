/* fuse_ops.c: FuseOps: outlines groups of operators that one kernel can compute
 * into functions (TVM's relay.transform.FuseOps).
 *
 * Run by the executor, once per function. Requires a verified graph. Each group
 * (fuse_groups.c) becomes a function with the attribute Primitive, called at
 * the place of its last node. Its parameters are the operands from outside, in
 * order of use. Nothing is fused across scopes and lets, nothing with effects,
 * and no call with a function argument.
 *
 *     %0 = exp(%x); tanh(%0)   =>
 *     %0 = fn (%p0, Primitive=1) { %1 = exp(%p0); tanh(%1) }; %0(%x)
 *
 * Unlike TVM's, the walks are bounded, so time is linear. */

#include <stdio.h>

#include "transform/compile_target.h"
#include "transform/fuse/fuse_groups.h"
#include "transform/transform.h"

/* The group being outlined; the lists are reused for the next one. */
typedef struct outlined_function {
  pln_ref root;
  bool calls;    /* it has a call */
  bool reshapes; /* all that it does is reshape tensors */
  uint32_t n, cap_params, cap_args;
  pln_ref *params; /* nodes of the new function */
  pln_ref *args;   /* old nodes */
} outlined_function;

typedef struct fuser {
  pln_engine *engine;
  const pln_graph *old;
  pln_fuse_groups groups;
  bool link_params;
  pln_ref *same;  /* by node: itself, or the operand of a stop_fusion */
  pln_ref *head;  /* by last node of a group: its first node */
  pln_ref *next;  /* by node: the next one of its group */
  pln_ref *owner; /* by node: the last group that used it */
  /* By node: its image in that group, a node or argument index. */
  pln_ref *local;
  /* Of the search for inputs: its path, and by node the next operand. */
  pln_ref *path;
  uint32_t *at;
  outlined_function made;
  uint32_t cap_operands;
  pln_ref *operands;
  pln_attrs primitive, reshape, no_calls; /* of functions */
  int64_t functions;
} fuser;

/* ------------------------------------------------------------------- groups */

static bool in_group(fuser *f, pln_ref node, pln_ref root) {
  return pln_fuse_group_of(&f->groups, node) == root;
}

static void list_members(fuser *f) {
  memset(f->head, 0xff, f->old->n_nodes * sizeof *f->head);
  for (pln_ref ref = f->old->n_nodes; ref-- > 0;) {
    pln_ref root = pln_fuse_group_of(&f->groups, ref);
    f->next[ref] = f->head[root];
    f->head[root] = ref;
    f->owner[ref] = PLN_NONE;
  }
}

/* A stop_fusion is replaced by its operand. */
static void pass_stops(fuser *f) {
  const pln_graph *g = f->old;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    bool stops = n->kind == PLN_CALL && n->data && n->count == 1 &&
                 pln_fuse_trait_of(f->engine, n->data).stops;
    f->same[ref] = stops ? f->same[g->operands[n->first]] : ref;
  }
}

/* Returns true if the node becomes the call of a new function. */
static bool heads(fuser *f, pln_ref ref) {
  const pln_graph *g = f->old;
  const pln_node *n = &g->nodes[ref];
  if (f->groups.closed[f->groups.node_scope[ref]] || !in_group(f, ref, ref) ||
      n->flags & PLN_NODE_KEEP)
    return false;
  if (n->kind == PLN_TUPLE_GET_ITEM)
    return in_group(f, pln_operand(g, ref, 0), ref);
  return pln_fuse_computes(g, n);
}

/* -------------------------------------------------------------- the inputs */

/* Returns true for nodes that the new function can contain instead of taking
 * them as parameters. */
static bool is_inlined(const fuser *f, pln_ref node) {
  switch ((pln_kind)f->old->nodes[node].kind) {
  case PLN_ABSENT:
  case PLN_OP: return true;
  case PLN_CONSTANT: return f->link_params;
  default: return false;
  }
}

static pln_status need(fuser *f, pln_ref operand) {
  outlined_function *o = &f->made;
  pln_ref node = f->same[operand];
  if (in_group(f, node, o->root) || is_inlined(f, node) ||
      f->owner[node] == o->root)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(f->engine, (void **)&o->args, &o->cap_args,
                       (size_t)o->n + 1, sizeof *o->args));
  f->owner[node] = o->root;
  f->local[node] = o->n;
  o->args[o->n++] = node;
  o->reshapes &=
      pln_type_get_kind(f->engine, f->old->nodes[node].type) == PLN_TYPE_TENSOR;
  return PLN_OK;
}

static pln_status need_operands(fuser *f, pln_ref member) {
  const pln_node *n = &f->old->nodes[member];
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(need(f, f->old->operands[n->first + i]));
  return PLN_OK;
}

/* Finds the inputs of the group's nodes in post-order from its last node,
 * whatever the order in which passes have built them. */
static pln_status find_inputs_of_root(fuser *f) {
  const pln_graph *g = f->old;
  uint32_t top = 0;
  f->path[top++] = f->made.root;
  while (top > 0) {
    pln_ref m = f->path[top - 1];
    const pln_node *n = &g->nodes[m];
    if (f->at[m] == n->count) {
      PLN_TRY(need_operands(f, m));
      top--;
      continue;
    }
    pln_ref arg = f->same[g->operands[n->first + f->at[m]++]];
    if (in_group(f, arg, f->made.root) && f->at[arg] == 0)
      f->path[top++] = arg;
  }
  return PLN_OK;
}

static pln_status find_inputs(fuser *f) {
  const pln_graph *g = f->old;
  outlined_function *o = &f->made;
  o->n = 0;
  o->calls = false;
  o->reshapes = true;
  PLN_TRY(find_inputs_of_root(f));
  for (pln_ref m = f->head[o->root]; m != PLN_NONE; m = f->next[m]) {
    const pln_node *n = &g->nodes[m];
    if (n->kind == PLN_CALL) {
      o->calls = true;
      o->reshapes &= pln_fuse_trait_of(f->engine, n->data).reshapes;
    }
    PLN_TRY(need_operands(f, m));
  }
  return pln_mem_grow(f->engine, (void **)&o->params, &o->cap_params, o->n,
                      sizeof *o->params);
}

/* ----------------------------------------------------------------- outlining
 */

static pln_status add_params(fuser *f, pln_rewrite *rw, pln_builder *b) {
  outlined_function *o = &f->made;
  for (uint32_t i = 0; i < o->n; i++) {
    char name[16];
    pln_symbol symbol;
    int size = snprintf(name, sizeof name, "p%u", i);
    PLN_TRY(
        pln_symbol_intern(f->engine, (pln_slice){name, (size_t)size}, &symbol));
    pln_ref arg = pln_rewrite_image(rw, o->args[i]);
    PLN_TRY(pln_build_param(b, symbol, b->graph->nodes[arg].type, 0,
                            &o->params[i]));
  }
  return PLN_OK;
}

/* Copies a node into the new function. Types, values and attributes stay,
 * because the operands have the same types. */
static pln_status copy_fused_node(fuser *f, pln_builder *b, pln_ref old,
                                  uint32_t n, const pln_ref *operands) {
  pln_node node = f->old->nodes[old];
  pln_ref ref;
  b->origin = f->old->origin[old];
  PLN_TRY(pln_builder_append(b, &node, n, operands, &ref));
  b->graph->values[ref] = f->old->values[old];
  b->graph->typed_from[ref] = f->old->typed_from[old];
  uint8_t effect = node.flags & PLN_NODE_EFFECT;
  uint8_t *inside = &b->effects[b->node_scope[ref]];
  if (effect > *inside)
    *inside = effect;
  f->owner[old] = f->made.root;
  f->local[old] = ref;
  return PLN_OK;
}

static pln_status map_operand(fuser *f, pln_builder *b, pln_ref operand,
                              pln_ref *out) {
  const outlined_function *o = &f->made;
  pln_ref node = f->same[operand];
  if (in_group(f, node, o->root)) {
    *out = f->local[node];
    return PLN_OK;
  }
  if (!is_inlined(f, node)) {
    *out = o->params[f->local[node]];
    return PLN_OK;
  }
  if (f->owner[node] != o->root)
    PLN_TRY(copy_fused_node(f, b, node, 0, NULL));
  *out = f->local[node];
  return PLN_OK;
}

static pln_status copy_members(fuser *f, pln_builder *b) {
  const pln_graph *g = f->old;
  for (pln_ref m = f->head[f->made.root]; m != PLN_NONE; m = f->next[m]) {
    const pln_node *n = &g->nodes[m];
    PLN_TRY(pln_mem_grow(f->engine, (void **)&f->operands, &f->cap_operands,
                         n->count, sizeof *f->operands));
    for (uint32_t i = 0; i < n->count; i++)
      PLN_TRY(map_operand(f, b, g->operands[n->first + i], &f->operands[i]));
    PLN_TRY(copy_fused_node(f, b, m, n->count, f->operands));
  }
  return PLN_OK;
}

static pln_status call_function(fuser *f, pln_rewrite *rw, pln_builder *b,
                                pln_ref function, pln_ref *out) {
  outlined_function *o = &f->made;
  for (uint32_t i = 0; i < o->n; i++)
    o->params[i] = pln_rewrite_image(rw, o->args[i]);
  b->origin = f->old->origin[o->root];
  PLN_TRY(pln_build_apply(b, function, 0, 0, o->n, o->params, out));
  b->graph->values[*out] = f->old->values[o->root];
  return PLN_OK;
}

static pln_status outline_group(fuser *f, pln_rewrite *rw, pln_ref root,
                                pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(rw);
  pln_scope body;
  pln_ref function;
  if (!b)
    return PLN_ERR_NOMEM;
  f->made.root = root;
  f->functions++;
  PLN_TRY(find_inputs(f));
  PLN_TRY(pln_build_open(b, &body));
  PLN_TRY(add_params(f, rw, b));
  PLN_TRY(copy_members(f, b));
  PLN_TRY(pln_build_end(b, body, f->local[root], 0));
  PLN_TRY(pln_build_function(b, body,
                             !f->made.calls     ? f->no_calls
                             : f->made.reshapes ? f->reshape
                                                : f->primitive,
                             f->old->nodes[root].type, &function));
  return call_function(f, rw, b, function, out);
}

static pln_status fuse_node(void *ud, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  fuser *f = ud;
  bool allowed;
  pln_ref through = f->same[old];
  if (through != old && !f->groups.closed[f->groups.node_scope[old]]) {
    PLN_TRY(pln_rewrite_apply(rw, "pass_stop", &allowed));
    if (allowed)
      *node = pln_rewrite_image(rw, through);
    return PLN_OK;
  }
  if (!heads(f, old))
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "fuse", &allowed));
  return allowed ? outline_group(f, rw, old, node) : PLN_OK;
}

/* --------------------------------------------------------------------- pass */

static pln_status flag(pln_engine *e, const char *name, int64_t value,
                       pln_attr *out) {
  *out = (pln_attr){.kind = PLN_ATTR_INT, .v.i = value};
  return pln_symbol_intern(e, pln_text(name), &out->name);
}

static pln_status prepare_fuser(fuser *f) {
  pln_attr flags[2];
  size_t n = f->old->n_nodes;
  f->same = pln_mem_new(f->engine, n * sizeof *f->same);
  f->head = pln_mem_new(f->engine, n * sizeof *f->head);
  f->next = pln_mem_new(f->engine, n * sizeof *f->next);
  f->owner = pln_mem_new(f->engine, n * sizeof *f->owner);
  f->local = pln_mem_new(f->engine, n * sizeof *f->local);
  f->path = pln_mem_new(f->engine, (n + 1) * sizeof *f->path);
  f->at = pln_mem_zeroed(f->engine, n * sizeof *f->at);
  if (!f->same || !f->head || !f->next || !f->owner || !f->local || !f->path ||
      !f->at)
    return pln_nomem(f->engine);
  list_members(f);
  pass_stops(f);
  PLN_TRY(flag(f->engine, "Primitive", 0, &flags[0]));
  PLN_TRY(pln_attrs_make(f->engine, 1, flags, &f->no_calls));
  flags[0].v.i = 1;
  PLN_TRY(flag(f->engine, "relay.reshape_only", 1, &flags[1]));
  PLN_TRY(pln_attrs_make(f->engine, 1, flags, &f->primitive));
  return pln_attrs_make(f->engine, 2, flags, &f->reshape);
}

static void free_fuser(fuser *f) {
  size_t n = f->old->n_nodes;
  pln_mem_free(f->engine, f->same, n * sizeof *f->same);
  pln_mem_free(f->engine, f->head, n * sizeof *f->head);
  pln_mem_free(f->engine, f->next, n * sizeof *f->next);
  pln_mem_free(f->engine, f->owner, n * sizeof *f->owner);
  pln_mem_free(f->engine, f->local, n * sizeof *f->local);
  pln_mem_free(f->engine, f->path, (n + 1) * sizeof *f->path);
  pln_mem_free(f->engine, f->at, n * sizeof *f->at);
  pln_mem_free(f->engine, f->made.params,
               f->made.cap_params * sizeof *f->made.params);
  pln_mem_free(f->engine, f->made.args,
               f->made.cap_args * sizeof *f->made.args);
  pln_mem_free(f->engine, f->operands, f->cap_operands * sizeof *f->operands);
  pln_fuse_groups_free(&f->groups);
}

/* The most arguments of a function: the config's, if it says so, else the
 * target's. 0: any number. */
static uint32_t most_arguments(const pln_pass_run *run) {
  const pln_attr *given = pln_attrs_find(run->engine, run->context->config,
                                         "relay.FuseOps.max_function_args");
  return given ? (uint32_t)given->v.i
               : pln_run_target_count(run, "max_function_args");
}

pln_status pln_pass_fuse_ops(pln_pass_run *run) {
  fuser f = {.engine = pln_run_engine(run), .old = pln_run_function(run)};
  int64_t level = pln_run_int(run, "fuse_opt_level");
  pln_attr depth, link;
  PLN_TRY(pln_context_config_value(run->context, "relay.FuseOps.max_depth",
                                   &depth));
  PLN_TRY(pln_context_config_value(run->context, "relay.FuseOps.link_params",
                                   &link));
  f.link_params = link.v.i != 0;
  pln_status status = pln_fuse_groups_find(
      &f.groups, f.old, level < 0 ? run->context->opt_level : level,
      (uint32_t)depth.v.i, most_arguments(run));
  if (status == PLN_OK)
    status = prepare_fuser(&f);
  pln_mutator m = {.ud = &f, .visit = fuse_node};
  if (status == PLN_OK)
    status = pln_rewrite_function(run, &m);
  free_fuser(&f);
  if (status == PLN_OK && f.functions)
    status = pln_run_count(run, "functions", f.functions);
  return status;
}
