/* improve.c: the cost of an extraction in which each class is computed once,
 * and local search that lowers it.
 *
 * Trees are picked as if each use computed its operand anew, so a call that
 * computes several classes at once, such as one product for two merged ones, is
 * not picked: each of its users would pay for all of it. Here a class that is
 * not needed is tried together with all needed classes that can be computed of
 * it, and single choices are exchanged. A step looks at a class once; after
 * MAX_WORK steps the search ends. Called by extract.c. */

#include <math.h>

#include "rule/egraph/extract.h"

enum {
  MAX_WORK = 60000000,
  MAX_ROUNDS = 8,
  MAX_MEMBERS = 64, /* of a group */
  MAX_HEIGHT = 4    /* of a group's members above what they share */
};

static const pln_echoice *picked(const pln_extraction *x, uint32_t class_) {
  return &x->choices[x->picked[class_]];
}

/* -------------------------------------------------------------------- costs */

enum { UNSEEN, OPEN, DONE };

/* x->uses has the state of each class of the walk. */
static bool push_operands(pln_extraction *x, uint32_t class_, uint32_t *top) {
  const pln_echoice *c = picked(x, class_);
  for (uint32_t i = 0; i < c->count; i++) {
    uint32_t operand = x->operands[c->first + i];
    if (x->uses[operand] == OPEN)
      return false;
    if (x->uses[operand] == UNSEEN)
      x->stack[(*top)++] = operand;
  }
  return true;
}

static double walk_cost(pln_extraction *x) {
  uint32_t top = 0;
  double sum = 0;
  x->stack[top++] = 0;
  while (top) {
    uint32_t class_ = x->stack[top - 1];
    if (x->uses[class_] == UNSEEN) {
      x->uses[class_] = OPEN;
      sum += picked(x, class_)->cost;
      if (!push_operands(x, class_, &top))
        return INFINITY;
    } else {
      top--;
      x->uses[class_] = DONE;
    }
  }
  return sum;
}

/* The number of uses instead of states. */
static void count_uses(pln_extraction *x) {
  for (uint32_t i = 0; i < x->n_classes; i++)
    x->stamp[i] = x->uses[i] == DONE;
  memset(x->uses, 0, x->n_classes * sizeof *x->uses);
  x->uses[0] = 1;
  for (uint32_t class_ = 0; class_ < x->n_classes; class_++) {
    const pln_echoice *c = picked(x, class_);
    for (uint32_t i = 0; x->stamp[class_] && i < c->count; i++)
      x->uses[x->operands[c->first + i]]++;
  }
  memset(x->stamp, 0, x->n_classes * sizeof *x->stamp);
  x->stamped = 0;
}

double pln_extraction_cost(pln_extraction *x) {
  memset(x->uses, 0, x->n_classes * sizeof *x->uses);
  double sum = walk_cost(x);
  if (sum < INFINITY)
    count_uses(x);
  return sum;
}

/* ---------------------------------------------------------------- exchanging
 */

/* Adds a use of each operand of a choice (`by` 1), or takes one away (-1), and
 * goes on to the choices that become needed or needless by that; their cost. */
static double change_uses(pln_extraction *x, uint32_t choice, int by) {
  double sum = 0;
  uint32_t top = 0;
  x->stack[top++] = choice;
  while (top) {
    const pln_echoice *c = &x->choices[x->stack[--top]];
    for (uint32_t i = 0; i < c->count; i++) {
      uint32_t operand = x->operands[c->first + i];
      x->work++;
      x->uses[operand] += (uint32_t)by;
      if (x->uses[operand] != (by > 0))
        continue;
      sum += picked(x, operand)->cost;
      x->stack[top++] = x->picked[operand];
    }
  }
  return sum;
}

/* Pushes the operands of what is picked for a class; false: one of them is on
 * the way down to the class. */
static bool descend(pln_extraction *x, uint32_t class_, uint32_t *top) {
  const pln_echoice *c = picked(x, class_);
  for (uint32_t i = 0; i < c->count; i++) {
    uint32_t operand = x->operands[c->first + i];
    x->work++;
    if (x->stamp[operand] == x->stamped)
      return false;
    if (x->stamp[operand] != x->stamped + 1)
      x->stack[(*top)++] = operand;
  }
  return true;
}

/* Returns true if what the class is computed of has a cycle: also one that does
 * not contain it, of classes that were not needed when their choices were
 * exchanged. */
static bool is_cyclic(pln_extraction *x, uint32_t class_) {
  uint32_t top = 0;
  x->stamped += 2; /* the way down; and, one more, what is done */
  x->stack[top++] = class_;
  while (top) {
    class_ = x->stack[top - 1];
    if (x->stamp[class_] >= x->stamped) {
      top--;
      x->stamp[class_] = x->stamped + 1;
      continue;
    }
    x->stamp[class_] = x->stamped;
    if (!descend(x, class_, &top))
      return true;
  }
  return false;
}

/* Exchanges the choice of a class; the change of the sum. */
static double exchange(pln_extraction *x, uint32_t class_, uint32_t choice) {
  uint32_t old = x->picked[class_];
  if (!x->uses[class_]) { /* what was exchanged before made it needless */
    x->picked[class_] = choice;
    return 0;
  }
  double change = x->choices[choice].cost - x->choices[old].cost;
  x->picked[class_] = choice;
  change += change_uses(x, choice, 1);
  return change - change_uses(x, old, -1);
}

/* Counts all uses anew: those of a cycle are not found by what leads to it. */
static void recount(pln_extraction *x) {
  x->work += x->n_classes;
  (void)pln_extraction_cost(x);
}

static bool is_lower(double change, double cost) {
  return change < -1e-12 * cost;
}

static double try_choice(pln_extraction *x, uint32_t class_, uint32_t choice,
                         double cost) {
  uint32_t old = x->picked[class_];
  if (choice == old)
    return cost;
  double change = exchange(x, class_, choice);
  bool cyclic = is_cyclic(x, class_);
  if (!cyclic && is_lower(change, cost))
    return cost + change;
  if (!cyclic) {
    (void)exchange(x, class_, old);
    return cost;
  }
  x->picked[class_] = old;
  recount(x);
  return cost;
}

/* -------------------------------------------------------------------- groups
 */

typedef struct group_member {
  uint32_t class_, choice, old;
} group_member;

/* Needed classes that can be computed of one that is not. */
typedef struct member_group {
  group_member needed[MAX_MEMBERS], between[MAX_MEMBERS];
  uint32_t n_needed, n_between;
} member_group;

static void add_member(group_member *list, uint32_t *n, uint32_t class_,
                       uint32_t choice, uint32_t old) {
  for (uint32_t i = 0; i < *n; i++)
    if (list[i].class_ == class_)
      return;
  if (*n < MAX_MEMBERS)
    list[(*n)++] = (group_member){class_, choice, old};
}

static void add_users(pln_extraction *x, member_group *g, uint32_t class_) {
  uint32_t end = x->user_first[class_ + 1];
  for (uint32_t u = x->user_first[class_]; u < end; u++) {
    uint32_t choice = x->user_list[u], user = x->choices[choice].class_;
    x->work++;
    if (x->uses[user])
      add_member(g->needed, &g->n_needed, user, choice, x->picked[user]);
    else
      add_member(g->between, &g->n_between, user, choice, x->picked[user]);
  }
}

/* From the class that they share upwards. */
static void find_members(pln_extraction *x, member_group *g, uint32_t shared,
                         int most) {
  uint32_t begin = 0;
  g->n_needed = g->n_between = 0;
  add_users(x, g, shared);
  for (int height = 1; height < most; height++)
    for (uint32_t end = g->n_between; begin < end; begin++)
      add_users(x, g, g->between[begin].class_);
}

/* Exchanges back the first `n` needed classes of a group, the last one first.
 */
static void restore_group(pln_extraction *x, const member_group *g, uint32_t n,
                          bool cyclic) {
  while (n-- > 0)
    if (cyclic)
      x->picked[g->needed[n].class_] = g->needed[n].old;
    else
      (void)exchange(x, g->needed[n].class_, g->needed[n].old);
  for (uint32_t i = 0; i < g->n_between; i++)
    x->picked[g->between[i].class_] = g->between[i].old;
  if (cyclic)
    recount(x);
}

static double try_members(pln_extraction *x, const member_group *g,
                          double cost) {
  double change = 0;
  uint32_t n = 0;
  bool cyclic = false;
  if (g->n_needed < 2)
    return cost;
  for (uint32_t i = 0; i < g->n_between; i++)
    x->picked[g->between[i].class_] = g->between[i].choice;
  for (; n < g->n_needed && !cyclic; n++) {
    uint32_t class_ = g->needed[n].class_;
    change += exchange(x, class_, g->needed[n].choice);
    cyclic = x->uses[class_] && is_cyclic(x, class_);
  }
  if (!cyclic && is_lower(change, cost))
    return cost + change;
  restore_group(x, g, n, cyclic);
  return cost;
}

/* What lies close to the class first: what lies higher may be computed of it
 * at more cost. */
static double try_group(pln_extraction *x, member_group *g, uint32_t shared,
                        double cost) {
  uint32_t n = 0;
  for (int height = 2; height <= MAX_HEIGHT && !x->uses[shared]; height++) {
    find_members(x, g, shared, height);
    if (g->n_needed == n)
      continue;
    n = g->n_needed;
    cost = try_members(x, g, cost);
  }
  return cost;
}

/* -------------------------------------------------------------------- search
 */

static double improve_class(pln_extraction *x, member_group *g, uint32_t class_,
                            double cost, bool groups_only) {
  if (!x->uses[class_])
    return try_group(x, g, class_, cost);
  for (uint32_t c = x->first_choice[class_];
       c < x->first_choice[class_ + 1] && x->uses[class_] && !groups_only; c++)
    cost = try_choice(x, class_, c, cost);
  return cost;
}

double pln_extraction_improve(pln_extraction *x, double cost,
                              bool groups_first) {
  member_group g;
  x->work = 0;
  (void)pln_extraction_cost(x); /* x->uses */
  for (int round = 0; round < MAX_ROUNDS; round++) {
    double before = cost;
    bool groups_only = groups_first && round == 0;
    for (uint32_t c = 0; c < x->n_classes && x->work < MAX_WORK; c++)
      cost = improve_class(x, &g, c, cost, groups_only);
    if (!is_lower(cost - before, cost) && !groups_only)
      break;
  }
  return cost;
}
