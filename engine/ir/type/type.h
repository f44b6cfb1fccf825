/* type/type.h: types as those see them that take them apart and rebuild them.
 */

#ifndef PLN_IR_TYPE_TYPE_H
#define PLN_IR_TYPE_TYPE_H

#include "base/base.h"

/* What a type has inside, at whatever depth. */
enum {
  PLN_TYPE_HAS_HOLE = 1,        /* something incomplete */
  PLN_TYPE_HAS_VAR = 2,         /* a type variable, bound or free */
  PLN_TYPE_HAS_OPEN_TENSOR = 8, /* a dtype, rank or dim that is not known */
  PLN_TYPE_HAS_NAME = 4 /* what a module defines, a variable, a relation: its
                    kind is not evident */
};
uint8_t pln_type_flags(const pln_engine *engine, pln_type type);

/* All parts: also a function type's type parameters and constraints. Valid
 * until the engine goes. */
const pln_type *pln_type_all_parts(const pln_engine *engine, pln_type type,
                                   uint32_t *n);
/* The same kind of type with all other parts, as many. */
pln_status pln_type_rebuild(pln_engine *engine, pln_type type,
                            const pln_type *parts, pln_type *out) PLN_CHECKED;
/* The same kind of type with other parts, as many: type parameters,
 * constraints and all else stay. */
pln_status pln_type_with_parts(pln_engine *engine, pln_type type,
                               const pln_type *parts,
                               pln_type *out) PLN_CHECKED;
/* A function type with the type parameters that the tuple `vars` lists, or 0;
 * other types stay. */
pln_status pln_type_generic(pln_engine *engine, pln_type func, pln_type vars,
                            pln_type *out) PLN_CHECKED;
/* The hole of that number among those of a unifier: numbers may be used again
 * by the next one. */
pln_status pln_type_own_hole(pln_engine *engine, uint32_t number,
                             pln_type *out) PLN_CHECKED;
/* Is it one of those, and not made by a user? */
bool pln_type_is_own_hole(const pln_engine *engine, pln_type type);
/* Its number, or PLN_NONE when it is none of those. */
uint32_t pln_type_own_number(const pln_engine *engine, pln_type type);

/* pln_type_meet, which remembers in *pairs (NULL at first; freed by the caller)
 * what was met before. */
pln_status pln_type_meet_again(pln_engine *engine, pln_type a, pln_type b,
                               pln_idmap **pairs, pln_type *out,
                               bool *conflict) PLN_CHECKED;

/* symbolic_value.c: does `now` tell all that `old` told of the same elements?
 */
bool pln_value_refines(const pln_engine *engine, pln_value now, pln_value old);

#endif
