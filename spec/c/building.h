/* building.h: an engine and a builder for tests of graphs, made by begin() and
 * freed by end(). */

#ifndef BUILDING_H
#define BUILDING_H

#include "ir/equal.h"
#include "ir/loop.h"
#include "ir/module.h"
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

#endif
