/* tensor.c: Tensor objects, converted from and to nested tables, numbers and
 * bytes.
 *
 * A table's nesting gives the dims and its values the dtype: integers int64,
 * floats float32, booleans bool, strings string. Tables are walked with one
 * index per dim, never by recursion. */

#include "ir/tensor/tensor.h"
#include "lua/binding.h"

/* -------------------------------------------------------------------- boxes */

pln_tensor **pln_lua_new_tensor(lua_State *L) {
  return pln_lua_large_userdata(L, PLN_LUA_TENSOR, sizeof(pln_tensor *), 0);
}

void pln_lua_push_tensor(lua_State *L, const pln_tensor *tensor) {
  pln_tensor **slot = pln_lua_new_tensor(L);
  *slot = pln_tensor_retain(tensor);
}

pln_tensor *pln_lua_test_tensor(lua_State *L, int arg) {
  pln_tensor **slot = luaL_testudata(L, arg, PLN_LUA_TENSOR);
  return slot ? *slot : NULL;
}

pln_tensor *pln_lua_check_tensor(lua_State *L, int arg) {
  pln_tensor **slot = luaL_checkudata(L, arg, PLN_LUA_TENSOR);
  if (!*slot)
    luaL_argerror(L, arg, "the tensor has been closed");
  return *slot;
}

static int tensor_gc(lua_State *L) {
  pln_tensor **slot = luaL_checkudata(L, 1, PLN_LUA_TENSOR);
  pln_tensor *tensor = *slot;
  *slot = NULL;
  if (tensor)
    pln_tensor_release(tensor);
  return 0;
}

/* ----------------------------------------------------------------- elements */

/* Stores the value at -1 as element `i`; raises if the dtype cannot hold it. */
static void store_int(lua_State *L, pln_dtype dtype, void *data, size_t i) {
  int ok = 1;
  lua_Integer v =
      lua_isboolean(L, -1) ? lua_toboolean(L, -1) : lua_tointegerx(L, -1, &ok);
  uint32_t bits = pln_dtype_bits(dtype);
  bool is_signed = dtype == PLN_INT8 || dtype == PLN_INT16 ||
                   dtype == PLN_INT32 || dtype == PLN_INT4 || dtype == PLN_INT2;
  if (!ok || lua_type(L, -1) == LUA_TSTRING)
    luaL_error(L, "an element of dtype %s is an integer, got %s",
               pln_dtype_name(dtype), luaL_tolstring(L, -1, NULL));
  if (bits < 64) {
    int64_t low = is_signed ? -((int64_t)1 << (bits - 1)) : 0;
    int64_t high = ((int64_t)1 << (bits - is_signed)) - 1;
    if (v < low || v > high)
      luaL_error(L, "%I is out of range for %s", v, pln_dtype_name(dtype));
  }
  if (bits < 8) { /* packed, low bits first */
    size_t per = 8 / bits;
    uint8_t *byte = (uint8_t *)data + i / per;
    unsigned shift = (unsigned)(i % per) * bits;
    *byte = (uint8_t)(*byte | ((unsigned)v & ((1u << bits) - 1)) << shift);
  } else {
    memcpy((char *)data + i * (bits / 8), &v, bits / 8); /* little-endian */
  }
}

static void store_float(lua_State *L, pln_dtype dtype, void *data, size_t i) {
  if (lua_type(L, -1) != LUA_TNUMBER)
    luaL_error(L, "an element of dtype %s is a number, got %s",
               pln_dtype_name(dtype), luaL_typename(L, -1));
  double v = lua_tonumber(L, -1);
  if (dtype == PLN_FLOAT64)
    ((double *)data)[i] = v;
  else if (dtype == PLN_FLOAT32)
    ((float *)data)[i] = (float)v;
  else if (dtype == PLN_FLOAT16)
    ((uint16_t *)data)[i] = pln_float_to_half((float)v);
  else
    ((uint16_t *)data)[i] = pln_float_to_bfloat((float)v);
}

typedef enum element_class {
  ELEMENT_INT,
  ELEMENT_BOOL,
  ELEMENT_FLOAT,
  ELEMENT_STRING,
  ELEMENT_BYTES /* float8, complex, ...: accessible as bytes only */
} element_class;

static element_class class_of(pln_dtype dtype) {
  switch (dtype) {
  case PLN_FLOAT32:
  case PLN_FLOAT64:
  case PLN_FLOAT16:
  case PLN_BFLOAT16: return ELEMENT_FLOAT;
  case PLN_BOOL: return ELEMENT_BOOL;
  case PLN_STRING: return ELEMENT_STRING;
  case PLN_UINT8:
  case PLN_INT8:
  case PLN_UINT16:
  case PLN_INT16:
  case PLN_INT32:
  case PLN_INT64:
  case PLN_UINT32:
  case PLN_UINT64:
  case PLN_UINT4:
  case PLN_INT4:
  case PLN_UINT2:
  case PLN_INT2: return ELEMENT_INT;
  default: return ELEMENT_BYTES;
  }
}

static void store_lua_element(lua_State *L, pln_dtype dtype, void *data,
                              size_t i) {
  switch (class_of(dtype)) {
  case ELEMENT_BOOL:
    if (!lua_isboolean(L, -1))
      luaL_error(L, "an element of dtype bool is a boolean, got %s",
                 luaL_tolstring(L, -1, NULL));
    ((uint8_t *)data)[i] = (uint8_t)lua_toboolean(L, -1);
    return;
  case ELEMENT_INT: store_int(L, dtype, data, i); return;
  case ELEMENT_FLOAT: store_float(L, dtype, data, i); return;
  case ELEMENT_STRING:
    if (lua_type(L, -1) != LUA_TSTRING)
      luaL_error(L, "an element of dtype string is a string, got %s",
                 luaL_typename(L, -1));
    pln_slice *slot = (pln_slice *)data + i;
    slot->data = lua_tolstring(L, -1, &slot->size);
    return;
  case ELEMENT_BYTES:
    luaL_error(L, "elements of dtype %s are given as bytes",
               pln_dtype_name(dtype));
  }
}

static uint64_t load_bits(pln_dtype dtype, const void *data, size_t i) {
  uint32_t bits = pln_dtype_bits(dtype);
  uint64_t v = 0;
  if (bits >= 8) {
    memcpy(&v, (const char *)data + i * (bits / 8), bits / 8);
    return v;
  }
  size_t per = 8 / bits;
  v = ((const uint8_t *)data)[i / per];
  return v >> ((i % per) * bits) & ((1u << bits) - 1);
}

static void push_int(lua_State *L, pln_dtype dtype, const void *data,
                     size_t i) {
  uint64_t v = load_bits(dtype, data, i);
  uint32_t bits = pln_dtype_bits(dtype);
  bool is_signed = dtype == PLN_INT8 || dtype == PLN_INT16 ||
                   dtype == PLN_INT32 || dtype == PLN_INT4 || dtype == PLN_INT2;
  if (is_signed && v >> (bits - 1))
    v |= ~(uint64_t)0 << bits;
  lua_pushinteger(L, (lua_Integer)v);
}

static void push_float(lua_State *L, pln_dtype dtype, const void *data,
                       size_t i) {
  uint64_t v = load_bits(dtype, data, i);
  if (dtype == PLN_FLOAT64) {
    double d;
    memcpy(&d, &v, sizeof d);
    lua_pushnumber(L, d);
  } else if (dtype == PLN_FLOAT32) {
    uint32_t low = (uint32_t)v;
    float f;
    memcpy(&f, &low, sizeof f);
    lua_pushnumber(L, (double)f);
  } else if (dtype == PLN_FLOAT16) {
    lua_pushnumber(L, (double)pln_half_to_float((uint16_t)v));
  } else {
    lua_pushnumber(L, (double)pln_bfloat_to_float((uint16_t)v));
  }
}

void pln_lua_push_element(lua_State *L, pln_dtype dtype, const void *data,
                          size_t i) {
  switch (class_of(dtype)) {
  case ELEMENT_BOOL:
    lua_pushboolean(L, ((const uint8_t *)data)[i] != 0);
    return;
  case ELEMENT_INT: push_int(L, dtype, data, i); return;
  case ELEMENT_FLOAT: push_float(L, dtype, data, i); return;
  case ELEMENT_STRING: {
    pln_slice text;
    memcpy(&text, (const pln_slice *)data + i, sizeof text);
    lua_pushlstring(L, text.data ? text.data : "", text.size);
    return;
  }
  case ELEMENT_BYTES:
    luaL_error(L, "elements of dtype %s are read as bytes",
               pln_dtype_name(dtype));
  }
}

/* -------------------------------------------------------------- from tables */

/* Reads the dims of a nested table along its first elements. Leaves its first
 * leaf on the stack (nil if there is none).  [-0, +1] */
static uint32_t table_dims(lua_State *L, int arg, int64_t *dims) {
  uint32_t rank = 0;
  lua_pushvalue(L, arg);
  while (lua_istable(L, -1)) {
    if (rank == PLN_LUA_MAX_RANK)
      luaL_argerror(L, arg, "a tensor has at most 32 dims");
    dims[rank++] = (int64_t)lua_rawlen(L, -1);
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }
  return rank;
}

/* The dtype of a leaf if none is given. */
static pln_dtype element_dtype(lua_State *L, int index) {
  switch (lua_type(L, index)) {
  case LUA_TBOOLEAN: return PLN_BOOL;
  case LUA_TSTRING: return PLN_STRING;
  case LUA_TNUMBER: return lua_isinteger(L, index) ? PLN_INT64 : PLN_FLOAT32;
  default: return PLN_FLOAT32;
  }
}

typedef struct table_fill {
  pln_dtype dtype;
  uint32_t rank;
  int64_t dims[PLN_LUA_MAX_RANK];
  void *data;  /* NULL: only test whether an integer table contains a float */
  size_t next; /* element */
  bool floats; /* a float was seen */
} table_fill;

/* Reads one row of leaves: the table on top. */
static void fill_row(lua_State *L, table_fill *f) {
  for (int64_t i = 1; i <= f->dims[f->rank - 1]; i++) {
    lua_rawgeti(L, -1, i);
    if (f->data)
      store_lua_element(L, f->dtype, f->data, f->next++);
    else if (lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1))
      f->floats = true;
    lua_pop(L, 1);
  }
}

/* Walks the table at `arg`. Stack level k holds the table of dim k. */
static void walk_nested_table(lua_State *L, int arg, table_fill *f) {
  int64_t index[PLN_LUA_MAX_RANK] = {0};
  uint32_t level = 0;
  luaL_checkstack(L, PLN_LUA_MAX_RANK + 4, NULL);
  lua_pushvalue(L, arg);
  for (;;) {
    if (!lua_istable(L, -1) || (int64_t)lua_rawlen(L, -1) != f->dims[level])
      luaL_argerror(L, arg, "the table is ragged: rows differ in length");
    if (level + 1 == f->rank)
      fill_row(L, f);
    while (level + 1 == f->rank || index[level] == f->dims[level]) {
      lua_pop(L, 1);
      if (level == 0)
        return;
      level--;
      if (index[level] < f->dims[level])
        break;
    }
    lua_rawgeti(L, -1, ++index[level]);
    index[++level] = 0;
  }
}

/* Pushes a tensor of the dims in `f`, filled from the table.  [-0, +1] */
static pln_tensor *from_table(lua_State *L, pln_lua *b, int arg,
                              table_fill *f) {
  pln_tensor **slot = pln_lua_new_tensor(L);
  if (f->dtype == PLN_STRING) {
    size_t n = 1;
    for (uint32_t i = 0; i < f->rank; i++)
      n *= (size_t)f->dims[i];
    f->data = lua_newuserdatauv(L, n * sizeof(pln_slice) + 1, 0);
    walk_nested_table(L, arg, f);
    pln_lua_must(L, b,
                 pln_tensor_from_bytes(b->engine, f->dtype, f->rank, f->dims,
                                       f->data, n * sizeof(pln_slice), slot));
    lua_pop(L, 1);
    return *slot;
  }
  pln_lua_must(L, b,
               pln_tensor_new(b->engine, f->dtype, f->rank, f->dims, slot));
  f->data = pln_tensor_writable(*slot);
  if (pln_tensor_count(*slot) > 0)
    walk_nested_table(L, arg, f);
  return *slot;
}

static pln_tensor *table_to_tensor(lua_State *L, pln_lua *b, int arg,
                                   pln_dtype dtype) {
  table_fill f = {.dtype = dtype};
  f.rank = table_dims(L, arg, f.dims);
  size_t count, bytes;
  if (pln_tensor_size(PLN_STRING, f.rank, f.dims, &count, &bytes) != PLN_OK)
    luaL_argerror(L, arg, "too many elements");
  if (dtype == PLN_DTYPE_NONE) {
    f.dtype = element_dtype(L, -1);
    if (f.dtype == PLN_INT64 && count > 0)
      walk_nested_table(L, arg, &f);
    if (f.floats)
      f.dtype = PLN_FLOAT32;
  }
  lua_pop(L, 1);
  return from_table(L, b, arg, &f);
}

static pln_tensor *scalar_to_tensor(lua_State *L, pln_lua *b, int arg,
                                    pln_dtype dtype) {
  pln_dtype own = dtype == PLN_DTYPE_NONE ? element_dtype(L, arg) : dtype;
  pln_slice text;
  pln_tensor **slot = pln_lua_new_tensor(L);
  if (own == PLN_STRING) {
    text.data = luaL_checklstring(L, arg, &text.size);
    pln_lua_must(L, b,
                 pln_tensor_from_bytes(b->engine, own, 0, NULL, &text,
                                       sizeof text, slot));
    return *slot;
  }
  pln_lua_must(L, b, pln_tensor_new(b->engine, own, 0, NULL, slot));
  lua_pushvalue(L, arg);
  store_lua_element(L, own, pln_tensor_writable(*slot), 0);
  lua_pop(L, 1);
  return *slot;
}

pln_tensor *pln_lua_to_tensor(lua_State *L, pln_lua *b, int arg,
                              pln_dtype dtype) {
  arg = lua_absindex(L, arg);
  switch (lua_type(L, arg)) {
  case LUA_TTABLE: return table_to_tensor(L, b, arg, dtype);
  case LUA_TNUMBER:
  case LUA_TBOOLEAN:
  case LUA_TSTRING: return scalar_to_tensor(L, b, arg, dtype);
  default: lua_pushvalue(L, arg); return pln_lua_check_tensor(L, arg);
  }
}

/* --------------------------------------------------------------- functions */

/* tensor(value [, dtype]) -> Tensor */
static int core_tensor(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checkany(L, 1);
  pln_lua_to_tensor(L, b, 1, pln_lua_check_dtype(L, 2, PLN_DTYPE_NONE));
  return 1;
}

uint32_t pln_lua_check_dims(lua_State *L, int arg, int64_t *dims) {
  luaL_checktype(L, arg, LUA_TTABLE);
  size_t rank = lua_rawlen(L, arg);
  luaL_argcheck(L, rank <= PLN_LUA_MAX_RANK, arg,
                "a tensor has at most 32 dims");
  for (size_t i = 0; i < rank; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    luaL_argcheck(L, lua_isinteger(L, -1), arg, "dims are integers");
    dims[i] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return (uint32_t)rank;
}

uint32_t pln_lua_check_dims_dtype(lua_State *L, int arg, pln_dtype fallback,
                                  int64_t *dims, pln_dtype *dtype) {
  int dims_arg = lua_type(L, arg) == LUA_TTABLE ? arg : arg + 1;
  *dtype = pln_lua_check_dtype(L, 2 * arg + 1 - dims_arg, fallback);
  return pln_lua_check_dims(L, dims_arg, dims);
}

/* tensor_bytes(bytes, dims, dtype) -> Tensor of little-endian elements */
static int core_tensor_bytes(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  size_t size;
  int64_t dims[PLN_LUA_MAX_RANK];
  const char *bytes = luaL_checklstring(L, 1, &size);
  pln_dtype dtype;
  uint32_t rank = pln_lua_check_dims_dtype(L, 2, PLN_UINT8, dims, &dtype);
  luaL_argcheck(L, dtype != PLN_STRING, 2, "strings are given as a table");
  pln_tensor **slot = pln_lua_new_tensor(L);
  pln_lua_must(
      L, b,
      pln_tensor_from_bytes(b->engine, dtype, rank, dims, bytes, size, slot));
  return 1;
}

/* Reads the bytes of an element whose dtype has no Lua value. */
static void check_bytes(lua_State *L, int arg, pln_dtype dtype, void *out) {
  size_t size, wanted = pln_splat_bytes(dtype);
  const char *bytes = luaL_checklstring(L, arg, &size);
  if (size != wanted)
    luaL_error(L, "an element of dtype %s has %d bytes, got %d",
               pln_dtype_name(dtype), (int)wanted, (int)size);
  memcpy(out, bytes, size);
}

/* tensor_splat(element, dims, dtype) -> Tensor whose elements are all equal */
static int core_tensor_splat(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  int64_t dims[PLN_LUA_MAX_RANK];
  uint64_t element[2] = {0};
  pln_dtype dtype;
  uint32_t rank = pln_lua_check_dims_dtype(L, 2, PLN_FLOAT32, dims, &dtype);
  pln_tensor **slot = pln_lua_new_tensor(L);
  lua_pushvalue(L, 1);
  if (class_of(dtype) == ELEMENT_BYTES)
    check_bytes(L, 1, dtype, element);
  else
    store_lua_element(L, dtype, element, 0);
  lua_pop(L, 1);
  pln_lua_must(L, b,
               pln_tensor_splat(b->engine, dtype, rank, dims, element, slot));
  return 1;
}

/* ------------------------------------------------------------------ methods */

/* Pushes a dense copy of the tensor at `arg`, or the tensor itself.  [-0,
 * +1] */
static const pln_tensor *push_dense(lua_State *L, pln_lua *b, int arg,
                                    const void **data) {
  pln_tensor **slot = pln_lua_new_tensor(L);
  pln_lua_must(L, b, pln_tensor_dense(pln_lua_check_tensor(L, arg), slot));
  pln_lua_must(L, b, pln_tensor_data(*slot, data));
  return *slot;
}

/* tensor:to_table() -> nested tables, or the value of a scalar */
static int tensor_to_table(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const void *data;
  const pln_tensor *tensor = push_dense(L, b, 1, &data);
  pln_dtype dtype = pln_tensor_dtype(tensor);
  uint32_t rank = pln_tensor_rank(tensor), level = 0;
  const int64_t *dims = pln_tensor_dims(tensor);
  int64_t index[PLN_LUA_MAX_RANK] = {0};
  size_t next = 0;
  if (rank == 0) {
    pln_lua_push_element(L, dtype, data, 0);
    return 1;
  }
  luaL_argcheck(L, rank <= PLN_LUA_MAX_RANK, 1, "more than 32 dims");
  luaL_checkstack(L, PLN_LUA_MAX_RANK + 4, NULL);
  lua_newtable(L);
  for (;;) {
    if (index[level] == dims[level]) { /* this table is full */
      if (level-- == 0)
        return 1;
      lua_rawseti(L, -2, index[level]);
    } else if (level + 1 < rank) {
      index[level]++;
      index[++level] = 0;
      lua_newtable(L);
    } else {
      pln_lua_push_element(L, dtype, data, next++);
      lua_rawseti(L, -2, ++index[level]);
    }
  }
}

/* tensor:to_bytes() -> little-endian elements, row by row */
static int tensor_to_bytes(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const void *data;
  luaL_argcheck(L, pln_tensor_dtype(pln_lua_check_tensor(L, 1)) != PLN_STRING,
                1, "a tensor of strings has no bytes; use to_table");
  const pln_tensor *tensor = push_dense(L, b, 1, &data);
  lua_pushlstring(L, data ? data : "", pln_tensor_bytes(tensor));
  return 1;
}

/* tensor:get(i, j, ...) -> one element; indices from 1 */
static int tensor_get(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_tensor *tensor = pln_lua_check_tensor(L, 1);
  const int64_t *dims = pln_tensor_dims(tensor);
  uint32_t rank = pln_tensor_rank(tensor);
  const void *data;
  size_t at = 0;
  if ((uint32_t)lua_gettop(L) - 1 != rank)
    return luaL_error(L, "get takes %d indices, one a dim", (int)rank);
  for (uint32_t i = 0; i < rank; i++) {
    lua_Integer index = luaL_checkinteger(L, (int)i + 2);
    luaL_argcheck(L, index >= 1 && index <= dims[i], (int)i + 2,
                  "index out of range");
    at = at * (size_t)dims[i] + (size_t)(index - 1);
  }
  pln_lua_must(L, b, pln_tensor_data(tensor, &data));
  pln_lua_push_element(L, pln_tensor_dtype(tensor), data,
                       pln_tensor_is_splat(tensor) ? 0 : at);
  return 1;
}

/* tensor:equal(other) -> the same dtype, dims and bytes, whatever the size */
static int tensor_equal(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_tensor *x = pln_lua_check_tensor(L, 1);
  const pln_tensor *y = pln_lua_check_tensor(L, 2);
  uint32_t rank = pln_tensor_rank(x);
  bool same = pln_tensor_equal(x, y);
  if (!same && pln_tensor_dtype(x) == pln_tensor_dtype(y) &&
      pln_tensor_dtype(x) != PLN_STRING && rank == pln_tensor_rank(y) &&
      pln_tensor_count(x) == pln_tensor_count(y)) {
    const void *dx, *dy;
    x = push_dense(L, b, 1, &dx);
    y = push_dense(L, b, 2, &dy);
    size_t dims = rank * sizeof(int64_t);
    same =
        (dims == 0 || !memcmp(pln_tensor_dims(x), pln_tensor_dims(y), dims)) &&
        (!dx || !dy || !memcmp(dx, dy, pln_tensor_bytes(x)));
  }
  lua_pushboolean(L, same);
  return 1;
}

/* a == b: identity, not equality of elements */
static int tensor_eq(lua_State *L) {
  lua_pushboolean(L, pln_lua_check_tensor(L, 1) == pln_lua_test_tensor(L, 2));
  return 1;
}

static int push_shape(lua_State *L, const pln_tensor *tensor) {
  uint32_t rank = pln_tensor_rank(tensor);
  lua_createtable(L, (int)rank, 0);
  tensor = pln_lua_check_tensor(L, 1); /* a finalizer may have closed it */
  for (uint32_t i = 0; i < rank; i++) {
    lua_pushinteger(L, pln_tensor_dims(tensor)[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* tensor.dtype, .shape, .rank, .size (elements), .bytes, .splat; methods */
static int tensor_index(lua_State *L) {
  const char *key = luaL_checkstring(L, 2);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL)
    return 1;
  pln_tensor *tensor = pln_lua_check_tensor(L, 1);
  if (!strcmp(key, "dtype"))
    lua_pushstring(L, pln_dtype_name(pln_tensor_dtype(tensor)));
  else if (!strcmp(key, "shape"))
    return push_shape(L, tensor);
  else if (!strcmp(key, "rank"))
    lua_pushinteger(L, pln_tensor_rank(tensor));
  else if (!strcmp(key, "size"))
    lua_pushinteger(L, (lua_Integer)pln_tensor_count(tensor));
  else if (!strcmp(key, "bytes"))
    lua_pushinteger(L, (lua_Integer)pln_tensor_bytes(tensor));
  else if (!strcmp(key, "splat"))
    lua_pushboolean(L, pln_tensor_is_splat(tensor));
  else
    return 0;
  return 1;
}

/* "Tensor[(2, 3), float32]" */
static int tensor_tostring(lua_State *L) {
  const pln_tensor *const *closed = luaL_checkudata(L, 1, PLN_LUA_TENSOR);
  luaL_Buffer text;
  if (!*closed) {
    lua_pushliteral(L, "Tensor (closed)");
    return 1;
  }
  pln_tensor **slot = pln_lua_new_tensor(L);
  *slot = pln_tensor_retain(pln_lua_check_tensor(L, 1));
  luaL_buffinit(L, &text);
  luaL_addstring(&text, "Tensor[(");
  for (uint32_t i = 0; i < pln_tensor_rank(*slot); i++) {
    lua_pushfstring(L, i ? ", %I" : "%I",
                    (LUAI_UACINT)pln_tensor_dims(*slot)[i]);
    luaL_addvalue(&text);
  }
  lua_pushfstring(L, "), %s]", pln_dtype_name(pln_tensor_dtype(*slot)));
  luaL_addvalue(&text);
  luaL_pushresult(&text);
  return 1;
}

static const luaL_Reg methods[] = {
    {"to_table", tensor_to_table}, {"to_bytes", tensor_to_bytes},
    {"get", tensor_get},           {"equal", tensor_equal},
    {"close", tensor_gc},          {NULL, NULL},
};
static const luaL_Reg meta[] = {
    {"__gc", tensor_gc},
    {"__close", tensor_gc},
    {"__tostring", tensor_tostring},
    {"__eq", tensor_eq},
    {NULL, NULL},
};
static const luaL_Reg functions[] = {
    {"tensor", core_tensor},
    {"tensor_bytes", core_tensor_bytes},
    {"tensor_splat", core_tensor_splat},
    {NULL, NULL},
};

void pln_lua_open_tensor(lua_State *L) {
  pln_lua_class(L, PLN_LUA_TENSOR, methods, meta, tensor_index);
  pln_lua_functions(L, functions);
}
