/* extract.c: reads an e-graph for extraction, picks the cheapest trees, and
 * builds what was picked.
 *
 * Trees are picked by Knuth's generalisation of Dijkstra's algorithm, in
 * O(n log n): a class is finished by its cheapest choice whose operands are
 * finished, so that what is picked has no cycle. A call of constants alone
 * costs next to nothing: FoldConstant computes it. */

#include <math.h>

#include "rule/egraph/extract.h"

/* ------------------------------------------------------------------ reading */

static pln_status number_of(pln_extraction *x, pln_ref node, uint32_t *out) {
  pln_ref class_ = pln_egraph_class(x->eg, node);
  uint32_t *number = &x->eg->nodes[class_].number;
  if (!*number) {
    PLN_TRY(pln_mem_grow(x->engine, (void **)&x->classes, &x->cap_classes,
                         (size_t)x->n_classes + 1, sizeof *x->classes));
    x->classes[x->n_classes] = class_;
    *number = ++x->n_classes;
  }
  *out = *number - 1;
  return PLN_OK;
}

static bool has_operands(const pln_extraction *x, pln_ref node) {
  return !pln_enode_is(x->eg, node, PLN_ENODE_OPAQUE | PLN_ENODE_PINNED);
}

static pln_status read_operands(pln_extraction *x, pln_echoice *choice) {
  const pln_graph *g = pln_egraph_graph(x->eg);
  const pln_node *n = &g->nodes[choice->node];
  choice->first = x->n_operands;
  choice->count = n->count;
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->operands, &x->cap_operands,
                       (size_t)x->n_operands + n->count + 1,
                       sizeof *x->operands));
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(
        number_of(x, g->operands[n->first + i], &x->operands[x->n_operands++]));
  return PLN_OK;
}

static pln_status read_choice(pln_extraction *x, uint32_t class_,
                              pln_ref node) {
  pln_echoice choice = {.node = node, .class_ = class_};
  if (!pln_enode_is(x->eg, node, PLN_ENODE_LIVE))
    return PLN_OK;
  if (has_operands(x, node))
    PLN_TRY(read_operands(x, &choice));
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->choices, &x->cap_choices,
                       (size_t)x->n_choices + 1, sizeof *x->choices));
  x->choices[x->n_choices++] = choice;
  return PLN_OK;
}

static pln_status read_class(pln_extraction *x, uint32_t class_) {
  pln_ref first = x->classes[class_], node = first;
  do {
    PLN_TRY(read_choice(x, class_, node));
    node = x->eg->nodes[node].next;
  } while (node != first);
  return PLN_OK;
}

static uint32_t *new_words(pln_extraction *x, size_t n) {
  return pln_mem_zeroed(x->engine, n * sizeof(uint32_t));
}

static pln_status make_arrays(pln_extraction *x) {
  size_t n = x->n_classes, pairs = (size_t)x->n_operands + 1;
  x->picked = new_words(x, n);
  x->saved = new_words(x, n);
  x->uses = new_words(x, n);
  x->stamp = new_words(x, n);
  x->user_first = new_words(x, n + 2);
  x->user_list = new_words(x, pairs);
  /* A walk pushes a class, or two words, once for each operand. */
  x->stack = new_words(x, 2 * (pairs + n));
  x->best = pln_mem_zeroed(x->engine, n * sizeof *x->best);
  bool complete = x->picked && x->saved && x->uses && x->stamp &&
                  x->user_first && x->user_list && x->stack && x->best;
  return complete ? PLN_OK : pln_nomem(x->engine);
}

/* The choices that use each class, by counting. */
static void list_users(pln_extraction *x) {
  for (uint32_t i = 0; i < x->n_operands; i++)
    x->user_first[x->operands[i] + 2]++;
  for (uint32_t i = 2; i <= x->n_classes + 1; i++)
    x->user_first[i] += x->user_first[i - 1];
  for (uint32_t c = 0; c < x->n_choices; c++)
    for (uint32_t i = 0; i < x->choices[c].count; i++)
      x->user_list[x->user_first[x->operands[x->choices[c].first + i] + 1]++] =
          c;
}

pln_status pln_extraction_begin(pln_extraction *x, pln_egraph *eg,
                                const pln_saturate_options *options,
                                pln_ref root) {
  uint32_t number;
  *x = (pln_extraction){
      .engine = eg->engine, .eg = eg, .options = options, .program = root};
  PLN_TRY(number_of(x, root, &number));
  for (uint32_t c = 0; c < x->n_classes; c++) {
    PLN_TRY(pln_mem_grow(x->engine, (void **)&x->first_choice, &x->cap_first,
                         (size_t)c + 2, sizeof *x->first_choice));
    x->first_choice[c] = x->n_choices;
    PLN_TRY(read_class(x, c));
    x->first_choice[c + 1] = x->n_choices;
  }
  PLN_TRY(make_arrays(x));
  list_users(x);
  return PLN_OK;
}

static void free_words(pln_extraction *x, uint32_t *words, size_t n) {
  pln_mem_free(x->engine, words, words ? n * sizeof *words : 0);
}

void pln_extraction_end(pln_extraction *x) {
  pln_engine *e = x->engine;
  size_t n = x->n_classes, pairs = (size_t)x->n_operands + 1;
  free_words(x, x->picked, n);
  free_words(x, x->saved, n);
  free_words(x, x->uses, n);
  free_words(x, x->stamp, n);
  free_words(x, x->user_first, n + 2);
  free_words(x, x->user_list, pairs);
  free_words(x, x->stack, 2 * (pairs + n));
  pln_mem_free(e, x->best, x->best ? n * sizeof *x->best : 0);
  free_words(x, x->first_choice, x->cap_first);
  pln_mem_free(e, x->classes, x->cap_classes * sizeof *x->classes);
  pln_mem_free(e, x->choices, x->cap_choices * sizeof *x->choices);
  pln_mem_free(e, x->operands, x->cap_operands * sizeof *x->operands);
}

/* ---------------------------------------------------------------- constants */

static bool is_constant_class(const pln_extraction *x, uint32_t class_) {
  return x->stamp[class_] != 0;
}

static void mark_constant(pln_extraction *x, uint32_t class_, uint32_t *top) {
  if (is_constant_class(x, class_))
    return;
  x->stamp[class_] = 1;
  x->stack[(*top)++] = class_;
}

/* Marks the classes that are computed of constants alone. */
static pln_status find_constants(pln_extraction *x) {
  uint32_t top = 0;
  uint32_t *left = new_words(x, x->n_choices);
  if (!left)
    return pln_nomem(x->engine);
  for (uint32_t c = 0; c < x->n_choices; c++) {
    left[c] = x->choices[c].count;
    if (x->eg->nodes[x->classes[x->choices[c].class_]].constant != PLN_NONE)
      mark_constant(x, x->choices[c].class_, &top);
  }
  while (top) {
    uint32_t class_ = x->stack[--top];
    for (uint32_t u = x->user_first[class_]; u < x->user_first[class_ + 1];
         u++) {
      uint32_t c = x->user_list[u];
      if (--left[c] == 0)
        mark_constant(x, x->choices[c].class_, &top);
    }
  }
  free_words(x, left, x->n_choices);
  return PLN_OK;
}

/* What a node costs, whose operands' constant ones are known. */
static pln_status cost_of(const pln_extraction *x, pln_ref node, uint32_t count,
                          uint32_t n_constant, uint64_t constants,
                          double *out) {
  const pln_graph *g = pln_egraph_graph(x->eg);
  return count && n_constant == count
             ? pln_ecost_of_constants(x->options, g, node, out)
             : pln_ecost_of(x->options, g, node, constants, out);
}

/* The costs of all choices, of a program that costs `most`. */
static pln_status find_costs(pln_extraction *x, double most) {
  for (uint32_t c = 0; c < x->n_choices; c++) {
    pln_echoice *choice = &x->choices[c];
    uint64_t constants = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < choice->count; i++)
      if (is_constant_class(x, x->operands[choice->first + i])) {
        constants |= i < 64 ? UINT64_C(1) << i : 0;
        n++;
      }
    if (!has_operands(x, choice->node))
      continue;
    bool constant = choice->count && n == choice->count, dear = false;
    if (!constant)
      PLN_TRY(pln_ecost_is_dear(x->options, pln_egraph_graph(x->eg),
                                choice->node, most, &dear, &choice->cost));
    if (!dear)
      PLN_TRY(
          cost_of(x, choice->node, choice->count, n, constants, &choice->cost));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------ cheapest trees
 */

typedef struct tree_entry {
  double cost;
  uint32_t choice;
} tree_entry;

typedef struct tree_search {
  pln_extraction *x;
  tree_entry *heap;
  uint32_t n;
  double *sum;    /* by choice */
  uint32_t *left; /* by choice: operands that are not finished */
} tree_search;

/* Cheaper ones come first; of equal ones what the program has, then the older
 * node. */
static bool is_before(const tree_search *t, tree_entry a, tree_entry b) {
  pln_ref x = t->x->choices[a.choice].node, y = t->x->choices[b.choice].node;
  bool x_made = t->x->eg->nodes[x].origin.made_by != 0;
  bool y_made = t->x->eg->nodes[y].origin.made_by != 0;
  if (a.cost < b.cost || b.cost < a.cost)
    return a.cost < b.cost;
  return x_made != y_made ? y_made : x < y;
}

static void heap_push(tree_search *t, tree_entry entry) {
  uint32_t i = t->n++;
  while (i && is_before(t, entry, t->heap[(i - 1) / 2])) {
    t->heap[i] = t->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  t->heap[i] = entry;
}

static tree_entry heap_pop(tree_search *t) {
  tree_entry first = t->heap[0], last = t->heap[--t->n];
  uint32_t i = 0;
  for (uint32_t child; (child = 2 * i + 1) < t->n; i = child) {
    if (child + 1 < t->n && is_before(t, t->heap[child + 1], t->heap[child]))
      child++;
    if (!is_before(t, t->heap[child], last))
      break;
    t->heap[i] = t->heap[child];
  }
  t->heap[i] = last;
  return first;
}

static void finish_class(tree_search *t, uint32_t class_) {
  pln_extraction *x = t->x;
  for (uint32_t u = x->user_first[class_]; u < x->user_first[class_ + 1]; u++) {
    uint32_t c = x->user_list[u];
    t->sum[c] += x->best[class_];
    if (--t->left[c] == 0)
      heap_push(t, (tree_entry){t->sum[c], c});
  }
}

static void search_trees(tree_search *t) {
  pln_extraction *x = t->x;
  for (uint32_t c = 0; c < x->n_choices; c++) {
    t->sum[c] = x->choices[c].cost;
    t->left[c] = x->choices[c].count;
    if (!t->left[c])
      heap_push(t, (tree_entry){t->sum[c], c});
  }
  while (t->n) {
    tree_entry entry = heap_pop(t);
    uint32_t class_ = x->choices[entry.choice].class_;
    if (x->picked[class_] != PLN_NONE)
      continue;
    x->picked[class_] = entry.choice;
    x->best[class_] = entry.cost;
    finish_class(t, class_);
  }
}

static pln_status pick_trees(pln_extraction *x) {
  size_t n = x->n_choices;
  tree_search t = {.x = x};
  t.heap = pln_mem_new(x->engine, n * sizeof *t.heap);
  t.sum = pln_mem_new(x->engine, n * sizeof *t.sum);
  t.left = pln_mem_new(x->engine, n * sizeof *t.left);
  bool complete = t.heap && t.sum && t.left;
  memset(x->picked, 0xff, x->n_classes * sizeof *x->picked);
  if (complete)
    search_trees(&t);
  pln_mem_free(x->engine, t.heap, t.heap ? n * sizeof *t.heap : 0);
  pln_mem_free(x->engine, t.sum, t.sum ? n * sizeof *t.sum : 0);
  pln_mem_free(x->engine, t.left, t.left ? n * sizeof *t.left : 0);
  return complete ? PLN_OK : pln_nomem(x->engine);
}

/* ---------------------------------------------------------------- the program
 */

/* Where the program computes a class, its first node is picked: the operands of
 * a node come before it, so that these have no cycle. */
static void pick_program(pln_extraction *x) {
  for (uint32_t class_ = 0; class_ < x->n_classes; class_++)
    for (uint32_t c = x->first_choice[class_]; c < x->first_choice[class_ + 1];
         c++) {
      pln_ref node = x->choices[c].node;
      pln_ref now = x->choices[x->picked[class_]].node;
      bool made = x->eg->nodes[node].origin.made_by != 0;
      if (!made && (x->eg->nodes[now].origin.made_by || node < now))
        x->picked[class_] = c;
    }
}

/* What the program costs: its own nodes, each once. */
static pln_status program_cost(pln_extraction *x, double *out) {
  const pln_graph *g = pln_egraph_graph(x->eg);
  pln_ref root = x->program, *stack = NULL;
  uint32_t top = 0, cap = 0;
  *out = 0;
  pln_status status =
      pln_mem_grow(x->engine, (void **)&stack, &cap, 1, sizeof *stack);
  if (status == PLN_OK)
    stack[top++] = root;
  while (status == PLN_OK && top) {
    pln_ref node = stack[--top];
    if (pln_enode_is(x->eg, node, PLN_ENODE_SEEN) || !has_operands(x, node))
      continue;
    x->eg->nodes[node].flags |= PLN_ENODE_SEEN;
    const pln_node n = g->nodes[node];
    uint64_t constants = 0;
    uint32_t n_constant = 0;
    double cost = 0;
    status = pln_mem_grow(x->engine, (void **)&stack, &cap,
                          (size_t)top + n.count, sizeof *stack);
    for (uint32_t i = 0; i < n.count && status == PLN_OK; i++) {
      pln_ref operand = g->operands[n.first + i];
      uint32_t number = x->eg->nodes[pln_egraph_class(x->eg, operand)].number;
      bool constant = number && is_constant_class(x, number - 1);
      constants |= constant && i < 64 ? UINT64_C(1) << i : 0;
      n_constant += constant;
      stack[top++] = operand;
    }
    if (status == PLN_OK)
      status = cost_of(x, node, n.count, n_constant, constants, &cost);
    *out += cost;
  }
  pln_mem_free(x->engine, stack, cap * sizeof *stack);
  return status;
}

/* ------------------------------------------------------------------- picking
 */

static void save(pln_extraction *x) {
  memcpy(x->saved, x->picked, x->n_classes * sizeof *x->picked);
}

static void restore(pln_extraction *x) {
  memcpy(x->picked, x->saved, x->n_classes * sizeof *x->picked);
}

/* Improves what is picked; if that made a cycle, it stays as it was. */
static double improve(pln_extraction *x, double cost, bool groups_first) {
  save(x);
  (void)pln_extraction_improve(x, cost, groups_first);
  double now = pln_extraction_cost(x);
  if (now < cost)
    return now;
  restore(x);
  return cost;
}

/* Improves what is picked, and takes it if it is the cheapest so far: then
 * `best` has it. */
static void improve_and_keep(pln_extraction *x, bool groups_first,
                             uint32_t *best, double *cost) {
  double now = improve(x, pln_extraction_cost(x), groups_first);
  if (now >= *cost)
    return;
  *cost = now;
  memcpy(best, x->picked, x->n_classes * sizeof *best);
}

/* From the cheapest trees and from the program, of which the latter shares
 * more; and what a call shares with others may be worth more than what is
 * cheaper for itself, or less. */
static pln_status improve_all_ways(pln_extraction *x, double *cost) {
  uint32_t *best = new_words(x, x->n_classes);
  if (!best)
    return pln_nomem(x->engine);
  *cost = INFINITY;
  improve_and_keep(x, false, best, cost);
  for (int groups_first = 0; groups_first < 2; groups_first++) {
    pick_program(x);
    improve_and_keep(x, groups_first, best, cost);
  }
  memcpy(x->picked, best, x->n_classes * sizeof *best);
  free_words(x, best, x->n_classes);
  return PLN_OK;
}

pln_status pln_extraction_pick(pln_extraction *x, double *before,
                               double *after) {
  PLN_TRY(find_constants(x));
  PLN_TRY(program_cost(x, before));
  PLN_TRY(find_costs(x, *before));
  memset(x->stamp, 0, x->n_classes * sizeof *x->stamp);
  PLN_TRY(pick_trees(x));
  PLN_TRY(improve_all_ways(x, after));
  PLN_TRY(pln_extraction_exact(x, after));
  /* A difference below what sums of rounded numbers can tell is none. */
  if (*after > *before * (1 - 1e-9))
    *after = *before;
  return PLN_OK;
}

bool pln_extraction_force(pln_extraction *x, uint32_t n, const pln_ref *nodes,
                          double *cost) {
  pick_program(x);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t number = x->eg->nodes[pln_egraph_class(x->eg, nodes[i])].number;
    if (!number)
      continue;
    for (uint32_t c = x->first_choice[number - 1]; c < x->first_choice[number];
         c++)
      if (x->choices[c].node == nodes[i])
        x->picked[number - 1] = c;
  }
  *cost = pln_extraction_cost(x);
  return *cost < INFINITY;
}

/* ------------------------------------------------------------------ building
 */

static pln_status build_node(pln_extraction *x, pln_ref node,
                             const pln_ref *args, pln_ref *out) {
  pln_builder *b = x->eg->b;
  const pln_node n = b->graph->nodes[node];
  if (n.kind == PLN_TUPLE)
    return pln_build_tuple(b, n.count, args, out);
  if (n.kind == PLN_TUPLE_GET_ITEM)
    return pln_build_tuple_get_item(b, args[0], n.data, out);
  return pln_build_call(b, n.data, n.attrs, n.results, n.count, args, out);
}

/* A node whose operands are those that were picked is used as it is. */
static pln_status build_choice(pln_extraction *x, const pln_echoice *c,
                               pln_ref *args, pln_ref *out) {
  const pln_graph *g = pln_egraph_graph(x->eg);
  bool same = true;
  *out = c->node;
  for (uint32_t i = 0; i < c->count; i++) {
    args[i] = x->saved[x->operands[c->first + i]];
    same = same && args[i] == pln_operand(g, c->node, i);
  }
  return same ? PLN_OK : build_node(x, c->node, args, out);
}

/* Pushes the operands that are not built; *more: there are some. */
static bool push_unbuilt(pln_extraction *x, const pln_echoice *c,
                         uint32_t *top) {
  bool more = false;
  for (uint32_t i = c->count; i-- > 0;) {
    uint32_t operand = x->operands[c->first + i];
    if (x->saved[operand] != PLN_NONE)
      continue;
    x->stack[(*top)++] = operand;
    more = true;
  }
  return more;
}

static pln_status build_classes(pln_extraction *x, uint32_t *taken,
                                pln_ref *args) {
  uint32_t top = 0;
  x->stack[top++] = 0;
  while (top) {
    uint32_t class_ = x->stack[top - 1];
    const pln_echoice *c = &x->choices[x->picked[class_]];
    if (x->saved[class_] != PLN_NONE) {
      top--;
      continue;
    }
    if (push_unbuilt(x, c, &top))
      continue;
    top--;
    PLN_TRY(build_choice(x, c, args, &x->saved[class_]));
    uint32_t rule = x->eg->nodes[c->node].origin.made_by;
    if (rule && taken)
      taken[rule - 1]++;
  }
  return PLN_OK;
}

pln_status pln_extraction_build(pln_extraction *x, uint32_t *taken,
                                pln_ref *out) {
  size_t size = ((size_t)x->n_operands + 1) * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(x->engine, size);
  pln_type type = pln_egraph_graph(x->eg)->nodes[*out].type;
  if (!args)
    return pln_nomem(x->engine);
  /* From here on x->saved has the nodes that were built. */
  memset(x->saved, 0xff, x->n_classes * sizeof *x->saved);
  pln_status status = build_classes(x, taken, args);
  pln_mem_free(x->engine, args, size);
  if (status != PLN_OK)
    return status;
  if (pln_egraph_graph(x->eg)->nodes[x->saved[0]].type == type)
    *out = x->saved[0];
  return PLN_OK;
}
