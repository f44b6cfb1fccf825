/* parallel_branches.c: finds groups of parallel branches and replaces each by
 * one computation. Called by the passes that combine calls of one operator.
 *
 * A group replaces the calls of its last level, at the place of the first of
 * them. What the other branches need may be computed after that place; then the
 * graph is first laid out in an order in which it is not (parallel_order.c). A
 * group whose operands depend on its own results is left alone.
 *
 * Invariants: branches are in the order in which TVM visits them, operands
 * first; the calls of a group are in one scope; a call belongs to the last
 * level of one group at most.
 *
 * Semantics: TVM ParallelOpCombiner. TVM aborts or computes something else for
 * some operators behind the calls (broadcast_to, nn.bias_add of stacked
 * tensors, extents that are not known); those end a branch here. */

#include "transform/combine/parallel_branches.h"

#include "op/infer/infer.h"
#include "transform/combine/parallel_order.h"
#include "transform/fuse/fuse_pattern.h"

typedef struct branch_finder {
  pln_engine *engine;
  const pln_graph *graph;
  const pln_branch_kind *kind;
  pln_arena arena;
  pln_scope *node_scope;
  uint32_t *n_users; /* by node: calls that use it, as TVM counts them */
  pln_ref *user;     /* by node: the last of those */
  uint32_t n_calls;
  pln_ref *calls;       /* compatible with others perhaps, in order of visits */
  uint32_t *call_group; /* by call: its group */
  uint32_t n_groups;
  pln_branch_group *groups;
  pln_group_parts parts;
  pln_ref *fields;
  int64_t combined;
} branch_finder;

/* ---------------------------------------------------------------- questions */

pln_dim pln_branch_extent(const pln_graph *graph, pln_ref node, int32_t axis) {
  pln_type type = graph->nodes[node].type;
  return axis >= 0 && axis < pln_type_rank(graph->engine, type)
             ? pln_type_dims(graph->engine, type)[axis]
             : PLN_DIM_UNKNOWN;
}

bool pln_branch_alike(const pln_graph *graph, pln_ref a, pln_ref b,
                      int32_t but) {
  const pln_engine *e = graph->engine;
  pln_type x = graph->nodes[a].type, y = graph->nodes[b].type;
  int32_t rank = pln_type_rank(e, x);
  if (rank < 0 || rank != pln_type_rank(e, y) || !pln_type_dtype(e, x) ||
      pln_type_dtype(e, x) != pln_type_dtype(e, y))
    return false;
  for (int32_t i = 0; i < rank; i++)
    if (i != but && (pln_type_dims(e, x)[i] != pln_type_dims(e, y)[i] ||
                     pln_type_dims(e, x)[i] == PLN_DIM_UNKNOWN))
      return false;
  return true;
}

static bool is_seed(const branch_finder *f, pln_ref node) {
  const pln_node *n = &f->graph->nodes[node];
  return n->kind == PLN_CALL && n->data == f->kind->op && n->count == 2 &&
         pln_attrs_int(f->engine, n->attrs, "groups", 1) == 1;
}

/* -------------------------------------------------------------------- groups
 */

/* TVM does not count the weights of the calls that it may combine as uses. */
static pln_status visit_call(void *ud, const pln_graph *g, pln_ref node) {
  branch_finder *f = ud;
  const pln_node *n = &g->nodes[node];
  bool seed = is_seed(f, node);
  if (n->kind != PLN_CALL)
    return PLN_OK;
  if (seed)
    f->calls[f->n_calls++] = node;
  for (uint32_t i = pln_has_callee(n); i < (seed ? 1 : n->count); i++) {
    pln_ref operand = pln_operand(g, node, i);
    f->n_users[operand]++;
    f->user[operand] = node;
  }
  return PLN_OK;
}

/* Numbers the pairs of two numbers. */
static pln_status number_pair(pln_idmap *map, uint32_t a, uint32_t b,
                              uint32_t *count, uint32_t *out) {
  uint64_t key = (uint64_t)a << 32 | b;
  *out = pln_idmap_get(map, key);
  if (*out)
    return PLN_OK;
  *out = ++*count;
  return pln_idmap_set(map, key, *out);
}

typedef struct group_keys {
  pln_idmap *keys, *groups;
  uint32_t n_keys;
} group_keys;

/* Calls are in one group if operand 0, scope and key are the same. */
static pln_status find_group(branch_finder *f, group_keys *k, uint32_t call) {
  pln_ref node = f->calls[call];
  pln_attrs attrs;
  pln_type type;
  uint32_t key;
  f->call_group[call] = 0;
  if (f->graph->nodes[node].flags & PLN_NODE_KEEP)
    return PLN_OK;
  PLN_TRY(f->kind->key(f->graph, node, &attrs, &type));
  int32_t axis = f->kind->axis(f->graph, node);
  if (!type || !PLN_DIM_IS_CONST(pln_branch_extent(f->graph, node, axis)))
    return PLN_OK;
  PLN_TRY(number_pair(k->keys, attrs, type, &k->n_keys, &key));
  PLN_TRY(number_pair(k->keys, key | UINT32_C(1) << 31, f->node_scope[node],
                      &k->n_keys, &key));
  return number_pair(k->groups, pln_operand(f->graph, node, 0), key,
                     &f->n_groups, &f->call_group[call]);
}

static pln_status number_groups(branch_finder *f) {
  group_keys k = {0};
  pln_status status = pln_idmap_new(f->engine, &k.keys);
  if (status == PLN_OK)
    status = pln_idmap_new(f->engine, &k.groups);
  for (uint32_t i = 0; status == PLN_OK && i < f->n_calls; i++)
    status = find_group(f, &k, i);
  pln_idmap_free(k.keys);
  pln_idmap_free(k.groups);
  return status;
}

/* A level behind the group's last; NULL when out of memory. */
static pln_branch_level *new_level(branch_finder *f,
                                   const pln_branch_group *g) {
  pln_branch_level *level = pln_arena_new(&f->arena, sizeof *level);
  if (!level)
    return NULL;
  *level = (pln_branch_level){.before = g->last};
  level->nodes = pln_arena_new(&f->arena, g->n * sizeof *level->nodes);
  return level->nodes ? level : NULL;
}

static void add_level(pln_branch_group *g, pln_branch_level *level) {
  if (g->last)
    g->last->next = level;
  else
    g->first = level;
  g->last = level;
}

static pln_status make_groups(branch_finder *f) {
  size_t size = (f->n_groups + (size_t)1) * sizeof *f->groups;
  f->groups = pln_arena_new(&f->arena, size);
  if (!f->groups)
    return pln_nomem(f->engine);
  memset(f->groups, 0, size);
  for (uint32_t i = 0; i < f->n_calls; i++)
    f->groups[f->call_group[i]].n++;
  for (uint32_t i = 1; i <= f->n_groups; i++) {
    pln_branch_level *level = new_level(f, &f->groups[i]);
    if (!level)
      return pln_nomem(f->engine);
    add_level(&f->groups[i], level);
    f->groups[i].n = 0;
  }
  for (uint32_t i = 0; i < f->n_calls; i++) {
    pln_branch_group *g = &f->groups[f->call_group[i]];
    if (!f->call_group[i])
      continue;
    g->first->axis = f->kind->axis(f->graph, f->calls[i]);
    g->first->nodes[g->n++] = f->calls[i];
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- levels
 */

/* True if the operands are broadcast to the shape of the result, in which each
 * element is computed of those at its place. */
static bool is_pointwise(const pln_engine *e, const pln_node *n) {
  const pln_op_info *op = pln_op_row(e, n->data);
  return n->count == 1
             ? op->traits & PLN_TRAIT_ELEMENTWISE
             : op->infer == pln_infer_broadcast || n->data == PLN_OP_WHERE ||
                   n->data == PLN_OP_BIAS_ADD;
}

/* The axis of the call's result that the parent's `axis` becomes; -1 if the
 * parts of the result are not the results of the parts. */
static int32_t axis_behind(const pln_graph *g, pln_ref call, uint32_t parent,
                           int32_t axis) {
  const pln_engine *e = g->engine;
  const pln_node *n = &g->nodes[call];
  int32_t rank = pln_type_rank(e, n->type);
  int32_t from = pln_type_rank(e, g->nodes[pln_operand(g, call, parent)].type);
  if (n->data == PLN_OP_UNSQUEEZE) {
    const pln_attr *axes = pln_attrs_find(e, n->attrs, "axes");
    if (n->count != 1 || !axes || axes->kind != PLN_ATTR_INTS ||
        axes->count != 1)
      return -1;
    int64_t at = axes->v.ints[0] + (axes->v.ints[0] < 0 ? from + 1 : 0);
    return axis >= at ? axis + rank - from : axis;
  }
  return is_pointwise(e, n) ? axis + rank - from : -1;
}

/* The vector of nn.bias_add lies along its own axis, not along the last one. */
static bool is_aligned(const pln_graph *g, pln_ref call, int32_t axis) {
  const pln_node *n = &g->nodes[call];
  int64_t own = pln_attrs_int(g->engine, n->attrs, "axis", 1);
  return n->data != PLN_OP_BIAS_ADD || axis == own ||
         axis == own + pln_type_rank(g->engine, n->type);
}

/* The call behind that goes on with a branch, or PLN_NONE. */
static pln_ref call_behind(const branch_finder *f, pln_ref node) {
  pln_ref user = f->user[node];
  const pln_graph *g = f->graph;
  if (f->n_users[node] != 1)
    return PLN_NONE;
  const pln_node *n = &g->nodes[user];
  return n->kind == PLN_CALL && n->data && !n->results &&
                 n->count <= PLN_BRANCH_MAX_ARGS &&
                 pln_type_rank(f->engine, n->type) <= PLN_BRANCH_MAX_AXES &&
                 !(n->flags & (PLN_NODE_KEEP | PLN_NODE_EFFECT)) &&
                 f->node_scope[user] == f->node_scope[node] &&
                 pln_fuse_trait_of(f->engine, n->data).pattern <=
                     PLN_FUSE_BROADCAST
             ? user
             : PLN_NONE;
}

static uint32_t operand_index(const pln_graph *g, pln_ref call, pln_ref x) {
  uint32_t i = 0;
  while (i < g->nodes[call].count && pln_operand(g, call, i) != x)
    i++;
  return i;
}

/* True if branch `j` of the level does what branch 0 does, with operands that
 * can be combined. */
static bool branch_fits(const branch_finder *f, const pln_branch_level *level,
                        uint32_t j) {
  const pln_graph *g = f->graph;
  pln_ref call = level->nodes[j], parent = level->before->nodes[j];
  const pln_node *n = &g->nodes[call], *like = &g->nodes[level->nodes[0]];
  int32_t rank = pln_type_rank(g->engine, n->type);
  if (n->data != like->data || n->attrs != like->attrs ||
      n->count != like->count || level->parent >= n->count ||
      pln_operand(g, call, level->parent) != parent || level->axis < 0 ||
      axis_behind(g, call, level->parent, level->before->axis) != level->axis ||
      pln_branch_extent(g, call, level->axis) !=
          pln_branch_extent(g, parent, level->before->axis))
    return false;
  if (f->kind->stacks
          ? n->data == PLN_OP_BIAS_ADD ||
                rank != pln_type_rank(g->engine, g->nodes[parent].type)
          : !is_aligned(g, call, level->axis))
    return false;
  for (uint32_t i = 0; i < n->count; i++)
    if (i != level->parent && !f->kind->fits(g, level, i, j))
      return false;
  return true;
}

/* *more: every branch goes on with a call that can be combined. */
static pln_status grow_group(branch_finder *f, pln_branch_group *g,
                             bool *more) {
  pln_branch_level *level = new_level(f, g);
  if (!level)
    return pln_nomem(f->engine);
  *more = false;
  for (uint32_t j = 0; j < g->n; j++) {
    level->nodes[j] = call_behind(f, g->last->nodes[j]);
    if (level->nodes[j] == PLN_NONE)
      return PLN_OK;
  }
  level->parent = operand_index(f->graph, level->nodes[0], g->last->nodes[0]);
  level->axis =
      axis_behind(f->graph, level->nodes[0], level->parent, g->last->axis);
  for (uint32_t j = 0; j < g->n; j++)
    if (!branch_fits(f, level, j))
      return PLN_OK;
  add_level(g, level);
  *more = true;
  return PLN_OK;
}

/* --------------------------------------------------------------------- sweep
 */

static pln_status build_group(branch_finder *f, pln_rewrite *rw,
                              pln_branch_group *g) {
  pln_branch_build build = {.old = f->graph, .group = g, .fields = f->fields};
  PLN_TRY(pln_relay_begin(&build.r, rw));
  pln_ref *parts = pln_arena_new(&f->arena, g->n * sizeof *parts);
  if (!parts)
    return pln_nomem(f->engine);
  pln_ref combined = f->kind->combine(&build);
  for (const pln_branch_level *l = g->first->next; l; l = l->next) {
    const pln_node n = f->graph->nodes[l->nodes[0]];
    pln_ref args[PLN_BRANCH_MAX_ARGS];
    for (uint32_t i = 0; i < n.count; i++)
      args[i] = i == l->parent ? combined : f->kind->operand(&build, l, i);
    combined = pln_relay_call_core(&build.r, n.data, n.attrs, n.count, args);
  }
  f->kind->take_parts(&build, combined, parts);
  PLN_TRY(pln_relay_status(&build.r));
  g->parts = parts;
  f->combined++;
  return PLN_OK;
}

static pln_status combine_node(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  branch_finder *f = ud;
  uint32_t number = f->parts.group_of[old];
  pln_branch_group *g = &f->groups[number];
  bool allowed;
  if (!number)
    return PLN_OK;
  if (old == g->lead) {
    PLN_TRY(pln_rewrite_apply(rw, "combine", &allowed));
    if (allowed)
      PLN_TRY(build_group(f, rw, g));
  }
  if (g->parts)
    *node = g->parts[f->parts.branch_of[old]];
  return PLN_OK;
}

/* ---------------------------------------------------------------------- pass
 */

static pln_status begin_finder(branch_finder *f) {
  size_t n = f->graph->n_nodes;
  pln_arena_init(&f->arena, f->engine);
  f->node_scope = pln_arena_new(&f->arena, n * sizeof *f->node_scope);
  f->n_users = pln_arena_new(&f->arena, n * sizeof *f->n_users);
  f->user = pln_arena_new(&f->arena, n * sizeof *f->user);
  f->calls = pln_arena_new(&f->arena, n * sizeof *f->calls);
  f->call_group = pln_arena_new(&f->arena, n * sizeof *f->call_group);
  f->fields = pln_arena_new(&f->arena, n * sizeof *f->fields);
  f->parts.group_of = pln_arena_new(&f->arena, n * sizeof(uint32_t));
  f->parts.branch_of = pln_arena_new(&f->arena, n * sizeof(uint32_t));
  if (!f->node_scope || !f->n_users || !f->user || !f->calls ||
      !f->call_group || !f->fields || !f->parts.group_of || !f->parts.branch_of)
    return pln_nomem(f->engine);
  memset(f->n_users, 0, n * sizeof *f->n_users);
  memset(f->parts.group_of, 0, n * sizeof(uint32_t));
  pln_graph_node_scopes(f->graph, f->node_scope);
  return PLN_OK;
}

static pln_status find_groups(branch_finder *f, uint64_t least, bool *any) {
  PLN_TRY(pln_walk_post_order(f->graph, f->graph->root, visit_call, f));
  PLN_TRY(number_groups(f));
  PLN_TRY(make_groups(f));
  *any = false;
  for (uint32_t i = 1; i <= f->n_groups; i++) {
    bool more = f->groups[i].n >= least;
    f->groups[i].applied = more;
    *any |= more;
    while (more)
      PLN_TRY(grow_group(f, &f->groups[i], &more));
  }
  return PLN_OK;
}

/* Combines what it can. *reordered is set instead of *out if the graph has to
 * be laid out in another order first. */
static pln_status combine_groups(pln_pass_run *run, branch_finder *f,
                                 pln_graph **reordered, pln_graph **out) {
  bool any;
  PLN_TRY(begin_finder(f));
  PLN_TRY(find_groups(f, (uint64_t)pln_run_int(run, "min_num_branches"), &any));
  if (!any)
    return PLN_OK;
  f->parts.groups = f->groups;
  f->parts.n_groups = f->n_groups;
  PLN_TRY(pln_parallel_order(f->graph, f->node_scope, &f->parts, reordered));
  pln_mutator m = {.ud = f, .visit = combine_node, .keeps_types = true};
  return *reordered ? PLN_OK : pln_graph_rewrite(f->graph, &m, out);
}

static pln_status combine_once(pln_pass_run *run, const pln_branch_kind *kind,
                               const pln_graph *graph, pln_graph **reordered,
                               pln_graph **out) {
  branch_finder f = {
      .engine = pln_run_engine(run), .graph = graph, .kind = kind};
  pln_status status = combine_groups(run, &f, reordered, out);
  pln_arena_free(&f.arena);
  if (status == PLN_OK && f.combined)
    status = pln_run_count(run, "combined", f.combined);
  return status;
}

pln_status pln_combine_branches(pln_pass_run *run,
                                const pln_branch_kind *kind) {
  const pln_graph *graph = pln_run_function(run);
  pln_graph *reordered = NULL, *again = NULL, *out = NULL;
  PLN_TRY(combine_once(run, kind, graph, &reordered, &out));
  if (reordered) {
    pln_status status = combine_once(run, kind, reordered, &again, &out);
    bool unchanged = out == reordered;
    pln_graph_release(reordered);
    pln_graph_release(again);
    if (status != PLN_OK || unchanged) {
      pln_graph_release(out);
      return status;
    }
  }
  if (out)
    pln_run_set_function(run, out);
  return PLN_OK;
}

/* ------------------------------------------------------------------ building
 */

pln_ref pln_branch_concatenate(pln_branch_build *build,
                               const pln_branch_level *level, uint32_t arg,
                               int64_t axis) {
  const pln_relay_attr attr = pln_relay_int("axis", axis);
  for (uint32_t j = 0; j < build->group->n; j++)
    build->fields[j] = pln_rewrite_image(
        build->r.rw, pln_operand(build->old, level->nodes[j], arg));
  pln_ref tuple = pln_relay_tuple(&build->r, build->group->n, build->fields);
  return pln_relay_call_with(&build->r, PLN_OP_CONCAT, 1, &attr, 1, &tuple);
}

int64_t pln_branch_total(const pln_branch_build *build) {
  const pln_branch_level *level = build->group->first;
  int64_t total = 0;
  for (uint32_t j = 0; j < build->group->n; j++)
    total += pln_branch_extent(build->old, level->nodes[j], level->axis);
  return total;
}

void pln_branch_slice(pln_branch_build *build, pln_ref combined,
                      uint32_t n_axes, pln_ref *parts) {
  const pln_branch_level *level = build->group->last;
  int64_t begin[PLN_BRANCH_MAX_AXES], end[PLN_BRANCH_MAX_AXES];
  int64_t strides[PLN_BRANCH_MAX_AXES];
  for (uint32_t i = 0; i < n_axes; i++) {
    begin[i] = 0;
    end[i] = -1;
    strides[i] = 1;
  }
  end[level->axis] = 0;
  for (uint32_t j = 0; j < build->group->n; j++) {
    begin[level->axis] += end[level->axis];
    end[level->axis] =
        pln_branch_extent(build->old, level->nodes[j], level->axis);
    const pln_relay_attr attrs[] = {
        pln_relay_ints("begin", n_axes, begin),
        pln_relay_ints("end", n_axes, end),
        pln_relay_ints("strides", n_axes, strides),
        {"slice_mode", {.kind = PLN_ATTR_STRING, .v.s = pln_text("size")}}};
    parts[j] =
        pln_relay_call_with(&build->r, PLN_OP_SLICE, 4, attrs, 1, &combined);
  }
}
