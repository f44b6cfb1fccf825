/* x86_layout.h: the layouts in which operators run fast on processors of
 * x86. */

#ifndef PLN_TRANSFORM_LAYOUT_X86_LAYOUT_H
#define PLN_TRANSFORM_LAYOUT_X86_LAYOUT_H

#include "transform/compile_target.h"
#include "transform/layout/transform_layout.h"

/* Changes convolutions and dense products; other calls stay. */
pln_status pln_x86_alter_layout(const pln_compile_target *target,
                                pln_layout_change *change) PLN_CHECKED;

#endif
