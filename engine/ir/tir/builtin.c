/* tir/builtin.c: the table of TIR builtins, generated from tir/builtins.def.
 *
 * Inference uses their effects, the script printer their names, scripts their
 * numbers. */

#include "ir/tir/tir.h"

#define PLACE_NONE PLN_DTYPE_NOWHERE
#define PLACE_FIRST PLN_DTYPE_FIRST
#define PLACE_LAST PLN_DTYPE_LAST

static const pln_builtin_info rows[] = {
#define BUILTIN(name, effect, args, where, result, script) \
  {name, PLN_CALL_##effect, args, PLACE_##where, PLN_RESULT_##result, script},
#include "ir/tir/builtins.def"
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

pln_effect pln_call_effect(pln_call_kind kind) {
  switch (kind) {
  case PLN_CALL_EXPR_ANNOTATION:
  case PLN_CALL_PURE:
  case PLN_CALL_SPECIAL_CALL_ARG:
  case PLN_CALL_EMBED_INFO: return PLN_EFFECT_NONE;
  case PLN_CALL_READ_STATE: return PLN_EFFECT_READS;
  case PLN_CALL_UPDATE_STATE: return PLN_EFFECT_WRITES;
  case PLN_CALL_OPAQUE:
  case PLN_CALL_CONTROL_JUMP: return PLN_EFFECT_UNKNOWN;
  }
  return PLN_EFFECT_UNKNOWN;
}

const char *pln_call_kind_name(pln_call_kind kind) {
  static const char *const names[] = {
      "expr_annotation",  "pure",       "read_state",  "update_state", "opaque",
      "special_call_arg", "embed_info", "control_jump"};
  return (unsigned)kind < PLN_COUNT(names) ? names[kind] : "?";
}

pln_call_kind pln_builtin_call_kind(uint32_t builtin) {
  return builtin > 0 && builtin <= PLN_COUNT(rows) ? rows[builtin - 1].effect
                                                   : PLN_CALL_OPAQUE;
}

int32_t pln_builtin_args(uint32_t builtin) {
  return builtin > 0 && builtin <= PLN_COUNT(rows) ? rows[builtin - 1].args
                                                   : -1;
}

uint32_t pln_builtin_find(pln_slice name) {
  for (uint32_t i = 0; i < PLN_COUNT(rows); i++)
    if (strlen(rows[i].name) == name.size &&
        !memcmp(rows[i].name, name.data, name.size))
      return i + 1;
  return 0;
}
