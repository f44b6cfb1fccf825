/* tir/script/buffer.c: prints declarations of buffers and of unbound variables.
 *
 * Called by script/print.c for each statement before its line is written. A
 * buffer may define its data, strides and offset; these are then written as its
 * fields. Nothing recurses: what a buffer needs is declared with the same
 * stack. */

#include "ir/tir/script/script.h"

#define LEAVE 0x80000000u

/* The default alignment of buffers in TVM. */
enum { USUAL_ALIGNMENT = 64 };

static uint32_t operand_count(const pln_node *n) {
  return n->count;
}

static pln_ref declared_operand(const pln_script_printer *s, pln_ref ref,
                                uint32_t i) {
  return s->g->operands[s->g->nodes[ref].first + i];
}

static bool is_new(const pln_script_printer *s, pln_ref ref) {
  return s->g->nodes[ref].kind == PLN_VAR && !pln_script_find(s, ref);
}

/* Counts the occurrences of a variable among the operands of a buffer. */
static uint32_t count_buffer_uses(const pln_script_printer *s, pln_ref buffer,
                                  pln_ref var) {
  uint32_t uses = 0;
  for (uint32_t i = 0; i < operand_count(&s->g->nodes[buffer]); i++)
    uses += declared_operand(s, buffer, i) == var;
  return uses;
}

/* ------------------------------------------------------------- declarations */

/* Inserts a line before the current statement of the frame. */
static void insert_line_before(pln_script_printer *s, size_t offset,
                               uint32_t frame) {
  pln_script_frame *f = &s->frames[frame];
  f->mark = pln_script_line_insert(s, offset, f->indent, f->mark);
}

static void add_line(pln_script_printer *s, size_t offset,
                     const pln_script_declaration *d) {
  if (d->place == PLN_SCRIPT_INSERTED)
    insert_line_before(s, offset, d->frame);
  else
    pln_script_line_end(s, offset, d->indent);
}

static void put_creation(pln_script_printer *s, pln_ref var) {
  const pln_node *n = &s->g->nodes[var];
  bool pointer = pln_type_get_kind(s->engine, n->type) == PLN_TYPE_POINTER;
  pln_script_type(s, n->type);
  if (!pointer)
    pln_script_write(s, n->results ? "(is_size_var=True)" : "()");
}

static void declare_var(pln_script_printer *s, pln_ref var) {
  uint32_t frame = pln_script_frame_of(s, var);
  size_t offset = s->text.size;
  pln_script_define(s, var, frame);
  pln_script_expr(s, var);
  pln_script_write(s, " = ");
  put_creation(s, var);
  insert_line_before(s, offset, frame);
}

/* Declares variables in one line: "m, n = T.int32(), T.int32()". */
static void declare_vars(pln_script_printer *s, const pln_ref *vars, uint32_t n,
                         const pln_script_declaration *d) {
  size_t offset = s->text.size;
  if (n == 0)
    return;
  for (uint32_t i = 0; i < n; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    pln_script_expr(s, vars[i]);
  }
  pln_script_write(s, " = ");
  for (uint32_t i = 0; i < n; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    put_creation(s, vars[i]);
  }
  add_line(s, offset, d);
}

/* ------------------------------------------------------------------ buffers */

static pln_slice buffer_scope_of(const pln_script_printer *s, pln_ref buffer) {
  pln_type data = s->g->nodes[declared_operand(s, buffer, 0)].type;
  pln_slice scope =
      pln_symbol_text(s->engine, pln_type_symbol(s->engine, data));
  return scope.size > 0 ? scope : pln_text("global");
}

static bool is_global(pln_slice scope) {
  return scope.size == 6 && !memcmp(scope.data, "global", 6);
}

static int64_t attr_int(const pln_script_printer *s, pln_ref buffer,
                        const char *name, int64_t usual) {
  return pln_attrs_int(s->engine, s->g->nodes[buffer].attrs, name, usual);
}

static bool is_constant(const pln_script_printer *s, pln_ref ref) {
  pln_kind kind = (pln_kind)s->g->nodes[ref].kind;
  return kind == PLN_INT_IMM;
}

/* Transforms of layouts are attributes of the function in TVMScript. */
static bool has_options(const pln_script_printer *s, pln_attrs attrs) {
  return attrs && (pln_attrs_count(s->engine, attrs) > 1 ||
                   !pln_attrs_find(s->engine, attrs, "layout_transforms"));
}

bool pln_script_has_usual_data(const pln_script_printer *s, pln_ref buffer) {
  pln_type data = s->g->nodes[declared_operand(s, buffer, 0)].type;
  pln_type type = s->g->nodes[buffer].type;
  if (pln_type_get_kind(s->engine, data) != PLN_TYPE_POINTER)
    return false;
  pln_type element = pln_type_part_at(s->engine, data, 0);
  pln_dtype dtype = pln_type_dtype(s->engine, type);
  return pln_type_dtype(s->engine, element) ==
             (dtype == PLN_BOOL ? PLN_INT8 : dtype) &&
         pln_type_number(s->engine, element) ==
             pln_type_number(s->engine, type);
}

bool pln_script_is_plain(const pln_script_printer *s, pln_ref buffer) {
  const pln_node *n = &s->g->nodes[buffer];
  if (n->count != 2u + n->results || has_options(s, n->attrs) ||
      !pln_script_has_usual_data(s, buffer))
    return false;
  for (uint32_t i = 0; i < n->results; i++)
    if (!is_constant(s, declared_operand(s, buffer, 1 + i)))
      return false;
  return pln_is_int(s->g, declared_operand(s, buffer, n->count - 1), 0) &&
         is_global(buffer_scope_of(s, buffer));
}

static void put_tuple(pln_script_printer *s, pln_ref buffer, uint32_t first,
                      uint32_t n) {
  pln_script_write(s, "(");
  for (uint32_t i = 0; i < n; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    pln_script_expr(s, declared_operand(s, buffer, first + i));
  }
  pln_script_write(s, n == 1 ? ",)" : ")");
}

static bool is_float32(const pln_script_printer *s, pln_type type) {
  return pln_type_dtype(s->engine, type) == PLN_FLOAT32 &&
         pln_type_number(s->engine, type) == 1;
}

/* What the declaration of a buffer defines: its fields, or variables declared
 * before it, at most one per operand. */
typedef struct defined {
  pln_ref vars[64];
  uint32_t n;
  bool data, offset;    /* defined as fields, so not printed as arguments */
  uint64_t strides[16]; /* bit i: stride i is defined as a field */
} defined;

static void define_var(pln_script_printer *s, defined *d, pln_ref var,
                       uint32_t frame) {
  if (d->n == PLN_COUNT(d->vars)) {
    declare_var(s, var);
    return;
  }
  pln_script_define(s, var, frame);
  d->vars[d->n++] = var;
}

static bool define_field(pln_script_printer *s, defined *d, pln_ref buffer,
                         uint32_t i, uint32_t what, uint32_t index,
                         uint32_t frame) {
  pln_ref var = declared_operand(s, buffer, i);
  if (count_buffer_uses(s, buffer, var) == 1) {
    pln_script_define_field(s, var, buffer, what, index, frame);
    return true;
  }
  define_var(s, d, var, frame);
  return false;
}

static void define_parts(pln_script_printer *s, defined *d, pln_ref buffer,
                         int defines, uint32_t frame) {
  const pln_node *n = &s->g->nodes[buffer];
  uint32_t rank = n->results, last = n->count - 1;
  for (uint32_t i = 0; i < rank; i++)
    if (is_new(s, declared_operand(s, buffer, 1 + i)))
      define_var(s, d, declared_operand(s, buffer, 1 + i), frame);
  if (is_new(s, declared_operand(s, buffer, 0))) {
    if (defines >= PLN_DEFINES_DATA && pln_script_has_usual_data(s, buffer))
      d->data = define_field(s, d, buffer, 0, PLN_SCRIPT_DATA, 0, frame);
    else
      define_var(s, d, declared_operand(s, buffer, 0), frame);
  }
  for (uint32_t i = 1 + rank; i < last; i++)
    if (is_new(s, declared_operand(s, buffer, i)) &&
        define_field(s, d, buffer, i, PLN_SCRIPT_STRIDE, i - 1 - rank, frame))
      d->strides[(i - 1 - rank) / 64] |= UINT64_C(1) << (i - 1 - rank) % 64;
  if (is_new(s, declared_operand(s, buffer, last)))
    d->offset = define_field(s, d, buffer, last, PLN_SCRIPT_OFFSET, 0, frame);
}

/* Prints the strides. One that the buffer itself defines is printed as its name
 * in quotes. */
static void put_strides(pln_script_printer *s, const defined *d,
                        pln_ref buffer) {
  const pln_node *n = &s->g->nodes[buffer];
  uint32_t rank = n->results, strides = n->count - 2 - rank;
  pln_script_write(s, ", strides=(");
  for (uint32_t i = 0; i < strides; i++) {
    pln_ref stride = declared_operand(s, buffer, 1 + rank + i);
    pln_script_write(s, i > 0 ? ", " : "");
    if (d->strides[i / 64] >> i % 64 & 1)
      pln_script_write_quoted(
          s, pln_symbol_text(s->engine, s->g->nodes[stride].attrs));
    else
      pln_script_expr(s, stride);
  }
  pln_script_write(s, strides == 1 ? ",)" : ")");
}

static void put_separators(pln_script_printer *s, pln_ref buffer) {
  const pln_attr *a =
      pln_attrs_find(s->engine, s->g->nodes[buffer].attrs, "axis_separators");
  if (!a || a->kind != PLN_ATTR_INTS)
    return;
  pln_script_write(s, ", axis_separators=[");
  for (uint32_t i = 0; i < a->count; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    pln_script_write_int(s, a->v.ints[i]);
  }
  pln_script_write(s, "]");
}

static void put_option(pln_script_printer *s, pln_ref buffer, const char *name,
                       const char *key, int64_t usual, bool always) {
  int64_t value = attr_int(s, buffer, name, usual);
  if (value == usual && !always)
    return;
  pln_script_write(s, key);
  pln_script_write_int(s, value);
}

static void put_options(pln_script_printer *s, const defined *d,
                        pln_ref buffer) {
  const pln_node *n = &s->g->nodes[buffer];
  pln_ref offset = declared_operand(s, buffer, n->count - 1);
  pln_slice scope = buffer_scope_of(s, buffer);
  if (n->count > 2u + n->results)
    put_strides(s, d, buffer);
  if (!d->offset && !(is_constant(s, offset) && !pln_node_int(s->g, offset))) {
    pln_script_write(s, ", elem_offset=");
    pln_script_expr(s, offset);
  }
  if (!is_global(scope)) {
    pln_script_write(s, ", scope=");
    pln_script_write_quoted(s, scope);
  }
  put_option(s, buffer, "data_alignment", ", align=", USUAL_ALIGNMENT, false);
  put_option(s, buffer, "offset_factor", ", offset_factor=", 1, d->offset);
  if (pln_attrs_find(s->engine, n->attrs, "buffer_type"))
    pln_script_write(s, ", buffer_type=\"auto\"");
  put_separators(s, buffer);
}

void pln_script_annotation(pln_script_printer *s, pln_ref buffer,
                           uint32_t frame) {
  const pln_node *n = &s->g->nodes[buffer];
  defined d = {0};
  pln_script_define(s, buffer, frame);
  define_parts(s, &d, buffer, PLN_DEFINES_ALL, frame);
  pln_script_expr(s, buffer);
  pln_script_write(s, ": T.Buffer(");
  put_tuple(s, buffer, 1, n->results);
  pln_script_write(s, ", ");
  pln_script_dtype(s, n->type);
  pln_script_write(s, ")");
}

static void put_parts(pln_script_printer *s, const defined *parts,
                      const pln_script_declaration *d) {
  const pln_node *n = &s->g->nodes[d->buffer];
  pln_script_write(s, "T.");
  pln_script_write(s, d->method);
  pln_script_write(s, "(");
  if (d->first != PLN_NONE) {
    pln_script_expr(s, d->first);
    pln_script_write(s, ", ");
  }
  put_tuple(s, d->buffer, 1, n->results);
  if (!is_float32(s, n->type)) {
    pln_script_write(s, ", ");
    pln_script_dtype(s, n->type);
  }
  if (!parts->data) {
    pln_script_write(s, ", data=");
    pln_script_expr(s, declared_operand(s, d->buffer, 0));
  }
  put_options(s, parts, d->buffer);
  pln_script_write(s, ")");
}

/* T.func_attr behind the declaration. */
static void declare_layout(pln_script_printer *s,
                           const pln_script_declaration *d) {
  size_t offset = s->text.size;
  if (!pln_script_has_layout(s, d->buffer))
    return;
  s->layouts = &d->buffer;
  s->n_layouts = 1;
  pln_script_write(s, "T.func_attr({");
  pln_script_layouts(s);
  pln_script_write(s, "})");
  add_line(s, offset, d);
}

static void put_declaration(pln_script_printer *s,
                            const pln_script_declaration *d) {
  defined parts = {0};
  pln_script_define(s, d->buffer, d->frame);
  define_parts(s, &parts, d->buffer, d->defines, d->frame);
  declare_vars(s, parts.vars, parts.n, d);
  size_t offset = s->text.size;
  bool with = d->place == PLN_SCRIPT_WITH;
  if (!with)
    pln_script_expr(s, d->buffer);
  pln_script_write(s, with ? "with " : " = ");
  put_parts(s, &parts, d);
  if (with) {
    pln_script_write(s, " as ");
    pln_script_expr(s, d->buffer);
    pln_script_write(s, ":");
  }
  add_line(s, offset, d);
  if (!with)
    declare_layout(s, d);
}

/* --------------------------------------------------------- what nothing binds
 */

static void push_declared_operand(pln_script_printer *s, pln_ref entry) {
  if (s->status == PLN_OK)
    s->status = pln_mem_grow(s->engine, (void **)&s->stack, &s->cap_stack,
                             (size_t)s->n_stack + 1, sizeof *s->stack);
  if (s->status == PLN_OK)
    s->stack[s->n_stack++] = entry;
}

/* Pushes the operands of a buffer that must be declared before it. Its Vars are
 * declared with it. */
static void enter_buffer(pln_script_printer *s, pln_ref ref) {
  const pln_node *n = &s->g->nodes[ref];
  push_declared_operand(s, ref | LEAVE);
  for (uint32_t i = n->count; i-- > 1;)
    if (s->g->nodes[declared_operand(s, ref, i)].kind != PLN_VAR)
      push_declared_operand(s, declared_operand(s, ref, i));
}

static void enter_declared_node(pln_script_printer *s, pln_ref ref) {
  const pln_node *n = &s->g->nodes[ref];
  if (n->kind == PLN_VAR) {
    if (is_new(s, ref))
      declare_var(s, ref);
    return;
  }
  if (s->seen[ref] == s->walks)
    return;
  s->seen[ref] = s->walks;
  if (n->kind == PLN_BUFFER) {
    if (!pln_script_find(s, ref))
      enter_buffer(s, ref);
    return;
  }
  uint32_t first = n->kind == PLN_COMM_REDUCER ? n->count / 2 : 0;
  for (uint32_t i = n->count; i-- > first;)
    push_declared_operand(s, declared_operand(s, ref, i));
  if (n->kind == PLN_COMM_REDUCER)
    for (uint32_t i = 0; i < first; i++)
      if (is_new(s, declared_operand(s, ref, i)))
        pln_script_define(s, declared_operand(s, ref, i), s->n_frames - 1);
}

static void walk_declared_operands(pln_script_printer *s, uint32_t bottom) {
  while (s->n_stack > bottom && s->status == PLN_OK) {
    pln_ref entry = s->stack[--s->n_stack];
    pln_ref ref = entry & ~LEAVE;
    if (!(entry & LEAVE)) {
      enter_declared_node(s, ref);
      continue;
    }
    put_declaration(
        s, &(pln_script_declaration){.buffer = ref,
                                     .first = PLN_NONE,
                                     .method = "Buffer",
                                     .defines = PLN_DEFINES_DATA,
                                     .frame = pln_script_frame_of(s, ref)});
  }
}

void pln_script_declare(pln_script_printer *s, pln_ref ref) {
  uint32_t bottom = s->n_stack;
  push_declared_operand(s, ref);
  walk_declared_operands(s, bottom);
}

void pln_script_buffer(pln_script_printer *s, const pln_script_declaration *d) {
  uint32_t bottom = s->n_stack;
  s->walks++;
  for (uint32_t i = s->g->nodes[d->buffer].count; i-- > 1;)
    if (s->g->nodes[declared_operand(s, d->buffer, i)].kind != PLN_VAR)
      push_declared_operand(s, declared_operand(s, d->buffer, i));
  walk_declared_operands(s, bottom);
  if (d->first != PLN_NONE)
    pln_script_declare(s, d->first);
  put_declaration(s, d);
}
