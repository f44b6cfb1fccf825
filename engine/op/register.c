/* register.c: registers operators of hosts and scripts
 * (perilune/operator.h). Called by pln_op_register's users: hosts in C, and
 * lua/graph/operator.c for scripts.
 *
 * Everything is checked before the row is added, so that a refused operator
 * leaves no trace. What a row points to lives in the table's arena, or is a
 * symbol. */

#include <ctype.h>
#include <stdio.h>

#include "ir/registered_op.h"
#include "op/infer/registered.h"
#include "op/kernel/registered.h"

/* A spec being copied. */
typedef struct registration {
  pln_engine *engine;
  const pln_operator_spec *given;
  pln_registered_op *op;
  pln_operator_spec *spec; /* of `op` */
} registration;

PLN_PRINTF(3, 4)
static pln_status mistake(const registration *r, pln_status status,
                          const char *format, ...) {
  va_list list;
  char text[300];
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return pln_diag_error(r->engine, status, NULL, "operator '%s': %s",
                        r->given->name ? r->given->name : "", text);
}

/* -------------------------------------------------------------------- names */

static bool is_word(const char *text, size_t size) {
  if (size == 0 || isdigit((unsigned char)text[0]))
    return false;
  for (size_t i = 0; i < size; i++)
    if (!isalnum((unsigned char)text[i]) && text[i] != '_')
      return false;
  return true;
}

/* Words of Relay text that cannot be names of operators. */
static bool is_reserved(const char *name) {
  static const char *const words[] = {
      "False", "True",     "absent",    "def",  "else",  "extern",
      "fn",    "free_var", "if",        "let",  "match", "meta",
      "ref",   "ref_read", "ref_write", "type", "Tensor"};
  for (size_t i = 0; i < PLN_COUNT(words); i++)
    if (!strcmp(name, words[i]))
      return true;
  return false;
}

/* "my.op" stands for a field of `my` in scripts, so neither is both a name and
 * a prefix of names. */
static pln_status check_prefixes(const registration *r) {
  const char *name = r->given->name;
  size_t size = strlen(name);
  for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
    if (pln_op_find(r->engine, (pln_slice){name, (size_t)(dot - name)}))
      return mistake(r, PLN_ERR_NAME, "'%.*s' is an operator",
                     (int)(dot - name), name);
  for (pln_op op = 1; op <= pln_op_count(r->engine); op++) {
    pln_slice other = pln_op_name(r->engine, op);
    if (other.size > size && !memcmp(other.data, name, size) &&
        other.data[size] == '.')
      return mistake(r, PLN_ERR_NAME, "there are operators '%s...', such as %s",
                     name, other.data);
  }
  return PLN_OK;
}

static pln_status check_name(const registration *r) {
  const char *name = r->given->name;
  if (!name || !*name)
    return mistake(r, PLN_ERR_NAME, "it must have a name");
  for (const char *at = name;; at++) {
    size_t size = strcspn(at, ".");
    if (!is_word(at, size))
      return mistake(r, PLN_ERR_NAME,
                     "a name is words of letters, digits and _ joined by "
                     "dots%s",
                     strstr(name, "::")
                         ? "; its domain of ONNX is said by the field onnx"
                         : "");
    at += size;
    if (!*at)
      break;
  }
  if (is_reserved(name))
    return mistake(r, PLN_ERR_NAME, "the name is a word of Relay text");
  pln_op op = pln_op_find(r->engine, pln_text(name));
  if (op)
    return mistake(r, PLN_ERR_NAME, "%s: %s",
                   pln_op_registered(r->engine, op)
                       ? "it has been registered already"
                       : "the library has one of that name",
                   pln_op_doc(r->engine, op));
  return check_prefixes(r);
}

/* The number of operands or attributes with a name. */
static uint32_t count_named(const registration *r, const char *name) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->given->n_args; i++)
    n += !strcmp(r->given->args[i].name, name);
  for (uint32_t i = 0; i < r->given->n_attrs; i++)
    n += !strcmp(r->given->attrs[i].name, name);
  return n;
}

static pln_status check_part_name(const registration *r, const char *what,
                                  const char *name) {
  if (!name || !is_word(name, strlen(name)))
    return mistake(r, PLN_ERR_NAME, "'%s' is no name of %s", name ? name : "",
                   what);
  if (!strcmp(name, "n_results"))
    return mistake(r, PLN_ERR_NAME, "'n_results' has another meaning");
  return PLN_OK;
}

static pln_status check_part_names(const registration *r) {
  const pln_operator_spec *s = r->given;
  if (s->n_args > PLN_MAX_OPERATOR_ARGS || s->n_attrs > PLN_MAX_OPERATOR_ARGS ||
      s->n_results > PLN_MAX_OPERATOR_ARGS)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "it has more than %d operands, attributes or results",
                   PLN_MAX_OPERATOR_ARGS);
  for (uint32_t i = 0; i < s->n_args; i++)
    PLN_TRY(check_part_name(r, "an operand", s->args[i].name));
  for (uint32_t i = 0; i < s->n_attrs; i++)
    PLN_TRY(check_part_name(r, "an attribute", s->attrs[i].name));
  for (uint32_t i = 0; i < s->n_args + s->n_attrs; i++) {
    const char *name =
        i < s->n_args ? s->args[i].name : s->attrs[i - s->n_args].name;
    if (count_named(r, name) > 1)
      return mistake(r, PLN_ERR_NAME, "'%s' occurs twice", name);
  }
  return PLN_OK;
}

/* ----------------------------------------------------- operands and results */

static pln_status check_args(const registration *r) {
  const pln_operator_spec *s = r->given;
  for (uint32_t i = 0; i + 1 < s->n_args; i++)
    if (s->args[i].variadic)
      return mistake(r, PLN_ERR_ARGUMENT,
                     "operand '%s' is variadic and not the last one",
                     s->args[i].name);
  if (s->rule == PLN_OPERATOR_LIKE && s->like >= s->n_args)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "its results are typed like an operand that it lacks");
  if (s->rule == PLN_OPERATOR_INFERS && !s->infer)
    return mistake(r, PLN_ERR_ARGUMENT, "it has no function that infers types");
  return PLN_OK;
}

static int32_t least_args(const pln_operator_spec *s) {
  uint32_t least = 0;
  for (uint32_t i = 0; i < s->n_args; i++)
    if (!s->args[i].optional)
      least = i + 1;
  return (int32_t)least;
}

static int32_t most_args(const pln_operator_spec *s) {
  bool variadic = s->n_args && s->args[s->n_args - 1].variadic;
  return variadic ? -1 : (int32_t)s->n_args;
}

static pln_status check_traits(const registration *r) {
  enum {
    TWO = PLN_OPERATOR_COMMUTATIVE | PLN_OPERATOR_ASSOCIATIVE,
    PATTERNS = PLN_OPERATOR_ELEMENTWISE | PLN_OPERATOR_BROADCAST |
               PLN_OPERATOR_INJECTIVE | PLN_OPERATOR_REDUCE,
    EFFECTS = PLN_OPERATOR_STATEFUL | PLN_OPERATOR_RANDOM,
    ALL =
        EFFECTS | TWO | PLN_OPERATOR_IDEMPOTENT | PATTERNS | PLN_OPERATOR_VALUES
  };
  uint32_t traits = r->given->traits, patterns = traits & PATTERNS;
  bool two = most_args(r->given) < 0 || most_args(r->given) == 2;
  if (traits & ~(uint32_t)ALL)
    return mistake(r, PLN_ERR_ARGUMENT, "it has an unknown trait");
  if (patterns & (patterns - 1))
    return mistake(r, PLN_ERR_ARGUMENT,
                   "elementwise, broadcast, injective and reduce exclude each "
                   "other");
  if (traits & TWO && !two)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "a commutative or associative operator takes two operands, "
                   "or any number");
  if (traits & PLN_OPERATOR_VALUES && r->given->n_results > 1)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "an operator on values has one result, which may be a "
                   "tuple");
  if (traits & PLN_OPERATOR_IDEMPOTENT && r->given->n_results > 1)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "an idempotent operator has one result");
  if (traits & PLN_OPERATOR_STATEFUL && traits & ~(uint32_t)EFFECTS & ~PATTERNS)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "a stateful operator is neither commutative, nor "
                   "associative, nor idempotent");
  return PLN_OK;
}

static uint32_t core_traits(uint32_t traits) {
  static const struct {
    uint32_t given, core;
  } rows[] = {
      {PLN_OPERATOR_COMMUTATIVE, PLN_TRAIT_COMMUTATIVE},
      {PLN_OPERATOR_ASSOCIATIVE, PLN_TRAIT_ASSOCIATIVE},
      {PLN_OPERATOR_IDEMPOTENT, PLN_TRAIT_IDEMPOTENT},
      {PLN_OPERATOR_ELEMENTWISE, PLN_TRAIT_ELEMENTWISE},
      {PLN_OPERATOR_BROADCAST, PLN_TRAIT_BROADCAST},
      {PLN_OPERATOR_INJECTIVE, PLN_TRAIT_INJECTIVE},
      {PLN_OPERATOR_REDUCE, PLN_TRAIT_REDUCE},
      {PLN_OPERATOR_VALUES, PLN_TRAIT_DATA | PLN_TRAIT_ANY},
  };
  uint32_t core = 0;
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    core |= traits & rows[i].given ? rows[i].core : 0;
  if (traits & PLN_OPERATOR_STATEFUL)
    return core;
  return core |
         (traits & PLN_OPERATOR_RANDOM ? PLN_TRAIT_RANDOM : PLN_TRAIT_PURE);
}

/* --------------------------------------------------------------- attributes */

static const char *kind_word(pln_attr_kind kind) {
  switch (kind) {
  case PLN_ATTR_INT: return "int";
  case PLN_ATTR_BOOL: return "bool";
  case PLN_ATTR_FLOAT: return "float";
  case PLN_ATTR_STRING: return "string";
  case PLN_ATTR_TENSOR: return "tensor";
  case PLN_ATTR_TYPE: return "type";
  case PLN_ATTR_INTS: return "ints";
  case PLN_ATTR_FLOATS: return "floats";
  case PLN_ATTR_STRINGS: return "strings";
  default: return NULL;
  }
}

static bool has_space(pln_slice text) {
  for (size_t i = 0; i < text.size; i++)
    if (isspace((unsigned char)text.data[i]) || text.data[i] == '\0')
      return true;
  return text.size == 0;
}

static pln_status check_attr(const registration *r,
                             const pln_operator_attr *a) {
  pln_attr_kind kind = (pln_attr_kind)a->value.kind;
  if (!kind_word(a->kind))
    return mistake(r, PLN_ERR_ARGUMENT,
                   "attribute '%s' has a kind that "
                   "operators do not have",
                   a->name);
  if (!a->has_default)
    return PLN_OK;
  if (a->required)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "attribute '%s' is required and has a default", a->name);
  if (a->kind == PLN_ATTR_TENSOR || a->kind == PLN_ATTR_TYPE)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "attribute '%s' can have no default, because it is a %s",
                   a->name, kind_word(a->kind));
  if (kind != a->kind && !(a->kind == PLN_ATTR_BOOL && kind == PLN_ATTR_INT))
    return mistake(r, PLN_ERR_ARGUMENT,
                   "the default of attribute '%s' is not of its kind, %s",
                   a->name, kind_word(a->kind));
  return PLN_OK;
}

/* "=-1"; nothing for lists, and for texts that a schema cannot hold. */
static pln_status put_default(pln_buffer *text, const pln_operator_attr *a) {
  switch (a->has_default ? a->kind : PLN_ATTR_NONE) {
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL:
    return pln_buffer_printf(text, "=%lld", (long long)a->value.v.i);
  case PLN_ATTR_FLOAT:
    return pln_buffer_printf(text, "=%.9g", (double)(float)a->value.v.f);
  case PLN_ATTR_STRING:
    return has_space(a->value.v.s)
               ? PLN_OK
               : pln_buffer_printf(text, "=%.*s", (int)a->value.v.s.size,
                                   a->value.v.s.data);
  default: return PLN_OK;
  }
}

/* The schema as ops.def has it: "axis:int=-1 mode:string=linear". */
static pln_status write_schema(const registration *r, const char **out) {
  pln_buffer text;
  pln_symbol symbol;
  pln_buffer_init(&text, r->engine);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < r->given->n_attrs && status == PLN_OK; i++) {
    const pln_operator_attr *a = &r->given->attrs[i];
    status = pln_buffer_printf(&text, "%s%s:%s", i ? " " : "", a->name,
                               kind_word(a->kind));
    if (status == PLN_OK)
      status = put_default(&text, a);
  }
  *out = "";
  if (status == PLN_OK && text.size)
    status = pln_symbol_intern(r->engine, (pln_slice){text.data, text.size},
                               &symbol);
  if (status == PLN_OK && text.size)
    *out = pln_symbol_text(r->engine, symbol).data;
  pln_buffer_free(&text);
  return status;
}

/* ------------------------------------------------------------------ copying */

static pln_status own_text(const registration *r, const char **text) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(r->engine, pln_text(*text ? *text : ""), &symbol));
  *text = symbol ? pln_symbol_text(r->engine, symbol).data : "";
  return PLN_OK;
}

/* A copy of an array; an empty one is NULL. */
static pln_status own_array(const registration *r, const void *from, size_t n,
                            size_t size, void **out) {
  *out = n ? pln_ops_memory(r->engine, n * size) : NULL;
  if (n == 0)
    return PLN_OK;
  if (!*out)
    return pln_nomem(r->engine);
  memcpy(*out, from, n * size);
  return PLN_OK;
}

/* Interns the default by itself, and adds it to the others. */
static pln_status own_default(const registration *r, uint32_t i) {
  pln_registered_op *op = r->op;
  pln_attr value = r->given->attrs[i].value;
  op->alone[i] = 0;
  if (!r->given->attrs[i].has_default)
    return PLN_OK;
  value.name = op->attr_names[i];
  if (value.kind == PLN_ATTR_BOOL)
    value.kind = PLN_ATTR_INT;
  if (value.kind == PLN_ATTR_FLOAT)
    value.v.f = (double)(float)value.v.f;
  PLN_TRY(pln_attrs_make(r->engine, 1, &value, &op->alone[i]));
  return pln_attrs_with(r->engine, op->defaults, &value, &op->defaults);
}

static pln_status own_attrs(const registration *r) {
  uint32_t n = r->given->n_attrs;
  pln_operator_attr *attrs;
  PLN_TRY(own_array(r, r->given->attrs, n, sizeof *attrs, (void **)&attrs));
  r->spec->attrs = attrs;
  if (n == 0)
    return PLN_OK;
  r->op->attr_names = pln_ops_memory(r->engine, n * sizeof(pln_symbol));
  r->op->alone = pln_ops_memory(r->engine, n * sizeof(pln_attrs));
  if (!r->op->attr_names || !r->op->alone)
    return pln_nomem(r->engine);
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(own_text(r, &attrs[i].name));
    PLN_TRY(pln_symbol_intern(r->engine, pln_text(attrs[i].name),
                              &r->op->attr_names[i]));
    PLN_TRY(own_default(r, i));
    attrs[i].value = attrs[i].has_default
                         ? *pln_attrs_at(r->engine, r->op->alone[i], 0)
                         : (pln_attr){0};
  }
  return PLN_OK;
}

static pln_status own_args(const registration *r) {
  pln_operator_arg *args;
  PLN_TRY(own_array(r, r->given->args, r->given->n_args, sizeof *args,
                    (void **)&args));
  r->spec->args = args;
  for (uint32_t i = 0; i < r->given->n_args; i++)
    PLN_TRY(own_text(r, &args[i].name));
  return PLN_OK;
}

/* --------------------------------------------------------------------- ONNX */

static uint32_t arg_index(const pln_operator_spec *s, const char *name) {
  uint32_t i = 0;
  while (i < s->n_args && strcmp(s->args[i].name, name))
    i++;
  return i;
}

/* Each operand is an input once. */
static pln_status check_onnx_inputs(const registration *r) {
  const pln_operator_spec *s = r->given;
  uint64_t seen = 0;
  if (s->onnx.n_inputs == 0)
    return PLN_OK;
  if (s->onnx.n_inputs != s->n_args || most_args(s) < 0)
    return mistake(r, PLN_ERR_ARGUMENT,
                   most_args(s) < 0
                       ? "inputs of ONNX cannot be in another order when an "
                         "operand is variadic"
                       : "its node in ONNX must have all operands as inputs");
  for (uint32_t i = 0; i < s->onnx.n_inputs; i++) {
    const char *name = s->onnx.inputs[i] ? s->onnx.inputs[i] : "";
    uint32_t arg = arg_index(s, name);
    if (arg == s->n_args || seen >> arg & 1)
      return mistake(r, PLN_ERR_NAME, "ONNX input '%s' is %s", name,
                     arg == s->n_args ? "no operand" : "there twice");
    seen |= UINT64_C(1) << arg;
  }
  return PLN_OK;
}

/* ONNX's names are as different as the core's. */
static const char *onnx_attr_name(const pln_operator_spec *s,
                                  const char *name) {
  for (uint32_t i = 0; i < s->onnx.n_attrs; i++)
    if (!strcmp(s->onnx.attrs[i].name, name))
      return s->onnx.attrs[i].onnx_name;
  return name;
}

static pln_status check_onnx_attrs(const registration *r) {
  const pln_operator_spec *s = r->given;
  for (uint32_t i = 0; i < s->onnx.n_attrs; i++) {
    const pln_operator_onnx_attr *a = &s->onnx.attrs[i];
    uint32_t n = 0;
    if (!a->name || !a->onnx_name || !*a->onnx_name)
      return mistake(r, PLN_ERR_NAME, "an attribute of ONNX has no name");
    for (uint32_t k = 0; k < s->n_attrs; k++)
      n += !strcmp(s->attrs[k].name, a->name);
    if (n == 0)
      return mistake(r, PLN_ERR_NAME,
                     "ONNX attribute '%s' is none of its "
                     "attributes",
                     a->name);
    for (uint32_t k = 0; k < s->n_attrs; k++)
      if (strcmp(s->attrs[k].name, a->name) &&
          !strcmp(onnx_attr_name(s, s->attrs[k].name), a->onnx_name))
        return mistake(r, PLN_ERR_NAME,
                       "two of its attributes are called '%s' in ONNX",
                       a->onnx_name);
  }
  return PLN_OK;
}

static bool same_node(const pln_operator_onnx *a, const pln_operator_onnx *b) {
  return a->domain && b->domain && !strcmp(a->domain, b->domain) &&
         !strcmp(a->op_type, b->op_type) &&
         a->since_version == b->since_version;
}

static pln_status check_onnx(const registration *r) {
  const pln_operator_onnx *o = &r->given->onnx;
  if (!o->domain)
    return PLN_OK;
  if (!*o->domain || !strcmp(o->domain, "ai.onnx"))
    return mistake(r, PLN_ERR_NAME,
                   "its domain of ONNX must be one of its own");
  if (strstr(o->domain, "::") || !o->op_type || !*o->op_type ||
      strchr(o->op_type, ':'))
    return mistake(r, PLN_ERR_NAME,
                   "its node in ONNX must have a domain and an op_type");
  if (o->since_version < 1)
    return mistake(r, PLN_ERR_ARGUMENT, "since_version counts from 1");
  for (pln_op op = 1; op <= pln_op_count(r->engine); op++) {
    const pln_operator_spec *other = pln_op_registered(r->engine, op);
    if (other && same_node(o, &other->onnx))
      return mistake(r, PLN_ERR_NAME, "%s::%s from version %d on is '%s'",
                     o->domain, o->op_type, o->since_version, other->name);
  }
  PLN_TRY(check_onnx_inputs(r));
  return check_onnx_attrs(r);
}

static pln_status own_onnx(const registration *r) {
  pln_operator_onnx *o = &r->spec->onnx;
  const char **inputs;
  pln_operator_onnx_attr *attrs;
  if (!o->domain) {
    *o = (pln_operator_onnx){0};
    return PLN_OK;
  }
  PLN_TRY(own_text(r, &o->domain));
  PLN_TRY(own_text(r, &o->op_type));
  PLN_TRY(
      own_array(r, o->inputs, o->n_inputs, sizeof *inputs, (void **)&inputs));
  for (uint32_t i = 0; i < o->n_inputs; i++)
    PLN_TRY(own_text(r, &inputs[i]));
  o->inputs = inputs;
  PLN_TRY(own_array(r, o->attrs, o->n_attrs, sizeof *attrs, (void **)&attrs));
  for (uint32_t i = 0; i < o->n_attrs; i++) {
    PLN_TRY(own_text(r, &attrs[i].name));
    PLN_TRY(own_text(r, &attrs[i].onnx_name));
  }
  o->attrs = attrs;
  return PLN_OK;
}

/* -------------------------------------------------------------- registering */

static pln_status check_spec(const registration *r) {
  if (r->engine->parent)
    return mistake(r, PLN_ERR_ARGUMENT,
                   "it cannot be registered while passes run on threads");
  PLN_TRY(check_name(r));
  PLN_TRY(check_part_names(r));
  PLN_TRY(check_args(r));
  PLN_TRY(check_traits(r));
  for (uint32_t i = 0; i < r->given->n_attrs; i++)
    PLN_TRY(check_attr(r, &r->given->attrs[i]));
  return check_onnx(r);
}

static pln_status own_spec(registration *r) {
  r->op = pln_ops_memory(r->engine, sizeof *r->op);
  if (!r->op)
    return pln_nomem(r->engine);
  *r->op = (pln_registered_op){.spec = *r->given};
  r->spec = &r->op->spec;
  if (r->spec->n_results == 0)
    r->spec->n_results = 1;
  PLN_TRY(own_text(r, &r->spec->name));
  PLN_TRY(own_text(r, &r->spec->doc));
  PLN_TRY(own_args(r));
  PLN_TRY(own_attrs(r));
  return own_onnx(r);
}

pln_status pln_op_register(pln_engine *engine, const pln_operator_spec *spec,
                           pln_op *out) {
  registration r = {.engine = engine, .given = spec};
  pln_op_info row = {.infer = pln_infer_registered};
  PLN_TRY(check_spec(&r));
  PLN_TRY(own_spec(&r));
  PLN_TRY(write_schema(&r, &row.attrs));
  row.name = r.spec->name;
  row.min_args = least_args(r.spec);
  row.max_args = most_args(r.spec);
  row.traits = core_traits(r.spec->traits);
  row.kernel = r.spec->eval ? pln_kernel_registered : NULL;
  row.doc = r.spec->doc;
  row.registered = r.op;
  return pln_ops_add(engine, &row, out);
}

const pln_operator_spec *pln_op_registered(const pln_engine *engine,
                                           pln_op op) {
  const pln_registered_op *registered = pln_op_row(engine, op)->registered;
  return registered ? &registered->spec : NULL;
}
