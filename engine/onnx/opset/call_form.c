/* call_form.c: converts a call to the form that an opset of ONNX has for it, by
 * forms.def, ops.def and schemas.def.
 *
 * Called by convert_opset.c and expand.c. Invariants: the converted call
 * computes the same; a call that is valid already is not changed. */

#include "onnx/opset/call_form.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "op/infer/infer.h"
#include "op/kernel/elementwise/convert.h"

/* ------------------------------------------------------------------- rows */

pln_status pln_opset_op_find(pln_engine *engine, pln_op op, int64_t opset,
                             pln_opset_op *out) {
  const pln_onnx_op *row = NULL;
  *out = (pln_opset_op){0};
  while ((row = pln_onnx_op_next(row, op))) {
    if (*row->domain) {
      out->row = row;
      return pln_onnx_implied(engine, row, &out->implied);
    }
    const pln_onnx_schema *s = pln_onnx_schema_of(row->type, opset);
    if (row->since > opset || !pln_onnx_op_current(row, opset) ||
        (s && s->deprecated))
      continue;
    out->row = row;
    out->schema = s;
    return pln_onnx_implied(engine, row, &out->implied);
  }
  return PLN_OK;
}

const char *pln_opset_op_type(pln_op op) {
  const pln_onnx_op *row = pln_onnx_op_next(NULL, op);
  return row ? row->type : NULL;
}

/* ---------------------------------------------------------------- defaults */

/* The text after "name:" in an entry "name:kind=value" of the operator's
 * schema. */
static const char *schema_entry(const pln_opset_call *f, const char *name) {
  const pln_op_info *info = pln_op_row(f->engine, f->op);
  size_t size = strlen(name);
  for (const char *at = info->attrs; at && *at;) {
    if (!strncmp(at, name, size) && at[size] == ':')
      return at + size + 1;
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  return NULL;
}

static uint32_t read_form_ints(const char *at, uint32_t most, int64_t *out) {
  uint32_t n = 0;
  while (n < most) {
    char *end;
    out[n++] = strtoll(at, &end, 10);
    if (*end != ',')
      break;
    at = end + 1;
  }
  return n;
}

/* Parses the default of an attribute, without its name; false if there is
 * none. */
static bool read_default(const pln_opset_call *f, const char *name,
                         pln_attr *out, int64_t *ints, uint32_t most) {
  const char *kind = schema_entry(f, name);
  const char *is = kind ? kind + strcspn(kind, " =") : NULL;
  if (!is || *is != '=')
    return false;
  is++;
  *out = (pln_attr){.kind = PLN_ATTR_STRING, .v.s = {is, strcspn(is, " ")}};
  if (!strncmp(kind, "ints=", 5)) {
    out->kind = PLN_ATTR_INTS;
    out->count = read_form_ints(is, most, ints);
    out->v.ints = ints;
  } else if (!strncmp(kind, "int=", 4)) {
    out->kind = PLN_ATTR_INT;
    out->v.i = strtoll(is, NULL, 10);
  } else if (!strncmp(kind, "float=", 6)) {
    out->kind = PLN_ATTR_FLOAT;
    out->v.f = (double)strtof(is, NULL);
  }
  return true;
}

static pln_status has_entry(const pln_opset_call *f, pln_attrs attrs,
                            const pln_attr *a, bool *out) {
  pln_attrs with;
  PLN_TRY(pln_attrs_with(f->engine, attrs, a, &with));
  *out = with == attrs;
  return PLN_OK;
}

/* *out is true if the attribute has its default value. */
static pln_status is_default(const pln_opset_call *f, const pln_attr *a,
                             bool *out) {
  int64_t ints[PLN_CALL_FEW];
  pln_attr fallback;
  pln_attrs one, same;
  const char *name = pln_symbol_text(f->engine, a->name).data;
  *out = false;
  if (!read_default(f, name, &fallback, ints, PLN_CALL_FEW))
    return PLN_OK;
  fallback.name = a->name;
  PLN_TRY(pln_attrs_make(f->engine, 1, a, &one));
  PLN_TRY(pln_attrs_make(f->engine, 1, &fallback, &same));
  *out = one == same;
  return PLN_OK;
}

bool pln_opset_call_attr(const pln_opset_call *f, const char *name,
                         pln_attr *out) {
  const pln_attr *a = pln_attrs_find(f->engine, f->attrs, name);
  int64_t ints[PLN_CALL_FEW];
  pln_attrs kept;
  if (a) {
    *out = *a;
    return true;
  }
  if (!read_default(f, name, out, ints, PLN_CALL_FEW) ||
      pln_symbol_intern(f->engine, pln_text(name), &out->name) != PLN_OK ||
      pln_attrs_make(f->engine, 1, out, &kept) != PLN_OK)
    return false;
  *out = *pln_attrs_at(f->engine, kept, 0);
  return true;
}

int64_t pln_opset_call_int(const pln_opset_call *f, const char *name,
                           int64_t fallback) {
  pln_attr a;
  return pln_opset_call_attr(f, name, &a) && a.kind == PLN_ATTR_INT ? a.v.i
                                                                    : fallback;
}

/* ------------------------------------------------------------------ changes */

void pln_opset_call_refuse(pln_opset_call *f, const char *format, ...) {
  va_list args;
  if (!f->valid)
    return;
  va_start(args, format);
  vsnprintf(f->why, sizeof f->why, format, args);
  va_end(args);
  f->valid = false;
}

bool pln_opset_call_knows(const pln_opset_call *f, const char *attribute) {
  return !f->form.schema ||
         pln_onnx_schema_has(f->form.schema,
                             pln_onnx_attr_name(f->op, pln_text(attribute)));
}

pln_status pln_opset_call_with_attr(pln_opset_call *f, const char *name,
                                    pln_attr value) {
  PLN_TRY(pln_symbol_intern(f->engine, pln_text(name), &value.name));
  f->changed = true;
  return pln_attrs_with(f->engine, f->attrs, &value, &f->attrs);
}

pln_status pln_opset_call_without_attr(pln_opset_call *f, const char *name) {
  f->changed = true;
  return pln_attrs_without(f->engine, f->attrs, name, &f->attrs);
}

bool pln_opset_call_has_arg(const pln_opset_call *f, uint32_t i) {
  if (i >= f->n_args)
    return false;
  if (f->args[i] == PLN_NONE)
    return f->made[i] != NULL;
  return f->graph->nodes[f->args[i]].kind != PLN_ABSENT;
}

const pln_tensor *pln_opset_call_constant(const pln_opset_call *f, uint32_t i) {
  const void *data;
  if (!pln_opset_call_has_arg(f, i))
    return NULL;
  if (f->args[i] == PLN_NONE)
    return f->made[i];
  if (f->graph->nodes[f->args[i]].kind != PLN_CONSTANT)
    return NULL;
  const pln_tensor *t = pln_node_tensor(f->graph, f->args[i]);
  size_t mark = pln_diag_count(f->engine);
  if (pln_tensor_data(t, &data) == PLN_OK)
    return t;
  pln_diag_drop(f->engine, mark);
  return NULL;
}

bool pln_opset_call_values(const pln_opset_call *f, uint32_t i, uint32_t most,
                           pln_dim *out, uint32_t *n) {
  const pln_tensor *t = pln_opset_call_constant(f, i);
  if (t) {
    *n = (uint32_t)pln_tensor_count(t);
    for (size_t k = 0; k < pln_tensor_count(t); k++)
      if (k >= most ||
          !pln_tensor_int(t, pln_tensor_is_splat(t) ? 0 : k, &out[k]) ||
          !PLN_DIM_IS_CONST(out[k]))
        return false;
    return true;
  }
  if (!pln_opset_call_has_arg(f, i) || f->args[i] == PLN_NONE)
    return false;
  pln_value value = pln_node_value(f->graph, f->args[i]);
  *n = value ? pln_value_count(f->engine, value) : 0;
  if (!value || *n > most)
    return false;
  memcpy(out, pln_value_elements(f->engine, value), *n * sizeof *out);
  return true;
}

void pln_opset_call_set(pln_opset_call *f, uint32_t i, pln_tensor *constant) {
  if (f->args != f->few) {
    memcpy(f->few, f->args, f->n_args * sizeof *f->few);
    f->args = f->few;
  }
  while (f->n_args <= i)
    f->few[f->n_args++] = PLN_NONE;
  pln_tensor_release(f->made[i]);
  f->few[i] = PLN_NONE;
  f->made[i] = constant;
  f->changed = true;
}

/* ------------------------------------------------- attributes and inputs */

typedef enum form_kind { INT, INTS, FLOAT, FLOATS } form_kind;

typedef struct form_row {
  pln_op op;
  const char *attribute;
  uint32_t input;
  int32_t since;
  form_kind kind;
  uint32_t rank;
} form_row;

static const form_row forms[] = {
#define FORM(CORE, attribute, input, since, KIND, rank) \
  {PLN_OP_##CORE, attribute, input, since, KIND, rank},
#include "onnx/opset/forms.def"
};

static pln_dtype first_dtype(const pln_opset_call *f) {
  if (!f->n_args || f->args[0] == PLN_NONE)
    return PLN_DTYPE_NONE;
  return pln_type_dtype(f->engine, f->graph->nodes[f->args[0]].type);
}

/* Makes a tensor of numbers. */
static pln_status numbers(pln_opset_call *f, pln_dtype dtype, uint32_t rank,
                          uint32_t n, const double *values, pln_tensor **out) {
  int64_t dims[1] = {n};
  pln_conversion c = {.from = PLN_FLOAT64, .to = dtype, .folding = true};
  *out = NULL;
  if (!pln_convertible(dtype) || pln_dtype_bits(dtype) < 8) {
    pln_opset_call_refuse(f, "no constant of %s can be made",
                          pln_dtype_name(dtype));
    return PLN_OK;
  }
  PLN_TRY(pln_tensor_new(f->engine, dtype, rank, dims, out));
  if (pln_convert(&c, values, n, pln_tensor_writable(*out)) == PLN_CONVERTED)
    return PLN_OK;
  pln_tensor_release(*out);
  *out = NULL;
  pln_opset_call_refuse(f, "a value of it is none of %s",
                        pln_dtype_name(dtype));
  return PLN_OK;
}

static pln_status tensor_of(pln_opset_call *f, const form_row *row,
                            const pln_attr *a, pln_tensor **out) {
  int64_t dims[1] = {a->count};
  *out = NULL;
  if (row->kind == INTS && a->kind == PLN_ATTR_INTS)
    return pln_tensor_from_bytes(f->engine, PLN_INT64, 1, dims, a->v.ints,
                                 a->count * sizeof *a->v.ints, out);
  dims[0] = 1;
  if (row->kind == INT && a->kind == PLN_ATTR_INT)
    return pln_tensor_from_bytes(f->engine, PLN_INT64, row->rank, dims, &a->v.i,
                                 sizeof a->v.i, out);
  if (row->kind == FLOATS && a->kind == PLN_ATTR_FLOATS)
    return numbers(f, PLN_FLOAT32, 1, a->count, a->v.floats, out);
  if (row->kind == FLOAT && a->kind == PLN_ATTR_FLOAT)
    return numbers(f, first_dtype(f), row->rank, 1, &a->v.f, out);
  pln_opset_call_refuse(f, "'%s' is of a kind that no input can be",
                        row->attribute);
  return PLN_OK;
}

/* Finds the value to turn from an attribute into an input: one that is given
 * and differs from what the version implies, or the default if that differs. */
static pln_status attribute_to_move(const pln_opset_call *f,
                                    const form_row *row, pln_attr *value,
                                    bool *out) {
  const pln_attr *a = pln_attrs_find(f->engine, f->attrs, row->attribute);
  bool implied = false;
  *out = a != NULL;
  if (!a && pln_attrs_find(f->engine, f->form.implied, row->attribute) &&
      !pln_opset_call_has_arg(f, row->input))
    *out = pln_opset_call_attr(f, row->attribute, value);
  if (a)
    *value = *a;
  if (*out)
    PLN_TRY(has_entry(f, f->form.implied, value, &implied));
  *out &= !implied;
  return PLN_OK;
}

static pln_status to_input(pln_opset_call *f, const form_row *row) {
  pln_attr a;
  pln_tensor *tensor;
  bool moves;
  PLN_TRY(attribute_to_move(f, row, &a, &moves));
  if (!moves)
    return PLN_OK;
  if (pln_opset_call_has_arg(f, row->input)) {
    pln_opset_call_refuse(f, "'%s' is given as attribute and as operand",
                          row->attribute);
    return PLN_OK;
  }
  PLN_TRY(tensor_of(f, row, &a, &tensor));
  if (!tensor)
    return PLN_OK;
  pln_opset_call_set(f, row->input, tensor);
  return pln_opset_call_without_attr(f, row->attribute);
}

enum { MAX_FLOATS = PLN_MAX_RANK * 2 };

/* Reads a constant as an attribute; refuses values that an attribute cannot
 * hold. */
static pln_status floats_of(pln_opset_call *f, const pln_tensor *t,
                            double *values) {
  const void *data;
  double aligned[MAX_FLOATS]; /* a view may be unaligned */
  size_t size = pln_tensor_bytes(t);
  pln_conversion c = {.from = pln_tensor_dtype(t), .to = PLN_FLOAT64};
  PLN_TRY(pln_tensor_data(t, &data));
  bool fits = pln_convertible(c.from) && size <= sizeof aligned;
  if (fits && size > 0)
    memcpy(aligned, data, size);
  if (!fits ||
      pln_convert(&c, aligned, pln_tensor_count(t), values) != PLN_CONVERTED)
    pln_opset_call_refuse(f, "an operand is not a list of numbers");
  for (size_t i = 0; f->valid && i < pln_tensor_count(t); i++)
    if (values[i] == values[i] && (double)(float)values[i] != values[i])
      pln_opset_call_refuse(f, "%.17g is not a float32", values[i]);
  return PLN_OK;
}

static pln_status set_attribute(pln_opset_call *f, const form_row *row,
                                uint32_t n, const int64_t *ints,
                                const double *floats) {
  pln_attr a = {.count = n};
  switch (row->kind) {
  case INT: a = (pln_attr){.kind = PLN_ATTR_INT, .v.i = n ? ints[0] : 0}; break;
  case INTS: a.kind = PLN_ATTR_INTS, a.v.ints = ints; break;
  case FLOAT:
    a = (pln_attr){.kind = PLN_ATTR_FLOAT, .v.f = n ? floats[0] : 0};
    break;
  case FLOATS: a.kind = PLN_ATTR_FLOATS, a.v.floats = floats; break;
  }
  return pln_opset_call_with_attr(f, row->attribute, a);
}

static pln_status ints_to_attribute(pln_opset_call *f, const form_row *row) {
  int64_t ints[PLN_MAX_RANK * 2];
  uint32_t n = 0;
  bool known = pln_opset_call_values(f, row->input, PLN_COUNT(ints), ints, &n);
  for (uint32_t i = 0; known && i < n; i++)
    known = PLN_DIM_IS_CONST(ints[i]);
  if (!known || (row->kind == INT && n != 1)) {
    pln_opset_call_refuse(f, "'%s' must be constant there", row->attribute);
    return PLN_OK;
  }
  pln_opset_call_set(f, row->input, NULL);
  return set_attribute(f, row, n, ints, NULL);
}

static pln_status floats_to_attribute(pln_opset_call *f, const form_row *row) {
  double floats[MAX_FLOATS];
  const pln_tensor *t = pln_opset_call_constant(f, row->input);
  pln_tensor *dense;
  if (!t || pln_tensor_count(t) > PLN_COUNT(floats) ||
      (row->kind == FLOAT && pln_tensor_count(t) != 1)) {
    pln_opset_call_refuse(f, "'%s' must be constant there", row->attribute);
    return PLN_OK;
  }
  PLN_TRY(pln_tensor_dense(t, &dense));
  uint32_t n = (uint32_t)pln_tensor_count(dense);
  pln_status status = floats_of(f, dense, floats);
  pln_tensor_release(dense);
  if (status != PLN_OK || !f->valid)
    return status;
  pln_opset_call_set(f, row->input, NULL);
  return set_attribute(f, row, n, NULL, floats);
}

static pln_status to_attribute(pln_opset_call *f, const form_row *row) {
  if (!pln_opset_call_has_arg(f, row->input))
    return PLN_OK;
  return row->kind == INT || row->kind == INTS ? ints_to_attribute(f, row)
                                               : floats_to_attribute(f, row);
}

static pln_status move_forms(pln_opset_call *f) {
  for (size_t i = 0; i < PLN_COUNT(forms) && f->valid; i++) {
    if (forms[i].op != f->op)
      continue;
    if (f->opset >= forms[i].since)
      PLN_TRY(to_input(f, &forms[i]));
    else
      PLN_TRY(to_attribute(f, &forms[i]));
  }
  return PLN_OK;
}

/* Drops inputs that this version does not have and that have no effect. */
static void drop_extras(pln_opset_call *f) {
  static const struct {
    pln_op op;
    uint32_t input;
    int32_t since;
    int64_t value;
  } extras[] = {
#define EXTRA(CORE, input, since, value) {PLN_OP_##CORE, input, since, value},
#include "onnx/opset/forms.def"
  };
  for (size_t i = 0; i < PLN_COUNT(extras); i++) {
    if (extras[i].op != f->op || f->opset >= extras[i].since)
      continue;
    const pln_tensor *t = pln_opset_call_constant(f, extras[i].input);
    bool silent = t != NULL;
    int64_t v;
    for (size_t k = 0; silent && k < pln_tensor_count(t); k++)
      silent = pln_tensor_int(t, pln_tensor_is_splat(t) ? 0 : k, &v) &&
               v == extras[i].value;
    if (silent)
      pln_opset_call_set(f, extras[i].input, NULL);
  }
}

static pln_status fill_inputs(pln_opset_call *f) {
  enum form_filling { ZERO, EMPTY };
  static const struct {
    pln_op op;
    uint32_t input;
    int32_t until;
    enum form_filling value;
  } filled[] = {
#define FILLED(CORE, input, until, VALUE) {PLN_OP_##CORE, input, until, VALUE},
#include "onnx/opset/forms.def"
  };
  const double zero = 0;
  for (size_t i = 0; i < PLN_COUNT(filled); i++) {
    pln_tensor *tensor;
    if (filled[i].op != f->op || f->opset >= filled[i].until ||
        pln_opset_call_has_arg(f, filled[i].input))
      continue;
    /* Resize of opset 10 lacks these inputs */
    if (f->op == PLN_OP_RESIZE && f->n_args == 2)
      continue;
    if (filled[i].value == ZERO)
      PLN_TRY(numbers(f, first_dtype(f), 0, 1, &zero, &tensor));
    else
      PLN_TRY(numbers(f, PLN_FLOAT32, 1, 0, &zero, &tensor));
    if (tensor)
      pln_opset_call_set(f, filled[i].input, tensor);
  }
  return PLN_OK;
}

/* --------------------------------------------------------------- attributes */

/* Before opset 11 axes must not be negative. */
static pln_status count_from_start(pln_opset_call *f, const char *name) {
  const pln_attr *a = pln_attrs_find(f->engine, f->attrs, name);
  int64_t few[PLN_MAX_RANK], rank;
  uint32_t n = 1;
  bool negative = false;
  if (!a || (a->kind != PLN_ATTR_INT && a->kind != PLN_ATTR_INTS) ||
      (a->kind == PLN_ATTR_INTS && a->count > PLN_MAX_RANK))
    return PLN_OK;
  rank = f->n_args && f->args[0] != PLN_NONE
             ? pln_type_rank(f->engine, f->graph->nodes[f->args[0]].type)
             : -1;
  if (a->kind == PLN_ATTR_INTS)
    n = a->count;
  if (f->op == PLN_OP_UNSQUEEZE && rank >= 0)
    rank += n;
  if (f->op == PLN_OP_ONE_HOT && rank >= 0)
    rank++;
  for (uint32_t i = 0; i < n; i++) {
    few[i] = a->kind == PLN_ATTR_INT ? a->v.i : a->v.ints[i];
    negative |= few[i] < 0;
    few[i] += few[i] < 0 ? rank : 0;
  }
  if (negative && rank < 0)
    pln_opset_call_refuse(f, "'%s' counts from the end of an unknown rank",
                          name);
  if (!negative || !f->valid)
    return PLN_OK;
  pln_attr value = {.kind = a->kind, .count = n, .v.ints = few};
  if (a->kind == PLN_ATTR_INT)
    value = (pln_attr){.kind = PLN_ATTR_INT, .v.i = few[0]};
  return pln_opset_call_with_attr(f, name, value);
}

static pln_status check_axes(pln_opset_call *f) {
  enum { FROM_THE_END = 11 };
  static const struct {
    pln_op op;
    const char *attribute;
  } axes[] = {
#define AXIS(CORE, attribute) {PLN_OP_##CORE, attribute},
#include "onnx/opset/forms.def"
  };
  if (f->opset >= FROM_THE_END)
    return PLN_OK;
  for (size_t i = 0; i < PLN_COUNT(axes); i++)
    if (axes[i].op == f->op)
      PLN_TRY(count_from_start(f, axes[i].attribute));
  return PLN_OK;
}

static pln_status check_spelling(pln_opset_call *f) {
  static const struct {
    pln_op op;
    const char *attribute, *value;
    int32_t since, until;
    const char *instead;
  } spelt[] = {
#define SPELT(CORE, attribute, value, since, until, instead) \
  {PLN_OP_##CORE, attribute, value, since, until, instead},
#include "onnx/opset/forms.def"
  };
  for (size_t i = 0; i < PLN_COUNT(spelt); i++) {
    pln_attr a;
    if (spelt[i].op != f->op ||
        (f->opset >= spelt[i].since && f->opset < spelt[i].until) ||
        !pln_opset_call_attr(f, spelt[i].attribute, &a) ||
        a.kind != PLN_ATTR_STRING || !pln_slice_is(a.v.s, spelt[i].value))
      continue;
    if (!*spelt[i].instead) {
      pln_opset_call_refuse(f, "'%s' is '%s'", spelt[i].attribute,
                            spelt[i].value);
      continue;
    }
    pln_attr value = {.kind = PLN_ATTR_STRING,
                      .v.s = pln_text(spelt[i].instead)};
    return pln_opset_call_with_attr(f, spelt[i].attribute, value);
  }
  return PLN_OK;
}

/* Checks an attribute that the version does not have: its value must be the one
 * that the version implies; otherwise the call has no form. */
static pln_status check_unknown(pln_opset_call *f, const pln_attr *a) {
  bool same;
  const char *name = pln_symbol_text(f->engine, a->name).data;
  PLN_TRY(has_entry(f, f->form.implied, a, &same));
  if (same)
    return PLN_OK; /* export leaves it out */
  if (!pln_attrs_find(f->engine, f->form.implied, name))
    PLN_TRY(is_default(f, a, &same));
  if (same)
    return pln_opset_call_without_attr(f, name);
  pln_opset_call_refuse(f, "'%s' does not exist there or has another meaning",
                        name);
  return PLN_OK;
}

/* Writes the default of an attribute that is missing and for which the version
 * implies another value. */
static pln_status say_default(pln_opset_call *f, const pln_attr *implied) {
  const char *name = pln_symbol_text(f->engine, implied->name).data;
  bool same;
  pln_attr a;
  if (pln_attrs_find(f->engine, f->attrs, name) ||
      !pln_opset_call_attr(f, name, &a))
    return PLN_OK;
  PLN_TRY(has_entry(f, f->form.implied, &a, &same));
  if (same)
    return PLN_OK;
  if (f->form.schema && pln_opset_call_knows(f, name))
    return pln_opset_call_with_attr(f, name, a);
  pln_opset_call_refuse(f, "'%s' has another meaning there", name);
  return PLN_OK;
}

/* Writes an attribute that the version requires and the core leaves at its
 * default. */
static pln_status say_required(pln_opset_call *f) {
  const char *at = f->form.schema ? f->form.schema->attributes : "";
  pln_slice name;
  bool required;
  while (f->valid && pln_onnx_attribute_next(&at, &name, &required)) {
    char text[64];
    pln_attr a;
    name = pln_onnx_attr_name(f->op, name);
    if (!required || name.size >= sizeof text)
      continue;
    memcpy(text, name.data, name.size);
    text[name.size] = 0;
    if (pln_attrs_find(f->engine, f->attrs, text))
      continue;
    if (pln_opset_call_attr(f, text, &a))
      PLN_TRY(pln_opset_call_with_attr(f, text, a));
    else
      pln_opset_call_refuse(f, "it needs the attribute '%s'", text);
  }
  return PLN_OK;
}

static pln_status check_attributes(pln_opset_call *f) {
  uint32_t n = pln_attrs_count(f->engine, f->form.implied);
  for (uint32_t i = 0; i < n && f->valid; i++)
    PLN_TRY(say_default(f, pln_attrs_at(f->engine, f->form.implied, i)));
  pln_attrs given = f->attrs;
  n = f->form.schema ? pln_attrs_count(f->engine, given) : 0;
  for (uint32_t i = 0; i < n && f->valid; i++) {
    const pln_attr *a = pln_attrs_at(f->engine, given, i);
    if (!pln_opset_call_knows(f, pln_symbol_text(f->engine, a->name).data))
      PLN_TRY(check_unknown(f, a));
  }
  return PLN_OK;
}

/* --------------------------------------------------------- inputs, outputs */

/* Types bound to the letters of a schema, as far as known. */
typedef struct form_letters {
  pln_type types[26];
} form_letters;

static void check_type(pln_opset_call *f, const pln_onnx_parameter *p,
                       pln_type type, form_letters *same, const char *what,
                       uint32_t index) {
  if (!pln_onnx_schema_accepts(f->engine, p->types, type)) {
    pln_dtype dtype = pln_type_dtype(f->engine, type);
    pln_opset_call_refuse(f, "%s %u is %s%s", what, index,
                          dtype ? pln_dtype_name(dtype) : "of another type",
                          dtype ? "" : " there");
  }
  pln_dtype dtype = pln_type_dtype(f->engine, type);
  pln_type *first = p->letter ? &same->types[p->letter - 'a'] : NULL;
  if (!first || !dtype)
    return;
  if (*first && pln_type_dtype(f->engine, *first) != dtype)
    pln_opset_call_refuse(f, "%s %u must have another's dtype", what, index);
  *first = type;
}

static pln_type argument_type(const pln_opset_call *f, uint32_t i) {
  return f->args[i] == PLN_NONE ? 0 : f->graph->nodes[f->args[i]].type;
}

static bool is_body(const pln_opset_call *f, uint32_t i) {
  return f->args[i] != PLN_NONE &&
         f->graph->nodes[f->args[i]].kind == PLN_FUNCTION;
}

/* Returns true if an integer shape, axis or index has a dtype that the
 * version does not accept: it is cast to int64, unless the result's type
 * depends on it. */
static bool is_cast(const pln_opset_call *f, const pln_onnx_parameter *p,
                    uint32_t i) {
  uint32_t traits = pln_op_row(f->engine, f->op)->traits;
  pln_type type = argument_type(f, i);
  bool integers =
      i < PLN_INTEGER_OPERANDS && traits / PLN_TRAIT_INTEGERS >> i & 1;
  bool follows = p->letter && strchr(f->form.schema->outputs, p->letter);
  return integers && !follows && f->args[i] != PLN_NONE &&
         pln_type_get_kind(f->engine, type) == PLN_TYPE_TENSOR &&
         pln_dtype_is_integer(pln_type_dtype(f->engine, type)) &&
         !pln_onnx_schema_accepts(f->engine, p->types, type) &&
         pln_onnx_takes_dtype(p->types, PLN_INT64);
}

static pln_status cast_to_int64(pln_opset_call *f, uint32_t i) {
  enum { MAX_INTS = 64 };
  int64_t ints[MAX_INTS];
  const pln_tensor *t = pln_opset_call_constant(f, i);
  pln_tensor *cast;
  uint32_t n;
  if (!t || !pln_opset_call_values(f, i, MAX_INTS, ints, &n)) {
    f->casts |= 1u << i;
    f->changed = true;
    return PLN_OK;
  }
  PLN_TRY(pln_tensor_from_bytes(f->engine, PLN_INT64, pln_tensor_rank(t),
                                pln_tensor_dims(t), ints, n * sizeof *ints,
                                &cast));
  pln_opset_call_set(f, i, cast);
  return PLN_OK;
}

static pln_status cast_integers(pln_opset_call *f) {
  const char *at = f->form.schema->inputs;
  pln_onnx_parameter p;
  for (uint32_t i = 0; i < f->n_args && i < PLN_CALL_FEW; i++)
    if (!pln_onnx_parameter_next(&at, &p))
      break;
    else if (is_cast(f, &p, i))
      PLN_TRY(cast_to_int64(f, i));
  return PLN_OK;
}

static void check_inputs(pln_opset_call *f, form_letters *same) {
  const char *at = f->form.schema->inputs;
  pln_onnx_parameter p;
  uint32_t i = 0;
  for (; i < f->n_args && f->valid; i++) {
    if (is_body(f, i))
      continue;
    bool given = pln_opset_call_has_arg(f, i);
    if (!pln_onnx_parameter_next(&at, &p)) {
      if (given)
        pln_opset_call_refuse(f, "it has no input %u", i);
    } else if (given && !(i < PLN_CALL_FEW && f->casts >> i & 1)) {
      check_type(f, &p, argument_type(f, i), same, "input", i);
    } else if (!given && !p.option) {
      pln_opset_call_refuse(f, "it needs input %u", i);
    }
  }
  if (f->valid && *at && pln_onnx_parameter_next(&at, &p) && !p.option)
    pln_opset_call_refuse(f, "it needs input %u", i);
}

static void check_outputs(pln_opset_call *f, form_letters *same) {
  const char *at = f->form.schema->outputs;
  pln_onnx_parameter p;
  for (uint32_t i = 0; i < f->n_used && f->valid; i++) {
    pln_type type =
        f->n_results ? pln_type_part_at(f->engine, f->type, i) : f->type;
    if (pln_onnx_parameter_next(&at, &p))
      check_type(f, &p, type, same, "output", i);
    else
      pln_opset_call_refuse(f, "it has no output %u", i);
  }
}

static void trim_inputs(pln_opset_call *f) {
  while (f->args == f->few && f->n_args && f->few[f->n_args - 1] == PLN_NONE &&
         !f->made[f->n_args - 1])
    f->n_args--;
}

/* ------------------------------------------------------------------- whole */

static pln_status make_onnx_call(pln_opset_call *f) {
  form_letters same = {{0}};
  if (f->n_args <= PLN_CALL_FEW) {
    if (!pln_attrs_has_refs(f->engine, f->attrs))
      PLN_TRY(pln_opset_call_fix(f));
    PLN_TRY(move_forms(f));
    drop_extras(f);
    PLN_TRY(fill_inputs(f));
    trim_inputs(f);
  }
  PLN_TRY(say_required(f));
  if (f->attrs || f->form.implied) {
    PLN_TRY(check_axes(f));
    PLN_TRY(check_spelling(f));
    PLN_TRY(check_attributes(f));
  }
  if (!f->form.schema || !f->valid)
    return PLN_OK;
  PLN_TRY(cast_integers(f));
  check_inputs(f, &same);
  check_outputs(f, &same);
  return PLN_OK;
}

pln_status pln_opset_call_make(pln_engine *engine, const pln_graph *graph,
                               pln_ref call, uint32_t n_used, int64_t opset,
                               const pln_opset_op *form, pln_opset_call *out) {
  const pln_node *n = &graph->nodes[call];
  *out = (pln_opset_call){.engine = engine,
                          .graph = graph,
                          .opset = opset,
                          .op = n->data,
                          .form = *form,
                          .type = n->type,
                          .n_results = n->results,
                          .n_used = n_used,
                          .attrs = n->attrs,
                          .n_args = n->count,
                          .args = pln_operands(graph, n),
                          .valid = true};
  if (!form->row)
    out->valid = false;
  return form->row && !*form->row->domain ? make_onnx_call(out) : PLN_OK;
}

bool pln_call_form_admits(pln_engine *engine, const pln_graph *graph,
                          pln_ref call, const pln_opset_op *form) {
  const pln_node *n = &graph->nodes[call];
  const char *at = form->schema ? form->schema->inputs : "";
  form_letters same = {{0}};
  pln_onnx_parameter p;
  pln_opset_call f = {.engine = engine,
                      .graph = graph,
                      .n_args = n->count,
                      .args = pln_operands(graph, n),
                      .valid = true};
  for (uint32_t i = 0; i < n->count && f.valid; i++) {
    if (is_body(&f, i))
      continue;
    if (!pln_onnx_parameter_next(&at, &p))
      break;
    if (pln_opset_call_has_arg(&f, i))
      check_type(&f, &p, argument_type(&f, i), &same, "input", i);
  }
  return f.valid;
}

void pln_opset_call_free(pln_opset_call *form) {
  for (uint32_t i = 0; i < PLN_CALL_FEW; i++)
    pln_tensor_release(form->made[i]);
}

static pln_status build_cast(const pln_opset_call *f, pln_builder *b,
                             pln_ref *arg) {
  pln_attr to = {.kind = PLN_ATTR_INT, .v.i = PLN_INT64};
  pln_attrs attrs;
  PLN_TRY(pln_symbol_intern(f->engine, pln_text("to"), &to.name));
  PLN_TRY(pln_attrs_make(f->engine, 1, &to, &attrs));
  return pln_build_call(b, PLN_OP_CAST, attrs, 0, 1, arg, arg);
}

/* Copies the operands: appending to the builder may move them. */
static pln_status build_args(const pln_opset_call *f, pln_builder *b,
                             pln_ref *args) {
  memcpy(args, f->args, f->n_args * sizeof *args);
  for (uint32_t i = 0; i < f->n_args; i++) {
    if (i < PLN_CALL_FEW && f->casts >> i & 1)
      PLN_TRY(build_cast(f, b, &args[i]));
    if (args[i] != PLN_NONE)
      continue;
    if (f->made[i])
      PLN_TRY(pln_build_constant(b, f->made[i], &args[i]));
    else
      PLN_TRY(pln_build_absent(b, &args[i]));
  }
  return PLN_OK;
}

pln_status pln_opset_call_build(pln_opset_call *f, pln_builder *b,
                                pln_ref *out) {
  size_t size = (f->n_args + (size_t)1) * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(f->engine, size);
  if (!args)
    return pln_nomem(f->engine);
  pln_status status = build_args(f, b, args);
  if (status == PLN_OK)
    status =
        pln_build_call(b, f->op, f->attrs, f->n_results, f->n_args, args, out);
  pln_mem_free(f->engine, args, size);
  return status;
}
