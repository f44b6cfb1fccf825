/* tir/script/stmt.c: prints statements: one line each, and a frame for the
 * statements of each scope.
 *
 * Called by script/print.c. Invariants: a statement's names are declared before
 * its line is written; the last statement of a frame, if its body follows,
 * needs neither `with` nor indentation. */

#include <stdio.h>

#include "ir/tensor/tensor.h"
#include "ir/tir/script/script.h"

static const pln_node *node_at(const pln_script_printer *s, pln_ref ref) {
  return &s->g->nodes[ref];
}

static pln_ref statement_operand(const pln_script_printer *s, pln_ref ref,
                                 uint32_t i) {
  return s->g->operands[s->g->nodes[ref].first + i];
}

static const pln_scope_row *statement_scope_of(const pln_script_printer *s,
                                               pln_ref ref) {
  return &s->g->scopes[s->g->nodes[ref].data];
}

static uint32_t top_script_frame(const pln_script_printer *s) {
  return s->n_frames - 1;
}

static uint32_t indent_of(const pln_script_printer *s) {
  return s->frames[s->n_frames - 1].indent;
}

/* ------------------------------------------------------------------- frames */

void pln_script_push_frame(pln_script_printer *s,
                           const pln_script_frame *frame) {
  if (s->status == PLN_OK)
    s->status = pln_mem_grow(s->engine, (void **)&s->frames, &s->cap_frames,
                             (size_t)s->n_frames + 1, sizeof *s->frames);
  if (s->status == PLN_OK)
    s->frames[s->n_frames++] = *frame;
}

/* Opens a frame for the statements of a scope; names in it end with it. */
static void open_script_scope(pln_script_printer *s, pln_ref owner,
                              pln_scope scope, uint32_t indent) {
  const pln_scope_row *row = &s->g->scopes[scope];
  pln_ref head = s->head[scope];
  uint8_t kind = s->g->nodes[owner].kind;
  bool only = (kind == PLN_IF_THEN_ELSE || kind == PLN_BLOCK_INIT) &&
              head != PLN_NONE && s->next[head] == PLN_NONE;
  pln_script_push_frame(s, &(pln_script_frame){.next = s->head[scope],
                                               .begin = row->begin,
                                               .end = row->end,
                                               .other = PLN_NONE,
                                               .indent = indent,
                                               .mark = s->last,
                                               .owner = owner,
                                               .only = only ? head : PLN_NONE});
}

static void end_line(pln_script_printer *s, size_t offset, uint32_t indent) {
  pln_script_line_end(s, offset, indent);
  s->frames[top_script_frame(s)].mark = s->last;
}

/* ------------------------------------------------- statements with a body */

/* How the header of a statement with a body is written. */
typedef struct header {
  size_t offset;
  pln_ref owner;
  pln_ref name; /* the variable it binds, or PLN_NONE */
  bool concise;
  uint32_t indent;
} header;

/* Opens the frame of the body, so that variables of the header end with it. */
static header begin_header(pln_script_printer *s, pln_ref owner, bool concise) {
  header h = {.owner = owner, .name = PLN_NONE, .concise = concise};
  h.indent = indent_of(s);
  open_script_scope(s, owner, s->g->nodes[owner].data, h.indent + !concise);
  return h;
}

static void put_left(pln_script_printer *s, header *h, pln_ref name) {
  h->offset = s->text.size;
  h->name = name;
  if (!h->concise) {
    pln_script_write(s, "with ");
  } else if (name != PLN_NONE) {
    pln_script_expr(s, name);
    pln_script_write(s, " = ");
  }
}

static void end_header(pln_script_printer *s, const header *h) {
  if (!h->concise && h->name != PLN_NONE) {
    pln_script_write(s, " as ");
    pln_script_expr(s, h->name);
  }
  pln_script_write(s, h->concise ? "" : ":");
  end_line(s, h->offset, h->indent);
}

/* The name of a pointer ends with the frame around its statement. */
static void define_pointer(pln_script_printer *s, pln_ref owner) {
  const pln_scope_row *row = statement_scope_of(s, owner);
  if (row->n_params > 0 && !pln_script_find(s, row->begin))
    pln_script_define(s, row->begin, top_script_frame(s) - 1);
}

static void define_params(pln_script_printer *s, pln_ref owner) {
  const pln_scope_row *row = statement_scope_of(s, owner);
  for (uint32_t i = 0; i < row->n_params; i++)
    if (!pln_script_find(s, row->begin + i))
      pln_script_define(s, row->begin + i, top_script_frame(s));
}

static void put_exprs(pln_script_printer *s, pln_ref ref, uint32_t first,
                      uint32_t end) {
  for (uint32_t i = first; i < end; i++) {
    pln_script_write(s, i > first ? ", " : "");
    pln_script_expr(s, statement_operand(s, ref, i));
  }
}

static void print_let(pln_script_printer *s, pln_ref ref, bool concise) {
  pln_type type = node_at(s, statement_scope_of(s, ref)->begin)->type;
  bool pointer = pln_type_get_kind(s->engine, type) == PLN_TYPE_POINTER;
  pln_ref var = statement_scope_of(s, ref)->begin;
  header h = begin_header(s, ref, concise);
  define_params(s, ref);
  if (concise) {
    h.offset = s->text.size;
    pln_script_expr(s, var);
    if (pln_type_get_kind(s->engine, type) != PLN_TYPE_TUPLE) {
      pln_script_write(s, ": ");
      pln_script_type(s, type);
    }
    pln_script_write(s, " = ");
    pln_script_expr(s, statement_operand(s, ref, 0));
    end_line(s, h.offset, h.indent);
    return;
  }
  put_left(s, &h, var);
  pln_script_write(s, "T.LetStmt(");
  pln_script_expr(s, statement_operand(s, ref, 0));
  if (pointer) {
    pln_script_write(s, ", ");
    pln_script_type(s, type);
  }
  pln_script_write(s, ")");
  end_header(s, &h);
}

static void print_assert(pln_script_printer *s, pln_ref ref, bool concise) {
  header h = begin_header(s, ref, concise);
  h.offset = s->text.size;
  pln_script_write(s, concise ? "assert " : "with T.Assert(");
  put_exprs(s, ref, 0, 2);
  pln_script_write(s, concise ? "" : ")");
  end_header(s, &h);
}

/* `memory`: the storage scope given by the enclosing attribute, or PLN_NONE. */
static void print_realize(pln_script_printer *s, pln_ref ref, pln_ref memory,
                          bool concise) {
  const pln_node *n = node_at(s, ref);
  bool producer = n->kind == PLN_PRODUCER_REALIZE;
  header h = begin_header(s, ref, concise && !producer);
  put_left(s, &h, PLN_NONE);
  pln_script_write(s, producer ? "T.ProducerRealize(" : "T.realize(");
  pln_script_indices(s, statement_operand(s, ref, 0),
                     s->g->operands + n->first + 2, n->count - 2, true);
  if (memory != PLN_NONE) {
    pln_script_write(s, ", ");
    pln_script_expr(s, memory);
  }
  bool always = pln_is_int(s->g, statement_operand(s, ref, 1), 1);
  if (producer || !always) {
    pln_script_write(s, producer ? ", " : ", condition=");
    pln_script_expr(s, statement_operand(s, ref, 1));
  }
  pln_script_write(s, ")");
  end_header(s, &h);
}

/* ----------------------------------------------------------------- memory */

static void print_decl(pln_script_printer *s, pln_ref ref, bool concise,
                       int defines) {
  uint32_t indent = indent_of(s);
  open_script_scope(s, ref, s->g->nodes[ref].data, indent + !concise);
  pln_script_buffer(
      s, &(pln_script_declaration){.buffer = statement_operand(s, ref, 0),
                                   .first = PLN_NONE,
                                   .method = "decl_buffer",
                                   .defines = defines,
                                   .frame = top_script_frame(s),
                                   .place = concise ? PLN_SCRIPT_APPENDED
                                                    : PLN_SCRIPT_WITH,
                                   .indent = indent});
  s->frames[top_script_frame(s)].mark = s->last;
}

static bool is_dtype(const pln_script_printer *s, pln_slice text,
                     pln_type type) {
  uint32_t lanes = 1;
  pln_dtype dtype = pln_dtype_find_vector(text, &lanes);
  return dtype != PLN_DTYPE_NONE && dtype == pln_type_dtype(s->engine, type) &&
         lanes == pln_type_number(s->engine, type);
}

/* Memory that is declared as a buffer immediately; the declaration includes the
 * allocation. */
static bool is_declared(const pln_script_printer *s, pln_ref ref) {
  const pln_node *n = node_at(s, ref);
  pln_ref decl = s->head[n->data];
  if (decl == PLN_NONE || s->next[decl] != PLN_NONE ||
      node_at(s, decl)->kind != PLN_DECL_BUFFER)
    return false;
  pln_ref buffer = statement_operand(s, decl, 0);
  const pln_node *b = node_at(s, buffer);
  if (statement_operand(s, buffer, 0) != statement_scope_of(s, ref)->begin ||
      n->count - 1 != b->results || !pln_script_has_usual_data(s, buffer) ||
      !pln_is_int(s->g, statement_operand(s, ref, 0), 1) ||
      pln_attrs_find(s->engine, n->attrs, "annotations") ||
      !is_dtype(s, pln_attrs_string(s->engine, n->attrs, "dtype", ""), b->type))
    return false;
  for (uint32_t i = 1; i < n->count; i++)
    if (!pln_same_expr(s->g, statement_operand(s, ref, i),
                       statement_operand(s, buffer, i)))
      return false;
  return true;
}

static void put_annotations(pln_script_printer *s, pln_ref ref) {
  const pln_attr *a =
      pln_attrs_find(s->engine, node_at(s, ref)->attrs, "annotations");
  if (!a || a->kind != PLN_ATTR_DICT)
    return;
  pln_script_write(s, ", annotations=");
  pln_script_attrs(s, a->v.dict, NULL);
}

static void print_allocate(pln_script_printer *s, pln_ref ref, bool concise) {
  const pln_node *n = node_at(s, ref);
  if (is_declared(s, ref)) {
    print_decl(s, s->head[n->data], concise, PLN_DEFINES_DATA);
    return;
  }
  pln_ref var = statement_scope_of(s, ref)->begin;
  header h = begin_header(s, ref, concise);
  define_pointer(s, ref);
  put_left(s, &h, var);
  pln_script_write(s, "T.allocate([");
  put_exprs(s, ref, 1, n->count);
  pln_script_write(s, "], ");
  pln_script_dtype_text(s, pln_attrs_string(s->engine, n->attrs, "dtype", ""));
  pln_script_write(s, ", ");
  pln_symbol scope = pln_type_symbol(s->engine, node_at(s, var)->type);
  pln_script_write_quoted(s, pln_symbol_text(s->engine, scope));
  if (!pln_is_int(s->g, statement_operand(s, ref, 0), 1)) {
    pln_script_write(s, ", ");
    pln_script_expr(s, statement_operand(s, ref, 0));
  }
  put_annotations(s, ref);
  pln_script_write(s, ")");
  end_header(s, &h);
}

/* An element of a float tensor; false for other dtypes. */
static bool read_float(const pln_tensor *t, const void *data, size_t i,
                       double *out) {
  const char *at = data;
  float single;
  uint16_t half;
  switch (pln_tensor_dtype(t)) {
  case PLN_FLOAT16:
  case PLN_BFLOAT16:
    memcpy(&half, at + i * sizeof half, sizeof half);
    *out = (double)(pln_tensor_dtype(t) == PLN_FLOAT16
                        ? pln_half_to_float(half)
                        : pln_bfloat_to_float(half));
    return true;
  case PLN_FLOAT32:
    memcpy(&single, at + i * sizeof single, sizeof single);
    *out = (double)single;
    return true;
  case PLN_FLOAT64: memcpy(out, at + i * sizeof *out, sizeof *out); return true;
  default: return false;
  }
}

static bool has_numbers(const pln_script_printer *s, const pln_tensor *t,
                        const void *data) {
  int64_t whole;
  double value;
  return s->status == PLN_OK &&
         (pln_tensor_count(t) == 0 || pln_tensor_int(t, 0, &whole) ||
          read_float(t, data, 0, &value));
}

/* Prints elements as a list; non-numeric data is a metadata entry. */
static void write_allocated_data(pln_script_printer *s, const pln_tensor *t) {
  const void *data = NULL;
  int64_t whole;
  double value = 0;
  pln_script_fail(s, pln_tensor_data(t, &data));
  if (!has_numbers(s, t, data)) {
    pln_script_tensor(s, t);
    return;
  }
  pln_script_write(s, "[");
  for (size_t i = 0; i < pln_tensor_count(t) && s->status == PLN_OK; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    if (pln_tensor_int(t, i, &whole))
      pln_script_write_int(s, whole);
    else if (read_float(t, data, pln_tensor_is_splat(t) ? 0 : i, &value))
      pln_script_number(s, value);
  }
  pln_script_write(s, "]");
}

static void print_allocate_const(pln_script_printer *s, pln_ref ref,
                                 bool concise) {
  const pln_node *n = node_at(s, ref);
  const pln_attr *data = pln_attrs_find(s->engine, n->attrs, "data");
  header h = begin_header(s, ref, concise);
  define_pointer(s, ref);
  put_left(s, &h, statement_scope_of(s, ref)->begin);
  pln_script_write(s, "T.allocate_const(");
  if (data && data->kind == PLN_ATTR_TENSOR)
    write_allocated_data(s, data->v.tensor);
  else
    pln_script_write_int(s, data && data->kind == PLN_ATTR_INT ? data->v.i : 0);
  pln_script_write(s, ", ");
  pln_script_dtype_text(s, pln_attrs_string(s->engine, n->attrs, "dtype", ""));
  pln_script_write(s, ", [");
  put_exprs(s, ref, 0, n->count);
  pln_script_write(s, "]");
  put_annotations(s, ref);
  pln_script_write(s, ")");
  end_header(s, &h);
}

/* ------------------------------------------------------------------ threads */

static void put_tag(pln_script_printer *s, pln_ref iter) {
  pln_script_write_quoted(
      s,
      pln_attrs_string(s->engine, node_at(s, iter)->attrs, "thread_tag", ""));
}

/* A thread variable used outside the statement is declared further out. */
static void declare_thread(pln_script_printer *s, pln_ref iter, pln_ref var) {
  uint32_t frame = pln_script_frame_of(s, var);
  size_t offset = s->text.size;
  pln_script_define(s, var, frame);
  pln_script_expr(s, var);
  pln_script_write(s, " = T.env_thread(");
  put_tag(s, iter);
  pln_script_write(s, ")");
  pln_script_frame *f = &s->frames[frame];
  f->mark = pln_script_line_insert(s, offset, f->indent, f->mark);
}

static void print_thread(pln_script_printer *s, pln_ref ref, bool concise) {
  pln_ref iter = statement_operand(s, ref, 0),
          var = statement_operand(s, iter, 0);
  bool inside =
      s->low[var] >= statement_scope_of(s, ref)->begin && s->high[var] <= ref;
  bool defined = pln_script_find(s, var) != NULL;
  s->walks++;
  pln_script_declare(s, statement_operand(s, ref, 1));
  if (!defined && !inside)
    declare_thread(s, iter, var);
  header h = begin_header(s, ref, concise);
  if (!defined && inside)
    pln_script_define(s, var, top_script_frame(s));
  put_left(s, &h, !defined && inside ? var : PLN_NONE);
  pln_script_write(s, "T.launch_thread(");
  if (!defined && inside)
    put_tag(s, iter);
  else
    pln_script_expr(s, var);
  pln_script_write(s, ", ");
  pln_script_expr(s, statement_operand(s, ref, 1));
  pln_script_write(s, ")");
  end_header(s, &h);
}

static void print_attr(pln_script_printer *s, pln_ref ref, bool concise) {
  header h = begin_header(s, ref, concise);
  const pln_attr *dict =
      pln_attrs_find(s->engine, node_at(s, ref)->attrs, "node");
  put_left(s, &h, PLN_NONE);
  pln_script_write(s, "T.attr(");
  if (dict && dict->kind == PLN_ATTR_DICT)
    pln_script_attrs(s, dict->v.dict, NULL);
  else
    pln_script_expr(s, statement_operand(s, ref, 0));
  pln_script_write(s, ", ");
  pln_script_write_quoted(
      s, pln_attrs_string(s->engine, node_at(s, ref)->attrs, "attr_key", ""));
  pln_script_write(s, ", ");
  pln_script_expr(s, statement_operand(s, ref, 1));
  pln_script_write(s, ")");
  end_header(s, &h);
}

/* -------------------------------------------------------------------- loops */

static int64_t loop_kind(const pln_script_printer *s, pln_ref ref) {
  return pln_attrs_int(s->engine, node_at(s, ref)->attrs, "kind", 0);
}

/* True if an extent uses an index of the loops from scope `first` on. */
static bool depends(pln_script_printer *s, pln_ref extent, pln_scope first) {
  uint32_t bottom = s->n_stack;
  bool found = false;
  if (node_at(s, extent)->kind == PLN_INT_IMM)
    return false;
  s->walks++;
  pln_script_visit(s, extent);
  while (s->n_stack > bottom && s->status == PLN_OK) {
    pln_ref ref = s->stack[--s->n_stack];
    const pln_node *n = node_at(s, ref);
    if (s->seen[ref] == s->walks)
      continue;
    s->seen[ref] = s->walks;
    found = found || (n->kind == PLN_VAR && s->binder[ref] != PLN_NONE &&
                      s->binder[ref] >= first);
    for (uint32_t i = 0; i < n->count; i++)
      pln_script_visit(s, statement_operand(s, ref, i));
  }
  return found;
}

static bool in_grid(pln_script_printer *s, pln_ref ref, pln_scope first) {
  const pln_node *n = node_at(s, ref);
  return n->kind == PLN_FOR && loop_kind(s, ref) == 0 && n->count == 2 &&
         pln_is_int(s->g, statement_operand(s, ref, 0), 0) &&
         !pln_attrs_find(s->engine, n->attrs, "annotations") &&
         !depends(s, statement_operand(s, ref, 1), first);
}

/* The loop that is the entire body of a loop, or PLN_NONE. */
static pln_ref inner_loop(const pln_script_printer *s, pln_ref ref) {
  pln_ref inner = s->head[s->g->nodes[ref].data];
  return inner != PLN_NONE && s->next[inner] == PLN_NONE ? inner : PLN_NONE;
}

/* Declarations that only the body of a loop needs come after the header line,
 * which is reserved here and filled in later. What the header uses is declared
 * before it; TVM declares it after, which is no text that can be read. */
static uint32_t open_loop(pln_script_printer *s, pln_ref ref, uint32_t indent) {
  open_script_scope(s, ref, s->g->nodes[ref].data, indent + 1);
  uint32_t line = pln_script_line_end(s, s->text.size, indent);
  if (s->status == PLN_OK)
    s->frames[top_script_frame(s)].mark = line;
  return line;
}

static void end_loop(pln_script_printer *s, size_t offset, uint32_t line) {
  if (s->status != PLN_OK)
    return;
  s->lines[line].offset = offset;
  s->lines[line].size = s->text.size - offset;
}

/* The loops printed in one header, from `ref` to `last`: indices and
 * extents. */
static void put_grid(pln_script_printer *s, pln_ref ref, pln_ref last) {
  pln_script_write(s, "for ");
  for (pln_ref l = ref;; l = inner_loop(s, l)) {
    pln_script_write(s, l == ref ? "" : ", ");
    pln_script_expr(s, statement_scope_of(s, l)->begin);
    if (l == last)
      break;
  }
  pln_script_write(s, " in T.grid(");
  for (pln_ref l = ref;; l = inner_loop(s, l)) {
    pln_script_write(s, l == ref ? "" : ", ");
    pln_script_expr(s, statement_operand(s, l, 1));
    if (l == last)
      break;
  }
  pln_script_write(s, "):");
}

static bool print_grid(pln_script_printer *s, pln_ref ref) {
  pln_scope first = s->g->nodes[ref].data;
  pln_ref last = PLN_NONE;
  uint32_t n = 0, indent = indent_of(s);
  for (pln_ref l = ref; l != PLN_NONE && in_grid(s, l, first);
       l = inner_loop(s, l), n++)
    last = l;
  if (n < 2)
    return false;
  s->walks++;
  for (pln_ref l = ref;; l = inner_loop(s, l)) {
    pln_script_declare(s, statement_operand(s, l, 1));
    if (l == last)
      break;
  }
  uint32_t line = open_loop(s, ref, indent);
  for (pln_ref l = ref;; l = inner_loop(s, l)) {
    define_params(s, l);
    if (l == last)
      break;
  }
  if (s->status == PLN_OK)
    s->frames[top_script_frame(s)].next = s->head[s->g->nodes[last].data];
  size_t offset = s->text.size;
  put_grid(s, ref, last);
  end_loop(s, offset, line);
  return true;
}

static void put_for(pln_script_printer *s, pln_ref ref) {
  static const char *const names[] = {"range", "T.parallel", "T.vectorized",
                                      "T.unroll", "T.thread_binding"};
  const pln_node *n = node_at(s, ref);
  int64_t kind = loop_kind(s, ref);
  bool noted = pln_attrs_find(s->engine, n->attrs, "annotations") != NULL;
  pln_script_write(s, "for ");
  pln_script_expr(s, statement_scope_of(s, ref)->begin);
  pln_script_write(s, " in ");
  pln_script_write(s, kind == 0 && noted      ? "T.serial"
                      : kind >= 0 && kind < 5 ? names[kind]
                                              : "range");
  pln_script_write(s, "(");
  if (!pln_is_int(s->g, statement_operand(s, ref, 0), 0)) {
    pln_script_expr(s, statement_operand(s, ref, 0));
    pln_script_write(s, ", ");
  }
  pln_script_sum(s, statement_operand(s, ref, 0), statement_operand(s, ref, 1));
  if (n->count > 2) {
    pln_script_write(s, ", thread=");
    put_tag(s, statement_operand(s, ref, 2));
  }
  put_annotations(s, ref);
  pln_script_write(s, "):");
}

static void print_for(pln_script_printer *s, pln_ref ref) {
  if (node_at(s, ref)->count < 2 || print_grid(s, ref))
    return;
  s->walks++;
  pln_script_declare(s, statement_operand(s, ref, 0));
  pln_script_declare(s, statement_operand(s, ref, 1));
  uint32_t line = open_loop(s, ref, indent_of(s));
  define_params(s, ref);
  size_t offset = s->text.size;
  put_for(s, ref);
  end_loop(s, offset, line);
}

/* "if cond:", "while cond:" */
static void print_test(pln_script_printer *s, pln_ref ref, const char *word) {
  uint32_t indent = indent_of(s);
  pln_scope other = statement_scope_of(s, ref)->next;
  size_t offset = s->text.size;
  pln_script_write(s, word);
  pln_script_expr(s, statement_operand(s, ref, 0));
  pln_script_write(s, ":");
  pln_script_line_end(s, offset, indent);
  open_script_scope(s, ref, s->g->nodes[ref].data, indent + 1);
  if (s->status == PLN_OK)
    s->frames[top_script_frame(s)].other = other;
}

void pln_script_else(pln_script_printer *s, pln_ref owner, pln_scope other) {
  size_t offset = s->text.size;
  uint32_t indent = indent_of(s);
  pln_script_write(s, "else:");
  pln_script_line_end(s, offset, indent);
  open_script_scope(s, owner, other, indent + 1);
}

/* ------------------------------------------------------------------- blocks */

static int64_t iter_type(const pln_script_printer *s, pln_ref block,
                         uint32_t i) {
  const pln_attr *a =
      pln_attrs_find(s->engine, node_at(s, block)->attrs, "iter_types");
  return a && a->kind == PLN_ATTR_INTS && i < a->count ? a->v.ints[i] : 0;
}

/* A block variable with exactly the range of the loop index bound to it. */
static bool is_remapped(const pln_script_printer *s, pln_ref realize,
                        pln_ref block, uint32_t i) {
  int64_t type = iter_type(s, block, i);
  if (realize == PLN_NONE || (type != 0 && type != 2))
    return false;
  pln_ref value = statement_operand(s, realize, 1 + i),
          dom = statement_operand(s, block, i);
  if (node_at(s, value)->kind != PLN_VAR || s->binder[value] == PLN_NONE)
    return false;
  pln_ref loop = s->g->scopes[s->binder[value]].owner;
  return node_at(s, loop)->kind == PLN_FOR &&
         pln_same_expr(s->g, statement_operand(s, loop, 0),
                       statement_operand(s, dom, 0)) &&
         pln_same_expr(s->g, statement_operand(s, loop, 1),
                       statement_operand(s, dom, 1));
}

static void print_axis(pln_script_printer *s, pln_ref realize, pln_ref block,
                       uint32_t i) {
  int64_t type = iter_type(s, block, i);
  pln_ref dom = statement_operand(s, block, i),
          var = statement_scope_of(s, block)->begin + i;
  pln_script_define(s, var, top_script_frame(s));
  size_t offset = s->text.size;
  pln_script_expr(s, var);
  pln_script_write(s, type == 0   ? " = T.axis.spatial("
                      : type == 2 ? " = T.axis.reduce("
                      : type == 3 ? " = T.axis.scan("
                                  : " = T.axis.opaque(");
  bool zero = pln_is_int(s->g, statement_operand(s, dom, 0), 0);
  if (!zero) {
    pln_script_write(s, "(");
    pln_script_expr(s, statement_operand(s, dom, 0));
    pln_script_write(s, ", ");
  }
  pln_script_sum(s, statement_operand(s, dom, 0), statement_operand(s, dom, 1));
  pln_script_write(s, zero ? "" : ")");
  if (realize != PLN_NONE) {
    pln_script_write(s, ", ");
    pln_script_expr(s, statement_operand(s, realize, 1 + i));
  }
  pln_script_write(s, ")");
  end_line(s, offset, indent_of(s));
}

/* Prints variables [first, end), which are all remapped. */
static void print_remap(pln_script_printer *s, pln_ref realize, pln_ref block,
                        uint32_t first, uint32_t end) {
  if (end - first == 1)
    print_axis(s, realize, block, first);
  if (end - first < 2)
    return;
  size_t offset = s->text.size;
  for (uint32_t i = first; i < end; i++) {
    pln_ref var = statement_scope_of(s, block)->begin + i;
    pln_script_define(s, var, top_script_frame(s));
    pln_script_write(s, i > first ? ", " : "");
    pln_script_expr(s, var);
  }
  pln_script_write(s, " = T.axis.remap(\"");
  for (uint32_t i = first; i < end; i++)
    pln_script_write(s, iter_type(s, block, i) == 0 ? "S" : "R");
  pln_script_write(s, "\", [");
  for (uint32_t i = first; i < end; i++) {
    pln_script_write(s, i > first ? ", " : "");
    pln_script_expr(s, statement_operand(s, realize, 1 + i));
  }
  pln_script_write(s, "])");
  end_line(s, offset, indent_of(s));
}

static void print_axes(pln_script_printer *s, pln_ref realize, pln_ref block) {
  uint32_t n = node_at(s, block)->count, first = 0;
  if (statement_scope_of(s, block)->n_params < n ||
      (realize != PLN_NONE && node_at(s, realize)->count != n + 1))
    n = 0; /* the verifier rules this out */
  for (uint32_t i = 0; i < n; i++) {
    if (is_remapped(s, realize, block, i))
      continue;
    print_remap(s, realize, block, first, i);
    print_axis(s, realize, block, i);
    first = i + 1;
  }
  print_remap(s, realize, block, first, n);
}

static void print_block(pln_script_printer *s, pln_ref realize, pln_ref block) {
  uint32_t indent = indent_of(s);
  size_t offset = s->text.size;
  pln_script_write(s, "with T.block(");
  pln_script_write_quoted(
      s,
      pln_attrs_string(s->engine, node_at(s, block)->attrs, "name_hint", ""));
  pln_script_write(s, realize == PLN_NONE ? ", no_realize=True):" : "):");
  pln_script_line_end(s, offset, indent);
  open_script_scope(s, block, s->g->nodes[block].data, indent + 1);
  print_axes(s, realize, block);
  if (realize == PLN_NONE ||
      pln_is_int(s->g, statement_operand(s, realize, 0), 1))
    return;
  offset = s->text.size;
  pln_script_write(s, "T.where(");
  pln_script_expr(s, statement_operand(s, realize, 0));
  pln_script_write(s, ")");
  end_line(s, offset, indent + 1);
}

static void put_block_attrs(pln_script_printer *s) {
  pln_ref block = s->frames[top_script_frame(s)].owner;
  if (block == PLN_NONE || node_at(s, block)->kind != PLN_BLOCK)
    return;
  const pln_attr *a =
      pln_attrs_find(s->engine, node_at(s, block)->attrs, "annotations");
  if (!a || a->kind != PLN_ATTR_DICT)
    return;
  size_t offset = s->text.size;
  pln_script_write(s, "T.block_attr(");
  pln_script_attrs(s, a->v.dict, NULL);
  pln_script_write(s, ")");
  pln_script_line_end(s, offset, indent_of(s));
}

static void print_init(pln_script_printer *s, pln_ref ref) {
  size_t offset = s->text.size;
  uint32_t indent = indent_of(s);
  pln_script_write(s, "with T.init():");
  pln_script_line_end(s, offset, indent);
  open_script_scope(s, ref, s->g->nodes[ref].data, indent + 1);
}

/* ------------------------------------------------------ statements of a line
 */

static void print_store(pln_script_printer *s, pln_ref ref) {
  const pln_node *n = node_at(s, ref);
  pln_script_indices(s, statement_operand(s, ref, 0),
                     s->g->operands + n->first + 2, n->count - 2, false);
  pln_script_write(s, " = ");
  pln_script_expr(s, statement_operand(s, ref, 1));
}

static void print_evaluate(pln_script_printer *s, pln_ref ref) {
  pln_ref value = statement_operand(s, ref, 0);
  bool call = node_at(s, value)->kind == PLN_PRIM_CALL;
  pln_script_write(s, call ? "" : "T.evaluate(");
  pln_script_expr(s, value);
  pln_script_write(s, call ? "" : ")");
}

static void print_list(pln_script_printer *s, pln_ref ref, const char *name) {
  pln_script_write(s, name);
  put_exprs(s, ref, 0, node_at(s, ref)->count);
  pln_script_write(s, ")");
}

static void print_prefetch(pln_script_printer *s, pln_ref ref) {
  pln_script_write(s, "T.prefetch(");
  pln_script_expr(s, statement_operand(s, ref, 0));
  pln_script_write(s, ", [");
  put_exprs(s, ref, 1, node_at(s, ref)->count);
  pln_script_write(s, "])");
}

static void print_line(pln_script_printer *s, pln_ref ref) {
  size_t offset = s->text.size;
  switch ((pln_kind)node_at(s, ref)->kind) {
  case PLN_BUFFER_STORE:
  case PLN_PRODUCER_STORE: print_store(s, ref); break;
  case PLN_EVALUATE: print_evaluate(s, ref); break;
  case PLN_PREFETCH: print_prefetch(s, ref); break;
  case PLN_BLOCK_READS: print_list(s, ref, "T.reads("); break;
  case PLN_BLOCK_WRITES: print_list(s, ref, "T.writes("); break;
  default: return;
  }
  pln_script_line_end(s, offset, indent_of(s));
  if (node_at(s, ref)->kind == PLN_BLOCK_WRITES)
    put_block_attrs(s);
}

static void print_block_buffer(pln_script_printer *s, pln_ref ref) {
  bool match = node_at(s, ref)->kind == PLN_MATCH_BUFFER;
  pln_script_buffer(
      s, &(pln_script_declaration){
             .buffer = statement_operand(s, ref, 0),
             .first = match ? statement_operand(s, ref, 1) : PLN_NONE,
             .method = match ? "match_buffer" : "alloc_buffer",
             .defines = match ? PLN_DEFINES_ALL : PLN_DEFINES_DATA,
             .frame = top_script_frame(s),
             .place = PLN_SCRIPT_APPENDED,
             .indent = indent_of(s)});
}

/* Declares what a statement uses before its line. A statement that defines a
 * buffer declares it itself. */
static void declare_operands(pln_script_printer *s, pln_ref ref) {
  const pln_node *n = node_at(s, ref);
  if (n->kind == PLN_DECL_BUFFER || n->kind == PLN_ALLOC_BUFFER ||
      n->kind == PLN_MATCH_BUFFER || n->kind == PLN_FOR ||
      (n->kind == PLN_ATTR_STMT && pln_binds_thread(s->g, node_at(s, ref))) ||
      (n->kind == PLN_ALLOCATE && is_declared(s, ref)))
    return;
  s->walks++;
  for (uint32_t i = 0; i < n->count; i++)
    pln_script_declare(s, statement_operand(s, ref, i));
}

/* Prints the block of a BlockRealize with its bindings. */
static void print_realized(pln_script_printer *s, pln_ref ref) {
  pln_ref block = s->head[s->g->nodes[ref].data];
  if (block == PLN_NONE || node_at(s, block)->kind != PLN_BLOCK)
    return;
  declare_operands(s, block);
  print_block(s, ref, block);
}

/* The BufferRealize whose storage scope is the only content of the
 * attribute. */
static pln_ref placed_buffer(const pln_script_printer *s, pln_ref ref) {
  const pln_node *n = node_at(s, ref);
  pln_slice key = pln_attrs_string(s->engine, n->attrs, "attr_key", "");
  pln_ref body = s->head[n->data];
  bool alone = body != PLN_NONE && s->next[body] == PLN_NONE &&
               node_at(s, body)->kind == PLN_BUFFER_REALIZE;
  return alone && pln_slice_is(key, "realize_scope") &&
                 statement_operand(s, body, 0) == statement_operand(s, ref, 0)
             ? body
             : PLN_NONE;
}

static void print_attribute(pln_script_printer *s, pln_ref ref, bool concise) {
  pln_ref buffer = placed_buffer(s, ref);
  if (buffer != PLN_NONE) {
    declare_operands(s, buffer);
    print_realize(s, buffer, statement_operand(s, ref, 1), concise);
  } else if (pln_binds_thread(s->g, node_at(s, ref))) {
    print_thread(s, ref, concise);
  } else {
    print_attr(s, ref, concise);
  }
}

void pln_script_stmt(pln_script_printer *s, pln_ref ref, bool concise) {
  declare_operands(s, ref);
  pln_script_note_place(s, ref);
  switch ((pln_kind)node_at(s, ref)->kind) {
  case PLN_LET_STMT: print_let(s, ref, concise); break;
  case PLN_ATTR_STMT: print_attribute(s, ref, concise); break;
  case PLN_ASSERT_STMT: print_assert(s, ref, concise); break;
  case PLN_BUFFER_REALIZE:
  case PLN_PRODUCER_REALIZE: print_realize(s, ref, PLN_NONE, concise); break;
  case PLN_ALLOCATE: print_allocate(s, ref, concise); break;
  case PLN_ALLOCATE_CONST: print_allocate_const(s, ref, concise); break;
  case PLN_DECL_BUFFER: print_decl(s, ref, concise, PLN_DEFINES_NOTHING); break;
  case PLN_IF_THEN_ELSE: print_test(s, ref, "if "); break;
  case PLN_WHILE: print_test(s, ref, "while "); break;
  case PLN_FOR: print_for(s, ref); break;
  case PLN_SEQ_STMT:
    open_script_scope(s, ref, s->g->nodes[ref].data, indent_of(s));
    break;
  case PLN_BLOCK: print_block(s, PLN_NONE, ref); break;
  case PLN_BLOCK_REALIZE: print_realized(s, ref); break;
  case PLN_BLOCK_INIT: print_init(s, ref); break;
  case PLN_ALLOC_BUFFER:
  case PLN_MATCH_BUFFER: print_block_buffer(s, ref); break;
  default: print_line(s, ref); break;
  }
}
