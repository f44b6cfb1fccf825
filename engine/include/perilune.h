/* perilune.h: the public interface of perilune, a small native engine that
 * optimises tensor programs.
 *
 * Reading order: perilune/values.h (engine, diagnostics, dtypes and tensors,
 * types and dims, attributes, operators), graph.h (graphs, builder, rewriting,
 * modules, text), op_attr.h (attributes of operators), operator.h (operators of
 * one's own), pass.h (passes, contexts, pipelines), run.h (evaluation, files of
 * tensors, ONNX).
 *
 * Conventions
 *   - Functions that can fail return pln_status; results come last, through
 *     pointers, and are written on PLN_OK only. The reason of a failure is a
 *     diagnostic in the engine (pln_diag_*).
 *   - Objects named in a parameter are borrowed unless the comment says
 *     "takes". Objects given out through `pln_x **out` are owned by the caller
 *     and released with pln_x_release. Pointers returned directly are borrowed
 *     and live as long as the object they came from.
 *   - Ids (pln_symbol, pln_type, pln_attrs, pln_value) are interned in the
 *     engine: equal ids are equal things; 0 is "none"; they live as long as
 *     the engine. Strings are pln_slice: counted, not terminated, unless the
 *     type is `const char *`.
 *   - An engine and all its objects belong to one thread at a time.
 */

#ifndef PERILUNE_H
#define PERILUNE_H

#include "perilune/arith.h"
#include "perilune/codegen.h"
#include "perilune/graph.h"
#include "perilune/op_attr.h"
#include "perilune/operator.h"
#include "perilune/pass.h"
#include "perilune/run.h"
#include "perilune/te.h"
#include "perilune/values.h"

#endif
