/* infer/match_check.c: checks a Match: its patterns have the type of its data,
 * and a Match marked complete covers every value. Also builds the uncovered
 * cases as patterns.
 *
 * Called after inference, and by scripts. Nothing recurses: a case is a list of
 * parts (infer/match_coverage.h). */

#include "base/text/writer.h"
#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/infer/apply.h"
#include "ir/infer/match_coverage.h"

/* ---------------------------------------------------------------- messages */

enum { MAX_REPORTED_CASES = 8, MAX_CASE_TEXT = 400 };

/* The cases of a message, in Relay's notation. */
typedef struct case_text {
  pln_writer w;
  char text[MAX_CASE_TEXT + 8];
  size_t used;
  uint32_t n_cases;
  uint32_t *left; /* per open pattern: the number of parts to come */
  uint32_t n_left, cap_left;
} case_text;

static pln_status capture_pattern_text(void *ud, const char *data,
                                       size_t size) {
  case_text *t = ud;
  size_t room = sizeof t->text - 1 - t->used;
  size = size < room ? size : room;
  memcpy(t->text + t->used, data, size);
  t->used += size;
  t->text[t->used] = 0;
  return PLN_OK;
}

static pln_status put_part(case_text *t, const pln_case_part *part) {
  if (part->kind == PLN_CASE_ANY)
    pln_put_text(&t->w, "_");
  if (part->kind == PLN_CASE_CONSTRUCTOR)
    pln_put_name(&t->w, "", pln_symbol_text(t->w.engine, part->constructor));
  if (part->kind == PLN_CASE_TUPLE || part->n_parts > 0) {
    PLN_TRY(pln_mem_grow(t->w.engine, (void **)&t->left, &t->cap_left,
                         (size_t)t->n_left + 1, sizeof *t->left));
    t->left[t->n_left++] = part->n_parts;
    pln_put_text(&t->w, "(");
  }
  while (t->n_left > 0 && t->left[t->n_left - 1] == 0) {
    pln_put_text(&t->w, ")");
    t->n_left--;
  }
  if (t->n_left > 0)
    t->left[t->n_left - 1]--;
  return PLN_OK;
}

static pln_status put_case(void *ud, uint32_t n, const pln_case_part *parts,
                           bool *enough) {
  case_text *t = ud;
  *enough = t->n_cases == MAX_REPORTED_CASES || pln_writer_done(&t->w);
  if (*enough) {
    pln_put_text(&t->w, ", ...");
    return PLN_OK;
  }
  pln_put_text(&t->w, t->n_cases++ > 0 ? ", " : "");
  t->n_left = 0;
  bool inner = false;
  for (uint32_t i = 0; i < n && !pln_writer_done(&t->w); i++) {
    pln_put_text(&t->w, inner ? ", " : "");
    inner = parts[i].kind == PLN_CASE_ANY || parts[i].n_parts == 0;
    PLN_TRY(put_part(t, &parts[i]));
  }
  return PLN_OK;
}

static pln_status check_match(const pln_graph *g, pln_ref match,
                              const pln_module *module, pln_symbol function) {
  case_text t = {.used = 0};
  pln_writer_init(&t.w, g->engine, MAX_CASE_TEXT, capture_pattern_text, &t);
  pln_status status = pln_match_each_uncovered(g, match, module, put_case, &t);
  pln_status written = pln_writer_end(&t.w);
  pln_mem_free(g->engine, t.left, t.cap_left * sizeof *t.left);
  if (status == PLN_OK)
    status = written;
  if (status == PLN_OK && t.n_cases > 0)
    status = pln_diag_error(g->engine, PLN_ERR_TYPE, NULL,
                            "the match does not cover %s; only 'match?' may "
                            "leave out cases",
                            t.text);
  if (status == PLN_ERR_TYPE || status == PLN_ERR_LIMIT)
    PLN_TRY(pln_annotate_node_of(g, match, function));
  return status;
}

/* ---------------------------------------------------------------- patterns */

static pln_status check_pattern(const pln_graph *g, pln_type data,
                                pln_ref pattern, pln_symbol function) {
  pln_engine *e = g->engine;
  pln_type type = g->nodes[pattern].type, both;
  pln_description wanted, got;
  bool fits = true;
  if (type != data)
    PLN_TRY(pln_type_unify(e, data, type, &both, &fits));
  if (fits)
    return PLN_OK;
  pln_status status = pln_diag_error(
      e, PLN_ERR_TYPE, NULL, "the pattern: expected %s, got %s",
      pln_describe_type(e, data, &wanted), pln_describe_type(e, type, &got));
  PLN_TRY(pln_annotate_node_of(g, pattern, function));
  return status;
}

/* Inference does not look again at nodes of known type, so their patterns are
 * checked here. */
static pln_status check_patterns(const pln_graph *g, pln_ref match,
                                 pln_symbol function) {
  const pln_node *n = &g->nodes[match];
  pln_type data = g->nodes[pln_operand(g, match, 0)].type;
  pln_status found = PLN_OK;
  for (pln_scope s = pln_owns(n) ? n->data : PLN_NONE; s != PLN_NONE;
       s = g->scopes[s].next) {
    pln_ref pattern = pln_arm_pattern(g, s);
    if (pattern == PLN_NONE || !g->nodes[pattern].type)
      continue;
    pln_status status = check_pattern(g, data, pattern, function);
    if (status != PLN_OK && status != PLN_ERR_TYPE)
      return status;
    if (status != PLN_OK)
      found = status;
  }
  return found;
}

/* ----------------------------------------------------------------- modules */

/* Without a module the constructors are unknown. */
static pln_status check_at(const pln_graph *g, pln_ref ref,
                           const pln_module *module, pln_symbol function) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind != PLN_MATCH)
    return PLN_OK;
  PLN_TRY(check_patterns(g, ref, function));
  if (!module || !pln_attrs_int(g->engine, n->attrs, "complete", 1))
    return PLN_OK;
  return check_match(g, ref, module, function);
}

/* Reports every violation. */
static pln_status check_graph(const pln_graph *g, const pln_module *module,
                              pln_symbol function) {
  pln_status found = PLN_OK;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_status status = check_at(g, ref, module, function);
    if (status != PLN_OK && status != PLN_ERR_TYPE)
      return status;
    if (status != PLN_OK)
      found = status;
  }
  return found;
}

pln_status pln_graph_check_matches(const pln_graph *graph,
                                   const pln_module *module) {
  return check_graph(graph, module, 0);
}

pln_status pln_module_check_matches(const pln_module *module) {
  pln_status found = PLN_OK;
  for (uint32_t i = 0; i < module->count; i++) {
    pln_status status = check_graph(pln_module_function_at(module, i), module,
                                    pln_module_name_at(module, i));
    if (status != PLN_OK && status != PLN_ERR_TYPE)
      return status;
    if (status != PLN_OK)
      found = status;
  }
  return found;
}

/* ---------------------------------------------------------------- patterns */

/* Cases being built: `done` holds patterns that are not yet part of another. */
typedef struct case_builder {
  pln_builder *b;
  pln_ref *done, *cases;
  uint32_t n_done, cap_done, n_cases, cap_cases;
} case_builder;

/* Parts arrive last first: the parts inside a part are on top of the stack, the
 * first one uppermost. */
static pln_status build_part(case_builder *m, const pln_case_part *part,
                             pln_ref *out) {
  pln_ref *parts = m->done ? m->done + (m->n_done - part->n_parts) : NULL;
  for (uint32_t i = 0; i < part->n_parts / 2; i++) {
    pln_ref swap = parts[i];
    parts[i] = parts[part->n_parts - 1 - i];
    parts[part->n_parts - 1 - i] = swap;
  }
  m->n_done -= part->n_parts;
  if (part->kind == PLN_CASE_CONSTRUCTOR)
    return pln_build_pattern_constructor(m->b, part->constructor, part->n_parts,
                                         parts, out);
  if (part->kind == PLN_CASE_TUPLE)
    return pln_build_pattern_tuple(m->b, part->n_parts, parts, out);
  return pln_build_pattern_wildcard(m->b, out);
}

static pln_status build_case(void *ud, uint32_t n, const pln_case_part *parts,
                             bool *enough) {
  case_builder *m = ud;
  pln_engine *e = m->b->engine;
  *enough = false;
  for (uint32_t i = n; i-- > 0;) {
    pln_ref pattern;
    PLN_TRY(build_part(m, &parts[i], &pattern));
    PLN_TRY(pln_mem_grow(e, (void **)&m->done, &m->cap_done,
                         (size_t)m->n_done + 1, sizeof *m->done));
    m->done[m->n_done++] = pattern;
  }
  PLN_TRY(pln_mem_grow(e, (void **)&m->cases, &m->cap_cases,
                       (size_t)m->n_cases + 1, sizeof *m->cases));
  m->cases[m->n_cases++] = m->done[--m->n_done];
  return PLN_OK;
}

pln_status pln_build_uncovered_cases(pln_builder *b, const pln_graph *graph,
                                     pln_ref match, const pln_module *module,
                                     pln_ref *out) {
  case_builder m = {.b = b};
  pln_status status = PLN_OK;
  if (graph->nodes[match].kind != PLN_MATCH)
    status = pln_diag_error(b->engine, PLN_ERR_INVALID, NULL,
                            "uncovered cases are those of a Match, got a %s",
                            pln_kind_name((pln_kind)graph->nodes[match].kind));
  if (status == PLN_OK)
    status = pln_match_each_uncovered(graph, match, module, build_case, &m);
  if (status == PLN_OK)
    status = pln_build_pattern_tuple(b, m.n_cases, m.cases, out);
  pln_mem_free(b->engine, m.done, m.cap_done * sizeof *m.done);
  pln_mem_free(b->engine, m.cases, m.cap_cases * sizeof *m.cases);
  return status;
}
