/* regex_full_match.c: RegexFullMatch: whether whole strings match a regular
 * expression. Called through ops.def.
 *
 * ONNX specifies RE2's syntax. Matching is done by PCRE2, which accepts that
 * and more; the library is opened for each call, and allocates through the
 * engine. Expressions that the two interpret differently are refused. So is a
 * match that would take long, because PCRE2 backtracks. */

#include "base/library.h"
#include "op/kernel/kernel.h"

/* The constants of pcre2.h. */
#define DOLLAR_ENDONLY 0x00000010u
#define UTF 0x00080000u
#define NEVER_BACKSLASH_C 0x00100000u
#define ENDANCHORED 0x20000000u
#define ANCHORED 0x80000000u
enum {
  NEWLINE_LF = 2,
  ERROR_NOMATCH = -1,
  ERROR_UTF8_FIRST = -3,
  ERROR_UTF8_LAST = -23,
  ERROR_MATCHLIMIT = -47,
  ERROR_NOMEMORY = -48,
  ERROR_HEAPLIMIT = -63,
  ERROR_COMPILE_NOMEMORY = 121
};

/* Limits on the steps (some 10 ms) and on the memory (KiB) of one match. */
enum { MATCH_LIMIT = 1000000, HEAP_LIMIT = 64 * 1024 };

/* The functions of pcre2.h that are used. */
typedef struct pcre2 {
  void *library;
  void *(*general_context_create)(void *(*new)(size_t, void *),
                                  void (*free)(void *, void *), void *ud);
  void (*general_context_free)(void *general);
  void *(*compile_context_create)(void *general);
  void (*compile_context_free)(void *context);
  int (*set_newline)(void *context, uint32_t newline);
  void *(*compile)(const uint8_t *pattern, size_t size, uint32_t options,
                   int *error, size_t *offset, void *context);
  void (*code_free)(void *code);
  void *(*match_context_create)(void *general);
  void (*match_context_free)(void *context);
  int (*set_match_limit)(void *context, uint32_t limit);
  int (*set_heap_limit)(void *context, uint32_t limit);
  void *(*match_data_create)(uint32_t n_pairs, void *general);
  void (*match_data_free)(void *data);
  int (*match)(const void *code, const uint8_t *subject, size_t size,
               size_t start, uint32_t options, void *data, void *context);
  int (*get_error_message)(int error, uint8_t *text, size_t size);
} pcre2;

/* A compiled pattern and its match data. */
typedef struct regex {
  const pcre2 *lib;
  void *general, *code, *context, *data;
  bool has_space_class; /* \s, \S */
  bool has_word_class;  /* \w, \W, [:word:] and the like */
} regex;

/* ------------------------------------------------------------------ library */

static bool open_pcre2(pcre2 *lib) {
  void *l = lib->library = pln_library_open("libpcre2-8.so.0");
#define FIND(name) pln_library_find(l, "pcre2_" #name "_8", &lib->name)
  return l && FIND(general_context_create) && FIND(general_context_free) &&
         FIND(compile_context_create) && FIND(compile_context_free) &&
         FIND(set_newline) && FIND(compile) && FIND(code_free) &&
         FIND(match_context_create) && FIND(match_context_free) &&
         FIND(set_match_limit) && FIND(set_heap_limit) &&
         FIND(match_data_create) && FIND(match_data_free) && FIND(match) &&
         FIND(get_error_message);
#undef FIND
}

/* ------------------------------------------------------------------- memory */

/* PCRE2 frees blocks without their size, so it is stored in front of them. */
typedef union block_size {
  size_t size;
  max_align_t align;
} block_size;

static void *allocate_for_pcre2(size_t size, void *engine) {
  if (size > SIZE_MAX - sizeof(block_size))
    return NULL;
  block_size *block = pln_mem_new(engine, size + sizeof *block);
  if (!block)
    return NULL;
  block->size = size + sizeof *block;
  return block + 1;
}

static void free_for_pcre2(void *memory, void *engine) {
  if (memory)
    pln_mem_free(engine, (block_size *)memory - 1,
                 ((block_size *)memory - 1)->size);
}

/* --------------------------------------------------------------- expression */

static void free_regex(regex *r) {
  if (r->data)
    r->lib->match_data_free(r->data);
  if (r->context)
    r->lib->match_context_free(r->context);
  if (r->code)
    r->lib->code_free(r->code);
  if (r->general)
    r->lib->general_context_free(r->general);
}

/* Records the character classes that RE2 interprets differently. */
static void find_classes(pln_slice pattern, regex *r) {
  for (size_t i = 0; i + 1 < pattern.size; i++) {
    char c = pattern.data[i], next = pattern.data[i + 1];
    r->has_word_class |= c == '[' && next == ':';
    if (c != '\\')
      continue;
    r->has_space_class |= (next | 0x20) == 's';
    r->has_word_class |= (next | 0x20) == 'w';
    i++;
  }
}

/* PCRE2's \s includes the vertical tab. Without regard to case its letter
 * classes include the Kelvin sign and the long s, as forms of k and s. */
static bool is_read_differently(const regex *r, pln_slice text) {
  if (!r->has_space_class && !r->has_word_class)
    return false;
  for (size_t i = 0; i < text.size; i++) {
    const char *at = text.data + i;
    size_t left = text.size - i;
    if (r->has_space_class && *at == '\v')
      return true;
    if (r->has_word_class && ((left > 2 && !memcmp(at, "\xe2\x84\xaa", 3)) ||
                              (left > 1 && !memcmp(at, "\xc5\xbf", 2))))
      return true;
  }
  return false;
}

static pln_status refuse_pattern(pln_kernel_call *call, const pcre2 *lib,
                                 int error, size_t offset) {
  char reason[160] = "";
  if (error == ERROR_COMPILE_NOMEMORY)
    return pln_nomem(call->engine);
  lib->get_error_message(error, (uint8_t *)reason, sizeof reason);
  return pln_kernel_refuse(call, "pattern, byte %zu: %s", offset, reason);
}

static pln_status compile_code(pln_kernel_call *call, pln_slice pattern,
                               regex *r) {
  int error = 0;
  size_t offset = 0;
  void *context = r->lib->compile_context_create(r->general);
  if (!context)
    return pln_nomem(call->engine);
  r->lib->set_newline(context, NEWLINE_LF);
  r->code = r->lib->compile((const uint8_t *)pattern.data, pattern.size,
                            ANCHORED | ENDANCHORED | UTF | DOLLAR_ENDONLY |
                                NEVER_BACKSLASH_C,
                            &error, &offset, context);
  r->lib->compile_context_free(context);
  return r->code ? PLN_OK : refuse_pattern(call, r->lib, error, offset);
}

static pln_status compile_regex(pln_kernel_call *call, pln_slice pattern,
                                regex *r) {
  const pcre2 *lib = r->lib;
  find_classes(pattern, r);
  r->general = lib->general_context_create(allocate_for_pcre2, free_for_pcre2,
                                           call->engine);
  if (!r->general)
    return pln_nomem(call->engine);
  PLN_TRY(compile_code(call, pattern, r));
  r->context = lib->match_context_create(r->general);
  r->data = lib->match_data_create(1, r->general);
  if (!r->context || !r->data)
    return pln_nomem(call->engine);
  lib->set_match_limit(r->context, MATCH_LIMIT);
  lib->set_heap_limit(r->context, HEAP_LIMIT);
  return PLN_OK;
}

/* ------------------------------------------------------------------ matches */

static pln_status match_string(pln_kernel_call *call, const regex *r,
                               pln_slice text, uint8_t *out) {
  if (is_read_differently(r, text))
    return pln_kernel_refuse(call, "RE2 and PCRE2 read the pattern's classes "
                                   "differently for a character of a string");
  int found =
      r->lib->match(r->code, (const uint8_t *)(text.data ? text.data : ""),
                    text.size, 0, 0, r->data, r->context);
  *out = found >= 0;
  if (found >= 0 || found == ERROR_NOMATCH)
    return PLN_OK;
  if (found == ERROR_NOMEMORY)
    return pln_nomem(call->engine);
  if (found <= ERROR_UTF8_FIRST && found >= ERROR_UTF8_LAST)
    return pln_kernel_refuse(call, "a string is not valid UTF-8");
  if (found == ERROR_MATCHLIMIT || found == ERROR_HEAPLIMIT)
    return pln_kernel_refuse(call, "a match takes too long");
  return pln_kernel_refuse(call, "PCRE2 cannot match a string");
}

static pln_status match_strings(pln_kernel_call *call, const regex *r) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_slice *texts = x->data;
  void *out;
  PLN_TRY(pln_kernel_unset(call, 0, PLN_BOOL, x->rank, x->dims, &out));
  for (size_t i = 0; i < x->count; i++) {
    PLN_TRY(pln_poll(call->engine));
    PLN_TRY(match_string(call, r, texts[i], (uint8_t *)out + i));
  }
  return PLN_OK;
}

pln_status pln_kernel_regex_full_match(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_slice pattern =
      pln_attrs_string(call->engine, call->attrs, "pattern", "");
  pcre2 lib = {.library = NULL};
  regex r = {.lib = &lib};
  if (x->dtype != PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  pln_status status =
      open_pcre2(&lib)
          ? compile_regex(call, pattern, &r)
          : pln_kernel_refuse(call, "PCRE2 (libpcre2-8.so.0) cannot be opened");
  if (status == PLN_OK)
    status = match_strings(call, &r);
  free_regex(&r);
  pln_library_close(lib.library);
  return status;
}
