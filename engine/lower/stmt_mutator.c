/* stmt_mutator.c: the walk over a PrimFunc that passes rewrite by callbacks
 * (stmt_mutator.h).
 *
 * Called by the passes of lower/. What always holds: a frame per open
 * statement, no recursion; an image of a PrimExpr is valid within one statement
 * (`now`), an image of a Var or Buffer until it is bound again. */

#include "lower/stmt_mutator.h"

enum { MOST_BODIES = 2 };

/* An entry of the stack of expressions whose operands have images. */
#define LEAVE 0x80000000u

typedef struct stmt_frame {
  pln_ref stmt;
  pln_ref next; /* the next statement of the body that is visited */
  pln_scope body;
  uint32_t k;        /* its number */
  uint32_t operands; /* the first image in the stack of operands */
  uint32_t results;  /* of the body: the first image in the stack of results */
  uint32_t visits;   /* how often the body was visited before */
  uint32_t visited;  /* the image of the first visit, in the same stack */
  bool inside;       /* a body is being visited */
  pln_ref bodies[MOST_BODIES];
} stmt_frame;

typedef struct ref_stack {
  pln_ref *items;
  uint32_t n, cap;
} ref_stack;

struct pln_stmt_rewrite {
  pln_engine *engine;
  const pln_graph *old;
  const pln_stmt_mutator *mutator;
  pln_builder *b;
  pln_ref *image;      /* by old node */
  uint32_t *stamp;     /* by old node: the statement of the image */
  pln_ref *next_stmt;  /* by old statement: the next one of its scope */
  pln_ref *first_stmt; /* by old scope */
  uint32_t now;        /* of the present statement */
  stmt_frame *frames;
  uint32_t n_frames, cap_frames;
  ref_stack operands, results, exprs;
  bool changed;
};

static pln_status push_ref(pln_stmt_rewrite *s, ref_stack *stack, pln_ref ref) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&stack->items, &stack->cap,
                       (size_t)stack->n + 1, sizeof *stack->items));
  stack->items[stack->n++] = ref;
  return PLN_OK;
}

static stmt_frame *top_frame(const pln_stmt_rewrite *s) {
  return &s->frames[s->n_frames - 1];
}

/* ---------------------------------------------------------------- accessors */

pln_builder *pln_stmt_builder(const pln_stmt_rewrite *s) {
  return s->b;
}

const pln_graph *pln_stmt_old(const pln_stmt_rewrite *s) {
  return s->old;
}

const pln_node *pln_stmt_node(const pln_stmt_rewrite *s, pln_ref image) {
  return &s->b->graph->nodes[image];
}

/* Vars and Buffers have an identity, which their image keeps. */
static bool persists(const pln_node *n) {
  return n->kind == PLN_VAR || n->kind == PLN_BUFFER;
}

pln_ref pln_stmt_image(const pln_stmt_rewrite *s, pln_ref old) {
  return s->stamp[old] == s->now || persists(&s->old->nodes[old])
             ? s->image[old]
             : PLN_NONE;
}

void pln_stmt_bind(pln_stmt_rewrite *s, pln_ref old, pln_ref image) {
  s->changed |= image != PLN_NONE && image != s->image[old];
  s->image[old] = image;
  /* A bound Buffer is final; a copy is looked at again in each statement. */
  s->stamp[old] = image == PLN_NONE ? 0 : UINT32_MAX;
}

pln_status pln_stmt_bind_new_var(pln_stmt_rewrite *s, pln_ref old) {
  const pln_node *n = &s->old->nodes[old];
  pln_ref var;
  PLN_TRY(pln_build_var(s->b, n->attrs, n->type, 0, &var));
  s->b->graph->nodes[var].results = n->results;
  pln_stmt_bind(s, old, var);
  return PLN_OK;
}

pln_ref pln_stmt_operand(const pln_stmt_rewrite *s, uint32_t i) {
  return s->operands.items[top_frame(s)->operands + i];
}

pln_ref pln_stmt_body(const pln_stmt_rewrite *s, uint32_t k) {
  return top_frame(s)->bodies[k];
}

uint32_t pln_stmt_visits(const pln_stmt_rewrite *s) {
  return top_frame(s)->visits;
}

static pln_scope scope_of(const pln_stmt_rewrite *s, pln_ref stmt, uint32_t k) {
  pln_scope scope = s->old->nodes[stmt].data;
  while (k-- > 0 && scope != PLN_NONE)
    scope = s->old->scopes[scope].next;
  return scope;
}

pln_ref pln_stmt_param(const pln_stmt_rewrite *s, pln_ref stmt, uint32_t k,
                       uint32_t i) {
  return s->old->scopes[scope_of(s, stmt, k)].begin + i;
}

/* -------------------------------------------------------------- expressions */

/* A copy of a node that is not made by pln_build_prim. */
static pln_status copy_atom(pln_stmt_rewrite *s, const pln_node *n,
                            pln_ref *out) {
  switch (n->kind) {
  case PLN_VAR:
    PLN_TRY(pln_build_var(s->b, n->attrs, n->type, n->data, out));
    s->b->graph->nodes[*out].results = n->results;
    return PLN_OK;
  case PLN_CONSTANT:
    return pln_build_constant(s->b, s->old->tensors[n->data], out);
  case PLN_GLOBAL_VAR: return pln_build_global_var(s->b, n->data, n->type, out);
  case PLN_INT_IMM:
    return pln_build_int_imm(s->b, n->type, (int64_t)pln_imm_bits(n), out);
  case PLN_STRING_IMM: return pln_build_string_imm(s->b, n->data, out);
  default: {
    uint64_t bits = pln_imm_bits(n);
    double value;
    memcpy(&value, &bits, sizeof value);
    return pln_build_float_imm(s->b, n->type, value, out);
  }
  }
}

static bool is_atom(const pln_node *n) {
  return n->kind == PLN_VAR || n->kind == PLN_CONSTANT ||
         n->kind == PLN_GLOBAL_VAR || n->kind == PLN_INT_IMM ||
         n->kind == PLN_FLOAT_IMM || n->kind == PLN_STRING_IMM;
}

/* Kinds whose type the node gives; that of others follows from operands. */
static bool gives_type(const pln_node *n) {
  return n->kind == PLN_PRIM_CAST || n->kind == PLN_PRIM_CALL ||
         n->kind == PLN_BUFFER || n->kind == PLN_PRODUCER_LOAD;
}

/* A Buffer whose fields are what they were keeps its image. */
static bool has_these_operands(const pln_stmt_rewrite *s, pln_ref image,
                               const pln_ref *operands) {
  const pln_graph *g = s->b->graph;
  for (uint32_t i = 0; i < g->nodes[image].count; i++)
    if (!pln_same_expr(g, pln_operand(g, image, i), operands[i]))
      return false;
  return true;
}

static pln_status build_like(pln_stmt_rewrite *s, pln_ref old, pln_type type,
                             const pln_ref *operands, pln_ref *out) {
  const pln_node *n = &s->old->nodes[old];
  pln_prim spec = {.kind = (pln_kind)n->kind,
                   .count = n->results,
                   .data = n->data,
                   .attrs = n->attrs,
                   .type = gives_type(n) ? type : 0,
                   .n = n->count,
                   .operands = operands};
  if (n->kind == PLN_BUFFER && type == n->type && s->image[old] != PLN_NONE &&
      has_these_operands(s, s->image[old], operands)) {
    *out = s->image[old];
    return PLN_OK;
  }
  return pln_build_prim(s->b, &spec, out);
}

/* A node of that type whose operands are the images of the old ones; of a
 * Buffer, the last dimension is multiplied by `factor` unless it is PLN_NONE.
 */
static pln_status copy_as(pln_stmt_rewrite *s, pln_ref old, pln_type type,
                          pln_ref factor, pln_ref *out) {
  const pln_node *n = &s->old->nodes[old];
  pln_ref few[8] = {0}, *operands = few;
  pln_status status = PLN_OK;
  if (n->count > PLN_COUNT(few) &&
      !(operands = pln_mem_new(s->engine, n->count * sizeof *operands)))
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = s->image[pln_operand(s->old, old, i)];
  if (factor != PLN_NONE)
    status = pln_build_folded(s->b, PLN_PRIM_MUL, operands[n->results], factor,
                              &operands[n->results]);
  if (status == PLN_OK)
    status = build_like(s, old, type, operands, out);
  if (operands != few)
    pln_mem_free(s->engine, operands, n->count * sizeof *operands);
  return status;
}

/* Copies an expression whose operands have images. */
static pln_status copy_expr(pln_stmt_rewrite *s, pln_ref old, pln_ref *out) {
  const pln_node *n = &s->old->nodes[old];
  return is_atom(n) ? copy_atom(s, n, out)
                    : copy_as(s, old, n->type, PLN_NONE, out);
}

pln_status pln_stmt_buffer_of(pln_stmt_rewrite *s, pln_ref old, pln_type type,
                              pln_ref *out) {
  return copy_as(s, old, type, PLN_NONE, out);
}

pln_status pln_stmt_enlarge_buffer(pln_stmt_rewrite *s, pln_ref old,
                                   pln_ref factor, pln_ref *out) {
  PLN_TRY(copy_as(s, old, s->old->nodes[old].type, factor, out));
  pln_stmt_bind(s, old, *out);
  return PLN_OK;
}

static pln_status set_origin(pln_stmt_rewrite *s, pln_ref old) {
  return pln_builder_import_origin(s->b, s->old, old, &s->b->origin);
}

static pln_status leave_expr(pln_stmt_rewrite *s, pln_ref old) {
  pln_ref node = PLN_NONE;
  PLN_TRY(set_origin(s, old));
  if (s->mutator->expr)
    PLN_TRY(s->mutator->expr(s->mutator->ud, s, old, &node));
  if (node != PLN_NONE)
    s->changed = true;
  else
    PLN_TRY(copy_expr(s, old, &node));
  s->image[old] = node;
  if (s->stamp[old] != UINT32_MAX)
    s->stamp[old] = s->now;
  return PLN_OK;
}

/* A Var keeps its image until it is bound again. */
static bool has_image(const pln_stmt_rewrite *s, pln_ref old) {
  if (s->image[old] == PLN_NONE)
    return false;
  return s->stamp[old] == s->now || s->stamp[old] == UINT32_MAX ||
         s->old->nodes[old].kind == PLN_VAR;
}

static pln_status visit_expr(pln_stmt_rewrite *s, pln_ref entry) {
  pln_ref old = entry & ~LEAVE;
  if (entry & LEAVE)
    return has_image(s, old) ? PLN_OK : leave_expr(s, old);
  if (has_image(s, old))
    return PLN_OK;
  PLN_TRY(push_ref(s, &s->exprs, old | LEAVE));
  for (uint32_t i = s->old->nodes[old].count; i-- > 0;)
    PLN_TRY(push_ref(s, &s->exprs, pln_operand(s->old, old, i)));
  return PLN_OK;
}

static pln_status map_expr(pln_stmt_rewrite *s, pln_ref old, pln_ref *out) {
  uint32_t bottom = s->exprs.n;
  PLN_TRY(push_ref(s, &s->exprs, old));
  while (s->exprs.n > bottom)
    PLN_TRY(visit_expr(s, s->exprs.items[--s->exprs.n]));
  *out = s->image[old];
  return PLN_OK;
}

pln_status pln_stmt_map(pln_stmt_rewrite *s, pln_ref old, pln_ref *out) {
  s->now++;
  return map_expr(s, old, out);
}

/* ----------------------------------------------------------------- building */

pln_status pln_stmt_int_like(pln_stmt_rewrite *s, pln_ref like, int64_t value,
                             pln_ref *out) {
  return pln_build_int_imm(s->b, pln_stmt_node(s, like)->type, value, out);
}

pln_status pln_stmt_broadcast(pln_stmt_rewrite *s, pln_type type,
                              pln_ref *value) {
  int64_t lanes = pln_type_number(pln_stmt_old(s)->engine, type);
  pln_prim spec = {.kind = PLN_BROADCAST,
                   .data = (uint32_t)lanes,
                   .n = 1,
                   .operands = value};
  return lanes > 1 ? pln_build_prim(s->b, &spec, value) : PLN_OK;
}

pln_status pln_stmt_rebuild_buffer(pln_stmt_rewrite *s, pln_ref old, uint32_t n,
                                   const pln_ref *operands, pln_ref *out) {
  const pln_node *buffer = &pln_stmt_old(s)->nodes[old];
  pln_prim prim = {.kind = PLN_BUFFER,
                   .count = buffer->results,
                   .data = buffer->data,
                   .attrs = buffer->attrs,
                   .type = buffer->type,
                   .n = n,
                   .operands = operands};
  PLN_TRY(pln_build_prim(s->b, &prim, out));
  pln_stmt_bind(s, old, *out);
  return PLN_OK;
}

pln_status pln_stmt_no_op(pln_stmt_rewrite *s, pln_ref *out) {
  pln_type type;
  pln_ref zero;
  PLN_TRY(pln_type_prim(s->engine, PLN_INT32, 1, &type));
  PLN_TRY(pln_build_int_imm(s->b, type, 0, &zero));
  return pln_build_prim(
      s->b, &(pln_prim){.kind = PLN_EVALUATE, .n = 1, .operands = &zero}, out);
}

static bool is_no_op(const pln_stmt_rewrite *s, pln_ref stmt) {
  const pln_graph *g = s->b->graph;
  return g->nodes[stmt].kind == PLN_EVALUATE &&
         pln_is_int(g, pln_operand(g, stmt, 0), 0);
}

bool pln_is_seq_element(pln_kind kind) {
  return kind != PLN_BUFFER_BIND && kind != PLN_BLOCK_READS &&
         kind != PLN_BLOCK_WRITES && kind != PLN_ALLOC_BUFFER &&
         kind != PLN_MATCH_BUFFER && kind != PLN_BLOCK_INIT;
}

/* Moves the statements that stay to the front of the list. */
static uint32_t drop_no_ops(const pln_stmt_rewrite *s, uint32_t n,
                            pln_ref *stmts) {
  uint32_t left = 0, elements = 0;
  pln_ref last = PLN_NONE;
  for (uint32_t i = 0; i < n; i++) {
    if (is_no_op(s, stmts[i])) {
      last = stmts[i];
      continue;
    }
    elements += pln_is_seq_element((pln_kind)pln_stmt_node(s, stmts[i])->kind);
    stmts[left++] = stmts[i];
  }
  if (elements == 0 && last != PLN_NONE)
    stmts[left++] = last;
  return left;
}

pln_status pln_stmt_seq(pln_stmt_rewrite *s, uint32_t n, pln_ref *stmts,
                        pln_ref *out) {
  uint32_t left = drop_no_ops(s, n, stmts);
  if (left == 0)
    return pln_stmt_no_op(s, out);
  *out = stmts[0];
  return left == 1 ? PLN_OK : pln_build_seq(s->b, left, stmts, out);
}

/* The number of BufferBinds that a sequence begins with. */
static uint32_t n_binds(const pln_stmt_rewrite *s, pln_ref body) {
  const pln_graph *g = s->b->graph;
  uint32_t n = 0;
  if (g->nodes[body].kind == PLN_SEQ_STMT)
    while (n < g->nodes[body].count &&
           g->nodes[pln_operand(g, body, n)].kind == PLN_BUFFER_BIND)
      n++;
  return n;
}

/* Pushes the first or the last statements of a sequence as results. */
static pln_status push_part(pln_stmt_rewrite *s, pln_ref body, uint32_t first,
                            uint32_t end) {
  for (uint32_t i = first; i < end; i++)
    PLN_TRY(push_ref(s, &s->results, pln_operand(s->b->graph, body, i)));
  return PLN_OK;
}

static pln_status pop_seq(pln_stmt_rewrite *s, uint32_t base, pln_ref *out) {
  uint32_t n = s->results.n - base;
  s->results.n = base;
  return pln_stmt_seq(s, n, s->results.items ? s->results.items + base : NULL,
                      out);
}

pln_status pln_stmt_split_binds(pln_stmt_rewrite *s, pln_ref body,
                                pln_ref *rest) {
  uint32_t base = s->results.n, binds = n_binds(s, body);
  *rest = body;
  if (binds == 0)
    return PLN_OK;
  PLN_TRY(push_part(s, body, binds, s->b->graph->nodes[body].count));
  return pop_seq(s, base, rest);
}

pln_status pln_stmt_join_binds(pln_stmt_rewrite *s, pln_ref body, pln_ref rest,
                               pln_ref *out) {
  uint32_t base = s->results.n;
  PLN_TRY(push_part(s, body, 0, n_binds(s, body)));
  PLN_TRY(push_ref(s, &s->results, rest));
  return pop_seq(s, base, out);
}

static uint32_t n_bodies(const pln_stmt_rewrite *s, pln_ref stmt) {
  uint32_t k = 0;
  if (pln_owns(&s->old->nodes[stmt]))
    for (pln_scope at = s->old->nodes[stmt].data; at != PLN_NONE; k++)
      at = s->old->scopes[at].next;
  return k;
}

/* The images of a body's parameters, on the stack of operands. */
static pln_status push_params(pln_stmt_rewrite *s, pln_ref stmt, uint32_t k) {
  uint32_t n = s->old->scopes[scope_of(s, stmt, k)].n_params;
  for (uint32_t i = 0; i < n; i++) {
    pln_ref param;
    PLN_TRY(map_expr(s, pln_stmt_param(s, stmt, k, i), &param));
    PLN_TRY(push_ref(s, &s->operands, param));
  }
  return PLN_OK;
}

static pln_status build_owner(pln_stmt_rewrite *s, const pln_prim *spec,
                              pln_ref stmt, uint32_t k, pln_ref *out) {
  const stmt_frame *f = top_frame(s);
  uint32_t base = s->operands.n, at = base;
  pln_body bodies[MOST_BODIES];
  for (uint32_t i = 0; i < k; i++) {
    PLN_TRY(push_params(s, stmt, i));
    bodies[i] =
        (pln_body){.n_params = s->operands.n - at, .stmt = f->bodies[i]};
    at = s->operands.n;
  }
  for (uint32_t i = 0; i < k; i++, base += bodies[i - 1].n_params)
    bodies[i].params = pln_refs_at(s->operands.items, base);
  pln_prim whole = *spec;
  whole.operands = pln_refs_at(s->operands.items, f->operands);
  s->operands.n = f->operands + spec->n;
  return pln_build_floating_stmt(s->b, &whole, k, bodies, out);
}

pln_status pln_stmt_rebuild(pln_stmt_rewrite *s, pln_ref stmt, pln_ref *out) {
  const pln_node *n = &s->old->nodes[stmt];
  uint32_t k = n_bodies(s, stmt);
  pln_prim spec = {.kind = (pln_kind)n->kind,
                   .count = n->results,
                   .attrs = n->attrs,
                   .type = n->kind == PLN_PRIM_FUNC ? n->type : 0,
                   .n = n->count};
  if (k > 0)
    return build_owner(s, &spec, stmt, k, out);
  spec.data = n->data;
  spec.operands = pln_refs_at(s->operands.items, top_frame(s)->operands);
  return pln_build_prim(s->b, &spec, out);
}

/* The attributes of a loop of another kind. Serial is not written. */
static pln_status with_for_kind(pln_engine *e, pln_attrs attrs, int64_t kind,
                                pln_attrs *out) {
  pln_symbol name;
  if (kind == 0)
    return pln_attrs_without(e, attrs, "kind", out);
  PLN_TRY(pln_symbol_intern(e, pln_text("kind"), &name));
  return pln_attrs_with(
      e, attrs, &(pln_attr){.name = name, .kind = PLN_ATTR_INT, .v.i = kind},
      out);
}

pln_status pln_stmt_rebuild_as(pln_stmt_rewrite *s, pln_ref stmt,
                               const pln_prim *spec, pln_ref *out) {
  return build_owner(s, spec, stmt, n_bodies(s, stmt), out);
}

pln_status pln_stmt_rebuild_for(pln_stmt_rewrite *s, pln_ref loop, int64_t kind,
                                pln_ref *out) {
  const pln_node *n = &s->old->nodes[loop];
  pln_prim spec = {.kind = PLN_FOR, .n = kind == 4 ? n->count : 2};
  PLN_TRY(with_for_kind(s->engine, n->attrs, kind, &spec.attrs));
  return pln_stmt_rebuild_as(s, loop, &spec, out);
}

/* --------------------------------------------------------------- statements */

static pln_status map_operand(pln_stmt_rewrite *s, pln_ref stmt, uint32_t i,
                              pln_ref *out) {
  const pln_stmt_mutator *m = s->mutator;
  *out = PLN_NONE;
  if (m->enter_operand)
    PLN_TRY(m->enter_operand(m->ud, s, stmt, i, out));
  if (*out != PLN_NONE) {
    s->changed = true;
    return PLN_OK;
  }
  PLN_TRY(map_expr(s, pln_operand(s->old, stmt, i), out));
  pln_ref preset = *out;
  if (m->operand)
    PLN_TRY(m->operand(m->ud, s, stmt, i, out));
  s->changed |= *out != preset;
  return PLN_OK;
}

static pln_status map_operands(pln_stmt_rewrite *s, pln_ref stmt) {
  const pln_node *n = &s->old->nodes[stmt];
  s->now++;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref image;
    PLN_TRY(map_operand(s, stmt, i, &image));
    PLN_TRY(push_ref(s, &s->operands, image));
  }
  return PLN_OK;
}

static pln_status enter_stmt(pln_stmt_rewrite *s, pln_ref stmt) {
  pln_ref node = PLN_NONE;
  PLN_TRY(pln_poll_round(s->engine, s->now));
  if (s->mutator->enter) {
    PLN_TRY(set_origin(s, stmt));
    PLN_TRY(s->mutator->enter(s->mutator->ud, s, stmt, &node));
  }
  if (node != PLN_NONE) {
    s->changed = true;
    return node == PLN_NO_STMT ? PLN_OK : push_ref(s, &s->results, node);
  }
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->frames, &s->cap_frames,
                       (size_t)s->n_frames + 1, sizeof *s->frames));
  const pln_node *n = &s->old->nodes[stmt];
  s->frames[s->n_frames++] = (stmt_frame){
      .stmt = stmt,
      .body = pln_owns(n) ? n->data : PLN_NONE,
      .operands = s->operands.n,
      .bodies = {PLN_NONE, PLN_NONE},
  };
  return map_operands(s, stmt);
}

static pln_status enter_body(pln_stmt_rewrite *s) {
  stmt_frame *f = top_frame(s);
  bool skip = false;
  if (s->mutator->enter_body)
    PLN_TRY(s->mutator->enter_body(s->mutator->ud, s, f->stmt, f->k, &skip));
  if (skip) {
    s->changed = true;
    f->body = s->old->scopes[f->body].next;
    f->k++;
    return PLN_OK;
  }
  f->inside = true;
  f->results = s->results.n;
  if (f->visits == 0)
    f->visited = f->results;
  f->next = s->first_stmt[f->body];
  return PLN_OK;
}

static pln_ref *results_at(const pln_stmt_rewrite *s, uint32_t at) {
  return s->results.items ? s->results.items + at : NULL;
}

/* The images of all visits, one after the other, are the body. */
static pln_status next_body(pln_stmt_rewrite *s, stmt_frame *f) {
  PLN_TRY(pln_stmt_seq(s, s->results.n - f->visited, results_at(s, f->visited),
                       &f->bodies[f->k]));
  s->results.n = f->visited;
  f->body = s->old->scopes[f->body].next;
  f->visits = 0;
  f->k++;
  return PLN_OK;
}

static pln_status leave_body(pln_stmt_rewrite *s) {
  stmt_frame *f = top_frame(s);
  pln_ref body, preset;
  bool again = false;
  PLN_TRY(set_origin(s, f->stmt));
  PLN_TRY(pln_stmt_seq(s, s->results.n - f->results, results_at(s, f->results),
                       &body));
  s->results.n = f->results;
  preset = body;
  f->inside = false;
  if (s->mutator->leave_body)
    PLN_TRY(s->mutator->leave_body(s->mutator->ud, s, f->stmt, f->k, &body,
                                   &again));
  s->changed |= again || body != preset;
  if (body != PLN_NO_STMT)
    PLN_TRY(push_ref(s, &s->results, body));
  f->visits++;
  return again ? PLN_OK : next_body(s, f);
}

static pln_status leave_stmt(pln_stmt_rewrite *s) {
  stmt_frame *f = top_frame(s);
  pln_ref node = PLN_NONE;
  PLN_TRY(set_origin(s, f->stmt));
  if (s->mutator->leave)
    PLN_TRY(s->mutator->leave(s->mutator->ud, s, f->stmt, &node));
  if (node == PLN_NONE)
    PLN_TRY(pln_stmt_rebuild(s, f->stmt, &node));
  else
    s->changed = true;
  s->operands.n = f->operands;
  s->n_frames--;
  return node == PLN_NO_STMT ? PLN_OK : push_ref(s, &s->results, node);
}

static pln_status step(pln_stmt_rewrite *s) {
  stmt_frame *f = top_frame(s);
  if (!f->inside)
    return f->body == PLN_NONE ? leave_stmt(s) : enter_body(s);
  if (f->next == PLN_NONE)
    return leave_body(s);
  pln_ref stmt = f->next;
  f->next = s->next_stmt[stmt];
  return enter_stmt(s, stmt);
}

/* ------------------------------------------------------------------- driver */

/* Lists the statements of each scope. */
static void list_stmts(pln_stmt_rewrite *s, pln_ref *last) {
  pln_scope_cursor at = {.graph = s->old};
  for (pln_scope i = 0; i < s->old->n_scopes; i++)
    s->first_stmt[i] = last[i] = PLN_NONE;
  for (pln_ref ref = 0; ref < s->old->n_nodes; ref++) {
    pln_scope scope = pln_scope_cursor_at(&at, ref);
    if (!pln_is_stmt(&s->old->nodes[ref]))
      continue;
    s->next_stmt[ref] = PLN_NONE;
    if (last[scope] == PLN_NONE)
      s->first_stmt[scope] = ref;
    else
      s->next_stmt[last[scope]] = ref;
    last[scope] = ref;
  }
}

static pln_status begin(pln_stmt_rewrite *s) {
  size_t nodes = s->old->n_nodes, scopes = s->old->n_scopes;
  s->image = pln_mem_new(s->engine, nodes * sizeof *s->image);
  s->stamp = pln_mem_zeroed(s->engine, nodes * sizeof *s->stamp);
  s->next_stmt = pln_mem_new(s->engine, nodes * sizeof *s->next_stmt);
  s->first_stmt = pln_mem_new(s->engine, 2 * scopes * sizeof *s->first_stmt);
  if (!s->image || !s->stamp || !s->next_stmt || !s->first_stmt)
    return pln_nomem(s->engine);
  memset(s->image, 0xff, nodes * sizeof *s->image);
  list_stmts(s, s->first_stmt + scopes);
  PLN_TRY(pln_builder_new(s->engine, &s->b));
  return pln_builder_reserve(s->b, nodes, s->old->n_operands, scopes);
}

static void free_stack(pln_stmt_rewrite *s, ref_stack *stack) {
  pln_mem_free(s->engine, stack->items, stack->cap * sizeof *stack->items);
}

static void end(pln_stmt_rewrite *s) {
  size_t nodes = s->old->n_nodes, scopes = s->old->n_scopes;
  if (s->b)
    pln_builder_free(s->b);
  pln_mem_free(s->engine, s->image, nodes * sizeof *s->image);
  pln_mem_free(s->engine, s->stamp, nodes * sizeof *s->stamp);
  pln_mem_free(s->engine, s->next_stmt, nodes * sizeof *s->next_stmt);
  pln_mem_free(s->engine, s->first_stmt, 2 * scopes * sizeof *s->first_stmt);
  pln_mem_free(s->engine, s->frames, s->cap_frames * sizeof *s->frames);
  free_stack(s, &s->operands);
  free_stack(s, &s->results);
  free_stack(s, &s->exprs);
}

static pln_status rewrite_root(pln_stmt_rewrite *s, pln_graph **out) {
  PLN_TRY(begin(s));
  PLN_TRY(enter_stmt(s, s->old->root));
  while (s->n_frames > 0)
    PLN_TRY(step(s));
  if (!s->changed) {
    *out = pln_graph_retain(s->old);
    return PLN_OK;
  }
  return pln_builder_seal(s->b, s->results.items[0], out);
}

pln_status pln_stmt_rewrite_function(const pln_graph *function,
                                     const pln_stmt_mutator *mutator,
                                     pln_graph **out) {
  pln_stmt_rewrite s = {
      .engine = function->engine, .old = function, .mutator = mutator};
  if (function->nodes[function->root].kind != PLN_PRIM_FUNC)
    return pln_diag_error(function->engine, PLN_ERR_TYPE, NULL,
                          "a PrimFunc is expected, not a %s",
                          pln_kinds[function->nodes[function->root].kind].name);
  pln_status status = rewrite_root(&s, out);
  end(&s);
  return status;
}
