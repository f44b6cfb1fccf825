/* type/print.c: prints dims and types.
 *
 * Called by the printer, diagnostics and scripts. Relay's notation, extended by
 * N + 1 as a dim, Tensor[*, T], seq(T), optional(T), map(K, V), sparse(T),
 * opaque("domain::name"). */

#include "ir/type/dim.h"
#include "ir/type/print_cache.h"

/* -------------------------------------------------------------------- dims */

static void write_dim_text(pln_writer *w, pln_dim dim);

static void put_call(pln_writer *w, const pln_dim_row *row) {
  static const char *const names[] = {
      [PLN_DIM_ADD] = "add",           [PLN_DIM_SUB] = "sub",
      [PLN_DIM_MUL] = "mul",           [PLN_DIM_FLOORDIV] = "floordiv",
      [PLN_DIM_TRUNCDIV] = "truncdiv", [PLN_DIM_FLOORMOD] = "floormod",
      [PLN_DIM_MIN] = "min",           [PLN_DIM_MAX] = "max"};
  pln_put_text(w, names[row->op]);
  pln_put_text(w, "(");
  write_dim_text(w, row->a);
  pln_put_text(w, ", ");
  write_dim_text(w, row->b);
  pln_put_text(w, ")");
}

/* '/' is a letter of names in programs, and divides dims in a type alone. */
static void put_symbol(pln_writer *w, pln_slice name) {
  if (name.size > 0 && memchr(name.data, '/', name.size))
    pln_put_quoted_name(w, name);
  else
    pln_put_name(w, "", name);
}

static void put_atom(pln_writer *w, uint32_t id) {
  const pln_dim_row *row = pln_dim_row_of(w->engine, id);
  if (row->kind == PLN_DIM_SYMBOL)
    put_symbol(w, pln_symbol_text(w->engine, (pln_symbol)row->symbol));
  else
    put_call(w, row);
}

static void put_term(pln_writer *w, const pln_dim_term *term, bool first) {
  if (!first || term->coef < 0)
    pln_put_text(w, term->coef < 0 ? "-" : "+");
  int64_t coef = term->coef < 0 ? -term->coef : term->coef;
  if (coef != 1) {
    pln_put_int(w, coef);
    pln_put_text(w, "*");
  }
  for (uint32_t i = 0; i < term->degree; i++) {
    if (i > 0)
      pln_put_text(w, "*");
    put_atom(w, term->factors[i]);
  }
}

/* Recursion depth is at most PLN_DIM_MAX_DEPTH; the length is bounded by the
 * weight. */
static void write_dim_text(pln_writer *w, pln_dim dim) {
  if (PLN_DIM_IS_CONST(dim)) {
    pln_put_int(w, dim);
    return;
  }
  const pln_dim_row *row = pln_dim_row_of(w->engine, pln_dim_id(dim));
  if (row->kind != PLN_DIM_SUM) {
    put_atom(w, pln_dim_id(dim));
    return;
  }
  const pln_dim_term *terms = (const pln_dim_term *)(row + 1);
  for (uint32_t i = 0; i < row->n_terms; i++)
    put_term(w, &terms[i], i == 0);
  if (row->a != 0) {
    pln_put_text(w, row->a > 0 ? "+" : "");
    pln_put_int(w, row->a);
  }
}

void pln_put_dim(pln_writer *w, pln_dim dim) {
  if (dim == PLN_DIM_UNKNOWN) {
    pln_put_text(w, "?");
    return;
  }
  if (pln_put_meta_dim(w, dim))
    return;
  write_dim_text(w, dim);
  if (PLN_DIM_IS_CONST(dim) && (dim > INT32_MAX || dim < INT32_MIN))
    pln_put_text(w, "i64");
}

pln_status pln_print_dim(const pln_engine *engine, pln_dim dim,
                         pln_write_fn write, void *ud) {
  pln_writer w;
  pln_writer_init(&w, (pln_engine *)(uintptr_t)engine, 0, write, ud);
  pln_put_dim(&w, dim);
  return pln_writer_end(&w);
}

/* ------------------------------------------------------------------- types */

/* float32, float32x4. Boolean vectors are printed as TVM does. */
static void put_dtype(pln_writer *w, pln_type type) {
  uint32_t lanes = pln_type_number(w->engine, type);
  pln_dtype dtype = pln_type_dtype(w->engine, type);
  bool bits = dtype == PLN_BOOL && lanes > 1;
  pln_put_text(w, bits ? "uint1" : pln_dtype_name(dtype));
  if (lanes <= 1)
    return;
  pln_put_text(w, "x");
  pln_put_int(w, lanes);
}

static void write_tensor_type(pln_writer *w, pln_type type) {
  const pln_engine *e = w->engine;
  int32_t rank = pln_type_rank(e, type);
  pln_dtype dtype = pln_type_dtype(e, type);
  if (rank == 0 && dtype != PLN_DTYPE_NONE) {
    put_dtype(w, type);
    return;
  }
  pln_put_text(w, rank < 0 ? "Tensor[*" : "Tensor[(");
  for (int32_t i = 0; i < rank; i++) {
    if (i > 0)
      pln_put_text(w, ", ");
    pln_put_dim(w, pln_type_dims(e, type)[i]);
  }
  pln_put_text(w, rank < 0 ? ", " : "), ");
  put_dtype(w, type);
  pln_put_text(w, "]");
}

/* A type whose parts are being written. */
typedef struct type_frame {
  pln_type type;
  uint32_t done;
} type_frame;

typedef struct type_stack {
  type_frame near[16], *frames;
  uint32_t count, capacity; /* capacity 0: `frames` is the inline array */
} type_stack;

/* False when out of memory. */
static bool push_type(pln_writer *w, type_stack *s, pln_type type) {
  uint32_t room = s->capacity ? s->capacity : PLN_COUNT(s->near);
  if (s->count == room) {
    void *frames = s->capacity ? s->frames : NULL;
    w->status = pln_mem_grow(w->engine, &frames, &s->capacity, room + 1u,
                             sizeof *s->frames);
    if (w->status != PLN_OK)
      return false;
    if (s->frames == s->near)
      memcpy(frames, s->near, sizeof s->near);
    s->frames = frames;
  }
  s->frames[s->count++] = (type_frame){type, 0};
  return true;
}

/* float32, int32x4, handle. */
static void put_prim(pln_writer *w, pln_type type) {
  pln_dtype dtype = pln_type_dtype(w->engine, type);
  uint32_t lanes = pln_type_number(w->engine, type);
  pln_put_text(w, dtype ? pln_dtype_name(dtype) : "handle");
  if (lanes <= 1)
    return;
  pln_put_text(w, "x");
  pln_put_int(w, lanes);
}

void pln_put_type_var(pln_writer *w, pln_type var) {
  pln_slice name =
      w->naming ? pln_type_var_name(w->naming, var)
                : pln_symbol_text(w->engine, pln_type_symbol(w->engine, var));
  pln_put_name(w, "", name);
}

/* Function types have type parameters: fn [A, B](A, B) -> A. */
static void open_function(pln_writer *w, pln_type type) {
  uint32_t n = pln_type_n_vars(w->engine, type);
  pln_put_text(w, n > 0 ? "fn [" : "fn (");
  for (uint32_t i = 0; i < n; i++) {
    pln_put_text(w, i > 0 ? ", " : "");
    pln_put_type_var(w, pln_type_var_at(w->engine, type, i));
  }
  pln_put_text(w, n > 0 ? "](" : "");
}

/* The text before the parts. */
static void open_type(pln_writer *w, pln_type type) {
  pln_slice name = pln_symbol_text(w->engine, pln_type_symbol(w->engine, type));
  switch (pln_type_get_kind(w->engine, type)) {
  case PLN_TYPE_INCOMPLETE: pln_put_text(w, "_"); break;
  case PLN_TYPE_TENSOR: write_tensor_type(w, type); break;
  case PLN_TYPE_TUPLE: pln_put_text(w, "("); break;
  case PLN_TYPE_FUNC: open_function(w, type); break;
  case PLN_TYPE_REF: pln_put_text(w, "ref("); break;
  case PLN_TYPE_VAR: pln_put_type_var(w, type); break;
  case PLN_TYPE_GLOBAL_VAR: pln_put_name(w, "", name); break;
  case PLN_TYPE_CALL:
    pln_put_name(w, "", name);
    pln_put_text(w, "[");
    break;
  case PLN_TYPE_SEQUENCE: pln_put_text(w, "seq("); break;
  case PLN_TYPE_OPTIONAL: pln_put_text(w, "optional("); break;
  case PLN_TYPE_MAP: pln_put_text(w, "map("); break;
  case PLN_TYPE_SPARSE: pln_put_text(w, "sparse("); break;
  case PLN_TYPE_OPAQUE:
    pln_put_text(w, "opaque(");
    pln_put_quoted_name(w, name);
    break;
  case PLN_TYPE_RELATION:
    pln_put_name(w, "", name);
    pln_put_text(w, "(");
    break;
  case PLN_TYPE_HOLE: pln_put_text(w, "_"); break;
  case PLN_TYPE_PRIM: put_prim(w, type); break;
  case PLN_TYPE_POINTER: pln_put_text(w, "pointer("); break;
  case PLN_N_TYPE_KINDS: break;
  }
}

/* The text before part `index`. */
static void write_type_separator(pln_writer *w, pln_type type, uint32_t index) {
  bool result = pln_type_get_kind(w->engine, type) == PLN_TYPE_FUNC &&
                index + 1 == pln_type_n_parts(w->engine, type);
  if (result)
    pln_put_text(w, ") -> ");
  else if (index > 0)
    pln_put_text(w, ", ");
}

static void close_type(pln_writer *w, pln_type type) {
  uint32_t n = pln_type_n_parts(w->engine, type);
  switch (pln_type_get_kind(w->engine, type)) {
  case PLN_TYPE_TUPLE: pln_put_text(w, n == 1 ? ",)" : ")"); break;
  case PLN_TYPE_CALL: pln_put_text(w, "]"); break;
  case PLN_TYPE_REF:
  case PLN_TYPE_SEQUENCE:
  case PLN_TYPE_OPTIONAL:
  case PLN_TYPE_MAP:
  case PLN_TYPE_SPARSE:
  case PLN_TYPE_OPAQUE:
  case PLN_TYPE_RELATION:
  case PLN_TYPE_POINTER: pln_put_text(w, ")"); break;
  case PLN_TYPE_INCOMPLETE:
  case PLN_TYPE_TENSOR:
  case PLN_TYPE_FUNC:
  case PLN_TYPE_VAR:
  case PLN_TYPE_GLOBAL_VAR:
  case PLN_TYPE_HOLE:
  case PLN_TYPE_PRIM:
  case PLN_N_TYPE_KINDS: break;
  }
}

void pln_put_type(pln_writer *w, pln_type type) {
  type_stack s = {.count = 0};
  s.frames = s.near;
  if (!push_type(w, &s, type))
    return;
  while (s.count > 0 && !pln_writer_done(w)) {
    type_frame *top = &s.frames[s.count - 1];
    pln_type whole = top->type;
    uint32_t i = top->done++;
    if (i == 0)
      open_type(w, whole);
    if (i == pln_type_n_parts(w->engine, whole)) {
      close_type(w, whole);
      s.count--;
      continue;
    }
    write_type_separator(w, whole, i);
    if (!push_type(w, &s, pln_type_part_at(w->engine, whole, i)))
      break;
  }
  if (s.capacity)
    pln_mem_free(w->engine, s.frames, s.capacity * sizeof *s.frames);
}

pln_status pln_print_type(const pln_engine *engine, pln_type type,
                          pln_write_fn write, void *ud) {
  pln_writer w;
  pln_writer_init(&w, (pln_engine *)(uintptr_t)engine, 0, write, ud);
  pln_put_type(&w, type);
  return pln_writer_end(&w);
}
