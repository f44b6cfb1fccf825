/* loop/builtin.c: the table of the loop level's builtins, made from
 * loop/builtins.def.
 *
 * Typing asks for their effects, the script printer for their names, scripts
 * for their numbers. */

#include "ir/loop/loop.h"

#define PLACE_NONE PLN_DTYPE_NOWHERE
#define PLACE_FIRST PLN_DTYPE_FIRST
#define PLACE_LAST PLN_DTYPE_LAST

static const pln_builtin_info rows[] = {
#define BUILTIN(name, effect, where, script) \
  {name, PLN_EFFECT_##effect, PLACE_##where, script},
#include "ir/loop/builtins.def"
};

uint32_t pln_builtin_count(void) {
  return PLN_COUNT(rows);
}

const pln_builtin_info *pln_builtin_row(uint32_t builtin) {
  return &rows[builtin - 1];
}

const char *pln_builtin_name(uint32_t builtin) {
  return builtin > 0 && builtin <= PLN_COUNT(rows) ? rows[builtin - 1].name
                                                   : "?";
}

uint32_t pln_builtin_find(pln_slice name) {
  for (uint32_t i = 0; i < PLN_COUNT(rows); i++)
    if (strlen(rows[i].name) == name.size &&
        !memcmp(rows[i].name, name.data, name.size))
      return i + 1;
  return 0;
}
