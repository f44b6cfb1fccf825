/* tir/script/print.c: prints TIR as TVM 0.14 prints TVMScript: PrimFuncs,
 * statements, PrimExprs, modules of PrimFuncs.
 *
 * Called by pln_print_node and pln_print_module. One sweep collects the
 * statements of each scope and the uses of each node; then statements are
 * printed in order with a stack of frames. Nothing recurses. */

#include "ir/tir/script/script.h"

#include <stdlib.h>

#include "base/text/writer.h"
#include "ir/graph/module.h"

/* ------------------------------------------------------------------- tables */

static void *table(pln_script_printer *s, size_t n, size_t item, int fill) {
  void *block = pln_mem_new(s->engine, n * item);
  if (!block)
    pln_script_fail(s, pln_nomem(s->engine));
  else
    memset(block, fill, n * item);
  return block;
}

static void extend_use_range(pln_script_printer *s, pln_ref ref, pln_ref low,
                             pln_ref high) {
  if (s->low[ref] == PLN_NONE || low < s->low[ref])
    s->low[ref] = low;
  if (s->high[ref] == PLN_NONE || high > s->high[ref])
    s->high[ref] = high;
}

/* Finds the first and last statement that uses each node, through PrimExprs and
 * buffers. */
static void collect_script_uses(pln_script_printer *s, pln_ref begin,
                                pln_ref root) {
  const pln_graph *g = s->g;
  for (pln_ref ref = root + 1; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    bool prim = pln_is_prim(n);
    if (ref < begin && (!prim || s->low[ref] == PLN_NONE))
      continue;
    pln_ref low = prim && s->low[ref] != PLN_NONE ? s->low[ref] : ref;
    pln_ref high = prim && s->low[ref] != PLN_NONE ? s->high[ref] : ref;
    for (uint32_t i = 0; i < n->count; i++)
      extend_use_range(s, g->operands[n->first + i], low, high);
  }
}

static void note_stmts(pln_script_printer *s) {
  const pln_graph *g = s->g;
  pln_scope_cursor cursor = {.graph = g};
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_scope here = pln_scope_cursor_at(&cursor, ref);
    if (!pln_is_stmt(&g->nodes[ref]))
      continue;
    if (s->head[here] == PLN_NONE)
      s->head[here] = ref;
    else
      s->next[s->tail[here]] = ref;
    s->tail[here] = ref;
  }
  for (pln_scope i = 0; i < g->n_scopes; i++)
    for (uint32_t k = 0; k < g->scopes[i].n_params; k++)
      s->binder[g->scopes[i].begin + k] = i;
}

static void begin_graph(pln_script_printer *s, const pln_graph *g,
                        pln_ref root) {
  s->g = g;
  s->nodes = g->n_nodes + (size_t)1;
  s->scopes = g->n_scopes + (size_t)1;
  s->low = table(s, s->nodes, sizeof *s->low, 0xff);
  s->high = table(s, s->nodes, sizeof *s->high, 0xff);
  s->next = table(s, s->nodes, sizeof *s->next, 0xff);
  s->seen = table(s, s->nodes, sizeof *s->seen, 0);
  s->binder = table(s, s->nodes, sizeof *s->binder, 0xff);
  s->head = table(s, s->scopes, sizeof *s->head, 0xff);
  s->tail = table(s, s->scopes, sizeof *s->tail, 0xff);
  if (s->status != PLN_OK)
    return;
  const pln_node *n = &g->nodes[root];
  note_stmts(s);
  collect_script_uses(s, pln_owns(n) ? g->scopes[n->data].begin : root, root);
  s->status = pln_idmap_new(s->engine, &s->defined);
  if (s->status == PLN_OK)
    s->status = pln_idmap_new(s->engine, &s->taken);
}

static void end_graph(pln_script_printer *s) {
  pln_engine *e = s->engine;
  pln_mem_free(e, s->low, s->nodes * sizeof *s->low);
  pln_mem_free(e, s->high, s->nodes * sizeof *s->high);
  pln_mem_free(e, s->next, s->nodes * sizeof *s->next);
  pln_mem_free(e, s->seen, s->nodes * sizeof *s->seen);
  pln_mem_free(e, s->binder, s->nodes * sizeof *s->binder);
  pln_mem_free(e, s->head, s->scopes * sizeof *s->head);
  pln_mem_free(e, s->tail, s->scopes * sizeof *s->tail);
  pln_idmap_free(s->defined);
  pln_idmap_free(s->taken);
  s->defined = s->taken = NULL;
  s->n_frames = s->n_names = s->n_words = s->n_fragments = s->n_stack = 0;
}

static void end_script(pln_script_printer *s) {
  pln_engine *e = s->engine;
  pln_mem_free(e, s->lines, s->cap_lines * sizeof *s->lines);
  pln_mem_free(e, s->frames, s->cap_frames * sizeof *s->frames);
  pln_mem_free(e, s->names, s->cap_names * sizeof *s->names);
  pln_mem_free(e, s->words, s->cap_words * sizeof *s->words);
  pln_mem_free(e, s->fragments, s->cap_fragments * sizeof *s->fragments);
  pln_mem_free(e, s->stack, s->cap_stack * sizeof *s->stack);
  pln_idmap_free(s->tensors);
  pln_buffer_free(&s->text);
}

/* Line 0 is empty and never printed, so that every insertion is after a
 * line. */
static void begin_script(pln_script_printer *s, pln_engine *engine) {
  *s = (pln_script_printer){.engine = engine, .module = "", .last = PLN_NONE};
  pln_buffer_init(&s->text, engine);
  s->last = pln_script_line_insert(s, 0, 0, PLN_NONE);
}

void pln_script_visit(pln_script_printer *s, pln_ref ref) {
  if (s->status == PLN_OK)
    s->status = pln_mem_grow(s->engine, (void **)&s->stack, &s->cap_stack,
                             (size_t)s->n_stack + 1, sizeof *s->stack);
  if (s->status == PLN_OK)
    s->stack[s->n_stack++] = ref;
}

/* --------------------------------------------------------------- statements */

/* Statements of the frames down to `bottom`. */
static void print_script_frames(pln_script_printer *s, uint32_t bottom) {
  while (s->n_frames > bottom && s->status == PLN_OK) {
    pln_script_frame *f = &s->frames[s->n_frames - 1];
    pln_ref ref = f->next;
    if (ref != PLN_NONE) {
      f->next = s->next[ref];
      f->mark = s->last;
      pln_script_stmt(s, ref, f->next == PLN_NONE);
      continue;
    }
    pln_script_end_names(s, s->n_frames - 1);
    pln_scope other = f->other;
    pln_ref owner = f->owner;
    s->n_frames--;
    if (other != PLN_NONE)
      pln_script_else(s, owner, other);
  }
}

static void line(pln_script_printer *s, const char *text, uint32_t indent) {
  size_t offset = s->text.size;
  pln_script_write(s, text);
  pln_script_line_end(s, offset, indent);
}

/* ---------------------------------------------------------------- PrimFuncs */

typedef struct function {
  pln_ref ref;
  pln_slice name;
  const pln_scope_row *row;
  pln_ref *buffers; /* a parameter: its buffer, or PLN_NONE */
  pln_ref *layouts; /* inlined buffers with transforms of layouts */
  bool *inlined;    /* it stands in the list of parameters */
  pln_ref body;     /* the first statement behind the buffer map */
} function;

static void map_buffers(pln_script_printer *s, function *f) {
  const pln_graph *g = s->g;
  f->body = s->head[g->nodes[f->ref].data];
  while (f->body != PLN_NONE && g->nodes[f->body].kind == PLN_BUFFER_BIND) {
    const pln_ref *o = g->operands + g->nodes[f->body].first;
    if (o[0] >= f->row->begin && o[0] - f->row->begin < f->row->n_params)
      f->buffers[o[0] - f->row->begin] = o[1];
    f->body = s->next[f->body];
  }
}

/* Buffers with a shared data pointer must be printed as match_buffer. */
static void choose_inlined(pln_script_printer *s, function *f) {
  pln_idmap *counts;
  if (s->status == PLN_OK)
    s->status = pln_idmap_new(s->engine, &counts);
  if (s->status != PLN_OK)
    return;
  for (int round = 0; round < 2; round++)
    for (uint32_t i = 0; i < f->row->n_params && s->status == PLN_OK; i++) {
      pln_ref buffer = f->buffers[i], param = f->row->begin + i;
      if (buffer == PLN_NONE)
        continue;
      uint64_t data = s->g->operands[s->g->nodes[buffer].first];
      uint32_t n = pln_idmap_get(counts, data);
      if (round == 0)
        pln_script_fail(s, pln_idmap_set(counts, data, n + 1));
      else
        f->inlined[i] = n == 1 && s->low[param] == s->high[param] &&
                        s->g->nodes[s->low[param]].kind == PLN_BUFFER_BIND &&
                        pln_script_is_plain(s, buffer);
    }
  pln_idmap_free(counts);
}

static void put_params(pln_script_printer *s, const function *f) {
  for (uint32_t i = 0; i < f->row->n_params; i++) {
    pln_ref param = f->row->begin + i;
    pln_script_write(s, i > 0 ? ", " : "");
    if (f->inlined[i]) {
      pln_script_annotation(s, f->buffers[i], s->n_frames - 1);
      continue;
    }
    pln_script_define(s, param, s->n_frames - 1);
    pln_script_expr(s, param);
    pln_script_write(s, ": ");
    pln_script_type(s, s->g->nodes[param].type);
  }
}

static void put_result(pln_script_printer *s, const function *f) {
  pln_type type = s->g->nodes[f->ref].type;
  uint32_t n = pln_type_n_parts(s->engine, type);
  pln_type ret = n ? pln_type_part_at(s->engine, type, n - 1) : 0;
  if (!ret || pln_type_get_kind(s->engine, ret) == PLN_TYPE_TUPLE)
    return;
  pln_script_write(s, " -> ");
  pln_script_type(s, ret);
}

static void put_head(pln_script_printer *s, const function *f,
                     uint32_t indent) {
  pln_attrs attrs = s->g->nodes[f->ref].attrs;
  bool named = pln_attrs_find(s->engine, attrs, "global_symbol") != NULL;
  line(s, named ? "@T.prim_func" : "@T.prim_func(private=True)", indent);
  size_t offset = s->text.size;
  pln_script_write(s, "def ");
  pln_script_write_slice(s, f->name);
  pln_script_write(s, "(");
  put_params(s, f);
  pln_script_write(s, ")");
  put_result(s, f);
  pln_script_write(s, ":");
  pln_script_line_end(s, offset, indent);
}

/* Lists the inlined buffers that have transforms of layouts. */
static uint32_t list_layouts(const pln_script_printer *s, const function *f) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->row->n_params; i++)
    if (f->inlined[i] && pln_script_has_layout(s, f->buffers[i]))
      f->layouts[n++] = f->buffers[i];
  return n;
}

static void write_script_attrs(pln_script_printer *s, const function *f,
                               uint32_t indent) {
  pln_attrs attrs = s->g->nodes[f->ref].attrs;
  pln_slice symbol = pln_attrs_string(s->engine, attrs, "global_symbol", "");
  bool hidden = symbol.size == f->name.size && symbol.size > 0 &&
                !memcmp(symbol.data, f->name.data, symbol.size);
  s->layouts = f->layouts;
  s->n_layouts = list_layouts(s, f);
  if (pln_attrs_count(s->engine, attrs) <= (uint32_t)hidden && !s->n_layouts)
    return;
  size_t offset = s->text.size;
  pln_script_write(s, "T.func_attr(");
  pln_script_attrs(s, attrs, hidden ? "global_symbol" : NULL);
  pln_script_write(s, ")");
  pln_script_line_end(s, offset, indent);
}

static void put_matches(pln_script_printer *s, const function *f,
                        uint32_t indent) {
  for (uint32_t i = 0; i < f->row->n_params; i++)
    if (f->buffers[i] != PLN_NONE && !f->inlined[i])
      pln_script_buffer(s,
                        &(pln_script_declaration){.buffer = f->buffers[i],
                                                  .first = f->row->begin + i,
                                                  .method = "match_buffer",
                                                  .defines = PLN_DEFINES_ALL,
                                                  .frame = s->n_frames - 1,
                                                  .place = PLN_SCRIPT_APPENDED,
                                                  .indent = indent});
}

/* TVMScript omits a root block that only allocates buffers. Returns the first
 * statement after its declarations when `realize` is such a block, else
 * PLN_NONE. */
static pln_ref root_body(const pln_script_printer *s, pln_ref realize,
                         pln_ref *block) {
  const pln_graph *g = s->g;
  const pln_node *n = realize == PLN_NONE ? NULL : &g->nodes[realize];
  if (!n || n->kind != PLN_BLOCK_REALIZE || s->next[realize] != PLN_NONE ||
      n->count != 1 || !pln_is_int(g, g->operands[n->first], 1))
    return PLN_NONE;
  *block = s->head[n->data];
  if (*block == PLN_NONE || g->nodes[*block].kind != PLN_BLOCK ||
      g->nodes[*block].count ||
      pln_attrs_find(s->engine, g->nodes[*block].attrs, "annotations"))
    return PLN_NONE;
  pln_ref at = s->head[g->nodes[*block].data];
  while (at != PLN_NONE && (g->nodes[at].kind == PLN_BLOCK_READS ||
                            g->nodes[at].kind == PLN_BLOCK_WRITES)) {
    if (g->nodes[at].count)
      return PLN_NONE;
    at = s->next[at];
  }
  return at;
}

static bool holds_block(const pln_script_printer *s, pln_ref block) {
  const pln_graph *g = s->g;
  for (pln_ref ref = g->scopes[g->nodes[block].data].begin; ref < block; ref++)
    if (g->nodes[ref].kind == PLN_BLOCK_REALIZE)
      return true;
  return false;
}

/* A root block that only allocates, or only holds blocks. */
static pln_ref implicit_root(const pln_script_printer *s, pln_ref body,
                             pln_ref *block) {
  const pln_graph *g = s->g;
  pln_ref at = root_body(s, body, block), first = at;
  while (at != PLN_NONE && g->nodes[at].kind == PLN_ALLOC_BUFFER)
    at = s->next[at];
  if (at == PLN_NONE || g->nodes[at].kind == PLN_MATCH_BUFFER ||
      g->nodes[at].kind == PLN_BLOCK_INIT)
    return PLN_NONE;
  if (at != first)
    return first;
  if (g->nodes[at].kind != PLN_BLOCK_REALIZE || s->next[at] != PLN_NONE)
    return holds_block(s, *block) ? first : PLN_NONE;
  pln_ref inner = s->head[g->nodes[at].data];
  return inner != PLN_NONE && g->nodes[inner].count ? first : PLN_NONE;
}

static void put_body(pln_script_printer *s, const function *f,
                     uint32_t indent) {
  pln_ref block = PLN_NONE, first = implicit_root(s, f->body, &block);
  pln_script_frame frame = s->frames[s->n_frames - 1];
  frame.names = 0;
  frame.only = PLN_NONE;
  frame.next = f->body;
  if (first != PLN_NONE) {
    line(s, "# with T.block(\"root\"):", indent);
    frame.next = first;
  }
  frame.mark = s->last;
  pln_script_push_frame(s, &frame);
  print_script_frames(s, s->n_frames - 1);
}

static void put_function(pln_script_printer *s, function *f, uint32_t indent) {
  pln_script_push_frame(s, &(pln_script_frame){.next = PLN_NONE,
                                               .begin = 0,
                                               .end = PLN_NONE,
                                               .other = PLN_NONE,
                                               .owner = PLN_NONE,
                                               .only = PLN_NONE,
                                               .indent = indent + 1,
                                               .mark = s->last});
  if (s->status != PLN_OK)
    return;
  map_buffers(s, f);
  choose_inlined(s, f);
  if (s->status != PLN_OK)
    return;
  put_head(s, f, indent);
  write_script_attrs(s, f, indent + 1);
  s->frames[0].mark = s->last;
  put_matches(s, f, indent + 1);
  put_body(s, f, indent + 1);
}

/* `name` empty: the function's global_symbol, or main. */
static void print_function(pln_script_printer *s, const pln_graph *g,
                           pln_ref ref, pln_slice name, uint32_t indent) {
  begin_graph(s, g, ref);
  function f = {.ref = ref, .row = &g->scopes[g->nodes[ref].data]};
  size_t n = f.row->n_params + (size_t)1;
  f.name = name.size ? name
                     : pln_attrs_string(s->engine, g->nodes[ref].attrs,
                                        "global_symbol", "main");
  f.buffers = table(s, n, sizeof *f.buffers, 0xff);
  f.layouts = table(s, n, sizeof *f.layouts, 0);
  f.inlined = table(s, n, sizeof *f.inlined, 0);
  if (s->status == PLN_OK)
    put_function(s, &f, indent);
  pln_mem_free(s->engine, f.buffers, n * sizeof *f.buffers);
  pln_mem_free(s->engine, f.layouts, n * sizeof *f.layouts);
  pln_mem_free(s->engine, f.inlined, n * sizeof *f.inlined);
  end_graph(s);
}

/* Removes the declarations. */
static void drop_lines(pln_script_printer *s) {
  if (s->status != PLN_OK)
    return;
  s->lines[0].next = PLN_NONE;
  s->last = 0;
}

/* A single statement or PrimExpr; `declared`: declarations of what a PrimExpr
 * uses precede it. */
static void print_part(pln_script_printer *s, const pln_graph *g, pln_ref ref,
                       bool declared) {
  begin_graph(s, g, ref);
  pln_script_push_frame(s, &(pln_script_frame){.next = PLN_NONE,
                                               .begin = 0,
                                               .end = PLN_NONE,
                                               .other = PLN_NONE,
                                               .owner = PLN_NONE,
                                               .only = PLN_NONE,
                                               .mark = s->last});
  if (s->status == PLN_OK && pln_is_stmt(&g->nodes[ref])) {
    s->next[ref] = PLN_NONE;
    s->frames[0].next = ref;
    print_script_frames(s, 0);
  } else if (s->status == PLN_OK) {
    s->walks++;
    pln_script_declare(s, ref);
    if (!declared)
      drop_lines(s);
    size_t offset = s->text.size;
    pln_script_expr(s, ref);
    pln_script_line_end(s, offset, 0);
  }
  end_graph(s);
}

/* ------------------------------------------------------------------- output */

static void put_indent(pln_writer *w, uint32_t indent) {
  while (indent-- > 0 && !pln_writer_done(w))
    pln_put(w, "    ", 4);
}

static void write_lines(const pln_script_printer *s, pln_writer *w) {
  bool first = true;
  for (uint32_t i = s->lines[0].next; i != PLN_NONE && !pln_writer_done(w);
       i = s->lines[i].next) {
    const pln_script_line *l = &s->lines[i];
    pln_put(w, "\n", !first);
    first = false;
    if (l->size)
      put_indent(w, l->indent);
    pln_put(w, s->text.data + l->offset, l->size);
  }
}

static pln_status write_script_lines(pln_script_printer *s, size_t limit,
                                     pln_write_fn write, void *ud) {
  pln_writer w;
  if (s->n_tensors > 0) {
    line(s, "", 0);
    line(s,
         "# Metadata omitted. Use show_meta=True in script() method to "
         "show it.",
         0);
  }
  pln_status status = s->status;
  if (status == PLN_OK) {
    pln_writer_init(&w, s->engine, limit, write, ud);
    write_lines(s, &w);
    status = pln_writer_end(&w);
  }
  end_script(s);
  return status;
}

static void put_single_function(pln_script_printer *s, const pln_graph *graph,
                                pln_ref ref) {
  line(s, "# from tvm.script import tir as T", 0);
  line(s, "", 0);
  print_function(s, graph, ref, pln_text(""), 0);
}

pln_status pln_print_script(const pln_graph *graph, pln_ref node, bool declared,
                            size_t limit, pln_write_fn write, void *ud) {
  pln_script_printer s;
  begin_script(&s, graph->engine);
  if (graph->nodes[node].kind == PLN_PRIM_FUNC)
    put_single_function(&s, graph, node);
  else
    print_part(&s, graph, node, declared);
  return write_script_lines(&s, limit, write, ud);
}

/* ------------------------------------------------------------------- places */

/* The line that a part of the text is in: lines were written one after the
 * other, wherever they stand. */
static const pln_script_line *line_at(const pln_script_printer *s,
                                      size_t place) {
  uint32_t low = 0, high = s->n_lines;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (s->lines[middle].offset <= place)
      low = middle;
    else
      high = middle;
  }
  return &s->lines[low];
}

static void set_places(pln_script_printer *s, const uint32_t *rows,
                       pln_source_span *spans) {
  for (pln_ref ref = 0; ref < s->g->n_nodes && s->status == PLN_OK; ref++) {
    s->status = pln_poll_round(s->engine, ref);
    if (s->places[ref] == SIZE_MAX)
      continue;
    const pln_script_line *l = line_at(s, s->places[ref]);
    uint32_t row = rows[l - s->lines], first = 1 + 4 * l->indent;
    spans[ref].row = spans[ref].end_row = row;
    spans[ref].column = first + (uint32_t)(s->places[ref] - l->offset);
    spans[ref].end_column = first + (uint32_t)l->size;
  }
}

/* The number of each line in the text, from 1. */
static void number_lines(const pln_script_printer *s, uint32_t *rows) {
  uint32_t row = 1;
  for (uint32_t i = s->lines[0].next; i != PLN_NONE; i = s->lines[i].next)
    rows[i] = row++;
}

pln_status pln_script_places(const pln_graph *graph, pln_source_span *spans) {
  pln_script_printer s;
  size_t n = graph->n_nodes;
  begin_script(&s, graph->engine);
  s.places = table(&s, n, sizeof *s.places, 0xff);
  if (s.status == PLN_OK)
    put_single_function(&s, graph, graph->root);
  uint32_t *rows = table(&s, s.n_lines, sizeof *rows, 0);
  if (s.status == PLN_OK) {
    number_lines(&s, rows);
    set_places(&s, rows, spans);
  }
  pln_mem_free(s.engine, rows, s.n_lines * sizeof *rows);
  pln_mem_free(s.engine, s.places, n * sizeof *s.places);
  end_script(&s);
  return s.status;
}

/* ------------------------------------------------------------------ modules */

/* Functions are sorted by name, with main last. */
typedef struct named {
  pln_slice name;
  const pln_graph *graph;
} named;

static int by_name(const void *a, const void *b) {
  pln_slice x = ((const named *)a)->name, y = ((const named *)b)->name;
  int last = pln_slice_is(x, "main") - pln_slice_is(y, "main");
  if (last)
    return last;
  size_t size = x.size < y.size ? x.size : y.size;
  int order = size ? memcmp(x.data, y.data, size) : 0;
  return order ? order : (x.size > y.size) - (x.size < y.size);
}

static void print_functions(pln_script_printer *s, const pln_module *module) {
  size_t size = module->count * sizeof(named);
  named *sorted = pln_mem_new(s->engine, size);
  uint32_t n = 0;
  if (!sorted && size)
    pln_script_fail(s, pln_nomem(s->engine));
  for (uint32_t i = 0; i < module->count && s->status == PLN_OK; i++) {
    const pln_graph *g = pln_module_function_at(module, i);
    if (g->nodes[g->root].kind == PLN_PRIM_FUNC)
      sorted[n++] =
          (named){pln_symbol_text(s->engine, pln_module_name_at(module, i)), g};
  }
  if (n > 0)
    qsort(sorted, n, sizeof *sorted, by_name);
  for (uint32_t i = 0; i < n && s->status == PLN_OK; i++) {
    if (i > 0)
      line(s, "", 0);
    print_function(s, sorted[i].graph, sorted[i].graph->root, sorted[i].name,
                   1);
  }
  pln_mem_free(s->engine, sorted, size);
}

static void put_module_attrs(pln_script_printer *s, pln_attrs attrs) {
  size_t offset = s->text.size;
  if (!attrs)
    return;
  pln_script_write(s, "I.module_attrs(");
  pln_script_attrs(s, attrs, NULL);
  pln_script_write(s, ")");
  pln_script_line_end(s, offset, 1);
}

pln_status pln_print_script_module(const pln_module *module, size_t limit,
                                   pln_write_fn write, void *ud) {
  pln_script_printer s;
  begin_script(&s, module->engine);
  s.module = "Module.";
  line(&s, "# from tvm.script import ir as I", 0);
  line(&s, "# from tvm.script import tir as T", 0);
  line(&s, "", 0);
  line(&s, "@I.ir_module", 0);
  line(&s, "class Module:", 0);
  put_module_attrs(&s, module->attrs);
  print_functions(&s, module);
  return write_script_lines(&s, limit, write, ud);
}
