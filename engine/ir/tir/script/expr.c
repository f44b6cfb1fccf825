/* tir/script/expr.c: prints PrimExprs, types and attributes as TVMScript.
 *
 * Called by script/print.c and script/buffer.c. An expression is printed with a
 * stack of fragments: a node is replaced by its parts. Python operators are
 * used where TVM's printer uses them; an expression that would fold when read
 * back is written as a call ("T.Add(1, 2)"). */

#include <math.h>
#include <stdio.h>

#include "ir/tir/script/script.h"

/* ------------------------------------------------------------------- pieces */

enum { TEXT, NODE, NUMBER, DTYPE, TAG };

static void push_script_fragment(pln_script_printer *s,
                                 pln_script_fragment fragment) {
  if (s->status == PLN_OK)
    s->status =
        pln_mem_grow(s->engine, (void **)&s->fragments, &s->cap_fragments,
                     (size_t)s->n_fragments + 1, sizeof *s->fragments);
  if (s->status == PLN_OK)
    s->fragments[s->n_fragments++] = fragment;
}

static void push_script_text(pln_script_printer *s, const char *text) {
  push_script_fragment(s, (pln_script_fragment){.what = TEXT, .text = text});
}

static void push_node(pln_script_printer *s, pln_ref ref, uint8_t least) {
  push_script_fragment(
      s, (pln_script_fragment){.what = NODE, .ref = ref, .least = least});
}

/* `type` 0: a plain number, else an immediate of that type. */
static void push_number(pln_script_printer *s, int64_t number, pln_type type) {
  push_script_fragment(
      s, (pln_script_fragment){.what = NUMBER, .number = number, .ref = type});
}

/* Pushes operands [first, end) separated by ", ", in reverse order like
 * everything on the stack. */
static void push_list(pln_script_printer *s, const pln_node *n, uint32_t first,
                      uint32_t end) {
  for (uint32_t i = end; i-- > first;) {
    push_node(s, s->g->operands[n->first + i], PLN_PREC_ANY);
    if (i > first)
      push_script_text(s, ", ");
  }
}

/* -------------------------------------------------------------------- types */

/* TVM's names of two 8-bit float dtypes differ. */
static const char *dtype_name(pln_dtype dtype) {
  switch (dtype) {
  case PLN_DTYPE_NONE: return "handle";
  case PLN_FLOAT8_E4M3FN: return "e4m3_float8";
  case PLN_FLOAT8_E5M2: return "e5m2_float8";
  default: return pln_dtype_name(dtype);
  }
}

static void put_lanes(pln_script_printer *s, const char *name, uint32_t lanes) {
  pln_script_write(s, name);
  if (lanes > 1) {
    pln_script_write(s, "x");
    pln_script_write_int(s, lanes);
  }
}

static void put_dtype(pln_script_printer *s, pln_type type) {
  pln_dtype dtype = pln_type_dtype(s->engine, type);
  uint32_t lanes = pln_type_get_kind(s->engine, type) == PLN_TYPE_PRIM
                       ? pln_type_number(s->engine, type)
                       : 1;
  bool none = pln_type_get_kind(s->engine, type) == PLN_TYPE_TUPLE;
  put_lanes(s, none ? "void" : dtype_name(dtype), lanes);
}

void pln_script_dtype_text(pln_script_printer *s, pln_slice text) {
  uint32_t lanes = 1;
  pln_dtype own = pln_dtype_find_vector(text, &lanes);
  if (own == PLN_DTYPE_NONE) {
    pln_script_write_quoted(s, text);
    return;
  }
  pln_script_write(s, "\"");
  put_lanes(s, dtype_name(own), lanes);
  pln_script_write(s, "\"");
}

void pln_script_dtype(pln_script_printer *s, pln_type type) {
  pln_script_write(s, "\"");
  put_dtype(s, type);
  pln_script_write(s, "\"");
}

static void put_pointer(pln_script_printer *s, pln_type type) {
  pln_type element = pln_type_part_at(s->engine, type, 0);
  pln_slice scope =
      pln_symbol_text(s->engine, pln_type_symbol(s->engine, type));
  pln_script_write(s, "T.handle(");
  pln_script_dtype(s, element);
  if (scope.size > 0) {
    pln_script_write(s, ", ");
    pln_script_write_quoted(s, scope);
  }
  pln_script_write(s, ")");
}

void pln_script_type(pln_script_printer *s, pln_type type) {
  if (pln_type_get_kind(s->engine, type) == PLN_TYPE_POINTER) {
    put_pointer(s, type);
    return;
  }
  pln_script_write(s, "T.");
  put_dtype(s, type);
}

/* --------------------------------------------------------------- attributes
 */

void pln_script_number(pln_script_printer *s, double value) {
  char text[40];
  if (isnan(value))
    pln_script_write(s, "\"nan\"");
  else if (isinf(value))
    pln_script_write(s, value < 0 ? "\"-inf\"" : "\"inf\"");
  else if (value == 0 && signbit(value))
    pln_script_write(s, "-0.0"); /* TVM's "-0" is read as the integer 0 */
  else if (snprintf(text, sizeof text, "%.17g", value) > 0)
    pln_script_write(s, text);
}

static void push_attr_elements(pln_script_printer *s, const pln_attr *a) {
  pln_script_write(s, "[");
  for (uint32_t i = 0; i < a->count; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    if (a->kind == PLN_ATTR_STRINGS)
      pln_script_write_quoted(s, a->v.strings[i]);
    else if (a->kind == PLN_ATTR_FLOATS)
      pln_script_number(s, a->v.floats[i]);
    else
      pln_script_write_int(s, a->v.ints[i]);
  }
  pln_script_write(s, "]");
}

/* A nested dictionary or list being printed. */
typedef struct level {
  pln_attrs attrs;
  uint32_t next;
  bool list;
  const char *end; /* its closing bracket */
} level;

enum { MAX_LEVELS = 256 };

void pln_script_tensor(pln_script_printer *s, const pln_tensor *tensor) {
  uint64_t key = (uint64_t)(uintptr_t)tensor;
  if (!s->tensors && s->status == PLN_OK)
    s->status = pln_idmap_new(s->engine, &s->tensors);
  if (s->status != PLN_OK)
    return;
  uint32_t place = pln_idmap_get(s->tensors, key);
  if (!place) {
    place = ++s->n_tensors;
    s->status = pln_idmap_set(s->tensors, key, place);
  }
  pln_script_write(s, "metadata[\"runtime.NDArray\"][");
  pln_script_write_int(s, (int64_t)place - 1);
  pln_script_write(s, "]");
}

static void put_tensors(pln_script_printer *s, const pln_attr *a) {
  pln_script_write(s, "[");
  for (uint32_t i = 0; i < a->count; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    pln_script_tensor(s, a->v.tensors[i]);
  }
  pln_script_write(s, "]");
}

/* Pushes a value without nested values. */
static void push_script_atom(pln_script_printer *s, const pln_attr *a) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_INT: pln_script_write_int(s, a->v.i); break;
  case PLN_ATTR_BOOL:
    pln_script_write(s, a->v.i ? "T.bool(True)" : "T.bool(False)");
    break;
  case PLN_ATTR_FLOAT:
    pln_script_write(s, "T.float32(");
    pln_script_number(s, a->v.f);
    pln_script_write(s, ")");
    break;
  case PLN_ATTR_STRING:
  case PLN_ATTR_OBJECT: pln_script_write_quoted(s, a->v.s); break;
  case PLN_ATTR_TYPE: pln_script_dtype(s, a->v.type); break;
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS: push_attr_elements(s, a); break;
  case PLN_ATTR_TENSOR: pln_script_tensor(s, a->v.tensor); break;
  case PLN_ATTR_TENSORS: put_tensors(s, a); break;
  default: pln_script_write(s, "None"); break;
  }
}

static bool is_names(const pln_attr *a) {
  return a && (a->kind == PLN_ATTR_STRINGS ||
               (a->kind == PLN_ATTR_INTS && a->count == 0));
}

static bool is_string(const pln_attr *a) {
  return a && a->kind == PLN_ATTR_STRING;
}

/* A dictionary with the keys that every TVM Target has. */
static bool is_target(const pln_script_printer *s, const pln_attr *a) {
  return a->kind == PLN_ATTR_DICT &&
         is_string(pln_attrs_find(s->engine, a->v.dict, "kind")) &&
         is_string(pln_attrs_find(s->engine, a->v.dict, "tag")) &&
         is_names(pln_attrs_find(s->engine, a->v.dict, "keys"));
}

/* A Target's host is a Target too, but is printed as a plain dictionary. */
static void open_level(pln_script_printer *s, level *stack, uint32_t *top,
                       const pln_attr *a) {
  bool list = a->kind == PLN_ATTR_LIST;
  bool inside = *top > 0 && stack[*top - 1].end[0] == '}' &&
                stack[*top - 1].end[1] == ')';
  bool target = !inside && is_target(s, a);
  if (*top == MAX_LEVELS) {
    pln_script_write(s, "...");
    return;
  }
  pln_script_write(s, target ? "T.target({" : list ? "[" : "{");
  stack[(*top)++] = (level){.attrs = a->v.dict,
                            .list = list,
                            .end = target ? "})"
                                   : list ? "]"
                                          : "}"};
}

/* The transforms of layouts stand where their key sorts; `name` is NULL behind
 * the last entry. */
static void put_layouts_before(pln_script_printer *s, const char *name,
                               bool *first) {
  if (s->n_layouts == 0 || (name && strcmp(name, "layout_transform_map") < 0))
    return;
  pln_script_write(s, *first ? "" : ", ");
  pln_script_layouts(s);
  *first = false;
}

void pln_script_attrs(pln_script_printer *s, pln_attrs attrs, const char *but) {
  level stack[MAX_LEVELS];
  uint32_t top = 0;
  bool first = true;
  pln_attr whole = {.kind = PLN_ATTR_DICT, .v.dict = attrs};
  open_level(s, stack, &top, &whole);
  while (top > 0 && s->status == PLN_OK) {
    level *l = &stack[top - 1];
    if (l->next == pln_attrs_count(s->engine, l->attrs)) {
      if (top == 1)
        put_layouts_before(s, NULL, &first);
      pln_script_write(s, l->end);
      top--;
      first = false;
      continue;
    }
    const pln_attr *a = pln_attrs_at(s->engine, l->attrs, l->next++);
    pln_slice name =
        l->list ? pln_text("") : pln_symbol_text(s->engine, a->name);
    if (top == 1 && but && !strcmp(name.data, but))
      continue;
    if (top == 1)
      put_layouts_before(s, name.data, &first);
    pln_script_write(s, first ? "" : ", ");
    if (!l->list) {
      pln_script_write_quoted(s, name);
      pln_script_write(s, ": ");
    }
    first = a->kind == PLN_ATTR_DICT || a->kind == PLN_ATTR_LIST;
    if (first)
      open_level(s, stack, &top, a);
    else
      push_script_atom(s, a);
  }
}

/* --------------------------------------------------------------- operators */

/* `call` is printed where reading the other form would fold. */
typedef struct operator_row {
  pln_kind kind;
  const char *sign; /* NULL: `name` is printed as a call */
  const char *call;
  uint8_t prec;
  const char *name;
} operator_row;

static const operator_row operators[] = {
    {PLN_PRIM_ADD, " + ", "T.Add(", PLN_PREC_ADD, NULL},
    {PLN_PRIM_SUB, " - ", "T.Sub(", PLN_PREC_ADD, NULL},
    {PLN_PRIM_MUL, " * ", "T.Mul(", PLN_PREC_MUL, NULL},
    {PLN_PRIM_DIV, " / ", "T.Div(", PLN_PREC_MUL, NULL},
    {PLN_PRIM_FLOORDIV, " // ", "T.FloorDiv(", PLN_PREC_MUL, NULL},
    {PLN_PRIM_FLOORMOD, " % ", "T.FloorMod(", PLN_PREC_MUL, NULL},
    {PLN_PRIM_MOD, NULL, "T.Mod(", PLN_PREC_ATOM, "T.truncmod("},
    {PLN_PRIM_MIN, NULL, "T.Min(", PLN_PREC_ATOM, "T.min("},
    {PLN_PRIM_MAX, NULL, "T.Max(", PLN_PREC_ATOM, "T.max("},
    {PLN_PRIM_EQ, " == ", "T.EQ(", PLN_PREC_COMPARE, NULL},
    {PLN_PRIM_NE, " != ", "T.NE(", PLN_PREC_COMPARE, NULL},
    {PLN_PRIM_LT, " < ", "T.LT(", PLN_PREC_COMPARE, NULL},
    {PLN_PRIM_LE, " <= ", "T.LE(", PLN_PREC_COMPARE, NULL},
    {PLN_PRIM_GT, " > ", "T.GT(", PLN_PREC_COMPARE, NULL},
    {PLN_PRIM_GE, " >= ", "T.GE(", PLN_PREC_COMPARE, NULL},
    {PLN_PRIM_AND, " and ", "T.And(", PLN_PREC_AND, NULL},
    {PLN_PRIM_OR, " or ", "T.Or(", PLN_PREC_OR, NULL},
};

static bool has_integer_dtype(const pln_script_printer *s, pln_ref ref) {
  pln_slice name = pln_text(
      pln_dtype_name(pln_type_dtype(s->engine, s->g->nodes[ref].type)));
  return name.size > 3 &&
         (!memcmp(name.data, "int", 3) || !memcmp(name.data, "uint", 4));
}

static void binary(pln_script_printer *s, const pln_node *n,
                   const operator_row *row, uint8_t least) {
  pln_ref a = s->g->operands[n->first], b = s->g->operands[n->first + 1];
  bool folds = pln_would_simplify(s->engine, s->g, row->kind, a, b);
  bool call = !row->sign || folds ||
              (row->kind == PLN_PRIM_DIV && has_integer_dtype(s, a));
  if (call) {
    push_script_text(s, ")");
    push_list(s, n, 0, 2);
    pln_script_write(s, row->name && !folds ? row->name : row->call);
    return;
  }
  if (row->prec < least) {
    pln_script_write(s, "(");
    push_script_text(s, ")");
  }
  push_node(s, b, row->prec + 1);
  push_script_text(s, row->sign);
  push_node(s, a, row->prec);
}

/* -------------------------------------------------------------------- calls */

static void print_builtin_call(pln_script_printer *s, const pln_node *n) {
  if (!n->data) {
    const pln_node *callee = &s->g->nodes[s->g->operands[n->first]];
    pln_script_write(s, s->module);
    pln_script_write_slice(s, pln_symbol_text(s->engine, callee->data));
    pln_script_write(s, "(");
    push_script_text(s, ")");
    push_list(s, n, 1, n->count);
    return;
  }
  const pln_builtin_info *row = pln_builtin_row(n->data);
  pln_script_write(s, "T.");
  pln_script_write(s, row->script);
  pln_script_write(s, "(");
  push_script_text(s, ")");
  if (row->place == PLN_DTYPE_LAST) {
    push_script_fragment(s,
                         (pln_script_fragment){.what = DTYPE, .ref = n->type});
    push_script_text(s, n->count > 0 ? ", " : "");
  }
  push_list(s, n, 0, n->count);
  if (row->place == PLN_DTYPE_FIRST) {
    pln_script_dtype(s, n->type);
    pln_script_write(s, n->count > 0 ? ", " : "");
  }
}

static void reducer(pln_script_printer *s, const pln_node *n) {
  uint32_t k = n->count / 4, frame = s->n_frames - 1;
  for (uint32_t i = 0; i < 2 * k; i++)
    if (!pln_script_find(s, s->g->operands[n->first + i]))
      pln_script_define(s, s->g->operands[n->first + i], frame);
  pln_script_write(s, "T.comm_reducer(lambda ");
  push_script_text(s, "])");
  push_list(s, n, 3 * k, 4 * k);
  push_script_text(s, k == 1 ? ", [" : "), [");
  push_list(s, n, 2 * k, 3 * k);
  push_script_text(s, k == 1 ? ": " : ": (");
  push_list(s, n, 0, 2 * k);
}

static void print_reduce(pln_script_printer *s, const pln_node *n) {
  uint32_t k = s->g->nodes[s->g->operands[n->first]].count / 4;
  uint32_t axes = 2 + k + n->results;
  pln_script_write(s, "T.reduce(");
  push_script_text(s, ")");
  push_number(s, n->data, 0);
  push_script_text(s, ", value_index=");
  push_node(s, s->g->operands[n->first + 1], PLN_PREC_ANY);
  push_script_text(s, "], condition=");
  push_list(s, n, axes, n->count);
  push_script_text(s, "], axis=[");
  push_list(s, n, 2 + k, axes);
  push_script_text(s, "], init=[");
  push_list(s, n, 2, 2 + k);
  push_script_text(s, ", source=[");
  push_node(s, s->g->operands[n->first], PLN_PREC_ANY);
}

static void iter_var(pln_script_printer *s, const pln_node *n) {
  static const char *const types[] = {
      "DataPar",  "ThreadIndex", "CommReduce",   "Ordered",   "Opaque",
      "Unrolled", "Vectorized",  "Parallelized", "Tensorized"};
  pln_script_write(s, "T.iter_var(");
  push_script_text(s, ")");
  push_script_fragment(s, (pln_script_fragment){.what = TAG, .ref = n->attrs});
  push_script_text(s, "\", ");
  push_script_text(s, types[n->data < PLN_COUNT(types) ? n->data : 0]);
  push_script_text(s, ", \"");
  if (n->count > 1)
    push_node(s, s->g->operands[n->first + 1], PLN_PREC_ANY);
  else
    push_script_text(s, "None");
  push_script_text(s, ", ");
  push_node(s, s->g->operands[n->first], PLN_PREC_ANY);
}

/* ------------------------------------------------------------------ indices */

/* base + number of an integer type, folded as TVM does. */
static void push_plus(pln_script_printer *s, pln_ref base, int64_t number) {
  const pln_node *n = &s->g->nodes[base];
  int64_t sum;
  bool folds = n->kind == PLN_INT_IMM &&
               !__builtin_add_overflow(pln_node_int(s->g, base), number, &sum);
  if (folds) {
    push_number(s, sum, n->type);
    return;
  }
  push_number(s, number, n->type);
  push_script_text(s, " + ");
  push_node(s, base, PLN_PREC_ADD);
}

/* The end of a range, after the colon. */
static void push_end(pln_script_printer *s, pln_ref min, pln_ref extent) {
  const pln_graph *g = s->g;
  if (pln_is_int(g, min, 0)) {
    push_node(s, extent, PLN_PREC_ANY);
  } else if (pln_is_int(g, extent, 0)) {
    push_node(s, min, PLN_PREC_ANY);
  } else if (g->nodes[extent].kind == PLN_INT_IMM) {
    push_plus(s, min, pln_node_int(g, extent));
  } else {
    push_node(s, extent, PLN_PREC_ADD + 1);
    push_script_text(s, " + ");
    push_node(s, min, PLN_PREC_ADD);
  }
}

static void push_range(pln_script_printer *s, const pln_node *n, bool full) {
  pln_ref min = s->g->operands[n->first];
  pln_ref extent = s->g->operands[n->first + 1];
  if (!full && pln_is_int(s->g, extent, 1)) {
    push_node(s, min, PLN_PREC_ANY);
    return;
  }
  push_end(s, min, extent);
  push_script_text(s, ":");
  push_node(s, min, PLN_PREC_ANY);
}

/* base:base + lanes * stride:stride of a Ramp of constant stride. */
static void push_ramp(pln_script_printer *s, const pln_node *n) {
  pln_ref base = s->g->operands[n->first];
  pln_ref stride = s->g->operands[n->first + 1];
  int64_t length;
  if (__builtin_mul_overflow(pln_node_int(s->g, stride), (int64_t)n->data,
                             &length))
    length = 0;
  if (!pln_is_int(s->g, stride, 1)) {
    push_node(s, stride, PLN_PREC_ANY);
    push_script_text(s, ":");
  }
  push_plus(s, base, length);
  push_script_text(s, ":");
  push_node(s, base, PLN_PREC_ANY);
}

/* `full`: a range of length one is printed as a range. */
static void push_index(pln_script_printer *s, pln_ref ref, bool full) {
  const pln_node *n = &s->g->nodes[ref];
  bool ramp = n->kind == PLN_RAMP &&
              s->g->nodes[s->g->operands[n->first + 1]].kind == PLN_INT_IMM;
  if (n->kind == PLN_RANGE)
    push_range(s, n, full);
  else if (ramp)
    push_ramp(s, n);
  else
    push_node(s, ref, PLN_PREC_ANY);
}

static void push_indices(pln_script_printer *s, pln_ref buffer,
                         const pln_ref *indices, uint32_t n, bool full) {
  push_script_text(s, "]");
  for (uint32_t i = n; i-- > 0;) {
    push_index(s, indices[i], full);
    if (i > 0)
      push_script_text(s, ", ");
  }
  push_script_text(s, n == 0 ? "[()" : "[");
  push_node(s, buffer, PLN_PREC_ATOM);
}

/* -------------------------------------------------------------------- nodes */

static void put_int(pln_script_printer *s, int64_t value, pln_type type) {
  pln_dtype dtype = pln_type_dtype(s->engine, type);
  if (dtype == PLN_INT32 || !type) {
    pln_script_write_int(s, value);
    return;
  }
  if (dtype == PLN_BOOL) {
    pln_script_write(s, value ? "T.bool(True)" : "T.bool(False)");
    return;
  }
  pln_script_type(s, type);
  pln_script_write(s, "(");
  pln_script_write_int(s, value);
  pln_script_write(s, ")");
}

static void put_float(pln_script_printer *s, pln_ref ref, const pln_node *n) {
  pln_script_type(s, n->type);
  pln_script_write(s, "(");
  pln_script_number(s, pln_node_float(s->g, ref));
  pln_script_write(s, ")");
}

static void put_name(pln_script_printer *s, pln_ref ref) {
  const pln_script_name *name = pln_script_find(s, ref);
  if (name && name->word == PLN_NONE) {
    pln_script_name field = *name;
    const pln_script_name *buffer = pln_script_find(s, field.buffer);
    if (buffer && buffer->word != PLN_NONE)
      pln_script_write_slice(
          s, pln_symbol_text(s->engine, s->words[buffer->word].symbol));
    pln_script_write(s, field.field == PLN_SCRIPT_DATA     ? ".data"
                        : field.field == PLN_SCRIPT_OFFSET ? ".elem_offset"
                                                           : ".strides[");
    if (field.field != PLN_SCRIPT_STRIDE)
      return;
    pln_script_write_int(s, field.index);
    pln_script_write(s, "]");
  } else if (name) {
    pln_script_write_slice(
        s, pln_symbol_text(s->engine, s->words[name->word].symbol));
  } else {
    pln_script_write(s, "_");
  }
}

static const operator_row *operator_of(pln_kind kind) {
  for (size_t i = 0; i < PLN_COUNT(operators); i++)
    if (operators[i].kind == kind)
      return &operators[i];
  return NULL;
}

/* T.Name(operands) */
static void spelled(pln_script_printer *s, const pln_node *n, const char *name,
                    uint32_t first) {
  pln_script_write(s, name);
  push_script_text(s, ")");
  push_list(s, n, first, n->count);
}

static void vector(pln_script_printer *s, const pln_node *n, const char *name) {
  pln_script_write(s, name);
  push_script_text(s, ")");
  push_number(s, n->data, 0);
  push_script_text(s, ", ");
  push_list(s, n, 0, n->count);
}

static void shuffle(pln_script_printer *s, const pln_node *n) {
  pln_script_write(s, "T.Shuffle([");
  push_script_text(s, "])");
  push_list(s, n, n->data, n->count);
  push_script_text(s, "], [");
  push_list(s, n, 0, n->data);
}

static void array(pln_script_printer *s, const pln_node *n) {
  pln_script_write(s, "[");
  push_script_text(s, "]");
  push_list(s, n, 0, n->count);
}

static void let(pln_script_printer *s, const pln_node *n) {
  const pln_ref *o = s->g->operands + n->first;
  pln_script_write(s, "T.Let(");
  push_script_text(s, "})");
  push_node(s, o[1], PLN_PREC_ANY);
  push_script_text(s, ": ");
  push_node(s, o[0], PLN_PREC_ANY);
  push_script_text(s, ", where={");
  push_node(s, o[2], PLN_PREC_ANY);
}

static void negation(pln_script_printer *s, const pln_node *n, uint8_t least) {
  if (PLN_PREC_NOT < least) {
    pln_script_write(s, "(");
    push_script_text(s, ")");
  }
  pln_script_write(s, "not ");
  push_node(s, s->g->operands[n->first], PLN_PREC_NOT);
}

static void write_node(pln_script_printer *s, pln_ref ref, uint8_t least) {
  const pln_node *n = &s->g->nodes[ref];
  const pln_ref *o = s->g->operands + n->first;
  const operator_row *row = operator_of((pln_kind)n->kind);
  pln_script_note_place(s, ref);
  if (row) {
    binary(s, n, row, least);
    return;
  }
  switch ((pln_kind)n->kind) {
  case PLN_VAR:
  case PLN_BUFFER: put_name(s, ref); break;
  case PLN_INT_IMM: put_int(s, pln_node_int(s->g, ref), n->type); break;
  case PLN_FLOAT_IMM: put_float(s, ref, n); break;
  case PLN_STRING_IMM:
    pln_script_write_quoted(s, pln_symbol_text(s->engine, n->data));
    break;
  case PLN_PRIM_CAST:
    pln_script_write(s, "T.Cast(");
    pln_script_dtype(s, n->type);
    spelled(s, n, ", ", 0);
    break;
  case PLN_PRIM_NOT: negation(s, n, least); break;
  case PLN_SELECT: spelled(s, n, "T.Select(", 0); break;
  case PLN_BUFFER_LOAD:
  case PLN_PRODUCER_LOAD:
  case PLN_BUFFER_REGION:
    push_indices(s, o[0], o + 1, n->count - 1, false);
    break;
  case PLN_RAMP: vector(s, n, "T.Ramp("); break;
  case PLN_BROADCAST: vector(s, n, "T.Broadcast("); break;
  case PLN_PRIM_LET: let(s, n); break;
  case PLN_PRIM_CALL: print_builtin_call(s, n); break;
  case PLN_SHUFFLE: shuffle(s, n); break;
  case PLN_COMM_REDUCER: reducer(s, n); break;
  case PLN_REDUCE: print_reduce(s, n); break;
  case PLN_RANGE: spelled(s, n, "T.Range(", 0); break;
  case PLN_ITER_VAR: iter_var(s, n); break;
  case PLN_ANY: pln_script_write(s, "T.Any()"); break;
  case PLN_PRIM_ARRAY: array(s, n); break;
  case PLN_GLOBAL_VAR:
    pln_script_write_slice(s, pln_symbol_text(s->engine, n->data));
    break;
  default: pln_script_write(s, "None"); break;
  }
}

static void write_script_fragment(pln_script_printer *s,
                                  const pln_script_fragment *fragment) {
  switch (fragment->what) {
  case NODE: write_node(s, fragment->ref, fragment->least); break;
  case NUMBER: put_int(s, fragment->number, fragment->ref); break;
  case DTYPE: pln_script_dtype(s, fragment->ref); break;
  case TAG:
    pln_script_write_quoted(
        s, pln_attrs_string(s->engine, fragment->ref, "thread_tag", ""));
    break;
  default: pln_script_write(s, fragment->text); break;
  }
}

/* The most fragments of one expression. Its text repeats what is shared, so
 * that it may be exponentially longer than the expression has nodes. */
static uint64_t most_fragments(const pln_script_printer *s) {
  return (UINT64_C(1) << 22) + UINT64_C(64) * s->g->n_nodes;
}

static void refuse_long_text(pln_script_printer *s) {
  s->status = pln_diag_error(s->engine, PLN_ERR_LIMIT, NULL,
                             "the text of an expression is too long: it "
                             "repeats parts that the expression shares; a "
                             "variable (LetStmt, Let) for each such part makes "
                             "it short");
}

static void write_script_fragments(pln_script_printer *s, uint32_t bottom) {
  uint64_t left = most_fragments(s);
  while (s->n_fragments > bottom && s->status == PLN_OK) {
    pln_script_fragment fragment = s->fragments[--s->n_fragments];
    write_script_fragment(s, &fragment);
    if (left-- == 0)
      refuse_long_text(s);
  }
}

void pln_script_expr(pln_script_printer *s, pln_ref ref) {
  uint32_t bottom = s->n_fragments;
  push_node(s, ref, PLN_PREC_ANY);
  write_script_fragments(s, bottom);
}

void pln_script_indices(pln_script_printer *s, pln_ref buffer,
                        const pln_ref *indices, uint32_t n, bool full) {
  uint32_t bottom = s->n_fragments;
  push_indices(s, buffer, indices, n, full);
  write_script_fragments(s, bottom);
}

void pln_script_sum(pln_script_printer *s, pln_ref min, pln_ref extent) {
  uint32_t bottom = s->n_fragments;
  push_end(s, min, extent);
  write_script_fragments(s, bottom);
}
