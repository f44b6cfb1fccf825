/* type/type.h: internal access to types for code that traverses and rebuilds
 * them. */

#ifndef PLN_IR_TYPE_TYPE_H
#define PLN_IR_TYPE_TYPE_H

#include "base/base.h"

/* What a type contains at any depth. */
enum {
  PLN_TYPE_HAS_HOLE = 1,        /* something incomplete */
  PLN_TYPE_HAS_VAR = 2,         /* a type variable, bound or free */
  PLN_TYPE_HAS_OPEN_TENSOR = 8, /* an unknown dtype, rank or dim */
  PLN_TYPE_HAS_NAME = 4 /* a name defined by a module, a variable or a relation:
                         * kind checking must look at it */
};
uint8_t pln_type_flags(const pln_engine *engine, pln_type type);

/* All parts, including a function type's type parameters and constraints. Valid
 * as long as the engine. */
const pln_type *pln_type_all_parts(const pln_engine *engine, pln_type type,
                                   uint32_t *n);
/* The same kind of type with all parts replaced by as many others. */
pln_status pln_type_rebuild(pln_engine *engine, pln_type type,
                            const pln_type *parts, pln_type *out) PLN_CHECKED;
/* The same kind of type with as many other parts; type parameters, constraints
 * and everything else are kept. */
pln_status pln_type_with_parts(pln_engine *engine, pln_type type,
                               const pln_type *parts,
                               pln_type *out) PLN_CHECKED;
/* A function type with the type parameters in the tuple `vars`, or none for 0.
 * Other types are returned unchanged. */
pln_status pln_type_generic(pln_engine *engine, pln_type func, pln_type vars,
                            pln_type *out) PLN_CHECKED;
/* The unifier hole of that number. Successive unifiers reuse the numbers. */
pln_status pln_type_own_hole(pln_engine *engine, uint32_t number,
                             pln_type *out) PLN_CHECKED;
/* True for a unifier's hole, false for one made by a user. */
bool pln_type_is_own_hole(const pln_engine *engine, pln_type type);
/* Its number, or PLN_NONE when it is not a unifier's hole. */
uint32_t pln_type_own_number(const pln_engine *engine, pln_type type);

/* pln_type_meet with a memo in *pairs (NULL at first; freed by the caller). */
pln_status pln_type_meet_again(pln_engine *engine, pln_type a, pln_type b,
                               pln_idmap **pairs, pln_type *out,
                               bool *conflict) PLN_CHECKED;

/* symbolic_value.c: true if `now` contains all information of `old`. */
bool pln_value_refines(const pln_engine *engine, pln_value now, pln_value old);

/* Returns true for tensors of equal dtype and shape, all dims known or
 * symbolic. */
bool pln_same_shape(const pln_engine *engine, pln_type a, pln_type b);
/* The same if the numbers of elements are known to be equal; then one dim may
 * be unknown. */
bool pln_same_shape_by_count(const pln_engine *engine, pln_type a, pln_type b);
/* Returns true if all extents are equal and known or symbolic; dtypes may
 * differ. */
bool pln_same_extents(const pln_engine *engine, pln_type a, pln_type b);

#endif
