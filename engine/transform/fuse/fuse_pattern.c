/* fuse_pattern.c: fusion patterns of operators: from fuse_patterns.def by name,
 * else from the traits in op/ops.def. The attribute TOpPattern of an operator
 * comes before both. Called by FuseOps and by scripts that read TOpPattern. */

#include "transform/fuse/fuse_pattern.h"

enum { RESHAPES = 1, STAYS = 2, STOPS = 4 };

typedef struct row {
  const char *name;
  pln_fuse_pattern pattern;
  int how;
} row;

/* Sorted by name for the binary search; test_fuse.c checks the order. */
static const row rows[] = {
#define FUSE(name, PATTERN, how) {name, PLN_FUSE_##PATTERN, how},
#include "transform/fuse/fuse_patterns.def"
};

static const row *find_fuse_pattern(const char *name) {
  size_t low = 0, high = PLN_COUNT(rows);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(name, rows[middle].name);
    if (order == 0)
      return &rows[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

static pln_fuse_pattern from_traits(uint32_t traits) {
  if (traits & PLN_TRAIT_ELEMENTWISE)
    return PLN_FUSE_ELEMENTWISE;
  if (traits & PLN_TRAIT_BROADCAST)
    return PLN_FUSE_BROADCAST;
  if (traits & PLN_TRAIT_INJECTIVE)
    return PLN_FUSE_INJECTIVE;
  return traits & PLN_TRAIT_REDUCE ? PLN_FUSE_REDUCE : PLN_FUSE_OPAQUE;
}

pln_fuse_trait pln_fuse_trait_of(const pln_engine *engine, pln_op op) {
  const pln_op_info *info = pln_op_row(engine, op);
  const row *r = find_fuse_pattern(info->name);
  pln_fuse_pattern own = r ? r->pattern : from_traits(info->traits);
  pln_fuse_trait trait = {.pattern = (pln_fuse_pattern)pln_op_attr_int(
                              engine, op, "TOpPattern", own)};
  if (!r)
    return trait;
  trait.reshapes = r->how & RESHAPES;
  trait.stays = r->how & STAYS;
  trait.stops = r->how & STOPS;
  return trait;
}

bool pln_fuse_computes(const pln_graph *g, const pln_node *n) {
  if (n->kind != PLN_CALL || !n->data ||
      (int64_t)n->count < pln_op_row(g->engine, n->data)->min_args)
    return false;
  for (uint32_t i = 0; i < n->count; i++)
    if (g->nodes[g->operands[n->first + i]].kind == PLN_FUNCTION)
      return false;
  return !pln_fuse_trait_of(g->engine, n->data).stays;
}
