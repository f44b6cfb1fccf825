/* text.c: texts of the C writer: formatting, lines, names.
 *
 * Called by all parts of the writer. The first failure is kept in the writer;
 * afterwards texts are empty and lines are dropped. */

#include <stdio.h>

#include "codegen/writer.h"

void pln_c_fail(pln_cw *w, pln_status status) {
  if (w->status == PLN_OK)
    w->status = status;
}

void pln_c_refuse(pln_cw *w, const char *format, ...) {
  char text[256];
  va_list args;
  if (w->status != PLN_OK)
    return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  w->status = pln_diag_error(w->engine, PLN_ERR_UNSUPPORTED, NULL, "%s", text);
}

/* A copy in the arena, or NULL. */
static char *keep(pln_cw *w, const char *text, size_t size) {
  char *copy = w->status == PLN_OK ? pln_arena_new(&w->arena, size + 1) : NULL;
  if (!copy) {
    if (w->status == PLN_OK)
      pln_c_fail(w, pln_nomem(w->engine));
    return NULL;
  }
  memcpy(copy, text, size);
  copy[size] = 0;
  return copy;
}

/* Formats text of any length; NULL when out of memory. */
static char *keep_format(pln_cw *w, const char *format, va_list args,
                         size_t *size) {
  char text[256];
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(text, sizeof text, format, args);
  *size = n > 0 ? (size_t)n : 0;
  char *out = NULL;
  if (*size < sizeof text) {
    out = keep(w, text, *size);
  } else if (w->status == PLN_OK) {
    out = pln_arena_new(&w->arena, *size + 1);
    if (out)
      vsnprintf(out, *size + 1, format, again);
    else
      pln_c_fail(w, pln_nomem(w->engine));
  }
  va_end(again);
  return out;
}

pln_c_text pln_c_textf(pln_cw *w, pln_c_prec prec, const char *format, ...) {
  size_t size;
  va_list args;
  va_start(args, format);
  const char *text = keep_format(w, format, args, &size);
  va_end(args);
  return (pln_c_text){.data = text ? text : "",
                      .size = text ? (uint32_t)size : 0,
                      .prec = (uint8_t)prec};
}

const char *pln_c_arg(pln_cw *w, pln_c_text text) {
  return text.prec == PLN_C_COMPOUND
             ? pln_c_textf(w, PLN_C_CALL, "(%s)", text.data).data
             : text.data;
}

/* ------------------------------------------------------------------- lines */

static void add_format(pln_cw *w, const char *format, va_list args) {
  char text[512];
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(text, sizeof text, format, args);
  if (n >= (int)sizeof text) {
    size_t size;
    const char *kept = keep_format(w, format, again, &size);
    if (kept)
      pln_c_fail(w, pln_buffer_add(w->out, kept, size));
  } else if (w->status == PLN_OK && n > 0) {
    pln_c_fail(w, pln_buffer_add(w->out, text, (size_t)n));
  }
  va_end(again);
}

void pln_c_raw(pln_cw *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (w->status == PLN_OK)
    add_format(w, format, args);
  va_end(args);
}

void pln_c_line(pln_cw *w, const char *format, ...) {
  static const char spaces[] = "                                        ";
  size_t indent = 2 * (size_t)w->depth;
  va_list args;
  if (w->status != PLN_OK)
    return;
  if (indent > sizeof spaces - 1)
    indent = sizeof spaces - 1;
  pln_c_fail(w, pln_buffer_add(w->out, spaces, indent));
  va_start(args, format);
  add_format(w, format, args);
  va_end(args);
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_buffer_add(w->out, "\n", 1));
}

/* ------------------------------------------------------------------- names */

/* Words that C, its library or the prelude have taken. */
static const char *const reserved[] = {
    "auto",       "break",       "case",       "char",     "const",
    "continue",   "default",     "do",         "double",   "else",
    "enum",       "extern",      "float",      "for",      "goto",
    "if",         "inline",      "int",        "long",     "register",
    "restrict",   "return",      "short",      "signed",   "sizeof",
    "static",     "struct",      "switch",     "typedef",  "union",
    "unsigned",   "void",        "volatile",   "while",    "asm",
    "typeof",     "main",        "memcpy",     "exp",      "expf",
    "exp2",       "exp2f",       "exp10",      "exp10f",   "erf",
    "erff",       "tanh",        "tanhf",      "sqrt",     "sqrtf",
    "log",        "logf",        "log2",       "log2f",    "log1p",
    "log1pf",     "log10",       "log10f",     "tan",      "tanf",
    "cos",        "cosf",        "cosh",       "coshf",    "sin",
    "sinf",       "sinh",        "sinhf",      "asin",     "asinf",
    "acos",       "acosf",       "atan",       "atanf",    "acosh",
    "acoshf",     "asinh",       "asinhf",     "atanh",    "atanhf",
    "floor",      "floorf",      "ceil",       "ceilf",    "round",
    "roundf",     "nearbyint",   "nearbyintf", "trunc",    "truncf",
    "fabs",       "fabsf",       "atan2",      "atan2f",   "nextafter",
    "nextafterf", "hypot",       "hypotf",     "copysign", "copysignf",
    "pow",        "powf",        "fmod",       "fmodf",    "fma",
    "fmaf",       "isnan",       "isinf",      "isfinite", "ldexp",
    "ldexpf",     "NAN",         "INFINITY",   "NULL",     "linux",
    "unix",       "int8_t",      "int16_t",    "int32_t",  "int64_t",
    "uint8_t",    "uint16_t",    "uint32_t",   "uint64_t", "size_t",
    "workspace",  "abs",         "y0",         "y1",       "yn",
    "j0",         "j1",          "jn",         "gamma",    "signbit",
    "fmin",       "fmax",        "fminf",      "fmaxf",    "malloc",
    "free",       "calloc",      "exit",       "abort",    "printf",
    "memset",     "strlen",      "lgamma",     "tgamma",   "remainder",
    "rint",       "lrint",       "modf",       "frexp",    "scalbn",
    "logb",       "cbrt",        "expm1",      "errno",    "signgam",
    "drem",       "significand", "index",      "random"};

bool pln_c_is_reserved(const char *name) {
  for (size_t i = 0; i < PLN_COUNT(reserved); i++)
    if (!strcmp(name, reserved[i]))
      return true;
  /* Names of the prelude and of the implementation. */
  return !strncmp(name, "pl_", 3) || !strncmp(name, "PL_", 3) ||
         !strncmp(name, "pthread", 7) || !strncmp(name, "perilune_", 9);
}

enum { MOST_NAME = 60 };

/* The hint with letters, digits and underscores only. */
static void clean(pln_slice hint, char *out) {
  size_t n = 0;
  for (size_t i = 0; i < hint.size && n < MOST_NAME; i++) {
    char c = hint.data[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool digit = c >= '0' && c <= '9';
    if (n == 0 && digit)
      out[n++] = 'v';
    out[n++] = letter || digit ? c : '_';
  }
  if (n == 0)
    out[n++] = 'v';
  while (n > 1 && out[0] == '_') { /* names of the implementation */
    memmove(out, out + 1, n - 1);
    n--;
  }
  if (out[0] == '_')
    out[0] = 'v';
  if (out[0] >= '0' && out[0] <= '9')
    out[0] = 'v';
  out[n] = 0;
  if (pln_c_is_reserved(out)) {
    out[n] = '_';
    out[n + 1] = 0;
  }
}

/* Names tN and LN are those of temporaries and labels. */
static bool is_generated(const char *name) {
  size_t digits = strspn(name + 1, "0123456789");
  return (name[0] == 't' || name[0] == 'L') && digits > 0 &&
         name[1 + digits] == 0;
}

/* The suffix that follows the last one of a name, 0 if it is free. Functions'
 * names are no variables'. */
static uint32_t next_suffix(const pln_cw *w, const pln_idmap *names,
                            pln_symbol name) {
  uint32_t suffix = pln_idmap_get(names, name);
  return suffix || names == w->unit_names
             ? suffix
             : pln_idmap_get(w->function_names, name) > 0;
}

static const char *unique(pln_cw *w, pln_idmap *names, pln_slice hint) {
  char base[MOST_NAME + 4], name[MOST_NAME + 24];
  pln_symbol symbol, first;
  clean(hint, base);
  pln_c_fail(w, pln_symbol_intern(w->engine, pln_text(base), &first));
  if (w->status != PLN_OK)
    return "";
  uint32_t suffix = next_suffix(w, names, first);
  snprintf(name, sizeof name, is_generated(base) && !suffix ? "%s_" : "%s",
           base);
  for (symbol = first; w->status == PLN_OK; suffix++) {
    if (suffix)
      snprintf(name, sizeof name, "%s_%u", base, suffix);
    pln_c_fail(w, pln_symbol_intern(w->engine, pln_text(name), &symbol));
    if (w->status == PLN_OK && !next_suffix(w, names, symbol))
      break;
  }
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_idmap_set(names, first, suffix + 1));
  if (w->status == PLN_OK && symbol != first)
    pln_c_fail(w, pln_idmap_set(names, symbol, 1));
  return pln_c_textf(w, PLN_C_NAME, "%s", name).data;
}

const char *pln_c_fresh_name(pln_cw *w, pln_slice hint) {
  return unique(w, w->names, hint);
}

const char *pln_c_unit_name(pln_cw *w, pln_slice hint) {
  return unique(w, w->unit_names, hint);
}

const char *pln_c_temp(pln_cw *w) {
  return pln_c_textf(w, PLN_C_NAME, "t%u", w->n_temps++).data;
}

/* ------------------------------------------------------------------- nodes */

pln_slice pln_c_attr(const pln_cw *w, const pln_node *n, const char *key) {
  return pln_attrs_string(w->engine, n->attrs, key, "");
}
