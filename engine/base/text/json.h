/* json.h: parses JSON (RFC 8259) into a flat list of values. */

#ifndef PLN_BASE_JSON_H
#define PLN_BASE_JSON_H

#include "base/base.h"

typedef enum pln_json_kind {
  PLN_JSON_NULL = 0,
  PLN_JSON_FALSE,
  PLN_JSON_TRUE,
  PLN_JSON_NUMBER,
  PLN_JSON_STRING,
  PLN_JSON_ARRAY, /* its values follow in order */
  PLN_JSON_OBJECT /* its keys and values follow alternately */
} pln_json_kind;

typedef struct pln_json_value {
  uint8_t kind;   /* pln_json_kind */
  bool escaped;   /* a string with escapes */
  uint32_t count; /* of an array: values; of an object: members */
  uint32_t next;  /* index of the value after this one and its contents */
  pln_slice text; /* number or string without quotes, in the input text */
} pln_json_value;

typedef struct pln_json {
  pln_engine *engine;
  pln_json_value *values; /* the first is the root */
  uint32_t count, capacity;
  size_t error; /* after PLN_ERR_FORMAT: the offset */
} pln_json;

/* PLN_ERR_FORMAT without a diagnostic when the text is not JSON; pln_json_free
 * must follow in any case. Slices point into `text`. */
pln_status pln_json_read(pln_json *json, pln_engine *engine,
                         pln_slice text) PLN_CHECKED;
void pln_json_free(pln_json *json);
/* The value of a member, or NULL. `value` must be an object or NULL. */
const pln_json_value *pln_json_get(const pln_json *json,
                                   const pln_json_value *value,
                                   const char *key);
/* An unsigned integer, as a number or a string of digits. False for anything
 * else, and for NULL. */
bool pln_json_number(const pln_json_value *value, uint64_t *out);
/* Appends the text of a string with escapes resolved. */
pln_status pln_json_text(const pln_json_value *value,
                         pln_buffer *out) PLN_CHECKED;

#endif
