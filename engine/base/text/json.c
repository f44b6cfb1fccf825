/* json.c: a JSON parser for the metadata section.
 *
 * One pass without recursion: open arrays and objects are linked through their
 * `next` until they end. Strings are not copied. */

#include "base/text/json.h"

typedef struct reader {
  pln_json *json;
  const char *begin, *at, *end;
  uint32_t open; /* the innermost open array or object + 1; 0: none */
} reader;

static bool skip_json_space(reader *r) {
  while (r->at < r->end &&
         (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
    r->at++;
  return r->at < r->end;
}

static pln_status fail_json_read(reader *r) {
  r->json->error = (size_t)(r->at - r->begin);
  return PLN_ERR_FORMAT;
}

static pln_status add_json_value(reader *r, const pln_json_value *value) {
  pln_json *j = r->json;
  PLN_TRY(pln_mem_grow(j->engine, (void **)&j->values, &j->capacity,
                       (size_t)j->count + 1, sizeof *j->values));
  j->values[j->count] = *value;
  j->values[j->count].next = j->count + 1;
  j->count++;
  return PLN_OK;
}

/* ----------------------------------------------------------------- scalars */

static pln_status read_string(reader *r) {
  pln_json_value value = {.kind = PLN_JSON_STRING};
  const char *from = ++r->at;
  while (r->at < r->end && *r->at != '"') {
    value.escaped = value.escaped || *r->at == '\\';
    r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
  }
  if (r->at >= r->end)
    return fail_json_read(r);
  value.text = (pln_slice){from, (size_t)(r->at - from)};
  r->at++;
  return add_json_value(r, &value);
}

static bool in_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' ||
         c == 'e' || c == 'E';
}

static pln_status read_json_number(reader *r) {
  pln_json_value value = {.kind = PLN_JSON_NUMBER};
  const char *from = r->at;
  while (r->at < r->end && in_number(*r->at))
    r->at++;
  value.text = (pln_slice){from, (size_t)(r->at - from)};
  return value.text.size > 0 ? add_json_value(r, &value) : fail_json_read(r);
}

static pln_status read_word(reader *r) {
  static const char *const words[] = {"null", "false", "true"};
  for (uint8_t i = 0; i < PLN_COUNT(words); i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(r->end - r->at) >= n && !memcmp(r->at, words[i], n)) {
      pln_json_value value = {.kind = i};
      r->at += n;
      return add_json_value(r, &value);
    }
  }
  return read_json_number(r);
}

/* ------------------------------------------------------------------ nesting */

/* Begins an array or object. Until it ends, `next` holds the enclosing open
 * value + 1. */
static pln_status open(reader *r, pln_json_kind kind) {
  pln_json_value value = {.kind = (uint8_t)kind};
  r->at++;
  PLN_TRY(add_json_value(r, &value));
  r->json->values[r->json->count - 1].next = r->open;
  r->open = r->json->count;
  return PLN_OK;
}

static void close(reader *r) {
  pln_json_value *v = &r->json->values[r->open - 1];
  r->open = v->next;
  v->next = r->json->count;
  r->at++;
}

static char closer(const reader *r) {
  return r->json->values[r->open - 1].kind == PLN_JSON_ARRAY ? ']' : '}';
}

static pln_status read_key(reader *r) {
  if (!skip_json_space(r) || *r->at != '"')
    return fail_json_read(r);
  PLN_TRY(read_string(r));
  if (!skip_json_space(r) || *r->at != ':')
    return fail_json_read(r);
  r->at++;
  return PLN_OK;
}

/* Reads up to the next item of the innermost open value: commas, a key, and the
 * ends of values. */
static pln_status read_json_separator(reader *r, bool first) {
  while (r->open) {
    if (!skip_json_space(r))
      return fail_json_read(r);
    pln_json_value *v = &r->json->values[r->open - 1];
    if (*r->at == closer(r)) {
      close(r);
      first = false;
      continue;
    }
    if (!first && *r->at++ != ',')
      return fail_json_read(r);
    v->count++;
    return v->kind == PLN_JSON_OBJECT ? read_key(r) : PLN_OK;
  }
  return PLN_OK;
}

static pln_status read_json_value(reader *r) {
  bool nests = false;
  if (!skip_json_space(r))
    return fail_json_read(r);
  if (*r->at == '[' || *r->at == '{') {
    nests = true;
    PLN_TRY(open(r, *r->at == '[' ? PLN_JSON_ARRAY : PLN_JSON_OBJECT));
  } else if (*r->at == '"') {
    PLN_TRY(read_string(r));
  } else {
    PLN_TRY(read_word(r));
  }
  return read_json_separator(r, nests);
}

pln_status pln_json_read(pln_json *json, pln_engine *engine, pln_slice text) {
  *json = (pln_json){.engine = engine};
  reader r = {.json = json, .begin = text.data, .at = text.data};
  r.end = text.size ? text.data + text.size : text.data;
  do
    PLN_TRY(read_json_value(&r));
  while (r.open);
  return skip_json_space(&r) ? fail_json_read(&r) : PLN_OK;
}

void pln_json_free(pln_json *json) {
  pln_mem_free(json->engine, json->values,
               json->capacity * sizeof *json->values);
  json->values = NULL;
}

/* ----------------------------------------------------------------- reading */

const pln_json_value *pln_json_get(const pln_json *json,
                                   const pln_json_value *value,
                                   const char *key) {
  if (!value || value->kind != PLN_JSON_OBJECT)
    return NULL;
  uint32_t at = (uint32_t)(value - json->values) + 1;
  for (uint32_t i = 0; i < value->count; i++) {
    const pln_json_value *member = &json->values[at + 1];
    if (pln_slice_is(json->values[at].text, key))
      return member;
    at = member->next;
  }
  return NULL;
}

bool pln_json_number(const pln_json_value *value, uint64_t *out) {
  uint64_t number = 0;
  if (!value || value->text.size == 0 || value->text.size > 19 ||
      value->kind > PLN_JSON_STRING)
    return false;
  for (size_t i = 0; i < value->text.size; i++) {
    char c = value->text.data[i];
    if (c < '0' || c > '9')
      return false;
    number = number * 10 + (uint64_t)(c - '0');
  }
  *out = number;
  return true;
}

static uint32_t hex(const char *at) {
  uint32_t value = 0;
  for (int i = 0; i < 4; i++) {
    char c = at[i];
    uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                            : 0;
    value = value * 16 + digit;
  }
  return value;
}

/* Appends a code point below 65,536 in UTF-8. */
static pln_status put_code(pln_buffer *out, uint32_t code) {
  char bytes[3];
  size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
  bytes[0] = (char)(n == 1   ? code
                    : n == 2 ? 0xc0 | code >> 6
                             : 0xe0 | code >> 12);
  bytes[1] = (char)(n == 2 ? 0x80 | (code & 63) : 0x80 | (code >> 6 & 63));
  bytes[2] = (char)(0x80 | (code & 63));
  return pln_buffer_add(out, bytes, n);
}

pln_status pln_json_text(const pln_json_value *value, pln_buffer *out) {
  static const char letters[] = "bfnrt", bytes[] = "\b\f\n\r\t";
  pln_slice text = value->text;
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    const char *found;
    if (c != '\\' || i + 1 == text.size) {
      PLN_TRY(pln_buffer_add(out, &c, 1));
      continue;
    }
    c = text.data[++i];
    if (c == 'u' && text.size - i > 4) {
      PLN_TRY(put_code(out, hex(text.data + i + 1)));
      i += 4;
      continue;
    }
    found = c ? strchr(letters, c) : NULL;
    PLN_TRY(pln_buffer_add(out, found ? bytes + (found - letters) : &c, 1));
  }
  return PLN_OK;
}
