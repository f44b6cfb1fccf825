/* tree.c: see tree.h. Called by tree_ensemble.c.
 *
 * Nodes are numbered in the order of the attributes. A node is found by its
 * tree and number in a table sorted by both. The attributes may be hostile:
 * every reference is checked while reading, and a walk ends after as many steps
 * as there are nodes. */

#include "op/kernel/ml/tree.h"

#include <stdio.h>
#include <stdlib.h>

/* -------------------------------------------------------------------- reading
 */

/* `n` zeroed elements, owned by the composition. */
static void *new_array(pln_composition *s, size_t n, size_t size) {
  int64_t dims[1] = {(int64_t)(n * size)};
  pln_tensor *t = NULL;
  if (s->status == PLN_OK)
    s->status = pln_tensor_new(s->call->engine, PLN_UINT8, 1, dims, &t);
  return pln_compose_own(s, t) ? pln_tensor_writable(t) : NULL;
}

static void refuse_attribute(pln_composition *s, const char *name,
                             size_t count) {
  if (s->status == PLN_OK)
    s->status = pln_kernel_refuse(
        s->call, "attribute %s does not match the others: it has %zu elements",
        name, count);
}

/* A list with an element a node, or none if it may be omitted. */
static pln_ml_list node_ints(pln_composition *s, const char *name, size_t n,
                             bool optional) {
  pln_ml_list list = pln_ml_ints(s->call, name);
  if (list.count != n && !(optional && list.count == 0))
    refuse_attribute(s, name, list.count);
  return list;
}

static bool read_mode(pln_slice name, uint8_t *out) {
  static const char *const names[] = {
      "BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
      "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    if (pln_slice_is(name, names[i])) {
      *out = (uint8_t)i;
      return i != PLN_TREE_MEMBER;
    }
  return false;
}

static bool check_member_count(size_t n) {
  return n < UINT32_MAX;
}

static void allocate(pln_composition *s, size_t nodes, size_t weights,
                     size_t roots, pln_trees *out) {
  if (!check_member_count(nodes) || !check_member_count(weights))
    pln_composition_refuse(s, "there are too many nodes");
  out->n_nodes = nodes;
  out->n_weights = weights;
  out->nodes = new_array(s, nodes, sizeof *out->nodes);
  out->weights = new_array(s, weights, sizeof *out->weights);
  out->roots = new_array(s, roots, sizeof *out->roots);
}

/* ------------------------------------------------------- nodes by their names
 */

typedef struct node_key {
  int64_t tree, id;
  uint32_t node;
} node_key;

static int compare_keys(const void *a, const void *b) {
  const node_key *x = a, *y = b;
  if (x->tree != y->tree)
    return x->tree < y->tree ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

static node_key *sort_keys(pln_composition *s, const pln_ml_list *trees,
                           const pln_ml_list *ids) {
  node_key *keys = new_array(s, trees->count, sizeof *keys);
  for (size_t i = 0; keys && i < trees->count; i++)
    keys[i] = (node_key){trees->ints[i], ids->ints[i], (uint32_t)i};
  if (keys && trees->count)
    qsort(keys, trees->count, sizeof *keys, compare_keys);
  return keys;
}

static bool find_node(const node_key *keys, size_t n, int64_t tree, int64_t id,
                      uint32_t *out) {
  node_key wanted = {tree, id, 0};
  const node_key *found =
      n ? bsearch(&wanted, keys, n, sizeof *keys, compare_keys) : NULL;
  if (found)
    *out = found->node;
  return found != NULL;
}

/* ------------------------------------------------------------------ branches
 */

typedef struct node_lists {
  pln_ml_list trees, ids, features, yes, no, missing, modes, splits;
} node_lists;

static bool read_lists(pln_composition *s, node_lists *l) {
  l->trees = pln_ml_ints(s->call, "nodes_treeids");
  size_t n = l->trees.count;
  l->ids = node_ints(s, "nodes_nodeids", n, false);
  l->features = node_ints(s, "nodes_featureids", n, false);
  l->yes = node_ints(s, "nodes_truenodeids", n, false);
  l->no = node_ints(s, "nodes_falsenodeids", n, false);
  l->missing = node_ints(s, "nodes_missing_value_tracks_true", n, true);
  l->modes = pln_ml_strings(s->call, "nodes_modes");
  l->splits = pln_ml_floats(s, "nodes_values");
  if (l->modes.count != n)
    refuse_attribute(s, "nodes_modes", l->modes.count);
  if (l->splits.count != n)
    refuse_attribute(s, "nodes_values", l->splits.count);
  return s->status == PLN_OK;
}

static void read_node(pln_composition *s, const node_lists *l,
                      const node_key *keys, size_t i, pln_tree_node *node) {
  size_t n = l->trees.count;
  *node = (pln_tree_node){.split = l->splits.floats[i],
                          .feature = l->features.ints[i],
                          .missing_is_true =
                              l->missing.count && l->missing.ints[i] != 0};
  pln_slice mode = l->modes.strings[i];
  if (!read_mode(mode, &node->mode) && s->status == PLN_OK)
    s->status =
        pln_kernel_refuse(s->call, "node %zu has mode '%.*s'", i,
                          (int)(mode.size < 64 ? mode.size : 64), mode.data);
  if (node->mode == PLN_TREE_TERMINAL || s->status != PLN_OK)
    return;
  if (!find_node(keys, n, l->trees.ints[i], l->yes.ints[i], &node->yes) ||
      !find_node(keys, n, l->trees.ints[i], l->no.ints[i], &node->no))
    s->status = pln_kernel_refuse(
        s->call, "node %lld of tree %lld leads to a node that does not exist",
        (long long)l->ids.ints[i], (long long)l->trees.ints[i]);
}

/* -------------------------------------------------------------------- weights
 */

typedef struct weight_lists {
  pln_ml_list trees, nodes, targets, values;
} weight_lists;

static bool read_weight_lists(pln_composition *s, const char *prefix,
                              weight_lists *l) {
  char name[32];
  snprintf(name, sizeof name, "%s_weights", prefix);
  l->values = pln_ml_floats(s, name);
  size_t n = l->values.count;
  snprintf(name, sizeof name, "%s_treeids", prefix);
  l->trees = node_ints(s, name, n, false);
  snprintf(name, sizeof name, "%s_nodeids", prefix);
  l->nodes = node_ints(s, name, n, false);
  snprintf(name, sizeof name, "%s_ids", prefix);
  l->targets = node_ints(s, name, n, false);
  return s->status == PLN_OK;
}

/* Finds the leaf of each weight, and counts the weights of each leaf. */
static uint32_t *find_terminals(pln_composition *s, const weight_lists *l,
                                const node_key *keys, int64_t targets,
                                pln_trees *t) {
  uint32_t *terminals = new_array(s, l->values.count, sizeof *terminals);
  for (size_t i = 0; terminals && i < l->values.count; i++) {
    if (l->targets.ints[i] < 0 || l->targets.ints[i] >= targets ||
        !find_node(keys, t->n_nodes, l->trees.ints[i], l->nodes.ints[i],
                   &terminals[i])) {
      s->status = pln_kernel_refuse(
          s->call, "weight %zu belongs to target %lld of %lld, or to no node",
          i, (long long)l->targets.ints[i], (long long)targets);
      return NULL;
    }
    t->nodes[terminals[i]].count++;
  }
  return terminals;
}

/* Puts the weights of a leaf side by side, in their order. */
static void place_weights(const weight_lists *l, const uint32_t *terminals,
                          pln_trees *t) {
  uint32_t at = 0;
  for (size_t i = 0; i < t->n_nodes; i++) {
    t->nodes[i].first = at;
    at += t->nodes[i].count;
    t->nodes[i].count = 0;
  }
  for (size_t i = 0; i < l->values.count; i++) {
    pln_tree_node *terminal = &t->nodes[terminals[i]];
    t->weights[terminal->first + terminal->count++] =
        (pln_tree_weight){l->targets.ints[i], l->values.floats[i]};
  }
}

/* The first node of each tree is its root. */
static void find_roots(const node_lists *l, pln_trees *t) {
  for (size_t i = 0; i < t->n_nodes; i++)
    if (i == 0 || l->trees.ints[i] != l->trees.ints[i - 1])
      t->roots[t->n_roots++] = (uint32_t)i;
}

void pln_trees_read(pln_composition *s, const char *prefix, int64_t targets,
                    pln_trees *out) {
  node_lists l;
  weight_lists w;
  *out = (pln_trees){0};
  if (!read_lists(s, &l) || !read_weight_lists(s, prefix, &w))
    return;
  allocate(s, l.trees.count, w.values.count, l.trees.count, out);
  const node_key *keys = sort_keys(s, &l.trees, &l.ids);
  for (size_t i = 0; s->status == PLN_OK && i < out->n_nodes; i++)
    read_node(s, &l, keys, i, &out->nodes[i]);
  if (s->status != PLN_OK)
    return;
  const uint32_t *terminals = find_terminals(s, &w, keys, targets, out);
  if (s->status != PLN_OK)
    return;
  place_weights(&w, terminals, out);
  find_roots(&l, out);
}

/* -------------------------------------------------------------- tree_ensemble
 */

typedef struct compact_lists {
  pln_ml_list roots, modes, features, splits, yes, yes_terminal, no,
      no_terminal, missing, members, targets, values;
} compact_lists;

static bool read_compact_lists(pln_composition *s, compact_lists *l) {
  l->roots = pln_ml_ints(s->call, "tree_roots");
  l->modes = pln_ml_floats(s, "nodes_modes");
  size_t n = l->modes.count;
  l->features = node_ints(s, "nodes_featureids", n, false);
  l->yes = node_ints(s, "nodes_truenodeids", n, false);
  l->yes_terminal = node_ints(s, "nodes_trueleafs", n, false);
  l->no = node_ints(s, "nodes_falsenodeids", n, false);
  l->no_terminal = node_ints(s, "nodes_falseleafs", n, false);
  l->missing = node_ints(s, "nodes_missing_value_tracks_true", n, true);
  l->splits = pln_ml_floats(s, "nodes_splits");
  l->members = pln_ml_floats(s, "membership_values");
  l->values = pln_ml_floats(s, "leaf_weights");
  l->targets = node_ints(s, "leaf_targetids", l->values.count, false);
  if (l->splits.count != n)
    refuse_attribute(s, "nodes_splits", l->splits.count);
  return s->status == PLN_OK;
}

/* Leaves are nodes behind the branches. */
static bool follow(const pln_trees *t, size_t branches, int64_t at,
                   bool terminal, uint32_t *out) {
  size_t limit = terminal ? t->n_nodes - branches : branches;
  if (at < 0 || (uint64_t)at >= limit)
    return false;
  *out = (uint32_t)at + (terminal ? (uint32_t)branches : 0);
  return true;
}

/* The members of a set end with NaN. */
static uint32_t take_members(const pln_ml_list *members, uint32_t *at) {
  uint32_t first = *at;
  while (*at < members->count && members->floats[*at] == members->floats[*at])
    ++*at;
  uint32_t count = *at - first;
  *at += *at < members->count;
  return count;
}

static void read_branches(pln_composition *s, const compact_lists *l,
                          pln_trees *t) {
  size_t n = l->modes.count;
  uint32_t member = 0;
  for (size_t i = 0; i < n && s->status == PLN_OK; i++) {
    double mode = l->modes.floats[i];
    pln_tree_node *node = &t->nodes[i];
    *node = (pln_tree_node){.split = l->splits.floats[i],
                            .feature = l->features.ints[i],
                            .missing_is_true =
                                l->missing.count && l->missing.ints[i] != 0};
    if (!(mode >= 0 && mode <= PLN_TREE_MEMBER) ||
        !follow(t, n, l->yes.ints[i], l->yes_terminal.ints[i] != 0,
                &node->yes) ||
        !follow(t, n, l->no.ints[i], l->no_terminal.ints[i] != 0, &node->no)) {
      s->status = pln_kernel_refuse(
          s->call, "node %zu has mode %g, or leads to no node", i, mode);
      return;
    }
    node->mode = (uint8_t)mode;
    node->first = member;
    if (node->mode == PLN_TREE_MEMBER)
      node->count = take_members(&l->members, &member);
  }
}

static void read_leaves(pln_composition *s, const compact_lists *l,
                        int64_t targets, pln_trees *t) {
  size_t n = l->modes.count;
  for (size_t i = 0; i < l->values.count && s->status == PLN_OK; i++) {
    int64_t target = l->targets.ints[i];
    if (target < 0 || target >= targets)
      s->status = pln_kernel_refuse(s->call, "leaf %zu has target %lld of %lld",
                                    i, (long long)target, (long long)targets);
    t->nodes[n + i] = (pln_tree_node){
        .mode = PLN_TREE_TERMINAL, .first = (uint32_t)i, .count = 1};
    t->weights[i] = (pln_tree_weight){target, l->values.floats[i]};
  }
}

/* A root is a branch; a tree of one leaf is a branch of which both ways lead to
 * it. */
void pln_trees_read_compact(pln_composition *s, int64_t targets,
                            pln_trees *out) {
  compact_lists l;
  *out = (pln_trees){0};
  if (!read_compact_lists(s, &l))
    return;
  allocate(s, l.modes.count + l.values.count, l.values.count, l.roots.count,
           out);
  if (s->status != PLN_OK)
    return;
  out->members = l.members.floats;
  read_branches(s, &l, out);
  read_leaves(s, &l, targets, out);
  for (size_t i = 0; i < l.roots.count && s->status == PLN_OK; i++) {
    int64_t root = l.roots.ints[i];
    if (root < 0 || (uint64_t)root >= l.modes.count)
      s->status =
          pln_kernel_refuse(s->call, "root %lld is no node", (long long)root);
    out->roots[out->n_roots++] = (uint32_t)root;
  }
}

/* -------------------------------------------------------------------- walking
 */

static bool is_member(const pln_trees *t, const pln_tree_node *node, double x) {
  for (uint32_t i = 0; i < node->count; i++)
    if (t->members[node->first + i] == x)
      return true;
  return false;
}

static bool takes_true(const pln_trees *t, const pln_tree_node *node,
                       double x) {
  if (x != x && node->missing_is_true)
    return true;
  switch ((pln_tree_mode)node->mode) {
  case PLN_TREE_LEQ: return x <= node->split;
  case PLN_TREE_LT: return x < node->split;
  case PLN_TREE_GTE: return x >= node->split;
  case PLN_TREE_GT: return x > node->split;
  case PLN_TREE_EQ: return x == node->split;
  case PLN_TREE_NEQ: return x != node->split;
  case PLN_TREE_MEMBER: return is_member(t, node, x);
  case PLN_TREE_TERMINAL: break;
  }
  return false;
}

const pln_tree_node *pln_tree_terminal(const pln_trees *t, uint32_t root,
                                       const double *row, int64_t columns) {
  const pln_tree_node *node = &t->nodes[root];
  for (size_t steps = 0; node->mode != PLN_TREE_TERMINAL; steps++) {
    if (steps > t->n_nodes || node->feature < 0 || node->feature >= columns)
      return NULL;
    bool yes = takes_true(t, node, row[node->feature]);
    node = &t->nodes[yes ? node->yes : node->no];
  }
  return node;
}
