/* relay/metadata/json.h: reads JSON (RFC 8259) into a flat list of values. */

#ifndef PLN_IR_RELAY_METADATA_JSON_H
#define PLN_IR_RELAY_METADATA_JSON_H

#include "base/base.h"

typedef enum pln_json_kind {
  PLN_JSON_NULL = 0,
  PLN_JSON_FALSE,
  PLN_JSON_TRUE,
  PLN_JSON_NUMBER,
  PLN_JSON_STRING,
  PLN_JSON_ARRAY, /* its values follow, one behind the other */
  PLN_JSON_OBJECT /* its keys and values follow by turns */
} pln_json_kind;

typedef struct pln_json_value {
  uint8_t kind;   /* pln_json_kind */
  bool escaped;   /* a string with backslashes in it */
  uint32_t count; /* of an array: values; of an object: members */
  uint32_t next;  /* the value behind this one and all within it */
  pln_slice text; /* of a number or string, without quotes: in the text */
} pln_json_value;

typedef struct pln_json {
  pln_engine *engine;
  pln_json_value *values; /* the first is the whole */
  uint32_t count, capacity;
  size_t error; /* PLN_ERR_FORMAT: where */
} pln_json;

/* PLN_ERR_FORMAT without a diagnostic when the text is no JSON; to be freed in
 * either case. Slices lie in `text`. */
pln_status pln_json_read(pln_json *json, pln_engine *engine,
                         pln_slice text) PLN_CHECKED;
void pln_json_free(pln_json *json);
/* The value of a member, or NULL. `value` must be an object or NULL. */
const pln_json_value *pln_json_get(const pln_json *json,
                                   const pln_json_value *value,
                                   const char *key);
/* An integer without sign, as a number or as a string of digits. False for
 * anything else, and for NULL. */
bool pln_json_number(const pln_json_value *value, uint64_t *out);
/* The text of a string with its escapes resolved, appended. */
pln_status pln_json_text(const pln_json_value *value,
                         pln_buffer *out) PLN_CHECKED;

#endif
