/* tree.c: the decision tree of a rule set (Maranget, Compiling pattern matching
 * to good decision trees, 2008).
 *
 * The variants that may match at an operator form a matrix with a column for
 * each operand path. A tree node tests the column that most of its rows
 * constrain, and its children have the rows that remain. A leaf lists variants
 * in order of their rules, and match.c then checks them as a whole: the tree
 * only leaves out what cannot match. A node that no rule matches costs a test
 * or two.
 *
 * Called by set.c, and by drive.c for each node. */

#include <stdlib.h>

#include "rule/set.h"

/* Keys: an operator's number; or, with this bit, a kind of node. */
enum { FEW_ROWS = 2, FEW_TESTS = 2, FEW_CASES = 3 };
#define KEY_OF_KIND 0x80000000u
#define KEY_MISSING (KEY_OF_KIND | PLN_ABSENT)

/* A tree node to be made: rows of `pool`, below `parent` in the tree. */
typedef struct tree_item {
  uint32_t node, parent; /* `parent`: item; PLN_NONE at a root */
  uint32_t first, count;
  uint32_t tested; /* the path that `parent` tested */
  uint32_t depth;  /* number of tests on the way */
} tree_item;

typedef struct tree_builder {
  pln_rule_set *set;
  uint32_t *pattern_path; /* by pattern node */
  const uint32_t *rows;   /* the variants of the root */
  uint32_t n_rows;
  uint32_t *pool; /* numbers of rows */
  uint32_t n_pool, cap_pool;
  tree_item *items;
  uint32_t n_items, cap_items;
  uint32_t *votes;  /* by path, zero between two tests */
  uint32_t *tested; /* by path: the stamp of the item for which it is tested */
  uint32_t stamp;
  uint16_t *at;       /* by row and path: its pattern there, plus 1 */
  uint32_t max_nodes; /* of the tree that is being built */
} tree_builder;

/* -------------------------------------------------------------------- paths */

static pln_status intern_path(tree_builder *b, uint32_t parent, uint32_t arg,
                              uint32_t *out) {
  pln_rule_set *s = b->set;
  uint64_t key = (uint64_t)(parent + 1) << 32 | arg;
  uint32_t known = pln_idmap_get(s->path_ids, key);
  if (known) {
    *out = known - 1;
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->paths, &s->cap_paths,
                       (size_t)s->n_paths + 1, sizeof *s->paths));
  s->paths[s->n_paths] = (pln_tree_path){parent, arg};
  *out = s->n_paths++;
  return pln_idmap_set(s->path_ids, key, s->n_paths);
}

static pln_status find_paths(tree_builder *b) {
  pln_rule_set *s = b->set;
  uint32_t root;
  PLN_TRY(intern_path(b, PLN_NONE, 0, &root));
  for (uint32_t r = 0; r < b->n_rows; r++) {
    const pln_rule_variant *variant = &s->variants[b->rows[r]];
    uint32_t *paths = b->pattern_path + variant->first;
    for (uint32_t i = 0; i < variant->count; i++) {
      const pln_pattern_node *p = &s->patterns[variant->first + i];
      if (p->parent == PLN_MATCH_ROOT && i == 0)
        paths[i] = root;
      else if (p->parent == PLN_MATCH_ROOT)
        PLN_TRY(intern_path(b, PLN_NONE, p->arg + 1u, &paths[i]));
      else
        PLN_TRY(intern_path(b, paths[p->parent], p->arg, &paths[i]));
    }
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- rows */

static bool is_constant_only(const pln_pattern_node *p) {
  return p->kind == PLN_MATCH_VALUE ||
         (p->kind == PLN_MATCH_ANY &&
          (p->constraints & (PLN_CONSTRAINT_CONST | PLN_CONSTRAINT_SCALAR |
                             PLN_CONSTRAINT_SPLAT)));
}

/* The keys that the pattern accepts; false: any. */
static bool pattern_keys(const pln_rule_set *s, const pln_pattern_node *p,
                         uint32_t *single, const uint32_t **keys, uint32_t *n) {
  *n = 1;
  *keys = single;
  if (p->optional)
    return false;
  switch ((pln_pattern_kind)p->kind) {
  case PLN_MATCH_CALL:
    *keys = s->ops + p->ops;
    *n = p->n_ops;
    return true;
  case PLN_MATCH_TUPLE: *single = KEY_OF_KIND | PLN_TUPLE; return true;
  case PLN_MATCH_FIELD: *single = KEY_OF_KIND | PLN_TUPLE_GET_ITEM; return true;
  case PLN_MATCH_KIND: *single = KEY_OF_KIND | p->index; return true;
  case PLN_MATCH_VALUE:
  case PLN_MATCH_ANY: break;
  }
  *single = KEY_OF_KIND | PLN_CONSTANT;
  return is_constant_only(p);
}

/* The pattern of a row at a path, or NULL. */
static const pln_pattern_node *pattern_at(const tree_builder *b, uint32_t row,
                                          uint32_t path) {
  const pln_rule_variant *v = &b->set->variants[b->rows[row]];
  uint16_t i = b->at[(size_t)row * b->set->n_paths + path];
  return i ? &b->set->patterns[v->first + i - 1] : NULL;
}

/* Fills the table that pattern_at reads. */
static pln_status index_patterns(tree_builder *b) {
  const pln_rule_set *s = b->set;
  size_t n = (size_t)b->n_rows * s->n_paths + 1;
  b->at = pln_mem_zeroed(s->engine, n * sizeof *b->at);
  if (!b->at)
    return pln_nomem(s->engine);
  for (uint32_t k = 0; k < b->n_rows; k++) {
    const pln_rule_variant *v = &s->variants[b->rows[k]];
    for (uint32_t i = 0; i < v->count; i++)
      b->at[(size_t)k * s->n_paths + b->pattern_path[v->first + i]] =
          (uint16_t)(i + 1);
  }
  return PLN_OK;
}

static bool accepts(const tree_builder *b, uint32_t row, uint32_t path,
                    uint32_t key) {
  const pln_pattern_node *p = pattern_at(b, row, path);
  const uint32_t *keys;
  uint32_t single, n;
  if (!p || !pattern_keys(b->set, p, &single, &keys, &n))
    return true;
  for (uint32_t i = 0; i < n; i++)
    if (keys[i] == key)
      return true;
  return false;
}

static pln_status add_row(tree_builder *b, uint32_t row) {
  PLN_TRY(pln_mem_grow(b->set->engine, (void **)&b->pool, &b->cap_pool,
                       (size_t)b->n_pool + 1, sizeof *b->pool));
  b->pool[b->n_pool++] = row;
  return PLN_OK;
}

static pln_status add_item(tree_builder *b, tree_item item) {
  PLN_TRY(pln_mem_grow(b->set->engine, (void **)&b->items, &b->cap_items,
                       (size_t)b->n_items + 1, sizeof *b->items));
  b->items[b->n_items++] = item;
  return PLN_OK;
}

static pln_status add_tree_node(pln_rule_set *s, uint32_t *out) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->tree, &s->cap_tree,
                       (size_t)s->n_tree + 1, sizeof *s->tree));
  s->tree[s->n_tree] = (pln_tree_node){
      .path = PLN_NONE, .otherwise = PLN_NONE, .jumps = PLN_NONE};
  *out = s->n_tree++;
  return PLN_OK;
}

/* ------------------------------------------------------------------- columns
 */

/* Marks the paths that were tested on the way to an item. */
static void mark_tested(tree_builder *b, uint32_t at) {
  b->stamp++;
  for (uint32_t i = at; i != PLN_NONE; i = b->items[i].parent)
    b->tested[b->items[i].tested] = b->stamp;
}

/* Returns true if the pattern can be tested next: it constrains its node, whose
 * parent is known. */
static bool is_candidate(const tree_builder *b, uint32_t pattern) {
  const pln_rule_set *s = b->set;
  uint32_t path = b->pattern_path[pattern], n, single;
  const uint32_t *keys;
  return b->tested[path] != b->stamp && s->paths[path].parent != PLN_NONE &&
         b->tested[s->paths[path].parent] == b->stamp &&
         pattern_keys(s, &s->patterns[pattern], &single, &keys, &n);
}

static const pln_rule_variant *row_variant(const tree_builder *b, uint32_t at) {
  return &b->set->variants[b->rows[b->pool[at]]];
}

/* Counts which rows constrain each path whose node is known to exist, and finds
 * the best; PLN_NONE: no row has a constraint left. */
static uint32_t choose_path(tree_builder *b, uint32_t at) {
  const tree_item *item = &b->items[at];
  uint32_t best = PLN_NONE, max = 0;
  mark_tested(b, at);
  for (uint32_t r = 0; r < item->count; r++) {
    const pln_rule_variant *v = row_variant(b, item->first + r);
    for (uint32_t i = v->first + 1; i < v->first + v->count; i++) {
      uint32_t path = b->pattern_path[i];
      if (!is_candidate(b, i))
        continue;
      uint32_t votes = ++b->votes[path];
      if (votes > max || (votes == max && path < best)) {
        max = votes;
        best = path;
      }
    }
  }
  for (uint32_t r = 0; max && r < item->count; r++) {
    const pln_rule_variant *v = row_variant(b, item->first + r);
    for (uint32_t i = v->first; i < v->first + v->count; i++)
      b->votes[b->pattern_path[i]] = 0;
  }
  return best;
}

/* ----------------------------------------------------------------- the tree */

static pln_status make_terminal(tree_builder *b, const tree_item *item) {
  pln_rule_set *s = b->set;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->leaves, &s->cap_leaves,
                       (size_t)s->n_leaves + item->count, sizeof *s->leaves));
  s->tree[item->node].first = s->n_leaves;
  s->tree[item->node].count = item->count;
  for (uint32_t i = 0; i < item->count; i++)
    s->leaves[s->n_leaves++] = b->rows[b->pool[item->first + i]];
  return PLN_OK;
}

static int compare_cases(const void *a, const void *b) {
  uint32_t x = ((const pln_tree_case *)a)->key;
  uint32_t y = ((const pln_tree_case *)b)->key;
  return x < y ? -1 : x > y;
}

/* Adds a case for each key of the rows' patterns at `path`. */
static pln_status list_cases(tree_builder *b, const tree_item *item,
                             uint32_t path) {
  pln_rule_set *s = b->set;
  uint32_t first = s->n_cases;
  for (uint32_t r = 0; r < item->count; r++) {
    const pln_pattern_node *p = pattern_at(b, b->pool[item->first + r], path);
    const uint32_t *keys;
    uint32_t single, n;
    if (!p || !pattern_keys(s, p, &single, &keys, &n))
      continue;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t k = first;
      while (k < s->n_cases && s->cases[k].key != keys[i])
        k++;
      if (k < s->n_cases)
        continue;
      PLN_TRY(pln_mem_grow(s->engine, (void **)&s->cases, &s->cap_cases,
                           (size_t)s->n_cases + 1, sizeof *s->cases));
      s->cases[s->n_cases++] = (pln_tree_case){.key = keys[i]};
    }
  }
  qsort(s->cases + first, s->n_cases - first, sizeof *s->cases, compare_cases);
  s->tree[item->node].first = first;
  s->tree[item->node].count = s->n_cases - first;
  return PLN_OK;
}

/* Adds the child with the rows that accept `key`; *child PLN_NONE if there are
 * none. */
static pln_status add_child(tree_builder *b, uint32_t at, uint32_t path,
                            uint32_t key, uint32_t *child) {
  tree_item item = {.parent = at,
                    .first = b->n_pool,
                    .tested = path,
                    .depth = b->items[at].depth + 1};
  uint32_t first = b->items[at].first, count = b->items[at].count;
  *child = PLN_NONE;
  for (uint32_t r = 0; r < count; r++)
    if (accepts(b, b->pool[first + r], path, key))
      PLN_TRY(add_row(b, b->pool[first + r]));
  item.count = b->n_pool - item.first;
  if (!item.count)
    return PLN_OK;
  PLN_TRY(add_tree_node(b->set, &item.node));
  *child = item.node;
  return add_item(b, item);
}

/* The entry of a table of jumps for a key. */
static uint32_t jump_index(const pln_rule_set *s, uint32_t key) {
  return key & KEY_OF_KIND ? s->n_root_ops + (key & ~KEY_OF_KIND) : key;
}

/* Gives a node with many cases a table of its children by key. */
static pln_status add_jumps(pln_rule_set *s, uint32_t node) {
  const pln_tree_node *t = &s->tree[node];
  if (t->count <= FEW_CASES)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->jumps, &s->cap_jumps,
                       (size_t)s->n_jumps + s->n_keys, sizeof *s->jumps));
  uint32_t *jumps = s->jumps + s->n_jumps;
  for (uint32_t i = 0; i < s->n_keys; i++)
    jumps[i] = t->otherwise;
  for (uint32_t i = t->first; i < t->first + t->count; i++)
    jumps[jump_index(s, s->cases[i].key)] = s->cases[i].child;
  s->tree[node].jumps = s->n_jumps;
  s->n_jumps += s->n_keys;
  return PLN_OK;
}

static uint64_t key_bit(uint32_t key) {
  return (uint64_t)1 << key % 64;
}

static pln_status split_item(tree_builder *b, uint32_t at, uint32_t path) {
  pln_rule_set *s = b->set;
  tree_item item = b->items[at];
  PLN_TRY(list_cases(b, &item, path));
  pln_tree_node *node = &s->tree[item.node];
  node->path = path;
  node->parent = s->paths[path].parent;
  node->arg = s->paths[path].arg;
  for (uint32_t i = 0; i < node->count; i++)
    node->keys |= key_bit(s->cases[node->first + i].key);
  for (uint32_t i = 0; i < s->tree[item.node].count; i++) {
    uint32_t k = s->tree[item.node].first + i, child;
    PLN_TRY(add_child(b, at, path, s->cases[k].key, &child));
    s->cases[k].child = child;
  }
  uint32_t otherwise;
  PLN_TRY(add_child(b, at, path, UINT32_MAX, &otherwise));
  s->tree[item.node].otherwise = otherwise;
  return add_jumps(s, item.node);
}

/* A few variants are compared as a whole after some tests. A tree that grows
 * out of proportion ends in leaves with more variants: patterns that constrain
 * different operands would be copied to all combinations. */
static pln_status build_items(tree_builder *b, uint32_t first) {
  for (uint32_t at = first; at < b->n_items; at++) {
    const tree_item *item = &b->items[at];
    bool ends = b->set->n_tree > b->max_nodes ||
                (item->count <= FEW_ROWS && item->depth >= FEW_TESTS);
    uint32_t path = ends ? PLN_NONE : choose_path(b, at);
    if (path == PLN_NONE)
      PLN_TRY(make_terminal(b, &b->items[at]));
    else
      PLN_TRY(split_item(b, at, path));
  }
  b->n_items = first;
  return PLN_OK;
}

/* The entry of `roots` for a root pattern's key. */
static uint32_t root_of_key(const pln_rule_set *s, uint32_t key) {
  return key & KEY_OF_KIND
             ? s->n_root_ops +
                   pln_rule_kind_root((pln_kind)(key & ~KEY_OF_KIND))
             : key;
}

/* Builds the tree below one root from its rows, whose paths are known. */
static pln_status build_rows(tree_builder *b, uint32_t root) {
  tree_item item = {.parent = PLN_NONE, .count = b->n_rows};
  uint32_t first = b->set->n_tree;
  b->n_pool = 0;
  for (uint32_t i = 0; i < b->n_rows; i++)
    PLN_TRY(add_row(b, i));
  PLN_TRY(add_tree_node(b->set, &item.node));
  b->max_nodes = first + 8 * b->n_rows + 64;
  PLN_TRY(add_item(b, item)); /* tested: path 0, the root */
  PLN_TRY(build_items(b, b->n_items - 1));
  b->set->roots[root] = first + 1;
  return PLN_OK;
}

/* Builds the tree of a root from the variants listed for it. */
static pln_status build_root(tree_builder *b, uint32_t root,
                             const uint32_t *rows, uint32_t n) {
  pln_engine *e = b->set->engine;
  b->rows = rows;
  b->n_rows = n;
  b->stamp = 0;
  PLN_TRY(find_paths(b));
  size_t by_path = ((size_t)b->set->n_paths + 1) * sizeof *b->votes;
  PLN_TRY(index_patterns(b));
  b->votes = pln_mem_zeroed(e, by_path);
  b->tested = pln_mem_zeroed(e, by_path);
  pln_status status =
      b->votes && b->tested ? build_rows(b, root) : pln_nomem(e);
  pln_mem_free(e, b->votes, b->votes ? by_path : 0);
  pln_mem_free(e, b->tested, b->tested ? by_path : 0);
  pln_mem_free(e, b->at, ((size_t)n * b->set->n_paths + 1) * sizeof *b->at);
  return status;
}

/* Lists the variants of each root, in order, and builds their trees. */
static pln_status build_roots(tree_builder *b) {
  pln_rule_set *s = b->set;
  uint32_t n_roots = s->n_root_ops + PLN_RULE_KIND_ROOTS, total = 0, single, n;
  const uint32_t *keys;
  uint32_t *start = pln_mem_zeroed(s->engine, (n_roots + 1) * sizeof *start);
  if (!start)
    return pln_nomem(s->engine);
  for (uint32_t v = 0; v < s->n_variants; v++) {
    (void)pattern_keys(s, &s->patterns[s->variants[v].first], &single, &keys,
                       &n);
    for (uint32_t i = 0; i < n; i++, total++)
      start[root_of_key(s, keys[i]) + 1]++;
  }
  for (uint32_t r = 0; r < n_roots; r++)
    start[r + 1] += start[r];
  uint32_t *rows = pln_mem_new(s->engine, (total + 1) * sizeof *rows);
  pln_status status = rows ? PLN_OK : pln_nomem(s->engine);
  uint32_t *next = start; /* start[r] moves to the end of its rows */
  for (uint32_t v = 0; rows && v < s->n_variants; v++) {
    (void)pattern_keys(s, &s->patterns[s->variants[v].first], &single, &keys,
                       &n);
    for (uint32_t i = 0; i < n; i++)
      rows[next[root_of_key(s, keys[i])]++] = v;
  }
  for (uint32_t r = 0, begin = 0; status == PLN_OK && r < n_roots; r++) {
    if (next[r] > begin)
      status = build_root(b, r, rows + begin, next[r] - begin);
    begin = next[r];
  }
  pln_mem_free(s->engine, rows, (total + 1) * sizeof *rows);
  pln_mem_free(s->engine, start, (n_roots + 1) * sizeof *start);
  return status;
}

static pln_status begin_builder(tree_builder *b, pln_rule_set *set) {
  size_t patterns = (size_t)set->n_patterns + 1;
  *b = (tree_builder){.set = set};
  b->pattern_path =
      pln_mem_new(set->engine, patterns * sizeof *b->pattern_path);
  if (!b->pattern_path)
    return pln_nomem(set->engine);
  return set->path_ids ? PLN_OK : pln_idmap_new(set->engine, &set->path_ids);
}

static void end_builder(tree_builder *b) {
  pln_engine *e = b->set->engine;
  size_t patterns = (size_t)b->set->n_patterns + 1;
  pln_mem_free(e, b->pattern_path,
               b->pattern_path ? patterns * sizeof *b->pattern_path : 0);
  pln_mem_free(e, b->pool, b->cap_pool * sizeof *b->pool);
  pln_mem_free(e, b->items, b->cap_items * sizeof *b->items);
}

/* Notes which roots have rules, without their trees. */
static void note_roots(pln_rule_set *s) {
  uint32_t single, n;
  const uint32_t *keys;
  for (uint32_t i = 0; i < s->n_heads; i++)
    s->roots[s->heads[i].op] = PLN_ROOT_UNREAD;
  for (uint32_t v = 0; v < s->n_variants; v++) {
    const pln_pattern_node *p = &s->patterns[s->variants[v].first];
    (void)pattern_keys(s, p, &single, &keys, &n);
    for (uint32_t i = 0; i < n; i++)
      s->roots[root_of_key(s, keys[i])] = PLN_ROOT_UNREAD;
  }
}

pln_status pln_rule_tree_build(pln_rule_set *set) {
  tree_builder b;
  set->n_root_ops = pln_op_count(set->engine) + 1;
  set->n_keys = set->n_root_ops + PLN_N_KINDS;
  size_t size =
      ((size_t)set->n_root_ops + PLN_RULE_KIND_ROOTS) * sizeof *set->roots;
  set->roots = pln_arena_new(&set->arena, size);
  if (!set->roots)
    return pln_nomem(set->engine);
  memset(set->roots, 0, size);
  if (set->self) {
    note_roots(set);
    return PLN_OK;
  }
  pln_status status = begin_builder(&b, set);
  if (status == PLN_OK)
    status = build_roots(&b);
  end_builder(&b);
  return status;
}

/* Returns true if the variant may match at the root. */
static bool has_root(const pln_rule_set *s, uint32_t variant, uint32_t root) {
  uint32_t single, n;
  const uint32_t *keys;
  const pln_pattern_node *p = &s->patterns[s->variants[variant].first];
  (void)pattern_keys(s, p, &single, &keys, &n);
  for (uint32_t i = 0; i < n; i++)
    if (root_of_key(s, keys[i]) == root)
      return true;
  return false;
}

/* Lists the variants of a root in order of their rules. */
static uint32_t list_rows(const pln_rule_set *s, uint32_t root,
                          uint32_t *rows) {
  uint32_t n = 0;
  for (uint32_t r = 0; r < s->n_rules; r++)
    for (uint32_t i = 0; i < s->rules[r].n_variants; i++)
      if (has_root(s, s->rules[r].first_variant + i, root))
        rows[n++] = s->rules[r].first_variant + i;
  return n;
}

pln_status pln_rule_tree_add(pln_rule_set *set, uint32_t root) {
  tree_builder b;
  size_t size = ((size_t)set->n_variants + 1) * sizeof(uint32_t);
  uint32_t *rows = pln_mem_new(set->engine, size);
  if (!rows)
    return pln_nomem(set->engine);
  pln_status status = begin_builder(&b, set);
  if (status == PLN_OK)
    status = build_root(&b, root, rows, list_rows(set, root, rows));
  end_builder(&b);
  pln_mem_free(set->engine, rows, size);
  return status;
}

static bool is_head(const pln_rule_set *s, uint32_t rule, uint32_t key) {
  for (uint32_t i = 0; i < s->n_heads; i++)
    if (s->heads[i].rule == rule && s->heads[i].op == key)
      return true;
  return false;
}

bool pln_rule_tree_heads(const pln_rule_set *s, uint32_t variant) {
  const pln_rule_variant *v = &s->variants[variant];
  uint32_t single, n;
  const uint32_t *keys;
  (void)pattern_keys(s, &s->patterns[v->first], &single, &keys, &n);
  for (uint32_t i = 0; i < n; i++)
    if (!is_head(s, v->rule, keys[i]))
      return false;
  return true;
}

/* ------------------------------------------------------------------- walking
 */

/* The operand that a tree node tests; PLN_NONE: there is none. Most are plain
 * operands of calls of operators. */
static pln_ref fetch(const pln_graph *g, const pln_tree_node *t,
                     const pln_ref *fetched) {
  pln_ref parent = fetched[t->parent];
  const pln_node *n = &g->nodes[parent];
  if (n->kind == PLN_CALL && n->data && t->arg < n->count &&
      t->arg < PLN_ARG_CONSTANT) {
    pln_ref operand = g->operands[n->first + t->arg];
    if (n->count > 1 || g->nodes[operand].kind != PLN_TUPLE)
      return operand;
  }
  return pln_rule_operand_at(g, parent, t->arg);
}

static uint32_t key_of(const pln_graph *g, pln_ref node) {
  if (node == PLN_NONE)
    return KEY_MISSING;
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data ? n->data : KEY_OF_KIND | n->kind;
}

static uint32_t find_case(const pln_rule_set *s, const pln_tree_node *t,
                          uint32_t key) {
  if (t->jumps != PLN_NONE)
    return s->jumps[t->jumps + jump_index(s, key)];
  uint32_t low = t->first, high = t->first + t->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (s->cases[middle].key == key)
      return s->cases[middle].child;
    if (s->cases[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return t->otherwise;
}

const uint32_t *pln_rule_tree_find(const pln_rule_set *s, const pln_graph *g,
                                   pln_ref node, uint32_t root, pln_ref *paths,
                                   uint32_t *count) {
  *count = 0;
  paths[0] = node;
  for (uint32_t at = root - 1; at != PLN_NONE;) {
    const pln_tree_node *t = &s->tree[at];
    if (t->path == PLN_NONE) {
      *count = t->count;
      return s->leaves + t->first;
    }
    pln_ref operand = fetch(g, t, paths);
    uint32_t key = key_of(g, operand);
    paths[t->path] = operand;
    at = t->keys & key_bit(key) ? find_case(s, t, key) : t->otherwise;
  }
  return NULL;
}
