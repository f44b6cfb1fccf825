/* module_equal.h: how two modules differ. */

#ifndef PLN_IR_COMPARE_MODULE_EQUAL_H
#define PLN_IR_COMPARE_MODULE_EQUAL_H

#include "ir/compare/equal.h"

typedef enum pln_modules_differ {
  PLN_MODULES_EQUAL = 0,
  PLN_MODULES_ENGINE,  /* they belong to two engines */
  PLN_MODULES_MISSING, /* one side has no function of that name */
  PLN_MODULES_TYPES,   /* how many definitions of types */
  PLN_MODULES_ATTRS,
  PLN_MODULES_TYPE, /* a definition, by name */
  PLN_MODULES_FUNCTION
} pln_modules_differ;

typedef struct pln_module_difference {
  pln_modules_differ what;
  pln_symbol name; /* of a function or of a definition */
  uint32_t a, b;   /* indices of the functions, or PLN_NONE */
} pln_module_difference;

pln_status pln_module_compare(const pln_module *a, const pln_module *b,
                              pln_type_match *match,
                              pln_module_difference *out) PLN_CHECKED;

#endif
