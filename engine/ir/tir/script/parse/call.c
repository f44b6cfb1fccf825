/* tir/script/parse/call.c: calls in expressions: T.Cast(...), T.exp(x),
 * T.int32(1), Module.f(x).
 *
 * Called by the expression parser when a call's brackets close. A call that
 * needs its statement (T.allocate, T.Buffer) becomes a value with its
 * arguments. */

#include <math.h>
#include <stdio.h>

#include "ir/tensor/tensor.h"
#include "ir/tir/script/parse/parse.h"

/* ---------------------------------------------------------------- arguments */

static const struct {
  const char *name, *parameters;
  bool is_stmt;
} methods[] = {
#define EXPR false
#define STMT true
    {"", "", false},
#define METHOD(ID, name, when, parameters) {name, parameters, when},
#include "ir/tir/script/parse/methods.def"
#undef EXPR
#undef STMT
};

/* The parameters of a method as separate names; returns their number. */
static uint32_t split(const char *parameters, pln_slice *out, bool *needed) {
  uint32_t n = 0;
  while (*parameters && n < PLN_MOST_ARGS) {
    size_t size = strcspn(parameters, "! ");
    out[n] = (pln_slice){parameters, size};
    needed[n++] = parameters[size] == '!';
    parameters += size + (parameters[size] == '!');
    parameters += *parameters == ' ';
  }
  return n;
}

static pln_status unknown_keyword(pln_script_parser *p, pln_slice key,
                                  uint32_t n, const pln_slice *parameters) {
  char text[PLN_MOST_ARGS][24];
  const char *names[PLN_MOST_ARGS];
  for (uint32_t i = 0; i < n; i++) {
    snprintf(text[i], sizeof text[i], "%.*s", (int)parameters[i].size,
             parameters[i].data);
    names[i] = text[i];
  }
  return pln_script_unknown(p, key, "parameter", n, names);
}

pln_status pln_script_bind_args(pln_script_parser *p,
                                const pln_script_value *call,
                                pln_script_args *out) {
  pln_slice parameters[PLN_MOST_ARGS];
  bool needed[PLN_MOST_ARGS];
  const char *name = methods[call->v.of.number].name;
  uint32_t n = split(methods[call->v.of.number].parameters, parameters, needed);
  *out = (pln_script_args){{NULL}};
  for (uint32_t i = 0; i < call->n; i++) {
    const pln_script_value *item = &p->kept[call->first + i];
    uint32_t at = i;
    for (at = item->key.data ? 0 : i;
         item->key.data && at < n &&
         !pln_slice_equal(item->key, parameters[at]);)
      at++;
    if (at >= n && item->key.data)
      return unknown_keyword(p, item->key, n, parameters);
    if (at >= n)
      return pln_script_refuse(p, item, "T.%s takes at most %u arguments", name,
                               (unsigned)n);
    if (out->at[at])
      return pln_script_refuse(p, item, "T.%s: '%.*s' is given twice", name,
                               (int)parameters[at].size, parameters[at].data);
    out->at[at] = item;
  }
  for (uint32_t i = 0; i < n; i++)
    if (needed[i] && !out->at[i])
      return pln_script_refuse(p, call, "T.%s: '%.*s' is missing", name,
                               (int)parameters[i].size, parameters[i].data);
  return PLN_OK;
}

/* -------------------------------------------------------------- conversions
 */

pln_status pln_script_as_type(pln_script_parser *p,
                              const pln_script_value *value, pln_type *out) {
  pln_status status;
  if (value->kind == PLN_V_TYPE) {
    *out = value->v.of.type;
    return PLN_OK;
  }
  if (value->kind != PLN_V_STRING)
    return pln_script_refuse(p, value, "a dtype is expected");
  if (pln_script_find_dtype(p, value->v.s, out, &status))
    return status;
  return pln_script_refuse(p, value, "no dtype is called '%.*s'",
                           (int)(value->v.s.size > 40 ? 40 : value->v.s.size),
                           value->v.s.data);
}

pln_status pln_script_as_int(pln_script_parser *p,
                             const pln_script_value *value, int64_t least,
                             int64_t most, int64_t *out) {
  bool imm = value->kind == PLN_V_EXPR &&
             p->b->graph->nodes[value->v.of.ref].kind == PLN_INT_IMM;
  if (!imm && value->kind != PLN_V_INT && value->kind != PLN_V_BOOL)
    return pln_script_refuse(p, value, "an integer is expected");
  *out = imm ? pln_node_int(p->b->graph, value->v.of.ref) : value->v.i;
  if (*out < least || *out > most)
    return pln_script_refuse(p, value,
                             "an integer from %lld to %lld is expected",
                             (long long)least, (long long)most);
  return PLN_OK;
}

pln_status pln_script_as_string(pln_script_parser *p,
                                const pln_script_value *value, pln_slice *out) {
  if (value->kind != PLN_V_STRING)
    return pln_script_refuse(p, value, "a string is expected");
  *out = value->v.s;
  return PLN_OK;
}

static bool is_group(const pln_script_value *v) {
  return v->kind == PLN_V_LIST || v->kind == PLN_V_TUPLE;
}

pln_status pln_script_push_list(pln_script_parser *p,
                                const pln_script_value *list, pln_type hint,
                                uint32_t *n) {
  pln_script_value whole = *list;
  pln_ref ref;
  *n = is_group(list) ? list->n : 1;
  for (uint32_t i = 0; i < *n; i++) {
    const pln_script_value *item =
        is_group(&whole) ? &p->kept[whole.first + i] : &whole;
    if (item->kind == PLN_V_BUFFER || item->kind == PLN_V_PRODUCER)
      ref = item->v.of.ref;
    else
      PLN_TRY(pln_script_ref(p, item, hint, &ref));
    PLN_TRY(pln_script_push_ref(p, ref));
  }
  return PLN_OK;
}

/* Pushes one operand. */
static pln_status operand(pln_script_parser *p, const pln_script_value *value,
                          pln_type hint) {
  pln_ref ref;
  PLN_TRY(pln_script_ref(p, value, hint, &ref));
  return pln_script_push_ref(p, ref);
}

/* ------------------------------------------------------------------- nodes */

static pln_status select_value(pln_script_parser *p, const pln_script_args *a,
                               pln_ref *out) {
  uint32_t first = p->n_refs;
  pln_ref x, y;
  PLN_TRY(operand(p, a->at[0], p->types[2]));
  PLN_TRY(pln_script_match(p, a->at[1], a->at[2], &x, &y));
  PLN_TRY(pln_script_push_ref(p, x));
  PLN_TRY(pln_script_push_ref(p, y));
  return pln_script_node(p, (pln_prim){.kind = PLN_SELECT}, first, out);
}

static pln_status vector(pln_script_parser *p, pln_kind kind,
                         const pln_script_args *a, pln_ref *out) {
  uint32_t first = p->n_refs;
  int64_t lanes;
  bool ramp = kind == PLN_RAMP;
  pln_ref x, y;
  if (ramp) {
    PLN_TRY(pln_script_match(p, a->at[0], a->at[1], &x, &y));
    PLN_TRY(pln_script_push_ref(p, x));
    PLN_TRY(pln_script_push_ref(p, y));
  } else {
    PLN_TRY(operand(p, a->at[0], 0));
  }
  PLN_TRY(pln_script_as_int(p, a->at[1 + ramp], 1, UINT16_MAX, &lanes));
  return pln_script_node(p, (pln_prim){.kind = kind, .data = (uint32_t)lanes},
                         first, out);
}

/* T.Let(body, where={var: value, ...}); the first variable is outermost. */
static pln_status let(pln_script_parser *p, const pln_script_args *a,
                      pln_ref *out) {
  pln_script_value where = *a->at[1];
  if (where.kind != PLN_V_DICT || where.n == 0)
    return pln_script_refuse(p, a->at[1],
                             "a dictionary of variables is expected");
  PLN_TRY(pln_script_ref(p, a->at[0], 0, out));
  for (uint32_t i = where.n; i > 0; i -= 2) {
    uint32_t first = p->n_refs;
    pln_ref var, value;
    PLN_TRY(pln_script_ref(p, &p->kept[where.first + i - 2], 0, &var));
    PLN_TRY(pln_script_ref(p, &p->kept[where.first + i - 1],
                           pln_script_type_of(p, var), &value));
    PLN_TRY(pln_script_push_ref(p, var));
    PLN_TRY(pln_script_push_ref(p, value));
    PLN_TRY(pln_script_push_ref(p, *out));
    PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_PRIM_LET}, first, out));
  }
  return PLN_OK;
}

static pln_status shuffle(pln_script_parser *p, const pln_script_args *a,
                          pln_ref *out) {
  uint32_t first = p->n_refs, vectors, indices;
  PLN_TRY(pln_script_push_list(p, a->at[0], 0, &vectors));
  PLN_TRY(pln_script_push_list(p, a->at[1], 0, &indices));
  return pln_script_node(p, (pln_prim){.kind = PLN_SHUFFLE, .data = vectors},
                         first, out);
}

/* T.reduce(combiner, source, axis, value_index, init, condition). */
static pln_status reduce(pln_script_parser *p, const pln_script_args *a,
                         pln_ref *out) {
  uint32_t first = p->n_refs, sources, starts = 0, axes;
  int64_t index = 0;
  pln_ref condition;
  PLN_TRY(operand(p, a->at[0], 0));
  if (a->at[5])
    PLN_TRY(pln_script_ref(p, a->at[5], p->types[2], &condition));
  else
    PLN_TRY(pln_build_int_imm(p->b, p->types[2], 1, &condition));
  PLN_TRY(pln_script_push_ref(p, condition));
  PLN_TRY(pln_script_push_list(p, a->at[1], 0, &sources));
  if (a->at[4])
    PLN_TRY(pln_script_push_list(p, a->at[4], 0, &starts));
  if (starts != 0 && starts != sources)
    return pln_script_refuse(p, a->at[4], "%u values are expected, or none",
                             (unsigned)sources);
  PLN_TRY(pln_script_push_list(p, a->at[2], 0, &axes));
  if (a->at[3])
    PLN_TRY(pln_script_as_int(p, a->at[3], 0, UINT16_MAX, &index));
  return pln_script_node(p,
                         (pln_prim){.kind = PLN_REDUCE,
                                    .data = (uint32_t)index,
                                    .count = (uint16_t)starts},
                         first, out);
}

static pln_status range(pln_script_parser *p, const pln_script_args *a,
                        pln_ref *out) {
  pln_script_value zero = {.kind = PLN_V_INT, .at = a->at[0]->at};
  const pln_script_value *min = a->at[1] ? a->at[0] : &zero;
  pln_ref x, y;
  PLN_TRY(pln_script_match(p, min, a->at[1] ? a->at[1] : a->at[0], &x, &y));
  PLN_TRY(pln_script_push_ref(p, x));
  PLN_TRY(pln_script_push_ref(p, y));
  return pln_script_node(p, (pln_prim){.kind = PLN_RANGE}, p->n_refs - 2, out);
}

static const char *const iter_types[] = {
    "DataPar",  "ThreadIndex", "CommReduce",   "Ordered",   "Opaque",
    "Unrolled", "Vectorized",  "Parallelized", "Tensorized"};

static pln_status iter_var(pln_script_parser *p, const pln_script_args *a,
                           pln_ref *out) {
  uint32_t first = p->n_refs;
  pln_slice type = {NULL, 0}, tag = {NULL, 0};
  pln_prim spec = {.kind = PLN_ITER_VAR, .data = PLN_COUNT(iter_types)};
  PLN_TRY(operand(p, a->at[0], 0));
  if (a->at[1]->kind != PLN_V_NONE)
    PLN_TRY(operand(p, a->at[1], 0));
  PLN_TRY(pln_script_as_string(p, a->at[2], &type));
  for (uint32_t i = 0; i < PLN_COUNT(iter_types); i++)
    if (pln_slice_is(type, iter_types[i]))
      spec.data = i;
  if (spec.data == PLN_COUNT(iter_types)) {
    pln_slice shown = {a->at[2]->at + 1, a->at[2]->size - 2};
    return pln_script_unknown(p, shown, "type of an iteration variable",
                              PLN_COUNT(iter_types), iter_types);
  }
  if (a->at[3])
    PLN_TRY(pln_script_as_string(p, a->at[3], &tag));
  if (tag.size > 0)
    PLN_TRY(pln_script_with_string(p, "thread_tag", tag, &spec.attrs));
  return pln_script_node(p, spec, first, out);
}

pln_status pln_script_thread(pln_script_parser *p, pln_ref var, pln_symbol tag,
                             pln_ref *out) {
  pln_prim spec = {.kind = PLN_ITER_VAR, .data = 1};
  PLN_TRY(pln_script_with_string(p, "thread_tag",
                                 pln_symbol_text(p->engine, tag), &spec.attrs));
  PLN_TRY(pln_script_push_ref(p, var));
  return pln_script_node(p, spec, p->n_refs - 1, out);
}

static pln_status cast(pln_script_parser *p, const pln_script_args *a,
                       pln_ref *out) {
  pln_prim spec = {.kind = PLN_PRIM_CAST};
  PLN_TRY(pln_script_as_type(p, a->at[0], &spec.type));
  PLN_TRY(operand(p, a->at[1], 0));
  return pln_script_node(p, spec, p->n_refs - 1, out);
}

/* ------------------------------------------------------------- arithmetic */

/* What T.Add and others make: the node as it is, or folded. */
static const struct {
  uint8_t kind;
  bool folds;
} arithmetic[PLN_N_METHODS] = {
    [PLN_METHOD_ADD] = {PLN_PRIM_ADD, false},
    [PLN_METHOD_SUB] = {PLN_PRIM_SUB, false},
    [PLN_METHOD_MUL] = {PLN_PRIM_MUL, false},
    [PLN_METHOD_DIV] = {PLN_PRIM_DIV, false},
    [PLN_METHOD_MOD] = {PLN_PRIM_MOD, false},
    [PLN_METHOD_TRUNCMOD] = {PLN_PRIM_MOD, true},
    [PLN_METHOD_TRUNCDIV] = {PLN_PRIM_DIV, true},
    [PLN_METHOD_FLOORDIV] = {PLN_PRIM_FLOORDIV, false},
    [PLN_METHOD_FLOORMOD] = {PLN_PRIM_FLOORMOD, false},
    [PLN_METHOD_FLOORDIV_OF] = {PLN_PRIM_FLOORDIV, true},
    [PLN_METHOD_FLOORMOD_OF] = {PLN_PRIM_FLOORMOD, true},
    [PLN_METHOD_MIN] = {PLN_PRIM_MIN, true},
    [PLN_METHOD_MAX] = {PLN_PRIM_MAX, true},
    [PLN_METHOD_MIN_NODE] = {PLN_PRIM_MIN, false},
    [PLN_METHOD_MAX_NODE] = {PLN_PRIM_MAX, false},
    [PLN_METHOD_EQ] = {PLN_PRIM_EQ, false},
    [PLN_METHOD_NE] = {PLN_PRIM_NE, false},
    [PLN_METHOD_LT] = {PLN_PRIM_LT, false},
    [PLN_METHOD_LE] = {PLN_PRIM_LE, false},
    [PLN_METHOD_GT] = {PLN_PRIM_GT, false},
    [PLN_METHOD_GE] = {PLN_PRIM_GE, false},
    [PLN_METHOD_AND] = {PLN_PRIM_AND, false},
    [PLN_METHOD_OR] = {PLN_PRIM_OR, false},
};

static pln_status arithmetic_call(pln_script_parser *p, uint32_t method,
                                  const pln_script_args *a, pln_ref *out) {
  pln_kind kind = (pln_kind)arithmetic[method].kind;
  pln_ref x, y;
  const char *place = p->place;
  uint32_t size = p->place_size;
  PLN_TRY(pln_script_match(p, a->at[0], a->at[1], &x, &y));
  p->place = place;
  p->place_size = size;
  return arithmetic[method].folds ? pln_build_folded(p->b, kind, x, y, out)
                                  : pln_build_binary(p->b, kind, x, y, out);
}

static pln_status negation(pln_script_parser *p, const pln_script_args *a,
                           pln_ref *out) {
  PLN_TRY(operand(p, a->at[0], p->types[2]));
  return pln_script_node(p, (pln_prim){.kind = PLN_PRIM_NOT}, p->n_refs - 1,
                         out);
}

/* The least or largest number of a dtype, or infinity. */
static pln_status limit(pln_script_parser *p, uint32_t method,
                        const pln_script_args *a, pln_ref *out) {
  pln_type type;
  PLN_TRY(pln_script_as_type(p, a->at[0], &type));
  pln_dtype dtype = pln_type_get_kind(p->engine, type) == PLN_TYPE_PRIM
                        ? pln_type_dtype(p->engine, type)
                        : PLN_DTYPE_NONE;
  bool least = method == PLN_METHOD_MIN_VALUE;
  if (pln_dtype_is_float(dtype)) {
    double most = method == PLN_METHOD_INFINITY ? (double)INFINITY
                                                : pln_float_greatest(dtype);
    return pln_build_float_imm(p->b, type, least ? -most : most, out);
  }
  if (dtype == PLN_DTYPE_NONE || dtype == PLN_UINT64 ||
      method == PLN_METHOD_INFINITY)
    return pln_script_refuse(p, a->at[0], "this dtype has no such number");
  bool sign = pln_is_signed(dtype);
  uint64_t most = UINT64_MAX >> (64 - pln_dtype_bits(dtype) + sign);
  int64_t value = least ? (sign ? -(int64_t)most - 1 : 0) : (int64_t)most;
  return pln_build_int_imm(p->b, type, value, out);
}

/* (a + b - 1) // b */
static pln_status ceildiv(pln_script_parser *p, const pln_script_args *a,
                          pln_ref *out) {
  pln_script_value x = {.at = p->place, .size = p->place_size}, y = x;
  pln_script_value one = {.kind = PLN_V_INT, .v.i = 1, .at = x.at};
  PLN_TRY(pln_script_match(p, a->at[0], a->at[1], &x.v.of.ref, &y.v.of.ref));
  x.kind = y.kind = PLN_V_EXPR;
  pln_script_value z = x;
  PLN_TRY(pln_script_binary(p, PLN_PRIM_ADD, &z, &y, &x));
  z = x;
  PLN_TRY(pln_script_binary(p, PLN_PRIM_SUB, &z, &one, &x));
  z = x;
  PLN_TRY(pln_script_binary(p, PLN_PRIM_FLOORDIV, &z, &y, &x));
  *out = x.v.of.ref;
  return PLN_OK;
}

/* Of integers T.Select(x >= 0, x, -x), of floats T.fabs(x). */
static pln_status absolute(pln_script_parser *p, const pln_script_args *a,
                           pln_ref *out) {
  uint32_t first = p->n_refs;
  pln_script_value x = *a->at[0], zero = {.kind = PLN_V_INT, .at = x.at};
  pln_script_value minus = {.kind = PLN_V_INT, .v.i = -1, .at = x.at};
  pln_script_value condition = {0}, negative = {0};
  PLN_TRY(pln_script_ref(p, a->at[0], 0, out));
  pln_script_set_ref(&x, *out);
  pln_type type = pln_script_type_of(p, *out);
  if (pln_dtype_is_float(pln_type_dtype(p->engine, type))) {
    PLN_TRY(pln_script_push_ref(p, *out));
    return pln_script_node(
        p,
        (pln_prim){.kind = PLN_PRIM_CALL,
                   .data = pln_builtin_find(pln_text("fabs")),
                   .type = type},
        first, out);
  }
  PLN_TRY(pln_script_binary(p, PLN_PRIM_GE, &x, &zero, &condition));
  PLN_TRY(pln_script_binary(p, PLN_PRIM_MUL, &x, &minus, &negative));
  PLN_TRY(pln_script_push_ref(p, condition.v.of.ref));
  PLN_TRY(pln_script_push_ref(p, x.v.of.ref));
  PLN_TRY(pln_script_push_ref(p, negative.v.of.ref));
  return pln_script_node(p, (pln_prim){.kind = PLN_SELECT}, first, out);
}

static pln_status cast_of(pln_script_parser *p, const pln_script_args *a,
                          pln_ref *out) {
  pln_type type;
  PLN_TRY(pln_script_as_type(p, a->at[1], &type));
  PLN_TRY(pln_script_ref(p, a->at[0], 0, out));
  return pln_script_cast(p, type, *out, out);
}

static pln_status node_of(pln_script_parser *p, uint32_t method,
                          const pln_script_args *a, pln_ref *out) {
  if (arithmetic[method].kind)
    return arithmetic_call(p, method, a, out);
  switch (method) {
  case PLN_METHOD_CAST: return cast(p, a, out);
  case PLN_METHOD_CAST_OF: return cast_of(p, a, out);
  case PLN_METHOD_MIN_VALUE:
  case PLN_METHOD_MAX_VALUE:
  case PLN_METHOD_INFINITY: return limit(p, method, a, out);
  case PLN_METHOD_CEILDIV: return ceildiv(p, a, out);
  case PLN_METHOD_ABS: return absolute(p, a, out);
  case PLN_METHOD_SELECT: return select_value(p, a, out);
  case PLN_METHOD_RAMP: return vector(p, PLN_RAMP, a, out);
  case PLN_METHOD_BROADCAST: return vector(p, PLN_BROADCAST, a, out);
  case PLN_METHOD_LET: return let(p, a, out);
  case PLN_METHOD_SHUFFLE: return shuffle(p, a, out);
  case PLN_METHOD_REDUCER:
    return pln_script_reducer(p, a->at[0], a->at[1], out);
  case PLN_METHOD_REDUCE: return reduce(p, a, out);
  case PLN_METHOD_RANGE: return range(p, a, out);
  case PLN_METHOD_ITER_VAR: return iter_var(p, a, out);
  case PLN_METHOD_INDEX_MAP: return pln_script_index_map(p, a->at[0], out);
  case PLN_METHOD_NOT: return negation(p, a, out);
  default:
    return pln_script_node(p, (pln_prim){.kind = PLN_ANY, .type = p->types[0]},
                           p->n_refs, out);
  }
}

/* ----------------------------------------------------------------- builtins */

/* Takes dtype="..." out of the arguments; it may be given to any builtin. */
static pln_status take_dtype(pln_script_parser *p, pln_script_value *args,
                             pln_type *out) {
  pln_script_value *items = p->kept + args->first;
  uint32_t at = 0;
  *out = 0;
  while (at < args->n &&
         !(items[at].key.data && pln_slice_is(items[at].key, "dtype")))
    at++;
  if (at == args->n)
    return PLN_OK;
  PLN_TRY(pln_script_as_type(p, &items[at], out));
  args->n--;
  memmove(items + at, items + at + 1, (args->n - at) * sizeof *items);
  return PLN_OK;
}

static pln_status result_type(pln_script_parser *p, const pln_builtin_info *row,
                              uint32_t first, pln_type *out) {
  uint32_t n = p->n_refs - first, at = row->result == PLN_RESULT_SECOND;
  pln_type type = n > at ? pln_script_type_of(p, p->refs[first + at]) : 0;
  switch (row->result) {
  case PLN_RESULT_BOOL:
    return pln_type_prim(p->engine, PLN_BOOL,
                         type && pln_type_get_kind(p->engine, type) ==
                                     PLN_TYPE_PRIM
                             ? pln_type_number(p->engine, type)
                             : 1,
                         out);
  case PLN_RESULT_INT32: *out = p->types[0]; return PLN_OK;
  case PLN_RESULT_UINT32: return pln_type_prim(p->engine, PLN_UINT32, 1, out);
  case PLN_RESULT_VOID:
    return pln_type_make(p->engine, PLN_TYPE_TUPLE, 0, 0, NULL, out);
  case PLN_RESULT_HANDLE: *out = p->types[3]; return PLN_OK;
  default: *out = type ? type : p->types[3]; return PLN_OK;
  }
}

static pln_status push_arguments(pln_script_parser *p,
                                 const pln_script_value *items) {
  pln_script_value whole = *items;
  for (uint32_t i = 0; i < whole.n; i++) {
    const pln_script_value *item = &p->kept[whole.first + i];
    if (item->key.data)
      return pln_script_refuse(p, item, "this function has no parameter '%.*s'",
                               (int)(item->key.size > 40 ? 40 : item->key.size),
                               item->key.data);
    PLN_TRY(operand(p, item, 0));
  }
  return PLN_OK;
}

static pln_status if_then_else(pln_script_parser *p,
                               const pln_script_value *items) {
  pln_script_value whole = *items;
  pln_ref x, y;
  PLN_TRY(operand(p, &p->kept[whole.first], p->types[2]));
  PLN_TRY(pln_script_match(p, &p->kept[whole.first + 1],
                           &p->kept[whole.first + 2], &x, &y));
  PLN_TRY(pln_script_push_ref(p, x));
  return pln_script_push_ref(p, y);
}

pln_status pln_script_builtin(pln_script_parser *p, uint32_t builtin,
                              const pln_script_value *items,
                              pln_script_value *out) {
  const pln_builtin_info *row = pln_builtin_row(builtin);
  uint32_t first = p->n_refs;
  const char *place = p->place;
  uint32_t size = p->place_size;
  pln_script_value args = *items;
  pln_prim spec = {.kind = PLN_PRIM_CALL, .data = builtin};
  pln_ref ref;
  bool typed = row->place != PLN_DTYPE_NOWHERE;
  PLN_TRY(take_dtype(p, &args, &spec.type));
  bool given = typed && spec.type;
  if (typed && !given && args.n == 0)
    return pln_script_refuse(p, items, "T.%s: its dtype is missing",
                             row->script);
  if (typed && !given) {
    uint32_t at = row->place == PLN_DTYPE_LAST ? args.n - 1 : 0;
    PLN_TRY(pln_script_as_type(p, &p->kept[args.first + at], &spec.type));
    args.first += row->place == PLN_DTYPE_FIRST;
    args.n--;
  }
  if (row->args >= 0 && args.n != (uint32_t)row->args)
    return pln_script_refuse(p, items, "T.%s takes %d arguments, not %u",
                             row->script, (int)row->args, (unsigned)args.n);
  PLN_TRY(pln_slice_is(pln_text(row->name), "if_then_else")
              ? if_then_else(p, &args)
              : push_arguments(p, &args));
  if (!typed)
    PLN_TRY(result_type(p, row, first, &spec.type));
  p->place = place;
  p->place_size = size;
  PLN_TRY(pln_script_node(p, spec, first, &ref));
  pln_script_set_ref(out, ref);
  return PLN_OK;
}

static pln_status call_function(pln_script_parser *p,
                                const pln_script_value *callee,
                                const pln_script_value *items,
                                pln_script_value *out) {
  uint32_t first = p->n_refs;
  pln_prim spec = {.kind = PLN_PRIM_CALL, .type = callee->v.of.type};
  pln_ref ref;
  if (!spec.type)
    PLN_TRY(pln_type_make(p->engine, PLN_TYPE_TUPLE, 0, 0, NULL, &spec.type));
  PLN_TRY(pln_build_global_var(p->b, callee->v.of.tag, 0, &ref));
  PLN_TRY(pln_script_push_ref(p, ref));
  PLN_TRY(push_arguments(p, items));
  PLN_TRY(pln_script_node(p, spec, first, &ref));
  pln_script_set_ref(out, ref);
  return PLN_OK;
}

pln_status pln_script_choose(pln_script_parser *p,
                             const pln_script_value *condition,
                             const pln_script_value *x,
                             const pln_script_value *y, pln_script_value *out) {
  pln_script_value items = {.first = p->n_kept, .n = 3, .at = p->place};
  items.size = p->place_size;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->kept, &p->cap_kept,
                       (size_t)p->n_kept + 3, sizeof *p->kept));
  p->kept[p->n_kept++] = *condition;
  p->kept[p->n_kept++] = *x;
  p->kept[p->n_kept++] = *y;
  return pln_script_builtin(p, pln_builtin_find(pln_text("if_then_else")),
                            &items, out);
}

/* ------------------------------------------------------------------- types */

/* T.handle("float32", "global") */
static pln_status pointer(pln_script_parser *p, const pln_script_value *items,
                          pln_script_value *out) {
  pln_type element;
  pln_slice scope = {"", 0};
  pln_symbol symbol;
  const pln_script_value *item = &p->kept[items->first];
  if (items->n > 2)
    return pln_script_refuse(p, items, "T.handle takes at most 2 arguments");
  PLN_TRY(pln_script_as_type(p, item, &element));
  if (items->n > 1)
    PLN_TRY(pln_script_as_string(p, &item[1], &scope));
  PLN_TRY(pln_symbol_intern(p->engine, scope, &symbol));
  return pln_type_make(p->engine, PLN_TYPE_POINTER, symbol, 1, &element,
                       &out->v.of.type);
}

/* The number in T.float32("inf"). */
static bool special_number(pln_slice text, double *out) {
  static const struct {
    const char *name;
    double value;
  } numbers[] = {{"inf", (double)INFINITY},
                 {"-inf", -(double)INFINITY},
                 {"nan", (double)NAN}};
  for (size_t i = 0; i < PLN_COUNT(numbers); i++)
    if (pln_slice_is(text, numbers[i].name)) {
      *out = numbers[i].value;
      return true;
    }
  return false;
}

/* T.int32(1), T.float32("inf"), T.int64(x), T.float32x4(0) */
static pln_status convert(pln_script_parser *p, const pln_script_value *callee,
                          const pln_script_value *item, pln_script_value *out) {
  pln_type type = callee->v.of.type, scalar = type;
  pln_script_value value = *item;
  pln_ref ref;
  double f;
  if (item->kind == PLN_V_STRING && special_number(item->v.s, &f)) {
    value.kind = PLN_V_FLOAT;
    value.v.f = f;
  } else if (item->kind == PLN_V_BOOL) {
    value.kind = PLN_V_INT;
  } else if (item->kind == PLN_V_STRING) {
    return pln_script_refuse(p, item, "this string is no number");
  }
  if (pln_type_get_kind(p->engine, type) != PLN_TYPE_PRIM)
    return pln_script_refuse(p, callee, "this type has no values");
  PLN_TRY(
      pln_type_prim(p->engine, pln_type_dtype(p->engine, type), 1, &scalar));
  PLN_TRY(pln_script_ref(p, &value, scalar, &ref));
  PLN_TRY(pln_script_cast(p, type, ref, &ref));
  pln_script_set_ref(out, ref);
  return PLN_OK;
}

static pln_status call_type(pln_script_parser *p,
                            const pln_script_value *callee,
                            const pln_script_value *items,
                            pln_script_value *out) {
  const pln_script_value *item = &p->kept[items->first];
  bool handle = callee->v.of.type == p->types[3];
  *out = *callee;
  out->called = true;
  if (items->n == 0)
    return PLN_OK;
  if (item->key.data && pln_slice_is(item->key, "is_size_var") &&
      item->kind == PLN_V_BOOL && items->n == 1) {
    out->is_size = item->v.i != 0;
    return PLN_OK;
  }
  if (handle && item->kind != PLN_V_EXPR)
    return pointer(p, items, out);
  if (items->n != 1 || item->key.data)
    return pln_script_refuse(p, items, "one number is expected");
  return convert(p, callee, item, out);
}

pln_status pln_script_call(pln_script_parser *p, const pln_script_value *callee,
                           const pln_script_value *items,
                           pln_script_value *out) {
  pln_script_args args;
  pln_ref ref;
  switch ((pln_script_value_kind)callee->kind) {
  case PLN_V_ERROR: return PLN_ERR_FORMAT;
  case PLN_V_TYPE: return call_type(p, callee, items, out);
  case PLN_V_BUILTIN:
    return pln_script_builtin(p, callee->v.of.number, items, out);
  case PLN_V_FUNCTION: return call_function(p, callee, items, out);
  case PLN_V_VLOAD:
  case PLN_V_VSTORE: return pln_script_vector_access(p, callee, items, out);
  case PLN_V_METHOD: break;
  default: return pln_script_refuse(p, callee, "this value cannot be called");
  }
  *out = *callee;
  out->kind = PLN_V_CALL;
  out->first = items->first;
  out->n = items->n;
  if (methods[callee->v.of.number].is_stmt)
    return PLN_OK;
  PLN_TRY(pln_script_bind_args(p, out, &args));
  if (callee->v.of.number == PLN_METHOD_META_VAR) {
    pln_script_value value = *args.at[0];
    value.at = out->at;
    value.size = out->size;
    value.meta = true;
    *out = value;
    return PLN_OK;
  }
  if (callee->v.of.number == PLN_METHOD_TARGET) {
    const char *at = out->at;
    uint32_t size = out->size;
    *out = *args.at[0];
    out->at = at;
    out->size = size;
    out->target = true;
    return out->kind == PLN_V_DICT || out->kind == PLN_V_STRING
               ? PLN_OK
               : pln_script_refuse(p, args.at[0],
                                   "T.target takes a text or a dictionary");
  }
  PLN_TRY(node_of(p, callee->v.of.number, &args, &ref));
  pln_script_set_ref(out, ref);
  return PLN_OK;
}
