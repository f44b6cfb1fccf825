/* tree.c: the decision tree of a rule set (Maranget, Compiling pattern matching
 * to good decision trees, 2008).
 *
 * The variants that may match at an operator form a matrix with a column for
 * each operand path. A tree node tests the column that most of its rows
 * constrain, and its children have the rows that remain. A leaf lists variants
 * in order of their rules, and match.c then checks them as a whole: the tree
 * only leaves out what cannot match.
 *
 * A test is one look-up in an array: the tables of all tree nodes, which are
 * sparse, overlap (Tarjan and Yao, Storing a sparse table, 1979). While nothing
 * changes, pln_rule_tree_next passes over what no rule matches in one loop.
 *
 * Called by set.c, and by drive.c for each node. */

#include <stdlib.h>

#include "rule/set.h"

enum { FEW_ROWS = 2, FEW_TESTS = 2, MAX_PLACES = 64 };

/* A tree node to be made: rows of `pool`, below `parent` in the tree. */
typedef struct tree_item {
  uint32_t node, parent; /* `parent`: item; PLN_NONE at a root */
  uint32_t first, count;
  uint32_t tested; /* the path that `parent` tested */
  uint32_t key;    /* of the node there; PLN_NONE: none of the cases */
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
  uint16_t *at;    /* by row and path: its pattern there, plus 1 */
  uint32_t *cases; /* the keys that the current tree node tells apart */
  uint32_t n_cases, cap_cases;
  uint32_t *case_stamps; /* by key: the stamp of the item that has the case */
  /* Of the tree that is being built: nodes, and rows of all nodes. */
  uint32_t max_nodes, max_rows;
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

static uint32_t kind_key(const pln_rule_set *s, pln_kind kind) {
  return s->n_root_ops + (uint32_t)kind;
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
  case PLN_MATCH_TUPLE: *single = kind_key(s, PLN_TUPLE); return true;
  case PLN_MATCH_FIELD: *single = kind_key(s, PLN_TUPLE_GET_ITEM); return true;
  case PLN_MATCH_KIND:
    *single = kind_key(s, (pln_kind)p->index);
    if (p->index == PLN_LET_BLOCK) {
      *keys = s->let_keys;
      *n = PLN_COUNT(s->let_keys);
    }
    return true;
  case PLN_MATCH_VALUE:
  case PLN_MATCH_ANY: break;
  }
  *single = kind_key(s, PLN_CONSTANT);
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
  s->tree[s->n_tree] = (pln_tree_node){.otherwise = s->n_tree, .plain = true};
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

static pln_status add_case(tree_builder *b, uint32_t key) {
  if (b->case_stamps[key] == b->stamp)
    return PLN_OK;
  b->case_stamps[key] = b->stamp;
  PLN_TRY(pln_mem_grow(b->set->engine, (void **)&b->cases, &b->cap_cases,
                       (size_t)b->n_cases + 1, sizeof *b->cases));
  b->cases[b->n_cases++] = key;
  return PLN_OK;
}

static int compare_keys(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Lists the keys of the rows' patterns at `path`, in order. */
static pln_status list_cases(tree_builder *b, const tree_item *item,
                             uint32_t path) {
  b->n_cases = 0;
  for (uint32_t r = 0; r < item->count; r++) {
    const pln_pattern_node *p = pattern_at(b, b->pool[item->first + r], path);
    const uint32_t *keys;
    uint32_t single, n;
    if (!p || !pattern_keys(b->set, p, &single, &keys, &n))
      continue;
    for (uint32_t i = 0; i < n; i++)
      PLN_TRY(add_case(b, keys[i]));
  }
  if (b->n_cases)
    qsort(b->cases, b->n_cases, sizeof *b->cases, compare_keys);
  return PLN_OK;
}

/* Adds the child with the rows that accept `key`. */
static pln_status add_child(tree_builder *b, uint32_t at, uint32_t path,
                            uint32_t key, uint32_t *child) {
  tree_item item = {.parent = at,
                    .first = b->n_pool,
                    .tested = path,
                    .key = key,
                    .depth = b->items[at].depth + 1};
  uint32_t first = b->items[at].first, count = b->items[at].count;
  *child = PLN_TREE_NO_MATCH;
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

/* Returns true if no case would be at an entry that is taken. */
static bool is_free(const tree_builder *b, uint32_t base) {
  const pln_rule_set *s = b->set;
  for (uint32_t i = 0; i < b->n_cases; i++) {
    uint32_t at = base + b->cases[i];
    if (at < s->n_jumps && s->jumps[at].node != PLN_NONE)
      return false;
  }
  return true;
}

/* Where the table of a node with the listed cases may begin: the first of a few
 * places that is free, or else the end of what is used. */
static uint32_t find_base(tree_builder *b) {
  pln_rule_set *s = b->set;
  for (uint32_t i = 0; i < MAX_PLACES; i++)
    if (is_free(b, s->first_base + i))
      return s->first_base + i;
  s->first_base += MAX_PLACES / 2;
  uint32_t least = b->n_cases ? b->cases[0] : 0;
  return s->end_jumps > least ? s->end_jumps - least : 0;
}

/* Every key has an entry at `base`, which may belong to another node. */
static pln_status cover_jumps(pln_rule_set *s, uint32_t base) {
  uint32_t need = base + s->n_keys;
  if (need <= s->n_jumps)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->jumps, &s->cap_jumps, need,
                       sizeof *s->jumps));
  memset(s->jumps + s->n_jumps, 0xff, (need - s->n_jumps) * sizeof *s->jumps);
  s->n_jumps = need;
  return PLN_OK;
}

/* Returns true if the node at `path`, below the item, is known to be a call of
 * an operator whose operands are those that patterns see. */
static bool is_plain_call(const tree_builder *b, uint32_t at, uint32_t path) {
  const pln_rule_set *s = b->set;
  while (at != PLN_NONE && b->items[at].tested != path)
    at = b->items[at].parent;
  uint32_t key = at == PLN_NONE ? PLN_NONE : b->items[at].key;
  return key > 0 && key < s->n_root_ops &&
         !(pln_op_row(s->engine, key)->traits & PLN_TRAIT_JOIN);
}

static pln_status split_item(tree_builder *b, uint32_t at, uint32_t path) {
  pln_rule_set *s = b->set;
  uint32_t node = b->items[at].node, parent = s->paths[path].parent, child;
  PLN_TRY(list_cases(b, &b->items[at], path));
  uint32_t base = find_base(b);
  PLN_TRY(cover_jumps(s, base));
  for (uint32_t i = 0; i < b->n_cases; i++) {
    PLN_TRY(add_child(b, at, path, b->cases[i], &child));
    uint32_t to = base + b->cases[i];
    s->jumps[to] = (pln_tree_jump){node, child};
    s->end_jumps = to >= s->end_jumps ? to + 1 : s->end_jumps;
  }
  PLN_TRY(add_child(b, at, path, PLN_NONE, &child));
  s->tree[node].path = path;
  s->tree[node].base = base;
  s->tree[node].parent = parent;
  s->tree[node].arg = s->paths[path].arg;
  s->tree[node].plain = is_plain_call(b, at, parent);
  s->tree[node].otherwise = child;
  return PLN_OK;
}

/* A few variants are compared as a whole after some tests. A tree that grows
 * out of proportion ends in leaves with more variants: patterns that constrain
 * different operands would be copied to all combinations. */
static pln_status build_items(tree_builder *b, uint32_t first) {
  for (uint32_t at = first; at < b->n_items; at++) {
    const tree_item *item = &b->items[at];
    bool ends = b->set->n_tree > b->max_nodes || b->n_pool > b->max_rows ||
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

/* Builds the tree below one root from its rows, whose paths are known. */
static pln_status build_rows(tree_builder *b, uint32_t root) {
  tree_item item = {.parent = PLN_NONE, .count = b->n_rows, .key = root};
  uint32_t first = b->set->n_tree;
  b->n_pool = 0;
  for (uint32_t i = 0; i < b->n_rows; i++)
    PLN_TRY(add_row(b, i));
  PLN_TRY(add_tree_node(b->set, &item.node));
  b->max_nodes = first + 8 * b->n_rows + 64;
  b->max_rows = 256 * b->n_rows + 16384;
  PLN_TRY(add_item(b, item)); /* tested: path 0, the root */
  PLN_TRY(build_items(b, b->n_items - 1));
  b->set->roots[root] = first;
  return PLN_OK;
}

/* Builds the tree of a root from the variants listed for it. */
static pln_status build_root(tree_builder *b, uint32_t root,
                             const uint32_t *rows, uint32_t n) {
  pln_engine *e = b->set->engine;
  b->rows = rows;
  b->n_rows = n;
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
  uint32_t n_roots = s->n_keys, total = 0, single = 0, n;
  const uint32_t *keys;
  uint32_t *start = pln_mem_zeroed(s->engine, (n_roots + 1) * sizeof *start);
  if (!start)
    return pln_nomem(s->engine);
  for (uint32_t v = 0; v < s->n_variants; v++) {
    (void)pattern_keys(s, &s->patterns[s->variants[v].first], &single, &keys,
                       &n);
    for (uint32_t i = 0; i < n; i++, total++)
      start[keys[i] + 1]++;
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
      rows[next[keys[i]]++] = v;
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
  b->case_stamps =
      pln_mem_zeroed(set->engine, set->n_keys * sizeof *b->case_stamps);
  if (!b->pattern_path || !b->case_stamps)
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
  pln_mem_free(e, b->cases, b->cap_cases * sizeof *b->cases);
  pln_mem_free(e, b->case_stamps,
               b->case_stamps ? b->set->n_keys * sizeof *b->case_stamps : 0);
}

/* Notes which roots have rules, without their trees. */
static void note_roots(pln_rule_set *s) {
  uint32_t single, n;
  const uint32_t *keys;
  for (uint32_t i = 0; i < s->n_heads; i++)
    s->roots[s->heads[i].op] = PLN_TREE_UNREAD;
  for (uint32_t v = 0; v < s->n_variants; v++) {
    const pln_pattern_node *p = &s->patterns[s->variants[v].first];
    (void)pattern_keys(s, p, &single, &keys, &n);
    for (uint32_t i = 0; i < n; i++)
      s->roots[keys[i]] = PLN_TREE_UNREAD;
  }
}

/* Makes the leaves that every tree shares. */
static pln_status begin_tree(pln_rule_set *s) {
  uint32_t node = 0;
  while (node + 1 < PLN_TREE_FIRST)
    PLN_TRY(add_tree_node(s, &node));
  return cover_jumps(s, 0);
}

pln_status pln_rule_tree_build(pln_rule_set *set) {
  tree_builder b;
  set->n_root_ops = pln_op_count(set->engine) + 1;
  set->n_keys = set->n_root_ops + PLN_N_KINDS;
  set->let_keys[0] = kind_key(set, PLN_LET_BLOCK);
  set->let_keys[1] = kind_key(set, PLN_LET);
  size_t size = (size_t)set->n_keys * sizeof *set->roots;
  set->roots = pln_arena_new(&set->arena, size);
  if (!set->roots)
    return pln_nomem(set->engine);
  memset(set->roots, 0, size);
  PLN_TRY(begin_tree(set));
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
    if (keys[i] == root)
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

/* The key of an operand, and of one that is not there. */
static inline uint32_t operand_key(const pln_rule_set *s, const pln_graph *g,
                                   pln_ref operand) {
  return operand == PLN_NONE ? s->n_root_ops + PLN_ABSENT
                             : pln_rule_key(s->n_root_ops, &g->nodes[operand]);
}

/* The operand that a tree node tests; PLN_NONE: there is none. */
static inline pln_ref fetch(const pln_graph *g, const pln_tree_node *t,
                            const pln_ref *fetched) {
  const pln_node *n = &g->nodes[fetched[t->parent]];
  const pln_ref *operands = g->operands + n->first;
  if (!t->plain)
    return pln_rule_operand_at(g, fetched[t->parent], t->arg);
  uint32_t arg = pln_rule_operand_index(g, operands, n->count, t->arg);
  return arg < n->count ? operands[arg] : PLN_NONE;
}

static inline uint32_t find_child(const pln_rule_set *s, uint32_t at,
                                  uint32_t key) {
  const pln_tree_node *t = &s->tree[at];
  const pln_tree_jump *jump = &s->jumps[t->base + key];
  return jump->node == at ? jump->child : t->otherwise;
}

const uint32_t *pln_rule_tree_find(const pln_rule_set *s, const pln_graph *g,
                                   pln_ref node, uint32_t root, pln_ref *paths,
                                   uint32_t *count) {
  const pln_tree_node *t;
  paths[0] = node;
  for (uint32_t at = root; t = &s->tree[at], t->path != 0;) {
    pln_ref operand = fetch(g, t, paths);
    paths[t->path] = operand;
    at = find_child(s, at, operand_key(s, g, operand));
  }
  *count = t->count;
  return s->leaves + t->first;
}

const uint32_t *pln_rule_tree_find_bound(const pln_rule_set *s,
                                         const pln_graph *g,
                                         const pln_bound_values *values,
                                         pln_ref node, uint32_t root,
                                         pln_ref *paths, uint32_t *count) {
  const pln_tree_node *t;
  paths[0] = node;
  for (uint32_t at = root; t = &s->tree[at], t->path != 0;) {
    pln_ref operand =
        pln_rule_bound_operand(values, g, paths[t->parent], t->arg, true);
    paths[t->path] = operand;
    at = find_child(s, at, operand_key(s, g, operand));
  }
  *count = t->count;
  return s->leaves + t->first;
}

/* The pattern of a variant at a path; PLN_NONE: it has none. */
static uint32_t find_at_path(const pln_rule_set *s, const pln_rule_variant *v,
                             uint32_t path) {
  uint32_t args[PLN_RULE_MAX_NODES], depth = 0, at = 0;
  for (; path && depth < PLN_COUNT(args); path = s->paths[path].parent)
    args[depth++] = s->paths[path].arg;
  while (depth-- > 0 && at != PLN_NONE) {
    uint32_t i = at + 1;
    while (i < v->count && (s->patterns[v->first + i].parent != at ||
                            s->patterns[v->first + i].arg != args[depth]))
      i++;
    at = i < v->count ? i : PLN_NONE;
  }
  return at;
}

const uint32_t *pln_rule_tree_find_general(const pln_rule_set *s,
                                           const pln_rule_variant *v,
                                           uint32_t *count) {
  const uint32_t *keys;
  uint32_t single = 0, n;
  const pln_tree_node *t;
  (void)pattern_keys(s, &s->patterns[v->first], &single, &keys, &n);
  *count = 0;
  if (!n)
    return NULL;
  for (uint32_t at = s->roots[keys[0]]; t = &s->tree[at], t->path != 0;) {
    uint32_t i = find_at_path(s, v, t->path);
    bool any = i == PLN_NONE ||
               !pattern_keys(s, &s->patterns[v->first + i], &single, &keys, &n);
    at = any || !n ? t->otherwise : find_child(s, at, keys[0]);
  }
  *count = t->count;
  return s->leaves + t->first;
}

/* What the loop over a graph reads again and again. */
typedef struct tree_view {
  const uint32_t *roots;
  const pln_tree_node *tree;
  const pln_tree_jump *jumps;
  const pln_graph *graph;
  const pln_node *nodes;
  uint32_t n_root_ops, missing;
} tree_view;

static inline tree_view view_tree(const pln_rule_set *s, const pln_graph *g) {
  return (tree_view){.roots = s->roots,
                     .tree = s->tree,
                     .jumps = s->jumps,
                     .graph = g,
                     .nodes = g->nodes,
                     .n_root_ops = s->n_root_ops,
                     .missing = s->n_root_ops + PLN_ABSENT};
}

/* One step from a plain tree node whose parent is known. *operand: what was
 * tested. */
static inline uint32_t step(const tree_view *v, uint32_t at, const pln_node *n,
                            const pln_node **operand) {
  const pln_tree_node *t = &v->tree[at];
  const pln_ref *operands = v->graph->operands + n->first;
  uint32_t key = v->missing;
  uint32_t arg = pln_rule_operand_index(v->graph, operands, n->count, t->arg);
  if (arg < n->count) {
    *operand = &v->nodes[operands[arg]];
    key = pln_rule_key(v->n_root_ops, *operand);
  }
  const pln_tree_jump *jump = &v->jumps[t->base + key];
  return jump->node == at ? jump->child : t->otherwise;
}

/* True if the first tests say that no variant matches the node. */
static inline bool is_ruled_out(const tree_view *v, const pln_node *n,
                                uint32_t root) {
  const pln_node *first = n, *second;
  if (!v->tree[root].plain)
    return false;
  uint32_t at = step(v, root, n, &first);
  if (at == PLN_TREE_NO_MATCH)
    return true;
  const pln_tree_node *t = &v->tree[at];
  if (!t->plain)
    return false;
  return step(v, at, t->parent ? first : n, &second) == PLN_TREE_NO_MATCH;
}

/* True if a variant may match the node, or its rules are not read. */
static bool may_match(const pln_rule_set *s, const pln_graph *g, pln_ref node,
                      uint32_t root, pln_ref *paths) {
  uint32_t count;
  if (root == PLN_TREE_UNREAD)
    return true;
  (void)pln_rule_tree_find(s, g, node, root, paths, &count);
  return count > 0;
}

pln_ref pln_rule_tree_next(const pln_rule_set *s, const pln_graph *g,
                           pln_ref from, pln_ref end, pln_kind also,
                           pln_ref *paths) {
  const tree_view v = view_tree(s, g);
  for (pln_ref i = from; i < end; i++) {
    const pln_node *n = &v.nodes[i];
    uint32_t root = v.roots[pln_rule_key(v.n_root_ops, n)];
    if (n->kind == (uint8_t)also)
      return i;
    if (root == PLN_TREE_NO_MATCH || is_ruled_out(&v, n, root))
      continue;
    if (may_match(s, g, i, root, paths))
      return i;
  }
  return end;
}

pln_ref pln_rule_tree_next_bound(const pln_rule_set *s, const pln_graph *g,
                                 const pln_bound_values *values, pln_ref from,
                                 pln_ref end, pln_kind also, pln_ref *paths) {
  for (pln_ref i = from; i < end; i++) {
    const pln_node *n = &g->nodes[i];
    uint32_t root = s->roots[pln_rule_key(s->n_root_ops, n)], count;
    if (n->kind == (uint8_t)also || root == PLN_TREE_UNREAD)
      return i;
    if (root == PLN_TREE_NO_MATCH)
      continue;
    (void)pln_rule_tree_find_bound(s, g, values, i, root, paths, &count);
    if (count)
      return i;
  }
  return end;
}
