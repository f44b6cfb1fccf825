/* relay/print/print.c: prints modules and expressions as Relay text.
 *
 * Called by everything that shows or saves IR. relay/print/plan.c has decided
 * where each node is printed; here the lines are written, scope by scope, with
 * a stack of frames. A module without extensions prints as in TVM 0.14. */

#include <stdlib.h>

#include "ir/graph/module.h"
#include "ir/relay/print/plan.h"
#include "ir/tir/tir.h"
#include "ir/type/print_cache.h"

/* Indentation is limited, so that the text does not grow with the square of the
 * nesting depth. */
enum { MAX_INDENT = 64 };

/* A scope being printed. */
typedef struct frame {
  pln_ref owner;   /* PLN_NONE: the text's own scope */
  pln_scope scope; /* the current scope of the owner */
  pln_ref line;    /* the next line; PLN_NONE: the result */
  pln_ref open;    /* the unfinished line; PLN_NONE: none */
  bool definition;
  bool done; /* the result was started */
} frame;

/* A pattern being printed. */
typedef struct part {
  pln_ref pattern;
  uint32_t done; /* number of its parts already printed */
} part;

typedef struct printer {
  pln_engine *engine;
  const pln_print_options *options;
  pln_writer w;
  pln_naming naming;
  pln_text_plan plan; /* of the current function */
  const pln_graph *graph;
  frame *frames;
  uint32_t n_frames, cap_frames;
  part *parts;
  uint32_t n_parts, cap_parts;
  uint32_t extra; /* indentation in addition to one level per frame */
  pln_type_cache types;
} printer;

static void write_relay_text(printer *p, const char *text) {
  pln_put_text(&p->w, text);
}

static void fail_relay_text(printer *p, pln_status status) {
  if (p->w.status == PLN_OK)
    p->w.status = status;
}

/* ------------------------------------------------------------------- types */

static void write_type_annotation(printer *p, pln_type type) {
  pln_slice text;
  pln_status status = pln_type_cache_get(&p->types, type, false, &text);
  if (status == PLN_OK)
    pln_put(&p->w, text.data, text.size);
  else
    fail_relay_text(p, status);
}

/* The text of an optional type; empty when there is none or it is too long to
 * repeat. */
static pln_slice spare_type(printer *p, pln_type type) {
  pln_slice text = {NULL, 0};
  if (type)
    fail_relay_text(p, pln_type_cache_get(&p->types, type, true, &text));
  return text;
}

static void write_span_comment(printer *p, const pln_source_span *place) {
  pln_slice source = pln_symbol_text(p->engine, place->source);
  write_relay_text(p, " span=");
  pln_put(&p->w, source.data, source.size);
  write_relay_text(p, ":");
  pln_put_int(&p->w, (int32_t)place->row);
  write_relay_text(p, ":");
  pln_put_int(&p->w, (int32_t)place->column);
}

/* TVM's comment after a node: its type, and its span if it was parsed with
 * one. */
static void put_comment(printer *p, pln_ref node) {
  pln_type type = p->graph->nodes[node].type;
  pln_source_span place;
  bool placed = false;
  if (!pln_node_place(p->graph, node, &place, &placed))
    placed = false;
  pln_slice text = spare_type(p, type);
  if (text.size == 0 && !placed)
    return;
  write_relay_text(p, " /*");
  if (text.size > 0) {
    write_relay_text(p, " ty=");
    pln_put(&p->w, text.data, text.size);
  }
  if (placed)
    write_span_comment(p, &place);
  write_relay_text(p, " */");
}

/* ------------------------------------------------------------ expressions */

static void put_var(printer *p, pln_ref node) {
  size_t size;
  const char *name =
      pln_interned(p->naming.names, p->plan.nodes[node].number, &size);
  pln_put_name(&p->w, "%", (pln_slice){name, size});
}

/* `%x: T` and TVM's comment after it. */
static void put_binder(printer *p, pln_ref node, const pln_attr *device) {
  pln_type type = p->graph->nodes[node].type;
  put_var(p, node);
  if (device) {
    write_relay_text(p, " {virtual_device=");
    pln_put_meta_object(&p->w, device->v.s);
    write_relay_text(p, "}");
  }
  if (type) {
    write_relay_text(p, ": ");
    write_type_annotation(p, type);
  }
  put_comment(p, node);
}

static void write_constant_reference(printer *p, pln_ref node) {
  const pln_tensor *tensor = pln_node_tensor(p->graph, node);
  if (pln_literal(tensor)) {
    pln_put_literal(&p->w, tensor);
  } else if (p->naming.meta.by_digest) {
    pln_put_constant_digest(&p->w, tensor);
  } else {
    write_relay_text(p, "meta[relay.Constant][");
    pln_put_int(&p->w, p->plan.nodes[node].number);
    write_relay_text(p, "]");
  }
  put_comment(p, node);
}

/* Operator names consist of letters, digits and separators. */
static void put_op(printer *p, pln_op op) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:";
  pln_slice name = pln_op_name(p->engine, op);
  if (name.size > 0 && strspn(name.data, plain) == name.size)
    pln_put(&p->w, name.data, name.size);
  else
    pln_put_quoted(&p->w, name);
}

/* Prints a reference to a node that has a line, or an atom. */
static void put_ref(printer *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  pln_slice name = pln_symbol_text(p->engine, pln_node_symbol(p->graph, node));
  switch ((pln_kind)n->kind) {
  case PLN_VAR: put_var(p, node); return;
  case PLN_CONSTANT: write_constant_reference(p, node); return;
  case PLN_ABSENT: write_relay_text(p, "absent"); return;
  case PLN_GLOBAL_VAR: pln_put_name(&p->w, "@", name); return;
  case PLN_OP: put_op(p, n->data); return;
  case PLN_CONSTRUCTOR: pln_put_name(&p->w, "", name); return;
  default: break;
  }
  write_relay_text(p, "%");
  pln_put_int(&p->w, p->plan.nodes[node].number);
}

static void put_refs(printer *p, uint32_t n, const pln_ref *refs) {
  for (uint32_t i = 0; i < n && !pln_writer_done(&p->w); i++) {
    if (i > 0)
      write_relay_text(p, ", ");
    put_ref(p, refs[i]);
  }
}

/* Prints the attribute text that the plan prepared. */
static void write_relay_attrs(printer *p, pln_ref node, bool behind) {
  uint32_t fragment = p->plan.nodes[node].attrs;
  pln_slice text = {NULL, 0};
  if (fragment != PLN_NONE)
    text = pln_fragments_text(&p->naming.attrs, fragment);
  write_relay_text(p, behind && text.size > 0 ? ", " : "");
  pln_put(&p->w, text.data, text.size);
}

static void put_call(printer *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  const pln_ref *args = pln_operands(p->graph, n);
  uint32_t count = n->count;
  if (n->data) {
    put_op(p, n->data);
  } else if (count > 0) {
    put_ref(p, args[0]);
    bool bare = p->graph->nodes[args[0]].kind == PLN_CONSTRUCTOR;
    args++;
    count--;
    if (bare && count == 0)
      return;
  }
  write_relay_text(p, "(");
  put_refs(p, count, args);
  write_relay_attrs(p, node, count > 0);
  write_relay_text(p, ")");
}

/* [A, B] */
static void put_type_params(printer *p, pln_type vars) {
  uint32_t n = vars ? pln_type_n_parts(p->engine, vars) : 0;
  for (uint32_t i = 0; i < n && !pln_writer_done(&p->w); i++) {
    write_relay_text(p, i > 0 ? ", " : "[");
    pln_put_type_var(&p->w, pln_type_part_at(p->engine, vars, i));
  }
  write_relay_text(p, n > 0 ? "]" : "");
}

static void put_function(printer *p, const char *name, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  uint32_t n_params = p->graph->scopes[n->data].n_params;
  write_relay_text(p, name);
  put_type_params(p, p->graph->scopes[n->data].type_params);
  write_relay_text(p, "(");
  for (uint32_t i = 0; i < n_params && !pln_writer_done(&p->w); i++) {
    if (i > 0)
      write_relay_text(p, ", ");
    put_binder(p, pln_param(p->graph, n->data, node, i),
               pln_param_device(p->graph, node, i));
  }
  write_relay_attrs(p, node, n_params > 0);
  write_relay_text(p, ") ");
  uint32_t parts = pln_type_n_parts(p->engine, n->type);
  pln_type ret = pln_type_get_kind(p->engine, n->type) == PLN_TYPE_FUNC
                     ? pln_type_part_at(p->engine, n->type, parts - 1)
                     : 0;
  pln_slice text = spare_type(p, ret);
  if (text.size > 0) {
    write_relay_text(p, "-> ");
    pln_put(&p->w, text.data, text.size);
    write_relay_text(p, " ");
  }
  write_relay_text(p, "{\n");
}

static void put_named(printer *p, const char *name, const pln_node *n) {
  write_relay_text(p, name);
  write_relay_text(p, "(");
  put_refs(p, n->count, pln_operands(p->graph, n));
  write_relay_text(p, ")");
}

static void put_tuple(printer *p, const pln_node *n) {
  write_relay_text(p, "(");
  put_refs(p, n->count, pln_operands(p->graph, n));
  write_relay_text(p, n->count == 1 ? ",)" : ")");
}

static void put_projection(printer *p, const pln_node *n) {
  put_ref(p, pln_operands(p->graph, n)[0]);
  write_relay_text(p, ".");
  pln_put_int(&p->w, n->data);
}

/* ------------------------------------------------------------------ frames */

static void push_scope_frame(printer *p, pln_ref owner, pln_scope scope) {
  if (p->n_frames == p->cap_frames)
    fail_relay_text(p,
                    pln_mem_grow(p->engine, (void **)&p->frames, &p->cap_frames,
                                 p->n_frames + 1u, sizeof *p->frames));
  if (p->w.status == PLN_OK)
    p->frames[p->n_frames++] = (frame){.owner = owner,
                                       .scope = scope,
                                       .line = p->plan.scopes[scope].first,
                                       .open = PLN_NONE};
}

static void indent(printer *p) {
  static const char spaces[2 * MAX_INDENT + 1] =
      "                                                                "
      "                                                                ";
  uint32_t depth = p->n_frames + p->extra;
  pln_put(&p->w, spaces, 2u * (depth < MAX_INDENT ? depth : MAX_INDENT));
}

/* The text before a pattern's parts, or all of a pattern without parts. */
static void open_pattern(printer *p, pln_ref pattern) {
  const pln_node *n = &p->graph->nodes[pattern];
  switch ((pln_kind)n->kind) {
  case PLN_PATTERN_VAR:
    put_binder(p, pln_operand(p->graph, pattern, 0), NULL);
    break;
  case PLN_PATTERN_TUPLE: write_relay_text(p, "("); break;
  case PLN_PATTERN_CONSTRUCTOR:
    pln_put_name(&p->w, "", pln_symbol_text(p->engine, n->data));
    write_relay_text(p, n->count > 0 ? "(" : "");
    break;
  default: write_relay_text(p, "_"); break;
  }
}

static void close_pattern(printer *p, const pln_node *n) {
  if (n->kind == PLN_PATTERN_TUPLE)
    write_relay_text(p, ")"); /* (%x) is a one-element tuple, as in TVM's
                               * text */
  else if (n->kind == PLN_PATTERN_CONSTRUCTOR)
    write_relay_text(p, n->count > 0 ? ")" : "");
}

static void push_pattern_part(printer *p, pln_ref pattern) {
  if (p->n_parts == p->cap_parts)
    fail_relay_text(p,
                    pln_mem_grow(p->engine, (void **)&p->parts, &p->cap_parts,
                                 p->n_parts + 1u, sizeof *p->parts));
  if (p->w.status == PLN_OK)
    p->parts[p->n_parts++] = (part){pattern, 0};
  open_pattern(p, pattern);
}

/* Continues the innermost pattern. */
static void step_pattern(printer *p) {
  part *top = &p->parts[p->n_parts - 1];
  const pln_node *n = &p->graph->nodes[top->pattern];
  uint32_t i = top->done++;
  if (n->kind == PLN_PATTERN_VAR || i == n->count) {
    close_pattern(p, n);
    p->n_parts--;
    return;
  }
  write_relay_text(p, i > 0 ? ", " : "");
  push_pattern_part(p, pln_operand(p->graph, top->pattern, i));
}

static void put_pattern(printer *p, pln_ref pattern) {
  push_pattern_part(p, pattern);
  while (p->n_parts > 0 && !pln_writer_done(&p->w))
    step_pattern(p);
  p->n_parts = 0;
}

static void put_arm(printer *p, pln_scope scope) {
  pln_ref pattern = pln_arm_pattern(p->graph, scope);
  if (pattern == PLN_NONE)
    write_relay_text(p, "_");
  else
    put_pattern(p, pattern);
  write_relay_text(p, " => {\n");
}

/* The text before an owner's first scope. */
static void open_owner(printer *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  switch ((pln_kind)n->kind) {
  case PLN_FUNCTION: put_function(p, "fn ", node); break;
  case PLN_LET_BLOCK: write_relay_text(p, "(\n"); break;
  case PLN_IF:
    write_relay_text(p, "if (");
    put_refs(p, n->count, pln_operands(p->graph, n));
    write_relay_attrs(p, node, true);
    write_relay_text(p, ") {\n");
    break;
  case PLN_MATCH:
    put_named(p,
              pln_attrs_int(p->engine, n->attrs, "complete", 1) ? "match "
                                                                : "match? ",
              n);
    write_relay_text(p, " {\n");
    break;
  default: break;
  }
  if (!pln_owns(n)) {
    indent(p);
    write_relay_text(p, "}");
    return;
  }
  push_scope_frame(p, node, n->data);
  if (n->kind == PLN_MATCH && p->w.status == PLN_OK) {
    indent(p);
    put_arm(p, n->data);
    p->extra++; /* the lines of an arm are two levels deeper */
  }
}

/* Starts the text of a node; close_scope finishes an owner of scopes. */
static void write_node_start(printer *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  if (pln_kinds[n->kind].payload == PLN_PAYLOAD_SCOPE) {
    open_owner(p, node);
    return;
  }
  switch ((pln_kind)n->kind) {
  case PLN_TUPLE: put_tuple(p, n); break;
  case PLN_TUPLE_GET_ITEM: put_projection(p, n); break;
  case PLN_CALL: put_call(p, node); break;
  case PLN_REF_CREATE: put_named(p, "ref", n); return;
  case PLN_REF_READ: put_named(p, "ref_read", n); return;
  case PLN_REF_WRITE: put_named(p, "ref_write", n); return;
  case PLN_LET: put_named(p, "let", n); return;
  case PLN_PATTERN_WILDCARD:
  case PLN_PATTERN_VAR:
  case PLN_PATTERN_CONSTRUCTOR:
  case PLN_PATTERN_TUPLE: put_pattern(p, node); return;
  case PLN_CLAUSE: put_pattern(p, pln_operand(p->graph, node, 0)); return;
  default: break;
  }
  put_comment(p, node);
}

/* The same, or the graph variable of the node. */
static void begin_expr_print(printer *p, pln_ref node) {
  if (pln_is_atomic_expr(p->graph->nodes[node].kind) ||
      p->plan.nodes[node].number != PLN_NONE)
    put_ref(p, node);
  else
    write_node_start(p, node);
}

static void begin_line(printer *p, pln_ref node) {
  indent(p);
  write_relay_text(p, p->plan.nodes[node].kept ? "keep " : "");
  switch ((pln_kind)p->graph->nodes[node].kind) {
  case PLN_CONSTANT: write_constant_reference(p, node); return;
  case PLN_VAR:
    write_relay_text(p, "free_var ");
    put_binder(p, node, NULL);
    return;
  case PLN_LET:
    write_relay_text(p, "let ");
    put_binder(p, pln_operand(p->graph, node, 0), NULL);
    write_relay_text(p, " = ");
    begin_expr_print(p, pln_operand(p->graph, node, 1));
    return;
  default: break;
  }
  put_ref(p, node);
  if (p->plan.nodes[node].declared) {
    write_relay_text(p, ": ");
    write_type_annotation(p, p->graph->nodes[node].type);
  }
  write_relay_text(p, " = ");
  write_node_start(p, node);
}

/* Continues with the owner's next scope. */
static void next_scope(printer *p, pln_ref owner, pln_scope scope) {
  bool match = p->graph->nodes[owner].kind == PLN_MATCH;
  p->extra -= match;
  p->n_frames--;
  indent(p);
  if (!match) {
    write_relay_text(p, "} else {\n");
    push_scope_frame(p, owner, scope);
    return;
  }
  write_relay_text(p, "  },\n");
  push_scope_frame(p, owner, scope);
  indent(p);
  put_arm(p, scope);
  p->extra++;
}

static void close_owner(printer *p, const frame *f) {
  const pln_node *n = &p->graph->nodes[f->owner];
  bool match = n->kind == PLN_MATCH;
  p->extra -= match;
  p->n_frames--;
  indent(p);
  if (match) {
    write_relay_text(p, "  },\n");
    indent(p);
  }
  write_relay_text(p, n->kind == PLN_LET_BLOCK ? ")" : "}");
  if (f->definition)
    write_relay_text(p, "\n");
  else if (n->kind == PLN_FUNCTION)
    put_comment(p, f->owner);
}

static void close_scope(printer *p) {
  frame f = p->frames[p->n_frames - 1];
  if (f.owner == PLN_NONE) {
    p->n_frames--;
    return;
  }
  write_relay_text(p, "\n");
  pln_scope next = p->graph->scopes[f.scope].next;
  if (next != PLN_NONE)
    next_scope(p, f.owner, next);
  else
    close_owner(p, &f);
}

static void print_next_node(printer *p) {
  frame *f = &p->frames[p->n_frames - 1];
  if (f->open != PLN_NONE)
    write_relay_text(p, ";\n");
  f->open = f->line;
  if (f->line != PLN_NONE) {
    f->line = p->plan.nodes[f->open].next;
    begin_line(p, f->open);
  } else if (!f->done) {
    f->done = true;
    pln_ref result = p->plan.scopes[f->scope].result;
    indent(p);
    begin_expr_print(p, result);
  } else {
    close_scope(p);
  }
}

static void print_pending_nodes(printer *p) {
  while (p->n_frames > 0 && !pln_writer_done(&p->w))
    print_next_node(p);
  p->n_frames = 0;
}

/* ------------------------------------------------------------------- texts */

static pln_status start_relay_text(printer *p, pln_engine *engine,
                                   const pln_print_options *options,
                                   pln_write_fn write, void *ud) {
  static const pln_print_options complete;
  *p = (printer){.engine = engine, .options = options ? options : &complete};
  pln_writer_init(&p->w, engine, p->options->limit, write, ud);
  p->w.constants = (pln_print_constants)p->options->constants;
  PLN_TRY(pln_type_cache_init(&p->types, engine));
  PLN_TRY(pln_naming_init(&p->naming, engine));
  p->naming.meta.by_digest = p->options->hash_references;
  p->w.meta = p->types.meta = &p->naming.meta;
  p->w.naming = p->types.naming = &p->naming;
  return PLN_OK;
}

static void end_relay_text(printer *p) {
  pln_mem_free(p->engine, p->frames, p->cap_frames * sizeof *p->frames);
  pln_mem_free(p->engine, p->parts, p->cap_parts * sizeof *p->parts);
  pln_type_cache_free(&p->types);
  pln_naming_free(&p->naming);
}

/* Plans and prints `root`: a definition after its name, or an expression. */
static void put_graph(printer *p, const pln_graph *graph, pln_ref root,
                      bool definition) {
  p->graph = graph;
  fail_relay_text(
      p, pln_text_plan_make(&p->plan, &p->naming, graph, root, definition));
  if (p->w.status == PLN_OK && definition) {
    put_function(p, "", root);
    push_scope_frame(p, root, graph->nodes[root].data);
    if (p->n_frames > 0)
      p->frames[0].definition = true;
  } else if (p->w.status == PLN_OK) {
    p->extra = UINT32_MAX; /* the text's own scope is not indented */
    push_scope_frame(p, PLN_NONE, graph->n_scopes);
  }
  print_pending_nodes(p);
  pln_text_plan_free(&p->plan);
}

/* Types, then functions, sorted by name as in TVM's text. */
typedef struct definition {
  pln_slice name;
  uint32_t index;
} definition;

static int compare_definitions(const void *a, const void *b) {
  const definition *x = a, *y = b;
  size_t size = x->name.size < y->name.size ? x->name.size : y->name.size;
  int order = size ? memcmp(x->name.data, y->name.data, size) : 0;
  return order ? order
               : (x->name.size > y->name.size) - (x->name.size < y->name.size);
}

static void put_constructor(printer *p, const pln_constructor *c) {
  pln_put_name(&p->w, "", pln_symbol_text(p->engine, c->name));
  for (uint32_t i = 0; i < c->n_inputs; i++) {
    write_relay_text(p, i > 0 ? ", " : "(");
    write_type_annotation(p, c->inputs[i]);
  }
  write_relay_text(p, c->n_inputs > 0 ? "),\n" : ",\n");
}

static void put_type_data(printer *p, const pln_type_def *data) {
  write_relay_text(p, data->is_extern ? "extern type " : "type ");
  pln_put_name(&p->w, "", pln_symbol_text(p->engine, data->name));
  for (uint32_t i = 0; i < data->n_vars; i++) {
    write_relay_text(p, i > 0 ? ", " : "[");
    write_type_annotation(p, data->vars[i]);
  }
  write_relay_text(p, data->n_vars > 0 ? "]" : "");
  if (data->is_extern) {
    write_relay_text(p, "\n");
    return;
  }
  write_relay_text(p, data->n_constructors > 0 ? " {\n" : " {\n  \n");
  for (uint32_t i = 0; i < data->n_constructors; i++) {
    write_relay_text(p, "  ");
    put_constructor(p, &data->constructors[i]);
  }
  write_relay_text(p, "}\n");
}

static void put_types(printer *p, const pln_module *module, definition *rows) {
  uint32_t n = pln_module_n_types(module);
  for (uint32_t i = 0; i < n; i++)
    rows[i] = (definition){
        pln_symbol_text(p->engine, pln_module_type_def_at(module, i)->name), i};
  qsort(rows, n, sizeof *rows, compare_definitions);
  for (uint32_t i = 0; i < n && !pln_writer_done(&p->w); i++) {
    write_relay_text(p, i > 0 ? "\n" : "");
    put_type_data(p, pln_module_type_def_at(module, rows[i].index));
  }
}

static void put_functions(printer *p, const pln_module *module,
                          definition *rows) {
  bool first = pln_module_n_types(module) == 0;
  for (uint32_t i = 0; i < module->count; i++)
    rows[i] = (definition){
        pln_symbol_text(p->engine, pln_module_name_at(module, i)), i};
  qsort(rows, module->count, sizeof *rows, compare_definitions);
  for (uint32_t i = 0; i < module->count && !pln_writer_done(&p->w); i++) {
    const pln_graph *graph = pln_module_function_at(module, rows[i].index);
    if (graph->nodes[graph->root].kind == PLN_PRIM_FUNC)
      continue;
    write_relay_text(p, first ? "def " : "\ndef ");
    first = false;
    pln_put_name(&p->w, "@", rows[i].name);
    put_graph(p, graph, graph->root, true);
  }
}

/* Other bytes are escaped, because JSON has no byte strings. */
static pln_status append_escaped(void *ud, const char *data, size_t size) {
  pln_buffer *out = ud;
  for (size_t i = 0; i < size; i++)
    if ((unsigned char)data[i] < 0x80)
      PLN_TRY(pln_buffer_add(out, data + i, 1));
    else
      PLN_TRY(pln_buffer_printf(out, "\\x%02x", (unsigned char)data[i]));
  return PLN_OK;
}

/* The metadata section, with the module's attributes if there are any. */
static void put_metadata(printer *p, const pln_module *module) {
  pln_buffer text;
  pln_writer w;
  pln_buffer_init(&text, p->engine);
  pln_writer_init(&w, p->engine, 0, append_escaped, &text);
  w.meta = &p->naming.meta;
  w.naming = &p->naming;
  pln_put_attrs(&w, module->attrs, NULL, "");
  pln_status status = pln_writer_end(&w);
  if (status == PLN_OK && text.size > 0)
    status = pln_metadata_add_module(&p->naming.meta,
                                     (pln_slice){text.data, text.size});
  if (status != PLN_OK)
    fail_relay_text(p, status);
  else if (!p->options->no_metadata)
    pln_write_metadata_section(&p->w, &p->naming.meta);
  else if (p->naming.meta.count > 0)
    write_relay_text(p, "\n/* the metadata section is left out */\n");
  pln_buffer_free(&text);
}

static void put_module(printer *p, const pln_module *module) {
  uint32_t types = pln_module_n_types(module), functions = module->count;
  size_t size = (types > functions ? types : functions) * sizeof(definition);
  definition *rows = pln_mem_new(p->engine, size);
  p->naming.meta.tir_vars = module->tir_vars;
  write_relay_text(p, "#[version = \"0.0.5\"]\n");
  if (rows) {
    put_types(p, module, rows);
    put_functions(p, module, rows);
  } else if (size > 0) {
    fail_relay_text(p, pln_nomem(p->engine));
  }
  pln_mem_free(p->engine, rows, size);
  put_metadata(p, module);
}

static uint32_t count_prim_funcs(const pln_module *module) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < module->count; i++) {
    const pln_graph *g = pln_module_function_at(module, i);
    n += g->nodes[g->root].kind == PLN_PRIM_FUNC;
  }
  return n;
}

/* Relay functions as Relay text, then PrimFuncs as TVMScript. */
pln_status pln_print_module(const pln_module *module,
                            const pln_print_options *options,
                            pln_write_fn write, void *ud) {
  printer p;
  size_t limit = options ? options->limit : 0;
  uint32_t prim = count_prim_funcs(module);
  if (prim > 0 && prim == module->count && !pln_module_n_types(module))
    return pln_print_script_module(module, limit, write, ud);
  pln_status status = start_relay_text(&p, module->engine, options, write, ud);
  if (status == PLN_OK) {
    put_module(&p, module);
    write_relay_text(&p, prim > 0 ? "\n" : "");
    status = pln_writer_end(&p.w);
  }
  end_relay_text(&p);
  if (status == PLN_OK && prim > 0)
    status = pln_print_script_module(module, limit, write, ud);
  return status;
}

/* True for a TIR node; a Var is one if its type is. */
static bool is_script(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  pln_type_kind type = pln_type_get_kind(g->engine, n->type);
  bool value = type == PLN_TYPE_PRIM || type == PLN_TYPE_POINTER;
  return pln_is_prim(n) || pln_is_tir(n) || (n->kind == PLN_VAR && value);
}

pln_status pln_print_node(const pln_graph *graph, pln_ref node,
                          const pln_print_options *options, pln_write_fn write,
                          void *ud) {
  printer p;
  if (node >= graph->n_nodes)
    return pln_diag_error(graph->engine, PLN_ERR_ARGUMENT, NULL,
                          "node %u is none of the graph's %u nodes",
                          (unsigned)node, (unsigned)graph->n_nodes);
  if (is_script(graph, node))
    return pln_print_script(graph, node, options && options->declared,
                            options ? options->limit : 0, write, ud);
  pln_status status = start_relay_text(&p, graph->engine, options, write, ud);
  if (status == PLN_OK) {
    put_graph(&p, graph, node, false);
    if (!p.options->no_metadata)
      pln_write_metadata_section(&p.w, &p.naming.meta);
    status = pln_writer_end(&p.w);
  }
  end_relay_text(&p);
  return status;
}
