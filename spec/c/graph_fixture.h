/* graph_fixture.h: an engine and a builder for tests of graphs, made by begin()
 * and freed by end(). */

#ifndef BUILDING_H
#define BUILDING_H

#include "ir/compare/equal.h"
#include "ir/graph/module.h"
#include "ir/tir/tir.h"
#include "oom.h"
#include "op/op.h"

/* After the headers, whose parameters have these names. */
static pln_engine *engine;
static pln_builder *b;

static inline void begin(void) {
  engine = pln_engine_new(NULL, NULL);
  CHECK_OK(pln_builder_new(engine, &b));
}

static inline void end(void) {
  pln_builder_free(b);
  pln_engine_free(engine);
}

static inline pln_ref add(pln_ref x, pln_ref y) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_call(b, PLN_OP_ADD, 0, 0, 2, (pln_ref[]){x, y}, &ref));
  return ref;
}

static inline pln_ref let(pln_ref v, pln_ref value, pln_ref body) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_floating_let(b, v, value, body, &ref));
  return ref;
}

static inline pln_ref function(uint32_t n, const pln_ref *params,
                               pln_ref body) {
  pln_ref f = PLN_NONE;
  CHECK_OK(pln_build_bind(b, n, params, body, 0, 0, &f));
  return f;
}

#endif
