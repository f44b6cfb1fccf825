/* relay/attr_conversion.c: converts attributes between the form of Relay text
 * and the core's.
 *
 * Called by the parser, the printer and the metadata section. The rows are
 * those of op/relay/relay.def. A row's schema is parsed at its first use, and
 * conversions are cached, so that printing a call costs one lookup.
 *
 * Invariants: reading what was written gives the same core attributes. An
 * omitted attribute has the core's default, or none. */

#include <float.h>
#include <stdlib.h>

#include "ir/op_info.h"
#include "ir/tensor/tensor.h"
#include "ir/worker/child_engine.h"

typedef enum field_kind {
  FIELD_ANY, /* list, any, object: any value */
  FIELD_INT,
  FIELD_BOOL,
  FIELD_FLOAT,
  FIELD_STRING,
  FIELD_DTYPE,
  FIELD_INTS,
  FIELD_FLOATS
} field_kind;

/* A default value of a schema; kind PLN_ATTR_NONE: None. */
typedef struct field_default {
  bool given;
  pln_attr value;
} field_default;

typedef struct relay_field {
  pln_symbol relay, core; /* names */
  uint8_t kind;           /* field_kind in the text */
  uint8_t stored;         /* field_kind in the core */
  bool own;               /* "+name": an extension, not in TVM */
  bool boxed;             /* a separate node when the struct is in the
                           * metadata */
  bool quiet;             /* "name:kind?": omitted when it has no value */
  bool null;              /* None is a valid value */
  bool permutation;       /* of as many axes: negative ones count from the
                           * end */
  field_default in_relay, in_core;
} relay_field;

typedef struct relay_schema {
  bool read;
  bool shared; /* the core has its own schema (ONNX's) */
  pln_op op;
  uint32_t count;
  relay_field *fields;
} relay_schema;

struct pln_relay {
  const pln_relay_row *rows;
  uint32_t n_rows;
  uint32_t *row_of; /* per operator: its row + 1 */
  uint32_t n_ops;
  relay_schema *schemas; /* per row */
  pln_arena arena;
  pln_idmap
      *written; /* operator and attributes -> 4 * list + 2 * expressible + 1 */
};

/* -------------------------------------------------------------- life cycle */

static pln_status name_rows(pln_engine *engine) {
  struct pln_relay *r = engine->relay;
  for (uint32_t i = 0; i < r->n_rows; i++) {
    pln_op op = pln_op_find(engine, pln_text(r->rows[i].name));
    if (op == 0 || op > r->n_ops)
      return pln_diag_error(
          engine, PLN_ERR_INVALID, NULL,
          "ops.def has no operator '%s' of op/relay/relay.def",
          r->rows[i].name);
    r->row_of[op - 1] = i + 1;
    r->schemas[i].op = op;
  }
  return PLN_OK;
}

pln_status pln_relay_install(pln_engine *engine, const pln_relay_row *rows,
                             uint32_t n) {
  struct pln_relay *r = pln_mem_zeroed(engine, sizeof *r);
  if (!r)
    return pln_nomem(engine);
  engine->relay = r;
  r->rows = rows;
  r->n_rows = n;
  r->n_ops = pln_op_count(engine);
  pln_arena_init(&r->arena, engine);
  r->row_of = pln_mem_zeroed(engine, r->n_ops * sizeof *r->row_of);
  r->schemas = pln_mem_zeroed(engine, n * sizeof *r->schemas);
  pln_status status = pln_idmap_new(engine, &r->written);
  if (status == PLN_OK && (!r->row_of || !r->schemas))
    status = pln_nomem(engine);
  if (status == PLN_OK)
    status = name_rows(engine);
  if (status != PLN_OK)
    pln_relay_free(engine);
  return status;
}

pln_status pln_relay_child(pln_engine *child) {
  const struct pln_relay *base = child->parent->relay;
  return base ? pln_relay_install(child, base->rows, base->n_rows) : PLN_OK;
}

void pln_relay_free(pln_engine *engine) {
  struct pln_relay *r = engine->relay;
  if (!r)
    return;
  if (r->written)
    pln_idmap_free(r->written);
  pln_mem_free(engine, r->row_of, r->n_ops * sizeof *r->row_of);
  pln_mem_free(engine, r->schemas, r->n_rows * sizeof *r->schemas);
  pln_arena_free(&r->arena);
  pln_mem_free(engine, r, sizeof *r);
  engine->relay = NULL;
}

const pln_relay_row *pln_relay_of(const pln_engine *engine, pln_op op) {
  const struct pln_relay *r = engine->relay;
  if (!r || op == 0 || op > r->n_ops || r->row_of[op - 1] == 0)
    return NULL;
  return &r->rows[r->row_of[op - 1] - 1];
}

uint32_t pln_relay_n_results(const pln_engine *engine, const pln_relay_row *row,
                             pln_attrs relay, pln_attrs core) {
  int64_t normal = pln_attrs_int(engine, relay, "n_results", -1);
  if (normal >= 0 && normal <= UINT16_MAX)
    return (uint32_t)normal;
  if (row->results >= 0)
    return (uint32_t)row->results;
  return row->count ? row->count(engine, core) : 0;
}

/* ---------------------------------------------------------------- schemas:
 * "axis>axes:ints= keepdims:bool=0 +index_axis:int=0 newshape:ints?" */

/* One word of a schema, split into its parts; missing ones are empty. */
typedef struct schema_word {
  bool own, quiet, defaulted;
  pln_slice relay, core, kind, value;
} schema_word;

static pln_slice split_schema_word(const char **at, const char *end,
                                   const char *stops) {
  size_t size = strcspn(*at, stops);
  if (size > (size_t)(end - *at))
    size = (size_t)(end - *at);
  pln_slice part = {*at, size};
  *at += size;
  return part;
}

static bool skip_schema_char(const char **at, const char *end, char wanted) {
  bool yes = *at < end && **at == wanted;
  *at += yes;
  return yes;
}

/* False at the end of the schema. */
static bool next_word(const char **schema, schema_word *w) {
  const char *at = *schema + strspn(*schema, " ");
  const char *end = at + strcspn(at, " ");
  *schema = end;
  if (at == end)
    return false;
  *w = (schema_word){.own = skip_schema_char(&at, end, '+')};
  w->relay = w->core = split_schema_word(&at, end, ">:");
  if (skip_schema_char(&at, end, '>'))
    w->core = split_schema_word(&at, end, ":");
  skip_schema_char(&at, end, ':');
  w->kind = split_schema_word(&at, end, "=?");
  w->quiet = skip_schema_char(&at, end, '?');
  w->defaulted = skip_schema_char(&at, end, '=');
  w->value = (pln_slice){at, (size_t)(end - at)};
  return true;
}

static field_kind schema_field_kind(pln_slice word) {
  static const struct {
    const char *word;
    field_kind kind;
  } kinds[] = {
      {"int", FIELD_INT},          {"bool", FIELD_BOOL},
      {"float", FIELD_FLOAT},      {"dtype", FIELD_DTYPE},
      {"string", FIELD_STRING},    {"ints", FIELD_INTS},
      {"floats", FIELD_FLOATS},    {"integer", FIELD_INT},
      {"boolean", FIELD_BOOL},     {"text", FIELD_STRING},
      {"extent", FIELD_INT},       {"scalar", FIELD_FLOAT},
      {"permutation", FIELD_INTS},
  };
  for (size_t i = 0; i < PLN_COUNT(kinds); i++)
    if (pln_slice_is(word, kinds[i].word))
      return kinds[i].kind;
  return FIELD_ANY;
}

/* Kinds whose values are TVM objects rather than C++ fields. */
static bool is_boxed(pln_slice word) {
  return pln_slice_is(word, "integer") || pln_slice_is(word, "boolean") ||
         pln_slice_is(word, "text");
}

/* None is valid for lists, objects, and numbers that TVM stores in objects. */
static bool may_be_none(pln_slice word) {
  field_kind kind = schema_field_kind(word);
  return is_boxed(word) || kind == FIELD_ANY || kind == FIELD_INTS ||
         kind == FIELD_FLOATS || pln_slice_is(word, "extent") ||
         pln_slice_is(word, "scalar");
}

/* "1,1" */
static bool read_schema_ints(pln_arena *arena, const char *text,
                             pln_attr *out) {
  int64_t *list = pln_arena_new(arena, (strlen(text) + 1) * sizeof *list);
  char *end;
  if (!list)
    return false;
  for (out->count = 0; *text; text = end + (*end == ','))
    list[out->count++] = strtoll(text, &end, 10);
  out->v.ints = list;
  return true;
}

static bool read_floats(pln_arena *arena, const char *text, pln_attr *out) {
  double *list = pln_arena_new(arena, (strlen(text) + 1) * sizeof *list);
  char *end;
  if (!list)
    return false;
  for (out->count = 0; *text; text = end + (*end == ','))
    list[out->count++] = (float)strtod(text, &end);
  out->v.floats = list;
  return true;
}

/* A default of that kind. An empty text is None except for strings; "[]" is an
 * empty list. False when out of memory. */
static bool read_default(pln_arena *arena, field_kind kind, pln_slice value,
                         pln_attr *out) {
  char *text = pln_arena_new(arena, value.size + 1);
  if (!text)
    return false;
  memcpy(text, value.data, value.size);
  text[value.size] = '\0';
  *out = (pln_attr){.kind = PLN_ATTR_NONE};
  if (value.size == 0 && kind != FIELD_STRING)
    return true;
  bool empty = pln_slice_is(value, "[]");
  switch (kind) {
  case FIELD_INT:
  case FIELD_BOOL:
    out->kind = PLN_ATTR_INT;
    out->v.i = strtoll(text, NULL, 10);
    return true;
  case FIELD_FLOAT:
    out->kind = PLN_ATTR_FLOAT;
    out->v.f = (float)strtod(text, NULL);
    return true;
  case FIELD_STRING:
  case FIELD_DTYPE:
    out->kind = PLN_ATTR_STRING;
    out->v.s = (pln_slice){text, value.size};
    return true;
  case FIELD_FLOATS:
    out->kind = PLN_ATTR_FLOATS;
    return read_floats(arena, empty ? "" : text, out);
  case FIELD_ANY:
  case FIELD_INTS:
    out->kind = PLN_ATTR_INTS;
    return read_schema_ints(arena, empty ? "" : text, out);
  }
  return true;
}

/* What the core's own schema says about the field. */
static bool read_core_word(pln_arena *arena, const char *schema, pln_slice name,
                           relay_field *f) {
  schema_word w;
  while (next_word(&schema, &w))
    if (pln_slice_equal(w.relay, name)) {
      f->stored = (uint8_t)schema_field_kind(w.kind);
      f->in_core.given = w.defaulted;
      return !w.defaulted ||
             read_default(arena, f->stored, w.value, &f->in_core.value);
    }
  return true;
}

static pln_status read_schema_field(pln_engine *engine, const schema_word *w,
                                    const char *core, bool shared,
                                    relay_field *f) {
  pln_arena *arena = &engine->relay->arena;
  PLN_TRY(pln_symbol_intern(engine, w->relay, &f->relay));
  PLN_TRY(pln_symbol_intern(engine, w->core, &f->core));
  f->own = w->own;
  f->boxed = is_boxed(w->kind);
  f->quiet = w->quiet;
  f->null = may_be_none(w->kind);
  f->permutation = pln_slice_is(w->kind, "permutation");
  f->kind = f->stored = (uint8_t)schema_field_kind(w->kind);
  f->in_relay.given = w->defaulted;
  if (w->defaulted &&
      !read_default(arena, f->kind, w->value, &f->in_relay.value))
    return pln_nomem(engine);
  if (shared && !read_core_word(arena, core, w->core, f))
    return pln_nomem(engine);
  if (!shared)
    f->in_core = f->in_relay;
  /* The core represents None by omitting the entry. */
  if (f->in_core.value.kind == PLN_ATTR_NONE)
    f->in_core.given = false;
  return PLN_OK;
}

static pln_status read_schema(pln_engine *engine, const pln_relay_row *row,
                              relay_schema *s) {
  const char *core = pln_op_row(engine, s->op)->attrs, *at = row->attrs;
  schema_word w;
  uint32_t n = 0;
  while (next_word(&at, &w))
    n++;
  relay_field *fields =
      pln_arena_new(&engine->relay->arena, (n + 1u) * sizeof *fields);
  if (!fields)
    return pln_nomem(engine);
  memset(fields, 0, (n + 1u) * sizeof *fields);
  s->shared = strcmp(core, row->attrs) != 0;
  s->fields = fields;
  s->count = 0;
  for (at = row->attrs; next_word(&at, &w); s->count++)
    PLN_TRY(read_schema_field(engine, &w, core, s->shared, &fields[s->count]));
  s->read = true;
  return PLN_OK;
}

static pln_status schema_of(pln_engine *engine, const pln_relay_row *row,
                            const relay_schema **out) {
  struct pln_relay *r = engine->relay;
  relay_schema *s = &r->schemas[row - r->rows];
  if (!s->read)
    PLN_TRY(read_schema(engine, row, s));
  *out = s;
  return PLN_OK;
}

/* ------------------------------------------------------------------ values */

static bool same_list(const pln_attr *a, const pln_attr *b, size_t size) {
  return a->count == b->count &&
         (a->count == 0 || !memcmp(a->v.ints, b->v.ints, a->count * size));
}

/* Tensors, and lists of tensors, never equal a default. */
static bool same_value(const pln_attr *a, const pln_attr *b) {
  if (a->kind != b->kind)
    return false;
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_NONE: return true;
  case PLN_ATTR_INT: return a->v.i == b->v.i;
  case PLN_ATTR_FLOAT: return a->v.f == b->v.f;
  case PLN_ATTR_STRING: return pln_slice_equal(a->v.s, b->v.s);
  case PLN_ATTR_INTS: return same_list(a, b, sizeof *a->v.ints);
  case PLN_ATTR_FLOATS: return same_list(a, b, sizeof *a->v.floats);
  default: return false;
  }
}

/* A double with six digits survives the conversion to the float32 that an
 * operator stores. */
static double as_float32(double value) {
  bool fits = value != value ||
              (value <= FLT_MAX && value >= -FLT_MAX &&
               (value == 0 || value >= FLT_MIN || value <= -(double)FLT_MIN));
  return fits ? (float)value : value;
}

/* Converts a number to the float that the field requires. */
static void to_float(pln_attr *a) {
  if (a->kind == PLN_ATTR_INT)
    a->v.f = (double)a->v.i;
  a->kind = PLN_ATTR_FLOAT;
  a->v.f = as_float32(a->v.f);
}

/* A list of numbers as floats, allocated in the arena. */
static pln_status to_floats(pln_engine *engine, pln_arena *arena, pln_attr *a) {
  double *list = pln_arena_new(arena, (a->count + 1u) * sizeof *list);
  if (!list)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < a->count; i++)
    list[i] = a->kind == PLN_ATTR_INTS ? (double)a->v.ints[i]
                                       : as_float32(a->v.floats[i]);
  a->kind = PLN_ATTR_FLOATS;
  a->v.floats = list;
  return PLN_OK;
}

/* Descriptions of the values of each field kind. */
static const char *const wanted[] = {
    [FIELD_ANY] = "another value",       [FIELD_INT] = "an integer",
    [FIELD_BOOL] = "True or False",      [FIELD_FLOAT] = "a number",
    [FIELD_STRING] = "a string",         [FIELD_DTYPE] = "the name of a dtype",
    [FIELD_INTS] = "a list of integers", [FIELD_FLOATS] = "a list of numbers",
};

static pln_status wrong_kind(pln_engine *engine, const relay_field *f) {
  return pln_diag_error(engine, PLN_ERR_TYPE, NULL, "attribute '%s' takes %s",
                        pln_symbol_text(engine, f->relay).data,
                        wanted[f->kind]);
}

/* The word of a schema whose Relay or core name is `name`. */
static bool find_word(const char *schema, pln_slice name, schema_word *w) {
  while (next_word(&schema, w))
    if (pln_slice_equal(w->relay, name) || pln_slice_equal(w->core, name))
      return true;
  return false;
}

const char *pln_attr_wanted(const pln_engine *engine, pln_op op,
                            pln_slice name) {
  static const struct {
    const char *word, *wanted;
  } others[] = {{"strings", "a list of strings"},
                {"tensors", "a list of tensors"},
                {"tensor", "a tensor"},
                {"type", "a type"}};
  const pln_relay_row *row = pln_relay_of(engine, op);
  schema_word w;
  if (!(row && find_word(row->attrs, name, &w)) &&
      !find_word(pln_op_row(engine, op)->attrs, name, &w))
    return wanted[FIELD_ANY];
  for (size_t i = 0; i < PLN_COUNT(others); i++)
    if (pln_slice_is(w.kind, others[i].word))
      return others[i].wanted;
  return wanted[schema_field_kind(w.kind)];
}

/* Converts a dtype's name to its number for the core. */
static pln_status dtype_to_int(pln_engine *engine, pln_attr *a) {
  pln_dtype dtype = pln_dtype_find(a->v.s);
  if (a->v.s.size > 0 && dtype == PLN_DTYPE_NONE)
    return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                          "there is no dtype '%.*s'", (int)a->v.s.size,
                          a->v.s.data);
  a->kind = PLN_ATTR_INT;
  a->v.i = dtype;
  return PLN_OK;
}

/* True if text may give such a value for the field. */
static bool attr_has_field_kind(const relay_field *f, const pln_attr *a) {
  bool list = a->kind == PLN_ATTR_INTS;
  switch ((field_kind)f->kind) {
  case FIELD_INT: return a->kind == PLN_ATTR_INT || list;
  case FIELD_BOOL: return a->kind == PLN_ATTR_INT;
  case FIELD_FLOAT: return a->kind == PLN_ATTR_INT || a->kind == PLN_ATTR_FLOAT;
  case FIELD_STRING:
  case FIELD_DTYPE: return a->kind == PLN_ATTR_STRING;
  case FIELD_INTS: return a->kind == PLN_ATTR_INT || list;
  case FIELD_FLOATS: return list || a->kind == PLN_ATTR_FLOATS;
  case FIELD_ANY: return true;
  }
  return false;
}

static bool has_negative(const pln_attr *a) {
  for (uint32_t i = 0; i < a->count; i++)
    if (a->v.ints[i] < 0)
      return true;
  return false;
}

/* The core counts axes from the front. An axis that is out of range stays. */
static pln_status count_from_front(pln_engine *engine, pln_arena *arena,
                                   pln_attr *a) {
  if (a->kind != PLN_ATTR_INTS || !has_negative(a))
    return PLN_OK;
  int64_t *axes = pln_arena_new(arena, a->count * sizeof *axes);
  if (!axes)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < a->count; i++)
    axes[i] = a->v.ints[i] + (a->v.ints[i] < 0 ? (int64_t)a->count : 0);
  a->v.ints = axes;
  return PLN_OK;
}

/* Converts a value from the text's form to the core's. `one` holds a list of
 * one integer. */
static pln_status to_core(pln_engine *engine, pln_arena *arena,
                          const relay_field *f, int64_t *one, pln_attr *a) {
  if (a->kind == PLN_ATTR_NONE)
    return PLN_OK;
  if (a->kind == PLN_ATTR_BOOL && f->kind != FIELD_ANY)
    a->kind = PLN_ATTR_INT;
  /* A kind that the core lacks is a TVM expression. A reference may represent
   * any value. */
  if (a->kind == PLN_ATTR_OBJECT || a->kind == PLN_ATTR_LIST ||
      a->kind == PLN_ATTR_REF)
    return PLN_OK;
  if (!attr_has_field_kind(f, a))
    return wrong_kind(engine, f);
  if (f->kind == FIELD_DTYPE && a->v.s.size == 0) {
    a->kind = PLN_ATTR_NONE;
    return PLN_OK;
  }
  if (f->kind == FIELD_FLOAT)
    to_float(a);
  if (f->kind == FIELD_FLOATS)
    return to_floats(engine, arena, a);
  if (f->kind == FIELD_DTYPE && f->stored == FIELD_INT)
    return dtype_to_int(engine, a);
  if (f->stored == FIELD_INT && a->kind == PLN_ATTR_INTS && a->count == 1) {
    a->kind = PLN_ATTR_INT;
    a->v.i = a->v.ints[0];
  } else if (f->stored == FIELD_INTS && a->kind == PLN_ATTR_INT) {
    *one = a->v.i;
    a->kind = PLN_ATTR_INTS;
    a->count = 1;
    a->v.ints = one;
  }
  return f->permutation ? count_from_front(engine, arena, a) : PLN_OK;
}

/* The inverse, for printing. False: Relay cannot express the value. */
static bool to_relay(const relay_field *f, int64_t *one, pln_attr *a) {
  if (a->kind == PLN_ATTR_NONE)
    return true;
  if (f->kind == FIELD_DTYPE && a->kind == PLN_ATTR_INT) {
    a->kind = PLN_ATTR_STRING;
    a->v.s = pln_text(a->v.i > 0 && a->v.i < PLN_N_DTYPES
                          ? pln_dtype_name((pln_dtype)a->v.i)
                          : "");
  } else if (f->kind == FIELD_INT && a->kind == PLN_ATTR_INTS) {
    if (a->count != 1)
      return false;
    a->kind = PLN_ATTR_INT;
    a->v.i = a->v.ints[0];
  } else if (f->kind == FIELD_INTS && a->kind == PLN_ATTR_INT) {
    *one = a->v.i;
    a->kind = PLN_ATTR_INTS;
    a->count = 1;
    a->v.ints = one;
  }
  return true;
}

/* ----------------------------------------------------------------- reading */

/* A dictionary under construction. The arena lives as long as it. */
typedef struct schema_draft {
  pln_engine *engine;
  const relay_schema *schema;
  pln_arena arena;
  uint32_t count;
  pln_attr *entries;
  int64_t *ones; /* per entry: storage for a list of one integer */
} schema_draft;

static pln_status draft_begin(schema_draft *d, pln_engine *engine,
                              const relay_schema *schema, uint32_t most) {
  *d = (schema_draft){.engine = engine, .schema = schema};
  pln_arena_init(&d->arena, engine);
  d->entries = pln_arena_new(&d->arena, (most + 1u) * sizeof *d->entries);
  d->ones = pln_arena_new(&d->arena, (most + 1u) * sizeof *d->ones);
  return d->entries && d->ones ? PLN_OK : pln_nomem(engine);
}

/* Adds the value under the core's name unless it is the core's default. */
static pln_status add_core(schema_draft *d, const relay_field *f,
                           pln_attr value) {
  pln_attr *entry = &d->entries[d->count];
  *entry = value;
  entry->name = f->core;
  PLN_TRY(to_core(d->engine, &d->arena, f, &d->ones[d->count], entry));
  bool implied = f->in_core.given ? same_value(entry, &f->in_core.value)
                                  : entry->kind == PLN_ATTR_NONE;
  d->count += !implied;
  return PLN_OK;
}

static const relay_field *field_named(const relay_schema *s, pln_symbol name) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->fields[i].relay == name)
      return &s->fields[i];
  for (uint32_t i = 0; i < s->count; i++)
    if (s->fields[i].core == name)
      return &s->fields[i];
  return NULL;
}

static bool core_has(const char *schema, pln_slice name) {
  schema_word w;
  while (next_word(&schema, &w))
    if (pln_slice_equal(w.relay, name))
      return true;
  return false;
}

enum { MAX_NAMES = 64, MAX_NAME = 64 };

/* Copies the names of a schema to buffers; returns their number. */
static uint32_t names_of(const char *schema, char text[][MAX_NAME],
                         const char *names[]) {
  schema_word w;
  uint32_t n = 0;
  for (; n < MAX_NAMES && next_word(&schema, &w); n++) {
    size_t size = w.relay.size < MAX_NAME ? w.relay.size : MAX_NAME - 1;
    memcpy(text[n], w.relay.data, size);
    text[n][size] = '\0';
    names[n] = text[n];
  }
  return n;
}

pln_status pln_attr_unknown(pln_engine *engine, pln_op op, pln_slice name) {
  const pln_relay_row *row = pln_relay_of(engine, op);
  const char *names[MAX_NAMES];
  char text[MAX_NAMES][MAX_NAME], said[MAX_NAME], hint[120] = "";
  uint32_t n =
      names_of(row ? row->attrs : pln_op_row(engine, op)->attrs, text, names);
  size_t size = name.size < sizeof said ? name.size : sizeof said - 1;
  memcpy(said, name.data, size);
  said[size] = '\0';
  pln_suggest(said, n, names, hint, sizeof hint);
  return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                        "'%s' has no attribute '%s'%s",
                        pln_op_row(engine, op)->name, said, hint);
}

/* Reads one attribute of the text. */
static pln_status read_given(schema_draft *d, const pln_attr *given) {
  const relay_field *f = field_named(d->schema, given->name);
  if (f)
    return add_core(d, f, *given);
  pln_slice name = pln_symbol_text(d->engine, given->name);
  if (pln_slice_is(name, "n_results"))
    return PLN_OK;
  if (!core_has(pln_op_row(d->engine, d->schema->op)->attrs, name))
    return pln_attr_unknown(d->engine, d->schema->op, name);
  d->entries[d->count] = *given;
  if (given->kind == PLN_ATTR_BOOL)
    d->entries[d->count].kind = PLN_ATTR_INT;
  if (given->kind == PLN_ATTR_FLOAT)
    to_float(&d->entries[d->count]);
  d->count++;
  return PLN_OK;
}

static const pln_attr *entry_of(const pln_engine *engine, pln_attrs attrs,
                                pln_symbol name) {
  uint32_t n = pln_attrs_count(engine, attrs);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_at(engine, attrs, i);
    if (a->name == name)
      return a;
  }
  return NULL;
}

/* True for a required single value. A required dtype is determined by
 * inference. */
static bool is_needed(const relay_field *f) {
  return !f->in_relay.given && !f->quiet && !f->null && !f->own &&
         f->kind != FIELD_DTYPE;
}

static pln_status missing(pln_engine *engine, const relay_schema *s,
                          const relay_field *f) {
  return pln_diag_error(engine, PLN_ERR_TYPE, NULL, "'%s': %s is missing",
                        pln_op_row(engine, s->op)->name,
                        pln_symbol_text(engine, f->relay).data);
}

static pln_status read_all(schema_draft *d, pln_attrs relay, pln_attrs *core) {
  uint32_t n = pln_attrs_count(d->engine, relay);
  uint64_t seen[MAX_NAMES / 64 + 1] = {0};
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *given = pln_attrs_at(d->engine, relay, i);
    const relay_field *f = field_named(d->schema, given->name);
    size_t at = f ? (size_t)(f - d->schema->fields) : MAX_NAMES;
    seen[at / 64] |= UINT64_C(1) << at % 64;
    PLN_TRY(read_given(d, given));
  }
  for (uint32_t i = 0; i < d->schema->count && i < MAX_NAMES; i++) {
    const relay_field *f = &d->schema->fields[i];
    if (seen[i / 64] >> i % 64 & 1)
      continue;
    if (is_needed(f))
      return missing(d->engine, d->schema, f);
    if (f->in_relay.given)
      PLN_TRY(add_core(d, f, f->in_relay.value));
  }
  return pln_attrs_make(d->engine, d->count, d->entries, core);
}

pln_status pln_relay_read(pln_engine *engine, const pln_relay_row *row,
                          pln_attrs relay, pln_attrs *core) {
  const relay_schema *s;
  schema_draft d;
  PLN_TRY(schema_of(engine, row, &s));
  uint32_t most = pln_attrs_count(engine, relay) + s->count;
  pln_status status = draft_begin(&d, engine, s, most);
  if (status == PLN_OK)
    status = read_all(&d, relay, core);
  pln_arena_free(&d.arena);
  return status;
}

pln_status pln_relay_expect(pln_engine *engine, pln_op op, pln_attrs core) {
  const pln_relay_row *row = pln_relay_of(engine, op);
  const relay_schema *s;
  if (!row)
    return PLN_OK;
  PLN_TRY(schema_of(engine, row, &s));
  for (uint32_t i = 0; i < s->count && !s->shared; i++)
    if (is_needed(&s->fields[i]) && !entry_of(engine, core, s->fields[i].core))
      return missing(engine, s, &s->fields[i]);
  return PLN_OK;
}

bool pln_relay_only_attr(const pln_engine *engine, pln_op op, pln_slice name) {
  const pln_relay_row *row = pln_relay_of(engine, op);
  const char *at = row ? row->attrs : "";
  schema_word w;
  if (!row || core_has(pln_op_row(engine, op)->attrs, name))
    return false;
  while (next_word(&at, &w))
    if (!w.own && pln_slice_equal(w.relay, name))
      return true;
  return false;
}

/* ------------------------------------------------------------ single fields */

static pln_status find_field(pln_engine *engine, pln_op op, const char *name,
                             const relay_field **out) {
  const pln_relay_row *row = pln_relay_of(engine, op);
  const relay_schema *s;
  *out = NULL;
  if (!row)
    return PLN_OK;
  PLN_TRY(schema_of(engine, row, &s));
  for (uint32_t i = 0; i < s->count && !*out; i++)
    if (pln_slice_is(pln_symbol_text(engine, s->fields[i].relay), name))
      *out = &s->fields[i];
  return PLN_OK;
}

pln_status pln_relay_get(pln_engine *engine, pln_op op, pln_attrs core,
                         const char *name, pln_attr *out) {
  const relay_field *f;
  *out = (pln_attr){.kind = PLN_ATTR_NONE};
  PLN_TRY(find_field(engine, op, name, &f));
  if (!f)
    return PLN_OK;
  const pln_attr *entry = entry_of(engine, core, f->core);
  if (entry)
    *out = *entry;
  else if (f->in_core.given)
    *out = f->in_core.value;
  return PLN_OK;
}

pln_status pln_relay_set(pln_engine *engine, pln_op op, pln_attrs core,
                         const char *name, pln_attr value, pln_attrs *out) {
  const relay_field *f;
  PLN_TRY(find_field(engine, op, name, &f));
  if (!f)
    return pln_attr_unknown(engine, op, pln_text(name));
  value.name = f->core;
  if (value.kind == PLN_ATTR_NONE ||
      (f->in_core.given && same_value(&value, &f->in_core.value)))
    return pln_attrs_without(engine, core,
                             pln_symbol_text(engine, f->core).data, out);
  return pln_attrs_with(engine, core, &value, out);
}

/* ----------------------------------------------------------------- writing */

/* The text's form of a field; false when Relay cannot express it. */
static bool write_field(schema_draft *d, const relay_field *f,
                        const pln_attr *entry) {
  pln_attr *a = &d->entries[d->count];
  *a = entry              ? *entry
       : f->in_core.given ? f->in_core.value
                          : (pln_attr){.kind = PLN_ATTR_NONE};
  bool plain = to_relay(f, &d->ones[d->count], a);
  a->name = f->relay;
  bool silent = f->in_relay.given ? same_value(a, &f->in_relay.value)
                                  : f->quiet && a->kind == PLN_ATTR_NONE;
  if (silent)
    return true;
  if (f->kind == FIELD_BOOL && a->kind == PLN_ATTR_INT)
    a->kind = PLN_ATTR_BOOL;
  d->count++;
  return plain && !f->own;
}

static pln_status write_all(schema_draft *d, pln_attrs core, pln_attrs *relay,
                            bool *expressible) {
  const relay_schema *s = d->schema;
  *expressible = true;
  for (uint32_t i = 0; i < s->count; i++) {
    const relay_field *f = &s->fields[i];
    *expressible &= write_field(d, f, entry_of(d->engine, core, f->core));
  }
  uint32_t n = pln_attrs_count(d->engine, core);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_at(d->engine, core, i);
    bool said = false;
    for (uint32_t k = 0; k < s->count && !said; k++)
      said = s->fields[k].core == a->name;
    if (!said)
      d->entries[d->count++] = *a;
    *expressible &= said;
  }
  return pln_attrs_list(d->engine, d->count, d->entries, relay);
}

/* True if every required field of the struct has a value. */
static bool fills_struct(const schema_draft *d, pln_attrs core) {
  if (pln_attrs_has_refs(d->engine, core)) /* TVM has no attribute references */
    return false;
  for (uint32_t i = 0; i < d->schema->count; i++) {
    const relay_field *f = &d->schema->fields[i];
    bool null = f->null || f->kind == FIELD_DTYPE;
    const pln_attr *entry = entry_of(d->engine, core, f->core);
    if (!null && !f->own && !f->in_core.given &&
        (!entry || entry->kind == PLN_ATTR_NONE))
      return false;
  }
  return true;
}

/* All fields of the struct, in the form of the metadata section. */
static pln_status write_struct(schema_draft *d, pln_attrs core,
                               pln_attrs *relay) {
  const relay_schema *s = d->schema;
  d->count = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    const relay_field *f = &s->fields[i];
    const pln_attr *entry = entry_of(d->engine, core, f->core);
    pln_attr *a = &d->entries[d->count];
    if (f->own)
      continue;
    *a = entry ? *entry : f->in_core.given ? f->in_core.value : (pln_attr){0};
    (void)to_relay(f, &d->ones[d->count++], a);
    if (f->boxed && a->kind != PLN_ATTR_NONE) {
      pln_attrs box;
      a->name = 0;
      PLN_TRY(pln_attrs_list(d->engine, 1, a, &box));
      *a = (pln_attr){.kind = PLN_ATTR_LIST, .v.dict = box};
    } else if (f->kind == FIELD_DTYPE && a->kind == PLN_ATTR_NONE) {
      *a = (pln_attr){.kind = PLN_ATTR_STRING, .v.s = pln_text("")};
    }
    a->name = f->relay;
  }
  return pln_attrs_list(d->engine, d->count, d->entries, relay);
}

static pln_status write_new(pln_engine *engine, const pln_relay_row *row,
                            pln_attrs core, pln_attrs *relay,
                            bool *expressible) {
  const relay_schema *s;
  schema_draft d;
  PLN_TRY(schema_of(engine, row, &s));
  uint32_t most = pln_attrs_count(engine, core) + s->count;
  pln_status status = draft_begin(&d, engine, s, most);
  if (status == PLN_OK)
    status = write_all(&d, core, relay, expressible);
  if (row->in_meta && status == PLN_OK)
    *expressible &= fills_struct(&d, core);
  if (row->in_meta && status == PLN_OK && *expressible)
    status = write_struct(&d, core, relay);
  pln_arena_free(&d.arena);
  return status;
}

pln_status pln_relay_write(pln_engine *engine, pln_op op, pln_attrs core,
                           pln_attrs *relay, bool *expressible) {
  struct pln_relay *r = engine->relay;
  uint64_t key = (uint64_t)op << 32 | core;
  uint32_t known = pln_idmap_get(r->written, key);
  if (!known) {
    PLN_TRY(
        write_new(engine, pln_relay_of(engine, op), core, relay, expressible));
    known = *relay * 4u + (*expressible ? 2u : 0u) + 1u;
    if (*relay < UINT32_MAX / 4)
      PLN_TRY(pln_idmap_set(r->written, key, known));
    return PLN_OK;
  }
  *relay = known / 4;
  *expressible = known & 2;
  return PLN_OK;
}

pln_status pln_relay_normal_attrs(pln_engine *engine, pln_op op, pln_attrs core,
                                  pln_attrs *normal) {
  bool expressible;
  *normal = core;
  return op && pln_relay_of(engine, op)
             ? pln_relay_write(engine, op, core, normal, &expressible)
             : PLN_OK;
}
