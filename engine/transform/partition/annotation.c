/* annotation.c: builds and reads annotations of compilers. Used by the passes
 * of this folder. */

#include "transform/partition/annotation.h"

pln_status pln_annotation_ops_find(pln_engine *engine,
                                   pln_annotation_ops *out) {
  *out = (pln_annotation_ops){
      .engine = engine,
      .begin = pln_op_find(engine, pln_text("annotation.compiler_begin")),
      .end = pln_op_find(engine, pln_text("annotation.compiler_end"))};
  PLN_TRY(pln_symbol_intern(engine, pln_text("compiler"), &out->compiler));
  return pln_symbol_intern(engine, pln_text("default"), &out->fallback);
}

pln_status pln_annotation_compiler(const pln_annotation_ops *ops,
                                   const pln_node *annotation,
                                   pln_symbol *out) {
  return pln_symbol_intern(
      ops->engine,
      pln_attrs_string(ops->engine, annotation->attrs, "compiler", ""), out);
}

pln_status pln_annotate(const pln_annotation_ops *ops, pln_builder *b,
                        pln_op op, pln_symbol compiler, pln_ref value,
                        pln_ref *out) {
  pln_attrs attrs;
  pln_attr entry = {.name = ops->compiler, .kind = PLN_ATTR_STRING};
  entry.v.s = compiler ? pln_symbol_text(ops->engine, compiler) : pln_text("");
  PLN_TRY(pln_attrs_make(ops->engine, 1, &entry, &attrs));
  return pln_build_call(b, op, attrs, 0, 1, &value, out);
}
