/* legalize_clip.c: leaves out clips of what qnn.requantize has limited already.
 *
 * Called by legalize.c.
 *
 *     %0 = qnn.requantize(%x, s, z, t, y, out_dtype="int8");
 *     clip(%0, a_min=-128f, a_max=127f)
 *       =>   %0
 *
 * Semantics: TVM's legalize_clip. */

#include <math.h>

#include "transform/legalize/legalize.h"
#include "transform/quantize/qnn_call.h"

pln_status pln_legalize_clip(const pln_legalization *l, pln_ref *out) {
  double least, most;
  if (l->n_args != 1)
    return PLN_OK;
  const pln_node *x = &pln_rewrite_graph(l->rw)->nodes[l->args[0]];
  if (x->kind != PLN_CALL || x->data != PLN_OP_QNN_REQUANTIZE ||
      !pln_qnn_range(pln_type_dtype(l->engine, x->type), &least, &most))
    return PLN_OK;
  if (pln_attrs_float(l->engine, l->attrs, "a_min", NAN) == least &&
      pln_attrs_float(l->engine, l->attrs, "a_max", NAN) == most)
    *out = l->args[0];
  return PLN_OK;
}
