/* equation.c: rules that hold in both directions.
 *
 *     matmul(matmul(?a, ?b), ?c) <=> matmul(?a, matmul(?b, ?c))
 *
 * Such a rule becomes two, one for each direction; both have its condition.
 * Only saturation (rule/egraph) takes them: applied one by one, the two would
 * undo each other without end. */

#include "rule/set.h"

/* "LEFT => RIGHT WHERE", from parts of a text. */
static char *join_sides(pln_rule_set *set, pln_slice left, pln_slice right,
                        pln_slice where) {
  static const char arrow[] = " => ";
  size_t n = sizeof arrow - 1;
  char *text =
      pln_arena_new(&set->arena, left.size + n + right.size + where.size + 2);
  if (!text)
    return NULL;
  char *to = text;
  memcpy(to, left.data, left.size);
  memcpy(to += left.size, arrow, n);
  memcpy(to += n, right.data, right.size);
  to += right.size;
  *to++ = ' ';
  memcpy(to, where.data, where.size);
  to[where.size] = 0;
  return text;
}

/* The name of one direction of a named rule; NULL: it has none, or there is no
 * memory. */
static const char *name_direction(pln_rule_set *set, const pln_ast *a,
                                  const char *suffix) {
  size_t n = strlen(suffix);
  if (!a->name.size)
    return NULL;
  char *name = pln_arena_new(&set->arena, a->name.size + n + 1);
  if (!name)
    return NULL;
  memcpy(name, a->name.data, a->name.size);
  memcpy(name + a->name.size, suffix, n + 1);
  return name;
}

static pln_status add_direction(pln_rule_set *set, const pln_rule_info *info,
                                const pln_ast *a, bool reversed,
                                pln_rule_find_native find) {
  const char *text = a->source.data;
  pln_slice left = {.data = text + a->begin, .size = a->arrow - a->begin};
  pln_slice right = {.data = text + a->arrow + 3,
                     .size = a->where - a->arrow - 3};
  pln_slice where = {.data = text + a->where,
                     .size = a->source.size - a->where};
  pln_rule_info one = *info;
  one.text = reversed ? join_sides(set, right, left, where)
                      : join_sides(set, left, right, where);
  if (!info->name)
    one.name = name_direction(set, a, reversed ? "_reversed" : "");
  if (!one.text || (!one.name && a->name.size))
    return pln_nomem(set->engine);
  pln_status status = pln_rule_set_add(set, &one, find);
  if (status == PLN_ERR_FORMAT && reversed)
    pln_diag_note(set->engine, NULL,
                  "the rule holds in both directions; this is the reverse");
  return status;
}

pln_status pln_rule_set_add_equation(pln_rule_set *set,
                                     const pln_rule_info *info,
                                     pln_rule_find_native find) {
  pln_ast a;
  set->saturates = true;
  pln_status status = pln_ast_parse(set->engine, pln_text(info->text),
                                    info->file, info->row ? info->row : 1, &a);
  if (status == PLN_OK && !a.equation)
    status = pln_rule_set_add(set, info, find);
  else if (status == PLN_OK)
    status = add_direction(set, info, &a, false, find);
  if (status == PLN_OK && a.equation)
    status = add_direction(set, info, &a, true, find);
  pln_ast_free(&a);
  return status;
}
