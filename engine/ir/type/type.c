/* type/type.c: the engine's table of types.
 *
 * A type is an interned record, so equal types have equal ids, and a type costs
 * a node four bytes. The parts of a type are older than the type. Nothing
 * recurses, however deep types nest. */

#include "ir/type/type.h"
#include "ir/intern_tables.h"
#include "ir/merge_ids.h"

/* MAX_RANK: only malformed files exceed it. */
enum { MAX_RANK = 1024, NEAR_DIMS = 16 };

/* Followed by `count` dims (tensor of known rank) or pln_type parts; then, for
 * a FUNC, its type variables and constraints, for a RELATION its attributes. */
typedef struct type_row {
  uint8_t kind;
  uint8_t dtype;   /* VAR: its pln_type_var_kind */
  uint16_t n_vars; /* FUNC */
  int32_t count;   /* rank of a tensor, -1 unknown; else number of parts */
  pln_symbol symbol;
  /* VAR, HOLE: identity; FUNC: number of constraints; RELATION: number of
   * inputs; PRIM, and TENSOR when there are several: lanes */
  uint32_t number;
  uint32_t flags; /* PLN_TYPE_HAS_*, of the type and its parts */
  uint32_t hash;  /* equal for all types that are equal up to names */
} type_row;
_Static_assert(sizeof(type_row) % sizeof(pln_dim) == 0, "dims are aligned");

typedef struct tensor_row {
  type_row row;
  pln_dim dims[NEAR_DIMS];
} tensor_row;

struct pln_types {
  pln_interner *rows;
  /* Per number: the hole used by unifiers, or 0. */
  pln_type *own_holes;
  uint32_t cap_own_holes;
};

static const type_row incomplete = {.kind = PLN_TYPE_INCOMPLETE,
                                    .flags = PLN_TYPE_HAS_HOLE};

/* Holes of unifiers are numbered from here, holes of users below. */
#define OWN_HOLES 0x80000000u

static const type_row *type_row_of(const pln_engine *engine, pln_type type) {
  return type ? pln_interned(engine->types->rows, type, NULL) : &incomplete;
}

static const pln_type *parts_of(const type_row *row) {
  return (const pln_type *)(row + 1);
}

pln_status pln_types_new(pln_engine *engine) {
  struct pln_types *types = pln_mem_zeroed(engine, sizeof *types);
  if (!types)
    return pln_nomem(engine);
  pln_status status = pln_interner_new(engine, &types->rows);
  if (status != PLN_OK) {
    pln_mem_free(engine, types, sizeof *types);
    return status;
  }
  engine->types = types;
  return PLN_OK;
}

pln_status pln_types_child(pln_engine *child) {
  child->types = pln_mem_zeroed(child, sizeof *child->types);
  if (!child->types)
    return pln_nomem(child);
  return pln_interner_child(child, child->parent->types->rows,
                            &child->types->rows);
}

void pln_types_free(pln_engine *engine) {
  if (!engine->types)
    return;
  pln_interner_free(engine->types->rows);
  pln_mem_free(engine, engine->types->own_holes,
               engine->types->cap_own_holes * sizeof(pln_type));
  pln_mem_free(engine, engine->types, sizeof *engine->types);
  engine->types = NULL;
}

/* ------------------------------------------------------------------ making */

/* The flags that a kind has by itself, regardless of its parts. */
static uint32_t own_flags(uint8_t kind) {
  switch ((pln_type_kind)kind) {
  case PLN_TYPE_INCOMPLETE:
  case PLN_TYPE_HOLE: return PLN_TYPE_HAS_HOLE;
  case PLN_TYPE_VAR: return PLN_TYPE_HAS_VAR | PLN_TYPE_HAS_NAME;
  case PLN_TYPE_CALL:
  case PLN_TYPE_GLOBAL_VAR:
  case PLN_TYPE_RELATION: return PLN_TYPE_HAS_NAME;
  case PLN_TYPE_TENSOR:
  case PLN_TYPE_TUPLE:
  case PLN_TYPE_FUNC:
  case PLN_TYPE_REF:
  case PLN_TYPE_SEQUENCE:
  case PLN_TYPE_OPTIONAL:
  case PLN_TYPE_MAP:
  case PLN_TYPE_SPARSE:
  case PLN_TYPE_OPAQUE:
  case PLN_TYPE_PRIM:
  case PLN_TYPE_POINTER:
  case PLN_N_TYPE_KINDS: break;
  }
  return 0;
}

/* A hash of the structure of a dim: constants and symbol names. */
static uint64_t hash_dim(const pln_engine *engine, pln_dim dim) {
  if (PLN_DIM_IS_CONST(dim))
    return (uint64_t)dim;
  pln_symbol name = pln_dim_name(engine, dim);
  pln_slice text = pln_symbol_text(engine, name);
  return name ? pln_hash_bytes(text.data, text.size, 1) : UINT64_MAX;
}

static uint64_t hash_tail(const pln_engine *engine, const type_row *row,
                          const void *tail, size_t size) {
  const pln_dim *dims = tail;
  const pln_type *parts = tail;
  uint64_t h = size;
  if (row->kind == PLN_TYPE_TENSOR) {
    for (size_t i = 0; i < size / sizeof *dims; i++)
      h = pln_hash_mix(h, hash_dim(engine, dims[i]));
    return h;
  }
  for (size_t i = 0; i < size / sizeof *parts; i++)
    h = row->kind == PLN_TYPE_RELATION && i == (size_t)row->count
            ? pln_hash_mix(h, pln_attrs_hash(engine, parts[i]))
            : pln_hash_mix(h, type_row_of(engine, parts[i])->hash);
  return h;
}

/* Depends neither on ids nor on names and numbers of type variables and
 * holes. */
static uint32_t hash_row(const pln_engine *engine, const type_row *row,
                         const void *tail, size_t size) {
  bool named = row->symbol && row->kind != PLN_TYPE_VAR;
  bool counted = row->kind != PLN_TYPE_VAR && row->kind != PLN_TYPE_HOLE;
  uint64_t h = (uint64_t)row->n_vars << 16 | row->dtype << 8 | row->kind;
  h = pln_hash_mix(h, (uint32_t)row->count);
  h = pln_hash_mix(h, counted ? row->number : 0);
  pln_slice text = pln_symbol_text(engine, row->symbol);
  h = named ? pln_hash_bytes(text.data, text.size, h) : h;
  h = size > 0 ? pln_hash_mix(h, hash_tail(engine, row, tail, size)) : h;
  return (uint32_t)h;
}

uint64_t pln_type_hash(const pln_engine *engine, pln_type type) {
  return type_row_of(engine, type)->hash;
}

/* Interns a header and the data that follows it. */
static pln_status intern_row(pln_engine *engine, type_row row, const void *tail,
                             size_t size, pln_type *out) {
  row.hash = hash_row(engine, &row, tail, size);
  char near[sizeof(tensor_row)];
  size_t total = sizeof row + size;
  char *bytes = total <= sizeof near ? near : pln_mem_new(engine, total);
  if (!bytes)
    return pln_nomem(engine);
  memcpy(bytes, &row, sizeof row);
  if (size > 0)
    memcpy(bytes + sizeof row, tail, size);
  pln_status status = pln_intern(engine->types->rows, bytes, total, out, NULL);
  if (bytes != near)
    pln_mem_free(engine, bytes, total);
  return status;
}

/* A negative extent carries no more information than `?`. */
static pln_dim extent(pln_dim dim) {
  return PLN_DIM_IS_CONST(dim) && dim < 0 ? PLN_DIM_UNKNOWN : dim;
}

static uint32_t tensor_flags(const type_row *row, const pln_dim *dims) {
  if (!row->dtype || row->count < 0)
    return PLN_TYPE_HAS_OPEN_TENSOR;
  for (int32_t i = 0; i < row->count; i++)
    if (dims[i] == PLN_DIM_UNKNOWN)
      return PLN_TYPE_HAS_OPEN_TENSOR;
  return 0;
}

/* The rare tensor with more dims than fit in a tensor_row. */
static pln_status intern_wide(pln_engine *engine, type_row row,
                              const pln_dim *dims, pln_type *out) {
  pln_dim copy[MAX_RANK];
  for (int32_t i = 0; i < row.count; i++)
    copy[i] = extent(dims[i]);
  row.flags = tensor_flags(&row, copy);
  return intern_row(engine, row, copy, (size_t)row.count * sizeof *dims, out);
}

pln_status pln_type_tensor(pln_engine *engine, pln_dtype dtype, int32_t rank,
                           const pln_dim *dims, pln_type *out) {
  if ((uint32_t)dtype >= PLN_N_DTYPES || rank < -1)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "no tensor type has dtype %d and rank %d", (int)dtype,
                          (int)rank);
  if (rank > MAX_RANK)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "a tensor of rank %d; at most %d dimensions are kept",
                          (int)rank, MAX_RANK);
  type_row row = {
      .kind = PLN_TYPE_TENSOR, .dtype = (uint8_t)dtype, .count = rank};
  if (rank > NEAR_DIMS)
    return intern_wide(engine, row, dims, out);
  tensor_row near;
  near.row = row;
  size_t n = rank > 0 ? (size_t)rank : 0;
  for (size_t i = 0; i < n; i++)
    near.dims[i] = extent(dims[i]);
  near.row.flags = tensor_flags(&row, near.dims);
  near.row.hash = hash_row(engine, &row, near.dims, n * sizeof *dims);
  return pln_intern(engine->types->rows, &near,
                    sizeof near.row + n * sizeof *dims, out, NULL);
}

static pln_status add_flags(pln_engine *engine, uint32_t n,
                            const pln_type *parts, uint32_t *flags) {
  uint32_t known = pln_interner_count(engine->types->rows);
  for (uint32_t i = 0; i < n; i++) {
    if (parts[i] > known)
      return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                            "part %u of a type is not a type", (unsigned)i + 1);
    *flags |= type_row_of(engine, parts[i])->flags;
  }
  return PLN_OK;
}

/* Interns a header and its parts, given as two arrays. The attributes of a
 * RELATION, in the second one, are not a type. */
static pln_status intern_parts(pln_engine *engine, type_row row, uint32_t n,
                               const pln_type *first, uint32_t m,
                               const pln_type *rest, pln_type *out) {
  row.flags = own_flags(row.kind);
  PLN_TRY(add_flags(engine, n, first, &row.flags));
  if (row.kind != PLN_TYPE_RELATION)
    PLN_TRY(add_flags(engine, m, rest, &row.flags));
  pln_type few[16], *all = few;
  size_t size = ((size_t)n + m) * sizeof *all;
  if (size > sizeof few && !(all = pln_mem_new(engine, size)))
    return pln_nomem(engine);
  if (n > 0)
    memcpy(all, first, n * sizeof *all);
  if (m > 0)
    memcpy(all + n, rest, m * sizeof *all);
  pln_status status = intern_row(engine, row, all, size, out);
  if (all != few)
    pln_mem_free(engine, all, size);
  return status;
}

/* Minimum and maximum number of parts per kind (-1: any). */
static const struct {
  int8_t least, most;
  bool symbol;
} shape_of[PLN_N_TYPE_KINDS] = {
    [PLN_TYPE_TUPLE] = {0, -1, false},    [PLN_TYPE_FUNC] = {1, -1, false},
    [PLN_TYPE_REF] = {1, 1, false},       [PLN_TYPE_VAR] = {0, 0, true},
    [PLN_TYPE_CALL] = {0, -1, true},      [PLN_TYPE_SEQUENCE] = {1, 1, false},
    [PLN_TYPE_OPTIONAL] = {1, 1, false},  [PLN_TYPE_MAP] = {2, 2, false},
    [PLN_TYPE_SPARSE] = {1, 1, false},    [PLN_TYPE_OPAQUE] = {0, 0, true},
    [PLN_TYPE_GLOBAL_VAR] = {0, 0, true}, [PLN_TYPE_RELATION] = {0, -1, true},
    [PLN_TYPE_HOLE] = {1, 0, false},      [PLN_TYPE_PRIM] = {1, 0, false},
    [PLN_TYPE_POINTER] = {1, 1, true},
};

static bool parts_have_kinds(pln_engine *engine, pln_type_kind kind,
                             pln_symbol symbol, uint32_t n,
                             const pln_type *parts) {
  if (kind == PLN_TYPE_TENSOR || (uint32_t)kind >= PLN_N_TYPE_KINDS)
    return false;
  if (n > INT32_MAX || (int64_t)n < shape_of[kind].least ||
      (shape_of[kind].most >= 0 && (int64_t)n > shape_of[kind].most) ||
      (symbol != 0) != shape_of[kind].symbol)
    return false;
  uint32_t known = pln_interner_count(engine->types->rows);
  for (uint32_t i = 0; i < n; i++)
    if (parts[i] > known)
      return false;
  return true;
}

pln_status pln_type_make(pln_engine *engine, pln_type_kind kind,
                         pln_symbol symbol, uint32_t n_parts,
                         const pln_type *parts, pln_type *out) {
  if (kind == PLN_TYPE_INCOMPLETE && n_parts == 0) {
    *out = 0;
    return PLN_OK;
  }
  if (!parts_have_kinds(engine, kind, symbol, n_parts, parts))
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "a type of kind %d cannot have these %u parts",
                          (int)kind, (unsigned)n_parts);
  type_row row = {
      .kind = (uint8_t)kind, .count = (int32_t)n_parts, .symbol = symbol};
  if (kind != PLN_TYPE_RELATION)
    return intern_parts(engine, row, n_parts, parts, 0, NULL, out);
  return pln_type_relation(engine, symbol, n_parts, parts, n_parts, 0, out);
}

pln_status pln_type_func(pln_engine *engine, uint32_t n_params,
                         const pln_type *params, pln_type ret, uint32_t n_vars,
                         const pln_type *vars, uint32_t n_constraints,
                         const pln_type *constraints, pln_type *out) {
  if (n_vars > UINT16_MAX || n_params >= INT32_MAX)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "a function type has at most 65,535 type parameters, "
                          "not %u",
                          (unsigned)n_vars);
  type_row row = {.kind = PLN_TYPE_FUNC,
                  .n_vars = (uint16_t)n_vars,
                  .count = (int32_t)n_params + 1,
                  .number = n_constraints};
  size_t n = (size_t)1 + n_vars + n_constraints;
  pln_type few[16], *rest = few;
  if (n > 16 && !(rest = pln_mem_new(engine, n * sizeof *rest)))
    return pln_nomem(engine);
  rest[0] = ret;
  if (n_vars > 0)
    memcpy(rest + 1, vars, n_vars * sizeof *rest);
  if (n_constraints > 0)
    memcpy(rest + 1 + n_vars, constraints, n_constraints * sizeof *rest);
  pln_status status =
      intern_parts(engine, row, n_params, params, (uint32_t)n, rest, out);
  if (rest != few)
    pln_mem_free(engine, rest, n * sizeof *rest);
  return status;
}

/* Number of entries after the parts of a record. */
static uint32_t n_extras(const type_row *row) {
  if (row->kind == PLN_TYPE_FUNC)
    return row->n_vars + row->number;
  return row->kind == PLN_TYPE_RELATION;
}

pln_status pln_type_with_parts(pln_engine *engine, pln_type type,
                               const pln_type *parts, pln_type *out) {
  const type_row *row = type_row_of(engine, type);
  uint32_t n = row->kind == PLN_TYPE_TENSOR ? 0 : (uint32_t)row->count;
  if (n == 0) {
    *out = type;
    return PLN_OK;
  }
  return intern_parts(engine, *row, n, parts, n_extras(row), parts_of(row) + n,
                      out);
}

pln_status pln_type_rebuild(pln_engine *engine, pln_type type,
                            const pln_type *parts, pln_type *out) {
  const type_row *row = type_row_of(engine, type);
  if (row->kind != PLN_TYPE_FUNC)
    return pln_type_with_parts(engine, type, parts, out);
  return intern_parts(engine, *row, (uint32_t)row->count, parts, n_extras(row),
                      parts + row->count, out);
}

pln_status pln_type_generic(pln_engine *engine, pln_type func, pln_type vars,
                            pln_type *out) {
  if (pln_type_get_kind(engine, func) != PLN_TYPE_FUNC)
    return PLN_OK;
  uint32_t n = pln_type_n_parts(engine, func), k = 0;
  const pln_type *parts = NULL;
  if (vars) {
    k = pln_type_n_parts(engine, vars);
    parts = parts_of(type_row_of(engine, vars));
  }
  const type_row *row = type_row_of(engine, func);
  const pln_type *own = parts_of(row);
  return pln_type_func(engine, n - 1, own, own[n - 1], k, parts, row->number,
                       own + n + row->n_vars, out);
}

pln_status pln_type_relation(pln_engine *engine, pln_symbol name, uint32_t n,
                             const pln_type *args, uint32_t n_inputs,
                             pln_attrs attrs, pln_type *out) {
  type_row row = {.kind = PLN_TYPE_RELATION,
                  .count = (int32_t)n,
                  .symbol = name,
                  .number = n_inputs};
  return intern_parts(engine, row, n, args, 1, &attrs, out);
}

pln_status pln_type_var(pln_engine *engine, pln_symbol name,
                        pln_type_var_kind kind, pln_type *out) {
  type_row row = {.kind = PLN_TYPE_VAR,
                  .dtype = (uint8_t)kind,
                  .symbol = name,
                  .number = ++engine->n_type_vars};
  return intern_parts(engine, row, 0, NULL, 0, NULL, out);
}

pln_status pln_type_global_var(pln_engine *engine, pln_symbol name,
                               pln_type_var_kind kind, pln_type *out) {
  type_row row = {.kind = PLN_TYPE_GLOBAL_VAR, .symbol = name};
  if (kind != PLN_TKIND_ADT_HANDLE)
    row.number = (uint32_t)kind + 1;
  return intern_parts(engine, row, 0, NULL, 0, NULL, out);
}

pln_status pln_type_hole(pln_engine *engine, pln_type *out) {
  type_row row = {.kind = PLN_TYPE_HOLE, .number = ++engine->n_type_vars};
  return intern_parts(engine, row, 0, NULL, 0, NULL, out);
}

static pln_status make_own_hole(pln_engine *engine, uint32_t number,
                                pln_type *out) {
  type_row row = {.kind = PLN_TYPE_HOLE, .number = number | OWN_HOLES};
  struct pln_types *t = engine->types;
  uint32_t had = t->cap_own_holes;
  PLN_TRY(intern_parts(engine, row, 0, NULL, 0, NULL, out));
  PLN_TRY(pln_mem_grow(engine, (void **)&t->own_holes, &t->cap_own_holes,
                       (size_t)number + 1, sizeof *t->own_holes));
  if (t->cap_own_holes > had)
    memset(t->own_holes + had, 0,
           (t->cap_own_holes - had) * sizeof *t->own_holes);
  t->own_holes[number] = *out;
  return PLN_OK;
}

pln_status pln_type_own_hole(pln_engine *engine, uint32_t number,
                             pln_type *out) {
  const struct pln_types *t = engine->types;
  *out = number < t->cap_own_holes ? t->own_holes[number] : 0;
  return *out ? PLN_OK : make_own_hole(engine, number, out);
}

pln_status pln_type_prim(pln_engine *engine, pln_dtype dtype, uint32_t lanes,
                         pln_type *out) {
  type_row row = {
      .kind = PLN_TYPE_PRIM, .dtype = (uint8_t)dtype, .number = lanes};
  return intern_row(engine, row, NULL, 0, out);
}

/* ----------------------------------------------------------------- joining */

uint32_t pln_types_inherited(const pln_engine *engine) {
  return pln_interner_inherited(engine->types->rows);
}

uint32_t pln_types_total(const pln_engine *engine) {
  return pln_interner_count(engine->types->rows);
}

static void move_header(const pln_merge *j, type_row *row) {
  bool counted = row->kind == PLN_TYPE_VAR ||
                 (row->kind == PLN_TYPE_HOLE && row->number < OWN_HOLES);
  row->symbol = pln_merged_id(&j->symbols, row->symbol);
  if (counted)
    row->number = pln_merged_number(j->type_vars, row->number);
}

/* Rewrites the entries after the header to the parent's ids. In a RELATION the
 * attributes come last. */
static void move_tail(const pln_merge *j, type_row *row) {
  if (row->kind == PLN_TYPE_TENSOR) {
    pln_dim *dims = (pln_dim *)(row + 1);
    for (int32_t i = 0; i < row->count; i++)
      dims[i] = pln_merge_dim(j, dims[i]);
    return;
  }
  pln_type *parts = (pln_type *)(row + 1);
  uint32_t n = (uint32_t)row->count, all = n + n_extras(row);
  for (uint32_t i = 0; i < all; i++)
    if (row->kind == PLN_TYPE_RELATION && i == n)
      parts[i] = pln_merged_id(&j->attrs, parts[i]);
    else
      parts[i] = pln_merged_id(&j->types, parts[i]);
}

/* True if everything the record refers to was merged. Parts are older than the
 * whole, but the attributes of a RELATION may be missing. */
static bool has_parts(const pln_merge *j, const type_row *row) {
  return row->kind != PLN_TYPE_RELATION ||
         parts_of(row)[row->count] <= j->attrs.below + j->attrs.n;
}

pln_status pln_merge_type(pln_merge *j, bool *ready) {
  size_t size;
  const pln_interner *rows = j->child->types->rows;
  const type_row *row =
      pln_interned(rows, j->types.below + j->types.n + 1, &size);
  *ready = has_parts(j, row);
  if (!*ready)
    return PLN_OK;
  type_row *copy = pln_mem_new(j->parent, size);
  if (!copy)
    return pln_nomem(j->parent);
  memcpy(copy, row, size);
  move_header(j, copy);
  move_tail(j, copy);
  pln_status status = pln_intern(j->parent->types->rows, copy, size,
                                 &j->types.to[j->types.n], NULL);
  pln_mem_free(j->parent, copy, size);
  j->types.n += status == PLN_OK;
  return status;
}

/* ----------------------------------------------------------------- reading */

pln_type_kind pln_type_get_kind(const pln_engine *engine, pln_type type) {
  return (pln_type_kind)type_row_of(engine, type)->kind;
}

pln_dtype pln_type_dtype(const pln_engine *engine, pln_type type) {
  return (pln_dtype)type_row_of(engine, type)->dtype;
}

int32_t pln_type_rank(const pln_engine *engine, pln_type type) {
  const type_row *row = type_row_of(engine, type);
  return row->kind == PLN_TYPE_TENSOR ? row->count : -1;
}

const pln_dim *pln_type_dims(const pln_engine *engine, pln_type type) {
  const type_row *row = type_row_of(engine, type);
  return row->kind == PLN_TYPE_TENSOR ? (const pln_dim *)(row + 1) : NULL;
}

uint32_t pln_type_n_parts(const pln_engine *engine, pln_type type) {
  const type_row *row = type_row_of(engine, type);
  return row->kind == PLN_TYPE_TENSOR ? 0 : (uint32_t)row->count;
}

pln_type pln_type_part_at(const pln_engine *engine, pln_type type,
                          uint32_t index) {
  return parts_of(type_row_of(engine, type))[index];
}

pln_symbol pln_type_symbol(const pln_engine *engine, pln_type type) {
  return type_row_of(engine, type)->symbol;
}

uint32_t pln_type_n_vars(const pln_engine *engine, pln_type type) {
  return type_row_of(engine, type)->n_vars;
}

pln_type pln_type_var_at(const pln_engine *engine, pln_type type,
                         uint32_t index) {
  const type_row *row = type_row_of(engine, type);
  return parts_of(row)[(uint32_t)row->count + index];
}

uint32_t pln_type_n_constraints(const pln_engine *engine, pln_type type) {
  const type_row *row = type_row_of(engine, type);
  return row->kind == PLN_TYPE_FUNC ? row->number : 0;
}

pln_type pln_type_constraint_at(const pln_engine *engine, pln_type type,
                                uint32_t index) {
  const type_row *row = type_row_of(engine, type);
  return parts_of(row)[(uint32_t)row->count + row->n_vars + index];
}

/* The record is copied first, because interning may move the table. */
pln_status pln_type_with_lanes(pln_engine *engine, pln_type tensor,
                               uint32_t lanes, pln_type *out) {
  type_row row = *type_row_of(engine, tensor);
  size_t size = row.count > 0 ? (size_t)row.count * sizeof(pln_dim) : 0;
  pln_dim dims[MAX_RANK];
  if (row.kind != PLN_TYPE_TENSOR)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "only the elements of tensors have lanes");
  memcpy(dims, type_row_of(engine, tensor) + 1, size);
  row.number = lanes > 1 ? lanes : 0;
  return intern_row(engine, row, dims, size, out);
}

uint32_t pln_type_number(const pln_engine *engine, pln_type type) {
  return type_row_of(engine, type)->number;
}

pln_type_var_kind pln_type_var_get_kind(const pln_engine *engine,
                                        pln_type type) {
  const type_row *row = type_row_of(engine, type);
  if (row->kind != PLN_TYPE_GLOBAL_VAR)
    return (pln_type_var_kind)row->dtype;
  return row->number ? (pln_type_var_kind)(row->number - 1)
                     : PLN_TKIND_ADT_HANDLE;
}

pln_attrs pln_type_attrs(const pln_engine *engine, pln_type type) {
  const type_row *row = type_row_of(engine, type);
  return row->kind == PLN_TYPE_RELATION ? parts_of(row)[row->count] : 0;
}

uint8_t pln_type_flags(const pln_engine *engine, pln_type type) {
  return (uint8_t)type_row_of(engine, type)->flags;
}

bool pln_type_is_own_hole(const pln_engine *engine, pln_type type) {
  return pln_type_own_number(engine, type) != PLN_NONE;
}

uint32_t pln_type_own_number(const pln_engine *engine, pln_type type) {
  const type_row *row = type_row_of(engine, type);
  bool own = row->kind == PLN_TYPE_HOLE && row->number >= OWN_HOLES;
  return own ? row->number - OWN_HOLES : PLN_NONE;
}

const pln_type *pln_type_all_parts(const pln_engine *engine, pln_type type,
                                   uint32_t *n) {
  const type_row *row = type_row_of(engine, type);
  *n = row->kind == PLN_TYPE_TENSOR ? 0 : (uint32_t)row->count;
  if (row->kind == PLN_TYPE_FUNC)
    *n += n_extras(row);
  return parts_of(row);
}

/* ----------------------------------------------------------------- meeting */

/* A pair of composite types whose meet is being computed, part by part. */
typedef struct type_meet_frame {
  pln_type a, b;
  uint32_t done;  /* parts already done */
  uint32_t first; /* index of their results in `parts` */
} type_meet_frame;

typedef struct type_meet {
  pln_engine *engine;
  type_meet_frame *frames;
  pln_type *parts; /* results of the open frames' finished parts */
  uint32_t n_frames, cap_frames, n_parts, cap_parts;
  pln_idmap *pairs; /* composite pairs already met -> result + 1 */
  bool conflict;
} type_meet;

static uint64_t pair_key(pln_type a, pln_type b) {
  return (uint64_t)a << 32 | b;
}

/* A constant is more precise than any symbolic expression. */
static bool meet_dim(pln_dim a, pln_dim b, pln_dim *out) {
  if (a == PLN_DIM_UNKNOWN || (PLN_DIM_IS_CONST(b) && !PLN_DIM_IS_CONST(a)))
    *out = b;
  else
    *out = a;
  return !PLN_DIM_IS_CONST(a) || !PLN_DIM_IS_CONST(b) || a == b;
}

static pln_status meet_tensors(type_meet *m, pln_type a, pln_type b,
                               pln_type *out) {
  const type_row *x = type_row_of(m->engine, a), *y = type_row_of(m->engine, b);
  m->conflict |= x->dtype && y->dtype && x->dtype != y->dtype;
  m->conflict |= x->count >= 0 && y->count >= 0 && x->count != y->count;
  m->conflict |= x->number != y->number;
  if (m->conflict)
    return PLN_OK;
  const pln_dim *p = (const pln_dim *)(x + 1), *q = (const pln_dim *)(y + 1);
  pln_dim dims[MAX_RANK];
  int32_t rank = x->count >= 0 ? x->count : y->count;
  for (int32_t i = 0; i < rank; i++)
    if (x->count < 0 || y->count < 0)
      dims[i] = x->count < 0 ? q[i] : p[i];
    else if (!meet_dim(p[i], q[i], &dims[i]))
      m->conflict = true;
  if (m->conflict)
    return PLN_OK;
  pln_dtype dtype = (pln_dtype)(x->dtype ? x->dtype : y->dtype);
  uint32_t lanes = x->number;
  PLN_TRY(pln_type_tensor(m->engine, dtype, rank, dims, out));
  return lanes ? pln_type_with_lanes(m->engine, *out, lanes, out) : PLN_OK;
}

static pln_status push_pair(type_meet *m, pln_type a, pln_type b) {
  if (m->n_frames == m->cap_frames)
    PLN_TRY(pln_mem_grow(m->engine, (void **)&m->frames, &m->cap_frames,
                         m->n_frames + 1u, sizeof *m->frames));
  m->frames[m->n_frames++] =
      (type_meet_frame){.a = a, .b = b, .first = m->n_parts};
  return PLN_OK;
}

static pln_status push_meet_part(type_meet *m, pln_type type) {
  if (m->n_parts == m->cap_parts)
    PLN_TRY(pln_mem_grow(m->engine, (void **)&m->parts, &m->cap_parts,
                         m->n_parts + 1u, sizeof *m->parts));
  m->parts[m->n_parts++] = type;
  return PLN_OK;
}

/* Memoised by pair, because types share their parts. */
static pln_status meet_composites(type_meet *m, pln_type a, pln_type b) {
  uint32_t known = m->pairs ? pln_idmap_get(m->pairs, pair_key(a, b)) : 0;
  return known ? push_meet_part(m, known - 1) : push_pair(m, a, b);
}

/* Computes the meet of a pair immediately, or opens a frame for it. */
static pln_status meet_pair(type_meet *m, pln_type a, pln_type b) {
  if (a == b || !b)
    return push_meet_part(m, a);
  if (!a)
    return push_meet_part(m, b);
  const type_row *x = type_row_of(m->engine, a), *y = type_row_of(m->engine, b);
  if (x->kind == PLN_TYPE_TENSOR && y->kind == PLN_TYPE_TENSOR) {
    pln_type met = a;
    PLN_TRY(meet_tensors(m, a, b, &met));
    return push_meet_part(m, met);
  }
  bool alike = x->kind == y->kind && x->count == y->count &&
               x->symbol == y->symbol && x->number == y->number &&
               x->n_vars == 0 && y->n_vars == 0 && x->dtype == y->dtype;
  if (alike && x->kind != PLN_TYPE_RELATION && x->count > 0)
    return meet_composites(m, a, b);
  m->conflict = true;
  return PLN_OK;
}

static pln_status close_frame(type_meet *m) {
  type_meet_frame frame = m->frames[--m->n_frames];
  const type_row *x = type_row_of(m->engine, frame.a);
  pln_type met;
  PLN_TRY(pln_type_make(m->engine, (pln_type_kind)x->kind, x->symbol,
                        (uint32_t)x->count, m->parts + frame.first, &met));
  m->n_parts = frame.first;
  if (!m->pairs)
    PLN_TRY(pln_idmap_new(m->engine, &m->pairs));
  PLN_TRY(pln_idmap_set(m->pairs, pair_key(frame.a, frame.b), met + 1));
  return push_meet_part(m, met);
}

static pln_status meet_all(type_meet *m, pln_type a, pln_type b) {
  PLN_TRY(meet_pair(m, a, b));
  while (m->n_frames > 0 && !m->conflict) {
    type_meet_frame *top = &m->frames[m->n_frames - 1];
    const type_row *x = type_row_of(m->engine, top->a);
    if (top->done == (uint32_t)x->count) {
      PLN_TRY(close_frame(m));
      continue;
    }
    uint32_t i = top->done++;
    pln_type other = pln_type_part_at(m->engine, top->b, i);
    PLN_TRY(meet_pair(m, parts_of(x)[i], other));
  }
  return PLN_OK;
}

pln_status pln_type_meet_again(pln_engine *engine, pln_type a, pln_type b,
                               pln_idmap **pairs, pln_type *out,
                               bool *conflict) {
  if (a == b || !a || !b) {
    *out = a ? a : b;
    *conflict = false;
    return PLN_OK;
  }
  type_meet m = {.engine = engine, .pairs = *pairs};
  pln_status status = meet_all(&m, a, b);
  if (status == PLN_OK) {
    *out = m.conflict ? a : m.parts[0];
    *conflict = m.conflict;
  }
  *pairs = m.pairs;
  pln_mem_free(engine, m.frames, m.cap_frames * sizeof *m.frames);
  pln_mem_free(engine, m.parts, m.cap_parts * sizeof *m.parts);
  return status;
}

pln_status pln_type_meet(pln_engine *engine, pln_type a, pln_type b,
                         pln_type *out, bool *conflict) {
  pln_idmap *pairs = NULL;
  pln_status status = pln_type_meet_again(engine, a, b, &pairs, out, conflict);
  pln_idmap_free(pairs);
  return status;
}
