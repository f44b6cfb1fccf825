/* weight.c: the arithmetic of folding into weights. Called by fold_weights.c
 * and the passes built on it.
 *
 * Invariants: elements are computed in double and rounded once, 16-bit
 * floats through float32. A splat stays a splat whenever all its elements
 * stay equal. */

#include "transform/fold/weight.h"

#include <math.h>

#include "op/op.h"

/* ----------------------------------------------------------------- elements */

static size_t element_bytes(pln_dtype dtype) {
  return pln_dtype_bits(dtype) / 8;
}

double pln_weight_at(const pln_weight *weight, size_t i) {
  const char *data = weight->data;
  if (weight->dtype == PLN_FLOAT32 && !weight->splat) {
    float single;
    memcpy(&single, data + i * sizeof single, sizeof single);
    return (double)single;
  }
  size_t at = weight->splat ? 0 : i * element_bytes(weight->dtype);
  return pln_float_load(weight->dtype, data + at);
}

/* ------------------------------------------------------------------ reading */

static bool read_constant(const pln_tensor *t, pln_weight *out) {
  size_t mark = pln_diag_count(t->engine);
  out->dtype = (pln_dtype)t->dtype;
  out->rank = t->rank;
  out->dims = t->dims;
  out->count = t->count;
  out->bytes = t->bytes;
  out->splat = t->splat;
  if (!pln_dtype_is_float(out->dtype))
    return false;
  if (pln_tensor_data(t, &out->data) == PLN_OK)
    return true;
  pln_diag_drop(t->engine, mark);
  return false;
}

/* The default of the attribute is a float32 zero. */
static bool read_weight_values(const pln_engine *e, pln_attrs attrs,
                               pln_weight *out) {
  static const float zero = 0;
  const pln_attr *value = pln_attrs_find(e, attrs, "value");
  pln_weight one;
  out->dtype = PLN_FLOAT32;
  out->data = &zero;
  if (!value)
    return true;
  if (value->kind != PLN_ATTR_TENSOR || value->v.tensor->count != 1 ||
      !read_constant(value->v.tensor, &one))
    return false;
  out->dtype = one.dtype;
  out->data = one.data;
  return true;
}

static bool read_filled(const pln_graph *g, const pln_node *n,
                        pln_weight *out) {
  const pln_engine *e = g->engine;
  int32_t rank = pln_type_rank(e, n->type);
  if (rank < 0 || !read_weight_values(e, n->attrs, out) ||
      pln_type_dtype(e, n->type) != out->dtype)
    return false;
  out->rank = (uint32_t)rank;
  out->dims = pln_type_dims(e, n->type);
  for (int32_t i = 0; i < rank; i++)
    if (!PLN_DIM_IS_CONST(out->dims[i]))
      return false;
  out->splat = out->filled = true;
  return pln_tensor_size(out->dtype, out->rank, out->dims, &out->count,
                         &out->bytes) == PLN_OK;
}

bool pln_weight_number(const pln_tensor *tensor, double *out) {
  pln_weight w;
  if (!read_constant(tensor, &w) || w.count == 0)
    return false;
  *out = pln_weight_at(&w, 0);
  return true;
}

bool pln_weight_read(const pln_graph *graph, pln_ref node, pln_weight *out) {
  const pln_node *n = &graph->nodes[node];
  *out = (pln_weight){.node = node};
  if (n->kind == PLN_CONSTANT)
    return read_constant(graph->tensors[n->data], out);
  return n->kind == PLN_CALL && n->data == PLN_OP_CONSTANT_OF_SHAPE &&
         n->results == 0 && n->count == 1 && pln_op_is_onnx_form(graph, node) &&
         read_filled(graph, n, out);
}

/* ------------------------------------------------------------------ scaling */

static bool all_equal(size_t n, const double *numbers) {
  for (size_t i = 1; i < n; i++)
    if (numbers[i] != numbers[0])
      return false;
  return n > 0;
}

static bool stays_splat(const pln_weight *weight, size_t n,
                        const double *factors) {
  return weight->splat && all_equal(n, factors);
}

size_t pln_weight_scaled_bytes(const pln_weight *weight, size_t n,
                               const double *factors) {
  return stays_splat(weight, n, factors) ? element_bytes(weight->dtype)
                                         : weight->bytes;
}

/* Stores from * factor; false if it overflows. */
static bool scale_one(pln_dtype dtype, const char *from, double factor,
                      char *to) {
  double x = pln_float_load(dtype, from);
  pln_float_store(dtype, x * factor, to);
  return isfinite(pln_float_load(dtype, to)) || !isfinite(x);
}

#define SCALE_RUN(T)                                                   \
  static bool scale_run_##T(const char *from, size_t n, double factor, \
                            char *to) {                                \
    bool good = true;                                                  \
    for (size_t i = 0; i < n; i++) {                                   \
      T x, y;                                                          \
      memcpy(&x, from + i * sizeof x, sizeof x);                       \
      y = (T)((double)x * factor);                                     \
      good &= isfinite(y) || !isfinite(x);                             \
      memcpy(to + i * sizeof y, &y, sizeof y);                         \
    }                                                                  \
    return good;                                                       \
  }
SCALE_RUN(float)
SCALE_RUN(double)

static bool scale_run(pln_dtype dtype, const char *from, size_t n,
                      double factor, char *to) {
  size_t size = element_bytes(dtype);
  bool good = true;
  if (dtype == PLN_FLOAT32)
    return scale_run_float(from, n, factor, to);
  if (dtype == PLN_FLOAT64)
    return scale_run_double(from, n, factor, to);
  for (size_t i = 0; i < n; i++)
    good &= scale_one(dtype, from + i * size, factor, to + i * size);
  return good;
}

/* Writes one element n times. */
static bool spread_run(pln_dtype dtype, const char *from, size_t n,
                       double factor, char *to) {
  size_t size = element_bytes(dtype);
  char element[sizeof(double)];
  bool good = scale_one(dtype, from, factor, element);
  for (size_t i = 0; i < n; i++)
    memcpy(to + i * size, element, size);
  return good;
}

static bool scale_all(const pln_weight *w, const pln_channels *c,
                      const double *factors, char *to) {
  size_t run = c->inner * element_bytes(w->dtype);
  const char *from = w->data;
  bool good = true;
  for (size_t o = 0; o < c->outer && good; o++) {
    const double *group = factors + o / c->group * c->channels;
    for (size_t k = 0; k < c->channels; k++, to += run) {
      good &= (w->splat ? spread_run : scale_run)(w->dtype, from, c->inner,
                                                  group[k], to);
      from += w->splat ? 0 : run;
    }
  }
  return good;
}

/* *out is NULL if an element overflows. */
static pln_status scale_dense(pln_engine *e, const pln_weight *weight,
                              const pln_channels *channels,
                              const double *factors, pln_tensor **out) {
  PLN_TRY(pln_tensor_unset(e, weight->dtype, weight->rank, weight->dims, out));
  if (scale_all(weight, channels, factors, pln_tensor_writable(*out)))
    return PLN_OK;
  pln_tensor_release(*out);
  *out = NULL;
  return PLN_OK;
}

/* ------------------------------------------------------------------- nodes */

/* Builds a Constant with the origin of `like`. Takes ownership of the tensor;
 * NULL gives PLN_NONE. */
static pln_status build_weight_constant(pln_rewrite *rw, pln_tensor *tensor,
                                        pln_ref like, pln_ref *out) {
  *out = PLN_NONE;
  if (!tensor)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  pln_status status = PLN_ERR_NOMEM;
  if (b) {
    pln_builder_origin(b, b->graph->origin[like]);
    status = pln_build_constant(b, tensor, out);
  }
  pln_tensor_release(tensor);
  return status;
}

/* Builds the ConstantOfShape with a scaled value. */
static pln_status fill_scaled(pln_rewrite *rw, const pln_weight *weight,
                              const char *element, pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_engine *e = b->engine;
  pln_tensor *value;
  pln_attrs attrs;
  int64_t one[1] = {1};
  pln_attr entry = {.kind = PLN_ATTR_TENSOR};
  PLN_TRY(pln_symbol_intern(e, pln_text("value"), &entry.name));
  PLN_TRY(pln_tensor_from_bytes(e, weight->dtype, 1, one, element,
                                element_bytes(weight->dtype), &value));
  entry.v.tensor = value;
  pln_status status =
      pln_attrs_with(e, b->graph->nodes[weight->node].attrs, &entry, &attrs);
  pln_tensor_release(value);
  PLN_TRY(status);
  pln_ref shape = pln_operand(b->graph, weight->node, 0);
  pln_builder_origin(b, b->graph->origin[weight->node]);
  return pln_build_call(b, PLN_OP_CONSTANT_OF_SHAPE, attrs, 0, 1, &shape, out);
}

static pln_status scale_splat(pln_rewrite *rw, const pln_weight *weight,
                              double factor, pln_ref *out) {
  char element[sizeof(double)];
  pln_tensor *tensor;
  *out = PLN_NONE;
  if (!scale_one(weight->dtype, weight->data, factor, element))
    return PLN_OK;
  if (weight->filled)
    return fill_scaled(rw, weight, element, out);
  PLN_TRY(pln_tensor_splat(pln_rewrite_graph(rw)->engine, weight->dtype,
                           weight->rank, weight->dims, element, &tensor));
  return build_weight_constant(rw, tensor, weight->node, out);
}

pln_status pln_weight_scale(pln_rewrite *rw, const pln_weight *weight,
                            const pln_channels *channels, const double *factors,
                            pln_ref *out) {
  pln_tensor *tensor;
  if (stays_splat(weight, pln_channels_count(channels), factors))
    return scale_splat(rw, weight, factors[0], out);
  PLN_TRY(scale_dense(pln_rewrite_graph(rw)->engine, weight, channels, factors,
                      &tensor));
  return build_weight_constant(rw, tensor, weight->node, out);
}

/* Stores the numbers; false if one overflows. *same is true if all have equal
 * bits. */
static bool store_all(pln_dtype dtype, size_t n, const double *numbers,
                      char *to, bool *same) {
  size_t size = element_bytes(dtype);
  *same = true;
  for (size_t i = 0; i < n; i++) {
    char *at = to + i * size;
    pln_float_store(dtype, numbers[i], at);
    if (!isfinite(pln_float_load(dtype, at)))
      return false;
    *same &= !memcmp(at, to, size);
  }
  return true;
}

pln_status pln_weight_vector(pln_rewrite *rw, pln_dtype dtype, size_t n,
                             const double *numbers, pln_ref like,
                             pln_ref *out) {
  pln_engine *e = pln_rewrite_graph(rw)->engine;
  int64_t dims[1] = {(int64_t)n};
  pln_tensor *tensor, *splat;
  bool same;
  *out = PLN_NONE;
  PLN_TRY(pln_tensor_unset(e, dtype, 1, dims, &tensor));
  char *data = pln_tensor_writable(tensor);
  if (!store_all(dtype, n, numbers, data, &same)) {
    pln_tensor_release(tensor);
    return PLN_OK;
  }
  if (!same || n < 2)
    return build_weight_constant(rw, tensor, like, out);
  pln_status status = pln_tensor_splat(e, dtype, 1, dims, data, &splat);
  pln_tensor_release(tensor);
  PLN_TRY(status);
  return build_weight_constant(rw, splat, like, out);
}
