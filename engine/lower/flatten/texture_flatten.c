/* texture_flatten.c: tir.TextureFlatten: the memory of a parameter is there:
 * its BufferRealize goes.
 *
 * Run by the executor before tir.StorageFlatten. Buffers in texture memory are
 * refused: there is no code for them.
 *
 *     T.realize(B[0:8]); B[i] = 0   =>   B[i] = 0      B: a parameter's buffer
 *
 * Semantics: TVM's tir.TextureFlatten. */

#include "lower/flatten/flatten.h"

typedef struct texture_flattener {
  const pln_graph *g;
  pln_idmap *external;
} texture_flattener;

static bool is_texture(const pln_graph *g, pln_ref buffer) {
  pln_type pointer = g->nodes[pln_operand(g, buffer, 0)].type;
  pln_slice scope =
      pln_symbol_text(g->engine, pln_type_symbol(g->engine, pointer));
  return scope.size >= 14 && memcmp(scope.data, "global.texture", 14) == 0;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const texture_flattener *x = ud;
  const pln_graph *g = x->g;
  if (g->nodes[stmt].kind != PLN_BUFFER_REALIZE)
    return PLN_OK;
  pln_ref buffer = pln_operand(g, stmt, 0);
  if (is_texture(g, buffer))
    return pln_diag_error(
        g->engine, PLN_ERR_ARGUMENT, NULL,
        "tir.TextureFlatten: there is no code for textures: "
        "'%s'",
        pln_symbol_text(g->engine, g->nodes[buffer].data).data);
  if (pln_is_external_buffer(x->external, g, buffer))
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

pln_status pln_texture_flatten(const pln_graph *function, pln_graph **out) {
  texture_flattener x = {.g = function};
  pln_stmt_mutator mutator = {.ud = &x, .leave = leave_stmt};
  PLN_TRY(pln_external_buffers(function, &x.external));
  pln_status status = pln_stmt_rewrite_function(function, &mutator, out);
  pln_idmap_free(x.external);
  return status;
}
