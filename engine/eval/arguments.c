/* arguments.c: checks arguments against a function's parameters. Called at the
 * start of a run.
 *
 * A symbolic dim must have the same value in all parameters, because passes
 * rely on that. Dims that are expressions (N + 1) are not compared. */

#include "eval/arguments.h"

#include "ir/tensor/tensor.h"

typedef struct argument_check {
  pln_engine *engine;
  const pln_graph *graph;
  pln_idmap *rows; /* dim -> index in `extents`, from 1; or NULL */
  int64_t *extents;
  uint32_t n_extents, cap_extents;
  uint32_t index; /* of the argument */
} argument_check;

/* --------------------------------------------------------------- messages */

static pln_ref param_at(const argument_check *c) {
  const pln_node *root = &c->graph->nodes[c->graph->root];
  return c->graph->scopes[root->data].begin + c->index;
}

static pln_status say_tensor(pln_buffer *text, const pln_tensor *t) {
  PLN_TRY(pln_buffer_text(text, "Tensor[("));
  for (uint32_t i = 0; i < t->rank; i++)
    PLN_TRY(pln_buffer_printf(text, "%s%lld", i ? ", " : "",
                              (long long)t->dims[i]));
  return pln_buffer_printf(text, "), %s]", pln_dtype_name((pln_dtype)t->dtype));
}

static pln_status write_map_kind(pln_buffer *text,
                                 const pln_runtime_value *value) {
  const pln_tensor *keys = pln_runtime_value_at(value, 0)->of.tensor;
  const pln_tensor *values = pln_runtime_value_at(value, 1)->of.tensor;
  return pln_buffer_printf(text, "a map from %s to %s",
                           pln_dtype_name((pln_dtype)keys->dtype),
                           pln_dtype_name((pln_dtype)values->dtype));
}

static pln_status write_value_kind(pln_buffer *text,
                                   const pln_runtime_value *value) {
  if (value->kind == PLN_RUNTIME_TENSOR)
    return say_tensor(text, value->of.tensor);
  if (value->kind == PLN_RUNTIME_ABSENT)
    return pln_buffer_text(text, "nothing");
  if (value->kind == PLN_RUNTIME_MAP)
    return write_map_kind(text, value);
  PLN_TRY(pln_buffer_printf(text, "a sequence of %u",
                            pln_runtime_value_count(value)));
  if (pln_runtime_value_count(value) == 0)
    return PLN_OK;
  if (pln_runtime_value_at(value, 0)->kind == PLN_RUNTIME_MAP)
    return pln_buffer_text(text, " maps");
  if (pln_runtime_value_at(value, 0)->kind != PLN_RUNTIME_TENSOR)
    return pln_buffer_text(text, " sequences");
  PLN_TRY(pln_buffer_text(text, ", the first a "));
  return say_tensor(text, pln_runtime_value_at(value, 0)->of.tensor);
}

static pln_status say_mismatch(const argument_check *c, pln_type type,
                               const pln_runtime_value *arg, pln_buffer *text) {
  pln_symbol name = c->graph->nodes[param_at(c)].attrs;
  PLN_TRY(pln_buffer_printf(text, "argument %u '%s': expected ", c->index + 1,
                            pln_symbol_text(c->engine, name).data));
  PLN_TRY(pln_print_type(c->engine, type, pln_buffer_write, text));
  PLN_TRY(pln_buffer_text(text, ", got "));
  return write_value_kind(text, arg);
}

static pln_status mismatch(const argument_check *c, pln_type type,
                           const pln_runtime_value *arg) {
  pln_buffer text;
  pln_buffer_init(&text, c->engine);
  pln_status status = say_mismatch(c, type, arg, &text);
  if (status == PLN_OK)
    status = pln_diag_error(c->engine, PLN_ERR_TYPE, NULL, "%.*s",
                            (int)text.size, text.data);
  pln_buffer_free(&text);
  return status;
}

/* ----------------------------------------------------------------- extents */

/* *known is the value bound to `dim`; if there is none, it becomes `extent`. */
static pln_status bind_extent(argument_check *c, pln_dim dim, int64_t extent,
                              int64_t *known) {
  if (!c->rows)
    PLN_TRY(pln_idmap_new(c->engine, &c->rows));
  uint32_t row = pln_idmap_get(c->rows, (uint64_t)dim);
  if (row) {
    *known = c->extents[row - 1];
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->extents, &c->cap_extents,
                       c->n_extents + 1u, sizeof *c->extents));
  c->extents[c->n_extents++] = *known = extent;
  return pln_idmap_set(c->rows, (uint64_t)dim, c->n_extents);
}

static pln_status check_extent(argument_check *c, pln_dim dim, int64_t extent,
                               bool *good) {
  int64_t known = extent;
  if (PLN_DIM_IS_CONST(dim))
    known = dim;
  else if (dim != PLN_DIM_UNKNOWN && pln_dim_name(c->engine, dim))
    PLN_TRY(bind_extent(c, dim, extent, &known));
  *good = known == extent;
  return PLN_OK;
}

/* The type with bound dims substituted, for messages. */
static pln_status known_type(const argument_check *c, pln_type type,
                             pln_type *out) {
  int32_t rank = pln_type_rank(c->engine, type);
  const pln_dim *dims = pln_type_dims(c->engine, type);
  pln_dim known[64];
  *out = type;
  if (rank > (int32_t)PLN_COUNT(known))
    return PLN_OK;
  for (int32_t i = 0; i < rank; i++) {
    uint32_t row = c->rows ? pln_idmap_get(c->rows, (uint64_t)dims[i]) : 0;
    known[i] = row ? c->extents[row - 1] : dims[i];
  }
  return pln_type_tensor(c->engine, pln_type_dtype(c->engine, type), rank,
                         known, out);
}

/* ------------------------------------------------------------------- types */

static pln_status check_tensor(argument_check *c, pln_type type,
                               const pln_runtime_value *arg) {
  const pln_tensor *t = arg->of.tensor;
  pln_dtype dtype = pln_type_dtype(c->engine, type);
  int32_t rank = pln_type_rank(c->engine, type);
  bool good =
      (!dtype || dtype == t->dtype) && (rank < 0 || rank == (int32_t)t->rank);
  for (int32_t i = 0; i < rank && good; i++)
    PLN_TRY(
        check_extent(c, pln_type_dims(c->engine, type)[i], t->dims[i], &good));
  if (good)
    return PLN_OK;
  pln_type known;
  PLN_TRY(known_type(c, type, &known));
  return mismatch(c, known, arg);
}

static pln_status check_map(argument_check *c, pln_type type,
                            const pln_runtime_value *arg) {
  for (uint32_t i = 0; i < 2; i++) {
    pln_dtype dtype =
        pln_type_dtype(c->engine, pln_type_part_at(c->engine, type, i));
    if (arg->kind != PLN_RUNTIME_MAP ||
        (dtype && dtype != pln_runtime_value_at(arg, i)->of.tensor->dtype))
      return mismatch(c, type, arg);
  }
  return PLN_OK;
}

/* Elements of a sequence may differ in shape when its type leaves the shape
 * open. */
static pln_status check_argument_value(argument_check *c, pln_type type,
                                       const pln_runtime_value *arg) {
  pln_type_kind kind = pln_type_get_kind(c->engine, type);
  if (kind == PLN_TYPE_OPTIONAL && arg->kind == PLN_RUNTIME_ABSENT)
    return PLN_OK;
  if (kind == PLN_TYPE_OPTIONAL)
    return check_argument_value(c, pln_type_part_at(c->engine, type, 0), arg);
  if (kind == PLN_TYPE_TENSOR && arg->kind == PLN_RUNTIME_TENSOR)
    return check_tensor(c, type, arg);
  if (kind == PLN_TYPE_TENSOR)
    return arg->kind == PLN_RUNTIME_ABSENT ? PLN_OK : mismatch(c, type, arg);
  if (kind == PLN_TYPE_MAP)
    return check_map(c, type, arg);
  if (kind != PLN_TYPE_SEQUENCE)
    return PLN_OK;
  if (arg->kind != PLN_RUNTIME_SEQUENCE)
    return mismatch(c, type, arg);
  pln_type element = pln_type_part_at(c->engine, type, 0);
  bool maps = pln_type_get_kind(c->engine, element) == PLN_TYPE_MAP;
  for (uint32_t i = 0; i < pln_runtime_value_count(arg); i++) {
    const pln_runtime_value *item = pln_runtime_value_at(arg, i);
    if (maps)
      PLN_TRY(check_map(c, element, item));
    else if (item->kind == PLN_RUNTIME_TENSOR)
      PLN_TRY(check_tensor(c, element, item));
  }
  return PLN_OK;
}

static pln_status check_all(argument_check *c, uint32_t n,
                            const pln_runtime_value *args) {
  for (c->index = 0; c->index < n; c->index++) {
    pln_type type = c->graph->nodes[param_at(c)].type;
    if (type)
      PLN_TRY(check_argument_value(c, type, &args[c->index]));
  }
  return PLN_OK;
}

pln_status pln_check_arguments(const pln_graph *function, uint32_t n,
                               const pln_runtime_value *args) {
  const pln_node *root = &function->nodes[function->root];
  uint32_t params =
      root->kind == PLN_FUNCTION ? function->scopes[root->data].n_params : 0;
  if (n != params)
    return pln_diag_error(function->engine, PLN_ERR_ARGUMENT, NULL,
                          "expected %u arguments, got %u", params, n);
  argument_check c = {.engine = function->engine, .graph = function};
  pln_status status = check_all(&c, n, args);
  pln_idmap_free(c.rows);
  pln_mem_free(c.engine, c.extents, c.cap_extents * sizeof *c.extents);
  return status;
}
