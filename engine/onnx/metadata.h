/* metadata.h: the entry of a model's metadata that holds the schedules which
 * tuning found for generated C: the module's attribute `schedules`. */

#ifndef PLN_ONNX_METADATA_H
#define PLN_ONNX_METADATA_H

#include "onnx/wire/wire.h"

/* Reads an entry (StringStringEntryProto). *is_schedules: it is that one, and
 * *value borrows its text. */
pln_status pln_metadata_schedules(pln_engine *engine, pln_message entry,
                                  bool *is_schedules,
                                  pln_slice *value) PLN_CHECKED;
/* Appends the entry for a module with schedules. */
pln_status pln_metadata_put_schedules(pln_rope *rope, pln_engine *engine,
                                      pln_attrs attrs) PLN_CHECKED;
/* The attributes with the schedules of a model, if it has some. */
pln_status pln_metadata_take_schedules(pln_engine *engine, pln_message model,
                                       pln_attrs *attrs) PLN_CHECKED;

#endif
