/* fold_relay_padding.h: the part of FoldExplicitPadding for Relay's operators.
 */

#ifndef PLN_TRANSFORM_FOLD_FOLD_RELAY_PADDING_H
#define PLN_TRANSFORM_FOLD_FOLD_RELAY_PADDING_H

#include "transform/simplify/rule.h"

/* The call with the padding of the nn.pad that it uses; PLN_NONE: it cannot
 * have it, or uses none. */
pln_status pln_fold_relay_padding(pln_rewrite_context *ctx,
                                  pln_ref *out) PLN_CHECKED;

#endif
