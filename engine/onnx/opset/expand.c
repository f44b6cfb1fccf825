/* expand.c: expands calls into several calls of older operators, by
 * expansions.def.
 *
 * Called by convert_opset.c for a call without a form at the opset. Invariant:
 * a row is applied as a whole or not at all; nodes built by an abandoned row
 * are unused and dropped when the graph is sealed. */

#include <math.h>
#include <stdlib.h>

#include "onnx/opset/convert_opset.h"
#include "op/infer/infer.h"
#include "op/kernel/elementwise/convert.h"

enum { MAX_NAMES = 64, MAX_WORDS = 6, MAX_ATTRS = 6 };

typedef struct expansion_row {
  pln_op op;
  const char *when, *operands, *steps;
} expansion_row;

static const expansion_row rows[] = {
#define EXPAND(CORE, when, operands, steps) \
  {PLN_OP_##CORE, when, operands, steps},
#include "onnx/opset/expansions.def"
};

typedef struct named_value {
  pln_slice name;
  pln_ref node; /* PLN_NONE: omitted */
} named_value;

typedef struct expansion {
  pln_opset_conversion *c;
  pln_engine *engine;
  pln_builder *b;
  /* The call being expanded: its operands and attributes. */
  pln_opset_call call;
  uint32_t n_used;
  int depth;
  named_value names[MAX_NAMES];
  uint32_t n_names;
  bool works;
} expansion;

/* Reads the next word of a text, up to a blank or ';'. */
static bool next_word(const char **at, pln_slice *out) {
  *at += strspn(*at, " ");
  size_t size = strcspn(*at, " ;");
  *out = (pln_slice){*at, size};
  *at += size;
  return size > 0;
}

static pln_type operand_type(const expansion *x, uint32_t i) {
  return i < x->call.n_args ? x->call.graph->nodes[x->call.args[i]].type : 0;
}

/* -------------------------------------------------------------- conditions */

static int64_t last_axis(const expansion *x) {
  return pln_type_rank(x->engine, operand_type(x, 0)) - 1;
}

static bool is_last(const expansion *x) {
  int64_t axis = pln_opset_call_int(&x->call, "axis", -1);
  return axis == -1 || (last_axis(x) >= 0 && axis == last_axis(x));
}

static bool has_rank(const expansion *x) {
  int32_t rank = pln_type_rank(x->engine, operand_type(x, 0));
  return rank >= 1 && rank <= PLN_MAX_RANK;
}

static bool has_other_dtype(const expansion *x) {
  pln_dtype a = pln_type_dtype(x->engine, operand_type(x, 0));
  pln_dtype b = pln_type_dtype(x->engine, operand_type(x, 1));
  return a && b && a != b;
}

/* Scale and bias are per group, as before opset 21. */
static bool is_by_group(const expansion *x) {
  pln_type scale = operand_type(x, 1), data = operand_type(x, 0);
  int64_t groups = pln_opset_call_int(&x->call, "num_groups", 0);
  return pln_type_rank(x->engine, scale) == 1 &&
         pln_type_dims(x->engine, scale)[0] == groups &&
         !(pln_type_rank(x->engine, data) > 1 &&
           pln_type_dims(x->engine, data)[1] == groups);
}

static bool is_sequence(const expansion *x) {
  return pln_type_get_kind(x->engine, operand_type(x, 0)) == PLN_TYPE_SEQUENCE;
}

static bool has_no_axes(const expansion *x) {
  pln_attr axes;
  const pln_tensor *t = pln_opset_call_constant(&x->call, 1);
  if (pln_opset_call_attr(&x->call, "axes", &axes))
    return axes.count == 0;
  return !pln_opset_call_has_arg(&x->call, 1) ||
         (t && pln_tensor_count(t) == 0);
}

static bool is_two(const expansion *x) {
  return x->call.n_args == 2;
}

static bool text_is(const expansion *x, const char *name, const char *value) {
  pln_attr a;
  return pln_opset_call_attr(&x->call, name, &a) && a.kind == PLN_ATTR_STRING &&
         pln_slice_is(a.v.s, value);
}

static bool is_asymmetric(const expansion *x) {
  return text_is(x, "coordinate_transformation_mode", "asymmetric") &&
         (!text_is(x, "mode", "nearest") ||
          text_is(x, "nearest_mode", "floor") ||
          text_is(x, "nearest_mode", "simple"));
}

/* The scales are constant and at least 1. */
static bool enlarges(const expansion *x) {
  uint32_t i = is_two(x) ? 1 : 2;
  const pln_tensor *t = pln_opset_call_constant(&x->call, i);
  const void *data;
  if (!t || pln_tensor_dtype(t) != PLN_FLOAT32 || pln_tensor_count(t) == 0 ||
      pln_tensor_data(t, &data) != PLN_OK)
    return false;
  size_t n = pln_tensor_is_splat(t) ? 1 : pln_tensor_count(t);
  for (size_t k = 0; k < n; k++) {
    float scale;
    memcpy(&scale, (const char *)data + k * sizeof scale, sizeof scale);
    if (!(scale >= 1))
      return false;
  }
  return true;
}

static bool has_three_axes(const expansion *x) {
  return pln_type_rank(x->engine, operand_type(x, 0)) == 3;
}

static bool has_four_axes(const expansion *x) {
  return pln_type_rank(x->engine, operand_type(x, 0)) == 4;
}

/* The number of heads of an operand of attention; 0: unknown. */
static int64_t count_heads(const expansion *x, uint32_t i, const char *name) {
  pln_type type = operand_type(x, i);
  if (pln_type_rank(x->engine, type) != 4)
    return pln_opset_call_int(&x->call, name, 0);
  pln_dim heads = pln_type_dims(x->engine, type)[1];
  return PLN_DIM_IS_CONST(heads) ? heads : 0;
}

/* Attention with equally many heads of keys and of queries, and no operands
 * except queries, keys, values and a mask. */
static bool is_alike(const expansion *x) {
  int64_t heads = count_heads(x, 0, "q_num_heads");
  bool more = pln_opset_call_int(&x->call, "left_window_size", -1) != -1 ||
              pln_opset_call_int(&x->call, "right_window_size", -1) != -1;
  for (uint32_t i = 4; i < x->call.n_args; i++)
    more |= pln_opset_call_has_arg(&x->call, i);
  return !more && heads && heads == count_heads(x, 1, "kv_num_heads");
}

static bool has_no_mask(const expansion *x) {
  return !pln_opset_call_has_arg(&x->call, 3);
}

static bool has_bool_mask(const expansion *x) {
  return !has_no_mask(x) &&
         pln_type_dtype(x->engine, operand_type(x, 3)) == PLN_BOOL;
}

/* The length of operand 1, a vector; 0: unknown, or empty. */
static int64_t length_of_second(const expansion *x) {
  pln_type type = operand_type(x, 1);
  pln_dim n = pln_type_rank(x->engine, type) == 1
                  ? pln_type_dims(x->engine, type)[0]
                  : PLN_DIM_UNKNOWN;
  return PLN_DIM_IS_CONST(n) && n > 0 && n <= PLN_MAX_RANK ? n : 0;
}

static bool is_sized(const expansion *x) {
  return length_of_second(x) != 0;
}

static bool has_no_weight(const expansion *x) {
  return !pln_opset_call_has_arg(&x->call, 2);
}

static bool is_plane(const expansion *x) {
  return length_of_second(x) == 4;
}

static bool is_volume(const expansion *x) {
  return length_of_second(x) == 5;
}

static bool has_int32_second(const expansion *x) {
  return pln_type_dtype(x->engine, operand_type(x, 1)) == PLN_INT32;
}

static const struct {
  const char *name;
  bool (*holds)(const expansion *x);
} conditions[] = {
    {"#three", has_three_axes},
    {"#four", has_four_axes},
    {"#alike", is_alike},
    {"#no_mask", has_no_mask},
    {"#bool_mask", has_bool_mask},
    {"#last", is_last},
    {"#rank", has_rank},
    {"#other_dtype", has_other_dtype},
    {"#by_group", is_by_group},
    {"#sequence", is_sequence},
    {"#no_axes", has_no_axes},
    {"#two", is_two},
    {"#asymmetric", is_asymmetric},
    {"#enlarges", enlarges},
    {"#sized", is_sized},
    {"#no_weight", has_no_weight},
    {"#plane", is_plane},
    {"#volume", is_volume},
    {"#int32", has_int32_second},
};

static bool attribute_is(const expansion *x, pln_slice word, const char *is) {
  char name[64];
  pln_attr a;
  size_t size = (size_t)(is - word.data);
  pln_slice wanted = {is + 1, word.size - size - 1};
  if (size >= sizeof name)
    return false;
  memcpy(name, word.data, size);
  name[size] = '\0';
  if (!pln_opset_call_attr(&x->call, name, &a))
    return false;
  if (a.kind == PLN_ATTR_STRING)
    return pln_slice_equal(a.v.s, wanted);
  double value = strtod(wanted.data, NULL);
  return a.kind == PLN_ATTR_INT     ? (double)a.v.i == value
         : a.kind == PLN_ATTR_FLOAT ? a.v.f == value
                                    : false;
}

static bool is_given(const expansion *x, pln_slice word) {
  for (uint32_t i = 0; i < pln_attrs_count(x->engine, x->call.attrs); i++)
    if (pln_slice_equal(
            pln_symbol_text(x->engine,
                            pln_attrs_at(x->engine, x->call.attrs, i)->name),
            word))
      return true;
  return false;
}

static bool condition_holds(const expansion *x, const char *when) {
  pln_slice word;
  while (next_word(&when, &word)) {
    const char *is = memchr(word.data, '=', word.size);
    bool holds = !is && *word.data != '#' && is_given(x, word);
    for (size_t i = 0; i < PLN_COUNT(conditions); i++)
      if (pln_slice_is(word, conditions[i].name))
        holds = conditions[i].holds(x);
    if (is)
      holds = attribute_is(x, word, is);
    if (!holds)
      return false;
  }
  return true;
}

/* ------------------------------------------------------------------ values */

static pln_status constant(expansion *x, pln_tensor *tensor, pln_ref *out) {
  pln_status status = pln_build_constant(x->b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

/* Finds an attribute by "$name"; false if it has no value. */
static bool attribute(const expansion *x, pln_slice word, pln_attr *out) {
  char name[64];
  if (word.size - 1 >= sizeof name)
    return false;
  memcpy(name, word.data + 1, word.size - 1);
  name[word.size - 1] = '\0';
  return pln_opset_call_attr(&x->call, name, out);
}

static pln_status convert_new(expansion *x, pln_op op, pln_attrs attrs,
                              uint32_t n, const pln_ref *args, pln_ref *out);

/* A scalar of the dtype of `like`; if that is unknown, cast at run time. */
static pln_status scalar(expansion *x, double value, pln_ref like,
                         pln_ref *out) {
  pln_dtype dtype =
      like == PLN_NONE
          ? PLN_FLOAT32
          : pln_type_dtype(x->engine, x->b->graph->nodes[like].type);
  bool cast = dtype == PLN_DTYPE_NONE;
  pln_conversion c = {.from = PLN_FLOAT64, .to = cast ? PLN_FLOAT32 : dtype};
  pln_tensor *tensor;
  if (!pln_convertible(c.to) || pln_dtype_bits(c.to) < 8) {
    x->works = false;
    return PLN_OK;
  }
  PLN_TRY(pln_tensor_new(x->engine, c.to, 0, NULL, &tensor));
  if (pln_convert(&c, &value, 1, pln_tensor_writable(tensor)) != PLN_CONVERTED)
    x->works = false;
  PLN_TRY(constant(x, tensor, out));
  pln_ref args[2] = {*out, like};
  return cast && x->works ? convert_new(x, PLN_OP_CAST_LIKE, 0, 2, args, out)
                          : PLN_OK;
}

static pln_status int_vector(expansion *x, int64_t n, const int64_t *values,
                             pln_ref *out) {
  pln_tensor *tensor;
  PLN_TRY(pln_tensor_from_bytes(x->engine, PLN_INT64, 1, &n, values,
                                (size_t)n * sizeof *values, &tensor));
  return constant(x, tensor, out);
}

/* @column: a shape -1, 1, 1, ... with as many axes as operand 1 has
 * elements. */
static pln_status column(expansion *x, pln_ref *out) {
  int64_t values[PLN_MAX_RANK], n = length_of_second(x);
  for (int64_t i = 0; i < n; i++)
    values[i] = i ? 1 : -1;
  return int_vector(x, n, values, out);
}

static pln_status depth(expansion *x, pln_ref *out) {
  int64_t n = length_of_second(x);
  return int_vector(x, 1, &n, out);
}

/* "[1,$attribute]" */
static pln_status vector(expansion *x, pln_slice word, pln_ref *out) {
  int64_t values[MAX_WORDS], n = 0;
  const char *at = word.data + 1, *end = word.data + word.size - 1;
  while (at < end && n < MAX_WORDS) {
    size_t size = strcspn(at, ",]");
    pln_attr a = {.v.i = strtoll(at, NULL, 10)};
    if (*at == '$' &&
        (!attribute(x, (pln_slice){at, size}, &a) || a.kind != PLN_ATTR_INT))
      x->works = false;
    values[n++] = a.v.i;
    at += size + 1;
  }
  return int_vector(x, n, values, out);
}

static pln_status empty(expansion *x, pln_ref *out) {
  int64_t dims[1] = {0};
  pln_tensor *tensor;
  pln_type part = pln_type_part_at(x->engine, operand_type(x, 0), 0);
  pln_dtype dtype = pln_type_dtype(x->engine, part);
  if (!dtype) {
    x->works = false;
    return PLN_OK;
  }
  PLN_TRY(pln_tensor_new(x->engine, dtype, 1, dims, &tensor));
  return constant(x, tensor, out);
}

/* The factor of the scores of a four-axis attention. */
static pln_status score_scale(expansion *x, pln_ref like, pln_ref *out) {
  pln_attr scale;
  pln_type type = operand_type(x, 0);
  pln_dim size = pln_type_rank(x->engine, type) == 4
                     ? pln_type_dims(x->engine, type)[3]
                     : PLN_DIM_UNKNOWN;
  if (pln_opset_call_attr(&x->call, "scale", &scale) &&
      scale.kind == PLN_ATTR_FLOAT)
    return scalar(x, scale.v.f, like, out);
  x->works = PLN_DIM_IS_CONST(size) && size > 0;
  return x->works ? scalar(x, 1 / sqrt((double)size), like, out) : PLN_OK;
}

static pln_status attribute_value(expansion *x, pln_slice word, pln_ref like,
                                  pln_ref *out) {
  pln_attr a;
  pln_tensor *tensor;
  if (!attribute(x, word, &a)) {
    x->works = false;
    return PLN_OK;
  }
  if (a.kind == PLN_ATTR_FLOAT || a.kind == PLN_ATTR_INT)
    return scalar(x, a.kind == PLN_ATTR_INT ? (double)a.v.i : a.v.f, like, out);
  int64_t dims[1] = {a.count};
  pln_conversion c = {.from = PLN_FLOAT64, .to = PLN_FLOAT32};
  if (a.kind == PLN_ATTR_INTS) {
    PLN_TRY(pln_tensor_from_bytes(x->engine, PLN_INT64, 1, dims, a.v.ints,
                                  a.count * sizeof *a.v.ints, &tensor));
    return constant(x, tensor, out);
  }
  if (a.kind != PLN_ATTR_FLOATS) {
    x->works = false;
    return PLN_OK;
  }
  PLN_TRY(pln_tensor_new(x->engine, PLN_FLOAT32, 1, dims, &tensor));
  if (pln_convert(&c, a.v.floats, a.count, pln_tensor_writable(tensor)) !=
      PLN_CONVERTED)
    x->works = false;
  return constant(x, tensor, out);
}

static named_value *find_named_value(expansion *x, pln_slice name) {
  for (uint32_t i = x->n_names; i-- > 0;)
    if (pln_slice_equal(x->names[i].name, name))
      return &x->names[i];
  return NULL;
}

static pln_status bind_expanded_name(expansion *x, pln_slice name,
                                     pln_ref node) {
  if (x->n_names == MAX_NAMES)
    return pln_diag_error(x->engine, PLN_ERR_INVALID, NULL,
                          "an expansion has more than %d names", MAX_NAMES);
  x->names[x->n_names++] = (named_value){name, node};
  return PLN_OK;
}

/* -------------------------------------------------------------- attributes */

static pln_status axis_list(expansion *x, pln_slice kind, pln_attr *out,
                            int64_t *ints) {
  int64_t axis = pln_opset_call_int(&x->call, "axis", -1);
  int64_t rank = last_axis(x) + 1;
  uint32_t n = 0;
  *out = (pln_attr){.kind = PLN_ATTR_INTS, .v.ints = ints};
  if (pln_slice_is(kind, "@axis")) {
    ints[n++] = axis;
  } else if (pln_slice_is(kind, "@tail")) {
    int64_t end = axis < 0 ? 0 : rank;
    x->works = end - axis > 0 && end - axis <= PLN_MAX_RANK;
    for (int64_t i = axis; x->works && i < end; i++)
      ints[n++] = i;
  } else {
    for (; n < rank && n < PLN_MAX_RANK; n++)
      ints[n] = n;
    axis += axis < 0 ? rank : 0;
    x->works = axis >= 0 && axis < (int64_t)n;
    if (x->works) {
      ints[axis] = n - 1;
      ints[n - 1] = axis;
    }
  }
  out->count = n;
  return PLN_OK;
}

static bool is_number_word(pln_slice word) {
  return strchr("-0123456789", *word.data) != NULL;
}

/* "[1,2]" */
static uint32_t read_expansion_list(pln_slice word, int64_t *ints) {
  uint32_t n = 0;
  for (const char *at = word.data + 1; n < PLN_MAX_RANK;) {
    ints[n++] = strtoll(at, NULL, 10);
    at += strcspn(at, ",]");
    if (*at++ != ',')
      break;
  }
  return n;
}

/* Reads the value of "name=value"; *given is false if it refers to an attribute
 * without value. */
static pln_status read_expansion_value(expansion *x, pln_slice word,
                                       pln_attr *out, int64_t *ints,
                                       bool *given) {
  *given = true;
  if (*word.data == '$') {
    *given = attribute(x, word, out);
    return PLN_OK;
  }
  if (*word.data == '@')
    return axis_list(x, word, out, ints);
  if (*word.data == '[') {
    *out = (pln_attr){.kind = PLN_ATTR_INTS,
                      .count = read_expansion_list(word, ints),
                      .v.ints = ints};
  } else if (!is_number_word(word)) {
    *out = (pln_attr){.kind = PLN_ATTR_STRING, .v.s = word};
  } else if (memchr(word.data, '.', word.size)) {
    *out = (pln_attr){.kind = PLN_ATTR_FLOAT,
                      .v.f = (double)strtof(word.data, NULL)};
  } else {
    *out =
        (pln_attr){.kind = PLN_ATTR_INT, .v.i = strtoll(word.data, NULL, 10)};
  }
  return PLN_OK;
}

static pln_status add_attribute(expansion *x, pln_slice word, const char *is,
                                pln_attrs *attrs) {
  int64_t ints[PLN_MAX_RANK];
  pln_attr a;
  bool given;
  size_t size = (size_t)(is - word.data);
  PLN_TRY(read_expansion_value(x, (pln_slice){is + 1, word.size - size - 1}, &a,
                               ints, &given));
  if (!given || !x->works)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(x->engine, (pln_slice){word.data, size}, &a.name));
  return pln_attrs_with(x->engine, *attrs, &a, attrs);
}

/* ------------------------------------------------------------------- steps */

typedef struct expansion_step {
  pln_slice name, op;
  bool optional; /* "op?" */
  bool left_out; /* one of the words is omitted */
  pln_slice words[MAX_WORDS];
  pln_ref args[MAX_WORDS];
  uint32_t n_args;
  pln_attrs attrs;
} expansion_step;

/* Builds a call in the form of the opset. */
static pln_status convert_new(expansion *x, pln_op op, pln_attrs attrs,
                              uint32_t n, const pln_ref *args, pln_ref *out) {
  size_t mark = pln_diag_count(x->engine);
  pln_status status = pln_build_call(x->b, op, attrs, 0, n, args, out);
  if (status == PLN_ERR_TYPE) {
    pln_diag_drop(x->engine, mark);
    x->works = false;
    return PLN_OK;
  }
  PLN_TRY(status);
  return pln_convert_call(x->c, *out, 1, x->depth + 1, out, &x->works, NULL);
}

static pln_status read_argument(expansion *x, const expansion_step *s,
                                pln_slice word, pln_ref like, pln_ref *out) {
  const named_value *n;
  (void)s;
  *out = PLN_NONE;
  if (*word.data == '_')
    return PLN_OK;
  if (*word.data == '[')
    return vector(x, word, out);
  if (pln_slice_is(word, "@scale"))
    return score_scale(x, like, out);
  if (pln_slice_is(word, "@column"))
    return column(x, out);
  if (pln_slice_is(word, "@depth"))
    return depth(x, out);
  if (*word.data == '@')
    return empty(x, out);
  if (*word.data == '$')
    return attribute_value(x, word, like, out);
  if (is_number_word(word))
    return scalar(x, strtod(word.data, NULL), like, out);
  n = find_named_value(x, word);
  if (!n)
    return pln_diag_error(x->engine, PLN_ERR_INVALID, NULL,
                          "an expansion uses '%.*s', which has no value",
                          (int)word.size, word.data);
  *out = n->node;
  return PLN_OK;
}

/* The first word that names a value other than a bool. */
static pln_ref first_number(expansion *x, const expansion_step *s) {
  for (uint32_t i = 0; i < s->n_args; i++) {
    const named_value *n = find_named_value(x, s->words[i]);
    if (n && n->node != PLN_NONE &&
        pln_type_dtype(x->engine, x->b->graph->nodes[n->node].type) != PLN_BOOL)
      return n->node;
  }
  return PLN_NONE;
}

static pln_status read_step(expansion *x, const char **at, expansion_step *s) {
  pln_slice word;
  *s = (expansion_step){.n_args = 0};
  next_word(at, &s->name);
  next_word(at, &word); /* "=" */
  next_word(at, &s->op);
  if (s->op.data[s->op.size - 1] == '?') {
    s->optional = true;
    s->op.size--;
  }
  while (next_word(at, &word)) {
    const char *is = memchr(word.data, '=', word.size);
    if (is)
      PLN_TRY(add_attribute(x, word, is, &s->attrs));
    else if (s->n_args < MAX_WORDS)
      s->words[s->n_args++] = word;
  }
  *at += **at == ';';
  return PLN_OK;
}

static pln_status read_arguments(expansion *x, expansion_step *s) {
  pln_ref like = first_number(x, s);
  for (uint32_t i = 0; i < s->n_args && x->works; i++) {
    PLN_TRY(read_argument(x, s, s->words[i], like, &s->args[i]));
    s->left_out |= s->args[i] == PLN_NONE;
    if (s->args[i] == PLN_NONE && !s->optional)
      PLN_TRY(pln_build_absent(x->b, &s->args[i]));
  }
  return PLN_OK;
}

static pln_status cast(expansion *x, pln_ref value, pln_dtype dtype,
                       pln_ref *out) {
  pln_attrs attrs;
  pln_attr to = {.kind = PLN_ATTR_INT, .v.i = dtype};
  *out = value;
  if (pln_type_dtype(x->engine, x->b->graph->nodes[value].type) == dtype)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(x->engine, pln_text("to"), &to.name));
  PLN_TRY(pln_attrs_make(x->engine, 1, &to, &attrs));
  return convert_new(x, PLN_OP_CAST, attrs, 1, &value, out);
}

static pln_status cast_as(expansion *x, expansion_step *s, pln_ref *out) {
  pln_type type = x->b->graph->nodes[s->args[1]].type;
  pln_dtype dtype = pln_type_dtype(x->engine, type);
  if (dtype)
    return cast(x, s->args[0], dtype, out);
  return convert_new(x, PLN_OP_CAST_LIKE, 0, 2, s->args, out);
}

static pln_status cast_to(expansion *x, const expansion_step *s, pln_ref *out) {
  const named_value *value = find_named_value(x, s->words[0]);
  char name[64];
  memcpy(name, s->words[1].data, s->words[1].size);
  name[s->words[1].size] = '\0';
  int64_t dtype = pln_opset_call_int(&x->call, name, 0);
  x->works = dtype > 0 && dtype < PLN_N_DTYPES && value;
  return x->works ? cast(x, value->node, (pln_dtype)dtype, out) : PLN_OK;
}

static pln_status run_step(expansion *x, expansion_step *s, pln_ref *out) {
  if (pln_slice_is(s->op, "cast_to"))
    return cast_to(x, s, out);
  PLN_TRY(read_arguments(x, s));
  if (!x->works)
    return PLN_OK;
  if (pln_slice_is(s->op, "cast_as"))
    return cast_as(x, s, out);
  if (s->optional && s->left_out) {
    *out = s->args[0];
    return PLN_OK;
  }
  pln_op op = pln_op_find(x->engine, s->op);
  if (!op)
    return pln_diag_error(x->engine, PLN_ERR_INVALID, NULL,
                          "an expansion uses '%.*s', which is not an operator",
                          (int)s->op.size, s->op.data);
  return convert_new(x, op, s->attrs, s->n_args, s->args, out);
}

/* ------------------------------------------------------------------ a row */

static pln_status bind_operands(expansion *x, const char *operands) {
  pln_slice word;
  for (uint32_t i = 0; next_word(&operands, &word); i++) {
    const char *is = memchr(word.data, '=', word.size);
    size_t size = is ? (size_t)(is - word.data) : word.size;
    pln_ref node = PLN_NONE;
    if (pln_opset_call_has_arg(&x->call, i))
      node = x->call.args[i];
    else if (is)
      PLN_TRY(attribute_value(x, (pln_slice){is + 1, word.size - size - 1},
                              PLN_NONE, &node));
    PLN_TRY(bind_expanded_name(x, (pln_slice){word.data, size}, node));
  }
  return PLN_OK;
}

/* Reads the names after "return": the node itself, or a tuple. */
static pln_status give_results(expansion *x, const char *at, pln_ref *out) {
  pln_ref results[MAX_WORDS];
  uint32_t n = 0;
  pln_slice word;
  while (next_word(&at, &word)) {
    const named_value *value = find_named_value(x, word);
    if (value && n < MAX_WORDS)
      results[n++] = value->node;
  }
  x->works = n >= x->n_used && n > 0;
  if (!x->works)
    return PLN_OK;
  if (x->call.n_results)
    return pln_build_tuple(x->b, n, results, out);
  *out = results[0];
  return PLN_OK;
}

static pln_status run_row(expansion *x, const expansion_row *r, pln_ref *out) {
  const char *at = r->steps;
  expansion_step s;
  x->works = true;
  x->n_names = 0;
  PLN_TRY(bind_operands(x, r->operands));
  while (x->works && strncmp(at += strspn(at, " "), "return ", 7)) {
    pln_ref value = PLN_NONE;
    PLN_TRY(read_step(x, &at, &s));
    if (x->works)
      PLN_TRY(run_step(x, &s, &value));
    if (x->works)
      PLN_TRY(bind_expanded_name(x, s.name, value));
  }
  return x->works ? give_results(x, at + 7, out) : PLN_OK;
}

static pln_status try_rows(expansion *x, pln_ref *out, bool *done) {
  pln_op op = x->call.op;
  for (size_t i = 0; i < PLN_COUNT(rows) && !*done; i++) {
    if (rows[i].op != op || !condition_holds(x, rows[i].when))
      continue;
    PLN_TRY(run_row(x, &rows[i], out));
    *done = x->works;
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- bfloat16 */

static pln_dtype dtype_of(const expansion *x, pln_ref node) {
  return pln_type_dtype(x->engine, x->b->graph->nodes[node].type);
}

/* Casts bfloat16 operands to float32; *any is true if there are some. */
static pln_status widen_operands(expansion *x, pln_ref *args, bool *any) {
  *any = false;
  for (uint32_t i = 0; i < x->call.n_args && x->works; i++) {
    args[i] = x->call.args[i];
    if (dtype_of(x, args[i]) != PLN_BFLOAT16)
      continue;
    PLN_TRY(cast(x, args[i], PLN_FLOAT32, &args[i]));
    *any = true;
  }
  return PLN_OK;
}

/* Replaces a bfloat16 call by a float32 one and rounds once at the end, as the
 * kernels do. */
static pln_status cast_around(expansion *x, pln_ref *out, bool *done) {
  pln_ref args[MAX_WORDS], wide;
  bool any;
  x->works = !x->call.n_results &&
             pln_type_dtype(x->engine, x->call.type) == PLN_BFLOAT16;
  if (!x->works)
    return PLN_OK;
  PLN_TRY(widen_operands(x, args, &any));
  if (!any || !x->works)
    return PLN_OK;
  PLN_TRY(
      convert_new(x, x->call.op, x->call.attrs, x->call.n_args, args, &wide));
  if (!x->works || dtype_of(x, wide) != PLN_FLOAT32)
    return PLN_OK;
  PLN_TRY(cast(x, wide, PLN_BFLOAT16, out));
  *done = x->works;
  return PLN_OK;
}

/* The operands are copied, because building moves the operand array. Calls with
 * attribute references are not expanded: rows read attribute values. */
pln_status pln_expand_call(pln_opset_conversion *c, pln_ref call,
                           uint32_t n_used, int depth, pln_ref *out,
                           bool *done) {
  const pln_graph *g = pln_rewrite_graph(c->rw);
  const pln_node *n = &g->nodes[call];
  pln_ref args[MAX_WORDS];
  *done = false;
  if (depth > PLN_EXPAND_DEEPEST || n->count > MAX_WORDS ||
      pln_attrs_has_refs(c->engine, n->attrs))
    return PLN_OK;
  memcpy(args, pln_operands(g, n), n->count * sizeof *args);
  expansion x = {.c = c,
                 .engine = c->engine,
                 .b = pln_rewrite_builder(c->rw),
                 .n_used = n_used,
                 .depth = depth,
                 .call = {.engine = c->engine,
                          .opset = c->opset,
                          .op = n->data,
                          .type = n->type,
                          .n_results = n->results,
                          .attrs = n->attrs,
                          .n_args = n->count,
                          .args = args}};
  if (!x.b)
    return PLN_ERR_NOMEM;
  x.call.graph = x.b->graph;
  PLN_TRY(try_rows(&x, out, done));
  return *done ? PLN_OK : cast_around(&x, out, done);
}
