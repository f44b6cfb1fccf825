/* tir/script/parse/frame.c: the bodies of statements that are being parsed, and
 * the statements built when they end.
 *
 * Called by the statement parser. A frame's operands and parameters are on
 * p->saved, its statements on p->stmts; both are popped with it. */

#include "ir/tir/script/parse/parse.h"

pln_status pln_script_hold(pln_script_parser *p, pln_ref ref) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->saved, &p->cap_saved,
                       (size_t)p->n_saved + 1, sizeof *p->saved));
  p->saved[p->n_saved++] = ref;
  return PLN_OK;
}

pln_status pln_script_push_stmt(pln_script_parser *p, pln_ref ref) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->stmts, &p->cap_stmts,
                       (size_t)p->n_stmts + 1, sizeof *p->stmts));
  p->stmts[p->n_stmts++] = ref;
  return PLN_OK;
}

pln_status pln_script_add_part(pln_script_parser *p, pln_script_part part) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->parts, &p->cap_parts,
                       (size_t)p->n_parts + 1, sizeof *p->parts));
  p->parts[p->n_parts++] = part;
  return PLN_OK;
}

pln_open_frame *pln_script_enclosing(pln_script_parser *p) {
  for (uint32_t i = p->n_frames; i-- > 0;)
    if (p->frames[i].what == PLN_F_BLOCK || p->frames[i].what == PLN_F_FUNCTION)
      return &p->frames[i];
  return NULL;
}

pln_status pln_script_open_frame(pln_script_parser *p, pln_open_frame frame) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->frames, &p->cap_frames,
                       (size_t)p->n_frames + 1, sizeof *p->frames));
  frame.stmts = p->n_stmts;
  frame.mark = p->n_bindings;
  frame.parts = p->n_parts;
  frame.saved = p->n_saved - frame.operands - frame.params;
  if (!frame.at) {
    frame.at = p->place;
    frame.size = p->place_size;
  }
  p->frames[p->n_frames++] = frame;
  return PLN_OK;
}

static pln_status evaluate_zero(pln_script_parser *p, pln_ref *out) {
  PLN_TRY(pln_script_int(p, p->types[0], 0, out));
  PLN_TRY(pln_script_push_ref(p, *out));
  return pln_script_node(p, (pln_prim){.kind = PLN_EVALUATE}, p->n_refs - 1,
                         out);
}

/* The statements of a frame from `first` on as one, popped. Of an empty body,
 * T.evaluate(0), as in TVM. */
pln_status pln_script_sequence(pln_script_parser *p, uint32_t first,
                               pln_ref *out) {
  uint32_t n = p->n_stmts - first;
  p->n_stmts = first;
  if (n == 0)
    return evaluate_zero(p, out);
  *out = n == 1 ? p->stmts[first] : PLN_NONE;
  return n == 1 ? PLN_OK : pln_build_seq(p->b, n, p->stmts + first, out);
}

static pln_status close_owner(pln_script_parser *p, const pln_open_frame *f) {
  const pln_ref *saved = pln_refs_at(p->saved, f->saved);
  pln_prim spec = {.kind = (pln_kind)f->kind,
                   .attrs = f->attrs,
                   .n = f->operands,
                   .operands = saved};
  pln_body body = {.n_params = f->params,
                   .params = pln_refs_at(saved, f->operands)};
  PLN_TRY(pln_script_sequence(p, f->stmts, &body.stmt));
  PLN_TRY(pln_build_floating_stmt(p->b, &spec, 1, &body, &body.stmt));
  return pln_script_push_stmt(p, body.stmt);
}

static pln_status close_branch(pln_script_parser *p, const pln_open_frame *f) {
  bool both = f->what == PLN_F_ELSE;
  pln_prim spec = {
      .kind = PLN_IF_THEN_ELSE, .n = 1, .operands = p->saved + f->saved};
  pln_body bodies[2] = {{.stmt = f->ref}};
  pln_ref ref;
  PLN_TRY(pln_script_sequence(p, f->stmts, &bodies[both].stmt));
  PLN_TRY(pln_build_floating_stmt(p->b, &spec, both ? 2 : 1, bodies, &ref));
  return pln_script_push_stmt(p, ref);
}

static pln_status close_init(pln_script_parser *p, const pln_open_frame *f) {
  pln_prim spec = {.kind = PLN_BLOCK_INIT};
  pln_body body = {.n_params = 0};
  PLN_TRY(pln_script_sequence(p, f->stmts, &body.stmt));
  PLN_TRY(pln_build_floating_stmt(p->b, &spec, 1, &body, &body.stmt));
  return pln_script_add_part(
      p, (pln_script_part){.what = PLN_PART_INIT, .a = body.stmt});
}

/* ------------------------------------------------------------------- blocks */

/* BlockReads or BlockWrites. */
static pln_status push_regions(pln_script_parser *p, const pln_open_frame *f,
                               pln_kind kind) {
  uint32_t first = p->n_refs;
  pln_ref ref;
  for (uint32_t i = f->parts; i < p->n_parts; i++)
    if (p->parts[i].what ==
        (kind == PLN_BLOCK_READS ? PLN_PART_READS : PLN_PART_WRITES))
      PLN_TRY(pln_script_push_ref(p, p->parts[i].a));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = kind}, first, &ref));
  return pln_script_push_ref(p, ref);
}

static pln_status push_parts(pln_script_parser *p, const pln_open_frame *f,
                             int what) {
  for (uint32_t i = f->parts; i < p->n_parts; i++) {
    pln_ref ref = p->parts[i].a;
    if ((int)p->parts[i].what != what)
      continue;
    if (what == PLN_PART_ALLOC) {
      PLN_TRY(pln_script_push_ref(p, ref));
      PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_ALLOC_BUFFER},
                              p->n_refs - 1, &ref));
    }
    PLN_TRY(pln_script_push_ref(p, ref));
  }
  return PLN_OK;
}

/* What a block says before its body, then the body. */
static pln_status block_body(pln_script_parser *p, const pln_open_frame *f,
                             pln_ref *out) {
  uint32_t first = p->n_refs;
  if (p->n_stmts == f->stmts)
    return pln_script_sequence(p, f->stmts, out);
  PLN_TRY(push_regions(p, f, PLN_BLOCK_READS));
  PLN_TRY(push_regions(p, f, PLN_BLOCK_WRITES));
  PLN_TRY(push_parts(p, f, PLN_PART_ALLOC));
  PLN_TRY(push_parts(p, f, PLN_PART_MATCH));
  PLN_TRY(push_parts(p, f, PLN_PART_INIT));
  for (uint32_t i = f->stmts; i < p->n_stmts; i++)
    PLN_TRY(pln_script_push_ref(p, p->stmts[i]));
  p->n_stmts = f->stmts;
  pln_status status =
      pln_build_seq(p->b, p->n_refs - first, pln_refs_at(p->refs, first), out);
  p->n_refs = first;
  return status;
}

/* The axes of a block: ranges, then variables, then values, on p->refs. */
static pln_status push_axes(pln_script_parser *p, const pln_open_frame *f,
                            uint32_t *n, pln_attrs *attrs) {
  *n = 0;
  for (int field = 0; field < 3; field++)
    for (uint32_t i = f->parts; i < p->n_parts; i++) {
      const pln_script_part *part = &p->parts[i];
      if (part->what != PLN_PART_AXIS)
        continue;
      *n += field == 0;
      PLN_TRY(pln_script_push_ref(p, field == 0   ? part->b
                                     : field == 1 ? part->a
                                                  : part->c));
    }
  pln_attr types = {.kind = PLN_ATTR_INTS, .count = *n};
  int64_t *items = pln_arena_new(&p->arena, (*n + 1) * sizeof *items);
  if (!items)
    return pln_nomem(p->engine);
  types.v.ints = items;
  for (uint32_t i = f->parts; i < p->n_parts; i++)
    if (p->parts[i].what == PLN_PART_AXIS)
      *items++ = p->parts[i].number;
  PLN_TRY(pln_symbol_intern(p->engine, pln_text("iter_types"), &types.name));
  return pln_attrs_with(p->engine, *attrs, &types, attrs);
}

static pln_status realize(pln_script_parser *p, const pln_open_frame *f,
                          uint32_t n, const pln_ref *values, pln_ref *block) {
  uint32_t first = p->n_refs;
  pln_ref predicate = f->ref;
  if (predicate == PLN_NONE)
    PLN_TRY(pln_build_int_imm(p->b, p->types[2], 1, &predicate));
  PLN_TRY(pln_script_push_ref(p, predicate));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_script_push_ref(p, values[i]));
  pln_prim spec = {.kind = PLN_BLOCK_REALIZE,
                   .n = n + 1,
                   .operands = pln_refs_at(p->refs, first)};
  pln_body body = {.stmt = *block};
  p->n_refs = first;
  p->blocks++;
  return pln_build_floating_stmt(p->b, &spec, 1, &body, block);
}

/* Marks a block with what it does not say: 1: that it reads, 2: that it writes.
 * A block without statements accesses nothing. */
static pln_status mark_absent(pln_script_parser *p, const pln_open_frame *f,
                              pln_attrs *attrs) {
  int64_t absent = 3 & ~f->given;
  if (absent == 0 || p->n_stmts == f->stmts || p->part)
    return PLN_OK;
  return pln_script_with_int(p, "tir.script_parsing_detect_access", absent,
                             attrs);
}

/* Appends a Block, and its BlockRealize, as one statement. */
pln_status pln_script_close_block(pln_script_parser *p,
                                  const pln_open_frame *f) {
  uint32_t first = p->n_refs, n;
  pln_attrs attrs = f->attrs;
  pln_ref stmt;
  PLN_TRY(mark_absent(p, f, &attrs));
  PLN_TRY(push_axes(p, f, &n, &attrs));
  PLN_TRY(block_body(p, f, &stmt));
  pln_prim spec = {.kind = PLN_BLOCK,
                   .attrs = attrs,
                   .n = n,
                   .operands = pln_refs_at(p->refs, first)};
  pln_body body = {
      .n_params = n, .params = pln_refs_at(p->refs, first + n), .stmt = stmt};
  PLN_TRY(pln_build_floating_stmt(p->b, &spec, 1, &body, &stmt));
  if (f->realized) {
    PLN_TRY(pln_mem_grow(p->engine, (void **)&p->refs, &p->cap_refs,
                         (size_t)p->n_refs + n + 1, sizeof *p->refs));
    PLN_TRY(
        realize(p, f, n, pln_refs_at(p->refs, first + 2 * (size_t)n), &stmt));
  }
  p->n_refs = first;
  p->n_parts = f->parts;
  return pln_script_push_stmt(p, stmt);
}

static pln_status close(pln_script_parser *p, const pln_open_frame *f) {
  switch ((pln_script_frame_what)f->what) {
  case PLN_F_OWNER: return close_owner(p, f);
  case PLN_F_THEN:
  case PLN_F_ELSE: return close_branch(p, f);
  case PLN_F_INIT: return close_init(p, f);
  case PLN_F_BLOCK: return pln_script_close_block(p, f);
  case PLN_F_FUNCTION: return pln_script_close_function(p, f);
  default: return PLN_OK;
  }
}

/* After an error nothing is built, because statements may be missing. */
pln_status pln_script_close_frame(pln_script_parser *p) {
  pln_open_frame f = p->frames[--p->n_frames];
  size_t mark = pln_diag_count(p->engine);
  p->place = f.at;
  p->place_size = f.size;
  pln_status status = p->n_errors == 0 ? close(p, &f) : PLN_OK;
  pln_script_unbind(p, f.mark);
  p->n_saved = f.saved;
  if (p->n_stmts < f.stmts || f.what == PLN_F_FUNCTION || p->n_errors > 0)
    p->n_stmts = f.stmts;
  if (f.what == PLN_F_FUNCTION || p->n_errors > 0)
    p->n_parts = f.parts;
  p->n_refs = 0;
  if (status == PLN_OK || status == PLN_ERR_NOMEM || status == PLN_ERR_LIMIT)
    return status;
  p->n_errors++;
  return pln_script_locate(p, mark);
}
