/* target_text.c: the text of a target as a dictionary, the attribute `target`
 * of functions (attrs.h).
 *
 *     llvm -keys=cpu -num-cores=4 -host="c -keys=cpu"
 *         =>   {kind = "llvm", keys = ["cpu"], tag = "", num-cores = 4,
 *               host = {kind = "c", keys = ["cpu"], tag = ""}}
 *
 * Called by tir.BindTarget and the parser of TVMScript. What always holds: the
 * text is read once; a host's text has no host of its own. */

#include "ir/attrs/attrs.h"

/* Attributes that are lists of names. */
static const char *const lists[] = {"keys", "mattr", "libs"};

/* The keys of a kind whose text has none. */
static const struct {
  const char *kind;
  pln_slice keys;
} default_keys[] = {
    {"llvm", {"cpu", 3}},
    {"c", {"cpu", 3}},
    {"cuda", {"cuda,gpu", 8}},
    {"nvptx", {"cuda,gpu", 8}},
    {"rocm", {"rocm,gpu", 8}},
    {"opencl", {"opencl,gpu", 10}},
    {"vulkan", {"vulkan,gpu", 10}},
    {"metal", {"metal,gpu", 9}},
    {"webgpu", {"webgpu,gpu", 10}},
    {"hexagon", {"hexagon,cpu", 11}},
    {"stackvm", {"cpu", 3}},
    {"hybrid", {"hybrid", 6}},
    {"sdaccel", {"sdaccel,hls", 11}},
    {"aocl", {"aocl,hls", 8}},
    {"aocl_sw_emu", {"aocl,hls", 8}},
};

static pln_status set(pln_engine *e, pln_slice name, pln_attr value,
                      pln_attrs *dict) {
  PLN_TRY(pln_symbol_intern(e, name, &value.name));
  return pln_attrs_with(e, *dict, &value, dict);
}

static uint32_t count_names(pln_slice text) {
  uint32_t n = text.size > 0;
  for (size_t i = 0; i < text.size; i++)
    n += text.data[i] == ',';
  return n;
}

/* Names separated by commas. */
static pln_status set_names(pln_engine *e, const char *name, pln_slice text,
                            pln_attrs *dict) {
  uint32_t n = count_names(text);
  size_t size = (n + 1) * sizeof(pln_slice);
  pln_slice *names = pln_mem_new(e, size);
  if (!names)
    return pln_nomem(e);
  for (size_t i = 0, at = 0; i < n; i++) {
    const char *comma = memchr(text.data + at, ',', text.size - at);
    size_t end = comma ? (size_t)(comma - text.data) : text.size;
    names[i] = (pln_slice){text.data + at, end - at};
    at = end + 1;
  }
  pln_status status =
      set(e, pln_text(name),
          (pln_attr){.kind = PLN_ATTR_STRINGS, .count = n, .v.strings = names},
          dict);
  pln_mem_free(e, names, size);
  return status;
}

/* Digits are a number. */
static bool read_number(pln_slice text, int64_t *out) {
  *out = 0;
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] < '0' || text.data[i] > '9' || i > 17)
      return false;
    *out = *out * 10 + (text.data[i] - '0');
  }
  return text.size > 0;
}

static pln_status set_plain(pln_engine *e, pln_slice name, pln_slice value,
                            pln_attrs *dict) {
  pln_attr attr = {.kind = PLN_ATTR_STRING, .v.s = value};
  int64_t number;
  if (read_number(value, &number))
    attr = (pln_attr){.kind = PLN_ATTR_INT, .v.i = number};
  return set(e, name, attr, dict);
}

/* The next word; a part in quotes belongs to it. */
static pln_slice next_word(pln_slice *rest) {
  char quote = 0;
  size_t i = 0, start;
  while (i < rest->size && rest->data[i] == ' ')
    i++;
  for (start = i; i < rest->size && (quote || rest->data[i] != ' '); i++)
    if (quote ? rest->data[i] == quote
              : rest->data[i] == '"' || rest->data[i] == '\'')
      quote = quote ? 0 : rest->data[i];
  pln_slice word = {rest->data + start, i - start};
  *rest = (pln_slice){rest->data + i, rest->size - i};
  return word;
}

static pln_slice unquoted(pln_slice s) {
  bool quotes = s.size >= 2 && (s.data[0] == '"' || s.data[0] == '\'') &&
                s.data[s.size - 1] == s.data[0];
  return quotes ? (pln_slice){s.data + 1, s.size - 2} : s;
}

static pln_status refuse(pln_engine *e, pln_slice word) {
  return pln_diag_error(e, PLN_ERR_FORMAT, NULL,
                        "a target is a kind and words -name=value, not '%.*s'",
                        (int)word.size, word.data);
}

/* -name=value, or -name, which is true. `host` is where a host's text goes;
 * NULL: it may have none. */
static pln_status read_word(pln_engine *e, pln_slice word, pln_slice *host,
                            pln_attrs *dict) {
  size_t start = word.size > 1 && word.data[1] == '-' ? 2 : 1;
  if (word.size <= start || word.data[0] != '-')
    return refuse(e, word);
  const char *equals = memchr(word.data, '=', word.size);
  size_t end = equals ? (size_t)(equals - word.data) : word.size;
  pln_slice name = {word.data + start, end - start}, value;
  if (!equals)
    return set(e, name, (pln_attr){.kind = PLN_ATTR_BOOL, .v.i = 1}, dict);
  value = unquoted((pln_slice){equals + 1, word.size - end - 1});
  for (size_t i = 0; i < PLN_COUNT(lists); i++)
    if (pln_slice_is(name, lists[i]))
      return set_names(e, lists[i], value, dict);
  if (!pln_slice_is(name, "host"))
    return set_plain(e, name, value, dict);
  if (!host)
    return refuse(e, word);
  *host = value;
  return PLN_OK;
}

/* The entries that every target has, where there are none. */
static pln_status add_defaults(pln_engine *e, pln_attrs *dict) {
  pln_slice kind = pln_attrs_string(e, *dict, "kind", ""), keys = {"", 0};
  if (!pln_attrs_find(e, *dict, "tag"))
    PLN_TRY(set(e, pln_text("tag"),
                (pln_attr){.kind = PLN_ATTR_STRING, .v.s = pln_text("")},
                dict));
  if (pln_attrs_find(e, *dict, "keys"))
    return PLN_OK;
  for (size_t i = 0; i < PLN_COUNT(default_keys); i++)
    if (pln_slice_is(kind, default_keys[i].kind))
      keys = default_keys[i].keys;
  return set_names(e, "keys", keys, dict);
}

static pln_status read_target(pln_engine *e, pln_slice text, pln_slice *host,
                              pln_attrs *out) {
  pln_slice kind = next_word(&text), word;
  *out = 0;
  if (kind.size == 0 || kind.data[0] == '-')
    return refuse(e, kind);
  PLN_TRY(set(e, pln_text("kind"),
              (pln_attr){.kind = PLN_ATTR_STRING, .v.s = kind}, out));
  while ((word = next_word(&text)).size > 0)
    PLN_TRY(read_word(e, word, host, out));
  return add_defaults(e, out);
}

pln_status pln_target_read(pln_engine *e, pln_slice text, pln_attrs *out) {
  pln_slice host_text = {NULL, 0};
  pln_attrs host;
  PLN_TRY(read_target(e, text, &host_text, out));
  if (host_text.size == 0)
    return PLN_OK;
  PLN_TRY(read_target(e, host_text, NULL, &host));
  return set(e, pln_text("host"),
             (pln_attr){.kind = PLN_ATTR_DICT, .v.dict = host}, out);
}

/* ------------------------------------------------------------- dictionaries
 */

static pln_status check_kind(pln_engine *e, pln_attrs target) {
  const pln_attr *kind = pln_attrs_find(e, target, "kind");
  return kind && kind->kind == PLN_ATTR_STRING && kind->v.s.size > 0
             ? PLN_OK
             : pln_diag_error(e, PLN_ERR_FORMAT, NULL,
                              "a target needs the text 'kind'");
}

static pln_status complete_host(pln_engine *e, const pln_attr *host,
                                pln_attrs *out) {
  if (host->kind == PLN_ATTR_STRING)
    return read_target(e, host->v.s, NULL, out);
  if (host->kind != PLN_ATTR_DICT)
    return pln_diag_error(e, PLN_ERR_FORMAT, NULL,
                          "the host of a target is a text or a dictionary");
  *out = host->v.dict;
  PLN_TRY(check_kind(e, *out));
  return add_defaults(e, out);
}

pln_status pln_target_complete(pln_engine *e, pln_attrs target,
                               pln_attrs *out) {
  const pln_attr *host = pln_attrs_find(e, target, "host");
  pln_attrs host_dict;
  *out = target;
  PLN_TRY(check_kind(e, target));
  if (host) {
    PLN_TRY(complete_host(e, host, &host_dict));
    PLN_TRY(set(e, pln_text("host"),
                (pln_attr){.kind = PLN_ATTR_DICT, .v.dict = host_dict}, out));
  }
  return add_defaults(e, out);
}
